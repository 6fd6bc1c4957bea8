#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""The files by which programs find devices: /dev/infiniband and /sys/class/infiniband."""

import os
import re
import shutil
import signal
import sys
import tempfile

import e2e
from e2e import PublicCopy, Side, demand, on_nic, run

IB = "/sys/class/infiniband"
LO = IB + "/vb_lo"
PORT = LO + "/ports/1"
NODES = "/dev/infiniband"
UVERBS = "uverbs1025"  # lo is interface 1 of every namespace
VERBS = "/sys/class/infiniband_verbs"


class How:
    """One way to give a program the files."""

    def __init__(self, inside=(), options=(), tool=None):
        self.inside = list(inside)
        self.options = list(options)
        self.tool = tool
        self.shim = "--ns" not in options

    def run(self, *command, **kwargs):
        line = self.inside + on_nic(*command, options=self.options, tool=self.tool)
        return run(line, 120, **kwargs)

    def text(self, *command):
        status, text, errors = self.run(*command)
        demand(status == 0, f"exit code {status}: {' '.join(command)}\n{text}{errors}")
        demand(not errors, f"{' '.join(command)} complained:\n{errors}")
        return text

    def refused(self, *command, why):
        status, text, errors = self.run(*command)
        demand(status not in (0, 64, 69, 70), f"exit code {status}: {' '.join(command)}\n{text}")
        demand(why in errors, f"'{why}' is not in:\n{errors}")

    def side(self):
        return Side(inside=self.inside, options=self.options, tool=self.tool)


# What `cat` says of the files of vb_lo, whose only addresses are 127.0.0.1 and ::1.
TEXTS = {
    f"{LO}/node_type": "1: CA\n",
    f"{LO}/board_id": "VERBENA\n",
    f"{LO}/parent": "lo\n",
    f"{PORT}/state": "4: ACTIVE\n",
    f"{PORT}/phys_state": "5: LinkUp\n",
    f"{PORT}/rate": "10 Gb/sec (1X QDR)\n",
    f"{PORT}/link_layer": "Ethernet\n",
    f"{PORT}/lid": "0x0\n",
    f"{PORT}/pkeys/0": "0xffff\n",
    f"{PORT}/gids/0": "0000:0000:0000:0000:0000:ffff:7f00:0001\n",
    f"{PORT}/gids/1": "0000:0000:0000:0000:0000:0000:0000:0001\n",
    f"{PORT}/gids/2": "0000:0000:0000:0000:0000:0000:0000:0000\n",
    f"{PORT}/gid_attrs/types/0": "RoCE v2\n",
    f"{PORT}/gid_attrs/ndevs/1": "lo\n",
    f"{PORT}/counters/port_xmit_packets": "0\n",
    f"{PORT}/hw_counters/rnr_nak_sent": "0\n",
    f"{VERBS}/abi_version": "6\n",
    f"{VERBS}/{UVERBS}/ibdev": "vb_lo\n",
    f"{VERBS}/{UVERBS}/dev": "1:3\n",
}


def cat(how):
    demand(how.text("cat", *TEXTS) == "".join(TEXTS.values()), "cat says something else")
    for name in ("node_guid", "sys_image_guid"):
        guid = how.text("cat", f"{LO}/{name}")
        demand(re.fullmatch(r"([0-9a-f]{4}:){3}[0-9a-f]{4}\n", guid), guid)
    how.refused("cat", f"{LO}/no_such", why="No such file")
    how.refused("cat", f"{LO}/fw_ver/x", why="Not a directory")
    how.refused("sh", "-c", f"echo > {LO}/fw_ver", why="ermission denied" if how.shim else "annot create")


def names(text):
    return sorted(text.split())


