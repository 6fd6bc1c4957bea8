/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * buffer.c: the shared memory of a switch. Of each lossless priority that came in by a port, the
 * reserve counts first, then the shared part up to alpha times what is free of it; what comes
 * beyond is headroom, and its sender is paused. Lossy queues take alpha times what is free and drop
 * the rest.
 */
#include <assert.h>

#include "fabric/fabric_priv.h"

/*
 * What may still come after a pause was decided: the frame that holds up the PFC frame, that
 * frame, both ways of the link, the response time, and the frame that had just begun. UINT32_MAX
 * stands for more, which no buffer has.
 */
static uint32_t headroom(const struct fabric *f, const struct port *p)
{
    const struct fabric_switches *c = &f->config.switches;
    assert(p->byte_time != 0); /* topology_sane knows no rate that high */
    uint64_t wire = p->delay_ps * (UINT64_C(1) << 20) / p->byte_time; /* bytes a delay long */
    if (c->headroom_bytes != 0)
        return c->headroom_bytes;
    uint32_t frame =
        f->config.hosts.payload_bytes + f->config.hosts.header_bytes + f->config.gap_bytes;
    uint64_t bytes = 2 * wire + 2 * frame + f->config.pfc_bytes + f->config.gap_bytes +
                     (uint64_t)c->response_quanta * FABRIC_QUANTUM_BYTES;
    if (c->headroom_delays != 0)
        bytes = c->headroom_delays * wire;
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

uint64_t buffer_init(struct fabric *f, struct switch_state *s)
{
    const struct fabric_switches *c = &f->config.switches;
    const struct node *n = &f->node[s->node];
    uint64_t slowest = 0, taken = 0;
    uint32_t classes = (uint32_t)__builtin_popcount(c->lossless);
    if (c->headroom_delays != 0)
        classes = 1;
    for (uint32_t i = 0; i < n->ports; i++)
        if (f->port[n->first_port + i].byte_time > slowest)
            slowest = f->port[n->first_port + i].byte_time;
    for (uint32_t i = 0; i < n->ports; i++) {
        struct port *p = &f->port[n->first_port + i];
        p->headroom_bytes = headroom(f, p);
        p->alpha_num = c->alpha_num;
        for (uint64_t t = slowest; c->alpha_by_rate && t / 2 >= p->byte_time; t /= 2)
            p->alpha_num *= 2;
        taken += (uint64_t)classes * p->headroom_bytes + c->reserve_bytes;
    }
    s->shared_bytes = c->buffer_bytes > taken ? c->buffer_bytes - taken : 0;
    return taken;
}

uint64_t buffer_threshold(const struct fabric *f, const struct switch_state *s,
                          const struct port *p)
{
    return (s->shared_bytes - s->used_bytes) * p->alpha_num / f->config.switches.alpha_den;
}

/* What a port holds of a priority beyond its reserve. */
static uint32_t beyond(const struct fabric *f, uint32_t bytes)
{
    uint32_t reserve = f->config.switches.reserve_bytes;
    return bytes > reserve ? bytes - reserve : 0;
}

static bool admit_lossless(struct fabric *f, struct switch_state *s, struct packet *p)
{
    struct port *in = &f->port[p->ingress];
    unsigned i = p->priority;
    uint32_t before = beyond(f, in->in_bytes[i]), after = beyond(f, in->in_bytes[i] + p->bytes);
    bool ok = true, over = after > buffer_threshold(f, s, in);
    if (!over && after - before <= s->shared_bytes - s->used_bytes) {
        in->in_bytes[i] += p->bytes;
        s->used_bytes += after - before;
        over = after > 0 && after >= buffer_threshold(f, s, in); /* it is smaller by now */
    } else {
        ok = in->in_headroom[i] + p->bytes <= in->headroom_bytes;
        in->in_headroom[i] += ok ? p->bytes : 0;
        /* What is here resumes the peer when it leaves. */
        over = in->in_headroom[i] + in->in_bytes[i] > 0;
    }
    if (over && (in->stopped >> i & 1) == 0)
        pause_peer(f, p->ingress, i);
    return ok;
}

bool buffer_admit(struct fabric *f, struct switch_state *s, uint32_t egress, struct packet *p)
{
    const struct fabric_switches *c = &f->config.switches;
    uint8_t bit = (uint8_t)(1u << p->priority);
    if ((c->control & bit) != 0)
        return true;
    if ((c->lossless & bit) != 0) {
        bool ok = admit_lossless(f, s, p);
        f->totals.drops_headroom += !ok;
        return ok;
    }
    const struct port *out = &f->port[egress];
    uint64_t wanted = out->queue[p->priority].bytes + (uint64_t)p->bytes;
    if (wanted > buffer_threshold(f, s, out) || p->bytes > s->shared_bytes - s->used_bytes) {
        f->totals.drops_threshold++;
        return false;
    }
    s->used_bytes += p->bytes;
    return true;
}

void buffer_release(struct fabric *f, struct switch_state *s, struct packet *p)
{
    const struct fabric_switches *c = &f->config.switches;
    uint8_t bit = (uint8_t)(1u << p->priority);
    if ((c->control & bit) != 0)
        return;
    if ((c->lossless & bit) == 0) {
        s->used_bytes -= p->bytes;
        return;
    }
    struct port *in = &f->port[p->ingress];
    unsigned i = p->priority;
    uint32_t from_headroom = in->in_headroom[i] < p->bytes ? in->in_headroom[i] : p->bytes;
    uint32_t rest = p->bytes - from_headroom, before = beyond(f, in->in_bytes[i]);
    in->in_headroom[i] -= from_headroom;
    assert(in->in_bytes[i] >= rest);
    in->in_bytes[i] -= rest;
    uint32_t after = beyond(f, in->in_bytes[i]);
    s->used_bytes -= before - after;
    if ((in->stopped & bit) != 0 && in->in_headroom[i] == 0 &&
        (after == 0 || after + c->xon_offset_bytes <= buffer_threshold(f, s, in)))
        pause_resume_peer(f, p->ingress, i);
}
