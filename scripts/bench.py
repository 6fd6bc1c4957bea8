#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the software NIC against what sockets can do on the same machine at the same moment.

Runs tests/bench in a network namespace of its own, case after case, round after round, and prints
the median of the ratios. Ratios are the figures to compare: the speed of a shared CPU wobbles by
30 % from minute to minute. Never a test. With --against the same is done for a second build, in
turn with the first.
"""
import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOAD_HIGH = 1.5
# Ours, what it is held against, text, and whether more is better.
ROWS = [
    ("write-1m-4096", "raw-blast-4096", "1 MiB writes, MTU 4096 / raw UDP runs"),
    ("write-64k-4096", "raw-blast-4096", "64 KiB writes, MTU 4096 / raw UDP runs"),
    ("write-64k-4096-p", "raw-blast-4096", "  the same, target polls"),
    ("write-1m-1024", "raw-blast-1024", "1 MiB writes, MTU 1024 / raw UDP runs"),
    ("write-64k-1024", "raw-blast-1024", "64 KiB writes, MTU 1024 / raw UDP runs"),
    ("write-64k-1024-p", "raw-blast-1024", "  the same, target polls"),
    ("write-1m-4096", "raw-tcp", "1 MiB writes, MTU 4096 / a TCP stream"),
    ("write-64k-4096", "raw-tcp", "64 KiB writes, MTU 4096 / a TCP stream"),
    ("write-1m-4096", "iperf3", "1 MiB writes, MTU 4096 / iperf3"),
    ("write-64k-4096", "iperf3", "64 KiB writes, MTU 4096 / iperf3"),
    ("raw-blast-4096", "iperf3", "raw UDP runs / iperf3 (what is possible)"),
    ("write-lat", "raw-ping", "8 B write, one way, both poll / UDP ping-pong"),
    ("write-lat", "raw-ping-roce", "  the same / ping-pong with the sockets RoCE needs"),
    ("raw-ping-roce", "raw-ping", "sockets as RoCE needs them / UDP ping-pong"),
    ("write-lat-spin", "raw-ping-blocked", "8 B write, target spins on memory / thread in recv"),
    ("write-rate", "raw-rate", "8 B writes in lists / 40 B packets in runs"),
    ("connect", "raw-connect", "connections made and ended, one by one / TCP"),
    ("connect-32", "raw-connect", "  the same, 32 at a time / TCP, one by one"),
]


def own_namespace():
    """Goes on in a network namespace of our own, with lo up."""
    if os.environ.get("BENCH_INSIDE") != "1":
        os.environ["BENCH_INSIDE"] = "1"
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        me = [sys.executable, os.path.abspath(sys.argv[0])] + sys.argv[1:]
        os.execvp("unshare", ["unshare", "--net", *user, *me])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def ask_for_cpu():
    """Where sessions are scheduled as groups a nice value does nothing, the group's does. Told to
    end it ends by an exception: programs that were started must not go on with all that CPU."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    try:
        os.setsid()
    except OSError:
        pass
    try:
        with open("/proc/self/autogroup", "w", encoding="ascii") as f:
            f.write("-19")
        os.nice(-19)
    except OSError:
        print("note: no right to more of the CPU (not root): other programs show in the figures")


def run_iperf3():
    """Gb/s of iperf3 with its defaults, or None."""
    if shutil.which("iperf3") is None:
        return None
    with subprocess.Popen(["iperf3", "-s", "-1"], stdout=subprocess.DEVNULL) as server:
        out = ""
        for _ in range(20):
            r = subprocess.run(["iperf3", "-c", "127.0.0.1", "-t", "1", "-f", "g"],
                               capture_output=True, text=True, check=False)
            out = r.stdout
            if r.returncode == 0:
                break
        else:
            server.kill()
    found = re.findall(r"([0-9.]+) Gbits/sec.*receiver", out)
    return float(found[-1]) if found else None


def run_case(bench, build, case, seconds):
    """The number that the case prints, or None."""
    if case == "iperf3":
        return run_iperf3()
    env = dict(os.environ, BENCH_SECONDS=str(seconds))
    if not case.startswith("raw"):
        env["LD_PRELOAD"] = ":".join(
            os.path.join(build, name) for name in ("libibverbs.so.1", "librdmacm.so.1"))
    try:
        r = subprocess.run([bench, case], env=env, capture_output=True, text=True,
                           timeout=30 + 10 * seconds, check=False)
    except subprocess.TimeoutExpired:
        print(f"bench: {case}: no end", file=sys.stderr)
        return None
    if r.returncode != 0:
        print(r.stderr.strip(), file=sys.stderr)
        return None
    return float(r.stdout.split()[0])


def load():
    """Load average of the last minute."""
    with open("/proc/loadavg", encoding="ascii") as f:
        return float(f.read().split()[0])


def measure(args, rows):
    """{(build, case): [value a round]}: peers stand under build ''."""
    bench = os.path.join(args.build, "tests/bench/bench")
    builds = [b for b in (args.build, args.against) if b]
    values = {}
    for i in range(args.rounds):
        done = set()
        for ours, peer, _ in rows:
            for build, case in [("", peer)] + [(b, ours) for b in builds]:
                if (build, case) in done:
                    continue
                done.add((build, case))
                v = run_case(bench, build, case, args.seconds)
                values.setdefault((build, case), []).append(v)
        print(f"round {i + 1} of {args.rounds}, load {load():.1f}", file=sys.stderr)
    return values


def ratio(a, b):
    """Median of the rounds' ratios, or None."""
    r = [x / y for x, y in zip(a, b) if x and y]
    return statistics.median(r) if r else None


def show(args, rows, values):
    """The table."""
    builds = [b for b in (args.build, args.against) if b]
    head = "".join(f" {'value':>8} {'ratio':>6}" for _ in builds)
    print(f"{'':<52} {'limit':>8}{head}")
    for ours, peer, text in rows:
        limit = [v for v in values[("", peer)] if v]
        if not limit:
            continue
        line = f"{text:<52} {statistics.median(limit):>8.2f}"
        for b in builds:
            mine = values[(b, ours)]
            r = ratio(mine, values[("", peer)])
            middle = statistics.median(v for v in mine if v) if r else 0
            line += f" {middle:>8.2f} {r:>6.2f}" if r else f" {'-':>8} {'-':>6}"
        print(line)
    print("Values: Gb/s, us (half a round trip), million messages, thousand connections a second.")


def main():
    """Parses, measures, prints."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--build", default=os.path.join(ROOT, "build"), help="build folder to measure")
    p.add_argument("--against", help="a second build folder, measured in turn with the first")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.3, help="of one measurement")
    p.add_argument("--only", default="", help="regular expression: these cases")
    args = p.parse_args()
    own_namespace()
    ask_for_cpu()
    rows = [r for r in ROWS if re.search(args.only, r[0])]
    before = load()
    values = measure(args, rows)
    print(f"load {before:.1f} before, {load():.1f} after; {args.rounds} rounds")
    if before > LOAD_HIGH:
        print(f"WARNING: load above {LOAD_HIGH} at the start: other programs disturb the figures")
    show(args, rows, values)


if __name__ == "__main__":
    main()
