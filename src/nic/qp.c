/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp.c: queue pairs: creation and end, and what a change of state does. Which changes are
 * allowed is in qp_table.c; what goes over the wire is in roce/.
 */
#include "nic/qp.h"

#include <errno.h>
#include <stdlib.h>

#include "nic/mw.h"
#include "nic/nic.h"
#include "nic/qp_table.h"
#include "nic/roce/datagram.h"
#include "nic/roce/unreliable.h"
#include "nic/timers.h"
#include "wire/opcode.h"

enum { QP_ACCESS_OPTIONAL = 0x3ff00000 }; /* bits 20..29 ask for optional behaviour: ignored */

static const uint8_t service_of[] = {
    [QP_TYPE_RC] = SERVICE_RC,       [QP_TYPE_UC] = SERVICE_UC,       [QP_TYPE_UD] = SERVICE_UD,
    [QP_TYPE_XRC_INI] = SERVICE_XRC, [QP_TYPE_XRC_TGT] = SERVICE_XRC,
};

/* An XRC initiator has no receive queue, a target no queue at all. */
static bool has_sends(enum qp_type type)
{
    return type != QP_TYPE_XRC_TGT;
}

static bool has_receives(enum qp_type type)
{
    return type != QP_TYPE_XRC_TGT && type != QP_TYPE_XRC_INI;
}

static bool type_offered(enum qp_type type)
{
    const unsigned offered = 1u << QP_TYPE_RC | 1u << QP_TYPE_UC | 1u << QP_TYPE_UD |
                             1u << QP_TYPE_XRC_INI | 1u << QP_TYPE_XRC_TGT;

    return (unsigned)type <= QP_TYPE_XRC_TGT && (offered >> type & 1) != 0;
}

static int check_init(const struct nic *nic, const struct qp_init *init)
{
    uint32_t max_wr = nic->config.max_qp_wr == 0 ? MAX_WR : nic->config.max_qp_wr;
    const struct nic_qp_cap *cap = &init->cap;

    if (!type_offered(init->type))
        return -EOPNOTSUPP;
    if (!has_sends(init->type))
        return init->xrcd != NULL ? 0 : -EINVAL;
    if (init->pd == NULL || init->send_cq == NULL ||
        (has_receives(init->type) && init->recv_cq == NULL))
        return -EINVAL;
    if (cap->max_send_wr > max_wr || cap->max_send_sge > MAX_SGE ||
        cap->max_inline_bytes > MAX_INLINE_BYTES)
        return -EINVAL;
    if (init->srq == NULL && has_receives(init->type) &&
        (cap->max_recv_wr > max_wr || cap->max_recv_sge > MAX_SGE))
        return -EINVAL;
    return 0;
}

/* What the caller will be given for what it asked. */
static struct nic_qp_cap granted_cap(const struct qp_init *init)
{
    struct nic_qp_cap cap = init->cap;

    if (!has_sends(init->type))
        return (struct nic_qp_cap){0};
    if (cap.max_send_sge == 0)
        cap.max_send_sge = 1;
    if (init->srq != NULL || !has_receives(init->type)) {
        cap.max_recv_wr = 0;
        cap.max_recv_sge = 0;
    } else if (cap.max_recv_sge == 0) {
        cap.max_recv_sge = 1;
    }
    return cap;
}

static int init_queues(struct qp *qp, const struct nic_qp_cap *cap)
{
    if (wq_init_send(&qp->sq, cap, qp->type == QP_TYPE_UD) != 0)
        return -ENOMEM;
    if (wq_init_recv(&qp->rq, cap->max_recv_wr, cap->max_recv_sge) != 0) {
        wq_fini_send(&qp->sq);
        return -ENOMEM;
    }
    return 0;
}

static void free_memory(struct qp *qp)
{
    wq_fini_send(&qp->sq);
    wq_fini_recv(&qp->rq);
    lock_fini(&qp->lock);
    free(qp);
}

/* What it is made of, as far as its type has such. */
static void take_parts(struct qp *qp, const struct qp_init *init)
{
    if (has_sends(qp->type)) {
        qp->pd = init->pd;
        qp->send_cq = init->send_cq;
    } else {
        qp->xrcd = init->xrcd;
    }
    if (has_receives(qp->type)) {
        qp->recv_cq = init->recv_cq;
        qp->srq = init->srq;
    }
}

