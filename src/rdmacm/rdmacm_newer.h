/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdmacm_newer.h: the librdmacm ABI of the newest rdma-core, where it is larger than that of the
 * headers we are built with (Debian 12 has release 44). No struct has grown since: what is new are
 * functions, events, and one more member of the union in struct rdma_cm_event.
 */
#ifndef RDMACM_RDMACM_NEWER_H
#define RDMACM_RDMACM_NEWER_H

#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdint.h>

/* Compiled with hidden visibility: what carries this is the ABI, and nothing else leaves. */
#define RDMACM_ABI __attribute__((visibility("default")))

_Static_assert(sizeof(struct rdma_cm_id) == 416, "rdma_cm_id");
_Static_assert(sizeof(struct rdma_cm_event) == 80, "rdma_cm_event");
_Static_assert(sizeof(struct rdma_conn_param) == 24, "rdma_conn_param");
_Static_assert(sizeof(struct rdma_addrinfo) == 96, "rdma_addrinfo");
_Static_assert(sizeof(struct rdma_route) == 312, "rdma_route");
_Static_assert(offsetof(struct rdma_cm_event, param) == 24, "param");

/* enum rdma_cm_event_type since release 60; the last is for the library's own use. */
enum {
    NEWER_EVENT_ADDRINFO_RESOLVED = 16,
    NEWER_EVENT_ADDRINFO_ERROR = 17,
    NEWER_EVENT_USER = 18,
    NEWER_EVENT_INTERNAL = 19,
};

/* struct rdma_addrinfo.ai_flags since release 60. */
enum {
    NEWER_RAI_SA = 0x10,
    NEWER_RAI_DNS = 0x20,
};

/* struct rdma_cm_event.param has a third member since release 60. */
union rdma_event_param_newest {
    struct rdma_conn_param conn;
    struct rdma_ud_param ud;
    uint64_t arg; /* of NEWER_EVENT_USER */
};
_Static_assert(sizeof(union rdma_event_param_newest) == 80 - 24, "newest param");

struct epoll_event;

/* Functions of releases 60 to 65. */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
                          const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
                        uint64_t arg);
int repoll_create(int size);
int repoll_create1(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int max_events, int timeout);

#endif
