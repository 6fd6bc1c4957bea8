/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_slot.c: each step from each owner, and contents that are damaged, old, new, elsewhere.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lab/lab_slot.h"

enum { SLOTS = 4, SLOT_BYTES = 4096 };

static uint8_t bytes[SLOTS * SLOT_BYTES];
static struct lab_pool p;

static int setup(void **state)
{
    (void)state;
    memset(bytes, 0, sizeof(bytes));
    return lab_pool_init(&p, bytes, SLOTS, SLOT_BYTES);
}

static int teardown(void **state)
{
    (void)state;
    lab_pool_clear(&p);
    return 0;
}

/* Brings slot 1 to an owner with sequence number 5. */
static void bring_to(enum lab_owner owner)
{
    lab_pool_clear(&p);
    setup(NULL);
    if (owner == LAB_FREE)
        return;
    assert_int_equal(lab_slot_claim(&p, 1, 5), 0);
    for (unsigned o = LAB_POSTED; o <= (unsigned)owner; o++)
        assert_int_equal(lab_slot_step(&p, 1, (enum lab_owner)o), 0);
}

static void lab_slot_step__every_pair(void **state)
{
    (void)state;
    static const bool allowed[LAB_OWNERS][LAB_OWNERS] = {
        [LAB_FREE][LAB_FILLED] = true,        [LAB_FREE][LAB_POSTED] = true,
        [LAB_FILLED][LAB_POSTED] = true,      [LAB_POSTED][LAB_COMPLETED] = true,
        [LAB_COMPLETED][LAB_NOTIFIED] = true, [LAB_NOTIFIED][LAB_ACKNOWLEDGED] = true,
        [LAB_ACKNOWLEDGED][LAB_FREE] = true,
    };
    for (unsigned from = 0; from < LAB_OWNERS; from++) {
        for (unsigned to = 0; to < LAB_OWNERS; to++) {
            bring_to((enum lab_owner)from);
            int error = lab_slot_step(&p, 1, (enum lab_owner)to);
            assert_int_equal(error, allowed[from][to] ? 0 : -EPROTO);
            assert_int_equal(p.slot[1].owner, allowed[from][to] ? to : from);
        }
    }
}

/* The planted fault: filled again while it is under way. */
static void lab_slot_claim__early_reuse(void **state)
{
    (void)state;
    for (unsigned o = LAB_FILLED; o < LAB_OWNERS; o++) {
        bring_to((enum lab_owner)o);
        assert_int_equal(lab_slot_claim(&p, 1, 9), -EPROTO);
        assert_non_null(strstr(p.message, "reuse before the acknowledgement"));
        assert_non_null(strstr(p.message, "slot 1"));
        assert_non_null(strstr(p.message, "filled #5"));
        assert_int_equal(p.slot[1].sequence, 5);
    }
}

static void lab_slot_acknowledge__before_the_completion(void **state)
{
    (void)state;
    assert_int_equal(lab_slot_claim(&p, 1, 5), 0);
    assert_int_equal(lab_slot_step(&p, 1, LAB_POSTED), 0);
    assert_int_equal(lab_slot_acknowledge(&p, 1, 5), 0);
    assert_int_equal(p.slot[1].owner, LAB_POSTED);
    assert_false(lab_slot_release(&p, 1)); /* it is still the device's */
    assert_int_equal(lab_slot_complete(&p, 1), 0);
    assert_int_equal(p.slot[1].owner, LAB_ACKNOWLEDGED);
    assert_true(lab_slot_release(&p, 1));
    assert_int_equal(p.slot[1].owner, LAB_FREE);
}

static void lab_slot_acknowledge__invalid(void **state)
{
    (void)state;
    assert_int_equal(lab_slot_acknowledge(&p, 1, 5), -EPROTO); /* free */
    assert_int_equal(lab_slot_claim(&p, 1, 5), 0);
    assert_int_equal(lab_slot_acknowledge(&p, 1, 5), -EPROTO); /* filled */
    assert_int_equal(lab_slot_step(&p, 1, LAB_POSTED), 0);
    assert_int_equal(lab_slot_acknowledge(&p, 1, 1), -EPROTO); /* another number */
    assert_int_equal(lab_slot_acknowledge(&p, 1, 5), 0);
    assert_int_equal(lab_slot_acknowledge(&p, 1, 5), -EPROTO); /* twice */
    assert_int_equal(lab_slot_complete(&p, 1), 0);
    assert_int_equal(lab_slot_acknowledge(&p, 1, 5), -EPROTO); /* a third time */
    assert_int_equal(lab_slot_complete(&p, 1), -EPROTO);
}

