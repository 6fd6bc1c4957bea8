#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Seeds the bugs of tests/mutants, one at a time, into a copy of the tree and runs the tests.

    scripts/mutants.py              all of them; each must make a test fail
    scripts/mutants.py -k fence     those with a word in their name
    scripts/mutants.py --sample 2   as many, chosen by the commit's hash
    scripts/mutants.py --all        name every suite that notices, not only the first
    scripts/mutants.py --list       names and rules

A mutant that survives, no longer applies or does not compile is a failure: the first wants a better
test, the others a new line in tests/mutants. Output is TAP. The working tree is never touched.
"""

import argparse
import fcntl
import glob
import os
import re
import resource
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field

import tidy
import tree
from tree import ROOT

WANTED = ("src/", "include/", "tests/", "tools/", "docs/man/", "meson", "LICENSE")
# What the build itself runs.
WANTED += ("scripts/embed.py", "scripts/take_charts.py")
# Cheap first. Suite: what `tests/<suite>/test_*` may notice.
SUITES = ("wire", "nic", "script", "cm", "golden", "world", "port", "fabric", "scenario")
# Floors whose bugs only their own suites see: others do not link them, or they are slow.
APART = {"port": ("src/port/",), "fabric": ("src/fabric/", "src/scenario/")}
TEST_SECONDS = 30  # a test that needs more hangs, which is noticed as well
LIVE_SECONDS = 120  # of suite port, in real time
MEMORY_BYTES = 4 << 30
WORLD = ["--no-shrink", "--list", os.path.join(ROOT, "tests/world/seeds.txt")]


@dataclass
class Hunk:
    """One change. A file may be named for several; old and new are lines without their marks."""

    path: str
    function: str
    old: list = field(default_factory=list)
    new: list = field(default_factory=list)


@dataclass
class Mutant:
    name: str
    rule: str = ""
    hunks: list = field(default_factory=list)

    def apart(self):
        """Of APART, or nothing."""
        for name, folders in APART.items():
            if all(hunk.path.startswith(folders) for hunk in self.hunks):
                return name
        return ""


class Broken(Exception):
    """The table is wrong, or the code has moved on; the text says how."""


def parse(text):
    """
    Blocks of lines: [name], rule: ..., file: path, in: function (where the line is not the only one
    of its kind), then - old lines and + new ones. After a + line, file:, in: or - begin another
    change of the same mutant.
    """
    mutants, path, function, closed = [], "", "", True
    for number, line in enumerate(text.split("\n"), 1):
        head, _, rest = line.partition(" ")
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            mutants.append(Mutant(line.strip("[] ")))
            path, function, closed = "", "", True
        elif head == "rule:":
            mutants[-1].rule = rest
        elif head == "file:":
            path, function, closed = rest, "", True
        elif head == "in:":
            function, closed = rest, True
        elif head == "-":
            if closed or mutants[-1].hunks[-1].new:
                mutants[-1].hunks.append(Hunk(path, function))
            mutants[-1].hunks[-1].old.append(rest)
            closed = False
        elif head == "+" and not closed:
            mutants[-1].hunks[-1].new.append(rest)
        else:
            raise Broken(f"line {number} is none of the table's: {line}")
    for mutant in mutants:
        if not mutant.rule or not mutant.hunks:
            raise Broken(f"{mutant.name} has no rule or no change")
    names = [mutant.name for mutant in mutants]
    for name in names:
        if names.count(name) > 1:
            raise Broken(f"{name} is there twice")
    return mutants


def load():
    files = sorted(glob.glob(os.path.join(ROOT, "tests/mutants/*.txt")))
    text = "\n".join(open(path, encoding="utf-8").read() for path in files)
    return parse(text)


def span_of(text, function):
    """The text's part that is a function's body, or all of it."""
    if not function:
        return 0, len(text)
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for name, first, last in tidy.functions(text):
        if name == function:
            return starts[first - 1], starts[last]
    raise Broken(f"there is no function {function}")


def change(text, hunk):
    """Blanks and line breaks may have moved; all else of the old lines must be there, once."""
    pattern = r"\s+".join(re.escape(word) for word in " ".join(hunk.old).split())
    begin, end = span_of(text, hunk.function)
    found = list(re.compile(pattern).finditer(text, begin, end))
    if len(found) != 1:
        raise Broken(f"{hunk.path} has {len(found)} places like: {' '.join(hunk.old).strip()}")
    return text[: found[0].start()] + "\n".join(hunk.new) + text[found[0].end() :]


def mutate(mutant, read):
    """{path: new text} of one mutant; read gives the text of a path."""
    texts = {}
    for hunk in mutant.hunks:
        try:
            text = texts[hunk.path] if hunk.path in texts else read(hunk.path)
        except OSError as error:
            raise Broken(f"{hunk.path} is not there") from error
        texts[hunk.path] = change(text, hunk)
    return texts


def write(path, data):
    """Only what differs is written, so that ninja builds only that."""
    try:
        with open(path, "rb") as old:
            if old.read() == data:
                return
    except OSError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as new:
        new.write(data)


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


class Bench:
    """The copy of the tree, its build, and the tests in it."""

    def __init__(self, scratch, jobs, suites):
        self.tree = os.path.join(scratch, "tree")
        self.build = os.path.join(scratch, "build")
        self.jobs = jobs
        self.suites = suites
        os.makedirs(self.tree, exist_ok=True)
        self.lock = open(os.path.join(scratch, "lock"), "w", encoding="utf-8")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.copy()
        self.setup()

    def copy(self):
        wanted = {p for p in tree.paths() if p.startswith(WANTED)}
        for path in wanted:
            write(os.path.join(self.tree, path), read_bytes(os.path.join(ROOT, path)))
        for folder, _, names in os.walk(self.tree):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.relpath(path, self.tree) not in wanted:
                    os.unlink(path)

    def command(self, words):
        """Its output where it fails, else None."""
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else done.stdout + done.stderr

    def setup(self):
        options = ["-Dtests=enabled", "-Dwerror=false", "-Dbuildtype=plain", "-Doptimization=1"]
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            said = self.command(["meson", "setup", self.build, self.tree, *options])
            if said is not None:
                raise SystemExit(said + "mutants.py: meson failed")
        listed = subprocess.run(
            ["ninja", "-C", self.build, "-t", "targets", "all"],
            capture_output=True,
            text=True,
            check=True,
        )
        known = re.findall(r"^(tests/(\w+)/test_\w+): \w+LINKER$", listed.stdout, re.MULTILINE)
        self.tests = [path for suite in self.suites for path, of in known if of == suite]

    def compile(self):
        return self.command(["ninja", "-C", self.build, "-j", str(self.jobs), *self.tests])

    def apply(self, texts):
        for path, text in texts.items():
            write(os.path.join(self.tree, path), text.encode())

    def read(self, path):
        with open(os.path.join(self.tree, path), encoding="utf-8") as file:
            return file.read()

    def failures(self, mutant=None):
        """(test program, what it said first) for each that notices, of those that may."""
        for test in self.tests:
            if mutant is not None and mutant.apart() != self.apart_of(test):
                continue
            said = self.run(test)
            if said is not None:
                yield test.removeprefix("tests/"), said

    def apart_of(self, test):
        suite = test.split("/")[1]
        return {"port": "port", "fabric": "fabric", "scenario": "fabric"}.get(suite, "")

    def run(self, test):
        """The first failure of one test program, or None. It is stopped there."""
        command = [os.path.join(self.build, test)]
        if test.startswith("tests/world/"):
            command += WORLD
        process = subprocess.Popen(
            command,
            cwd=self.build,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP"),
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES)
            ),
        )
        try:
            live = test.startswith("tests/port/")
            return first_failure(process, LIVE_SECONDS if live else TEST_SECONDS)
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.stdout.close()
            process.wait()


def first_failure(process, seconds):
    deadline = time.monotonic() + seconds
    rest = b""
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not ready.select(max(0.0, deadline - time.monotonic())):
                return "does not end"
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if line.startswith(b"not ok"):
                    case = line.decode(errors="replace").partition(" - ")[2].split()
                    return case[0] if case else "a case"
    status = process.wait()
    if status < 0:
        return signal.Signals(-status).name
    return f"exit code {status}" if status > 0 else None


def judge(bench, mutant, every):
    """(killed?, how) of one mutant."""
    texts = mutate(mutant, bench.read)
    right = {path: bench.read(path) for path in texts}
    bench.apply(texts)
    try:
        said = bench.compile()
        if said is not None:
            errors = [line for line in said.split("\n") if "error" in line]
            return False, "does not compile: " + (errors[0] if errors else said[-200:])
        killers = []
        for test, case in bench.failures(mutant):
            killers.append(f"{test}: {case}")
            if not every:
                break
        if killers:
            return True, "killed by " + ", ".join(killers)
        return False, f"survived; it breaks: {mutant.rule}"
    finally:
        bench.apply(right)


def choose(mutants, n):
    """n of them, others for another commit."""
    command = ["git", "-c", f"safe.directory={ROOT}", "rev-parse", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    first = int(done.stdout.strip()[:8] or "0", 16) if done.returncode == 0 else 0
    step = max(1, len(mutants) // n)
    return [mutants[(first + i * step) % len(mutants)] for i in range(min(n, len(mutants)))]


def report(bench, mutants, options):
    print(f"1..{len(mutants) + (0 if options.sample else 1)}", flush=True)
    number, failed = 0, 0
    if not options.sample:
        number = 1
        said = bench.compile()
        found = "does not compile" if said is not None else next(bench.failures(), None)
        print(f"{'not ok' if found else 'ok'} 1 - unmutated" + (f" # {found}" if found else ""))
        if found:
            print((said or "")[-2000:] + "Bail out! Every mutant would seem killed.")
            return 1
    for mutant in mutants:
        number += 1
        start = time.monotonic()
        try:
            killed, how = judge(bench, mutant, options.all)
        except Broken as error:
            killed, how = False, f"does not apply: {error}"
        failed += not killed
        seconds = time.monotonic() - start
        mark = "ok" if killed else "not ok"
        print(f"{mark} {number} - {mutant.name} # {how} ({seconds:.1f} s)", flush=True)
    print(f"# {len(mutants) - failed} of {len(mutants)} killed")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-k", metavar="WORD", help="only mutants whose name has WORD")
    parser.add_argument("--suite", action="append", choices=SUITES, help="only these tests")
    parser.add_argument("--sample", metavar="N", type=int, help="N of them, by the commit's hash")
    parser.add_argument("--all", action="store_true", help="name every test that notices")
    parser.add_argument("--list", action="store_true", help="names and rules")
    parser.add_argument("--scratch", default=os.path.join(ROOT, "build/mutants"), metavar="DIR")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 2, help="compilers at a time")
    options = parser.parse_args()
    mutants = [m for m in load() if options.k is None or options.k in m.name]
    if options.list:
        for mutant in mutants:
            print(f"{mutant.name:<36} {mutant.rule}")
        return 0
    if not mutants:
        print(f"mutants.py: no mutant has {options.k} in its name", file=sys.stderr)
        return 64
    if options.sample:
        mutants = choose(mutants, options.sample)
    return report(Bench(options.scratch, options.j, options.suite or SUITES), mutants, options)


if __name__ == "__main__":
    sys.exit(main())
