/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_roce.c: transport headers, bytes <-> structs. Packets are checked in buffers of exactly
 * their size, so that a read past the end is seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../fuzz/wire_props.h"
#include "base/bytes.h"

static uint64_t tape = 88172645463325252u;

static uint32_t chance(void)
{
    tape ^= tape << 13;
    tape ^= tape >> 7;
    tape ^= tape << 17;
    return (uint32_t)(tape >> 16);
}

/* Headers with every field of the opcode's set filled by chance, the others zero. */
static struct roce_headers any_headers(uint8_t opcode, uint32_t payload_bytes)
{
    unsigned set = opcode_info(opcode)->headers;
    struct roce_headers h;
    memset(&h, 0, sizeof(h));
    h.bth = (struct bth){.opcode = opcode,
                         .solicited = chance() & 1,
                         .mig_req = chance() & 1,
                         .pad_bytes = roce_pad(payload_bytes),
                         .pkey = (uint16_t)chance(),
                         .fecn = chance() & 1,
                         .becn = chance() & 1,
                         .dest_qp = chance() & 0xffffff,
                         .ack_req = chance() & 1,
                         .psn = psn_make(chance())};
    uint64_t wide = (uint64_t)chance() << 32 | chance();
    if (set & HDR_XRCETH)
        h.xrc_srqn = chance() & 0xffffff;
    if (set & HDR_DETH)
        h.deth = (struct deth){chance(), chance() & 0xffffff};
    if (set & HDR_FETH)
        h.feth = (struct feth){chance() & 15, chance() & 3};
    if (set & HDR_RETH)
        h.reth = (struct reth){wide, chance(), chance()};
    if (set & HDR_ATOMICETH)
        h.atomic = (struct atomic_eth){wide, chance(), ~wide, wide * 3};
    if (set & HDR_AETH)
        h.aeth = (struct aeth){(uint8_t)chance(), psn_make(chance())};
    if (set & HDR_ATOMICACKETH)
        h.atomic_ack = wide;
    if (set & HDR_IMMDT)
        h.immdt = chance();
    if (set & HDR_IETH)
        h.ieth = chance();
    return h;
}

static void assert_headers_equal(const struct roce_headers *a, const struct roce_headers *b)
{
    assert_int_equal(a->bth.pkey, b->bth.pkey);
    assert_int_equal(a->bth.opcode, b->bth.opcode);
    assert_int_equal(a->bth.solicited, b->bth.solicited);
    assert_int_equal(a->bth.mig_req, b->bth.mig_req);
    assert_int_equal(a->bth.pad_bytes, b->bth.pad_bytes);
    assert_int_equal(a->bth.tver, b->bth.tver);
    assert_int_equal(a->bth.fecn, b->bth.fecn);
    assert_int_equal(a->bth.becn, b->bth.becn);
    assert_int_equal(a->bth.dest_qp, b->bth.dest_qp);
    assert_int_equal(a->bth.ack_req, b->bth.ack_req);
    assert_true(psn_eq(a->bth.psn, b->bth.psn));
    assert_true(a->reth.va == b->reth.va && a->reth.rkey == b->reth.rkey);
    assert_int_equal(a->reth.dma_len, b->reth.dma_len);
    assert_int_equal(a->aeth.syndrome, b->aeth.syndrome);
    assert_true(psn_eq(a->aeth.msn, b->aeth.msn));
    assert_true(a->atomic.va == b->atomic.va && a->atomic.rkey == b->atomic.rkey);
    assert_true(a->atomic.swap_add == b->atomic.swap_add);
    assert_true(a->atomic.compare == b->atomic.compare);
    assert_true(a->atomic_ack == b->atomic_ack);
    assert_int_equal(a->immdt, b->immdt);
    assert_int_equal(a->ieth, b->ieth);
    assert_int_equal(a->deth.qkey, b->deth.qkey);
    assert_int_equal(a->deth.src_qp, b->deth.src_qp);
    assert_int_equal(a->xrc_srqn, b->xrc_srqn);
    assert_int_equal(a->feth.plt, b->feth.plt);
    assert_int_equal(a->feth.sel, b->feth.sel);
}

/* Headers, payload and pad in a buffer of exactly their size plus the ICRC's place. */
static uint8_t *packet_make(const struct roce_headers *h, uint32_t payload_bytes, size_t *n)
{
    *n = roce_packet_bytes(h->bth.opcode, payload_bytes);
    uint8_t head[ROCE_MAX_HEADER_BYTES], *packet = calloc(1, *n);
    assert_non_null(packet);
    size_t head_bytes = roce_build_headers(h, head);
    memcpy(packet, head, head_bytes);
    for (uint32_t i = 0; i < payload_bytes; i++)
        packet[head_bytes + i] = (uint8_t)(i + 1);
    return packet;
}

