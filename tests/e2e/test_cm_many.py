#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 300 s
"""Connection management among many processes of one address, by Debian's rping: each listener gets
what is for it, names go with their process, and who is killed leaves no peer waiting."""

import os
import re
import signal
import sys
import time

import e2e
from e2e import Process, PublicCopy, Side, demand, wait_until

HOST, OTHER_HOST, HOST6 = "127.0.0.1", "127.0.0.2", "::1"
LISTENERS = 20
KILLED = 10
TOLD_SECONDS = 30  # at most; who is not told of it waits for ever
CROWD = 128
CONNECTIONS = 1000
IN_SEQUENCE = 2000 if e2e.LONG else 200
# A server's, however many clients came: sockets to send from (64), flows of those who came lately
# (some 130, at 40 a second), the wills and slots of those who ended lately (2 x 16), and what it
# has without any client.
SERVER_DESCRIPTORS = 300  # with a thousand connections of four processes
SETTLED_DESCRIPTORS = 150  # a while after the last of however many clients
# Tables are touched at places that numbers by chance name: most of 8 MB in the end.
SERVER_GROWTH_KIB = 8192
NOBODY = 65534


def names():
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as rows:
        return [row.split()[-1] for row in rows if "verbena/" in row]


def name_of(port, address):
    return f"@verbena/svc/{0x1060000 + port:x}/{address}"


def rping(*words):
    return ["rping", *words]


class Server:
    """rping listening, in a `with` block."""

    def __init__(self, address, port, *words, side=None, name=None):
        self.address, self.port = address, port
        self.name = name or address
        self.side = side or Side()
        self.words = rping("-s", "-a", address, "-p", str(port), *words)

    def __enter__(self):
        self.process = self.side.start(self.words)
        try:
            wait_until(
                lambda: self.process.popen.poll() is not None
                or name_of(self.port, self.name) in names(),
                15,
                f"{self.words} to listen",
            )
            demand(self.process.popen.poll() is None, f"{self.words}: {self.process.tail()}")
        except BaseException:
            self.__exit__()
            raise
        return self.process

    def __exit__(self, *_):
        self.process.__exit__()


def client(address, port, *words, side=None, count=5):
    line = rping("-c", "-a", address, "-p", str(port), "-C", str(count), "-V", *words)
    return (side or Side()).start(line)


def served(address, port, side=None):
    with client(address, port, side=side) as process:
        process.expect(30)


def refused(address, port):
    with client(address, port) as process:
        demand(process.wait(30) != 0, "connected all the same")
        return process.both()


def many_listeners():
    """As many servers, as many clients at once, and each pair finds each other: every server has
    its five pings. Its exit code says nothing: rping's threads race for the channel at the end."""
    ports = [e2e.free_port() for _ in range(LISTENERS)]
    servers = [Server(HOST, port, "-C", "5", "-v") for port in ports]
    clients = []
    try:
        running = [server.__enter__() for server in servers]
        clients = [client(HOST, port) for port in reversed(ports)]
        for process in clients:
            process.expect(60)
        for process in running:
            process.wait(30)
            pings = process.text().count("server ping data")
            demand(pings == 5, f"{process}: {pings} pings\n{process.tail()}")
    finally:
        for process in clients:
            process.__exit__()
        for server in servers:
            server.__exit__()


def crowd(clients):
    """All at once, to one server that asked for a backlog of 3: each has its pings."""
    port = e2e.free_port()
    with Server(HOST, port, "-P") as server:
        running = [client(HOST, port, "-v", count=3) for _ in range(clients)]
        try:
            for process in running:
                text = process.expect(120)
                demand(text.count("ping data: rdma-ping-") == 3, f"{process}: {text}")
        finally:
            for process in running:
                process.__exit__()
        served(HOST, port)
        demand(server.popen.poll() is None, f"the server ended:\n{server.tail()}")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def settles(pid):
    """A server keeps a socket for a client that is gone for a time, the shorter the more there are:
    how many there are at most depends on how fast clients come, what is left soon after does not.
    """
    wait_until(lambda: descriptors(pid) <= SETTLED_DESCRIPTORS, 60, "sockets of the gone to go")


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as rows:
        return next(int(row.split()[1]) for row in rows if row.startswith("VmRSS:"))


