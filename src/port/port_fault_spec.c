/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_fault_spec.c: the text of a fault specification. Integers only; whatever is not exactly
 * understood is refused.
 */
#include "port/port_fault.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    PERCENT_DECIMALS = 7, /* 10^-9 of 1 is 10^-7 % */
    MAX_TEXT_BYTES = 512,
};
static const uint64_t MAX_TIME_NS = 86400ull * 1000000000; /* a day */

enum key {
    KEY_DROP,
    KEY_DUP,
    KEY_REORDER,
    KEY_CORRUPT,
    KEY_CE,
    KEY_DELAY,
    KEY_DOWN,
    KEY_SEED,
    KEY_COUNT
};

static const struct {
    const char *name;
    const char *form;
} keys[KEY_COUNT] = {
    [KEY_DROP] = {"drop",    "1%"     },
    [KEY_DUP] = {"dup",     "0.1%"   },
    [KEY_REORDER] = {"reorder", "1%:50us"},
    [KEY_CORRUPT] = {"corrupt", "0.01%"  },
    [KEY_CE] = {"ce",      "5%"     },
    [KEY_DELAY] = {"delay",   "20us"   },
    [KEY_DOWN] = {"down",    "5s+2s"  },
    [KEY_SEED] = {"seed",    "7"      },
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits at *p, at least one, value at most max; moves *p on. */
static bool take_number(const char **p, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;
    if (!is_digit(**p))
        return false;
    for (; is_digit(**p); (*p)++) {
        uint64_t digit = (uint64_t)(**p - '0');
        if (v > (max - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *out = v;
    return true;
}

/* `1%`, `0.01%`: 0 to 100. */
static bool take_percent(const char **p, uint32_t *ppb)
{
    const uint32_t unit = FAULT_PPB / 100;
    uint64_t whole;
    if (!take_number(p, 100, &whole))
        return false;
    uint64_t v = whole * unit;
    if (**p == '.') {
        (*p)++;
        if (!is_digit(**p))
            return false;
        uint32_t scale = unit;
        for (int i = 0; is_digit(**p); i++, (*p)++) {
            scale /= 10;
            if (i == PERCENT_DECIMALS)
                return false;
            v += (uint64_t)(**p - '0') * scale;
        }
    }
    if (**p != '%' || v > FAULT_PPB)
        return false;
    (*p)++;
    *ppb = (uint32_t)v;
    return true;
}

static bool take_time(const char **p, uint64_t *ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {
        {"ns", 1         },
        {"us", 1000      },
        {"ms", 1000000   },
        {"s",  1000000000}
    };
    uint64_t n;
    if (!take_number(p, MAX_TIME_NS, &n))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t len = strlen(units[i].name);
        if (strncmp(*p, units[i].name, len) == 0) {
            if (n > MAX_TIME_NS / units[i].ns)
                return false;
            *p += len;
            *ns = n * units[i].ns;
            return true;
        }
    }
    return false;
}

static bool take_char(const char **p, char c)
{
    if (**p != c)
        return false;
    (*p)++;
    return true;
}

static bool take_value(enum key key, const char *p, struct fault_spec *s)
{
    bool ok = false;
    switch (key) {
    case KEY_DROP:
        ok = take_percent(&p, &s->drop_ppb);
        break;
    case KEY_DUP:
        ok = take_percent(&p, &s->dup_ppb);
        break;
    case KEY_REORDER:
        ok = take_percent(&p, &s->reorder_ppb) && take_char(&p, ':') &&
             take_time(&p, &s->reorder_ns);
        break;
    case KEY_CORRUPT:
        ok = take_percent(&p, &s->corrupt_ppb);
        break;
    case KEY_CE:
        ok = take_percent(&p, &s->ce_ppb);
        break;
    case KEY_DELAY:
        ok = take_time(&p, &s->delay_ns);
        break;
    case KEY_DOWN:
        ok = take_time(&p, &s->down_at_ns) && take_char(&p, '+') && take_time(&p, &s->down_ns);
        break;
    case KEY_SEED:
        ok = take_number(&p, UINT64_MAX, &s->seed);
        break;
    case KEY_COUNT:
        break;
    }
    return ok && *p == '\0';
}

static enum key find_key(const char *item, const char *equals)
{
    for (enum key k = 0; k < KEY_COUNT; k++) {
        size_t n = strlen(keys[k].name);
        if ((size_t)(equals - item) == n && memcmp(item, keys[k].name, n) == 0)
            return k;
    }
    return KEY_COUNT;
}

static int parse_item(const char *item, unsigned *seen, struct fault_spec *s, char *message)
{
    const char *equals = strchr(item, '=');
    enum key key = equals == NULL ? KEY_COUNT : find_key(item, equals);
    if (key == KEY_COUNT) {
        snprintf(
            message, FAULT_MESSAGE_BYTES,
            "fault \"%.40s\": want drop=, dup=, reorder=, corrupt=, ce=, delay=, down= or seed=",
            item);
    } else if ((*seen & 1u << key) != 0) {
        snprintf(message, FAULT_MESSAGE_BYTES, "fault \"%.40s\": %s is given twice", item,
                 keys[key].name);
    } else if (!take_value(key, equals + 1, s)) {
        snprintf(message, FAULT_MESSAGE_BYTES, "fault \"%.40s\": want a value like %s=%s", item,
                 keys[key].name, keys[key].form);
    } else {
        *seen |= 1u << key;
        return 0;
    }
    return -EINVAL;
}

int fault_parse(const char *text, struct fault_spec *out, char message[FAULT_MESSAGE_BYTES])
{
    char copy[MAX_TEXT_BYTES];
    size_t n = strlen(text);
    message[0] = '\0';
    if (n == 0 || n >= sizeof(copy)) {
        snprintf(message, FAULT_MESSAGE_BYTES, "fault specification is %s",
                 n == 0 ? "empty" : "too long");
        return -EINVAL;
    }
    memcpy(copy, text, n + 1);
    struct fault_spec s = {0};
    unsigned seen = 0;
    for (char *item = copy; item != NULL;) {
        char *comma = strchr(item, ',');
        if (comma != NULL)
            *comma = '\0';
        int err = parse_item(item, &seen, &s, message);
        if (err != 0)
            return err;
        item = comma == NULL ? NULL : comma + 1;
    }
    *out = s;
    return 0;
}
