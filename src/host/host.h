/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host.h: the live device: what libverbena.so.0 offers to the verbs and rdmacm libraries. One
 * engine, one port and one helper thread a process, made at the first verbena_open and gone with
 * the last verbena_close; contexts are views of it through one network interface. Calls drive the
 * engine inline; the helper thread serves when nobody calls.
 *
 * All functions may be called from any thread. int results are 0 or -errno. After fork() the
 * child's inherited contexts are dead: every call on them or their objects answers -EIO and touches
 * no shared descriptor; new contexts work.
 */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include <net/if.h>

#include "verbena/types.h"

#define VERBENA_EXPORT __attribute__((visibility("default")))

#include "host/connect.h"
#include "host/memory.h"
#include "host/share.h"

struct cq;
struct mr;
struct pd;
struct qp;
struct srq;
struct verbena_context;

enum {
    VERBENA_GID_TABLE_SIZE = 256,
    VERBENA_NAME_BYTES = 64,
    /* Device files are uverbsN, N this and the interface's index: the kernel's own devices end
     * before. */
    VERBENA_UVERBS_FIRST = 1024,
};

/* What devices say of themselves, to whoever asks in whatever way. */
#define VERBENA_FW_VERSION "0.1.0"
#define VERBENA_BOARD_ID   "VERBENA"
#define VERBENA_HCA_TYPE   "verbena"

struct verbena_device {
    char name[VERBENA_NAME_BYTES]; /* vb_<interface> */
    char netdev[IF_NAMESIZE];
    unsigned ifindex;
    uint64_t node_guid;        /* from the MAC as EUI-64, or made from the index; never 0; stable */
    uint32_t mtu_bytes;        /* of the interface */
    uint16_t active_mtu_bytes; /* largest RoCE path MTU that fits */
    bool up;                   /* administratively up and running */
    bool loopback;
    uint32_t speed_mbps; /* 0: unknown */
};

struct verbena_gid {
    struct net_addr addr;
    unsigned ifindex;
};

/* No address has this place of the table. */
static inline bool verbena_gid_empty(const struct verbena_gid *g)
{
    static const struct net_addr none;
    return memcmp(&g->addr, &none, sizeof(none)) == 0;
}

/* Called while progress is made, on any thread, with no engine lock held. They must not call back
 * into host.h. */
struct verbena_callbacks {
    void (*completion)(void *cq_owner);
    /* object_owner: that of the QP, CQ or SRQ; for port events the context's. */
    void (*async_event)(enum nic_event_type type, void *object_owner);
};

/* Interfaces with an address, first non-loopback first. *out is freed with free(). */
VERBENA_EXPORT int verbena_device_list(struct verbena_device **out, size_t *n);
/* As it is now. -ENODEV when the interface has gone. */
VERBENA_EXPORT int verbena_device_query(struct verbena_context *ctx, struct verbena_device *out);

/*
 * -ENODEV: no such device; -EADDRINUSE: UDP port 4791 belongs to another user, with whom we do not
 * share it, or to the kernel (a message on stderr names the holder); others from the system.
 * owner: for port events.
 */
VERBENA_EXPORT int verbena_open(const char *device_name, const struct verbena_callbacks *cb,
                                void *owner, struct verbena_context **out);
/* All objects of the context must be gone. */
VERBENA_EXPORT void verbena_close(struct verbena_context *ctx);
/*
 * GID table as the kernel's: link-local first, then one entry an address; indexes stay stable while
 * addresses come and go. -ENODATA: empty entry (addr all zero); -EINVAL: outside the table.
 */
VERBENA_EXPORT int verbena_gid_query(struct verbena_context *ctx, unsigned index,
                                     struct verbena_gid *out);
/* The whole table, of one moment; empty entries have an address of zeros. */
VERBENA_EXPORT int verbena_gid_table(struct verbena_context *ctx,
                                     struct verbena_gid out[VERBENA_GID_TABLE_SIZE]);
/* local and scope_id of a path from a GID index; remote, class, hop limit, label are the caller's.
 */
VERBENA_EXPORT int verbena_path_local(struct verbena_context *ctx, unsigned gid_index,
                                      struct nic_path *path);

