/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_queue.c: a queue pair through its states, posting and polling. wr_id of a send is its number,
 * of a receive its buffer and a bit, for a failed completion tells nothing else.
 */
#include "lab/lab_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define RECEIVE_BIT (1ull << 63)

enum { Q_KEY = 0x11bb, NOTES_BETWEEN_ASKED = 16, SLACK = 2 * NOTES_BETWEEN_ASKED };

static int fail(struct lab_queue *q, int error, const char *what)
{
    snprintf(q->message, sizeof(q->message), "%s: %s: %s", q->rig->name, what, strerror(error));
    return -error;
}

static enum ibv_qp_type type_of(enum lab_transport t)
{
    return t == LAB_RC ? IBV_QPT_RC : t == LAB_UC ? IBV_QPT_UC : IBV_QPT_UD;
}

static int make_cq(struct lab_queue *q)
{
    int entries = (int)(q->capacity + q->receives) + 1;
    if (q->events && (q->channel = ibv_create_comp_channel(q->rig->context)) == NULL)
        return fail(q, errno, "completion channel");
    if (q->channel != NULL)
        fcntl(q->channel->fd, F_SETFL, fcntl(q->channel->fd, F_GETFL) | O_NONBLOCK);
    q->cq = ibv_create_cq(q->rig->context, entries, NULL, q->channel, 0);
    return q->cq == NULL ? fail(q, errno, "completion queue") : 0;
}

static int make_srq(struct lab_queue *q)
{
    struct ibv_srq_init_attr attr = {
        .attr = {.max_wr = q->receives, .max_sge = 2}
    };
    q->srq = ibv_create_srq(q->rig->pd, &attr);
    return q->srq == NULL ? fail(q, errno, "shared receive queue") : 0;
}

static int make_qp(struct lab_queue *q)
{
    uint32_t inlined = q->inlined > LAB_NOTE_BYTES ? q->inlined : LAB_NOTE_BYTES;
    struct ibv_qp_init_attr attr = {
        .send_cq = q->cq,
        .recv_cq = q->cq,
        .srq = q->srq,
        .cap = {.max_send_wr = q->capacity,
                .max_recv_wr = q->srq != NULL ? 0 : q->receives,
                .max_send_sge = 2,
                .max_recv_sge = 2,
                .max_inline_data = inlined},
        .qp_type = q->type,
    };
    q->qp = ibv_create_qp(q->rig->pd, &attr);
    if (q->qp == NULL && q->inlined == 0) {
        attr.cap.max_inline_data = 0;
        q->qp = ibv_create_qp(q->rig->pd, &attr);
    }
    q->inlines = attr.cap.max_inline_data >= LAB_NOTE_BYTES;
    return q->qp == NULL ? fail(q, errno, "queue pair") : 0;
}

static uint8_t *note_to_receive(const struct lab_queue *q, uint32_t buffer)
{
    return q->notes + (uint64_t)(q->capacity + buffer) * LAB_NOTE_ROOM;
}

static int post_receive(struct lab_queue *q, uint32_t buffer, struct ibv_sge *sge, int sges)
{
    struct ibv_recv_wr wr = {.wr_id = RECEIVE_BIT | buffer, .sg_list = sge, .num_sge = sges}, *bad;
    uint64_t start = lab_now_ns();
    int error =
        q->srq != NULL ? ibv_post_srq_recv(q->srq, &wr, &bad) : ibv_post_recv(q->qp, &wr, &bad);
    lab_side_spent(q->side, LAB_PART_POST, start);
    return error == 0 ? 0 : fail(q, error, "ibv_post_recv");
}

static int receive_note(struct lab_queue *q, uint32_t buffer)
{
    struct ibv_sge sge = {(uintptr_t)note_to_receive(q, buffer), LAB_NOTE_ROOM, q->notes_mr->lkey};
    return post_receive(q, buffer, &sge, 1);
}

int lab_queue_receive(struct lab_queue *q, uint32_t buffer, uint8_t *bytes, uint32_t length,
                      uint32_t lkey)
{
    struct ibv_sge sge[2] = {
        {(uintptr_t)note_to_receive(q, buffer), LAB_GRH_BYTES,  q->notes_mr->lkey},
        {(uintptr_t)bytes,                            length,                    lkey},
    };
    return q->type == IBV_QPT_UD ? post_receive(q, buffer, sge, 2)
                                 : post_receive(q, buffer, sge + 1, 1);
}

