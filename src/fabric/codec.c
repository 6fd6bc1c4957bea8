/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * codec.c: see codec.h.
 */
#include "fabric/codec.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/net.h"
#include "wire/pfc.h"
#include "wire/roce.h"

enum {
    FCS_BYTES = 4,  /* counted, never built: nothing turns a bit on a wire that it would not see */
    BTH_MASKED = 4, /* the byte with FECN and BECN, which no ICRC covers */
    MAC_LOCAL = 0x02,
};

static uint32_t tag_bytes(const struct fabric *f)
{
    return f->config.hosts.vlan ? (uint32_t)VLAN_TAG_BYTES : 0;
}

/* Ethernet to UDP. */
static uint32_t net_bytes(const struct fabric *f)
{
    return ETH_HEADER_BYTES + tag_bytes(f) + IPV4_HEADER_BYTES + UDP_HEADER_BYTES;
}

uint32_t codec_frame_bytes(const struct fabric *f)
{
    return net_bytes(f) + FCS_BYTES;
}

static uint32_t stride(const struct fabric *f)
{
    return (net_bytes(f) + ROCE_MAX_HEADER_BYTES + f->config.hosts.payload_bytes + 3 + ICRC_BYTES +
            63) &
           ~UINT32_C(63);
}

static uint8_t *frame_of(const struct fabric *f, uint32_t packet)
{
    return f->frame + (size_t)packet * stride(f);
}

int codec_create(struct fabric *f)
{
    f->frame_bytes = malloc((f->pool.capacity + (size_t)1) * sizeof(*f->frame_bytes));
    f->frame = malloc((f->pool.capacity + (size_t)1) * stride(f));
    return f->frame != NULL && f->frame_bytes != NULL ? 0 : -ENOMEM;
}

void codec_free(struct fabric *f)
{
    free(f->frame);
    free(f->frame_bytes);
}

/* Of a host's port, or a switch's. */
static void mac(uint8_t out[6], uint32_t node)
{
    out[0] = MAC_LOCAL;
    out[1] = 0;
    put_be32(out + 2, node);
}

static struct net_headers net_of(const struct fabric *f, const struct nic_path *path,
                                 uint8_t priority)
{
    struct net_headers h = {
        .vlan_tags = f->config.hosts.vlan,
        .vlan_tci = {(uint16_t)(priority << 13)},
        .tos = path->traffic_class,
        .ttl = path->hop_limit,
        .dont_fragment = true,
        .udp_sport = path->udp_sport,
        .udp_dport = ROCE_UDP_PORT,
    };
    memcpy(h.src, path->local.b + 12, 4);
    memcpy(h.dst, path->remote.b + 12, 4);
    mac(h.eth_src, get_be32(h.src));
    mac(h.eth_dst, get_be32(h.dst));
    return h;
}

void codec_build(struct fabric *f, uint32_t packet, const struct train *t,
                 const struct train_packet *from)
{
    struct packet *k = &f->pool.packet[packet];
    struct net_headers net = net_of(f, t->path, k->pcp);
    uint32_t n = roce_packet_bytes(from->h.bth.opcode, from->payload_bytes);
    uint8_t *frame = frame_of(f, packet), *roce = frame + net_build(&net, NULL, n, frame);
    assert(roce == frame + net_bytes(f) && k->bytes == n + codec_frame_bytes(f));
    uint8_t *at = roce + roce_build_headers(&from->h, roce);
    for (unsigned i = 0; i < from->spans; i++) {
        const struct span *span = &t->span[from->first_span + i];
        memcpy(at, span->addr, span->bytes);
        at += span->bytes;
    }
    memset(at, 0, roce_pad(from->payload_bytes));
    at += roce_pad(from->payload_bytes);
    struct icrc_pseudo ip;
    net.udp_bytes = (uint16_t)(UDP_HEADER_BYTES + n);
    net_icrc_pseudo(&net, &ip);
    uint32_t state = icrc_begin(&ip, roce);
    put_le32(at, icrc_end(icrc_update(state, roce + BTH_BYTES, (size_t)(at - roce) - BTH_BYTES)));
    f->frame_bytes[packet] = (uint16_t)(at + ICRC_BYTES - frame);
}

bool codec_parse(const struct fabric *f, uint32_t packet, struct rx_packet *rx)
{
    const uint8_t *frame = frame_of(f, packet), *roce;
    struct net_headers net;
    struct icrc_pseudo ip;
    size_t n;
    if (net_parse(frame, f->frame_bytes[packet], &net, &roce, &n) != NET_OK ||
        net.udp_dport != ROCE_UDP_PORT || roce_check(roce, n) != ROCE_OK)
        return false;
    *rx = (struct rx_packet){
        .src = {.b = {[10] = 0xff, [11] = 0xff}},
        .dst = {.b = {[10] = 0xff, [11] = 0xff}},
        .traffic_class = net.tos,
        .hop_limit = net.ttl,
    };
    memcpy(rx->src.b + 12, net.src, 4);
    memcpy(rx->dst.b + 12, net.dst, 4);
    net_icrc_pseudo(&net, &ip);
    rx->icrc_ok = icrc_check(&ip, roce, n);
    roce_parse(roce, n, &rx->h, &rx->payload, &rx->payload_bytes);
    return true;
}

void codec_mark(struct fabric *f, uint32_t packet)
{
    uint8_t *frame = frame_of(f, packet);
    const uint8_t *roce;
    struct net_headers net;
    size_t n;
    enum net_verdict ok = net_parse(frame, f->frame_bytes[packet], &net, &roce, &n);
    assert(ok == NET_OK && (net.tos & ECN_MASK) != 0); /* what is broken on the way is behind UDP */
    net.tos |= ECN_CE;
    net_build(&net, roce, n, frame);
}

void codec_break(struct fabric *f, uint32_t packet, uint32_t where)
{
    uint8_t *roce = frame_of(f, packet) + net_bytes(f);
    uint32_t bits = 8 * (f->frame_bytes[packet] - net_bytes(f));
    uint32_t byte = where % bits / 8;
    if (byte == BTH_MASKED)
        byte++;
    roce[byte] ^= (uint8_t)(1u << where % 8);
}

void codec_build_pause(struct fabric *f, uint32_t packet, uint8_t xoff, uint8_t xon,
                       uint32_t quanta)
{
    struct pfc_frame p = {.link = f->config.switches.link_pause, .enabled = xoff | xon};
    uint16_t q = quanta > UINT16_MAX ? UINT16_MAX : (uint16_t)quanta;
    for (unsigned i = 0; i < PFC_PRIORITIES; i++)
        p.quanta[i] = (xoff >> i & 1) != 0 ? q : 0;
    pfc_build(&p, frame_of(f, packet));
    f->frame_bytes[packet] = PFC_FRAME_BYTES;
}

void codec_parse_pause(const struct fabric *f, uint32_t packet, uint8_t *xoff, uint8_t *xon)
{
    struct pfc_frame p;
    bool ok = pfc_parse(frame_of(f, packet), f->frame_bytes[packet], &p);
    assert(ok && p.link == f->config.switches.link_pause);
    *xoff = 0;
    for (unsigned i = 0; i < PFC_PRIORITIES; i++)
        if (p.quanta[p.link ? 0 : i] != 0)
            *xoff |= (uint8_t)(1u << i);
    *xon = (uint8_t)((p.link ? 0xff : p.enabled) & ~*xoff);
}
