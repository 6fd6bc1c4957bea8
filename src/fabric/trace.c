/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.c: what happens, in a buffer of whoever wants to know. Callers look at the mask of kinds
 * first. What a trace costs is written down here and copied to a file later, so an event is made
 * once, where it is to be, as short as can be, and one that is not wanted not at all: two words
 * with the time since the event before it, or three where something is too large for that.
 */
#include "fabric/fabric_priv.h"

/* Of two: time, kind and so on from these bits on; then flow, value, seq. */
enum { S_KIND = 21, S_FRAME = 25, S_PRIORITY = 28, S_PORT = 32, S_BYTES = 48, S_BITS = 63 };
enum { S_VALUE = 17, S_SEQ = 40 };
/* Of three: the time and the kind, and a bit that says so; flow and so on; seq and value. */
enum { L_KIND = 58, L_LONG = 63 };
enum { L_PORT = 23, L_BYTES = 42, L_FRAME = 57, L_PRIORITY = 60 };
enum { L_VALUE = 32 };
enum {
    FLOW_NONE = (1 << L_PORT) - 1,
    PORT_MASK = (1 << (L_BYTES - L_PORT)) - 1,
    BYTES_MASK = (1 << (L_FRAME - L_BYTES)) - 1,
    FRAME_NONE = (1 << (L_PRIORITY - L_FRAME)) - 1,
};
_Static_assert(SCHED_MAX_PS < UINT64_C(1) << L_KIND, "time has room");
_Static_assert(FABRIC_TRACE_ANEW > SCHED_MAX_PS + (UINT64_C(1) << S_KIND), "and there is one none");
_Static_assert(FABRIC_TRACE_KINDS <= 1 << (L_LONG - L_KIND), "and kinds");
_Static_assert(FABRIC_TRACE_KINDS <= 1 << (S_FRAME - S_KIND), "in two words too");
_Static_assert(FABRIC_PRIORITIES < 1 << (S_PORT - S_PRIORITY), "and priorities");
_Static_assert((int)FABRIC_MAX_FLOWS <= (int)FLOW_NONE, "and flows");
_Static_assert(2 * (int)FABRIC_MAX_LINKS - 1 <= (int)PORT_MASK, "and ports");
_Static_assert(2 * (int)FABRIC_MAX_FRAME_BYTES - 1 <= (int)BYTES_MASK &&
                   (int)BYTES_MASK < 1 << (S_BITS - S_BYTES),
               "and what is around a frame");
_Static_assert((int)PACKET_PFC < (int)FRAME_NONE && (int)FRAME_NONE < 1 << (S_PRIORITY - S_FRAME),
               "and kinds of frames");

static bool has(const uint64_t *bits, uint32_t i)
{
    return (bits[i / 64] >> (i % 64) & 1) != 0;
}

static bool wanted(const struct fabric_tracer *t, uint32_t port, uint32_t flow, unsigned priority)
{
    return (t->priorities >> priority & 1) != 0 && (t->port == NULL || has(t->port, port)) &&
           (t->flow == NULL || (flow != FLOW_NONE && has(t->flow, flow)));
}

/* What of an event is always the same, and `how`: seq, and the value from L_VALUE on. */
struct about {
    uint64_t port, bytes, frame, priority, flow;
};

/* With three words, whatever it is. */
static void put(struct fabric *f, uint64_t kind, const struct about *a, uint64_t how)
{
    struct fabric_tracer *t = f->config.tracer;
    uint64_t *w = t->next;
    if (t->selective && !wanted(t, (uint32_t)a->port, (uint32_t)a->flow, (unsigned)a->priority))
        return;
    w[0] = f->sched.now_ps | kind << L_KIND | UINT64_C(1) << L_LONG;
    w[1] = a->flow | a->port << L_PORT | a->bytes << L_BYTES | a->frame << L_FRAME |
           a->priority << L_PRIORITY;
    w[2] = how;
    t->last_ps = t->selective ? FABRIC_TRACE_ANEW : f->sched.now_ps;
    t->longs++;
    t->next = w + 3;
    if (t->next >= t->enough)
        t->full(t->arg);
}

