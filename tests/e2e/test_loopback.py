#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""Debian's ibverbs-utils and perftest, untouched, as two processes on 127.0.0.1."""

import re
import sys

import e2e
from e2e import Failed, Side, demand, on_nic, pingpong, perftest

V4 = Side("vb_lo", 0)
V6 = Side("vb_lo", 1)


def devices():
    status, text, errors = e2e.run(on_nic("ibv_devices"))
    demand(status == 0, f"exit code {status}: {errors}")
    names = [words[0] for words in map(str.split, text.splitlines()) if len(words) == 2]
    demand("vb_lo" in names, f"no vb_lo in:\n{text}")
    guids = re.findall(r"^\s+vb_\S+\s+([0-9a-f]{16})\s*$", text, re.MULTILINE)
    demand(guids and "0" * 16 not in guids, f"a GUID is missing or 0:\n{text}")
    demand(len(set(guids)) == len(guids), f"two devices have one GUID:\n{text}")
    demand(names[-1] == "vb_lo", f"lo is not the last:\n{text}")


def devinfo():
    status, text, errors = e2e.run(on_nic("ibv_devinfo", "-v", "-d", "vb_lo"))
    demand(status == 0, f"exit code {status}: {errors}")
    wanted = {
        "state": r"PORT_ACTIVE \(4\)",
        "active_mtu": r"4096 \(5\)",
        "link_layer": "Ethernet",
        "transport": r"InfiniBand \(0\)",
        "phys_port_cnt": "1",
    }
    for key, value in wanted.items():
        demand(re.search(rf"{key}:\s+{value}\s", text), f"{key} is not {value}:\n{text}")
    gids = re.findall(r"GID\[\s*(\d+)\]:\s+(\S+?),? RoCE v2", text)
    demand(("0", "::ffff:127.0.0.1") in gids, f"no 127.0.0.1 in {gids}")
    demand(("1", "::1") in gids, f"no ::1 in {gids}")
    vendor = re.search(r"vendor_id:\s+0x([0-9a-f]+)", text)
    demand(vendor and int(vendor.group(1), 16) & 0x020000, "vendor_id is not locally administered")


def devinfo_unknown():
    status, text, errors = e2e.run(on_nic("ibv_devinfo", "-d", "vb_absent"))
    demand(status != 0 and "vb_absent" in text + errors, f"exit code {status}: {errors}")


def pingpongs(tap):
    run = tap.run
    run("pingpong_ipv4", pingpong, V4, V4, "127.0.0.1", "-c", iterations=1000)
    # It listens on IPv4 only; the packets go over ::1.
    run("pingpong_ipv6", pingpong, V6, V6, "127.0.0.1", "-c", iterations=500)
    run("pingpong_events", pingpong, V4, V4, "127.0.0.1", "-e", "-c", iterations=300)
    run("pingpong_events_ipv6", pingpong, V6, V6, "127.0.0.1", "-e", "-c", iterations=200)
    for size in (1, 255, 1025, 65536, 1 << 20):
        count = 100 if size < 100000 else 20
        options = ("-c", "-s", str(size))
        run(f"pingpong_{size}_bytes", pingpong, V4, V4, "127.0.0.1", *options, iterations=count)
    for mtu in (256, 512, 1024, 2048, 4096):
        options = ("-c", "-m", str(mtu), "-s", "10000")
        run(f"pingpong_mtu_{mtu}", pingpong, V4, V4, "127.0.0.1", *options, iterations=100)


def matrix(tap):
    host = "127.0.0.1"
    for program in e2e.PERFTESTS:
        sizes = (2, 8192) if program.endswith("lat") else (1, 4096, 65536, 1 << 20)
        for size in sizes:
            count = 200 if size <= 65536 else 30
            name = f"{program}_{size}"
            tap.run(name, perftest, V4, V4, host, program, size=size, iterations=count)
    for kind in ("FETCH_AND_ADD", "CMP_AND_SWAP"):
        for program in ("ib_atomic_bw", "ib_atomic_lat"):
            name = f"{program}_{kind.lower()}"
            tap.run(name, perftest, V4, V4, host, program, "-A", kind, iterations=300)
    # Many QPs, both directions, lists, events, inline, one MTU, IPv6 GIDs.
    more = {
        "write_bw_4_qps": ("ib_write_bw", "-q", "4"),
        "write_bw_both_ways": ("ib_write_bw", "-b"),
        "send_bw_both_ways": ("ib_send_bw", "-b"),
        "read_bw_both_ways": ("ib_read_bw", "-b"),
        "send_bw_events": ("ib_send_bw", "-e"),
        "send_lat_events": ("ib_send_lat", "-e"),
        "write_bw_post_list": ("ib_write_bw", "-l", "8"),
        "send_bw_post_lists": ("ib_send_bw", "-l", "8", "--recv_post_list=4"),
        "write_bw_cq_mod_1": ("ib_write_bw", "-Q", "1"),
        "write_bw_mtu_256": ("ib_write_bw", "-m", "256"),
        "read_bw_outstanding_1": ("ib_read_bw", "-o", "1"),
        "send_bw_srq": ("ib_send_bw", "--use-srq"),
        "write_bw_old_post_send": ("ib_write_bw", "--use_old_post_send"),
        "write_bw_mr_per_qp": ("ib_write_bw", "-q", "2", "--mr_per_qp"),
    }
    for name, words in more.items():
        tap.run(name, perftest, V4, V4, host, *words, size=16384, iterations=200)
    tap.run("write_lat_inline", perftest, V4, V4, host, "ib_write_lat", "-I", "64", size=64)
    for program in ("ib_write_bw", "ib_read_lat", "ib_send_bw"):
        tap.run(f"{program}_ipv6", perftest, V6, V6, host, program, "--ipv6", size=8192)


def all_sizes():
    """One run from 2 bytes to 8 MiB."""
    port = e2e.free_port()
    command = ["ib_write_bw", "-d", "vb_lo", "-a", "-n", "20", "-F", "-p", str(port)]
    _, told = e2e.pair(V4, V4, command, [*command, "127.0.0.1"], port)
    sizes = [int(row[0]) for row in e2e.perftest_rows(told, 5)]
    if sizes != [2 << i for i in range(23)]:
        raise Failed(f"sizes {sizes}\n{told}")


def verify(side, host, *options):
    said, told = e2e.own_pair(side, side, host, "verify_rc", *options)
    demand("all right" in said and "all right" in told, said + told)
    return told.strip()


def cases(tap):
    tap.run("ibv_devices", devices)
    tap.run("ibv_devinfo", devinfo)
    tap.run("ibv_devinfo_unknown_device", devinfo_unknown)
    pingpongs(tap)
    matrix(tap)
    tap.run("ib_write_bw_all_sizes", all_sizes)
    tap.run("verify_rc_ipv4", verify, V4, "127.0.0.1")
    tap.run("verify_rc_ipv6_mtu_4096", verify, V6, "::1", "-m", "4096")
    tap.run("verify_rc_mtu_256", verify, V4, "127.0.0.1", "-m", "256")


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
