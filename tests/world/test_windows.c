/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_windows.c: memory windows over faulty links: two devices, two pairs of RC QPs, and at each
 * device slots of memory that nobody reaches but by its windows, of both types. Windows are bound
 * to a part of a slot, bound anew, invalidated by their owner or by a SEND of the peer, destroyed
 * under remote WRITEs; regions are deregistered at any time. Peers write by keys that are good, too
 * old, of another QP, without the right, or a byte too far. The network loses, copies, delays,
 * reorders and spoils. QPs that break are replaced.
 *
 * Whatever happens: from the moment at which the owner was told that a window is gone not a byte of
 * its slot changes until the next one is bound; what is written while it is bound is within its
 * bounds and of a request by its present key; a request that must fail does; what is said to be
 * written is; a region with a window bound to it stays.
 */
#include <errno.h>

#include "faulty.h"
#include "nic/mw.h"
#include "nic/nic.h"
#include "wire/iba.h"

enum {
    DEVICES = 2,
    QPS = 2,
    WINDOWS = 4, /* the last is of type 1 */
    SLOTS = 6,
    SLOT_BYTES = 3 * FAULTY_MTU,
    DEPTH = 8,
    STEPS = 3000,
    SEEDS = 120,
    TIMEOUT = 5,
    FILL = 0xcc,
    TAGS = 200, /* of bytes by binding: 1..200 */
};

enum kind { KIND_BIND, KIND_INVALIDATE, KIND_WRITE, KIND_SEND_INV };

/* A request that was posted. */
struct request {
    enum kind kind;
    bool bad; /* it must fail */
    unsigned window;
    uint32_t binding; /* the one that the window had, or gets */
    uint32_t offset, length;
};

struct window {
    struct mw *mw;
    enum mw_type type;
    int slot;         /* -1: none */
    bool bound;       /* told so, and nothing since that may have changed it */
    bool pending;     /* a request of the owner is under way */
    unsigned qp;      /* type 2: bound by */
    uint32_t binding; /* numbers all bindings */
    uint32_t offset, length, key, old_key;
    bool writable;
};

struct slot {
    struct mr *mr;
    int window; /* -1: closed, nothing may change it */
};

struct end {
    struct qp *qp;
    struct cq *cq;
    uint32_t sent, done;
    struct request request[DEPTH];
};

struct device {
    int which;
    struct nic *nic;
    struct pd *pd;
    struct mr *mr; /* of what is sent and received */
    struct end end[QPS];
    struct window window[WINDOWS];
    struct slot slot[SLOTS];
    uint8_t *memory, *area;
    struct nic_sink sink;
};

static struct {
    struct faulty net;
    struct device device[DEVICES];
    uint32_t bindings, written, refused, revoked, given_back, busy;
} w;

static bool chance(uint32_t percent)
{
    return faulty_chance(&w.net, percent);
}

static uint32_t below(uint32_t n)
{
    return rng_below(&w.net.rng, n);
}

static uint8_t tag(uint32_t binding)
{
    return (uint8_t)(1 + binding % TAGS);
}

static uint8_t *slot_at(struct device *d, unsigned s)
{
    return d->area + s * SLOT_BYTES;
}

/* Nothing is there but what the present window allows. */
static void check_slot(struct device *d, unsigned s)
{
    const uint8_t *at = slot_at(d, s);
    const struct window *v = d->slot[s].window < 0 ? NULL : &d->window[d->slot[s].window];
    for (uint32_t i = 0; i < SLOT_BYTES; i++) {
        bool inside = v != NULL && v->writable && i - v->offset < v->length;
        if (at[i] != FILL && !(inside && at[i] == tag(v->binding)))
            fail_msg("device %d, slot %u, byte %u is %u", d->which, s, i, at[i]);
    }
}

/* The owner knows that the window is gone, and uses the memory for something else. */
static void close_slot(struct device *d, struct window *v)
{
    if (v->slot >= 0) {
        check_slot(d, (unsigned)v->slot);
        memset(slot_at(d, (unsigned)v->slot), FILL, SLOT_BYTES);
        d->slot[v->slot].window = -1;
    }
    v->slot = -1;
    v->old_key = v->key;
    v->bound = v->pending = false;
}

