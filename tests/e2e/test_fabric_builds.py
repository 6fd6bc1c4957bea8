#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 300 s
"""`verbena fabric run` gives the same bytes whatever it was built with: this build's results and
traces against those of a debug build by clang and a release build by gcc, made here.
The latter is also where gcc's warnings at -O3 would show.
"""

import os
import sys
import tempfile

import e2e
from e2e import demand

DATA = os.path.join(e2e.ROOT, "tests", "scenario", "data")
STALLED = 1
# Compiler and build type; each is one whole build of the program.
BUILDS = [("clang", "debug"), ("gcc", "release")]
RUNS = {
    "bare": ("mixed.yaml", 0),
    "engine": ("mixed.yaml", 0, "--set", "hosts.nic=engine", "--set", "hosts.cc=none"),
    "dcqcn": ("mixed.yaml", 0, "--set", "hosts.nic=engine", "--set", "hosts.cc=dcqcn-paper"),
    "ztr": ("mixed.yaml", 0, "--set", "hosts.nic=engine", "--set", "hosts.cc=ztr-target"),
    "verbs": ("verbs.yaml", STALLED),
    "bytes": ("verbs.yaml", STALLED, "--bytes"),
}
ALL = "kind=send+arrive+drop+mark+pause+resume+start+finish+fail+storm+down+up"
folder = tempfile.TemporaryDirectory(prefix="verbena-builds-")


def results(program, name):
    """All files of a run, by name."""
    scenario, status, *more = RUNS[name]
    out = tempfile.mkdtemp(dir=folder.name)
    command = [program, "fabric", "run", os.path.join(DATA, scenario), "--no-report", *more]
    command += ["--out", out, "--trace", os.path.join(out, "trace"), "--trace-filter", ALL]
    got, text, errors = e2e.run(command, 60)
    demand(got == status, f"exit code {got}, wanted {status}: {text}{errors}")
    files = {}
    for file in os.listdir(out):
        with open(os.path.join(out, file), "rb") as data:
            files[file] = data.read()
    return files


def build(compiler, kind):
    """The program, built in a folder of its own."""
    e2e.need(compiler, "meson", "ninja")
    where = os.path.join(folder.name, kind)
    setup = ["meson", "setup", where, e2e.ROOT, "--buildtype", kind]
    setup += ["-Dtests=disabled", "-Dreports=disabled"]
    for command in (setup, ["ninja", "-C", where, "-j", "2", "verbena"]):
        status, out, errors = e2e.run(command, 250, env={**os.environ, "CC": compiler})
        demand(status == 0, out[-1500:] + errors)
    return os.path.join(where, "verbena")


def same(compiler, kind):
    program = build(compiler, kind)
    for name in RUNS:
        here, there = results(e2e.VERBENA, name), results(program, name)
        demand({"flows.csv", "pfc.csv", "ports.csv", "summary.json", "trace"} <= set(here), here)
        demand(set(here) == set(there), f"{name}: {sorted(here)}, {sorted(there)}")
        for file, content in here.items():
            demand(content == there[file], f"{name}: {file} differs")
            demand(len(content) > 20, f"{name}: {file} is empty")


def cases(tap):
    for compiler, kind in BUILDS:
        tap.run(f"same_bytes_{compiler}_{kind}", same, compiler, kind)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
