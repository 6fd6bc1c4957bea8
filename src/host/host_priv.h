/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host_priv.h: what the files of the live device share.
 *
 * Locks, in this order: the process-wide open lock, rx, tx, events. rx: one thread receives and
 * feeds nic_input. tx: one thread outputs and advances timers. events: callbacks run, or an object
 * that has events is destroyed. Progress only ever tries rx, tx and events: who finds one taken
 * leaves the work to its holder, who looks again after it has let go.
 */
#ifndef HOST_HOST_PRIV_H
#define HOST_HOST_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>

#include "host/connect_priv.h"
#include "host/host.h"
#include "nic/nic.h"
#include "port/port_fault.h"
#include "port/port_tap.h"
#include "port/port_udp.h"

/* A mutex that is mostly tried. wanted: threads that wait for it; who only tries stays away. */
struct host_lock {
    pthread_mutex_t mutex;
    _Atomic uint32_t wanted;
    int cancel_state; /* the holder's, to be restored */
};

/* From the environment, once a process. */
struct host_config {
    struct port_udp_config udp;
    bool faulty;
    struct fault_spec fault;
    struct congestion_config congestion;
    const char *pcap_path;  /* or NULL */
    bool pcap_monotonic;    /* its times are not the wall clock's */
    const char *stats_path; /* or NULL; "-": stderr */
};

struct host {
    struct nic *nic;
    struct port *port; /* outermost */
    struct port *udp;
    struct port_tap *tap; /* or NULL */
    struct host_config config;
    struct port_receiver receiver;
    uint64_t rx_now_ns; /* of the receive call that runs; under rx */
    /* In a page that the kernel wipes in every child: 1 here, 0 there. */
    _Atomic uint32_t *alive;
    unsigned users; /* contexts open; under the open lock */
    uint32_t next_sport;
    unsigned qpn_slots;    /* whose QPNs are in use; under the open lock, as the next two */
    bool slot_claimed;     /* one more, for which there was no memory so far: */
    uint32_t claimed_slot; /* this one */
    struct host_lock rx, tx, events;
    struct connect connect; /* but for what it says, under events */
    int netlink_fd;         /* netdev.c; read under events */
    int tally_fd;           /* tally.c; the helper's; or -1 */
    int share_fd;           /* share.c; the same */
    uint64_t share_process; /* its name */
    /* Until then the helper does not look at netlink, at askers: something stood in its way. */
    uint64_t netdev_again_ns, tally_again_ns, share_again_ns;
    TAILQ_HEAD(context_list, verbena_context) contexts; /* open ones; under events */
    LIST_HEAD(, xrc_file) xrc_files;                    /* under the open lock */
    /* The helper thread. */
    pthread_t helper;
    bool helper_runs;
    int control_fd; /* eventfd: stop, or look at deadlines again */
    _Atomic bool stop;
    _Atomic bool flush_wanted;       /* set by progress_farewell, cleared by the helper */
    _Atomic uint64_t looked_ns;      /* all that came before is taken in: how far timers may go */
    _Atomic uint64_t sleep_until_ns; /* 0: awake; written by the helper, cleared by who wakes it */
    _Atomic bool napping;
    _Atomic bool deferred;      /* the last poll left answers to the next call */
    _Atomic uint64_t polled_ns; /* when a program last polled; lowest bit: in vain */
};

struct verbena_context {
    struct host *host;
    struct verbena_callbacks callbacks;
    void *owner;
    _Atomic uint32_t objects;     /* that name this context */
    struct verbena_device device; /* as it was at open */
    TAILQ_ENTRY(verbena_context) link;
    _Atomic bool up;                 /* the link, as netlink told last; written under events */
    _Atomic uint64_t speed_until_ns; /* so long what was read is kept; 0: the link has changed */
    _Atomic uint32_t speed_mbps;
    bool gone;      /* the interface, for good; under events */
    bool gid_stale; /* could not be read again; under events */
    pthread_mutex_t gid_lock;
    struct verbena_gid gid[VERBENA_GID_TABLE_SIZE];
    struct net_addr gid_was[VERBENA_GID_TABLE_SIZE]; /* the last address of each place */
};

/* What the engine has as owner of a CQ, SRQ or QP. */
struct host_object {
    struct verbena_context *ctx;
    void *owner;                 /* the caller's */
    uint16_t sport;              /* QP: its UDP source port */
    struct verbena_cm_id *cm_id; /* QP: whose RTU its first packet may be; under events */
    uint8_t expects; /* QP: IP versions of the packets that may come; 0: not connected */
};

