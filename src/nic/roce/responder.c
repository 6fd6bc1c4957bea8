/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * responder.c: requests that a peer sends. A packet passes a line of stages, each of which may stop
 * it with a verdict: PSN, order of opcodes, right of the operation, length, resources, access; then
 * it is executed and, when asked, acknowledged. One function, finish, knows what a verdict means
 * for the wire and for the QP. Answers leave through responder_next.
 */
#include <assert.h>

#include "nic/mw.h"
#include "nic/nic.h"
#include "nic/qp.h"
#include "nic/roce/placement.h"
#include "wire/aeth.h"
#include "wire/opcode.h"
#include "wire/roce.h"

void responder_clear(struct qp *qp)
{
    struct responder *r = &qp->resp;
    *r = (struct responder){.reply = r->reply, .atomic = r->atomic, .depth = r->depth};
    for (uint32_t i = 0; i < r->depth; i++)
        r->atomic[i].valid = false;
}

void responder_start(struct qp *qp)
{
    struct responder *r = &qp->resp;
    responder_clear(qp);
    r->epsn = psn_make(qp->attr.rq_psn);
    r->ack_psn = psn_add(r->epsn, 0xffffff);
    r->pd = qp->pd;
}

/* Behind what a NAK tells of, this one was dropped as well. */
static void note_dropped(struct responder *r, struct psn psn)
{
    struct psn end = psn_add(psn, 1);
    if (psn_before(r->dropped_end, end))
        r->dropped_end = end;
}

static enum resp_verdict check_psn(struct qp *qp, const struct rx_packet *p)
{
    struct responder *r = &qp->resp;
    if (r->failed)
        return V_DROP;
    int32_t d = psn_diff(p->h.bth.psn, r->epsn);
    if (d < 0)
        return V_DUPLICATE;
    if (d > 0) {
        nic_count(qp->nic, COUNTER_out_of_sequence, 1);
        /* One NAK for a gap: the rest of what was in flight is dropped without a word. */
        if (!r->nak_outstanding)
            return V_NAK_SEQUENCE;
        note_dropped(r, p->h.bth.psn);
        return V_DROP;
    }
    r->nak_outstanding = false;
    r->nak_due = false; /* one that did not leave yet: nak_overtaken */
    return V_GO_ON;
}

/* Order of FIRST, MIDDLE, LAST and ONLY within one message; a wrong one is an invalid request. */
static enum resp_verdict check_op_seq(const struct responder *r, uint16_t flags)
{
    bool begins = (flags & (OPF_FIRST | OPF_ONLY | OPF_READ | OPF_ATOMIC | OPF_PLACEMENT)) != 0;
    if (begins != (r->message == RESP_MESSAGE_NONE))
        return V_NAK_INVALID;
    if (begins)
        return V_GO_ON;
    enum resp_message kind = flags & OPF_SEND ? RESP_MESSAGE_SEND : RESP_MESSAGE_WRITE;
    return kind == r->message ? V_GO_ON : V_NAK_INVALID;
}

/* Is the operation one that this QP grants? (If not it is an invalid request.) */
static enum resp_verdict check_op_valid(const struct qp *qp, uint16_t flags)
{
    unsigned need = 0;
    if (qp->resp.pd == NULL)
        return V_NAK_INVALID; /* XRC: no such SRQ, or not that of the message */
    if (flags & OPF_WRITE)
        need = ACCESS_REMOTE_WRITE;
    else if (flags & OPF_READ)
        need = ACCESS_REMOTE_READ;
    else if (flags & OPF_ATOMIC)
        need = ACCESS_REMOTE_ATOMIC;
    else if (!(flags & OPF_SEND))
        return V_NAK_INVALID; /* no such opcode */
    return (qp->attr.access_flags & need) == need ? V_GO_ON : V_NAK_INVALID;
}

/*
 * Bytes of this packet against the path MTU, its place in the message, and what the RETH announced.
 */
