/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_live_shortage.c: memory, descriptors or threads run out at every place in turn where the
 * real libraries ask for one, while something is made. The call says ENOMEM, EMFILE or EAGAIN, has
 * left nothing behind, and works when tried again; what is made already goes on without any.
 * The libraries are linked statically here, with these functions wrapped (-Wl,--wrap); file offsets
 * have 64 bits, hence mmap64 and fopen64.
 */
#include "live_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../port/private_net.h"

enum { ROOM_MAX = 200 };

/* Which of the calls from now on fail, of this thread only. */
static _Thread_local struct {
    bool armed, all; /* only one, or all from then on */
    unsigned at, seen;
    uint64_t errors; /* of those that failed: 1 << errno */
} shortage;
static _Atomic bool nobody_gets_any; /* memory; no thread */
static _Atomic long memory_live, mapped_live;

static bool fails(int error)
{
    /* Descriptors: test_limits.c. They come back when one is closed, which is not seen here. */
    bool yes = error == ENOMEM && atomic_load(&nobody_gets_any);
    if (shortage.armed) {
        unsigned n = shortage.seen++;
        yes = yes || n == shortage.at || (shortage.all && n > shortage.at);
    }
    if (yes) {
        errno = error;
        shortage.errors |= 1ull << error;
    }
    return yes;
}

void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes)
{
    void *p = fails(ENOMEM) ? NULL : __real_calloc(n, bytes);
    atomic_fetch_add(&memory_live, p != NULL);
    return p;
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes)
{
    void *p = fails(ENOMEM) ? NULL : __real_malloc(bytes);
    atomic_fetch_add(&memory_live, p != NULL);
    return p;
}

void __real_free(void *p);
void __wrap_free(void *p);
void __wrap_free(void *p)
{
    atomic_fetch_sub(&memory_live, p != NULL);
    __real_free(p);
}

void *__real_mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    void *p = fails(ENOMEM) ? MAP_FAILED : __real_mmap64(at, n, protection, flags, fd, offset);
    atomic_fetch_add(&mapped_live, p != MAP_FAILED);
    return p;
}

int __real_munmap(void *at, size_t n);
int __wrap_munmap(void *at, size_t n);
int __wrap_munmap(void *at, size_t n)
{
    atomic_fetch_sub(&mapped_live, 1);
    return __real_munmap(at, n);
}

int __real_getifaddrs(struct ifaddrs **out);
int __wrap_getifaddrs(struct ifaddrs **out);
int __wrap_getifaddrs(struct ifaddrs **out)
{
    return fails(ENOMEM) ? -1 : __real_getifaddrs(out);
}

int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg)
{
    return fails(EAGAIN) ? EAGAIN : __real_pthread_create(t, a, f, arg);
}

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol)
{
    return fails(EMFILE) ? -1 : __real_socket(family, type, protocol);
}

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags)
{
    return fails(EMFILE) ? -1 : __real_eventfd(count, flags);
}

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_create1(int flags)
{
    return fails(EMFILE) ? -1 : __real_epoll_create1(flags);
}

FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode)
{
    return fails(EMFILE) ? NULL : __real_fopen64(path, mode);
}

static unsigned open_descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d != NULL && readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static struct rig rig;
static struct ibv_device *lo;
static struct ibv_device **devices;

/* Each makes something, NULL when it cannot, and errno says why; undo takes it back. */
static void *list_make(void)
{
    return ibv_get_device_list(NULL);
}

static void list_undo(void *made)
{
    ibv_free_device_list(made);
}

static void *open_make(void)
{
    return ibv_open_device(lo);
}

static void open_undo(void *made)
{
    union ibv_gid gid;
    static const union ibv_gid none;
    assert_int_equal(ibv_query_gid(made, 1, 0, &gid), 0);
    assert_memory_not_equal(&gid, &none, sizeof(gid)); /* not half a context */
    assert_int_equal(ibv_close_device(made), 0);
}

static void *pd_make(void)
{
    return ibv_alloc_pd(rig.ctx);
}