static void take_train(struct nic_sink *sink, const struct train *t)
{
    struct device *d = (struct device *)((char *)sink - offsetof(struct device, sink));
    faulty_train(&w.net, !d->which, t);
}

static void check_written(const struct request *r, struct device *peer)
{
    const struct window *v = &peer->window[r->window];
    assert_false(r->bad);
    w.written++;
    if (v->slot < 0 || v->binding != r->binding)
        return; /* gone since */
    const uint8_t *at = slot_at(peer, (unsigned)v->slot);
    for (uint32_t i = r->offset; i < r->offset + r->length; i++)
        assert_int_equal(at[i], tag(r->binding));
}

static void take_sent(struct device *d, struct end *e, const struct nic_wc *wc)
{
    const struct request *r = &e->request[e->done % DEPTH];
    struct window *v = &d->window[r->window];
    bool good = wc->status == WC_SUCCESS;
    assert_int_equal(wc->wr_id, e->done++);
    if (r->kind == KIND_WRITE && good)
        check_written(r, &w.device[!d->which]);
    if (r->kind == KIND_SEND_INV && good)
        assert_false(r->bad);
    if ((r->kind == KIND_WRITE || r->kind == KIND_SEND_INV) && !good)
        w.refused++;
    if (!good || r->kind == KIND_WRITE || r->kind == KIND_SEND_INV || v->binding != r->binding)
        return;
    if (r->kind == KIND_BIND) {
        v->bound = true;
        v->pending = false;
    } else {
        close_slot(d, v);
    }
}

static void post_recv(struct device *d, struct end *e)
{
    struct nic_sge sge = {(uintptr_t)d->memory, 8, d->mr->key};
    struct nic_recv_wr wr = {.wr_id = UINT32_MAX, .sg_list = &sge, .num_sge = 1};
    assert_int_equal(wq_post_recv(e->qp, &wr), 0);
}

/* The peer has given a window back. */
static void take_received(struct device *d, struct end *e, const struct nic_wc *wc)
{
    if (wc->status != WC_SUCCESS)
        return;
    assert_true(wc->flags & WC_WITH_INV);
    for (unsigned i = 0; i < WINDOWS; i++) {
        struct window *v = &d->window[i];
        if (v->slot >= 0 && v->key == wc->imm_or_inv) {
            assert_int_equal(v->type, MW_TYPE_2);
            assert_ptr_equal(d->end[v->qp].qp, e->qp);
            close_slot(d, v);
            w.given_back++;
        }
    }
    post_recv(d, e);
}

static void poll_all(struct device *d)
{
    struct nic_wc wc;
    struct nic_event ev;
    for (unsigned q = 0; q < QPS; q++)
        while (cq_poll(d->end[q].cq, 1, &wc) == 1) {
            if (wc.wr_id == UINT32_MAX)
                take_received(d, &d->end[q], &wc);
            else
                take_sent(d, &d->end[q], &wc);
        }
    while (event_next(d->nic, &ev)) {
    }
}

static void arrives(int to, const struct rx_packet *p)
{
    nic_input(w.device[to].nic, w.net.now_ns, p, 1);
    poll_all(&w.device[to]);
}

static void connect_end(struct device *d, unsigned q, uint32_t psn, uint32_t peer_psn)
{
    struct qp *qp = d->end[q].qp;
    struct nic_qp_attr attr = {
        .access_flags = ACCESS_REMOTE_WRITE,
        .dest_qpn = w.device[!d->which].end[q].qp->qpn,
        .rq_psn = peer_psn,
        .sq_psn = psn,
        .timeout = TIMEOUT,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .min_rnr_timer = 1,
        .max_rd_atomic = 1,
        .max_dest_rd_atomic = 1,
    };
    faulty_connect(qp, d->which, attr);
    for (unsigned i = 0; i < DEPTH; i++)
        post_recv(d, &d->end[q]);
}

static void create_end(struct device *d, unsigned q)
{
    struct end *e = &d->end[q];
    struct qp_init init = {
        .type = QP_TYPE_RC,
        .pd = d->pd,
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .sq_sig_all = true,
        .cap = {DEPTH, DEPTH, 1, 1, 0}
    };
    assert_int_equal(qp_create(d->nic, &init, &e->qp), 0);
    e->sent = e->done = 0;
}

