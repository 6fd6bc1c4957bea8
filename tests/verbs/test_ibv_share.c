/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_share.c: handles of one object: imported within the process, of another process's
 * object, and what this one tells others.
 */
#include "fake_host.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static uint8_t area[64];

/* A context by the descriptor of another. */
static struct ibv_context *import(const struct ibv_context *from)
{
    int fd = dup(from->cmd_fd);
    struct ibv_context *ctx = ibv_import_device(fd);

    assert_non_null(ctx);
    assert_int_equal(ctx->cmd_fd, fd);
    return ctx;
}

/* A descriptor that another process made. */
static int foreign_fd(uint64_t token)
{
    const struct verbena_cmd cmd = {
        .magic = 1, .process = 9, .token = {token, 5}
    };
    int fd = memfd_create("foreign", MFD_CLOEXEC);

    assert_int_equal(pwrite(fd, &cmd, sizeof(cmd), 0), sizeof(cmd));
    strcpy(fake.reply.device, "vb_lo");
    return fd;
}

static struct ibv_context *import_foreign(void)
{
    struct ibv_context *ctx = ibv_import_device(foreign_fd(UINT64_C(1) << 60));

    assert_non_null(ctx);
    return ctx;
}

static void import_device__refused(void **state)
{
    (void)state;
    int pipe_fd[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);

    assert_int_equal(pipe(pipe_fd), 0);
    const int bad[] = {-1, 1000, null, pipe_fd[0]};
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        errno = 0;
        assert_null(ibv_import_device(bad[i]));
        assert_int_equal(errno, EINVAL);
    }
    int fd = foreign_fd(3);
    static const int errors[] = {ECONNREFUSED, ETIMEDOUT, EMFILE};
    for (unsigned i = 0; i < 3; i++) {
        fake.ask_fail = errors[i];
        assert_null(ibv_import_device(fd));
        assert_int_equal(errno, errors[i]);
    }
    fake.ask_fail = 0;
    fake.reply.err = -EINVAL; /* no such context any more */
    assert_null(ibv_import_device(fd));
    assert_int_equal(errno, EINVAL);
    fake.reply.err = 0;
    strcpy(fake.reply.device, "vb_gone");
    assert_null(ibv_import_device(fd));
    assert_int_equal(errno, ENODEV);
    assert_true(fcntl(fd, F_GETFD) >= 0); /* the program's, still */
    assert_int_equal(fake.alive, 0);
    close(fd);
    close(null);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
}

static unsigned descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static int raced_fd;
static struct ibv_context *raced;

static void import_meanwhile(void)
{
    raced = ibv_import_device(raced_fd);
}

/* Two threads at once: handles of one are known to the other. */
static void import_device__twice_at_once(void **state)
{
    (void)state;
    raced_fd = foreign_fd(4);
    int fd = dup(raced_fd);

    fake.meanwhile = import_meanwhile;
    struct ibv_context *ctx = ibv_import_device(fd);
    assert_non_null(ctx);
    assert_non_null(raced);
    assert_ptr_equal(obj_ctx(ctx)->file, obj_ctx(raced)->file);
    assert_int_equal(ibv_close_device(raced), 0);
    raced_fd = dup(fd);
    unsigned asks = fake.asks;
    import_meanwhile();
    assert_int_equal(fake.asks, asks);
    assert_int_equal(ibv_close_device(raced), 0);
    fake_close(ctx);
}

/* Whoever answers is not believed: neither what it sends along nor that it is another's. */
static void import__odd_replies(void **state)
{
    (void)state;
    int fd = foreign_fd(5);

    fake.reply.err = 1;
    assert_null(ibv_import_device(fd));
    assert_int_equal(errno, EPROTO);
    fake.reply.err = 0;
    fake.reply_fd = memfd_create("along", MFD_CLOEXEC);
    unsigned before = descriptors();
    struct ibv_context *ctx = ibv_import_device(fd);
    assert_non_null(ctx);
    struct ibv_pd *pd = ibv_import_pd(ctx, 7);
    assert_non_null(pd);
    before++; /* that of its events */
    assert_int_equal(descriptors(), before);
    fake.reply.err = 1;
    errno = 0;
    assert_null(ibv_import_pd(ctx, 8));
    assert_int_equal(errno, EPROTO);
    assert_null(ibv_import_mr(pd, 8));
    assert_int_equal(errno, EPROTO);
    assert_null(ibv_import_dm(ctx, 8));
    assert_int_equal(errno, EPROTO);
    assert_int_equal(ibv_dealloc_pd(pd), EPROTO);
    assert_int_equal(descriptors(), before);
    ibv_unimport_pd(pd);
    close(fake.reply_fd);
    fake_close(ctx);
}

