/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_live_threads.c: threads that share objects: posting to one QP, polling one CQ, waiting for
 * one channel's events, creating and destroying beside traffic on the same PD, CQ and SRQ.
 *
 * A thread that finds something wrong says what and where, and the test fails when all have ended.
 */
#include "live_rig.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    POSTERS = 4,
    POLLERS = 2,
    EACH = 400,       /* work requests of one poster */
    CHUNK = 256,      /* bytes of one */
    MAKERS = 3,       /* threads that create and destroy */
    ROUNDS = 40,      /* of one maker */
    ROUND_SLOTS = 32, /* of a poster, in the buffer */
    OWN_BYTES = 4096,
};

static _Atomic unsigned wrong;

/* In a thread: what cmocka's asserts are in a test. */
#define EXPECT(what)                                                                               \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            if (atomic_fetch_add(&wrong, 1) < 10)                                                  \
                fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #what, errno);       \
            return NULL;                                                                           \
        }                                                                                          \
    } while (0)

struct crew {
    struct rig r;
    struct ibv_srq *srq;
    _Atomic unsigned posted[POSTERS], completed[POSTERS];
    _Atomic unsigned received[POSTERS * EACH];
    _Atomic unsigned receives, ended, events;
    _Atomic bool stop;
};

struct member {
    struct crew *crew;
    unsigned number;
};

static struct crew crew;
static struct member members[POSTERS];

static void crew_open(void)
{
    memset(&crew, 0, sizeof(crew));
    atomic_store(&wrong, 0);
    for (unsigned i = 0; i < POSTERS; i++)
        members[i] = (struct member){&crew, i};
}

static void run_all(void *(*const *what)(void *), unsigned n, void *(*more)(void *), unsigned m)
{
    pthread_t t[16];
    assert_true(n + m <= 16);
    for (unsigned i = 0; i < n + m; i++)
        assert_int_equal(pthread_create(&t[i], NULL, i < n ? what[i] : more, &members[i % POSTERS]),
                         0);
    for (unsigned i = 0; i < n + m; i++)
        assert_int_equal(pthread_join(t[i], NULL), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

/* Bytes that only this WRITE has. */
static void fill(uint8_t *at, unsigned who, unsigned n)
{
    for (unsigned i = 0; i < CHUNK; i++)
        at[i] = (uint8_t)(who * 61 + n * 7 + i);
}

static int post(struct crew *c, struct ibv_qp *qp, enum ibv_wr_opcode op, unsigned who, unsigned n)
{
    size_t from = (who * ROUND_SLOTS + n % ROUND_SLOTS) * CHUNK;
    struct ibv_sge sge = rig_sge(&c->r, from, CHUNK);
    struct ibv_send_wr wr =
                           {
                               .wr_id = (uint64_t)who << 32 | n,
                               .opcode = op,
                               .send_flags = IBV_SEND_SIGNALED,
                               .sg_list = &sge,
                               .num_sge = 1,
                               .imm_data = who * EACH + n,
                               .wr.rdma = {.remote_addr =
                                               (uintptr_t)c->r.buf + RIG_BYTES / 2 + from,
                                           .rkey = c->r.mr->rkey}
    },
                       *bad;

    return ibv_post_send(qp, &wr, &bad);
}

/* Of a poster: no more than it has room for are out; a full queue is no error. */
static void *post_writes(void *arg)
{
    const struct member *me = arg;
    struct crew *c = me->crew;
    for (unsigned n = 0; n < EACH && atomic_load(&wrong) == 0;) {
        if (n - atomic_load(&c->completed[me->number]) >= ROUND_SLOTS) {
            sched_yield();
            continue;
        }
        fill(c->r.buf + (me->number * ROUND_SLOTS + n % ROUND_SLOTS) * CHUNK, me->number, n);
        int err = post(c, c->r.qp[0], IBV_WR_RDMA_WRITE, me->number, n);
        EXPECT(err == 0 || err == ENOMEM);
        if (err == 0)
            n++;
        else
            sched_yield();
    }
    return NULL;
}

static unsigned completed_all(struct crew *c)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < POSTERS; i++)
        sum += atomic_load(&c->completed[i]);
    return sum;
}

