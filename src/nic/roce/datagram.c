/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * datagram.c: both sides of a UD QP. Nothing is acknowledged: the send queue is that of
 * unreliable.c, where each WQE is one packet.
 */
#include "nic/roce/datagram.h"

#include <string.h>

#include "nic/nic.h"
#include "nic/qp.h"
#include "nic/roce/unreliable.h"
#include "wire/net.h"
#include "wire/opcode.h"
#include "wire/roce.h"

#define QKEY_CONTROLLED 0x80000000u
enum { HOP_LIMIT_USUAL = 64 };

void datagram_ready(struct qp *qp, uint16_t active_mtu_bytes)
{
    qp->attr.path_mtu_bytes = active_mtu_bytes != 0 ? active_mtu_bytes : PATH_MTU_MAX_BYTES;
}

/* The next WQE cannot be sent: it fails once those before it are complete. */
static void fail_in_order(struct qp *qp, enum wc_status status)
{
    if (qp->req.next_wqe == qp->sq.head)
        unreliable_fail(qp, status);
}

static bool payload_spans(struct qp *qp, const struct send_wqe *w, struct train *t)
{
    if (w->length == 0)
        return true;
    if (w->flags & WR_INLINE) {
        t->span[t->spans++] = (struct span){w->inline_data, w->length};
        return true;
    }
    return mem_gather(qp->nic, qp->pd, w->sge, w->num_sge, 0, w->length, t->span, &t->spans) ==
           MEM_OK;
}

/* One train is for one process of the peer's machine: a port may have a way to each. */
static bool same_slot(const struct train *t, uint32_t qpn)
{
    return t->packets == 0 || (t->packet[0].h.bth.dest_qp ^ qpn) >> QPN_SLOT_BITS == 0;
}

/* Adds the next WQE's packet; false when nothing more can go into this train. */
static bool add_packet(struct qp *qp, struct train *t)
{
    struct requester *r = &qp->req;
    const struct send_wqe *w = &qp->sq.wqe[r->next_wqe & qp->sq.mask];
    const struct send_dest *d = &qp->sq.dest[r->next_wqe & qp->sq.mask];
    bool imm = w->opcode == WR_SEND_WITH_IMM;
    uint8_t opcode = opcode_make(SERVICE_UD, imm ? OP_SEND_ONLY_IMM : OP_SEND_ONLY);
    /* IBA 9.8.3: a datagram is one packet. */
    if (w->length > qp->attr.path_mtu_bytes) {
        fail_in_order(qp, WC_LOC_LEN_ERR);
        return false;
    }
    if (t->packets == 0) {
        train_begin(t, &d->path);
        t->qp = qp;
    }
    uint16_t spans_max = w->num_sge > 1 ? w->num_sge : 1;
    if (!nic_path_equal(t->path, &d->path) || !same_slot(t, d->qpn) ||
        !train_fits(t, roce_packet_bytes(opcode, w->length), spans_max))
        return false;
    uint16_t first_span = t->spans;
    if (!payload_spans(qp, w, t)) {
        fail_in_order(qp, WC_LOC_PROT_ERR);
        return false;
    }
    struct train_packet *p = train_add_to(t, d->qpn, opcode, r->next, w->length);
    p->first_span = first_span;
    p->spans = t->spans - first_span;
    p->h.bth.solicited = (w->flags & WR_SOLICITED) != 0;
    /* The controlled Q_Keys are not for WRs: one stands for the QP's own. */
    p->h.deth.qkey = d->qkey & QKEY_CONTROLLED ? qp->attr.qkey : d->qkey;
    p->h.deth.src_qp = qp->qpn;
    if (d->qpn == QPN_MULTICAST)
        qp->group_source = d->path.local;
    if (imm)
        p->h.immdt = w->imm_or_inv;
    unreliable_step(qp);
    r->number = r->next;
    r->next_wqe++;
    return true;
}

const struct nic_path *datagram_target(const struct qp *qp, uint32_t *qpn)
{
    const struct send_dest *d = &qp->sq.dest[qp->req.next_wqe & qp->sq.mask];
    *qpn = d->qpn;
    return &d->path;
}

