/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tally.c: what a process has counted, for other processes that ask: the files that describe a
 * device (src/files) are read by `cat` and by monitors, which have no engine. Each engine listens
 * on an abstract unix socket `verbena/counters/<random>`, gone with the process; whoever connects
 * is sent one message. Only processes of one user, and root, are told. What anybody says who took
 * such a name is no news of a device: one's own user is believed, and by root the user who has the
 * port.
 */
#define _GNU_SOURCE
#include "host/host_priv.h"
#include "port/port_peer.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TALLY_NAME "verbena/counters/"

enum {
    TALLY_COUNTERS = COUNTER_COUNT + CM_COUNTERS,
    TALLY_DEVICES = 64, /* more that one process has open are not named */
    TALLY_BACKLOG = 16,
    TALLY_ANSWERS = 16,   /* of one call */
    TALLY_COUNTED = 1024, /* processes, at most */
};
static const uint64_t TALLY_TAKEN_NS = 1000 * 1000;       /* until the events lock is tried again */
static const uint64_t TALLY_SHORT_NS = 100 * 1000 * 1000; /* until a descriptor may be left */
/* A stopped process does not answer. */
static const uint64_t TALLY_PATIENCE_NS = 100 * 1000 * 1000;
static const uint64_t TALLY_PATIENCE_ALL_NS = 400 * 1000 * 1000;

struct tally {
    uint64_t names; /* of the counters: those of another version are others */
    uint32_t devices;
    uint32_t ifindex[TALLY_DEVICES];
    uint64_t value[TALLY_COUNTERS];
};

static uint64_t hash_names(void)
{
    uint64_t h = 0xcbf29ce484222325u;
    const char *name;

    for (unsigned i = 0; (name = verbena_counter_name(i)) != NULL; i++) {
        for (; *name != '\0'; name++)
            h = (h ^ (unsigned char)*name) * 0x100000001b3u;
        h = (h ^ ' ') * 0x100000001b3u;
    }
    return h;
}

/* The other end: our user, root, or that one. */
static bool peer_is(int fd, uid_t too)
{
    uid_t uid;

    return port_peer_uid(fd, &uid) && (uid == geteuid() || uid == 0 || uid == too);
}

/* Whom else this process believes. */
static uid_t believed(void)
{
    uid_t uid;

    return geteuid() == 0 && port_udp_holder_uid(ROCE_UDP_PORT, &uid) ? uid : geteuid();
}

/* Without a descriptor, or in a sandbox, nobody is told. */
void tally_open(struct host *h)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, TALLY_NAME "%016llx",
                     (unsigned long long)host_random());
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);

    h->tally_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (h->tally_fd >= 0 && (bind(h->tally_fd, (struct sockaddr *)&a, bytes) != 0 ||
                             listen(h->tally_fd, TALLY_BACKLOG) != 0))
        tally_close(h);
}

void tally_close(struct host *h)
{
    if (h->tally_fd >= 0)
        close(h->tally_fd);
    h->tally_fd = -1;
}

static void fill_values(struct host *h, struct tally *t)
{
    t->names = hash_names();
    for (unsigned i = 0; i < COUNTER_COUNT; i++)
        t->value[i] = counters_get(&h->nic->counters, (enum nic_counter)i);
    for (unsigned i = 0; i < CM_COUNTERS; i++)
        t->value[COUNTER_COUNT + i] =
            atomic_load_explicit(&h->connect.count[i], memory_order_relaxed);
}

/* false: another has the lock, perhaps for ever, where a program ends in a callback. */
static bool fill_devices(struct host *h, struct tally *t)
{
    struct verbena_context *ctx;

    if (!progress_try_lock(&h->events))
        return false;
    TAILQ_FOREACH(ctx, &h->contexts, link)
    {
        if (t->devices < TALLY_DEVICES)
            t->ifindex[t->devices++] = ctx->device.ifindex;
    }
    progress_unlock(&h->events);
    progress_dispatch(h); /* who found the lock taken left it to us */
    return true;
}

void tally_answer(struct host *h)
{
    struct tally t = {0};
    bool filled = false;

    /* Before somebody is accepted: who waits is answered later. */
    if (!fill_devices(h, &t)) {
        h->tally_again_ns = host_now_ns() + TALLY_TAKEN_NS;
        return;
    }
    for (unsigned i = 0; i < TALLY_ANSWERS; i++) {
        int fd = accept4(h->tally_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            /* An asker for whom there is no descriptor would wake the helper without end. */
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                h->tally_again_ns = host_now_ns() + TALLY_SHORT_NS;
            return;
        }
        if (peer_is(fd, geteuid())) {
            if (!filled) /* not for strangers, who may ask without end */
                fill_values(h, &t);
            filled = true;
            send(fd, &t, sizeof(t), MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        close(fd);
    }
}

/* Asks the process of that name; false: no answer, or none that counts. */
static bool ask(const char *name, uid_t too, uint64_t deadline_ns, struct tally *t)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    uint64_t now = host_now_ns();
    uint64_t until = now + TALLY_PATIENCE_NS < deadline_ns ? now + TALLY_PATIENCE_NS : deadline_ns;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool ok = fd >= 0 && n < sizeof(a.sun_path) - 1;

    if (ok)
        memcpy(a.sun_path + 1, name, n);
    ok = ok &&
         connect(fd, (struct sockaddr *)&a,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) == 0 &&
         peer_is(fd, too);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int wait_ms = until > now ? (int)((until - now) / 1000000) : 0;
    ok = ok && poll(&p, 1, wait_ms) == 1 &&
         recv(fd, t, sizeof(*t), MSG_TRUNC) == (ssize_t)sizeof(*t) && t->names == hash_names() &&
         t->devices <= TALLY_DEVICES;
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool uses(const struct tally *t, unsigned ifindex)
{
    for (unsigned i = 0; i < t->devices; i++) {
        if (t->ifindex[i] == ifindex)
            return true;
    }
    return false;
}

/* The name of a listener of ours in a line of /proc/net/unix, or NULL. */
static const char *listener(char *line)
{
    static const char listening[] = " 00010000 "; /* SO_ACCEPTCON, among the flags */
    char *name = strstr(line, " @" TALLY_NAME);

    if (name == NULL || strstr(line, listening) == NULL)
        return NULL;
    name += 2;
    name[strcspn(name, "\n")] = '\0';
    return name;
}

unsigned verbena_counters_of_all(const struct verbena_device *d, uint64_t *value, unsigned n)
{
    FILE *names = fopen("/proc/net/unix", "re");
    uint64_t deadline_ns = host_now_ns() + TALLY_PATIENCE_ALL_NS;
    unsigned counted = 0;
    uid_t too = believed();
    char line[512];

    /* Names of strangers do not count, but take their time. */
    while (names != NULL && counted < TALLY_COUNTED && host_now_ns() < deadline_ns &&
           fgets(line, sizeof(line), names) != NULL) {
        const char *name = listener(line);
        struct tally t;
        if (name == NULL || !ask(name, too, deadline_ns, &t) || !uses(&t, d->ifindex))
            continue;
        counted++;
        for (unsigned i = 0; i < n && i < TALLY_COUNTERS; i++)
            value[i] += t.value[i];
    }
    if (names != NULL)
        fclose(names);
    return counted;
}