static enum resp_verdict check_length(struct qp *qp, const struct rx_packet *p, uint16_t flags)
{
    struct responder *r = &qp->resp;
    uint32_t mtu = qp->attr.path_mtu_bytes;
    uint32_t n = p->payload_bytes;
    if (flags & OPF_READ)
        return p->h.reth.dma_len <= MAX_MESSAGE_BYTES ? V_GO_ON : V_NAK_INVALID;
    if (flags & OPF_ATOMIC)
        return p->h.atomic.va % 8 == 0 ? V_GO_ON : V_NAK_INVALID; /* IBA 9.4.5: aligned */
    if ((flags & (OPF_FIRST | OPF_MIDDLE)) ? n != mtu : n > mtu)
        return V_NAK_INVALID;
    if ((flags & OPF_LAST) && n == 0)
        return V_NAK_INVALID;
    uint32_t received = flags & (OPF_FIRST | OPF_ONLY) ? 0 : r->received;
    if (received + n > MAX_MESSAGE_BYTES)
        return V_NAK_INVALID;
    if (!(flags & OPF_WRITE))
        return V_GO_ON;
    uint32_t total = flags & (OPF_FIRST | OPF_ONLY) ? p->h.reth.dma_len : r->write_length;
    bool ends = (flags & (OPF_LAST | OPF_ONLY)) != 0;
    if (total > MAX_MESSAGE_BYTES || (ends ? received + n != total : received + n >= total))
        return V_NAK_INVALID;
    return V_GO_ON;
}

/* Replays do not count: the network may hold back a request and let go of it when the requester has
 * long had its answer and asked for more. */
enum resp_verdict responder_check_reply(struct qp *qp)
{
    uint32_t others = replay_count(&qp->resp, false, false);
    if (others >= qp->attr.max_dest_rd_atomic)
        return V_NAK_INVALID; /* more outstanding than agreed */
    if (others + replay_count(&qp->resp, false, true) < qp->resp.depth)
        return V_GO_ON;
    nic_count(qp->nic, COUNTER_resp_dropped_requests, 1);
    return V_DROP;
}

/* A receive for the message, room for the reply. Nothing is changed unless it goes on. */
static enum resp_verdict check_resource(struct qp *qp, const struct rx_packet *p, uint16_t flags)
{
    if (flags & (OPF_READ | OPF_ATOMIC))
        return responder_check_reply(qp);
    bool send_begins = (flags & OPF_SEND) && (flags & (OPF_FIRST | OPF_ONLY));
    bool write_imm = (flags & OPF_WRITE) && (flags & OPF_IMM);
    if ((!send_begins && !write_imm) || qp->recv.valid)
        return V_GO_ON;
    bool taken = qp->type == QP_TYPE_XRC_TGT ? xrc_recv_take(qp, p->h.xrc_srqn) : wq_recv_take(qp);
    return taken ? V_GO_ON : V_RNR;
}

/* Keys and bounds of what a WRITE names. Zero length: neither is looked at (IBA C9-88). */
static enum resp_verdict check_access(struct qp *qp, const struct rx_packet *p, uint16_t flags)
{
    struct responder *r = &qp->resp;
    uint8_t *addr;
    enum mem_verdict v = MEM_OK;
    if (flags & OPF_READ) {
        if (p->h.reth.dma_len != 0)
            v = mem_check(qp->nic, r->pd, p->h.reth.rkey, p->h.reth.va, p->h.reth.dma_len,
                          ACCESS_REMOTE_READ, qp->qpn, &addr);
    } else if (flags & OPF_ATOMIC) {
        v = mem_check(qp->nic, r->pd, p->h.atomic.rkey, p->h.atomic.va, 8, ACCESS_REMOTE_ATOMIC,
                      qp->qpn, &addr);
    } else if ((flags & OPF_WRITE) && (flags & (OPF_FIRST | OPF_ONLY))) {
        /* All of it at once: a WRITE that would leave its region moves not one byte. */
        if (p->h.reth.dma_len != 0)
            v = mem_check(qp->nic, r->pd, p->h.reth.rkey, p->h.reth.va, p->h.reth.dma_len,
                          ACCESS_REMOTE_WRITE, qp->qpn, &addr);
        if (v == MEM_OK) {
            r->write_va = p->h.reth.va;
            r->write_rkey = p->h.reth.rkey;
            r->write_length = p->h.reth.dma_len;
        }
    }
    return v == MEM_OK ? V_GO_ON : V_NAK_ACCESS;
}

void responder_fail_receive(struct qp *qp, enum wc_status status)
{
    if (!qp->recv.valid)
        return;
    struct nic_wc wc = {.status = status, .opcode = WC_RECV};
    wq_recv_done(qp, &wc, false);
}

