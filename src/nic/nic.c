/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic.c: the device. Finds the QP of each packet that comes in, asks ready QPs for trains, keeps
 * the deadlines, and hands events out. It knows nothing of what a QP does with a packet: that is
 * roce/.
 */
#include "nic/nic.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/roce/datagram.h"
#include "nic/roce/unreliable.h"
#include "nic/timers.h"
#include "nic/turn.h"
#include "wire/net.h"
#include "wire/opcode.h"

enum {
    TRAINS_PER_TURN = 4, /* of one QP before the next has its turn */
    QPN_TRIES = 64,      /* random draws before a slot is searched in order */
};

/* A power of two, for tables whose indexes are masked. */
static uint32_t table_size(uint32_t asked, uint32_t most)
{
    uint32_t size = 1;
    if (asked == 0 || asked > most)
        return most;
    while (size < asked)
        size *= 2;
    return size;
}

static struct nic_config granted_config(const struct nic_config *asked)
{
    struct nic_config c = *asked;
    if (c.window_bytes == 0)
        c.window_bytes = NIC_WINDOW_BYTES;
    if (c.max_qp_wr == 0 || c.max_qp_wr > MAX_WR)
        c.max_qp_wr = MAX_WR;
    c.max_qp = table_size(c.max_qp, QPN_PER_SLOT);
    c.max_mr = table_size(c.max_mr, MAX_MR);
    c.max_rd_atomic = table_size(c.max_rd_atomic, MAX_RD_ATOMIC);
    c.max_slots = table_size(c.max_slots, QPN_SLOTS);
    return c;
}

static int tables_create(struct nic *nic)
{
    const struct nic_config *c = &nic->config;
    nic->qpn_slot = calloc(c->max_slots, sizeof(*nic->qpn_slot));
    nic->train = c->train != NULL ? c->train : calloc(1, sizeof(*nic->train));
    if (nic->qpn_slot == NULL || nic->train == NULL)
        return -ENOMEM;
    int err = mem_init(&nic->mem, c->max_mr, rng_next(&nic->rng));
    if (err != 0)
        return err;
    nic->mem.fetch = c->fetch;
    nic->mem.store = c->store;
    err = gsi_init(&nic->gsi, c->gsi_mads, c->gsi_mads ? rng_below(&nic->rng, 1u << 24) : 0);
    if (err != 0)
        mem_fini(&nic->mem);
    return err;
}

static void tables_free(struct nic *nic)
{
    free(nic->qpn_slot);
    if (nic->config.train == NULL)
        free(nic->train);
    free(nic);
}

int nic_create(const struct nic_config *config, struct nic **out)
{
    if (congestion_check(&config->congestion) != 0)
        return -EINVAL;
    struct nic *nic = calloc(1, sizeof(*nic));
    if (nic == NULL)
        return -ENOMEM;
    nic->config = granted_config(config);
    nic->congestion = congestion_is_on(&config->congestion);
    rng_init(&nic->rng, config->seed);
    int err = tables_create(nic);
    if (err != 0) {
        tables_free(nic);
        return err;
    }
    xrc_init(nic);
    mcast_init(nic);
    lock_init(&nic->table_lock);
    lock_init(&nic->sched_lock);
    TAILQ_INIT(&nic->ready);
    TAILQ_INIT(&nic->waiting);
    TAILQ_INIT(&nic->urgent);
    TAILQ_INIT(&nic->events);
    TAILQ_INIT(&nic->notify);
    TAILQ_INIT(&nic->held);
    atomic_store(&nic->first_held_ns, UINT64_MAX);
    heap_init(&nic->timers);
    nic->train->max_bytes = TRAIN_MAX_BYTES;
    atomic_store(&nic->first_deadline_ns, UINT64_MAX);
    *out = nic;
    return 0;
}

void nic_destroy(struct nic *nic)
{
    assert(nic->qp_count == 0);
    assert(atomic_load(&nic->objects) == 0);
    assert(nic->mcast.count == 0);
    for (unsigned i = 0; i < nic->config.max_slots; i++)
        free(nic->qpn_slot[i]);
    heap_fini(&nic->timers);
    mem_fini(&nic->mem);
    gsi_fini(&nic->gsi);
    xrc_fini(nic);
    mcast_fini(nic);
    lock_fini(&nic->table_lock);
    lock_fini(&nic->sched_lock);
    tables_free(nic);
}

