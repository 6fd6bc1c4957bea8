/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_output.c: a file gets its name when it is whole; until then, and if it is not, what was
 * there stays.
 */
#include "scenario/output.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "bench.h"

static bool has(const char *path, const char *text)
{
    char found[64] = {0};
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return text == NULL;
    found[fread(found, 1, sizeof(found) - 1, f)] = '\0';
    fclose(f);
    return text != NULL && strcmp(found, text) == 0;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void commit__then_it_has_its_name(void **state)
{
    (void)state;
    struct output o;
    struct scenario_error e;
    bench_file("old");
    for (int there = 0; there < 2; there++) {
        const char *name = there == 1 ? "text.yaml" : "new";
        assert_true(output_open(&o, name, &e));
        fputs("whole", o.file);
        assert_int_equal(fflush(o.file), 0);
        assert_true(has(name, there == 1 ? "old" : NULL));
        assert_true(output_commit(&o, &e));
        assert_true(has(name, "whole"));
        assert_true(has("new.part", NULL) && has("text.yaml.part", NULL));
    }
    unlink("new");
}

static void abandon__all_is_as_it_was(void **state)
{
    (void)state;
    struct output o;
    struct scenario_error e;
    bench_file("old");
    assert_true(output_open(&o, "text.yaml", &e));
    fputs("half", o.file);
    output_abandon(&o);
    assert_true(has("text.yaml", "old") && has("text.yaml.part", NULL));
    output_abandon(&o); /* is not open */
    assert_true(output_open(&o, "new", &e));
    output_abandon(&o);
    assert_true(has("new", NULL) && has("new.part", NULL));
}

/* A killed run has left its part: the next one begins anew. */
static void open__what_was_left(void **state)
{
    (void)state;
    struct output o;
    struct scenario_error e;
    bench_file("old");
    put("text.yaml.part", "much longer than what follows");
    assert_true(output_open(&o, "text.yaml", &e));
    fputs("whole", o.file);
    assert_true(output_commit(&o, &e));
    assert_true(has("text.yaml", "whole"));
}

static void open__by_two(void **state)
{
    (void)state;
    struct output first, second;
    struct scenario_error e;
    bench_file("old");
    assert_true(output_open(&first, "text.yaml", &e));
    fputs("first", first.file);
    assert_false(output_open(&second, "./text.yaml", &e));
    bench_contains(e.text, "text.yaml: another run writes it");
    assert_null(second.path);
    assert_true(output_commit(&first, &e));
    assert_true(has("text.yaml", "first"));
    assert_true(output_open(&second, "text.yaml", &e));
    output_abandon(&second);
}

/* Its name stays a link. */
static void open__by_a_link(void **state)
{
    (void)state;
    struct output o;
    struct scenario_error e;
    struct stat st;
    bench_file("old");
    assert_int_equal(symlink("text.yaml", "link"), 0);
    assert_true(output_open(&o, "link", &e));
    fputs("whole", o.file);
    assert_true(output_commit(&o, &e));
    assert_true(has("text.yaml", "whole"));
    assert_int_equal(lstat("link", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    unlink("link");
}

static void open__refused(void **state)
{
    (void)state;
    static const struct {
        const char *path, *says;
    } rows[] = {
        {"no/such/folder", "no/such/folder: No such file or directory"},
        {"text.yaml/file", "text.yaml/file"                           },
        {"folder",         "folder: Is a directory"                   },
        {"",               "No such file or directory"                },
    };
    struct output o;
    struct scenario_error e;
    bench_file("old");
    assert_int_equal(mkdir("folder", 0777), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_false(output_open(&o, rows[i].path, &e));
        bench_contains(e.text, rows[i].says);
        assert_null(o.path);
    }
    rmdir("folder");
    assert_true(has("text.yaml", "old"));
}

/* Root may write what is read-only, so it is the kernel that is asked. */
static void open__read_only(void **state)
{
    (void)state;
    struct output o;
    struct scenario_error e;
    bench_file("old");
    assert_int_equal(chmod("text.yaml", 0444), 0);
    bool may = access("text.yaml", W_OK) == 0;
    assert_true(output_open(&o, "text.yaml", &e) == may);
    output_abandon(&o);
    assert_true(has("text.yaml", "old") && has("text.yaml.part", NULL));
    assert_int_equal(chmod("text.yaml", 0644), 0);
}

/* Devices are written as they stand, and what they refuse is told. */
static void commit__to_a_device(void **state)
{
    (void)state;
    struct output o;
    struct scenario_error e;
    struct stat st;
    assert_true(output_open(&o, "/dev/null", &e));
    fputs("nothing", o.file);
    assert_true(output_commit(&o, &e));
    for (int much = 0; much < 2; much++) {
        assert_true(output_open(&o, "/dev/full", &e));
        for (int i = 0; i < (much == 1 ? 100000 : 1); i++)
            fputs("something", o.file);
        assert_false(output_commit(&o, &e));
        bench_contains(e.text, "/dev/full: it could not be written: No space left on device");
    }
    output_abandon(&o);
    assert_int_equal(stat("/dev/full", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

/* No room for all of it: what was there stays, and half of the new one does not. */
static void commit__not_whole(void **state)
{
    (void)state;
    struct output o;
    struct scenario_error e;
    struct rlimit before, little;
    bench_file("old");
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = (struct rlimit){4096, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    bool opened = output_open(&o, "text.yaml", &e);
    for (int i = 0; opened && i < 10000; i++)
        fputs("something", o.file);
    bool whole = opened && output_commit(&o, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(opened && !whole);
    bench_contains(e.text, "text.yaml: it could not be written: File too large");
    assert_true(has("text.yaml", "old") && has("text.yaml.part", NULL));
}

/* Its place has gone: what could not get its name is told. */
static void commit__without_its_folder(void **state)
{
    (void)state;
    struct output o;
    struct scenario_error e;
    bench_file("old");
    assert_int_equal(mkdir("folder", 0777), 0);
    assert_true(output_open(&o, "folder/new", &e));
    assert_int_equal(rename("folder", "moved"), 0);
    assert_false(output_commit(&o, &e));
    bench_contains(e.text, "folder/new: it could not be written: No such file or directory");
    unlink("moved/new.part");
    assert_int_equal(rmdir("moved"), 0);
    bench_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commit__then_it_has_its_name),
        cmocka_unit_test(abandon__all_is_as_it_was),
        cmocka_unit_test(open__what_was_left),
        cmocka_unit_test(open__by_two),
        cmocka_unit_test(open__by_a_link),
        cmocka_unit_test(open__refused),
        cmocka_unit_test(open__read_only),
        cmocka_unit_test(commit__to_a_device),
        cmocka_unit_test(commit__not_whole),
        cmocka_unit_test(commit__without_its_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
