#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs every check, cheap ones first, and ends with one line: N passed, N failed, N skipped.

    ./run check                 everything
    ./run check --only unit     one stage (repeat for more); --list names them
    ./run check -k roce         only test programs whose name has the word
    ./run check-long            more seeds, longer fuzzing

Logs of all programs are kept in build/check-logs/. Test programs speak TAP (scripts/tap.py).
"""

import argparse
import concurrent.futures
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import tap
import tree
import worlds
from tree import ROOT

LOGS = os.path.join(ROOT, "build", "check-logs")
JOBS = int(os.environ.get("JOBS") or os.cpu_count() or 2)
FUZZ_SECONDS = 30  # each target; JOBS of them at a time
FUZZ_SECONDS_LONG = 300
E2E_LIMIT_SECONDS = 120  # a script may ask for another limit: `# limit: 300 s` in its first lines
WORLD_SEEDS = 20000  # of the -O2 build
WORLD_DIGITS = 7
MUTANTS_SAMPLE = 2
MUTANTS_LIMIT_SECONDS = 1800
LONG_FACTOR = 10  # how much longer a test may take in check-long

BUILDS = {
    "build": (["-Dtests=disabled"], {}),  # the unit tests run in build-asan
    "build-asan": (
        ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dfuzz=true", "-Dtests=enabled"],
        {"CC": "clang"},
    ),
    "build-tsan": (["-Db_sanitize=thread", "-Dtests=enabled"], {"CC": "gcc"}),
    # The libraries for programs that are not sanitized themselves: gcc's runtime can be preloaded.
    "build-preload": (["-Db_sanitize=address,undefined", "-Dtests=disabled"], {"CC": "gcc"}),
}
SANITIZED_E2E = ("test_loopback.py", "test_misuse.py")  # in check-long all of them
SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=0:second_deadlock_stack=1",
    "CMOCKA_MESSAGE_OUTPUT": "TAP",
}


def say(text=""):
    print(text, flush=True)


class Check:
    """The state of one run: what was asked for and what came out."""

    def __init__(self, options):
        self.options = options
        self.outcomes = []
        self.times = []
        self.broken = set()  # builds that failed

    def add(self, outcome):
        self.outcomes.append(outcome)
        cases = f"{outcome.passed:5d} ok"
        if outcome.failed:
            cases += f", {len(outcome.failed)} FAILED"
        if outcome.skipped:
            cases += f", {len(outcome.skipped)} skipped"
        say(f"   {outcome.name:<44} {cases}  ({outcome.seconds:.1f} s)")
        if outcome.failed:
            show_failure(outcome)

    def command(self, name, command, env=None, cwd=ROOT, limit_seconds=900):
        """A check that is one command: exit code 0 passes, else its output is shown."""
        outcome = tap.Outcome(name, log=log_path(name))
        start = time.monotonic()
        with open(outcome.log, "wb") as log:
            try:
                status = subprocess.run(
                    command,
                    cwd=cwd,
                    env=dict(os.environ, **(env or {})),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    timeout=limit_seconds,
                    check=False,
                ).returncode
            except (OSError, subprocess.TimeoutExpired) as error:
                log.write(f"{error}\n".encode())
                status = 1
        outcome.seconds = time.monotonic() - start
        if status == 0:
            outcome.passed = 1
        else:
            outcome.failed.append((name, f"exit code {status}"))
        self.add(outcome)
        return status == 0

    def skip(self, name, reason):
        self.add(tap.Outcome(name, skipped=[(name, reason)]))

    def fail(self, name, reason):
        self.add(tap.Outcome(name, failed=[(name, reason)]))

    def wanted(self, name):
        return self.options.k is None or self.options.k in name


def log_path(name):
    return os.path.join(LOGS, re.sub(r"[^A-Za-z0-9_.-]", "_", name) + ".log")


def show_failure(outcome):
    for case, reason in outcome.failed:
        say(f"      {case}: {reason}")
    if outcome.log and os.path.exists(outcome.log):
        with open(outcome.log, encoding="utf-8", errors="replace") as log:
            lines = log.read().splitlines()
        for line in lines[-40:]:
            say("      | " + line[:300])
        say(f"      ({len(lines)} lines in {os.path.relpath(outcome.log, ROOT)})")


def files(*endings):
    return [path for path in tree.paths() if path.endswith(endings)]


def stage_house(check):
    """Form: format, floors and sizes, spelling, shell; and the tests of these checks themselves."""
    for path in sorted(glob.glob(os.path.join(ROOT, "tests/house/test_*.py"))):
        name = "house/" + os.path.basename(path)
        if check.wanted(name):
            check.add(tap.run(name, [sys.executable, path], log_path(name), 60))
    sources = files(".c", ".h")
    check.command("clang-format", ["clang-format", "--dry-run", "-Werror", *sources])
    check.command("tidy.py", [sys.executable, "scripts/tidy.py"])
    check.command("spec_map.py", [sys.executable, "scripts/spec_map.py", "--check"])
    check.command("cases.py", [sys.executable, "scripts/cases.py", "--check"])
    prose = files(".c", ".h", ".md", ".py", ".sh", ".scd", "meson.build", "run")
    check.command("codespell", ["codespell", "--config", ".codespellrc", *prose])
    check.command("shellcheck", ["shellcheck", "-S", "warning", "run", ".ci/run", *files(".sh")])


def stage_build(check):
    """gcc as released, clang with ASan and UBSan, gcc with TSan; all with -Werror."""
    for name, (options, env) in BUILDS.items():
        folder = os.path.join(ROOT, name)
        setup = ["meson", "setup", folder, *options]
        if os.path.exists(os.path.join(folder, "build.ninja")):
            # Libraries that only tests need may have been absent when ./run demo configured it.
            setup.append("--reconfigure")
        else:
            # A folder without build.ninja is a configuration that failed, or our logs: begin again.
            shutil.rmtree(os.path.join(folder, "meson-private"), ignore_errors=True)
        if not check.command("setup " + name, setup, env=env):
            check.broken.add(name)
            continue
        command = ["ninja", "-C", folder, "-j", str(JOBS)]
        if name == "build-tsan":  # only what runs there
            live = known_tests(name, ["live"])
            command += [os.path.relpath(test["cmd"][0], folder) for test in live]
        if not check.command("compile " + name, command):
            check.broken.add(name)


def stage_lint(check):
    """clang-tidy with the list in .clang-tidy over src/ and tools/."""
    database = os.path.join(ROOT, "build-asan", "compile_commands.json")
    if not os.path.exists(database):
        check.fail("clang-tidy", "build-asan was not configured")
        return
    with open(database, encoding="utf-8") as text:
        known = {os.path.realpath(os.path.join(c["directory"], c["file"])) for c in json.load(text)}
    sources = [s for s in files(".c") if s.startswith(("src/", "tools/"))]
    sources = [s for s in sources if os.path.realpath(os.path.join(ROOT, s)) in known]
    # xargs because Debian's run-clang-tidy takes patterns, not names.
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as names:
        names.write("\n".join(sources))
        names.flush()
        xargs = ["xargs", "-a", names.name, "-n", "6", "-P", str(JOBS)]
        command = [*xargs, "clang-tidy", "--quiet", "-p", "build-asan"]
        if not check.options.long:  # the analyzer's full depth takes ten times as long
            words = ["-Xclang", "-analyzer-config", "-Xclang", "mode=shallow"]
            command += [f"--extra-arg={word}" for word in words]
            command.append("--checks=-clang-analyzer-unix.Malloc")  # wrong at shallow depth
        check.command("clang-tidy", command)


def known_tests(build, suites):
    """The tests that meson knows in one build folder; suites None: all of them."""
    listed = subprocess.run(
        ["meson", "introspect", "--tests", build],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    tests = []
    for test in json.loads(listed.stdout):
        suite = [s.partition(":")[2] or s for s in test["suite"]]
        if suites is None or set(suites) & set(suite):
            test["label"] = "/".join([suite[0] if suite else "unit", test["name"]])
            tests.append(test)
    return tests


def meson_tests(check, build, suites=None):
    """Run the tests that meson knows in one build folder, JOBS at a time, each case counted."""
    if build in check.broken or not os.path.exists(os.path.join(ROOT, build, "build.ninja")):
        check.fail(build, "was not built, so its tests did not run")
        return
    tests = [test for test in known_tests(build, suites) if check.wanted(test["label"])]
    if not tests:
        if check.options.k is None:
            check.fail(build, "has no test" + (f" in suite {' '.join(suites)}" if suites else ""))
        return
    prefix = ["setarch", "-R"] if build == "build-tsan" and can_fix_addresses() else []

    def one(test):
        limit = (test["timeout"] or 30) * 4 * (LONG_FACTOR if check.options.long else 1)
        env = dict(os.environ, **SANITIZER_ENV)
        env.update(test["env"])
        if check.options.long:
            env["VERBENA_LONG"] = "1"
        command = prefix + test["cmd"]
        if test["label"] == "world/world":
            command += ["--from", hex(tree.fresh_seed())]
        name = f"{test['label']} ({os.path.basename(build).removeprefix('build-')})"
        folder = test["workdir"] or os.path.join(ROOT, build)  # as `meson test` does
        return tap.run(name, command, log_path(name), limit, env, folder)

    together = [t for t in tests if t["is_parallel"]]
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for outcome in pool.map(one, together):
            check.add(outcome)
    for test in tests:
        if not test["is_parallel"]:
            check.add(one(test))


def can_fix_addresses():
    """TSan of gcc 12 does not start where the kernel spreads addresses over more than 28 bits."""
    probe = subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False)
    return probe.returncode == 0


def stage_unit(check):
    """Every test that meson knows, under ASan and UBSan: unit, script, world, golden, abi, live."""
    meson_tests(check, "build-asan")


def stage_threads(check):
    """The live device under ThreadSanitizer: suite `live`."""
    meson_tests(check, "build-tsan", ["live"])


def stage_worlds(check):
    """Test worlds with optimized code: small ones with every fate, seeds of the commit's hash."""
    if not check.wanted("worlds"):
        return
    try:
        program = worlds.build(JOBS)
    except (OSError, subprocess.CalledProcessError) as error:
        check.fail("worlds", f"was not built: {error}")
        return
    first = hex(tree.fresh_seed())
    say(f"   fresh seeds from {first} on")
    factor = LONG_FACTOR if check.options.long else 1
    digits = WORLD_DIGITS + (2 if check.options.long else 0)
    small = ["--list", "tests/world/seeds.txt", "--seeds", "0", "--digits", str(digits)]
    fresh = ["--from", first, "--seeds", str(WORLD_SEEDS * factor), "--digits", "0", "-v"]

    def one(part):
        name, words = part
        return tap.run(name, [program, *words], log_path(name), 300 * factor, cwd=ROOT)

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for outcome in pool.map(one, (("worlds/small", small), ("worlds/seeds", fresh))):
            check.add(outcome)


