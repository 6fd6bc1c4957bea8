#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 900 s
"""`verbena lab`: local and between two namespaces, its detectors, thresholds and errors.

Nothing here judges a time. Every run must end by itself, with both of its processes.
"""

import functools
import json
import os
import re
import signal
import socket
import struct
import sys
import tempfile

import e2e
from e2e import Failed, Namespaces, Process, demand, wait_until

QUICK = ["--iterations", "40", "--warmup", "10", "--timeout", "20s"]
LIMIT_SECONDS = 100
RC_OPS = ["write", "write-imm", "read", "send", "atomic"]
MEASURES = {
    "write": ["write completion", "write + application ack"],
    "write-imm": ["write with immediate completion", "write with immediate + application ack"],
    "read": ["read"],
    "send": ["send completion", "send + application ack"],
    "atomic": ["atomic"],
    "tcp": ["tcp + application ack"],
}


@functools.cache
def scratch():
    """Made when first asked for: the script may start itself anew before."""
    return tempfile.TemporaryDirectory(prefix="test-lab-")


def folder():
    return scratch().name


def lab(*words, options=(), env=None, status=0):
    """stdout and stderr of a run that must end with this exit code."""
    command = [e2e.VERBENA, "lab", *words]
    if options:
        command = e2e.on_nic(*command, options=options)
    got, out, err = e2e.run(command, LIMIT_SECONDS, env=env)
    demand(got == status, f"exit code {got}, wanted {status}: {' '.join(command)}\n{err}{out[-1500:]}")
    return out, err


def local(*words, status=0, **kwargs):
    """The record of a local run."""
    out, _ = lab("local", *QUICK, "--json", "-", *words, status=status, **kwargs)
    record = json.loads(out)
    if status == 0:
        demand("error" not in record and record["verdict"]["passed"], out[-2000:])
    return record


def right(record, ops, sizes, depths, tcp=True):
    """Each case is there once, with each measure of its operation, and its data were good."""
    wanted = [(op, size, depth) for op in ops for size in sizes for depth in depths]
    wanted = [w for w in wanted if w[0] != "atomic" or w[1] == sizes[0]]
    wanted = [(op, 8 if op == "atomic" else size, depth) for op, size, depth in wanted]
    wanted += [("tcp", size, depth) for size in sizes for depth in depths] if tcp else []
    got = [(c["op"], c["size"], c["depth"]) for c in record["cases"]]
    demand(sorted(got) == sorted(wanted), f"cases {got}, wanted {wanted}")
    for case in record["cases"]:
        names = [m["name"] for m in case["measures"]]
        demand(names == MEASURES[case["op"]], f"{case['op']} has {names}")
        for measure in case["measures"]:
            check_measure(case, measure)
        check_data(case)
        demand(case["gbps"] > 0 and case["elapsed_ns"] > 0, f"no throughput: {case}")
        if tcp and case["op"] not in ("tcp", "atomic"):
            demand(case["throughput_ratio_tcp"] >= 0, "no ratio to TCP")
            demand(case["throughput_ratio_memcpy"] >= 0, "no ratio to memcpy")


def check_measure(case, measure):
    samples = sum(count for _, count in measure["histogram_ns"])
    demand(samples == measure["samples"], f"{samples} in the histogram: {measure['name']}")
    demand(0 < samples <= case["messages"], f"{samples} samples of {case['messages']}")
    points = [measure[name] for name in ("min_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns")]
    demand(points == sorted(points) and points[0] > 0, f"{measure['name']}: {points}")
    demand(points[0] <= measure["mean_ns"] <= points[-1], f"mean of {measure['name']}")
    demand(measure["starts"] and measure["stops"] and measure["clock"] == "source", "no clock told")


def check_data(case):
    """Whoever gets the data has looked at each message, and found all of them good."""
    reader = case["source" if case["op"] == "read" else "target"]
    good = 0 if case["op"] == "atomic" else case["messages"] + case["warmup"]
    bad = {k: v for k, v in reader["data"].items() if k != "good" and v}
    demand(reader["data"]["good"] == good and not bad, f"{case['op']}: {reader['data']}")
    demand(reader["wrong_atomics"] == 0, "wrong atomics")


def every_operation():
    record = local("--size", "64,4KiB", "--depth", "1,4")
    right(record, RC_OPS, [64, 4096], [1, 4])
    for side in ("source", "target"):
        demand(record[side]["device"] == "vb_lo", f"{side}: {record[side]}")
        for case in record["cases"]:
            idle = side == "target" and case["op"] == "atomic"
            demand(idle or sum(case[side]["parts_ns"].values()) > 0, f"no time of {side} told")
    demand([m["size"] for m in record["memcpy"]] == [64, 4096], f"memcpy: {record['memcpy']}")
    for m in record["memcpy"]:
        bare = 8 * m["size"] / m["ns"]
        demand(isinstance(m["ns"], float) and abs(m["gbps"] - bare) < 0.01 * bare, f"{m}")


