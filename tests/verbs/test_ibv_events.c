/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_events.c: event descriptors: readable while there is something, blocking or not as the
 * program says, one event a get, nothing left of an object that is gone.
 */
#include "fake_host.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static void nonblocking(int fd)
{
    assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

static void channel__level_triggered(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
    struct ibv_cq *a = ibv_create_cq(ctx, 1, NULL, ch, 0), *got;
    void *owner_a = fake.cq_owner, *context;
    struct ibv_cq *b = ibv_create_cq(ctx, 1, NULL, ch, 0);
    void *owner_b = fake.cq_owner;

    nonblocking(ch->fd);
    assert_false(readable(ch->fd));
    assert_int_equal(ibv_get_cq_event(ch, &got, &context), -1);
    assert_int_equal(errno, EAGAIN);
    fake.callbacks.completion(owner_b);
    fake.callbacks.completion(owner_a);
    fake.callbacks.completion(owner_b);
    struct ibv_cq *want[] = {b, a, b};
    for (unsigned i = 0; i < 3; i++) {
        assert_true(readable(ch->fd));
        assert_int_equal(ibv_get_cq_event(ch, &got, &context), 0);
        assert_ptr_equal(got, want[i]);
    }
    assert_false(readable(ch->fd));
    ibv_ack_cq_events(a, 1);
    ibv_ack_cq_events(b, 2);
    assert_int_equal(ibv_destroy_cq(a), 0);
    assert_int_equal(ibv_destroy_cq(b), 0);
    assert_int_equal(ibv_destroy_comp_channel(ch), 0);
    fake_close(ctx);
}

static void channel__destroyed_cq_leaves_nothing(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
    struct ibv_cq *a = ibv_create_cq(ctx, 1, NULL, ch, 0), *got;
    void *owner_a = fake.cq_owner, *context;
    struct ibv_cq *b = ibv_create_cq(ctx, 1, NULL, ch, 0);

    fake.callbacks.completion(owner_a);
    fake.callbacks.completion(owner_a);
    fake.callbacks.completion(fake.cq_owner);
    assert_int_equal(ibv_destroy_cq(a), 0);
    assert_int_equal(ibv_get_cq_event(ch, &got, &context), 0);
    assert_ptr_equal(got, b);
    assert_false(readable(ch->fd)); /* though the fd is a blocking one */
    ibv_ack_cq_events(b, 1);
    assert_int_equal(ibv_destroy_cq(b), 0);
    assert_int_equal(ibv_destroy_comp_channel(ch), 0);
    fake_close(ctx);
}

static void cq_without_channel__no_event(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);

    fake.callbacks.completion(fake.cq_owner);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    fake_close(ctx);
}

static void on_signal(int signo)
{
    (void)signo;
}

/* Until it was interrupted: a signal may come before it waits. */
struct interruption {
    pthread_t of;
    _Atomic bool seen;
};

static void *interrupt(void *arg)
{
    struct interruption *i = arg;

    while (!i->seen) {
        usleep(50 * 1000);
        pthread_kill(i->of, SIGUSR1);
    }
    return NULL;
}

static void get__interrupted(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct sigaction act = {.sa_handler = on_signal}; /* no SA_RESTART */
    struct ibv_async_event event;
    struct interruption i = {.of = pthread_self()};
    pthread_t other;

    assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
    assert_int_equal(pthread_create(&other, NULL, interrupt, &i), 0);
    int got = ibv_get_async_event(ctx, &event), err = errno;
    i.seen = true;
    pthread_join(other, NULL);
    assert_int_equal(got, -1);
    assert_int_equal(err, EINTR);
    fake_close(ctx);
}

struct getter {
    struct ibv_comp_channel *ch; /* or NULL: asynchronous events */
    struct ibv_context *ctx;
    int ret, err;
};

static void *get_in_thread(void *arg)
{
    struct getter *g = arg;
    struct ibv_cq *cq;
    void *context;
    struct ibv_async_event event;

    g->ret = g->ch != NULL ? ibv_get_cq_event(g->ch, &cq, &context)
                           : ibv_get_async_event(g->ctx, &event);
    g->err = errno;
    return NULL;
}