static void pd_undo(void *made)
{
    assert_int_equal(ibv_dealloc_pd(made), 0);
}

static void *channel_make(void)
{
    return ibv_create_comp_channel(rig.ctx);
}

static void channel_undo(void *made)
{
    assert_int_equal(ibv_destroy_comp_channel(made), 0);
}

static void *cq_make(void)
{
    return ibv_create_cq(rig.ctx, 100, NULL, rig.channel, 0);
}

static void *cq_ex_make(void)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 100, .channel = rig.channel};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(rig.ctx, &attr);
    return cq != NULL ? ibv_cq_ex_to_cq(cq) : NULL;
}

static void cq_undo(void *made)
{
    assert_int_equal(ibv_destroy_cq(made), 0);
}

static void *mr_make(void)
{
    return ibv_reg_mr(rig.pd, rig.buf, RIG_BYTES, IBV_ACCESS_LOCAL_WRITE);
}

static void mr_undo(void *made)
{
    assert_int_equal(ibv_dereg_mr(made), 0);
}

static void *srq_make(void)
{
    struct ibv_srq_init_attr attr = {
        .attr = {.max_wr = 100, .max_sge = 3}
    };
    return ibv_create_srq(rig.pd, &attr);
}

static void srq_undo(void *made)
{
    assert_int_equal(ibv_destroy_srq(made), 0);
}

static void *qp_make(void)
{
    struct ibv_qp_init_attr attr = rig_qp_init(&rig);
    return ibv_create_qp(rig.pd, &attr);
}

static void *qp_ex_make(void)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = rig.cq,
        .recv_cq = rig.cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = RIG_DEPTH,
                .max_recv_wr = RIG_DEPTH,
                .max_send_sge = 2,
                .max_recv_sge = 2,
                .max_inline_data = 64},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = rig.pd,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND,
    };
    return ibv_create_qp_ex(rig.ctx, &attr);
}

static void qp_undo(void *made)
{
    assert_int_equal(ibv_destroy_qp(made), 0);
}

static void *ah_make(void)
{
    struct ibv_ah_attr attr = rig_rtr_attr(&rig, 0).ah_attr;
    return ibv_create_ah(rig.pd, &attr);
}

static void ah_undo(void *made)
{
    assert_int_equal(ibv_destroy_ah(made), 0);
}

static const struct {
    const char *name;
    void *(*make)(void);
    void (*undo)(void *);
} things[] = {
    {"a list of devices", list_make,    list_undo   },
    {"a context",         open_make,    open_undo   },
    {"a PD",              pd_make,      pd_undo     },
    {"a channel",         channel_make, channel_undo},
    {"a CQ",              cq_make,      cq_undo     },
    {"an extended CQ",    cq_ex_make,   cq_undo     },
    {"an MR",             mr_make,      mr_undo     },
    {"an SRQ",            srq_make,     srq_undo    },
    {"a QP",              qp_make,      qp_undo     },
    {"an extended QP",    qp_ex_make,   qp_undo     },
    {"an AH",             ah_make,      ah_undo     },
};

/* Call number `at` fails, or all from there on. Returns false when there were not so many. */
static bool shortage_at(size_t thing, unsigned at, bool all)
{
    const char *name = things[thing].name;
    long memory = atomic_load(&memory_live), mapped = atomic_load(&mapped_live);
    unsigned descriptors = open_descriptors();
    memset(&shortage, 0, sizeof(shortage));
    shortage.at = at;
    shortage.all = all;
    shortage.armed = true;
    errno = 0;
    void *made = things[thing].make();
    int said = errno;
    shortage.armed = false;
    if (made == NULL && (shortage.errors >> said & 1) == 0)
        fail_msg("%s, call %u%s: errno %d, which no call said", name, at, all ? " and on" : "",
                 said);
    if (made != NULL) /* it does without, or nothing failed */
        things[thing].undo(made);
    if (memory != atomic_load(&memory_live) || mapped != atomic_load(&mapped_live) ||
        descriptors != open_descriptors())
        fail_msg("%s, call %u: left behind: %ld pieces of memory, %ld mappings, %d descriptors",
                 name, at, atomic_load(&memory_live) - memory, atomic_load(&mapped_live) - mapped,
                 (int)(open_descriptors() - descriptors));
    made = things[thing].make();
    if (made == NULL)
        fail_msg("%s, after call %u failed: errno %d", name, at, errno);
    things[thing].undo(made);
    return shortage.errors != 0;
}

