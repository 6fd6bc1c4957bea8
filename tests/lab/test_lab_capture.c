/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_capture.c: packets of a capture, among others and cut anywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab_capture.h"

static uint8_t file[2048];
static size_t used;

static void put32(uint32_t v)
{
    memcpy(file + used, &v, 4);
    used += 4;
}

static void start(uint32_t magic, uint32_t link)
{
    used = 0;
    put32(magic);
    memset(file + used, 0, 16);
    used += 16;
    put32(link);
}

/* A frame with a BTH; ip: first byte of the IP header. */
static void add(uint32_t nsec, bool v6, uint8_t protocol, uint16_t port, uint8_t opcode,
                uint32_t psn)
{
    size_t ip_bytes = v6 ? 40 : 20, n = 14 + ip_bytes + 8 + 12 + 10;
    put32(7);
    put32(nsec);
    put32((uint32_t)n);
    put32((uint32_t)n);
    uint8_t *frame = file + used, *ip = frame + 14, *udp = ip + ip_bytes, *bth = udp + 8;
    memset(frame, 0, n);
    frame[12] = v6 ? 0x86 : 0x08;
    frame[13] = v6 ? 0xdd : 0x00;
    ip[0] = v6 ? 0x60 : 0x45;
    ip[v6 ? 6 : 9] = protocol;
    udp[2] = (uint8_t)(port >> 8);
    udp[3] = (uint8_t)port;
    bth[0] = opcode;
    bth[7] = 0x11;
    bth[9] = (uint8_t)(psn >> 16);
    bth[10] = (uint8_t)(psn >> 8);
    bth[11] = (uint8_t)psn;
    used += n;
}

static void lab_capture_next__packets(void **state)
{
    (void)state;
    struct lab_capture c;
    struct lab_packet p;
    start(0xa1b23c4d, 1);
    add(5, false, 17, 4791, 0x0a, 0xabcdef);
    add(6, true, 17, 4791, 0x11, 1);
    assert_true(lab_capture_open(&c, file, used));
    assert_true(lab_capture_next(&c, &p));
    assert_int_equal(p.ns, 7000000005);
    assert_int_equal(p.opcode, 0x0a);
    assert_int_equal(p.psn, 0xabcdef);
    assert_int_equal(p.dest_qpn, 0x11);
    assert_int_equal(p.bytes, 22);
    assert_true(lab_capture_next(&c, &p));
    assert_int_equal(p.opcode, 0x11);
    assert_false(lab_capture_next(&c, &p));
    assert_false(lab_capture_next(&c, &p));
}

static void lab_capture_next__others_are_passed_over(void **state)
{
    (void)state;
    struct lab_capture c;
    struct lab_packet p;
    start(0xa1b23c4d, 1);
    add(1, false, 6, 4791, 0x0a, 1);  /* TCP */
    add(2, false, 17, 4790, 0x0a, 1); /* another port */
    add(3, true, 0, 4791, 0x0a, 1);   /* an extension header */
    put32(7);
    put32(4);
    put32(3); /* a frame of three bytes */
    put32(3);
    used += 3;
    add(5, false, 17, 4791, 0x04, 9);
    assert_true(lab_capture_open(&c, file, used));
    assert_true(lab_capture_next(&c, &p));
    assert_int_equal(p.ns, 7000000005);
    assert_false(lab_capture_next(&c, &p));
}

static void lab_capture_open__invalid(void **state)
{
    (void)state;
    static const struct {
        uint32_t magic, link;
        size_t size;
    } rows[] = {
        {0xa1b2c3d4, 1,   24}, /* microseconds */
        {0x4d3cb2a1, 1,   24}, /* the other byte order */
        {0xa1b23c4d, 113, 24}, /* no Ethernet */
        {0xa1b23c4d, 1,   23},
        {0xa1b23c4d, 1,   0 },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lab_capture c;
        start(rows[i].magic, rows[i].link);
        assert_false(lab_capture_open(&c, file, rows[i].size));
    }
}

/* Whatever is missing, nothing is read beyond it: ASan looks. */
static void lab_capture_next__cut_anywhere(void **state)
{
    (void)state;
    start(0xa1b23c4d, 1);
    add(1, true, 17, 4791, 0x0a, 1);
    add(2, false, 17, 4791, 0x0a, 1);
    for (size_t size = 24; size < used; size++) {
        struct lab_capture c;
        struct lab_packet p;
        uint8_t *copy = malloc(size);
        unsigned packets = 0;
        memcpy(copy, file, size);
        assert_true(lab_capture_open(&c, copy, size));
        while (lab_capture_next(&c, &p))
            packets++;
        assert_true(packets <= 1);
        free(copy);
    }
}

static void lab_capture_opcode__names(void **state)
{
    (void)state;
    static const struct {
        uint8_t opcode;
        const char *name;
    } rows[] = {
        {0x00, "SEND First"                    },
        {0x0b, "RDMA WRITE Only with Immediate"},
        {0x11, "Acknowledge"                   },
        {0x14, "FetchAdd"                      },
        {0x2a, "RDMA WRITE Only"               },
        {0x64, "SEND Only"                     },
        {0x65, "SEND Only with Immediate"      },
        {0x15, "opcode 0x15"                   },
        {0x2c, "opcode 0x2c"                   },
        {0x60, "opcode 0x60"                   },
        {0x66, "opcode 0x66"                   },
        {0x44, "opcode 0x44"                   },
        {0xff, "opcode 0xff"                   },
    };
    char out[32];
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(lab_capture_opcode(rows[i].opcode, out), rows[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_capture_next__packets),
        cmocka_unit_test(lab_capture_next__others_are_passed_over),
        cmocka_unit_test(lab_capture_open__invalid),
        cmocka_unit_test(lab_capture_next__cut_anywhere),
        cmocka_unit_test(lab_capture_opcode__names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
