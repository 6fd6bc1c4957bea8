#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""Debian's programs that meet by rdma_cm between two network namespaces, each pair crossed by one
the other way: IPv4 and IPv6, with and without loss; and what changes about the network while they
connect or listen."""

import contextlib
import os
import re
import signal
import sys

import cm_programs
import e2e
from cm_programs import PROGRAMS, TCP
from e2e import Namespaces, demand, wait_until

VCM = os.path.join(e2e.BUILD, "tests", "rxevm", "vcm")
ADDRESSES = {"IPv4": Namespaces.V4, "IPv6": Namespaces.V6}
# Programs that lose a datagram wait for ever; so under loss only those of reliable connections.
# What is added to their words makes them last.
LOSSY = {
    "rping": "-C 100",
    "ucmatose": "-C 100",
    "cmtime": "-c 20",
    "rdma_client": "",
    "ib_write_bw -R": "-n 300",
    "ib_read_bw -R": "-n 300",
    "ib_send_lat -R": "-n 300",
}
PINGS_FOR_EVER = "100000"


class Pair:
    """A server in one of the namespaces and its client in the other."""

    def __init__(self, net, name, family, to, options):
        self.name = name
        _, _, self.check, self.space = PROGRAMS[name]
        self.port = cm_programs.UDADDY_PORT if name == "udaddy" else e2e.free_port()
        self.lines = cm_programs.lines(name, family, ADDRESSES[family][to], self.port)
        self.sides = net.side(to, 0, options=options), net.side(1 - to, 0, options=options)

    def start(self, stack, which, more):
        words = self.lines[which]
        # The last word of perftest's clients is an address.
        at = len(words) - (which == 1 and "-R" in words)
        words = [*words[:at], *more, *words[at:]]
        return stack.enter_context(self.sides[which].start(words))

    def finish(self, server, client, lossy):
        if lossy and "-R" in self.name:
            # Who loses the acknowledgement of its last message to a peer that is gone ends with an
            # error, and says nothing of it: the figures are what counts.
            client.wait()
            server.wait()
            both = client.text() + server.text()
            demand(re.search(r"^ *\d+ +300 ", both, re.MULTILINE), f"{client.tail()}")
            return
        told = client.expect()
        said = ""
        if self.name != "cmtime":  # whose server never ends
            cm_programs.ended(server)
            said = server.both()
        if not lossy:
            self.check(said, told)


def crossed(net, name, family, options=(), more=()):
    """The same program both ways at once."""
    with contextlib.ExitStack() as stack:
        pairs = [Pair(net, name, family, to, options) for to in (0, 1)]
        servers = [pair.start(stack, 0, more) for pair in pairs]
        for pair, server in zip(pairs, servers):
            cm_programs.listening(server, pair.space, pair.port)
        clients = [pair.start(stack, 1, more) for pair in pairs]
        for pair, server, client in zip(pairs, servers, clients):
            pair.finish(server, client, bool(more))


def lossy(net):
    """One packet in a hundred is lost: by the kernel, or by us. Words for `verbena run`."""
    for name in net.names:
        status, _, _ = e2e.run(
            ["tc", "-n", name, "qdisc", "add", "dev", net.INTERFACE, "root", "netem", "loss", "1%"]
        )
        if status != 0:
            return ["--fault", "drop=1%,seed=7"]
    return []


class Listener:
    """rping that serves one client after the other, in a `with` block."""

    def __init__(self, net, side, address):
        self.port = e2e.free_port()
        self.net, self.place, self.address = net, side, address

    def __enter__(self):
        words = ["rping", "-s", "-P", "-a", self.address, "-p", str(self.port)]
        self.process = self.net.side(self.place, 0).start(words)
        cm_programs.listening(self.process, TCP, self.port)
        return self

    def __exit__(self, *_):
        self.process.__exit__()

    def client(self, address=None, count=3):
        words = ["rping", "-c", "-v", "-V", "-a", address or self.address, "-p", str(self.port)]
        return self.net.side(1 - self.place, 0).start([*words, "-C", str(count)])

    def serves(self, address=None):
        with self.client(address) as process:
            process.expect()


def pings(process):
    return process.text().count("ping data")


def goes_on(process, what):
    before = pings(process)
    wait_until(lambda: pings(process) > before + 2, 20, f"pings {what}")


def agreed_mtu(net, to):
    """Of a new connection, whose every byte is checked."""
    port, address = e2e.free_port(), net.V4[to]
    words = ["-a", address, "-p", str(port), "data"]
    with net.side(to, 0).start([VCM, "-s", *words]) as server:
        cm_programs.listening(server, TCP, port)
        with net.side(1 - to, 0).start([VCM, *words]) as client:
            told, said = client.expect(), server.expect()
    found = re.findall(r"path mtu (\d+)", told + said)
    demand(len(found) == 2 and found[0] == found[1], f"path MTUs {found}")
    return int(found[0])


def mtu_changes(net):
    """What is connected goes on, as its packets are small; new connections have the new MTU."""
    with Listener(net, 0, net.V4[0]) as listener:
        with listener.client(count=PINGS_FOR_EVER) as process:
            for size, mtu in ((1500, 1024), (9000, 4096)):
                goes_on(process, f"before MTU {size}")
                for name in net.names:
                    net.ip("-n", name, "link", "set", net.INTERFACE, "mtu", str(size))
                goes_on(process, f"after MTU {size}")
                for to in (0, 1):
                    got = agreed_mtu(net, to)
                    demand(got == mtu, f"path MTU {got} of interface MTU {size}")


def link(net, name, state):
    net.ip("-n", name, "link", "set", net.INTERFACE, state)


def settled(net):
    wait_until(lambda: all(net.settled(name) for name in net.names), 10, "the link")


def link_goes_within_connect(net, to):
    """The REP is lost with the link; the next REQ finds it up again."""
    with Listener(net, to, net.V4[to]) as listener:
        os.killpg(listener.process.pid, signal.SIGSTOP)
        with listener.client() as process:
            # Unread in a socket of the stopped process: that is the REQ.
            wait_until(lambda: unread(listener.process.pid), 10, "the request")
            link(net, net.names[to], "down")
            os.killpg(listener.process.pid, signal.SIGCONT)
            wait_until(lambda: not unread(listener.process.pid), 10, "the request to be read")
            link(net, net.names[to], "up")
            settled(net)
            process.expect()
        listener.serves()


def unread(pid):
    """Bytes that wait at UDP port 4791 of the namespace of a process."""
    total = 0
    for table in ("udp", "udp6"):
        with open(f"/proc/{pid}/net/{table}", encoding="ascii") as rows:
            for words in map(str.split, rows):
                if words[1].endswith(":12B7"):
                    total += int(words[4].split(":")[1], 16)
    return total


def address_goes_while_listening(net, family):
    """A request for an address that is gone waits; with the address the listener is back. Another
    address is served all the while."""
    address, prefix = ADDRESSES[family][0], "/24" if family == "IPv4" else "/64"
    words = ["address", "{}", address + prefix, "dev", net.INTERFACE]
    words += ["nodad"] if family == "IPv6" else []
    other = "IPv6" if family == "IPv4" else "IPv4"
    with Listener(net, 0, address) as listener, Listener(net, 0, ADDRESSES[other][0]) as another:
        listener.serves()
        net.ip("-n", net.names[0], *[word.format("del") for word in words if word != "nodad"])
        with listener.client() as process:
            another.serves()
            demand(pings(process) == 0, f"served by an address that is gone\n{process.tail()}")
            net.ip("-n", net.names[0], *[word.format("add") for word in words])
            process.expect()
        listener.serves()


def address_comes_while_listening(net):
    """Who listens on any address serves one that is new."""
    new = "10.89.0.77"
    with Listener(net, 0, "0.0.0.0") as listener:
        listener.serves(net.V4[0])
        net.ip("-n", net.names[0], "address", "add", new + "/24", "dev", net.INTERFACE)
        listener.serves(new)


def cases(tap):
    e2e.need("rping", "ucmatose", "udaddy", "ib_send_lat")
    with Namespaces(9000) as net:
        for family in ADDRESSES:
            for name in PROGRAMS:
                if family == "IPv6" and "-R" in name:
                    continue  # perftest 4.5 resolves no IPv6 address for rdma_cm
                tag = re.sub(r"\W+", "_", name).strip("_")
                tap.run(f"{tag}_{family}", crossed, net, name, family)
        tap.run("mtu_changes", mtu_changes, net)
        for family in ADDRESSES:
            tap.run(f"address_goes_{family}", address_goes_while_listening, net, family)
        tap.run("address_comes", address_comes_while_listening, net)
        for to in (0, 1):  # last: IPv6 addresses go with the link
            tap.run(f"link_goes_within_connect_{to}", link_goes_within_connect, net, to)
    with Namespaces(1500, "loss") as net:
        options = lossy(net)
        for family in ADDRESSES:
            for name, more in LOSSY.items():
                if family == "IPv6" and "-R" in name:
                    continue
                tag = re.sub(r"\W+", "_", name).strip("_")
                run = (crossed, net, name, family, options, more.split())
                tap.run(f"{tag}_{family}_loss", *run)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
