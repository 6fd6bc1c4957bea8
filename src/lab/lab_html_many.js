/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_html_many.js: a record of many ranks as a page: every pair as a map, what is left when all
 * run at once, and which meetings were measured.
 */
"use strict";

(() => {
    const { data: record, format, head, section, table, chart, el } = report;
    const ROW_PIXELS = 30;
    const meetings = record.meetings || [],
        ranks = record.ranks || [];
    const unique = (values) => [...new Set(values)];
    const cases_of = (m) => ((m.run || {}).cases || []).filter((c) => c.measures.length > 0);
    const measure = (c) => c.measures[c.measures.length - 1];
    const pairs = meetings.filter((m) => m.kind === "pair");
    const right = (names) => names.map((name) => ({ name: String(name), number: true }));
    const rank_name = (r) => `rank ${r.rank}`;
    const CHANCE = "A ? marks what may be chance: ";
    const DOUBT = "few messages, or an end that polls without a CPU of its own";

    /* What both ends did, without who they were. */
    function load(c) {
        const way = c.buffers === "direct" || c.op === "tcp" ? "" : `, ${c.buffers}`;
        const team = c.qps ? `, ${c.qps} queue pairs on ${c.threads} threads` : "";
        const near = c.numa ? `, numa ${c.numa}` : "";
        const offset = c.offset ? `+${c.offset}` : "";
        const size = format.bytes(c.size) + offset;
        return `${c.op} of ${size} at depth ${c.depth}${team}${near}${way}`;
    }

    const case_of = (m, name) => (m ? cases_of(m).find((c) => load(c) === name) : undefined);
    const find = (source, target) =>
        pairs.find((m) => m.source === source && m.target === target);
    const all_loads = unique(pairs.flatMap((m) => cases_of(m).map(load)));
    const is_tcp = (name) => name.startsWith("tcp ");
    const loads = [...all_loads.filter((l) => !is_tcp(l)), ...all_loads.filter(is_tcp)];
    const FIGURES = [
        { name: "throughput", of: (c) => c.gbps, text: format.gbps, more: true },
        { name: "messages", of: (c) => c.messages_per_s, text: format.rate, more: true },
        { name: "median latency", of: (c) => measure(c).p50_ns, text: format.time },
        { name: "p99 latency", of: (c) => measure(c).p99_ns, text: format.time },
        {
            name: "CPU of a message, both ends",
            of: (c) => (c.cpu_us_a_message ? 1000 * c.cpu_us_a_message : undefined),
            text: format.time,
        },
    ];

    const ratio = (name, of) => ({ name, of, text: format.ratio, more: true });
    const RATIOS = [
        ratio("throughput", (c) => c.throughput_ratio_tcp),
        ratio("median latency", (c) => measure(c).latency_ratio_tcp),
        ratio("p99 latency", (c) => (measure(c).ratios_tcp || {}).p99),
        ratio("CPU of a message", (c) => c.cpu_ratio_tcp),
    ];

    function value_of(source, target, name, figure) {
        const c = case_of(find(source, target), name);
        return c ? (figure.of(c) ?? null) : null;
    }

    function text_of(source, target, name, figure) {
        const value = value_of(source, target, name, figure),
            pair = find(source, target) || {};
        if (value === null) return pair.error ? "failed" : "";
        return figure.text(value) + (case_of(pair, name).doubt ? "?" : "");
    }

    const passed = (m) => !m.error && ((m.run || {}).verdict || {}).exit === 0;

    function extreme(most) {
        const told = loads.filter((name) => !is_tcp(name));
        const name = told[told.length - 1];
        const all = pairs
            .map((m) => ({ m, c: case_of(m, name) }))
            .filter(({ c }) => c && !c.doubt)
            .sort((a, b) => (most ? b.c.gbps - a.c.gbps : a.c.gbps - b.c.gbps));
        return all.length > 0 ? { ...all[0], name } : null;
    }

    function show_head() {
        const verdict = record.verdict || {},
            tiles = [];
        const slow = extreme(false),
            fast = extreme(true);
        const of = ({ m, name }) => `rank ${m.source} to ${m.target}: ${name}`;
        if (fast) tiles.push({ value: format.gbps(fast.c.gbps), label: `fastest, ${of(fast)}` });
        if (slow) tiles.push({ value: format.gbps(slow.c.gbps), label: `slowest, ${of(slow)}` });
        tiles.push({
            value: `${meetings.filter(passed).length} of ${meetings.length}`,
            label: "meetings passed",
        });
        const word = record.error
            ? "Broke off"
            : { 0: "Passed", 1: "Missed", 2: "Wrong data", 69: "Not all measured" }[verdict.exit];
        const settings = record.settings || {};
        head({
            title: `RDMA paths of ${ranks.length} ranks`,
            lead:
                `verbena lab mpi ${(ranks[0] || {}).program || ""}, ${settings.transport || ""}, ` +
                `ended ${(record.ended || "").replace("T", " ")}`,
            state: record.error ? "bad" : { 0: "good", 1: "warn" }[verdict.exit] || "bad",
            word,
            tiles,
            verdict: record.error || verdict.summary,
            findings: verdict.findings,
        });
    }

    /* Source down, target across: dark is much, of what is better. Of loads that have any of the
     * figures; TCP and atomics have no ratio to TCP. */
    function show_map(where, title, figures) {
        const names = ranks.map(rank_name);
        const known_of = (load_name, f) =>
            pairs.some((m) => (case_of(m, load_name) ? f.of(case_of(m, load_name)) > 0 : false));
        const mine = loads.filter((l) => figures.every((f) => known_of(l, f)));
        if (mine.length === 0) return;
        let name = mine[0],
            figure = figures[0];
        const values = () =>
            ranks.flatMap((s, y) =>
                ranks.map((t, x) => [x, y, value_of(s.rank, t.rank, name, figure)]),
            );
        const known = () => values().filter(([, , v]) => v !== null);
        chart(where, {
            title,
            note:
                "The source down, the target across. The stronger the colour the better; what " +
                `has none was not measured. ${CHANCE}${DOUBT}.`,
            choices: [
                ["Load", mine, (value) => (name = value)],
                ["Figure", figures.map((f) => [f, f.name]), (value) => (figure = value)],
            ],
            describe: () =>
                `Heat map, source by target. ${title}: ${figure.name} of ${name}, each pair alone`,
            height: (narrow) => 90 + (narrow ? 26 : 36) * ranks.length,
            figures: () => ({
                columns: ["source, target", ...right(names)],
                rows: ranks.map((s) => [
                    rank_name(s),
                    ...ranks.map((t) => text_of(s.rank, t.rank, name, figure)),
                ]),
            }),
            make: ({ variable }) => {
                const all = known().map(([, , v]) => v);
                const colors = [variable("--card"), variable("--c1")];
                return {
                    grid: { left: 8, right: 12, top: 8, bottom: 34, containLabel: true },
                    xAxis: {
                        type: "category",
                        data: ranks.map((r) => String(r.rank)),
                        name: "target",
                        axisTick: { show: false },
                    },
                    yAxis: {
                        type: "category",
                        inverse: true,
                        data: names,
                        axisTick: { show: false },
                    },
                    visualMap: {
                        show: false,
                        min: Math.min(...all) * 0.8,
                        max: Math.max(...all),
                        dimension: 2,
                        inRange: { color: figure.more ? colors : colors.reverse() },
                    },
                    tooltip: {
                        formatter: ({ value: [x, y] }) =>
                            `${names[y]} to ${ranks[x].rank}: ` +
                            text_of(ranks[y].rank, ranks[x].rank, name, figure),
                    },
                    series: [{ name: figure.name, type: "heatmap", data: known(), progressive: 0 }],
                };
            },
        });
    }

    /* The throughput of each source when all run, beside its pair's alone. */
    function show_together() {
        const rounds = unique(meetings.filter((m) => m.kind !== "pair").map((m) => m.round));
        const of_round = (round) =>
            meetings.filter((m) => m.round === round && cases_of(m).length > 0);
        const title = (round) => {
            const m = meetings.find((one) => one.round === round);
            return m.kind === "incast" ? `all into rank ${m.target}` : "each to the next";
        };
        const measured = rounds.filter((r) => of_round(r).length > 0);
        if (measured.length === 0) return;
        let round = measured[0];
        const rows = () =>
            of_round(round).map((m) => {
                const c = cases_of(m)[0],
                    alone = case_of(find(m.source, m.target), load(c));
                return { name: `${m.source} to ${m.target}`, c, alone, left: m.left };
            });
        const share = ({ left }) =>
            left ? format.percent(100 * left.ratio) + (left.chance ? "?" : "") : "";
        const sum = () => rows().reduce((all, r) => all + r.c.gbps, 0);
        const text = () => load(rows()[0].c);
        const box = section("All at once", "What is left of each pair when the others run, too.");
        chart(box, {
            title: "Throughput, alone and with all others",
            note: `${CHANCE}${DOUBT}, times that vary as much, or more than alone.`,
            choices: [["Round", measured.map((r) => [r, title(r)]), (value) => (round = value)]],
            describe: () =>
                `Throughput of each source, ${title(round)}, ${text()}; together ` +
                format.gbps(sum()),
            height: () => 100 + ROW_PIXELS * rows().length,
            figures: () => ({
                columns: ["from, to", ...right(["all at once", "alone", "of alone"])],
                rows: [
                    ...rows().map((r) => [
                        r.name,
                        format.gbps(r.c.gbps),
                        r.alone ? format.gbps(r.alone.gbps) : "",
                        share(r),
                    ]),
                    ["together", format.gbps(sum()), "", ""],
                ],
            }),
            make: ({ narrow }) => ({
                xAxis: {
                    type: "value",
                    name: "throughput",
                    splitNumber: narrow ? 3 : 6,
                    axisLabel: { formatter: format.gbps },
                },
                yAxis: { type: "category", inverse: true, data: rows().map((r) => r.name) },
                grid: { top: 8 },
                tooltip: { trigger: "axis", valueFormatter: format.gbps },
                series: [
                    {
                        name: "all at once",
                        type: "bar",
                        barMaxWidth: 12,
                        data: rows().map((r) => r.c.gbps),
                    },
                    {
                        name: "alone",
                        type: "bar",
                        barMaxWidth: 12,
                        data: rows().map((r) => (r.alone ? r.alone.gbps : null)),
                    },
                ],
            }),
        });
    }

    function show_meetings(where) {
        const box = el("details", {}, el("summary", { text: "Every meeting and its verdict" }));
        where.append(box);
        table(box, {
            caption: "Meetings of two ranks, in the order of their rounds",
            columns: ["meeting", "from", "to", { name: "verdict", wide: true }],
            rows: meetings.map((m) => [
                m.kind,
                m.source,
                m.target,
                m.error
                    ? `not measured: ${m.error}`
                    : (((m.run || {}).verdict || {}).summary ?? ""),
            ]),
        });
    }

    function show_ranks(where) {
        table(where, {
            caption: "The ranks",
            columns: ["rank", "host", "program", { name: "addresses", wide: true }],
            rows: ranks.map((r) => [
                String(r.rank),
                r.host,
                r.program,
                (r.addresses || []).join(", "),
            ]),
        });
        lab_settings.show(where);
    }

    show_head();
    if (loads.length > 0) {
        const each = section("Every pair", "Each pair of ranks by itself, in both directions.");
        show_map(each, "What each pair does", FIGURES);
        show_map(each, "Times better than TCP", RATIOS);
    }
    show_together();
    show_meetings(section("Meetings"));
    show_ranks(section("Ranks and settings"));
})();
