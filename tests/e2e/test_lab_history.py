#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""`verbena lab history`: runs are kept, listed, shown again, compared and taken out; a history that
cannot be written costs no result.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import e2e
from browser import Browser
from e2e import Process, Skip, demand

QUICK = ["--op", "write", "--size", "64", "--depth", "1", "--iterations", "40", "--warmup", "10",
         "--timeout", "20s", "--retry", "1s"]
LIMIT_SECONDS = 100


def lab(*words, status=0, env=None):
    command = [e2e.VERBENA, "lab", *words]
    got, out, err = e2e.run(command, LIMIT_SECONDS, env=env)
    demand(got == status, f"exit code {got}, wanted {status}: {' '.join(command)}\n{err}{out[-1500:]}")
    return out, err


def history(*words, status=0):
    return lab("history", *words, status=status)


def listed(*words):
    out, _ = history("--json", "-", *words)
    return json.loads(out)["runs"]


def kept():
    """In the user's file, if no other is named; each run has its number."""
    for number in (1, 2, 3):
        out, err = lab("local", *QUICK)
        file = os.path.join(os.environ["XDG_STATE_HOME"], "verbena", "lab.db")
        demand(f"This is run {number} in {file}" in out and err == "", f"{out[-300:]}{err}")
    lab("local", *QUICK, "--db", "none")
    lab("path", "--op", "send", "--size", "4KiB", "--transport", "uc")
    runs = listed()
    demand([r["run"] for r in runs] == [1, 2, 3, 4], f"{runs}")
    demand([r["paths"] for r in runs] == [0, 0, 0, 1], f"{runs}")
    demand(all(r["exit"] == 0 and r["device"] == "vb_lo" for r in runs), f"{runs}")
    out, _ = history()
    demand(len(out.splitlines()) == 5 and "passed" in out, out)


def filters():
    demand([r["run"] for r in listed("--last", "2")] == [3, 4], "--last 2")
    demand([r["run"] for r in listed("--transport", "uc")] == [4], "--transport uc")
    demand([r["run"] for r in listed("--op", "write", "--size", "64")] == [1, 2, 3], "--op write")
    demand(listed("--op", "read") == [], "--op read")
    demand(listed("--host", "nobody") == [] and listed("--since", "9999") == [], "--host, --since")
    demand(len(listed("--since", "2020-01-01", "--device", "vb_lo")) == 4, "--since, --device")


def shown_again():
    out, _ = history("1")
    demand("write + application ack" in out and "Verdict: passed" in out, out)
    out, _ = history("last")
    demand("The path of one send" in out, out)
    out, _ = history("1", "--json", "-")
    record = json.loads(out)
    demand(record["record"] == "verbena lab" and record["run"] == 1, out[:200])


def compared():
    out, _ = history("1", "2")
    demand("write completion, median" in out and "run 2: " in out, out)
    out, _ = history("1", "2", "3", "--json", "-")
    comparison = json.loads(out)
    # TCP has one measure, write two; a median and a p99 each, and a throughput of both.
    demand(len(comparison["rows"]) == 8, f"{len(comparison['rows'])} figures")
    for row in comparison["rows"]:
        demand(len(row["values"]) == 3 and row["ratios"][0] == 1, f"{row}")
        for value, ratio in zip(row["values"][1:], row["ratios"][1:]):
            bare = row["values"][0] / value if row["unit"] == "ns" else value / row["values"][0]
            demand(abs(bare - ratio) < 0.01 * bare + 0.001, f"{row}")
    out, _ = history("1", "1", "--json", "-")
    comparison = json.loads(out)
    marks = {m for row in comparison["rows"] for m in row["marks"]}
    demand(marks <= {"same", "unknown"}, f"a run differs from itself: {marks}")
    p99 = [row["marks"] for row in comparison["rows"] if row["kind"] == "p99"]
    demand(p99 == [["unknown"] * 2] * 3, f"40 messages have no p99: {p99}")
    demand("has no 3 other runs before these that are like run 1" in history("1", "2")[0], "like")
    out, _ = history("1", "4")
    demand("no case in common" in out, out)


def alike(folder):
    """Runs like the first, before the last that is compared, tell what the machine varies by."""
    file = os.path.join(folder, "alike.db")
    for number in range(1, 7):
        extra = ["--iterations", "50"] if number == 3 else []
        lab("local", *QUICK, "--baseline", "off", "--db", file, *extra)
    out, _ = history("4", "6", "--db", file, "--json", "-")
    demand(json.loads(out)["like"] == [2, 1, 5], out[-300:])
    out, _ = history("5", "6", "--db", file)
    demand("What runs like run 5 vary by is in the noise: 4, 2, 1." in out, out[-600:])
    out, _ = history("3", "6", "--db", file, "--json", "-")
    demand(json.loads(out)["like"] == [], out[-300:])


