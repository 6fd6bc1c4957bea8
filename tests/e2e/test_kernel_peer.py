#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 600 s
"""The Linux kernel's soft-RoCE as peer, in an emulated guest: Debian's programs, a program that
checks every byte, small fixed exchanges, and connections by rdma_cm; our side client and server,
IPv4 and IPv6, path MTU 1024 and 4096, with and without faults. The two roles run side by side, each
in a thread and with a lane of the guest. `--write` writes the table of docs/interop.md."""

import collections
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

import e2e
import interop
import kernel_cm
import kernel_dialogues
import kernel_lab
from e2e import demand
from guest import Guest
from interop import Row

# Words of the command line: only cases with one of them in their names.
WANTED = [word for word in sys.argv[1:] if not word.startswith("-")]
# Not in the table: not run by every machine, or not every time.
UNTABLED = ("txfail", "VLAN")
# Code of half a second. On a busy machine an emulated guest now and then does nothing for as long
# as the usual 67 ms times 8: seen are gaps of 1 s, after which it answers everything at once.
ACK_TIMEOUT = "17"
# What our side is started with, and its name in the table.
BAD = ({"VERBENA_FAULT": "drop=1%,dup=1%,reorder=1%:200us,seed=5"}, "faults")
# Traffic class 3 is "congestion experienced": all that comes makes us send CNPs, which soft-RoCE does
# not know; nor does it know our probes of the round-trip time. Neither may do any harm.
CNPS = ({"VERBENA_CC": "dcqcn-paper"}, "CNPs")
PROBES = ({"VERBENA_CC": "ztr-target"}, "probes")
# GIDs: ours as address, the guest's as index.
GIDS = {
    "IPv4": (Guest.OUR_V4, Guest.GUEST_GID_V4),
    "IPv6": ("fd88::1", Guest.GUEST_GID_V6),
}
# Name, program and options, transport, IP, path MTU, what is set.
PROGRAMS = [
    ("pingpong", "ibv_rc_pingpong -n 50", "RC", "IPv4", 1024, None),
    ("pingpong", "ibv_rc_pingpong -n 50", "RC", "IPv6", 1024, None),
    ("pingpong_events", "ibv_rc_pingpong -n 20 -s 65536 -e", "RC", "IPv4", 4096, None),
    ("pingpong", "ibv_rc_pingpong -n 20", "RC", "IPv6", 4096, None),
    *(
        (f"{verb}_bw", f"ib_{verb}_bw -n 10 -s 65536", "RC", family, mtu, None)
        for verb in ("write", "read", "send")
        for family in GIDS
        for mtu in (1024, 4096)
    ),
    ("atomic_bw", "ib_atomic_bw -n 50 -A FETCH_AND_ADD", "RC", "IPv4", 4096, None),
    ("atomic_bw", "ib_atomic_bw -n 50 -A FETCH_AND_ADD", "RC", "IPv6", 1024, None),
    ("write_lat", "ib_write_lat -n 50 -s 8", "RC", "IPv4", 4096, None),
    ("read_lat", "ib_read_lat -n 50 -s 8", "RC", "IPv6", 4096, None),
    ("send_lat", "ib_send_lat -n 50 -s 16", "RC", "IPv4", 4096, None),
    ("atomic_lat", "ib_atomic_lat -n 20 -A CMP_AND_SWAP", "RC", "IPv4", 4096, None),
    ("write_bw_bad", "ib_write_bw -n 50 -s 16384", "RC", "IPv4", 1024, BAD),
    ("read_bw_bad", "ib_read_bw -n 30 -s 16384", "RC", "IPv4", 1024, BAD),
    ("send_bw_bad", "ib_send_bw -n 50 -s 16384", "RC", "IPv4", 1024, BAD),
    ("write_bw_cnps", "ib_write_bw -n 50 -s 16384 --tclass=3", "RC", "IPv4", 1024, CNPS),
    ("send_bw_cnps", "ib_send_bw -n 50 -s 16384 --tclass=3", "RC", "IPv6", 1024, CNPS),
    ("read_bw_probes", "ib_read_bw -n 50 -s 16384", "RC", "IPv4", 1024, PROBES),
    ("write_bw_probes", "ib_write_bw -n 50 -s 16384", "RC", "IPv6", 4096, PROBES),
    ("ud_pingpong", "ibv_ud_pingpong -n 50", "UD", "IPv4", 4096, None),
    ("ud_pingpong_events", "ibv_ud_pingpong -n 50 -e -s 4096", "UD", "IPv6", 4096, None),
    ("ud_send_lat", "ib_send_lat -n 50 -s 16 -c UD", "UD", "IPv4", 4096, None),
    ("ud_send_bw", "ib_send_bw -n 50 -s 1024 -c UD", "UD", "IPv4", 4096, None),
    ("uc_pingpong", "ibv_uc_pingpong -n 50", "UC", "IPv4", 1024, None),
    ("uc_send_lat", "ib_send_lat -n 50 -s 3000 -c UC", "UC", "IPv6", 1024, None),
    ("uc_send_bw", "ib_send_bw -n 50 -s 3000 -c UC", "UC", "IPv4", 1024, None),
    ("uc_write_bw", "ib_write_bw -n 50 -s 3000 -c UC", "UC", "IPv6", 4096, None),
    ("verify_rc", "verify_rc -n 1 -t " + ACK_TIMEOUT, "RC", "IPv4", 1024, None),
    ("verify_rc_bad", "verify_rc -n 1 -t " + ACK_TIMEOUT, "RC", "IPv6", 4096, BAD),
]


