/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_turn.c: many clients that ask one server at once, and servers that take requests in
 * every way that programs do.
 */
#include "cm_rig.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

enum {
    CLIENTS = 12,
    FIRST_QPN = 0x100,
    TAKE_MS = 20, /* what another thread needs to notice */
};

struct crowd {
    struct rdma_event_channel *server_ch, *client_ch;
    struct rdma_cm_id *listen, *client[CLIENTS], *server[CLIENTS];
};

/* All have asked when it returns. */
static void crowd_ask(struct crowd *c, int backlog)
{
    union rig_addr any = rig_addr("127.0.0.1", 0);

    memset(c, 0, sizeof(*c));
    c->server_ch = rig_channel();
    c->client_ch = rig_channel();
    c->listen = rig_id(c->server_ch, RDMA_PS_TCP);
    assert_int_equal(rdma_bind_addr(c->listen, &any.sa), 0);
    assert_int_equal(rdma_listen(c->listen, backlog), 0);
    uint16_t port = ntohs(rdma_get_src_port(c->listen));
    for (unsigned i = 0; i < CLIENTS; i++) {
        c->client[i] = rig_id(c->client_ch, RDMA_PS_TCP);
        rig_resolve(c->client[i], "127.0.0.1", port);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct rdma_conn_param param = {.qp_num = FIRST_QPN + i};
        assert_int_equal(rdma_connect(c->client[i], &param), 0);
    }
}

static void crowd_close(struct crowd *c)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (c->server[i] != NULL)
            assert_int_equal(rdma_destroy_id(c->server[i]), 0);
        assert_int_equal(rdma_destroy_id(c->client[i]), 0);
    }
    if (c->listen != NULL)
        assert_int_equal(rdma_destroy_id(c->listen), 0);
    rdma_destroy_event_channel(c->client_ch);
    rdma_destroy_event_channel(c->server_ch);
}

static struct rdma_cm_id *next_request(struct crowd *c)
{
    struct rdma_cm_event *e = rig_event(c->server_ch);
    struct rdma_cm_id *id = e->id;

    assert_int_equal(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_int_equal(rdma_ack_cm_event(e), 0);
    return id;
}

static void expect_distinct(const struct crowd *c)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        for (unsigned k = 0; k < i; k++)
            assert_ptr_not_equal(c->server[i], c->server[k]);
    }
}

/* How programs begin with a request. Theirs are plain stores; ThreadSanitizer wants to see that the
 * library, which looks for them from another thread, knows. */
static void use_context(struct rdma_cm_id *id)
{
    __atomic_store_n(&id->context, id, __ATOMIC_RELAXED);
}

static void use_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr init = rig_qp_init(IBV_QPT_RC);

    assert_int_equal(rdma_create_qp(id, NULL, &init), 0);
    rdma_destroy_qp(id);
}

static void use_attr(struct rdma_cm_id *id)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    int mask;

    assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
}

static void use_accept(struct rdma_cm_id *id)
{
    struct rdma_conn_param param = {.qp_num = FIRST_QPN};

    assert_int_equal(rdma_accept(id, &param), 0);
}

static void use_reject(struct rdma_cm_id *id)
{
    assert_int_equal(rdma_reject(id, NULL, 0), 0);
}

/* The server of rping -P: one thread gets events and leaves the request in a variable, another one
 * takes it from there, a while later. */
struct relay {
    struct crowd *crowd;
    struct rdma_cm_id *_Atomic last;
    sem_t came;
};

static void *relay_get(void *arg)
{
    struct relay *r = arg;

    for (unsigned i = 0; i < CLIENTS; i++) {
        struct rdma_cm_event *e;
        if (rdma_get_cm_event(r->crowd->server_ch, &e) != 0)
            return arg;
        r->last = e->id;
        rdma_ack_cm_event(e);
        sem_post(&r->came);
    }
    return NULL;
}

