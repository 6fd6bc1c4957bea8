/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_connect.c: connections of the live device, between ids of one process and of two, on
 * 127.0.0.1 and ::1: made, refused, ended, and cut off.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../forks.h"
#include "../port/private_net.h"
#include "connect_rig.h"
#include "host/host_priv.h"

static uint64_t tcp(uint16_t port)
{
    return verbena_cm_service(RIG_SPACE_TCP, port);
}

static unsigned open_descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d != NULL && readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static bool write_works(struct rig_side *s)
{
    struct nic_wc wc;
    return endpoint_post(&s->e, WR_RDMA_WRITE, &s->peer, 0, 10000, WR_SIGNALED) == 0 &&
           endpoint_wait(&s->e, &wc) == WC_SUCCESS;
}

static uint64_t duplicates(void)
{
    return atomic_load(&host_current->connect.count[CM_COUNT_DUPLICATE]);
}

/* slow: the active side is not ready before the passive one has repeated itself. */
static void join_at(struct rig_side *a, struct rig_side *b, struct verbena_cm_id *listener,
                    uint64_t service_id, unsigned gid_index, bool slow)
{
    struct rig_event q;
    rig_connect(a, gid_index, service_id);
    rig_accept(b, listener, gid_index);
    uint64_t before = duplicates();
    for (unsigned i = 0; slow && i < RIG_WAIT_S * 1000 && duplicates() == before; i++)
        usleep(1000);
    rig_ready(a, gid_index);
    rig_wait(a->rig, a->id, VERBENA_CM_ESTABLISHED, &q);
    rig_wait(b->rig, b->id, VERBENA_CM_ESTABLISHED, &q);
}

static void join(struct rig_side *a, struct rig_side *b, struct verbena_cm_id *listener,
                 uint64_t service_id, unsigned gid_index)
{
    join_at(a, b, listener, service_id, gid_index, false);
}

static void connect__data_goes_both_ways_then_the_end(void **state)
{
    (void)state;
    for (unsigned gid = 0; gid < 2; gid++) {
        struct rig r;
        struct rig_side a, b;
        struct rig_event q;
        rig_open(&r);
        struct verbena_cm_id *l = rig_listen(&r, tcp(7000), gid == 0 ? &rig_v4 : &rig_v6);
        rig_side_open(&a, &r);
        rig_side_open(&b, &r);
        join(&a, &b, l, tcp(7000), gid);
        assert_true(write_works(&a));
        assert_true(write_works(&b));
        assert_int_equal(verbena_cm_disconnect(a.id, NULL), 0);
        rig_wait(&r, b.id, VERBENA_CM_DREQ, &q);
        rig_wait(&r, a.id, VERBENA_CM_DISCONNECTED, &q);
        assert_int_equal(verbena_cm_disconnect(b.id, NULL), 0);
        rig_wait(&r, a.id, VERBENA_CM_TIMEWAIT_EXIT, &q);
        rig_wait(&r, b.id, VERBENA_CM_TIMEWAIT_EXIT, &q);
        assert_int_equal(verbena_cm_disconnect(a.id, NULL), 0);
        assert_false(rig_pending(&r, a.id) || rig_pending(&r, b.id));
        rig_destroy(&r, l);
        rig_side_close(&a);
        rig_side_close(&b);
        rig_close(&r);
    }
}

static void connect__id_tries_again_after_the_end(void **state)
{
    (void)state;
    struct rig r;
    struct rig_side a, b;
    struct rig_event q;
    rig_open(&r);
    rig_side_open(&a, &r);
    rig_side_open(&b, &r);
    rig_connect(&a, 0, tcp(7001));
    rig_wait(&r, a.id, VERBENA_CM_REJ, &q); /* nobody listens */
    assert_int_equal(q.e.status, VERBENA_CM_REJ_INVALID_SERVICE_ID);
    struct verbena_cm_id *l = rig_listen(&r, tcp(7001), NULL);
    join(&a, &b, l, tcp(7001), 0);
    struct verbena_cm_connect c;
    rig_request(&rig_v4, tcp(7001), &c);
    assert_int_equal(verbena_cm_connect(a.id, &c), -EINVAL); /* not now */
    assert_true(write_works(&a));
    /* Given back while it is open: the peer hears. */
    rig_destroy(&r, a.id);
    a.id = NULL;
    rig_wait(&r, b.id, VERBENA_CM_DREQ, &q);
    rig_destroy(&r, l);
    rig_side_close(&a);
    rig_side_close(&b);
    rig_close(&r);
}

