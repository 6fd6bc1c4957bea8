#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tidy.py refuses what it should and nothing else: a row a rule broken, then rows that pass."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../scripts"))
import tidy  # noqa: E402 (the path comes first)
from results import report  # noqa: E402

SPDX = "/* SPDX-License-Identifier: BSD-2-Clause */\n"
TESTS = {"tests/nic/test_good.c": SPDX}
LONG_BODY = "int f(void)\n{\n" + "    g();\n" * 69 + "}\n"
OPEN = "TO" "DO"

# name, path, text without its SPDX line, a piece of the message (None: no finding)
ROWS = (
    ("upward_include", "src/nic/good.c", '#include "host/host.h"\n', "must not know floor host"),
    ("sideways_include", "src/port/good.h", '#include "nic/nic.h"\n', "must not know floor nic"),
    ("embedder_api_in_wire", "src/wire/good.h", '#include "verbena/types.h"\n', "must not know"),
    ("include_without_floor", "src/nic/good.c", '#include "qp.h"\n', "not written as floor/file.h"),
    ("test_looks_up", "tests/wire/test_x.c", '#include "nic/nic.h"\n', "uses floor nic"),
    ("socket_header", "src/nic/good.c", "#include <sys/socket.h>\n", "<sys/socket.h> in floor nic"),
    ("clock_header", "src/wire/good.h", "#include <time.h>\n", "<time.h> in floor wire"),
    ("threads_outside_lock", "src/base/good.h", "#include <pthread.h>\n", "<pthread.h> in floor"),
    ("printf_in_nic", "src/nic/good.c", "void f(void)\n{\n    printf(x);\n}\n", "printf() in"),
    ("rand_in_nic", "src/nic/good.c", "int f(void)\n{\n    return rand();\n}\n", "rand() in floor"),
    ("time_in_cm", "src/cm/good.h", "#define NOW time(NULL)\n", "time() in floor cm"),
    ("malloc_on_path", "src/nic/good.c", "void f(void)\n{\n    malloc(1);\n}\n", "malloc() in f"),
    ("touched_on_path", "src/nic/good.c", "int f(void)\n{\n    alloc_x(1);\n}\n", "alloc_x() in f"),
    ("float_in_port", "src/port/good.h", "static float x;\n", "floating point"),
    ("double_in_nic", "src/nic/good.c", "static double x;\n", "floating point"),
    ("function_of_71", "src/nic/good.c", LONG_BODY, "f has 71 lines"),
    ("header_of_301", "src/nic/good.h", "\n" * 301, "the limit is 300"),
    ("source_of_801", "src/nic/good.c", "\n" * 801, "the limit is 800"),
    ("test_of_1001", "tests/nic/test_x.c", "\n" * 1001, "the limit is 1000"),
    ("long_line", "src/nic/good.c", "/* " + "x" * 96 + " */\n", "longer than 100"),
    ("long_table_row", "src/nic/good.c", "    {" + "x" * 155 + "},\n", "longer than 160"),
    ("long_line_in_python", "scripts/x.py", "# " + "x" * 99 + "\n", "longer than 100"),
    ("typedef_struct", "src/nic/good.h", "typedef struct { int x; } x_t;\n", "typedef'd struct"),
    ("empty_comment", "src/nic/good.h", "/* */\n", "an empty comment"),
    ("no_test", "src/nic/roce/lonely.c", "", "has no test: tests/nic/test_lonely.c"),
    ("no_test_for_tool", "tools/cmd_x.c", "", "has no test: tests/tools/test_cmd_x.c"),
    ("left_open", "src/nic/good.c", f"/* {OPEN}: later */\n", "left open"),
    ("foreign_path", "docs/x.md", "see /wor" "k/main\n", "do not belong"),
    ("dead_link", "docs/x.md", "[x](nowhere.md)\n", "is not there"),
    ("name_moved", "docs/x.md", "[`gone`](../tests/nic/test_good.c)\n", "but it is not"),
    ("row_without_test", "docs/reliability.md", "| fault | test |\n|---|---|\n| x | y |\n", "a row"),
    ("row_whose_test_is_elsewhere", "docs/reliability.md", "| [`a`](b) | c |\n", "a row without"),
    ("fault_without_row", "tests/e2e/test_live_x.py", '    ("broken", f),\n', "no row in docs"),
    ("lock_without_hash", "x/package-lock.json", '"node_modules/a": {"version": 1}', "no hash of"),
    ("lock_with_addresses", "x/package-lock.json", '"resolved": 1', "has addresses"),
    ("key_twice", "tests/x.py", 'x = {"a": 1, "b": 2, "a": 3}\n', "'a' is in this dict twice"),
    ("key_in_two_dicts", "tests/x.py", 'x = {"a": {"a": 1}, "b": {"a": 1}, **y, **z}\n', None),
    ("good_lock", "x/package-lock.json", '"node_modules/a": {"integrity": "sha512-x"}', None),
    ("long_script", "src/report/x.js", "\n" * 801, "the limit is 800"),
    ("good_row", "docs/reliability.md", "| x | [`SPDX`](../tests/nic/test_good.c) |\n", None),
    ("good_links", "x.md", "[a](tests/nic) [`SPDX`](tests/nic/test_good.c) [c](http://d)\n", None),
    ("good_nic_source", "src/nic/good.c", '#include <stdint.h>\n#include "wire/psn.h"\n', None),
    ("good_roce_source", "src/nic/roce/good.c", '#include "nic/roce/roce.h"\n', None),
    ("good_create", "src/nic/good.c", "int x_create(void)\n{\n    malloc(1);\n}\n", None),
    ("good_resize", "src/nic/good.c", "int x_resize(int n)\n{\n    malloc(n);\n}\n", None),
    ("wide_table_row", "src/nic/good.c", "    {" + "x" * 150 + "},\n", None),
    ("long_expected_text", "tests/nic/test_x.c", '    "' + "x" * 120 + '",\n', None),
    ("function_of_70", "src/nic/good.c", LONG_BODY.replace("    g();\n", "", 1), None),
    ("words_in_comments", "src/nic/good.c", "/* float, printf(x), malloc(1) */\n", None),
    ("words_in_strings", "src/nic/good.c", 'static char s[] = "double rand()";\n', None),
    ("method_named_time", "src/nic/good.c", "static int x = p->time(1) + s.rand();\n", None),
    ("snprintf_is_allowed", "src/wire/good.h", "#define X snprintf(b, n, s)\n", None),
    ("host_may_do_all", "src/host/good.h", "#include <sys/socket.h>\nstatic double x;\n", None),
    ("test_looks_down", "tests/nic/test_x.c", '#include "wire/psn.h"\n', None),
    ("header_of_299", "src/nic/good.h", "\n" * 299, None),
)


def verdict(path, text, want):
    files = dict(TESTS)
    head = "# SPDX-License-Identifier: BSD-2-Clause\n" if path.endswith(".py") else SPDX
    files[path] = text if path.endswith(".md") else head + text
    found = [message for _, _, message in tidy.findings(files)]
    if want is None:
        return not found, found
    return any(want in message for message in found), found


def special():
    same = {"src/nic/qp.h": SPDX, "src/verbs/qp.h": SPDX}
    yield "same_base_name_twice", any("base name used" in m for _, _, m in tidy.findings(same))
    bare = {"src/nic/qp.h": "\n\n\n" + SPDX}
    yield "no_spdx_line", any("no SPDX" in m for _, _, m in tidy.findings(bare))
    text = "int a(void)\n{\n}\n\nstatic int\nb(int x,\n  int y)\n{\n}\n"
    yield "function_names", [f[0] for f in tidy.functions(text)] == ["a", "b"]


def main():
    results = [(name, *verdict(*row)) for name, *row in ROWS]
    results += [(name, passed, []) for name, passed in special()]
    return report(results)


if __name__ == "__main__":
    sys.exit(main())
