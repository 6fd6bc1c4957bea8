# SPDX-License-Identifier: BSD-2-Clause
"""What the scripts of this folder share: TAP, pairs of processes with limits, network namespaces.

A script calls case(NAME) functions through Tap.run; each raises Failed or Skip, or returns. Every
process is started in its own session and ended by its id; nothing waits without a limit, and
nothing sleeps for a fixed time: conditions are polled.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("VERBENA_BUILD") or os.path.join(ROOT, "build")
VERBENA = os.environ.get("VERBENA") or os.path.join(BUILD, "verbena")
PROGRAMS = os.path.join(BUILD, "tests", "e2e")  # of ours, built by meson
LONG = os.environ.get("VERBENA_LONG") == "1"
LIMIT_SECONDS = 60  # one program
# The lab keeps its runs: those of a script not in the history of who runs it.
os.environ["XDG_STATE_HOME"] = os.path.join(BUILD, "test-state", os.path.basename(sys.argv[0]))
shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)
TCP_LISTEN = "0A"  # state in /proc/net/tcp


class Failed(Exception):
    """A case failed; the text may have several lines."""


class Skip(Exception):
    """A case cannot run here; the text says why."""


def demand(condition, text):
    if not condition:
        raise Failed(text)


def end_by_exception():
    """Who tells this script to end ends it as an exception does: `with` blocks clean up, once."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def stop(number, _):
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in numbers:
        signal.signal(number, stop)


class Tap:
    """Counts cases and prints them; finish() gives the exit code. Whoever has cases has to clean up,
    so the script ends by an exception from now on.
    """

    def __init__(self, prefix):
        end_by_exception()
        self.prefix = prefix
        self.cases = 0
        self.failed = 0

    def say(self, verdict, name, tail=""):
        self.cases += 1
        print(f"{verdict} {self.cases} - {self.prefix}_{name}{tail}", flush=True)

    def run(self, name, function, *args, **kwargs):
        """True when it passed."""
        try:
            note = function(*args, **kwargs)
        except Skip as reason:
            self.say("ok", name, f" # SKIP {reason}")
            return False
        except (Failed, OSError, subprocess.SubprocessError) as reason:
            self.failed += 1
            self.say("not ok", name)
            for line in f"{type(reason).__name__}: {reason}".splitlines():
                print("# " + line[:400], flush=True)
            return False
        self.say("ok", name)
        if note:
            print(f"# {note}", flush=True)
        return True

    def adopt(self, text):
        """Takes over the TAP lines that a program of ours printed, renumbered."""
        for line in text.splitlines():
            match = re.match(r"(ok|not ok) \d+ - (.*)", line)
            if match:
                self.failed += match.group(1) != "ok"
                self.say(match.group(1), match.group(2))
            elif line.startswith("#"):
                print(line, flush=True)

    def finish(self):
        print(f"1..{self.cases}", flush=True)
        return 1 if self.failed or not self.cases else 0


def wait_until(condition, limit_seconds=10.0, what="condition"):
    """Polls condition, ever more slowly, until it is true; its value is returned."""
    deadline = time.monotonic() + limit_seconds
    pause = 0.002
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failed(f"waited {limit_seconds} s in vain for {what}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


class Process:
    """A program with its output in files; ended when the `with` block is left."""

    def __init__(self, command, env=None, cwd=None, preexec=None, fds=(), stdin=subprocess.DEVNULL):
        self.command = command
        self.output = tempfile.TemporaryFile()
        self.errors = tempfile.TemporaryFile()
        self.popen = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=self.output,
            stderr=self.errors,
            env=dict(os.environ, **(env or {})),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=preexec,
            pass_fds=fds,
        )
        self.pid = self.popen.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self.output.close()
        self.errors.close()

    def end(self):
        if self.popen.poll() is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.popen.wait()

    def text(self, file=None):
        file = file or self.output
        size = os.fstat(file.fileno()).st_size
        return os.pread(file.fileno(), size, 0).decode(errors="replace")

    def both(self):
        return self.text() + self.text(self.errors)

    def wait(self, limit_seconds=LIMIT_SECONDS):
        """The exit code; a signal as its negative number, as subprocess has it."""
        try:
            return self.popen.wait(timeout=limit_seconds)
        except subprocess.TimeoutExpired:
            self.end()
            raise Failed(f"no end within {limit_seconds} s: {self}\n{self.tail()}") from None

    def expect(self, limit_seconds=LIMIT_SECONDS):
        status = self.wait(limit_seconds)
        demand(status == 0, f"exit code {status}: {self}\n{self.tail()}")
        return self.text()

    def tail(self, lines=12):
        return "\n".join(self.both().splitlines()[-lines:])

    def __str__(self):
        return " ".join(self.command)

    def listens(self, port):
        """In whatever network namespace the process is."""
        if self.popen.poll() is not None:
            raise Failed(f"ended with {self.popen.returncode}: {self}\n{self.tail()}")
        return (port, TCP_LISTEN) in tcp_ports(self.pid)