/* All handles are of one object: each key is the same, and who destroys it leaves the others dead.
 */
static void import__within_the_process(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open(), *other = import(ctx);
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_mr *mr = ibv_reg_mr(pd, area, sizeof(area), 0);

    fake.region.length = sizeof(area);
    struct ibv_pd *pd2 = ibv_import_pd(other, pd->handle);
    assert_non_null(pd2);
    assert_ptr_equal(pd2->context, other);
    assert_int_equal(pd2->handle, pd->handle);
    assert_ptr_equal(obj_pd(pd2)->pd, obj_pd(pd)->pd);
    struct ibv_mr *mr2 = ibv_import_mr(pd2, mr->handle);
    assert_non_null(mr2);
    assert_null(mr2->addr);
    assert_int_equal(mr2->length, sizeof(area));
    assert_int_equal(mr2->rkey, mr->rkey);
    assert_ptr_equal(mr2->pd, pd2);
    assert_int_equal(fake.asks, 0);
    assert_int_equal(
        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, area, sizeof(area) / 2, 0), 0);
    assert_ptr_equal(((struct ibv_mr_obj *)mr)->share.object,
                     ((struct ibv_mr_obj *)mr2)->share.object);
    ibv_unimport_mr(mr2);
    assert_int_equal(fake.alive, 4); /* contexts, domain, region */
    mr2 = ibv_import_mr(pd2, mr->handle);
    assert_int_equal(ibv_dereg_mr(mr2), 0);
    assert_int_equal(fake.alive, 3);
    assert_int_equal(ibv_dereg_mr(mr), EINVAL);
    assert_null(ibv_import_mr(pd2, mr->handle));
    assert_int_equal(errno, EINVAL);
    ibv_unimport_mr(mr);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_dealloc_pd(pd2), EINVAL);
    ibv_unimport_pd(pd2);
    assert_int_equal(ibv_close_device(other), 0);
    fake_close(ctx);
}

static void import__numbers_that_nobody_has(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open(), *other = import(ctx), *stranger = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx), *own = ibv_alloc_pd(stranger);
    struct ibv_mr *mr = ibv_reg_mr(pd, area, 8, 0);

    errno = 0;
    assert_null(ibv_import_pd(other, pd->handle + 100));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_import_pd(other, mr->handle)); /* of another kind */
    assert_null(ibv_import_mr(pd, pd->handle));
    assert_null(ibv_import_dm(other, pd->handle));
    assert_null(ibv_import_pd(stranger, mr->handle));
    assert_null(ibv_import_mr(own, mr->handle)); /* another descriptor's */
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_dealloc_pd(own), 0);
    assert_int_equal(ibv_close_device(other), 0);
    assert_int_equal(ibv_close_device(stranger), 0);
    fake_close(ctx);
}

/* Objects made in an imported context have numbers of the same row; destroyed ones come back when
 * the engine refuses. */
static void destroy__refused(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open(), *other = import(ctx);
    struct ibv_pd *pd = ibv_alloc_pd(other), *more = ibv_alloc_pd(ctx);

    assert_int_not_equal(pd->handle, more->handle);
    struct ibv_pd *pd2 = ibv_import_pd(ctx, pd->handle);
    assert_non_null(pd2);
    fake.fail = EBUSY;
    assert_int_equal(ibv_dealloc_pd(pd2), EBUSY);
    struct ibv_pd *pd3 = ibv_import_pd(ctx, pd->handle);
    assert_non_null(pd3);
    ibv_unimport_pd(pd3);
    assert_int_equal(ibv_dealloc_pd(pd2), 0);
    ibv_unimport_pd(pd);
    assert_int_equal(ibv_dealloc_pd(more), 0);
    assert_int_equal(ibv_close_device(other), 0);
    fake_close(ctx);
}

/* The last handle stays: the object can be imported again. */
static void unimport__the_last(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    uint32_t handle = pd->handle;

    ibv_unimport_pd(pd);
    struct ibv_pd *again = ibv_import_pd(ctx, handle);
    assert_non_null(again);
    ibv_unimport_pd(again);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
}

