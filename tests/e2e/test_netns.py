#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""Between two network namespaces joined by a veth pair: MTU 1500 and 9000, IPv4 and IPv6."""

import re
import sys

import e2e
from e2e import Namespaces, demand, perftest, pingpong

PATH_MTU = {1500: 1024, 9000: 4096}


def devinfo(net, side, mtu):
    command = side.inside + e2e.on_nic("ibv_devinfo", "-v", "-d", side.device)
    status, text, errors = e2e.run(command)
    demand(status == 0, f"exit code {status}: {errors}")
    active = re.search(r"active_mtu:\s+(\d+)", text)
    demand(active and int(active.group(1)) == PATH_MTU[mtu], f"active_mtu of {mtu}:\n{text}")
    gids = dict(re.findall(r"GID\[\s*(\d+)\]:\s+(\S+?),? RoCE v2", text))
    demand(gids.get("0", "").startswith("fe80::"), f"GID 0 is not link-local: {gids}")
    demand(gids.get(str(net.GID_V4)) == "::ffff:" + net.V4[0], f"GID 1: {gids}")
    demand(gids.get(str(net.GID_V6)) == net.V6[0], f"GID 2: {gids}")


def first_device(net):
    """The first device listed is not lo."""
    status, text, errors = e2e.run(net.side(0, 0).inside + e2e.on_nic("ibv_devices"))
    demand(status == 0, f"exit code {status}: {errors}")
    names = re.findall(r"^\s+(vb_\S+)", text, re.MULTILINE)
    demand(names == ["vb_veth0", "vb_lo"], f"devices {names}")


def too_large(server, client, host):
    """A path MTU that the link does not carry is refused, or at least ends in an error."""
    port = e2e.free_port()
    command = ["ibv_rc_pingpong", "-d", server.device, "-g", str(server.gid), "-m", "4096"]
    command += ["-p", str(port), "-n", "5", "-s", "8192"]
    with server.start(command) as first:
        e2e.wait_until(lambda: first.listens(port), 15, "the server")
        with client.start([*command, host]) as second:
            status = second.wait()
            demand(status > 0, f"exit code {status}\n{second.tail()}")


def verify(server, client, host, mtu):
    said, told = e2e.own_pair(server, client, host, "verify_rc", "-m", str(mtu), "-n", "2")
    demand("all right" in said and "all right" in told, said + told)
    return told.strip()


def one_family(tap, net, tag, gid):
    server, client = net.side(0, gid), net.side(1, gid)
    host = net.V4[0]  # perftest and ibv_rc_pingpong meet over IPv4; the packets go by the GID
    mtu = PATH_MTU[net.mtu]
    tap.run(f"{tag}_pingpong", pingpong, server, client, host, "-c", "-m", str(mtu))
    tap.run(f"{tag}_pingpong_events", pingpong, server, client, host, "-c", "-e", iterations=50)
    family = ["--ipv6"] if gid == net.GID_V6 else []
    for program in e2e.PERFTESTS:
        size = 65536 if program.endswith("bw") else 8
        words = (program, *family)
        tap.run(f"{tag}_{program}", perftest, server, client, host, *words, size=size)
    for program in ("ib_atomic_bw", "ib_atomic_lat"):
        tap.run(f"{tag}_{program}", perftest, server, client, host, program, *family)
    tap.run(f"{tag}_verify_rc", verify, server, client, host, mtu)


def cases(tap):
    for mtu in PATH_MTU:
        try:
            with Namespaces(mtu) as net:
                tap.run(f"mtu_{mtu}_first_device", first_device, net)
                tap.run(f"mtu_{mtu}_devinfo", devinfo, net, net.side(0, 0), mtu)
                one_family(tap, net, f"mtu_{mtu}_ipv4", net.GID_V4)
                one_family(tap, net, f"mtu_{mtu}_ipv6", net.GID_V6)
                link_local = net.side(0, 0), net.side(1, 0)
                tap.run(f"mtu_{mtu}_link_local_verify_rc", verify, *link_local, net.V4[0], 1024)
                if mtu == 1500:
                    sides = net.side(0, net.GID_V4), net.side(1, net.GID_V4)
                    tap.run("mtu_1500_path_mtu_4096_is_refused", too_large, *sides, net.V4[0])
        except e2e.Skip as reason:
            tap.say("ok", f"mtu_{mtu}", f" # SKIP {reason}")


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
