#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""test_symbols.py LIBRARY: libibverbs.so.1 exports what it should, no more, no less, and what the
programs and libraries of this system and of Debian 12 import from it is there."""

import glob
import os
import sys

import abi

HERE = os.path.dirname(os.path.abspath(__file__))
NODES = [f"IBVERBS_1.{n}" for n in (0, 1, *range(5, 19))]
PRIVATE = (25, 33, 34, 57, 59, 64, 65)
CLIENTS = (
    "/usr/bin/ib_*",
    "/usr/bin/ibv_*",
    "/usr/bin/raw_ethernet_*",
    "/usr/bin/rping",
    "/usr/bin/ucmatose",
    "/usr/bin/udaddy",
    "/usr/bin/qperf",
    "/usr/lib/*-linux-gnu/librdmacm.so.1",
    "/usr/lib/*-linux-gnu/libmlx5.so.1",
    "/usr/lib/*-linux-gnu/libmlx4.so.1",
    "/usr/lib/*-linux-gnu/libefa.so.1",
    "/usr/lib/*-linux-gnu/libmana.so.1",
    "/usr/lib/*-linux-gnu/libibverbs/*.so",
    "/usr/lib/python3/dist-packages/pyverbs/*.so",
)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def nodes(exports):
    """Every node of every release; each private one defines its registration and nothing else."""
    want = set(NODES) | {f"IBVERBS_PRIVATE_{n}" for n in PRIVATE}
    problems = [f"no node {n}" for n in sorted(want - exports.nodes)]
    problems += [f"unexpected node {n}" for n in sorted(exports.nodes - want)]
    for n in PRIVATE:
        node = f"IBVERBS_PRIVATE_{n}"
        inside = {name for name, v in exports.versions.items() if node in v}
        if inside != {f"verbs_register_driver_{n}"}:
            problems.append(f"{node} holds {sorted(inside)}")
    return problems


def main():
    exports = abi.Exports(sys.argv[1])
    tap = abi.Tap()
    want = set(abi.data_lines(os.path.join(HERE, "libibverbs.symbols")))
    have = set(exports.lines())
    tap.case(
        "exports__as_listed",
        [f"missing: {s}" for s in sorted(want - have)]
        + [f"not in the list: {s}" for s in sorted(have - want)],
    )
    tap.case("nodes__all_releases", nodes(exports))
    here = os.path.dirname(os.path.abspath(sys.argv[1]))
    # A thread of ours may run on after a dlclose by a program that left objects behind.
    tap.case(
        "flags__stay_loaded",
        [
            f"{name} can be unloaded"
            for name in ("libibverbs.so.1", "libverbena.so.0")
            if "NODELETE" not in abi.dynamic_flags(os.path.join(here, name))
        ],
    )
    rows = [line.split() for line in abi.data_lines(os.path.join(HERE, "libibverbs.imports"))]
    missing = [(exports.lacks(name, node), by) for name, node, by in rows]
    tap.case("imports__debian_12", [f"{why}, wanted by {by}" for why, by in missing if why])
    for pattern in CLIENTS:
        for path in sorted(glob.glob(pattern)):
            if not is_elf(path):
                continue
            wanted = [
                (name, node)
                for kind, name, node in abi.dynamic_symbols(path)
                if kind == "U" and node and node.startswith("IBVERBS_")
            ]
            missing = [exports.lacks(name, node) for name, node in wanted]
            if wanted:
                tap.case(f"imports__{os.path.basename(path)}", [why for why in missing if why])
    # The check itself must be able to fail.
    tap.case(
        "lacks__finds_what_is_missing",
        [
            f"{name}@{node} passes"
            for name, node in (
                ("ibv_open_device", "IBVERBS_1.99"),
                ("ibv_no_such_call", "IBVERBS_1.1"),
                ("ibv_open_device", "IBVERBS_1.0"),
            )
            if exports.lacks(name, node) is None
        ],
    )
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
