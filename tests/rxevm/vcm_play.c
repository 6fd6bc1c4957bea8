/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vcm_play.c: the dialogues. What must happen is what the InfiniBand specification says of
 * communication management (chapter 12) and what the manual pages of librdmacm say of its events.
 */
#include "vcm.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REJ_NO_LISTENER = 8, /* IBA 12.6.7.2 */
    REJ_BY_CONSUMER = 28,
    REJ_TIMEOUT = 4,
    SIDR_UNSUPPORTED = 1,
    SIDR_REJECTED = 2,
    LATE_MS = 300,
    FEW = 3, /* messages of a dialogue that sends some */
    MESSAGE_BYTES = 3 * 4096 + 101,
    SEED_REQUEST = 5,
    SEED_ANSWER = 90,
};

/* The path MTU that the two sides agreed on, which the test compares with the network's. */
static void tell_mtu(void)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    if (ibv_query_qp(v.id->qp, &a, IBV_QP_PATH_MTU, &init) != 0)
        die("ibv_query_qp");
    printf("path mtu %d\n", 128 << a.path_mtu);
}

/* Accepts with all the private data there may be. */
static void accept_peer(void)
{
    make_qp();
    private_check(REQ_BYTES);
    private_build(REP_BYTES);
    post_recv(ARRIVE, BUFFER_BYTES - ARRIVE);
    if (rdma_accept(v.id, &v.param) != 0)
        die("rdma_accept");
    await(RDMA_CM_EVENT_ESTABLISHED, 0);
}

static void ask(void)
{
    make_qp();
    private_build(REQ_BYTES);
    post_recv(ARRIVE, BUFFER_BYTES - ARRIVE);
    if (rdma_connect(v.id, &v.param) != 0)
        die("rdma_connect");
}

static void connect_peer(void)
{
    ask();
    await(RDMA_CM_EVENT_ESTABLISHED, 0);
    private_check(REP_BYTES);
}

static void leave(void)
{
    if (rdma_disconnect(v.id) != 0)
        fault("rdma_disconnect");
}

/* What still waits is flushed. */
static void flushed(void)
{
    reap(RECV_ID, IBV_WC_WR_FLUSH_ERR);
    free_id();
}

static void end(void)
{
    leave();
    await(RDMA_CM_EVENT_DISCONNECTED, 0);
    flushed();
}

/* The other side ends it. The QP takes note when the program does. */
static void ended(void)
{
    await(RDMA_CM_EVENT_DISCONNECTED, 0);
    leave();
    flushed();
}

/* The server answers a message of several packets with one; between them the client WRITEs, READs
 * back and adds to a number of the server's. */
static void data_server(void)
{
    uint64_t cell = 77;
    accept_peer();
    tell_mtu();
    memcpy(v.buffer + CELL, &cell, sizeof(cell));
    reap(RECV_ID, IBV_WC_SUCCESS);
    if (v.bytes != MESSAGE_BYTES)
        fault("%u bytes", v.bytes);
    check(ARRIVE, MESSAGE_BYTES, SEED_REQUEST);
    post_recv(ARRIVE, BUFFER_BYTES - ARRIVE);
    fill(0, MESSAGE_BYTES, SEED_ANSWER);
    post(IBV_WR_SEND, 0, MESSAGE_BYTES, 0, 0);
    reap(SEND_ID, IBV_WC_SUCCESS);
    reap(RECV_ID, IBV_WC_SUCCESS); /* the client is through */
    memcpy(&cell, v.buffer + CELL, sizeof(cell));
    if (cell != 77 + ATOMIC_ADD)
        fault("the number is %llu", (unsigned long long)cell);
    check(0, MESSAGE_BYTES, SEED_REQUEST); /* its WRITE */
    post_recv(ARRIVE, BUFFER_BYTES - ARRIVE);
    ended();
}

static void data_client(void)
{
    uint64_t before = 0;
    connect_peer();
    tell_mtu();
    fill(0, MESSAGE_BYTES, SEED_REQUEST);
    post(IBV_WR_SEND, 0, MESSAGE_BYTES, 0, 0);
    reap(SEND_ID, IBV_WC_SUCCESS);
    reap(RECV_ID, IBV_WC_SUCCESS);
    check(ARRIVE, MESSAGE_BYTES, SEED_ANSWER);
    post_recv(ARRIVE, BUFFER_BYTES - ARRIVE);
    post(IBV_WR_RDMA_WRITE, 0, MESSAGE_BYTES, v.remote_addr, v.remote_rkey);
    reap(SEND_ID, IBV_WC_SUCCESS);
    memset(v.buffer + ARRIVE, 0, MESSAGE_BYTES);
    post(IBV_WR_RDMA_READ, ARRIVE, MESSAGE_BYTES, v.remote_addr, v.remote_rkey);
    reap(SEND_ID, IBV_WC_SUCCESS);
    check(ARRIVE, MESSAGE_BYTES, SEED_REQUEST);
    post(IBV_WR_ATOMIC_FETCH_AND_ADD, CELL, sizeof(before), v.remote_addr + CELL, v.remote_rkey);
    reap(SEND_ID, IBV_WC_SUCCESS);
    memcpy(&before, v.buffer + CELL, sizeof(before));
    if (before != 77)
        fault("the number was %llu", (unsigned long long)before);
    post(IBV_WR_SEND, 0, 8, 0, 0);
    reap(SEND_ID, IBV_WC_SUCCESS);
    end();
}

