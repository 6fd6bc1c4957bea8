# SPDX-License-Identifier: BSD-2-Clause
"""One of the two programs of test_ece.py, in pyverbs: `ece_pair.py server|client ADDRESS PORT
[OPTIONS]`, or `silent` for a server that does nothing about ECE.

A QP of its own, and ECE as rdma_set_local_ece(3) has it: asked of the QP, told by rdma_cm, set
before the QP is connected. OPTIONS: what to say instead of the QP's own. Prints what it was told
and what is in use then.
"""

import sys

from pyverbs import cm_enums as c
from pyverbs import enums as e
from pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel, ConnParam
from pyverbs.cq import CQ
from pyverbs.qp import ECE, QP, QPAttr, QPCap, QPInitAttr


def expect(channel, wanted):
    event = CMEvent(channel)
    if event.event_type != wanted:
        sys.exit(f"got {event.event_str()}")
    return event


def queue_pair(cmid):
    cq = CQ(cmid.context, 2, None, None, 0)
    cap = QPCap(max_send_wr=1, max_recv_wr=1)
    return QP(cmid.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, rcq=cq, scq=cq, cap=cap), QPAttr())


def to_rts(cmid, qp):
    for state in (e.IBV_QPS_INIT, e.IBV_QPS_RTR, e.IBV_QPS_RTS):
        qp.modify(*cmid.init_qp_attr(state))


def connect(cmid, qp):
    """What the peer has said, and the QP up to RTS."""
    told = cmid.get_remote_ece()
    print(f"told {told.vendor_id:x} {told.options:x}")
    if told.vendor_id != 0:
        qp.set_ece(told)
    to_rts(cmid, qp)
    used = qp.query_ece()
    print(f"uses {used.vendor_id:x} {used.options:x}")
    return used


def silent(channel, name, port):
    serve(channel, name, port, speaks=False)


def serve(channel, name, port, speaks=True):
    address = AddrInfo(src=name, src_service=port, port_space=c.RDMA_PS_TCP, flags=c.RAI_PASSIVE)
    listener = CMID(creator=channel, port_space=c.RDMA_PS_TCP)
    listener.bind_addr(address)
    listener.listen()
    print("listens", flush=True)
    event = expect(channel, c.RDMA_CM_EVENT_CONNECT_REQUEST)
    cmid = CMID(creator=event, listen_id=listener)
    event.ack_cm_event()
    qp = queue_pair(cmid)
    if speaks:
        cmid.set_local_ece(connect(cmid, qp))
    else:
        to_rts(cmid, qp)
    cmid.accept(ConnParam(qp_num=qp.qp_num))
    expect(channel, c.RDMA_CM_EVENT_ESTABLISHED).ack_cm_event()
    expect(channel, c.RDMA_CM_EVENT_DISCONNECTED).ack_cm_event()
    cmid.disconnect()


def ask(channel, name, port, options=None):
    address = AddrInfo(dst=name, dst_service=port, port_space=c.RDMA_PS_TCP)
    cmid = CMID(creator=channel, port_space=c.RDMA_PS_TCP)
    cmid.resolve_addr(address)
    expect(channel, c.RDMA_CM_EVENT_ADDR_RESOLVED).ack_cm_event()
    cmid.resolve_route()
    expect(channel, c.RDMA_CM_EVENT_ROUTE_RESOLVED).ack_cm_event()
    qp = queue_pair(cmid)
    ece = qp.query_ece()
    if options is not None:
        ece = ECE(ece.vendor_id, int(options, 16), 0)
    cmid.set_local_ece(ece)
    cmid.connect(ConnParam(qp_num=qp.qp_num))
    expect(channel, c.RDMA_CM_EVENT_CONNECT_RESPONSE).ack_cm_event()
    connect(cmid, qp)
    cmid.establish()
    cmid.disconnect()


if __name__ == "__main__":
    {"server": serve, "silent": silent, "client": ask}[sys.argv[1]](CMEventChannel(), *sys.argv[2:])
