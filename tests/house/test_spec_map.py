#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""spec_map.py finds tags, says where they are, and refuses those in no form or without a test."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../scripts"))
import spec_map  # noqa: E402 (the path comes first)
from results import report  # noqa: E402

# name, text, the tags in it (None: a word in no form)
ROWS = (
    ("statement", "/* IBA C9-105: again */", ["IBA C9-105"]),
    ("optional_statement", "/* IBA o9-20 */", ["IBA o9-20"]),
    ("section", "/* a limit (IBA 9.7.7.2), then */", ["IBA 9.7.7.2"]),
    ("annex", "/* IBA A17.9.3 */", ["IBA A17.9.3"]),
    ("two", "/* IBA 7.8.1, IBA A17.3.3: x */", ["IBA 7.8.1", "IBA A17.3.3"]),
    ("rfc", "/* as RFC 5952 wants */", ["RFC 5952"]),
    ("rfc_section", "/* RFC 8200 4.1: x */", ["RFC 8200 4.1"]),
    ("rfc_appendix", "/* RFC 4291 appendix A */", ["RFC 4291 appendix A"]),
    ("rfc_and_a_number", "/* RFC 768: 0 means none, RFC 768 0 */", ["RFC 768", "RFC 768"]),
    ("deviation", "/* DEVIATES: RFC 8200 8.1: x */", ["DEVIATES: RFC 8200 8.1"]),
    ("deviation_from_a_page", "DEVIATES: ibv_wr_complete(3): x", ["DEVIATES: ibv_wr_complete(3)"]),
    ("guard", "#ifndef WIRE_IBA_H", []),
    ("no_number", "/* the IBA says */", [None]),
    ("chapter", "/* IBA volume 1 */", [None]),
    ("statement_alone", "/* C9-105: again */", [None]),
    ("annex_alone", "/* A17.9.3 */", [None]),
    ("second_without_iba", "/* IBA 7.8.1, A17.3.3 */", ["IBA 7.8.1", None]),
    ("deviation_of_what", "/* DEVIATES: the verb promises */", [None]),
    ("deviation_without_reason", "/* DEVIATES: RFC 8200 8.1 refuses */", ["RFC 8200 8.1", None]),
)

SOURCE = """/* SPDX */
/* head: IBA 9.2 */
enum { X_BYTES = 3 }; /* IBA 9.3 */

/* IBA 9.4 */
int declared(int x);

int f(void)
{
    return 1; /* IBA 9.5 */
}
"""
TEST = """/* SPDX */
static const struct dialogue d[] = {
    /* IBA 9.2, IBA 9.3 */
    {"row__one", false},
    {"row__two", false}, /* IBA 9.4 */
};
/* IBA 9.5 */
static void case_1(void **state)
{
}
"""


ROLE = "/* SPDX */\n\nint f(void)\n{\n    return 1; /* IBA 9.5 */\n}\n"
GOOD = '    /* IBA 9.5 */\n    {"row__good", false, WITH(), 0},\n'
BAD = '    /* IBA 9.5 */\n    {"row__bad", true, WITH(), 0},\n'
FUNCTION = "/* IBA 9.5 */\nstatic void row__bad(void **state)\n{\n}\n"
# name, the source, the dialogues, another test, how many kinds of dialogue are missing
DIALOGUES = (
    ("both_dialogues", "src/nic/roce/a.c", GOOD + BAD, "", 0),
    ("only_valid_ones", "src/nic/roce/a.c", GOOD, "", 1),
    ("only_invalid_ones", "src/nic/timers.c", BAD, "", 1),
    ("a_function_is_no_dialogue", "src/nic/roce/a.c", GOOD, FUNCTION, 1),
    ("only_a_function", "src/nic/nic.c", "", FUNCTION, 2),
    ("not_of_a_role", "src/nic/cq.c", "", FUNCTION, 0),
)


def dialogues():
    for name, path, rows, other, want in DIALOGUES:
        files = {path: ROLE, "tests/nic/test_b.c": other}
        files["tests/script/test_a.c"] = "static const struct dialogue d[] = {\n" + rows + "};\n"
        found = spec_map.collect(files)[2]
        yield name, len(found) == want, found


def places():
    files = {"src/nic/a.c": SOURCE, "tests/nic/test_a.c": TEST}
    sources, tests, findings = spec_map.collect(files)
    named = [sources[f"IBA 9.{n}"][0][1] for n in (2, 3, 4, 5)]
    yield "places_in_sources", named == [None, "X_BYTES", "declared", "f"], named
    named = [tests[f"IBA 9.{n}"][0][1] for n in (2, 3, 4, 5)]
    yield "places_in_tests", named == ["row__one", "row__one", "row__two", "case_1"], named
    yield "all_shown", not findings, findings
    page = spec_map.render(sources, tests)
    row = "| IBA 9.5 | [`f`](../src/nic/a.c) | [`case_1`](../tests/nic/test_a.c) |"
    yield "row_of_the_page", row in page, page
    findings = spec_map.collect({"src/nic/a.c": SOURCE})[2]
    yield "tag_without_test", [f[2] for f in findings][0] == "no test carries IBA 9.2", findings
    findings = spec_map.collect({"tests/nic/test_a.c": "/* IBA */"})[2]
    yield "form_in_a_test", len(findings) == 1, findings
    findings = spec_map.collect({"docs/x.md": "IBA", "tests/house/test_x.py": "IBA"})[2]
    yield "not_looked_at", not findings, findings
    tags = ["RFC 768", "IBA A17", "DEVIATES: RFC 768", "IBA C9-88", "IBA 10.3", "IBA 9.7.7"]
    tags = sorted(tags, key=spec_map.order)
    want = ["IBA 9.7.7", "IBA 10.3", "IBA A17", "IBA C9-88", "RFC 768", "DEVIATES: RFC 768"]
    yield "order", tags == want, tags


def main():
    results = []
    for name, text, want in ROWS:
        found = [tag for _, tag in spec_map.tags_of(text)]
        results.append((name, found == want, found))
    results += places()
    results += dialogues()
    return report(results)


if __name__ == "__main__":
    sys.exit(main())
