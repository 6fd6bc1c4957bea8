#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 360 s
"""The program `verbena`: every option, every message, every exit code; examples of the manual."""

import glob
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

import e2e
import roce_pcap
from e2e import VERBENA, Failed, Side, Skip, demand, perftest, run

USAGE, UNAVAILABLE = 64, 69
MAN = os.path.join(e2e.ROOT, "docs", "man")


def told(words, status, *patterns, env=None, inside=()):
    """Ends with this exit code and says all of this; a failure says nothing on stdout."""
    got, out, errors = run([*inside, VERBENA, *words], 20, env=env)
    demand(got == status, f"exit code {got}, wanted {status}: {out}{errors}")
    for pattern in patterns:
        demand(re.search(pattern, out + errors), f"no '{pattern}' in:\n{out}{errors}")
    demand(status == 0 or not out, f"a failure wrote to stdout:\n{out}")
    demand(status != 0 or not errors, f"a success wrote to stderr:\n{errors}")


# Words, exit code, what is said.
ROWS = {
    "version": (["--version"], 0, [r"^verbena \d+\.\d+\.\d+\n$"]),
    "version_short": (["-V"], 0, [r"^verbena \d"]),
    "help": (["help"], 0, ["run ", "devices ", "help ", "69"]),
    "help_option": (["--help"], 0, ["run ", "devices ", "help "]),
    "help_run": (["help", "run"], 0, ["verbena run", "--pcap", "--fault", "--stats"]),
    "help_devices": (["help", "devices"], 0, ["verbena devices", "--verbose"]),
    "run_help": (["run", "--help"], 0, ["--pcap=FILE", "--fault=SPEC", "--stats"]),
    "devices_help": (["devices", "--help"], 0, ["--verbose"]),
    "devices": (["devices"], 0, [r"vb_lo +lo +up +\d+ +4096 +0: ::ffff:127.0.0.1 1: ::1"]),
    "devices_verbose": (
        ["devices", "-v"],
        0,
        [
            r"vb_lo\n",
            r"interface +lo \(index \d+\), loopback",
            r"state +up",
            r"MTU +\d+",
            r"path MTU +4096",
            r"node GUID +([0-9a-f]{4}:){3}[0-9a-f]{4}",
            r"GID 0 +::ffff:127.0.0.1 \(RoCE v2\)",
            r"GID 1 +::1 \(RoCE v2\)",
            r"path of packets: UDP sockets",
            r"GSO +(available|not in this kernel)",
            r"GRO +(available|not in this kernel)",
            r"UDP port 4791 +\S",
            r"receive buffer +(\d+ bytes|unknown)",
            r"send buffer +(\d+ bytes|unknown)",
        ],
    ),
    "no_command": ([], USAGE, ["Usage: verbena"]),
    "unknown_command": (["fly"], USAGE, ["no command named 'fly'"]),
    "unknown_option": (["--fly"], USAGE, ["fly"]),
    "help_unknown_command": (["help", "fly"], USAGE, ["no command named 'fly'"]),
    "devices_with_words": (["devices", "vb_lo"], USAGE, ["vb_lo"]),
    "devices_unknown_option": (["devices", "-x"], USAGE, ["x"]),
    "run_nothing": (["run"], USAGE, ["no program"]),
    "run_nothing_after_dashes": (["run", "--"], USAGE, ["no program"]),
    "run_unknown_option": (["run", "--fly", "true"], USAGE, ["fly"]),
    "run_pcap_without_file": (["run", "--pcap"], USAGE, ["pcap"]),
    "run_not_found": (["run", "no-such-program"], UNAVAILABLE, ["'no-such-program' not found"]),
    "run_path_not_found": (["run", "/no/such"], UNAVAILABLE, ["'/no/such' not found"]),
    "run_directory": (["run", "/usr"], UNAVAILABLE, ["is a directory"]),
    "run_not_executable": (["run", "/etc/passwd"], UNAVAILABLE, ["is not executable"]),
    "run_device": (["run", "/dev/null"], UNAVAILABLE, ["is not executable"]),
    "run_pcap_unwritable": (
        ["run", "--pcap", "/no/such/file", "true"],
        UNAVAILABLE,
        ["--pcap: cannot write '/no/such/file': No such file"],
    ),
    "run_pcap_directory": (["run", "--pcap", "/tmp", "true"], UNAVAILABLE, ["Is a directory"]),
    "run_stats_unwritable": (
        ["run", "--stats=/no/such/file", "true"],
        UNAVAILABLE,
        ["--stats: cannot write '/no/such/file': No such file"],
    ),
}

