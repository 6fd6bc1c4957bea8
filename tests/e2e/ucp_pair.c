/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ucp_pair.c: two processes that talk by UCX's upper interface (UCP) and look at every byte: tagged
 * and active messages, streams, put, get and atomics, of sizes around UCX's thresholds, in both
 * directions. It knows nothing of Verbena; which transport UCX takes is in its environment.
 *
 * ucp_pair [options of rc_pair] [-o address | -o rdmacm] [host]: how the two find each other: by
 * worker addresses told over TCP, or by a listener and the connection manager.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "rc_pair.h"

enum {
    SIZE_MAX_BYTES = (1 << 20) + 5,
    AREA_BYTES = (1 << 20) + 64, /* a little more, and a multiple of 8 */
    WORDS = 2,                   /* that atomics work on, behind the area */
    AM_ID = 7,
    ADDRESS_MAX_BYTES = 8192,
};

static const size_t sizes[] = {1, 8, 63, 64, 65, 200, 4096, 8193, 65537, SIZE_MAX_BYTES};

struct end {
    struct rc_options o;
    int tcp;
    bool client;
    ucp_context_h ucp;
    ucp_worker_h worker;
    ucp_listener_h listener;
    ucp_conn_request_h request; /* of the listener, until it is accepted */
    ucp_ep_h ep;
    ucp_mem_h mem;
    ucp_rkey_h rkey;
    uint64_t remote; /* where the peer's memory is */
    uint8_t *area;   /* what the peer puts to and gets from; then WORDS */
    uint8_t *own;    /* source or destination here */
    /* An active message that has come, at any time: its data, or what they are to be fetched with.
     */
    uint8_t *am_data;
    size_t am_bytes;
    void *am_rendezvous;
    bool am_here;
};

static void must(ucs_status_t status, const char *what)
{
    if (status != UCS_OK)
        rc_fail("%s: %s", what, ucs_status_string(status));
}

static void progress(struct end *e, double limit, const char *what)
{
    if (ucp_worker_progress(e->worker) == 0 && rc_now_seconds() > limit)
        rc_fail("%s: not done in %d s", what, RC_LIMIT_SECONDS);
}

static double limit_from_now(void)
{
    return rc_now_seconds() + RC_LIMIT_SECONDS;
}

static ucs_status_t wait_for(struct end *e, ucs_status_ptr_t r, const char *what)
{
    ucs_status_t status;
    double limit = limit_from_now();

    if (UCS_PTR_IS_ERR(r) || r == NULL)
        return UCS_PTR_STATUS(r);
    while ((status = ucp_request_check_status(r)) == UCS_INPROGRESS)
        progress(e, limit, what);
    ucp_request_free(r);
    return status;
}

static void finish(struct end *e, ucs_status_ptr_t r, const char *what)
{
    must(wait_for(e, r, what), what);
}

static void tell(struct end *e, const void *bytes, size_t n)
{
    if (send(e->tcp, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
        rc_fail("the partner has gone");
}

/* The partner may need our progress before it tells. */
static void hear(struct end *e, void *bytes, size_t n)
{
    double limit = limit_from_now();

    for (size_t got = 0; got < n;) {
        ssize_t k = recv(e->tcp, (char *)bytes + got, n - got, MSG_DONTWAIT);
        if (k == 0 || (k < 0 && errno != EAGAIN))
            rc_fail("the partner has gone");
        got += k > 0 ? (size_t)k : 0;
        progress(e, limit, "the partner's word");
    }
}

static void barrier(struct end *e)
{
    char here = 'h';

    tell(e, &here, 1);
    hear(e, &here, 1);
}

static void tell_block(struct end *e, const void *block, size_t n)
{
    uint32_t length = (uint32_t)n;

    tell(e, &length, sizeof(length));
    tell(e, block, n);
}

static size_t hear_block(struct end *e, void *block, size_t max)
{
    uint32_t length;

    hear(e, &length, sizeof(length));
    if (length > max)
        rc_fail("a block of %u bytes", length);
    hear(e, block, length);
    return length;
}

/* Sets what the options say, unless the environment says something else. */
static void choose_device(const struct rc_options *o)
{
    char text[64];

    if (o->device != NULL) {
        snprintf(text, sizeof(text), "%s:1", o->device);
        setenv("UCX_NET_DEVICES", text, 0);
    }
    snprintf(text, sizeof(text), "%d", o->gid_index);
    setenv("UCX_IB_GID_INDEX", text, 0);
}

static ucs_status_t am_arrived(void *arg, const void *header, size_t header_bytes, void *data,
                               size_t bytes, const ucp_am_recv_param_t *param)
{
    struct end *e = arg;

    (void)header;
    if (e->am_here || header_bytes != sizeof(uint64_t) || bytes > SIZE_MAX_BYTES)
        rc_fail("an active message of %zu and %zu bytes that nobody sent", header_bytes, bytes);
    e->am_here = true;
    e->am_bytes = bytes;
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
        e->am_rendezvous = data;
        return UCS_INPROGRESS;
    }
    memcpy(e->am_data, data, bytes);
    return UCS_OK;
}

static void open_worker(struct end *e)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features = UCP_FEATURE_TAG | UCP_FEATURE_STREAM | UCP_FEATURE_AM | UCP_FEATURE_RMA |
                    UCP_FEATURE_AMO64,
    };
    ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_am_handler_param_t am = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = AM_ID,
        .cb = am_arrived,
        .arg = e,
    };
    ucp_config_t *config;

    must(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
    must(ucp_init(&params, config, &e->ucp), "ucp_init");
    ucp_config_release(config);
    must(ucp_worker_create(e->ucp, &worker, &e->worker), "ucp_worker_create");
    must(ucp_worker_set_am_recv_handler(e->worker, &am), "ucp_worker_set_am_recv_handler");
}