int nic_add_qpns(struct nic *nic, uint32_t slot)
{
    assert(slot < nic->config.max_slots);
    int err = 0;
    lock_take(&nic->table_lock);
    if (nic->qpn_slot[slot] != NULL) {
        err = -EEXIST;
    } else {
        nic->qpn_slot[slot] = calloc(nic->config.max_qp, sizeof(*nic->qpn_slot[slot]));
        if (nic->qpn_slot[slot] == NULL)
            err = -ENOMEM;
    }
    lock_drop(&nic->table_lock);
    return err;
}

/* QPN 0 and 1 are the management QPs, 0xffffff is multicast: none is given out. */
static bool qpn_usable(uint32_t qpn)
{
    return qpn > 1 && qpn != QPN_MULTICAST;
}

/* An unused QPN at random, or 0 when all are taken. With table_lock held. */
static uint32_t qpn_draw(struct nic *nic)
{
    uint32_t slots[QPN_SLOTS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < nic->config.max_slots; i++)
        if (nic->qpn_slot[i] != NULL)
            slots[n++] = i;
    if (n == 0)
        return 0;
    for (unsigned i = 0; i < QPN_TRIES; i++) {
        uint32_t slot = slots[rng_below(&nic->rng, n)];
        uint32_t number = rng_below(&nic->rng, nic->config.max_qp);
        uint32_t qpn = slot << QPN_SLOT_BITS | number;
        if (qpn_usable(qpn) && atomic_load(&nic->qpn_slot[slot][number]) == NULL)
            return qpn;
    }
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t number = 0; number < nic->config.max_qp; number++) {
            uint32_t qpn = slots[s] << QPN_SLOT_BITS | number;
            if (qpn_usable(qpn) && atomic_load(&nic->qpn_slot[slots[s]][number]) == NULL)
                return qpn;
        }
    return 0;
}

bool nic_out_of_qpns(struct nic *nic)
{
    lock_take(&nic->table_lock);
    bool out = qpn_draw(nic) == 0;
    lock_drop(&nic->table_lock);
    return out;
}

int nic_adopt_qp(struct nic *nic, struct qp *qp)
{
    int err = -ENOMEM;
    lock_take(&nic->table_lock);
    lock_take(&nic->sched_lock);
    int grown = heap_grow(&nic->timers, nic->qp_count + 1);
    lock_drop(&nic->sched_lock);
    uint32_t qpn = grown == 0 ? qpn_draw(nic) : 0;
    if (qpn != 0) {
        qp->qpn = qpn;
        nic->qp_count++;
        atomic_store_explicit(&nic->qpn_slot[qpn >> QPN_SLOT_BITS][qpn & (QPN_PER_SLOT - 1)], qp,
                              memory_order_release);
        err = 0;
    }
    lock_drop(&nic->table_lock);
    return err;
}

void nic_unlist_qp(struct qp *qp)
{
    struct nic *nic = qp->nic;
    lock_take(&nic->table_lock);
    atomic_store(&nic->qpn_slot[qp->qpn >> QPN_SLOT_BITS][qp->qpn & (QPN_PER_SLOT - 1)], NULL);
    lock_drop(&nic->table_lock);
}

struct qp *nic_find_qp(const struct nic *nic, uint32_t qpn)
{
    uint32_t slot = qpn >> QPN_SLOT_BITS, number = qpn & (QPN_PER_SLOT - 1);
    if (slot >= nic->config.max_slots || number >= nic->config.max_qp ||
        nic->qpn_slot[slot] == NULL)
        return NULL;
    return atomic_load_explicit(&nic->qpn_slot[slot][number], memory_order_acquire);
}

static void first_deadline_update(struct nic *nic)
{
    struct heap_node *n = heap_first(&nic->timers);
    atomic_store_explicit(&nic->first_deadline_ns, n == NULL ? UINT64_MAX : n->time_ns,
                          memory_order_release);
}