BAD_FAULTS = [
    "",
    "drop",
    "drop=",
    "drop=1",
    "drop=101%",
    "drop=-1%",
    "drop=1%,drop=2%",
    "drop=1.%",
    "drop=0.00000001%",
    "lose=1%",
    "drop=1%,",
    ",drop=1%",
    "drop=1% ",
    "reorder=1%",
    "reorder=1%:50",
    "reorder=1%:us",
    "delay=20",
    "delay=20 us",
    "delay=1h",
    "down=5s",
    "down=5s+",
    "down=5+2s",
    "seed=",
    "seed=x",
    "seed=99999999999999999999",
]
GOOD_FAULTS = [
    "drop=1%,dup=0.1%,reorder=1%:50us,corrupt=0.01%,delay=20us,down=5s+2s,seed=7",
    "drop=100%",
    "drop=0.0000001%",
    "seed=0",
]


def bad_faults():
    for spec in BAD_FAULTS:
        told(["run", "--fault", spec, "true"], USAGE, "--fault: ")


def good_faults():
    for spec in GOOD_FAULTS:
        status, out, errors = run([VERBENA, "run", "--fault", spec, "--", "env"])
        demand(status == 0 and f"VERBENA_FAULT={spec}\n" in out, f"{spec}: {out}{errors}")


def exit_codes():
    for options in ([], ["--stats"]):
        for code in (0, 1, 42, 64, 69, 70, 127, 255):
            status, _, _ = run([VERBENA, "run", *options, "sh", "-c", f"exit {code}"])
            demand(status == code, f"{options}: {status}, wanted {code}")
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE):
            status, _, _ = run([VERBENA, "run", *options, "sh", "-c", f"kill -{int(number)} $$"])
            demand(status == -number, f"{options}: {status}, wanted {-number}")


def arguments():
    """Options behind the program's name are the program's, with or without `--`."""
    for dashes in ([], ["--"]):
        words = ["sh", "-c", 'printf "%s." "$0" "$@"', "--pcap", "x y", "", "--", "-v"]
        status, out, errors = run([VERBENA, "run", *dashes, *words])
        demand(status == 0, errors)
        demand(out == "--pcap.x y..--.-v.", out)


def preload():
    """Appended to what is there; `verbena` is the program's process, not its parent."""
    folder = os.path.realpath(os.path.dirname(VERBENA))
    names = ("libibverbs.so.1", "librdmacm.so.1", "libverbena_files.so.0")
    ours = ":".join(os.path.join(folder, name) for name in names)
    for before, want in (("", ours), ("/usr/lib/none.so", "/usr/lib/none.so:" + ours)):
        command = [VERBENA, "run", "sh", "-c", "echo $LD_PRELOAD; echo $$"]
        with e2e.Process(command, env={"LD_PRELOAD": before}) as process:
            first, pid = process.expect().split()
            demand(first == want, f"LD_PRELOAD is {first}")
            demand(int(pid) == process.pid, "the program is not our own child")


def signals_reach_it():
    """A TERM for `verbena run --stats` ends the program in its own way, and counters come."""
    script = "trap 'exit 33' TERM; echo ready; while :; do sleep 0.05; done"
    with e2e.Process([VERBENA, "run", "--stats", "sh", "-c", script]) as process:
        e2e.wait_until(lambda: "ready" in process.text(), 10, "the program")
        os.kill(process.pid, signal.SIGTERM)
        status = process.wait(10)
        demand(status == 33, f"exit code {status}")
        demand("no counters" in process.text(process.errors), process.both())


def cannot_work(folder):
    """Programs that LD_PRELOAD cannot reach."""
    e2e.need("gcc")
    source = os.path.join(folder, "empty.c")
    with open(source, "w", encoding="ascii") as text:
        text.write("int main(void) { return 0; }\n")

    def build(name, *options):
        path = os.path.join(folder, name)
        status, out, errors = run(["gcc", *options, "-o", path, source])
        demand(status == 0, out + errors)
        return path

    def write(name, text, mode=0o755):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="ascii") as script:
            script.write(text)
        os.chmod(path, mode)
        return path

    static = build("static", "-static")
    told(["run", static], UNAVAILABLE, "statically linked", "static'")
    told(["run", build("static_pie", "-static-pie")], UNAVAILABLE, "statically linked")
    told(["run", build("dynamic")], 0)
    script = write("script", f"#!{static}\n")
    told(["run", script], UNAVAILABLE, f"'{script}' needs '{static}', which is statically linked")
    told(["run", write("env", "#!/usr/bin/env no-such\n")], UNAVAILABLE, "needs 'no-such', which cannot be found")
    told(["run", write("text", "echo no line\n")], UNAVAILABLE, "neither an ELF program nor a script")
    told(["run", write("closed", "#!/bin/sh\n", 0o644)], UNAVAILABLE, "not executable")
    with open(static, "rb") as program:
        other = bytearray(program.read(4096))
    other[4] = 1
    narrow = os.path.join(folder, "narrow")
    with open(narrow, "wb") as program:
        program.write(other)
    os.chmod(narrow, 0o755)
    told(["run", narrow], UNAVAILABLE, "32-bit")


