#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The eyes of the report tests (browser.py): each fault of a page is seen, a good page has none."""

import os
import re
import signal
import socket
import sys
import tempfile

import e2e
from browser import Browser
from e2e import demand

PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>A page</title>
<style>body {{ font: 16px sans-serif; color: #222; background: #fff; }} {style}</style></head>
<body><h1>A page</h1>{body}
<script>
window.echarts = {{ getInstanceByDom: () => ({{ getOption: () => ({{ series: [{series}] }}) }}) }};
{script}</script></body></html>
"""
SHAPES = '<path d="M0 0L90 90" stroke="red"/>' * 3
CHART = """<figure><div class="plot" role="img" aria-label="{label}"><svg width="200" height="100">{svg}
</svg></div><table><tbody>{rows}</tbody></table></figure>"""


def chart(label="A line that goes up", svg=SHAPES, rows="<tr><td>1</td></tr>"):
    return CHART.format(label=label, svg=svg, rows=rows)


TWO = '<p style="position: absolute; top: 200px">the first text</p>'
# Name: words of what must be seen (None: nothing), and the parts of the page.
PAGES = (
    ("good", None, {"body": "<p>Some text.</p>" + chart()}),
    ("good_hidden", None, {"body": TWO + TWO.replace('"', '"visibility: hidden; ', 1)}),
    ("good_in_scroll", None, {"body": '<div class="scroll" style="overflow-x: auto">'
                                      '<p style="width: 3000px">wide</p></div>'}),
    ("error_of_script", "console: ", {"script": "undefined_name();"}),
    ("warning_of_script", "console: ", {"script": "console.warn('careful');"}),
    ("fetches", "it fetches", {"body": '<img alt="x" src="http://127.0.0.1:9/x.png">'}),
    ("scrolls_sideways", "pixels wide", {"body": '<p style="width: 1500px">wide</p>'}),
    ("one_over_other", "one over the other: 'the first", {"body": TWO + TWO}),
    ("wide_select", "wider than what it is in", {
        "body": '<figure style="width: 50px"><select><option>a long choice</select></figure>'}),
    ("small_text", "too small, 9px", {"body": '<p style="font-size: 9px">small</p>'}),
    ("pale_text", "too pale", {"body": '<p style="color: #ccc">pale</p>'}),
    ("cut_off", "cut off: 'outside'", {"body": chart(svg=SHAPES + '<text x="180" y="50">outside</text>'),
                                       "style": "svg { overflow: visible }"}),
    ("chart_without_data", "not drawn", {"body": chart(), "series": "{ data: [] }"}),
    ("chart_without_shapes", "not drawn", {"body": chart(svg="")}),
    ("chart_without_table", "no table", {"body": chart(rows="")}),
    ("chart_without_label", "not described", {"body": chart(label="")}),
    ("two_titles", "not one h1", {"body": "<h1>Again</h1>"}),
)


def page(browser, folder, name, want, parts):
    text = PAGE.format(**{"style": "", "body": "", "script": "", "series": "{ data: [1] }", **parts})
    path = os.path.join(folder, name + ".html")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    try:
        browser.read(path)
        seen = None
    except e2e.Failed as reason:
        seen = str(reason)
    if want is None:
        demand(seen is None, f"sees what is not there: {seen}")
    else:
        demand(seen is not None and want in seen, f"wanted '{want}', saw {seen}")


def all_pages(tap, folder):
    with Browser() as browser:
        for name, want, parts in PAGES:
            tap.run(name, page, browser, folder, name, want, parts)


OPENS = """import sys
sys.path.insert(0, sys.argv[1])
import browser, e2e
e2e.Tap("nobody")
with browser.Browser() as b:
    print(b.home.name, flush=True)
    sys.stdin.read()
"""


def processes_with(word):
    """What has it on its command line, but for zombies."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                found += [pid] if word.encode() in file.read() else []
        except OSError:
            pass  # it has ended
    return found


def told_to_end(number):
    """A script that gets a signal leaves neither its browser nor the browser's folder."""
    own, other = socket.socketpair()
    with own, other, e2e.Process([sys.executable, "-c", OPENS, os.path.dirname(__file__)],
                                 stdin=other) as script:
        home = e2e.wait_until(lambda: re.match(r"(/.+)\n", script.text()), 60, "a browser")[1]
        demand(processes_with(home), f"no browser in {home}")
        script.popen.send_signal(number)
        demand(script.wait(60) == 128 + number, script.both())
        demand(not os.path.exists(home), f"{home} is left")
        e2e.wait_until(lambda: not processes_with(home), 10, f"the browser of {home} to end")


def main():
    tap = e2e.Tap("browser")
    with tempfile.TemporaryDirectory(prefix="test-browser-") as folder:
        if tap.run("one_session", all_pages, tap, folder):
            tap.run("terminated", told_to_end, signal.SIGTERM)
            tap.run("interrupted", told_to_end, signal.SIGINT)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
