# SPDX-License-Identifier: BSD-2-Clause
"""`verbena lab` in the guest of test_kernel_peer.py: on the kernel's soft-RoCE rxe0 with Debian's
own libibverbs, so on a device and a library that are not ours.
"""

import json
import os
import shutil

import e2e
from e2e import demand

LIMIT_SECONDS = 120
QUICK = "--iterations 10 --warmup 2 --timeout 60s"
# The guest's own: its C library, and the RDMA libraries, which are what is to be tried.
GUESTS = ("libc.so", "libibverbs.so", "librdmacm.so", "libnl-")


def provide(guest):
    """The programs, and the libraries that they need but the guest may not have."""
    folder = os.path.join(guest.share, "lab")
    os.makedirs(folder, exist_ok=True)
    for name in ("verbena", "verbena-lab"):
        shutil.copy(os.path.join(e2e.BUILD, name), folder)
    status, text, errors = e2e.run(["ldd", e2e.VERBENA, os.path.join(e2e.BUILD, "verbena-lab")], 30)
    demand(status == 0, errors)
    for line in text.splitlines():
        words = line.split()
        if len(words) > 2 and words[1] == "=>" and not words[0].startswith(GUESTS):
            shutil.copy(words[2], folder)


def lab(guest, words):
    """What a run in the guest printed."""
    return guest.start(f"env LD_LIBRARY_PATH=/mnt/lab /mnt/lab/verbena lab {words}").expect(
        LIMIT_SECONDS)


def record(guest, words):
    lab(guest, f"{words} --json /tmp/lab.json")
    return json.loads(guest.start("cat /tmp/lab.json").expect())


def good(told):
    demand("error" not in told and told["verdict"]["passed"], f"{told.get('verdict')}")
    for side in ("source", "target"):
        demand(told[side]["device"] == "rxe0" and told[side]["nic"] == "another", f"{told[side]}")
    for case in told["cases"]:
        reader = case["source" if case["op"] == "read" else "target"]
        wanted = 0 if case["op"] == "atomic" else case["messages"] + case["warmup"]
        bad = {k: v for k, v in reader["data"].items() if k != "good" and v}
        demand(reader["data"]["good"] == wanted and not bad, f"{case['op']}: {reader['data']}")


def sweep(guest):
    text = lab(guest, f"local {QUICK} --size 64,4KiB --depth 1,4")
    for words in ("device rxe0 (not Verbena's NIC)", "write + application ack", "atomic",
                  "Verdict: passed"):
        demand(words in text, f"no '{words}' in:\n{text}")


def events(guest):
    told = record(guest, f"local {QUICK} --wait event --size 64,64KiB --depth 4")
    good(told)
    ops = {case["op"] for case in told["cases"]}
    demand(ops == {"tcp", "write", "write-imm", "read", "send", "atomic"}, f"{ops}")


def by_cm(guest):
    good(record(guest, f"local {QUICK} --connect cm --wait event --op write,read --size 4KiB"))


def unreliable(guest, transport):
    """Not the last word of each is on time here: what is sent again is no fault."""
    good(record(guest, f"local {QUICK} --transport {transport} --wait event --size 1KiB --retry 1s"))


def path(guest):
    """No packets are known of a NIC that is not ours; all that the API shows is there, in order."""
    text = lab(guest, "path --op write,read --size 4KiB --timeout 60s")
    for words in ("The path of one write of 4096 bytes over rc", "The path of one read of",
                  "Packets are not shown: this NIC writes no capture", "polls the completion",
                  "has the far application's acknowledgement", "does not prove:"):
        demand(words in text, f"no '{words}' in:\n{text}")
    demand("RDMA WRITE" not in text and "PSN" not in text, text)


def far(guest):
    """The guest's memory is in two nodes: what is to be far from its CPU is bound to the second."""
    told = record(guest, f"local {QUICK} --wait event --op write --size 4KiB --depth 1 --numa near,far")
    good(told)
    cases = [case["numa"] for case in told["cases"] if case["op"] == "write"]
    demand(cases == ["near", "far"], f"{cases}")
    job = guest.start("env LD_LIBRARY_PATH=/mnt/lab /mnt/lab/verbena lab local --wait event --op write "
                      "--iterations 1000 --size 4KiB --depth 1 --numa far --timeout 60s")
    look = "for p in /proc/[0-9]*; do grep -q verbena $p/comm && grep bind:1 $p/numa_maps; done 2>/dev/null; true"
    bound = ""
    while bound == "" and not job.ended():
        bound = guest.start(look, lane="server").expect(LIMIT_SECONDS).strip()
    demand(job.wait(LIMIT_SECONDS) == 0, job.text())
    demand(bound != "", f"no slots are bound to node 1: {job.text()}")
    demand(all("N1=" in line and "N0=" not in line for line in bound.splitlines()), bound)


def experiments(guest):
    """What they teach, of a NIC that is not ours: no lock lets torn content through."""
    told = record(guest, "experiment torn --iterations 10 --size 4KiB --timeout 60s")
    torn = told["experiments"][0]
    demand(told["verdict"]["passed"] and torn["passed"] and torn["summary"], f"{told['verdict']}")
    for trial in torn["trials"]:
        counts = trial["source"]["counts"]
        demand(counts["corrupt"] == 0, f"{trial}")
        demand(trial["variant"] == "plain Read" or counts["torn"] == 0, f"{trial}")


def planted(guest):
    job = guest.start("env LD_LIBRARY_PATH=/mnt/lab /mnt/lab/verbena lab local --wait event "
                      f"--op write,read {QUICK} --size 64 --depth 1 --plant stale-data --slots 4")
    status = job.wait(LIMIT_SECONDS)
    demand(status == 2 and "WRONG DATA" in job.text() and "stale" in job.text(), job.text())


def cases(run, guest):
    """run(name, function, ...) reports each."""
    run("lab_provide", provide, guest)
    run("lab_sweep", sweep, guest)
    run("lab_events", events, guest)
    run("lab_cm", by_cm, guest)
    run("lab_uc", unreliable, guest, "uc")
    run("lab_ud", unreliable, guest, "ud")
    run("lab_path", path, guest)
    run("lab_far", far, guest)
    run("lab_experiments", experiments, guest)
    run("lab_planted", planted, guest)
