/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_slot.c: owners, patterns and checksums. A sequence number s always lies in slot s % slots, so
 * what was in a slot before is known.
 */
#include "lab/lab_slot.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MAGIC = 0x56626c31, BLANK = 0xb1, PIECE_BYTES = 32 };
#define PATTERN_FACTOR 0xd6e8feb86659fd93ull /* odd: it has an inverse */

static const char *const owner_names[LAB_OWNERS] = {
    "free", "filled", "posted", "completed", "notified", "acknowledged",
};
static const char *const verdict_names[LAB_VERDICTS] = {
    "good", "stale", "ahead", "misplaced", "corrupt",
};

const char *lab_owner_name(enum lab_owner o)
{
    return owner_names[o];
}

const char *lab_verdict_name(enum lab_verdict v)
{
    return verdict_names[v];
}

int lab_pool_init(struct lab_pool *p, uint8_t *bytes, uint32_t slots, uint32_t slot_bytes)
{
    *p = (struct lab_pool){.bytes = bytes, .slots = slots, .slot_bytes = slot_bytes};
    p->slot = calloc(slots, sizeof(*p->slot));
    return p->slot == NULL ? -ENOMEM : 0;
}

void lab_pool_clear(struct lab_pool *p)
{
    free(p->slot);
    *p = (struct lab_pool){0};
}

uint8_t *lab_slot_bytes(const struct lab_pool *p, uint32_t slot)
{
    return p->bytes + (uint64_t)slot * p->slot_bytes + p->offset;
}

/* Nobody fills what is not free: that is what reuse only after the acknowledgement means. */
static bool allowed(enum lab_owner from, enum lab_owner to)
{
    switch (from) {
    case LAB_FREE:
        return to == LAB_FILLED || to == LAB_POSTED;
    case LAB_FILLED:
        return to == LAB_POSTED;
    case LAB_POSTED:
        return to == LAB_COMPLETED;
    case LAB_COMPLETED:
        return to == LAB_NOTIFIED;
    case LAB_NOTIFIED:
        return to == LAB_ACKNOWLEDGED;
    case LAB_ACKNOWLEDGED:
        return to == LAB_FREE;
    default:
        return false;
    }
}

static void take(struct lab_slot *s, enum lab_owner to, uint64_t sequence)
{
    s->owner = to;
    s->sequence = sequence;
    s->step[s->steps++ % LAB_SLOT_STEPS] = (struct lab_step){to, sequence};
}

void lab_slot_trace(const struct lab_pool *p, uint32_t slot, char *out, unsigned bytes)
{
    const struct lab_slot *s = &p->slot[slot];
    uint64_t first = s->steps > LAB_SLOT_STEPS ? s->steps - LAB_SLOT_STEPS : 0;
    unsigned at = (unsigned)snprintf(out, bytes, "%s", s->steps == 0 ? "never used" : "");
    for (uint64_t i = first; i < s->steps && at < bytes; i++) {
        const struct lab_step *step = &s->step[i % LAB_SLOT_STEPS];
        at += (unsigned)snprintf(out + at, bytes - at, "%s%s #%llu", i > first ? ", " : "",
                                 owner_names[step->to], (unsigned long long)step->sequence);
    }
}

static int refuse(struct lab_pool *p, uint32_t slot, enum lab_owner to, uint64_t sequence)
{
    const struct lab_slot *s = &p->slot[slot];
    char trace[LAB_POOL_MESSAGE_BYTES / 2];
    lab_slot_trace(p, slot, trace, sizeof(trace));
    snprintf(p->message, sizeof(p->message),
             "slot %u: from %s #%llu to %s #%llu is no step%s; its last steps: %s", slot,
             owner_names[s->owner], (unsigned long long)s->sequence, owner_names[to],
             (unsigned long long)sequence,
             to == LAB_FILLED ? " (reuse before the acknowledgement)" : "", trace);
    return -EPROTO;
}

