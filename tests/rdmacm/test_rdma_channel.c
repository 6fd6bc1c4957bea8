/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_channel.c: event descriptors: readable while there is something, blocking or not as the
 * program says, one event a get, nothing left of an id that is gone.
 */
#include "cm_rig.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rdmacm/rdmacm_newer.h"

enum { USER = NEWER_EVENT_USER };

static void write_user(struct rdma_cm_id *id, int status)
{
    assert_int_equal(rdma_write_cm_event(id, (enum rdma_cm_event_type)USER, status, 5), 0);
}

static void nonblocking(int fd)
{
    assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

static void get__level_triggered(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = rig_id(ch, RDMA_PS_TCP);
    struct rdma_cm_event *e;

    nonblocking(ch->fd);
    rig_expect_none(ch);
    assert_int_equal(rdma_get_cm_event(ch, &e), -1);
    assert_int_equal(errno, EAGAIN);
    write_user(id, 1);
    write_user(id, 2);
    for (int i = 1; i <= 2; i++) {
        assert_true(rig_readable(ch->fd));
        assert_int_equal(rdma_get_cm_event(ch, &e), 0);
        assert_ptr_equal(e->id, id);
        assert_int_equal(e->status, i);
        assert_int_equal(((union rdma_event_param_newest *)(void *)&e->param)->arg, 5);
        assert_int_equal(rdma_ack_cm_event(e), 0);
    }
    rig_expect_none(ch);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(ch);
}

static void get__refused(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_event *e;

    assert_int_equal(rdma_get_cm_event(NULL, &e), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_get_cm_event(ch, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_ack_cm_event(NULL), -1);
    assert_int_equal(errno, EINVAL);
    rdma_destroy_event_channel(ch);
}

static void on_alarm(int number)
{
    (void)number;
}

static void get__interrupted(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_event *e;
    struct sigaction act = {.sa_handler = on_alarm}; /* without SA_RESTART */
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    struct itimerspec soon = {.it_value.tv_nsec = 20000000, .it_interval.tv_nsec = 20000000};
    timer_t timer;

    sigaction(SIGALRM, &act, NULL);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &ev, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &soon, NULL), 0);
    assert_int_equal(rdma_get_cm_event(ch, &e), -1);
    assert_int_equal(errno, EINTR);
    timer_delete(timer);
    rdma_destroy_event_channel(ch);
}

static void destroy__takes_what_nobody_got(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *a = rig_id(ch, RDMA_PS_TCP), *b = rig_id(ch, RDMA_PS_UDP);

    write_user(a, 1);
    write_user(b, 2);
    write_user(a, 3);
    assert_int_equal(rdma_destroy_id(a), 0);
    rig_expect(ch, (enum rdma_cm_event_type)USER, 2);
    rig_expect_none(ch);
    assert_int_equal(rdma_destroy_id(b), 0);
    rdma_destroy_event_channel(ch);
}

static _Atomic bool destroyed;

static void *destroy_in_thread(void *id)
{
    rdma_destroy_id(id);
    atomic_store(&destroyed, true);
    return NULL;
}

