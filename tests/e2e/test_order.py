#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""A program that watches the last byte of a Write never sees it before an earlier byte."""

import sys

import e2e
from e2e import Side, demand


def order(mtu, gid, rounds):
    side = Side("vb_lo", gid)
    options = ("-m", str(mtu), "-n", str(rounds))
    said, told = e2e.own_pair(side, side, "127.0.0.1", "poll_order", *options)
    demand("none seen out of order" in said, said)
    return told.strip()


def cases(tap):
    rounds = 20 if e2e.LONG else 1
    for mtu in (1024, 4096):
        tap.run(f"mtu_{mtu}_ipv4", order, mtu, 0, rounds)
    tap.run("mtu_256_ipv6", order, 256, 1, rounds)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