static int step(struct lab_pool *p, uint32_t slot, enum lab_owner to, uint64_t sequence)
{
    struct lab_slot *s = &p->slot[slot];
    if (!allowed(s->owner, to) || (s->owner != LAB_FREE && sequence != s->sequence))
        return refuse(p, slot, to, sequence);
    take(s, to, sequence);
    return 0;
}

int lab_slot_claim(struct lab_pool *p, uint32_t slot, uint64_t sequence)
{
    return step(p, slot, LAB_FILLED, sequence);
}

int lab_slot_offer(struct lab_pool *p, uint32_t slot, uint64_t sequence)
{
    return step(p, slot, LAB_POSTED, sequence);
}

int lab_slot_step(struct lab_pool *p, uint32_t slot, enum lab_owner to)
{
    return step(p, slot, to, p->slot[slot].sequence);
}

int lab_slot_complete(struct lab_pool *p, uint32_t slot)
{
    struct lab_slot *s = &p->slot[slot];
    int error = lab_slot_step(p, slot, LAB_COMPLETED);
    if (error != 0)
        return error;
    take(s, LAB_NOTIFIED, s->sequence);
    if (s->acknowledged_early)
        take(s, LAB_ACKNOWLEDGED, s->sequence);
    s->acknowledged_early = false;
    return 0;
}

int lab_slot_acknowledge(struct lab_pool *p, uint32_t slot, uint64_t sequence)
{
    struct lab_slot *s = &p->slot[slot];
    if (s->owner == LAB_POSTED && s->sequence == sequence && !s->acknowledged_early) {
        s->acknowledged_early = true;
        return 0;
    }
    return step(p, slot, LAB_ACKNOWLEDGED, sequence);
}

int lab_slot_resend(struct lab_pool *p, uint32_t slot)
{
    struct lab_slot *s = &p->slot[slot];
    if (s->owner != LAB_NOTIFIED)
        return refuse(p, slot, LAB_POSTED, s->sequence);
    take(s, LAB_POSTED, s->sequence);
    return 0;
}

void lab_pool_recall(struct lab_pool *p)
{
    for (uint32_t i = 0; i < p->slots; i++) {
        struct lab_slot *s = &p->slot[i];
        s->acknowledged_early = false;
        if (s->owner != LAB_FREE)
            take(s, LAB_FREE, s->sequence);
    }
}

bool lab_slot_release(struct lab_pool *p, uint32_t slot)
{
    struct lab_slot *s = &p->slot[slot];
    if (s->owner != LAB_ACKNOWLEDGED)
        return false;
    take(s, LAB_FREE, s->sequence);
    return true;
}

/* Any two differ in each word for nearby slots and sequence numbers. */
static uint64_t seed_of(uint32_t slot, uint64_t sequence)
{
    uint64_t x = sequence * 0x9e3779b97f4a7c15ull + slot;
    x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9ull;
    return x ^ (x >> 29);
}

static uint64_t word_of(uint64_t seed, uint32_t word)
{
    return (seed + word) * PATTERN_FACTOR;
}

static void fill_pattern(uint8_t *out, uint32_t bytes, uint64_t seed)
{
    uint32_t words = bytes / 8;
    for (uint32_t i = 0; i < words; i++) {
        uint64_t word = word_of(seed, i);
        memcpy(out + 8 * (uint64_t)i, &word, 8);
    }
    uint64_t last = word_of(seed, words);
    memcpy(out + 8 * (uint64_t)words, &last, bytes % 8);
}

/* Where the bytes leave the pattern; bytes when they do not. */
static uint32_t pattern_end(const uint8_t *in, uint32_t bytes, uint64_t seed)
{
    for (uint32_t i = 0; i < bytes; i++) {
        uint64_t word = word_of(seed, i / 8);
        if (in[i] != ((const uint8_t *)&word)[i % 8])
            return i;
    }
    return bytes;
}

