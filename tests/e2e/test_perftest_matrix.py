#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 600 s
"""The whole matrix of Debian's perftest on 127.0.0.1: every program with every transport, each once
plain and once with each option; and the pingpongs of ibverbs-utils. What perftest itself refuses is
no row: it is tried, and named with perftest's own words. A word on the command line chooses the
rows with it in their names.

Before it prints a row of bandwidths perftest measures the CPU's clock for a fifth of a second, at
both ends; so all sizes of each bandwidth program are for check-long, those of five for every day.
Latencies are asked for in cycles (-C), which need no clock.
"""

import sys

import e2e
from e2e import Side, demand, need, perftest_rows

HERE = Side("vb_lo", 0)
HOST = "127.0.0.1"
VERBS = ("write", "send", "read", "atomic")
KINDS = ("bw", "lat")
TRANSPORTS = ("RC", "UC", "UD", "XRC")
OPTIONS = {
    "plain": (),
    "srq": ("--use-srq",),
    "events": ("-e",),
    "all_sizes": ("-a",),
    "both_ways": ("-b",),
    "4_qps": ("-q", "4"),
    "inline": ("-I", "64"),
    "cas": ("-A", "CMP_AND_SWAP"),
    "faa": ("-A", "FETCH_AND_ADD"),
}
ITERATIONS = 20
MANY = 1000
EVERY_DAY = ("rc_read_bw", "uc_send_bw", "uc_write_bw", "ud_send_bw", "xrc_send_bw")
LARGEST = {"UD": 4096, "others": 1 << 23}  # of -a
LEAST = 5  # iterations that perftest takes


def refusal(verb, kind, transport, option):
    """What perftest answers, None when it takes the row."""
    if transport == "UD" and verb != "send":
        return "UD connection only possible in SEND verb"
    if transport == "UC" and verb in ("read", "atomic"):
        return "UC connection not possible in READ/ATOMIC verbs"
    if option == "srq" and verb != "send":
        return "Using SRQ only avavilible in SEND tests"
    if option == "events" and verb == "write":
        return "Events feature not available on WRITE verb"
    if option in ("cas", "faa") and verb != "atomic":
        return "You are not running the atomic_lat/bw test"
    if option == "all_sizes" and verb == "atomic":
        return "Message size cannot be changed for Atomic tests"
    if option == "both_ways" and kind == "lat":
        return "Bidirectional is only available in BW test"
    if option == "4_qps" and kind == "lat":
        return "Multiple QPs only available on bw tests"
    if option == "inline" and verb in ("read", "atomic"):
        return "Inline feature not available on READ/Atomic verbs"
    return None


def sizes(verb, transport, option):
    if verb == "atomic":
        return [8]
    if option == "all_sizes":
        last = LARGEST.get(transport, LARGEST["others"])
        return [1 << power for power in range(1, last.bit_length())]
    if option == "inline":
        return [64]
    return [4096]


def row(verb, kind, transport, option):
    program = f"ib_{verb}_{kind}"
    port = e2e.free_port()
    wanted = sizes(verb, transport, option)
    iterations = LEAST if option == "all_sizes" else ITERATIONS
    # An ACK behind the answer that the peer sent later shows in some of many rounds only.
    iterations = MANY if (kind, option) == ("lat", "events") else iterations
    command = [program, "-d", HERE.device, "-x", str(HERE.gid), "-p", str(port), "-F"]
    command += ["-c", transport, "-n", str(iterations), *OPTIONS[option]]
    command += ["-C"] if kind == "lat" else []
    command += ["-s", str(wanted[0])] if verb != "atomic" and option != "all_sizes" else []
    # Where one receive queue serves, perftest wants it to be named for XRC as well.
    command += ["--use-srq"] if (verb, transport) == ("send", "XRC") and option != "srq" else []
    _, told = e2e.pair(HERE, HERE, command, [*command, HOST], port)
    rows = perftest_rows(told, 5 if kind == "bw" else 9)
    demand([int(r[0]) for r in rows] == wanted, f"sizes {[r[0] for r in rows]}: {told}")
    least = iterations * (4 if option == "4_qps" else 1)
    demand(all(r[1] >= least for r in rows), f"iterations {[r[1] for r in rows]}, not {least}")
    return None


def refused(rows):
    """perftest says so on its own, before it has talked to anybody."""
    for verb, kind, transport, option in rows:
        program = f"ib_{verb}_{kind}"
        command = [program, "-d", HERE.device, "-x", "0", "-F", "-c", transport, *OPTIONS[option]]
        status, said, errors = e2e.run(e2e.on_nic(*command), 10)
        reason = refusal(verb, kind, transport, option)
        demand(status != 0 and reason in said + errors, f"{command}: {status}: {said}{errors}")
        print(f"# refused by perftest: {' '.join(command[5:])} ({program}): {reason}")


PINGPONGS = {
    "rc": (("plain",), ("events", "-e"), ("on_demand", "-o")),
    "uc": (("plain",), ("events", "-e")),
    "ud": (("plain", "-s", "2048"), ("events", "-e", "-s", "2048")),
    "srq": (("plain",), ("events", "-e"), ("2_qps", "-q", "2"), ("on_demand", "-o")),
    "xsrq": (("plain",), ("events", "-e")),
}


def pingpong(kind, *options):
    """Each looks whether the other's bytes came."""
    port = e2e.free_port()
    command = [f"ibv_{kind}_pingpong", "-d", HERE.device, "-g", str(HERE.gid), "-p", str(port)]
    command += ["-n", "50", *options, *(["-c"] if kind != "xsrq" else [])]
    said, told = e2e.pair(HERE, HERE, command, [*command, HOST], port)
    done = "success" if kind == "xsrq" else "usec/iter"
    demand(done in said and done in told, said + told)
    demand("invalid data" not in said + told, said + told)


def pingpongs(tap, words):
    for kind, rows in PINGPONGS.items():
        for option, *options in rows:
            name = f"pingpong_{kind}_{option}"
            if all(w in name for w in words):
                tap.run(name, pingpong, kind, *options)


def cases(tap):
    need("ib_send_bw", "ibv_rc_pingpong")
    words = sys.argv[1:]
    every = [(v, k, t, o) for v in VERBS for k in KINDS for t in TRANSPORTS for o in OPTIONS]
    for verb, kind, transport, option in every:
        program = f"{transport.lower()}_{verb}_{kind}"
        name = f"{program}_{option}"
        late = option == "all_sizes" and kind == "bw" and program not in EVERY_DAY
        wanted = all(w in name for w in words) if words else e2e.LONG or not late
        if refusal(verb, kind, transport, option) is None and wanted:
            tap.run(name, row, verb, kind, transport, option)
    pingpongs(tap, words)
    if not words:
        tap.run("refused", refused, [r for r in every if refusal(*r) is not None])


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
