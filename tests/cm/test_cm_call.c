/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cm_call.c: what the owner may ask for and when, and what time does: retries, time-outs,
 * TIMEWAIT, the end of an id in each state.
 */
#include "base/bytes.h"
#include "rig.h"

static struct rig rig;
static const uint64_t response_ns = 4096ull << 20, timewait_ns = 4096ull << 19;

/* Each call in each state: those that no row allows must change nothing. */

enum call {
    CALL_REPLY = 1 << 0,
    CALL_READY = 1 << 1,
    CALL_REJECT = 1 << 2,
    CALL_MRA = 1 << 3,
    CALL_ESTABLISH = 1 << 4,
    CALL_DISCONNECT = 1 << 5,
    CALL_SIDR_REPLY = 1 << 6,
    CALLS = 7,
};

static int make_call(unsigned call, struct cm_id *id, struct cm_private data)
{
    const struct cm_rep rep = rig_rep();
    static const struct cm_sidr_rep sidr_rep;
    switch (call) {
    case CALL_REPLY:
        return cm_reply(rig.cm, rig.now_ns, id, &rep, data);
    case CALL_READY:
        return cm_ready(rig.cm, rig.now_ns, id, data);
    case CALL_REJECT:
        return cm_reject(rig.cm, rig.now_ns, id, CM_REJ_CONSUMER_DEFINED, rig_nothing, data);
    case CALL_MRA:
        return cm_mra(rig.cm, rig.now_ns, id, 20, data);
    case CALL_ESTABLISH:
        return cm_establish(rig.cm, rig.now_ns, id);
    case CALL_DISCONNECT:
        return cm_disconnect(rig.cm, rig.now_ns, id, data);
    default:
        return cm_sidr_reply(rig.cm, rig.now_ns, id, &sidr_rep, data);
    }
}

static struct cm_id *begin_dreq_sent(struct rig *r)
{
    struct cm_id *id = rig_active(r);
    assert_int_equal(cm_disconnect(r->cm, r->now_ns, id, rig_nothing), 0);
    rig_hear(r, CM_DREQ);
    return id;
}

static struct cm_id *begin_timewait(struct rig *r)
{
    struct cm_id *id = begin_dreq_sent(r);
    struct cm_msg m = peer_msg(CM_DREP, rig_comm_id(id));
    rig_say(r, &m);
    rig_event(r, CM_EVENT_DISCONNECTED);
    return id;
}

static struct cm_id *begin_rejected(struct rig *r)
{
    struct cm_id *id = rig_req_sent(r);
    struct cm_msg m = peer_msg(CM_REJ, rig_comm_id(id));
    rig_say(r, &m);
    rig_event(r, CM_EVENT_REJ);
    return id;
}

static struct cm_id *begin_rej_sent(struct rig *r)
{
    struct cm_id *id = rig_req_rcvd(r);
    assert_int_equal(make_call(CALL_REJECT, id, rig_nothing), 0);
    rig_hear(r, CM_REJ);
    return id;
}

static struct cm_id *begin_sidr_rcvd(struct rig *r)
{
    struct cm_msg m = {.header = {.attribute = CM_SIDR_REQ}};
    m.sidr_req.request_id = PEER_ID;
    m.sidr_req.service_id = RIG_SERVICE;
    rig_say(r, &m);
    return rig_event(r, CM_EVENT_SIDR_REQ)->id;
}

static struct cm_id *begin_sidr_sent(struct rig *r)
{
    struct cm_sidr_req req = {.service_id = RIG_SERVICE};
    struct cm_id *id;
    assert_int_equal(cm_sidr_connect(r->cm, r->now_ns, &r->path, &req, 20, 2, rig_nothing, r, &id),
                     0);
    rig_hear(r, CM_SIDR_REQ);
    return id;
}

