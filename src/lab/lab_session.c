/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_session.c: what is said over the control connection, in its order: settings, then for each
 * case its figures, endpoints, "ready" from both, the data, "done", and the target's result; at
 * last "end".
 */
#include "lab/lab_session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lab/lab_buffers.h"
#include "lab/lab_cm.h"
#include "lab/lab_door.h"
#include "lab/lab_experiment.h"
#include "lab/lab_lanes.h"
#include "lab/lab_net.h"
#include "lab/lab_numa.h"
#include "lab/lab_text.h"

static int from_control(struct lab_end *e, int error)
{
    if (error != 0)
        lab_message_copy(e->message, e->control.message);
    return error;
}

json_t *lab_session_receive(struct lab_end *e, const char *type)
{
    json_t *o = lab_control_receive(&e->control, type);
    if (o == NULL)
        from_control(e, -EPIPE);
    return o;
}

int lab_session_send(struct lab_end *e, const char *type, json_t *object)
{
    return from_control(e, lab_control_send(&e->control, type, object));
}

/* A message without contents. */
static int say(struct lab_end *e, const char *type)
{
    return lab_session_send(e, type, json_object());
}

static int await(struct lab_end *e, const char *type)
{
    json_t *o = lab_session_receive(e, type);
    json_decref(o);
    return o == NULL ? -EPIPE : 0;
}

json_t *lab_session_self(const struct lab_end *e)
{
    struct utsname u;
    char gid[40] = "";
    uname(&u);
    for (unsigned i = 0; i < 16; i++)
        snprintf(gid + strlen(gid), sizeof(gid) - strlen(gid), "%02x%s", e->rig.gid.raw[i],
                 i % 2 == 1 && i < 15 ? ":" : "");
    return json_pack(
        "{s:s,s:o,s:s,s:s,s:o,s:s,s:s,s:i,s:i,s:i,s:i,s:I,s:I}", "program", VERBENA_VERSION, "host",
        lab_text_json(u.nodename), "kernel", u.release, "machine", u.machine, "device",
        lab_text_json(e->rig.name), "nic", lab_rig_is_verbena(&e->rig) ? "Verbena" : "another",
        "gid", gid, "gid_index", e->rig.gid_index, "port", (int)e->rig.port, "mtu",
        e->rig.name[0] != '\0' ? (int)lab_rig_mtu_bytes(e->rig.port_attr.active_mtu) : 0, "cpus",
        (int)sysconf(_SC_NPROCESSORS_ONLN), "register_ns", (json_int_t)e->rig.register_ns,
        "registered_bytes", (json_int_t)e->rig.memory_bytes);
}

static json_t *settings_json(const struct lab_settings *s)
{
    json_t *o = json_object();
    for (unsigned i = 0; i < lab_setting_count; i++) {
        char text[LAB_MAX_TEXT + LAB_MAX_LIST * 12];
        if (!lab_setting_table[i].agreed)
            continue;
        lab_settings_text(s, i, text, sizeof(text));
        json_object_set_new(o, lab_setting_table[i].name, json_string(text));
    }
    return o;
}

static int propose(struct lab_end *e)
{
    int error = lab_session_send(e, "settings", settings_json(&e->settings));
    json_t *o = error == 0 ? lab_session_receive(e, "agreed") : NULL;
    if (o == NULL)
        return -EPIPE;
    json_int_t there = json_integer_value(json_object_get(o, "numa_nodes"));
    json_decref(o);
    /* Near and far are the same where neither end has two nodes. */
    if ((e->settings.numa >> LAB_FAR & 1) != 0 && there <= 1 && lab_numa_nodes() == 1) {
        e->settings.numa = (e->settings.numa | 1 << LAB_NEAR) & ~(1ull << LAB_FAR);
        e->one_node = true;
    }
    return 0;
}

