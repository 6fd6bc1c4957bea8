/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cm_input.c: each message in each state, then what is particular: duplicates, crossed and
 * stale connections, requests that are no good.
 */
#include <stdio.h>

#include "rig.h"

static struct rig rig;

/* IBA 12.9: what a message does in a state. */

enum { NONE = -1 };

struct cell {
    unsigned answer; /* attribute, 0: silence */
    int event;       /* NONE or enum cm_event_type */
    enum cm_state state;
    unsigned later; /* what our disconnect then answers; 0: nothing */
};

static struct cm_id *dreq_sent(struct rig *r)
{
    struct cm_id *id = rig_active(r);
    assert_int_equal(cm_disconnect(r->cm, r->now_ns, id, rig_nothing), 0);
    rig_hear(r, CM_DREQ);
    return id;
}

static struct cm_id *timewait(struct rig *r)
{
    struct cm_id *id = rig_active(r);
    struct cm_msg m = peer_msg(CM_DREQ, rig_comm_id(id));
    rig_say(r, &m);
    rig_event(r, CM_EVENT_DREQ);
    assert_int_equal(cm_disconnect(r->cm, r->now_ns, id, rig_nothing), 0);
    rig_hear(r, CM_DREP);
    return id;
}

static struct cm_id *passive_timewait(struct rig *r)
{
    struct cm_id *id = rig_passive(r);
    struct cm_msg m = peer_msg(CM_DREQ, rig_comm_id(id));
    rig_say(r, &m);
    rig_event(r, CM_EVENT_DREQ);
    assert_int_equal(cm_disconnect(r->cm, r->now_ns, id, rig_nothing), 0);
    rig_hear(r, CM_DREP);
    return id;
}

static struct cm_id *rej_sent(struct rig *r)
{
    struct cm_id *id = rig_req_rcvd(r);
    assert_int_equal(
        cm_reject(r->cm, r->now_ns, id, CM_REJ_CONSUMER_DEFINED, rig_nothing, rig_nothing), 0);
    rig_hear(r, CM_REJ);
    return id;
}

#define QUIET(state)                                                                               \
    {                                                                                              \
        0, NONE, CM_STATE_##state                                                                  \
    }
enum { MESSAGES = 8 };
static const struct {
    struct cm_id *(*begin)(struct rig *);
    const char *name;
    struct cell cell[MESSAGES]; /* REQ again, MRA of REQ, MRA of REP, REJ, REP, RTU, DREQ, DREP */
} matrix[] = {
    {rig_req_sent,
     "REQ_SENT",         {QUIET(REQ_SENT),
      {0, CM_EVENT_MRA, CM_STATE_REQ_SENT},
      QUIET(REQ_SENT),
      {0, CM_EVENT_REJ, CM_STATE_FINISHED},
      {0, CM_EVENT_REP, CM_STATE_REP_RCVD},
      QUIET(REQ_SENT),
      {CM_DREP, NONE, CM_STATE_REQ_SENT},
      QUIET(REQ_SENT)}                               },
    {rig_rep_rcvd,
     "REP_RCVD",         {QUIET(REP_RCVD),
      QUIET(REP_RCVD),
      QUIET(REP_RCVD),
      {0, CM_EVENT_REJ, CM_STATE_FINISHED},
      {CM_MRA, NONE, CM_STATE_REP_RCVD},
      QUIET(REP_RCVD),
      QUIET(REP_RCVD),
      QUIET(REP_RCVD)}                               },
    {rig_active,
     "active",           {QUIET(ESTABLISHED),
      QUIET(ESTABLISHED),
      QUIET(ESTABLISHED),
      {0, CM_EVENT_DISCONNECTED, CM_STATE_TIMEWAIT},
      {CM_RTU, NONE, CM_STATE_ESTABLISHED},
      QUIET(ESTABLISHED),
      {0, CM_EVENT_DREQ, CM_STATE_TIMEWAIT, CM_DREP},
      QUIET(ESTABLISHED)}                              },
    {rig_req_rcvd,
     "REQ_RCVD",         {{CM_MRA, NONE, CM_STATE_REQ_RCVD},
      QUIET(REQ_RCVD),
      QUIET(REQ_RCVD),
      {0, CM_EVENT_REJ, CM_STATE_FINISHED},
      QUIET(REQ_RCVD),
      QUIET(REQ_RCVD),
      QUIET(REQ_RCVD),
      QUIET(REQ_RCVD)}                               },
    {rig_rep_sent,
     "REP_SENT",         {{CM_REP, NONE, CM_STATE_REP_SENT},
      QUIET(REP_SENT),
      {0, CM_EVENT_MRA, CM_STATE_REP_SENT},
      {0, CM_EVENT_REJ, CM_STATE_FINISHED},
      QUIET(REP_SENT),
      {0, CM_EVENT_ESTABLISHED, CM_STATE_ESTABLISHED},
      {0, CM_EVENT_ESTABLISHED, CM_STATE_TIMEWAIT, CM_DREP},
      QUIET(REP_SENT)}                               },
    {rig_passive,
     "passive",          {QUIET(ESTABLISHED),
      QUIET(ESTABLISHED),
      QUIET(ESTABLISHED),
      {0, CM_EVENT_DISCONNECTED, CM_STATE_TIMEWAIT},
      QUIET(ESTABLISHED),
      QUIET(ESTABLISHED),
      {0, CM_EVENT_DREQ, CM_STATE_TIMEWAIT, CM_DREP},
      QUIET(ESTABLISHED)}                             },
    {dreq_sent,
     "DREQ_SENT",        {QUIET(DREQ_SENT),
      QUIET(DREQ_SENT),
      QUIET(DREQ_SENT),
      {0, CM_EVENT_DISCONNECTED, CM_STATE_TIMEWAIT},
      QUIET(DREQ_SENT),
      QUIET(DREQ_SENT),
      {CM_DREP, CM_EVENT_DREQ, CM_STATE_TIMEWAIT},
      {0, CM_EVENT_DISCONNECTED, CM_STATE_TIMEWAIT}}},
    {timewait,
     "TIMEWAIT",         {QUIET(TIMEWAIT),
      QUIET(TIMEWAIT),
      QUIET(TIMEWAIT),
      QUIET(TIMEWAIT),
      {CM_REJ, NONE, CM_STATE_TIMEWAIT},
      QUIET(TIMEWAIT),
      {CM_DREP, NONE, CM_STATE_TIMEWAIT},
      QUIET(TIMEWAIT)}                               },
    {passive_timewait,
     "passive TIMEWAIT", {{CM_REJ, NONE, CM_STATE_TIMEWAIT},
      QUIET(TIMEWAIT),
      QUIET(TIMEWAIT),
      QUIET(TIMEWAIT),
      QUIET(TIMEWAIT),
      QUIET(TIMEWAIT),
      {CM_DREP, NONE, CM_STATE_TIMEWAIT},
      QUIET(TIMEWAIT)}                       },
    {rej_sent,
     "REJ_SENT",         {{CM_REJ, NONE, CM_STATE_REJ_SENT},
      QUIET(REJ_SENT),
      QUIET(REJ_SENT),
      QUIET(REJ_SENT),
      QUIET(REJ_SENT),
      {CM_REJ, NONE, CM_STATE_REJ_SENT},
      QUIET(REJ_SENT),
      QUIET(REJ_SENT)}                               },
};

