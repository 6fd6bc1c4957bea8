/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_charts.js: the sections of report.html, one after the other.
 */
"use strict";

(() => {
    const {
        d,
        format,
        el,
        TOP,
        QUEUE,
        PAUSE,
        nodes,
        ports,
        port_name,
        queue_bytes,
        times,
        length_ns,
        gbps,
        when,
        total,
        unit,
        in_unit,
        frames,
        all_events,
    } = page;
    const HEAT_ROWS = 40,
        LINES = 8;

    /* Rows by time, the worst rows only, in the order of ports. */
    function heat_map(parent, what, title, note, unit_text, show) {
        const chosen = ports.filter(
            (p) => p.levels && p.levels[what].some((v) => v > 0) && (what === PAUSE || p.at_switch),
        );
        const sum = (p) => p.levels[what].reduce((a, v) => a + v, 0);
        const rows = chosen
            .sort((a, b) => sum(b) - sum(a))
            .slice(0, HEAT_ROWS)
            .sort((a, b) => a.i - b.i)
            .reverse();
        if (rows.length === 0) {
            parent.append(
                el("p", {
                    text:
                        what === PAUSE
                            ? "No port was told to pause."
                            : "No frame had to queue in a switch.",
                }),
            );
            return;
        }
        const cells = rows.flatMap((p, y) =>
            [...p.levels[what]].map((v, t) => [t, y, v]).filter(([, , v]) => v > 0),
        );
        report.chart(parent, {
            title,
            bare: true,
            note:
                note +
                (chosen.length > rows.length
                    ? ` The ${rows.length} worst of ${chosen.length}.`
                    : ""),
            describe:
                `Heat map, ports by time. ${title}: worst is ` +
                port_name(rows.reduce((a, p) => (sum(p) > sum(a) ? p : a))),
            height: () => 70 + rows.length * 17,
            figures: {
                columns: [
                    "Port",
                    { name: "Worst", number: true },
                    { name: "At", number: true },
                    { name: "Mean", number: true },
                ],
                rows: [...rows].reverse().map((p) => {
                    const worst = Math.max(...p.levels[what]);
                    return [
                        port_name(p),
                        show(worst),
                        when(p.levels[what].indexOf(worst)),
                        show(sum(p) / d.intervals),
                    ];
                }),
            },
            make: ({ narrow, variable }) => ({
                grid: { left: 8, right: 12, top: 8, bottom: 34, containLabel: true },
                xAxis: {
                    type: "category",
                    data: times,
                    name: unit[1],
                    axisTick: { show: false },
                    axisLabel: {
                        interval: (t) => round_time(t, narrow) !== null,
                        formatter: (_, t) => String(round_time(t, narrow) ?? ""),
                    },
                },
                yAxis: {
                    type: "category",
                    data: rows.map(port_name),
                    axisLabel: { interval: 0, fontSize: 12 },
                    axisTick: { show: false },
                },
                visualMap: {
                    show: false,
                    min: 0,
                    max: TOP,
                    dimension: 2,
                    inRange: {
                        color:
                            what === PAUSE
                                ? [variable("--card"), variable("--warn"), variable("--bad")]
                                : [variable("--card"), variable("--c1"), variable("--c2")],
                    },
                },
                tooltip: {
                    formatter: ({ value: [t, y, v] }) =>
                        `${port_name(rows[y])}, ${when(t)}: ${show(v)} ${unit_text}`,
                },
                series: [{ type: "heatmap", data: cells, progressive: 0 }],
            }),
        });
    }

    /* A round figure that lies in this interval, a few of them in all; else null. */
    function round_time(t, narrow) {
        const rough = in_unit(d.end_ns) / (narrow ? 3 : 6),
            power = 10 ** Math.floor(Math.log10(rough));
        const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
        const first = Math.ceil(in_unit(times[t]) / step - 1e-9);
        return first * step < in_unit(times[t] + d.interval_ns) - 1e-9
            ? Number((first * step).toPrecision(6))
            : null;
    }

    function line_chart(parent, title, note, series, describe) {
        report.chart(parent, {
            title,
            note,
            describe,
            height: 300,
            figures: {
                columns: ["Series", { name: "Mean", number: true }, { name: "Most", number: true }],
                rows: series.map(({ name, values }) => [
                    name,
                    format.gbps(
                        values.reduce((a, v, t) => a + v * length_ns(t), 0) / Math.max(1, d.end_ns),
                    ),
                    format.gbps(Math.max(...values)),
                ]),
            },
            make: ({ narrow }) => ({
                xAxis: {
                    type: "value",
                    min: 0,
                    max: in_unit(d.end_ns),
                    name: unit[1],
                    axisLabel: {
                        showMaxLabel: false,
                        hideOverlap: true,
                        formatter: (v) => format.number(v),
                    },
                    splitNumber: narrow ? 3 : 6,
                },
                yAxis: { type: "value", name: "Gbit/s" },
                tooltip: { trigger: "axis", valueFormatter: (v) => format.gbps(v) },
                series: series.map(({ name, values, area }) => ({
                    name,
                    type: "line",
                    step: "end",
                    showSymbol: false,
                    lineStyle: { width: area ? 2 : 1.5 },
                    areaStyle: area ? { opacity: 0.15 } : undefined,
                    data: values
                        .map((v, t) => [in_unit(times[t]), Number(v.toPrecision(4))])
                        .concat([
                            [in_unit(d.end_ns), Number(values[values.length - 1].toPrecision(4))],
                        ]),
                })),
            }),
        });
    }

    function throughput() {
        const parent = report.section(
            "Throughput",
            "Payload that arrived, and what hosts put on their links and got from them.",
        );
        line_chart(
            parent,
            "All flows together",
            "What was sent a second time counts as often as it arrived.",
            [{ name: "arrived", values: d.arrived.map(gbps), area: true }],
            "Payload that arrived over time, in Gbit/s",
        );
        const sent = d.sent.map(([i, bytes]) => ({
            name: nodes[ports[i].node].name,
            values: bytes.map(gbps),
        }));
        const got = d.received.map(([i, bytes]) => ({
            name: nodes[ports[i].peer].name,
            values: bytes.map(gbps),
        }));
        const flows = d.followed
            .map(([flow, src, dst, bytes]) => ({
                name: `${flow}: ${nodes[src].name} \u2192 ${nodes[dst].name}`,
                values: bytes.map(gbps),
            }))
            .filter(({ values }) => values.some((v) => v > 0))
            .slice(0, LINES);
        const views = [
            ["sent by hosts", sent],
            ["received by hosts", got],
            ["flows", flows],
        ].filter(([, s]) => s.length > 0);
        const holder = el("div");
        if (views.length === 0) return;
        report.choice(
            parent,
            "Lines",
            views.map(([name, s]) => [[name, s], name]),
            ([name, s]) => {
                holder.replaceChildren();
                line_chart(
                    holder,
                    `Throughput: ${name}`,
                    `The ${s.length} with most bytes` +
                        (name === "flows"
                            ? ", of the largest flows."
                            : ", frames and answers included."),
                    s,
                    `Throughput over time in Gbit/s, ${name}`,
                );
            },
        );
        parent.append(holder);
    }

    function latency() {
        const parent = report.section(
            "Latency",
            "Flow completion times: from the start to the sender's last acknowledgement. " +
                "Slowdown: how often as long as alone in the network.",
        );
        const rows = d.slowdowns.map(([least, most, n, ...q]) => [
            least === most
                ? format.bytes(least)
                : `${format.bytes(least)} \u2013 ${format.bytes(most)}`,
            n,
            ...q.map((v) => v / 1000),
        ]);
        if (d.fct_ns.length === 0) {
            parent.append(el("p", { text: "No flow finished." }));
        } else {
            const log = d.fct_ns[100] > 20 * d.fct_ns[0];
            const scale = [
                [1, "ns"],
                [1e3, "\u00b5s"],
                [1e6, "ms"],
                [1e9, "s"],
            ]
                .filter(([n]) => d.fct_ns[100] >= 2 * n)
                .pop() || [1, "ns"];
            report.chart(parent, {
                title: "Completion times",
                note: "Share of flows that were through after so long.",
                describe: `Distribution of flow completion times: half within ` +
                    `${format.time(d.fct_ns[50])}, all within ` +
                    `${format.time(d.fct_ns[100])}`,
                height: 280,
                figures: {
                    columns: ["Share of flows", { name: "Within", number: true }],
                    rows: [0, 25, 50, 75, 90, 95, 99, 100].map((q) => [
                        `${q} %`,
                        format.time(d.fct_ns[q]),
                    ]),
                },
                make: () => ({
                    xAxis: {
                        type: log ? "log" : "value",
                        name: scale[1],
                        scale: true,
                        min: log ? "dataMin" : undefined,
                        axisLabel: {
                            hideOverlap: true,
                            showMinLabel: !log,
                            showMaxLabel: false,
                            formatter: (v) => format.number(v),
                        },
                    },
                    yAxis: { type: "value", name: "% of flows", min: 0, max: 100 },
                    tooltip: {
                        trigger: "axis",
                        formatter: ([
                            {
                                value: [ns, q],
                            },
                        ]) => `${q} % within ${format.time(ns * scale[0])}`,
                    },
                    series: [
                        {
                            type: "line",
                            step: "end",
                            showSymbol: false,
                            lineStyle: { width: 2 },
                            areaStyle: { opacity: 0.12 },
                            data: d.fct_ns.map((ns, q) => [Math.max(ns, 1) / scale[0], q]),
                        },
                    ],
                }),
            });
            report.chart(parent, {
                title: "Slowdown by size",
                note:
                    "A dot is a flow" +
                    (d.dots.length < total.finished ? ", of every few" : "") +
                    "; 1 is alone in the network.",
                describe: `Slowdown of flows by their size, up to ` +
                    `${format.number(Math.max(1, ...rows.map((r) => r[6])))}`,
                height: 300,
                figures: {
                    columns: [
                        "Size",
                        ...["Flows", "Least", "Median", "95 %", "99 %", "Most"].map((name) => ({
                            name,
                            number: true,
                        })),
                    ],
                    rows: rows.map(([size, n, ...q]) => [
                        size,
                        format.number(n),
                        ...q.map((v) => format.ratio(v)),
                    ]),
                },
                make: () => ({
                    xAxis: {
                        type: "log",
                        logBase: 4,
                        name: "bytes",
                        min: (v) => v.min / 4,
                        max: (v) => v.max * 4,
                        axisLabel: {
                            hideOverlap: true,
                            formatter: (v) => format.bytes(v),
                            showMinLabel: false,
                            showMaxLabel: false,
                        },
                    },
                    yAxis: {
                        type: "log",
                        name: "slowdown",
                        min: 1,
                        axisLabel: { formatter: (v) => format.number(v) },
                    },
                    tooltip: {
                        formatter: ({ value: [b, s] }) => `${format.bytes(b)}: ${format.ratio(s)}`,
                    },
                    series: [
                        {
                            type: "scatter",
                            name: "flows",
                            symbolSize: 6,
                            itemStyle: { opacity: 0.45 },
                            data: d.dots
                                .filter(([, s]) => s > 0)
                                .map(([b, s]) => [b, Math.max(1, s / 1000)]),
                        },
                        {
                            type: "line",
                            name: "99 % of a size",
                            symbolSize: 7,
                            data: d.slowdowns
                                .filter((r) => r[6] > 0)
                                .map(([least, most, , , , , p99]) => [
                                    Math.sqrt(least * most),
                                    Math.max(1, p99 / 1000),
                                ]),
                        },
                    ],
                }),
            });
        }
        report.table(parent, {
            caption: `The ${d.slowest.length} slowest flows; those that did not finish first`,
            columns: [
                "Flow",
                "From",
                "To",
                ...["Prio", "Size", "Start", "Time", "Slowdown", "Retries", "CNPs"].map((name) => ({
                    name,
                    number: true,
                })),
            ],
            rows: d.slowest
                .slice(0, 20)
                .map(
                    ([
                        flow,
                        src,
                        dst,
                        priority,
                        bytes,
                        start,
                        fct,
                        slow,
                        retries,
                        cnps,
                        failed,
                    ]) => [
                        String(flow),
                        nodes[src].name,
                        nodes[dst].name,
                        String(priority),
                        format.bytes(bytes),
                        format.time(start),
                        fct === null
                            ? failed
                                ? "failed"
                                : start === null
                                  ? "not begun"
                                  : "open"
                            : format.time(fct),
                        slow ? format.ratio(slow / 1000) : "\u2013",
                        format.number(retries),
                        format.number(cnps),
                    ],
                ),
        });
    }

    function counters() {
        const parent = report.section(
            "Counters",
            "Sums of the whole run, and the queues with drops or the most bytes.",
        );
        report.table(parent, {
            caption: "Of the fabric",
            columns: ["Counter", { name: "Value", number: true }],
            rows: Object.entries(total).map(([name, value]) => [
                name.replace(/_/g, " "),
                name.includes("bytes") ? format.bytes(value) : format.number(value, 20),
            ]),
        });
        report.table(parent, {
            caption: "Queues of ports, by priority; ports.csv has all",
            columns: [
                "Port",
                ...[
                    "Prio",
                    "Longest queue",
                    "Paused",
                    "Paused its peer",
                    "Sent",
                    "ECN marks",
                    "Drops",
                ].map((name) => ({ name, number: true })),
            ],
            rows: d.queues
                .slice(0, 24)
                .map(([node, port, priority, queue, told, heard, bytes, marks, drops]) => [
                    port_name(ports[nodes[node].ports[port]]),
                    String(priority),
                    format.bytes(queue),
                    format.time(heard),
                    format.time(told),
                    format.bytes(bytes),
                    format.number(marks),
                    format.number(drops),
                ]),
        });
    }

    if (d.drawn && ports.length > 0) {
        const parent = report.section(
            "Propagation",
            "Who holds up whom. Each half of a link is the queue of the port at its end; " +
                "a red one was told to pause, and arrows are the frames that said so, on " +
                "their way to whoever must stop. " +
                "The strip below the slider has the whole run: ports that stand still (red), " +
                "what arrives (blue).",
        );
        const go = page_stage(parent);
        if (all_events.length > 0) {
            const list = el(
                "ul",
                { class: "events" },
                ...all_events.slice(0, 60).map((e) => {
                    const button = el("button", { type: "button", text: format.time(e.ns) });
                    button.addEventListener("click", () => go(Math.floor(e.ns / d.interval_ns)));
                    return el("li", { class: e.bad ? "bad-text" : null }, button, ` ${e.text}`);
                }),
            );
            parent.append(el("h3", { text: "Events" }), list);
        }
    } else if (ports.length > 0) {
        report.section(
            "Propagation",
            `A fabric of ${ports.length} ports is too large to be drawn here.`,
        );
    }
    const heat = report.section(
        "Queues and pauses",
        `Each cell is ${format.time(d.interval_ns)}; all priorities of a port together.`,
    );
    heat_map(
        heat,
        PAUSE,
        "Told to pause",
        "Share of the time that a port was told to pause.",
        "of the time",
        (v) => format.percent((100 * v) / TOP),
    );
    heat_map(
        heat,
        QUEUE,
        "Queues of switches",
        "The longest queue of a port in each interval.",
        "queued",
        (v) => format.bytes(Math.round(queue_bytes(v))),
    );
    throughput();
    latency();
    counters();
    const parameters = report.section(
        "Parameters",
        "What this run was made with. scenario.yaml beside this page has all of it, topology, " +
            "workload and defaults included; run again, it gives the same bytes.",
    );
    if (d.scenario !== null) {
        const text = el("pre", { text: d.scenario });
        text.style.overflowX = "auto";
        parameters.append(el("details", {}, el("summary", { text: "scenario.yaml" }), text));
    }
    report.table(parameters, {
        caption: "summary.json has them, too",
        columns: ["Parameter", { name: "Value", wide: true }],
        rows: Object.entries(d.parameters).map(([name, value]) => [
            name.replace(/_/g, " "),
            Array.isArray(value)
                ? value.join(", ") || "none"
                : name.endsWith("_bytes") && value > 4096
                  ? `${format.bytes(value)} (${value})`
                  : String(value ?? "none"),
        ]),
    });
})();
