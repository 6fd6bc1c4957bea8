/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_review_hostile.c: a peer with the right address that sends whatever it likes, against one
 * QP with work in both directions. Whatever comes: no assertion, no byte outside the region, every
 * WR completed once at most, at last all of them, and after each step something goes on: what is
 * in flight has a deadline, what could be sent has been sent.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/rng.h"
#include "objects.h"
#include "wire/aeth.h"
#include "wire/opcode.h"

enum {
    MEMORY = 8192,
    GUARD = 64,
    WRS = 16,
    STEPS = 400,
    WORLDS = 150,
    OUTPUT_MAX = 100000, /* trains; an engine that never ends would pass it */
};

struct hostile {
    struct objects o;
    struct rng rng;
    uint64_t now;
    uint8_t *block, *memory;
    struct mr *mr;
    struct nic_sink sink;
    uint64_t trains;
    uint64_t posted, sent, recv_posted, received;
    uint32_t calm;
};

static uint32_t draw(struct hostile *h, uint32_t n)
{
    return rng_below(&h->rng, n);
}

static bool chance(struct hostile *h, uint32_t of)
{
    return draw(h, of) == 0;
}

static void take(struct nic_sink *sink, const struct train *t)
{
    struct hostile *h = (struct hostile *)((char *)sink - offsetof(struct hostile, sink));
    unsigned sum = 0;
    assert_in_range(t->packets, 1, TRAIN_MAX_PACKETS);
    for (unsigned i = 0; i < t->packets; i++)
        for (unsigned k = 0; k < t->packet[i].spans; k++) {
            const struct span *s = &t->span[t->packet[i].first_span + k];
            for (uint32_t b = 0; b < s->bytes; b += 97)
                sum += s->addr[b];
        }
    (void)sum;
    h->trains++;
}

static void create(struct hostile *h, uint64_t world)
{
    struct objects_init in = {
        .cap = {WRS, WRS, 3, 3, 64},
          .cqe = 4096, .sq_sig_all = true
    };
    *h = (struct hostile){.sink.train = take, .now = 1000};
    rng_init(&h->rng, world);
    h->calm = (const uint32_t[]){5, 50, 500, 5000}[draw(h, 4)];
    objects_create(&h->o, &in);
    struct nic_qp_attr a = objects_attr(QP_STATE_INIT);
    assert_int_equal(qp_modify(h->o.qp, &a, INIT_MASK), 0);
    a = objects_attr(QP_STATE_RTR);
    a.path_mtu_bytes = 256;
    a.rq_psn = chance(h, 2) ? 0xfffff0 : 100;
    a.max_dest_rd_atomic = (uint8_t)(1 + draw(h, 4));
    assert_int_equal(qp_modify(h->o.qp, &a, RTR_MASK), 0);
    a = objects_attr(QP_STATE_RTS);
    a.sq_psn = chance(h, 2) ? 0xfffff0 : 100;
    a.max_rd_atomic = (uint8_t)(1 + draw(h, 3));
    a.retry_cnt = 7;
    a.rnr_retry = (uint8_t)(5 + draw(h, 3));
    assert_int_equal(qp_modify(h->o.qp, &a, RTS_MASK), 0);
    h->o.qp->req.window = h->o.qp->req.window_max = 4 + draw(h, 12);
    h->o.qp->req.read_packets = h->o.qp->req.window_max / 2;
    h->block = aligned_alloc(GUARD, MEMORY + 2 * GUARD);
    assert_non_null(h->block);
    memset(h->block, 0xee, MEMORY + 2 * GUARD);
    h->memory = h->block + GUARD;
    assert_int_equal(mem_reg(h->o.pd, h->memory, MEMORY, (uintptr_t)h->memory,
                             ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
                                 ACCESS_REMOTE_ATOMIC,
                             &h->mr),
                     0);
}

static void destroy(struct hostile *h)
{
    if (h->mr != NULL) {
        mem_mr_revoke(h->mr);
        mem_mr_free(h->mr);
    }
    objects_destroy(&h->o);
    free(h->block);
}