/* The RTU never comes, but the first packet does. */
static void connect__first_packet_is_as_good_as_an_rtu(void **state)
{
    (void)state;
    struct rig r;
    struct rig_side a, b;
    struct rig_event q;
    rig_open(&r);
    rig_side_open(&a, &r);
    rig_side_open(&b, &r);
    struct verbena_cm_id *l = rig_listen(&r, tcp(7002), NULL);
    rig_connect(&a, 0, tcp(7002));
    b.only_receives = true;
    rig_accept(&b, l, 0);
    rig_wait(&r, a.id, VERBENA_CM_REP, &q);
    endpoint_name(&b.e, 0, &a.peer);
    endpoint_connect(&a.e, 0, &a.peer, 1024);
    assert_false(rig_pending(&r, b.id));
    assert_true(write_works(&a));
    rig_wait(&r, b.id, VERBENA_CM_ESTABLISHED, &q);
    assert_int_equal(verbena_cm_establish(b.id), 0);
    assert_false(rig_pending(&r, b.id));
    assert_int_equal(verbena_cm_ready(a.id, NULL), 0);
    rig_destroy(&r, l);
    rig_side_close(&a);
    rig_side_close(&b);
    rig_close(&r);
}

static void connect__calls_in_other_states_are_refused(void **state)
{
    (void)state;
    struct rig r;
    struct rig_event q;
    struct verbena_cm_param p = {.qpn = 5};
    rig_open(&r);
    struct verbena_cm_id *id = rig_id(&r);
    assert_int_equal(verbena_cm_listen(id, 0), -EINVAL); /* not bound */
    assert_int_equal(verbena_cm_accept(id, &p), -EINVAL);
    assert_int_equal(verbena_cm_ready(id, NULL), -EINVAL);
    assert_int_equal(verbena_cm_reject(id, 28, NULL, NULL), -EINVAL);
    assert_int_equal(verbena_cm_mra(id, 10, NULL), -EINVAL);
    assert_int_equal(verbena_cm_establish(id), -EINVAL);
    assert_int_equal(verbena_cm_disconnect(id, NULL), -EINVAL);
    assert_int_equal(verbena_cm_sidr_reply(id, 0, &p), -EINVAL);
    assert_int_equal(verbena_cm_bind_free(id, tcp(0), 9, 8, NULL, &(uint64_t){0}), -EINVAL);
    assert_int_equal(verbena_cm_bind(id, tcp(7003), NULL), 0);
    assert_int_equal(verbena_cm_bind(id, tcp(7004), NULL), -EINVAL);
    assert_int_equal(verbena_cm_listen(id, 0), 0);
    assert_int_equal(verbena_cm_listen(id, 0), -EINVAL);
    struct verbena_cm_id *a = rig_id(&r);
    struct verbena_cm_connect c;
    rig_request(&rig_v4, tcp(7003), &c);
    assert_int_equal(verbena_cm_connect(id, &c), -EINVAL); /* it listens */
    assert_int_equal(verbena_cm_connect(a, &c), 0);
    rig_wait(&r, id, VERBENA_CM_REQ, &q);
    struct verbena_cm_id *b = q.e.id;
    p.qpn = 1 << 24;
    assert_int_equal(verbena_cm_accept(b, &p), -EINVAL);
    assert_int_equal(verbena_cm_reject(b, 0, NULL, NULL), -EINVAL);
    assert_int_equal(verbena_cm_reject(b, 65536, NULL, NULL), -EINVAL);
    assert_int_equal(verbena_cm_mra(b, 32, NULL), -EINVAL);
    assert_int_equal(verbena_cm_mra(b, 20, NULL), 0);
    assert_int_equal(verbena_cm_disconnect(b, NULL), -EINVAL);
    verbena_cm_unlisten(id);
    rig_destroy(&r, b);
    rig_wait(&r, a, VERBENA_CM_REJ, &q);
    assert_int_equal(q.e.status, VERBENA_CM_REJ_CONSUMER_DEFINED);
    assert_int_equal(verbena_cm_connect(a, &c), 0);
    rig_wait(&r, a, VERBENA_CM_REJ, &q); /* no longer listens */
    assert_int_equal(q.e.status, VERBENA_CM_REJ_INVALID_SERVICE_ID);
    rig_destroy(&r, a);
    rig_destroy(&r, id);
    rig_close(&r);
}

