#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 600 s
"""`verbena lab mpi`: many processes that Open MPI's mpirun starts, on one machine and in namespaces
joined by a veth pair; ranks that differ, die or say nothing more.

Nothing here judges a time. No process may be left when mpirun has ended.
"""

import json
import os
import shutil
import signal
import socket
import sqlite3
import sys
import tempfile

import e2e
import test_lab_experiments
from browser import Browser
from e2e import Failed, Namespaces, Process, demand, wait_until

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
LIMIT_SECONDS = 100
QUICK = ["--iterations", "20", "--warmup", "5", "--timeout", "20s", "--wait", "event"]
SMALL = [*QUICK, "--size", "64", "--depth", "1", "--baseline", "off"]
LAB = [e2e.VERBENA, "lab", "mpi"]


def mine():
    """Processes of the lab that have our network namespace or none that is known to anyone else."""
    marked = f"VERBENA_TEST_MPI={os.getpid()}".encode()
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read().split(b"\0")
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
            name = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue
        if marked in environment and name.endswith("/verbena-lab") and state != "Z":
            rank = [v for v in environment if v.startswith(b"PMIX_RANK=")]
            found[int(pid)] = (int(rank[0][10:]), int(parent))
    return found


# Where a rank has failed mpirun ends the others by SIGTERM, which they obey at once, and looks
# again a second later; without that second it is the same.
ENV = {"VERBENA_TEST_MPI": str(os.getpid()), "OMPI_MCA_odls_base_sigkill_timeout": "0"}


def mpirun(*contexts, status=0, before=(), command=None):
    """Everything that was printed; contexts: a number of processes and words each."""
    line = [*before, *MPIRUN]
    for i, (count, words) in enumerate(contexts):
        line += [*([":"] if i else []), "-np", str(count), *(command or LAB), *words]
    got, out, err = e2e.run(line, LIMIT_SECONDS, env=ENV)
    wait_until(lambda: not mine(), 10, "all processes to go")
    demand(got == status, f"exit code {got}, wanted {status}: {' '.join(line)}\n{err}{out[-1500:]}")
    return out, err


def measured(*contexts, **kwargs):
    path = os.path.join(tempfile.gettempdir(), f"test-lab-mpi-{os.getpid()}.json")
    contexts = [(count, [*words, "--json", path]) for count, words in contexts]
    try:
        out, _ = mpirun(*contexts, **kwargs)
        with open(path, encoding="ascii") as file:
            return json.load(file), out
    finally:
        if os.path.exists(path):
            os.unlink(path)


def right(record, ranks, cases):
    """Every ordered pair, each to the next, all into each; all bytes of all of them good."""
    got = [(m["kind"], m["source"], m["target"]) for m in record["meetings"]]
    each = range(ranks)
    wanted = [("pair", a, b) for a in each for b in each if a != b]
    wanted += [("ring", a, (a + 1) % ranks) for a in each]
    if ranks > 2:
        wanted += [("incast", a, b) for a in each for b in each if a != b]
    demand(sorted(got) == sorted(wanted), f"meetings {got}")
    for m in record["meetings"]:
        told = [(c["op"], c["size"], c["depth"]) for c in m["run"]["cases"]]
        demand(told == (cases if m["kind"] == "pair" else cases[-1:]), f"{m['kind']}: {told}")
        for c in m["run"]["cases"]:
            reader = c["source" if c["op"] == "read" else "target"]["data"]
            bad = {k: v for k, v in reader.items() if k != "good" and v}
            demand(reader["good"] == c["messages"] + c["warmup"] and not bad, f"{c['op']}: {reader}")
            demand(c["gbps"] > 0, "no throughput")


