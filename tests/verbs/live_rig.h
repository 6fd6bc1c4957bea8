/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live_rig.h: two connected RC queue pairs of one process on the loopback device, through the real
 * library, for tests of objects.
 */
#ifndef TESTS_LIVE_RIG_H
#define TESTS_LIVE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <string.h>

enum { RIG_BYTES = 1 << 16, RIG_DEPTH = 8, RIG_WAIT_MS = 10000, RIG_QKEY = 0x2468 };

struct rig {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq; /* of both QPs, on the channel */
    struct ibv_mr *mr; /* all of buf, every right */
    struct ibv_qp *qp[2];
    union ibv_gid gid;
    int gid_index;
    enum ibv_mtu mtu;
    uint8_t *buf;
};

/* Opens the device of the loopback interface, with objects but no QPs. Skips the test without it.
 */
void rig_open(struct rig *r);
/* rig_open, and qp[0] and qp[1] connected to one another, in RTS. */
void rig_connect(struct rig *r);
/* Destroys it all; every step must succeed. */
void rig_close(struct rig *r);

/* A UD QP in RTS with RIG_QKEY, on the PD and CQ; the test destroys it. */
struct ibv_qp *rig_datagram(struct rig *r);
void rig_ready(struct ibv_qp *ud); /* a new one to RTS */

struct ibv_qp_init_attr rig_qp_init(const struct rig *r);
int rig_to_init(struct ibv_qp *qp);
/* The attributes of INIT to RTR towards the other QP, and the mask of an RC QP. */
struct ibv_qp_attr rig_rtr_attr(const struct rig *r, uint32_t dest_qpn);
struct ibv_qp_attr rig_rts_attr(void);
extern const int rig_init_mask, rig_rtr_mask, rig_rts_mask;

struct ibv_sge rig_sge(const struct rig *r, size_t offset, uint32_t length);
/* One receive of length bytes at offset. */
void rig_recv(struct rig *r, struct ibv_qp *qp, uint64_t wr_id, size_t offset, uint32_t length);
/* The next completion; fails the test when none comes in time. */
struct ibv_wc rig_wait(struct rig *r);
/* None comes within a while. */
void rig_expect_none(struct rig *r);

#endif
