/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * roce.c: BTH and extended headers, bytes <-> struct roce_headers. The opcode table says which
 * headers there are; this file knows the bits inside each, once for reading and once for writing.
 */
#include "wire/roce.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"

enum {
    BTH_SE = 0x80,
    BTH_MIGREQ = 0x40,
    BTH_PAD_SHIFT = 4,
    BTH_TVER = 0x0f,
    BTH_FECN = 0x80,
    BTH_BECN = 0x40,
    BTH_ACK_REQ = 0x80,
    MAX_PAYLOAD_BYTES = 4096, /* the largest path MTU */
};

static const char *const verdict_names[ROCE_VERDICT_COUNT] = {
    [ROCE_OK] = "ok",
    [ROCE_TOO_SHORT] = "too short",
    [ROCE_BAD_OPCODE] = "bad opcode",
    [ROCE_BAD_TVER] = "bad transport version",
    [ROCE_BAD_LENGTH] = "bad length",
};

const char *roce_verdict_name(enum roce_verdict v)
{
    assert((unsigned)v < ROCE_VERDICT_COUNT);
    return verdict_names[v];
}

static uint8_t packet_pad(const uint8_t *packet)
{
    return packet[1] >> BTH_PAD_SHIFT & 3;
}

enum roce_verdict roce_check(const uint8_t *packet, size_t n)
{
    if (n < BTH_BYTES + ICRC_BYTES)
        return ROCE_TOO_SHORT;
    if ((packet[1] & BTH_TVER) != 0)
        return ROCE_BAD_TVER;
    const struct opcode_info *info = opcode_info(packet[0]);
    if (info->name == NULL)
        return ROCE_BAD_OPCODE;
    size_t frame_bytes = (size_t)info->header_bytes + packet_pad(packet) + ICRC_BYTES;
    if (n < frame_bytes)
        return ROCE_TOO_SHORT;
    /* Headers and payload + pad are whole words each, so the packet is; this also bounds the pad:
     * n >= frame_bytes and both multiples of 4 leave no room for a pad without payload. */
    if (n % 4 != 0)
        return ROCE_BAD_LENGTH;
    size_t payload_bytes = n - frame_bytes;
    if (payload_bytes > MAX_PAYLOAD_BYTES)
        return ROCE_BAD_LENGTH;
    if (payload_bytes > 0 && (info->flags & OPF_PAYLOAD) == 0)
        return ROCE_BAD_LENGTH;
    return ROCE_OK;
}

static void bth_parse(const uint8_t *p, struct bth *b)
{
    b->opcode = p[0];
    b->solicited = (p[1] & BTH_SE) != 0;
    b->mig_req = (p[1] & BTH_MIGREQ) != 0;
    b->pad_bytes = packet_pad(p);
    b->tver = p[1] & BTH_TVER;
    b->pkey = get_be16(p + 2);
    b->fecn = (p[4] & BTH_FECN) != 0;
    b->becn = (p[4] & BTH_BECN) != 0;
    b->dest_qp = get_be24(p + 5);
    b->ack_req = (p[8] & BTH_ACK_REQ) != 0;
    b->psn = psn_make(get_be24(p + 9));
}

static void bth_build(const struct bth *b, uint8_t *p)
{
    p[0] = b->opcode;
    p[1] = (uint8_t)((b->solicited ? BTH_SE : 0) | (b->mig_req ? BTH_MIGREQ : 0) |
                     (b->pad_bytes & 3) << BTH_PAD_SHIFT | (b->tver & BTH_TVER));
    put_be16(p + 2, b->pkey);
    p[4] = (uint8_t)((b->fecn ? BTH_FECN : 0) | (b->becn ? BTH_BECN : 0));
    put_be24(p + 5, b->dest_qp);
    p[8] = b->ack_req ? BTH_ACK_REQ : 0;
    put_be24(p + 9, b->psn.v);
}

static void reth_parse(const uint8_t *p, struct reth *r)
{
    r->va = get_be64(p);
    r->rkey = get_be32(p + 8);
    r->dma_len = get_be32(p + 12);
}

static void reth_build(const struct reth *r, uint8_t *p)
{
    put_be64(p, r->va);
    put_be32(p + 8, r->rkey);
    put_be32(p + 12, r->dma_len);
}

static void atomic_parse(const uint8_t *p, struct atomic_eth *a)
{
    a->va = get_be64(p);
    a->rkey = get_be32(p + 8);
    a->swap_add = get_be64(p + 12);
    a->compare = get_be64(p + 20);
}

static void atomic_build(const struct atomic_eth *a, uint8_t *p)
{
    put_be64(p, a->va);
    put_be32(p + 8, a->rkey);
    put_be64(p + 12, a->swap_add);
    put_be64(p + 20, a->compare);
}