static void map_memory(struct end *e)
{
    ucp_mem_map_params_t map = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .length = AREA_BYTES + WORDS * sizeof(uint64_t),
    };

    e->own = calloc(1, AREA_BYTES);
    e->am_data = calloc(1, AREA_BYTES);
    if (posix_memalign(&map.address, 64, map.length) != 0 || e->own == NULL || e->am_data == NULL)
        rc_fail("no memory");
    memset(map.address, 0, map.length);
    e->area = map.address;
    must(ucp_mem_map(e->ucp, &map, &e->mem), "ucp_mem_map");
}

static void connect_by_address(struct end *e)
{
    static union {
        uint8_t bytes[ADDRESS_MAX_BYTES];
        ucp_address_t *align;
    } theirs;
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                              .address = (const ucp_address_t *)&theirs};
    ucp_address_t *mine;
    size_t length;

    must(ucp_worker_get_address(e->worker, &mine, &length), "ucp_worker_get_address");
    tell_block(e, mine, length);
    ucp_worker_release_address(e->worker, mine);
    hear_block(e, &theirs, sizeof(theirs));
    must(ucp_ep_create(e->worker, &params, &e->ep), "ucp_ep_create");
}

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)ep;
    if (status != UCS_ERR_CONNECTION_RESET) /* the peer may end first */
        rc_fail("connection: %s", ucs_status_string(status));
    *(bool *)arg = true;
}

static bool ended;

static void on_request(ucp_conn_request_h request, void *arg)
{
    struct end *e = arg;

    if (e->request != NULL || e->ep != NULL)
        rc_fail("a second connection");
    e->request = request;
}

/* The local address of the TCP connection, IPv4 as such, with port 0: one that the peer reaches. */
static void local_address(const struct end *e, struct sockaddr_storage *out, socklen_t *length)
{
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;

    *length = sizeof(*out);
    if (getsockname(e->tcp, (struct sockaddr *)out, length) != 0)
        rc_fail("getsockname: %s", strerror(errno));
    if (out->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        struct sockaddr_in four = {.sin_family = AF_INET};
        memcpy(&four.sin_addr, six->sin6_addr.s6_addr + 12, sizeof(four.sin_addr));
        memcpy(out, &four, sizeof(four));
        *length = sizeof(four);
    }
    ((struct sockaddr_in *)out)->sin_port = 0;
}

static void accept_by_cm(struct end *e, ucp_ep_params_t *params)
{
    ucp_listener_params_t listen = {
        .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
        .conn_handler = {.cb = on_request, .arg = e},
    };
    ucp_listener_attr_t attr = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
    struct sockaddr_storage at;
    double limit = limit_from_now();

    local_address(e, &at, &listen.sockaddr.addrlen);
    listen.sockaddr.addr = (struct sockaddr *)&at;
    must(ucp_listener_create(e->worker, &listen, &e->listener), "ucp_listener_create");
    must(ucp_listener_query(e->listener, &attr), "ucp_listener_query");
    tell_block(e, &attr.sockaddr, listen.sockaddr.addrlen);
    while (e->request == NULL)
        progress(e, limit, "the connection request");
    params->field_mask |= UCP_EP_PARAM_FIELD_CONN_REQUEST;
    params->conn_request = e->request;
    must(ucp_ep_create(e->worker, params, &e->ep), "ucp_ep_create of a request");
    e->request = NULL;
}

