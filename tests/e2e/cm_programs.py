# SPDX-License-Identifier: BSD-2-Clause
"""Debian's programs that meet by rdma_cm, as a table: what the server and the client are called
with, and what both must have printed."""

import re

from e2e import demand, wait_until

TCP, UDP = 0x106, 0x111  # port spaces
START_SECONDS = 30
UDADDY_PORT = 7174  # has no option for it


def ended(server, limit_seconds=60):
    """A server has ended, and well; of rping what it printed is what counts: it takes its event
    channel down while its other thread may be about to wait there.
    """
    status = server.wait(limit_seconds)
    demand(status == 0 or "rping" in server.command, f"exit code {status}: {server}\n{server.tail()}")


def pings(count):
    """Every one came back as it went, on both sides."""

    def check(text, told):
        for printed in (text, told):
            found = re.findall(r"ping data: rdma-ping-(\d+): ", printed)
            demand(found == [str(n) for n in range(count)], f"pings {found}")

    return check


def says(*words):
    def check(text, told):
        for word in words:
            demand(word in text and word in told, f"not on both sides: {word}")

    return check


def one_says(word):
    """Of a program whose server prints nothing."""

    def check(text, told):
        demand(word in text or word in told, f"on neither side: {word}")

    return check


def cmtime_steps(text, told):
    steps = re.findall(r"^([a-z][a-z ]*[a-z]) *: +[0-9.]+", text + told, re.MULTILINE)
    demand({"connect", "disconnect", "destroy"} <= set(steps), f"steps {steps}")


# Name in the table: words of the server, of the client, what must be printed, port space.
# {a}: the server's address, {p}: a port, {f}: words for its family.
RPING = "rping {{role}} -a {{a}} -p {{p}} -v -V -C {count} {more}"
PING = {
    "rping": RPING.format(count=5, more=""),
    "rping -q": RPING.format(count=3, more="-q"),
    "rping -S 16384": RPING.format(count=3, more="-S 16384"),
}
PROGRAMS = {
    **{
        name: (line.replace("{role}", "-s"), line.replace("{role}", "-c"), pings(count), TCP)
        for (name, line), count in zip(PING.items(), (5, 3, 3))
    },
    "ucmatose": (
        "ucmatose -b {a} -p {p}",
        "ucmatose -s {a} -p {p} {f}",
        says("test complete", "return status 0"),
        TCP,
    ),
    "ucmatose -c 3 -S 10000": (
        "ucmatose -b {a} -p {p} -c 3 -C 4 -S 10000",
        "ucmatose -s {a} -p {p} -c 3 -C 4 -S 10000 {f}",
        says("test complete", "return status 0"),
        TCP,
    ),
    "udaddy": (
        "udaddy -b {a}",
        "udaddy -s {a} {f}",
        says("data transfers complete", "return status 0"),
        UDP,
    ),
    "cmtime": ("cmtime -b {a} -p {p} -c 5", "cmtime -s {a} -p {p} -c 5", cmtime_steps, TCP),
    "rdma_client": ("rdma_server -s {a} -p {p}", "rdma_client -s {a} -p {p}", says("end 0"), TCP),
}
OPERATIONS = ("write", "read", "send", "atomic")
for _verb in OPERATIONS:
    for _what in ("bw", "lat"):
        _size = "" if _verb == "atomic" else "-s 20000" if _what == "bw" else "-s 16"
        _line = f"ib_{_verb}_{_what} -R -F -n 10 {_size} -p {{p}}"
        PROGRAMS[f"ib_{_verb}_{_what} -R"] = (_line, _line + " {a}", one_says(" 10  "), TCP)


def lines(name, family, address, port):
    """The words of server and client, for a server at this address."""
    server, client, _, _ = PROGRAMS[name]
    v6 = family == "IPv6"
    words = {"a": address, "p": port, "f": "-f ipv6" if v6 else ""}
    return server.format(**words).split(), client.format(**words).split()


def listening(process, space, port):
    """Waits until the process of ours has taken a service, in whatever namespace it is."""
    name = f"@verbena/svc/{space << 16 | port:x}/"

    def there():
        demand(process.popen.poll() is None, f"{process} ended:\n{process.tail()}")
        try:
            with open(f"/proc/{process.pid}/net/unix", encoding="utf-8", errors="replace") as rows:
                return name in rows.read()
        except FileNotFoundError:  # it ends
            return False

    wait_until(there, START_SECONDS, f"service {space:x} {port} of {process}")
