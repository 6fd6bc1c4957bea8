/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host.c: the one live NIC of a process: made at the first open, gone with the last close.
 */
#define _GNU_SOURCE
#include "base/file_limit.h"
#include "host/host_priv.h"
#include "port/port_peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum {
    WINDOW_MIN_BYTES = 64 << 10,
    WINDOW_MAX_BYTES = 1 << 20,
    GSI_MADS = 4096, /* that wait at QP 1: of a thousand peers that connect at once, and again */
};

struct host *host_current;
pthread_mutex_t host_open_lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t host_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int64_t wall_offset_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - (int64_t)host_now_ns();
}

uint64_t host_random(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        seed = host_now_ns() * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid();
    return seed;
}

/* What a QP may have in flight, so that a receiving socket like ours holds it: the kernel counts
 * about twice the bytes of a packet. */
static uint32_t window_bytes(uint32_t rcvbuf_bytes)
{
    uint32_t w = rcvbuf_bytes / 5 * 2;
    if (w < WINDOW_MIN_BYTES)
        return WINDOW_MIN_BYTES;
    return w < WINDOW_MAX_BYTES ? w : WINDOW_MAX_BYTES;
}

static void host_destroy(struct host *h)
{
    progress_stop(h);
    netdev_close(h);
    tally_close(h);
    share_close(h);
    connect_fini(h);
    if (h->port != NULL)
        h->port->ops->close(h->port);
    if (h->tap != NULL)
        port_tap_close(h->tap);
    if (h->nic != NULL)
        nic_destroy(h->nic);
    if (h->alive != NULL)
        munmap(h->alive, (size_t)sysconf(_SC_PAGESIZE));
    free(h);
}

static int create_alive_page(struct host *h)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return -ENOMEM;
    madvise(p, page, MADV_WIPEONFORK); /* kernels without it: fork() still runs our handler */
    h->alive = p;
    atomic_store(h->alive, 1);
    return 0;
}

static int create_port(struct host *h)
{
    struct host_config *c = &h->config;
    if (c->pcap_path != NULL) {
        int64_t offset_ns = c->pcap_monotonic ? 0 : wall_offset_ns();
        int err = port_tap_create(c->pcap_path, offset_ns, &h->tap);
        if (err != 0) {
            fprintf(stderr, "verbena: VERBENA_PCAP=%s: %s\n", c->pcap_path,
                    err == -EINVAL ? "exists and is not a capture of this kind"
                                   : file_limit_strerror(-err));
            return err;
        }
        c->udp.observer = port_tap_observer(h->tap);
    }
    c->udp.seed = host_random();
    int err = port_udp_create(&c->udp, &h->udp);
    if (err == -EADDRINUSE) {
        char holder[256];
        port_udp_holder(ROCE_UDP_PORT, holder, sizeof(holder));
        bool user = strncmp(holder, "user ", 5) == 0;
        fprintf(stderr, "verbena: UDP port %d belongs to %s%s\n", ROCE_UDP_PORT,
                holder[0] != '\0' ? holder : "somebody else",
                user ? "; two users share it if each names the other in VERBENA_ALLOW_UIDS" : "");
    } else if (err == -ENOSPC) {
        fprintf(stderr, "verbena: all 1024 places for processes are taken: the abstract unix "
                        "sockets verbena/slot/0 to 1023 of this network namespace\n");
    }
    if (err != 0)
        return err;
    if (!port_peer_knows_us())
        fprintf(stderr,
                "verbena: user %u is anybody in this user namespace: packets are not "
                "passed on between this process and others\n",
                (unsigned)geteuid());
    h->port = h->udp;
    return c->faulty ? port_fault_create(&c->fault, h->udp, host_now_ns(), &h->port) : 0;
}