/* What the source wants, as if it were said on our command line. */
static int read_settings(struct lab_end *e, const json_t *o, struct lab_settings *theirs)
{
    lab_settings_init(theirs);
    for (unsigned i = 0; i < lab_setting_count; i++) {
        const char *text;
        if (!lab_setting_table[i].agreed)
            continue;
        text = lab_control_text(&e->control, o, lab_setting_table[i].name);
        if (text == NULL)
            return from_control(e, -EPROTO);
        if (lab_settings_set(theirs, i, text, e->message) != 0)
            return -EPROTO;
    }
    return lab_settings_check(theirs, e->message);
}

static int consider(struct lab_end *e)
{
    struct lab_settings theirs;
    json_t *o = lab_session_receive(e, "settings");
    if (o == NULL)
        return -EPIPE;
    int error = read_settings(e, o, &theirs);
    json_decref(o);
    if (error == 0)
        error = lab_settings_agree(&e->settings, &theirs, e->message);
    if (error != 0)
        return error;
    lab_settings_adopt(&e->settings, &theirs);
    e->control.timeout_ns = e->settings.timeout_ns;
    return lab_session_send(e, "agreed", json_pack("{s:i}", "numa_nodes", (int)lab_numa_nodes()));
}

/* The baseline's connection comes to the same port as the control connection, and says a random
 * word that was told over that. */
static int open_data(struct lab_end *e)
{
    uint8_t word[LAB_KEY_BYTES];
    char text[2 * LAB_KEY_BYTES + 1];
    lab_key_random(word);
    for (unsigned i = 0; i < LAB_KEY_BYTES; i++)
        snprintf(text + 2 * (size_t)i, 3, "%02x", word[i]);
    int error = lab_session_send(e, "data", json_pack("{s:s}", "word", text));
    if (error != 0)
        return error;
    e->data = lab_net_again(e->control.fd, e->settings.timeout_ns, e->message);
    if (e->data < 0)
        return e->data;
    if (write(e->data, text, sizeof(text)) != (ssize_t)sizeof(text)) {
        snprintf(e->message, sizeof(e->message), "the TCP connection of the baseline: %s",
                 strerror(errno));
        return -EPIPE;
    }
    return await(e, "data-open");
}

enum { WORD_BYTES = 2 * LAB_KEY_BYTES + 1 };

static struct lab_lobby lobby_of(const struct lab_end *e, size_t bytes)
{
    uint64_t timeout_ns = e->settings.timeout_ns;
    return (struct lab_lobby){
        .listener = e->listener,
        .bytes = bytes,
        .limit_ns = timeout_ns < LAB_STRANGER_NS ? timeout_ns : LAB_STRANGER_NS,
        .turned_away = e->turned_away,
    };
}

static bool has_word(int fd, const char *text)
{
    char got[WORD_BYTES];
    return recv(fd, got, sizeof(got), MSG_DONTWAIT) == (ssize_t)sizeof(got) &&
           memcmp(got, text, sizeof(got)) == 0;
}

/* Whoever else connects meanwhile is turned away, unless it greets. */
static int await_word(struct lab_end *e, const char *text)
{
    struct lab_lobby lobby = lobby_of(e, WORD_BYTES);
    uint64_t now, until_ns = lab_now_ns() + e->settings.timeout_ns;
    int fd = -ETIMEDOUT;
    if (e->door != NULL)
        lab_door_halt(e->door, &e->lobby);
    lab_lobby_move(&lobby, &e->lobby); /* it may have come already */
    snprintf(e->message, sizeof(e->message), "the TCP connection of the baseline does not come");
    while ((now = lab_now_ns()) < until_ns) {
        fd = lab_lobby_next(&lobby, until_ns - now, e->message);
        if (fd < 0 || has_word(fd, text))
            break;
        lab_lobby_turn_away(&lobby, fd, "it is not the baseline's connection");
        fd = -ETIMEDOUT;
    }
    lab_lobby_move(&e->lobby, &lobby);
    return fd;
}

static int accept_data(struct lab_end *e)
{
    json_t *o = lab_session_receive(e, "data");
    if (o == NULL)
        return -EPIPE;
    const char *text = lab_control_text(&e->control, o, "word");
    int error = text == NULL || strlen(text) != WORD_BYTES - 1 ? from_control(e, -EPROTO) : 0;
    if (error == 0) {
        e->data = await_word(e, text);
        error = e->data < 0 ? e->data : 0;
    }
    json_decref(o);
    return error == 0 ? say(e, "data-open") : error;
}

