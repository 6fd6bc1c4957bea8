/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * misuse.c: mistakes on an RC connection get the status that the specification names on the side
 * that made them, and the asynchronous event on the other; memory stays as it was. A row a mistake;
 * each has its own QPs. The client prints TAP. Plain libibverbs.
 */
#include "rc_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REGION = 4096,
    BUFFER_BYTES = 4 * REGION, /* `struct keys` are for the second quarter */
    NO_EVENT = -1,
    NO_RECV = -1,
    EVENT_WAIT_MS = 2000,
    QUIET_MS = 20, /* how long nothing must come where nothing is expected */
};

/* A key that lets the partner do only some things, on REGION .. 2 * REGION. */
struct keys {
    uint32_t narrow, read_only, write_only;
};

struct side {
    struct rc_pair p;
    struct keys theirs;
    struct ibv_mr *narrow, *read_only, *write_only;
};

enum key { ALL, NARROW, READ_ONLY, WRITE_ONLY, WRONG };

enum quirk {
    NONE,
    BAD_LKEY,
    BEYOND_LOCAL, /* the local SGE ends behind the region */
    QP_NO_WRITE,  /* the server's QP has not this right */
    QP_NO_READ,
};

struct row {
    const char *name;
    enum ibv_wr_opcode opcode;
    uint32_t at;    /* offset in the partner's buffer */
    uint32_t bytes; /* of the request */
    enum key key;
    int recv_bytes; /* NO_RECV: the server posts none */
    enum quirk quirk;
    enum ibv_wc_status want;
    int want_recv;  /* error status of the server's receive, or NO_RECV */
    int want_event; /* the server's, or NO_EVENT */
};

#define WRITE  IBV_WR_RDMA_WRITE
#define READ   IBV_WR_RDMA_READ
#define SEND   IBV_WR_SEND
#define ADD    IBV_WR_ATOMIC_FETCH_AND_ADD
#define CAS    IBV_WR_ATOMIC_CMP_AND_SWP
#define OK     IBV_WC_SUCCESS, NO_RECV, NO_EVENT
#define LOCAL  IBV_WC_LOC_PROT_ERR, NO_RECV, NO_EVENT
#define ACCESS IBV_WC_REM_ACCESS_ERR, NO_RECV, IBV_EVENT_QP_ACCESS_ERR
#define INVAL  IBV_WC_REM_INV_REQ_ERR, NO_RECV, IBV_EVENT_QP_REQ_ERR
#define LENGTH IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, IBV_EVENT_QP_REQ_ERR
#define NO_RNR IBV_WC_RNR_RETRY_EXC_ERR, NO_RECV, NO_EVENT

/* clang-format off */
static const struct row rows[] = {
    /* What is allowed, so that the rest can be seen to be refused for its own reason. */
    {"write__whole_region",        WRITE, REGION,          REGION, NARROW,     NO_RECV, NONE, OK},
    {"read__whole_region",         READ,  REGION,          REGION, READ_ONLY,  NO_RECV, NONE, OK},
    {"write__zero_wrong_rkey",     WRITE, 0,               0,      WRONG,      NO_RECV, NONE, OK},
    {"send__fits",                 SEND,  0,               100,    ALL,        100,     NONE, OK},
    {"fetch_add__aligned",         ADD,   REGION,          8,      ALL,        NO_RECV, NONE, OK},

    {"write__wrong_rkey",          WRITE, REGION,          64,     WRONG,      NO_RECV, NONE, ACCESS},
    {"write__before_region",       WRITE, REGION - 1,      64,     NARROW,     NO_RECV, NONE, ACCESS},
    {"write__beyond_region",       WRITE, REGION + 1,      REGION, NARROW,     NO_RECV, NONE, ACCESS},
    {"write__last_byte_beyond",    WRITE, 2 * REGION - 63, 64,     NARROW,     NO_RECV, NONE, ACCESS},
    {"write__read_only_region",    WRITE, REGION,          64,     READ_ONLY,  NO_RECV, NONE, ACCESS},
    {"read__wrong_rkey",           READ,  REGION,          64,     WRONG,      NO_RECV, NONE, ACCESS},
    {"read__beyond_region",        READ,  REGION + 1,      REGION, READ_ONLY,  NO_RECV, NONE, ACCESS},
    {"read__write_only_region",    READ,  REGION,          64,     WRITE_ONLY, NO_RECV, NONE, ACCESS},
    {"fetch_add__no_right",        ADD,   REGION,          8,      NARROW,     NO_RECV, NONE, ACCESS},
    {"fetch_add__wrong_rkey",      ADD,   REGION,          8,      WRONG,      NO_RECV, NONE, ACCESS},
    {"fetch_add__misaligned",      ADD,   REGION + 4,      8,      ALL,        NO_RECV, NONE, INVAL},
    {"cmp_swap__misaligned",       CAS,   REGION + 1,      8,      ALL,        NO_RECV, NONE, INVAL},
    {"write__qp_without_right",    WRITE, REGION,          64,     ALL, NO_RECV, QP_NO_WRITE, INVAL},
    {"read__qp_without_right",     READ,  REGION,          64,     ALL, NO_RECV, QP_NO_READ,  INVAL},
    {"send__one_byte_too_long",    SEND,  0,               101,    ALL, 100,     NONE,        LENGTH},
    {"send__packets_too_long",     SEND,  0,               4000,   ALL, 2000,    NONE,        LENGTH},
    {"send__no_receive",           SEND,  0,               16,     ALL, NO_RECV, NONE,        NO_RNR},
    {"write__wrong_lkey",          WRITE, REGION,          64,     ALL, NO_RECV, BAD_LKEY,    LOCAL},
    {"read__wrong_lkey",           READ,  REGION,          64,     ALL, NO_RECV, BAD_LKEY,    LOCAL},
    {"send__beyond_local_region",  SEND,  0,               64,     ALL, 64,     BEYOND_LOCAL, LOCAL},
};
/* clang-format on */

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static unsigned cases, failures;