static void connect__requests_that_cannot_be(void **state)
{
    (void)state;
    static uint8_t data[256];
    static const struct {
        const char *what;
        size_t private_bytes;
        uint8_t response_timeout;
        int max_retries;
        uint32_t qpn, psn;
        uint16_t mtu_bytes;
        enum qp_type type;
        bool families, ib;
        int err;
    } t[] = {
        {"as much as there is room for", 56,  17, 15, 5,        0,        1024, QP_TYPE_RC,      0, 0, 0      },
        {"one byte more",                57,  17, 15, 5,        0,        1024, QP_TYPE_RC,      0, 0, -EINVAL},
        {"no IP service",                92,  17, 15, 5,        0,        4096, QP_TYPE_UC,      0, 1, 0      },
        {"no IP service, too much",      93,  17, 15, 5,        0,        4096, QP_TYPE_UC,      0, 1, -EINVAL},
        {"far too much",                 256, 17, 15, 5,        0,        1024, QP_TYPE_RC,      0, 0, -EINVAL},
        {"timeout",                      0,   32, 15, 5,        0,        1024, QP_TYPE_RC,      0, 0, -EINVAL},
        {"retries",                      0,   17, 16, 5,        0,        1024, QP_TYPE_RC,      0, 0, -EINVAL},
        {"fewer retries than none",      0,   17, -2, 5,        0,        1024, QP_TYPE_RC,      0, 0, -EINVAL},
        {"QPN",                          0,   17, 15, 1 << 24,  0,        1024, QP_TYPE_RC,      0, 0, -EINVAL},
        {"PSN",                          0,   17, 15, 5,        1 << 24,  1024, QP_TYPE_RC,      0, 0, -EINVAL},
        {"MTU",                          0,   17, 15, 5,        0,        1500, QP_TYPE_RC,      0, 0, -EINVAL},
        {"no MTU",                       0,   17, 15, 5,        0,        0,    QP_TYPE_RC,      0, 0, -EINVAL},
        {"datagrams",                    0,   17, 15, 5,        0,        1024, QP_TYPE_UD,      0, 0, -EINVAL},
        {"two families",                 0,   17, 15, 5,        0,        1024, QP_TYPE_RC,      1, 0, -EINVAL},
        {"a target of XRC",              0,   0,  -1, 5,        0xffffff, 256,  QP_TYPE_XRC_TGT, 0, 0, -EINVAL},
        {"XRC",                          0,   0,  -1, 5,        0xffffff, 256,  QP_TYPE_XRC_INI, 0, 0, 0      },
        {"the largest",                  0,   0,  -1, 0xffffff, 0xffffff, 256,  QP_TYPE_RC,      0, 0, 0      },
    };
    struct rig r;
    rig_open(&r);
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct verbena_cm_connect c;
        struct rig_event q;
        struct verbena_cm_id *id = rig_id(&r);
        rig_request(&rig_v4, t[i].ib ? 0x1234567890 : tcp(7005), &c);
        c.path.remote = t[i].families ? rig_v6 : rig_v4;
        c.response_timeout = t[i].response_timeout;
        c.max_retries = t[i].max_retries;
        c.path_mtu_bytes = t[i].mtu_bytes;
        c.qp_type = t[i].type;
        c.param.qpn = t[i].qpn;
        c.param.psn = t[i].psn;
        c.param.private_data = (struct verbena_cm_private){data, t[i].private_bytes};
        int err = verbena_cm_connect(id, &c);
        if (err != t[i].err)
            fail_msg("%s: %d", t[i].what, err);
        if (err == 0)
            rig_wait(&r, id, VERBENA_CM_REJ, &q);
        assert_false(rig_pending(&r, id));
        rig_destroy(&r, id);
    }
    rig_close(&r);
}

static const struct net_addr any_v4 = {
    {[10] = 0xff, [11] = 0xff}
};
static const struct net_addr any_v6;