def text_report():
    out, err = lab("local", *QUICK, "--op", "write", "--size", "4KiB", "--depth", "1")
    for text in ("write + application ack", "tcp + application ack", "starts before", "Verdict:"):
        demand(text in out, f"no '{text}' in:\n{out}")
    demand(err == "", f"stderr: {err}")


def many_sizes(*words, sizes="2,31,32,33,1KiB,65537,1MiB,8MiB", op="write,write-imm,read,send"):
    words = [*words, "--op", op, "--slots", "4", "--baseline", "off", "--size", sizes]
    record = local(*words, "--depth", "2", "--iterations", "6", "--warmup", "2")
    got = {c["size"] for c in record["cases"]}
    demand(len(got) == len(sizes.split(",")), f"sizes {got}")
    for case in record["cases"]:
        check_data(case)


def odd_slots():
    """Slots of any size have an aligned word for atomics behind them."""
    for words in (["--slots", "1", "--slot-bytes", "4099"], ["--slots", "3", "--slot-bytes", "65"],
                  ["--slots", "6", "--slot-bytes", "67", "--qps", "3"]):
        record = local(*words, "--size", "64", "--depth", "1", "--op", "write,atomic",
                       "--baseline", "off")
        demand([c["op"] for c in record["cases"]] == ["write", "atomic"], f"{words}")


def one_slot():
    """What memcpy takes is that of a copy, though there is one slot only."""
    record = local("--slots", "1", "--size", "1MiB", "--depth", "1", "--op", "write")
    copy = record["memcpy"][0]
    demand(copy["ns"] > 1000, f"1 MiB cannot be copied in so short a time: {copy}")


def offsets():
    """Wherever in its slot a message begins, and whatever its length, every byte is right."""
    record = local("--offset", "0,1,63", "--size", "67,4097", "--depth", "2", "--buffers",
                   "direct,bounce", "--op", "write,read,send,atomic")
    # TCP, read and both ways of write and send, for two sizes and three offsets; one for atomics.
    demand(len(record["cases"]) == 6 * 2 * 3 + 1, f"{len(record['cases'])} cases")
    for case in record["cases"]:
        check_data(case)
    got = {(c["op"], c["size"], c["offset"]) for c in record["cases"] if c["op"] != "atomic"}
    demand(len(got) == 4 * 2 * 3, f"{got}")


def selective(transport, every, depth):
    """Case 134: however rarely a completion is asked for, there is one in each window."""
    record = local("--op", "write,read,send" if transport == "rc" else "write,send", "--size", "64",
                   "--baseline", "off", "--transport", transport, "--signal-every", str(every),
                   "--retry", "5s",
                   "--depth", str(depth), "--warmup", "3", "--iterations", "50")
    for case in record["cases"]:
        done = case["measures"][0]["samples"]
        each = min(every, depth)
        demand(abs(done - 50 / each) <= 2, f"{done} completions of 50, one in {each}")
        demand(case["measures"][-1]["samples"] in (50, done), "not every message was acknowledged")


WAYS = {"direct": None, "bounce": "copy", "gather": None, "temporary": "copy", "pool": "copy",
        "inline": None, "register": "register"}


def buffers(*words, ops="write,write-imm,send", ways=",".join(WAYS), absent=0):
    """Every byte arrives by every way, and who copies or registers spends time on it."""
    record = local("--op", ops, "--buffers", ways, "--size", "64,4KiB", "--depth", "4",
                   "--baseline", "off", *words)
    ops = ops.split(",")
    combinations = len(ops) * len(ways.split(",")) * 2 - absent
    demand(len(record["cases"]) == combinations, f"{len(record['cases'])} of {combinations} cases")
    for case in record["cases"]:
        check_data(case)
        end = case["target" if case["buffers"] == "pool" else "source"]
        for part in ("copy", "register"):
            spent = end["parts_ns"][part] > 0
            demand(spent == (WAYS[case["buffers"]] == part), f"{part}: {case['buffers']} {end}")


# What each path must have at the least, in this order; the rest depends on when the NIC answers.
ACKNOWLEDGED = ["target: has looked at each byte", "target: acknowledgement goes into",
                "source: has the far application's"]
