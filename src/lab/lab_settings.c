/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_settings.c: the table, and how a text becomes a value of each kind.
 */
#include "lab/lab_settings.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lab_number.h"

enum kind { COUNT, BYTES, COUNTS, SIZES, CHOICE, CHOICES, TIME, RATE, RATIO, TEXT, GID };

static const char *const op_names[] = {"write", "write-imm", "read", "send", "atomic", NULL};
static const char *const transport_names[] = {"rc", "uc", "ud", NULL};
static const char *const wait_names[] = {"poll", "event", NULL};
static const char *const way_names[] = {"direct", "bounce", "gather",   "temporary",
                                        "pool",   "inline", "register", NULL};
static const char *const connect_names[] = {"control", "cm", NULL};
static const char *const switch_names[] = {"off", "on", NULL};
static const char *const experiment_names[] = {"none", "torn", "flag", "bare", NULL};
static const char *const near_names[] = {"any", "near", "far", NULL};
static const char *const plant_names[] = {"none", "wrong-data", "stale-data", "early-reuse", NULL};

struct rule {
    enum kind kind;
    unsigned offset;
    uint64_t min, max; /* of each value; a text's length */
    const char *const *names;
    const char *normal; /* the text that holds when nothing is said */
};

#define AT(field) offsetof(struct lab_settings, field)
#define ANY       (LAB_ROLE_LOCAL | LAB_ROLE_SERVE | LAB_ROLE_RUN | LAB_ROLE_RANKS)
#define MEASURES  (LAB_ROLE_LOCAL | LAB_ROLE_RUN | LAB_ROLE_RANKS)
#define PATH      (LAB_ROLE_PATH | ANY)
#define ALL       (LAB_ROLE_EXPERIMENT | PATH)
#define TRIED     (LAB_ROLE_EXPERIMENT | ANY)
#define BESIDE    (TRIED & ~LAB_ROLE_RANKS)
#define SOURCES   (LAB_ROLE_RUN | LAB_ROLE_PATH | LAB_ROLE_EXPERIMENT)
#define REMOTE    (LAB_ROLE_SERVE | SOURCES)
#define OUTPUTS   (LAB_ROLE_PATH | LAB_ROLE_EXPERIMENT | MEASURES)

const struct lab_setting lab_setting_table[] = {
    {"op",           "LIST",           "Operations, of write, write-imm, read, send, atomic",                    true,  PATH          },
    {"transport",    "NAME",           "rc, uc or ud",                                                           true,  PATH          },
    {"size",         "LIST",           "Bytes of a message, for example 64,4KiB,1MiB",                           true,  ALL           },
    {"depth",        "LIST",           "How many messages are under way at once",                                true,  ANY           },
    {"offset",       "LIST",           "Where in its slot a message begins",                                     true,  PATH          },
    {"qps",          "LIST",           "Queue pairs at once, each with messages of its own",                     true,  ANY           },
    {"threads",      "LIST",           "Threads of each end that drive them",                                    true,  ANY           },
    {"numa",         "LIST",           "Slots near the thread and the device, or far: any, near, far",           true,  ANY           },
    {"slots",        "N",              "Slots of the pool",                                                      true,  PATH          },
    {"slot-bytes",   "BYTES",          "Size of a slot",                                                         true,  PATH          },
    {"iterations",   "N",              "Messages that are measured, for each case; 0: 1000, or 128 MiB of them",
     true,                                                                                                              TRIED         },
    {"warmup",       "N",              "Messages before those",                                                  true,  ANY           },
    {"signal-every", "N",              "One work request in N asks for a completion",                            true,  ANY           },
    {"buffers",      "LIST",
     "Where copies hide: of direct, bounce, gather, temporary, pool, inline, register",                          true,  PATH          },
    {"wait",         "HOW",            "poll, or event: sleep until the device wakes us",                        true,  PATH          },
    {"connect",      "HOW",            "control: by what both ends tell; cm: by librdmacm",                      true,  PATH          },
    {"baseline",     "on",             "The same over TCP, and memcpy: on or off",                               true,  ANY           },
    {"timeout",      "TIME",           "Give up when nothing moves for so long",                                 true,  ALL           },
    {"retry",        "TIME",           "uc and ud: send again what is not acknowledged for so long",             true,  PATH          },
    {"plant",        "FAULT",          "Prove the detectors: wrong-data, stale-data or early-reuse",             true,  ANY           },
    {"experiment",   "LIST",           "Experiments: torn, flag, bare; or none",                                 true,  BESIDE        },
    {"path",         "on",             "",                                                                       true,  0             },
    {"device",       "NAME",           "RDMA device; else the one of the address in use",                        false, ALL           },
    {"gid-index",    "N",              "Entry of its GID table",                                                 false, ALL           },
    {"key",          "FILE",           "The key that both ends share; `lab key FILE' makes one",                 false, REMOTE        },
    {"peer",         "HOST[:PORT]",    "Where `lab serve' runs",                                                 false, SOURCES       },
    {"listen",       "ADDRESS[:PORT]", "Be reached by this address only",                                        false, LAB_ROLE_SERVE},
    {"port",         "N",              "TCP port of the control connection",                                     false, REMOTE        },
    {"network",      "PREFIX",         "Ranks reach one another by addresses of it only",                        false, LAB_ROLE_RANKS},
    {"json",         "FILE",           "Write the record of the run to FILE; - is standard output",              false, OUTPUTS       },
    {"html",         "FILE",           "Write the report with charts to FILE",                                   false, OUTPUTS       },
    {"db",           "FILE",           "Keep the run in this history, not the user's; none: in none",            false, OUTPUTS       },
    {"max-p99",      "TIME",           "Fail when the 99th percentile of a measure is above",                    false, MEASURES      },
    {"min-gbps",     "GBPS",           "Fail when the throughput of a case is below",                            false, MEASURES      },
    {"min-ratio",    "RATIO",          "Fail when the throughput of a case is below so many times TCP's",        false,
     MEASURES                                                                                                                         },
};

