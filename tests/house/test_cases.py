#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""cases.py finds the tests of each case, and refuses a case without test or reason."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../scripts"))
import cases  # noqa: E402 (the path comes first)
from results import report  # noqa: E402

# name, the list, a word of the only finding (None: there is none)
LISTS = (
    ("tested", "1 | one |", None),
    ("reason", "1 | one |\n2 | two | Waits for it.", None),
    ("both", "1 | one | Half of it waits.", None),
    ("comment_and_blank", "# 9 | nine\n\n1 | one |\n", None),
    ("neither", "1 | one |\n2 | two |", "case 2 has neither"),
    ("twice", "1 | one |\n1 | other |", "listed twice"),
    ("no_title", "1 | one |\n2 |  |", "form"),
    ("no_bars", "1 | one |\n2 two", "form"),
    ("four_fields", "1 | one |\n2 | two | a | b", "form"),
    ("no_number", "1 | one |\nX2 | two | why", "form"),
    ("tested_but_not_listed", "2 | two | Waits.", "case 1 is not in"),
)

# name, path, text, numbers of the tests in it
TEXTS = (
    ("function", "tests/a/test_a.c", "static void case_7(void **state)\n", ["7"]),
    ("detail", "tests/a/test_a.c", "static void case_7__more(void **state)\n", ["7"]),
    ("letter", "tests/a/test_a.c", "static void case_L8_live(void **state)\n", ["L8"]),
    ("dialogue", "tests/a/test_a.c", '    {"case_7__row", false},\n', ["7"]),
    ("script", "tests/a/test_a.py", 'run("case_7__x", case_7)\n', ["7"]),
    ("comment", "tests/a/test_a.c", "/* case_7 */\n", []),
    ("only_registered", "tests/a/test_a.c", "cmocka_unit_test(case_7),\n", []),
    ("helper", "tests/a/test_a.c", "static void case_7(int x)\n", []),
    ("not_a_number", "tests/a/test_a.c", "static void case_x(void **state)\n", []),
    ("script_function_alone", "tests/a/test_a.py", "def case_7():\n", []),
    ("house", "tests/house/test_a.py", 'run("case_7")\n', []),
    ("source", "src/a/a.c", "static void case_7(void **state)\n", []),
    ("prose", "tests/a.md", '"case_7"\n', []),
)
TEST = "static void case_1(void **state)\n"


def page():
    files = {cases.LIST: "L2 | gap |\n10 | ten | why\n2 | two |", "tests/a/t.c": TEST}
    files["tests/a/t.c"] += "static void case_2(void **state)\nstatic void case_L2_x(void **state)"
    listed, tests, _ = cases.collect(files)
    text = cases.render(listed, tests)
    yield "order", text.index("| L2 |") < text.index("| 2 |") < text.index("| 10 |"), text
    yield "row", "| 2 | two | [`case_2`](../tests/a/t.c) |  |\n" in text, text
    yield "reason_row", "| 10 | ten |  | why |\n" in text, text


def main():
    results = []
    for name, text, want in LISTS:
        found = [f[2] for f in cases.collect({cases.LIST: text, "tests/a/test_a.c": TEST})[2]]
        good = not found if want is None else len(found) == 1 and want in found[0]
        results.append((name, good, found))
    for name, path, text, want in TEXTS:
        found = list(cases.find_tests({path: text}))
        results.append((name, found == want, found))
    results += page()
    return report(results)


if __name__ == "__main__":
    sys.exit(main())
