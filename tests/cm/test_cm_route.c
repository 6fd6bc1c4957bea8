/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cm_route.c: where MADs go, and what is said for processes that are not there.
 */
#include "base/bytes.h"
#include "rig.h"

static void build(struct cm_msg *m, uint8_t mad[MAD_BYTES])
{
    m->header.tid = 0x1234;
    cm_msg_build(m, mad);
}

static void cm_route__by_message(void **state)
{
    (void)state;
    static const struct {
        unsigned attribute;
        uint32_t local, remote;
        enum cm_route_kind kind;
        uint32_t slot;
    } rows[] = {
        {CM_REQ,      1, 0,          CM_ROUTE_SERVICE, 0   },
        {CM_SIDR_REQ, 1, 0,          CM_ROUTE_SERVICE, 0   },
        {CM_REP,      1, 0x00400001, CM_ROUTE_SLOT,    1   },
        {CM_RTU,      1, 0xffc00000, CM_ROUTE_SLOT,    1023},
        {CM_MRA,      1, 0x003fffff, CM_ROUTE_SLOT,    0   },
        {CM_DREQ,     1, 0x01400007, CM_ROUTE_SLOT,    5   },
        {CM_DREP,     1, 0x01400007, CM_ROUTE_SLOT,    5   },
        {CM_LAP,      1, 0x01400007, CM_ROUTE_SLOT,    5   },
        {CM_APR,      1, 0x01400007, CM_ROUTE_SLOT,    5   },
        {CM_REJ,      0, 0x01400007, CM_ROUTE_SLOT,    5   },
        {CM_REJ,      1, 0,          CM_ROUTE_ALL,     0   },
        {CM_REP,      0, 0x01400007, CM_ROUTE_NONE,    0   },
        {CM_REP,      1, 0,          CM_ROUTE_NONE,    0   },
        {CM_REQ,      0, 0,          CM_ROUTE_NONE,    0   },
        {CM_REJ,      0, 0,          CM_ROUTE_NONE,    0   },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cm_msg m = {.header = {.attribute = (uint16_t)rows[i].attribute}};
        uint8_t mad[MAD_BYTES];
        struct cm_route route;
        m.mra.local_comm_id = rows[i].local;
        if (rows[i].attribute != CM_REQ && rows[i].attribute != CM_SIDR_REQ)
            m.mra.remote_comm_id = rows[i].remote;
        if (rows[i].attribute == CM_REQ)
            m.req.service_id = RIG_SERVICE;
        if (rows[i].attribute == CM_SIDR_REQ)
            m.sidr_req.service_id = RIG_SERVICE;
        build(&m, mad);
        cm_route(mad, sizeof(mad), &route);
        assert_int_equal(route.kind, rows[i].kind);
        assert_int_equal(route.slot, rows[i].slot);
        assert_true(route.service_id == (rows[i].kind == CM_ROUTE_SERVICE ? RIG_SERVICE : 0));
        cm_route(mad, sizeof(mad) - 1, &route);
        assert_int_equal(route.kind, CM_ROUTE_NONE);
        mad[1] = 4;
        cm_route(mad, sizeof(mad), &route);
        assert_int_equal(route.kind, CM_ROUTE_NONE);
    }
}

static void cm_route__sidr_rep_by_request_id(void **state)
{
    (void)state;
    struct cm_msg m = {.header = {.attribute = CM_SIDR_REP}};
    uint8_t mad[MAD_BYTES];
    struct cm_route route;
    m.sidr_rep.request_id = 0x01400007;
    build(&m, mad);
    cm_route(mad, sizeof(mad), &route);
    assert_int_equal(route.kind, CM_ROUTE_SLOT);
    assert_int_equal(route.slot, 5);
}