PATHS = {
    ("rc", "write"): ["source: makes", "source: reads memory", "target: data arrive", "target: is told",
                      *ACKNOWLEDGED],
    ("rc", "write-imm"): ["source: makes", "source: reads memory", "target: data arrive",
                          "target: is told", *ACKNOWLEDGED],
    ("rc", "read"): ["target: makes", "source: is told", "source: goes into the send queue",
                     "target: reads memory", "source: data arrive", "source: polls the completion",
                     "source: has looked at each byte", "target: has the far application's"],
    ("rc", "send"): ["source: makes", "source: reads memory", "target: data arrive", *ACKNOWLEDGED],
    ("rc", "atomic"): ["source: goes into", "source: sends the request", "target: the request arrives",
                       "source: polls the completion",
                       "source: has looked at what the word was"],
    ("uc", "write"): ["source: makes", "source: reads memory", "target: data arrive", *ACKNOWLEDGED],
    ("uc", "write-imm"): ["source: makes", "source: reads memory", "target: data arrive",
                          *ACKNOWLEDGED],
    ("uc", "send"): ["source: makes", "source: reads memory", "target: data arrive", *ACKNOWLEDGED],
    ("ud", "send"): ["source: makes", "source: reads memory", "target: data arrive", *ACKNOWLEDGED],
}


def path(transport, *words):
    """Every operation: each step that there must be, numbered, and in order."""
    out, _ = lab("path", "--transport", transport, "--timeout", "20s", "--json", "-", *words)
    walks(transport, out, 1)


def walks(transport, out, clocks):
    verdict = json.loads(out)["verdict"]
    demand((verdict["summary"], verdict["findings"]) == ("passed", []), f"of a path: {verdict}")
    found = {case["op"]: case["path"] for case in json.loads(out)["cases"]}
    wanted = {op for of, op in PATHS if of == transport}
    demand(set(found) == wanted, f"paths of {sorted(found)}, wanted {sorted(wanted)}")
    for op, walk in found.items():
        steps = [f"{s['end']}: {s['what']}" for s in walk["steps"]]
        at = 0
        for want in PATHS[transport, op]:
            end, _, what = want.partition(": ")
            while at < len(steps) and not (steps[at].startswith(end + ":") and what in steps[at]):
                at += 1
            demand(at < len(steps), f"{op}: no '{want}' in its place:\n" + "\n".join(steps))
        demand([s["number"] for s in walk["steps"]] == list(range(1, len(steps) + 1)), "numbers")
        demand(all(s["proves"] and s["not"] for s in walk["steps"]), "a step proves nothing")
        demand(walk["clocks"] == clocks, f"{walk['clocks']} clocks")
        for ends in ["source target"] if clocks == 1 else ["source", "target"]:
            begins = [s["begin_ns"] for s in walk["steps"] if s["end"] in ends]
            demand(begins == sorted(begins) and begins[:1] in ([], [0]), f"times {begins}")


def path_of_8_mib():
    """The largest: thousands of packets."""
    out, _ = lab("path", "--op", "write", "--size", "8MiB", "--timeout", "60s")
    demand("RDMA WRITE First, PSN " in out and "to RDMA WRITE Last, PSN " in out, out[:2000])


def path_text():
    out, _ = lab("path", "--op", "write", "--size", "16KiB")
    for text in ("The path of one write of 16384 bytes over rc", "does not prove:", "------>",
                 "RDMA WRITE First, PSN "):
        demand(text in out, f"no '{text}' in:\n{out}")
    left = [name for name in os.listdir("/tmp") if name.startswith("verbena-lab-")
            and os.path.exists(os.path.join("/tmp", name, "packets.pcap"))]
    demand(not left, f"left behind: {left}")


def unreliable(transport, *words, size="64,1KiB"):
    record = local("--transport", transport, "--size", size, "--depth", "1,4", *words)
    ops = ["send"] if transport == "ud" else ["write", "write-imm", "send"]
    sizes = [int(s.replace("KiB", "")) * (1024 if "KiB" in s else 1) for s in size.split(",")]
    right(record, ops, sizes, [1, 4])


def lossy(transport, *words):
    """Nothing is missing in the end, and the record tells what it took."""
    words = [*words, "--transport", transport, "--baseline", "off", "--size", "1KiB", "--depth", "4"]
    options = ["--fault", "drop=10%,dup=5%,seed=3"]
    record = local(*words, "--retry", "5ms", "--iterations", "100", options=options)
    for case in record["cases"]:
        check_data(case)
    demand(sum(c["source"]["resent"] for c in record["cases"]) > 0, "nothing was sent again")
    demand(sum(c["target"]["duplicates"] for c in record["cases"]) > 0, "no copy was seen")


