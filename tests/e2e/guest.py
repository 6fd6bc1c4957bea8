# SPDX-License-Identifier: BSD-2-Clause
"""The emulated guest with the Linux kernel's soft-RoCE (tests/rxevm) as the other side of a pair.

The guest sees a folder of ours as /mnt. Commands go in as job files there and their output comes
back the same way, which takes a tenth of the time of run-vm.sh exec; a shell loop in the guest (a
lane) takes them one by one.
"""

import os
import re
import shutil
import tempfile

import cm_programs
import e2e
from e2e import Failed, Process, Skip, demand, wait_until

RXEVM = os.path.join(e2e.ROOT, "tests", "rxevm")
VM = os.path.join(RXEVM, "run-vm.sh")
SCRATCH = os.environ.get("VERBENA_RXEVM") or os.path.join(e2e.BUILD, "rxevm")
BUILD_LIMIT_SECONDS = 240  # packages are downloaded the first time
BOOT_LIMIT_SECONDS = 130
START_SECONDS = 30  # until a server in the guest listens

# The loop that takes jobs. A job's own shell functions are for servers: `listens PORT` looks every
# 50 ms for a TCP listener, in shell builtins only, for starting a program takes 10 ms here;
# `cm_listens PORT` for one of rdma_cm, which only that program shows.
LANE = r"""
cd /mnt/LANE && n=0
listens() {
    p=$(printf :%04X $1); tries=0
    while [ $tries -lt 400 ]; do
        for t in /proc/net/tcp /proc/net/tcp6; do
            while read -r _ local _ state _; do
                case $local,$state in *$p,0A) : >up.$n; return;; esac
            done <$t
        done
        tries=$((tries + 1)); sleep 0.05
    done
}
cm_listens() {
    tries=0
    while [ $tries -lt 100 ]; do
        sleep 0.15
        rdma resource show cm_id | grep -q "LISTEN.*src-addr [^ ]*:$1 *" && : >up.$n && return
        tries=$((tries + 1))
    done
}
while :; do
    while [ ! -e job.$n ]; do [ -e ../stop ] && exit 0; sleep 0.02; done
    . ./job.$n >out.$n 2>&1
    echo $? >rc.tmp && mv rc.tmp rc.$n
    n=$((n + 1))
done
"""


def prepare():
    """The image, made from Debian packages where it is missing."""
    e2e.need_root()
    e2e.need("qemu-system-x86_64", "ip", "cpio")
    if os.path.exists(os.path.join(SCRATCH, "initramfs.cpio")):
        return
    os.makedirs(SCRATCH, exist_ok=True)
    build = os.path.join(RXEVM, "build-vm.sh")
    status, text, errors = e2e.run([build, SCRATCH], BUILD_LIMIT_SECONDS)
    demand(status == 0, f"guest image: exit code {status}\n{text}{errors}")


