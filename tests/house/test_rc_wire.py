#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tests/e2e/rc_wire.py: captures of one exchange agree with one another, and each field that is
changed in one is found."""

import os
import struct
import sys
import tempfile
import unittest
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

import rc_wire  # noqa: E402
from e2e import Failed  # noqa: E402
from roce_pcap import frames  # noqa: E402

BTH = 14 + 20 + 8  # of an IPv4 frame


def golden(name):
    return os.path.join(ROOT, "tests", "golden", "rxe", name + ".pcap")


def icrc(frame):
    """The frame with its ICRC made right again."""
    masked = bytearray(frame[14:-4])
    for place in (1, 8, 10, 11, 26, 27, 32):
        masked[place] = 0xFF
    return frame[:-4] + struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))


class Wire(unittest.TestCase):
    def changed(self, name, change, fix=True):
        """Compares a capture with itself after change(number, frame) of each of its frames."""
        with tempfile.NamedTemporaryFile(suffix=".pcap") as copy:
            with open(golden(name), "rb") as file:
                copy.write(file.read(24))
            for number, frame in enumerate(frames(golden(name))):
                for one in change(number, bytearray(frame)):
                    one = icrc(bytes(one)) if fix else bytes(one)
                    copy.write(struct.pack("<IIII", 0, 0, len(one), len(one)) + one)
            copy.flush()
            rc_wire.compare(copy.name, golden(name), name in ("rc-burst",))

    def flip(self, name, number, place, value):
        def change(n, frame):
            if n == number:
                frame[BTH + place] ^= value
            return [frame]

        return lambda: self.changed(name, change)

    def test_same(self):
        for name in ("rc-send", "rc-write", "rc-read", "rc-atomic", "rc-burst"):
            self.changed(name, lambda _, frame: [frame])
        rc_wire.compare(golden("rc-send"), golden("rc-psnwrap"))
        rc_wire.compare(golden("rc-send"), golden("rc-send-ipv6"))
        rc_wire.compare_responses(golden("rc-badrkey-write"), golden("rc-badrkey-write"))

    def test_field(self):
        rows = [
            ("AckReq", "rc-send", 0, 8, 0x80),
            ("solicited", "rc-send", 0, 1, 0x80),
            ("pad count", "rc-send", 0, 1, 0x10),
            ("PSN", "rc-send", 4, 11, 1),
            ("opcode", "rc-send", 0, 0, 0x0E),
            ("immediate", "rc-send", 4, 12, 1),
            ("MSN", "rc-send", 1, 15, 1),
            ("syndrome", "rc-send", 1, 12, 0x60),
            ("address", "rc-read", 4, 19, 1),
            ("length", "rc-write", 0, 27, 1),
            ("swap", "rc-atomic", 2, 24, 1),
            ("compare", "rc-atomic", 2, 32, 1),
            ("original", "rc-atomic", 1, 16, 1),
        ]
        for what, *where in rows:
            with self.subTest(what):
                self.assertRaises(Failed, self.flip(*where))

    def test_free(self):
        rows = [
            ("credits", "rc-send", 1, 12, 0x1F),
            ("MigReq", "rc-send", 0, 1, 0x40),
            ("key", "rc-write", 0, 23, 1),
            ("QPN", "rc-send", 0, 7, 1),
        ]
        for what, *where in rows:
            with self.subTest(what):
                self.flip(*where)()

    def test_packets(self):
        def missing(number, frame):
            return [] if number == 3 else [frame]

        def twice(number, frame):
            return [frame, frame] if number == 3 else [frame]

        for change in (missing, twice):
            self.assertRaises(Failed, lambda change=change: self.changed("rc-send", change))

    def test_last_response(self):
        """ACKs of a burst may be coalesced, but the last must be there."""
        last = sum(1 for _ in frames(golden("rc-burst"))) - 1
        self.changed("rc-burst", lambda n, frame: [] if n == last - 1 else [frame])
        with self.assertRaises(Failed):
            self.changed("rc-burst", lambda n, frame: [] if n == last else [frame])

    def test_icrc(self):
        def wrong(number, frame):
            frame[-1] ^= number == 2
            return [frame]

        self.assertRaises(Failed, lambda: self.changed("rc-send", wrong, fix=False))

    def test_other_exchange(self):
        for other in ("rc-write", "rc-send-mtu256", "rc-rnr"):
            with self.assertRaises(Failed):
                rc_wire.compare(golden("rc-send"), golden(other))
        with self.assertRaises(Failed):
            rc_wire.compare_responses(golden("rc-toolong"), golden("rc-noaccess"))


def main():
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Wire)
    tests = list(suite)
    print(f"1..{len(tests)}")
    failed = 0
    for number, test in enumerate(tests, 1):
        result = test.defaultTestResult()
        test.run(result)
        print(f"{'ok' if result.wasSuccessful() else 'not ok'} {number} - {test.id()}")
        for _, trace in result.failures + result.errors:
            failed += 1
            print("\n".join("# " + line for line in trace.splitlines()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
