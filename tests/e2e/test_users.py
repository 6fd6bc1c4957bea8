#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""Two users' processes on one address: who has the port serves the other, if both allow it."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import e2e
from e2e import PublicCopy, Side, demand, perftest, pingpong

HOST = "127.0.0.1"
NOBODY = 65534


def opens(side):
    """(exit code, messages) of a program that only opens the device."""
    line = side.inside + e2e.on_nic("ibv_devinfo", "-d", "vb_lo", tool=side.tool)
    status, _, errors = e2e.run(line, env=side.env)
    return status, errors


class Holder:
    """A process that has the port, idle, until the `with` block is left."""

    def __init__(self, side):
        self.port = e2e.free_port()
        command = ["ibv_rc_pingpong", "-d", "vb_lo", "-g", "0", "-p", str(self.port)]
        self.process = side.start(command)

    def __enter__(self):
        e2e.wait_until(lambda: self.process.listens(self.port), 15, "the holder of the port")
        return self.process

    def __exit__(self, *_):
        self.process.end()


def not_allowed(holder, guest, name):
    """One of them, or neither, allows the other: the message names the holder."""
    plain = {"VERBENA_ALLOW_UIDS": ""}
    for holder_env, guest_env in ((plain, plain), (holder.env, plain), (plain, guest.env)):
        one = Side(inside=holder.inside, tool=holder.tool, env=holder_env)
        two = Side(inside=guest.inside, tool=guest.tool, env=guest_env)
        with Holder(one):
            status, errors = opens(two)
            demand(status != 0, f"opened all the same: {holder_env} {guest_env}")
            demand("4791" in errors and f"user {name}" in errors, errors)
            demand("VERBENA_ALLOW_UIDS" in errors, errors)


def guest_pair(holder, guest, gid):
    """Both ends are guests."""
    side = Side(gid=gid, inside=guest.inside, tool=guest.tool, env=guest.env)
    with Holder(holder):
        return pingpong(side, side, HOST, "-c", iterations=50)


def mixed_pair(holder, guest):
    """One end is the holder of the port, the other its guest, both ways round."""
    with Holder(holder):
        notes = [
            pingpong(*sides, HOST, "-c", iterations=50)
            for sides in ((holder, guest), (guest, holder))
        ]
        return "; ".join(notes)


def both_at_once(holder, guest):
    """perftest of both users at the same time."""
    jobs = (
        ("ib_write_bw", 65536, 100),
        ("ib_send_bw", 4096, 500),
        ("ib_read_bw", 16384, 200),
        ("ib_write_lat", 8, 100),
    )
    with Holder(holder), ThreadPoolExecutor(2 * len(jobs)) as pool:
        futures = [
            pool.submit(
                perftest, s, s, HOST, program, size=size, iterations=count, limit_seconds=120
            )
            for s in (holder, guest)
            for program, size, count in jobs
        ]
        return "; ".join(f.result() for f in futures)


def holder_killed(holder, guest):
    """The holder dies while a guest pair works: that goes on, and the other user's next pair is
    the guest of it."""
    port = e2e.free_port()
    command = ["ibv_rc_pingpong", "-d", "vb_lo", "-g", "0", "-p", str(port), "-n", "8000", "-c"]
    with Holder(holder) as first:
        with guest.start(command) as server:
            e2e.wait_until(lambda: server.listens(port), 15, "the guest's server")
            with guest.start([*command, HOST]) as client:
                e2e.wait_until(lambda: not server.listens(port), 15, "the pair to be connected")
                os.killpg(first.pid, signal.SIGKILL)
                first.popen.wait()
                note = pingpong(holder, holder, HOST, "-c", iterations=50)
                client.expect(120)
                server.expect(60)
    return note


def cases(tap):
    try:
        words = e2e.unprivileged()
    except e2e.Skip as reason:
        tap.say("ok", "two_users", f" # SKIP {reason}")
        return
    with PublicCopy() as public:
        root = Side(tool=public.tool, env={"VERBENA_ALLOW_UIDS": str(NOBODY)})
        nobody = Side(inside=words, tool=public.tool, env={"VERBENA_ALLOW_UIDS": "0"})
        for holder, guest, name in ((root, nobody, "root"), (nobody, root, "nobody")):
            tap.run(f"{name}_holds_not_allowed", not_allowed, holder, guest, name)
            tap.run(f"{name}_holds_guests_ipv4", guest_pair, holder, guest, 0)
            tap.run(f"{name}_holds_guests_ipv6", guest_pair, holder, guest, 1)
            tap.run(f"{name}_holds_mixed_pair", mixed_pair, holder, guest)
            tap.run(f"{name}_holds_perftest_of_both", both_at_once, holder, guest)
            tap.run(f"{name}_killed", holder_killed, holder, guest)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