static uint64_t checksum_of(const uint8_t *bytes, uint32_t length)
{
    struct lab_slot_head head;
    memcpy(&head, bytes, sizeof(head));
    head.checksum = 0;
    uint64_t seed = XXH3_64bits(&head, sizeof(head));
    return XXH3_64bits_withSeed(bytes + sizeof(head), length - sizeof(head), seed);
}

void lab_slot_fill(uint8_t *bytes, uint32_t slot, uint64_t sequence, uint32_t length)
{
    uint64_t seed = seed_of(slot, sequence);
    if (length < sizeof(struct lab_slot_head)) {
        fill_pattern(bytes, length, seed);
        return;
    }
    struct lab_slot_head head = {MAGIC, slot, sequence, length, 0, 0};
    memcpy(bytes, &head, sizeof(head));
    fill_pattern(bytes + sizeof(head), length - (uint32_t)sizeof(head), seed);
}

void lab_slot_seal(uint8_t *bytes)
{
    struct lab_slot_head head;
    memcpy(&head, bytes, sizeof(head));
    head.checksum = checksum_of(bytes, head.length);
    memcpy(bytes, &head, sizeof(head));
}

/* Too short for a head: the last lap's pattern is stale, the next one's ahead. */
static enum lab_verdict check_short(const uint8_t *bytes, const struct lab_expect *e,
                                    uint32_t *offset)
{
    *offset = pattern_end(bytes, e->length, seed_of(e->slot, e->sequence));
    if (*offset == e->length)
        return LAB_DATA_GOOD;
    uint64_t before = e->sequence - e->slots, after = e->sequence + e->slots;
    if (e->sequence >= e->slots &&
        pattern_end(bytes, e->length, seed_of(e->slot, before)) == e->length)
        return LAB_DATA_STALE;
    if (pattern_end(bytes, e->length, seed_of(e->slot, after)) == e->length)
        return LAB_DATA_AHEAD;
    return LAB_DATA_CORRUPT;
}

/* The first byte that is not as it was filled; the checksum's place when all others are. */
static uint32_t damage(const uint8_t *bytes, const struct lab_expect *e)
{
    struct lab_slot_head want = {MAGIC, e->slot, e->sequence, e->length, 0, 0};
    uint32_t head = (uint32_t)sizeof(want), sum = offsetof(struct lab_slot_head, checksum);
    uint8_t wanted[sizeof(want)];
    memcpy(wanted, &want, sizeof(want));
    for (uint32_t i = 0; i < sum; i++)
        if (bytes[i] != wanted[i])
            return i;
    uint32_t end = pattern_end(bytes + head, e->length - head, seed_of(e->slot, e->sequence));
    return end < e->length - head ? head + end : sum;
}

enum lab_verdict lab_slot_check(const uint8_t *bytes, const struct lab_expect *e, uint32_t *offset)
{
    struct lab_slot_head head = {0};
    *offset = e->length;
    if (e->length < sizeof(head))
        return check_short(bytes, e, offset);
    memcpy(&head, bytes, sizeof(head));
    if (head.magic != MAGIC || head.length < sizeof(head) || head.length > e->room ||
        head.checksum != checksum_of(bytes, head.length)) {
        *offset = damage(bytes, e);
        return LAB_DATA_CORRUPT;
    }
    if (head.slot != e->slot)
        return LAB_DATA_MISPLACED;
    if (head.sequence < e->sequence)
        return LAB_DATA_STALE;
    if (head.sequence > e->sequence)
        return LAB_DATA_AHEAD;
    if (head.length != e->length) {
        *offset = offsetof(struct lab_slot_head, length);
        return LAB_DATA_CORRUPT;
    }
    return LAB_DATA_GOOD;
}

void lab_slot_blank(uint8_t *bytes, uint32_t length)
{
    memset(bytes, BLANK, length);
}

