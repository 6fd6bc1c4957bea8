/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_queue_pair.c: more QPs than a slot has numbers: the process claims further slots, and
 * packets for all of them find it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "../port/private_net.h"
#include "endpoint.h"
#include "host/host_priv.h"

enum {
    QPNS_OF_SLOT = 1 << QPN_SLOT_BITS,
    MORE = 8, /* than one slot can have */
    SLOTS = 1024,
};

static bool no_memory; /* for the QPNs of a slot */
void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);

void *__wrap_calloc(size_t n, size_t bytes)
{
    return no_memory && n == QPNS_OF_SLOT ? NULL : __real_calloc(n, bytes);
}

static struct qp *qp[QPNS_OF_SLOT + MORE];

static int create(struct endpoint *e, struct qp **out)
{
    struct qp_init init = {
        .type = QP_TYPE_RC,
        .pd = e->pd,
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
    };
    return verbena_qp_create(e->ctx, &init, out);
}

/* Until there are no QPNs left in our slots; the number of QPs made, the endpoint's not counted. */
static unsigned fill_slot(struct endpoint *e)
{
    unsigned n = 0;
    while (!nic_out_of_qpns(e->ctx->host->nic)) {
        assert_int_equal(create(e, &qp[n]), 0);
        n++;
    }
    return n;
}

static void destroy(struct endpoint *e, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(verbena_qp_destroy(e->ctx, qp[i]), 0);
}

static void queue_pair__second_slot(void **state)
{
    (void)state;
    struct endpoint e, peer;
    struct endpoint_name name, peer_name;
    struct nic_wc wc;
    endpoint_open(&e, "vb_lo", 4096);
    unsigned n = fill_slot(&e);
    assert_true(n >= MAX_QP / MAX_QPN_SLOTS - 1);
    assert_int_equal(e.ctx->host->qpn_slots, 1);
    /* The next endpoint's QP has a number of another slot, and works. */
    endpoint_open(&peer, "vb_lo", 4096);
    assert_int_equal(peer.ctx->host->qpn_slots, 2);
    assert_int_not_equal(verbena_qp_number(peer.qp) >> QPN_SLOT_BITS,
                         verbena_qp_number(e.qp) >> QPN_SLOT_BITS);
    endpoint_name(&e, 0, &name);
    endpoint_name(&peer, 0, &peer_name);
    endpoint_connect(&e, 0, &peer_name, 1024);
    endpoint_connect(&peer, 0, &name, 1024);
    memset(e.memory, 7, 1000);
    assert_int_equal(endpoint_post(&e, WR_RDMA_WRITE, &peer_name, 0, 1000, WR_SIGNALED), 0);
    assert_int_equal(endpoint_wait(&e, &wc), WC_SUCCESS);
    assert_memory_equal(peer.memory, e.memory, 1000);
    memset(e.memory, 0, 1000);
    assert_int_equal(endpoint_post(&peer, WR_RDMA_WRITE, &name, 0, 1000, WR_SIGNALED), 0);
    assert_int_equal(endpoint_wait(&peer, &wc), WC_SUCCESS);
    assert_memory_equal(peer.memory, e.memory, 1000);
    destroy(&e, n);
    endpoint_close(&peer);
    endpoint_close(&e);
}

/* All other slots are somebody's: an error, nothing else happens, and it works again later. */
static void queue_pair__no_slot_left(void **state)
{
    (void)state;
    struct endpoint e;
    struct qp *one_more;
    int held[SLOTS];
    endpoint_open(&e, "vb_lo", 4096);
    unsigned n = fill_slot(&e);
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        int length = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "verbena/slot/%u", slot);
        held[slot] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (held[slot] < 0) { /* few descriptors are allowed here */
            while (slot-- > 0)
                close(held[slot]);
            skip();
        }
        (void)!bind(held[slot], (struct sockaddr *)&a,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length));
    }
    assert_int_equal(create(&e, &one_more), -ENOMEM);
    assert_int_equal(e.ctx->host->qpn_slots, 1);
    for (unsigned slot = 0; slot < SLOTS; slot++)
        close(held[slot]);
    assert_int_equal(create(&e, &one_more), 0);
    assert_int_equal(e.ctx->host->qpn_slots, 2);
    assert_int_equal(verbena_qp_destroy(e.ctx, one_more), 0);
    destroy(&e, n);
    endpoint_close(&e);
}

/* Datagrams may come over IPv4 and over IPv6 as soon as they are taken, and those that are sent
 * have a source port of their QP's. */
static void queue_pair__datagrams(void **state)
{
    (void)state;
    struct endpoint e;
    struct qp *ud[2];
    endpoint_open(&e, "vb_lo", 4096);
    for (unsigned i = 0; i < 2; i++) {
        struct qp_init init = {
            .type = QP_TYPE_UD,
            .pd = e.pd,
            .send_cq = e.cq,
            .recv_cq = e.cq,
            .cap = {.max_send_wr = 1, .max_send_sge = 1},
        };
        struct nic_qp_attr attr = {.state = QP_STATE_INIT, .port_num = 1};
        assert_int_equal(verbena_qp_create(e.ctx, &init, &ud[i]), 0);
        const struct host_object *o = ud[i]->owner;
        assert_in_range(ud[i]->udp_sport, 0xC000, 0xFFFF);
        assert_int_equal(
            verbena_qp_modify(e.ctx, ud[i], &attr,
                              QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY),
            0);
        assert_int_equal(o->expects, 0);
        attr.state = QP_STATE_RTR;
        assert_int_equal(verbena_qp_modify(e.ctx, ud[i], &attr, QP_ATTR_STATE), 0);
        assert_int_equal(o->expects, 3);
    }
    assert_int_not_equal(ud[0]->udp_sport, ud[1]->udp_sport);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(verbena_qp_destroy(e.ctx, ud[i]), 0);
    endpoint_close(&e);
}

/* Names of slots that are taken, all by this process. */
static unsigned slots_taken(void)
{
    char line[256];
    unsigned n = 0;
    FILE *f = fopen("/proc/net/unix", "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL)
        n += strstr(line, "00010000") != NULL && strstr(line, "@verbena/slot/") != NULL;
    fclose(f);
    return n;
}

/* A slot that was claimed in vain is used the next time. */
static void queue_pair__no_memory_for_a_slot(void **state)
{
    (void)state;
    struct endpoint e;
    struct qp *one_more;
    unsigned others = slots_taken();
    endpoint_open(&e, "vb_lo", 4096);
    unsigned n = fill_slot(&e);
    no_memory = true;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(create(&e, &one_more), -ENOMEM);
    no_memory = false;
    assert_int_equal(create(&e, &one_more), 0);
    assert_int_equal(e.ctx->host->qpn_slots, 2);
    assert_int_equal(slots_taken() - others, 2);
    assert_int_equal(verbena_qp_destroy(e.ctx, one_more), 0);
    destroy(&e, n);
    endpoint_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_pair__second_slot),
        cmocka_unit_test(queue_pair__no_slot_left),
        cmocka_unit_test(queue_pair__datagrams),
        cmocka_unit_test(queue_pair__no_memory_for_a_slot),
    };
    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
