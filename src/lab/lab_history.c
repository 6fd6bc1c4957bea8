/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_history.c: lists the runs of a history, shows one again, compares several, and takes some
 * out.
 */
#include "lab/lab_history.h"

#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab/lab_compare.h"
#include "lab/lab_html.h"
#include "lab/lab_matrix.h"
#include "lab/lab_noise.h"
#include "lab/lab_output.h"
#include "lab/lab_path.h"
#include "lab/lab_record.h"

/* As <sysexits.h> names them. */
enum { EXIT_USAGE = 64, EXIT_UNAVAILABLE = 69, EXIT_FAILED = 70 };
enum { MAX_RUNS = 64, LIST_RUNS = 20 };
enum {
    OPTION_DB = 256,
    OPTION_JSON,
    OPTION_HTML,
    OPTION_LAST,
    OPTION_HOST,
    OPTION_SINCE,
    OPTION_REMOVE,
    OPTION_SETTING
};

/* Options that are those of a run; LAB_SETTING(i) is the place of the i-th. */
static const char *const setting_names[] = {"op",    "transport", "size",
                                            "depth", "buffers",   "device"};
enum { SETTING_NAMES = sizeof(setting_names) / sizeof(setting_names[0]) };

struct history {
    struct lab_filter filter;
    const char *db, *json, *html;
    bool remove;
    const char *words[MAX_RUNS]; /* which runs, as they were named */
    unsigned words_count;
    int64_t runs[MAX_RUNS];
    struct lab_store store;
};

static int __attribute__((format(printf, 2, 3))) complain(int code, const char *format, ...)
{
    va_list args;
    fflush(stdout);
    fprintf(stderr, "verbena lab history: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return code;
}

int lab_history_file(const char *db, char file[PATH_MAX], char message[LAB_STORE_MESSAGE_BYTES])
{
    file[0] = '\0';
    if (strcmp(db, "none") == 0)
        return 0;
    if (db[0] != '\0') {
        snprintf(file, PATH_MAX, "%s", db);
    } else if (!lab_store_default(file)) {
        snprintf(message, LAB_STORE_MESSAGE_BYTES, "neither HOME nor XDG_STATE_HOME is a folder");
        return -ENOENT;
    }
    return 0;
}

int64_t lab_history_keep(const json_t *record, const char *db, char file[PATH_MAX],
                         char message[LAB_STORE_MESSAGE_BYTES])
{
    struct lab_store s;
    int64_t run = 0;
    int error = lab_history_file(db, file, message);
    if (error != 0 || file[0] == '\0')
        return error;
    error = lab_store_open(&s, file, true);
    if (error == 0)
        error = lab_store_add(&s, record, &run);
    if (error != 0)
        snprintf(message, LAB_STORE_MESSAGE_BYTES, "%s", s.message);
    lab_store_close(&s);
    return error != 0 ? error : run;
}

int lab_history_check(const char *db, char message[LAB_STORE_MESSAGE_BYTES])
{
    struct lab_store s;
    if (db[0] == '\0' || strcmp(db, "none") == 0)
        return 0;
    int error = lab_store_open(&s, db, true);
    if (error == 0)
        error = lab_store_may_add(&s);
    if (error != 0)
        snprintf(message, LAB_STORE_MESSAGE_BYTES, "%s", s.message);
    lab_store_close(&s);
    return error;
}

static int64_t parse_count(const char *text)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    return errno != 0 || end == text || *end != '\0' || n < 1 ? -1 : n;
}

static error_t parse_setting(struct history *h, unsigned which, const char *arg,
                             struct argp_state *state)
{
    char message[LAB_MESSAGE_BYTES];
    unsigned place = (unsigned)lab_settings_find(setting_names[which]);
    if (lab_settings_set(&h->filter.settings, place, arg, message) != 0)
        argp_error(state, "--%s", message);
    return 0;
}

