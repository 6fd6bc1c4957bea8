#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs very many test worlds (tests/world), several processes at a time, with optimized code.

    ./run worlds --seeds 1000000
    ./run worlds --seeds 1000000 --state worlds.json    goes on where it was interrupted
    ./run worlds --from 0x5000 --seeds 2000 --jobs 1

At the end: what was done, faults by kind, completions by status, failures by class and every seed
that failed. Exit code 0: none did. `test_world --seed S` then shrinks one (docs/testing.md).
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import tree
from tree import ROOT

BUILD = os.path.join(ROOT, "build", "worlds")
PROGRAM = os.path.join(BUILD, "tests/world/test_world")
QUIET = {"stdout": subprocess.DEVNULL, "check": True, "cwd": ROOT}
CHUNK = 2000  # seeds of one process
CHUNK_LIMIT_SECONDS = 1800
CLASSES = ("wrong", "lost", "stuck", "crash")
STATUS = {0: "success", 1: "local length", 2: "local QP operation", 4: "local protection"}
STATUS |= {5: "flushed", 9: "remote invalid request", 10: "remote access", 11: "remote operation"}
STATUS |= {12: "retries exhausted", 13: "RNR retries exhausted"}


def configure():
    """The -O2 build with assertions. Raises CalledProcessError."""
    options = ["-Dtests=enabled", "-Dman=disabled", "-Dbuildtype=debugoptimized"]
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        subprocess.run(["meson", "setup", BUILD, *options], **QUIET)


def build(jobs, programs=(PROGRAM,)):
    """Programs of that build; the first one's path. Raises CalledProcessError."""
    configure()
    targets = [os.path.relpath(program, BUILD) for program in programs]
    subprocess.run(["ninja", "-C", BUILD, "-j", str(jobs), *targets], **QUIET)
    return programs[0]


class Sums:
    """What all finished chunks did."""

    def __init__(self, data=None):
        self.data = data or {"seeds": 0, "failures": [], "fault_kinds": {}, "completions": {}}

    def add(self, report):
        for key, value in report.items():
            if isinstance(value, dict):
                sums = self.data.setdefault(key, {})
                for name, n in value.items():
                    sums[name] = sums.get(name, 0) + n
            elif isinstance(value, list):
                self.data.setdefault(key, []).extend(value)
            else:
                self.data[key] = self.data.get(key, 0) + value


