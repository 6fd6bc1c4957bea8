# SPDX-License-Identifier: BSD-2-Clause
"""rdma-core's own Python tests, as Debian packs them: where they are, and unpacked into a folder."""

import glob
import gzip
import os
import shutil

from e2e import Skip

PYTHON = "/usr/bin/python3"  # the one that Debian's pyverbs is built for
SUITE = "/usr/share/doc/rdma-core/tests"


def need():
    if not os.path.isdir(SUITE) or not os.path.exists(PYTHON):
        raise Skip("no pyverbs tests here")


def unpack(folder):
    """To folder/tests, from where `python3 tests/run_tests.py` finds its modules."""
    tests = os.path.join(folder, "tests")
    os.mkdir(tests)
    for path in glob.glob(SUITE + "/*"):
        name = os.path.basename(path).removesuffix(".gz")
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rb") as packed, open(os.path.join(tests, name), "wb") as plain:
            shutil.copyfileobj(packed, plain)
