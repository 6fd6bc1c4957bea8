/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_store.c: what is put into a history is there again, of old files, too; files that are
 * none, broken, full, in use or of others are refused with their names, and left as they are.
 */
#define _GNU_SOURCE
#include "lab/lab_store.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lab/lab_record.h"
#include "made_run.h"

static char folder[64], file[128];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/test-lab-store-XXXXXX");
    snprintf(file, sizeof(file), "%s/", mkdtemp(folder));
    strcat(file, "a/b/lab.db");
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[160];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static json_t *made_record(const char *host)
{
    struct lab_end *e = malloc(sizeof(*e));
    struct lab_run run;
    made_run(e, &run, 5000);
    json_t *record = lab_record_make(e, &run, NULL);
    json_object_set_new(record, "source",
                        json_pack("{s:s,s:s,s:i}", "host", host, "device", "vb_lo", "mtu", 4096));
    lab_run_clear(&run);
    free(e);
    return record;
}

static int64_t add(const char *host)
{
    struct lab_store s;
    int64_t run = 0;
    json_t *record = made_record(host);
    if (lab_store_open(&s, file, true) != 0 || lab_store_add(&s, record, &run) != 0)
        fail_msg("%s", s.message);
    lab_store_close(&s);
    json_decref(record);
    return run;
}

static void sql(const char *text)
{
    sqlite3 *db;
    char *message = NULL;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", text, message);
    sqlite3_close(db);
}

static int64_t count(const char *text)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return n;
}

static void lab_store_add__is_there_again(void **state)
{
    (void)state;
    struct lab_store s;
    assert_int_equal(add("a"), 1);
    assert_int_equal(add("b"), 2);
    assert_int_equal(lab_store_open(&s, file, false), 0);
    json_t *record = lab_store_record(&s, 2), *made = made_record("b");
    assert_int_equal(json_integer_value(json_object_get(record, "run")), 2);
    json_object_del(record, "run");
    json_object_del(record, "ended");
    json_object_del(made, "ended");
    assert_true(json_equal(record, made));
    json_decref(record);
    json_decref(made);
    assert_null(lab_store_record(&s, 3));
    assert_non_null(strstr(s.message, "no run 3"));
    lab_store_close(&s);
    static const struct {
        const char *sql;
        int64_t n;
    } rows[] = {
        {"SELECT count(*) FROM cases WHERE run = 1",                                            3   },
        {"SELECT count(*) FROM measures JOIN cases ON case_id = id WHERE run = 1",              4   },
        {"SELECT p50_ns FROM measures JOIN cases ON case_id = id WHERE run = 2 AND op = 'tcp'",
         10000                                                                                      },
        {"SELECT count(*) FROM settings WHERE run = 1 AND name = 'size' AND value = '1000'",    1   },
        {"SELECT value FROM environment WHERE run = 1 AND name = 'mtu'",                        4096},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(count(rows[i].sql), rows[i].n);
}

static void lab_store_add__keeps_errors(void **state)
{
    (void)state;
    struct lab_store s;
    int64_t run;
    json_t *record = made_record("a"), *c = json_array_get(json_object_get(record, "cases"), 1);
    json_t *target = json_object_get(c, "target");
    json_object_set_new(json_object_get(target, "data"), "stale", json_integer(3));
    json_object_set_new(target, "first_fault", json_string("slot 7"));
    json_object_set_new(target, "counters",
                        json_pack("{s:i,s:i}", "rx_packets", 9, "retransmitted_packets", 2));
    json_object_set_new(record, "error", json_string("the peer is gone"));
    assert_int_equal(lab_store_open(&s, file, true), 0);
    assert_int_equal(lab_store_add(&s, record, &run), 0);
    lab_store_close(&s);
    json_decref(record);
    assert_int_equal(count("SELECT count FROM errors WHERE what = 'stale' AND text = 'slot 7'"), 3);
    assert_int_equal(count("SELECT count FROM errors WHERE what = 'retransmitted_packets'"), 2);
    assert_int_equal(count("SELECT count(*) FROM errors WHERE what = 'rx_packets'"), 0);
    assert_int_equal(count("SELECT count(*) FROM errors WHERE what = 'broke off'"), 1);
}

static void lab_store_list__filters(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value; /* of a setting; NULL: none */
        const char *host, *since;
        int64_t last;
        size_t found;
    } rows[] = {
        {NULL,        NULL,     NULL, NULL,         0, 3},
        {NULL,        NULL,     NULL, NULL,         2, 2},
        {NULL,        NULL,     "b",  NULL,         0, 1},
        {NULL,        NULL,     "no", NULL,         0, 0},
        {NULL,        NULL,     NULL, "2000-01-01", 0, 3},
        {NULL,        NULL,     NULL, "9999",       0, 0},
        {"op",        "write",  NULL, NULL,         0, 3},
        {"op",        "read",   NULL, NULL,         0, 0},
        {"size",      "1000",   NULL, NULL,         1, 1},
        {"size",      "64",     NULL, NULL,         0, 0},
        {"depth",     "1",      NULL, NULL,         0, 3},
        {"depth",     "2",      NULL, NULL,         0, 0},
        {"transport", "ud",     NULL, NULL,         0, 0},
        {"device",    "vb_lo",  NULL, NULL,         0, 3},
        {"device",    "mlx5_0", NULL, NULL,         0, 0},
        {"buffers",   "pool",   NULL, NULL,         0, 0},
    };
    struct lab_store s;
    add("a");
    add("b");
    add("c");
    assert_int_equal(lab_store_open(&s, file, false), 0);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lab_filter f = {.host = rows[i].host, .since = rows[i].since, .last = rows[i].last};
        char message[LAB_MESSAGE_BYTES];
        lab_settings_init(&f.settings);
        if (rows[i].name != NULL)
            assert_int_equal(lab_settings_set(&f.settings,
                                              (unsigned)lab_settings_find(rows[i].name),
                                              rows[i].value, message),
                             0);
        json_t *list = lab_store_list(&s, &f);
        if (json_array_size(list) != rows[i].found)
            fail_msg("row %u: %zu runs", i, json_array_size(list));
        for (size_t k = 1; k < json_array_size(list); k++) /* oldest first */
            assert_true(json_integer_value(json_object_get(json_array_get(list, k), "run")) >
                        json_integer_value(json_object_get(json_array_get(list, k - 1), "run")));
        json_decref(list);
    }
    lab_store_close(&s);
}

