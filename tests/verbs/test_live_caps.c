/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_live_caps.c: case 29, a capability is claimed exactly when it works, each tried on the real
 * library and engine.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "../port/private_net.h"
#include "../skips.h"
#include "live_rig.h"
#include "verbs/verbs_newer.h"

static bool own_net;

/* Each tries one thing: true when it works, false when it is refused in the way a program expects;
 * fails the test when it does neither. */
static bool refused(int err)
{
    assert_true(err == EOPNOTSUPP || err == EINVAL);
    return false;
}

static bool null_result(const void *object)
{
    assert_null(object);
    return refused(errno);
}

static struct ibv_qp *qp_in_init(struct rig *r)
{
    struct ibv_qp_init_attr init = rig_qp_init(r);
    struct ibv_qp *qp = ibv_create_qp(r->pd, &init);

    assert_non_null(qp);
    assert_int_equal(rig_to_init(qp), 0);
    return qp;
}

static bool works(int err)
{
    return err == 0 ? true : refused(err);
}

/* RTR to RTS with an attribute more. */
static bool rts_with(struct rig *r, struct ibv_qp_attr more, int mask)
{
    struct ibv_qp *qp = qp_in_init(r);
    struct ibv_qp_attr rtr = rig_rtr_attr(r, qp->qp_num), rts = rig_rts_attr();

    assert_int_equal(ibv_modify_qp(qp, &rtr, rig_rtr_mask), 0);
    rts.cur_qp_state = more.cur_qp_state;
    rts.path_mig_state = more.path_mig_state;
    rts.alt_ah_attr = rtr.ah_attr;
    rts.rate_limit = more.rate_limit;
    rts.cap = rig_qp_init(r).cap;
    bool good = works(ibv_modify_qp(qp, &rts, rig_rts_mask | mask));
    assert_int_equal(ibv_destroy_qp(qp), 0);
    return good;
}

static bool try_current_state(struct rig *r)
{
    return rts_with(r, (struct ibv_qp_attr){.cur_qp_state = IBV_QPS_RTR}, IBV_QP_CUR_STATE);
}

static bool try_migration(struct rig *r)
{
    bool path = rts_with(r, (struct ibv_qp_attr){0}, IBV_QP_ALT_PATH);
    bool state =
        rts_with(r, (struct ibv_qp_attr){.path_mig_state = IBV_MIG_REARM}, IBV_QP_PATH_MIG_STATE);
    return path || state;
}

static bool try_qp_resize(struct rig *r)
{
    return rts_with(r, (struct ibv_qp_attr){0}, IBV_QP_CAP);
}

/* Another port in SQD: there is only one. */
static bool try_other_port(struct rig *r)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .port_num = 2};

    rig_close(r);
    rig_connect(r);
    assert_int_equal(ibv_modify_qp(r->qp[0], &attr, IBV_QP_STATE), 0);
    return works(ibv_modify_qp(r->qp[0], &attr, IBV_QP_STATE | IBV_QP_PORT));
}

static void lo_flags(short flags)
{
    struct ifreq f = {.ifr_flags = flags};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    strcpy(f.ifr_name, "lo");
    assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &f), 0);
    close(fd);
}

static void expect_event(struct rig *r, enum ibv_event_type type)
{
    struct pollfd p = {.fd = r->ctx->async_fd, .events = POLLIN};
    struct ibv_async_event event;

    do {
        assert_int_equal(poll(&p, 1, RIG_WAIT_MS), 1);
        assert_int_equal(ibv_get_async_event(r->ctx, &event), 0);
        ibv_ack_async_event(&event);
    } while (event.event_type != type);
}

static bool try_port_event(struct rig *r)
{
    if (!own_net)
        return true; /* not with the machine's own interface */
    lo_flags(0);
    expect_event(r, IBV_EVENT_PORT_ERR);
    lo_flags(IFF_UP);
    expect_event(r, IBV_EVENT_PORT_ACTIVE);
    return true;
}