/* Above what loses messages: the same contents again, as often as it takes. */
static void lab_slot_resend__only_what_nobody_acknowledged(void **state)
{
    (void)state;
    for (unsigned o = 0; o < LAB_OWNERS; o++) {
        bring_to((enum lab_owner)o);
        assert_int_equal(lab_slot_resend(&p, 1), o == LAB_NOTIFIED ? 0 : -EPROTO);
        assert_int_equal(p.slot[1].owner, o == LAB_NOTIFIED ? LAB_POSTED : o);
    }
}

static void lab_pool_recall__all_free(void **state)
{
    (void)state;
    for (unsigned o = 0; o < LAB_OWNERS; o++) {
        bring_to((enum lab_owner)o);
        lab_pool_recall(&p);
        assert_int_equal(lab_slot_claim(&p, 1, 9), 0);
    }
    assert_int_equal(lab_slot_step(&p, 1, LAB_POSTED), 0);
    assert_int_equal(lab_slot_acknowledge(&p, 1, 9), 0);
    lab_pool_recall(&p); /* an early acknowledgement is forgotten, too */
    assert_int_equal(lab_slot_claim(&p, 1, 13), 0);
    assert_int_equal(lab_slot_step(&p, 1, LAB_POSTED), 0);
    assert_int_equal(lab_slot_complete(&p, 1), 0);
    assert_int_equal(p.slot[1].owner, LAB_NOTIFIED);
}

static void lab_slot_trace__last_steps(void **state)
{
    (void)state;
    char text[512];
    lab_slot_trace(&p, 0, text, sizeof(text));
    assert_string_equal(text, "never used");
    for (uint64_t s = 0; s < 40; s += SLOTS) {
        assert_int_equal(lab_slot_claim(&p, 0, s), 0);
        assert_int_equal(lab_slot_step(&p, 0, LAB_POSTED), 0);
        assert_int_equal(lab_slot_complete(&p, 0), 0);
        assert_int_equal(lab_slot_acknowledge(&p, 0, s), 0);
        assert_true(lab_slot_release(&p, 0));
    }
    lab_slot_trace(&p, 0, text, sizeof(text));
    assert_null(strstr(text, "#24"));
    assert_string_equal(strstr(text, "filled #32"),
                        "filled #32, posted #32, completed #32, notified #32, acknowledged #32, "
                        "free #32, filled #36, posted #36, completed #36, notified #36, "
                        "acknowledged #36, free #36");
    lab_slot_trace(&p, 0, text, 10); /* what does not fit is left out */
    assert_true(strlen(text) < 10);
}

static const uint32_t lengths[] = {2, 3, 8, 31, 32, 33, 40, 64, 1000, 4095, 4096};
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

static void make(uint32_t slot, uint64_t sequence, uint32_t length)
{
    lab_slot_fill(lab_slot_bytes(&p, slot), slot, sequence, length);
    if (length >= sizeof(struct lab_slot_head))
        lab_slot_seal(lab_slot_bytes(&p, slot));
}

static struct lab_expect expect(uint64_t sequence, uint32_t length)
{
    return (struct lab_expect){(uint32_t)(sequence % SLOTS), SLOTS, sequence, length, SLOT_BYTES};
}

static enum lab_verdict check(uint64_t sequence, uint32_t length, uint32_t *offset)
{
    struct lab_expect e = expect(sequence, length);
    return lab_slot_check(lab_slot_bytes(&p, e.slot), &e, offset);
}

static void lab_slot_check__good(void **state)
{
    (void)state;
    uint32_t offset;
    for (unsigned i = 0; i < LENGTHS; i++) {
        for (uint64_t s = 0; s < 12; s++) {
            make((uint32_t)(s % SLOTS), s, lengths[i]);
            assert_int_equal(check(s, lengths[i], &offset), LAB_DATA_GOOD);
            assert_int_equal(offset, lengths[i]);
        }
    }
}

/* Each single byte, and each bit of the first ones: the place is told. */
static void lab_slot_check__every_byte(void **state)
{
    (void)state;
    uint32_t offset;
    for (unsigned i = 0; i < LENGTHS; i++) {
        for (uint32_t at = 0; at < lengths[i]; at++) {
            make(1, 5, lengths[i]);
            lab_slot_bytes(&p, 1)[at] ^= (uint8_t)(1 << at % 8);
            assert_int_equal(check(5, lengths[i], &offset), LAB_DATA_CORRUPT);
            /* A damaged checksum has its beginning as its place. */
            bool checksum = lengths[i] >= 32 && at >= 24 && at < 32;
            assert_int_equal(offset, checksum ? 24 : at);
        }
    }
}

