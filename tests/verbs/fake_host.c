/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_host.c: see fake_host.h.
 */
#include "fake_host.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct fake_host fake;
static const struct verbena_share_server *fake_server;

struct verbena_context {
    int unused;
};

/* Stands for every kind of object of the engine. */
struct fake_object {
    unsigned children;
    int number;
    struct fake_object *parent;
};

void fake_reset(void)
{
    memset(&fake, 0, sizeof(fake));
    fake.fail_post_at = UINT32_MAX;
    fake.devices = 2;
    fake.reply_fd = -1;
    fake.device[0] = (struct verbena_device){.name = "vb_eth0",
                                             .netdev = "eth0",
                                             .ifindex = 2,
                                             .node_guid = 0x0211223344556677,
                                             .mtu_bytes = 1500,
                                             .active_mtu_bytes = 1024,
                                             .up = true,
                                             .speed_mbps = 25000};
    fake.device[1] = (struct verbena_device){.name = "vb_lo",
                                             .netdev = "lo",
                                             .ifindex = 1,
                                             .node_guid = 0x0200000000000001,
                                             .mtu_bytes = 65536,
                                             .active_mtu_bytes = 4096,
                                             .up = true,
                                             .loopback = true};
}

static int fake_fail(void)
{
    int err = fake.fail;

    fake.fail = 0;
    return -err;
}

static int fake_new(struct fake_object *parent, int number, void *out)
{
    int err = fake_fail();
    if (err != 0)
        return err;
    struct fake_object *o = calloc(1, sizeof(*o));
    assert_non_null(o);
    o->parent = parent;
    o->number = number;
    if (parent != NULL)
        parent->children++;
    fake.alive++;
    *(void **)out = o;
    return 0;
}

static int fake_free(void *object)
{
    struct fake_object *o = object;

    int err = fake_fail();
    if (err != 0)
        return err;
    if (o->children > 0)
        return -EBUSY;
    if (o->parent != NULL)
        o->parent->children--;
    fake.alive--;
    free(o);
    return 0;
}

void verbena_fork_hook(enum verbena_fork_rank rank, const struct verbena_fork_hook *hook)
{
    (void)rank;
    (void)hook;
}

int verbena_cmd_create(struct verbena_context *ctx, struct verbena_cmd *out)
{
    static uint64_t last;
    assert_non_null(ctx);
    int err = fake_fail();
    if (err != 0)
        return err;
    *out = (struct verbena_cmd){
        .magic = 1, .process = 1, .token = {++last, 7}
    };
    int fd = memfd_create("fake-cmd", MFD_CLOEXEC);
    assert_int_equal(pwrite(fd, out, sizeof(*out), 0), sizeof(*out));
    return fd;
}

int verbena_cmd_read(int fd, struct verbena_cmd *out)
{
    return pread(fd, out, sizeof(*out), 0) == (ssize_t)sizeof(*out) && out->magic == 1 ? 0
                                                                                       : -EINVAL;
}

void verbena_share_serve(const struct verbena_share_server *server)
{
    fake_server = server;
}

void fake_answer(const struct verbena_share_request *q, struct verbena_share_reply *r, int *fd)
{
    while (!fake_server->begin())
        sched_yield();
    fake_server->answer(q, r, fd);
    fake_server->end();
}

static void fake_meanwhile(void)
{
    void (*f)(void) = fake.meanwhile;

    fake.meanwhile = NULL;
    if (f != NULL)
        f();
}

int verbena_share_ask(const struct verbena_cmd *cmd, const struct verbena_share_request *q,
                      struct verbena_share_reply *r, int *fd)
{
    assert_int_equal(q->token[0], cmd->token[0]);
    fake.asked = *q;
    fake.asks++;
    fake_meanwhile();
    *r = fake.reply;
    *fd = fake.ask_fail == 0 && fake.reply_fd >= 0 ? dup(fake.reply_fd) : -1;
    return -fake.ask_fail;
}

int verbena_mapping_of(const void *addr, uint64_t length, struct verbena_mapping *out)
{
    (void)addr;
    (void)length;
    *out = (struct verbena_mapping){1, 2, 3};
    return fake_fail();
}

int verbena_mapping_find(const struct verbena_mapping *m, uint64_t length, bool write, void **out)
{
    (void)m;
    (void)length;
    (void)write;
    *out = fake.found;
    return fake.found != NULL ? 0 : -EOPNOTSUPP;
}

void verbena_mr_describe(const struct mr *mr, struct verbena_region *out)
{
    assert_non_null(mr);
    *out = fake.region;
}

