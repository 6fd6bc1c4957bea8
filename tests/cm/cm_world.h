/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_world.h: two or three communication managers on faulty links under virtual time, with programs
 * that connect, accept, reject, disconnect, crash and start again; every choice comes from a tape.
 * What each program must see is worked out beside it (cm_program.c); then the faults stop, and all
 * must come to an end.
 */
#ifndef TESTS_CM_CM_WORLD_H
#define TESTS_CM_CM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../world/tape.h"
#include "cm/cm.h"

enum {
    WORLD_NODES = 3,
    WORLD_SIDES = 160,
    WORLD_PACKETS = 2048,
    WORLD_IDS = 128,
    WORLD_WHY = 400,
    WORLD_RESPONSE_CODE = 12, /* 16.8 ms */
    WORLD_ACK_CODE = 13,      /* TIMEWAIT 33.6 ms: repetitions meet it */
};
#define WORLD_MS    1000000u
#define WORLD_NEVER UINT64_MAX

/* What one end of a connection or SIDR exchange is about to do, and what became of it. */
enum deed {
    DEED_NONE,
    DEED_ACCEPT, /* passive: cm_reply, SIDR success */
    DEED_REJECT,
    DEED_READY, /* active: cm_ready */
    DEED_DATA,  /* active: the first data reaches the peer, whatever became of the RTU */
    DEED_DISCONNECT,
    DEED_DESTROY,
};

enum outcome {
    OUTCOME_NONE,
    OUTCOME_ESTABLISHED,
    OUTCOME_REJECTED,
    OUTCOME_UNREACHABLE,
    OUTCOME_ANSWERED, /* SIDR */
};

struct side {
    unsigned node, life;                                /* of the node when it was made */
    struct cm_id *id;                                   /* NULL: given back, or gone with a crash */
    bool active, sidr, ideal;                           /* ideal: begun after the faults stopped */
    bool xrc;                                           /* initiator or target */
    bool accepted, rejected, ready, destroyed, crashed; /* what it did, or befell it */
    bool established, disconnected, ended;              /* events that it saw */
    bool mra;                                           /* waits longer than usual */
    unsigned stale_tries;                               /* rejections in a row, as stale */
    enum outcome outcome;
    uint16_t reason;
    unsigned target;  /* active: node that it wants */
    unsigned partner; /* passive: the active side's number; active: the passive's, once known */
    bool has_partner;
    uint32_t qpn, psn;
    enum deed deed;
    uint64_t deed_ns;
};

struct packet {
    uint64_t at_ns, seq;
    unsigned to;
    struct cm_path path; /* as the receiver sees it */
    uint8_t mad[MAD_BYTES];
};

struct node {
    struct cm *cm; /* NULL: crashed */
    unsigned life;
    struct cm_id *listener;
    uint64_t listener_since_ns; /* or: nobody listens since then */
    bool listened_always;
    uint64_t restart_ns;
    uint32_t next_qpn;
    struct cm_sink sink;
    struct cm_world *world;
};

struct cm_world {
    struct tape *tape;
    uint64_t now_ns, seed;
    unsigned nodes;
    struct node node[WORLD_NODES];
    struct side side[WORLD_SIDES];
    unsigned sides, connects_left;
    struct packet packet[WORLD_PACKETS];
    unsigned packets;
    uint64_t next_seq, next_connect_ns;
    bool faultless, crashes, stopped, closing; /* stopped: no faults any more */
    uint64_t stop_ns;
    uint32_t loss_ppm, dup_ppm, delay_ms;
    unsigned crash_count, established_count, rejected_count, unreachable_count, xrc_count;
    bool trace;
    bool failed;
    char why[WORLD_WHY];
};

/* True: all that must hold did. */
bool cm_world_run(struct cm_world *w, struct tape *tape, uint64_t seed);
/* The first failure counts. */
void cm_world_fail(struct cm_world *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void cm_world_note(struct cm_world *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Puts on the links what a manager has to say. */
void cm_world_drain(struct cm_world *w, unsigned node);
struct net_addr cm_world_addr(unsigned node);

/* cm_program.c */
/* Returns NULL when the world is full. */
struct side *program_connect(struct cm_world *w, unsigned node, unsigned target, bool sidr,
                             uint32_t qpn); /* 0: a new one */
/* Handles all events of a node. */
void program_events(struct cm_world *w, unsigned node);
/* Earliest deed that is due, WORLD_NEVER when none. */
uint64_t program_deadline(const struct cm_world *w);
void program_act(struct cm_world *w);
void program_crashed(struct cm_world *w, unsigned node);
/* No deed is left and every connect has its outcome. */
void program_check_settled(struct cm_world *w);
/* Both ends of each connection must believe the same now. */
void program_check_agreement(struct cm_world *w);
/* Everybody gives back all that he has. */
void program_close(struct cm_world *w);
void program_check_end(struct cm_world *w);

#endif