static int host_create(struct host **out)
{
    struct host *h = calloc(1, sizeof(*h));
    if (h == NULL)
        return -ENOMEM;
    h->control_fd = h->netlink_fd = h->tally_fd = h->share_fd = -1;
    TAILQ_INIT(&h->contexts);
    LIST_INIT(&h->xrc_files);
    TAILQ_INIT(&h->connect.services);
    TAILQ_INIT(&h->connect.known);
    TAILQ_INIT(&h->connect.leaving);
    TAILQ_INIT(&h->connect.over);
    int err = config_read(&h->config);
    err = err == 0 ? create_alive_page(h) : err;
    err = err == 0 ? create_port(h) : err;
    if (err == 0) {
        struct nic_config nic = {.seed = host_random(),
                                 .window_bytes = window_bytes(port_udp_rcvbuf_bytes(h->udp)),
                                 .gsi_mads = GSI_MADS,
                                 .fetch = memory_fetch,
                                 .store = memory_store,
                                 .congestion = h->config.congestion};
        err = nic_create(&nic, &h->nic);
    }
    err = err == 0 ? nic_add_qpns(h->nic, port_udp_slot(h->udp)) : err;
    err = err == 0 ? fork_watch() : err;
    err = err == 0 ? netdev_open(h) : err;
    h->qpn_slots = 1;
    h->next_sport = (uint32_t)host_random();
    if (err == 0) {
        connect_init(h);
        tally_open(h);
        share_open(h);
    }
    err = err == 0 ? progress_start(h) : err;
    if (err != 0) {
        host_destroy(h);
        return err;
    }
    *out = h;
    return 0;
}

/* A thread cancelled in one of the many system calls under the open lock would take it along. */
int host_lock_open(void)
{
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    pthread_mutex_lock(&host_open_lock);
    return cancel_state;
}

void host_unlock_open(int cancel_state)
{
    pthread_mutex_unlock(&host_open_lock);
    pthread_setcancelstate(cancel_state, NULL);
}

int host_acquire(struct host **out)
{
    int err = 0, cancel_state = host_lock_open();
    if (host_current != NULL && !host_alive(host_current))
        fork_abandon(host_current); /* a raw clone: no handler ran */
    if (host_current == NULL)
        err = host_create(&host_current);
    if (err == 0) {
        host_current->users++;
        *out = host_current;
    }
    host_unlock_open(cancel_state);
    return err;
}

/* Objects that the program left behind keep the engine. */
static bool in_use(struct host *h)
{
    return atomic_load(&h->nic->objects) != 0 || h->nic->qp_count != 0 || h->connect.ids != 0;
}

void host_release(struct host *h)
{
    int cancel_state = host_lock_open();
    h->users--;
    if (h->users == 0 && !in_use(h)) {
        connect_farewell(h);
        if (nic_has_output(h->nic))
            progress_flush(h);
        stats_write(h);
        host_destroy(h);
        host_current = NULL;
    }
    host_unlock_open(cancel_state);
}

int verbena_open(const char *device_name, const struct verbena_callbacks *cb, void *owner,
                 struct verbena_context **out)
{
    struct verbena_context *ctx = calloc(1, sizeof(*ctx));
    if (ctx == NULL)
        return -ENOMEM;
    int err = device_find(device_name, &ctx->device);
    err = err == 0 ? gid_init(ctx) : err;
    if (err != 0) {
        free(ctx);
        return err;
    }
    err = host_acquire(&ctx->host);
    if (err != 0) {
        gid_fini(ctx);
        free(ctx);
        return err;
    }
    ctx->callbacks = *cb;
    ctx->owner = owner;
    netdev_add(ctx);
    *out = ctx;
    return 0;
}

void verbena_close(struct verbena_context *ctx)
{
    struct host *h = ctx->host;
    if (!host_alive(h)) {
        gid_fini(ctx);
        free(ctx);
        return;
    }
    netdev_remove(ctx);
    /* Objects that the program left behind keep the contexts they name. */
    bool left = atomic_load(&ctx->objects) != 0;
    host_release(h);
    if (!left) {
        gid_fini(ctx);
        free(ctx);
    }
}

/* A program that ends without closing still owes its answers, and leaves its counters. Many call
 * exit() in a signal handler, which may have come in the middle of any call of ours: so nothing is
 * waited for here that this very thread may hold. */
__attribute__((destructor)) static void at_exit(void)
{
    if (pthread_mutex_trylock(&host_open_lock) != 0)
        return;
    struct host *h = host_current;
    if (h != NULL && host_alive(h)) {
        progress_farewell(h);
        stats_write(h);
    }
    pthread_mutex_unlock(&host_open_lock);
}

struct host_object *host_object_create(struct verbena_context *ctx, void *owner)
{
    struct host_object *o = calloc(1, sizeof(*o));
    if (o != NULL) {
        o->ctx = ctx;
        o->owner = owner;
        atomic_fetch_add(&ctx->objects, 1);
    }
    return o;
}

void host_object_free(struct host_object *o)
{
    if (o != NULL)
        atomic_fetch_sub(&o->ctx->objects, 1);
    free(o);
}
