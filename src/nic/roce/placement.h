/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * placement.h: FLUSH and ATOMIC WRITE (annex A19, memory placement extensions), of RC and XRC. Each
 * is one packet, ordered and limited as READs and atomics are, and answered by a READ response of
 * zero length.
 */
#ifndef NIC_ROCE_PLACEMENT_H
#define NIC_ROCE_PLACEMENT_H

#include "nic/roce/roce_qp.h"

enum { ATOMIC_WRITE_BYTES = 8 };
#define MAX_FLUSH_BYTES (UINT64_C(1) << 31) /* what a RETH may say */

/* Of a FLUSH or ATOMIC WRITE that is posted: may it be sent at all? length: of its SGEs. */
bool placement_valid(const struct nic_send_wr *wr, uint64_t length);
/* What its WQE has that other work requests have not. */
void placement_fill(struct send_wqe *w, const struct nic_send_wr *wr);
/* Adds its packet with PSN next to a train. */
enum added placement_add(struct qp *qp, const struct send_wqe *w, struct train *t);

/* A request that is the next in order: all stages of the responder. */
enum resp_verdict placement_execute(struct qp *qp, const struct rx_packet *p, uint16_t flags);

#endif