static void connect_pair(unsigned q)
{
    uint32_t psn[DEVICES] = {below(1 << 24), below(1 << 24)};
    for (int i = 0; i < DEVICES; i++)
        create_end(&w.device[i], q);
    for (int i = 0; i < DEVICES; i++)
        connect_end(&w.device[i], q, psn[i], psn[!i]);
}

static void window_create(struct device *d, unsigned i)
{
    struct window *v = &d->window[i];
    *v = (struct window){.type = i == WINDOWS - 1 ? MW_TYPE_1 : MW_TYPE_2, .slot = -1};
    assert_int_equal(mw_create(d->pd, v->type, &v->mw), 0);
    v->key = v->old_key = mw_key(v->mw);
}

/* When mw_revoke is back not a byte lands any more. */
static void window_destroy(struct device *d, unsigned i)
{
    mw_revoke(d->window[i].mw);
    close_slot(d, &d->window[i]);
    mw_free(d->window[i].mw);
    w.revoked++;
}

/* A QP that has broken, and its partner. What is bound to it goes with it. */
static void replace_pair(unsigned q)
{
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        faulty_qp_destroy(d->end[q].qp);
        for (unsigned k = 0; k < WINDOWS; k++) {
            struct window *v = &d->window[k];
            if (v->slot < 0 || v->qp != q)
                continue;
            if (v->type == MW_TYPE_2) {
                close_slot(d, v);
                v->key = v->old_key = mw_key(v->mw);
            } else if (v->pending) { /* nobody knows */
                window_destroy(d, k);
                window_create(d, k);
            }
        }
    }
    connect_pair(q);
}

static void run_moment(void)
{
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        while (nic_output(d->nic, w.net.now_ns, &d->sink, 1 + below(3)) && chance(80)) {
        }
    }
    faulty_moment(&w.net, arrives);
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        if (nic_deadline(d->nic) <= w.net.now_ns)
            nic_advance(d->nic, w.net.now_ns);
        poll_all(d);
        for (unsigned s = 0; s < SLOTS; s++)
            check_slot(d, s);
    }
    for (unsigned q = 0; q < QPS; q++)
        if (w.device[0].end[q].qp->state == QP_STATE_ERR ||
            w.device[1].end[q].qp->state == QP_STATE_ERR) {
            if (chance(10)) /* a while later, so that the other side gets its part */
                replace_pair(q);
        }
}

static bool post(struct device *d, unsigned q, struct nic_send_wr *wr, struct request r)
{
    struct end *e = &d->end[q];
    if (e->sent - e->done == DEPTH || e->qp->state != QP_STATE_RTS)
        return false;
    wr->wr_id = e->sent;
    wr->flags = WR_SIGNALED;
    assert_int_equal(wq_post_send(e->qp, wr), 0);
    e->request[e->sent++ % DEPTH] = r;
    return true;
}

/* To a slot that has none. A window of type 1 that is bound moves. */
static void post_bind(struct device *d, unsigned i)
{
    struct window *v = &d->window[i];
    unsigned s = below(SLOTS), q = below(QPS);
    if (v->pending || v->slot >= 0 || d->slot[s].window >= 0)
        return;
    uint32_t offset = below(SLOT_BYTES / 2), length = 1 + below(SLOT_BYTES / 2);
    bool writable = !chance(10);
    uint32_t key = (v->key & 0xffffff00) | ((v->key + 1) & 0xff);
    struct nic_send_wr wr = {
        .opcode = WR_BIND_MW,
        .rkey = key,
        .imm_or_inv = d->slot[s].mr->key,
        .remote_addr = (uintptr_t)slot_at(d, s) + offset,
        .compare_add = length,
        .swap = writable ? ACCESS_REMOTE_WRITE : ACCESS_REMOTE_READ,
    };
    uint32_t binding = w.bindings + 1;
    if (!post(d, q, &wr, (struct request){.kind = KIND_BIND, .window = i, .binding = binding}))
        return;
    check_slot(d, s);
    w.bindings = v->binding = binding;
    v->slot = (int)s;
    v->pending = true;
    v->qp = q;
    v->offset = offset;
    v->length = length;
    v->writable = writable;
    v->key = key;
    d->slot[s].window = (int)i;
}