def ls(how):
    demand("vb_lo" in names(how.text("ls", IB)), "no vb_lo")
    demand({"rdma_cm", UVERBS} <= set(names(how.text("ls", NODES))), "nodes are missing")
    demand(names(how.text("ls", f"{PORT}/gids")) == sorted(map(str, range(256))), "GIDs")
    demand(names(how.text("ls", f"{LO}/device/net")) == ["lo"], "no network interface")
    demand("infiniband" in names(how.text("ls", "/sys/class")), "not in its class")
    demand("net" in names(how.text("ls", "/sys/class")), "others are hidden")
    demand({"infiniband", "null"} <= set(names(how.text("ls", "/dev"))), "/dev")
    long = how.text("ls", "-l", NODES, LO, PORT, f"{LO}/device/net")
    demand(re.search(rf"^crw-rw-rw-.* 1, 3 .*{UVERBS}$", long, re.M), long)
    demand(re.search(r"^-r--r--r--.* fw_ver$", long, re.M), long)
    demand(re.search(r"^dr.x.*gid_attrs$", long, re.M), long)
    demand(re.search(r"lo -> \.\./\.\./\.\./\.\./net/lo$", long, re.M), long)
    every = how.text("ls", "-R", IB).splitlines()
    demand(f"{PORT}/gid_attrs/types:" in every, "ls -R does not get everywhere")
    found = how.text("find", IB, "-name", "state").split()
    demand(f"{PORT}/state" in found, found)
    demand(how.text("sh", "-c", f"cd {os.path.dirname(IB)} && ls infiniband/vb_lo/ports") == "1\n", "cd")
    demand(how.text("bash", "-c", f"echo {IB}/*lo/ports/*/rate") == f"{PORT}/rate\n", "glob")


def stat(how):
    kinds = how.text("stat", "-c", "%F", IB, LO, f"{PORT}/rate", f"{NODES}/{UVERBS}")
    want = ["directory", "directory", "regular file", "character special file"]
    demand(kinds.splitlines() == want, kinds)
    for test in (f"-d {LO}", f"-r {PORT}/rate", f"-c {NODES}/rdma_cm", f"-w {NODES}/{UVERBS}"):
        how.text("sh", "-c", f"test {test}")
        how.text("/usr/bin/test", *test.split())
    for test in (f"-e {LO}x", f"-f {LO}", f"-e {NODES}/uverbs1024", f"-x {PORT}/rate"):
        status, _, _ = how.run("/usr/bin/test", *test.split())
        demand(status == 1, f"test {test}: {status}")
    demand(how.text("readlink", "-f", f"{LO}/device/net/lo") == "/sys/devices/virtual/net/lo\n", "readlink")
    demand(how.text("realpath", f"{LO}/ports/../fw_ver") == f"{LO}/fw_ver\n", "realpath")
    copy = f"f=$(mktemp) && cp {PORT}/state $f && cat $f; rm $f"
    demand(how.text("sh", "-c", copy) == TEXTS[f"{PORT}/state"], "cp")
    demand(how.text("sh", "-c", f"echo x > {NODES}/{UVERBS}") == "", "a device file cannot be written")


PYTHON = """
import glob, os, stat, sys
lo, port = "%(LO)s", "%(PORT)s"
assert os.path.isdir(lo) and os.path.exists(port + "/state") and not os.path.exists(lo + "/x")
assert os.path.isdir(lo + "/device/net/lo") and os.path.islink(lo + "/device/net/lo")
assert sorted(os.listdir(lo + "/device/net")) == ["lo"], os.listdir(lo + "/device/net")
assert {e.name: e.is_dir() for e in os.scandir(port)}["gids"]
assert {e.name: e.stat().st_size for e in os.scandir(lo)}["fw_ver"] > 0
assert open(port + "/gid_attrs/types/0").read() == "RoCE v2\\n"
assert open(port + "/state", "rb").read() == b"4: ACTIVE\\n"
assert port + "/state" in glob.glob("/sys/class/infiniband/*/ports/*/state")
fd = os.open(lo, os.O_RDONLY | os.O_DIRECTORY)
assert stat.S_ISDIR(os.fstat(fd).st_mode) and "ports" in os.listdir(fd)
assert stat.S_ISDIR(os.stat("ports", dir_fd=fd).st_mode)
inner = os.open("ports/1/rate", os.O_RDONLY, dir_fd=fd)
assert os.read(inner, 100) == b"10 Gb/sec (1X QDR)\\n" and os.read(inner, 100) == b""
assert stat.S_ISREG(os.fstat(inner).st_mode)
assert os.fdopen(inner).seek(0) == 0
assert stat.S_ISCHR(os.stat("/dev/infiniband/%(UVERBS)s").st_mode)
assert os.access("/dev/infiniband/%(UVERBS)s", os.R_OK | os.W_OK)
assert sum(1 for _ in os.walk(lo)) == sum(1 for _ in os.fwalk(lo)) == 12
for path, error in ((lo, IsADirectoryError), (lo + "/x", FileNotFoundError),
                    (lo + "/fw_ver/x", NotADirectoryError)):
    try:
        open(path)
    except error:
        continue
    sys.exit(path + " could be opened")
pid = os.fork()
if pid == 0:
    os._exit(0 if os.listdir(fd) and open(lo + "/fw_ver").read() else 1)
assert os.waitpid(pid, 0)[1] == 0
print("all right")
"""