static void dm__one_memory(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open(), *other = import(ctx);
    struct ibv_alloc_dm_attr attr = {.length = 64};
    struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr), *dm2 = ibv_import_dm(other, dm->handle);
    uint32_t word = 0x12345678, back = 0;

    assert_non_null(dm2);
    assert_int_equal(ibv_memcpy_to_dm(dm, 8, &word, 4), 0);
    assert_int_equal(ibv_memcpy_from_dm(&back, dm2, 8, 4), 0);
    assert_int_equal(back, word);
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_mr *mr = ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED);
    assert_non_null(mr);
    assert_int_equal(ibv_free_dm(dm2), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_free_dm(dm2), 0);
    assert_int_equal(ibv_memcpy_from_dm(&back, dm, 8, 4), EINVAL);
    errno = 0;
    assert_null(ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_free_dm(dm), EINVAL);
    ibv_unimport_dm(dm);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_close_device(other), 0);
    fake_close(ctx);
}

/* Of another process: a copy, whose destruction asks the other, unimporting does not. */
static void foreign__domain(void **state)
{
    (void)state;
    struct ibv_context *ctx = import_foreign();

    struct ibv_pd *pd = ibv_import_pd(ctx, 7);
    assert_non_null(pd);
    assert_int_equal(fake.asked.kind, VERBENA_SHARE_PD);
    assert_int_equal(fake.asked.handle, 7);
    assert_int_equal(fake.asked.destroy, 0);
    unsigned asks = fake.asks;
    ibv_unimport_pd(pd);
    assert_int_equal(fake.asks, asks);
    assert_int_equal(fake.alive, 1);
    pd = ibv_import_pd(ctx, 7);
    struct ibv_pd *twice = ibv_import_pd(ctx, 7); /* of the copy */
    assert_int_equal(fake.asks, asks + 1);
    assert_ptr_equal(obj_pd(twice)->pd, obj_pd(pd)->pd);
    ibv_unimport_pd(pd);
    assert_int_equal(fake.alive, 2);
    ibv_unimport_pd(twice);
    assert_int_equal(fake.alive, 1);
    pd = ibv_import_pd(ctx, 7);
    fake.reply.err = -EBUSY; /* what the other has on it */
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    fake.reply.err = 0;
    fake.ask_fail = ETIMEDOUT;
    assert_int_equal(ibv_dealloc_pd(pd), ETIMEDOUT);
    fake.ask_fail = 0;
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(fake.asked.destroy, 1);
    fake.reply.err = -EINVAL;
    errno = 0;
    assert_null(ibv_import_pd(ctx, 7));
    assert_int_equal(errno, EINVAL);
    fake.reply.err = 0;
    struct ibv_pd *own = ibv_alloc_pd(ctx);
    assert_true(own->handle >= UINT32_C(1) << 31); /* no number of the other's */
    assert_int_equal(ibv_dealloc_pd(own), 0);
    fake_close(ctx);
}

/* The other has died: with it the object, and what is here can go. */
static void foreign__that_has_died(void **state)
{
    (void)state;
    struct ibv_context *ctx = import_foreign();
    struct ibv_pd *pd = ibv_import_pd(ctx, 7);

    fake.ask_fail = ECONNREFUSED;
    fake.fail = EBUSY;
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    errno = 0;
    assert_null(ibv_import_pd(ctx, 7));
    assert_int_equal(errno, ECONNREFUSED);
    fake_close(ctx);
}

static void foreign__region(void **state)
{
    (void)state;
    struct ibv_context *ctx = import_foreign();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);

    fake.reply.memory = VERBENA_SHARE_MAPPED;
    fake.reply.length = sizeof(area);
    fake.reply.iova = 0x1000;
    fake.reply.access = ACCESS_LOCAL_WRITE;
    errno = 0;
    assert_null(ibv_import_mr(pd, 3)); /* not mapped here */
    assert_int_equal(errno, EOPNOTSUPP);
    fake.found = area;
    struct ibv_mr *mr = ibv_import_mr(pd, 3);
    assert_non_null(mr);
    assert_int_equal(fake.mr_iova, 0x1000);
    assert_int_equal(fake.mr_access, ACCESS_LOCAL_WRITE);
    assert_int_equal(mr->handle, 3);
    ibv_unimport_mr(mr);
    fake.reply.memory = VERBENA_SHARE_NULL;
    mr = ibv_import_mr(pd, 3);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(fake.asked.kind, VERBENA_SHARE_MR);
    assert_int_equal(fake.asked.destroy, 1);
    fake.fail = ENOMEM;
    errno = 0;
    assert_null(ibv_import_mr(pd, 3));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
}

