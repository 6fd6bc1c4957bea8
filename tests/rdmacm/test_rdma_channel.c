/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_channel.c: event descriptors: readable while there is something, blocking or not as the
 * program says, one event a get, nothing left of an id that is gone.
 */
#include "cm_rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
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
        cmocka_unit_test(migrate__takes_events_along),
        cmocka_unit_test(write__only_user_events),
    };

    return cmocka_run_group_tests(tests, rig_setup, NULL);
}
