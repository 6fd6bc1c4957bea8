/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rig.h: dialogues with one communication manager under virtual time: what the peer says, what is
 * heard, which event the owner gets. Each helper fails the test when it is not so.
 */
#ifndef TESTS_CM_RIG_H
#define TESTS_CM_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cm/cm.h"

enum {
    RIG_SLOT = 5,
    RIG_HEARD = 64,
    RIG_QPN = 0x140a0b, /* ours */
    PEER_QPN = 0x3e,
    PEER_ID = 0x60d864f9,
};
#define RIG_GUID    0x0200c0fffe000001u
#define PEER_GUID   0x505400fffe880003u
#define RIG_SERVICE 0x1000000000000007u /* no IP service */
#define RIG_MS      1000000u

struct heard {
    struct cm_path path;
    struct cm_msg m;
    uint8_t mad[MAD_BYTES];
};

struct rig {
    struct cm *cm;
    struct cm_sink sink;
    uint64_t now_ns;
    struct cm_path path; /* ours and the peer's */
    struct heard heard[RIG_HEARD];
    unsigned first, count;
    struct cm_event event; /* the last that rig_event returned */
};

void rig_begin(struct rig *r, uint32_t max_ids);
/* Nothing may be left to hear or to see, and no id in use. */
void rig_end(struct rig *r);

/* The peer's message, as its header's attribute and the union say it; TID 0: 0x77. */
void rig_say(struct rig *r, struct cm_msg *m);
void rig_say_from(struct rig *r, const struct cm_path *path, struct cm_msg *m);
/* The next message out must be one of this kind, at once, to the peer. */
const struct cm_msg *rig_hear(struct rig *r, unsigned attribute);
void rig_silent(struct rig *r);
/* The next event must be this one. */
struct cm_event *rig_event(struct rig *r, enum cm_event_type type);
void rig_no_event(struct rig *r);
/* Lets time pass up to the next deadline, which must be so far away. */
void rig_wait(struct rig *r, uint64_t ns);
/* Lets so much time pass; in it nothing may be due. */
void rig_idle(struct rig *r, uint64_t ns);

/* Sensible messages. */
struct cm_req rig_req(void);                                 /* for cm_connect */
struct cm_rep rig_rep(void);                                 /* for cm_reply */
struct cm_msg peer_req(struct rig *r);                       /* to a listener of RIG_SERVICE */
struct cm_msg peer_msg(unsigned attribute, uint32_t our_id); /* both ids set, QPN and PSN too */

/* Ids in a state. */
struct cm_id *rig_listen(struct rig *r, unsigned backlog);
struct cm_id *rig_req_sent(struct rig *r);
struct cm_id *rig_rep_rcvd(struct rig *r);
struct cm_id *rig_active(struct rig *r);   /* established */
struct cm_id *rig_req_rcvd(struct rig *r); /* a listener must be there */
struct cm_id *rig_rep_sent(struct rig *r);
struct cm_id *rig_passive(struct rig *r); /* established */
uint32_t rig_comm_id(const struct cm_id *id);
/* Back to nothing, whatever state it is in, past all repetitions. */
void rig_drop(struct rig *r, struct cm_id *id);

static const struct cm_private rig_nothing;

#endif