static void cm_refuse__what_and_how(void **state)
{
    (void)state;
    static const struct {
        unsigned attribute, answer, code; /* code: reason or status */
    } rows[] = {
        {CM_REQ,      CM_REJ,      CM_REJ_INVALID_SERVICE_ID},
        {CM_REP,      CM_REJ,      CM_REJ_INVALID_COMM_ID   },
        {CM_DREQ,     CM_DREP,     0                        },
        {CM_LAP,      CM_APR,      CM_APR_INVALID_COMM_ID   },
        {CM_SIDR_REQ, CM_SIDR_REP, CM_SIDR_UNSUPPORTED      },
        {CM_MRA,      0,           0                        },
        {CM_REJ,      0,           0                        },
        {CM_RTU,      0,           0                        },
        {CM_DREP,     0,           0                        },
        {CM_APR,      0,           0                        },
        {CM_SIDR_REP, 0,           0                        },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cm_msg m = peer_msg(rows[i].attribute, 0x01400007), a;
        uint8_t mad[MAD_BYTES], answer[MAD_BYTES];
        if (rows[i].attribute == CM_REQ)
            m.req = (struct cm_req){.local_comm_id = PEER_ID, .service_id = RIG_SERVICE};
        build(&m, mad);
        assert_int_equal(cm_refuse(mad, sizeof(mad), answer), rows[i].answer != 0);
        assert_false(cm_refuse(mad, sizeof(mad) - 1, answer));
        if (rows[i].answer == 0)
            continue;
        assert_int_equal(cm_msg_check(answer, sizeof(answer)), MAD_OK);
        cm_msg_parse(answer, &a);
        assert_int_equal(a.header.attribute, rows[i].answer);
        assert_true(a.header.tid == 0x1234);
        if (rows[i].answer == CM_SIDR_REP) {
            assert_int_equal(a.sidr_rep.request_id, PEER_ID);
            assert_int_equal(a.sidr_rep.status, rows[i].code);
            continue;
        }
        assert_int_equal(a.mra.remote_comm_id, PEER_ID);
        assert_int_equal(a.mra.local_comm_id, rows[i].attribute == CM_REQ ? 0 : 0x01400007);
        if (rows[i].answer == CM_REJ) {
            assert_int_equal(a.rej.reason, rows[i].code);
            assert_int_equal(a.rej.about,
                             rows[i].attribute == CM_REQ ? CM_ABOUT_REQ : CM_ABOUT_REP);
        }
        if (rows[i].answer == CM_APR)
            assert_int_equal(a.apr.status, rows[i].code);
    }
}

/* The kernel's own refusal of a REQ (capture cm-reject) is what we would say. */
static void cm_refuse__as_the_kernel(void **state)
{
    (void)state;
    struct cm_msg m = {
        .header = {.attribute = CM_REQ, .tid = 0x00000002f964d867}
    };
    uint8_t mad[MAD_BYTES], answer[MAD_BYTES];
    uint8_t kernel[MAD_BYTES] = {1,    7,    2,    3,    0, 0,    0, 0, 0, 0, 0, 2,
                                 0xf9, 0x64, 0xd8, 0x67, 0, 0x12, 0, 0, 0, 0, 0, 0};
    put_be32(kernel + 28, 0x67d864f9);
    kernel[35] = 8;
    m.req.local_comm_id = 0x67d864f9;
    cm_msg_build(&m, mad);
    assert_true(cm_refuse(mad, sizeof(mad), answer));
    assert_memory_equal(answer, kernel, sizeof(kernel));
}

/* A surviving process takes leave for a dead one: to the peer it is the dead one's DREQ. */
static void cm_farewell__ends_the_connection(void **state)
{
    (void)state;
    static struct rig rig;
    rig_begin(&rig, 4);
    struct cm_id *id = rig_active(&rig);
    struct cm_ends ends;
    cm_id_ends(id, &ends);
    struct cm_ends theirs = {
        .local_comm_id = ends.remote_comm_id,
        .remote_comm_id = ends.local_comm_id,
        .local_qpn = ends.remote_qpn,
        .remote_qpn = ends.local_qpn,
    };
    uint8_t mad[MAD_BYTES];
    cm_farewell(&theirs, mad);
    cm_input(rig.cm, rig.now_ns, &rig.path, mad, sizeof(mad));
    rig_event(&rig, CM_EVENT_DREQ);
    assert_int_equal(cm_disconnect(rig.cm, rig.now_ns, id, rig_nothing), 0);
    rig_hear(&rig, CM_DREP);
    rig_drop(&rig, id);
    rig_end(&rig);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(cm_route__by_message),
        cmocka_unit_test(cm_route__sidr_rep_by_request_id),
        cmocka_unit_test(cm_refuse__what_and_how),
        cmocka_unit_test(cm_refuse__as_the_kernel),
        cmocka_unit_test(cm_farewell__ends_the_connection),
    };
    return cmocka_run_group_tests_name("cm_route", tests, NULL, NULL);
}
