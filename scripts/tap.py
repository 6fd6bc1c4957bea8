# SPDX-License-Identifier: BSD-2-Clause
"""Runs one test program and counts what it says in TAP (ok / not ok / # SKIP lines), case by case.

A program that crashes, exits non-zero without a failed case, says fewer cases than it planned, says
none, runs out of time, or leaves a process behind has failed, whatever it printed.
Used by check.py; tested by tests/house/test_tap.py.
"""

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field

LINE = re.compile(r"^(ok|not ok)\b\s*(\d+)?\s*(?:-\s*)?(.*)$")
PLAN = re.compile(r"^1\.\.(\d+)\s*(?:#\s*skip\s*(.*))?$", re.IGNORECASE)
SKIP = re.compile(r"#\s*SKIP\b[:\s]*(.*)$", re.IGNORECASE)
BECAUSE = re.compile(r"^# skipped because: (.*)$")  # tests/skips.h
DETAIL = re.compile(r"^#\s*(\S.*)$")  # what follows a `not ok` says why
DETAILS = 3  # lines of it that are repeated at the end of a run
REPORTS = [
    re.compile(words, re.MULTILINE)
    for words in (
        r"(ERROR|WARNING): \w+Sanitizer.*$",
        r"\S+ runtime error: .*$",
        r"\S+ property broken: .*$",
        r"^.*Assertion .* failed.*$",
        r"SUMMARY: .*$",
    )
]
PR_SET_CHILD_SUBREAPER = 36
END_SECONDS = 10  # what a program that is told to end has for its trap
ending = False  # nothing is started any more


@dataclass
class Outcome:
    """What one program showed. A failure and a skip are (case, reason)."""

    name: str
    passed: int = 0
    failed: list = field(default_factory=list)
    skipped: list = field(default_factory=list)
    log: str = ""
    seconds: float = 0.0

    def total(self):
        return self.passed + len(self.failed) + len(self.skipped)


def parse(text, outcome):
    """Count the TAP lines of text into outcome; complain when the plan and the lines differ."""
    planned, said, because = None, 0, "no reason given"
    details = None  # of the last line, when that was a failure
    for line in text.splitlines():
        detail = DETAIL.match(line)
        if detail and details is not None and len(details) < DETAILS:
            details.append(detail.group(1))
            case, _ = outcome.failed[-1]
            outcome.failed[-1] = (case, "not ok: " + "; ".join(details))
        if not detail:
            details = None
        plan = PLAN.match(line)
        if plan:
            planned = (planned or 0) + int(plan.group(1))
            if int(plan.group(1)) == 0 and plan.group(2):
                outcome.skipped.append((outcome.name, plan.group(2).strip()))
            continue
        if BECAUSE.match(line):
            because = BECAUSE.match(line).group(1)
            continue
        match = LINE.match(line)
        if not match:
            continue
        said += 1
        verdict, number, rest = match.groups()
        skip = SKIP.search(rest)
        case = SKIP.sub("", rest).strip()
        if skip:  # cmocka 1.1 says `not ok N # SKIP name`, others `ok N - name # SKIP reason`
            reason = skip.group(1).strip()
            outcome.skipped.append((case, reason) if case else (reason, because))
        elif verdict == "ok":
            outcome.passed += 1
        else:
            outcome.failed.append((case or f"case {number}", "not ok"))
            details = []
        because = "no reason given"
    if planned is not None and said != planned:
        outcome.failed.append((outcome.name, f"planned {planned} cases, ran {said}"))
    if outcome.total() == 0:
        outcome.failed.append((outcome.name, "ran no test"))


def report(text):
    """What a sanitizer or a fuzz target said in text, a line of each kind."""
    found = (pattern.search(text) for pattern in REPORTS)
    return [match.group(0).strip() for match in found if match]


def adopt_orphans():
    """Become the parent of orphaned grandchildren, so that a test's leftovers can be found."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children():
    """Our live child processes: {pid: command name}."""
    found = {}
    me = str(os.getpid())
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
                head, _, tail = stat.read().rpartition(")")
        except OSError:
            continue
        state, parent = tail.split()[:2]
        if parent == me and state != "Z":
            found[int(pid)] = head.partition("(")[2]
    return found


def signal_group(pgid, number):
    try:
        os.killpg(pgid, number)
    except (ProcessLookupError, PermissionError):
        pass


def end_leftovers(before, grace_seconds=1.0):
    """End what we inherited since `before`, after a moment's grace; return the names."""
    deadline = time.monotonic() + grace_seconds
    names = []
    while True:
        left = {pid: name for pid, name in children().items() if pid not in before}
        if not left:
            break
        if time.monotonic() < deadline:
            time.sleep(0.05)
            continue
        for pid, name in left.items():
            names.append(name)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.05)
    while True:  # reap what we adopted
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                break
        except ChildProcessError:
            break
    return names


def end_by_signal():
    """Who ends us ends what we have started, which is told first: it may have set up something."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def end(number, _):
        global ending
        ending = True
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        deadline, told = time.monotonic() + END_SECONDS, set()
        while (left := children()) and time.monotonic() < deadline:
            for pid in left.keys() - told:  # also what we inherit from those who have ended
                told.add(pid)
                try:
                    os.kill(-pid if os.getpgid(pid) == pid else pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass  # has ended meanwhile
            time.sleep(0.05)
        killed = end_leftovers({}, 0)
        print(f"ended by {signal.Signals(number).name}" + (", with " if killed else ""), *killed)
        sys.stdout.flush()
        os._exit(128 + number)  # other threads wait for what is gone

    for number in numbers:
        signal.signal(number, end)


def run(name, command, log_path, limit_seconds, env=None, cwd=None, alone=False):
    """Run one program to its end or limit. alone: nothing else runs, so leftovers are its own."""
    outcome = Outcome(name, log=log_path)
    if ending:
        return outcome
    start = time.monotonic()
    before = children() if alone else {}
    with open(log_path, "wb") as log:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as error:
            outcome.failed.append((name, f"did not start: {error.strerror}"))
            return outcome
        try:
            status = process.wait(timeout=limit_seconds)
        except subprocess.TimeoutExpired:
            status = None
            signal_group(process.pid, signal.SIGTERM)  # so that it can take down what it set up
            try:
                process.wait(timeout=END_SECONDS)
            except subprocess.TimeoutExpired:
                pass
        finally:
            signal_group(process.pid, signal.SIGKILL)
            process.wait()
    leftovers = end_leftovers(before) if alone else []
    with open(log_path, encoding="utf-8", errors="replace") as log:
        text = log.read()
    parse(text, outcome)
    if status is None:
        outcome.failed.append((name, f"stopped at its limit of {limit_seconds} s"))
    elif status < 0:
        outcome.failed.append((name, f"killed by {signal.Signals(-status).name}"))
    elif status > 0 and (not outcome.failed or outcome.failed[-1][0] == name):
        reasons = [why for _, why in outcome.failed[-1:]]
        outcome.failed[-1:] = [(name, "; ".join([*reasons, f"exit code {status}", *report(text)]))]
    if leftovers:
        outcome.failed.append((name, "left running: " + " ".join(sorted(leftovers))))
    outcome.seconds = time.monotonic() - start
    return outcome
