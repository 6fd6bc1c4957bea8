/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cm_xrc.c: dialogues of extended reliable connections (annex A14): the REQ is an initiator's,
 * the REP a target's, whose number lies where EECNs do.
 */
#include "rig.h"

static struct rig rig;

static struct cm_req xrc_req(void)
{
    struct cm_req req = rig_req();
    req.transport = CM_TRANSPORT_EXTENDED;
    req.transport_extended = CM_TRANSPORT_EXTENDED_XRC;
    req.srq = true;
    return req;
}

static struct cm_id *xrc_req_sent(void)
{
    struct cm_req req = xrc_req();
    struct cm_id *id;
    assert_int_equal(cm_connect(rig.cm, rig.now_ns, &rig.path, &req, rig_nothing, NULL, &id), 0);
    return id;
}

/* What a kernel's target says. */
static struct cm_msg target_rep(const struct cm_id *id)
{
    struct cm_msg m = peer_msg(CM_REP, rig_comm_id(id));
    m.rep.local_qpn = 0;
    m.rep.local_eecn = PEER_QPN;
    m.rep.srq = true;
    return m;
}

static struct cm_msg xrc_peer_req(void)
{
    struct cm_msg m = peer_req(&rig);
    m.req.transport = CM_TRANSPORT_EXTENDED;
    m.req.transport_extended = CM_TRANSPORT_EXTENDED_XRC;
    m.req.responder_resources = m.req.retry_count = m.req.rnr_retry_count = 0;
    return m;
}

static struct cm_id *xrc_req_rcvd(void)
{
    struct cm_msg m = xrc_peer_req();
    rig_say(&rig, &m);
    struct cm_event *e = rig_event(&rig, CM_EVENT_REQ);
    assert_true(e->xrc);
    return e->id;
}

static void cm_connect_xrc__only_what_an_initiator_has(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *id = xrc_req_sent();
    const struct cm_req *said = &rig_hear(&rig, CM_REQ)->req;
    assert_int_equal(said->transport, 3);
    assert_int_equal(said->transport_extended, 1);
    assert_int_equal(said->local_qpn, RIG_QPN);
    assert_int_equal(said->local_eecn, 0);
    assert_int_equal(said->initiator_depth, 2);
    assert_int_equal(said->responder_resources, 0);
    assert_int_equal(said->retry_count, 0);
    assert_int_equal(said->rnr_retry_count, 0);
    assert_false(said->srq);
    rig_drop(&rig, id);
    rig_end(&rig);
}

/* The whole life of the active side; the DREQ names the target. */
static void cm_xrc__active_to_the_end(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *id = xrc_req_sent();
    struct cm_ends ends;
    rig_hear(&rig, CM_REQ);
    struct cm_msg m = target_rep(id);
    rig_say(&rig, &m);
    struct cm_event *e = rig_event(&rig, CM_EVENT_REP);
    assert_true(e->xrc);
    assert_int_equal(cm_msg_rep_qpn(&e->msg.rep, e->xrc), PEER_QPN);
    cm_id_ends(id, &ends);
    assert_int_equal(ends.remote_qpn, PEER_QPN);
    assert_int_equal(cm_ready(rig.cm, rig.now_ns, id, rig_nothing), 0);
    rig_hear(&rig, CM_RTU);
    assert_true(rig_event(&rig, CM_EVENT_ESTABLISHED)->xrc);
    rig_say(&rig, &m);
    rig_hear(&rig, CM_RTU); /* a repetition */
    assert_int_equal(cm_disconnect(rig.cm, rig.now_ns, id, rig_nothing), 0);
    assert_int_equal(rig_hear(&rig, CM_DREQ)->dreq.remote_qpn, PEER_QPN);
    m = peer_msg(CM_DREP, rig_comm_id(id));
    rig_say(&rig, &m);
    rig_event(&rig, CM_EVENT_DISCONNECTED);
    rig_drop(&rig, id);
    rig_end(&rig);
}

