#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 180 s
"""Interfaces, addresses and routes that go, and come back, in mid-stream: what both programs see,
and what remains. docs/reliability.md has a row for each case."""

import sys

import e2e
import stream
from e2e import demand, wait_until
from stream import LONG, SHORT

GIDS = {"ipv4": e2e.Namespaces.GID_V4, "ipv6": e2e.Namespaces.GID_V6}
ERROR, ACTIVE = "event port error", "event port active"
TABLE, FATAL = "event GID table changed", "event device in error state"


def within_retries(place, gid, break_it, mend_it, events=((), ()), **kwargs):
    """The stream waits and goes on; not a byte is wrong. events: when broken, when mended."""
    active, passive = place.pair("write", gid, LONG, **kwargs)
    active.tell("start")
    active.goes_on()
    break_it()
    for event in events[0]:
        active.expect_line(event)
    mend_it()
    for event in events[1]:
        active.expect_line(event)
    active.goes_on()
    active.stop_stream()
    return active, passive


def beyond_retries(place, gid, break_it, mend_it, **kwargs):
    """The program is told, and connects again when all is well."""
    active, passive = place.pair("write", gid, SHORT, **kwargs)
    active.tell("start")
    active.goes_on()
    break_it()
    active.fails()
    mend_it()
    place.reconnect(active, passive)
    active.tell("start")
    active.goes_on()
    active.stop_stream()
    return active, passive


def ended(place, *pair):
    for process in pair:
        process.close()
    place.nothing_left()


def settled(place):
    wait_until(lambda: all(place.settled(name) for name in place.names), 10, "the link")


def link_within_retries(place):
    def down():
        place.link(0, "down")

    def up():
        state, _, gids = place.processes[0].query()
        place.processes[1].expect_line(ERROR)  # it has lost the carrier
        demand(state == "down", f"port {state}")
        demand(gids["1"] == "::ffff:" + place.V4[0], f"GIDs {gids}")
        place.link(0, "up")

    active, passive = within_retries(place, place.GID_V4, down, up, ((ERROR,), (ACTIVE,)))
    passive.expect_line(ACTIVE)
    demand(active.query()[0] == passive.query()[0] == "active", "a port is not active")
    ended(place, active, passive)


def link_beyond_retries(place):
    def up():
        place.link(0, "up")
        settled(place)

    active, passive = beyond_retries(place, place.GID_V4, lambda: place.link(0, "down"), up)
    ended(place, active, passive)


def link_ipv6(place):
    """Its addresses go with the link; the one that is set again has its old index."""
    before = []

    def down():
        before.append(place.processes[0].query()[2])
        place.link(0, "down")

    def up():
        gids = place.processes[0].query()[2]
        demand(gids["2"] == "::" and gids["1"] == before[0]["1"], f"GIDs {gids}")
        place.link(0, "up")
        place.address(0, "add", place.GID_V6)
        settled(place)

    events = ((ERROR, TABLE), (ACTIVE, TABLE))
    active, passive = within_retries(place, place.GID_V6, down, up, events)
    gids = active.query()[2]
    demand(gids == before[0], f"GIDs {gids}, before {before[0]}")
    ended(place, active, passive)


def address_within_retries(place, family):
    gid = GIDS[family]

    def add():
        gids = place.processes[0].query()[2]
        demand(gids[str(gid)] == "::", f"GIDs {gids}")
        place.address(0, "add", gid)

    active, passive = within_retries(
        place, gid, lambda: place.address(0, "delete", gid), add, ((TABLE,), (TABLE,))
    )
    demand(active.query()[2][str(gid)].endswith((place.V4, place.V6)[gid - 1][0]), "another index")
    passive.silent()
    ended(place, active, passive)


def address_beyond_retries(place, family):
    gid = GIDS[family]
    active, passive = beyond_retries(
        place,
        gid,
        lambda: place.address(0, "delete", gid),
        lambda: place.address(0, "add", gid),
    )
    ended(place, active, passive)


def partner_address(place, family):
    """The partner's address goes, not ours: no event here, the same retries."""
    gid = GIDS[family]
    active, passive = within_retries(
        place, gid, lambda: place.address(1, "delete", gid), lambda: place.address(1, "add", gid)
    )
    active.silent()
    passive.expect_line(TABLE)
    ended(place, active, passive)


