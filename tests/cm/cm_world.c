/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_world.c: nodes, links and the clock.
 */
#include "cm_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FAULTS_MS = 400, SETTLE_MS = 900000, END_MS = 900000 };

void cm_world_fail(struct cm_world *w, const char *format, ...)
{
    va_list ap;
    if (w->failed)
        return;
    w->failed = true;
    int n = snprintf(w->why, sizeof(w->why), "at %.3f ms: ", (double)w->now_ns / WORLD_MS);
    va_start(ap, format);
    vsnprintf(w->why + n, sizeof(w->why) - (size_t)n, format, ap);
    va_end(ap);
    cm_world_note(w, "FAILED: %s", w->why);
}

void cm_world_note(struct cm_world *w, const char *format, ...)
{
    va_list ap;
    if (!w->trace)
        return;
    printf("# %9.3f ", (double)w->now_ns / WORLD_MS);
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    printf("\n");
}

struct net_addr cm_world_addr(unsigned node)
{
    return (struct net_addr){
        {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, (uint8_t)(node + 1)}
    };
}

/* Links. */

static void put_packet(struct cm_world *w, unsigned to, const struct cm_path *path,
                       const uint8_t *mad, uint64_t delay_ns)
{
    if (w->packets == WORLD_PACKETS) {
        cm_world_fail(w, "more packets on the links than there can be");
        return;
    }
    struct packet *p = &w->packet[w->packets++];
    p->at_ns = w->now_ns + delay_ns;
    p->seq = w->next_seq++;
    p->to = to;
    p->path = *path;
    p->path.local = path->remote;
    p->path.remote = path->local;
    memcpy(p->mad, mad, MAD_BYTES);
}

static void send_mad(struct cm_sink *sink, const struct cm_path *path, const uint8_t mad[MAD_BYTES])
{
    struct node *node = (struct node *)((char *)sink - offsetof(struct node, sink));
    struct cm_world *w = node->world;
    unsigned to = path->remote.b[15] - 1u, from = (unsigned)(node - w->node);
    struct cm_msg m;
    cm_msg_parse(mad, &m);
    const char *fate = "";
    bool clean = w->faultless || w->stopped;
    if (to >= w->nodes) {
        cm_world_fail(w, "a MAD to nobody");
        return;
    }
    uint64_t delay_ns = 10000;
    if (!clean && tape_chance(w->tape, w->loss_ppm)) {
        fate = " (lost)";
    } else {
        bool twice = !clean && tape_chance(w->tape, w->dup_ppm);
        for (int i = 0; i <= twice; i++) {
            if (!clean)
                delay_ns += (uint64_t)tape_below(w->tape, w->delay_ms * 1000 + 1) * 1000;
            put_packet(w, to, path, mad, delay_ns);
        }
        if (twice)
            fate = " (twice)";
    }
    cm_world_note(w, "%u -> %u %s %08x %08x%s", from, to, cm_msg_attribute_name(m.header.attribute),
                  cm_msg_local_comm_id(&m), cm_msg_remote_comm_id(&m), fate);
}

void cm_world_drain(struct cm_world *w, unsigned node)
{
    if (w->node[node].cm != NULL)
        while (cm_output(w->node[node].cm, &w->node[node].sink, 16))
            ;
}

static struct packet *first_packet(struct cm_world *w)
{
    struct packet *first = NULL;
    for (unsigned i = 0; i < w->packets; i++) {
        struct packet *p = &w->packet[i];
        if (first == NULL || p->at_ns < first->at_ns ||
            (p->at_ns == first->at_ns && p->seq < first->seq))
            first = p;
    }
    return first;
}

static void deliver(struct cm_world *w, struct packet *first)
{
    struct packet p = *first;
    *first = w->packet[--w->packets];
    struct node *node = &w->node[p.to];
    if (node->cm == NULL)
        return;
    cm_input(node->cm, w->now_ns, &p.path, p.mad, MAD_BYTES);
    program_events(w, p.to);
    cm_world_drain(w, p.to);
}

