/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_flood.c: connection management messages of all kinds that a process on 127.0.0.1 gets from
 * very many senders and should not keep: cm_flood PORT COUNT. PORT is of a listener of RDMA_PS_TCP.
 * The senders are addresses of 127/8 (all of them are this machine's), 64 in turn for each kind;
 * the packets are whole. What a listener would take is not among them.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rng.h"
#include "wire/cm_ip.h"
#include "wire/cm_msg.h"
#include "wire/icrc.h"
#include "wire/roce.h"

enum {
    SPORT = 0xd001,
    PACKET_BYTES = ROCE_MAX_HEADER_BYTES + MAD_BYTES + ICRC_BYTES,
    BURST = 64,
    PAUSE_US = 5000
};

enum kind {
    WRONG_SERVICE,  /* nobody listens there */
    WRONG_GID,      /* the path is not the packet's */
    WRONG_HEADER,   /* the addressing header names another source */
    WRONG_MTU,      /* rejected for what it asks */
    WRONG_PROTOCOL, /* a datagram service's message for a connection service */
    NO_CONNECTION,  /* all other messages, of connections that are not there */
    GARBAGE,
    KINDS
};

static struct rng rng;
static uint16_t port;

static uint32_t any(void)
{
    return (uint32_t)rng_next(&rng);
}

static void mapped(uint8_t out[16], uint32_t addr)
{
    memset(out, 0, 16);
    out[10] = out[11] = 0xff;
    addr = htonl(addr);
    memcpy(out + 12, &addr, 4);
}

static void request_make(struct cm_msg *m, enum kind kind, uint32_t from)
{
    struct cm_ip ip = {.src_port = 7};
    m->header.attribute = CM_REQ;
    m->req = (struct cm_req){
        .local_comm_id = any(),
        .service_id = 0x1060000u + (uint16_t)(kind == WRONG_SERVICE ? port + 1 : port),
        .local_ca_guid = 1,
        .local_qpn = 0x1000 + any() % 0x10000,
        .remote_cm_response_timeout = 20,
        .local_cm_response_timeout = 20,
        .path_mtu = kind == WRONG_MTU ? 7 : 3,
        .max_cm_retries = 15,
        .pkey = 0xffff,
        .primary = {.hop_limit = 64, .local_ack_timeout = 18},
    };
    mapped(m->req.primary.local_gid, kind == WRONG_GID ? from + 1 : from);
    mapped(m->req.primary.remote_gid, INADDR_LOOPBACK);
    mapped(ip.src, kind == WRONG_HEADER ? from + 1 : from);
    mapped(ip.dst, INADDR_LOOPBACK);
    cm_ip_build(&ip, m->req.private_data);
}

static void mad_make(uint8_t mad[MAD_BYTES], enum kind kind, uint32_t from)
{
    struct cm_msg m = {.header.tid = rng_next(&rng)};
    if (kind <= WRONG_MTU) {
        request_make(&m, kind, from);
    } else if (kind == WRONG_PROTOCOL) {
        m.header.attribute = CM_SIDR_REQ;
        m.sidr_req.request_id = any();
        m.sidr_req.pkey = 0xffff;
        m.sidr_req.service_id = 0x1060000u + port;
    } else {
        static const uint16_t attributes[] = {CM_MRA,  CM_REJ, CM_REP, CM_RTU,     CM_DREQ,
                                              CM_DREP, CM_LAP, CM_APR, CM_SIDR_REP};
        m.header.attribute = attributes[any() % (sizeof(attributes) / sizeof(attributes[0]))];
        m.mra.local_comm_id = any();
        if (m.header.attribute != CM_SIDR_REP)
            m.mra.remote_comm_id = any();
        if (m.header.attribute == CM_REP)
            m.rep.local_qpn = 0x1234;
    }
    cm_msg_build(&m, mad);
    for (unsigned i = 0; kind == GARBAGE && i < 8; i++)
        mad[any() % MAD_BYTES] = (uint8_t)any();
}

static size_t packet_make(uint8_t *packet, enum kind kind, uint32_t from)
{
    const struct roce_headers h = {
        .bth = {.opcode = 0x64, .pkey = 0xffff, .dest_qp = QPN_GSI},
        .deth = {.qkey = QKEY_GSI,              .src_qp = QPN_GSI            },
    };
    size_t n = roce_build_headers(&h, packet);
    mad_make(packet + n, kind, from);
    n += MAD_BYTES;
    struct icrc_pseudo ip = {.udp_sport = SPORT,
                             .udp_dport = 4791,
                             .udp_bytes = (uint16_t)(8 + n + ICRC_BYTES),
                             .dont_fragment = true};
    uint32_t src = htonl(from), dst = htonl(INADDR_LOOPBACK);
    memcpy(ip.src, &src, 4);
    memcpy(ip.dst, &dst, 4);
    uint32_t crc = icrc_end(icrc_update(icrc_begin(&ip, packet), packet + 12, n - 12));
    memcpy(packet + n, &crc, ICRC_BYTES);
    return n + ICRC_BYTES;
}

static int send_from(int fd, uint32_t from, uint8_t *packet, size_t n)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(4791), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    union {
        struct cmsghdr header;
        uint8_t bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
    } control = {0};
    struct iovec iov = {packet, n};
    struct msghdr m = {.msg_name = &to,
                       .msg_namelen = sizeof(to),
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    struct in_pktinfo info = {.ipi_spec_dst.s_addr = htonl(from)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = IPPROTO_IP;
    c->cmsg_type = IP_PKTINFO;
    c->cmsg_len = CMSG_LEN(sizeof(info));
    memcpy(CMSG_DATA(c), &info, sizeof(info));
    return sendmsg(fd, &m, 0) == (ssize_t)n ? 0 : -1;
}

int main(int argc, char **argv)
{
    int discover = IP_PMTUDISC_DO;
    struct sockaddr_in me = {.sin_family = AF_INET, .sin_port = htons(SPORT)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (argc != 3 || fd < 0 || bind(fd, (struct sockaddr *)&me, sizeof(me)) != 0 ||
        setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover)) != 0)
        return 2;
    port = (uint16_t)atoi(argv[1]);
    unsigned count = (unsigned)atoi(argv[2]);
    rng_init(&rng, 1);
    for (unsigned i = 0; i < count; i++) {
        uint8_t packet[PACKET_BYTES] = {0};
        uint32_t from = 0x7f010000u + any() % 0xffff;
        size_t n = packet_make(packet, (enum kind)(i / BURST % KINDS), from);
        if (send_from(fd, from, packet, n) != 0) {
            perror("sendmsg");
            return 1;
        }
        if (i % BURST == BURST - 1)
            usleep(PAUSE_US);
    }
    printf("%u sent\n", count);
    return 0;
}
