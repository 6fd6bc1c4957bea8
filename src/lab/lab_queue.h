/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_queue.h: the queue pair of one case, made anew for each so that nothing of the last one is
 * left over. It knows how many work requests are under way, reclaims them in batches when not each
 * asks for a completion, and sends and receives notes, the small messages by which applications
 * tell one another.
 */
#ifndef LAB_LAB_QUEUE_H
#define LAB_LAB_QUEUE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "lab/lab_control.h"
#include "lab/lab_rig.h"
#include "lab/lab_side.h"

enum lab_note_kind { LAB_NOTE_WRITTEN = 1, LAB_NOTE_READY, LAB_NOTE_ACK };

/* On the wire in the order of the machine: both ends check that they have the same. */
struct lab_note {
    uint32_t kind;
    uint32_t length;
    uint64_t sequence;
};

/* Where an end's memory is, as a note of its own. */
struct lab_memory_note {
    uint64_t address;
    uint64_t length;
    uint64_t counter;
    uint64_t rkey;
};

enum {
    LAB_NOTE_BYTES = sizeof(struct lab_note),
    LAB_GRH_BYTES = 40, /* in front of each datagram that is received */
    LAB_NOTE_ROOM = 64, /* of a receive: GRH and note */
    LAB_POLL_BATCH = 32,
};

/* What a peer must know to reach us. */
struct lab_endpoint {
    uint64_t qpn, psn, lid, mtu, address, rkey, length, counter, reads;
    union ibv_gid gid;
};

/* One send work request under way. */
struct lab_sent {
    uint64_t sequence; /* of the data; LAB_NO_SEQUENCE: a note */
};
#define LAB_NO_SEQUENCE UINT64_MAX

/* What lab_queue_poll() gives for each completion that a caller cares for. */
struct lab_done {
    enum { LAB_DONE_DATA, LAB_DONE_NOTE, LAB_DONE_RECEIVE } kind;
    bool asked;           /* DATA: this one asked for the completion, so it was seen as it came */
    uint64_t sequence;    /* DATA */
    struct lab_note note; /* NOTE */
    uint32_t buffer;      /* RECEIVE: which of the caller's receives */
    uint32_t bytes;       /* RECEIVE */
    bool with_imm;        /* RECEIVE */
    uint32_t imm;         /* RECEIVE, host order */
};

struct lab_queue {
    struct lab_rig *rig;
    struct lab_side *side;
    enum ibv_qp_type type;
    bool events;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_srq *srq;
    uint32_t inlined;
    struct ibv_ah *ah; /* UD */
    struct lab_endpoint self, peer;
    bool inlines;       /* notes go inline */
    bool receives_data; /* receives are the caller's, not notes */
    uint8_t *notes;     /* capacity to send, then receives to receive */
    struct ibv_mr *notes_mr;
    uint32_t receives;
    uint32_t capacity;      /* send work requests under way, at most */
    struct lab_sent *sent;  /* a ring, by count % capacity */
    uint64_t posted;        /* send work requests so far */
    uint64_t reclaimed;     /* of those: known to be done */
    uint64_t notes_unasked; /* notes since the last that asked for a completion */
    unsigned events_unacked;
    /* Completions that were polled and not yet given out; a batch may be more than a caller takes.
     */
    struct ibv_wc wc[LAB_POLL_BATCH];
    unsigned wc_count, wc_next;
    uint64_t batch_end; /* sends up to here are being given out */
    bool batch_asked;
    char message[LAB_MESSAGE_BYTES];
};

struct lab_queue_plan {
    enum lab_transport transport;
    uint32_t depth;
    bool events;
    bool receives_data; /* receives are posted by lab_queue_receive(), not for notes */
    bool shared;        /* those receives are of a shared receive queue */
    uint32_t inlined;   /* bytes that data may have inline; 0: data never go inline */
};

/* All: 0 or -errno and q->message. */
int lab_queue_open(struct lab_queue *q, struct lab_rig *rig, struct lab_side *side,
                   const struct lab_queue_plan *plan);
int lab_queue_connect(struct lab_queue *q, const struct lab_endpoint *peer);
void lab_queue_close(struct lab_queue *q);
/* Of a connection that rdma_cm has made: one end sends the address and key of its memory, the other
 * waits for them. */
int lab_queue_tell_memory(struct lab_queue *q);
int lab_queue_learn_memory(struct lab_queue *q, int control_fd, uint64_t timeout_ns);

/* Is there room for n more send work requests? */
bool lab_queue_has_room(const struct lab_queue *q, uint32_t n);
/* Posts a request for data; its wr_id and, for UD, its address are filled in. */
int lab_queue_post(struct lab_queue *q, struct ibv_send_wr *wr, uint64_t sequence, bool ask);
int lab_queue_note(struct lab_queue *q, enum lab_note_kind kind, uint64_t sequence,
                   uint32_t length);
/* A receive for data; with UD, its GRH goes elsewhere. */
int lab_queue_receive(struct lab_queue *q, uint32_t buffer, uint8_t *bytes, uint32_t length,
                      uint32_t lkey);
/* Polls the CQ once if nothing is left over from the last time. 1: *done is filled; 0: nothing now;
 * else -errno. A send that asked for no completion is given out with the next one that did. */
int lab_queue_poll(struct lab_queue *q, struct lab_done *done);
/* Event mode: sleeps until there may be something, for 50 ms at most, or until control_fd has
 * something. */
int lab_queue_sleep(struct lab_queue *q, int control_fd);

json_t *lab_endpoint_json(const struct lab_endpoint *e);
bool lab_endpoint_parse(struct lab_control *c, const json_t *object, struct lab_endpoint *e);

#endif