/* What came late or was never written is old, not damaged. */
static void case_137__stale_is_not_corrupt(void **state)
{
    (void)state;
    uint32_t offset;
    for (unsigned i = 0; i < LENGTHS; i++) {
        make(1, 5, lengths[i]);
        assert_int_equal(check(5 + SLOTS, lengths[i], &offset), LAB_DATA_STALE);
        make(1, 5 + 2 * SLOTS, lengths[i]);
        assert_int_equal(check(5 + SLOTS, lengths[i], &offset), LAB_DATA_AHEAD);
    }
    /* From a case with other lengths. */
    make(1, 5, 4096);
    assert_int_equal(check(5 + SLOTS, 64, &offset), LAB_DATA_STALE);
    make(1, 5, 64);
    assert_int_equal(check(5 + SLOTS, 4096, &offset), LAB_DATA_STALE);
}

/* What is blank where it is wrong was lost; what is wrong otherwise was not. */
static void lab_slot_lacks__only_what_is_blank(void **state)
{
    (void)state;
    enum { PIECE = 512, LONG = 4 * PIECE };
    static const struct {
        uint32_t length;
        unsigned came; /* pieces, as bits */
        uint32_t damaged;
        bool lacks;
    } rows[] = {
        {LONG, 0xf, LONG,     true },
        {LONG, 0x7, LONG,     true },
        {LONG, 0x1, LONG,     true },
        {LONG, 0xa, LONG,     true },
        {LONG, 0x0, LONG,     true },
        {16,   0x0, 16,       true },
        {LONG, 0xf, LONG - 1, false},
        {LONG, 0xf, 0,        false},
        {LONG, 0x3, PIECE,    true }, /* wrong, but not all is here */
        {LONG, 0x7, PIECE,    true },
        {LONG, 0xf, 24,       false}, /* the checksum */
        {16,   0x1, 15,       false},
        {16,   0x0, 3,        false},
    };
    static uint8_t sent[LONG], here[LONG];
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t length = rows[i].length;
        const struct lab_expect e = {1, SLOTS, 5, length, SLOT_BYTES};
        lab_slot_fill(sent, 1, 5, length);
        if (length > 32)
            lab_slot_seal(sent);
        lab_slot_blank(here, length);
        for (unsigned k = 0; k * PIECE < length; k++)
            if ((rows[i].came >> k & 1) != 0)
                memcpy(here + (size_t)k * PIECE, sent + (size_t)k * PIECE,
                       length < PIECE ? length : PIECE);
        if (rows[i].damaged < length)
            here[rows[i].damaged] ^= 0x55;
        assert_int_equal(lab_slot_lacks(here, &e), rows[i].lacks);
    }
    /* What was there before and is whole is stale, not lost. */
    const struct lab_expect now = {1, SLOTS, 5, LONG, SLOT_BYTES};
    lab_slot_fill(here, 1, 1, LONG);
    lab_slot_seal(here);
    assert_false(lab_slot_lacks(here, &now));
    lab_slot_blank(here + PIECE, PIECE); /* not whole: nobody knows yet */
    assert_true(lab_slot_lacks(here, &now));
}

static void lab_slot_check__elsewhere_and_other_length(void **state)
{
    (void)state;
    uint32_t offset;
    struct lab_expect e = expect(5, 64);
    make(2, 5, 64);
    assert_int_equal(lab_slot_check(lab_slot_bytes(&p, 2), &e, &offset), LAB_DATA_MISPLACED);
    make(1, 5, 60);
    assert_int_equal(check(5, 64, &offset), LAB_DATA_CORRUPT);
    make(1, 5, 64);
    assert_int_equal(check(5, 60, &offset), LAB_DATA_CORRUPT);
    memset(bytes, 0, sizeof(bytes)); /* nothing was ever written */
    assert_int_equal(check(5, 64, &offset), LAB_DATA_CORRUPT);
    assert_int_equal(check(5, 2, &offset), LAB_DATA_CORRUPT);
    memset(bytes, 0xff, sizeof(bytes)); /* lengths in it lead nowhere */
    assert_int_equal(check(5, 64, &offset), LAB_DATA_CORRUPT);
}