def lossy_in_pieces(*words):
    """A Write of UC is lost in pieces, again and again, and its word comes all the same: that is no
    wrong data. What is wrong is found out beside it."""
    options = ["--fault", "drop=8%,seed=5"]
    words = [*words, "--transport", "uc", "--op", "write", "--size", "48KiB", "--depth", "4",
             "--slots", "8", "--retry", "2ms", "--baseline", "off", "--iterations", "30"]
    record = local(*words, options=options)
    check_data(record["cases"][0])
    # Two of three messages are, each time: 47 +- 9 of the 40.
    demand(record["cases"][0]["target"]["lost"] > 5, f"{record['cases'][0]['target']}")
    for fault, verdict in (("wrong-data", "corrupt"), ("stale-data", "stale")):
        record = local(*words, "--plant", fault, options=options, status=2)
        bad = {k: v for k, v in record["cases"][0]["target"]["data"].items() if k != "good" and v}
        demand(bad == {verdict: 1}, f"{fault}: {bad}")


def lossy_rc():
    options = ["--fault", "drop=5%,seed=3"]
    words = ["--op", "write", "--size", "4KiB", "--depth", "4", "--baseline", "off"]
    record = local(*words, options=options)
    check_data(record["cases"][0])
    counters = [record["cases"][0][side].get("counters", {}) for side in ("source", "target")]
    again = sum(c.get("retransmitted_packets", 0) for c in counters)
    demand(again > 0, f"no retransmission told: {counters}")


def planted(fault, verdict, op, *words):
    record = local("--op", op, "--size", "64,16", "--depth", "2", "--plant", fault, "--slots", "8",
                   *words, status=2)
    demand(len(record["cases"]) > 2, "no baseline, or nothing else")
    for case in record["cases"]:
        reader = case["source" if case["op"] == "read" else "target"]
        bad = {k: v for k, v in reader["data"].items() if k != "good" and v}
        demand(bad == {verdict: 1}, f"{case['op']}: {reader['data']}")
        demand(verdict in reader["first_fault"], reader["first_fault"])
    demand("WRONG DATA" in record["verdict"]["summary"], record["verdict"]["summary"])
    demand(len(record["verdict"]["findings"]) >= len(record["cases"]), "findings are missing")


def planted_reuse(op, *words):
    """The step is refused where it is tried, with the slot's last steps; both ends tell it."""
    words = ["--op", op, "--size", "64", "--depth", "2", "--baseline", "off", *words]
    _, err = lab("local", *QUICK, *words, "--plant", "early-reuse", status=69)
    demand("reuse before the acknowledgement" in err, err)
    demand(re.search(r"last steps: .*filled #\d+, posted #\d+", err), err)


def thresholds():
    """Case 140: thresholds above and below what is reached; exit code and a line of the report."""
    words = ["local", *QUICK, "--op", "write", "--size", "4KiB", "--depth", "1"]
    for name, met, missed, says in (
        ("max-p99", "3600s", "1ns", " us, allowed 0.001 us"),
        ("min-gbps", "0.000001", "10000", " Gbit/s, wanted 10000"),
        ("min-ratio", "0.000001", "1000", " x TCP, wanted 1000"),
    ):
        out, _ = lab(*words, f"--{name}", met)
        demand("MISSED" not in out and "Verdict: passed" in out, out[-600:])
        out, _ = lab(*words, f"--{name}", missed, status=1)
        demand(f"MISSED {name}: write of 4096 bytes at depth 1" in out, out[-600:])
        demand(f"{says}\n" in out, out[-600:])
        demand("Verdict: MISSED a threshold" in out, out[-600:])


def thresholds_not_judged():
    """Case 140: one that no case has a figure for is not kept, and it is said which."""
    out, _ = lab("local", *QUICK, "--op", "atomic", "--size", "64", "--depth", "1", "--min-gbps",
                 "0.000001", "--min-ratio", "0.000001", "--max-p99", "3600s", status=1)
    for name in ("min-gbps: no case has a throughput", "min-ratio: no case has a baseline"):
        demand(f"- NOT JUDGED {name}" in out, out[-600:])
    demand("Verdict: a threshold is NOT JUDGED" in out and "max-p99" not in out, out[-600:])