/* A year, or more of what a run's end looks like: what is compared are the texts. */
static bool is_date(const char *text)
{
    static const char like[] = "dddd-dd-ddTdd:dd:ddZ";
    static const unsigned char lengths[] = {4, 7, 10, 16, 19, 20};
    size_t n = strlen(text);
    int year = 0, field[5] = {1, 1, 0, 0, 0};
    if (n > sizeof(like) - 1 || memchr(lengths, (int)n, sizeof(lengths)) == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        if (like[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != like[i])
            return false;
    sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", // NOLINT(cert-err34-c): digits, as was seen above
           &year, &field[0], &field[1], &field[2], &field[3], &field[4]);
    struct tm t = {.tm_year = year - 1900, .tm_mon = field[0] - 1, .tm_mday = field[1]};
    struct tm same = t;
    timegm(&same); /* makes the 31st of April the 1st of May */
    return same.tm_mon == t.tm_mon && same.tm_mday == t.tm_mday && field[2] < 24 && field[3] < 60 &&
           field[4] < 60;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct history *h = state->input;
    if (key >= OPTION_SETTING && key < OPTION_SETTING + (int)SETTING_NAMES)
        return parse_setting(h, (unsigned)(key - OPTION_SETTING), arg, state);
    switch (key) {
    case OPTION_DB:
        h->db = arg;
        return 0;
    case OPTION_JSON:
        h->json = arg;
        return 0;
    case OPTION_HTML:
        h->html = arg;
        return 0;
    case OPTION_LAST:
        h->filter.last = parse_count(arg);
        if (h->filter.last < 0)
            argp_error(state, "--last: '%s' is no number of runs; allowed are 1 and more", arg);
        return 0;
    case OPTION_HOST:
        h->filter.host = arg;
        return 0;
    case OPTION_SINCE:
        if (!is_date(arg))
            argp_error(state, "--since: '%s' is no date such as 2026-11-30 or 2026-11-30T08:15:00Z",
                       arg);
        h->filter.since = arg;
        return 0;
    case OPTION_REMOVE:
        h->remove = true;
        return 0;
    case ARGP_KEY_ARG:
        if (h->words_count == MAX_RUNS)
            argp_error(state, "no more than %d runs at once", MAX_RUNS);
        h->words[h->words_count++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (h->remove && h->words_count == 0)
            argp_error(state, "--remove: which runs? Name them: numbers, last or previous");
        if (h->remove && (h->json != NULL || h->html != NULL))
            argp_error(state, "--remove: writes nothing: goes without --json and --html");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"db",                                                   OPTION_DB, "FILE", 0, "The history; else the one in ~/.local/state/verbena", 0},
    {"last",                                                OPTION_LAST, "N", 0, "The N newest of those that are asked for; 20", 0},
    {"op", OPTION_SETTING, "LIST", 0, "Runs and cases with these operations", 0},
    {"transport",                                                      OPTION_SETTING + 1, "NAME", 0, "Runs over rc, uc or ud", 0},
    {"size",OPTION_SETTING + 2, "LIST", 0, "Runs and cases with these sizes", 0},
    {"depth",                                                     OPTION_SETTING + 3, "LIST", 0, "Runs and cases with these depths", 0},
    {"buffers",                                                     OPTION_SETTING + 4, "LIST", 0, "Runs and cases with these buffers", 0},
    {"device",                                                   OPTION_SETTING + 5, "NAME", 0, "Runs on this device", 0},
    {"host",                                                OPTION_HOST, "NAME", 0, "Runs from or to this host", 0},
    {"since",                OPTION_SINCE, "DATE", 0, "Runs that ended then or later, as 2026-11-30", 0},
    {"json",                                                      OPTION_JSON, "FILE", 0, "Write it as JSON; - is standard output, without text", 0},
    {"html",OPTION_HTML, "FILE", 0,
     "Write a page with charts: of one run, or comparing those that are named or listed", 0},
    {"remove",                                                     OPTION_REMOVE, NULL, 0, "Take these runs out of the history", 0},
    {0                                                    },
};

static const struct argp history_argp = {
    .options = options,
    .parser = parse_option,
    .args_doc = "[RUN...]",
    .doc = "Lists the runs of the lab; shows one again; compares several with the first of them."
           "\vA RUN is a number of the list, `last' or `previous'.",
};

/* 0, or an exit code. */
static int find_runs(struct history *h)
{
    const struct lab_filter any = {.last = 2};
    for (unsigned i = 0; i < h->words_count; i++) {
        const char *word = h->words[i];
        bool last = strcmp(word, "last") == 0, previous = strcmp(word, "previous") == 0;
        h->runs[i] = parse_count(word);
        if (last || previous) {
            json_t *newest = lab_store_list(&h->store, &any);
            size_t n = json_array_size(newest), back = last ? 1 : 2;
            h->runs[i] =
                n < back
                    ? 0
                    : json_integer_value(json_object_get(json_array_get(newest, n - back), "run"));
            json_decref(newest);
            if (n < back)
                return complain(EXIT_UNAVAILABLE, "'%s' has no %s run", h->store.file, word);
        }
        if (h->runs[i] < 0)
            return complain(EXIT_USAGE, "'%s' is no run: a number, last or previous", word);
        for (unsigned k = 0; k < i && h->remove; k++)
            if (h->runs[k] == h->runs[i])
                return complain(EXIT_USAGE, "run %lld is named twice, by '%s' and '%s'",
                                (long long)h->runs[i], h->words[k], word);
    }
    return 0;
}

static int write_file(const char *option, const char *file, int (*write)(const json_t *, FILE *),
                      const json_t *data)
{
    int failed = lab_output_write(file, write, data);
    return failed == 0 ? 0
                       : complain(EXIT_FAILED, "--%s: cannot write '%s': %s", option, file,
                                  strerror(-failed));
}

static int write_json(const struct history *h, const json_t *data)
{
    if (strcmp(h->json, "-") != 0)
        return write_file("json", h->json, lab_record_write, data);
    int failed = lab_record_write(data, stdout);
    return failed == 0 ? 0 : complain(EXIT_FAILED, "cannot write: %s", strerror(-failed));
}

static int write_html(const struct history *h, const json_t *data, bool comparison)
{
    return write_file("html", h->html, comparison ? lab_html_write_comparison : lab_html_write,
                      data);
}

static int write_run(const json_t *record, FILE *out)
{
    if (lab_record_is_of_many(record))
        return lab_matrix_write(record, out);
    int failed = lab_report_write(record, out);
    size_t i;
    json_t *c;
    json_array_foreach(json_object_get(record, "cases"), i, c)
    {
        const json_t *path = json_object_get(c, "path");
        if (failed == 0 && path != NULL)
            failed = lab_path_write(path, out);
    }
    return failed;
}

/* What is written where; the text last, so that a file that cannot be written costs none of it. */
static int write_all(const struct history *h, const json_t *data, const json_t *page,
                     int (*write)(const json_t *, FILE *))
{
    int code = h->json != NULL ? write_json(h, data) : 0;
    if (h->html != NULL && page != NULL) {
        int failed = write_html(h, page, page != data || write == lab_compare_write);
        code = code != 0 ? code : failed;
    }
    if (h->json != NULL && strcmp(h->json, "-") == 0)
        return code;
    int failed = write(data, stdout);
    return failed == 0 ? code
                       : complain(EXIT_FAILED, "cannot write the text: %s", strerror(-failed));
}

static const char *text(const json_t *o, const char *name)
{
    const char *t = json_string_value(json_object_get(o, name));
    return t != NULL ? t : "-";
}

static int write_list(const json_t *list, FILE *out)
{
    static const char *const verdicts[] = {"passed", "missed", "wrong data"};
    const json_t *runs = json_object_get(list, "runs");
    json_t *run;
    size_t i;
    errno = 0;
    if (json_array_size(runs) > 0)
        fprintf(out, "%5s %-20s %-16s %-16s %-10s %-4s %5s %5s %5s %-10s %s\n", "run", "ended",
                "source", "target", "device", "over", "cases", "paths", "exp.", "verdict", "");
    json_array_foreach(runs, i, run)
    {
        const json_t *code = json_object_get(run, "exit");
        const char *summary = text(run, "summary"), *rest = strchr(summary, ';');
        json_int_t n = json_integer_value(code);
        fprintf(out, "%5lld %-20s %-16s %-16s %-10s %-4s %5lld %5lld %5lld %-10s %s\n",
                (long long)json_integer_value(json_object_get(run, "run")), text(run, "ended"),
                text(run, "source"), text(run, "target"), text(run, "device"),
                text(run, "transport"),
                (long long)json_integer_value(json_object_get(run, "cases")),
                (long long)json_integer_value(json_object_get(run, "paths")),
                (long long)json_integer_value(json_object_get(run, "experiments")),
                !json_is_integer(code) || n < 0 || n > 2 ? "broke off" : verdicts[n],
                !json_is_integer(code) ? text(run, "error")
                : rest != NULL         ? rest + 2
                                       : summary);
    }
    if (json_array_size(runs) == 0)
        fprintf(out, "No run is as asked for.\n");
    if (fflush(out) != 0)
        return errno != 0 ? -errno : -EIO;
    return 0;
}

/* NULL: it was told why. */
static json_t *read_records(struct history *h, const json_t *runs)
{
    json_t *records = json_array();
    size_t count = runs == NULL ? h->words_count : json_array_size(runs);
    for (size_t i = 0; i < count; i++) {
        int64_t run = runs == NULL
                          ? h->runs[i]
                          : json_integer_value(json_object_get(json_array_get(runs, i), "run"));
        json_t *record = lab_store_record(&h->store, run);
        if (record == NULL) {
            complain(EXIT_UNAVAILABLE, "%s", h->store.message);
            json_decref(records);
            return NULL;
        }
        json_array_append_new(records, record);
    }
    return records;
}

static bool is_named(const json_t *records, int64_t run)
{
    size_t i;
    json_t *r;
    json_array_foreach(records, i, r)
    {
        if (json_integer_value(json_object_get(r, "run")) == run)
            return true;
    }
    return false;
}

/* Runs like the first before the last of those that are compared: those before the first, the
 * newest at first, then those after it. */
static json_t *read_like(struct history *h, const json_t *records)
{
    enum { MAX_LOOKS = 40 };
    const struct lab_filter any = {0};
    const json_t *first = json_array_get(records, 0);
    json_int_t at = json_integer_value(json_object_get(first, "run")), last = at;
    json_t *like = json_array(), *rows = lab_store_list(&h->store, &any), *r;
    size_t i, n = json_array_size(rows), before = 0, looks = 0;
    json_array_foreach(records, i, r)
    {
        json_int_t run = json_integer_value(json_object_get(r, "run"));
        last = run > last ? run : last;
    }
    while (before < n &&
           json_integer_value(json_object_get(json_array_get(rows, before), "run")) < at)
        before++;
    for (i = 0; i < n && looks < MAX_LOOKS && json_array_size(like) < LAB_NOISE_MAX_RUNS - 1; i++) {
        const json_t *row = json_array_get(rows, i < before ? before - 1 - i : i);
        int64_t run = json_integer_value(json_object_get(row, "run"));
        if (run > last || is_named(records, run))
            continue;
        json_t *record = lab_store_record(&h->store, run);
        if (record != NULL && lab_compare_alike(first, record))
            json_array_append(like, record);
        json_decref(record);
        looks++;
    }
    json_decref(rows);
    return like;
}

static json_t *compare(struct history *h, const json_t *records)
{
    json_t *like = read_like(h, records);
    json_t *comparison = lab_compare_make(records, like, &h->filter);
    json_decref(like);
    return comparison;
}

static int show_list(struct history *h)
{
    json_t *runs = lab_store_list(&h->store, &h->filter), *page = NULL;
    if (runs == NULL)
        return complain(EXIT_UNAVAILABLE, "%s", h->store.message);
    if (h->html != NULL) {
        if (json_array_size(runs) < 2) {
            json_decref(runs);
            return complain(EXIT_UNAVAILABLE, "--html: compares two runs or more; for the page of "
                                              "one, name it");
        }
        json_t *records = read_records(h, runs);
        page = records == NULL ? NULL : compare(h, records);
        json_decref(records);
    }
    json_t *list = json_pack("{s:s,s:i,s:o}", "record", "verbena lab history", "version",
                             LAB_RECORD_VERSION, "runs", runs);
    int code =
        h->html != NULL && page == NULL ? EXIT_UNAVAILABLE : write_all(h, list, page, write_list);
    json_decref(page);
    json_decref(list);
    return code;
}

static int show_runs(struct history *h)
{
    json_t *records = read_records(h, NULL);
    int code;
    if (records == NULL)
        return EXIT_UNAVAILABLE;
    if (h->words_count == 1) {
        const json_t *record = json_array_get(records, 0);
        code = write_all(h, record, record, write_run);
    } else {
        json_t *comparison = compare(h, records);
        code = write_all(h, comparison, comparison, lab_compare_write);
        json_decref(comparison);
    }
    json_decref(records);
    return code;
}

static int remove_runs(struct history *h)
{
    if (lab_store_remove(&h->store, h->runs, h->words_count) != 0)
        return complain(EXIT_UNAVAILABLE, "%s; nothing is removed", h->store.message);
    for (unsigned i = 0; i < h->words_count; i++)
        printf("run %lld is removed\n", (long long)h->runs[i]);
    return 0;
}

int lab_history_main(int argc, char **argv)
{
    static struct history h;
    char file[PATH_MAX], message[3 * PATH_MAX];
    lab_settings_init(&h.filter.settings);
    h.filter.last = LIST_RUNS;
    argp_parse(&history_argp, argc, argv, 0, NULL, &h);
    if (h.html != NULL && lab_html_missing() != NULL)
        return complain(EXIT_UNAVAILABLE, "--html: %s", lab_html_missing());
    if (h.db == NULL && !lab_store_default(file))
        return complain(EXIT_UNAVAILABLE,
                        "--db: is missing, and neither HOME nor XDG_STATE_HOME is a folder");
    if (lab_output_refused(h.db != NULL ? h.db : file, h.json, h.html, message, sizeof(message)))
        return complain(EXIT_USAGE, "%s", message);
    if (lab_store_open(&h.store, h.db != NULL ? h.db : file, false) != 0) {
        complain(EXIT_UNAVAILABLE, "%s", h.store.message);
        lab_store_close(&h.store);
        return EXIT_UNAVAILABLE;
    }
    int code = find_runs(&h);
    if (code == 0)
        code = h.remove ? remove_runs(&h) : h.words_count > 0 ? show_runs(&h) : show_list(&h);
    lab_store_close(&h.store);
    return code;
}
