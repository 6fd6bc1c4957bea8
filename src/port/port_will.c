/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_will.c: writing and reading a last will; port_will.h says what it is.
 */
#include "port/port_will.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WILL_MAGIC = 0x56425731 };

_Static_assert(offsetof(struct will_header, served) == WILL_SERVED_OFFSET, "as told");

int will_create(struct will *w, void *memory, uint32_t slot)
{
    w->free = calloc(WILL_MAX_CONNECTIONS, sizeof(*w->free));
    if (w->free == NULL)
        return -ENOMEM;
    w->free_count = 0;
    w->header = memory;
    w->entry = (struct will_entry *)memory + 1;
    w->header->slot = slot;
    /* Last: without it there is nothing to read. */
    atomic_signal_fence(memory_order_release);
    w->header->magic = WILL_MAGIC;
    return 0;
}

void will_fini(struct will *w)
{
    free(w->free);
    *w = (struct will){0};
}

/* A process can be killed between any two stores, and each is seen when those before it are: the
 * order of the program is enough. */
static void entry_write(struct will_entry *e, const struct port_connection *c)
{
    uint32_t sequence = atomic_load_explicit(&e->sequence, memory_order_relaxed);
    atomic_store_explicit(&e->sequence, sequence | 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    e->connection = *c;
    /* Never 0 again: that is what was never written. */
    uint32_t next = (sequence | 1) + 1;
    atomic_store_explicit(&e->sequence, next != 0 ? next : 2, memory_order_release);
}

int will_note(struct will *w, const struct port_connection *c)
{
    if (!will_valid(c, w->header->slot))
        return -EINVAL;
    uint32_t used = atomic_load_explicit(&w->header->used, memory_order_relaxed);
    if (w->free_count == 0 && used == WILL_MAX_CONNECTIONS)
        return -ENOSPC;
    uint32_t index = w->free_count != 0 ? w->free[--w->free_count] : used;
    entry_write(&w->entry[index], c);
    if (index == used)
        atomic_store_explicit(&w->header->used, used + 1, memory_order_release);
    return (int)index;
}

void will_forget(struct will *w, uint32_t index)
{
    static const struct port_connection none;
    entry_write(&w->entry[index], &none);
    w->free[w->free_count++] = (uint16_t)index;
}

static bool address_valid(const struct net_addr *a)
{
    static const struct net_addr none;
    bool v4 = net_addr_is_v4(a);
    if (v4)
        return a->b[12] != 0 && a->b[12] < 224;
    return memcmp(a, &none, sizeof(none)) != 0 && a->b[0] != 0xff;
}

bool will_valid(const struct port_connection *c, uint32_t slot)
{
    return c->local_id != 0 && port_udp_id_slot(c->local_id) == slot &&
           c->remote_qpn < QPN_MULTICAST && c->path.rate == 0 && address_valid(&c->path.local) &&
           address_valid(&c->path.remote) &&
           net_addr_is_v4(&c->path.local) == net_addr_is_v4(&c->path.remote);
}

int will_read_header(const uint8_t bytes[WILL_ENTRY_BYTES], uint32_t slot)
{
    struct will_header h;
    memcpy(&h, bytes, sizeof(h));
    if (h.magic != WILL_MAGIC || h.slot != slot || h.used > WILL_MAX_CONNECTIONS)
        return -EINVAL;
    return h.served != 0 ? -EALREADY : (int)h.used;
}

bool will_read_entry(const uint8_t bytes[WILL_ENTRY_BYTES], uint32_t slot,
                     struct port_connection *out)
{
    struct will_entry e;
    memcpy(&e, bytes, sizeof(e));
    if (e.sequence == 0 || (e.sequence & 1) != 0 || !will_valid(&e.connection, slot))
        return false;
    *out = e.connection;
    return true;
}