def name_deleted(place):
    """`ip netns delete` takes the name; the namespace lives as long as the processes in it."""
    active, passive = place.pair("write")
    active.tell("start")
    active.goes_on()
    for name in place.names:
        place.ip("netns", "delete", name)
    active.goes_on()
    active.silent()
    active.stop_stream()
    active.close()
    passive.close()


def namespace_deleted(place):
    """With the partner's namespace its end of the cable goes, and with that ours."""
    active, passive = place.pair("write")
    active.tell("start")
    active.goes_on()
    place.ip("netns", "delete", place.names[1])
    passive.kill()
    for event in (ERROR, TABLE, FATAL):
        active.expect_line(event)
    active.fails()
    demand(active.query()[0] == "down", "the port is not down")
    active.tell("make")
    active.expect_line("made channel ok, QP ok, context ENODEV")
    active.close()


def interface_deleted(place):
    """Both sides are told; another of the same name is another device."""
    active, passive = place.pair("write")
    active.tell("start")
    active.goes_on()
    place.ip("-n", place.names[0], "link", "delete", place.INTERFACE)
    for process in (active, passive):
        process.expect_line(FATAL)
    active.fails()
    passive.silent()
    place.make_link()
    demand(active.query()[0] == "down", "the port is not down")
    ended(place, active, passive)
    other, partner = place.pair("write")
    other.tell("start")
    other.goes_on()
    other.stop_stream()
    ended(place, other, partner)


def mtu_within_retries(place, family):
    """Too small for the path MTU, counted and not sent; it fits again, and all goes on."""
    with stream.Counters() as counters:

        def lower():
            # IPv6 wants 1280 of an interface, and loses its addresses below that.
            place.link(0, "mtu", "1300" if family == "ipv6" else "600")

        def raise_again():
            active = place.processes[0]
            _, mtu, _ = active.query()
            demand(mtu == (1024 if family == "ipv6" else 512), f"active MTU {mtu}")
            active.stands()
            place.link(0, "mtu", "9000")

        place.link(0, "mtu", "9000")
        place.link(1, "mtu", "9000")
        active, passive = within_retries(
            place, GIDS[family], lower, raise_again, mtu=4096, active=counters.environment()
        )
        ended(place, active, passive)
        lost = counters.read().get("udp_tx_drop_size", 0)
        demand(lost > 0, f"counters {counters.read()}")
        return f"{lost} packets were too large"


def mtu_beyond_retries(place):
    with stream.Counters() as counters:
        active, passive = beyond_retries(
            place,
            place.GID_V4,
            lambda: place.link(0, "mtu", "600"),
            lambda: place.link(0, "mtu", "1500"),
            active=counters.environment(),
        )
        ended(place, active, passive)
        demand(counters.read().get("udp_tx_drop_size", 0) > 0, f"counters {counters.read()}")


def route(place, verb, kind):
    place.ip("-n", place.names[0], "route", verb, kind, place.V4[1] + "/32")


def no_route(place, kind):
    with stream.Counters() as counters:
        active, passive = within_retries(
            place,
            place.GID_V4,
            lambda: (route(place, "add", kind), place.processes[0].stands()),
            lambda: route(place, "delete", kind),
            active=counters.environment(),
        )
        active.silent()
        ended(place, active, passive)
        demand(counters.read().get("udp_tx_drop_error", 0) > 0, f"counters {counters.read()}")


def no_route_beyond_retries(place):
    active, passive = beyond_retries(
        place,
        place.GID_V4,
        lambda: route(place, "add", "unreachable"),
        lambda: route(place, "delete", "unreachable"),
    )
    ended(place, active, passive)


def no_route_from_the_start(place):
    """Connecting needs no route; the first request does."""
    route(place, "add", "unreachable")
    active, passive = place.pair("write")
    active.tell("start")
    active.fails()
    route(place, "delete", "unreachable")
    place.reconnect(active, passive)
    active.tell("start")
    active.goes_on()
    active.stop_stream()
    ended(place, active, passive)


def neighbour(place, *words):
    place.ip("-n", place.names[0], "neighbour", *words, place.V4[1], "dev", place.INTERFACE)