def stage_plain(check):
    """Without a sanitizer what none of them bears, in the build of the worlds: suite `plain`."""
    try:
        worlds.configure()
        tests = known_tests(worlds.BUILD, ["plain"])
        if any(check.wanted(test["label"]) for test in tests):
            worlds.build(JOBS, [test["cmd"][0] for test in tests])
            meson_tests(check, os.path.relpath(worlds.BUILD, ROOT), ["plain"])
    except (OSError, subprocess.CalledProcessError) as error:
        check.fail("plain", f"was not built: {error}")


def stage_fuzz(check):
    """Each libFuzzer target for 30 s, from its corpus (check-long: 5 minutes)."""
    built = glob.glob(os.path.join(ROOT, "build-asan/tests/fuzz/fuzz_*"))
    targets = sorted(p for p in built if os.access(p, os.X_OK) and os.path.isfile(p))
    if not targets:
        sources = glob.glob(os.path.join(ROOT, "tests/fuzz/*.c"))
        if sources:
            check.fail("fuzz", "the targets in tests/fuzz were not built")
        else:
            check.skip("fuzz", "no target yet: tests/fuzz is empty")
        return
    share = FUZZ_SECONDS_LONG if check.options.long else FUZZ_SECONDS

    def one(path):
        name = os.path.basename(path)
        outcome = tap.Outcome("fuzz/" + name, log=log_path(name))
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch, open(outcome.log, "wb") as log:
            seeds = os.path.join(ROOT, "tests/fuzz/corpus", name.removeprefix("fuzz_"))
            command = [path, f"-max_total_time={share}", "-timeout=10", "-rss_limit_mb=2048"]
            command += [f"-artifact_prefix={LOGS}/{name}-", scratch]
            if os.path.isdir(seeds):
                command.append(seeds)
            try:
                status = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=dict(os.environ, **SANITIZER_ENV),
                    timeout=share + 60,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                status = "none: it did not stop"
        outcome.seconds = time.monotonic() - start
        if status == 0:
            outcome.passed = 1
        else:
            with open(outcome.log, encoding="utf-8", errors="replace") as log:
                said = tap.report(log.read())
            outcome.failed.append((name, "; ".join([f"exit code {status}", *said])))
        return outcome

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        targets = [t for t in targets if check.wanted("fuzz/" + os.path.basename(t))]
        for outcome in pool.map(one, targets):
            check.add(outcome)


