/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * villain.c: a QP of the node, in a protection domain of its own, whose peer is mad. Each packet
 * is of a kind for which the answer is known; what the QP sends, the memory behind its key, its
 * completions and its state are compared with it. All of it happens within one moment of the world.
 */
#include "villain.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "../nic/window.h"
#include "wire/aeth.h"
#include "wire/opcode.h"

enum {
    MAX_ANSWERS = 40,
    RECV_BYTES = 100, /* of each receive */
    MAX_BYTES = 8192, /* of the villain's region, as far as it is looked at */
    RD_ATOMIC = 3,
    PEER_QPN = 0x654321,
};

enum { NOTHING = -1, SOMETHING = -2 }; /* instead of a syndrome */

static struct villain {
    struct world *w;
    struct node *n;
    struct cq *cq;
    struct qp *qp;
    struct mr *mr, *recv_mr;
    struct mw *mw; /* bound to all of mr, for the QP */
    uint8_t *mem, was[MAX_BYTES];
    uint32_t bytes;
    struct psn epsn, msn;
    bool posted; /* a receive */
    uint32_t rnr_timer;
    struct {
        struct roce_headers h;
        uint32_t bytes;
    } answer[MAX_ANSWERS];
    unsigned answers;
    uint8_t payload[PATH_MTU_MAX_BYTES + 64];
} v;

static uint32_t below(uint32_t n)
{
    return tape_below(v.w->tape, n);
}

static void expect(bool ok, const char *what)
{
    if (!ok)
        world_fail(v.w, "villain: %s; %u answers, the last PSN %06x MSN %u syndrome %02x", what,
                   v.answers, v.answers == 0 ? 0 : v.answer[v.answers - 1].h.bth.psn.v,
                   v.answers == 0 ? 0 : v.answer[v.answers - 1].h.aeth.msn.v,
                   v.answers == 0 ? 0 : v.answer[v.answers - 1].h.aeth.syndrome);
}

bool villain_takes(struct world *w, const struct train *t)
{
    if (v.w != w || v.qp == NULL || t->qp != v.qp)
        return false;
    if (marks_is_own(&t->packet[0].h))
        return true; /* probes, to which it has no answer */
    for (unsigned i = 0; i < t->packets && v.answers < MAX_ANSWERS; i++) {
        v.answer[v.answers].h = t->packet[i].h;
        v.answer[v.answers++].bytes = t->packet[i].payload_bytes;
    }
    return true;
}

static struct rx_packet packet(enum opcode_op op, struct psn psn, uint32_t bytes)
{
    struct rx_packet rx = {
        .payload = v.payload,
        .payload_bytes = bytes,
        .src = v.qp->attr.path.remote,
        .dst = v.qp->attr.path.local,
        .icrc_ok = true,
    };
    rx.h.bth.opcode = opcode_make(SERVICE_RC, op);
    rx.h.bth.mig_req = true;
    rx.h.bth.pkey = PKEY_DEFAULT;
    rx.h.bth.dest_qp = v.qp->qpn;
    rx.h.bth.ack_req = true;
    rx.h.bth.psn = psn;
    rx.h.reth.va = v.mr->iova_start;
    rx.h.reth.rkey = v.mr->key;
    rx.h.reth.dma_len = bytes;
    rx.h.atomic.va = v.mr->iova_start;
    rx.h.atomic.rkey = v.mr->key;
    rx.h.atomic.swap_add = 3;
    return rx;
}

/* Gives packets to the engine as one batch, and has it send what it has to say. */
static void give(const struct rx_packet *rx, unsigned n)
{
    struct world *w = v.w;
    int index = (int)(v.n - w->node);
    v.answers = 0;
    nic_input(v.n->nic, w->now_ns, rx, n);
    while (nic_output(v.n->nic, w->now_ns, &w->source[index].sink, 8)) {
    }
}

