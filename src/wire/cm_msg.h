/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_msg.h: the messages of InfiniBand communication management, 256-byte MADs <-> structs, in two
 * steps as roce.h: cm_msg_check bounds, then cm_msg_parse; cm_msg_build is the inverse. Reserved
 * bits are ignored and built as 0. Field names are the specification's. IBA 12.6
 */
#ifndef WIRE_CM_MSG_H
#define WIRE_CM_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/mad.h"

/* Attribute IDs. */
enum cm_attribute {
    CM_REQ = 0x10,
    CM_MRA = 0x11,
    CM_REJ = 0x12,
    CM_REP = 0x13,
    CM_RTU = 0x14,
    CM_DREQ = 0x15,
    CM_DREP = 0x16,
    CM_SIDR_REQ = 0x17,
    CM_SIDR_REP = 0x18,
    CM_LAP = 0x19,
    CM_APR = 0x1a,
};
/* "REQ", ..., or "?" */
const char *cm_msg_attribute_name(unsigned attribute);

/* Private data has no length on the wire: always so many bytes, zeros behind what was given. */
enum {
    CM_REQ_PRIVATE_BYTES = 92,
    CM_MRA_PRIVATE_BYTES = 222,
    CM_REJ_PRIVATE_BYTES = 148,
    CM_REP_PRIVATE_BYTES = 196,
    CM_RTU_PRIVATE_BYTES = 224,
    CM_DREQ_PRIVATE_BYTES = 220,
    CM_DREP_PRIVATE_BYTES = 224,
    CM_SIDR_REQ_PRIVATE_BYTES = 216,
    CM_SIDR_REP_PRIVATE_BYTES = 136,
    CM_LAP_PRIVATE_BYTES = 168,
    CM_APR_PRIVATE_BYTES = 148,
    CM_MAX_PRIVATE_BYTES = 224,
    CM_INFO_BYTES = 72, /* additional information of REJ, SIDR_REP and APR, at most */
};
/* Bytes of private data that a message carries; 0 for what is no message. */
size_t cm_msg_private_bytes(unsigned attribute);

enum {
    CM_LID_PERMISSIVE = 0xffff, /* in RoCE there are no LIDs */
};

/* Transport service type of a REQ; the last says that transport_extended counts. */
enum cm_transport {
    CM_TRANSPORT_RC = 0,
    CM_TRANSPORT_UC = 1,
    CM_TRANSPORT_RD = 2,
    CM_TRANSPORT_EXTENDED = 3,
};
enum { CM_TRANSPORT_EXTENDED_XRC = 1 };

/* Which message an MRA or REJ is about. */
enum cm_about {
    CM_ABOUT_REQ = 0,
    CM_ABOUT_REP = 1,
    CM_ABOUT_OTHER = 2, /* REJ: no message (a timeout, say); MRA: LAP */
};

/* Reasons of a REJ (IBA 12.6.7.2). */
enum cm_rej_reason {
    CM_REJ_NO_QP = 1,
    CM_REJ_NO_EEC = 2,
    CM_REJ_NO_RESOURCES = 3,
    CM_REJ_TIMEOUT = 4, /* info: CA GUID of the sender */
    CM_REJ_UNSUPPORTED = 5,
    CM_REJ_INVALID_COMM_ID = 6,
    CM_REJ_INVALID_COMM_INSTANCE = 7,
    CM_REJ_INVALID_SERVICE_ID = 8,
    CM_REJ_INVALID_TRANSPORT_TYPE = 9,
    CM_REJ_STALE_CONN = 10,
    CM_REJ_RDC_NOT_EXIST = 11,
    CM_REJ_INVALID_GID = 12, /* info: the right GID */
    CM_REJ_INVALID_LID = 13,
    CM_REJ_INVALID_SL = 14,
    CM_REJ_INVALID_TRAFFIC_CLASS = 15,
    CM_REJ_INVALID_HOP_LIMIT = 16,
    CM_REJ_INVALID_PACKET_RATE = 17,
    CM_REJ_INVALID_ALT_GID = 18,
    CM_REJ_INVALID_ALT_LID = 19,
    CM_REJ_INVALID_ALT_SL = 20,
    CM_REJ_INVALID_ALT_TRAFFIC_CLASS = 21,
    CM_REJ_INVALID_ALT_HOP_LIMIT = 22,
    CM_REJ_INVALID_ALT_PACKET_RATE = 23,
    CM_REJ_PORT_CM_REDIRECT = 24,
    CM_REJ_PORT_REDIRECT = 25,
    CM_REJ_INVALID_MTU = 26, /* info: the largest MTU, a code */
    CM_REJ_INSUFFICIENT_RESP_RESOURCES = 27,
    CM_REJ_CONSUMER_DEFINED = 28,
    CM_REJ_INVALID_RNR_RETRY = 29,
    CM_REJ_DUPLICATE_LOCAL_COMM_ID = 30,
    CM_REJ_INVALID_CLASS_VERSION = 31,
    CM_REJ_INVALID_FLOW_LABEL = 32,
    CM_REJ_INVALID_ALT_FLOW_LABEL = 33,
    CM_REJ_VENDOR_OPTION_NOT_SUPPORTED = 35, /* enhanced connection establishment */
};
const char *cm_msg_reason_name(unsigned reason);