/* Of device memory: the descriptor that comes along, and what it says is not believed. */
static void foreign__device_memory(void **state)
{
    (void)state;
    struct ibv_context *ctx = import_foreign();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    int fd = memfd_create("dm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    uint32_t word = 0x0badf00d, back = 0;

    errno = 0;
    assert_null(ibv_import_dm(ctx, 4)); /* no descriptor */
    assert_int_equal(errno, EINVAL);
    fake.reply_fd = fd;
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_null(ibv_import_dm(ctx, 4)); /* nothing behind it */
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_int_equal(pwrite(fd, &word, 4, 16), 4);
    int unsealed = memfd_create("dm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(unsealed, 4096), 0);
    fake.reply_fd = unsealed; /* it could shrink under those who touch it */
    fake.reply.memory = VERBENA_SHARE_FD;
    errno = 0;
    assert_null(ibv_import_dm(ctx, 4));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_import_mr(pd, 4));
    assert_int_equal(errno, EINVAL);
    close(unsealed);
    fake.reply_fd = fd;
    struct ibv_dm *dm = ibv_import_dm(ctx, 4);
    assert_non_null(dm);
    assert_int_equal(ibv_memcpy_from_dm(&back, dm, 16, 4), 0);
    assert_int_equal(back, word);
    assert_int_equal(ibv_memcpy_from_dm(&back, dm, 4096, 4), EINVAL);
    fake.reply.memory = VERBENA_SHARE_FD;
    static const struct {
        uint64_t offset, length;
        int want;
    } rows[] = {
        {0,    4096,       0     },
        {4000, 96,         0     },
        {4000, 97,         EINVAL},
        {4097, 0,          EINVAL},
        {8,    UINT64_MAX, EINVAL},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake.reply.offset = rows[i].offset;
        fake.reply.length = rows[i].length;
        errno = 0;
        struct ibv_mr *mr = ibv_import_mr(pd, 5);
        assert_int_equal(mr == NULL ? errno : 0, rows[i].want);
        if (mr != NULL)
            ibv_unimport_mr(mr);
    }
    ibv_unimport_dm(dm);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
    close(fd);
}

/* As another process would ask. */
static int asked(const struct verbena_cmd *cmd, uint32_t kind, uint32_t handle, uint32_t destroy,
                 struct verbena_share_reply *r, int *fd)
{
    struct verbena_share_request q = {
        .token = {cmd->token[0], cmd->token[1]},
        .kind = kind,
        .handle = handle,
        .destroy = destroy
    };

    *fd = -1;
    memset(r, 0xff, sizeof(*r));
    fake_answer(&q, r, fd);
    return r->err;
}

static void answer__what_it_is(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_mr *mr = ibv_reg_mr(pd, area, sizeof(area), 0);
    struct ibv_alloc_dm_attr attr = {.length = 64};
    struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);
    struct verbena_cmd cmd, wrong;
    struct verbena_share_reply r;
    int fd;

    assert_int_equal(verbena_cmd_read(ctx->cmd_fd, &cmd), 0);
    assert_int_equal(asked(&cmd, VERBENA_SHARE_DEVICE, 0, 0, &r, &fd), 0);
    assert_string_equal(r.device, "vb_eth0");
    assert_int_equal(asked(&cmd, VERBENA_SHARE_PD, pd->handle, 0, &r, &fd), 0);
    fake.region = (struct verbena_region){.addr = area, .length = 64, .iova = 5, .access = 1};
    assert_int_equal(asked(&cmd, VERBENA_SHARE_MR, mr->handle, 0, &r, &fd), 0);
    assert_int_equal(r.memory, VERBENA_SHARE_MAPPED);
    assert_int_equal(r.mapping.ino, 2);
    assert_int_equal(r.iova, 5);
    assert_int_equal(r.length, 64);
    fake.fail = EOPNOTSUPP; /* private memory */
    assert_int_equal(asked(&cmd, VERBENA_SHARE_MR, mr->handle, 0, &r, &fd), -EOPNOTSUPP);
    fake.region.null = true;
    assert_int_equal(asked(&cmd, VERBENA_SHARE_MR, mr->handle, 0, &r, &fd), 0);
    assert_int_equal(r.memory, VERBENA_SHARE_NULL);
    assert_int_equal(asked(&cmd, VERBENA_SHARE_DM, dm->handle, 0, &r, &fd), 0);
    assert_int_equal(r.memory, VERBENA_SHARE_FD);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 0), -1); /* whoever gets it cannot take it away */
    assert_int_equal(ftruncate(fd, 1 << 20), -1);
    close(fd);
    wrong = cmd;
    wrong.token[1]++;
    const struct {
        const struct verbena_cmd *cmd;
        uint32_t kind, handle, destroy;
    } bad[] = {
        {&wrong, VERBENA_SHARE_DEVICE, 0,               0},
        {&wrong, VERBENA_SHARE_PD,     pd->handle,      0},
        {&wrong, VERBENA_SHARE_PD,     pd->handle,      1},
        {&cmd,   VERBENA_SHARE_DEVICE, 0,               1},
        {&cmd,   VERBENA_SHARE_PD,     mr->handle,      0},
        {&cmd,   VERBENA_SHARE_MR,     dm->handle,      0},
        {&cmd,   VERBENA_SHARE_DM,     pd->handle + 99, 0},
        {&cmd,   4,                    pd->handle,      0},
        {&cmd,   UINT32_MAX,           pd->handle,      1},
    };
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(asked(bad[i].cmd, bad[i].kind, bad[i].handle, bad[i].destroy, &r, &fd),
                         -EINVAL);
        assert_int_equal(fd, -1);
    }
    assert_int_equal(ibv_free_dm(dm), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
    assert_int_equal(asked(&cmd, VERBENA_SHARE_DEVICE, 0, 0, &r, &fd), -EINVAL);
}