/* Nodes. */

static void start_node(struct cm_world *w, unsigned n)
{
    struct node *node = &w->node[n];
    const struct cm_config config = {
        .seed = w->seed * 1000 + n * 100 + node->life,
        .slot = n,
        .ca_guid = 0x0200c0fffe000001u + n,
        .max_ids = WORLD_IDS,
    };
    const struct cm_service service = {.service_id = 7, .bind = CM_BIND_ANY};
    node->world = w;
    node->sink.mad = send_mad;
    node->next_qpn = 2; /* what a restarted process uses was in use before */
    node->restart_ns = WORLD_NEVER;
    if (cm_create(&config, &node->cm) != 0 ||
        cm_listen(node->cm, &service, 0, NULL, &node->listener) != 0)
        cm_world_fail(w, "node %u does not start", n);
    cm_world_note(w, "node %u starts", n);
}

static void crash_node(struct cm_world *w, unsigned n)
{
    struct node *node = &w->node[n];
    cm_world_note(w, "node %u crashes", n);
    cm_destroy(node->cm);
    node->cm = NULL;
    node->listener = NULL;
    node->listened_always = false;
    node->life++;
    w->crash_count++;
    node->restart_ns = w->now_ns + (uint64_t)tape_range(w->tape, 1, 60) * WORLD_MS;
    program_crashed(w, n);
}

static void toggle_listener(struct cm_world *w, unsigned n)
{
    struct node *node = &w->node[n];
    const struct cm_service service = {.service_id = 7, .bind = CM_BIND_ANY};
    node->listened_always = false;
    if (node->listener != NULL) {
        cm_world_note(w, "node %u no longer listens", n);
        cm_id_destroy(node->cm, w->now_ns, node->listener);
        node->listener = NULL;
        cm_world_drain(w, n);
    } else if (cm_listen(node->cm, &service, 0, NULL, &node->listener) != 0) {
        cm_world_fail(w, "node %u cannot listen", n);
    }
}

/* One of the things that happen while there are faults. */
static void happening(struct cm_world *w)
{
    unsigned n = tape_below(w->tape, w->nodes), what = tape_below(w->tape, 10);
    w->next_connect_ns = w->now_ns + (uint64_t)tape_range(w->tape, 1, 20) * WORLD_MS;
    if (w->node[n].cm == NULL)
        return;
    if (what < 7 && w->connects_left > 0) {
        w->connects_left--;
        unsigned target = tape_below(w->tape, w->nodes);
        program_connect(w, n, target, tape_below(w->tape, 5) == 4, 0);
    } else if (what == 7) {
        toggle_listener(w, n);
    } else if (what == 8 && w->crashes) {
        crash_node(w, n);
    }
}

/* The clock. */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t next_time(struct cm_world *w)
{
    struct packet *p = first_packet(w);
    uint64_t t = program_deadline(w);
    if (p != NULL)
        t = earlier(t, p->at_ns);
    if (!w->stopped)
        t = earlier(t, w->next_connect_ns);
    for (unsigned i = 0; i < w->nodes; i++) {
        t = earlier(t, w->node[i].restart_ns);
        if (w->node[i].cm != NULL)
            t = earlier(t, cm_deadline(w->node[i].cm));
    }
    return t;
}

static void step(struct cm_world *w)
{
    struct packet *p = first_packet(w);
    if (p != NULL && p->at_ns <= w->now_ns) {
        deliver(w, p);
        return;
    }
    for (unsigned i = 0; i < w->nodes; i++) {
        struct node *node = &w->node[i];
        if (node->restart_ns <= w->now_ns)
            start_node(w, i);
        if (node->cm != NULL && cm_deadline(node->cm) <= w->now_ns) {
            cm_advance(node->cm, w->now_ns);
            program_events(w, i);
            cm_world_drain(w, i);
            return;
        }
    }
    if (program_deadline(w) <= w->now_ns)
        program_act(w);
    else if (!w->stopped && w->next_connect_ns <= w->now_ns)
        happening(w);
}

