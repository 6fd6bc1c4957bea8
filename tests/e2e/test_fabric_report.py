#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""report.html of `verbena fabric run`, opened in Chromium: what it says, and that it moves."""

import json
import os
import re
import sys
import tempfile

import e2e
from browser import Browser
from e2e import Skip, demand

STALLED = 1
SCENARIOS = os.path.join(e2e.ROOT, "examples", "scenarios")
LARGEST_BYTES = 3 << 20  # of a page; 1.1 MB of it is the chart library
SECTIONS = ["Propagation", "Queues and pauses", "Throughput", "Latency", "Counters", "Parameters"]
LEAF_SPINE = """name: hot spot
topology: {shape: leaf-spine, hosts: 16, leaves: 4, spines: 4}
switches: {buffer: 8MiB}
workload:
  - {op: permutation, bytes: 256KiB, shift: 16}
  - {op: incast, to: h15, senders: 40, bytes: 512KiB}
"""
folder = tempfile.TemporaryDirectory(prefix="verbena-fabric-report-")

# What the picture shows: a sum over its pixels.
PICTURE = """
const c = document.createElement("canvas"), from = document.querySelector("canvas.stage");
[c.width, c.height] = [from.width, from.height];
const g = c.getContext("2d", { willReadFrequently: true });
g.drawImage(from, 0, 0);
const bytes = g.getImageData(0, 0, c.width, c.height).data;
let sum = 0, painted = 0;
for (let i = 0; i < bytes.length; i += 4) {
    sum = (sum * 31 + bytes[i] + 3 * bytes[i + 1] + 7 * bytes[i + 2] + bytes[i + 3]) >>> 0;
    painted += bytes[i + 3] > 0;
}
return [sum, painted, document.querySelector(".clock").textContent,
        document.querySelector(".moment").textContent];
"""
MOVE = """
const s = document.getElementById("time");
s.value = Math.round(s.max * arguments[0]);
s.dispatchEvent(new Event("input"));
"""


def fabric(scenario, *words, status=0):
    """The page of a run."""
    out = tempfile.mkdtemp(dir=folder.name)
    command = [e2e.VERBENA, "fabric", "run", scenario, *words, "--out", out]
    got, text, errors = e2e.run(command, 100)
    demand(got == status, f"exit code {got}, wanted {status}: {text}{errors}")
    if "no report.html" in errors:
        raise Skip("this build has no charts (meson -Dreports=enabled)")
    return os.path.join(out, "report.html")


def example(name, **words):
    return fabric(os.path.join(SCENARIOS, name + ".yaml"), **words)


def written(text):
    path = os.path.join(folder.name, "scenario.yaml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


def says(seen, *patterns):
    for pattern in patterns:
        demand(re.search(pattern, seen["text"]), f"no '{pattern}' in:\n{seen['text'][:2000]}")


def storm():
    """All of it, at every width, by day and by night."""
    path = example("rack16-incast-storm")
    demand(os.path.getsize(path) < LARGEST_BYTES, os.path.getsize(path))
    with Browser() as browser:
        seen = browser.read(path)
        demand(seen["charts"] == 6, seen["labels"])
        demand([h for h in seen["headings"] if h in SECTIONS] == SECTIONS, seen["headings"])
        says(seen, "120 / 120", "PFC STORM", r"s0 → h15", "15 of 16 hosts were told to pause")


def moves():
    """The slider, the buttons and the play button change the moment, and the picture with it."""
    path = fabric(written(LEAF_SPINE))
    with Browser() as browser:
        browser.page(path)
        browser.run(MOVE, 0.1)
        early = browser.run(PICTURE)
        browser.run(MOVE, 0.9)
        late = browser.run(PICTURE)
        demand(early[1] > 1000 and late[1] > 1000, f"nothing is painted: {early} {late}")
        demand(all(a != b for a, b in zip(early, late)), f"the slider changes nothing: {early}")
        browser.run("document.querySelector('[aria-label=\"One interval back\"]').click()")
        back = browser.run(PICTURE)
        demand(back[2] != late[2], f"one back is still {late[2]}")
        browser.run(MOVE, 0)
        begun = browser.run(PICTURE)[2]
        browser.run("document.getElementById('play').click()")
        e2e.wait_until(lambda: browser.run(PICTURE)[2] != begun, 20, "the picture to play")
        browser.run("document.getElementById('play').click()")
        said = browser.console()
        demand(not said, said)


def circle():
    """A deadlock is named with its circle, and drawn."""
    path = example("deadlock-ring", status=STALLED)
    with Browser() as browser:
        browser.page(path)
        seen = browser.inspect()
        demand(not seen["problems"] and not browser.console(), seen["problems"])
        says(seen, "DEADLOCK", r"s0 → s1 → s2 → s3 → s4 → s0", "queues wait for one another")
        says(seen, "No flow finished", "the circle of the deadlock")


def others():
    """What has no pause, no slowdown or no end is a page, too."""
    with Browser() as browser:
        for name, word, status in (
            ("go-back-n-without-pfc", "LOSS", 0),
            ("link-flap", "goes down", 0),
            ("go-back-0-livelock", "LIVELOCK(.|\\n)*arrived of flows that have 4 MiB", STALLED),
            ("victim-flow", "Propagation", 0),
        ):
            browser.page(example(name, status=status), 400)
            seen = browser.inspect()
            demand(not seen["problems"] and not browser.console(), (name, seen["problems"]))
            says(seen, word)


def same_bytes():
    """Twice; and without a report the results are the same."""
    scenario = written(LEAF_SPINE)
    first, second, bare = (fabric(scenario, *words) for words in ((), (), ("--no-report",)))
    pages = []
    for path in (first, second):
        with open(path, encoding="utf-8") as text:
            pages.append(text.read())
    demand(pages[0] == pages[1], "two runs, two pages")
    demand(not os.path.exists(bare), "--no-report wrote a report")
    for name in ("flows.csv", "pfc.csv", "ports.csv", "summary.json"):
        contents = []
        for path in (first, bare):
            with open(os.path.join(os.path.dirname(path), name), encoding="utf-8") as text:
                contents.append(text.read())
        demand(contents[0] == contents[1], f"{name} knows of the report")
    data = re.search(r'<script id="data"[^>]*>(.*?)</script>', pages[0], re.S)
    demand(json.loads(data[1])["totals"]["finished"] == 104, "the data of the page")


def cases(tap):
    for function in (storm, moves, circle, others, same_bytes):
        tap.run(function.__name__, function)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
