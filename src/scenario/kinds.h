/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kinds.h: which fields each kind of thing in a scenario takes: shapes of a topology, operations of
 * a workload, verbs, faults, hosts. What is of another kind is refused by these tables alone; what
 * another setting turns off, where it is read (scenario_yaml.c). A count that happens to be one, or
 * what merely nothing in a workload meets (no link fails, no message waits for a receive), is no
 * such setting: it stays, so that --set may vary it.
 */
#ifndef SCENARIO_KINDS_H
#define SCENARIO_KINDS_H

/* In the order of the enum that they stand for; behind the last a kind without a name. */
struct kind {
    const char *name;
    const char *fields; /* separated by spaces */
};

enum op { OP_FLOW, OP_INCAST, OP_PERMUTATION, OP_ALL_TO_ALL, OP_ALLREDUCE, OP_STORAGE, OP_POISSON };
enum fault { FAULT_DOWN, FAULT_UP, FAULT_MTU, FAULT_LOSS, FAULT_CORRUPT, FAULT_MAPPING };
enum nic { NIC_NONE, NIC_ENGINE };

extern const struct kind kinds_shape[]; /* enum shape, and SHAPES: a graph */
extern const struct kind kinds_op[];
extern const struct kind kinds_verb[]; /* enum fabric_verb; of KINDS_VERB_FIELDS only */
extern const struct kind kinds_fault[];
extern const struct kind kinds_nic[];

/* What only a NIC engine can do. */
#define KINDS_VERB_FIELDS "verb message receives receive_time rkey"
/* What only hpcc has. */
#define KINDS_HPCC_FIELDS "hpcc_eta hpcc_stages hpcc_parts"

#endif
