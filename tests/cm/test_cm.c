/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cm.c: ids and their limits, listeners, backlog, output that nobody fetches, names.
 */
#include "rig.h"

static struct rig rig;

static void cm_create__what_cannot_be(void **state)
{
    (void)state;
    static const struct cm_config rows[] = {
        {.slot = 1024,               .ca_guid = 1},
        {         .slot = 0,              .ca_guid = 0            },
        { .slot = 0, .ca_guid = 1,             .max_ids = CM_MAX_IDS + 1},
    };
    struct cm *cm;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(cm_create(&rows[i], &cm), -22);
    assert_int_equal(cm_create(&(struct cm_config){.slot = 1023, .ca_guid = 1}, &cm), 0);
    assert_false(cm_has_output(cm));
    assert_false(cm_has_event(cm));
    assert_true(cm_deadline(cm) == UINT64_MAX);
    cm_destroy(cm);
}

/* Ids: all with our slot, none twice, not foreseeable from one another. */
static void cm_comm_id__slot_and_chance(void **state)
{
    (void)state;
    enum { N = 1000 };
    static uint32_t seen[N];
    unsigned steps = 0;
    rig_begin(&rig, N);
    for (unsigned i = 0; i < N; i++) {
        struct cm_req req = rig_req();
        struct cm_id *id;
        assert_int_equal(cm_connect(rig.cm, 1, &rig.path, &req, rig_nothing, NULL, &id), 0);
        seen[i] = rig_comm_id(id);
        assert_int_equal(seen[i] >> CM_SLOT_SHIFT, RIG_SLOT);
        for (unsigned k = 0; k < i; k++)
            assert_true(seen[k] != seen[i]);
        if (i > 0 && seen[i] - seen[i - 1] < 1000)
            steps++;
    }
    assert_true(steps < 10);
    cm_destroy(rig.cm);
}