static enum resp_verdict execute_send(struct qp *qp, const struct rx_packet *p, uint16_t flags)
{
    struct responder *r = &qp->resp;
    uint32_t offset = flags & (OPF_FIRST | OPF_ONLY) ? 0 : r->received;
    if ((uint64_t)offset + p->payload_bytes > qp->recv.length)
        return V_RECV_SHORT;
    /* The receives of an SRQ are of its protection domain, which need not be the QP's. */
    const struct pd *pd = qp->srq != NULL ? qp->srq->pd : r->pd;
    if (p->payload_bytes != 0 && mem_scatter_sges(qp->nic, pd, qp->recv.sge, (int)qp->recv.num_sge,
                                                  offset, p->payload, p->payload_bytes) != MEM_OK)
        return V_RECV_KEY;
    if ((opcode_info(p->h.bth.opcode)->headers & HDR_IETH) && !mw_invalidate(qp, p->h.ieth))
        return V_NAK_ACCESS;
    return V_GO_ON;
}

static enum resp_verdict execute_write(struct qp *qp, const struct rx_packet *p, uint16_t flags)
{
    struct responder *r = &qp->resp;
    uint32_t offset = flags & (OPF_FIRST | OPF_ONLY) ? 0 : r->received;
    if (p->payload_bytes == 0)
        return V_GO_ON;
    /* Again for each packet: the key may have been revoked since the first. */
    enum mem_verdict v = mem_write(qp->nic, r->pd, r->write_rkey, r->write_va + offset, p->payload,
                                   p->payload_bytes, ACCESS_REMOTE_WRITE, qp->qpn);
    return v == MEM_OK ? V_GO_ON : V_NAK_ACCESS;
}

/* Completion of the receive that a SEND or WRITE with immediate takes. IBA o9-20: whoever sees it
 * sees all that earlier WRITEs brought, since packets are executed in order. */
static void complete_receive(struct qp *qp, const struct rx_packet *p, uint16_t flags)
{
    const struct opcode_info *info = opcode_info(p->h.bth.opcode);
    struct nic_wc wc = {
        .status = WC_SUCCESS,
        .opcode = flags & OPF_SEND ? WC_RECV : WC_RECV_RDMA_WITH_IMM,
        .byte_len = qp->resp.received,
        .src_qp = qp->attr.dest_qpn,
    };
    if (info->headers & HDR_IMMDT) {
        wc.flags |= WC_WITH_IMM;
        wc.imm_or_inv = p->h.immdt;
    }
    if (info->headers & HDR_IETH) {
        wc.flags |= WC_WITH_INV;
        wc.imm_or_inv = p->h.ieth;
    }
    wq_recv_done(qp, &wc, p->h.bth.solicited);
}

static enum resp_verdict execute_message(struct qp *qp, const struct rx_packet *p, uint16_t flags)
{
    struct responder *r = &qp->resp;
    enum resp_verdict v =
        flags & OPF_SEND ? execute_send(qp, p, flags) : execute_write(qp, p, flags);
    if (v != V_GO_ON)
        return v;
    if (flags & (OPF_FIRST | OPF_ONLY)) {
        r->received = 0;
        r->message = flags & OPF_SEND ? RESP_MESSAGE_SEND : RESP_MESSAGE_WRITE;
        r->xrc_srqn = p->h.xrc_srqn;
    }
    r->received += p->payload_bytes;
    r->ack_psn = r->epsn;
    r->epsn = psn_add(r->epsn, 1);
    if (flags & (OPF_LAST | OPF_ONLY)) {
        r->msn = psn_add(r->msn, 1);
        r->message = RESP_MESSAGE_NONE;
        if ((flags & OPF_SEND) || (flags & OPF_IMM))
            complete_receive(qp, p, flags);
    }
    if (p->h.bth.ack_req)
        r->ack_due = true;
    return V_GO_ON;
}

static enum resp_verdict execute_read(struct qp *qp, const struct rx_packet *p)
{
    struct responder *r = &qp->resp;
    uint32_t mtu = qp->attr.path_mtu_bytes;
    uint32_t length = p->h.reth.dma_len;
    r->msn = psn_add(r->msn, 1);
    struct reply reply = {
        .psn = r->epsn,
        .packets = message_packets(length, mtu),
        .va = p->h.reth.va,
        .rkey = p->h.reth.rkey,
        .length = length,
        .msn = r->msn,
        .pd = r->pd,
    };
    bool queued = replay_queue(qp, &reply);
    assert(queued); /* check_resource saw to it */
    r->epsn = psn_add(r->epsn, reply.packets);
    r->ack_due = false; /* the response acknowledges what came before it */
    return V_GO_ON;
}

