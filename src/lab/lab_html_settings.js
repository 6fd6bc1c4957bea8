/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_html_settings.js: what pages of one record and of many ranks have alike: how a member of the
 * record is told, and the settings of the run.
 */
"use strict";

const lab_settings = (() => {
    const { data: record, table, el } = report;

    /* One that is not there is a dash. */
    function value(v) {
        if (v === null || v === undefined) return "\u2013";
        return typeof v === "object" ? JSON.stringify(v) : v;
    }

    function show(where) {
        const given = Object.entries(record.settings || {}).filter(([, v]) => v !== "");
        const box = el("details", {}, el("summary", { text: "All settings of the run" }));
        where.append(box);
        table(box, {
            caption: "Settings, as options of verbena lab",
            columns: ["option", "value"],
            rows: given.map(([n, v]) => [`--${n}`, value(v)]),
        });
    }

    return { value, show };
})();