def tcp_ports(pid="self"):
    """(local port, state) of what there is of TCP in the network namespace of a process."""
    found = set()
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}", encoding="ascii") as rows:
                next(rows, None)  # the headings
                found |= {(int(w[1].rpartition(":")[2], 16), w[3]) for w in map(str.split, rows)}
        except OSError:
            pass  # has ended, or no IPv6
    return found


def run(command, limit_seconds=LIMIT_SECONDS, **kwargs):
    """Run to the end: (exit code, stdout, stderr)."""
    with Process(command, **kwargs) as process:
        status = process.wait(limit_seconds)
        return status, process.text(), process.text(process.errors)


def on_nic(*command, options=(), tool=None):
    """The command line that runs a program on the software NIC."""
    return [tool or VERBENA, "run", *options, "--", *command]


# Below what the kernel gives to who connects (ip_local_port_range: 32768 and up): a port that is
# free stays so until the server listens, however many connections are made meanwhile.
FIRST_PORT, LAST_PORT = 20000, 32000
_next_port = FIRST_PORT + os.getpid() % (LAST_PORT - FIRST_PORT)
_port_lock = threading.Lock()  # some cases run pairs side by side


def free_port():
    """A TCP port that nobody uses, in our namespace. It is not tried by a socket: what another thread
    forks meanwhile would have a copy until it execs, and keep the port from its server.
    """
    global _next_port
    with _port_lock:
        used = {port for port, _ in tcp_ports()}
        while True:
            _next_port = _next_port + 1 if _next_port < LAST_PORT else FIRST_PORT
            if _next_port not in used:
                return _next_port


class Side:
    """Where and how one of a pair runs."""

    def __init__(self, device="vb_lo", gid=0, inside=(), options=(), env=None, tool=None):
        self.device = device
        self.gid = gid
        self.inside = list(inside)  # words before the command: a namespace, a user
        self.options = list(options)  # of `verbena run`
        self.env = env
        self.tool = tool

    def start(self, command):
        line = self.inside + on_nic(*command, options=self.options, tool=self.tool)
        return Process(line, env=self.env)


def pair(server, client, server_command, client_command, port, limit_seconds=LIMIT_SECONDS):
    """Runs both to the end; their outputs. Both must end with exit code 0."""
    with server.start(server_command) as first:
        wait_until(lambda: first.listens(port), 15, f"port {port} of {first}")
        with client.start(client_command) as second:
            try:
                told = second.expect(limit_seconds)
            except Failed as failure:
                first.end()
                raise Failed(f"client: {failure}\nserver said:\n{first.tail()}") from None
            try:
                return first.expect(limit_seconds), told
            except Failed as failure:
                raise Failed(f"server: {failure}") from None


# What the programs print.


def pingpong_figures(text):
    match = re.search(r"= ([0-9.]+) usec/iter", text)
    demand(match, f"no figures in:\n{text}")
    return float(match.group(1))


def perftest_rows(text, columns):
    """Rows of figures: size, iterations, ...; perftest prints nan where it measured nothing."""
    rows = []
    for line in text.splitlines():
        words = line.split()
        if len(words) == columns and all(re.fullmatch(r"[0-9.]+|-?nan", word) for word in words):
            rows.append([float(word) for word in words])
    return rows


