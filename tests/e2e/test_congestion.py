#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 300 s
"""Congestion control live: marks on the way make CNPs, CNPs slow the sender down, data is right.

The marks are those of a queueing discipline between two namespaces, where the kernel has one that
marks, else those of --fault ce=. What CNPs look like is read from a capture, by tshark and by
roce_pcap.
"""

import os
import subprocess
import sys
import tempfile

import e2e
import roce_pcap
from e2e import Namespaces, Side, demand
from marking_link import MarkingLink

HOST = "127.0.0.1"
CNP, CNP_TOS = 0x81, 48 << 2
CC = "dcqcn-paper,rate=10Gb/s"
SECONDS = 100  # of a pair, at most


class Ends:
    """Both with a capture, counters and congestion control."""

    def __init__(self, folder, cc, options=(), server=None, client=None):
        self.captures, self.counters, self.sides = [], [], []
        for name, side in (("server", server or Side()), ("client", client or Side())):
            path = os.path.join(folder, name)
            self.captures.append(path + ".pcap")
            self.counters.append(path + ".stats")
            extra = ["--cc", cc, f"--pcap={path}.pcap", f"--stats={path}.stats"]
            extra += list(options) if name == "client" else []
            side.options = extra
            self.sides.append(side)

    def run(self, host, iterations, *options):
        options = ("-c", "-s", "65536", *options)
        limits = {"iterations": iterations, "limit_seconds": SECONDS}
        return e2e.pingpong(*self.sides, host, *options, **limits)

    def counted(self, end):
        with open(self.counters[end], encoding="ascii") as lines:
            pairs = [line.split() for line in lines]
        return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def cnps_of(path):
    """Time, TOS or traffic class, BECN and length of each CNP, as tshark tells them."""
    fields = ("frame.time_epoch", "ip.dsfield", "ipv6.tclass", "infiniband.bth.psn", "udp.length")
    command = ["tshark", "-r", path, "-Y", f"infiniband.bth.opcode == {CNP}", "-T", "fields"]
    for field in fields:
        command += ["-e", field]
    status, text, errors = e2e.run(command)
    demand(status == 0, f"tshark: exit code {status}: {errors}")
    return [line.split("\t") for line in text.splitlines()]


def check_cnps(ends):
    """What the client's packets met, the server told it."""
    server, client = ends.counted(0), ends.counted(1)
    sent, marks = server.get("np_cnp_sent", 0), server.get("np_ecn_marked_roce_packets", 0)
    demand(0 < sent <= marks, f"{sent} CNPs for {marks} marks: {server}")
    taken = client.get("rp_cnp_handled", 0)
    demand(0 < taken <= sent, f"{taken} of {sent} CNPs came: {client}")
    rows = cnps_of(ends.captures[1])
    demand(len(rows) >= taken, f"{len(rows)} of {taken} in the client's capture")
    times = sorted(float(row[0]) for row in rows)
    for row in rows:
        tos = int(row[1] or row[2], 0)
        demand(tos == CNP_TOS, f"traffic class {tos:#x}")
        demand(int(row[3], 0) == 0 and int(row[4]) == 8 + 12 + 16 + 4, row)
    bad = [p for p in roce_pcap.read(ends.captures[1]) if p.opcode == CNP and not p.icrc_ok]
    demand(not bad, f"{len(bad)} CNPs with a wrong ICRC")
    span = times[-1] - times[0]
    demand(len(times) <= span / 50e-6 + 50, f"{len(times)} CNPs in {span} s")
    return f"{marks} marks, {sent} CNPs"


def marked(gid):
    """Of the client's packets one in five is marked."""
    with tempfile.TemporaryDirectory() as folder:
        ends = Ends(folder, CC, ["--fault=ce=20%,seed=3"], Side(gid=gid), Side(gid=gid))
        ends.run(HOST, 300)
        return check_cnps(ends)


def by_round_trip():
    """Probes go to and fro, and are no data."""
    with tempfile.TemporaryDirectory() as folder:
        ends = Ends(folder, "ztr-target,rate=10Gb/s")
        ends.run(HOST, 300)
        server, client = ends.counted(0), ends.counted(1)
        handled = client.get("rp_rtt_handled", 0)
        demand(handled > 0 and server.get("np_rtt_answers", 0) >= handled, f"{client}\n{server}")
        return f"{handled} answers"


def alone():
    """A peer without sends no CNPs; nothing is worse than without marks."""
    with tempfile.TemporaryDirectory() as folder:
        ends = Ends(folder, CC, ["--fault=ce=20%,seed=3"])
        ends.sides[0].options[1] = "none"
        ends.run(HOST, 100)
        demand(ends.counted(0).get("np_cnp_sent", 0) == 0, ends.counted(0))
        demand(ends.counted(0)["np_ecn_marked_roce_packets"] > 0, ends.counted(0))


