/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_ranks.c: what ranks say of themselves, and what is wrong with it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "made_ranks.h"

static char message[LAB_MESSAGE_BYTES];

static void lab_ranks_read__same(void **state)
{
    (void)state;
    struct lab_settings s;
    struct lab_boot b;
    struct lab_ranks r;
    uint8_t one[LAB_KEY_BYTES], other[LAB_KEY_BYTES];
    lab_settings_init(&s);
    made_boot(&b, &s);
    b.rank = 2;
    assert_int_equal(lab_ranks_read(&r, &b, message), 0);
    assert_int_equal(r.own, 2);
    assert_int_equal(r.count, MADE_RANKS);
    assert_int_equal(r.hub, 4000);
    assert_int_equal(r.key[2], 3);
    assert_string_equal(r.rank[1].host, "b");
    assert_int_equal(r.rank[0].machine, r.rank[2].machine);
    assert_int_not_equal(r.rank[0].machine, r.rank[1].machine);
    assert_null(json_object_get(r.rank[0].self, "key"));
    lab_ranks_key(&r, "hub", 0, one);
    lab_ranks_key(&r, "meeting", 0, other);
    assert_memory_not_equal(one, other, sizeof(one));
    lab_ranks_key(&r, "meeting", 1, one);
    assert_memory_not_equal(one, other, sizeof(one));
    lab_ranks_clear(&r);
    assert_int_equal(r.key[2], 0);
    lab_boot_clear(&b);
}

/* The text of one rank with one member changed; NULL: gone. */
static void change(struct lab_boot *b, unsigned rank, const char *name, json_t *value)
{
    json_t *o = json_loads(b->texts[rank], 0, NULL);
    if (value != NULL)
        json_object_set_new(o, name, value);
    else
        json_object_del(o, name);
    free(b->texts[rank]);
    b->texts[rank] = json_dumps(o, 0);
    json_decref(o);
}

static void lab_ranks_read__wrong(void **state)
{
    (void)state;
    static const struct {
        unsigned rank;
        const char *name, *value; /* JSON; NULL: gone */
        const char *says;
    } rows[] = {
        {1, "speaks",    "\"verbena lab mpi, protocol 9\"",
         "rank 1 on b speaks 'verbena lab mpi, protocol 9' (version"                             },
        {2, "speaks",    NULL,                              "rank 2 on a speaks 'nothing'"       },
        {0, "speaks",    "7",                               "rank 0 on a speaks 'nothing'"       },
        {1, "addresses", "[]",                              "network: rank 1 on b has no address"},
        {1, "addresses", NULL,                              "network: rank 1 on b has no address"},
        {1, "settings",  "{}",                              "op is "                             },
        {2, "settings",  NULL,                              "nothing for rank 2 on a"            },
        {0, "key",       "\"01\"",                          "no right key"                       },
        {0, "key",       "\"zz\"",                          "no right key"                       },
        {0, "key",       NULL,                              "no right key"                       },
        {0, "hub",       "0",                               "no right key or port"               },
        {0, "hub",       "65536",                           "no right key or port"               },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lab_settings s;
        struct lab_boot b;
        struct lab_ranks r;
        lab_settings_init(&s);
        made_boot(&b, &s);
        change(&b, rows[i].rank, rows[i].name,
               rows[i].value != NULL ? json_loads(rows[i].value, JSON_DECODE_ANY, NULL) : NULL);
        assert_true(lab_ranks_read(&r, &b, message) < 0);
        if (strstr(message, rows[i].says) == NULL)
            fail_msg("row %u: %s", i, message);
        lab_ranks_clear(&r);
        lab_boot_clear(&b);
    }
}

static void lab_ranks_read__settings(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        bool differs; /* and must not */
    } rows[] = {
        {"size",      "64",       true },
        {"retry",     "5ms",      true },
        {"max-p99",   "1ms",      true },
        {"min-ratio", "2",        true },
        {"device",    "vb_eth1",  false}, /* of each machine */
        {"gid-index", "3",        false},
        {"json",      "file",     false}, /* rank 0 writes it */
        {"network",   "10.0.0.1", false},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lab_settings s;
        struct lab_boot b, changed;
        struct lab_ranks r;
        lab_settings_init(&s);
        made_boot(&b, &s);
        assert_int_equal(
            lab_settings_set(&s, (unsigned)lab_settings_find(rows[i].name), rows[i].text, message),
            0);
        made_boot(&changed, &s);
        free(b.texts[1]);
        b.texts[1] = changed.texts[1];
        changed.texts[1] = NULL;
        assert_int_equal(lab_ranks_read(&r, &b, message), rows[i].differs ? -EINVAL : 0);
        if (rows[i].differs)
            assert_int_equal(strncmp(message, rows[i].name, strlen(rows[i].name)), 0);
        lab_ranks_clear(&r);
        lab_boot_clear(&b);
        lab_boot_clear(&changed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_ranks_read__same),
        cmocka_unit_test(lab_ranks_read__wrong),
        cmocka_unit_test(lab_ranks_read__settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