def privileged_programs(folder):
    """setuid, setgid and capabilities, as seen by a user who gains by them."""
    words = e2e.unprivileged()
    with e2e.PublicCopy() as public:
        os.chmod(folder, 0o755)
        path = shutil.copy("/bin/true", os.path.join(folder, "privileged"))

        def refused(pattern):
            status, _, errors = run([*words, public.tool, "run", path])
            demand(status == UNAVAILABLE, f"exit code {status}, wanted {UNAVAILABLE}: {errors}")
            demand(re.search(pattern, errors), errors)

        os.chmod(path, 0o4755)
        refused("is setuid: the system ignores LD_PRELOAD")
        told(["run", path], 0)  # root gains nothing by it
        os.chmod(path, 0o2755)
        refused("is setgid: the system ignores LD_PRELOAD")
        os.chmod(path, 0o755)
        try:
            # Version 2, effective, CAP_NET_RAW permitted.
            os.setxattr(path, "security.capability", bytes.fromhex("010000020020") + bytes(14))
        except OSError as reason:
            raise Skip(f"no file capabilities here: {reason}") from None
        refused("has file capabilities")


def library_missing(folder):
    lonely = shutil.copy(VERBENA, os.path.join(folder, "verbena"))
    status, out, errors = run([lonely, "run", "true"])
    if status == 0:
        raise Skip("Verbena is installed on this machine")
    demand(status == UNAVAILABLE and "libibverbs.so.1 is neither beside" in errors, out + errors)


def folder_with_space(folder):
    """LD_PRELOAD cannot name such a folder."""
    for name in ("a folder", "a:folder"):
        path = os.path.join(folder, name)
        os.mkdir(path)
        for part in ("verbena", "libibverbs.so.1", "librdmacm.so.1", "libverbena.so.0"):
            shutil.copy(os.path.join(os.path.dirname(VERBENA), part), path)
        status, out, errors = run([os.path.join(path, "verbena"), "run", "true"])
        demand(status == UNAVAILABLE and "LD_PRELOAD cannot hold" in errors, out + errors)


def no_device():
    """A namespace where no interface has an address."""
    e2e.need_root()
    e2e.need("unshare")
    told(["devices"], UNAVAILABLE, "no device", inside=["unshare", "--net", "--"])


# By command: words after which it prints, beside those that ask for help. `run` prints nothing.
PRINTS = {
    "run": [],
    "devices": [["devices"], ["devices", "-v"]],
    "lab": [["lab", "local", "--size", "8", "--iterations", "10", "--baseline", "off"]],
    "fabric": [["fabric", "trace", "TRACE", "--format", word] for word in ("text", "csv", "json")]
    + [["fabric", "run", "SCENARIO", "--out", "OUT"]],
}
LAB = ("local", "path", "experiment", "serve", "run", "mpi", "history", "key")


def stdout_full(folder):
    """What could not be written is lost: no command, and no help, ends as if nothing was wrong."""
    _, out, _ = run([VERBENA, "help"])
    listed = re.findall(r"^  (\w+) +\S", out.split("Commands:")[1], re.M)
    demand(set(listed) == {*PRINTS, "help"}, f"which of {listed} print what?")
    trace, results = os.path.join(folder, "trace"), os.path.join(folder, "out")
    scenario = os.path.join(e2e.ROOT, "examples", "scenarios", "mtu-mismatch.yaml")
    run([VERBENA, "fabric", "run", scenario, "--out", results, "--trace", trace], 60)
    rows = [["--version"], ["--help"], ["help"], ["fabric", "trace", "--help"]]
    rows += [["help", name] for name in PRINTS] + [[name, "--help"] for name in PRINTS]
    rows += [["lab", name, "--help"] for name in LAB] + sum(PRINTS.values(), [])
    names = {"TRACE": trace, "SCENARIO": scenario, "OUT": results}
    for words in rows:
        words = [names.get(word, word) for word in words]
        status, _, errors = run(["sh", "-c", 'exec "$0" "$@" >/dev/full', VERBENA, *words], 60)
        demand(status == 70, f"{words}: exit code {status}: {errors}")
        demand("cannot write to standard output: No space left" in errors, f"{words}: {errors}")


