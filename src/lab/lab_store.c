/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_store.c: the tables and what fills them. The record is kept as it is, so that any report can
 * be made of an old run; rows are for whoever asks the file by SQL.
 */
#include "lab/lab_store.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lab/lab_record.h"

enum { APPLICATION = 0x56424c42 /* "VBLB": whose file it is */, WAIT_MS = 10000 };

/* What leads from each version to the next; user_version tells how many were done. A step that was
 * released is never changed. */
static const char *const steps[] = {
    "CREATE TABLE runs (run INTEGER PRIMARY KEY AUTOINCREMENT, ended TEXT NOT NULL, transport TEXT,"
    " source TEXT, target TEXT, device TEXT, cases INTEGER NOT NULL, paths INTEGER NOT NULL,"
    " experiments INTEGER NOT NULL, exit INTEGER, summary TEXT, error TEXT, record TEXT NOT NULL);"
    "CREATE TABLE settings (run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,"
    " name TEXT NOT NULL, value, PRIMARY KEY (run, name)) WITHOUT ROWID;"
    "CREATE TABLE environment (run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,"
    " \"end\" TEXT NOT NULL, name TEXT NOT NULL, value, PRIMARY KEY (run, \"end\", name))"
    " WITHOUT ROWID;"
    "CREATE TABLE cases (id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs"
    " ON DELETE CASCADE, op TEXT, buffers TEXT, transport TEXT, size INTEGER, depth INTEGER,"
    " \"offset\" INTEGER, messages INTEGER, elapsed_ns INTEGER, gbps REAL, messages_per_s REAL,"
    " throughput_ratio_tcp REAL, throughput_ratio_memcpy REAL);"
    "CREATE INDEX cases_of_run ON cases (run);"
    "CREATE TABLE measures (case_id INTEGER NOT NULL REFERENCES cases ON DELETE CASCADE, name TEXT,"
    " samples INTEGER, mean_ns INTEGER, min_ns INTEGER, p50_ns INTEGER, p99_ns INTEGER,"
    " p999_ns INTEGER, max_ns INTEGER, latency_ratio_tcp REAL);"
    "CREATE INDEX measures_of_case ON measures (case_id);",
    "CREATE TABLE errors (run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,"
    " case_id INTEGER REFERENCES cases ON DELETE CASCADE, \"end\" TEXT, what TEXT NOT NULL,"
    " count INTEGER, text TEXT);"
    "CREATE INDEX errors_of_run ON errors (run);",
    /* Rows of a run's cases are in the order of its record. */
    "ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL DEFAULT 'run';"
    "ALTER TABLE cases ADD COLUMN qps INTEGER; ALTER TABLE cases ADD COLUMN threads INTEGER;"
    "ALTER TABLE cases ADD COLUMN numa TEXT; ALTER TABLE cases ADD COLUMN cpu_ratio_tcp REAL;"
    "ALTER TABLE cases ADD COLUMN cpu_ratio_memcpy REAL; ALTER TABLE cases ADD COLUMN round TEXT;"
    "ALTER TABLE cases ADD COLUMN source_rank INTEGER;"
    "ALTER TABLE cases ADD COLUMN target_rank INTEGER;"
    "ALTER TABLE measures ADD COLUMN p99_ratio_tcp REAL;"
    "WITH old AS (SELECT id, '$.cases[' || (row_number() OVER (PARTITION BY run ORDER BY id) - 1) "
    "||"
    " ']' AS path, record FROM cases JOIN runs USING (run))"
    "UPDATE cases SET qps = coalesce(json_extract(record, path || '.qps'), 1),"
    " threads = coalesce(json_extract(record, path || '.threads'), 1),"
    " numa = coalesce(json_extract(record, path || '.numa'), 'any')"
    " FROM old WHERE old.id = cases.id;",
};
_Static_assert(sizeof(steps) / sizeof(steps[0]) == LAB_STORE_VERSION, "a version for each step");

static int __attribute__((format(printf, 3, 4)))
say(struct lab_store *s, int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->message, sizeof(s->message), format, args);
    va_end(args);
    return error;
}

