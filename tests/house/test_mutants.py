#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""mutants.py reads its table and changes what the table means, and refuses the rest; each mutant of
tests/mutants still applies to the tree."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../scripts"))
import mutants  # noqa: E402 (the path comes first)
from results import report  # noqa: E402

CODE = """int a(void)
{
    if (x > 1)
        return 2;
    return 3;
}

int b(void)
{
    return 3;
}
"""
HEAD = "[m]\nrule: r\nfile: f.c\n"

# name, table, the changed text (None: refused)
ROWS = (
    ("one_line", HEAD + "- return 2;\n+ return 4;\n", CODE.replace("return 2", "return 4")),
    ("part_of_a_line", HEAD + "- x > 1\n+ x >= 1\n", CODE.replace(">", ">=")),
    ("line_breaks_may_move", HEAD + "- if (x > 1) return 2;\n+ ;\n", None),
    ("in_a_function", HEAD + "in: b\n- return 3;\n+ ;\n", ";".join(CODE.rsplit("return 3;", 1))),
    ("two_changes", HEAD + "- x > 1\n+ y\n- return 2;\n+ ;\n", None),
    ("without_new_lines", HEAD + "- return 2;\n", CODE.replace("return 2;", "")),
    ("gone", HEAD + "- return 5;\n+ ;\n", None),
    ("more_than_one_place", HEAD + "- return 3;\n+ ;\n", None),
    ("other_blank_less_text", HEAD + "- return2;\n+ ;\n", None),
    ("no_such_function", HEAD + "in: c\n- return 3;\n+ ;\n", None),
    ("not_in_that_function", HEAD + "in: b\n- return 2;\n+ ;\n", None),
    ("no_such_file", "[m]\nrule: r\nfile: g.c\n- a\n+ b\n", None),
    ("no_rule", "[m]\nfile: f.c\n- return 2;\n+ ;\n", None),
    ("no_change", HEAD, None),
    ("new_before_old", HEAD + "+ ;\n- return 2;\n", None),
    ("same_name_twice", 2 * (HEAD + "- return 2;\n+ ;\n"), None),
    ("some_other_line", HEAD + "return 2;\n", None),
)
CHANGED = {
    "line_breaks_may_move": CODE.replace("if (x > 1)\n        return 2;", ";"),
    "two_changes": CODE.replace("x > 1", "y").replace("return 2;", ";"),
}


def read(path):
    if path != "f.c":
        raise OSError(path)
    return CODE


def outcome(table):
    try:
        (mutant,) = mutants.parse(table)
        return mutants.mutate(mutant, read)["f.c"]
    except mutants.Broken:
        return None


def source(path):
    with open(os.path.join(mutants.ROOT, path), encoding="utf-8") as file:
        return file.read()


def applies(mutant):
    try:
        texts = mutants.mutate(mutant, source)
    except mutants.Broken as error:
        return str(error)
    same = [path for path, text in texts.items() if text == source(path)]
    return f"changes nothing in {same}" if same else None


def main():
    results = []
    for name, table, want in ROWS:
        want = CHANGED.get(name, want)
        found = outcome(table)
        results.append((name, found == want, found))
    for mutant in mutants.load():
        said = applies(mutant)
        results.append(("applies " + mutant.name, said is None, said))
    chosen = [mutants.choose(list(range(10)), n) for n in (1, 3, 10, 20)]
    lengths = [len(set(some)) for some in chosen]
    results.append(("sample_has_no_twins", lengths == [1, 3, 10, 10], lengths))
    return report(results)


if __name__ == "__main__":
    sys.exit(main())