def python(how):
    script = PYTHON % {"LO": LO, "PORT": PORT, "UVERBS": UVERBS}
    demand(how.text("python3", "-c", script) == "all right\n", "python3")


def agrees_with_verbs(how):
    """ibv_devinfo asks the library: it says the same as the files."""
    told = how.text("ibv_devinfo", "-v", "-d", "vb_lo")

    def value(name):
        return re.search(rf"^\s*{re.escape(name)}:\s+(.*)$", told, re.M).group(1)

    def file(path):
        return how.text("cat", path).strip()

    demand(value("node_guid") == file(f"{LO}/node_guid"), told)
    demand(value("sys_image_guid") == file(f"{LO}/sys_image_guid"), told)
    demand(value("fw_ver") == file(f"{LO}/fw_ver"), told)
    demand(value("board_id") == file(f"{LO}/board_id"), told)
    demand(value("link_layer") == file(f"{PORT}/link_layer"), told)
    demand(value("port_cap_flags") == file(f"{PORT}/cap_mask"), told)
    demand(value("active_width").split("X")[0] + "X" in file(f"{PORT}/rate"), told)
    demand(value("active_speed").split()[0].split(".")[0] == file(f"{PORT}/rate").split()[0], told)
    demand(value("state").split()[0] == "PORT_" + file(f"{PORT}/state").split()[1], told)


DEVICES = r"""
import ctypes, os, stat
class Device(ctypes.Structure):
    _fields_ = [("ops", ctypes.c_void_p * 2), ("kinds", ctypes.c_int * 2),
                ("name", ctypes.c_char * 64), ("dev_name", ctypes.c_char * 64),
                ("dev_path", ctypes.c_char * 256), ("ibdev_path", ctypes.c_char * 256)]
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.POINTER(Device))
verbs.ibv_get_sysfs_path.restype = ctypes.c_char_p
n = ctypes.c_int()
devices = verbs.ibv_get_device_list(ctypes.byref(n))
assert n.value > 0
for i in range(n.value):
    d = devices[i].contents
    assert stat.S_ISCHR(os.stat(b"/dev/infiniband/" + d.dev_name).st_mode)
    assert open(d.dev_path + b"/ibdev", "rb").read() == d.name + b"\n"
    assert d.dev_path == verbs.ibv_get_sysfs_path() + b"/class/infiniband_verbs/" + d.dev_name
    assert d.ibdev_path == verbs.ibv_get_sysfs_path() + b"/class/infiniband/" + d.name
    assert os.path.isdir(d.ibdev_path + b"/ports/1")
print("all right")
"""


def list_agrees(how):
    """The names and paths in the library's list of devices lead to files."""
    demand(how.text("/usr/bin/python3", "-c", DEVICES) == "all right\n", "names and files differ")


def need_pyverbs():
    if run(["/usr/bin/python3", "-c", "import pyverbs.device"])[0] != 0:
        raise e2e.Skip("no python3-pyverbs")


