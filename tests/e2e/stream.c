/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream.c: one of two processes with an RC connection, while something bad happens to it, to its
 * partner or to the network. A script tells it by lines on its standard input what to do, and it
 * tells by lines what it sees: completions with errors, events, states. Every byte of a stream is
 * checked. Plain libibverbs.
 *
 * What is told to it:
 *   start      the stream, by -o: write (and read it back), push (write), read, send, recv
 *   stop       post no more: "stopped N ok" when all is complete
 *   err        the QP to the state ERR
 *   query      what the port and its GID table look like
 *   reconnect  a new QP on both sides
 *   make       what can be made now: a channel, a QP, another context, or why not
 *   fork       a child that only waits
 *   exec       becomes a program that only sleeps
 *   close      all of it, and ends
 */
#define _GNU_SOURCE
#include "rc_pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    DEPTH = 8,
    BLOCK = 24 * 1024 + 40,
    IN = DEPTH * BLOCK, /* where the partner writes; before it: what goes out */
    BACK = 2 * DEPTH * BLOCK,
    BYTES = 3 * DEPTH * BLOCK,
    CHECKED = 1 << 20, /* in the WR id of a READ whose data is compared */
    LINE = 128,
    WAIT_NS = 300000,
    TELL_EVERY = 32,
};

static struct {
    bool running, failed, stopping;
    unsigned next;        /* number of the next block */
    unsigned outstanding; /* WRs posted and not complete */
    unsigned good;        /* blocks that are complete and right */
    unsigned flushed;
    unsigned busy[DEPTH]; /* WRs of the slot */
    double last;          /* when the last completion came */
} s;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

static bool does(const struct rc_pair *p, const char *operation)
{
    return strcmp(p->o.operation, operation) == 0;
}

static void post(struct rc_pair *p, enum ibv_wr_opcode opcode, uint64_t id, uint64_t local,
                 uint64_t remote)
{
    rc_post(p, opcode, id, local, remote, BLOCK, IBV_SEND_SIGNALED);
    s.outstanding++;
    s.busy[id % DEPTH]++;
}

static void post_receive(struct rc_pair *p)
{
    rc_post_recv(p, s.next, IN + s.next % DEPTH * BLOCK, BLOCK);
    s.busy[s.next % DEPTH]++;
    s.next++;
    s.outstanding++;
}

static void post_next(struct rc_pair *p)
{
    unsigned slot = s.next % DEPTH;
    uint64_t out = slot * BLOCK, in = IN + slot * BLOCK, back = BACK + slot * BLOCK;
    if (does(p, "recv")) {
        post_receive(p);
        return;
    }
    if (does(p, "read")) {
        memset(p->buffer + back, 0, BLOCK);
        post(p, IBV_WR_RDMA_READ, s.next++ | CHECKED, back, out);
        return;
    }
    rc_fill(p->buffer + out, BLOCK, s.next);
    post(p, does(p, "send") ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, s.next, out, in);
    if (does(p, "write")) {
        memset(p->buffer + back, 0, BLOCK);
        post(p, IBV_WR_RDMA_READ, s.next | CHECKED, back, in);
    }
    s.next++;
}

static void good(struct rc_pair *p, const struct ibv_wc *wc)
{
    unsigned number = (unsigned)wc->wr_id & (CHECKED - 1), slot = number % DEPTH;
    if (wc->opcode == IBV_WC_RECV)
        rc_check(p->buffer + IN + slot * BLOCK, BLOCK, number, "Send");
    else if ((wc->wr_id & CHECKED) != 0)
        rc_check(p->buffer + BACK + slot * BLOCK, BLOCK, does(p, "read") ? slot : number, "Read");
    else if (does(p, "write"))
        return; /* its READ counts */
    if (++s.good % TELL_EVERY == 0)
        say("ok %u", s.good);
}

static void bad(struct rc_pair *p, const struct ibv_wc *wc)
{
    if (wc->status == IBV_WC_WR_FLUSH_ERR) {
        s.flushed++;
    } else {
        say("error %s opcode %d after %.2f s", ibv_wc_status_str(wc->status), wc->opcode,
            rc_now_seconds() - s.last);
    }
    s.failed = true;
    s.running = false;
    if (s.outstanding == 0) {
        struct ibv_qp_attr attr;
        struct ibv_qp_init_attr init;
        if (ibv_query_qp(p->qp, &attr, IBV_QP_STATE, &init) != 0)
            rc_fail("query_qp");
        say("flushed %u state %d", s.flushed, attr.qp_state);
    }
}

/* false: nothing was there. */
static bool poll_completions(struct rc_pair *p)
{
    struct ibv_wc wc[DEPTH];
    int n = ibv_poll_cq(p->cq, DEPTH, wc);
    if (n < 0)
        rc_fail("poll_cq: %d", n);
    for (int i = 0; i < n; i++) {
        s.outstanding--;
        s.busy[wc[i].wr_id % DEPTH]--;
        if (wc[i].status == IBV_WC_SUCCESS)
            good(p, &wc[i]);
        else
            bad(p, &wc[i]);
        s.last = rc_now_seconds();
    }
    if (s.stopping && s.outstanding == 0) {
        say("stopped %u ok", s.good);
        s.stopping = false;
    }
    return n > 0;
}