static int make_notes(struct lab_queue *q)
{
    size_t bytes = (size_t)(q->capacity + q->receives) * LAB_NOTE_ROOM;
    q->sent = calloc(q->capacity, sizeof(*q->sent));
    if (q->sent == NULL || posix_memalign((void **)&q->notes, 4096, bytes) != 0)
        return fail(q, ENOMEM, "notes");
    memset(q->notes, 0, bytes);
    q->notes_mr = ibv_reg_mr(q->rig->pd, q->notes, bytes, IBV_ACCESS_LOCAL_WRITE);
    return q->notes_mr == NULL ? fail(q, errno, "ibv_reg_mr of notes") : 0;
}

static int to_init(struct lab_queue *q)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = q->rig->port,
        .qkey = Q_KEY,
        .qp_access_flags =
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    };
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    if (q->type == IBV_QPT_RC && q->rig->device.atomic_cap == IBV_ATOMIC_NONE)
        attr.qp_access_flags &= ~(unsigned)IBV_ACCESS_REMOTE_ATOMIC;
    if (q->type == IBV_QPT_UC)
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    mask |= q->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    int error = ibv_modify_qp(q->qp, &attr, mask);
    return error == 0 ? 0 : fail(q, error, "queue pair to INIT");
}

static void describe_self(struct lab_queue *q)
{
    const struct lab_rig *r = q->rig;
    uint32_t psn;
    if (getrandom(&psn, sizeof(psn), 0) != sizeof(psn))
        psn = (uint32_t)lab_now_ns();
    q->self = (struct lab_endpoint){
        .qpn = q->qp->qp_num,
        .psn = psn & 0xffffff,
        .lid = r->port_attr.lid,
        .mtu = r->port_attr.active_mtu,
        .address = (uintptr_t)r->memory,
        .rkey = r->mr->rkey,
        .length = r->memory_bytes,
        .counter = (uintptr_t)lab_rig_counter(r),
        .reads = (uint64_t)(r->device.max_qp_rd_atom > 16 ? 16 : r->device.max_qp_rd_atom),
        .gid = r->gid,
    };
}

int lab_queue_open(struct lab_queue *q, struct lab_rig *rig, struct lab_side *side,
                   const struct lab_queue_plan *plan)
{
    *q = (struct lab_queue){
        .rig = rig,
        .side = side,
        .type = type_of(plan->transport),
        .events = plan->events,
        .receives_data = plan->receives_data,
        .inlined = plan->inlined,
        /* Data and a note for each that is under way, and notes that wait to be reclaimed. */
        .capacity = 4 * plan->depth + SLACK,
        .receives = 2 * plan->depth + SLACK,
    };
    int error = make_cq(q);
    if (error == 0 && plan->shared)
        error = make_srq(q);
    if (error == 0)
        error = make_qp(q);
    if (error == 0)
        error = make_notes(q);
    if (error == 0)
        error = to_init(q);
    for (uint32_t i = 0; i < q->receives && error == 0 && !q->receives_data; i++)
        error = receive_note(q, i);
    if (error == 0)
        describe_self(q);
    return error;
}

static void fill_path(const struct lab_queue *q, struct ibv_ah_attr *ah)
{
    ah->dlid = (uint16_t)q->peer.lid;
    ah->port_num = q->rig->port;
    ah->is_global = q->rig->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    ah->grh.dgid = q->peer.gid;
    ah->grh.sgid_index = (uint8_t)q->rig->gid_index;
    ah->grh.hop_limit = 64;
}

static int to_rtr(struct lab_queue *q)
{
    uint64_t mtu = q->peer.mtu < q->self.mtu ? q->peer.mtu : q->self.mtu;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = (enum ibv_mtu)mtu,
        .dest_qp_num = (uint32_t)q->peer.qpn,
        .rq_psn = (uint32_t)q->peer.psn,
        .max_dest_rd_atomic = (uint8_t)q->self.reads,
        .min_rnr_timer = 12,
    };
    int mask = IBV_QP_STATE;
    fill_path(q, &attr.ah_attr);
    if (q->type != IBV_QPT_UD)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (q->type == IBV_QPT_RC)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    int error = ibv_modify_qp(q->qp, &attr, mask);
    return error == 0 ? 0 : fail(q, error, "queue pair to RTR");
}

static int to_rts(struct lab_queue *q)
{
    uint64_t reads = q->peer.reads < q->self.reads ? q->peer.reads : q->self.reads;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = (uint32_t)q->self.psn,
        .timeout = 16, /* 268 ms: a busy machine, too, looks that often */
        .retry_cnt = 7,
        .rnr_retry = 7,
        .max_rd_atomic = (uint8_t)reads,
    };
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (q->type == IBV_QPT_RC)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    int error = ibv_modify_qp(q->qp, &attr, mask);
    return error == 0 ? 0 : fail(q, error, "queue pair to RTS");
}

