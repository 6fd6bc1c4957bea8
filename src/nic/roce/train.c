/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * train.c: how requester and responder put packets into a train: does the next one fit, and the
 * header fields that all share.
 */
#include <assert.h>
#include <string.h>

#include "nic/qp.h"
#include "nic/roce/roce_qp.h"
#include "wire/roce.h"

void train_begin(struct train *t, const struct nic_path *path)
{
    t->path = path;
    t->qp = NULL;
    t->packets = 0;
    t->spans = 0;
    t->packet_bytes = 0;
    t->total_bytes = 0;
}

bool train_fits(const struct train *t, uint32_t packet_bytes, uint16_t spans_needed)
{
    if (t->spans + spans_needed > TRAIN_MAX_SPANS)
        return false;
    if (t->packets == 0)
        return true;
    /* Only the last packet may be smaller: after a smaller one the train is closed. */
    bool closed = t->total_bytes != t->packets * t->packet_bytes;
    return !closed && t->packets < TRAIN_MAX_PACKETS && packet_bytes <= t->packet_bytes &&
           t->total_bytes + packet_bytes <= t->max_bytes;
}

struct train_packet *train_add_to(struct train *t, uint32_t dest_qp, uint8_t opcode, struct psn psn,
                                  uint32_t payload_bytes)
{
    uint32_t bytes = roce_packet_bytes(opcode, payload_bytes);
    if (t->packets == 0)
        t->packet_bytes = bytes;
    assert(train_fits(t, bytes, 0));
    struct train_packet *p = &t->packet[t->packets++];
    memset(p, 0, sizeof(*p));
    t->total_bytes += bytes;
    p->payload_bytes = payload_bytes;
    p->first_span = t->spans;
    p->h.bth.opcode = opcode;
    p->h.bth.mig_req = true; /* the state of a QP that has no alternate path is Migrated */
    p->h.bth.pkey = PKEY_DEFAULT;
    p->h.bth.pad_bytes = roce_pad(payload_bytes);
    p->h.bth.dest_qp = dest_qp;
    p->h.bth.psn = psn;
    return p;
}

struct train_packet *train_add(struct train *t, struct qp *qp, uint8_t opcode, struct psn psn,
                               uint32_t payload_bytes)
{
    return train_add_to(t, qp->attr.dest_qpn, opcode, psn, payload_bytes);
}
