/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_opcode.c: the table of opcodes against the specification's layout, written as strings here,
 * and the rules that its flags must follow.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/iba.h"
#include "wire/opcode.h"

/* Headers behind the BTH of each RC opcode: I ImmDt, R RETH, A AETH, T AtomicETH, O AtomicAckETH,
 * K IETH, F FETH; "-" none; NULL no such opcode. */
static const char *const rc_layout[32] = {
    "-", "-", "-",  "I", "-", "I",  "R", "-", "-",  "I",  "R",  "RI", "R",  "A", "-",  "A",
    "A", "A", "AO", "T", "T", NULL, "K", "K", NULL, NULL, NULL, NULL, "FR", "R", NULL, NULL,
};
static const uint32_t rc_payload_ops = 0x20c1efff; /* bit n: opcode n may have payload */

static unsigned layout_headers(const char *layout, uint8_t *bytes)
{
    static const struct {
        char letter;
        unsigned flag;
        uint8_t bytes;
    } map[] = {
        {'-', 0,                0 },
        {'I', HDR_IMMDT,        4 },
        {'R', HDR_RETH,         16},
        {'A', HDR_AETH,         4 },
        {'T', HDR_ATOMICETH,    28},
        {'O', HDR_ATOMICACKETH, 8 },
        {'K', HDR_IETH,         4 },
        {'F', HDR_FETH,         4 },
        {'D', HDR_DETH,         8 },
        {'X', HDR_XRCETH,       4 },
        {'C', HDR_CNP,          16}
    };
    unsigned set = 0;
    *bytes = 12;
    for (; *layout != '\0'; layout++)
        for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
            if (map[i].letter == *layout) {
                set |= map[i].flag;
                *bytes = (uint8_t)(*bytes + map[i].bytes);
            }
    return set;
}

static void check_row(uint8_t opcode, const char *layout, bool xrc_request, bool payload)
{
    uint8_t bytes;
    const struct opcode_info *info = opcode_info(opcode);
    if (layout == NULL) {
        assert_null(info->name);
        return;
    }
    unsigned set = layout_headers(layout, &bytes);
    if (xrc_request) {
        set |= HDR_XRCETH;
        bytes = (uint8_t)(bytes + 4);
    }
    assert_non_null(info->name);
    assert_int_equal(info->headers, set);
    assert_int_equal(info->header_bytes, bytes);
    assert_int_equal(info->service, opcode >> 5);
    assert_int_equal((info->flags & OPF_PAYLOAD) != 0, payload);
}

/* IBA 9.2, IBA A14 */
static void opcode_info__layouts(void **state)
{
    (void)state;
    for (unsigned op = 0; op < 32; op++) {
        bool payload = (rc_payload_ops >> op & 1) != 0;
        bool response = op >= 0x0d && op <= 0x12;
        check_row((uint8_t)op, rc_layout[op], false, payload);
        check_row((uint8_t)(0x20 | op), op < 0x0c ? rc_layout[op] : NULL, false, payload);
        check_row((uint8_t)(0x40 | op), NULL, false, false);
        check_row((uint8_t)(0x60 | op), op == 4 ? "D" : op == 5 ? "DI" : NULL, false, payload);
        check_row((uint8_t)(0x80 | op), op == 1 ? "C" : NULL, false, false);
        check_row((uint8_t)(0xa0 | op), rc_layout[op], !response, payload);
        check_row((uint8_t)(0xc0 | op), NULL, false, false);
        check_row((uint8_t)(0xe0 | op), NULL, false, false);
    }
}

static int bits(unsigned v)
{
    return __builtin_popcount(v);
}

static void opcode_info__flag_rules(void **state)
{
    (void)state;
    for (int opcode = 0; opcode < 256; opcode++) {
        const struct opcode_info *info = opcode_info((uint8_t)opcode);
        unsigned place = info->flags & (OPF_FIRST | OPF_MIDDLE | OPF_LAST | OPF_ONLY);
        unsigned family = info->flags & (OPF_SEND | OPF_WRITE | OPF_READ | OPF_ATOMIC |
                                         OPF_RESPONSE | OPF_FLUSH | OPF_ATOMIC_WRITE);
        if (info->name == NULL) {
            assert_int_equal(info->headers | info->flags | info->header_bytes, 0);
            continue;
        }
        assert_int_equal(bits(family), info->service != SERVICE_CNP);
        assert_int_equal((info->flags & OPF_FLUSH) != 0, (info->headers & HDR_FETH) != 0);
        bool has_place = (info->flags & (OPF_SEND | OPF_WRITE | OPF_READ_RESP)) != 0;
        assert_int_equal(bits(place), has_place ? 1 : 0);
        assert_int_equal((info->flags & OPF_IMM) != 0, (info->headers & HDR_IMMDT) != 0);
        assert_true((info->flags & OPF_IMM) == 0 || (place & (OPF_LAST | OPF_ONLY)) != 0);
        assert_true((info->flags & OPF_READ_RESP) == 0 || (info->flags & OPF_RESPONSE) != 0);
        /* The RETH opens a WRITE, and nothing else of it. */
        if (info->flags & OPF_WRITE)
            assert_int_equal((info->headers & HDR_RETH) != 0,
                             (place & (OPF_FIRST | OPF_ONLY)) != 0);
        assert_int_equal((info->flags & OPF_ATOMIC) != 0, (info->headers & HDR_ATOMICETH) != 0);
    }
}

static void opcode_info__names_differ(void **state)
{
    (void)state;
    for (int a = 0; a < 256; a++)
        for (int b = a + 1; b < 256; b++) {
            const char *name_a = opcode_info((uint8_t)a)->name;
            const char *name_b = opcode_info((uint8_t)b)->name;
            if (name_a != NULL && name_b != NULL)
                assert_string_not_equal(name_a, name_b);
        }
    assert_string_equal(opcode_info(0x0a)->name, "RC RDMA WRITE Only");
    assert_string_equal(opcode_info(0xb4)->name, "XRC FetchAdd");
}

static void opcode_make__values(void **state)
{
    (void)state;
    assert_int_equal(opcode_make(SERVICE_RC, OP_ACKNOWLEDGE), 0x11);
    assert_int_equal(opcode_make(SERVICE_UC, OP_WRITE_ONLY_IMM), 0x2b);
    assert_int_equal(opcode_make(SERVICE_UD, OP_SEND_ONLY), 0x64);
    assert_int_equal(opcode_make(SERVICE_XRC, OP_FLUSH), 0xbc);
    assert_int_equal(opcode_op(0xb4), OP_FETCH_ADD);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(opcode_info__layouts),
        cmocka_unit_test(opcode_info__flag_rules),
        cmocka_unit_test(opcode_info__names_differ),
        cmocka_unit_test(opcode_make__values),
    };
    return cmocka_run_group_tests_name("opcode", tests, NULL, NULL);
}