VERBENA_EXPORT int verbena_pd_create(struct verbena_context *ctx, struct pd **out);
VERBENA_EXPORT int verbena_pd_destroy(struct verbena_context *ctx, struct pd *pd);
/* An AH is only a count on its PD: 1 or -1. */
VERBENA_EXPORT void verbena_pd_count(struct pd *pd, int children);

VERBENA_EXPORT int verbena_cq_create(struct verbena_context *ctx, int cqe, void *owner,
                                     struct cq **out);
VERBENA_EXPORT int verbena_cq_capacity(const struct cq *cq);
VERBENA_EXPORT int verbena_cq_resize(struct verbena_context *ctx, struct cq *cq, int cqe);
/* Events wait for count completions, for period_us at most. 0 and 0: they do not. */
VERBENA_EXPORT int verbena_cq_moderate(struct verbena_context *ctx, struct cq *cq, uint32_t count,
                                       uint32_t period_us);
VERBENA_EXPORT int verbena_cq_destroy(struct verbena_context *ctx, struct cq *cq);
/* Completions, after making progress when there is none at once. */
VERBENA_EXPORT int verbena_cq_poll(struct verbena_context *ctx, struct cq *cq, int max,
                                   struct nic_wc *out);
VERBENA_EXPORT int verbena_cq_arm(struct verbena_context *ctx, struct cq *cq, bool solicited_only);

/* max_wr and max_sge are raised to what was given. */
VERBENA_EXPORT int verbena_srq_create(struct verbena_context *ctx, struct pd *pd, uint32_t *max_wr,
                                      uint32_t *max_sge, uint32_t limit, void *owner,
                                      struct srq **out);
VERBENA_EXPORT int verbena_srq_destroy(struct verbena_context *ctx, struct srq *srq);
VERBENA_EXPORT int verbena_srq_set_limit(struct verbena_context *ctx, struct srq *srq,
                                         uint32_t limit);
VERBENA_EXPORT int verbena_srq_resize(struct verbena_context *ctx, struct srq *srq,
                                      uint32_t *max_wr);
VERBENA_EXPORT void verbena_srq_query(struct srq *srq, uint32_t *max_wr, uint32_t *max_sge,
                                      uint32_t *limit);
VERBENA_EXPORT int verbena_srq_post(struct verbena_context *ctx, struct srq *srq,
                                    const struct nic_recv_wr *wr);
/* An XRC domain of this device: a new one (fd -1), or that of a file; flags as those of open(2).
 * -EAGAIN: none, and not to create; -EINVAL: there is one, and exclusive; -EOPNOTSUPP: another
 * process has it; -ENOMEM, or what the system said. */
VERBENA_EXPORT int verbena_xrcd_open(struct verbena_context *ctx, int fd, int flags,
                                     struct xrcd **out);
/* As often as it was opened. -EBUSY when this is the last and it has children. */
VERBENA_EXPORT int verbena_xrcd_close(struct verbena_context *ctx, struct xrcd *xrcd);
VERBENA_EXPORT int verbena_xrc_srq_create(struct verbena_context *ctx, struct pd *pd,
                                          struct xrcd *xrcd, struct cq *cq, uint32_t *max_wr,
                                          uint32_t *max_sge, void *owner, struct srq **out);
VERBENA_EXPORT uint32_t verbena_xrc_srq_number(const struct srq *srq);

/* The UDP source port that a flow label asks for: as kernel senders map it, its upper six bits
 * folded into the lower fourteen. */
static inline uint16_t verbena_label_sport(uint32_t flow_label)
{
    return (uint16_t)(0xC000 | ((flow_label ^ flow_label >> 14) & 0x3fff));
}

struct qp_init;
/* udp_sport is the host's to choose. */
VERBENA_EXPORT int verbena_qp_create(struct verbena_context *ctx, struct qp_init *init,
                                     struct qp **out);
VERBENA_EXPORT uint32_t verbena_qp_number(const struct qp *qp);
/* The path's udp_sport may be 0: the host chooses (stable per QP, 0xC000..0xFFFF, from the flow
 * label when set). */
