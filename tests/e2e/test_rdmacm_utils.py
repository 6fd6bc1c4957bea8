#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's rdmacm-utils in the modes that they have, a row each, between two processes that share
127.0.0.1 or ::1; multicast also between two network namespaces."""
# limit: 240 s

import re
import sys
from concurrent.futures import ThreadPoolExecutor

import cm_programs
import e2e
from e2e import Process, demand, on_nic, wait_until

LIMIT = 60
TCP, UDP, IPOIB, IB = 0x106, 0x111, 0x2, 0x13F


def services(process):
    """Names of the services that somebody listens for, where this process is."""
    demand(process.popen.poll() is None, f"ended early: {process}\n{process.tail()}")
    with open(f"/proc/{process.pid}/net/unix", encoding="ascii") as rows:
        return re.findall(r"@verbena/svc/0*([0-9a-f]+)/", rows.read())


def listening(server, space=TCP):
    wait_until(
        lambda: any(int(name, 16) >> 16 == space for name in services(server)),
        20,
        f"a service of {server}",
    )


def both(server_words, client_words, space=TCP):
    """A server and a client to the end: what they printed."""
    with Process(on_nic(*server_words)) as server:
        listening(server, space)
        with Process(on_nic(*client_words)) as client:
            client.expect(LIMIT)
            cm_programs.ended(server, LIMIT)
            return server.both(), client.both()


# A row of a table: the case's name, options of the server, options of the client.

RPING = (
    ("verbose_and_validated", "-a 127.0.0.1 -v -V", "-a 127.0.0.1 -v -V"),
    ("debug", "-a 127.0.0.1 -d -v", "-a 127.0.0.1 -d -v"),
    ("own_qp", "-a ::1 -q -v -V", "-a ::1 -q -v -V"),
    ("any_address", "-v -V", "-a 127.0.0.1 -v -V"),
    ("any_v6_serves_v4", "-a ::0 -v -V", "-a 127.0.0.1 -v -V"),
    ("any_v6", "-a ::0 -v -V", "-a ::1 -v -V"),
    ("source", "-a 127.0.0.1 -v -V", "-a 127.0.0.1 -I 127.0.0.1 -v -V"),
    ("port", "-a 127.0.0.1 -p 9999 -v", "-a 127.0.0.1 -p 9999 -v"),
    ("smallest", "-S 32 -V -v", "-a 127.0.0.1 -S 32 -V -v"),
    ("page", "-S 4096 -V -v", "-a 127.0.0.1 -S 4096 -V -v"),
    ("odd", "-a ::0 -S 12345 -V -v", "-a ::1 -S 12345 -V -v"),
    ("largest", "-S 65535 -V -v", "-a 127.0.0.1 -S 65535 -V -v"),
)


def rping(server, client):
    words = ["rping", "-C", "10"]
    said, told = both([*words, "-s", *server.split()], [*words, "-c", *client.split()])
    for side, text in (("server", said), ("client", told)):
        found = re.findall(r"ping data: rdma-ping-(\d+): ", text)
        demand(found == [str(n) for n in range(10)], f"{side} printed:\n{text}")


def rping_one_server_many_clients():
    """One after the other; -P serves for ever."""
    words = ["rping", "-s", "-P", "-a", "127.0.0.1"]
    with Process(on_nic(*words)) as server:
        listening(server)
        for options in ([], ["-q"], ["-d"], ["-V"], ["-I", "127.0.0.1"]):
            command = ["rping", "-c", "-a", "127.0.0.1", "-C", "3", "-v", *options]
            status, out, errors = e2e.run(on_nic(*command), LIMIT)
            demand(status == 0, f"{options}: {out}{errors}")
            demand(out.count("ping data") == 3, f"{options}: {out}")
            demand(server.popen.poll() is None, server.tail())


UCMATOSE = (
    ("connections", "-c 32", "-s 127.0.0.1 -c 32"),
    ("messages", "-C 100 -S 64", "-s 127.0.0.1 -C 100 -S 64"),
    ("byte", "-C 4 -S 1", "-s 127.0.0.1 -C 4 -S 1"),
    ("large", "-b ::0 -C 4 -S 1048576", "-s ::1 -C 4 -S 1048576"),
    ("no_data", "-C 0", "-s 127.0.0.1 -C 0"),
    ("tos", "-t 104", "-s 127.0.0.1 -t 104"),
    ("migrate", "-c 8 -m", "-s 127.0.0.1 -c 8 -m"),
    ("bind", "-b 127.0.0.1", "-s 127.0.0.1 -b 127.0.0.1"),
    ("bind_v6", "-b ::0", "-s ::1"),
    ("port", "-p 9001", "-s 127.0.0.1 -p 9001"),
    ("ack_timeout", "-a 19", "-s 127.0.0.1 -a 19"),
    ("by_ip", "-f ip -b 127.0.0.1", "-f ip -s 127.0.0.1"),
    ("by_name", "-f name", "-f name -s localhost"),
    ("by_ipv6", "-f ipv6 -b ::1", "-f ipv6 -s ::1"),
    ("by_gid", "-f gid", "-f gid -s ::1"),
    ("ib_by_gid", "-P ib -f gid -b ::1", "-P ib -f gid -s ::1", IB),
    ("ib_by_gid_v4", "-P ib -f gid", "-P ib -f gid -s ::ffff:127.0.0.1", IB),
    ("ib", "-P ib", "-P ib -s 127.0.0.1", IB),
    ("ib_v6", "-P ib -b ::1", "-P ib -s ::1", IB),
)


def complete(program, server, client, space=TCP):
    """Both say that they have done all and found nothing wrong."""
    said, told = both([program, *server.split()], [program, *client.split()], space)
    for text in (said, told):
        demand("return status 0" in text and "fail" not in text.lower(), text)


UDADDY = (
    ("paths", "-c 16", "-s 127.0.0.1 -c 16"),
    ("messages", "-C 50 -S 16", "-s 127.0.0.1 -C 50 -S 16"),
    ("mtu", "-b ::0 -C 4 -S 4096", "-s ::1 -C 4 -S 4096"),
    ("bind", "-b 127.0.0.1", "-s 127.0.0.1 -b 127.0.0.1"),
    ("tos", "-t 104", "-s 127.0.0.1 -t 104"),
    ("ipoib", "-p 0x2", "-s 127.0.0.1 -p 0x2", IPOIB),
    ("by_ip", "-f ip -b 127.0.0.1", "-f ip -s 127.0.0.1"),
    ("by_ipv6", "-f ipv6 -b ::1", "-f ipv6 -s ::1"),
    ("by_gid", "-f gid", "-f gid -s ::1"),
)

CMTIME = (
    ("connections", "", "-s 127.0.0.1 -c 300", 300),
    ("bind", "-b 127.0.0.1", "-s 127.0.0.1 -b 127.0.0.1 -c 20", 20),
    ("v6", "-b ::0", "-s ::1 -c 20", 20),
    ("port", "-p 9002", "-s 127.0.0.1 -p 9002 -c 20", 20),
    ("retries", "", "-s 127.0.0.1 -r 3 -t 500 -c 20", 20),
)


def cmtime(server, client, count):
    """The server goes on for ever."""
    with Process(on_nic("cmtime", *server.split())) as first:
        listening(first)
        status, out, errors = e2e.run(on_nic("cmtime", *client.split()), LIMIT)
        demand(status == 0 and "fail" not in (out + errors).lower(), out + errors)
        steps = dict(re.findall(r"^([a-z][a-z ]*[a-z]) *: +([0-9.]+)", out, re.MULTILINE))
        want = {"create id", "bind addr", "resolve addr", "resolve route", "create qp"}
        want |= {"connect", "disconnect", "destroy"}
        demand(want - {"bind addr"} <= steps.keys(), f"{sorted(steps)}:\n{out}")
        demand(first.popen.poll() is None, first.tail())
        return f"{count} connections: {steps['connect']} ms"


ENDPOINTS = (
    ("rdma", "rdma_server", "rdma_client", "-s 127.0.0.1 -p 9003", "-s 127.0.0.1 -p 9003"),
    ("rdma_any", "rdma_server", "rdma_client", "", "-s 127.0.0.1"),
    ("rdma_v6", "rdma_server", "rdma_client", "-s ::1", "-s ::1"),
    ("rdma_x", "rdma_xserver", "rdma_xclient", "-p 9004 -c r", "-s 127.0.0.1 -p 9004 -c r"),
    ("rdma_x_xrc", "rdma_xserver", "rdma_xclient", "-c x", "-s 127.0.0.1 -c x", IB),
    ("rdma_x_xrc_port", "rdma_xserver", "rdma_xclient", "-p 9005 -c x", "-p 9005 -c x", IB),
)


def endpoint(server, client, server_options, client_options, space=TCP):
    said, told = both([server, *server_options.split()], [client, *client_options.split()], space)
    demand(f"{server}: end 0" in said and f"{client}: end 0" in told, said + told)


# Multicast: options of all, and whether the members get it.
MCKEY = (
    ("case_87__mckey_one", "", 1),
    ("case_87__mckey_several", "", 3),
    ("case_87__mckey_paths", "-c 4", 2),
    ("case_87__mckey_messages", "-C 50 -S 1000", 2),
    ("case_87__mckey_ipoib", "-p 0x2", 1),
)


def receives(member):
    demand(member.popen.poll() is None, f"ended early: {member}\n{member.tail()}")
    return "receiving data" in member.text()


def mckey_members(starts, options, count):
    """starts: commands of members; their group has to be there before the sender."""
    members = []
    try:
        for words in starts:
            members.append(Process([*words, *options]))
        for member in members:
            wait_until(
                lambda m=member: receives(m),
                20,
                f"a member: {member}",
            )
        yield members
        for member in members:
            text = member.expect(LIMIT)
            demand("data transfers complete" in text and "return status 0" in text, text)
    finally:
        for member in members:
            member.__exit__()
    demand(len(members) == count, "members")


def mckey(group, local, options, count, sides=None, flag="-m", sender=()):
    """A sender and so many members."""
    options = options.split()
    homes = sides or [([], local)]
    # Line by line: a pipe or file would keep the lines until the end.
    lines = ["stdbuf", "-oL"]

    def words(home, more=()):
        inside, address = home
        return [*inside, *lines, *on_nic("mckey", flag, group, "-b", address, *more)]

    starts = [words(homes[n % len(homes)]) for n in range(count)]
    for _ in mckey_members(starts, options, count):
        with Process([*words(homes[-1], ["-s"]), *options, *sender]) as first:
            text = first.expect(LIMIT)
            demand("return status 0" in text, text)


def multicast_between_namespaces(net):
    """Rows as arguments of mckey."""
    inside = [["ip", "netns", "exec", name] for name in net.names]
    v4, v6 = list(zip(inside, net.V4)), list(zip(inside, net.V6))
    for name, group, sides, flag, sender in (
        ("v4", "224.0.1.77", v4, "-m", ()),
        ("v6", "ff0e::77", v6, "-m", ()),
        ("v6_link", "ff02::77", v6, "-m", ()),
        ("unmapped", "ff0e::78", v6, "-M", ()),
        ("unmapped_v4", "::ffff:224.0.1.78", v4, "-M", ()),
        ("send_only", "224.0.1.79", v4, "-m", ["-o"]),
        ("no_loopback", "224.0.1.80", v4, "-m", ["-l"]),
    ):
        yield "mckey_between_namespaces_" + name, group, None, "", 2, sides, flag, sender


def mckey_beside_a_server(net):
    """The first process of an address gets what the kernel knows no other socket for; a group's
    packets are not that."""
    inside = [["ip", "netns", "exec", name] for name in net.names]
    with Process([*inside[0], *on_nic("rping", "-s", "-P", "-a", net.V4[0])]) as first:
        listening(first)
        mckey("224.0.1.90", None, "", 2, list(zip(inside, net.V4)))


def side_by_side(tap, rows):
    """mckey sleeps for 5 s before it begins: all at the same time."""
    with ThreadPoolExecutor(len(rows)) as pool:
        started = [(name, pool.submit(mckey, *row)) for name, *row in rows]
        for name, outcome in started:
            tap.run(name, outcome.result)


def multicast(tap):
    rows = []
    for n, (name, options, count) in enumerate(MCKEY):
        rows.append((name, f"224.0.1.{n}", "127.0.0.1", options, count))
    try:
        with e2e.Namespaces(1500, "m") as net:
            side_by_side(tap, [*rows, *multicast_between_namespaces(net)])
            tap.run("case_87__mckey_beside_a_server", mckey_beside_a_server, net)
    except e2e.Skip as reason:
        side_by_side(tap, rows)
        tap.say("ok", "mckey_between_namespaces", f" # SKIP {reason}")


def cases(tap):
    e2e.need("rping", "ucmatose", "udaddy", "cmtime", "mckey", "rdma_server", "stdbuf")
    for name, *row in RPING:
        tap.run(f"rping_{name}", rping, *row)
    tap.run("rping_one_server_many_clients", rping_one_server_many_clients)
    for name, *row in UCMATOSE:
        tap.run(f"ucmatose_{name}", complete, "ucmatose", *row)
    for name, server, client, *space in UDADDY:
        tap.run(f"udaddy_{name}", complete, "udaddy", server, client, *(space or [UDP]))
    for name, *row in CMTIME:
        tap.run(f"cmtime_{name}", cmtime, *row)
    for name, *row in ENDPOINTS:
        tap.run(name, endpoint, *row)
    multicast(tap)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
