/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_program.c: what the programs of a world do, and what they must see. A side's number travels in
 * the private data of REQ and REP, so that each event is held against what the other side did.
 */
#include "cm_world.h"

#include <string.h>

#include "base/bytes.h"

static struct cm_private number_of(struct cm_world *w, const struct side *s, uint8_t bytes[4])
{
    put_be32(bytes, (uint32_t)(s - w->side) | 0x5a000000);
    return (struct cm_private){bytes, 4};
}

/* The side that a message's private data names, or NULL. */
static struct side *side_named(struct cm_world *w, const uint8_t *data)
{
    uint32_t n = get_be32(data) ^ 0x5a000000;
    return n < w->sides ? &w->side[n] : NULL;
}

static unsigned index_of(const struct cm_world *w, const struct side *s)
{
    return (unsigned)(s - w->side);
}

static struct side *new_side(struct cm_world *w, unsigned node)
{
    if (w->sides == WORLD_SIDES) {
        cm_world_fail(w, "more connections than a world can have");
        return NULL;
    }
    struct side *s = &w->side[w->sides++];
    *s = (struct side){.node = node, .life = w->node[node].life, .deed_ns = WORLD_NEVER};
    s->ideal = w->stopped;
    s->qpn = w->node[node].next_qpn++ | node << 14;
    s->psn = index_of(w, s) * 3 + 1;
    return s;
}

static void plan(struct cm_world *w, struct side *s, enum deed deed, unsigned max_ms)
{
    s->deed = deed;
    s->deed_ns = w->now_ns;
    if (!w->faultless && !s->ideal)
        s->deed_ns += (uint64_t)tape_below(w->tape, max_ms + 1) * WORLD_MS;
}

static void give_back(struct cm_world *w, struct side *s)
{
    if (s->id == NULL)
        return;
    cm_world_note(w, "side %u is given back", index_of(w, s));
    s->destroyed = true;
    cm_id_destroy(w->node[s->node].cm, w->now_ns, s->id);
    s->id = NULL;
    s->deed_ns = WORLD_NEVER;
    cm_world_drain(w, s->node);
}

/* Which connections are extended ones is no choice of the tape: what happens is up to that alone.
 */
static bool is_xrc(const struct cm_world *w, const struct side *s)
{
    return !s->sidr && (index_of(w, s) + w->seed) % 3 == 0;
}

struct side *program_connect(struct cm_world *w, unsigned node, unsigned target, bool sidr,
                             uint32_t qpn)
{
    struct side *s = new_side(w, node);
    uint8_t bytes[4];
    if (s == NULL)
        return NULL;
    if (qpn != 0)
        s->qpn = qpn;
    s->active = true;
    s->sidr = sidr;
    s->target = target;
    s->xrc = is_xrc(w, s);
    const struct cm_path path = {
        .local = cm_world_addr(node), .remote = cm_world_addr(target), .hop_limit = 64};
    const struct cm_req req = {
        .service_id = 7,
        .local_qpn = s->qpn,
        .starting_psn = s->psn,
        .remote_cm_response_timeout = WORLD_RESPONSE_CODE,
        .local_cm_response_timeout = WORLD_RESPONSE_CODE,
        .max_cm_retries = 5,
        .pkey = 0xffff,
        .path_mtu = 3,
        .primary = {.local_ack_timeout = WORLD_ACK_CODE},
        .transport = s->xrc ? CM_TRANSPORT_EXTENDED : CM_TRANSPORT_RC,
        .transport_extended = s->xrc ? CM_TRANSPORT_EXTENDED_XRC : 0,
    };
    const struct cm_sidr_req sidr_req = {.service_id = 7, .pkey = 0xffff};
    struct cm *cm = w->node[node].cm;
    int rc = sidr ? cm_sidr_connect(cm, w->now_ns, &path, &sidr_req, WORLD_RESPONSE_CODE, 5,
                                    number_of(w, s, bytes), s, &s->id)
                  : cm_connect(cm, w->now_ns, &path, &req, number_of(w, s, bytes), s, &s->id);
    if (rc != 0)
        cm_world_fail(w, "connect says %d", rc);
    cm_world_note(w, "side %u of node %u connects to %u", index_of(w, s), node, target);
    /* Some lose patience. */
    if (!s->ideal && !w->faultless && tape_below(w->tape, 8) == 7)
        plan(w, s, DEED_DESTROY, 80);
    cm_world_drain(w, node);
    return s;
}

