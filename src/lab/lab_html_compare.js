/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_html_compare.js: a comparison of runs as a page: what is better, worse, or noise.
 */
"use strict";

(() => {
    const { data, format, head, section, table, choice, chart, el } = report;
    const { runs, rows, differences, like } = data;
    const LIKE_RUNS = 3; /* others that it takes */
    const ROW_PIXELS = 26;
    const MARKS = ["better", "same", "worse", "unknown"];
    const WORDS = { better: "better", same: "the same", worse: "worse", unknown: "cannot be told" };
    const COLORS = { better: "--good", same: "--c7", worse: "--bad", unknown: "--line" };
    /* A figure's own change, and that of its ratio to TCP. */
    const WHICH = [
        ["", "itself"],
        ["tcp_", "against TCP"],
    ];
    const of_which = (prefix) => (WHICH.find(([p]) => p === prefix) || [])[1];
    const written = (row) => (row.unit === "ns" ? format.time : format.gbps);
    const kind = (row) => row.kind;
    const between = (row, prefix, run) => {
        const low = row[`${prefix}low`][run],
            high = row[`${prefix}high`][run];
        if (low === null && high === null) return "anything";
        if (low === null) return `up to ${format.ratio(high)}`;
        return high === null
            ? `${format.ratio(low)} or more`
            : `${format.ratio(low)} to ${format.ratio(high)}`;
    };
    const name = (run) => `run ${run.run}`;

    const short = (figure) =>
        figure
            .replace("with immediate", "imm")
            .replace("application ack", "ack")
            .replace("completion", "compl.");

    function say(row, narrow) {
        const figure =
            row.part === "experiment"
                ? `${row.op}: ${row.variant}`
                : row.part === "path"
                  ? `path of one ${row.op}`
                  : row.figure.includes(", ")
                    ? row.figure.split(", ")[0]
                    : row.op;
        const way =
            !row.buffers || row.buffers === "direct" || row.op === "tcp" ? "" : `, ${row.buffers}`;
        const team = row.qps ? `, ${row.qps} queue pairs on ${row.threads} threads` : "";
        const near = row.numa ? `, numa ${row.numa}` : "";
        const offset = row.offset ? `+${row.offset}` : "";
        const depth = row.depth ? `, depth ${row.depth}` : "";
        const place = `${format.bytes(row.size)}${offset}${depth}${team}${near}${way}`;
        const who = row.round ? `${row.round} ${row.source_rank} to ${row.target_rank}: ` : "";
        return narrow ? `${who}${short(figure)}\n${place}` : `${who}${figure}, ${place}`;
    }

    function against_tcp(run) {
        const n = run.against_tcp;
        if (MARKS.every((m) => n[m] === 0)) return "";
        return (
            `Against TCP, so without what the machine itself changed by: ${n.better} better, ` +
            `${n.worse} worse, ${n.same} the same, ${n.unknown} cannot be told.`
        );
    }

    function show_head() {
        const last = runs[runs.length - 1];
        const state = last.worse > 0 ? "bad" : last.better > 0 ? "good" : "";
        const word = last.worse > 0 ? "Worse" : last.better > 0 ? "Better" : "The same";
        head({
            title: `Runs compared: ${runs.map((r) => r.run).join(", ")}`,
            lead: `verbena lab history; ratios are to run ${runs[0].run}, better when larger`,
            state,
            word,
            verdict:
                `Run ${last.run} against run ${runs[0].run}: ${last.better} figures better, ` +
                `${last.worse} worse, ${last.same} the same, of ${last.unknown} it cannot be ` +
                `told. ${against_tcp(last)}`,
            findings: [
                like.length < LIKE_RUNS
                    ? `The history has no ${LIKE_RUNS} other runs before these that are like run ` +
                      `${runs[0].run}: what the machine changes by from one run to the next is ` +
                      "not known, and marks are of these runs alone."
                    : `What runs ${like.join(", ")}, which are like run ${runs[0].run}, vary by ` +
                      "is in the noise.",
            ],
            tiles: MARKS.map((m) => ({ value: format.number(last[m]), label: WORDS[m] })),
        });
    }

    const bar = (ratio) => (ratio > 0 ? Math.log2(ratio) : null);

    function show_changes(where) {
        const kinds = [...new Set(rows.map(kind))];
        let chosen = kinds[0],
            run = runs.length - 1,
            which = "";
        const found = () =>
            rows.filter((r) => kind(r) === chosen && r[`${which}marks`][run] !== null);
        const have = WHICH.filter(([p]) =>
            rows.some((r) => r[`${p}marks`].some((m, i) => i > 0 && m !== null)),
        );
        chart(where, {
            title: "Change",
            note: "To the right: better than in the first run. To the left: worse.",
            choices: [
                ["Figure", kinds, (value) => (chosen = value)],
                [
                    "Run",
                    runs
                        .map((r, i) => [i, name(r)])
                        .slice(1)
                        .reverse(),
                    (value) => (run = value),
                ],
                ["Change of", have, (value) => (which = value)],
            ],
            describe: () =>
                `Change of each case's ${chosen}, ${of_which(which)}, from the first run to ` +
                name(runs[run]),
            height: (narrow) => 100 + (narrow ? 42 : ROW_PIXELS) * found().length,
            figures: () => ({
                columns: [
                    "case",
                    { name: name(runs[0]), number: true },
                    { name: name(runs[run]), number: true },
                    { name: "ratio", number: true },
                    { name: "surely between", number: true },
                    "",
                ],
                rows: found().map((r) => [
                    say(r),
                    written(r)(r.values[0]),
                    written(r)(r.values[run]),
                    format.ratio(r[`${which}ratios`][run]),
                    between(r, which, run),
                    WORDS[r[`${which}marks`][run]],
                ]),
            }),
            make: ({ narrow, variable }) => ({
                xAxis: {
                    type: "value",
                    name: "times the first run",
                    splitNumber: narrow ? 3 : 8,
                    axisLabel: { formatter: format.power },
                },
                yAxis: {
                    type: "category",
                    inverse: true,
                    data: found().map((r) => say(r, narrow)),
                    axisLabel: { width: narrow ? 140 : 420, overflow: "truncate" },
                },
                grid: { top: 8 },
                tooltip: {
                    trigger: "item",
                    formatter: (p) => `${say(found()[p.dataIndex])}: ${format.power(p.value)}`,
                },
                series: MARKS.map((mark) => ({
                    name: WORDS[mark],
                    type: "bar",
                    stack: "change",
                    barMaxWidth: 16,
                    itemStyle: { color: variable(COLORS[mark]) },
                    data: found().map((r) =>
                        r[`${which}marks`][run] === mark ? bar(r[`${which}ratios`][run]) : null,
                    ),
                })),
            }),
        });
    }

    /* One figure over all of the runs. */
    function show_trend(where) {
        let row = rows[0];
        chart(where, {
            title: "One figure, run by run",
            choices: [
                ["Figure", rows.map((r) => [r, `${say(r)}: ${kind(r)}`]), (value) => (row = value)],
            ],
            describe: () => `${say(row)}, ${kind(row)}, in each of the runs`,
            figures: () => ({
                columns: [
                    "run",
                    { name: kind(row), number: true },
                    { name: "ratio", number: true },
                    "",
                ],
                rows: runs.map((r, i) => [
                    name(r),
                    written(row)(row.values[i]),
                    format.ratio(row.ratios[i]),
                    i === 0 ? "" : WORDS[row.marks[i]] || "\u2013",
                ]),
            }),
            make: () => ({
                xAxis: { type: "category", name: "run", data: runs.map((r) => String(r.run)) },
                yAxis: {
                    type: "value",
                    name: kind(row),
                    scale: true,
                    axisLabel: { formatter: written(row) },
                },
                tooltip: { trigger: "axis", valueFormatter: written(row) },
                series: [
                    {
                        name: kind(row),
                        type: "line",
                        data: row.values,
                        symbolSize: 8,
                        connectNulls: true,
                        lineStyle: { width: 2 },
                    },
                ],
            }),
        });
    }

    const told = (marks) =>
        runs
            .map((r, i) => [i, r, marks[i]])
            .filter(([i, , mark]) => i > 0 && mark && mark !== "same")
            .map(([, r, mark]) => (runs.length > 2 ? `${name(r)}: ${WORDS[mark]}` : WORDS[mark]))
            .join(", ");

    function show_rows(where) {
        table(where, {
            caption: "Every figure that the first run and another have",
            columns: [
                "figure",
                ...runs.map((r) => ({ name: name(r), number: true })),
                ...runs.slice(1).map((r) => ({ name: `ratio, ${name(r)}`, number: true })),
                "itself",
                "against TCP",
            ],
            rows: rows.map((row) => [
                `${say(row)}: ${kind(row)}`,
                ...row.values.map(written(row)),
                ...row.ratios.slice(1).map(format.ratio),
                ...WHICH.map(([p]) => told(row[`${p}marks`])),
            ]),
        });
    }

    function show_runs(where) {
        table(where, {
            caption: "The runs",
            columns: ["run", "ended", "from", "to", "device", { name: "verdict", wide: true }],
            rows: runs.map((r) => [
                String(r.run),
                (r.ended || "").replace("T", " "),
                r.source,
                r.target,
                r.device,
                r.summary,
            ]),
        });
        if (differences.length > 0)
            table(where, {
                caption: "What else differs between them",
                columns: ["", ...runs.map(name)],
                rows: differences.map((d) => [
                    d.name,
                    ...d.values.map((v) => (Array.isArray(v) ? v.join(", ") : v)),
                ]),
            });
        else
            where.append(
                el("p", { class: "note", text: "Their settings and machines are the same." }),
            );
    }

    show_head();
    if (rows.length > 0) {
        show_changes(
            section(
                "What changed",
                "A figure is better or worse when its change is larger than what the messages of " +
                    "both runs leave open (99 %), and than 5 %; it is the same where a change by " +
                    "half can be excluded; else it cannot be told without more messages. What " +
                    "the machine itself changed by is in it, and is not in the change against TCP.",
            ),
        );
        if (runs.length > 2) show_trend(section("Over time"));
        show_rows(section("All figures"));
    } else {
        section("What changed", "The runs have no case in common.");
    }
    show_runs(section("Runs"));
})();
