/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_stage.js: the topology at a moment, who holds up whom, with what moves it: a slider,
 * buttons, a strip with the whole run. Drawn on a canvas, since a thousand hosts have some
 * thousand links.
 */
"use strict";

const page_stage = (() => {
    const {
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
        gbps,
        when,
        waiting,
        frames,
        paused_ports,
        all_events,
    } = page;
    document.head.append(
        el("style", {
            text: `
        .player { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; }
        .player button, .events button { font: inherit; font-size: 14px; min-height: 32px;
            padding: 2px 10px; cursor: pointer; color: var(--text); background: var(--card);
            border: 1px solid var(--line); border-radius: 4px; }
        .player #play { min-width: 92px; font-weight: 600; }
        .player input { flex: 1 1 160px; accent-color: var(--c1); }
        .clock { min-width: 76px; text-align: right; font-variant-numeric: tabular-nums;
            font-weight: 600; }
        canvas { display: block; width: 100%; touch-action: pan-y; }
        .strip { margin: 10px 0 4px; border-radius: 4px; cursor: pointer; touch-action: none; }
        .key { display: flex; flex-wrap: wrap; gap: 4px 16px; list-style: none;
            margin: 8px 0 0; padding: 0; font-size: 13px; }
        .key li { display: inline-flex; align-items: center; gap: 6px; }
        .key i { width: 18px; height: 4px; border-radius: 2px; background: var(--line); }
        .key .key-low { background: var(--c1); }
        .key .key-high { background: var(--c2); height: 6px; }
        .key .key-paused { background: var(--bad); height: 6px; }
        .key .key-frame { width: 0; height: 0; border: 6px solid transparent;
            border-left: 10px solid var(--bad); border-right: 0; background: none;
            border-radius: 0; }
        .key .key-dead { background: none; height: 0; width: 26px;
            border-top: 4px dashed var(--c8); border-radius: 0; }
        .moment { min-height: 3em; }
        .events { list-style: none; padding: 0; }
        .events li { margin: 4px 0; }`,
        }),
    );

    /* Where nodes are drawn: x and y from 0 to 1. */
    const layout = (() => {
        const near = nodes.map((n) => n.ports.map((i) => ports[i].peer));
        const rank = nodes.map((n) => (n.isSwitch ? Infinity : 0));
        const queue = nodes.filter((n) => !n.isSwitch).map((n) => n.i);
        for (let k = 0; k < queue.length; k++)
            for (const next of near[queue[k]])
                if (rank[next] === Infinity) {
                    rank[next] = rank[queue[k]] + 1;
                    queue.push(next);
                }
        const switches = nodes.filter((n) => n.isSwitch).map((n) => n.i);
        switches.forEach((i) => (rank[i] = rank[i] === Infinity ? 1 : rank[i]));
        const inner = (i) => near[i].filter((k) => nodes[k].isSwitch);
        const hosts_of = (i) => near[i].filter((k) => !nodes[k].isSwitch);
        const ranks = Math.max(1, ...switches.map((i) => rank[i]));
        const x = new Float64Array(nodes.length),
            y = new Float64Array(nodes.length);

        function fan(center, radius, list, from, to) {
            list.forEach((i, k) => {
                const a = from + ((to - from) * (k + 0.5)) / list.length;
                x[i] = x[center] + radius * Math.cos(a);
                y[i] = y[center] + radius * Math.sin(a);
            });
        }
        function radial() {
            x[switches[0]] = y[switches[0]] = 0.5;
            fan(switches[0], 0.42, hosts_of(switches[0]), -Math.PI / 2, 1.5 * Math.PI);
        }
        function ring(order) {
            order.forEach((s, k) => {
                const a = -Math.PI / 2 + (2 * Math.PI * k) / order.length;
                x[s] = 0.5 + 0.26 * Math.cos(a);
                y[s] = 0.5 + 0.26 * Math.sin(a);
                const open = Math.min(1.4, 5 / order.length);
                fan(s, 0.17, hosts_of(s), a - open / 2, a + open / 2);
            });
        }
        function row(order) {
            order.forEach((s, k) => {
                x[s] = (k + 0.5) / order.length;
                y[s] = 0.32;
                stack(s, (k + 0.5) / order.length, 0.8 / order.length, 0.58);
            });
        }
        /* Hosts below their switch, in lines. */
        function stack(s, middle, width, upper) {
            const list = hosts_of(s),
                most = Math.max(1, Math.min(list.length, Math.round(width * 44)));
            const lines = Math.ceil(list.length / most),
                across = Math.ceil(list.length / Math.max(1, lines));
            list.forEach((h, k) => {
                const of = Math.min(across, list.length - across * Math.floor(k / across));
                x[h] = middle + width * (((k % across) + 0.5) / of - 0.5);
                y[h] =
                    upper +
                    (0.95 - upper) * (lines > 1 ? Math.floor(k / across) / (lines - 1) : 0.5);
            });
        }
        function layers() {
            for (let r = 1; r <= ranks; r++) {
                const list = switches.filter((i) => rank[i] === r);
                list.forEach((s, k) => {
                    x[s] = (k + 0.5) / list.length;
                    y[s] = ranks === 1 ? 0.2 : 0.6 - (0.52 * (r - 1)) / (ranks - 1);
                    if (hosts_of(s).length > 0) stack(s, x[s], 0.9 / list.length, 0.76);
                });
            }
        }
        /* Switches one after another along their links; null: they branch. */
        function chain() {
            if (switches.some((i) => inner(i).length > 2)) return null;
            const order = [switches.find((i) => inner(i).length < 2) ?? switches[0]];
            for (;;) {
                const next = inner(order[order.length - 1]).find((i) => !order.includes(i));
                if (next === undefined) return order.length === switches.length ? order : null;
                order.push(next);
            }
        }
        const order = ranks === 1 && switches.length > 0 ? chain() : null;
        let wide = true;
        if (switches.length === 1) {
            radial();
            wide = false;
        } else if (order && order.length > 2 && inner(order[0]).length === 2) {
            ring(order);
            wide = false;
        } else if (order) {
            row(order);
        } else {
            layers();
        }
        return { x, y, rank, ranks, wide };
    })();

    /* The picture of a moment, and what moves it. */
    function topology(parent) {
        const canvas = el("canvas", { class: "stage", role: "img", tabindex: "0" });
        const strip = el("canvas", { "class": "strip", "aria-hidden": "true" });
        const slider = el("input", {
            "type": "range",
            "min": 0,
            "max": d.intervals - 1,
            "value": 0,
            "step": 1,
            "aria-label": "Time",
            "id": "time",
        });
        const play = el("button", { type: "button", id: "play", text: "\u25b6 Play" });
        const back = el("button", {
            "type": "button",
            "text": "\u2039",
            "aria-label": "One interval back",
        });
        const on = el("button", {
            "type": "button",
            "text": "\u203a",
            "aria-label": "One interval on",
        });
        const clock = el("output", { for: "time", class: "clock" });
        const words = el("p", { "class": "moment note", "aria-live": "polite" });
        const key = el(
            "ul",
            { class: "key" },
            ...[
                ["free", "no queue"],
                ["low", "short queue"],
                ["high", "long queue"],
                ["paused", "told to pause"],
                ["frame", "PFC frames on their way"],
            ]
                .concat(waiting.size > 0 ? [["dead", "the circle of the deadlock"]] : [])
                .map(([name, text]) => el("li", {}, el("i", { class: `key-${name}` }), text)),
        );
        parent.append(
            el(
                "figure",
                {},
                el("div", { class: "player" }, play, back, on, slider, clock),
                strip,
                canvas,
                key,
                words,
            ),
        );
        let now = 0,
            playing = null,
            shown = null,
            phase = 0.5,
            colors = {};

        const mix = (a, b, k) => a.map((v, i) => Math.round(v + (b[i] - v) * k));
        const css = (c, alpha = 1) => `rgba(${c[0]},${c[1]},${c[2]},${alpha})`;
        function take_colors() {
            const probe = el("i");
            document.body.append(probe);
            const rgb = (name) => {
                probe.style.color = `var(--${name})`;
                return getComputedStyle(probe).color.match(/\d+/g).slice(0, 3).map(Number);
            };
            colors = Object.fromEntries(
                ["line", "text", "quiet", "back", "card", "c1", "c2", "bad", "c5", "c8"].map(
                    (n) => [n, rgb(n)],
                ),
            );
            probe.remove();
        }
        /* Of a queue: from the colour of a cold line by blue to orange. */
        function heat(v) {
            if (v === 0) return mix(colors.line, colors.quiet, 0.35);
            const k = Math.sqrt(v / TOP);
            return k < 0.5
                ? mix(mix(colors.line, colors.c1, 0.45), colors.c1, 2 * k)
                : mix(colors.c1, colors.c2, 2 * k - 1);
        }
        function prepare(target, ratio) {
            const width = target.clientWidth,
                height = Math.round(width * ratio) || 1;
            const scale = window.devicePixelRatio || 1;
            if (target.width !== width * scale || target.height !== height * scale) {
                target.width = width * scale;
                target.height = height * scale;
                target.style.height = `${height}px`;
            }
            const g = target.getContext("2d");
            g.setTransform(scale, 0, 0, scale, 0, 0);
            g.clearRect(0, 0, width, height);
            return [g, width, height];
        }
        function place(width, height) {
            const edge = width < 500 ? 14 : 26;
            if (layout.wide)
                return (i) => [
                    edge + layout.x[i] * (width - 2 * edge),
                    edge + layout.y[i] * (height - 2 * edge),
                ];
            const side = Math.min(width, height) - 2 * edge,
                left = (width - side) / 2,
                upper = (height - side) / 2;
            const stretch = Math.min(1.5, (width - 2 * edge) / side);
            return (i) => [
                width / 2 + (layout.x[i] - 0.5) * side * stretch,
                upper + layout.y[i] * side + 0 * left,
            ];
        }
        function draw() {
            const narrow = canvas.clientWidth < 560;
            const [g, width, height] = prepare(
                canvas,
                layout.wide ? (narrow ? 0.85 : 0.46) : narrow ? 1 : 0.56,
            );
            const spot = place(width, height),
                crowd = nodes.length;
            const thin = crowd > 400 ? 0.7 : crowd > 100 ? 1 : 1.6;
            g.lineCap = "round";
            const hot = [];
            for (const [list, pass] of [
                [ports, 0],
                [ports, 1],
            ])
                for (const p of list) {
                    const v = level(p, QUEUE, now),
                        stop = level(p, PAUSE, now);
                    if ((pass === 0) !== (v === 0 && stop === 0)) continue;
                    const [x0, y0] = spot(p.node),
                        [x1, y1] = spot(p.peer);
                    g.beginPath();
                    g.moveTo(x0, y0);
                    g.lineTo((x0 + x1) / 2, (y0 + y1) / 2);
                    g.strokeStyle =
                        stop > 0
                            ? css(mix(heat(v), colors.bad, 0.45 + (0.55 * stop) / TOP))
                            : css(heat(v), crowd > 400 && v === 0 ? 0.35 : 1);
                    g.lineWidth =
                        stop > 0
                            ? thin * 2.4
                            : v > 0
                              ? thin * (1.2 + 1.6 * Math.sqrt(v / TOP))
                              : thin;
                    g.stroke();
                    if (level(p, FRAMES, now) > 0) hot.push(p);
                }
            for (const i of waiting) {
                const p = ports[i],
                    [x0, y0] = spot(p.node),
                    [x1, y1] = spot(p.peer);
                if (d.deadlock_ns === null || times[now] + d.interval_ns < d.deadlock_ns) break;
                g.setLineDash([7, 5]);
                g.beginPath();
                g.moveTo(x0, y0);
                g.lineTo(x1, y1);
                g.strokeStyle = css(colors.c8);
                g.lineWidth = 4;
                g.stroke();
                g.setLineDash([]);
            }
            /* A frame goes from the peer, which wants it, to the port that is to stop. */
            for (const p of hot) {
                const [x1, y1] = spot(p.node),
                    [x0, y0] = spot(p.peer);
                const k = 0.12 + 0.76 * phase,
                    x = x0 + (x1 - x0) * k,
                    y = y0 + (y1 - y0) * k;
                const a = Math.atan2(y1 - y0, x1 - x0),
                    r = crowd > 400 ? 3 : crowd > 100 ? 4.5 : 6.5;
                g.beginPath();
                g.moveTo(x + r * Math.cos(a), y + r * Math.sin(a));
                g.lineTo(x + r * Math.cos(a + 2.5), y + r * Math.sin(a + 2.5));
                g.lineTo(x + r * Math.cos(a - 2.5), y + r * Math.sin(a - 2.5));
                g.closePath();
                g.fillStyle = css(colors.bad);
                g.strokeStyle = css(colors.back);
                g.lineWidth = 1;
                g.fill();
                g.stroke();
            }
            draw_nodes(g, spot, width, crowd);
            draw_strip();
        }
        function draw_nodes(g, spot, width, crowd) {
            const labels = [];
            g.textAlign = "center";
            g.textBaseline = "middle";
            for (const n of nodes) {
                const [x, y] = spot(n.i);
                const mine = n.ports.map((i) => ports[i]);
                const v = Math.max(0, ...mine.map((p) => level(p, QUEUE, now)));
                const stop = Math.max(0, ...mine.map((p) => level(p, PAUSE, now)));
                const small = width < 560 && crowd > 30 ? 0.6 : 1;
                const r =
                    small *
                    (n.isSwitch
                        ? crowd > 400
                            ? 4
                            : crowd > 100
                              ? 8
                              : 13
                        : crowd > 400
                          ? 2
                          : crowd > 100
                            ? 3.5
                            : 7);
                g.beginPath();
                if (n.isSwitch) g.roundRect(x - r, y - r, 2 * r, 2 * r, r / 3);
                else g.arc(x, y, r, 0, 2 * Math.PI);
                g.fillStyle =
                    v > 0 && n.isSwitch
                        ? css(heat(v))
                        : css(
                              stop > 0
                                  ? mix(colors.card, colors.bad, 0.25 + (0.5 * stop) / TOP)
                                  : colors.card,
                          );
                g.strokeStyle =
                    stop > 0
                        ? css(colors.bad)
                        : css(mix(colors.quiet, colors.text, n.isSwitch ? 0.5 : 0));
                g.lineWidth = stop > 0 ? Math.max(1.2, r / 4) : Math.max(0.7, r / 8);
                g.fill();
                g.stroke();
                if (shown === n) {
                    g.beginPath();
                    g.arc(x, y, r * 1.5 + 3, 0, 2 * Math.PI);
                    g.strokeStyle = css(colors.text);
                    g.lineWidth = 1.5;
                    g.stroke();
                }
                labels.push([n, x, y, r]);
            }
            /* Names where there is room for all of a kind. */
            g.font = "12px system-ui, 'DejaVu Sans', sans-serif";
            for (const kind of [true, false]) {
                const list = labels.filter(([n]) => n.isSwitch === kind);
                const room = list.every(([n, x, y, r], k) =>
                    list.every(
                        ([m, x2, y2], j) =>
                            j <= k ||
                            Math.hypot(x - x2, (y - y2) * 2) >
                                8 + (g.measureText(n.name).width + g.measureText(m.name).width) / 2,
                    ),
                );
                if (list.length > 64 || !room) continue;
                for (const [n, x, y, r] of list) {
                    const below =
                        layout.wide && n.isSwitch
                            ? -1
                            : n.isSwitch
                              ? 1
                              : y < canvas.clientHeight / 2 && !layout.wide
                                ? -1
                                : 1;
                    const tx = Math.min(
                        width - g.measureText(n.name).width / 2 - 1,
                        Math.max(g.measureText(n.name).width / 2 + 1, x),
                    );
                    const ty = y + below * (r + 9);
                    g.lineWidth = 3;
                    g.strokeStyle = css(colors.back);
                    g.strokeText(n.name, tx, ty);
                    g.fillStyle = css(colors.text);
                    g.fillText(n.name, tx, ty);
                }
            }
        }
        /* All of the run in a few pixels: ports that stand still, what arrives, events. */
        function draw_strip() {
            const [g, width, height] = prepare(strip, strip.clientWidth < 560 ? 0.16 : 0.06);
            const step = width / d.intervals;
            const paused = Math.max(1, ...paused_ports),
                most = Math.max(1, ...d.arrived.map(gbps));
            g.fillStyle = css(colors.card);
            g.fillRect(0, 0, width, height);
            g.fillStyle = css(colors.bad, 0.75);
            paused_ports.forEach((n, t) => {
                const left = Math.round(t * step);
                g.fillRect(
                    left,
                    height * (1 - n / paused),
                    Math.round((t + 1) * step) - left,
                    (height * n) / paused,
                );
            });
            g.beginPath();
            d.arrived.forEach((bytes, t) =>
                g.lineTo((t + 0.5) * step, height - 2 - ((height - 4) * gbps(bytes, t)) / most),
            );
            g.strokeStyle = css(colors.c1);
            g.lineWidth = 2;
            g.stroke();
            for (const e of all_events) {
                g.fillStyle = e.bad ? css(colors.c8) : css(colors.quiet);
                g.fillRect((e.ns / Math.max(1, d.end_ns)) * width - 1, 0, 2, height);
            }
            g.strokeStyle = css(colors.text);
            g.lineWidth = 2;
            g.strokeRect(now * step, 1, Math.max(2, step), height - 2);
        }
        /* Of a node, the six ports where most happens. */
        function busiest(node) {
            const much = (p) => level(p, QUEUE, now) + level(p, PAUSE, now) + level(p, LOAD, now);
            return node.ports
                .map((i) => ports[i])
                .sort((a, b) => much(b) - much(a))
                .slice(0, 6);
        }
        function port_words(p) {
            const part = (what) => format.percent(Math.round((100 * level(p, what, now)) / TOP));
            return (
                `to ${nodes[p.peer].name} load ${part(LOAD)}, paused ${part(PAUSE)}, ` +
                `queue ${format.bytes(Math.round(queue_bytes(level(p, QUEUE, now))))}`
            );
        }
        function describe() {
            const stopped = ports.filter((p) => level(p, PAUSE, now) > 0);
            const longest = ports.reduce(
                (a, p) => (p.at_switch && level(p, QUEUE, now) > level(a, QUEUE, now) ? p : a),
                ports[0],
            );
            const queue = level(longest, QUEUE, now);
            clock.textContent = when(now);
            slider.setAttribute("aria-valuetext", when(now));
            const more = ports.some((p) => level(p, FRAMES, now) === TOP) ? " or more" : "";
            let text =
                `At ${when(now)}: ${stopped.length} ports told to pause ` +
                `(${stopped.filter((p) => !p.at_switch).length} of hosts), ` +
                `${format.number(frames[now])}${more} PFC frames; ` +
                (queue > 0
                    ? `the longest queue, about ${format.bytes(queue_bytes(queue))}, is ` +
                      port_name(longest)
                    : "no queue") +
                ".";
            if (shown) text += ` ${shown.name}: ${busiest(shown).map(port_words).join("; ")}.`;
            words.textContent = text;
            canvas.setAttribute("aria-label", `Topology. ${text}`);
        }
        function go(t) {
            now = Math.max(0, Math.min(d.intervals - 1, t));
            slider.value = now;
            describe();
            draw();
        }
        function stop() {
            cancelAnimationFrame(playing);
            playing = null;
            phase = 0.5;
            play.textContent = "\u25b6 Play";
            draw();
        }
        function run() {
            const first = now >= d.intervals - 1 ? 0 : now,
                each_ms = Math.max(50, 14000 / d.intervals);
            let begun = null;
            play.textContent = "\u275a\u275a Pause";
            const step = (ms) => {
                begun ??= ms;
                const at = first + (ms - begun) / each_ms;
                phase = ((ms - begun) / 400) % 1;
                if (at >= d.intervals) {
                    stop();
                    return;
                }
                if (Math.floor(at) !== now) go(Math.floor(at));
                else draw();
                playing = requestAnimationFrame(step);
            };
            go(first);
            playing = requestAnimationFrame(step);
        }
        const seek = (e) => {
            const box = strip.getBoundingClientRect();
            go(Math.floor(((e.clientX - box.left) / box.width) * d.intervals));
        };
        strip.addEventListener("pointerdown", (e) => {
            seek(e);
            strip.setPointerCapture(e.pointerId);
        });
        strip.addEventListener("pointermove", (e) => e.buttons && seek(e));
        slider.addEventListener("input", () => go(Number(slider.value)));
        play.addEventListener("click", () => (playing !== null ? stop() : run()));
        back.addEventListener("click", () => go(now - 1));
        on.addEventListener("click", () => go(now + 1));
        canvas.addEventListener("keydown", (e) => {
            if (e.key === "ArrowLeft" || e.key === "ArrowRight")
                go(now + (e.key === "ArrowRight" ? 1 : -1));
        });
        canvas.addEventListener("pointermove", (e) => {
            const box = canvas.getBoundingClientRect(),
                spot = place(canvas.clientWidth, canvas.clientHeight);
            let best = null,
                near = 18;
            for (const n of nodes) {
                const [x, y] = spot(n.i),
                    far = Math.hypot(e.clientX - box.left - x, e.clientY - box.top - y);
                if (far < near) [best, near] = [n, far];
            }
            if (best !== shown) {
                shown = best;
                describe();
                draw();
            }
        });
        take_colors();
        new ResizeObserver(draw).observe(canvas);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
            take_colors();
            draw();
        });
        /* Where it is worst. */
        const trouble = times.map((_, t) => ports.reduce((n, p) => n + level(p, PAUSE, t), 0));
        go(
            d.deadlock_ns !== null
                ? Math.floor(d.deadlock_ns / d.interval_ns) + 1
                : trouble.reduce((a, n, t) => (n > trouble[a] ? t : a), 0),
        );
        return go;
    }

    return topology;
})();