/* What SQLite said last, in words that tell what to do. */
static int refuse(struct lab_store *s)
{
    int code = s->db == NULL ? SQLITE_NOMEM : sqlite3_errcode(s->db) & 0xff;
    const char *told = s->db == NULL ? "out of memory" : sqlite3_errmsg(s->db);
    int system_error = code == SQLITE_IOERR ? sqlite3_system_errno(s->db) : 0;
    switch (code) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return say(s, -EBADMSG, "'%s' is no history, or damaged (%s): move it away", s->file, told);
    case SQLITE_FULL:
        return say(s, -ENOSPC, "cannot write '%s': %s", s->file, told);
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return say(s, -EROFS, "cannot write '%s': %s", s->file, told);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return say(s, -EBUSY, "'%s' is in use by another program for too long: %s", s->file, told);
    default:
        return system_error != 0
                   ? say(s, -EIO, "'%s': %s: %s", s->file, told, strerror(system_error))
                   : say(s, -EIO, "'%s': %s", s->file, told);
    }
}

static int execute(struct lab_store *s, const char *sql)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : refuse(s);
}

bool lab_store_default(char out[PATH_MAX])
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state != NULL && state[0] == '/')
        return snprintf(out, PATH_MAX, "%s/verbena/lab.db", state) < PATH_MAX;
    return home != NULL && home[0] == '/' &&
           snprintf(out, PATH_MAX, "%s/.local/state/verbena/lab.db", home) < PATH_MAX;
}

static int make_folders(struct lab_store *s)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s", s->file);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return say(s, -errno, "cannot make the folder '%s': %s", path, strerror(errno));
        *slash = '/';
    }
    return 0;
}

/* -1 where it cannot be told. */
static int64_t pragma(struct lab_store *s, const char *sql)
{
    sqlite3_stmt *q = NULL;
    int64_t value = -1;
    if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
        value = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return value;
}

/* The version of a history, 0 of an empty file, or an error. */
static int version_of(struct lab_store *s)
{
    int64_t version = pragma(s, "PRAGMA user_version");
    int64_t tables = pragma(s, "SELECT count(*) FROM sqlite_schema");
    if (version < 0 || tables < 0)
        return refuse(s);
    if (tables > 0 && pragma(s, "PRAGMA application_id") != APPLICATION)
        return say(s, -EBADMSG, "'%s' is a database of something else: name another file", s->file);
    if (version > LAB_STORE_VERSION)
        return say(s, -EPROTO, "'%s' is of a newer Verbena: version %lld, this one knows %d",
                   s->file, (long long)version, LAB_STORE_VERSION);
    return (int)version;
}

/* Within a transaction, since another process may be at it as well. */
static int migrate(struct lab_store *s)
{
    int version = version_of(s);
    if (version < 0 || version == LAB_STORE_VERSION)
        return version < 0 ? version : 0;
    int error = execute(s, "BEGIN IMMEDIATE");
    if (error != 0)
        return error;
    if ((version = version_of(s)) < 0)
        return version;
    for (; version < LAB_STORE_VERSION && error == 0; version++)
        error = execute(s, steps[version]);
    char sql[96];
    snprintf(sql, sizeof(sql), "PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT",
             APPLICATION, LAB_STORE_VERSION);
    return error != 0 ? error : execute(s, sql);
}

int lab_store_open(struct lab_store *s, const char *file, bool make)
{
    struct stat st;
    *s = (struct lab_store){.file = file};
    if (!make && stat(file, &st) != 0)
        return errno == ENOENT ? say(s, -ENOENT, "there is no history '%s' yet: runs make it", file)
                               : say(s, -errno, "cannot read '%s': %s", file, strerror(errno));
    int error = make ? make_folders(s) : 0;
    if (error != 0)
        return error;
    char path[PATH_MAX + 2]; /* SQLite takes ":memory:" and "file:..." for more than names */
    snprintf(path, sizeof(path), "%s%s", file[0] == '/' ? "" : "./", file);
    int flags = SQLITE_OPEN_READWRITE | (make ? SQLITE_OPEN_CREATE : 0);
    if (sqlite3_open_v2(path, &s->db, flags, NULL) != SQLITE_OK)
        return refuse(s);
    sqlite3_busy_timeout(s->db, WAIT_MS);
    error = execute(s, "PRAGMA foreign_keys=ON");
    return error != 0 ? error : migrate(s);
}

/* A file that may only be read is opened all the same, and so is one whose folder has no place for
 * a journal: only a change tells. */
