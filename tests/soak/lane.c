/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lane.c: the life of a lane of the soak driver: a connection is made, works, is emptied and
 * compared, or breaks; then the next one. A leads: it names the epochs and decides when; B follows.
 */
#define _GNU_SOURCE
#include "soak.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RECV_ID (1ull << 63) /* in a wr_id: of a receive */

enum { PSN_MASK = 0xffffff, RD_ATOMIC = 4, RNR_TIMER = 12, FOR_EVER = 7, POLL = 16 };
static const double FLUSH_SECONDS = 20;
static const double HANG_SECONDS = 40;    /* without a completion, although WRs are outstanding */
static const double OPENING_SECONDS = 90; /* the peer may be stopped, or dead for a while */
static const double CORE_SECONDS = 20;    /* a debugger may look at what hangs */

void lane_init(struct lane *l, unsigned index)
{
    static const uint8_t timeout[] = {14, 15, 16, 17}; /* 67 to 537 ms, eight times */
    *l = (struct lane){.index = index, .use_srq = index % 2 == 0, .timeout = timeout[index % 4]};
    l->epoch = 0;
}

struct lane *lane_of_qp(uint32_t qpn)
{
    for (unsigned i = 0; i < s.lanes; i++)
        if (s.lane[i].qp != NULL && s.lane[i].qp->qp_num == qpn)
            return &s.lane[i];
    return NULL;
}

void recv_post(struct lane *l, unsigned index)
{
    struct ibv_sge sge = {(uintptr_t)s.memory + at_recv(index), SLOT_BYTES, s.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = RECV_ID | index, .sg_list = &sge, .num_sge = 1};
    int status = 0;
    if (l != NULL) {
        status = ibv_post_recv(l->qp, &wr, &bad);
        l->recvs++;
    } else {
        status = ibv_post_srq_recv(s.srq, &wr, &bad);
    }
    if (status != 0)
        violation(l, "posting a receive: %s", strerror(status));
}

static void qp_create(struct lane *l)
{
    struct ibv_qp_init_attr init = {
        .send_cq = s.cq[l->index % 2],
        .recv_cq = s.cq[l->index / 2 % 2],
        .srq = l->use_srq ? s.srq : NULL,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = DEPTH,
                .max_recv_wr = LANE_RECVS,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = INLINE_BYTES},
    };
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = PORT,
        .qp_access_flags =
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    };
    l->qp = ibv_create_qp(s.pd, &init);
    if (l->qp == NULL)
        violation(l, "create_qp: %s", strerror(errno));
    int status = ibv_modify_qp(
        l->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (status != 0)
        violation(l, "modify_qp to INIT: %s", strerror(status));
    l->recvs = 0;
    for (unsigned i = 0; i < LANE_RECVS && !l->use_srq; i++)
        recv_post(l, SRQ_RECVS + l->index * LANE_RECVS + i);
}

static uint32_t psn_of(const struct lane *l, bool from_a)
{
    return (uint32_t)mix(s.seed ^ l->epoch << 8 ^ l->index << 1 ^ from_a) & PSN_MASK;
}

static void qp_connect(struct lane *l)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = s.mtu,
        .dest_qp_num = l->peer.qpn,
        .rq_psn = l->peer.psn,
        .max_dest_rd_atomic = RD_ATOMIC,
        .min_rnr_timer = RNR_TIMER,
        .ah_attr = {.is_global = 1,
                    .port_num = PORT,
                    .grh = {.dgid = l->peer.gid,
                            .sgid_index = (uint8_t)s.gid_index,
                            .hop_limit = 64}},
    };
    int status =
        ibv_modify_qp(l->qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (status != 0)
        violation(l, "modify_qp to RTR: %s", strerror(status));
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = l->timeout;
    attr.retry_cnt = FOR_EVER; /* here: 7 times */
    attr.rnr_retry = FOR_EVER;
    attr.sq_psn = psn_of(l, s.is_a);
    attr.max_rd_atomic = RD_ATOMIC;
    status = ibv_modify_qp(l->qp, &attr,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    if (status != 0)
        violation(l, "modify_qp to RTS: %s", strerror(status));
    s.connections++;
}

void lane_open(struct lane *l)
{
    l->epoch++;
    l->state = LANE_OPENING;
    l->opened = l->progress = now_seconds();
    l->peer_done = l->broken = false;
    qp_create(l);
    say(l, SAY_OPEN);
}

/* From here on all counts are of the new epoch. */
static void connected(struct lane *l, const struct message *m)
{
    l->peer = *m;
    l->fadd_base = m->fadd;
    l->cas_base = m->cas;
    l->fadd_posted = l->fadd_acked = l->cas_posted = l->cas_acked = 0;
    l->in_session = true;
    l->opened = l->progress = now_seconds();
    work_begin(l);
    qp_connect(l);
}

static void heard_open(struct lane *l, const struct message *m)
{
    if (l->qp != NULL)
        lane_abort(l);
    if (l->in_session)
        work_compare_broken(l, m);
    l->epoch = m->epoch;
    l->peer_done = l->broken = false;
    qp_create(l);
    say(l, SAY_ACCEPT); /* with the counts of the last epoch */
    connected(l, m);
    l->state = LANE_OPENING;
}

void lane_heard(struct lane *l, const struct message *m)
{
    if (m->kind == SAY_OPEN) {
        heard_open(l, m);
        return;
    }
    if (m->epoch != l->epoch || l->qp == NULL)
        return; /* of a connection that is gone */
    if (m->kind == SAY_ACCEPT && l->state == LANE_OPENING) {
        if (l->in_session)
            work_compare_broken(l, m);
        connected(l, m);
        l->state = LANE_RUN;
        say(l, SAY_GO);
    } else if (m->kind == SAY_GO && l->state == LANE_OPENING) {
        l->state = LANE_RUN;
        l->progress = now_seconds();
    } else if (m->kind == SAY_DRAIN) {
        l->state = LANE_DRAIN;
    } else if (m->kind == SAY_DONE) {
        l->peer_done = true;
        l->peer_done_message = *m;
    } else if (m->kind == SAY_BROKEN) {
        l->broken = true;
    }
}

/* The QP into the error state: all WRs come back, each once; then it goes. */
static void qp_end(struct lane *l)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    double limit = now_seconds() + FLUSH_SECONDS;
    l->closing = true;
    int status = ibv_modify_qp(l->qp, &attr, IBV_QP_STATE);
    if (status != 0)
        violation(l, "modify_qp to ERR: %s", strerror(status));
    while (completions_take() > 0 || work_outstanding(l) || l->recvs > 0) {
        if (now_seconds() > limit)
            violation(l, "flushed, but WRs %llu to %llu and %u receives have no completion",
                      (unsigned long long)l->retired, (unsigned long long)l->posted, l->recvs);
        usleep(200);
    }
    status = ibv_destroy_qp(l->qp);
    if (status != 0)
        violation(l, "destroy_qp: %s", strerror(status));
    l->qp = NULL;
    l->closing = false;
    l->state = LANE_IDLE;
}

