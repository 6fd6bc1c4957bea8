/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsi.h: QP 1, the general services interface, as far as a connection manager needs it: MADs in and
 * out, each queue with a limit. No user QP has the number 1, and no work request or completion is
 * involved: what arrives waits for gsi_next, what gsi_send takes leaves by nic_output.
 */
#ifndef NIC_GSI_H
#define NIC_GSI_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"
#include "verbena/port.h"
#include "verbena/types.h"
#include "wire/mad.h"

struct nic;

enum {
    GSI_QPN = QPN_GSI,
    GSI_MAD_BYTES = MAD_BYTES, /* of each MAD, always (IBA 13.4.2) */
    GSI_MAX_MADS = 1 << 14,    /* that wait, each way */
    GSI_UDP_SPORT = 55410, /* for those who name none; the kernel's soft-RoCE sends from it, too */
};

/* A MAD that has arrived. Its P_Key, Q_Key, size and class have been looked at, no more. */
struct nic_mad {
    struct net_addr src, dst; /* dst: the address of ours that it was sent to */
    uint32_t ifindex;         /* interface that it came in by; 0: the port does not know */
    uint32_t src_qp;          /* where an answer goes; 1 but for odd senders */
    uint8_t traffic_class;
    uint8_t bytes[GSI_MAD_BYTES];
};

/* One that waits to leave. */
struct gsi_send_mad {
    struct nic_path path;
    uint32_t dest_qp;
    uint8_t bytes[GSI_MAD_BYTES];
};

/* Free-running indexes, as in wq.h. All but the counts under the lock. */
struct gsi {
    struct lock lock;
    uint32_t slots; /* each way, a power of two; 0: QP 1 is not served */
    struct nic_mad *rx;
    uint32_t rx_head, rx_tail;
    struct gsi_send_mad *tx;
    uint32_t tx_head, tx_tail;
    struct psn psn;            /* of the next MAD sent */
    _Atomic uint32_t rx_count; /* hints that can be read without the lock */
    _Atomic uint32_t tx_count;
};

/* mads: room each way, at least; 0: none, all that arrives is dropped. 0, -EINVAL or -ENOMEM. */
int gsi_init(struct gsi *g, uint32_t mads, uint32_t first_psn);
void gsi_fini(struct gsi *g);

/*
 * Copies out the oldest MAD that has arrived; false: none. From any thread. What does not fit the
 * queue is dropped and counted (gsi_rx_full), as any datagram may be: its sender asks again.
 */
bool gsi_next(struct nic *nic, struct nic_mad *out);
static inline bool gsi_waiting(const struct gsi *g)
{
    return atomic_load_explicit(&g->rx_count, memory_order_acquire) != 0;
}
/*
 * Queues a MAD of GSI_MAD_BYTES from QP 1 to dest_qp (GSI_QPN as a rule) at path->remote. The bytes
 * and the path are copied; a udp_sport of 0 means GSI_UDP_SPORT. From any thread. 0; -EINVAL:
 * dest_qp beyond 24 bits or addresses of two families; -EOPNOTSUPP: not served; -EAGAIN: the queue
 * is full, nothing was queued.
 */
int gsi_send(struct nic *nic, const struct nic_path *path, uint32_t dest_qp, const uint8_t *mad);

/* For nic.c. A packet to QPN 1. */
void gsi_input(struct nic *nic, const struct rx_packet *p);
/* Fills an empty train with the MADs that leave next, to one path; false: none. The MADs stay
 * queued (the train refers to them) until gsi_sent. Calls exclude one another. */
bool gsi_next_train(struct nic *nic, struct train *t);
/* One MAD more into a train, which refers to it. */
void gsi_add(struct nic *nic, struct train *t, uint32_t dest_qp, const uint8_t *mad);
void gsi_sent(struct nic *nic, const struct train *t);

#endif
