#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# limit: 240 s
"""Debian's libfabric: its verbs provider finds our devices, and fi_pingpong with data checking runs
over them: two processes of one address, and two network namespaces."""

import re
import sys

import e2e
from e2e import Failed, Namespaces, demand

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


def result(side, wanted, forgives):
    """All figures, and exit code 0. forgives: what comes after the figures does not matter.

    A connection that ends takes along what it owes: the last acknowledgement, when packets are
    lost; and ofi_rxm drops the completions of the last messages when it has not yet read them as it
    hears of the end. It then waits for ever.
    """
    e2e.wait_until(
        lambda: side.popen.poll() is not None or rows(side.text()) == wanted, 60, f"end of {side}"
    )
    try:
        code = side.wait(5 if forgives else 30)
    except Failed:
        code = None
    demand(rows(side.text()) == wanted, f"{side}: {code}\n{side.both()}")
    demand(forgives or code == 0, f"{side}: {code}\n{side.both()}")


def pingpong(server, client, host, endpoint, lossy=False):
    provider, sizes = ENDPOINTS[endpoint]
    port = e2e.free_port()
    words = ["stdbuf", "-oL", "fi_pingpong", "-p", provider, "-e", endpoint, "-c"]
    words += ["-I", str(ITERATIONS), *(["-6"] if ":" in host else [])]
    wanted = [(size, str(ITERATIONS), str(ITERATIONS)) for size in sizes]
    with server.start([*words, "-B", str(port)]) as first:
        e2e.wait_until(lambda: first.listens(port), 15, f"port {port} of {first}")
        with client.start([*words, "-P", str(port), host]) as second:
            for side in second, first:
                result(side, wanted, lossy or endpoint == "rdm")


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
            tap.run(f"{endpoint}_loss", pingpong, *sides, net.V4[0], endpoint, True)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