static int open_rig(struct lab_end *e)
{
    uint8_t own[16];
    int error = lab_net_gid(e->control.fd, own);
    if (error == 0)
        error = lab_rig_open(&e->rig, &e->settings, own, e->message);
    else
        snprintf(e->message, sizeof(e->message), "control connection: %s", strerror(-error));
    return error;
}

/* Found out before anything is measured. */
static int check_datagrams(struct lab_end *e)
{
    const struct lab_settings *s = &e->settings;
    uint32_t mtu = lab_rig_mtu_bytes(e->rig.port_attr.active_mtu);
    for (unsigned i = 0; i < s->sizes.count; i++) {
        if (s->transport != LAB_UD || s->sizes.value[i] <= mtu)
            continue;
        snprintf(e->message, sizeof(e->message),
                 "size: %u bytes are more than a datagram, whose limit is the MTU of %s, %u",
                 s->sizes.value[i], e->rig.name, mtu);
        return -EMSGSIZE;
    }
    return 0;
}

/* All messages of all cases, sent twice each, and headers and what is said beside them. */
static uint64_t capture_bytes(const struct lab_settings *s)
{
    enum { BESIDE_BYTES = 1 << 20 };
    uint64_t bytes = 0;
    for (unsigned i = 0; i < s->sizes.count; i++)
        bytes += 2 * s->sizes.value[i] * (s->iterations + s->warmup);
    return bytes * (unsigned)__builtin_popcountll(s->ops) + BESIDE_BYTES;
}

/* What both do when they know each other. */
static int get_ready(struct lab_end *e)
{
    e->control.timeout_ns = e->settings.timeout_ns;
    e->control.doing = "agreeing on settings";
    int error = e->serving ? consider(e) : propose(e);
    e->control.doing = "opening devices";
    if (error == 0 && e->settings.path != 0)
        error = lab_trace_start(&e->trace, capture_bytes(&e->settings), e->message);
    if (error == 0)
        error = open_rig(e);
    if (error == 0)
        error = check_datagrams(e);
    if (error == 0 && e->settings.baseline != 0)
        error = e->serving ? accept_data(e) : open_data(e);
    return error;
}

int lab_session_open(struct lab_end *e, int fd, const uint8_t key[LAB_KEY_BYTES])
{
    e->data = -1;
    int error =
        from_control(e, lab_control_open(&e->control, fd, e->serving, key, e->settings.timeout_ns));
    return error == 0 ? get_ready(e) : error;
}

static int keep_door(struct lab_end *e, bool keeps_others)
{
    return e->door == NULL
               ? 0
               : lab_door_keep(e->door, &e->lobby, e->control.fd, keeps_others, e->message);
}

/* From now on whoever else greets is answered; until the baseline's connection is here it may be
 * any other one. */
static int get_ready_at_door(struct lab_end *e)
{
    int error = keep_door(e, true);
    if (error == 0)
        error = get_ready(e);
    if (e->door != NULL)
        lab_door_halt(e->door, &e->lobby);
    return error == 0 ? keep_door(e, false) : error;
}

int lab_session_accept(struct lab_end *e, const uint8_t key[LAB_KEY_BYTES], uint64_t timeout_ns)
{
    struct lab_lobby *lobby = &e->lobby;
    int error = -EACCES, fd = 0;
    e->data = -1;
    *lobby = lobby_of(e, LAB_GREETING_BYTES);
    while (error != 0 && (fd = lab_lobby_next(lobby, timeout_ns, e->message)) >= 0) {
        error = lab_control_open(&e->control, fd, e->serving, key, lobby->limit_ns);
        if (error != 0 && e->control.greeted)
            break; /* the peer, with another key or version, or gone */
        if (error != 0) {
            e->control.fd = -1; /* turned away with its reason, and not by closing the control */
            lab_lobby_turn_away(lobby, fd, e->control.message);
            lab_control_close(&e->control);
        }
    }
    error = fd < 0 ? fd : from_control(e, error);
    return error == 0 ? get_ready_at_door(e) : error;
}

