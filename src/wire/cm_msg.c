/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_msg.c: one table of fields a message, read by parse and by build. Places count from the byte
 * behind the MAD header, bits from a byte's most significant one, as in the specification.
 */
#include "wire/cm_msg.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"

/* Width 0: bytes as they are, so many as the member has. */
struct field {
    uint8_t at, bit, width;
    uint8_t member_bytes;
    uint16_t member;
};

#define MEMBER(message, name)                                                                      \
    .member_bytes = sizeof(((struct cm_##message *)0)->name),                                      \
    .member = offsetof(struct cm_##message, name)
#define BITS(message, name, byte, first, bits)                                                     \
    {                                                                                              \
        .at = (byte), .bit = (first), .width = (bits), MEMBER(message, name)                       \
    }
#define BYTES(message, name, byte)                                                                 \
    {                                                                                              \
        .at = (byte), MEMBER(message, name)                                                        \
    }
#define COMM_IDS(message)                                                                          \
    BITS(message, local_comm_id, 0, 0, 32), BITS(message, remote_comm_id, 4, 0, 32)
#define REQ_PATH(path, byte)                                                                       \
    BITS(req, path.local_lid, (byte), 0, 16), BITS(req, path.remote_lid, (byte) + 2, 0, 16),       \
        BYTES(req, path.local_gid, (byte) + 4), BYTES(req, path.remote_gid, (byte) + 20),          \
        BITS(req, path.flow_label, (byte) + 36, 0, 20),                                            \
        BITS(req, path.packet_rate, (byte) + 39, 2, 6),                                            \
        BITS(req, path.traffic_class, (byte) + 40, 0, 8),                                          \
        BITS(req, path.hop_limit, (byte) + 41, 0, 8), BITS(req, path.sl, (byte) + 42, 0, 4),       \
        BITS(req, path.subnet_local, (byte) + 42, 4, 1),                                           \
        BITS(req, path.local_ack_timeout, (byte) + 43, 0, 5)

static const struct field req_fields[] = {
    BITS(req, local_comm_id, 0, 0, 32),
    BITS(req, ece_vendor_id, 5, 0, 24),
    BITS(req, service_id, 8, 0, 64),
    BITS(req, local_ca_guid, 16, 0, 64),
    BITS(req, local_qkey, 28, 0, 32),
    BITS(req, local_qpn, 32, 0, 24),
    BITS(req, responder_resources, 35, 0, 8),
    BITS(req, local_eecn, 36, 0, 24),
    BITS(req, initiator_depth, 39, 0, 8),
    BITS(req, remote_eecn, 40, 0, 24),
    BITS(req, remote_cm_response_timeout, 43, 0, 5),
    BITS(req, transport, 43, 5, 2),
    BITS(req, flow_control, 43, 7, 1),
    BITS(req, starting_psn, 44, 0, 24),
    BITS(req, local_cm_response_timeout, 47, 0, 5),
    BITS(req, retry_count, 47, 5, 3),
    BITS(req, pkey, 48, 0, 16),
    BITS(req, path_mtu, 50, 0, 4),
    BITS(req, rdc_exists, 50, 4, 1),
    BITS(req, rnr_retry_count, 50, 5, 3),
    BITS(req, max_cm_retries, 51, 0, 4),
    BITS(req, srq, 51, 4, 1),
    BITS(req, transport_extended, 51, 5, 3),
    REQ_PATH(primary, 52),
    REQ_PATH(alternate, 96),
    BYTES(req, private_data, 140),
};

static const struct field mra_fields[] = {
    COMM_IDS(mra),
    BITS(mra, about, 8, 0, 2),
    BITS(mra, service_timeout, 9, 0, 5),
    BYTES(mra, private_data, 10),
};

static const struct field rej_fields[] = {
    COMM_IDS(rej),
    BITS(rej, about, 8, 0, 2),
    BITS(rej, info_bytes, 9, 0, 7),
    BITS(rej, reason, 10, 0, 16),
    BYTES(rej, info, 12),
    BYTES(rej, private_data, 84),
};

/* The ECE vendor's number lies in three reserved bytes: split_vendor. */
static const struct field rep_fields[] = {
    COMM_IDS(rep),
    BITS(rep, local_qkey, 8, 0, 32),
    BITS(rep, local_qpn, 12, 0, 24),
    BITS(rep, local_eecn, 16, 0, 24),
    BITS(rep, starting_psn, 20, 0, 24),
    BITS(rep, responder_resources, 24, 0, 8),
    BITS(rep, initiator_depth, 25, 0, 8),
    BITS(rep, target_ack_delay, 26, 0, 5),
    BITS(rep, failover_accepted, 26, 5, 2),
    BITS(rep, flow_control, 26, 7, 1),
    BITS(rep, rnr_retry_count, 27, 0, 3),
    BITS(rep, srq, 27, 3, 1),
    BITS(rep, local_ca_guid, 28, 0, 64),
    BYTES(rep, private_data, 36),
};

static const struct field rtu_fields[] = {COMM_IDS(rtu), BYTES(rtu, private_data, 8)};

static const struct field dreq_fields[] = {
    COMM_IDS(dreq),
    BITS(dreq, remote_qpn, 8, 0, 24),
    BYTES(dreq, private_data, 12),
};

static const struct field drep_fields[] = {COMM_IDS(drep), BYTES(drep, private_data, 8)};

static const struct field sidr_req_fields[] = {
    BITS(sidr_req, request_id, 0, 0, 32),
    BITS(sidr_req, pkey, 4, 0, 16),
    BITS(sidr_req, service_id, 8, 0, 64),
    BYTES(sidr_req, private_data, 16),
};

static const struct field sidr_rep_fields[] = {
    BITS(sidr_rep, request_id, 0, 0, 32),
    BITS(sidr_rep, status, 4, 0, 8),
    BITS(sidr_rep, info_bytes, 5, 0, 8),
    BITS(sidr_rep, qpn, 8, 0, 24),
    BITS(sidr_rep, service_id, 12, 0, 64),
    BITS(sidr_rep, qkey, 20, 0, 32),
    BYTES(sidr_rep, info, 24),
    BYTES(sidr_rep, private_data, 96),
};

static const struct field lap_fields[] = {
    COMM_IDS(lap),
    BITS(lap, remote_qpn, 12, 0, 24),
    BITS(lap, remote_cm_response_timeout, 15, 0, 5),
    BITS(lap, alternate.local_lid, 20, 0, 16),
    BITS(lap, alternate.remote_lid, 22, 0, 16),
    BYTES(lap, alternate.local_gid, 24),
    BYTES(lap, alternate.remote_gid, 40),
    BITS(lap, alternate.flow_label, 56, 0, 20),
    BITS(lap, alternate.traffic_class, 59, 0, 8),
    BITS(lap, alternate.hop_limit, 60, 0, 8),
    BITS(lap, alternate.packet_rate, 61, 2, 6),
    BITS(lap, alternate.sl, 62, 0, 4),
    BITS(lap, alternate.subnet_local, 62, 4, 1),
    BITS(lap, alternate.local_ack_timeout, 63, 0, 5),
    BYTES(lap, private_data, 64),
};

static const struct field apr_fields[] = {
    COMM_IDS(apr),        BITS(apr, info_bytes, 8, 0, 8), BITS(apr, status, 9, 0, 8),
    BYTES(apr, info, 12), BYTES(apr, private_data, 84),
};

enum { FIRST = CM_REQ, MESSAGES = CM_APR - CM_REQ + 1 };

#define MESSAGE(attribute, text, table, private_bytes)                                             \
    [(attribute)-FIRST] = {text, table, sizeof(table) / sizeof((table)[0]), private_bytes}
static const struct {
    const char *name;
    const struct field *fields;
    uint8_t count;
    uint8_t private_bytes;
} messages[MESSAGES] = {
    MESSAGE(CM_REQ, "REQ", req_fields, CM_REQ_PRIVATE_BYTES),
    MESSAGE(CM_MRA, "MRA", mra_fields, CM_MRA_PRIVATE_BYTES),
    MESSAGE(CM_REJ, "REJ", rej_fields, CM_REJ_PRIVATE_BYTES),
    MESSAGE(CM_REP, "REP", rep_fields, CM_REP_PRIVATE_BYTES),
    MESSAGE(CM_RTU, "RTU", rtu_fields, CM_RTU_PRIVATE_BYTES),
    MESSAGE(CM_DREQ, "DREQ", dreq_fields, CM_DREQ_PRIVATE_BYTES),
    MESSAGE(CM_DREP, "DREP", drep_fields, CM_DREP_PRIVATE_BYTES),
    MESSAGE(CM_SIDR_REQ, "SIDR_REQ", sidr_req_fields, CM_SIDR_REQ_PRIVATE_BYTES),
    MESSAGE(CM_SIDR_REP, "SIDR_REP", sidr_rep_fields, CM_SIDR_REP_PRIVATE_BYTES),
    MESSAGE(CM_LAP, "LAP", lap_fields, CM_LAP_PRIVATE_BYTES),
    MESSAGE(CM_APR, "APR", apr_fields, CM_APR_PRIVATE_BYTES),
};

static bool is_message(unsigned attribute)
{
    return attribute >= FIRST && attribute < FIRST + MESSAGES;
}

const char *cm_msg_attribute_name(unsigned attribute)
{
    return is_message(attribute) ? messages[attribute - FIRST].name : "?";
}

size_t cm_msg_private_bytes(unsigned attribute)
{
    return is_message(attribute) ? messages[attribute - FIRST].private_bytes : 0;
}

const char *cm_msg_reason_name(unsigned reason)
{
    static const char *const names[] = {
        [CM_REJ_NO_QP] = "no QP available",
        [CM_REJ_NO_EEC] = "no EEC available",
        [CM_REJ_NO_RESOURCES] = "no resources available",
        [CM_REJ_TIMEOUT] = "timeout",
        [CM_REJ_UNSUPPORTED] = "unsupported request",
        [CM_REJ_INVALID_COMM_ID] = "invalid communication ID",
        [CM_REJ_INVALID_COMM_INSTANCE] = "invalid communication instance",
        [CM_REJ_INVALID_SERVICE_ID] = "invalid service ID",
        [CM_REJ_INVALID_TRANSPORT_TYPE] = "invalid transport service type",
        [CM_REJ_STALE_CONN] = "stale connection",
        [CM_REJ_RDC_NOT_EXIST] = "RDC does not exist",
        [CM_REJ_INVALID_GID] = "primary remote port GID rejected",
        [CM_REJ_INVALID_LID] = "primary remote port LID rejected",
        [CM_REJ_INVALID_SL] = "invalid primary SL",
        [CM_REJ_INVALID_TRAFFIC_CLASS] = "invalid primary traffic class",
        [CM_REJ_INVALID_HOP_LIMIT] = "invalid primary hop limit",
        [CM_REJ_INVALID_PACKET_RATE] = "invalid primary packet rate",
        [CM_REJ_INVALID_ALT_GID] = "alternate remote port GID rejected",
        [CM_REJ_INVALID_ALT_LID] = "alternate remote port LID rejected",
        [CM_REJ_INVALID_ALT_SL] = "invalid alternate SL",
        [CM_REJ_INVALID_ALT_TRAFFIC_CLASS] = "invalid alternate traffic class",
        [CM_REJ_INVALID_ALT_HOP_LIMIT] = "invalid alternate hop limit",
        [CM_REJ_INVALID_ALT_PACKET_RATE] = "invalid alternate packet rate",
        [CM_REJ_PORT_CM_REDIRECT] = "port and CM redirection",
        [CM_REJ_PORT_REDIRECT] = "port redirection",
        [CM_REJ_INVALID_MTU] = "invalid path MTU",
        [CM_REJ_INSUFFICIENT_RESP_RESOURCES] = "insufficient responder resources",
        [CM_REJ_CONSUMER_DEFINED] = "consumer reject",
        [CM_REJ_INVALID_RNR_RETRY] = "RNR retry count reject",
        [CM_REJ_DUPLICATE_LOCAL_COMM_ID] = "duplicate local communication ID",
        [CM_REJ_INVALID_CLASS_VERSION] = "invalid class version",
        [CM_REJ_INVALID_FLOW_LABEL] = "invalid primary flow label",
        [CM_REJ_INVALID_ALT_FLOW_LABEL] = "invalid alternate flow label",
        [CM_REJ_VENDOR_OPTION_NOT_SUPPORTED] = "vendor option not supported",
    };
    if (reason >= sizeof(names) / sizeof(names[0]) || names[reason] == NULL)
        return "unknown reason";
    return names[reason];
}

static uint64_t get_bits(const uint8_t *p, unsigned bit, unsigned width)
{
    uint64_t v = 0;
    for (unsigned end = bit + width; bit < end; bit++)
        v = v << 1 | (p[bit / 8] >> (7 - bit % 8) & 1);
    return v;
}

/* Into zeros. */
static void put_bits(uint8_t *p, unsigned bit, unsigned width, uint64_t v)
{
    assert(width == 64 || v >> width == 0);
    for (unsigned i = bit + width; i-- > bit; v >>= 1)
        p[i / 8] |= (uint8_t)((v & 1) << (7 - i % 8));
}

static uint64_t get_member(const uint8_t *member, uint8_t bytes)
{
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (bytes) {
    case 1:
        return *member;
    case 2:
        memcpy(&two, member, 2);
        return two;
    case 4:
        memcpy(&four, member, 4);
        return four;
    default:
        memcpy(&eight, member, 8);
        return eight;
    }
}

static void set_member(uint8_t *member, uint8_t bytes, uint64_t v)
{
    uint16_t two = (uint16_t)v;
    uint32_t four = (uint32_t)v;
    switch (bytes) {
    case 1:
        *member = (uint8_t)v;
        return;
    case 2:
        memcpy(member, &two, 2);
        return;
    case 4:
        memcpy(member, &four, 4);
        return;
    default:
        memcpy(member, &v, 8);
    }
}

/* Where REP and SIDR_REP have the ECE vendor's number: bytes of it, most significant first. */
static const uint8_t rep_vendor_at[3] = {15, 19, 23}, sidr_rep_vendor_at[3] = {6, 7, 11};

static uint32_t get_vendor(const uint8_t *body, const uint8_t at[3])
{
    return (uint32_t)body[at[0]] << 16 | (uint32_t)body[at[1]] << 8 | body[at[2]];
}

static void put_vendor(uint8_t *body, const uint8_t at[3], uint32_t vendor)
{
    assert(vendor >> 24 == 0);
    for (int i = 0; i < 3; i++)
        body[at[i]] = (uint8_t)(vendor >> (16 - 8 * i));
}

/* Ids that a sender must have: its own, and that of the peer where it answers. */
static bool ids_present(const uint8_t *body, unsigned attribute)
{
    bool first = get_be32(body) != 0, second = get_be32(body + 4) != 0;
    switch (attribute) {
    case CM_REQ:
    case CM_SIDR_REQ:
    case CM_SIDR_REP:
        return first;
    case CM_REJ:
        return first || second;
    default:
        return first && second;
    }
}

enum mad_verdict cm_msg_check(const uint8_t *mad, size_t n)
{
    enum mad_verdict v = mad_check(mad, n);
    if (v != MAD_OK)
        return v;
    unsigned attribute = get_be16(mad + 16);
    if (!is_message(attribute))
        return MAD_BAD_ATTRIBUTE;
    const uint8_t *body = mad + MAD_HEADER_BYTES;
    unsigned about = body[8] >> 6, info_bytes = 0;
    if (!ids_present(body, attribute))
        return MAD_BAD_FIELD;
    if ((attribute == CM_MRA || attribute == CM_REJ) && about > CM_ABOUT_OTHER)
        return MAD_BAD_FIELD;
    if (attribute == CM_REJ)
        info_bytes = body[9] >> 1;
    else if (attribute == CM_SIDR_REP)
        info_bytes = body[5];
    else if (attribute == CM_APR)
        info_bytes = body[8];
    return info_bytes <= CM_INFO_BYTES ? MAD_OK : MAD_BAD_FIELD;
}

void cm_msg_parse(const uint8_t *mad, struct cm_msg *m)
{
    const uint8_t *body = mad + MAD_HEADER_BYTES;
    memset(m, 0, sizeof(*m));
    mad_parse(mad, &m->header);
    assert(is_message(m->header.attribute));
    unsigned index = m->header.attribute - FIRST;
    for (unsigned i = 0; i < messages[index].count; i++) {
        const struct field *f = &messages[index].fields[i];
        uint8_t *member = (uint8_t *)&m->req + f->member;
        if (f->width == 0)
            memcpy(member, body + f->at, f->member_bytes);
        else
            set_member(member, f->member_bytes, get_bits(body + f->at, f->bit, f->width));
    }
    if (m->header.attribute == CM_REQ)
        m->req.ece_options = m->header.modifier;
    if (m->header.attribute == CM_REP) {
        m->rep.ece_vendor_id = get_vendor(body, rep_vendor_at);
        m->rep.ece_options = m->header.modifier;
    }
    if (m->header.attribute == CM_SIDR_REP) {
        m->sidr_rep.ece_vendor_id = get_vendor(body, sidr_rep_vendor_at);
        m->sidr_rep.ece_options = m->header.modifier;
    }
}

void cm_msg_build(const struct cm_msg *m, uint8_t mad[MAD_BYTES])
{
    struct mad_header h = m->header;
    uint8_t *body = mad + MAD_HEADER_BYTES;
    assert(is_message(h.attribute));
    h.mgmt_class = MAD_CLASS_CM;
    h.class_version = MAD_CLASS_CM_VERSION;
    h.method = MAD_METHOD_SEND;
    if (h.attribute == CM_REQ)
        h.modifier = m->req.ece_options;
    if (h.attribute == CM_REP)
        h.modifier = m->rep.ece_options;
    if (h.attribute == CM_SIDR_REP)
        h.modifier = m->sidr_rep.ece_options;
    memset(mad, 0, MAD_BYTES);
    mad_build(&h, mad);
    unsigned index = h.attribute - FIRST;
    for (unsigned i = 0; i < messages[index].count; i++) {
        const struct field *f = &messages[index].fields[i];
        const uint8_t *member = (const uint8_t *)&m->req + f->member;
        if (f->width == 0)
            memcpy(body + f->at, member, f->member_bytes);
        else
            put_bits(body + f->at, f->bit, f->width, get_member(member, f->member_bytes));
    }
    if (h.attribute == CM_REP)
        put_vendor(body, rep_vendor_at, m->rep.ece_vendor_id);
    if (h.attribute == CM_SIDR_REP)
        put_vendor(body, sidr_rep_vendor_at, m->sidr_rep.ece_vendor_id);
}

bool cm_msg_req_is_xrc(const struct cm_req *r)
{
    return r->transport == CM_TRANSPORT_EXTENDED &&
           r->transport_extended == CM_TRANSPORT_EXTENDED_XRC;
}

uint32_t cm_msg_rep_qpn(const struct cm_rep *r, bool xrc)
{
    return xrc ? r->local_eecn : r->local_qpn;
}

uint32_t cm_msg_local_comm_id(const struct cm_msg *m)
{
    /* Each message but SIDR_REP begins with its sender's id. */
    return m->header.attribute == CM_SIDR_REP ? 0 : m->req.local_comm_id;
}

uint32_t cm_msg_remote_comm_id(const struct cm_msg *m)
{
    switch (m->header.attribute) {
    case CM_REQ:
    case CM_SIDR_REQ:
        return 0;
    case CM_SIDR_REP:
        return m->sidr_rep.request_id;
    default:
        return m->mra.remote_comm_id; /* in second place, in all others */
    }
}