static void post(struct hostile *h)
{
    static const enum wr_opcode op[] = {WR_SEND,      WR_RDMA_WRITE,           WR_RDMA_READ,
                                        WR_RDMA_READ, WR_ATOMIC_FETCH_AND_ADD, WR_SEND_WITH_IMM,
                                        WR_SEND};
    enum wr_opcode opcode = op[draw(h, 7)];
    uint32_t n = opcode == WR_ATOMIC_FETCH_AND_ADD ? 8
                 : draw(h, 4) == 0                 ? draw(h, 5000)
                                                   : draw(h, 600);
    struct nic_sge sge[2] = {
        {(uintptr_t)h->memory + 8 * draw(h, 300), n / 2,     h->mr != NULL ? h->mr->key : 0},
        {(uintptr_t)h->memory + 8 * draw(h, 300), n - n / 2, h->mr != NULL ? h->mr->key : 0}
    };
    struct nic_send_wr wr = {
        .wr_id = h->posted,
        .opcode = opcode,
        .flags = chance(h, 5) ? WR_FENCE : 0,
        .sg_list = sge,
        .num_sge = 2,
        .remote_addr = 4096,
    };
    int err = wq_post_send(h->o.qp, &wr);
    assert_true(err == 0 || err == -ENOMEM);
    h->posted += err == 0;
}

static void post_recv(struct hostile *h)
{
    struct nic_sge sge = {(uintptr_t)h->memory + draw(h, 1000), 1000 + draw(h, 3000),
                          h->mr != NULL ? h->mr->key : 0};
    struct nic_recv_wr wr = {h->recv_posted, &sge, 1};
    int err = wq_post_recv(h->o.qp, &wr);
    assert_true(err == 0 || err == -ENOMEM);
    h->recv_posted += err == 0;
}

/* Something that no honest peer does; how often differs from world to world. */
static bool wild(struct hostile *h)
{
    return chance(h, h->calm);
}

static uint8_t syndrome(struct hostile *h)
{
    if (wild(h))
        return (uint8_t)draw(h, 256);
    switch (draw(h, 12)) {
    case 0:
        return aeth_make(AETH_RNR_NAK, (uint8_t)(1 + draw(h, 5)));
    case 1:
        return aeth_make(AETH_NAK, NAK_PSN_SEQUENCE);
    case 2:
        return aeth_make(AETH_ACK, AETH_CREDITS_NONE);
    default:
        return aeth_make(AETH_ACK, (uint8_t)draw(h, 31));
    }
}

static struct rx_packet packet(struct hostile *h, uint8_t op, struct psn psn, uint32_t n)
{
    static uint8_t payload[4096];
    if (wild(h))
        op = (uint8_t)draw(h, 256);
    if (wild(h))
        psn = psn_add(psn, draw(h, 100));
    if (wild(h))
        psn = psn_make((uint32_t)rng_next(&h->rng));
    if (wild(h))
        n = draw(h, 4097);
    struct rx_packet p = {.icrc_ok = true, .payload = payload};
    p.h.bth = (struct bth){.opcode = op,
                           .pkey = PKEY_DEFAULT,
                           .dest_qp = h->o.qp->qpn,
                           .ack_req = chance(h, 2),
                           .psn = psn};
    p.payload_bytes = opcode_info(op)->flags & OPF_PAYLOAD ? n : 0;
    uint64_t va = (uintptr_t)h->memory + 8 * draw(h, 100) + (wild(h) ? draw(h, 2 * MEMORY) : 0);
    uint32_t key = h->mr != NULL && !wild(h) ? h->mr->key : draw(h, UINT32_MAX);
    uint32_t len = wild(h) ? (uint32_t)rng_next(&h->rng) : draw(h, 3000);
    if (op == OP_WRITE_ONLY || op == OP_WRITE_ONLY_IMM)
        len = p.payload_bytes;
    else if (op == OP_WRITE_FIRST)
        len = 257 + len;
    p.h.reth = (struct reth){va, key, len};
    p.h.atomic = (struct atomic_eth){va, key, 1, 2};
    struct psn msn = psn_make(wild(h) ? (uint32_t)rng_next(&h->rng) : h->o.qp->req.ssn);
    p.h.aeth = (struct aeth){syndrome(h), msn};
    p.h.ieth = key;
    return p;
}