def bandwidth_figures(text, size, iterations):
    """Gbit/s on average (--report_gbits is on) and messages a second."""
    rows = perftest_rows(text, 5)
    demand(rows, f"no figures in:\n{text}")
    got_size, got_iterations, _, average, million = rows[-1]
    demand(got_size == size, f"size {got_size}, wanted {size}")
    demand(got_iterations >= iterations, f"{got_iterations} iterations, wanted {iterations}")
    demand(average + million > 0, f"bandwidth {average}, {million} million messages a second")
    return f"{average:.2f} Gbit/s, {million * 1e6:.0f} messages/s"


def latency_figures(text, size, iterations):
    """Typical latency in us."""
    rows = perftest_rows(text, 9)
    demand(rows, f"no figures in:\n{text}")
    demand(rows[-1][0] == size, f"size {rows[-1][0]}, wanted {size}")
    demand(rows[-1][1] >= iterations, f"{rows[-1][1]} iterations, wanted {iterations}")
    demand(rows[-1][4] > 0, f"typical latency {rows[-1][4]}")
    return rows[-1][4]


def pingpong_loses(text):
    """Do the pingpongs of ibverbs-utils meet a network that loses? Either end leaves as soon as it
    has all messages and all acknowledgements; the other may not have its last acknowledgement, asks
    again where nobody is left, and rightly ends with "transport retry counter exceeded".
    """
    return re.search(r"\b(drop|corrupt|reorder)=.*ibv_[a-z]+_pingpong", text)


def pingpong(server, client, host, *options, iterations=200, limit_seconds=LIMIT_SECONDS, kind="rc"):
    """Messages to and fro. Only over a network that loses nothing: see pingpong_loses."""
    port = free_port()

    def command(side, tail):
        head = [f"ibv_{kind}_pingpong", "-d", side.device, "-g", str(side.gid), "-p", str(port)]
        demand(not pingpong_loses(" ".join([*side.options, *head])), "its end would be left to chance")
        return head + ["-n", str(iterations), *options, *tail]

    said, told = pair(
        server, client, command(server, []), command(client, [host]), port, limit_seconds
    )
    pingpong_figures(said)
    return f"{pingpong_figures(told):.1f} us/iter"


def perftest(server, client, host, program, *options, size=None, iterations=100, **limits):
    """One perftest program as a pair; its figures as text."""
    port = free_port()
    atomic = program.startswith("ib_atomic")
    size = 8 if atomic else size
    bandwidth = program.endswith("_bw")

    def command(side, tail):
        head = [program, "-d", side.device, "-x", str(side.gid), "-p", str(port), "-F"]
        head += ["-n", str(iterations)]
        head += [] if atomic else ["-s", str(size)]
        head += ["--report_gbits"] if bandwidth else []
        return head + [*options, *tail]

    _, told = pair(server, client, command(server, []), command(client, [host]), port, **limits)
    if bandwidth:
        return bandwidth_figures(told, size, iterations)
    return f"{latency_figures(told, size, iterations):.1f} us"


PERFTESTS = [f"ib_{verb}_{what}" for verb in ("send", "write", "read") for what in ("bw", "lat")]


def own_pair(server, client, host, program, *options, limit_seconds=LIMIT_SECONDS):
    """A program of tests/e2e as server and client: both outputs."""
    port = free_port()

    def command(side, tail):
        head = [os.path.join(PROGRAMS, program), "-d", side.device, "-g", str(side.gid)]
        return head + ["-p", str(port), *options, *tail]

    return pair(server, client, command(server, []), command(client, [host]), port, limit_seconds)


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Skip(f"no {program} here")


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


