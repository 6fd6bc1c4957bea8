#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 180 s
"""Captures that `verbena run --pcap` makes: tshark finds nothing malformed, every ICRC is right."""

import os
import sys
import tempfile
import time

import e2e
import roce_pcap
from e2e import Failed, Side, demand, perftest, pingpong

HOST = "127.0.0.1"
SEND_OPCODES = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x16, 0x17}
TINY_BYTES = 8  # tshark tries to read the payload of a SEND, and fails on tiny ones
GOLDEN = os.path.join(e2e.ROOT, "tests", "golden", "rxe")


def tshark(path):
    """Nothing malformed, but for tshark's own fault on tiny SENDs."""
    e2e.need("tshark")
    fields = ["-e", "infiniband.bth.opcode", "-e", "udp.length", "-e", "frame.number"]
    command = ["tshark", "-r", path, "-Y", "_ws.malformed", "-T", "fields", *fields]
    status, text, errors = e2e.run(command)
    demand(status == 0, f"tshark: exit code {status}: {errors}")
    for line in text.splitlines():
        opcode, length, number = (line.split("\t") + ["", ""])[:3]
        payload = int(length or 0) - 8 - 12 - 4
        if not opcode or int(opcode) not in SEND_OPCODES or payload > TINY_BYTES:
            raise Failed(f"frame {number} is malformed: opcode {opcode}, UDP length {length}")
    status, text, errors = e2e.run(["tshark", "-r", path, "-T", "fields", "-e", "_ws.col.Protocol"])
    demand(status == 0, f"tshark: exit code {status}: {errors}")
    return text.split()


def check(path, wanted, broken=0):
    packets = roce_pcap.read(path)
    seen = roce_pcap.summary(packets)
    for name in wanted:
        demand(seen[name] > 0, f"no {name} in {dict(seen)}")
    wrong = [p for p in packets if not p.icrc_ok]
    demand(len(wrong) <= broken, f"{len(wrong)} of {len(packets)} ICRCs are wrong: {wrong[:3]}")
    protocols = tshark(path)
    demand(len(protocols) == len(packets), f"tshark sees {len(protocols)}, not {len(packets)}")
    other = set(protocols) - {"RoCE", "RRoCE"}
    demand(not other, f"tshark calls some of them {other}")
    return f"{len(packets)} packets: " + ", ".join(f"{n} {name}" for name, n in seen.items())


class Capture:
    """A file for each side, and the two sides that write them."""

    def __init__(self, folder, gid=0, shared=False):
        self.files = [os.path.join(folder, "server.pcap"), os.path.join(folder, "client.pcap")]
        self.sides = [Side(gid=gid, options=["--pcap", path]) for path in self.files]
        if shared:
            self.files = self.files[:1]
            self.sides[1] = Side(gid=gid, env={"VERBENA_PCAP": self.files[0]})

    def check(self, wanted):
        return "; ".join(check(path, wanted) for path in self.files)


def captured(wanted, function, *words, gid=0, shared=False, **kwargs):
    with tempfile.TemporaryDirectory() as folder:
        capture = Capture(folder, gid, shared)
        function(*capture.sides, HOST, *words, **kwargs)
        return capture.check(wanted)


def verify(server, client, host, *options):
    e2e.own_pair(server, client, host, "verify_rc", *options)


def golden_checker():
    """The checker itself: it agrees with a kernel's packets, and sees one flipped bit."""
    path = os.path.join(GOLDEN, "rc-write.pcap")
    packets = roce_pcap.read(path)
    demand(packets and all(p.icrc_ok for p in packets), "a golden ICRC is called wrong")
    frame = bytearray(next(roce_pcap.frames(path)))
    frame[-6] ^= 1
    demand(not roce_pcap.packet(bytes(frame)).icrc_ok, "a flipped bit is not seen")


def both_directions():
    """What one side says it sent is what the other says it received, packet for packet."""
    with tempfile.TemporaryDirectory() as folder:
        capture = Capture(folder)
        perftest(*capture.sides, HOST, "ib_write_bw", size=5000, iterations=50)
        keys = []
        for path in capture.files:
            packets = roce_pcap.read(path)
            keys.append(sorted((p.qpn, p.opcode, p.psn) for p in packets))
        demand(keys[0] == keys[1], f"{len(keys[0])} packets here, {len(keys[1])} there")
        return f"{len(keys[0])} packets on both sides"


