/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unreliable.h: the services without acknowledgements: what the send queues of both, connection
 * (UC) and datagram (UD), have in common, and UC: messages of several packets to one peer, each of
 * which arrives whole and in order, or not at all. All are called with the QP's lock held.
 */
#ifndef NIC_ROCE_UNRELIABLE_H
#define NIC_ROCE_UNRELIABLE_H

#include "verbena/port.h"
#include "verbena/types.h"

struct qp;

/* UC and UD. RTR -> RTS: numbers packets from the SQ PSN on. */
void unreliable_start(struct qp *qp);
/* A packet is in a train: the next one has the PSN after it. */
void unreliable_step(struct qp *qp);
/* Posted, and flushed, while in SQE: is never sent. Before a train is filled. */
void unreliable_skip_flushed(struct qp *qp);
/*
 * The WQE at the head of the queue cannot be sent: completes it with its error, the send queue
 * stops (state SQE) and the rest is flushed. Nothing of it is in a train that waits to go.
 */
void unreliable_fail(struct qp *qp, enum wc_status status);
/* The last train is out, its memory no longer needed: completes the WQEs that are out whole. */
void unreliable_sent(struct qp *qp);

/* Is something left to send, as far as is known? */
bool unreliable_pending(struct qp *qp);

/* UC. Fills a train with the next packets; false: nothing to send now. */
bool unreliable_next(struct qp *qp, struct train *t);
/* UC. One packet of this service from the peer. */
void unreliable_input(struct qp *qp, const struct rx_packet *p);

#endif