static const struct {
    struct cm_id *(*begin)(struct rig *);
    enum cm_state state;
    unsigned calls;   /* that are allowed */
    unsigned leaving; /* what destroy sends, 0: nothing */
    uint16_t reason;  /* of a REJ */
    unsigned ids;     /* in use after destroy, the listener's included */
} states[] = {
    {rig_req_sent,    CM_STATE_REQ_SENT,      0,                                   CM_REJ,      4,  1},
    {rig_rep_rcvd,    CM_STATE_REP_RCVD,      CALL_READY | CALL_REJECT | CALL_MRA, CM_REJ,      28, 2},
    {rig_active,      CM_STATE_ESTABLISHED,   CALL_DISCONNECT | CALL_ESTABLISH,    CM_DREQ,     0,  2},
    {rig_req_rcvd,    CM_STATE_REQ_RCVD,      CALL_REPLY | CALL_REJECT | CALL_MRA, CM_REJ,      28, 2},
    {rig_rep_sent,    CM_STATE_REP_SENT,      CALL_ESTABLISH | CALL_REJECT,        CM_REJ,      28, 2},
    {rig_passive,     CM_STATE_ESTABLISHED,   CALL_DISCONNECT | CALL_ESTABLISH,    CM_DREQ,     0,  2},
    {begin_dreq_sent, CM_STATE_DREQ_SENT,     CALL_DISCONNECT,                     0,           0,  2},
    {begin_timewait,  CM_STATE_TIMEWAIT,      CALL_DISCONNECT,                     0,           0,  2},
    {begin_rejected,  CM_STATE_FINISHED,      0,                                   0,           0,  1},
    {begin_rej_sent,  CM_STATE_REJ_SENT,      0,                                   0,           0,  2},
    {begin_sidr_rcvd, CM_STATE_SIDR_REQ_RCVD, CALL_SIDR_REPLY,                     CM_SIDR_REP, 2,  2},
    {begin_sidr_sent, CM_STATE_SIDR_REQ_SENT, 0,                                   0,           0,  1},
};
enum { STATES = sizeof(states) / sizeof(states[0]) };

static void cm_call__only_in_its_states(void **state)
{
    (void)state;
    for (size_t i = 0; i < STATES; i++) {
        for (unsigned k = 0; k < CALLS; k++) {
            bool allowed = states[i].calls >> k & 1;
            rig_begin(&rig, 8);
            struct cm_id *listener = rig_listen(&rig, 0), *id = states[i].begin(&rig);
            assert_int_equal(cm_id_state(id), states[i].state);
            if (allowed) {
                assert_int_equal(make_call(1u << k, id, rig_nothing), 0);
            } else {
                assert_int_equal(make_call(1u << k, id, rig_nothing), -22);
                rig_silent(&rig);
                rig_no_event(&rig);
                assert_int_equal(cm_id_state(id), states[i].state);
            }
            rig_drop(&rig, id);
            rig_drop(&rig, listener);
            rig_end(&rig);
        }
    }
}

