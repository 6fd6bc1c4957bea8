/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kinds.c: see kinds.h.
 */
#include "scenario/kinds.h"

#include <stddef.h>

#include "fabric/fabric.h"
#include "scenario/shapes.h"

#define LINK   " rate delay mtu"
#define UPLINK LINK " uplink_rate uplink_delay"

const struct kind kinds_shape[] = {
    [SHAPE_STAR] = {"star",        "shape hosts" LINK                     },
    [SHAPE_DUMBBELL] = {"dumbbell",    "shape hosts" UPLINK                   },
    [SHAPE_RING] = {"ring",        "shape switches hosts" UPLINK          },
    [SHAPE_PARKING_LOT] = {"parking-lot", "shape switches hosts" UPLINK          },
    [SHAPE_LEAF_SPINE] = {"leaf-spine",  "shape leaves spines hosts" UPLINK     },
    [SHAPE_FAT_TREE] = {"fat-tree",    "shape k" UPLINK                       },
    [SHAPES] = {"graph",       "shape hosts switches nodes links" LINK},
    {NULL,          NULL                                   },
};

#define ANY    " start priority connections"
#define ROUNDS " bytes rounds compute" ANY
#define WORK   ROUNDS " " KINDS_VERB_FIELDS

const struct kind kinds_op[] = {
    [OP_FLOW] = {"flow",        "op from to" WORK                                 },
    [OP_INCAST] = {"incast",      "op to senders" WORK                              },
    [OP_PERMUTATION] = {"permutation", "op shift" WORK                                   },
    [OP_ALL_TO_ALL] = {"all-to-all",  "op" WORK                                         },
    [OP_ALLREDUCE] = {"allreduce",   "op" WORK                                         },
 /* It reads and writes by itself. */
    [OP_STORAGE] = {"storage",     "op servers reads message rkey" ROUNDS            },
    [OP_POISSON] = {"poisson",     "op sizes load duration" ANY " " KINDS_VERB_FIELDS},
    {NULL,          NULL                                              },
};

const struct kind kinds_verb[] = {
    [FABRIC_WRITE] = {"write",     "verb message rkey"                      },
    [FABRIC_WRITE_IMM] = {"write-imm", "verb message rkey receives receive_time"},
    [FABRIC_SEND] = {"send",      "verb message receives receive_time"     },
    [FABRIC_READ] = {"read",      "verb message rkey"                      },
    [FABRIC_FETCH_ADD] = {"fetch-add", "verb rkey"                              },
    [FABRIC_CMP_SWAP] = {"cmp-swap",  "verb rkey"                              },
    {NULL,        NULL                                     },
};

const struct kind kinds_fault[] = {
    [FAULT_DOWN] = {"link-down",    "fault a b at"                  },
    [FAULT_UP] = {"link-up",      "fault a b at"                  },
    [FAULT_MTU] = {"link-mtu",     "fault a b mtu"                 },
    [FAULT_LOSS] = {"link-loss",    "fault a b loss"                },
    [FAULT_CORRUPT] = {"link-corrupt", "fault a b corrupt"             },
    [FAULT_MAPPING] = {"mapping",      "fault switch dscp pcp priority"},
    {NULL,           NULL                            },
};

#define HOSTS "nic payload window timeout cnp_priority cnp_interval cc vlan"

const struct kind kinds_nic[] = {
    [NIC_NONE] = {"none",   HOSTS " ack_priority recovery " KINDS_HPCC_FIELDS},
    [NIC_ENGINE] = {"engine", HOSTS " retry rnr_retry rnr_timer"               },
    {NULL,     NULL                                             },
};
