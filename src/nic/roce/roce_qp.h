/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * roce_qp.h: the RoCE half of a QP, shared by requester, completer, responder and replay: their
 * state and entry points. Each part writes only its own struct, save where a field says otherwise.
 * All are called with the QP's lock held.
 */
#ifndef NIC_ROCE_QP_H
#define NIC_ROCE_QP_H

#include "verbena/port.h"
#include "verbena/types.h"
#include "wire/iba.h"

struct pd;
struct qp;
struct send_wqe;

/*
 * Requester and completer. PSNs on a circle: una <= next <= sent_end. Between una and sent_end
 * packets are in flight; next < sent_end while going back over them again.
 */
struct requester {
    struct psn una;      /* oldest PSN without an answer; completer */
    struct psn next;     /* next PSN to send; requester, and completer when it goes back */
    struct psn sent_end; /* one past the highest PSN ever sent; requester */
    struct psn number;   /* next PSN to assign to a WQE; requester */
    uint32_t next_wqe;   /* SQ index of the WQE that owns next (== sq.tail when all is sent) */
    uint32_t ssn;        /* messages numbered so far, modulo 2^24 */
    uint32_t limit_ssn;  /* SEND-type messages up to this SSN have a receive waiting; completer */
    bool limit_known;    /* an ACK with credits has been seen; completer */
    uint32_t rd_atomic;  /* READ requests and atomics in flight */
    uint32_t window; /* PSNs that may be in flight; completer: grows on progress, shrinks on loss */
    uint32_t window_max;
    uint32_t acked;         /* PSNs before una that are of this life, 2^23 at most; completer */
    uint32_t grown;         /* PSNs acknowledged since the window last grew */
    uint32_t read_packets;  /* a READ request asks for at most this many response packets */
    uint32_t since_ack_req; /* packets sent since the last one with AckReq */
    uint8_t retry_left;
    uint8_t rnr_left;
    struct psn rnr_psn; /* what the peer refused last; completer */
    bool rnr_wait;      /* nothing is sent until the RNR timer has run out; timers.c clears */
    /* Already gone back for this gap among responses; cleared by progress and by a timeout. */
    bool implied_nak;
    uint64_t ack_deadline_ns; /* 0: not armed; timers.c */
    uint64_t rnr_deadline_ns; /* 0: not armed; timers.c */
};

/*
 * A READ or atomic that the responder has accepted and not fully answered. Packet i of a READ has
 * PSN psn + i; those from start_at up to sent have gone out.
 */
struct reply {
    bool is_atomic;
    bool is_flush;     /* answered as a READ of nothing, as an ATOMIC WRITE is */
    bool replayed;     /* duplicate: if its key has gone meanwhile nobody is told */
    struct psn psn;    /* of the request */
    uint32_t packets;  /* in all */
    uint32_t sent;     /* packets 0..sent-1 are out or were not asked for again */
    uint32_t start_at; /* packet that goes as FIRST or ONLY */
    struct psn msn;    /* that the reply carries */
    uint32_t rkey;
    uint32_t length; /* READ: of the request */
    union {
        uint64_t va;       /* READ: of the request */
        uint64_t original; /* atomic */
    };
    const struct pd *pd; /* READ: that the rkey is of */
};

/* A finished atomic, kept for duplicates. */
struct saved_atomic {
    struct psn psn;
    bool valid;
    uint8_t opcode;
    uint64_t original;
};

enum resp_message {
    RESP_MESSAGE_NONE,
    RESP_MESSAGE_SEND,
    RESP_MESSAGE_WRITE,
};

struct responder {
    struct psn epsn; /* next expected */
    struct psn msn;  /* messages completed */
    /*
     * Last executed packet of a SEND or WRITE: what an ACK names. Never a READ or atomic, which
     * only its own response answers: soft-RoCE completes a READ without its data on an ACK of its
     * PSN.
     */
    struct psn ack_psn;
    uint32_t xrc_srqn;   /* XRC: that the message which comes in is for */
    const struct pd *pd; /* that keys are of: the QP's; XRC: of the packet's SRQ, NULL: none */
    /* The message that is coming in. */
    enum resp_message message;
    uint32_t received; /* bytes of it so far */
    uint64_t write_va; /* WRITE: start, rkey, length from the RETH */
    uint32_t write_rkey;
    uint32_t write_length;
    /* What to answer: replies in PSN order, then one ACK or NAK that covers all before epsn. */
    struct reply *reply; /* 2 * depth: as many new ones as can be agreed, and as many replays */
    uint32_t depth;      /* the NIC's max_rd_atomic; 0: of a type without such requests */
    uint32_t reply_head, reply_tail; /* free-running */
    bool ack_due;
    bool nak_due;
    uint8_t nak_syndrome;
    bool nak_outstanding; /* one NAK a gap; cleared when the expected PSN arrives */
    bool failed;          /* a fatal NAK is the last word; the QP goes to ERR once it is out */
    bool comm_est;        /* first packet seen and told */
    bool awaited;         /* it is told after RTR, too */
    struct psn nak_psn;
    struct psn dropped_end; /* one past the highest PSN dropped since the last NAK was made */
    uint32_t atomic_next;
    struct saved_atomic *atomic; /* depth */
};