static void connect__names_exclude_one_another(void **state)
{
    (void)state;
    static const struct {
        const struct net_addr *first, *second;
        int err;
    } t[] = {
        {&rig_v4, &rig_v4, -EADDRINUSE},
        {&rig_v4, &any_v4, -EADDRINUSE},
        {&any_v4, &rig_v4, -EADDRINUSE},
        {NULL,    &rig_v6, -EADDRINUSE},
        {&rig_v6, NULL,    -EADDRINUSE},
        {NULL,    NULL,    -EADDRINUSE},
        {&any_v6, NULL,    -EADDRINUSE},
        {&rig_v4, &rig_v6, 0          },
        {&any_v4, &any_v6, 0          },
        {&any_v4, &rig_v6, 0          },
    };
    struct rig r;
    rig_open(&r);
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct verbena_cm_id *a = rig_id(&r), *b = rig_id(&r);
        assert_int_equal(verbena_cm_bind(a, tcp(7006), t[i].first), 0);
        int err = verbena_cm_bind(b, tcp(7006), t[i].second);
        if (err != t[i].err)
            fail_msg("row %zu: %d", i, err);
        if (err != 0) {
            verbena_cm_unbind(a);
            assert_int_equal(verbena_cm_bind(b, tcp(7006), t[i].second), 0);
        }
        rig_destroy(&r, a);
        rig_destroy(&r, b);
    }
    /* Two ports, three askers. */
    struct verbena_cm_id *id[3] = {rig_id(&r), rig_id(&r), rig_id(&r)};
    uint64_t s[3] = {0};
    assert_int_equal(verbena_cm_bind_free(id[0], tcp(0), 50000, 50001, &rig_v4, &s[0]), 0);
    assert_int_equal(verbena_cm_bind_free(id[1], tcp(0), 50000, 50001, &rig_v4, &s[1]), 0);
    assert_int_equal(verbena_cm_bind_free(id[2], tcp(0), 50000, 50001, NULL, &s[2]), -EADDRINUSE);
    assert_true(s[0] + s[1] == 2 * tcp(50000) + 1 && s[2] == 0);
    for (unsigned i = 0; i < 3; i++)
        rig_destroy(&r, id[i]);
    rig_close(&r);
}

static void byte_to(int fd)
{
    if (write(fd, "", 1) != 1)
        abort();
}

static void byte_from(int fd)
{
    char c;
    if (read(fd, &c, 1) != 1)
        abort();
}

/* Another process that binds when it is told to. It must be there before this one has threads. */
struct elsewhere {
    pid_t pid;
    int to, from;
};

static void elsewhere_main(int from, int to, uint64_t service_id)
{
    char c;
    while (read(from, &c, 1) == 1) {
        struct rig r;
        rig_open(&r);
        struct verbena_cm_id *id = rig_id(&r);
        int err = verbena_cm_bind(id, service_id, NULL);
        rig_destroy(&r, id);
        rig_close(&r);
        if (write(to, &err, sizeof(err)) != sizeof(err))
            abort();
    }
    _exit(0);
}

static void elsewhere_start(struct elsewhere *e, uint64_t service_id)
{
    int down[2], up[2];
    assert_int_equal(pipe(down), 0);
    assert_int_equal(pipe(up), 0);
    e->pid = fork();
    assert_true(e->pid >= 0);
    if (e->pid == 0) {
        close(down[1]);
        elsewhere_main(down[0], up[1], service_id);
    }
    close(down[0]);
    close(up[1]);
    e->to = down[1];
    e->from = up[0];
}

/* 0 or -errno. */
static int elsewhere_bind(struct elsewhere *e)
{
    int err;
    byte_to(e->to);
    assert_int_equal(read(e->from, &err, sizeof(err)), sizeof(err));
    return err;
}

static void elsewhere_end(struct elsewhere *e)
{
    int status;
    close(e->to);
    close(e->from);
    assert_int_equal(waitpid(e->pid, &status, 0), e->pid);
    assert_int_equal(status, 0);
}

