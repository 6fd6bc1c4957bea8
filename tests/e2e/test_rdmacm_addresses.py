#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which addresses programs can name, and by which interface what they say then goes: the machine's
own addresses, link-local ones, VLANs, bridges; and an interface that is removed under them."""

import json
import re
import sys

import cm_programs
import e2e
from e2e import Process, demand, on_nic, wait_until

LIMIT = 60
PINGS = 10
TCP = 0x106


def listening(server):
    """Somebody listens in the network namespace of the server."""

    def there():
        demand(server.popen.poll() is None, f"ended early: {server}\n{server.tail()}")
        with open(f"/proc/{server.pid}/net/unix", encoding="ascii") as rows:
            names = re.findall(r"@verbena/svc/0*([0-9a-f]+)/", rows.read())
        return any(int(name, 16) >> 16 == TCP for name in names)

    wait_until(there, 20, f"a service of {server}")


def rping(server_inside, client_inside, address, bound=None, source=()):
    """Every ping comes back as it went. address: as the client names the server."""
    words = ["rping", "-C", str(PINGS), "-v", "-V", "-S", "1000"]
    serve = [*server_inside, *on_nic(*words, "-s", "-a", bound or address)]
    ask = [*client_inside, *on_nic(*words, "-c", "-a", address, *source)]
    with Process(serve) as server:
        listening(server)
        with Process(ask) as client:
            client.expect(LIMIT)
            cm_programs.ended(server, LIMIT)
            for process in (server, client):
                found = re.findall(r"ping data: rdma-ping-(\d+): ", process.both())
                demand(found == [str(n) for n in range(PINGS)], process.both())


def ip_json(inside, *words):
    status, text, errors = e2e.run([*inside, "ip", "-j", *words], 10)
    demand(status == 0, errors)
    return json.loads(text)


def link_local(inside, interface):
    for entry in ip_json(inside, "address", "show", "dev", interface):
        for address in entry.get("addr_info", []):
            if address["local"].startswith("fe80"):
                return address["local"]
    raise e2e.Failed(f"no link-local address of {interface}")


class Linked(e2e.Namespaces):
    """Two namespaces; `kind` is what their addresses are on. The veth pair beneath carries other
    addresses, so that a wrong way would also arrive somewhere."""

    LOWER = "low0"
    LOWER_V4 = ("10.90.0.1", "10.90.0.2")
    TYPES = {
        "veth": None,
        "vlan": ["type", "vlan", "id", "100"],
        "bridge": ["type", "bridge"],
        "macvlan": ["type", "macvlan", "mode", "bridge"],
    }

    def __init__(self, kind):
        super().__init__(1500, kind[:2])
        self.kind = kind
        self.INTERFACE = {"vlan": "low0.100", "bridge": "br0", "macvlan": "mac0"}.get(kind, "low0")

    def make_link(self):
        a, b = self.names
        end = ["peer", "name", self.LOWER, "netns", b]
        self.ip("-n", a, "link", "add", self.LOWER, "type", "veth", *end)
        for n, name in enumerate(self.names):
            self.ip("-n", name, "link", "set", self.LOWER, "up")
            self.ip("-n", name, "link", "set", "lo", "up")
            if self.kind != "veth":
                self.make_upper(name)
                self.ip("-n", name, "address", "add", self.LOWER_V4[n] + "/24", "dev", self.LOWER)
            for address in (self.V4[n] + "/24", self.V6[n] + "/64"):
                nodad = ["nodad"] if ":" in address else []
                self.ip("-n", name, "address", "add", address, "dev", self.INTERFACE, *nodad)
        for name in self.names:
            wait_until(lambda name=name: self.settled(name), 10, "addresses to be usable")

    def make_upper(self, name):
        beneath = [] if self.kind == "bridge" else ["link", self.LOWER]
        upper = ["link", "add", *beneath, "name", self.INTERFACE, *self.TYPES[self.kind]]
        status, _, errors = e2e.run(["ip", "-n", name, *upper], 10)
        if status != 0:
            raise e2e.Skip(f"the kernel has no {self.kind} interfaces: {errors.strip()}")
        if self.kind == "bridge":
            self.ip("-n", name, "link", "set", self.LOWER, "master", self.INTERFACE)
        self.ip("-n", name, "link", "set", self.INTERFACE, "up")

    def inside(self, index):
        return ["ip", "netns", "exec", self.names[index]]

    def __enter__(self):
        try:
            return super().__enter__()
        except e2e.Skip:
            self.__exit__()
            raise


def gid_per_address(net):
    """Each address of the interface is a GID of its device, and of no other."""
    for index in range(2):
        status, text, errors = e2e.run([*net.inside(index), *on_nic("ibv_devinfo", "-v")], 20)
        demand(status == 0, errors)
        devices = dict(re.findall(r"hca_id:\s+(\S+)(.*?)(?=hca_id:|\Z)", text, re.DOTALL))
        own = {"::ffff:" + net.V4[index], net.V6[index]}
        # A bridge has the link-local address of its first port.
        wanted = own | {link_local(net.inside(index), net.INTERFACE)}
        for device, about in devices.items():
            gids = set(re.findall(r"GID\[\s*\d+\]:\s+(\S+?),? RoCE v2", about))
            if device == "vb_" + net.INTERFACE:
                demand(gids == wanted, f"{device}: {gids}, wanted {wanted}")
            else:
                demand(not gids & own, f"{device} has {gids & own}, too")
        demand("vb_" + net.INTERFACE in devices, text)


def sent(net, index, interface):
    (link,) = ip_json(net.inside(index), "-s", "link", "show", "dev", interface)
    return link["stats64"]["tx"]["packets"]


def by_the_route(net, address):
    """What a client says to this address leaves by the interface that the route names."""
    before = sent(net, 1, net.INTERFACE)
    rping(net.inside(0), net.inside(1), address)
    packets = sent(net, 1, net.INTERFACE) - before
    demand(packets >= PINGS, f"{packets} packets left by {net.INTERFACE}")


def by_its_subnet(net):
    """The interface beneath has a subnet of its own, which does not go by the upper one."""
    before = sent(net, 1, net.INTERFACE)
    rping(net.inside(0), net.inside(1), net.LOWER_V4[0])
    packets = sent(net, 1, net.INTERFACE) - before
    demand(packets < PINGS, f"{packets} packets left by {net.INTERFACE}")


def by_link_local(net):
    address = link_local(net.inside(0), net.INTERFACE) + "%" + net.INTERFACE
    before = sent(net, 1, net.INTERFACE)
    rping(net.inside(0), net.inside(1), address)
    packets = sent(net, 1, net.INTERFACE) - before
    demand(packets >= PINGS, f"{packets} packets left by {net.INTERFACE}")


def from_a_source(net):
    """A second address of the interface, named by the client with -I."""
    extra = "10.89.0.77"
    net.ip("-n", net.names[1], "address", "add", extra + "/24", "dev", net.INTERFACE)
    rping(net.inside(0), net.inside(1), net.V4[0], source=["-I", extra])


def removed_under_a_server(net):
    """The program hears of it, and ends."""
    words = [*net.inside(0), *on_nic("rping", "-s", "-P", "-d", "-a", net.V4[0])]
    with Process(words) as server:
        listening(server)
        net.ip("-n", net.names[0], "link", "delete", net.LOWER)
        wait_until(
            lambda: "detected device removal" in server.both(), 20, f"the event:\n{server.tail()}"
        )


OWN = (
    ("case_104__v4_loopback", "127.0.0.1"),
    ("case_104__v6_loopback", "::1"),
    ("case_104__own_v4", e2e.Namespaces.V4[0]),
    ("case_104__own_v6", e2e.Namespaces.V6[0]),
)

UPPER = (
    ("vlan", "case_105__vlan", "case_105__vlan_v6", "case_105__vlan_gids"),
    ("bridge", "case_105__bridge", "case_105__bridge_v6", "case_105__bridge_gids"),
    ("macvlan", "case_105__macvlan", "case_105__macvlan_v6", "case_105__macvlan_gids"),
)


def veth(tap, net):
    here = net.inside(0)
    for name, address in OWN:
        tap.run(name, rping, here, here, address)
    own = link_local(here, net.INTERFACE) + "%" + net.INTERFACE
    tap.run("case_104__own_link_local", rping, here, here, own)
    tap.run("case_105__veth", by_the_route, net, net.V4[0])
    tap.run("case_105__veth_v6", by_the_route, net, net.V6[0])
    tap.run("case_105__veth_link_local", by_link_local, net)
    tap.run("case_105__veth_gids", gid_per_address, net)
    tap.run("source_address", from_a_source, net)
    tap.run("removed_under_a_server", removed_under_a_server, net)


def upper(tap, net, name, name_v6, name_gids):
    tap.run(name_gids, gid_per_address, net)
    tap.run(name, by_the_route, net, net.V4[0])
    tap.run(name_v6, by_the_route, net, net.V6[0])
    if net.kind != "bridge":  # what is beneath a bridge has no way of its own
        tap.run(name + "_beneath", by_its_subnet, net)


def cases(tap):
    e2e.need("rping", "ibv_devinfo", "ip")
    try:
        with Linked("veth") as net:
            veth(tap, net)
    except e2e.Skip as reason:
        tap.say("ok", "veth", f" # SKIP {reason}")
    for kind, name, *names in UPPER:
        try:
            with Linked(kind) as net:
                upper(tap, net, name, *names)
        except e2e.Skip as reason:
            tap.say("ok", name, f" # SKIP {reason}")


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