def usage():
    for words, says in (
        ([], "no command"),
        (["measure"], "local, path, experiment, serve, run, mpi, history or key"),
        (["path", "--depth", "2"], "unrecognized option"),
        (["--nic", "other", "local"], "neither verbena nor system"),
        (["local", "--size", "1"], "--size: 1 is too small"),
        (["local", "--op", "fly"], "--op: 'fly' is none of"),
        (["local", "--depth", "65"], "--depth: 65 messages under way need as many slots"),
        (["local", "--transport", "uc", "--op", "read"], "--op: transport uc has no read"),
        (["local", "--peer", "x"], "unrecognized option"),
        (["run", "--peer", "127.0.0.1"], "--key: is missing"),
        (["run", "--key", "x"], "--peer: is missing"),
        (["serve"], "--key: is missing"),
        (["key"], "Usage"),
    ):
        _, err = lab(*words, status=64)
        demand(says in err, f"{words}: {err}")
    out, _ = lab("--help")
    demand("serve" in out and "Exit codes" in out, out)
    out, _ = lab("local", "--help")
    demand("--signal-every=N" in out, out)


def every_option_documented():
    """Each option of the help of any command is in the manual page, and the other way round."""
    page = os.path.join(e2e.ROOT, "docs", "man", "verbena-lab.1.scd")
    with open(page, encoding="utf-8") as text:
        manual = set(re.findall(r"\*(--[a-z0-9-]+)\*", text.read()))
    offered = set()
    for words in ([], ["local"], ["path"], ["experiment"], ["run"], ["serve"], ["mpi"], ["history"]):
        out, _ = lab(*words, "--help")
        offered |= set(re.findall(r"(--[a-z0-9-]+)", out))
    demand(manual == offered - {"--usage"}, f"only one has {manual ^ offered}")


def unavailable():
    gone = os.path.join(folder(), "none", "file")
    for words, says in (
        (["local", "--device", "vb_none"], "device: no 'vb_none' that can be opened and has an "
         "active port, of vb_"),
        (["local", "--json", gone], f"--json: cannot write '{gone}'"),
        (["local", "--transport", "ud", "--size", "64,64KiB"], "65536 bytes are more than a datagram"),
        (["local", "--gid-index", "200"], "gid-index: "),
        (["run", "--peer", "127.0.0.1", "--key", gone], f"key: cannot read '{gone}'"),
    ):
        out, err = lab(*words, status=69)
        demand(says in err and out == "", f"{words}: {err}{out}")


def disk_full():
    words = ["local", *QUICK, "--op", "write", "--size", "64", "--depth", "1", "--baseline", "off"]
    _, err = lab(*words, "--json", "/dev/full", status=70)
    demand("--json: cannot write '/dev/full': No space left" in err, err)


# Two ends.


def key(name="key"):
    path = os.path.join(folder(), name)
    if not os.path.exists(path):
        lab("key", path)
    return path


