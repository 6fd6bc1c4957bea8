/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faulty.h: the network of a small world with two devices: packets are lost, copied, late and
 * spoiled until it is told to be good. Time goes by moments.
 */
#ifndef TESTS_WORLD_FAULTY_H
#define TESTS_WORLD_FAULTY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "nic/nic.h"

enum { FAULTY_FLIGHTS = 8192, FAULTY_MTU = 256, FAULTY_MOST_BYTES = 1024 };
static const uint64_t faulty_moment_ns = 1000;

static const struct net_addr faulty_address[2] = {
    {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}},
    {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}},
};

struct faulty_flight {
    struct rx_packet p;
    int to;
    uint64_t at_ns;
    uint8_t payload[FAULTY_MOST_BYTES];
};

/* Percent of the packets; the rest of them is late, by so many moments, a fifth of it by so many if
 * that is not 0. */
struct faulty_odds {
    uint8_t lost, copied, in_time, spoilt;
    uint16_t late, very_late;
};

static const struct faulty_odds faulty_usual = {5, 8, 88, 1, 25, 0};

struct faulty {
    struct rng rng;
    struct faulty_odds odds;
    struct faulty_flight *flight;
    unsigned flights;
    uint64_t now_ns;
    bool good;
};

static inline void faulty_begin(struct faulty *f, uint64_t seed, const struct faulty_odds *odds)
{
    *f = (struct faulty){.odds = *odds, .now_ns = faulty_moment_ns};
    rng_init(&f->rng, seed);
    f->flight = calloc(FAULTY_FLIGHTS, sizeof(*f->flight));
    assert_non_null(f->flight);
}

static inline bool faulty_chance(struct faulty *f, uint32_t percent)
{
    return rng_below(&f->rng, 100) < percent;
}

static inline uint64_t faulty_late(struct faulty *f)
{
    if (f->good || faulty_chance(f, f->odds.in_time))
        return 0;
    bool very = f->odds.very_late != 0 && faulty_chance(f, 20);
    return rng_below(&f->rng, very ? f->odds.very_late : f->odds.late);
}

static inline void faulty_packet(struct faulty *f, int to, const struct train *t,
                                 const struct train_packet *k)
{
    unsigned copies = f->good                            ? 1
                      : faulty_chance(f, f->odds.lost)   ? 0
                      : faulty_chance(f, f->odds.copied) ? 2
                                                         : 1;
    for (unsigned c = 0; c < copies; c++) {
        assert_in_range(f->flights, 0, FAULTY_FLIGHTS - 1);
        struct faulty_flight *w = &f->flight[f->flights++];
        uint32_t n = 0;
        for (unsigned i = 0; i < k->spans; i++) {
            const struct span *s = &t->span[k->first_span + i];
            memcpy(w->payload + n, s->addr, s->bytes);
            n += s->bytes;
        }
        assert_int_equal(n, k->payload_bytes);
        w->to = to;
        w->at_ns = f->now_ns + faulty_moment_ns * (1 + faulty_late(f));
        w->p = (struct rx_packet){
            .h = k->h,
            .payload = w->payload,
            .payload_bytes = n,
            .src = t->path->local,
            .dst = t->path->remote,
            .icrc_ok = f->good || !faulty_chance(f, f->odds.spoilt),
        };
    }
}

static inline void faulty_train(struct faulty *f, int to, const struct train *t)
{
    for (unsigned i = 0; i < t->packets; i++)
        faulty_packet(f, to, t, &t->packet[i]);
}

/* What has come by the next moment, one by one, in the order in which it was sent. */
static inline void faulty_moment(struct faulty *f,
                                 void (*arrives)(int to, const struct rx_packet *))
{
    unsigned kept = 0;
    f->now_ns += faulty_moment_ns;
    for (unsigned i = 0; i < f->flights; i++) {
        struct faulty_flight *w = &f->flight[i];
        if (w->at_ns <= f->now_ns) {
            w->p.payload = w->payload;
            arrives(w->to, &w->p);
            continue;
        }
        if (kept != i)
            f->flight[kept] = *w;
        kept++;
    }
    f->flights = kept;
}

/* A device, and memory of its own that it may write to. */
static inline void faulty_device_create(int which, const struct nic_config *config, void *memory,
                                        size_t bytes, struct nic **nic, struct pd **pd,
                                        struct mr **mr)
{
    assert_int_equal(nic_create(config, nic), 0);
    assert_int_equal(nic_add_qpns(*nic, (uint32_t)which), 0);
    assert_int_equal(mem_pd_create(*nic, pd), 0);
    assert_int_equal(mem_reg(*pd, memory, bytes, (uintptr_t)memory, ACCESS_LOCAL_WRITE, mr), 0);
}

static inline void faulty_device_destroy(struct nic *nic, struct pd *pd, struct mr *mr)
{
    assert_int_equal(mem_mr_revoke(mr), 0);
    mem_mr_free(mr);
    assert_int_equal(mem_pd_destroy(pd), 0);
    nic_destroy(nic);
}

static inline void faulty_qp_destroy(struct qp *qp)
{
    qp_unlink(qp);
    qp_free(qp);
}

/* From INIT to RTS, with what its type wants of the attributes; where it is and goes is known. */
static inline void faulty_connect(struct qp *qp, int which, struct nic_qp_attr a)
{
    bool ud = qp->type == QP_TYPE_UD, rc = qp->type == QP_TYPE_RC;
    bool ini = qp->type == QP_TYPE_XRC_INI, tgt = qp->type == QP_TYPE_XRC_TGT;
    a.port_num = 1;
    a.path.local = faulty_address[which];
    a.path.remote = faulty_address[!which];
    a.path.hop_limit = 64;
    a.path_mtu_bytes = FAULTY_MTU;
    a.state = QP_STATE_INIT;
    assert_int_equal(qp_modify(qp, &a,
                               QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
                                   (ud ? QP_ATTR_QKEY : QP_ATTR_ACCESS_FLAGS)),
                     0);
    a.state = QP_STATE_RTR;
    assert_int_equal(
        qp_modify(qp, &a,
                  QP_ATTR_STATE |
                      (ud ? 0 : QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN) |
                      (rc || tgt ? QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER : 0)),
        0);
    a.state = QP_STATE_RTS;
    assert_int_equal(
        qp_modify(
            qp, &a,
            QP_ATTR_STATE | QP_ATTR_SQ_PSN | (rc || ini || tgt ? QP_ATTR_TIMEOUT : 0) |
                (rc || ini ? QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC : 0)),
        0);
}

#endif
