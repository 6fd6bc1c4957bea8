/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_live_share.c: a process imports another's objects: the descriptor goes over a unix socket,
 * the numbers beside it. Apart from the other live tests because under ThreadSanitizer a forked
 * child cannot start the engine's thread.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../forks.h"
#include "../port/private_net.h"
#include "../skips.h"
#include "live_rig.h"

enum { SHARED_BYTES = 1 << 16, DM_BYTES = 8192, HALF = SHARED_BYTES / 2 };

/* A child cannot fail a test: it says where it went wrong. */
#define MUST(c)                                                                                    \
    do {                                                                                           \
        if (!(c)) {                                                                                \
            fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #c, errno);              \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* What goes beside the descriptor. */
struct numbers {
    uint32_t pd, mr, private_mr, null_mr, dm, dm_mr;
};

struct exporter {
    struct rig r;
    uint8_t *shared; /* children have it, too */
    struct ibv_mr *mr, *null_mr, *dm_mr;
    struct ibv_dm *dm;
    int to_child[2], from_child[2]; /* socket with the descriptor; a byte when it is done */
    struct numbers n;
};

static void give(int socket, int fd, const struct numbers *n)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {(void *)(uintptr_t)n, sizeof(*n)};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    assert_int_equal(sendmsg(socket, &m, 0), sizeof(*n));
}

static int take(int socket, struct numbers *n)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {n, sizeof(*n)};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    int fd = -1;

    MUST(recvmsg(socket, &m, MSG_CMSG_CLOEXEC) == sizeof(*n));
    MUST(CMSG_FIRSTHDR(&m) != NULL);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
    return fd;
}

/* The child is there before the parent has an engine. */
static pid_t begin(struct exporter *e, void (*child)(struct exporter *))
{
    memset(e, 0, sizeof(*e));
    e->shared = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(e->shared, MAP_FAILED);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, e->to_child), 0);
    assert_int_equal(pipe(e->from_child), 0);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        close(e->to_child[0]);
        child(e);
        _exit(0);
    }
    const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                    IBV_ACCESS_REMOTE_ATOMIC;
    struct ibv_alloc_dm_attr attr = {.length = DM_BYTES};
    rig_open(&e->r);
    e->mr = ibv_reg_mr(e->r.pd, e->shared, SHARED_BYTES, all);
    e->null_mr = ibv_alloc_null_mr(e->r.pd);
    e->dm = ibv_alloc_dm(e->r.ctx, &attr);
    assert_non_null(e->mr);
    assert_non_null(e->null_mr);
    assert_non_null(e->dm);
    e->dm_mr = ibv_reg_dm_mr(e->r.pd, e->dm, 4096, 4096, all | IBV_ACCESS_ZERO_BASED);
    assert_non_null(e->dm_mr);
    e->n = (struct numbers){e->r.pd->handle,    e->mr->handle, e->r.mr->handle,
                            e->null_mr->handle, e->dm->handle, e->dm_mr->handle};
    give(e->to_child[0], e->r.ctx->cmd_fd, &e->n);
    return pid;
}