/* One user more, or less, of each. */
static void count_parts(const struct qp *qp, uint32_t n)
{
    if (qp->pd != NULL)
        atomic_fetch_add(&qp->pd->children, n);
    if (qp->xrcd != NULL)
        atomic_fetch_add(&qp->xrcd->children, n);
    if (qp->send_cq != NULL)
        atomic_fetch_add(&qp->send_cq->users, n);
    if (qp->recv_cq != NULL)
        atomic_fetch_add(&qp->recv_cq->users, n);
    if (qp->srq != NULL)
        atomic_fetch_add(&qp->srq->users, n);
}

/* Whose responder answers READs and atomics. */
static bool has_replies(enum qp_type type)
{
    return type == QP_TYPE_RC || type == QP_TYPE_XRC_TGT;
}

/* SGEs of the largest receive that it can be given. */
static uint32_t recv_sges(const struct qp_init *init, const struct nic_qp_cap *cap)
{
    if (init->srq != NULL)
        return init->srq->rq.max_sge;
    return init->type == QP_TYPE_XRC_TGT ? MAX_SGE : cap->max_recv_sge;
}

static struct nic_qp_cap cap_of(const struct qp *qp)
{
    return (struct nic_qp_cap){.max_send_wr = qp->sq.capacity,
                               .max_recv_wr = qp->rq.capacity,
                               .max_send_sge = qp->sq.max_sge,
                               .max_recv_sge = qp->rq.max_sge,
                               .max_inline_bytes = qp->sq.max_inline_bytes};
}

/* The QP, and behind it in one piece what its parts point to. */
static struct qp *parts_create(const struct nic *nic, const struct qp_init *init,
                               const struct nic_qp_cap *cap)
{
    size_t depth = has_replies(init->type) ? nic->config.max_rd_atomic : 0;
    size_t sges = recv_sges(init, cap);
    size_t congestions = congestion_is_for(nic, init->type) ? 1 : 0;
    struct qp *qp =
        calloc(1, sizeof(*qp) + congestions * sizeof(struct congestion) +
                      2 * depth * sizeof(struct reply) + depth * sizeof(struct saved_atomic) +
                      sges * sizeof(struct nic_sge));
    if (qp == NULL)
        return NULL;
    struct congestion *congestion = (struct congestion *)(qp + 1);
    qp->congestion = congestions != 0 ? congestion : NULL;
    qp->tx_path = congestions != 0 ? &congestion->path : &qp->attr.path;
    qp->resp.depth = (uint32_t)depth;
    qp->resp.reply = (struct reply *)(congestion + congestions);
    qp->resp.atomic = (struct saved_atomic *)(qp->resp.reply + 2 * depth);
    qp->recv.sge = (struct nic_sge *)(qp->resp.atomic + depth);
    return qp;
}

int qp_create(struct nic *nic, struct qp_init *init, struct qp **out)
{
    struct nic_qp_cap cap;
    struct qp *qp;
    int err = check_init(nic, init);

    if (err != 0)
        return err;
    cap = granted_cap(init);
    qp = parts_create(nic, init, &cap);
    if (qp == NULL)
        return -ENOMEM;
    qp->nic = nic;
    qp->owner = init->owner;
    qp->type = init->type;
    qp->service = service_of[init->type];
    qp->state = QP_STATE_RESET;
    take_parts(qp, init);
    qp->sq_sig_all = init->sq_sig_all;
    qp->udp_sport = init->udp_sport;
    qp->block_self_loopback = init->block_self_loopback;
    event_init(&qp->events, EVENT_OBJECT_QP, init->owner);
    if (init_queues(qp, &cap) != 0) {
        free(qp);
        return -ENOMEM;
    }
    lock_init(&qp->lock);
    err = nic_adopt_qp(nic, qp);
    if (err != 0) {
        free_memory(qp);
        return err;
    }
    count_parts(qp, 1);
    init->cap = cap;
    *out = qp;
    return 0;
}