def batches():
    """What tells how sure a throughput is: of TCP and RDMA, after the warm-up or without."""
    for words in ([], ["--qps", "2", "--threads", "1,2"], ["--warmup", "0", "--depth", "4"]):
        out, _ = lab("local", *QUICK, "--db", "none", "--json", "-", *words)
        for c in json.loads(out)["cases"]:
            times = c["batches_ns"]
            demand(len(times) == 16 and all(t >= 0 for t in times) and sum(times) > 0, f"{c['op']}")
            demand(sum(times) <= c["elapsed_ns"] * 1.01, f"{sum(times)} of {c['elapsed_ns']}")
    out, _ = lab("local", *QUICK, "--db", "none", "--json", "-", "--iterations", "15")
    demand(all("batches_ns" not in c for c in json.loads(out)["cases"]), "batches of nothing")


def teams_apart(folder):
    """Cases that only their queue pairs tell apart: rows, and names in a comparison."""
    file = os.path.join(folder, "teams.db")
    words = [*QUICK, "--qps", "1,2", "--threads", "1,2", "--numa", "near", "--db", file]
    for _ in range(2):
        lab("local", *words)
    with sqlite3.connect(file) as db:
        rows = db.execute("SELECT qps, threads, numa FROM cases WHERE run = 2 AND op = 'write'")
        found = sorted(rows.fetchall())
    db.close()
    demand(found == [(1, 1, "near"), (2, 1, "near"), (2, 2, "near")], f"{found}")
    out, _ = history("1", "2", "--db", file)
    for name in ("1x2/1", "1x2/2", "direct/near"):
        demand(name in out, f"no {name} in:\n{out}")


def others_compared(folder):
    """Experiments and paths."""
    file = os.path.join(folder, "others.db")
    for _ in range(2):
        lab("experiment", "flag", "--iterations", "40", "--size", "64", "--db", file)
    out, _ = history("1", "2", "--db", file)
    demand("flag: " in out and "run 2: " in out, out)
    for _ in range(2):
        lab("path", "--op", "write,read", "--size", "4KiB", "--db", file)
    out, _ = history("3", "4", "--db", file, "--json", "-")
    rows = json.loads(out)["rows"]
    demand([(r["part"], r["op"], r["marks"][1]) for r in rows] ==
           [("path", "write", "unknown"), ("path", "read", "unknown")], f"{rows}")


def pages(browser, folder):
    two, all_of_them, one = (os.path.join(folder, f"{name}.html") for name in ("two", "all", "one"))
    history("1", "2", "--html", two)
    seen = browser.read(two)
    demand("What changed" in seen["headings"] and seen["charts"] == 1, f"{seen['headings']}")
    history("--op", "write", "--html", all_of_them)
    seen = browser.read(all_of_them)
    demand("Over time" in seen["headings"] and seen["charts"] == 2, f"{seen['headings']}")
    browser.page(all_of_them, 400)
    demand(browser.choose() > 8, "few choices")
    history("1", "--html", one)
    demand("Latency" in browser.read(one)["headings"], "the page of one run")


def in_browser(tap, folder):
    with Browser() as browser:
        tap.run("pages", pages, browser, folder)


def dates():
    """A date may be as long as one likes."""
    for date in ("2020", "2020-02", "2020-02-29", "2020-02-29T23:59", "2020-02-29T23:59:59Z"):
        demand(len(listed("--since", date)) == 4, date)


def broken_off():
    """What a run has come to before it broke off is kept, and shown again with the reason."""
    words = ["--op", "send", "--transport", "ud", "--timeout", "1s"]  # only TCP comes through
    _, err = lab("local", *QUICK, *words, status=69, env={"VERBENA_FAULT": "drop=100%"})
    reason = "nothing moves: send of 64 bytes at depth 1 stands at message 0"
    demand(reason in err, err)
    out, _ = history("last")
    demand("tcp + application ack" in out and "Verdict" not in out, out)
    demand(reason in out.rpartition("\nThe run broke off: ")[2], out)
    out, _ = history()
    demand("broke off" in out.splitlines()[-1] and reason in out, out)
    history("--remove", "last")


def removed():
    before = listed()
    for words, status, text in (
        (["1", "1"], 64, "run 1 is named twice, by '1' and '1'"),
        (["1", "last", "4"], 64, "run 4 is named twice, by 'last' and '4'"),
        (["1", "99"], 69, "nothing is removed"),
        (["1", "--json", "-"], 64, "goes without --json and --html"),
    ):
        _, err = history("--remove", *words, status=status)
        demand(text in err and listed() == before, f"{words}: {err}")
    history("--remove", "2", "previous")
    demand([r["run"] for r in listed()] == [1, 4], f"{listed()}")
    _, err = history("--remove", "2", status=69)
    demand("there is no run 2 in" in err, err)


