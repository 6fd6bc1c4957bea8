/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_cm.c: CM messages of any content to the parser and to a communication manager with listeners
 * and connections. The bytes are a list of steps: a MAD (its header and ids mended on demand, or
 * the fuzzer would not come far), a while of time, an event answered in one of several ways.
 */
#include "wire_props.h"

#include "base/bytes.h"
#include "cm/cm.h"
#include "wire/cm_ip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum {
    IDS = 12,
    HELD = 32,
    IP_SERVICE = 1 << 24 | CM_PORT_SPACE_TCP << 16 | 7,
    REQ_PRIVATE_AT = 140,
    SIDR_REQ_PRIVATE_AT = 16,
};

struct input {
    const uint8_t *at, *end;
};

static struct cm *cm;
static struct cm_id *held[HELD];
static uint64_t now_ns;
static uint32_t last_remote; /* an id of ours that the last message out named */

static unsigned next(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

/* The addresses in a REQ's or SIDR_REQ's private data. */
static void props_cm_ip(const uint8_t *data, size_t n)
{
    uint8_t built[CM_IP_HEADER_BYTES];
    struct cm_ip ip, again;
    if (!cm_ip_parse(data, n, &ip))
        return;
    cm_ip_build(&ip, built);
    PROP(cm_ip_parse(built, sizeof(built), &again));
    PROP(ip.v6 == again.v6 && ip.src_port == again.src_port);
    PROP(memcmp(ip.src, again.src, 16) == 0 && memcmp(ip.dst, again.dst, 16) == 0);
}

/* Check, parse and build agree; what was built is the same message. */
static enum mad_verdict props_cm_msg(const uint8_t *mad, size_t n)
{
    static uint8_t built[MAD_BYTES], answer[MAD_BYTES];
    static struct cm_msg m, again;
    struct cm_route route;
    enum mad_verdict v = cm_msg_check(mad, n);
    cm_route(mad, n, &route);
    PROP((v == MAD_OK) == (route.kind != CM_ROUTE_NONE));
    PROP(route.slot < 1u << CM_SLOT_BITS);
    if (v != MAD_OK) {
        PROP(!cm_refuse(mad, n, answer));
        return v;
    }
    cm_msg_parse(mad, &m);
    cm_msg_build(&m, built);
    PROP(cm_msg_check(built, MAD_BYTES) == MAD_OK);
    cm_msg_parse(built, &again);
    PROP(memcmp(&m, &again, sizeof(m)) == 0);
    if (m.header.attribute == CM_REQ)
        props_cm_ip(m.req.private_data, sizeof(m.req.private_data));
    if (m.header.attribute == CM_SIDR_REQ)
        props_cm_ip(m.sidr_req.private_data, sizeof(m.sidr_req.private_data));
    if (cm_refuse(mad, n, answer))
        PROP(cm_msg_check(answer, MAD_BYTES) == MAD_OK);
    return v;
}

static void heard(struct cm_sink *sink, const struct cm_path *path, const uint8_t mad[MAD_BYTES])
{
    struct cm_msg m;
    (void)sink;
    (void)path;
    PROP(cm_msg_check(mad, MAD_BYTES) == MAD_OK);
    cm_msg_parse(mad, &m);
    if (cm_msg_local_comm_id(&m) != 0)
        last_remote = cm_msg_local_comm_id(&m);
}

static void path_of(unsigned choice, struct cm_path *path)
{
    *path = (struct cm_path){.hop_limit = 64};
    path->local = (struct net_addr){
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}
    };
    path->remote = path->local;
    path->remote.b[15] = (uint8_t)(2 + (choice & 1));
}

/* To an IP service, from the addresses that it must say. */
static void mend_ip(uint8_t *mad, const struct cm_path *path, bool v6)
{
    struct cm_ip ip = {.v6 = v6, .src_port = 9};
    memcpy(ip.src, path->remote.b, sizeof(ip.src));
    memcpy(ip.dst, path->local.b, sizeof(ip.dst));
    if (mad[17] == CM_REQ) {
        put_be64(mad + 24 + 8, IP_SERVICE);
        cm_ip_build(&ip, mad + 24 + REQ_PRIVATE_AT);
    } else if (mad[17] == CM_SIDR_REQ) {
        put_be64(mad + 24 + 8, IP_SERVICE);
        cm_ip_build(&ip, mad + 24 + SIDR_REQ_PRIVATE_AT);
    }
}

