/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench.h: a text as a file, for tests of what reads files.
 */
#ifndef TESTS_SCENARIO_BENCH_H
#define TESTS_SCENARIO_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka wants these first */
#include <cmocka.h>

#include "scenario/scenario.h"

/* The file's name is text.yaml, in a folder of its own that is the working one from then on. */
static inline const char *bench_file(const char *text)
{
    static const char *const name = "text.yaml";
    static bool moved;
    if (!moved) {
        char folder[] = "/tmp/verbena-scenario-XXXXXX";
        assert_non_null(mkdtemp(folder));
        assert_int_equal(chdir(folder), 0);
        moved = true;
    }
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return name;
}

static inline void bench_end(void)
{
    char folder[4096];
    (void)unlink("text.yaml");
    if (getcwd(folder, sizeof(folder)) != NULL && strstr(folder, "verbena-scenario-") != NULL)
        (void)rmdir(folder);
}

static inline void bench_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no '%s' in '%s'", part, text);
}

#endif