static struct rx_packet request(struct hostile *h)
{
    static const uint8_t begin[] = {OP_SEND_FIRST,   OP_SEND_ONLY,    OP_SEND_ONLY_IMM,
                                    OP_WRITE_FIRST,  OP_WRITE_ONLY,   OP_WRITE_ONLY_IMM,
                                    OP_READ_REQUEST, OP_READ_REQUEST, OP_COMPARE_SWAP,
                                    OP_FETCH_ADD,    OP_SEND_ONLY_IMM};
    const struct responder *r = &h->o.qp->resp;
    struct psn psn = r->epsn;
    uint32_t n = draw(h, 257);
    uint8_t op = begin[draw(h, sizeof(begin))];
    if (chance(h, 4)) { /* again */
        psn = psn_add(psn, -draw(h, 40) & 0xffffff);
    } else if (chance(h, 10)) { /* after a gap */
        psn = psn_add(psn, draw(h, 3));
    } else if (r->message == RESP_MESSAGE_SEND) {
        op = chance(h, 2) ? OP_SEND_LAST : OP_SEND_MIDDLE;
    } else if (r->message == RESP_MESSAGE_WRITE) {
        n = r->write_length - r->received;
        op = n > 256 ? OP_WRITE_MIDDLE : chance(h, 2) ? OP_WRITE_LAST : OP_WRITE_LAST_IMM;
    }
    if (op == OP_SEND_FIRST || op == OP_SEND_MIDDLE || op == OP_WRITE_FIRST || n > 256)
        n = 256;
    return packet(h, op, psn, n == 0 ? 1 : n);
}

static struct rx_packet response(struct hostile *h)
{
    const struct qp *qp = h->o.qp;
    const struct send_wqe *w = &qp->sq.wqe[qp->sq.head & qp->sq.mask];
    struct psn psn = psn_add(qp->req.una, chance(h, 3) ? draw(h, 6) : 0);
    if (chance(h, 8))
        psn = psn_add(psn, -draw(h, 40) & 0xffffff);
    uint8_t op = OP_ACKNOWLEDGE;
    uint32_t n = 0;
    if (qp->sq.head != qp->sq.tail && w->opcode == WR_RDMA_READ && !chance(h, 4)) {
        uint32_t at = (uint32_t)psn_diff(psn, w->first_psn) * 256;
        n = w->length - at < 256 ? w->length - at : 256;
        op = OP_READ_RESP_MIDDLE;
    } else if (qp->sq.head != qp->sq.tail && w->opcode == WR_ATOMIC_FETCH_AND_ADD &&
               !chance(h, 4)) {
        op = OP_ATOMIC_ACKNOWLEDGE;
    }
    return packet(h, op, psn, n);
}

static void input(struct hostile *h)
{
    struct rx_packet p = chance(h, 2) ? request(h) : response(h);
    nic_input(h->o.nic, h->now, &p, 1);
}

static void output(struct hostile *h)
{
    uint64_t before = h->trains;
    while (nic_output(h->o.nic, h->now, &h->sink, 1 + draw(h, 8)))
        assert_true(h->trains - before < OUTPUT_MAX);
}

static void poll(struct hostile *h)
{
    struct nic_wc wc[8];
    int n;
    while ((n = cq_poll(h->o.scq, 8, wc)) > 0)
        for (int i = 0; i < n; i++)
            assert_int_equal(wc[i].wr_id, h->sent++);
    while ((n = cq_poll(h->o.rcq, 8, wc)) > 0)
        for (int i = 0; i < n; i++)
            assert_int_equal(wc[i].wr_id, h->received++);
}