void nic_forget_qp(struct qp *qp)
{
    struct nic *nic = qp->nic;
    lock_take(&nic->table_lock);
    nic->qp_count--;
    lock_drop(&nic->table_lock);
    lock_take(&nic->sched_lock);
    if (qp->ready) {
        TAILQ_REMOVE(qp->waits ? &nic->waiting : &nic->ready, qp, ready_link);
        atomic_fetch_sub(qp->waits ? &nic->waiting_count : &nic->ready_count, 1);
        qp->ready = qp->waits = false;
    }
    if (qp->urgent) {
        TAILQ_REMOVE(&nic->urgent, qp, urgent_link);
        atomic_fetch_sub(&nic->urgent_count, 1);
        qp->urgent = false;
    }
    if (heap_holds(&qp->timer))
        heap_remove(&nic->timers, &qp->timer);
    first_deadline_update(nic);
    lock_drop(&nic->sched_lock);
}

void nic_qp_urgent(struct qp *qp)
{
    struct nic *nic = qp->nic;
    lock_take(&nic->sched_lock);
    if (!qp->urgent) {
        qp->urgent = true;
        TAILQ_INSERT_TAIL(&nic->urgent, qp, urgent_link);
        atomic_fetch_add_explicit(&nic->urgent_count, 1, memory_order_release);
    }
    lock_drop(&nic->sched_lock);
}

void nic_qp_ready(struct qp *qp)
{
    struct nic *nic = qp->nic;
    /* Whoever takes it off the list locks the QP afterwards, and so sees what we did. */
    if (atomic_load_explicit(&qp->ready, memory_order_relaxed))
        return;
    lock_take(&nic->sched_lock);
    if (!qp->ready) {
        qp->ready = true;
        TAILQ_INSERT_TAIL(&nic->ready, qp, ready_link);
        atomic_fetch_add_explicit(&nic->ready_count, 1, memory_order_release);
    }
    lock_drop(&nic->sched_lock);
}

/* It stays ready, so that posting more does not put it on the other list. */
static void qp_wait(struct qp *qp)
{
    struct nic *nic = qp->nic;
    lock_take(&nic->sched_lock);
    if (qp->ready) {
        TAILQ_REMOVE(&nic->ready, qp, ready_link);
        atomic_fetch_sub(&nic->ready_count, 1);
    }
    qp->ready = qp->waits = true;
    TAILQ_INSERT_TAIL(&nic->waiting, qp, ready_link);
    atomic_fetch_add(&nic->waiting_count, 1);
    lock_drop(&nic->sched_lock);
}

void nic_retry(struct nic *nic)
{
    struct qp *qp;
    if (atomic_load_explicit(&nic->waiting_count, memory_order_relaxed) == 0)
        return;
    lock_take(&nic->sched_lock);
    while ((qp = TAILQ_FIRST(&nic->waiting)) != NULL) {
        TAILQ_REMOVE(&nic->waiting, qp, ready_link);
        qp->waits = false;
        TAILQ_INSERT_TAIL(&nic->ready, qp, ready_link);
        atomic_fetch_add_explicit(&nic->ready_count, 1, memory_order_release);
    }
    atomic_store(&nic->waiting_count, 0);
    lock_drop(&nic->sched_lock);
}

/*
 * A deadline that is moved later stays in the heap at its old time: timers_expire finds nothing due
 * and arms it anew. So an ACK costs no heap operation.
 */
void nic_set_deadline(struct qp *qp, uint64_t time_ns)
{
    struct nic *nic = qp->nic;
    lock_take(&nic->sched_lock);
    if (!heap_holds(&qp->timer) || time_ns < qp->timer.time_ns) {
        heap_put(&nic->timers, &qp->timer, time_ns);
        first_deadline_update(nic);
    }
    lock_drop(&nic->sched_lock);
}

void nic_clear_deadline(struct qp *qp)
{
    struct nic *nic = qp->nic;
    lock_take(&nic->sched_lock);
    if (heap_holds(&qp->timer)) {
        heap_remove(&nic->timers, &qp->timer);
        first_deadline_update(nic);
    }
    lock_drop(&nic->sched_lock);
}

uint64_t nic_deadline(const struct nic *nic)
{
    if (atomic_load_explicit(&nic->cq_purge_due, memory_order_acquire))
        return 0;
    uint64_t timer = atomic_load_explicit(&nic->first_deadline_ns, memory_order_acquire);
    uint64_t held = atomic_load_explicit(&nic->first_held_ns, memory_order_acquire);
    return timer < held ? timer : held;
}

