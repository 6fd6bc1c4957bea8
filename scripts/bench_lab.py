#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the same operations with `verbena lab experiment bare` and with perftest, in turn, and
prints the medians and their ratio: what the lab says ought to be what others say.

Both run on the software NIC, as two processes on 127.0.0.1. Ratios near 1 agree. Single rounds tell
little: which thread gets which CPU makes a latency double. So there is a ratio of the medians, and
one of the best rounds, which other programs of the machine disturbed least. Never a test.
"""
import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time

import bench

DEVICE, GID = "vb_lo", "0"
LIMIT_SECONDS = 60
COMMON = ["-d", DEVICE, "-x", GID, "-F"]
# The lab's variant, its bytes, perftest's words. perftest's latency of Writes and Sends is half of
# a round, as the lab's is.
ROWS = [
    ("write latency", 8, ["ib_write_lat", "-s", "8"]),
    ("send latency", 8, ["ib_send_lat", "-s", "8"]),
    ("read latency", 8, ["ib_read_lat", "-s", "8"]),
    ("atomic latency", 8, ["ib_atomic_lat"]),
    ("write latency", 4096, ["ib_write_lat", "-s", "4096"]),
    ("send latency", 4096, ["ib_send_lat", "-s", "4096"]),
    ("read latency", 4096, ["ib_read_lat", "-s", "4096"]),
    ("write throughput", 4096, ["ib_write_bw", "-s", "4096"]),
    ("read throughput", 4096, ["ib_read_bw", "-s", "4096"]),
    ("send throughput", 4096, ["ib_send_bw", "-s", "4096"]),
    ("write throughput", 65536, ["ib_write_bw", "-s", "65536"]),
    ("read throughput", 65536, ["ib_read_bw", "-s", "65536"]),
    ("send throughput", 65536, ["ib_send_bw", "-s", "65536"]),
]
UNDER_WAY = 64  # as the lab has them


def listening(port):
    with open("/proc/net/tcp", encoding="ascii") as file:
        return any(re.match(rf"\s*\d+: \w+:{port:04X} \w+:\w+ 0A", line) for line in file)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def perftest(verbena, words, iterations):
    """Its figure: us of the median, or Gbit/s on average."""
    latency = words[0].endswith("_lat")
    words = [*words, *COMMON, "-n", str(iterations), "-p", str(free_port())]
    words += [] if latency else ["-t", str(UNDER_WAY), "--report_gbits"]
    command = [verbena, "run", "--", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + LIMIT_SECONDS
            while not listening(int(words[words.index("-p") + 1])):
                if server.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{' '.join(words)}: does not listen")
                time.sleep(0.01)
            client = subprocess.run([*command, "127.0.0.1"], capture_output=True, text=True,
                                    timeout=LIMIT_SECONDS, check=False)
            server.wait(LIMIT_SECONDS)
        finally:
            server.kill()
    fields = 9 if latency else 5
    found = [line.split() for line in client.stdout.splitlines()]
    found = [f for f in found if len(f) == fields and f[0].isdigit()]
    if client.returncode != 0 or not found:
        failed = f"{' '.join(words)}: exit code {client.returncode}"
        sys.exit(f"{failed}\n{client.stdout}{client.stderr}")
    return float(found[-1][4 if latency else 3])


def lab(verbena, iterations):
    """{(variant, bytes): figure} of one run."""
    command = [verbena, "lab", "--nic", "verbena", "experiment", "bare", "--size", "8,4KiB,64KiB",
               "--iterations", str(iterations), "--json", "-"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS,
                         check=False)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {run.returncode}\n{run.stderr}")
    (experiment,) = json.loads(run.stdout)["experiments"]
    return {
        (t["variant"], t["size"]): t["gbps"] if "gbps" in t else t["latency"]["p50_ns"] / 1000
        for t in experiment["trials"]
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--verbena", default=os.path.join(bench.ROOT, "build", "verbena"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=5000)
    args = parser.parse_args()
    bench.own_namespace()
    bench.ask_for_cpu()
    ours, theirs = {row[:2]: [] for row in ROWS}, {row[:2]: [] for row in ROWS}
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)
        found = lab(args.verbena, args.iterations)
        for variant, size, words in ROWS:
            ours[variant, size].append(found[variant, size])
            theirs[variant, size].append(perftest(args.verbena, words, args.iterations))
    print(f"{'':18} {'':6} {'':7} {'medians':>19} {'':6} {'best rounds':>19}")
    columns = f"{'lab':>9} {'perftest':>9} {'ratio':>6}"
    print(f"{'':18} {'bytes':>6} {'unit':>7} {columns} {columns}")
    for variant, size, _ in ROWS:
        a, b = ours[variant, size], theirs[variant, size]
        unit, best = ("us", min) if "latency" in variant else ("Gbit/s", max)
        figures = [(of(a), of(b)) for of in (statistics.median, best)]
        text = " ".join(f"{x:9.2f} {y:9.2f} {x / y:6.2f}" for x, y in figures)
        print(f"{variant:18} {size:6} {unit:>7} {text}")


if __name__ == "__main__":
    main()
