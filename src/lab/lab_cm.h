/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_cm.h: a queue pair connected by librdmacm instead of by what both ends tell one another; the
 * target then says by a Send where its memory is. For reliable connections.
 */
#ifndef LAB_LAB_CM_H
#define LAB_LAB_CM_H

#include <rdma/rdma_cma.h>

#include "lab/lab_case.h"

struct lab_cm {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listener; /* the target's */
    struct rdma_cm_id *id;
};

/* q is open. 0, or -errno and e->message. The queue is connected then, and q->peer has what is
 * needed of the target's memory. */
int lab_cm_connect(struct lab_cm *cm, struct lab_end *e, struct lab_queue *q);
/* Before the queue is closed. */
void lab_cm_disconnect(struct lab_cm *cm);

#endif