def program_row(name, line, transport, family, mtu, setting):
    words = line.split()
    what = words[0] + (" -e" if "-e" in words else "") + (f", {setting[1]}" if setting else "")
    return Row(what, transport, "TCP", family, mtu, name)


def check_congestion(we_are, line, setting, counters):
    """That there were CNPs and probes at all, and that nothing went wrong because of them."""
    count = collections.Counter()
    count.update({name: int(n) for name, n in re.findall(r"^(\w+) (\d+)\b", counters, re.M)})
    if setting is CNPS:
        demand(0 < count["np_cnp_sent"] <= count["np_ecn_marked_roce_packets"], counters)
        demand(count["rp_cnp_handled"] == 0, f"it knows CNPs?\n{counters}")
    if setting is PROBES:
        sends = (we_are == "client") != ("_read_" in line)
        demand(not sends or count["rp_rtt_probes"] > 0, counters)
        demand(count["rp_rtt_handled"] == 0, f"it answers probes?\n{counters}")


def program(play, we_are, what):
    _, line, transport, family, mtu, setting = what
    port = next(play.ports)
    name, *options = line.split()
    gids = GIDS[family]
    gid_option = "-x" if name.startswith("ib_") else "-g"
    options += ["-F", "-u", ACK_TIMEOUT] if name.startswith("ib_") else []
    options += ["-m", str(mtu)] if transport != "UD" else []
    here, there = (name, name)
    if name == "verify_rc":
        here, there = f"{e2e.PROGRAMS}/{name}", f"/mnt/{name}"
    tail = ["-p", str(port), *options]
    ours = [here, "-d", Guest.DEVICE, gid_option, str(play.gids[gids[0]]), *tail]
    theirs = ["timeout", "60", there, "-d", "rxe0", gid_option, str(gids[1]), *tail]
    if name.endswith("_pingpong") and "-e" not in options:
        theirs.append("-e")  # a guest that does not spin answers in time
    env = {"VERBENA_STATS": os.path.join(play.folder, f"{port}.stats")}
    env.update(setting[0] if setting else {})
    status, text, other, told = play.guest.pair(we_are, ours, " ".join(theirs), port, env)
    both = f"--- we printed\n{text}\n--- the guest printed\n{told}"
    with open(env["VERBENA_STATS"], encoding="ascii") as file:
        counters = file.read()
    demand(status == 0 and other == 0, f"exit codes {status}, {other}\n{both}\n{counters}")
    wrong = kernel_dialogues.BAD_COUNTERS.findall(counters)
    demand(not wrong, f"counted: {wrong}\n{counters}")
    check_congestion(we_are, line, setting, counters)
    if name == "verify_rc":
        demand("all right" in text and "all right" in told, both)


