#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's libfabric: its verbs provider finds our devices, and fi_pingpong with data checking runs
over them: two processes of one address, and two network namespaces."""

import re
import sys

import e2e
from e2e import Namespaces, demand

MTU = 4200
ITERATIONS = 5
SIZES = ["64", "256", "1k", "4k", "64k", "1m"]
# Of an endpoint type: the provider, and the sizes that it can send at once.
ENDPOINTS = {
    "msg": ("verbs", SIZES),
    "rdm": ("verbs;ofi_rxm", SIZES),
    "dgram": ("verbs", SIZES[:4]),
}


def fi_info(net):
    """On a machine with an interface beside lo, which libfabric leaves out for connections."""
    side = net.side(0, 0)
    with side.start(["fi_info", "-p", "verbs"]) as process:
        text = process.expect(30)
    found = set(re.findall(r"provider: (\S+)\n.*\n *domain: (\S+)\n.*\n *type: (\S+)", text))
    for wanted in (
        ("verbs", "vb_veth0", "FI_EP_MSG"),
        ("verbs", "vb_veth0-dgram", "FI_EP_DGRAM"),
        ("verbs", "vb_lo-dgram", "FI_EP_DGRAM"),
        ("verbs;ofi_rxm", "vb_veth0", "FI_EP_RDM"),
    ):
        demand(wanted in found, f"no {wanted} in {sorted(found)}")


def rows(text):
    """Size and acknowledged transfers; the program prints =N when all N came back right."""
    return re.findall(r"^(\S+) +(\d+) +=(\d+) ", text, re.MULTILINE)


def pingpong(server, client, host, endpoint):
    provider, sizes = ENDPOINTS[endpoint]
    port = e2e.free_port()
    words = ["fi_pingpong", "-p", provider, "-e", endpoint, "-c", "-I", str(ITERATIONS)]
    words += ["-6"] if ":" in host else []
    said, told = e2e.pair(
        server, client, [*words, "-B", str(port)], [*words, "-P", str(port), host], port
    )
    wanted = [(size, str(ITERATIONS), str(ITERATIONS)) for size in sizes]
    for name, text in (("server", said), ("client", told)):
        demand(rows(text) == wanted, f"{name} printed:\n{text}")


def cases(tap):
    e2e.need("fi_info", "fi_pingpong")
    with Namespaces(MTU) as net:
        tap.run("fi_info", fi_info, net)
        here, there = net.side(0, 0), net.side(1, 0)
        for endpoint in ENDPOINTS:
            tap.run(f"{endpoint}_one_address", pingpong, here, here, net.V4[0], endpoint)
            tap.run(f"{endpoint}_two_hosts", pingpong, here, there, net.V6[0], endpoint)
        tap.run("msg_two_hosts_v4", pingpong, here, there, net.V4[0], "msg")
        # Nobody repeats lost datagrams, so the program would wait for them for ever.
        loss = ["--fault", "drop=1%,seed=5"]
        for endpoint in ("msg", "rdm"):
            sides = [net.side(i, 0, options=loss) for i in (0, 1)]
            tap.run(f"{endpoint}_loss", pingpong, *sides, net.V4[0], endpoint)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