bool datagram_next(struct qp *qp, struct train *t)
{
    train_begin(t, NULL);
    if (qp->state != QP_STATE_RTS)
        return false;
    unreliable_skip_flushed(qp);
    while (qp->req.next_wqe != qp->sq.tail && add_packet(qp, t)) {
    }
    return t->packets > 0;
}

/*
 * The 40 bytes in front of the payload. What a socket does not show is what senders of RoCE v2 put
 * there: no flow label, identification 0 and DF; the hop limit is asked for only when packets are
 * captured, since it costs every packet.
 */
static void build_grh(const struct rx_packet *p, uint8_t grh[NET_GRH_BYTES])
{
    bool v4 = net_addr_is_v4(&p->src);
    struct net_headers h = {
        .v6 = !v4,
        .tos = p->traffic_class,
        .ttl = p->hop_limit != 0 ? p->hop_limit : HOP_LIMIT_USUAL,
        .dont_fragment = true,
        .udp_bytes =
            (uint16_t)(UDP_HEADER_BYTES + roce_packet_bytes(p->h.bth.opcode, p->payload_bytes)),
    };
    memcpy(h.src, p->src.b + (v4 ? 12 : 0), v4 ? 4 : 16);
    memcpy(h.dst, p->dst.b + (v4 ? 12 : 0), v4 ? 4 : 16);
    net_build_grh(&h, grh);
}

/* Header and payload to the receive that was taken; false: its keys do not allow it. */
static bool scatter(struct qp *qp, const struct rx_packet *p)
{
    /* The receives of an SRQ are of its protection domain, which need not be the QP's. */
    const struct pd *pd = qp->srq != NULL ? qp->srq->pd : qp->pd;
    const struct recv_current *r = &qp->recv;
    uint8_t grh[NET_GRH_BYTES];
    build_grh(p, grh);
    return mem_scatter_sges(qp->nic, pd, r->sge, (int)r->num_sge, 0, grh, sizeof(grh)) == MEM_OK &&
           mem_scatter_sges(qp->nic, pd, r->sge, (int)r->num_sge, NET_GRH_BYTES, p->payload,
                            p->payload_bytes) == MEM_OK;
}

/* Takes a receive that the datagram fits; why it is dropped otherwise. */
static bool take_receive(struct qp *qp, uint32_t bytes)
{
    enum wq_take take = wq_recv_take_for(qp, bytes);
    if (take == WQ_NONE)
        nic_count(qp->nic, COUNTER_rx_drop_no_recv, 1);
    else if (take == WQ_SMALL)
        nic_count(qp->nic, COUNTER_rx_drop_recv_small, 1);
    return take == WQ_TAKEN;
}

/* By the annex of RoCE v2 a completion says which kind of header a datagram had, and struct ibv_wc
 * has no field for it. Programs (UCX 1.11 to 1.17) look for it where NVIDIA's NICs tell it: in the
 * service level, which means nothing else without an InfiniBand link layer. */
enum { SL_IPV6 = 1, SL_IPV4 = 2 };

void datagram_input(struct qp *qp, const struct rx_packet *p)
{
    if (p->h.deth.qkey != qp->attr.qkey) {
        nic_count(qp->nic, COUNTER_qkey_viol_cntr, 1);
        return;
    }
    if (p->payload_bytes > qp->attr.path_mtu_bytes) {
        nic_count(qp->nic, COUNTER_rx_drop_malformed, 1);
        return;
    }
    if (!take_receive(qp, NET_GRH_BYTES + p->payload_bytes))
        return;
    struct nic_wc wc = {.status = WC_SUCCESS, .opcode = WC_RECV};
    if (!scatter(qp, p)) {
        /* An error of the program's own, in its receive queue: that ends the QP (IBA 10.3.1). */
        wc.status = WC_LOC_PROT_ERR;
        wq_recv_done(qp, &wc, false);
        qp_enter_error(qp);
        return;
    }
    wc.byte_len = NET_GRH_BYTES + p->payload_bytes;
    wc.src_qp = p->h.deth.src_qp;
    wc.flags = WC_GRH;
    wc.sl = net_addr_is_v4(&p->src) ? SL_IPV4 : SL_IPV6;
    if (opcode_info(p->h.bth.opcode)->flags & OPF_IMM) {
        wc.flags |= WC_WITH_IMM;
        wc.imm_or_inv = p->h.immdt;
    }
    wq_recv_done(qp, &wc, p->h.bth.solicited);
}