def in_sequence():
    """One after another: what the server has does not grow with them."""
    port = e2e.free_port()
    sanitized = "asan" in os.environ.get("LD_PRELOAD", "")  # keeps what was freed for a while
    # Not the leader of the port, so that it has flows.
    with Server(HOST, e2e.free_port(), "-P"), Server(HOST, port, "-P") as server:
        first_kib = most = 0
        for number in range(IN_SEQUENCE):
            served(HOST, port)
            most = max(most, descriptors(server.pid))
            if number == IN_SEQUENCE // 10:
                first_kib = resident_kib(server.pid)
        settles(server.pid)
        grown = resident_kib(server.pid) - first_kib
        demand(sanitized or grown < SERVER_GROWTH_KIB, f"{grown} KiB more than at first")
        # Of those who have gone nothing is kept for long.
        wait_until(
            lambda: len({name for name in names() if "/slot/" in name}) == 2,
            15,
            "slots to be free",
        )
        return f"{IN_SEQUENCE} clients, {most} descriptors at most, {grown} KiB grown"


def thousand(clients=4):
    """So many connections of one server open at the same time, twice: afterwards it has as many
    descriptors as after the first time."""
    program = os.path.join(e2e.PROGRAMS, "connections")
    port = e2e.free_port()
    with Side().start([program, "server", HOST, str(port), str(CONNECTIONS), "2"]) as server:
        wait_until(lambda: name_of(port, HOST) in names(), 15, "the server to listen")
        for number in (1, 2):
            line = [program, "client", HOST, str(port), str(CONNECTIONS // clients)]
            running = [Side().start(line) for _ in range(clients)]
            try:
                for process in running:
                    process.expect(120)
            finally:
                for process in running:
                    process.__exit__()
            wait_until(lambda n=number: f"round {n}:" in server.text(), 60, f"the end of {number}")
        text = server.expect(30)
    levels = re.findall(r"(\d+) descriptors, (\d+) KiB", text)
    (fds, kib), (fds_again, kib_again) = [(int(a), int(b)) for a, b in levels]
    demand(fds_again <= max(fds, SERVER_DESCRIPTORS), f"{fds}, then {fds_again} descriptors")
    sanitized = "asan" in os.environ.get("LD_PRELOAD", "")
    demand(sanitized or kib_again < kib + SERVER_GROWTH_KIB, f"{kib}, then {kib_again} KiB")
    return f"{fds}, then {fds_again} descriptors; {kib}, then {kib_again} KiB"


def flood(count=30000):
    """Messages of every kind from thousands of senders, none of which leads anywhere: meanwhile and
    afterwards a client is served, and of all that nothing is kept."""
    program = os.path.join(e2e.PROGRAMS, "cm_flood")
    port = e2e.free_port()
    with Server(HOST, port, "-P") as server:
        served(HOST, port)
        kib = resident_kib(server.pid)
        with Process([program, str(port), str(count)]) as flooding:
            clients = 0
            while flooding.popen.poll() is None:
                served(HOST, port)
                clients += 1
            flooding.expect(10)
        served(HOST, port)
        more_kib = resident_kib(server.pid) - kib
        settles(server.pid)
        sanitized = "asan" in os.environ.get("LD_PRELOAD", "")
        demand(sanitized or more_kib < SERVER_GROWTH_KIB, f"{more_kib} KiB more")
        return f"{count} messages, {clients} clients meanwhile, {more_kib} KiB more"


def address_and_any():
    """Two addresses are two listeners; an address and any exclude each other."""
    if not os.environ.get("VERBENA_E2E_ISOLATED"):
        raise e2e.Skip("lo is not ours to give an address to")
    # One of each family: getaddrinfo leaves out a family that has only the loopback address.
    for address in (f"{OTHER_HOST}/32", "fd89::7/128"):
        e2e.Namespaces.ip("address", "add", address, "dev", "lo", "nodad")
    port = e2e.free_port()
    with Server(HOST, port, "-P"), Server(OTHER_HOST, port, "-P"), Server(HOST6, port, "-P"):
        for address in (HOST, OTHER_HOST, HOST6):
            served(address, port)
        for address in (HOST, "0.0.0.0"):
            with Side().start(rping("-s", "-a", address, "-p", str(port))) as second:
                demand(second.wait(15) != 0, f"{address} a second time")
                demand("in use" in second.both(), second.both())
    with Server("0.0.0.0", port, "-P", name="any4"):
        served(OTHER_HOST, port)


def nobody_listens():
    with Server(HOST, e2e.free_port(), "-P"):
        text = refused(HOST, e2e.free_port())
    demand("REJECT" in text.upper(), text)


def listener_killed():
    """Its name is free at once, again and again."""
    port = e2e.free_port()
    for _ in range(KILLED):
        with Server(HOST, port, "-P") as server:
            served(HOST, port)
            os.killpg(server.pid, signal.SIGKILL)
            server.popen.wait()
    demand(name_of(port, HOST) not in names(), "a name is left")
    with Server(HOST, port, "-P"):
        served(HOST, port)


def squatted():
    """Another user's socket with a listener's name: no server, and no request for it."""
    words = e2e.unprivileged()
    port = e2e.free_port()
    name = name_of(port, HOST)[1:]
    squat = (
        "import socket, time\n"
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        f"s.bind('\\0{name}')\n"
        "s.listen(5)\n"
        "s.settimeout(60)\n"
        "while True: print(s.accept()[0].recv(1), flush=True)\n"
    )
    with Process([*words, sys.executable, "-c", squat]) as squatter:
        wait_until(lambda: "@" + name in names(), 10, "the name")
        with Side().start(rping("-s", "-a", HOST, "-p", str(port))) as server:
            demand(server.wait(15) != 0, "listens all the same")
            text = server.both()
            demand("Address already in use" in text, text)
            demand(re.search(rf"verbena: port {port}, .*\(uid {NOBODY}\), process \d+", text), text)
        refused(HOST, port)
        demand(b"r" not in squatter.text().encode(), f"it was sent something: {squatter.text()}")


def connected(process):
    """A client whose pings go through."""
    wait_until(lambda: "ping data" in process.text(), 20, f"{process} to be connected")


def killed_client(bystanders):
    """Killed with kill -9: the server, which only waits, hears of the end each time."""
    port = e2e.free_port()
    slowest = 0.0
    with Server(HOST, port, "-P", "-d") as server:
        others = [Server(HOST, e2e.free_port(), "-P") for _ in range(bystanders)]
        try:
            for other in others:
                other.__enter__()
            for number in range(1, KILLED + 1):
                with client(HOST, port, "-v", count=1000000) as process:
                    connected(process)
                    os.killpg(process.pid, signal.SIGKILL)
                    killed = time.monotonic()
                    wait_until(
                        lambda n=number: server.both().count("DISCONNECT EVENT") >= n,
                        TOLD_SECONDS,
                        "the server to be told",
                    )
                    slowest = max(slowest, time.monotonic() - killed)
        finally:
            for other in others:
                other.__exit__()
        served(HOST, port)
    return f"slowest {slowest * 1000:.0f} ms"


def killed_server():
    """The same the other way round."""
    port = e2e.free_port()
    with Server(HOST, e2e.free_port(), "-P"), Server(HOST, port, "-P") as server:
        with client(HOST, port, "-v", "-d", count=1000000) as process:
            connected(process)
            os.killpg(server.pid, signal.SIGKILL)
            told = "DISCONNECT EVENT"
            wait_until(lambda: told in process.both(), TOLD_SECONDS, "the client to be told")


def two_users():
    """Each user's client reaches the other's listener."""
    words = e2e.unprivileged()
    with PublicCopy() as public:
        root = Side(tool=public.tool, env={"VERBENA_ALLOW_UIDS": str(NOBODY)})
        nobody = Side(inside=words, tool=public.tool, env={"VERBENA_ALLOW_UIDS": "0"})
        for holder, guest in ((root, nobody), (nobody, root)):
            first, second = e2e.free_port(), e2e.free_port()
            with Server(HOST, first, "-P", side=holder):
                with Server(HOST, second, "-P", side=guest):
                    for side in (holder, guest):
                        served(HOST, first, side)
                        served(HOST, second, side)


def nothing_is_left():
    wait_until(lambda: not names(), 5, f"names to be free: {names()}")


def cases(tap):
    e2e.need("rping")
    tap.run("many_listeners", many_listeners)
    tap.run("case_95__crowd", crowd, CROWD)
    tap.run("case_95__in_sequence", in_sequence)
    tap.run("thousand_connections", thousand)
    tap.run("flood", flood)
    tap.run("address_and_any", address_and_any)
    tap.run("nobody_listens", nobody_listens)
    tap.run("listener_killed", listener_killed)
    tap.run("squatted", squatted)
    tap.run("killed_client", killed_client, 0)
    tap.run("killed_client_among_others", killed_client, 4)
    tap.run("killed_server", killed_server)
    tap.run("two_users", two_users)
    tap.run("nothing_is_left", nothing_is_left)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
