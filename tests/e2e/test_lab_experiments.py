#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""`verbena lab`: experiments and paths, here and between two namespaces.

Nothing here judges a time.
"""

import json
import sys

import e2e
import test_lab
from e2e import Namespaces, demand
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
    torn = 0
    for trial in x["trials"]:
        counts = trial["source"]["counts"]
        demand(counts["corrupt"] == 0, f"{trial}")
        demand(counts["whole"] + counts["torn"] == trial["rounds"], f"{trial}")
        if trial["variant"] == "plain Read":
            torn += counts["torn"]
            demand(("first" in trial["source"]) == (counts["torn"] > 0), f"{trial}")
        else:
            demand(counts["torn"] == 0, f"{trial}")
        if trial["variant"] == "with a sequence lock":
            tried = counts["tries"] - counts["retried_locked"] - counts["retried_changed"]
            demand(tried == trial["rounds"], f"{trial}")
    demand(torn > 0, f"no Read was torn: {x['summary']}")


def flags_are_told(x, variants=7):
    demand(len({t["variant"] for t in x["trials"]}) == variants, f"{x['trials']}")
    for trial in x["trials"]:
        for side in ("source", "target"):
            counts = trial[side]["counts"]
            early = counts["told_before_data"]
            demand(counts["whole"] + early == trial["rounds"], f"{trial}")
            demand(early == 0 or trial["variant"] in OPEN, f"told before its data: {trial}")


def experiments():
    out, _ = lab("experiment", "--json", "-")
    found = experiments_of(out, ["torn", "flag"])
    torn_is_seen(found["torn"])
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


def beside_cases():
    """`lab local` does cases, then experiments; one record and one report have both."""
    words = ["local", *test_lab.QUICK, "--op", "write", "--size", "64", "--depth", "1"]
    out, err = lab(*words, "--experiment", "torn,flag")
    for text in ("write + application ack", "Experiment torn.", "Verdict of flag: ",
                 "does not prove", "Verdict: passed"):
        demand(text in out, f"no '{text}' in:\n{out}")
    demand(err == "", err)


def usage():
    for words, says in (
        (["experiment", "fly"], "experiment: 'fly' is none of none, torn, flag, bare"),
        (["experiment", "--op", "read"], "unrecognized option"),
        (["local", "--experiment", "flag", "--slots", "4", "--depth", "1"], "with 8 slots"),
        (["experiment", "--peer", "127.0.0.1"], "--key: is missing"),
        (["path", "--peer", "127.0.0.1"], "--key: is missing"),
        (["local", "--experiment", "torn", "--transport", "uc"], "experiment: is for transport rc"),
    ):
        _, err = lab(*words, status=64)
        demand(says in err, f"{words}: {err}")


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
    found = experiments_of(across(net, "experiment"), ["torn", "flag"])
    torn_is_seen(found["torn"])
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
    one("bare", bare)
    one("beside_cases", beside_cases)
    one("usage", usage)
    namespaces(tap)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
