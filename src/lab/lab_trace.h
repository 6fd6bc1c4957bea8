/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_trace.h: when each step of one message was taken at one end: what the API shows, and where
 * the NIC is Verbena's, the packets of its capture.
 */
#ifndef LAB_LAB_TRACE_H
#define LAB_LAB_TRACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lab/lab_clock.h"
#include "lab/lab_settings.h"

/* Points in the life of a message, at whichever end it comes to them. */
enum lab_point {
    LAB_AT_MAKE, /* its contents begin to be made */
    LAB_AT_MADE,
    LAB_AT_POST, /* before the call that posts its work request, and after it */
    LAB_AT_POSTED,
    LAB_AT_WORD, /* before the call that posts the word of it, and after it */
    LAB_AT_WORDED,
    LAB_AT_COMPLETED, /* its completion was polled */
    LAB_AT_TOLD,      /* the word, immediate or receive of it was polled */
    LAB_AT_CHECKED,   /* its contents were looked at */
    LAB_AT_ANSWER,    /* before the call that posts its acknowledgement, and after it */
    LAB_AT_ANSWERED,
    LAB_AT_ACKNOWLEDGED, /* its acknowledgement was polled */
    LAB_POINTS
};

struct lab_trace {
    bool on;
    uint64_t sequence; /* of the message */
    uint64_t at_ns[LAB_POINTS];
    uint32_t own_qpn, peer_qpn;
    int fd;           /* of the capture, which has no name */
    char capture[64]; /* how it is opened; "" where there is none */
};

static inline void lab_trace_at(struct lab_trace *t, uint64_t sequence, enum lab_point p)
{
    if (t->on && sequence == t->sequence && t->at_ns[p] == 0)
        t->at_ns[p] = lab_now_ns();
}

/* Before the device is opened: Verbena's NIC will write its packets into a file of ours; other NICs
 * do not look. bytes: how large it may become. 0, or -errno and a message. */
int lab_trace_start(struct lab_trace *t, uint64_t bytes, char message[LAB_MESSAGE_BYTES]);
/* The file goes; it would without a word, too. */
void lab_trace_stop(struct lab_trace *t);
/* Lets all before the traced message come to rest, so that what is seen after it is its own. */
void lab_trace_rest(const struct lab_trace *t, uint64_t sequence);
const char *lab_point_name(enum lab_point p);
/* {"points": {NAME: ns}, "packets": [{"ns", "sent", "opcode", "psn"}]}, by the clock of
 * lab_now_ns(). Middle packets that follow one another are one: {..., "count", "end_ns"}. */
json_t *lab_trace_json(const struct lab_trace *t);

#endif
