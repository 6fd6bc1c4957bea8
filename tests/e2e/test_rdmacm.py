#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's programs that never exchange a QPN by hand, on librdmacm.so.1: two processes of one
machine, by 127.0.0.1 and ::1."""

import re
import sys

import cm_programs
import e2e
from e2e import Process, demand, on_nic, wait_until

ADDRESSES = ("127.0.0.1", "::1")
LIMIT = 60


def listening(server, space=0x106):
    """Somebody has taken a service of this port space; the names are in /proc/net/unix."""

    def there():
        demand(server.popen.poll() is None, f"the server ended:\n{server.tail()}")
        with open("/proc/net/unix", encoding="ascii") as rows:
            return f"@verbena/svc/{space:x}" in rows.read().replace("svc/0", "svc/")

    wait_until(there, 20, f"a service of {server}")


def cm_pair(server_words, client_words, space=0x106):
    """Both to the end: their outputs."""
    with Process(on_nic(*server_words)) as server:
        listening(server, space)
        with Process(on_nic(*client_words)) as client:
            client.expect(LIMIT)
            cm_programs.ended(server, LIMIT)
            return server.both(), client.both()


def rping(address, *options):
    """Every ping comes back as it went."""
    words = ["rping", "-a", address, "-C", "10", "-v", "-V", *options]
    said, told = cm_pair([*words, "-s"], [*words, "-c"])
    for side, text in (("server", said), ("client", told)):
        found = re.findall(r"ping data: rdma-ping-(\d+): ", text)
        demand(found == [str(n) for n in range(10)], f"{side} printed:\n{text}")


def rping_closed_port():
    status, out, errors = e2e.run(on_nic("rping", "-c", "-a", "127.0.0.1", "-C", "1"), 20)
    text = out + errors
    demand(status != 0 and "RDMA_CM_EVENT_REJECTED, error 8" in text, f"{status}: {text}")


def rping_many(clients=16):
    """Several at once, to one server that forks nothing and keeps all apart."""
    with Process(on_nic("rping", "-s", "-a", "127.0.0.1", "-P")) as server:
        listening(server)
        line = on_nic("rping", "-c", "-a", "127.0.0.1", "-C", "3", "-v")
        running = [Process(line) for _ in range(clients)]
        try:
            for client in running:
                text = client.expect(LIMIT)
                demand(text.count("ping data: rdma-ping-") == 3, text)
        finally:
            for client in running:
                client.__exit__()


def ucmatose(address):
    v6 = ["-f", "ipv6"] if ":" in address else []
    said, told = cm_pair(["ucmatose", "-b", address], ["ucmatose", "-s", address, *v6])
    for text in (said, told):
        demand("test complete" in text and "return status 0" in text, text)


def ucmatose_connections():
    """The same count on both sides, and the id moved to another channel."""
    said, told = cm_pair(
        ["ucmatose", "-c", "20", "-m"], ["ucmatose", "-s", "127.0.0.1", "-c", "20", "-m"]
    )
    for text in (said, told):
        demand("return status 0" in text, text)


def udaddy(address):
    v6 = ["-f", "ipv6"] if ":" in address else []
    said, told = cm_pair(
        ["udaddy", "-b", address], ["udaddy", "-s", address, *v6], space=0x111
    )
    for text in (said, told):
        demand("data transfers complete" in text and "return status 0" in text, text)


def cmtime():
    with Process(on_nic("cmtime")) as server:
        listening(server)
        status, out, errors = e2e.run(on_nic("cmtime", "-s", "127.0.0.1", "-c", "100"), LIMIT)
        demand(status == 0, out + errors)
        steps = dict(re.findall(r"^([a-z][a-z ]*[a-z]) *: +([0-9.]+)", out, re.MULTILINE))
        demand({"connect", "disconnect", "destroy"} <= steps.keys(), out)
        return f"100 connections: {steps['connect']} ms"


def rdma_client(address):
    """Endpoints: every call waits."""
    said, told = cm_pair(["rdma_server", "-s", address], ["rdma_client", "-s", address])
    demand("rdma_server: end 0" in said and "rdma_client: end 0" in told, said + told)


def rdma_xclient():
    """A connection with a shared receive queue."""
    said, told = cm_pair(["rdma_xserver"], ["rdma_xclient", "-s", "127.0.0.1"])
    demand("rdma_xserver: end 0" in said and "rdma_xclient: end 0" in told, said + told)


def perftest(program):
    """The connection by librdmacm, the data as ever."""
    words = [program, "-R", "-n", "100", "-F"]
    _, told = cm_pair(words, [*words, "127.0.0.1"])
    demand(re.search(r"^ *\d+ +100 ", told, re.MULTILINE), told)


def cases(tap):
    e2e.need("rping", "ucmatose", "udaddy")
    for address in ADDRESSES:
        name = "v6" if ":" in address else "v4"
        tap.run(f"case_104__rping_{name}", rping, address)
        tap.run(f"ucmatose_{name}", ucmatose, address)
        tap.run(f"udaddy_{name}", udaddy, address)
        tap.run(f"rdma_client_{name}", rdma_client, address)
    tap.run("rping_own_queue_pairs", rping, "127.0.0.1", "-q")
    tap.run("rping_persistent_sizes", rping, "127.0.0.1", "-S", "65535")
    tap.run("case_91__rping_closed_port", rping_closed_port)
    tap.run("rping_many", rping_many)
    tap.run("ucmatose_connections", ucmatose_connections)
    tap.run("cmtime", cmtime)
    tap.run("rdma_xclient", rdma_xclient)
    for program in [*e2e.PERFTESTS, "ib_atomic_bw", "ib_atomic_lat"]:
        tap.run(f"{program}_by_cm", perftest, program)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
