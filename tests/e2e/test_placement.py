#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""FLUSH and ATOMIC WRITE between two processes: a log in the other's memory, over a good network and
a bad one."""

import sys

import e2e
from e2e import Side, demand

BAD = "drop=1%,dup=3%,reorder=2%:200us"


def log(mtu, gid, rounds, fault=None):
    sides = []
    for seed in (7, 11):
        options = ["--fault", f"{fault},seed={seed}"] if fault else []
        sides.append(Side("vb_lo", gid, options=options))
    options = ("-m", str(mtu), "-n", str(rounds), *(("-o", "lossy") if fault else ()))
    said, told = e2e.own_pair(*sides, "127.0.0.1", "remote_log", *options, limit_seconds=100)
    demand("all whole when told" in said and "all whole" in told, said + told)
    return told.strip()


def cases(tap):
    rounds = 200 if e2e.LONG else 10
    tap.run("mtu_1024_ipv4", log, 1024, 0, rounds)
    tap.run("mtu_4096_ipv6", log, 4096, 1, rounds)
    tap.run("mtu_1024_faults", log, 1024, 0, rounds, BAD)
    tap.run("mtu_256_ipv6_faults", log, 256, 1, rounds // 2, BAD)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
