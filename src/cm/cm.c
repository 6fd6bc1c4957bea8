/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm.c: memory, tables, timers, events and output of the communication manager.
 */
#include "cm/cm_priv.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"

static uint64_t mix(uint64_t v)
{
    v = (v ^ v >> 32) * 0x9e3779b97f4a7c15u;
    v = (v ^ v >> 29) * 0xbf58476d1ce4e5b9u;
    return v ^ v >> 32;
}

/* Keyed, so that no peer can choose ids that meet in one bucket. */
static uint32_t local_bucket(const struct cm *cm, uint32_t number)
{
    return (uint32_t)mix(cm->hash_key ^ number) & cm->mask;
}

static uint32_t bucket_of(const struct cm *cm, const struct net_addr *addr, uint32_t number)
{
    uint64_t h = mix(cm->hash_key ^ number);
    h = mix(mix(h ^ get_be64(addr->b)) ^ get_be64(addr->b + 8));
    return (uint32_t)h & cm->mask;
}

int cm_create(const struct cm_config *config, struct cm **out)
{
    uint32_t buckets = 16, max = config->max_ids == 0 ? (uint32_t)CM_MAX_IDS : config->max_ids;
    if (config->slot >= 1u << CM_SLOT_BITS || config->ca_guid == 0 || max > CM_MAX_IDS)
        return -EINVAL;
    struct cm *cm = calloc(1, sizeof(*cm));
    if (cm == NULL)
        return -ENOMEM;
    while (buckets < max)
        buckets *= 2;
    cm->config = *config;
    cm->config.max_ids = max;
    cm->mask = buckets - 1;
    rng_init(&cm->rng, config->seed);
    cm->hash_key = rng_next(&cm->rng);
    cm->tid_high = (uint32_t)rng_next(&cm->rng);
    TAILQ_INIT(&cm->unused);
    TAILQ_INIT(&cm->listeners);
    TAILQ_INIT(&cm->lingering);
    TAILQ_INIT(&cm->waiting);
    TAILQ_INIT(&cm->events);
    heap_init(&cm->timers);
    /* Not touched: pages come with the ids that are used, lowest first. */
    cm->ids = calloc(max, sizeof(*cm->ids));
    cm->by_local = calloc(buckets, sizeof(*cm->by_local));
    cm->by_peer = calloc(buckets, sizeof(*cm->by_peer));
    cm->by_qpn = calloc(buckets, sizeof(*cm->by_qpn));
    cm->out = calloc(CM_OUT_SLOTS, sizeof(*cm->out));
    if (cm->ids == NULL || cm->by_local == NULL || cm->by_peer == NULL || cm->by_qpn == NULL ||
        cm->out == NULL || heap_grow(&cm->timers, max) != 0) {
        cm_destroy(cm);
        return -ENOMEM;
    }
    *out = cm;
    return 0;
}

void cm_destroy(struct cm *cm)
{
    heap_fini(&cm->timers);
    free(cm->ids);
    free(cm->by_local);
    free(cm->by_peer);
    free(cm->by_qpn);
    free(cm->out);
    free(cm);
}

uint64_t cm_time_ns(uint8_t code, uint8_t max_code)
{
    if (code < CM_MIN_TIME_CODE)
        code = CM_MIN_TIME_CODE;
    return (uint64_t)4096 << (code < max_code ? code : max_code);
}

/* Tables. */

static void chain_in(struct cm_id **bucket, struct cm_id *id, size_t next)
{
    *(struct cm_id **)((char *)id + next) = *bucket;
    *bucket = id;
}

static void chain_out(struct cm_id **bucket, struct cm_id *id, size_t next)
{
    while (*bucket != id)
        bucket = (struct cm_id **)((char *)*bucket + next);
    *bucket = *(struct cm_id **)((char *)id + next);
}

void cm_id_set_peer(struct cm_id *id, uint32_t remote_comm_id)
{
    struct cm *cm = id->cm;
    assert(!id->in_peer);
    id->remote_comm_id = remote_comm_id;
    chain_in(&cm->by_peer[bucket_of(cm, &id->path.remote, remote_comm_id)], id,
             offsetof(struct cm_id, next_peer));
    id->in_peer = true;
}

static void unset_peer(struct cm_id *id)
{
    struct cm *cm = id->cm;
    if (!id->in_peer)
        return;
    chain_out(&cm->by_peer[bucket_of(cm, &id->path.remote, id->remote_comm_id)], id,
              offsetof(struct cm_id, next_peer));
    id->in_peer = false;
}

void cm_id_set_qpn(struct cm_id *id, uint32_t remote_qpn)
{
    struct cm *cm = id->cm;
    assert(!id->in_qpn);
    id->remote_qpn = remote_qpn;
    chain_in(&cm->by_qpn[bucket_of(cm, &id->path.remote, remote_qpn)], id,
             offsetof(struct cm_id, next_qpn));
    id->in_qpn = true;
}