static bool try_image_guid(struct rig *r)
{
    struct ibv_device_attr attr;

    assert_int_equal(ibv_query_device(r->ctx, &attr), 0);
    return attr.sys_image_guid != 0;
}

/* A SEND without a receive waits; it is done when the receive is there. */
static bool try_rnr(struct rig *r)
{
    rig_close(r);
    rig_connect(r);
    struct ibv_sge sge = rig_sge(r, 0, 8);
    struct ibv_send_wr wr = {.wr_id = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .sg_list = &sge,
                             .num_sge = 1},
                       *bad;
    assert_int_equal(ibv_post_send(r->qp[0], &wr, &bad), 0);
    rig_expect_none(r);
    rig_recv(r, r->qp[1], 2, 64, 8);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rig_wait(r).status, IBV_WC_SUCCESS);
    return true;
}

static bool try_srq_resize(struct rig *r)
{
    struct ibv_srq_init_attr init = {
        .attr = {.max_wr = 4, .max_sge = 1}
    };
    struct ibv_srq_attr attr = {.max_wr = 50};
    struct ibv_srq *srq = ibv_create_srq(r->pd, &init);
    int err = ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);

    assert_int_equal(ibv_destroy_srq(srq), 0);
    return works(err) && attr.max_wr >= 50;
}

/* Is the window there once it is bound, as far as this QP's peer can tell? */
static bool window_serves(struct rig *r, unsigned side, uint32_t key)
{
    struct ibv_sge sge = rig_sge(r, 64, 8);
    struct ibv_send_wr *bad, wr = {
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                             };
    wr.wr.rdma.remote_addr = (uintptr_t)r->buf;
    wr.wr.rdma.rkey = key;
    assert_int_equal(ibv_post_send(r->qp[side], &wr, &bad), 0);
    return rig_wait(r).status == IBV_WC_SUCCESS;
}

static bool try_window(struct rig *r, enum ibv_mw_type type, bool by_invalidate, bool other_qp)
{
    rig_close(r);
    rig_connect(r);
    errno = 0;
    struct ibv_mw *mw = ibv_alloc_mw(r->pd, type);
    if (mw == NULL)
        return refused(errno);
    struct ibv_mr *mr = ibv_reg_mr(r->pd, r->buf, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    assert_non_null(mr);
    struct ibv_mw_bind_info info = {mr, (uintptr_t)r->buf, 64, IBV_ACCESS_REMOTE_WRITE};
    struct ibv_mw_bind bind = {1, IBV_SEND_SIGNALED, info};
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
    uint32_t key = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = key;
    wr.bind_mw.bind_info = info;
    if (type == IBV_MW_TYPE_1) {
        assert_int_equal(ibv_bind_mw(r->qp[1], mw, &bind), 0);
        key = mw->rkey;
    } else {
        assert_int_equal(ibv_post_send(r->qp[1], &wr, &bad), 0);
    }
    assert_int_equal(rig_wait(r).status, IBV_WC_SUCCESS);
    bool good = window_serves(r, other_qp ? 1 : 0, key);
    if (good && by_invalidate) {
        wr = (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_INV,
                                  .send_flags = IBV_SEND_SIGNALED,
                                  .invalidate_rkey = key};
        rig_recv(r, r->qp[1], 1, 64, 8);
        assert_int_equal(ibv_post_send(r->qp[0], &wr, &bad), 0);
        good = rig_wait(r).status == IBV_WC_SUCCESS && rig_wait(r).status == IBV_WC_SUCCESS;
        good = good && !window_serves(r, 0, key);
    }
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    return good;
}

static bool try_window_1(struct rig *r)
{
    return try_window(r, IBV_MW_TYPE_1, false, false);
}

/* Of type 2A a window would serve every QP of that number; of 2B only the one, in its domain. */
static bool try_window_2b(struct rig *r)
{
    return try_window(r, IBV_MW_TYPE_2, false, false) && !try_window(r, IBV_MW_TYPE_2, false, true);
}

static bool try_invalidate(struct rig *r)
{
    return try_window(r, IBV_MW_TYPE_2, true, false);
}

/* A device says which of 2A and 2B it has, never both. */
static bool try_window_2a(struct rig *r)
{
    return !try_window_2b(r);
}

static bool try_xrc(struct rig *r)
{
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
    struct ibv_qp_init_attr init = rig_qp_init(r);

    struct ibv_xrcd *xrcd = ibv_open_xrcd(r->ctx, &attr);
    init.qp_type = IBV_QPT_XRC_SEND;
    struct ibv_qp *qp = ibv_create_qp(r->pd, &init);
    return xrcd != NULL && qp != NULL && ibv_destroy_qp(qp) == 0 && ibv_close_xrcd(xrcd) == 0;
}

static bool try_flow(struct rig *r)
{
    struct ibv_flow_attr attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(attr), .port = 1};
    struct ibv_qp *qp = qp_in_init(r);

    errno = 0;
    bool good = null_result(ibv_create_flow(qp, &attr));
    assert_int_equal(ibv_destroy_qp(qp), 0);
    return good;
}