/* Payload = UDP length - 8 - BTH - extended headers - pad - ICRC, for every opcode and every
 * length modulo 4; and what was built is what is parsed. */
static void case_121(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {1, 2, 3, 4, 5, 6, 7, 8, 1021, 1022, 1023, 1024, 4093, 4096};
    int opcodes = 0;
    for (int op = 0; op < 256; op++) {
        const struct opcode_info *info = opcode_info((uint8_t)op);
        if (info->name == NULL)
            continue;
        opcodes++;
        size_t rows = info->flags & OPF_PAYLOAD ? sizeof(lengths) / sizeof(lengths[0]) : 0;
        for (size_t i = 0; i <= rows; i++) {
            uint32_t length = i == 0 ? 0 : lengths[i - 1], payload_bytes;
            struct roce_headers h = any_headers((uint8_t)op, length), parsed;
            const uint8_t *payload;
            size_t n;
            uint8_t *packet = packet_make(&h, length, &n);
            size_t udp_bytes = UDP_HEADER_BYTES + n;
            assert_int_equal(props_roce(packet, n), ROCE_OK);
            roce_parse(packet, n, &parsed, &payload, &payload_bytes);
            assert_int_equal(payload_bytes, length);
            assert_int_equal(payload_bytes,
                             udp_bytes - 8 - info->header_bytes - parsed.bth.pad_bytes - 4);
            assert_ptr_equal(payload, packet + info->header_bytes);
            assert_headers_equal(&parsed, &h);
            free(packet);
        }
    }
    assert_int_equal(opcodes, 25 + 12 + 2 + 1 + 25);
}

/* IBA A17.9.3: a CNP: opcode 0x81, BECN, PSN 0, 16 zero bytes, no AckReq. */
static void case_119(void **state)
{
    (void)state;
    struct roce_headers h = {
        .bth = {.opcode = OPCODE_CNP,
                .mig_req = true,
                .pkey = PKEY_DEFAULT,
                .becn = true,
                .dest_qp = 0x000118}
    };
    static const uint8_t expected[32] = {0x81, 0x40, 0xff, 0xff, 0x40, 0, 0x01, 0x18};
    uint8_t built[ROCE_MAX_HEADER_BYTES];
    assert_int_equal(roce_build_headers(&h, built), 28);
    assert_memory_equal(built, expected, 28);
    assert_int_equal(roce_packet_bytes(OPCODE_CNP, 0), 32);

    /* One taken from an adapter (see case_113): MigReq 0, BECN without FECN. */
    uint8_t seen[32] = {0x81, 0, 0xff, 0xff, 0x40, 0, 0x01, 0x18};
    const uint8_t *payload;
    uint32_t payload_bytes;
    assert_int_equal(roce_check(seen, 32), ROCE_OK);
    roce_parse(seen, 32, &h, &payload, &payload_bytes);
    assert_true(h.bth.becn && !h.bth.fecn && !h.bth.ack_req && !h.bth.mig_req);
    assert_int_equal(h.bth.psn.v, 0);
    assert_int_equal(h.bth.dest_qp, 0x118);
    assert_int_equal(payload_bytes, 0);
    seen[20] = 0xff; /* reserved: ignored on receipt */
    assert_int_equal(roce_check(seen, 32), ROCE_OK);
    assert_int_equal(roce_check(seen, 28), ROCE_TOO_SHORT);
    uint8_t longer[36];
    memcpy(longer, seen, 32);
    assert_int_equal(roce_check(longer, 36), ROCE_BAD_LENGTH);
}

/* MigReq is bit 6 of the second byte; it can be sent as 1, and 0 is not malformed. */
static void case_118(void **state)
{
    (void)state;
    uint8_t packet[ROCE_MAX_HEADER_BYTES] = {0};
    const uint8_t *payload;
    uint32_t payload_bytes;
    for (int mig_req = 0; mig_req < 2; mig_req++) {
        struct roce_headers h =
                                {
                                    .bth = {.opcode = 0x04, .mig_req = mig_req != 0}
        },
                            parsed;
        assert_int_equal(roce_build_headers(&h, packet), 12);
        assert_int_equal(packet[1], mig_req != 0 ? 0x40 : 0);
        assert_int_equal(roce_check(packet, 16), ROCE_OK);
        roce_parse(packet, 16, &parsed, &payload, &payload_bytes);
        assert_int_equal(parsed.bth.mig_req, mig_req);
    }
}