class State:
    """Which seeds are done, in a file if one is given: an interrupted run goes on from it."""

    def __init__(self, path, program, first, seeds):
        with open(program, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        self.path = path
        self.lock = threading.Lock()
        self.done = []
        self.sums = Sums()
        saved = None
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                saved = json.load(file)
            first = saved["head"]["first"] if first is None else first
        first = tree.fresh_seed() if first is None else first
        self.head = {"first": first, "seeds": seeds, "program": digest}
        if saved:
            if saved["head"] != self.head:
                raise SystemExit(f"worlds.py: {path} is of other seeds or another build; remove it")
            self.done = saved["done"]
            self.sums = Sums(saved["sums"])

    def left(self):
        """Pieces [first, end) that are not done."""
        at, end = self.head["first"], self.head["first"] + self.head["seeds"]
        for first, last in sorted(self.done) + [[end, end]]:
            while at < first:
                yield at, min(at + CHUNK, first)
                at = min(at + CHUNK, first)
            at = max(at, last)

    def finish(self, first, end, report):
        with self.lock:
            self.done.append([first, end])
            self.done = merged(self.done)
            self.sums.add(report)
            self.save()

    def save(self):
        if not self.path:
            return
        text = {"head": self.head, "done": self.done, "sums": self.sums.data}
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(text, file)
        os.replace(self.path + ".new", self.path)


def merged(pieces):
    out = []
    for first, end in sorted(pieces):
        if out and out[-1][1] == first:
            out[-1][1] = end
        else:
            out.append([first, end])
    return out


class Interrupted(Exception):
    pass


class Runner:
    def __init__(self, program, state):
        self.program = program
        self.state = state
        self.stop = False
        self.running = set()

    def once(self, first, end):
        """(report, seed in which the process died) of one process; one of them is None."""
        command = [self.program, "--json", "--from", hex(first), "--seeds", str(end - first)]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # a ^C is for us
        )
        self.running.add(process)
        if self.stop:
            process.kill()
        try:
            said, _ = process.communicate(timeout=CHUNK_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
        self.running.discard(process)
        if self.stop:
            raise Interrupted
        lines = [line for line in said.split("\n") if line.startswith("{")]
        if lines and process.returncode in (0, 1):
            return json.loads(lines[-1]), None
        died = re.search(r"the process died; replay: test_world --seed (0x[0-9a-f]+)", said)
        return None, int(died.group(1), 16) if died else first

    def chunk(self, first, end):
        """A seed that takes the process with it is named, and the others are run without it."""
        while first < end and not self.stop:
            report, died = self.once(first, end)
            if report is not None:
                self.state.finish(first, end, report)
                return
            if died > first:
                before, _ = self.once(first, died)
                self.state.finish(first, died, before or {"seeds": died - first})
            why = {"seed": hex(died), "class": "crash", "why": "the process died"}
            self.state.finish(died, died + 1, {"seeds": 1, "failures": [why]})
            first = died + 1

    def end(self, *_):
        self.stop = True
        for process in list(self.running):
            process.kill()


def duration(seconds):
    seconds = int(seconds)
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def show_progress(state, begun_with, start):
    done, seeds = state.sums.data["seeds"], state.head["seeds"]
    rate = (done - begun_with) / max(0.001, time.monotonic() - start)
    left = duration((seeds - done) / rate) if rate > 0 else "?"
    failures = len(state.sums.data["failures"])
    text = f"{done} of {seeds} seeds, {rate:.0f} a second, {left} left, {failures} failed"
    if sys.stderr.isatty():
        print("\r" + text.ljust(78), end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


def summary(state):
    data = state.sums.data
    first = state.head["first"]
    number = lambda key: f"{data.get(key, 0):,}"
    print(f"seeds          {number('seeds')} from {first:#x} on")
    print(f"steps          {number('steps')}")
    print(f"packets        {number('packets')}")
    print(f"virtual time   {data.get('virtual_ns', 0) // 10**9:,} s")
    print(f"faults         {number('faults')}")
    for kind, n in data["fault_kinds"].items():
        print(f"  {kind:<28} {n:>14,}")
    print(f"completions    {sum(data['completions'].values()):,}")
    for status, n in data["completions"].items():
        if n:
            print(f"  {status:>2} {STATUS.get(int(status), ''):<25} {n:>14,}")
    found = collections.Counter(f["class"] for f in data["failures"])
    print("failures       " + ", ".join(f"{found[c]} {c}" for c in CLASSES))
    for failure in data["failures"]:
        print(f"  --seed {failure['seed']}  {failure['class']}: {failure['why']}")
    whole = data["seeds"] == state.head["seeds"]
    if not whole:
        print(f"not finished: {data['seeds']} of {state.head['seeds']} seeds were run")
    return 0 if whole and not data["failures"] else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=100000, help="how many (100000)")
    parser.add_argument("--from", dest="first", metavar="S", help="first; default: of the commit")
    parser.add_argument("--jobs", "-j", type=int, default=os.cpu_count() or 2, help="processes")
    parser.add_argument("--state", metavar="FILE", help="what is done; go on with it")
    parser.add_argument("--every", type=float, metavar="S", help="seconds between progress lines")
    parser.add_argument("--program", help=argparse.SUPPRESS)
    options = parser.parse_args()
    first = int(options.first, 0) if options.first else None
    if options.seeds < 1 or options.jobs < 1 or (first or 0) < 0:
        parser.error("there is nothing to run")
    try:
        program = options.program or build(options.jobs)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"worlds.py: {error}", file=sys.stderr)
        return 1
    state = State(options.state, program, first, options.seeds)
    runner = Runner(program, state)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, runner.end)
    begun_with, start = state.sums.data["seeds"], time.monotonic()
    every = options.every or (1 if sys.stderr.isatty() else 30)
    shown = start
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = {pool.submit(runner.chunk, *piece) for piece in state.left()}
        while waiting:
            done, waiting = concurrent.futures.wait(
                waiting, every, concurrent.futures.FIRST_COMPLETED
            )
            for task in done:
                if task.exception() and not isinstance(task.exception(), Interrupted):
                    runner.end()
                    raise task.exception()
            if time.monotonic() - shown >= every:
                shown = time.monotonic()
                show_progress(state, begun_with, start)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return summary(state)


if __name__ == "__main__":
    sys.exit(main())
