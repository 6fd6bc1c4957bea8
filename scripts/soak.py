#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Pairs of processes talk RC for minutes over links that lose, double and reorder packets, while
processes are stopped, killed and started again, links go down and connections are renewed.

    ./run soak                  10 minutes
    ./run soak --seconds 60
    ./run soak --mixed          all transports and windows at once: soak_mixed.py

The programs (tests/soak) check every byte, atomic and completion; this script disturbs them, and
sees that their memory and descriptors stay flat and that who has nothing to do takes no CPU time.
Root: in network namespaces made here and removed again; else one of lo alone. Ends with figures;
the exit code is 1 when anything was wrong, with what, where and how to see it again.
"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import e2e  # pylint: disable=wrong-import-position

SOAK = os.path.join(e2e.BUILD, "tests", "soak", "soak")
FAULTS = "drop=5%,dup=5%,reorder=5%:200us"
NETEM = "delay 200us loss 5% duplicate 5% reorder 5% 0%".split()
RECONNECT_MS = 4000
GRACE_SECONDS = 12  # a connection may still break that long after what disturbed it
IDLE_SHARE = 0.05  # of one CPU, whose peer is stopped or unreachable
RSS_GROWTH_KIB = 4096  # from the end of the warm-up on
FD_GROWTH = 24  # from half time on: by then all source ports are in use
FD_MAX = 250  # two families of 64 source ports, flows heard of within half a minute, few others
SETTLED_SECONDS = 300  # of a run, so that half time is late enough for that
SUSPECT_SECONDS = 4.0  # from a connection that broke to who may tell that it got no CPU
QUIET_SECONDS = 15  # without one operation of a pair that nothing disturbs
NOBODY = 65534
TICKS = os.sysconf("SC_CLK_TCK")


class Violation(Exception):
    """What the soak is there to find."""