static void poll_events(struct rc_pair *p)
{
    struct ibv_async_event e;
    while (ibv_get_async_event(p->ctx, &e) == 0) {
        say("event %s", ibv_event_type_str(e.event_type));
        ibv_ack_async_event(&e);
    }
}

static void query(struct rc_pair *p)
{
    struct ibv_port_attr port;
    char line[512];
    int n, status = ibv_query_port(p->ctx, 1, &port);
    if (status != 0)
        rc_fail("query_port: %s", strerror(status));
    n = snprintf(line, sizeof(line), "port %s mtu %d gids", ibv_port_state_str(port.state),
                 128 << port.active_mtu);
    for (int i = 0; i < 5; i++) {
        union ibv_gid gid;
        char text[INET6_ADDRSTRLEN];
        if (ibv_query_gid(p->ctx, 1, i, &gid) != 0)
            rc_fail("query_gid: %s", strerror(errno));
        inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
        n += snprintf(line + n, sizeof(line) - (size_t)n, " %d=%s", i, text);
    }
    say("%s", line);
}

static void fresh(struct rc_pair *p)
{
    memset(&s, 0, sizeof(s));
    s.last = rc_now_seconds();
    for (unsigned i = 0; i < DEPTH; i++)
        rc_fill(p->buffer + i * BLOCK, BLOCK, i);
    rc_create_qp(p);
    if (does(p, "recv"))
        for (unsigned i = 0; i < DEPTH; i++)
            post_receive(p);
    rc_connect(p);
    s.running = does(p, "recv");
    say("connected");
}

static void make(struct rc_pair *p)
{
    struct ibv_qp_init_attr init = {
        .send_cq = p->cq,
        .recv_cq = p->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct ibv_comp_channel *channel = ibv_create_comp_channel(p->ctx);
    int channel_errno = channel != NULL ? ibv_destroy_comp_channel(channel) : errno;
    struct ibv_qp *qp = ibv_create_qp(p->pd, &init);
    int qp_errno = qp != NULL ? ibv_destroy_qp(qp) : errno;
    struct ibv_context *ctx = ibv_open_device(p->ctx->device);
    int open_errno = ctx != NULL ? ibv_close_device(ctx) : errno;
    say("made channel %s, QP %s, context %s", channel_errno ? strerrorname_np(channel_errno) : "ok",
        qp_errno ? strerrorname_np(qp_errno) : "ok",
        open_errno ? strerrorname_np(open_errno) : "ok");
}

static void become_another(void)
{
    say("exec");
    execlp("sleep", "sleep", "600", (char *)NULL);
    rc_fail("exec: %s", strerror(errno));
}

static void obey(struct rc_pair *p, const char *what)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    if (strcmp(what, "start") == 0) {
        s.running = true;
        s.last = rc_now_seconds();
    } else if (strcmp(what, "stop") == 0) {
        s.running = false;
        s.stopping = true;
    } else if (strcmp(what, "err") == 0) {
        if (ibv_modify_qp(p->qp, &attr, IBV_QP_STATE) != 0)
            rc_fail("modify_qp ERR");
    } else if (strcmp(what, "query") == 0) {
        query(p);
    } else if (strcmp(what, "reconnect") == 0) {
        rc_destroy_qp(p);
        fresh(p);
    } else if (strcmp(what, "make") == 0) {
        make(p);
    } else if (strcmp(what, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                pause();
        }
        say("child %d", (int)child);
    } else if (strcmp(what, "exec") == 0) {
        become_another();
    } else if (strcmp(what, "close") == 0) {
        rc_close(p);
        say("closed");
        exit(0);
    } else {
        rc_fail("what is '%s'?", what);
    }
}

/* Lines that are there. */
static void listen_to_script(struct rc_pair *p)
{
    static char line[LINE];
    static size_t n;
    char c;
    while (n < sizeof(line) && read(STDIN_FILENO, &c, 1) == 1) {
        if (c != '\n') {
            line[n++] = c;
            continue;
        }
        line[n] = '\0';
        n = 0;
        obey(p, line);
    }
}

static void wait_a_little(struct rc_pair *p)
{
    struct pollfd fds[2] = {
        {.fd = STDIN_FILENO,     .events = POLLIN},
        {.fd = p->ctx->async_fd, .events = POLLIN}
    };
    const struct timespec t = {0, WAIT_NS};
    (void)ppoll(fds, 2, &t, NULL);
    if (fds[0].revents & POLLIN)
        listen_to_script(p);
    else if (fds[0].revents != 0)
        exit(3); /* the script has gone */
    poll_events(p);
}

int main(int argc, char **argv)
{
    struct rc_options o = {.bytes = BYTES, .operation = "write"};
    struct rc_pair p;
    rc_options(&o, argc, argv);
    rc_open(&p, &o);
    if (fcntl(p.ctx->async_fd, F_SETFL, O_NONBLOCK) != 0 ||
        fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) != 0)
        rc_fail("fcntl: %s", strerror(errno));
    fresh(&p);
    double looked = 0;
    for (;;) {
        while (s.running && s.busy[s.next % DEPTH] == 0)
            post_next(&p);
        bool some = poll_completions(&p);
        if (!some || rc_now_seconds() - looked > 0.01) {
            wait_a_little(&p);
            looked = rc_now_seconds();
        }
    }
}
