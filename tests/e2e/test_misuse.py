#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Mistakes get the status and the event that the specification names; misuse.c has the rows."""

import os
import sys

import e2e
from e2e import Failed, Side


def misuse(tap):
    side = Side()
    port = e2e.free_port()
    command = [os.path.join(e2e.PROGRAMS, "misuse"), "-d", side.device, "-p", str(port)]
    with side.start(command) as server:
        e2e.wait_until(lambda: server.listens(port), 15, "the server")
        with side.start([*command, "127.0.0.1"]) as client:
            status = client.wait()
            tap.adopt(client.text())
            if status not in (0, 1):
                raise Failed(f"client: exit code {status}\n{client.tail()}\n{server.tail()}")
            if "1.." not in client.text():
                raise Failed(f"client stopped early\n{client.tail()}\nserver:\n{server.tail()}")
            server.expect()


def cases(tap):
    tap.run("programs_end", misuse, tap)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