void nic_tell_time(struct nic *nic, uint64_t now_ns)
{
    atomic_store_explicit(&nic->now_ns, now_ns, memory_order_relaxed);
}

void nic_advance(struct nic *nic, uint64_t now_ns)
{
    nic_tell_time(nic, now_ns);
    if (atomic_exchange(&nic->cq_purge_due, false))
        qp_purge_overflowed(nic);
    moderation_expire(nic, now_ns);
    while (atomic_load_explicit(&nic->first_deadline_ns, memory_order_acquire) <= now_ns) {
        lock_take(&nic->sched_lock);
        struct heap_node *n = heap_first(&nic->timers);
        if (n == NULL || n->time_ns > now_ns) { /* somebody else took it */
            lock_drop(&nic->sched_lock);
            return;
        }
        heap_remove(&nic->timers, n);
        first_deadline_update(nic);
        lock_drop(&nic->sched_lock);
        struct qp *qp = (struct qp *)((char *)n - offsetof(struct qp, timer));
        lock_take(&qp->lock);
        timers_expire(qp, now_ns);
        lock_drop(&qp->lock);
    }
}

/* An XRC QP has one half only: an initiator takes no requests, a target no responses. */
static bool one_way_other(const struct qp *qp, bool response)
{
    return qp->service == SERVICE_XRC && response != (qp->type == QP_TYPE_XRC_INI);
}

/* Of this QP's service; a CNP is of all that have one peer. */
static bool of_service(const struct qp *qp, const struct opcode_info *info)
{
    if (info->service == SERVICE_CNP)
        return qp->type != QP_TYPE_UD;
    return info->service == qp->service && !one_way_other(qp, (info->flags & OPF_RESPONSE) != 0);
}

/* May this packet reach this QP at all? Everything else is dropped in silence and counted. */
static bool input_admit(struct nic *nic, const struct qp *qp, const struct rx_packet *p)
{
    const struct opcode_info *info = opcode_info(p->h.bth.opcode);
    bool datagram = qp->type == QP_TYPE_UD;
    bool response = (info->flags & OPF_RESPONSE) != 0;
    if (!of_service(qp, info)) {
        nic_count(nic, COUNTER_rx_drop_service, 1);
        return false;
    }
    /* IBA 10.9.3: the low 15 bits must match; the only P_Key of the table is the default one. */
    if ((p->h.bth.pkey & 0x7fff) != (PKEY_DEFAULT & 0x7fff)) {
        nic_count(nic, COUNTER_rx_drop_pkey, 1);
        return false;
    }
    bool able = qp->state == QP_STATE_RTS || qp->state == QP_STATE_SQD ||
                (qp->state == QP_STATE_RTR && !response) ||
                qp->state == QP_STATE_SQE; /* unreliable */
    if (!able) {
        nic_count(nic, COUNTER_rx_drop_state, 1);
        return false;
    }
    /* A datagram may come from anybody: the Q_Key decides. */
    if (!datagram && (memcmp(&p->src, &qp->attr.path.remote, sizeof(p->src)) != 0 ||
                      memcmp(&p->dst, &qp->attr.path.local, sizeof(p->dst)) != 0)) {
        nic_count(nic, COUNTER_rx_drop_peer, 1);
        return false;
    }
    return true;
}

/* What one nic_input took in. */
struct input_total {
    uint64_t packets, bytes;
};

static void input_cnp(struct nic *nic, struct qp *qp, uint64_t now_ns, const struct rx_packet *p)
{
    /* That it is set makes it a notification. */
    if (!p->h.bth.becn) {
        nic_count(nic, COUNTER_rx_drop_malformed, 1);
        return;
    }
    nic_count(nic, COUNTER_rp_cnp_handled, 1);
    congestion_cnp(qp, now_ns);
}