int lab_queue_connect(struct lab_queue *q, const struct lab_endpoint *peer)
{
    q->peer = *peer;
    if (q->type == IBV_QPT_UD) {
        struct ibv_ah_attr attr = {0};
        fill_path(q, &attr);
        q->ah = ibv_create_ah(q->rig->pd, &attr);
        if (q->ah == NULL)
            return fail(q, errno, "address handle");
    }
    int error = to_rtr(q);
    return error == 0 ? to_rts(q) : error;
}

void lab_queue_close(struct lab_queue *q)
{
    if (q->rig == NULL)
        return;
    if (q->qp != NULL)
        ibv_destroy_qp(q->qp);
    if (q->srq != NULL)
        ibv_destroy_srq(q->srq);
    if (q->ah != NULL)
        ibv_destroy_ah(q->ah);
    if (q->cq != NULL) {
        if (q->events_unacked > 0)
            ibv_ack_cq_events(q->cq, q->events_unacked);
        ibv_destroy_cq(q->cq);
    }
    if (q->channel != NULL)
        ibv_destroy_comp_channel(q->channel);
    if (q->notes_mr != NULL)
        ibv_dereg_mr(q->notes_mr);
    free(q->notes);
    free(q->sent);
    *q = (struct lab_queue){0};
}

bool lab_queue_has_room(const struct lab_queue *q, uint32_t n)
{
    return q->posted - q->reclaimed + n <= q->capacity;
}

int lab_queue_post(struct lab_queue *q, struct ibv_send_wr *wr, uint64_t sequence, bool ask)
{
    struct ibv_send_wr *bad;
    if (!lab_queue_has_room(q, 1))
        return fail(q, ENOMEM, "send queue");
    wr->wr_id = q->posted;
    if (ask)
        wr->send_flags |= IBV_SEND_SIGNALED;
    if (q->type == IBV_QPT_UD) {
        wr->wr.ud.ah = q->ah;
        wr->wr.ud.remote_qpn = (uint32_t)q->peer.qpn;
        wr->wr.ud.remote_qkey = Q_KEY;
    }
    uint64_t start = lab_now_ns();
    int error = ibv_post_send(q->qp, wr, &bad);
    lab_side_spent(q->side, LAB_PART_POST, start);
    if (error != 0)
        return fail(q, error, "ibv_post_send");
    q->sent[q->posted++ % q->capacity].sequence = sequence;
    return 0;
}