class Namespaces:
    """Two network namespaces joined by a veth pair; gone when the `with` block is left.

    Names carry our process id, so that runs side by side do not meet.
    """

    V4 = ("10.89.0.1", "10.89.0.2")
    V6 = ("fd89::1", "fd89::2")
    INTERFACE = "veth0"
    GID_V4, GID_V6 = 1, 2  # 0 is link-local

    def __init__(self, mtu, tag=""):
        self.mtu = mtu
        self.names = [f"vbtest{os.getpid()}{tag}{letter}" for letter in "ab"]

    def __enter__(self):
        need_root()
        need("ip")
        try:
            self.make()
        except Failed as reason:
            self.__exit__()
            raise Skip(f"no network namespaces here: {reason}") from None
        return self

    @staticmethod
    def ip(*words):
        status, _, errors = run(["ip", *words], 10)
        demand(status == 0, f"ip {' '.join(words)}: {errors.strip()}")

    def make(self):
        for name in self.names:
            self.ip("netns", "add", name)
            # Nobody else can have our addresses: trying out the link-local ones would take seconds.
            no_trying = "echo 0 >/proc/sys/net/ipv6/conf/default/dad_transmits"
            run(["ip", "netns", "exec", name, "sh", "-c", no_trying], 10)
        self.make_link()

    def make_link(self):
        a, b = self.names
        end = ["peer", "name", self.INTERFACE, "netns", b]
        self.ip("-n", a, "link", "add", self.INTERFACE, "mtu", str(self.mtu), "type", "veth", *end)
        for name, v4, v6 in zip(self.names, self.V4, self.V6):
            self.ip("-n", name, "link", "set", self.INTERFACE, "mtu", str(self.mtu))
            self.ip("-n", name, "address", "add", v4 + "/24", "dev", self.INTERFACE)
            self.ip("-n", name, "address", "add", v6 + "/64", "dev", self.INTERFACE, "nodad")
            self.ip("-n", name, "link", "set", self.INTERFACE, "up")
            self.ip("-n", name, "link", "set", "lo", "up")
        for name in self.names:
            wait_until(lambda name=name: self.settled(name), 10, "addresses to be usable")

    def settled(self, name):
        """No IPv6 address is still being tried out, and the link is there."""
        show = ["ip", "-n", name, "address", "show", "dev", self.INTERFACE]
        _, text, _ = run(show, 10)
        return "tentative" not in text and "LOWER_UP" in text and "fe80" in text

    def __exit__(self, *_):
        for name in self.names:
            run(["ip", "netns", "delete", name], 10)

    def side(self, index, gid, **kwargs):
        inside = ["ip", "netns", "exec", self.names[index]]
        return Side(f"vb_{self.INTERFACE}", gid, inside=inside, **kwargs)


class PublicCopy:
    """The program and its libraries where every user can read them."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="verbena-test-")
        os.chmod(self.folder, 0o755)
        names = ["verbena", "libibverbs.so.1", "librdmacm.so.1", "libverbena_files.so.0"]
        names.append("libverbena.so.0")
        for path in [os.path.join(BUILD, n) for n in names] + [
            os.path.join(PROGRAMS, n) for n in ("verify_rc", "poll_order", "misuse")
        ]:
            copy = shutil.copy(path, self.folder)
            os.chmod(copy, 0o755)
        self.tool = os.path.join(self.folder, "verbena")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)


def unprivileged(locked_kib=64):
    """Words that run a command as user nobody with a small limit on locked memory."""
    need_root()
    need("setpriv", "prlimit")
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
    limit = locked_kib * 1024
    return ["prlimit", f"--memlock={limit}:{limit}", *user]


def isolate():
    """Root's scripts run in a network namespace of their own, with nothing but lo.

    Whatever else on the machine holds UDP port 4791 then does not matter.
    """
    inside = "VERBENA_E2E_ISOLATED"
    if os.geteuid() != 0 or os.environ.get(inside) or not shutil.which("unshare"):
        return
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        return
    os.environ[inside] = "1"
    up = 'ip link set lo up && exec "$@"'
    command = ["unshare", "--net", "sh", "-c", up, "sh", sys.executable, *sys.argv]
    os.execvp(command[0], command)


def main(cases, isolated=True):
    """cases(tap) runs them all. Not isolated: they make namespaces of their own, and need the
    machine's for downloads.
    """
    if isolated:
        isolate()
    name = os.path.basename(sys.argv[0])
    tap = Tap(name.removeprefix("test_").rpartition(".")[0])
    try:
        cases(tap)
    except Skip as reason:
        tap.say("ok", "the_rest", f" # SKIP {reason}")
    return tap.finish()
