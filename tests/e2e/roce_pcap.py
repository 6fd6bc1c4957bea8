# SPDX-License-Identifier: BSD-2-Clause
"""Reads a capture without any code of the product: pcap, Ethernet, IP, UDP, BTH, and the ICRC.

The ICRC is computed with zlib's CRC-32, which has the polynomial, bit order, start and end of the
Ethernet one: over 8 bytes of ones, the IP and UDP headers with what routers change replaced by
ones (TOS or traffic class and flow label, TTL or hop limit, checksums), the BTH with ones in its
fifth byte, the rest of the packet. It is sent least significant byte first.
"""

import struct
import zlib
from collections import Counter
from dataclasses import dataclass

MAGIC_NS = 0xA1B23C4D
MAGIC_US = 0xA1B2C3D4
ROCE_PORT = 4791
RC_OPCODES = {
    0x00: "SEND_FIRST",
    0x01: "SEND_MIDDLE",
    0x02: "SEND_LAST",
    0x03: "SEND_LAST_IMM",
    0x04: "SEND_ONLY",
    0x05: "SEND_ONLY_IMM",
    0x06: "WRITE_FIRST",
    0x07: "WRITE_MIDDLE",
    0x08: "WRITE_LAST",
    0x09: "WRITE_LAST_IMM",
    0x0A: "WRITE_ONLY",
    0x0B: "WRITE_ONLY_IMM",
    0x0C: "READ_REQ",
    0x0D: "READ_RESP_FIRST",
    0x0E: "READ_RESP_MIDDLE",
    0x0F: "READ_RESP_LAST",
    0x10: "READ_RESP_ONLY",
    0x11: "ACK",
    0x12: "ATOMIC_ACK",
    0x13: "CMP_SWAP",
    0x14: "FETCH_ADD",
    0x16: "SEND_LAST_INV",
    0x17: "SEND_ONLY_INV",
}


class BadCapture(Exception):
    """The file is not a capture, or a packet in it is not what it says."""


@dataclass
class Packet:
    opcode: int
    psn: int
    qpn: int
    source_port: int
    icrc_ok: bool
    target: bytes  # IP address
    solicited: bool
    ack_request: bool
    pad_bytes: int
    body: bytes  # what is between BTH and ICRC

    def name(self):
        return RC_OPCODES.get(self.opcode, f"0x{self.opcode:02x}")


def frames(path):
    for _, frame in records(path):
        yield frame


def records(path):
    """Time in ns and frame."""
    with open(path, "rb") as capture:
        data = capture.read()
    if len(data) < 24:
        raise BadCapture(f"{len(data)} bytes: no pcap header")
    magic, major, minor, _, _, _, link = struct.unpack_from("<IHHiIII", data)
    if magic not in (MAGIC_NS, MAGIC_US) or (major, minor) != (2, 4) or link != 1:
        raise BadCapture(f"magic 0x{magic:x}, version {major}.{minor}, link type {link}")
    at = 24
    while at < len(data):
        if at + 16 > len(data):
            raise BadCapture("ends inside a record header")
        seconds, part, kept, length = struct.unpack_from("<IIII", data, at)
        at += 16
        if kept != length or at + kept > len(data):
            raise BadCapture(f"record of {kept} of {length} bytes, {len(data) - at} are left")
        yield seconds * 10**9 + part * (1 if magic == MAGIC_NS else 1000), data[at : at + kept]
        at += kept


def ones(data, *places):
    for place in places:
        data[place] = 0xFF


def ip_checksum(header):
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


def packet(frame):
    """The RoCE packet of an Ethernet frame, checked as far as bytes can be."""
    kind = struct.unpack_from(">H", frame, 12)[0]
    ip = frame[14:]
    if kind == 0x8100:
        kind, ip = struct.unpack_from(">H", frame, 16)[0], frame[18:]
    if kind == 0x0800:
        header = 20
        total = struct.unpack_from(">H", ip, 2)[0]
        if ip[0] != 0x45 or ip[9] != 17 or not ip_checksum(ip[:20]):
            raise BadCapture("IPv4 header: version, protocol or checksum")
        masked = bytearray(ip[:28])
        ones(masked, 1, 8, 10, 11, 26, 27)
    elif kind == 0x86DD:
        header = 40
        total = 40 + struct.unpack_from(">H", ip, 4)[0]
        if ip[0] >> 4 != 6 or ip[6] != 17:
            raise BadCapture("IPv6 header: version or next header")
        masked = bytearray(ip[:48])
        masked[0] |= 0x0F
        ones(masked, 1, 2, 3, 7, 46, 47)
    else:
        raise BadCapture(f"ethertype 0x{kind:04x}")
    if total != len(ip):
        raise BadCapture(f"IP says {total} bytes, the frame has {len(ip)}")
    source, target, udp_bytes, _ = struct.unpack_from(">HHHH", ip, header)
    if target != ROCE_PORT or udp_bytes != total - header:
        raise BadCapture(f"UDP: to port {target}, {udp_bytes} bytes")
    roce = ip[header + 8 :]
    if len(roce) < 16:
        raise BadCapture(f"{len(roce)} bytes are no RoCE packet")
    body = bytearray(roce[:-4])
    body[4] = 0xFF
    crc = zlib.crc32(b"\xff" * 8 + bytes(masked) + bytes(body))
    return Packet(
        opcode=roce[0],
        psn=int.from_bytes(roce[9:12], "big"),
        qpn=int.from_bytes(roce[5:8], "big"),
        source_port=source,
        icrc_ok=crc == struct.unpack("<I", roce[-4:])[0],
        target=ip[16:20] if header == 20 else ip[24:40],
        solicited=bool(roce[1] & 0x80),
        ack_request=bool(roce[8] & 0x80),
        pad_bytes=roce[1] >> 4 & 3,
        body=roce[12:-4],
    )


def read(path):
    return [packet(frame) for frame in frames(path)]


def summary(packets):
    return Counter(p.name() for p in packets)
