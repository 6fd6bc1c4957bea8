/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_html_path.js: the way of one operation, drawn: between both ends step by step, to scale, and
 * as a walk in words. And what experiments have shown.
 */
"use strict";

const lab_path = (() => {
    const { format, section, table, choice, chart, el } = report;
    const ENDS = ["source", "target"];
    const ROW_PIXELS = 30;
    const WORDS = 48;

    /* One unit for a whole path, so that small steps late are told apart. */
    const us = (ns) =>
        (ns / 1000).toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
    const title_of = (p) => `${p.op} of ${format.bytes(p.size)}, ${p.transport}`;
    const split = (what) => {
        const at = what.indexOf(": ");
        return at < 0 ? ["", what] : [what.slice(0, at), what.slice(at + 2)];
    };

    /* Who sent what came: the same last packet, the other way. */
    function arrows(steps) {
        const found = [];
        steps.forEach((to, row) => {
            if (!to.packets || to.packets.sent) return;
            const from = steps.findIndex(
                (s, k) =>
                    k < row &&
                    s.packets &&
                    s.packets.sent &&
                    s.end !== to.end &&
                    s.packets.last_psn === to.packets.last_psn &&
                    !found.some((f) => f.from === k),
            );
            if (from >= 0) found.push({ from, to: row });
        });
        return found;
    }

    const step_figures = (path) => ({
        columns: [
            "step",
            "end",
            { name: "begins, \u00b5s", number: true },
            { name: "takes, \u00b5s", number: true },
        ],
        rows: path.steps.map((s) => [
            `${s.number} ${split(s.what)[0]}`,
            s.end,
            us(s.begin_ns),
            us(s.end_ns - s.begin_ns),
        ]),
    });

    function show_sequence(where, path) {
        const lane = (s) => ENDS.indexOf(s.end);
        const shorten = (text, n) => (text.length > n ? `${text.slice(0, n - 1)}\u2026` : text);
        return chart(where, {
            title: "Step by step",
            note:
                "From top to bottom as time passes, not to scale; arrows are packets. The " +
                "numbers are those of the walk below.",
            describe: "Sequence of the steps of one operation between source and target",
            height: () => 70 + ROW_PIXELS * path().steps.length,
            bare: true,
            figures: () => step_figures(path()),
            make: ({ narrow, width, variable }) => {
                /* Arrows end beside their circles. */
                const beside = (15 * (narrow ? 1.24 : 3.2)) / (width - 120);
                const steps = path().steps,
                    color = (s) => variable(`--c${lane(s) + 1}`);
                return {
                    grid: { right: 16, bottom: 8 },
                    xAxis: {
                        type: "value",
                        min: narrow ? -0.12 : -1.1,
                        max: narrow ? 1.12 : 2.1,
                        position: "top",
                        splitLine: { show: false },
                        axisTick: { show: false },
                        axisLine: { show: false },
                        interval: 1,
                        axisLabel: { show: false },
                    },
                    yAxis: {
                        type: "category",
                        inverse: true,
                        axisTick: { show: false },
                        axisLine: { show: false },
                        data: steps.map((s) => `${us(s.begin_ns)} \u00b5s`),
                    },
                    tooltip: { trigger: "item", formatter: (p) => p.data.tip },
                    series: [
                        {
                            type: "lines",
                            coordinateSystem: "cartesian2d",
                            silent: true,
                            z: 1,
                            data: ENDS.map((_, x) => ({
                                coords: [
                                    [x, 0],
                                    [x, steps.length - 1],
                                ],
                                lineStyle: { color: variable("--line"), width: 2 },
                            })),
                        },
                        {
                            type: "lines",
                            coordinateSystem: "cartesian2d",
                            symbol: ["none", "arrow"],
                            symbolSize: 8,
                            z: 2,
                            tooltip: { show: false },
                            data: arrows(steps).map((a) => ({
                                coords: [
                                    [lane(steps[a.from]), a.from],
                                    [Math.abs(lane(steps[a.to]) - beside), a.to],
                                ],
                                lineStyle: { color: color(steps[a.from]), width: 2, opacity: 0.8 },
                            })),
                        },
                        {
                            type: "scatter",
                            symbolSize: 20,
                            z: 3,
                            data: steps.map((s, row) => ({
                                value: [lane(s), row],
                                tip: `${s.number}. ${s.end}, ${s.what}`.replace(/</g, "&lt;"),
                                itemStyle: {
                                    color: variable("--back"),
                                    borderColor: color(s),
                                    borderWidth: 2,
                                },
                                label: {
                                    show: true,
                                    formatter: String(s.number),
                                    fontSize: 12,
                                    color: variable("--text"),
                                },
                            })),
                        },
                        ...(narrow
                            ? []
                            : [
                                  {
                                      type: "scatter",
                                      symbolSize: 1,
                                      silent: true,
                                      itemStyle: { color: "transparent" },
                                      data: steps.map((s, row) => ({
                                          value: [lane(s), row],
                                          label: {
                                              show: true,
                                              position: lane(s) === 0 ? "left" : "right",
                                              distance: 18,
                                              fontSize: 12,
                                              color: variable("--quiet"),
                                              formatter: shorten(split(s.what)[1], WORDS),
                                          },
                                      })),
                                  },
                              ]),
                        {
                            type: "scatter",
                            symbolSize: 1,
                            silent: true,
                            itemStyle: { color: "transparent" },
                            data: ENDS.map((end, x) => ({
                                value: [x, 0],
                                label: {
                                    show: true,
                                    position: "top",
                                    distance: 14,
                                    fontSize: 13,
                                    fontWeight: "bold",
                                    color: variable("--text"),
                                    formatter: end,
                                },
                            })),
                        },
                    ],
                };
            },
        });
    }

    /* Two clocks have no common scale: one end at a time then. */
    function show_scale(where, path) {
        const two = path().clocks === 2;
        let only = null;
        const shown = () => path().steps.filter((s) => only === null || s.end === only);
        return chart(where, {
            title: "To scale",
            note: "When each step began and ended; a dot is a moment.",
            describe: "Begin and end of each step of one operation over time",
            choices: two ? [["By the clock of", ENDS, (value) => (only = value)]] : [],
            height: () => 80 + 22 * shown().length,
            figures: () => step_figures({ steps: shown() }),
            make: ({ narrow }) => {
                const steps = shown();
                const of = (end, value) => steps.map((s) => (s.end === end ? value(s) : null));
                return {
                    grid: { top: 8 },
                    xAxis: {
                        type: "value",
                        name: `since the first step${two ? " at that end" : ""}`,
                        min: 0,
                        splitNumber: narrow ? 3 : 8,
                        axisLabel: { formatter: format.time },
                    },
                    yAxis: {
                        type: "category",
                        inverse: true,
                        axisTick: { show: false },
                        data: steps.map((s) =>
                            narrow ? String(s.number) : `${s.number} ${split(s.what)[0]}`,
                        ),
                    },
                    tooltip: {
                        trigger: "axis",
                        axisPointer: { type: "shadow" },
                        formatter: (all) => {
                            const s = steps[all[0].dataIndex];
                            return (
                                `${s.number}. ${s.end}<br>${format.time(s.begin_ns)} to ` +
                                format.time(s.end_ns)
                            );
                        },
                    },
                    series: [
                        {
                            type: "bar",
                            stack: "t",
                            silent: true,
                            itemStyle: { color: "transparent" },
                            data: steps.map((s) => s.begin_ns),
                        },
                        ...ENDS.map((end) => ({
                            name: end,
                            type: "bar",
                            stack: "t",
                            barMaxWidth: 10,
                            barMinHeight: 0,
                            data: of(end, (s) => s.end_ns - s.begin_ns),
                        })),
                        ...ENDS.map((end) => ({
                            name: end,
                            type: "scatter",
                            symbolSize: 7,
                            data: steps
                                .map((s, row) => [s.begin_ns, row])
                                .filter(([, row]) => steps[row].end === end),
                        })),
                    ].map((s) =>
                        s.name
                            ? { ...s, itemStyle: { color: report.color(ENDS.indexOf(s.name)) } }
                            : s,
                    ),
                };
            },
        });
    }

    function show(paths) {
        if (paths.length === 0) return;
        const where = section(
            "The path of one operation",
            "Who did what, when, what that proves and what not. Times are since the first " +
                (paths[0].clocks === 2
                    ? "step at that end, by its own clock; the two are never compared."
                    : "step, by the one clock of the machine."),
        );
        let at = 0;
        const walk = el("div");
        const parts = [];
        const path = () => paths[at];
        const show_walk = () => {
            walk.replaceChildren();
            if (path().wait) walk.append(el("p", { class: "note", text: `${path().wait.says}.` }));
            table(walk, {
                caption: `The walk: ${title_of(path())}`,
                columns: [
                    "",
                    "end",
                    { name: "what happens", wide: true },
                    { name: "from, \u00b5s", number: true },
                    { name: "to, \u00b5s", number: true },
                    { name: "proves", wide: true },
                    { name: "does not prove", wide: true },
                ],
                rows: path().steps.map((s) => [
                    String(s.number),
                    s.end,
                    s.what,
                    us(s.begin_ns),
                    us(s.end_ns),
                    s.proves,
                    s.not,
                ]),
            });
        };
        choice(
            where,
            "Operation",
            paths.map((p, i) => [i, title_of(p)]),
            (value) => {
                at = value;
                parts.forEach((p) => p.update());
                show_walk();
            },
        );
        parts.push(show_sequence(where, path), show_scale(where, path));
        where.append(walk);
    }

    return { show };
})();

