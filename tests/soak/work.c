/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work.c: the operations of the soak driver: what is posted next, and whether what completed and
 * what arrived is right. All bytes ever sent are pieces of the same noise, which both processes
 * make from the seed; which piece, how long and by which operation follows from the sequence
 * number.
 */
#include "soak.h"

#include <endian.h>
#include <string.h>

const char *const kind_name[KINDS] = {
    [KIND_SEND] = "send",           [KIND_SEND_IMM] = "send_imm",
    [KIND_WRITE_IMM] = "write_imm", [KIND_WRITE] = "write",
    [KIND_READ] = "read",           [KIND_READ_BACK] = "read_back",
    [KIND_FETCH_ADD] = "fetch_add", [KIND_SHARED_ADD] = "shared_add",
    [KIND_CMP_SWP] = "cmp_swp",     [KIND_CREDIT] = "credit",
};

enum { LANE_WORDS = 64, WORD_BYTES = 8, CAS_MISS = 1 << 20 };

/* Layout: noise, the words of the lanes, the slots of the lanes, receive buffers. */
static uint64_t at_words(unsigned lane)
{
    return NOISE_BYTES + (uint64_t)lane * LANE_WORDS * WORD_BYTES;
}

static uint64_t at_slots(unsigned lane)
{
    uint64_t slots = WRITE_SLOTS + IMM_SLOTS + DEPTH;
    return at_words(MAX_LANES + 1) + lane * slots * SLOT_BYTES;
}

uint64_t at_noise(uint64_t seed)
{
    return mix(seed ^ 0xa11) % (NOISE_BYTES - SLOT_BYTES);
}

uint64_t at_write_slot(unsigned lane, unsigned slot)
{
    return at_slots(lane) + (uint64_t)slot * SLOT_BYTES;
}

uint64_t at_imm_slot(unsigned lane, unsigned slot)
{
    return at_write_slot(lane, WRITE_SLOTS + slot);
}

uint64_t at_read(unsigned lane, unsigned place)
{
    return at_write_slot(lane, WRITE_SLOTS + IMM_SLOTS + place);
}

uint64_t at_result(unsigned lane, unsigned place)
{
    return at_words(lane) + (uint64_t)place * WORD_BYTES;
}

uint64_t at_fadd(unsigned lane)
{
    return at_result(lane, DEPTH);
}

uint64_t at_cas(unsigned lane)
{
    return at_result(lane, DEPTH + 1);
}

uint64_t at_credit(unsigned lane)
{
    return at_result(lane, DEPTH + 2);
}

uint64_t at_shared(void)
{
    return at_words(MAX_LANES);
}

uint64_t at_recv(unsigned index)
{
    return at_slots(s.lanes) + (uint64_t)index * SLOT_BYTES;
}

uint64_t memory_size(unsigned lanes)
{
    return at_slots(lanes) + (SRQ_RECVS + (uint64_t)lanes * LANE_RECVS) * SLOT_BYTES;
}

/* 0 bytes to 1 MiB, each power of two as likely as another. */
static uint32_t bytes_of(uint64_t seed)
{
    uint64_t r = mix(seed ^ 0xb17e5);
    unsigned bits = (unsigned)(r % 22);
    if (bits == 0)
        return 0;
    uint32_t top = 1u << (bits - 1);
    return top == SLOT_BYTES ? top : top + (uint32_t)((r >> 32) % top);
}

/* Of message `number` that the side `from_a` sends in this epoch. Never 0. */
static uint64_t message_seed(const struct lane *l, bool from_a, uint64_t number)
{
    return mix(s.seed ^ mix(l->index * 4u + (from_a ? 1u : 2u)) ^ mix(l->epoch << 32 ^ number)) | 1;
}

static enum kind message_kind(uint64_t seed)
{
    static const enum kind kind[] = {KIND_SEND, KIND_SEND_IMM, KIND_WRITE_IMM};
    return kind[mix(seed ^ 0x4b1d) % 3];
}

void work_begin(struct lane *l)
{
    memset(l->op, 0, sizeof(l->op));
    l->posted = l->retired = 0;
    l->messages_posted = l->messages_acked = l->imms_posted = 0;
    l->messages_received = l->imms_received = l->credits_told = 0;
    memset(l->written, 0, sizeof(l->written));
    memset(l->writing, 0, sizeof(l->writing));
    *word_at(at_credit(l->index)) = 0;
}

bool work_outstanding(const struct lane *l)
{
    return l->retired != l->posted;
}