/* host.c */
uint64_t host_now_ns(void);
uint64_t host_random(void);
/* The host of this process, made when there is none; errors as verbena_open. */
int host_acquire(struct host **out);
void host_release(struct host *h);
static inline bool host_alive(const struct host *h)
{
    return atomic_load_explicit(h->alive, memory_order_relaxed) != 0;
}
/* The host of this process, for fork.c and the counters; under the open lock. */
extern struct host *host_current;
extern pthread_mutex_t host_open_lock;
/* For who calls the system under it: not to be cancelled there. Returns what unlocking takes. */
int host_lock_open(void);
void host_unlock_open(int cancel_state);
struct host_object *host_object_create(struct verbena_context *ctx, void *owner);
void host_object_free(struct host_object *o); /* or NULL */

/* config.c */
/* 0, or -EINVAL after a message on stderr. */
int config_read(struct host_config *c);

/* progress.c */
int progress_start(struct host *h);
void progress_stop(struct host *h);
/* Takes what has arrived, tells the time; returns packets seen. */
unsigned progress_receive(struct host *h, uint64_t *now_ns);
/* The rest after progress_receive: sends, serves timers, calls back. When the program got packets
 * or completions, what is to be sent may wait for its next call, or a helper's nap. */
void progress_answer(struct host *h, uint64_t now_ns, unsigned packets, int completions);
/* Sends what is queued, serves timers, calls back; receives nothing. */
void progress_send(struct host *h);
/* The same, and waits for whoever sends: an answer that was owed when it was called has left. */
void progress_flush(struct host *h);
/* Looks at the sockets now: what lies there for others goes to them. */
void progress_pass_on(struct host *h);
/* At the end of the program: the helper does what progress_flush does, in a moment or never. */
void progress_farewell(struct host *h);
/* Calls back for completions and async events. */
void progress_dispatch(struct host *h);
/* The helper does what there is to do. */
void progress_wake(struct host *h);
/* Somebody waits for events and will not poll: the helper must not nap. */
void progress_expect(struct host *h);
void progress_lock(struct host_lock *l);
/* false: taken, or somebody waits for it. */
bool progress_try_lock(struct host_lock *l);
void progress_unlock(struct host_lock *l);
/* When it returns, every engine call that ran when it was called has ended. */
void progress_grace(struct host *h);

/* fork.c */
/* Whether forks are seen: 0, or -errno of the system that did not let us. */
int fork_watch(void);
/* In a child: closes what was inherited and forgets the parent's host. */
void fork_abandon(struct host *h);

/* device.c */
int device_find(const char *name, struct verbena_device *out);
/* 0, -ENODEV, or -errno: no descriptor to ask with. */
int device_describe(const char *netdev, struct verbena_device *out);
/* The interface's name, which may be another than when the device was listed; "": it has gone. */
const char *device_netdev(const struct verbena_device *d, char name[IF_NAMESIZE]);
/* A device listed before, as it is now, but for its speed; its own name and GUID stay. Errors as
 * above. */
int device_now(const struct verbena_device *d, struct verbena_device *out);
bool device_flags_up(unsigned flags);

/* gid.c */
/* 0, or -errno: there is no table without descriptors or memory to ask with. */
int gid_init(struct verbena_context *ctx);
void gid_fini(struct verbena_context *ctx);
/* Reads the table again. 1: it has changed; 0: not; -errno: could not ask, it is as it was. */
int gid_read(struct verbena_context *ctx);

/* tally.c */
void tally_open(struct host *h);
void tally_close(struct host *h);
/* Somebody asks what we have counted. The helper's: it waits for nobody. */
void tally_answer(struct host *h);

/* share.c */
void share_open(struct host *h);
void share_close(struct host *h);
/* Somebody asks for what he imports. */
void share_serve(struct host *h);

/* xrc_file.c, in a child */
void xrc_file_abandon(struct host *h);

/* netdev.c */
int netdev_open(struct host *h);
void netdev_close(struct host *h);
/* Takes what the kernel told and calls back. Holds no lock when called. */
void netdev_look(struct host *h);
/* The same by the helper, which waits for nobody. */
void netdev_try(struct host *h);
/* From now on the context hears of its interface; no more. */
void netdev_add(struct verbena_context *ctx);
void netdev_remove(struct verbena_context *ctx);

/* stats.c */
void stats_write(struct host *h);

#endif
