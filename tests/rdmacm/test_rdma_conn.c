/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_conn.c: connections and datagram services between two ids of one process: made,
 * refused, ended, with private data of every length, by events and by calls that wait.
 */
#include "cm_rig.h"

#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>

static uint8_t pattern[256];

static void pattern_fill(void)
{
    for (unsigned i = 0; i < sizeof(pattern); i++)
        pattern[i] = (uint8_t)(i + 1);
}

static void connect__established_once(void **state)
{
    (void)state;
    static const char *const addrs[] = {"127.0.0.1", "::1"};

    for (unsigned i = 0; i < 2; i++) {
        struct rig_pair p;
        rig_pair_open(&p, addrs[i], RDMA_PS_TCP, true);
        rig_pair_connect(&p);
        assert_int_equal(rdma_get_src_port(p.client), rdma_get_dst_port(p.server));
        assert_int_equal(rdma_get_dst_port(p.client), rdma_get_src_port(p.server));
        assert_int_equal(rdma_get_peer_addr(p.server)->sa_family,
                         rdma_get_local_addr(p.client)->sa_family);
        assert_ptr_equal(p.server->verbs, p.client->verbs);
        rig_expect_none(p.client_ch);
        rig_expect_none(p.server_ch);
        rig_pair_close(&p);
    }
}

/* rc@921730a: both ask to disconnect; each succeeds, each is told once. */
static void case_96(void **state)
{
    (void)state;
    struct rig_pair p;

    rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, true);
    rig_pair_connect(&p);
    assert_int_equal(rdma_disconnect(p.client), 0);
    assert_int_equal(rdma_disconnect(p.server), 0);
    rig_expect(p.client_ch, RDMA_CM_EVENT_DISCONNECTED, 0);
    rig_expect(p.server_ch, RDMA_CM_EVENT_DISCONNECTED, 0);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(p.client->qp, &attr, IBV_QP_STATE, &init), 0);
    assert_int_equal(attr.qp_state, IBV_QPS_ERR);
    rig_pair_close(&p);
}

struct data_row {
    uint8_t bytes;
    bool fits;
};

/* ldms#2259, lf#3490: what does not fit is refused, not cut; what fits arrives with zeros behind.
 */
static void case_89__connect(void **state)
{
    (void)state;
    static const struct data_row rows[] = {
        {0,   true },
        {1,   true },
        {56,  true },
        {57,  false},
        {92,  false},
        {255, false}
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig_pair p;
        struct rdma_conn_param param = {.private_data = pattern, .private_data_len = rows[i].bytes};
        static const uint8_t zeros[56];
        rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, true);
        int ret = rdma_connect(p.client, &param);
        assert_int_equal(ret, rows[i].fits ? 0 : -1);
        if (rows[i].fits) {
            struct rdma_cm_event *e = rig_pair_request(&p, false);
            const uint8_t *got = e->param.conn.private_data;
            assert_int_equal(e->param.conn.private_data_len, 56);
            assert_memory_equal(got, pattern, rows[i].bytes);
            assert_memory_equal(got + rows[i].bytes, zeros, 56u - rows[i].bytes);
            rdma_ack_cm_event(e);
        } else {
            assert_int_equal(errno, EINVAL);
        }
        rig_pair_close(&p);
    }
}

static void case_89__accept(void **state)
{
    (void)state;
    static const struct data_row rows[] = {
        {0,   true },
        {196, true },
        {197, false},
        {255, false}
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig_pair p;
        struct rdma_conn_param param = {.private_data = pattern, .private_data_len = rows[i].bytes};
        rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, true);
        assert_int_equal(rdma_connect(p.client, NULL), 0);
        rdma_ack_cm_event(rig_pair_request(&p, true));
        int ret = rdma_accept(p.server, &param);
        assert_int_equal(ret, rows[i].fits ? 0 : -1);
        if (rows[i].fits) {
            struct rdma_cm_event *e = rig_event(p.client_ch);
            assert_int_equal(e->event, RDMA_CM_EVENT_ESTABLISHED);
            assert_int_equal(e->param.conn.private_data_len, 196);
            assert_memory_equal(e->param.conn.private_data, pattern, rows[i].bytes);
            rdma_ack_cm_event(e);
        } else {
            assert_int_equal(errno, EINVAL);
        }
        rig_pair_close(&p);
    }
}