static void verdict(const char *name, const char *wrong)
{
    cases++;
    if (wrong[0] == '\0') {
        printf("ok %u - misuse_%s\n", cases, name);
    } else {
        failures++;
        printf("not ok %u - misuse_%s\n# %s\n", cases, name, wrong);
    }
}

/* The next asynchronous event's type, NO_EVENT when none comes in time. */
static int next_event(struct ibv_context *ctx, int wait_ms)
{
    struct pollfd fd = {.fd = ctx->async_fd, .events = POLLIN};
    struct ibv_async_event event;
    if (poll(&fd, 1, wait_ms) != 1)
        return NO_EVENT;
    if (ibv_get_async_event(ctx, &event) != 0)
        return NO_EVENT;
    ibv_ack_async_event(&event);
    return (int)event.event_type;
}

static uint32_t key_of(const struct side *s, const struct row *r)
{
    switch (r->key) {
    case NARROW:
        return s->theirs.narrow;
    case READ_ONLY:
        return s->theirs.read_only;
    case WRITE_ONLY:
        return s->theirs.write_only;
    case WRONG:
        return s->p.theirs.rkey ^ 0x5a5a5a5a;
    case ALL:
        break;
    }
    return s->p.theirs.rkey;
}

/* The mistake, and two Sends behind it, which must be flushed in order. */
static void client_row(struct side *s, const struct row *r, char wrong[200])
{
    struct rc_pair *p = &s->p;
    uint64_t local = (uintptr_t)p->buffer + (r->quirk == BEYOND_LOCAL ? BUFFER_BYTES - 8 : 0);
    struct ibv_sge sge = {local, r->bytes,
                          r->quirk == BAD_LKEY ? p->mr->lkey ^ 0x5a5a5a5a : p->mr->lkey};
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = 1,
                                 .sg_list = &sge,
                                 .num_sge = r->bytes > 0,
                                 .opcode = r->opcode,
                                 .send_flags = IBV_SEND_SIGNALED,
                             };
    if (r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        wr.wr.atomic.remote_addr = p->theirs.addr + r->at;
        wr.wr.atomic.rkey = key_of(s, r);
    } else {
        wr.wr.rdma.remote_addr = p->theirs.addr + r->at;
        wr.wr.rdma.rkey = key_of(s, r);
    }
    if (ibv_post_send(p->qp, &wr, &bad) != 0) {
        snprintf(wrong, 200, "post_send refused it");
        return;
    }
    struct ibv_wc wc = rc_wait(p);
    if (wc.wr_id != 1 || wc.status != r->want) {
        snprintf(wrong, 200, "status %s of WR %llu, wanted %s", ibv_wc_status_str(wc.status),
                 (unsigned long long)wc.wr_id, ibv_wc_status_str(r->want));
        return;
    }
    if (r->want == IBV_WC_SUCCESS)
        return;
    for (uint64_t id = 2; id <= 3; id++)
        rc_post(p, IBV_WR_SEND, id, 0, 0, 8, 0);
    for (uint64_t id = 2; id <= 3; id++) {
        wc = rc_wait(p);
        if (wc.wr_id != id || wc.status != IBV_WC_WR_FLUSH_ERR)
            snprintf(wrong, 200, "WR %llu after the error: %s", (unsigned long long)id,
                     ibv_wc_status_str(wc.status));
    }
}

