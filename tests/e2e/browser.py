# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium for the HTML reports: opens a file, and tells what a reader would object to.

    with Browser() as browser:
        seen = browser.read(path)        # at 1280 and 400 pixels, light and dark
        browser.page(path, 400); browser.run("return 1"); browser.screenshot("x.png")

read() demands of each page: no console message, nothing fetched, every chart drawn, no scrolling
sideways, no text over another or cut off or too small or too pale, a label and a table for each
chart. It speaks WebDriver to Debian's chromedriver; whoever has no chromium is told by Skip.
VERBENA_SCREENSHOTS=FOLDER keeps pictures of each page.
"""

import base64
import json
import os
import re
import shutil
import tempfile
import urllib.error
import urllib.request

from e2e import Failed, Process, Skip, demand, wait_until

WIDTHS = (1280, 400)
LIMIT_SECONDS = 60
MIN_FONT_PIXELS = 12
MIN_CONTRAST = 4.5  # of text, as WCAG 2.1 wants it (level AA)
ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",  # tests run as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--force-color-profile=srgb",
]

# Runs in the page. Texts: [what, left, top, right, bottom] of each piece that can be seen.
INSPECT = r"""
const problems = [], say = (text) => problems.push(text);
const wide = document.documentElement.scrollWidth;
if (wide > innerWidth)
    say(`the page is ${wide} pixels wide, the window ${innerWidth}`);
const fetched = performance.getEntriesByType("resource").map((r) => r.name);
if (fetched.length > 0)
    say(`it fetches ${fetched}`);
if (!document.documentElement.lang || !document.title.trim())
    say("no language or title");
if (document.querySelectorAll("h1").length !== 1)
    say("not one h1");
const plots = [...document.querySelectorAll(".plot")].filter((p) => p.checkVisibility());
for (const p of plots) {
    const label = p.getAttribute("aria-label") || "", chart = echarts.getInstanceByDom(p);
    if (p.getAttribute("role") !== "img" || label.length < 10)
        say(`a chart is not described: '${label}'`);
    const rows = p.closest("figure").querySelectorAll("tbody tr").length;
    if (rows === 0)
        say(`${label}: no table with its figures`);
    const filled = chart.getOption().series.filter((s) => s.data && s.data.length > 0).length;
    const shapes = [...p.querySelectorAll("svg path")].filter((e) => {
        const box = e.getBoundingClientRect();
        return box.width + box.height > 2 && (e.getAttribute("fill") !== "none" ||
                                               e.getAttribute("stroke"));
    });
    if (filled === 0 || shapes.length < 3)
        say(`${label}: not drawn (${filled} series, ${shapes.length} shapes)`);
}
function visible(node) {
    for (let e = node; e; e = e.parentElement)
        if (e.classList.contains("scroll"))
            return false; /* scrolls by itself: what it hides cannot be over another */
    return node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
}
function rgb(text) {
    const all = text.match(/[\d.]+/g).map(Number);
    return all.length < 4 ? [...all, 1] : all;
}
function light([r, g, b]) {
    const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
}
function contrast(a, b) {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
}
function behind(node) {
    for (let e = node; e; e = e.parentElement) {
        const color = rgb(getComputedStyle(e).backgroundColor);
        if (color[3] > 0)
            return color;
    }
    return [255, 255, 255, 1];
}
const texts = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const e = n.parentElement, what = n.textContent.trim();
    if (!what || ["SCRIPT", "STYLE", "NOSCRIPT", "OPTION"].includes(e.tagName) || !visible(e))
        continue;
    const style = getComputedStyle(e), svg = e.ownerSVGElement !== null && e.ownerSVGElement;
    if (parseFloat(style.fontSize) < MIN_FONT)
        say(`too small, ${style.fontSize}: '${what}'`);
    const ratio = contrast(rgb(svg ? style.fill : style.color), behind(e));
    if (ratio < MIN_CONTRAST)
        say(`too pale, ${ratio.toFixed(1)}: '${what}'`);
    const range = document.createRange();
    range.selectNodeContents(n);
    for (const r of svg ? [e.getBoundingClientRect()] : range.getClientRects())
        if (r.width > 0)
            texts.push([what, r.left, r.top, r.right, r.bottom]);
    if (svg) {
        const box = svg.getBoundingClientRect(), r = e.getBoundingClientRect();
        if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 ||
            r.bottom > box.bottom + 1)
            say(`cut off: '${what}'`);
    }
}
for (const e of document.querySelectorAll("select, button, .plot, .scroll, summary")) {
    const r = e.getBoundingClientRect(), p = e.parentElement.closest("figure, section, main");
    const box = p ? p.getBoundingClientRect() : r;
    if (r.width > 0 && (r.right > box.right + 1 || r.left < box.left - 1))
        say(`wider than what it is in: ${e.tagName} '${e.textContent.slice(0, 40)}'`);
}
for (const [what, left, , right] of texts)
    if (left < -1 || right > innerWidth + 1)
        say(`beside the window: '${what}'`);
for (let i = 0; i < texts.length; i++)
    for (let k = i + 1; k < texts.length; k++) {
        const [a, al, at, ar, ab] = texts[i], [b, bl, bt, br, bb] = texts[k];
        const x = Math.min(ar, br) - Math.max(al, bl), y = Math.min(ab, bb) - Math.max(at, bt);
        if (x > 1 && y > 0.3 * Math.min(ab - at, bb - bt))
            say(`one over the other: '${a}' and '${b}'`);
    }
