# SPDX-License-Identifier: BSD-2-Clause
"""The tables of docs/interop.md: what ran between Verbena and a peer, a line for each program,
transport and network. The test that runs it writes its table, or checks that it is the one there.
"""

import collections
import os
import re

import e2e
from e2e import demand

PATH = os.path.join(e2e.ROOT, "docs", "interop.md")
HEAD = (
    "| what | transport | connected by | IP | path MTU | we are client | we are server |\n"
    "|---|---|---|---|---|---|---|\n"
)


class Row(collections.namedtuple("Row", "what transport by family mtu case", defaults=[None])):
    """A line of the table. case: another name for it in the test's output."""

    def name(self):
        words = self.case or f"{self.what} {'cm' if self.by == 'rdma_cm' else ''}"
        text = f"{words} {self.family} {self.mtu}"
        return re.sub(r"[^A-Za-z0-9_]+", "_", text.replace("-R ", "")).strip("_")

    def line(self, roles):
        cells = ["yes" if role in roles else "" for role in ("client", "server")]
        told = [self.what, self.transport, self.by, self.family, self.mtu, *cells]
        return "| " + " | ".join(map(str, told)) + " |\n"


class Table:
    """Collects what passed."""

    def __init__(self, peer):
        self.peer = peer
        self.roles = {}  # of a row, in the order in which rows were first told of

    def add(self, row, role):
        self.roles.setdefault(row._replace(case=None), set()).add(role)

    def text(self):
        rows = sorted(self.roles, key=lambda r: (r.by, r.transport, r.what, r.family, r.mtu))
        return HEAD + "".join(row.line(self.roles[row]) for row in rows)

    def bounds(self, page):
        begin = page.find(f"<!-- {self.peer} -->\n\n")
        end = page.find("\n<!-- end -->", begin)
        demand(begin >= 0 and end >= 0, f"{PATH} has no place for {self.peer}")
        return begin + len(f"<!-- {self.peer} -->\n\n"), end

    def write(self):
        with open(PATH, encoding="utf-8") as file:
            page = file.read()
        begin, end = self.bounds(page)
        with open(PATH, "w", encoding="utf-8") as file:
            file.write(page[:begin] + self.text() + page[end:])

    def check(self):
        with open(PATH, encoding="utf-8") as file:
            page = file.read()
        begin, end = self.bounds(page)
        there, ran = page[begin:end].splitlines(), self.text().splitlines()
        wrong = [f"did not pass: {line}" for line in there if line not in ran]
        wrong += [f"not in the table: {line}" for line in ran if line not in there]
        demand(not wrong, "\n".join(["docs/interop.md is not what ran:", *wrong[:20]]))