/* Exactly one answer, of this syndrome and PSN; or none. */
static void expect_answer(int syndrome, struct psn psn, const char *what)
{
    if (syndrome == NOTHING) {
        expect(v.answers == 0, what);
        return;
    }
    const struct roce_headers *h = &v.answer[0].h;
    expect(v.answers == 1 && psn_eq(h->bth.psn, psn) && psn_eq(h->aeth.msn, v.msn), what);
    if (syndrome == SOMETHING)
        return;
    expect(opcode_op(h->bth.opcode) == OP_ACKNOWLEDGE, what);
    if (syndrome == 0)
        expect(aeth_kind(h->aeth.syndrome) == AETH_ACK, what);
    else
        expect(h->aeth.syndrome == syndrome, what);
}

static void expect_memory(const char *what)
{
    expect(memcmp(v.mem, v.was, v.bytes) == 0, what);
}

static void expect_completion(enum wc_status status, uint32_t bytes, const char *what)
{
    struct nic_wc wc;
    expect(cq_poll(v.cq, 1, &wc) == 1 && wc.status == status && wc.wr_id == 77, what);
    expect(status != WC_SUCCESS || wc.byte_len == bytes, what);
    v.posted = false;
}

static void taken(uint32_t packets, uint32_t messages)
{
    v.epsn = psn_add(v.epsn, packets);
    v.msn = psn_add(v.msn, messages);
}

static int post_recv(uint32_t bytes)
{
    struct nic_sge sge = {v.recv_mr->iova_start, bytes, v.recv_mr->key};
    struct nic_recv_wr wr = {.wr_id = 77, .sg_list = &sge, .num_sge = 1};
    int err = wq_post_recv(v.qp, &wr);
    v.posted = v.posted || err == 0;
    return err;
}

/* ---- requests that are good ---- */

static void good_write(void)
{
    uint32_t bytes = below(v.w->opt.mtu + 1);
    struct rx_packet rx = packet(OP_WRITE_ONLY, v.epsn, bytes);
    rx.h.bth.pkey = below(2) == 0 ? PKEY_DEFAULT : 0x7fff; /* IBA 10.9.3: the low 15 bits */
    if (bytes == 0)                                        /* IBA C9-88: no key is looked at */
        rx.h.reth.rkey ^= 0x55;
    give(&rx, 1);
    memcpy(v.was, v.payload, bytes);
    struct psn psn = v.epsn;
    taken(1, 1);
    expect_answer(0, psn, "a WRITE is not acknowledged");
    expect_memory("a WRITE went wrong");
}

static void good_read(void)
{
    struct rx_packet rx = packet(OP_READ_REQUEST, v.epsn, 0);
    rx.h.reth.dma_len = below(v.w->opt.mtu + 1);
    if (rx.h.reth.dma_len == 0)
        rx.h.reth.rkey ^= 0x55;
    give(&rx, 1);
    struct psn psn = v.epsn;
    taken(1, 1);
    expect_answer(SOMETHING, psn, "a READ has no answer");
    expect(v.answer[0].bytes == rx.h.reth.dma_len, "a READ has an answer of another length");
}

static void good_atomic(void)
{
    uint64_t value;
    struct rx_packet rx = packet(OP_FETCH_ADD, v.epsn, 0);
    memcpy(&value, v.was, 8);
    /* Twice, the copy in the same batch or not: executed and answered as one. */
    struct rx_packet both[2] = {rx, rx};
    bool batch = below(2) == 1;
    give(both, batch ? 2 : 1);
    struct psn psn = v.epsn;
    taken(1, 1);
    expect_answer(SOMETHING, psn, "an atomic has no answer, or two");
    expect(v.answer[0].h.atomic_ack == value, "an atomic returns something else");
    give(&rx, 1);
    expect_answer(SOMETHING, psn, "a copy of an atomic has no answer");
    expect(v.answer[0].h.atomic_ack == value, "a copy of an atomic returns something else");
    value += 3;
    memcpy(v.was, &value, 8);
    expect_memory("an atomic was executed twice");
}

