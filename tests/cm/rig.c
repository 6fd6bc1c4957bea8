/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rig.c: see rig.h.
 */
#include "rig.h"

static void take_mad(struct cm_sink *sink, const struct cm_path *path, const uint8_t mad[MAD_BYTES])
{
    struct rig *r = (struct rig *)((char *)sink - offsetof(struct rig, sink));
    assert_true(r->count < RIG_HEARD);
    struct heard *h = &r->heard[(r->first + r->count++) % RIG_HEARD];
    h->path = *path;
    memcpy(h->mad, mad, MAD_BYTES);
    assert_int_equal(cm_msg_check(mad, MAD_BYTES), MAD_OK);
    cm_msg_parse(mad, &h->m);
}

static void drain(struct rig *r)
{
    while (cm_output(r->cm, &r->sink, 3))
        ;
}

void rig_begin(struct rig *r, uint32_t max_ids)
{
    const struct cm_config config = {
        .seed = 7, .slot = RIG_SLOT, .ca_guid = RIG_GUID, .max_ids = max_ids};
    memset(r, 0, sizeof(*r));
    r->sink.mad = take_mad;
    r->now_ns = 1000000000;
    r->path.local = (struct net_addr){
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}
    };
    r->path.remote = (struct net_addr){
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2}
    };
    r->path.flow_label = 0xabcde;
    r->path.hop_limit = 64;
    assert_int_equal(cm_create(&config, &r->cm), 0);
}

void rig_end(struct rig *r)
{
    rig_silent(r);
    rig_no_event(r);
    assert_int_equal(cm_ids_in_use(r->cm), 0);
    assert_true(cm_deadline(r->cm) == UINT64_MAX);
    cm_destroy(r->cm);
}

void rig_say_from(struct rig *r, const struct cm_path *path, struct cm_msg *m)
{
    uint8_t mad[MAD_BYTES];
    if (m->header.tid == 0)
        m->header.tid = 0x77;
    cm_msg_build(m, mad);
    cm_input(r->cm, r->now_ns, path, mad, sizeof(mad));
}

void rig_say(struct rig *r, struct cm_msg *m)
{
    rig_say_from(r, &r->path, m);
}

const struct cm_msg *rig_hear(struct rig *r, unsigned attribute)
{
    drain(r);
    if (r->count == 0)
        fail_msg("nothing to hear, expected %s", cm_msg_attribute_name(attribute));
    struct heard *h = &r->heard[r->first];
    r->first = (r->first + 1) % RIG_HEARD;
    r->count--;
    assert_string_equal(cm_msg_attribute_name(h->m.header.attribute),
                        cm_msg_attribute_name(attribute));
    assert_memory_equal(h->path.remote.b, r->path.remote.b, 16);
    assert_memory_equal(h->path.local.b, r->path.local.b, 16);
    return &h->m;
}

void rig_silent(struct rig *r)
{
    drain(r);
    if (r->count > 0)
        fail_msg("unexpected %s", cm_msg_attribute_name(r->heard[r->first].m.header.attribute));
}

struct cm_event *rig_event(struct rig *r, enum cm_event_type type)
{
    if (!cm_event_next(r->cm, &r->event))
        fail_msg("no event, expected %s", cm_event_name(type));
    assert_string_equal(cm_event_name(r->event.type), cm_event_name(type));
    return &r->event;
}

void rig_no_event(struct rig *r)
{
    assert_false(cm_has_event(r->cm));
    if (cm_event_next(r->cm, &r->event))
        fail_msg("unexpected event %s", cm_event_name(r->event.type));
}

void rig_wait(struct rig *r, uint64_t ns)
{
    assert_int_equal(cm_deadline(r->cm) - r->now_ns, ns);
    cm_advance(r->cm, r->now_ns + ns - 1);
    rig_silent(r);
    r->now_ns += ns;
    cm_advance(r->cm, r->now_ns);
}

void rig_idle(struct rig *r, uint64_t ns)
{
    r->now_ns += ns;
    assert_true(cm_deadline(r->cm) > r->now_ns);
    cm_advance(r->cm, r->now_ns);
}

struct cm_req rig_req(void)
{
    return (struct cm_req){
        .service_id = RIG_SERVICE,
        .local_qpn = RIG_QPN,
        .starting_psn = 0x123456,
        .responder_resources = 1,
        .initiator_depth = 2,
        .remote_cm_response_timeout = 20,
        .local_cm_response_timeout = 20,
        .retry_count = 7,
        .rnr_retry_count = 7,
        .max_cm_retries = 15,
        .pkey = 0xffff,
        .path_mtu = 3,
        .primary = {.local_ack_timeout = 19},
    };
}

