#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""Many processes on one address: hundreds; stopped ones; dead ones whose sockets a child keeps;
names and ports that others hold."""

import os
import re
import resource
import socket
import sys

import e2e
from e2e import Failed, demand, need_root

GID_V4, GID_V6 = 0, 1  # of lo
SLOTS = 1024
SERVED_TIMEOUT = 18  # whoever else died or was stopped: a request fails after 8 times 1.1 s
IDLE_SECONDS = 3
IDLE_CPU = 0.02  # of one CPU, all processes together


def crowd(first, pairs, rounds=2, idle=0, timeout=14, gid=GID_V4, before=(), env=None, limit=60):
    """CPU seconds while idle, and a note, which tells how long the slowest process took."""
    program = os.path.join(e2e.PROGRAMS, "crowd")
    words = [program, first, str(pairs), str(rounds), str(idle), str(timeout), str(gid)]
    with e2e.Process([*before, *e2e.on_nic(*words)], env=env) as process:
        text = process.expect(limit)
    match = re.search(r"slowest to be served [0-9.]+ s; idle CPU ([0-9.]+) s", text)
    demand(match and f"{2 * pairs} of {2 * pairs} processes done" in text, text)
    e2e.wait_until(lambda: "verbena/" not in names(), 5, "names to be free")
    return float(match.group(1)), text.strip()


def names():
    """Abstract unix names of this network namespace."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as rows:
        return rows.read()


def hundreds(pairs, first="plain"):
    # Loaded machines: ack timeouts of 2 s, not 67 ms. Who never runs in time takes long to find out
    # that the leader does not run at all.
    return crowd(first, pairs, rounds=5, timeout=19, limit=60 if pairs <= 100 else 120)[1]


def served(first, gid, **kwargs):
    """Whatever the first process does, others connect and move data before a request fails."""
    return crowd(first, 4, timeout=SERVED_TIMEOUT, gid=gid, **kwargs)[1]


def stopped_again_and_again(gid):
    """Without sockets for single flows all packets come by way of the leader."""
    return crowd("later", 4, 1000, gid=gid, timeout=16, env={"VERBENA_FLOWS": "0"})[1]


def each_stopped_in_turn(gid):
    """The leader, and members that are not, stop for a while one after the other."""
    return crowd("each", 4, 1000, gid=gid, timeout=16)[1]


def idle():
    """Connected processes that have nothing to do take no CPU time."""
    cpu, note = crowd("plain", 20, idle=IDLE_SECONDS)
    demand(cpu < IDLE_CPU * IDLE_SECONDS, f"{cpu} s of CPU time in {IDLE_SECONDS} s")
    return note


def few_descriptors():
    e2e.need("prlimit")
    few = ["prlimit", "--nofile=24:24"]
    return crowd("plain", 20, 5, timeout=17, before=few, env={"VERBENA_FLOWS": "0"})[1]


def does_not_open(*words):
    status, text, errors = e2e.run(e2e.on_nic("ibv_devinfo", "-d", "vb_lo"))
    demand(status != 0, f"opened all the same:\n{text}")
    for word in words:
        demand(word in errors, f"no '{word}' in the message:\n{errors}")
    return errors.strip().splitlines()[0]


def slots_taken():
    """All names of slots are somebody's: a clear message; one is free: it is found."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < SLOTS + 100:
        raise e2e.Skip(f"only {hard} descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = []
    try:
        for slot in range(SLOTS):
            held.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            held[-1].bind(f"\0verbena/slot/{slot}")
        note = does_not_open("1024", "verbena/slot/")
        held.pop(500).close()
        status, _, errors = e2e.run(e2e.on_nic("ibv_devinfo", "-d", "vb_lo"))
        demand(status == 0, f"a free slot was not found:\n{errors}")
        return note
    finally:
        for name in held:
            name.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def kernel_holds_the_port():
    """As when rdma_rxe is loaded: a socket of the kernel's own, here of a VXLAN interface."""
    need_root()
    e2e.need("ip")
    make = "link add vbvx type vxlan id 7 dstport 4791 local 127.0.0.1 dev lo".split()
    try:
        e2e.Namespaces.ip(*make)
        e2e.Namespaces.ip("link", "set", "vbvx", "up")
    except Failed as reason:
        raise e2e.Skip(f"no VXLAN here: {reason}") from None
    try:
        return does_not_open("4791", "the kernel")
    finally:
        e2e.run(["ip", "link", "delete", "vbvx"])


def cases(tap):
    tap.run("200_processes", hundreds, 100)
    tap.run("200_processes_the_first_stopped", hundreds, 100, "stopped")
    for name, gid in (("ipv4", GID_V4), ("ipv6", GID_V6)):
        tap.run(f"stopped_process_{name}", served, "stopped", gid)
        tap.run(f"parent_killed_after_fork_{name}", served, "orphan", gid)
        tap.run(f"parent_killed_after_raw_clone_{name}", served, "clone", gid)
        tap.run(f"stopped_again_and_again_{name}", stopped_again_and_again, gid)
        tap.run(f"each_stopped_in_turn_{name}", each_stopped_in_turn, gid)
    tap.run("idle", idle)
    tap.run("few_descriptors", few_descriptors)
    tap.run("slots_taken", slots_taken)
    tap.run("kernel_holds_the_port", kernel_holds_the_port)
    if e2e.LONG:
        tap.run("800_processes", hundreds, 400)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