/* One poller's completions of a poster come in the order of its posts; all together once each. */
static void *poll_writes(void *arg)
{
    struct crew *c = ((const struct member *)arg)->crew;
    int64_t last[POSTERS] = {-1, -1, -1, -1};
    while (completed_all(c) < POSTERS * EACH && atomic_load(&wrong) == 0) {
        struct ibv_wc wc[3];
        int n = ibv_poll_cq(c->r.cq, 3, wc);
        EXPECT(n >= 0);
        for (int i = 0; i < n; i++) {
            unsigned who = (unsigned)(wc[i].wr_id >> 32);
            uint32_t number = (uint32_t)wc[i].wr_id;
            size_t at = (who * ROUND_SLOTS + number % ROUND_SLOTS) * CHUNK;
            EXPECT(wc[i].status == IBV_WC_SUCCESS && who < POSTERS);
            EXPECT((int64_t)number > last[who]);
            EXPECT(memcmp(c->r.buf + at, c->r.buf + RIG_BYTES / 2 + at, CHUNK) == 0);
            last[who] = number;
            atomic_fetch_add(&c->completed[who], 1);
        }
        if (n == 0)
            sched_yield();
    }
    return NULL;
}

static void threads__one_qp_one_cq(void **state)
{
    (void)state;
    static void *(*const posters[])(void *) = {post_writes, post_writes, post_writes, post_writes};
    crew_open();
    rig_connect(&crew.r);
    run_all(posters, POSTERS, poll_writes, POLLERS);
    for (unsigned i = 0; i < POSTERS; i++)
        assert_int_equal(crew.completed[i], EACH);
    rig_close(&crew.r);
}

/* Two pairs of QPs: two posters each, one SRQ, which two threads fill; all completions in one CQ.
 */
static void *post_sends(void *arg)
{
    const struct member *me = arg;
    struct crew *c = me->crew;
    for (unsigned n = 0; n < EACH && atomic_load(&wrong) == 0;) {
        int err = post(c, c->r.qp[me->number % 2], IBV_WR_SEND_WITH_IMM, me->number, n);
        EXPECT(err == 0 || err == ENOMEM);
        if (err == 0)
            n++;
        else
            sched_yield();
    }
    return NULL;
}

static void *post_receives(void *arg)
{
    struct crew *c = ((const struct member *)arg)->crew;
    while (atomic_load(&c->receives) < POSTERS * EACH && atomic_load(&wrong) == 0) {
        struct ibv_sge sge = rig_sge(&c->r, RIG_BYTES / 2, CHUNK);
        struct ibv_recv_wr wr = {.wr_id = UINT64_MAX, .sg_list = &sge, .num_sge = 1}, *bad;
        int err = ibv_post_srq_recv(c->srq, &wr, &bad);
        EXPECT(err == 0 || err == ENOMEM);
        if (err != 0)
            sched_yield();
    }
    return NULL;
}

static void *poll_sends(void *arg)
{
    struct crew *c = ((const struct member *)arg)->crew;
    while ((completed_all(c) < POSTERS * EACH || atomic_load(&c->receives) < POSTERS * EACH) &&
           atomic_load(&wrong) == 0) {
        struct ibv_wc wc;
        int n = ibv_poll_cq(c->r.cq, 1, &wc);
        EXPECT(n >= 0);
        if (n == 0) {
            sched_yield();
            continue;
        }
        EXPECT(wc.status == IBV_WC_SUCCESS);
        if ((wc.opcode & IBV_WC_RECV) == 0) {
            atomic_fetch_add(&c->completed[wc.wr_id >> 32], 1);
            continue;
        }
        EXPECT(wc.imm_data < POSTERS * EACH);
        EXPECT(atomic_fetch_add(&c->received[wc.imm_data], 1) == 0);
        atomic_fetch_add(&c->receives, 1);
    }
    return NULL;
}