/* Another process destroys: what is left here are handles of nothing. */
static void answer__destroys(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_mr *mr = ibv_reg_mr(pd, area, sizeof(area), 0);
    struct verbena_cmd cmd;
    struct verbena_share_reply r;
    int fd;

    assert_int_equal(verbena_cmd_read(ctx->cmd_fd, &cmd), 0);
    assert_int_equal(asked(&cmd, VERBENA_SHARE_PD, pd->handle, 1, &r, &fd), -EBUSY);
    assert_int_equal(asked(&cmd, VERBENA_SHARE_MR, mr->handle, 1, &r, &fd), 0);
    assert_int_equal(asked(&cmd, VERBENA_SHARE_MR, mr->handle, 1, &r, &fd), -EINVAL);
    assert_int_equal(ibv_dereg_mr(mr), EINVAL);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
                     IBV_REREG_MR_ERR_INPUT);
    ibv_unimport_mr(mr);
    assert_int_equal(asked(&cmd, VERBENA_SHARE_PD, pd->handle, 1, &r, &fd), 0);
    assert_int_equal(ibv_dealloc_pd(pd), EINVAL);
    ibv_unimport_pd(pd);
    fake_close(ctx);
}

/* A domain that another process destroyed is no domain to put anything on. */
static void answer__domain_has_gone(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx), *live = ibv_alloc_pd(ctx);
    struct ibv_mr *mr = ibv_reg_mr(live, area, sizeof(area), 0);
    struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
    struct ibv_alloc_dm_attr dm_attr = {.length = 64};
    struct ibv_dm *dm = ibv_alloc_dm(ctx, &dm_attr);
    struct verbena_cmd cmd;
    struct verbena_share_reply r;
    int fd;

    assert_int_equal(verbena_cmd_read(ctx->cmd_fd, &cmd), 0);
    assert_int_equal(asked(&cmd, VERBENA_SHARE_PD, pd->handle, 1, &r, &fd), 0);
    struct ibv_qp_init_attr qp = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1}};
    struct ibv_srq_init_attr srq = {
        .attr = {.max_wr = 1, .max_sge = 1}
    };
    struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};
    struct ibv_parent_domain_init_attr parent = {.pd = pd};
    unsigned alive = fake.alive;
    const void *const made[] = {
        ibv_reg_mr(pd, area, 8, 0),
        ibv_alloc_null_mr(pd),
        ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED),
        ibv_alloc_mw(pd, IBV_MW_TYPE_1),
        ibv_create_qp(pd, &qp),
        ibv_create_srq(pd, &srq),
        ibv_create_ah(pd, &ah),
        ibv_alloc_parent_domain(ctx, &parent),
    };
    for (unsigned i = 0; i < sizeof(made) / sizeof(made[0]); i++)
        assert_null(made[i]);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(fake.alive, alive);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0),
                     IBV_REREG_MR_ERR_INPUT);
    ibv_unimport_pd(pd);
    assert_int_equal(ibv_free_dm(dm), 0); /* no region was left on it */
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(live), 0);
    fake_close(ctx);
}