static struct cm_msg matrix_message(struct rig *r, unsigned column, uint32_t our_id)
{
    static const unsigned attributes[MESSAGES] = {CM_REQ, CM_MRA, CM_MRA,  CM_REJ,
                                                  CM_REP, CM_RTU, CM_DREQ, CM_DREP};
    struct cm_msg m = column == 0 ? peer_req(r) : peer_msg(attributes[column], our_id);
    if (column == 1 || column == 2)
        m.mra.about = column == 1 ? CM_ABOUT_REQ : CM_ABOUT_REP;
    if (column == 3) {
        m.rej.about = CM_ABOUT_OTHER;
        m.rej.reason = CM_REJ_CONSUMER_DEFINED;
    }
    return m;
}

static bool is_passive(const char *name)
{
    return strcmp(name, "passive") == 0 || strcmp(name, "passive TIMEWAIT") == 0 ||
           strcmp(name, "REQ_RCVD") == 0 || strcmp(name, "REP_SENT") == 0 ||
           strcmp(name, "REJ_SENT") == 0;
}

static void cm_input__each_message_in_each_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(matrix) / sizeof(matrix[0]); i++) {
        for (unsigned column = 0; column < MESSAGES; column++) {
            const struct cell *want = &matrix[i].cell[column];
            /* To the active side the REQ would be a stranger's. */
            if (column == 0 && !is_passive(matrix[i].name))
                continue;
            rig_begin(&rig, 16);
            struct cm_id *listener = rig_listen(&rig, 0);
            struct cm_id *id = matrix[i].begin(&rig);
            struct cm_msg m = matrix_message(&rig, column, rig_comm_id(id));
            print_message("# %s, message %u\n", matrix[i].name, column);
            rig_say(&rig, &m);
            if (want->answer != 0) {
                const struct cm_msg *answer = rig_hear(&rig, want->answer);
                assert_int_equal(answer->mra.remote_comm_id, PEER_ID);
            }
            rig_silent(&rig);
            if (want->event != NONE)
                rig_event(&rig, (enum cm_event_type)want->event);
            if (want->event == CM_EVENT_ESTABLISHED && want->state == CM_STATE_TIMEWAIT)
                rig_event(&rig, CM_EVENT_DREQ);
            rig_no_event(&rig);
            assert_string_equal(cm_state_name(cm_id_state(id)), cm_state_name(want->state));
            if (want->later != 0) {
                assert_int_equal(cm_disconnect(rig.cm, rig.now_ns, id, rig_nothing), 0);
                rig_hear(&rig, want->later);
            }
            rig_drop(&rig, id);
            rig_drop(&rig, listener);
            rig_end(&rig);
        }
    }
}

/* Nothing that comes from another address, or names another connection, is listened to. */
static void cm_input__strangers(void **state)
{
    (void)state;
    static const unsigned attributes[] = {CM_MRA, CM_REJ, CM_REP, CM_RTU, CM_DREQ, CM_DREP};
    for (size_t i = 0; i < sizeof(matrix) / sizeof(matrix[0]); i++) {
        rig_begin(&rig, 16);
        struct cm_id *listener = rig_listen(&rig, 0);
        struct cm_id *id = matrix[i].begin(&rig);
        enum cm_state before = cm_id_state(id);
        for (size_t k = 0; k < 3 * sizeof(attributes) / sizeof(attributes[0]); k++) {
            struct cm_path path = rig.path;
            struct cm_msg m = peer_msg(attributes[k / 3], rig_comm_id(id));
            if (k % 3 == 0)
                path.remote.b[15] = 3;
            else if (k % 3 == 1)
                path.local.b[15] = 9;
            else if (before == CM_STATE_REQ_SENT)
                continue; /* there is no other id yet that it could know */
            else
                m.mra.local_comm_id = PEER_ID + 1;
            rig_say_from(&rig, &path, &m);
            cm_output(rig.cm, &rig.sink, 8);
            rig.count = 0;
            rig_no_event(&rig);
            assert_int_equal(cm_id_state(id), before);
        }
        rig_drop(&rig, id);
        rig_drop(&rig, listener);
        rig_end(&rig);
    }
}

