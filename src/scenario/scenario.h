/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario.h: a description of a fabric and its work: read from YAML, or from the topology and flow
 * files of the public ns-3 HPCC simulator, checked, and handed to src/fabric.
 */
#ifndef SCENARIO_SCENARIO_H
#define SCENARIO_SCENARIO_H

#include <stdio.h>

#include "fabric/fabric.h"

enum { SCENARIO_ERROR_BYTES = 512, SCENARIO_NAME_BYTES = 24, SCENARIO_MAX_SETS = 64 };
/* Of each time that is said, so that no sum of them is beyond what the fabric can count to. */
#define SCENARIO_MAX_TIME_PS (3600 * 1000 * FABRIC_MS)

struct scenario {
    char *title;
    char *text; /* the whole as YAML, defaults and --set included: read again it is the same */
    bool hpcc_compat; /* what is not said is as that profile has it */
    char *cc;         /* what config.hosts.cc points to, if it is not a constant */
    struct fabric_config config;
    struct fabric_topology topology;
    uint8_t *is_switch; /* these are what topology and config point to */
    struct fabric_link *link;
    struct fabric_flow *flow;
    struct fabric_mapping *mapping;
    struct fabric_fault *fault;
    char (*name)[SCENARIO_NAME_BYTES]; /* of each node */
    uint32_t flows, flow_capacity, link_capacity, node_capacity;
    uint32_t groups;
    /* Where things stand in their files, for messages about the whole; 0: nowhere. */
    unsigned line; /* that is being read: of what is added now */
    unsigned topology_line, buffer_line;
    uint32_t *node_line, *link_line, *flow_line;
    uint32_t node_line_capacity, link_line_capacity, flow_line_capacity;
    char *path; /* of the scenario's file, or of that with the flows; NULL: there is none */
    char *topology_path; /* NULL: the same file */
};

/* One --set: "switches.buffer=4MiB". */
struct scenario_set {
    const char *text;
    bool used;
};

/* Whether it came from the file of this path. */
bool scenario_reads(const struct scenario *s, const char *path);

/* What was wrong: "FILE:LINE: FIELD: ...", in words for whoever wrote the file. */
struct scenario_error {
    char text[SCENARIO_ERROR_BYTES];
};

/* All zero but for the defaults. */
void scenario_init(struct scenario *s);
void scenario_free(struct scenario *s);
/* Room for one more, added with these values; false: no memory, or too many. */
bool scenario_add_node(struct scenario *s, bool is_switch, const char *name);
bool scenario_add_link(struct scenario *s, const struct fabric_link *link);
bool scenario_add_flow(struct scenario *s, const struct fabric_flow *flow);
/* The node of this name; UINT32_MAX: none. */
uint32_t scenario_find_node(const struct scenario *s, const char *name);

/* false and *error. */
bool scenario_read_yaml(struct scenario *s, const char *path, struct scenario_set *sets,
                        unsigned set_count, struct scenario_error *error);
/* The same of what such a file would have; path is for messages. */
bool scenario_read_text(struct scenario *s, const char *path, const char *text,
                        struct scenario_set *sets, unsigned set_count,
                        struct scenario_error *error);
bool scenario_import_topology(struct scenario *s, const char *path, struct scenario_error *error);
bool scenario_import_flows(struct scenario *s, const char *path, struct scenario_error *error);
/* After both, and all that is set in s->config: makes s->text. */
bool scenario_import_end(struct scenario *s, struct scenario_error *error);
/* As that simulator has it: the hpcc-compat profile. */
void scenario_hpcc_compat(struct fabric_config *config);
/* What no single field shows: hosts without a link, buffers too small, flows without a way. *out is
 * the fabric, made. */
bool scenario_make(struct scenario *s, const char *path, struct fabric **out,
                   struct scenario_error *error);
/* What is allowed but probably not meant, a line each: as ECN that marks after PFC has paused. */
void scenario_warn(const struct scenario *s, const struct fabric *f, FILE *out);

#endif