/* The REP may be lost, then the REQ comes once more, by the listener's name. */
static void connect__name_stays_until_the_rtu(void **state)
{
    (void)state;
    struct rig r;
    struct rig_side a, b;
    struct rig_event q;
    struct elsewhere e;
    elsewhere_start(&e, tcp(7007));
    rig_open(&r);
    rig_side_open(&a, &r);
    rig_side_open(&b, &r);
    struct verbena_cm_id *l = rig_listen(&r, tcp(7007), NULL);
    rig_connect(&a, 0, tcp(7007));
    rig_accept(&b, l, 0);
    rig_destroy(&r, l);
    assert_int_equal(elsewhere_bind(&e), -EADDRINUSE);
    rig_ready(&a, 0);
    rig_wait(&r, b.id, VERBENA_CM_ESTABLISHED, &q);
    assert_int_equal(elsewhere_bind(&e), 0);
    /* Its own process may have it at once. */
    struct rig_side c, d;
    l = rig_listen(&r, tcp(7007), NULL);
    rig_side_open(&c, &r);
    rig_side_open(&d, &r);
    rig_connect(&c, 0, tcp(7007));
    rig_accept(&d, l, 0);
    rig_destroy(&r, l);
    l = rig_listen(&r, tcp(7007), &rig_v4);
    rig_destroy(&r, l);
    rig_ready(&c, 0);
    rig_wait(&r, d.id, VERBENA_CM_ESTABLISHED, &q);
    assert_int_equal(elsewhere_bind(&e), 0);
    rig_side_close(&a);
    rig_side_close(&b);
    rig_side_close(&c);
    rig_side_close(&d);
    rig_close(&r);
    elsewhere_end(&e);
}

/* A server in a process of its own, which accepts one connection and waits to be killed. */
static pid_t server_start(uint16_t port, int *from)
{
    int up[2];
    assert_int_equal(pipe(up), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rig r;
        struct rig_side b;
        struct rig_event q;
        close(up[0]);
        rig_open(&r);
        rig_side_open(&b, &r);
        struct verbena_cm_id *l = rig_listen(&r, tcp(port), &any_v4);
        byte_to(up[1]);
        rig_accept(&b, l, 0);
        rig_wait(&r, b.id, VERBENA_CM_ESTABLISHED, &q);
        byte_to(up[1]);
        for (;;)
            pause();
    }
    close(up[1]);
    *from = up[0];
    byte_from(up[0]);
    return pid;
}

static void end_server(pid_t pid, int fd)
{
    int status;
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(fd);
}

static void connect__peer_of_a_killed_process_is_told(void **state)
{
    (void)state;
    struct rig r;
    struct rig_side a;
    struct rig_event q;
    int fd;
    pid_t pid = server_start(7008, &fd);
    rig_open(&r);
    rig_side_open(&a, &r);
    rig_connect(&a, 0, tcp(7008));
    rig_ready(&a, 0);
    rig_wait(&r, a.id, VERBENA_CM_ESTABLISHED, &q);
    byte_from(fd);
    assert_true(write_works(&a));
    assert_false(rig_pending(&r, a.id));
    end_server(pid, fd); /* its will is in our hands already: we are on its machine */
    rig_wait(&r, a.id, VERBENA_CM_DREQ, &q);
    rig_wait(&r, a.id, VERBENA_CM_TIMEWAIT_EXIT, &q);
    rig_connect(&a, 0, tcp(7008)); /* nothing is left of it */
    rig_wait(&r, a.id, VERBENA_CM_REJ, &q);
    assert_int_equal(q.e.status, VERBENA_CM_REJ_INVALID_SERVICE_ID);
    rig_side_close(&a);
    rig_close(&r);
}

/* Ends without having said anything: the C library's exit, and with a last message. */
static void connect__peer_of_a_process_that_ends_is_told(void **state)
{
    (void)state;
    for (unsigned closes = 0; closes < 2; closes++) {
        struct rig r;
        struct rig_side a;
        struct rig_event q;
        int up[2], status;
        assert_int_equal(pipe(up), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            struct rig_side b;
            rig_open(&r);
            rig_side_open(&b, &r);
            struct verbena_cm_id *l = rig_listen(&r, tcp(7013), NULL);
            byte_to(up[1]);
            rig_accept(&b, l, 0);
            rig_wait(&r, b.id, VERBENA_CM_ESTABLISHED, &q);
            if (!closes)
                exit(0);
            rig_side_close(&b);
            rig_destroy(&r, l);
            rig_close(&r);
            _exit(0);
        }
        byte_from(up[0]);
        rig_open(&r);
        rig_side_open(&a, &r);
        rig_connect(&a, 0, tcp(7013));
        rig_ready(&a, 0);
        rig_wait(&r, a.id, VERBENA_CM_ESTABLISHED, &q);
        rig_wait(&r, a.id, VERBENA_CM_DREQ, &q);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        rig_side_close(&a);
        rig_close(&r);
        close(up[0]);
        close(up[1]);
    }
}