/* Bytes that fit into a note's room, from the ring of notes. */
static int post_note(struct lab_queue *q, const void *note, uint32_t n, bool ask)
{
    uint8_t *bytes = q->notes + q->posted % q->capacity * LAB_NOTE_ROOM;
    struct ibv_sge sge = {(uintptr_t)bytes, n, q->notes_mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    memcpy(bytes, note, n);
    if (q->inlines && n <= LAB_NOTE_BYTES)
        wr.send_flags = IBV_SEND_INLINE;
    return lab_queue_post(q, &wr, LAB_NO_SEQUENCE, ask);
}

int lab_queue_note(struct lab_queue *q, enum lab_note_kind kind, uint64_t sequence, uint32_t length)
{
    struct lab_note note = {kind, length, sequence};
    bool ask = ++q->notes_unasked == NOTES_BETWEEN_ASKED;
    if (ask)
        q->notes_unasked = 0;
    return post_note(q, &note, sizeof(note), ask);
}

int lab_queue_tell_memory(struct lab_queue *q)
{
    struct lab_memory_note note = {q->self.address, q->self.length, q->self.counter, q->self.rkey};
    return post_note(q, &note, sizeof(note), false);
}

int lab_queue_learn_memory(struct lab_queue *q, int control_fd, uint64_t timeout_ns)
{
    uint64_t deadline = lab_now_ns() + timeout_ns;
    struct lab_memory_note note;
    struct ibv_wc wc;
    int n;
    while ((n = ibv_poll_cq(q->cq, 1, &wc)) == 0) {
        struct pollfd p = {.fd = control_fd, .events = POLLRDHUP};
        if (lab_now_ns() > deadline)
            return fail(q, ETIMEDOUT, "the peer's memory");
        if (poll(&p, 1, 1) > 0)
            return fail(q, ECONNRESET, "the peer's memory");
    }
    if (n < 0 || wc.status != IBV_WC_SUCCESS || wc.byte_len != sizeof(note))
        return fail(q, EPROTO, "the peer's memory");
    memcpy(&note, note_to_receive(q, (uint32_t)(wc.wr_id & ~RECEIVE_BIT)), sizeof(note));
    q->peer.address = note.address;
    q->peer.length = note.length;
    q->peer.counter = note.counter;
    q->peer.rkey = (uint32_t)note.rkey;
    return receive_note(q, (uint32_t)(wc.wr_id & ~RECEIVE_BIT));
}

static int take_receive(struct lab_queue *q, const struct ibv_wc *wc, struct lab_done *done)
{
    uint32_t grh = q->type == IBV_QPT_UD ? LAB_GRH_BYTES : 0;
    *done = (struct lab_done){
        .kind = LAB_DONE_RECEIVE,
        .buffer = (uint32_t)(wc->wr_id & ~RECEIVE_BIT),
        .bytes = wc->byte_len - grh,
        .with_imm = (wc->wc_flags & IBV_WC_WITH_IMM) != 0,
        .imm = (wc->wc_flags & IBV_WC_WITH_IMM) != 0 ? be32toh(wc->imm_data) : 0,
    };
    if (q->receives_data)
        return 1;
    if (!done->with_imm) {
        done->kind = LAB_DONE_NOTE;
        memcpy(&done->note, note_to_receive(q, done->buffer) + grh, sizeof(done->note));
        if (done->bytes != sizeof(done->note))
            return fail(q, EPROTO, "a note of another length");
    }
    int error = receive_note(q, done->buffer);
    return error == 0 ? 1 : error;
}

/* Data that is done, one a call, up to batch_end; its notes are only counted. */
static bool take_sent(struct lab_queue *q, struct lab_done *done)
{
    while (q->reclaimed < q->batch_end) {
        uint64_t sequence = q->sent[q->reclaimed++ % q->capacity].sequence;
        if (sequence == LAB_NO_SEQUENCE)
            continue;
        *done = (struct lab_done){
            .kind = LAB_DONE_DATA, .sequence = sequence, .asked = q->reclaimed == q->batch_end};
        return true;
    }
    return false;
}

static int fail_completion(struct lab_queue *q, const struct ibv_wc *wc)
{
    snprintf(q->message, sizeof(q->message), "%s: a %s failed: %s (vendor code 0x%x)", q->rig->name,
             (wc->wr_id & RECEIVE_BIT) != 0 ? "receive" : "send request",
             ibv_wc_status_str(wc->status), wc->vendor_err);
    return -EIO;
}

int lab_queue_poll(struct lab_queue *q, struct lab_done *done)
{
    for (;;) {
        if (take_sent(q, done))
            return 1;
        if (q->wc_next == q->wc_count) {
            uint64_t start = lab_now_ns();
            int n = ibv_poll_cq(q->cq, LAB_POLL_BATCH, q->wc);
            lab_side_spent(q->side, LAB_PART_POLL, start);
            q->side->polls++;
            q->side->empty_polls += n == 0;
            if (n < 0)
                return fail(q, -n, "ibv_poll_cq");
            q->wc_next = 0;
            q->wc_count = (unsigned)n;
            if (n == 0)
                return 0;
        }
        const struct ibv_wc *wc = &q->wc[q->wc_next++];
        if (wc->status != IBV_WC_SUCCESS)
            return fail_completion(q, wc);
        if ((wc->wr_id & RECEIVE_BIT) != 0)
            return take_receive(q, wc, done);
        q->batch_end = wc->wr_id + 1;
    }
}

/* 1: the CQ has something already. */
static int arm(struct lab_queue *q)
{
    int error = ibv_req_notify_cq(q->cq, 0);
    if (error != 0)
        return fail(q, error, "ibv_req_notify_cq");
    int n = ibv_poll_cq(q->cq, LAB_POLL_BATCH, q->wc);
    if (n < 0)
        return fail(q, -n, "ibv_poll_cq");
    q->wc_next = 0;
    q->wc_count = (unsigned)n;
    return n > 0;
}

int lab_queue_sleep(struct lab_queue *q, int control_fd)
{
    int n = arm(q);
    if (n != 0)
        return n < 0 ? n : 0;
    struct pollfd p[2] = {
        {.fd = q->channel->fd, .events = POLLIN},
        {.fd = control_fd,     .events = POLLIN}
    };
    uint64_t start = lab_now_ns();
    poll(p, 2, 50);
    lab_side_spent(q->side, LAB_PART_POLL, start);
    q->side->wakes++;
    struct ibv_cq *cq;
    void *context;
    while (ibv_get_cq_event(q->channel, &cq, &context) == 0) {
        if (++q->events_unacked == 1024) {
            ibv_ack_cq_events(q->cq, q->events_unacked);
            q->events_unacked = 0;
        }
    }
    return 0;
}
