/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.c: what happens, in a buffer of whoever wants to know. Callers look at the mask of kinds
 * first. What a trace costs is written down here and copied to a file later: a record is made once,
 * where it is to be, as short as can be (24 bytes), and one that is not wanted not at all.
 */
#include "fabric/fabric_priv.h"

/* when: the time, and from here on the kind. */
enum { KIND_SHIFT = 58 };
/* what: the flow, and from these on the rest. */
enum { PORT_SHIFT = 23, BYTES_SHIFT = 42, FRAME_SHIFT = 57, PRIORITY_SHIFT = 60 };
/* how: seq, and from here on the value. */
enum { VALUE_SHIFT = 32 };
enum {
    FLOW_NONE = (1 << PORT_SHIFT) - 1,
    PORT_MASK = (1 << (BYTES_SHIFT - PORT_SHIFT)) - 1,
    BYTES_MASK = (1 << (FRAME_SHIFT - BYTES_SHIFT)) - 1,
    FRAME_NONE = (1 << (PRIORITY_SHIFT - FRAME_SHIFT)) - 1,
};
_Static_assert(SCHED_MAX_PS < UINT64_C(1) << KIND_SHIFT, "time has room");
_Static_assert(FABRIC_TRACE_KINDS <= 1 << (64 - KIND_SHIFT), "and kinds");
_Static_assert((int)FABRIC_MAX_FLOWS <= (int)FLOW_NONE, "and flows");
_Static_assert(2 * (int)FABRIC_MAX_LINKS - 1 <= (int)PORT_MASK, "and ports");
_Static_assert(2 * (int)FABRIC_MAX_FRAME_BYTES - 1 <= (int)BYTES_MASK,
               "and what is around a frame");
_Static_assert((int)PACKET_PFC < (int)FRAME_NONE, "and kinds of frames");

static bool has(const uint64_t *bits, uint32_t i)
{
    return (bits[i / 64] >> (i % 64) & 1) != 0;
}

static bool wanted(const struct fabric_tracer *t, uint64_t what)
{
    uint32_t flow = (uint32_t)what & FLOW_NONE;
    return (t->priorities >> (what >> PRIORITY_SHIFT & 15) & 1) != 0 &&
           (t->port == NULL || has(t->port, (uint32_t)(what >> PORT_SHIFT) & PORT_MASK)) &&
           (t->flow == NULL || (flow != FLOW_NONE && has(t->flow, flow)));
}

static inline void put(struct fabric *f, enum fabric_trace_kind kind, uint64_t what, uint64_t how)
{
    struct fabric_tracer *t = f->config.tracer;
    if (t->selective && !wanted(t, what))
        return;
    uint32_t at = t->count;
    struct fabric_record *r = &t->record[at];
    r->when = f->sched.now_ps | (uint64_t)kind << KIND_SHIFT;
    r->what = what;
    r->how = how;
    t->count = at + 1;
    if (at + 1 == t->room)
        t->full(t->arg);
}

void trace_packet(struct fabric *f, enum fabric_trace_kind kind, uint32_t port, uint32_t packet,
                  uint32_t value)
{
    const struct packet *k = &f->pool.packet[packet];
    uint64_t how = (uint64_t)value << VALUE_SHIFT;
    uint64_t what = (uint64_t)port << PORT_SHIFT | (uint64_t)k->bytes << BYTES_SHIFT |
                    (uint64_t)k->kind << FRAME_SHIFT;
    if (k->kind == PACKET_PFC) { /* its fields are others */
        what |= FLOW_NONE | (uint64_t)FABRIC_PRIORITIES << PRIORITY_SHIFT;
    } else {
        what |= k->flow | (uint64_t)k->priority << PRIORITY_SHIFT;
        how |= (uint32_t)k->seq;
    }
    put(f, kind, what, how);
}

void trace_other(struct fabric *f, enum fabric_trace_kind kind, uint32_t port, uint32_t flow,
                 unsigned priority, uint32_t value)
{
    uint64_t what = (uint64_t)port << PORT_SHIFT | (uint64_t)FRAME_NONE << FRAME_SHIFT;
    what |= (flow & FLOW_NONE) | (uint64_t)priority << PRIORITY_SHIFT;
    put(f, kind, what, (uint64_t)value << VALUE_SHIFT);
}

void fabric_record_read(const struct fabric_record *r, struct fabric_trace *out)
{
    uint32_t flow = (uint32_t)r->what & FLOW_NONE, frame = r->what >> FRAME_SHIFT & FRAME_NONE;
    *out = (struct fabric_trace){
        .time_ps = r->when & ((UINT64_C(1) << KIND_SHIFT) - 1),
        .node = FABRIC_TRACE_NONE,
        .port = (uint32_t)(r->what >> PORT_SHIFT) & PORT_MASK,
        .flow = flow == FLOW_NONE ? FABRIC_TRACE_NONE : flow,
        .seq = (uint32_t)r->how,
        .value = (uint32_t)(r->how >> VALUE_SHIFT),
        .bytes = (uint16_t)(r->what >> BYTES_SHIFT & BYTES_MASK),
        .kind = (uint8_t)(r->when >> KIND_SHIFT),
        .priority = r->what >> PRIORITY_SHIFT & 15,
        .frame = frame == FRAME_NONE ? FABRIC_TRACE_NO_FRAME : frame & 15,
    };
}