static void case_89__reject(void **state)
{
    (void)state;
    static const struct data_row rows[] = {
        {0,   true },
        {148, true },
        {149, false}
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig_pair p;
        rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, true);
        assert_int_equal(rdma_connect(p.client, NULL), 0);
        rdma_ack_cm_event(rig_pair_request(&p, false));
        int ret = rdma_reject(p.server, pattern, rows[i].bytes);
        assert_int_equal(ret, rows[i].fits ? 0 : -1);
        if (rows[i].fits) {
            struct rdma_cm_event *e = rig_event(p.client_ch);
            assert_int_equal(e->event, RDMA_CM_EVENT_REJECTED);
            assert_int_equal(e->status, 28); /* consumer defined */
            assert_int_equal(e->param.conn.private_data_len, 148);
            assert_memory_equal(e->param.conn.private_data, pattern, rows[i].bytes);
            rdma_ack_cm_event(e);
            assert_int_equal(rdma_reject(p.server, NULL, 0), -1); /* once */
        }
        assert_true(rows[i].fits || errno == EINVAL);
        rig_pair_close(&p);
    }
}

/* rc@ad3a14d76: -1 and a positive errno; a port where nobody listens refuses. */
static void case_91__closed_port(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = rig_id(ch, RDMA_PS_TCP), *sync = rig_id(NULL, RDMA_PS_TCP);
    struct ibv_qp_init_attr init = rig_qp_init(IBV_QPT_RC);
    union rig_addr dst = rig_addr("127.0.0.1", 1);

    rig_resolve(id, "127.0.0.1", 1);
    assert_int_equal(rdma_create_qp(id, NULL, &init), 0);
    assert_int_equal(rdma_connect(id, NULL), 0);
    rig_expect(ch, RDMA_CM_EVENT_REJECTED, 8);
    init = rig_qp_init(IBV_QPT_RC);
    assert_int_equal(rdma_resolve_addr(sync, NULL, &dst.sa, 1000), 0);
    assert_int_equal(rdma_resolve_route(sync, 1000), 0);
    assert_int_equal(rdma_create_qp(sync, NULL, &init), 0);
    assert_int_equal(rdma_connect(sync, NULL), -1);
    assert_int_equal(errno, ECONNREFUSED);
    assert_int_equal(sync->event->status, 8);
    rdma_destroy_ep(id);
    rdma_destroy_ep(sync);
    rdma_destroy_event_channel(ch);
}

/* Calls that the id's state does not have. */
static void case_91__out_of_order(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = rig_id(ch, RDMA_PS_TCP), *got;
    struct rdma_conn_param param = {.qp_num = 2};

#define REFUSED(call)                                                                              \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_int_equal((call), -1);                                                              \
        assert_int_equal(errno, EINVAL);                                                           \
    } while (0)
    for (unsigned step = 0; step < 2; step++) {
        REFUSED(rdma_connect(id, &param));
        REFUSED(rdma_accept(id, &param));
        REFUSED(rdma_reject(id, NULL, 0));
        REFUSED(rdma_reject_ece(id, NULL, 0));
        REFUSED(rdma_disconnect(id));
        REFUSED(rdma_establish(id));
        REFUSED(rdma_notify(id, IBV_EVENT_COMM_EST));
        REFUSED(rdma_get_request(id, &got));
        union rig_addr any = rig_addr("0.0.0.0", 0);
        if (step == 0)
            assert_int_equal(rdma_bind_addr(id, &any.sa), 0);
    }
    assert_int_equal(rdma_listen(id, 1), 0);
    REFUSED(rdma_listen(id, 1));
    REFUSED(rdma_connect(id, &param));
    REFUSED(rdma_disconnect(id));
