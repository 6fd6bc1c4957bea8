#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""What goes wrong with `verbena lab`: a peer that is gone, silent or forging at every step of the
session; peers that say nonsense, with and without the key; full disks; addresses and devices that
are not there. Each is told with what and where, both ends end, and nothing is left.
"""

import concurrent.futures
import ctypes
import ctypes.util
import functools
import json
import os
import re
import signal
import socket
import struct
import sys
import tempfile

import e2e
from e2e import Failed, Namespaces, Process, demand, wait_until
from lab_proxy import FROM_RUN, FROM_SERVE, Proxy
from test_lab import lab

LIMIT_SECONDS = 60
AT_ONCE = 4  # most of the time is waiting
LITTLE = ["--op", "write", "--size", "64", "--depth", "1", "--iterations", "5", "--warmup", "1"]
NO_TCP = [*LITTLE, "--baseline", "off"]


@functools.cache
def scratch():
    return tempfile.TemporaryDirectory(prefix="test-lab-errors-")


@functools.cache
def key():
    path = os.path.join(scratch().name, "key")
    with open(path, "w", encoding="ascii", opener=functools.partial(os.open, mode=0o600)) as file:
        file.write("0123456789abcdef0123456789abcdef\n")
    return path


class Server:
    """`lab serve` until it listens."""

    def __init__(self, *words):
        self.words = words

    def __enter__(self):
        self.port = e2e.free_port()
        command = [e2e.VERBENA, "lab", "serve", "--key", key(), "--port", str(self.port)]
        self.process = Process([*command, *self.words])
        wait_until(lambda: self.process.listens(self.port), 15, "lab serve")
        return self

    def __exit__(self, *_):
        self.process.__exit__()

    def turns_away(self, says):
        """Who has not proven to have the key does not end it."""
        wait_until(lambda: re.search(f"is turned away: .*{says}", self.process.both()), 30, says)
        demand(self.process.popen.poll() is None, f"it has ended: {self.process.both()}")

    def serves(self):
        """Who has the key finds it waiting, whoever came before."""
        status, _, err = e2e.run(run(self.port, *LITTLE, *self.words), LIMIT_SECONDS)
        demand(status == 0, err)
        self.ends(0)

    def ends(self, status, says=""):
        got = self.process.wait(30)
        text = self.process.both()
        demand(got == status and says in text, f"serve: {got}, wanted {status} '{says}':\n{text}")


def run(port, *words, host="127.0.0.1", inside=()):
    return [*inside, e2e.VERBENA, "lab", "run", "--key", key(), "--peer", host, "--port", str(port),
            *words]


# A harm at every step.


BY_CM = ["--connect", "cm", "--wait", "event", "--baseline", "off"]


def session(direction, index, harm, timeout="20s", words=()):
    """Both ends, through a proxy that does harm(frame, run, serve) at that frame: exit codes and
    texts of run and serve, and how many frames each has sent."""
    ends = {}
    with Server("--timeout", timeout) as server:
        def act(frame):
            wait_until(lambda: "run" in ends, 10, "the process to be ours")
            return harm(frame, ends["run"], server.process)
        with Proxy(server.port, direction, index, act) as proxy:
            with Process(run(proxy.port, *LITTLE, *words, "--timeout", timeout)) as process:
                ends["run"] = process
                status = process.wait(LIMIT_SECONDS)
                other = await_end(server.process, index)
                return (status, process.both()), (other, server.process.both()), proxy.counts


GREETED = 1  # frames until a peer is known to be one


def await_end(serve, index):
    """Its exit code; None where the peer was turned away as a stranger, and it waits for another."""
    if index is not None and index < GREETED:
        wait_until(lambda: serve.popen.poll() is not None or "is turned away: " in serve.both(),
                   LIMIT_SECONDS, "an end")
        return serve.popen.poll()
    return serve.wait(LIMIT_SECONDS)


def cut(*_):
    return None


def silence(*_):
    return b""


def kill(which):
    def harm(_, run_process, serve_process):
        os.kill((run_process, serve_process)[which].pid, signal.SIGKILL)
    return harm


def flip(frame, *_):
    return frame[:-1] + bytes([frame[-1] ^ 1])


def oversize(frame, *_):
    return struct.pack(">I", 0xffffffff) + frame[4:]


REASONS = {
    "cut": r"the peer is gone while [a-z]|it has hung up",
    "silent": r"the peer says nothing for 70[0-9] ms while [a-z]|nothing moves: .* for 700 ms|"
              r"connect: no RDMA_CM_EVENT_[A-Z_]+ for 700 ms while [a-z]|does not say who it is in time",
    "killed": r"the peer is gone while [a-z]|it has hung up",
    # Who cannot read what it gets cannot be told why before the key is known to be the same.
    "forged": r"(the peer's key is not ours|a forged message|the peer is gone).* while [a-z]|"
              r"the peer gave up: .*forged",
    "oversize": r"the peer sent no message while [a-z]|the peer gave up: |the peer is gone while",
}


def step(kind, direction, index, last, words):
    """What both ends do about one harm at one step. Who has sent its last word may end well."""
    harms = {"cut": cut, "silent": silence, "killed": kill(direction), "forged": flip,
             "oversize": oversize}
    timeout = "700ms" if kind == "silent" else "20s"
    ends = session(direction, index, harms[kind], timeout, words)
    where = f"{kind} at frame {index} of {'run' if direction == FROM_RUN else 'serve'}"
    for which, (status, text) in enumerate(ends[:2]):
        if kind == "killed" and which == direction:
            ended = (-signal.SIGKILL, 0) if index == last else (-signal.SIGKILL,)
            demand(status in ended, f"{where}: {status}")
            continue
        if which == FROM_SERVE and direction == FROM_SERVE and index == last and status == 0:
            continue
        told = f"{where}, {'run' if which == FROM_RUN else 'serve'}: {status}\n{text}"
        demand(status == 69 or (status is None and which == FROM_SERVE and index < GREETED), told)
        demand(re.search(REASONS[kind], text), told)


def steps(kind, every, *words):
    """All steps of a session, each in one of its own."""
    one, other, counts = session(None, None, None, words=words)
    demand(one[0] == 0 and other[0] == 0, f"{one}{other}")
    demand(min(counts) > 6, f"frames: {counts}")
    todo = [(kind, d, i, counts[d] - 1, words) for d in (FROM_RUN, FROM_SERVE)
            for i in range(1 if every > 1 else 0, counts[d], every)]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for result in [pool.submit(step, *what) for what in todo]:
            result.result()
    return f"{len(todo)} steps"


# Peers that are not the lab, or have the key and talk nonsense.


class FakePeer:
    """Speaks the protocol by libsodium itself, as `lab run`."""

    def __init__(self, port):
        self.sodium = ctypes.CDLL(ctypes.util.find_library("sodium") or "libsodium.so.23")
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        mine = b"verb-lab" + struct.pack(">II", 1, 0) + bytes(range(32))
        self.socket.sendall(mine)
        theirs = self.socket.recv(48, socket.MSG_WAITALL)
        with open(key(), "rb") as file:
            shared = self.hash(file.read().rstrip(b"\n"), b"", 32)
        both = self.hash(theirs + mine, shared, 64)
        self.key, self.sent = both[32:], 0
        self.say({"type": "key"})

    def hash(self, text, secret, n):
        out = ctypes.create_string_buffer(n)
        self.sodium.crypto_generichash(out, ctypes.c_size_t(n), text,
                                       ctypes.c_ulonglong(len(text)), secret or None,
                                       ctypes.c_size_t(len(secret)))
        return out.raw

    def say(self, message):
        text = message if isinstance(message, bytes) else json.dumps(message).encode()
        box = ctypes.create_string_buffer(len(text) + 16)
        nonce = struct.pack("<Q", self.sent) + bytes(16)
        self.sodium.crypto_secretbox_easy(box, text, ctypes.c_ulonglong(len(text)), nonce, self.key)
        self.sent += 1
        self.socket.sendall(struct.pack(">I", len(box.raw)) + box.raw)


@functools.cache
def settings():
    """What `lab run` says of itself."""
    command = [e2e.VERBENA, "lab", "local", *NO_TCP, "--json", "-"]
    status, out, err = e2e.run(command, LIMIT_SECONDS)
    demand(status == 0, err)
    return {"type": "settings", **json.loads(out)["settings"]}


SETTINGS = {}  # in a row: settings() with these changed
CASE = {"type": "case", "near": 0, "op": 0, "way": 0, "offset": 0, "size": 64, "depth": 1,
        "warmup": 1, "iterations": 5, "first": 0, "qps": 1, "threads": 1}
ENDPOINT = {"type": "endpoint", "qpn": 5, "psn": 1, "lid": 0, "mtu": 3, "address": 4096, "rkey": 1,
            "length": 4096, "counter": 4096, "reads": 1, "gid": "0" * 20 + "ffff7f000001"}
NONSENSE = [
    ([b"no JSON"], "the peer sent no message while agreeing on settings"),
    ([b"[1,2]"], "the peer sent 'nothing' instead of 'settings'"),
    ([b"[" * 100000], "the peer sent no message"),
    ([{"type": "case"}], "the peer sent 'case' instead of 'settings'"),
    ([{"type": "settings"}], "the peer sent no right 'op'"),
    ([{"op": "fly"}], "op: 'fly' is none of"),
    ([{"size": "99999999999"}], "size: "),
    ([{"depth": 5}], "the peer sent no right 'depth'"),
    ([{"depth": "64", "slots": "2"}], "depth: 64 messages under way"),
    ([SETTINGS, {"type": "ready"}], "the peer sent 'ready' instead of 'case'"),
    ([SETTINGS, {**CASE, "op": 99}], "the peer sent no right 'op'"),
    ([SETTINGS, {**CASE, "op": 5}], "the peer sent no right 'case'"),
    ([SETTINGS, {**CASE, "size": 0}], "the peer sent no right 'case'"),
    ([SETTINGS, {**CASE, "size": 1 << 40}], "the peer sent no right 'size'"),
    ([SETTINGS, {**CASE, "depth": 0}], "the peer sent no right 'case'"),
    ([SETTINGS, {**CASE, "depth": 65}], "the peer sent no right 'depth'"),
    ([SETTINGS, {**CASE, "threads": 0}], "the peer sent no right 'case'"),
    ([SETTINGS, {**CASE, "threads": 2}], "the peer sent no right 'threads'"),
    ([SETTINGS, {**CASE, "near": 3}], "the peer sent no right 'near'"),
    ([SETTINGS, {**CASE, "first": -1}], "the peer sent no right 'first'"),
    ([SETTINGS, {**CASE, "iterations": 1.5}], "the peer sent no right 'iterations'"),
    ([SETTINGS, CASE, {**ENDPOINT, "qpn": 1 << 24}], "the peer sent no right 'qpn' while running"),
    ([SETTINGS, CASE, {**ENDPOINT, "gid": "x"}], "the peer sent no right 'gid' while running"),
    ([SETTINGS, CASE, {**ENDPOINT, "mtu": 0}], "the peer sent no right 'mtu' while running"),
    ([SETTINGS, CASE, ENDPOINT, {"type": "done"}], "the peer sent 'done' instead of 'ready'"),
    ([SETTINGS, {"type": "giving-up"}], "the peer gave up: no reason told"),
    ([SETTINGS, {"type": "giving-up", "why": "x" * 9000}], "the peer gave up: xxx"),
]


def nonsense(messages, says):
    with Server() as server:
        peer = FakePeer(server.port)
        try:
            for message in messages:
                whole = isinstance(message, bytes) or "type" in message
                peer.say(message if whole else {**settings(), **message})
        except ConnectionError:
            pass  # it has seen enough before the last
        server.ends(69, says)
        peer.socket.close()


def all_nonsense():
    settings()  # once, before all at once ask for it
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for result in [pool.submit(nonsense, *row) for row in NONSENSE]:
            result.result()
    return f"{len(NONSENSE)} rows"


def silent_clients():
    """Who connects and says nothing, or not enough, keeps nobody else from being served, however
    many they are; and goes after a while."""
    greeting = b"verb-lab" + struct.pack(">II", 1, 0) + bytes(32)
    with Server("--timeout", "20s") as server:
        clients = [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(40)]
        clients[-1].sendall(greeting[:-1])
        server.serves()
        for client in clients:
            client.close()
    with Server("--timeout", "2s") as server:
        with socket.create_connection(("127.0.0.1", server.port), 10) as client:
            server.turns_away("it does not say who it is in time")
            demand(client.recv(1) == b"", "the connection stays open")
        server.serves()
    with Server("--timeout", "500ms") as server:
        with socket.create_connection(("127.0.0.1", server.port), 10) as client:
            client.sendall(greeting)
            server.ends(69, "the peer says nothing for 500 ms while greeting")


def trickle():
    """One byte now and then is no reason to wait for more."""
    with Server("--timeout", "700ms") as server:
        with socket.create_connection(("127.0.0.1", server.port), 10) as client:
            client.sendall(b"verb-lab" + struct.pack(">II", 1, 0) + bytes(32))
            client.sendall(struct.pack(">I", 60000))

            def more():
                try:
                    client.send(b"x")
                except ConnectionError:
                    return True
                return server.process.popen.poll() is not None
            wait_until(more, 20, "an end")
            server.ends(69, "the peer says nothing for 700 ms while greeting")


def silent_server():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        status, _, err = e2e.run(run(port, *NO_TCP, "--timeout", "300ms"), LIMIT_SECONDS)
        demand(status == 69 and "the peer says nothing for 300 ms while greeting" in err, err)


def garbage_after_greeting(data, says):
    """Who greets is the peer, and ends it."""
    with Server("--timeout", "5s") as server:
        with socket.create_connection(("127.0.0.1", server.port), 10) as client:
            client.sendall(data)
            server.ends(69, says)


def garbage(data, says):
    """Rubbish does not end it, and the next is served."""
    with Server("--timeout", "5s") as server:
        with socket.create_connection(("127.0.0.1", server.port), 10) as client:
            client.sendall(data)
            server.turns_away(says)
        server.serves()


def strangers_of_the_baseline():
    """Who connects to serve's port when the baseline's connection should come is not taken for it,
    and does not keep it away."""
    with Server() as server:
        peer = FakePeer(server.port)
        peer.say({**settings(), "baseline": "on"})
        peer.say({"type": "data", "word": "0" * 64})
        with socket.create_connection(("127.0.0.1", server.port), 10), \
                socket.create_connection(("127.0.0.1", server.port), 10) as other, \
                socket.create_connection(("127.0.0.1", server.port), 10) as right:
            other.sendall(b"1" * 64 + b"\0")
            server.turns_away("it is not the baseline's connection")
            right.sendall(b"0" * 64 + b"\0")
            peer.say({"type": "case", "end": True})
            server.ends(0)
        peer.socket.close()


def busy():
    """Whoever else comes while a run is under way is told with whom and since when, and ends with a
    status of its own; who has another key learns nothing of that. The run goes on."""
    says = r"`lab serve' is busy with another peer, 127\.0\.0\.1 port \d+, since [-0-9]+ [0-9:]+ UTC"
    other = os.path.join(scratch().name, "other-key")
    lab("key", other)
    for index in (3, 8):  # at once, and amid the cases
        with Server() as server:
            def others(frame, server=server):
                for command in ("run", "path", "experiment"):
                    words = [e2e.VERBENA, "lab", command, "--key", key(), "--timeout", "20s"]
                    words += ["--peer", f"127.0.0.1:{server.port}"]
                    status, out, err = e2e.run(words, LIMIT_SECONDS)
                    demand(status == 75 and re.search(says, err) and not out, f"{status} {err}{out}")
                words = ["run", "--key", other, "--peer", f"127.0.0.1:{server.port}"]
                _, err = lab(*words, status=69)
                demand("the peer's key is not ours" in err and "busy" not in err, err)
                return frame
            with Proxy(server.port, FROM_RUN, index, others) as proxy:
                status, out, err = e2e.run(run(proxy.port, *LITTLE), 2 * LIMIT_SECONDS)
                demand(status == 0 and "Verdict: passed" in out, f"{status} {err}{out}")
            server.ends(0, "is turned away: `lab serve' is busy")
            away = server.process.both().count("is turned away: ")
            demand(away == 4, f"{away} turned away:\n{server.process.both()}")


def no_baseline():
    """Nobody comes for it."""
    with Server() as server:
        peer = FakePeer(server.port)
        peer.say({**settings(), "baseline": "on", "timeout": "500ms"})
        peer.say({"type": "data", "word": "0" * 64})
        with socket.create_connection(("127.0.0.1", server.port), 10) as other:
            other.sendall(b"1" * 64 + b"\0")
            server.ends(69, "nobody came to port")
        peer.socket.close()


# Disks, addresses, devices.


def one_file_for_two():
    """One of two reports would be lost, and a history with them: refused before anything is done."""
    words = ["local", *NO_TCP]
    with tempfile.TemporaryDirectory() as folder:
        db, new, other = (os.path.join(folder, name) for name in ("db", "new", "./new"))
        lab(*words, "--db", db)
        os.symlink(db, os.path.join(folder, "link"))
        with open(db, "rb") as file:
            before = file.read()
        for one, two, options in (
            ("db", "json", ("--db", db, "--json", db)),
            ("db", "html", ("--db", db, "--html", os.path.join(folder, "link"))),
            ("json", "html", ("--db", "none", "--json", new, "--html", other)),
        ):
            _, err = lab(*words, *options, status=64)
            demand(f"--{one} and --{two} name one file" in err, err)
        _, err = lab("history", "--db", db, "--json", db, status=64)
        demand("--db and --json name one file" in err, err)
        with open(db, "rb") as file:
            demand(file.read() == before, "the history has changed")
        demand(sorted(os.listdir(folder)) == ["db", "link"], f"{os.listdir(folder)}")
        lab(*words, "--db", "none", "--json", "/dev/null", "--html", "/dev/null")
        _, err = lab(*words, "--html", "-", status=64)
        demand("name a file" in err, err)


def limits():
    """Of the shell: a file that may not grow is an error as a full disk is, and so is one file too
    many; nothing half-written stays."""
    words = [e2e.VERBENA, "lab", "local", *NO_TCP, "--db", "none"]
    with tempfile.TemporaryDirectory() as folder:
        grow = ["sh", "-c", 'ulimit -f 20; "$@"', "sh", *words, "--json", f"{folder}/x"]
        status, _, err = e2e.run([*grow, "--html", f"{folder}/big"], LIMIT_SECONDS)
        if "this build has no charts" not in err:
            demand(status == 70 and "File too large" in err, f"{status} {err}")
            demand(os.listdir(folder) == ["x"], f"{os.listdir(folder)}")
    few = ["sh", "-c", 'ulimit -n 12; "$@"', "sh", *words]
    status, _, err = e2e.run(few, LIMIT_SECONDS)
    demand(status == 69 and "too many files are open" in err, f"{status} {err}")


def full_disk(option, sizes, fits):
    """However much of it fits: the run has failed, and says where; what was there before is whole.
    A history that cannot even be made is told before the run."""
    words = [e2e.VERBENA, "lab", "local", *NO_TCP, "--depth", "1,2,4", option]
    script = ('mount -t tmpfs -o size=$1 none "$2" && { [ -z "$3" ] || echo old >"$2/file"; } && '
              'folder=$2 && shift 3 && "$@"; status=$?; cat "$folder/file" >&2; ls -A "$folder" >&2; '
              'exit $status')
    full = 0
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = os.path.join(folder, "file")
            old = "" if option == "--db" else "old"
            inside = ["unshare", "-m", "sh", "-c", script, "sh", size, folder, old]
            status, out, err = e2e.run([*inside, *words, path], LIMIT_SECONDS)
            if "this build has no charts" in err:
                raise e2e.Skip("this build has no charts")
            if status == 0:
                continue
            full += 1
            if option == "--db":
                before = "--db: no run can be kept: " in err
                demand(status == (69 if before else 70), f"{size}: {status} {err}")
                demand(before or "--db: the run is not kept: " in err, err)
                demand(path in err and ("full" in err or before), err)
                demand(before == ("Verdict: passed" not in out), "the report is lost, too")
                continue
            demand(status == 70, f"{size}: {status} {err}")
            demand(f"{option}: cannot write '{path}': No space left on device" in err, err)
            demand(err.endswith("\nold\nfile\n"), f"what was there is lost, or more is there: {err}")
            demand("Verdict: passed" in out, "the report is lost, too")
        demand(full == len(sizes) - fits, f"{full} of {sizes} were full")


def nothing_for_nothing():
    """What cannot be written is told before the run, and what is there stays until its end."""
    path = os.path.join(scratch().name, "old")
    with open(path, "w", encoding="ascii") as file:
        file.write("old")
    read_only = os.path.join(scratch().name, "read-only.db")
    command = [e2e.VERBENA, "lab", "local", *NO_TCP]
    status, _, err = e2e.run([*command, "--db", read_only], LIMIT_SECONDS)
    demand(status == 0, err)
    rows = [
        (["--json", "/none/file"], "--json: cannot write '/none/file': No such file or directory"),
        (["--json", scratch().name], "Is a directory"),
        (["--html", "/none/file"], "--html: "),
        (["--db", "/proc/lab.db"], "--db: no run can be kept: '/proc/lab.db'"),
        (["--db", path], f"--db: no run can be kept: '{path}' is no history"),
    ]
    for words, says in rows:
        status, out, err = e2e.run([*command, *words, "--timeout", "3600s", "--iterations",
                                    "900000000"], LIMIT_SECONDS)
        demand(status == 69 and says in err and out == "", f"{words}: {status} {err}{out}")
    for option in ("--json", "--html"):
        status, _, err = e2e.run([*command, option, path, "--plant", "early-reuse"], LIMIT_SECONDS)
        demand(status == 69, err)
        with open(path, encoding="ascii") as file:
            demand(file.read() == "old", f"{option}: emptied before the run")
    with Process([*command, "--json", path, "--iterations", "900000000"]) as process:
        wait_until(lambda: children(process.pid), 20, "the target's process")
        process.popen.terminate()
        process.wait(30)
    with open(path, encoding="ascii") as file:
        demand(file.read() == "old", "emptied by a run that was ended")
    demand(not [n for n in os.listdir(scratch().name) if n.startswith(".")], "something is left")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()


def stdout_full():
    command = " ".join([e2e.VERBENA, "lab", "local", *NO_TCP, ">/dev/full"])
    status, _, err = e2e.run(["sh", "-c", command], LIMIT_SECONDS)
    demand(status == 70 and "cannot write the report: No space left on device" in err, err)


def addresses():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        serve = ["serve", "--key", key(), "--listen"]
        client = ["run", "--key", key(), "--timeout", "1s", "--peer"]
        for words, says in (
            ([*serve, "127.0.0.1", "--port", port], f"cannot listen on 127.0.0.1 port {port}: Addr"),
            ([*serve, "203.0.113.77"], "cannot listen on 203.0.113.77 port 18470: Cannot assign"),
            ([*serve, "no.such.host.invalid"], "'no.such.host.invalid' is no address"),
            ([*client, "no.such.host.invalid"], "'no.such.host.invalid' is no address"),
            ([*client, "203.0.113.77"], "cannot reach `lab serve' at 203.0.113.77 port 18470"),
            ([*client, "fe80::1"], "cannot reach `lab serve' at fe80::1 port 18470"),
        ):
            status, _, err = e2e.run([e2e.VERBENA, "lab", *words], LIMIT_SECONDS)
            demand(status == 69 and says in err, f"{words}: {status} {err}")


def no_device():
    if os.path.isdir("/sys/class/infiniband"):
        raise e2e.Skip("this machine has adapters of its own")
    command = [e2e.VERBENA, "lab", "--nic", "system", "local", *NO_TCP]
    status, _, err = e2e.run(command, LIMIT_SECONDS)
    demand(status == 69 and "there is no RDMA device" in err, err)


def host_name(name, shown):
    """A host may have any bytes for its name: they cost no run, and what is no UTF-8 is shown so."""
    rename = ("import os, socket, sys; socket.sethostname(bytes.fromhex(sys.argv[1])); "
              "os.execvp(sys.argv[2], sys.argv[2:])")
    inside = ["unshare", "-u", sys.executable, "-c", rename, name.hex()]
    command = [*inside, e2e.VERBENA, "lab", "local", *NO_TCP, "--json", "-"]
    status, out, err = e2e.run(command, LIMIT_SECONDS)
    demand(status == 0, err)
    record = json.loads(out)
    demand(record["source"]["host"] == record["target"]["host"] == shown, out[:600])
    demand(len(record["cases"]) == 1, out[:600])


def port_down(net):
    a = ["ip", "netns", "exec", net.names[0]]
    e2e.run(["ip", "-n", net.names[0], "link", "set", net.INTERFACE, "down"], 10)
    command = [*a, e2e.VERBENA, "lab", "local", *NO_TCP, "--device", "vb_veth0"]
    status, _, err = e2e.run(command, LIMIT_SECONDS)
    demand(status == 69 and "device: no 'vb_veth0' that can be opened and has an active" in err, err)


def cases(tap):
    one = tap.run
    one("cut", steps, "cut", 1)
    one("silent", steps, "silent", 1)
    one("killed", steps, "killed", 1)
    for kind in ("cut", "silent", "killed"):
        one(f"{kind}_cm", steps, kind, 1, *BY_CM)
    one("forged", steps, "forged", 3)
    one("oversize", steps, "oversize", 3)
    one("nonsense", all_nonsense)
    one("silent_clients", silent_clients)
    one("silent_server", silent_server)
    one("trickle", trickle)
    for name, data in (("zeros", bytes(4096)), ("ones", b"\xff" * 4096), ("http", b"GET / " * 99)):
        one(f"garbage_{name}", garbage, data, "the peer is no `verbena lab'")
    one("garbage_after_greeting", garbage_after_greeting,
        b"verb-lab" + struct.pack(">II", 1, 0) + b"\xff" * 999, "the peer sent no message")
    one("strangers_of_the_baseline", strangers_of_the_baseline)
    one("busy", busy)
    one("no_baseline", no_baseline)
    one("full_disk_json", full_disk, "--json", ("4k", "1m"), 1)
    one("full_disk_html", full_disk, "--html", ("4k", "64k", "256k", "8m"), 1)
    one("full_disk_db", full_disk, "--db", ("4k", "32k", "64k", "8m"), 1)
    one("nothing_for_nothing", nothing_for_nothing)
    one("one_file_for_two", one_file_for_two)
    one("limits", limits)
    one("stdout_full", stdout_full)
    one("addresses", addresses)
    one("host_name_bytes", host_name, b"lab\xff\xc3", "lab??")
    one("host_name_utf8", host_name, "l\u00e4b".encode(), "l\u00e4b")
    one("no_device", no_device)
    try:
        with Namespaces(1500) as net:
            one("port_down", port_down, net)
    except e2e.Skip as reason:
        tap.say("ok", "port_down", f" # SKIP {reason}")


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
