/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_objects.h: what stands behind the pointers that programs hold: each public struct first (or,
 * for the context, last), then ours. And what the files of this floor share.
 */
#ifndef VERBS_IBV_OBJECTS_H
#define VERBS_IBV_OBJECTS_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "host/host.h"
#include "verbs/ibv_events.h"
#include "verbs/ibv_share.h"
#include "verbs/verbs_newer.h"

#define VERBS_FW_VERSION VERBENA_FW_VERSION

enum {
    /* "VER" as an OUI: the locally-administered bit (0x02 of its first byte) is set, the group bit
     * is not, so it can be no vendor's. */
    VERBS_VENDOR_ID = 0x564552,
    VERBS_VENDOR_PART_ID = 0x564e, /* unknown to every table of vendor parts that programs carry */
    VERBS_HW_VERSION = 1,
    VERBS_PORT = 1, /* the only one */
    VERBS_COMP_VECTORS = 1,
    VERBS_DEFAULT_PKEY = 0xffff,
};

struct ibv_dev_obj {
    struct ibv_device dev;
    /* Vendor libraries read what rdma-core's private struct has behind the public one, and take
     * zero for "not mine". */
    uint8_t zero[1024];
    struct verbena_device info; /* as last listed; read by ibv_dev_info */
    uint32_t refs;              /* lists and contexts that hold it; under the list lock */
    TAILQ_ENTRY(ibv_dev_obj) link;
};

enum {
    CONTEXT_EVENTS = 4, /* PORT_ACTIVE, PORT_ERR, GID_CHANGE, DEVICE_FATAL */
    QP_EVENTS = 6,      /* FATAL, REQ_ERR, ACCESS_ERR, COMM_EST, SQ_DRAINED, LAST_WQE_REACHED */
};

struct ibv_ctx_obj {
    struct verbena_context *host;
    struct ibv_dev_obj *device;
    struct event_queue async;
    struct event_node event[CONTEXT_EVENTS];
    _Atomic uint32_t objects;           /* children alive */
    struct cmd_file *file;              /* of its command descriptor */
    struct verbs_context_newest newest; /* last: its own last field is the public ibv_context */
};

struct ibv_td_obj;

struct ibv_pd_obj {
    struct ibv_pd ibv;
    struct pd *pd; /* of a parent domain: that of the domain it was made of */
    /* Of a parent domain; the engine counts what a protection domain has. */
    struct ibv_pd *parent; /* NULL: it is none */
    struct ibv_td_obj *td; /* or NULL */
    _Atomic uint32_t users;
    struct share share; /* not of a parent domain */
};

struct ibv_mr_obj {
    struct ibv_mr ibv;
    struct share share; /* its object is the engine's region */
};

struct ibv_channel_obj {
    struct ibv_comp_channel ibv;
    struct event_queue queue;
    _Atomic uint32_t users; /* CQs; shown as ibv.refcnt */
};

struct ibv_cq_obj {
    union {
        struct ibv_cq ibv;
        struct ibv_cq_ex ex;
    };
    struct cq *cq;
    struct verbena_context *host;
    struct event_node comp_event; /* in the channel's queue */
    struct event_node err_event;  /* in the context's */
    /* Extended polling: between start_poll and end_poll. */
    pthread_mutex_t poll_mutex;
    bool poll_unlocked; /* the program polls from one thread at a time */
    struct ibv_pd *pd;  /* the parent domain it was made on, or NULL */
    struct nic_wc current;
};

struct ibv_xrcd_obj {
    struct ibv_xrcd ibv;
    struct xrcd *xrcd;
};

struct ibv_srq_obj {
    struct ibv_srq ibv;
    bool xrc; /* has a number */
    struct srq *srq;
    struct verbena_context *host;
    struct event_node event[2]; /* SRQ_ERR, SRQ_LIMIT_REACHED */
};

struct qp_builder;

struct ibv_qp_obj {
    union qp_newest pub;
    struct qp *qp;
    struct qp_builder *builder; /* NULL: no extended posting */
    struct verbena_context *host;
    bool sq_sig_all;
    struct ibv_ah_attr ah_attr; /* as last set, for queries */
    struct event_node event[QP_EVENTS];
    /* XRC targets, under the lock of ibv_xrc.c. */
    struct ibv_qp_obj *maker; /* of ibv_open_qp: whose QP this is a handle of; else NULL */
    struct xrcd *xrcd;        /* of a maker */
    LIST_HEAD(, ibv_qp_obj) openers;
    LIST_ENTRY(ibv_qp_obj) tgt_link; /* among makers, or among openers */
    bool left; /* a maker that the program has destroyed, while others have it open */
};

struct ibv_ah_obj {
    struct ibv_ah ibv;
    struct nic_path path;
};

static inline struct ibv_ctx_obj *obj_ctx(struct ibv_context *c)
{
    return (struct ibv_ctx_obj *)(void *)((char *)c -
                                          offsetof(struct ibv_ctx_obj, newest.vctx.context));
}

static inline struct ibv_pd_obj *obj_pd(struct ibv_pd *p)
{
    return (struct ibv_pd_obj *)p;
}

