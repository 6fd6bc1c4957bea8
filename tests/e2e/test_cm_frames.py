#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""CM messages as we build them, read by tshark: its names, and fields where it shows any."""

import os
import sys
import tempfile

import e2e
from e2e import demand

# In the order of their attribute IDs.
NAMES = (
    "ConnectRequest MsgRcptAck ConnectReject ConnectReply ReadyToUse DisconnectRequest"
    " DisconnectReply ServiceIDResReq ServiceIDResReqResp LoadAlternatePath AlternatePathResponse"
).split()
FIELDS = {
    "ConnectRequest": [
        "Local Communication ID: 0x81020304",
        "ServiceID: 0x1000000000000007",
        "Local QPN: 0x123456",
        "Starting PSN: 0xabcdef",
        "Remote CM Response Timeout: 0x14",
        "Local CM Response Timeout: 0x13",
        "= Retry Count: 0x6",
        "RNR Retry Count: 0x5",
        "Max CM Retries: 0xd",
        "Path Packet Payload MTU: 0x3",
        "SRQ: 0x1",
        "Primary Hop Limit: 0x40",
        "Primary Local ACK Timeout: 0x12",
    ],
    "ConnectReject": ["Remote Communication ID: 0x41020304", "REJected: 0x2", "Reason: 0x001c"],
    "ConnectReply": ["Local QPN: 0x123456", "Starting PSN: 0xabcdef", "RNR Retry Count: 0x5"],
    "ReadyToUse": ["Local Communication ID: 0x81020304", "Remote Communication ID: 0x41020304"],
    "DisconnectRequest": ["Remote QPN/EECN: 0x123456", "Local Communication ID: 0x81020304"],
    "DisconnectReply": ["Remote Communication ID: 0x41020304"],
}


def read(options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cm.pcap")
        program = os.path.join(os.environ["VERBENA_BUILD"], "tests/e2e/cm_frames")
        status, _, errors = e2e.run([program, path])
        demand(status == 0, f"cm_frames: exit code {status}: {errors}")
        status, text, errors = e2e.run(["tshark", "-r", path, *options])
        demand(status == 0, f"tshark: exit code {status}: {errors}")
        return text


def names():
    e2e.need("tshark")
    lines = read([]).splitlines()
    demand(len(lines) == len(NAMES), f"tshark sees {len(lines)} packets")
    for name, line in zip(NAMES, lines):
        demand(line.split()[-1] == name, f"not {name}: {line}")
    malformed = read(["-Y", "_ws.malformed"])
    demand(not malformed.strip(), f"tshark calls malformed: {malformed}")


def fields():
    e2e.need("tshark")
    packets = read(["-V"]).split("\nFrame ")
    demand(len(packets) == len(NAMES), f"tshark shows {len(packets)} packets")
    for name, text in zip(NAMES, packets):
        for field in FIELDS.get(name, []):
            demand(field in text, f"{name} has no '{field}':\n{text}")


def cases(tap):
    tap.run("names", names)
    tap.run("fields", fields)


if __name__ == "__main__":
    sys.exit(e2e.main(cases))