def mistakes():
    for words, status, text in (
        (["7"], 69, "there is no run 7"),
        (["first"], 64, "'first' is no run"),
        (["0"], 64, "'0' is no run"),
        (["--last", "0"], 64, "--last: '0' is no number"),
        (["--op", "reed"], 64, "--op"),
        (["--remove"], 64, "--remove: which runs?"),
        *((["--since", date], 64, f"--since: '{date}' is no date such as 2026-11-30")
          for date in ("", "today", "30.11.2026", "2026-13", "2026-00-01", "2026-02-30", "2026-1-1",
                       "2026-11-30T", "2026-11-30 08:00", "2026-11-30T24:00", "2026-11-30T08:60",
                       "20261130", "2026-11-30T08:15:00Zz")),
        (["--db", "/nowhere/lab.db"], 69, "no history '/nowhere/lab.db' yet"),
        (["--op", "read", "--html", "x.html"], 69, "compares two runs or more"),
        (["1", "--html", "/nowhere/x.html"], 70, "--html: cannot write"),
        (["1", "--json", "/dev/full"], 70, "--json: cannot write '/dev/full': No space left"),
    ):
        _, err = history(*words, status=status)
        demand(text in err, f"{words}: {err}")


def not_kept(folder):
    """Before the run where a history was asked for; else the result is told all the same."""
    broken, other, newer = (os.path.join(folder, name) for name in ("broken", "other", "newer"))
    with open(broken, "wb") as file:
        file.write(b"not a database " * 500)
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE addresses (name)")
    db.close()
    shutil.copy(os.path.join(os.environ["XDG_STATE_HOME"], "verbena", "lab.db"), newer)
    with sqlite3.connect(newer) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    for file, text in (
        (broken, "is no history, or damaged"),
        (other, "is a database of something else"),
        (newer, "is of a newer Verbena: version 99"),
        (folder, "unable to open"),
        ("/proc/lab.db", "/proc/lab.db"),
    ):
        before = os.path.isfile(file) and open(file, "rb").read()
        out, err = lab("local", *QUICK, "--db", file, status=69)
        demand(out == "", f"measured for nothing:\n{out}")
        demand("--db: no run can be kept:" in err and text in err and file in err, err)
        demand((os.path.isfile(file) and open(file, "rb").read()) == before, f"{file} was changed")
    out, err = lab("local", *QUICK, env={"XDG_STATE_HOME": "/proc/nowhere"})
    demand("Verdict:" in out and "the run is not kept" in err, err)


def full_disk():
    """On a file system of its own that has no room left."""
    if os.geteuid() != 0:
        raise Skip("only root may mount")
    with tempfile.TemporaryDirectory(prefix="test-lab-full-") as folder:
        script = ('mount -t tmpfs -o size=128k none "$1" && head -c 64k /dev/zero >"$1/ballast" && '
                  'shift && exec "$@"')
        command = ["unshare", "-m", "sh", "-c", script, "sh", folder, e2e.VERBENA, "lab", "local",
                   *QUICK, "--db", os.path.join(folder, "lab.db")]
        probe = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", folder],
                               capture_output=True, check=False)
        if probe.returncode != 0:
            raise Skip(f"cannot mount: {probe.stderr.decode()}")
        status, out, err = e2e.run(command, LIMIT_SECONDS)
        before = "no run can be kept" in err  # without room for its tables
        demand(status == (69 if before else 70), f"{status}: {out[-300:]}")
        demand(before or ("Verdict:" in out and "the run is not kept" in err), f"{out}{err}")
        demand("lab.db" in err, err)


def at_once(folder):
    """Runs that end together are all kept."""
    file = os.path.join(folder, "together.db")
    command = [e2e.VERBENA, "lab", "local", *QUICK, "--baseline", "off", "--db", file]
    with Process(command) as a, Process(command) as b, Process(command) as c:
        for process in (a, b, c):
            demand(process.wait(LIMIT_SECONDS) == 0, process.both())
    demand([r["run"] for r in listed("--db", file)] == [1, 2, 3], f"{listed('--db', file)}")


def main():
    tap = e2e.Tap("lab_history")
    with tempfile.TemporaryDirectory(prefix="test-lab-history-") as folder:
        os.environ["XDG_STATE_HOME"] = os.path.join(folder, "state")
        if tap.run("kept", kept):
            for case in (filters, dates, shown_again, compared, batches, broken_off):
                tap.run(case.__name__, case)
            tap.run("alike", alike, folder)
            tap.run("teams_apart", teams_apart, folder)
            tap.run("others_compared", others_compared, folder)
            tap.run("browser", in_browser, tap, folder)
            tap.run("removed", removed)
            tap.run("mistakes", mistakes)
            tap.run("not_kept", not_kept, folder)
        tap.run("full_disk", full_disk)
        tap.run("at_once", at_once, folder)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
