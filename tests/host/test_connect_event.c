/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_connect_event.c: what events say: each field of a REQ, REP, REJ and SIDR as the other side
 * gave it, and private data of every message at its limits.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../port/private_net.h"
#include "connect_rig.h"

static uint8_t pattern[512];

static struct verbena_cm_private bytes_of(size_t n)
{
    return (struct verbena_cm_private){pattern, n};
}

/* n bytes of the pattern, then zeros up to the message's room. */
static void check_private(const struct rig_event *q, size_t n, size_t room)
{
    static const uint8_t zeros[512];
    assert_int_equal(q->e.param.private_data.bytes, room);
    assert_memory_equal(q->data, pattern, n);
    assert_memory_equal(q->data + n, zeros, room - n);
}

static void check_req(const struct rig_event *q, struct rig *r, const struct net_addr *addr,
                      const struct verbena_cm_connect *c)
{
    assert_ptr_equal(q->e.listen_owner, r);
    assert_int_equal(q->e.service_id, c->service_id);
    assert_true(q->e.has_ip);
    assert_int_equal(q->e.peer_port, 4000);
    assert_memory_equal(&q->e.peer_addr, addr, sizeof(*addr));
    assert_memory_equal(&q->e.local_addr, addr, sizeof(*addr));
    assert_memory_equal(&q->e.path.local, addr, sizeof(*addr));
    assert_memory_equal(&q->e.path.remote, addr, sizeof(*addr));
    assert_int_equal(q->e.qp_type, QP_TYPE_RC);
    assert_int_equal(q->e.path_mtu_bytes, 1024);
    assert_int_equal(q->e.ack_timeout, 8);
    assert_int_equal(q->e.param.qpn, 0x123456);
    assert_int_equal(q->e.param.psn, 0x654321);
    assert_int_equal(q->e.param.responder_resources, 5);
    assert_int_equal(q->e.param.initiator_depth, 4);
    assert_int_equal(q->e.param.retry_count, 7);
    assert_int_equal(q->e.param.rnr_retry_count, 6);
    assert_int_equal(q->e.param.flow_control, true);
    assert_int_equal(q->e.param.srq, c->param.srq);
}

static void event__req_and_rep_say_what_was_given(void **state)
{
    (void)state;
    for (unsigned v6 = 0; v6 < 2; v6++) {
        const struct net_addr *addr = v6 ? &rig_v6 : &rig_v4;
        struct rig r;
        struct rig_event q;
        struct verbena_cm_connect c;
        rig_open(&r);
        struct verbena_cm_id *l = rig_listen(&r, verbena_cm_service(RIG_SPACE_TCP, 7100), NULL);
        struct verbena_cm_id *a = rig_id(&r);
        rig_request(addr, verbena_cm_service(RIG_SPACE_TCP, 7100), &c);
        c.param.srq = v6;
        c.param.private_data = bytes_of(VERBENA_CM_REQ_IP_BYTES);
        assert_int_equal(verbena_cm_connect(a, &c), 0);
        rig_wait(&r, l, VERBENA_CM_REQ, &q);
        check_req(&q, &r, addr, &c);
        check_private(&q, VERBENA_CM_REQ_IP_BYTES, VERBENA_CM_REQ_IP_BYTES);
        struct verbena_cm_id *b = q.e.id;
        struct verbena_cm_param p = {.qpn = 0xabcdef,
                                     .psn = 0xfedcba,
                                     .responder_resources = 3,
                                     .initiator_depth = 2,
                                     .rnr_retry_count = 5,
                                     .srq = !v6,
                                     .private_data = bytes_of(VERBENA_CM_REP_BYTES + 1)};
        assert_int_equal(verbena_cm_accept(b, &p), -EINVAL);
        p.private_data.bytes--;
        assert_int_equal(verbena_cm_accept(b, &p), 0);
        assert_int_equal(verbena_cm_accept(b, &p), -EINVAL);
        rig_wait(&r, a, VERBENA_CM_REP, &q);
        assert_int_equal(q.e.param.qpn, 0xabcdef);
        assert_int_equal(q.e.param.psn, 0xfedcba);
        assert_int_equal(q.e.param.responder_resources, 3);
        assert_int_equal(q.e.param.initiator_depth, 2);
        assert_int_equal(q.e.param.rnr_retry_count, 5);
        assert_int_equal(q.e.param.srq, !v6);
        assert_int_equal(q.e.param.flow_control, false);
        check_private(&q, VERBENA_CM_REP_BYTES, VERBENA_CM_REP_BYTES);
        struct verbena_cm_private rtu = bytes_of(VERBENA_CM_RTU_BYTES + 1);
        assert_int_equal(verbena_cm_ready(a, &rtu), -EINVAL);
        rtu.bytes--;
        assert_int_equal(verbena_cm_ready(a, &rtu), 0);
        rig_wait(&r, a, VERBENA_CM_ESTABLISHED, &q);
        rig_wait(&r, b, VERBENA_CM_ESTABLISHED, &q);
        check_private(&q, VERBENA_CM_RTU_BYTES, VERBENA_CM_RTU_BYTES);
        struct verbena_cm_private dreq = bytes_of(VERBENA_CM_DREQ_BYTES + 1);
        assert_int_equal(verbena_cm_disconnect(b, &dreq), -EINVAL);
        dreq.bytes = 7;
        assert_int_equal(verbena_cm_disconnect(b, &dreq), 0);
        rig_wait(&r, a, VERBENA_CM_DREQ, &q);
        check_private(&q, 7, VERBENA_CM_DREQ_BYTES);
        rig_destroy(&r, a);
        rig_destroy(&r, b);
        rig_destroy(&r, l);
        rig_close(&r);
    }
}