bool lab_slot_lacks(const uint8_t *bytes, const struct lab_expect *e)
{
    uint8_t *wanted = malloc(e->length);
    if (wanted == NULL)
        return true; /* to be looked at again, when it has come again */
    lab_slot_fill(wanted, e->slot, e->sequence, e->length);
    if (e->length >= sizeof(struct lab_slot_head))
        lab_slot_seal(wanted);
    bool only_blank = true, piece = false;
    for (uint32_t i = 0, run = 0; i < e->length && !piece; i++) {
        run = bytes[i] == BLANK ? run + 1 : 0;
        piece = run == PIECE_BYTES;
        only_blank &= bytes[i] == wanted[i] || bytes[i] == BLANK;
    }
    free(wanted);
    return only_blank || piece;
}

/* The seed of which this word is a part. */
static uint64_t seed_of_word(uint64_t word, uint32_t index)
{
    uint64_t inverse =
        PATTERN_FACTOR; /* Newton: each turn doubles the bits that are right, from 3 */
    for (unsigned i = 0; i < 5; i++)
        inverse *= 2 - PATTERN_FACTOR * inverse;
    return word * inverse - index;
}

/* A version near another, by its seed; false where there is none. */
static bool find_version(uint32_t slot, uint64_t near, uint64_t seed, uint64_t *out)
{
    enum { FAR = 1 << 16 };
    for (uint64_t i = 0; i < FAR; i++) {
        *out = near + i;
        if (seed_of(slot, *out) == seed)
            return true;
        *out = near - i;
        if (i <= near && seed_of(slot, *out) == seed)
            return true;
    }
    return false;
}

enum lab_mixed lab_slot_mixed(const uint8_t *bytes, uint32_t slot, uint32_t length,
                              struct lab_mixture *m)
{
    struct lab_slot_head head;
    uint32_t head_bytes = (uint32_t)sizeof(head);
    memcpy(&head, bytes, head_bytes);
    *m = (struct lab_mixture){.sequence = head.sequence};
    if (head.magic != MAGIC || head.slot != slot || head.length != length)
        return LAB_NO_VERSION;
    uint64_t first = seed_of(slot, head.sequence), seed = first, version = head.sequence, word;
    for (uint32_t at = head_bytes; at < length; at += 8) {
        memcpy(&word, bytes + at, 8);
        uint32_t index = (at - head_bytes) / 8;
        if (word == word_of(seed, index))
            continue;
        if (m->changes++ == 0)
            m->offset = at;
        seed = seed_of_word(word, index);
        if (!find_version(slot, head.sequence, seed, &version)) {
            m->offset = at;
            return LAB_NO_VERSION;
        }
        if (m->changes == 1)
            m->other = version;
    }
    m->ends_agree = seed == first;
    if (head.checksum == checksum_of(bytes, length))
        return LAB_ONE_VERSION;
    /* The checksum may be another version's than the rest of the head. */
    if (m->changes == 0)
        *m = (struct lab_mixture){.sequence = head.sequence,
                                  .other = head.sequence,
                                  .offset = offsetof(struct lab_slot_head, checksum),
                                  .changes = 1,
                                  .ends_agree = true};
    return LAB_SEVERAL_VERSIONS;
}

void lab_slot_say(const uint8_t *bytes, const struct lab_expect *e, enum lab_verdict v,
                  uint32_t offset, char *out, unsigned out_bytes)
{
    struct lab_slot_head head = {0};
    if (e->length >= sizeof(head))
        memcpy(&head, bytes, sizeof(head));
    int n = snprintf(out, out_bytes, "slot %u, #%llu, %u bytes: %s", e->slot,
                     (unsigned long long)e->sequence, e->length, verdict_names[v]);
    if (n < 0 || (unsigned)n >= out_bytes)
        return;
    if (v == LAB_DATA_CORRUPT)
        snprintf(out + n, out_bytes - (unsigned)n, " from byte %u on", offset);
    else if (v != LAB_DATA_GOOD && e->length >= sizeof(head))
        snprintf(out + n, out_bytes - (unsigned)n, ": has slot %u, #%llu", head.slot,
                 (unsigned long long)head.sequence);
}