static void good_send(void)
{
    struct rx_packet rx = packet(OP_SEND_ONLY, v.epsn, below(RECV_BYTES + 1));
    if (!v.posted) {
        give(&rx, 1);
        expect_answer(aeth_make(AETH_RNR_NAK, (uint8_t)v.rnr_timer), v.epsn,
                      "no receive: not the RNR NAK that is due");
        post_recv(RECV_BYTES);
    }
    give(&rx, 1);
    struct psn psn = v.epsn;
    taken(1, 1);
    expect_answer(0, psn, "a SEND is not acknowledged");
    expect_completion(WC_SUCCESS, rx.payload_bytes, "a SEND takes no receive");
    give(&rx, 1);
    expect_answer(0, psn, "a copy of a SEND is not acknowledged");
    expect(cq_poll(v.cq, 1, &(struct nic_wc){0}) == 0, "a copy of a SEND takes a receive");
}

/* Two of later PSNs, one NAK; then what was missing. */
static void gap(void)
{
    struct rx_packet rx[3] = {packet(OP_WRITE_ONLY, psn_add(v.epsn, 1), 8),
                              packet(OP_WRITE_ONLY, psn_add(v.epsn, 2), 8),
                              packet(OP_WRITE_ONLY, v.epsn, 8)};
    bool overtaken = below(2) == 1;
    if (overtaken) {
        give(rx, 3); /* the NAK had no time to leave */
        memcpy(v.was, v.payload, 8);
        taken(1, 1);
        expect_answer(aeth_make(AETH_NAK, NAK_PSN_SEQUENCE), v.epsn,
                      "what was dropped behind a gap is not asked for");
        good_write();
    } else {
        give(rx, 2);
        expect_answer(aeth_make(AETH_NAK, NAK_PSN_SEQUENCE), v.epsn, "a gap has not one NAK");
        give(&rx[2], 1);
        memcpy(v.was, v.payload, 8);
        struct psn psn = v.epsn;
        taken(1, 1);
        expect_answer(0, psn, "what was missing is not acknowledged");
    }
    expect_memory("a packet out of order was executed");
}

/* ---- requests that are wrong: the last that the QP takes ---- */

static unsigned wrong_order(struct rx_packet *rx)
{
    uint32_t mtu = v.w->opt.mtu;
    struct psn next = psn_add(v.epsn, 1);
    rx[0] = packet(OP_WRITE_FIRST, v.epsn, mtu);
    rx[0].h.reth.dma_len = mtu + 8;
    switch (below(5)) {
    case 0:
        rx[0] = packet(OP_WRITE_MIDDLE, v.epsn, mtu);
        return 1;
    case 1:
        rx[1] = packet(OP_WRITE_ONLY, next, 8);
        break;
    case 2:
        rx[1] = packet(OP_SEND_LAST, next, 8);
        break;
    case 3:
        rx[1] = packet(OP_READ_REQUEST, next, 0);
        break;
    default:
        rx[1] = packet(OP_WRITE_FIRST, next, mtu);
        break;
    }
    return 2;
}

static unsigned wrong_length(struct rx_packet *rx)
{
    uint32_t mtu = v.w->opt.mtu;
    rx[0] = packet(OP_WRITE_FIRST, v.epsn, mtu);
    rx[0].h.reth.dma_len = mtu + 8;
    switch (below(6)) {
    case 0: /* FIRST that is not full */
        rx[0].payload_bytes = mtu - 4;
        return 1;
    case 1: /* LAST of nothing */
        post_recv(mtu + RECV_BYTES);
        rx[0] = packet(OP_SEND_FIRST, v.epsn, mtu);
        rx[1] = packet(OP_SEND_LAST, psn_add(v.epsn, 1), 0);
        return 2;
    case 2: /* less than was announced */
        rx[1] = packet(OP_WRITE_LAST, psn_add(v.epsn, 1), 4);
        return 2;
    case 3: /* more */
        rx[1] = packet(OP_WRITE_LAST, psn_add(v.epsn, 1), 12);
        return 2;
    case 4:
        rx[0] = packet(OP_WRITE_ONLY, v.epsn, 8);
        rx[0].h.reth.dma_len = below(2) == 0 ? 4 : 12;
        return 1;
    default: /* more than the receive has room for */
        post_recv(RECV_BYTES);
        rx[0] = packet(OP_SEND_ONLY, v.epsn, RECV_BYTES + 4);
        return 1;
    }
}