int lab_store_may_add(struct lab_store *s)
{
    return execute(s, "BEGIN IMMEDIATE; CREATE TABLE may_add (x); ROLLBACK");
}

void lab_store_close(struct lab_store *s)
{
    sqlite3_close(s->db); /* ends a transaction that was begun */
    s->db = NULL;
}

static void bind_json(sqlite3_stmt *q, int at, const json_t *value)
{
    switch (value == NULL ? JSON_NULL : json_typeof(value)) {
    case JSON_STRING:
        sqlite3_bind_text(q, at, json_string_value(value), (int)json_string_length(value),
                          SQLITE_TRANSIENT);
        break;
    case JSON_INTEGER:
        sqlite3_bind_int64(q, at, json_integer_value(value));
        break;
    case JSON_REAL:
        sqlite3_bind_double(q, at, json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        sqlite3_bind_int64(q, at, json_is_true(value));
        break;
    default:
        sqlite3_bind_null(q, at);
    }
}

/* One row. types has a letter for each place: s a text or NULL, i an int64_t, I one or NULL when it
 * is 0, j a member of JSON or NULL. */
static int put(struct lab_store *s, const char *sql, const char *types, ...)
{
    sqlite3_stmt *q = NULL;
    va_list args;
    if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK)
        return refuse(s);
    va_start(args, types);
    for (int at = 1; types[at - 1] != '\0'; at++) {
        char type = types[at - 1];
        if (type == 's') {
            sqlite3_bind_text(q, at, va_arg(args, const char *), -1, SQLITE_TRANSIENT);
        } else if (type == 'j') {
            bind_json(q, at, va_arg(args, const json_t *));
        } else {
            int64_t value = va_arg(args, int64_t);
            if (type == 'i' || value != 0)
                sqlite3_bind_int64(q, at, value);
        }
    }
    va_end(args);
    int error = sqlite3_step(q) == SQLITE_DONE ? 0 : refuse(s);
    sqlite3_finalize(q);
    return error;
}

static const json_t *get(const json_t *o, const char *name)
{
    return json_object_get(o, name);
}

static int add_error(struct lab_store *s, int64_t run, int64_t case_id, const char *end,
                     const char *what, int64_t count, const char *text)
{
    return put(s, "INSERT INTO errors VALUES (?, ?, ?, ?, ?, ?)", "iIssIs", run, case_id, end, what,
               count, text);
}

/* Messages that were not as they must be, and what tells of a bad path. */
static int add_errors_of(struct lab_store *s, int64_t run, int64_t case_id, const char *end,
                         const json_t *side)
{
    static const char *const told[] = {"wrong_atomics", "resent", "lost", "duplicates"};
    const char *name, *first = json_string_value(get(side, "first_fault"));
    json_t *value;
    int error = 0;
    json_object_foreach((json_t *)get(side, "data"), name, value)
    {
        if (error == 0 && strcmp(name, "good") != 0 && json_integer_value(value) > 0)
            error = add_error(s, run, case_id, end, name, json_integer_value(value), first);
    }
    for (unsigned i = 0; i < sizeof(told) / sizeof(told[0]) && error == 0; i++)
        if (json_integer_value(get(side, told[i])) > 0)
            error = add_error(s, run, case_id, end, told[i], json_integer_value(get(side, told[i])),
                              NULL);
    json_object_foreach((json_t *)get(side, "counters"), name, value)
    {
        if (error == 0 && lab_report_is_trouble(name))
            error = add_error(s, run, case_id, end, name, json_integer_value(value), NULL);
    }
    return error;
}

/* What is left out of the record where there is one. */
static int64_t one_or(const json_t *c, const char *name)
{
    const json_t *value = get(c, name);
    return json_is_integer(value) ? json_integer_value(value) : 1;
}

