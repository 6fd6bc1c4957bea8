/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * workload.c: see workload.h. Chance is the scenario's generator, and logarithms are integers, so
 * that a seed means the same flows everywhere.
 */
#include "scenario/workload.h"

#include <stdlib.h>

struct point {
    uint64_t bytes;
    uint32_t permille; /* of flows are that large at most */
};

/* Sizes of flows as the literature has them (cumulative). */
static const struct point websearch[] = {
    {0,        0   },
    {10000,    150 },
    {20000,    200 },
    {30000,    300 },
    {50000,    400 },
    {80000,    530 },
    {200000,   600 },
    {1000000,  700 },
    {2000000,  800 },
    {5000000,  900 },
    {10000000, 970 },
    {30000000, 1000},
};
static const struct point fb_hadoop[] = {
    {0,        0   },
    {100,      10  },
    {200,      20  },
    {300,      50  },
    {350,      150 },
    {400,      200 },
    {500,      300 },
    {600,      400 },
    {700,      500 },
    {1000,     600 },
    {2000,     670 },
    {7000,     700 },
    {30000,    720 },
    {50000,    820 },
    {80000,    870 },
    {120000,   900 },
    {300000,   950 },
    {1000000,  975 },
    {2000000,  990 },
    {10000000, 1000},
};

static const struct {
    const struct point *point;
    unsigned points;
} tables[] = {
    [SIZES_WEBSEARCH] = {websearch, sizeof(websearch) / sizeof(websearch[0])},
    [SIZES_FB_HADOOP] = {fb_hadoop, sizeof(fb_hadoop) / sizeof(fb_hadoop[0])},
};

uint64_t workload_size(enum workload_sizes sizes, uint32_t u)
{
    const struct point *p = tables[sizes].point;
    uint64_t at = (uint64_t)u * 1000; /* permille * 2^32 */
    while (at > (uint64_t)p[1].permille << 32)
        p++;
    uint64_t part = (at - ((uint64_t)p->permille << 32)) >> 16;
    uint64_t whole = (uint64_t)(p[1].permille - p->permille) << 16;
    uint64_t bytes = p->bytes + (p[1].bytes - p->bytes) * part / whole;
    return bytes > 0 ? bytes : 1;
}

/* The mean, to turn load into a rate of flows: the middle of each piece by its share. */
static uint64_t mean_bytes(enum workload_sizes sizes)
{
    uint64_t sum = 0;
    for (unsigned i = 1; i < tables[sizes].points; i++) {
        const struct point *p = &tables[sizes].point[i];
        sum += (p->bytes + p[-1].bytes) / 2 * (p->permille - p[-1].permille);
    }
    return sum / 1000;
}

/* log2 bit by bit: the mantissa squared tells the next one. */
uint64_t workload_ln(uint32_t u)
{
    uint64_t x = u != 0 ? u : 1;
    unsigned top = 63u - (unsigned)__builtin_clzll(x);
    uint64_t mantissa = x << (31 - top); /* 1.0 is 2^31 */
    uint64_t log2 = 0;
    for (int bit = 0; bit < 24; bit++) {
        mantissa = mantissa * mantissa >> 31;
        log2 <<= 1;
        if (mantissa >> 32 != 0) {
            mantissa >>= 1;
            log2 |= 1;
        }
    }
    uint64_t minus_log2 = (UINT64_C(32) << 24) - ((uint64_t)top << 24) - log2;
    return minus_log2 * 11629080 >> 24; /* ln 2 in 2^-24 */
}

static uint32_t hosts_of(const struct scenario *s, uint32_t *host)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->topology.nodes; i++)
        if (s->is_switch[i] == 0)
            host[n++] = i;
    return n;
}

/* All hosts of the scenario, to be freed; NULL: no memory. */
static uint32_t *list_hosts(const struct scenario *s, uint32_t *n)
{
    uint32_t *host = calloc(s->topology.nodes + 1u, sizeof(*host));
    if (host != NULL)
        *n = hosts_of(s, host);
    return host;
}

static bool add(struct scenario *s, const struct workload *w, uint32_t src, uint32_t dst,
                uint32_t group, uint32_t after)
{
    uint32_t n = w->connections != 0 ? w->connections : 1;
    struct fabric_flow flow = {
        .src = src,
        .dst = dst,
        .priority = w->priority,
        .start_ps = after == FABRIC_NO_GROUP ? w->start_ps : w->compute_ps,
        .group = group,
        .after = after,
        .work = w->work,
    };
    for (uint32_t i = 0; i < n; i++) {
        flow.bytes = w->bytes / n + (i < w->bytes % n);
        if (flow.bytes > 0 && !scenario_add_flow(s, &flow))
            return false;
    }
    return true;
}

bool workload_flow(struct scenario *s, const struct workload *w, uint32_t from, uint32_t to)
{
    uint32_t after = FABRIC_NO_GROUP;
    bool ok = true;
    for (uint32_t round = 0; ok && round < w->rounds; round++) {
        uint32_t group = w->rounds > 1 ? s->groups++ : FABRIC_NO_GROUP;
        ok = add(s, w, from, to, group, after);
        after = group;
    }
    return ok;
}

