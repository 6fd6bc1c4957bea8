#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the same operations with `verbena lab experiment bare` and with perftest, in turn, and
prints the medians and their ratio: what the lab says ought to be what others say.

Both run on the software NIC, as two processes on 127.0.0.1, the source with all its threads on one
CPU and the target on another: which thread shares a CPU with which makes a stream of small
messages several times slower or faster. perftest is told the settings and the number of messages
that the lab had, and has to say that it has them: otherwise this ends with what differs. Ratios
are medians of the rounds' ratios, with the interval in which their true median lies (90 % and
more); the two agree where 1 is in it. Beside each median is how far apart the middle half of the
rounds is. Never a test.
"""
import argparse
import json
import math
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import bench

DEVICE, GID = "vb_lo", "0"
LIMIT_SECONDS = 30
# The lab's variant, its bytes, perftest's program. perftest's latency of Writes and Sends is half
# of a round, as the lab's is. It inlines nothing on a device that it does not know, and the lab
# what has 64 bytes or less: so 128.
ROWS = [
    ("write latency", 128, "ib_write_lat"),
    ("send latency", 128, "ib_send_lat"),
    ("read latency", 128, "ib_read_lat"),
    ("atomic latency", 8, "ib_atomic_lat"),
    ("write latency", 4096, "ib_write_lat"),
    ("send latency", 4096, "ib_send_lat"),
    ("read latency", 4096, "ib_read_lat"),
    ("write throughput", 4096, "ib_write_bw"),
    ("read throughput", 4096, "ib_read_bw"),
    ("send throughput", 4096, "ib_send_bw"),
    ("write throughput", 65536, "ib_write_bw"),
    ("read throughput", 65536, "ib_read_bw"),
    ("send throughput", 65536, "ib_send_bw"),
]
# Sizes of one run of the lab; perftest follows at once.
RUNS = [(8, 128), (4096,), (65536,)]
# The lab's name, perftest's option and what it prints, and which programs have it.
SETTINGS = [
    ("rounds", "-n", "#iterations", "."),
    ("size", "-s", "#bytes", "write|read|send"),
    ("mtu_bytes", "-m", "Mtu", "."),
    ("depth", "-t", "TX depth", "."),
    ("signal_every", "-Q", "CQ Moderation", "_bw"),
    ("outstanding_reads", "-o", "Outstand reads", "read|atomic"),
    ("receives", "-r", "RX depth", "send"),
    ("inline_bytes", "-I", "Max inline data", "write|send"),
]


class Fault(Exception):
    """What was to be measured was not; the text says what."""


def listening(port):
    with open("/proc/net/tcp", encoding="ascii") as file:
        return any(re.match(rf"\s*\d+: \w+:{port:04X} \w+:\w+ 0A", line) for line in file)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def places():
    """The CPUs of source and target; the same where there is only one."""
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[0], cpus[-1]


def pair(source, target, port):
    """What both print, when the target listened at the port and both have ended well."""
    source_cpu, target_cpu = (["taskset", "--cpu-list", str(cpu)] for cpu in places())
    command = [*target_cpu, *target]
    with tempfile.TemporaryFile("w+") as said, \
            subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT) as process:
        try:
            deadline = time.monotonic() + LIMIT_SECONDS
            while not listening(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise Fault(f"{' '.join(command)}: does not listen")
                time.sleep(0.01)
            command = [*source_cpu, *source]
            run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS,
                                 check=False)
            status = process.wait(LIMIT_SECONDS) if run.returncode == 0 else 0
        except subprocess.TimeoutExpired as e:
            raise Fault(f"{' '.join(command)}: not done after {LIMIT_SECONDS} s") from e
        finally:
            process.kill()
        said.seek(0)
        theirs = said.read()
    if run.returncode != 0 or status != 0:
        failed = f"{' '.join(command)}: exit code {run.returncode}, the target's {status}"
        raise Fault(f"{failed}\n{run.stdout}{run.stderr}{theirs}")
    return run.stdout, theirs


def words_for(program, trial):
    """The options by which perftest has the settings of the lab's trial."""
    words = []
    for name, option, _, programs in SETTINGS:
        latency = program.endswith("_lat") and option == "-t"  # always 1, and no option
        if re.search(programs, program) and not latency:
            words += [option, str(trial[name])]
    return words


def read_printed(text):
    """{name: value} of what perftest says of its settings, and the fields of its last result."""
    printed, result = {}, []
    for line in text.splitlines():
        for name, value in re.findall(r"(\w[\w ]*?)\s*: (\d+)(?:\[B\])?(?=\s|$)", line):
            printed[name] = int(value)
        fields = line.split()
        if len(fields) in (5, 9) and fields[0].isdigit():
            result = fields
            printed["#bytes"], printed["#iterations"] = int(fields[0]), int(fields[1])
    return printed, result