static void server_leaves_server(void)
{
    accept_peer();
    end();
}

static void server_leaves_client(void)
{
    connect_peer();
    ended();
}

/* DREQs that cross are both answered. */
static void both_leave_server(void)
{
    accept_peer();
    reap(RECV_ID, IBV_WC_SUCCESS);
    post_recv(ARRIVE, BUFFER_BYTES - ARRIVE);
    end();
}

static void both_leave_client(void)
{
    connect_peer();
    post(IBV_WR_SEND, 0, 64, 0, 0);
    reap(SEND_ID, IBV_WC_SUCCESS);
    end();
}

static void reject_server(void)
{
    private_check(REQ_BYTES);
    private_build(REJ_BYTES);
    if (rdma_reject(v.id, v.own_data, REJ_BYTES) != 0)
        fault("rdma_reject");
    free_id();
}

static void reject_client(void)
{
    ask();
    await(RDMA_CM_EVENT_REJECTED, REJ_BY_CONSUMER);
    private_check(REJ_BYTES);
    free_id();
}

/* The id is given back instead of an answer. */
static void refuse_server(void)
{
    free_id();
}

static void refuse_client(void)
{
    ask();
    await(RDMA_CM_EVENT_REJECTED, REJ_BY_CONSUMER);
    free_id();
}

