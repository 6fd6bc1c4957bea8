/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_ranks.c: every rank reads the same texts and comes to the same judgement.
 */
#include "lab/lab_ranks.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/lab_text.h"

/* Another protocol of control.h or of lab_hub.c is another language. */
static const char speaks[] = "verbena lab mpi, protocol 1";

/* What decides about the measuring; the device may have another name on another machine. */
static bool must_be_same(const struct lab_setting *row)
{
    return (row->roles & LAB_ROLE_RANKS) != 0 &&
           (row->agreed || strncmp(row->name, "max-", 4) == 0 ||
            strncmp(row->name, "min-", 4) == 0);
}

json_t *lab_ranks_self(const struct lab_settings *s, const json_t *addresses, uint16_t hub,
                       const uint8_t key[LAB_KEY_BYTES])
{
    json_t *settings = json_object();
    char host[256] = "", hex[2 * LAB_KEY_BYTES + 1];
    for (unsigned i = 0; i < lab_setting_count; i++) {
        char text[LAB_MAX_TEXT + LAB_MAX_LIST * 12];
        if (!must_be_same(&lab_setting_table[i]))
            continue;
        lab_settings_text(s, i, text, sizeof(text));
        json_object_set_new(settings, lab_setting_table[i].name, json_string(text));
    }
    gethostname(host, sizeof(host) - 1);
    sodium_bin2hex(hex, sizeof(hex), key, LAB_KEY_BYTES);
    return json_pack("{s:s,s:s,s:o,s:O,s:i,s:s,s:o}", "speaks", speaks, "program", VERBENA_VERSION,
                     "host", lab_text_json(host), "addresses", addresses, "hub", (int)hub, "key",
                     hex, "settings", settings);
}

static const char *text_of(const json_t *o, const char *name)
{
    const char *text = json_string_value(json_object_get(o, name));
    return text != NULL ? text : "nothing";
}

static int read_one(struct lab_rank *r, unsigned number, const char *text,
                    char message[LAB_MESSAGE_BYTES])
{
    r->self = json_loads(text, 0, NULL);
    r->host = text_of(r->self, "host");
    r->addresses = json_object_get(r->self, "addresses");
    if (strcmp(text_of(r->self, "speaks"), speaks) != 0) {
        snprintf(message, LAB_MESSAGE_BYTES,
                 "rank %u on %.64s speaks '%.64s' (version %.32s), and this one '%s' (version %s); "
                 "use the same version everywhere",
                 number, r->host, text_of(r->self, "speaks"), text_of(r->self, "program"), speaks,
                 VERBENA_VERSION);
        return -EPROTO;
    }
    if (json_array_size(r->addresses) == 0) {
        snprintf(message, LAB_MESSAGE_BYTES,
                 "network: rank %u on %.64s has no address there that others could reach", number,
                 r->host);
        return -EADDRNOTAVAIL;
    }
    return 0;
}

static int compare(const struct lab_ranks *r, unsigned number, char message[LAB_MESSAGE_BYTES])
{
    const json_t *first = json_object_get(r->rank[0].self, "settings");
    const json_t *other = json_object_get(r->rank[number].self, "settings");
    for (unsigned i = 0; i < lab_setting_count; i++) {
        const char *name = lab_setting_table[i].name;
        if (!must_be_same(&lab_setting_table[i]) ||
            strcmp(text_of(first, name), text_of(other, name)) == 0)
            continue;
        snprintf(message, LAB_MESSAGE_BYTES,
                 "%s is %.200s for rank 0 on %.64s and %.200s for rank "
                 "%u on %.64s",
                 name, text_of(first, name), r->rank[0].host, text_of(other, name), number,
                 r->rank[number].host);
        return -EINVAL;
    }
    return 0;
}

/* A machine is a name: containers that have names of their own count as machines. */
static void number_machines(struct lab_ranks *r)
{
    for (unsigned i = 0; i < r->count; i++) {
        r->rank[i].machine = i;
        for (unsigned k = 0; k < i; k++) {
            if (strcmp(r->rank[k].host, r->rank[i].host) == 0) {
                r->rank[i].machine = r->rank[k].machine;
                break;
            }
        }
    }
}

int lab_ranks_read(struct lab_ranks *r, const struct lab_boot *b, char message[LAB_MESSAGE_BYTES])
{
    *r = (struct lab_ranks){.own = b->rank, .count = b->ranks};
    int error = 0;
    for (unsigned i = 0; i < r->count && error == 0; i++)
        error = read_one(&r->rank[i], i, b->texts[i], message);
    for (unsigned i = 1; i < r->count && error == 0; i++)
        error = compare(r, i, message);
    if (error != 0)
        return error;
    const char *hex = text_of(r->rank[0].self, "key");
    json_int_t hub = json_integer_value(json_object_get(r->rank[0].self, "hub"));
    size_t bytes = 0;
    if (sodium_hex2bin(r->key, sizeof(r->key), hex, strlen(hex), NULL, &bytes, NULL) != 0 ||
        bytes != sizeof(r->key) || hub < 1 || hub > 65535) {
        snprintf(message, LAB_MESSAGE_BYTES, "rank 0 on %.64s told no right key or port",
                 r->rank[0].host);
        return -EPROTO;
    }
    r->hub = (uint16_t)hub;
    for (unsigned i = 0; i < r->count; i++)
        json_object_del(r->rank[i].self, "key"); /* what is told of ranks goes to the record */
    number_machines(r);
    return 0;
}

void lab_ranks_clear(struct lab_ranks *r)
{
    for (unsigned i = 0; i < r->count; i++)
        json_decref(r->rank[i].self);
    sodium_memzero(r->key, sizeof(r->key));
    r->count = 0;
}

void lab_ranks_key(const struct lab_ranks *r, const char *purpose, unsigned number,
                   uint8_t key[LAB_KEY_BYTES])
{
    char text[64];
    int n = snprintf(text, sizeof(text), "%s %u", purpose, number);
    crypto_generichash(key, LAB_KEY_BYTES, (const uint8_t *)text, (size_t)n, r->key, LAB_KEY_BYTES);
}