#undef REFUSED
    rdma_destroy_id(id);
    rig_expect_none(ch);
    rdma_destroy_event_channel(ch);
}

static void connect__what_cannot_be(void **state)
{
    (void)state;
    struct rig_pair p;
    struct rdma_conn_param no_data = {.private_data_len = 1};
    struct rdma_conn_param many = {.responder_resources = 200};

    rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, false);
    assert_int_equal(rdma_connect(p.client, NULL), -1); /* neither QP nor its number */
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_connect(p.client, &no_data), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_connect(p.client, &many), -1);
    assert_int_equal(errno, EINVAL);
    rig_pair_close(&p);
}

/* A listener's end takes along what the program has not seen. */
static void listen__destroyed_with_requests(void **state)
{
    (void)state;
    struct rig_pair p;

    rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, true);
    assert_int_equal(rdma_connect(p.client, NULL), 0);
    for (unsigned i = 0; i < 1000 && !rig_readable(p.server_ch->fd); i++)
        poll(NULL, 0, 10);
    assert_true(rig_readable(p.server_ch->fd));
    assert_int_equal(rdma_destroy_id(p.listen), 0);
    p.listen = NULL;
    rig_expect_none(p.server_ch);
    struct rdma_cm_event *e = rig_event(p.client_ch);
    assert_int_equal(e->event, RDMA_CM_EVENT_REJECTED);
    rdma_ack_cm_event(e);
    rig_pair_close(&p);
}

/* What a listener has waits where it is moved to, and so do the connections themselves. */
static void migrate__listener_with_requests(void **state)
{
    (void)state;
    struct rdma_event_channel *other = rig_channel();
    struct rig_pair p;

    rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, true);
    assert_int_equal(rdma_connect(p.client, NULL), 0);
    for (unsigned i = 0; i < 1000 && !rig_readable(p.server_ch->fd); i++)
        poll(NULL, 0, 10);
    assert_int_equal(rdma_migrate_id(p.listen, other), 0);
    rig_expect_none(p.server_ch);
    rdma_destroy_event_channel(p.server_ch);
    p.server_ch = other;
    rdma_ack_cm_event(rig_pair_request(&p, true));
    assert_ptr_equal(p.server->channel, other);
    assert_int_equal(rdma_accept(p.server, NULL), 0);
    rig_expect(p.client_ch, RDMA_CM_EVENT_ESTABLISHED, 0);
    rig_expect(other, RDMA_CM_EVENT_ESTABLISHED, 0);
    rig_pair_close(&p);
}

/* Both ends go from channel to channel while they send: nothing is lost, and the end is told where
 * they are then. */
static void migrate__under_traffic(void **state)
{
    (void)state;
    enum { ROUNDS = 64, CHANNELS = 2 };
    struct rdma_event_channel *to[CHANNELS] = {rig_channel(), rig_channel()};
    struct rig_pair p;
    uint8_t out[ROUNDS], in[ROUNDS] = {0};
    struct ibv_wc wc;

    rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, true);
    rig_pair_connect(&p);
    struct ibv_mr *from = rdma_reg_msgs(p.client, out, sizeof(out));
    struct ibv_mr *into = rdma_reg_msgs(p.server, in, sizeof(in));
    for (unsigned i = 0; i < ROUNDS; i++) {
        out[i] = (uint8_t)(i + 1);
        assert_int_equal(rdma_post_recv(p.server, NULL, &in[i], 1, into), 0);
        assert_int_equal(rdma_post_send(p.client, NULL, &out[i], 1, from, IBV_SEND_SIGNALED), 0);
        assert_int_equal(rdma_migrate_id(p.server, to[i % CHANNELS]), 0);
        assert_int_equal(rdma_migrate_id(p.client, to[(i + 1) % CHANNELS]), 0);
        assert_int_equal(rdma_get_send_comp(p.client, &wc), 1);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(rdma_get_recv_comp(p.server, &wc), 1);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
    }
    assert_memory_equal(in, out, sizeof(in));
    assert_int_equal(rdma_disconnect(p.client), 0);
    rig_expect(to[1], RDMA_CM_EVENT_DISCONNECTED, 0); /* the server's */
    rig_expect(to[0], RDMA_CM_EVENT_DISCONNECTED, 0);
    rig_expect_none(p.server_ch);
    rig_expect_none(p.client_ch);
    rdma_dereg_mr(from);
    rdma_dereg_mr(into);
    rig_pair_close(&p);
    for (unsigned i = 0; i < CHANNELS; i++)
        rdma_destroy_event_channel(to[i]);
}

