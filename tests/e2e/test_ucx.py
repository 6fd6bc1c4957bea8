#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""Debian's UCX finds our devices, and its verbs transports carry data over them: ucx_perftest, which
only counts, and ucp_pair, which looks at every byte. rc_v receives through an SRQ
(ibv_create_srq), ud_v by receives of each QP."""

import os
import re
import sys

import e2e
from e2e import PROGRAMS, Namespaces, Side, Skip, demand

MTU = 4200
RC = {"UCX_TLS": "rc_v"}
UD = {"UCX_TLS": "ud_v"}
CM = {"UCX_TLS": "rc_v", "UCX_SOCKADDR_TLS_PRIORITY": "rdmacm"}
LOSS = ("--fault", "drop=1%,seed=3")
ITERATIONS = 100

# Of the lower interface (UCT): test, how the sender lays out its data, bytes.
UCT = {
    "rc_verbs": (
        ("am_lat", "short", 8),
        ("am_bw", "bcopy", 4000),
        ("am_bw", "zcopy", 8000),
        ("put_lat", "short", 8),
        ("put_bw", "bcopy", 8000),
        ("put_bw", "zcopy", 65536),
        ("get", "bcopy", 8000),
        ("get", "zcopy", 65536),
        ("add_lat", "short", 8),
        ("add_mr", "short", 8),
        ("fadd", "short", 8),
        ("cswap", "short", 8),
    ),
    "ud_verbs": (("am_lat", "short", 8), ("am_bw", "bcopy", 4000), ("am_bw", "zcopy", 4000)),
}

# Of the upper one: test, bytes, how a side waits. Who sleeps must be woken by each completion that
# comes after its last poll, before or after it armed the queue.
UCP = (
    ("tag_lat", 8, "poll"),
    ("tag_bw", 65536, "poll"),
    ("tag_sync_lat", 8, "poll"),
    ("stream_lat", 8, "poll"),
    ("stream_bw", 65536, "poll"),
    ("ucp_am_lat", 8, "poll"),
    ("ucp_am_bw", 65536, "poll"),
    ("ucp_put_lat", 8, "poll"),
    ("ucp_get", 65536, "poll"),
    ("ucp_fadd", 8, "poll"),
    ("ucp_swap", 8, "poll"),
    ("tag_lat", 8, "sleep"),
    ("tag_bw", 65536, "sleep"),
)


def ucx_info(side):
    with side.start(["ucx_info", "-d"]) as process:
        text = process.expect(30)
    found = set(re.findall(r"Transport: (\S+)\n# *Device: (\S+)", text))
    for transport in ("rc_verbs", "ud_verbs"):
        demand((transport, f"{side.device}:1") in found, f"{transport} is not in {sorted(found)}")
    demand("Connection manager: rdmacm" in text, "no connection manager")
    rc = text[text.index("Transport: rc_verbs") :]
    demand(re.search(r"atomic_cswap: 64 bit", rc.partition("Transport: ud_verbs")[0]), rc)


def measured(text):
    """Iterations, and the time of one of them over all in us. What took longer than a second has a
    row for each, the last of which may be of no iteration: its own average is nan or inf.
    """
    row = r"^ +(?:\S+ +)?(\d+) +[0-9.]+ +(?:[0-9.]+|-?nan|inf) +([0-9.]+) "
    rows = re.findall(row, text, re.MULTILINE)
    demand(rows, f"no figures in:\n{text}")
    demand(int(rows[-1][0]) == ITERATIONS and float(rows[-1][1]) > 0, text)
    return f"{float(rows[-1][1]):.1f} us"


def perftest(server, client, host, *words):
    port = e2e.free_port()
    line = ["ucx_perftest", "-f", "-n", str(ITERATIONS), "-w", "10", "-p", str(port), *words]
    _, told = e2e.pair(server, client, line, [*line, host], port)
    return measured(told)


def uct(transport):
    side = Side()
    for test, layout, size in UCT[transport]:
        where = ["-d", "vb_lo:1", "-x", transport]
        perftest(side, side, "127.0.0.1", *where, "-t", test, "-D", layout, "-s", str(size))


def ucp(env, rows):
    side = Side(env={**env, "UCX_NET_DEVICES": "vb_lo:1"})
    for test, size, waits in rows:
        perftest(side, side, "127.0.0.1", "-t", test, "-s", str(size), "-E", waits)


def bytes_right(server, client, host, *options):
    if not os.access(os.path.join(PROGRAMS, "ucp_pair"), os.X_OK):
        raise Skip("built without UCX's headers")
    said, told = e2e.own_pair(server, client, host, "ucp_pair", *options)
    for text in (said, told):
        demand("every byte as it was sent" in text, text)


def cases(tap):
    e2e.need("ucx_info", "ucx_perftest")
    tap.run("info", ucx_info, Side())
    for transport in UCT:
        tap.run(f"uct_{transport}", uct, transport)
    tap.run("ucp_rc", ucp, RC, UCP)
    tap.run("ucp_ud", ucp, UD, UCP[:2] + UCP[-2:])
    for name, env, options in (("rc", RC, ()), ("ud", UD, ()), ("cm", CM, ("-o", "rdmacm"))):
        for gid, host in ((0, "127.0.0.1"), (1, "::1")):
            side = Side("vb_lo", gid, env=env)
            tap.run(f"bytes_{name}_gid_{gid}", bytes_right, side, side, host, *options)
    with Namespaces(MTU) as net:
        tap.run("info_veth", ucx_info, net.side(0, 0))
        for name, env, options in (("rc", RC, ()), ("ud", UD, ()), ("cm", CM, ("-o", "rdmacm"))):
            four = [net.side(i, net.GID_V4, env=env) for i in (0, 1)]
            tap.run(f"bytes_{name}_two_hosts", bytes_right, *four, net.V4[0], *options)
            six = [net.side(i, net.GID_V6, env=env, options=LOSS) for i in (0, 1)]
            tap.run(f"bytes_{name}_loss", bytes_right, *six, net.V6[0], *options)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
