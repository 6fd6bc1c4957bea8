#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 200 s
"""The soak (scripts/soak.py) for half a minute, in check-long for one: loss, copies, reordering,
processes stopped and killed, links down, connections renewed."""

import os
import sys

import e2e

SECONDS = 60 if e2e.LONG else 25


def case_68():
    """rxe#28: loss, or a full queue, locked up. 5 % loss, 5 % copies, 5 % reordered: connections
    go on, and a process whose peer is stopped or unreachable takes no CPU time."""
    script = os.path.join(e2e.ROOT, "scripts", "soak.py")
    with e2e.Process([sys.executable, script, "--seconds", str(SECONDS), "-v"]) as process:
        status = process.wait(SECONDS + 110)
        e2e.demand(status == 0, process.tail(40))
        return "\n# ".join(process.text().splitlines())


def mixed():
    """RC, XRC, UC, UD and windows at once."""
    script = os.path.join(e2e.ROOT, "scripts", "soak_mixed.py")
    words = [script, "--seconds", str(SECONDS // 2), "--built", e2e.BUILD]
    with e2e.Process([sys.executable, *words]) as process:
        status = process.wait(SECONDS // 2 + 200)
        e2e.demand(status == 0, process.tail(40))
        return "\n# ".join(process.text().splitlines())


def cases(tap):
    tap.run("mixed", mixed)
    tap.run("case_68", case_68)


if __name__ == "__main__":
    sys.exit(e2e.main(cases, isolated=False))