def exchange_row(name):
    """Of a fixed exchange; its name says what is not as usual."""
    mtu = re.search(r"-mtu(\d+)", name)
    family = "IPv6" if "-ipv6" in name else "IPv4"
    what = "exchange " + re.sub(r"-mtu\d+|-ipv6", "", name).replace("_", ", ")
    return Row(what, "RC", "TCP", family, int(mtu.group(1)) if mtu else 1024, name)


class Lanes:
    """Both roles side by side. The cases are reported as they end."""

    def __init__(self, tap, table, play):
        self.tap, self.table, self.play = tap, table, play
        self.lock = threading.Lock()

    def case(self, we_are, row, function, *args, **kwargs):
        plain = row.case and row.by == "TCP" and row.what.startswith("exchange")
        name = f"{row.case if plain else row.name()}_{we_are}"
        if WANTED and not any(word in name for word in WANTED):
            return
        begun = time.monotonic()
        try:
            note, problem = function(*args, **kwargs), None
        except (e2e.Failed, e2e.Skip, OSError, subprocess.SubprocessError) as reason:
            note, problem = None, reason
        seconds = time.monotonic() - begun

        def report():
            if problem:
                raise problem
            return note or (f"{seconds:.1f} s" if seconds > 5 else None)

        with self.lock:
            if self.tap.run(name, report) and not row.what.endswith(UNTABLED):
                self.table.add(row, we_are)

    def lane(self, we_are, mtu):
        def run(row, function, *args, **kwargs):
            row = exchange_row(row) if isinstance(row, str) else row
            self.case(we_are, row, function, *args, **kwargs)

        if mtu == 4096:
            # The exchanges first: their ack timeouts bear a guest that does something for the
            # first time.
            kernel_dialogues.cases(run, self.play, we_are)
            for what in PROGRAMS:
                run(program_row(*what), program, self.play, we_are, what)
        kernel_cm.cases(run, self.play, we_are, mtu)

    def phase(self, mtu):
        threads = [
            threading.Thread(target=self.lane, args=(role, mtu), daemon=True)
            for role in Guest.LANES
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def both_roles(tap, guest, folder, write):
    play = kernel_dialogues.Play(guest, folder)
    kernel_dialogues.prepare_loss(guest)
    table = interop.Table("kernel")
    lanes = Lanes(tap, table, play)
    lanes.phase(4096)
    for role in Guest.LANES:
        row = Row("exchange rc-send, VLAN", "RC", "TCP", "IPv4", 1024, "rc-send-vlan")
        lanes.case(role, row, kernel_dialogues.vlan, play, role)
    kernel_cm.path_mtu(guest, 1024)
    lanes.phase(1024)
    row = Row("the guest restarts unnoticed", "RC", "rdma_cm", "IPv4", 1024, "rping stale")
    lanes.case("server", row, kernel_cm.guest_restarted, play)
    if not WANTED:
        tap.run("table", table.write if write else table.check)


def lab(tap, guest):
    def case(name, *args):
        if not WANTED or any(word in name for word in WANTED):
            tap.run(name, *args)

    kernel_lab.cases(case, guest)


def cases(tap):
    def whole():
        with Guest() as guest, tempfile.TemporaryDirectory() as folder:
            lab(tap, guest)
            both_roles(tap, guest, folder, "--write" in sys.argv[1:])

    tap.run("guest", whole)


if __name__ == "__main__":
    sys.exit(e2e.main(cases, isolated=False))
