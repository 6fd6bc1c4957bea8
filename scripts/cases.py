#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which case from the field is shown by which test: docs/cases.md, from tests/cases.txt.

    scripts/cases.py            writes the page
    scripts/cases.py --check    says whether the page is as it would be written

Exit code 1 for a case that has neither a test nor a reason, a test of a case that is not listed, a
line of the list in another form, or (with --check) a page that is out of date. Tested by
tests/house/test_cases.py.
"""

import os
import re
import sys

import tidy
import tree

LIST = "tests/cases.txt"
PAGE = "docs/cases.md"
NAME = r"(case_(L?\d+)(?:_\w+)?)"
# A cmocka function (that it runs, the compiler sees: unused ones are refused), a dialogue, a case
# of a script.
C_TEST = re.compile(rf"^static void {NAME}\(void \*\*|\{{\"{NAME}\"", re.MULTILINE)
SCRIPT_TEST = re.compile(rf"[\"']{NAME}[\"']")
ROW = re.compile(r"(L?\d+) \| ([^|]+) \|(?: ([^|]+))?")

HEAD = """# Cases from the field

Made by `scripts/cases.py` from `tests/cases.txt` and the names of the tests; `./run check` refuses
a case that has neither a test nor a reason. Each is something that went wrong with RDMA elsewhere;
the comment at the test says what is right.

| case | about | tests | not tested |
|---|---|---|---|
"""


def read_list(text):
    """({number: (title, reason or "")}, findings)"""
    cases, findings = {}, []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = ROW.fullmatch(line)
        if not match:
            findings.append((LIST, number, "not of the form: number | title | reason"))
        elif match[1] in cases:
            findings.append((LIST, number, f"case {match[1]} is listed twice"))
        else:
            cases[match[1]] = (match[2], match[3] or "")
    return cases, findings


def find_tests(files):
    """{number: [(path, name)]}, each name once a file."""
    tests = {}
    for path in sorted(files):
        if not path.startswith("tests/") or path.startswith("tests/house/"):
            continue
        if path.endswith(".c"):
            pattern = C_TEST
        elif path.endswith((".py", ".sh")):
            pattern = SCRIPT_TEST
        else:
            continue
        for match in pattern.finditer(files[path]):
            name, number = (part for part in match.groups() if part)
            places = tests.setdefault(number, [])
            if (path, name) not in places:
                places.append((path, name))
    return tests


def collect(files):
    """(cases, tests, findings)"""
    cases, findings = read_list(files.get(LIST, ""))
    tests = find_tests(files)
    for number, (_, reason) in cases.items():
        if number not in tests and not reason:
            findings.append((LIST, 1, f"case {number} has neither a test nor a reason"))
    for number, places in tests.items():
        if number not in cases:
            findings.append((places[0][0], 1, f"case {number} is not in {LIST}"))
    return cases, tests, findings


def order(number):
    return not number.startswith("L"), int(number.lstrip("L"))


def render(cases, tests):
    rows = []
    for number in sorted(cases, key=order):
        title, reason = cases[number]
        shown = ", ".join(f"[`{name}`](../{path})" for path, name in tests.get(number, []))
        rows.append(f"| {number} | {title} | {shown} | {reason} |")
    return HEAD + "\n".join(rows) + "\n"


def main(arguments):
    files = tidy.read_tree()
    cases, tests, findings = collect(files)
    page = render(cases, tests)
    for path, line, message in findings:
        print(f"{path}:{line}: {message}")
    failed = bool(findings)
    if "--check" in arguments:
        if files.get(PAGE) != page:
            print(f"{PAGE}: out of date; run scripts/cases.py")
            failed = True
    else:
        with open(os.path.join(tree.ROOT, PAGE), "w", encoding="utf-8") as out:
            out.write(page)
    untested = sum(1 for number in cases if number not in tests)
    print(f"cases: {len(cases)}, {untested} without a test yet, {len(findings)} findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