def four():
    words = [*QUICK, "--depth", "1,4"]
    record, out = measured((4, words))
    sizes = [(size, depth) for size in (64, 65536) for depth in (1, 4)]
    cases = [(op, size, depth) for size, depth in sizes for op in ("tcp", "write")]
    right(record, 4, cases)
    demand(record["verdict"]["passed"] and len(record["ranks"]) == 4, f"{record['verdict']}")
    for text in ("Throughput in Gbit/s of write, 64KiB at depth 4", "Throughput over TCP's",
                 "Median latency in us of write, 64B at depth 1", "each to the next:",
                 "all into rank 3:", "Verdict: passed; 28 of 28 meetings passed; slowest pair"):
        demand(text in out, f"no '{text}' in:\n{out}")
    for m in record["meetings"]:
        left = m.get("left")
        demand((left is None) == (m["kind"] == "pair"), f"{m['kind']}: {left}")
        demand(left is None or left["ratio"] > 0, f"{left}")
        demand(not any("doubt" in c for c in m["run"]["cases"]), "doubt of 20 messages")


def few():
    """What is left of a pair is no figure of five messages; nor is one pair slower than another."""
    record, out = measured((2, [*SMALL, "--iterations", "5"]))
    for text in (" % of alone?)", "?: chance: few messages", "which pair is slowest cannot be told",
                 "in 4 of 4 meetings there were cases of fewer than 10 messages"):
        demand(text in out, f"no '{text}' in:\n{out}")
    left = [m["left"]["chance"] for m in record["meetings"] if m["kind"] == "ring"]
    demand(left == [True, True] and record["verdict"]["passed"], f"{left} {record['verdict']}")


def datagrams():
    record, _ = measured((2, [*SMALL, "--transport", "ud", "--wait", "poll"]))
    right(record, 2, [("send", 64, 1)])


def teams(**kwargs):
    """Several queue pairs and threads: all of them in pairs, the most at once together."""
    words = [*SMALL, "--qps", "1,2", "--threads", "1,2"]
    record, _ = measured((2, words), **kwargs)
    right(record, 2, [("write", 64, 1)] * 2)


