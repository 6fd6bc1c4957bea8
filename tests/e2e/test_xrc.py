#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""XRC: Debian's ibv_xsrq_pingpong and perftest, untouched, on 127.0.0.1 and between two namespaces.

ib_send_lat -e waits for a send and a receive, in this order, on one channel, and the two are of
different QPs: it needs the network to keep their order.
"""

import sys

import e2e
from e2e import Namespaces, Side, demand, perftest

V4 = Side("vb_lo", 0)
V6 = Side("vb_lo", 1)


def pingpong(server, client, host, *options, iterations=100):
    port = e2e.free_port()

    def command(side, tail):
        head = ["ibv_xsrq_pingpong", "-d", side.device, "-g", str(side.gid), "-p", str(port)]
        return head + ["-n", str(iterations), *options, *tail]

    said, told = e2e.pair(server, client, command(server, []), command(client, [host]), port)
    demand("success" in said and "success" in told, said + told)


def one_pair(tap, tag, server, client, host, ipv6=False):
    run = tap.run
    family = ["--ipv6"] if ipv6 else []
    for size in (1, 65536):
        run(f"{tag}_pingpong_{size}", pingpong, server, client, host, "-s", str(size))
    run(f"{tag}_pingpong_events", pingpong, server, client, host, "-e", iterations=50)
    for program, size, iterations in (
        ("ib_send_lat", 64, 50),
        ("ib_send_bw", 65536, 100),
        ("ib_write_lat", 65536, 20),
        ("ib_write_bw", 65536, 100),
        ("ib_read_bw", 65536, 100),
    ):
        words = ["-c", "XRC", *family]
        words += ["--use-srq"] if program.startswith("ib_send") else []
        options = {"size": size, "iterations": iterations}
        run(f"{tag}_{program}_{size}", perftest, server, client, host, program, *words, **options)


def cases(tap):
    one_pair(tap, "lo_ipv4", V4, V4, "127.0.0.1")
    one_pair(tap, "lo_ipv6", V6, V6, "127.0.0.1", ipv6=True)
    more = {
        "lo_send_bw_events": ("ib_send_bw", "--use-srq", "-e"),
        "lo_send_lat_events": ("ib_send_lat", "--use-srq", "-e"),
        "lo_send_bw_both_ways": ("ib_send_bw", "--use-srq", "-b"),
        "lo_send_bw_4_qps": ("ib_send_bw", "--use-srq", "-q", "4"),
        "lo_send_lat_inline": ("ib_send_lat", "--use-srq", "-I", "64"),
        "lo_read_lat": ("ib_read_lat",),
        "lo_atomic_cas": ("ib_atomic_bw", "-A", "CMP_AND_SWAP"),
        "lo_atomic_faa": ("ib_atomic_lat", "-A", "FETCH_AND_ADD"),
    }
    for name, words in more.items():
        options = {"size": 64, "iterations": 100}
        tap.run(name, perftest, V4, V4, "127.0.0.1", *words, "-c", "XRC", **options)
    bad = [
        Side("vb_lo", 0, options=["--fault", f"drop=2%,dup=2%,reorder=2%:50us,seed={seed}"])
        for seed in (7, 11)
    ]
    words = ("ib_write_bw", "-c", "XRC")
    tap.run("lo_write_bw_lossy", perftest, *bad, "127.0.0.1", *words, size=65536, iterations=100)
    try:
        with Namespaces(1500) as net:
            host = net.V4[0]
            one_pair(tap, "veth_ipv4", net.side(0, net.GID_V4), net.side(1, net.GID_V4), host)
    except e2e.Skip as reason:
        tap.say("ok", "veth", f" # SKIP {reason}")


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