static void cm_input__malformed(void **state)
{
    (void)state;
    uint8_t mad[MAD_BYTES + 1] = {1, 7, 2, 3};
    rig_begin(&rig, 4);
    cm_input(rig.cm, rig.now_ns, &rig.path, mad, 0);
    cm_input(rig.cm, rig.now_ns, &rig.path, mad, 255);
    cm_input(rig.cm, rig.now_ns, &rig.path, mad, 257);
    cm_input(rig.cm, rig.now_ns, &rig.path, mad, 256); /* attribute 0 */
    mad[17] = CM_REQ;                                  /* communication id 0 */
    cm_input(rig.cm, rig.now_ns, &rig.path, mad, 256);
    assert_int_equal(cm_count(rig.cm, CM_COUNT_MALFORMED), 5);
    assert_int_equal(cm_count(rig.cm, CM_COUNT_IN), 5);
    rig_end(&rig);
}

/* REQ: what is given on, and where it ends. */

static void cm_input_req__all_attributes(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *listener = rig_listen(&rig, 0);
    struct cm_msg m = peer_req(&rig);
    m.header.tid = 0x1122334455667788;
    rig_say(&rig, &m);
    struct cm_event *e = rig_event(&rig, CM_EVENT_REQ);
    assert_ptr_equal(e->listen, listener);
    assert_ptr_equal(e->listen_owner, &rig);
    assert_null(e->owner);
    assert_true(e->has_msg);
    assert_memory_equal(&e->msg.req, &m.req, sizeof(m.req));
    assert_int_equal(e->path.flow_label, 0xfae11);
    struct cm_ends ends;
    cm_id_ends(e->id, &ends);
    assert_int_equal(ends.local_comm_id >> CM_SLOT_SHIFT, RIG_SLOT);
    assert_int_equal(ends.remote_comm_id, PEER_ID);
    assert_int_equal(ends.remote_qpn, PEER_QPN);
    struct cm_id *id = e->id;
    struct cm_rep rep = rig_rep();
    const uint8_t hello[] = "hello";
    assert_int_equal(
        cm_reply(rig.cm, rig.now_ns, id, &rep, (struct cm_private){hello, sizeof(hello)}), 0);
    const struct cm_msg *answer = rig_hear(&rig, CM_REP);
    assert_true(answer->header.tid == m.header.tid);
    assert_int_equal(answer->rep.remote_comm_id, PEER_ID);
    assert_int_equal(answer->rep.local_qpn, RIG_QPN);
    assert_true(answer->rep.local_ca_guid == RIG_GUID);
    assert_int_equal(answer->rep.failover_accepted, 0);
    assert_memory_equal(answer->rep.private_data, hello, sizeof(hello));
    assert_int_equal(answer->rep.private_data[sizeof(hello)], 0);
    rig_drop(&rig, id);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

struct bad_req {
    const char *what;
    unsigned reason; /* of the REJ; 0: it is taken */
    uint8_t info_bytes;
};

static void spoil(unsigned row, struct cm_msg *m, struct cm_path *path)
{
    struct cm_ip ip = {.src_port = 4000};
    memcpy(ip.src, path->remote.b, 16);
    memcpy(ip.dst, path->local.b, 16);
    switch (row) {
    case 0:
        break;
    case 1:
        m->req.transport = CM_TRANSPORT_UC;
        break;
    case 2:
        m->req.path_mtu = 1;
        break;
    case 3:
        m->req.path_mtu = 5;
        break;
    case 4:
        m->req.service_id++;
        break;
    case 5:
        m->req.transport = CM_TRANSPORT_RD;
        break;
    case 6:
        m->req.transport = CM_TRANSPORT_EXTENDED;
        m->req.transport_extended = CM_TRANSPORT_EXTENDED_XRC;
        break;
    case 7:
        m->req.local_qpn = 0;
        break;
    case 8:
        m->req.local_qpn = 1;
        break;
    case 9:
        m->req.local_qpn = 0xffffff;
        break;
    case 10:
        m->req.path_mtu = 0;
        break;
    case 11:
        m->req.path_mtu = 6;
        break;
    case 12:
        m->req.primary.local_gid[15]++;
        break;
    case 13:
        m->req.primary.remote_gid[15]++;
        break;
    default:
        m->req.service_id = cm_ip_service_id(CM_PORT_SPACE_TCP, 7);
        if (row == 15)
            m->req.service_id = cm_ip_service_id(CM_PORT_SPACE_UDP, 7);
        if (row == 16)
            ip.src[15]++;
        if (row == 17)
            ip.dst[15]++;
        cm_ip_build(&ip, m->req.private_data);
        if (row == 18)
            m->req.private_data[0] = 1;
        if (row == 19)
            m->req.private_data[1] = 0x50;
        if (row == 20)
            m->req.private_data[1] = 0x60; /* IPv6, and then it is another address */
    }
}

static void cm_input_req__rejected_for_a_reason(void **state)
{
    (void)state;
    static const struct bad_req rows[] = {
        {"RC",                         0,                             0 },
        {"UC",                         0,                             0 },
        {"MTU 256",                    0,                             0 },
        {"MTU 4096",                   0,                             0 },
        {"no listener",                CM_REJ_INVALID_SERVICE_ID,     0 },
        {"RD",                         CM_REJ_INVALID_TRANSPORT_TYPE, 0 },
        {"XRC",                        0,                             0 },
        {"QPN 0",                      CM_REJ_UNSUPPORTED,            0 },
        {"QPN 1",                      CM_REJ_UNSUPPORTED,            0 },
        {"QPN of multicast",           CM_REJ_UNSUPPORTED,            0 },
        {"MTU code 0",                 CM_REJ_INVALID_MTU,            1 },
        {"MTU code 6",                 CM_REJ_INVALID_MTU,            1 },
        {"GID not the packet's",       CM_REJ_INVALID_GID,            16},
        {"GID not ours",               CM_REJ_INVALID_GID,            16},
        {"IP header",                  0,                             0 },
        {"a port of datagrams",        CM_REJ_CONSUMER_DEFINED,       0 },
        {"IP source not the packet's", CM_REJ_CONSUMER_DEFINED,       0 },
        {"IP destination not ours",    CM_REJ_CONSUMER_DEFINED,       0 },
        {"IP header version 1",        CM_REJ_CONSUMER_DEFINED,       0 },
        {"IP version 5",               CM_REJ_CONSUMER_DEFINED,       0 },
        {"IPv4 said to be IPv6",       CM_REJ_CONSUMER_DEFINED,       0 },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rig_begin(&rig, 8);
        struct cm_id *listener[3] = {rig_listen(&rig, 0)};
        struct cm_service service = {.service_id = cm_ip_service_id(CM_PORT_SPACE_TCP, 7),
                                     .bind = CM_BIND_ANY_V4};
        assert_int_equal(cm_listen(rig.cm, &service, 0, NULL, &listener[1]), 0);
        service.service_id = cm_ip_service_id(CM_PORT_SPACE_UDP, 7);
        assert_int_equal(cm_listen(rig.cm, &service, 0, NULL, &listener[2]), 0);
        struct cm_msg m = peer_req(&rig);
        print_message("# %s\n", rows[i].what);
        spoil(i, &m, &rig.path);
        rig_say(&rig, &m);
        if (rows[i].reason == 0) {
            struct cm_event *e = rig_event(&rig, CM_EVENT_REQ);
            assert_int_equal(e->ip.src_port, i == 14 ? 4000 : 0);
            rig_drop(&rig, e->id);
        } else {
            const struct cm_msg *rej = rig_hear(&rig, CM_REJ);
            assert_int_equal(rej->rej.reason, rows[i].reason);
            assert_int_equal(rej->rej.about, CM_ABOUT_REQ);
            assert_int_equal(rej->rej.local_comm_id, 0);
            assert_int_equal(rej->rej.remote_comm_id, PEER_ID);
            assert_int_equal(rej->rej.info_bytes, rows[i].info_bytes);
            assert_true(rej->header.tid == 0x77);
        }
        for (unsigned k = 0; k < 3; k++)
            rig_drop(&rig, listener[k]);
        rig_end(&rig);
    }
}

static void cm_input_req__alternate_path_is_not_supported(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *listener = rig_listen(&rig, 0);
    struct cm_msg m = peer_req(&rig);
    struct cm_rep rep = rig_rep();
    m.req.alternate.local_gid[0] = 0xfe;
    rig_say(&rig, &m);
    struct cm_id *id = rig_event(&rig, CM_EVENT_REQ)->id;
    assert_int_equal(cm_reply(rig.cm, rig.now_ns, id, &rep, rig_nothing), 0);
    assert_int_equal(rig_hear(&rig, CM_REP)->rep.failover_accepted, 1);
    rig_drop(&rig, id);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

/* Duplicates are answered as before, to the bit. */
static void cm_input_req__same_answer_again(void **state)
{
    (void)state;
    for (int what = 0; what < 3; what++) { /* REP, REJ, MRA */
        rig_begin(&rig, 4);
        struct cm_id *listener = rig_listen(&rig, 0);
        struct cm_id *id = rig_req_rcvd(&rig);
        struct cm_msg m = peer_req(&rig);
        struct cm_rep rep = rig_rep();
        struct cm_private data = {"why", 3};
        static const unsigned answers[] = {CM_REP, CM_REJ, CM_MRA};
        uint8_t first[MAD_BYTES], again[MAD_BYTES];
        if (what == 0)
            assert_int_equal(cm_reply(rig.cm, rig.now_ns, id, &rep, data), 0);
        else if (what == 1)
            assert_int_equal(cm_reject(rig.cm, rig.now_ns, id, 3, rig_nothing, data), 0);
        else
            assert_int_equal(cm_mra(rig.cm, rig.now_ns, id, 18, data), 0);
        cm_msg_build(rig_hear(&rig, answers[what]), first);
        rig_silent(&rig);
        rig_say(&rig, &m);
        cm_msg_build(rig_hear(&rig, answers[what]), again);
        assert_memory_equal(first, again, MAD_BYTES);
        rig_no_event(&rig);
        assert_int_equal(cm_count(rig.cm, CM_COUNT_DUPLICATE), 1);
        rig_drop(&rig, id);
        rig_drop(&rig, listener);
        rig_end(&rig);
    }
}

static void cm_input_rep__same_answer_again(void **state)
{
    (void)state;
    for (int what = 0; what < 3; what++) { /* RTU, REJ, MRA */
        rig_begin(&rig, 4);
        struct cm_id *id = rig_rep_rcvd(&rig);
        struct cm_msg m = peer_msg(CM_REP, rig_comm_id(id));
        struct cm_private data = {"why", 3};
        static const unsigned answers[] = {CM_RTU, CM_REJ, CM_MRA};
        uint8_t first[MAD_BYTES], again[MAD_BYTES];
        if (what == 0)
            assert_int_equal(cm_ready(rig.cm, rig.now_ns, id, data), 0);
        else if (what == 1)
            assert_int_equal(cm_reject(rig.cm, rig.now_ns, id, 3, rig_nothing, data), 0);
        else
            assert_int_equal(cm_mra(rig.cm, rig.now_ns, id, 18, data), 0);
        const struct cm_msg *answer = rig_hear(&rig, answers[what]);
        if (what > 0)
            assert_int_equal(what == 1 ? answer->rej.about : answer->mra.about, CM_ABOUT_REP);
        cm_msg_build(answer, first);
        rig_say(&rig, &m);
        cm_msg_build(rig_hear(&rig, answers[what]), again);
        assert_memory_equal(first, again, MAD_BYTES);
        if (what == 0)
            rig_event(&rig, CM_EVENT_ESTABLISHED);
        rig_no_event(&rig);
        rig_drop(&rig, id);
        rig_end(&rig);
    }
}

static void cm_input_dreq__answered_again_with_its_tid(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *id = rig_active(&rig);
    struct cm_msg m = peer_msg(CM_DREQ, rig_comm_id(id));
    rig_say(&rig, &m);
    rig_silent(&rig);
    for (uint64_t tid = 1; tid < 4; tid++) {
        m.header.tid = tid;
        rig_say(&rig, &m);
        const struct cm_msg *drep = rig_hear(&rig, CM_DREP);
        assert_true(drep->header.tid == tid);
        assert_int_equal(drep->drep.local_comm_id, rig_comm_id(id));
    }
    rig_event(&rig, CM_EVENT_DREQ);
    rig_no_event(&rig);
    rig_drop(&rig, id);
    rig_end(&rig);
}

/* A DREQ names the QP that it disconnects. */
static void cm_input_dreq__wrong_qpn(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *id = rig_active(&rig);
    struct cm_msg m = peer_msg(CM_DREQ, rig_comm_id(id));
    m.dreq.remote_qpn ^= 1;
    rig_say(&rig, &m);
    rig_silent(&rig);
    assert_int_equal(cm_id_state(id), CM_STATE_ESTABLISHED);
    assert_int_equal(cm_count(rig.cm, CM_COUNT_UNEXPECTED), 1);
    rig_drop(&rig, id);
    rig_end(&rig);
}

/* Who ends says once more what its peers may have missed; nothing to those that owe an answer. */
static void cm_say_again__answers_only(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *id = rig_active(&rig), *other = rig_req_sent(&rig);
    cm_say_again(rig.cm);
    rig_silent(&rig);
    struct cm_msg m = peer_msg(CM_DREQ, rig_comm_id(id));
    m.header.tid = 0x5566;
    rig_say(&rig, &m);
    rig_event(&rig, CM_EVENT_DREQ);
    assert_int_equal(cm_disconnect(rig.cm, rig.now_ns, id, rig_nothing), 0);
    rig_hear(&rig, CM_DREP);
    cm_say_again(rig.cm);
    assert_true(rig_hear(&rig, CM_DREP)->header.tid == 0x5566);
    rig_silent(&rig);
    rig_drop(&rig, other);
    rig_drop(&rig, id);
    rig_end(&rig);
}

/* Case 96: both disconnect; each hears of it once. */
static void case_96_crossed_dreqs(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *id = dreq_sent(&rig);
    struct cm_msg dreq = peer_msg(CM_DREQ, rig_comm_id(id));
    struct cm_msg drep = peer_msg(CM_DREP, rig_comm_id(id));
    rig_say(&rig, &dreq);
    rig_hear(&rig, CM_DREP);
    rig_event(&rig, CM_EVENT_DREQ);
    rig_say(&rig, &drep);
    rig_silent(&rig);
    rig_no_event(&rig);
    assert_int_equal(cm_disconnect(rig.cm, rig.now_ns, id, rig_nothing), 0);
    rig_silent(&rig);
    rig_wait(&rig, 4096ull << 19);
    rig_event(&rig, CM_EVENT_TIMEWAIT_EXIT);
    rig_drop(&rig, id);
    rig_end(&rig);
}

/* REQs that cross are two connections, each for itself: no peer-to-peer. */
static void cm_input_req__crossed(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *id = rig_req_sent(&rig);
    struct cm_msg m = peer_req(&rig);
    rig_say(&rig, &m);
    assert_int_equal(rig_hear(&rig, CM_REJ)->rej.reason, CM_REJ_INVALID_SERVICE_ID);
    assert_int_equal(cm_id_state(id), CM_STATE_REQ_SENT);
    struct cm_id *listener = rig_listen(&rig, 0);
    rig_say(&rig, &m);
    struct cm_id *passive = rig_event(&rig, CM_EVENT_REQ)->id;
    struct cm_msg rep = peer_msg(CM_REP, rig_comm_id(id));
    rep.rep.local_comm_id++;
    rep.rep.local_qpn++;
    rig_say(&rig, &rep);
    assert_ptr_equal(rig_event(&rig, CM_EVENT_REP)->id, id);
    rig_drop(&rig, id);
    rig_drop(&rig, passive);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

/* Stale connections: a restarted peer gets a clean answer, and its next try succeeds. */
static void cm_input_req__stale_qpn(void **state)
{
    (void)state;
    static const struct {
        struct cm_id *(*begin)(struct rig *);
        int event;
        bool dreq;
    } rows[] = {
        {rig_passive,  NONE,         true }, /* the owner hears when the DREQ is answered */
        {rig_active,   NONE,         true },
        {rig_req_rcvd, CM_EVENT_REJ, false},
        {rig_rep_sent, CM_EVENT_REJ, false},
        {rig_rep_rcvd, CM_EVENT_REJ, false},
        {dreq_sent,    NONE,         false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rig_begin(&rig, 8);
        struct cm_id *listener = rig_listen(&rig, 0);
        struct cm_id *id = rows[i].begin(&rig);
        struct cm_msg m = peer_req(&rig);
        m.req.local_comm_id = PEER_ID + 99;
        rig_say(&rig, &m);
        const struct cm_msg *rej = rig_hear(&rig, CM_REJ);
        assert_int_equal(rej->rej.reason, CM_REJ_STALE_CONN);
        assert_int_equal(rej->rej.remote_comm_id, PEER_ID + 99);
        assert_int_equal(cm_count(rig.cm, CM_COUNT_STALE), 1);
        if (rows[i].dreq)
            assert_int_equal(rig_hear(&rig, CM_DREQ)->dreq.remote_comm_id, PEER_ID);
        rig_silent(&rig);
        if (rows[i].event != NONE) {
            struct cm_event *e = rig_event(&rig, (enum cm_event_type)rows[i].event);
            assert_ptr_equal(e->id, id);
            assert_int_equal(e->msg.rej.reason, CM_REJ_STALE_CONN);
        }
        rig_no_event(&rig);
        m.req.local_comm_id = PEER_ID + 100;
        rig_say(&rig, &m);
        struct cm_id *next = rig_event(&rig, CM_EVENT_REQ)->id;
        if (rows[i].dreq) {
            struct cm_msg drep = peer_msg(CM_DREP, rig_comm_id(id));
            rig_say(&rig, &drep);
            rig_event(&rig, CM_EVENT_DISCONNECTED);
        }
        rig_drop(&rig, next);
        rig_drop(&rig, id);
        rig_drop(&rig, listener);
        rig_end(&rig);
    }
}

/* A peer that forgot everything may draw a communication id that it had before. */
static void cm_input_req__stale_comm_id(void **state)
{
    (void)state;
    rig_begin(&rig, 8);
    struct cm_id *listener = rig_listen(&rig, 0);
    struct cm_id *id = rig_passive(&rig);
    struct cm_msg m = peer_req(&rig);
    m.req.local_qpn++;
    rig_say(&rig, &m);
    assert_int_equal(rig_hear(&rig, CM_REJ)->rej.reason, CM_REJ_STALE_CONN);
    rig_hear(&rig, CM_DREQ);
    assert_int_equal(cm_id_state(id), CM_STATE_DREQ_SENT);
    m.req.local_comm_id++;
    rig_say(&rig, &m);
    struct cm_id *next = rig_event(&rig, CM_EVENT_REQ)->id;
    rig_drop(&rig, next);
    rig_drop(&rig, id);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

/* An owner who has not seen the REQ need not know that it came to nothing. */
static void cm_input_req__stale_before_it_was_seen(void **state)
{
    (void)state;
    rig_begin(&rig, 8);
    struct cm_id *listener = rig_listen(&rig, 1);
    struct cm_msg m = peer_req(&rig);
    rig_say(&rig, &m);
    m.req.local_comm_id++;
    rig_say(&rig, &m);
    rig_hear(&rig, CM_REJ);
    rig_no_event(&rig);
    rig_say(&rig, &m);
    struct cm_id *id = rig_event(&rig, CM_EVENT_REQ)->id;
    rig_drop(&rig, id);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

static void cm_input_rep__stale_qpn(void **state)
{
    (void)state;
    rig_begin(&rig, 8);
    struct cm_id *old = rig_active(&rig);
    struct cm_id *id = rig_req_sent(&rig);
    struct cm_msg m = peer_msg(CM_REP, rig_comm_id(id));
    m.rep.local_comm_id++;
    rig_say(&rig, &m);
    const struct cm_msg *rej = rig_hear(&rig, CM_REJ);
    assert_int_equal(rej->rej.reason, CM_REJ_STALE_CONN);
    assert_int_equal(rej->rej.about, CM_ABOUT_REP);
    rig_hear(&rig, CM_DREQ);
    struct cm_event *e = rig_event(&rig, CM_EVENT_REJ);
    assert_ptr_equal(e->id, id);
    assert_int_equal(cm_id_state(old), CM_STATE_DREQ_SENT);
    cm_id_destroy(rig.cm, rig.now_ns, id);
    id = rig_rep_rcvd(&rig); /* the next try */
    rig_drop(&rig, id);
    rig_drop(&rig, old);
    rig_end(&rig);
}

/* A peer that restarted between its REP and a delayed copy of our REQ answers twice, from two
 * lives. */
static void cm_input_rep__of_another_life(void **state)
{
    (void)state;
    for (int ready = 0; ready < 2; ready++) {
        rig_begin(&rig, 8);
        struct cm_id *id = ready ? rig_active(&rig) : rig_rep_rcvd(&rig);
        enum cm_state before = cm_id_state(id);
        struct cm_msg m = peer_msg(CM_REP, rig_comm_id(id));
        m.rep.local_comm_id++;
        rig_say(&rig, &m);
        const struct cm_msg *rej = rig_hear(&rig, CM_REJ);
        assert_int_equal(rej->rej.reason, CM_REJ_INVALID_COMM_ID);
        assert_int_equal(rej->rej.remote_comm_id, PEER_ID + 1);
        assert_int_equal(rej->rej.local_comm_id, rig_comm_id(id));
        assert_int_equal(cm_id_state(id), before);
        rig_silent(&rig);
        rig_no_event(&rig);
        rig_drop(&rig, id);
        rig_end(&rig);
    }
}

static void cm_input_rep__bad_qpn(void **state)
{
    (void)state;
    static const uint32_t qpns[] = {0, 1, 0xffffff};
    for (size_t i = 0; i < sizeof(qpns) / sizeof(qpns[0]); i++) {
        rig_begin(&rig, 8);
        struct cm_id *id = rig_req_sent(&rig);
        struct cm_msg m = peer_msg(CM_REP, rig_comm_id(id));
        m.rep.local_qpn = qpns[i];
        rig_say(&rig, &m);
        rig_no_event(&rig);
        assert_int_equal(cm_id_state(id), CM_STATE_REQ_SENT);
        rig_drop(&rig, id);
        rig_end(&rig);
    }
}

/* IBA 12.6.7.2: ids that nobody has. */
static void cm_input__unknown_ids(void **state)
{
    (void)state;
    static const struct {
        unsigned attribute, answer;
    } rows[] = {
        {CM_REP,      CM_REJ     },
        {CM_DREQ,     CM_DREP    },
        {CM_LAP,      CM_APR     },
        {CM_SIDR_REQ, CM_SIDR_REP},
        {CM_REQ,      CM_REJ     },
        {CM_MRA,      0          },
        {CM_REJ,      0          },
        {CM_RTU,      0          },
        {CM_DREP,     0          },
        {CM_APR,      0          },
        {CM_SIDR_REP, 0          },
    };
    rig_begin(&rig, 4);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cm_msg m = peer_msg(rows[i].attribute, 0x01400007);
        if (rows[i].attribute == CM_REQ)
            m = peer_req(&rig);
        rig_say(&rig, &m);
        if (rows[i].answer == 0)
            rig_silent(&rig);
        else
            assert_true(rig_hear(&rig, rows[i].answer)->header.tid == 0x77);
    }
    rig_end(&rig);
}

static void cm_input_lap__refused(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *id = rig_active(&rig);
    struct cm_msg m = peer_msg(CM_LAP, rig_comm_id(id));
    rig_say(&rig, &m);
    assert_int_equal(rig_hear(&rig, CM_APR)->apr.status, CM_APR_UNSUPPORTED);
    m = peer_msg(CM_APR, rig_comm_id(id));
    rig_say(&rig, &m);
    rig_silent(&rig);
    rig_no_event(&rig);
    rig_drop(&rig, id);
    rig_end(&rig);
}

/* A peer that gives up before it heard from us names only itself. */
static void cm_input_rej__timeout_without_our_id(void **state)
{
    (void)state;
    static const struct {
        uint16_t reason;
        uint32_t id;
        bool heard;
    } rows[] = {
        {CM_REJ_TIMEOUT,          PEER_ID,     true },
        {CM_REJ_TIMEOUT,          PEER_ID + 1, false},
        {CM_REJ_CONSUMER_DEFINED, PEER_ID,     false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int sent = 0; sent < 2; sent++) {
            rig_begin(&rig, 4);
            struct cm_id *listener = rig_listen(&rig, 0);
            struct cm_id *id = sent == 0 ? rig_req_rcvd(&rig) : rig_rep_sent(&rig);
            struct cm_msg m = peer_msg(CM_REJ, 0);
            m.rej.local_comm_id = rows[i].id;
            m.rej.reason = rows[i].reason;
            rig_say(&rig, &m);
            if (rows[i].heard)
                assert_ptr_equal(rig_event(&rig, CM_EVENT_REJ)->id, id);
            rig_no_event(&rig);
            rig_silent(&rig);
            rig_drop(&rig, id);
            rig_drop(&rig, listener);
            rig_end(&rig);
        }
    }
}

/* SIDR. */

static struct cm_msg peer_sidr_req(void)
{
    struct cm_msg m = {.header = {.attribute = CM_SIDR_REQ}};
    m.sidr_req.request_id = PEER_ID;
    m.sidr_req.pkey = 0xffff;
    m.sidr_req.service_id = RIG_SERVICE;
    m.sidr_req.private_data[215] = 0xcc;
    return m;
}

static void cm_input_sidr_req__once(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_id *listener = rig_listen(&rig, 0);
    struct cm_msg m = peer_sidr_req();
    struct cm_sidr_rep rep = {.qpn = RIG_QPN, .qkey = 0x01234567};
    rig_say(&rig, &m);
    struct cm_event *e = rig_event(&rig, CM_EVENT_SIDR_REQ);
    assert_memory_equal(&e->msg.sidr_req, &m.sidr_req, sizeof(m.sidr_req));
    assert_ptr_equal(e->listen, listener);
    struct cm_id *id = e->id;
    rig_say(&rig, &m);
    rig_silent(&rig);
    rig_no_event(&rig);
    assert_int_equal(cm_sidr_reply(rig.cm, rig.now_ns, id, &rep, rig_nothing), 0);
    for (int i = 0; i < 2; i++) {
        const struct cm_msg *answer = rig_hear(&rig, CM_SIDR_REP);
        assert_int_equal(answer->sidr_rep.request_id, PEER_ID);
        assert_int_equal(answer->sidr_rep.status, CM_SIDR_SUCCESS);
        assert_int_equal(answer->sidr_rep.qpn, RIG_QPN);
        assert_true(answer->sidr_rep.service_id == RIG_SERVICE);
        assert_true(answer->header.tid == 0x77);
        rig_say(&rig, &m);
    }
    rig_hear(&rig, CM_SIDR_REP);
    rig_no_event(&rig);
    rig_drop(&rig, id);
    rig_drop(&rig, listener);
    rig_end(&rig);
}

static void cm_input_sidr_req__refused(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_msg m = peer_sidr_req();
    rig_say(&rig, &m);
    assert_int_equal(rig_hear(&rig, CM_SIDR_REP)->sidr_rep.status, CM_SIDR_UNSUPPORTED);
    struct cm_service service = {.service_id = cm_ip_service_id(CM_PORT_SPACE_UDP, 9),
                                 .bind = CM_BIND_ANY};
    struct cm_id *listener[2];
    assert_int_equal(cm_listen(rig.cm, &service, 0, NULL, &listener[0]), 0);
    m.sidr_req.service_id = service.service_id;
    rig_say(&rig, &m); /* no addressing header */
    assert_int_equal(rig_hear(&rig, CM_SIDR_REP)->sidr_rep.status, CM_SIDR_REJECT);
    service.service_id = cm_ip_service_id(CM_PORT_SPACE_TCP, 9);
    assert_int_equal(cm_listen(rig.cm, &service, 0, NULL, &listener[1]), 0);
    m.sidr_req.service_id = service.service_id;
    rig_say(&rig, &m); /* a port of connections */
    assert_int_equal(rig_hear(&rig, CM_SIDR_REP)->sidr_rep.status, CM_SIDR_REJECT);
    rig_no_event(&rig);
    rig_drop(&rig, listener[0]);
    rig_drop(&rig, listener[1]);
    rig_end(&rig);
}

static void cm_input_sidr_rep__only_what_was_asked(void **state)
{
    (void)state;
    rig_begin(&rig, 4);
    struct cm_sidr_req req = {.service_id = RIG_SERVICE, .pkey = 0xffff};
    struct cm_id *id;
    assert_int_equal(
        cm_sidr_connect(rig.cm, rig.now_ns, &rig.path, &req, 20, 3, rig_nothing, NULL, &id), 0);
    const struct cm_msg *said = rig_hear(&rig, CM_SIDR_REQ);
    struct cm_msg m = {
        .header = {.attribute = CM_SIDR_REP, .tid = said->header.tid}
    };
    struct cm_path other = rig.path;
    m.sidr_rep.request_id = said->sidr_req.request_id;
    m.sidr_rep.service_id = RIG_SERVICE + 1;
    rig_say(&rig, &m);
    m.sidr_rep.service_id = RIG_SERVICE;
    other.remote.b[15]++;
    rig_say_from(&rig, &other, &m);
    m.sidr_rep.request_id++;
    rig_say(&rig, &m);
    rig_no_event(&rig);
    m.sidr_rep.request_id--;
    m.sidr_rep.qpn = 0x42;
    rig_say(&rig, &m);
    assert_int_equal(rig_event(&rig, CM_EVENT_SIDR_REP)->msg.sidr_rep.qpn, 0x42);
    rig_say(&rig, &m);
    rig_no_event(&rig);
    rig_drop(&rig, id);
    rig_end(&rig);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(cm_input__each_message_in_each_state),
        cmocka_unit_test(cm_input__strangers),
        cmocka_unit_test(cm_input__malformed),
        cmocka_unit_test(cm_input_req__all_attributes),
        cmocka_unit_test(cm_input_req__rejected_for_a_reason),
        cmocka_unit_test(cm_input_req__alternate_path_is_not_supported),
        cmocka_unit_test(cm_input_req__same_answer_again),
        cmocka_unit_test(cm_input_rep__same_answer_again),
        cmocka_unit_test(cm_input_dreq__answered_again_with_its_tid),
        cmocka_unit_test(cm_input_dreq__wrong_qpn),
        cmocka_unit_test(cm_say_again__answers_only),
        cmocka_unit_test(case_96_crossed_dreqs),
        cmocka_unit_test(cm_input_req__crossed),
        cmocka_unit_test(cm_input_req__stale_qpn),
        cmocka_unit_test(cm_input_req__stale_comm_id),
        cmocka_unit_test(cm_input_req__stale_before_it_was_seen),
        cmocka_unit_test(cm_input_rep__stale_qpn),
        cmocka_unit_test(cm_input_rep__of_another_life),
        cmocka_unit_test(cm_input_rep__bad_qpn),
        cmocka_unit_test(cm_input__unknown_ids),
        cmocka_unit_test(cm_input_lap__refused),
        cmocka_unit_test(cm_input_rej__timeout_without_our_id),
        cmocka_unit_test(cm_input_sidr_req__once),
        cmocka_unit_test(cm_input_sidr_req__refused),
        cmocka_unit_test(cm_input_sidr_rep__only_what_was_asked),
    };
    return cmocka_run_group_tests_name("cm_input", tests, NULL, NULL);
}
