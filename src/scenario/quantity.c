/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quantity.c: see quantity.h.
 */
#include "scenario/quantity.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct unit {
    const char *name;
    uint64_t factor;
};

enum { MAX_UNITS = 12 };

static const struct {
    unsigned first, last; /* units to print in */
    const char *example;
    struct unit unit[MAX_UNITS];
} kinds[QUANTITY_KINDS] = {
    [QUANTITY_RATE] = {0,
                       4,    "a rate such as 100Gbps",
                       {{"bps", 1},
                        {"Kbps", 1000},
                        {"Mbps", 1000000},
                        {"Gbps", 1000000000},
                        {"Tbps", UINT64_C(1000000000000)},
                        {"Kb/s", 1000},
                        {"Mb/s", 1000000},
                        {"Gb/s", 1000000000},
                        {"Tb/s", UINT64_C(1000000000000)}}                                      },
    [QUANTITY_TIME] = {0,
                       4,    "a time such as 1.5us",
                       {{"ps", 1},
                        {"ns", 1000},
                        {"us", 1000000},
                        {"ms", 1000000000},
                        {"s", UINT64_C(1000000000000)}}                                         },
    [QUANTITY_BYTES] = {4,
                       7,    "a size such as 4MiB",
                       {{"", 1},
                         {"KB", 1000},
                         {"MB", 1000000},
                         {"GB", 1000000000},
                         {"B", 1},
                         {"KiB", 1024},
                         {"MiB", 1024 * 1024},
                         {"GiB", 1024 * 1024 * 1024}}                                           },
    [QUANTITY_COUNT] = {0, 0, "a whole number",         {{"", 1}}                                },
    [QUANTITY_PPM] = {1, 1, "a share such as 1%",     {{"", 1000000}, {"%", 10000}, {"ppm", 1}}},
};

const char *quantity_example(enum quantity_kind kind)
{
    return kinds[kind].example;
}

/* How many there are goes into scale, as a power of ten, if that is asked for. */
static bool digits(const char **text, uint64_t *value, uint64_t *scale)
{
    const char *p = *text;
    if (!isdigit((unsigned char)*p))
        return false;
    for (; isdigit((unsigned char)*p); p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (*value > (UINT64_MAX - digit) / 10)
            return false;
        *value = *value * 10 + digit;
        if (scale == NULL)
            continue;
        if (*scale > UINT64_MAX / 10)
            return false;
        *scale *= 10;
    }
    *text = p;
    return true;
}

bool quantity_parse(const char *text, enum quantity_kind kind, uint64_t *out)
{
    uint64_t value = 0, scale = 1;
    if (!digits(&text, &value, NULL))
        return false;
    if (*text == '.') {
        text++;
        if (!digits(&text, &value, &scale))
            return false;
    }
    while (*text == ' ')
        text++;
    for (const struct unit *u = kinds[kind].unit; u < &kinds[kind].unit[MAX_UNITS]; u++) {
        if (u->name == NULL || strcmp(u->name, text) != 0)
            continue;
        /* value * factor / scale, both made smaller by what they share */
        uint64_t factor = u->factor;
        for (uint64_t p = 10; p > 1; p = p == 10 ? 5 : p == 5 ? 2 : 1)
            while (factor % p == 0 && scale % p == 0) {
                factor /= p;
                scale /= p;
            }
        if (value % scale != 0 || value / scale > UINT64_MAX / factor)
            return false;
        *out = value / scale * factor;
        return true;
    }
    return false;
}

const char *quantity_print(uint64_t value, enum quantity_kind kind, char text[QUANTITY_TEXT_BYTES])
{
    const struct unit *first = &kinds[kind].unit[kinds[kind].first];
    const struct unit *u = &kinds[kind].unit[kinds[kind].last];
    while (u > first && (value < u->factor || (kind == QUANTITY_BYTES && value % u->factor != 0)))
        u--;
    int n = snprintf(text, QUANTITY_TEXT_BYTES, "%" PRIu64, value / u->factor);
    uint64_t rest = value % u->factor, factor = u->factor;
    if (rest != 0)
        text[n++] = '.';
    for (; rest != 0; rest %= factor) { /* all factors that leave one are powers of ten */
        factor /= 10;
        text[n++] = (char)('0' + rest / factor);
    }
    snprintf(text + n, QUANTITY_TEXT_BYTES - (size_t)n, "%s", u->name);
    return text;
}
