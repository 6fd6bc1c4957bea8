# SPDX-License-Identifier: BSD-2-Clause
"""Compares a capture of an RC exchange with the reference one of the same exchange, field by field.

The two directions are compared apart, for which of them comes first on the wire is chance. What
two runs choose freely is taken out: QPNs, keys, first PSNs (PSNs count from the first request),
addresses (count from the first one named). Left are opcodes and their order, solicited event,
AckReq, pad count, payload bytes, and of each extended header all that it says.
"""

import itertools
import struct

import roce_pcap
from e2e import demand

ACK, ATOMIC_ACK, READ_RESP_MIDDLE = 0x11, 0x12, 0x0E
AETH_OPCODES = (0x0D, 0x0F, 0x10, ACK, ATOMIC_ACK)
RESPONSES = (*AETH_OPCODES, READ_RESP_MIDDLE)
RETH_OPCODES = (0x06, 0x0A, 0x0B, 0x0C)
ATOMIC_OPCODES = (0x13, 0x14)
IMM_OPCODES = (0x03, 0x05, 0x09, 0x0B)
INV_OPCODES = (0x16, 0x17)
PSNS = 1 << 24


def syndrome(value):
    """The kind of an AETH syndrome; an ACK's credits are each responder's own affair."""
    kind, rest = value >> 5, value & 31
    return {0: "ACK", 1: f"RNR NAK {rest}", 3: f"NAK {rest}"}.get(kind, f"reserved {value}")


class Normal:
    """Rewrites packets so that two runs can be compared."""

    def __init__(self):
        self.psn = None
        self.addr = None

    def address(self, value):
        self.addr = value if self.addr is None else self.addr
        return value - self.addr

    def packet(self, p):
        self.psn = p.psn if self.psn is None else self.psn
        words = [p.name(), f"psn +{(p.psn - self.psn) % PSNS}"]
        words += ["SE"] if p.solicited else []
        words += ["AckReq"] if p.ack_request else []
        body = p.body
        if p.opcode in RETH_OPCODES:
            va, _, length = struct.unpack_from(">QII", body)
            words += [f"va +{self.address(va)}" if length else "va -", f"length {length}"]
            body = body[16:]
        elif p.opcode in ATOMIC_OPCODES:
            va, _, swap, compare = struct.unpack_from(">QIQQ", body)
            words += [f"va +{self.address(va)}", f"{swap:x}", f"{compare:x}"]
            body = body[28:]
        elif p.opcode in AETH_OPCODES:
            aeth = struct.unpack_from(">I", body)[0]
            words += [syndrome(aeth >> 24), f"msn {aeth & 0xFFFFFF}"]
            body = body[4:]
            if p.opcode == ATOMIC_ACK:
                words.append(f"original {body[:8].hex()}")
                body = body[8:]
        if p.opcode in IMM_OPCODES:
            words.append(f"imm {body[:4].hex()}")
        if p.opcode in IMM_OPCODES + INV_OPCODES:
            body = body[4:]
        return " ".join([*words, f"pad {p.pad_bytes}", f"payload {len(body) - p.pad_bytes}"])


def streams(path):
    """The two directions as lists of text: requests, responses."""
    normal = Normal()
    sides = [], []
    for p in roce_pcap.read(path):
        demand(p.icrc_ok, f"wrong ICRC in {path}: {p.name()} PSN {p.psn}")
        sides[p.opcode in RESPONSES].append(normal.packet(p))
    return sides


def once(lines):
    """Without repetitions of the line before."""
    return [line for i, line in enumerate(lines) if i == 0 or line != lines[i - 1]]


def differ(what, ours, reference):
    rows = [
        f"{what} {i}: {a}, reference: {b}"
        for i, (a, b) in enumerate(itertools.zip_longest(ours, reference))
        if a != b
    ]
    demand(not rows, "\n".join(rows[:8]))


def compare(path, golden, coalesced=False, repeated=False):
    """Fails with the first differences.

    coalesced: ACKs may be missing but for the last. repeated: how often something is repeated
    without change is a matter of time.
    """
    (requests, responses), (want_requests, want_responses) = streams(path), streams(golden)
    if coalesced:
        demand(responses[-1:] == want_responses[-1:], f"last response {responses[-1:]}")
        want_responses = [line for line in want_responses if line in responses]
    if repeated:
        requests, responses = once(requests), once(responses)
        want_requests, want_responses = once(want_requests), once(want_responses)
    differ("request", requests, want_requests)
    differ("response", responses, want_responses)


def compare_responses(path, golden):
    """For an exchange that is refused: how many requests were under way by then is chance."""
    differ("response", streams(path)[1], streams(golden)[1])