def teams_ipv4_only():
    """What failed on the way to something that went well is no failure of a queue pair."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ipv4_only.py")
    teams(before=[sys.executable, script])


def sections(browser, page, wanted, charts):
    seen = browser.read(page)
    missing = [name for name in wanted if name not in seen["headings"]]
    demand(not missing and seen["charts"] == charts, f"{missing} of {seen['headings']}, {seen}")
    return seen


def kept_and_drawn(browser, folder):
    """A run of many is in the history, shown again, compared, and a page."""
    file, page = os.path.join(folder, "many.db"), os.path.join(folder, "many.html")
    for _ in range(2):
        out, _ = mpirun((3, [*QUICK, "--size", "64,4KiB", "--depth", "1", "--db", file, "--html", page]))
        demand(f" in {file}; `verbena lab history' compares" in out, out[-500:])
    wanted = ["Every pair", "All at once", "Meetings", "Ranks and settings"]
    seen = sections(browser, page, wanted, 3)
    demand("9 of 9" not in seen["text"] and "15 of 15" in seen["text"], "meetings that passed")
    browser.page(page, 400)
    demand(browser.choose() > 10, "few choices")
    runs = history("--db", file)["runs"]
    demand([(r["kind"], r["target"]) for r in runs] == [("mpi", "3 ranks")] * 2, f"{runs}")
    with sqlite3.connect(file) as db:
        rows = db.execute("SELECT count(*) FROM cases WHERE run = 1 AND round = 'pair' "
                          "AND source_rank = 2 AND target_rank = 0 AND op = 'write'")
        demand(rows.fetchone() == (2,), "cases of pair 2 to 0")
    db.close()
    status, out, err = e2e.run([e2e.VERBENA, "lab", "history", "1", "--db", file, "--html", page])
    demand(status == 0 and "all into rank 2:" in out, f"{status} {err}{out[-500:]}")
    sections(browser, page, wanted, 3)
    rows = history("1", "2", "--db", file)["rows"]
    told = {(r["round"], r["source_rank"], r["target_rank"]) for r in rows}
    demand(len(told) == 15, f"{told}")
    e2e.run([e2e.VERBENA, "lab", "history", "1", "2", "--db", file, "--html", page])
    sections(browser, page, ["What changed", "All figures"], 1)


def history(*words):
    status, out, err = e2e.run([e2e.VERBENA, "lab", "history", "--json", "-", *words])
    demand(status == 0, err)
    return json.loads(out)


def failed_and_drawn(browser, folder):
    """Where nothing could be measured, the page says so."""
    page = os.path.join(folder, "failed.html")
    mpirun((2, [*SMALL, "--plant", "early-reuse", "--db", "none", "--html", page]), status=69)
    seen = sections(browser, page, ["Meetings", "Ranks and settings"], 0)
    demand("NOT MEASURED" in seen["text"].upper(), seen["text"][:500])


def in_browser(tap):
    with Browser() as browser, tempfile.TemporaryDirectory(prefix="test-lab-mpi-") as folder:
        tap.run("kept_and_drawn", kept_and_drawn, browser, folder)
        tap.run("failed_and_drawn", failed_and_drawn, browser, folder)


def to_stdout():
    out, _ = mpirun((2, [*SMALL, "--json", "-"]))
    demand(json.loads(out)["record"] == "verbena lab mpi", out)


def verdicts():
    out, _ = mpirun((2, [*SMALL, "--max-p99", "1ns"]), status=1)
    demand("pair, rank 1 to 0: MISSED max-p99: write of 64 bytes" in out, out)
    out, _ = mpirun((2, [*SMALL, "--op", "atomic", "--min-gbps", "1"]), status=1)
    demand("pair, rank 1 to 0: NOT JUDGED min-gbps: no case has a throughput" in out, out)
    out, _ = mpirun((3, [*SMALL, "--plant", "stale-data", "--slots", "4"]), status=2)
    demand("incast, rank 2 to 0: WRONG DATA" in out and "stale" in out, out)
    out, _ = mpirun((2, [*SMALL, "--plant", "early-reuse"]), status=69)
    demand("pair, rank 0 to 1: NOT MEASURED: rank 0 on " in out, out)
    demand("reuse before the acknowledgement" in out, out)


def listeners():
    """Ports where processes of the lab listen."""
    with open("/proc/net/tcp", encoding="ascii") as four, \
            open("/proc/net/tcp6", encoding="ascii") as six:
        rows = [row.split() for row in [*four, *six]]
    ports = {f"socket:[{row[9]}]": int(row[1].rpartition(":")[2], 16)
             for row in rows if row[3] == e2e.TCP_LISTEN}
    found = set()
    for pid in mine():
        try:
            names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue  # it has ended, or closed one
        found |= {ports[name] for name in names if name in ports}
    return found


def strangers():
    """Whoever connects to rank 0, or to the target of a meeting, and says rubbish or nothing, costs
    nothing."""
    came, sockets = set(), []

    def come():
        for port in listeners() - came:
            for rubbish in (b"", b"GET / ", b"verb-lab" * 20):
                try:
                    sockets.append(socket.create_connection(("127.0.0.1", port), 1))
                    sockets[-1].sendall(rubbish)
                    came.add(port)
                except OSError:
                    pass  # the meeting is over
        return process.popen.poll() is not None

    with Process([*MPIRUN, "-np", "2", *LAB, *SMALL, "--iterations", "3000"], env=ENV) as process:
        wait_until(come, LIMIT_SECONDS, "the end")
        demand(process.wait(10) == 0 and "Verdict: passed" in process.both(), process.both())
    for each in sockets:
        each.close()
    demand(came, "no stranger came")
    return f"at {len(came)} ports"


def progress():
    """mpirun's terminal sees which round it is, though the ranks have a pipe to mpirun."""
    command = [*MPIRUN, "-np", "3", *LAB, *SMALL]
    test_lab_experiments.progress(command, 10, "pair, rank 0 to 1", "ring, rank 0 to 1 and 2 more")


def host_name():
    """A name that is no UTF-8 costs nothing. Only the ranks see it: mpirun has rules of its own."""
    rename = ("import os, socket, sys; socket.sethostname(b'lab\\xff'); "
              "os.execvp(sys.argv[1], sys.argv[1:])")
    command = ["unshare", "-u", sys.executable, "-c", rename, *LAB]
    record, _ = measured((2, SMALL), command=command)
    right(record, 2, [("write", 64, 1)])
    demand([r["host"] for r in record["ranks"]] == ["lab?", "lab?"], f"{record['ranks']}")