/* Events. */

static void end_of(struct cm_world *w, struct side *s, enum outcome outcome)
{
    if (s->outcome != OUTCOME_NONE)
        cm_world_fail(w, "side %u has a second outcome", index_of(w, s));
    s->outcome = outcome;
    if (outcome == OUTCOME_ESTABLISHED)
        w->established_count++;
    else if (outcome == OUTCOME_REJECTED)
        w->rejected_count++;
    else if (outcome == OUTCOME_UNREACHABLE)
        w->unreachable_count++;
    if (outcome != OUTCOME_ESTABLISHED) {
        s->ended = true;
        plan(w, s, DEED_DESTROY, 5);
    }
}

static void on_req(struct cm_world *w, unsigned node, const struct cm_event *e)
{
    bool sidr = e->type == CM_EVENT_SIDR_REQ;
    struct side *from =
        side_named(w, sidr ? e->msg.sidr_req.private_data : e->msg.req.private_data);
    if (from == NULL || !from->active || from->sidr != sidr || from->target != node ||
        (!sidr && (e->msg.req.local_qpn != from->qpn || e->msg.req.starting_psn != from->psn))) {
        cm_world_fail(w, "node %u hears a REQ that nobody sent", node);
        return;
    }
    if (!sidr && (e->xrc != from->xrc || cm_msg_req_is_xrc(&e->msg.req) != from->xrc))
        cm_world_fail(w, "node %u hears a REQ of another kind", node);
    if (e->listen == NULL || e->listen != w->node[node].listener)
        cm_world_fail(w, "node %u hears a REQ at no listener", node);
    struct side *s = new_side(w, node);
    if (s == NULL)
        return;
    s->id = e->id;
    s->sidr = sidr;
    s->xrc = from->xrc;
    s->partner = index_of(w, from);
    s->has_partner = true;
    cm_set_owner(e->id, s);
    unsigned what = s->ideal && from->ideal ? 0 : tape_below(w->tape, 8);
    cm_world_note(w, "side %u of node %u: REQ of side %u", index_of(w, s), node, s->partner);
    plan(w, s, what < 6 ? DEED_ACCEPT : what == 6 ? DEED_REJECT : DEED_DESTROY, 60);
}

static void on_rep(struct cm_world *w, struct side *s, const struct cm_event *e)
{
    struct side *from = side_named(w, e->msg.rep.private_data);
    if (!s->active || s->ready || s->ended || from == NULL || from->active || !from->accepted ||
        from->partner != index_of(w, s) || e->xrc != s->xrc ||
        cm_msg_rep_qpn(&e->msg.rep, e->xrc) != from->qpn || e->msg.rep.starting_psn != from->psn) {
        cm_world_fail(w, "side %u hears a REP that nobody sent to it", index_of(w, s));
        return;
    }
    s->partner = index_of(w, from);
    s->has_partner = true;
    unsigned what = s->ideal ? 0 : tape_below(w->tape, 8);
    plan(w, s, what < 6 ? DEED_READY : what == 6 ? DEED_REJECT : DEED_DESTROY, 60);
}

/* No QP of a peer is connected twice, as far as its address tells. */
static void check_one_per_qp(struct cm_world *w, const struct side *s)
{
    const struct side *peer = &w->side[s->partner];
    for (unsigned i = 0; i < w->sides; i++) {
        const struct side *t = &w->side[i];
        if (t == s || t->node != s->node || t->id == NULL || !t->established || t->sidr ||
            cm_id_state(t->id) != CM_STATE_ESTABLISHED)
            continue;
        if (w->side[t->partner].node == peer->node && w->side[t->partner].qpn == peer->qpn)
            cm_world_fail(w, "sides %u and %u are connected to the same QP", i, index_of(w, s));
    }
}

static void on_established(struct cm_world *w, struct side *s)
{
    const struct side *peer = &w->side[s->partner];
    struct cm_ends ends;
    bool good = s->has_partner && (s->active ? s->ready : s->accepted && peer->ready);
    if (!good || s->disconnected || s->ended)
        cm_world_fail(w, "side %u is established too early or too late", index_of(w, s));
    check_one_per_qp(w, s);
    cm_id_ends(s->id, &ends);
    if (s->xrc != peer->xrc || ends.local_qpn != s->qpn || ends.remote_qpn != peer->qpn)
        cm_world_fail(w, "side %u is connected to another QP", index_of(w, s));
    w->xrc_count += s->xrc;
    s->established = true;
    end_of(w, s, OUTCOME_ESTABLISHED);
    unsigned what = s->ideal || w->stopped ? 0 : tape_below(w->tape, 4);
    if (what == 1 && s->active)
        plan(w, s, DEED_DATA, 10);
    else if (what == 2)
        plan(w, s, DEED_DISCONNECT, 60);
    else if (what == 3)
        plan(w, s, DEED_DESTROY, 60);
}

