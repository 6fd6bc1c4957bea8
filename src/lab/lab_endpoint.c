/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_endpoint.c: what a peer must know, as a message of the control connection. What comes is
 * checked.
 */
#include <stdio.h>
#include <string.h>

#include "lab/lab_queue.h"

static const struct {
    const char *name;
    unsigned offset;
    uint64_t max;
} members[] = {
    {"qpn",     offsetof(struct lab_endpoint, qpn),     0xffffff    },
    {"psn",     offsetof(struct lab_endpoint, psn),     0xffffff    },
    {"lid",     offsetof(struct lab_endpoint, lid),     0xffff      },
    {"mtu",     offsetof(struct lab_endpoint, mtu),     IBV_MTU_4096},
    {"address", offsetof(struct lab_endpoint, address), INT64_MAX   },
    {"rkey",    offsetof(struct lab_endpoint, rkey),    UINT32_MAX  },
    {"length",  offsetof(struct lab_endpoint, length),  INT64_MAX   },
    {"counter", offsetof(struct lab_endpoint, counter), INT64_MAX   },
    {"reads",   offsetof(struct lab_endpoint, reads),   255         },
};

enum { MEMBERS = sizeof(members) / sizeof(members[0]) };

json_t *lab_endpoint_json(const struct lab_endpoint *e)
{
    json_t *o = json_object();
    char gid[33];
    for (unsigned i = 0; i < MEMBERS; i++) {
        uint64_t value;
        memcpy(&value, (const char *)e + members[i].offset, sizeof(value));
        json_object_set_new(o, members[i].name, json_integer((json_int_t)value));
    }
    for (unsigned i = 0; i < 16; i++)
        snprintf(gid + 2 * (size_t)i, 3, "%02x", e->gid.raw[i]);
    json_object_set_new(o, "gid", json_string(gid));
    return o;
}

static bool parse_gid(const char *text, union ibv_gid *gid)
{
    if (strlen(text) != 32 || strspn(text, "0123456789abcdef") != 32)
        return false;
    for (unsigned i = 0; i < 16; i++) {
        unsigned byte;
        if (sscanf(text + 2 * (size_t)i, "%2x", &byte) != 1)
            return false;
        gid->raw[i] = (uint8_t)byte;
    }
    return true;
}

bool lab_endpoint_parse(struct lab_control *c, const json_t *object, struct lab_endpoint *e)
{
    for (unsigned i = 0; i < MEMBERS; i++) {
        uint64_t value;
        if (!lab_control_number(c, object, members[i].name, members[i].max, &value))
            return false;
        memcpy((char *)e + members[i].offset, &value, sizeof(value));
    }
    const char *gid = lab_control_text(c, object, "gid");
    if (gid == NULL)
        return false;
    if (!parse_gid(gid, &e->gid) || e->mtu < IBV_MTU_256) {
        snprintf(c->message, sizeof(c->message), "the peer sent no right '%s' while %s",
                 e->mtu < IBV_MTU_256 ? "mtu" : "gid", c->doing);
        return false;
    }
    return true;
}
