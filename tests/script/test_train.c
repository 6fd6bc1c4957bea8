/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_train.c: which packets may share a train: one size, only the last smaller, within the limits
 * of a single send.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nic/qp.h"
#include "wire/opcode.h"
#include "wire/roce.h"

static struct train train;
static struct qp qp = {.attr = {.dest_qpn = 0xabcdef}};

static struct train_packet *add(uint8_t opcode, uint32_t psn, uint32_t bytes)
{
    return train_add(&train, &qp, opcode, psn_make(psn), bytes);
}

static int empty(void **state)
{
    (void)state;
    train = (struct train){.max_bytes = TRAIN_MAX_BYTES};
    return 0;
}

static void train_add__fills_the_headers(void **state)
{
    (void)state;
    struct train_packet *p = add(OP_SEND_ONLY, 7, 6);
    assert_int_equal(p->h.bth.opcode, OP_SEND_ONLY);
    assert_int_equal(p->h.bth.psn.v, 7);
    assert_int_equal(p->h.bth.dest_qp, 0xabcdef);
    assert_int_equal(p->h.bth.pad_bytes, 2);
    assert_int_equal(p->h.bth.pkey, 0xffff);
    assert_true(p->h.bth.mig_req);
    assert_false(p->h.bth.ack_req);
    assert_int_equal(p->payload_bytes, 6);
    assert_int_equal(train.packet_bytes, 12 + 8 + 4);
    assert_int_equal(train.total_bytes, 12 + 8 + 4);
    assert_int_equal(train.packets, 1);
}

static void train_fits__equal_and_one_smaller_last(void **state)
{
    (void)state;
    uint32_t full = roce_packet_bytes(OP_SEND_MIDDLE, 256);
    add(OP_SEND_MIDDLE, 1, 256);
    assert_true(train_fits(&train, full, 1));
    add(OP_SEND_MIDDLE, 2, 256);
    assert_true(train_fits(&train, roce_packet_bytes(OP_SEND_LAST, 10), 1));
    add(OP_SEND_LAST, 3, 10);
    assert_int_equal(train.packet_bytes, full);
    assert_int_equal(train.total_bytes, 2 * full + 28);
}

static void train_fits__nothing_after_a_smaller_one(void **state)
{
    (void)state;
    add(OP_SEND_MIDDLE, 1, 256);
    add(OP_SEND_LAST, 2, 10);
    assert_false(train_fits(&train, roce_packet_bytes(OP_SEND_MIDDLE, 256), 1));
    assert_false(train_fits(&train, roce_packet_bytes(OP_SEND_LAST, 10), 1));
    assert_false(train_fits(&train, roce_packet_bytes(OP_SEND_ONLY, 0), 0));
}

static void train_fits__nothing_larger(void **state)
{
    (void)state;
    add(OP_SEND_ONLY, 1, 4);
    assert_false(train_fits(&train, roce_packet_bytes(OP_SEND_ONLY, 8), 1));
    assert_true(train_fits(&train, roce_packet_bytes(OP_SEND_ONLY, 3), 1));
}

static void train_fits__packets_bytes_and_spans_have_limits(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < TRAIN_MAX_PACKETS; i++) {
        assert_true(train_fits(&train, roce_packet_bytes(OP_SEND_ONLY, 0), 0));
        add(OP_SEND_ONLY, i, 0);
    }
    assert_false(train_fits(&train, roce_packet_bytes(OP_SEND_ONLY, 0), 0));
    empty(NULL);
    uint32_t bytes = roce_packet_bytes(OP_SEND_MIDDLE, 4096), n = 0;
    for (; train_fits(&train, bytes, 1); n++)
        add(OP_SEND_MIDDLE, n, 4096);
    assert_int_equal(n, TRAIN_MAX_BYTES / bytes);
    empty(NULL);
    train.spans = TRAIN_MAX_SPANS - 1;
    assert_true(train_fits(&train, 28, 1));
    assert_false(train_fits(&train, 28, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(train_add__fills_the_headers, empty),
        cmocka_unit_test_setup(train_fits__equal_and_one_smaller_last, empty),
        cmocka_unit_test_setup(train_fits__nothing_after_a_smaller_one, empty),
        cmocka_unit_test_setup(train_fits__nothing_larger, empty),
        cmocka_unit_test_setup(train_fits__packets_bytes_and_spans_have_limits, empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