/* Case 89: private data that does not fit is refused, what fits arrives whole. */
static void case_89_private_data(void **state)
{
    (void)state;
    static const uint8_t bytes[225] = {
        [0] = 1, [55] = 2, [91] = 3, [135] = 4, [147] = 5, [223] = 6};
    static const struct {
        struct cm_id *(*begin)(struct rig *);
        unsigned call, message;
        size_t limit;
    } rows[] = {
        {rig_req_rcvd,    CALL_REPLY,      CM_REP,      196},
        {rig_req_rcvd,    CALL_REJECT,     CM_REJ,      148},
        {rig_req_rcvd,    CALL_MRA,        CM_MRA,      222},
        {rig_rep_rcvd,    CALL_READY,      CM_RTU,      224},
        {rig_active,      CALL_DISCONNECT, CM_DREQ,     220},
        {begin_sidr_rcvd, CALL_SIDR_REPLY, CM_SIDR_REP, 136},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rig_begin(&rig, 8);
        struct cm_id *listener = rig_listen(&rig, 0), *id = rows[i].begin(&rig);
        enum cm_state before = cm_id_state(id);
        uint8_t mad[MAD_BYTES];
        assert_int_equal(make_call(rows[i].call, id, (struct cm_private){bytes, rows[i].limit + 1}),
                         -22);
        assert_int_equal(cm_id_state(id), before);
        rig_silent(&rig);
        assert_int_equal(make_call(rows[i].call, id, (struct cm_private){bytes, rows[i].limit}), 0);
        cm_msg_build(rig_hear(&rig, rows[i].message), mad);
        assert_memory_equal(mad + MAD_BYTES - rows[i].limit, bytes, rows[i].limit);
        rig_drop(&rig, id);
        rig_drop(&rig, listener);
        rig_end(&rig);
    }
    rig_begin(&rig, 8);
    struct cm_req req = rig_req();
    struct cm_sidr_req sidr = {.service_id = 1};
    struct cm_private fits = {bytes, 92}, too_long = {bytes, 93}, sidr_too_long = {bytes, 217};
    struct cm_id *id;
    assert_int_equal(cm_connect(rig.cm, 1, &rig.path, &req, too_long, NULL, &id), -22);
    assert_int_equal(cm_sidr_connect(rig.cm, 1, &rig.path, &sidr, 20, 1, sidr_too_long, NULL, &id),
                     -22);
    assert_int_equal(cm_ids_in_use(rig.cm), 0);
    assert_int_equal(cm_connect(rig.cm, 1, &rig.path, &req, fits, NULL, &id), 0);
    assert_memory_equal(rig_hear(&rig, CM_REQ)->req.private_data, bytes, 92);
    rig_drop(&rig, id);
    rig_end(&rig);
}

static void cm_connect__fills_in(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_req req = rig_req();
    struct cm_id *id;
    rig.path.traffic_class = 0x28;
    assert_int_equal(cm_connect(rig.cm, rig.now_ns, &rig.path, &req, rig_nothing, NULL, &id), 0);
    const struct cm_req *said = &rig_hear(&rig, CM_REQ)->req;
    req.local_comm_id = rig_comm_id(id);
    req.local_ca_guid = RIG_GUID;
    req.primary = (struct cm_msg_path){
        .local_lid = 0xffff,
        .remote_lid = 0xffff,
        .flow_label = 0xabcde,
        .traffic_class = 0x28,
        .hop_limit = 64,
        .local_ack_timeout = 19,
    };
    memcpy(req.primary.local_gid, rig.path.local.b, 16);
    memcpy(req.primary.remote_gid, rig.path.remote.b, 16);
    assert_memory_equal(said, &req, sizeof(req));
    assert_int_equal(said->local_comm_id >> CM_SLOT_SHIFT, RIG_SLOT);
    rig_drop(&rig, id);
    rig_end(&rig);
}

static void cm_connect__impossible_fields(void **state)
{
    (void)state;
    static const struct {
        size_t at, bytes;
        uint32_t value;
    } rows[] = {
#define ROW(member, value)                                                                         \
    {offsetof(struct cm_req, member), sizeof(((struct cm_req *)0)->member), value}
        ROW(transport, CM_TRANSPORT_RD),
        ROW(transport, CM_TRANSPORT_EXTENDED),
        ROW(local_qpn, 1),
        ROW(local_qpn, 1 << 24),
        ROW(starting_psn, 1 << 24),
        ROW(ece_vendor_id, 1 << 24),
        ROW(local_eecn, 1),
        ROW(remote_eecn, 1),
        ROW(remote_cm_response_timeout, 32),
        ROW(local_cm_response_timeout, 32),
        ROW(retry_count, 8),
        ROW(rnr_retry_count, 8),
        ROW(max_cm_retries, 16),
        ROW(path_mtu, 0),
        ROW(path_mtu, 6),
        ROW(transport_extended, 8),
        ROW(primary.packet_rate, 64),
        ROW(primary.sl, 16),
        ROW(primary.local_ack_timeout, 32),
        ROW(alternate.flow_label, 1 << 20),
#undef ROW
    };
    rig_begin(&rig, 4);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cm_req req = rig_req();
        struct cm_id *id;
        uint8_t small = (uint8_t)rows[i].value;
        memcpy((uint8_t *)&req + rows[i].at,
               rows[i].bytes == 1 ? (const void *)&small : (const void *)&rows[i].value,
               rows[i].bytes);
        assert_int_equal(cm_connect(rig.cm, 1, &rig.path, &req, rig_nothing, NULL, &id), -22);
    }
    struct cm_req req = rig_req();
    struct cm_id *id;
    rig.path.flow_label = 1 << 20;
    assert_int_equal(cm_connect(rig.cm, 1, &rig.path, &req, rig_nothing, NULL, &id), -22);
    rig_end(&rig);
}