def case_111(how):
    """nccl#1573: each index in turn: an empty entry's type is EINVAL, its GID all zero; a full
    one's is RoCE v2; the library's table has the same entries.
    """
    need_pyverbs()
    script = f"""
import errno, os, pyverbs.device as d, pyverbs.enums
ctx = d.Context(name="vb_lo")
table = {{e.gid_index: e.gid_type for e in ctx.query_gid_table(256)}}
assert set(table.values()) == {{pyverbs.enums.IBV_GID_TYPE_ROCE_V2}}, table
seen = set()
for i in range(256):
    gid = open("{PORT}/gids/%d" % i).read()
    try:
        kind = open("{PORT}/gid_attrs/types/%d" % i).read()
    except OSError as e:
        kind = e.errno
    try:
        ndev = open("{PORT}/gid_attrs/ndevs/%d" % i).read()
    except OSError as e:
        ndev = e.errno
    if set(gid.strip()) == set("0:"):
        assert kind == ndev == errno.EINVAL, (i, kind, ndev)
    else:
        assert kind == "RoCE v2\\n" and ndev == "lo\\n", (i, kind, ndev)
        seen.add(i)
assert seen == set(table) == {{0, 1}}, (seen, table)
for end in ("/gids/256", "/gid_attrs/types/256", "/gid_attrs/types/00"):
    assert not os.path.exists("{PORT}" + end)
print("all right")
"""
    demand(how.text("/usr/bin/python3", "-c", script) == "all right\n", "table and files differ")
    how.refused("cat", f"{PORT}/gid_attrs/types/2", why="Invalid argument")


def ucx(how):
    """UCX 1.13 looks for the device file, and skips a device without a word if it has none."""
    e2e.need("ucx_info")
    told = how.text("ucx_info", "-d")
    for transport in ("rc_verbs", "ud_verbs"):
        found = re.search(rf"Transport: {transport}\n#\s+Device: vb_lo:1", told)
        demand(found, f"no {transport}:\n{told}")


def same_user(how):
    """The program is who it was, and its mounts are nobody else's."""
    inside, outside = how.text("id", "-u"), e2e.run([*how.inside, "id", "-u"])[1]
    demand(inside == outside, f"user {inside} instead of {outside}")
    group = how.text("id", "-g"), e2e.run([*how.inside, "id", "-g"])[1]
    demand(group[0] == group[1], f"groups {group}")
    demand(not os.path.exists(LO), f"{LO} is seen from outside")
    how.refused("sh", "-c", f"> {LO}/new", why="ead-only")


def ends_as(how):
    """Exit codes and signals are those of the program, which is our own process."""
    for code in (0, 1, 7, 255):
        demand(how.run("sh", "-c", f"exit {code}")[0] == code, f"exit {code}")
    words = ("sh", "-c", "echo ready; exec sleep 60")
    line = how.inside + on_nic(*words, options=how.options, tool=how.tool)
    for number in (signal.SIGTERM, signal.SIGKILL):
        with e2e.Process(line) as process:
            e2e.wait_until(lambda: process.text() == "ready\n", 20, "the program")
            os.kill(process.pid, number)
            demand(process.wait() == -number, f"ended with {process.popen.returncode}")


STATIC = """
#include <dirent.h>
#include <stdio.h>
int main(void)
{
    DIR *d = opendir("/sys/class/infiniband/vb_lo");
    FILE *f = fopen("/sys/class/infiniband/vb_lo/ports/1/link_layer", "r");
    char text[32] = "";
    if (d == NULL || f == NULL || fgets(text, sizeof(text), f) == NULL)
        return 1;
    return fputs(text, stdout) < 0;
}
"""


def static_program(how, folder):
    """What no preload reaches sees the files, and is told that it is all it gets."""
    e2e.need("cc")
    source, program = os.path.join(folder, "static.c"), os.path.join(folder, "static")
    with open(source, "w", encoding="ascii") as out:
        out.write(STATIC)
    status, _, errors = run(["cc", "-static", "-o", program, source])
    demand(status == 0, errors)
    status, text, errors = how.run(program)
    demand((status, text) == (0, "Ethernet\n"), f"{status}: {text}{errors}")
    demand("sees the devices, but cannot use them" in errors, errors)
    status, _, errors = How(inside=how.inside, tool=how.tool).run(program)
    demand(status == 69 and "statically linked" in errors, errors)


def setuid_program(how, folder):
    """It gets the files and the NIC, and no rights."""
    program = os.path.join(folder, "setuid-ls")
    shutil.copy("/bin/ls", program)
    os.chown(program, 0, 0)
    os.chmod(program, 0o4755)
    demand("vb_lo" in how.text(program, IB), "no files")
    status, _, errors = How(inside=how.inside, tool=how.tool).run(program, IB)
    demand(status == 69 and "setuid" in errors, errors)