const lab_experiments = (() => {
    const { format, section, table, choice, chart, el } = report;

    function counts(trial) {
        const texts = ["source", "target"].flatMap((end) =>
            Object.entries((trial[end] || {}).counts || {})
                .filter(([, n]) => n > 0)
                .map(([name, n]) => `${end}: ${name.replace(/_/g, " ")} ${format.number(n, 9)}`),
        );
        if (trial.doubt) texts.push(`in doubt: ${trial.doubt}`);
        return texts.length > 0 ? texts.join("; ") : "\u2013";
    }

    function figures(trials) {
        return {
            columns: [
                "way",
                ...["rounds", "median", "p99", "throughput", "CPU of a message"].map((name) => ({
                    name,
                    number: true,
                })),
                { name: "seen", wide: true },
                { name: "proves", wide: true },
                { name: "does not prove", wide: true },
            ],
            rows: trials.map((t) => [
                t.variant,
                format.number(t.rounds, 9),
                format.time((t.latency || {}).p50_ns),
                format.time((t.latency || {}).p99_ns),
                format.gbps(t.gbps),
                format.time(1000 * t.cpu_us_a_message),
                counts(t),
                t.proves,
                t.not,
            ]),
        };
    }

    const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

    /* So far from one another that the small ones would not be seen? */
    function far(values) {
        const some = values.filter((v) => v > 0);
        return Math.max(...some) > 30 * Math.min(...some);
    }

    /* Bars of what the trials have: a median, or a throughput. */
    function draw(where, experiment, trials, kind) {
        const value = (t) => kind.value(t) ?? null;
        return chart(where, {
            title: `${experiment.name}: ${kind.title}`,
            describe: `${kind.title} of each way of the experiment ${experiment.name}`,
            height: (narrow) => 90 + (narrow ? 56 : 34) * trials().length,
            figures: () => figures(trials()),
            make: ({ narrow }) => ({
                xAxis: {
                    type: far(trials().map(value)) ? "log" : "value",
                    name: kind.title,
                    splitNumber: narrow ? 3 : 6,
                    axisLabel: { formatter: kind.text },
                },
                yAxis: {
                    type: "category",
                    inverse: true,
                    data: trials().map((t) => t.variant),
                    axisLabel: { width: narrow ? 110 : 260, overflow: "break" },
                },
                grid: { top: 8 },
                tooltip: {
                    trigger: "axis",
                    valueFormatter: kind.text,
                    axisPointer: { type: "shadow" },
                },
                series: [{ type: "bar", barMaxWidth: 18, data: trials().map(value) }],
            }),
        });
    }

    const KINDS = [
        { title: "median latency", value: (t) => (t.latency || {}).p50_ns, text: format.time },
        { title: "throughput", value: (t) => t.gbps, text: format.gbps },
        {
            title: "CPU time of a message",
            value: (t) => 1000 * t.cpu_us_a_message,
            text: format.time,
        },
    ];

    function show(experiments) {
        if (experiments.length === 0) return;
        const where = section(
            "Experiments",
            "One thing about RDMA each, shown by doing it in several ways.",
        );
        for (const x of experiments) {
            const all = x.trials || [],
                box = el("div"),
                charts = [];
            const sizes = [...new Set(all.map((t) => t.size))];
            let size = sizes[0];
            const trials = () => all.filter((t) => t.size === size);
            where.append(box);
            box.append(
                el("h3", { text: x.name }),
                el("p", { text: x.about || "" }),
                el("p", {
                    class: `claim ${x.passed ? "good" : "bad"}`,
                    text: sentence(x.summary || "it broke off: nothing is said about it"),
                }),
            );
            const words = el("div");
            const tell = () => {
                words.replaceChildren();
                table(words, { caption: `${x.name}, ${format.bytes(size)}`, ...figures(trials()) });
            };
            choice(
                box,
                "Size",
                sizes.map((s) => [s, format.bytes(s)]),
                (value) => {
                    size = value;
                    charts.forEach((c) => c.update());
                    tell();
                },
            );
            const kind = KINDS.filter((k) => all.filter((t) => k.value(t) > 0).length > 1).slice(
                0,
                1,
            );
            kind.forEach((k) => charts.push(draw(box, x, trials, k)));
            box.append(words);
        }
    }

    return { show };
})();
