#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's qperf, connected by librdmacm: on RoCE it knows no other way, no UC and UD, and no IPv6.

Each test takes a second: counts that last less than a clock tick of 10 ms are reported as zero.
"""

import re
import sys

import e2e
from e2e import Process, demand, on_nic, wait_until

ADDRESS = "127.0.0.1"
TESTS = (
    "rc_bw",
    "rc_bi_bw",
    "rc_lat",
    "rc_rdma_read_bw",
    "rc_rdma_write_bw",
    "rc_rdma_write_poll_lat",
    "ver_rc_fetch_add",  # looks at what the atomics leave
    "ver_rc_compare_swap",
)


def qperf(port, test):
    words = ["qperf", ADDRESS, "-lp", str(port), "-cm", "1", "-t", "1", test]
    with Process(on_nic(*words)) as client:
        text = client.expect(30)
    found = re.search(r"(?:bw|latency|msg_rate) += +([0-9.,]+) ([A-Za-z/]+)", text)
    demand(found and float(found.group(1).replace(",", "")) > 0, text)
    return f"{found.group(1)} {found.group(2)}"


def end(server, port):
    with Process(on_nic("qperf", ADDRESS, "-lp", str(port), "quit")) as client:
        client.expect(20)
    server.expect(20)


def cases(tap):
    """One server, one client after the other; the server forks for each."""
    e2e.need("qperf")
    port = e2e.free_port()
    with Process(on_nic("qperf", "-lp", str(port))) as server:
        wait_until(lambda: server.listens(port), 15, "the server")
        for test in TESTS:
            tap.run(test, qperf, port, test)
        tap.run("end", end, server, port)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