/* Does what the other side did, or what befell it, excuse a REJ with this reason? */
static bool rej_excused(const struct cm_world *w, const struct side *s, unsigned reason)
{
    const struct side *peer = &w->side[s->partner];
    switch (reason) {
    case CM_REJ_INVALID_SERVICE_ID:
        return s->active && !w->node[s->target].listened_always;
    case CM_REJ_STALE_CONN:
        return w->crash_count > 0;
    case CM_REJ_CONSUMER_DEFINED:
        if (s->has_partner)
            return peer->rejected || peer->destroyed;
        for (unsigned i = 0; i < w->sides; i++) /* a passive side whose REP never came */
            if (!w->side[i].active && w->side[i].partner == index_of(w, s) &&
                (w->side[i].rejected || w->side[i].destroyed))
                return true;
        return !w->node[s->target].listened_always; /* before its owner saw the REQ */
    case CM_REJ_TIMEOUT:
        return !w->faultless;
    case CM_REJ_INVALID_COMM_ID:
        return !s->active && (peer->ended || peer->destroyed || peer->crashed || peer->rejected ||
                              (peer->has_partner && peer->partner != index_of(w, s)));
    default:
        return false;
    }
}

/* With clean links only a life before a crash stands in the way of a fresh connect: the QPN was in
 * use in it. The peer has been told, so the same goes through now. */
static void try_again(struct cm_world *w, const struct side *s, const struct cm_event *e)
{
    bool stale = s->reason == CM_REJ_STALE_CONN;
    if (!stale || s->stale_tries > 0) {
        cm_world_fail(w, "side %u: a fresh connect fails (%s)", index_of(w, s),
                      e->type == CM_EVENT_REJ ? cm_msg_reason_name(s->reason) : "unreachable");
        return;
    }
    /* A REP was stale: another QPN of the peer's may be so, too. */
    struct side *next = program_connect(w, s->node, s->target, false, s->qpn);
    if (next != NULL && e->msg.rej.about == CM_ABOUT_REQ)
        next->stale_tries = 1;
}

/* After the last fault, what goes out for the next time is answered. */
static bool gave_up_in_vain(const struct cm_world *w, const struct side *s)
{
    /* There is no MRA for SIDR: a slow program looks like none. */
    return w->stopped && !s->mra && !s->sidr &&
           w->now_ns > w->stop_ns + 2 * ((uint64_t)4096 << WORLD_RESPONSE_CODE);
}

static void on_end(struct cm_world *w, struct side *s, const struct cm_event *e)
{
    bool rej = e->type == CM_EVENT_REJ;
    if (s->established || s->ended)
        cm_world_fail(w, "side %u: %s after the end", index_of(w, s), cm_event_name(e->type));
    if (rej && !rej_excused(w, s, e->msg.rej.reason))
        cm_world_fail(w, "side %u: rejected (%s) by nobody", index_of(w, s),
                      cm_msg_reason_name(e->msg.rej.reason));
    if (!rej && (w->faultless || gave_up_in_vain(w, s)))
        cm_world_fail(w, "side %u: unreachable on perfect links", index_of(w, s));
    s->reason = rej ? e->msg.rej.reason : 0;
    end_of(w, s, rej ? OUTCOME_REJECTED : OUTCOME_UNREACHABLE);
    if (s->active && s->ideal)
        try_again(w, s, e);
}

static void on_disconnected(struct cm_world *w, struct side *s, const struct cm_event *e)
{
    if (!s->established || s->disconnected)
        cm_world_fail(w, "side %u: %s twice or before it was established", index_of(w, s),
                      cm_event_name(e->type));
    if (e->step == CM_DREQ && (w->faultless || gave_up_in_vain(w, s)))
        cm_world_fail(w, "side %u: DREQ unanswered on perfect links", index_of(w, s));
    s->disconnected = true;
    s->deed_ns = WORLD_NEVER;
    if (tape_below(w->tape, 3) == 2)
        plan(w, s, DEED_DESTROY, 10);
}

