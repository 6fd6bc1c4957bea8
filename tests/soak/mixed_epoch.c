/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mixed_epoch.c: the traffic of a lane of the mixed soak, and what must come of it.
 */
#include "mixed.h"

#include <string.h>

enum {
    ROUNDS = 40, /* of windows */
    FLIGHT = 12, /* WRs outstanding */
    UD_MAX_BYTES = 1024,
    HANG_MS = 60000,
    QUIET_MS = 300,      /* then no more is to come, if there was enough; */
    PATIENCE_MS = 20000, /* the machine may be busy if there was not */
    FADD_STEP = 3,
    SEND_ID = 1 << 16, /* in a wr_id */
    QKEY = 0x1234,
};

/* What message number n of one side is: both sides know. */
struct message {
    enum ibv_wr_opcode opcode;
    uint32_t bytes;
    uint64_t seed;
};

static struct message message_of(const struct lane *l, bool from_a, uint32_t n)
{
    static const enum ibv_wr_opcode rc[] = {IBV_WR_SEND,
                                            IBV_WR_SEND_WITH_IMM,
                                            IBV_WR_RDMA_WRITE_WITH_IMM,
                                            IBV_WR_RDMA_READ,
                                            IBV_WR_ATOMIC_FETCH_AND_ADD,
                                            IBV_WR_SEND,
                                            IBV_WR_RDMA_WRITE_WITH_IMM};
    uint64_t r = mix(m.seed ^ l->epoch << 24 ^ (uint64_t)l->kind << 20 ^ from_a) + n;
    struct message out = {.seed = mix(r)};
    bool reliable = l->kind == LANE_RC || l->kind == LANE_XRC;
    uint32_t most = reliable             ? SLOT_BYTES
                    : l->kind == LANE_UC ? UNRELIABLE_MAX_BYTES
                                         : UD_MAX_BYTES;
    uint64_t choice = mix(out.seed);
    out.opcode = reliable ? rc[choice % 7] : rc[choice % 2];
    out.bytes = 8 + (uint32_t)(mix(choice) % (most - 7));
    if (out.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        out.bytes = 8;
    return out;
}

static uint8_t *slot(struct lane *l, unsigned index)
{
    return l->memory + (size_t)index * SLOT_BYTES;
}

static uint64_t peer_slot(const struct lane *l, unsigned index)
{
    return l->peer.base + (uint64_t)index * SLOT_BYTES;
}

/* What peers read, by number of the epoch. */
static uint64_t constant_seed(const struct lane *l, bool of_a)
{
    return mix(m.seed ^ l->epoch << 8 ^ of_a);
}

static bool takes_receive(enum ibv_wr_opcode opcode)
{
    return opcode != IBV_WR_RDMA_READ && opcode != IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void post(struct lane *l, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    int status = ibv_post_send(l->qp, wr, &bad);
    if (status != 0)
        violation(l, "post_send: %s", strerror(status));
}

/* Message n; order: how many before it took a receive. */
static void send_message(struct lane *l, uint32_t n, uint32_t order)
{
    struct message msg = message_of(l, l->is_a, n);
    uint8_t *from = slot(l, AT_SEND + n % SLOTS);
    struct ibv_sge sge = {(uintptr_t)from, msg.bytes, l->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = SEND_ID | n,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = msg.opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .imm_data = n};
    pattern_fill(msg.seed, from, msg.bytes);
    wr.wr.rdma.rkey = l->peer.rkey;
    if (msg.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        wr.wr.rdma.remote_addr = peer_slot(l, AT_TARGET + order % (SLOTS - 2));
    else if (msg.opcode == IBV_WR_RDMA_READ)
        wr.wr.rdma.remote_addr = peer_slot(l, AT_TARGET + SLOTS - 1);
    if (msg.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = peer_slot(l, AT_TARGET + SLOTS - 2);
        wr.wr.atomic.compare_add = FADD_STEP;
        wr.wr.atomic.rkey = l->peer.rkey;
    }
    if (l->kind == LANE_XRC)
        wr.qp_type.xrc.remote_srqn = l->peer.srq_number;
    if (l->kind == LANE_UD) {
        wr.wr.ud.ah = l->ah;
        wr.wr.ud.remote_qpn = l->peer.qpn;
        wr.wr.ud.remote_qkey = QKEY;
    }
    post(l, &wr);
}

static void check_sent(struct lane *l, const struct ibv_wc *wc, uint32_t n, uint64_t *added)
{
    struct message msg = message_of(l, l->is_a, n);
    uint8_t *at = slot(l, AT_SEND + n % SLOTS);
    uint64_t old;
    if (wc->wr_id != (SEND_ID | n))
        violation(l, "send %u, not %u, is complete", (unsigned)(wc->wr_id & (SEND_ID - 1)), n);
    if (msg.opcode == IBV_WR_RDMA_READ)
        pattern_check(l, constant_seed(l, !l->is_a), at, msg.bytes);
    if (msg.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        memcpy(&old, at, sizeof(old));
        if (old != *added)
            violation(l, "the cell was %llu, not %llu", (unsigned long long)old,
                      (unsigned long long)*added);
        *added += FADD_STEP;
    }
    l->sent++;
}

/* Message n came; order as above. */
static void check_received(struct lane *l, const struct ibv_wc *wc, uint32_t n, uint32_t order)
{
    struct message msg = message_of(l, !l->is_a, n);
    bool write = msg.opcode == IBV_WR_RDMA_WRITE_WITH_IMM, ud = l->kind == LANE_UD;
    enum ibv_wc_opcode opcode = write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
    const uint8_t *at = write ? slot(l, AT_TARGET + order % (SLOTS - 2))
                              : lane_recv_at(l, (unsigned)wc->wr_id) + (ud ? GRH_BYTES : 0);
    if (wc->opcode != opcode || wc->byte_len != msg.bytes + (ud ? GRH_BYTES : 0))
        violation(l, "message %u: opcode %d, %u bytes, not %d and %u", n, (int)wc->opcode,
                  wc->byte_len, (int)opcode, msg.bytes);
    bool imm = msg.opcode != IBV_WR_SEND;
    if (imm != ((wc->wc_flags & IBV_WC_WITH_IMM) != 0) || (imm && wc->imm_data != n))
        violation(l, "message %u: immediate data %u", n, wc->imm_data);
    pattern_check(l, msg.seed, at, msg.bytes);
    l->received++;
    l->bytes += msg.bytes;
}

static void must_be_good(const struct lane *l, const struct ibv_wc *wc)
{
    if (wc->status != IBV_WC_SUCCESS)
        violation(l, "wr_id %llx: %s", (unsigned long long)wc->wr_id,
                  ibv_wc_status_str(wc->status));
}

static uint32_t next_with_receive(const struct lane *l, uint32_t n)
{
    while (n < MESSAGES && !takes_receive(message_of(l, !l->is_a, n).opcode))
        n++;
    return n;
}

/* All that was received is known to be checked before either side goes on. */
static void both_are_done(struct lane *l)
{
    uint8_t done = 1;
    tell(l, &done, sizeof(done));
    hear(l, &done, sizeof(done));
}

/* RC and XRC: each message once, whole, in order. */
void epoch_reliable(struct lane *l)
{
    uint32_t posted = 0, done = 0, order_out = 0, order_in = 0;
    uint64_t added = 0;
    pattern_fill(constant_seed(l, l->is_a), slot(l, AT_TARGET + SLOTS - 1), SLOT_BYTES);
    memset(slot(l, AT_TARGET + SLOTS - 2), 0, 8);
    both_are_done(l);
    uint32_t expected = next_with_receive(l, 0);
    while (done < MESSAGES || expected < MESSAGES) {
        struct ibv_wc wc;
        while (posted < MESSAGES && posted - done < FLIGHT) {
            send_message(l, posted, order_out);
            order_out += takes_receive(message_of(l, l->is_a, posted++).opcode);
        }
        if (!lane_poll(l, &wc, HANG_MS))
            violation(l, "%u of %u sent, %u received, and nothing happens", done, posted, expected);
        must_be_good(l, &wc);
        if (wc.wr_id & SEND_ID) {
            check_sent(l, &wc, done++, &added);
        } else {
            if (expected >= MESSAGES)
                violation(l, "a message too many");
            check_received(l, &wc, expected, order_in++);
            expected = next_with_receive(l, expected + 1);
            lane_post_recv(l, (unsigned)wc.wr_id);
        }
    }
    both_are_done(l);
}

/* Which message is it? It says so: in its first word, or as immediate data. */
static uint32_t number_of(struct lane *l, const struct ibv_wc *wc)
{
    const uint8_t *at = lane_recv_at(l, (unsigned)wc->wr_id) + (l->kind == LANE_UD ? GRH_BYTES : 0);
    if (wc->wc_flags & IBV_WC_WITH_IMM)
        return wc->imm_data;
    for (uint32_t n = 0; n < MESSAGES; n++) {
        uint64_t word = mix(message_of(l, !l->is_a, n).seed);
        if (memcmp(at, &word, sizeof(word)) == 0)
            return n;
    }
    violation(l, "a message that nobody sent");
}

struct unreliable {
    uint32_t next;            /* UC: none before it comes any more */
    uint8_t copies[MESSAGES]; /* UD */
    uint32_t received;
};

static void take_unreliable(struct lane *l, struct unreliable *u, const struct ibv_wc *wc)
{
    uint32_t n = number_of(l, wc);
    if (n >= MESSAGES || (l->kind == LANE_UC && n < u->next))
        violation(l, "message %u comes behind %u", n, u->next);
    if (l->kind == LANE_UD && (++u->copies[n] > 2 || wc->src_qp != l->peer.qpn))
        violation(l, "message %u, copy %u, from %u", n, u->copies[n], wc->src_qp);
    check_received(l, wc, n, 0);
    u->next = n + 1;
    u->received++;
}

/* UC and UD: whole or not at all; UC: once at most and in order. Enough must come. */
void epoch_unreliable(struct lane *l)
{
    const uint32_t enough = MESSAGES * (l->kind == LANE_UC ? 60 : 75) / 100;
    struct unreliable u = {0};
    struct ibv_wc wc;
    uint32_t posted = 0, done = 0;
    uint64_t none = 0;
    while (done < MESSAGES) {
        while (posted < MESSAGES && posted - done < FLIGHT)
            send_message(l, posted++, 0);
        if (!lane_poll(l, &wc, HANG_MS))
            violation(l, "%u of %u sent, and nothing happens", done, posted);
        must_be_good(l, &wc);
        if (wc.wr_id & SEND_ID) {
            check_sent(l, &wc, done++, &none);
        } else {
            take_unreliable(l, &u, &wc);
        }
    }
    both_are_done(l);
    while (lane_poll(l, &wc, u.received < enough ? PATIENCE_MS : QUIET_MS)) {
        must_be_good(l, &wc);
        take_unreliable(l, &u, &wc);
    }
    /* 5 % of the packets are lost, and UC loses a message by each of up to 4, or one that is late.
     */
    if (u.received < enough)
        violation(l, "only %u of %u came", u.received, MESSAGES);
    both_are_done(l);
}

/* What the owner of a window says. */
struct offer {
    uint32_t round, rkey;
    uint64_t addr;
};

static uint64_t window_seed(const struct lane *l, bool of_a, uint32_t round)
{
    return mix(m.seed ^ l->epoch << 16 ^ (uint64_t)of_a << 12 ^ round);
}

/* Binds the window anew and offers it; the two windows of a lane take turns. */
static uint32_t offer_window(struct lane *l, uint32_t round)
{
    uint8_t *at = slot(l, AT_TARGET + round % 2), *say = slot(l, AT_SEND + round % 4);
    struct ibv_send_wr bind = {.wr_id = SEND_ID | 1, .opcode = IBV_WR_BIND_MW};
    uint32_t rkey = ibv_inc_rkey(l->mw->rkey);
    bind.send_flags = IBV_SEND_SIGNALED;
    bind.bind_mw.mw = l->mw;
    bind.bind_mw.rkey = rkey;
    bind.bind_mw.bind_info =
        (struct ibv_mw_bind_info){l->mr, (uintptr_t)at, WINDOW_BYTES, IBV_ACCESS_REMOTE_WRITE};
    memset(at, 0xee, WINDOW_BYTES);
    post(l, &bind);
    l->mw->rkey = rkey;
    struct offer o = {round, rkey, (uintptr_t)at};
    memcpy(say, &o, sizeof(o));
    struct ibv_sge sge = {(uintptr_t)say, sizeof(o), l->mr->lkey};
    struct ibv_send_wr send = {.wr_id = SEND_ID | 2,
                               .sg_list = &sge,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED};
    post(l, &send);
    return rkey;
}

/* Writes to the peer's window, and gives it back with the key revoked. */
static void use_window(struct lane *l, const struct offer *o)
{
    uint8_t *from = slot(l, AT_RESULT - 2), *say = slot(l, AT_SEND + 8 + o->round % 4);
    pattern_fill(window_seed(l, !l->is_a, o->round), from, WINDOW_BYTES);
    struct ibv_sge sge = {(uintptr_t)from, WINDOW_BYTES, l->mr->lkey};
    struct ibv_send_wr write = {.wr_id = SEND_ID | 3,
                                .sg_list = &sge,
                                .num_sge = 1,
                                .opcode = IBV_WR_RDMA_WRITE,
                                .send_flags = IBV_SEND_SIGNALED};
    write.wr.rdma.remote_addr = o->addr;
    write.wr.rdma.rkey = o->rkey;
    post(l, &write);
    memcpy(say, o, sizeof(*o));
    struct ibv_sge back = {(uintptr_t)say, sizeof(*o) / 2, l->mr->lkey};
    struct ibv_send_wr give = {.wr_id = SEND_ID | 4,
                               .sg_list = &back,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND_WITH_INV,
                               .send_flags = IBV_SEND_SIGNALED,
                               .invalidate_rkey = o->rkey};
    post(l, &give);
}

static void check_window(struct lane *l, const struct ibv_wc *wc, uint32_t round, uint32_t rkey)
{
    if ((wc->wc_flags & IBV_WC_WITH_INV) == 0 || wc->invalidated_rkey != rkey)
        violation(l, "round %u: key %x was to go, %x went", round, rkey, wc->invalidated_rkey);
    pattern_check(l, window_seed(l, l->is_a, round), slot(l, AT_TARGET + round % 2), WINDOW_BYTES);
    /* What is written from here on nobody has allowed. */
    memset(slot(l, AT_TARGET + round % 2), 0xdd, WINDOW_BYTES);
    l->received++;
    l->bytes += WINDOW_BYTES;
}

static void check_untouched(struct lane *l, uint32_t round)
{
    const uint8_t *at = slot(l, AT_TARGET + round % 2);
    for (uint32_t i = 0; i < WINDOW_BYTES; i++)
        if (at[i] != 0xdd)
            violation(l, "byte %u of a window that was revoked in round %u has changed", i, round);
}

/* The last act of an epoch, one side's: a key that has gone. */
static void use_revoked(struct lane *l, const struct offer *last)
{
    struct ibv_wc wc;
    if (l->is_a == (l->epoch % 2 == 0)) {
        use_window(l, last);
        do {
            if (!lane_poll(l, &wc, HANG_MS))
                violation(l, "nothing is said of a Write to a window that has gone");
        } while ((wc.wr_id & SEND_ID) == 0);
        /* Or the NAK was lost: who sent it is in the error state and says it once. */
        if (wc.status != IBV_WC_REM_ACCESS_ERR && wc.status != IBV_WC_RETRY_EXC_ERR)
            violation(l, "a Write to a window that has gone: %s", ibv_wc_status_str(wc.status));
    }
    both_are_done(l);
    check_untouched(l, ROUNDS - 1);
}

/* Both sides offer windows to one another, over one RC connection. */
void epoch_windows(struct lane *l)
{
    uint32_t round = 0, used = 0, rkey = offer_window(l, 0);
    unsigned outstanding = 2;
    struct offer o = {0};
    while (round < ROUNDS || used < ROUNDS || outstanding != 0) {
        struct ibv_wc wc;
        if (!lane_poll(l, &wc, HANG_MS))
            violation(l, "round %u, %u used, %u outstanding: nothing happens", round, used,
                      outstanding);
        must_be_good(l, &wc);
        if (wc.wr_id & SEND_ID) {
            outstanding--;
            l->sent++;
            continue;
        }
        if (wc.byte_len == sizeof(o)) {
            memcpy(&o, lane_recv_at(l, (unsigned)wc.wr_id), sizeof(o));
            if (o.round != used++)
                violation(l, "round %u is offered, not %u", o.round, used - 1);
            lane_post_recv(l, (unsigned)wc.wr_id);
            use_window(l, &o);
            outstanding += 2;
        } else {
            check_window(l, &wc, round, rkey);
            lane_post_recv(l, (unsigned)wc.wr_id);
            if (round > 0)
                check_untouched(l, round);
            if (++round < ROUNDS) {
                rkey = offer_window(l, round);
                outstanding += 2;
            }
        }
    }
    both_are_done(l);
    use_revoked(l, &o);
}
