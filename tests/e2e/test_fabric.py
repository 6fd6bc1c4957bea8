#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 300 s
"""`verbena fabric run`: every example scenario and what it shows, imports, messages, the same bytes twice."""

import collections
import csv
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

import e2e
from e2e import demand

USAGE, UNAVAILABLE, STALLED = 64, 69, 1
SCENARIOS = os.path.join(e2e.ROOT, "examples", "scenarios")
DATA = os.path.join(e2e.ROOT, "tests", "scenario", "data")
TRACE = "<trace>"  # stands for a file in the folder of the results
FILES = ["flows.csv", "pfc.csv", "ports.csv", "summary.json", "scenario.yaml"]
folder = tempfile.TemporaryDirectory(prefix="verbena-fabric-")


def fabric(*words, status=0):
    """The folder with the results of a run that must end with this exit code; its messages."""
    out = tempfile.mkdtemp(dir=folder.name)
    command = [e2e.VERBENA, "fabric", "run", *words, "--out", out]
    command = [os.path.join(out, "trace") if word == TRACE else word for word in command]
    got, text, errors = e2e.run(command, 100)
    demand(got == status, f"exit code {got}, wanted {status}: {text}{errors}")
    return out, text + errors


def summary(out):
    with open(os.path.join(out, "summary.json"), encoding="utf-8") as text:
        return json.load(text)


def rows(out, name):
    with open(os.path.join(out, name), encoding="utf-8") as text:
        return list(csv.DictReader(text))


def fnv(path):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    with open(path, "rb") as data:
        for byte in data.read():
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def last_ns(out):
    return max(int(row["fct_ns"]) for row in rows(out, "flows.csv"))


