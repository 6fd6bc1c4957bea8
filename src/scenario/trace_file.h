/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace_file.h: what happened in a fabric as a file of bounded size, words of 64 bits, little
 * endian: a header, the nodes, then blocks of events as fabric/trace.h has them, each of which can
 * be read by itself; when there is no more room the oldest block makes way. The same run gives the
 * same bytes.
 */
#ifndef SCENARIO_TRACE_FILE_H
#define SCENARIO_TRACE_FILE_H

#include "scenario/output.h"

enum {
    TRACE_BLOCK_BYTES = 256 << 10, /* less if there is room for less than four */
    TRACE_RANGES = 16,             /* of each field of a filter */
};

/* Which events: each field's ranges, any if it has none. */
struct trace_filter {
    struct trace_ranges {
        unsigned count;
        uint32_t from[TRACE_RANGES], to[TRACE_RANGES];
    } node, port, priority, flow, kind;
};

/* How a filter finds a node by its name; UINT32_MAX: there is none. */
struct trace_names {
    uint32_t (*find)(const void *arg, const char *name);
    const void *arg;
    uint32_t nodes, ports,
        flows; /* how many there are, ports of the node with most; 0: not known */
};

/* "node=h0+s1,port=0-3,priority=3,kind=drop+mark,flow=7"; more than one text adds up. false and
 * *error. */
bool trace_filter_add(struct trace_filter *filter, const char *text,
                      const struct trace_names *names, struct scenario_error *error);
bool trace_filter_takes(const struct trace_filter *filter, const struct fabric_trace *e);
bool trace_ranges_take(const struct trace_ranges *r, uint32_t v);

/* A filter as struct fabric_tracer has it, for the ports and flows of a scenario; without its
 * kinds. */
struct trace_mask {
    uint16_t priorities;
    uint64_t *port, *flow; /* NULL: whichever */
};

/* How many each node has, to be freed; NULL: no memory. */
uint32_t *trace_ports_create(const struct fabric_topology *t);
/* Of the node with most; 0: no memory. */
uint32_t trace_ports_most(const struct fabric_topology *t);
/* false: no memory; nothing is left to free. */
bool trace_mask_make(struct trace_mask *m, const struct trace_filter *filter,
                     const struct scenario *s);
void trace_mask_free(struct trace_mask *m);
/* NULL: no such kind. */
const char *trace_kind_name(unsigned kind);
const char *trace_frame_name(unsigned frame);

/* Where blocks lie: the first behind the nodes, shorter than the others, so that these begin at
 * multiples of their size. A block: how many events were before it, the events, zeros. */
struct trace_ring {
    uint64_t base;   /* where the first begins */
    uint64_t blocks; /* at once */
    uint32_t block_bytes;
};

struct trace_writer {
    struct output out;
    int fd;                      /* of it */
    struct fabric_tracer tracer; /* what the fabric fills */
    uint64_t *block;             /* where: a word, then events */
    struct trace_mask mask;
    struct trace_ring ring;
    uint64_t full;     /* blocks that were written */
    uint64_t events;   /* that are in them */
    uint64_t reserved; /* room is asked for up to here */
    int error;         /* errno of the first write that failed */
};

/* Opens the file and sets the scenario's tracer; w stays where it is. bytes: of blocks at most, a
 * ring, four and more if they are 256 or more. A filter that names no kinds takes all but arrivals.
 * false and *error. */
bool trace_writer_open(struct trace_writer *w, const char *path, uint64_t bytes,
                       const struct trace_filter *filter, struct scenario *s,
                       struct scenario_error *error);
bool trace_writer_close(struct trace_writer *w, struct scenario_error *error);
/* There is no run: what was there stays. Nothing, if it is not open. */
void trace_writer_abandon(struct trace_writer *w);
/* Takes away the NAME.part of traces there whose runs were killed: what begins as a trace does, and
 * nobody writes. false: not all, and errno. */
bool trace_clear_left(const char *folder);

struct trace_reader {
    FILE *file;
    const char *path;
    uint64_t events, next; /* taken in all; the number of the next to be read */
    struct trace_ring ring;
    uint64_t full, block; /* blocks before the last; the next to be read */
    uint64_t *word;       /* of the block that is being read, */
    uint32_t count, at;   /* up to here; the next */
    uint32_t last_words;  /* of the last block */
    uint64_t now_ps;
    uint32_t nodes;
    char (*name)[SCENARIO_NAME_BYTES];
    uint32_t *first_port; /* of each node; behind them how many there are */
};

/* Events come from the oldest that is still there on. false and *error. */
bool trace_reader_open(struct trace_reader *r, const char *path, struct scenario_error *error);
/* 1, 0 at the end, -1 and *error. */
int trace_reader_next(struct trace_reader *r, struct fabric_trace *e, struct scenario_error *error);
void trace_reader_close(struct trace_reader *r);
uint32_t trace_reader_find(const void *reader, const char *name);

#endif
