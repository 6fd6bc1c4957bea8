/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link_direct.c: the engine is called, and its trains are handed over.
 */
#include "link.h"

static struct nic *nic;
static struct link_sink *sink;

const char *link_refuses(const struct dialogue *d)
{
    (void)d;
    return NULL;
}

void link_create(const struct setup *with, struct nic *n, struct link_sink *s)
{
    (void)with;
    nic = n;
    sink = s;
}

void link_qp(struct qp *qp)
{
    (void)qp;
}

void link_destroy(void)
{
    nic = NULL;
}

void link_input(uint64_t now_ns, const struct rx_packet *packet)
{
    nic_input(nic, now_ns, packet, 1);
}

void link_drain(uint64_t now_ns)
{
    while (nic_output(nic, now_ns, &sink->nic, 8)) {
    }
    if (nic_deadline(nic) <= now_ns)
        nic_advance(nic, now_ns);
}

void link_trains(uint64_t now_ns, unsigned n)
{
    nic_output(nic, now_ns, &sink->nic, n);
}

void link_pass(uint64_t from_ns, uint64_t to_ns, bool sends)
{
    uint64_t now_ns = from_ns;
    if (sends) {
        link_drain(now_ns);
        while (nic_deadline(nic) <= to_ns) {
            uint64_t deadline = nic_deadline(nic);
            now_ns = deadline > now_ns ? deadline : now_ns;
            nic_advance(nic, now_ns);
            link_drain(now_ns);
        }
    }
    nic_advance(nic, to_ns);
}
