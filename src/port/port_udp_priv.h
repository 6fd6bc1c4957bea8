/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_udp_priv.h: what the files of port_udp share. Fields under "sending side" are touched only
 * by flush and sink calls, those under "receiving side" only by receive; counters have one writer
 * each and any reader.
 */
#ifndef PORT_PORT_UDP_PRIV_H
#define PORT_PORT_UDP_PRIV_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/rng.h"
#include "port/port_death.h"
#include "port/port_flow.h"
#include "port/port_guest.h"
#include "port/port_hold.h"
#include "port/port_local.h"
#include "port/port_service.h"
#include "port/port_slot.h"
#include "port/port_udp.h"
#include "port/port_udp_counters.h"
#include "port/port_watch.h"
#include "wire/icrc.h"
#include "wire/roce.h"

enum {
    UDP_TX_SOCKETS = 64,   /* source ports a process and family */
    UDP_TX_MESSAGES = 128, /* datagrams or runs waiting for flush */
    UDP_TX_ARENA_BYTES = 512 << 10,
    UDP_TX_CONTROL_BYTES = 128,
    UDP_SPORT_FIRST = 0xC000,
    UDP_RX_MESSAGES = 8, /* of one recvmmsg */
    UDP_RX_CONTROL_BYTES = 256,
    UDP_RX_HEAD_BYTES = 128, /* room for the header of a forwarded run */
    UDP_RX_BUFFER_BYTES = UDP_RX_HEAD_BYTES + (64 << 10),
    UDP_RX_BATCH = 64, /* packets handed over at once */
    UDP_SLOT_BITS = 10,
    UDP_SLOTS = 1 << UDP_SLOT_BITS,
    UDP_SOURCES = 256, /* recently heard peers, direct-mapped */
    UDP_MAX_FLOWS = 1024,
    UDP_MAX_CONNECTIONS = UDP_SLOTS,
    UDP_FLOW_AFTER_PACKETS = 16,
    UDP_SOCKET_BUFFER_BYTES = 4 << 20, /* asked for; the kernel doubles it */
    UDP_PROBE_BYTES = 28,
    UDP_GROUPS = 32, /* multicast, of a process */
    UDP_STUCK = 32,  /* flows looked at, of processes that may not read */
};

enum udp_fd_kind {
    UDP_FD_WILDCARD,   /* 0.0.0.0:4791 or [::]:4791 */
    UDP_FD_FLOW,       /* connected to one peer's source */
    UDP_FD_LISTENER,   /* a slot of ours, or a service */
    UDP_FD_CONNECTION, /* from a process that forwards to us, or asks */
    UDP_FD_HOST,       /* guest: to our host, or who may become it */
    UDP_FD_TIMER,      /* guest */
    UDP_FD_EXECUTOR,   /* to one that has our will */
    UDP_FD_DEATHS,     /* timer */
    UDP_FD_HOLD,       /* timer */
    UDP_FD_OWNER,      /* to the owner of a slot, to pass packets on */
};

struct udp_source;

/* A descriptor of the receiving side. */
struct udp_fd {
    int fd;
    enum udp_fd_kind kind;
    bool v6;
    bool dead;    /* closed; freed when no event may name it any more */
    bool retired; /* FLOW: given up; read once more, then closed */
    bool rescued; /* FLOW: of a process that does not read; foreign packets pass on */
    uint64_t opened_ns, used_ns; /* FLOW */
    uint64_t held_until_ns;      /* FLOW: what came before it is still on its way; 0: no more */
    uint32_t mark;               /* FLOW: of the probe that comes last of that */
    struct udp_source *source;   /* FLOW: whose */
    struct udp_ward *ward;       /* CONNECTION: of a process whose will we have; or NULL */
    uint32_t slot;               /* OWNER */
    struct udp_fd *listener;     /* CONNECTION: by which it came; only to compare */
    TAILQ_ENTRY(udp_fd) link;
};
TAILQ_HEAD(udp_fd_list, udp_fd);

/* A multicast group that we are in on an interface. */
struct udp_group {
    struct net_addr addr;
    uint32_t ifindex;
    uint32_t users; /* 0: free */
    int second_fd;  /* IPv4, see port_group.c; else -1 */
};