static unsigned getters_of(struct event_queue *q)
{
    pthread_mutex_lock(&q->mutex);
    unsigned n = q->getters;
    pthread_mutex_unlock(&q->mutex);
    return n;
}

/* Destroyed or closed by another thread, while some wait; one was cancelled. */
static void get__of_what_is_destroyed(void **state)
{
    (void)state;
    enum { GETTERS = 3 };

    for (unsigned round = 0; round < 4; round++) {
        struct ibv_context *ctx = fake_open();
        struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
        struct getter g[GETTERS];
        pthread_t thread[GETTERS];
        int fd = round % 2 == 0 ? ch->fd : ctx->async_fd;
        for (unsigned i = 0; i < GETTERS; i++) {
            g[i] = (struct getter){.ch = round % 2 == 0 ? ch : NULL, .ctx = ctx};
            assert_int_equal(pthread_create(&thread[i], NULL, get_in_thread, &g[i]), 0);
        }
        struct event_queue *q =
            round % 2 == 0 ? &((struct ibv_channel_obj *)ch)->queue : &obj_ctx(ctx)->async;
        while (getters_of(q) != GETTERS)
            usleep(1000);
        assert_int_equal(pthread_cancel(thread[0]), 0);
        if (round < 2)
            assert_int_equal(pthread_join(thread[0], NULL), 0);
        assert_int_equal(ibv_destroy_comp_channel(ch), 0);
        fake_close(ctx);
        assert_int_equal(fcntl(fd, F_GETFD), -1);
        for (unsigned i = round < 2 ? 1 : 0; i < GETTERS; i++)
            assert_int_equal(pthread_join(thread[i], NULL), 0);
        for (unsigned i = 1; i < GETTERS; i++) {
            assert_int_equal(g[i].ret, -1);
            assert_int_equal(g[i].err, EBADF);
        }
    }
}