def stage_mutants(check):
    """Seeded bugs, each of which a test must notice: two of them, in check-long all."""
    if not check.wanted("mutants"):
        return
    command = [sys.executable, "scripts/mutants.py", "-j", str(JOBS)]
    if not check.options.long:
        command += ["--sample", str(MUTANTS_SAMPLE)]
    check.add(tap.run("mutants", command, log_path("mutants"), MUTANTS_LIMIT_SECONDS, cwd=ROOT))


def e2e_limit(path):
    with open(path, encoding="utf-8") as script:
        for _, line in zip(range(12), script):
            match = re.match(r"#\s*limit:\s*(\d+) s", line)
            if match:
                return int(match.group(1))
    return E2E_LIMIT_SECONDS


def e2e_scripts(check, only=None):
    found = glob.glob(os.path.join(ROOT, "tests/e2e/test_*"))
    scripts = sorted(s for s in found if s.endswith((".sh", ".py")) and os.access(s, os.X_OK))
    if only:
        scripts = [s for s in scripts if os.path.basename(s) in only]
    if not scripts:
        check.fail("e2e", "no executable test in tests/e2e")
    return scripts


def run_e2e(check, scripts, library, label="", **settings):
    """The programs are those of build; the NIC is that of the folder library."""
    for folder in {"build", library} & check.broken:
        check.fail("e2e" + label, f"{folder} was not built, so no program ran")
        return
    verbena = os.path.join(ROOT, library, "verbena")
    build = os.path.join(ROOT, "build")
    env = dict(os.environ, VERBENA=verbena, VERBENA_BUILD=build, **settings)
    if check.options.long:
        env["VERBENA_LONG"] = "1"
    for path in scripts:
        name = "e2e/" + os.path.basename(path) + label
        if check.wanted(name):
            limit = e2e_limit(path) * (LONG_FACTOR if check.options.long else 1)
            check.add(tap.run(name, [path], log_path(name), limit, env, ROOT, alone=True))


