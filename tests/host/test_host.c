/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_host.c: the live device over loopback: two contexts in one process, two processes with one
 * address, dead contexts in a forked child.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../forks.h"
#include "../port/private_net.h"
#include "../skips.h"
#include "endpoint.h"

enum {
    MEMORY_BYTES = 4 << 20,
    HALF = MEMORY_BYTES / 2,
};

static void fill(uint8_t *p, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        p[i] = (uint8_t)(seed >> 24);
    }
}

static const struct row {
    unsigned gid_index;
    uint16_t mtu_bytes;
    uint32_t bytes;
} rows[] = {
    {0, 1024, 0      },
    {0, 1024, 1      },
    {0, 1024, 1024   },
    {0, 1024, 1025   },
    {0, 4096, 65536  },
    {0, 256,  65537  },
    {0, 4096, 1 << 20},
    {0, 1024, 1000003},
    {1, 4096, 100000 },
    {1, 1024, 12345  },
    {1, 4096, 1 << 20},
};

static void connect_pair(struct endpoint *a, struct endpoint *b, struct endpoint_name *na,
                         struct endpoint_name *nb, unsigned gid_index, uint16_t mtu_bytes)
{
    endpoint_open(a, "vb_lo", MEMORY_BYTES);
    endpoint_open(b, "vb_lo", MEMORY_BYTES);
    endpoint_name(a, gid_index, na);
    endpoint_name(b, gid_index, nb);
    endpoint_connect(a, gid_index, nb, mtu_bytes);
    endpoint_connect(b, gid_index, na, mtu_bytes);
}

static void host__write_send_read_in_one_process(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];
        struct endpoint a, b;
        struct endpoint_name na, nb;
        struct nic_wc wc;
        connect_pair(&a, &b, &na, &nb, r->gid_index, r->mtu_bytes);
        fill(a.memory, r->bytes, (uint32_t)i + 1);
        assert_int_equal(endpoint_post(&a, WR_RDMA_WRITE, &nb, 0, r->bytes, WR_SIGNALED), 0);
        assert_int_equal(endpoint_wait(&a, &wc), WC_SUCCESS);
        assert_memory_equal(a.memory, b.memory, r->bytes + 1);

        memset(b.memory, 0, MEMORY_BYTES);
        assert_int_equal(endpoint_post_recv(&b, HALF, r->bytes + 16), 0);
        assert_int_equal(endpoint_post(&a, WR_SEND, &nb, 0, r->bytes, WR_SIGNALED), 0);
        assert_int_equal(endpoint_wait(&b, &wc), WC_SUCCESS);
        assert_int_equal(wc.byte_len, r->bytes);
        assert_int_equal(endpoint_wait(&a, &wc), WC_SUCCESS);
        assert_memory_equal(a.memory, b.memory + HALF, r->bytes);

        memset(a.memory, 0, MEMORY_BYTES);
        fill(b.memory, r->bytes, (uint32_t)i + 77);
        assert_int_equal(endpoint_post(&a, WR_RDMA_READ, &nb, 0, r->bytes, WR_SIGNALED), 0);
        assert_int_equal(endpoint_wait(&a, &wc), WC_SUCCESS);
        assert_memory_equal(a.memory, b.memory, r->bytes + 1);
        endpoint_close(&a);
        endpoint_close(&b);
    }
}

static void host__bad_rkey_moves_no_byte(void **state)
{
    (void)state;
    struct endpoint a, b;
    struct endpoint_name na, nb;
    struct nic_wc wc;
    connect_pair(&a, &b, &na, &nb, 0, 1024);
    fill(a.memory, 4096, 5);
    nb.rkey ^= 1;
    assert_int_equal(endpoint_post(&a, WR_RDMA_WRITE, &nb, 0, 4096, WR_SIGNALED), 0);
    assert_int_equal(endpoint_wait(&a, &wc), WC_REM_ACCESS_ERR);
    for (unsigned i = 0; i < 4096; i++)
        assert_int_equal(b.memory[i], 0);
    endpoint_close(&a);
    endpoint_close(&b);
}

static void exchange(int fd, const struct endpoint_name *own, struct endpoint_name *peer)
{
    if (write(fd, own, sizeof(*own)) != (ssize_t)sizeof(*own) ||
        read(fd, peer, sizeof(*peer)) != (ssize_t)sizeof(*peer))
        abort();
}

/* The passive side: its program blocks, only its helper thread serves. */
static void passive_child(int fd, unsigned gid_index, uint16_t mtu_bytes)
{
    struct endpoint e;
    struct endpoint_name own, peer;
    char byte;
    endpoint_open(&e, "vb_lo", MEMORY_BYTES);
    endpoint_name(&e, gid_index, &own);
    exchange(fd, &own, &peer);
    endpoint_connect(&e, gid_index, &peer, mtu_bytes);
    if (write(fd, "r", 1) != 1 || read(fd, &byte, 1) != 1)
        abort();
    endpoint_close(&e);
    _exit(0);
}

