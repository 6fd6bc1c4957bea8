#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 120 s
"""Congestion control live: marks on the way make CNPs, CNPs slow the sender down, data is right.

The marks are those of a queueing discipline between two namespaces, where the kernel has one that
marks, else those of --fault ce=. What CNPs look like is read from a capture, by tshark and by
roce_pcap.
"""

import os
import sys
import tempfile

import e2e
import roce_pcap
from e2e import Namespaces, Side, demand

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


def cases(tap):
    e2e.need("tshark")
    tap.run("case_L6__marked_ipv4", marked, 0)
    tap.run("case_119__marked_ipv6", marked, 1)
    tap.run("by_round_trip", by_round_trip)
    tap.run("peer_without", alone)
    for family, gid in (("ipv4", Namespaces.GID_V4), ("ipv6", Namespaces.GID_V6)):
        tap.run(f"case_L6__over_a_link_{family}", over_a_link, gid)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