def clocks():
    """Times are of the clock that was asked for, in each file."""
    ids = [time.CLOCK_REALTIME, time.CLOCK_MONOTONIC]
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("wall.pcap", "monotonic.pcap")]
        sides = [Side(options=["--pcap", files[0]]),
                 Side(options=["--pcap", files[1]], env={"VERBENA_PCAP_CLOCK": "monotonic"})]
        before = [time.clock_gettime_ns(clock) for clock in ids]
        perftest(*sides, HOST, "ib_send_lat", size=8, iterations=5)
        after = [time.clock_gettime_ns(clock) for clock in ids]
        for path, begin, end in zip(files, before, after):
            times = [ns for ns, _ in roce_pcap.records(path)]
            demand(times and begin <= min(times) and max(times) <= end,
                   f"{path}: {min(times)} to {max(times)}, not within {begin} to {end}")


def case_120():
    """Source ports are in 0xC000..0xFFFF, one for all of a QP's packets, and spread over QPs."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "many.pcap")
        client = Side(options=["--pcap", path])
        # perftest counts a completion as 100: where the rest of the iterations is less, it thinks
        # that all are done, polls no more, and waits for ever to post the rest.
        perftest(Side(), client, HOST, "ib_write_bw", "-q", "64", size=64, iterations=100)
        ports = {}
        for p in roce_pcap.read(path):
            if p.name().startswith("WRITE"):
                ports.setdefault(p.qpn, set()).add(p.source_port)
    demand(len(ports) == 64, f"{len(ports)} QPs")
    moved = [qpn for qpn, used in ports.items() if len(used) != 1]
    demand(not moved, f"QPs that changed their port: {moved}")
    used = set.union(*ports.values())
    demand(len(used) >= 32 and min(used) >= 0xC000, f"{len(used)} ports, from {min(used):#x}")
    return f"{len(used)} ports"


def old_content_goes():
    """--pcap begins a new file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "old.pcap")
        with open(path, "w", encoding="ascii") as old:
            old.write("not a capture\n" * 100)
        side = Side(options=["--pcap", path])
        pingpong(side, Side(), HOST, "-c", iterations=10)
        return check(path, ["SEND_FIRST", "ACK"])


def cases(tap):
    run = tap.run
    run("checker", golden_checker)
    sends = ["SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "ACK"]
    writes = ["WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST", "ACK"]
    reads = ["READ_REQ", "READ_RESP_FIRST", "READ_RESP_LAST"]
    run("pingpong", captured, sends, pingpong, "-c", iterations=50)
    run("pingpong_ipv6", captured, sends, pingpong, "-c", gid=1, iterations=50)
    size = {"size": 20001, "iterations": 50}
    run("write", captured, writes, perftest, "ib_write_bw", **size)
    run("read", captured, reads, perftest, "ib_read_bw", **size)
    run("send_ipv6", captured, sends, perftest, "ib_send_bw", gid=1, **size)
    for kind, name in (("FETCH_AND_ADD", "FETCH_ADD"), ("CMP_AND_SWAP", "CMP_SWAP")):
        wanted = [name, "ATOMIC_ACK"]
        run(name.lower(), captured, wanted, perftest, "ib_atomic_bw", "-A", kind, iterations=50)
    every = ["SEND_ONLY", "SEND_ONLY_IMM", "SEND_LAST_IMM", "WRITE_ONLY", "WRITE_ONLY_IMM"]
    every += ["WRITE_LAST_IMM", "READ_RESP_ONLY", "FETCH_ADD", "CMP_SWAP", *sends, *writes, *reads]
    run("verify_rc", captured, every, verify, "-n", "1", "-m", "1024")
    run("verify_rc_ipv6", captured, every, verify, "-n", "1", "-m", "4096", gid=1)
    run("one_file_for_both", captured, sends, pingpong, "-c", shared=True, iterations=50)
    run("both_sides_saw_the_same", both_directions)
    run("case_120", case_120)
    run("clocks", clocks)
    run("old_content_goes", old_content_goes)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