void lab_session_close(struct lab_end *e, bool failed)
{
    if (failed)
        lab_control_give_up(&e->control, e->message);
    lab_rig_close(&e->rig);
    lab_trace_stop(&e->trace);
    if (e->data >= 0)
        close(e->data);
    e->data = -1;
    lab_control_close(&e->control);
    if (e->door != NULL)
        lab_door_leave(e->door, &e->lobby);
    lab_lobby_close(&e->lobby);
}

int lab_session_prefer_peer(struct lab_end *e, int error)
{
    json_t *o = NULL;
    if (error != 0 && !e->control.peer_knows && lab_control_pending(&e->control, 100)) {
        if (lab_control_hear(&e->control, "nothing", &o) < 0 && e->control.peer_knows)
            from_control(e, error);
        json_decref(o);
    }
    return error;
}

static int join_queue(struct lab_end *e, struct lab_queue *q)
{
    struct lab_endpoint peer;
    int error = lab_session_send(e, "endpoint", lab_endpoint_json(&q->self));
    json_t *o = error == 0 ? lab_session_receive(e, "endpoint") : NULL;
    if (o == NULL)
        return -EPIPE;
    bool right = lab_endpoint_parse(&e->control, o, &peer);
    json_decref(o);
    if (!right)
        return from_control(e, -EPROTO);
    error = lab_queue_connect(q, &peer);
    if (error != 0)
        lab_message_copy(e->message, q->message);
    return error;
}

int lab_session_join(struct lab_end *e, struct lab_queue *q, struct lab_cm *cm)
{
    int error = 0;
    if (q != NULL)
        error = cm != NULL && e->settings.connect == LAB_CONNECT_CM ? lab_cm_connect(cm, e, q)
                                                                    : join_queue(e, q);
    if (error == 0)
        error = say(e, "ready");
    return error != 0 ? error : await(e, "ready");
}

static int open_queue(struct lab_end *e, const struct lab_case *c, struct lab_queue *q,
                      struct lab_side *side)
{
    struct lab_queue_plan plan = {
        .transport = (enum lab_transport)e->settings.transport,
        .depth = c->depth,
        .events = e->settings.wait == LAB_EVENT,
        .receives_data = e->serving && c->op == LAB_SEND,
        .shared = e->serving && c->way == LAB_SHARED_POOL,
        .inlined = !e->serving && c->way == LAB_INLINE ? c->size : 0,
    };
    if (c->op == LAB_ATOMIC && e->rig.device.atomic_cap == IBV_ATOMIC_NONE) {
        snprintf(e->message, sizeof(e->message), "op: %s has no atomics", e->rig.name);
        return -EOPNOTSUPP;
    }
    int error = lab_queue_open(q, &e->rig, side, &plan);
    if (error != 0)
        lab_message_copy(e->message, q->message);
    return error;
}

static int run_data(struct lab_end *e, const struct lab_case *c, struct lab_equipment *x,
                    struct lab_side *side, struct lab_result *r)
{
    int error;
    lab_side_begin(side, e->rig.name, e->rig.port);
    if (c->op == LAB_TCP)
        error = r != NULL ? lab_tcp_source(e, c, r) : lab_tcp_target(e, c, side);
    else
        error = r != NULL ? lab_source_run(e, c, &x->q, &x->b, r)
                          : lab_target_run(e, c, &x->q, &x->b, side);
    lab_side_end(side, e->rig.name, e->rig.port);
    return error;
}

int lab_session_equip(struct lab_end *e, const struct lab_case *c, struct lab_equipment *x,
                      struct lab_side *side)
{
    int error = open_queue(e, c, &x->q, side);
    if (error == 0)
        error = lab_buffers_open(&x->b, e, side, c);
    if (error == 0 && e->serving)
        error = lab_target_prepare(e, c, &x->q, &x->b, side);
    return error;
}