static void event__rej_says_why(void **state)
{
    (void)state;
    static const struct {
        unsigned reason;
        size_t info_bytes, private_bytes;
        int err;
    } t[] = {
        {28,    0,  0,   0      },
        {28,    72, 148, 0      },
        {26,    1,  20,  0      },
        {65535, 0,  1,   0      },
        {28,    73, 0,   -EINVAL},
        {28,    0,  149, -EINVAL},
        {0,     0,  0,   -EINVAL},
        {65536, 0,  0,   -EINVAL},
    };
    struct rig r;
    rig_open(&r);
    struct verbena_cm_id *l = rig_listen(&r, 0x77665544332211, &rig_v4);
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct rig_event q;
        struct verbena_cm_connect c;
        struct verbena_cm_id *a = rig_id(&r);
        rig_request(&rig_v4, 0x77665544332211, &c);
        c.param.private_data = bytes_of(VERBENA_CM_REQ_BYTES);
        assert_int_equal(verbena_cm_connect(a, &c), 0);
        rig_wait(&r, l, VERBENA_CM_REQ, &q);
        assert_false(q.e.has_ip);
        assert_int_equal(q.e.peer_port, 0);
        check_private(&q, VERBENA_CM_REQ_BYTES, VERBENA_CM_REQ_BYTES);
        struct verbena_cm_id *b = q.e.id;
        struct verbena_cm_private info = bytes_of(t[i].info_bytes);
        struct verbena_cm_private data = bytes_of(t[i].private_bytes);
        int err = verbena_cm_reject(b, t[i].reason, &info, &data);
        if (err != t[i].err)
            fail_msg("row %zu: %d", i, err);
        if (err == 0) {
            rig_wait(&r, a, VERBENA_CM_REJ, &q);
            assert_int_equal(q.e.status, t[i].reason);
            assert_int_equal(q.e.info_bytes, t[i].info_bytes);
            assert_memory_equal(q.info, pattern, t[i].info_bytes);
            check_private(&q, t[i].private_bytes, VERBENA_CM_REJ_BYTES);
            assert_int_equal(verbena_cm_reject(b, t[i].reason, NULL, NULL), -EINVAL);
        }
        rig_destroy(&r, b);
        rig_destroy(&r, a);
    }
    rig_destroy(&r, l);
    rig_close(&r);
}

