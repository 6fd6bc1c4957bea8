#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures `verbena fabric run`: link-hops a second and CPU, and memory a host, at several sizes.

    ./run bench-fabric                     all sizes, 5 rounds
    ./run bench-fabric --only 16 --rounds 3
    ./run bench-fabric --trace             what a trace of everything costs in CPU

Medians, beside the time of a fixed loop (tests/bench/anchor.c) measured in the same rounds, so that
figures of another hour or machine can be compared as ratios. Never a test. What making the fabric
takes is measured apart and taken off.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEAF = "{shape: leaf-spine, hosts: 16, "
# Hosts, topology, workload; what must be reached and what is good, in million link-hops a second
# with the bare source. Half of it with the engine.
SIZES = [
    (16, "{shape: star, hosts: 16}", "{op: incast, to: h15, bytes: 1MiB, rounds: 16}", 3.0, 6.0),
    (64, LEAF + "leaves: 4, spines: 4}", "{op: permutation, bytes: 1MiB, rounds: 8}", 1.5, 3.0),
    (320, LEAF + "leaves: 20, spines: 16}", "{op: permutation, bytes: 1MiB, rounds: 2}", 0.8, 2.0),
    (1024, "{shape: fat-tree, k: 16}", "{op: permutation, bytes: 1MiB}", 0.5, 1.0),
]
IDLE = "limit: 1ns\n"  # made, and hardly begun
TWO = ("{shape: star, hosts: 2}", "{op: flow, from: h0, to: h1}")
HOSTS = {"bare": "{nic: none, cc: dcqcn-paper}", "engine": "{nic: engine}"}


def run(command):
    """stdout and seconds of CPU of a program that must not fail."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        out = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"bench_fabric: exit code {child.returncode} of {' '.join(command)}")
    return out, usage.ru_utime + usage.ru_stime


def simulate(build, folder, topology, workload, hosts, limit="", more=()):
    """Link-hops, seconds of CPU, KiB of memory."""
    path = os.path.join(folder, "scenario.yaml")
    with open(path, "w", encoding="utf-8") as text:
        text.write(f"topology: {topology}\nworkload: [{workload}]\nhosts: {hosts}\n{limit}")
    program = os.path.join(build, "verbena")
    command = [program, "fabric", "run", path, "--no-report", *more]
    out, cpu = run([*command, "--out", os.path.join(folder, "out")])
    hops, memory = re.search(r"(\d+) link-hops, (\d+) KiB", out).groups()
    return int(hops), cpu, int(memory)


def measure(build, folder, size, kind, rounds):
    hosts, topology, workload, must, good = size
    speeds, anchors = [], []
    once = re.sub(", rounds: [0-9]+", "", workload)  # a flow a host
    _, _, nothing = simulate(build, folder, *TWO, HOSTS[kind], IDLE)
    _, _, idle = simulate(build, folder, topology, once, HOSTS[kind], IDLE)
    for _ in range(rounds):
        _, making, _ = simulate(build, folder, topology, workload, HOSTS[kind], IDLE)
        hops, cpu, _ = simulate(build, folder, topology, workload, HOSTS[kind])
        anchors.append(float(run([os.path.join(build, "tests", "bench", "anchor")])[0]))
        speeds.append(hops / max(cpu - making, 1e-3) / 1e6)
    speed, anchor = statistics.median(speeds), statistics.median(anchors)
    share = 1 if kind == "bare" else 2
    verdict = "good" if speed >= good / share else "must" if speed >= must / share else "below"
    row = f"{hosts:5d} {kind:7s} {speed:8.2f} {hops:10d} {(idle - nothing) / hosts:9.1f}"
    print(f"{row} {anchor:10.1f} {speed * anchor:8.1f}  {verdict}", flush=True)


def measure_trace(build, folder, size, kind, rounds):
    """CPU with a trace over CPU without, run in turns; what the trace has for a link-hop."""
    hosts, topology, workload, _, _ = size
    path = os.path.join(folder, "trace")
    ratios = []
    for _ in range(rounds):
        hops, plain, _ = simulate(build, folder, topology, workload, HOSTS[kind])
        more = ("--trace", path, "--trace-mib", "4096")
        _, traced, _ = simulate(build, folder, topology, workload, HOSTS[kind], "", more)
        ratios.append(traced / max(plain, 1e-3))
    per_hop = os.path.getsize(path) / hops
    row = f"{hosts:5d} {kind:7s} {(statistics.median(ratios) - 1) * 100:+7.1f} % CPU"
    print(f"{row} {per_hop:6.1f} bytes a link-hop", flush=True)
    os.unlink(path)


def measure_pair(build, folder, kind):
    """Bytes that a further flow takes before it begins: of engines, two queue pairs and more."""
    few, many = (f"{{op: permutation, bytes: 1MiB, rounds: {n}}}" for n in (2, 66))
    memory = [simulate(build, folder, SIZES[1][1], w, HOSTS[kind], IDLE)[2] for w in (few, many)]
    print(f"an idle flow, {kind}: {(memory[1] - memory[0]) * 1024 / (64 * 64):.0f} bytes")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="build folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", type=int, action="append", help="hosts: 16, 64, 320 or 1024")
    parser.add_argument("--trace", action="store_true", help="what a trace costs, nothing else")
    options = parser.parse_args()
    if not options.trace:
        print("hosts host     Mhops/s  link-hops  KiB/host  anchor ns  product")
    with tempfile.TemporaryDirectory(prefix="verbena-fabric-") as folder:
        for size in SIZES:
            if options.only and size[0] not in options.only:
                continue
            for kind in HOSTS:
                one = measure_trace if options.trace else measure
                if size == SIZES[1] and not options.trace:
                    measure_pair(options.build, folder, kind)
                one(options.build, folder, size, kind, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