static void case_95__one_variable(void **state)
{
    (void)state;
    static void (*const uses[])(struct rdma_cm_id *) = {use_context, use_qp, use_attr, use_accept,
                                                        use_reject};

    for (unsigned u = 0; u < sizeof(uses) / sizeof(uses[0]); u++) {
        struct crowd c;
        struct relay r = {.crowd = &c};
        pthread_t thread;
        void *failed;
        crowd_ask(&c, 3);
        assert_int_equal(sem_init(&r.came, 0, 0), 0);
        assert_int_equal(pthread_create(&thread, NULL, relay_get, &r), 0);
        for (unsigned i = 0; i < CLIENTS; i++) {
            assert_int_equal(sem_wait(&r.came), 0);
            poll(NULL, 0, TAKE_MS);
            c.server[i] = r.last;
            uses[u](c.server[i]);
        }
        assert_int_equal(pthread_join(thread, &failed), 0);
        assert_null(failed);
        expect_distinct(&c);
        sem_destroy(&r.came);
        crowd_close(&c);
    }
}

/* Who is done with a request, or gives it away, is ready for the next. */
static void turn__destroyed_or_moved(void **state)
{
    (void)state;
    struct crowd c;
    struct rdma_event_channel *other = rig_channel();

    crowd_ask(&c, 3);
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct rdma_cm_id *id = next_request(&c);
        if (i % 2 == 0) {
            assert_int_equal(rdma_destroy_id(id), 0);
            continue;
        }
        assert_int_equal(rdma_migrate_id(id, other), 0);
        c.server[i] = id;
    }
    crowd_close(&c);
    rdma_destroy_event_channel(other);
}

/* A program that collects them all, and has asked for less than that, gets them all the same,
 * whether it can wait or not. */
static void turn__collected(void **state)
{
    (void)state;

    for (int flags = 0; flags <= O_NONBLOCK; flags += O_NONBLOCK) {
        struct crowd c;
        crowd_ask(&c, 1);
        assert_int_equal(fcntl(c.server_ch->fd, F_SETFL, flags), 0);
        for (unsigned i = 0; i < CLIENTS; i++)
            c.server[i] = next_request(&c);
        expect_distinct(&c);
        rig_expect_none(c.server_ch);
        for (unsigned i = 0; i < CLIENTS; i++)
            use_reject(c.server[i]);
        for (unsigned i = 0; i < CLIENTS; i++)
            rig_expect(c.client_ch, RDMA_CM_EVENT_REJECTED, 28);
        crowd_close(&c);
    }
}

/* Two threads get events of one channel. */
struct half {
    struct crowd *crowd;
    struct rdma_cm_id *id[CLIENTS / 2];
};

static void *half_get(void *arg)
{
    struct half *h = arg;

    for (unsigned i = 0; i < CLIENTS / 2; i++) {
        struct rdma_cm_event *e;
        if (rdma_get_cm_event(h->crowd->server_ch, &e) != 0)
            return arg;
        h->id[i] = e->id;
        rdma_ack_cm_event(e);
    }
    return NULL;
}

static void turn__two_threads(void **state)
{
    (void)state;
    struct crowd c;
    struct half half[2] = {{.crowd = &c}, {.crowd = &c}};
    pthread_t thread[2];
    void *failed;

    crowd_ask(&c, 3);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, half_get, &half[i]), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(thread[i], &failed), 0);
        assert_null(failed);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        c.server[i] = half[i % 2].id[i / 2];
    expect_distinct(&c);
    crowd_close(&c);
}

/* The listener goes while a thread waits for its turn. */
static void turn__listener_goes(void **state)
{
    (void)state;
    struct crowd c;

    crowd_ask(&c, 3);
    c.server[0] = next_request(&c);
    c.server[1] = next_request(&c);
    assert_int_equal(rdma_destroy_id(c.listen), 0);
    c.listen = NULL;
    use_context(c.server[1]);
    for (unsigned i = 0; i < CLIENTS - 2; i++)
        rig_expect(c.client_ch, RDMA_CM_EVENT_REJECTED, 28);
    crowd_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_95__one_variable), cmocka_unit_test(turn__destroyed_or_moved),
        cmocka_unit_test(turn__collected),       cmocka_unit_test(turn__two_threads),
        cmocka_unit_test(turn__listener_goes),
    };

    return cmocka_run_group_tests(tests, rig_setup, NULL);
}
