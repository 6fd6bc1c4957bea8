/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_failure.c: what is printed of a failure, with a world of our own that fails, dies or does
 * neither, as its choices say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "failure.h"

static struct world world;

/* Fails when a 5 is among the first hundred choices and a 7 or more comes after it; dies of a 9 in
 * the third place. */
bool world_run(struct world *w, struct tape *tape, uint64_t seed)
{
    bool five = false;
    w->failed = false;
    w->seed = seed;
    for (int i = 0; i < 100; i++) {
        uint32_t v = tape_below(tape, 10);
        if (i == 2 && v == 9)
            abort();
        if (five && v >= 7) {
            w->failed = true;
            w->why_kind = "seven or more";
            snprintf(w->why, sizeof(w->why), "seven or more: %u", v);
            return false;
        }
        five = five || v == 5;
    }
    return true;
}

void world_print(const struct world *w)
{
    printf("# trace of seed %llu\n", (unsigned long long)w->seed);
}

/* What failure_report prints of these choices. */
static void said(const char *text, bool shrink, char *out, size_t cap)
{
    char path[] = "/tmp/verbena-failure-XXXXXX";
    struct choices list;
    struct tape tape;
    int fd = mkstemp(path), old = dup(STDOUT_FILENO);
    assert_true(fd >= 0 && old >= 0);
    choices_init(&list, false);
    assert_true(choices_parse(&list, text));
    tape_choices(&tape, &list);
    fflush(stdout);
    dup2(fd, STDOUT_FILENO);
    failure_report(&world, &tape, list.seed, "test", shrink);
    fflush(stdout);
    dup2(old, STDOUT_FILENO);
    ssize_t n = pread(fd, out, cap - 1, 0);
    out[n < 0 ? 0 : n] = '\0';
    choices_fini(&list);
    unlink(path);
    close(fd);
    close(old);
}

static void failure_report__shrinks(void **state)
{
    static const struct {
        const char *from, *want[3];
    } row[] = {
        {"0x17: 1 5 3 4 0*20 8 1", {"'0x17: 5 7'", "# seven or more: 7", "# trace of seed 23"}},
        {"0x17: 1 1 9 5 8",        {"'0x17: 0*2 9'", "# the process died", "# trace of seed"} },
        {"0x17: 5 8 9 8",          {"'0x17: 5 7'", "# seven or more: 7", "# trace of seed 23"}},
        {"0x17: 1 5 3 4",          {"not made smaller", "", ""}                               },
    };
    char folder[] = "/tmp/verbena-failure-XXXXXX", path[100], text[2000];
    (void)state;
    assert_non_null(mkdtemp(folder));
    setenv("VERBENA_TAPES", folder, 1);
    snprintf(path, sizeof(path), "%s/test.tape", folder);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        said(row[i].from, true, text, sizeof(text));
        for (int k = 0; k < 3; k++)
            if (strstr(text, row[i].want[k]) == NULL)
                fail_msg("%s: no %s in\n%s", row[i].from, row[i].want[k], text);
        FILE *f = fopen(path, "r");
        bool smaller = strstr(text, "# smaller: test_world --choices") != NULL;
        assert_int_equal(f != NULL, smaller);
        assert_int_equal(strstr(text, path) != NULL, smaller);
        if (f != NULL) {
            char line[100] = "";
            assert_non_null(fgets(line, sizeof(line), f));
            assert_memory_equal(line, "choices 0x17: ", strlen("choices 0x17: "));
            fclose(f);
        }
        unlink(path);
    }
    rmdir(folder);
}

static void failure_report__no_shrink(void **state)
{
    char text[2000];
    (void)state;
    said("0x17: 1 5 3 4 0*20 8 1", false, text, sizeof(text));
    assert_string_equal(text, "# trace of seed 23\n");
}

static void failure_probe__verdicts(void **state)
{
    static const struct {
        const char *text, *why;
    } row[] = {
        {"1:",           ""                         },
        {"1: 5 6",       ""                         },
        {"1: 0*99 5 9",  ""                         },
        {"1: 5 9",       "seven or more: 9"         },
        {"1: 0 0 9 5 8", "the process died: Aborted"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct choices list;
        struct tape tape;
        struct verdict v;
        choices_init(&list, false);
        assert_true(choices_parse(&list, row[i].text));
        tape_choices(&tape, &list);
        failure_probe(&world, &tape, 1, &v);
        assert_int_equal(v.failed, row[i].why[0] != '\0');
        assert_string_equal(v.why, row[i].why);
        choices_fini(&list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failure_report__shrinks),
        cmocka_unit_test(failure_report__no_shrink),
        cmocka_unit_test(failure_probe__verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