static enum resp_verdict execute_atomic(struct qp *qp, const struct rx_packet *p)
{
    struct responder *r = &qp->resp;
    const struct mem_atomic a = {.swap = opcode_op(p->h.bth.opcode) == OP_COMPARE_SWAP,
                                 .compare = p->h.atomic.compare,
                                 .swap_add = p->h.atomic.swap_add};
    uint64_t original;
    enum mem_verdict v =
        mem_atomic(qp->nic, r->pd, p->h.atomic.rkey, p->h.atomic.va, qp->qpn, &a, &original);
    if (v != MEM_OK)
        return v == MEM_BAD_ALIGN ? V_NAK_INVALID : V_NAK_ACCESS;
    r->msn = psn_add(r->msn, 1);
    struct reply reply = {
        .is_atomic = true, .psn = r->epsn, .packets = 1, .original = original, .msn = r->msn};
    bool queued = replay_queue(qp, &reply);
    assert(queued);
    replay_save_atomic(qp, r->epsn, p->h.bth.opcode, original);
    r->epsn = psn_add(r->epsn, 1);
    r->ack_due = false;
    return V_GO_ON;
}

static enum resp_verdict execute(struct qp *qp, const struct rx_packet *p, uint16_t flags)
{
    if (flags & OPF_READ)
        return execute_read(qp, p);
    if (flags & OPF_ATOMIC)
        return execute_atomic(qp, p);
    return execute_message(qp, p, flags);
}

static void nak(struct qp *qp, enum aeth_kind kind, uint8_t value)
{
    struct responder *r = &qp->resp;
    r->nak_due = true;
    r->nak_outstanding = true;
    r->nak_syndrome = aeth_make(kind, value);
    r->nak_psn = r->epsn;
    r->dropped_end = r->epsn;
    r->ack_due = false; /* a NAK acknowledges what came before it */
}

/* A NAK that ends the connection: the QP goes to ERR when it is out (responder_next). */
static void nak_last(struct qp *qp, enum nak_code code, enum nic_counter counter)
{
    nic_count(qp->nic, counter, 1);
    nak(qp, AETH_NAK, (uint8_t)code);
    qp->resp.failed = true;
}

/* And the host is told. */
static void nak_fatal(struct qp *qp, enum nak_code code, enum nic_counter counter,
                      enum nic_event_type event)
{
    nak_last(qp, code, counter);
    event_raise(qp->nic, &qp->events, event);
}

static void finish(struct qp *qp, enum resp_verdict v, const struct rx_packet *p)
{
    struct nic *nic = qp->nic;
    switch (v) {
    case V_GO_ON:
    case V_DROP:
        break;
    case V_DUPLICATE:
        replay_input(qp, p);
        break;
    case V_NAK_SEQUENCE:
        nic_count(nic, COUNTER_seq_nak_sent, 1);
        nak(qp, AETH_NAK, NAK_PSN_SEQUENCE);
        note_dropped(&qp->resp, p->h.bth.psn);
        break;
    case V_RNR:
        nic_count(nic, COUNTER_rnr_nak_sent, 1);
        nak(qp, AETH_RNR_NAK, qp->attr.min_rnr_timer);
        break;
    case V_NAK_INVALID:
        nak_fatal(qp, NAK_INVALID_REQUEST, COUNTER_resp_invalid_request, EVENT_QP_REQ_ERR);
        break;
    case V_NAK_ACCESS:
        nak_fatal(qp, NAK_REMOTE_ACCESS, COUNTER_resp_remote_access_errors, EVENT_QP_ACCESS_ERR);
        break;
    case V_RECV_SHORT:
        responder_fail_receive(qp, WC_LOC_LEN_ERR);
        nak_fatal(qp, NAK_INVALID_REQUEST, COUNTER_resp_invalid_request, EVENT_QP_REQ_ERR);
        break;
    case V_RECV_KEY:
        responder_fail_receive(qp, WC_LOC_PROT_ERR);
        nak_last(qp, NAK_REMOTE_OPERATIONAL, COUNTER_resp_operational_errors);
        break;
    }
}