static void lab_slot_say__texts(void **state)
{
    (void)state;
    char text[128];
    struct lab_expect e = expect(9, 64);
    make(1, 5, 64);
    lab_slot_say(lab_slot_bytes(&p, 1), &e, LAB_DATA_STALE, 0, text, sizeof(text));
    assert_string_equal(text, "slot 1, #9, 64 bytes: stale: has slot 1, #5");
    lab_slot_say(lab_slot_bytes(&p, 1), &e, LAB_DATA_CORRUPT, 40, text, sizeof(text));
    assert_string_equal(text, "slot 1, #9, 64 bytes: corrupt from byte 40 on");
    e.length = 8;
    lab_slot_say(lab_slot_bytes(&p, 1), &e, LAB_DATA_AHEAD, 0, text, sizeof(text));
    assert_string_equal(text, "slot 1, #9, 8 bytes: ahead");
}

/* Words of version 7 up to an offset, of version 8 from there on. */
static enum lab_mixed mix(uint32_t offset, uint32_t length, struct lab_mixture *m)
{
    uint8_t other[SLOT_BYTES];
    lab_slot_fill(bytes, 0, 7, length);
    lab_slot_seal(bytes);
    lab_slot_fill(other, 0, 8, length);
    lab_slot_seal(other);
    memcpy(bytes + offset, other + offset, length - offset);
    return lab_slot_mixed(bytes, 0, length, m);
}

static void lab_slot_mixed__where_versions_meet(void **state)
{
    (void)state;
    struct lab_mixture m;
    assert_int_equal(mix(1024, 1024, &m), LAB_ONE_VERSION);
    assert_int_equal(m.sequence, 7);
    assert_int_equal(mix(0, 1024, &m), LAB_ONE_VERSION);
    assert_int_equal(m.sequence, 8);
    for (uint32_t at = 32; at < 1024; at += 8) {
        assert_int_equal(mix(at, 1024, &m), LAB_SEVERAL_VERSIONS);
        assert_int_equal(m.sequence, 7);
        assert_int_equal(m.other, 8);
        assert_int_equal(m.offset, at);
        assert_int_equal(m.changes, 1);
        assert_false(m.ends_agree);
    }
    assert_int_equal(mix(24, 1024, &m), LAB_SEVERAL_VERSIONS); /* the checksum's word */
    mix(512, 1024, &m);
    uint8_t middle[256];
    memcpy(middle, bytes + 512, sizeof(middle));
    mix(1024, 1024, &m);
    memcpy(bytes + 512, middle, sizeof(middle)); /* 7, 8, and 7 again */
    assert_int_equal(lab_slot_mixed(bytes, 0, 1024, &m), LAB_SEVERAL_VERSIONS);
    assert_int_equal(m.changes, 2);
    assert_true(m.ends_agree);
}

static void lab_slot_mixed__damage_is_no_version(void **state)
{
    (void)state;
    struct lab_mixture m;
    for (uint32_t at = 32; at < 256; at++) {
        mix(128, 256, &m);
        bytes[at] ^= 0x10;
        assert_int_equal(lab_slot_mixed(bytes, 0, 256, &m), LAB_NO_VERSION);
        assert_int_equal(m.offset, at & ~7u);
    }
    for (uint32_t at = 0; at < 8; at++) { /* magic and slot */
        mix(256, 256, &m);
        bytes[at] ^= 0x10;
        assert_int_equal(lab_slot_mixed(bytes, 0, 256, &m), LAB_NO_VERSION);
    }
    mix(256, 256, &m);
    assert_int_equal(lab_slot_mixed(bytes, 1, 256, &m), LAB_NO_VERSION);
    assert_int_equal(lab_slot_mixed(bytes, 0, 248, &m), LAB_NO_VERSION);
    memset(bytes, 0, 256);
    assert_int_equal(lab_slot_mixed(bytes, 0, 256, &m), LAB_NO_VERSION);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lab_slot_step__every_pair),
        TEST(lab_slot_claim__early_reuse),
        TEST(lab_slot_acknowledge__before_the_completion),
        TEST(lab_slot_acknowledge__invalid),
        TEST(lab_slot_resend__only_what_nobody_acknowledged),
        TEST(lab_pool_recall__all_free),
        TEST(lab_slot_trace__last_steps),
        TEST(lab_slot_check__good),
        TEST(lab_slot_check__every_byte),
        TEST(case_137__stale_is_not_corrupt),
        TEST(lab_slot_lacks__only_what_is_blank),
        TEST(lab_slot_check__elsewhere_and_other_length),
        TEST(lab_slot_say__texts),
        TEST(lab_slot_mixed__where_versions_meet),
        TEST(lab_slot_mixed__damage_is_no_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
