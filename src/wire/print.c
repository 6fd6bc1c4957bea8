/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * print.c: the one-line form of a packet. It writes into the caller's buffer with a small writer of
 * its own, because the floors below the ports do not use printf.
 */
#include "wire/print.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/aeth.h"
#include "wire/net.h"
#include "wire/roce.h"

struct line {
    char *out;
    size_t cap, n; /* n < cap once the line has begun */
};

static struct line line_begin(char *out, size_t cap)
{
    if (cap > 0)
        out[0] = '\0';
    return (struct line){out, cap, 0};
}

static void put_text(struct line *l, const char *s)
{
    for (; *s != '\0' && l->n + 1 < l->cap; s++)
        l->out[l->n++] = *s;
    if (l->cap > 0)
        l->out[l->n] = '\0';
}

/* Digits of v in base 10 or 16, at least min of them. */
static void put_digits(struct line *l, uint64_t v, unsigned base, int min)
{
    char digits[24];
    int i = (int)sizeof(digits);
    digits[--i] = '\0';
    do {
        digits[--i] = "0123456789abcdef"[v % base];
        v /= base;
        min--;
    } while (v != 0 || min > 0);
    put_text(l, digits + i);
}

static void put_dec(struct line *l, const char *label, uint64_t v)
{
    put_text(l, label);
    put_digits(l, v, 10, 1);
}

static void put_hex(struct line *l, const char *label, uint64_t v, int min)
{
    put_text(l, label);
    put_text(l, "0x");
    put_digits(l, v, 16, min);
}

static void put_ipv4(struct line *l, const uint8_t *a)
{
    for (int i = 0; i < 4; i++)
        put_dec(l, i == 0 ? "" : ".", a[i]);
}

/* First and length of the longest run of zero groups, if longer than one (RFC 5952 4.2). */
static void zero_run(const uint8_t *a, int *first, int *count)
{
    *first = -1;
    *count = 1;
    for (int i = 0; i < 8; i++) {
        int n = 0;
        while (i + n < 8 && get_be16(a + (size_t)(i + n) * 2) == 0)
            n++;
        if (n > *count) {
            *first = i;
            *count = n;
        }
        i += n;
    }
}

static void put_ipv6(struct line *l, const uint8_t *a)
{
    int first, count;
    zero_run(a, &first, &count);
    for (int i = 0; i < 8; i++) {
        if (i == first) {
            put_text(l, "::");
            i += count - 1;
            continue;
        }
        if (i > 0 && (first < 0 || i != first + count))
            put_text(l, ":");
        put_digits(l, get_be16(a + (size_t)i * 2), 16, 1);
    }
}

static void put_addr(struct line *l, bool v6, const uint8_t *a)
{
    if (v6)
        put_ipv6(l, a);
    else
        put_ipv4(l, a);
}

static void put_aeth(struct line *l, const struct aeth *a)
{
    static const char *const naks[] = {
        [NAK_PSN_SEQUENCE] = "PSN sequence error",
        [NAK_INVALID_REQUEST] = "invalid request",
        [NAK_REMOTE_ACCESS] = "remote access error",
        [NAK_REMOTE_OPERATIONAL] = "remote operational error",
        [NAK_INVALID_RD] = "invalid RD request",
    };
    uint8_t value = aeth_value(a->syndrome);
    switch (aeth_kind(a->syndrome)) {
    case AETH_ACK:
        put_text(l, " ACK");
        if (value != AETH_CREDITS_NONE)
            put_dec(l, " credits ", aeth_credits(value));
        break;
    case AETH_RNR_NAK:
        put_dec(l, " RNR NAK timer ", value);
        break;
    case AETH_NAK:
        put_text(l, " NAK ");
        if (value < sizeof(naks) / sizeof(naks[0]))
            put_text(l, naks[value]);
        else
            put_dec(l, "code ", value);
        break;
    case AETH_RESERVED:
        put_hex(l, " reserved syndrome ", a->syndrome, 2);
        break;
    }
    put_dec(l, " msn ", a->msn.v);
}

static void put_bth(struct line *l, const struct bth *b)
{
    put_hex(l, " qp ", b->dest_qp, 6);
    put_hex(l, " psn ", b->psn.v, 6);
    put_text(l, b->ack_req ? " A" : "");
    put_text(l, b->solicited ? " SE" : "");
    put_text(l, b->mig_req ? " M" : "");
    put_text(l, b->fecn ? " FECN" : "");
    put_text(l, b->becn ? " BECN" : "");
    put_hex(l, " pkey ", b->pkey, 4);
}

