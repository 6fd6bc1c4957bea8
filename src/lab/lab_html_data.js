/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_html_data.js: sections of a record's page that are tables: what was found of the data, what
 * is measured, and the machines and settings.
 */
"use strict";

const lab_data = (() => {
    const { data: record, format, list, table, el } = report;
    const ENDS = ["source", "target"];
    const TROUBLE = /retr|rnr|nak|out_of_seq|drop|err|dup|lost/;
    const unique = (values) => [...new Set(values)];
    const sum = (values) => values.reduce((a, b) => a + b, 0);

    function faults_of(c) {
        return sum(
            ENDS.map((end) => {
                const side = c[end] || {};
                const bad = Object.entries(side.data || {}).filter(([name]) => name !== "good");
                return sum(bad.map(([, n]) => n)) + (side.wrong_atomics || 0);
            }),
        );
    }

    function show_data(where, all, say) {
        const verdicts = unique(
            all.flatMap((c) => ENDS.flatMap((end) => Object.keys((c[end] || {}).data || {}))),
        );
        const told = ["resent", "lost", "duplicates", "wrong_atomics"];
        const rows = all.flatMap((c) => ENDS.map((end) => ({ c, end, s: c[end] || {} })));
        const looked = rows.filter(
            ({ s }) => sum(Object.values(s.data || {})) > 0 || told.some((name) => s[name] > 0),
        );
        const trouble = rows.flatMap(({ c, end, s }) =>
            Object.entries(s.counters || {})
                .filter(([name]) => TROUBLE.test(name))
                .map(([name, n]) => [say(c), end, name, n]),
        );
        const bad = sum(all.map(faults_of));
        where.append(
            el("p", {
                class: bad > 0 ? "bad-text" : "good-text",
                text:
                    bad > 0
                        ? `${format.number(bad)} messages were not as they must be.`
                        : "Every message that was looked at was whole, and the one that was due.",
            }),
        );
        const firsts = rows
            .filter(({ s }) => s.first_fault)
            .map(({ c, end, s }) => `${say(c)}, ${end}: ${s.first_fault}`);
        where.append(list(firsts) || "");
        if (trouble.length > 0)
            table(where, {
                caption: "Counters of the devices that tell of trouble",
                columns: ["case", "end", "counter", { name: "count", number: true }],
                rows: trouble,
            });
        else
            where.append(
                el("p", {
                    class: "note",
                    text: "No counter of a device tells of retransmissions, RNRs, drops or errors.",
                }),
            );
        const box = el("details", {}, el("summary", { text: "What was looked at, case by case" }));
        where.append(box);
        table(box, {
            caption: "Verdicts on the data of each case",
            columns: [
                "case",
                "end",
                ...[...verdicts, ...told].map((name) => ({
                    name: name.replace("_", " "),
                    number: true,
                })),
            ],
            rows: looked.map(({ c, end, s }) => [
                say(c),
                end,
                ...verdicts.map((v) => (s.data || {})[v] ?? 0),
                ...told.map((t) => s[t] ?? 0),
            ]),
        });
    }

    function show_settings(where) {
        const names = unique(ENDS.flatMap((end) => Object.keys(record[end] || {}))).filter(
            (name) => name !== "type",
        );
        const value = lab_settings.value;
        table(where, {
            caption: "Both ends",
            columns: ["", ...ENDS],
            rows: names.map((n) => [n, ...ENDS.map((e) => value((record[e] || {})[n]))]),
        });
        lab_settings.show(where);
    }

    function show_clocks(where, cases) {
        const seen = new Map();
        cases.forEach((c) => c.measures.forEach((m) => seen.set(m.name, m)));
        table(where, {
            columns: [
                "measure",
                { name: "its clock starts", wide: true },
                { name: "and stops when", wide: true },
            ],
            caption:
                "All times are of the source's clock; those of two hosts are never subtracted.",
            rows: [...seen.values()].map((m) => [m.name, m.starts, m.stops]),
        });
    }

    return { faults_of, show_data, show_clocks, show_settings };
})();