/* After output: does everything that is not finished still have something that will move it? */
static void check_going_on(struct hostile *h)
{
    struct qp *qp = h->o.qp;
    struct requester *r = &qp->req;
    if (qp->state != QP_STATE_RTS && qp->state != QP_STATE_SQD)
        return;
    assert_true(psn_diff(r->next, r->una) >= 0);
    assert_true(psn_diff(r->sent_end, r->next) >= 0);
    assert_true(psn_diff(r->number, r->sent_end) >= 0);
    assert_true(r->next_wqe - qp->sq.head <= qp->sq.tail - qp->sq.head);
    assert_true(r->rd_atomic <= qp->attr.max_rd_atomic);
    assert_true(r->window >= 1 && r->window <= r->window_max);
    if (r->rnr_wait) {
        assert_true(r->rnr_deadline_ns != 0 && nic_deadline(h->o.nic) <= r->rnr_deadline_ns);
    } else if (requester_waiting(qp)) {
        assert_false(psn_eq(r->next, r->una));
        assert_true(r->ack_deadline_ns != 0 && nic_deadline(h->o.nic) <= r->ack_deadline_ns);
    } else if (qp->state == QP_STATE_RTS) {
        assert_int_equal(qp->sq.head, qp->sq.tail);
    } else {
        assert_false(qp->sqd_pending); /* drained */
    }
    assert_true(qp->resp.reply_head == qp->resp.reply_tail);
    assert_false(qp->resp.ack_due || qp->resp.nak_due || qp->resp.failed);
}

static void step(struct hostile *h)
{
    switch (draw(h, 16)) {
    case 0:
    case 1:
        post(h);
        break;
    case 2:
    case 3:
        post_recv(h);
        break;
    case 4:
        h->now += draw(h, chance(h, 4) ? 200000000 : 2000000);
        nic_advance(h->o.nic, h->now);
        break;
    case 5:
    case 6:
        output(h);
        check_going_on(h);
        break;
    case 7:
        poll(h);
        break;
    case 8:
        if (wild(h) && h->mr != NULL) {
            mem_mr_revoke(h->mr);
            mem_mr_free(h->mr);
            h->mr = NULL;
        } else if (chance(h, 4)) {
            enum qp_state to = h->o.qp->state == QP_STATE_SQD ? QP_STATE_RTS : QP_STATE_SQD;
            objects_step(&h->o, to);
        }
        break;
    default:
        input(h);
    }
}

static void guards(const struct hostile *h)
{
    for (int i = 0; i < GUARD; i++) {
        assert_int_equal(h->block[i], 0xee);
        assert_int_equal(h->memory[MEMORY + i], 0xee);
    }
}

static void hostile(void **state)
{
    (void)state;
    uint64_t first = getenv("WORLD") != NULL ? strtoull(getenv("WORLD"), NULL, 0) : 1;
    uint64_t worlds = getenv("WORLDS") != NULL ? strtoull(getenv("WORLDS"), NULL, 0) : WORLDS;
    unsigned lived = 0;
    for (uint64_t world = first; world < first + worlds; world++) {
        struct hostile h;
        create(&h, world);
        if (worlds == 1)
            print_message("world %llu\n", (unsigned long long)world);
        for (unsigned i = 0; i < STEPS && h.o.qp->state != QP_STATE_ERR; i++) {
            step(&h);
            lived++;
        }
        objects_step(&h.o, QP_STATE_ERR);
        output(&h);
        poll(&h);
        assert_int_equal(h.sent, h.posted);
        assert_int_equal(h.received, h.recv_posted);
        guards(&h);
        destroy(&h);
    }
    print_message("%u steps a world\n", (unsigned)(lived / worlds));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hostile)};
    return cmocka_run_group_tests_name("review_hostile", tests, NULL, NULL);
}