int verbena_device_list(struct verbena_device **out, size_t *n)
{
    int err = fake_fail();
    if (err != 0)
        return err;
    *out = calloc(2, sizeof(**out));
    memcpy(*out, fake.device, sizeof(fake.device));
    *n = fake.devices;
    return 0;
}

int verbena_device_query(struct verbena_context *ctx, struct verbena_device *out)
{
    assert_non_null(ctx);
    *out = fake.device[0];
    return fake_fail();
}

int verbena_open(const char *device_name, const struct verbena_callbacks *cb, void *owner,
                 struct verbena_context **out)
{
    assert_non_null(device_name);
    fake.callbacks = *cb;
    fake.context_owner = owner;
    return fake_new(NULL, 0, out);
}

void verbena_close(struct verbena_context *ctx)
{
    fake_free(ctx);
}

int verbena_gid_query(struct verbena_context *ctx, unsigned index, struct verbena_gid *out)
{
    static const uint8_t addr[FAKE_GIDS][16] = {
        {0xfe, 0x80,       [15] = 1      },
        {          0   }, /* an address that went away */
        { [10] = 0xff,    [11] = 0xff, [12] = 10, [15] = 1},
    };

    assert_non_null(ctx);
    memset(out, 0, sizeof(*out));
    if (index >= VERBENA_GID_TABLE_SIZE)
        return -EINVAL;
    if (index >= FAKE_GIDS || index == 1)
        return -ENODATA;
    memcpy(out->addr.b, addr[index], sizeof(out->addr.b));
    out->ifindex = fake.device[0].ifindex;
    return fake_fail();
}

int verbena_gid_table(struct verbena_context *ctx, struct verbena_gid out[VERBENA_GID_TABLE_SIZE])
{
    for (unsigned i = 0; i < VERBENA_GID_TABLE_SIZE; i++) {
        int err = verbena_gid_query(ctx, i, &out[i]);
        if (err != 0 && err != -ENODATA)
            return err;
    }
    return 0;
}

int verbena_path_local(struct verbena_context *ctx, unsigned gid_index, struct nic_path *path)
{
    struct verbena_gid g;

    int err = verbena_gid_query(ctx, gid_index, &g);
    path->local = g.addr;
    path->scope_id = gid_index == 0 ? g.ifindex : 0;
    return err;
}

int verbena_pd_create(struct verbena_context *ctx, struct pd **out)
{
    assert_non_null(ctx);
    return fake_new(NULL, 0, out);
}

int verbena_pd_destroy(struct verbena_context *ctx, struct pd *pd)
{
    assert_non_null(ctx);
    return fake_free(pd);
}

void verbena_pd_count(struct pd *pd, int children)
{
    ((struct fake_object *)pd)->children += (unsigned)children;
}

int verbena_mr_reg(struct verbena_context *ctx, struct pd *pd, void *addr, uint64_t length,
                   uint64_t iova, unsigned access, struct mr **out)
{
    assert_non_null(ctx);
    (void)addr;
    (void)length;
    fake_meanwhile();
    fake.mr_iova = iova;
    fake.mr_access = access;
    return fake_new((struct fake_object *)pd, 0x1234, out);
}

int verbena_mr_reg_null(struct verbena_context *ctx, struct pd *pd, struct mr **out)
{
    assert_non_null(ctx);
    return fake_new((struct fake_object *)pd, 0x77, out);
}

int verbena_mr_change(struct verbena_context *ctx, struct mr **mr, unsigned change, struct pd *pd,
                      void *addr, uint64_t length, unsigned access)
{
    struct fake_object *o = (struct fake_object *)*mr;

    assert_non_null(ctx);
    (void)addr;
    (void)length;
    int err = fake_fail();
    if (err != 0)
        return err;
    fake.mr_change = change;
    fake.mr_access = access;
    if (change & MR_CHANGE_PD) {
        o->parent->children--;
        o->parent = (struct fake_object *)pd;
        o->parent->children++;
    }
    if (change & MR_CHANGE_TRANSLATION)
        o->number++;
    return 0;
}

int verbena_mr_prefetch(struct verbena_context *ctx, const struct pd *pd, const struct nic_sge *sge,
                        int num_sge, bool write)
{
    assert_non_null(ctx);
    assert_non_null(pd);
    (void)sge;
    fake.advised = write ? -num_sge : num_sge;
    return fake_fail();
}

int verbena_mw_create(struct verbena_context *ctx, struct pd *pd, int type, struct mw **out)
{
    assert_non_null(ctx);
    return type != 1 && type != 2 ? -EINVAL : fake_new((struct fake_object *)pd, 0x123400fe, out);
}

