#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tap.py counts cases as it should, and nothing that went wrong counts as passed."""

import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../scripts"))
import tap  # noqa: E402 (the path comes first)
from results import report  # noqa: E402

# name, shell text run as the test program, (passed, failed, skipped), a word of the reason
ROWS = (
    ("two_pass", "echo 'ok 1 - a'; echo 'ok 2 - b'", (2, 0, 0), None),
    ("plan_kept", "echo 1..1; echo 'ok 1 - a'", (1, 0, 0), None),
    ("two_groups", "echo 1..1; echo 'ok 1 - a'; echo 1..1; echo 'ok 1 - b'", (2, 0, 0), None),
    ("skip", "echo 'ok 1 - a # SKIP no veth'", (0, 0, 1), None),
    ("skip_by_cmocka", "echo 'not ok 1 # SKIP a'", (0, 0, 1), None),
    (
        "skip_of_cmocka_with_its_reason",
        "echo '# skipped because: no adapter'; echo 'not ok 1 # SKIP a'",
        (0, 0, 1),
        "no adapter",
    ),
    ("plan_of_none", "echo '1..0 # skip no guest'", (0, 0, 1), None),
    ("talk_is_not_counted", "echo 'okay then'; echo '# ok 3'; echo 'ok 1 - a'", (1, 0, 0), None),
    ("not_ok", "echo 'not ok 1 - a'; echo 'ok 2 - b'; exit 1", (1, 1, 0), "not ok"),
    (
        "not_ok_says_why",
        "echo 'not ok 1 - a'; echo '# 0x1 != 0x2'; echo '# a.c:6: error'; exit 1",
        (0, 1, 0),
        "not ok: 0x1 != 0x2; a.c:6: error",
    ),
    ("why_belongs_to_its_case", "echo 'not ok 1 - a'; echo 'ok 2 - b'; echo '# talk'", (1, 1, 0), "not ok"),
    ("not_ok_exit_0", "echo 'not ok 1 - a'", (0, 1, 0), "not ok"),
    ("silent", "true", (0, 1, 0), "ran no test"),
    ("exit_code", "echo 'ok 1 - a'; exit 3", (1, 1, 0), "exit code 3"),
    ("crash", "echo 'ok 1 - a'; kill -SEGV $$", (1, 1, 0), "SIGSEGV"),
    ("plan_broken", "echo 1..3; echo 'ok 1 - a'", (1, 1, 0), "planned 3"),
    (
        "plan_broken_says_why",
        "echo 1..2; echo 'ok 1 - a'; echo '==7==ERROR: AddressSanitizer: at fault'; exit 1",
        (1, 1, 0),
        "planned 2 cases, ran 1; exit code 1; ERROR: AddressSanitizer: at fault",
    ),
    (
        "exit_code_says_why",
        "echo 'ok 1 - a'; echo 'a.c:3:5: runtime error: too big'; exit 1",
        (1, 1, 0),
        "exit code 1; a.c:3:5: runtime error: too big",
    ),
    ("limit", "echo 'ok 1 - a'; sleep 60", (1, 1, 0), "limit"),
    ("left_running", "echo 'ok 1 - a'; setsid sleep 60 & sleep 0.2", (1, 1, 0), "left running"),
)


def verdict(name, text, counts, reason):
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        outcome = tap.run(name, ["sh", "-c", text], log, 1, alone=True)
    got = (outcome.passed, len(outcome.failed), len(outcome.skipped))
    said = " ".join(why for _, why in outcome.failed + outcome.skipped)
    return got == counts and (reason is None or reason in said), f"{got} {said}"


# Its test program has something that it set up, and a process that has left its group.
ENDED = """
import sys
import tap
tap.adopt_orphans()
tap.end_by_signal()
words = "trap 'rmdir made; exit 0' TERM; mkdir made; setsid sleep 60 & echo $! >pid; wait"
tap.run("ended", ["sh", "-c", words], "log", 60)
"""


def ended(number):
    """Told to end, and it ended: what the test set up is gone, and so is what it had started."""
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, PYTHONPATH=os.path.dirname(tap.__file__))
        with subprocess.Popen([sys.executable, "-c", ENDED], cwd=folder, env=env) as process:
            sleeper = os.path.join(folder, "pid")
            deadline = time.monotonic() + 30
            while not (os.path.exists(sleeper) and os.path.getsize(sleeper)):
                if process.poll() is not None or time.monotonic() > deadline:
                    process.kill()
                    return False, "its test was not started"
                time.sleep(0.01)
            process.send_signal(number)
            status = process.wait()
        with open(sleeper, encoding="ascii") as text:
            left = os.path.exists("/proc/" + text.read().strip())
        there = os.path.exists(os.path.join(folder, "made"))
    found = f"exit code {status}, set up: {there}, runs: {left}"
    return status == 128 + number and not there and not left, found


def main():
    tap.adopt_orphans()
    results = [(row[0], *verdict(*row)) for row in ROWS]
    missing = tap.run("missing", ["./no-such-program"], os.devnull, 1)
    results.append(("program_missing", len(missing.failed) == 1, missing.failed))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        results.append((f"ended_by_{number.name}", *ended(number)))
    results.append(("nothing_left", not tap.children(), tap.children()))
    return report(results)


if __name__ == "__main__":
    sys.exit(main())
