/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shapes.c: see shapes.h.
 */
#include "scenario/shapes.h"

#include <inttypes.h>

static bool add_nodes(struct scenario *s, uint64_t hosts, uint64_t switches)
{
    char name[SCENARIO_NAME_BYTES];
    if (hosts + switches > FABRIC_MAX_NODES)
        return false;
    for (uint32_t i = 0; i < hosts + switches; i++) {
        bool is_switch = i >= hosts;
        snprintf(name, sizeof(name), "%c%" PRIu32, is_switch ? 's' : 'h',
                 is_switch ? i - (uint32_t)hosts : i);
        if (!scenario_add_node(s, is_switch, name))
            return false;
    }
    return true;
}

static bool join(struct scenario *s, const struct fabric_link *like, uint32_t a, uint32_t b)
{
    struct fabric_link link = *like;
    link.node[0] = a;
    link.node[1] = b;
    return scenario_add_link(s, &link);
}

/* Host i at switch i / per_switch, of switches behind all hosts. */
static bool join_hosts(struct scenario *s, const struct shape_size *z, uint32_t hosts,
                       uint32_t per_switch)
{
    for (uint32_t i = 0; i < hosts; i++)
        if (!join(s, &z->host_link, i, hosts + i / per_switch))
            return false;
    return true;
}

static bool row(struct scenario *s, const struct shape_size *z, bool closed)
{
    uint64_t hosts = (uint64_t)z->hosts * z->switches;
    if (!add_nodes(s, hosts, z->switches) || !join_hosts(s, z, (uint32_t)hosts, z->hosts))
        return false;
    uint32_t first = (uint32_t)hosts;
    for (uint32_t i = 0; i + 1 < z->switches; i++)
        if (!join(s, &z->inner_link, first + i, first + i + 1))
            return false;
    return !closed || join(s, &z->inner_link, first + z->switches - 1, first);
}

static bool leaf_spine(struct scenario *s, const struct shape_size *z)
{
    uint64_t hosts = (uint64_t)z->hosts * z->switches;
    if (!add_nodes(s, hosts, (uint64_t)z->switches + z->spines) ||
        !join_hosts(s, z, (uint32_t)hosts, z->hosts))
        return false;
    uint32_t leaf = (uint32_t)hosts, spine = leaf + z->switches;
    for (uint32_t i = 0; i < z->switches; i++)
        for (uint32_t j = 0; j < z->spines; j++)
            if (!join(s, &z->inner_link, leaf + i, spine + j))
                return false;
    return true;
}

/* Pods of k/2 edge and k/2 aggregation switches; aggregation switch j of each pod is linked to the
 * cores of row j. */
static bool fat_tree(struct scenario *s, const struct shape_size *z)
{
    uint64_t k = z->k, half = k / 2, hosts = k * half * half;
    if (hosts > FABRIC_MAX_NODES || !add_nodes(s, hosts, k * k + half * half) ||
        !join_hosts(s, z, (uint32_t)hosts, (uint32_t)half))
        return false;
    uint32_t h = (uint32_t)half, edge = (uint32_t)hosts, aggregation = edge + z->k * h;
    uint32_t core = aggregation + z->k * h;
    for (uint32_t pod = 0; pod < z->k; pod++)
        for (uint32_t j = 0; j < h; j++)
            for (uint32_t i = 0; i < h; i++)
                if (!join(s, &z->inner_link, edge + pod * h + i, aggregation + pod * h + j) ||
                    !join(s, &z->inner_link, aggregation + pod * h + j, core + j * h + i))
                    return false;
    return true;
}

bool shape_build(struct scenario *s, enum shape shape, const struct shape_size *size)
{
    struct shape_size z = *size;
    switch (shape) {
    case SHAPE_STAR:
        z.switches = 1;
        return row(s, &z, false);
    case SHAPE_DUMBBELL:
        z.switches = 2;
        z.hosts /= 2;
        return row(s, &z, false);
    case SHAPE_RING:
        return row(s, &z, true);
    case SHAPE_PARKING_LOT:
        return row(s, &z, false);
    case SHAPE_LEAF_SPINE:
        return leaf_spine(s, &z);
    default:
        return fat_tree(s, &z);
    }
}