struct cm_rep rig_rep(void)
{
    return (struct cm_rep){
        .local_qpn = RIG_QPN, .starting_psn = 0x654321, .rnr_retry_count = 7, .initiator_depth = 1};
}

struct cm_msg peer_req(struct rig *r)
{
    struct cm_msg m = {.header = {.attribute = CM_REQ}, .req = rig_req()};
    m.req.local_comm_id = PEER_ID;
    m.req.local_ca_guid = PEER_GUID;
    m.req.local_qpn = PEER_QPN;
    m.req.primary.flow_label = 0xfae11;
    memcpy(m.req.primary.local_gid, r->path.remote.b, 16);
    memcpy(m.req.primary.remote_gid, r->path.local.b, 16);
    m.req.private_data[0] = 0xaa;
    m.req.private_data[91] = 0xbb;
    return m;
}

struct cm_msg peer_msg(unsigned attribute, uint32_t our_id)
{
    struct cm_msg m = {.header = {.attribute = (uint16_t)attribute}};
    m.mra.local_comm_id = PEER_ID;
    m.mra.remote_comm_id = our_id;
    if (attribute == CM_REP) {
        m.rep.local_qpn = PEER_QPN;
        m.rep.starting_psn = 0x222222;
        m.rep.local_ca_guid = PEER_GUID;
    } else if (attribute == CM_DREQ) {
        m.dreq.remote_qpn = RIG_QPN;
    }
    return m;
}

struct cm_id *rig_listen(struct rig *r, unsigned backlog)
{
    const struct cm_service service = {.service_id = RIG_SERVICE, .bind = CM_BIND_ANY};
    struct cm_id *id;
    assert_int_equal(cm_listen(r->cm, &service, backlog, r, &id), 0);
    return id;
}

struct cm_id *rig_req_sent(struct rig *r)
{
    struct cm_req req = rig_req();
    struct cm_id *id;
    assert_int_equal(cm_connect(r->cm, r->now_ns, &r->path, &req, rig_nothing, r, &id), 0);
    rig_hear(r, CM_REQ);
    return id;
}

struct cm_id *rig_rep_rcvd(struct rig *r)
{
    struct cm_id *id = rig_req_sent(r);
    struct cm_msg m = peer_msg(CM_REP, rig_comm_id(id));
    rig_say(r, &m);
    rig_event(r, CM_EVENT_REP);
    return id;
}

struct cm_id *rig_active(struct rig *r)
{
    struct cm_id *id = rig_rep_rcvd(r);
    assert_int_equal(cm_ready(r->cm, r->now_ns, id, rig_nothing), 0);
    rig_hear(r, CM_RTU);
    rig_event(r, CM_EVENT_ESTABLISHED);
    return id;
}

struct cm_id *rig_req_rcvd(struct rig *r)
{
    struct cm_msg m = peer_req(r);
    rig_say(r, &m);
    return rig_event(r, CM_EVENT_REQ)->id;
}

struct cm_id *rig_rep_sent(struct rig *r)
{
    struct cm_id *id = rig_req_rcvd(r);
    struct cm_rep rep = rig_rep();
    assert_int_equal(cm_reply(r->cm, r->now_ns, id, &rep, rig_nothing), 0);
    rig_hear(r, CM_REP);
    return id;
}

struct cm_id *rig_passive(struct rig *r)
{
    struct cm_id *id = rig_rep_sent(r);
    struct cm_msg m = peer_msg(CM_RTU, rig_comm_id(id));
    rig_say(r, &m);
    rig_event(r, CM_EVENT_ESTABLISHED);
    return id;
}

uint32_t rig_comm_id(const struct cm_id *id)
{
    struct cm_ends ends;
    cm_id_ends(id, &ends);
    return ends.local_comm_id;
}

void rig_drop(struct rig *r, struct cm_id *id)
{
    cm_id_destroy(r->cm, r->now_ns, id);
    for (unsigned i = 0; cm_deadline(r->cm) != UINT64_MAX; i++) {
        assert_true(i < 10000);
        r->now_ns = cm_deadline(r->cm);
        cm_advance(r->cm, r->now_ns);
        drain(r);
        r->count = 0;
    }
    drain(r);
    r->count = 0;
}
