/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_share.h: handles of objects that can be imported: protection domains, regions, device memory.
 * Several handles may be of one object; who destroys it through one leaves the others dead. Handles
 * of another process's object are of a copy here: their destruction is that process's, too.
 */
#ifndef VERBS_IBV_SHARE_H
#define VERBS_IBV_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "host/host.h"
#include "verbs/verbs_newer.h"

struct ibv_context;

/* What a command descriptor stands for; contexts that were made from one have it in common. */
struct cmd_file {
    struct verbena_cmd cmd;
    bool foreign; /* another process made it */
    pid_t pid;    /* in whose life it is of use: a forked child inherits it dead */
    char device[IBV_SYSFS_NAME_MAX];
    _Atomic uint32_t next_handle;
    uint32_t contexts; /* under the lock of ibv_share.c, as the link */
    LIST_ENTRY(cmd_file) link;
};

struct share {
    enum verbena_share_kind kind;
    struct cmd_file *file;
    uint32_t handle;
    void *object; /* struct pd, mr or dm_memory: the same for all handles of one object */
    struct dm_memory *behind; /* a region's, of device memory; or NULL */
    bool foreign;             /* of another process's object */
    /* Under the lock of ibv_share.c: */
    bool shared; /* others have handles of the object, or had */
    bool gone;   /* it was destroyed through another handle */
    LIST_ENTRY(share) link;
};

/* A context's: a new one, *fd its descriptor; or that of a descriptor. 0 or -errno. */
int share_file_create(struct verbena_context *host, const char *device, struct cmd_file **out,
                      int *fd);
int share_file_find(int fd, struct cmd_file **out);
void share_file_drop(struct cmd_file *f);

/* From now on the object can be imported by its handle. */
void share_add(struct share *s, struct ibv_context *ctx, uint32_t handle,
               enum verbena_share_kind kind, void *object);
/*
 * Another handle of an object of this process: 0, and s has its object. 1: it is another process's,
 * and r (and *fd, or -1) say what it is: the caller makes a copy and calls share_add_foreign.
 * -EINVAL: there is none; others from share.h.
 */
int share_import(struct share *s, struct ibv_context *ctx, uint32_t handle,
                 enum verbena_share_kind kind, struct verbena_share_reply *r, int *fd);
void share_add_foreign(struct share *s, struct ibv_context *ctx, uint32_t handle,
                       enum verbena_share_kind kind, void *object);
/* Before the object is destroyed through this handle: nobody finds it any more. 0; -EINVAL: it has
 * gone; or the other process refused. */
int share_leave(struct share *s);
/* It was not destroyed after all. */
void share_return(struct share *s);
/* Is the object there? For what uses the handle. */
bool share_alive(const struct share *s);
/* The handle goes, its object stays. */
enum share_rest {
    SHARE_REST_OBJECT, /* nobody else has it: the handle stays, unseen, so that it can be imported
                        */
    SHARE_REST_COPY,   /* another process's object; the copy goes as well */
    SHARE_REST_NONE,   /* others have handles, or it has gone */
};
enum share_rest share_let_go(struct share *s);
/* Changes the object, which may be another one then, for all handles; meanwhile nobody looks at it.
 * change: 0 or -errno, object as it was. Returns that, or -EINVAL: it has gone. */
int share_change(struct share *s, int (*change)(void *with, void **object), void *with);

#endif
