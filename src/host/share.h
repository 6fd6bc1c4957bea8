/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * share.h: objects that other processes import: what a command descriptor says, and how a process
 * that was given one asks its maker. Whoever holds the descriptor may ask, nobody else can. Results
 * are those of host.h.
 */
#ifndef HOST_SHARE_H
#define HOST_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "host/memory.h"

struct verbena_context;

/* In the file behind the descriptor. */
struct verbena_cmd {
    uint64_t magic;
    uint64_t process; /* whom to ask; 0: nobody */
    uint64_t token[2];
};

enum verbena_share_kind {
    VERBENA_SHARE_DEVICE,
    VERBENA_SHARE_PD,
    VERBENA_SHARE_MR,
    VERBENA_SHARE_DM
};

struct verbena_share_request {
    uint64_t token[2];
    uint32_t kind; /* enum verbena_share_kind */
    uint32_t handle;
    uint32_t destroy; /* it is to go; else what is it? */
    uint32_t reserved;
};

enum verbena_share_memory {
    VERBENA_SHARE_NULL, /* of a null region */
    VERBENA_SHARE_FD,   /* behind the descriptor that comes along */
    VERBENA_SHARE_MAPPED,
};

struct verbena_share_reply {
    int32_t err; /* 0 or -errno */
    uint32_t memory;
    char device[64];
    struct verbena_mapping mapping;
    uint64_t offset; /* in what is behind the descriptor */
    uint64_t length;
    uint64_t iova;
    uint32_t access;
    uint32_t reserved;
};

/* A new descriptor for a context, >= 0, and what it says. */
VERBENA_EXPORT int verbena_cmd_create(struct verbena_context *ctx, struct verbena_cmd *out);
/* -EBADF: no descriptor; -EINVAL: not such a one. */
VERBENA_EXPORT int verbena_cmd_read(int fd, struct verbena_cmd *out);

/*
 * Answers requests: any token, any handle. On the helper's thread, without a lock of the host; may
 * call host.h. A device is closed with the helper's end, which a thread awaits that keeps others
 * from going on: so nothing here may wait for what a thread holds while it forks, opens or closes.
 */
struct verbena_share_server {
    bool (*begin)(void); /* false: not now; the request stays where it is */
    /* *fd: goes along with the reply, and is closed then; -1: none. */
    void (*answer)(const struct verbena_share_request *q, struct verbena_share_reply *r, int *fd);
    void (*end)(void);
};
VERBENA_EXPORT void verbena_share_serve(const struct verbena_share_server *server); /* stays */
/* Asks whoever made the descriptor. 0: r is its reply, *fd what came along or -1; -ECONNREFUSED:
 * there is no such process any more; -ETIMEDOUT: it does not answer. */
VERBENA_EXPORT int verbena_share_ask(const struct verbena_cmd *cmd,
                                     const struct verbena_share_request *q,
                                     struct verbena_share_reply *r, int *fd);

#endif