/* The program's own QPs: it connects them and says so. */
static void connect__own_queue_pairs(void **state)
{
    (void)state;
    struct rig_pair p;
    struct rdma_conn_param param = {.qp_num = 0x123456,
                                    .responder_resources = 3,
                                    .initiator_depth = 5,
                                    .retry_count = 6,
                                    .rnr_retry_count = 4};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR}, mine = {.qp_state = IBV_QPS_RTS};
    int mask;

    rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, false);
    assert_int_equal(rdma_init_qp_attr(p.client, &attr, &mask), -1); /* no peer yet */
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_connect(p.client, &param), 0);
    struct rdma_cm_event *e = rig_pair_request(&p, false);
    assert_int_equal(e->param.conn.qp_num, 0x123456);
    assert_int_equal(e->param.conn.responder_resources, 5); /* as the receiver sees it */
    assert_int_equal(e->param.conn.initiator_depth, 3);
    rdma_ack_cm_event(e);
    assert_int_equal(rdma_init_qp_attr(p.server, &mine, &mask), 0); /* before it accepts */
    assert_int_equal(mine.retry_cnt, 6);
    assert_int_equal(mine.rnr_retry, 4);
    param.qp_num = 0x654321;
    assert_int_equal(rdma_accept(p.server, &param), 0);
    rig_expect(p.client_ch, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    attr.qp_state = IBV_QPS_RTR;
    assert_int_equal(rdma_init_qp_attr(p.client, &attr, &mask), 0);
    assert_int_equal(attr.dest_qp_num, 0x654321);
    assert_int_equal(attr.rq_psn, mine.sq_psn);
    assert_int_equal(attr.ah_attr.is_global, 1);
    assert_int_equal(attr.min_rnr_timer, 28); /* the peer tries 4 times: not all of them at once */
    assert_int_equal(rdma_establish(p.client), 0);
    rig_expect(p.server_ch, RDMA_CM_EVENT_ESTABLISHED, 0);
    assert_int_equal(rdma_establish(p.client), -1);
    assert_int_equal(errno, EINVAL);
    rig_pair_close(&p);
}

/* pyverbs: a program that is slow to post its receive loses the connection, unless the peer's tries
 * are far apart; when the peer tries for ever, they need not be. */
static void connect__rnr_timer(void **state)
{
    (void)state;
    static const struct {
        uint8_t asked;
        int timer;
    } rows[] = {
        {7, 12},
        {0, 28},
        {1, 28},
        {6, 28}
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig_pair p;
        struct rdma_conn_param param = {.qp_num = 2, .rnr_retry_count = rows[i].asked};
        struct ibv_qp_attr attr;
        struct ibv_qp_init_attr init;
        rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, true);
        assert_int_equal(rdma_connect(p.client, &param), 0);
        rdma_ack_cm_event(rig_pair_request(&p, true));
        assert_int_equal(rdma_accept(p.server, &param), 0);
        rig_expect(p.client_ch, RDMA_CM_EVENT_ESTABLISHED, 0);
        rig_expect(p.server_ch, RDMA_CM_EVENT_ESTABLISHED, 0);
        struct ibv_qp *both[] = {p.client->qp, p.server->qp};
        for (unsigned k = 0; k < 2; k++) {
            assert_int_equal(ibv_query_qp(both[k], &attr, IBV_QP_MIN_RNR_TIMER, &init), 0);
            assert_int_equal(attr.min_rnr_timer, rows[i].timer);
        }
        rig_pair_close(&p);
    }
}

