/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_kinds.c: each kind takes the fields that are its own, and refuses those of all others.
 */
#include "scenario/kinds.h"

#include "bench.h"

struct words {
    const char *at;
    char word[32];
};

static bool next(struct words *w)
{
    size_t n = strcspn(w->at, " ");
    assert_in_range(n, 0, sizeof(w->word) - 1);
    snprintf(w->word, sizeof(w->word), "%.*s", (int)n, w->at);
    w->at += n + (w->at[n] == ' ');
    return n > 0;
}

static bool has(const char *fields, const char *word)
{
    struct words w = {.at = fields};
    while (next(&w))
        if (strcmp(w.word, word) == 0)
            return true;
    return false;
}

/* What the scenario says of one more field: without a value, so that its own kind complains of that
 * at most. */
static void try_field(const char *format, const char *kind, const char *field,
                      struct scenario_error *e)
{
    char text[512];
    struct scenario s;
    *e = (struct scenario_error){""};
    snprintf(text, sizeof(text), format, kind, field);
    scenario_init(&s);
    (void)scenario_read_yaml(&s, bench_file(text), NULL, 0, e);
    scenario_free(&s);
}

static void check_table(const struct kind *kinds, const char *format, const char *key)
{
    unsigned refused = 0, taken = 0;
    for (const struct kind *k = kinds; k->name != NULL; k++)
        for (const struct kind *other = kinds; other->name != NULL; other++) {
            struct words w = {.at = other->fields};
            assert_true(has(k->fields, key));
            while (next(&w)) {
                struct scenario_error e;
                char want[96];
                snprintf(want, sizeof(want), "there is no field '%s' with %s %s; expected: %s",
                         w.word, key, k->name, key);
                if (strcmp(w.word, key) == 0)
                    continue;
                try_field(format, k->name, w.word, &e);
                bool own = has(k->fields, w.word);
                if ((strstr(e.text, want) == NULL) != own)
                    fail_msg("%s of %s: %s", w.word, k->name, e.text);
                refused += !own;
                taken += own;
            }
        }
    assert_true(refused > 0 && taken > 0);
}

#define STAR "topology: {shape: star, hosts: 4}\n"
#define WORK "workload: [{op: incast, to: h3}]\n"

static void kinds__take_their_own(void **state)
{
    (void)state;
    check_table(kinds_shape, "topology: {shape: %s, %s: }\n" WORK, "shape");
    check_table(kinds_op, STAR "workload: [{op: %s, %s: }]\n", "op");
    check_table(kinds_fault, STAR WORK "faults: [{fault: %s, %s: }]\n", "fault");
    check_table(kinds_nic, STAR WORK "hosts: {nic: %s, %s: }\n", "nic");
}

static void verbs__take_their_own(void **state)
{
    (void)state;
    unsigned refused = 0;
    for (const struct kind *k = kinds_verb; k->name != NULL; k++) {
        struct words w = {.at = KINDS_VERB_FIELDS}, own = {.at = k->fields};
        while (next(&own))
            assert_true(has(KINDS_VERB_FIELDS, own.word));
        while (next(&w)) {
            struct scenario_error e;
            if (strcmp(w.word, "verb") == 0)
                continue;
            try_field(STAR "workload: [{op: incast, to: h3, verb: %s, %s: }]\n", k->name, w.word,
                      &e);
            if ((strstr(e.text, "it has no meaning with verb ") == NULL) != has(k->fields, w.word))
                fail_msg("%s of %s: %s", w.word, k->name, e.text);
            refused += !has(k->fields, w.word);
        }
    }
    assert_in_range(refused, 1, 99);
    bench_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds__take_their_own),
        cmocka_unit_test(verbs__take_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