static const struct rule rules[] = {
    {CHOICES, AT(ops),           0,       0,                op_names,         "write,write-imm,read,send,atomic"},
    {CHOICE,  AT(transport),     0,       0,                transport_names,  "rc"                              },
    {SIZES,   AT(sizes),         2,       LAB_MAX_SIZE,     NULL,             "64,4KiB,64KiB,1MiB"              },
    {COUNTS,  AT(depths),        1,       LAB_MAX_SLOTS,    NULL,             "1,4,16,64"                       },
    {COUNTS,  AT(offsets),       0,       4095,             NULL,             "0"                               },
    {COUNTS,  AT(qps),           1,       LAB_MAX_QPS,      NULL,             "1"                               },
    {COUNTS,  AT(threads),       1,       LAB_MAX_QPS,      NULL,             "1"                               },
    {CHOICES, AT(numa),          0,       0,                near_names,       "any"                             },
    {COUNT,   AT(slots),         1,       LAB_MAX_SLOTS,    NULL,             "64"                              },
    {BYTES,   AT(slot_bytes),    0,       LAB_MAX_SIZE,     NULL,             "0"                               },
    {COUNT,   AT(iterations),    0,       1000000000,       NULL,             "0"                               },
    {COUNT,   AT(warmup),        0,       1000000000,       NULL,             "100"                             },
    {COUNT,   AT(signal_every),  1,       LAB_MAX_SLOTS,    NULL,             "1"                               },
    {CHOICES, AT(ways),          0,       0,                way_names,        "direct"                          },
    {CHOICE,  AT(wait),          0,       0,                wait_names,       "poll"                            },
    {CHOICE,  AT(connect),       0,       0,                connect_names,    "control"                         },
    {CHOICE,  AT(baseline),      0,       0,                switch_names,     "on"                              },
    {TIME,    AT(timeout_ns),    1000000, 3600000000000,    NULL,             "10s"                             },
    {TIME,    AT(retry_ns),      1000000, 10000000000,      NULL,             "20ms"                            },
    {CHOICE,  AT(plant),         0,       0,                plant_names,      "none"                            },
    {CHOICES, AT(experiments),   0,       0,                experiment_names, "none"                            },
    {CHOICE,  AT(path),          0,       0,                switch_names,     "off"                             },
    {TEXT,    AT(device),        1,       LAB_MAX_TEXT - 1, NULL,             ""                                },
    {GID,     AT(gid_index),     0,       255,              NULL,             "any"                             },
    {TEXT,    AT(key),           1,       LAB_MAX_TEXT - 1, NULL,             ""                                },
    {TEXT,    AT(peer),          1,       LAB_MAX_TEXT - 1, NULL,             ""                                },
    {TEXT,    AT(listen),        1,       LAB_MAX_TEXT - 1, NULL,             ""                                },
    {COUNT,   AT(port),          1,       65535,            NULL,             "18470"                           },
    {TEXT,    AT(network),       1,       LAB_MAX_TEXT - 1, NULL,             ""                                },
    {TEXT,    AT(json),          1,       LAB_MAX_TEXT - 1, NULL,             ""                                },
    {TEXT,    AT(html),          1,       LAB_MAX_TEXT - 1, NULL,             ""                                },
    {TEXT,    AT(db),            1,       LAB_MAX_TEXT - 1, NULL,             ""                                },
    {TIME,    AT(max_p99_ns),    1,       3600000000000,    NULL,             ""                                },
    {RATE,    AT(min_kbps),      1,       10000000000,      NULL,             ""                                },
    {RATIO,   AT(min_ratio_ppm), 1,       1000000000,       NULL,             ""                                },
};