class End:
    """A process of a pair; started again when it was killed."""

    def __init__(self, pair, role, inside):
        self.pair = pair
        self.role = role
        self.inside = inside
        self.starts = 0
        self.process = None
        self.told = {}  # sums of those that are gone
        self.read_to = 0
        self.samples = []
        self.stats = []  # files of counters

    @property
    def name(self):
        return f"{self.pair.name}-{self.role}"

    def start(self):
        self.starts += 1
        stats = os.path.join(self.pair.folder, f"{self.name}-{self.starts}.counters")
        env = dict(self.pair.env, VERBENA_STATS=stats)
        if self.pair.faults:
            number = self.pair.number * 100 + self.starts * 2 + (self.role == "b")
            env["VERBENA_FAULT"] = f"{FAULTS},seed={number}"
        program = os.path.join(self.pair.folder, "soak")
        tool = os.path.join(self.pair.folder, "verbena")
        words = [program, "-r", self.role, *self.pair.words]
        line = self.inside + e2e.on_nic(*words, tool=tool)
        self.process = e2e.Process(line, env=env)
        self.stats.append(stats)
        self.read_to = 0

    def end(self):
        if self.process is not None:
            self.process.__exit__()
            self.process = None

    def lines(self):
        """What it has said since the last call, whole lines."""
        text = self.process.text()
        new = text[self.read_to :]
        new = new[: new.rfind("\n") + 1]
        self.read_to += len(new)
        return new.splitlines()

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            words = f.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / TICKS

    def sample(self):
        """Resident KiB and descriptors."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            rss = int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))
        self.samples.append((rss, len(os.listdir(f"/proc/{self.process.pid}/fd"))))


class Pair:
    """Two processes; how and where they run."""

    def __init__(self, run, name, number, sides, device, gid, mtu, **how):
        self.run = run
        self.name = name
        self.number = number
        self.folder = run.folder
        self.faults = how.get("faults", True)
        self.events = how.get("events", True)
        self.victim = how.get("victim", False)  # may be killed
        self.alone = how.get("alone", False)  # nobody else on its addresses
        self.env = how.get("env", {})
        self.guest = how.get("guest", False)  # of another user, who does not have the port
        self.links = how["links"]  # (namespace words, interface) that it needs
        lanes = how.get("lanes", 3)
        seed = run.options.seed * 1000 + number
        self.words = ["-c", os.path.join(run.folder, f"{name}.socket"), "-d", device]
        self.words += ["-g", str(gid), "-m", str(mtu), "-l", str(lanes), "-S", str(seed)]
        self.words += ["-R", str(RECONNECT_MS)] + (["-e"] if self.events else [])
        self.ends = [End(self, role, inside) for role, inside in zip("ab", sides)]
        self.disturbed_until = 0.0
        self.suspects = []  # connections that broke: (when, what was said)
        self.operations = 0
        self.moved = time.monotonic()

    def runs(self):
        return all("stat " in end.process.text() for end in self.ends)

    def disturb(self):
        """From now until settle() whatever happens to it has its reason."""
        self.disturbed_until = float("inf")

    def settle(self):
        self.disturbed_until = time.monotonic() + GRACE_SECONDS


def figures(line):
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)\b", line)}


class Run:
    """All pairs and what happens to them."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.random = random.Random(options.seed)
        self.pairs = []
        self.done = {"stopped": 0, "killed": 0, "link down": 0}
        self.excused = 0  # connections that broke while a process got no CPU
        self.starved = []  # when a process got no CPU for a while
        self.idle = {}  # what stalled: CPU shares of who waited
        self.idle_other = {}
        self.latest = {}  # (end, start): figures
        self.start_time = time.monotonic()

    def ends(self):
        return [end for pair in self.pairs for end in pair.ends]

    def say(self, text):
        print(f"{time.monotonic() - self.start_time:6.1f} s  {text}", flush=True)

    # What the processes say.

    def look(self):
        """Reads what they said; raises what is wrong."""
        for end in self.ends():
            for line in end.lines():
                self.heard(end, line)
            status = end.process.popen.poll()
            if status not in (None, 0):
                raise Violation(f"{end.name}: exit code {status}\n{end.process.tail()}")
        now = time.monotonic()
        for pair in self.pairs:
            # All had the time to tell that the machine was busy with others: one passes on
            # another's packets.
            while pair.suspects and now - pair.suspects[0][0] > SUSPECT_SECONDS:
                when, text = pair.suspects.pop(0)
                if not any(abs(starved - when) < SUSPECT_SECONDS for starved in self.starved):
                    raise Violation(text)
                self.excused += 1
            total = sum(self.operations(end) for end in pair.ends)
            if total != pair.operations or now < pair.disturbed_until:
                pair.operations, pair.moved = total, now
            elif now - pair.moved > QUIET_SECONDS:
                for end in pair.ends:
                    self.core(end)
                raise Violation(f"{pair.name}: no operation for {QUIET_SECONDS} s")

    def heard(self, end, line):
        if line.startswith(("stat ", "end ")):
            self.latest[end, end.starts] = figures(line)
        elif line.startswith("broken "):
            when = float(re.search(r" at=([0-9.]+)", line).group(1))
            if when > end.pair.disturbed_until:
                end.pair.suspects.append((when, f"{end.name}: without a reason: {line}"))
        elif line.startswith("starved "):
            self.starved.append(float(re.search(r" at=([0-9.]+)", line).group(1)))
        elif line.startswith("hang "):
            self.core(end)
            raise Violation(f"{end.name}: {line}")
        elif line.startswith("VIOLATION"):
            raise Violation(f"{end.name}: {line}")

    def core(self, end):
        """For who looks for the cause."""
        if shutil.which("gdb") is None:
            return
        base = os.path.join(self.options.keep, end.name)
        os.makedirs(self.options.keep, exist_ok=True)
        words = ["gdb", "-p", str(end.process.pid), "-batch", "-ex", "thread apply all bt"]
        with open(base + ".backtrace", "w", encoding="utf-8") as out:
            subprocess.run(
                words + ["-ex", f"gcore {base}.core"], stdout=out, stderr=out, check=False
            )
        print(f"core and backtrace: {base}.*", flush=True)

    def operations(self, end):
        got = self.latest.get((end, end.starts), {})
        return sum(got.get(kind, 0) for kind in KINDS) + got.get("received", 0)

    def wait(self, seconds):
        until = time.monotonic() + seconds
        while True:
            self.look()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.25))

    # What happens to them.

    def measured(self, what, waiting, seconds):
        """Waits; what CPU time those who wait for others take meanwhile."""
        self.wait(min(1.0, seconds / 3))  # what is under way may end
        before, start = [end.cpu_seconds() for end in waiting], time.monotonic()
        self.wait(seconds)
        passed = time.monotonic() - start
        for end, cpu in zip(waiting, before):
            share = (end.cpu_seconds() - cpu) / passed
            strict = end.pair.alone and end.pair.events
            table = self.idle if strict else self.idle_other
            table.setdefault(what, []).append(share)
            if strict and share > IDLE_SHARE:
                raise Violation(f"{end.name}: {what}: takes {share:.1%} of a CPU meanwhile")

    def stop(self, pair=None):
        pair = pair or self.random.choice(self.pairs)
        victim = self.random.choice(pair.ends)
        peer = pair.ends[1 - pair.ends.index(victim)]
        seconds = self.random.uniform(1.5, 4)
        pair.disturb()
        os.kill(victim.process.pid, signal.SIGSTOP)
        try:
            self.measured("peer stopped", [peer], seconds)
        finally:
            os.kill(victim.process.pid, signal.SIGCONT)
        self.done["stopped"] += 1
        pair.settle()
        return f"{victim.name} was stopped for {seconds:.1f} s"

    def kill(self):
        pair = self.random.choice([pair for pair in self.pairs if pair.victim])
        victim = self.random.choice(pair.ends)
        pair.disturb()
        os.kill(victim.process.pid, signal.SIGKILL)
        victim.process.popen.wait()
        for line in victim.lines():
            self.heard(victim, line)
        victim.end()
        seconds = self.random.uniform(0, 1)
        time.sleep(seconds)
        victim.start()
        self.done["killed"] += 1
        pair.settle()
        return f"{victim.name} was killed, and started again after {seconds:.1f} s"

    def link_down(self, alone=False):
        links = [pair.links for pair in self.pairs if pair.links and (pair.alone or not alone)]
        inside, interface = self.random.choice(links)
        hit = [pair for pair in self.pairs if pair.links and pair.links[1] == interface]
        hit = [pair for pair in hit if interface != "lo" or pair.links[0] == inside]
        seconds = self.random.uniform(0.5, 3)
        for pair in hit:
            pair.disturb()
        link = [*inside, "ip", "link", "set", interface]
        subprocess.run([*link, "down"], check=True)
        try:
            self.measured("link down", [end for pair in hit for end in pair.ends], seconds)
        finally:
            subprocess.run([*link, "up"], check=True)
        self.done["link down"] += 1
        for pair in hit:
            pair.settle()
        names = ", ".join(pair.name for pair in hit)
        return f"{interface} of {names} was down for {seconds:.1f} s"

    def sample(self):
        for end in self.ends():
            if not end.pair.victim:
                end.sample()

    def soak(self):
        """Disturbs them until the time is over."""
        seconds = self.options.seconds
        warm = min(60, seconds / 4)
        marks = [warm, (warm + seconds) / 2]
        report = 10.0
        alone = [pair for pair in self.pairs if pair.alone]
        can_link = any(pair.links for pair in self.pairs)
        script = [self.kill, lambda: self.stop(alone[0])]
        if can_link:
            script += [self.link_down, lambda: self.link_down(alone=True)]
        script.append(self.stop)
        self.random.shuffle(script)
        turn = 0
        while True:
            passed = time.monotonic() - self.start_time
            if marks and passed >= marks[0]:
                marks.pop(0)
                self.sample()
            if passed >= report:
                report += 10
                self.progress()
            if passed >= seconds:
                break
            self.wait(min(self.random.uniform(0.5, 2.5), max(0.1, seconds - passed)))
            if time.monotonic() - self.start_time < seconds - 4:
                note = script[turn % len(script)]()
                turn += 1
                if self.options.verbose:
                    self.say(note)
        self.sample()
        self.flat()

    def progress(self):
        total = self.totals()
        operations = sum(total.get(kind, 0) for kind in KINDS)
        events = ", ".join(f"{what} {n}" for what, n in self.done.items())
        self.say(
            f"{operations} operations, {total.get('bytes', 0) / 1e6:.0f} MB, {events}, "
            f"connections {total.get('connections', 0)}, broke {total.get('breaks', 0)}"
        )

    def totals(self):
        total = {}
        for got in self.latest.values():
            for key, value in got.items():
                total[key] = total.get(key, 0) + value
        return total

    def flat(self):
        for end in self.ends():
            if len(end.samples) < 2:
                continue
            rss, fds = end.samples[0][0], end.samples[-2][1]
            rss_end, fds_end = end.samples[-1]
            keeps = "asan" in os.environ.get("LD_PRELOAD", "")  # what was freed, for a while
            if rss_end - rss > RSS_GROWTH_KIB and not keeps:
                raise Violation(f"{end.name}: memory grew from {rss} to {rss_end} KiB")
            settled = self.options.seconds >= SETTLED_SECONDS
            if fds_end > FD_MAX or (settled and fds_end - fds > FD_GROWTH):
                raise Violation(f"{end.name}: descriptors grew from {fds} to {fds_end}")

    def finish(self):
        """A's are asked to end; all compare what they have."""
        for pair in self.pairs:
            os.kill(pair.ends[0].process.pid, signal.SIGTERM)
        for end in self.ends():
            status = end.process.wait(90)
            for line in end.lines():
                self.heard(end, line)
            if status != 0:
                raise Violation(f"{end.name}: exit code {status}\n{end.process.tail()}")

    # Figures.

    def counters(self):
        total = {}
        for end in self.ends():
            for path in end.stats:
                if not os.path.exists(path):
                    continue  # killed
                with open(path, encoding="ascii") as f:
                    for line in f:
                        name, value = line.split()[:2]
                        total[name] = total.get(name, 0) + int(value)
        return total

    def report(self):
        total, counters = self.totals(), self.counters()
        print("operations: " + ", ".join(f"{kind} {total.get(kind, 0)}" for kind in KINDS))
        print(
            f"bytes: {total.get('bytes', 0)} by who posted, "
            f"messages received {total.get('received', 0)}"
        )
        print(
            "events: "
            + ", ".join(f"{what} {n}" for what, n in self.done.items())
            + f"; connections {total.get('connections', 0)}, renewed in order "
            f"{total.get('reconnects', 0)}, broken {total.get('breaks', 0)}, "
            f"WRs flushed {total.get('flushed', 0)}; times that a process waited for a CPU "
            f"for 0.25 s: {len(self.starved)}, broken for no other reason: {self.excused}"
        )
        print("counters of the processes that ended in order:")
        for name in COUNTERS:
            print(f"   {name:<26} {counters.get(name, 0)}")
        print("resident KiB and descriptors, warm, at half time, at the end:")
        for end in self.ends():
            if end.samples:
                print(f"   {end.name:<10} " + "  ".join(f"{r} {f}" for r, f in end.samples))
        for table, text in (
            (self.idle, "CPU share of who waits, alone on its address"),
            (self.idle_other, "CPU share of who waits, serving others (not judged)"),
        ):
            for what, shares in sorted(table.items()):
                mean = sum(shares) / len(shares)
                print(f"{text}, {what}: mean {mean:.2%}, worst {max(shares):.2%}")
        print("acknowledged data lost or wrong: 0")