/* Each BTH and extended header field at the place and width that the specification gives it. */
static void roce_build__bytes(void **state)
{
    (void)state;
    uint32_t imm;
    memcpy(&imm, "\x0a\x0b\x0c\x0d", 4);
    struct roce_headers h = {
        .bth = {.opcode = 0xab, /* XRC WRITE Only with Immediate */
                .solicited = true,
                .mig_req = true,
                .pad_bytes = 3,
                .pkey = 0x8001,
                .fecn = true,
                .becn = false,
                .dest_qp = 0x010203,
                .ack_req = true,
                .psn = psn_make(0x040506)},
        .xrc_srqn = 0x111213,
        .reth = {0x2122232425262728, 0x31323334,                                     0x41424344  },
        .immdt = imm,
    };
    static const uint8_t expected[] = {
        0xab, 0xf0, 0x80, 0x01, 0x80, 0x01, 0x02, 0x03, 0x80, 0x04, 0x05, 0x06, /* BTH */
        0x00, 0x11, 0x12, 0x13,                                                 /* XRCETH */
        0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,                         /* RETH: VA */
        0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44,                         /* key, length */
        0x0a, 0x0b, 0x0c, 0x0d};                                                /* ImmDt */
    uint8_t out[ROCE_MAX_HEADER_BYTES];
    assert_int_equal(roce_build_headers(&h, out), sizeof(expected));
    assert_memory_equal(out, expected, sizeof(expected));

    struct roce_headers cas = {
        .bth = {.opcode = 0x13     },
        .atomic = { 0x0102030405060708, 0x11121314, 0x2122232425262728, 0x3132333435363738}
    };
    static const uint8_t atomic[] = {1,    2,    3,    4,    5,    6,    7,    8,    0x11, 0x12,
                                     0x13, 0x14, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
                                     0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38};
    assert_int_equal(roce_build_headers(&cas, out), 40);
    assert_memory_equal(out + 12, atomic, sizeof(atomic));

    /* Annex A19: the FETH, whose last byte is the selectivity level and the placement types, comes
     * before the RETH. */
    struct roce_headers flush = {
        .bth = {.opcode = 0x1c},
        .feth = {     .plt = 2,                 .sel = 1},
        .reth = { 0x2122232425262728, 0x31323334, 0x41424344}
    };
    static const uint8_t feth_reth[] = {0x00, 0x00, 0x00, 0x12, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26,
                                        0x27, 0x28, 0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44};
    assert_int_equal(roce_build_headers(&flush, out), 32);
    assert_memory_equal(out + 12, feth_reth, sizeof(feth_reth));
    flush.bth.opcode = 0xbc;
    assert_int_equal(roce_build_headers(&flush, out), 36);
    assert_memory_equal(out + 16, feth_reth, sizeof(feth_reth));
    flush.bth.opcode = 0x1d;
    assert_int_equal(roce_build_headers(&flush, out), 28);
    assert_memory_equal(out + 12, feth_reth + 4, sizeof(feth_reth) - 4);
    struct roce_headers ud = {
        .bth = {.opcode = 0x64},
          .deth = { 0x80010000,      0x00fedc}
    };
    assert_int_equal(roce_build_headers(&ud, out), 20);
    assert_int_equal(get_be32(out + 12), 0x80010000);
    assert_int_equal(get_be32(out + 16), 0xfedc);
}