/* meeting: of two of many ranks; NULL where there are but two ends. */
static int add_case(struct lab_store *s, int64_t run, const json_t *meeting, const json_t *c)
{
    const char *near = json_string_value(get(c, "numa"));
    size_t i;
    json_t *m;
    int error = put(
        s,
        "INSERT INTO cases VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
        " ?, ?, ?, ?, ?)",
        "ijjjjjjjjjjjjiisjjjjj", run, get(c, "op"), get(c, "buffers"), get(c, "transport"),
        get(c, "size"), get(c, "depth"), get(c, "offset"), get(c, "messages"), get(c, "elapsed_ns"),
        get(c, "gbps"), get(c, "messages_per_s"), get(c, "throughput_ratio_tcp"),
        get(c, "throughput_ratio_memcpy"), one_or(c, "qps"), one_or(c, "threads"),
        near != NULL ? near : "any", get(c, "cpu_ratio_tcp"), get(c, "cpu_ratio_memcpy"),
        get(meeting, "kind"), get(meeting, "source"), get(meeting, "target"));
    int64_t id = sqlite3_last_insert_rowid(s->db);
    json_array_foreach(get(c, "measures"), i, m)
    {
        if (error == 0)
            error = put(s, "INSERT INTO measures VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        "ijjjjjjjjjj", id, get(m, "name"), get(m, "samples"), get(m, "mean_ns"),
                        get(m, "min_ns"), get(m, "p50_ns"), get(m, "p99_ns"), get(m, "p999_ns"),
                        get(m, "max_ns"), get(m, "latency_ratio_tcp"),
                        get(get(m, "ratios_tcp"), "p99"));
    }
    if (error == 0)
        error = add_errors_of(s, run, id, "source", get(c, "source"));
    return error != 0 ? error : add_errors_of(s, run, id, "target", get(c, "target"));
}

static int add_environment(struct lab_store *s, int64_t run, const json_t *all, const char *end)
{
    const char *name;
    json_t *value;
    int error = 0;
    json_object_foreach((json_t *)all, name, value)
    {
        if (error == 0 && !json_is_object(value) && !json_is_array(value))
            error = put(s, "INSERT INTO environment VALUES (?, ?, ?, ?)", "issj", run, end, name,
                        value);
    }
    return error;
}

struct counts {
    int64_t cases, paths;
};

static void count_cases(const json_t *cases, struct counts *n)
{
    size_t i;
    json_t *c;
    json_array_foreach(cases, i, c)
    {
        n->cases += get(c, "path") == NULL;
        n->paths += get(c, "path") != NULL;
    }
}

static int add_run(struct lab_store *s, const json_t *record, const char *text)
{
    const json_t *verdict = get(record, "verdict"), *source = get(record, "source");
    const json_t *target = get(get(record, "target"), "host"), *device = get(source, "device");
    const json_t *ranks = get(record, "ranks");
    bool many = lab_record_is_of_many(record);
    struct counts n = {0};
    json_t *others = NULL, *m;
    size_t i;
    count_cases(get(record, "cases"), &n);
    json_array_foreach(get(record, "meetings"), i, m)
    {
        count_cases(get(get(m, "run"), "cases"), &n);
        if (device == NULL)
            device = get(get(get(m, "run"), "source"), "device");
    }
    if (many) {
        source = json_array_get(ranks, 0);
        target = others = json_sprintf("%zu ranks", json_array_size(ranks));
    }
    int error =
        put(s, "INSERT INTO runs VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            "jjjjjiiijjjss", get(record, "ended"), get(get(record, "settings"), "transport"),
            get(source, "host"), target, device, n.cases, n.paths,
            (int64_t)json_array_size(get(record, "experiments")), get(verdict, "exit"),
            get(verdict, "summary"), get(record, "error"), text, many ? "mpi" : "run");
    json_decref(others);
    return error;
}

static int add_cases(struct lab_store *s, int64_t run, const json_t *meeting, const json_t *cases)
{
    size_t i;
    json_t *c;
    int error = 0;
    json_array_foreach(cases, i, c)
    {
        if (error == 0)
            error = add_case(s, run, meeting, c);
    }
    return error;
}

/* Of many ranks: who they are, and what each two of them did. */
static int add_meetings(struct lab_store *s, int64_t run, const json_t *record)
{
    json_t *o;
    size_t i;
    char end[48];
    int error = 0;
    json_array_foreach(get(record, "ranks"), i, o)
    {
        snprintf(end, sizeof(end), "rank %zu", i);
        if (error == 0)
            error = add_environment(s, run, o, end);
    }
    json_array_foreach(get(record, "meetings"), i, o)
    {
        const char *failed = json_string_value(get(o, "error"));
        snprintf(end, sizeof(end), "rank %lld to %lld",
                 (long long)json_integer_value(get(o, "source")),
                 (long long)json_integer_value(get(o, "target")));
        if (error == 0)
            error = add_cases(s, run, o, get(get(o, "run"), "cases"));
        if (error == 0 && failed != NULL)
            error = add_error(s, run, 0, end, "not measured", 0, failed);
    }
    return error;
}