static void cm_ids__all_in_use(void **state)
{
    (void)state;
    rig_begin(&rig, 3);
    struct cm_id *listener = rig_listen(&rig, 0), *id = rig_passive(&rig), *other;
    struct cm_req req = rig_req();
    struct cm_sidr_req sidr = {.service_id = 1};
    struct cm_service service = {.service_id = 1, .bind = CM_BIND_ANY};
    struct cm_id *last = rig_req_sent(&rig);
    assert_int_equal(cm_connect(rig.cm, 1, &rig.path, &req, rig_nothing, NULL, &other), -12);
    assert_int_equal(cm_sidr_connect(rig.cm, 1, &rig.path, &sidr, 20, 1, rig_nothing, NULL, &other),
                     -12);
    assert_int_equal(cm_listen(rig.cm, &service, 0, NULL, &other), -12);
    /* A REQ is dropped in silence: its sender will try again. */
    struct cm_msg m = peer_req(&rig);
    m.req.local_comm_id++;
    m.req.local_qpn++;
    rig_say(&rig, &m);
    rig_silent(&rig);
    rig_no_event(&rig);
    assert_int_equal(cm_count(rig.cm, CM_COUNT_NO_ID), 1);
    /* What only lingers makes room. */
    cm_id_destroy(rig.cm, rig.now_ns, id);
    rig_hear(&rig, CM_DREQ);
    rig_say(&rig, &m);
    id = rig_event(&rig, CM_EVENT_REQ)->id;
    rig_drop(&rig, id);
    rig_drop(&rig, last);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

/* Thousands of connections one after the other, though each lingers in TIMEWAIT. */
static void cm_ids__in_sequence(void **state)
{
    (void)state;
    rig_begin(&rig, 8);
    for (int i = 0; i < 2000; i++) {
        struct cm_id *id = rig_active(&rig);
        struct cm_msg m = peer_msg(CM_DREQ, rig_comm_id(id));
        rig_say(&rig, &m);
        rig_event(&rig, CM_EVENT_DREQ);
        cm_id_destroy(rig.cm, rig.now_ns, id);
        rig_hear(&rig, CM_DREP);
        rig.now_ns += RIG_MS;
        cm_advance(rig.cm, rig.now_ns);
        assert_true(cm_ids_in_use(rig.cm) <= 8);
    }
    rig.now_ns += 20000ull * RIG_MS;
    cm_advance(rig.cm, rig.now_ns);
    rig_end(&rig);
}

static void cm_listen__who_serves_whom(void **state)
{
    (void)state;
    static const struct net_addr v4 = {
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}
    };
    static const struct net_addr v6 = {
        {0xfd, 0x88, [15] = 2}
    };
    static const struct {
        unsigned bind; /* bit i: listener with enum cm_bind i is there; ADDR: on v4 */
        bool to_v6;
        int served; /* enum cm_bind, -1: nobody */
    } rows[] = {
        {0xf, false, CM_BIND_ADDR  },
        {0xe, false, CM_BIND_ANY_V4},
        {0xc, false, CM_BIND_ANY   },
        {0x8, false, CM_BIND_ANY   },
        {0x4, false, -1            },
        {0xf, true,  CM_BIND_ANY_V6},
        {0xb, true,  CM_BIND_ANY   },
        {0x3, true,  -1            },
        {0x1, true,  -1            },
        {0x0, false, -1            },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rig_begin(&rig, 8);
        struct cm_id *listener[4] = {NULL}, *id = NULL, *again;
        for (unsigned bind = 4; bind-- > 0;) {
            struct cm_service service = {RIG_SERVICE, (enum cm_bind)bind, v4};
            if ((rows[i].bind >> bind & 1) == 0)
                continue;
            assert_int_equal(cm_listen(rig.cm, &service, 0, NULL, &listener[bind]), 0);
            assert_int_equal(cm_listen(rig.cm, &service, 0, NULL, &again), -98);
        }
        rig.path.local = rows[i].to_v6 ? v6 : v4;
        rig.path.remote = rows[i].to_v6 ? v6 : v4;
        rig.path.remote.b[15] = 77;
        struct cm_msg m = peer_req(&rig);
        rig_say(&rig, &m);
        if (rows[i].served < 0) {
            assert_int_equal(rig_hear(&rig, CM_REJ)->rej.reason, CM_REJ_INVALID_SERVICE_ID);
            assert_int_equal(cm_count(rig.cm, CM_COUNT_NO_LISTENER), 1);
        } else {
            assert_ptr_equal(rig_event(&rig, CM_EVENT_REQ)->listen, listener[rows[i].served]);
            id = rig.event.id;
            rig_drop(&rig, id);
        }
        for (unsigned bind = 0; bind < 4; bind++)
            if (listener[bind] != NULL)
                rig_drop(&rig, listener[bind]);
        rig_end(&rig);
    }
}