KINDS = (
    "send send_imm write_imm write read read_back fetch_add shared_add cmp_swp credit".split()
)
COUNTERS = (
    "fault_dropped fault_duplicated fault_reordered retransmitted_packets local_ack_timeout_err "
    "packet_seq_err implied_nak_seq_err out_of_sequence duplicate_request rnr_nak_retry_err "
    "rnr_nak_sent slot_forwarded flow_opened flow_rescued leader_moved"
).split()


def third_namespace():
    name = f"vbsoak{os.getpid()}"
    e2e.Namespaces.ip("netns", "add", name)
    e2e.Namespaces.ip("-n", name, "link", "set", "lo", "up")
    return name


def netem(net):
    """True: the links between the namespaces lose packets themselves."""
    for name in net.names:
        words = ["netns", "exec", name, "tc", "qdisc", "add", "dev", net.INTERFACE, "root", "netem"]
        status, _, _ = e2e.run(["ip", *words, *NETEM])
        if status != 0:
            return False
    return True


def copy_programs(folder):
    """To where another user can start them."""
    tool = os.path.dirname(e2e.VERBENA)
    parts = ("verbena", "libibverbs.so.1", "librdmacm.so.1", "libverbena.so.0")
    parts += ("libverbena_files.so.0",)
    names = [os.path.join(tool, name) for name in parts]
    for path in [*names, SOAK]:
        os.chmod(shutil.copy(path, folder), 0o755)
    os.chmod(folder, 0o777)