uint64_t lab_session_registered_bytes(const struct lab_equipment *x)
{
    return (x->q.notes_mr != NULL ? x->q.notes_mr->length : 0) +
           (x->b.mr != NULL ? x->b.mr->length : 0) + x->b.registered_most_bytes;
}

void lab_session_unequip(struct lab_equipment *x)
{
    lab_cm_disconnect(&x->cm);
    lab_queue_close(&x->q);
    lab_buffers_close(&x->b);
}

/* The last message is the one that is traced. */
static void start_trace(struct lab_end *e, const struct lab_case *c, const struct lab_queue *q)
{
    struct lab_trace *t = &e->trace;
    t->sequence = c->first + lab_case_messages(c) - 1;
    t->own_qpn = (uint32_t)q->self.qpn;
    t->peer_qpn = (uint32_t)q->peer.qpn;
    memset(t->at_ns, 0, sizeof(t->at_ns));
}

/* r: the source's, NULL at the target. */
static int move(struct lab_end *e, const struct lab_case *c, struct lab_side *side,
                struct lab_result *r)
{
    struct lab_equipment x = {0};
    e->rig.pool.offset = c->offset;
    int placed = lab_rig_place(&e->rig, c->near, e->message);
    if (placed != 0)
        return placed;
    if (c->qps > 1)
        return lab_lanes_move(e, c, side, r);
    int error = c->op == LAB_TCP ? 0 : lab_session_equip(e, c, &x, side);
    if (error == 0)
        error = lab_session_join(e, c->op == LAB_TCP ? NULL : &x.q, &x.cm);
    start_trace(e, c, &x.q);
    if (error == 0)
        error = run_data(e, c, &x, side, r);
    if (c->op != LAB_TCP)
        side->registered_bytes = e->rig.mr->length + lab_session_registered_bytes(&x);
    if (error == 0 && r != NULL)
        error = say(e, "done");
    if (error == 0 && c->op == LAB_TCP && r == NULL)
        error = await(e, "done");
    /* The source's queue stays until the target has ended, too: it may owe it an answer. */
    if (error == 0 && r != NULL && (r->target = lab_session_receive(e, "result")) == NULL)
        error = -EPIPE;
    if (error == 0 && r != NULL && e->trace.on)
        r->trace = lab_trace_json(&e->trace);
    error = lab_session_prefer_peer(e, error);
    lab_session_unequip(&x);
    return error;
}

static int drive_case(struct lab_end *e, const struct lab_case *c, struct lab_result *r)
{
    char doing[LAB_CASE_BYTES + 16], what[LAB_CASE_BYTES];
    snprintf(doing, sizeof(doing), "running %s", lab_case_say(c, what));
    e->control.doing = doing;
    json_t *o = json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:I,s:I,s:I,s:I,s:I}", "near", (int)c->near,
                          "qps", (int)c->qps, "threads", (int)c->threads, "op", (int)c->op, "way",
                          (int)c->way, "offset", (int)c->offset, "size", (json_int_t)c->size,
                          "depth", (json_int_t)c->depth, "warmup", (json_int_t)c->warmup,
                          "iterations", (json_int_t)c->iterations, "first", (json_int_t)c->first);
    int error = lab_session_send(e, "case", o);
    r->c = *c;
    r->c.warmup *= c->qps;
    r->c.iterations *= c->qps;
    if (error == 0)
        error = move(e, c, &r->source, r);
    e->control.doing = "between cases";
    return error;
}

static unsigned ops_of(const struct lab_settings *s, unsigned ops[LAB_OPS + 1])
{
    unsigned n = 0;
    if (s->baseline != 0)
        ops[n++] = LAB_TCP;
    for (unsigned op = 0; op < LAB_OPS; op++)
        if ((s->ops >> op & 1) != 0)
            ops[n++] = op;
    return n;
}

/* The i-th combination of a size; false where there is no such case. Atomics have one size and
 * offset, and the baseline one way and one connection. */