/* What the server saw: the status of its receive and its event; its memory. */
static void server_row(struct side *s, const struct row *r, char wrong[200])
{
    struct rc_pair *p = &s->p;
    if (r->want_recv != NO_RECV) {
        struct ibv_wc wc = rc_wait(p);
        if ((int)wc.status != r->want_recv)
            snprintf(wrong, 200, "the receive has status %s", ibv_wc_status_str(wc.status));
    }
    int event = next_event(p->ctx, r->want_event == NO_EVENT ? QUIET_MS : EVENT_WAIT_MS);
    if (event != r->want_event)
        snprintf(wrong, 200, "event %s, wanted %s",
                 event == NO_EVENT ? "none" : ibv_event_type_str((enum ibv_event_type)event),
                 r->want_event == NO_EVENT
                     ? "none"
                     : ibv_event_type_str((enum ibv_event_type)r->want_event));
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    enum ibv_qp_state state = r->want_event == NO_EVENT ? IBV_QPS_RTS : IBV_QPS_ERR;
    if (ibv_query_qp(p->qp, &attr, IBV_QP_STATE, &init) != 0 || attr.qp_state != state)
        snprintf(wrong, 200, "the responder's QP is in state %d, wanted %d", attr.qp_state, state);
    for (unsigned i = 0; i < BUFFER_BYTES && r->want != IBV_WC_SUCCESS && r->opcode != IBV_WR_SEND;
         i++)
        if (p->buffer[i] != 0x11)
            snprintf(wrong, 200, "byte %u of the responder was written", i);
}

/* rnr_retry 0, so that a Send without a receive fails at once; rights as the row says. */
static void tune_qp(struct side *s, const struct row *r)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    struct ibv_qp_init_attr init;
    unsigned rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    if (r->quirk == QP_NO_WRITE)
        rights &= ~(unsigned)IBV_ACCESS_REMOTE_WRITE;
    if (r->quirk == QP_NO_READ)
        rights &= ~(unsigned)IBV_ACCESS_REMOTE_READ;
    attr.qp_access_flags = rights;
    if (ibv_modify_qp(s->p.qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS) != 0)
        rc_fail("modify_qp RTS -> RTS with access flags refused");
    if (ibv_query_qp(s->p.qp, &attr, IBV_QP_STATE, &init) != 0 || attr.qp_state != IBV_QPS_RTS)
        rc_fail("the QP is not in RTS");
}

static void run_row(struct side *s, const struct row *r)
{
    struct rc_pair *p = &s->p;
    char wrong[200] = "", theirs[200];
    bool client = p->o.host != NULL;
    p->o.rnr_retry = 0;
    rc_new_qp(p);
    if (!client) {
        memset(p->buffer, 0x11, BUFFER_BYTES);
        tune_qp(s, r);
        if (r->recv_bytes != NO_RECV)
            rc_post_recv(p, 9, 0, (uint32_t)r->recv_bytes);
    }
    rc_barrier(p);
    if (client) {
        client_row(s, r, wrong);
        rc_barrier(p);
        rc_tcp_read(p, theirs, sizeof(theirs));
        verdict(r->name, wrong[0] != '\0' ? wrong : theirs);
    } else {
        rc_barrier(p);
        server_row(s, r, wrong);
        rc_tcp_write(p, wrong, sizeof(wrong));
    }
    rc_destroy_qp(p);
    struct ibv_wc wc;
    while (ibv_poll_cq(p->cq, 1, &wc) > 0)
        ;
    while (next_event(p->ctx, 0) != NO_EVENT)
        ;
}

