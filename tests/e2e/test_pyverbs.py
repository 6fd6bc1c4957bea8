#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 300 s
"""rdma-core's own suite (pyverbs) on lo, but for what belongs to a vendor and for connections,
which test_pyverbs_rdmacm runs. A test may be skipped only for a reason that is known here, and
docs/pyverbs.md has it in its table; `--write` writes that."""

import os
import re
import sys
import tempfile

import e2e
import pyverbs_suite
from e2e import Failed, Process, Skip, demand, on_nic

MODULES = (
    "addr atomic cq cq_events cqex device flow fork mr odp parent_domain pd qp qpex "
    "relaxed_ordering rss_traffic shared_pd tag_matching"
).split()
TESTS = 160
LIMIT = 60  # of one module
PAGE = os.path.join(e2e.ROOT, "docs", "pyverbs.md")
HUGE = "/proc/sys/vm/nr_hugepages"
HUGE_PAGES = 16
# What a skip says, and why it is right.
SKIPS = {
    r"Create QP type 8 is not supported": "raw packets are no RoCE",
    r"Create Raw Packet QP .* is not supported": "raw packets are no RoCE",
    r"Allocating dmabuf is not supported by .*": "memory of a GPU: there is none",
    r"(Device|Lack of permission).*/dev/dri/.*": "memory of a GPU: there is none",
    r"There are no huge pages of size 2M allocated": "this machine has set none aside",
    r"Extended CQ is not supported": "tag matching is no RoCE",
}


class HugePages:
    """Some for the tests that want them, where we may set them aside."""

    def __enter__(self):
        with open(HUGE, encoding="ascii") as file:
            self.before = int(file.read())
        self.set(self.before + HUGE_PAGES)

    def __exit__(self, *_):
        self.set(self.before)

    @staticmethod
    def set(number):
        try:
            with open(HUGE, "w", encoding="ascii") as file:
                file.write(str(number))
        except OSError as reason:
            print(f"# no huge pages: {reason}", flush=True)


def known(why):
    return next((reason for words, reason in SKIPS.items() if re.fullmatch(words, why)), None)


def table(skipped):
    """skipped: module, test, what it said."""
    lines = [f"| {m} | {t} | {known(why)} |\n" for m, t, why in skipped]
    return "| module | test | why it is skipped |\n|---|---|---|\n" + "".join(lines)


def page(skipped):
    """The page with this table, and as it is."""
    with open(PAGE, encoding="utf-8") as file:
        old = file.read()
    head, begin, rest = old.partition("<!-- skipped -->\n\n")
    _, end, foot = rest.partition("\n<!-- end -->")
    return head + begin + table(skipped) + end + foot, old


def compare(skipped):
    """What this machine lacks may be in the page or not; nothing else may be missing there."""
    new, old = page(skipped)
    if "--write" in sys.argv[1:]:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(new)
        return
    for line in table(skipped).splitlines():
        demand(line in old or "this machine" in line, f"docs/pyverbs.md has no line: {line}")


def results(text):
    """Name, verdict and reason of each test that the output tells of."""
    name = None
    for line in text.splitlines():
        begins = re.match(r"(test_\w+) \(tests\.", line)
        if begins:
            name = begins.group(1)
        # What the test printed may stand between the dots and the verdict.
        ends = re.search(r"(?:^|\.\.\. )(?:skipped '(?P<why>.*)'|(?P<how>ok|FAIL|ERROR))$", line)
        if name and ends:
            yield name, ends["how"] or "skip", ends["why"]
            name = None


def run_module(folder, module):
    words = ["tests/run_tests.py", "-v", "--dev", "vb_lo", "tests.test_" + module]
    with Process(on_nic(pyverbs_suite.PYTHON, *words), cwd=folder) as process:
        status = process.wait(LIMIT)
        return status, process.both()


def judge(how, why, text):
    if how == "skip":
        demand(known(why), f"skipped for an unknown reason: {why}")
        raise Skip(f"{why}: {known(why)}")
    demand(how == "ok", text)


def cases(tap):
    ran, skipped = 0, []
    try:
        pyverbs_suite.need()
    except Skip as reason:
        tap.say("ok", "suite", f" # SKIP {reason}")
        return
    with HugePages(), tempfile.TemporaryDirectory(prefix="verbena-test-") as folder:
        pyverbs_suite.unpack(folder)
        for module in MODULES:
            try:
                status, text = run_module(folder, module)
                verdicts = list(results(text))
            except (Failed, OSError) as reason:
                status, text, verdicts = 1, str(reason), []
            for name, how, why in verdicts:
                tap.run(f"{module}__{name}", judge, how, why, text)
            ran += len(verdicts)
            skipped += [(module, name, why) for name, how, why in verdicts if how == "skip"]
            if status != 0 and all(how in ("ok", "skip") for _, how, _ in verdicts):
                tap.run(module, demand, False, text)
    tap.run("all_tests", demand, ran == TESTS, f"{ran} tests, not {TESTS}")
    tap.run("page", compare, skipped)


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    sys.exit(e2e.main(cases))
