/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet.c: see packet.h. The last packet given back is the first to be taken: it is in the cache.
 */
#include "fabric/packet.h"

#include <errno.h>
#include <stdlib.h>

int packet_pool_init(struct packet_pool *pool, uint32_t capacity)
{
    *pool = (struct packet_pool){.capacity = capacity, .free = PACKET_NONE};
    pool->packet =
        aligned_alloc(_Alignof(struct packet), (capacity + (size_t)1) * sizeof(*pool->packet));
    return pool->packet != NULL ? 0 : -ENOMEM;
}

void packet_pool_fini(struct packet_pool *pool)
{
    free(pool->packet);
    pool->packet = NULL;
}

uint32_t packet_take(struct packet_pool *pool)
{
    uint32_t p = pool->free;
    if (p != PACKET_NONE)
        pool->free = pool->packet[p].next;
    else if (pool->fresh < pool->capacity)
        p = pool->fresh++;
    else
        return PACKET_NONE;
    pool->in_use++;
    return p;
}

void packet_give(struct packet_pool *pool, uint32_t p)
{
    pool->packet[p].next = pool->free;
    pool->free = p;
    pool->in_use--;
}