static bool try_raw(struct rig *r)
{
    struct ibv_qp_init_attr init = rig_qp_init(r);

    init.qp_type = IBV_QPT_RAW_PACKET;
    errno = 0;
    return null_result(ibv_create_qp(r->pd, &init));
}

/* A handle of a port that the QP does not have. */
static bool try_foreign_port(struct rig *r)
{
    struct ibv_ah_attr attr = rig_rtr_attr(r, 0).ah_attr;

    attr.port_num = 2;
    errno = 0;
    return ibv_create_ah(r->pd, &attr) == NULL && errno == EINVAL;
}

static bool try_bad_qkey(struct rig *r)
{
    struct ibv_port_attr before, after;
    struct ibv_qp *qp = rig_datagram(r);
    struct ibv_ah_attr attr = rig_rtr_attr(r, 0).ah_attr;
    struct ibv_ah *ah = ibv_create_ah(r->pd, &attr);
    struct ibv_send_wr *bad, wr = {
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.ud = {ah, qp->qp_num, RIG_QKEY + 1},
    };

    assert_int_equal(ibv_query_port(r->ctx, 1, &before), 0);
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
    assert_int_equal(rig_wait(r).status, IBV_WC_SUCCESS);
    rig_expect_none(r);
    assert_int_equal(ibv_query_port(r->ctx, 1, &after), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    return after.qkey_viol_cntr == before.qkey_viol_cntr + 1;
}

static bool try_multicast(struct rig *r)
{
    union ibv_gid group = {
        .raw = {0xff, 0x12}
    };
    struct ibv_qp *qp = qp_in_init(r);
    bool good = works(ibv_attach_mcast(qp, &group, 0));

    assert_int_equal(ibv_destroy_qp(qp), 0);
    return good;
}

static bool try_region(struct rig *r, unsigned access)
{
    struct ibv_mr *mr = ibv_reg_mr(r->pd, r->buf, 64, (int)access);

    return mr == NULL ? null_result(mr) : works(ibv_dereg_mr(mr));
}

static bool try_operation(struct rig *r, uint64_t operation)
{
    struct ibv_qp_init_attr_ex init = {
        .qp_type = IBV_QPT_RC,
        .send_cq = r->cq,
        .recv_cq = r->cq,
        .cap = rig_qp_init(r).cap,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = r->pd,
        .send_ops_flags = operation,
    };
    struct ibv_qp *qp = ibv_create_qp_ex(r->ctx, &init);

    return qp == NULL ? null_result(qp) : works(ibv_destroy_qp(qp));
}

/* What they do is tried in test_live_placement.c. */
static bool try_visibility(struct rig *r)
{
    return try_region(r, NEWER_ACCESS_FLUSH_GLOBAL) && try_operation(r, NEWER_QP_EX_WITH_FLUSH);
}

static bool try_persistence(struct rig *r)
{
    return try_region(r, NEWER_ACCESS_FLUSH_PERSISTENT);
}

static bool try_atomic_write(struct rig *r)
{
    return try_operation(r, IBV_QP_EX_WITH_ATOMIC_WRITE);
}

static const struct {
    uint64_t flag;
    bool (*tried)(struct rig *r);
} flags[] = {
    {IBV_DEVICE_RESIZE_MAX_WR,         try_qp_resize    },
    {IBV_DEVICE_RAW_MULTI,             try_multicast    },
    {IBV_DEVICE_AUTO_PATH_MIG,         try_migration    },
    {IBV_DEVICE_CHANGE_PHY_PORT,       try_other_port   },
    {IBV_DEVICE_CURR_QP_STATE_MOD,     try_current_state},
    {IBV_DEVICE_PORT_ACTIVE_EVENT,     try_port_event   },
    {IBV_DEVICE_SYS_IMAGE_GUID,        try_image_guid   },
    {IBV_DEVICE_RC_RNR_NAK_GEN,        try_rnr          },
    {IBV_DEVICE_SRQ_RESIZE,            try_srq_resize   },
    {IBV_DEVICE_MEM_WINDOW,            try_window_1     },
    {IBV_DEVICE_MEM_WINDOW_TYPE_2A,    try_window_2a    },
    {IBV_DEVICE_MEM_WINDOW_TYPE_2B,    try_window_2b    },
    {IBV_DEVICE_MEM_MGT_EXTENSIONS,    try_invalidate   },
    {IBV_DEVICE_UD_AV_PORT_ENFORCE,    try_foreign_port },
    {IBV_DEVICE_BAD_QKEY_CNTR,         try_bad_qkey     },
    {IBV_DEVICE_XRC,                   try_xrc          },
    {IBV_DEVICE_RAW_IP_CSUM,           try_raw          },
    {IBV_DEVICE_MANAGED_FLOW_STEERING, try_flow         },
    {NEWER_DEVICE_FLUSH_GLOBAL,        try_visibility   },
    {NEWER_DEVICE_FLUSH_PERSISTENT,    try_persistence  },
    {NEWER_DEVICE_ATOMIC_WRITE,        try_atomic_write },
};
/* Flags that no verb could try: nothing here is behind them. */
enum {
    NEVER = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_SHUTDOWN_PORT | IBV_DEVICE_INIT_TYPE |
            IBV_DEVICE_N_NOTIFY_CQ | IBV_DEVICE_RC_IP_CSUM | IBV_DEVICE_UD_IP_CSUM,
};

/* Every flag of the device is in the table, and claimed exactly when what it stands for works. */
static void case_29__flags(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_device_attr_ex attr;
    uint64_t known = 0;

    rig_open(&r);
    assert_int_equal(ibv_query_device_ex(r.ctx, NULL, &attr), 0);
    uint64_t claimed = attr.device_cap_flags_ex;
    assert_int_equal((uint32_t)claimed, attr.orig_attr.device_cap_flags);
    for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        known |= flags[i].flag;
        if (((claimed & flags[i].flag) != 0) != flags[i].tried(&r))
            fail_msg("flag %#" PRIx64 " is %s", flags[i].flag,
                     claimed & flags[i].flag ? "claimed, what it says does not work"
                                             : "not claimed, yet what it says works");
    }
    assert_int_equal(claimed & ~known, 0);
    assert_int_equal(claimed & NEVER, 0);
    rig_close(&r);
}

