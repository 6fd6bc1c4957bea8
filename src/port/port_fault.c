/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_fault.c: the fault-making port. Trains are taken apart; each packet is copied and meets its
 * fate at the next flush, the first call that knows the time: lost, doubled, corrupted, or let go
 * at some later time. Packets with equal times leave in the order in which they came.
 */
#include "port/port_fault.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/heap.h"
#include "base/rng.h"
#include "wire/net.h"
#include "wire/roce.h"

enum { MAX_HELD = 4096 }; /* packets that wait; more are lost */

#define FAULT_COUNTERS(X)                                                                          \
    X(fault_dropped)                                                                               \
    X(fault_duplicated)                                                                            \
    X(fault_corrupted)                                                                             \
    X(fault_marked)                                                                                \
    X(fault_reordered)                                                                             \
    X(fault_delayed)                                                                               \
    X(fault_down)                                                                                  \
    X(fault_overflow) /* lost because too many were held */

enum fault_counter {
#define X(name) COUNT_##name,
    FAULT_COUNTERS(X)
#undef X
        FAULT_COUNTER_COUNT
};

struct held {
    struct heap_node node; /* first: heap_first gives it back */
    STAILQ_ENTRY(held) link;
    struct nic_path path;
    struct roce_headers h;
    bool flip;
    uint32_t flip_bit;
    uint32_t payload_bytes;
    uint8_t payload[PATH_MTU_MAX_BYTES];
};
STAILQ_HEAD(held_list, held);

struct port_fault {
    struct port port;
    struct port *inner;
    struct fault_spec spec;
    struct rng rng;
    uint64_t created_ns;
    struct held *pool;
    struct held_list unused, fresh; /* fresh: came since the last flush */
    struct heap waiting;
    _Atomic uint64_t deadline_ns;
    _Atomic uint64_t counter[FAULT_COUNTER_COUNT];
    struct train train;
};

static struct port_fault *fault_of(struct port *p)
{
    return (struct port_fault *)((char *)p - offsetof(struct port_fault, port));
}

static void count(struct port_fault *f, enum fault_counter c)
{
    uint64_t v = atomic_load_explicit(&f->counter[c], memory_order_relaxed);
    atomic_store_explicit(&f->counter[c], v + 1, memory_order_relaxed);
}

static bool chance(struct port_fault *f, uint32_t ppb)
{
    return ppb != 0 && rng_below(&f->rng, FAULT_PPB) < ppb;
}

static struct held *held_take(struct port_fault *f)
{
    struct held *h = STAILQ_FIRST(&f->unused);
    if (h == NULL) {
        count(f, COUNT_fault_overflow);
        return NULL;
    }
    STAILQ_REMOVE_HEAD(&f->unused, link);
    h->node.index = 0;
    h->flip = false;
    return h;
}

static void fault_train(struct nic_sink *sink, const struct train *t)
{
    struct port_fault *f =
        (struct port_fault *)((char *)sink - offsetof(struct port_fault, port.sink));
    for (unsigned i = 0; i < t->packets; i++) {
        const struct train_packet *k = &t->packet[i];
        struct held *h = held_take(f);
        if (h == NULL)
            continue;
        h->path = *t->path;
        h->h = k->h;
        h->payload_bytes = 0;
        for (unsigned s = 0; s < k->spans; s++) {
            const struct span *span = &t->span[k->first_span + s];
            assert(h->payload_bytes + span->bytes <= sizeof(h->payload));
            memcpy(h->payload + h->payload_bytes, span->addr, span->bytes);
            h->payload_bytes += span->bytes;
        }
        STAILQ_INSERT_TAIL(&f->fresh, h, link);
    }
}

static bool fault_room(struct nic_sink *sink, uint64_t now_ns, const struct nic_path *path,
                       uint32_t qpn)
{
    struct port_fault *f =
        (struct port_fault *)((char *)sink - offsetof(struct port_fault, port.sink));
    return f->inner->sink.room(&f->inner->sink, now_ns, path, qpn);
}

static void wait_until(struct port_fault *f, struct held *h, uint64_t time_ns)
{
    heap_put(&f->waiting, &h->node, time_ns);
}

static void decide(struct port_fault *f, struct held *h, uint64_t now_ns)
{
    const struct fault_spec *s = &f->spec;
    uint64_t age_ns = now_ns - f->created_ns;
    bool down = age_ns >= s->down_at_ns && age_ns - s->down_at_ns < s->down_ns;
    if (down || chance(f, s->drop_ppb)) {
        count(f, down ? COUNT_fault_down : COUNT_fault_dropped);
        STAILQ_INSERT_HEAD(&f->unused, h, link);
        return;
    }
    if (chance(f, s->corrupt_ppb)) {
        h->flip = true;
        h->flip_bit = rng_below(&f->rng, ROCE_MAX_PACKET_BYTES * 8);
        count(f, COUNT_fault_corrupted);
    }
    /* RFC 3168: only what says ECT(0) or ECT(1) is marked; what is marked already stays so. */
    unsigned ecn = h->path.traffic_class & ECN_MASK;
    if (ecn != 0 && ecn != ECN_CE && chance(f, s->ce_ppb)) {
        h->path.traffic_class |= ECN_CE;
        count(f, COUNT_fault_marked);
    }
    uint64_t time_ns = now_ns + s->delay_ns;
    if (s->delay_ns != 0)
        count(f, COUNT_fault_delayed);
    if (chance(f, s->reorder_ppb)) {
        time_ns += s->reorder_ns;
        count(f, COUNT_fault_reordered);
    }
    struct held *twin = chance(f, s->dup_ppb) ? held_take(f) : NULL;
    wait_until(f, h, time_ns);
    if (twin != NULL) {
        twin->path = h->path;
        twin->h = h->h;
        twin->flip = h->flip;
        twin->flip_bit = h->flip_bit;
        twin->payload_bytes = h->payload_bytes;
        memcpy(twin->payload, h->payload, h->payload_bytes);
        wait_until(f, twin, time_ns);
        count(f, COUNT_fault_duplicated);
    }
}