/* After a refusal the same listener accepts. */
static void again_server(void)
{
    reject_server();
    await(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    accept_peer();
    ended();
}

static void again_client(void)
{
    reject_client();
    resolve();
    connect_peer();
    end();
}

/* The client loses patience before there is an answer. Linux says so to its peer, but as a listener
 * does not tell the program. */
static void cancel_server(void)
{
    struct pollfd p = {.fd = v.channel->fd, .events = POLLIN};
    if (poll(&p, 1, 4 * LATE_MS) == 1)
        await(RDMA_CM_EVENT_REJECTED, REJ_TIMEOUT);
    free_id();
}

static void cancel_client(void)
{
    ask();
    expect_silence(LATE_MS);
    free_id();
}

static void nobody_client(void)
{
    ask();
    await(RDMA_CM_EVENT_REJECTED, REJ_NO_LISTENER);
    free_id();
}

/* The receives come late. */
static void rnr_server(void)
{
    make_qp();
    private_check(REQ_BYTES);
    private_build(REP_BYTES);
    if (rdma_accept(v.id, &v.param) != 0)
        die("rdma_accept");
    await(RDMA_CM_EVENT_ESTABLISHED, 0);
    nap_ms(LATE_MS);
    for (uint32_t i = 0; i <= FEW; i++)
        post_recv(ARRIVE + i * (MESSAGE_BYTES + 3), MESSAGE_BYTES);
    for (uint32_t i = 0; i < FEW; i++) {
        reap(RECV_ID, IBV_WC_SUCCESS);
        check(ARRIVE + i * (MESSAGE_BYTES + 3), MESSAGE_BYTES, SEED_REQUEST);
    }
    ended();
}

static void rnr_client(void)
{
    connect_peer();
    fill(0, MESSAGE_BYTES, SEED_REQUEST);
    for (unsigned i = 0; i < FEW; i++)
        post(IBV_WR_SEND, 0, MESSAGE_BYTES, 0, 0);
    for (unsigned i = 0; i < FEW; i++)
        reap(SEND_ID, IBV_WC_SUCCESS);
    end();
}

/* Who accepts says how often the other side tries again; here once. */
static void rnr_exceeded_server(void)
{
    make_qp();
    private_build(REP_BYTES);
    v.param.rnr_retry_count = 1;
    if (rdma_accept(v.id, &v.param) != 0)
        die("rdma_accept");
    await(RDMA_CM_EVENT_ESTABLISHED, 0);
    await(RDMA_CM_EVENT_DISCONNECTED, 0);
    free_id();
}

static void rnr_exceeded_client(void)
{
    connect_peer();
    if (v.peer_param.rnr_retry_count != 1)
        fault("told of %u", v.peer_param.rnr_retry_count);
    post(IBV_WR_SEND, 0, 64, 0, 0);
    reap(SEND_ID, IBV_WC_RNR_RETRY_EXC_ERR);
    end();
}

/* A key that nobody gave away: both QPs end in ERR, the connection does not end by itself. Of the
 * event rxe tells nobody. */
static void bad_key_server(void)
{
    struct ibv_async_event e;
    accept_peer();
    reap(RECV_ID, IBV_WC_WR_FLUSH_ERR);
    struct pollfd p = {.fd = v.id->verbs->async_fd, .events = POLLIN};
    if (poll(&p, 1, LATE_MS) == 1) {
        if (ibv_get_async_event(v.id->verbs, &e) != 0)
            die("ibv_get_async_event");
        printf("asynchronous event %d\n", e.event_type);
        if (e.event_type != IBV_EVENT_QP_ACCESS_ERR || e.element.qp != v.id->qp)
            fault("not the access error of the QP");
        ibv_ack_async_event(&e);
    }
    await(RDMA_CM_EVENT_DISCONNECTED, 0);
    if (v.buffer[ARRIVE] != 0)
        fault("it was written all the same");
    free_id();
}

static void bad_key_client(void)
{
    connect_peer();
    fill(0, 64, SEED_REQUEST);
    post(IBV_WR_RDMA_WRITE, 0, 64, v.remote_addr + ARRIVE, v.remote_rkey ^ 0xff);
    reap(SEND_ID, IBV_WC_REM_ACCESS_ERR);
    reap(RECV_ID, IBV_WC_WR_FLUSH_ERR);
    expect_silence(50);
    leave();
    await(RDMA_CM_EVENT_DISCONNECTED, 0);
    free_id();
}

/* The process ends without a word to its library. */
static void gone_server(void)
{
    accept_peer();
    ended();
}

static void gone_client(void)
{
    connect_peer();
    printf("all right\n");
    exit(v.failures != 0);
}

static void datagram_server(void)
{
    private_check(SIDR_REQ_BYTES);
    make_qp();
    private_build(SIDR_REP_BYTES);
    v.param.qp_num = v.id->qp->qp_num;
    post_recv(ARRIVE, 4096);
    if (rdma_accept(v.id, &v.param) != 0)
        die("rdma_accept");
    reap(RECV_ID, IBV_WC_SUCCESS);
    if (v.bytes != GRH_BYTES + 512)
        fault("%u bytes", v.bytes);
    check(ARRIVE + GRH_BYTES, 512, SEED_REQUEST);
    free_id();
}

static void datagram_client(void)
{
    make_qp();
    private_build(SIDR_REQ_BYTES);
    if (rdma_connect(v.id, &v.param) != 0)
        die("rdma_connect");
    await(RDMA_CM_EVENT_ESTABLISHED, 0);
    private_check(SIDR_REP_BYTES);
    v.ah = ibv_create_ah(v.pd, &v.peer_ud.ah_attr);
    if (v.ah == NULL)
        die("ibv_create_ah");
    fill(0, 512, SEED_REQUEST);
    post(IBV_WR_SEND, 0, 512, 0, 0);
    reap(SEND_ID, IBV_WC_SUCCESS);
    ibv_destroy_ah(v.ah);
    free_id();
}

static void datagram_reject_server(void)
{
    private_check(SIDR_REQ_BYTES);
    private_build(SIDR_REP_BYTES);
    if (rdma_reject(v.id, v.own_data, SIDR_REP_BYTES) != 0)
        fault("rdma_reject");
    free_id();
}

static void datagram_refused(int status)
{
    make_qp();
    private_build(SIDR_REQ_BYTES);
    if (rdma_connect(v.id, &v.param) != 0)
        die("rdma_connect");
    await(RDMA_CM_EVENT_UNREACHABLE, status);
    free_id();
}

static void datagram_reject_client(void)
{
    datagram_refused(SIDR_REJECTED);
}

static void datagram_nobody_client(void)
{
    datagram_refused(SIDR_UNSUPPORTED);
}

const struct vcm_dialogue vcm_dialogues[] = {
    {"data",            RDMA_PS_TCP, data_server,            data_client           },
    {"server-leaves",   RDMA_PS_TCP, server_leaves_server,   server_leaves_client  },
    {"both-leave",      RDMA_PS_TCP, both_leave_server,      both_leave_client     },
    {"reject",          RDMA_PS_TCP, reject_server,          reject_client         },
    {"refuse",          RDMA_PS_TCP, refuse_server,          refuse_client         },
    {"again",           RDMA_PS_TCP, again_server,           again_client          },
    {"cancel",          RDMA_PS_TCP, cancel_server,          cancel_client         },
    {"nobody",          RDMA_PS_TCP, NULL,                   nobody_client         },
    {"rnr",             RDMA_PS_TCP, rnr_server,             rnr_client            },
    {"rnr-exceeded",    RDMA_PS_TCP, rnr_exceeded_server,    rnr_exceeded_client   },
    {"bad-key",         RDMA_PS_TCP, bad_key_server,         bad_key_client        },
    {"gone",            RDMA_PS_TCP, gone_server,            gone_client           },
    {"datagram",        RDMA_PS_UDP, datagram_server,        datagram_client       },
    {"datagram-reject", RDMA_PS_UDP, datagram_reject_server, datagram_reject_client},
    {"datagram-nobody", RDMA_PS_UDP, NULL,                   datagram_nobody_client},
    {NULL,              RDMA_PS_TCP, NULL,                   NULL                  },
};