def refused():
    for contexts, status, says in (
        ([(1, SMALL)], 64, "the launcher started 1, where 2 to 256 processes can be"),
        ([(1, SMALL), (1, [*SMALL, "--retry", "5ms"])], 69, "retry is 20ms for rank 0 on "),
        ([(1, SMALL), (1, [*SMALL, "--max-p99", "1s"])], 69, "max-p99 is 0ns for rank 0 on "),
        ([(2, [*SMALL, "--network", "10.0.0.0/8"])], 69, "network: rank 0 on "),
        ([(2, [*SMALL, "--network", "10.0.0.0/33"])], 64, "--network: '10.0.0.0/33' is no prefix"),
        ([(2, [*SMALL, "--peer", "x"])], 64, "unrecognized option"),
        ([(2, [*SMALL, "--json", "/none/file"])], 69, "--json: cannot write '/none/file'"),
        ([(2, [*SMALL, "--json", "/dev/full"])], 70, "--json: cannot write '/dev/full'"),
    ):
        _, err = mpirun(*contexts, status=status)
        demand(says in err, f"wanted '{says}':\n{err}")
    out, _ = mpirun((2, [*SMALL, "--device", "vb_none"]), status=69)
    demand("rank 1 on " in out and "device: no 'vb_none'" in out, out)


def without_launcher():
    status, _, err = e2e.run([*LAB, *SMALL], LIMIT_SECONDS)
    demand(status == 64 and "no launcher with PMIx has started this process" in err, err)
    env = {"PMIX_RANK": "0", "PMIX_NAMESPACE": "none"}
    status, _, err = e2e.run([*LAB, *SMALL], LIMIT_SECONDS, env=env)
    demand(status == 69 and "the launcher's PMIx: cannot reach it" in err, err)


class Copy:
    """The programs in another folder, the lab changed."""

    LANGUAGE = b"verbena lab mpi, protocol 1"

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="test-lab-mpi-")
        for name in ("verbena", "verbena-lab", "verbena-lab-pmix.so", "libibverbs.so.1",
                     "librdmacm.so.1", "libverbena_files.so.0", "libverbena.so.0"):
            shutil.copy(os.path.join(e2e.BUILD, name), self.folder)
        self.lab = [os.path.join(self.folder, "verbena"), "lab", "mpi"]
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def of_another_version(self):
        path = os.path.join(self.folder, "verbena-lab")
        with open(path, "rb") as file:
            program = file.read()
        demand(self.LANGUAGE in program, "the program does not say its language")
        with open(path, "wb") as file:
            file.write(program.replace(self.LANGUAGE, self.LANGUAGE[:-1] + b"9"))


def other_version():
    with Copy() as other:
        other.of_another_version()
        line = [*MPIRUN, "-np", "2", *LAB, *SMALL, ":", "-np", "1", *other.lab, *SMALL]
        status, out, err = e2e.run(line, LIMIT_SECONDS, env=ENV)
        demand(status == 69 and "rank 2 on " in err, f"{status} {out}{err}")
        demand("protocol 9' (version " in err and "use the same version everywhere" in err, err)


def without_pmix():
    with Copy() as other:
        os.unlink(os.path.join(other.folder, "verbena-lab-pmix.so"))
        _, err = mpirun((2, SMALL), status=69, command=other.lab)
        demand("was built without PMIx" in err, err)


ENDLESS = ["--iterations", "900000000", "--size", "64", "--depth", "1", "--baseline", "off"]


def leaders(process, rank, count):
    """The process of that rank which mpirun started, when a meeting is on: count processes."""
    found = mine()
    if process.popen.poll() is not None:
        raise Failed(f"ended with {process.popen.returncode}: {process.both()}")
    first = [pid for pid, (of, parent) in found.items() if of == rank and parent not in found]
    return first if len(found) >= count else None


