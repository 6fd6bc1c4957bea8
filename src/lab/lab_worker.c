/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_worker.c: a rank's worker, and the two kinds of process that it starts: they open the device,
 * so that the worker itself never has one, and nothing of a meeting is left over in the next.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lab/lab_hub.h"
#include "lab/lab_net.h"
#include "lab/lab_record.h"

/* The leader says nothing while others are measured: only its end ends the waiting for it. */
enum { NO_LIMIT_NS_LOG2 = 56, TELL_MS = 500 };

/* The process of one meeting. */
struct part {
    const struct lab_ranks *ranks;
    struct lab_end end;
    struct lab_control hub;
    uint8_t key[LAB_KEY_BYTES];
    unsigned meeting, peer;
};

static int connect_hub(struct lab_control *hub, const struct lab_ranks *ranks, uint64_t timeout_ns,
                       char message[LAB_MESSAGE_BYTES])
{
    uint8_t key[LAB_KEY_BYTES];
    const struct lab_rank *leader = &ranks->rank[0];
    bool here = leader->machine == ranks->rank[ranks->own].machine;
    int fd = lab_addresses_connect(leader->addresses, ranks->hub, here, timeout_ns, message);
    if (fd < 0)
        return fd;
    lab_ranks_key(ranks, "hub", 0, key);
    int error = lab_control_open(hub, fd, false, key, timeout_ns);
    hub->timeout_ns = 1ull << NO_LIMIT_NS_LOG2;
    hub->doing = "waiting for rank 0";
    if (error != 0)
        lab_message_copy(message, hub->message);
    return error;
}

static int say_hello(struct part *p, const char *role, unsigned port)
{
    json_t *o = json_pack("{s:s,s:i,s:i,s:i}", "role", role, "rank", (int)p->ranks->own, "meeting",
                          (int)p->meeting, "port", (int)port);
    return lab_control_send(&p->hub, "hello", o);
}

static int serve(struct part *p)
{
    struct lab_end *e = &p->end;
    e->serving = true;
    e->settings.given = 0;
    e->listener = lab_net_listen("", 0, e->message);
    int error = say_hello(p, "target", e->listener < 0 ? 0 : lab_net_port(e->listener));
    if (e->listener < 0 || error != 0)
        return -EIO;
    error = lab_session_accept(e, p->key, e->settings.timeout_ns);
    if (error == 0)
        error = lab_session_serve(e);
    lab_session_close(e, error != 0);
    if (error == 0)
        lab_control_send(&p->hub, "done", json_object());
    return error;
}

static struct lab_control *told; /* who is told of each case; progress has no context */

static void tell(const char *what, unsigned index, unsigned count)
{
    (void)what, (void)index, (void)count;
    lab_control_send(told, "alive", json_object());
}

static int await_go(struct part *p)
{
    json_t *o = NULL;
    int heard = 0;
    while (heard == 0) {
        while (!lab_control_pending(&p->hub, TELL_MS))
            if (lab_control_send(&p->end.control, "alive", json_object()) != 0)
                break; /* what comes next fails, too, and says why */
        heard = lab_control_hear(&p->hub, "go", &o);
    }
    json_decref(o);
    return heard > 0 ? 0 : -EPIPE;
}

static int send_record(struct part *p, json_t *record)
{
    char *text = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(10));
    int error = text == NULL ? -ENOMEM : 0;
    for (size_t at = 0, n = text != NULL ? strlen(text) : 0; at < n && error == 0;) {
        size_t piece = n - at < LAB_PIECE_BYTES ? n - at : LAB_PIECE_BYTES;
        while (at + piece < n && ((unsigned char)text[at + piece] & 0xc0) == 0x80)
            piece--; /* no character is cut in two */
        json_t *o = json_pack("{s:s%,s:b}", "text", text + at, piece, "more", at + piece < n);
        error = lab_control_send(&p->hub, "record", o);
        at += piece;
    }
    free(text);
    json_decref(record);
    return error;
}

