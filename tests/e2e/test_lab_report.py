#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 600 s
"""The lab's HTML page in a browser, at 1280 and 400 pixels, light and dark, whatever is chosen in it."""

import json
import os
import sys
import tempfile

import e2e
from browser import Browser
from e2e import demand

QUICK = ["--iterations", "60", "--warmup", "10", "--timeout", "20s", "--retry", "1s"]
LIMIT_SECONDS = 100
SECTIONS = ["Latency", "Throughput", "Against TCP", "Where the time goes", "Data and errors",
            "What is measured", "Machines and settings"]


def lab(command, name, folder, *words, status=0):
    """The page and the record of a run."""
    page, record = (os.path.join(folder, f"{name}.{end}") for end in ("html", "json"))
    words = [e2e.VERBENA, "lab", command, "--html", page, "--json", record, *words]
    got, out, err = e2e.run(words, LIMIT_SECONDS)
    demand(got == status, f"exit code {got}, wanted {status}: {' '.join(words)}\n{err}{out[-1500:]}")
    with open(record, encoding="utf-8") as file:
        return page, json.load(file)


def sections(seen, wanted):
    missing = [name for name in wanted if name not in seen["headings"]]
    demand(not missing, f"no section {missing} in {seen['headings']}")


def whole(browser, folder):
    """All operations over sizes and depths."""
    page, record = lab("local", "whole", folder, *QUICK, "--size", "64,4KiB", "--depth", "1,4")
    seen = browser.read(page)
    sections(seen, SECTIONS)
    demand(seen["charts"] == 9, f"{seen['charts']} charts: {seen['labels']}")
    for text in (record["source"]["device"], "messages", "TCP"):
        demand(text in seen["text"], f"no '{text}' on the page")
    browser.page(page, 400)
    demand(browser.choose() > 20, "few choices")


def figures(browser, folder):
    """What the page says is what the record has."""
    page, record = lab("local", "figures", folder, *QUICK, "--op", "write", "--size", "4KiB",
                       "--depth", "2", "--wait", "event")
    browser.page(page)
    rows = browser.run("""return [...document.querySelectorAll("section#latency > details tbody tr")]
        .map((r) => [...r.children].map((c) => c.textContent));""")
    measures = [m for c in record["cases"] for m in c["measures"]]
    demand([r[0] for r in rows] == [m["name"] for m in measures], f"{rows}")
    data = browser.run("return report.data;")
    demand(data == record, "the page has another record")
    tcp = record["verdict"]["tcp"]  # who sleeps is never without a CPU of its own
    demand(tcp["told"] and tcp["cases"] == 1 and len(tcp["measures"]) == 3, f"{tcp}")
    text = browser.run("return document.body.textContent;")
    for m in tcp["measures"]:
        demand(f"{m['name']} against TCP, geometric mean" in text, f"no tile of {m['name']}")
        demand(m["says"][1:] in text, f"no '{m['says']}' on the page")
    demand(not any("doubt" in c for c in record["cases"]), "doubt of 60 messages")
    demand("(in doubt" not in browser.run("return document.body.innerText;"), "doubt")
    demand(browser.run("return report.format.time(12345);") == "12.3 \u00b5s", "12345 ns")


def copies(browser, folder):
    page, _ = lab("local", "copies", folder, *QUICK, "--op", "write,send", "--size", "64,4KiB",
                  "--depth", "1", "--buffers", "direct,bounce,gather,inline,register", "--offset",
                  "0,1")
    seen = browser.read(page)
    sections(seen, [*SECTIONS, "Where copies hide"])
    demand(seen["charts"] == 11, f"{seen['charts']} charts: {seen['labels']}")
    demand(browser.choose() > 10, "few choices")


def one_case(browser, folder):
    """Nothing to choose from, no baseline, and few messages."""
    page, record = lab("local", "one", folder, *QUICK, "--op", "read", "--size", "64", "--depth",
                       "1", "--baseline", "off", "--iterations", "9")
    demand(record["cases"][0]["doubt"] == "few messages", f"{record['cases']}")
    seen = browser.read(page)
    demand(seen["text"].count("(in doubt: few messages)") == 2, seen["text"][:600])
    demand("Against TCP" not in seen["headings"], f"{seen['headings']}")


