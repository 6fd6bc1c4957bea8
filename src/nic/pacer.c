/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pacer.c: see pacer.h. Integers only, and nothing is rounded but towards later: 2^32 bytes are
 * 3.4e16 of the units of debt.
 */
#include "nic/pacer.h"

#include <assert.h>

enum { UNITS_PER_BYTE = 8 * 1000 * 1000, USUAL_BURST_MS = 10 };

/* The rate pays for the time that has passed. */
static void pay(struct pacer *p, uint64_t now_ns)
{
    if (now_ns <= p->paid_ns)
        return;
    uint64_t passed_ns = now_ns - p->paid_ns;
    p->paid_ns = now_ns;
    /* The product could overflow where it is more than all. */
    if (p->debt == 0 || passed_ns > p->debt / p->kbps)
        p->debt = 0;
    else
        p->debt -= passed_ns * p->kbps;
}

static void renew(struct pacer *p)
{
    p->kbps = 0;
    for (unsigned i = 0; i < PACER_SOURCES; i++)
        if (p->limit_kbps[i] != 0 && (p->kbps == 0 || p->limit_kbps[i] < p->kbps))
            p->kbps = p->limit_kbps[i];
    if (p->kbps == 0)
        p->debt = 0;
    /* kbit/s are bits a millisecond. Where programs share CPUs a thread may have to wait for so
     * long: what it could not send meanwhile would be lost to a smaller bucket. */
    uint64_t burst = p->burst_asked_bytes;
    if (burst == 0)
        burst = (uint64_t)p->kbps * USUAL_BURST_MS / 8;
    p->burst_bytes = burst == 0 ? 1 : burst < UINT32_MAX ? (uint32_t)burst : UINT32_MAX;
}

void pacer_limit(struct pacer *p, uint64_t now_ns, enum pacer_source source, uint32_t kbps)
{
    if (p->limit_kbps[source] == kbps)
        return;
    if (p->kbps != 0)
        pay(p, now_ns);
    p->limit_kbps[source] = kbps;
    renew(p);
}

void pacer_burst(struct pacer *p, uint64_t now_ns, uint32_t bytes)
{
    if (p->kbps != 0)
        pay(p, now_ns);
    p->burst_asked_bytes = bytes;
    renew(p);
}

uint32_t pacer_room(struct pacer *p, uint64_t now_ns, uint32_t packet_bytes)
{
    assert(p->kbps != 0);
    pay(p, now_ns);
    uint32_t need = packet_bytes < p->burst_bytes ? packet_bytes : p->burst_bytes;
    uint64_t bearable = (uint64_t)(p->burst_bytes - need) * UNITS_PER_BYTE;
    if (p->debt > bearable) {
        p->opens_ns = p->paid_ns + (p->debt - bearable - 1) / p->kbps + 1;
        return 0;
    }
    uint64_t owed_bytes = (p->debt + UNITS_PER_BYTE - 1) / UNITS_PER_BYTE;
    return p->burst_bytes - (uint32_t)owed_bytes;
}

void pacer_sent(struct pacer *p, uint64_t now_ns, uint32_t bytes)
{
    assert(p->kbps != 0);
    pay(p, now_ns);
    p->debt += (uint64_t)bytes * UNITS_PER_BYTE;
}
