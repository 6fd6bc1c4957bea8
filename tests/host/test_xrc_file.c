/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_xrc_file.c: XRC domains by file: who shares one, what flags mean, what is held meanwhile.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../forks.h"
#include "../port/private_net.h"
#include "endpoint.h"
#include "host/host_priv.h"

static struct endpoint e;

static int setup(void **state)
{
    (void)state;
    endpoint_open(&e, "vb_lo", 4096);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    endpoint_close(&e);
    return 0;
}

static unsigned descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");

    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static int new_file(void)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    return fd;
}

static void open__flags(void **state)
{
    (void)state;
    static const struct {
        int flags, fresh, again;
    } rows[] = {
        {0,                -EAGAIN, 0      },
        {O_EXCL,           -EAGAIN, -EINVAL},
        {O_CREAT,          0,       0      },
        {O_CREAT | O_EXCL, 0,       -EINVAL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct xrcd *first, *second;
        int fd = new_file();
        unsigned before = descriptors();
        assert_int_equal(verbena_xrcd_open(e.ctx, fd, rows[i].flags, &first), rows[i].fresh);
        if (rows[i].fresh == 0)
            assert_int_equal(verbena_xrcd_close(e.ctx, first), 0);
        assert_int_equal(descriptors(), before);
        assert_int_equal(verbena_xrcd_open(e.ctx, fd, O_CREAT, &first), 0);
        assert_int_equal(descriptors(), before + 2);
        assert_int_equal(verbena_xrcd_open(e.ctx, fd, rows[i].flags, &second), rows[i].again);
        if (rows[i].again == 0) {
            assert_ptr_equal(second, first);
            assert_int_equal(verbena_xrcd_close(e.ctx, second), 0);
        }
        assert_int_equal(verbena_xrcd_close(e.ctx, first), 0);
        assert_int_equal(descriptors(), before);
        close(fd);
    }
}

static void open__no_file(void **state)
{
    (void)state;
    struct xrcd *a, *b;

    assert_int_equal(verbena_xrcd_open(e.ctx, -1, 0, &a), 0);
    assert_int_equal(verbena_xrcd_open(e.ctx, -1, O_CREAT | O_EXCL, &b), 0);
    assert_ptr_not_equal(a, b);
    assert_int_equal(verbena_xrcd_close(e.ctx, a), 0);
    assert_int_equal(verbena_xrcd_close(e.ctx, b), 0);
    assert_int_equal(verbena_xrcd_open(e.ctx, 1 << 20, O_CREAT, &a), -EBADF);
    assert_int_equal(verbena_xrcd_open(e.ctx, -2, O_CREAT, &a), -EBADF);
}

/* The file is held: its number is nobody else's while the domain is there. */
static void open__file_that_has_gone(void **state)
{
    (void)state;
    enum { OTHERS = 64 };
    struct xrcd *xrcd, *other[OTHERS];
    int fd = new_file(), others[OTHERS];

    assert_int_equal(verbena_xrcd_open(e.ctx, fd, O_CREAT, &xrcd), 0);
    close(fd);
    for (int i = 0; i < OTHERS; i++) {
        others[i] = new_file();
        assert_int_equal(verbena_xrcd_open(e.ctx, others[i], O_CREAT | O_EXCL, &other[i]), 0);
    }
    for (int i = 0; i < OTHERS; i++) {
        assert_int_equal(verbena_xrcd_close(e.ctx, other[i]), 0);
        close(others[i]);
    }
    assert_int_equal(verbena_xrcd_close(e.ctx, xrcd), 0);
}

/* case 14: the last close finds what is in the domain. */
static void close__with_children(void **state)
{
    (void)state;
    struct xrcd *xrcd;
    int fd = new_file();

    assert_int_equal(verbena_xrcd_open(e.ctx, fd, O_CREAT, &xrcd), 0);
    assert_int_equal(verbena_xrcd_open(e.ctx, fd, 0, &xrcd), 0);
    struct qp_init init = {.type = QP_TYPE_XRC_TGT, .xrcd = xrcd};
    struct qp *qp;
    assert_int_equal(verbena_qp_create(e.ctx, &init, &qp), 0);
    assert_int_equal(verbena_xrcd_close(e.ctx, xrcd), 0);
    assert_int_equal(verbena_xrcd_close(e.ctx, xrcd), -EBUSY);
    assert_int_equal(verbena_qp_destroy(e.ctx, qp), 0);
    assert_int_equal(verbena_xrcd_close(e.ctx, xrcd), 0);
    close(fd);
}

static socklen_t name_of(int fd, struct sockaddr_un *a)
{
    struct stat st;

    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    assert_int_equal(fstat(fd, &st), 0);
    int n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "verbena/xrcd/%u/%ju/%ju",
                     e.ctx->device.ifindex, (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Somebody has the name, whoever it is. */
static void open__name_is_taken(void **state)
{
    (void)state;
    struct sockaddr_un a;
    struct xrcd *xrcd;
    int fd = new_file(), s = socket(AF_UNIX, SOCK_DGRAM, 0);
    socklen_t bytes = name_of(fd, &a);

    assert_int_equal(bind(s, (struct sockaddr *)&a, bytes), 0);
    unsigned before = descriptors();
    assert_int_equal(verbena_xrcd_open(e.ctx, fd, 0, &xrcd), -EOPNOTSUPP);
    assert_int_equal(verbena_xrcd_open(e.ctx, fd, O_CREAT | O_EXCL, &xrcd), -EINVAL);
    assert_int_equal(verbena_xrcd_open(e.ctx, fd, O_EXCL, &xrcd), -EINVAL);
    assert_int_equal(descriptors(), before);
    /* One of our own, which is shared here. */
    struct xrcd *same;
    assert_int_equal(verbena_xrcd_open(e.ctx, fd, O_CREAT, &xrcd), 0);
    assert_int_equal(verbena_xrcd_open(e.ctx, fd, 0, &same), 0);
    assert_ptr_equal(same, xrcd);
    assert_int_equal(verbena_xrcd_close(e.ctx, xrcd), 0);
    assert_int_equal(verbena_xrcd_close(e.ctx, xrcd), 0);
    assert_int_equal(descriptors(), before);
    close(s);
    assert_int_equal(verbena_xrcd_open(e.ctx, fd, O_CREAT | O_EXCL, &xrcd), 0);
    assert_int_equal(verbena_xrcd_close(e.ctx, xrcd), 0);
    close(fd);
}

struct joiner {
    int fd;
    _Atomic bool stop;
};

static void *join_on(void *arg)
{
    struct joiner *j = arg;
    struct xrcd *xrcd;
    intptr_t wrong = 0;

    while (!j->stop) {
        int err = verbena_xrcd_open(e.ctx, j->fd, 0, &xrcd);
        wrong += err != -EAGAIN && err != -EOPNOTSUPP;
    }
    return (void *)wrong;
}

/* Who finds no domain has not taken the name for a moment, in which nobody could make one. */
static void open__does_not_take_the_name(void **state)
{
    (void)state;
    struct sockaddr_un a;
    struct joiner j = {.fd = new_file()};
    socklen_t bytes = name_of(j.fd, &a);
    pthread_t thread;
    void *wrong;

    assert_int_equal(pthread_create(&thread, NULL, join_on, &j), 0);
    for (unsigned i = 0; i < 5000; i++) {
        int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(s, (struct sockaddr *)&a, bytes), 0);
        close(s);
    }
    j.stop = true;
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_null(wrong);
    close(j.fd);
}

/* A child neither keeps the name nor the file, and its domains are dead. */
static void fork__child_lets_go(void **state)
{
    (void)state;
    struct xrcd *xrcd, *other;
    int fd = new_file(), status = -1;

    unsigned before = descriptors();
    assert_int_equal(verbena_xrcd_open(e.ctx, fd, O_CREAT, &xrcd), 0);
    pid_t child = quiet_fork();
    if (child == 0) {
        bool dead = verbena_xrcd_close(e.ctx, xrcd) == -EIO &&
                    verbena_xrcd_open(e.ctx, fd, O_CREAT, &other) == -EIO;
        /* the engine's own are closed, too */
        _exit(dead && descriptors() < before ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(verbena_xrcd_close(e.ctx, xrcd), 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(open__flags, setup, teardown),
        cmocka_unit_test_setup_teardown(open__no_file, setup, teardown),
        cmocka_unit_test_setup_teardown(open__file_that_has_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(open__name_is_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(open__does_not_take_the_name, setup, teardown),
        cmocka_unit_test_setup_teardown(close__with_children, setup, teardown),
        cmocka_unit_test_setup_teardown(fork__child_lets_go, setup, teardown),
    };

    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