enum cm_sidr_status {
    CM_SIDR_SUCCESS = 0,
    CM_SIDR_UNSUPPORTED = 1, /* no such service ID */
    CM_SIDR_REJECT = 2,
    CM_SIDR_NO_QP = 3,
    CM_SIDR_REDIRECT = 4,
    CM_SIDR_UNSUPPORTED_VERSION = 5,
};

enum cm_apr_status {
    CM_APR_LOADED = 0,
    CM_APR_INVALID_COMM_ID = 1,
    CM_APR_UNSUPPORTED = 2,
    CM_APR_REJECT = 3,
};

/* A path as REQ and LAP have it. */
struct cm_msg_path {
    uint16_t local_lid, remote_lid;
    uint8_t local_gid[16], remote_gid[16];
    uint32_t flow_label; /* 20 bits */
    uint8_t packet_rate; /* 6 bits */
    uint8_t traffic_class;
    uint8_t hop_limit;
    uint8_t sl; /* 4 bits */
    bool subnet_local;
    uint8_t local_ack_timeout; /* 5 bits: 4.096 us << it */
};

/* "local" is who sends the message. Of an XRC (annex A14) the sender is the initiator: what its QP
 * does not do (responder_resources, both retry counts, srq) means nothing. */
struct cm_req {
    uint32_t local_comm_id;
    /* Enhanced connection establishment; 0: none. The vendor is 24 bits, in bytes that older
     * editions reserve; the options are the header's modifier. So in REP and SIDR_REP. */
    uint32_t ece_vendor_id, ece_options;
    uint64_t service_id;
    uint64_t local_ca_guid;
    uint32_t local_qkey;
    uint32_t local_qpn;
    uint8_t responder_resources;
    uint32_t local_eecn;
    uint8_t initiator_depth;
    uint32_t remote_eecn;
    uint8_t remote_cm_response_timeout; /* 5 bits: how long its sender waits for an answer */
    uint8_t transport;                  /* enum cm_transport */
    bool flow_control;                  /* end to end, by credits */
    uint32_t starting_psn;              /* that its receiver sends from: IBA 12.7 */
    uint8_t local_cm_response_timeout;  /* 5 bits: how soon its sender answers */
    uint8_t retry_count;                /* 3 bits, for the QP */
    uint16_t pkey;
    uint8_t path_mtu; /* code 1..5: 256..4096 bytes */
    bool rdc_exists;
    uint8_t rnr_retry_count; /* 3 bits, for the QP */
    uint8_t max_cm_retries;  /* 4 bits */
    bool srq;
    uint8_t transport_extended; /* 3 bits */
    struct cm_msg_path primary;
    struct cm_msg_path alternate; /* all 0: none */
    uint8_t private_data[CM_REQ_PRIVATE_BYTES];
};

struct cm_mra {
    uint32_t local_comm_id, remote_comm_id;
    uint8_t about;           /* enum cm_about */
    uint8_t service_timeout; /* 5 bits */
    uint8_t private_data[CM_MRA_PRIVATE_BYTES];
};

struct cm_rej {
    uint32_t local_comm_id; /* 0: its sender has none */
    uint32_t remote_comm_id;
    uint8_t about;      /* enum cm_about */
    uint8_t info_bytes; /* 0..72 */
    uint16_t reason;    /* enum cm_rej_reason, or one that is not known here */
    uint8_t info[CM_INFO_BYTES];
    uint8_t private_data[CM_REJ_PRIVATE_BYTES];
};

