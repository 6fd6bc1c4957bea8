/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_death.h: taking leave of peers on behalf of processes that died (port_death.c). A part of
 * port_udp_priv.h.
 */
#ifndef PORT_PORT_DEATH_H
#define PORT_PORT_DEATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "port/port_will.h"

struct msghdr;
struct port_udp;
struct udp_fd;

enum {
    DEATH_EXECUTORS = 2, /* of one will: they may die together with it */
    DEATH_MAX_WARDS = 64,
    DEATH_MAX_HELD = 16, /* slots of the dead */
};

/* A process whose will we have. */
struct udp_ward {
    int will_fd;
    uint32_t slot;
    pid_t pid;
    unsigned entries; /* of its will */
    unsigned tries;   /* to take over its slot, once it has hung up */
    uint64_t due_ns;
    TAILQ_ENTRY(udp_ward) link; /* of those */
};
TAILQ_HEAD(udp_ward_list, udp_ward);

/* The slot of a dead process: who holds it serves the will. */
struct udp_held {
    struct udp_ward *ward;
    struct udp_fd *listener;
    unsigned told; /* times */
    uint64_t since_ns, due_ns;
};

struct udp_deaths {
    struct port_deaths *told; /* or NULL: nobody here to serve wills */
    struct will will;
    void *memory;       /* of it */
    int will_fd;        /* -1: none */
    uint32_t will_room; /* entries for which there is memory */
    struct {
        struct udp_fd *fd; /* NULL: none */
        uint32_t slot;
        bool accepted; /* it said so */
    } executor[DEATH_EXECUTORS];
    uint32_t looked;     /* slots, of the search for executors */
    uint64_t search_ns;  /* when it goes on; 0: it does not */
    uint64_t backoff_ns; /* between searches in vain */
    struct udp_fd *timer;
    unsigned wards; /* living and dying */
    struct udp_ward_list dying;
    struct udp_held held[DEATH_MAX_HELD]; /* oldest first */
    unsigned held_count;
};

void udp_death_init(struct port_udp *u);
/* Descriptors that are not in the lists of the port. */
void udp_death_close(struct port_udp *u);
void udp_death_fini(struct port_udp *u);
/* A message that came by a connection, perhaps with descriptors. True: it was a will. */
bool udp_death_message(struct port_udp *u, struct udp_fd *connection, struct msghdr *h,
                       const uint8_t *bytes, uint32_t n);
/* A connection has ended: its process may be dead. To be followed, in time, by the other. */
void udp_death_ward_hangs_up(struct port_udp *u, struct udp_fd *connection);
void udp_death_hangup(struct port_udp *u);
void udp_death_executor(struct port_udp *u, struct udp_fd *executor);
void udp_death_timer(struct port_udp *u, struct udp_fd *timer);

#endif