/* The whole life of the passive side: what the caller says of a target, and how it goes. */
static void cm_xrc__passive_to_the_end(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *listener = rig_listen(&rig, 0), *id = xrc_req_rcvd();
    struct cm_rep rep = rig_rep();
    rep.responder_resources = 9;
    rep.initiator_depth = 3;
    rep.flow_control = true;
    assert_int_equal(cm_reply(rig.cm, rig.now_ns, id, &rep, rig_nothing), 0);
    const struct cm_rep *said = &rig_hear(&rig, CM_REP)->rep;
    assert_int_equal(said->local_eecn, RIG_QPN);
    assert_int_equal(said->local_qpn, 0);
    assert_int_equal(said->starting_psn, rep.starting_psn);
    assert_int_equal(said->responder_resources, 9);
    assert_int_equal(said->rnr_retry_count, 7);
    assert_int_equal(said->initiator_depth, 0);
    assert_false(said->flow_control);
    assert_true(said->srq);
    struct cm_msg m = xrc_peer_req();
    rig_say(&rig, &m);
    assert_int_equal(rig_hear(&rig, CM_REP)->rep.local_eecn, RIG_QPN); /* to a repetition */
    m = peer_msg(CM_RTU, rig_comm_id(id));
    rig_say(&rig, &m);
    assert_true(rig_event(&rig, CM_EVENT_ESTABLISHED)->xrc);
    m = peer_msg(CM_DREQ, rig_comm_id(id));
    rig_say(&rig, &m);
    rig_event(&rig, CM_EVENT_DREQ);
    assert_int_equal(cm_disconnect(rig.cm, rig.now_ns, id, rig_nothing), 0);
    rig_hear(&rig, CM_DREP);
    rig_drop(&rig, id);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

/* Extended transports that are none; what only an XRC may say. */
static void cm_input_req_xrc__other_transports(void **state)
{
    (void)state;
    static const struct {
        uint8_t transport, extended;
        bool taken, xrc;
    } rows[] = {
        {CM_TRANSPORT_EXTENDED, 0, false, false},
        {CM_TRANSPORT_EXTENDED, 2, false, false},
        {CM_TRANSPORT_EXTENDED, 7, false, false},
        {CM_TRANSPORT_RD,       1, false, false},
        {CM_TRANSPORT_EXTENDED, 1, true,  true },
        {CM_TRANSPORT_RC,       1, true,  false}, /* the field counts for extended ones only */
        {CM_TRANSPORT_UC,       1, true,  false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rig_begin(&rig, 4);
        struct cm_id *listener = rig_listen(&rig, 0);
        struct cm_msg m = xrc_peer_req();
        m.req.transport = rows[i].transport;
        m.req.transport_extended = rows[i].extended;
        rig_say(&rig, &m);
        if (rows[i].taken) {
            struct cm_event *e = rig_event(&rig, CM_EVENT_REQ);
            assert_int_equal(e->xrc, rows[i].xrc);
            rig_drop(&rig, e->id);
        } else {
            assert_int_equal(rig_hear(&rig, CM_REJ)->rej.reason, CM_REJ_INVALID_TRANSPORT_TYPE);
            rig_no_event(&rig);
        }
        rig_drop(&rig, listener);
        rig_end(&rig);
    }
}

/* The QPN that counts must be one, and where the other lies does not matter. */
static void cm_input_rep_xrc__bad_qpn(void **state)
{
    (void)state;
    static const struct {
        uint32_t qpn, eecn;
        bool xrc, taken;
    } rows[] = {
        {PEER_QPN, 0,        true,  false},
        {PEER_QPN, 1,        true,  false},
        {PEER_QPN, 0xffffff, true,  false},
        {0,        PEER_QPN, false, false},
        {1,        PEER_QPN, false, false},
        {0,        PEER_QPN, true,  true },
        {1,        PEER_QPN, true,  true },
        {PEER_QPN, 1,        false, true },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rig_begin(&rig, 4);
        struct cm_req req = rows[i].xrc ? xrc_req() : rig_req();
        struct cm_id *id;
        assert_int_equal(cm_connect(rig.cm, rig.now_ns, &rig.path, &req, rig_nothing, NULL, &id),
                         0);
        rig_hear(&rig, CM_REQ);
        struct cm_msg m = target_rep(id);
        m.rep.local_qpn = rows[i].qpn;
        m.rep.local_eecn = rows[i].eecn;
        rig_say(&rig, &m);
        if (rows[i].taken)
            rig_event(&rig, CM_EVENT_REP);
        else
            rig_no_event(&rig);
        assert_int_equal(cm_id_state(id), rows[i].taken ? CM_STATE_REP_RCVD : CM_STATE_REQ_SENT);
        assert_int_equal(cm_count(rig.cm, CM_COUNT_MALFORMED), !rows[i].taken);
        rig_drop(&rig, id);
        rig_end(&rig);
    }
}

/* A target that is connected twice: its host has restarted. */
static void cm_input_rep_xrc__stale_qpn(void **state)
{
    (void)state;
    rig_begin(&rig, 8);
    struct cm_id *old = xrc_req_sent(), *id;
    rig_hear(&rig, CM_REQ);
    struct cm_msg m = target_rep(old);
    rig_say(&rig, &m);
    rig_event(&rig, CM_EVENT_REP);
    id = xrc_req_sent();
    rig_hear(&rig, CM_REQ);
    m = target_rep(id);
    m.rep.local_comm_id++;
    rig_say(&rig, &m);
    assert_int_equal(rig_hear(&rig, CM_REJ)->rej.reason, CM_REJ_STALE_CONN);
    rig_event(&rig, CM_EVENT_REJ);
    rig_event(&rig, CM_EVENT_REJ);
    rig_drop(&rig, id);
    rig_drop(&rig, old);
    rig_end(&rig);
}

/* An initiator that we believe connected begins anew. */
static void cm_input_req_xrc__stale_qpn(void **state)
{
    (void)state;
    rig_begin(&rig, 8);
    struct cm_id *listener = rig_listen(&rig, 0), *id = xrc_req_rcvd();
    struct cm_rep rep = rig_rep();
    assert_int_equal(cm_reply(rig.cm, rig.now_ns, id, &rep, rig_nothing), 0);
    rig_hear(&rig, CM_REP);
    assert_int_equal(cm_establish(rig.cm, rig.now_ns, id), 0);
    rig_event(&rig, CM_EVENT_ESTABLISHED);
    struct cm_msg m = xrc_peer_req();
    m.req.local_comm_id++;
    rig_say(&rig, &m);
    assert_int_equal(rig_hear(&rig, CM_REJ)->rej.reason, CM_REJ_STALE_CONN);
    assert_int_equal(rig_hear(&rig, CM_DREQ)->dreq.remote_qpn, PEER_QPN);
    rig_say(&rig, &m); /* the next try */
    struct cm_id *next = rig_event(&rig, CM_EVENT_REQ)->id;
    rig_drop(&rig, next);
    rig_drop(&rig, id);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

static void cm_reply_xrc__impossible_fields(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *listener = rig_listen(&rig, 0), *id = xrc_req_rcvd();
    static const uint32_t qpns[] = {0, 1, 1 << 24};
    for (size_t i = 0; i < sizeof(qpns) / sizeof(qpns[0]); i++) {
        struct cm_rep rep = rig_rep();
        rep.local_qpn = qpns[i];
        assert_int_equal(cm_reply(rig.cm, rig.now_ns, id, &rep, rig_nothing), -22);
    }
    struct cm_rep rep = rig_rep();
    rep.local_eecn = RIG_QPN; /* not the caller's to fill in */
    assert_int_equal(cm_reply(rig.cm, rig.now_ns, id, &rep, rig_nothing), -22);
    rig_silent(&rig);
    rig_drop(&rig, id);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(cm_connect_xrc__only_what_an_initiator_has),
        cmocka_unit_test(cm_xrc__active_to_the_end),
        cmocka_unit_test(cm_xrc__passive_to_the_end),
        cmocka_unit_test(cm_input_req_xrc__other_transports),
        cmocka_unit_test(cm_input_rep_xrc__bad_qpn),
        cmocka_unit_test(cm_input_rep_xrc__stale_qpn),
        cmocka_unit_test(cm_input_req_xrc__stale_qpn),
        cmocka_unit_test(cm_reply_xrc__impossible_fields),
    };
    return cmocka_run_group_tests_name("cm_xrc", tests, NULL, NULL);
}
