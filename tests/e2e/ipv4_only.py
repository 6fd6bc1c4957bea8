#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Becomes the program of its arguments, for which the kernel has no IPv6, as one has that was
started with ipv6.disable=1: socket() answers EAFNOSUPPORT.
"""

import ctypes
import errno
import os
import platform
import socket
import struct
import sys

SOCKET = {"x86_64": 41, "aarch64": 198}
NUMBER, FIRST_ARGUMENT = 0, 16  # in struct seccomp_data
LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF's
ALLOW, ERRNO = 0x7fff0000, 0x00050000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def refuse_ipv6():
    number = SOCKET.get(platform.machine())
    if number is None:
        sys.exit(f"ipv4_only: the number of socket() on {platform.machine()} is not known here")
    steps = [(LOAD, 0, 0, NUMBER), (IF_EQUAL, 0, 3, number),
             (LOAD, 0, 0, FIRST_ARGUMENT), (IF_EQUAL, 0, 1, socket.AF_INET6),
             (RETURN, 0, 0, ERRNO | errno.EAFNOSUPPORT), (RETURN, 0, 0, ALLOW)]
    program = Program(len(steps), b"".join(struct.pack("=HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or \
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        sys.exit(f"ipv4_only: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    refuse_ipv6()
    os.execvp(sys.argv[1], sys.argv[1:])