/* With all of its rows, and its number is not given again. */
static void lab_store_remove__takes_all(void **state)
{
    (void)state;
    struct lab_store s;
    add("a");
    add("b");
    assert_int_equal(lab_store_open(&s, file, false), 0);
    assert_int_equal(lab_store_remove(&s, (int64_t[]){1, 3}, 2), -ENOENT);
    assert_int_equal(lab_store_remove(&s, (int64_t[]){2, 2}, 2), -ENOENT);
    assert_int_equal(count("SELECT count(*) FROM runs"), 2); /* none of them */
    assert_int_equal(lab_store_remove(&s, (int64_t[]){2}, 1), 0);
    assert_int_equal(lab_store_remove(&s, (int64_t[]){2}, 1), -ENOENT);
    lab_store_close(&s);
    assert_int_equal(count("SELECT count(*) FROM cases"), 3);
    assert_int_equal(count("SELECT count(*) FROM measures"), 4);
    assert_int_equal(count("SELECT count(DISTINCT run) FROM environment"), 1);
    assert_int_equal(add("c"), 3);
}

/* As version 2 left it, which knew of no queue pairs in rows. */
static void make_version_2(void)
{
    sql("ALTER TABLE runs DROP COLUMN kind; ALTER TABLE measures DROP COLUMN p99_ratio_tcp;"
        "ALTER TABLE cases DROP COLUMN qps; ALTER TABLE cases DROP COLUMN threads;"
        "ALTER TABLE cases DROP COLUMN numa; ALTER TABLE cases DROP COLUMN cpu_ratio_tcp;"
        "ALTER TABLE cases DROP COLUMN cpu_ratio_memcpy; ALTER TABLE cases DROP COLUMN round;"
        "ALTER TABLE cases DROP COLUMN source_rank; ALTER TABLE cases DROP COLUMN target_rank;"
        "PRAGMA user_version = 2");
}

static void open_old(void)
{
    struct lab_store s;
    if (lab_store_open(&s, file, false) != 0)
        fail_msg("%s", s.message);
    lab_store_close(&s);
    assert_int_equal(count("PRAGMA user_version"), LAB_STORE_VERSION);
}

