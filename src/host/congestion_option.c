/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * congestion_option.c: see congestion_option.h. Whatever is not exactly understood is refused.
 */
#include "host/congestion_option.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_TEXT_BYTES = 128,
    MAX_DSCP = 63,
    DSCP_SHIFT = 2, /* in a traffic class */
    MAX_GBPS = 1600,
};
static const uint64_t MAX_INTERVAL_NS = 1000 * 1000 * 1000;
/* A socket's sender is late by that much now and then. */
static const uint64_t BURST_NS = 1000 * 1000;
static const uint64_t RTT_SLACK_NS = 1000 * 1000; /* as is the one that answers */
static const uint64_t PROBE_INTERVAL_NS = 100 * 1000;

static const char *const names[] = {CC_NAMES_LIVE};

struct unit {
    const char *name;
    uint64_t factor;
};

/* A whole number and one of the units, nothing behind. */
static bool take_amount(const char *p, const struct unit *units, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++) {
        v = v * 10 + (uint64_t)(*p - '0');
        if (v > max)
            return false;
    }
    for (const struct unit *u = units; u->name != NULL; u++) {
        if (strcmp(u->name, p) != 0)
            continue;
        *out = v * u->factor;
        return v <= max / u->factor;
    }
    return false;
}

static bool take_setting(const char *item, struct congestion_config *c)
{
    static const struct unit plain[] = {
        {"",   1},
        {NULL, 0}
    };
    static const struct unit times[] = {
        {"ns", 1      },
        {"us", 1000   },
        {"ms", 1000000},
        {NULL, 0      }
    };
    static const struct unit rates[] = {
        {"Mb/s", 1000000   },
        {"Gb/s", 1000000000},
        {NULL,   0         }
    };
    uint64_t v;
    if (strncmp(item, "rate=", 5) == 0)
        return take_amount(item + 5, rates, MAX_GBPS * UINT64_C(1000000000), &c->line_bps) &&
               c->line_bps != 0;
    if (strncmp(item, "cnp_interval=", 13) == 0)
        return take_amount(item + 13, times, MAX_INTERVAL_NS, &c->cnp_interval_ns);
    if (strncmp(item, "cnp_dscp=", 9) != 0 || !take_amount(item + 9, plain, MAX_DSCP, &v))
        return false;
    c->cnp_class = (uint8_t)(v << DSCP_SHIFT);
    return true;
}

static const char *find_name(const char *text)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], text) == 0)
            return names[i];
    return NULL;
}

static int refuse_name(const char *text, char *message)
{
    int n = snprintf(message, CONGESTION_MESSAGE_BYTES, "\"%.20s\": want", text);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        n += snprintf(message + n, CONGESTION_MESSAGE_BYTES - (size_t)n, "%s %s", i == 0 ? "" : ",",
                      names[i]);
    return -EINVAL;
}

int congestion_parse(const char *text, struct congestion_config *out,
                     char message[CONGESTION_MESSAGE_BYTES])
{
    char copy[MAX_TEXT_BYTES];
    struct congestion_config c = {
        .cnp_interval_ns = CNP_INTERVAL_NS,
        .probe_interval_ns = PROBE_INTERVAL_NS,
        .burst_ns = BURST_NS,
        .rtt_slack_ns = RTT_SLACK_NS,
        .cnp_class = CNP_DSCP << DSCP_SHIFT,
    };
    const char *seen[3];
    unsigned settings = 0;
    if (strlen(text) >= sizeof(copy)) {
        snprintf(message, CONGESTION_MESSAGE_BYTES, "\"%.20s...\" is too long", text);
        return -EINVAL;
    }
    memcpy(copy, text, strlen(text) + 1);
    char *next = strchr(copy, ',');
    if (next != NULL)
        *next++ = '\0';
    if (strcmp(copy, "hpcc") == 0) {
        snprintf(message, CONGESTION_MESSAGE_BYTES,
                 "hpcc wants switches that write their queues into packets (INT), which "
                 "the networks of hosts are not known to do");
        return -EINVAL;
    }
    c.algorithm = find_name(copy);
    if (c.algorithm == NULL)
        return refuse_name(copy, message);
    while (next != NULL) {
        char *item = next;
        next = strchr(item, ',');
        if (next != NULL)
            *next++ = '\0';
        size_t key = strcspn(item, "=") + 1;
        bool twice = false;
        for (unsigned i = 0; i < settings; i++)
            twice |= strncmp(seen[i], item, key) == 0;
        if (twice || settings == 3 || !take_setting(item, &c)) {
            snprintf(message, CONGESTION_MESSAGE_BYTES,
                     "\"%.40s\"%s: want values like rate=25Gb/s, cnp_dscp=48, cnp_interval=50us",
                     item, twice ? " is given twice" : "");
            return -EINVAL;
        }
        seen[settings++] = item;
    }
    *out = c;
    return 0;
}
