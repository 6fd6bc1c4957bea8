/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_live.c: many threads on one live device: posting, polling, creating and destroying, events,
 * forks in between. What ThreadSanitizer is run on; by itself it checks that data arrives whole and
 * that all work ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../port/private_net.h"
#include "../skips.h"
#include "endpoint.h"

enum {
    PAIRS = 3,
    ROUNDS = 150,
    MEMORY_BYTES = 512 << 10,
    MESSAGE_BYTES = 20000,
    CHURN_ROUNDS = 60,
};

static _Atomic unsigned failures;

static void check(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "test_live: %s\n", what);
        atomic_fetch_add(&failures, 1);
    }
}

static void pair_connect(struct endpoint *a, struct endpoint *b, struct endpoint_name *na,
                         struct endpoint_name *nb)
{
    endpoint_open(a, "vb_lo", MEMORY_BYTES);
    endpoint_open(b, "vb_lo", MEMORY_BYTES);
    endpoint_name(a, 0, na);
    endpoint_name(b, 0, nb);
    endpoint_connect(a, 0, nb, 1024);
    endpoint_connect(b, 0, na, 1024);
}

/* One side of a pair, a thread each: SENDs to the other while taking the other's. */
struct side {
    struct endpoint e;
    struct endpoint_name peer;
};

static void *side_main(void *arg)
{
    struct side *s = arg;
    unsigned sent = 0, done = 0, received = 0;
    for (unsigned i = 0; i < 8; i++)
        check(endpoint_post_recv(&s->e, MEMORY_BYTES / 2 + i * MESSAGE_BYTES, MESSAGE_BYTES) == 0,
              "post recv");
    while (done < ROUNDS || received < ROUNDS) {
        if (sent < ROUNDS && sent - done < 4) {
            check(endpoint_post(&s->e, WR_SEND, &s->peer, 0, MESSAGE_BYTES, WR_SIGNALED) == 0,
                  "post send");
            sent++;
        }
        struct nic_wc wc;
        int status = endpoint_wait(&s->e, &wc);
        check(status == WC_SUCCESS, "completion");
        if (status != WC_SUCCESS)
            break;
        if (wc.opcode == WC_RECV) {
            received++;
            check(wc.byte_len == MESSAGE_BYTES, "length");
            check(memcmp(s->e.memory + wc.wr_id, s->e.memory, MESSAGE_BYTES) == 0, "data");
            check(endpoint_post_recv(&s->e, wc.wr_id, MESSAGE_BYTES) == 0, "post recv");
        } else {
            done++;
        }
    }
    return NULL;
}

/* Objects come and go while others work. */
static void *churn_main(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < CHURN_ROUNDS; i++) {
        struct endpoint a, b;
        struct endpoint_name na, nb;
        struct nic_wc wc;
        pair_connect(&a, &b, &na, &nb);
        check(endpoint_post(&a, WR_RDMA_WRITE, &nb, 0, MESSAGE_BYTES, WR_SIGNALED) == 0, "post");
        /* Every other time the QPs go while the Write is under way. */
        if (i % 2 == 0)
            check(endpoint_wait(&a, &wc) == WC_SUCCESS, "write");
        endpoint_close(i % 4 < 2 ? &a : &b);
        endpoint_close(i % 4 < 2 ? &b : &a);
    }
    return NULL;
}

static void *fork_main(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 5; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        int status;
        check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "fork");
        usleep(10000);
    }
    return NULL;
}