def keys():
    path = key()
    demand(os.stat(path).st_mode & 0o777 == 0o600, "others can read the key")
    _, err = lab("key", path, status=69)  # never over an old one
    demand("cannot make" in err, err)
    for text, mode, says in (
        ("0123456789abcdef\n", 0o644, "can be read by others"),
        ("0123456789abcde\n", 0o600, "fewer than 16 bytes"),
        ("x" * 5000, 0o600, "too long"),
    ):
        other = os.path.join(folder(), "bad")
        with open(other, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(other, mode)
        _, err = lab("run", "--peer", "127.0.0.1", "--key", other, status=69)
        demand(says in err, err)
    fifo = os.path.join(folder(), "fifo")
    os.mkfifo(fifo, 0o600)
    _, err = lab("serve", "--key", fifo, status=69)  # nobody writes to it
    demand("is no file" in err, err)


class Server:
    """`lab serve` until it listens."""

    def __init__(self, *words, inside=(), name="key"):
        self.port = e2e.free_port()
        command = [*inside, e2e.VERBENA, "lab", "serve", "--key", key(name)]
        self.process = Process([*command, "--port", str(self.port), *words])

    def __enter__(self):
        wait_until(lambda: self.process.listens(self.port), 15, "lab serve")
        return self

    def __exit__(self, *_):
        self.process.end()
        self.process.__exit__()

    def turns_away(self, says):
        """It goes on waiting for who has the key, and serves that one."""
        wait_until(lambda: f"is turned away: {says}" in self.process.both(), 30, says)
        demand("127.0.0.1 port " in self.process.both(), self.process.both())
        status, _, err = e2e.run(run(self.port, *SMALL, "--baseline", "off"), LIMIT_SECONDS)
        demand(status == 0, err)
        self.ends(0)

    def ends(self, status, says=""):
        got = self.process.wait(30)
        text = self.process.both()
        demand(got == status and says in text, f"serve: {got}, wanted {status} '{says}':\n{text}")


def run(port, *words, host="127.0.0.1", inside=(), name="key"):
    command = [*inside, e2e.VERBENA, "lab", "run", "--peer", host, "--key", key(name)]
    return [*command, "--port", str(port), *QUICK, *words]


SMALL = ["--op", "write,read", "--size", "4KiB", "--depth", "2"]


def two_ends():
    with Server() as server:
        status, out, err = e2e.run(run(server.port, *SMALL, "--json", "-"), LIMIT_SECONDS)
        demand(status == 0, out + err)
        right(json.loads(out), ["write", "read"], [4096], [2])
        server.ends(0, f"Waits at port {server.port} of all addresses for a `verbena lab run'")


def two_ends_agree():
    with Server("--size", "4KiB", "--wait", "event") as server:
        words = [*SMALL, "--wait", "event"]
        status, _, err = e2e.run(run(server.port, *words), LIMIT_SECONDS)
        demand(status == 0, err)
        server.ends(0)


def mismatch():
    """Case 138: what differs is named at both ends, and both end."""
    with Server("--transport", "uc", "--size", "64,4KiB") as server:
        status, _, err = e2e.run(run(server.port, *SMALL), LIMIT_SECONDS)
        says = "transport is uc for `lab serve' and rc for `lab run'"
        demand(status == 69 and says in err, f"{status} {err}")
        demand("size is 64,4096 for `lab serve' and 4096 for `lab run'" in err, err)
        server.ends(69, "transport is uc")


def bad_key():
    with Server() as server:
        command = run(server.port, *SMALL, name="another")
        status, _, err = e2e.run(command, LIMIT_SECONDS)
        demand(status == 69 and "the peer's key is not ours" in err, f"{status} {err}")
        server.ends(69, "the peer's key is not ours")


def stranger(greeting, says):
    """Who is no lab is told from its first bytes."""
    with Server() as server:
        with socket.create_connection(("127.0.0.1", server.port), 10) as end:
            end.sendall(greeting)
            server.turns_away(says)


def other_peer(greeting, says):
    """Who is one, but not as we are, ends it."""
    with Server() as server:
        with socket.create_connection(("127.0.0.1", server.port), 10) as end:
            end.sendall(greeting)
            server.ends(69, says)


def other_version():
    """Seen from `lab run`, too."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with Process(run(listener.getsockname()[1], *SMALL)) as process:
            end, _ = listener.accept()
            with end:
                end.sendall(b"verb-lab" + struct.pack(">II", 2, 1) + bytes(32))
                status = process.wait(30)
                says = "speaks protocol 2 and this one 1"
                demand(status == 69 and says in process.both(), process.both())


def nobody_there():
    status, _, err = e2e.run(run(e2e.free_port(), *SMALL), LIMIT_SECONDS)
    demand(status == 69 and "cannot reach `lab serve' at 127.0.0.1" in err, err)


ENDLESS = ["--op", "write,read,send", "--size", "4KiB", "--depth", "4", "--iterations", "900000000"]


def killed(which, number, *words):
    """Case 138: whichever end goes, and however, the other one says so and ends."""
    with Server() as server:
        command = run(server.port, *ENDLESS, *words)
        with Process(command) as source:
            wait_until(lambda: busy(source) and busy(server.process), 20, "both to work")
            ends = {"source": source, "target": server.process}
            os.kill(ends.pop(which).pid, number)
            (other,) = ends.values()
            status = other.wait(30)
            text = other.both()
            demand(status == 69 and "the peer is gone while running" in text, f"{status}\n{text}")


def busy(process):
    """Has used a tenth of a second of CPU time: it is moving data by then."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12]) >= 10


def stopped():
    """An end that does not go but says nothing more."""
    with Server() as server:
        command = run(server.port, *ENDLESS, "--timeout", "1s")
        with Process(command) as source:
            wait_until(lambda: busy(source) and busy(server.process), 20, "both to work")
            os.kill(server.process.pid, signal.SIGSTOP)
            status = source.wait(60)
            os.kill(server.process.pid, signal.SIGCONT)
            text = source.both()
            demand(status == 69, f"{status}\n{text}")
            demand("nothing moves" in text or "failed" in text, text)
            server.ends(69)


def stopped_here():
    """The other process of a local run that hears no more is ended with it."""
    with Process([e2e.VERBENA, "lab", "local", *ENDLESS, "--timeout", "1s"]) as source:
        wait_until(lambda: children(source.pid), 20, "the target's process")
        wait_until(lambda: busy(source), 20, "it to work")
        (child,) = children(source.pid)
        os.kill(int(child), signal.SIGSTOP)
        status, text = source.wait(60), source.both()
        demand(status == 69 and "does not end and is killed" in text, f"{status} {text}")
        demand(not os.path.exists(f"/proc/{child}"), "the target is left")


def early_end():
    """The other process of a local run is gone when the first one is."""
    with Process([e2e.VERBENA, "lab", "local", *ENDLESS]) as source:
        wait_until(lambda: children(source.pid), 20, "the target's process")
        wait_until(lambda: busy(source), 20, "it to work")
        (child,) = children(source.pid)
        os.kill(source.pid, signal.SIGTERM)
        source.wait(30)
        wait_until(lambda: over(child), 10, "the target to go")


def over(pid):
    """It has ended; whose child it is now may not have asked yet."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()


def namespaces(tap):
    try:
        with Namespaces(1500) as net:
            for name, hosts in (("ipv4", net.V4), ("ipv6", net.V6)):
                tap.run(f"netns_{name}", across, net, hosts[0])
            for name, hosts in (("cm_ipv4", net.V4), ("cm_ipv6", net.V6)):
                words = (*SMALL, "--connect", "cm")
                tap.run(f"netns_{name}", across, net, hosts[0], *words)
            tap.run("netns_ud", across, net, net.V4[0], "--transport", "ud")
            for name, words in (("", SMALL), ("_cm", (*SMALL, "--connect", "cm"))):
                tap.run(f"netns_link_local{name}", across_link, net, *words)
            for transport in ("rc", "uc", "ud"):
                tap.run(f"netns_lossy_{transport}", across_loss, net, transport)
    except e2e.Skip as reason:
        tap.say("ok", "netns", f" # SKIP {reason}")


def across_link(net, *words):
    """A link-local address says nothing without its link, which each end names its own way."""
    show = ["ip", "-n", net.names[0], "-6", "-o", "address", "show", "scope", "link"]
    _, text, _ = e2e.run([*show, "dev", net.INTERFACE], 10)
    address = re.search(r"fe80:[0-9a-f:]+", text).group(0)
    across(net, f"{address}%{net.INTERFACE}", *words)
    status, _, err = e2e.run(run(18470, *words, host=address,
                                 inside=["ip", "netns", "exec", net.names[1]]), LIMIT_SECONDS)
    demand(status == 69 and f"cannot reach `lab serve' at {address} port 18470: Inv" in err, err)


def across_loss(net, transport):
    """Both ends lose packets of the data; nothing is missing in the end."""
    a, b = (["ip", "netns", "exec", name, "env", f"VERBENA_FAULT=drop=3%,seed={seed}"]
            for name, seed in zip(net.names, (3, 4)))
    size = "1KiB" if transport == "ud" else "16KiB"
    words = ["--transport", transport, "--op", "send", "--size", size, "--depth", "4",
             "--iterations", "100", "--retry", "10ms", "--baseline", "off", "--json", "-"]
    with Server(inside=a) as server:
        command = run(server.port, *words, host=net.V4[0], inside=b)
        status, out, err = e2e.run(command, LIMIT_SECONDS)
        demand(status == 0, out + err)
        (case,) = json.loads(out)["cases"]
        check_data(case)
        counters = [case[side].get("counters", {}) for side in ("source", "target")]
        again = sum(c.get("retransmitted_packets", 0) for c in counters)
        demand(again + case["source"]["resent"] > 0, f"nothing was sent again: {case['source']}")
        server.ends(0)


def across(net, host, *words):
    a, b = (["ip", "netns", "exec", name] for name in net.names)
    with Server(inside=a) as server:
        words = words or SMALL
        command = run(server.port, *words, "--json", "-", host=host, inside=b)
        status, out, err = e2e.run(command, LIMIT_SECONDS)
        demand(status == 0, out + err)
        record = json.loads(out)
        for case in record["cases"]:
            check_data(case)
        demand(record["source"]["device"] == "vb_veth0", f"{record['source']}")
        server.ends(0)


def cases(tap):
    one = tap.run
    one("every_operation", every_operation)
    one("text_report", text_report)
    one("events", lambda: right(local("--size", "64,4KiB", "--depth", "1,4", "--wait", "event"),
                                RC_OPS, [64, 4096], [1, 4]))
    one("offsets", offsets)
    one("odd_slots", odd_slots)
    one("one_slot", one_slot)
    one("case_139__sizes", many_sizes)
    one("case_139__sizes_events", many_sizes, "--wait", "event")
    one("case_139__sizes_uc", many_sizes, "--transport", "uc", op="write,write-imm,send",
        sizes="2,33,65537,1MiB")
    one("case_139__sizes_ud", many_sizes, "--transport", "ud", op="send", sizes="2,31,33,1KiB,4KiB")
    one("case_139__sizes_ud_shared_receives", many_sizes, "--transport", "ud", "--buffers", "pool",
        op="send", sizes="2,31,33,1KiB,4KiB")
    one("case_139__sizes_ud_shared_receives_events", many_sizes, "--transport", "ud", "--buffers",
        "pool", "--wait", "event", op="send", sizes="2,33,1KiB,4KiB")
    one("case_139__sizes_shared_receives_events", many_sizes, "--buffers", "pool", "--wait",
        "event", op="send")
    one("case_139__sizes_uc_events", many_sizes, "--transport", "uc", "--wait", "event",
        op="write,write-imm,send", sizes="2,33,65537,8MiB")
    for name, every, depth in (
        ("case_134__each_asks", 1, 4),
        ("case_134__one_in_3_of_4", 3, 4),
        ("case_134__one_in_64_of_4", 64, 4),
        ("case_134__one_in_8_of_1", 8, 1),
        ("case_134__one_in_64_of_64", 64, 64),
    ):
        one(name, selective, "rc", every, depth)
    one("case_134__uc", selective, "uc", 16, 16)
    one("uc", unreliable, "uc")
    one("ud", unreliable, "ud")
    one("uc_events", unreliable, "uc", "--wait", "event")
    one("ud_events", unreliable, "ud", "--wait", "event")
    one("cm", lambda: right(local("--size", "64,4KiB", "--depth", "1,4", "--connect", "cm"),
                            RC_OPS, [64, 4096], [1, 4]))
    one("cm_events", lambda: right(local("--size", "64", "--depth", "4", "--connect", "cm",
                                         "--wait", "event"), RC_OPS, [64], [4]))
    # Inline there is for 64 bytes only, and the pool for send only.
    one("buffers", buffers, absent=3 + 4)
    one("buffers_events", buffers, "--wait", "event", "--signal-every", "3", absent=3 + 4)
    one("buffers_uc", buffers, "--transport", "uc", ways="bounce,gather,temporary")
    for transport in ("rc", "uc", "ud"):
        one(f"path_{transport}", path, transport)
    one("path_cm_events", path, "rc", "--connect", "cm", "--wait", "event", "--size", "4KiB")
    one("path_text", path_text)
    one("path_of_8_mib", path_of_8_mib)
    one("lossy_uc", lossy, "uc")
    one("lossy_uc_pieces", lossy_in_pieces)
    one("lossy_ud", lossy, "ud")
    one("lossy_ud_shared_receives", lossy, "ud", "--buffers", "pool")
    one("lossy_rc", lossy_rc)
    for fault, verdict in (("wrong-data", "corrupt"), ("stale-data", "stale")):
        one(f"planted_{fault}", planted, fault, verdict, "write,write-imm,read,send")
        one(f"planted_{fault}_uc", planted, fault, verdict, "write,send", "--transport", "uc")
    one("planted_stale_copies", planted, "stale-data", "stale", "send", "--buffers",
        "bounce,pool,register", "--size", "64", "--slots", "8")
    for op in ("write", "write-imm", "read", "send"):
        one(f"planted_early_reuse_{op}", planted_reuse, op)
    for transport in ("uc", "ud"):
        one(f"planted_early_reuse_{transport}", planted_reuse, "send", "--transport", transport)
    one("case_140__thresholds", thresholds)
    one("case_140__thresholds_not_judged", thresholds_not_judged)
    one("usage", usage)
    one("every_option_documented", every_option_documented)
    one("unavailable", unavailable)
    one("disk_full", disk_full)
    one("keys", keys)
    one("two_ends", two_ends)
    one("two_ends_agree", two_ends_agree)
    one("case_138__mismatch", mismatch)
    one("bad_key", bad_key)
    one("stranger", stranger, b"GET / HTTP/1.1\r\n" * 8, "the peer is no `verbena lab'")
    one("peer_of_another_version", other_peer, b"verb-lab" + struct.pack(">II", 9, 0) + bytes(32),
        "the peer's `verbena lab' speaks protocol 9 and this one 1")
    one("peer_of_the_same_role", other_peer, b"verb-lab" + struct.pack(">II", 1, 1) + bytes(32),
        "both ends have the same role")
    one("other_version", other_version)
    one("nobody_there", nobody_there)
    events = ("--wait", "event")
    one("case_138__killed_source", killed, "source", signal.SIGKILL)
    one("case_138__killed_target", killed, "target", signal.SIGKILL)
    one("case_138__killed_target_cm", killed, "target", signal.SIGKILL, "--connect", "cm")
    one("case_138__terminated_source_events", killed, "source", signal.SIGTERM, *events)
    one("case_138__terminated_target_events", killed, "target", signal.SIGTERM, *events)
    one("stopped_target", stopped)
    one("stopped_target_here", stopped_here)
    one("early_end", early_end)
    namespaces(tap)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
