/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn.c: what a QP sends when it has its turn: replies or requests, as rates and congestion
 * control let it, by the role that its type has (roce/).
 */
#include "nic/turn.h"

#include "nic/nic.h"
#include "nic/roce/datagram.h"
#include "nic/roce/unreliable.h"
#include "nic/timers.h"

enum { PACKET_HEADERS_MAX_BYTES = 64 }; /* BTH, ICRC and all that can be between */

/* Requests of a QP that has a limit; false: none now, it is ready again when there may be. */
static bool paced_open(struct qp *qp, uint64_t now_ns, struct train *t)
{
    uint32_t packet = qp->attr.path_mtu_bytes + PACKET_HEADERS_MAX_BYTES;
    uint32_t room = pacer_room(&qp->pacer, now_ns, packet);
    if (room == 0) {
        if (qp->req.next_wqe != qp->sq.tail)
            timers_paced(qp);
        return false;
    }
    t->max_bytes = room < TRAIN_MAX_BYTES ? room : TRAIN_MAX_BYTES;
    return true;
}

static void paced_sent(struct qp *qp, uint64_t now_ns, struct train *t)
{
    /* Each datagram has a path of its own, which slows down those behind it. */
    if (qp->type == QP_TYPE_UD)
        pacer_limit(&qp->pacer, now_ns, PACER_PATH, t->path->rate * PATH_RATE_KBPS);
    if (qp->pacer.kbps == 0)
        return;
    pacer_sent(&qp->pacer, now_ns, t->total_bytes);
    /* It may be long before the next packet asks for an ACK. */
    if (!qp_unreliable(qp))
        t->packet[t->packets - 1].h.bth.ack_req = true;
}

/* May requests leave now, as far as rates go? */
static bool requests_open(struct qp *qp, uint64_t now_ns, struct train *t)
{
    if (qp->pacer.kbps != 0 && !paced_open(qp, now_ns, t))
        return false;
    if (qp->congestion == NULL || congestion_open(qp, now_ns, t, qp->req.next_wqe != qp->sq.tail))
        return true;
    t->max_bytes = TRAIN_MAX_BYTES;
    return false;
}

static bool next_requests(struct qp *qp, uint64_t now_ns, struct train *t)
{
    bool any;
    if (!requests_open(qp, now_ns, t))
        return false;
    if (qp->type == QP_TYPE_UD)
        any = datagram_next(qp, t);
    else if (qp->type == QP_TYPE_UC)
        any = unreliable_next(qp, t);
    else
        any = requester_next(qp, now_ns, t);
    t->max_bytes = TRAIN_MAX_BYTES;
    if (any && (qp->pacer.kbps | t->path->rate) != 0)
        paced_sent(qp, now_ns, t);
    if (any && qp->congestion != NULL)
        congestion_sent(qp, now_ns, t);
    return any;
}

/* What answers the peer. Its data is held back as that of requests; an ACK is not. */
static bool next_replies(struct qp *qp, uint64_t now_ns, struct train *t)
{
    bool data = qp->resp.reply_head != qp->resp.reply_tail;
    if (qp->congestion == NULL || !data)
        return responder_next(qp, now_ns, t);
    if (!congestion_open(qp, now_ns, t, true))
        return false;
    bool any = responder_next(qp, now_ns, t);
    t->max_bytes = TRAIN_MAX_BYTES;
    if (any)
        congestion_sent(qp, now_ns, t);
    return any;
}

/*
 * Replies go before requests, as the peer waits for them; but a peer that keeps on asking (be it
 * for a receive, RNR NAK after RNR NAK) must not silence this side's requests: trains take turns. A
 * mere ACK lets one train of requests pass: in a ping-pong the peer waits for that. Where it fits
 * it rides behind them, which saves a send here and a receive there.
 */
bool turn_next(struct qp *qp, uint64_t now_ns, struct train *t)
{
    mem_train(qp->nic);
    if (qp_unreliable(qp))
        return next_requests(qp, now_ns, t);
    train_begin(t, qp->tx_path);
    t->qp = qp;
    bool requests_first = responder_hurries(qp) ? qp->last_train == LAST_TRAIN_REPLIES
                                                : qp->last_train != LAST_TRAIN_REQUESTS;
    if (requests_first && next_requests(qp, now_ns, t)) {
        qp->last_train = LAST_TRAIN_REQUESTS;
        responder_add_ack(qp, t);
    } else if (next_replies(qp, now_ns, t)) {
        qp->last_train = LAST_TRAIN_REPLIES;
    } else if (!requests_first && next_requests(qp, now_ns, t)) {
        qp->last_train = LAST_TRAIN_REQUESTS;
    } else {
        qp->last_train = LAST_TRAIN_NONE;
    }
    return qp->last_train != LAST_TRAIN_NONE;
}

bool turn_has_room(struct qp *qp, uint64_t now_ns, struct nic_sink *sink)
{
    if (!qp_unreliable(qp) || !unreliable_pending(qp))
        return true;
    const struct nic_path *path = qp->tx_path;
    uint32_t qpn = qp->attr.dest_qpn;
    if (qp->type == QP_TYPE_UD)
        path = datagram_target(qp, &qpn);
    return sink->room(sink, now_ns, path, qpn);
}