static void live__threads_post_poll_create_destroy(void **state)
{
    (void)state;
    static struct side sides[PAIRS][2];
    pthread_t t[PAIRS * 2 + 3];
    unsigned n = 0;
    for (unsigned i = 0; i < PAIRS; i++) {
        struct endpoint_name na, nb;
        pair_connect(&sides[i][0].e, &sides[i][1].e, &na, &nb);
        sides[i][0].peer = nb;
        sides[i][1].peer = na;
        for (unsigned k = 0; k < 2; k++) {
            for (unsigned b = 0; b < MESSAGE_BYTES; b++)
                sides[i][k].e.memory[b] = (uint8_t)(b * (i + 3) >> 3);
        }
    }
    for (unsigned i = 0; i < PAIRS * 2; i++)
        assert_int_equal(pthread_create(&t[n++], NULL, side_main, &sides[i / 2][i % 2]), 0);
    assert_int_equal(pthread_create(&t[n++], NULL, churn_main, NULL), 0);
    assert_int_equal(pthread_create(&t[n++], NULL, churn_main, NULL), 0);
    assert_int_equal(pthread_create(&t[n++], NULL, fork_main, NULL), 0);
    for (unsigned i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    for (unsigned i = 0; i < PAIRS * 2; i++)
        endpoint_close(&sides[i / 2][i % 2].e);
    assert_int_equal(failures, 0);
}

static void *poll_main(void *arg)
{
    struct endpoint *e = arg;
    struct nic_wc wc;
    for (;;) {
        (void)verbena_cq_poll(e->ctx, e->cq, 1, &wc);
        pthread_testcancel();
    }
    return NULL;
}

/* A thread that is cancelled while it polls leaves no lock behind. */
static void live__cancelled_poller_leaves_nothing_locked(void **state)
{
    (void)state;
#if UNDER_ASAN
    SKIP_TEST("AddressSanitizer does not survive cancelled threads");
#endif
    struct endpoint a, b;
    struct endpoint_name na, nb;
    pair_connect(&a, &b, &na, &nb);
    for (unsigned i = 0; i < 50; i++) {
        pthread_t t;
        struct nic_wc wc;
        assert_int_equal(pthread_create(&t, NULL, poll_main, &b), 0);
        assert_int_equal(endpoint_post(&a, WR_RDMA_WRITE, &nb, 0, MESSAGE_BYTES, WR_SIGNALED), 0);
        usleep(i * 37 % 500);
        pthread_cancel(t);
        pthread_join(t, NULL);
        assert_int_equal(endpoint_wait(&a, &wc), WC_SUCCESS);
    }
    endpoint_close(&a);
    endpoint_close(&b);
}

static _Atomic unsigned completions, events;

static void on_completion(void *owner)
{
    check(owner == &completions, "owner of a CQ");
    atomic_fetch_add(&completions, 1);
}

static void on_event(enum nic_event_type type, void *owner)
{
    check(owner == &events && type == EVENT_QP_ACCESS_ERR, "event");
    atomic_fetch_add(&events, 1);
}

/* A program that arms and sleeps: the helper thread alone must bring completions. */
static void live__armed_cq_is_served_without_polling(void **state)
{
    (void)state;
    static const struct verbena_callbacks cb = {on_completion, on_event};
    struct endpoint a, b;
    struct endpoint_name na, nb;
    struct verbena_context *ctx;
    struct cq *cq;
    pair_connect(&a, &b, &na, &nb);
    assert_int_equal(verbena_open("vb_lo", &cb, NULL, &ctx), 0);
    assert_int_equal(verbena_cq_create(ctx, 16, &completions, &cq), 0);
    struct qp_init init = {
        .type = QP_TYPE_RC,
        .pd = b.pd,
        .send_cq = cq,
        .recv_cq = cq,
        .owner = &events,
        .cap = {.max_send_wr = 4, .max_recv_wr = 64, .max_recv_sge = 1}
    };
    struct qp *old = b.qp;
    struct cq *old_cq = b.cq;
    struct verbena_context *old_ctx = b.ctx;
    b.cq = cq;
    b.ctx = ctx;
    assert_int_equal(verbena_qp_create(ctx, &init, &b.qp), 0);
    struct endpoint c;
    struct endpoint_name nc;
    endpoint_open(&c, "vb_lo", MEMORY_BYTES);
    endpoint_name(&c, 0, &nc);
    endpoint_name(&b, 0, &nb);
    endpoint_connect(&b, 0, &nc, 1024);
    endpoint_connect(&c, 0, &nb, 1024);
    for (unsigned i = 0; i < 20; i++) {
        struct nic_wc wc;
        assert_int_equal(endpoint_post_recv(&b, 0, 100), 0);
        assert_int_equal(verbena_cq_arm(ctx, cq, false), 0);
        assert_int_equal(endpoint_post(&c, WR_SEND, &nb, 0, 100, 0), 0);
        for (unsigned k = 0; k < 2000 && completions <= i; k++)
            usleep(1000);
        assert_int_equal(completions, i + 1);
        assert_int_equal(endpoint_wait(&b, &wc), WC_SUCCESS);
    }
    nb.rkey ^= 1;
    assert_int_equal(endpoint_post(&c, WR_RDMA_WRITE, &nb, 0, 100, 0), 0);
    for (unsigned k = 0; k < 2000 && events == 0; k++)
        usleep(1000);
    assert_int_equal(events, 1);
    assert_int_equal(verbena_qp_destroy(ctx, b.qp), 0);
    assert_int_equal(verbena_cq_destroy(ctx, cq), 0);
    verbena_close(ctx);
    b.qp = old;
    b.cq = old_cq;
    b.ctx = old_ctx;
    endpoint_close(&a);
    endpoint_close(&b);
    endpoint_close(&c);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live__armed_cq_is_served_without_polling),
        cmocka_unit_test(live__cancelled_poller_leaves_nothing_locked),
        cmocka_unit_test(live__threads_post_poll_create_destroy),
    };
    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
