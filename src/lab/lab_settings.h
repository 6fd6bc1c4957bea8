/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_settings.h: everything that can be said about a run, as one table: the command line, the
 * agreement of both ends and the record are made from it. A setting is a name and a text; what a
 * text may be is checked here, whoever sent it. No IO.
 */
#ifndef LAB_LAB_SETTINGS_H
#define LAB_LAB_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    LAB_MAX_LIST = 24,
    LAB_MAX_TEXT = 256,
    LAB_MAX_SIZE = 8 << 20,
    LAB_MAX_SLOTS = 1024,
    LAB_MAX_QPS = 32,
    LAB_MAX_POOL_BYTES = 1 << 30,
    LAB_MESSAGE_BYTES = 640,
};

/* A message of one object becomes another's. */
static inline void lab_message_copy(char to[LAB_MESSAGE_BYTES], const char *from)
{
    snprintf(to, LAB_MESSAGE_BYTES, "%.*s", LAB_MESSAGE_BYTES - 1, from);
}

/* The order of the report. */
enum lab_op {
    LAB_WRITE,
    LAB_WRITE_IMM,
    LAB_READ,
    LAB_SEND,
    LAB_ATOMIC,
    LAB_OPS,
};

/* How a message gets from the application's memory into the NIC's, and out of it. */
enum lab_way {
    LAB_DIRECT,
    LAB_BOUNCE,      /* made in memory that is not registered, copied into a slot */
    LAB_GATHER,      /* header and body in two places, gathered by the NIC */
    LAB_TEMPORARY,   /* header and body in two places, copied into one */
    LAB_SHARED_POOL, /* received into a shared receive queue, copied out */
    LAB_INLINE,      /* in the work request itself */
    LAB_REGISTER,    /* registered for each message */
    LAB_WAYS
};
enum { LAB_MAX_INLINE = 256 };
/* See lab_experiment.h. */
enum lab_experiment { LAB_NO_EXPERIMENT, LAB_TORN, LAB_FLAG, LAB_BARE, LAB_EXPERIMENTS };
enum { LAB_TRIAL_SLOTS = 8 /* what an experiment needs */ };
enum lab_transport { LAB_RC, LAB_UC, LAB_UD, LAB_TRANSPORTS };
enum lab_connect { LAB_CONNECT_TOLD, LAB_CONNECT_CM, LAB_CONNECTS };
enum lab_wait { LAB_POLL, LAB_EVENT, LAB_WAITS };
/* The slots, by where the thread is; bits in settings. */
enum lab_near { LAB_ANYWHERE, LAB_NEAR, LAB_FAR, LAB_NEARS };
enum lab_plant {
    LAB_PLANT_NONE,
    LAB_PLANT_WRONG_DATA,
    LAB_PLANT_STALE_DATA,
    LAB_PLANT_EARLY_REUSE,
    LAB_PLANTS
};

struct lab_list {
    uint32_t count;
    uint32_t value[LAB_MAX_LIST];
};

struct lab_settings {
    /* Both ends have these alike. */
    uint64_t ops; /* bits by enum lab_op */
    uint64_t transport;
    struct lab_list sizes;
    struct lab_list depths;
    struct lab_list offsets;
    struct lab_list qps;
    struct lab_list threads;
    uint64_t slots;
    uint64_t slot_bytes; /* 0: 64 KiB, or the largest size */
    uint64_t iterations; /* 0: see lab_settings_iterations() */
    uint64_t warmup;
    uint64_t signal_every;
    uint64_t ways; /* bits by enum lab_way */
    uint64_t wait;
    uint64_t connect;
    uint64_t baseline; /* bool */
    uint64_t timeout_ns;
    uint64_t retry_ns; /* uc, ud: sent again when it is not acknowledged by then */
    uint64_t plant;
    uint64_t numa;        /* bits by enum lab_near */
    uint64_t experiments; /* bits by enum lab_experiment */
    uint64_t path;        /* bool: the last message of each case is traced */
    /* Of this end. */
    char device[LAB_MAX_TEXT];
    uint64_t gid_index; /* LAB_ANY_GID: the one of the control connection's address */
    char key[LAB_MAX_TEXT];
    char peer[LAB_MAX_TEXT];
    char listen[LAB_MAX_TEXT];
    uint64_t port;
    char network[LAB_MAX_TEXT]; /* of many ranks */
    char json[LAB_MAX_TEXT];
    char html[LAB_MAX_TEXT];
    char db[LAB_MAX_TEXT];
    uint64_t max_p99_ns; /* 0: not asked for */
    uint64_t min_kbps;
    uint64_t min_ratio_ppm;
    /* Which were given in words, by their place in the table. */
    uint64_t given;
};

enum { LAB_ANY_GID = 256 };

enum lab_roles {
    LAB_ROLE_LOCAL = 1,
    LAB_ROLE_SERVE = 2,
    LAB_ROLE_RUN = 4,
    LAB_ROLE_PATH = 8,
    LAB_ROLE_RANKS = 16,
    LAB_ROLE_EXPERIMENT = 32,
};

/* One row of the table. */
struct lab_setting {
    const char *name;
    const char *hint; /* what stands for the value in help */
    const char *help;
    bool agreed;    /* both ends must have it alike */
    unsigned roles; /* bits by enum lab_roles: who takes it */
};

extern const struct lab_setting lab_setting_table[];
extern const unsigned lab_setting_count;

void lab_settings_init(struct lab_settings *s);
/* The place in the table, -1 when there is none of that name. */
int lab_settings_find(const char *name);
/* 0, or -EINVAL and a message that names the setting; nothing is changed then. */
int lab_settings_set(struct lab_settings *s, unsigned place, const char *text,
                     char message[LAB_MESSAGE_BYTES]);
/* The text that lab_settings_set() would take. */
void lab_settings_text(const struct lab_settings *s, unsigned place, char *out, unsigned bytes);
/* What single settings cannot tell: do they go together? -EINVAL and a message, else 0. Operations
 * and sizes that were not asked for become those that the transport has; a port in peer or listen
 * becomes the port. */
int lab_settings_check(struct lab_settings *s, char message[LAB_MESSAGE_BYTES]);
/* Of many ranks: one operation, a small and a large size, unless others were asked for; and what is
 * left of that when all run at once: the largest case alone, without thresholds. */
void lab_settings_for_ranks(struct lab_settings *s);
void lab_settings_for_together(struct lab_settings *s);
/* What was given here in words must be so there: -EINVAL and a message that names each that
 * differs. */
int lab_settings_agree(const struct lab_settings *here, const struct lab_settings *peer,
                       char message[LAB_MESSAGE_BYTES]);
/* One message of each operation and size after a few others, and one at a time. */
void lab_settings_for_path(struct lab_settings *s);
/* The agreed ones of peer take the place of those here. */
void lab_settings_adopt(struct lab_settings *here, const struct lab_settings *peer);

uint32_t lab_settings_slot_bytes(const struct lab_settings *s);
/* Messages of that size that are measured. */
uint64_t lab_settings_iterations(const struct lab_settings *s, uint32_t size);
/* Do so many queue pairs go with so many threads? */
bool lab_settings_has_team(const struct lab_settings *s, uint32_t qps, uint32_t threads);
/* Is there such a case? */
bool lab_settings_has_case(const struct lab_settings *s, unsigned op, uint32_t size,
                           enum lab_way way);
const char *lab_way_name(enum lab_way w);
const char *lab_near_name(enum lab_near n);
const char *lab_op_name(enum lab_op op);
const char *lab_transport_name(enum lab_transport t);

#endif