static void on_event(struct cm_world *w, struct side *s, const struct cm_event *e)
{
    switch (e->type) {
    case CM_EVENT_REP:
        on_rep(w, s, e);
        break;
    case CM_EVENT_ESTABLISHED:
        on_established(w, s);
        break;
    case CM_EVENT_REJ:
    case CM_EVENT_UNREACHABLE:
        on_end(w, s, e);
        break;
    case CM_EVENT_DREQ:
    case CM_EVENT_DISCONNECTED:
        on_disconnected(w, s, e);
        break;
    case CM_EVENT_TIMEWAIT_EXIT:
        if (!s->disconnected || s->ended)
            cm_world_fail(w, "side %u: TIMEWAIT ends too early", index_of(w, s));
        s->ended = true;
        plan(w, s, DEED_DESTROY, 5);
        break;
    case CM_EVENT_SIDR_REP:
        if (!s->sidr || !s->active)
            cm_world_fail(w, "side %u: a SIDR_REP for nothing", index_of(w, s));
        end_of(w, s, OUTCOME_ANSWERED);
        break;
    default: /* MRA */
        s->mra = true;
        if (s->established || s->ended)
            cm_world_fail(w, "side %u: MRA too late", index_of(w, s));
        break;
    }
}

void program_events(struct cm_world *w, unsigned node)
{
    struct cm_event e;
    while (w->node[node].cm != NULL && cm_event_next(w->node[node].cm, &e)) {
        struct side *s = e.owner;
        if (e.type == CM_EVENT_REQ || e.type == CM_EVENT_SIDR_REQ) {
            on_req(w, node, &e);
            continue;
        }
        if (s == NULL || s->id != e.id || s->node != node || s->xrc != e.xrc) {
            cm_world_fail(w, "node %u: an event for nobody", node);
            return;
        }
        cm_world_note(w, "side %u: %s", index_of(w, s), cm_event_name(e.type));
        on_event(w, s, &e);
    }
}

/* Deeds. */

uint64_t program_deadline(const struct cm_world *w)
{
    uint64_t t = WORLD_NEVER;
    for (unsigned i = 0; i < w->sides; i++)
        if (w->side[i].id != NULL && w->side[i].deed_ns < t)
            t = w->side[i].deed_ns;
    return t;
}

static int accept_peer(struct cm_world *w, struct side *s)
{
    struct cm *cm = w->node[s->node].cm;
    uint8_t bytes[4];
    const struct cm_rep rep = {.local_qpn = s->qpn, .starting_psn = s->psn};
    const struct cm_sidr_rep sidr_rep = {.qpn = s->qpn, .qkey = 0x01234567};
    s->accepted = true;
    if (s->sidr) {
        plan(w, s, DEED_DESTROY, 30);
        return cm_sidr_reply(cm, w->now_ns, s->id, &sidr_rep, (struct cm_private){NULL, 0});
    }
    return cm_reply(cm, w->now_ns, s->id, &rep, number_of(w, s, bytes));
}

/* Data after the RTU: the passive side's QP sees them, where it is still there. */
static void data_arrives(struct cm_world *w, const struct side *s)
{
    struct side *peer = &w->side[s->partner];
    if (peer->id == NULL || cm_id_state(peer->id) != CM_STATE_REP_SENT)
        return;
    if (cm_establish(w->node[peer->node].cm, w->now_ns, peer->id) != 0)
        cm_world_fail(w, "side %u cannot be established", s->partner);
    program_events(w, peer->node);
}

static int refuse_peer(struct cm_world *w, struct side *s)
{
    static const struct cm_private nothing;
    static const struct cm_sidr_rep refusal = {.status = CM_SIDR_REJECT};
    struct cm *cm = w->node[s->node].cm;
    s->rejected = true;
    plan(w, s, DEED_DESTROY, 30);
    return s->sidr ? cm_sidr_reply(cm, w->now_ns, s->id, &refusal, nothing)
                   : cm_reject(cm, w->now_ns, s->id, CM_REJ_CONSUMER_DEFINED, nothing, nothing);
}