def stdout_closed():
    """Nobody listens: an error for who has something to say, nothing for who has not."""
    closed = ["sh", "-c", 'exec "$0" "$@" >&-', VERBENA]
    status, _, errors = run([*closed, "devices"])
    demand(status == 70 and "standard output: Bad file descriptor" in errors, f"{status} {errors}")
    status, _, errors = run([*closed, "run", "true"])
    demand(status == 0 and not errors, f"{status} {errors}")
    status, _, errors = run([*closed, "run", "--stats=/dev/null", "true"])
    demand(status == 0 and not errors, f"{status} {errors}")
    status, _, errors = run([*closed, "walk"])
    demand(status == USAGE and "standard output" not in errors, f"{status} {errors}")


def holder():
    """`devices -v` says who has the port."""
    port = e2e.free_port()
    command = ["ibv_rc_pingpong", "-d", "vb_lo", "-g", "0", "-p", str(port)]
    with Side().start(command) as server:
        e2e.wait_until(lambda: server.listens(port), 15, "the server")
        told(["devices", "-v"], 0, rf"4791 +shared among your processes: .*\(uid {os.getuid()}\)")
        try:
            words = e2e.unprivileged()
        except Skip:
            return
        with e2e.PublicCopy() as public:
            _, out, _ = run([*words, public.tool, "devices", "-v"])
            demand(re.search(r"4791 +not yours: .*uid 0.*will fail", out), out)


def stats():
    """Both partners are below one `verbena run`: two processes, added up."""
    port = e2e.free_port()
    one = f"ibv_rc_pingpong -d vb_lo -g 0 -n 100 -p {port}"
    script = f"{one} & until {one} 127.0.0.1; do sleep 0.05; done; wait"
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "counters")
        for option, where in (("--stats", None), (f"--stats={file}", file)):
            status, _, errors = run([VERBENA, "run", option, "sh", "-c", script])
            demand(status == 0, errors)
            text = errors
            if where:
                demand("counters" not in errors, errors)
                with open(where, encoding="ascii") as written:
                    text = written.read()
            demand(re.search(r"verbena: counters of \d+ processes\n", text), text)
            sent = re.search(r"udp_tx_packets +(\d+)\n", text)
            demand(sent and int(sent.group(1)) >= 400, f"packets sent: {text}")
    leftovers = glob.glob(os.path.join(tempfile.gettempdir(), f"verbena-stats-*{os.getpid()}"))
    demand(not leftovers, f"left behind: {leftovers}")


def stats_file_goes():
    """Nothing stays in TMPDIR."""
    with tempfile.TemporaryDirectory() as folder:
        run([VERBENA, "run", "--stats", "true"], env={"TMPDIR": folder})
        demand(not os.listdir(folder), f"left behind: {os.listdir(folder)}")
        told(["run", "--stats", "true"], UNAVAILABLE, "cannot make a file in /no/such",
             env={"TMPDIR": "/no/such"})


def pcap_follows_cwd():
    """A relative name means our folder, not one that the program goes to."""
    with tempfile.TemporaryDirectory() as folder:
        port = e2e.free_port()
        command = ["ibv_rc_pingpong", "-d", "vb_lo", "-g", "0", "-n", "10", "-p", str(port)]
        script = "cd / && exec " + " ".join([*command, "127.0.0.1"])
        with Side().start(command) as server:
            e2e.wait_until(lambda: server.listens(port), 15, "the server")
            line = [VERBENA, "run", "--pcap", "here.pcap", "sh", "-c", script]
            status, _, errors = run(line, cwd=folder)
            demand(status == 0, errors)
            server.expect()
        demand(roce_pcap.read(os.path.join(folder, "here.pcap")), "no packet")


def all_options():
    options = ["--fault", "drop=1%,seed=5", "--stats"]
    with tempfile.TemporaryDirectory() as folder:
        pcap = ["--pcap", os.path.join(folder, "all.pcap")]
        sides = Side(), Side(options=[*options, *pcap])
        perftest(*sides, "127.0.0.1", "ib_send_lat", size=8)
        demand(roce_pcap.read(pcap[1]), "no packet")