static void await(pid_t pid)
{
    int status = -1;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void end(struct exporter *e)
{
    for (unsigned i = 0; i < 2; i++) {
        close(e->to_child[i]);
        close(e->from_child[i]);
    }
    munmap(e->shared, SHARED_BYTES);
}

static void release(struct exporter *e)
{
    assert_int_equal(ibv_dereg_mr(e->dm_mr), 0);
    assert_int_equal(ibv_free_dm(e->dm), 0);
    assert_int_equal(ibv_dereg_mr(e->null_mr), 0);
    assert_int_equal(ibv_dereg_mr(e->mr), 0);
    rig_close(&e->r);
}

/* Two QPs of the importer, on what it imported; own: for the address. */
static void pair(struct rig *r, const struct rig *own, struct ibv_context *ctx, struct ibv_pd *pd)
{
    *r = *own;
    r->ctx = ctx;
    r->pd = pd;
    r->channel = ibv_create_comp_channel(ctx);
    MUST(r->channel != NULL);
    r->cq = ibv_create_cq(ctx, 64, r, r->channel, 0);
    MUST(r->cq != NULL);
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_init_attr init = rig_qp_init(r);
        r->qp[i] = ibv_create_qp(pd, &init);
        MUST(r->qp[i] != NULL && rig_to_init(r->qp[i]) == 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_attr rtr = rig_rtr_attr(r, r->qp[1 - i]->qp_num), rts = rig_rts_attr();
        MUST(ibv_modify_qp(r->qp[i], &rtr, rig_rtr_mask) == 0);
        MUST(ibv_modify_qp(r->qp[i], &rts, rig_rts_mask) == 0);
    }
}

static enum ibv_wc_status transfer(struct rig *r, enum ibv_wr_opcode opcode, uint64_t local,
                                   uint32_t lkey, uint64_t remote, uint32_t rkey, uint32_t bytes)
{
    struct ibv_sge sge = {local, bytes, lkey};
    struct ibv_send_wr *bad,
        wr = {.opcode = opcode, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1};
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = rkey;
    MUST(ibv_post_send(r->qp[0], &wr, &bad) == 0);
    return rig_wait(r).status;
}

static void import_all(struct exporter *e)
{
    struct numbers n;
    struct rig own, r;
    int fd = take(e->to_child[1], &n);

    rig_open(&own);
    struct ibv_context *ctx = ibv_import_device(fd);
    MUST(ctx != NULL && ctx->cmd_fd == fd);
    struct ibv_pd *pd = ibv_import_pd(ctx, n.pd);
    MUST(pd != NULL && pd->handle == n.pd);
    struct ibv_mr *mr = ibv_import_mr(pd, n.mr);
    MUST(mr != NULL && mr->addr == NULL && mr->length == SHARED_BYTES);
    pair(&r, &own, ctx, pd);
    /* one half to the other, by addresses of the region, which are those of the exporter */
    memset(e->shared, 0x3c, HALF);
    MUST(transfer(&r, IBV_WR_RDMA_WRITE, (uintptr_t)e->shared, mr->lkey,
                  (uintptr_t)e->shared + HALF, mr->rkey, HALF) == IBV_WC_SUCCESS);
    MUST(memcmp(e->shared, e->shared + HALF, HALF) == 0);
    struct ibv_dm *dm = ibv_import_dm(ctx, n.dm);
    struct ibv_mr *dm_mr = ibv_import_mr(pd, n.dm_mr);
    uint64_t word = 0;
    MUST(dm != NULL && dm_mr != NULL && dm_mr->length == 4096);
    MUST(transfer(&r, IBV_WR_RDMA_WRITE, (uintptr_t)e->shared, mr->lkey, 8, dm_mr->rkey, 64) ==
         IBV_WC_SUCCESS);
    MUST(ibv_memcpy_from_dm(&word, dm, 4096 + 8, 8) == 0 && word == 0x3c3c3c3c3c3c3c3c);
    word = 0x0102030405060708;
    MUST(ibv_memcpy_to_dm(dm, 16, &word, 8) == 0); /* which the exporter looks for */
    struct ibv_mr *null_mr = ibv_import_mr(pd, n.null_mr);
    MUST(null_mr != NULL);
    MUST(transfer(&r, IBV_WR_RDMA_WRITE, 0, null_mr->lkey, 8, dm_mr->rkey, 8) == IBV_WC_SUCCESS);
    /* private memory is nobody else's, and other numbers are nobody's */
    errno = 0;
    MUST(ibv_import_mr(pd, n.private_mr) == NULL && errno == EOPNOTSUPP);
    MUST(ibv_import_mr(pd, n.pd + 1000) == NULL && errno == EINVAL);
    MUST(ibv_import_pd(ctx, n.mr) == NULL && errno == EINVAL);
    ibv_unimport_mr(null_mr);
    ibv_unimport_mr(dm_mr);
    ibv_unimport_dm(dm);
    ibv_unimport_mr(mr);
    for (unsigned i = 0; i < 2; i++)
        MUST(ibv_destroy_qp(r.qp[i]) == 0);
    MUST(ibv_destroy_cq(r.cq) == 0 && ibv_destroy_comp_channel(r.channel) == 0);
    ibv_unimport_pd(pd);
    MUST(ibv_close_device(ctx) == 0);
    rig_close(&own);
}

static void import__another_process(void **state)
{
    (void)state;
    if (UNDER_TSAN)
        SKIP_TEST("ThreadSanitizer's runtime lets no thread start in a forked child");
    struct exporter e;
    pid_t pid = begin(&e, import_all);
    uint64_t word = 0;

    await(pid);
    assert_int_equal(ibv_memcpy_from_dm(&word, e.dm, 16, 8), 0);
    assert_true(word == 0x0102030405060708);
    assert_int_equal(ibv_memcpy_from_dm(&word, e.dm, 4096 + 8, 8), 0);
    assert_true(word == 0); /* from the null region */
    assert_int_equal(e.shared[SHARED_BYTES - 1], 0x3c);
    release(&e); /* all of it is still there */
    end(&e);
}

static void destroy_all(struct exporter *e)
{
    struct numbers n;
    int fd = take(e->to_child[1], &n);
    struct ibv_context *ctx = ibv_import_device(fd);

    MUST(ctx != NULL);
    struct ibv_pd *pd = ibv_import_pd(ctx, n.pd);
    struct ibv_mr *mr = ibv_import_mr(pd, n.mr), *dm_mr = ibv_import_mr(pd, n.dm_mr);
    struct ibv_dm *dm = ibv_import_dm(ctx, n.dm);
    MUST(pd != NULL && mr != NULL && dm != NULL && dm_mr != NULL);
    MUST(ibv_free_dm(dm) == EBUSY); /* the exporter's region is on it */
    MUST(ibv_dealloc_pd(pd) == EBUSY);
    MUST(ibv_dereg_mr(dm_mr) == 0);
    MUST(ibv_free_dm(dm) == 0);
    MUST(ibv_dereg_mr(mr) == 0);
    MUST(ibv_import_mr(pd, n.mr) == NULL && errno == EINVAL);
    ibv_unimport_pd(pd);
    MUST(ibv_close_device(ctx) == 0);
}

/* What the importer destroys is gone for the exporter, too, which may only unimport it. */
static void destroy__by_another_process(void **state)
{
    (void)state;
    if (UNDER_TSAN)
        SKIP_TEST("ThreadSanitizer's runtime lets no thread start in a forked child");
    struct exporter e;
    pid_t pid = begin(&e, destroy_all);
    uint64_t word;

    await(pid);
    assert_int_equal(ibv_dereg_mr(e.mr), EINVAL);
    assert_int_equal(ibv_dereg_mr(e.dm_mr), EINVAL);
    assert_int_equal(ibv_free_dm(e.dm), EINVAL);
    assert_int_equal(ibv_memcpy_from_dm(&word, e.dm, 0, 8), EINVAL);
    ibv_unimport_mr(e.mr);
    ibv_unimport_mr(e.dm_mr);
    ibv_unimport_dm(e.dm);
    assert_int_equal(ibv_dereg_mr(e.null_mr), 0);
    rig_close(&e.r);
    end(&e);
}

static void outlive(struct exporter *e)
{
    struct numbers n;
    char byte;
    int fd = take(e->to_child[1], &n);
    struct ibv_context *ctx = ibv_import_device(fd);

    MUST(ctx != NULL);
    struct ibv_pd *pd = ibv_import_pd(ctx, n.pd);
    struct ibv_dm *dm = ibv_import_dm(ctx, n.dm);
    MUST(pd != NULL && dm != NULL);
    MUST(write(e->from_child[1], "", 1) == 1);
    MUST(recv(e->to_child[1], &byte, 1, 0) == 1); /* the exporter has closed */
    uint64_t word = 5;
    MUST(ibv_memcpy_to_dm(dm, 0, &word, 8) == 0);
    errno = 0;
    MUST(ibv_import_mr(pd, n.mr) == NULL && (errno == EINVAL || errno == ECONNREFUSED));
    MUST(ibv_import_device(dup(fd)) != NULL); /* known here */
    MUST(ibv_free_dm(dm) == 0);
    MUST(ibv_dealloc_pd(pd) == 0);
}

/* The exporter goes first: what was imported stays usable, and goes without it. */
static void exporter__closes_first(void **state)
{
    (void)state;
    if (UNDER_TSAN)
        SKIP_TEST("ThreadSanitizer's runtime lets no thread start in a forked child");
    struct exporter e;
    char byte;
    pid_t pid = begin(&e, outlive);

    assert_int_equal(read(e.from_child[0], &byte, 1), 1);
    release(&e);
    assert_int_equal(send(e.to_child[0], "", 1, 0), 1);
    await(pid);
    end(&e);
}

/* Within the process, without a socket; and a forked child imports what its parent has now. */
static void import__in_a_forked_child(void **state)
{
    (void)state;
    if (UNDER_TSAN)
        SKIP_TEST("ThreadSanitizer's runtime lets no thread start in a forked child");
    struct rig r;

    rig_open(&r);
    int fd = dup(r.ctx->cmd_fd);
    pid_t pid = quiet_fork();
    if (pid == 0) {
        alarm(60);
        struct ibv_context *ctx = ibv_import_device(fd);
        MUST(ctx != NULL);
        struct ibv_pd *pd = ibv_import_pd(ctx, r.pd->handle);
        MUST(pd != NULL);
        /* of this process's engine, not of the one that it inherited */
        struct ibv_mr *mr = ibv_reg_mr(pd, &fd, sizeof(fd), 0);
        struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
        struct ibv_qp_init_attr init = rig_qp_init(&r);
        init.send_cq = init.recv_cq = cq;
        struct ibv_qp *qp = ibv_create_qp(pd, &init);
        MUST(mr != NULL && cq != NULL && qp != NULL && rig_to_init(qp) == 0);
        ibv_unimport_pd(pd); /* not yet: it has children */
        MUST(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 && ibv_dereg_mr(mr) == 0);
        ibv_unimport_pd(pd);
        MUST(ibv_dereg_mr(r.mr) == EIO && ibv_dealloc_pd(r.pd) == EIO);
        MUST(ibv_close_device(ctx) == 0);
        _exit(0);
    }
    await(pid);
    close(fd);
    rig_close(&r);
}

/* Registered again through one handle, the region is another to the other handle, too. */
static void rereg__through_one_handle(void **state)
{
    (void)state;
    struct rig r;

    rig_connect(&r);
    struct ibv_context *ctx = ibv_import_device(dup(r.ctx->cmd_fd));
    assert_non_null(ctx);
    struct ibv_pd *pd = ibv_import_pd(ctx, r.pd->handle);
    assert_non_null(pd);
    struct ibv_mr *mr = ibv_reg_mr(r.pd, r.buf, 64, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_mr *same = ibv_import_mr(pd, mr->handle);
    assert_non_null(same);
    assert_int_equal(same->lkey, mr->lkey);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, r.buf + 64, 128, 0),
                     0);
    struct ibv_mr *now = ibv_import_mr(pd, mr->handle);
    assert_non_null(now);
    assert_int_equal(now->lkey, mr->lkey);
    assert_int_equal(now->length, 128);
    ibv_unimport_mr(now);
    assert_int_equal(ibv_dereg_mr(same), 0); /* as it is now */
    assert_int_equal(ibv_dereg_mr(mr), EINVAL);
    ibv_unimport_mr(mr);
    ibv_unimport_pd(pd);
    assert_int_equal(ibv_close_device(ctx), 0);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(import__another_process),   cmocka_unit_test(destroy__by_another_process),
        cmocka_unit_test(exporter__closes_first),    cmocka_unit_test(import__in_a_forked_child),
        cmocka_unit_test(rereg__through_one_handle),
    };

    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