/*
 * The expected PSN came while the NAK that missed it was still waiting to leave. What was dropped
 * behind the gap is missing as before, and only a NAK tells the peer; if nothing was, the ACK whose
 * place the NAK had taken is due.
 */
static void nak_overtaken(struct qp *qp)
{
    struct responder *r = &qp->resp;
    struct psn dropped_end = r->dropped_end;
    if (psn_before(r->epsn, dropped_end)) {
        nak(qp, AETH_NAK, NAK_PSN_SEQUENCE);
        r->dropped_end = dropped_end;
    } else if (psn_diff(r->epsn, r->ack_psn) == 1) { /* else a response is on its way */
        r->ack_due = true;
    }
}

void responder_heard(struct qp *qp)
{
    bool rtr = qp->state == QP_STATE_RTR;
    if (qp->resp.comm_est || (!rtr && !qp->resp.awaited))
        return;
    qp->resp.comm_est = true;
    event_raise(qp->nic, &qp->events, rtr ? EVENT_COMM_EST : EVENT_QP_HEARD);
}

/* XRC: the queue that the packet names says whose keys it may use. */
static void take_domain(struct qp *qp, const struct rx_packet *p, uint16_t flags)
{
    struct responder *r = &qp->resp;
    bool goes_on = (flags & (OPF_MIDDLE | OPF_LAST)) != 0;
    bool same = !goes_on || p->h.xrc_srqn == r->xrc_srqn;
    r->pd = same ? xrc_find_pd(qp, p->h.xrc_srqn) : NULL;
}

enum resp_verdict responder_execute(struct qp *qp, const struct rx_packet *p, uint16_t flags)
{
    if (flags & OPF_PLACEMENT)
        return placement_execute(qp, p, flags);
    enum resp_verdict v = check_op_valid(qp, flags);
    if (v == V_GO_ON)
        v = check_length(qp, p, flags);
    if (v == V_GO_ON)
        v = check_access(qp, p, flags);
    if (v == V_GO_ON)
        v = check_resource(qp, p, flags);
    if (v == V_GO_ON)
        v = execute(qp, p, flags);
    return v;
}

void responder_input(struct qp *qp, uint64_t now_ns, const struct rx_packet *p)
{
    (void)now_ns;
    struct responder *r = &qp->resp;
    uint16_t flags = opcode_info(p->h.bth.opcode)->flags;
    responder_heard(qp);
    if (qp->type == QP_TYPE_XRC_TGT)
        take_domain(qp, p, flags);
    bool nak_waits = r->nak_due;
    enum resp_verdict v = check_psn(qp, p);
    if (v == V_GO_ON)
        v = check_op_seq(r, flags);
    if (v == V_GO_ON)
        v = responder_execute(qp, p, flags);
    finish(qp, v, p);
    if (nak_waits && !r->nak_due)
        nak_overtaken(qp);
    if (r->ack_due || r->nak_due || r->reply_head != r->reply_tail)
        nic_qp_ready(qp);
}

/* Credits: how many receives wait (IBA 9.7.7.2); none announced with an SRQ, which is not ours
 * alone. */
static uint8_t ack_syndrome(const struct qp *qp)
{
    uint32_t posted = wq_recv_posted(qp);
    uint8_t code = posted == UINT32_MAX ? AETH_CREDITS_NONE : aeth_credit_code(posted);
    return aeth_make(AETH_ACK, code);
}

enum emit {
    EMIT_MORE, /* packet added, there may be more */
    EMIT_FULL, /* the train must go first */
    EMIT_NOTHING,
};

static enum opcode_op read_response_op(const struct reply *reply)
{
    bool first = reply->sent == reply->start_at;
    bool last = reply->sent == reply->packets - 1;
    if (first)
        return last ? OP_READ_RESP_ONLY : OP_READ_RESP_FIRST;
    return last ? OP_READ_RESP_LAST : OP_READ_RESP_MIDDLE;
}

/* The key of a READ went away between request and response. */
static void reply_abort(struct qp *qp, struct reply *reply)
{
    struct responder *r = &qp->resp;
    struct psn psn = psn_add(reply->psn, reply->sent);
    if (reply->replayed) {
        r->reply_head++; /* the answer was given once; now it is missing as if lost */
        return;
    }
    r->reply_head = r->reply_tail; /* nothing after it may be answered before it */
    nak_fatal(qp, NAK_REMOTE_ACCESS, COUNTER_resp_remote_access_errors, EVENT_QP_ACCESS_ERR);
    r->nak_psn = psn;
}

