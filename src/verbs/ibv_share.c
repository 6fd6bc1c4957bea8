/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_share.c: see ibv_share.h; and what other processes are told that ask.
 */
#include "verbs/ibv_share.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/ibv_memory.h"

#define FOREIGN_FIRST_HANDLE (UINT32_C(1) << 31)

static pthread_mutex_t share_mutex = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, share) share_list = LIST_HEAD_INITIALIZER(share_list);
static LIST_HEAD(, cmd_file) share_files = LIST_HEAD_INITIALIZER(share_files);

static void share_lock(void)
{
    pthread_mutex_lock(&share_mutex);
}

static void share_unlock(void)
{
    pthread_mutex_unlock(&share_mutex);
}

static bool share_try_lock(void)
{
    return pthread_mutex_trylock(&share_mutex) == 0;
}

static void answer(const struct verbena_share_request *q, struct verbena_share_reply *r, int *fd);

/* Under the mutex functions of the host are called. */
__attribute__((constructor)) static void share_begin(void)
{
    static const struct verbena_fork_hook hook = {share_lock, share_unlock, share_unlock};
    static const struct verbena_share_server server = {share_try_lock, answer, share_unlock};

    verbena_fork_hook(VERBENA_FORK_VERBS_SHARE, &hook);
    verbena_share_serve(&server);
}

static bool same_token(const struct verbena_cmd *cmd, const uint64_t token[2])
{
    return cmd->token[0] == token[0] && cmd->token[1] == token[1];
}

/* The rest is with the mutex held, where not said otherwise. */
static struct cmd_file *file_of(const uint64_t token[2])
{
    struct cmd_file *f;

    LIST_FOREACH(f, &share_files, link)
    if (same_token(&f->cmd, token) && f->pid == getpid())
        return f;
    return NULL;
}

static struct cmd_file *file_join(const uint64_t token[2])
{
    struct cmd_file *f = file_of(token);

    if (f != NULL)
        f->contexts++;
    return f;
}

static struct cmd_file *file_add(const struct verbena_cmd *cmd, const char *device, bool foreign)
{
    struct cmd_file *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return NULL;
    f->cmd = *cmd;
    f->contexts = 1;
    f->foreign = foreign;
    f->pid = getpid();
    snprintf(f->device, sizeof(f->device), "%s", device);
    if (foreign) /* what is made here must not have numbers of what was made there */
        atomic_store(&f->next_handle, FOREIGN_FIRST_HANDLE);
    LIST_INSERT_HEAD(&share_files, f, link);
    return f;
}

int share_file_create(struct verbena_context *host, const char *device, struct cmd_file **out,
                      int *fd)
{
    struct verbena_cmd cmd;

    *fd = verbena_cmd_create(host, &cmd);
    if (*fd < 0)
        return *fd;
    share_lock();
    *out = file_add(&cmd, device, false);
    share_unlock();
    if (*out != NULL)
        return 0;
    close(*fd);
    *fd = -1;
    return -ENOMEM;
}

/* Without the mutex: a process that does not answer would keep everybody waiting. */
static int ask(const struct verbena_cmd *cmd, enum verbena_share_kind kind, uint32_t handle,
               bool destroy, struct verbena_share_reply *r, int *fd)
{
    struct verbena_share_request q = {
        .token = {cmd->token[0], cmd->token[1]},
        .kind = kind,
        .handle = handle,
        .destroy = destroy,
    };
    int err = verbena_share_ask(cmd, &q, r, fd);

    if (err != 0)
        return err;
    return r->err <= 0 ? r->err : -EPROTO; /* whoever it is, it is not believed */
}

int share_file_find(int fd, struct cmd_file **out)
{
    struct verbena_cmd cmd;
    struct verbena_share_reply r = {0};
    int along;

    int err = verbena_cmd_read(fd, &cmd);
    if (err != 0)
        return err;
    share_lock();
    *out = file_join(cmd.token);
    share_unlock();
    if (*out != NULL)
        return 0;
    err = ask(&cmd, VERBENA_SHARE_DEVICE, 0, false, &r, &along);
    if (along >= 0)
        close(along);
    if (err != 0)
        return err;
    r.device[sizeof(r.device) - 1] = '\0';
    share_lock();
    *out = file_join(cmd.token); /* another thread may have asked, too */
    if (*out == NULL)
        *out = file_add(&cmd, r.device, true);
    share_unlock();
    return *out != NULL ? 0 : -ENOMEM;
}

/* Without the mutex. */
void share_file_drop(struct cmd_file *f)
{
    share_lock();
    bool last = --f->contexts == 0;
    if (last)
        LIST_REMOVE(f, link);
    share_unlock();
    if (last)
        free(f);
}

static struct share *find(const struct cmd_file *f, enum verbena_share_kind kind, uint32_t handle)
{
    struct share *s;

    LIST_FOREACH(s, &share_list, link)
    if (s->file == f && s->kind == kind && s->handle == handle && !s->gone)
        return s;
    return NULL;
}

static void insert(struct share *s, struct ibv_context *ctx, uint32_t handle,
                   enum verbena_share_kind kind, void *object)
{
    s->kind = kind;
    s->file = obj_ctx(ctx)->file;
    s->handle = handle;
    s->object = object;
    LIST_INSERT_HEAD(&share_list, s, link);
}

