#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""test_programs.py LIBRARY...: each program of perftest, ibverbs-utils and rdmacm-utils starts with
our libraries in front, all symbols bound at once, and shows its usage. Wherever the loader would
stop it, so would a user's run."""

import os
import subprocess
import sys

import abi

PACKAGES = ("perftest", "ibverbs-utils", "rdmacm-utils")
LOADER_SAYS = ("symbol lookup error", "undefined symbol", "not found (required by", "cannot open")
# What each says when asked for help; programs without --help complain of it, then show their usage.
EXPECT = {"ibv_devices": "node GUID", "rcopy": "usage 1:", "rping": "rping -s"}


def sanitizer(library):
    """Runtimes that must come first when the library was built with one."""
    out = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
    words = (line.split() for line in out.splitlines())
    return [w[2] for w in words if len(w) > 2 and w[0].startswith(("libasan", "libtsan"))]


def programs(package):
    out = subprocess.run(["dpkg", "-L", package], capture_output=True, text=True, check=False)
    paths = [p for p in out.stdout.splitlines() if p.startswith("/usr/bin/")]
    return sorted({p for p in paths if open(p, "rb").read(4) == b"\x7fELF"})


def start(path, env):
    """Problems of one run."""
    run = subprocess.run(
        [path, "--help"], env=env, capture_output=True, text=True, timeout=30, check=False,
        stdin=subprocess.DEVNULL,
    )
    said = run.stdout + run.stderr
    problems = [f"the loader says: {said.strip()}" for word in LOADER_SAYS if word in said]
    if run.returncode < 0 or run.returncode == 127:
        problems.append(f"ended with {run.returncode}")
    expect = EXPECT.get(os.path.basename(path), "Usage:")
    if not problems and expect.lower() not in said.lower():
        problems.append(f"no «{expect}» in: {said.strip()[:200]}")
    return problems


def main():
    libraries = [os.path.abspath(library) for library in sys.argv[1:]]
    tap = abi.Tap()
    env = dict(
        os.environ,
        LD_PRELOAD=":".join(sanitizer(libraries[0]) + libraries),
        LD_BIND_NOW="1",
        ASAN_OPTIONS="detect_leaks=0",
    )
    for package in PACKAGES:
        found = programs(package)
        if not found:
            tap.skip(f"start__{package}", "package is not installed")
        for path in found:
            tap.case(f"start__{os.path.basename(path)}", start(path, env))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
