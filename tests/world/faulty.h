/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faulty.h: the network of a small world with two devices: packets are lost, copied, late and
 * spoiled until it is told to be good. Time goes by moments.
 */
#ifndef TESTS_WORLD_FAULTY_H
#define TESTS_WORLD_FAULTY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "verbena/port.h"

enum { FAULTY_FLIGHTS = 8192, FAULTY_MTU = 256 };
static const uint64_t faulty_moment_ns = 1000;

static const struct net_addr faulty_address[2] = {
    {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}},
    {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}},
};

struct faulty_flight {
    struct rx_packet p;
    int to;
    uint64_t at_ns;
    uint8_t payload[FAULTY_MTU];
};

struct faulty {
    struct rng rng;
    struct faulty_flight *flight;
    unsigned flights;
    uint64_t now_ns;
    bool good;
};

static inline void faulty_begin(struct faulty *f, uint64_t seed)
{
    *f = (struct faulty){.now_ns = faulty_moment_ns};
    rng_init(&f->rng, seed);
    f->flight = calloc(FAULTY_FLIGHTS, sizeof(*f->flight));
    assert_non_null(f->flight);
}

static inline bool faulty_chance(struct faulty *f, uint32_t percent)
{
    return rng_below(&f->rng, 100) < percent;
}

static inline void faulty_packet(struct faulty *f, int to, const struct train *t,
                                 const struct train_packet *k)
{
    unsigned copies = f->good ? 1 : faulty_chance(f, 5) ? 0 : faulty_chance(f, 8) ? 2 : 1;
    for (unsigned c = 0; c < copies; c++) {
        assert_in_range(f->flights, 0, FAULTY_FLIGHTS - 1);
        struct faulty_flight *w = &f->flight[f->flights++];
        uint32_t n = 0;
        for (unsigned i = 0; i < k->spans; i++) {
            const struct span *s = &t->span[k->first_span + i];
            memcpy(w->payload + n, s->addr, s->bytes);
            n += s->bytes;
        }
        assert_int_equal(n, k->payload_bytes);
        w->to = to;
        uint64_t late = f->good || faulty_chance(f, 88) ? 0 : rng_below(&f->rng, 25);
        w->at_ns = f->now_ns + faulty_moment_ns * (1 + late);
        w->p = (struct rx_packet){
            .h = k->h,
            .payload = w->payload,
            .payload_bytes = n,
            .src = t->path->local,
            .dst = t->path->remote,
            .icrc_ok = f->good || !faulty_chance(f, 1),
        };
    }
}

static inline void faulty_train(struct faulty *f, int to, const struct train *t)
{
    for (unsigned i = 0; i < t->packets; i++)
        faulty_packet(f, to, t, &t->packet[i]);
}

/* What has come by the next moment, one by one, in the order in which it was sent. */
static inline void faulty_moment(struct faulty *f,
                                 void (*arrives)(int to, const struct rx_packet *))
{
    unsigned kept = 0;
    f->now_ns += faulty_moment_ns;
    for (unsigned i = 0; i < f->flights; i++) {
        struct faulty_flight *w = &f->flight[i];
        if (w->at_ns <= f->now_ns) {
            w->p.payload = w->payload;
            arrives(w->to, &w->p);
            continue;
        }
        if (kept != i)
            f->flight[kept] = *w;
        kept++;
    }
    f->flights = kept;
}

#endif