static void post_invalidate(struct device *d, unsigned i)
{
    struct window *v = &d->window[i];
    if (!v->bound || v->pending || v->type != MW_TYPE_2)
        return;
    struct nic_send_wr wr = {.opcode = WR_LOCAL_INV, .imm_or_inv = v->key};
    struct request r = {.kind = KIND_INVALIDATE, .window = i, .binding = v->binding};
    if (post(d, v->qp, &wr, r))
        v->pending = true;
}

/* By the key of a window of the peer, mostly a good one. */
static void post_write(struct device *d)
{
    struct device *peer = &w.device[!d->which];
    unsigned i = below(WINDOWS);
    struct window *v = &peer->window[i];
    if (!v->bound)
        return;
    struct request r = {.kind = KIND_WRITE, .window = i, .binding = v->binding};
    unsigned q = v->type == MW_TYPE_2 ? v->qp : below(QPS);
    r.offset = v->offset + below(v->length);
    r.length = 1 + below(v->offset + v->length - r.offset);
    r.bad = !v->writable;
    uint32_t key = v->key;
    if (chance(2) && v->type == MW_TYPE_2) {
        q = !q;
        r.bad = true;
    } else if (chance(2) && v->old_key != key) {
        key = v->old_key;
        r.bad = true;
    } else if (chance(2)) {
        r.length = v->offset + v->length - r.offset + 1;
        r.bad = true;
    } else if (r.bad && !chance(10)) {
        return;
    }
    uint8_t *from = d->memory + SLOT_BYTES * (1 + q * DEPTH + d->end[q].sent % DEPTH);
    struct nic_sge sge = {(uintptr_t)from, r.length, d->mr->key};
    struct nic_send_wr wr = {
        .opcode = WR_RDMA_WRITE,
        .sg_list = &sge,
        .num_sge = 1,
        .rkey = key,
        .remote_addr = (uintptr_t)slot_at(peer, (unsigned)v->slot) + r.offset,
    };
    if (d->end[q].sent - d->end[q].done == DEPTH)
        return;
    memset(from, tag(v->binding), r.length);
    post(d, q, &wr, r);
}

/* The peer is done with a window. */
static void post_send_inv(struct device *d)
{
    struct device *peer = &w.device[!d->which];
    unsigned i = below(WINDOWS);
    const struct window *v = &peer->window[i];
    if (!v->bound || (v->type == MW_TYPE_1 && !chance(3)))
        return;
    struct nic_sge sge = {(uintptr_t)d->memory, 4, d->mr->key};
    bool old = chance(5) && v->old_key != v->key;
    struct nic_send_wr wr = {.opcode = WR_SEND_WITH_INV,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .imm_or_inv = old ? v->old_key : v->key};
    bool bad = old || v->type == MW_TYPE_1;
    post(d, v->qp, &wr, (struct request){.kind = KIND_SEND_INV, .bad = bad, .window = i});
}

/* Type 1: bound to nothing by its owner. */
static void post_unbind(struct device *d)
{
    struct window *v = &d->window[WINDOWS - 1];
    if (!v->bound || v->pending)
        return;
    uint32_t key = (v->key & 0xffffff00) | ((v->key + 1) & 0xff);
    struct nic_send_wr wr = {.opcode = WR_BIND_MW, .rkey = key};
    unsigned q = below(QPS);
    struct request r = {.kind = KIND_INVALIDATE, .window = WINDOWS - 1, .binding = v->binding};
    if (!post(d, q, &wr, r))
        return;
    v->pending = true;
    v->qp = q;
    v->old_key = v->key;
    v->key = key;
}

static void reg_slot(struct device *d, unsigned s)
{
    assert_int_equal(mem_reg(d->pd, slot_at(d, s), SLOT_BYTES, (uintptr_t)slot_at(d, s),
                             ACCESS_LOCAL_WRITE | ACCESS_MW_BIND, &d->slot[s].mr),
                     0);
    d->slot[s].window = -1;
}

