/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_page.js: what the scripts of reports have in common, as the object `report`: the page's
 * data, elements, tables, charts that follow the width and the colours of the reader, and
 * how figures are written. A chart always has its figures as a table beside it.
 */
"use strict";

const report = (() => {
    const NARROW_PIXELS = 560;
    const data = JSON.parse(document.getElementById("data").textContent);
    const main = document.getElementById("main");
    const charts = [];

    /* props: attributes; "text" is the content. Children: nodes or texts. */
    function el(tag, props, ...children) {
        const node = document.createElement(tag);
        for (const [name, value] of Object.entries(props || {})) {
            if (name === "text") node.textContent = value;
            else if (value !== undefined && value !== null && value !== false)
                node.setAttribute(name, value === true ? "" : value);
        }
        node.append(...children.filter((c) => c !== null && c !== undefined));
        return node;
    }

    /* How figures are written. */
    function number(value, digits = 3) {
        if (value === null || value === undefined || Number.isNaN(value)) return "\u2013";
        if (value === 0 || Math.abs(value) >= 10 ** digits)
            return Math.round(value).toLocaleString("en-US");
        return String(Number(value.toPrecision(digits)));
    }

    function scaled(value, units, step, digits) {
        let at = 0;
        if (value === 0) return "0";
        while (at + 1 < units.length && Math.abs(value) >= step) {
            value /= step;
            at++;
        }
        return `${number(value, digits)} ${units[at]}`;
    }

    const known =
        (f) =>
        (v, ...rest) =>
            v === null || v === undefined ? "\u2013" : f(v, ...rest);
    const format = {
        number,
        time: known((ns) => scaled(ns, ["ns", "\u00b5s", "ms", "s"], 1000, 3)),
        bytes: known((n) => scaled(n, ["B", "KiB", "MiB", "GiB", "TiB"], 1024, 4)),
        rate: known((n) => scaled(n, ["", "thousand", "million"], 1000, 3).trim() + "/s"),
        gbps: known((g) =>
            g < 0.9995 ? scaled(g * 1e6, ["kbit/s", "Mbit/s"], 1000, 3) : `${number(g)} Gbit/s`,
        ),
        ratio: known((r) => `\u00d7${number(r)}`),
        /* Of an axis in powers of two: as far to twice as to half. */
        power: known((v) => (v < 0 ? `\u00f7${number(2 ** -v)}` : `\u00d7${number(2 ** v)}`)),
        percent: known((p) => `${number(p)} %`),
    };

    /* The top of the page. state: "good", "warn" or "bad", and the word for it. tiles: a value and
     * what it is. */
    function head({ title, lead, state, word, verdict, findings, tiles }) {
        main.append(
            el(
                "header",
                {},
                el("h1", { text: title }),
                el("p", { class: "quiet", text: lead || "" }),
            ),
        );
        if (verdict)
            main.append(
                el(
                    "section",
                    { class: `banner ${state || ""}`, "aria-label": "Verdict" },
                    el("div", { class: "state", text: word || "" }),
                    el("p", { text: verdict }),
                    list(findings),
                ),
            );
        if (tiles && tiles.length > 0)
            main.append(
                el(
                    "ul",
                    { class: "tiles" },
                    ...tiles.map((t) =>
                        el("li", {}, el("b", { text: t.value }), el("span", { text: t.label })),
                    ),
                ),
            );
        main.append(el("nav", { "aria-label": "Sections" }, el("ul", { id: "sections" })));
    }

    function list(texts) {
        if (!texts || texts.length === 0) return null;
        return el("ul", { class: "findings" }, ...texts.map((t) => el("li", { text: t })));
    }

    /* A section with its heading and what it is about; it is named in the navigation. */
    function section(title, lead) {
        const id = title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
        const node = el(
            "section",
            { id, "aria-labelledby": `${id}-h` },
            el("h2", { id: `${id}-h`, text: title }),
        );
        if (lead) node.append(el("p", { text: lead }));
        main.append(node);
        const sections = document.getElementById("sections");
        if (sections) sections.append(el("li", {}, el("a", { href: `#${id}`, text: title })));
        return node;
    }

    /* Columns: texts, or {name, number: true} (right), or {name, wide: true}; one of which no row
     * has anything is left out. Cells: texts or nodes. */
    function table(parent, { caption, columns, rows: given }) {
        const empty = (value) => value === undefined || value === null || value === "\u2013";
        const has = columns.map((_, i) => i === 0 || given.some((row) => !empty(row[i])));
        const rows = given.map((row) => row.filter((_, i) => has[i]));
        const heads = columns
            .filter((_, i) => has[i])
            .map((c) => (typeof c === "string" ? { name: c } : c));
        const kind = (c) => (c.number ? "n" : c.wide ? "w" : null);
        const cell = (value, c) =>
            el("td", { class: kind(c) }, value instanceof Node ? value : String(value ?? "\u2013"));
        const node = el(
            "table",
            {},
            caption ? el("caption", { text: caption }) : null,
            el(
                "thead",
                {},
                el(
                    "tr",
                    {},
                    ...heads.map((c) => el("th", { scope: "col", class: kind(c), text: c.name })),
                ),
            ),
            el(
                "tbody",
                {},
                ...rows.map((row) =>
                    el(
                        "tr",
                        {},
                        ...row.map((value, i) =>
                            i === 0
                                ? el(
                                      "th",
                                      { scope: "row", class: kind(heads[0]) },
                                      value instanceof Node ? value : String(value),
                                  )
                                : cell(value, heads[i]),
                        ),
                    ),
                ),
            ),
        );
        parent.append(
            el(
                "div",
                {
                    class: "scroll",
                    tabindex: "0",
                    role: "region",
                    "aria-label": caption || "Table",
                },
                node,
            ),
        );
        return node;
    }

    /* A labelled select, where there is something to choose; values: texts or [value, text].
     * Calls changed(value) at once with the first, and whenever another is chosen. */
    function choice(parent, label, values, changed) {
        const pairs = values.map((v) => (Array.isArray(v) ? v : [v, String(v)]));
        if (pairs.length > 1) {
            const select = el(
                "select",
                {},
                ...pairs.map(([, text], i) => el("option", { value: i, text })),
            );
            let box = parent.querySelector(":scope > .choices");
            if (!box) parent.append((box = el("div", { class: "choices" })));
            box.append(el("label", {}, label, select));
            select.addEventListener("change", () => changed(pairs[select.selectedIndex][0]));
        }
        if (pairs.length > 0) changed(pairs[0][0]);
    }

    /* Room for figures, two beside one another where there is the width. */
    function pair(parent) {
        const node = el("div", { class: "pair" });
        parent.append(node);
        return node;
    }

    function variable(name) {
        return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    }

    /* The n-th colour of series. */
    function color(n) {
        return variable(`--c${n + 1}`);
    }

    function theme() {
        const text = variable("--text"),
            quiet = variable("--quiet"),
            line = variable("--line");
        const axis = {
            axisLine: { show: true, lineStyle: { color: line } },
            axisTick: { lineStyle: { color: line } },
            axisLabel: { color: quiet, fontSize: 12, hideOverlap: true, lineHeight: 15 },
            nameTextStyle: { color: quiet, fontSize: 12 },
            splitLine: { lineStyle: { color: line, opacity: 0.6 } },
            minorSplitLine: { show: false },
        };
        const words = { color: text, fontSize: 12 };
        return {
            color: [0, 1, 2, 3, 4, 5, 6, 7].map(color),
            backgroundColor: "transparent",
            textStyle: { fontFamily: getComputedStyle(main).fontFamily, color: text },
            title: { textStyle: words },
            categoryAxis: { ...axis, axisLabel: { ...axis.axisLabel, margin: 10 } },
            valueAxis: axis,
            logAxis: axis,
            timeAxis: axis,
            tooltip: { backgroundColor: variable("--back"), borderColor: line, textStyle: words },
            visualMap: { textStyle: words },
        };
    }

    /* One axis or several. */
    function named(axis, more) {
        if (Array.isArray(axis)) return axis.map((a) => named(a, more));
        return axis && { ...more, ...axis };
    }

    /* What holds for every chart where its own option says nothing else: names below the x axis and
     * above the y axis, within the picture. */
    function complete(option) {
        const x = named(option.xAxis, { nameLocation: "middle", nameGap: 32 });
        const y = named(option.yAxis, {
            nameLocation: "end",
            nameGap: 12,
            nameTextStyle: { align: "left" },
        });
        return {
            animation: false,
            aria: { enabled: false } /* the figure has its label, and a table */,
            ...option,
            ...(x && { xAxis: x }),
            ...(y && { yAxis: y }),
            legend: { show: false },
            grid: { left: 8, right: 32, top: 34, bottom: 34, containLabel: true, ...option.grid },
            tooltip: { confine: true, ...option.tooltip },
        };
    }

    function draw(c) {
        const narrow = c.plot.clientWidth < NARROW_PIXELS;
        if (c.instance) c.instance.dispose();
        const option = complete(c.make({ narrow, width: c.plot.clientWidth, variable }));
        c.plot.style.height = `${typeof c.height === "function" ? c.height(narrow) : c.height}px`;
        c.instance = echarts.init(c.plot, theme(), { renderer: "svg" });
        c.instance.setOption(option);
        c.width = c.plot.clientWidth;
        draw_legend(c, option);
    }

    function draw_legend(c, option) {
        const colors = c.instance.getOption().color;
        const names = [...new Set((option.series || []).map((s) => s.name).filter(Boolean))];
        c.legend.replaceChildren();
        if (names.length < 2 || c.bare) return;
        names.forEach((name, i) => {
            const of = option.series.find((s) => s.name === name);
            const own = of.itemStyle?.color || of.lineStyle?.color;
            const mark = el("i");
            mark.style.background = typeof own === "string" ? own : colors[i % colors.length];
            const button = el("button", { type: "button", "aria-pressed": "true" }, mark, name);
            button.addEventListener("click", () => {
                const on = button.getAttribute("aria-pressed") !== "true";
                button.setAttribute("aria-pressed", String(on));
                c.instance.dispatchAction({ type: on ? "legendSelect" : "legendUnSelect", name });
            });
            c.legend.append(button);
        });
    }

    /* A figure. describe: what is to be seen, for who does not see it; make(view): the option of
     * ECharts for view.narrow, view.width, view.variable("--c1"); height: pixels, or a function of
     * narrow; figures: columns and rows as of table(). describe and figures may be functions.
     * choices: [label, values, set] each, as of choice(); a change draws the chart anew. Series are
     * told apart by their names. update() draws it anew for other reasons. */
    function chart(parent, { title, note, describe, height = 320, make, figures, bare, choices }) {
        const plot = el("div", { class: "plot", role: "img" });
        const legend = el("div", { class: "legend", role: "group", "aria-label": "Series" });
        const details = el("details", {}, el("summary", { text: "The figures" }));
        const top = el(
            "figcaption",
            {},
            el("h3", { text: title }),
            note ? el("p", { class: "note", text: note }) : null,
        );
        const node = el("figure", {}, top, legend, plot, details);
        const c = { plot, legend, make, height, bare, instance: null, width: 0 };
        const called = (f) => (typeof f === "function" ? f() : f);
        const update = () => {
            plot.setAttribute("aria-label", called(describe));
            details.querySelectorAll(".scroll").forEach((old) => old.remove());
            table(details, { caption: title, ...called(figures) });
            draw(c);
        };
        let ready = false;
        (choices || []).forEach(([label, values, set]) =>
            choice(top, label, values, (value) => {
                set(value);
                if (ready) update();
            }),
        );
        ready = true;
        parent.append(node);
        charts.push(c);
        update();
        new ResizeObserver(() => {
            if (c.plot.clientWidth !== c.width && c.plot.clientWidth > 0) draw(c);
        }).observe(plot);
        return { node, update };
    }

    window
        .matchMedia("(prefers-color-scheme: dark)")
        .addEventListener("change", () => charts.forEach(draw));

    return { data, main, el, format, head, list, section, table, choice, pair, chart, color };
})();
