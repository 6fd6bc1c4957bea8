# SPDX-License-Identifier: BSD-2-Clause
"""One of the two programs of test_import.py, in pyverbs: `importer.py export|import SOCKET`.

The exporter makes objects, gives the command descriptor and the numbers over a unix socket, and
says what it finds afterwards; the importer uses them. Both print a line for what they found.
"""

import ctypes
import errno
import json
import mmap
import os
import socket
import sys

from pyverbs import enums as e
from pyverbs.device import DM, AllocDmAttr, Context
from pyverbs.mr import MR, DMMR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.xrcd import XRCD, XRCDInitAttr

BYTES = 65536
DM_BYTES = 4096
ALL = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
FD_AND_FLAGS = e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS


def domain(context, file, flags):
    return XRCD(context, XRCDInitAttr(FD_AND_FLAGS, flags, file))


def refused(what, *words, **named):
    try:
        what(*words, **named)
    except PyverbsRDMAError as error:
        return errno.errorcode[error.error_code]
    return "no error"


def address_of(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def export(path):
    context = Context(name="vb_lo")
    pd = PD(context)
    file = os.memfd_create("shared")
    os.ftruncate(file, BYTES)
    memory = mmap.mmap(file, BYTES)
    shared = MR(pd, BYTES, ALL, address=address_of(memory))
    private = MR(pd, BYTES, ALL)
    dm = DM(context, AllocDmAttr(length=DM_BYTES))
    dm_mr = DMMR(pd, DM_BYTES, ALL | e.IBV_ACCESS_ZERO_BASED, dm=dm, offset=0)
    xrcd = domain(context, file, os.O_CREAT)
    dm.copy_to_dm(0, b"exporter", 8)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()
    print("listens", flush=True)
    peer, _ = listener.accept()
    objects = {"pd": pd, "shared": shared, "private": private, "dm": dm, "dm_mr": dm_mr}
    numbers = {name: thing.handle for name, thing in objects.items()}
    socket.send_fds(peer, [json.dumps(numbers).encode()], [context.cmd_fd, file])
    peer.recv(1)
    print("dm", dm.copy_from_dm(0, 8).decode())
    for thing in (dm_mr, dm, private, shared, pd, xrcd):
        thing.close()
    print("closed")


def take(path):
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.connect(path)
    text, descriptors, _, _ = socket.recv_fds(peer, 4096, 2)
    numbers = json.loads(text)
    command, file = descriptors
    context = Context(cmd_fd=command)
    pd = PD(context, handle=numbers["pd"])
    print("private", refused(MR, pd, handle=numbers["private"]))
    print("unmapped", refused(MR, pd, handle=numbers["shared"]))
    memory = mmap.mmap(file, BYTES)
    shared = MR(pd, handle=numbers["shared"])
    print("mapped", len(memory))
    dm = DM(context, handle=numbers["dm"])
    print("dm", dm.copy_from_dm(0, 8).decode())
    dm.copy_to_dm(0, b"importer", 8)
    dm_mr = MR(pd, handle=numbers["dm_mr"])
    print("domain", refused(domain, context, file, 0))
    dm_mr.unimport()
    dm.unimport()
    shared.unimport()
    pd.unimport()
    peer.send(b"x")


if __name__ == "__main__":
    {"export": export, "import": take}[sys.argv[1]](sys.argv[2])
