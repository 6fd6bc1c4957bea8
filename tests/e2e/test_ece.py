#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Enhanced connection establishment between two programs, by Debian's pyverbs: what the one's QP
can arrives at the other's, by rdma_cm, and what both can is used."""

import os
import sys

import e2e
import pyverbs_suite
from e2e import Namespaces, Process, demand, on_nic

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ece_pair.py")
PORT = "7482"
# What the client says (None: what its QP does), what the server is told, what both use. A
# newer Verbena may know more options than this one.
ROWS = [(None, "1", "1"), ("0", "0", "0"), ("80000001", "80000001", "1"), ("2", "2", "0")]


def exchange(net):
    server_inside, client_inside = (net.side(i, net.GID_V4).inside for i in range(2))

    def pair(role, *more):
        return on_nic(pyverbs_suite.PYTHON, PROGRAM, role, net.V4[0], PORT, *more)

    for said, told, used in ROWS:
        options = [] if said is None else [said]
        with Process([*server_inside, *pair("server")]) as server:
            e2e.wait_until(lambda: "listens" in server.text(), what="the server")
            with Process([*client_inside, *pair("client", *options)]) as client:
                found = client.expect()
            heard = server.expect()
        demand(
            heard == f"listens\ntold 564552 {told}\nuses 564552 {used}\n",
            f"{said}: the server: {heard}",
        )
        demand(
            found == f"told 564552 {used}\nuses 564552 {used}\n", f"{said}: the client: {found}"
        )


def answered_for_the_silent(net):
    """A server with a QP of its own that does nothing about ECE: its QP answers probes, and the
    client is told so."""
    server_inside, client_inside = (net.side(i, net.GID_V4).inside for i in range(2))
    server = [*server_inside, *on_nic(pyverbs_suite.PYTHON, PROGRAM, "silent", net.V4[0], PORT)]
    client = [*client_inside, *on_nic(pyverbs_suite.PYTHON, PROGRAM, "client", net.V4[0], PORT)]
    with Process(server) as there:
        e2e.wait_until(lambda: "listens" in there.text(), what="the server")
        with Process(client) as here:
            found = here.expect()
        heard = there.expect()
    demand(heard == "listens\n" and found == "told 564552 1\nuses 564552 1\n", heard + found)


def cases(tap):
    try:
        pyverbs_suite.need()
    except e2e.Skip as reason:
        tap.say("ok", "pyverbs", f" # SKIP {reason}")
        return
    with Namespaces(1500) as net:
        tap.run("options_arrive", exchange, net)
        tap.run("answered_for_the_silent", answered_for_the_silent, net)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
