/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_convert.h: between the structs of <infiniband/verbs.h> and the engine's. Enums and flags have
 * equal values (ibv_convert.c asserts it), so most of it is renaming.
 */
#ifndef VERBS_IBV_CONVERT_H
#define VERBS_IBV_CONVERT_H

#include <infiniband/verbs.h>

#include "verbena/types.h"

/* The engine looks at these; the checksum flag has no meaning for what we offer. */
enum { CONVERT_SEND_FLAGS = WR_FENCE | WR_SIGNALED | WR_SOLICITED | WR_INLINE };

static inline void convert_send_wr(const struct ibv_send_wr *from, struct nic_send_wr *to)
{
    bool atomic =
        from->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || from->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;

    to->wr_id = from->wr_id;
    to->opcode = (enum wr_opcode)from->opcode;
    to->flags = from->send_flags & CONVERT_SEND_FLAGS;
    to->sg_list = (const struct nic_sge *)from->sg_list;
    to->num_sge = from->num_sge;
    to->imm_or_inv = from->invalidate_rkey;
    to->remote_addr = from->wr.rdma.remote_addr;
    to->rkey = atomic ? from->wr.atomic.rkey : from->wr.rdma.rkey;
    to->compare_add = from->wr.atomic.compare_add;
    to->swap = from->wr.atomic.swap;
    to->path = NULL;
    to->dest_qpn = 0;
    to->qkey = 0;
    to->xrc_srqn = 0;
}

static inline void convert_recv_wr(const struct ibv_recv_wr *from, struct nic_recv_wr *to)
{
    to->wr_id = from->wr_id;
    to->sg_list = (const struct nic_sge *)from->sg_list;
    to->num_sge = from->num_sge;
}

static inline void convert_wc(const struct nic_wc *from, struct ibv_wc *to)
{
    to->wr_id = from->wr_id;
    to->status = (enum ibv_wc_status)from->status;
    to->opcode = (enum ibv_wc_opcode)from->opcode;
    to->vendor_err = from->vendor_err;
    to->byte_len = from->byte_len;
    to->invalidated_rkey = from->imm_or_inv;
    to->qp_num = from->qp_num;
    to->src_qp = from->src_qp;
    to->wc_flags = from->flags;
    to->pkey_index = 0;
    to->slid = 0;
    to->sl = from->sl;
    to->dlid_path_bits = 0;
}

/* 0: no such MTU. */
uint16_t convert_mtu_to_bytes(enum ibv_mtu mtu);
enum ibv_mtu convert_mtu_from_bytes(uint32_t bytes);

void convert_cap_to_nic(const struct ibv_qp_cap *from, struct nic_qp_cap *to);
void convert_cap_from_nic(const struct nic_qp_cap *from, struct ibv_qp_cap *to);
/* All but the path: 0 or -EINVAL (path MTU). */
int convert_qp_attr_to_nic(const struct ibv_qp_attr *from, unsigned mask, struct nic_qp_attr *to);
void convert_qp_attr_from_nic(const struct nic_qp_attr *from, struct ibv_qp_attr *to);

#endif