VERBENA_EXPORT int verbena_qp_modify(struct verbena_context *ctx, struct qp *qp,
                                     const struct nic_qp_attr *attr, unsigned mask);
VERBENA_EXPORT int verbena_qp_query(struct verbena_context *ctx, struct qp *qp,
                                    struct nic_qp_attr *attr, struct nic_qp_cap *cap);
/* ECE, as qp_set_ece and qp_query_ece have it. -EINVAL: too late. */
VERBENA_EXPORT int verbena_qp_set_ece(struct verbena_context *ctx, struct qp *qp,
                                      uint32_t *options);
VERBENA_EXPORT int verbena_qp_query_ece(struct verbena_context *ctx, struct qp *qp,
                                        uint32_t *options);
VERBENA_EXPORT int verbena_qp_destroy(struct verbena_context *ctx, struct qp *qp);
/* A UD QP into a multicast group, on the context's interface, and out of it. -EINVAL: no UD QP, no
 * group, not attached; -ENOMEM: too many; others from the system. */
VERBENA_EXPORT int verbena_mcast_attach(struct verbena_context *ctx, struct qp *qp,
                                        const struct net_addr *group);
VERBENA_EXPORT int verbena_mcast_detach(struct verbena_context *ctx, struct qp *qp,
                                        const struct net_addr *group);
/* Queues one WR; verbena_kick sends what was queued. -errno, see wq.h. */
VERBENA_EXPORT int verbena_post_send(struct verbena_context *ctx, struct qp *qp,
                                     const struct nic_send_wr *wr);
VERBENA_EXPORT int verbena_post_recv(struct verbena_context *ctx, struct qp *qp,
                                     const struct nic_recv_wr *wr);
VERBENA_EXPORT void verbena_kick(struct verbena_context *ctx);

/* The table of a device, open or not: of its first open context in this process, whose indexes
 * stay; else as one would have it that was opened now. out: VERBENA_GID_TABLE_SIZE entries, addr
 * all zero where empty. 1: it is open here; 0: not; -errno. */
VERBENA_EXPORT int verbena_device_gids(const struct verbena_device *d, struct verbena_gid *out);

/*
 * What is to be done around fork() beside what the host does: a child must not inherit a mutex from
 * a thread that it does not have. Of the hooks of one process, prepare runs in the order of ranks,
 * on the thread that forks; parent, or child in the child, in the opposite one. It is the order in
 * which the mutexes are taken elsewhere: before the host's are those under which verbena_ functions
 * are called, behind them those that callbacks take, under which none is called.
 */
enum verbena_fork_rank {
    VERBENA_FORK_RDMA_DEVICE,
    VERBENA_FORK_RDMA_ENGINE,
    VERBENA_FORK_VERBS_DEVICE,
    VERBENA_FORK_VERBS_SHARE,
    VERBENA_FORK_HOST,
    VERBENA_FORK_VERBS_TARGET,
    VERBENA_FORK_RDMA_CHANNEL,
    VERBENA_FORK_RANKS,
};
struct verbena_fork_hook {
    void (*prepare)(void);
    void (*parent)(void);
    void (*child)(void);
};
/* The hook stays the caller's, and is never taken back. For constructors: no lock may be held that
 * a hook takes. One a rank; a second call replaces the first. */
VERBENA_EXPORT void verbena_fork_hook(enum verbena_fork_rank rank,
                                      const struct verbena_fork_hook *hook);

/* Names of the counters of the engine and of connection management, without a device: the same
 * indexes as below. NULL past the end. */
VERBENA_EXPORT const char *verbena_counter_name(unsigned index);
/* Adds to value[0..n-1] what all processes have counted that have the device open now: one's own
 * user's and root's, as root also those of the user who has the port. Returns how many; one that is
 * stopped costs 0.1 s and is left out. */
VERBENA_EXPORT unsigned verbena_counters_of_all(const struct verbena_device *d, uint64_t *value,
                                                unsigned n);
/* Counters of this process: index 0.. ; NULL past the end. Engine's first, then those of
 * connection management, then the port's. */
VERBENA_EXPORT const char *verbena_counter(unsigned index, uint64_t *value);

#endif