static void connect_by_cm(struct end *e)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_error, .arg = &ended},
    };
    struct sockaddr_storage at;

    if (!e->client) {
        accept_by_cm(e, &params);
        return;
    }
    params.field_mask |= UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr.addrlen = (socklen_t)hear_block(e, &at, sizeof(at));
    params.sockaddr.addr = (struct sockaddr *)&at;
    must(ucp_ep_create(e->worker, &params, &e->ep), "ucp_ep_create by address");
}

static void exchange_keys(struct end *e)
{
    static uint8_t theirs[ADDRESS_MAX_BYTES];
    uint64_t at = (uintptr_t)e->area;
    void *key;
    size_t length;

    must(ucp_rkey_pack(e->ucp, e->mem, &key, &length), "ucp_rkey_pack");
    tell_block(e, key, length);
    tell(e, &at, sizeof(at));
    ucp_rkey_buffer_release(key);
    hear_block(e, theirs, sizeof(theirs));
    hear(e, &e->remote, sizeof(e->remote));
    must(ucp_ep_rkey_unpack(e->ep, theirs, &e->rkey), "ucp_ep_rkey_unpack");
}

static void flush(struct end *e)
{
    ucp_request_param_t param = {0};

    finish(e, ucp_ep_flush_nbx(e->ep, &param), "flush");
}

static void tag(struct end *e, bool sends, size_t n, uint64_t seed)
{
    ucp_request_param_t param = {0};

    if (sends) {
        rc_fill(e->own, n, seed);
        finish(e, ucp_tag_send_nbx(e->ep, e->own, n, seed, &param), "tag send");
        return;
    }
    finish(e, ucp_tag_recv_nbx(e->worker, e->own, n, seed, UINT64_MAX, &param), "tag receive");
    rc_check(e->own, n, seed, "tag");
}

static void stream(struct end *e, bool sends, size_t n, uint64_t seed)
{
    ucp_request_param_t param = {0};
    size_t got;

    if (sends) {
        rc_fill(e->own, n, seed);
        finish(e, ucp_stream_send_nbx(e->ep, e->own, n, &param), "stream send");
        return;
    }
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_STREAM_RECV_FLAG_WAITALL;
    finish(e, ucp_stream_recv_nbx(e->ep, e->own, n, &got, &param), "stream receive");
    rc_check(e->own, n, seed, "stream");
}

static void active_message(struct end *e, bool sends, size_t n, uint64_t seed)
{
    ucp_request_param_t param = {0};
    double limit = limit_from_now();

    if (sends) {
        rc_fill(e->own, n, seed);
        finish(e, ucp_am_send_nbx(e->ep, AM_ID, &seed, sizeof(seed), e->own, n, &param),
               "active message");
        return;
    }
    while (!e->am_here)
        progress(e, limit, "an active message");
    if (e->am_rendezvous != NULL)
        finish(e, ucp_am_recv_data_nbx(e->worker, e->am_rendezvous, e->am_data, n, &param),
               "the data of an active message");
    e->am_rendezvous = NULL;
    e->am_here = false;
    if (e->am_bytes != n)
        rc_fail("an active message of %zu bytes instead of %zu", e->am_bytes, n);
    rc_check(e->am_data, n, seed, "active message");
}

/* The byte behind stays as it was. */
static void check_area(const struct end *e, size_t at, size_t n, uint64_t seed)
{
    rc_check(e->area + at, n, seed, "put");
    if (e->area[at + n] != 0)
        rc_fail("put of %zu bytes wrote one more", n);
}

static void put(struct end *e, bool starts, size_t n, uint64_t seed)
{
    size_t at = seed % 8;
    ucp_request_param_t param = {0};

    if (!starts)
        memset(e->area, 0, AREA_BYTES);
    barrier(e);
    if (starts) {
        rc_fill(e->own, n, seed);
        finish(e, ucp_put_nbx(e->ep, e->own, n, e->remote + at, e->rkey, &param), "put");
        flush(e);
    }
    barrier(e);
    if (!starts)
        check_area(e, at, n, seed);
}

static void get(struct end *e, bool starts, size_t n, uint64_t seed)
{
    size_t at = seed % 8;
    ucp_request_param_t param = {0};

    if (!starts)
        rc_fill(e->area + at, n, seed);
    barrier(e);
    if (starts) {
        memset(e->own, 0, n);
        finish(e, ucp_get_nbx(e->ep, e->own, n, e->remote + at, e->rkey, &param), "get");
        rc_check(e->own, n, seed, "get");
    }
    barrier(e);
}

