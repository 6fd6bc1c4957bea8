/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sums.c: counts of all worlds of a process, for people and for scripts/worlds.py.
 */
#include "sums.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FAILURES = 1000 }; /* told one by one */

static struct {
    uint64_t seed;
    const char *class;
    char why[200];
} failure[MAX_FAILURES];
static unsigned failures;

const char *sums_class(const char *why_kind)
{
    static const char *const lost[] = {
        "receives completed", "receives flushed",   "not all PSNs acknowledged",
        "before the peer",    "the peer has",       "is complete",
        "before its last",    "completion was due", "op %u was due",
    };
    if (strncmp(why_kind, "stuck", 5) == 0)
        return "stuck";
    for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
        if (strstr(why_kind, lost[i]) != NULL)
            return "lost";
    return "wrong";
}

void sums_failed(uint64_t seed, const char *why_kind, const char *why)
{
    if (failures == MAX_FAILURES)
        return;
    failure[failures].seed = seed;
    failure[failures].class = sums_class(why_kind);
    snprintf(failure[failures].why, sizeof(failure[0].why), "%s", why);
    failures++;
}

void sums_print(const struct world *w)
{
    printf("# steps %llu, packets %llu, faults %llu, virtual seconds %llu\n",
           (unsigned long long)w->steps, (unsigned long long)w->packets,
           (unsigned long long)w->faults, (unsigned long long)(w->virtual_ns / 1000000000));
    if (w->paced_packets != 0)
        printf("# within a rate limit %llu packets, %llu times one waited for it\n",
               (unsigned long long)w->paced_packets, (unsigned long long)w->paced_waits);
    if (w->marks != 0)
        printf("# %llu packets marked, %llu CNPs, %llu of them slowed down\n",
               (unsigned long long)w->marks, (unsigned long long)w->cnps,
               (unsigned long long)w->slowed);
    for (int i = 0; i < FAULT_KINDS; i++)
        printf("# %-28s %12llu\n", link_fault_name[i], (unsigned long long)w->fault_kind[i]);
    for (int i = 0; i < COUNTER_COUNT; i++)
        printf("# %-28s %12llu\n", counters_name((enum nic_counter)i),
               (unsigned long long)w->counter[i]);
    for (int i = 0; i <= WC_GENERAL_ERR; i++)
        if (w->status[i] != 0)
            printf("# completions with status %-2d    %12llu\n", i,
                   (unsigned long long)w->status[i]);
}

static void print_text(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else
            putchar((unsigned char)*text < ' ' ? ' ' : *text);
}

void sums_json(const struct world *w, uint64_t seeds)
{
    printf("{\"seeds\": %llu, \"steps\": %llu, \"packets\": %llu, \"faults\": %llu, "
           "\"virtual_ns\": %llu, \"fault_kinds\": {",
           (unsigned long long)seeds, (unsigned long long)w->steps, (unsigned long long)w->packets,
           (unsigned long long)w->faults, (unsigned long long)w->virtual_ns);
    for (int i = 0; i < FAULT_KINDS; i++)
        printf("%s\"%s\": %llu", i == 0 ? "" : ", ", link_fault_name[i],
               (unsigned long long)w->fault_kind[i]);
    printf("}, \"completions\": {");
    for (int i = 0; i <= WC_GENERAL_ERR; i++)
        printf("%s\"%d\": %llu", i == 0 ? "" : ", ", i, (unsigned long long)w->status[i]);
    printf("}, \"failures\": [");
    for (unsigned i = 0; i < failures; i++) {
        printf("%s{\"seed\": \"0x%llx\", \"class\": \"%s\", \"why\": \"", i == 0 ? "" : ", ",
               (unsigned long long)failure[i].seed, failure[i].class);
        print_text(failure[i].why);
        printf("\"}");
    }
    printf("]}\n");
}
