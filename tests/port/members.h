/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * members.h: several ports on one address, driven in turn, and CM MADs between them. Include after
 * cmocka.h and private_net.h.
 */
#ifndef TESTS_PORT_MEMBERS_H
#define TESTS_PORT_MEMBERS_H

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "port/port_udp_priv.h"
#include "wire/cm_msg.h"

enum { TEST_UDP_PORT = 14794, GSI_SPORT = 55410 };

/* A member, and what came to its QP 1. */
struct member {
    struct port_receiver r;
    struct port *port;
    unsigned mads, others;
    uint8_t mad[MAD_BYTES]; /* the last one */
    bool stopped;
};

static const struct net_addr local4 = {
    {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}
};
static const struct net_addr other4 = {
    {[10] = 0xff, [11] = 0xff, 127, 0, 0, 2}
};
static const struct net_addr any4 = {
    {[10] = 0xff, [11] = 0xff}
};
static const struct net_addr local6 = {{[15] = 1}};
static const struct net_addr any6;

static bool any_icrc; /* packets come that are not whole */

static inline void member_packets(struct port_receiver *r, const struct rx_packet *p, unsigned n)
{
    struct member *m = (struct member *)r;
    for (unsigned i = 0; i < n; i++) {
        assert_true(p[i].icrc_ok || any_icrc);
        if (p[i].h.bth.dest_qp != 1) {
            m->others++;
            continue;
        }
        m->mads++;
        assert_int_equal(p[i].payload_bytes, MAD_BYTES);
        memcpy(m->mad, p[i].payload, MAD_BYTES);
    }
}

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void make(struct member *m, uint64_t seed)
{
    const struct port_udp_config c = {.seed = seed, .udp_port = TEST_UDP_PORT};
    *m = (struct member){.r.packets = member_packets};
    assert_int_equal(port_udp_create(&c, &m->port), 0);
}

static inline void close_member(struct member *m)
{
    if (m->port != NULL)
        m->port->ops->close(m->port);
    m->port = NULL;
}

static inline uint64_t count_of(const struct member *m, const char *want)
{
    const char *name;
    uint64_t v;
    for (unsigned i = 0; (name = m->port->ops->counter(m->port, i, &v)) != NULL; i++) {
        if (strcmp(name, want) == 0)
            return v;
    }
    fail_msg("no counter %s", want);
    return 0;
}

/* One turn of each member that is there and runs. */
static inline void drive(struct member *m, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (m[i].port == NULL || m[i].stopped)
            continue;
        for (unsigned k = 0; k < PORT_EMPTY_CALLS; k++)
            m[i].port->ops->receive(m[i].port, now_ns(), &m[i].r, 512);
    }
}

static inline void drive_for(struct member *m, unsigned n, unsigned ms)
{
    uint64_t end = now_ns() + ms * 1000000ull;
    for (unsigned turns = 0; turns < 10 || now_ns() < end; turns++) {
        drive(m, n);
        poll(NULL, 0, 1);
    }
}

/* A MAD with what routing looks at. id: the first 4 bytes; second: the next; service: REQs. */
static inline void mad_make(uint8_t mad[MAD_BYTES], unsigned attribute, uint32_t id,
                            uint32_t second, uint64_t service)
{
    memset(mad, 0, MAD_BYTES);
    mad[0] = MAD_BASE_VERSION;
    mad[1] = MAD_CLASS_CM;
    mad[2] = MAD_CLASS_CM_VERSION;
    mad[3] = MAD_METHOD_SEND;
    put_be16(mad + 16, (uint16_t)attribute);
    put_be32(mad + 24, id);
    put_be32(mad + 28, second);
    if (attribute == CM_REQ || attribute == CM_SIDR_REQ)
        put_be64(mad + 32, service);
}

static inline void mad_send(struct member *from, const struct net_addr *to, const uint8_t *mad)
{
    static struct train t;
    const struct nic_path path = {
        .local = *to, .remote = *to, .udp_sport = GSI_SPORT, .hop_limit = 64};
    memset(&t, 0, sizeof(t));
    t.path = &path;
    t.packets = t.spans = 1;
    t.span[0] = (struct span){mad, MAD_BYTES};
    t.packet[0].payload_bytes = MAD_BYTES;
    t.packet[0].spans = 1;
    t.packet[0].h.bth.opcode = opcode_make(SERVICE_UD, OP_SEND_ONLY);
    t.packet[0].h.bth.pkey = PKEY_DEFAULT;
    t.packet[0].h.bth.dest_qp = QPN_GSI;
    t.packet[0].h.deth = (struct deth){QKEY_GSI, QPN_GSI};
    t.packet_bytes = t.total_bytes = roce_packet_bytes(t.packet[0].h.bth.opcode, MAD_BYTES);
    from->port->sink.train(&from->port->sink, &t);
    from->port->ops->flush(from->port, now_ns());
}

static inline unsigned mads_of(const struct member *m, unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += m[i].mads;
    return sum;
}

/* Sends one MAD; index of the member that gets it, -1: none. */
static inline int mad_reaches(struct member *m, unsigned n, unsigned from,
                              const struct net_addr *to, const uint8_t *mad)
{
    unsigned before = mads_of(m, n);
    for (unsigned i = 0; i < n; i++)
        memset(m[i].mad, 0, MAD_BYTES);
    mad_send(&m[from], to, mad);
    for (uint64_t end = now_ns() + 2000000000u; now_ns() < end && mads_of(m, n) == before;)
        drive(m, n);
    drive(m, n);
    if (mads_of(m, n) != before + 1)
        return -1;
    for (unsigned i = 0; i < n; i++) {
        if (memcmp(m[i].mad, mad, MAD_BYTES) == 0)
            return (int)i;
    }
    return -1;
}

static inline unsigned open_descriptors(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

#endif