/* ImmDt is opaque: its four bytes keep their order in memory (struct ibv_wc imm_data is __be32). */
static const uint8_t *imm_parse(const uint8_t *p, uint32_t *immdt)
{
    memcpy(immdt, p, IMMDT_BYTES);
    return p + IMMDT_BYTES;
}

/* Fills the headers of set from p on; returns the byte behind them. */
static const uint8_t *extended_parse(const uint8_t *p, unsigned set, struct roce_headers *h)
{
    if (set & HDR_XRCETH) {
        h->xrc_srqn = get_be24(p + 1);
        p += XRCETH_BYTES;
    }
    if (set & HDR_DETH) {
        h->deth.qkey = get_be32(p);
        h->deth.src_qp = get_be24(p + 5);
        p += DETH_BYTES;
    }
    if (set & HDR_FETH) {
        h->feth.plt = p[3] & 0x0f;
        h->feth.sel = p[3] >> 4 & 3;
        p += FETH_BYTES;
    }
    if (set & HDR_RETH) {
        reth_parse(p, &h->reth);
        p += RETH_BYTES;
    }
    if (set & HDR_ATOMICETH) {
        atomic_parse(p, &h->atomic);
        p += ATOMIC_ETH_BYTES;
    }
    if (set & HDR_AETH) {
        h->aeth.syndrome = p[0];
        h->aeth.msn = psn_make(get_be24(p + 1));
        p += AETH_BYTES;
    }
    if (set & HDR_ATOMICACKETH) {
        h->atomic_ack = get_be64(p);
        p += ATOMIC_ACK_ETH_BYTES;
    }
    if (set & HDR_IMMDT)
        p = imm_parse(p, &h->immdt);
    if (set & HDR_IETH) {
        h->ieth = get_be32(p);
        p += IETH_BYTES;
    }
    if (set & HDR_CNP)
        p += CNP_RESERVED_BYTES; /* reserved: not looked at */
    return p;
}

void roce_parse(const uint8_t *packet, size_t n, struct roce_headers *h, const uint8_t **payload,
                uint32_t *payload_bytes)
{
    const struct opcode_info *info = opcode_info(packet[0]);
    memset(h, 0, sizeof(*h));
    bth_parse(packet, &h->bth);
    const uint8_t *end = extended_parse(packet + BTH_BYTES, info->headers, h);
    assert(end == packet + info->header_bytes);
    size_t tail_bytes = (size_t)h->bth.pad_bytes + ICRC_BYTES;
    assert(n >= info->header_bytes + tail_bytes); /* else roce_check had not said ROCE_OK */
    *payload = end;
    *payload_bytes = (uint32_t)(n - info->header_bytes - tail_bytes);
}

static uint8_t *extended_build(const struct roce_headers *h, unsigned set, uint8_t *p)
{
    if (set & HDR_XRCETH) {
        put_be32(p, h->xrc_srqn & 0xffffff);
        p += XRCETH_BYTES;
    }
    if (set & HDR_DETH) {
        put_be32(p, h->deth.qkey);
        put_be32(p + 4, h->deth.src_qp & 0xffffff);
        p += DETH_BYTES;
    }
    if (set & HDR_FETH) {
        put_be32(p, (h->feth.sel & 3u) << 4 | (h->feth.plt & 0x0fu));
        p += FETH_BYTES;
    }
    if (set & HDR_RETH) {
        reth_build(&h->reth, p);
        p += RETH_BYTES;
    }
    if (set & HDR_ATOMICETH) {
        atomic_build(&h->atomic, p);
        p += ATOMIC_ETH_BYTES;
    }
    if (set & HDR_AETH) {
        p[0] = h->aeth.syndrome;
        put_be24(p + 1, h->aeth.msn.v);
        p += AETH_BYTES;
    }
    if (set & HDR_ATOMICACKETH) {
        put_be64(p, h->atomic_ack);
        p += ATOMIC_ACK_ETH_BYTES;
    }
    if (set & HDR_IMMDT) {
        memcpy(p, &h->immdt, IMMDT_BYTES);
        p += IMMDT_BYTES;
    }
    if (set & HDR_IETH) {
        put_be32(p, h->ieth);
        p += IETH_BYTES;
    }
    if (set & HDR_CNP) {
        memset(p, 0, CNP_RESERVED_BYTES);
        p += CNP_RESERVED_BYTES;
    }
    return p;
}

size_t roce_build_headers(const struct roce_headers *h, uint8_t out[ROCE_MAX_HEADER_BYTES])
{
    const struct opcode_info *info = opcode_info(h->bth.opcode);
    assert(info->name != NULL);
    bth_build(&h->bth, out);
    uint8_t *end = extended_build(h, info->headers, out + BTH_BYTES);
    assert(end == out + info->header_bytes);
    return info->header_bytes;
}
