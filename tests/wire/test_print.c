/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_print.c: the one-line form of a packet, and that it stays within any buffer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "wire/icrc.h"
#include "wire/net.h"
#include "wire/print.h"
#include "wire/roce.h"

/* RFC 5952, RFC 5952 4.2 */
static void print_addr__table(void **state)
{
    (void)state;
    static const struct {
        uint8_t addr[16];
        bool v6;
        const char *text;
    } rows[] = {
  /* clang-format off */
        {{10, 88, 0, 2}, false, "10.88.0.2"},
        {{255, 255, 255, 255}, false, "255.255.255.255"},
        {{0}, true, "::"},
        {{[15] = 1}, true, "::1"},
        {{0xfd, 0x88, [15] = 2}, true, "fd88::2"},
        {{0xfe, 0x80}, true, "fe80::"},
        {{0xfe, 0x80, [8] = 0x50, 0x54, 0, 0xff, 0xfe, 0x88, 0, 3}, true, "fe80::5054:ff:fe88:3"},
        {{0x20, 1, 0x0d, 0xb8, [7] = 1, [15] = 1}, true, "2001:db8:0:1::1"},
        {{0x20, 1, [7] = 1, [13] = 1, [15] = 1}, true, "2001::1:0:0:1:1"},
        {{0, 1, 0, 0, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7}, true, "1:0:2:3:4:5:6:7"},
        {{[10] = 0xff, 0xff, 10, 0, 0, 1}, true, "::ffff:a00:1"},
  /* clang-format on */
    };
    char out[PRINT_ADDR_BYTES];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t n = print_addr(out, sizeof(out), rows[i].v6, rows[i].addr);
        assert_string_equal(out, rows[i].text);
        assert_int_equal(n, strlen(out));
    }
}

static uint32_t wire_imm(uint32_t v)
{
    uint8_t bytes[4];
    put_be32(bytes, v);
    memcpy(&v, bytes, 4);
    return v;
}

static void print_roce__lines(void **state)
{
    (void)state;
    /* Lines begin with the opcode's name, then this, where nothing of the BTH is set. */
#define PLAIN " qp 0x000000 psn 0x000000 pkey 0x0000"
#define ACK(synd, number)                                                                          \
    {                                                                                              \
        .bth = {.opcode = 0x11}, .aeth = { synd, {number} }                                        \
    }
    const struct {
        struct roce_headers h;
        uint32_t payload_bytes;
        const char *text;
    } rows[] = {
  /* clang-format off */
        {{.bth = {.opcode = 0x0b, .mig_req = true, .solicited = true, .ack_req = true,
                  .dest_qp = 0x11, .pkey = 0xffff, .psn = psn_make(0xfffffd)},
          .reth = {0x7f0000001000, 0x400, 33}, .immdt = wire_imm(0x01020304)}, 33,
         "RC RDMA WRITE Only with Immediate qp 0x000011 psn 0xfffffd A SE M pkey 0xffff va "
         "0x7f0000001000 rkey 0x00000400 dmalen 33 imm 0x01020304 len 33"},
        {ACK(0x1f, 7), 0, "RC Acknowledge" PLAIN " ACK msn 7 len 0"},
        {ACK(0x0a, 7), 0, "RC Acknowledge" PLAIN " ACK credits 32 msn 7 len 0"},
        {ACK(0x3c, 0), 0, "RC Acknowledge" PLAIN " RNR NAK timer 28 msn 0 len 0"},
        {ACK(0x62, 0), 0, "RC Acknowledge" PLAIN " NAK remote access error msn 0 len 0"},
        {ACK(0x69, 0), 0, "RC Acknowledge" PLAIN " NAK code 9 msn 0 len 0"},
        {ACK(0x45, 0), 0, "RC Acknowledge" PLAIN " reserved syndrome 0x45 msn 0 len 0"},
        {{.bth = {.opcode = 0xb3}, .xrc_srqn = 5, .atomic = {8, 9, 10, 11}}, 0,
         "XRC CmpSwap" PLAIN " srq 0x000005 va 0x8 rkey 0x00000009 swap_add 0xa compare 0xb len 0"},
        {{.bth = {.opcode = 0x14}, .atomic = {8, 9, 10, 0}}, 0,
         "RC FetchAdd" PLAIN " va 0x8 rkey 0x00000009 swap_add 0xa len 0"},
        {{.bth = {.opcode = 0x12}, .aeth = {0x1f, {1}}, .atomic_ack = 255}, 0,
         "RC ATOMIC Acknowledge" PLAIN " ACK msn 1 original 0xff len 0"},
        {{.bth = {.opcode = 0x17}, .ieth = 0x1234}, 4,
         "RC SEND Only with Invalidate" PLAIN " invalidate 0x00001234 len 4"},
        {{.bth = {.opcode = 0x1c}, .feth = {2, 1}}, 0,
         "RC FLUSH" PLAIN " plt 0x2 sel 1 va 0x0 rkey 0x00000000 dmalen 0 len 0"},
        {{.bth = {.opcode = 0x1d}, .reth = {8, 9, 8}}, 8,
         "RC ATOMIC WRITE" PLAIN " va 0x8 rkey 0x00000009 dmalen 8 len 8"},
        {{.bth = {.opcode = 0x64, .fecn = true}, .deth = {0x11111111, 2}}, 16,
         "UD SEND Only qp 0x000000 psn 0x000000 FECN pkey 0x0000 qkey 0x11111111 srcqp 0x000002 "
         "len 16"},
        {{.bth = {.opcode = 0x81, .becn = true}}, 0,
         "CNP qp 0x000000 psn 0x000000 BECN pkey 0x0000 len 0"},
        {{.bth = {.opcode = 0x1f}}, 0, "opcode 0x1f" PLAIN " len 0"},
  /* clang-format on */
    };
    char out[PRINT_LINE_BYTES];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t n = print_roce(out, sizeof(out), &rows[i].h, rows[i].payload_bytes);
        assert_string_equal(out, rows[i].text);
        assert_int_equal(n, strlen(out));
    }
}

