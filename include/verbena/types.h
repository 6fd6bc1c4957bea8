/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * types.h: the nouns of the verbs model as the engine sees them: work requests, completions,
 * attributes, events. Host byte order unless a field says otherwise. Numeric values of enums that
 * verbs programs can see equal those of <infiniband/verbs.h>; src/verbs asserts that they do.
 */
#ifndef VERBENA_TYPES_H
#define VERBENA_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbena/path.h"

/* Limits that no configuration exceeds. What a given NIC offers is in struct nic_config. */
enum {
    MAX_SGE = 32,           /* scatter/gather elements of one WR */
    MAX_INLINE_BYTES = 512, /* payload copied at post time */
    MAX_RD_ATOMIC = 128,    /* outstanding READ/atomic requests a QP, each side; as soft-RoCE has */
    MAX_WR = 32768,         /* WRs of one queue */
    MAX_CQE = 1 << 22,      /* entries of one CQ */
    MAX_QPN_SLOTS = 4,      /* of one process, as long as there are free ones */
    MAX_QP = MAX_QPN_SLOTS * ((1 << 14) - 2), /* the QPNs of its slots, less the reserved ones */
    MAX_MR = 1 << 16,                         /* of one process */
    PATH_MTU_MIN_BYTES = 256,
    PATH_MTU_MAX_BYTES = 4096,
    MAX_MESSAGE_BYTES = 1 << 30, /* largest RC or UC message, 1 GiB */
};

enum qp_type {
    QP_TYPE_GSI = 1, /* QP 1; the value is ours, verbs programs never see it */
    QP_TYPE_RC = 2,
    QP_TYPE_UC = 3,
    QP_TYPE_UD = 4,
    QP_TYPE_XRC_INI = 9,
    QP_TYPE_XRC_TGT = 10,
};

/* RESET -> INIT -> RTR -> RTS <-> SQD; any -> ERR or RESET; SQE (unreliable ones) -> RTS. */
enum qp_state {
    QP_STATE_RESET,
    QP_STATE_INIT,
    QP_STATE_RTR,
    QP_STATE_RTS,
    QP_STATE_SQD,
    QP_STATE_SQE,
    QP_STATE_ERR,
    QP_STATE_COUNT
};

enum wr_opcode {
    WR_RDMA_WRITE = 0,
    WR_RDMA_WRITE_WITH_IMM = 1,
    WR_SEND = 2,
    WR_SEND_WITH_IMM = 3,
    WR_RDMA_READ = 4,
    WR_ATOMIC_CMP_AND_SWP = 5,
    WR_ATOMIC_FETCH_AND_ADD = 6,
    WR_LOCAL_INV = 7,
    WR_BIND_MW = 8,
    WR_SEND_WITH_INV = 9,
    WR_FLUSH = 14,
    WR_ATOMIC_WRITE = 15,
};

enum wr_flags {
    WR_FENCE = 1 << 0,     /* wait until earlier READs and atomics are complete */
    WR_SIGNALED = 1 << 1,  /* success, too, makes a completion */
    WR_SOLICITED = 1 << 2, /* sets the solicited event bit of the last packet */
    WR_INLINE = 1 << 3,    /* payload is copied at post time; lkeys are not looked at */
};

enum access_flags {
    ACCESS_LOCAL_WRITE = 1 << 0,
    ACCESS_REMOTE_WRITE = 1 << 1,
    ACCESS_REMOTE_READ = 1 << 2,
    ACCESS_REMOTE_ATOMIC = 1 << 3,
    ACCESS_MW_BIND = 1 << 4,
    ACCESS_ZERO_BASED = 1 << 5,
    ACCESS_ON_DEMAND = 1 << 6,
    ACCESS_HUGETLB = 1 << 7,
    ACCESS_FLUSH_GLOBAL = 1 << 8,
    ACCESS_FLUSH_PERSISTENT = 1 << 9, /* a QP may grant it, no memory has it */
    ACCESS_KNOWN = (1 << 10) - 1,
};

/* What a FLUSH asks for: a placement, or both; of a range of bytes or of the whole region. */
enum flush_flags {
    FLUSH_GLOBAL = 1 << 0,     /* visible to all who look at the memory */
    FLUSH_PERSISTENT = 1 << 1, /* there after a loss of power */
    FLUSH_MR = 1 << 4,
};

