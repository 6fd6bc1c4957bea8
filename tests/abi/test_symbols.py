#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""test_symbols.py LIBRARY: libibverbs.so.1 or librdmacm.so.1 exports what it should, no more, no
less, and what the programs and libraries of this system and of Debian 12 import from it is there."""

import glob
import os
import sys

import abi

HERE = os.path.dirname(os.path.abspath(__file__))
NODES = {
    "libibverbs": [f"IBVERBS_1.{n}" for n in (0, 1, *range(5, 19))],
    "librdmacm": [f"RDMACM_1.{n}" for n in range(6)],
}
PREFIX = {"libibverbs": "IBVERBS_", "librdmacm": "RDMACM_"}  # of the nodes
PRIVATE = {"libibverbs": (25, 33, 34, 57, 59, 64, 65), "librdmacm": ()}
# Names, nodes that the library must not be said to have.
MISSING = {
    "libibverbs": (
        ("ibv_open_device", "IBVERBS_1.99"),
        ("ibv_no_such_call", "IBVERBS_1.1"),
        ("ibv_open_device", "IBVERBS_1.0"),
    ),
    "librdmacm": (
        ("rdma_connect", "RDMACM_1.99"),
        ("rdma_no_such_call", "RDMACM_1.0"),
        ("rdma_establish", "RDMACM_1.0"),
    ),
}
CLIENTS = (
    "/usr/bin/ib_*",
    "/usr/bin/ibv_*",
    "/usr/bin/raw_ethernet_*",
    "/usr/bin/ucmatose",
    "/usr/bin/ud[ap]*",
    "/usr/bin/cmtime",
    "/usr/bin/mckey",
    "/usr/bin/qperf",
    "/usr/bin/r[a-z]*",
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


def nodes(name, exports):
    """Every node of every release; each private one defines its registration and nothing else."""
    want = set(NODES[name]) | {f"IBVERBS_PRIVATE_{n}" for n in PRIVATE[name]}
    problems = [f"no node {n}" for n in sorted(want - exports.nodes)]
    problems += [f"unexpected node {n}" for n in sorted(exports.nodes - want)]
    for n in PRIVATE[name]:
        node = f"IBVERBS_PRIVATE_{n}"
        inside = {symbol for symbol, v in exports.versions.items() if node in v}
        if inside != {f"verbs_register_driver_{n}"}:
            problems.append(f"{node} holds {sorted(inside)}")
    return problems


def main():
    exports = abi.Exports(sys.argv[1])
    tap = abi.Tap()
    name = os.path.basename(sys.argv[1]).split(".")[0]
    want = set(abi.data_lines(os.path.join(HERE, name + ".symbols")))
    have = set(exports.lines())
    tap.case(
        "exports__as_listed",
        [f"missing: {s}" for s in sorted(want - have)]
        + [f"not in the list: {s}" for s in sorted(have - want)],
    )
    tap.case("nodes__all_releases", nodes(name, exports))
    here = os.path.dirname(os.path.abspath(sys.argv[1]))
    # A thread of ours may run on after a dlclose by a program that left objects behind.
    tap.case(
        "flags__stay_loaded",
        [
            f"{library} can be unloaded"
            for library in (name + ".so.1", "libverbena.so.0")
            if "NODELETE" not in abi.dynamic_flags(os.path.join(here, library))
        ],
    )
    rows = [line.split() for line in abi.data_lines(os.path.join(HERE, name + ".imports"))]
    missing = [(exports.lacks(symbol, node), by) for symbol, node, by in rows]
    tap.case("imports__debian_12", [f"{why}, wanted by {by}" for why, by in missing if why])
    for pattern in CLIENTS:
        for path in sorted(glob.glob(pattern)):
            if not is_elf(path):
                continue
            wanted = [
                (symbol, node)
                for kind, symbol, node in abi.dynamic_symbols(path)
                if kind == "U" and node and node.startswith(PREFIX[name])
            ]
            missing = [exports.lacks(symbol, node) for symbol, node in wanted]
            if wanted:
                tap.case(f"imports__{os.path.basename(path)}", [why for why in missing if why])
    # The check itself must be able to fail.
    tap.case(
        "lacks__finds_what_is_missing",
        [
            f"{symbol}@{node} passes"
            for symbol, node in MISSING[name]
            if exports.lacks(symbol, node) is None
        ],
    )
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