void cm_id_unset_qpn(struct cm_id *id)
{
    struct cm *cm = id->cm;
    if (!id->in_qpn)
        return;
    chain_out(&cm->by_qpn[bucket_of(cm, &id->path.remote, id->remote_qpn)], id,
              offsetof(struct cm_id, next_qpn));
    id->in_qpn = false;
}

struct cm_id *cm_find_local(const struct cm *cm, uint32_t local_comm_id)
{
    struct cm_id *id = cm->by_local[local_bucket(cm, local_comm_id)];
    while (id != NULL && id->local_comm_id != local_comm_id)
        id = id->next_local;
    return id;
}

struct cm_id *cm_find_peer(const struct cm *cm, const struct net_addr *remote, uint32_t comm_id,
                           bool sidr)
{
    struct cm_id *id = cm->by_peer[bucket_of(cm, remote, comm_id)];
    while (id != NULL && (id->remote_comm_id != comm_id || id->sidr != sidr ||
                          !cm_addr_equal(&id->path.remote, remote)))
        id = id->next_peer;
    return id;
}

struct cm_id *cm_find_qpn(const struct cm *cm, const struct net_addr *remote, uint32_t qpn)
{
    struct cm_id *id = cm->by_qpn[bucket_of(cm, remote, qpn)];
    while (id != NULL && (id->remote_qpn != qpn || !cm_addr_equal(&id->path.remote, remote)))
        id = id->next_qpn;
    return id;
}

struct cm_id *cm_find_listener(const struct cm *cm, uint64_t service_id,
                               const struct net_addr *addr)
{
    enum cm_bind family = net_addr_is_v4(addr) ? CM_BIND_ANY_V4 : CM_BIND_ANY_V6;
    struct cm_id *best = NULL, *id;
    TAILQ_FOREACH(id, &cm->listeners, link)
    {
        bool fits = id->bind == CM_BIND_ANY || id->bind == family ||
                    (id->bind == CM_BIND_ADDR && cm_addr_equal(&id->path.local, addr));
        /* enum cm_bind goes from the narrowest to the widest. */
        if (fits && id->service_id == service_id && (best == NULL || id->bind < best->bind))
            best = id;
    }
    return best;
}

/* Ids. */

static void unlink_id(struct cm_id *id)
{
    struct cm *cm = id->cm;
    cm_id_leave_listener(id);
    cm_id_drop_events(id);
    unset_peer(id);
    cm_id_unset_qpn(id);
    if (heap_holds(&id->timer))
        heap_remove(&cm->timers, &id->timer);
    if (id->waits)
        TAILQ_REMOVE(&cm->waiting, id, waiting);
    if (id->lingers)
        TAILQ_REMOVE(&cm->lingering, id, link);
    id->waits = id->lingers = false;
}

static void free_id(struct cm_id *id)
{
    struct cm *cm = id->cm;
    unlink_id(id);
    if (id->state == CM_STATE_LISTEN)
        TAILQ_REMOVE(&cm->listeners, id, link);
    chain_out(&cm->by_local[local_bucket(cm, id->local_comm_id)], id,
              offsetof(struct cm_id, next_local));
    id->state = CM_STATE_FREE;
    TAILQ_INSERT_HEAD(&cm->unused, id, link);
    cm->in_use--;
}

struct cm_id *cm_id_new(struct cm *cm, const struct cm_path *path, void *owner)
{
    struct cm_id *id = TAILQ_FIRST(&cm->unused);
    if (id == NULL && cm->fresh == cm->config.max_ids && !TAILQ_EMPTY(&cm->lingering)) {
        free_id(TAILQ_FIRST(&cm->lingering));
        id = TAILQ_FIRST(&cm->unused);
    }
    if (id != NULL)
        TAILQ_REMOVE(&cm->unused, id, link);
    else if (cm->fresh < cm->config.max_ids)
        id = &cm->ids[cm->fresh++];
    else
        return NULL;
    memset(id, 0, sizeof(*id));
    id->cm = cm;
    id->owner = owner;
    if (path != NULL)
        id->path = *path;
    TAILQ_INIT(&id->children);
    for (unsigned i = 0; i < CM_ID_EVENTS; i++)
        id->slot[i].id = id;
    do
        id->local_comm_id = cm->config.slot << CM_SLOT_SHIFT |
                            (uint32_t)(rng_next(&cm->rng) >> (64 - CM_SLOT_SHIFT));
    while (id->local_comm_id == 0 || cm_find_local(cm, id->local_comm_id) != NULL);
    id->tid = (uint64_t)cm->tid_high << 32 | id->local_comm_id;
    chain_in(&cm->by_local[local_bucket(cm, id->local_comm_id)], id,
             offsetof(struct cm_id, next_local));
    cm->in_use++;
    return id;
}

