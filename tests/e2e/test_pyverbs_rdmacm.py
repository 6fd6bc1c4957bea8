#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The connection tests of rdma-core's own suite (pyverbs): each of them forks an active and a
passive side, which meet at one address of a veth interface."""

import os
import re
import shutil
import sys
import tempfile

import e2e
import pyverbs_suite
from e2e import Failed, Process, Skip, demand, on_nic, wait_until

INTERFACE = "vbpy0"
ADDRESS = "10.89.7.1"
LIMIT = 60
# The suite learns a device's interface from a directory of the kernel's. Where our files do not
# appear by themselves, a mount namespace shows them: all of /sys/class, and the device besides.
MOUNTS = """
set -e
mount -t tmpfs none "$1"
for class in /sys/class/*; do
    mkdir "$1/${class##*/}"
    mount --bind "$class" "$1/${class##*/}"
done
mkdir -p "$1/infiniband/$2/device/net/$3"
mount --rbind "$1" /sys/class
shift 3
exec "$@"
"""


class Suite:
    """The tests, unpacked, and an interface for them."""

    def __enter__(self):
        e2e.need_root()
        e2e.need("ip", "unshare")
        pyverbs_suite.need()
        self.folder = tempfile.mkdtemp(prefix="verbena-test-")
        try:
            pyverbs_suite.unpack(self.folder)
            os.mkdir(os.path.join(self.folder, "class"))
            self.make_interface()
        except BaseException:
            self.__exit__()
            raise
        self.inside = self.way_in()
        return self

    def __exit__(self, *_):
        e2e.run(["ip", "link", "delete", INTERFACE], 10)
        shutil.rmtree(self.folder)

    @staticmethod
    def make_interface():
        link = ["ip", "link", "add", INTERFACE, "type", "veth", "peer", "name", INTERFACE + "p"]
        status, _, errors = e2e.run(link, 10)
        if status != 0:
            raise Skip(f"no veth interfaces here: {errors.strip()}")
        for words in (
            ["address", "add", ADDRESS + "/24", "dev", INTERFACE],
            ["link", "set", INTERFACE, "up"],
            ["link", "set", INTERFACE + "p", "up"],
        ):
            status, _, errors = e2e.run(["ip", *words], 10)
            demand(status == 0, errors)

        def settled():
            _, text, _ = e2e.run(["ip", "address", "show", "dev", INTERFACE], 10)
            return "tentative" not in text and "fe80" in text

        wait_until(settled, 10, "the addresses to be usable")

    def way_in(self):
        """Words before the command."""
        device = "vb_" + INTERFACE
        there = f"/sys/class/infiniband/{device}/device/net/"
        status, text, _ = e2e.run(on_nic("ls", there), 20)
        if status == 0 and text.split() == [INTERFACE]:
            return []
        shown = os.path.join(self.folder, "class")
        words = ["unshare", "-m", "sh", "-c", MOUNTS, "sh", shown, device, INTERFACE]
        status, _, errors = e2e.run([*words, "ls", there], 20)
        if status != 0:
            raise Skip(f"no mount namespaces here: {errors.strip()}")
        return words

    def names(self):
        with open(os.path.join(self.folder, "tests", "test_rdmacm.py"), encoding="utf-8") as text:
            return re.findall(r"^    def (test_\w+)", text.read(), re.MULTILINE)

    def run(self, name):
        words = on_nic(
            pyverbs_suite.PYTHON,
            "tests/run_tests.py",
            "-v",
            "--dev",
            "vb_" + INTERFACE,
            "tests.test_rdmacm.CMTestCase." + name,
        )
        with Process([*self.inside, *words], cwd=self.folder) as process:
            status = process.wait(LIMIT)
            text = process.both()
        skipped = re.search(r"\.\.\. skipped '(.*)'", text)
        if skipped:
            raise Skip(skipped.group(1))
        if status != 0 or "OK" not in text or not re.search(r"^Ran 1 test ", text, re.MULTILINE):
            raise Failed(text)


def cases(tap):
    try:
        with Suite() as suite:
            names = suite.names()
            tap.run("ten_tests", lambda: demand(len(names) == 10, f"{len(names)}: {names}"))
            for name in names:
                tap.run(name, suite.run, name)
    except Skip as reason:
        tap.say("ok", "pyverbs_rdmacm", f" # SKIP {reason}")


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
