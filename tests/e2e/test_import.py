#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Objects of one process in another, by Debian's pyverbs: two programs that have nothing in common
but a command descriptor and numbers."""

import os
import sys
import tempfile

import e2e
import pyverbs_suite
from e2e import Process, demand, on_nic

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "importer.py")
IMPORTED = [
    "private ENOTSUP",  # memory that only the exporter has
    "unmapped ENOTSUP",  # not mapped here so far
    "mapped 65536",
    "dm exporter",
    "domain ENOTSUP",  # XRC: not shared
]


def import_export():
    with tempfile.TemporaryDirectory(prefix="verbena-test-") as folder:
        path = os.path.join(folder, "socket")
        words = [pyverbs_suite.PYTHON, PROGRAM]
        with Process(on_nic(*words, "export", path)) as exporter:
            e2e.wait_until(lambda: "listens" in exporter.text(), what="the exporter")
            with Process(on_nic(*words, "import", path)) as importer:
                found = importer.expect().split("\n")[:-1]
            demand(found == IMPORTED, f"the importer found {found}")
            said = exporter.expect()
    demand(said.endswith("dm importer\nclosed\n"), f"the exporter said {said}")


def cases(tap):
    try:
        pyverbs_suite.need()
    except e2e.Skip as reason:
        tap.say("ok", "pyverbs", f" # SKIP {reason}")
        return
    tap.run("domain_region_and_device_memory", import_export)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