static void purge_cqs(struct qp *qp)
{
    if (qp->send_cq != NULL)
        cq_purge(qp->send_cq, qp);
    if (qp->recv_cq != NULL && qp->recv_cq != qp->send_cq)
        cq_purge(qp->recv_cq, qp);
}

void qp_await_packet(struct qp *qp)
{
    lock_take(&qp->lock);
    qp->resp.awaited = true;
    lock_drop(&qp->lock);
}

/* With the lock held. The CQ entries go first: polling one would move sq.freed of the new life. */
static void enter_reset(struct qp *qp)
{
    qp->state = QP_STATE_RESET;
    timers_stop(qp);
    purge_cqs(qp);
    wq_clear(qp);
    qp->attr = (struct nic_qp_attr){0};
    qp->req = (struct requester){0};
    responder_clear(qp);
    qp->pacer = (struct pacer){0};
    congestion_clear(qp);
    qp->sqd_pending = false;
    qp->ece_set = false;
    qp->ece = 0;
}

void qp_unlink(struct qp *qp)
{
    nic_unlist_qp(qp);
    /* Whoever found it before and waits for its lock finds a QP that neither takes nor sends. */
    lock_take(&qp->lock);
    enter_reset(qp);
    lock_drop(&qp->lock);
}

void qp_free(struct qp *qp)
{
    nic_forget_qp(qp);
    mw_unbind_all(qp);
    purge_cqs(qp);
    event_drop(qp->nic, &qp->events);
    count_parts(qp, UINT32_MAX);
    free_memory(qp);
}

static bool mtu_valid(const struct nic_qp_attr *a)
{
    uint16_t mtu = a->path_mtu_bytes;

    if (mtu < PATH_MTU_MIN_BYTES || mtu > PATH_MTU_MAX_BYTES || (mtu & (mtu - 1)) != 0)
        return false;
    return a->active_mtu_bytes == 0 || mtu <= a->active_mtu_bytes;
}

static bool access_valid(unsigned access)
{
    return (access & ~(unsigned)(ACCESS_KNOWN | QP_ACCESS_OPTIONAL)) == 0;
}

/* Are the values that the mask names in range? */
static bool values_valid(const struct nic *nic, const struct nic_qp_attr *a, unsigned mask)
{
    uint32_t rd_atomic = nic->config.max_rd_atomic;

    const struct {
        unsigned bit;
        bool ok;
    } check[] = {
        {QP_ATTR_ACCESS_FLAGS,                      access_valid(a->access_flags)     },
        {QP_ATTR_PKEY_INDEX,                        a->pkey_index == 0                },
        {QP_ATTR_PORT,                              a->port_num == 1                  },
        {QP_ATTR_PATH_MTU,                          mtu_valid(a)                      },
        {QP_ATTR_TIMEOUT,                           a->timeout <= 31                  },
        {QP_ATTR_RETRY_CNT,                         a->retry_cnt <= 7                 },
        {QP_ATTR_RNR_RETRY,                         a->rnr_retry <= 7                 },
        {QP_ATTR_RQ_PSN,                            a->rq_psn <= 0xffffff             },
        {QP_ATTR_SQ_PSN,                            a->sq_psn <= 0xffffff             },
        {QP_ATTR_MAX_QP_RD_ATOMIC,                  a->max_rd_atomic <= rd_atomic     },
        {QP_ATTR_MAX_DEST_RD_ATOMIC,                a->max_dest_rd_atomic <= rd_atomic},
        {QP_ATTR_MIN_RNR_TIMER,                     a->min_rnr_timer <= 31            },
        {QP_ATTR_DEST_QPN,                          a->dest_qpn <= 0xffffff           },
 /* Path migration: adapters may lack it, and this one does. */
        {QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE, false                             },
    };

    for (size_t i = 0; i < sizeof(check) / sizeof(check[0]); i++) {
        if ((mask & check[i].bit) && !check[i].ok)
            return false;
    }
    return true;
}