/* A RC SEND of nothing over VLAN 100, sealed. */
static size_t sample_frame(uint8_t *frame, bool v6)
{
    struct net_headers net = {
        .v6 = v6,
        .vlan_tags = 1,
        .vlan_tci = {3 << 13 | 100},
        .src = { 10, 0, 0, 1},
        .dst = {            10, 0, 0, 2},
        .tos = 2,
        .ttl = 64,
        .udp_sport = 49152,
        .udp_dport = ROCE_UDP_PORT,
        .udp_bytes = UDP_HEADER_BYTES + 16
    };
    struct roce_headers h = {
        .bth = {.opcode = 0x04, .pkey = 0xffff}
    };
    uint8_t packet[ROCE_MAX_HEADER_BYTES + ICRC_BYTES];
    struct icrc_pseudo ip;
    size_t n = roce_build_headers(&h, packet);
    net_icrc_pseudo(&net, &ip);
    put_le32(packet + n, icrc_end(icrc_begin(&ip, packet)));
    n += ICRC_BYTES;
    size_t head = net_build(&net, packet, n, frame);
    memcpy(frame + head, packet, n);
    return head + n;
}

static void print_frame__lines(void **state)
{
    (void)state;
    uint8_t frame[NET_MAX_HEADER_BYTES + 64];
    char out[PRINT_LINE_BYTES];
    size_t n = sample_frame(frame, false);
    print_frame(out, sizeof(out), frame, n);
    assert_string_equal(out, "vlan 100/3 10.0.0.1:49152 > 10.0.0.2 tos 0x02 ttl 64 RC SEND Only qp "
                             "0x000000 psn 0x000000 pkey 0xffff len 0 icrc ok");
    frame[n - 1] ^= 1;
    print_frame(out, sizeof(out), frame, n);
    assert_non_null(strstr(out, " icrc WRONG"));
    frame[n - 16] = 0x1f;
    print_frame(out, sizeof(out), frame, n);
    assert_string_equal(
        out, "vlan 100/3 10.0.0.1:49152 > 10.0.0.2 tos 0x02 ttl 64 bad opcode (62 bytes)");
    frame[n - 21] ^= 1;
    print_frame(out, sizeof(out), frame, n);
    assert_string_equal(
        out, "vlan 100/3 10.0.0.1:49152 > 10.0.0.2 tos 0x02 ttl 64 UDP port 4790 (62 bytes)");
    print_frame(out, sizeof(out), frame, 17);
    assert_string_equal(out, "truncated (17 bytes)");
    n = sample_frame(frame, true);
    print_frame(out, sizeof(out), frame, n);
    assert_non_null(strstr(out, "[a00:1::]:49152 > a00:2:: tos"));
}

/* Any capacity: terminated, cut, nothing written behind it. */
static void print_frame__small_buffer(void **state)
{
    (void)state;
    uint8_t frame[NET_MAX_HEADER_BYTES + 64];
    char whole[PRINT_LINE_BYTES], out[PRINT_LINE_BYTES];
    size_t n = sample_frame(frame, false);
    size_t full = print_frame(whole, sizeof(whole), frame, n);
    for (size_t cap = 0; cap < full + 3; cap++) {
        memset(out, '#', sizeof(out));
        size_t written = print_frame(out, cap, frame, n);
        assert_int_equal(written, cap == 0 ? 0 : cap - 1 < full ? cap - 1 : full);
        assert_memory_equal(out, whole, written);
        if (cap > 0)
            assert_int_equal(out[written], '\0');
        assert_int_equal(out[cap], '#');
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(print_addr__table),
        cmocka_unit_test(print_roce__lines),
        cmocka_unit_test(print_frame__lines),
        cmocka_unit_test(print_frame__small_buffer),
    };
    return cmocka_run_group_tests_name("print", tests, NULL, NULL);
}