return { problems: [...new Set(problems)], charts: plots.length, texts: texts.length,
         headings: [...document.querySelectorAll("h1, h2, h3")].map((h) => h.textContent),
         labels: plots.map((p) => p.getAttribute("aria-label")),
         text: document.body.innerText };
"""


class Browser:
    """One Chromium, ended with its driver when the `with` block is left."""

    def __init__(self):
        for program in ("chromium", "chromedriver"):
            if shutil.which(program) is None:
                raise Skip(f"{program} is not installed")

    def __enter__(self):
        self.home = tempfile.TemporaryDirectory(prefix="test-browser-")
        # No sanitizer's runtime in the browser (stage preload).
        env = {"HOME": self.home.name, "LD_PRELOAD": ""}
        self.driver = Process(["chromedriver", "--port=0"], env=env)
        try:
            match = wait_until(
                lambda: re.search(r"started successfully on port (\d+)", self.driver.text()),
                LIMIT_SECONDS,
                "chromedriver",
            )
            self.base = f"http://127.0.0.1:{match[1]}/session"
            profile = os.path.join(self.home.name, "profile")
            always = {
                "browserName": "chrome",
                "goog:loggingPrefs": {"browser": "ALL"},
                "goog:chromeOptions": {
                    "binary": shutil.which("chromium"),
                    "args": [*ARGUMENTS, f"--user-data-dir={profile}"],
                },
            }
            answer = self.call("", {"capabilities": {"alwaysMatch": always}})
            self.base += "/" + answer["sessionId"]
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.call("", method="DELETE")
        except (Failed, OSError):
            pass  # it is ended below all the same
        self.close()

    def close(self):
        self.driver.__exit__()
        shutil.rmtree(self.home.name, ignore_errors=True)
        self.home.cleanup()

    def call(self, path, body=None, method="POST"):
        data = None if method != "POST" else json.dumps(body or {}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never by a proxy
        try:
            with opener.open(request, timeout=LIMIT_SECONDS) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            raise Failed(f"chromedriver, {path or '/session'}: {text[:600]}") from error

    def devtools(self, command, **words):
        return self.call("/goog/cdp/execute", {"cmd": command, "params": words})

    def run(self, script, *words):
        """What a script returns that runs in the page."""
        return self.call("/execute/sync", {"script": script, "args": list(words)})

    def page(self, path, width=1280, height=900, dark=False):
        """Opens a file; what the console said before is forgotten."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[scheme])
        self.console()
        self.call("/url", {"url": "file://" + os.path.abspath(path)})

    def console(self):
        """What was said since it was last asked for: errors and warnings."""
        entries = self.call("/se/log", {"type": "browser"})
        return [e["message"] for e in entries if e["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, path):
        """The whole page, not just what the window shows."""
        size = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.devtools("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def inspect(self):
        """{problems, charts, headings, labels, text} of the page that is open."""
        script = INSPECT.replace("MIN_FONT", str(MIN_FONT_PIXELS), 1)
        return self.run(script.replace("MIN_CONTRAST", str(MIN_CONTRAST), 1))

    def choose(self):
        """Tries each value of each select of the page that is open, as a reader does, and each button
        of a legend; raises Failed with what is wrong then. Returns how many there were."""
        wrong = []
        script = """const [at, to] = arguments, all = document.querySelectorAll("select");
            if (to >= 0) {
                all[at].selectedIndex = to;
                all[at].dispatchEvent(new Event("change"));
            }
            return [...all].map((s) => s.options.length);"""
        lengths = self.run(script, 0, -1)
        for at, length in enumerate(lengths):
            for to in range(length):
                self.run(script, at, to)
                wrong += [f"select {at}, {to}: {p}" for p in self.inspect()["problems"]]
        buttons = self.run(
            """const all = [...document.querySelectorAll(".legend button")];
               all.forEach((b) => { b.click(); b.click(); });
               return all.length;"""
        )
        wrong += [f"console: {line}" for line in self.console()]
        demand(not wrong, f"{len(wrong)} things:\n" + "\n".join(wrong[:40]))
        return sum(lengths) + buttons

    def read(self, path):
        """The page as a reader sees it who has a wide or a narrow window, by day and by night; raises
        Failed with all that is wrong. Returns what inspect() saw in the wide one."""
        wrong = []
        seen = {}
        for width in WIDTHS:
            for dark in (False, True):
                label = f"{width}{'-dark' if dark else ''}"
                self.page(path, width, dark=dark)
                now = self.inspect()
                wrong += [f"{label}: {problem}" for problem in now["problems"]]
                wrong += [f"{label}: console: {line}" for line in self.console()]
                seen = seen or now
                if os.environ.get("VERBENA_SCREENSHOTS"):
                    name = os.path.splitext(os.path.basename(path))[0]
                    folder = os.environ["VERBENA_SCREENSHOTS"]
                    self.screenshot(os.path.join(folder, f"{name}-{label}.png"))
        demand(not wrong, f"{len(wrong)} things in {path}:\n" + "\n".join(wrong[:40]))
        return seen
