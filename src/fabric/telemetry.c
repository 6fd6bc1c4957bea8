/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * telemetry.c: in-band network telemetry (INT): each switch on the way of a data frame writes into
 * it what its port has sent and has waiting. It stands beside the packets, and is there only if
 * somebody's congestion control asks for it.
 */
#include <errno.h>
#include <stdlib.h>

#include "fabric/fabric_priv.h"

bool telemetry_wanted(const struct fabric_config *c)
{
    struct cc_params p;
    return c->hosts.cc != NULL && cc_params_named(&p, c->hosts.cc, 1) && cc_wants_path(&p);
}

/* Of a full frame and its ACK: HPCC wants one T that is long enough for all. */
static uint64_t longest_rtt_ps(const struct fabric *f)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < f->flow_count; i++) {
        uint64_t rtt = route_ideal_ps(f, i, f->config.hosts.payload_bytes);
        if (rtt > most)
            most = rtt;
    }
    return most != 0 ? most : 10 * FABRIC_US; /* ways too long to be told */
}

int telemetry_create(struct fabric *f)
{
    struct telemetry *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return -ENOMEM;
    f->telemetry = t;
    t->packet = malloc((f->pool.capacity + (size_t)1) * sizeof(*t->packet));
    t->flow = calloc(f->flow_count + (size_t)1, sizeof(*t->flow));
    t->sent_bytes = calloc(f->ports + (size_t)1, sizeof(*t->sent_bytes));
    t->base_rtt_ps = longest_rtt_ps(f);
    return t->packet != NULL && t->flow != NULL && t->sent_bytes != NULL ? 0 : -ENOMEM;
}

void telemetry_free(struct fabric *f)
{
    if (f->telemetry == NULL)
        return;
    free(f->telemetry->packet);
    free(f->telemetry->flow);
    free(f->telemetry->sent_bytes);
    free(f->telemetry);
}

void telemetry_write(struct fabric *f, const struct port *p, uint32_t packet)
{
    const struct packet *k = &f->pool.packet[packet];
    struct cc_path *path = &f->telemetry->packet[packet];
    uint32_t port = (uint32_t)(p - f->port), queue = 0;
    uint64_t *sent = &f->telemetry->sent_bytes[port];
    if (k->kind == PACKET_DATA && path->hops < CC_MAX_HOPS) {
        for (unsigned i = 0; i < FABRIC_PRIORITIES; i++)
            queue += p->queue[i].bytes;
        path->id = hash_mix((uint64_t)path->id << 32 | port);
        path->hop[path->hops++] = (struct cc_hop){
            .time_ps = f->sched.now_ps,
            .tx_bytes = *sent,
            .queue_bytes = queue,
            .rate_mbps = (uint32_t)(f->topology.link[p->link].rate_bps / 1000000),
        };
    }
    uint32_t bytes = k->bytes > f->config.min_frame_bytes ? k->bytes : f->config.min_frame_bytes;
    *sent += bytes + f->config.gap_bytes;
}
