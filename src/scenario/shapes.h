/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shapes.h: topologies that have a name. Hosts come first, h0 on; then switches, s0 on.
 */
#ifndef SCENARIO_SHAPES_H
#define SCENARIO_SHAPES_H

#include "scenario/scenario.h"

enum shape {
    SHAPE_STAR,        /* hosts around one switch */
    SHAPE_DUMBBELL,    /* two switches, half of the hosts at each */
    SHAPE_RING,        /* switches in a ring, hosts at each */
    SHAPE_PARKING_LOT, /* switches in a row, hosts at each */
    SHAPE_LEAF_SPINE,  /* every leaf linked to every spine, hosts at leaves */
    SHAPE_FAT_TREE,    /* k pods of k switches; k^3 / 4 hosts */
    SHAPES
};

struct shape_size {
    uint32_t hosts;    /* star, dumbbell: in all; ring, parking lot, leaf-spine: at each switch */
    uint32_t switches; /* ring, parking lot; leaves */
    uint32_t spines;
    uint32_t k;                    /* fat tree: even */
    struct fabric_link host_link;  /* node unused */
    struct fabric_link inner_link; /* between switches */
};

/* false: no memory, or more nodes or links than a fabric may have. */
bool shape_build(struct scenario *s, enum shape shape, const struct shape_size *size);

#endif
