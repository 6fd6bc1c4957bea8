# SPDX-License-Identifier: BSD-2-Clause
"""Driving stream.c: pairs of processes with a stream between them, each case in network namespaces
of its own, so that cases which wait can run side by side."""

import concurrent.futures
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import e2e
from e2e import Failed, Namespaces, demand, wait_until

WORKERS = 8
LIMIT = 30
RETRY = "transport retry counter exceeded"
FLUSH = "Work Request Flushed Error"
# Ack timeouts of ibv_qp_attr: 4.096 us << n; a request is given up after 8 of them.
SHORT = 16  # 0.27 s: 2.1 s in all
LONG = 18  # 1.1 s: 8.6 s
LONGEST = 19  # 2.1 s: 17 s


class Stream(e2e.Process):
    """One process of a pair; what it said is read in order."""

    def __init__(self, side, words, connection):
        program = os.path.join(e2e.PROGRAMS, "stream")
        command = [program, "-d", side.device, "-g", str(side.gid), *words]
        command += ["-c", str(connection.fileno())]
        super().__init__(
            [*side.inside, *e2e.on_nic(*command, options=side.options)],
            env=side.env,
            fds=(connection.fileno(),),
            stdin=subprocess.PIPE,
        )
        connection.close()
        self.read_to = 0

    def __exit__(self, *_):
        super().__exit__()
        self.popen.stdin.close()

    def tell(self, what):
        self.popen.stdin.write(what.encode() + b"\n")
        self.popen.stdin.flush()

    def heard(self, pattern):
        """A match behind what was heard before; what comes later is next."""
        match = re.compile(pattern, re.MULTILINE).search(self.text(), self.read_to)
        if match:
            self.read_to = match.end()
        return match

    def expect_line(self, pattern, limit=LIMIT):
        def look():
            ended = self.popen.poll()
            match = self.heard(f"^{pattern}$")
            if not match and ended is not None:
                raise Failed(f"ended with {ended}, no '{pattern}'")
            return match

        try:
            return wait_until(look, limit, f"'{pattern}'")
        except Failed as failure:
            raise Failed(f"{failure}\nit said:\n{self.tail()}") from None

    def good(self):
        """Blocks of the stream that are complete and right, so far."""
        numbers = re.findall(r"^ok (\d+)$", self.text(), re.MULTILINE)
        return int(numbers[-1]) if numbers else 0

    def goes_on(self, limit=LIMIT, blocks=200):
        before = self.good()
        try:
            wait_until(lambda: self.good() >= before + blocks or self.ended(), limit, "the stream")
        except Failed as failure:
            raise Failed(f"{failure}\nit said:\n{self.tail()}") from None
        rest = self.text()[self.read_to :]
        demand(not re.search("^error", rest, re.MULTILINE), f"an error:\n{self.tail()}")

    def stands(self, seconds=1.5):
        """Nothing more of the stream comes, so long that with LONG a request has gone again."""
        last = (self.good(), time.monotonic())

        def look():
            nonlocal last
            if self.good() != last[0]:
                last = (self.good(), time.monotonic())
            return time.monotonic() - last[1] >= seconds

        wait_until(look, LIMIT, "the stream to stand")

    def ended(self):
        if self.popen.poll() is not None:
            raise Failed(f"ended with {self.popen.returncode}:\n{self.tail()}")
        return False

    def stop_stream(self, limit=LIMIT):
        self.tell("stop")
        return int(self.expect_line(r"stopped (\d+) ok", limit)[1])

    def fails(self, status=RETRY, limit=LIMIT):
        """A completion with this status, then all others are flushed, and the QP is in ERR."""
        seconds = float(self.expect_line(f"error {status} opcode .* after (.*) s", limit)[1])
        self.expect_line(r"flushed \d+ state 6")
        return seconds

    def silent(self):
        """No error and no event since what was heard last."""
        rest = self.text()[self.read_to :]
        demand("error" not in rest and "event" not in rest, f"it said:\n{rest}")

    def query(self):
        self.tell("query")
        match = self.expect_line(r"port (\S+) mtu (\d+) gids (.*)")
        return match[1], int(match[2]), dict(w.split("=") for w in match[3].split())

    def kill(self):
        self.popen.kill()
        self.popen.wait()

    def signal(self, number):
        os.kill(self.pid, number)
        if number == signal.SIGSTOP:
            wait_until(self.is_stopped, 5, "the process to stop")

    def is_stopped(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "T"

    def close(self, limit=LIMIT):
        self.tell("close")
        self.expect_line("closed", limit)
        self.expect()


class Place(Namespaces):
    """Two namespaces for one case, and the processes in them."""

    lock = threading.Lock()
    count = 0

    def __init__(self, mtu=1500):
        with Place.lock:
            Place.count += 1
            tag = f"x{Place.count}"
        super().__init__(mtu, tag)
        self.processes = []

    def __exit__(self, *_):
        for process in self.processes:
            process.__exit__()
        super().__exit__()

    def within(self, index, *words):
        """Runs a command in one of the namespaces."""
        command = ["ip", "netns", "exec", self.names[index], *words]
        status, text, errors = e2e.run(command, 10)
        demand(status == 0, f"{' '.join(words)}: {errors.strip()}")
        return text

    def counter(self, index, what):
        """Of the interface, as /sys/class/net/.../statistics calls it."""
        statistics = "/sys/class/net/veth0/statistics"
        return int(self.within(index, "cat", f"{statistics}/{what}"))

    def link(self, index, *words):
        self.ip("-n", self.names[index], "link", "set", self.INTERFACE, *words)

    def address(self, index, verb, gid):
        words = {1: [self.V4[index] + "/24"], 2: [self.V6[index] + "/64"]}[gid]
        words += ["nodad"] if gid == self.GID_V6 and verb == "add" else []
        words[1:1] = ["dev", self.INTERFACE]
        self.ip("-n", self.names[index], "address", verb, *words)

    def pair(self, operation, gid=Namespaces.GID_V4, timeout=SHORT, **kwargs):
        """(active, passive), connected. kwargs: alone: both in the first namespace, on lo; mtu;
        active, passive: keyword arguments of their sides."""
        alone = kwargs.get("alone", False)
        ends = socket.socketpair()
        made = []
        for index, what in enumerate((operation, "recv" if operation == "send" else "idle")):
            more = kwargs.get(("active", "passive")[index], {})
            side = self.side(0 if alone else index, gid, **more)
            if alone:
                side.device = "vb_lo"
            words = ["-o", what, "-t", str(timeout), "-m", str(kwargs.get("mtu", 1024))]
            made.append(Stream(side, words, ends[index]))
            self.processes.append(made[-1])
        for process in made:
            process.expect_line("connected")
        return made

    def reconnect(self, *pair):
        for process in pair:
            process.tell("reconnect")
        for process in pair:
            process.expect_line("connected")

    def nothing_left(self):
        """No name and no socket of the port in the namespaces."""
        for index in range(2):
            for file in ("unix", "udp", "udp6"):
                wait_until(lambda i=index, f=file: self.free(i, f), 5, f"{file} to be free")

    def free(self, index, file):
        text = self.within(index, "cat", f"/proc/net/{file}")
        return "verbena/" not in text and ":12B7 " not in text


class Counters:
    """A file where a process leaves its counters."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "counters")
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def environment(self, **more):
        return {"env": {"VERBENA_STATS": self.path, **more}}

    def read(self):
        with open(self.path, encoding="ascii") as lines:
            return {line.split()[0]: int(line.split()[1]) for line in lines}


def side_by_side(tap, cases):
    """Runs functions that take a Place, each in its own, several at a time."""

    def one(function, args):
        with Place() as place:
            return function(place, *args)

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        wanted = sys.argv[1:]  # names, for one who looks for a fault; none: all
        running = [
            (name, pool.submit(one, f, args))
            for name, f, *args in cases
            if not wanted or name in wanted
        ]
        for name, future in running:
            tap.run(name, future.result)