/* Until then, or until nothing is left to happen. */
static void run_until(struct cm_world *w, uint64_t end_ns)
{
    unsigned steps = 0;
    while (!w->failed) {
        uint64_t t = next_time(w);
        if (t == WORLD_NEVER || t > end_ns)
            break;
        if (t > w->now_ns)
            w->now_ns = t;
        step(w);
        if (++steps > 200000)
            cm_world_fail(w, "no end of it");
    }
    w->now_ns = end_ns;
}

static void stop_faults(struct cm_world *w)
{
    w->stopped = true;
    w->stop_ns = w->now_ns;
    cm_world_note(w, "the faults stop");
    for (unsigned i = 0; i < w->nodes; i++) {
        if (w->node[i].cm == NULL)
            start_node(w, i);
        else if (w->node[i].listener == NULL)
            toggle_listener(w, i);
    }
}

static void begin(struct cm_world *w, struct tape *tape, uint64_t seed)
{
    bool trace = w->trace;
    memset(w, 0, sizeof(*w));
    w->trace = trace;
    w->tape = tape;
    w->seed = seed;
    w->now_ns = WORLD_MS;
    w->nodes = 2 + tape_below(tape, WORLD_NODES - 1);
    w->faultless = tape_below(tape, 4) == 0;
    w->crashes = !w->faultless && tape_below(tape, 2) == 1;
    w->loss_ppm = tape_below(tape, 4) * 150000;
    w->dup_ppm = tape_below(tape, 4) * 150000;
    w->delay_ms = tape_below(tape, 3) * 15;
    w->connects_left = tape_range(tape, 1, 24);
    w->next_connect_ns = w->now_ns;
    for (unsigned i = 0; i < w->nodes; i++) {
        w->node[i].listened_always = true;
        start_node(w, i);
    }
}

/* The end must be one: nothing to send, nothing to wait for, no id in use. */
static void check_nodes_empty(struct cm_world *w)
{
    for (unsigned i = 0; i < w->nodes; i++) {
        struct cm *cm = w->node[i].cm;
        if (cm_ids_in_use(cm) != 0)
            cm_world_fail(w, "node %u: %u ids left over", i, cm_ids_in_use(cm));
        if (cm_deadline(cm) != WORLD_NEVER || cm_has_output(cm) || cm_has_event(cm))
            cm_world_fail(w, "node %u: something is left to do", i);
        if (cm_count(cm, CM_COUNT_MALFORMED) != 0)
            cm_world_fail(w, "node %u: malformed MADs", i);
    }
}

bool cm_world_run(struct cm_world *w, struct tape *tape, uint64_t seed)
{
    begin(w, tape, seed);
    run_until(w, w->now_ns + FAULTS_MS * (uint64_t)WORLD_MS);
    stop_faults(w);
    run_until(w, w->now_ns + SETTLE_MS * (uint64_t)WORLD_MS);
    program_check_settled(w);
    program_check_agreement(w);
    /* With nothing in the way, everybody reaches everybody at once, or at the second try where a
     * life before the crash is still remembered. */
    for (unsigned i = 0; i < w->nodes && !w->failed; i++)
        for (unsigned k = 0; k < w->nodes; k++)
            program_connect(w, i, k, false, 0);
    run_until(w, w->now_ns + SETTLE_MS * (uint64_t)WORLD_MS);
    program_check_settled(w);
    program_check_agreement(w);
    w->closing = true;
    program_close(w);
    run_until(w, w->now_ns + END_MS * (uint64_t)WORLD_MS);
    if (!w->failed)
        program_check_end(w);
    if (!w->failed)
        check_nodes_empty(w);
    for (unsigned i = 0; i < w->nodes; i++)
        if (w->node[i].cm != NULL)
            cm_destroy(w->node[i].cm);
    return !w->failed;
}
