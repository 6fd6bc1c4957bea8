/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_rig.c: see cm_rig.h.
 */
#include "cm_rig.h"

#include <poll.h>

#include "../port/private_net.h"

int rig_setup(void **state)
{
    (void)state;
    private_net_enter();
    return 0;
}

union rig_addr rig_addr(const char *text, uint16_t port)
{
    union rig_addr a;

    memset(&a, 0, sizeof(a));
    if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1)
        a.sa.sa_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &a.v6.sin6_addr) == 1)
        a.sa.sa_family = AF_INET6;
    else
        fail_msg("%s is no address", text);
    a.v4.sin_port = htons(port);
    return a;
}

struct rdma_event_channel *rig_channel(void)
{
    struct rdma_event_channel *ch = rdma_create_event_channel();

    assert_non_null(ch);
    return ch;
}

struct rdma_cm_id *rig_id(struct rdma_event_channel *ch, enum rdma_port_space ps)
{
    struct rdma_cm_id *id = NULL;

    assert_int_equal(rdma_create_id(ch, &id, NULL, ps), 0);
    assert_non_null(id);
    return id;
}

bool rig_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

struct rdma_cm_event *rig_event(struct rdma_event_channel *ch)
{
    struct pollfd p = {.fd = ch->fd, .events = POLLIN};
    struct rdma_cm_event *e = NULL;

    if (poll(&p, 1, RIG_WAIT_MS) != 1)
        fail_msg("no event in time");
    assert_int_equal(rdma_get_cm_event(ch, &e), 0);
    return e;
}

void rig_expect(struct rdma_event_channel *ch, enum rdma_cm_event_type type, int status)
{
    struct rdma_cm_event *e = rig_event(ch);

    if (e->event != type || e->status != status)
        fail_msg("%s %d instead of %s %d", rdma_event_str(e->event), e->status,
                 rdma_event_str(type), status);
    assert_int_equal(rdma_ack_cm_event(e), 0);
}

void rig_expect_none(struct rdma_event_channel *ch)
{
    assert_false(rig_readable(ch->fd));
}

struct ibv_qp_init_attr rig_qp_init(enum ibv_qp_type type)
{
    return (struct ibv_qp_init_attr){
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = type,
        .sq_sig_all = 1,
    };
}

void rig_resolve(struct rdma_cm_id *id, const char *text, uint16_t port)
{
    union rig_addr dst = rig_addr(text, port);

    assert_int_equal(rdma_resolve_addr(id, NULL, &dst.sa, 1000), 0);
    rig_expect(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    assert_int_equal(rdma_resolve_route(id, 1000), 0);
    rig_expect(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

void rig_pair_open(struct rig_pair *p, const char *text, enum rdma_port_space ps, bool qps)
{
    union rig_addr any = rig_addr(text, 0);

    memset(p, 0, sizeof(*p));
    p->server_ch = rig_channel();
    p->client_ch = rig_channel();
    p->listen = rig_id(p->server_ch, ps);
    assert_int_equal(rdma_bind_addr(p->listen, &any.sa), 0);
    assert_int_equal(rdma_listen(p->listen, 4), 0);
    p->port = ntohs(rdma_get_src_port(p->listen));
    p->client = rig_id(p->client_ch, ps);
    rig_resolve(p->client, text, p->port);
    if (!qps)
        return;
    struct ibv_qp_init_attr init = rig_qp_init(p->client->qp_type);
    assert_int_equal(rdma_create_qp(p->client, NULL, &init), 0);
}

struct rdma_cm_event *rig_pair_request(struct rig_pair *p, bool qp)
{
    struct rdma_cm_event *e = rig_event(p->server_ch);

    assert_int_equal(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_ptr_equal(e->listen_id, p->listen);
    p->server = e->id;
    if (qp) {
        struct ibv_qp_init_attr init = rig_qp_init(p->server->qp_type);
        assert_int_equal(rdma_create_qp(p->server, NULL, &init), 0);
    }
    return e;
}

void rig_pair_connect(struct rig_pair *p)
{
    assert_int_equal(rdma_connect(p->client, NULL), 0);
    rdma_ack_cm_event(rig_pair_request(p, true));
    assert_int_equal(rdma_accept(p->server, NULL), 0);
    rig_expect(p->client_ch, RDMA_CM_EVENT_ESTABLISHED, 0);
    rig_expect(p->server_ch, RDMA_CM_EVENT_ESTABLISHED, 0);
}

void rig_pair_close(struct rig_pair *p)
{
    struct rdma_cm_id *ids[] = {p->client, p->server, p->listen};

    for (unsigned i = 0; i < 3; i++) {
        if (ids[i] == NULL)
            continue;
        rdma_destroy_qp(ids[i]);
        assert_int_equal(rdma_destroy_id(ids[i]), 0);
    }
    rdma_destroy_event_channel(p->client_ch);
    rdma_destroy_event_channel(p->server_ch);
}