/* Is the WR of this kind possible now? Fills op. */
static bool choose_message(struct lane *l, struct op *op)
{
    op->seed = message_seed(l, s.is_a, l->messages_posted);
    op->kind = message_kind(op->seed);
    op->bytes = bytes_of(op->seed);
    if (op->kind != KIND_WRITE_IMM)
        return true;
    uint64_t checked = __atomic_load_n(word_at(at_credit(l->index)), __ATOMIC_ACQUIRE);
    if (checked > l->imms_posted)
        violation(l, "credit of %llu, %llu are possible", (unsigned long long)checked,
                  (unsigned long long)l->imms_posted);
    return l->imms_posted - checked < IMM_SLOTS;
}

static bool slot_busy(const struct lane *l, unsigned slot)
{
    for (unsigned i = 0; i < DEPTH; i++) {
        const struct op *o = &l->op[i];
        if (o->outstanding && (o->kind == KIND_WRITE || o->kind == KIND_READ_BACK) &&
            o->expect == slot)
            return true;
    }
    return false;
}

static bool choose(struct lane *l, struct op *op)
{
    uint64_t r = random_next();
    op->seed = r | 1;
    op->expect = 0;
    if (l->credits_told + 1 < l->imms_received ||
        (l->credits_told < l->imms_received && r % 4 == 0)) {
        op->kind = KIND_CREDIT;
        op->bytes = WORD_BYTES;
        return true;
    }
    unsigned which = (unsigned)(r >> 8) % 16;
    if (which < 7 && choose_message(l, op))
        return true;
    op->seed = r | 1;
    op->bytes = bytes_of(op->seed);
    unsigned slot = (unsigned)(r >> 16) % WRITE_SLOTS;
    if (which < 10) {
        op->kind = KIND_WRITE;
        op->expect = slot;
        if (!slot_busy(l, slot))
            return true;
    } else if (which < 12 && l->written[slot] != 0 && !slot_busy(l, slot)) {
        op->kind = KIND_READ_BACK;
        op->expect = slot;
        op->seed = l->written[slot];
        op->bytes = bytes_of(op->seed);
        return true;
    }
    op->kind = which < 13 ? KIND_READ
                          : (enum kind)(KIND_FETCH_ADD + which - 13); /* 13 to 15: the atomics */
    if (op->kind != KIND_READ)
        op->bytes = WORD_BYTES;
    return true;
}

static void fill_atomic(struct lane *l, struct op *op, struct ibv_send_wr *wr)
{
    uint64_t at = at_shared();
    wr->wr.atomic.rkey = l->peer.rkey;
    wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (op->kind == KIND_CMP_SWP) {
        wr->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        op->miss = random_next() % 4 == 0;
        op->expect = l->cas_base + l->cas_posted;
        l->cas_posted += !op->miss;
        wr->wr.atomic.compare_add = op->expect + (op->miss ? CAS_MISS : 0);
        wr->wr.atomic.swap = op->expect + 1 + (op->miss ? CAS_MISS : 0);
        at = at_cas(l->index);
    } else if (op->kind == KIND_FETCH_ADD) {
        op->expect = l->fadd_base + FADD_STEP * l->fadd_posted++;
        wr->wr.atomic.compare_add = FADD_STEP;
        at = at_fadd(l->index);
    } else {
        wr->wr.atomic.compare_add = 1;
        s.shared_posted++;
    }
    wr->wr.atomic.remote_addr = l->peer.base + at;
}

static void fill_rdma(struct lane *l, struct op *op, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
    uint64_t to = 0;
    switch (op->kind) {
    case KIND_WRITE_IMM:
        to = at_imm_slot(l->index, (unsigned)(l->imms_posted++ % IMM_SLOTS));
        wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        break;
    case KIND_WRITE:
        to = at_write_slot(l->index, (unsigned)op->expect);
        l->writing[op->expect] = op->seed;
        wr->opcode = IBV_WR_RDMA_WRITE;
        break;
    case KIND_READ:
        to = at_noise(op->seed);
        wr->opcode = IBV_WR_RDMA_READ;
        break;
    case KIND_READ_BACK:
        to = at_write_slot(l->index, (unsigned)op->expect);
        wr->opcode = IBV_WR_RDMA_READ;
        break;
    default: /* KIND_CREDIT */
        to = at_credit(l->index);
        l->credits_told = l->imms_received;
        sge->addr = (uintptr_t)&l->credits_told;
        wr->send_flags |= IBV_SEND_INLINE;
        wr->opcode = IBV_WR_RDMA_WRITE;
        break;
    }
    if (wr->opcode == IBV_WR_RDMA_READ) {
        sge->addr = (uintptr_t)s.memory + at_read(l->index, op->place);
        memset(s.memory + at_read(l->index, op->place), 0xee, op->bytes < 64 ? op->bytes : 64);
    }
    wr->wr.rdma.remote_addr = l->peer.base + to;
    wr->wr.rdma.rkey = l->peer.rkey;
}