/* A partner that has gone: retries end, with the time that timeout and retry_cnt give. */
static void run_partner_gone(struct side *s)
{
    struct rc_pair *p = &s->p;
    p->o.timeout = 8; /* 4.096 us x 2^8 = 1 ms */
    p->o.retry_cnt = 3;
    rc_new_qp(p);
    if (p->o.host == NULL)
        rc_destroy_qp(p);
    rc_barrier(p);
    if (p->o.host == NULL) {
        rc_barrier(p);
        return;
    }
    rc_post(p, IBV_WR_RDMA_WRITE, 1, 0, 0, 64, IBV_SEND_SIGNALED);
    struct ibv_wc wc = rc_wait(p);
    verdict("write__partner_gone",
            wc.status == IBV_WC_RETRY_EXC_ERR ? "" : ibv_wc_status_str(wc.status));
    rc_destroy_qp(p);
    rc_barrier(p);
}

/* --- What the caller is told at once; only the client. --- */

static void expect(const char *name, int got, int want)
{
    char wrong[100] = "";
    if (got != want)
        snprintf(wrong, sizeof(wrong), "returned %d, wanted %d", got, want);
    verdict(name, wrong);
}

static int try_send(struct rc_pair *p, unsigned opcode, int sges, uint32_t bytes, unsigned flags)
{
    struct ibv_sge sge[64];
    struct ibv_send_wr *bad = NULL, wr = {.sg_list = sge, .num_sge = sges, .send_flags = flags};
    for (int i = 0; i < 64; i++)
        sge[i] = (struct ibv_sge){(uintptr_t)p->buffer, bytes, p->mr->lkey};
    wr.opcode = (enum ibv_wr_opcode)opcode;
    wr.wr.rdma.remote_addr = p->theirs.addr;
    wr.wr.rdma.rkey = p->theirs.rkey;
    int status = ibv_post_send(p->qp, &wr, &bad);
    return status != 0 && bad != &wr ? -1 : status;
}