class Job:
    """A command in the guest; looks like a Process to those who wait for it."""

    def __init__(self, lane, number, command):
        self.folder, self.number, self.command = lane, number, command

    def path(self, kind):
        return os.path.join(self.folder, f"{kind}.{self.number}")

    def text(self):
        try:
            with open(self.path("out"), encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def ended(self):
        return os.path.exists(self.path("rc"))

    def wait(self, limit_seconds=e2e.LIMIT_SECONDS):
        try:
            wait_until(self.ended, limit_seconds, f"the guest's {self.command}")
        except Failed as failure:
            raise Failed(f"{failure}\n{self.text()}") from None
        with open(self.path("rc"), encoding="ascii") as file:
            return int(file.read())

    def expect(self, limit_seconds=e2e.LIMIT_SECONDS):
        status = self.wait(limit_seconds)
        demand(status == 0, f"exit code {status}: guest's {self.command}\n{self.text()}")
        return self.text()

    def listens(self):
        if self.ended() and not os.path.exists(self.path("up")):
            raise Failed(f"the guest's {self.command} ended:\n{self.text()}")
        return os.path.exists(self.path("up"))


class Guest:
    """One guest on a bridge in a network namespace; both gone when the `with` block is left."""

    OUR_V4, GUEST_V4 = "10.88.0.1", "10.88.0.2"
    DEVICE = "vb_br0"
    GUEST_GID_V4, GUEST_GID_V6 = 1, 2

    LANES = ("client", "server")  # for what we are; each may be used by a thread of its own

    def __init__(self, mtu=4200):
        self.mtu = mtu
        self.counts = {lane: 0 for lane in self.LANES}
        self.netns = f"vbrxe{os.getpid()}"
        self.loops = []

    def __enter__(self):
        prepare()
        status, _, errors = e2e.run(["ip", "netns", "add", self.netns], 10)
        if status != 0:
            raise Skip(f"no network namespaces here: {errors.strip()}")
        e2e.run(["ip", "netns", "delete", self.netns], 10)  # run-vm.sh makes and removes its own
        self.share = tempfile.mkdtemp(prefix="verbena-guest-")
        try:
            self.boot()
        except BaseException:
            self.__exit__()
            raise
        return self

    def boot(self):
        for lane in self.LANES:
            os.mkdir(os.path.join(self.share, lane))
        for program in ("rxevm/vgold", "rxevm/vcm", "e2e/verify_rc"):
            shutil.copy(os.path.join(e2e.BUILD, "tests", program), self.share)
        start = [VM, "start", SCRATCH, "--netns", self.netns, "--mtu", str(self.mtu)]
        status, text, errors = e2e.run([*start, "--nodes", "2", "--share", self.share], BOOT_LIMIT_SECONDS)
        demand(status == 0, f"guest does not boot: {text}{errors}")
        for lane in self.LANES:
            self.loops.append(
                Process([VM, "exec", SCRATCH, "--timeout", "900", "--", LANE.replace("LANE", lane)])
            )

    def __exit__(self, *_):
        for loop in self.loops:
            loop.__exit__()
        e2e.run([VM, "stop", SCRATCH, "--all"], 30)
        shutil.rmtree(self.share)

    def start(self, command, port=None, lane=LANES[0], look="listens"):
        """A shell command; a server's with its port. A lane runs one job at a time."""
        number = self.counts[lane]
        self.counts[lane] += 1
        job = Job(os.path.join(self.share, lane), number, command)
        text = f"{look} {port} &\n( {command} )" if port else f"( {command} )"
        with open(job.path("new"), "w", encoding="ascii") as file:
            file.write(text + "\n")
        os.rename(job.path("new"), job.path("job"))
        return job

    def run(self, command, lane=LANES[0]):
        return self.start(command, lane=lane).expect()

    def background(self, command, number, lane, look=None):
        """A program that goes on while the lane does other things; look as in start, but waited
        for. Returns the path of its output; end_background(number) ends it."""
        out = os.path.join(self.share, f"background.{number}")
        text = f"{command} >/mnt/background.{number} 2>&1 & echo $! >/tmp/background.{number}"
        self.run(f"{text}; {look} {number}" if look else text, lane)
        return out

    def end_background(self, number, lane):
        self.run(f"kill $(cat /tmp/background.{number}) || :", lane)

    def ours(self, command, env=None):
        """A program on Verbena at our end of the network."""
        inside = ["ip", "netns", "exec", self.netns]
        return Process(inside + e2e.on_nic(*command), env=env)

    def our_gids(self, device):
        """Address of our end: GID index, as ibv_devinfo tells them."""
        with self.ours(["ibv_devinfo", "-v", "-d", device]) as process:
            text = process.expect()
        rows = re.findall(r"GID\[\s*(\d+)\]:\s+(\S+?),? RoCE v2", text)
        return {address.removeprefix("::ffff:"): int(index) for index, address in rows}

    def vlan(self, number):
        """A VLAN on both ends, made at the first call: GID index on our and on the guest's side."""
        net, name = f"10.88.{number}", f"br0.{number}"
        make = (
            f"ip link add link {{0}} name {{0}}.{number} type vlan id {number}"
            f" egress-qos-map 0:3; ip link set {{0}}.{number} up;"
            f" ip address add {net}.{{1}}/24 dev {{0}}.{number}"
        )
        inside = ["ip", "netns", "exec", self.netns, "sh", "-c"]
        if e2e.run([*inside, f"ip link show {name}"], 10)[0] != 0:
            status, _, errors = e2e.run([*inside, make.format("br0", 1)], 10)
            if status != 0:
                raise Skip(f"no VLAN interface here: {errors.splitlines()[0]}")
            self.run(make.format("eth0", 2))
        mine = self.our_gids(f"{self.DEVICE}.{number}")[f"{net}.1"]
        raw = f"0000:0000:0000:0000:0000:ffff:0a58:{number:02x}02"
        find = (
            "for i in $(seq 0 20); do g=$(cat /sys/class/infiniband/rxe0/ports/1/gids/$i);"
            f" [ $g = {raw} ] && echo $i && exit 0; done; exit 1"
        )
        return mine, int(wait_until(lambda: self.answer(find), 5, "the guest's GID of the VLAN"))

    def answer(self, command):
        """What the command printed, or None when it failed."""
        job = self.start(command)
        return None if job.wait() else job.text()

    def pair(self, we_are, ours, theirs, port, env=None, limit_seconds=e2e.LIMIT_SECONDS):
        """ours: words; theirs: a shell command. The client's get the server's address appended.

        Exit codes and outputs of both, ours first.
        """
        if we_are == "client":
            job = self.start(theirs, port, we_are)
            wait_until(job.listens, START_SECONDS, f"port {port} in the guest")
            with self.ours([*ours, self.GUEST_V4], env) as process:
                status, text = process.wait(limit_seconds), process.both()
            try:
                return status, text, job.wait(limit_seconds), job.text()
            except Failed as failure:
                raise Failed(f"{failure}\n--- we printed\n{text}") from None
        with self.ours(ours, env) as process:
            wait_until(lambda: process.listens(port), START_SECONDS, f"port {port} of {process}")
            job = self.start(f"{theirs} {self.OUR_V4}", None, we_are)
            try:
                other = job.wait(limit_seconds)
            except Failed as failure:
                raise Failed(f"{failure}\n--- we printed\n{process.both()}") from None
            return process.wait(limit_seconds), process.both(), other, job.text()

    def cm_pair(self, we_are, ours, theirs, service, env=None, limit_seconds=e2e.LIMIT_SECONDS):
        """As pair, for programs that meet by rdma_cm. service: port space and port."""
        if we_are == "client":
            job = self.start(theirs, service[1], we_are, "cm_listens")
            wait_until(job.listens, START_SECONDS, f"port {service[1]} in the guest")
            with self.ours(ours, env) as process:
                status, text = process.wait(limit_seconds), process.both()
            try:
                return status, text, job.wait(limit_seconds), job.text()
            except Failed as failure:
                raise Failed(f"{failure}\n--- we printed\n{text}") from None
        with self.ours(ours, env) as process:
            cm_programs.listening(process, *service)
            job = self.start(theirs, None, we_are)
            try:
                other = job.wait(limit_seconds)
            except Failed as failure:
                raise Failed(f"{failure}\n--- we printed\n{process.both()}") from None
            return process.wait(limit_seconds), process.both(), other, job.text()