static void connect__losses_cost_time_only(void **state)
{
    (void)state;
    struct rig r;
    assert_int_equal(setenv("VERBENA_FAULT", "drop=10%", 1), 0);
    rig_open(&r);
    struct verbena_cm_id *l = rig_listen(&r, tcp(7014), NULL);
    r.response_timeout = 13; /* 34 ms */
    for (unsigned i = 0; i < 20; i++) {
        struct rig_side a, b;
        struct rig_event q;
        rig_side_open(&a, &r);
        rig_side_open(&b, &r);
        join_at(&a, &b, l, tcp(7014), i % 2, i % 4 == 3);
        assert_true(write_works(&a));
        if (i % 3 != 0)
            assert_int_equal(verbena_cm_disconnect(b.id, NULL), 0);
        else
            rig_destroy(&r, b.id);
        rig_wait(&r, a.id, VERBENA_CM_DREQ, &q);
        if (i % 3 != 0)
            rig_wait(&r, b.id, VERBENA_CM_DISCONNECTED, &q);
        else
            b.id = NULL;
        rig_side_close(&a);
        rig_side_close(&b);
    }
    rig_destroy(&r, l);
    rig_close(&r);
    assert_int_equal(unsetenv("VERBENA_FAULT"), 0);
}

/* Nothing but the listener: the last to leave may have to say so again, and the helper that hears
 * the answer may come late. */
static bool only_the_listener(void)
{
    struct connect *c = &host_current->connect;
    progress_lock(&host_current->events);
    bool so =
        c->ids == 1 && TAILQ_EMPTY(&c->known) && TAILQ_EMPTY(&c->leaving) && TAILQ_EMPTY(&c->over);
    progress_unlock(&host_current->events);
    return so;
}

/* 300 in sequence leave nothing: no entry anywhere, and no descriptor. (The port may open a socket
 * for a flow at any time, and its helper reads files of /proc now and then: a leak is one a
 * connection.) */
static void connect__many_in_sequence_leave_nothing(void **state)
{
    (void)state;
    struct rig r;
    struct rig_event q;
    rig_open(&r);
    struct verbena_cm_id *l = rig_listen(&r, tcp(7015), NULL);
    unsigned descriptors = 0;
    for (unsigned i = 0; i < 300; i++) {
        struct verbena_cm_connect c;
        struct verbena_cm_param p = {.qpn = 0x10000 + i};
        struct verbena_cm_id *a = rig_id(&r);
        rig_request(&rig_v4, tcp(7015), &c);
        c.param.qpn = 0x20000 + i;
        assert_int_equal(verbena_cm_connect(a, &c), 0);
        rig_wait(&r, l, VERBENA_CM_REQ, &q);
        struct verbena_cm_id *b = q.e.id;
        assert_int_equal(verbena_cm_accept(b, &p), 0);
        rig_wait(&r, a, VERBENA_CM_REP, &q);
        assert_int_equal(verbena_cm_ready(a, NULL), 0);
        rig_wait(&r, b, VERBENA_CM_ESTABLISHED, &q);
        rig_destroy(&r, i % 2 ? a : b);
        rig_wait(&r, i % 2 ? b : a, i % 2 ? VERBENA_CM_DREQ : VERBENA_CM_ESTABLISHED, &q);
        rig_destroy(&r, i % 2 ? b : a);
        if (i == 50)
            descriptors = open_descriptors();
    }
    for (unsigned i = 0; i < RIG_WAIT_S * 1000 && !only_the_listener(); i++)
        usleep(1000);
    assert_true(only_the_listener());
    assert_in_range(open_descriptors(), 0, descriptors + 8);
    rig_destroy(&r, l);
    rig_close(&r);
}

static void connect__stopped_server_is_unreachable(void **state)
{
    (void)state;
    struct rig r;
    struct rig_event q;
    struct verbena_cm_connect c;
    int fd;
    pid_t pid = server_start(7009, &fd);
    rig_open(&r);
    kill(pid, SIGSTOP);
    struct verbena_cm_id *id = rig_id(&r);
    rig_request(&rig_v4, tcp(7009), &c);
    c.response_timeout = 12; /* 17 ms */
    c.max_retries = 3;
    assert_int_equal(verbena_cm_connect(id, &c), 0);
    rig_wait(&r, id, VERBENA_CM_UNREACHABLE, &q);
    assert_int_equal(q.e.status, VERBENA_CM_SENT_REQ);
    rig_destroy(&r, id);
    end_server(pid, fd);
    rig_close(&r);
}