void cm_id_leave_listener(struct cm_id *id)
{
    if (id->listener == NULL)
        return;
    TAILQ_REMOVE(&id->listener->children, id, link);
    id->listener->waiting_children--;
    id->listener = NULL;
}

void cm_id_finish(struct cm_id *id)
{
    if (id->orphan) {
        free_id(id);
        return;
    }
    /* Events stay: they tell the caller that this is the end. */
    struct cm *cm = id->cm;
    cm_id_leave_listener(id);
    unset_peer(id);
    cm_id_unset_qpn(id);
    if (heap_holds(&id->timer))
        heap_remove(&cm->timers, &id->timer);
    id->state = CM_STATE_FINISHED;
}

void cm_id_linger(struct cm_id *id, uint64_t now_ns, enum cm_state state, uint64_t linger_ns)
{
    struct cm *cm = id->cm;
    cm_id_leave_listener(id);
    cm_id_unset_qpn(id);
    id->state = state;
    heap_put(&cm->timers, &id->timer, now_ns + linger_ns);
}

void cm_id_timewait(struct cm_id *id, uint64_t now_ns)
{
    cm_id_linger(id, now_ns, CM_STATE_TIMEWAIT, id->timewait_ns);
}

/* Events. */

void cm_id_event(struct cm_id *id, enum cm_event_type type, unsigned step, const uint8_t *mad)
{
    struct cm *cm = id->cm;
    struct cm_slot *slot = id->slot;
    if (id->orphan)
        return;
    while (slot->used) {
        if (type == CM_EVENT_MRA && slot->type == CM_EVENT_MRA)
            return; /* the news is not even read yet */
        slot++;
        assert(slot < id->slot + CM_ID_EVENTS);
    }
    slot->used = true;
    slot->type = type;
    slot->step = step;
    slot->has_msg = mad != NULL;
    if (mad != NULL)
        memcpy(slot->mad, mad, MAD_BYTES);
    TAILQ_INSERT_TAIL(&cm->events, slot, link);
}

void cm_id_drop_events(struct cm_id *id)
{
    for (unsigned i = 0; i < CM_ID_EVENTS; i++) {
        if (id->slot[i].used)
            TAILQ_REMOVE(&id->cm->events, &id->slot[i], link);
        id->slot[i].used = false;
    }
}

bool cm_has_event(const struct cm *cm)
{
    return !TAILQ_EMPTY(&cm->events);
}

/* REQ and SIDR_REQ: cm_input let only good addressing headers pass. */
static void fill_ip(struct cm_event *e)
{
    if (e->type == CM_EVENT_REQ && cm_ip_service_id_is(e->msg.req.service_id))
        cm_ip_parse(e->msg.req.private_data, sizeof(e->msg.req.private_data), &e->ip);
    if (e->type == CM_EVENT_SIDR_REQ && cm_ip_service_id_is(e->msg.sidr_req.service_id))
        cm_ip_parse(e->msg.sidr_req.private_data, sizeof(e->msg.sidr_req.private_data), &e->ip);
}

bool cm_event_next(struct cm *cm, struct cm_event *out)
{
    struct cm_slot *slot = TAILQ_FIRST(&cm->events);
    if (slot == NULL)
        return false;
    struct cm_id *id = slot->id;
    TAILQ_REMOVE(&cm->events, slot, link);
    slot->used = false;
    id->unseen = false;
    memset(out, 0, sizeof(*out));
    out->type = slot->type;
    out->id = id;
    out->owner = id->owner;
    out->listen = id->listener;
    if (id->listener != NULL)
        out->listen_owner = id->listener->owner;
    out->step = slot->step;
    out->has_msg = slot->has_msg;
    out->xrc = id->xrc;
    out->path = id->path;
    if (slot->has_msg)
        cm_msg_parse(slot->mad, &out->msg);
    fill_ip(out);
    return true;
}

/* Output. */

static bool out_push(struct cm *cm, const struct cm_path *path, const uint8_t *mad)
{
    if (cm->out_count == CM_OUT_SLOTS)
        return false;
    struct cm_out *out = &cm->out[(cm->out_first + cm->out_count++) % CM_OUT_SLOTS];
    out->path = *path;
    memcpy(out->mad, mad, MAD_BYTES);
    return true;
}

void cm_emit_mad(struct cm *cm, const struct cm_path *path, const uint8_t mad[MAD_BYTES])
{
    if (!out_push(cm, path, mad))
        cm_count_one(cm, CM_COUNT_OUTPUT_LOST);
}

void cm_emit(struct cm *cm, const struct cm_path *path, const struct cm_msg *m)
{
    uint8_t mad[MAD_BYTES];
    cm_msg_build(m, mad);
    cm_emit_mad(cm, path, mad);
}