/* Of a PFC frame all fields are others. */
__attribute__((noinline)) static void put_packet(struct fabric *f, enum fabric_trace_kind kind,
                                                 uint32_t port, uint32_t packet, uint32_t value)
{
    const struct packet *k = &f->pool.packet[packet];
    bool pfc = k->kind == PACKET_PFC;
    struct about a = {port, k->bytes, k->kind, pfc ? FABRIC_PRIORITIES : k->priority,
                      pfc ? FLOW_NONE : k->flow};
    put(f, kind, &a, (uint64_t)value << L_VALUE | (pfc ? 0 : (uint32_t)k->seq));
}

/* Nearly all that there is takes two words, unless a filter has to look at it. */
void trace_packet(struct fabric *f, enum fabric_trace_kind kind, uint32_t port, uint32_t packet,
                  uint32_t value)
{
    const struct packet *k = &f->pool.packet[packet];
    struct fabric_tracer *t = f->config.tracer;
    uint64_t now = f->sched.now_ps, since = now - t->last_ps, *w = t->next;
    if ((since >> S_KIND | port >> (S_BYTES - S_PORT) | k->flow >> S_VALUE |
         value >> (S_SEQ - S_VALUE) | (uint32_t)k->seq >> (64 - S_SEQ)) != 0 ||
        k->kind == PACKET_PFC) {
        put_packet(f, kind, port, packet, value);
        return;
    }
    w[0] = since | (uint64_t)kind << S_KIND | (uint64_t)k->kind << S_FRAME |
           (uint64_t)k->priority << S_PRIORITY | (uint64_t)port << S_PORT |
           (uint64_t)k->bytes << S_BYTES;
    w[1] = k->flow | (uint64_t)value << S_VALUE | k->seq << S_SEQ;
    t->last_ps = now;
    t->next = w + 2;
    if (t->next >= t->enough)
        t->full(t->arg);
}

void trace_other(struct fabric *f, enum fabric_trace_kind kind, uint32_t port, uint32_t flow,
                 unsigned priority, uint32_t value)
{
    struct about a = {port, 0, FRAME_NONE, priority, flow & FLOW_NONE};
    put(f, kind, &a, (uint64_t)value << L_VALUE);
}

static struct fabric_trace event_of(const struct about *a, uint64_t time_ps, uint64_t kind,
                                    uint64_t seq, uint64_t value)
{
    return (struct fabric_trace){
        .time_ps = time_ps,
        .node = FABRIC_TRACE_NONE,
        .port = (uint32_t)a->port,
        .flow = a->flow == FLOW_NONE ? FABRIC_TRACE_NONE : (uint32_t)a->flow,
        .seq = (uint32_t)seq,
        .value = (uint32_t)value,
        .bytes = (uint16_t)a->bytes,
        .kind = (uint8_t)kind,
        .priority = a->priority & 15,
        .frame = a->frame == FRAME_NONE ? FABRIC_TRACE_NO_FRAME : a->frame & 15,
    };
}

/* Of `word` the bits from `from` on, below `to`. */
static uint64_t bits(uint64_t word, int from, int to)
{
    return word >> from & (UINT64_MAX >> (64 - (to - from)));
}

unsigned fabric_trace_read(const uint64_t *w, uint32_t left, uint64_t *now_ps,
                           struct fabric_trace *out)
{
    if (left < 2 || w[0] == 0)
        return 0;
    if (w[0] >> L_LONG == 0) {
        struct about a = {bits(w[0], S_PORT, S_BYTES), bits(w[0], S_BYTES, S_BITS),
                          bits(w[0], S_FRAME, S_PRIORITY), bits(w[0], S_PRIORITY, S_PORT),
                          bits(w[1], 0, S_VALUE)};
        if (*now_ps == FABRIC_TRACE_ANEW)
            return 0;
        *now_ps += bits(w[0], 0, S_KIND);
        *out = event_of(&a, *now_ps, bits(w[0], S_KIND, S_FRAME), bits(w[1], S_SEQ, 64),
                        bits(w[1], S_VALUE, S_SEQ));
        return 2;
    }
    if (left < 3)
        return 0;
    struct about a = {bits(w[1], L_PORT, L_BYTES), bits(w[1], L_BYTES, L_FRAME),
                      bits(w[1], L_FRAME, L_PRIORITY), bits(w[1], L_PRIORITY, 64),
                      bits(w[1], 0, L_PORT)};
    *now_ps = bits(w[0], 0, L_KIND);
    *out = event_of(&a, *now_ps, bits(w[0], L_KIND, L_LONG), bits(w[2], 0, L_VALUE),
                    bits(w[2], L_VALUE, 64));
    return 3;
}