static void copy_values(struct nic_qp_attr *to, const struct nic_qp_attr *a, unsigned mask)
{
#define COPY(bit, field)                                                                           \
    do {                                                                                           \
        if (mask & (bit))                                                                          \
            to->field = a->field;                                                                  \
    } while (0)
    COPY(QP_ATTR_ACCESS_FLAGS, access_flags);
    COPY(QP_ATTR_PKEY_INDEX, pkey_index);
    COPY(QP_ATTR_PORT, port_num);
    COPY(QP_ATTR_QKEY, qkey);
    COPY(QP_ATTR_AV, path);
    COPY(QP_ATTR_PATH_MTU, path_mtu_bytes);
    COPY(QP_ATTR_PATH_MTU, active_mtu_bytes);
    COPY(QP_ATTR_PATH_MTU, line_mbps);
    COPY(QP_ATTR_TIMEOUT, timeout);
    COPY(QP_ATTR_RETRY_CNT, retry_cnt);
    COPY(QP_ATTR_RNR_RETRY, rnr_retry);
    COPY(QP_ATTR_RQ_PSN, rq_psn);
    COPY(QP_ATTR_SQ_PSN, sq_psn);
    COPY(QP_ATTR_MAX_QP_RD_ATOMIC, max_rd_atomic);
    COPY(QP_ATTR_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    COPY(QP_ATTR_MIN_RNR_TIMER, min_rnr_timer);
    COPY(QP_ATTR_DEST_QPN, dest_qpn);
    COPY(QP_ATTR_RATE_LIMIT, rate_limit_kbps);
    COPY(QP_ATTR_RATE_LIMIT, max_burst_bytes);
#undef COPY
    to->access_flags &= ACCESS_KNOWN;
}

/* The limits of the attributes are in force. What waits for the old ones looks again. */
static void pace(struct qp *qp)
{
    uint64_t now_ns = atomic_load_explicit(&qp->nic->now_ns, memory_order_relaxed);

    pacer_limit(&qp->pacer, now_ns, PACER_PROGRAM, qp->attr.rate_limit_kbps);
    pacer_burst(&qp->pacer, now_ns, qp->attr.max_burst_bytes);
    if (qp->type != QP_TYPE_UD) /* whose datagrams have paths of their own */
        pacer_limit(&qp->pacer, now_ns, PACER_PATH, qp->attr.path.rate * PATH_RATE_KBPS);
    nic_qp_ready(qp);
}

static void enter_rts(struct qp *qp, enum qp_state from)
{
    qp->state = QP_STATE_RTS;
    qp->sqd_pending = false;
    if (from == QP_STATE_RTR && qp_unreliable(qp))
        unreliable_start(qp);
    else if (from == QP_STATE_RTR)
        requester_start(qp);
    else if (from == QP_STATE_SQD && !requester_waiting(qp))
        requester_renew(qp);
    if (from != QP_STATE_RTS)
        nic_qp_ready(qp);
}

static void enter_sqd(struct qp *qp, bool notify)
{
    qp->state = QP_STATE_SQD;
    qp->attr.en_sqd_async_notify = notify;
    qp->sqd_pending = true;
    if (psn_eq(qp->req.una, qp->req.number)) /* no WQE has begun and is not complete */
        qp_sq_drained(qp);
}

static int modify(struct qp *qp, const struct nic_qp_attr *attr, unsigned mask)
{
    enum qp_state from = qp->state;
    enum qp_state to = mask & QP_ATTR_STATE ? attr->state : from;

    if ((mask & QP_ATTR_CUR_STATE) && attr->cur_state != from)
        return -EINVAL;
    if (!qp_table_allows(qp->type, from, to, mask) || !values_valid(qp->nic, attr, mask))
        return -EINVAL;
    /* IBA 10.3.1: attributes of the send queue may change once it has drained, not before. */
    if (from == QP_STATE_SQD && to == QP_STATE_SQD && qp->sqd_pending &&
        (mask & ~(unsigned)QP_ATTR_STATE) != 0)
        return -EINVAL;
    copy_values(&qp->attr, attr, mask);
    if (mask & (QP_ATTR_RATE_LIMIT | QP_ATTR_AV))
        pace(qp);
    if (mask & QP_ATTR_AV)
        congestion_path(qp);
    switch (to) {
    case QP_STATE_RESET:
        enter_reset(qp);
        break;
    case QP_STATE_INIT:
        qp->state = to;
        break;
    case QP_STATE_RTR:
        qp->state = to;
        if (qp->type == QP_TYPE_UD)
            datagram_ready(qp, attr->active_mtu_bytes);
        else
            responder_start(qp);
        congestion_start(qp);
        break;
    case QP_STATE_RTS:
        enter_rts(qp, from);
        break;
    case QP_STATE_SQD:
        if (from != QP_STATE_SQD)
            enter_sqd(qp, (mask & QP_ATTR_EN_SQD_ASYNC_NOTIFY) && attr->en_sqd_async_notify);
        break;
    case QP_STATE_ERR:
        qp_enter_error(qp);
        break;
    default: /* a modify without state in SQE changes nothing: the table has no such row */
        return -EINVAL;
    }
    return 0;
}

int qp_modify(struct qp *qp, const struct nic_qp_attr *attr, unsigned mask)
{
    int err;

    lock_take(&qp->lock);
    err = modify(qp, attr, mask);
    lock_drop(&qp->lock);
    return err;
}

void qp_query(struct qp *qp, struct nic_qp_attr *attr, struct nic_qp_cap *cap)
{
    lock_take(&qp->lock);
    *attr = qp->attr;
    attr->state = qp->state;
    attr->cur_state = qp->state;
    *cap = cap_of(qp);
    lock_drop(&qp->lock);
}

/* Datagrams go to many peers. */
static uint32_t ece_offered(const struct qp *qp)
{
    return qp->type == QP_TYPE_UD ? 0 : ECE_KNOWN;
}

static bool ece_open(const struct qp *qp)
{
    return qp->state == QP_STATE_RESET || qp->state == QP_STATE_INIT;
}

int qp_set_ece(struct qp *qp, uint32_t *options)
{
    lock_take(&qp->lock);
    bool open = ece_open(qp);
    if (open) {
        qp->ece_set = true;
        qp->ece = *options &= ece_offered(qp);
    }
    lock_drop(&qp->lock);
    return open ? 0 : -EINVAL;
}

uint32_t qp_query_ece(struct qp *qp)
{
    lock_take(&qp->lock);
    uint32_t options = ece_open(qp) && !qp->ece_set ? ece_offered(qp) : qp->ece;
    lock_drop(&qp->lock);
    return options;
}

void qp_enter_error(struct qp *qp)
{
    if (qp->state == QP_STATE_ERR)
        return;
    qp->state = QP_STATE_ERR;
    qp->sqd_pending = false;
    timers_stop(qp);
    wq_flush(qp);
    if (qp->srq != NULL)
        event_raise(qp->nic, &qp->events, EVENT_QP_LAST_WQE_REACHED);
}

void qp_sq_drained(struct qp *qp)
{
    if (!qp->sqd_pending)
        return;
    qp->sqd_pending = false;
    if (qp->attr.en_sqd_async_notify)
        event_raise(qp->nic, &qp->events, EVENT_SQ_DRAINED);
}

static void purge_one(struct qp *qp)
{
    if ((qp->send_cq == NULL || !cq_has_overflowed(qp->send_cq)) &&
        (qp->recv_cq == NULL || !cq_has_overflowed(qp->recv_cq)))
        return;
    lock_take(&qp->lock);
    if (qp->state != QP_STATE_RESET && qp->state != QP_STATE_ERR) {
        event_raise(qp->nic, &qp->events, EVENT_QP_FATAL);
        qp_enter_error(qp);
    }
    lock_drop(&qp->lock);
}

void qp_purge_overflowed(struct nic *nic)
{
    for (uint32_t slot = 0; slot < nic->config.max_slots; slot++) {
        _Atomic(struct qp *) *entry;

        lock_take(&nic->table_lock);
        entry = nic->qpn_slot[slot];
        lock_drop(&nic->table_lock);
        for (uint32_t i = 0; entry != NULL && i < nic->config.max_qp; i++) {
            struct qp *qp = atomic_load_explicit(&entry[i], memory_order_acquire);

            if (qp != NULL)
                purge_one(qp);
        }
    }
}