static int add_rows(struct lab_store *s, const json_t *record, int64_t run)
{
    const char *name, *broke = json_string_value(get(record, "error"));
    json_t *value;
    size_t i;
    int error = add_environment(s, run, get(record, "source"), "source");
    if (error == 0)
        error = add_environment(s, run, get(record, "target"), "target");
    json_object_foreach((json_t *)get(record, "settings"), name, value)
    {
        if (error == 0)
            error = put(s, "INSERT INTO settings VALUES (?, ?, ?)", "isj", run, name, value);
    }
    if (error == 0)
        error = add_cases(s, run, NULL, get(record, "cases"));
    if (error == 0)
        error = add_meetings(s, run, record);
    json_array_foreach(get(get(record, "verdict"), "findings"), i, value)
    {
        if (error == 0)
            error = add_error(s, run, 0, NULL, "finding", 0, json_string_value(value));
    }
    return error != 0 || broke == NULL ? error : add_error(s, run, 0, NULL, "broke off", 0, broke);
}

int lab_store_add(struct lab_store *s, const json_t *record, int64_t *run)
{
    char *text = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(10));
    if (text == NULL)
        return say(s, -ENOMEM, "'%s': the record cannot be written", s->file);
    int error = execute(s, "BEGIN IMMEDIATE");
    if (error == 0)
        error = add_run(s, record, text);
    *run = sqlite3_last_insert_rowid(s->db);
    if (error == 0)
        error = add_rows(s, record, *run);
    if (error == 0)
        error = execute(s, "COMMIT");
    if (error != 0)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    free(text);
    return error;
}

static bool in_list(const struct lab_list *list, json_int_t value)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->value[i] == value)
            return true;
    return false;
}

static bool given(const struct lab_filter *f, const char *name)
{
    return f->settings.given >> (unsigned)lab_settings_find(name) & 1;
}

bool lab_filter_has(const struct lab_filter *f, const json_t *c)
{
    const struct lab_settings *s = &f->settings;
    const char *op = json_string_value(get(c, "op")), *way = json_string_value(get(c, "buffers"));
    bool has_op = !given(f, "op"), has_way = !given(f, "buffers");
    for (unsigned i = 0; i < LAB_OPS && op != NULL; i++)
        has_op |= (s->ops >> i & 1) != 0 && strcmp(op, lab_op_name((enum lab_op)i)) == 0;
    for (unsigned i = 0; i < LAB_WAYS && way != NULL; i++)
        has_way |= (s->ways >> i & 1) != 0 && strcmp(way, lab_way_name((enum lab_way)i)) == 0;
    return has_op && has_way &&
           (!given(f, "size") || in_list(&s->sizes, json_integer_value(get(c, "size")))) &&
           (!given(f, "depth") || in_list(&s->depths, json_integer_value(get(c, "depth"))));
}

bool lab_filter_has_experiments(const struct lab_filter *f)
{
    return !given(f, "op") && !given(f, "size") && !given(f, "depth") && !given(f, "buffers");
}

static json_t *column(sqlite3_stmt *q, int at)
{
    switch (sqlite3_column_type(q, at)) {
    case SQLITE_INTEGER:
        return json_integer(sqlite3_column_int64(q, at));
    case SQLITE_TEXT:
        return json_string((const char *)sqlite3_column_text(q, at));
    default:
        return json_null();
    }
}

/* The rows of a statement as objects, each as the member of array; the statement ends. */
static int rows_of(struct lab_store *s, sqlite3_stmt *q, json_t *array)
{
    int state;
    while ((state = sqlite3_step(q)) == SQLITE_ROW) {
        json_t *o = json_object();
        for (int at = 0; at < sqlite3_column_count(q); at++)
            json_object_set_new(o, sqlite3_column_name(q, at), column(q, at));
        json_array_append_new(array, o);
    }
    int error = state == SQLITE_DONE ? 0 : refuse(s);
    sqlite3_finalize(q);
    return error;
}

