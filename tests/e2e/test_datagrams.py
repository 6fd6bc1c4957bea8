#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""UD: Debian's ibv_ud_pingpong and perftest, untouched, on 127.0.0.1 and between two namespaces."""

import re
import sys

import e2e
from e2e import Namespaces, Side, demand, perftest

V4 = Side("vb_lo", 0)
V6 = Side("vb_lo", 1)


def pingpong(server, client, host, *options, **limits):
    return e2e.pingpong(server, client, host, "-c", *options, kind="ud", **limits)


def too_long(side, host):
    """Longer than a packet: the program is told, by the port's MTU or by a completion."""
    port = e2e.free_port()
    command = ["ibv_ud_pingpong", "-d", side.device, "-g", str(side.gid), "-p", str(port)]
    command += ["-n", "5", "-s", "8192"]
    status, text, errors = e2e.run(e2e.on_nic(*command))
    demand(status > 0, f"exit code {status}")
    demand(re.search(r"larger than port MTU", text + errors), text + errors)
    return host


def one_pair(tap, tag, server, client, host, mtu, ipv6=False):
    run = tap.run
    family = ["--ipv6"] if ipv6 else []
    words = ("-c", "UD", *family)
    for size in (1, mtu - 3, mtu):
        options = ("-s", str(size))
        run(f"{tag}_pingpong_{size}_bytes", pingpong, server, client, host, *options)
    run(f"{tag}_pingpong_events", pingpong, server, client, host, "-e", "-s", "64", iterations=100)
    for program in ("ib_send_bw", "ib_send_lat"):
        for size in (2, mtu):
            name = f"{tag}_{program}_{size}"
            run(name, perftest, server, client, host, program, *words, size=size, iterations=500)


def cases(tap):
    one_pair(tap, "lo_ipv4", V4, V4, "127.0.0.1", 4096)
    one_pair(tap, "lo_ipv6", V6, V6, "127.0.0.1", 4096, ipv6=True)
    tap.run("lo_longer_than_a_packet", too_long, V4, "127.0.0.1")
    more = {
        "lo_send_lat_inline": ("ib_send_lat", "-I", "64"),
        "lo_send_lat_events": ("ib_send_lat", "-e"),
        "lo_send_bw_both_ways": ("ib_send_bw", "-b"),
        "lo_send_bw_2_qps": ("ib_send_bw", "-q", "2"),
        "lo_send_bw_post_list": ("ib_send_bw", "-l", "8"),
        "lo_send_bw_srq": ("ib_send_bw", "--use-srq"),
    }
    for name, words in more.items():
        options = (*words, "-c", "UD")
        tap.run(name, perftest, V4, V4, "127.0.0.1", *options, size=64, iterations=200)
    try:
        with Namespaces(1500) as net:
            host = net.V4[0]
            sides = net.side(0, net.GID_V4), net.side(1, net.GID_V4)
            one_pair(tap, "veth_ipv4", *sides, host, 1024)
            sides = net.side(0, net.GID_V6), net.side(1, net.GID_V6)
            one_pair(tap, "veth_ipv6", *sides, host, 1024, ipv6=True)
            # perftest's own group never leaves an interface.
            group = ["-g", "--ipv6", "-M", "255:14:0:0:0:0:0:0:0:0:0:0:0:0:1:9"]
            words = ("ib_send_bw", "-c", "UD", *group)
            tap.run("veth_group", perftest, *sides, host, *words, size=64, iterations=100)
            sides = net.side(0, 0), net.side(1, 0)
            tap.run("veth_link_local_pingpong", pingpong, *sides, host, "-s", "1024")
    except e2e.Skip as reason:
        tap.say("ok", "veth", f" # SKIP {reason}")


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
