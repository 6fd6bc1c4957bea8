/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_ep.c: endpoints: synchronous ids with all that they need, from one call; and calls that
 * make no sense for an id.
 */
#include "cm_rig.h"

#include <infiniband/ib.h>
#include <infiniband/sa.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>

static struct rdma_addrinfo *lookup(const char *node, const char *service, int flags, int space)
{
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = space}, *res = NULL;

    assert_int_equal(rdma_getaddrinfo(node, service, &hints, &res), 0);
    return res;
}

static void create_ep__active(void **state)
{
    (void)state;
    static const struct {
        const char *node;
        int space;
        bool qp;
    } rows[] = {
        {"127.0.0.1", RDMA_PS_TCP, true },
        {"127.0.0.1", RDMA_PS_TCP, false},
        {"::1",       RDMA_PS_TCP, true },
        {"::1",       RDMA_PS_UDP, true },
        {"127.0.0.1", RDMA_PS_IB,  true },
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rdma_addrinfo *res = lookup(rows[i].node, "7", 0, rows[i].space);
        struct rdma_cm_id *id = NULL;
        struct ibv_qp_init_attr init = rig_qp_init(IBV_QPT_UC); /* the address's type counts */
        assert_int_equal(rdma_create_ep(&id, res, NULL, rows[i].qp ? &init : NULL), 0);
        assert_non_null(id->verbs);
        assert_int_equal(id->ps, rows[i].space);
        assert_int_equal(id->qp != NULL, rows[i].qp);
        if (rows[i].qp)
            assert_int_equal(id->qp->qp_type, res->ai_qp_type);
        assert_int_equal(ntohs(rdma_get_dst_port(id)), 7);
        assert_int_equal(id->route.num_paths, 1);
        rdma_destroy_ep(id);
        rdma_freeaddrinfo(res);
    }
}

/* A route that the address brings along stands for resolving one. */
static void create_ep__with_a_route(void **state)
{
    (void)state;
    for (unsigned good = 0; good < 2; good++) {
        struct rdma_addrinfo *res = lookup("::1", "7", 0, RDMA_PS_TCP);
        struct ibv_path_data *path = calloc(1, sizeof(*path));
        struct rdma_cm_id *id = NULL;
        path->flags =
            IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | (good ? IBV_PATH_FLAG_BIDIRECTIONAL : 0);
        path->path.sgid.raw[15] = path->path.dgid.raw[15] = 1;
        path->path.tclass = 0x20;
        res->ai_route = path;
        res->ai_route_len = sizeof(*path);
        assert_int_equal(rdma_create_ep(&id, res, NULL, NULL), good ? 0 : -1);
        if (good) {
            assert_int_equal(id->route.path_rec->traffic_class, 0x20);
            rdma_destroy_ep(id);
        } else {
            assert_int_equal(errno, EINVAL);
            assert_null(id);
        }
        rdma_freeaddrinfo(res);
    }
}