/* What a stage of the responder says of a packet. */
enum resp_verdict {
    V_GO_ON,        /* next stage */
    V_DROP,         /* no answer; already counted */
    V_DUPLICATE,    /* behind: replay.c */
    V_NAK_SEQUENCE, /* ahead: something is missing */
    V_RNR,          /* no receive posted: the peer waits and tries again */
    V_NAK_INVALID,  /* the rest is fatal to a reliable connection */
    V_NAK_ACCESS,
    V_RECV_SHORT, /* longer than the receive that it took */
    V_RECV_KEY,   /* the receive's own keys do not allow it */
};

/*
 * Is this work request done only by a response of its own? Such requests are counted against
 * max_rd_atomic, and a fence waits for them.
 */
static inline bool wr_awaits_response(unsigned opcode)
{
    const unsigned all = 1u << WR_RDMA_READ | 1u << WR_ATOMIC_CMP_AND_SWP |
                         1u << WR_ATOMIC_FETCH_AND_ADD | 1u << WR_FLUSH | 1u << WR_ATOMIC_WRITE;
    return all >> opcode & 1;
}

/* Of a message; an empty one is a packet, too. */
static inline uint32_t message_packets(uint32_t bytes, uint32_t mtu)
{
    return bytes == 0 ? 1 : (bytes - 1) / mtu + 1;
}

/* Appends the requester's next packets to an empty train; false: nothing to send now. requester.c
 */
bool requester_next(struct qp *qp, uint64_t now_ns, struct train *t);
/* Resets to the SQ PSN of the attributes (RTR -> RTS). */
void requester_start(struct qp *qp);
/* Nothing is in flight and the retry counts of the attributes may have changed (SQD -> RTS). */
void requester_renew(struct qp *qp);
/* Goes back to una: everything unanswered is sent again. */
void requester_go_back(struct qp *qp);
/* Packets were lost on the way: takes one retry and goes back, or gives up. */
void requester_lost(struct qp *qp);
/* ack timer ran out; timers.c calls it. */
void requester_timeout(struct qp *qp, uint64_t now_ns);
/* Is there anything in flight or going back that an answer must come for? */
bool requester_waiting(const struct qp *qp);

enum added { ADDED, ADDED_NO_ROOM, ADDED_BAD_KEY };
/* Adds packet offset of a SEND, WRITE or ATOMIC WRITE with PSN next, unless the train must go first
 * or a key has gone. For all connected services. */
enum added requester_add_message(struct qp *qp, const struct send_wqe *w, uint32_t offset,
                                 struct train *t);

/* One response packet (ACK, NAK, READ response, atomic ACK). completer.c */
void completer_input(struct qp *qp, uint64_t now_ns, const struct rx_packet *p);
/* Completes the WQEs at the head of the SQ that need no answer any more. */
void completer_retire(struct qp *qp);
/* Head WQE failed locally or for good: completes it with status, the QP goes to ERR. */
void completer_fail(struct qp *qp, enum wc_status status);

/* One request packet. responder.c */
void responder_input(struct qp *qp, uint64_t now_ns, const struct rx_packet *p);
/* Appends replies, ACK or NAK to an empty train; false: nothing due. */
bool responder_next(struct qp *qp, uint64_t now_ns, struct train *t);
/* Is something due that the peer waits for: more than an ACK? */
bool responder_hurries(const struct qp *qp);
/* An ACK that is due, when nothing else is, behind the requests of a train, if it fits there. */
void responder_add_ack(struct qp *qp, struct train *t);
/* As it was when it was made. */
void responder_clear(struct qp *qp);
void responder_start(struct qp *qp); /* INIT -> RTR */
/* For all connected services: a packet came; */
void responder_heard(struct qp *qp);
/* the stages behind those of PSN and order of opcodes: what the packet asks for is done, or nothing
 * is changed; */
enum resp_verdict responder_execute(struct qp *qp, const struct rx_packet *p, uint16_t flags);
/* the receive that is being filled, if there is one, fails. */
void responder_fail_receive(struct qp *qp, enum wc_status status);

/* Is there room for the reply of another request that awaits one (not of a FLUSH)? */
enum resp_verdict responder_check_reply(struct qp *qp);

/* A request with a PSN before epsn. replay.c */
void replay_input(struct qp *qp, const struct rx_packet *p);
void replay_save_atomic(struct qp *qp, struct psn psn, uint8_t opcode, uint64_t original);
/* Queues a reply; false: no room (more outstanding than agreed). */
bool replay_queue(struct qp *qp, const struct reply *r);
/* Replies in the queue that are replays, or that are not; FLUSHes or all others. */
uint32_t replay_count(const struct responder *r, bool replayed, bool flushes);

/* Appends one packet to a train if its size fits: false when the train must go first. train.c */
void train_begin(struct train *t, const struct nic_path *path); /* empty, to go by this path */
bool train_fits(const struct train *t, uint32_t packet_bytes, uint16_t spans_needed);
struct train_packet *train_add_to(struct train *t, uint32_t dest_qp, uint8_t opcode, struct psn psn,
                                  uint32_t payload_bytes);
/* To the QP's peer. */
struct train_packet *train_add(struct train *t, struct qp *qp, uint8_t opcode, struct psn psn,
                               uint32_t payload_bytes);

#endif
