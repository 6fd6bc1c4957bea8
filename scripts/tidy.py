#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The house rules that a compiler does not know: floors, sizes, banned calls, names, tests.

    scripts/tidy.py            the whole tree
    scripts/tidy.py FILE...    findings in these files only

Exit code 1 on a finding. Each check takes the whole tree as {path: text} and yields (path, line,
message); tests/house/test_tidy.py feeds each of them something bad.
"""

import ast
import os
import re
import sys

import tree

# What each floor may include besides itself. "verbena" is include/verbena, the embedder's API.
FLOORS = {
    "base": [],
    "wire": ["base"],
    "nic": ["wire", "base", "verbena"],
    "cm": ["nic", "wire", "base", "verbena"],
    "port": ["wire", "base", "verbena"],
    "local": ["port", "nic", "wire", "base", "verbena"],
    "fabric": ["port", "nic", "wire", "base", "verbena"],
    "scenario": ["fabric", "report", "base", "verbena"],
    "host": ["cm", "local", "nic", "port", "wire", "base", "verbena"],
    "verbs": ["host", "base", "verbena"],
    "rdmacm": ["host", "verbs", "base", "verbena"],
    "files": ["host", "base", "verbena"],
    "report": [],
    "lab": ["report"],  # else the public verbs alone, so that it runs on any NIC
}
PURE = ("base", "wire", "nic", "cm", "fabric")  # no IO, no clock, no chance of their own
NO_FLOATS = ("base", "wire", "nic", "cm", "port", "local", "fabric")

# A list of what is allowed, so that sockets, threads and clocks are out without being named.
PURE_HEADERS = re.compile(
    r"^(assert|errno|inttypes|limits|stdalign|stdatomic|stdarg|stdbool|stddef|stdint|stdio|stdlib"
    r"|string|endian|immintrin|x86intrin|cpuid|isa-l|isa-l/\w+|sys/queue)\.h$"
)
# What the allowed headers still offer and the pure floors must not call.
PURE_CALLS = re.compile(
    r"(?<![\w.>])(time|clock|clock_gettime|rand|srand|random|srandom|drand48|rand_r|printf|vprintf"
    r"|fprintf|vfprintf|puts|fputs|putchar|perror|fopen|getenv|setenv|exit|system)\s*\("
)
ALLOCATE = re.compile(
    r"(?<![\w.>])(malloc|calloc|realloc|reallocarray|aligned_alloc|posix_memalign|strdup|alloca"
    r"|alloc_\w+)\s*\("
)
# What runs when an object is made or made larger, never for a packet or a work request.
MAY_ALLOCATE = re.compile(r"(?:\w+_)?(create|grow|init|reg|resize|add_qpns)(_\w+)?$")

FRONT = ("run", ".ci/run")
MAX_C_LINES = 800
MAX_TEST_LINES = 1000
MAX_H_LINES = 300
MAX_FUNCTION_LINES = 70
MAX_COLUMNS = 100
MAX_ROW_COLUMNS = 160  # a row of a table, which .clang-format keeps in columns

ROW = re.compile(r"\s*\{|.*\s\},?(\s*/\*.*\*/)?$")
OPEN_ENDS = re.compile(r"\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b")
FOREIGN_WORDS = re.compile(
    r"/(work|farm)/[.a-z]|sub-?agent|language\s+model|this\s+session|the\s+CEO"
)

# Sources without a test file of their own, and the one that covers them: parts of one object that
# have no life apart, and commands, which are run as programs.
TESTED_IN = {
    "src/files/files_live.c": "tests/e2e/test_discovery.py",
    "src/files/shim_dir.c": "tests/e2e/test_discovery.py",
    "src/files/shim_fd.c": "tests/e2e/test_discovery.py",
    "src/files/shim_link.c": "tests/e2e/test_discovery.py",
    "src/files/shim_open.c": "tests/e2e/test_discovery.py",
    "src/files/shim_read.c": "tests/e2e/test_discovery.py",
    "src/files/shim_stat.c": "tests/e2e/test_discovery.py",
    "src/host/config.c": "tests/host/test_host.c",
    "src/host/device.c": "tests/host/test_host.c",
    "src/host/fork.c": "tests/host/test_host.c",
    "src/host/gid.c": "tests/host/test_host.c",
    "src/host/objects.c": "tests/host/test_host.c",
    "src/host/progress.c": "tests/host/test_host.c",
    "src/host/queue_pair.c": "tests/host/test_host.c",
    "src/host/stats.c": "tests/e2e/test_tools.py",
    "src/lab/lab_bare.c": "tests/lab/test_lab_experiment.c",
    "src/lab/lab_boot.c": "tests/e2e/test_lab_mpi.py",
    "src/lab/lab_buffers.c": "tests/e2e/test_lab.py",
    "src/lab/lab_case.c": "tests/e2e/test_lab.py",
    "src/lab/lab_cm.c": "tests/e2e/test_lab.py",
    "src/lab/lab_flag.c": "tests/lab/test_lab_experiment.c",
    "src/lab/lab_hub.c": "tests/e2e/test_lab_mpi.py",
    "src/lab/lab_history.c": "tests/e2e/test_lab_history.py",
    "src/lab/lab_lanes.c": "tests/e2e/test_lab_experiments.py",
    "src/lab/lab_main.c": "tests/e2e/test_lab.py",
    "src/lab/lab_net.c": "tests/e2e/test_lab.py",
    "src/lab/lab_pmix.c": "tests/e2e/test_lab_mpi.py",
    "src/lab/lab_queue.c": "tests/e2e/test_lab.py",
    "src/lab/lab_rig.c": "tests/e2e/test_lab.py",
    "src/lab/lab_session.c": "tests/e2e/test_lab.py",
    "src/lab/lab_source.c": "tests/e2e/test_lab.py",
    "src/lab/lab_target.c": "tests/e2e/test_lab.py",
    "src/lab/lab_tcp.c": "tests/e2e/test_lab.py",
    "src/lab/lab_torn.c": "tests/lab/test_lab_experiment.c",
    "src/lab/lab_trial.c": "tests/lab/test_lab_experiment.c",
    "src/lab/lab_worker.c": "tests/e2e/test_lab_mpi.py",
    "src/port/port_flow.c": "tests/port/test_port_udp.c",
    "src/port/port_group.c": "tests/verbs/test_live_datagram.c",
    "src/port/port_holder.c": "tests/port/test_port_udp.c",
    "src/port/port_slot.c": "tests/port/test_port_udp.c",
    "src/port/port_udp_rx.c": "tests/port/test_port_udp.c",
    "src/port/port_udp_tx.c": "tests/port/test_port_udp.c",
    "src/port/port_watch.c": "tests/port/test_port_many.c",
    "src/rdmacm/rdma_device.c": "tests/rdmacm/test_rdma_addr.c",
    "src/rdmacm/rdma_engine.c": "tests/rdmacm/test_rdma_conn.c",
    "src/rdmacm/rdma_ep.c": "tests/rdmacm/test_rdma_conn.c",
    "src/rdmacm/rdma_port.c": "tests/rdmacm/test_rdma_addr.c",
    "src/rdmacm/rdma_qp_attr.c": "tests/rdmacm/test_rdma_qp.c",
    "src/rdmacm/rdma_route.c": "tests/rdmacm/test_rdma_addr.c",
    "tools/cmd_devices.c": "tests/e2e/test_tools.py",
    "tools/cmd_fabric.c": "tests/e2e/test_fabric.py",
    "tools/cmd_fabric_trace.c": "tests/e2e/test_fabric.py",
    "tools/cmd_lab.c": "tests/e2e/test_lab.py",
    "tools/cmd_run.c": "tests/e2e/test_tools.py",
    "tools/main.c": "tests/e2e/test_tools.py",
    "tools/preload.c": "tests/e2e/test_tools.py",
    "tools/mounts.c": "tests/e2e/test_discovery.py",
}
# Headers that a pure floor may include in one file only, and why.
PURE_EXCEPTIONS = {
    "src/base/lock.h": "pthread.h",  # the lock of a QP or CQ: no system call unless it is contended
    "src/base/firm.h": "pthread.h",  # for the floors above
    "src/base/file_limit.h": "sys/resource.h",  # likewise
}


COMMENT_OR_STRING = r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"


def code_of(text):
    """The text with comments and string contents blanked, line structure kept."""

    def blank(match):
        found = match.group(0)
        if found.startswith("/"):
            return re.sub(r"[^\n]", " ", found)
        return found[0] + " " * (len(found) - 2) + found[-1]

    return re.sub(COMMENT_OR_STRING, blank, text, flags=re.DOTALL)


def floor_of(path):
    parts = path.split("/")
    return parts[1] if len(parts) > 2 and parts[0] in ("src", "tests") else None


def is_c(path):
    return path.endswith((".c", ".h"))


def functions(text):
    """(name, first, last line) of each body; .clang-format puts its braces alone in column 0."""
    lines = code_of(text).split("\n")
    start = None
    for number, line in enumerate(lines, 1):
        if line.rstrip() == "{":
            start = number
        elif line.rstrip() == "}" and start is not None:
            head = []
            for above in range(start - 2, -1, -1):
                if not lines[above].strip() or lines[above].startswith(("}", "#")):
                    break
                head.insert(0, lines[above])
            match = re.search(r"(\w+)\s*\(", " ".join(head))
            yield (match.group(1) if match else "?"), start, number
            start = None


def check_spdx(files):
    for path, text in files.items():
        if is_c(path) or path.endswith((".py", ".sh", ".map", ".js", ".css")) or path in FRONT:
            if "SPDX-License-Identifier: BSD-2-Clause" not in "\n".join(text.split("\n")[:3]):
                yield path, 1, "no SPDX line in the first three lines"


def check_sizes(files):
    for path, text in files.items():
        if not (is_c(path) or path.endswith((".py", ".sh", ".js", ".css")) or path == "run"):
            continue
        lines = text.count("\n")
        limit = MAX_TEST_LINES if path.startswith("tests/") else MAX_C_LINES
        limit = MAX_H_LINES if path.endswith(".h") else limit
        if lines > limit:
            yield path, lines, f"{lines} lines, the limit is {limit}: which role could move out?"
        for number, line in enumerate(text.split("\n"), 1):
            if path.startswith("tests/") and '"' in line:
                continue  # an expected text cannot be broken
            limit = MAX_ROW_COLUMNS if ROW.match(line) else MAX_COLUMNS
            if len(line.expandtabs(8)) > limit:
                yield path, number, f"longer than {limit} columns"
        if path.endswith(".c"):
            for name, first, last in functions(text):
                if last - first + 1 > MAX_FUNCTION_LINES:
                    long = f"{name} has {last - first + 1} lines"
                    yield path, first, f"{long}, the limit is {MAX_FUNCTION_LINES}"


def check_floors(files):
    for path, text in files.items():
        floor = floor_of(path)
        if not is_c(path) or floor not in FLOORS:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not match:
                continue
            head, slash, _ = match.group(1).partition("/")
            if path.startswith("tests/"):
                if head in FLOORS and head != floor and head not in FLOORS[floor]:
                    yield path, number, f"a test of floor {floor} uses floor {head}"
            elif not slash or (head not in FLOORS and head != "verbena"):
                yield path, number, f'"{match.group(1)}" is not written as floor/file.h'
            elif head != floor and head not in FLOORS[floor]:
                yield path, number, f"floor {floor} must not know floor {head}"


def check_pure(files):
    for path, text in files.items():
        floor = floor_of(path)
        if not is_c(path) or not path.startswith("src/") or floor not in PURE:
            continue
        spans = list(functions(text))
        for number, line in enumerate(code_of(text).split("\n"), 1):
            header = re.match(r"\s*#\s*include\s+<([^>]+)>", line)
            if header and not PURE_HEADERS.match(header.group(1)):
                if PURE_EXCEPTIONS.get(path) != header.group(1):
                    yield path, number, f"<{header.group(1)}> in floor {floor}: no IO or clock here"
            for match in PURE_CALLS.finditer(line):
                yield path, number, f"{match.group(1)}() in floor {floor}: no IO, no clock here"
            if path.startswith("src/base/alloc."):
                continue  # the helper itself; its callers are checked
            for match in ALLOCATE.finditer(line):
                where = next((n for n, first, last in spans if first <= number <= last), "?")
                if not MAY_ALLOCATE.match(where):
                    message = f"{match.group(1)}() in {where}: only where objects are made"
                    yield path, number, message


def check_floats(files):
    for path, text in files.items():
        if is_c(path) and path.startswith("src/") and floor_of(path) in NO_FLOATS:
            for number, line in enumerate(code_of(text).split("\n"), 1):
                if re.search(r"\b(float|double)\b", line):
                    yield path, number, "floating point below floor 5"


def check_style(files):
    for path, text in files.items():
        if not is_c(path):
            continue
        for number, line in enumerate(code_of(text).split("\n"), 1):
            if re.match(r"\s*typedef\s+(const\s+)?(struct|union)\b", line):
                yield path, number, "a typedef'd struct"
        for match in re.finditer(r"/\*[\s*]*\*/|//\s*$", text, re.MULTILINE):
            yield path, text.count("\n", 0, match.start()) + 1, "an empty comment"


def check_names(files):
    homes = {}
    for path in files:
        if is_c(path) and path.startswith("src/"):
            folder, _, name = path.rpartition("/")
            homes.setdefault(name.rpartition(".")[0], set()).add(folder)
    for stem, folders in homes.items():
        if len(folders) > 1:
            yield f"src/{stem}", 1, "base name used in " + " and ".join(sorted(folders))


def check_tests(files):
    for path in files:
        if not path.endswith(".c") or not path.startswith(("src/", "tools/")):
            continue
        if TESTED_IN.get(path) in files:
            continue
        floor = floor_of(path) or "tools"
        name = path.rpartition("/")[2]
        # The roles' tests are packet dialogues.
        if not any(f"tests/{suite}/test_{name}" in files for suite in (floor, "script")):
            yield path, 1, f"has no test: tests/{floor}/test_{name}"


def check_links(files):
    """A relative link in a page leads to a file; [`name`](file) to a file that has the name."""
    for path, text in files.items():
        if not path.endswith(".md"):
            continue
        for match in re.finditer(r"\[([^\]]*)\]\(([^)#\s]+)[^)]*\)", text):
            label, link = match.groups()
            if re.match(r"\w+:", link):
                continue
            line = text.count("\n", 0, match.start()) + 1
            target = os.path.normpath(os.path.join(os.path.dirname(path), link))
            name = re.fullmatch(r"`(\w+)`", label)
            if target not in files and not any(f.startswith(target + "/") for f in files):
                yield path, line, f"links to {link}, which is not there"
            elif name and target in files and not re.search(rf"\b{name[1]}\b", files[target]):
                yield path, line, f"says that {name[1]} is in {link}, but it is not"


FAULTS_PAGE = "docs/reliability.md"
FAULTS_TESTS = re.compile(r"tests/e2e/test_live_\w+\.py$")


def check_faults(files):
    """Each row of the page about faults names its test, and each live fault has a row there."""
    page = files.get(FAULTS_PAGE, "")
    for number, line in enumerate(page.split("\n"), 1):
        row = line.startswith("| ") and not line.startswith("| fault |")
        if row and not re.search(r"\[`\w+`\]\([^)]*\)", line.rstrip(" |").rpartition("|")[2]):
            yield FAULTS_PAGE, number, "a row without a test in its last column"
    for path, text in files.items():
        if not FAULTS_TESTS.match(path):
            continue
        for match in re.finditer(r'^    \("(\w+)", \w+', text, re.MULTILINE):
            if f"[`{match[1]}`](../{path})" not in page:
                line = text.count("\n", 0, match.start()) + 1
                yield path, line, f"{match[1]} has no row in {FAULTS_PAGE}"


def check_words(files):
    for path, text in files.items():
        if path == "scripts/tidy.py":
            continue
        for number, line in enumerate(text.split("\n"), 1):
            match = FOREIGN_WORDS.search(line)
            if match:
                yield path, number, f"words that do not belong in the product: {match.group(0)}"
            match = OPEN_ENDS.search(line)
            if match and (is_c(path) or path.endswith((".py", ".sh"))):
                yield path, number, f"left open: {match.group(0)}; file an issue instead"


def check_lock(files):
    """What npm takes has a hash, and comes from the registry that the user has set."""
    for path, text in files.items():
        if not path.endswith("package-lock.json"):
            continue
        if re.search(r'"resolved"|://', text):
            yield path, 1, "has addresses; set omit-lockfile-registry-resolved of npm"
        for package in re.finditer(r'"(node_modules/[^"]+)": \{([^{}]*)', text):
            if '"integrity": "sha512-' not in package[2]:
                yield path, text.count("\n", 0, package.start()) + 1, f"has no hash of {package[1]}"


def check_keys(files):
    """A key that a dict has twice: of its rows the last is there, the others are not."""
    for path, text in files.items():
        if not path.endswith(".py"):
            continue
        try:
            module = ast.parse(text, path)
        except SyntaxError:
            continue  # it cannot run, so its tests say so
        for node in ast.walk(module):
            seen = set()
            for key in node.keys if isinstance(node, ast.Dict) else ():
                if isinstance(key, ast.Constant) and key.value in seen:
                    yield path, key.lineno, f"the key {key.value!r} is in this dict twice"
                seen.add(key.value if isinstance(key, ast.Constant) else key)


CHECKS = (
    check_spdx,
    check_sizes,
    check_floors,
    check_pure,
    check_floats,
    check_style,
    check_names,
    check_tests,
    check_links,
    check_faults,
    check_words,
    check_lock,
    check_keys,
)


def read_tree():
    files = {}
    for path in tree.paths():
        try:
            with open(os.path.join(tree.ROOT, path), encoding="utf-8") as text:
                files[path] = text.read()
        except UnicodeDecodeError:
            pass  # a capture or another file that is not text
    return files


def findings(files):
    return [finding for check in CHECKS for finding in check(files)]


def main(only):
    only = {os.path.relpath(os.path.abspath(path), tree.ROOT) for path in only}
    files = read_tree()
    found = [f for f in findings(files) if not only or f[0] in only]
    for path, line, message in found:
        print(f"{path}:{line}: {message}")
    print(f"tidy: {len(files)} files, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