def nested(how):
    """Inside another, as a test suite may start it."""
    tool = how.tool or e2e.VERBENA
    demand("vb_lo" in how.text(tool, "run", "--ns", "--", "ls", IB), "no files")
    text = how.text(tool, "run", "--", "cat", f"{PORT}/state", f"{PORT}/gids/0")
    demand(text == TEXTS[f"{PORT}/state"] + TEXTS[f"{PORT}/gids/0"], text)


# As if the kernel had a device.
OTHERS = """
set -e
mount -t tmpfs none /sys/class
mkdir -p /sys/class/infiniband/mlx5_9/ports /sys/class/infiniband_verbs
echo "1: CA" > /sys/class/infiniband/mlx5_9/node_type
ln -s ../infiniband/mlx5_9 /sys/class/infiniband_verbs/uverbs0
exec "$@"
"""


def beside_others(options):
    """Devices of the kernel stay visible and whole."""
    how = How(["unshare", "--mount", "sh", "-c", OTHERS, "sh"], options)
    demand(names(how.text("ls", IB)) == ["mlx5_9", "vb_lo"], how.text("ls", IB))
    demand({"uverbs0", UVERBS} <= set(names(how.text("ls", VERBS))), how.text("ls", VERBS))
    demand(how.text("cat", f"{IB}/mlx5_9/node_type") == "1: CA\n", "not the kernel's text")
    demand(how.text("cat", f"{VERBS}/uverbs0/node_type") == "1: CA\n", "a link of the kernel's")
    demand(how.text("ls", f"{IB}/mlx5_9/") == "node_type\nports\n", "not the kernel's directory")
    demand(how.text("sh", "-c", f"cd {IB}/mlx5_9/ports/.. && cat node_type") == "1: CA\n", "cd")
    how.refused("cat", f"{IB}/mlx5_8/node_type", why="No such file")
    found = how.text("find", IB, "-name", "node_type").split()
    demand(f"{IB}/mlx5_9/node_type" in found and f"{LO}/node_type" in found, found)
    script = f"import os; fd = os.open('{IB}', 0); print(os.stat('mlx5_9/ports', dir_fd=fd).st_mode)"
    demand(how.text("python3", "-c", script) == "16877\n", "relative to our directory")


CHANGING = """
import errno, os, subprocess, pyverbs.device as d
def ip(*words):
    subprocess.run(["ip", "address", *words, "dev", "lo"], check=True)
def table():
    out = {}
    for i in range(256):
        gid = open("%(PORT)s/gids/%%d" %% i).read().strip().replace(":", "")
        try:
            full = open("%(PORT)s/gid_attrs/types/%%d" %% i).read() == "RoCE v2\\n"
        except OSError as e:
            assert e.errno == errno.EINVAL
            full = False
        assert full == (int(gid, 16) != 0), i
        if full:
            out[i] = int(gid, 16)
    return out
ctx = d.Context(name="vb_lo")
def agree(want):
    have = table()
    assert have == want, (have, want)
    entries = {e.gid_index for e in ctx.query_gid_table(256)}
    assert entries == set(want), entries
    for i in range(5):
        told = int(ctx.query_gid(1, i).gid.replace(":", ""), 16)
        assert told == want.get(i, 0), (i, hex(told))
v4, one, new = 0xffff7f000001, 1, 0xffff0a090909
agree({0: v4, 1: one})
ip("add", "10.9.9.9/32")
agree({0: v4, 1: one, 2: new})
ip("del", "::1/128")
agree({0: v4, 2: new})
ip("add", "::1/128")
agree({0: v4, 1: one, 2: new})
ip("del", "10.9.9.9/32")
agree({0: v4, 1: one})
print("all right")
"""


def gids_while_open(how):
    """The files have the indexes of the open context, whatever comes and goes meanwhile."""
    need_pyverbs()
    e2e.need("ip")
    if not os.environ.get("VERBENA_E2E_ISOLATED"):
        raise e2e.Skip("needs a network namespace of its own")
    script = CHANGING % {"PORT": PORT}
    demand(how.text("/usr/bin/python3", "-c", script) == "all right\n", "tables differ")