/* The active side does not want it after all. */
static void event__rep_is_rejected(void **state)
{
    (void)state;
    struct rig r;
    struct rig_event q;
    struct verbena_cm_connect c;
    struct verbena_cm_param p = {.qpn = 77};
    rig_open(&r);
    struct verbena_cm_id *l = rig_listen(&r, verbena_cm_service(RIG_SPACE_TCP, 7101), &rig_v4);
    struct verbena_cm_id *a = rig_id(&r);
    rig_request(&rig_v4, verbena_cm_service(RIG_SPACE_TCP, 7101), &c);
    assert_int_equal(verbena_cm_connect(a, &c), 0);
    rig_wait(&r, l, VERBENA_CM_REQ, &q);
    struct verbena_cm_id *b = q.e.id;
    assert_int_equal(verbena_cm_accept(b, &p), 0);
    rig_wait(&r, a, VERBENA_CM_REP, &q);
    assert_int_equal(verbena_cm_reject(a, VERBENA_CM_REJ_CONSUMER_DEFINED, NULL, NULL), 0);
    rig_wait(&r, b, VERBENA_CM_REJ, &q);
    assert_int_equal(q.e.status, VERBENA_CM_REJ_CONSUMER_DEFINED);
    /* Nobody wants the next one. */
    r.refuse = -ENOMEM;
    assert_int_equal(verbena_cm_connect(a, &c), 0);
    rig_wait(&r, a, VERBENA_CM_REJ, &q);
    assert_int_equal(q.e.status, 3);
    r.refuse = VERBENA_CM_REJ_INVALID_TRANSPORT_TYPE;
    assert_int_equal(verbena_cm_connect(a, &c), 0);
    rig_wait(&r, a, VERBENA_CM_REJ, &q);
    assert_int_equal(q.e.status, 9);
    rig_destroy(&r, a);
    rig_destroy(&r, b);
    rig_destroy(&r, l);
    rig_close(&r);
}

/* The listener hears which QP it needs, and the other side its number. */
static void event__by_type_of_qp(void **state)
{
    (void)state;
    static const struct {
        enum qp_type asks, answers;
        int err;
    } t[] = {
        {QP_TYPE_RC,      QP_TYPE_RC,      0      },
        {QP_TYPE_UC,      QP_TYPE_UC,      0      },
        {QP_TYPE_XRC_INI, QP_TYPE_XRC_TGT, 0      },
        {QP_TYPE_XRC_TGT, 0,               -EINVAL},
        {QP_TYPE_UD,      0,               -EINVAL},
        {QP_TYPE_GSI,     0,               -EINVAL},
        {11,              0,               -EINVAL},
    };
    const uint64_t service_id = verbena_cm_service(RIG_SPACE_TCP, 7103);
    struct rig r;
    rig_open(&r);
    struct verbena_cm_id *l = rig_listen(&r, service_id, &rig_v4);
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct rig_event q;
        struct verbena_cm_connect c;
        struct verbena_cm_id *a = rig_id(&r);
        struct verbena_cm_param p = {.qpn = 0x345, .initiator_depth = 2, .rnr_retry_count = 3};
        rig_request(&rig_v4, service_id, &c);
        c.qp_type = t[i].asks;
        assert_int_equal(verbena_cm_connect(a, &c), t[i].err);
        if (t[i].err == 0) {
            bool xrc = t[i].asks == QP_TYPE_XRC_INI;
            rig_wait(&r, l, VERBENA_CM_REQ, &q);
            assert_int_equal(q.e.qp_type, t[i].answers);
            assert_int_equal(q.e.param.retry_count, xrc ? 0 : 7);
            struct verbena_cm_id *b = q.e.id;
            assert_int_equal(verbena_cm_accept(b, &p), 0);
            rig_wait(&r, a, VERBENA_CM_REP, &q);
            assert_int_equal(q.e.param.qpn, 0x345);
            assert_int_equal(q.e.param.rnr_retry_count, 3);
            assert_int_equal(q.e.param.initiator_depth, xrc ? 0 : 2);
            assert_int_equal(q.e.param.srq, xrc);
            rig_destroy(&r, b);
        }
        rig_destroy(&r, a);
    }
    rig_destroy(&r, l);
    rig_close(&r);
}

