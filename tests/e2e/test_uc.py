#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""UC: Debian's ibv_uc_pingpong and perftest, untouched, on 127.0.0.1 and between two namespaces.

On one machine a sender waits for a slow receiver; between two nothing holds it back, and what a
socket has no room for is lost: programs that wait for each message send no more there than fit.
"""

import sys

import e2e
from e2e import Namespaces, Side, perftest

V4 = Side("vb_lo", 0)
V6 = Side("vb_lo", 1)
AT_ONCE = 512 * 1024  # bytes


def pingpong(server, client, host, *options, **limits):
    return e2e.pingpong(server, client, host, *options, kind="uc", **limits)


def one_pair(tap, tag, server, client, host, ipv6=False, here=True):
    run = tap.run
    large = 500 if here else AT_ONCE // 65536
    words = ("-c", "UC", *(["--ipv6"] if ipv6 else []))
    run(f"{tag}_pingpong_1", pingpong, server, client, host, "-s", "1", iterations=50)
    run(f"{tag}_pingpong_65536", pingpong, server, client, host, "-s", "65536", iterations=20)
    run(f"{tag}_pingpong_events", pingpong, server, client, host, "-e", iterations=50)
    for program, size, iterations in (
        ("ib_send_lat", 65536, 20),
        ("ib_write_lat", 2, 50),
        ("ib_send_bw", 2, 200),
        ("ib_send_bw", 65536, large),
        ("ib_write_bw", 65536, 50),
        ("ib_write_bw", 1 << 20, 20),
    ):
        options = {"size": size, "iterations": iterations}
        run(f"{tag}_{program}_{size}", perftest, server, client, host, program, *words, **options)


def lossy(*options):
    """Writes need no answer of the peer: the sender is done, whatever was lost."""
    bad = "drop=5%,dup=2%,reorder=2%:50us"
    sides = [Side("vb_lo", 0, options=["--fault", f"{bad},seed={seed}"]) for seed in (7, 11)]
    words = ("ib_write_bw", "-c", "UC", *options)
    return perftest(*sides, "127.0.0.1", *words, size=65536, iterations=100)


def cases(tap):
    one_pair(tap, "lo_ipv4", V4, V4, "127.0.0.1")
    one_pair(tap, "lo_ipv6", V6, V6, "127.0.0.1", ipv6=True)
    more = {
        "lo_send_lat_inline": ("ib_send_lat", "-I", "64"),
        "lo_send_lat_events": ("ib_send_lat", "-e"),
        "lo_write_lat_inline": ("ib_write_lat", "-I", "64"),
        "lo_send_bw_both_ways": ("ib_send_bw", "-b"),
        "lo_send_bw_2_qps": ("ib_send_bw", "-q", "2"),
        "lo_send_bw_post_list": ("ib_send_bw", "-l", "8"),
        "lo_send_bw_srq": ("ib_send_bw", "--use-srq"),
        "lo_write_bw_both_ways": ("ib_write_bw", "-b"),
        "lo_write_bw_mtu_256": ("ib_write_bw", "-m", "256"),
        "lo_write_bw_4_qps": ("ib_write_bw", "-q", "4"),
    }
    for name, words in more.items():
        tap.run(name, perftest, V4, V4, "127.0.0.1", *words, "-c", "UC", size=64, iterations=200)
    tap.run("lo_write_bw_lossy", lossy)
    tap.run("lo_write_bw_lossy_2_qps", lossy, "-q", "2")
    try:
        with Namespaces(1500) as net:
            host = net.V4[0]
            sides = net.side(0, net.GID_V4), net.side(1, net.GID_V4)
            one_pair(tap, "veth_ipv4", *sides, host, here=False)
    except e2e.Skip as reason:
        tap.say("ok", "veth", f" # SKIP {reason}")


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
