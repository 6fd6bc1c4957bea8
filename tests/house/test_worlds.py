#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""scripts/worlds.py with a program of our own in place of test_world."""

import json
import os
import stat
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORLDS = os.path.join(ROOT, "scripts/worlds.py")

# Fails in seed 7000, dies in those of argument DEAD, counts its runs in a file.
FAKE = """#!/usr/bin/env python3
import json, os, sys
a = sys.argv
first = int(a[a.index("--from") + 1], 0)
n = int(a[a.index("--seeds") + 1])
open(os.path.join({folder!r}, "runs"), "a").write(f"{{first}} {{n}}\\n")
for dead in {dead!r}:
    if first <= dead < first + n:
        print(f"\\n# the process died; replay: test_world --seed {{dead:#x}}", flush=True)
        os.abort()
bad = [s for s in {bad!r} if first <= s < first + n]
print(json.dumps({{"seeds": n, "steps": 2 * n, "fault_kinds": {{"lost": n}}, "completions": {{"0": n}},
    "failures": [{{"seed": hex(s), "class": "stuck", "why": "stuck: x"}} for s in bad]}}))
sys.exit(1 if bad else 0)
"""


def fake(folder, dead=(), bad=(), note=""):
    path = os.path.join(folder, "fake")
    with open(path, "w", encoding="utf-8") as file:
        file.write(FAKE.format(folder=folder, dead=tuple(dead), bad=tuple(bad)) + note)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


def run(folder, program, *words):
    command = [sys.executable, WORLDS, "--program", program, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def runs(folder):
    with open(os.path.join(folder, "runs"), encoding="utf-8") as file:
        return sorted(tuple(int(word) for word in line.split()) for line in file)


def sums__of_all_chunks(folder):
    code, said = run(folder, fake(folder), "--from", "0x10", "--seeds", "5001", "-j", "2")
    assert code == 0, said
    assert "seeds          5,001 from 0x10 on" in said and "steps          10,002" in said, said
    assert "0 wrong, 0 lost, 0 stuck, 0 crash" in said, said
    assert runs(folder) == [(16, 2000), (2016, 2000), (4016, 1001)]


def failures__are_named(folder):
    code, said = run(folder, fake(folder, bad=[5, 7000]), "--from", "1", "--seeds", "8000")
    assert code == 1 and "0 lost, 2 stuck, 0 crash" in said, said
    assert "--seed 0x1b58  stuck: stuck: x" in said and "--seed 0x5  " in said, said


def crash__named_and_the_others_run(folder):
    code, said = run(folder, fake(folder, dead=[100, 102, 1999]), "--from", "0", "--seeds", "2000")
    assert code == 1 and "0 stuck, 3 crash" in said and "seeds          2,000" in said, said
    for seed in ("0x64", "0x66", "0x7cf"):
        assert f"--seed {seed}  crash" in said, said
    assert "lost                                  1,997" in said, said


def state__goes_on(folder):
    words = ("--from", "1", "--seeds", "6000", "--state", "s.json")
    program = fake(folder)
    code, first = run(folder, program, *words)
    assert code == 0, first
    with open(os.path.join(folder, "s.json"), encoding="utf-8") as file:
        state = json.load(file)
    assert state["done"] == [[1, 6001]], state
    state["done"] = [[2001, 4001]]
    state["sums"] = {"seeds": 2000, "failures": [], "fault_kinds": {}, "completions": {}}
    with open(os.path.join(folder, "s.json"), "w", encoding="utf-8") as file:
        json.dump(state, file)
    os.unlink(os.path.join(folder, "runs"))
    code, said = run(folder, program, *words)
    assert code == 0 and "seeds          6,000" in said, said
    assert runs(folder) == [(1, 2000), (4001, 2000)]
    os.unlink(os.path.join(folder, "runs"))
    code, said = run(folder, program, "--seeds", "6000", "--state", "s.json")
    assert code == 0 and not os.path.exists(os.path.join(folder, "runs")), said


def state__of_another_run_is_refused(folder):
    words = ("--seeds", "10", "--state", "s.json")
    assert run(folder, fake(folder), *words, "--from", "1")[0] == 0
    code, said = run(folder, fake(folder), *words, "--from", "2")
    assert code == 1 and "other seeds or another build" in said, said
    code, said = run(folder, fake(folder, note="#"), *words, "--from", "1")
    assert code == 1 and "other seeds or another build" in said, said


def nothing_to_run__is_refused(folder):
    for words in (("--seeds", "0"), ("--jobs", "0"), ("--from", "-1"), ("--seeds", "x")):
        code, said = run(folder, fake(folder), *words)
        assert code == 2, said


TESTS = (
    sums__of_all_chunks,
    failures__are_named,
    crash__named_and_the_others_run,
    state__goes_on,
    state__of_another_run_is_refused,
    nothing_to_run__is_refused,
)


def main():
    print(f"1..{len(TESTS)}")
    failed = 0
    for number, test in enumerate(TESTS, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(folder)
                print(f"ok {number} - {test.__name__}", flush=True)
            except (AssertionError, OSError) as error:
                failed += 1
                print("\n".join(f"# {line}" for line in str(error).split("\n")))
                print(f"not ok {number} - {test.__name__}", flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
