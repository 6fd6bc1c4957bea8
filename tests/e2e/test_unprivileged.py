#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""As user nobody with `ulimit -l 64`; several program pairs on one address at once."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import e2e
from e2e import PublicCopy, Side, demand, perftest, pingpong

HOST = "127.0.0.1"
GIB = 1 << 30


def limits(side):
    """The rest proves nothing unless this is what it runs with."""
    status, text, _ = e2e.run([*side.inside, "sh", "-c", "ulimit -l; id -u"])
    demand(status == 0 and text.split() == ["64", "65534"], f"limits are {text}")


def verify(side, folder, *options):
    port = e2e.free_port()
    command = [os.path.join(folder, "verify_rc"), "-d", "vb_lo", "-p", str(port), *options]
    said, told = e2e.pair(side, side, command, [*command, HOST], port)
    demand("all right" in said and "all right" in told, said + told)


def case_106(side, folder):
    """ucx#6264: 1 GiB registers at `ulimit -l 64` as nobody, and its end can be used."""
    verify(side, folder, "-s", str(GIB), "-n", "1")


def at_once(sides):
    """A pair each of Sends, Writes and Reads, all at the same time."""
    jobs = (
        ("ib_send_bw", 4096, 2000),
        ("ib_write_bw", 65536, 500),
        ("ib_read_bw", 16384, 500),
    )
    with ThreadPoolExecutor(len(jobs)) as pool:
        futures = [
            pool.submit(
                perftest, s, s, HOST, program, "-l", "2", size=size, iterations=count,
                limit_seconds=120,
            )
            for s, (program, size, count) in zip(sides, jobs)
        ]
        return "; ".join(f.result() for f in futures)


def another_user(side):
    """A device of an address whose port another user holds: the message names the holder."""
    port = e2e.free_port()
    command = ["ibv_rc_pingpong", "-d", "vb_lo", "-g", "0", "-p", str(port)]
    with Side().start(command) as holder:
        e2e.wait_until(lambda: holder.listens(port), 15, "root's server")
        line = side.inside + e2e.on_nic("ibv_devinfo", "-d", "vb_lo", tool=side.tool)
        status, text, errors = e2e.run(line)
        demand(status != 0, f"opened all the same:\n{text}")
        demand("4791" in errors and "root" in errors, f"message does not name root:\n{errors}")


def cases(tap):
    try:
        words = e2e.unprivileged()
    except e2e.Skip as reason:
        words = None
        tap.say("ok", "nobody", f" # SKIP {reason}")
    tap.run("three_pairs_at_once", at_once, [Side()] * 3)
    if words is None:
        return
    with PublicCopy() as public:
        side = Side(inside=words, tool=public.tool)
        v6 = Side(gid=1, inside=words, tool=public.tool)
        tap.run("limits", limits, side)
        tap.run("pingpong", pingpong, side, side, HOST, "-c")
        tap.run("pingpong_events_ipv6", pingpong, v6, v6, HOST, "-c", "-e")
        for program in e2e.PERFTESTS:
            size = 65536 if program.endswith("bw") else 8
            tap.run(program, perftest, side, side, HOST, program, size=size)
        for program in ("ib_atomic_bw", "ib_atomic_lat"):
            tap.run(program, perftest, side, side, HOST, program)
        tap.run("verify_rc", verify, side, public.folder)
        tap.run("case_106_registers_1_gib", case_106, side, public.folder)
        tap.run("nobody_three_pairs_at_once", at_once, [side, v6, side])
        tap.run("port_of_another_user", another_user, side)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