enum { RULES = sizeof(rules) / sizeof(rules[0]) };
_Static_assert(sizeof(lab_setting_table) / sizeof(lab_setting_table[0]) == RULES, "two halves");
_Static_assert(RULES <= 64, "bits of given");
const unsigned lab_setting_count = RULES;

const char *lab_op_name(enum lab_op op)
{
    return op_names[op];
}

const char *lab_near_name(enum lab_near n)
{
    return near_names[n];
}

const char *lab_way_name(enum lab_way w)
{
    return way_names[w];
}

const char *lab_transport_name(enum lab_transport t)
{
    return transport_names[t];
}

static void *field(const struct lab_settings *s, unsigned place)
{
    return (char *)s + rules[place].offset;
}

int lab_settings_find(const char *name)
{
    for (unsigned i = 0; i < RULES; i++)
        if (strcmp(lab_setting_table[i].name, name) == 0)
            return (int)i;
    return -1;
}

static bool parse_name(const char *const *names, const char *text, size_t n, uint64_t *out)
{
    for (uint64_t i = 0; names[i] != NULL; i++) {
        if (strlen(names[i]) == n && strncmp(names[i], text, n) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

static void list_names(const char *const *names, char *out, size_t bytes)
{
    size_t at = 0;
    out[0] = '\0';
    for (unsigned i = 0; names[i] != NULL && at < bytes; i++)
        at += (size_t)snprintf(out + at, bytes - at, "%s%s", i > 0 ? ", " : "", names[i]);
}

static enum lab_quantity quantity_of(enum kind kind)
{
    switch (kind) {
    case BYTES:
    case SIZES:
        return LAB_BYTES;
    case TIME:
        return LAB_TIME;
    case RATE:
        return LAB_RATE;
    case RATIO:
        return LAB_RATIO;
    default:
        return LAB_PIECES;
    }
}

/* One piece of a text; the message says what would have been right. */
static int parse_piece(unsigned place, const char *text, size_t n, uint64_t *out,
                       char message[LAB_MESSAGE_BYTES])
{
    const struct rule *r = &rules[place];
    const char *name = lab_setting_table[place].name;
    int width = n < 64 ? (int)n : 64;
    if (r->kind == CHOICE || r->kind == CHOICES) {
        char names[128];
        if (parse_name(r->names, text, n, out))
            return 0;
        list_names(r->names, names, sizeof(names));
        snprintf(message, LAB_MESSAGE_BYTES, "%s: '%.*s' is none of %s", name, width, text, names);
        return -EINVAL;
    }
    const struct lab_range range = {quantity_of(r->kind), r->min, r->max};
    char why[LAB_NUMBER_BYTES];
    if (lab_number_parse(&range, text, n, out, why))
        return 0;
    snprintf(message, LAB_MESSAGE_BYTES, "%s: %s%s", name, why, r->kind == GID ? ", or any" : "");
    return -EINVAL;
}

static int parse_list(unsigned place, const char *text, struct lab_list *list, uint64_t *bits,
                      char message[LAB_MESSAGE_BYTES])
{
    const char *name = lab_setting_table[place].name;
    for (;;) {
        size_t n = strcspn(text, ",");
        uint64_t value;
        int error = parse_piece(place, text, n, &value, message);
        if (error != 0)
            return error;
        if (list->count == LAB_MAX_LIST) {
            snprintf(message, LAB_MESSAGE_BYTES, "%s: more than %d values", name, LAB_MAX_LIST);
            return -EINVAL;
        }
        for (uint32_t i = 0; i < list->count; i++) {
            if (list->value[i] == value) {
                snprintf(message, LAB_MESSAGE_BYTES, "%s: %.*s is there twice", name,
                         n < 64 ? (int)n : 64, text);
                return -EINVAL;
            }
        }
        list->value[list->count++] = (uint32_t)value;
        if (rules[place].kind == CHOICES)
            *bits |= 1ull << value;
        if (text[n] == '\0')
            return 0;
        text += n + 1;
    }
}

static int parse_text(unsigned place, const char *text, char *out, char message[LAB_MESSAGE_BYTES])
{
    size_t n = strlen(text);
    if (n < rules[place].min || n > rules[place].max) {
        snprintf(message, LAB_MESSAGE_BYTES, "%s: %s", lab_setting_table[place].name,
                 n == 0 ? "is empty" : "is too long");
        return -EINVAL;
    }
    memcpy(out, text, n + 1);
    return 0;
}

int lab_settings_set(struct lab_settings *s, unsigned place, const char *text,
                     char message[LAB_MESSAGE_BYTES])
{
    const struct rule *r = &rules[place];
    struct lab_list list = {0};
    uint64_t value = 0;
    int error;
    switch (r->kind) {
    case TEXT:
        error = parse_text(place, text, field(s, place), message);
        break;
    case COUNTS:
    case SIZES:
    case CHOICES:
        error = parse_list(place, text, &list, &value, message);
        break;
    case GID:
        if (strcmp(text, "any") == 0) {
            value = LAB_ANY_GID;
            error = 0;
            break;
        }
        /* fall through */
    default:
        error = parse_piece(place, text, strlen(text), &value, message);
        break;
    }
    if (error != 0)
        return error;
    if (r->kind == COUNTS || r->kind == SIZES)
        *(struct lab_list *)field(s, place) = list;
    else if (r->kind != TEXT)
        *(uint64_t *)field(s, place) = value;
    s->given |= 1ull << place;
    return 0;
}

void lab_settings_init(struct lab_settings *s)
{
    char message[LAB_MESSAGE_BYTES];
    *s = (struct lab_settings){0};
    for (unsigned i = 0; i < RULES; i++)
        if (rules[i].normal[0] != '\0' && lab_settings_set(s, i, rules[i].normal, message) != 0)
            abort(); /* the table's own fault */
    s->given = 0;
}

static void text_of_number(enum kind kind, uint64_t value, char *out, unsigned bytes)
{
    unsigned long long v = value;
    if (kind == RATE || kind == RATIO)
        snprintf(out, bytes, "%llu.%06llu", v / 1000000, v % 1000000);
    else if (kind == TIME)
        lab_number_say(LAB_TIME, value, out, bytes);
    else
        snprintf(out, bytes, "%llu", v);
}

void lab_settings_text(const struct lab_settings *s, unsigned place, char *out, unsigned bytes)
{
    const struct rule *r = &rules[place];
    const void *from = field(s, place);
    const struct lab_list *list = from;
    unsigned at = 0;
    out[0] = '\0';
    switch (r->kind) {
    case TEXT:
        snprintf(out, bytes, "%s", (const char *)from);
        break;
    case CHOICE:
        snprintf(out, bytes, "%s", r->names[*(const uint64_t *)from]);
        break;
    case CHOICES:
        for (unsigned i = 0; r->names[i] != NULL && at < bytes; i++)
            if ((*(const uint64_t *)from >> i & 1) != 0)
                at += (unsigned)snprintf(out + at, bytes - at, "%s%s", at > 0 ? "," : "",
                                         r->names[i]);
        break;
    case COUNTS:
    case SIZES:
        for (uint32_t i = 0; i < list->count && at < bytes; i++)
            at +=
                (unsigned)snprintf(out + at, bytes - at, "%s%u", i > 0 ? "," : "", list->value[i]);
        break;
    case GID:
        if (*(const uint64_t *)from == LAB_ANY_GID) {
            snprintf(out, bytes, "any");
            break;
        }
        /* fall through */
    default:
        text_of_number(r->kind, *(const uint64_t *)from, out, bytes);
        break;
    }
}

static uint32_t largest(const struct lab_list *list)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < list->count; i++)
        if (list->value[i] > most)
            most = list->value[i];
    return most;
}

uint64_t lab_settings_iterations(const struct lab_settings *s, uint32_t size)
{
    uint64_t most = (128u << 20) / size;
    if (s->iterations != 0)
        return s->iterations;
    return most > 1000 ? 1000 : most;
}

uint32_t lab_settings_slot_bytes(const struct lab_settings *s)
{
    uint32_t size = largest(&s->sizes);
    if (s->slot_bytes != 0)
        return (uint32_t)s->slot_bytes;
    size += largest(&s->offsets);
    return size < 65536 ? 65536 : (size + 63) & ~63u;
}

/* What a transport does not offer is refused here and not by the device; unless nobody asked for
 * it. */
static int check_ops(struct lab_settings *s, char message[LAB_MESSAGE_BYTES])
{
    static const uint64_t offered[LAB_TRANSPORTS] = {
        [LAB_RC] = (1 << LAB_OPS) - 1,
        [LAB_UC] = 1 << LAB_WRITE | 1 << LAB_WRITE_IMM | 1 << LAB_SEND,
        [LAB_UD] = 1 << LAB_SEND,
    };
    if ((s->given & 1) == 0)
        s->ops &= offered[s->transport];
    if (s->transport == LAB_UD && (s->given >> lab_settings_find("size") & 1) == 0)
        s->sizes = (struct lab_list){
            2, {64, 1024}
        }; /* a datagram is a packet */
    uint64_t missing = s->ops & ~offered[s->transport];
    for (unsigned op = 0; op < LAB_OPS; op++) {
        if ((missing >> op & 1) != 0) {
            snprintf(message, LAB_MESSAGE_BYTES, "op: transport %s has no %s",
                     transport_names[s->transport], op_names[op]);
            return -EINVAL;
        }
    }
    return 0;
}

bool lab_settings_has_case(const struct lab_settings *s, unsigned op, uint32_t size,
                           enum lab_way way)
{
    enum { HEAD_BYTES = 32 }; /* below, there is none to be elsewhere than the body */
    bool sends = op == LAB_WRITE || op == LAB_WRITE_IMM || op == LAB_SEND;
    switch (way) {
    case LAB_DIRECT:
        return true;
    case LAB_BOUNCE:
        return sends;
    case LAB_GATHER:
    case LAB_TEMPORARY:
        return sends && size > HEAD_BYTES;
    case LAB_SHARED_POOL:
        return op == LAB_SEND && s->transport != LAB_UC;
    case LAB_INLINE:
        return sends && size <= LAB_MAX_INLINE;
    case LAB_REGISTER: /* what is sent again must be registered still */
        return sends && s->transport == LAB_RC;
    default:
        return false;
    }
}

bool lab_settings_has_team(const struct lab_settings *s, uint32_t qps, uint32_t threads)
{
    /* Who sleeps for one queue pair cannot drive another. */
    return threads <= qps && (s->wait != LAB_EVENT || threads == qps);
}

/* The first of a list that goes with nothing of the other; its length where there is none. */
static uint32_t find_alone(const struct lab_settings *s, bool threads)
{
    const struct lab_list *list = threads ? &s->threads : &s->qps;
    const struct lab_list *other = threads ? &s->qps : &s->threads;
    for (uint32_t i = 0; i < list->count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < other->count; k++)
            found |= threads ? lab_settings_has_team(s, other->value[k], list->value[i])
                             : lab_settings_has_team(s, list->value[i], other->value[k]);
        if (!found)
            return i;
    }
    return list->count;
}

