/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_html.js: a record of the lab as a page. All that is drawn is in the record; what it does not
 * have is left out, section by section.
 */
"use strict";

(() => {
    const { data: record, format, head, section, table, choice, pair, chart, el } = report;
    const POINTS = [
        ["p50_ns", "median"],
        ["p99_ns", "p99"],
        ["p999_ns", "p99.9"],
        ["max_ns", "maximum"],
        ["mean_ns", "mean"],
    ];
    const PARTS = ["fill", "checksum", "copy", "register", "post", "poll"];
    const ENDS = ["source", "target"];
    const all = record.cases || [];
    /* A path is of one message, which is no measurement. */
    const cases = all.filter((c) => !c.path && c.measures.length > 0);
    const rdma = cases.filter((c) => c.op !== "tcp");
    const first_way = (cases.find((c) => c.op !== "tcp") || {}).buffers || "direct";
    const unique = (values) => [...new Set(values)];
    const by_number = (values) => unique(values).sort((a, b) => a - b);
    /* Atomics have a size of their own. */
    const common = by_number(cases.filter((c) => c.op !== "atomic").map((c) => c.size));
    const sizes = unique([...common, ...cases.map((c) => c.size)]);
    const depths = by_number(cases.map((c) => c.depth));
    const offsets = by_number(cases.map((c) => c.offset || 0));
    const ways = unique(rdma.map((c) => c.buffers));
    const ops = unique(cases.map((c) => c.op));
    const bytes_choice = (values) => values.map((v) => [v, format.bytes(v)]);
    /* Several queue pairs, the threads that drive them, and where the slots are. */
    const team = (c) =>
        (c.qps ? `, ${c.qps} queue pairs on ${c.threads} threads` : "") +
        (c.numa ? `, numa ${c.numa}` : "");
    const first_near = (cases.find((c) => c.op !== "tcp") || {}).numa;
    const first_team = team(cases.find((c) => c.op !== "tcp") || {});
    const plain = (c) =>
        ((c.buffers === first_way && team(c) === first_team) ||
            (c.op === "tcp" && c.numa === first_near)) &&
        (c.offset || 0) === offsets[0];
    const sum = (values) => values.reduce((a, b) => a + b, 0);
    const messages = (c) => c.messages + (c.warmup || 0);

    /* Of several measures of a case the one that ends with the application's word. */
    const measure = (c) => c.measures[c.measures.length - 1];
    /* What figures are also told as multiples of. */
    const BASES = [
        ["tcp", "TCP"],
        ["memcpy", "memcpy"],
    ];
    const ratio_of_point = (m, base, point) =>
        (m[`ratios_${base}`] || {})[point.replace("_ns", "")];

    function say(c) {
        const way = c.buffers === "direct" || c.op === "tcp" ? "" : `, ${c.buffers}`;
        const offset = c.offset ? `+${c.offset}` : "";
        return `${c.op} of ${format.bytes(c.size)}${offset} at depth ${c.depth}${team(c)}${way}`;
    }

    function best(list_of, value, smallest) {
        return list_of.reduce((a, c) => {
            const better = a === null || (smallest ? value(c) < value(a) : value(c) > value(a));
            return better ? c : a;
        }, null);
    }

    /* Without the word that stands above it. */
    function said(summary) {
        const at = summary.indexOf("; ");
        if (at < 0) return "All data were right, and no threshold was missed.";
        const rest = summary.slice(at + 2);
        return rest.charAt(0).toUpperCase() + rest.slice(1);
    }

    function show_head() {
        const verdict = record.verdict,
            tiles = [];
        /* Figures that tell little stand here only where there are no others. */
        const sure = rdma.filter((c) => !c.doubt),
            told = sure.length > 0 ? sure : rdma;
        const fast = best(told, (c) => c.gbps),
            near = best(told, (c) => measure(c).p50_ns, true);
        const doubt = (c) => (c.doubt ? ` (in doubt: ${c.doubt})` : "");
        if (fast)
            tiles.push({
                value: format.gbps(fast.gbps),
                label: `most: ${say(fast)}${doubt(fast)}`,
            });
        if (near)
            tiles.push({
                value: format.time(measure(near).p50_ns),
                label: `least median: ${say(near)}, ${measure(near).name}${doubt(near)}`,
            });
        const against = ((verdict || {}).tcp || {}).measures || [];
        for (const m of against)
            tiles.push({
                value: format.ratio(m.geometric_mean),
                label: `${m.name} against TCP, geometric mean (above 1: better)`,
            });
        if (all.length > 0)
            tiles.push({
                value: format.number(sum(all.map(lab_data.faults_of))),
                label: `data faults in ${format.number(sum(all.map(messages)))} messages`,
            });
        const state = record.error ? "bad" : ["good", "warn", "bad"][verdict.exit] || "bad";
        const word = record.error ? "Broke off" : ["Passed", "Missed", "Wrong data"][verdict.exit];
        const from = record.source || {},
            to = record.target || {};
        head({
            title: `RDMA path: ${from.host || "?"} to ${to.host || "?"}`,
            lead:
                `verbena lab ${from.program || ""}, ${record.settings.transport} on device ` +
                `${from.device || "?"}, ended ${(record.ended || "").replace("T", " ")}`,
            state,
            word,
            tiles,
            verdict: record.error || said(verdict.summary),
            findings: [
                ...((verdict || {}).findings || []),
                ...against.map((m) => m.says.charAt(0).toUpperCase() + m.says.slice(1)),
            ],
        });
    }

    const log_axis = (name, text) => ({ type: "log", name, axisLabel: { formatter: text } });
    const size_axis = (values) => ({
        type: "category",
        name: "bytes of a message",
        data: values.map((v) => format.bytes(v)),
    });
    const tip = (text) => ({ trigger: "axis", valueFormatter: text });
    const right = (names) => names.map((name) => ({ name: String(name), number: true }));

    /* Which cases a chart is of; the chart's choices change it. */
    function choose(own = {}) {
        const at = { size: sizes[0], depth: depths[0], ...own };
        at.by_size = [
            "Size",
            bytes_choice(sizes),
            (value) => {
                at.size = value;
            },
        ];
        at.by_depth = [
            "Depth",
            depths,
            (value) => {
                at.depth = value;
            },
        ];
        at.found = () =>
            cases.filter((c) => c.size === at.size && c.depth === at.depth && plain(c));
        return at;
    }

    /* A line for each operation over sizes or depths; an atomic has one size only. */
    function over(values, of, value) {
        return ops
            .filter((op) => op !== "atomic")
            .map((op) => ({
                op,
                points: values.map((v) => {
                    const c = of(op, v);
                    return c === undefined ? null : (value(c) ?? null);
                }),
            }))
            .filter((s) => s.points.some((p) => p !== null));
    }

    function find(op, size, depth) {
        return cases.find((c) => c.op === op && c.size === size && c.depth === depth && plain(c));
    }

    const over_sizes = (depth, value) => over(common, (op, size) => find(op, size, depth), value);
    const line_figures = (heads, lines, text) => ({
        columns: ["operation", ...right(heads)],
        rows: lines.map((s) => [s.op, ...s.points.map(text)]),
    });
    const line = (s) => ({
        name: s.op,
        type: "line",
        data: s.points,
        connectNulls: true,
        symbolSize: 6,
        lineStyle: { width: 2 },
    });

    function show_latency_sizes(where) {
        const at = choose();
        let point = POINTS[0];
        const lines = () => over_sizes(at.depth, (c) => measure(c)[point[0]]);
        chart(where, {
            title: "Latency and size",
            note: "With the application's acknowledgement where the operation has one.",
            choices: [
                [
                    "Of each",
                    POINTS.map((p) => [p, p[1]]),
                    (value) => {
                        point = value;
                    },
                ],
                at.by_depth,
            ],
            describe: () =>
                `Latency (${point[1]}) of each operation over the message's size, at ` +
                `depth ${at.depth}`,
            figures: () => line_figures(common.map(format.bytes), lines(), format.time),
            make: () => ({
                xAxis: { ...size_axis(common), boundaryGap: common.length < 2 },
                yAxis: log_axis("latency", format.time),
                tooltip: tip(format.time),
                series: lines().map(line),
            }),
        });
    }

    /* What share of the messages took no longer. */
    function steps(m) {
        let seen = 0;
        const points = [[m.min_ns, 0]];
        for (const [highest, count] of m.histogram_ns) {
            seen += count;
            points.push([Math.min(highest, m.max_ns), (100 * seen) / m.samples]);
        }
        return points;
    }

    function show_distribution(where) {
        const at = choose();
        const lines = () => at.found().flatMap((c) => c.measures);
        chart(where, {
            title: "Latency distribution",
            note:
                "How many of the messages took no longer than a time. The steeper the better; a " +
                "bend to the right at the top is the tail.",
            choices: [at.by_size, at.by_depth],
            describe: () =>
                `Distribution of each measure for ${format.bytes(at.size)} at depth ` +
                `${at.depth}: the share of messages that took no longer than a time`,
            figures: () => ({
                columns: [
                    "measure",
                    ...right(["samples", "least", "mean", "median", "p99", "p99.9", "most"]),
                ],
                rows: lines().map((m) => [
                    m.name,
                    format.number(m.samples, 9),
                    ...[m.min_ns, m.mean_ns, m.p50_ns, m.p99_ns, m.p999_ns, m.max_ns].map(
                        format.time,
                    ),
                ]),
            }),
            make: () => ({
                xAxis: log_axis("time since the clock started", format.time),
                yAxis: {
                    type: "value",
                    name: "messages",
                    min: 0,
                    max: 100,
                    axisLabel: { formatter: "{value} %" },
                },
                tooltip: {
                    trigger: "item",
                    formatter: (p) =>
                        `${p.seriesName}<br>${format.number(p.value[1])} % ` +
                        `within ${format.time(p.value[0])}`,
                },
                series: lines().map((m) => ({
                    name: m.name,
                    type: "line",
                    step: "end",
                    data: steps(m),
                    showSymbol: false,
                    lineStyle: { width: 2 },
                })),
            }),
        });
    }

    function show_throughput_depth(where) {
        const at = choose();
        const lines = () =>
            over(
                depths,
                (op, depth) => find(op, at.size, depth),
                (c) => c.gbps,
            );
        chart(where, {
            title: "Throughput and queue depth",
            choices: [
                [
                    "Size",
                    bytes_choice(common),
                    (value) => {
                        at.size = value;
                    },
                ],
            ],
            describe: () =>
                `Throughput of each operation over the queue depth, for ` + format.bytes(at.size),
            figures: () =>
                line_figures(
                    depths.map((d) => `depth ${d}`),
                    lines(),
                    format.gbps,
                ),
            make: () => ({
                xAxis: {
                    type: "category",
                    name: "messages under way",
                    data: depths.map(String),
                    boundaryGap: depths.length < 2,
                },
                yAxis: { type: "value", name: "throughput", axisLabel: { formatter: format.gbps } },
                tooltip: tip(format.gbps),
                series: lines().map((s) => ({
                    ...line(s),
                    type: depths.length > 1 ? "line" : "bar",
                })),
            }),
        });
    }

    function show_throughput_size(where) {
        const copies = record.memcpy || [],
            at = choose();
        const memcpy = common.map((s) => (copies.find((m) => m.size === s) || {}).gbps ?? null);
        const lines = () =>
            over_sizes(at.depth, (c) => c.gbps).concat(
                copies.length > 0 ? [{ op: "memcpy", points: memcpy }] : [],
            );
        chart(where, {
            title: "Throughput and size",
            note:
                copies.length > 0
                    ? "Dashed: memcpy between slots, the limit of what goes " + "through memory."
                    : null,
            choices: [
                [
                    "Depth",
                    [...depths].reverse(),
                    (value) => {
                        at.depth = value;
                    },
                ],
            ],
            describe: () =>
                `Throughput of each operation over the message's size, at depth ` +
                `${at.depth}, with memcpy as the limit`,
            figures: () => line_figures(common.map(format.bytes), lines(), format.gbps),
            make: ({ variable }) => ({
                xAxis: { ...size_axis(common), boundaryGap: common.length < 2 },
                yAxis: log_axis("throughput", format.gbps),
                tooltip: tip(format.gbps),
                series: lines().map((s) => ({
                    ...line(s),
                    ...(s.op === "memcpy" && {
                        lineStyle: { type: "dashed", color: variable("--c7") },
                        itemStyle: { color: variable("--c7") },
                    }),
                })),
            }),
        });
    }

    /* Bars up where RDMA is better, down where worse: as far for twice as for half. value: of a
     * case, a base and a point. */
    function show_ratio(where, title, what, value, points) {
        const at = choose();
        let base = BASES[0],
            point = POINTS[0];
        const lines = () => over_sizes(at.depth, (c) => value(c, base[0], point[0]));
        chart(where, {
            title,
            note: "Up: better. Down: worse.",
            choices: [
                ...(points
                    ? [["Of each", POINTS.map((p) => [p, p[1]]), (v) => (point = v)]]
                    : []),
                ["Than", BASES.map((b) => [b, b[1]]), (v) => (base = v)],
                at.by_depth,
            ],
            describe: () =>
                `${what}${points ? ` (${point[1]})` : ""} of each operation as a multiple of ` +
                `${base[1]}'s, by size, at depth ${at.depth}`,
            figures: () => line_figures(common.map(format.bytes), lines(), format.ratio),
            make: () => ({
                xAxis: {
                    ...size_axis(common),
                    axisLine: { onZero: true },
                    axisTick: { show: false },
                },
                yAxis: {
                    type: "value",
                    name: `times ${base[1]}`,
                    minInterval: 1,
                    axisLabel: { formatter: format.power },
                },
                tooltip: tip(format.power),
                series: lines().map((s) => ({
                    name: s.op,
                    type: "bar",
                    barMaxWidth: 28,
                    data: s.points.map((p) => (p > 0 ? Math.log2(p) : null)),
                })),
            }),
        });
    }

    function show_figures(where) {
        const rows = cases.flatMap((c) =>
            c.measures.map((m, i) => [
                m.name,
                c.buffers + (c.numa ? `/${c.numa}` : ""),
                format.bytes(c.size) + (c.offset ? `+${c.offset}` : ""),
                c.qps ? `${c.depth}x${c.qps}/${c.threads}` : c.depth,
                format.time(m.mean_ns),
                format.time(m.p50_ns),
                format.time(m.p99_ns),
                format.time(m.p999_ns),
                format.time(m.max_ns),
                ...(i === 0 ? [format.gbps(c.gbps), format.rate(c.messages_per_s)] : ["", ""]),
            ]),
        );
        const box = el(
            "details",
            {},
            el("summary", { text: "Every case with all of its figures" }),
        );
        where.append(box);
        table(box, {
            caption:
                "Latency of each measure, and throughput",
            columns: [
                "measure",
                "buffers",
                "size",
                ...[
                    "depth",
                    "mean",
                    "median",
                    "p99",
                    "p99.9",
                    "most",
                    "throughput",
                    "messages",
                ].map((name) => ({ name, number: true })),
            ],
            rows,
        });
    }

    /* The figures once more, over those of TCP or of memcpy; TCP has no completion. */
    function show_ratios(where) {
        const box = el(
            "details",
            {},
            el("summary", { text: "Every figure as a multiple of TCP's and of memcpy's" }),
        );
        where.append(box);
        BASES.forEach(([base, name]) => {
            const rows = cases.flatMap((c) =>
                c.measures.map((m, i) => [
                    m.name,
                    say(c),
                    ...POINTS.map(([point]) => ratio_of_point(m, base, point)),
                    ...(i === 0 ? [c[`throughput_ratio_${base}`], c[`cpu_ratio_${base}`]] : []),
                ]),
            );
            table(box, {
                caption:
                    `Times better than ${name}: latencies, throughput and messages a second ` +
                    "(one ratio), CPU of both ends",
                columns: [
                    "measure",
                    "case",
                    ...right([...POINTS.map((p) => p[1]), "rate", "CPU"]),
                ],
                rows: rows
                    .filter((row) => row.slice(2).some((v) => v > 0))
                    .map((row) => row.map((v, i) => (i < 2 ? v : format.ratio(v)))),
            });
        });
    }

    const each = (c, value) => value / messages(c);

    /* Lying bars of times, one for each name. */
    function bars(names, text, series) {
        return ({ narrow }) => ({
            xAxis: {
                type: "value",
                name: text,
                splitNumber: narrow ? 3 : 6,
                axisLabel: { formatter: format.time },
            },
            yAxis: { type: "category", inverse: true, data: names() },
            grid: { top: 8 },
            tooltip: { ...tip(format.time), axisPointer: { type: "shadow" } },
            series: series().map((s) => ({ type: "bar", barMaxWidth: 20, ...s })),
        });
    }

    const ROW_PIXELS = 32;

    /* What both ends did with their time, for each message. */
    function show_split(where) {
        const at = choose();
        const rows = () =>
            at.found().flatMap((c) =>
                ENDS.filter((end) => (c[end] || {}).parts_ns).map((end) => ({
                    name: `${c.op}, ${end}`,
                    c,
                    parts: c[end].parts_ns,
                })),
            );
        chart(where, {
            title: "Time of one message",
            note:
                "By the clock, for each message. What an end does with its own hands is fill to " +
                "post; poll is waiting, and the NIC's work where the NIC is software.",
            choices: [at.by_size, at.by_depth],
            describe: () =>
                `Time of both ends for one message of ${format.bytes(at.size)} at depth ` +
                `${at.depth}, split into ${PARTS.join(", ")}`,
            height: () => 90 + ROW_PIXELS * rows().length,
            figures: () => ({
                columns: ["operation, end", ...right(PARTS)],
                rows: rows().map((b) => [
                    b.name,
                    ...PARTS.map((p) => format.time(each(b.c, b.parts[p] || 0))),
                ]),
            }),
            make: bars(
                () => rows().map((b) => b.name),
                "time of a message",
                () =>
                    PARTS.map((p) => ({
                        name: p,
                        stack: "time",
                        data: rows().map((b) => each(b.c, b.parts[p] || 0)),
                    })),
            ),
        });
    }

    function show_cpu(where) {
        const at = choose();
        const kinds = ENDS.flatMap((end) => ["user", "system"].map((kind) => ({ end, kind })));
        const of = (c, k) => each(c, 1000 * ((c[k.end] || {})[`cpu_${k.kind}_us`] || 0));
        const memory = (c, end) => format.bytes(1024 * (c[end] || {}).memory_kib);
        const registered = (c, end) => format.bytes((c[end] || {}).registered_bytes);
        chart(where, {
            title: "CPU time of one message",
            note: "Of all threads of both processes. A software NIC works here, an adapter not.",
            choices: [at.by_size, at.by_depth],
            describe: () =>
                `CPU time that one message of ${format.bytes(at.size)} costs both ends ` +
                `at depth ${at.depth}, in user and system mode`,
            height: () => 90 + ROW_PIXELS * at.found().length,
            figures: () => ({
                columns: [
                    "operation",
                    ...right(kinds.map((k) => `${k.end}, ${k.kind}`)),
                    ...right(ENDS.map((end) => `${end}, memory`)),
                    ...right(ENDS.map((end) => `${end}, registered`)),
                ],
                rows: at
                    .found()
                    .map((c) => [
                        c.op,
                        ...kinds.map((k) => format.time(of(c, k))),
                        ...ENDS.map((end) => memory(c, end)),
                        ...ENDS.map((end) => registered(c, end)),
                    ]),
            }),
            make: bars(
                () => at.found().map((c) => c.op),
                "CPU time of a message",
                () =>
                    kinds.map((k) => ({
                        name: `${k.end}, ${k.kind}`,
                        stack: "cpu",
                        data: at.found().map((c) => of(c, k)),
                    })),
            ),
        });
    }

    /* Where copies hide: one operation, all the ways. */
    function show_ways(where) {
        const have = rdma.filter((c) => (c.offset || 0) === offsets[0] && team(c) === first_team);
        const on = unique(have.map((c) => c.op)).filter(
            (op) => unique(have.filter((c) => c.op === op).map((c) => c.buffers)).length > 1,
        );
        const own = ["fill", "checksum", "copy", "register", "post"];
        const at = { op: on[0], size: common[0], depth: depths[0] },
            drawn = [];
        const rows = () =>
            have.filter((c) => c.op === at.op && c.size === at.size && c.depth === at.depth);
        const both = (c, p) => each(c, sum(ENDS.map((e) => ((c[e] || {}).parts_ns || {})[p] || 0)));
        const cpu = (c) =>
            each(
                c,
                1000 *
                    sum(
                        ENDS.map(
                            (e) =>
                                ((c[e] || {}).cpu_user_us || 0) + ((c[e] || {}).cpu_system_us || 0),
                        ),
                    ),
            );
        const chosen = (name) => (value) => {
            at[name] = value;
            drawn.forEach((d) => d.update());
        };
        const shared = {
            describe: () =>
                `What each way of bringing ${format.bytes(at.size)} from the application ` +
                `to the NIC and out of it costs, for ${at.op} at depth ${at.depth}`,
            height: () => 90 + 36 * rows().length,
            figures: () => ({
                columns: [
                    "buffers",
                    ...right([
                        ...own,
                        "CPU of both ends",
                        "registered",
                        "median",
                        "p99",
                        "throughput",
                    ]),
                ],
                rows: rows().map((c) => [
                    c.buffers,
                    ...own.map((p) => format.time(both(c, p))),
                    format.time(cpu(c)),
                    format.bytes(sum(ENDS.map((e) => (c[e] || {}).registered_bytes || 0))),
                    format.time(measure(c).p50_ns),
                    format.time(measure(c).p99_ns),
                    format.gbps(c.gbps),
                ]),
            }),
        };
        const names = () => rows().map((c) => c.buffers);
        choice(where, "Operation", on, chosen("op"));
        choice(where, "Size", bytes_choice(common), chosen("size"));
        choice(where, "Depth", depths, chosen("depth"));
        const beside = pair(where);
        drawn.push(
            chart(beside, {
                title: "Work of the application",
                note: "Of both ends, for each message, by the clock and without waiting.",
                ...shared,
                make: bars(names, "time of a message", () =>
                    own.map((p) => ({
                        name: p,
                        stack: "time",
                        data: rows().map((c) => both(c, p)),
                    })),
                ),
            }),
        );
        drawn.push(
            chart(beside, {
                title: "What it comes to",
                note: "CPU time of both ends for each message, and the median latency.",
                ...shared,
                make: bars(names, "time", () => [
                    { name: "CPU of both ends", barMaxWidth: 12, data: rows().map(cpu) },
                    {
                        name: "median latency",
                        barMaxWidth: 12,
                        data: rows().map((c) => measure(c).p50_ns),
                    },
                ]),
            }),
        );
    }

    show_head();
    if (cases.length > 0) {
        const latency = section("Latency", "How long one message takes, and how sure that is.");
        const beside = pair(latency);
        show_latency_sizes(beside);
        show_distribution(beside);
        show_figures(latency);
        const throughput = pair(
            section(
                "Throughput",
                "How much gets through when several " + "messages are under way at once.",
            ),
        );
        show_throughput_depth(throughput);
        show_throughput_size(throughput);
    }
    if (rdma.some((c) => c.throughput_ratio_tcp > 0)) {
        const against = section(
            "Against TCP",
            "The same messages with the same checks and acknowledgements over a TCP connection, " +
                "in the same run; and memcpy between slots, which nothing passes.",
        );
        const ratios = pair(against);
        show_ratio(
            ratios,
            "Throughput and rate, as ratios",
            "Throughput, and so messages a second,",
            (c, base) => c[`throughput_ratio_${base}`],
        );
        show_ratio(
            ratios,
            "Latency, as ratios",
            "Latency",
            (c, base, point) => ratio_of_point(measure(c), base, point),
            true,
        );
        show_ratio(
            ratios,
            "CPU of both ends, as ratios",
            "CPU time of a message",
            (c, base) => c[`cpu_ratio_${base}`],
        );
        show_ratios(against);
    }
    if (cases.length > 0) {
        const split = pair(section("Where the time goes", "Both ends: what a message costs them."));
        show_split(split);
        show_cpu(split);
    }
    if (ways.length > 1)
        show_ways(
            section(
                "Where copies hide",
                "The same load by several ways from the " +
                    "application's memory to the NIC's and out of it.",
            ),
        );
    lab_path.show(all.filter((c) => c.path).map((c) => c.path));
    lab_experiments.show(record.experiments || []);
    if (all.length > 0) lab_data.show_data(section("Data and errors"), all, say);
    if (cases.length > 0) lab_data.show_clocks(section("What is measured"), cases);
    lab_data.show_settings(section("Machines and settings"));
})();