/* A file of version 1 had no errors; what it has stays. */
static void lab_store_open__brings_old_up_to_date(void **state)
{
    (void)state;
    add("a");
    make_version_2();
    sql("DROP TABLE errors; PRAGMA user_version = 1");
    open_old();
    assert_int_equal(count("SELECT count(*) FROM errors"), 0);
    assert_int_equal(count("SELECT count(*) FROM runs WHERE kind = 'run'"), 1);
    assert_int_equal(add("b"), 2);
}

static json_t *team_record(const char *host)
{
    json_t *record = made_record(host), *c = json_array_get(json_object_get(record, "cases"), 1);
    json_object_set_new(c, "qps", json_integer(4));
    json_object_set_new(c, "threads", json_integer(2));
    json_object_set_new(c, "numa", json_string("far"));
    return record;
}

static void add_record(json_t *record)
{
    struct lab_store s;
    int64_t run;
    if (lab_store_open(&s, file, true) != 0 || lab_store_add(&s, record, &run) != 0)
        fail_msg("%s", s.message);
    lab_store_close(&s);
    json_decref(record);
}

static void has_teams(void)
{
    static const struct {
        const char *sql;
        int64_t n;
    } rows[] = {
        {"SELECT count(*) FROM cases WHERE qps = 1 AND threads = 1 AND numa = 'any'",       8},
        {"SELECT count(*) FROM cases WHERE qps = 4 AND threads = 2 AND numa = 'far'",       1},
        {"SELECT count(*) FROM cases WHERE qps = 4 AND op = 'write' AND run = 2",           1},
        {"SELECT count(*) FROM cases WHERE qps IS NULL OR threads IS NULL OR numa IS NULL", 0},
        {"SELECT count(*) FROM runs WHERE kind = 'run'",                                    3},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (count(rows[i].sql) != rows[i].n)
            fail_msg("%s: %lld", rows[i].sql, (long long)count(rows[i].sql));
}

/* What its rows lack is taken from its records, each from its own. */
static void lab_store_open__takes_teams_from_old_records(void **state)
{
    (void)state;
    add("a");
    add_record(team_record("b"));
    add("c");
    has_teams();
    make_version_2();
    open_old();
    has_teams();
    struct lab_store s;
    json_t *made = team_record("b");
    assert_int_equal(lab_store_open(&s, file, false), 0);
    json_t *record = lab_store_record(&s, 2);
    assert_true(json_equal(json_object_get(record, "cases"), json_object_get(made, "cases")));
    lab_store_close(&s);
    json_decref(record);
    json_decref(made);
}

/* Of many ranks: who they are, and the cases of each two of them. */
static void lab_store_add__of_many(void **state)
{
    (void)state;
    json_t *one = made_record("x");
    add_record(json_pack(
        "{s:s,s:s,s:{s:s},s:[{s:i,s:s},{s:i,s:s}],s:[{s:s,s:i,s:i,s:o},{s:s,s:i,s:i,s:s}]}",
        "record", "verbena lab mpi", "ended", "2026-11-30", "settings", "transport", "rc", "ranks",
        "rank", 0, "host", "a", "rank", 1, "host", "b", "meetings", "kind", "pair", "source", 0,
        "target", 1, "run", one, "kind", "ring", "source", 1, "target", 0, "error", "it is gone"));
    static const struct {
        const char *sql;
        int64_t n;
    } rows[] = {
        {"SELECT count(*) FROM runs WHERE kind = 'mpi' AND source = 'a' AND target = '2 ranks'", 1},
        {"SELECT cases FROM runs",                                                               3},
        {"SELECT count(*) FROM cases WHERE round = 'pair' AND target_rank = 1",                  3},
        {"SELECT count(*) FROM environment WHERE \"end\" = 'rank 1' AND value = 'b'",            1},
        {"SELECT count(*) FROM errors WHERE what = 'not measured' AND text = 'it is gone'",      1},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (count(rows[i].sql) != rows[i].n)
            fail_msg("%s: %lld", rows[i].sql, (long long)count(rows[i].sql));
    struct lab_store s;
    assert_int_equal(lab_store_open(&s, file, false), 0);
    for (const char *host = "abc"; *host != '\0'; host++) {
        char name[2] = {*host, '\0'};
        json_t *list = lab_store_list(&s, &(struct lab_filter){.host = name});
        assert_int_equal(json_array_size(list), *host != 'c');
        json_decref(list);
    }
    lab_store_close(&s);
}

static void write_file(const char *text, size_t n)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, n), n);
    close(fd);
}

