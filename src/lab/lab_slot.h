/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_slot.h: a pool of slots, the places that data leaves from and arrives in. A slot's bytes tell
 * which slot, which sequence number, how long and with which checksum, so that who gets them can
 * say what is wrong: damaged, old, too new, or meant for another slot. Each slot has an owner; a
 * step that the rules of reuse do not allow is an error with the slot's last steps. No IO, no
 * clock.
 */
#ifndef LAB_LAB_SLOT_H
#define LAB_LAB_SLOT_H

#include <stdbool.h>
#include <stdint.h>

enum { LAB_SLOT_STEPS = 12, LAB_POOL_MESSAGE_BYTES = 512 };

/* In this order. Who receives does not fill. */
enum lab_owner {
    LAB_FREE,
    LAB_FILLED,       /* has contents that nobody was told of */
    LAB_POSTED,       /* a work request names it: neither read nor written here */
    LAB_COMPLETED,    /* that work request is done, as far as this end knows */
    LAB_NOTIFIED,     /* the far application was told, or told us */
    LAB_ACKNOWLEDGED, /* the far application said that it needs it no longer */
    LAB_OWNERS
};

enum lab_verdict {
    LAB_DATA_GOOD,
    LAB_DATA_STALE,     /* whole, but of an earlier sequence number */
    LAB_DATA_AHEAD,     /* whole, but of a later one: written again before it was acknowledged */
    LAB_DATA_MISPLACED, /* whole, but another slot's */
    LAB_DATA_CORRUPT,
    LAB_VERDICTS
};

struct lab_step {
    enum lab_owner to;
    uint64_t sequence;
};

struct lab_slot {
    enum lab_owner owner;
    bool acknowledged_early; /* before its completion was seen, as reclaiming in batches allows */
    uint64_t sequence;       /* of what is in it, or is to come */
    uint64_t steps;          /* how many there were; the last ones are in step[] */
    struct lab_step step[LAB_SLOT_STEPS];
};

struct lab_pool {
    uint8_t *bytes; /* slots * slot_bytes; the caller's */
    uint32_t slots;
    uint32_t slot_bytes;
    uint32_t offset; /* of contents in their slots; the caller's, 0 at first */
    struct lab_slot *slot;
    char message[LAB_POOL_MESSAGE_BYTES]; /* what the last failed call found */
};

/* What a slot starts with, where it is long enough; all of it is under the checksum. */
struct lab_slot_head {
    uint32_t magic;
    uint32_t slot;
    uint64_t sequence;
    uint32_t length; /* of all, this head included */
    uint32_t spare;  /* 0 */
    uint64_t checksum;
};
_Static_assert(sizeof(struct lab_slot_head) == 32, "on both ends alike");

/* 0, or -ENOMEM. All slots are free. */
int lab_pool_init(struct lab_pool *p, uint8_t *bytes, uint32_t slots, uint32_t slot_bytes);
void lab_pool_clear(struct lab_pool *p);
uint8_t *lab_slot_bytes(const struct lab_pool *p, uint32_t slot);

/* Each -EPROTO when the step is not allowed, with p->message; nothing is changed then. */
int lab_slot_claim(struct lab_pool *p, uint32_t slot, uint64_t sequence); /* free -> filled */
int lab_slot_offer(struct lab_pool *p, uint32_t slot, uint64_t sequence); /* free -> posted */
int lab_slot_step(struct lab_pool *p, uint32_t slot, enum lab_owner to);
/* posted -> completed -> notified, and on to acknowledged where that was early. */
int lab_slot_complete(struct lab_pool *p, uint32_t slot);
/* notified -> acknowledged; of a posted one it is remembered until it is complete. */
int lab_slot_acknowledge(struct lab_pool *p, uint32_t slot, uint64_t sequence);
/* notified -> posted: sent again, over a transport that may have lost it. */
int lab_slot_resend(struct lab_pool *p, uint32_t slot);
/* All are free: the queue pair is gone, and a transport that loses leaves work behind. */
void lab_pool_recall(struct lab_pool *p);
/* acknowledged -> free; false when it is not (yet) acknowledged. */
bool lab_slot_release(struct lab_pool *p, uint32_t slot);
/* "free #4, filled #5, posted #5": the last steps, oldest first. */
void lab_slot_trace(const struct lab_pool *p, uint32_t slot, char *out, unsigned bytes);

/* Contents: length bytes (1 to slot_bytes) for a slot and sequence number. Shorter than a head,
 * they are pattern only. The pattern and the checksum are two calls, so that their costs can be
 * told apart. */
void lab_slot_fill(uint8_t *bytes, uint32_t slot, uint64_t sequence, uint32_t length);
void lab_slot_seal(uint8_t *bytes);

/* What bytes ought to be, wherever they lie. */
struct lab_expect {
    uint32_t slot;
    uint32_t slots; /* of the pool: what was there before has a sequence number as much lower */
    uint64_t sequence;
    uint32_t length;
    uint32_t room; /* bytes that may be read, at least length: what is stale may be longer */
};
/* *offset: where corrupt bytes begin. */
enum lab_verdict lab_slot_check(const uint8_t *bytes, const struct lab_expect *e, uint32_t *offset);
/* Where pieces of contents may be lost on their way: a place is blanked, and contents that were
 * sent there since lack something while a piece is blank, or while nothing else is wrong. What is
 * wrong otherwise is not for want of pieces. */
void lab_slot_blank(uint8_t *bytes, uint32_t length);
bool lab_slot_lacks(const uint8_t *bytes, const struct lab_expect *e);
/* Contents that were read while others were written over them, copied by words of 8 bytes. length
 * is a multiple of 8, longer than a head. */
enum lab_mixed { LAB_ONE_VERSION, LAB_SEVERAL_VERSIONS, LAB_NO_VERSION };
struct lab_mixture {
    uint64_t sequence; /* of the head */
    uint64_t other;    /* several: of the first byte that is not of that one */
    uint32_t offset;   /* of that byte; no version: of the first that is of none */
    uint32_t changes;  /* how many times the version changes */
    bool ends_agree;   /* several: the first and the last word are of one version all the same */
};
enum lab_mixed lab_slot_mixed(const uint8_t *bytes, uint32_t slot, uint32_t length,
                              struct lab_mixture *m);
/* What of a check is told: "slot 3, #67, 4096 bytes: stale: has slot 3, #3". */
void lab_slot_say(const uint8_t *bytes, const struct lab_expect *e, enum lab_verdict v,
                  uint32_t offset, char *out, unsigned out_bytes);
const char *lab_verdict_name(enum lab_verdict v);
const char *lab_owner_name(enum lab_owner o);

#endif
