/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_strings.c: names of states, statuses, events and opcodes for people.
 */
#include "verbs/verbs_newer.h"

#define STRINGS_PICK(table, i)                                                                     \
    ((size_t)(i) < sizeof(table) / sizeof((table)[0]) && (table)[i] != NULL ? (table)[i]           \
                                                                            : "unknown")

static const char *const strings_status[] = {
    [IBV_WC_SUCCESS] = "success",
    [IBV_WC_LOC_LEN_ERR] = "local length error",
    [IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
    [IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
    [IBV_WC_LOC_PROT_ERR] = "local protection error",
    [IBV_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
    [IBV_WC_MW_BIND_ERR] = "memory window bind error",
    [IBV_WC_BAD_RESP_ERR] = "bad response error",
    [IBV_WC_LOC_ACCESS_ERR] = "local access error",
    [IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
    [IBV_WC_REM_ACCESS_ERR] = "remote access error",
    [IBV_WC_REM_OP_ERR] = "remote operation error",
    [IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
    [IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
    [IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation error",
    [IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
    [IBV_WC_REM_ABORT_ERR] = "operation aborted by the remote side",
    [IBV_WC_INV_EECN_ERR] = "invalid EE context number",
    [IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
    [IBV_WC_FATAL_ERR] = "fatal error",
    [IBV_WC_RESP_TIMEOUT_ERR] = "response timeout error",
    [IBV_WC_GENERAL_ERR] = "general error",
    [IBV_WC_TM_ERR] = "tag matching error",
    [IBV_WC_TM_RNDV_INCOMPLETE] = "tag matching rendezvous incomplete",
};

static const char *const strings_event[] = {
    [IBV_EVENT_CQ_ERR] = "CQ error",
    [IBV_EVENT_QP_FATAL] = "QP in error state",
    [IBV_EVENT_QP_REQ_ERR] = "QP invalid request error",
    [IBV_EVENT_QP_ACCESS_ERR] = "QP local access violation",
    [IBV_EVENT_COMM_EST] = "communication established",
    [IBV_EVENT_SQ_DRAINED] = "send queue drained",
    [IBV_EVENT_PATH_MIG] = "path migrated",
    [IBV_EVENT_PATH_MIG_ERR] = "path migration failed",
    [IBV_EVENT_DEVICE_FATAL] = "device in error state",
    [IBV_EVENT_PORT_ACTIVE] = "port active",
    [IBV_EVENT_PORT_ERR] = "port error",
    [IBV_EVENT_LID_CHANGE] = "LID changed",
    [IBV_EVENT_PKEY_CHANGE] = "P_Key table changed",
    [IBV_EVENT_SM_CHANGE] = "subnet manager changed",
    [IBV_EVENT_SRQ_ERR] = "SRQ error",
    [IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
    [IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
    [IBV_EVENT_CLIENT_REREGISTER] = "subnet manager asks clients to register again",
    [IBV_EVENT_GID_CHANGE] = "GID table changed",
    [IBV_EVENT_WQ_FATAL] = "WQ in error state",
    [NEWER_EVENT_DEVICE_SPEED_CHANGE] = "device speed changed",
};

static const char *const strings_node[] = {
    [IBV_NODE_CA] = "InfiniBand channel adapter",
    [IBV_NODE_SWITCH] = "InfiniBand switch",
    [IBV_NODE_ROUTER] = "InfiniBand router",
    [IBV_NODE_RNIC] = "iWARP NIC",
    [IBV_NODE_USNIC] = "usNIC",
    [IBV_NODE_USNIC_UDP] = "usNIC UDP",
    [IBV_NODE_UNSPECIFIED] = "unspecified",
};

static const char *const strings_port[] = {
    [IBV_PORT_NOP] = "no state change", [IBV_PORT_DOWN] = "down",
    [IBV_PORT_INIT] = "init",           [IBV_PORT_ARMED] = "armed",
    [IBV_PORT_ACTIVE] = "active",       [IBV_PORT_ACTIVE_DEFER] = "active deferred",
};

static const char *const strings_opcode[] = {
    [IBV_WR_RDMA_WRITE] = "RDMA_WRITE",
    [IBV_WR_RDMA_WRITE_WITH_IMM] = "RDMA_WRITE_WITH_IMM",
    [IBV_WR_SEND] = "SEND",
    [IBV_WR_SEND_WITH_IMM] = "SEND_WITH_IMM",
    [IBV_WR_RDMA_READ] = "RDMA_READ",
    [IBV_WR_ATOMIC_CMP_AND_SWP] = "ATOMIC_CMP_AND_SWP",
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = "ATOMIC_FETCH_AND_ADD",
    [IBV_WR_LOCAL_INV] = "LOCAL_INV",
    [IBV_WR_BIND_MW] = "BIND_MW",
    [IBV_WR_SEND_WITH_INV] = "SEND_WITH_INV",
    [IBV_WR_TSO] = "TSO",
    [NEWER_WR_FLUSH] = "FLUSH",
    [IBV_WR_ATOMIC_WRITE] = "ATOMIC_WRITE",
};

VERBS_ABI const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    return STRINGS_PICK(strings_status, status);
}

VERBS_ABI const char *ibv_event_type_str(enum ibv_event_type event)
{
    return STRINGS_PICK(strings_event, event);
}

VERBS_ABI const char *ibv_node_type_str(enum ibv_node_type node_type)
{
    return STRINGS_PICK(strings_node, node_type);
}

VERBS_ABI const char *ibv_port_state_str(enum ibv_port_state port_state)
{
    return STRINGS_PICK(strings_port, port_state);
}

/* Private to rdma-core's libraries. */
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);
VERBS_ABI const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode)
{
    return STRINGS_PICK(strings_opcode, opcode);
}