static void connect__child_inherits_nothing(void **state)
{
    (void)state;
    struct rig r;
    struct rig_side a, b;
    struct rig_event q;
    int status;
    unsigned before = open_descriptors();
    rig_open(&r);
    rig_side_open(&a, &r);
    rig_side_open(&b, &r);
    struct verbena_cm_id *l = rig_listen(&r, tcp(7010), NULL);
    join(&a, &b, l, tcp(7010), 0);
    pid_t pid = quiet_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct verbena_cm_id *id;
        struct verbena_cm_connect c;
        rig_request(&rig_v4, tcp(7010), &c);
        bool ok = open_descriptors() == before && verbena_cm_disconnect(a.id, NULL) == -EIO &&
                  verbena_cm_id_create(r.cm, &r, &id) == -EIO &&
                  verbena_cm_connect(a.id, &c) == -EIO && verbena_cm_listen(l, 0) == -EIO &&
                  verbena_cm_bind(l, tcp(7011), NULL) == -EIO;
        verbena_cm_id_destroy(a.id);
        verbena_cm_id_destroy(b.id);
        verbena_cm_id_destroy(l);
        verbena_cm_close(r.cm);
        _exit(ok ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_false(rig_pending(&r, b.id));
    assert_int_equal(verbena_cm_disconnect(a.id, NULL), 0);
    rig_wait(&r, b.id, VERBENA_CM_DREQ, &q);
    rig_destroy(&r, l);
    rig_side_close(&a);
    rig_side_close(&b);
    rig_close(&r);
    assert_int_equal(open_descriptors(), before);
}

enum { CLIENTS = 4, CLIENT_ROUNDS = 15 };

static void *client_main(void *arg)
{
    struct rig *r = arg;
    for (unsigned i = 0; i < CLIENT_ROUNDS; i++) {
        struct rig_side a;
        struct rig_event q;
        rig_side_open(&a, r);
        rig_connect(&a, 0, tcp(7012));
        rig_ready(&a, 0);
        rig_wait(r, a.id, VERBENA_CM_ESTABLISHED, &q);
        if (!write_works(&a))
            abort();
        if (verbena_cm_disconnect(a.id, NULL) != 0)
            abort();
        if (i % 3 != 0)
            rig_wait(r, a.id, VERBENA_CM_DISCONNECTED, &q);
        rig_side_close(&a);
    }
    return NULL;
}

static void connect__many_threads_one_server(void **state)
{
    (void)state;
    struct rig r;
    pthread_t t[CLIENTS];
    static struct rig_side b[CLIENTS * CLIENT_ROUNDS];
    struct rig_event q;
    rig_open(&r);
    struct verbena_cm_id *l = rig_listen(&r, tcp(7012), &any_v4);
    for (unsigned i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, client_main, &r), 0);
    for (unsigned i = 0; i < CLIENTS * CLIENT_ROUNDS; i++) {
        rig_side_open(&b[i], &r);
        rig_accept(&b[i], l, 0);
    }
    for (unsigned i = 0; i < CLIENTS * CLIENT_ROUNDS; i++) {
        rig_wait(&r, b[i].id, VERBENA_CM_ESTABLISHED, &q);
        rig_wait(&r, b[i].id, VERBENA_CM_DREQ, &q);
        rig_side_close(&b[i]);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        pthread_join(t[i], NULL);
    rig_destroy(&r, l);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connect__data_goes_both_ways_then_the_end),
        cmocka_unit_test(connect__id_tries_again_after_the_end),
        cmocka_unit_test(connect__first_packet_is_as_good_as_an_rtu),
        cmocka_unit_test(connect__calls_in_other_states_are_refused),
        cmocka_unit_test(connect__requests_that_cannot_be),
        cmocka_unit_test(connect__names_exclude_one_another),
        cmocka_unit_test(connect__name_stays_until_the_rtu),
        cmocka_unit_test(connect__peer_of_a_killed_process_is_told),
        cmocka_unit_test(connect__peer_of_a_process_that_ends_is_told),
        cmocka_unit_test(connect__losses_cost_time_only),
        cmocka_unit_test(connect__many_in_sequence_leave_nothing),
        cmocka_unit_test(connect__stopped_server_is_unreachable),
        cmocka_unit_test(connect__child_inherits_nothing),
        cmocka_unit_test(connect__many_threads_one_server),
    };
    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