static enum emit emit_read(struct qp *qp, struct reply *reply, struct train *t)
{
    uint32_t mtu = qp->attr.path_mtu_bytes;
    uint32_t offset = reply->sent * mtu;
    uint32_t n = reply->length - offset < mtu ? reply->length - offset : mtu;
    uint8_t opcode = opcode_make(qp->service, read_response_op(reply));
    if (!train_fits(t, roce_packet_bytes(opcode, n), 1))
        return EMIT_FULL;
    if (n != 0 && mem_read(qp->nic, reply->pd, reply->rkey, reply->va + offset, n,
                           ACCESS_REMOTE_READ, qp->qpn, &t->span[t->spans]) != MEM_OK) {
        reply_abort(qp, reply);
        return EMIT_MORE;
    }
    struct train_packet *p = train_add(t, qp, opcode, psn_add(reply->psn, reply->sent), n);
    if (n != 0) {
        t->spans++;
        p->spans = 1;
    }
    if (opcode_info(opcode)->headers & HDR_AETH) {
        p->h.aeth.syndrome = ack_syndrome(qp);
        p->h.aeth.msn = reply->msn;
    }
    reply->sent++;
    if (reply->sent == reply->packets)
        qp->resp.reply_head++;
    return EMIT_MORE;
}

static enum emit emit_atomic(struct qp *qp, struct reply *reply, struct train *t)
{
    uint8_t opcode = opcode_make(qp->service, OP_ATOMIC_ACKNOWLEDGE);
    if (!train_fits(t, roce_packet_bytes(opcode, 0), 0))
        return EMIT_FULL;
    struct train_packet *p = train_add(t, qp, opcode, reply->psn, 0);
    p->h.aeth.syndrome = ack_syndrome(qp);
    p->h.aeth.msn = reply->msn;
    p->h.atomic_ack = reply->original;
    qp->resp.reply_head++;
    return EMIT_MORE;
}

/* ACK or NAK of everything before; after all replies, since it would claim that they are out. */
static enum emit emit_ack(struct qp *qp, struct train *t)
{
    struct responder *r = &qp->resp;
    if (!r->nak_due && !r->ack_due)
        return EMIT_NOTHING;
    uint8_t opcode = opcode_make(qp->service, OP_ACKNOWLEDGE);
    if (!train_fits(t, roce_packet_bytes(opcode, 0), 0))
        return EMIT_FULL;
    struct psn psn = r->nak_due ? r->nak_psn : r->ack_psn;
    struct train_packet *p = train_add(t, qp, opcode, psn, 0);
    p->h.aeth.syndrome = r->nak_due ? r->nak_syndrome : ack_syndrome(qp);
    p->h.aeth.msn = r->msn;
    r->nak_due = false;
    r->ack_due = false;
    return EMIT_MORE;
}

static enum emit emit_next(struct qp *qp, struct train *t)
{
    struct responder *r = &qp->resp;
    if (r->reply_head == r->reply_tail)
        return emit_ack(qp, t);
    struct reply *reply = &r->reply[r->reply_head & (2 * r->depth - 1)];
    return reply->is_atomic ? emit_atomic(qp, reply, t) : emit_read(qp, reply, t);
}

bool responder_hurries(const struct qp *qp)
{
    return qp->resp.nak_due || qp->resp.reply_head != qp->resp.reply_tail;
}

void responder_add_ack(struct qp *qp, struct train *t)
{
    if (!responder_hurries(qp) && (qp->state == QP_STATE_RTS || qp->state == QP_STATE_SQD))
        emit_ack(qp, t);
}

bool responder_next(struct qp *qp, uint64_t now_ns, struct train *t)
{
    (void)now_ns;
    if (qp->state != QP_STATE_RTR && qp->state != QP_STATE_RTS && qp->state != QP_STATE_SQD)
        return false;
    enum emit e;
    do {
        e = emit_next(qp, t);
    } while (e == EMIT_MORE);
    if (e == EMIT_NOTHING && qp->resp.failed)
        qp_enter_error(qp);
    return t->packets > 0;
}