enum wc_status {
    WC_SUCCESS = 0,
    WC_LOC_LEN_ERR = 1,
    WC_LOC_QP_OP_ERR = 2,
    WC_LOC_EEC_OP_ERR = 3,
    WC_LOC_PROT_ERR = 4,
    WC_WR_FLUSH_ERR = 5,
    WC_MW_BIND_ERR = 6,
    WC_BAD_RESP_ERR = 7,
    WC_LOC_ACCESS_ERR = 8,
    WC_REM_INV_REQ_ERR = 9,
    WC_REM_ACCESS_ERR = 10,
    WC_REM_OP_ERR = 11,
    WC_RETRY_EXC_ERR = 12,
    WC_RNR_RETRY_EXC_ERR = 13,
    WC_REM_ABORT_ERR = 16,
    WC_FATAL_ERR = 19,
    WC_GENERAL_ERR = 21,
};

enum wc_opcode {
    WC_SEND = 0,
    WC_RDMA_WRITE = 1,
    WC_RDMA_READ = 2,
    WC_COMP_SWAP = 3,
    WC_FETCH_ADD = 4,
    WC_BIND_MW = 5,
    WC_LOCAL_INV = 6,
    WC_FLUSH = 8,
    WC_ATOMIC_WRITE = 9,
    WC_RECV = 128,
    WC_RECV_RDMA_WITH_IMM = 129,
};

enum wc_flags {
    WC_GRH = 1 << 0,      /* UD: the first 40 bytes are the GRH */
    WC_WITH_IMM = 1 << 1, /* imm is valid */
    WC_WITH_INV = 1 << 3, /* inv_rkey is valid */
};

/* Async events; values as IBV_EVENT_*. */
enum nic_event_type {
    EVENT_CQ_ERR = 0,
    EVENT_QP_FATAL = 1,
    EVENT_QP_REQ_ERR = 2,
    EVENT_QP_ACCESS_ERR = 3,
    EVENT_COMM_EST = 4,
    EVENT_SQ_DRAINED = 5,
    EVENT_DEVICE_FATAL = 8,
    EVENT_PORT_ACTIVE = 9,
    EVENT_PORT_ERR = 10,
    EVENT_SRQ_ERR = 14,
    EVENT_SRQ_LIMIT_REACHED = 15,
    EVENT_QP_LAST_WQE_REACHED = 16,
    EVENT_GID_CHANGE = 18,
    EVENT_QP_HEARD = 64, /* the host's own: qp_await_packet, after RTR */
};

/* One scatter/gather element; same layout as struct ibv_sge. */
struct nic_sge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

/* A send work request. The SGE array is read only during the post. */
struct nic_send_wr {
    uint64_t wr_id;
    enum wr_opcode opcode;
    unsigned flags; /* enum wr_flags */
    const struct nic_sge *sg_list;
    int num_sge;
    uint32_t imm_or_inv; /* immediate data in network order as given, or the rkey to invalidate */
    uint64_t remote_addr;
    uint32_t rkey;
    uint64_t compare_add; /* of BIND_MW see mw.h; of FLUSH: bytes */
    /* FLUSH: enum flush_flags. ATOMIC_WRITE without SGEs: its 8 bytes, as they lie in memory. */
    uint64_t swap;
    /* Of a datagram: where it goes, copied at post time. udp_sport 0: the QP's own. */
    const struct nic_path *path;
    uint32_t dest_qpn;
    uint32_t qkey;     /* with the top bit set, the QP's own is sent */
    uint32_t xrc_srqn; /* XRC INI: the shared receive queue at the peer */
};

struct nic_recv_wr {
    uint64_t wr_id;
    const struct nic_sge *sg_list;
    int num_sge;
};

/* With a status other than WC_SUCCESS only wr_id, status, qp_num and vendor_err count. */
struct nic_wc {
    uint64_t wr_id;
    enum wc_status status;
    enum wc_opcode opcode;
    uint32_t vendor_err;
    uint32_t byte_len;
    uint32_t imm_or_inv; /* immediate data in network order, or the invalidated rkey */
    uint32_t qp_num;
    uint32_t src_qp;
    uint16_t flags;   /* enum wc_flags */
    uint8_t sl;       /* UD: which header stands for the GRH, datagram.c says why so; else 0 */
    uint64_t time_ns; /* when it came to be, as far as the NIC had been told the time */
};