static bool case_at(const struct lab_settings *s, const unsigned *ops, unsigned n, uint32_t place,
                    unsigned i, struct lab_case *c)
{
    unsigned way = i % LAB_WAYS, op = ops[(i /= LAB_WAYS) % n];
    unsigned near = (i /= n) % LAB_NEARS;
    uint32_t qps = s->qps.value[(i /= LAB_NEARS) % s->qps.count];
    uint32_t threads = s->threads.value[(i /= s->qps.count) % s->threads.count];
    uint32_t offset = s->offsets.value[(i /= s->threads.count) % s->offsets.count];
    uint32_t depth = s->depths.value[i / s->offsets.count];
    bool atomic = op == LAB_ATOMIC, tcp = op == LAB_TCP;
    *c = (struct lab_case){
        .op = op,
        .way = tcp ? LAB_DIRECT : (enum lab_way)way,
        .size = atomic ? 8 : s->sizes.value[place],
        .depth = depth,
        .offset = atomic ? 0 : offset,
        .near = (enum lab_near)near,
        .qps = tcp ? 1 : qps,
        .threads = tcp ? 1 : threads,
        .warmup = s->warmup,
        .iterations = lab_settings_iterations(s, s->sizes.value[place]),
    };
    if ((s->ways >> way & 1) == 0 || (s->numa >> near & 1) == 0)
        return false;
    if (tcp)
        return way == (unsigned)__builtin_ctzll(s->ways) && qps == s->qps.value[0] &&
               threads == s->threads.value[0];
    return lab_settings_has_team(s, qps, threads) &&
           (!atomic || (place == 0 && offset == s->offsets.value[0])) &&
           lab_settings_has_case(s, op, s->sizes.value[place], (enum lab_way)way);
}

static unsigned combinations(const struct lab_settings *s, unsigned n)
{
    return LAB_WAYS * LAB_NEARS * n * s->qps.count * s->threads.count * s->offsets.count *
           s->depths.count;
}

static unsigned count_cases(const struct lab_settings *s, const unsigned *ops, unsigned n)
{
    unsigned count = 0;
    struct lab_case c;
    for (uint32_t place = 0; place < s->sizes.count; place++)
        for (unsigned i = 0; i < combinations(s, n); i++)
            count += case_at(s, ops, n, place, i, &c);
    return count;
}

static int drive_size(struct lab_end *e, struct lab_run *run, uint32_t place, const unsigned *ops,
                      unsigned n, uint64_t *sequence, lab_progress *progress)
{
    const struct lab_settings *s = &e->settings;
    char what[LAB_CASE_BYTES];
    if (s->baseline != 0)
        run->memcpy_ns[place] = lab_tcp_memcpy_ns(e, s->sizes.value[place]);
    for (unsigned i = 0; i < combinations(s, n); i++) {
        struct lab_case c;
        if (!case_at(s, ops, n, place, i, &c))
            continue;
        c.first = *sequence;
        progress(lab_case_say(&c, what), run->count, run->steps);
        int error = drive_case(e, &c, &run->results[run->count]);
        if (error != 0)
            return error;
        run->count++;
        *sequence += c.qps * lab_case_messages(&c);
    }
    return 0;
}

int lab_session_drive(struct lab_end *e, struct lab_run *run, lab_progress *progress)
{
    unsigned ops[LAB_OPS + 1], n = ops_of(&e->settings, ops);
    uint64_t sequence = 0;
    int error = 0;
    *run = (struct lab_run){.planned = count_cases(&e->settings, ops, n),
                            .experiments = json_array(),
                            .one_node = e->one_node};
    run->results = calloc(run->planned, sizeof(*run->results));
    if (run->results == NULL) {
        snprintf(e->message, sizeof(e->message), "out of memory for %u cases", run->planned);
        return -ENOMEM;
    }
    run->steps = (e->experiments_only ? 0 : run->planned) + lab_experiment_trials(e);
    for (uint32_t size = 0; size < e->settings.sizes.count && error == 0 && !e->experiments_only;
         size++)
        error = drive_size(e, run, size, ops, n, &sequence, progress);
    if (error == 0)
        error = lab_experiment_drive(e, run, progress);
    e->control.doing = "ending";
    if (error == 0)
        error = lab_session_send(e, "case", json_pack("{s:b}", "end", 1));
    if (error == 0 && (run->target = lab_session_receive(e, "self")) == NULL)
        error = -EPIPE;
    return error;
}