/* From here on without the mutex. */
void share_add(struct share *s, struct ibv_context *ctx, uint32_t handle,
               enum verbena_share_kind kind, void *object)
{
    share_lock();
    insert(s, ctx, handle, kind, object);
    share_unlock();
}

void share_add_foreign(struct share *s, struct ibv_context *ctx, uint32_t handle,
                       enum verbena_share_kind kind, void *object)
{
    s->foreign = true;
    share_add(s, ctx, handle, kind, object);
}

int share_import(struct share *s, struct ibv_context *ctx, uint32_t handle,
                 enum verbena_share_kind kind, struct verbena_share_reply *r, int *fd)
{
    struct cmd_file *f = obj_ctx(ctx)->file;

    *fd = -1;
    share_lock();
    struct share *other = find(f, kind, handle);
    if (other != NULL) {
        other->shared = s->shared = true;
        s->foreign = other->foreign;
        s->behind = other->behind;
        insert(s, ctx, handle, kind, other->object);
        if (kind == VERBENA_SHARE_DM)
            ibv_dm_join(other->object);
    }
    share_unlock();
    if (other != NULL)
        return 0;
    if (!f->foreign)
        return -EINVAL;
    int err = ask(&f->cmd, kind, handle, false, r, fd);
    return err != 0 ? err : 1;
}

/* With the mutex held. Whoever has another handle of it. */
static void set_gone(struct share *s, bool gone)
{
    struct share *other;

    if (!s->shared)
        return;
    LIST_FOREACH(other, &share_list, link)
    if (other != s && other->object == s->object && other->kind == s->kind)
        other->gone = gone;
}

int share_leave(struct share *s)
{
    if (s->file->pid != getpid())
        return -EIO; /* whatever is asked of a dead context */
    share_lock();
    bool gone = s->gone;
    if (!gone) {
        LIST_REMOVE(s, link);
        set_gone(s, true);
    }
    share_unlock();
    if (gone)
        return -EINVAL;
    if (!s->foreign)
        return 0;
    struct verbena_share_reply r;
    int fd, err = ask(&s->file->cmd, s->kind, s->handle, true, &r, &fd);
    if (fd >= 0)
        close(fd);
    /* Its process has died, and the object with it; or it went before this handle. */
    if (err == 0 || err == -ECONNREFUSED || err == -EINVAL) {
        s->foreign = false; /* not again, if ours cannot go */
        return 0;
    }
    share_return(s);
    return err;
}

void share_return(struct share *s)
{
    share_lock();
    set_gone(s, false);
    LIST_INSERT_HEAD(&share_list, s, link);
    share_unlock();
}

bool share_alive(const struct share *s)
{
    share_lock();
    bool alive = !s->gone;
    share_unlock();
    return alive;
}

enum share_rest share_let_go(struct share *s)
{
    struct share *other;
    enum share_rest rest = s->foreign ? SHARE_REST_COPY : SHARE_REST_OBJECT;

    share_lock();
    LIST_FOREACH(other, &share_list, link)
    if (other != s && other->object == s->object && other->kind == s->kind)
        rest = SHARE_REST_NONE;
    if (s->gone)
        rest = SHARE_REST_NONE;
    if (rest != SHARE_REST_OBJECT)
        LIST_REMOVE(s, link);
    share_unlock();
    return rest;
}

int share_change(struct share *s, int (*change)(void *with, void **object), void *with)
{
    struct share *other;

    share_lock();
    void *old = s->object, *now = old;
    int err = s->gone ? -EINVAL : change(with, &now);
    if (now != old) {
        LIST_FOREACH(other, &share_list, link)
        if (other->object == old && other->kind == s->kind)
            other->object = now;
    }
    share_unlock();
    return err;
}

/* With the mutex held: destroyed by the word of another process, or why not. */
static int destroy(struct share *s)
{
    struct share *other;
    int err = s->kind == VERBENA_SHARE_PD   ? ibv_pd_end(s)
              : s->kind == VERBENA_SHARE_MR ? ibv_mr_end(s)
                                            : ibv_dm_end(s);

    if (err != 0)
        return err;
    void *object = s->object;
    LIST_FOREACH(other, &share_list, link)
    if (other->object == object && other->kind == s->kind)
        other->gone = true;
    return 0;
}

/* With the mutex held. */
static void answer(const struct verbena_share_request *q, struct verbena_share_reply *r, int *fd)
{
    memset(r, 0, sizeof(*r));
    r->err = -EINVAL;
    struct cmd_file *f = file_of(q->token);
    struct share *s = NULL;
    if (f != NULL && q->kind == VERBENA_SHARE_DEVICE && q->destroy == 0) {
        snprintf(r->device, sizeof(r->device), "%s", f->device);
        r->err = 0;
    } else if (f != NULL && q->kind <= VERBENA_SHARE_DM) {
        s = find(f, (enum verbena_share_kind)q->kind, q->handle);
    }
    if (s != NULL && !s->foreign) {
        if (q->destroy != 0)
            r->err = destroy(s);
        else if (s->kind == VERBENA_SHARE_MR)
            r->err = ibv_mr_tell(s, r, fd);
        else if (s->kind == VERBENA_SHARE_DM)
            r->err = ibv_dm_tell(s, r, fd);
        else
            r->err = 0;
    }
}