uint32_t verbena_mw_key(struct mw *mw)
{
    return (uint32_t)((const struct fake_object *)mw)->number;
}

int verbena_mw_destroy(struct verbena_context *ctx, struct mw *mw)
{
    assert_non_null(ctx);
    return fake_free(mw);
}

uint32_t verbena_mr_key(const struct mr *mr)
{
    return (uint32_t)((const struct fake_object *)mr)->number;
}

int verbena_mr_dereg(struct verbena_context *ctx, struct mr *mr)
{
    assert_non_null(ctx);
    return fake_free(mr);
}

int verbena_cq_create(struct verbena_context *ctx, int cqe, void *owner, struct cq **out)
{
    assert_non_null(ctx);
    fake.cq_owner = owner;
    return fake_new(NULL, cqe + 1, out);
}

int verbena_cq_capacity(const struct cq *cq)
{
    return ((const struct fake_object *)cq)->number;
}

int verbena_cq_resize(struct verbena_context *ctx, struct cq *cq, int cqe)
{
    assert_non_null(ctx);
    int err = fake_fail();
    if (err == 0)
        ((struct fake_object *)cq)->number = cqe + 1;
    return err;
}

int verbena_cq_moderate(struct verbena_context *ctx, struct cq *cq, uint32_t count,
                        uint32_t period_us)
{
    assert_non_null(ctx);
    assert_non_null(cq);
    fake.moderation = (uint64_t)count << 32 | period_us;
    return fake_fail();
}

int verbena_cq_destroy(struct verbena_context *ctx, struct cq *cq)
{
    assert_non_null(ctx);
    return fake_free(cq);
}

int verbena_cq_poll(struct verbena_context *ctx, struct cq *cq, int max, struct nic_wc *out)
{
    int n = 0;

    assert_non_null(ctx);
    assert_non_null(cq);
    if (max > fake.largest_poll)
        fake.largest_poll = max;
    int err = fake_fail();
    if (err != 0)
        return err;
    for (; n < max && fake.wcs > 0; n++) {
        out[n] = fake.wc[0];
        memmove(fake.wc, fake.wc + 1, --fake.wcs * sizeof(fake.wc[0]));
    }
    return n;
}

int verbena_cq_arm(struct verbena_context *ctx, struct cq *cq, bool solicited_only)
{
    assert_non_null(ctx);
    assert_non_null(cq);
    fake.armed_solicited = solicited_only;
    return fake_fail();
}

int verbena_srq_create(struct verbena_context *ctx, struct pd *pd, uint32_t *max_wr,
                       uint32_t *max_sge, uint32_t limit, void *owner, struct srq **out)
{
    assert_non_null(ctx);
    fake.srq_owner = owner;
    fake.srq_limit = limit;
    *max_wr += 1;
    *max_sge += 1;
    return fake_new((struct fake_object *)pd, (int)*max_wr, out);
}

int verbena_xrc_srq_create(struct verbena_context *ctx, struct pd *pd, struct xrcd *xrcd,
                           struct cq *cq, uint32_t *max_wr, uint32_t *max_sge, void *owner,
                           struct srq **out)
{
    assert_non_null(xrcd);
    assert_non_null(cq);
    return verbena_srq_create(ctx, pd, max_wr, max_sge, 0, owner, out);
}

uint32_t verbena_xrc_srq_number(const struct srq *srq)
{
    return 0x80000 | (uint32_t)((const struct fake_object *)srq)->number;
}

int verbena_xrcd_open(struct verbena_context *ctx, int fd, int flags, struct xrcd **out)
{
    fake.xrcd_fd = fd;
    fake.xrcd_flags = flags;
    return fake_new((struct fake_object *)ctx, 0, out);
}

int verbena_xrcd_close(struct verbena_context *ctx, struct xrcd *xrcd)
{
    assert_non_null(ctx);
    return fake_free(xrcd);
}

int verbena_srq_destroy(struct verbena_context *ctx, struct srq *srq)
{
    assert_non_null(ctx);
    return fake_free(srq);
}

int verbena_srq_set_limit(struct verbena_context *ctx, struct srq *srq, uint32_t limit)
{
    assert_non_null(ctx);
    assert_non_null(srq);
    fake.srq_limit = limit;
    return fake_fail();
}

int verbena_srq_resize(struct verbena_context *ctx, struct srq *srq, uint32_t *max_wr)
{
    assert_non_null(ctx);
    int err = fake_fail();
    if (err == 0)
        ((struct fake_object *)srq)->number = (int)++*max_wr;
    return err;
}