struct cm_rep {
    uint32_t local_comm_id, remote_comm_id;
    uint32_t local_qkey;
    uint32_t local_qpn;
    uint32_t ece_vendor_id, ece_options;
    uint32_t local_eecn; /* of an XRC: the target's QPN, and local_qpn means nothing */
    uint32_t starting_psn;
    uint8_t responder_resources;
    uint8_t initiator_depth;
    uint8_t target_ack_delay;  /* 5 bits */
    uint8_t failover_accepted; /* 2 bits: 0 accepted, 1 not supported, 2 rejected */
    bool flow_control;
    uint8_t rnr_retry_count; /* 3 bits */
    bool srq;
    uint64_t local_ca_guid;
    uint8_t private_data[CM_REP_PRIVATE_BYTES];
};

struct cm_rtu {
    uint32_t local_comm_id, remote_comm_id;
    uint8_t private_data[CM_RTU_PRIVATE_BYTES];
};

struct cm_dreq {
    uint32_t local_comm_id, remote_comm_id;
    uint32_t remote_qpn;
    uint8_t private_data[CM_DREQ_PRIVATE_BYTES];
};

struct cm_drep {
    uint32_t local_comm_id, remote_comm_id;
    uint8_t private_data[CM_DREP_PRIVATE_BYTES];
};

struct cm_sidr_req {
    uint32_t request_id;
    uint16_t pkey;
    uint64_t service_id;
    uint8_t private_data[CM_SIDR_REQ_PRIVATE_BYTES];
};

struct cm_sidr_rep {
    uint32_t request_id;
    uint8_t status;     /* enum cm_sidr_status */
    uint8_t info_bytes; /* 0..72 */
    uint32_t ece_vendor_id, ece_options;
    uint32_t qpn;
    uint64_t service_id;
    uint32_t qkey;
    uint8_t info[CM_INFO_BYTES];
    uint8_t private_data[CM_SIDR_REP_PRIVATE_BYTES];
};

struct cm_lap {
    uint32_t local_comm_id, remote_comm_id;
    uint32_t remote_qpn;
    uint8_t remote_cm_response_timeout;
    struct cm_msg_path alternate;
    uint8_t private_data[CM_LAP_PRIVATE_BYTES];
};

struct cm_apr {
    uint32_t local_comm_id, remote_comm_id;
    uint8_t info_bytes; /* 0..72 */
    uint8_t status;     /* enum cm_apr_status */
    uint8_t info[CM_INFO_BYTES];
    uint8_t private_data[CM_APR_PRIVATE_BYTES];
};

/* One message. header.attribute says which member of the union counts. */
struct cm_msg {
    struct mad_header header;
    union {
        struct cm_req req;
        struct cm_mra mra;
        struct cm_rej rej;
        struct cm_rep rep;
        struct cm_rtu rtu;
        struct cm_dreq dreq;
        struct cm_drep drep;
        struct cm_sidr_req sidr_req;
        struct cm_sidr_rep sidr_rep;
        struct cm_lap lap;
        struct cm_apr apr;
    };
};

/*
 * mad_check, then that there is such a message and that its fields are possible: an MRA or REJ is
 * about one of the three, additional information is at most 72 bytes, and the communication ids
 * that a message must have (its own, but for REJ and SIDR) are not 0.
 */
enum mad_verdict cm_msg_check(const uint8_t *mad, size_t n);
/* Only after cm_msg_check said MAD_OK. */
void cm_msg_parse(const uint8_t *mad, struct cm_msg *m);
/* All 256 bytes. Class, version and method are filled in, the modifier from ece_options; values too
 * large for their fields are ours, and asserted. */
void cm_msg_build(const struct cm_msg *m, uint8_t mad[MAD_BYTES]);

/* Does it ask for an extended reliable connection? */
bool cm_msg_req_is_xrc(const struct cm_req *r);
/* The number of the QP that answers; xrc: as the REQ said. */
uint32_t cm_msg_rep_qpn(const struct cm_rep *r, bool xrc);

/* Communication ids as a message has them; 0 where it has none. A SIDR's request id is the local
 * one of SIDR_REQ and the remote one of SIDR_REP. */
uint32_t cm_msg_local_comm_id(const struct cm_msg *m);
uint32_t cm_msg_remote_comm_id(const struct cm_msg *m);

#endif