def forbidden(how):
    """Where no namespace may be made the message says so, and what to change."""
    name = "/proc/sys/user/max_mnt_namespaces"
    if not os.path.exists(name):
        raise e2e.Skip(f"no {name}")
    status, _, errors = run(["unshare", "--user", "--map-root-user", "true"])
    if status != 0:
        raise e2e.Skip(f"no user namespaces here: {errors.strip()}")
    # In a user namespace of its own the limit is its own, too.
    script = f'echo 0 > {name} && exec "$@"'
    line = ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh"]
    status, text, errors = run([*line, *on_nic("true", options=how.options)])
    demand(status == 69 and "--ns: this system does not allow you a namespace" in errors, text + errors)


def pairs(how):
    """The NIC itself works there."""
    e2e.pingpong(how.side(), how.side(), "127.0.0.1", iterations=50)


def report_counters(how):
    """perftest reads counters at start and end, by descriptors that it keeps open."""
    options = ["--report-counters", "counters/port_xmit_packets,hw_counters/rx_packets"]
    port = e2e.free_port()
    command = ["ib_write_bw", "-d", "vb_lo", "-x", "0", "-F", "-n", "1000", "-p", str(port)]
    command += options
    _, told = e2e.pair(how.side(), how.side(), command, [*command, "127.0.0.1"], port)
    sent = re.search(r"counters/port_xmit_packets=(\d+)", told)
    got = re.search(r"hw_counters/rx_packets=(\d+)", told)
    demand(sent and got, f"no counters:\n{told}")
    demand(int(sent[1]) >= 1000 and int(got[1]) > 0, f"sent {sent[1]}, got {got[1]}")


def counters_of_others(how, foreign):
    """A monitor without an engine sees the sum of what runs on the device; another user's not."""
    name = f"{PORT}/counters/port_xmit_packets"
    port = e2e.free_port()
    command = ["ib_send_lat", "-d", "vb_lo", "-F", "-D", "60", "-p", str(port)]
    demand(how.text("cat", name) == "0\n", "somebody counts already")
    with how.side().start(command) as server:
        e2e.wait_until(lambda: server.listens(port), 15, "the server")
        with how.side().start([*command, "127.0.0.1"]) as client:
            e2e.wait_until(lambda: int(how.text("cat", name)) > 2000, 20, "packets to be counted")
            # A process that a busy machine lets wait for 0.1 s is not in a sum.
            first = int(how.text("cat", name))
            e2e.wait_until(lambda: int(how.text("cat", name)) > first, 20, f"more than {first}")
            if foreign:
                demand(foreign.text("cat", name) == "0\n", "another user's counters are told")
            ns = How(how.inside, ["--ns"], how.tool)

            def snapshot():
                packets = int(ns.text("cat", name))
                return packets if packets > first else None

            packets = e2e.wait_until(snapshot, 20, f"a snapshot of more than {first}")
            os.kill(client.pid, signal.SIGSTOP)
            e2e.wait_until(
                lambda: 0 < int(how.text("cat", name)) < packets, 20, "the sum without the stopped"
            )
    e2e.wait_until(lambda: how.text("cat", name) == "0\n", 10, "the counters to go")


LIVE = """
import os, pyverbs.device as d
ctx = d.Context(name="vb_lo")
fd = os.open("%(PORT)s/counters/port_rcv_packets", os.O_RDONLY)
assert os.read(fd, 30) == b"0\\n" and os.read(fd, 30) == b""
assert os.pread(fd, 30, 0) == b"0\\n"
os.close(fd)
assert os.open("/dev/null", os.O_RDONLY) == fd and os.read(fd, 30) == b""
print("all right")
"""


def live_descriptor(how):
    """A counter's descriptor, and what has its number later."""
    need_pyverbs()
    script = LIVE % {"PORT": PORT}
    demand(how.text("/usr/bin/python3", "-c", script) == "all right\n", "descriptors")


