#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 480 s
"""`verbena lab`: experiments, several queue pairs; paths and experiments between two namespaces.

Nothing here judges a time.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import e2e
import test_lab
from e2e import Namespaces, Process, demand, wait_until
from test_lab import LIMIT_SECONDS, Server, lab

OPEN = ("last byte polled", "flag in a Write of its own, polled")


def experiments_of(out, names):
    record = json.loads(out)
    demand(record["verdict"]["passed"] and record["cases"] == [], out[-2000:])
    found = {x["name"]: x for x in record["experiments"]}
    demand(set(found) == set(names), f"{found.keys()}, wanted {names}")
    for name, x in found.items():
        demand(x["passed"] and x["summary"] and x["about"], f"{x}")
        demand(any(name in f for f in record["verdict"]["findings"]), "no finding")
        for trial in x["trials"]:
            check_trial(trial)
    return found


def check_trial(trial):
    if trial["source"]["counts"].get("given_up") == 1 and trial["rounds"] == 0:
        return  # a busy machine: the writer was never at rest for long enough; the summary tells
    demand(trial["rounds"] > 0 and trial["elapsed_ns"] > 0, f"nothing done: {trial}")
    demand(trial["source"]["rounds"] == trial["rounds"], f"{trial}")
    demand(trial["proves"] and trial["not"], "a trial proves nothing")
    if "latency" in trial:
        demand(trial["latency"]["samples"] == trial["rounds"], f"{trial['latency']}")
    else:
        demand(trial["gbps"] > 0, f"no figure: {trial}")


def torn_is_seen(x):
    """Plain Reads are torn, each of two versions that the far application wrote; with the lock none
    is."""
    torn = []
    for trial in x["trials"]:
        counts = trial["source"]["counts"]
        demand(counts["corrupt"] == 0, f"{trial}")
        demand(counts["whole"] + counts["torn"] == trial["rounds"], f"{trial}")
        if trial["variant"] == "plain Read":
            torn.append(counts["torn"])
            demand(("first" in trial["source"]) == (counts["torn"] > 0), f"{trial}")
        else:
            demand(counts["torn"] == 0, f"{trial}")
        if trial["variant"] == "with a sequence lock":
            tried = counts["tries"] - counts["retried_locked"] - counts["retried_changed"]
            demand(tried == trial["rounds"], f"{trial}")
            demand(trial["rounds"] > 0 or "none was delivered" in x["summary"], x["summary"])
    demand(torn.count(0) == x["summary"].count("none this time"), f"{torn} torn: {x['summary']}")
    return any(torn)


def torn_is_seen_at_last(x, again):
    """On a busy machine the two ends may take turns, so that no Read meets a Write in one run: then
    there is another one. again: makes it."""
    wait_until(lambda: torn_is_seen(x) or torn_is_seen(again()), 60, "a torn Read")


def flags_are_told(x, variants=7):
    demand(len({t["variant"] for t in x["trials"]}) == variants, f"{x['trials']}")
    for trial in x["trials"]:
        for side in ("source", "target"):
            counts = trial[side]["counts"]
            early = counts["told_before_data"]
            demand(counts["whole"] + early == trial["rounds"], f"{trial}")
            demand(early == 0 or trial["variant"] in OPEN, f"told before its data: {trial}")


def torn_again():
    out, _ = lab("experiment", "torn", "--json", "-")
    return experiments_of(out, ["torn"])["torn"]


def experiments():
    out, _ = lab("experiment", "--json", "-")
    found = experiments_of(out, ["torn", "flag"])
    torn_is_seen_at_last(found["torn"], torn_again)
    flags_are_told(found["flag"])
    demand({t["size"] for t in found["flag"]["trials"]} == {64, 4096}, "sizes")


def experiment_sizes():
    out, _ = lab("experiment", "flag", "--size", "2,100", "--iterations", "50", "--json", "-")
    flags_are_told(experiments_of(out, ["flag"])["flag"])


def bare():
    out, _ = lab("experiment", "bare", "--iterations", "100", "--json", "-")
    trials = experiments_of(out, ["bare"])["bare"]["trials"]
    got = sorted((t["variant"].split()[0], t["size"]) for t in trials)
    wanted = [(op, size) for op in ("write", "send", "read") for size in (8, 4096, 65536)] * 2
    demand(got == sorted(wanted + [("atomic", 8)]), f"{got}")
    for t in trials:  # the settings that others must have, to be compared
        streams = "throughput" in t["variant"]
        got = [t[name] for name in ("depth", "signal_every", "inline_bytes")]
        demand(got == [64 if streams else 1, 16 if streams else 1, 8 if t["size"] == 8 else 0], f"{t}")
        got = [t[name] for name in ("mtu_bytes", "outstanding_reads")]
        demand(got == [4096, 16] and t["receives"] > t["depth"], f"{t}")


def slow_path(delay, timeout):
    """Where three Reads take longer than the writer rests, it ends all the same, and says so; no
    trial lasts much longer than half a second and the time without a round."""
    words = ["experiment", "torn", "--size", "4096", "--timeout", timeout, "--json", "-"]
    out, _ = lab(*words, options=["--fault", f"delay={delay}"])
    (x,) = json.loads(out)["experiments"]
    (locked,) = [t for t in x["trials"] if t["variant"] == "with a sequence lock"]
    counts = locked["source"]["counts"]
    gave_up = counts["given_up"] == 1
    tried = counts["tries"] - counts["retried_locked"] - counts["retried_changed"]
    demand(tried == locked["rounds"] and gave_up + locked["rounds"] > 0, f"{locked}")
    said = "with a sequence lock none was delivered in" in x["summary"]
    demand(said == (locked["rounds"] == 0) and x["passed"], x["summary"])
    return locked["rounds"]


def slow_paths():
    slow_path("30ms", "2s")
    demand(slow_path("300ms", "1500ms") == 0, "three Reads of 600 ms within 800 ms of rest")


def many_torn_sizes():
    """Each of so many sizes is tried once, judged and told of."""
    sizes = [64 + 8 * i for i in range(12)]
    listed = ",".join(map(str, sizes)) + ",65"  # made 64, which is there
    out, _ = lab("experiment", "torn", "--iterations", "20", "--size", listed, "--json", "-")
    x = experiments_of(out, ["torn"])["torn"]
    demand(x["sizes"] == sizes and len(x["trials"]) == 3 * len(sizes), f"{x['sizes']}")
    demand(all(f"of {size} bytes, " in x["summary"] for size in sizes), x["summary"])


def beside_cases():
    """`lab local` does cases, then experiments; one record and one report have both."""
    words = ["local", *test_lab.QUICK, "--op", "write", "--size", "64", "--depth", "1"]
    out, err = lab(*words, "--experiment", "torn,flag")
    for text in ("write + application ack", "Experiment torn.", "Verdict of flag: ",
                 "does not prove", "Verdict: passed"):
        demand(text in out, f"no '{text}' in:\n{out}")
    demand(err == "", err)


def numa():
    """Near and far are cases of their own, or where there is one node, one, and it is said."""
    nodes = [n for n in os.listdir("/sys/devices/system/node") if re.fullmatch(r"node\d+", n)] \
        if os.path.isdir("/sys/devices/system/node") else ["node0"]
    words = ["--op", "write,read", "--size", "4KiB", "--depth", "2", "--numa"]
    record = test_lab.local(*words, "any,near,far", "--qps", "1,2")
    said = any("one NUMA node" in f for f in record["verdict"]["findings"])
    demand(said == (len(nodes) == 1), f"{nodes}: {record['verdict']['findings']}")
    places = ["any", "near"] if said else ["any", "near", "far"]
    found = sorted((c["op"], c.get("numa", "any"), c.get("qps", 1)) for c in record["cases"])
    wanted = [(op, p, q) for op in ("write", "read") for p in places for q in (1, 2)]
    demand(found == sorted(wanted + [("tcp", p, 1) for p in places]), f"{found}")
    for case in record["cases"]:
        test_lab.check_data(case)


def bound(pid):
    """Has the process memory that is bound to a node?"""
    try:
        with open(f"/proc/{pid}/numa_maps", encoding="ascii") as file:
            return any(" bind:" in line for line in file)
    except (FileNotFoundError, ProcessLookupError):
        return None


def numa_is_over():
    """Experiments are where memory happens to be, whatever the cases before asked for."""
    if bound(os.getpid()) is None:
        raise e2e.Skip("the kernel knows nothing of NUMA")
    words = ["--op", "write", "--size", "4KiB", "--depth", "1", "--baseline", "off", "--iterations",
             "5000", "--numa", "near", "--experiment", "torn"]
    with Process([e2e.VERBENA, "lab", "local", *words]) as process:
        (target,) = wait_until(lambda: test_lab.children(process.pid), 20, "the target's process")
        for pid in (process.pid, target):
            wait_until(lambda p=pid: bound(p), 20, "slots near the device")
        for pid in (process.pid, target):
            free = wait_until(lambda p=pid: bound(p) is not True, 60, "them to be anywhere")
            demand(free and process.popen.poll() is None, "bound to the end")
        demand(process.wait(60) == 0, process.both())


def on_terminal(command, env=None):
    """What is said to a terminal that is the standard error, without what is on standard output."""
    mine, theirs = os.openpty()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                               stderr=theirs, env=dict(os.environ, **(env or {})))
    os.close(theirs)
    said = b""
    try:
        while chunk := os.read(mine, 65536):
            said += chunk
    except OSError:
        pass  # the last who had it open has ended
    os.close(mine)
    return process.wait(LIMIT_SECONDS), said.decode()


def progress(command, steps, *names):
    """Every step is told once, in its order, as one of so many; nothing of it stays."""
    status, said = on_terminal(command)
    demand(status == 0, said)
    told = [(int(i), int(n), what) for i, n, what in re.findall(r"\] (\d+)/(\d+) ([^\r]*)", said)]
    demand([t[0] for t in told] == list(range(steps)), f"{told}")
    demand({t[1] for t in told} == {steps}, f"{told}")
    demand(all(any(name in t[2] for t in told) for name in names), f"{told}")
    demand(said.endswith("\r\033[K"), repr(said[-100:]))


def progress_of_experiments():
    words = ["--iterations", "5", "--timeout", "20s"]
    lab_ = [e2e.VERBENA, "lab"]
    progress([*lab_, "experiment", *words], 2 * 3 + 2 * 7, "torn: plain Read, 65536 bytes",
             "flag: Send behind the Write, asleep until then, 64 bytes")
    progress([*lab_, "experiment", "bare", *words], 3 * 6 + 1, "bare: atomic latency, 8 bytes")
    progress([*lab_, "local", *words, "--op", "write", "--size", "64", "--depth", "1,2",
              "--experiment", "torn"], 4 + 2 * 3, "write of 64 bytes at depth 2", "torn: at rest")
    _, err = lab("experiment", *words)
    demand(err == "", err)


def beside_perftest():
    """Each operation measured by both in the same run, with settings that both say to be the same
    (else the script fails, see tests/house/test_bench_lab.py); the ratios are told, and nothing is
    made of them: see ./run bench-lab."""
    if not shutil.which("ib_write_lat"):
        raise e2e.Skip("no perftest here")
    script = os.path.join(e2e.ROOT, "scripts", "bench_lab.py")
    command = [script, "--verbena", e2e.VERBENA, "--rounds", "1", "--iterations", "300"]
    status, out, err = e2e.run(command, LIMIT_SECONDS)
    demand(status == 0, out + err)
    rows = re.findall(r"^(\w+ (?:latency|throughput)) +(\d+) +(?:us|Gbit/s) (.*)$", out, re.MULTILINE)
    demand(len(rows) == 13, out)
    figures = [row[2].split() for row in rows]  # lab, spread, perftest, spread, ratio, agree
    demand(all(float(f[i]) > 0 for f in figures for i in (0, 2, 4)), out)
    told = (f"{row[0]} {row[1]} B {f[4]}" for row, f in zip(rows, figures))
    return "lab / perftest: " + ", ".join(told)


def usage():
    for words, says in (
        (["experiment", "fly"], "experiment: 'fly' is none of none, torn, flag, bare"),
        (["experiment", "none"], "--experiment: none leaves nothing to do"),
        (["experiment", "--experiment", "none"], "--experiment: none leaves nothing to do"),
        (["experiment", "--op", "read"], "unrecognized option"),
        (["local", "--experiment", "flag", "--slots", "4", "--depth", "1"], "with 8 slots"),
        (["experiment", "--peer", "127.0.0.1"], "--key: is missing"),
        (["local", "--qps", "5", "--depth", "16"], "80 messages under way need as many slots"),
        (["local", "--threads", "2"], "--threads: 2 does not go with these queue pairs"),
        (["local", "--qps", "1,2", "--threads", "2"], "--qps: 1 does not go with these threads"),
        (["local", "--qps", "2", "--wait", "event"], "each queue pair has a thread of its own"),
        (["local", "--qps", "33"], "--qps: 33 is too large"),
        (["path", "--peer", "127.0.0.1"], "--key: is missing"),
        (["local", "--experiment", "torn", "--transport", "uc"], "experiment: is for transport rc"),
    ):
        _, err = lab(*words, status=64)
        demand(says in err, f"{words}: {err}")


def queue_pairs(*words, ops=tuple(test_lab.RC_OPS), qps=(3,), threads=(1,)):
    """Each queue pair has its messages, every byte of them right, and figures of its own."""
    record = test_lab.local("--op", ",".join(ops), "--size", "64,4KiB", "--depth", "4", "--qps",
                            ",".join(map(str, qps)), "--threads", ",".join(map(str, threads)),
                            *words)
    teams = [(q, t) for q in qps for t in threads if t <= q]
    found = [(c["op"], c["size"], c.get("qps", 1), c.get("threads", 1)) for c in record["cases"]]
    wanted = [(op, size, q, t) for op in ops for size in (64, 4096) for q, t in teams]
    wanted = [w for w in wanted if w[0] != "atomic"]
    wanted += [("atomic", 8, q, t) for q, t in teams if "atomic" in ops]
    wanted += [("tcp", size, 1, 1) for size in (64, 4096)]
    demand(sorted(found) == sorted(wanted), f"{found}, wanted {wanted}")
    for case in record["cases"]:
        test_lab.check_data(case)
        each = case.get("queue_pairs", [])
        demand(len(each) == case.get("qps", 0), f"{each}")
        demand(not each or sum(p["messages"] for p in each) == case["messages"], f"{each}")
        demand(all(p["gbps"] > 0 and p["elapsed_ns"] <= case["elapsed_ns"] for p in each), f"{each}")
        for side in ("source", "target"):
            demand(case[side]["threads"] == case.get("threads", 1), f"{case[side]}")
        for measure in case["measures"]:
            test_lab.check_measure(case, measure)


def queue_pairs_lossy(transport):
    """What is lost of one queue pair is sent again by it, and nothing is missing in the end."""
    options = ["--fault", "drop=5%,seed=7"]
    words = ["--transport", transport, "--size", "1KiB", "--depth", "4", "--qps", "3", "--op", "send"]
    record = test_lab.local(*words, "--retry", "5ms", "--baseline", "off", options=options)
    (case,) = record["cases"]
    test_lab.check_data(case)
    again = case["source"]["resent"]
    if transport == "rc":
        again = case["source"].get("counters", {}).get("retransmitted_packets", 0)
        again += case["target"].get("counters", {}).get("retransmitted_packets", 0)
    demand(again > 0, f"nothing was sent again: {case}")


def queue_pairs_planted():
    """A fault of each queue pair is found at its own place."""
    record = test_lab.local("--op", "write", "--size", "64", "--depth", "2", "--qps", "3", "--plant",
                            "wrong-data", "--baseline", "off", status=2)
    (case,) = record["cases"]
    demand(case["target"]["data"]["corrupt"] == 3, f"{case['target']}")
    demand("3 queue pairs on 1 threads: 3 messages" in record["verdict"]["findings"][0], f"{record}")
    _, err = lab("local", *test_lab.QUICK, "--op", "write", "--size", "64", "--depth", "2", "--qps",
                 "3", "--plant", "early-reuse", "--baseline", "off", status=69)
    demand("queue pair" in err and "reuse before the acknowledgement" in err, err)


def queue_pairs_killed(which):
    with Server() as server:
        words = ["--qps", "4", "--threads", "2"]
        with Process(test_lab.run(server.port, *test_lab.ENDLESS, *words)) as source:
            wait_until(lambda: test_lab.busy(source) and test_lab.busy(server.process), 20, "work")
            ends = {"source": source, "target": server.process}
            os.kill(ends.pop(which).pid, signal.SIGKILL)
            (other,) = ends.values()
            status = other.wait(30)
            text = other.both()
            demand(status == 69 and "the peer is gone while running" in text, f"{status}\n{text}")


def across(net, *words):
    """The record of a command of the second namespace, with `lab serve` in the first."""
    a, b = (["ip", "netns", "exec", name] for name in net.names)
    with Server(inside=a) as server:
        command = [*b, e2e.VERBENA, "lab", *words, "--peer", net.V4[0], "--key", test_lab.key(),
                   "--port", str(server.port), "--timeout", "20s", "--json", "-"]
        status, out, err = e2e.run(command, LIMIT_SECONDS)
        demand(status == 0, out + err)
        server.ends(0)
    return out


def experiments_across(net):
    words = ("experiment", "--iterations", "300")

    def again():
        return experiments_of(across(net, *words, "--experiment", "torn"), ["torn"])["torn"]

    found = experiments_of(across(net, *words), ["torn", "flag"])
    torn_is_seen_at_last(found["torn"], again)
    flags_are_told(found["flag"])


def path_across(net, transport):
    """Each step at the end and by the clock where it was taken, each after its cause."""
    out = across(net, "path", "--transport", transport, "--size", "1KiB")
    test_lab.walks(transport, out, 2)
    for case in json.loads(out)["cases"]:
        demand(case["path"]["packets"], "no packets")


def namespaces(tap):
    try:
        with Namespaces(1500) as net:
            tap.run("netns_experiments", experiments_across, net)
            for transport in ("rc", "uc", "ud"):
                tap.run(f"netns_path_{transport}", path_across, net, transport)
    except e2e.Skip as reason:
        tap.say("ok", "netns", f" # SKIP {reason}")


def cases(tap):
    one = tap.run
    one("experiments", experiments)
    one("experiment_sizes", experiment_sizes)
    one("many_torn_sizes", many_torn_sizes)
    one("slow_paths", slow_paths)
    one("bare", bare)
    one("beside_cases", beside_cases)
    one("numa", numa)
    one("numa_is_over", numa_is_over)
    one("progress_of_experiments", progress_of_experiments)
    one("beside_perftest", beside_perftest)
    one("usage", usage)
    one("queue_pairs", queue_pairs, qps=(1, 3))
    one("queue_pairs_threads", queue_pairs, "--wait", "event", qps=(2,), threads=(2,))
    one("queue_pairs_uc", queue_pairs, "--transport", "uc", ops=("write", "write-imm", "send"))
    one("queue_pairs_cm", queue_pairs, "--connect", "cm", ops=("write", "read"))
    one("queue_pairs_selective", queue_pairs, "--signal-every", "16", ops=("write", "send"))
    for transport in ("rc", "uc", "ud"):
        one(f"queue_pairs_lossy_{transport}", queue_pairs_lossy, transport)
    one("queue_pairs_planted", queue_pairs_planted)
    for which in ("source", "target"):
        one(f"case_138__killed_{which}_of_many", queue_pairs_killed, which)
    namespaces(tap)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
