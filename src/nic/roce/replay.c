/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay.c: requests that come a second time: SENDs and WRITEs are acknowledged
 * again and not executed, READs are executed again, atomics are answered from saved results,
 * FLUSHes and ATOMIC WRITEs are answered again. Also
 * the queue of replies, in PSN order.
 */
#include <assert.h>

#include "nic/nic.h"
#include "nic/qp.h"
#include "wire/opcode.h"

static struct reply *reply_at(struct responder *r, uint32_t index)
{
    return &r->reply[index & (2 * r->depth - 1)];
}

bool replay_queue(struct qp *qp, const struct reply *reply)
{
    struct responder *r = &qp->resp;
    if (r->reply_tail - r->reply_head == 2 * r->depth)
        return false;
    *reply_at(r, r->reply_tail) = *reply;
    r->reply_tail++;
    return true;
}

uint32_t replay_count(const struct responder *r, bool replayed, bool flushes)
{
    uint32_t n = 0;
    for (uint32_t i = r->reply_head; i != r->reply_tail; i++) {
        const struct reply *q = &r->reply[i & (2 * r->depth - 1)];
        n += q->replayed == replayed && q->is_flush == flushes;
    }
    return n;
}

void replay_save_atomic(struct qp *qp, struct psn psn, uint8_t opcode, uint64_t original)
{
    struct responder *r = &qp->resp;
    r->atomic[r->atomic_next & (r->depth - 1)] =
        (struct saved_atomic){.valid = true, .psn = psn, .opcode = opcode, .original = original};
    r->atomic_next++;
}

static const struct saved_atomic *find_atomic(const struct responder *r, struct psn psn,
                                              uint8_t opcode)
{
    /* The newest first: an old one may be a round of all PSNs old. */
    for (uint32_t i = 1; i <= r->depth; i++) {
        const struct saved_atomic *a = &r->atomic[(r->atomic_next - i) & (r->depth - 1)];
        if (a->valid && psn_eq(a->psn, psn) && a->opcode == opcode)
            return a;
    }
    return NULL;
}

/*
 * Is a reply that covers psn still in the queue? Then what was sent of it from psn on goes out
 * again; what was not sent will go out anyhow, so that a copy made by the network costs nothing.
 */
static bool rewind_queued(struct responder *r, struct psn psn)
{
    for (uint32_t i = r->reply_head; i != r->reply_tail; i++) {
        struct reply *q = reply_at(r, i);
        int32_t offset = psn_diff(psn, q->psn);
        if (offset < 0 || (uint32_t)offset >= q->packets)
            continue;
        if ((uint32_t)offset < q->sent) {
            q->sent = (uint32_t)offset;
            q->start_at = (uint32_t)offset;
        }
        return true;
    }
    return false;
}

/* Into the queue by PSN, before those that come after it. Dropped when there are many: the
 * requester asks again, and new requests keep their room. */
static void insert_by_psn(struct qp *qp, const struct reply *reply)
{
    struct responder *r = &qp->resp;
    uint32_t replays = replay_count(r, true, false) + replay_count(r, true, true);
    if (replays == r->depth || !replay_queue(qp, reply)) {
        nic_count(qp->nic, COUNTER_resp_dropped_replays, 1);
        return;
    }
    for (uint32_t i = r->reply_tail - 1; i != r->reply_head; i--) {
        struct reply *before = reply_at(r, i - 1);
        struct reply *here = reply_at(r, i);
        if (!psn_before(here->psn, before->psn))
            break;
        struct reply swap = *before;
        *before = *here;
        *here = swap;
    }
}

static void replay_read(struct qp *qp, const struct rx_packet *p)
{
    struct responder *r = &qp->resp;
    uint32_t mtu = qp->attr.path_mtu_bytes;
    uint32_t length = p->h.reth.dma_len;
    uint8_t *addr;
    struct reply reply = {
        .replayed = true,
        .psn = p->h.bth.psn,
        .packets = message_packets(length, mtu),
        .va = p->h.reth.va,
        .rkey = p->h.reth.rkey,
        .length = length,
        .msn = r->msn,
        .pd = r->pd,
    };
    /*
     * It must end where PSNs were taken already, be allowed, and its key still be good: the region
     * may have gone since the READ was complete, which is no error of the peer's, so there is no
     * NAK.
     */
    bool ok = length <= MAX_MESSAGE_BYTES &&
              (int64_t)reply.packets <= psn_diff(r->epsn, reply.psn) &&
              (qp->attr.access_flags & ACCESS_REMOTE_READ) &&
              (length == 0 || mem_check(qp->nic, r->pd, reply.rkey, reply.va, length,
                                        ACCESS_REMOTE_READ, qp->qpn, &addr) == MEM_OK);
    if (!ok) {
        nic_count(qp->nic, COUNTER_resp_dropped_replays, 1);
        return;
    }
    if (!rewind_queued(r, reply.psn))
        insert_by_psn(qp, &reply);
}

static void replay_atomic(struct qp *qp, const struct rx_packet *p)
{
    struct responder *r = &qp->resp;
    const struct saved_atomic *saved = find_atomic(r, p->h.bth.psn, p->h.bth.opcode);
    if (saved == NULL) {
        nic_count(qp->nic, COUNTER_resp_dropped_replays, 1);
        return;
    }
    struct reply reply = {
        .is_atomic = true,
        .replayed = true,
        .psn = saved->psn,
        .packets = 1,
        .original = saved->original,
        .msn = r->msn,
    };
    if (!rewind_queued(r, reply.psn))
        insert_by_psn(qp, &reply);
}

/*
 * FLUSH and ATOMIC WRITE: that it was done its PSN says, and there is no result to keep. An ATOMIC
 * WRITE that came again would undo what was written since.
 */
static void replay_placement(struct qp *qp, const struct rx_packet *p, uint16_t flags)
{
    struct responder *r = &qp->resp;
    struct reply reply = {
        .is_flush = (flags & OPF_FLUSH) != 0,
        .replayed = true,
        .psn = p->h.bth.psn,
        .packets = 1,
        .msn = r->msn,
    };
    if (!rewind_queued(r, reply.psn))
        insert_by_psn(qp, &reply);
}

void replay_input(struct qp *qp, const struct rx_packet *p)
{
    struct responder *r = &qp->resp;
    uint16_t flags = opcode_info(p->h.bth.opcode)->flags;
    nic_count(qp->nic, COUNTER_duplicate_request, 1);
    if (flags & OPF_READ)
        replay_read(qp, p);
    else if (flags & OPF_ATOMIC)
        replay_atomic(qp, p);
    else if (flags & OPF_PLACEMENT)
        replay_placement(qp, p, flags);
    else if (!r->nak_due)
        r->ack_due = true; /* IBA C9-105: acknowledged again, never executed again */
}
