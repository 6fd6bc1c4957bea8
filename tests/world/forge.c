/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * forge.c: packets that no QP of the world sent. Those to QPs at work must be dropped without a
 * trace: from elsewhere, of another service, answers to what was never asked. villain.c plays a
 * peer that is mad, against a QP of its own.
 */
#include "villain.h"
#include "wire/aeth.h"
#include "wire/opcode.h"

enum forgery {
    FORGE_ADDRESS, /* all as expected, but from or to another address */
    FORGE_PKEY,
    FORGE_SERVICE,
    FORGE_ICRC,
    FORGE_GHOST,  /* answer to a PSN that was not sent */
    FORGE_ANSWER, /* to a QP that has sent nothing yet */
    FORGE_READ,   /* again, but more of it than there was */
    FORGE_NO_QP,
    FORGERIES,
};

static const enum opcode_op answer[] = {OP_ACKNOWLEDGE, OP_ATOMIC_ACKNOWLEDGE, OP_READ_RESP_ONLY,
                                        OP_READ_RESP_LAST};

/* A request that the QP would take: a WRITE into a region of its protection domain. */
static void aim(struct world *w, int node, const struct qp *qp, struct rx_packet *rx)
{
    static const enum opcode_op request[] = {OP_SEND_ONLY, OP_WRITE_ONLY, OP_READ_REQUEST,
                                             OP_FETCH_ADD};
    const struct region *r = &w->node[node].shared_region;
    enum opcode_op op = request[tape_below(w->tape, 4)];
    rx->h.bth.opcode = opcode_make(SERVICE_RC, op);
    rx->h.bth.psn = qp->resp.epsn;
    rx->h.reth.va = r->iova;
    rx->h.reth.rkey = r->mr->key;
    rx->h.reth.dma_len = 8;
    rx->h.atomic.va = r->iova;
    rx->h.atomic.rkey = r->mr->key;
    rx->h.atomic.swap_add = 1;
    rx->payload_bytes = op == OP_SEND_ONLY || op == OP_WRITE_ONLY ? 8 : 0;
}

static void aim_answer(struct world *w, const struct qp *qp, struct rx_packet *rx)
{
    uint32_t ahead = tape_below(w->tape, 3) == 0 ? 0 : tape_below(w->tape, 1000);
    rx->h.bth.opcode = opcode_make(SERVICE_RC, answer[tape_below(w->tape, 4)]);
    rx->h.bth.psn = psn_add(qp->req.sent_end, ahead);
    rx->h.aeth.syndrome = tape_below(w->tape, 2) == 0
                              ? aeth_make(AETH_ACK, (uint8_t)tape_below(w->tape, 32))
                              : aeth_make(AETH_NAK, (uint8_t)tape_below(w->tape, 5));
    rx->h.aeth.msn = psn_make(tape_below(w->tape, 1000));
}

/* A READ that begins where PSNs were taken and ends where none was. */
static void aim_read(struct world *w, int node, const struct qp *qp, struct rx_packet *rx)
{
    struct direction *d = NULL;
    for (int i = 0; i < w->dirs && d == NULL; i++)
        if (w->dir[i].to == node && world_responder(w, &w->dir[i]) == qp)
            d = &w->dir[i];
    if (d == NULL)
        return;
    const struct region *r = &d->region[REGION_RDSRC];
    rx->h.bth.opcode = opcode_make(SERVICE_RC, OP_READ_REQUEST);
    rx->h.bth.psn = psn_add(qp->resp.epsn, 0xffffff);
    rx->h.reth.va = r->iova;
    rx->h.reth.rkey = r->mr->key;
    rx->h.reth.dma_len = w->opt.mtu + 1 < r->bytes ? w->opt.mtu + 1 : 0;
    if (rx->h.reth.dma_len == 0) { /* too small for it: a key that is none */
        rx->h.reth.dma_len = 1;
        rx->h.reth.rkey ^= 0x55;
    }
}

/* Makes the packet one that must be dropped; false: it would not be of this QP. */
static bool spoil(struct world *w, int node, const struct qp *qp, enum forgery how,
                  struct rx_packet *rx)
{
    switch (how) {
    case FORGE_ADDRESS:
        if (tape_below(w->tape, 2) == 0)
            rx->src.b[14] ^= 0x40;
        else
            rx->dst.b[14] ^= 0x40;
        return true;
    case FORGE_PKEY:
        rx->h.bth.pkey = (uint16_t)(0x8000 | tape_below(w->tape, 0x7fff));
        return true;
    case FORGE_SERVICE:
        rx->h.bth.opcode = opcode_make(SERVICE_UC, OP_WRITE_ONLY);
        rx->payload_bytes = 8;
        return true;
    case FORGE_ICRC:
        rx->icrc_ok = false;
        return true;
    case FORGE_GHOST:
        aim_answer(w, qp, rx);
        return true;
    case FORGE_ANSWER:
        aim_answer(w, qp, rx);
        rx->h.bth.psn = psn_add(qp->req.sent_end, 0xffffff);
        return qp->state == QP_STATE_RTR;
    case FORGE_READ:
        aim_read(w, node, qp, rx);
        return rx->h.bth.opcode == opcode_make(SERVICE_RC, OP_READ_REQUEST);
    default:
        rx->h.bth.dest_qp = 0x700000 + tape_below(w->tape, 100000);
        return true;
    }
}

static void forge_one(struct world *w, int node, enum forgery how)
{
    const struct node *n = &w->node[node];
    if (n->slots == 0)
        return;
    const struct qp *qp = n->slot[tape_below(w->tape, (uint32_t)n->slots)].qp;
    struct rx_packet rx = {
        .src = qp->attr.path.remote,
        .dst = qp->attr.path.local,
        .icrc_ok = true,
        .h.bth = {.mig_req = true, .pkey = PKEY_DEFAULT, .dest_qp = qp->qpn, .ack_req = true},
    };
    aim(w, node, qp, &rx);
    if (!spoil(w, node, qp, how, &rx))
        return;
    static const uint8_t payload[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    rx.payload = payload;
    w->forged++;
    struct trace_event *e = world_trace(w, TRACE_RECEIVED, node);
    e->h = rx.h;
    e->payload_bytes = rx.payload_bytes;
    e->note = "FORGED";
    uint32_t replies = qp->resp.reply_tail;
    if (rx.icrc_ok)
        sniff_stale(w, node, &rx);
    else
        nic_input(w->node[node].nic, w->now_ns, &rx, 1);
    check_step(w, node);
    if (qp->resp.reply_tail != replies)
        world_fail(w, "node %d: a READ that nobody asked for is answered", node);
}

void forge_some(struct world *w, int node)
{
    for (uint32_t i = tape_range(w->tape, 1, 4); i > 0; i--)
        forge_one(w, node, (enum forgery)tape_below(w->tape, FORGERIES));
    if (w->node[node].slots > 0)
        villain_play(w, node);
}
