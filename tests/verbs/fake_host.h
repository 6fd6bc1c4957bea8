/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_host.h: a host floor that a test owns: it remembers what the verbs floor asked of it and
 * answers what the test laid down. One device of each kind, no engine, no network.
 */
#ifndef TESTS_FAKE_HOST_H
#define TESTS_FAKE_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "host/host.h"
#include "verbs/ibv_objects.h"

enum { FAKE_POSTS = 32, FAKE_WCS = 64, FAKE_GIDS = 3 };

struct fake_host {
    int fail;              /* errno of the next call that can fail; 0: success */
    unsigned alive;        /* contexts and objects not destroyed */
    unsigned kicks;        /* verbena_kick calls */
    unsigned fail_post_at; /* this post (counted from 0) answers fail_post */
    int fail_post;         /* errno */
    unsigned posts;        /* WRs taken: sent[] or received[] */
    struct nic_send_wr sent[FAKE_POSTS];
    struct nic_recv_wr received[FAKE_POSTS];
    struct nic_wc wc[FAKE_WCS]; /* what polls give */
    unsigned wcs;
    int largest_poll;
    bool armed_solicited;
    uint64_t moderation; /* count << 32 | us */
    struct verbena_callbacks callbacks;
    void *context_owner;
    void *cq_owner;
    void *qp_owner;
    void *srq_owner;
    struct qp_init qp_init;
    struct nic_qp_attr attr; /* as last modified */
    unsigned mask;
    uint32_t ece; /* as last set; reduced to its lowest bit, then */
    uint64_t mr_iova;
    unsigned mr_access;
    unsigned mr_change; /* as last changed */
    int advised;        /* SGEs of the last prefetch */
    uint32_t srq_limit;
    int xrcd_fd;
    int xrcd_flags;
    /* Another process, which this one imports from; and what this one answers others. */
    struct verbena_share_request asked; /* last */
    unsigned asks;
    int ask_fail; /* errno */
    struct verbena_share_reply reply;
    int reply_fd;            /* duplicated */
    void *found;             /* what verbena_mapping_find finds; NULL: nothing */
    void (*meanwhile)(void); /* called once, in the middle of the next question or registration */
    struct verbena_region region;
    struct net_addr group; /* as last attached or detached */
    unsigned devices;      /* how many the list has: 0..2 */
    struct verbena_device device[2];
};

extern struct fake_host fake;
/* As the helper does when another process asks. */
void fake_answer(const struct verbena_share_request *q, struct verbena_share_reply *r, int *fd);

/* Everything as at the start: two devices, nothing alive. */
void fake_reset(void);
/* A context on device 0; fails the test when that fails. */
struct ibv_context *fake_open(void);
/* Closes, and fails the test when anything is alive after it. */
void fake_close(struct ibv_context *ctx);
/* RC, depth 4, all on this PD and CQ. */
struct ibv_qp *fake_qp(struct ibv_pd *pd, struct ibv_cq *cq);

#endif
