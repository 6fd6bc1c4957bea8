/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.c: adds up the counters of a process tree. Order is that of first appearance, which is the
 * engine's.
 */
#include "stats.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_COUNTERS = 512,
    MAX_NAME_BYTES = 64,
    MAX_PROCESSES = 4096, /* counted; more are added up all the same */
    MAX_LINE_BYTES = 256,
};

struct sum {
    char name[MAX_NAME_BYTES];
    uint64_t value;
};

struct sums {
    struct sum sum[MAX_COUNTERS];
    unsigned n;
    uint64_t pid[MAX_PROCESSES];
    unsigned processes;
};

static void add(struct sums *s, const char *name, uint64_t value)
{
    for (unsigned i = 0; i < s->n; i++) {
        if (strcmp(s->sum[i].name, name) == 0) {
            s->sum[i].value += value;
            return;
        }
    }
    if (s->n == MAX_COUNTERS)
        return;
    struct sum *new = &s->sum[s->n++];
    memcpy(new->name, name, strlen(name) + 1); /* parse_line saw that it fits */
    new->value = value;
}

/* A process that opened devices several times left several lines of each counter. */
static void add_process(struct sums *s, uint64_t pid)
{
    for (unsigned i = 0; i < s->processes; i++)
        if (s->pid[i] == pid)
            return;
    if (s->processes < MAX_PROCESSES)
        s->pid[s->processes++] = pid;
}

/* Digits up to a space, which is passed over. */
static bool take_number(char **at, uint64_t *out)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    *out = strtoull(*at, &end, 10);
    if (*end != ' ')
        return false;
    *at = end + 1;
    return true;
}

/* `name value pid program` and the end of the line; the program's name may have spaces. */
static bool parse_line(char *line, const char **name, uint64_t *value, uint64_t *pid)
{
    char *at = strchr(line, ' ');
    if (at == NULL || at == line || at - line >= MAX_NAME_BYTES)
        return false;
    *at++ = '\0';
    *name = line;
    return take_number(&at, value) && take_number(&at, pid) && *at != '\n' &&
           strchr(at, '\n') != NULL;
}

unsigned stats_print(FILE *in, FILE *out)
{
    struct sums *s = calloc(1, sizeof(*s));
    char line[MAX_LINE_BYTES];
    if (s == NULL)
        return 0;
    while (fgets(line, sizeof(line), in) != NULL) {
        const char *name;
        uint64_t value, pid;
        if (!parse_line(line, &name, &value, &pid))
            continue;
        add(s, name, value);
        add_process(s, pid);
    }
    unsigned processes = s->processes;
    if (processes == 0)
        fprintf(out, "verbena: no counters: no process used a device of the software NIC\n");
    else
        fprintf(out, "verbena: counters of %u process%s\n", processes, processes > 1 ? "es" : "");
    for (unsigned i = 0; i < s->n; i++)
        fprintf(out, "  %-32s %20" PRIu64 "\n", s->sum[i].name, s->sum[i].value);
    free(s);
    return processes;
}