/* A region goes only when no window is bound to it. */
static void dereg_slot(struct device *d, unsigned s)
{
    int i = d->slot[s].window;
    const struct window *v = i < 0 ? NULL : &d->window[i];
    int err = mem_mr_revoke(d->slot[s].mr);
    if (v == NULL)
        assert_int_equal(err, 0);
    else if (v->bound && !v->pending && d->end[v->qp].qp->state == QP_STATE_RTS)
        assert_true(err == -EBUSY || (v->type == MW_TYPE_2 && err == 0));
    w.busy += err == -EBUSY;
    if (err != 0)
        return;
    mem_mr_free(d->slot[s].mr);
    if (v != NULL) /* given back, as is not told yet, or not yet bound: it cannot be any more */
        check_slot(d, s);
    reg_slot(d, s);
    d->slot[s].window = i;
}

static void act(void)
{
    struct device *d = &w.device[below(DEVICES)];
    unsigned i = below(WINDOWS);
    switch (below(16)) {
    case 0:
    case 1:
    case 2:
        post_bind(d, i);
        break;
    case 3:
        post_invalidate(d, i);
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        post_write(d);
        break;
    case 8:
        if (chance(40))
            post_send_inv(d);
        break;
    case 9:
        if (chance(10)) {
            window_destroy(d, i);
            window_create(d, i);
        }
        break;
    case 10:
        post_unbind(d);
        break;
    case 11:
        if (chance(10))
            dereg_slot(d, below(SLOTS));
        break;
    default:
        run_moment();
        break;
    }
}

enum { MEMORY_BYTES = SLOT_BYTES * (1 + QPS * DEPTH) };

static void world_create(uint64_t seed)
{
    memset(&w, 0, sizeof(w));
    faulty_begin(&w.net, seed, &faulty_usual);
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        struct nic_config config = {.seed = seed + (uint64_t)i};
        d->which = i;
        d->sink.train = take_train;
        d->memory = calloc(1, MEMORY_BYTES);
        d->area = malloc(SLOTS * SLOT_BYTES);
        assert_non_null(d->memory);
        assert_non_null(d->area);
        memset(d->area, FILL, SLOTS * SLOT_BYTES);
        faulty_device_create(i, &config, d->memory, MEMORY_BYTES, &d->nic, &d->pd, &d->mr);
        for (unsigned s = 0; s < SLOTS; s++)
            reg_slot(d, s);
        for (unsigned k = 0; k < WINDOWS; k++)
            window_create(d, k);
        for (unsigned q = 0; q < QPS; q++)
            assert_int_equal(cq_create(d->nic, 4 * DEPTH, NULL, &d->end[q].cq), 0);
    }
    for (unsigned q = 0; q < QPS; q++)
        connect_pair(q);
}

static void world_destroy(void)
{
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &w.device[i];
        for (unsigned k = 0; k < WINDOWS; k++)
            window_destroy(d, k);
        for (unsigned q = 0; q < QPS; q++) {
            faulty_qp_destroy(d->end[q].qp);
            assert_int_equal(cq_destroy(d->end[q].cq), 0);
        }
        for (unsigned s = 0; s < SLOTS; s++) {
            assert_int_equal(mem_mr_revoke(d->slot[s].mr), 0);
            mem_mr_free(d->slot[s].mr);
        }
        faulty_device_destroy(d->nic, d->pd, d->mr);
        free(d->memory);
        free(d->area);
    }
    free(w.net.flight);
}

/* The faults stop: what is under way finishes, or its QP has broken. */
static void finish(void)
{
    bool under_way = true;
    w.net.good = true;
    for (unsigned i = 0; i < 100000 && under_way; i++) {
        run_moment();
        under_way = false;
        for (int k = 0; k < DEVICES; k++)
            for (unsigned q = 0; q < QPS; q++)
                under_way |= w.device[k].end[q].sent != w.device[k].end[q].done;
    }
    assert_false(under_way);
}

static void windows__nothing_lands_after_revocation(void **state)
{
    (void)state;
    uint32_t written = 0, refused = 0, revoked = 0, given_back = 0, busy = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        world_create(seed);
        for (unsigned i = 0; i < STEPS; i++)
            act();
        finish();
        written += w.written;
        refused += w.refused;
        revoked += w.revoked;
        given_back += w.given_back;
        busy += w.busy;
        world_destroy();
    }
    /* It did something. */
    assert_true(written > 50 * SEEDS && refused > 2 * SEEDS && revoked > SEEDS &&
                given_back > SEEDS && busy > SEEDS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows__nothing_lands_after_revocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