bool workload_incast(struct scenario *s, const struct workload *w, uint32_t to, uint32_t senders)
{
    uint32_t n = 0, *host = list_hosts(s, &n), after = FABRIC_NO_GROUP;
    bool ok = host != NULL;
    for (uint32_t round = 0; ok && round < w->rounds; round++) {
        uint32_t group = w->rounds > 1 ? s->groups++ : FABRIC_NO_GROUP;
        for (uint32_t i = 0, sent = 0; ok && i < n && sent < senders; i++) {
            if (host[i] == to)
                continue;
            ok = add(s, w, host[i], to, group, after);
            sent++;
        }
        after = group;
    }
    free(host);
    return ok;
}

bool workload_permutation(struct scenario *s, const struct workload *w, uint32_t shift)
{
    uint32_t n = 0, *host = list_hosts(s, &n), after = FABRIC_NO_GROUP;
    bool ok = host != NULL;
    for (uint32_t round = 0; ok && round < w->rounds; round++) {
        uint32_t group = w->rounds > 1 ? s->groups++ : FABRIC_NO_GROUP;
        for (uint32_t i = 0; ok && i < n; i++)
            if (shift % n != 0)
                ok = add(s, w, host[i], host[(i + shift) % n], group, after);
        after = group;
    }
    free(host);
    return ok;
}

bool workload_all_to_all(struct scenario *s, const struct workload *w)
{
    uint32_t n = 0, *host = list_hosts(s, &n), after = FABRIC_NO_GROUP;
    bool ok = host != NULL;
    for (uint32_t round = 0; ok && round < w->rounds; round++) {
        uint32_t group = w->rounds > 1 ? s->groups++ : FABRIC_NO_GROUP;
        for (uint32_t shift = 1; shift < n; shift++) /* nobody's turn comes first everywhere */
            for (uint32_t i = 0; ok && i < n; i++)
                ok = add(s, w, host[i], host[(i + shift) % n], group, after);
        after = group;
    }
    free(host);
    return ok;
}

bool workload_allreduce(struct scenario *s, const struct workload *w)
{
    uint32_t n = 0, *host = list_hosts(s, &n);
    bool ok = host != NULL;
    struct workload step = *w;
    if (ok && n > 1)
        step.bytes = (w->bytes + n - 1) / n;
    for (uint32_t i = 0; ok && n > 1 && i < w->rounds * 2 * (n - 1); i++) {
        uint32_t first = s->groups;
        s->groups += n;
        for (uint32_t j = 0; ok && j < n; j++) {
            /* What host j sends now it got from the host before it in the last step. */
            uint32_t after = i == 0 ? FABRIC_NO_GROUP : first - n + (j + n - 1) % n;
            ok = add(s, &step, host[j], host[(j + 1) % n], first + j, after);
        }
    }
    free(host);
    return ok;
}

bool workload_storage(struct scenario *s, const struct workload *w, uint32_t servers,
                      uint32_t reads_ppm, struct rng *rng)
{
    uint32_t n = 0, *host = list_hosts(s, &n);
    bool ok = host != NULL;
    struct workload reads = *w;
    if (s->config.hosts.engine)
        reads.work.verb = FABRIC_READ;
    for (uint32_t i = servers; ok && i < n; i++) {
        uint32_t after = FABRIC_NO_GROUP;
        for (uint32_t round = 0; ok && round < w->rounds; round++) {
            uint32_t group = s->groups++, server = host[rng_below(rng, servers)];
            if (reads_ppm == 1000000 || rng_below(rng, 1000000) < reads_ppm)
                ok = add(s, &reads, server, host[i], group, after);
            else
                ok = add(s, w, host[i], server, group, after);
            after = group;
        }
    }
    free(host);
    return ok;
}

/* Mean time between two flows of a host, in ns: bytes * 8 / (rate * load). */
static uint64_t mean_gap_ns(enum workload_sizes sizes, uint64_t rate_bps, uint32_t load_ppm)
{
    unsigned __int128 bits = (unsigned __int128)mean_bytes(sizes) * 8;
    return (uint64_t)(bits * UINT64_C(1000000000000000) / ((unsigned __int128)rate_bps * load_ppm));
}

static uint64_t gap_ps(uint32_t u, uint64_t mean_ns)
{
    return (uint64_t)((unsigned __int128)workload_ln(u) * mean_ns >> 24) * 1000;
}

bool workload_poisson(struct scenario *s, const struct workload *w, enum workload_sizes sizes,
                      uint32_t load_ppm, uint64_t rate_bps, uint64_t duration_ps, struct rng *rng)
{
    uint32_t n = 0, *host = list_hosts(s, &n);
    bool ok = host != NULL;
    uint64_t mean_ns = mean_gap_ns(sizes, rate_bps, load_ppm);
    for (uint32_t i = 0; ok && n > 1 && i < n; i++) {
        uint64_t at = 0;
        for (;;) {
            at += gap_ps((uint32_t)(rng_next(rng) >> 32), mean_ns);
            if (at >= duration_ps)
                break;
            struct workload one = *w;
            one.bytes = workload_size(sizes, (uint32_t)(rng_next(rng) >> 32));
            one.start_ps = w->start_ps + at;
            uint32_t to = rng_below(rng, n - 1);
            ok =
                add(s, &one, host[i], host[to < i ? to : to + 1], FABRIC_NO_GROUP, FABRIC_NO_GROUP);
            if (!ok)
                break;
        }
    }
    free(host);
    return ok;
}