def stage_e2e(check):
    """Real programs, one script after another: tests/e2e/test_*, each in a group of its own."""
    run_e2e(check, e2e_scripts(check), "build")


def stage_preload(check):
    """Real programs again, the NIC inside them under ASan and UBSan."""
    runtime = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    run_e2e(
        check,
        e2e_scripts(check, None if check.options.long else SANITIZED_E2E),
        "build-preload",
        " (asan)",
        LD_PRELOAD=os.path.realpath(runtime.stdout.strip()),
        ASAN_OPTIONS="detect_leaks=0:exitcode=99",  # the programs leak; ours is in stage unit
        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:exitcode=99",
    )


STAGES = {
    "house": stage_house,
    "build": stage_build,
    "lint": stage_lint,
    "unit": stage_unit,
    "worlds": stage_worlds,
    "plain": stage_plain,
    "threads": stage_threads,
    "fuzz": stage_fuzz,
    "mutants": stage_mutants,
    "e2e": stage_e2e,
    "preload": stage_preload,
}


def summary(check):
    passed = sum(o.passed for o in check.outcomes)
    failed = [(o.name, *f) for o in check.outcomes for f in o.failed]
    skipped = [(o.name, *s) for o in check.outcomes for s in o.skipped]
    say()
    say("time by stage: " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in check.times))
    if skipped:
        say("skipped:")
        for program, case, reason in skipped:
            say(f"   {program}: {case}: {reason}" if case != program else f"   {program}: {reason}")
    if failed:
        say("failed:")
        for program, case, reason in failed:
            say(f"   {program}: {case}: {reason}" if case != program else f"   {program}: {reason}")
    if passed + len(failed) == 0:
        failed.append(("check", "check", "nothing was run"))
        say("failed: nothing was run")
    say(f"{passed} passed, {len(failed)} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", choices=STAGES, help="this stage (repeatable)")
    parser.add_argument("-k", metavar="WORD", help="only test programs whose name has WORD")
    parser.add_argument("--long", action="store_true", help="more seeds, longer fuzzing")
    parser.add_argument("--list", action="store_true", help="name the stages")
    options = parser.parse_args()
    if options.list:
        for name, stage in STAGES.items():
            say(f"{name:<8} {stage.__doc__}")
        return 0
    os.makedirs(LOGS, exist_ok=True)
    os.environ["VERBENA_TAPES"] = LOGS  # where a failed world leaves its tape
    tap.adopt_orphans()
    # Started in the background or by nohup we would hand ignored signals on to the tests.
    tap.end_by_signal()
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    if options.long:
        os.environ["VERBENA_LONG"] = "1"
    check = Check(options)
    for name, stage in STAGES.items():
        if options.only and name not in options.only:
            continue
        say(f"== {name}: {stage.__doc__}")
        start = time.monotonic()
        stage(check)
        check.times.append((name, time.monotonic() - start))
    return summary(check)


if __name__ == "__main__":
    sys.exit(main())
