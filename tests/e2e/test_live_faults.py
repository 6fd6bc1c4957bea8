#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 180 s
"""Processes that die, stop, fork or lack something in mid-stream: what the others see, and what
remains. docs/reliability.md has a row for each case; test_live_network.py has the network's."""

import os
import signal
import sys
import time

import e2e
import stream
from e2e import demand, wait_until
from stream import LONG, LONGEST, RETRY, SHORT

STOPPED_SECONDS = 10


def peer_killed(place, operation):
    active, passive = place.pair(operation)
    active.tell("start")
    active.goes_on()
    passive.kill()
    seconds = active.fails()
    active.close()
    place.nothing_left()
    return f"{RETRY} after {seconds} s"


def peer_killed_idle(place):
    """An idle connection does not notice; the first request does."""
    active, passive = place.pair("write")
    passive.kill()
    active.query()
    active.silent()
    active.tell("start")
    active.fails()
    active.close()
    place.nothing_left()


def peer_killed_with_receives(place):
    """Who only waits for messages is told nothing; its receives come back when it asks."""
    active, passive = place.pair("send")
    active.tell("start")
    passive.goes_on()
    active.kill()
    passive.query()
    passive.silent()
    passive.tell("err")
    passive.expect_line(r"flushed 8 state 6")
    passive.close()
    place.nothing_left()


def stopped(process):
    """For ten seconds; they are what is tested."""
    process.signal(signal.SIGSTOP)
    time.sleep(STOPPED_SECONDS)
    process.signal(signal.SIGCONT)


def peer_stopped_within_retries(place):
    active, passive = place.pair("write", timeout=LONGEST)
    active.tell("start")
    active.goes_on()
    stopped(passive)
    active.goes_on()
    active.silent()
    active.stop_stream()
    active.close()
    passive.close()
    place.nothing_left()


def peer_stopped_beyond_retries(place):
    active, passive = place.pair("write", timeout=SHORT)
    active.tell("start")
    active.goes_on()
    passive.signal(signal.SIGSTOP)
    begun = time.monotonic()
    active.fails(limit=STOPPED_SECONDS)
    wait_until(lambda: time.monotonic() > begun + STOPPED_SECONDS, STOPPED_SECONDS + 5)
    passive.signal(signal.SIGCONT)
    passive.query()
    passive.silent()
    place.reconnect(active, passive)
    active.tell("start")
    active.goes_on()
    active.stop_stream()
    active.close()
    passive.close()
    place.nothing_left()


def stopped_itself(place):
    """Its timers do not count the time in which it did not run."""
    active, passive = place.pair("write", timeout=SHORT)
    active.tell("start")
    active.goes_on()
    stopped(active)
    active.goes_on()
    active.silent()
    passive.silent()
    active.stop_stream()
    active.close()
    passive.close()
    place.nothing_left()


def leader_killed(place):
    """The first process has the part that passes packets on; all others' come by way of it."""
    no_flows = {"env": {"VERBENA_FLOWS": "0"}}
    leader, _ = place.pair("write", alone=True, gid=0, active=no_flows, passive=no_flows)
    pairs = [
        place.pair("write", alone=True, gid=0, timeout=16, active=no_flows, passive=no_flows)
        for _ in range(3)
    ]
    for active, _ in pairs:
        active.tell("start")
    for active, _ in pairs:
        active.goes_on()
    leader.kill()
    for active, _ in pairs:
        active.goes_on()
    for active, passive in pairs:
        active.stop_stream()
        active.silent()
        active.close()
        passive.close()


def one_of_many_stopped(place, flows):
    """Its socket is full; what goes to the others on its address is not held up."""
    how = {"env": {"VERBENA_FLOWS": flows}}
    # Without sockets for flows much is lost, and each loss costs an ack timeout: a short one.
    pairs = [place.pair("push", timeout=LONG, active=how, passive=how)]
    pairs += [place.pair("write", timeout=SHORT, active=how, passive=how) for _ in range(3)]
    for active, _ in pairs:
        active.tell("start")
    for active, _ in pairs:
        active.goes_on()
    pairs[0][1].signal(signal.SIGSTOP)
    for active, _ in pairs[1:]:
        active.goes_on(blocks=400)
    pairs[0][1].signal(signal.SIGCONT)
    for active, passive in pairs:
        active.goes_on()
        active.stop_stream()
        active.silent()
        active.close()
        passive.close()
    place.nothing_left()


