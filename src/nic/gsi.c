/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsi.c: the two queues of QP 1 and the checks that a MAD passes before anybody sees it. What does
 * not pass is dropped in silence and counted: an unreliable datagram has no NAK (IBA 9.8.3).
 */
#include "nic/gsi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/nic.h"
#include "wire/opcode.h"

enum {
    MAD_AT_VERSION = 0,
    MAD_AT_CLASS = 1,
};

int gsi_init(struct gsi *g, uint32_t mads, uint32_t first_psn)
{
    if (mads > GSI_MAX_MADS)
        return -EINVAL;
    *g = (struct gsi){.psn = psn_make(first_psn)};
    lock_init(&g->lock);
    if (mads == 0)
        return 0;
    uint32_t slots = 1;
    while (slots < mads)
        slots *= 2;
    g->rx = calloc(slots, sizeof(*g->rx));
    g->tx = calloc(slots, sizeof(*g->tx));
    if (g->rx == NULL || g->tx == NULL) {
        gsi_fini(g);
        return -ENOMEM;
    }
    g->slots = slots;
    return 0;
}

void gsi_fini(struct gsi *g)
{
    free(g->rx);
    free(g->tx);
    g->rx = NULL;
    g->tx = NULL;
    lock_fini(&g->lock);
}

bool gsi_next(struct nic *nic, struct nic_mad *out)
{
    struct gsi *g = &nic->gsi;
    if (!gsi_waiting(g))
        return false;
    lock_take(&g->lock);
    bool found = g->rx_head != g->rx_tail;
    if (found) {
        *out = g->rx[g->rx_head++ & (g->slots - 1)];
        atomic_store_explicit(&g->rx_count, g->rx_tail - g->rx_head, memory_order_release);
    }
    lock_drop(&g->lock);
    return found;
}

int gsi_send(struct nic *nic, const struct nic_path *path, uint32_t dest_qp, const uint8_t *mad)
{
    struct gsi *g = &nic->gsi;
    if (dest_qp > 0xffffff || net_addr_is_v4(&path->local) != net_addr_is_v4(&path->remote))
        return -EINVAL;
    if (g->slots == 0)
        return -EOPNOTSUPP;
    int err = -EAGAIN;
    lock_take(&g->lock);
    if (g->tx_tail - g->tx_head < g->slots) {
        struct gsi_send_mad *m = &g->tx[g->tx_tail++ & (g->slots - 1)];
        m->path = *path;
        if (path->udp_sport == 0)
            m->path.udp_sport = GSI_UDP_SPORT;
        m->dest_qp = dest_qp;
        memcpy(m->bytes, mad, GSI_MAD_BYTES);
        atomic_store_explicit(&g->tx_count, g->tx_tail - g->tx_head, memory_order_release);
        err = 0;
    }
    lock_drop(&g->lock);
    return err;
}

/* Why a packet to QP 1 is dropped; COUNTER_gsi_rx_mads: it is not. */
static enum nic_counter verdict(const struct rx_packet *p)
{
    if (p->h.bth.opcode != opcode_make(SERVICE_UD, OP_SEND_ONLY))
        return COUNTER_rx_drop_service;
    /* IBA 10.9.3: the low 15 bits must match. */
    if ((p->h.bth.pkey & 0x7fff) != (PKEY_DEFAULT & 0x7fff))
        return COUNTER_rx_drop_pkey;
    if (p->h.deth.qkey != QKEY_GSI)
        return COUNTER_qkey_viol_cntr;
    if (p->payload_bytes != GSI_MAD_BYTES || p->payload[MAD_AT_VERSION] != MAD_BASE_VERSION)
        return COUNTER_rx_drop_malformed;
    if (p->payload[MAD_AT_CLASS] != MAD_CLASS_CM)
        return COUNTER_gsi_drop_class;
    return COUNTER_gsi_rx_mads;
}

void gsi_input(struct nic *nic, const struct rx_packet *p)
{
    struct gsi *g = &nic->gsi;
    enum nic_counter c = g->slots == 0 ? COUNTER_rx_drop_no_qp : verdict(p);
    if (c != COUNTER_gsi_rx_mads) {
        nic_count(nic, c, 1);
        return;
    }
    lock_take(&g->lock);
    if (g->rx_tail - g->rx_head < g->slots) {
        struct nic_mad *m = &g->rx[g->rx_tail++ & (g->slots - 1)];
        m->src = p->src;
        m->dst = p->dst;
        m->ifindex = p->ifindex;
        m->src_qp = p->h.deth.src_qp;
        m->traffic_class = p->traffic_class;
        memcpy(m->bytes, p->payload, GSI_MAD_BYTES);
        atomic_store_explicit(&g->rx_count, g->rx_tail - g->rx_head, memory_order_release);
    } else {
        c = COUNTER_gsi_rx_full;
    }
    lock_drop(&g->lock);
    nic_count(nic, c, 1);
}

/* With the lock held. */
static void add(struct gsi *g, struct train *t, uint32_t dest_qp, const uint8_t *mad)
{
    const uint8_t opcode = opcode_make(SERVICE_UD, OP_SEND_ONLY);
    struct train_packet *p = train_add_to(t, dest_qp, opcode, g->psn, GSI_MAD_BYTES);
    p->h.deth.qkey = QKEY_GSI;
    p->h.deth.src_qp = GSI_QPN;
    p->spans = 1;
    t->span[t->spans++] = (struct span){mad, GSI_MAD_BYTES};
    g->psn = psn_add(g->psn, 1);
}

void gsi_add(struct nic *nic, struct train *t, uint32_t dest_qp, const uint8_t *mad)
{
    lock_take(&nic->gsi.lock);
    add(&nic->gsi, t, dest_qp, mad);
    lock_drop(&nic->gsi.lock);
}

bool gsi_next_train(struct nic *nic, struct train *t)
{
    struct gsi *g = &nic->gsi;
    if (atomic_load_explicit(&g->tx_count, memory_order_acquire) == 0)
        return false;
    lock_take(&g->lock);
    const struct gsi_send_mad *first = &g->tx[g->tx_head & (g->slots - 1)];
    train_begin(t, &first->path);
    for (uint32_t i = g->tx_head; i != g->tx_tail && t->packets < TRAIN_MAX_PACKETS; i++) {
        const struct gsi_send_mad *m = &g->tx[i & (g->slots - 1)];
        if (!nic_path_equal(&m->path, &first->path))
            break;
        add(g, t, m->dest_qp, m->bytes);
    }
    lock_drop(&g->lock);
    return true;
}

void gsi_sent(struct nic *nic, const struct train *t)
{
    struct gsi *g = &nic->gsi;
    lock_take(&g->lock);
    g->tx_head += t->packets;
    atomic_store_explicit(&g->tx_count, g->tx_tail - g->tx_head, memory_order_release);
    lock_drop(&g->lock);
    nic_count(nic, COUNTER_gsi_tx_mads, t->packets);
}
