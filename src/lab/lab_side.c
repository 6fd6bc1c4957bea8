/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_side.c: counters are read where the kernel shows them, and Verbena does: below
 * /sys/class/infiniband.
 */
#include "lab/lab_side.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const char *const part_names[LAB_PARTS] = {
    "fill", "checksum", "copy", "register", "post", "poll",
};

const char *lab_part_name(enum lab_part p)
{
    return part_names[p];
}

static bool read_counter(const char *folder, const char *name, long long *out)
{
    char path[600], text[32];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    char *got = fgets(text, sizeof(text), f);
    fclose(f);
    char *end;
    if (got == NULL)
        return false;
    *out = strtoll(text, &end, 10);
    return end != text;
}

static json_t *read_counters(const char *device, unsigned port)
{
    char folder[300];
    if (device == NULL)
        return NULL;
    snprintf(folder, sizeof(folder), "/sys/class/infiniband/%.64s/ports/%u/hw_counters", device,
             port);
    DIR *d = opendir(folder);
    if (d == NULL)
        return NULL;
    json_t *all = json_object();
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        long long value;
        if (e->d_name[0] != '.' && read_counter(folder, e->d_name, &value))
            json_object_set_new(all, e->d_name, json_integer(value));
    }
    closedir(d);
    return all;
}

/* What is more now than before, the rest left out. */
static void subtract(json_t *now, const json_t *before)
{
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe(now, next, name, value)
    {
        json_int_t change =
            json_integer_value(value) - json_integer_value(json_object_get(before, name));
        if (change != 0)
            json_object_set_new(now, name, json_integer(change));
        else
            json_object_del(now, name);
    }
}

static void read_usage(struct rusage *u, uint64_t *user_us, uint64_t *system_us)
{
    getrusage(RUSAGE_SELF, u);
    *user_us = (uint64_t)u->ru_utime.tv_sec * 1000000 + (uint64_t)u->ru_utime.tv_usec;
    *system_us = (uint64_t)u->ru_stime.tv_sec * 1000000 + (uint64_t)u->ru_stime.tv_usec;
}

void lab_side_begin(struct lab_side *s, const char *device, unsigned port)
{
    struct rusage u;
    *s = (struct lab_side){.counters = read_counters(device, port)};
    read_usage(&u, &s->user_us, &s->system_us);
    s->begun_ns = lab_now_ns();
}

void lab_side_end(struct lab_side *s, const char *device, unsigned port)
{
    struct rusage u;
    uint64_t user_us, system_us;
    s->wall_ns = lab_now_ns() - s->begun_ns;
    read_usage(&u, &user_us, &system_us);
    s->user_us = user_us - s->user_us;
    s->system_us = system_us - s->system_us;
    s->memory_kib = (uint64_t)u.ru_maxrss;
    json_t *now = s->counters == NULL ? NULL : read_counters(device, port);
    if (now != NULL)
        subtract(now, s->counters);
    json_decref(s->counters);
    s->counters = now;
}

void lab_side_add(struct lab_side *s, const struct lab_side *other)
{
    for (unsigned p = 0; p < LAB_PARTS; p++)
        s->part_ns[p] += other->part_ns[p];
    for (unsigned v = 0; v < LAB_VERDICTS; v++)
        s->data[v] += other->data[v];
    s->polls += other->polls;
    s->empty_polls += other->empty_polls;
    s->wakes += other->wakes;
    s->lost += other->lost;
    s->duplicates += other->duplicates;
    s->resent += other->resent;
    s->wrong_atomics += other->wrong_atomics;
    s->registered_bytes += other->registered_bytes;
    if (s->first_fault[0] == '\0')
        memcpy(s->first_fault, other->first_fault, sizeof(s->first_fault));
}

void lab_side_clear(struct lab_side *s)
{
    json_decref(s->counters);
    *s = (struct lab_side){0};
}

static enum lab_verdict look(struct lab_side *s, const uint8_t *bytes, const struct lab_expect *e,
                             uint32_t *offset)
{
    uint64_t start = lab_now_ns();
    enum lab_verdict v = lab_slot_check(bytes, e, offset);
    lab_side_spent(s, LAB_PART_CHECKSUM, start);
    return v;
}

static void count(struct lab_side *s, const uint8_t *bytes, const struct lab_expect *e,
                  enum lab_verdict v, uint32_t offset)
{
    s->data[v]++;
    if (v != LAB_DATA_GOOD && s->first_fault[0] == '\0')
        lab_slot_say(bytes, e, v, offset, s->first_fault, sizeof(s->first_fault));
}

enum lab_verdict lab_side_check(struct lab_side *s, const uint8_t *bytes,
                                const struct lab_expect *e)
{
    uint32_t offset;
    enum lab_verdict v = look(s, bytes, e, &offset);
    count(s, bytes, e, v, offset);
    return v;
}

bool lab_side_check_lossy(struct lab_side *s, const uint8_t *bytes, const struct lab_expect *e,
                          bool may_be_lost)
{
    uint32_t offset;
    enum lab_verdict v = look(s, bytes, e, &offset);
    if (may_be_lost && (v == LAB_DATA_STALE || v == LAB_DATA_CORRUPT)) {
        s->lost++;
        return false;
    }
    count(s, bytes, e, v, offset);
    return true;
}

uint64_t lab_side_faults(const struct lab_side *s)
{
    uint64_t faults = s->wrong_atomics;
    for (unsigned v = LAB_DATA_GOOD + 1; v < LAB_VERDICTS; v++)
        faults += s->data[v];
    return faults;
}

json_t *lab_side_json(const struct lab_side *s)
{
    json_t *o = json_object(), *parts = json_object(), *data = json_object();
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"wall_ns",          s->wall_ns                     },
        {"cpu_user_us",      s->user_us                     },
        {"cpu_system_us",    s->system_us                   },
        {"memory_kib",       s->memory_kib                  },
        {"registered_bytes", s->registered_bytes            },
        {"threads",          s->threads > 0 ? s->threads : 1},
        {"polls",            s->polls                       },
        {"empty_polls",      s->empty_polls                 },
        {"wakes",            s->wakes                       },
        {"lost",             s->lost                        },
        {"duplicates",       s->duplicates                  },
        {"resent",           s->resent                      },
        {"wrong_atomics",    s->wrong_atomics               },
    };
    for (unsigned p = 0; p < LAB_PARTS; p++)
        json_object_set_new(parts, part_names[p], json_integer((json_int_t)s->part_ns[p]));
    for (unsigned v = 0; v < LAB_VERDICTS; v++)
        json_object_set_new(data, lab_verdict_name(v), json_integer((json_int_t)s->data[v]));
    for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        json_object_set_new(o, numbers[i].name, json_integer((json_int_t)numbers[i].value));
    json_object_set_new(o, "parts_ns", parts);
    json_object_set_new(o, "data", data);
    if (s->first_fault[0] != '\0')
        json_object_set_new(o, "first_fault", json_string(s->first_fault));
    if (s->counters != NULL)
        json_object_set(o, "counters", s->counters);
    return o;
}