static void let_go(struct port_fault *f, struct held *h)
{
    struct train *t = &f->train;
    t->path = &h->path;
    t->packets = 1;
    t->packet_bytes = roce_packet_bytes(h->h.bth.opcode, h->payload_bytes);
    t->total_bytes = t->packet_bytes;
    t->spans = h->payload_bytes != 0;
    t->span[0] = (struct span){h->payload, h->payload_bytes};
    t->packet[0] = (struct train_packet){
        .h = h->h, .payload_bytes = h->payload_bytes, .first_span = 0, .spans = t->spans};
    if (h->flip)
        f->inner->ops->train_flipped(f->inner, t, h->flip_bit);
    else
        f->inner->sink.train(&f->inner->sink, t);
    STAILQ_INSERT_HEAD(&f->unused, h, link);
}

static void fault_flush(struct port *p, uint64_t now_ns)
{
    struct port_fault *f = fault_of(p);
    struct held *h;
    while ((h = STAILQ_FIRST(&f->fresh)) != NULL) {
        STAILQ_REMOVE_HEAD(&f->fresh, link);
        decide(f, h, now_ns);
    }
    struct heap_node *n;
    while ((n = heap_first(&f->waiting)) != NULL && n->time_ns <= now_ns) {
        heap_remove(&f->waiting, n);
        let_go(f, (struct held *)((char *)n - offsetof(struct held, node)));
    }
    f->inner->ops->flush(f->inner, now_ns);
    atomic_store_explicit(&f->deadline_ns, n == NULL ? UINT64_MAX : n->time_ns,
                          memory_order_seq_cst);
}

static bool fault_writable(struct port *p)
{
    struct port_fault *f = fault_of(p);
    return f->inner->ops->writable(f->inner);
}

static void fault_train_flipped(struct port *p, const struct train *t, uint32_t bit)
{
    struct port_fault *f = fault_of(p);
    f->inner->ops->train_flipped(f->inner, t, bit);
}

static unsigned fault_receive(struct port *p, uint64_t now_ns, struct port_receiver *r,
                              unsigned max)
{
    struct port_fault *f = fault_of(p);
    return f->inner->ops->receive(f->inner, now_ns, r, max);
}

static int fault_fd(struct port *p)
{
    struct port_fault *f = fault_of(p);
    return f->inner->ops->fd(f->inner);
}

static uint64_t fault_deadline(struct port *p)
{
    struct port_fault *f = fault_of(p);
    uint64_t own = atomic_load_explicit(&f->deadline_ns, memory_order_seq_cst);
    uint64_t inner = f->inner->ops->deadline(f->inner);
    return own < inner ? own : inner;
}

static const char *fault_counter(struct port *p, unsigned index, uint64_t *value)
{
    static const char *const name[FAULT_COUNTER_COUNT] = {
#define X(n) #n,
        FAULT_COUNTERS(X)
#undef X
    };
    struct port_fault *f = fault_of(p);
    if (index >= FAULT_COUNTER_COUNT)
        return f->inner->ops->counter(f->inner, index - FAULT_COUNTER_COUNT, value);
    *value = atomic_load_explicit(&f->counter[index], memory_order_relaxed);
    return name[index];
}

static void fault_abandon(struct port *p)
{
    struct port_fault *f = fault_of(p);
    f->inner->ops->abandon(f->inner);
}

static void fault_free(struct port_fault *f)
{
    heap_fini(&f->waiting);
    free(f->pool);
    free(f);
}

static void fault_close(struct port *p)
{
    struct port_fault *f = fault_of(p);
    f->inner->ops->close(f->inner);
    fault_free(f);
}

static const struct port_ops fault_ops = {
    .flush = fault_flush,
    .writable = fault_writable,
    .train_flipped = fault_train_flipped,
    .receive = fault_receive,
    .fd = fault_fd,
    .deadline = fault_deadline,
    .counter = fault_counter,
    .abandon = fault_abandon,
    .close = fault_close,
};

int port_fault_create(const struct fault_spec *spec, struct port *inner, uint64_t now_ns,
                      struct port **out)
{
    struct port_fault *f = calloc(1, sizeof(*f));
    if (f == NULL)
        return -ENOMEM;
    f->port.ops = &fault_ops;
    f->port.sink.train = fault_train;
    if (inner->sink.room != NULL)
        f->port.sink.room = fault_room;
    f->inner = inner;
    f->spec = *spec;
    f->created_ns = now_ns;
    atomic_init(&f->deadline_ns, UINT64_MAX);
    rng_init(&f->rng, spec->seed);
    heap_init(&f->waiting);
    STAILQ_INIT(&f->unused);
    STAILQ_INIT(&f->fresh);
    f->pool = calloc(MAX_HELD, sizeof(*f->pool));
    if (f->pool == NULL || heap_grow(&f->waiting, MAX_HELD) != 0) {
        fault_free(f);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < MAX_HELD; i++)
        STAILQ_INSERT_TAIL(&f->unused, &f->pool[i], link);
    *out = &f->port;
    return 0;
}
