# SPDX-License-Identifier: BSD-2-Clause
"""What the ABI tests share: an ELF file's dynamic symbols as nm shows them, and TAP."""

import re
import subprocess

LINE = re.compile(r"^[0-9a-f]*\s+([A-Za-z])\s+([^@\s]+)(?:@@?(\S+))?$")


def dynamic_symbols(path):
    """(type, name, node or None) of each dynamic symbol; the nodes themselves have type A."""
    out = subprocess.run(
        ["nm", "-D", "--with-symbol-versions", path], check=True, capture_output=True, text=True
    ).stdout
    found = (LINE.match(line) for line in out.splitlines())
    return [m.groups() for m in found if m]


def dynamic_flags(path):
    """Words of the FLAGS_1 entry of the dynamic section, such as NODELETE."""
    out = subprocess.run(["readelf", "-dW", path], check=True, capture_output=True, text=True)
    lines = [line for line in out.stdout.splitlines() if "(FLAGS_1)" in line]
    return set(lines[0].split(":", 1)[1].split()) if lines else set()


class Exports:
    """What a library offers to the dynamic loader."""

    def __init__(self, path):
        symbols = dynamic_symbols(path)
        self.nodes = {name for kind, name, _ in symbols if kind == "A"}
        self.versions = {}
        for kind, name, node in symbols:
            if kind not in "AUwv":
                self.versions.setdefault(name, set()).add(node)

    def lines(self):
        """One line a symbol: name@node, or the bare name."""
        return sorted(
            name if node is None else f"{name}@{node}"
            for name, nodes in self.versions.items()
            for node in nodes
        )

    def lacks(self, name, node):
        """Why the loader would refuse a reference, or None: a symbol without a version satisfies
        any, but the node must exist."""
        if node not in self.nodes:
            return f"no version node {node}"
        if not self.versions.get(name, set()) & {node, None}:
            return f"{name}@{node} is not exported"
        return None


class Tap:
    """Prints one line a case; say at the end with which code to exit."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def case(self, name, problems):
        """Passed when there is no problem."""
        self.count += 1
        for problem in problems:
            print(f"# {name}: {problem}")
        self.failed += bool(problems)
        print(f"{'not ok' if problems else 'ok'} {self.count} - {name}", flush=True)

    def skip(self, name, why):
        """Could not be tried here."""
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {why}", flush=True)

    def end(self):
        """The plan, and the exit code."""
        print(f"1..{self.count}")
        return 1 if self.failed else 0


def data_lines(path):
    """Lines of a data file without its comments."""
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