static void step_mad(struct input *in)
{
    uint8_t mad[MAD_BYTES] = {1, 7, 2, 3};
    unsigned mend = next(in), attribute = next(in);
    struct cm_path path;
    path_of(mend >> 7, &path);
    mad[17] = (uint8_t)(CM_REQ + attribute % 11);
    size_t left = (size_t)(in->end - in->at), n = left < 232 ? left : 232;
    n = n < (attribute & 0xf0u) ? n : (attribute & 0xf0u);
    memcpy(mad + 24, in->at, n);
    in->at += n;
    if (mend & 1)
        put_be32(mad + 24, 0x60d80000 + (mend >> 1 & 3)); /* the peer's */
    if ((mend & 8) && mad[17] != CM_REQ && mad[17] != CM_SIDR_REQ)
        put_be32(mad + (mad[17] == CM_SIDR_REP ? 24 : 28), last_remote);
    if ((mend & 16) && mad[17] == CM_REQ) {
        put_be64(mad + 24 + 8, 7);
        mad[24 + 50] = 0x30;
        mad[24 + 43] &= 0xf9;
        memcpy(mad + 24 + 56, path.remote.b, 16);
        memcpy(mad + 24 + 72, path.local.b, 16);
    }
    if ((mend & 16) && mad[17] == CM_SIDR_REQ)
        put_be64(mad + 24 + 8, 7);
    if ((mend & 16) && mad[17] == CM_DREQ)
        put_be24(mad + 24 + 8, 0x4242);
    if (mend & 32)
        mend_ip(mad, &path, mend & 64);
    props_cm_msg(mad, MAD_BYTES);
    cm_input(cm, now_ns, &path, mad, MAD_BYTES);
}

static void hold(struct cm_id *id)
{
    for (unsigned i = 0; i < HELD; i++) {
        if (held[i] == NULL) {
            held[i] = id;
            return;
        }
    }
    PROP(false);
}

static void step_call(struct input *in)
{
    static const struct cm_private nothing;
    static const struct cm_rep rep = {.local_qpn = 0x4242};
    static const struct cm_sidr_rep sidr_rep = {.qpn = 0x4242};
    struct cm_id **place = &held[next(in) % HELD];
    if (*place == NULL)
        return;
    switch (next(in) % 9) {
    case 0:
        cm_reply(cm, now_ns, *place, &rep, nothing);
        break;
    case 1:
        cm_ready(cm, now_ns, *place, nothing);
        break;
    case 2:
        cm_reject(cm, now_ns, *place, CM_REJ_CONSUMER_DEFINED, nothing, nothing);
        break;
    case 3:
        cm_mra(cm, now_ns, *place, 20, nothing);
        break;
    case 4:
        cm_establish(cm, now_ns, *place);
        break;
    case 5:
        cm_disconnect(cm, now_ns, *place, nothing);
        break;
    case 6:
        cm_sidr_reply(cm, now_ns, *place, &sidr_rep, nothing);
        break;
    default:
        cm_id_destroy(cm, now_ns, *place);
        *place = NULL;
    }
}

static void step_begin(struct input *in)
{
    static const struct cm_private nothing;
    static const struct cm_req req = {.service_id = 7,
                                      .local_qpn = 0x4242,
                                      .path_mtu = 3,
                                      .max_cm_retries = 2,
                                      .remote_cm_response_timeout = 10};
    static const struct cm_sidr_req sidr_req = {.service_id = 7};
    unsigned which = next(in);
    const struct cm_service service = {.service_id = which & 4 ? IP_SERVICE : 7 + which % 2,
                                       .bind = CM_BIND_ANY};
    struct cm_path path;
    struct cm_id *id;
    unsigned what = next(in);
    path_of(what >> 7, &path);
    if ((what % 3 == 0 && cm_connect(cm, now_ns, &path, &req, nothing, NULL, &id) == 0) ||
        (what % 3 == 1 &&
         cm_sidr_connect(cm, now_ns, &path, &sidr_req, 10, 2, nothing, NULL, &id) == 0) ||
        (what % 3 == 2 && cm_listen(cm, &service, 2, NULL, &id) == 0))
        hold(id);
}

static void settle(void)
{
    struct cm_sink sink = {.mad = heard};
    struct cm_event e;
    while (cm_output(cm, &sink, 5))
        ;
    while (cm_event_next(cm, &e)) {
        PROP((unsigned)e.type < CM_EVENT_COUNT && e.id != NULL);
        if (e.type == CM_EVENT_REQ || e.type == CM_EVENT_SIDR_REQ) {
            PROP(e.listen != NULL);
            hold(e.id);
        }
    }
    PROP(cm_ids_in_use(cm) <= IDS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct cm_config config = {.seed = 1, .slot = 3, .ca_guid = 9, .max_ids = IDS};
    struct input in = {data, data + n};
    props_cm_msg(data, n);
    if (n >= MAD_BYTES)
        props_cm_msg(data, MAD_BYTES);
    PROP(cm_create(&config, &cm) == 0);
    memset(held, 0, sizeof(held));
    now_ns = 1;
    while (in.at < in.end) {
        unsigned step = next(&in) % 8;
        if (step < 4)
            step_mad(&in);
        else if (step < 6)
            step_call(&in);
        else if (step == 6)
            step_begin(&in);
        else
            now_ns += 1ull << (next(&in) % 37);
        cm_advance(cm, now_ns);
        settle();
    }
    for (unsigned i = 0; i < HELD; i++)
        if (held[i] != NULL)
            cm_id_destroy(cm, now_ns, held[i]);
    settle();
    while (cm_deadline(cm) != UINT64_MAX) {
        now_ns = cm_deadline(cm);
        cm_advance(cm, now_ns);
        settle();
    }
    PROP(cm_ids_in_use(cm) == 0 && !cm_has_output(cm));
    cm_destroy(cm);
    return 0;
}