def path(browser, folder):
    page, _ = lab("path", "path", folder, "--size", "16KiB")
    seen = browser.read(page)
    sections(seen, ["The path of one operation", "Step by step", "To scale"])
    demand("does not prove" in seen["text"], "no word on what a step does not prove")
    banner = browser.run("""return document.querySelector(".banner").innerText;""")
    demand("All data were right" in banner and "TCP" not in banner, banner)
    browser.page(page, 400)
    demand(browser.choose() >= 5, "few choices")


def experiments(browser, folder):
    page, record = lab("experiment", "experiment", folder, "--timeout", "30s")
    seen = browser.read(page)
    names = [x["name"] for x in record["experiments"]]
    sections(seen, ["Experiments", *names])
    for experiment in record["experiments"]:
        summary = experiment["summary"]
        demand(summary[1:] in seen["text"], f"no '{summary}' on the page")
    browser.page(page, 400)
    demand(browser.choose() > 3, "few choices")


def verdicts(browser, folder):
    """The worst is at the top, in words."""
    for name, status, words, text in (
        ("missed", 1, ["--max-p99", "1ns"], "MISSED max-p99"),
        ("wrong", 2, ["--plant", "wrong-data"], "WRONG DATA: write of"),
    ):
        page, _ = lab("local", name, folder, *QUICK, "--op", "write", "--size", "4KiB", "--depth",
                      "1", *words, status=status)
        browser.read(page)
        banner = browser.run("""return document.querySelector(".banner").innerText;""")
        demand(text in banner and name.upper() in banner.upper(), f"{name}: {banner}")


def demo(browser, folder):
    """The very page that `./run demo` ends with."""
    script = os.path.join(e2e.ROOT, "scripts", "demo.sh")
    env = {"DEMO_LOGS": folder, "VERBENA": e2e.VERBENA}
    status, out, err = e2e.run(["sh", script, "report"], 130, env=env)
    page = os.path.join(folder, "lab.html")
    demand(status == 0 and f"for any browser: {page}\n" in out, f"{status} {err}{out[-1500:]}")
    seen = browser.read(page)
    sections(seen, [*SECTIONS, "Experiments", "torn", "flag"])
    demand(seen["charts"] >= 9, f"{seen['charts']} charts: {seen['labels']}")
    cases = browser.run("return report.data.cases.map((c) => [c.op, c.size, c.depth]);")
    ops = [(op, size) for size in (64, 65536) for op in ("tcp", "write", "read", "send")]
    wanted = sorted([op, size, depth] for op, size in ops for depth in (1, 4, 16, 64))
    demand(sorted(cases) == wanted, f"{cases}")
    demand(browser.run("return report.data.verdict.passed;"), "the demo has not passed")
    status, _, err = e2e.run(["sh", script, "reports"], 60, env=env)
    demand(status == 64 and "'reports' is not known" in err, f"{status} {err}")


def cannot_write(folder):
    """Before anything is measured where that can be known; else the text is there all the same."""
    command = [e2e.VERBENA, "lab", "local", *QUICK, "--op", "write", "--size", "64", "--depth", "1"]
    status, out, err = e2e.run([*command, "--html", os.path.join(folder, "no", "x.html")])
    demand(status == 69 and "--html: cannot write" in err and out == "", f"{status} {err}")
    status, out, err = e2e.run([*command, "--html", "/dev/full"], LIMIT_SECONDS)
    demand(status == 70 and "--html: cannot write '/dev/full': No space left" in err, f"{err}")
    demand("Verdict:" in out, f"the result is lost:\n{out}")


def in_browser(tap, folder):
    with Browser() as browser:
        for case in (whole, figures, copies, one_case, path, experiments, verdicts, demo):
            tap.run(case.__name__, case, browser, folder)


def main():
    tap = e2e.Tap("lab_report")
    with tempfile.TemporaryDirectory(prefix="test-lab-report-") as folder:
        os.environ["XDG_STATE_HOME"] = folder
        tap.run("browser", in_browser, tap, folder)
        tap.run("cannot_write", cannot_write, folder)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
