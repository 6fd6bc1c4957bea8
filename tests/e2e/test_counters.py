#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 180 s
"""case L8 live: over a bad network, the counters of both ends are what their captures show.

Only one end's packets meet the bad network, so that the capture of the other has all that it sent;
what reaches an end is always in its capture. tshark reads the packets, and one small model for
WRITEs and one for READs says what each end should have counted.
"""

import os
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass

import e2e
import roce_pcap
from e2e import Side, demand, perftest

HOST = "127.0.0.1"
IPV6 = 1  # GID index: an ICRC over IPv6 is checked in full
BAD = "drop=3%,dup=2%,reorder=3%:100us,corrupt=1%"
FIELDS = ("infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.bth.destqp")
FIELDS += ("infiniband.aeth.syndrome", "infiniband.reth.dmalen", "ipv6.tclass.ecn")
FIELDS += ("frame.time_epoch",)
RESPONSES = range(0x0D, 0x13)
ACK, READ_REQUEST, CNP = 0x11, 0x0C, 0x81
CE = 3  # of the two ECN bits of the traffic class
SEQUENCE_NAK = 0x60
SERVER, CLIENT = 0, 1
MTU = 1024
PSNS = 1 << 24
# perftest's default of 67 ms for the ACK timer is a time for which a busy machine may let a process
# wait. What a NAK causes follows at once.
ACK_TIMER = ("-u", "16")  # 268 ms
SILENCE_SECONDS = 0.13
NAMES = ("out_of_sequence", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err")
NAMES += ("duplicate_request", "rx_icrc_encapsulated", "np_cnp_sent")
NAMES += ("np_ecn_marked_roce_packets",)
# What is in the capture of what came, but counted as this: the QP was not there (any more), or the
# corrupt byte was in the headers, so that nobody asked for the ICRC.
OTHERWISE = ("rx_drop_no_qp", "rx_drop_state", "udp_rx_drop_bad_opcode", "udp_rx_drop_bad_tver")
OTHERWISE += ("udp_rx_drop_bad_length", "udp_rx_drop_too_short")


@dataclass
class Row:
    opcode: int
    psn: int
    qpn: int
    syndrome: int
    length: int
    ecn: int
    time: float
    good: bool

    def is_response(self):
        return self.opcode in RESPONSES

    def psns(self):
        return max(1, -(-self.length // MTU)) if self.opcode == READ_REQUEST else 1


def rows(path):
    """The packets as tshark tells them, with our own verdict on the ICRC."""
    command = ["tshark", "-r", path, "-T", "fields"]
    for field in FIELDS:
        command += ["-e", field]
    status, text, errors = e2e.run(command)
    demand(status == 0, f"tshark: exit code {status}: {errors}")
    packets = roce_pcap.read(path)
    lines = text.splitlines()
    demand(len(lines) == len(packets), f"tshark sees {len(lines)} of {len(packets)} packets")
    found = []
    for line, packet in zip(lines, packets):
        *numbers, time = (line.split("\t") + [""] * len(FIELDS))[: len(FIELDS)]
        values = [int(word, 0) if word else 0 for word in numbers]
        found.append(Row(*values, float(time), packet.icrc_ok))
    return found


def count_each(seen, arrived):
    """What is counted packet by packet; the good ones are returned."""
    seen["rx_icrc_encapsulated"] = sum(not row.good for row in arrived)
    good = [row for row in arrived if row.good]
    seen["np_ecn_marked_roce_packets"] = sum(row.ecn == CE for row in good)
    return good


def count_requests(arrived):
    """At the end that answers: requests ahead of and behind what is expected."""
    seen = Counter()
    arrived = count_each(seen, arrived)
    expected = min((row.psn for row in arrived), key=lambda p: (p - arrived[0].psn + 99) % PSNS)
    for row in arrived:
        ahead = (row.psn - expected) % PSNS
        if ahead == 0:
            expected = (expected + row.psns()) % PSNS
        else:
            seen["out_of_sequence" if ahead < PSNS // 2 else "duplicate_request"] += 1
    return seen


def count_responses(arrived, first, reads, timeouts):
    """At the end that asks: NAKs, and responses to READs beyond the one that is due, once a gap (a
    timeout begins another one)."""
    seen = Counter()
    arrived = count_each(seen, arrived)
    due, noticed = first, False
    timeouts = list(timeouts)
    for row in arrived:
        while timeouts and timeouts[0] < row.time:
            noticed = False
            timeouts.pop(0)
        seen["packet_seq_err"] += row.opcode == ACK and row.syndrome == SEQUENCE_NAK
        ahead = (row.psn - due) % PSNS
        if not reads or ahead >= PSNS // 2:
            continue
        if ahead == 0:
            due, noticed = (due + 1) % PSNS, False
        else:
            seen["implied_nak_seq_err"] += not noticed
            noticed = True
    return seen


def find_timeouts(all_rows, is_sent):
    """When an end that sends over a good network goes back out of silence."""
    timeouts, end, last = [], None, None
    for row in sorted(all_rows, key=lambda row: row.time):
        if is_sent(row):
            back = end is not None and (row.psn - end) % PSNS >= PSNS // 2
            if back and row.time - last > SILENCE_SECONDS:
                timeouts.append(row.time)
            end = (row.psn + row.psns()) % PSNS
        last = row.time
    return timeouts


def counted(path):
    with open(path, encoding="ascii") as lines:
        return Counter({line.split()[0]: int(line.split()[1]) for line in lines})


def compare(side, counters, seen, names=NAMES):
    slack = sum(counters[name] for name in OTHERWISE)
    for name in names:
        demand(
            counters[name] <= seen[name] <= counters[name] + slack,
            f"{side}: {name} is {counters[name]}, the capture shows {seen[name]} (or {slack} less)",
        )
    return f"{side}: " + ", ".join(f"{counters[name]} {name}" for name in names if counters[name])


def run_pair(folder, faulty, program, size, iterations, *words):
    """(rows, counters) of server and client."""
    e2e.need("tshark")
    sides, results = [], []
    for index, name in enumerate(("server", "client")):
        path = os.path.join(folder, name)
        options = ["--pcap", path + ".pcap"]
        if index == faulty:
            options += ["--fault", BAD + ",seed=5"]
        sides.append(Side(gid=IPV6, options=options, env={"VERBENA_STATS": path + ".stats"}))
        results.append(path)
    words = ["-m", str(MTU), *ACK_TIMER, *words]
    perftest(*sides, HOST, program, *words, size=size, iterations=iterations, limit_seconds=120)
    return [(rows(path + ".pcap"), counted(path + ".stats")) for path in results]


def check(results, faulty, reads, timeouts):
    (server, server_counters), (client, client_counters) = results
    asked = Counter(row.qpn for row in client if not row.is_response())
    target = asked.most_common(1)[0][0]
    first = next(row for row in client if row.qpn == target and row.good)
    own = Counter(row.qpn for row in client if row.qpn != target).most_common(1)[0][0]
    # The byte that is corrupt may be one of the QPN: what the faulty end sends goes by no QPN.
    if faulty == CLIENT:
        at_server = [row for row in server if row.qpn != own]
        at_client = [row for row in client if row.qpn == own]
    else:
        at_server = [row for row in server if row.qpn == target]
        at_client = [row for row in client if row.qpn != target]
    cnps = sum(row.opcode == CNP for row in server + client)
    demand(cnps == 0, f"{cnps} CNPs")  # np_cnp_sent is compared with 0
    at_server = count_requests(at_server)
    times = find_timeouts(client, lambda row: row.qpn == target)
    at_client = count_responses(at_client, first.psn, reads, times)
    names = list(NAMES)
    if timeouts:
        at_client["local_ack_timeout_err"] = len(times)
    else:  # of a packet sent again and lost the capture shows nothing
        names.remove("local_ack_timeout_err")
    text = compare("server", server_counters, at_server)
    return at_server, at_client, f"{text}; {compare('client', client_counters, at_client, names)}"


def requests_lost():
    with tempfile.TemporaryDirectory() as folder:
        results = run_pair(folder, CLIENT, "ib_write_bw", 8192, 400)
        at_server, at_client, text = check(results, CLIENT, reads=False, timeouts=False)
    for name in ("out_of_sequence", "duplicate_request", "rx_icrc_encapsulated"):
        demand(at_server[name] > 0, f"no {name}: {text}")
    demand(at_client["packet_seq_err"] > 0, f"no packet_seq_err: {text}")
    return text


def responses_lost():
    with tempfile.TemporaryDirectory() as folder:
        results = run_pair(folder, SERVER, "ib_read_bw", 8192, 150)
        at_server, at_client, text = check(results, SERVER, reads=True, timeouts=True)
    for name in ("implied_nak_seq_err", "rx_icrc_encapsulated"):
        demand(at_client[name] > 0, f"no {name}: {text}")
    demand(at_server["duplicate_request"] > 0, f"no duplicate_request: {text}")
    return text


def no_faults():
    """A busy machine may lose packets all the same."""
    with tempfile.TemporaryDirectory() as folder:
        results = run_pair(folder, None, "ib_write_bw", 8192, 100)
        return check(results, None, reads=False, timeouts=True)[2]


def marked():
    """Every packet goes out with the mark that says that the network is congested."""
    with tempfile.TemporaryDirectory() as folder:
        results = run_pair(folder, None, "ib_read_bw", 8192, 50, f"--tclass={CE}")
        at_server, at_client, text = check(results, None, reads=True, timeouts=True)
    for seen in (at_server, at_client):
        demand(seen["np_ecn_marked_roce_packets"] >= 50, f"too few CE marks: {text}")
    return text


def cases(tap):
    tap.run("case_L8__no_faults", no_faults)
    tap.run("case_L8__marked", marked)
    tap.run("case_L8__requests_lost", requests_lost)
    tap.run("case_L8__responses_lost", responses_lost)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