static void input_packet(struct nic *nic, struct qp *qp, uint64_t now_ns, const struct rx_packet *p,
                         struct input_total *t)
{
    if (!input_admit(nic, qp, p))
        return;
    if (p->h.bth.opcode == OPCODE_CNP) {
        input_cnp(nic, qp, now_ns, p);
        return;
    }
    t->packets++;
    t->bytes += p->payload_bytes;
    if ((p->traffic_class & ECN_MASK) == ECN_CE) {
        nic_count(nic, COUNTER_np_ecn_marked_roce_packets, 1);
        congestion_marked(qp, now_ns);
    }
    if (qp->type == QP_TYPE_UD)
        datagram_input(qp, p);
    else if (qp->type == QP_TYPE_UC)
        unreliable_input(qp, p);
    else if (opcode_info(p->h.bth.opcode)->flags & OPF_RESPONSE)
        completer_input(qp, now_ns, p);
    else
        responder_input(qp, now_ns, p);
}

/* A datagram to a group, and what nic_input counts. */
struct input_group {
    struct nic *nic;
    uint64_t now_ns;
    const struct rx_packet *p;
    struct input_total *t;
};

static void input_member(struct qp *qp, void *with)
{
    const struct input_group *g = with;
    bool own = qp->block_self_loopback && g->p->h.deth.src_qp == qp->qpn &&
               memcmp(&g->p->src, &qp->group_source, sizeof(g->p->src)) == 0;
    if (!own)
        input_packet(g->nic, qp, g->now_ns, g->p, g->t);
}

/* To QP 1, or a multicast group. With no lock held. */
static void input_special(struct nic *nic, uint64_t now_ns, const struct rx_packet *p,
                          struct input_total *t)
{
    if (p->h.bth.dest_qp == QPN_MULTICAST) {
        struct input_group g = {nic, now_ns, p, t};
        if (mcast_each(nic, &p->dst, input_member, &g) == 0)
            nic_count(nic, COUNTER_rx_drop_no_qp, 1);
    } else if (congestion_is_mad(p)) {
        congestion_mad(nic, now_ns, p);
    } else {
        gsi_input(nic, p);
    }
}

void nic_input(struct nic *nic, uint64_t now_ns, const struct rx_packet *packets, unsigned n)
{
    struct qp *qp = NULL; /* locked */
    struct input_total t = {0};
    nic_tell_time(nic, now_ns);
    for (unsigned i = 0; i < n; i++) {
        const struct rx_packet *p = &packets[i];
        if (!p->icrc_ok) {
            nic_count(nic, COUNTER_rx_icrc_encapsulated, 1);
            continue;
        }
        if (p->h.bth.dest_qp == GSI_QPN || p->h.bth.dest_qp == QPN_MULTICAST) {
            if (qp != NULL)
                lock_drop(&qp->lock);
            qp = NULL;
            input_special(nic, now_ns, p, &t);
            continue;
        }
        if (qp == NULL || qp->qpn != p->h.bth.dest_qp) {
            if (qp != NULL)
                lock_drop(&qp->lock);
            qp = nic_find_qp(nic, p->h.bth.dest_qp);
            if (qp == NULL) {
                nic_count(nic, COUNTER_rx_drop_no_qp, 1);
                continue;
            }
            lock_take(&qp->lock);
        }
        input_packet(nic, qp, now_ns, p, &t);
    }
    if (qp != NULL)
        lock_drop(&qp->lock);
    nic_count(nic, COUNTER_rx_packets, t.packets);
    nic_count(nic, COUNTER_rx_bytes, t.bytes);
}

static struct qp *ready_take(struct nic *nic)
{
    if (atomic_load_explicit(&nic->ready_count, memory_order_acquire) == 0)
        return NULL;
    lock_take(&nic->sched_lock);
    struct qp *qp = TAILQ_FIRST(&nic->ready);
    if (qp != NULL) {
        TAILQ_REMOVE(&nic->ready, qp, ready_link);
        qp->ready = false;
        atomic_fetch_sub_explicit(&nic->ready_count, 1, memory_order_relaxed);
    }
    lock_drop(&nic->sched_lock);
    return qp;
}

static void train_count(struct nic *nic, const struct train *t)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < t->packets; i++)
        bytes += t->packet[i].payload_bytes;
    nic_count(nic, COUNTER_tx_trains, 1);
    nic_count(nic, COUNTER_tx_packets, t->packets);
    nic_count(nic, COUNTER_tx_bytes, bytes);
}