/* rc@9a0fc3afd and others: destroying waits for what was got and not acknowledged, no longer. */
static void case_94(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = rig_id(ch, RDMA_PS_TCP);
    pthread_t thread;

    write_user(id, 1);
    struct rdma_cm_event *e = rig_event(ch);
    write_user(id, 2); /* not got: not waited for */
    atomic_store(&destroyed, false);
    assert_int_equal(pthread_create(&thread, NULL, destroy_in_thread, id), 0);
    usleep(200000);
    assert_false(atomic_load(&destroyed));
    assert_int_equal(rdma_ack_cm_event(e), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(atomic_load(&destroyed));
    rdma_destroy_event_channel(ch);
}

struct getter {
    struct rdma_event_channel *ch;
    struct rdma_cm_event *event;
    int ret, err;
};

static void *get_in_thread(void *arg)
{
    struct getter *g = arg;

    g->ret = rdma_get_cm_event(g->ch, &g->event);
    g->err = errno;
    return NULL;
}

/* Who waits while another thread destroys the channel, or comes just then, is told. */
static void destroy__of_a_channel_in_use(void **state)
{
    (void)state;
    enum { GETTERS = 3 };

    for (unsigned round = 0; round < 2; round++) {
        struct rdma_event_channel *ch = rig_channel();
        struct getter g[GETTERS];
        pthread_t thread[GETTERS];
        int fd = ch->fd;
        for (unsigned i = 0; i < GETTERS; i++) {
            g[i] = (struct getter){.ch = ch};
            assert_int_equal(pthread_create(&thread[i], NULL, get_in_thread, &g[i]), 0);
        }
        if (round == 0)
            usleep(100000);
        rdma_destroy_event_channel(ch);
        for (unsigned i = 0; i < GETTERS; i++) {
            assert_int_equal(pthread_join(thread[i], NULL), 0);
            assert_int_equal(g[i].ret, -1);
            assert_int_equal(g[i].err, EBADF);
        }
        assert_int_equal(fcntl(fd, F_GETFD), -1);
    }
}

/* A thread that was cancelled in it holds nothing. */
static void destroy__of_a_channel_after_cancel(void **state)
{
    (void)state;
    struct getter g = {.ch = rig_channel()};
    pthread_t thread;
    int fd = g.ch->fd;

    assert_int_equal(pthread_create(&thread, NULL, get_in_thread, &g), 0);
    usleep(50000);
    assert_int_equal(pthread_cancel(thread), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    rdma_destroy_event_channel(g.ch);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* A thread that is cancelled while it works on an event takes neither that nor its id along: it
 * asks again where nobody listens, most of 63 ms in a call that can be cancelled. */
static void cancel__loses_no_event(void **state)
{
    (void)state;
    enum { NOBODY = 4799, NOT_LISTENED_FOR = 8 };
    static const useconds_t after_us[] = {2000, 12000, 24000, 48000};

    for (unsigned i = 0; i < sizeof(after_us) / sizeof(after_us[0]); i++) {
        struct getter g = {.ch = rig_channel()};
        struct rdma_cm_id *id = rig_id(g.ch, RDMA_PS_TCP);
        struct rdma_conn_param param = {.qp_num = 2};
        pthread_t thread;
        rig_resolve(id, "127.0.0.1", NOBODY);
        assert_int_equal(rdma_connect(id, &param), 0);
        assert_int_equal(pthread_create(&thread, NULL, get_in_thread, &g), 0);
        usleep(after_us[i]);
        assert_int_equal(pthread_cancel(thread), 0);
        void *end;
        assert_int_equal(pthread_join(thread, &end), 0);
        if (end == PTHREAD_CANCELED)
            rig_expect(g.ch, RDMA_CM_EVENT_REJECTED, NOT_LISTENED_FOR);
        else
            rdma_ack_cm_event(g.event);
        assert_int_equal(rdma_destroy_id(id), 0);
        rdma_destroy_event_channel(g.ch);
    }
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

static void cancel__with_the_count(void **state)
{
    (void)state;
    struct getter g = {.ch = rig_channel()};
    struct rdma_cm_id *id = rig_id(g.ch, RDMA_PS_TCP);
    pthread_t thread;
    void *end;

    write_user(id, 7);
    cancel_in_read = true;
    assert_int_equal(pthread_create(&thread, NULL, get_in_thread, &g), 0);
    assert_int_equal(pthread_join(thread, &end), 0);
    assert_ptr_equal(end, PTHREAD_CANCELED);
    assert_true(rig_readable(g.ch->fd));
    rig_expect(g.ch, (enum rdma_cm_event_type)USER, 7);
    assert_false(rig_readable(g.ch->fd));
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(g.ch);
}

/* Before its ids, as programs do that end; their events have nowhere to go. */
static void destroy__of_a_channel_before_its_ids(void **state)
{
    (void)state;
    struct rig_pair p;
    struct rdma_cm_event *e;

    rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, true);
    rig_pair_connect(&p);
    struct rdma_cm_id *asking = rig_id(p.client_ch, RDMA_PS_TCP);
    struct rdma_conn_param param = {.qp_num = 0x100};
    rig_resolve(asking, "127.0.0.1", p.port);
    assert_int_equal(rdma_connect(asking, &param), 0);
    for (unsigned i = 0; i < RIG_WAIT_MS && !rig_readable(p.server_ch->fd); i++)
        usleep(1000);
    rdma_destroy_event_channel(p.server_ch);
    rig_expect(p.client_ch, RDMA_CM_EVENT_REJECTED, 28); /* its request was not got */
    assert_int_equal(rdma_connect(asking, &param), -1);
    assert_int_equal(rdma_get_cm_event(p.server_ch, &e), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(rdma_disconnect(p.client), 0);
    rig_expect(p.client_ch, RDMA_CM_EVENT_DISCONNECTED, 0);
    assert_int_equal(rdma_destroy_id(asking), 0);
    p.server_ch = rig_channel(); /* for what follows */
    rig_pair_close(&p);
}

static void migrate__takes_events_along(void **state)
{
    (void)state;
    struct rdma_event_channel *from = rig_channel(), *to = rig_channel();
    struct rdma_cm_id *id = rig_id(from, RDMA_PS_TCP), *other = rig_id(from, RDMA_PS_TCP);

    write_user(id, 1);
    write_user(other, 2);
    write_user(id, 3);
    assert_int_equal(rdma_migrate_id(id, to), 0);
    assert_ptr_equal(id->channel, to);
    rig_expect(from, (enum rdma_cm_event_type)USER, 2);
    rig_expect_none(from);
    rig_expect(to, (enum rdma_cm_event_type)USER, 1);
    rig_expect(to, (enum rdma_cm_event_type)USER, 3);
    rig_expect_none(to);
    write_user(id, 4);
    rig_expect(to, (enum rdma_cm_event_type)USER, 4);
    rdma_destroy_id(id);
    rdma_destroy_id(other);
    rdma_destroy_event_channel(from);
    rdma_destroy_event_channel(to);
}

static void write__only_user_events(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = rig_id(ch, RDMA_PS_TCP);
    static const int refused[] = {-1, RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_TIMEWAIT_EXIT,
                                  NEWER_EVENT_INTERNAL, 20};

    for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_equal(rdma_write_cm_event(id, (enum rdma_cm_event_type)refused[i], 0, 0), -1);
        assert_int_equal(errno, EINVAL);
    }
    rig_expect_none(ch);
    rdma_destroy_id(id);
    rdma_destroy_event_channel(ch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(get__level_triggered),
        cmocka_unit_test(get__refused),
        cmocka_unit_test(get__interrupted),
        cmocka_unit_test(destroy__takes_what_nobody_got),
        cmocka_unit_test(case_94),
        cmocka_unit_test(destroy__of_a_channel_in_use),
        cmocka_unit_test(destroy__of_a_channel_after_cancel),
        cmocka_unit_test(cancel__loses_no_event),
        cmocka_unit_test(cancel__with_the_count),
        cmocka_unit_test(destroy__of_a_channel_before_its_ids),
        cmocka_unit_test(migrate__takes_events_along),
        cmocka_unit_test(write__only_user_events),
    };

    return cmocka_run_group_tests(tests, rig_setup, NULL);
}