void verbena_srq_query(struct srq *srq, uint32_t *max_wr, uint32_t *max_sge, uint32_t *limit)
{
    *max_wr = (uint32_t)((struct fake_object *)srq)->number;
    *max_sge = 7;
    *limit = fake.srq_limit;
}

static int fake_post(void)
{
    if (fake.posts == fake.fail_post_at)
        return -fake.fail_post;
    assert_true(fake.posts < FAKE_POSTS);
    return 0;
}

int verbena_srq_post(struct verbena_context *ctx, struct srq *srq, const struct nic_recv_wr *wr)
{
    assert_non_null(srq);
    return verbena_post_recv(ctx, NULL, wr);
}

int verbena_qp_create(struct verbena_context *ctx, struct qp_init *init, struct qp **out)
{
    assert_non_null(ctx);
    fake.qp_owner = init->owner;
    fake.qp_init = *init;
    init->cap.max_send_wr += 3;
    return fake_new((struct fake_object *)init->pd, 0x123456, out);
}

uint32_t verbena_qp_number(const struct qp *qp)
{
    return (uint32_t)((const struct fake_object *)qp)->number;
}

int verbena_qp_modify(struct verbena_context *ctx, struct qp *qp, const struct nic_qp_attr *attr,
                      unsigned mask)
{
    assert_non_null(ctx);
    assert_non_null(qp);
    fake.attr = *attr;
    fake.mask = mask;
    return fake_fail();
}

int verbena_qp_query(struct verbena_context *ctx, struct qp *qp, struct nic_qp_attr *attr,
                     struct nic_qp_cap *cap)
{
    assert_non_null(ctx);
    assert_non_null(qp);
    *attr = fake.attr;
    *cap = fake.qp_init.cap;
    return fake_fail();
}

int verbena_qp_set_ece(struct verbena_context *ctx, struct qp *qp, uint32_t *options)
{
    assert_non_null(ctx);
    assert_non_null(qp);
    fake.ece = *options;
    *options &= 1;
    return fake_fail();
}

int verbena_qp_query_ece(struct verbena_context *ctx, struct qp *qp, uint32_t *options)
{
    assert_non_null(ctx);
    assert_non_null(qp);
    *options = fake.ece;
    return fake_fail();
}

int verbena_qp_destroy(struct verbena_context *ctx, struct qp *qp)
{
    assert_non_null(ctx);
    return fake_free(qp);
}

int verbena_post_send(struct verbena_context *ctx, struct qp *qp, const struct nic_send_wr *wr)
{
    assert_non_null(ctx);
    assert_non_null(qp);
    int err = fake_post();
    if (err == 0)
        fake.sent[fake.posts++] = *wr;
    return err;
}

int verbena_post_recv(struct verbena_context *ctx, struct qp *qp, const struct nic_recv_wr *wr)
{
    assert_non_null(ctx);
    (void)qp;
    int err = fake_post();
    if (err == 0)
        fake.received[fake.posts++] = *wr;
    return err;
}

void verbena_kick(struct verbena_context *ctx)
{
    assert_non_null(ctx);
    fake.kicks++;
}

struct ibv_context *fake_open(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    assert_non_null(list);
    struct ibv_context *ctx = ibv_open_device(list[0]);
    assert_non_null(ctx);
    ibv_free_device_list(list);
    return ctx;
}

void fake_close(struct ibv_context *ctx)
{
    assert_int_equal(ibv_close_device(ctx), 0);
    assert_int_equal(fake.alive, 0);
}

struct ibv_qp *fake_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 2},
    };
    struct ibv_qp *qp = ibv_create_qp(pd, &init);

    assert_non_null(qp);
    return qp;
}

/* One that queries look for, not the first. */
const char *verbena_counter(unsigned index, uint64_t *value)
{
    static const char *const names[] = {"tx_packets", "qkey_viol_cntr", "rx_packets"};

    *value = 1000 + index;
    return index < sizeof(names) / sizeof(names[0]) ? names[index] : NULL;
}

int verbena_mcast_attach(struct verbena_context *ctx, struct qp *qp, const struct net_addr *group)
{
    assert_non_null(ctx);
    assert_non_null(qp);
    fake.group = *group;
    return fake_fail();
}

int verbena_mcast_detach(struct verbena_context *ctx, struct qp *qp, const struct net_addr *group)
{
    return verbena_mcast_attach(ctx, qp, group);
}