static void fill(struct lane *l, struct op *op, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
    bool atomic = op->kind >= KIND_FETCH_ADD && op->kind <= KIND_CMP_SWP;
    *sge = (struct ibv_sge){(uintptr_t)s.memory + at_noise(op->seed), op->bytes, s.mr->lkey};
    if (atomic)
        sge->addr = (uintptr_t)s.memory + at_result(l->index, op->place);
    *wr = (struct ibv_send_wr){.wr_id = op->serial, .sg_list = sge, .num_sge = op->bytes > 0};
    wr->send_flags = op->signaled ? IBV_SEND_SIGNALED : 0;
    if (op->kind <= KIND_WRITE_IMM) {
        wr->imm_data = htobe32((uint32_t)l->messages_posted++);
        if (op->bytes > 0 && op->bytes <= INLINE_BYTES && op->seed & 2)
            wr->send_flags |= IBV_SEND_INLINE;
        if (op->seed & 4)
            wr->send_flags |= IBV_SEND_SOLICITED;
    }
    if (atomic)
        fill_atomic(l, op, wr);
    else if (op->kind <= KIND_SEND_IMM)
        wr->opcode = op->kind == KIND_SEND ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
    else
        fill_rdma(l, op, wr, sge);
}

/* Some WRs, as one list. */
void work_post(struct lane *l)
{
    struct ibv_send_wr wr[DEPTH], *bad = NULL;
    struct ibv_sge sge[DEPTH];
    unsigned n = 0;
    uint64_t room = DEPTH - (l->posted - l->retired);
    if (room < DEPTH / 3)
        return;
    for (; n < room; n++) {
        struct op *op = &l->op[l->posted % DEPTH];
        unsigned place = (unsigned)(l->posted % DEPTH);
        *op = (struct op){.serial = l->posted, .place = place};
        choose(l, op);
        bool last = n + 1 == room;
        op->signaled = last || op->kind != KIND_WRITE || random_next() % 2 == 0;
        op->outstanding = true;
        fill(l, op, &wr[n], &sge[n]);
        wr[n].next = NULL;
        if (n > 0)
            wr[n - 1].next = &wr[n];
        l->posted++;
    }
    int status = ibv_post_send(l->qp, wr, &bad);
    if (status != 0)
        violation(l, "post_send of %u WRs: %s", n, strerror(status));
}

static void check_bytes(const struct lane *l, const struct op *op, const char *what, uint64_t at,
                        uint64_t seed, uint32_t bytes)
{
    const uint8_t *got = s.memory + at, *want = s.memory + at_noise(seed);
    if (memcmp(got, want, bytes) == 0)
        return;
    uint32_t i = 0, wrong = 0, first = bytes;
    for (; i < bytes; i++) {
        if (got[i] != want[i]) {
            wrong++;
            first = i < first ? i : first;
        }
    }
    violation(l, "%s of %u bytes (WR %llu): %u bytes wrong, the first is %u: 0x%02x, not 0x%02x",
              what, bytes, op != NULL ? (unsigned long long)op->serial : 0, wrong, first,
              got[first], want[first]);
}

static void op_check(struct lane *l, struct op *op)
{
    switch (op->kind) {
    case KIND_SEND:
    case KIND_SEND_IMM:
    case KIND_WRITE_IMM:
        l->messages_acked++;
        break;
    case KIND_WRITE:
        l->written[op->expect] = op->seed;
        break;
    case KIND_READ:
    case KIND_READ_BACK:
        check_bytes(l, op, kind_name[op->kind], at_read(l->index, op->place), op->seed, op->bytes);
        break;
    case KIND_FETCH_ADD:
    case KIND_CMP_SWP:
        if (*word_at(at_result(l->index, op->place)) != op->expect)
            violation(l, "%s (WR %llu) found %llu, not %llu", kind_name[op->kind],
                      (unsigned long long)op->serial,
                      (unsigned long long)*word_at(at_result(l->index, op->place)),
                      (unsigned long long)op->expect);
        if (op->kind == KIND_CMP_SWP)
            l->cas_acked += !op->miss;
        else
            l->fadd_acked++;
        break;
    case KIND_SHARED_ADD:
        s.shared_acked++;
        break;
    default:
        break;
    }
    op->outstanding = false;
    s.done[op->kind]++;
    s.bytes += op->bytes;
    l->retired = op->serial + 1;
}

