#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench_lab.py tells perftest the lab's settings, and believes it only what it prints: whatever
differs, or is not said, ends the comparison."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../scripts"))
import bench_lab  # noqa: E402
from results import report  # noqa: E402

TRIAL = {"rounds": 5000, "size": 4096, "mtu_bytes": 4096, "depth": 64, "signal_every": 16,
         "outstanding_reads": 16, "receives": 160, "inline_bytes": 0}
# As perftest prints them; the target alone tells of its receives.
SAID = """
 Dual-port       : OFF\t\tDevice         : vb_lo
 Number of qps   : 1\t\tTransport type : IB
 RX depth        : 160
 TX depth        : {depth}
 CQ Moderation   : {moderation}
 Mtu             : {mtu}[B]
 Outstand reads  : {reads}
 Max inline data : {inline}[B]
 local address: LID 0000 QPN 0xc35fbf PSN 0xbf734a OUT 0x80 RKey 0x9e70c4c2
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:127:00:00:01
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 {size}       {rounds}             5.01             4.25               0.129697
"""
SAME = {"depth": 64, "moderation": 16, "mtu": 4096, "reads": 16, "inline": 0, "size": 4096,
        "rounds": 5000}
CASES = [  # what perftest says otherwise, and what differs for which program
    ("same_write", "ib_write_bw", {}, ""),
    ("same_read", "ib_read_bw", {}, ""),
    ("same_send", "ib_send_bw", {}, ""),
    ("foreign_reads", "ib_write_bw", {"reads": 128}, ""),
    ("foreign_inline", "ib_read_bw", {"inline": 220}, ""),
    ("foreign_moderation", "ib_read_lat", {"moderation": 1}, ""),
    ("moderation", "ib_write_bw", {"moderation": 64}, "signal_every is 16 in the lab"),
    ("depth", "ib_write_bw", {"depth": 128}, "depth is 64"),
    ("reads", "ib_read_bw", {"reads": 128}, "outstanding_reads is 16"),
    ("mtu", "ib_send_bw", {"mtu": 1024}, "mtu_bytes is 4096"),
    ("inline", "ib_send_lat", {"inline": 220}, "inline_bytes is 0"),
    ("size", "ib_read_bw", {"size": 65536}, "size is 4096"),
    ("rounds", "ib_atomic_lat", {"rounds": 1000}, "rounds is 5000"),
]
WORDS = [  # each setting is asked for where the program has it, and no others are
    ("ib_write_bw", "-n 5000 -s 4096 -m 4096 -t 64 -Q 16 -I 0"),
    ("ib_read_bw", "-n 5000 -s 4096 -m 4096 -t 64 -Q 16 -o 16"),
    ("ib_send_bw", "-n 5000 -s 4096 -m 4096 -t 64 -Q 16 -r 160 -I 0"),
    ("ib_write_lat", "-n 5000 -s 4096 -m 4096 -I 0"),
    ("ib_atomic_lat", "-n 5000 -m 4096 -o 16"),
]


def differences(program, said):
    printed, result = bench_lab.read_printed(said)
    return bench_lab.differences(program, TRIAL, printed), result


def check_said(program, other, says):
    found, result = differences(program, SAID.format(**{**SAME, **other}))
    right = len(found) == (1 if says else 0) and "".join(found).startswith(says)
    return right and len(result) == 5 and result[3] == "4.25", f"{found} {result}"


def check_unsaid():
    """What is not said is not the same: a line may have another name in the next version."""
    lines = SAID.format(**SAME).splitlines()
    for line in lines[3:8]:
        program = "ib_read_bw" if "reads" in line else "ib_send_bw"
        found, _ = differences(program, "\n".join(x for x in lines if x != line))
        if len(found) != 1 or not found[0].endswith("nothing"):
            return False, f"{line}: {found}"
    return True, ""


def check_words(program, wanted):
    words = " ".join(bench_lab.words_for(program, TRIAL))
    return words == wanted, words


def check_rows():
    """Each row's size is of one run of the lab."""
    sizes = [size for run in bench_lab.RUNS for size in run]
    wanted = {row[1] for row in bench_lab.ROWS}
    return len(sizes) == len(set(sizes)) and wanted == set(sizes), f"{sizes} {wanted}"


INTERVALS = [  # rounds' ratios, and what is said of them
    ([1.1], "too few rounds"),
    ([0.9, 1.0, 1.1, 1.2], "too few rounds"),
    ([1.3, 0.8, 1.1, 1.2, 1.4], "0.80 to 1.40  yes"),
    ([1.3, 1.01, 1.1, 1.2, 1.4], "1.01 to 1.40  no"),
    ([0.9, 0.7, 0.8, 0.99, 0.6], "0.60 to 0.99  no"),
    # of 8 rounds the second and the last but one: one outlier decides nothing
    ([0.1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7], "1.10 to 1.60  no"),
]


def check_interval(ratios, wanted):
    said = bench_lab.agreement(ratios)
    return said == wanted, said


def main():
    results = [(name, *check_said(*case)) for name, *case in CASES]
    results += [(f"words_{program}", *check_words(program, wanted)) for program, wanted in WORDS]
    results += [("unsaid", *check_unsaid()), ("rows", *check_rows())]
    results += [(f"interval_{number}", *check_interval(*case))
                for number, case in enumerate(INTERVALS)]
    return report(results)


if __name__ == "__main__":
    sys.exit(main())