static void srq_connect(struct crew *c)
{
    struct ibv_srq_init_attr attr = {
        .attr = {.max_wr = 32, .max_sge = 1}
    };
    rig_open(&c->r);
    c->srq = ibv_create_srq(c->r.pd, &attr);
    assert_non_null(c->srq);
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_init_attr init = rig_qp_init(&c->r);
        init.srq = c->srq;
        c->r.qp[i] = ibv_create_qp(c->r.pd, &init);
        assert_non_null(c->r.qp[i]);
        assert_int_equal(rig_to_init(c->r.qp[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_attr rtr = rig_rtr_attr(&c->r, c->r.qp[1 - i]->qp_num);
        struct ibv_qp_attr rts = rig_rts_attr();
        rtr.min_rnr_timer = 1;
        assert_int_equal(ibv_modify_qp(c->r.qp[i], &rtr, rig_rtr_mask), 0);
        assert_int_equal(ibv_modify_qp(c->r.qp[i], &rts, rig_rts_mask), 0);
    }
}

static void threads__one_srq(void **state)
{
    (void)state;
    static void *(*const posters[])(void *) = {post_sends, post_sends,    post_sends,
                                               post_sends, post_receives, post_receives};
    crew_open();
    srq_connect(&crew);
    run_all(posters, 6, poll_sends, POLLERS);
    for (unsigned i = 0; i < POSTERS * EACH; i++)
        assert_int_equal(crew.received[i], 1);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(ibv_destroy_qp(crew.r.qp[i]), 0);
    crew.r.qp[0] = crew.r.qp[1] = NULL;
    assert_int_equal(ibv_destroy_srq(crew.srq), 0);
    rig_close(&crew.r);
}

/* What a maker has for a round, on the PD and device that all share. */
struct own {
    struct ibv_mr *mr;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct ibv_ah *ah;
    struct ibv_mw *mw;
    uint8_t *buf;
};

static bool own_make(struct crew *c, struct own *o)
{
    struct ibv_srq_init_attr srq = {
        .attr = {.max_wr = 4, .max_sge = 1}
    };
    struct ibv_qp_attr rtr, rts = rig_rts_attr();
    o->buf = calloc(1, OWN_BYTES);
    if (o->buf == NULL)
        return false;
    o->mr =
        ibv_reg_mr(c->r.pd, o->buf, OWN_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    o->cq = ibv_create_cq(c->r.ctx, 8, NULL, NULL, 0);
    o->srq = ibv_create_srq(c->r.pd, &srq);
    rtr = rig_rtr_attr(&c->r, 0);
    o->ah = ibv_create_ah(c->r.pd, &rtr.ah_attr);
    o->mw = ibv_alloc_mw(c->r.pd, IBV_MW_TYPE_1);
    if (o->mr == NULL || o->cq == NULL || o->srq == NULL || o->ah == NULL || o->mw == NULL)
        return false;
    struct ibv_qp_init_attr init = rig_qp_init(&c->r);
    init.send_cq = o->cq;
    init.srq = o->srq;
    o->qp = ibv_create_qp(c->r.pd, &init); /* what it receives goes to the CQ of all */
    if (o->qp == NULL || rig_to_init(o->qp) != 0)
        return false;
    rtr.dest_qp_num = o->qp->qp_num;
    return ibv_modify_qp(o->qp, &rtr, rig_rtr_mask) == 0 &&
           ibv_modify_qp(o->qp, &rts, rig_rts_mask) == 0;
}

static bool own_unmake(struct own *o)
{
    int err = ibv_destroy_qp(o->qp);
    err |= ibv_destroy_srq(o->srq);
    err |= ibv_destroy_cq(o->cq);
    err |= ibv_dealloc_mw(o->mw);
    err |= ibv_destroy_ah(o->ah);
    err |= ibv_dereg_mr(o->mr);
    free(o->buf);
    return err == 0;
}

/* A WRITE of the first half of its memory to the second. */
static bool own_write(struct own *o, unsigned number)
{
    struct ibv_sge sge = {(uintptr_t)o->buf, OWN_BYTES / 2, o->mr->lkey};
    struct ibv_send_wr wr =
                           {
                               .wr_id = number,
                               .opcode = IBV_WR_RDMA_WRITE,
                               .send_flags = IBV_SEND_SIGNALED,
                               .sg_list = &sge,
                               .num_sge = 1,
                               .wr.rdma = {(uintptr_t)o->buf + OWN_BYTES / 2, o->mr->rkey}
    },
                       *bad;
    struct ibv_wc wc;
    int n;
    memset(o->buf, (int)number | 1, OWN_BYTES / 2);
    if (ibv_post_send(o->qp, &wr, &bad) != 0)
        return false;
    while ((n = ibv_poll_cq(o->cq, 1, &wc)) == 0)
        sched_yield();
    return n == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == number &&
           memcmp(o->buf, o->buf + OWN_BYTES / 2, OWN_BYTES / 2) == 0;
}

static void *make_and_destroy(void *arg)
{
    const struct member *me = arg;
    for (unsigned i = 0; i < ROUNDS && atomic_load(&wrong) == 0; i++) {
        struct own o = {0};
        EXPECT(own_make(me->crew, &o));
        EXPECT(own_write(&o, me->number << 16 | i));
        EXPECT(own_unmake(&o));
    }
    return NULL;
}

static void threads__create_beside_traffic(void **state)
{
    (void)state;
    static void *(*const all[])(void *) = {post_writes,      post_writes,     post_writes,
                                           post_writes,      poll_writes,     make_and_destroy,
                                           make_and_destroy, make_and_destroy};
    crew_open();
    rig_connect(&crew.r);
    run_all(all, 8, poll_writes, 1);
    for (unsigned i = 0; i < POSTERS; i++)
        assert_int_equal(crew.completed[i], EACH);
    rig_close(&crew.r);
}

/* Queries, resizing and arming of the very objects that carry the traffic. */
static void *look_and_change(void *arg)
{
    struct crew *c = ((const struct member *)arg)->crew;
    for (unsigned i = 0; completed_all(c) < POSTERS * EACH && atomic_load(&wrong) == 0; i++) {
        struct ibv_qp_attr attr;
        struct ibv_qp_init_attr init;
        struct ibv_port_attr port;
        EXPECT(ibv_query_qp(c->r.qp[0], &attr, IBV_QP_STATE | IBV_QP_CAP, &init) == 0);
        EXPECT(attr.qp_state == IBV_QPS_RTS);
        EXPECT(ibv_query_port(c->r.ctx, 1, &port) == 0);
        attr = (struct ibv_qp_attr){.qp_access_flags =
                                        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
        EXPECT(ibv_modify_qp(c->r.qp[0], &attr, IBV_QP_ACCESS_FLAGS) == 0);
        EXPECT(ibv_resize_cq(c->r.cq, i % 2 ? 64 : 200) == 0);
        EXPECT(ibv_req_notify_cq(c->r.cq, 0) == 0);
    }
    return NULL;
}

static void threads__change_under_traffic(void **state)
{
    (void)state;
    static void *(*const all[])(void *) = {post_writes, post_writes,     post_writes,
                                           post_writes, look_and_change, look_and_change};
    crew_open();
    rig_connect(&crew.r);
    run_all(all, 6, poll_writes, POLLERS);
    rig_close(&crew.r);
}

/* Each event goes to one of those that wait; they poll, arm again, and the last one wakes the
 * others by one WRITE each. */
static void *wait_for_events(void *arg)
{
    const struct member *me = arg;
    struct crew *c = me->crew;
    while (atomic_load(&wrong) == 0) {
        struct ibv_cq *cq;
        void *context;
        struct ibv_wc wc;
        EXPECT(ibv_get_cq_event(c->r.channel, &cq, &context) == 0);
        EXPECT(cq == c->r.cq && context == &c->r);
        atomic_fetch_add(&c->events, 1);
        ibv_ack_cq_events(cq, 1);
        EXPECT(ibv_req_notify_cq(cq, 0) == 0);
        while (ibv_poll_cq(cq, 1, &wc) == 1) {
            EXPECT(wc.status == IBV_WC_SUCCESS);
            atomic_fetch_add(&c->completed[wc.wr_id >> 32], 1);
        }
        if (completed_all(c) < POSTERS * EACH)
            continue;
        if (atomic_fetch_add(&c->ended, 1) + 1 < POLLERS)
            EXPECT(post(c, c->r.qp[0], IBV_WR_RDMA_WRITE, 0, 0) == 0);
        break;
    }
    return NULL;
}

static void threads__one_channel(void **state)
{
    (void)state;
    static void *(*const posters[])(void *) = {post_writes, post_writes, post_writes, post_writes};
    struct ibv_wc wc;
    crew_open();
    rig_connect(&crew.r);
    assert_int_equal(ibv_req_notify_cq(crew.r.cq, 0), 0);
    run_all(posters, POSTERS, wait_for_events, POLLERS);
    assert_true(crew.events >= POLLERS);
    while (ibv_poll_cq(crew.r.cq, 1, &wc) == 1)
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
    rig_close(&crew.r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads__one_qp_one_cq),
        cmocka_unit_test(threads__one_srq),
        cmocka_unit_test(threads__create_beside_traffic),
        cmocka_unit_test(threads__change_under_traffic),
        cmocka_unit_test(threads__one_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
