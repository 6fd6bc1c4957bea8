/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_html.c: gives a record to the script that draws it (lab_html.js).
 */
#include "lab/lab_html.h"

#include <errno.h>
#include <stdlib.h>

#include "lab/lab_record.h"
#include "report/report.h"

/* Made by scripts/embed.py. */
extern const char lab_html_js[], lab_html_compare_js[], lab_html_many_js[];

const char *lab_html_missing(void)
{
    return report_can() ? NULL : REPORT_CANNOT;
}

static int write_page(const json_t *data, const char *title, const char *script, FILE *out)
{
    char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(10));
    if (text == NULL)
        return -ENOMEM;
    int error = report_write(out, &(struct report){.title = title, .script = script, .data = text});
    free(text);
    return error;
}

static const char *member(const json_t *o, const char *end, const char *name)
{
    const char *text = json_string_value(json_object_get(json_object_get(o, end), name));
    return text != NULL ? text : "?";
}

int lab_html_write(const json_t *record, FILE *out)
{
    bool many = lab_record_is_of_many(record);
    char *title;
    int n = many ? asprintf(&title, "RDMA paths of %zu ranks",
                            json_array_size(json_object_get(record, "ranks")))
                 : asprintf(&title, "RDMA path: %s to %s", member(record, "source", "host"),
                            member(record, "target", "host"));
    if (n < 0)
        return -ENOMEM;
    int error = write_page(record, title, many ? lab_html_many_js : lab_html_js, out);
    free(title);
    return error;
}

int lab_html_write_comparison(const json_t *comparison, FILE *out)
{
    return write_page(comparison, "RDMA path: runs compared", lab_html_compare_js, out);
}