void cm_id_resend(struct cm_id *id)
{
    struct cm *cm = id->cm;
    if (id->waits || out_push(cm, &id->path, id->mad))
        return;
    id->waits = true;
    TAILQ_INSERT_TAIL(&cm->waiting, id, waiting);
}

void cm_id_send(struct cm_id *id, uint64_t now_ns, const struct cm_msg *m, int retries)
{
    struct cm *cm = id->cm;
    cm_msg_build(m, id->mad);
    id->step = m->header.attribute;
    cm_id_resend(id);
    if (retries == CM_NO_TIMER) {
        if (heap_holds(&id->timer))
            heap_remove(&cm->timers, &id->timer);
        return;
    }
    id->tries_left = (uint8_t)retries;
    heap_put(&cm->timers, &id->timer, now_ns + id->timeout_ns);
}

bool cm_has_output(const struct cm *cm)
{
    return cm->out_count != 0 || !TAILQ_EMPTY(&cm->waiting);
}

bool cm_output(struct cm *cm, struct cm_sink *sink, unsigned max_mads)
{
    while (max_mads > 0 && cm_has_output(cm)) {
        struct cm_id *id = TAILQ_FIRST(&cm->waiting);
        if (cm->out_count > 0) {
            struct cm_out *out = &cm->out[cm->out_first];
            cm->out_first = (cm->out_first + 1) % CM_OUT_SLOTS;
            cm->out_count--;
            sink->mad(sink, &out->path, out->mad);
        } else {
            TAILQ_REMOVE(&cm->waiting, id, waiting);
            id->waits = false;
            sink->mad(sink, &id->path, id->mad);
        }
        cm_count_one(cm, CM_COUNT_OUT);
        max_mads--;
    }
    return cm_has_output(cm);
}

/* Time. */

uint64_t cm_deadline(const struct cm *cm)
{
    const struct heap_node *first = heap_first(&cm->timers);
    return first == NULL ? UINT64_MAX : first->time_ns;
}

void cm_advance(struct cm *cm, uint64_t now_ns)
{
    struct heap_node *first;
    while ((first = heap_first(&cm->timers)) != NULL && first->time_ns <= now_ns) {
        heap_remove(&cm->timers, first);
        cm_id_expire((struct cm_id *)((char *)first - offsetof(struct cm_id, timer)), now_ns);
    }
}

/* The lookers. */

void cm_set_owner(struct cm_id *id, void *owner)
{
    id->owner = owner;
}

void *cm_owner(const struct cm_id *id)
{
    return id->owner;
}

enum cm_state cm_id_state(const struct cm_id *id)
{
    return id->state;
}

void cm_id_ends(const struct cm_id *id, struct cm_ends *out)
{
    *out = (struct cm_ends){
        .path = id->path,
        .local_comm_id = id->local_comm_id,
        .remote_comm_id = id->remote_comm_id,
        .local_qpn = id->local_qpn,
        .remote_qpn = id->remote_qpn,
    };
}

uint64_t cm_count(const struct cm *cm, enum cm_counter c)
{
    return cm->counters[c];
}

unsigned cm_ids_in_use(const struct cm *cm)
{
    return cm->in_use;
}

const char *cm_event_name(enum cm_event_type type)
{
    static const char *const names[CM_EVENT_COUNT] = {
        "REQ",  "REP",          "ESTABLISHED",   "REJ",      "UNREACHABLE", "MRA",
        "DREQ", "DISCONNECTED", "TIMEWAIT_EXIT", "SIDR_REQ", "SIDR_REP",
    };
    return (unsigned)type < CM_EVENT_COUNT ? names[type] : "?";
}

const char *cm_state_name(enum cm_state state)
{
    static const char *const names[CM_STATE_COUNT] = {
        "FREE",          "LISTEN",        "REQ_SENT",      "REP_RCVD", "REQ_RCVD",
        "REP_SENT",      "ESTABLISHED",   "DREQ_SENT",     "TIMEWAIT", "REJ_SENT",
        "SIDR_REQ_SENT", "SIDR_REQ_RCVD", "SIDR_REP_SENT", "FINISHED",
    };
    return (unsigned)state < CM_STATE_COUNT ? names[state] : "?";
}

const char *cm_counter_name(enum cm_counter c)
{
    static const char *const names[CM_COUNTERS] = {
        "cm_in",           "cm_out",       "cm_malformed", "cm_unknown_id",     "cm_wrong_peer",
        "cm_unexpected",   "cm_duplicate", "cm_retries",   "cm_retry_exceeded", "cm_no_listener",
        "cm_backlog_full", "cm_no_id",     "cm_stale",     "cm_bad_private",    "cm_output_lost",
    };
    return (unsigned)c < CM_COUNTERS ? names[c] : "?";
}