static unsigned wrong_key(struct rx_packet *rx)
{
    static const enum opcode_op op[] = {OP_WRITE_ONLY, OP_READ_REQUEST, OP_FETCH_ADD};
    const struct region *other = &v.n->shared_region;
    rx[0] = packet(op[below(3)], v.epsn, 0);
    bool atomic = opcode_op(rx[0].h.bth.opcode) == OP_FETCH_ADD;
    rx[0].h.reth.dma_len = 8;
    rx[0].payload_bytes = opcode_op(rx[0].h.bth.opcode) == OP_WRITE_ONLY ? 8 : 0;
    switch (below(4)) {
    case 0:
        rx[0].h.reth.rkey ^= 1;
        break;
    case 1: /* of another protection domain */
        rx[0].h.reth.rkey = other->mr->key;
        rx[0].h.reth.va = other->iova;
        break;
    case 2:
        rx[0].h.reth.va += v.mr->length - 7 + (atomic ? 7 : 0);
        rx[0].h.reth.va &= atomic ? ~(uint64_t)7 : ~(uint64_t)0;
        break;
    default: /* without the right */
        rx[0].h.reth.rkey = v.recv_mr->key;
        rx[0].h.reth.va = v.recv_mr->iova_start;
        break;
    }
    rx[0].h.atomic.rkey = rx[0].h.reth.rkey;
    rx[0].h.atomic.va = rx[0].h.reth.va;
    return 1;
}

static unsigned too_many_reads(struct rx_packet *rx)
{
    for (unsigned i = 0; i <= RD_ATOMIC; i++) {
        rx[i] = packet(OP_READ_REQUEST, psn_add(v.epsn, i), 0);
        rx[i].h.reth.dma_len = 8;
    }
    return RD_ATOMIC + 1;
}

static unsigned not_granted(struct rx_packet *rx)
{
    static const enum opcode_op op[] = {OP_WRITE_ONLY, OP_READ_REQUEST, OP_FETCH_ADD};
    static const unsigned right[] = {ACCESS_REMOTE_WRITE, ACCESS_REMOTE_READ, ACCESS_REMOTE_ATOMIC};
    unsigned which = below(3);
    struct nic_qp_attr a = {.access_flags = v.qp->attr.access_flags & ~right[which]};
    expect(qp_modify(v.qp, &a, QP_ATTR_ACCESS_FLAGS) == 0, "the rights of a QP are not changed");
    rx[0] = packet(op[which], v.epsn, which == 0 ? 8 : 0);
    rx[0].h.reth.dma_len = 8;
    return 1;
}

static unsigned unaligned(struct rx_packet *rx)
{
    rx[0] = packet(OP_COMPARE_SWAP, v.epsn, 0);
    rx[0].h.atomic.va += 1 + below(7);
    return 1;
}

/* SEND with Invalidate of another domain's key; or of its own window, and then a WRITE with it. */
static unsigned invalidate(struct rx_packet *rx)
{
    post_recv(RECV_BYTES);
    rx[0] = packet(OP_SEND_ONLY_INV, v.epsn, 8);
    if (below(2) == 0) {
        rx[0].h.ieth = v.n->shared_region.mr->key;
        return 1;
    }
    rx[0].h.ieth = mw_key(v.mw);
    rx[1] = packet(OP_WRITE_ONLY, psn_add(v.epsn, 1), 8);
    rx[1].h.reth.rkey = rx[0].h.ieth;
    return 2;
}

