# SPDX-License-Identifier: BSD-2-Clause
"""Two network namespaces whose link is in our hands: each end is a tap, and a thread carries frames
from one to the other. It marks what says that it may be marked (RFC 3168), while it is told to."""

import fcntl
import os
import select
import struct
import threading

import e2e

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 2, 0x1000
IPV4, IPV6, UDP, ROCE = 0x0800, 0x86DD, 17, 4791
NOT_ECT, CE = 0, 3


def marked(frame):
    """The frame of a RoCE packet with CE, where it is ECT; else None."""
    (kind,) = struct.unpack_from("!H", frame, 12)
    if kind == IPV4 and frame[23] == UDP and frame[14] == 0x45:
        port, ecn = struct.unpack_from("!H", frame, 36)[0], frame[15] & CE
    elif kind == IPV6 and frame[20] == UDP:
        port, ecn = struct.unpack_from("!H", frame, 56)[0], frame[15] >> 4 & CE
    else:
        return None
    if port != ROCE or ecn == NOT_ECT:
        return None
    out = bytearray(frame)
    if kind == IPV6:
        out[15] |= CE << 4
        return bytes(out)
    out[15] |= CE
    out[24:26] = bytes(2)
    total = sum(struct.unpack_from("!10H", out, 14))
    total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into("!H", out, 24, ~(total + (total >> 16)) & 0xFFFF)
    return bytes(out)


class MarkingLink(e2e.Namespaces):
    """`marks` says whether it marks; `count` how often it did."""

    def __init__(self, mtu, tag="m"):
        super().__init__(mtu, tag)
        self.marks, self.count, self.taps, self.thread = False, 0, [], None
        self.ended = os.pipe()

    def make_link(self):
        if not os.path.exists("/dev/net/tun"):
            raise e2e.Failed("there is no /dev/net/tun")
        for number, name in enumerate(self.names):
            tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            self.taps.append(tap)
            device = f"vbt{os.getpid()}{'ab'[number]}"  # of 15 letters at most
            request = struct.pack("16sH", device.encode(), IFF_TAP | IFF_NO_PI)
            fcntl.ioctl(tap, TUNSETIFF, request.ljust(40, b"\0"))
            self.ip("link", "set", device, "netns", name, "name", self.INTERFACE)
        for name, v4, v6 in zip(self.names, self.V4, self.V6):
            self.ip("-n", name, "link", "set", self.INTERFACE, "mtu", str(self.mtu))
            self.ip("-n", name, "address", "add", v4 + "/24", "dev", self.INTERFACE)
            self.ip("-n", name, "address", "add", v6 + "/64", "dev", self.INTERFACE, "nodad")
            self.ip("-n", name, "link", "set", self.INTERFACE, "txqueuelen", "2000", "up")
            self.ip("-n", name, "link", "set", "lo", "up")
        self.thread = threading.Thread(target=self.carry)
        self.thread.start()
        for name in self.names:
            e2e.wait_until(lambda name=name: self.settled(name), 10, "addresses to be usable")

    def carry(self):
        to = dict(zip(self.taps, reversed(self.taps)))
        while True:
            ready, _, _ = select.select([*self.taps, self.ended[0]], [], [])
            if self.ended[0] in ready:
                return
            for tap in ready:
                self.carry_some(tap, to[tap])

    def carry_some(self, tap, to):
        for _ in range(64):  # then the other one has its turn
            try:
                frame = os.read(tap, 65536)
            except BlockingIOError:
                return
            other = marked(frame) if self.marks else None
            self.count += other is not None
            try:
                os.write(to, other or frame)
            except OSError:  # its end is down, or full: lost, as on any link
                pass

    def __exit__(self, *_):
        os.write(self.ended[1], b"x")
        if self.thread is not None:
            self.thread.join()
        for tap in self.taps:
            os.close(tap)
        super().__exit__()
        for end in self.ended:
            os.close(end)