static void break_text(void)
{
    static char text[4096];
    memset(text, 'x', sizeof(text));
    write_file(text, sizeof(text));
}

static void break_pages(void)
{
    add("a");
    int fd = open(file, O_RDWR);
    char zeros[4096] = {0};
    for (off_t at = 4096; at < lseek(fd, 0, SEEK_END); at += 4096)
        assert_int_equal(pwrite(fd, zeros, sizeof(zeros), at), sizeof(zeros));
    close(fd);
}

static void make_newer(void)
{
    add("a");
    sql("PRAGMA user_version = 99");
}

static void make_other(void)
{
    add("a");
    sql("PRAGMA application_id = 7");
}

static void make_folder_of_file(void)
{
    char path[160];
    add("a");
    unlink(file);
    snprintf(path, sizeof(path), "mkdir %s", file);
    assert_int_equal(system(path), 0);
}

static void lab_store_open__refuses(void **state)
{
    (void)state;
    static const struct {
        void (*prepare)(void);
        int error;
        const char *text;
    } rows[] = {
        {break_text,          -EBADMSG, "is no history, or damaged"        },
        {break_pages,         -EBADMSG, "is no history, or damaged"        },
        {make_newer,          -EPROTO,  "is of a newer Verbena: version 99"},
        {make_other,          -EBADMSG, "is a database of something else"  },
        {make_folder_of_file, -EIO,     "unable to open database file"     },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lab_store s;
        json_t *record = made_record("b");
        int64_t run;
        remove_folder(state);
        make_folder(state);
        add("a");
        unlink(file);
        rows[i].prepare();
        int error = lab_store_open(&s, file, true);
        if (error == 0) /* damage is found where it is read */
            error = lab_store_add(&s, record, &run);
        if (error != rows[i].error || strstr(s.message, rows[i].text) == NULL ||
            strstr(s.message, file) == NULL)
            fail_msg("row %u: %d, %s", i, error, s.message);
        lab_store_close(&s);
        json_decref(record);
    }
}

static void lab_store_open__needs_a_file_to_read(void **state)
{
    (void)state;
    struct lab_store s;
    assert_int_equal(lab_store_open(&s, file, false), -ENOENT);
    assert_non_null(strstr(s.message, file));
    lab_store_close(&s);
    assert_int_not_equal(access(file, F_OK), 0);
}

/* A limit of pages stands for a disk that is full: nothing of the run stays. */
static void lab_store_add__all_or_nothing(void **state)
{
    (void)state;
    struct lab_store s;
    int64_t run;
    add("a");
    json_t *record = made_record("b");
    json_object_set_new(record, "long", json_sprintf("%0100000d", 1));
    assert_int_equal(lab_store_open(&s, file, true), 0);
    assert_int_equal(sqlite3_exec(s.db, "PRAGMA max_page_count = 20", NULL, NULL, NULL), 0);
    assert_int_equal(lab_store_add(&s, record, &run), -ENOSPC);
    assert_non_null(strstr(s.message, "full"));
    assert_int_equal(sqlite3_exec(s.db, "PRAGMA max_page_count = 20000", NULL, NULL, NULL), 0);
    lab_store_close(&s);
    json_decref(record);
    assert_int_equal(count("SELECT count(*) FROM runs"), 1);
    assert_int_equal(count("SELECT count(*) FROM cases"), 3);
    assert_int_equal(add("c"), 2);
}

enum { WRITERS = 8, EACH = 5 };

/* Also those that make the file. */
static void lab_store_add__from_many_processes(void **state)
{
    (void)state;
    pid_t child[WRITERS];
    for (unsigned i = 0; i < WRITERS; i++) {
        child[i] = fork();
        assert_true(child[i] >= 0);
        if (child[i] != 0)
            continue;
        struct lab_store s;
        json_t *record = made_record("x");
        int64_t run;
        for (unsigned k = 0; k < EACH; k++) {
            if (lab_store_open(&s, file, true) != 0 || lab_store_add(&s, record, &run) != 0) {
                fprintf(stderr, "%s\n", s.message);
                _exit(1);
            }
            lab_store_close(&s);
        }
        _exit(0);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count("SELECT count(*) FROM runs"), WRITERS * EACH);
    assert_int_equal(count("SELECT count(*) FROM cases"), 3 * WRITERS * EACH);
}

