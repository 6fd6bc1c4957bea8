/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cm_ip.c: service IDs and the addressing header, against bytes of the kernel's REQs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/cm_ip.h"

static const uint8_t header_v4[CM_IP_HEADER_BYTES] = {
    0, 0x40, 0x80, 0x95, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  10, 88,
    0, 2,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 88, 0,  3};

/* IBA A11 */
static void cm_ip_service_id__kernel_values(void **state)
{
    (void)state;
    assert_true(cm_ip_service_id(CM_PORT_SPACE_TCP, 0x1c06) == 0x0000000001061c06);
    assert_true(cm_ip_service_id(CM_PORT_SPACE_UDP, 0x1c06) == 0x0000000001111c06);
    assert_true(cm_ip_service_id(CM_PORT_SPACE_IB, 0xffff) == 0x00000000013fffff);
    assert_int_equal(cm_ip_service_port(0x0000000001061c06), 0x1c06);
    assert_int_equal(cm_ip_service_space(0x0000000001061c06), CM_PORT_SPACE_TCP);
    assert_true(cm_ip_service_id_is(0x0000000001000000));
    assert_true(cm_ip_service_id_is(0x0000000001ffffff));
    assert_false(cm_ip_service_id_is(0x0000000002000000));
    assert_false(cm_ip_service_id_is(0x0000000000ffffff));
    assert_false(cm_ip_service_id_is(0x1000000001061c06));
    assert_true(cm_ip_service_id_is(0x0000000000021c06));
    assert_false(cm_ip_service_id_is(0x0000000000031c06));
    assert_false(cm_ip_service_id_is(0x0000000000011c06));
    assert_true(cm_ip_service_datagrams(0x0000000000021c06));
    assert_true(cm_ip_service_datagrams(0x0000000001111c06));
    assert_false(cm_ip_service_datagrams(0x0000000001061c06));
    assert_false(cm_ip_service_datagrams(0x00000000013f1c06));
}

static void cm_ip_parse__ipv4(void **state)
{
    (void)state;
    static const uint8_t src[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 88, 0, 2};
    static const uint8_t dst[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 88, 0, 3};
    uint8_t built[CM_IP_HEADER_BYTES];
    struct cm_ip ip;
    assert_true(cm_ip_parse(header_v4, sizeof(header_v4), &ip));
    assert_false(ip.v6);
    assert_int_equal(ip.src_port, 0x8095);
    assert_memory_equal(ip.src, src, 16);
    assert_memory_equal(ip.dst, dst, 16);
    cm_ip_build(&ip, built);
    assert_memory_equal(built, header_v4, sizeof(built));
}

static void cm_ip_parse__ipv6(void **state)
{
    (void)state;
    uint8_t bytes[92] = {0, 0x60, 0xe5, 0xe7}, built[CM_IP_HEADER_BYTES];
    struct cm_ip ip;
    for (uint8_t i = 0; i < 32; i++)
        bytes[4 + i] = (uint8_t)(0x20 + i);
    assert_true(cm_ip_parse(bytes, sizeof(bytes), &ip));
    assert_true(ip.v6);
    assert_memory_equal(ip.src, bytes + 4, 16);
    assert_memory_equal(ip.dst, bytes + 20, 16);
    cm_ip_build(&ip, built);
    assert_memory_equal(built, bytes, sizeof(built));
}

static void cm_ip_parse__refused(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        uint8_t version, ip_version;
    } rows[] = {
        {0,  0, 0x40},
        {35, 0, 0x40},
        {36, 1, 0x40},
        {36, 0, 0x00},
        {36, 0, 0x50},
        {36, 0, 0x04},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t bytes[CM_IP_HEADER_BYTES];
        struct cm_ip ip;
        memcpy(bytes, header_v4, sizeof(bytes));
        bytes[0] = rows[i].version;
        bytes[1] = rows[i].ip_version;
        assert_false(cm_ip_parse(bytes, rows[i].n, &ip));
    }
}

/* Case 89: 56 bytes of a REQ and 180 of a SIDR_REQ are left to the program. */
static void case_89_bytes_left(void **state)
{
    (void)state;
    assert_int_equal(CM_IP_REQ_USER_BYTES, 56);
    assert_int_equal(CM_IP_SIDR_REQ_USER_BYTES, 180);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(cm_ip_service_id__kernel_values),
        cmocka_unit_test(cm_ip_parse__ipv4),
        cmocka_unit_test(cm_ip_parse__ipv6),
        cmocka_unit_test(cm_ip_parse__refused),
        cmocka_unit_test(case_89_bytes_left),
    };
    return cmocka_run_group_tests_name("cm_ip", tests, NULL, NULL);
}
