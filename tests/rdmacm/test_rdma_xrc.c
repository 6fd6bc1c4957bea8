/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_xrc.c: extended reliable connections by the connection manager: endpoints whose QPs are
 * initiators and targets, and XRC SRQs with what goes with them.
 */
#include "cm_rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>

enum { MESSAGE_BYTES = 16 };

static struct rdma_addrinfo *lookup(const char *service, int flags, enum ibv_qp_type type)
{
    struct rdma_addrinfo hints = {
        .ai_flags = flags, .ai_port_space = RDMA_PS_IB, .ai_qp_type = (int)type};
    struct rdma_addrinfo *res = NULL;

    assert_int_equal(rdma_getaddrinfo("127.0.0.1", service, &hints, &res), 0);
    return res;
}

/* Of a type, bound to lo. */
static struct rdma_cm_id *bound_ep(enum ibv_qp_type type)
{
    struct rdma_addrinfo *res = lookup("7", 0, type);
    struct rdma_cm_id *id = NULL;

    assert_int_equal(rdma_create_ep(&id, res, NULL, NULL), 0);
    assert_int_equal(id->qp_type, type);
    rdma_freeaddrinfo(res);
    return id;
}

struct client {
    struct rdma_addrinfo *to;
    int ret, err;
    enum ibv_wc_status status;
};

/* Sends one message to the SRQ whose number the REP has told. */
static int client_send(struct rdma_cm_id *id, enum ibv_wc_status *status)
{
    char text[MESSAGE_BYTES] = "extended";
    struct ibv_sge sge = {.addr = (uintptr_t)text, .length = sizeof(text)};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED},
                       *bad;
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

    memcpy(&wr.qp_type.xrc.remote_srqn, id->event->param.conn.private_data, sizeof(uint32_t));
    if (ibv_post_send(id->qp, &wr, &bad) != 0 || rdma_get_send_comp(id, &wc) != 1)
        return -1;
    *status = wc.status;
    return rdma_disconnect(id);
}

static void *client_run(void *arg)
{
    struct client *c = arg;
    struct ibv_qp_init_attr init = rig_qp_init((enum ibv_qp_type)c->to->ai_qp_type);
    struct rdma_cm_id *id = NULL;

    c->ret = rdma_create_ep(&id, c->to, NULL, &init);
    if (c->ret != 0)
        return NULL;
    c->ret = rdma_connect(id, NULL);
    c->err = errno;
    if (c->ret == 0 && id->qp_type == IBV_QPT_XRC_SEND)
        c->ret = client_send(id, &c->status);
    rdma_destroy_ep(id);
    return NULL;
}