/* A bad request, and a good one behind it in the same batch. */
static void wrong(void)
{
    static unsigned (*const make[])(struct rx_packet *) = {
        wrong_order, wrong_length, wrong_key, too_many_reads, not_granted, unaligned, invalidate};
    struct rx_packet rx[RD_ATOMIC + 3];
    uint32_t kind = below(sizeof(make) / sizeof(make[0]));
    unsigned n = make[kind](rx);
    bool access = make[kind] == wrong_key || make[kind] == invalidate;
    if (make[kind] == wrong_key && opcode_op(rx[0].h.bth.opcode) == OP_FETCH_ADD &&
        rx[0].h.atomic.va % 8 != 0)
        access = false;
    for (unsigned i = 0; i + 1 < n; i++) { /* what goes before is good */
        enum opcode_op op = opcode_op(rx[i].h.bth.opcode);
        if (op == OP_WRITE_FIRST)
            memcpy(v.was, v.payload, rx[i].payload_bytes);
        taken(1, op == OP_WRITE_FIRST || op == OP_SEND_FIRST ? 0 : 1);
    }
    rx[n] = packet(OP_WRITE_ONLY, v.epsn, 16);
    give(rx, n + 1);
    const struct roce_headers *h = &v.answer[v.answers == 0 ? 0 : v.answers - 1].h;
    expect(v.answers >= 1 && opcode_op(h->bth.opcode) == OP_ACKNOWLEDGE &&
               h->aeth.syndrome ==
                   aeth_make(AETH_NAK, access ? NAK_REMOTE_ACCESS : NAK_INVALID_REQUEST) &&
               psn_eq(h->bth.psn, v.epsn),
           "a wrong request has not the NAK that is due");
    expect(v.qp->state == QP_STATE_ERR, "after a wrong request the QP goes on");
    expect_memory("a wrong request, or one behind it, wrote something");
    uint8_t *addr;
    const struct region *shared = &v.n->shared_region;
    expect(mem_check(v.n->nic, v.n->pd, shared->mr->key, shared->iova, 1, 0, v.qp->qpn, &addr) ==
               MEM_OK,
           "a key of another domain was invalidated");
}

/* ---- the QP asks, the villain answers ---- */

static int post_send(enum wr_opcode opcode, uint32_t bytes)
{
    struct nic_sge sge = {v.recv_mr->iova_start, bytes, v.recv_mr->key};
    struct nic_send_wr wr = {
        .wr_id = 77, .opcode = opcode, .flags = WR_SIGNALED, .sg_list = &sge, .num_sge = 1};
    return wq_post_send(v.qp, &wr);
}

static void answers_wrong(void)
{
    static const struct {
        enum nak_code code;
        enum wc_status status;
    } nak[] = {
        {NAK_INVALID_REQUEST,    WC_REM_INV_REQ_ERR},
        {NAK_REMOTE_ACCESS,      WC_REM_ACCESS_ERR },
        {NAK_REMOTE_OPERATIONAL, WC_REM_OP_ERR     },
    };
    bool read = below(2) == 1;
    expect(post_send(read ? WR_RDMA_READ : WR_RDMA_WRITE, 8) == 0, "a post is refused");
    give(NULL, 0);
    expect(v.answers == 1, "a request is not sent");
    struct rx_packet rx = packet(read ? OP_READ_RESP_ONLY : OP_ACKNOWLEDGE, v.answer[0].h.bth.psn,
                                 read ? 4 + 8 * below(2) : 0);
    unsigned which = below(3);
    rx.h.aeth.syndrome = read ? aeth_make(AETH_ACK, AETH_CREDITS_NONE)
                              : aeth_make(AETH_NAK, (uint8_t)nak[which].code);
    give(&rx, 1);
    expect_completion(read ? WC_LOC_LEN_ERR : nak[which].status, 0, "a wrong answer is taken");
    expect(v.qp->state == QP_STATE_ERR, "after a wrong answer the QP goes on");
    expect_memory("an answer wrote something");
}

/* What a program may not ask. */
static void misuse(void)
{
    struct mr *mr;
    struct nic_qp_attr a = {.state = QP_STATE_SQD, .min_rnr_timer = 1};
    expect(post_send(WR_ATOMIC_FETCH_AND_ADD, 4) == -EINVAL, "an atomic of 4 bytes is taken");
    expect(mem_reg(v.n->foreign_pd, v.mem, 8, 0, ACCESS_REMOTE_WRITE, &mr) == -EINVAL,
           "a region for remote writes needs no local ones");
    expect(post_send(WR_RDMA_WRITE, 8) == 0, "a post is refused");
    give(NULL, 0);
    expect(qp_modify(v.qp, &a, QP_ATTR_STATE) == 0, "modify to SQD is refused");
    expect(qp_modify(v.qp, &a, QP_ATTR_STATE | QP_ATTR_MIN_RNR_TIMER) == -EINVAL,
           "attributes change in SQD with a request out");
}