static void roce_check__table(void **state)
{
    (void)state;
    static const struct {
        uint8_t opcode, flags; /* flags: second byte, pad in bits 4 and 5, version below */
        uint16_t n;            /* whole packet */
        enum roce_verdict verdict;
    } rows[] = {
        {0x04, 0x00, 16,   ROCE_OK        },
        {0x04, 0x30, 20,   ROCE_OK        },
        {0x04, 0x00, 4112, ROCE_OK        },
        {0x11, 0x00, 20,   ROCE_OK        },
        {0x0e, 0x00, 1040, ROCE_OK        },
        {0x64, 0x00, 24,   ROCE_OK        },
        {0xb3, 0x00, 48,   ROCE_OK        },
        {0x12, 0x00, 28,   ROCE_OK        },
        {0x1c, 0x00, 36,   ROCE_OK        },
        {0x1d, 0x00, 40,   ROCE_OK        },
        {0xbd, 0x00, 44,   ROCE_OK        },
        {0x04, 0x00, 0,    ROCE_TOO_SHORT },
        {0x04, 0x00, 12,   ROCE_TOO_SHORT },
        {0x04, 0x00, 15,   ROCE_TOO_SHORT },
        {0x04, 0x10, 16,   ROCE_TOO_SHORT },
        {0x0a, 0x00, 16,   ROCE_TOO_SHORT },
        {0x0a, 0x00, 28,   ROCE_TOO_SHORT },
        {0x11, 0x00, 16,   ROCE_TOO_SHORT },
        {0x11, 0x10, 20,   ROCE_TOO_SHORT },
        {0xb3, 0x00, 44,   ROCE_TOO_SHORT },
        {0x1c, 0x00, 32,   ROCE_TOO_SHORT },
        {0x1d, 0x00, 28,   ROCE_TOO_SHORT },
        {0x64, 0x00, 20,   ROCE_TOO_SHORT },
        {0x81, 0x00, 16,   ROCE_TOO_SHORT },
        {0x15, 0x00, 64,   ROCE_BAD_OPCODE},
        {0x18, 0x00, 64,   ROCE_BAD_OPCODE},
        {0x1f, 0x00, 64,   ROCE_BAD_OPCODE},
        {0x2c, 0x00, 64,   ROCE_BAD_OPCODE},
        {0x31, 0x00, 64,   ROCE_BAD_OPCODE},
        {0x44, 0x00, 64,   ROCE_BAD_OPCODE},
        {0x60, 0x00, 64,   ROCE_BAD_OPCODE},
        {0x80, 0x00, 64,   ROCE_BAD_OPCODE},
        {0xff, 0x00, 64,   ROCE_BAD_OPCODE},
        {0x04, 0x01, 16,   ROCE_BAD_TVER  },
        {0x04, 0x0f, 16,   ROCE_BAD_TVER  },
        {0xff, 0x08, 64,   ROCE_BAD_TVER  },
        {0x04, 0x00, 17,   ROCE_BAD_LENGTH},
        {0x04, 0x00, 18,   ROCE_BAD_LENGTH},
        {0x04, 0x20, 19,   ROCE_BAD_LENGTH},
        {0x04, 0x00, 4116, ROCE_BAD_LENGTH},
        {0x04, 0x30, 4116, ROCE_BAD_LENGTH},
        {0x04, 0x30, 4112, ROCE_OK        },
        {0x11, 0x00, 24,   ROCE_BAD_LENGTH},
        {0x0c, 0x00, 36,   ROCE_BAD_LENGTH},
        {0x14, 0x30, 48,   ROCE_BAD_LENGTH},
        {0x1c, 0x00, 40,   ROCE_BAD_LENGTH},
        {0x1c, 0x00, 44,   ROCE_BAD_LENGTH},
        {0x12, 0x00, 32,   ROCE_BAD_LENGTH},
        {0x1c, 0x00, 40,   ROCE_BAD_LENGTH},
        {0x81, 0x00, 36,   ROCE_BAD_LENGTH},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t *packet = calloc(1, rows[i].n == 0 ? 1 : rows[i].n);
        assert_non_null(packet);
        packet[0] = rows[i].opcode;
        if (rows[i].n > 1)
            packet[1] = rows[i].flags;
        enum roce_verdict verdict = roce_check(packet, rows[i].n);
        if (verdict != rows[i].verdict)
            fail_msg("row %zu: %s", i, roce_verdict_name(verdict));
        free(packet);
    }
}

/* Truncate, flip and extend a packet of every opcode: a verdict, and the properties hold. */
static void roce_check__mutations(void **state)
{
    (void)state;
    for (int op = 0; op < 256; op++) {
        if (opcode_info((uint8_t)op)->name == NULL)
            continue;
        uint32_t length = opcode_info((uint8_t)op)->flags & OPF_PAYLOAD ? 9 : 0;
        struct roce_headers h = any_headers((uint8_t)op, length);
        size_t n;
        uint8_t *packet = packet_make(&h, length, &n);
        for (size_t cut = 0; cut < n + 9; cut++) {
            uint8_t *other = calloc(1, cut == 0 ? 1 : cut);
            assert_non_null(other);
            memcpy(other, packet, cut < n ? cut : n);
            enum roce_verdict verdict = props_roce(other, cut);
            assert_true(verdict != ROCE_OK || cut % 4 == 0);
            if (cut < n && length == 0)
                assert_int_equal(verdict, ROCE_TOO_SHORT);
            free(other);
        }
        for (size_t bit = 0; bit < n * 8; bit++) {
            packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
            props_roce(packet, n);
            packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(packet);
    }
}

static void roce_check__any_bytes(void **state)
{
    (void)state;
    int taken = 0;
    for (int round = 0; round < 20000; round++) {
        size_t n = chance() % 80;
        uint8_t *packet = malloc(n + 1);
        assert_non_null(packet);
        for (size_t i = 0; i < n; i++)
            packet[i] = (uint8_t)chance();
        if (n > 1 && round % 2 == 0)
            packet[1] &= 0xf0; /* else the version refuses nearly all */
        taken += props_roce(packet, n) == ROCE_OK;
        free(packet);
    }
    assert_true(taken > 100);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_118),
        cmocka_unit_test(case_119),
        cmocka_unit_test(case_121),
        cmocka_unit_test(roce_build__bytes),
        cmocka_unit_test(roce_check__table),
        cmocka_unit_test(roce_check__mutations),
        cmocka_unit_test(roce_check__any_bytes),
    };
    return cmocka_run_group_tests_name("roce", tests, NULL, NULL);
}