def differences(program, trial, printed):
    """Settings that perftest did not say to be the lab's, in words."""
    found = []
    for name, _, words, programs in SETTINGS:
        if re.search(programs, program) and printed.get(words) != trial[name]:
            theirs = printed.get(words, "nothing")
            found.append(f"{name} is {trial[name]} in the lab, '{words}' of {program} {theirs}")
    return found


def perftest(verbena, program, trial):
    """Its figure: us of the median, or Gbit/s on average."""
    port = free_port()
    command = [verbena, "run", "--", program, "-d", DEVICE, "-x", GID, "-F", "-p", str(port),
               *words_for(program, trial)]
    if program.endswith("_bw"):
        # Else it notes two times for each message in memory that it touches for the first time.
        command += ["--report_gbits", "--noPeak"]
    source, target = pair([*command, "127.0.0.1"], command, port)
    printed, result = read_printed(target + source)
    if not result:
        raise Fault(f"{' '.join(command)}: no result\n{source}")
    different = differences(program, trial, printed)
    if different:
        raise Fault(f"{' '.join(command)}: not what the lab did: {'; '.join(different)}")
    return float(result[4 if program.endswith("_lat") else 3])


def lab(verbena, iterations, key, sizes):
    """{(variant, bytes): trial} of one run."""
    port = free_port()
    both = [verbena, "lab", "--nic", "verbena"]
    own = ["--key", key, "--port", str(port)]
    source, _ = pair([*both, "experiment", "bare", "--peer", "127.0.0.1", *own, "--size",
                      ",".join(map(str, sizes)), "--iterations", str(iterations), "--json", "-"],
                     [*both, "serve", "--listen", "127.0.0.1", *own], port)
    (experiment,) = json.loads(source)["experiments"]
    return {(t["variant"], t["size"]): t for t in experiment["trials"]}


def figure(trial):
    return trial["gbps"] if "gbps" in trial else trial["latency"]["p50_ns"] / 1000


def spread(values):
    """How far apart the middle half is, as a share of the median."""
    if len(values) == 1:
        return 0
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / median


def interval(ratios):
    """Where the true median lies, at 90 % or more, by order statistics; None of too few."""
    ordered, left = sorted(ratios), None
    for index in range(len(ordered) // 2):
        outside = 2 * sum(math.comb(len(ordered), k) for k in range(index + 1))
        if outside <= 0.1 * 2 ** len(ordered):
            left = index
    return None if left is None else (ordered[left], ordered[-1 - left])


def measure(args, key):
    """{row: [(figure of the lab, figure of perftest), of each round]}

    The lab goes before perftest and after it, and counts with the mean: what gets slower meanwhile
    is nobody's advantage.
    """
    figures = {row: [] for row in ROWS}
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)
        for sizes in RUNS:
            before = lab(args.verbena, args.iterations, key, sizes)
            rows = [row for row in ROWS if row[1] in sizes]
            theirs = [perftest(args.verbena, program, before[variant, size])
                      for variant, size, program in rows]
            after = lab(args.verbena, args.iterations, key, sizes)
            for row, their in zip(rows, theirs):
                both = [figure(trials[row[:2]]) for trials in (before, after)]
                figures[row].append((statistics.mean(both), their))
    return figures


def agreement(ratios):
    """Of the two, in words: noise if both signs of their difference are in the interval."""
    found = interval(ratios)
    if found is None:
        return "too few rounds"
    low, high = found
    return f"{low:.2f} to {high:.2f}  {'yes' if low <= 1 <= high else 'no'}"


def show(figures):
    columns = f"{'lab':>9} {'spread':>7} {'perftest':>9} {'spread':>7} {'ratio':>6}"
    print(f"{'':18} {'bytes':>6} {'unit':>7} {columns}  {'its interval':12}  agree")
    for (variant, size, _), rounds in figures.items():
        text = " ".join(f"{statistics.median(values):9.2f} {spread(values):7.0%}"
                        for values in zip(*rounds))
        ratios = [ours / theirs for ours, theirs in rounds]
        unit = "us" if "latency" in variant else "Gbit/s"
        ratio = f"{statistics.median(ratios):6.2f}  {agreement(ratios)}"
        print(f"{variant:18} {size:6} {unit:>7} {text} {ratio}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--verbena", default=os.path.join(bench.ROOT, "build", "verbena"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--iterations", type=int, default=100000,
                        help="of each operation, or as many as the lab does in half a second")
    args = parser.parse_args()
    bench.own_namespace()
    bench.ask_for_cpu()
    if len(set(places())) == 1:
        print("note: one CPU for source and target: nothing but turns of theirs are measured")
    with tempfile.TemporaryDirectory() as folder:
        key = os.path.join(folder, "key")
        try:
            subprocess.run([args.verbena, "lab", "key", key], check=True, timeout=LIMIT_SECONDS)
            figures = measure(args, key)
        except (Fault, subprocess.SubprocessError) as e:
            sys.exit(f"bench_lab: {e}")
    show(figures)


if __name__ == "__main__":
    main()