static void event__sidr_finds_a_queue_pair(void **state)
{
    (void)state;
    static const struct {
        unsigned status;
        size_t request_bytes, reply_bytes;
        bool listens;
        int err;
        int seen;
    } t[] = {
        {0, 180, 136, true,  0,       0},
        {0, 0,   0,   true,  0,       0},
        {2, 3,   4,   true,  0,       2},
        {3, 0,   0,   true,  0,       3},
        {0, 0,   137, true,  -EINVAL, 0},
        {6, 0,   0,   true,  -EINVAL, 0},
        {0, 0,   0,   false, 0,       1},
        {0, 181, 0,   false, -EINVAL, 0},
    };
    const uint64_t service_id = verbena_cm_service(RIG_SPACE_UDP, 7102);
    struct rig r;
    rig_open(&r);
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct rig_event q;
        struct verbena_cm_connect c;
        struct verbena_cm_id *l = t[i].listens ? rig_listen(&r, service_id, &rig_v6) : NULL;
        struct verbena_cm_id *a = rig_id(&r), *b = NULL;
        rig_request(&rig_v6, service_id, &c);
        c.param.private_data = bytes_of(t[i].request_bytes);
        int err = verbena_cm_sidr_connect(a, &c);
        if (l != NULL) {
            assert_int_equal(err, 0);
            rig_wait(&r, l, VERBENA_CM_SIDR_REQ, &q);
            b = q.e.id;
            assert_int_equal(q.e.peer_port, 4000);
            assert_memory_equal(&q.e.peer_addr, &rig_v6, sizeof(rig_v6));
            check_private(&q, t[i].request_bytes, VERBENA_CM_SIDR_REQ_IP_BYTES);
            struct verbena_cm_param p = {
                .qpn = 0x4321, .qkey = 0x11223344, .private_data = bytes_of(t[i].reply_bytes)};
            err = verbena_cm_sidr_reply(b, t[i].status, &p);
        }
        if (err != t[i].err)
            fail_msg("row %zu: %d", i, err);
        if (err == 0) {
            rig_wait(&r, a, VERBENA_CM_SIDR_REP, &q);
            assert_int_equal(q.e.status, t[i].seen);
            if (t[i].seen == 0) {
                assert_int_equal(q.e.param.qpn, 0x4321);
                assert_int_equal(q.e.param.qkey, 0x11223344);
                check_private(&q, t[i].reply_bytes, VERBENA_CM_SIDR_REP_BYTES);
            }
        }
        rig_destroy(&r, a);
        if (b != NULL)
            rig_destroy(&r, b);
        if (l != NULL)
            rig_destroy(&r, l);
    }
    rig_close(&r);
}

/* An id that moves to another user tells that one. */
static void event__goes_to_the_id_s_present_user(void **state)
{
    (void)state;
    struct rig r, s;
    struct rig_event q;
    struct verbena_cm_connect c;
    rig_open(&r);
    rig_open(&s);
    struct verbena_cm_id *l = rig_listen(&r, verbena_cm_service(RIG_SPACE_TCP, 7103), &rig_v4);
    struct verbena_cm_id *a = rig_id(&r);
    rig_request(&rig_v4, verbena_cm_service(RIG_SPACE_TCP, 7103), &c);
    assert_int_equal(verbena_cm_connect(a, &c), 0);
    rig_wait(&r, l, VERBENA_CM_REQ, &q);
    verbena_cm_migrate(a, s.cm);
    verbena_cm_set_owner(a, &s);
    rig_destroy(&r, q.e.id);
    rig_wait(&s, a, VERBENA_CM_REJ, &q);
    rig_destroy(&r, l);
    rig_close(&r);
    rig_destroy(&s, a);
    rig_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(event__req_and_rep_say_what_was_given),
        cmocka_unit_test(event__rej_says_why),
        cmocka_unit_test(event__rep_is_rejected),
        cmocka_unit_test(event__by_type_of_qp),
        cmocka_unit_test(event__sidr_finds_a_queue_pair),
        cmocka_unit_test(event__goes_to_the_id_s_present_user),
    };
    for (size_t i = 0; i < sizeof(pattern); i++)
        pattern[i] = (uint8_t)(i * 7 + 1);
    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