static struct qp *urgent_take(struct nic *nic)
{
    lock_take(&nic->sched_lock);
    struct qp *qp = TAILQ_FIRST(&nic->urgent);
    if (qp != NULL) {
        TAILQ_REMOVE(&nic->urgent, qp, urgent_link);
        qp->urgent = false;
        atomic_fetch_sub_explicit(&nic->urgent_count, 1, memory_order_relaxed);
    }
    lock_drop(&nic->sched_lock);
    return qp;
}

/* At most so many trains, of one packet each; returns how many. */
static unsigned output_urgent(struct nic *nic, uint64_t now_ns, struct nic_sink *sink,
                              unsigned max_trains)
{
    unsigned trains = 0;
    struct qp *qp;
    while (trains < max_trains && nic_has_urgent(nic) && (qp = urgent_take(nic)) != NULL) {
        lock_take(&qp->lock);
        if (congestion_next(qp, now_ns, nic->train)) {
            train_count(nic, nic->train);
            sink->train(sink, nic->train);
            trains++;
        }
        if (qp->due != 0)
            nic_qp_urgent(qp);
        lock_drop(&qp->lock);
    }
    return trains;
}

bool nic_output_urgent(struct nic *nic, uint64_t now_ns, struct nic_sink *sink, unsigned max_trains)
{
    output_urgent(nic, now_ns, sink, max_trains);
    return nic_has_urgent(nic);
}

bool nic_output(struct nic *nic, uint64_t now_ns, struct nic_sink *sink, unsigned max_trains)
{
    unsigned trains = 0;
    nic_tell_time(nic, now_ns);
    /* Few and small, and whole connections wait for them; but one train a call. */
    if (max_trains > 0 && gsi_next_train(nic, nic->train)) {
        train_count(nic, nic->train);
        sink->train(sink, nic->train);
        gsi_sent(nic, nic->train);
        trains++;
    }
    if (nic_has_urgent(nic))
        trains += output_urgent(nic, now_ns, sink, max_trains - trains);
    while (trains < max_trains) {
        struct qp *qp = ready_take(nic);
        if (qp == NULL)
            break;
        lock_take(&qp->lock);
        unsigned turn = 0;
        bool room = true;
        while (turn < TRAINS_PER_TURN && trains + turn < max_trains &&
               (room = sink->room == NULL || turn_has_room(qp, now_ns, sink)) &&
               turn_next(qp, now_ns, nic->train)) {
            train_count(nic, nic->train);
            sink->train(sink, nic->train);
            if (qp_unreliable(qp))
                unreliable_sent(qp);
            turn++;
        }
        if (!room)
            qp_wait(qp);
        else if (turn == TRAINS_PER_TURN || trains + turn == max_trains)
            nic_qp_ready(qp);
        trains += turn;
        lock_drop(&qp->lock);
    }
    return nic_has_output(nic);
}

void nic_cq_notify(struct cq *cq)
{
    struct nic *nic = cq->nic;
    lock_take(&nic->sched_lock);
    if (!cq->notify_queued) {
        cq->notify_queued = true;
        TAILQ_INSERT_TAIL(&nic->notify, cq, notify_link);
        atomic_fetch_add(&nic->notify_count, 1);
    }
    lock_drop(&nic->sched_lock);
}

void nic_cq_forget(struct cq *cq)
{
    struct nic *nic = cq->nic;
    lock_take(&nic->sched_lock);
    if (cq->notify_queued) {
        cq->notify_queued = false;
        TAILQ_REMOVE(&nic->notify, cq, notify_link);
        atomic_fetch_sub(&nic->notify_count, 1);
    }
    lock_drop(&nic->sched_lock);
}

void *nic_notify_next(struct nic *nic)
{
    if (atomic_load_explicit(&nic->notify_count, memory_order_acquire) == 0)
        return NULL;
    void *owner = NULL;
    lock_take(&nic->sched_lock);
    struct cq *cq = TAILQ_FIRST(&nic->notify);
    if (cq != NULL) {
        cq->notify_queued = false;
        TAILQ_REMOVE(&nic->notify, cq, notify_link);
        atomic_fetch_sub(&nic->notify_count, 1);
        owner = cq->owner;
    }
    lock_drop(&nic->sched_lock);
    return owner;
}
