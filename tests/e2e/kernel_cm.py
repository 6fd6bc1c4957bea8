# SPDX-License-Identifier: BSD-2-Clause
"""Connections by rdma_cm between Verbena and the kernel's soft-RoCE in the guest: Debian's programs
and the dialogues of tests/rxevm/vcm.c, each with us as client and as server."""

import os
import re
import signal
import time

import cm_programs
import e2e
import interop
import kernel_dialogues
from cm_programs import OPERATIONS, PROGRAMS, TCP, UDP, says
from e2e import Failed, demand, wait_until
from guest import Guest

VCM = os.path.join(e2e.BUILD, "tests", "rxevm", "vcm")
OURS = {"IPv4": Guest.OUR_V4, "IPv6": "fd88::1"}
GUEST = {"IPv4": Guest.GUEST_V4, "IPv6": "fd88::2"}
GROUP_TRIES = 10
MTU_OF = {4096: 4200, 1024: 1500}  # of the RoCE path: of the interface


# What each of the dialogues is, and whether it is datagrams.
DIALOGUES = {
    "data": "all operations, several packets",
    "server-leaves": "the server disconnects",
    "both-leave": "both disconnect at once",
    "reject": "rejected, with private data",
    "refuse": "the id of a request is destroyed",
    "again": "rejected, then accepted",
    "cancel": "the client gives up first",
    "nobody": "nobody listens",
    "rnr": "receives come late",
    "rnr-exceeded": "receives never come",
    "bad-key": "remote access error",
    "gone": "the client's process ends",
    "datagram": "UD, private data",
    "datagram-reject": "UD, rejected",
    "datagram-nobody": "UD, nobody listens",
}


def judge(status, text, other, told, check, mtu=None):
    both = f"--- we printed\n{text[-3000:]}\n--- the guest printed\n{told[-3000:]}"
    demand(status == 0 and other == 0, f"exit codes {status}, {other}\n{both}")
    try:
        check(text, told)
        if mtu and "path mtu" in text:
            found = re.findall(r"path mtu (\d+)", text + told)
            demand(found == [str(mtu)] * 2, f"path MTUs {found}")
    except e2e.Failed as failure:
        raise e2e.Failed(f"{failure}\n{both}") from None


def environment(play, port):
    stats = os.path.join(play.folder, f"{port}.stats")
    return {
        "VERBENA_STATS": stats,
        "VERBENA_PCAP": os.path.join(play.folder, f"{port}.pcap"),
    }


def judge_counters(env):
    with open(env["VERBENA_STATS"], encoding="ascii") as file:
        counters = file.read()
    wrong = kernel_dialogues.BAD_COUNTERS.findall(counters)
    demand(not wrong, f"counted: {wrong}\n{counters}")


def endless_server(play, we_are, ours, theirs, port, env, check):
    """A program whose server serves until it is killed, and says nothing."""
    if we_are == "client":
        play.guest.background(theirs, port, we_are, "cm_listens")
        with play.guest.ours(ours, env) as process:
            check(process.expect(), "")
        play.guest.end_background(port, we_are)
        judge_counters(env)
        return
    with play.guest.ours(ours, env) as process:
        cm_programs.listening(process, TCP, port)
        check("", play.guest.start(f"timeout 60 {theirs}", None, we_are).expect())


def program(play, we_are, name, family):
    _, _, check, space = PROGRAMS[name]
    port = cm_programs.UDADDY_PORT if name == "udaddy" else next(play.ports)
    address = (GUEST if we_are == "client" else OURS)[family]
    server, client = cm_programs.lines(name, family, address, port)
    ours, theirs = (client, server) if we_are == "client" else (server, client)
    theirs = " ".join(theirs)
    env = environment(play, port)
    if name == "cmtime":
        endless_server(play, we_are, ours, theirs, port, env, check)
        return
    status, text, other, told = play.guest.cm_pair(
        we_are, ours, f"timeout 60 {theirs}", (space, port), env
    )
    if name.startswith("rping") and we_are == "server":
        status = 0  # its threads race at the end; what it printed is what counts
    if name.startswith("rping") and we_are == "client":
        other = 0
    judge(status, text, other, told, check)
    judge_counters(env)