def over_a_link(gid):
    """A queueing discipline of the client's end of the link marks what says that it may be."""
    with Namespaces(1500, "cc") as net, tempfile.TemporaryDirectory() as folder:
        client = net.side(1, gid)
        device = client.device.removeprefix("vb_")
        queue = "fq_codel ce_threshold 1us limit 1000"
        shape = f"tc qdisc replace dev {device} root handle 1: tbf rate 200mbit burst 20kb limit 4mb"
        marker = f"tc qdisc replace dev {device} parent 1:1 {queue}"
        queued = all(e2e.run([*client.inside, *x.split()])[0] == 0 for x in (shape, marker))
        faults = () if queued else ["--fault=ce=20%,seed=3"]
        ends = Ends(folder, CC, faults, net.side(0, gid), client)
        ends.run(net.V4[0], 100, "-m", "1024")
        return f"{check_cnps(ends)}, of {'a queue' if queued else 'a fault'}"


class Flow:
    """A queue pair of marked_flow.c, whose messages go when we say so."""

    NAMES = ("cnps", "slowed", "recovered")

    def __init__(self, process):
        self.process, self.rounds = process, 0

    def send(self, messages):
        """What the sender's engine has counted when they are there."""
        self.rounds += 1
        self.process.popen.stdin.write(f"{messages}\n".encode())
        self.process.popen.stdin.flush()
        ended = self.process.popen.poll
        e2e.wait_until(
            lambda: self.process.text().count("\n") == self.rounds or ended() is not None,
            SECONDS,
            f"{messages} messages",
        )
        demand(ended() is None, f"it has ended: {self.process.tail()}")
        return dict(zip(self.NAMES, map(int, self.process.text().splitlines()[-1].split())))

    def until(self, done, what):
        """Sends until the counters say so; time is what a rate comes back by."""
        seen = [self.send(1)]

        def enough():
            seen.append(self.send(1))
            return done(seen[-1])

        try:
            e2e.wait_until(enough, SECONDS, what)
        except e2e.Failed as failure:
            raise e2e.Failed(f"{failure}: {seen[0]}, then {seen[-1]}") from None
        return seen[-1]


def check_flow(net, flow):
    """Marks make CNPs, by which the sender is slowed down; without marks it comes back, and stays."""
    seen = flow.send(50)
    demand(seen == {"cnps": 0, "slowed": 0, "recovered": 0}, f"before any mark: {seen}")
    for turn in (1, 2):
        net.marks = True
        slow = flow.until(lambda c: c["slowed"] > c["recovered"] and c["cnps"] > turn, "CNPs")
        demand(slow["slowed"] >= turn and net.count >= slow["cnps"], f"{slow}, {net.count} marks")
        net.marks = False
        back = flow.until(lambda c: c["slowed"] == c["recovered"], "back at the line")
        demand(back["recovered"] > slow["recovered"], f"{slow}, then {back}")
        calm = flow.send(50)
        demand(calm == back, f"no mark, but {back}, then {calm}")
    return f"{net.count} marks, {calm['cnps']} CNPs"


def slows_and_recovers(gid):
    with MarkingLink(1500) as net:
        server, client = (net.side(i, gid) for i in range(2))
        port, program = str(e2e.free_port()), os.path.join(e2e.PROGRAMS, "marked_flow")
        for side in (server, client):
            side.options = ["--cc", "dcqcn-paper"]
        # The link is a thread of ours, which a busy machine lets wait: ack timeouts of a second.
        words = [program, "-d", server.device, "-g", str(gid), "-p", port, "-t", "18"]
        with server.start(words) as there:
            e2e.wait_until(lambda: there.listens(int(port)), 15, f"port {port}")
            command = client.inside + e2e.on_nic(*words, net.V4[0], options=client.options)
            with e2e.Process(command, stdin=subprocess.PIPE) as here:
                told = check_flow(net, Flow(here))
                here.popen.stdin.close()
                here.expect()
            there.expect()
        return told


def cases(tap):
    for family, gid in (("ipv4", Namespaces.GID_V4), ("ipv6", Namespaces.GID_V6)):
        tap.run(f"slows_and_recovers_{family}", slows_and_recovers, gid)
    e2e.need("tshark")
    tap.run("case_L6__marked_ipv4", marked, 0)
    tap.run("case_119__marked_ipv6", marked, 1)
    tap.run("by_round_trip", by_round_trip)
    tap.run("peer_without", alone)
    for family, gid in (("ipv4", Namespaces.GID_V4), ("ipv6", Namespaces.GID_V6)):
        tap.run(f"case_L6__over_a_link_{family}", over_a_link, gid)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