void lane_abort(struct lane *l)
{
    s.breaks++;
    s.shared_unsure = true;
    qp_end(l);
}

/* All sent and all received: compared, then on to the next connection. */
static void lane_compare(struct lane *l)
{
    while (completions_take() > 0)
        ;
    work_compare_done(l, &l->peer_done_message);
    qp_end(l);
    s.reconnects++;
    if (s.is_a && !s.ending)
        lane_open(l);
}

static void lane_broke(struct lane *l)
{
    if (!s.is_a)
        say(l, SAY_BROKEN);
    lane_abort(l);
    if (s.is_a && !s.ending)
        lane_open(l);
}

void lane_drain(struct lane *l)
{
    say(l, SAY_DRAIN);
    l->state = LANE_DRAIN;
}

static void watch(struct lane *l, double now)
{
    if (l->state == LANE_OPENING && now - l->progress > OPENING_SECONDS)
        violation(l, "not connected within %.0f s", OPENING_SECONDS);
    if (l->state == LANE_OPENING || l->state == LANE_IDLE || now - l->progress < HANG_SECONDS)
        return;
    const struct op *op = &l->op[l->retired % DEPTH];
    printf("hang lane=%u epoch=%llu qpn=%u at=%.3f\n", l->index, (unsigned long long)l->epoch,
           l->qp->qp_num, now);
    fflush(stdout);
    usleep((useconds_t)(CORE_SECONDS * 1e6));
    violation(l,
              "WRs %llu to %llu are outstanding, the first is a %s of %u bytes; nothing for %.0f s",
              (unsigned long long)l->retired, (unsigned long long)l->posted, kind_name[op->kind],
              op->bytes, HANG_SECONDS);
}

void lane_turn(struct lane *l)
{
    double now = now_seconds();
    if (l->qp == NULL)
        return;
    if (l->broken) {
        lane_broke(l);
        return;
    }
    double age = (now - l->opened) * 1000;
    bool due = s.reconnect_ms != 0 && age > s.reconnect_ms * (0.5 + (double)(l->epoch % 5) / 4);
    if (l->state == LANE_RUN && s.is_a && (s.ending || due))
        lane_drain(l);
    if (l->state == LANE_RUN)
        work_post(l);
    if (l->state == LANE_DRAIN && !work_outstanding(l)) {
        l->state = LANE_DONE;
        l->progress = now;
        say(l, SAY_DONE);
    }
    if (l->state == LANE_DONE && l->peer_done)
        lane_compare(l);
    else
        watch(l, now);
}

static void received(struct lane *l, const struct ibv_wc *wc)
{
    unsigned index = (unsigned)wc->wr_id;
    bool srq = index < SRQ_RECVS;
    if (srq != l->use_srq || (!srq && l->recvs == 0))
        violation(l, "receive %u is not of this lane, or completes twice", index);
    l->recvs -= !srq;
    if (wc->status == IBV_WC_SUCCESS)
        work_received(l, wc);
    if (srq)
        recv_post(NULL, index);
    else if (wc->status == IBV_WC_SUCCESS)
        recv_post(l, index);
}

static void completion(const struct ibv_wc *wc)
{
    struct lane *l = lane_of_qp(wc->qp_num);
    if (l == NULL)
        violation(NULL, "completion of WR %llx of QP 0x%x, which is not ours",
                  (unsigned long long)wc->wr_id, wc->qp_num);
    if (wc->status != IBV_WC_SUCCESS && !l->closing && !l->broken) {
        l->broken = true;
        printf("broken lane=%u epoch=%llu status=%d at=%.3f text=%s\n", l->index,
               (unsigned long long)l->epoch, wc->status, now_seconds(),
               ibv_wc_status_str(wc->status));
    }
    if ((wc->wr_id & RECV_ID) != 0) {
        received(l, wc);
        return;
    }
    work_completed(l, wc);
    l->progress = now_seconds();
}

unsigned completions_take(void)
{
    struct ibv_wc wc[POLL];
    unsigned all = 0;
    for (unsigned i = 0; i < 2; i++) {
        int n = ibv_poll_cq(s.cq[i], POLL, wc);
        if (n < 0)
            violation(NULL, "poll_cq: %d", n);
        for (int k = 0; k < n; k++)
            completion(&wc[k]);
        all += (unsigned)n;
    }
    return all;
}