def make_pairs(run, net, third):
    if net is None:
        here = [[], []]
        run.pairs = [
            Pair(run, "lo4", 1, here, "vb_lo", 0, 1024, links=None),
            Pair(run, "lo6", 2, here, "vb_lo", 1, 4096, links=None),
            Pair(run, "poll", 3, here, "vb_lo", 0, 4096, links=None, events=False, victim=True),
            Pair(run, "alone", 4, here, "vb_lo", 0, 1024, links=None),
        ]
        return
    a, b = (["ip", "netns", "exec", name] for name in net.names)
    c = ["ip", "netns", "exec", third]
    for name in net.names:
        path = "net.ipv6.conf.all.keep_addr_on_down=1"
        e2e.run(["ip", "netns", "exec", name, "sysctl", "-q", path])
    own = not netem(net)
    run.say(f"netem: {'no, all faults are our own' if own else 'on the links between namespaces'}")
    veth, device = (a, net.INTERFACE), "vb_" + net.INTERFACE
    run.pairs = [
        Pair(run, "veth4", 1, [a, b], device, net.GID_V4, 4096, links=veth, faults=own),
        Pair(run, "veth6", 2, [a, b], device, net.GID_V6, 1024, links=veth, faults=own,
             victim=True),
        Pair(run, "lo4", 3, [a, a], "vb_lo", 0, 1024, links=(a, "lo")),
        Pair(run, "poll", 4, [b, b], "vb_lo", 0, 4096, links=(b, "lo"), events=False,
             victim=True),
        Pair(run, "alone", 5, [c, c], "vb_lo", 0, 4096, links=(c, "lo"), alone=True),
    ]
    if shutil.which("setpriv") is None:
        run.say("no setpriv: nobody else's processes take part")
        return
    for pair in run.pairs:
        pair.env = {"VERBENA_ALLOW_UIDS": str(NOBODY)}
    user = [*a, "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    run.pairs.append(
        Pair(run, "guest", 6, [user, user], "vb_lo", 0, 1024, links=(a, "lo"), lanes=2,
             env={"VERBENA_ALLOW_UIDS": "0"}, guest=True)
    )