def storm(out, total):
    demand(total["pauses"] > 1000 and total["drops"] == 0, total)
    paused = [int(r["paused_received_ns"]) for r in rows(out, "ports.csv") if r["node"] == "0"]
    demand(max(paused) > total["end_ns"] // 2, f"host 0 was paused for {paused} ns")


def cured(_, total):
    uncured = summary(fabric(os.path.join(SCENARIOS, "rack16-incast-storm.yaml"))[0])
    demand(total["drops"] == 0, total)
    demand(5 * total["pauses"] < uncured["pauses"], f"{total}\n{uncured}")


def limited(_, total):
    demand(total["pauses"] == 0 and total["drops"] == 0, total)


def victim(out, total):
    slow = float(rows(out, "flows.csv")[-1]["slowdown"])
    demand(slow > 2 and total["drops"] == 0, f"the victim's slowdown is {slow}")


def deadlock(_, total):
    demand(total["deadlock"] and total["finished"] == 0 and total["drops"] == 0, total)
    demand(0 < total["deadlock_ns"] < 1000000, total)


def watchdog(_, total):
    demand(total["deadlock"] and total["storms"] > 0 and total["drops_by"]["watchdog"] > 0, total)


def mapping(out, total):
    dropping = {row["node"] for row in rows(out, "ports.csv") if int(row["drops"]) > 0}
    demand(dropping == {"17"}, f"drops at nodes {dropping}")  # s1 of 16 hosts
    demand(total["drops_by"]["threshold"] == total["drops"] > 0, total)


def mtu(out, total):
    demand(total["drops_by"]["mtu"] == total["drops"] > 0, total)
    demand([row["fct_ns"] != "" for row in rows(out, "flows.csv")] == [True, False], "who finished")
    verbs = [(row["status"], row["src_qp"]) for row in rows(out, "verbs.csv")]
    demand(verbs == [("SUCCESS", "RTS"), ("RETRY_EXC_ERR", "ERR")], verbs)


def flap(out, total):
    demand(total["drops_by"]["link"] > 0, total)
    demand(sum(int(row["retries"]) for row in rows(out, "flows.csv")) > 0, "no retries")


def converged(out, total):
    """Whose bytes or acknowledgements are lost wait for it, nobody gives up; without it they do."""
    slow = [row for row in rows(out, "flows.csv") if float(row["fct_ns"]) > 10e6]
    demand(0 < len(slow) < total["flows"] / 2, f"{len(slow)} of {total['flows']} were late")
    demand(total["drops_by"]["route"] > 0, total)
    scenario = os.path.join(SCENARIOS, "link-failure.yaml")
    never = summary(fabric(scenario, "--set", "switches.convergence=never", status=STALLED)[0])
    demand(never["failed"] == len(slow), f"{never}, {len(slow)} were late")
    soon = summary(fabric(scenario, "--set", "switches.convergence=1ms")[0])
    demand(soon["end_ns"] < total["end_ns"], f"{soon}, {total}")


def go_back_n(out, total):
    demand(total["pauses"] == 0 and total["drops_by"]["threshold"] == total["drops"] > 0, total)
    demand(sum(int(row["retries"]) for row in rows(out, "flows.csv")) > 15, "few retries")


def go_back_0(out, total):
    """Nothing gets through; with go-back-N the same losses cost little."""
    demand(total["finished"] == 0 and total["deadlock"] is False, total)
    demand(total["end"] == "livelock" and total["progress_ns"] < total["end_ns"] - 20e6, total)
    sent = sum(int(row["tx_bytes"]) for row in rows(out, "ports.csv") if row["node"] == "0")
    demand(sent > 80 * 4194304 and int(rows(out, "flows.csv")[0]["retries"]) > 100, sent)
    bits = sent / 1086 * 1106 * 8  # and what is between frames: it is busy all the time
    demand(0.99 < bits / (total["end_ns"] * 100) < 1.01, f"{bits} bits in {total}")
    scenario = os.path.join(SCENARIOS, "go-back-0-livelock.yaml")
    n, _ = fabric(scenario, "--set", "hosts.recovery=go-back-n")
    flow = rows(n, "flows.csv")[0]
    demand(1.1 < float(flow["slowdown"]) < 1.25 and int(flow["retries"]) > 4, flow)
    demand(summary(n)["parameters"]["recovery"] == "go-back-n", summary(n))
    fabric(scenario, "--set", "hosts.nic=engine")  # and what only bare sources have is passed over


def concurrency(out, total):
    """What the outage costs, with the scenario's eight connections a host and with one."""
    calm = ["--set", "faults.0.at=90ms", "--set", "faults.1.at=91ms"]
    scenario = os.path.join(SCENARIOS, "concurrency-slows-recovery.yaml")
    one = ["--set", "workload.0.connections=1"]
    few, few_calm = fabric(scenario, *one)[0], fabric(scenario, *one, *calm)[0]
    cost = last_ns(out) - last_ns(fabric(scenario, *calm)[0])
    cost_few = last_ns(few) - last_ns(few_calm)
    demand(cost > 1.5 * cost_few > 0, f"recovery took {cost} ns, and {cost_few} with one")
    demand(total["drops"] > 5 * summary(few)["drops"] > 0, total)
    demand(summary(few_calm)["drops"] == 0 and total["pauses"] == 0, total)
    demand(all(int(row["retries"]) > 0 for row in rows(out, "flows.csv")), "who lost nothing")


# Each example: exit code, whether all flows finish, what else it shows.
EXAMPLES = {
    "rack16-incast-storm": (0, storm),
    "storm-cured-by-dcqcn": (0, cured),
    "storm-cured-by-ztr-rtt": (0, cured),
    "storm-limited-concurrency": (0, limited),
    "victim-flow": (0, victim),
    "deadlock-ring": (STALLED, deadlock),
    "deadlock-ring-watchdog": (0, watchdog),
    "wrong-priority-mapping": (0, mapping),
    "mtu-mismatch": (STALLED, mtu),
    "link-flap": (0, flap),
    "link-failure": (0, converged),
    "go-back-n-without-pfc": (0, go_back_n),
    "go-back-0-livelock": (STALLED, go_back_0),
    "concurrency-slows-recovery": (0, concurrency),
}


def example(name):
    status, shows = EXAMPLES[name]
    out, text = fabric(os.path.join(SCENARIOS, name + ".yaml"), status=status)
    total = summary(out)
    demand(status != 0 or total["finished"] == total["flows"], total)
    demand((total["end"] == "stalled") == ("came to a standstill" in text), text)
    demand((total["failed"] > 0) == ("ended with an error" in text), text)
    demand((total["end"] == "livelock") == ("livelock: frames arrive again" in text), text)
    demand((status == STALLED) == (total["end"] in ("stalled", "failed", "livelock")), total)
    demand(total["deadlock"] == ("PFC deadlock" in text), text)
    shows(out, total)


def examples_are_all_here():
    names = {os.path.basename(p).removesuffix(".yaml") for p in glob.glob(SCENARIOS + "/*.yaml")}
    demand(names == set(EXAMPLES), f"{names ^ set(EXAMPLES)}")


def imported(topology, flows, *more):
    words = ["--topology", os.path.join(DATA, topology), "--flows", os.path.join(DATA, flows)]
    return [*words, "--profile", "hpcc-compat", *more]


def imports(topology, flows, *more, status=0):
    return fabric(*imported(topology, flows, *more), status=status)


def one_flow():
    out, _ = imports("star16.txt", "one_1MiB.txt")
    row = rows(out, "flows.csv")[0]
    demand(row["fct_ns"] == "92008" and row["slowdown"] == "1.000", row)  # V01: 92007.68 ns
    demand(summary(out)["link_hops"] == 4 * 1049, summary(out))


def incast_drains():
    out, _ = imports("star16.txt", "incast15_1MiB.txt")
    total = summary(out)
    demand(abs(last_ns(out) - 1322810) <= 100, f"the last flow took {last_ns(out)} ns")  # V02
    demand(abs(total["max_queue_bytes"] - 15384992) <= 1048, total)
    demand(total["drops"] == total["pauses"] == 0, total)


def congestion_control():
    """Each one that an import knows finishes; one that heeds marks is paused less."""
    words = ("star16.txt", "incast15_1MiB.txt", "--buffer-mib", "4", "--cc")
    pauses = {}
    for name in ("none", "dcqcn-hw", "dcqcn-paper", "hpcc", "timely", "ztr-target"):
        total = summary(imports(*words, name)[0])
        demand(total["finished"] == 15 and total["drops"] == 0, f"{name}: {total}")
        pauses[name] = total["pauses"]
    demand(max(pauses["dcqcn-hw"], pauses["dcqcn-paper"]) < pauses["none"] / 2, pauses)


def congestion_control_of_engines():
    """Hosts with a NIC gain by it what bare ones do: fewer pauses in a storm. Those of the published
    template are shorter, but more."""
    storms = {}
    for name in ("none", "timely", "ztr-target", "dcqcn-hw", "ztr-template"):
        sets = ["--set", "workload.0.rounds=1", "--set", "workload.0.connections=1"]
        sets += ["--set", "hosts.cc=" + name, "--no-report"]
        out, _ = fabric(os.path.join(SCENARIOS, "rack16-incast-storm.yaml"), *sets)
        paused = sum(int(row["paused_received_ns"]) for row in rows(out, "ports.csv"))
        storms[name] = (summary(out)["pauses"], paused)
    none = storms.pop("none")
    demand(all(2 * paused < none[1] for _, paused in storms.values()), f"{none} {storms}")
    storms.pop("ztr-template")
    demand(all(5 * pauses < none[0] for pauses, _ in storms.values()), f"{none} {storms}")


def hpcc():
    """15 to 1 without a pause and with a short queue, the line in use; twice the same."""
    words = ("star16.txt", "incast15_1MiB.txt", "--cc", "hpcc")
    outs = [imports(*words)[0] for _ in range(2)]
    total, times = summary(outs[0]), [int(row["fct_ns"]) for row in rows(outs[0], "flows.csv")]
    demand(total["finished"] == 15 and total["pauses"] == total["drops"] == 0, total)
    wire_ns = 15 * 1049 * 1090 * 8 / 100
    demand(wire_ns < max(times) < wire_ns * 1.12 and min(times) > max(times) * 0.65, times)
    demand(total["max_queue_bytes"] < 1 << 20, total)
    for name in FILES:
        demand(fnv(os.path.join(outs[0], name)) == fnv(os.path.join(outs[1], name)), name)


def ring():
    out, _ = imports("ring5.txt", "ring5_f.txt", "--buffer-mib", "1", status=STALLED)
    demand(summary(out)["deadlock"], summary(out))
    out, _ = imports("ring5.txt", "ring5_f.txt", "--buffer-mib", "1", "--watchdog", "200ms,200ms")
    total = summary(out)
    demand(total["deadlock"] and total["finished"] == 5 and total["storms"] > 0, total)


def deadlock_of_links():
    """Links that are paused wait in a circle for classes that differ; PFC has no circle there."""
    words = [os.path.join(SCENARIOS, "deadlock-ring.yaml"), "--set", "switches.lossless=3,4"]
    words += ["--set", "switches.weights.3=1", "--set", "switches.weights.4=8"]
    for flow in range(5):
        words += ["--set", f"workload.{flow}.bytes=4MiB"]
        words += ["--set", f"workload.{flow}.priority={3 + flow % 2}"]
    total = summary(fabric(*words)[0])
    demand(total["finished"] == 5 and not total["deadlock"], total)
    out, text = fabric(*words, "--set", "switches.pause=link", status=STALLED)
    deadlock(out, summary(out))
    circle = re.search(r"^802\.3x deadlock: since 0\.\d+ ms queues .* circle: (.*)$", text, re.M)
    demand(circle is not None, text)
    named = {re.fullmatch(r"(s[0-4]) port \d+ priority [34]", q)[1] for q in circle[1].split(", ")}
    demand(len(named) == 5, text)


def verbs():
    """All operations; who is late is waited for, who has the wrong key is told, all others finish."""
    out, text = fabric(os.path.join(DATA, "verbs.yaml"), status=STALLED)
    total, table = summary(out), rows(out, "verbs.csv")
    wrong = [row for row in table if row["status"] != "SUCCESS"]
    demand(total["end"] == "failed" and total["failed"] == len(wrong) == 1, total)
    demand(total["finished"] == total["flows"] - 1 and "verbs.csv names them" in text, total)
    demand(wrong[0]["status"] == "REM_ACCESS_ERR" and int(wrong[0]["failed_ns"]) > 50000, wrong)
    demand(wrong[0]["src_qp"] == wrong[0]["dst_qp"] == "ERR", wrong)
    demand({row["verb"] for row in table} == set(VERBS), "verbs.csv")
    late = [row for row in table if int(row["rnr_naks"]) > 0]
    demand(late and all(row["verb"] in ("send", "write-imm") for row in late), late)
    flows = rows(out, "flows.csv")
    demand(any(int(flows[int(row["flow"])]["retries"]) > 0 for row in late), "nobody tried again")
    bare, _ = fabric(os.path.join(DATA, "verbs.yaml"), "--set", "profile=hpcc-compat")
    demand(summary(bare)["parameters"]["nic"] == "none", "what only a NIC has is passed over")
    atomics = [flows[int(row["flow"])] for row in table if row["verb"] in VERBS[-2:]]
    demand(atomics and all(float(row["slowdown"]) >= 1 for row in atomics), atomics)


VERBS = ("write", "write-imm", "send", "read", "fetch-add", "cmp-swap")


def same_bytes(scenario, sums, *words, status=0):
    """Twice, and as every build has them (tests/scenario/test_results.c)."""
    words = [os.path.join(DATA, scenario), *words, "--trace", TRACE, "--trace-mib", "1"]
    runs = (words, words, [*words, "--seed", "12"])
    outs = [fabric(*run, status=status)[0] for run in runs]
    with open(os.path.join(DATA, sums), encoding="utf-8") as text:
        want = {name: int(value, 16) for value, name in map(str.split, text)}
    demand(set(want) >= set(FILES), want)
    for name in want:
        got = [fnv(os.path.join(out, name)) for out in outs]
        demand(got[0] == got[1] == want[name], f"{name} differs")
        demand(got[2] != got[0] or name == "verbs.csv", f"{name} does not know the seed")


# As verbs.yaml, but its losses are bits that turn.
CORRUPT = os.path.join(folder.name, "corrupt.yaml")
with open(os.path.join(DATA, "verbs.yaml"), encoding="utf-8") as whole:
    with open(CORRUPT, "w", encoding="utf-8") as changed:
        lossy = "{fault: link-loss, a: s0, b: s2, loss: 0.2%}"
        changed.write(whole.read().replace(lossy, "{fault: link-corrupt, a: s0, b: s2, corrupt: 1%}"))


POISSON = """name: any "load"
topology: {shape: fat-tree, k: 4, rate: 25Gbps}
workload:
  - {op: poisson, sizes: fb-hadoop, load: 40%, duration: 300us}
  - {op: storage, servers: 3, reads: 60%, bytes: 20KB, rounds: 3}
"""
# What is run, and its exit code; `scenario` stands for a file with POISSON.
REPEATED = {
    "case_126_poisson": (["scenario", "--seed", "3", "--set", "switches.weights.2=5"], 0),
    "case_126_bare": (["scenario", "--set", "hosts.nic=none", "--set", "hosts.cc=timely"], 0),
    "case_126_bytes": (["scenario", "--bytes", "--set", "hosts.cc=ztr-target"], 0),
    "case_126_verbs": ([os.path.join(DATA, "verbs.yaml"), "--set", "faults.0.loss=1%"], STALLED),
    "case_126_limit": ([os.path.join(DATA, "mixed.yaml"), "--set", "limit=50us"], 0),
    "case_126_flap": ([os.path.join(SCENARIOS, "link-flap.yaml")], 0),
    "case_126_mapping": ([os.path.join(SCENARIOS, "wrong-priority-mapping.yaml")], 0),
    "case_126_watchdog": ([os.path.join(SCENARIOS, "deadlock-ring-watchdog.yaml")], 0),
    "case_126_incast": (imported("star16.txt", "incast15_1MiB.txt", "--cc", "dcqcn-paper"), 0),
    "case_126_hpcc": (imported("star16.txt", "one_1MiB.txt", "--cc", "hpcc", "--seed", "4"), 0),
    "case_126_ring": (imported("ring5.txt", "ring5_f.txt", "--buffer-mib", "1"), STALLED),
    "case_126_ring_watched": (
        imported("ring5.txt", "ring5_f.txt", "--buffer-mib", "1", "--watchdog", "20ms,30ms"),
        0,
    ),
}


def repeated(words, status):
    """What a run leaves is all that it takes to have it again: scenario.yaml, and every byte of it."""
    if words[0] == "scenario":
        path = os.path.join(folder.name, "poisson.yaml")
        with open(path, "w", encoding="utf-8") as text:
            text.write(POISSON)
        words = [path, *words[1:]]
    more = ["--trace", TRACE, "--trace-mib", "2"]
    first, _ = fabric(*words, *more, status=status)
    second, _ = fabric(os.path.join(first, "scenario.yaml"), *more, status=status)
    demand(summary(first)["scenario_file"] == "scenario.yaml", summary(first))
    names = sorted(os.listdir(first))
    demand(names == sorted(os.listdir(second)) and set(names) > {*FILES, "trace"}, names)
    for name in names:
        demand(fnv(os.path.join(first, name)) == fnv(os.path.join(second, name)), name)
    # The same again in its place; but another is not written over it.
    again = ["run", os.path.join(first, "scenario.yaml"), "--no-report", "--out", first]
    told([*again, "--seed", "99"], UNAVAILABLE, "scenario.yaml: it is the scenario itself")
    got, text, errors = e2e.run([e2e.VERBENA, "fabric", *again], 100)
    demand(got == status, text + errors)


# Scenarios whose hosts have a NIC, as they are or with what is changed in them.
BYTES = {
    "verbs": ("verbs.yaml", STALLED),
    "tags": ("verbs.yaml", STALLED, "hosts.vlan=on", "switches.trust=pcp", "switches.pause=link"),
    "corrupt": (CORRUPT, STALLED),
    "mixed": ("mixed.yaml", 0, "hosts.cc=none"),
    "dcqcn": ("mixed.yaml", 0),
    "ztr_template": ("mixed.yaml", 0, "hosts.cc=ztr-template"),
    "ztr_target": ("mixed.yaml", 0, "hosts.cc=ztr-target"),
    "mtu": (os.path.join(SCENARIOS, "mtu-mismatch.yaml"), STALLED),
    "flap": (os.path.join(SCENARIOS, "link-flap.yaml"), 0),
}


def same_with_bytes(scenario, status, *sets):
    """Bytes and an ICRC in the frames change nothing of what comes out."""
    words = [os.path.join(DATA, scenario), "--trace", TRACE]
    for one in sets:
        words += ["--set", one]
    outs = [fabric(*words, *more, status=status)[0] for more in ([], ["--bytes"])]
    total = summary(outs[0])
    demand((total["drops_by"]["icrc"] > 0) == (scenario == CORRUPT), total)
    names = sorted(os.listdir(outs[0]))
    demand(names == sorted(os.listdir(outs[1])) and "verbs.csv" in names, names)
    for name in names:
        demand(fnv(os.path.join(outs[0], name)) == fnv(os.path.join(outs[1], name)), name)


def trace_lines(path, *words):
    status, out, errors = e2e.run([e2e.VERBENA, "fabric", "trace", path, *words], 60)
    demand(status == 0, f"exit code {status}: {errors}")
    return out.splitlines(), errors


def trace():
    """The events add up to the summary, in all three formats; filters here and there; a ring."""
    scenario = os.path.join(DATA, "verbs.yaml")
    out, _ = fabric(scenario, "--trace", TRACE, *ALL, status=STALLED)
    total, path = summary(out), os.path.join(out, "trace")
    table = list(csv.DictReader(trace_lines(path, "--format", "csv")[0]))
    count = collections.Counter(row["event"] for row in table)
    demand(count["arrive"] == total["link_hops"] and count["mark"] == total["ecn_marks"], count)
    demand(count["drop"] == total["drops"] and count["fail"] == total["failed"], count)
    demand(count["finish"] == total["finished"] and count["start"] == total["flows"], count)
    demand(count["pause"] == total["pauses"] and count["resume"] == total["resumes"], count)
    demand(len(trace_lines(path)[0]) == len(table), "text and csv differ")
    drops = [json.loads(line) for line in trace_lines(path, "--format", "json", *DROPS)[0]]
    demand(0 < len(drops) == sum(r["event"] == "drop" and r["node"] == "10" for r in table), drops)
    demand({row["name"] for row in drops} == {"s2"}, drops)
    told(["trace", path, "--trace-filter", "node=12"], USAGE, "'12' is too large; numbers up to 11")
    filtered, _ = fabric(scenario, "--trace", TRACE, *DROPS, status=STALLED)
    want = trace_lines(path, *DROPS)[0]
    demand(trace_lines(os.path.join(filtered, "trace"))[0] == want, "filtered at once, or later")
    little, _ = fabric(scenario, "--trace", TRACE, "--trace-mib", "1", *ALL, status=STALLED)
    path = os.path.join(little, "trace")
    lines, errors = trace_lines(path, "--format", "csv")
    kept = len(lines) - 1
    demand(kept > (3 << 18) // MOST_EVENT_BYTES and os.path.getsize(path) <= 1 << 20, kept)
    demand(f"{len(table) - kept} older events made way" in errors, errors)
    demand(list(csv.DictReader(lines)) == table[-kept:], "not the last events")


    usual, _ = fabric(scenario, "--trace", TRACE, status=STALLED)
    lines = trace_lines(os.path.join(usual, "trace"), "--format", "csv")[0]
    demand(list(csv.DictReader(lines)) == [r for r in table if r["event"] != "arrive"], "usual")


MOST_EVENT_BYTES = 24
ALL = ("--trace-filter", "kind=send+arrive+drop+mark+pause+resume+start+finish+fail+storm+down+up")
DROPS = ("--trace-filter", "kind=drop,node=s2")


def told(words, status, pattern):
    got, out, errors = e2e.run([e2e.VERBENA, "fabric", *words], 20)
    demand(got == status, f"exit code {got}, wanted {status}: {out}{errors}")
    demand(re.search(pattern, errors), f"no '{pattern}' in:\n{out}{errors}")


STAR = os.path.join(DATA, "mixed.yaml")
OUT = ["--out", os.path.join(folder.name, "refused")]
IMPORT = ["run", "--topology", os.path.join(DATA, "star16.txt"), "--flows"]
IMPORT += [os.path.join(DATA, "one_1MiB.txt"), "--profile"]
REFUSED = {
    "nothing": ([], USAGE, "no command given"),
    "unknown_command": (["walk"], USAGE, "'walk' is no command"),
    "no_out": (["run", STAR], USAGE, "--out DIR is missing"),
    "no_scenario": (["run", *OUT], USAGE, "no scenario"),
    "two_scenarios": (["run", STAR, STAR, *OUT], USAGE, "one scenario at a time"),
    "no_such_file": (["run", "no-such.yaml", *OUT], UNAVAILABLE, "no-such.yaml: No such file"),
    "set_without_value": (["run", STAR, "--set", "seed", *OUT], USAGE, "'seed' is not KEY=VALUE"),
    "set_unknown": (["run", STAR, "--set", "a.b=1", *OUT], UNAVAILABLE, "there is no field 'a'"),
    "set_of_another_kind": (
        ["run", STAR, "--set", "faults.2.at=1us", *OUT],
        UNAVAILABLE,
        "--set faults.2.at: there is no field 'at' with fault link-loss; expected: fault a b loss",
    ),
    "set_beyond_the_list": (
        ["run", STAR, "--set", "faults.3.at=1us", *OUT],
        UNAVAILABLE,
        "the list has 3, from faults.0 to faults.2",
    ),
    "set_wrong_unit": (
        ["run", STAR, "--set", "topology.rate=10GB", *OUT],
        UNAVAILABLE,
        "--set topology.rate: '10GB' is not a rate such as 100Gbps",
    ),
    "seed_wrong": (["run", STAR, "--seed", "x", *OUT], USAGE, "'x' is not a whole number"),
    "seed_too_large": (["run", STAR, "--seed", str(1 << 64), *OUT], USAGE, f"to {(1 << 64) - 1}"),
    "set_a_group": (
        ["run", STAR, "--set", "switches=3", *OUT],
        UNAVAILABLE,
        "--set switches: '3' cannot stand for fields",
    ),
    "topology_alone": (["run", *IMPORT[1:3], *OUT], USAGE, "go together"),
    "import_and_scenario": ([*IMPORT, "hpcc-compat", STAR, *OUT], USAGE, "not both"),
    "unknown_profile": ([*IMPORT, "htsim", *OUT], USAGE, "'htsim' is unknown"),
    "buffer_wrong": ([*IMPORT, "hpcc-compat", "--buffer-mib", "0", *OUT], USAGE, "from 1 to 4095"),
    "buffer_small": (
        ["run", STAR, "--set", "switches.buffer=300KB", *OUT],
        UNAVAILABLE,
        "switches.buffer: 300000 bytes are less than reserve and headroom",
    ),
    "cc_unknown": ([*IMPORT, "hpcc-compat", "--cc", "cubic", *OUT], USAGE, "'cubic' is unknown"),
    "hpcc_for_a_nic": (
        ["run", STAR, "--set", "hosts.nic=engine", "--set", "hosts.cc=hpcc", *OUT],
        UNAVAILABLE,
        "hosts.nic: none is expected with it",
    ),
    "cc_for_scenario": (["run", STAR, "--cc", "none", *OUT], USAGE, "for imports"),
    "bytes_of_nobody": (
        ["run", STAR, "--bytes", "--set", "hosts.nic=none", *OUT],
        UNAVAILABLE,
        "--bytes: these hosts have no",
    ),
    "trace_nothing": (["trace"], USAGE, "no file given"),
    "trace_of_none": (["trace", STAR], UNAVAILABLE, "mixed.yaml: it is no trace"),
    "trace_no_file": (["trace", "no-such"], UNAVAILABLE, "no-such: No such file"),
    "trace_format": (["trace", STAR, "--format", "xml"], USAGE, "'xml' is unknown, text, csv or"),
    "trace_filter_alone": (["run", STAR, "--trace-filter", "port=1", *OUT], USAGE, "want --trace"),
    "trace_filter_wrong": (
        ["run", STAR, "--trace", "/dev/null", "--trace-filter", "node=h99", *OUT],
        USAGE,
        "'h99' is no node",
    ),
    "trace_filter_priority": (
        ["run", STAR, "--trace", "/dev/null", "--trace-filter", "priority=9", *OUT],
        USAGE,
        "'9' is too large; numbers up to 8 are expected",
    ),
    "trace_filter_node": (
        ["run", STAR, "--trace", "/dev/null", "--trace-filter", "node=18", *OUT],
        USAGE,
        "'18' is too large; numbers up to 17 are expected",
    ),
    "trace_filter_port": (
        ["run", STAR, "--trace", "/dev/null", "--trace-filter", "port=7", *OUT],
        USAGE,
        "'7' is too large; numbers up to 6 are expected",
    ),
    "trace_mib": (["run", STAR, "--trace", "t", "--trace-mib", "0", *OUT], USAGE, "from 1 to"),
    "trace_nowhere": (["run", STAR, "--trace", "no/such/t", *OUT], UNAVAILABLE, "no/such/t: No such"),
    "trace_twice": (
        ["run", STAR, "--trace", os.path.join(OUT[1], "pfc.csv"), *OUT],
        UNAVAILABLE,
        "pfc.csv: another run writes it, or this one",
    ),
    "trace_full": (["run", STAR, "--trace", "/dev/full", *OUT], UNAVAILABLE, "No space left"),
    "watchdog_wrong": (
        [*IMPORT, "hpcc-compat", "--watchdog", "200ms", *OUT],
        USAGE,
        "'200ms' is not two times",
    ),
    "watchdog_long": (
        [*IMPORT, "hpcc-compat", "--watchdog", "9999999s,200ms", *OUT],
        USAGE,
        "'9999999s,200ms' is not two times such as 200ms,200ms, from 1us to 3600s",
    ),
    "restore_long": (
        [*IMPORT, "hpcc-compat", "--watchdog", "200ms,3600.1s", *OUT],
        USAGE,
        "from 1us to 3600s",
    ),
    "set_for_import": ([*IMPORT, "hpcc-compat", "--set", "a=1", *OUT], USAGE, "for scenarios"),
    "out_is_a_file": (["run", STAR, "--out", STAR], UNAVAILABLE, "mixed.yaml"),
}


def all_seeds():
    """To the last one that 64 bits hold, by the option as in the file."""
    last = str((1 << 64) - 1)
    outs = [fabric(STAR, *words)[0] for words in (["--seed", last], ["--set", "seed=" + last])]
    demand(all(summary(out)["seed"] == int(last) for out in outs), "not this seed")
    demand(len({fnv(os.path.join(out, "flows.csv")) for out in outs}) == 1, "not the same flows")


def longest_watchdog():
    """An hour, and no more (refused below)."""
    total = summary(imports("star16.txt", "one_1MiB.txt", "--watchdog", "3600s,3600s")[0])
    demand(total["finished"] == 1 and total["storms"] == 0, total)


def tree(place):
    """Every file and its bytes."""
    found = {}
    for base, _, names in os.walk(place):
        for name in names:
            with open(os.path.join(base, name), "rb") as data:
                found[os.path.join(base, name)] = data.read()
    return found


def refused_changes_nothing():
    """Whatever is refused, before or after the scenario is read: all files stay as they were."""
    out = tempfile.mkdtemp(dir=folder.name)
    trace = os.path.join(out, "trace")
    run = ["run", STAR, "--out", out, "--trace", trace]
    status, text, errors = e2e.run([e2e.VERBENA, "fabric", *run], 60)
    demand(status == 0, text + errors)
    before = tree(out)
    demand(len(before) >= 6 and trace in before, sorted(before))
    for more in (
        ["--set", "switches.buffer=300KB"],
        ["--set", "no.such=1"],
        ["--trace-filter", "node=h99"],
        ["--trace", os.path.join(out, "no", "such")],
        ["--trace", os.path.join(out, "summary.json")],
        ["--no-report", "--trace", "/dev/full"],
    ):
        status, text, errors = e2e.run([e2e.VERBENA, "fabric", *run, *more], 60)
        demand(status in (USAGE, UNAVAILABLE) and not text, f"{more}: {status} {text} {errors}")
        demand(tree(out) == before, f"{more}: files have changed")
    words = [*IMPORT, "hpcc-compat", "--flows", "no-such", "--out", out, "--trace", trace]
    status, text, errors = e2e.run([e2e.VERBENA, "fabric", *words], 60)
    demand(status == UNAVAILABLE and tree(out) == before, f"{status} {text} {errors}")
    demand(not os.path.exists(OUT[1]), "a folder was made for a run that was refused")


def disk_full():
    """No file may be larger than this: the trace cannot be written, the results are all there."""
    out = tempfile.mkdtemp(dir=folder.name)
    old = os.path.join(out, "trace")
    with open(old, "w", encoding="ascii") as text:
        text.write("old")
    limit = "trap '' XFSZ; ulimit -f 500; exec \"$@\""  # blocks of 512 or 1024 bytes
    words = ["run", STAR, "--no-report", "--out", out, *ALL, "--trace", old]
    command = ["sh", "-c", limit, "sh", e2e.VERBENA, "fabric", *words]
    status, text, errors = e2e.run(command, 60)
    demand(status == UNAVAILABLE and re.search("trace: File too large", errors), errors)
    demand("flows finished in" in text, text)
    demand(summary(out)["end"] == "finished" and len(rows(out, "flows.csv")) > 5, "no results")
    with open(old, encoding="ascii") as kept:
        demand(kept.read() == "old", "what was there is gone, for nothing")
    demand(not [name for name in os.listdir(out) if name.endswith(".part")], os.listdir(out))
    words[2:3] = []  # with a report, which is larger
    words[-len(ALL) - 2 :] = []
    limit = limit.replace("500", "60")
    status, text, errors = e2e.run(["sh", "-c", limit, "sh", e2e.VERBENA, "fabric", *words], 60)
    demand(status == UNAVAILABLE and "report.html: File too large" in errors, errors)
    demand(sorted(os.listdir(out)) == sorted([*FILES, "trace", "verbs.csv"]), os.listdir(out))


# No run of it ends while it is watched.
ENDLESS = (
    "topology: {shape: star, hosts: 4}\n"
    "workload: [{op: incast, to: h3, bytes: 1000GiB}]\n"
)


def stopped():
    """By a signal: nothing of the run is left, an earlier one's files are; twice would kill it."""
    scenario = os.path.join(tempfile.mkdtemp(dir=folder.name), "endless.yaml")
    with open(scenario, "w", encoding="ascii") as text:
        text.write(ENDLESS)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        out, _ = fabric(STAR)
        names = sorted(os.listdir(out))
        before = {name: fnv(os.path.join(out, name)) for name in names}
        words = ["run", scenario, "--out", out, "--trace", os.path.join(out, "trace")]
        run = subprocess.Popen(
            [e2e.VERBENA, "fabric", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        part = os.path.join(out, "trace.part")
        e2e.wait_until(lambda: os.path.exists(part) and os.path.getsize(part) > 1 << 20, 30)
        run.send_signal(number)
        _, errors = run.communicate(timeout=30)
        demand(run.returncode == -number, f"exit code {run.returncode}: {errors}")
        if number == signal.SIGKILL:
            break
        demand(b"stopped; nothing was written" in errors, errors)
        demand(sorted(os.listdir(out)) == names, os.listdir(out))
        demand({name: fnv(os.path.join(out, name)) for name in names} == before, "changed")
    # What a killed run leaves, the next one clears away, whatever it writes itself.
    left = [name for name in os.listdir(out) if name.endswith(".part")]
    demand({"trace.part", "verbs.csv.part", "flows.csv.part"} <= set(left), left)
    bare = ["--no-report", "--set", "hosts.nic=none"]
    status, text, errors = e2e.run([e2e.VERBENA, "fabric", "run", STAR, "--out", out, *bare], 60)
    demand(status == 0, text + errors)
    demand(sorted(os.listdir(out)) == sorted(FILES), os.listdir(out))


FUNCTIONS = (
    one_flow,
    incast_drains,
    congestion_control,
    congestion_control_of_engines,
    hpcc,
    ring,
    deadlock_of_links,
    verbs,
    trace,
    stopped,
)


def cases(tap):
    tap.run("refused_changes_nothing", refused_changes_nothing)
    tap.run("disk_full", disk_full)
    for name in EXAMPLES:
        tap.run("example_" + name.replace("-", "_"), example, name)
    tap.run("examples_are_all_here", examples_are_all_here)
    for function in FUNCTIONS:
        tap.run(function.__name__, function)
    tap.run("all_seeds", all_seeds)
    tap.run("longest_watchdog", longest_watchdog)
    bare = ["--set", "hosts.nic=none"]
    tap.run("same_bytes", same_bytes, "mixed.yaml", "mixed.fnv", *bare)
    tap.run("same_bytes_dcqcn", same_bytes, "mixed.yaml", "mixed-dcqcn.fnv")
    ztr = ["--set", "hosts.cc=ztr-target"]
    tap.run("same_bytes_ztr", same_bytes, "mixed.yaml", "mixed-ztr.fnv", *ztr)
    hpcc_bare = ["--set", "hosts.cc=hpcc", *bare]
    tap.run("same_bytes_hpcc", same_bytes, "mixed.yaml", "mixed-hpcc.fnv", *hpcc_bare)
    engine = ["--set", "hosts.cc=none"]
    tap.run("same_bytes_engine", same_bytes, "mixed.yaml", "mixed-engine.fnv", *engine)
    tap.run("same_bytes_verbs", lambda: same_bytes("verbs.yaml", "verbs.fnv", status=STALLED))
    for name, row in REPEATED.items():
        tap.run(name, repeated, *row)
    for name, row in BYTES.items():
        tap.run("same_with_bytes_" + name, same_with_bytes, *row)
    for name, (words, status, pattern) in REFUSED.items():
        tap.run("refused_" + name, told, words, status, pattern)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