static void every_place(size_t thing)
{
    things[thing].undo(things[thing].make()); /* what is made once a process */
    for (int all = 0; all < 2; all++) {
        unsigned at = 0;
        while (shortage_at(thing, at, all != 0) && at < ROOM_MAX)
            at++;
        assert_true(at > 0 && at < ROOM_MAX);
    }
}

static void shortage__first_open(void **state)
{
    (void)state;
    /* No context is open: the engine, its port and its thread are made by this one. */
    every_place(0);
    every_place(1);
}

static void shortage__each_object(void **state)
{
    (void)state;
    rig_open(&rig);
    for (size_t i = 0; i < sizeof(things) / sizeof(things[0]); i++)
        every_place(i);
    rig_close(&rig);
}

static void shortage__resize_keeps_what_there_was(void **state)
{
    (void)state;
    rig_open(&rig);
    unsigned at = 0;
    int cqe = rig.cq->cqe, err;
    do {
        memset(&shortage, 0, sizeof(shortage));
        shortage.at = at++;
        shortage.armed = true;
        err = ibv_resize_cq(rig.cq, 2 * cqe + 1);
        shortage.armed = false;
        if (err != 0) {
            assert_int_equal(err, ENOMEM);
            assert_int_equal(rig.cq->cqe, cqe);
        }
    } while (err != 0 && at < ROOM_MAX);
    assert_true(at > 1);
    assert_true(rig.cq->cqe > cqe);
    rig_close(&rig);
}

/* Connected, but nothing was sent yet: not even the socket that sends is there. */
static void shortage__running_needs_nothing(void **state)
{
    (void)state;
    rig_connect(&rig);
    for (size_t i = 0; i < 2; i++)
        rig_recv(&rig, rig.qp[1], i, RIG_BYTES / 2, RIG_BYTES / 2);
    atomic_store(&nobody_gets_any, true);
    for (uint8_t i = 0; i < 2; i++) {
        memset(rig.buf, 0x5a + i, RIG_BYTES / 2);
        struct ibv_sge sge = rig_sge(&rig, 0, RIG_BYTES / 2);
        struct ibv_send_wr *bad, wr = {.wr_id = 9,
                                       .sg_list = &sge,
                                       .num_sge = 1,
                                       .opcode = IBV_WR_SEND,
                                       .send_flags = IBV_SEND_SIGNALED};
        assert_int_equal(ibv_post_send(rig.qp[0], &wr, &bad), 0);
        for (int k = 0; k < 2; k++)
            assert_int_equal(rig_wait(&rig).status, IBV_WC_SUCCESS);
        assert_memory_equal(rig.buf, rig.buf + RIG_BYTES / 2, RIG_BYTES / 2);
    }
    atomic_store(&nobody_gets_any, false);
    rig_close(&rig);
}

static int find_lo(void **state)
{
    (void)state;
    devices = ibv_get_device_list(NULL);
    for (unsigned i = 0; devices != NULL && devices[i] != NULL; i++) {
        if (strcmp(ibv_get_device_name(devices[i]), "vb_lo") == 0)
            lo = devices[i];
    }
    return lo == NULL;
}

static int forget_lo(void **state)
{
    (void)state;
    atomic_store(&nobody_gets_any, false);
    ibv_free_device_list(devices);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shortage__first_open),
        cmocka_unit_test(shortage__each_object),
        cmocka_unit_test(shortage__resize_keeps_what_there_was),
        cmocka_unit_test(shortage__running_needs_nothing),
    };
    private_net_enter();
    return cmocka_run_group_tests(tests, find_lo, forget_lo);
}
