#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 300 s
"""The Linux kernel's soft-RoCE as peer, in an emulated guest: Debian's programs, a program that
checks every byte, and small fixed exchanges; our side client and server, IPv4 and IPv6, with and
without faults. The two roles run side by side, each in a thread and with a lane of the guest."""

import os
import subprocess
import sys
import tempfile
import threading

import e2e
import kernel_dialogues
from e2e import demand
from guest import Guest

# Code of half a second. On a busy machine an emulated guest now and then does nothing for as long
# as the usual 67 ms times 8: seen are gaps of 1 s, after which it answers everything at once.
ACK_TIMEOUT = "17"
BAD = "drop=1%,dup=1%,reorder=1%:200us"
# Name, program and options, GIDs (ours as address, the guest's as index), faults.
V4, V6 = (Guest.OUR_V4, Guest.GUEST_GID_V4), ("fd88::1", Guest.GUEST_GID_V6)
PROGRAMS = [
    ("pingpong", "ibv_rc_pingpong -n 50", V4, None),
    ("pingpong_ipv6", "ibv_rc_pingpong -n 50", V6, None),
    ("pingpong_events_mtu_4096", "ibv_rc_pingpong -n 20 -s 65536 -e -m 4096", V4, None),
    ("write_bw_mtu_1024", "ib_write_bw -n 50 -s 65536 -m 1024", V4, None),
    ("write_bw_mtu_4096_ipv6", "ib_write_bw -n 50 -s 65536 -m 4096", V6, None),
    ("read_bw", "ib_read_bw -n 20 -s 65536", V4, None),
    ("send_bw", "ib_send_bw -n 50 -s 8192", V4, None),
    ("send_lat", "ib_send_lat -n 50 -s 16", V4, None),
    ("write_lat", "ib_write_lat -n 50 -s 8", V4, None),
    ("atomic_lat", "ib_atomic_lat -n 20 -A CMP_AND_SWAP", V4, None),
    ("atomic_bw", "ib_atomic_bw -n 50 -A FETCH_AND_ADD", V4, None),
    ("write_bw_bad", "ib_write_bw -n 50 -s 16384 -m 1024", V4, BAD),
    ("read_bw_bad", "ib_read_bw -n 30 -s 16384 -m 1024", V4, BAD),
    ("send_bw_bad", "ib_send_bw -n 50 -s 16384 -m 1024", V4, BAD),
    ("ud_pingpong", "ibv_ud_pingpong -n 50", V4, None),
    ("ud_pingpong_ipv6_events", "ibv_ud_pingpong -n 50 -e -s 4096", V6, None),
    ("ud_send_lat", "ib_send_lat -n 50 -s 16 -c UD", V4, None),
    ("ud_send_bw", "ib_send_bw -n 50 -s 1024 -c UD", V4, None),
    ("verify_rc", "verify_rc -n 1 -t " + ACK_TIMEOUT, V4, None),
    ("verify_rc_bad_ipv6", "verify_rc -n 1 -m 4096 -t " + ACK_TIMEOUT, V6, BAD),
]


def program(play, we_are, line, gids, fault):
    port = next(play.ports)
    name, *options = line.split()
    gid_option = "-x" if name.startswith("ib_") else "-g"
    options += ["-F", "-u", ACK_TIMEOUT] if name.startswith("ib_") else []
    here, there = (name, name)
    if name == "verify_rc":
        here, there = f"{e2e.PROGRAMS}/{name}", f"/mnt/{name}"
    tail = ["-p", str(port), *options]
    ours = [here, "-d", Guest.DEVICE, gid_option, str(play.gids[gids[0]]), *tail]
    theirs = ["timeout", "60", there, "-d", "rxe0", gid_option, str(gids[1]), *tail]
    if name.endswith("_pingpong") and "-e" not in options:
        theirs.append("-e")  # a guest that does not spin answers in time
    env = {"VERBENA_STATS": os.path.join(play.folder, f"{port}.stats")}
    env.update({"VERBENA_FAULT": f"{fault},seed=5"} if fault else {})
    status, text, other, told = play.guest.pair(we_are, ours, " ".join(theirs), port, env)
    both = f"--- we printed\n{text}\n--- the guest printed\n{told}"
    with open(env["VERBENA_STATS"], encoding="ascii") as file:
        counters = file.read()
    demand(status == 0 and other == 0, f"exit codes {status}, {other}\n{both}\n{counters}")
    wrong = kernel_dialogues.BAD_COUNTERS.findall(counters)
    demand(not wrong, f"counted: {wrong}\n{counters}")
    if name == "verify_rc":
        demand("all right" in text and "all right" in told, both)


def lane(tap, lock, play, we_are):
    """Everything in one role. The cases of both roles are reported as they end."""

    def run(name, function, *args, **kwargs):
        try:
            note, problem = function(*args, **kwargs), None
        except (e2e.Failed, e2e.Skip, OSError, subprocess.SubprocessError) as reason:
            note, problem = None, reason

        def report():
            if problem:
                raise problem
            return note

        with lock:
            tap.run(f"{name}_{we_are}", report)

    # The exchanges first: their ack timeouts bear a guest that does something for the first time.
    kernel_dialogues.cases(run, play, we_are)
    for name, *what in PROGRAMS:
        run(name, program, play, we_are, *what)


def both_roles(tap, guest, folder):
    play = kernel_dialogues.Play(guest, folder)
    kernel_dialogues.prepare_loss(guest)
    lock = threading.Lock()
    threads = [
        threading.Thread(target=lane, args=(tap, lock, play, role), daemon=True)
        for role in Guest.LANES
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for role in Guest.LANES:
        tap.run(f"rc-send-vlan_{role}", kernel_dialogues.vlan, play, role)


def cases(tap):
    def whole():
        with Guest() as guest, tempfile.TemporaryDirectory() as folder:
            both_roles(tap, guest, folder)

    tap.run("guest", whole)


if __name__ == "__main__":
    sys.exit(e2e.main(cases, isolated=False))