/* Which fields of struct nic_qp_attr a modify sets; values as IBV_QP_*. */
enum qp_attr_mask {
    QP_ATTR_STATE = 1 << 0,
    QP_ATTR_CUR_STATE = 1 << 1,
    QP_ATTR_EN_SQD_ASYNC_NOTIFY = 1 << 2,
    QP_ATTR_ACCESS_FLAGS = 1 << 3,
    QP_ATTR_PKEY_INDEX = 1 << 4,
    QP_ATTR_PORT = 1 << 5,
    QP_ATTR_QKEY = 1 << 6,
    QP_ATTR_AV = 1 << 7,
    QP_ATTR_PATH_MTU = 1 << 8,
    QP_ATTR_TIMEOUT = 1 << 9,
    QP_ATTR_RETRY_CNT = 1 << 10,
    QP_ATTR_RNR_RETRY = 1 << 11,
    QP_ATTR_RQ_PSN = 1 << 12,
    QP_ATTR_MAX_QP_RD_ATOMIC = 1 << 13,
    QP_ATTR_ALT_PATH = 1 << 14,
    QP_ATTR_MIN_RNR_TIMER = 1 << 15,
    QP_ATTR_SQ_PSN = 1 << 16,
    QP_ATTR_MAX_DEST_RD_ATOMIC = 1 << 17,
    QP_ATTR_PATH_MIG_STATE = 1 << 18,
    QP_ATTR_CAP = 1 << 19,
    QP_ATTR_DEST_QPN = 1 << 20,
    QP_ATTR_RATE_LIMIT = 1 << 25,
};

struct nic_qp_attr {
    enum qp_state state;
    enum qp_state cur_state;
    bool en_sqd_async_notify;
    unsigned access_flags; /* ACCESS_REMOTE_* that the responder grants */
    uint16_t pkey_index;
    uint8_t port_num;
    uint32_t qkey;
    struct nic_path path;    /* with QP_ATTR_AV; the caller has resolved GID index and interface */
    uint16_t path_mtu_bytes; /* 256, 512, 1024, 2048 or 4096 */
    uint16_t active_mtu_bytes; /* the port's own, an upper bound to path_mtu_bytes; 0: not checked.
                                  UD: what a datagram may have, taken at INIT -> RTR; 0: the most */
    uint32_t line_mbps;        /* the port's speed, with QP_ATTR_PATH_MTU; 0: not known */
    uint8_t timeout;           /* 4.096 us << timeout, 0: for ever */
    uint8_t retry_cnt;         /* 0..7 */
    uint8_t rnr_retry;         /* 0..7, 7: for ever */
    uint8_t min_rnr_timer;     /* code 0..31 */
    uint8_t max_rd_atomic;
    uint8_t max_dest_rd_atomic;
    uint32_t rq_psn;
    uint32_t sq_psn;
    uint32_t dest_qpn;
    uint32_t rate_limit_kbps; /* 0: none; with QP_ATTR_RATE_LIMIT, as the next one */
    uint32_t max_burst_bytes; /* 0: the usual, pacer.h */
};

struct nic_qp_cap {
    uint32_t max_send_wr;
    uint32_t max_recv_wr;
    uint32_t max_send_sge;
    uint32_t max_recv_sge;
    uint32_t max_inline_bytes;
};

/* Enhanced connection establishment (ECE): what the two ends of a connection tell each other that
 * they can, outside of RoCE's own messages. */
enum ece_options {
    ECE_RTT_PROBES = 1 << 0, /* answers probes of the round-trip time, docs/rtt-probes.md */
    ECE_KNOWN = ECE_RTT_PROBES,
};

struct pd;
struct cq;
struct srq;
struct xrcd;

/* What a new QP is to be. XRC INI receives nothing; XRC TGT has but a domain. */
struct qp_init {
    enum qp_type type;
    struct pd *pd;
    struct cq *send_cq;
    struct cq *recv_cq;
    struct srq *srq;
    bool sq_sig_all;
    struct nic_qp_cap cap; /* raised to what was given on success */
    void *owner;
    uint16_t udp_sport;       /* UD: of datagrams whose path names none */
    bool block_self_loopback; /* UD: what it sends to a group it does not get itself */
    struct xrcd *xrcd;        /* XRC TGT: its domain */
};

#endif