static struct {
    struct verbena_cmd cmd;
    uint32_t pd, dm;
    int err[2];
} late;

static void destroy_meanwhile(void)
{
    struct verbena_share_reply r;
    int fd;

    late.err[0] = asked(&late.cmd, VERBENA_SHARE_PD, late.pd, 1, &r, &fd);
    late.err[1] = asked(&late.cmd, VERBENA_SHARE_DM, late.dm, 1, &r, &fd);
}

/* Another process destroys what a thread here is just making something on. */
static void answer__in_the_middle(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_alloc_dm_attr attr = {.length = 64};
    struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);

    assert_int_equal(verbena_cmd_read(ctx->cmd_fd, &late.cmd), 0);
    late.pd = pd->handle;
    late.dm = dm->handle;
    fake.meanwhile = destroy_meanwhile;
    struct ibv_mr *mr = ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED);
    assert_non_null(mr);
    assert_int_equal(late.err[0], -EBUSY);
    assert_int_equal(late.err[1], -EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    destroy_meanwhile();
    assert_int_equal(late.err[0], 0);
    assert_int_equal(late.err[1], 0);
    ibv_unimport_dm(dm);
    ibv_unimport_pd(pd);
    fake_close(ctx);
}

enum { COPY_BYTES = 16 << 20 };

static void *copy_on(void *dm)
{
    uint8_t *bytes = calloc(1, COPY_BYTES);
    int err = 0;

    while (err == 0)
        err = ibv_memcpy_to_dm(dm, 0, bytes, COPY_BYTES);
    free(bytes);
    return (void *)(intptr_t)err;
}

static bool dm_mapped(void)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps) != NULL)
        found |= strstr(line, "verbena-dm") != NULL;
    fclose(maps);
    return found;
}

/* Another process frees device memory to which a thread here is copying. */
static void answer__frees_under_a_copy(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        struct ibv_context *ctx = fake_open();
        struct ibv_alloc_dm_attr attr = {.length = COPY_BYTES};
        struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);
        struct verbena_cmd cmd;
        struct verbena_share_reply r;
        pthread_t copier;
        void *err;
        int fd;

        assert_int_equal(verbena_cmd_read(ctx->cmd_fd, &cmd), 0);
        assert_int_equal(pthread_create(&copier, NULL, copy_on, dm), 0);
        usleep(5000);
        assert_int_equal(asked(&cmd, VERBENA_SHARE_DM, dm->handle, 1, &r, &fd), 0);
        assert_int_equal(pthread_join(copier, &err), 0);
        assert_int_equal((intptr_t)err, EINVAL);
        assert_true(dm_mapped());
        ibv_unimport_dm(dm);
        assert_false(dm_mapped());
        fake_close(ctx);
    }
}

static int reset(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(import_device__refused, reset),
        cmocka_unit_test_setup(import_device__twice_at_once, reset),
        cmocka_unit_test_setup(import__odd_replies, reset),
        cmocka_unit_test_setup(import__within_the_process, reset),
        cmocka_unit_test_setup(import__numbers_that_nobody_has, reset),
        cmocka_unit_test_setup(destroy__refused, reset),
        cmocka_unit_test_setup(unimport__the_last, reset),
        cmocka_unit_test_setup(dm__one_memory, reset),
        cmocka_unit_test_setup(foreign__domain, reset),
        cmocka_unit_test_setup(foreign__that_has_died, reset),
        cmocka_unit_test_setup(foreign__region, reset),
        cmocka_unit_test_setup(foreign__device_memory, reset),
        cmocka_unit_test_setup(answer__what_it_is, reset),
        cmocka_unit_test_setup(answer__destroys, reset),
        cmocka_unit_test_setup(answer__domain_has_gone, reset),
        cmocka_unit_test_setup(answer__in_the_middle, reset),
        cmocka_unit_test_setup(answer__frees_under_a_copy, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
