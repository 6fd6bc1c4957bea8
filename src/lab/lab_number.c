/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_number.c: a table of what is counted, with its units, the largest first.
 */
#include "lab/lab_number.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 64, MILLION = 1000000 };

struct unit {
    const char *name; /* NULL: no more */
    uint64_t factor;
    bool other; /* another name of a unit, which is not told */
};

static const struct unit of_pieces[] = {
    {"",   1},
    {NULL, 0},
};
static const struct unit of_bytes[] = {
    {"MiB", 1 << 20},
    {"KiB", 1 << 10},
    {"",    1      },
    {"M",   1 << 20, true},
    {"k",     1 << 10,          true},
    {"B", 1,true},
    {NULL,    0        },
};
static const struct unit of_time[] = {
    {"s",  1000000000},
    {"ms", 1000000   },
    {"us", 1000      },
    {"ns", 1         },
    {NULL, 0         },
};
static const struct unit of_rate[] = {
    {"",   MILLION},
    {NULL, 0      },
};
static const struct unit of_ratio[] = {
    {"",  MILLION},
    {"x", MILLION, true},
    {NULL,   0      },
};

static const struct quantity {
    const struct unit *units;
    const char *like, *whole; /* what is missed by what is no number, and by what is too fine */
    const char *unit_names;
} quantities[LAB_QUANTITIES] = {
    [LAB_PIECES] = {.units = of_pieces,
                    .like = "a whole number",
                    .whole = "a whole number",
                    .unit_names = ""                           },
    [LAB_BYTES] = {.units = of_bytes,
                    .like = "a number of bytes such as 64, 4KiB or 1MiB",
                    .whole = "a whole number of bytes",
                    .unit_names = ", in bytes (B), KiB or MiB" },
    [LAB_TIME] = {.units = of_time,
                    .like = "a time such as 20us, 1.5ms or 10s",
                    .whole = "a whole number of ns",
                    .unit_names = ", in ns, us, ms or s"       },
    [LAB_RATE] = {.units = of_rate,
                    .like = "a number of Gbit/s such as 10 or 2.5",
                    .whole = "a number of Gbit/s with six decimals at most",
                    .unit_names = ", in Gbit/s, without a unit"},
    [LAB_RATIO] = {.units = of_ratio,
                    .like = "a ratio such as 1.5",
                    .whole = "a ratio with six decimals at most",
                    .unit_names = ""                           },
};

enum parsed { PARSED, NO_NUMBER, TOO_FINE };

static bool is_digit(const char *text, size_t at, size_t n)
{
    return at < n && text[at] >= '0' && text[at] <= '9';
}

static enum parsed finish(enum lab_quantity q, const char *name, size_t n, uint64_t whole,
                          uint64_t part, uint64_t scale, uint64_t *out)
{
    for (const struct unit *u = quantities[q].units; u->name != NULL; u++) {
        if (strlen(u->name) != n || strncmp(u->name, name, n) != 0)
            continue;
        if (part * u->factor % scale != 0)
            return TOO_FINE;
        *out = whole > UINT64_MAX / 2 / u->factor ? UINT64_MAX
                                                  : whole * u->factor + part * u->factor / scale;
        return PARSED;
    }
    return NO_NUMBER;
}

/* More than fits is UINT64_MAX. */
static enum parsed parse(enum lab_quantity q, const char *text, size_t n, uint64_t *out)
{
    uint64_t whole = 0, part = 0, scale = 1;
    size_t at = 0;
    bool fine = false;
    for (; is_digit(text, at, n); at++)
        whole = whole < UINT64_MAX / 20 ? whole * 10 + (uint64_t)(text[at] - '0') : UINT64_MAX;
    if (at == 0)
        return NO_NUMBER;
    if (at < n && text[at] == '.') {
        size_t first = ++at;
        for (; is_digit(text, at, n); at++) {
            if (scale == MILLION) {
                fine |= text[at] != '0';
                continue;
            }
            part = part * 10 + (uint64_t)(text[at] - '0');
            scale *= 10;
        }
        if (at == first)
            return NO_NUMBER;
    }
    enum parsed p = finish(q, text + at, n - at, whole, part, scale, out);
    return p == PARSED && fine ? TOO_FINE : p;
}

void lab_number_say(enum lab_quantity q, uint64_t value, char *out, size_t bytes)
{
    const struct unit *u = quantities[q].units;
    if (q == LAB_RATE || q == LAB_RATIO) {
        int n = snprintf(out, bytes, "%llu.%06llu", (unsigned long long)(value / MILLION),
                         (unsigned long long)(value % MILLION));
        while (n > 0 && out[n - 1] == '0')
            out[--n] = '\0';
        if (n > 0 && out[n - 1] == '.')
            out[n - 1] = '\0';
        return;
    }
    while (u[1].name != NULL && !u[1].other && (value == 0 || value % u->factor != 0))
        u++;
    snprintf(out, bytes, "%llu%s", (unsigned long long)(value / u->factor), u->name);
}

static void say_allowed(const struct lab_range *r, char *out, size_t bytes)
{
    char low[32], high[32];
    lab_number_say(r->quantity, r->min, low, sizeof(low));
    lab_number_say(r->quantity, r->max, high, sizeof(high));
    snprintf(out, bytes, "allowed are %s to %s%s", low, high, quantities[r->quantity].unit_names);
}

bool lab_number_parse(const struct lab_range *r, const char *text, size_t n, uint64_t *out,
                      char why[LAB_NUMBER_BYTES])
{
    int width = n < SHOWN ? (int)n : SHOWN;
    char allowed[128];
    uint64_t value = 0;
    enum parsed p = parse(r->quantity, text, n, &value);
    if (p == PARSED && value >= r->min && value <= r->max) {
        *out = value;
        return true;
    }
    say_allowed(r, allowed, sizeof(allowed));
    if (p == PARSED)
        snprintf(why, LAB_NUMBER_BYTES, "%.*s is too %s; %s", width, text,
                 value < r->min ? "small" : "large", allowed);
    else
        snprintf(why, LAB_NUMBER_BYTES, "'%.*s' is not %s; %s", width, text,
                 p == TOO_FINE ? quantities[r->quantity].whole : quantities[r->quantity].like,
                 allowed);
    return false;
}