static void host__two_processes_one_address(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];
        int fd[2], status;
        char byte;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            passive_child(fd[1], r->gid_index, r->mtu_bytes);
        struct endpoint e;
        struct endpoint_name own, peer;
        struct nic_wc wc;
        endpoint_open(&e, "vb_lo", MEMORY_BYTES);
        endpoint_name(&e, r->gid_index, &own);
        exchange(fd[0], &own, &peer);
        endpoint_connect(&e, r->gid_index, &peer, r->mtu_bytes);
        assert_int_equal(read(fd[0], &byte, 1), 1);
        fill(e.memory, r->bytes, (uint32_t)i + 3);
        for (unsigned k = 0; k < 20; k++) {
            assert_int_equal(endpoint_post(&e, WR_RDMA_WRITE, &peer, 0, r->bytes, WR_SIGNALED), 0);
            assert_int_equal(endpoint_wait(&e, &wc), WC_SUCCESS);
        }
        uint8_t *copy = malloc(r->bytes + 1);
        memcpy(copy, e.memory, r->bytes);
        memset(e.memory, 0, r->bytes);
        assert_int_equal(endpoint_post(&e, WR_RDMA_READ, &peer, 0, r->bytes, WR_SIGNALED), 0);
        assert_int_equal(endpoint_wait(&e, &wc), WC_SUCCESS);
        assert_memory_equal(copy, e.memory, r->bytes);
        free(copy);
        assert_int_equal(write(fd[0], "x", 1), 1);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        endpoint_close(&e);
        close(fd[0]);
        close(fd[1]);
    }
}

static void host__child_finds_dead_contexts_and_opens_new_ones(void **state)
{
    (void)state;
#if UNDER_TSAN
    SKIP_TEST("ThreadSanitizer knows no threads in a forked child");
#endif
    struct endpoint a, b;
    struct endpoint_name na, nb;
    struct nic_wc wc;
    int status;
    connect_pair(&a, &b, &na, &nb, 0, 1024);
    pid_t pid = quiet_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct endpoint c, d;
        struct endpoint_name nc, nd;
        bool ok = verbena_cq_poll(a.ctx, a.cq, 1, &wc) == -EIO &&
                  endpoint_post(&a, WR_RDMA_WRITE, &nb, 0, 8, WR_SIGNALED) == -EIO &&
                  verbena_qp_destroy(a.ctx, a.qp) == -EIO;
        connect_pair(&c, &d, &nc, &nd, 0, 1024);
        ok = ok && endpoint_post(&c, WR_RDMA_WRITE, &nd, 0, 5000, WR_SIGNALED) == 0 &&
             endpoint_wait(&c, &wc) == WC_SUCCESS;
        endpoint_close(&c);
        endpoint_close(&d);
        verbena_close(a.ctx);
        _exit(ok ? 0 : 1);
    }
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(endpoint_post(&a, WR_RDMA_WRITE, &nb, 0, 5000, WR_SIGNALED), 0);
        assert_int_equal(endpoint_wait(&a, &wc), WC_SUCCESS);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    endpoint_close(&a);
    endpoint_close(&b);
}

static void host__open_refuses(void **state)
{
    (void)state;
    static const struct verbena_callbacks none;
    struct verbena_context *ctx;
    static const char *const names[] = {"", "lo", "vb_", "vb_none0", "vb_lo "};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_int_equal(verbena_open(names[i], &none, NULL, &ctx), -ENODEV);
}

static void host__lo_has_two_gids(void **state)
{
    (void)state;
    static const struct verbena_callbacks none;
    static const struct net_addr v4 = {
        {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}
    };
    static const struct net_addr v6 = {{[15] = 1}};
    struct verbena_context *ctx;
    struct verbena_gid gid;
    struct verbena_device d;
    assert_int_equal(verbena_open("vb_lo", &none, NULL, &ctx), 0);
    assert_int_equal(verbena_gid_query(ctx, 0, &gid), 0);
    assert_memory_equal(&gid.addr, &v4, sizeof(v4));
    assert_int_equal(verbena_gid_query(ctx, 1, &gid), 0);
    assert_memory_equal(&gid.addr, &v6, sizeof(v6));
    struct verbena_gid all[VERBENA_GID_TABLE_SIZE];
    assert_int_equal(verbena_gid_table(ctx, all), 0);
    assert_memory_equal(&all[1], &gid, sizeof(gid));
    assert_memory_equal(&all[0].addr, &v4, sizeof(v4));
    assert_int_equal(verbena_gid_query(ctx, 255, &gid), -ENODATA);
    assert_memory_equal(&all[255], &gid, sizeof(gid));
    assert_int_equal(verbena_gid_query(ctx, 256, &gid), -EINVAL);
    assert_int_equal(verbena_device_query(ctx, &d), 0);
    assert_true(d.loopback);
    assert_true(d.node_guid != 0);
    assert_int_equal(d.active_mtu_bytes, 4096);
    verbena_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host__open_refuses),
        cmocka_unit_test(host__lo_has_two_gids),
        cmocka_unit_test(host__write_send_read_in_one_process),
        cmocka_unit_test(host__bad_rkey_moves_no_byte),
        cmocka_unit_test(host__two_processes_one_address),
        cmocka_unit_test(host__child_finds_dead_contexts_and_opens_new_ones),
    };
    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
