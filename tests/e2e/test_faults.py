#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 480 s
"""A bad network on both sides: the programs still finish, and not a byte is wrong."""

import os
import sys
import tempfile

import e2e
from e2e import Side, demand, perftest, pingpong

HOST = "127.0.0.1"
BAD = "drop=1%,dup=1%,reorder=1%:50us"
# Everything here must finish, but a lost last packet costs a timeout (67 ms) each time.
KINDS = {
    "bad": BAD,
    "loss": "drop=2%",
    "corrupt": "corrupt=1%",
    "reorder": "reorder=5%:100us",
    "dup": "dup=10%",
    "delay": "delay=200us,drop=0.5%",
}


def sides(spec, gid=0):
    """The two sides do not lose the same packets."""
    return [
        Side("vb_lo", gid, options=["--fault", f"{spec},seed={seed}"]) for seed in (7, 11)
    ]


def verify(spec, gid=0, *options):
    said, told = e2e.own_pair(*sides(spec, gid), HOST, "verify_rc", *options, limit_seconds=120)
    demand("all right" in said and "all right" in told, said + told)
    return told.strip()


def order(spec):
    said, told = e2e.own_pair(*sides(spec), HOST, "poll_order", limit_seconds=120)
    demand("none seen out of order" in said and "none seen" in told, said + told)


def by_environment():
    """VERBENA_FAULT without `verbena run --fault` does the same; the counters say so."""
    with tempfile.TemporaryDirectory() as folder:
        counters = os.path.join(folder, "counters")
        env = {"VERBENA_FAULT": "drop=3%,seed=3", "VERBENA_STATS": counters}
        side = Side(env=env)
        e2e.own_pair(side, side, HOST, "verify_rc", "-n", "1")
        with open(counters, encoding="ascii") as written:
            names = {line.split()[0] for line in written}
    demand({"fault_dropped", "retransmitted_packets"} <= names, f"counted: {sorted(names)}")


def pingpong_bad():
    """What comes late or twice, without a loss (e2e.pingpong_loses). Only the server is late: what
    the client sent last is not held back while it leaves.
    """
    late, twice = sides("dup=10%,delay=100us")[0], sides("dup=10%")[1]
    return pingpong(late, twice, HOST, "-c", iterations=500)


def down():
    """The client's link goes away for 300 ms amid two seconds of Writes; retries (8 times 268 ms)
    bear that.
    """
    port = e2e.free_port()
    command = ["ib_write_bw", "-d", "vb_lo", "-x", "0", "-p", str(port), "-F", "-s", "4096"]
    command += ["-D", "2", "-u", "16", "--report_gbits"]
    with tempfile.TemporaryDirectory() as folder:
        env = {"VERBENA_STATS": os.path.join(folder, "counters")}
        client = Side(options=["--fault", "down=1s+300ms"], env=env)
        _, told = e2e.pair(Side(), client, command, [*command, HOST], port, 120)
        with open(env["VERBENA_STATS"], encoding="ascii") as written:
            names = {line.split()[0] for line in written}
    demand({"fault_down", "retransmitted_packets"} <= names, f"counted: {sorted(names)}")
    return e2e.bandwidth_figures(told, 4096, 1)


def cases(tap):
    for name, spec in KINDS.items():
        tap.run(f"verify_rc_{name}", verify, spec)
    tap.run("verify_rc_bad_ipv6", verify, BAD, 1)
    tap.run("verify_rc_bad_mtu_256", verify, BAD, 0, "-m", "256", "-n", "1")
    tap.run("poll_order_bad", order, BAD)
    tap.run("fault_by_environment", by_environment)
    tap.run("link_down_for_300_ms", down)
    tap.run("pingpong_bad", pingpong_bad)
    for program in e2e.PERFTESTS:
        size = 32768 if program.endswith("bw") else 8
        tap.run(f"{program}_bad", perftest, *sides(BAD), HOST, program, size=size, iterations=200)
    for program in ("ib_atomic_bw", "ib_atomic_lat"):
        tap.run(f"{program}_bad", perftest, *sides(BAD), HOST, program, iterations=200)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