/* An object on it (1) comes or (-1) goes. NULL: it is on none. */
static inline void obj_pd_use(struct ibv_pd *p, int objects)
{
    if (p != NULL && obj_pd(p)->parent != NULL)
        atomic_fetch_add(&obj_pd(p)->users, (uint32_t)objects);
}

/* ibv_pd.c. Nobody destroys it through another handle until it is released: for who makes what is
 * on it. -EINVAL: somebody has. */
int ibv_pd_hold(struct ibv_pd *pd);
void ibv_pd_release(struct ibv_pd *pd);
bool ibv_pd_gone(struct ibv_pd *pd); /* under the lock of ibv_share.c */

static inline struct ibv_cq_obj *obj_cq(struct ibv_cq *c)
{
    return (struct ibv_cq_obj *)c;
}

static inline struct ibv_srq_obj *obj_srq(struct ibv_srq *s)
{
    return (struct ibv_srq_obj *)s;
}

static inline struct ibv_xrcd_obj *obj_xrcd(struct ibv_xrcd *x)
{
    return (struct ibv_xrcd_obj *)x;
}

static inline struct ibv_ah_obj *obj_ah(struct ibv_ah *a)
{
    return (struct ibv_ah_obj *)a;
}

static inline struct ibv_qp_obj *obj_qp(struct ibv_qp *q)
{
    return (struct ibv_qp_obj *)q;
}

/* A child of the context comes (its handle) and goes. */
static inline uint32_t obj_born(struct ibv_context *c)
{
    atomic_fetch_add(&obj_ctx(c)->objects, 1);
    return atomic_fetch_add(&obj_ctx(c)->file->next_handle, 1);
}

static inline void obj_died(struct ibv_context *c)
{
    atomic_fetch_sub(&obj_ctx(c)->objects, 1);
}

/* ibv_device.c */
struct ibv_dev_obj *ibv_device_ref(struct ibv_device *dev);
void ibv_device_unref(struct ibv_dev_obj *d);
/* As last listed; another thread may be listing. */
void ibv_dev_info(const struct ibv_dev_obj *d, struct verbena_device *out);

/* ibv_query.c: entries of struct verbs_context and of its ops. */
int ibv_query_port_op(struct ibv_context *ctx, uint8_t port_num, struct ibv_port_attr *attr,
                      size_t size);
int ibv_query_device_ex_op(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t size);
int ibv_query_rt_values_op(struct ibv_context *ctx, struct ibv_values_ex *values);

/* ibv_cq.c */
struct ibv_cq_obj *ibv_cq_new(struct ibv_context *context, int64_t cqe, void *cq_context,
                              struct ibv_comp_channel *channel, int64_t comp_vector);

/* ibv_cq.c, ibv_cq_ex.c, ibv_post.c, ibv_qp.c */
struct ibv_cq_ex *ibv_create_cq_ex_op(struct ibv_context *context,
                                      struct ibv_cq_init_attr_ex *attr);
int ibv_modify_cq_op(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int ibv_poll_cq_op(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int ibv_req_notify_cq_op(struct ibv_cq *cq, int solicited_only);
int ibv_post_send_op(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int ibv_post_recv_op(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int ibv_post_srq_recv_op(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
/* 0, EOPNOTSUPP (operations that this type does not have) or ENOMEM. */
int ibv_qp_ex_init(struct ibv_qp_obj *obj, uint64_t send_ops_flags, const struct ibv_qp_cap *cap);
void ibv_qp_ex_fini(struct ibv_qp_obj *obj);
struct ibv_qp *ibv_create_qp_ex_op(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);

/* ibv_srq.c, ibv_xrc.c */
struct ibv_srq *ibv_create_srq_ex_op(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
int ibv_get_srq_num_op(struct ibv_srq *srq, uint32_t *number);
struct ibv_xrcd *ibv_open_xrcd_op(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr);
int ibv_close_xrcd_op(struct ibv_xrcd *xrcd);
struct ibv_qp *ibv_open_qp_op(struct ibv_context *ctx, struct ibv_qp_open_attr *attr);
/* A target that was made may be opened from now on. */
void ibv_tgt_made(struct ibv_qp_obj *obj, struct xrcd *xrcd);
/* A handle of a target goes. Which maker's QP goes with it, or NULL: others have it open. *keep:
 * the object stays until they are gone. */
struct ibv_qp_obj *ibv_tgt_leave(struct ibv_qp_obj *obj, bool *keep);
/* The last handle does not go after all, since its maker's QP could not be destroyed. */
void ibv_tgt_return(struct ibv_qp_obj *obj, struct ibv_qp_obj *maker);
/* Something happened to a target: tells all that have it open. */
void ibv_tgt_event(struct ibv_qp_obj *maker, int type);

/* ibv_qp.c */
void ibv_qp_init_obj(struct ibv_qp_obj *obj);
int ibv_modify_qp_rate_limit_op(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);

/* ibv_ah.c: 0 or -EINVAL. On RoCE an address is a GID: no GRH, no path. */
int ibv_ah_path(struct ibv_context *ctx, const struct ibv_ah_attr *attr, struct nic_path *path);

#endif