def lost_on_the_way(place):
    """Packets go out and reach nobody, as behind a firewall: a wrong MAC address."""
    words = ["neighbour", "replace", place.V4[1], "lladdr", "02:00:00:00:00:99", "nud", "permanent"]
    active, passive = beyond_retries(
        place,
        place.GID_V4,
        lambda: place.ip("-n", place.names[0], *words, "dev", place.INTERFACE),
        lambda: neighbour(place, "delete"),
    )
    ended(place, active, passive)


def firewall(place):
    e2e.need("nft")
    table = "table inet vb { chain o { type filter hook output priority 0; udp dport 4791 drop; } }"
    active, passive = within_retries(
        place,
        place.GID_V4,
        lambda: place.within(0, "nft", table),
        lambda: place.within(0, "nft", "delete table inet vb"),
    )
    ended(place, active, passive)


def slow_link(place, limit_bytes):
    """50 Mbit/s. A long queue holds all that is in flight, a short one drops most of it."""
    e2e.need("tc")
    words = ["root", "tbf", "rate", "50mbit", "burst", "16k", "limit", str(limit_bytes)]
    place.within(0, "tc", "qdisc", "add", "dev", place.INTERFACE, *words)
    with stream.Counters() as counters:
        # Four streams: more in flight than the queue holds.
        how = counters.environment()
        pairs = [place.pair("push", timeout=LONG, active=how) for _ in range(4)]
        for active, _ in pairs:
            active.tell("start")
        for active, _ in pairs:
            active.goes_on(blocks=96)
        for active, passive in pairs:
            active.stop_stream()
            active.silent()
            active.close()
            passive.close()
        place.nothing_left()
        return str({n: v for n, v in counters.read().items() if "full" in n or "retrans" in n})


def asyncwatch(place):
    """What Debian's ibv_asyncwatch prints."""
    e2e.need("ibv_asyncwatch")
    side = place.side(0, 1)
    with side.start(["stdbuf", "-oL", "ibv_asyncwatch", "-d", side.device]) as process:

        def wait_for(text):
            wait_until(lambda: text in process.both() or gone(), 10, f"'{text}'")

        def gone():
            demand(process.popen.poll() is None, f"it ended:\n{process.tail()}")

        wait_for("async event FD")
        place.link(1, "down")
        wait_for("IBV_EVENT_PORT_ERR (10), port 1")
        place.link(1, "up")
        wait_for("IBV_EVENT_PORT_ACTIVE (9), port 1")
        place.address(0, "delete", place.GID_V4)
        wait_for("IBV_EVENT_GID_CHANGE (18), port 1")


CASES = (
    ("link_within_retries", link_within_retries),
    ("link_beyond_retries", link_beyond_retries),
    ("link_ipv6", link_ipv6),
    ("address_within_retries_ipv4", address_within_retries, "ipv4"),
    ("address_within_retries_ipv6", address_within_retries, "ipv6"),
    ("address_beyond_retries_ipv4", address_beyond_retries, "ipv4"),
    ("address_beyond_retries_ipv6", address_beyond_retries, "ipv6"),
    ("partner_address_ipv4", partner_address, "ipv4"),
    ("partner_address_ipv6", partner_address, "ipv6"),
    ("name_deleted", name_deleted),
    ("namespace_deleted", namespace_deleted),
    ("asyncwatch", asyncwatch),
    ("interface_deleted", interface_deleted),
    ("mtu_within_retries_ipv4", mtu_within_retries, "ipv4"),
    ("mtu_within_retries_ipv6", mtu_within_retries, "ipv6"),
    ("mtu_beyond_retries", mtu_beyond_retries),
    ("no_route_unreachable", no_route, "unreachable"),
    ("no_route_prohibited", no_route, "prohibit"),
    ("no_route_blackhole", no_route, "blackhole"),
    ("no_route_beyond_retries", no_route_beyond_retries),
    ("no_route_from_the_start", no_route_from_the_start),
    ("lost_on_the_way", lost_on_the_way),
    ("firewall", firewall),
    ("slow_link_long_queue", slow_link, 8 << 20),
    ("slow_link_short_queue", slow_link, 64 << 10),
)

if __name__ == "__main__":
    sys.exit(e2e.main(lambda tap: stream.side_by_side(tap, CASES)))