static void create_ep__refused(void **state)
{
    (void)state;
    struct rdma_addrinfo *res = lookup("127.0.0.1", "7", 0, RDMA_PS_TCP);
    struct rdma_addrinfo nowhere = {.ai_port_space = RDMA_PS_TCP};
    struct rdma_addrinfo nobody = {.ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_PASSIVE};
    struct rdma_addrinfo odd = *res;
    struct ibv_qp_init_attr huge = rig_qp_init(IBV_QPT_RC);
    struct rdma_cm_id *id = NULL;

    huge.cap.max_send_sge = 1000;
    odd.ai_port_space = 77;
    assert_int_equal(rdma_create_ep(NULL, res, NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_create_ep(&id, NULL, NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_create_ep(&id, &nowhere, NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_create_ep(&id, &nobody, NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_create_ep(&id, &odd, NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_create_ep(&id, res, NULL, &huge), -1);
    assert_true(errno > 0);
    assert_null(id);
    rdma_freeaddrinfo(res);
}

struct client {
    struct rdma_addrinfo *to;
    int ret, err;
};

static void *client_run(void *arg)
{
    struct client *c = arg;
    struct ibv_qp_init_attr init = rig_qp_init(IBV_QPT_RC);
    struct rdma_cm_id *id = NULL;

    c->ret = rdma_create_ep(&id, c->to, NULL, &init);
    if (c->ret != 0)
        return NULL;
    c->ret = rdma_connect(id, NULL);
    c->err = errno;
    if (c->ret == 0)
        c->ret = rdma_disconnect(id);
    rdma_destroy_ep(id);
    return NULL;
}

/* Each request comes with the QP that the listener was made with. */
static void get_request__with_qp(void **state)
{
    (void)state;
    struct rdma_addrinfo *at = lookup("::1", "7711", RAI_PASSIVE, RDMA_PS_TCP);
    struct client client = {.to = lookup("::1", "7711", 0, RDMA_PS_TCP)};
    struct ibv_qp_init_attr init = rig_qp_init(IBV_QPT_RC);
    struct rdma_cm_id *listen = NULL, *id = NULL;
    pthread_t thread;

    assert_int_equal(rdma_create_ep(&listen, at, NULL, &init), 0);
    assert_null(listen->qp);
    assert_int_equal(rdma_get_request(listen, &id), -1); /* it does not listen yet */
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_listen(listen, 1), 0);
    assert_int_equal(rdma_get_request(listen, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(pthread_create(&thread, NULL, client_run, &client), 0);
    assert_int_equal(rdma_get_request(listen, &id), 0);
    assert_non_null(id->qp);
    assert_int_equal(id->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_int_equal(rdma_accept(id, NULL), 0);
    assert_int_equal(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
    pthread_join(thread, NULL);
    assert_int_equal(client.ret, 0);
    assert_int_equal(rdma_disconnect(id), 0);
    rdma_destroy_ep(id);
    rdma_destroy_ep(listen);
    rdma_freeaddrinfo(at);
    rdma_freeaddrinfo(client.to);
}

static void get_request__refused(void **state)
{
    (void)state;
    struct rdma_addrinfo *at = lookup("::1", "7712", RAI_PASSIVE, RDMA_PS_TCP);
    struct client client = {.to = lookup("::1", "7712", 0, RDMA_PS_TCP)};
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *listen = NULL, *id = NULL, *async = rig_id(ch, RDMA_PS_TCP);
    pthread_t thread;

    assert_int_equal(rdma_listen(async, 1), 0);
    assert_int_equal(rdma_get_request(async, &id), -1); /* its events come by the channel */
    assert_int_equal(errno, EINVAL);
    rdma_destroy_id(async);
    rdma_destroy_event_channel(ch);
    assert_int_equal(rdma_create_ep(&listen, at, NULL, NULL), 0);
    assert_int_equal(rdma_listen(listen, 1), 0);
    assert_int_equal(pthread_create(&thread, NULL, client_run, &client), 0);
    assert_int_equal(rdma_get_request(listen, &id), 0);
    assert_null(id->qp);
    assert_int_equal(rdma_reject(id, NULL, 0), 0);
    pthread_join(thread, NULL);
    assert_int_equal(client.ret, -1);
    assert_int_equal(client.err, ECONNREFUSED);
    assert_int_equal(rdma_reject(id, NULL, 0), -1); /* once */
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_accept(id, NULL), -1);
    assert_int_equal(errno, EINVAL);
    rdma_destroy_ep(id);
    rdma_destroy_ep(listen);
    rdma_freeaddrinfo(at);
    rdma_freeaddrinfo(client.to);
}

/* Calls for connections on ids that have none: -1 and a positive errno. */
static void case_91__no_connection(void **state)
{
    (void)state;
    static const enum rdma_port_space spaces[] = {RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB,
                                                  RDMA_PS_IPOIB};

    for (unsigned i = 0; i < 4; i++) {
        struct rdma_cm_id *id = rig_id(NULL, spaces[i]);
        struct rdma_conn_param param = {.qp_num = 2};
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
        int mask;
        for (unsigned bound = 0; bound < 2; bound++) {
            int ret[] = {
                rdma_connect(id, &param),
                rdma_accept(id, &param),
                rdma_reject(id, NULL, 0),
                rdma_reject_ece(id, NULL, 0),
                rdma_establish(id),
                rdma_disconnect(id),
                rdma_notify(id, IBV_EVENT_COMM_EST),
                bound ? -1 : rdma_init_qp_attr(id, &attr, &mask),
            };
            for (unsigned k = 0; k < sizeof(ret) / sizeof(ret[0]); k++) {
                if (ret[k] != -1)
                    fail_msg("space %#x, call %u: %d", spaces[i], k, ret[k]);
            }
            assert_int_equal(errno, EINVAL);
            union rig_addr lo = rig_addr("127.0.0.1", 0);
            if (!bound)
                assert_int_equal(rdma_bind_addr(id, &lo.sa), 0);
        }
        rdma_destroy_id(id);
    }
}

/* QPs and SRQs by the extended calls. */
static void create_qp_ex__rows(void **state)
{
    (void)state;
    struct rdma_addrinfo *res = lookup("::1", "7", 0, RDMA_PS_UDP);
    struct rdma_cm_id *id = NULL;
    struct ibv_qp_init_attr_ex attr = {
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD,
        .comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS,
        .create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
    };

    assert_int_equal(rdma_create_ep(&id, res, NULL, NULL), 0);
    assert_int_equal(rdma_create_qp_ex(id, NULL), -1);
    assert_int_equal(errno, EINVAL);
    struct ibv_qp_init_attr_ex other = attr;
    other.qp_type = IBV_QPT_RC;
    assert_int_equal(rdma_create_qp_ex(id, &other), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_create_qp_ex(id, &attr), 0);
    assert_ptr_equal(attr.pd, id->pd); /* the default one */
    assert_ptr_equal(attr.send_cq, id->send_cq);
    assert_int_equal(rdma_create_qp_ex(id, &attr), -1);
    assert_int_equal(errno, EINVAL);
    rdma_destroy_ep(id);
    rdma_freeaddrinfo(res);
}

static void create_srq_ex__rows(void **state)
{
    (void)state;
    struct rdma_addrinfo *res = lookup("::1", "7", 0, RDMA_PS_TCP);
    struct rdma_cm_id *id = NULL, *unbound = rig_id(NULL, RDMA_PS_TCP);
    struct ibv_srq_init_attr_ex attr = {
        .attr = {.max_wr = 3, .max_sge = 1}
    };

    assert_int_equal(rdma_create_srq_ex(unbound, &attr), -1);
    assert_int_equal(errno, EINVAL);
    rdma_destroy_srq(unbound); /* none */
    rdma_destroy_id(unbound);
    assert_int_equal(rdma_create_ep(&id, res, NULL, NULL), 0);
    assert_int_equal(rdma_create_srq_ex(id, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_create_srq_ex(id, &attr), 0);
    assert_true(attr.attr.max_wr >= 3);
    assert_int_equal(rdma_create_srq_ex(id, &attr), -1);
    assert_int_equal(errno, EINVAL);
    rdma_destroy_srq(id);
    assert_null(id->srq);
    assert_int_equal(rdma_create_srq_ex(id, &attr), 0);
    rdma_destroy_ep(id); /* with it */
    rdma_freeaddrinfo(res);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create_ep__active),    cmocka_unit_test(create_ep__with_a_route),
        cmocka_unit_test(create_ep__refused),   cmocka_unit_test(get_request__with_qp),
        cmocka_unit_test(get_request__refused), cmocka_unit_test(case_91__no_connection),
        cmocka_unit_test(create_qp_ex__rows),   cmocka_unit_test(create_srq_ex__rows),
    };

    return cmocka_run_group_tests(tests, rig_setup, NULL);
}
