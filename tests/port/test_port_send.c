/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_port_send.c: what the UDP port does when the kernel refuses: runs that it cannot cut, full
 * sockets, packets over the MTU. The linker puts our sendmmsg and sendmsg before the real ones.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ipv6.h>
#include <netinet/udp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

#include "../skips.h"
#include "port/port_udp.h"
#include "private_net.h"
#include "wire/roce.h"

int __real_sendmmsg(int fd, struct mmsghdr *v, unsigned n, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *v, unsigned n, int flags);
ssize_t __wrap_sendmsg(int fd, struct msghdr *h, int flags);

static struct {
    int run_error;           /* a message with UDP_SEGMENT fails with it */
    int error;               /* every message fails with it, */
    unsigned after;          /* but for so many before */
    unsigned refused;        /* messages refused */
    unsigned pads, bad_pads; /* bytes, and those that are not 0; of single packets */
} kernel;

static bool is_run(struct msghdr *h)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c != NULL; c = CMSG_NXTHDR(h, c)) {
        if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_SEGMENT)
            return true;
    }
    return false;
}

static void look_at_pad(struct msghdr *h)
{
    const uint8_t *b = h->msg_iov[0].iov_base;
    const size_t end = h->msg_iov[0].iov_len - ICRC_BYTES;
    const unsigned pad = b[1] >> 4 & 3;
    for (unsigned i = 1; i <= pad; i++)
        kernel.bad_pads += b[end - i] != 0;
    kernel.pads += pad;
}

int __wrap_sendmmsg(int fd, struct mmsghdr *v, unsigned n, int flags)
{
    for (unsigned i = 0; i < n; i++) {
        if (!is_run(&v[i].msg_hdr))
            look_at_pad(&v[i].msg_hdr);
    }
    unsigned good = 0;
    int error = 0;
    for (; good < n && error == 0; good += error == 0) {
        if (kernel.error != 0 && kernel.after == 0)
            error = kernel.error;
        else if (kernel.run_error != 0 && is_run(&v[good].msg_hdr))
            error = kernel.run_error;
        else if (kernel.error != 0)
            kernel.after--;
    }
    kernel.refused += error != 0 && good == 0;
    if (good != 0)
        return __real_sendmmsg(fd, v, good, flags);
    errno = error;
    return -1;
}

ssize_t __wrap_sendmsg(int fd, struct msghdr *h, int flags)
{
    struct mmsghdr one = {.msg_hdr = *h};
    return __wrap_sendmmsg(fd, &one, 1, flags) == 1 ? (ssize_t)one.msg_len : -1;
}