def killed(rank):
    """Each rank, a worker or leader more for rank 0, and two processes of a meeting."""
    with Process([*MPIRUN, "-np", "3", *LAB, *ENDLESS], env=ENV) as process:
        (pid,) = wait_until(lambda: leaders(process, rank, 6), 30, "a meeting")
        os.kill(pid, signal.SIGKILL)
        status = process.wait(30)
        wait_until(lambda: not mine(), 10, "all processes to go")
        text = process.both()
        # Who hears of it first, mpirun or those who were connected, tells it.
        by_launcher = f"process rank {rank} " in text and "Killed" in text
        by_ranks = "gone while waiting for rank 0" if rank == 0 else f"rank {rank} on "
        demand(status != 0 and (by_launcher or by_ranks in text), text)


def launcher_killed():
    with Process([*MPIRUN, "-np", "3", *LAB, *ENDLESS], env=ENV) as process:
        wait_until(lambda: leaders(process, 0, 6), 30, "a meeting")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
        wait_until(lambda: not mine(), 10, "all processes to go")


def parts():
    """Processes of a meeting, of other ranks than 0, whose worker has a parent of ours, too."""
    found = mine()
    return {pid for pid, (rank, parent) in found.items() if rank > 0 and parent in found}


def process_killed():
    """Who is killed within a meeting fails that one; the next begins."""
    with Process([*MPIRUN, "-np", "3", *LAB, *ENDLESS], env=ENV) as process:
        wait_until(lambda: leaders(process, 0, 6), 30, "a meeting")
        first = wait_until(parts, 10, "its processes")
        os.kill(min(first), signal.SIGKILL)
        wait_until(lambda: parts() and not parts() & first, 30, "the next meeting")
        process.popen.terminate()
        process.wait(30)
        wait_until(lambda: not mine(), 10, "all processes to go")


def namespaces():
    """The launcher starts its helper on the other host by an agent, as ssh would be."""
    with Namespaces(1500) as net, tempfile.TemporaryDirectory() as folder:
        agent = os.path.join(folder, "agent")
        inside = "".join(f"{v4}) name={name};; " for v4, name in zip(net.V4, net.names))
        with open(agent, "w", encoding="ascii") as file:
            file.write(f'#!/bin/sh\ncase $1 in {inside}esac; shift\n'
                       'exec ip netns exec "$name" sh -c "$*"\n')
        os.chmod(agent, 0o755)
        hosts = ",".join(f"{v4}:2" for v4 in net.V4)
        before = ["ip", "netns", "exec", net.names[0]]
        options = ["--host", hosts, "--mca", "plm_rsh_agent", agent, "--mca",
                   "oob_tcp_if_include", net.INTERFACE, "--map-by", "node"]
        export = ["-x", "VERBENA_TEST_MPI"]
        record, _ = measured((4, [*SMALL, "--network", "10.89.0.0/24"]), before=before,
                             command=[*options, *export, *LAB])
        right(record, 4, [("write", 64, 1)])
        addresses = sorted(a for r in record["ranks"] for a in r["addresses"])
        demand(addresses == sorted(net.V4 * 2), f"{addresses}")
        devices = {m["run"]["source"]["device"] for m in record["meetings"]}
        demand(devices == {"vb_veth0"}, f"{devices}")


def cases(tap):
    e2e.need("mpirun")
    one = tap.run
    one("four", four)
    one("few", few)
    one("datagrams", datagrams)
    one("teams", teams)
    one("teams_ipv4_only", teams_ipv4_only)
    one("to_stdout", to_stdout)
    one("browser", in_browser, tap)
    one("verdicts", verdicts)
    one("host_name", host_name)
    one("strangers", strangers)
    one("progress", progress)
    one("refused", refused)
    one("without_launcher", without_launcher)
    one("other_version", other_version)
    one("without_pmix", without_pmix)
    for rank in (0, 1):
        one(f"rank_{rank}_killed", killed, rank)
    one("launcher_killed", launcher_killed)
    one("process_killed", process_killed)
    one("namespaces", namespaces)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
