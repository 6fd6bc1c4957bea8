/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_rig.h: what the tests of librdmacm share: a network namespace of the test's own, events waited
 * for with a limit, and two connected ids of one process.
 */
#ifndef TESTS_CM_RIG_H
#define TESTS_CM_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <string.h>

enum { RIG_WAIT_MS = 20000 };

/* Group setup: enters the namespace. */
int rig_setup(void **state);

union rig_addr {
    struct sockaddr sa;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};
/* From text of either family. */
union rig_addr rig_addr(const char *text, uint16_t port);

struct rdma_event_channel *rig_channel(void);
/* An id of this channel, NULL: synchronous. */
struct rdma_cm_id *rig_id(struct rdma_event_channel *ch, enum rdma_port_space ps);
/* The next event, which must come in time. */
struct rdma_cm_event *rig_event(struct rdma_event_channel *ch);
/* The next event must be this one; acknowledges it. */
void rig_expect(struct rdma_event_channel *ch, enum rdma_cm_event_type type, int status);
/* None is there. */
void rig_expect_none(struct rdma_event_channel *ch);
bool rig_readable(int fd);

struct ibv_qp_init_attr rig_qp_init(enum ibv_qp_type type);
/* The id goes to this address and port as far as ROUTE_RESOLVED. */
void rig_resolve(struct rdma_cm_id *id, const char *text, uint16_t port);

/* A listener and one connection, each end with a channel of its own. */
struct rig_pair {
    struct rdma_event_channel *server_ch, *client_ch;
    struct rdma_cm_id *listen, *server, *client;
    uint16_t port;
};
/* Listener bound to text, a client resolved to it; with a QP when qps. */
void rig_pair_open(struct rig_pair *p, const char *text, enum rdma_port_space ps, bool qps);
/* Connected, ESTABLISHED got on both sides. */
void rig_pair_connect(struct rig_pair *p);
/* The server's id from a CONNECT_REQUEST; the event is the caller's to acknowledge. */
struct rdma_cm_event *rig_pair_request(struct rig_pair *p, bool qp);
void rig_pair_close(struct rig_pair *p);

#endif