static void lab_store_default__follows_xdg(void **state)
{
    (void)state;
    static const struct {
        const char *xdg, *home, *path; /* NULL: not set; none */
    } rows[] = {
        {"/state", "/home/u", "/state/verbena/lab.db"              },
        {NULL,     "/home/u", "/home/u/.local/state/verbena/lab.db"},
        {"",       "/home/u", "/home/u/.local/state/verbena/lab.db"},
        {"state",  "/home/u", "/home/u/.local/state/verbena/lab.db"},
        {"/state", NULL,      "/state/verbena/lab.db"              },
        {NULL,     NULL,      NULL                                 },
        {NULL,     "",        NULL                                 },
        {"state",  "home",    NULL                                 },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char path[PATH_MAX];
        rows[i].xdg != NULL ? setenv("XDG_STATE_HOME", rows[i].xdg, 1) : unsetenv("XDG_STATE_HOME");
        rows[i].home != NULL ? setenv("HOME", rows[i].home, 1) : unsetenv("HOME");
        assert_int_equal(lab_store_default(path), rows[i].path != NULL);
        if (rows[i].path != NULL)
            assert_string_equal(path, rows[i].path);
    }
}

/* Asked before a run: nothing is changed by it, whatever the answer is. */
static void lab_store_may_add__changes_nothing(void **state)
{
    (void)state;
    struct lab_store s;
    add("host");
    assert_int_equal(lab_store_open(&s, file, true), 0);
    assert_int_equal(lab_store_may_add(&s), 0);
    assert_int_equal(lab_store_may_add(&s), 0);
    lab_store_close(&s);
    assert_int_equal(count("SELECT count(*) FROM runs"), 1);
    assert_int_equal(count("SELECT count(*) FROM sqlite_master WHERE name = 'may_add'"), 0);
    s = (struct lab_store){.file = file};
    assert_int_equal(sqlite3_open_v2(file, &s.db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(lab_store_may_add(&s), -EROFS);
    assert_non_null(strstr(s.message, file));
    lab_store_close(&s);
}

/* SQLite says no more than that reading or writing failed. */
static void lab_store_may_add__says_why(void **state)
{
    (void)state;
    struct rlimit was, none = {0};
    struct lab_store s;
    add("host");
    assert_int_equal(lab_store_open(&s, file, true), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    none.rlim_max = was.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    int error = lab_store_may_add(&s);
    setrlimit(RLIMIT_FSIZE, &was);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(error, -EIO);
    assert_non_null(strstr(s.message, strerror(EFBIG)));
    lab_store_close(&s);
    assert_int_equal(count("SELECT count(*) FROM runs"), 1);
}

/* Whatever its name is: it is kept. */
static void lab_store_open__takes_any_name(void **state)
{
    (void)state;
    static const char *const names[] = {":memory:", ":", "file:x?mode=memory", "none"};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(chdir(folder), 0);
        strcpy(file, names[i]);
        assert_int_equal(add("host"), 1);
        assert_int_equal(add("host"), 2);
        assert_int_equal(access(names[i], F_OK), 0);
        assert_int_equal(chdir("/"), 0);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(lab_store_add__is_there_again),
        CASE(lab_store_add__keeps_errors),
        CASE(lab_store_list__filters),
        CASE(lab_store_remove__takes_all),
        CASE(lab_store_open__brings_old_up_to_date),
        CASE(lab_store_open__takes_teams_from_old_records),
        CASE(lab_store_add__of_many),
        CASE(lab_store_open__refuses),
        CASE(lab_store_open__takes_any_name),
        CASE(lab_store_open__needs_a_file_to_read),
        CASE(lab_store_add__all_or_nothing),
        CASE(lab_store_add__from_many_processes),
        CASE(lab_store_may_add__changes_nothing),
        CASE(lab_store_may_add__says_why),
        cmocka_unit_test(lab_store_default__follows_xdg),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