void lab_run_clear(struct lab_run *run)
{
    for (unsigned i = 0; run->results != NULL && i < run->planned; i++) {
        lab_side_clear(&run->results[i].source);
        json_decref(run->results[i].target);
        json_decref(run->results[i].trace);
        json_decref(run->results[i].queue_pairs);
    }
    free(run->results);
    json_decref(run->experiments);
    json_decref(run->target);
    *run = (struct lab_run){0};
}

static int parse_case(struct lab_end *e, const json_t *o, struct lab_case *c)
{
    uint64_t op, way, offset, size, depth, qps, threads, near;
    struct lab_control *k = &e->control;
    if (!lab_control_number(k, o, "op", LAB_TCP, &op) ||
        !lab_control_number(k, o, "near", LAB_NEARS - 1, &near) ||
        !lab_control_number(k, o, "qps", LAB_MAX_QPS, &qps) ||
        !lab_control_number(k, o, "threads", qps, &threads) ||
        !lab_control_number(k, o, "way", LAB_WAYS - 1, &way) ||
        !lab_control_number(k, o, "offset", e->rig.pool.slot_bytes - 1, &offset) ||
        !lab_control_number(k, o, "size", e->rig.pool.slot_bytes - offset, &size) ||
        !lab_control_number(k, o, "depth", e->rig.pool.slots, &depth) ||
        !lab_control_number(k, o, "warmup", 1000000000, &c->warmup) ||
        !lab_control_number(k, o, "iterations", 1000000000, &c->iterations) ||
        !lab_control_number(k, o, "first", INT64_MAX / 2, &c->first))
        return from_control(e, -EPROTO);
    c->op = (unsigned)op;
    c->way = (enum lab_way)way;
    c->offset = (uint32_t)offset;
    c->size = (uint32_t)size;
    c->depth = (uint32_t)depth;
    c->near = (enum lab_near)near;
    c->qps = (uint32_t)qps;
    c->threads = (uint32_t)threads;
    if (c->size == 0 || c->threads == 0 || qps * depth > e->rig.pool.slots || c->depth == 0 ||
        !lab_settings_has_case(&e->settings, c->op, c->size, c->way) || lab_case_messages(c) == 0 ||
        (c->op == LAB_TCP && e->data < 0)) {
        snprintf(e->message, sizeof(e->message), "the peer sent no right 'case'");
        return -EPROTO;
    }
    return 0;
}

static int serve_case(struct lab_end *e, const json_t *o)
{
    struct lab_case c;
    struct lab_side side = {0};
    char doing[LAB_CASE_BYTES + 16], what[LAB_CASE_BYTES];
    int error = parse_case(e, o, &c);
    if (error != 0)
        return error;
    snprintf(doing, sizeof(doing), "running %s", lab_case_say(&c, what));
    e->control.doing = doing;
    error = move(e, &c, &side, NULL);
    if (error == 0) {
        json_t *result = lab_side_json(&side);
        if (e->trace.on)
            json_object_set_new(result, "trace", lab_trace_json(&e->trace));
        error = lab_session_send(e, "result", result);
    }
    lab_side_clear(&side);
    e->control.doing = "between cases";
    return error;
}

int lab_session_serve(struct lab_end *e)
{
    e->control.doing = "between cases";
    for (;;) {
        json_t *o = lab_session_receive(e, "case");
        if (o == NULL)
            return -EPIPE;
        bool end = json_is_true(json_object_get(o, "end"));
        int error = end                                        ? 0
                    : json_object_get(o, "experiment") != NULL ? lab_experiment_serve(e, o)
                                                               : serve_case(e, o);
        json_decref(o);
        if (end)
            return lab_session_send(e, "self", lab_session_self(e));
        if (error != 0)
            return error;
    }
}