/* So many may wait; others are not told anything, and succeed when there is room. */
static void cm_listen__backlog(void **state)
{
    (void)state;
    rig_begin(&rig, 32);
    struct cm_id *listener = rig_listen(&rig, 3), *id[8];
    struct cm_msg m = peer_req(&rig);
    struct cm_rep rep = rig_rep();
    for (unsigned i = 0; i < 5; i++) {
        m.req.local_comm_id = PEER_ID + i;
        m.req.local_qpn = PEER_QPN + i;
        rig_say(&rig, &m);
    }
    rig_silent(&rig);
    for (unsigned i = 0; i < 3; i++)
        id[i] = rig_event(&rig, CM_EVENT_REQ)->id;
    rig_no_event(&rig);
    assert_int_equal(cm_count(rig.cm, CM_COUNT_BACKLOG_FULL), 2);
    /* Accepted, rejected, given back: each makes room for one. */
    assert_int_equal(cm_reply(rig.cm, rig.now_ns, id[0], &rep, rig_nothing), 0);
    assert_int_equal(cm_reject(rig.cm, rig.now_ns, id[1], 28, rig_nothing, rig_nothing), 0);
    cm_id_destroy(rig.cm, rig.now_ns, id[2]);
    rig_hear(&rig, CM_REP);
    rig_hear(&rig, CM_REJ);
    rig_hear(&rig, CM_REJ);
    for (unsigned i = 0; i < 4; i++) {
        m.req.local_comm_id = PEER_ID + 10 + i;
        m.req.local_qpn = PEER_QPN + 10 + i;
        rig_say(&rig, &m);
    }
    for (unsigned i = 3; i < 6; i++)
        id[i] = rig_event(&rig, CM_EVENT_REQ)->id;
    rig_no_event(&rig);
    assert_int_equal(cm_count(rig.cm, CM_COUNT_BACKLOG_FULL), 3);
    /* And so does one of which somebody knows who shall answer it, but only once. */
    cm_attend(id[3]);
    cm_attend(id[3]);
    for (unsigned i = 0; i < 2; i++) {
        m.req.local_comm_id = PEER_ID + 20 + i;
        m.req.local_qpn = PEER_QPN + 20 + i;
        rig_say(&rig, &m);
    }
    id[6] = rig_event(&rig, CM_EVENT_REQ)->id;
    rig_no_event(&rig);
    assert_int_equal(cm_count(rig.cm, CM_COUNT_BACKLOG_FULL), 4);
    assert_int_equal(cm_reply(rig.cm, rig.now_ns, id[3], &rep, rig_nothing), 0);
    rig_hear(&rig, CM_REP);
    for (unsigned i = 0; i < 7; i++)
        if (i != 2)
            rig_drop(&rig, id[i]);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

static unsigned sunk;

static void sink_count(struct cm_sink *sink, const struct cm_path *path,
                       const uint8_t mad[MAD_BYTES])
{
    (void)sink, (void)path, (void)mad;
    sunk++;
}

static void sink_all(void)
{
    struct cm_sink sink = {.mad = sink_count};
    while (cm_output(rig.cm, &sink, 64))
        ;
}

/* A REQ that asks properly, each from another address; nobody there will answer. */
static void forged_req(uint32_t number)
{
    struct cm_path path = rig.path;
    memcpy(path.remote.b + 12, &(uint32_t){0x0100000a + (number << 8)}, 4);
    struct cm_msg m = peer_req(&rig);
    m.req.local_comm_id += number;
    memcpy(m.req.primary.local_gid, path.remote.b, 16);
    uint8_t mad[MAD_BYTES];
    cm_msg_build(&m, mad);
    cm_input(rig.cm, rig.now_ns, &path, mad, sizeof(mad));
    sink_all();
}

/* Thousands of senders that will never answer: only so many are kept, those are forgotten when
 * their time is over, and a proper peer's next try succeeds. accepts: the owner does, always. */
static void cm_listen__flood(void **state)
{
    (void)state;
    enum { IDS = 200, BACKLOG = 32, FORGED = 5000 };
    for (int accepts = 0; accepts < 2; accepts++) {
        rig_begin(&rig, IDS);
        struct cm_id *listener = rig_listen(&rig, BACKLOG), *id[IDS];
        struct cm_rep rep = rig_rep();
        struct cm_event e;
        unsigned ids = 0, gone = 0;
        sunk = 0;
        for (unsigned i = 0; i < FORGED; i++) {
            forged_req(i);
            while (cm_event_next(rig.cm, &e)) {
                assert_int_equal(e.type, CM_EVENT_REQ);
                if (accepts != 0)
                    assert_int_equal(cm_reply(rig.cm, rig.now_ns, e.id, &rep, rig_nothing), 0);
                id[ids++] = e.id;
            }
            sink_all();
        }
        assert_int_equal(ids, accepts != 0 ? IDS - 1 : BACKLOG);
        assert_int_equal(cm_ids_in_use(rig.cm), ids + 1);
        assert_int_equal(sunk, accepts != 0 ? ids : 0); /* nothing to those that were dropped */
        struct cm_msg m = peer_req(&rig);
        m.req.local_comm_id = PEER_ID - 1;
        rig_say(&rig, &m);
        rig_no_event(&rig);
        /* The owner hears of the end of those that it accepted, and gives up the others. */
        for (unsigned i = 0; accepts == 0 && i < ids; i++)
            cm_id_destroy(rig.cm, rig.now_ns, id[i]);
        for (uint64_t end = rig.now_ns + 120000ull * RIG_MS; rig.now_ns < end;) {
            rig.now_ns += 1000ull * RIG_MS;
            cm_advance(rig.cm, rig.now_ns);
            sink_all();
            while (cm_event_next(rig.cm, &e)) {
                assert_int_equal(e.type, CM_EVENT_UNREACHABLE);
                cm_id_destroy(rig.cm, rig.now_ns, e.id);
                gone++;
            }
        }
        assert_int_equal(gone, accepts != 0 ? ids : 0);
        assert_int_equal(cm_ids_in_use(rig.cm), 1);
        rig_say(&rig, &m);
        rig_drop(&rig, rig_event(&rig, CM_EVENT_REQ)->id);
        rig_drop(&rig, listener);
        rig_end(&rig);
    }
}

static uint32_t noted[300];
static unsigned noted_count;

static void note_req(struct cm_sink *sink, const struct cm_path *path, const uint8_t mad[MAD_BYTES])
{
    struct cm_msg m;
    (void)sink;
    (void)path;
    cm_msg_parse(mad, &m);
    assert_int_equal(m.header.attribute, CM_REQ);
    noted[noted_count++] = m.req.local_comm_id;
}

/* Output that nobody fetches: messages with an id wait, answers without one are lost. */
static void cm_output__full(void **state)
{
    (void)state;
    enum { N = 300 };
    static struct cm_id *id[N];
    rig_begin(&rig, N);
    struct cm_req req = rig_req();
    struct cm_msg m = peer_req(&rig);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(cm_connect(rig.cm, 1, &rig.path, &req, rig_nothing, NULL, &id[i]), 0);
    rig_say(&rig, &m);
    assert_int_equal(cm_count(rig.cm, CM_COUNT_OUTPUT_LOST), 1);
    struct cm_sink sink = {.mad = note_req};
    noted_count = 0;
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(cm_output(rig.cm, &sink, 1), i < N - 1);
    assert_false(cm_has_output(rig.cm));
    assert_int_equal(noted_count, N);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(noted[i], rig_comm_id(id[i]));
    assert_int_equal(cm_count(rig.cm, CM_COUNT_OUT), N);
    cm_destroy(rig.cm);
}

static void cm_owner__can_change(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *id = rig_req_sent(&rig);
    int other;
    struct cm_msg m = peer_msg(CM_REP, rig_comm_id(id));
    assert_ptr_equal(cm_owner(id), &rig);
    rig_say(&rig, &m);
    cm_set_owner(id, &other);
    assert_ptr_equal(rig_event(&rig, CM_EVENT_REP)->owner, &other);
    rig_drop(&rig, id);
    rig_end(&rig);
}

static void cm_names__all_differ(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CM_EVENT_COUNT; i++)
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(cm_event_name(i), cm_event_name(k));
    for (unsigned i = 0; i < CM_STATE_COUNT; i++)
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(cm_state_name(i), cm_state_name(k));
    for (unsigned i = 0; i < CM_COUNTERS; i++)
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(cm_counter_name(i), cm_counter_name(k));
    assert_string_equal(cm_event_name(CM_EVENT_COUNT), "?");
    assert_string_equal(cm_state_name(CM_STATE_COUNT), "?");
    assert_string_equal(cm_counter_name(CM_COUNTERS), "?");
    assert_string_equal(cm_event_name(CM_EVENT_SIDR_REP), "SIDR_REP");
    assert_string_equal(cm_state_name(CM_STATE_FINISHED), "FINISHED");
    assert_string_equal(cm_counter_name(CM_COUNT_OUTPUT_LOST), "cm_output_lost");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(cm_create__what_cannot_be),  cmocka_unit_test(cm_comm_id__slot_and_chance),
        cmocka_unit_test(cm_ids__all_in_use),         cmocka_unit_test(cm_ids__in_sequence),
        cmocka_unit_test(cm_listen__who_serves_whom), cmocka_unit_test(cm_listen__backlog),
        cmocka_unit_test(cm_listen__flood),           cmocka_unit_test(cm_output__full),
        cmocka_unit_test(cm_owner__can_change),       cmocka_unit_test(cm_names__all_differ),
    };
    return cmocka_run_group_tests_name("cm", tests, NULL, NULL);
}