def run_all(options, folder, net=None, third=None):
    run = Run(options, folder)
    try:
        copy_programs(folder)
        make_pairs(run, net, third)
        for pair in run.pairs:
            for other in run.pairs if pair.guest else ():  # whose guest it is to be
                if not other.guest:
                    e2e.wait_until(other.runs, 20, f"{other.name} to run")
            for end in reversed(pair.ends):
                end.start()
        run.start_time = time.monotonic()
        run.soak()
        run.finish()
        run.report()
        return 0
    except (Violation, e2e.Failed) as what:
        print(f"\nVIOLATION: {what}\n")
        run.progress()
        for end in run.ends():
            if end.process is not None:
                told = [l for l in end.process.both().splitlines() if not l.startswith("stat ")]
                print(f"{end.name}: {' | '.join(told[-4:])}")
        print(f"replay: ./run soak --seed {options.seed} --seconds {options.seconds}")
        return 1
    finally:
        for end in run.ends():
            end.end()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1000000)
    parser.add_argument("--keep", default=os.path.join(e2e.BUILD, "soak-cores"), metavar="FOLDER",
                        help="where cores go")
    parser.add_argument("-v", "--verbose", action="store_true", help="say what happens to whom")
    options = parser.parse_args()

    def stop(number, _):
        raise SystemExit(128 + number)  # what was made is removed

    signal.signal(signal.SIGTERM, stop)
    print(f"soak: {options.seconds} s, seed {options.seed}, faults {FAULTS}", flush=True)
    with tempfile.TemporaryDirectory(prefix="verbena-soak-") as folder:
        if os.geteuid() != 0:
            print("note: not root, so lo alone, whose link stays up")
            return run_all(options, folder)
        with e2e.Namespaces(9000) as net:
            third = third_namespace()
            try:
                return run_all(options, folder, net, third)
            finally:
                e2e.run(["ip", "netns", "delete", third])


if __name__ == "__main__":
    sys.exit(main())