def bad_environment():
    """What the launcher checks, the library checks for those who come without it."""
    for name, value, pattern in (
        ("VERBENA_FAULT", "drop=1", "VERBENA_FAULT"),
        ("VERBENA_PCAP", "/no/such/file", "VERBENA_PCAP"),
        ("VERBENA_PCAP", "/etc/passwd", "VERBENA_PCAP"),
        ("VERBENA_GSO", "maybe", "VERBENA_GSO"),
        ("VERBENA_ALLOW_UIDS", "root", "VERBENA_ALLOW_UIDS"),
    ):
        command = e2e.on_nic("ibv_devinfo", "-d", "vb_lo")
        status, out, errors = run(command, env={name: value})
        demand(status != 0, f"{name}={value}: exit code 0: {out}")
        demand(pattern in errors, f"{name}={value}: {errors}")


def no_files(folder):
    """No file may have a byte (`ulimit -f 0`): what is written only for us is done without, and
    what was asked for is told. Nobody is killed."""
    node = "/sys/class/infiniband/vb_lo/node_guid"
    lab = [e2e.VERBENA, "lab"]
    file = os.path.join(folder, "file")
    hint = "File too large: see ulimit -f"
    for command, status, pattern in (
        (e2e.on_nic("ibv_devinfo", "-d", "vb_lo"), 0, "hca_id"),
        (e2e.on_nic("ibv_devinfo", options=["--pcap", file]), 1, f"VERBENA_PCAP={file}: {hint}"),
        (e2e.on_nic("ibv_devinfo", options=[f"--stats={file}"]), 70, f"--stats: cannot write: {hint}"),
        (e2e.on_nic("cat", node), 1, "node_guid: File too large"),
        ([*lab, "local", "--size", "64", "--depth", "1", "--iterations", "5", "--op", "write"],
         0, "lab.db': disk I/O error: File too large"),
        ([*lab, "path", "--op", "write"], 69, "capture of its packets may need 2228224 bytes, and "
         "files may have no more than 0 here: raise ulimit -f"),
    ):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, -1))
        got = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, preexec_fn=limit, timeout=60, check=False,
                             env=dict(os.environ, XDG_STATE_HOME=folder))
        text = got.stdout.decode(errors="replace")
        demand(got.returncode == status and pattern in text, f"{command}: {got.returncode} {text}")


def examples(page):
    """Each block between ``` lines in the manual page, run by sh in an empty folder."""
    with open(page, encoding="utf-8") as text:
        blocks = re.findall(r"^```\n(.*?)^```$", text.read(), re.MULTILINE | re.DOTALL)
    if not blocks:
        raise Failed("no example")
    for block in blocks:
        demand(not e2e.pingpong_loses(block), f"its end is left to chance:\n{block}")
        for program in ("tshark", "ib_write_bw", "ibv_rc_pingpong", "mpirun"):
            if program in block:
                e2e.need(program)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.dirname(VERBENA) + ":" + os.environ["PATH"]
            status, out, errors = run(["sh", "-ec", block], 60, env={"PATH": path}, cwd=folder)
            demand(status == 0, f"exit code {status} of:\n{block}{out}{errors}")
    return f"{len(blocks)} examples"


def every_option_documented():
    """Each option of the help is in the manual page, and the other way round."""
    for command in ("run", "devices"):
        _, text, _ = run([VERBENA, command, "--help"])
        with open(os.path.join(MAN, f"verbena-{command}.1.scd"), encoding="utf-8") as page:
            manual = set(re.findall(r"\*(--[a-z]+)\*", page.read()))
        offered = set(re.findall(r"(--[a-z]+)", text)) - {"--usage"}
        demand(manual == offered, f"{command}: help {offered}, manual {manual}")


def cases(tap):
    for name, (words, status, patterns) in ROWS.items():
        tap.run(name, told, words, status, *patterns)
    for function in (
        bad_faults,
        good_faults,
        exit_codes,
        arguments,
        preload,
        signals_reach_it,
        no_device,
        stdout_closed,
        holder,
        stats,
        stats_file_goes,
        pcap_follows_cwd,
        all_options,
        bad_environment,
        every_option_documented,
    ):
        tap.run(function.__name__, function)
    for function in (
        stdout_full,
        cannot_work,
        privileged_programs,
        library_missing,
        no_files,
        folder_with_space,
    ):
        with tempfile.TemporaryDirectory() as folder:
            tap.run(function.__name__, function, folder)
    for page in sorted(glob.glob(os.path.join(MAN, "*.scd"))):
        name = os.path.basename(page).removesuffix(".scd").replace(".", "_")
        tap.run(f"examples_of_{name}", examples, page)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
