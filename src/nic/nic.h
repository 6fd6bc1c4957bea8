/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic.h: the device: packets in, trains out, deadlines, events. Sans-IO: time and packets are
 * arguments, nothing here reads a clock, opens a socket, starts a thread or prints.
 *
 * Threads: posts, polls and modifies may come from any thread at any time. nic_input calls exclude
 * one another, and so do nic_output and nic_advance together; input and output may run side by
 * side. The caller keeps that order, and lets both pass once (a grace period) between qp_unlink or
 * mem_mr_revoke and the free that follows.
 */
#ifndef NIC_NIC_H
#define NIC_NIC_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "base/heap.h"
#include "base/lock.h"
#include "base/rng.h"
#include "nic/congestion.h"
#include "nic/counters.h"
#include "nic/event.h"
#include "nic/gsi.h"
#include "nic/mcast.h"
#include "nic/mem.h"
#include "nic/qp.h"
#include "nic/xrc.h"
#include "verbena/port.h"

enum {
    QPN_SLOT_BITS = 14, /* QPNs of one slot; slot = qpn >> 14 */
    QPN_PER_SLOT = 1 << QPN_SLOT_BITS,
    QPN_SLOTS = 1 << (24 - QPN_SLOT_BITS),
    NIC_WINDOW_BYTES = 256 * 1024, /* where none is asked for */
};

struct nic_config {
    uint64_t seed;         /* for QPNs and keys; from the operating system's randomness when live */
    uint32_t window_bytes; /* what one QP may have in flight towards a peer; 0: as above */
    uint32_t max_qp_wr;    /* 0: MAX_WR */
    /* Limits that its tables are made for, rounded up to powers of two; 0: as much as there can be.
     * Live a table costs nothing before it is used; a thousand simulated NICs take what they need.
     */
    uint32_t max_qp;        /* of a slot: QPNs are below it there */
    uint32_t max_mr;        /* regions and windows; MAX_MR */
    uint32_t max_rd_atomic; /* of a QP, each side; MAX_RD_ATOMIC */
    uint32_t max_slots;     /* those that nic_add_qpns may be given are below it */
    struct train *train;    /* nic_output's scratch, shared by NICs of one thread; NULL: its own */
    uint32_t gsi_mads;      /* MADs that may wait at QP 1, each way; 0: QP 1 is not served */
    /* How the bytes of on-demand regions are reached, which another thread may unmap at any moment:
     * n bytes, at most a packet's, from or to such memory, `to` with its last byte last. false: not
     * there, or not writable; never a fault. NULL: as other memory. */
    bool (*fetch)(void *to, const void *from, size_t n);
    bool (*store)(void *to, const void *from, size_t n);
    struct congestion_config congestion;
};

struct nic {
    struct nic_config config;
    struct nic_counters counters;
    struct mem_table mem;
    struct gsi gsi;
    struct mcast mcast;
    struct xrc_table xrc;
    _Atomic uint32_t objects; /* PDs, CQs and XRC domains alive */
    struct lock table_lock;   /* guards qpn_slot writers and the generator */
    struct rng rng;
    _Atomic(struct qp *) **qpn_slot; /* max_slots of max_qp each, or NULL: not ours */
    uint32_t qp_count;
    /* Scheduler: who has something to send, when what is due, what the host must hear. */
    struct lock sched_lock;
    TAILQ_HEAD(qp_list, qp) ready;
    struct qp_list waiting; /* have something to send for which the port has no room */
    struct qp_list urgent;  /* owe a CNP, or a probe or its answer */
    struct heap timers;
    struct event_list events; /* their objects */
    TAILQ_HEAD(, cq) notify;
    TAILQ_HEAD(, cq) held;        /* their events wait: moderation.c */
    _Atomic uint32_t ready_count; /* hints that can be read without the lock */
    _Atomic uint32_t waiting_count;
    _Atomic uint32_t urgent_count;
    _Atomic uint32_t notify_count;
    _Atomic uint32_t event_count;
    _Atomic uint64_t first_deadline_ns; /* UINT64_MAX: none */
    _Atomic uint64_t first_held_ns;     /* the same of held */
    _Atomic uint64_t now_ns;            /* as last told */
    _Atomic bool cq_purge_due;
    struct train *train;          /* nic_output's scratch */
    uint8_t rtt_bytes[MAD_BYTES]; /* and that of congestion.c, of a train of its own */
    struct nic_path path_back;    /* the same */
    bool congestion;              /* there is congestion control */
};

int nic_create(const struct nic_config *config, struct nic **out); /* 0, -EINVAL or -ENOMEM */
/* All objects must be gone. */
void nic_destroy(struct nic *nic);
/* QPNs of this slot (below max_slots) are ours from now on. 0, -EEXIST or -ENOMEM. */
int nic_add_qpns(struct nic *nic, uint32_t slot);
/* All QPNs of all slots are in use. */
bool nic_out_of_qpns(struct nic *nic);

void nic_input(struct nic *nic, uint64_t now_ns, const struct rx_packet *packets, unsigned n);
/* Hands up to max_trains trains to the sink; true: there is more to send now. */
bool nic_output(struct nic *nic, uint64_t now_ns, struct nic_sink *sink, unsigned max_trains);
/* Of that, what is not to wait behind data: CNPs, probes and their answers. */
bool nic_output_urgent(struct nic *nic, uint64_t now_ns, struct nic_sink *sink,
                       unsigned max_trains);
/* Those for which the sink had no room may ask it again. */
void nic_retry(struct nic *nic);
/* Earliest time at which nic_advance has work, UINT64_MAX when never. */
uint64_t nic_deadline(const struct nic *nic);
void nic_advance(struct nic *nic, uint64_t now_ns);
/* For what is done next without a time, qp_modify; the three above are told it anyhow. */
void nic_tell_time(struct nic *nic, uint64_t now_ns);

/* For nic_output_urgent. */
static inline bool nic_has_urgent(const struct nic *nic)
{
    return atomic_load_explicit(&nic->urgent_count, memory_order_acquire) != 0;
}

static inline bool nic_has_output(const struct nic *nic)
{
    return atomic_load_explicit(&nic->ready_count, memory_order_acquire) != 0 ||
           nic_has_urgent(nic) ||
           atomic_load_explicit(&nic->gsi.tx_count, memory_order_acquire) != 0;
}

/* The next CQ whose armed condition was met, its owner; NULL: none. */
void *nic_notify_next(struct nic *nic);

/* The QP with this number or NULL; valid until the grace period after its qp_unlink. */
struct qp *nic_find_qp(const struct nic *nic, uint32_t qpn);
/* Draws an unused QPN at random, makes the QP known, reserves its timer. 0 or -ENOMEM. */
int nic_adopt_qp(struct nic *nic, struct qp *qp);
/* No packet finds it any more. */
void nic_unlist_qp(struct qp *qp);
/* After the grace period: out of the ready list and the timer heap. */
void nic_forget_qp(struct qp *qp);
/* This QP has (or may have) something to send. With the QP's lock held. */
void nic_qp_ready(struct qp *qp);
/* The same, for what nic_output_urgent sends. */
void nic_qp_urgent(struct qp *qp);
/* For the objects: CQ's armed condition is met; deadline of a QP. */
void nic_cq_notify(struct cq *cq);
void nic_cq_forget(struct cq *cq);
void nic_set_deadline(struct qp *qp, uint64_t time_ns);
void nic_clear_deadline(struct qp *qp);
/* Counts on the NIC. */
static inline void nic_count(struct nic *nic, enum nic_counter c, uint64_t n)
{
    counters_add(&nic->counters, c, n);
}

#endif