/* A peer's address and source port, as heard lately. */
struct udp_source {
    struct net_addr addr;
    uint16_t sport;
    uint16_t next_id;  /* IPv4 id expected of its next datagram; 0 from our own kind */
    bool clears_df;    /* its packets come without DF */
    uint32_t streak;   /* forwarded packets of our own in a row */
    uint64_t heard_ns; /* last packet of our own that came without a socket for the flow; 0: none */
    uint64_t no_flow_until_ns;
    uint64_t backoff_ns;
    struct udp_fd *flow; /* or NULL */
};

/* Equal-sized packets of one datagram run, the last may be shorter. */
struct udp_run {
    struct net_addr src, dst;
    uint16_t sport;
    uint8_t tos;
    uint8_t ttl;       /* 0: unknown */
    uint32_t ifindex;  /* it came in by */
    uint16_t segment;  /* bytes of each packet */
    uint16_t first_id; /* index of its first packet in the run as it was sent */
    bool direct;       /* from a sender of this machine, not by UDP */
    uint8_t *bytes;
    uint32_t n;
    struct udp_fd *from;
};

struct udp_tx_socket {
    int fd; /* -1: not yet made */
    uint16_t sport;
    struct net_addr local; /* it is bound to; IPv6: always the wildcard */
};

struct udp_tx_message {
    struct udp_tx_socket *socket; /* or, to a process of this machine: */
    struct udp_local *local;      /* NULL: by UDP */
    uint8_t *bytes;
    uint32_t n;
    uint16_t segment;
    uint16_t packets;
    uint8_t tos, ttl;
    struct icrc_pseudo ip;
    struct iovec iov[2]; /* local: a header, which stands in control */
    union {
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } to;
    _Alignas(struct cmsghdr) uint8_t control[UDP_TX_CONTROL_BYTES];
    uint32_t control_bytes;
};

struct port_udp {
    struct port port;
    struct port_udp_config config;
    uint16_t udp_port;
    uid_t uid; /* when it was opened; a daemon may have given it up since */
    uint32_t rcvbuf_bytes;
    _Atomic uint64_t counter[UDP_COUNTER_COUNT];

    /* Sending side. */
    struct udp_tx_socket tx4[UDP_TX_SOCKETS], tx6[UDP_TX_SOCKETS];
    uint8_t *tx_arena;
    uint32_t tx_used;
    unsigned tx_messages;
    struct udp_tx_message *tx_message; /* UDP_TX_MESSAGES */
    bool gso;                          /* the kernel knows UDP_SEGMENT */
    unsigned gso_failures;             /* in a row */
    uint64_t gso_off_until_ns;
    uint64_t tx_now_ns;           /* of the last flush */
    uint64_t tx_observed_ns;      /* when the kernel was given what is sent; with an observer */
    _Atomic uint64_t tx_retry_ns; /* 0, or when a full socket is tried again */
    struct udp_locals locals;
    int tx_spare_fd;           /* given up for the first socket when no descriptor is left; or -1 */
    struct udp_watch watch[2]; /* IPv4, IPv6 */
    uint64_t watch_nonce;
    uint64_t suspect_again_ns;
    _Atomic uint64_t lag_ns; /* how late our turns come; by the sending side */
    _Atomic bool suspect;    /* own packets stay unanswered; any thread */

    /* Receiving side. */
    int epoll_fd;
    struct rng rng;
    struct udp_fd_list fds, graveyard;
    struct udp_fd_list flows, retired; /* last used first; given up in this call */
    unsigned flow_count, flow_max, connection_count;
    uint32_t flow_mark; /* of the latest */
    struct udp_group group[UDP_GROUPS];
    struct udp_fd *hot;   /* where packets came from last */
    struct udp_fd *eased; /* not in the epoll set: who polls reads it anyway; or NULL */
    unsigned rx_want;     /* messages that the next read asks for */
    uint64_t rx_bytes;    /* read from sockets */
    unsigned empty_calls, busy_calls;
    uint8_t *rx_buffer; /* UDP_RX_MESSAGES of UDP_RX_BUFFER_BYTES */
    struct mmsghdr rx_message[UDP_RX_MESSAGES];
    struct iovec rx_iov[UDP_RX_MESSAGES];
    struct sockaddr_in6 rx_name[UDP_RX_MESSAGES];
    _Alignas(struct cmsghdr) uint8_t rx_control[UDP_RX_MESSAGES][UDP_RX_CONTROL_BYTES];
    struct rx_packet *rx_packet; /* UDP_RX_BATCH */
    unsigned rx_packets;
    struct port_receiver *receiver; /* of the running call */
    uint64_t rx_now_ns;
    struct udp_source source[UDP_SOURCES];
    uint64_t asker_ns[UDP_SLOTS]; /* when a slot's question last came by */
    struct udp_stuck stuck[UDP_STUCK];
    unsigned stuck_count;
    uint64_t stuck_ns; /* of the look */
    unsigned answers;  /* of the leader */