static int check_teams(const struct lab_settings *s, char message[LAB_MESSAGE_BYTES])
{
    const char *why = s->wait == LAB_EVENT
                          ? "with --wait event each queue pair has a thread of its own"
                          : "there are no more threads than queue pairs";
    uint32_t alone = find_alone(s, true);
    if (alone < s->threads.count) {
        snprintf(message, LAB_MESSAGE_BYTES, "threads: %u does not go with these queue pairs: %s",
                 s->threads.value[alone], why);
        return -EINVAL;
    }
    alone = find_alone(s, false);
    if (alone < s->qps.count) {
        snprintf(message, LAB_MESSAGE_BYTES, "qps: %u does not go with these threads: %s",
                 s->qps.value[alone], why);
        return -EINVAL;
    }
    return 0;
}

static bool has_any_case(const struct lab_settings *s, enum lab_way way)
{
    for (unsigned op = 0; op < LAB_OPS; op++)
        for (uint32_t i = 0; i < s->sizes.count; i++)
            if ((s->ops >> op & 1) != 0 && lab_settings_has_case(s, op, s->sizes.value[i], way))
                return true;
    return false;
}

static int check_ways(const struct lab_settings *s, char message[LAB_MESSAGE_BYTES])
{
    for (unsigned way = 0; way < LAB_WAYS; way++) {
        if ((s->ways >> way & 1) != 0 && !has_any_case(s, (enum lab_way)way)) {
            snprintf(message, LAB_MESSAGE_BYTES,
                     "buffers: %s goes with none of these operations and sizes over %s",
                     way_names[way], transport_names[s->transport]);
            return -EINVAL;
        }
    }
    return 0;
}