static void put_memory_headers(struct line *l, unsigned set, const struct roce_headers *h)
{
    if (set & HDR_FETH) {
        put_hex(l, " plt ", h->feth.plt, 1);
        put_dec(l, " sel ", h->feth.sel);
    }
    if (set & HDR_RETH) {
        put_hex(l, " va ", h->reth.va, 1);
        put_hex(l, " rkey ", h->reth.rkey, 8);
        put_dec(l, " dmalen ", h->reth.dma_len);
    }
    if (set & HDR_ATOMICETH) {
        put_hex(l, " va ", h->atomic.va, 1);
        put_hex(l, " rkey ", h->atomic.rkey, 8);
        put_hex(l, " swap_add ", h->atomic.swap_add, 1);
        if (opcode_op(h->bth.opcode) == OP_COMPARE_SWAP)
            put_hex(l, " compare ", h->atomic.compare, 1);
    }
}

static void put_roce(struct line *l, const struct roce_headers *h, uint32_t payload_bytes)
{
    const struct opcode_info *info = opcode_info(h->bth.opcode);
    unsigned set = info->headers;
    if (info->name != NULL)
        put_text(l, info->name);
    else
        put_hex(l, "opcode ", h->bth.opcode, 2);
    put_bth(l, &h->bth);
    if (set & HDR_XRCETH)
        put_hex(l, " srq ", h->xrc_srqn, 6);
    if (set & HDR_DETH) {
        put_hex(l, " qkey ", h->deth.qkey, 8);
        put_hex(l, " srcqp ", h->deth.src_qp, 6);
    }
    put_memory_headers(l, set, h);
    if (set & HDR_AETH)
        put_aeth(l, &h->aeth);
    if (set & HDR_ATOMICACKETH)
        put_hex(l, " original ", h->atomic_ack, 1);
    if (set & HDR_IMMDT) {
        uint8_t wire[IMMDT_BYTES];
        memcpy(wire, &h->immdt, sizeof(wire));
        put_hex(l, " imm ", get_be32(wire), 8);
    }
    if (set & HDR_IETH)
        put_hex(l, " invalidate ", h->ieth, 8);
    put_dec(l, " len ", payload_bytes);
}

static void put_net(struct line *l, const struct net_headers *h)
{
    for (int i = 0; i < h->vlan_tags; i++) {
        put_dec(l, "vlan ", h->vlan_tci[i] & 0x0fffu);
        put_dec(l, "/", h->vlan_tci[i] >> 13);
        put_text(l, " ");
    }
    put_text(l, h->v6 ? "[" : "");
    put_addr(l, h->v6, h->src);
    put_text(l, h->v6 ? "]" : "");
    put_dec(l, ":", h->udp_sport);
    put_text(l, " > ");
    put_addr(l, h->v6, h->dst);
    put_hex(l, " tos ", h->tos, 2);
    put_dec(l, " ttl ", h->ttl);
    put_text(l, " ");
}

size_t print_addr(char *out, size_t cap, bool v6, const uint8_t addr[16])
{
    struct line l = line_begin(out, cap);
    put_addr(&l, v6, addr);
    return l.n;
}

size_t print_roce(char *out, size_t cap, const struct roce_headers *h, uint32_t payload_bytes)
{
    struct line l = line_begin(out, cap);
    put_roce(&l, h, payload_bytes);
    return l.n;
}

/* What is not RoCE v2: the reason, and the frame's size. */
static size_t put_refused(struct line *l, const char *why, size_t n)
{
    put_text(l, why);
    put_dec(l, " (", n);
    put_text(l, " bytes)");
    return l->n;
}

size_t print_frame(char *out, size_t cap, const uint8_t *frame, size_t n)
{
    struct line l = line_begin(out, cap);
    struct net_headers net;
    const uint8_t *packet, *payload;
    size_t packet_bytes;
    enum net_verdict net_said = net_parse(frame, n, &net, &packet, &packet_bytes);
    if (net_said != NET_OK)
        return put_refused(&l, net_verdict_name(net_said), n);
    put_net(&l, &net);
    if (net.udp_dport != ROCE_UDP_PORT) {
        put_dec(&l, "UDP port ", net.udp_dport);
        return put_refused(&l, "", n);
    }
    enum roce_verdict roce_said = roce_check(packet, packet_bytes);
    if (roce_said != ROCE_OK)
        return put_refused(&l, roce_verdict_name(roce_said), n);
    struct roce_headers h;
    uint32_t payload_bytes;
    roce_parse(packet, packet_bytes, &h, &payload, &payload_bytes);
    put_roce(&l, &h, payload_bytes);
    struct icrc_pseudo ip;
    net_icrc_pseudo(&net, &ip);
    put_text(&l, icrc_check(&ip, packet, packet_bytes) ? " icrc ok" : " icrc WRONG");
    return l.n;
}
