#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""test_shim.py LIBRARY: libverbena_files.so.0 stands before libc in the calls of its list and in no
others, and the libraries beside it in none."""

import os
import subprocess
import sys

import abi

HERE = os.path.dirname(os.path.abspath(__file__))
BESIDE = ("libibverbs.so.1", "librdmacm.so.1", "libverbena.so.0")
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"


def started_with(library):
    """What the loader complains about when a program has it preloaded."""
    env = dict(os.environ, LD_PRELOAD=library, LD_BIND_NOW="1")
    done = subprocess.run(["true"], env=env, capture_output=True, text=True, check=False)
    return [done.stderr.strip()] if done.returncode or done.stderr else []


def main():
    library = os.path.abspath(sys.argv[1])
    exports = abi.Exports(library)
    tap = abi.Tap()
    want = set(abi.data_lines(os.path.join(HERE, "libverbena_files.symbols")))
    have = set(exports.lines())
    tap.case(
        "exports__as_listed",
        [f"missing: {s}" for s in sorted(want - have)]
        + [f"not in the list: {s}" for s in sorted(have - want)],
    )
    if os.path.exists(LIBC):
        libc = abi.Exports(LIBC)
        tap.case(
            "exports__all_known_to_libc",
            [f"libc has no {s}" for s in sorted(want) if s not in libc.versions],
        )
    for name in BESIDE:
        beside = abi.Exports(os.path.join(os.path.dirname(library), name))
        tap.case(
            f"{name}__leaves_libc_alone",
            [f"exports {s}" for s in sorted(want & set(beside.versions))],
        )
    tap.case(
        "flags__stay_loaded",
        [] if "NODELETE" in abi.dynamic_flags(library) else ["it can be unloaded"],
    )
    tap.case("loader__finds_all", started_with(library))
    # The checks themselves must be able to fail.
    tap.case("loader__finds_what_is_missing", [] if started_with(library + ".none") else ["passes"])
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
