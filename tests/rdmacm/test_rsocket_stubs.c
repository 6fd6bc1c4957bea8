/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rsocket_stubs.c: rsocket functions say EOPNOTSUPP, and rpoll of ordinary descriptors polls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <rdma/rsocket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rdmacm/rdmacm_newer.h"

#define REFUSED(call)                                                                              \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_true((int)(call) == -1);                                                            \
        assert_int_equal(errno, EOPNOTSUPP);                                                       \
    } while (0)

static void all__refused(void **state)
{
    (void)state;
    struct sockaddr_storage sa = {0};
    socklen_t length = sizeof(sa);
    struct sockaddr *addr = (struct sockaddr *)&sa;
    struct msghdr msg = {0};
    struct iovec iov = {0};
    char c = 0;

    REFUSED(rsocket(AF_INET, SOCK_STREAM, 0));
    REFUSED(rbind(3, addr, length));
    REFUSED(rlisten(3, 1));
    REFUSED(raccept(3, addr, &length));
    REFUSED(rconnect(3, addr, length));
    REFUSED(rshutdown(3, SHUT_RDWR));
    REFUSED(rclose(3));
    REFUSED(rrecv(3, &c, 1, 0));
    REFUSED(rrecvfrom(3, &c, 1, 0, addr, &length));
    REFUSED(rrecvmsg(3, &msg, 0));
    REFUSED(rsend(3, &c, 1, 0));
    REFUSED(rsendto(3, &c, 1, 0, addr, length));
    REFUSED(rsendmsg(3, &msg, 0));
    REFUSED(rread(3, &c, 1));
    REFUSED(rreadv(3, &iov, 1));
    REFUSED(rwrite(3, &c, 1));
    REFUSED(rwritev(3, &iov, 1));
    REFUSED(rgetpeername(3, addr, &length));
    REFUSED(rgetsockname(3, addr, &length));
    REFUSED(rsetsockopt(3, SOL_RDMA, RDMA_SQSIZE, &c, 1));
    REFUSED(rgetsockopt(3, SOL_RDMA, RDMA_SQSIZE, &c, &length));
    REFUSED(rfcntl(3, 0));
    REFUSED(riomap(3, &c, 1, 0, 0, 0));
    REFUSED(riounmap(3, &c, 1));
    REFUSED(riowrite(3, &c, 1, 0, 0));
    REFUSED(repoll_create(1));
    REFUSED(repoll_create1(0));
    REFUSED(repoll_ctl(3, 0, 4, NULL));
    REFUSED(repoll_wait(3, NULL, 1, 0));
}

static void rpoll__ordinary_descriptors(void **state)
{
    (void)state;
    int fds[2];
    struct timeval none = {0};
    fd_set set;

    assert_int_equal(pipe(fds), 0);
    struct pollfd p = {.fd = fds[0], .events = POLLIN};
    assert_int_equal(rpoll(&p, 1, 0), 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    assert_int_equal(rpoll(&p, 1, 0), 1);
    assert_int_equal(p.revents, POLLIN);
    FD_ZERO(&set);
    FD_SET(fds[0], &set);
    assert_int_equal(rselect(fds[0] + 1, &set, NULL, NULL, &none), 1);
    assert_int_equal(rselect(-1, NULL, NULL, NULL, &none), -1);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all__refused),
        cmocka_unit_test(rpoll__ordinary_descriptors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