/* HOST:PORT, [IPV6]:PORT and [IPV6] become a host and the port. What has several colons and no
 * brackets is an IPv6 address. */
static int split_host(struct lab_settings *s, const char *name, char host[LAB_MAX_TEXT],
                      char message[LAB_MESSAGE_BYTES])
{
    unsigned place = (unsigned)lab_settings_find("port");
    const struct lab_range range = {LAB_PIECES, rules[place].min, rules[place].max};
    char *close = strchr(host, ']'), *colon = strchr(host, ':'), why[LAB_NUMBER_BYTES];
    bool brackets = host[0] == '[';
    char *end = brackets ? close : colon; /* of the host */
    uint64_t port;
    if (!brackets && (colon == NULL || strchr(colon + 1, ':') != NULL))
        return 0;
    colon = brackets && close != NULL ? close + 1 : colon;
    if (end == NULL || end == host + brackets || (colon[0] != ':' && colon[0] != '\0')) {
        snprintf(message, LAB_MESSAGE_BYTES,
                 "%s: '%s' is no host; allowed are HOST, HOST:PORT, [IPV6] and [IPV6]:PORT", name,
                 host);
        return -EINVAL;
    }
    if (colon[0] == ':') {
        if (!lab_number_parse(&range, colon + 1, strlen(colon + 1), &port, why)) {
            snprintf(message, LAB_MESSAGE_BYTES, "%s: port %s", name, why);
            return -EINVAL;
        }
        if ((s->given >> place & 1) != 0 && s->port != port) {
            snprintf(message, LAB_MESSAGE_BYTES,
                     "%s: names port %llu and --port another one, %llu; say one of them", name,
                     (unsigned long long)port, (unsigned long long)s->port);
            return -EINVAL;
        }
        s->port = port;
        s->given |= 1ull << place;
    }
    *end = '\0';
    memmove(host, host + brackets, strlen(host + brackets) + 1);
    return 0;
}