void work_completed(struct lane *l, const struct ibv_wc *wc)
{
    if (wc->wr_id < l->retired || wc->wr_id >= l->posted)
        violation(l, "completion of WR %llu (%s), outstanding are %llu to %llu",
                  (unsigned long long)wc->wr_id, ibv_wc_status_str(wc->status),
                  (unsigned long long)l->retired, (unsigned long long)l->posted);
    struct op *op = &l->op[wc->wr_id % DEPTH];
    while (l->retired < wc->wr_id) {
        struct op *before = &l->op[l->retired % DEPTH];
        if (before->signaled)
            violation(l, "WR %llu (%s) has no completion, but WR %llu has",
                      (unsigned long long)before->serial, kind_name[before->kind],
                      (unsigned long long)wc->wr_id);
        op_check(l, before);
    }
    if (wc->status == IBV_WC_SUCCESS) {
        if (!op->signaled)
            violation(l, "WR %llu was not to be signaled", (unsigned long long)op->serial);
        op_check(l, op);
        return;
    }
    op->outstanding = false;
    l->retired = op->serial + 1;
    s.flushed++;
}

static void credit_slot_check(struct lane *l, uint64_t seed, uint32_t bytes)
{
    unsigned slot = (unsigned)(l->imms_received % IMM_SLOTS);
    check_bytes(l, NULL, "write_imm", at_imm_slot(l->index, slot), seed, bytes);
    l->imms_received++;
}

void work_received(struct lane *l, const struct ibv_wc *wc)
{
    uint64_t seed = message_seed(l, !s.is_a, l->messages_received);
    enum kind kind = message_kind(seed);
    uint32_t bytes = bytes_of(seed);
    bool imm = kind != KIND_SEND;
    enum ibv_wc_opcode want = kind == KIND_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
    if (wc->opcode != want || wc->byte_len != bytes ||
        ((wc->wc_flags & IBV_WC_WITH_IMM) != 0) != imm ||
        (imm && be32toh(wc->imm_data) != (uint32_t)l->messages_received))
        violation(l,
                  "message %llu should be %s of %u bytes: opcode %d, %u bytes, flags 0x%x, "
                  "immediate %u",
                  (unsigned long long)l->messages_received, kind_name[kind], bytes, wc->opcode,
                  wc->byte_len, wc->wc_flags, be32toh(wc->imm_data));
    if (kind == KIND_WRITE_IMM)
        credit_slot_check(l, seed, bytes);
    else
        check_bytes(l, NULL, kind_name[kind], at_recv((unsigned)wc->wr_id), seed, bytes);
    l->messages_received++;
    s.received++;
    s.received_bytes += bytes;
}

void work_compare_done(struct lane *l, const struct message *m)
{
    if (m->posted != l->messages_received || m->acked != m->posted)
        violation(l, "the peer sent %llu messages (%llu acknowledged), %llu arrived",
                  (unsigned long long)m->posted, (unsigned long long)m->acked,
                  (unsigned long long)l->messages_received);
    for (unsigned i = 0; i < WRITE_SLOTS; i++)
        if (m->written[i] != 0)
            check_bytes(l, NULL, "write, acknowledged,", at_write_slot(l->index, i), m->written[i],
                        bytes_of(m->written[i]));
}

/* A cell of the peer's after a break: what was acknowledged is in it, and no more than was
 * posted. */
static void cell_check(const struct lane *l, const char *what, uint64_t value, uint64_t base,
                       uint64_t step, uint64_t acked, uint64_t posted)
{
    uint64_t k = (value - base) / step;
    if ((value - base) % step != 0 || k < acked || k > posted)
        violation(l, "the peer's cell for %s is %llu: base %llu, %llu acknowledged, %llu posted",
                  what, (unsigned long long)value, (unsigned long long)base,
                  (unsigned long long)acked, (unsigned long long)posted);
}

void work_compare_broken(struct lane *l, const struct message *m)
{
    if (m->acked > l->messages_received || m->posted < l->messages_received)
        violation(l, "of the peer's %llu messages %llu were acknowledged, %llu arrived",
                  (unsigned long long)m->posted, (unsigned long long)m->acked,
                  (unsigned long long)l->messages_received);
    cell_check(l, "fetch_add", m->fadd, l->fadd_base, FADD_STEP, l->fadd_acked, l->fadd_posted);
    cell_check(l, "cmp_swp", m->cas, l->cas_base, 1, l->cas_acked, l->cas_posted);
}