static void states(struct rc_pair *p)
{
    struct ibv_qp_init_attr init = {
        .send_cq = p->cq, .recv_cq = p->cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 2, 2, 16}
    };
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    struct ibv_recv_wr *bad, wr = {.wr_id = 1};
    struct ibv_qp *keep = p->qp;
    p->qp = ibv_create_qp(p->pd, &init);
    expect("post_send__state_reset", try_send(p, IBV_WR_SEND, 0, 0, 0), EINVAL);
    expect("post_recv__state_reset", ibv_post_recv(p->qp, &wr, &bad), EINVAL);
    expect("modify_qp__reset_to_rts", ibv_modify_qp(p->qp, &attr, IBV_QP_STATE), EINVAL);
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    expect("modify_qp__init_without_port",
           ibv_modify_qp(p->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS),
           EINVAL);
    attr.port_num = 2;
    expect("modify_qp__init_with_wrong_port",
           ibv_modify_qp(p->qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
           EINVAL);
    attr.port_num = 1;
    expect("modify_qp__init",
           ibv_modify_qp(p->qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
           0);
    expect("post_send__state_init", try_send(p, IBV_WR_SEND, 0, 0, 0), EINVAL);
    expect("post_recv__state_init", ibv_post_recv(p->qp, &wr, &bad), 0);
    attr.qp_state = IBV_QPS_RTR;
    expect("modify_qp__rtr_without_attributes", ibv_modify_qp(p->qp, &attr, IBV_QP_STATE), EINVAL);
    ibv_destroy_qp(p->qp);
    p->qp = keep;
}

static void posting(struct rc_pair *p)
{
    int filled = 0, status;
    expect("post_send__unknown_opcode", try_send(p, 77, 1, 8, 0), EINVAL);
    expect("post_send__too_many_sges", try_send(p, IBV_WR_SEND, 64, 8, 0), EINVAL);
    expect("post_send__inline_too_long", try_send(p, IBV_WR_SEND, 1, 8192, IBV_SEND_INLINE),
           EINVAL);
    /* The queue is full at the latest after the 256 WRs asked for, or somewhat more. */
    while ((status = try_send(p, IBV_WR_RDMA_WRITE, 0, 0, 0)) == 0 && filled < 4096)
        filled++;
    expect("post_send__queue_full", status, ENOMEM);
}

static void objects(struct rc_pair *p)
{
    struct ibv_qp_init_attr init = {.send_cq = p->cq, .recv_cq = p->cq, .qp_type = IBV_QPT_RC};
    struct ibv_device_attr device;
    ibv_query_device(p->ctx, &device);
    errno = 0;
    struct ibv_mr *mr = ibv_reg_mr(p->pd, p->buffer, 64, IBV_ACCESS_REMOTE_WRITE);
    expect("reg_mr__remote_write_without_local", mr == NULL ? errno : 0, EINVAL);
    errno = 0;
    mr = ibv_reg_mr(p->pd, (void *)(uintptr_t)64, 4096, IBV_ACCESS_LOCAL_WRITE);
    expect("reg_mr__memory_not_there", mr == NULL ? errno : 0, EFAULT);
    if (mr != NULL)
        ibv_dereg_mr(mr);
    expect("dealloc_pd__in_use", ibv_dealloc_pd(p->pd), EBUSY);
    expect("destroy_cq__in_use", ibv_destroy_cq(p->cq), EBUSY);
    errno = 0;
    struct ibv_cq *cq = ibv_create_cq(p->ctx, device.max_cqe + 1, NULL, NULL, 0);
    expect("create_cq__too_large", cq == NULL ? errno : 0, EINVAL);
    init.cap.max_send_wr = (uint32_t)device.max_qp_wr + 1;
    errno = 0;
    struct ibv_qp *qp = ibv_create_qp(p->pd, &init);
    expect("create_qp__too_large", qp == NULL ? errno : 0, EINVAL);
    init.cap.max_send_wr = 1;
    init.cap.max_send_sge = (uint32_t)device.max_sge + 1;
    errno = 0;
    qp = ibv_create_qp(p->pd, &init);
    expect("create_qp__too_many_sges", qp == NULL ? errno : 0, EINVAL);
}

/* Two Sends into a CQ of one entry: an event says that it is lost. */
static void overflow(struct side *s)
{
    struct rc_pair *p = &s->p;
    struct ibv_cq *keep = p->cq;
    bool client = p->o.host != NULL;
    int room = 0;
    if (client) {
        p->cq = ibv_create_cq(p->ctx, 1, NULL, NULL, 0);
        if (p->cq == NULL)
            rc_fail("create_cq of 1 entry: %s", strerror(errno));
        room = p->cq->cqe;
    }
    rc_new_qp(p);
    if (client) {
        for (int i = 0; i <= room && i < 200; i++)
            rc_post(p, IBV_WR_RDMA_WRITE, 1, 0, 0, 8, IBV_SEND_SIGNALED);
        int event = next_event(p->ctx, EVENT_WAIT_MS);
        verdict("cq__overflow", event == IBV_EVENT_CQ_ERR ? ""
                                : event == NO_EVENT       ? "no event"
                                                          : "another event");
    }
    rc_barrier(p);
    rc_destroy_qp(p);
    if (client) {
        while (next_event(p->ctx, 0) != NO_EVENT)
            ;
        ibv_destroy_cq(p->cq);
        p->cq = keep;
    }
}

static void make_keys(struct side *s)
{
    struct rc_pair *p = &s->p;
    uint8_t *at = p->buffer + REGION;
    s->narrow = ibv_reg_mr(p->pd, at, REGION, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    s->write_only = ibv_reg_mr(p->pd, at, REGION, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    s->read_only = ibv_reg_mr(p->pd, at, REGION, IBV_ACCESS_REMOTE_READ);
    if (s->narrow == NULL || s->write_only == NULL || s->read_only == NULL)
        rc_fail("reg_mr: %s", strerror(errno));
    struct keys mine = {s->narrow->rkey, s->read_only->rkey, s->write_only->rkey};
    rc_tcp_write(p, &mine, sizeof(mine));
    rc_tcp_read(p, &s->theirs, sizeof(s->theirs));
}

int main(int argc, char **argv)
{
    struct rc_options o = {.bytes = BUFFER_BYTES};
    struct side s = {0};
    rc_options(&o, argc, argv);
    rc_open(&s.p, &o);
    make_keys(&s);
    for (unsigned i = 0; i < ROWS; i++)
        run_row(&s, &rows[i]);
    run_partner_gone(&s);
    overflow(&s);
    s.p.o.timeout = 14;
    rc_new_qp(&s.p);
    if (o.host != NULL) {
        states(&s.p);
        posting(&s.p);
        objects(&s.p);
    }
    rc_barrier(&s.p);
    rc_destroy_qp(&s.p);
    ibv_dereg_mr(s.narrow);
    ibv_dereg_mr(s.read_only);
    ibv_dereg_mr(s.write_only);
    rc_close(&s.p);
    if (o.host != NULL)
        printf("1..%u\n", cases);
    return failures > 0;
}
