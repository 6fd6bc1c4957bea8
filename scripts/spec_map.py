#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which clause of a specification is obeyed where, and which test shows it: docs/spec-map.md.

    scripts/spec_map.py            writes the page
    scripts/spec_map.py --check    says whether the page is as it would be written

Exit code 1 for a tag in src that no test carries, a tag of requester, responder or completer
without a valid and an invalid dialogue, a tag in a form that is not one of FORMS, or (with --check)
a page that is out of date. Tested by tests/house/test_spec_map.py.
"""

import os
import re
import sys

import tidy
import tree

PAGE = "docs/spec-map.md"
FORMS = (
    "IBA C9-105, IBA 9.7.7.2, IBA A17.9.3, RFC 8200, RFC 8200 4.1, RFC 4291 appendix A; what is "
    "not obeyed: DEVIATES: with one of these or a manual page, as ibv_wr_complete(3), and a colon"
)
CLAUSE = (
    r"IBA (?:[Co]\d+-\d+(?:\.\d+)*|A\d+(?:\.\d+)*|\d+(?:\.\d+)+)"
    r"|RFC \d+(?: (?:appendix [A-Z]|\d+(?:\.\d+)+))?"
)
TAG = re.compile(rf"DEVIATES: (?:{CLAUSE}|\w+\(\d\))(?=:)|\b(?:{CLAUSE})")
# What announces a tag; where none begins, someone wrote it in another form.
WORD = re.compile(r"\bDEVIATES\b|\bIBA\b|\bRFC\b|\b[Co]9-\d|\b[Co]1[01]-\d|\bA1[4-9]\.\d")
SOURCES = ("src/", "include/", "tools/")
ROLES = ("src/nic/roce/", "src/nic/timers.", "src/nic/nic.c")

HEAD = """# Specification map

Made by `scripts/spec_map.py` from the tags in comments; `./run check` refuses a tag of the sources
that no test carries, and one of requester, responder, completer or timers without a valid and an
invalid dialogue of `tests/script`. A tag stands where the clause is obeyed, in the sources, and at
the test or dialogue that shows it. A row that begins with DEVIATES names what is not obeyed; the
reason is in the source. How to write a tag is in [testing.md](testing.md).

| clause | obeyed in | shown by |
|---|---|---|
"""


def tags_of(text):
    """(line, tag) of each tag; tag None: a word that should begin one but does not."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        spans = [match.span() for match in TAG.finditer(line)]
        found += [(number, match.group(0)) for match in TAG.finditer(line)]
        for match in WORD.finditer(line):
            if not any(begin <= match.start() < end for begin, end in spans):
                found.append((number, None))
    return found


def place_of(path, text, line):
    """The function, dialogue or constant that a line belongs to; None: the file."""
    if not path.endswith(".c") and not path.endswith(".h"):
        return None
    code = tidy.code_of(text).split("\n")
    for name, first, last in tidy.functions(text):
        if first <= line <= last:
            return name
    if not any(part.strip() for part in code[:line]):
        return None  # the head of the file
    raw = text.split("\n")
    for number in range(line - 1, len(raw)):
        row = re.search(r'\{"(\w+)"', raw[number])
        if row:
            return row[1]
        word = re.search(r"\b([A-Z][A-Z0-9_]{2,})\b(?=\s*[=,])", code[number])
        call = re.search(r"\b(\w+)\(", code[number])
        if word or call:
            return (word or call)[1]
    return None


def collect(files):
    """({tag: places in src}, {tag: places in tests}, findings); a place is (path, name or None)."""
    sources, tests, findings, first = {}, {}, [], {}
    for path, text in files.items():
        ours = path.startswith(SOURCES) and tidy.is_c(path)
        theirs = path.startswith("tests/") and not path.startswith("tests/house/")
        if not ours and not (theirs and path.endswith((".c", ".h", ".py", ".sh"))):
            continue
        for line, tag in tags_of(text):
            if tag is None:
                findings.append((path, line, f"a tag in an unknown form; known are {FORMS}"))
                continue
            places = (sources if ours else tests).setdefault(tag, [])
            place = (path, place_of(path, text, line))
            if place not in places:
                places.append(place)
            if ours:
                first.setdefault(tag, (path, line))
    findings += [(*first[tag], f"no test carries {tag}") for tag in first if tag not in tests]
    findings += dialogues_missing(files, sources, tests)
    return sources, tests, findings


def dialogues_missing(files, sources, tests):
    """What the roles obey is told by dialogues: one that goes well, one about something wrong."""
    for tag, places in sorted(sources.items()):
        wanted = [path for path, _ in places if path.startswith(ROLES)]
        if not wanted or tag.startswith("DEVIATES"):
            continue
        kinds = set()
        for path, name in tests.get(tag, []):
            if path.startswith("tests/script/"):
                kinds.update(re.findall(rf'\{{"{name}",\s*(true|false)', files[path]))
        for kind, word in (("false", "valid"), ("true", "invalid")):
            if kind not in kinds:
                yield wanted[0], 1, f"no {word} dialogue carries {tag}"


def order(tag):
    """IBA sections, statements and annexes, then RFCs, then deviations; numbers as numbers."""
    kind = 2 if tag.startswith("DEVIATES") else 1 if tag.startswith("RFC") else 0
    letters = re.findall(r"(?<= )[A-Z](?=\d)", tag)
    return kind, letters, [int(number) for number in re.findall(r"\d+", tag)], tag


def link(place):
    path, name = place
    return f"[`{name}`](../{path})" if name else f"[{path.rpartition('/')[2]}](../{path})"


def render(sources, tests):
    rows = []
    for tag in sorted(sources, key=order):
        where = ", ".join(link(place) for place in sources[tag])
        shown = ", ".join(link(place) for place in tests.get(tag, [])) or "nothing"
        rows.append(f"| {tag} | {where} | {shown} |")
    return HEAD + "\n".join(rows) + "\n"


def main(arguments):
    files = tidy.read_tree()
    sources, tests, findings = collect(files)
    page = render(sources, tests)
    for path, line, message in findings:
        print(f"{path}:{line}: {message}")
    failed = bool(findings)
    if "--check" in arguments:
        if files.get(PAGE) != page:
            print(f"{PAGE}: out of date; run scripts/spec_map.py")
            failed = True
    else:
        with open(os.path.join(tree.ROOT, PAGE), "w", encoding="utf-8") as out:
            out.write(page)
    print(f"spec map: {len(sources)} tags, {len(findings)} findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