def calls(how, *options):
    """Each call of the C library with the kernel's answers; many threads, children, signals."""
    demand(how.text(os.path.join(e2e.PROGRAMS, "files_calls"), *options) == "all right\n", "calls")


def nothing_stays(how):
    """Killed in the middle: no file, no mount, no process."""

    def left(folder):
        with open("/proc/mounts", encoding="ascii") as mounts:
            shared = [name for name in os.listdir("/dev/shm") if "verbena" in name]
            return os.listdir(folder), shared, mounts.read()

    script = f"k = os.open('{LO}', 0), open('{PORT}/rate'); print(os.getpid(), flush=True)"
    script = f"import os, time; {script}; time.sleep(60)"
    line = on_nic("python3", "-c", script, options=how.options, tool=how.tool)
    with tempfile.TemporaryDirectory(prefix="verbena-test-") as folder:
        os.chmod(folder, 0o777)
        before = left(folder)
        with e2e.Process(how.inside + line, env={"TMPDIR": folder}) as process:
            pid = int(e2e.wait_until(process.text, 20, "the program"))
            demand(pid == process.pid, "it is not the program itself that we started")
            os.kill(pid, signal.SIGKILL)
            process.wait()
        demand(left(folder) == before, f"something stays: {left(folder)}")


def ibstat(how):
    """A reader of files only, by libibumad."""
    e2e.need("ibstat")
    told = how.text("ibstat", "vb_lo")
    for line in ("Number of ports: 1", "State: Active", "Physical state: LinkUp", "Rate: 10",
                 "Link layer: Ethernet", "Capability mask: 0x04010000"):
        demand(line in told, told)


def cases_of(tap, tag, how):
    for name, case in (
        ("cat", cat),
        ("ls", ls),
        ("stat", stat),
        ("python", python),
        ("agrees_with_verbs", agrees_with_verbs),
        ("list_agrees", list_agrees),
        ("ucx", ucx),
        ("ibstat", ibstat),
        ("ends_as", ends_as),
        ("nothing_stays", nothing_stays),
        ("pairs", pairs),
    ):
        tap.run(f"{tag}_{name}", case, how)


def allowed(tap, tag, command):
    status, _, errors = run(command)
    if status != 0:
        tap.say("ok", tag, f" # SKIP no mount namespaces here: {errors.strip()}")
    return status == 0


def private(tap, tag, how):
    cases_of(tap, tag, how)
    tap.run(f"{tag}_same_user", same_user, how)
    tap.run(f"{tag}_nested", nested, how)
    with tempfile.TemporaryDirectory(prefix="verbena-test-") as folder:
        os.chmod(folder, 0o755)
        tap.run(f"{tag}_static_program", static_program, how, folder)
        if how.inside:
            tap.run(f"{tag}_setuid_program", setuid_program, how, folder)


def cases(tap):
    how = How()
    cases_of(tap, "preload", how)
    tap.run("case_111", case_111, how)
    tap.run("calls", calls, how)
    # A child of threads cannot allocate under gcc's AddressSanitizer.
    tap.run("crowd", calls, how, "threads" if "ASAN_OPTIONS" in os.environ else "crowd")
    tap.run("report_counters", report_counters, how)
    tap.run("live_descriptor", live_descriptor, how)
    tap.run("gids_while_open", gids_while_open, how)
    ns = How(options=["--ns"])
    if allowed(tap, "ns", ["unshare", "--mount", "true"]):
        private(tap, "ns", ns)
        tap.run("preload_beside_others", beside_others, [])
        tap.run("ns_beside_others", beside_others, ["--ns"])
    tap.run("ns_forbidden", forbidden, ns)
    try:
        words = e2e.unprivileged()
    except e2e.Skip as reason:
        tap.say("ok", "nobody", f" # SKIP {reason}")
        return
    with PublicCopy() as public:
        nobody = How(inside=words, tool=public.tool)
        cases_of(tap, "nobody_preload", nobody)
        tap.run("counters_of_others", counters_of_others, how, nobody)
        if allowed(tap, "nobody_ns", [*words, "unshare", "--user", "--mount", "true"]):
            tap.run("nobody_counters_of_others", counters_of_others, nobody, None)
            private(tap, "nobody_ns", How(words, ["--ns"], public.tool))


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