static void connect(void)
{
    struct world *w = v.w;
    struct nic_qp_attr a = {
        .state = QP_STATE_INIT,
        .port_num = 1,
        .access_flags = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
        .path = {.local = v.n->addr, .remote = v.n->addr, .udp_sport = 0xc0ff, .hop_limit = 64},
        .path_mtu_bytes = (uint16_t)w->opt.mtu,
        .min_rnr_timer = (uint8_t)v.rnr_timer,
        .max_rd_atomic = 1,
        .max_dest_rd_atomic = RD_ATOMIC,
        .rq_psn = v.epsn.v,
        .sq_psn = (uint32_t)tape_u64(w->tape) & 0xffffff,
        .dest_qpn = PEER_QPN,
        .timeout = 0,
        .retry_cnt = 1,
    };
    a.path.remote.b[15] ^= 0x80; /* nobody's */
    expect(post_recv(RECV_BYTES) == -EINVAL, "a receive is taken in RESET");
    int err = qp_modify(v.qp, &a,
                        QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
    a.state = QP_STATE_RTR;
    err |= qp_modify(v.qp, &a,
                     QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
                         QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
    expect(post_send(WR_SEND, 8) == -EINVAL, "a send is taken in RTR");
    a.state = QP_STATE_RTS;
    err |= qp_modify(v.qp, &a,
                     QP_ATTR_STATE | QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
                         QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC);
    expect(err == 0, "a QP is not connected");
}

static void begin(struct world *w, int node)
{
    struct node *n = &w->node[node];
    const struct region *r = &n->foreign_region;
    uint8_t *mem = n->mem + r->at;
    v.w = w;
    v.n = n;
    v.mem = mem;
    v.bytes = r->bytes < MAX_BYTES ? r->bytes : MAX_BYTES;
    v.posted = false;
    v.rnr_timer = below(32);
    v.epsn = psn_make((uint32_t)tape_u64(w->tape));
    v.msn = psn_make(0);
    memcpy(v.was, mem, v.bytes);
    for (uint32_t i = 0; i < sizeof(v.payload); i++)
        v.payload[i] = (uint8_t)(i * 5 + v.epsn.v);
    struct qp_init init = {
        .type = QP_TYPE_RC, .pd = n->foreign_pd, .cap = {4, 4, 1, 1, 0}
    };
    int err = cq_create(n->nic, 16, NULL, &v.cq);
    init.send_cq = init.recv_cq = v.cq;
    err |= qp_create(n->nic, &init, &v.qp);
    err |= mem_reg(n->foreign_pd, mem, r->bytes, 0x4000,
                   ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
                       ACCESS_REMOTE_ATOMIC | ACCESS_MW_BIND,
                   &v.mr);
    err |= mw_create(n->foreign_pd, MW_TYPE_2, &v.mw);
    static uint8_t receive[PATH_MTU_MAX_BYTES + RECV_BYTES];
    err |=
        mem_reg(n->foreign_pd, receive, sizeof(receive), 0x100000, ACCESS_LOCAL_WRITE, &v.recv_mr);
    assert(err == 0);
    bool bound = window_bind(v.qp, v.mw, v.mr, 0x4000, r->bytes, ACCESS_REMOTE_WRITE);
    assert(bound);
}

/* Its events are nobody's; the region is as it left it. */
static void end(void)
{
    struct node *n = v.n;
    memcpy(n->ideal + n->foreign_region.at, v.mem, n->foreign_region.bytes);
    qp_unlink(v.qp);
    qp_free(v.qp);
    v.qp = NULL;
    cq_destroy(v.cq);
    mw_revoke(v.mw);
    mw_free(v.mw);
    mem_mr_revoke(v.mr);
    mem_mr_free(v.mr);
    mem_mr_revoke(v.recv_mr);
    mem_mr_free(v.recv_mr);
}

void villain_play(struct world *w, int node)
{
    static void (*const step[])(void) = {good_write, good_read, good_atomic, good_send, gap};
    static void (*const last[])(void) = {wrong, wrong, wrong, answers_wrong, misuse};
    begin(w, node);
    connect();
    for (uint32_t i = below(5); i > 0 && !w->failed; i--)
        step[below(5)]();
    if (!w->failed)
        last[below(5)]();
    end();
}
