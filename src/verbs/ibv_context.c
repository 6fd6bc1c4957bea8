/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_context.c: opening and closing a device. The first open in a process starts the engine.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/ibv_memory.h"

static const struct verbena_callbacks context_callbacks = {
    .completion = event_on_completion,
    .async_event = event_on_async,
};

static void context_set_ops(struct verbs_context *v)
{
    v->sz = sizeof(struct verbs_context_newest);
    v->query_port = ibv_query_port_op;
    v->query_device_ex = ibv_query_device_ex_op;
    v->query_rt_values = ibv_query_rt_values_op;
    v->create_cq_ex = ibv_create_cq_ex_op;
    v->modify_cq = ibv_modify_cq_op;
    v->create_qp_ex = ibv_create_qp_ex_op;
    v->modify_qp_rate_limit = ibv_modify_qp_rate_limit_op;
    v->create_srq_ex = ibv_create_srq_ex_op;
    v->get_srq_num = ibv_get_srq_num_op;
    v->open_qp = ibv_open_qp_op;
    v->open_xrcd = ibv_open_xrcd_op;
    v->close_xrcd = ibv_close_xrcd_op;
    v->alloc_null_mr = ibv_alloc_null_mr_op;
    v->advise_mr = ibv_advise_mr_op;
    v->alloc_dm = ibv_alloc_dm_op;
    v->free_dm = ibv_free_dm_op;
    v->reg_dm_mr = ibv_reg_dm_mr_op;
    v->alloc_td = ibv_alloc_td_op;
    v->dealloc_td = ibv_dealloc_td_op;
    v->alloc_parent_domain = ibv_alloc_parent_domain_op;
    struct ibv_context *c = &v->context;
    c->abi_compat = __VERBS_ABI_IS_EXTENDED;
    c->ops.alloc_mw = ibv_alloc_mw_op;
    c->ops.bind_mw = ibv_bind_mw_op;
    c->ops.dealloc_mw = ibv_dealloc_mw_op;
    c->ops.poll_cq = ibv_poll_cq_op;
    c->ops.req_notify_cq = ibv_req_notify_cq_op;
    c->ops.post_send = ibv_post_send_op;
    c->ops.post_recv = ibv_post_recv_op;
    c->ops.post_srq_recv = ibv_post_srq_recv_op;
}

static int context_init(struct ibv_ctx_obj *obj, struct ibv_device *device)
{
    static const int types[CONTEXT_EVENTS] = {IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR,
                                              IBV_EVENT_GID_CHANGE, IBV_EVENT_DEVICE_FATAL};
    struct ibv_context *c = &obj->newest.vctx.context;

    context_set_ops(&obj->newest.vctx);
    c->device = device;
    c->num_comp_vectors = VERBS_COMP_VECTORS;
    for (unsigned i = 0; i < CONTEXT_EVENTS; i++) {
        obj->event[i].owner = obj;
        obj->event[i].type = types[i];
    }
    int err = event_queue_init(&obj->async);
    if (err != 0)
        return err;
    c->async_fd = obj->async.fd;
    c->cmd_fd = -1;
    pthread_mutex_init(&c->mutex, NULL);
    return 0;
}

static void context_fini(struct ibv_ctx_obj *obj)
{
    struct ibv_context *c = &obj->newest.vctx.context;

    if (obj->file != NULL)
        share_file_drop(obj->file);
    if (c->cmd_fd >= 0)
        close(c->cmd_fd);
    event_queue_fini(&obj->async);
    pthread_mutex_destroy(&c->mutex);
}

/* cmd_fd: a descriptor that is imported; -1: a new one. */
static int context_open(struct ibv_ctx_obj *obj, struct ibv_device *device, int cmd_fd)
{
    struct ibv_context *c = &obj->newest.vctx.context;

    int err = context_init(obj, device);
    if (err != 0)
        return err;
    err = verbena_open(device->name, &context_callbacks, obj, &obj->host);
    if (err == 0 && cmd_fd < 0) {
        err = share_file_create(obj->host, device->name, &obj->file, &c->cmd_fd);
        if (err != 0)
            verbena_close(obj->host);
    }
    if (err != 0) {
        context_fini(obj);
        return err;
    }
    if (cmd_fd >= 0)
        c->cmd_fd = cmd_fd;
    obj->device = ibv_device_ref(device);
    return 0;
}

static struct ibv_context *context_new(struct ibv_device *device, struct cmd_file *file, int cmd_fd)
{
    struct ibv_ctx_obj *obj = calloc(1, sizeof(*obj));
    if (obj == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    int err = context_open(obj, device, cmd_fd);
    if (err != 0) {
        free(obj);
        errno = -err;
        return NULL;
    }
    if (file != NULL)
        obj->file = file;
    return &obj->newest.vctx.context;
}

VERBS_ABI struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    return context_new(device, NULL, -1);
}

VERBS_ABI int ibv_close_device(struct ibv_context *context)
{
    struct ibv_ctx_obj *obj = obj_ctx(context);

    /* Programs close with objects left over (and exit); a kernel would collect them. Here they
     * stay as they are until the process ends, and so does what they refer to. */
    if (atomic_load(&obj->objects) != 0)
        return 0;
    verbena_close(obj->host);
    ibv_device_unref(obj->device);
    context_fini(obj);
    free(obj);
    return 0;
}

static struct ibv_device *device_named(struct ibv_device **list, const char *name)
{
    for (; *list != NULL; list++)
        if (strcmp((*list)->name, name) == 0)
            return *list;
    return NULL;
}

/* On failure the descriptor stays the program's. */
VERBS_ABI struct ibv_context *ibv_import_device(int cmd_fd)
{
    struct cmd_file *file;

    int err = share_file_find(cmd_fd, &file);
    if (err != 0) {
        errno = -err;
        return NULL;
    }
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_device *device = list != NULL ? device_named(list, file->device) : NULL;
    struct ibv_context *context = NULL;
    if (device != NULL)
        context = context_new(device, file, cmd_fd);
    else if (list != NULL)
        errno = ENODEV;
    err = errno;
    if (list != NULL)
        ibv_free_device_list(list);
    if (context == NULL) {
        share_file_drop(file);
        errno = err;
    }
    return context;
}