    struct udp_guest guest;
    struct udp_services services;
    struct udp_hold hold;
    struct udp_deaths deaths;

    /* Slots. */
    int accept_spare_fd; /* given up for a connection when no descriptor is left; or -1 */
    bool accept_later;   /* connections wait that could not be taken */
    uint32_t slot;       /* the first of ours */
    bool slot_mine[UDP_SLOTS];
    struct udp_fd *slot_fd[UDP_SLOTS]; /* connections to their owners, or NULL */
};

static inline struct port_udp *udp_of(struct port *p)
{
    return (struct port_udp *)((char *)p - offsetof(struct port_udp, port));
}

static inline void udp_count(struct port_udp *u, enum udp_counter c, uint64_t n)
{
    /* One writer a counter, hence no locked instruction. */
    uint64_t v = atomic_load_explicit(&u->counter[c], memory_order_relaxed);
    atomic_store_explicit(&u->counter[c], v + n, memory_order_relaxed);
}

/* Slot of a packet's destination QPN; packet has at least 8 bytes. */
static inline uint32_t udp_packet_slot(const uint8_t *packet)
{
    return (uint32_t)packet[5] << 2 | packet[6] >> 6;
}

/* All bytes count: the last of an address are those in which neighbours differ. */
static inline uint32_t udp_addr_hash(const struct net_addr *addr, uint32_t more)
{
    uint64_t a, b;
    memcpy(&a, addr->b, 8);
    memcpy(&b, addr->b + 8, 8);
    uint64_t h = (a ^ more) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32 ^ b) * 0xd6e8feb86659fd93u;
    h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 40);
}

/* port_udp.c */
bool udp_uid_allowed(const struct port_udp *u, uid_t uid);
/* A receiving-side descriptor into the epoll set; -errno and fd closed when it fails. */
int udp_fd_add(struct port_udp *u, int fd, enum udp_fd_kind kind, bool v6, struct udp_fd **out);
void udp_fd_close(struct port_udp *u, struct udp_fd *f);
/* A descriptor for bad times, when the program has used up all others; or -1. */
int udp_spare_fd(void);
/* A datagram socket on the RoCE port of the wildcard address, the last of its group, not yet in the
 * epoll set; or -errno. */
int udp_socket_wildcard(struct port_udp *u, bool v6);
/* The sockets by which this process is a member: all or none. -EADDRINUSE: another user's port. */
int udp_members_open(struct port_udp *u);

/* port_udp_tx.c */
int udp_tx_init(struct port_udp *u);
/* Its descriptors only. */
void udp_tx_close(struct port_udp *u);
void udp_tx_fini(struct port_udp *u);
void udp_tx_train(struct port_udp *u, const struct train *t);
void udp_tx_train_flipped(struct port_udp *u, const struct train *t, uint32_t bit);
void udp_tx_flush(struct port_udp *u, uint64_t now_ns);
/* The clock of what an observer is told. */
uint64_t udp_observed_ns(void);

/* port_udp_rx.c */
int udp_rx_init(struct port_udp *u);
void udp_rx_fini(struct port_udp *u);
unsigned udp_rx_receive(struct port_udp *u, uint64_t now_ns, struct port_receiver *r, unsigned max);
bool udp_rx_ease(struct port_udp *u, bool on);
/* Gives up being a member: what has come for others goes on to them, what is ours is dropped. */
void udp_rx_retire(struct port_udp *u);
/* All packets of a run: ours to the receiver, others' to their owners. Returns packets seen. */
unsigned udp_rx_run(struct port_udp *u, struct udp_run *run);

/* port_group.c: a new wildcard socket joins what the one before it was in. */
void udp_group_again(struct port_udp *u, const struct udp_fd *f);
/* Its descriptors. */
void udp_group_close(struct port_udp *u);

static inline bool udp_watch_is_probe(const struct udp_run *run)
{
    return run->bytes[0] >= 0xfe && run->segment == UDP_PROBE_BYTES;
}

#endif
