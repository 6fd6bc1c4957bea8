/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_model.js: report.html of `verbena fabric run`: what the data mean. Nodes, ports and what
 * they did, the verdict on the whole, events; as the object `page` for page_stage.js and
 * page_charts.js. The data are page.c's, `report` is report_page.js's.
 */
"use strict";

const page = (() => {
    const d = report.data,
        format = report.format,
        el = report.el;
    const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const LEVEL = Object.fromEntries([...LETTERS].map((c, i) => [c, i]));
    const TOP = 63; /* the highest level */
    const QUEUE = 0,
        PAUSE = 1,
        LOAD = 2,
        FRAMES = 3;

    const levels = (text) => {
        const all = new Uint8Array(d.intervals); /* zeros at the end are left out */
        [...text].forEach((c, t) => (all[t] = LEVEL[c]));
        return all;
    };

    /* Ports are numbered node by node, then link by link, as the simulator does. */
    const nodes = d.names.map((name, i) => ({
        name,
        i,
        isSwitch: d.switches[i] === "1",
        ports: [],
    }));
    d.links.forEach(([a, b], link) => {
        nodes[a].ports.push({ node: a, peer: b, link });
        nodes[b].ports.push({ node: b, peer: a, link });
    });
    const ports = nodes.flatMap((n) => n.ports.map((p, index) => ({ ...p, index })));
    const at_link = d.links.map(() => []);
    ports.forEach((p, i) => {
        p.i = i;
        at_link[p.link].push(i);
        nodes[p.node].ports[p.index] = i;
        const row = d.ports[i];
        p.levels = row ? row.slice(0, 4).map(levels) : null;
        p.peak_bytes = row ? row[4] : 0;
        p.paused_ns = row ? row[5] : 0;
        p.gbps = d.links[p.link][2] / 1000;
        p.at_switch = nodes[p.node].isSwitch;
    });
    ports.forEach((p) => (p.other = at_link[p.link].find((i) => i !== p.i)));
    const level = (p, what, t) => (p.levels ? p.levels[what][t] : 0);
    const port_name = (p) => `${nodes[p.node].name} \u2192 ${nodes[p.peer].name}`;
    const queue_bytes = (v) => (v * d.peak_bytes) / TOP;
    const times = Array.from({ length: d.intervals }, (_, t) => t * d.interval_ns);
    const length_ns = (t) => Math.max(1, Math.min(d.interval_ns, d.end_ns - times[t]));
    const gbps = (bytes, t) => (bytes * 8) / length_ns(t);
    const when = (t) => format.time(times[t]);
    const share = (ns) => (100 * ns) / Math.max(1, d.end_ns);
    const total = d.totals;
    const count = (n, one, many) => `${format.number(n)} ${n === 1 ? one : many}`;
    const waiting = new Set(d.waiting.map(([port]) => port));

    /* Time axes have one unit, so that their figures are short. */
    const unit = [
        [1, "ns"],
        [1e3, "\u00b5s"],
        [1e6, "ms"],
        [1e9, "s"],
    ]
        .filter(([n]) => d.end_ns >= 2 * n)
        .pop() || [1, "ns"];
    const in_unit = (ns) => ns / unit[0];

    /* Those that queue though nothing holds them up: where congestion begins. */
    function roots() {
        return ports
            .filter((p) => p.at_switch && p.peak_bytes > 0 && share(p.paused_ns) < 5)
            .sort((a, b) => b.peak_bytes - a.peak_bytes);
    }

    /* The circle, in its order. */
    function circle() {
        const left = new Map(d.waiting.map(([port]) => [ports[port].node, ports[port]]));
        const found = [];
        let p = left.values().next().value;
        while (p && !found.includes(p)) {
            found.push(p);
            p = left.get(p.peer);
        }
        return found;
    }

    function events() {
        const all = d.faults.map(([ns, link, up]) => ({
            ns,
            bad: !up,
            text:
                `link ${nodes[d.links[link][0]].name} \u2013 ${nodes[d.links[link][1]].name} ` +
                (up ? "is up" : "goes down"),
        }));
        if (d.first_pfc_ns !== undefined)
            all.push({ ns: d.first_pfc_ns, text: "the first PFC frame arrives", bad: false });
        if (d.deadlock_ns !== null)
            all.push({
                ns: d.deadlock_ns,
                text: "queues wait for one another in a circle",
                bad: true,
            });
        if (d.end !== "finished")
            all.push({
                ns: d.end_ns,
                bad: true,
                text:
                    {
                        stalled: "standstill: nothing new was acknowledged any more",
                        livelock: "livelock: frames arrive again and again, nobody gets on",
                        limit: "the limit of simulated time",
                        failed: "nothing is left to do: flows have failed",
                    }[d.end] || d.end,
            });
        return all.sort((a, b) => a.ns - b.ns);
    }

    const frames = times.map((_, t) => ports.reduce((n, p) => n + level(p, FRAMES, t), 0));
    const paused_ports = times.map((_, t) =>
        ports.reduce((n, p) => n + (level(p, PAUSE, t) > 0), 0),
    );

    function verdict() {
        const paused = ports
            .filter((p) => p.paused_ns > 0)
            .sort((a, b) => b.paused_ns - a.paused_ns);
        const found = [],
            root = roots()[0],
            ring = circle();
        const hosts = paused.filter((p) => !p.at_switch);
        if (d.end === "livelock")
            found.push(
                `${format.bytes(total.arrived_bytes)} arrived of flows that have ` +
                    `${format.bytes(total.bytes)} in all: the same frames again and again.`,
            );
        if (ring.length > 0)
            found.push(
                `The circle: ${ring.map((p) => nodes[p.node].name).join(" \u2192 ")} \u2192 ` +
                    `${nodes[ring[ring.length - 1].peer].name}. Each waits for room in the ` +
                    `next one's buffer.`,
            );
        if (root && d.deadlock_ns === null && 10 * root.peak_bytes > d.peak_bytes)
            found.push(
                `The longest queue that nothing held up is ${port_name(root)}: ` +
                    `${format.bytes(root.peak_bytes)}. ` +
                    (total.pauses > 0
                        ? "That is where the congestion begins."
                        : "No pause came of it."),
            );
        if (hosts.length > 0)
            found.push(
                `${hosts.length} of ${nodes.filter((n) => !n.isSwitch).length} hosts were ` +
                `told to pause; ` +
                    `${nodes[hosts[0].node].name} stood still for ` +
                    `${format.percent(share(hosts[0].paused_ns))} of the time.`,
            );
        const inner = paused.filter((p) => p.at_switch);
        if (inner.length > 0)
            found.push(
                `Pauses spread between switches: ${inner.length} of their ports stood still, ` +
                    `${port_name(inner[0])} the longest (${format.time(inner[0].paused_ns)}).`,
            );
        if (total.pauses === 0)
            found.push(
                `No switch sent a pause: the longest queue, ` +
                `${format.bytes(total.max_queue_bytes)}, left its ` +
                    `ingress below the threshold (\u03b1 ` +
                    `${d.parameters.alpha_numerator}/${d.parameters.alpha_denominator} of ` +
                    `what is free of ${format.bytes(d.parameters.buffer_bytes)}).`,
            );
        if (total.drops > 0)
            found.push(
                `${format.number(total.drops)} frames were dropped: ` +
                    Object.entries(total)
                        .filter(([name, n]) => name.startsWith("drops: ") && n > 0)
                        .map(([name, n]) => `${name.slice(7)} ${format.number(n)}`)
                        .join(", ") +
                    ".",
            );
        if (total.failed > 0)
            found.push(`${total.failed} flows ended with an error; verbs.csv names them.`);
        const all = format.number(total.flows);
        const done = `${format.number(total.finished)} of ${all} flows finished`;
        if (d.deadlock_ns !== null)
            return {
                state: "bad",
                word: "Deadlock",
                found,
                text: `Since ${format.time(d.deadlock_ns)} queues wait for one another in a ` +
                    `circle; ${done}.`,
            };
        const stuck = { stalled: "Standstill", livelock: "Livelock" }[d.end];
        if (stuck || total.failed > 0)
            return {
                state: "bad",
                word: stuck || "Failed",
                found,
                text: `${done}.`,
            };
        if (hosts.length > 0 && share(hosts[0].paused_ns) >= 10)
            return {
                state: "warn",
                word: "PFC storm",
                found,
                text:
                    `${done} in ${format.time(d.end_ns)}, with hosts held up for ` +
                    `up to ${format.percent(share(hosts[0].paused_ns))} of it.`,
            };
        if (paused.length > 0 && share(paused[0].paused_ns) >= 10)
            return {
                state: "warn",
                word: "Pauses spread",
                found,
                text:
                    `${done} in ${format.time(d.end_ns)}, with ports of switches held up for ` +
                    `up to ${format.percent(share(paused[0].paused_ns))} of it.`,
            };
        if (total.drops > 0)
            return {
                state: "warn",
                word: "Loss",
                found,
                text: `${done} in ${format.time(d.end_ns)}, with drops.`,
            };
        if (d.end === "limit")
            return {
                state: "warn",
                word: "Limit",
                found,
                text: `${done} when the time limit was reached.`,
            };
        return {
            state: "good",
            word: total.pauses > 0 ? "Some pauses" : "Clear",
            found,
            text: `${done} in ${format.time(d.end_ns)}.`,
        };
    }

    function top() {
        const v = verdict(),
            fct = d.fct_ns;
        document.title = `${d.title || "fabric"} \u2013 verbena fabric`;
        report.head({
            title: d.title || "Fabric",
            lead:
                `verbena fabric run: ${nodes.filter((n) => !n.isSwitch).length} hosts, ` +
                `${count(nodes.filter((n) => n.isSwitch).length, "switch", "switches")}, ` +
                `${count(d.links.length, "link", "links")}; ` +
                `hosts are ` +
                `${d.parameters.nic === "engine" ? "NIC engines" : "bare sources"}, ` +
                `congestion control ` +
                `${d.parameters.cc}; seed ${d.seed}`,
            state: v.state,
            word: v.word,
            verdict: v.text,
            findings: v.found,
            tiles: [
                {
                    value: `${format.number(total.finished)} / ${format.number(total.flows)}`,
                    label: "flows finished",
                },
                { value: format.time(d.end_ns), label: "simulated" },
                {
                    value: fct.length ? format.time(fct[99]) : "\u2013",
                    label: "completion time, 99 %",
                },
                { value: format.number(total.pauses), label: "pause frames" },
                { value: format.bytes(total.max_queue_bytes), label: "longest queue" },
                { value: format.number(total.drops), label: "drops" },
            ],
        });
    }

    const all_events = events();

    top();
    return {
        d,
        format,
        el,
        TOP,
        QUEUE,
        PAUSE,
        LOAD,
        FRAMES,
        nodes,
        ports,
        level,
        port_name,
        queue_bytes,
        times,
        length_ns,
        gbps,
        when,
        share,
        total,
        waiting,
        unit,
        in_unit,
        frames,
        paused_ports,
        count,
        all_events,
    };
})();