static uint8_t source[8192];
static const struct nic_path path4 = {
    .local = {{[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}},
    .remote = {{[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}},
    .udp_sport = 0xC777,
};
static const struct nic_path path6 = {
    .local = {{[15] = 1}}, .remote = {{[15] = 1}}, .udp_sport = 0xC777};

struct got {
    struct port_receiver r;
    unsigned n, bad, out_of_order;
    struct net_addr src; /* of the last */
};

static void got_packets(struct port_receiver *r, const struct rx_packet *p, unsigned n)
{
    struct got *g = (struct got *)r;
    for (unsigned i = 0; i < n; i++) {
        g->bad += !p[i].icrc_ok || memcmp(p[i].payload, source, p[i].payload_bytes) != 0;
        g->out_of_order += p[i].h.bth.psn.v != g->n;
        g->src = p[i].src;
        g->n++;
    }
}

static struct port *make(void)
{
    struct port_udp_config c = {.udp_port = 14792, .seed = 3};
    struct port *p;
    memset(&kernel, 0, sizeof(kernel));
    for (size_t i = 0; i < sizeof(source); i++)
        source[i] = (uint8_t)(i * 7);
    assert_int_equal(port_udp_create(&c, &p), 0);
    return p;
}

static void queue(struct port *p, const struct nic_path *path, uint32_t psn, unsigned packets,
                  uint32_t bytes)
{
    static struct train t;
    memset(&t, 0, sizeof(t));
    t.path = path;
    for (; t.packets < packets; t.packets++) {
        struct train_packet *k = &t.packet[t.packets];
        k->payload_bytes = bytes;
        k->h.bth.opcode = opcode_make(SERVICE_RC, OP_SEND_MIDDLE);
        k->h.bth.dest_qp = port_udp_slot(p) << 14 | 2;
        k->h.bth.psn = psn_make(psn + t.packets);
        k->h.bth.pad_bytes = roce_pad(bytes);
        k->first_span = t.spans;
        k->spans = 1;
        t.span[t.spans++] = (struct span){source, bytes};
        t.packet_bytes = roce_packet_bytes(k->h.bth.opcode, bytes);
        t.total_bytes += t.packet_bytes;
    }
    p->sink.train(&p->sink, &t);
}

static unsigned settle(struct port *p, struct got *g)
{
    g->r.packets = got_packets;
    for (unsigned empty = 0; empty < 2 * PORT_EMPTY_CALLS;)
        empty = p->ops->receive(p, 1000, &g->r, 512) != 0 ? 0 : empty + 1;
    return g->n;
}

static uint64_t count_of(struct port *p, const char *want)
{
    const char *name;
    uint64_t v;
    for (unsigned i = 0; (name = p->ops->counter(p, i, &v)) != NULL; i++) {
        if (strcmp(name, want) == 0)
            return v;
    }
    fail_msg("no counter %s", want);
    return 0;
}

/* Whatever was where the packet is made. */
static void send__pad_is_zero(void **state)
{
    static const uint32_t rows[] = {1024, 1, 2, 3, 4, 255, 512, 513, 1021, 1022, 1023};
    struct port *p = make();
    struct got g = {0};
    (void)state;
    for (unsigned v6 = 0; v6 < 2; v6++) {
        for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            queue(p, v6 ? &path6 : &path4, (uint32_t)(v6 * sizeof(rows) / sizeof(rows[0])) + i, 1,
                  rows[i]);
            p->ops->flush(p, 1000);
        }
    }
    assert_int_equal(settle(p, &g), 2 * sizeof(rows) / sizeof(rows[0]));
    assert_int_equal(g.bad + g.out_of_order, 0);
    assert_int_equal(kernel.pads, 2 * (3 + 2 + 1 + 1 + 3 + 3 + 2 + 1));
    assert_int_equal(kernel.bad_pads, 0);
    p->ops->close(p);
}

static void send__refused_runs_go_packet_by_packet(void **state)
{
    (void)state;
    static const int errors[] = {EINVAL, EIO, EMSGSIZE, EOPNOTSUPP};
    for (size_t i = 0; i < 2 * sizeof(errors) / sizeof(errors[0]); i++) {
        const struct nic_path *path = i % 2 != 0 ? &path6 : &path4;
        struct port *p = make();
        struct got g = {0};
        kernel.run_error = errors[i / 2];
        for (uint32_t psn = 0; psn < 200; psn += 40) {
            queue(p, path, psn, 40, 256);
            p->ops->flush(p, 1000);
        }
        assert_int_equal(settle(p, &g), 200);
        assert_int_equal(g.bad + g.out_of_order, 0);
        assert_int_equal(count_of(p, "udp_rx_foreign_id"), 0);
        /* After three in a row it stops asking, and asks again a second later. */
        assert_int_equal(count_of(p, "udp_tx_gso_fallback"), 3);
        p->ops->flush(p, 1000 + 1000000000);
        kernel.run_error = 0;
        uint64_t messages = count_of(p, "udp_tx_messages");
        queue(p, path, 200, 40, 256);
        p->ops->flush(p, 1000 + 1000000000);
        assert_int_equal(count_of(p, "udp_tx_messages"), messages + 1);
        assert_int_equal(settle(p, &g), 240);
        assert_int_equal(g.bad + g.out_of_order, 0);
        p->ops->close(p);
    }
}

static void send__full_socket_is_tried_again_in_order(void **state)
{
    (void)state;
    struct port *p = make();
    struct got g = {0};
    kernel.error = EAGAIN;
    kernel.after = 2;
    for (uint32_t psn = 0; psn < 50; psn += 10)
        queue(p, &path4, psn, 10, 100);
    p->ops->flush(p, 5000);
    assert_false(p->ops->writable(p));
    assert_true(p->ops->deadline(p) > 5000 && p->ops->deadline(p) < 5000 + 10000000);
    assert_int_equal(settle(p, &g), 20);
    queue(p, &path4, 50, 10, 100);
    p->ops->flush(p, 6000);
    assert_int_equal(settle(p, &g), 20);
    assert_int_equal(count_of(p, "udp_tx_full"), 2);
    assert_int_equal(count_of(p, "udp_tx_drop_full"), 0);
    kernel.error = 0;
    p->ops->flush(p, 200000);
    assert_true(p->ops->writable(p));
    assert_true(p->ops->deadline(p) == UINT64_MAX);
    assert_int_equal(settle(p, &g), 60);
    assert_int_equal(g.bad + g.out_of_order, 0);
    p->ops->close(p);
}

static void send__what_never_fits_is_lost_and_counted(void **state)
{
    (void)state;
    struct port *p = make();
    struct got g = {0};
    kernel.error = EAGAIN;
    unsigned queued = 0;
    for (; count_of(p, "udp_tx_drop_full") == 0 && queued < 100000; queued += 10)
        queue(p, &path4, queued, 10, 4096);
    assert_true(queued < 100000);
    kernel.error = 0;
    p->ops->flush(p, 200000);
    assert_int_equal(settle(p, &g) + count_of(p, "udp_tx_drop_full"), queued);
    assert_int_equal(g.bad + g.out_of_order, 0);
    p->ops->close(p);
}

static void send__errors_are_counted_by_kind(void **state)
{
    (void)state;
    static const struct {
        int error;
        const char *counter;
    } rows[] = {
        {ENOBUFS,       "udp_tx_drop_full" },
        {ENOMEM,        "udp_tx_drop_full" },
        {EMSGSIZE,      "udp_tx_drop_size" },
        {ENETUNREACH,   "udp_tx_drop_error"},
        {EPERM,         "udp_tx_drop_error"},
        {EADDRNOTAVAIL, "udp_tx_drop_error"},
        {EHOSTUNREACH,  "udp_tx_drop_error"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct port *p = make();
        struct got g = {0};
        kernel.error = rows[i].error;
        kernel.after = 1;
        queue(p, &path4, 0, 1, 100);
        queue(p, &path4, 1, 1, 100);
        p->ops->flush(p, 5000);
        assert_int_equal(count_of(p, rows[i].counter), 1);
        assert_true(p->ops->writable(p));
        assert_int_equal(settle(p, &g), 1);
        p->ops->close(p);
    }
}

static bool own_net; /* whose addresses may change */

/* Of lo; IPv4 as its second one. */
static void lo_address(const struct net_addr *a, bool there)
{
    int fd = socket(a->b[0] != 0 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0), r;
    if (a->b[0] != 0) {
        struct in6_ifreq v6 = {.ifr6_prefixlen = 128, .ifr6_ifindex = (int)if_nametoindex("lo")};
        struct sockaddr_in6 in = {.sin6_family = AF_INET6};
        const struct timespec turn = {0, 1000000};
        memcpy(&v6.ifr6_addr, a->b, 16);
        memcpy(&in.sin6_addr, a->b, 16);
        r = ioctl(fd, there ? SIOCSIFADDR : SIOCDIFADDR, &v6);
        /* Tentative at first, even here. */
        for (int ms = 0; there && ms < 5000 && bind(fd, (struct sockaddr *)&in, sizeof(in)); ms++)
            nanosleep(&turn, NULL);
    } else {
        struct ifreq v4 = {.ifr_name = "lo:1"};
        struct sockaddr_in in = {.sin_family = AF_INET};
        memcpy(&in.sin_addr, a->b + 12, there ? 4 : 0); /* 0.0.0.0 takes it away */
        memcpy(&v4.ifr_addr, &in, sizeof(in));
        r = ioctl(fd, SIOCSIFADDR, &v4);
    }
    close(fd);
    assert_int_equal(r, 0);
}

/* From the path's local address, whatever socket it shares, and from none that has gone. */
static void send__only_from_addresses_that_are_there(void **state)
{
    (void)state;
    static const struct nic_path moving[] = {
        {.local = {{[10] = 0xff, [11] = 0xff, 10, 9, 0, 7}},
         .remote = {{[10] = 0xff, [11] = 0xff, 127, 0, 0, 1}},
         .udp_sport = 0xC777                                                                            },
        {.local = {{0xfd, [15] = 7}},                        .remote = {{[15] = 1}}, .udp_sport = 0xC777},
    };
    if (!own_net)
        SKIP_TEST("the addresses are not the test's");
    for (unsigned i = 0; i < 6; i++) {
        const struct nic_path *path = &moving[i % 2], *other = i % 2 != 0 ? &path6 : &path4;
        struct port *p = make();
        struct got g = {0};
        /* The socket is made for this address, for another, or while this one is not there. */
        if (i < 4)
            lo_address(&path->local, true);
        queue(p, i / 2 == 1 ? other : path, 0, 1, 100);
        p->ops->flush(p, 1000);
        if (i >= 4) {
            assert_int_equal(settle(p, &g), 0);
            assert_int_equal(count_of(p, "udp_tx_drop_error"), 1);
            lo_address(&path->local, true);
            queue(p, path, 0, 1, 100);
            p->ops->flush(p, 1000);
        }
        assert_int_equal(settle(p, &g), 1);
        queue(p, path, 1, 3, 100);
        p->ops->flush(p, 2000);
        assert_int_equal(settle(p, &g), 4);
        assert_memory_equal(&g.src, &path->local, sizeof(g.src));
        queue(p, other, 4, 3, 100);
        p->ops->flush(p, 3000);
        assert_int_equal(settle(p, &g), 7);
        assert_memory_equal(&g.src, &other->local, sizeof(g.src));

        uint64_t dropped = count_of(p, "udp_tx_drop_error");
        lo_address(&path->local, false);
        queue(p, path, 7, 1, 100);
        p->ops->flush(p, 4000);
        assert_int_equal(settle(p, &g), 7);
        assert_int_equal(count_of(p, "udp_tx_drop_error"), dropped + 1);
        lo_address(&path->local, true);
        queue(p, path, 7, 1, 100);
        p->ops->flush(p, 5000);
        assert_int_equal(settle(p, &g), 8);
        assert_memory_equal(&g.src, &path->local, sizeof(g.src));
        lo_address(&path->local, false);
        assert_int_equal(g.bad + g.out_of_order, 0);
        p->ops->close(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(send__pad_is_zero),
        cmocka_unit_test(send__refused_runs_go_packet_by_packet),
        cmocka_unit_test(send__full_socket_is_tried_again_in_order),
        cmocka_unit_test(send__what_never_fits_is_lost_and_counted),
        cmocka_unit_test(send__errors_are_counted_by_kind),
        cmocka_unit_test(send__only_from_addresses_that_are_there),
    };
    ino_t outside = private_net_inode();
    private_net_enter();
    own_net = private_net_inode() != outside;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