def dialogue(play, we_are, name, family, mtu):
    port = next(play.ports)
    address = (GUEST if we_are == "client" else OURS)[family]
    words = f"-a {address} -p {port} {name}"
    ours, theirs = [VCM, *words.split()], f"timeout 60 /mnt/vcm {words}"
    if we_are == "client":
        theirs = theirs.replace("/mnt/vcm", "/mnt/vcm -s")
    else:
        ours.insert(1, "-s")
    env = environment(play, port)
    space = UDP if name.startswith("datagram") else TCP
    result = play.guest.cm_pair(we_are, ours, theirs, (space, port), env)
    judge(*result, says("all right"), mtu)
    if name == "cancel" and we_are == "server":
        demand("REJECTED, status 4" in result[1], f"the listener is not told:\n{result[1]}")
    if name == "bad-key" and we_are == "server":
        demand("asynchronous event 3\n" in result[1], f"no access error event:\n{result[1]}")
    judge_counters(env)


def nobody(play, we_are, name, family):
    """Nobody listens there. On our side somebody must be there to say so."""
    port = next(play.ports)
    if we_are == "client":
        with play.guest.ours([VCM, "-a", GUEST[family], "-p", str(port), name]) as process:
            process.expect()
        return
    other = next(play.ports)
    with play.guest.ours([VCM, "-s", "-a", OURS[family], "-p", str(other), "data"]) as process:
        cm_programs.listening(process, TCP, other)
        command = f"timeout 60 /mnt/vcm -a {OURS[family]} -p {port} {name}"
        play.guest.start(command, lane=we_are).expect()


def group(play, we_are):
    """A group of both: the client sends to it, again if the server was not yet in it. Of IPv6 the
    kernel's rdma_cm supports no groups over RoCE v2."""
    words = f"mckey -m 239.88.{1 if we_are == 'client' else 2}.1 -C 3 -b"
    guest, family = play.guest, "IPv4"
    if we_are == "client":
        receiver = guest.start(f"timeout 60 {words} {GUEST[family]}", None, we_are)
        for _ in range(GROUP_TRIES):
            with guest.ours(f"{words} {OURS[family]} -s".split()) as sender:
                sender.expect()
            if receiver.ended():
                break
            time.sleep(0.5)
        told = receiver.expect()
    else:
        with guest.ours(f"{words} {OURS[family]}".split()) as receiver:
            for _ in range(GROUP_TRIES):
                guest.start(f"timeout 60 {words} {GUEST[family]} -s", None, we_are).expect()
                if receiver.popen.poll() is not None:
                    break
                time.sleep(0.5)
            told = receiver.expect()
    demand("data transfers complete" in told and "return status 0" in told, told)


