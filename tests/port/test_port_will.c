/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_port_will.c: what is written into a last will is read back, and what its writer left half
 * done, or never meant, is not.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "port/port_will.h"

enum { SLOT = 77 };

static uint8_t *memory;
static struct will will;

static int will_begin(void **state)
{
    (void)state;
    memory = aligned_alloc(WILL_ENTRY_BYTES, WILL_BYTES);
    memset(memory, 0, WILL_BYTES);
    return will_create(&will, memory, SLOT);
}

static int will_end(void **state)
{
    (void)state;
    will_fini(&will);
    free(memory);
    return 0;
}

static struct port_connection connection(uint32_t number)
{
    return (struct port_connection){
        .local_id = SLOT << 22 | number,
        .remote_id = number * 3,
        .local_qpn = 0x4000 + number,
        .remote_qpn = number,
        .path = {.local = {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}},
                 .remote = {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}},
                 .udp_sport = 0xC000},
    };
}

/* Connections that a reader finds. */
static unsigned found(uint32_t *sum)
{
    int n = will_read_header(memory, SLOT);
    struct port_connection c;
    unsigned seen = 0;
    assert_true(n >= 0);
    *sum = 0;
    for (int i = 0; i < n; i++) {
        if (will_read_entry(memory + (size_t)WILL_ENTRY_BYTES * (1 + (unsigned)i), SLOT, &c)) {
            seen++;
            *sum += c.remote_qpn;
        }
    }
    return seen;
}

static void will__says_what_is_open(void **state)
{
    (void)state;
    uint32_t sum;
    int index[100];
    assert_int_equal(found(&sum), 0);
    for (uint32_t i = 1; i <= 100; i++) {
        struct port_connection c = connection(i);
        index[i - 1] = will_note(&will, &c);
        assert_true(index[i - 1] >= 0);
    }
    assert_int_equal(found(&sum), 100);
    assert_int_equal(sum, 5050);
    for (uint32_t i = 2; i <= 100; i += 2)
        will_forget(&will, (uint32_t)index[i - 1]);
    assert_int_equal(found(&sum), 50);
    assert_int_equal(sum, 2500);
    /* Places are used again before new ones. */
    for (uint32_t i = 2; i <= 100; i += 2) {
        struct port_connection c = connection(i);
        assert_in_range(will_note(&will, &c), 0, 99);
    }
    assert_int_equal(found(&sum), 100);
    assert_int_equal(sum, 5050);
}

static void will__has_a_limit(void **state)
{
    (void)state;
    uint32_t sum;
    struct port_connection c = connection(1);
    for (uint32_t i = 0; i < WILL_MAX_CONNECTIONS; i++)
        assert_int_equal(will_note(&will, &c), (int)i);
    assert_int_equal(will_note(&will, &c), -ENOSPC);
    assert_int_equal(found(&sum), WILL_MAX_CONNECTIONS);
    will_forget(&will, 5000);
    assert_int_equal(will_note(&will, &c), 5000);
    assert_int_equal(will_note(&will, &c), -ENOSPC);
}