def forks_in_mid_stream(place):
    """The child holds nothing of the network, and the parent's stream goes on."""
    active, passive = place.pair("write")
    active.tell("start")
    active.goes_on()
    active.tell("fork")
    child = int(active.expect_line(r"child (\d+)")[1])
    active.goes_on()
    links = [os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")]
    sockets = [link for link in links if link.startswith("socket:")]
    demand(len(sockets) <= 1, f"the child holds {links}")  # the pair's own connection
    demand(not any("eventpoll" in link for link in links), f"the child holds {links}")
    active.stop_stream()
    active.close()
    passive.close()


def execs_in_mid_stream(place):
    """What it becomes holds nothing of the network; others on the address are served."""
    active, passive = place.pair("write")
    active.tell("start")
    active.goes_on()
    passive.tell("exec")
    active.fails()
    demand("sleep" in e2e.run(["cat", f"/proc/{passive.pid}/cmdline"])[1], "no exec")
    active.close()
    place.nothing_left()  # while it sleeps
    other, partner = place.pair("write")
    other.tell("start")
    other.goes_on()
    other.stop_stream()
    other.close()
    partner.close()


def out_of_descriptors(place):
    """What needs none goes on; what needs one says EMFILE, and works when there are some again."""
    e2e.need("prlimit")
    active, passive = place.pair("write")
    active.tell("start")
    active.goes_on()

    def limit(n):
        e2e.run(["prlimit", "--pid", str(active.pid), f"--nofile={n}:1024"])

    limit(3)
    active.tell("make")
    active.expect_line("made channel EMFILE, QP ok, context EMFILE")
    active.goes_on()
    active.stop_stream()
    place.reconnect(active, passive)
    active.tell("start")
    active.goes_on()
    limit(1024)
    active.tell("make")
    active.expect_line("made channel ok, QP ok, context ok")
    active.goes_on()
    active.stop_stream()
    active.silent()
    active.close()
    passive.close()
    place.nothing_left()


def out_of_descriptors_at_open(place):
    """However few there are: EMFILE or all is well, never half of it."""
    e2e.need("prlimit")
    inside = place.side(0, 1).inside
    refused = 0
    for n in range(4, 64):
        limited = e2e.on_nic("prlimit", f"--nofile={n}:{n}", "ibv_devinfo", "-d", "vb_lo")
        status, text, errors = e2e.run([*inside, *limited])
        demand(status >= 0, f"{n} descriptors: signal {-status}\n{errors}")
        if status == 0:
            demand("PORT_ACTIVE" in text, text)
            return f"{n} descriptors are enough, {refused} times refused"
        refused += 1
    raise e2e.Failed("63 descriptors are not enough")


def full_disk_for_pcap(place):
    """The capture ends and says so; the stream does not."""
    folder = place.side(0, 1).inside  # root, hence mounts
    with e2e.tempfile.TemporaryDirectory() as at:
        status, _, errors = e2e.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", at])
        if status != 0:
            raise e2e.Skip(f"no tmpfs here: {errors.strip()}")
        try:
            how = {"options": ["--pcap", os.path.join(at, "capture")]}
            active, passive = place.pair("write", active=how)
            active.tell("start")
            active.goes_on()
            active.silent()
            active.stop_stream()
            active.close()
            passive.close()
            said = active.text(active.errors)
            demand("the capture ends here: No space left on device" in said, said)
            # And from the start:
            command = [*folder, *e2e.on_nic("ibv_devinfo", options=["--pcap", f"{at}/another"])]
            status, _, errors = e2e.run(command)
            demand(status != 0 and "No space left" in errors, f"exit code {status}\n{errors}")
            return said.strip()
        finally:
            e2e.run(["umount", at])


def perftest_partner_killed(place):
    """Debian's program ends and says why; it does not wait for ever."""
    port = str(e2e.free_port())
    server, client = place.side(0, 1), place.side(1, 1)
    tail = ["-x", "1", "-p", port, "-F", "-D", "60"]
    with server.start(["ib_write_bw", "-d", server.device, *tail]) as first:
        wait_until(lambda: first.listens(int(port)), 15, "the server")
        line = ["ib_write_bw", "-d", client.device, *tail, place.V4[0]]
        with client.start(line) as second:
            moved = place.counter(1, "tx_packets")
            wait_until(lambda: place.counter(1, "tx_packets") > moved + 1000, 15, "traffic")
            first.popen.kill()
            status = second.wait(20)
            demand("Failed status 12" in second.both(), f"exit {status}\n{second.tail()}")
            demand(status > 0, f"exit {status}")
    place.nothing_left()


CASES = (
    ("peer_stopped_within_retries", peer_stopped_within_retries),
    ("peer_stopped_beyond_retries", peer_stopped_beyond_retries),
    ("stopped_itself", stopped_itself),
    ("peer_killed_idle", peer_killed_idle),
    ("peer_killed_in_write", peer_killed, "push"),
    ("peer_killed_in_read", peer_killed, "read"),
    ("peer_killed_with_receives", peer_killed_with_receives),
    ("perftest_partner_killed", perftest_partner_killed),
    ("leader_killed", leader_killed),
    ("one_of_many_stopped", one_of_many_stopped, "1"),
    ("one_of_many_stopped_without_flows", one_of_many_stopped, "0"),
    ("forks_in_mid_stream", forks_in_mid_stream),
    ("execs_in_mid_stream", execs_in_mid_stream),
    ("out_of_descriptors", out_of_descriptors),
    ("out_of_descriptors_at_open", out_of_descriptors_at_open),
    ("full_disk_for_pcap", full_disk_for_pcap),
)

if __name__ == "__main__":
    sys.exit(e2e.main(lambda tap: stream.side_by_side(tap, CASES)))
