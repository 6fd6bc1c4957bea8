/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * endpoint.h: one side of an RC connection on the live device, for tests: context, PD, region, CQ
 * and QP, and what the other side must know to connect.
 */
#ifndef TESTS_HOST_ENDPOINT_H
#define TESTS_HOST_ENDPOINT_H

#include "host/host.h"
#include "nic/qp.h"

struct endpoint {
    struct verbena_context *ctx;
    struct pd *pd;
    struct mr *mr;
    struct cq *cq;
    struct qp *qp;
    uint8_t *memory;
    size_t bytes;
};

/* What travels out of band. */
struct endpoint_name {
    uint32_t qpn, psn, rkey;
    uint64_t addr;
    struct net_addr gid;
};

/* gid_index as verbena_gid_query has it. Every failure fails the test. */
void endpoint_open(struct endpoint *e, const char *device, size_t bytes);
void endpoint_name(struct endpoint *e, unsigned gid_index, struct endpoint_name *out);
/* To RTR. */
void endpoint_receive(struct endpoint *e, unsigned gid_index, const struct endpoint_name *peer,
                      uint16_t mtu_bytes);
/* To RTS. */
void endpoint_connect(struct endpoint *e, unsigned gid_index, const struct endpoint_name *peer,
                      uint16_t mtu_bytes);
void endpoint_close(struct endpoint *e);
/* One WR on the endpoint's own region at offset. */
int endpoint_post(struct endpoint *e, enum wr_opcode op, const struct endpoint_name *peer,
                  uint64_t offset, uint32_t bytes, unsigned flags);
int endpoint_post_recv(struct endpoint *e, uint64_t offset, uint32_t bytes);
/* Polls until a completion comes, 10 s at most; its status, or -1. */
int endpoint_wait(struct endpoint *e, struct nic_wc *wc);

#endif