/* The SRQ is made after the QP, and its number goes with the REP. */
static void serve(struct rdma_cm_id *id)
{
    struct ibv_srq_init_attr srq = {
        .attr = {.max_wr = 3, .max_sge = 1}
    };
    char text[MESSAGE_BYTES] = "";
    struct ibv_wc wc;
    uint32_t number;

    assert_int_equal(id->qp_type, IBV_QPT_XRC_RECV);
    assert_int_equal(id->qp->qp_type, IBV_QPT_XRC_RECV);
    assert_null(id->recv_cq);
    assert_int_equal(rdma_create_srq(id, NULL, &srq), 0);
    assert_int_equal(ibv_get_srq_num(id->srq, &number), 0);
    struct ibv_mr *mr = rdma_reg_msgs(id, text, sizeof(text));
    assert_non_null(mr);
    assert_int_equal(rdma_post_recv(id, NULL, text, sizeof(text), mr), 0);
    struct rdma_conn_param param = {.private_data = &number, .private_data_len = sizeof(number)};
    assert_int_equal(rdma_accept(id, &param), 0);
    assert_int_equal(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(rdma_get_recv_comp(id, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.byte_len, sizeof(text));
    assert_string_equal(text, "extended");
    assert_int_equal(rdma_disconnect(id), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void connection__with_a_message(void **state)
{
    (void)state;
    struct rdma_addrinfo *at = lookup("7721", RAI_PASSIVE, IBV_QPT_XRC_RECV);
    struct client client = {.to = lookup("7721", 0, IBV_QPT_XRC_SEND)};
    struct ibv_qp_init_attr init = rig_qp_init(IBV_QPT_XRC_RECV);
    struct rdma_cm_id *listen = NULL, *id = NULL;

    assert_int_equal(rdma_create_ep(&listen, at, NULL, &init), 0);
    assert_int_equal(rdma_listen(listen, 1), 0);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        client.status = IBV_WC_GENERAL_ERR;
        assert_int_equal(pthread_create(&thread, NULL, client_run, &client), 0);
        assert_int_equal(rdma_get_request(listen, &id), 0);
        serve(id);
        pthread_join(thread, NULL);
        assert_int_equal(client.ret, 0);
        assert_int_equal(client.status, IBV_WC_SUCCESS);
        rdma_destroy_ep(id);
    }
    rdma_destroy_ep(listen);
    rdma_freeaddrinfo(at);
    rdma_freeaddrinfo(client.to);
}

/* Who listens for one kind of connection is not told of another: the next that fits is. */
static void connection__of_another_kind(void **state)
{
    (void)state;
    static const struct {
        enum ibv_qp_type serves, asks;
    } rows[] = {
        {IBV_QPT_XRC_RECV, IBV_QPT_RC      },
        {IBV_QPT_RC,       IBV_QPT_XRC_SEND},
        {IBV_QPT_XRC_SEND, IBV_QPT_XRC_SEND},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rdma_addrinfo *at = lookup("7722", RAI_PASSIVE, rows[i].serves);
        struct client client = {.to = lookup("7722", 0, rows[i].asks)};
        struct rdma_cm_id *listen = NULL;
        assert_int_equal(rdma_create_ep(&listen, at, NULL, NULL), 0);
        assert_int_equal(rdma_listen(listen, 1), 0);
        client_run(&client);
        assert_int_equal(client.ret, -1);
        assert_int_equal(client.err, ECONNREFUSED);
        assert_false(rig_readable(listen->channel->fd));
        rdma_destroy_ep(listen);
        rdma_freeaddrinfo(at);
        rdma_freeaddrinfo(client.to);
    }
}

/* Only RDMA_PS_IB leaves the kind of connection to who asks; a target asks for nothing. */
static void create_ep__refused(void **state)
{
    (void)state;
    static const enum ibv_qp_type types[] = {IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV};
    static const enum rdma_port_space spaces[] = {RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IPOIB};

    for (unsigned i = 0; i < 6; i++) {
        struct rdma_addrinfo *res = lookup("7", 0, types[i % 2]);
        struct rdma_cm_id *id = NULL;
        res->ai_port_space = spaces[i / 2];
        assert_int_equal(rdma_create_ep(&id, res, NULL, NULL), -1);
        assert_int_equal(errno, EINVAL);
        assert_null(id);
        rdma_freeaddrinfo(res);
    }
    struct rdma_cm_id *id = bound_ep(IBV_QPT_XRC_RECV);
    struct ibv_qp_init_attr init = rig_qp_init(IBV_QPT_XRC_SEND);
    assert_int_equal(rdma_create_qp(id, NULL, &init), -1);
    assert_int_equal(errno, EINVAL);
    init.qp_type = IBV_QPT_XRC_RECV;
    assert_int_equal(rdma_create_qp(id, NULL, &init), 0);
    assert_int_equal(rdma_connect(id, NULL), -1);
    assert_int_equal(errno, EINVAL);
    rdma_destroy_ep(id);
}

static void create_qp__queues_by_kind(void **state)
{
    (void)state;
    struct rdma_cm_id *send = bound_ep(IBV_QPT_XRC_SEND), *recv = bound_ep(IBV_QPT_XRC_RECV);
    struct ibv_qp_init_attr init = rig_qp_init(IBV_QPT_XRC_SEND);

    assert_int_equal(rdma_create_qp(send, NULL, &init), 0);
    assert_ptr_equal(send->qp->send_cq, send->send_cq);
    assert_non_null(send->send_cq);
    assert_null(send->recv_cq);
    rdma_destroy_ep(send);
    init = rig_qp_init(IBV_QPT_XRC_RECV);
    assert_int_equal(rdma_create_qp(recv, NULL, &init), 0);
    assert_null(recv->send_cq);
    assert_null(recv->recv_cq);
    assert_int_equal(recv->qp->state, IBV_QPS_INIT);
    rdma_destroy_ep(recv);
}

/* Domains: the program's own, or that of the device, for target and SRQ alike. */
static void create__with_a_domain(void **state)
{
    (void)state;
    struct rdma_cm_id *id = bound_ep(IBV_QPT_XRC_RECV);
    struct ibv_xrcd_init_attr domain = {.comp_mask =
                                            IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                        .fd = -1,
                                        .oflags = O_CREAT};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(id->verbs, &domain);
    struct ibv_qp_init_attr_ex qp = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
    struct ibv_srq_init_attr_ex srq = {
        .attr = {.max_wr = 2, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD,
        .srq_type = IBV_SRQT_XRC,
        .xrcd = xrcd,
    };

    assert_non_null(xrcd);
    struct ibv_context *other = ibv_open_device(id->verbs->device);
    assert_non_null(other);
    struct ibv_xrcd *foreign = ibv_open_xrcd(other, &domain);
    assert_non_null(foreign);
    qp.xrcd = srq.xrcd = foreign;
    assert_int_equal(rdma_create_qp_ex(id, &qp), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_create_srq_ex(id, &srq), -1);
    assert_int_equal(errno, EINVAL);
    assert_null(id->recv_cq); /* what was made for it has gone */
    qp.xrcd = srq.xrcd = xrcd;
    srq.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_CQ;
    assert_int_equal(rdma_create_qp_ex(id, &qp), 0);
    assert_int_equal(rdma_create_srq_ex(id, &srq), 0);
    assert_ptr_equal(srq.cq, id->recv_cq);
    assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
    rdma_destroy_qp(id);
    assert_non_null(id->recv_cq); /* the SRQ needs it still */
    rdma_destroy_srq(id);
    assert_null(id->recv_cq);
    assert_int_equal(ibv_close_xrcd(xrcd), 0);
    assert_int_equal(ibv_close_xrcd(foreign), 0);
    assert_int_equal(ibv_close_device(other), 0);
    rdma_destroy_ep(id);
}

/* A CQ of the program's, and the other order of the end. */
static void create_srq__with_a_cq(void **state)
{
    (void)state;
    struct rdma_cm_id *id = bound_ep(IBV_QPT_XRC_RECV);
    struct ibv_qp_init_attr init = rig_qp_init(IBV_QPT_XRC_RECV);
    struct ibv_cq *cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
    struct ibv_srq_init_attr_ex srq = {
        .attr = {.max_wr = 2, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_CQ,
        .srq_type = IBV_SRQT_XRC,
        .cq = cq,
    };

    assert_int_equal(rdma_create_qp(id, NULL, &init), 0);
    assert_int_equal(rdma_create_srq_ex(id, &srq), 0);
    assert_null(id->recv_cq);
    assert_int_equal(ibv_destroy_cq(cq), EBUSY);
    rdma_destroy_srq(id);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    rdma_destroy_qp(id);
    rdma_destroy_ep(id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connection__with_a_message), cmocka_unit_test(connection__of_another_kind),
        cmocka_unit_test(create_ep__refused),         cmocka_unit_test(create_qp__queues_by_kind),
        cmocka_unit_test(create__with_a_domain),      cmocka_unit_test(create_srq__with_a_cq),
    };

    return cmocka_run_group_tests(tests, rig_setup, NULL);
}
