/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_device.c: the device behind an id: found, told of its end, and asynchronous events of
 * what an id has.
 */
#include "cm_rig.h"

#include <net/if.h>
#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../port/private_net.h"

static bool able;

static bool ip(const char *words)
{
    char command[200];
    snprintf(command, sizeof(command), "ip %s >/dev/null 2>&1", words);
    return system(command) == 0;
}

static int device_setup(void **state)
{
    ino_t before = private_net_inode();

    rig_setup(state);
    able = private_net_inode() != before;
    return 0;
}

/* An interface with an address, and a peer that stays down and so is no device; the test is skipped
 * where that is not allowed. */
static void veth_up(const char *name, const char *addr)
{
    char words[100];

    if (!able)
        skip();
    snprintf(words, sizeof(words), "link add %s type veth peer name %sp", name, name);
    if (!ip(words))
        skip();
    snprintf(words, sizeof(words), "address add %s/24 dev %s", addr, name);
    assert_true(ip(words));
    snprintf(words, sizeof(words), "link set %s up", name);
    assert_true(ip(words));
}

static void veth_down(const char *name)
{
    char words[100];

    snprintf(words, sizeof(words), "link del %s", name);
    assert_true(ip(words));
}

/* Every id on the device hears of it once, wherever it stands; others do not. */
static void removal__told(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel(), *other = rig_channel();
    veth_up("vt0", "10.89.3.1");
    struct rdma_cm_id *bound = rig_id(ch, RDMA_PS_TCP), *listens = rig_id(ch, RDMA_PS_TCP);
    struct rdma_cm_id *resolved = rig_id(ch, RDMA_PS_UDP), *gone = rig_id(ch, RDMA_PS_TCP);
    struct rdma_cm_id *any = rig_id(other, RDMA_PS_TCP), *lo = rig_id(other, RDMA_PS_UDP);
    union rig_addr addr = rig_addr("10.89.3.1", 0), wild = rig_addr("0.0.0.0", 0);

    assert_int_equal(rdma_bind_addr(bound, &addr.sa), 0);
    assert_int_equal(rdma_bind_addr(listens, &addr.sa), 0);
    assert_int_equal(rdma_bind_addr(gone, &addr.sa), 0);
    assert_int_equal(rdma_listen(listens, 1), 0);
    rig_resolve(resolved, "10.89.3.1", 4711);
    assert_int_equal(rdma_bind_addr(any, &wild.sa), 0);
    rig_resolve(lo, "127.0.0.1", 4711);
    assert_string_equal(ibv_get_device_name(bound->verbs->device), "vb_vt0");
    assert_int_equal(rdma_destroy_id(gone), 0);
    veth_down("vt0");
    bool told[3] = {false};
    for (unsigned i = 0; i < 3; i++) {
        struct rdma_cm_event *e = rig_event(ch);
        assert_int_equal(e->event, RDMA_CM_EVENT_DEVICE_REMOVAL);
        assert_int_equal(e->status, 0);
        unsigned who = e->id == bound ? 0 : e->id == listens ? 1 : 2;
        assert_true(who != 2 || e->id == resolved);
        assert_false(told[who]);
        told[who] = true;
        rdma_ack_cm_event(e);
    }
    rig_expect_none(ch);
    rig_expect_none(other);
    struct rdma_cm_id *ids[] = {bound, listens, resolved, any, lo};
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(rdma_destroy_id(ids[i]), 0);
    rdma_destroy_event_channel(ch);
    rdma_destroy_event_channel(other);
}

/* Another of the same name and address is another device. */
static void removal__and_back(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    union rig_addr addr = rig_addr("10.89.3.1", 0);
    struct ibv_context *before = NULL;

    for (unsigned i = 0; i < 2; i++) {
        veth_up("vt0", "10.89.3.1");
        struct rdma_cm_id *id = rig_id(ch, RDMA_PS_TCP);
        assert_int_equal(rdma_bind_addr(id, &addr.sa), 0);
        assert_ptr_not_equal(id->verbs, before);
        before = id->verbs;
        veth_down("vt0");
        rig_expect(ch, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
        struct rdma_cm_id *late = rig_id(ch, RDMA_PS_TCP);
        assert_int_equal(rdma_bind_addr(late, &addr.sa), -1);
        assert_int_equal(errno, EADDRNOTAVAIL);
        assert_null(late->verbs);
        rdma_destroy_id(late);
        rdma_destroy_id(id);
    }
    rdma_destroy_event_channel(ch);
}

/* What waits for an event in vain gets this one. */
static void removal__of_a_synchronous_id(void **state)
{
    (void)state;
    veth_up("vt0", "10.89.3.1");
    struct rdma_cm_id *id = rig_id(NULL, RDMA_PS_TCP);
    union rig_addr dst = rig_addr("10.89.3.99", 7);
    struct rdma_conn_param param = {.qp_num = 2};

    assert_int_equal(rdma_resolve_addr(id, NULL, &dst.sa, 1000), 0);
    assert_int_equal(rdma_resolve_route(id, 1000), 0);
    veth_down("vt0");
    assert_int_equal(rdma_connect(id, &param), -1);
    assert_int_equal(errno, ENODEV);
    rdma_destroy_id(id);
}

/* Asynchronous events of an id's QP come from the context that the id shows. */
static void async__of_a_qp(void **state)
{
    (void)state;
    struct rig_pair p;
    uint8_t byte = 0;

    rig_pair_open(&p, "127.0.0.1", RDMA_PS_TCP, true);
    rig_pair_connect(&p);
    struct ibv_mr *mr = rdma_reg_msgs(p.client, &byte, 1);
    /* To a place that nobody registered. */
    assert_int_equal(rdma_post_write(p.client, NULL, &byte, 1, mr, IBV_SEND_SIGNALED, 4096, 0), 0);
    struct pollfd fd = {.fd = p.server->verbs->async_fd, .events = POLLIN};
    assert_int_equal(poll(&fd, 1, RIG_WAIT_MS), 1);
    struct ibv_async_event e;
    assert_int_equal(ibv_get_async_event(p.server->verbs, &e), 0);
    assert_int_equal(e.event_type, IBV_EVENT_QP_ACCESS_ERR);
    assert_ptr_equal(e.element.qp, p.server->qp);
    ibv_ack_async_event(&e);
    struct ibv_wc wc;
    assert_int_equal(rdma_get_send_comp(p.client, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
    rdma_dereg_mr(mr);
    rig_pair_close(&p);
}

static void devices__each_once(void **state)
{
    (void)state;
    int n = -1, again = -1;

    veth_up("vt0", "10.89.3.1");
    struct ibv_context **list = rdma_get_devices(&n), **second = rdma_get_devices(&again);
    assert_int_equal(n, again);
    assert_int_equal(n, 2);
    assert_null(list[n]);
    assert_ptr_not_equal(list[0], list[1]);
    for (int i = 0; i < n; i++)
        assert_ptr_equal(list[i], second[i]);
    rdma_free_devices(list);
    rdma_free_devices(second);
    rdma_free_devices(NULL);
    list = rdma_get_devices(NULL);
    assert_non_null(list);
    rdma_free_devices(list);
    veth_down("vt0");
    list = rdma_get_devices(&n);
    assert_int_equal(n, 1);
    rdma_free_devices(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(removal__told),
        cmocka_unit_test(removal__and_back),
        cmocka_unit_test(removal__of_a_synchronous_id),
        cmocka_unit_test(async__of_a_qp),
        cmocka_unit_test(devices__each_once),
    };

    return cmocka_run_group_tests(tests, device_setup, NULL);
}