static void datagram__looked_up(void **state)
{
    (void)state;
    struct rig_pair p;
    struct rdma_conn_param param = {.private_data = pattern, .private_data_len = 180};

    rig_pair_open(&p, "127.0.0.1", RDMA_PS_UDP, true);
    assert_int_equal(rdma_connect(p.client, &param), 0);
    struct rdma_cm_event *e = rig_pair_request(&p, true);
    assert_int_equal(e->param.ud.private_data_len, 180);
    assert_memory_equal(e->param.ud.private_data, pattern, 180);
    rdma_ack_cm_event(e);
    param.private_data_len = 137;
    assert_int_equal(rdma_accept(p.server, &param), -1);
    assert_int_equal(errno, EINVAL);
    param.private_data_len = 136;
    assert_int_equal(rdma_accept(p.server, &param), 0);
    e = rig_event(p.client_ch);
    assert_int_equal(e->event, RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(e->param.ud.qp_num, p.server->qp->qp_num);
    assert_int_equal(e->param.ud.qkey, RDMA_UDP_QKEY);
    assert_int_equal(e->param.ud.private_data_len, 136);
    struct ibv_ah *ah = ibv_create_ah(p.client->pd, &e->param.ud.ah_attr);
    assert_non_null(ah);
    ibv_destroy_ah(ah);
    rdma_ack_cm_event(e);
    rig_expect_none(p.server_ch);
    rig_pair_close(&p);
}

/* What the server offers of enhanced connection establishment is in its answer. */
static void datagram__ece(void **state)
{
    (void)state;
    struct rig_pair p;
    struct rdma_conn_param param = {.qp_num = 0x123};
    struct ibv_ece offer = {.vendor_id = 0x15b3, .options = 0x80000001}, got;

    rig_pair_open(&p, "127.0.0.1", RDMA_PS_UDP, false);
    assert_int_equal(rdma_connect(p.client, &param), 0);
    rdma_ack_cm_event(rig_pair_request(&p, false));
    assert_int_equal(rdma_set_local_ece(p.server, &offer), 0);
    assert_int_equal(rdma_accept(p.server, &param), 0);
    rig_expect(p.client_ch, RDMA_CM_EVENT_ESTABLISHED, 0);
    assert_int_equal(rdma_get_remote_ece(p.client, &got), 0);
    assert_int_equal(got.vendor_id, offer.vendor_id);
    assert_int_equal(got.options, offer.options);
    rig_pair_close(&p);
}

static void datagram__refused(void **state)
{
    (void)state;
    struct rig_pair p;

    rig_pair_open(&p, "::1", RDMA_PS_UDP, true);
    assert_int_equal(rdma_connect(p.client, NULL), 0);
    rdma_ack_cm_event(rig_pair_request(&p, false));
    assert_int_equal(rdma_reject(p.server, NULL, 0), 0);
    rig_expect(p.client_ch, RDMA_CM_EVENT_UNREACHABLE, 2);
    rig_pair_close(&p);
}

struct ep_server {
    struct rdma_cm_id *listen;
    struct ibv_wc wc;
    int bad; /* the step that failed, from 1 */
};

static void *ep_serve(void *arg)
{
    struct ep_server *s = arg;
    struct rdma_cm_id *id;
    uint8_t buf[16];

    if (rdma_get_request(s->listen, &id) != 0) {
        s->bad = 1;
        return NULL;
    }
    struct ibv_mr *mr = rdma_reg_msgs(id, buf, sizeof(buf));
    if (rdma_post_recv(id, NULL, buf, sizeof(buf), mr) != 0)
        s->bad = 2;
    else if (rdma_accept(id, NULL) != 0)
        s->bad = 3;
    else if (rdma_get_recv_comp(id, &s->wc) != 1)
        s->bad = 4;
    else if (rdma_disconnect(id) != 0)
        s->bad = 5;
    rdma_dereg_mr(mr);
    rdma_destroy_ep(id);
    return NULL;
}

/* rdma_client and rdma_server in little: every call waits. */
static void ep__send_and_end(void **state)
{
    (void)state;
    struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *res;
    struct ibv_qp_init_attr init = rig_qp_init(IBV_QPT_RC);
    struct ep_server s = {0};
    struct rdma_cm_id *id;
    char port[8];
    pthread_t thread;

    init.cap.max_inline_data = 16;
    assert_int_equal(rdma_getaddrinfo("127.0.0.1", "0", &hints, &res), 0);
    assert_int_equal(rdma_create_ep(&s.listen, res, NULL, &init), 0);
    rdma_freeaddrinfo(res);
    assert_int_equal(rdma_listen(s.listen, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, ep_serve, &s), 0);
    snprintf(port, sizeof(port), "%u", ntohs(rdma_get_src_port(s.listen)));
    hints.ai_flags = 0;
    assert_int_equal(rdma_getaddrinfo("127.0.0.1", port, &hints, &res), 0);
    assert_int_equal(rdma_create_ep(&id, res, NULL, &init), 0);
    rdma_freeaddrinfo(res);
    assert_int_equal(rdma_connect(id, NULL), 0);
    struct ibv_wc wc;
    assert_int_equal(rdma_post_send(id, NULL, pattern, 16, NULL, IBV_SEND_INLINE), 0);
    assert_int_equal(rdma_get_send_comp(id, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(rdma_disconnect(id), 0);
    pthread_join(thread, NULL);
    assert_int_equal(s.bad, 0);
    assert_int_equal(s.wc.byte_len, 16);
    rdma_destroy_ep(id);
    rdma_destroy_ep(s.listen);
}

/* The side that asks first hears of the end when the other has done, too: then its QP can go. */
static void disconnect__waits_for_the_other_side(void **state)
{
    (void)state;
    struct rig_pair p;

    rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, true);
    rig_pair_connect(&p);
    assert_int_equal(rdma_disconnect(p.client), 0);
    rig_expect(p.server_ch, RDMA_CM_EVENT_DISCONNECTED, 0);
    struct pollfd quiet = {.fd = p.client_ch->fd, .events = POLLIN};
    assert_int_equal(poll(&quiet, 1, 50), 0);
    assert_int_equal(rdma_disconnect(p.server), 0);
    rig_expect(p.client_ch, RDMA_CM_EVENT_DISCONNECTED, 0);
    rig_pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connect__established_once),
        cmocka_unit_test(case_96),
        cmocka_unit_test(case_89__connect),
        cmocka_unit_test(case_89__accept),
        cmocka_unit_test(case_89__reject),
        cmocka_unit_test(case_91__closed_port),
        cmocka_unit_test(case_91__out_of_order),
        cmocka_unit_test(connect__what_cannot_be),
        cmocka_unit_test(listen__destroyed_with_requests),
        cmocka_unit_test(migrate__listener_with_requests),
        cmocka_unit_test(migrate__under_traffic),
        cmocka_unit_test(connect__own_queue_pairs),
        cmocka_unit_test(connect__rnr_timer),
        cmocka_unit_test(datagram__looked_up),
        cmocka_unit_test(datagram__ece),
        cmocka_unit_test(datagram__refused),
        cmocka_unit_test(ep__send_and_end),
        cmocka_unit_test(disconnect__waits_for_the_other_side),
    };

    pattern_fill();
    return cmocka_run_group_tests(tests, rig_setup, NULL);
}