def pinged(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return "ping data" in file.read()


def kill_pinging(process, path=None):
    """As soon as data has passed; path: what the peer prints, if it is the one that does."""
    there = (lambda: pinged(path)) if path else (lambda: "ping data" in process.text())
    wait_until(there, 30, "the first ping")
    os.killpg(process.pid, signal.SIGKILL)
    process.popen.wait()


def restarted(play, we_are):
    """Our process is killed while connected, with nobody left to tell; its successor connects at
    once, whatever the guest still believes."""
    guest, port = play.guest, next(play.ports)
    address = (GUEST if we_are == "client" else OURS)["IPv4"]
    server = f"rping -s -P -a {address} -p {port}"
    client = f"rping -c -a {address} -p {port} -v -V -C"
    if we_are == "client":
        guest.background(server, port, we_are, "cm_listens")
        with guest.ours(f"{client} 100000".split()) as process:
            kill_pinging(process)
        with guest.ours(f"{client} 3".split()) as again:
            again.expect()
    else:
        with guest.ours(server.split()) as process:
            cm_programs.listening(process, TCP, port)
            kill_pinging(process, guest.background(f"{client} 100000", port, we_are))
        with guest.ours(server.split()) as again:
            cm_programs.listening(again, TCP, port)
            guest.start(f"timeout 30 {client} 3", None, we_are).expect()
    guest.end_background(port, we_are)


def guest_restarted(play):
    """The guest forgets everything, and nothing of it reaches us; its new QP has the number of one
    that we believe connected: we refuse it as stale (10), give up what we believed,
    and the next try succeeds."""
    guest, port = play.guest, next(play.ports)
    address = OURS["IPv4"]
    client = f"rping -c -a {address} -p {port} -v -V -C"
    fresh = "rdma link delete rxe0; rdma link add rxe0 type rxe netdev eth0"
    mute = "tc filter {} dev eth0 egress pref 9 protocol ip matchall {}"
    away = f"action mirred egress redirect dev {kernel_dialogues.SINK}"
    guest.run(fresh)
    with guest.ours(f"rping -s -P -d -a {address} -p {port}".split()) as server:
        cm_programs.listening(server, TCP, port)
        out = guest.background(f"{client} 100000", port, "client")
        wait_until(lambda: pinged(out), 30, "the first ping")
        guest.run(mute.format("add", away))
        guest.end_background(port, "client")
        guest.run(f"sleep 0.5; {fresh}; {mute.format('del', '')}")
        told = guest.start(f"timeout 30 {client} 3; :").expect()
        demand("REJECTED, error 10" in told, f"not refused as stale:\n{told}\n{server.tail()}")
        wait_until(lambda: "DISCONNECT" in server.both(), 10, "the old connection to end")
        guest.start(f"timeout 30 {client} 3").expect()


def path_mtu(guest, mtu):
    """Both ends to the interface MTU that belongs to this path MTU."""
    size = MTU_OF[mtu]
    guest.run(f"ip link set eth0 mtu {size}")
    status, _, errors = e2e.run(
        ["ip", "-n", guest.netns, "link", "set", "br0", "mtu", str(size)], 10
    )
    demand(status == 0, errors)
    wait_until(
        lambda: f"active_mtu: {mtu} " in (guest.answer("ibv_devinfo -v") or "").replace("\t", " ")
        .replace("  ", " "),
        10,
        f"path MTU {mtu} in the guest",
    )


def plan(mtu):
    """What runs at this path MTU: programs and dialogues, each with its address families. perftest
    4.5 resolves no IPv6 address for rdma_cm."""
    both = ("IPv4", "IPv6")
    programs = {name: ("IPv4",) for name in PROGRAMS}
    programs.update({name: both for name in ("rping", "ucmatose", "udaddy")})
    dialogues = {name: ("IPv4",) for name in DIALOGUES}
    dialogues.update({name: both for name in ("data", "reject", "datagram")})
    if mtu == 1024:  # only what has something to do with it
        programs = {name: both for name in ("rping -S 16384", "ucmatose -c 3 -S 10000", "udaddy")}
        programs.update({f"ib_{verb}_bw -R": ("IPv4",) for verb in OPERATIONS[:3]})
        dialogues = {"data": both, "rnr": ("IPv6",)}
    return programs, dialogues


def cases(run, play, we_are, mtu):
    """run(name, row of the table, function, ...) is called for every case."""
    programs, dialogues = plan(mtu)
    for name, families in programs.items():
        transport = "UD" if PROGRAMS[name][3] == UDP else "RC"
        for family in families:
            row = interop.Row(name, transport, "rdma_cm", family, mtu)
            run(row, program, play, we_are, name, family)
    for name, families in dialogues.items():
        transport = "UD" if name.startswith("datagram") else "RC"
        for family in families:
            row = interop.Row(DIALOGUES[name], transport, "rdma_cm", family, mtu, f"vcm {name}")
            if name.endswith("nobody"):
                run(row, nobody, play, we_are, name, family)
            else:
                run(row, dialogue, play, we_are, name, family, mtu)
    if mtu == 4096:
        row = interop.Row("mckey", "UD multicast", "rdma_cm", "IPv4", mtu)
        run(row, group, play, we_are)
        row = interop.Row("our process is killed and comes again", "RC", "rdma_cm", "IPv4", mtu,
                          "rping restarted")
        run(row, restarted, play, we_are)