static void cm_reply__impossible_fields(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *listener = rig_listen(&rig, 0), *id = rig_req_rcvd(&rig);
    for (int i = 0; i < 8; i++) {
        struct cm_rep rep = rig_rep();
        rep.local_qpn = i == 0 ? 1 : i == 1 ? 1 << 24 : RIG_QPN;
        rep.starting_psn = i == 2 ? 1 << 24 : 0;
        rep.ece_vendor_id = i == 3 ? 1 << 24 : 0;
        rep.local_eecn = i == 4;
        rep.target_ack_delay = i == 5 ? 32 : 0;
        rep.failover_accepted = i == 6 ? 3 : 0;
        rep.rnr_retry_count = i == 7 ? 8 : 7;
        assert_int_equal(cm_reply(rig.cm, rig.now_ns, id, &rep, rig_nothing), -22);
    }
    rig_silent(&rig);
    rig_drop(&rig, id);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

/* Time. IBA 12.9 */

/* The same message, so many times more, so far apart. */
static void expect_retries(unsigned attribute, unsigned retries, uint64_t apart_ns)
{
    uint64_t tid = 0;
    for (unsigned i = 0; i < retries; i++) {
        rig_wait(&rig, apart_ns);
        const struct cm_msg *m = rig_hear(&rig, attribute);
        assert_true(i == 0 || m->header.tid == tid);
        tid = m->header.tid;
        rig_no_event(&rig);
    }
    rig_wait(&rig, apart_ns);
}

/* Who goes on with a REQ that was given up knows its sender by the CA that it named. */
static void cm_id_destroy__names_the_ca_of_its_req(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_req req = rig_req();
    struct cm_id *id;
    req.local_ca_guid = 0x0200c0fffe123456;
    assert_int_equal(cm_connect(rig.cm, rig.now_ns, &rig.path, &req, rig_nothing, NULL, &id), 0);
    assert_true(rig_hear(&rig, CM_REQ)->req.local_ca_guid == 0x0200c0fffe123456);
    cm_id_destroy(rig.cm, rig.now_ns, id);
    const struct cm_msg *rej = rig_hear(&rig, CM_REJ);
    assert_int_equal(rej->rej.reason, CM_REJ_TIMEOUT);
    assert_true(get_be64(rej->rej.info) == 0x0200c0fffe123456);
    rig_end(&rig);
}

static void cm_time__req_unanswered(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *id = rig_req_sent(&rig);
    expect_retries(CM_REQ, 15, response_ns);
    const struct cm_msg *rej = rig_hear(&rig, CM_REJ);
    assert_int_equal(rej->rej.reason, CM_REJ_TIMEOUT);
    assert_int_equal(rej->rej.info_bytes, 8);
    assert_true(get_be64(rej->rej.info) == RIG_GUID);
    assert_int_equal(rej->rej.remote_comm_id, 0);
    assert_int_equal(rig_event(&rig, CM_EVENT_UNREACHABLE)->step, CM_REQ);
    assert_int_equal(cm_id_state(id), CM_STATE_FINISHED);
    assert_int_equal(cm_count(rig.cm, CM_COUNT_RETRIES), 15);
    assert_int_equal(cm_count(rig.cm, CM_COUNT_RETRY_EXCEEDED), 1);
    rig_drop(&rig, id);
    rig_end(&rig);
}

static void cm_time__rep_unanswered(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *listener = rig_listen(&rig, 0), *id = rig_rep_sent(&rig);
    expect_retries(CM_REP, 15, response_ns);
    const struct cm_msg *rej = rig_hear(&rig, CM_REJ);
    assert_int_equal(rej->rej.reason, CM_REJ_TIMEOUT);
    assert_int_equal(rej->rej.remote_comm_id, PEER_ID);
    assert_int_equal(rig_event(&rig, CM_EVENT_UNREACHABLE)->step, CM_REP);
    rig_drop(&rig, id);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

static void cm_time__dreq_unanswered(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *id = begin_dreq_sent(&rig);
    expect_retries(CM_DREQ, 15, response_ns);
    struct cm_event *e = rig_event(&rig, CM_EVENT_DISCONNECTED);
    assert_int_equal(e->step, CM_DREQ);
    assert_false(e->has_msg);
    rig_wait(&rig, timewait_ns);
    rig_event(&rig, CM_EVENT_TIMEWAIT_EXIT);
    rig_silent(&rig);
    rig_drop(&rig, id);
    rig_end(&rig);
}

static void cm_time__sidr_req_unanswered(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *id = begin_sidr_sent(&rig);
    expect_retries(CM_SIDR_REQ, 2, response_ns);
    assert_int_equal(rig_event(&rig, CM_EVENT_UNREACHABLE)->step, CM_SIDR_REQ);
    rig_drop(&rig, id);
    rig_end(&rig);
}

/* Codes that a peer chooses are kept within bounds: no storm, and no eternity. */
static void cm_time__bounds(void **state)
{
    (void)state;
    static const struct {
        uint8_t code, effective;
    } rows[] = {
        {0,  8 },
        {7,  8 },
        {8,  8 },
        {9,  9 },
        {22, 22},
        {23, 22},
        {31, 22},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rig_begin(&rig, 4);
        struct cm_id *listener = rig_listen(&rig, 0);
        struct cm_msg m = peer_req(&rig);
        struct cm_rep rep = rig_rep();
        m.req.local_cm_response_timeout = rows[i].code;
        m.req.max_cm_retries = 1;
        rig_say(&rig, &m);
        struct cm_id *id = rig_event(&rig, CM_EVENT_REQ)->id;
        assert_int_equal(cm_reply(rig.cm, rig.now_ns, id, &rep, rig_nothing), 0);
        rig_hear(&rig, CM_REP);
        expect_retries(CM_REP, 1, 4096ull << rows[i].effective);
        rig_hear(&rig, CM_REJ);
        rig_event(&rig, CM_EVENT_UNREACHABLE);
        rig_drop(&rig, id);
        rig_drop(&rig, listener);
        rig_end(&rig);
    }
}

/* An MRA buys its sender the time that it says, once; then the retries go on. */
static void cm_time__mra_extends(void **state)
{
    (void)state;
    static const struct {
        uint8_t code, effective;
    } rows[] = {
        {10, 10},
        {24, 24},
        {31, 24},
        {0,  8 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rig_begin(&rig, 4);
        struct cm_id *id = rig_req_sent(&rig);
        struct cm_msg m = peer_msg(CM_MRA, rig_comm_id(id));
        m.mra.service_timeout = rows[i].code;
        rig_idle(&rig, 1000 * RIG_MS);
        rig_say(&rig, &m);
        assert_int_equal(rig_event(&rig, CM_EVENT_MRA)->msg.mra.service_timeout, rows[i].code);
        rig_wait(&rig, response_ns + (4096ull << rows[i].effective));
        rig_hear(&rig, CM_REQ);
        expect_retries(CM_REQ, 14, response_ns);
        rig_hear(&rig, CM_REJ);
        rig_event(&rig, CM_EVENT_UNREACHABLE);
        rig_drop(&rig, id);
        rig_end(&rig);
    }
}

/* Many MRAs of which nobody has read the first are one event. */
static void cm_time__mra_flood(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *id = rig_req_sent(&rig);
    struct cm_msg m = peer_msg(CM_MRA, rig_comm_id(id));
    struct cm_msg rep = peer_msg(CM_REP, rig_comm_id(id));
    struct cm_msg dreq = peer_msg(CM_DREQ, rig_comm_id(id));
    for (int i = 0; i < 20; i++)
        rig_say(&rig, &m);
    rig_say(&rig, &rep);
    assert_int_equal(cm_ready(rig.cm, rig.now_ns, id, rig_nothing), 0);
    rig_hear(&rig, CM_RTU);
    rig_say(&rig, &dreq);
    rig_wait(&rig, timewait_ns);
    rig_hear(&rig, CM_DREP);
    rig_event(&rig, CM_EVENT_MRA);
    rig_event(&rig, CM_EVENT_REP);
    rig_event(&rig, CM_EVENT_ESTABLISHED);
    rig_event(&rig, CM_EVENT_DREQ);
    rig_event(&rig, CM_EVENT_TIMEWAIT_EXIT);
    rig_drop(&rig, id);
    rig_end(&rig);
}

/* Slow, and asked again: little time first, for an answer that gets lost is missed until its end;
 * twice as much each time, and the most when the peer will not ask much longer. */
static void cm_time__asked_for_grows(void **state)
{
    (void)state;
    static const struct {
        uint8_t retries;
        uint8_t codes[9];
    } rows[] = {
        {15, {18, 19, 20, 21, 22, 23, 24, 24, 24}},
        {6,  {18, 19, 20, 21, 22, 23, 24, 24, 24}},
        {3,  {21, 22, 23, 24, 24, 24, 24, 24, 24}},
        {1,  {23, 24, 24, 24, 24, 24, 24, 24, 24}},
        {0,  {24, 24, 24, 24, 24, 24, 24, 24, 24}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rig_begin(&rig, 4);
        struct cm_id *listener = rig_listen(&rig, 0);
        struct cm_msg m = peer_req(&rig);
        m.req.max_cm_retries = rows[i].retries;
        rig_say(&rig, &m);
        struct cm_id *id = rig_event(&rig, CM_EVENT_REQ)->id;
        for (unsigned k = 0; k < sizeof(rows[i].codes); k++) {
            rig_say(&rig, &m);
            assert_int_equal(rig_hear(&rig, CM_MRA)->mra.service_timeout, rows[i].codes[k]);
        }
        for (unsigned k = 0; k < 300; k++) {
            rig_say(&rig, &m);
            assert_int_equal(rig_hear(&rig, CM_MRA)->mra.service_timeout, 24);
        }
        rig_drop(&rig, id);
        rig_drop(&rig, listener);
        rig_end(&rig);
    }
}

/* A REP that came twice before the program was ready; the RTU is lost. The passive side has been
 * told to wait, but not for long: its next REP gets the RTU again. */
static void cm_time__lost_rtu_after_an_mra(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *active = rig_rep_rcvd(&rig);
    struct cm_msg m = peer_msg(CM_REP, rig_comm_id(active));
    rig_say(&rig, &m);
    const uint8_t code = rig_hear(&rig, CM_MRA)->mra.service_timeout;
    assert_int_equal(cm_ready(rig.cm, rig.now_ns, active, rig_nothing), 0);
    rig_hear(&rig, CM_RTU);
    rig_event(&rig, CM_EVENT_ESTABLISHED);
    rig_say(&rig, &m);
    rig_hear(&rig, CM_RTU);
    rig_drop(&rig, active);
    rig_end(&rig);

    rig_begin(&rig, 4);
    struct cm_id *listener = rig_listen(&rig, 0);
    struct cm_id *passive = rig_rep_sent(&rig);
    m = peer_msg(CM_MRA, rig_comm_id(passive));
    m.mra.about = CM_ABOUT_REP;
    m.mra.service_timeout = code;
    rig_say(&rig, &m);
    rig_event(&rig, CM_EVENT_MRA);
    assert_in_range(code, 8, 18);
    rig_wait(&rig, response_ns + (4096ull << code));
    rig_hear(&rig, CM_REP);
    m = peer_msg(CM_RTU, rig_comm_id(passive));
    rig_say(&rig, &m);
    rig_event(&rig, CM_EVENT_ESTABLISHED);
    rig_drop(&rig, passive);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

/* The first data came, the RTU did not: established, and no REP any more. */
static void cm_establish__covers_a_lost_rtu(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *listener = rig_listen(&rig, 0), *id = rig_rep_sent(&rig);
    struct cm_msg rtu = peer_msg(CM_RTU, rig_comm_id(id));
    assert_int_equal(cm_establish(rig.cm, rig.now_ns, id), 0);
    assert_false(rig_event(&rig, CM_EVENT_ESTABLISHED)->has_msg);
    assert_true(cm_deadline(rig.cm) == UINT64_MAX);
    rig_say(&rig, &rtu);
    rig_no_event(&rig);
    assert_int_equal(cm_disconnect(rig.cm, rig.now_ns, id, rig_nothing), 0);
    const struct cm_msg *dreq = rig_hear(&rig, CM_DREQ);
    assert_int_equal(dreq->dreq.remote_qpn, PEER_QPN);
    assert_true(dreq->header.tid != 0x77); /* a transaction of our own */
    rig_drop(&rig, id);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

/* The DREP goes when the caller has done with the connection, whatever it calls, and once. */
static void cm_disconnect__answers_the_peers_dreq(void **state)
{
    (void)state;
    enum { DISCONNECT, DESTROY, TIME, SAY_AGAIN, WAYS };
    for (int way = 0; way < WAYS; way++) {
        rig_begin(&rig, 4);
        struct cm_id *id = rig_active(&rig);
        struct cm_msg m = peer_msg(CM_DREQ, rig_comm_id(id));
        m.header.tid = 0x4711;
        rig_say(&rig, &m);
        rig_event(&rig, CM_EVENT_DREQ);
        rig_silent(&rig);
        if (way == DISCONNECT)
            assert_int_equal(cm_disconnect(rig.cm, rig.now_ns, id, rig_nothing), 0);
        else if (way == DESTROY)
            cm_id_destroy(rig.cm, rig.now_ns, id);
        else if (way == TIME)
            rig_wait(&rig, 4096ull << 19);
        else
            cm_say_again(rig.cm);
        assert_true(rig_hear(&rig, CM_DREP)->header.tid == 0x4711);
        rig_silent(&rig);
        if (way == TIME)
            rig_event(&rig, CM_EVENT_TIMEWAIT_EXIT);
        if (way == DESTROY)
            rig_wait(&rig, 4096ull << 19);
        else
            rig_drop(&rig, id);
        rig_end(&rig);
    }
}

static void cm_reject__what_it_says(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *listener = rig_listen(&rig, 0), *id = rig_req_rcvd(&rig);
    static const uint8_t bytes[CM_INFO_BYTES + 1] = {0xfe, 0x80};
    struct cm_private info = {bytes, 16}, too_long = {bytes, sizeof(bytes)}, data = {"no", 2};
    assert_int_equal(cm_reject(rig.cm, rig.now_ns, id, 12, too_long, data), -22);
    assert_int_equal(cm_reject(rig.cm, rig.now_ns, id, 65536, info, data), -22);
    assert_int_equal(cm_reject(rig.cm, rig.now_ns, id, CM_REJ_INVALID_GID, info, data), 0);
    const struct cm_rej *rej = &rig_hear(&rig, CM_REJ)->rej;
    assert_int_equal(rej->reason, 12);
    assert_int_equal(rej->about, CM_ABOUT_REQ);
    assert_int_equal(rej->info_bytes, 16);
    assert_memory_equal(rej->info, bytes, 16);
    assert_memory_equal(rej->private_data, "no", 3);
    /* Then it answers repetitions for twice the time that the peer waits. */
    rig_wait(&rig, 2 * response_ns);
    assert_int_equal(cm_id_state(id), CM_STATE_FINISHED);
    rig_drop(&rig, id);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

static void cm_id_destroy__each_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < STATES; i++) {
        rig_begin(&rig, 8);
        struct cm_id *listener = rig_listen(&rig, 0), *id = states[i].begin(&rig);
        cm_id_destroy(rig.cm, rig.now_ns, id);
        if (states[i].leaving != 0) {
            const struct cm_msg *m = rig_hear(&rig, states[i].leaving);
            if (states[i].leaving == CM_REJ)
                assert_int_equal(m->rej.reason, states[i].reason);
            if (states[i].leaving == CM_SIDR_REP)
                assert_int_equal(m->sidr_rep.status, states[i].reason);
        }
        rig_silent(&rig);
        assert_int_equal(cm_ids_in_use(rig.cm), states[i].ids);
        /* All that runs on comes to an end by itself, and unseen. */
        while (cm_deadline(rig.cm) != UINT64_MAX) {
            rig.now_ns = cm_deadline(rig.cm);
            cm_advance(rig.cm, rig.now_ns);
            while (cm_output(rig.cm, &rig.sink, 8))
                ;
            assert_true(rig.count <= 16);
        }
        rig.count = 0;
        rig_no_event(&rig);
        assert_int_equal(cm_ids_in_use(rig.cm), 1);
        rig_drop(&rig, listener);
        rig_end(&rig);
    }
}

static void cm_id_destroy__events_go_with_it(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *id = rig_req_sent(&rig);
    struct cm_msg m = peer_msg(CM_REP, rig_comm_id(id));
    rig_say(&rig, &m);
    assert_true(cm_has_event(rig.cm));
    rig_drop(&rig, id);
    rig_end(&rig);
}

/* A listener takes along what nobody has seen, and leaves what somebody has. */
static void cm_id_destroy__listener(void **state)
{
    (void)state;
    rig_begin(&rig, 8);
    struct cm_id *listener = rig_listen(&rig, 0), *seen = rig_req_rcvd(&rig);
    struct cm_msg m = peer_req(&rig);
    m.req.local_comm_id++;
    m.req.local_qpn++;
    rig_say(&rig, &m);
    cm_id_destroy(rig.cm, rig.now_ns, listener);
    const struct cm_msg *rej = rig_hear(&rig, CM_REJ);
    assert_int_equal(rej->rej.reason, CM_REJ_CONSUMER_DEFINED);
    assert_int_equal(rej->rej.remote_comm_id, PEER_ID + 1);
    rig_silent(&rig);
    rig_no_event(&rig);
    assert_int_equal(make_call(CALL_REPLY, seen, rig_nothing), 0);
    rig_hear(&rig, CM_REP);
    m.req.local_comm_id++;
    m.req.local_qpn++;
    rig_say(&rig, &m);
    assert_int_equal(rig_hear(&rig, CM_REJ)->rej.reason, CM_REJ_INVALID_SERVICE_ID);
    rig_drop(&rig, seen);
    rig_end(&rig);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(cm_call__only_in_its_states),
        cmocka_unit_test(case_89_private_data),
        cmocka_unit_test(cm_connect__fills_in),
        cmocka_unit_test(cm_connect__impossible_fields),
        cmocka_unit_test(cm_reply__impossible_fields),
        cmocka_unit_test(cm_id_destroy__names_the_ca_of_its_req),
        cmocka_unit_test(cm_time__req_unanswered),
        cmocka_unit_test(cm_time__rep_unanswered),
        cmocka_unit_test(cm_time__dreq_unanswered),
        cmocka_unit_test(cm_time__sidr_req_unanswered),
        cmocka_unit_test(cm_time__bounds),
        cmocka_unit_test(cm_time__mra_extends),
        cmocka_unit_test(cm_time__mra_flood),
        cmocka_unit_test(cm_time__asked_for_grows),
        cmocka_unit_test(cm_time__lost_rtu_after_an_mra),
        cmocka_unit_test(cm_disconnect__answers_the_peers_dreq),
        cmocka_unit_test(cm_establish__covers_a_lost_rtu),
        cmocka_unit_test(cm_reject__what_it_says),
        cmocka_unit_test(cm_id_destroy__each_state),
        cmocka_unit_test(cm_id_destroy__events_go_with_it),
        cmocka_unit_test(cm_id_destroy__listener),
    };
    return cmocka_run_group_tests_name("cm_call", tests, NULL, NULL);
}
