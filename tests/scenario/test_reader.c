/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_reader.c: fields by name, absent ones, and that only the first mistake is told.
 */
#include "scenario/reader.h"

#include "bench.h"

static void get__fields(void **state)
{
    (void)state;
    struct reader r;
    struct scenario_error e = {""};
    struct field root, a, b, c;
    struct scenario_set set[] = {
        {"a.b.c=7", false},
        {"a.b.c=8", false}
    };
    assert_true(
        reader_open(&r, bench_file("a:\n  b:\n    c: 3\n    d: [5, 6]\n"), NULL, set, 2, &e));
    reader_root(&r, &root);
    reader_get(&r, &root, "a", &a);
    reader_get(&r, &a, "b", &b);
    assert_string_equal(b.path, "a.b");
    reader_get(&r, &b, "c", &c);
    assert_int_equal(reader_quantity(&r, &c, QUANTITY_COUNT, 0, 100, 1), 8); /* the last one */
    reader_get(&r, &b, "d", &c);
    assert_int_equal(reader_items(&r, &c), 2);
    assert_int_equal(reader_priorities(&r, &c, 0), 1 << 5 | 1 << 6);
    reader_get(&r, &root, "q", &a);
    assert_false(reader_present(&r, &a));
    reader_get(&r, &a, "z", &c);
    assert_int_equal(reader_quantity(&r, &c, QUANTITY_COUNT, 0, 100, 42), 42);
    assert_null(reader_text(&r, &c));
    assert_int_equal(reader_items(&r, &c), 0);
    assert_int_equal(reader_choice(&r, &c, "x y", 9), 9);
    assert_false(r.failed);
    free(reader_close(&r));
    assert_false(r.failed);
}

/* What --set puts in the place of lists and groups: priorities, or nothing. */
static void set__lists_and_groups(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        uint8_t mask;
        const char *message; /* NULL: taken */
    } rows[] = {
        {"a.d=3",      1 << 3,          NULL                                                                     },
        {"a.d=0,7",    1 << 7 | 1,      NULL                                                                     },
        {"a.d=none",   0,               NULL                                                                     },
        {"a.d.1=2",    1 << 5 | 1 << 2, NULL                                                                     },
        {"a.d=8",      0,               "--set a.d: '8' is no list of priorities; 'none' or"                     },
        {"a.d=",       0,               "--set a.d: '' is no list of priorities"                                 },
        {"a.d=1,",     0,               "--set a.d: '1,' is no list"                                             },
        {"a.d=1;2",    0,               "--set a.d: '1;2' is no list"                                            },
        {"a.d=12",     0,               "--set a.d: '12' is no list"                                             },
        {"a.d=[1, 2]", 0,               "--set a.d: '[1, 2]' is no list"                                         },
        {"a.d.1=8",    0,               "--set a.d.1: '8' is out of range; from 0 to 7"                          },
        {"a.d.2=3",    0,               "--set a.d.2: there is no such item; the list has 2, from a.d.0 to a.d.1"},
        {"a=3",        0,               "--set a: '3' cannot stand for fields; they are expec"                   },
        {"a=3",        0,               ", as a.NAME=VALUE: c d e"                                               },
        {"a.e=x",      0,               "--set a.e: 'x' cannot stand for a list; items of it"                    },
        {"a.e=x",      0,               "are expected, as a.e.0"                                                 },
        {"b=on",       0,               "--set b: 'on' cannot stand for fields; they are expec"                  },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct reader r;
        struct scenario_error e = {""};
        struct field root, a, d;
        struct scenario_set set = {rows[i].set, false};
        assert_true(
            reader_open(&r, bench_file("a: {c: 3, d: [5, 6], e: [x]}\n"), NULL, &set, 1, &e));
        reader_root(&r, &root);
        reader_get(&r, &root, "a", &a);
        reader_keys(&r, &a, "c d e");
        reader_get(&r, &a, "d", &d);
        uint8_t mask = reader_priorities(&r, &d, 0xff);
        if (rows[i].message == NULL)
            assert_int_equal(mask, rows[i].mask);
        reader_get(&r, &a, "e", &d);
        reader_items(&r, &d);
        reader_get(&r, &root, "b", &a);
        bool keys = reader_keys(&r, &a, "p q");
        assert_int_equal(keys, !r.failed);
        free(reader_close(&r));
        assert_int_equal(r.failed, rows[i].message != NULL);
        if (r.failed)
            bench_contains(e.text, rows[i].message);
    }
}

static void fail__the_first_one(void **state)
{
    (void)state;
    struct reader r;
    struct scenario_error e = {""};
    struct field root, a;
    assert_true(reader_open(&r, bench_file("a: x\nb: y\n"), NULL, NULL, 0, &e));
    reader_root(&r, &root);
    reader_get(&r, &root, "a", &a);
    assert_int_equal(reader_quantity(&r, &a, QUANTITY_COUNT, 0, 9, 4), 4);
    reader_get(&r, &root, "b", &a);
    assert_int_equal(reader_quantity(&r, &a, QUANTITY_COUNT, 0, 9, 5), 5);
    assert_true(r.failed);
    bench_contains(e.text, "text.yaml:1: a: 'x' is not");
    free(reader_close(&r));
}

static void open__not_there(void **state)
{
    (void)state;
    struct reader r;
    struct scenario_error e = {""};
    assert_false(reader_open(&r, "no-such-file", NULL, NULL, 0, &e));
    bench_contains(e.text, "no-such-file: No such file");
    assert_false(reader_open(&r, bench_file("a: b: c\n"), NULL, NULL, 0, &e));
    bench_contains(e.text, "text.yaml:1: ");
    assert_false(reader_open(&r, bench_file("a: *nobody\n"), NULL, NULL, 0, &e));
    bench_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(get__fields),
        cmocka_unit_test(set__lists_and_groups),
        cmocka_unit_test(fail__the_first_one),
        cmocka_unit_test(open__not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
