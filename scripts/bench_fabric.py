#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures `verbena fabric run`: link-hops a second of CPU, memory a host, what a trace costs.

    ./run bench-fabric                     all that docs/performance.md has; medians of 5 rounds
    ./run bench-fabric --only 16 --rounds 3
    ./run bench-fabric --trace             what a trace costs in CPU, nothing else
    ./run bench-fabric --docs              and puts the tables into docs/performance.md

Medians, beside the time of a fixed loop (tests/bench/anchor.c) measured in the same rounds, so that
figures of another hour or machine can be compared as products. Kinds of hosts take turns within a
round. Never a test. What making the fabric takes is measured apart and taken off. Output is
Markdown, as the tables of docs/performance.md.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEAF = "{shape: leaf-spine, hosts: 16, "
# Hosts, topology, workload; what must be reached and what is good, in million link-hops a second
# with the bare source. Half of it with the engine. 320 hosts are wanted, or 432: no fat tree has
# 320, that of k 12 has 432.
SIZES = [
    (16, "{shape: star, hosts: 16}", "{op: incast, to: h15, bytes: 1MiB, rounds: 64}", 3.0, 6.0),
    (64, LEAF + "leaves: 4, spines: 4}", "{op: permutation, bytes: 1MiB, rounds: 8}", 1.5, 3.0),
    (432, "{shape: fat-tree, k: 12}", "{op: permutation, bytes: 1MiB, rounds: 2}", 0.8, 2.0),
    (1024, "{shape: fat-tree, k: 16}", "{op: permutation, bytes: 1MiB}", 0.5, 1.0),
]
IDLE = "limit: 1ns\n"  # made, and hardly begun
TWO = ("{shape: star, hosts: 2}", "{op: flow, from: h0, to: h1}")
HOSTS = {
    "bare, DCQCN": "{nic: none, cc: dcqcn-paper}",
    "engine": "{nic: engine}",
    "engine, DCQCN": "{nic: engine, cc: dcqcn-paper}",
}
TRACED = (16, 64, 432)  # hosts; a trace of more is large
# What of the whole is traced: all, or a little, at what looking for it costs.
FILTERS = {"all": (), "`node=h1`": ("--trace-filter", "node=h1")}
PAGE = os.path.join(ROOT, "docs", "performance.md")
MARKS = ("<!-- bench-fabric: begin -->\n", "<!-- bench-fabric: end -->\n")
said = []  # all that went to stdout


def say(line):
    print(line, flush=True)
    said.append(line)


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


def memory_kib(build, folder, topology, workload, kind, rounds):
    """Of a fabric that has been made, with a flow for each host."""
    once = re.sub(", rounds: [0-9]+", "", workload)
    runs = [simulate(build, folder, topology, once, HOSTS[kind], IDLE) for _ in range(rounds)]
    return statistics.median(memory for _, _, memory in runs)


def measure(build, folder, size, rounds):
    hosts, topology, workload, must, good = size
    speeds, hops, anchors = {kind: [] for kind in HOSTS}, {}, []
    for _ in range(rounds):
        anchors.append(float(run([os.path.join(build, "tests", "bench", "anchor")])[0]))
        for kind, text in HOSTS.items():
            _, making, _ = simulate(build, folder, topology, workload, text, IDLE)
            hops[kind], cpu, _ = simulate(build, folder, topology, workload, text)
            speeds[kind].append(hops[kind] / max(cpu - making, 1e-3) / 1e6)
    anchor = statistics.median(anchors)
    for kind, values in speeds.items():
        speed, share = statistics.median(values), 2 if kind.startswith("engine") else 1
        verdict = "good" if speed >= good / share else "must" if speed >= must / share else "below"
        nothing = memory_kib(build, folder, *TWO, kind, rounds)
        kib = (memory_kib(build, folder, topology, workload, kind, rounds) - nothing) / hosts
        row = f"| {hosts} | {kind} | {speed:.1f} | {must / share:g}, {good / share:g} | {verdict} |"
        say(f"{row} {kib:.0f} | {hops[kind]} | {anchor:.0f} | {speed * anchor:.0f} |")