static void act(struct cm_world *w, struct side *s)
{
    static const struct cm_private nothing;
    struct cm *cm = w->node[s->node].cm;
    enum deed deed = s->deed;
    int rc = 0;
    s->deed_ns = WORLD_NEVER;
    s->deed = DEED_NONE;
    if (deed == DEED_ACCEPT) {
        rc = accept_peer(w, s);
    } else if (deed == DEED_REJECT) {
        rc = refuse_peer(w, s);
    } else if (deed == DEED_READY) {
        s->ready = true;
        rc = cm_ready(cm, w->now_ns, s->id, nothing);
    } else if (deed == DEED_DATA) {
        data_arrives(w, s);
    } else if (deed == DEED_DISCONNECT) {
        rc = cm_disconnect(cm, w->now_ns, s->id, nothing);
    } else {
        give_back(w, s);
        return;
    }
    cm_world_note(w, "side %u does %d: %d", index_of(w, s), deed, rc);
    if (rc != 0)
        cm_world_fail(w, "side %u: deed %d says %d", index_of(w, s), deed, rc);
    program_events(w, s->node);
    cm_world_drain(w, s->node);
}

void program_act(struct cm_world *w)
{
    for (unsigned i = 0; i < w->sides; i++) {
        struct side *s = &w->side[i];
        if (s->id != NULL && s->deed_ns <= w->now_ns) {
            act(w, s);
            return;
        }
    }
}

void program_crashed(struct cm_world *w, unsigned node)
{
    for (unsigned i = 0; i < w->sides; i++) {
        struct side *s = &w->side[i];
        if (s->node != node || s->life + 1 != w->node[node].life)
            continue;
        s->crashed = true;
        s->id = NULL;
        s->deed_ns = WORLD_NEVER;
    }
}

/* The end. */

void program_check_settled(struct cm_world *w)
{
    for (unsigned i = 0; i < w->sides; i++) {
        const struct side *s = &w->side[i];
        /* What is left must be connected. */
        if (s->id != NULL && (s->outcome == OUTCOME_NONE || s->deed_ns != WORLD_NEVER))
            cm_world_fail(w, "the faults stopped, but side %u hangs in %s", i,
                          cm_state_name(cm_id_state(s->id)));
    }
}

/*
 * A side may believe in a connection that the other has given up only when what the other said of
 * it was lost, or the other crashed, in the time of the faults.
 */
void program_check_agreement(struct cm_world *w)
{
    for (unsigned i = 0; i < w->sides; i++) {
        const struct side *s = &w->side[i], *peer = &w->side[s->partner];
        if (s->id == NULL || !s->established || s->disconnected)
            continue;
        bool believes = peer->id != NULL && peer->established && !peer->disconnected;
        bool excused = !w->faultless && !s->ideal &&
                       (peer->crashed || peer->destroyed || peer->rejected || peer->disconnected ||
                        peer->outcome == OUTCOME_UNREACHABLE);
        if (!believes && !excused)
            cm_world_fail(w, "side %u is connected to side %u, which is not", i, s->partner);
        if (believes && peer->partner != i)
            cm_world_fail(w, "side %u is connected to side %u, which has another peer", i,
                          s->partner);
    }
}

void program_close(struct cm_world *w)
{
    static const struct cm_private nothing;
    for (unsigned i = 0; i < w->sides && !w->failed; i++) {
        struct side *s = &w->side[i];
        if (s->id == NULL)
            continue;
        if (s->established && !s->disconnected) {
            if (cm_disconnect(w->node[s->node].cm, w->now_ns, s->id, nothing) != 0)
                cm_world_fail(w, "side %u cannot disconnect", i);
            cm_world_drain(w, s->node);
        } else if (!s->disconnected) {
            give_back(w, s);
        }
    }
    for (unsigned i = 0; i < w->nodes && !w->failed; i++) {
        if (w->node[i].listener != NULL)
            cm_id_destroy(w->node[i].cm, w->now_ns, w->node[i].listener);
        w->node[i].listener = NULL;
        cm_world_drain(w, i);
    }
}

void program_check_end(struct cm_world *w)
{
    for (unsigned i = 0; i < w->sides; i++) {
        const struct side *s = &w->side[i];
        if (s->id != NULL)
            cm_world_fail(w, "side %u never came to an end (%s)", i,
                          cm_state_name(cm_id_state(s->id)));
        if (s->active && !s->crashed && !s->destroyed && s->outcome == OUTCOME_NONE)
            cm_world_fail(w, "side %u has no outcome", i);
    }
}
