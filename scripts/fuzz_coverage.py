#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How much of each parser the corpus of its fuzz target reaches (clang's source-based coverage).

    scripts/fuzz_coverage.py                  the table
    scripts/fuzz_coverage.py --write          puts it into docs/testing.md
    scripts/fuzz_coverage.py --show fault     the lines of one target that are not reached
    scripts/fuzz_coverage.py --more DIR       also the inputs in DIR/<target>

The build is build/coverage; nothing is fuzzed, only the inputs are run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from tree import ROOT

BUILD = os.path.join(ROOT, "build", "coverage")
DOC = os.path.join(ROOT, "docs", "testing.md")
BEGIN, END = "<!-- fuzz coverage -->", "<!-- end -->"
# What each target is for; folders mean all sources in them.
TARGETS = {
    "net": ["src/wire/net.c", "src/wire/print.c"],
    "roce": ["src/wire/roce.c", "src/wire/opcode.c"],
    "icrc": ["src/wire/icrc.c", "src/wire/icrc_copy.c", "src/wire/aeth.c"],
    "port": ["src/port/port_slot.c", "src/port/port_udp_rx.c", "src/port/port_service.c"],
    "cm": ["src/cm/", "src/wire/cm_msg.c", "src/wire/cm_ip.c", "src/wire/mad.c"],
    "fault": ["src/port/port_fault_spec.c"],
    "config": ["src/host/config.c"],
    "elf": ["tools/program.c"],
    "stats": ["tools/stats.c"],
    "will": ["src/port/port_will.c"],
    "world": ["src/nic/"],
}


def build(jobs):
    flags = "-fprofile-instr-generate -fcoverage-mapping"
    options = ["-Dfuzz=true", "-Dtests=enabled", "-Dman=disabled", "-Db_lundef=false"]
    options += [f"-Dc_args={flags}", f"-Dc_link_args={flags}"]
    quiet = {"stdout": subprocess.DEVNULL, "check": True, "cwd": ROOT}
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        env = dict(os.environ, CC="clang")
        subprocess.run(["meson", "setup", BUILD, *options], env=env, **quiet)
    names = [f"tests/fuzz/fuzz_{target}" for target in TARGETS]
    subprocess.run(["ninja", "-C", BUILD, "-j", str(jobs), *names], **quiet)


def profile(target, folders, scratch):
    """Runs all inputs once; the merged profile's path, and how many there are."""
    program = os.path.join(BUILD, "tests/fuzz/fuzz_" + target)
    raw = os.path.join(scratch, target + ".profraw")
    merged = os.path.join(scratch, target + ".profdata")
    env = dict(os.environ, LLVM_PROFILE_FILE=raw)
    quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "check": True}
    subprocess.run([program, "-runs=0", *folders], env=env, **quiet)
    subprocess.run(["llvm-profdata", "merge", "-sparse", raw, "-o", merged], check=True)
    return program, merged, sum(len(os.listdir(folder)) for folder in folders)


def measure(target, program, merged):
    """[(source, lines, branches)] of the sources that the target is for."""
    command = ["llvm-cov", "export", "-summary-only", f"-instr-profile={merged}", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = []
    for file in json.loads(done.stdout)["data"][0]["files"]:
        name = os.path.relpath(os.path.realpath(file["filename"]), ROOT)
        if not name.startswith(tuple(TARGETS[target])) or not name.endswith(".c"):
            continue
        summary = file["summary"]
        rows.append((name, summary["lines"], summary["branches"]))
    return sorted(rows)


def percent(part):
    return f"{100 * part['covered'] / part['count']:.0f} %" if part["count"] else "-"


def table(more, jobs):
    build(jobs)
    rows = ["| target | inputs | source | lines | branches |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as scratch:
        for target in TARGETS:
            folders = folders_of(target, more)
            program, merged, inputs = profile(target, folders, scratch)
            for name, lines, branches in measure(target, program, merged):
                place = f"`{name}`"
                text = f"| {target} | {inputs} | {place} | {percent(lines)} | {percent(branches)} |"
                rows.append(text)
    return "\n".join(rows)


def folders_of(target, more):
    folders = [os.path.join(ROOT, "tests/fuzz/corpus", target)]
    folders += [os.path.join(folder, target) for folder in more]
    return [folder for folder in folders if os.path.isdir(folder)]


def show(target, more, jobs):
    build(jobs)
    with tempfile.TemporaryDirectory() as scratch:
        program, merged, _ = profile(target, folders_of(target, more), scratch)
        command = ["llvm-cov", "show", f"-instr-profile={merged}", program, "-show-branches=count"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    wanted = False
    for line in done.stdout.split("\n"):
        if line.startswith("/") and line.endswith(":"):
            name = os.path.relpath(line.rstrip(":"), ROOT)
            wanted = name.startswith(tuple(TARGETS[target])) and name.endswith(".c")
            if wanted:
                print(name)
        count = line.partition("|")[2].partition("|")[0].strip()
        if wanted and (count == "0" or "True: 0," in line or "False: 0]" in line):
            print(line)


def write(text):
    with open(DOC, encoding="utf-8") as file:
        old = file.read()
    head, begin, rest = old.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"fuzz_coverage.py: {DOC} has no place for the table: {BEGIN} {END}")
    with open(DOC, "w", encoding="utf-8") as file:
        file.write(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the table into docs/testing.md")
    parser.add_argument("--show", metavar="TARGET", choices=TARGETS, help="what is not reached")
    parser.add_argument("--more", metavar="DIR", action="append", default=[], help="more inputs")
    parser.add_argument("--jobs", "-j", type=int, default=os.cpu_count() or 2, help="compilers")
    options = parser.parse_args()
    if options.show:
        show(options.show, options.more, options.jobs)
        return 0
    text = table(options.more, options.jobs)
    print(text)
    if options.write:
        write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