/* Sizes of 0 claim nothing, and what they stand for is refused. */
static void case_29__sizes(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_device_attr_ex attr;

    rig_open(&r);
    assert_int_equal(ibv_query_device_ex(r.ctx, NULL, &attr), 0);
    assert_int_equal(attr.orig_attr.max_raw_ethy_qp + attr.orig_attr.max_raw_ipv6_qp, 0);
    assert_int_equal(attr.tm_caps.max_num_tags, 0);
    struct ibv_srq_init_attr_ex srq = {
        .attr = {.max_wr = 4, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
        .srq_type = IBV_SRQT_TM,
        .pd = r.pd,
    };
    errno = 0;
    assert_false(null_result(ibv_create_srq_ex(r.ctx, &srq)));
    assert_int_equal(attr.max_wq_type_rq, 0);
    struct ibv_wq_init_attr wq = {
        .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = r.pd, .cq = r.cq};
    errno = 0;
    assert_false(null_result(ibv_create_wq(r.ctx, &wq)));
    struct ibv_modify_cq_attr moderate = {.attr_mask = IBV_CQ_ATTR_MODERATE};
    moderate.moderate.cq_count = attr.cq_mod_caps.max_cq_count;
    moderate.moderate.cq_period = attr.cq_mod_caps.max_cq_period;
    assert_int_equal(moderate.moderate.cq_count, UINT16_MAX);
    assert_int_equal(moderate.moderate.cq_period, UINT16_MAX);
    assert_true(works(ibv_modify_cq(r.cq, &moderate)));
    moderate.attr_mask = 0;
    assert_false(works(ibv_modify_cq(r.cq, &moderate)));
    assert_int_equal(attr.tso_caps.max_tso | attr.tso_caps.supported_qpts, 0);
    assert_int_equal(attr.pci_atomic_caps.fetch_add | attr.pci_atomic_caps.swap |
                         attr.pci_atomic_caps.compare_swap,
                     0);
    assert_int_equal(attr.raw_packet_caps, 0);
    rig_close(&r);
}

static uint64_t raw_clock(struct ibv_context *ctx)
{
    struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

    assert_int_equal(ibv_query_rt_values_ex(ctx, &v), 0);
    return (uint64_t)v.raw_clock.tv_sec * 1000000000 + (uint64_t)v.raw_clock.tv_nsec;
}

static uint64_t wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* A completion's time lies between looks at the clocks before the request and after it was seen;
 * so does that of what is flushed long after. */
static void check_stamp(struct ibv_cq_ex *cq, uint64_t raw, uint64_t wall)
{
    enum { SLACK_NS = 5000000 }; /* between two clocks, which are not read at once */
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_cq *plain = ibv_cq_ex_to_cq(cq);
    int status = ibv_start_poll(cq, &attr);

    for (int i = 0; status == ENOENT && i < RIG_WAIT_MS; i++) {
        poll(NULL, 0, 1);
        status = ibv_start_poll(cq, &attr);
    }
    assert_int_equal(status, 0);
    assert_in_range(ibv_wc_read_completion_ts(cq), raw, raw_clock(plain->context));
    assert_in_range(ibv_wc_read_completion_wallclock_ns(cq), wall - SLACK_NS, wall_ns() + SLACK_NS);
    ibv_end_poll(cq);
}

static void case_29__timestamps(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_device_attr_ex attr;
    struct ibv_cq_init_attr_ex init = {
        .cqe = 8,
        .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
    };

    rig_open(&r);
    assert_int_equal(ibv_query_device_ex(r.ctx, NULL, &attr), 0);
    assert_int_equal(attr.completion_timestamp_mask, UINT64_MAX);
    assert_int_equal(attr.hca_core_clock, 1000000);
    struct ibv_cq_ex *cq = ibv_create_cq_ex(r.ctx, &init);
    assert_non_null(cq);
    struct ibv_qp_init_attr qp_init = rig_qp_init(&r);
    qp_init.send_cq = qp_init.recv_cq = ibv_cq_ex_to_cq(cq);
    qp_init.qp_type = IBV_QPT_UD;
    struct ibv_qp *ud = ibv_create_qp(r.pd, &qp_init);
    assert_non_null(ud);
    rig_ready(ud);
    struct ibv_ah_attr path = rig_rtr_attr(&r, 0).ah_attr;
    struct ibv_ah *ah = ibv_create_ah(r.pd, &path);
    assert_non_null(ah);
    struct ibv_sge sge = rig_sge(&r, 0, 8);
    struct ibv_send_wr wr =
                           {
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED,
                               .sg_list = &sge,
                               .num_sge = 1,
                               .wr.ud = {ah, ud->qp_num, RIG_QKEY}
    },
                       *bad;
    uint64_t raw = raw_clock(r.ctx), wall = wall_ns();
    rig_recv(&r, ud, 2, 64, 64);
    rig_recv(&r, ud, 3, 64, 64);
    assert_int_equal(ibv_post_send(ud, &wr, &bad), 0);
    for (unsigned i = 0; i < 2; i++)
        check_stamp(cq, raw, wall);
    poll(NULL, 0, 50);
    raw = raw_clock(r.ctx);
    wall = wall_ns();
    struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
    assert_int_equal(ibv_modify_qp(ud, &err, IBV_QP_STATE), 0);
    check_stamp(cq, raw, wall);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_qp(ud), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
    rig_close(&r);
}

/* What has no size or flag, and is not here, is refused as well. */
static void case_29__not_offered(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_counters_init_attr counters = {0};
    struct ibv_flow_action_esp_attr esp = {0};

    rig_open(&r);
    errno = 0;
    assert_false(null_result(ibv_create_counters(r.ctx, &counters)));
    errno = 0;
    assert_false(null_result(ibv_create_flow_action_esp(r.ctx, &esp)));
    errno = 0;
    assert_false(null_result(ibv_reg_dmabuf_mr(r.pd, 0, 64, 0, 0, IBV_ACCESS_LOCAL_WRITE)));
    rig_close(&r);
}

/* What the sizes over 0 promise is given: SGEs and WRs up to there, one more is refused. */
static void case_29__limits(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_device_attr dev;

    rig_open(&r);
    assert_int_equal(ibv_query_device(r.ctx, &dev), 0);
    struct ibv_qp_init_attr init = rig_qp_init(&r);
    init.cap.max_send_sge = init.cap.max_recv_sge = (uint32_t)dev.max_sge;
    init.cap.max_send_wr = init.cap.max_recv_wr = (uint32_t)dev.max_qp_wr;
    struct ibv_qp *qp = ibv_create_qp(r.pd, &init);
    assert_non_null(qp);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    for (unsigned i = 0; i < 4; i++) {
        init = rig_qp_init(&r);
        *(i == 0   ? &init.cap.max_send_sge
          : i == 1 ? &init.cap.max_recv_sge
          : i == 2 ? &init.cap.max_send_wr
                   : &init.cap.max_recv_wr) = (uint32_t)(i < 2 ? dev.max_sge : dev.max_qp_wr) + 1;
        errno = 0;
        assert_false(null_result(ibv_create_qp(r.pd, &init)));
    }
    struct ibv_srq_init_attr srq_init = {
        .attr = {.max_wr = (uint32_t)dev.max_srq_wr, .max_sge = (uint32_t)dev.max_srq_sge}
    };
    struct ibv_srq *srq = ibv_create_srq(r.pd, &srq_init);
    assert_non_null(srq);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    struct ibv_qp_attr rts = rig_rts_attr();
    qp = qp_in_init(&r);
    struct ibv_qp_attr rtr = rig_rtr_attr(&r, qp->qp_num);
    rtr.max_dest_rd_atomic = (uint8_t)(dev.max_qp_rd_atom + 1);
    assert_int_equal(ibv_modify_qp(qp, &rtr, rig_rtr_mask), EINVAL);
    rtr.max_dest_rd_atomic = (uint8_t)dev.max_qp_rd_atom;
    assert_int_equal(ibv_modify_qp(qp, &rtr, rig_rtr_mask), 0);
    rts.max_rd_atomic = (uint8_t)(dev.max_qp_init_rd_atom + 1);
    assert_int_equal(ibv_modify_qp(qp, &rts, rig_rts_mask), EINVAL);
    rts.max_rd_atomic = (uint8_t)dev.max_qp_init_rd_atom;
    assert_int_equal(ibv_modify_qp(qp, &rts, rig_rts_mask), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    rig_close(&r);
}

/* Regions and windows, each as many as promised; device memory of the largest size; and which
 * operations work on memory on demand is in test_live_memory. */
static void case_29__memory_limits(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_device_attr_ex dev;
    enum { LEFT = 1 }; /* the rig's own region */

    rig_open(&r);
    assert_int_equal(ibv_query_device_ex(r.ctx, NULL, &dev), 0);
    int windows = dev.orig_attr.max_mw - LEFT;
    struct ibv_mw **mw = calloc((size_t)windows + 2, sizeof(*mw));
    assert_non_null(mw);
    for (int i = 0; i < windows; i++) {
        mw[i] = ibv_alloc_mw(r.pd, IBV_MW_TYPE_1);
        assert_non_null(mw[i]);
    }
    errno = 0;
    assert_null(ibv_alloc_mw(r.pd, IBV_MW_TYPE_1));
    assert_int_equal(errno, ENOMEM);
    for (int i = 0; i < windows; i++)
        assert_int_equal(ibv_dealloc_mw(mw[i]), 0);
    free(mw);
    struct ibv_alloc_dm_attr attr = {.length = dev.max_dm_size};
    struct ibv_dm *dm = ibv_alloc_dm(r.ctx, &attr);
    assert_non_null(dm);
    assert_int_equal(ibv_free_dm(dm), 0);
    attr.length++;
    errno = 0;
    assert_null(ibv_alloc_dm(r.ctx, &attr));
    assert_int_equal(errno, EINVAL);
    rig_close(&r);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void write_all(struct rig *r)
{
    struct ibv_sge sge = rig_sge(r, 0, RIG_BYTES / 2);
    struct ibv_send_wr *bad, wr = {
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                             };
    wr.wr.rdma.remote_addr = (uintptr_t)r->buf + RIG_BYTES / 2;
    wr.wr.rdma.rkey = r->mr->rkey;
    assert_int_equal(ibv_post_send(r->qp[0], &wr, &bad), 0);
    assert_int_equal(rig_wait(r).status, IBV_WC_SUCCESS);
}

/* The smallest and the largest limit are taken, and what is limited takes its time: no sooner than
 * the rate and a burst allow, by half. */
static void case_29__pacing(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_device_attr_ex dev;
    struct ibv_qp_attr got;
    struct ibv_qp_init_attr init;
    enum { KBPS = 2000, BURST = 2048 };

    rig_connect(&r);
    assert_int_equal(ibv_query_device_ex(r.ctx, NULL, &dev), 0);
    assert_true(dev.packet_pacing_caps.supported_qpts & 1u << IBV_QPT_RC);
    struct ibv_qp_rate_limit_attr limit = {.rate_limit = dev.packet_pacing_caps.qp_rate_limit_max};
    assert_int_equal(ibv_modify_qp_rate_limit(r.qp[0], &limit), 0);
    write_all(&r);
    limit.rate_limit = dev.packet_pacing_caps.qp_rate_limit_min;
    assert_int_equal(ibv_modify_qp_rate_limit(r.qp[0], &limit), 0);
    limit = (struct ibv_qp_rate_limit_attr){.rate_limit = KBPS, .max_burst_sz = BURST};
    assert_int_equal(ibv_modify_qp_rate_limit(r.qp[0], &limit), 0);
    assert_int_equal(ibv_query_qp(r.qp[0], &got, IBV_QP_RATE_LIMIT, &init), 0);
    assert_int_equal(got.rate_limit, KBPS);
    uint64_t start = now_ns();
    write_all(&r);
    uint64_t least_ns = UINT64_C(8000000) * (RIG_BYTES / 2 - BURST) / KBPS;
    assert_true(now_ns() - start > least_ns / 2);
    limit.rate_limit = 0;
    assert_int_equal(ibv_modify_qp_rate_limit(r.qp[0], &limit), 0);
    write_all(&r);
    assert_true(rts_with(&r, (struct ibv_qp_attr){.rate_limit = UINT32_MAX}, IBV_QP_RATE_LIMIT));
    limit.comp_mask = 1;
    assert_int_equal(ibv_modify_qp_rate_limit(r.qp[0], &limit), EOPNOTSUPP);
    rig_close(&r);
}

enum { ATOMICS = 400 };

static void post_add(struct rig *r, unsigned side)
{
    struct ibv_sge sge = rig_sge(r, 64 + 8 * side, 8);
    struct ibv_send_wr wr =
                           {
                               .wr_id = side,
                               .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                               .send_flags = IBV_SEND_SIGNALED,
                               .sg_list = &sge,
                               .num_sge = 1,
                               .wr.atomic = {.remote_addr = (uintptr_t)r->buf,
                                             .rkey = r->mr->rkey,
                                             .compare_add = 1}
    },
                       *bad;
    assert_int_equal(ibv_post_send(r->qp[side], &wr, &bad), 0);
}

/* IBV_ATOMIC_HCA: two QPs add to one cell, nothing gets lost; and a swap that does not match. */
static void case_29__atomics(void **state)
{
    (void)state;
    struct rig r;
    struct ibv_device_attr attr;

    rig_connect(&r);
    assert_int_equal(ibv_query_device(r.ctx, &attr), 0);
    assert_int_equal(attr.atomic_cap, IBV_ATOMIC_HCA);
    uint64_t *cell = (uint64_t *)(void *)r.buf;
    for (unsigned side = 0; side < 2; side++)
        for (unsigned i = 0; i < RIG_DEPTH; i++)
            post_add(&r, side);
    for (unsigned i = 0; i < ATOMICS; i++) {
        struct ibv_wc wc = rig_wait(&r);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        if (i < ATOMICS - 2 * RIG_DEPTH)
            post_add(&r, (unsigned)wc.wr_id);
    }
    rig_expect_none(&r);
    assert_int_equal(*cell, ATOMICS);
    for (uint64_t expected = ATOMICS - 1; expected <= ATOMICS; expected++) {
        struct ibv_sge sge = rig_sge(&r, 64, 8);
        struct ibv_send_wr wr =
                               {
                                   .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .wr.atomic = {.remote_addr = (uintptr_t)r.buf,
                                                 .rkey = r.mr->rkey,
                                                 .compare_add = expected,
                                                 .swap = 7}
        },
                           *bad;
        assert_int_equal(ibv_post_send(r.qp[0], &wr, &bad), 0);
        assert_int_equal(rig_wait(&r).status, IBV_WC_SUCCESS);
        assert_int_equal(cell[8], ATOMICS); /* what was there */
        assert_int_equal(*cell, expected == ATOMICS ? 7 : ATOMICS);
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_29__flags),         cmocka_unit_test(case_29__sizes),
        cmocka_unit_test(case_29__timestamps),    cmocka_unit_test(case_29__limits),
        cmocka_unit_test(case_29__memory_limits), cmocka_unit_test(case_29__pacing),
        cmocka_unit_test(case_29__atomics),       cmocka_unit_test(case_29__not_offered),
    };
    ino_t before = private_net_inode();

    private_net_enter();
    own_net = private_net_inode() != before;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
