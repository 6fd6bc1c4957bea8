/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.c: the page is a text with names in {{ }}, whose places are taken by the parts. Data are
 * escaped so that no text in them ends its element.
 */
#include "report/report.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Made by scripts/embed.py. */
extern const char report_page_html[], report_page_css[], report_page_js[], report_charts_js[];

bool report_can(void)
{
    return report_charts_js[0] != '\0';
}

static void put_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

/* Outside of strings JSON has no '<', so it may be written as in a string everywhere. With no '<'
 * left, an HTML parser finds neither an end of the element nor a comment. */
static void put_json(FILE *out, const char *json)
{
    for (; *json != '\0'; json++) {
        if (*json == '<')
            fputs("\\u003c", out);
        else
            fputc(*json, out);
    }
}

static void put_part(FILE *out, const struct report *r, const char *name, size_t length)
{
    const struct {
        const char *name, *text;
        void (*put)(FILE *out, const char *text);
    } parts[] = {
        {"title",  r->title,         put_text},
        {"style",  report_page_css,  NULL    },
        {"charts", report_charts_js, NULL    },
        {"page",   report_page_js,   NULL    },
        {"script", r->script,        NULL    },
        {"data",   r->data,          put_json},
    };
    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strlen(parts[i].name) != length || memcmp(parts[i].name, name, length) != 0)
            continue;
        if (parts[i].put != NULL)
            parts[i].put(out, parts[i].text);
        else
            fputs(parts[i].text, out);
        return;
    }
    assert(!"report_page.html names a part that there is not");
}

int report_write(FILE *out, const struct report *r)
{
    const char *at = report_page_html, *open;
    assert(report_can());
    errno = 0;
    while ((open = strstr(at, "{{")) != NULL) {
        const char *close = strstr(open, "}}");
        assert(close != NULL);
        fwrite(at, 1, (size_t)(open - at), out);
        put_part(out, r, open + 2, (size_t)(close - open - 2));
        at = close + 2;
    }
    fputs(at, out);
    if (fflush(out) != 0 || ferror(out))
        return errno != 0 ? -errno : -EIO;
    return 0;
}
