/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * config.c: settings from the environment.
 *   VERBENA_FAULT=SPEC        faults on what is sent (port_fault.h)
 *   VERBENA_PCAP=FILE         capture of all packets
 *   VERBENA_PCAP_CLOCK=NAME   whose times it has: wall, monotonic
 *   VERBENA_STATS=FILE or -   counters at the end
 *   VERBENA_ALLOW_UIDS=N,N    users who share the port with us, passing packets on
 *   VERBENA_GSO=0             every packet its own datagram
 *   VERBENA_FLOWS=0           no sockets for single flows
 *   VERBENA_LOCAL=0           packets on this machine go by UDP, all of them
 *   VERBENA_CC=NAME[,...]     congestion control (congestion_option.h)
 */
#define _GNU_SOURCE
#include "host/congestion_option.h"
#include "host/host_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *setting(const char *name)
{
    /* Not in programs that run with more rights than their user: settings name files to write. */
    const char *v = secure_getenv(name);
    return v != NULL && v[0] != '\0' ? v : NULL;
}

static int read_uids(const char *text, struct port_udp_config *c)
{
    const char *p = text;
    for (;;) {
        char *end;
        errno = 0;
        unsigned long v = strtoul(p, &end, 10);
        bool ok = *p >= '0' && *p <= '9' && errno == 0 && v < UINT32_MAX &&
                  (*end == '\0' || *end == ',') && c->allow_uids < MAX_ALLOW_UIDS;
        if (!ok) {
            fprintf(stderr,
                    "verbena: VERBENA_ALLOW_UIDS=%s: want up to %d user numbers, with commas\n",
                    text, MAX_ALLOW_UIDS);
            return -EINVAL;
        }
        c->allow_uid[c->allow_uids++] = (uid_t)v;
        if (*end == '\0')
            return 0;
        p = end + 1;
    }
}

/* One word of two; chosen: the first. */
static int read_choice(const char *name, const char *first, const char *second, bool *chosen)
{
    const char *v = setting(name);
    if (v == NULL)
        return 0;
    if (strcmp(v, first) != 0 && strcmp(v, second) != 0) {
        fprintf(stderr, "verbena: %s=%s: want %s or %s\n", name, v, first, second);
        return -EINVAL;
    }
    *chosen = strcmp(v, first) == 0;
    return 0;
}

static int read_congestion(struct host_config *c)
{
    char message[CONGESTION_MESSAGE_BYTES];
    const char *v = setting("VERBENA_CC");
    if (congestion_parse(v != NULL ? v : "none", &c->congestion, message) == 0)
        return 0;
    fprintf(stderr, "verbena: VERBENA_CC: %s\n", message);
    return -EINVAL;
}

int config_read(struct host_config *c)
{
    memset(c, 0, sizeof(*c));
    c->pcap_path = setting("VERBENA_PCAP");
    c->stats_path = setting("VERBENA_STATS");
    const char *fault = setting("VERBENA_FAULT");
    if (fault != NULL) {
        char message[FAULT_MESSAGE_BYTES];
        if (fault_parse(fault, &c->fault, message) != 0) {
            fprintf(stderr, "verbena: VERBENA_FAULT: %s\n", message);
            return -EINVAL;
        }
        c->faulty = true;
    }
    const char *uids = setting("VERBENA_ALLOW_UIDS");
    int err = uids != NULL ? read_uids(uids, &c->udp) : 0;
    err = err == 0 ? read_choice("VERBENA_GSO", "0", "1", &c->udp.no_gso) : err;
    err = err == 0 ? read_choice("VERBENA_FLOWS", "0", "1", &c->udp.no_flows) : err;
    bool by_udp = false;
    err = err == 0 ? read_choice("VERBENA_LOCAL", "0", "1", &by_udp) : err;
    err =
        err == 0 ? read_choice("VERBENA_PCAP_CLOCK", "monotonic", "wall", &c->pcap_monotonic) : err;
    err = err == 0 ? read_congestion(c) : err;
    /* Only packets can be marked. */
    c->udp.local = !by_udp && !congestion_is_on(&c->congestion);
    return err;
}