/* Both the writer's mistake and the reader's protection. */
static void valid__rows(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t bytes[16];
        size_t n;
        bool valid;
    } rows[] = {
#define FIELD(f)       offsetof(struct port_connection, f)
#define LABEL_AND_RATE (sizeof(struct port_connection) - 4)  /* bit fields, the last word */
        {FIELD(remote_id),          {0},                    4,  true },
        {FIELD(path.udp_sport),     {0xff, 0xff},           2,  true },
        {LABEL_AND_RATE,            {0xff, 0xff, 0x0f, 0},  4,  true },
        {FIELD(path.traffic_class), {0xff},                 1,  true },
        {FIELD(local_id),           {0},                    4,  false},
        {FIELD(local_id),           {1, 0, 0, 0x14},        4,  false}, /* slot 80 */
        {FIELD(remote_qpn),         {0, 0, 0, 1},           4,  false},
        {FIELD(remote_qpn),         {0xff, 0xff, 0xff, 0},  4,  false},
        {LABEL_AND_RATE,            {0, 0, 0x10, 0},        4,  false},
        {FIELD(path.remote),        {0},                    16, false},
        {FIELD(path.local),         {0},                    16, false},
        {FIELD(path.remote),        {0xfe, 0x80, [15] = 1}, 16, false}, /* two families */
        {FIELD(path.remote) + 12,   {0, 0, 0, 0},           4,  false},
        {FIELD(path.remote) + 12,   {224, 0, 0, 1},         4,  false},
        {FIELD(path.local) + 12,    {255, 255, 255, 255},   4,  false},
#undef FIELD
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct port_connection c = connection(1);
        memcpy((uint8_t *)&c + rows[i].at, rows[i].bytes, rows[i].n);
        assert_int_equal(will_valid(&c, SLOT), rows[i].valid);
        assert_int_equal(will_note(&will, &c) >= 0, rows[i].valid);
    }
    struct port_connection c = connection(1);
    c.path.local = (struct net_addr){
        {0x20, 1, [15] = 1}
    };
    c.path.remote = (struct net_addr){
        {0xff, 2, [15] = 1}
    }; /* multicast */
    assert_false(will_valid(&c, SLOT));
    c.path.remote.b[0] = 0x20;
    assert_true(will_valid(&c, SLOT));
}

static void header__rows(void **state)
{
    (void)state;
    struct port_connection c = connection(1);
    assert_int_equal(will_note(&will, &c), 0);
    assert_int_equal(will_read_header(memory, SLOT), 1);
    assert_int_equal(will_read_header(memory, SLOT + 1), -EINVAL);
    static const struct {
        size_t at;
        uint32_t value;
        int want;
    } rows[] = {
        {offsetof(struct will_header, magic),         0,                        -EINVAL},
        {offsetof(struct will_header, slot),          SLOT - 1,                 -EINVAL},
        {offsetof(struct will_header, used),          WILL_MAX_CONNECTIONS + 1, -EINVAL},
        {offsetof(struct will_header, used),          UINT32_MAX,               -EINVAL},
        {WILL_SERVED_OFFSET,          1,              -EALREADY               },
        {WILL_SERVED_OFFSET,                 0x80000000,      -EALREADY                        },
        {offsetof(struct will_header,       used), WILL_MAX_CONNECTIONS,                         WILL_MAX_CONNECTIONS       },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t copy[WILL_ENTRY_BYTES];
        memcpy(copy, memory, sizeof(copy));
        memcpy(copy + rows[i].at, &rows[i].value, sizeof(rows[i].value));
        assert_int_equal(will_read_header(copy, SLOT), rows[i].want);
    }
}

/* Killed between two stores: what was being written does not count, all else does. */
static void entry__half_written_is_not_believed(void **state)
{
    (void)state;
    uint32_t sum;
    struct port_connection c;
    for (uint32_t i = 1; i <= 3; i++) {
        c = connection(i);
        assert_int_equal(will_note(&will, &c), (int)i - 1);
    }
    struct will_entry *e = &will.entry[1];
    uint32_t whole = atomic_load(&e->sequence);
    atomic_store(&e->sequence, whole + 1);
    e->connection.remote_id = 12345;
    assert_int_equal(found(&sum), 2);
    assert_int_equal(sum, 4);
    atomic_store(&e->sequence, 0);
    assert_int_equal(found(&sum), 2);
    /* The count ran out of numbers: never back to 0. */
    atomic_store(&e->sequence, UINT32_MAX - 1);
    will_forget(&will, 1);
    assert_int_equal(atomic_load(&e->sequence), 2);
    c = connection(9);
    assert_int_equal(will_note(&will, &c), 1);
    assert_int_equal(found(&sum), 3);
    assert_int_equal(sum, 13);
}

int main(void)
{
#define WILL(name) cmocka_unit_test_setup_teardown(name, will_begin, will_end)
    const struct CMUnitTest tests[] = {
        WILL(will__says_what_is_open),
        WILL(will__has_a_limit),
        WILL(valid__rows),
        WILL(header__rows),
        WILL(entry__half_written_is_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
