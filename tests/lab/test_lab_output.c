/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * test_lab_output.c: files that reports go to are the whole new report, or what they were before,
 * and nothing is left beside them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lab/lab_output.h"

static char folder[] = "/tmp/test-lab-output-XXXXXX";
static const char old[] = "what was there before, and is longer than what comes";

static void put(const char *file, const char *text)
{
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void has(const char *file, const char *text)
{
    char got[128] = "";
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    got[fread(got, 1, sizeof(got) - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(got, text);
}

static unsigned entries(void)
{
    unsigned n = 0;
    DIR *d = opendir(".");
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static int setup(void **state)
{
    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    return mkdtemp(folder) == NULL || chdir(folder) != 0 || mkdir("sub", 0755) != 0;
}

static int teardown(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return chdir("/") != 0 || system(command) != 0; // NOLINT(cert-env33-c): a name of our own
}

static int write_new(const json_t *data, FILE *out)
{
    fputs(json_string_value(data), out);
    return 0;
}

/* Fails when some of it is in the file. */
static int write_half(const json_t *data, FILE *out)
{
    fwrite(json_string_value(data), 1, 2, out);
    fflush(out);
    return -ENOSPC;
}

static void lab_output_write__whole(void **state)
{
    (void)state;
    static const char *const names[] = {"new", "old", "link", "sub/new", "nowhere", "./sub/../old"};
    json_t *data = json_string("new");
    struct stat st;
    put("old", old);
    chmod("old", 0640);
    assert_int_equal(symlink("old", "link"), 0);
    assert_int_equal(symlink("none", "nowhere"), 0);
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(lab_output_check(names[i]), 0);
        assert_int_equal(lab_output_write(names[i], write_new, data), 0);
        has(names[i], "new");
    }
    assert_int_equal(lstat("link", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat("old", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(entries(), 5); /* new, old, link, sub, nowhere */
    json_decref(data);
}

/* Asking changes nothing, and a report that cannot be written costs nothing of the old one. */
static void lab_output_write__old_stays(void **state)
{
    (void)state;
    json_t *data = json_string("new");
    put("old", old);
    assert_int_equal(lab_output_check("old"), 0);
    has("old", old);
    assert_int_equal(lab_output_check("new"), 0);
    assert_int_equal(access("new", F_OK), -1);
    assert_int_equal(lab_output_write("old", write_half, data), -ENOSPC);
    has("old", old);
    assert_int_equal(lab_output_write("new", write_half, data), -ENOSPC);
    assert_int_equal(access("new", F_OK), -1);
    assert_int_equal(entries(), 2);
    json_decref(data);
}

static void lab_output_write__devices(void **state)
{
    (void)state;
    json_t *data = json_string("new");
    int fds[2];
    char name[32], got[4] = "";
    assert_int_equal(lab_output_check("/dev/null"), 0);
    assert_int_equal(lab_output_write("/dev/null", write_new, data), 0);
    assert_int_equal(lab_output_check("/dev/full"), 0);
    assert_int_equal(lab_output_write("/dev/full", write_new, data), -ENOSPC);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    snprintf(name, sizeof(name), "/dev/fd/%d", fds[1]);
    assert_int_equal(lab_output_check(name), 0);
    assert_int_equal(lab_output_write(name, write_new, data), 0);
    assert_int_equal(read(fds[0], got, 3), 3);
    assert_string_equal(got, "new");
    close(fds[0]);
    close(fds[1]);
    json_decref(data);
}

static void lab_output_check__invalid(void **state)
{
    (void)state;
    char too_long[300], far[5000];
    memset(too_long, 'a', sizeof(too_long) - 1);
    too_long[sizeof(too_long) - 1] = '\0';
    memset(far, '/', sizeof(far) - 1);
    far[sizeof(far) - 1] = '\0';
    const struct {
        const char *file;
        int error;
    } rows[] = {
        {"",            -ENOENT      },
        {"none/file",   -ENOENT      },
        {"sub",         -EISDIR      },
        {"sub/",        -EISDIR      },
        {"none/",       -ENOENT      },
        {"old/file",    -ENOTDIR     },
        {"round",       -ELOOP       },
        {too_long,      -ENAMETOOLONG},
        {far,           -ENAMETOOLONG},
        {"/proc/x.txt", -ENOENT      },
    };
    json_t *data = json_string("new");
    put("old", old);
    assert_int_equal(symlink("round", "round"), 0);
    unsigned before = entries();
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(lab_output_check(rows[i].file), rows[i].error);
        assert_int_equal(lab_output_write(rows[i].file, write_new, data), rows[i].error);
    }
    has("old", old);
    assert_int_equal(entries(), before);
    json_decref(data);
}

static void lab_output_twice__rows(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"old",       "old",             true },
        {"old",       "./sub/../old",    true },
        {"old",       "link",            true },
        {"old",       "hard",            true },
        {"new",       "new",             true },
        {"new",       "sub/../new",      true },
        {"sub/new",   "sub//new",        true },
        {"new",       "sub/new",         false},
        {"old",       "new",             false},
        {"old",       "sub",             false},
        {"",          "",                false},
        {"old",       "",                false},
        {"/dev/null", "/dev/null",       false},
        {"gone/new",  "gone/new",        false}, /* the check of each refuses it */
        {"new",       "sub/none/../new", false},
    };
    put("old", old);
    assert_int_equal(symlink("old", "link") | link("old", "hard"), 0);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct lab_output_option o[] = {
            {"json", rows[i].a},
            {"db",   "other"  },
            {"html", rows[i].b},
        };
        char message[512] = "";
        assert_int_equal(lab_output_twice(o, 3, message, sizeof(message)), rows[i].same);
        assert_int_equal(strncmp(message, "--json and --html name one file", 31) == 0,
                         rows[i].same);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lab_output_write__whole),   TEST(lab_output_write__old_stays),
        TEST(lab_output_write__devices), TEST(lab_output_check__invalid),
        TEST(lab_output_twice__rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