/* Depths that nobody asked for are those that the slots have room for. */
static void fit_depths(struct lab_settings *s)
{
    if ((s->given >> lab_settings_find("depth") & 1) != 0)
        return;
    while (s->depths.count > 1 &&
           (uint64_t)s->depths.value[s->depths.count - 1] * largest(&s->qps) > s->slots)
        s->depths.count--;
}

int lab_settings_check(struct lab_settings *s, char message[LAB_MESSAGE_BYTES])
{
    int error = check_ops(s, message);
    fit_depths(s);
    uint32_t slot_bytes = lab_settings_slot_bytes(s);
    uint32_t size = largest(&s->sizes), depth = largest(&s->depths);
    if (error != 0)
        return error;
    if (size + largest(&s->offsets) > slot_bytes) {
        snprintf(message, LAB_MESSAGE_BYTES, "size: %u bytes do not fit into slots of %u", size,
                 slot_bytes - largest(&s->offsets));
        return -EINVAL;
    }
    if ((uint64_t)depth * largest(&s->qps) > s->slots) {
        snprintf(message, LAB_MESSAGE_BYTES,
                 "depth: %llu messages under way need as many slots, not %llu",
                 (unsigned long long)depth * largest(&s->qps), (unsigned long long)s->slots);
        return -EINVAL;
    }
    if (s->slots * slot_bytes > LAB_MAX_POOL_BYTES) {
        snprintf(message, LAB_MESSAGE_BYTES, "slots: %llu of %u bytes are more than 1 GiB",
                 (unsigned long long)s->slots, slot_bytes);
        return -EINVAL;
    }
    if (s->experiments >> (LAB_NO_EXPERIMENT + 1) != 0 &&
        (s->transport != LAB_RC || s->slots < LAB_TRIAL_SLOTS)) {
        snprintf(message, LAB_MESSAGE_BYTES, "experiment: is for transport rc, with %d slots",
                 LAB_TRIAL_SLOTS);
        return -EINVAL;
    }
    if (s->connect == LAB_CONNECT_CM && s->transport != LAB_RC) {
        snprintf(message, LAB_MESSAGE_BYTES, "connect: cm is for transport rc");
        return -EINVAL;
    }
    if (s->min_ratio_ppm != 0 && s->baseline == 0) {
        snprintf(message, LAB_MESSAGE_BYTES, "min-ratio: needs the baseline, which is off");
        return -EINVAL;
    }
    error = check_teams(s, message);
    if (error == 0)
        error = check_ways(s, message);
    if (error == 0)
        error = split_host(s, "peer", s->peer, message);
    return error == 0 ? split_host(s, "listen", s->listen, message) : error;
}