/* The value before; for an add without a result 0. */
static uint64_t atomic(struct end *e, ucp_atomic_op_t op, bool fetch, unsigned word,
                       uint64_t operand, uint64_t swap)
{
    static uint64_t own, reply; /* own: in, and out for a compare and swap */
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | (fetch ? UCP_OP_ATTR_FIELD_REPLY_BUFFER : 0),
        .datatype = ucp_dt_make_contig(sizeof(uint64_t)),
        .reply_buffer = &reply,
    };
    uint64_t at = e->remote + AREA_BYTES + word * sizeof(uint64_t);

    own = operand;
    reply = op == UCP_ATOMIC_OP_CSWAP ? swap : 0;
    finish(e, ucp_atomic_op_nbx(e->ep, op, &own, 1, at, e->rkey, &param), "atomic");
    return fetch ? reply : 0;
}

static void must_be(uint64_t got, uint64_t want, const char *what)
{
    if (got != want)
        rc_fail("%s: 0x%llx instead of 0x%llx", what, (unsigned long long)got,
                (unsigned long long)want);
}

/* Of the area's words 0 and 1, that only the peer touches meanwhile. */
static void atomics(struct end *e, bool starts, uint64_t seed)
{
    enum { ADDS = 20 };
    uint64_t *word = (uint64_t *)(void *)(e->area + AREA_BYTES);
    uint64_t start = seed * 0x0123456789abcdefu;

    if (!starts)
        word[0] = word[1] = start;
    barrier(e);
    for (unsigned i = 0; starts && i < ADDS; i++) {
        must_be(atomic(e, UCP_ATOMIC_OP_ADD, true, 0, i, 0), start + i * (i - 1) / 2, "fetch-add");
        atomic(e, UCP_ATOMIC_OP_ADD, false, 1, 3, 0);
    }
    if (starts) {
        flush(e);
        must_be(atomic(e, UCP_ATOMIC_OP_CSWAP, true, 1, 1, 2), start + 3 * ADDS, "no swap");
        must_be(atomic(e, UCP_ATOMIC_OP_CSWAP, true, 1, start + 3 * ADDS, 99), start + 3 * ADDS,
                "swap");
        must_be(atomic(e, UCP_ATOMIC_OP_SWAP, true, 1, 100, 0), 99, "plain swap");
    }
    barrier(e);
    if (!starts) {
        must_be(word[0], start + ADDS * (ADDS - 1) / 2, "sum");
        must_be(word[1], 100, "what was swapped in");
    }
}

static void talk(struct end *e)
{
    uint64_t seed = 1;

    for (unsigned round = 0; round < e->o.rounds; round++) {
        for (unsigned i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
            bool first = e->client == (i % 2 == 0);
            size_t n = sizes[i / 2];
            tag(e, first, n, ++seed);
            stream(e, first, n, ++seed);
            active_message(e, first, n, ++seed);
            put(e, first, n, ++seed);
            get(e, first, n, ++seed);
        }
        atomics(e, e->client, ++seed);
        atomics(e, !e->client, ++seed);
    }
}

static void close_end(struct end *e)
{
    ucp_request_param_t param = {0};

    ucp_rkey_destroy(e->rkey);
    barrier(e);
    ucs_status_t status = wait_for(e, ucp_ep_close_nbx(e->ep, &param), "close");
    if (!ended) /* else the peer was faster, and there is nothing left to close */
        must(status, "close");
    barrier(e);
    if (e->listener != NULL)
        ucp_listener_destroy(e->listener);
    must(ucp_mem_unmap(e->ucp, e->mem), "ucp_mem_unmap");
    ucp_worker_destroy(e->worker);
    ucp_cleanup(e->ucp);
    free(e->area);
    free(e->own);
    free(e->am_data);
    close(e->tcp);
}

int main(int argc, char **argv)
{
    struct end e = {
        .o = {.rounds = 1, .operation = "address"}
    };

    rc_options(&e.o, argc, argv);
    e.client = e.o.host != NULL;
    choose_device(&e.o);
    open_worker(&e);
    map_memory(&e);
    e.tcp = rc_tcp_connect(&e.o);
    if (strcmp(e.o.operation, "rdmacm") == 0)
        connect_by_cm(&e);
    else
        connect_by_address(&e);
    exchange_keys(&e);
    talk(&e);
    close_end(&e);
    printf("every byte as it was sent: %u rounds of %zu sizes\n", e.o.rounds,
           sizeof(sizes) / sizeof(sizes[0]));
    return 0;
}