static int find_target(struct part *p)
{
    const struct lab_rank *peer = &p->ranks->rank[p->peer];
    bool here = peer->machine == p->ranks->rank[p->ranks->own].machine;
    uint64_t port = 0;
    json_t *o = lab_control_receive(&p->hub, "target");
    bool right = o != NULL && lab_control_number(&p->hub, o, "port", 65535, &port);
    json_decref(o);
    if (!right) {
        lab_message_copy(p->end.message, p->hub.message);
        return -EPIPE;
    }
    return lab_addresses_connect(peer->addresses, (uint16_t)port, here, p->end.settings.timeout_ns,
                                 p->end.message);
}

static int drive(struct part *p)
{
    struct lab_end *e = &p->end;
    struct lab_run run = {0};
    int error = say_hello(p, "source", 0);
    int fd = error == 0 ? find_target(p) : -EPIPE;
    if (fd < 0)
        return fd;
    error = lab_session_open(e, fd, p->key);
    if (error == 0)
        error = lab_control_send(&p->hub, "open", json_object());
    if (error == 0)
        error = await_go(p);
    told = &p->hub;
    if (error == 0)
        error = lab_session_drive(e, &run, tell);
    json_t *record = error == 0 || run.count > 0
                         ? lab_record_make(e, &run, error != 0 ? e->message : NULL)
                         : NULL;
    lab_session_close(e, error != 0);
    lab_run_clear(&run);
    return record != NULL ? send_record(p, record) : error;
}

static void __attribute__((noreturn)) take_part(struct part *p, bool as_source)
{
    int error = connect_hub(&p->hub, p->ranks, p->end.settings.timeout_ns, p->end.message);
    if (error == 0) {
        error = as_source ? drive(p) : serve(p);
        if (error != 0)
            lab_control_give_up(&p->hub, p->end.message);
    }
    lab_control_close(&p->hub);
    _exit(error == 0 ? 0 : 1);
}

/* The child has nothing of the worker's but what it was told. */
static int start(const struct lab_ranks *ranks, const struct lab_settings *settings,
                 struct lab_control *hub, const json_t *o)
{
    uint64_t meeting, peer, source, together;
    if (!lab_control_number(hub, o, "meeting", INT32_MAX, &meeting) ||
        !lab_control_number(hub, o, "peer", ranks->count - 1, &peer) ||
        !lab_control_number(hub, o, "source", 1, &source) ||
        !lab_control_number(hub, o, "together", 1, &together))
        return -EPROTO;
    pid_t worker = getpid(), child = fork();
    if (child != 0)
        return child > 0 ? 0 : -errno;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != worker)
        _exit(1);
    signal(SIGCHLD, SIG_DFL);
    close(hub->fd);
    struct part *p = calloc(1, sizeof(*p));
    if (p == NULL)
        _exit(1);
    *p = (struct part){.ranks = ranks, .meeting = (unsigned)meeting, .peer = (unsigned)peer};
    p->end =
        (struct lab_end){.settings = *settings, .listener = -1, .data = -1, .control = {.fd = -1}};
    p->hub.fd = -1;
    if (together != 0)
        lab_settings_for_together(&p->end.settings);
    lab_ranks_key(ranks, "meeting", p->meeting, p->key);
    take_part(p, source != 0);
}

int lab_worker_run(const struct lab_ranks *ranks, const struct lab_settings *settings,
                   char message[LAB_MESSAGE_BYTES])
{
    struct part self = {.ranks = ranks};
    int error = connect_hub(&self.hub, ranks, settings->timeout_ns, message);
    if (error != 0)
        return error;
    signal(SIGCHLD, SIG_IGN); /* nobody asks how they ended: they tell the leader */
    error = say_hello(&self, "worker", 0);
    bool end = false;
    while (error == 0 && !end) {
        json_t *o = lab_control_receive(&self.hub, "work");
        end = json_is_true(json_object_get(o, "end"));
        error = o == NULL ? -EPIPE : 0;
        if (error == 0 && !end)
            error = start(ranks, settings, &self.hub, o);
        json_decref(o);
    }
    if (self.hub.gave_up)
        error = 0; /* the leader tells it itself */
    if (error != 0 && self.hub.message[0] != '\0')
        lab_message_copy(message, self.hub.message);
    else if (error != 0)
        snprintf(message, LAB_MESSAGE_BYTES, "cannot start a process: %s", strerror(-error));
    lab_control_close(&self.hub);
    return error;
}