void lab_settings_for_path(struct lab_settings *s)
{
    enum { BEFORE = 8, PATIENT_NS = 1000000000 };
    if ((s->given >> lab_settings_find("size") & 1) == 0)
        s->sizes = (struct lab_list){1, {s->transport == LAB_UD ? 1024 : 65536}};
    if ((s->given >> lab_settings_find("retry") & 1) == 0)
        s->retry_ns = PATIENT_NS; /* what is only slow is not to be seen twice */
    s->depths = s->qps = s->threads = (struct lab_list){1, {1}};
    s->numa = 1 << LAB_ANYWHERE;
    s->iterations = 1;
    s->warmup = BEFORE;
    s->path = 1;
    s->baseline = 0;
}

void lab_settings_for_ranks(struct lab_settings *s)
{
    enum { DEPTHS = 3 /* of the default ones: there are many pairs */ };
    if ((s->given & 1) == 0)
        s->ops = 1u << (s->transport == LAB_UD ? LAB_SEND : LAB_WRITE);
    if ((s->given >> lab_settings_find("size") & 1) == 0 && s->transport != LAB_UD)
        s->sizes = (struct lab_list){
            2, {64, 65536}
        };
    if ((s->given >> lab_settings_find("depth") & 1) == 0)
        s->depths.count = s->depths.count > DEPTHS ? DEPTHS : s->depths.count;
}

void lab_settings_for_together(struct lab_settings *s)
{
    s->ops &= ~s->ops + 1; /* the first */
    s->ways &= ~s->ways + 1;
    s->numa &= ~s->numa + 1;
    s->sizes = (struct lab_list){1, {largest(&s->sizes)}};
    s->depths = (struct lab_list){1, {largest(&s->depths)}};
    s->offsets.count = 1;
    s->qps = (struct lab_list){1, {largest(&s->qps)}};
    uint32_t threads = 0;
    for (uint32_t i = 0; i < s->threads.count; i++)
        if (lab_settings_has_team(s, s->qps.value[0], s->threads.value[i]) &&
            s->threads.value[i] > threads)
            threads = s->threads.value[i];
    s->threads = (struct lab_list){1, {threads}};
    s->baseline = 0;
    s->max_p99_ns = s->min_kbps = s->min_ratio_ppm = 0;
}

int lab_settings_agree(const struct lab_settings *here, const struct lab_settings *peer,
                       char message[LAB_MESSAGE_BYTES])
{
    unsigned at = 0;
    for (unsigned i = 0; i < RULES && at < LAB_MESSAGE_BYTES; i++) {
        char mine[LAB_MAX_TEXT], theirs[LAB_MAX_TEXT];
        if (!lab_setting_table[i].agreed || (here->given >> i & 1) == 0)
            continue;
        lab_settings_text(here, i, mine, sizeof(mine));
        lab_settings_text(peer, i, theirs, sizeof(theirs));
        if (strcmp(mine, theirs) != 0)
            at += (unsigned)snprintf(message + at, LAB_MESSAGE_BYTES - at,
                                     "%s%s is %s for `lab serve' and %s for `lab run'",
                                     at > 0 ? "; " : "", lab_setting_table[i].name, mine, theirs);
    }
    return at > 0 ? -EINVAL : 0;
}

void lab_settings_adopt(struct lab_settings *here, const struct lab_settings *peer)
{
    for (unsigned i = 0; i < RULES; i++) {
        if (!lab_setting_table[i].agreed)
            continue;
        if (rules[i].kind == COUNTS || rules[i].kind == SIZES)
            memcpy(field(here, i), field(peer, i), sizeof(struct lab_list));
        else
            memcpy(field(here, i), field(peer, i), sizeof(uint64_t));
    }
}