static void async__each_kind(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
    struct ibv_srq_init_attr init = {
        .attr = {.max_wr = 1, .max_sge = 1}
    };
    struct ibv_srq *srq = ibv_create_srq(pd, &init);
    struct ibv_qp *qp = fake_qp(pd, cq);
    struct ibv_async_event e;
    const struct {
        enum nic_event_type type;
        void *owner;
        void *element;
    } rows[] = {
        {EVENT_CQ_ERR,              fake.cq_owner,      cq  },
        {EVENT_QP_FATAL,            fake.qp_owner,      qp  },
        {EVENT_QP_REQ_ERR,          fake.qp_owner,      qp  },
        {EVENT_QP_ACCESS_ERR,       fake.qp_owner,      qp  },
        {EVENT_COMM_EST,            fake.qp_owner,      qp  },
        {EVENT_SQ_DRAINED,          fake.qp_owner,      qp  },
        {EVENT_QP_LAST_WQE_REACHED, fake.qp_owner,      qp  },
        {EVENT_SRQ_ERR,             fake.srq_owner,     srq },
        {EVENT_SRQ_LIMIT_REACHED,   fake.srq_owner,     srq },
        {EVENT_PORT_ACTIVE,         fake.context_owner, NULL},
        {EVENT_PORT_ERR,            fake.context_owner, NULL},
        {EVENT_GID_CHANGE,          fake.context_owner, NULL},
        {EVENT_DEVICE_FATAL,        fake.context_owner, NULL},
    };
    const unsigned n = sizeof(rows) / sizeof(rows[0]);

    nonblocking(ctx->async_fd);
    for (unsigned i = 0; i < n; i++)
        fake.callbacks.async_event(rows[i].type, rows[i].owner);
    for (unsigned i = 0; i < n; i++) { /* case 79: one event a get, then EAGAIN */
        assert_true(readable(ctx->async_fd));
        assert_int_equal(ibv_get_async_event(ctx, &e), 0);
        assert_int_equal(e.event_type, rows[i].type);
        if (rows[i].element != NULL)
            assert_ptr_equal(e.element.qp, rows[i].element);
        else
            assert_int_equal(e.element.port_num, rows[i].type == EVENT_DEVICE_FATAL ? 0 : 1);
        ibv_ack_async_event(&e);
    }
    /* Each change of the link is told, in order; that the table has changed, once. */
    static const enum nic_event_type told[] = {EVENT_PORT_ERR, EVENT_GID_CHANGE, EVENT_GID_CHANGE,
                                               EVENT_PORT_ACTIVE, EVENT_PORT_ERR};
    static const enum ibv_event_type got[] = {IBV_EVENT_PORT_ERR, IBV_EVENT_GID_CHANGE,
                                              IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR};
    for (unsigned i = 0; i < sizeof(told) / sizeof(told[0]); i++)
        fake.callbacks.async_event(told[i], fake.context_owner);
    for (unsigned i = 0; i < sizeof(got) / sizeof(got[0]); i++) {
        assert_int_equal(ibv_get_async_event(ctx, &e), 0);
        assert_int_equal(e.event_type, got[i]);
        ibv_ack_async_event(&e);
    }
    assert_int_equal(ibv_get_async_event(ctx, &e), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
}

static void *ack_later(void *event)
{
    usleep(100 * 1000);
    fake.largest_poll = 1;
    ibv_ack_async_event(event);
    return NULL;
}

static void async__destroy_waits_for_ack(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
    struct ibv_qp *qp = fake_qp(pd, cq);
    struct ibv_async_event event;
    pthread_t thread;

    fake.callbacks.async_event(EVENT_COMM_EST, fake.qp_owner);
    fake.callbacks.async_event(EVENT_QP_FATAL, fake.qp_owner); /* nobody gets this one */
    assert_int_equal(ibv_get_async_event(ctx, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_COMM_EST);
    assert_int_equal(pthread_create(&thread, NULL, ack_later, &event), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(fake.largest_poll, 1);
    pthread_join(thread, NULL);
    assert_false(readable(ctx->async_fd));
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
}

static _Atomic bool cancel_in_read;

/* As a read() of the C library that is cancelled when the kernel has done with it. */
ssize_t read(int fd, void *buf, size_t n)
{
    __typeof__(read) *next = dlsym(RTLD_NEXT, "read");

    if (!atomic_exchange(&cancel_in_read, false))
        return next(fd, buf, n);
    ssize_t got = syscall(SYS_read, fd, buf, n);
    pthread_cancel(pthread_self());
    pthread_testcancel();
    return got;
}

static void *get_async(void *ctx)
{
    struct ibv_async_event event;

    ibv_get_async_event(ctx, &event);
    return NULL;
}

/* The event that it nearly got is the next one's. */
static void get__cancelled_with_the_count(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_async_event event;
    pthread_t thread;
    void *end;

    nonblocking(ctx->async_fd);
    fake.callbacks.async_event(EVENT_PORT_ERR, fake.context_owner);
    cancel_in_read = true;
    assert_int_equal(pthread_create(&thread, NULL, get_async, ctx), 0);
    assert_int_equal(pthread_join(thread, &end), 0);
    assert_ptr_equal(end, PTHREAD_CANCELED);
    assert_true(readable(ctx->async_fd));
    assert_int_equal(ibv_get_async_event(ctx, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
    ibv_ack_async_event(&event);
    assert_false(readable(ctx->async_fd));
    fake_close(ctx);
}

static int reset(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(channel__level_triggered, reset),
        cmocka_unit_test_setup(channel__destroyed_cq_leaves_nothing, reset),
        cmocka_unit_test_setup(cq_without_channel__no_event, reset),
        cmocka_unit_test_setup(get__interrupted, reset),
        cmocka_unit_test_setup(get__of_what_is_destroyed, reset),
        cmocka_unit_test_setup(get__cancelled_with_the_count, reset),
        cmocka_unit_test_setup(async__each_kind, reset),
        cmocka_unit_test_setup(async__destroy_waits_for_ack, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