def measure_trace(build, folder, size, rounds):
    """CPU with a trace over CPU without, run in turns; what the trace has for a link-hop."""
    hosts, topology, workload, _, _ = size
    path = os.path.join(folder, "trace")
    for kind, text in HOSTS.items():
        ratios, per_hop = {name: [] for name in FILTERS}, {}
        for _ in range(rounds):
            hops, plain, _ = simulate(build, folder, topology, workload, text)
            for name, words in FILTERS.items():
                more = ("--trace", path, "--trace-mib", "4096", *words)
                _, traced, _ = simulate(build, folder, topology, workload, text, "", more)
                ratios[name].append(traced / max(plain, 1e-3))
                per_hop[name] = os.path.getsize(path) / hops
                os.unlink(path)  # else the next run pays for giving it back
        for name, values in ratios.items():
            more = (statistics.median(values) - 1) * 100
            say(f"| {hosts} | {kind} | {name} | {more:+.0f} % | {per_hop[name]:.1f} |")


def measure_pairs(build, folder):
    """Bytes that a further flow takes before it begins: of engines, two queue pairs and more."""
    few, many = (f"{{op: permutation, bytes: 1MiB, rounds: {n}}}" for n in (2, 66))
    for kind, text in HOSTS.items():
        memory = [simulate(build, folder, SIZES[1][1], w, text, IDLE)[2] for w in (few, many)]
        say(f"| {kind} | {(memory[1] - memory[0]) * 1024 / (64 * 64):.0f} |")


def table(*columns):
    say("\n| " + " | ".join(columns) + " |")
    say("|---" * len(columns) + "|")


def document():
    """Between the marks of the page."""
    with open(PAGE, encoding="utf-8") as page:
        before, _, rest = page.read().partition(MARKS[0])
    _, mark, after = rest.partition(MARKS[1])
    if not mark:
        sys.exit(f"bench_fabric: {PAGE} lacks {MARKS[0].strip()} or {MARKS[1].strip()}")
    with open(PAGE, "w", encoding="utf-8") as page:
        page.write(before + MARKS[0] + "\n".join(said) + "\n" + MARKS[1] + after)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="build folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", type=int, action="append", help="hosts: 16, 64, 432 or 1024")
    parser.add_argument("--trace", action="store_true", help="what a trace costs, nothing else")
    parser.add_argument("--docs", action="store_true", help="tables go into docs/performance.md")
    options = parser.parse_args()
    if options.docs and (options.only or options.trace):
        parser.error("--docs wants all of it: no --only, no --trace")
    begun, load = time.monotonic(), os.getloadavg()[0]
    head = f"Medians of {options.rounds} rounds, {os.cpu_count()} CPUs, load {load:.1f} before"
    sizes = [size for size in SIZES if not options.only or size[0] in options.only]
    with tempfile.TemporaryDirectory(prefix="verbena-fabric-") as folder:
        if not options.trace:
            speed = ("million link-hops/s", "must, good", "is", "KiB a host")
            table("hosts", "host", *speed, "link-hops", "anchor ns", "product")
            for size in sizes:
                measure(options.build, folder, size, options.rounds)
            table("host", "bytes of an idle flow")
            measure_pairs(options.build, folder)
        table("hosts", "host", "traced", "CPU", "bytes a link-hop")
        for size in sizes:
            if size[0] in TRACED:
                measure_trace(options.build, folder, size, options.rounds)
    load = os.getloadavg()[0]
    say(f"\n{head}, {load:.1f} after; {time.monotonic() - begun:.0f} s.")
    if options.docs:
        document()
    return 0


if __name__ == "__main__":
    sys.exit(main())