/* Has the run a case that is asked for? A run without cases has one if none is asked for. */
static bool asked_for(struct lab_store *s, const struct lab_filter *f, const json_t *run,
                      int *error)
{
    if (lab_filter_has_experiments(f))
        return true;
    sqlite3_stmt *q = NULL;
    json_t *cases = json_array(), *c;
    bool found = false;
    size_t i;
    if (sqlite3_prepare_v2(s->db, "SELECT op, buffers, size, depth FROM cases WHERE run = ?", -1,
                           &q, NULL) != SQLITE_OK) {
        *error = refuse(s);
    } else {
        sqlite3_bind_int64(q, 1, json_integer_value(get(run, "run")));
        *error = rows_of(s, q, cases);
    }
    json_array_foreach(cases, i, c) found |= lab_filter_has(f, c);
    json_decref(cases);
    return found;
}

json_t *lab_store_list(struct lab_store *s, const struct lab_filter *f)
{
    static const char sql[] =
        "SELECT run, kind, ended, transport, source, target, device, cases, paths, experiments, "
        "exit,"
        " summary, error FROM runs WHERE (?1 IS NULL OR transport = ?1) AND (?2 IS NULL OR device ="
        " ?2) AND (?3 IS NULL OR EXISTS (SELECT 1 FROM environment e WHERE e.run = runs.run AND"
        " e.name = 'host' AND e.value = ?3)) AND (?4 IS NULL OR ended >= ?4)"
        " ORDER BY run DESC";
    sqlite3_stmt *q = NULL;
    json_t *all = json_array(), *found = json_array(), *run;
    size_t i;
    int error = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK ? 0 : refuse(s);
    if (error == 0) {
        const char *words[] = {
            given(f, "transport") ? lab_transport_name((enum lab_transport)f->settings.transport)
                                  : NULL,
            given(f, "device") ? f->settings.device : NULL,
            f->host,
            f->since,
        };
        for (int at = 0; at < 4; at++)
            sqlite3_bind_text(q, at + 1, words[at], -1, SQLITE_TRANSIENT);
        error = rows_of(s, q, all);
    }
    json_array_foreach(all, i, run)
    {
        bool full = f->last > 0 && (int64_t)json_array_size(found) >= f->last;
        if (error == 0 && !full && asked_for(s, f, run, &error))
            json_array_insert(found, 0, run);
    }
    json_decref(all);
    if (error == 0)
        return found;
    json_decref(found);
    return NULL;
}

json_t *lab_store_record(struct lab_store *s, int64_t run)
{
    sqlite3_stmt *q = NULL;
    json_t *record = NULL;
    if (sqlite3_prepare_v2(s->db, "SELECT record FROM runs WHERE run = ?", -1, &q, NULL) !=
        SQLITE_OK) {
        refuse(s);
        return NULL;
    }
    sqlite3_bind_int64(q, 1, run);
    int state = sqlite3_step(q);
    if (state == SQLITE_ROW) {
        record = json_loadb((const char *)sqlite3_column_text(q, 0),
                            (size_t)sqlite3_column_bytes(q, 0), 0, NULL);
        if (json_object_set_new(record, "run", json_integer(run)) != 0) {
            say(s, -EBADMSG, "'%s': the record of run %lld is damaged", s->file, (long long)run);
            json_decref(record);
            record = NULL;
        }
    } else if (state == SQLITE_DONE) {
        say(s, -ENOENT, "there is no run %lld in '%s'", (long long)run, s->file);
    } else {
        refuse(s);
    }
    sqlite3_finalize(q);
    return record;
}

static int remove_run(struct lab_store *s, int64_t run)
{
    int error = put(s, "DELETE FROM runs WHERE run = ?", "i", run);
    if (error == 0 && sqlite3_changes(s->db) == 0)
        error = say(s, -ENOENT, "there is no run %lld in '%s'", (long long)run, s->file);
    return error;
}

int lab_store_remove(struct lab_store *s, const int64_t *runs, unsigned count)
{
    int error = execute(s, "BEGIN IMMEDIATE");
    for (unsigned i = 0; i < count && error == 0; i++)
        error = remove_run(s, runs[i]);
    if (error == 0)
        error = execute(s, "COMMIT");
    if (error != 0)
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return error;
}
