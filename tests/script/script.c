/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * script.c: plays a dialogue: sets the engine up, takes each row, compares, and keeps the text of
 * what was said so that a failure can show it.
 */
#include "link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../nic/window.h"
#include "wire/print.h"
#include "wire/roce.h"

enum {
    GUARD_BYTES = 4096,
    QUEUE_PACKETS = 1024,
    LOG_BYTES = 64 * 1024,
};

struct packet {
    struct roce_headers h;
    struct nic_path path;
    uint32_t bytes;
    uint8_t payload[4096];
};

struct script {
    const struct dialogue *d;
    struct nic *nic;
    struct pd *pd, *other_pd;
    struct cq *scq, *rcq;
    struct srq *srq;
    struct xrcd *xrcd[2];
    struct srq *xrc_srq[SRQ_COUNT];
    uint32_t srqn[SRQ_COUNT];
    struct mr *mr[K_COUNT];
    uint32_t key[K_COUNT + 3];
    struct mr *window_mr; /* what the window is bound to */
    struct mw *mw;
    struct qp *qp;
    struct nic_qp_attr attr;
    uint64_t now;
    uint8_t *block; /* guard, memory, guard */
    uint8_t *memory;
    bool claimed[MEMORY_BYTES];
    struct link_sink sink;
    struct packet *queue;
    unsigned head, tail;
    bool few_trains; /* since TRAIN */
    char log[LOG_BYTES];
    size_t log_used;
};

static struct script s; /* one dialogue at a time */

static const struct net_addr our_addr = {
    {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}
};
static const struct net_addr peer_addr = {
    {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}
};

static const struct net_addr our_addr6 = {
    {0xfd, [15] = 1}
};
static const struct net_addr peer_addr6 = {
    {0xfd, [15] = 2}
};

enum { OWN_SPORT = 0xc5c5 }; /* of the UD QP */

/* Where a datagram goes; its source port may be left to the QP. */
static struct nic_path ah_path(uint8_t ah)
{
    struct nic_path path = {.local = our_addr, .remote = peer_addr, .hop_limit = 64};
    if (ah == AH_SPORT)
        path.udp_sport = 0xc00c;
    if (ah == AH_OTHER) {
        path.local = our_addr6;
        path.remote = peer_addr6;
        path.hop_limit = 3;
        path.traffic_class = 0x20;
    }
    return path;
}

static uint8_t memory_byte(uint32_t at)
{
    return (uint8_t)(at * 7 + at / 256 + 3);
}

static uint8_t message_byte(uint8_t tag, uint32_t at)
{
    return (uint8_t)(~(at * 5 + at / 256) + tag * 17);
}

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(s.log + s.log_used, LOG_BYTES - s.log_used, fmt, ap);
    va_end(ap);
    s.log_used += (size_t)n;
    if (s.log_used >= LOG_BYTES)
        s.log_used = LOG_BYTES - 1;
}

#define check(ok, ...)                                                                             \
    do {                                                                                           \
        if (!(ok)) {                                                                               \
            say("  ^^ ");                                                                          \
            say(__VA_ARGS__);                                                                      \
            fprintf(stderr, "%s\n%s\n", s.d->name, s.log);                                         \
            fail_msg("%s", #ok);                                                                   \
        }                                                                                          \
    } while (0)

static void say_packet(const char *dir, const struct roce_headers *h, uint32_t bytes)
{
    char line[PRINT_LINE_BYTES];
    print_roce(line, sizeof(line), h, bytes);
    say("  %-6s %s\n", dir, line);
}

/* What a port would rely on: one size, only the last smaller, room for it. */
static void check_train(const struct train *t)
{
    uint32_t total = 0;
    check(t->packets >= 1 && t->packets <= TRAIN_MAX_PACKETS, "train of %u packets", t->packets);
    check(t->qp == s.qp, "train of another QP");
    for (unsigned i = 0; i < t->packets; i++) {
        const struct train_packet *p = &t->packet[i];
        uint32_t bytes = roce_packet_bytes(p->h.bth.opcode, p->payload_bytes);
        check(i + 1 == t->packets ? bytes <= t->packet_bytes : bytes == t->packet_bytes,
              "packet %u of a train has %u bytes, not %u", i, bytes, t->packet_bytes);
        check(p->h.bth.pad_bytes == roce_pad(p->payload_bytes), "pad %u", p->h.bth.pad_bytes);
        check(p->h.bth.mig_req && p->h.bth.pkey == PKEY_DEFAULT && p->h.bth.tver == 0 &&
                  !p->h.bth.fecn && !p->h.bth.becn &&
                  (s.d->with.ud || p->h.bth.dest_qp == PEER_QPN),
              "fixed fields of the BTH");
        total += bytes;
    }
    check(total == t->total_bytes, "train counts %u bytes, has %u", t->total_bytes, total);
    check(total <= TRAIN_MAX_BYTES || t->packets == 1, "train of %u bytes", total);
}

static void take_train(struct nic_sink *sink, const struct train *t)
{
    (void)sink;
    check_train(t);
    for (unsigned i = 0; i < t->packets; i++) {
        const struct train_packet *from = &t->packet[i];
        check(s.tail - s.head < QUEUE_PACKETS, "it sends and sends");
        struct packet *to = &s.queue[s.tail++ % QUEUE_PACKETS];
        to->h = from->h;
        to->path = *t->path;
        to->bytes = 0;
        for (unsigned k = 0; k < from->spans; k++) {
            const struct span *span = &t->span[from->first_span + k];
            check(to->bytes + span->bytes <= sizeof(to->payload), "spans over the MTU");
            memcpy(to->payload + to->bytes, span->addr, span->bytes);
            to->bytes += span->bytes;
        }
        check(to->bytes == from->payload_bytes, "spans of %u bytes for a payload of %u", to->bytes,
              from->payload_bytes);
    }
}

/* The same behind a link that carries bytes. */
static void take_packet(struct link_sink *sink, const struct rx_packet *from,
                        const struct nic_path *path)
{
    (void)sink;
    check(s.tail - s.head < QUEUE_PACKETS, "it sends and sends");
    struct packet *to = &s.queue[s.tail++ % QUEUE_PACKETS];
    to->h = from->h;
    to->path = *path;
    to->bytes = from->payload_bytes;
    memcpy(to->payload, from->payload, from->payload_bytes);
    check(memcmp(&from->src, &our_addr, sizeof(our_addr)) == 0 &&
              memcmp(&from->dst, &peer_addr, sizeof(peer_addr)) == 0,
          "addresses");
}

static void drain(void)
{
    link_drain(s.now);
}

enum {
    WINDOW_RIGHTS =
        ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL,
    ALL_RIGHTS = ACCESS_LOCAL_WRITE | WINDOW_RIGHTS,
};

static void setup_keys(void)
{
    static const struct {
        unsigned access;
        uint64_t length;
    } region[K_COUNT] = {
        [K_ALL] = {ALL_RIGHTS,                               MEMORY_BYTES},
        [K_READ] = {ACCESS_REMOTE_READ,                       MEMORY_BYTES},
        [K_LOCAL] = {ACCESS_LOCAL_WRITE,                       MEMORY_BYTES},
        [K_WRITE] = {ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE, MEMORY_BYTES},
        [K_SMALL] = {ALL_RIGHTS,                               SMALL_BYTES },
        [K_SKEW] = {ALL_RIGHTS,                               SMALL_BYTES },
        [K_OTHER] = {ALL_RIGHTS,                               MEMORY_BYTES},
    };
    assert_int_equal(mem_pd_create(s.nic, &s.pd), 0);
    assert_int_equal(mem_pd_create(s.nic, &s.other_pd), 0);
    for (unsigned k = 0; k < K_COUNT; k++) {
        uint8_t *base = k == K_SKEW ? s.memory + 4 : s.memory;
        assert_int_equal(mem_reg(k == K_OTHER ? s.other_pd : s.pd, base, region[k].length,
                                 (uintptr_t)s.memory, region[k].access, &s.mr[k]),
                         0);
        s.key[k] = s.mr[k]->key;
    }
    s.key[K_NONE] = s.key[K_ALL] ^ 1;
}

/* The QP, whatever it is, has a window bound to it, unless half of XRC, which can have none. */
static void setup_window(void)
{
    assert_int_equal(mem_reg(s.pd, s.memory, MEMORY_BYTES, (uintptr_t)s.memory,
                             ACCESS_LOCAL_WRITE | ACCESS_FLUSH_GLOBAL | ACCESS_MW_BIND,
                             &s.window_mr),
                     0);
    assert_int_equal(mw_create(s.pd, MW_TYPE_2, &s.mw), 0);
    if (!s.d->with.tgt && !s.d->with.ini)
        assert_true(
            window_bind(s.qp, s.mw, s.window_mr, (uintptr_t)s.memory, SMALL_BYTES, WINDOW_RIGHTS));
    s.key[K_WINDOW] = mw_key(s.mw);
}

static int modify_ud(enum qp_state from, enum qp_state to)
{
    unsigned mask = QP_ATTR_STATE;
    if (to == QP_STATE_INIT)
        mask |= QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY;
    if (to == QP_STATE_RTS && from == QP_STATE_RTR)
        mask |= QP_ATTR_SQ_PSN;
    if (to == QP_STATE_SQD && from == QP_STATE_RTS)
        mask |= QP_ATTR_EN_SQD_ASYNC_NOTIFY;
    return qp_modify(s.qp, &s.attr, mask);
}

static int modify_uc(enum qp_state from, enum qp_state to)
{
    unsigned mask = QP_ATTR_STATE;
    if (to == QP_STATE_INIT)
        mask |= QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS;
    if (to == QP_STATE_RTR)
        mask |= QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN;
    if (to == QP_STATE_RTS && from == QP_STATE_RTR)
        mask |= QP_ATTR_SQ_PSN;
    if (to == QP_STATE_SQD && from == QP_STATE_RTS)
        mask |= QP_ATTR_EN_SQD_ASYNC_NOTIFY;
    return qp_modify(s.qp, &s.attr, mask);
}

static int modify_xrc(enum qp_state from, enum qp_state to)
{
    unsigned mask = QP_ATTR_STATE;
    if (to == QP_STATE_INIT)
        mask |= QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS;
    if (to == QP_STATE_RTR)
        mask |= QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
                (s.d->with.tgt ? QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER : 0);
    if (to == QP_STATE_RTS && from == QP_STATE_RTR)
        mask |=
            QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT |
            (s.d->with.ini ? QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC : 0);
    return qp_modify(s.qp, &s.attr, mask);
}

static int modify(enum qp_state to)
{
    unsigned mask = QP_ATTR_STATE;
    const enum qp_state from = s.qp->state;
    s.attr.state = to;
    if (s.d->with.ud)
        return modify_ud(from, to);
    if (s.d->with.uc)
        return modify_uc(from, to);
    if (s.d->with.ini || s.d->with.tgt)
        return modify_xrc(from, to);
    if (to == QP_STATE_INIT)
        mask |= QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS;
    if (to == QP_STATE_RTR)
        mask |= QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
                QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER;
    if (to == QP_STATE_RTS && from == QP_STATE_RTR)
        mask |= QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
                QP_ATTR_MAX_QP_RD_ATOMIC;
    if (to == QP_STATE_SQD && from == QP_STATE_RTS)
        mask |= QP_ATTR_EN_SQD_ASYNC_NOTIFY;
    return qp_modify(s.qp, &s.attr, mask);
}

static void destroy_srq(enum srq_of which)
{
    assert_int_equal(wq_srq_destroy(s.xrc_srq[which]), 0);
    s.xrc_srq[which] = NULL;
}

static void setup_xrc(const struct setup *with)
{
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(xrc_domain_create(s.nic, &s.xrcd[i]), 0);
    for (unsigned i = 0; i < SRQ_COUNT; i++) {
        uint32_t wrs = with->wrs, sges = 4;
        assert_int_equal(xrc_srq_create(i == SRQ_OTHER_PD ? s.other_pd : s.pd,
                                        s.xrcd[i == SRQ_OTHER_DOMAIN], s.rcq, &wrs, &sges, NULL,
                                        &s.xrc_srq[i]),
                         0);
        s.srqn[i] = s.xrc_srq[i]->number;
    }
    destroy_srq(SRQ_GONE);
    s.srqn[SRQ_GONE] = s.srqn[SRQ_OWN] ^ 1 << XRC_SRQ_INDEX_BITS; /* an old number of its place */
}

static void teardown_xrc(void)
{
    for (unsigned i = 0; i < SRQ_COUNT; i++)
        if (s.xrc_srq[i] != NULL)
            destroy_srq((enum srq_of)i);
    for (unsigned i = 0; i < 2; i++)
        if (s.xrcd[i] != NULL)
            assert_int_equal(xrc_domain_destroy(s.xrcd[i]), 0);
}

static void setup_qp(const struct setup *with)
{
    struct qp_init init = {
        .type = with->ud    ? QP_TYPE_UD
                : with->uc  ? QP_TYPE_UC
                : with->ini ? QP_TYPE_XRC_INI
                : with->tgt ? QP_TYPE_XRC_TGT
                            : QP_TYPE_RC,
        .udp_sport = OWN_SPORT,
        .pd = s.pd,
        .send_cq = s.scq,
        .recv_cq = s.rcq,
        .sq_sig_all = !with->unsignalled,
        .cap = {with->wrs, with->wrs, 4, 4, 300},
    };
    if (with->srq) {
        uint32_t wrs = with->wrs, sges = 4;
        assert_int_equal(wq_srq_create(s.pd, &wrs, &sges, 0, NULL, &s.srq), 0);
        init.srq = s.srq;
    }
    if (with->tgt)
        setup_xrc(with);
    init.xrcd = s.xrcd[0];
    assert_int_equal(qp_create(s.nic, &init, &s.qp), 0);
    s.attr = (struct nic_qp_attr){
        .en_sqd_async_notify = true,
        .access_flags = with->access,
        .port_num = 1,
        .qkey = QKEY,
        .active_mtu_bytes = with->ud ? with->mtu : 0,
        .path = {.local = our_addr, .remote = peer_addr, .udp_sport = 0xc123, .hop_limit = 64},
        .path_mtu_bytes = with->mtu,
        .timeout = with->timeout,
        .retry_cnt = with->retry,
        .rnr_retry = with->rnr_retry,
        .min_rnr_timer = with->min_rnr,
        .max_rd_atomic = with->max_rd,
        .max_dest_rd_atomic = with->max_dest_rd,
        .rq_psn = with->rq_psn,
        .sq_psn = with->sq_psn,
        .dest_qpn = PEER_QPN,
    };
    for (enum qp_state to = QP_STATE_INIT; to <= with->state && to <= QP_STATE_RTS; to++)
        assert_int_equal(modify(to), 0);
}

static void setup(const struct dialogue *d)
{
    struct nic_config config = {.seed = 1, .window_bytes = d->with.window_bytes};
    memset(&s, 0, sizeof(s));
    s.d = d;
    s.now = LINK_BEGIN_NS;
    s.sink = (struct link_sink){.nic = {.train = take_train}, .packet = take_packet};
    s.queue = calloc(QUEUE_PACKETS, sizeof(*s.queue));
    s.block = aligned_alloc(64, MEMORY_BYTES + 2 * GUARD_BYTES);
    assert_non_null(s.queue);
    assert_non_null(s.block);
    memset(s.block, 0xee, MEMORY_BYTES + 2 * GUARD_BYTES);
    s.memory = s.block + GUARD_BYTES;
    for (uint32_t i = 0; i < MEMORY_BYTES; i++)
        s.memory[i] = memory_byte(i);
    assert_int_equal(nic_create(&config, &s.nic), 0);
    assert_int_equal(nic_add_qpns(s.nic, 77), 0);
    link_create(&d->with, s.nic, &s.sink);
    setup_keys();
    assert_int_equal(cq_create(s.nic, (int)d->with.cqe, &s.scq, &s.scq), 0);
    assert_int_equal(cq_create(s.nic, (int)d->with.cqe, &s.rcq, &s.rcq), 0);
    setup_qp(&d->with);
    link_qp(s.qp);
    setup_window();
}

static void teardown(void)
{
    link_qp(NULL);
    qp_unlink(s.qp);
    qp_free(s.qp);
    mw_revoke(s.mw);
    mw_free(s.mw);
    assert_int_equal(mem_mr_revoke(s.window_mr), 0);
    mem_mr_free(s.window_mr);
    if (s.srq != NULL)
        assert_int_equal(wq_srq_destroy(s.srq), 0);
    teardown_xrc();
    assert_int_equal(cq_destroy(s.scq), 0);
    assert_int_equal(cq_destroy(s.rcq), 0);
    for (unsigned k = 0; k < K_COUNT; k++) {
        if (s.mr[k] != NULL) {
            mem_mr_revoke(s.mr[k]);
            mem_mr_free(s.mr[k]);
        }
    }
    assert_int_equal(mem_pd_destroy(s.pd), 0);
    assert_int_equal(mem_pd_destroy(s.other_pd), 0);
    link_destroy();
    nic_destroy(s.nic);
    free(s.queue);
    free(s.block);
}

static void step_in(const struct step *st)
{
    uint8_t *payload = malloc(st->len + 1); /* exact, so that a read past it is caught */
    struct rx_packet p = {
        .src = st->odd & ODD_V6    ? peer_addr6
               : st->odd & ODD_SRC ? our_addr
                                   : peer_addr,
        .dst = st->odd & ODD_V6    ? our_addr6
               : st->odd & ODD_DST ? peer_addr
                                   : our_addr,
        .hop_limit = 61,
        .traffic_class = st->odd & ODD_CE ? 3 : 2,
        .icrc_ok = !(st->odd & ODD_ICRC),
        .payload = payload,
        .payload_bytes = st->len,
    };
    p.h.bth = (struct bth){
        .opcode = (uint8_t)st->what,
        .solicited = st->se,
        .mig_req = !(st->odd & ODD_MIG),
        .pad_bytes = roce_pad(st->len),
        .pkey = st->odd & ODD_PKEY        ? 0x8001
                : st->odd & ODD_PKEY_PART ? 0x7fff
                                          : 0xffff,
        .dest_qp = s.qp->qpn ^ (st->odd & ODD_QPN ? 1 : 0),
        .ack_req = st->ack_req,
        .psn = psn_make(st->psn),
    };
    uint16_t headers = opcode_info((uint8_t)st->what)->headers;
    uint64_t va = (uintptr_t)s.memory + st->va;
    if (headers & HDR_RETH)
        p.h.reth = (struct reth){va, s.key[st->key], st->dma_len};
    if (headers & HDR_ATOMICETH)
        p.h.atomic = (struct atomic_eth){va, s.key[st->key], st->a, st->b};
    if (headers & HDR_FETH)
        p.h.feth = (struct feth){.plt = st->a & 0x0f, .sel = st->a >> 4 & 3};
    if (headers & HDR_AETH)
        p.h.aeth = (struct aeth){st->syn == 0 ? 0x1f : (uint8_t)st->syn, psn_make(st->msn)};
    if (headers & HDR_XRCETH)
        p.h.xrc_srqn = s.srqn[st->srq];
    if (headers & HDR_DETH)
        p.h.deth = (struct deth){st->qkey != 0 ? st->qkey : QKEY, PEER_QPN};
    p.h.atomic_ack = headers & HDR_ATOMICACKETH ? st->a : 0;
    p.h.immdt = headers & HDR_IMMDT ? st->imm : 0;
    p.h.ieth = headers & HDR_IETH ? s.key[st->imm] : 0;
    for (uint32_t i = 0; i < st->len; i++)
        payload[i] = message_byte(st->tag, st->at + i);
    say_packet("IN", &p.h, p.payload_bytes);
    link_input(s.now, &p);
    free(payload);
}

/* What a datagram has of its own. */
static void out_datagram(const struct step *st, const struct packet *p)
{
    struct nic_path path = ah_path(st->ah);
    if (path.udp_sport == 0)
        path.udp_sport = OWN_SPORT;
    check(nic_path_equal(&p->path, &path), "path should be %d", st->ah);
    check(p->h.bth.dest_qp == (st->qpn != 0 ? st->qpn : PEER_QPN), "qpn is 0x%x", p->h.bth.dest_qp);
    check(p->h.deth.qkey == (st->qkey != 0 ? st->qkey : QKEY), "qkey is 0x%x", p->h.deth.qkey);
    check(p->h.deth.src_qp == s.qp->qpn, "src_qp is 0x%x", p->h.deth.src_qp);
}

static void step_out(const struct step *st)
{
    check(s.head != s.tail, "nothing is sent");
    const struct packet *p = &s.queue[s.head++ % QUEUE_PACKETS];
    uint16_t headers = opcode_info(p->h.bth.opcode)->headers;
    say_packet("OUT", &p->h, p->bytes);
    check(p->h.bth.opcode == st->what, "opcode should be %s", opcode_info((uint8_t)st->what)->name);
    check(p->h.bth.psn.v == st->psn, "psn should be %u", st->psn);
    check(p->bytes == st->len, "length should be %u", st->len);
    check(p->h.bth.ack_req == st->ack_req, "AckReq should be %d", st->ack_req);
    check(p->h.bth.solicited == st->se, "SE should be %d", st->se);
    if (headers & HDR_AETH) {
        uint8_t syndrome = p->h.aeth.syndrome;
        check(st->syn == 0 ? aeth_kind(syndrome) == AETH_ACK : syndrome == (st->syn & 0xff),
              "syndrome should be 0x%02x", st->syn & 0xff);
        check(p->h.aeth.msn.v == st->msn, "msn should be %u", st->msn);
    }
    if (headers & HDR_RETH)
        check(p->h.reth.va == PEER_VA + st->va && p->h.reth.rkey == PEER_RKEY &&
                  p->h.reth.dma_len == st->dma_len,
              "RETH should be va +%llu dmalen %u", (unsigned long long)st->va, st->dma_len);
    if (headers & HDR_FETH)
        check((p->h.feth.plt | p->h.feth.sel << 4) == (int)st->a, "FETH should be 0x%x",
              (unsigned)st->a);
    if (headers & HDR_ATOMICETH)
        check(p->h.atomic.va == PEER_VA + st->va && p->h.atomic.rkey == PEER_RKEY &&
                  p->h.atomic.swap_add == st->a && p->h.atomic.compare == st->b,
              "AtomicETH should be va +%llu swap/add %llu compare %llu", (unsigned long long)st->va,
              (unsigned long long)st->a, (unsigned long long)st->b);
    if (headers & HDR_ATOMICACKETH)
        check(p->h.atomic_ack == st->a, "original should be %llu", (unsigned long long)st->a);
    if (headers & HDR_DETH)
        out_datagram(st, p);
    if (headers & HDR_XRCETH)
        check(p->h.xrc_srqn == PEER_SRQN, "XRC SRQ number is 0x%x", p->h.xrc_srqn);
    if (headers & HDR_IMMDT)
        check(p->h.immdt == st->imm, "immediate should be 0x%08x", st->imm);
    if (headers & HDR_IETH)
        check(p->h.ieth == st->imm, "IETH should be 0x%08x", st->imm);
    for (uint32_t i = 0; i < p->bytes; i++)
        check(p->payload[i] == s.memory[st->at + i], "payload byte %u is not memory's %u", i,
              st->at + i);
}

/* SGEs of a WR: len bytes at at, in equal pieces. */
static int make_sges(const struct step *st, struct nic_sge sge[MAX_SGE])
{
    unsigned n = st->sges == 0 ? (st->len == 0 ? 0 : 1) : st->sges;
    uint32_t at = st->at;
    for (unsigned i = 0; i < n; i++) {
        uint32_t length = i + 1 == n ? st->at + st->len - at : st->len / n;
        sge[i] = (struct nic_sge){(uintptr_t)s.memory + at, length, s.key[st->key]};
        at += length;
    }
    return (int)n;
}

static void step_post(const struct step *st)
{
    struct nic_sge sge[MAX_SGE];
    const struct nic_path path = ah_path(st->ah);
    struct nic_send_wr wr = {
        .wr_id = st->id,
        .opcode = (enum wr_opcode)st->what,
        .flags = st->flags,
        .sg_list = sge,
        .num_sge = make_sges(st, sge),
        .imm_or_inv = st->what == WR_LOCAL_INV ? s.key[st->imm] : st->imm,
        .remote_addr = PEER_VA + st->va,
        .rkey = PEER_RKEY,
        .compare_add = st->b,
        .swap = st->a,
        .xrc_srqn = PEER_SRQN,
        .path = st->ah == AH_NONE ? NULL : &path,
        .dest_qpn = st->qpn != 0 ? st->qpn : PEER_QPN,
        .qkey = st->qkey != 0 ? st->qkey : QKEY,
    };
    if (st->what == WR_ATOMIC_FETCH_AND_ADD)
        wr.compare_add = st->a;
    int err = wq_post_send(s.qp, &wr);
    say("  POST   opcode %d id %u length %u flags 0x%x: %d\n", st->what, st->id, st->len, st->flags,
        err);
    check(err == st->err, "should return %d", st->err);
}

static void step_recv(const struct step *st)
{
    struct nic_sge sge[MAX_SGE];
    struct nic_recv_wr wr = {.wr_id = st->id, .sg_list = sge, .num_sge = make_sges(st, sge)};
    struct srq *srq = s.d->with.tgt ? s.xrc_srq[st->srq] : s.srq;
    int err = srq != NULL ? wq_post_srq_recv(srq, &wr) : wq_post_recv(s.qp, &wr);
    say("  RECV   id %u length %u: %d\n", st->id, st->len, err);
    check(err == st->err, "should return %d", st->err);
}

static void step_cqe(const struct step *st)
{
    struct nic_wc wc;
    memset(&wc, 0xa5, sizeof(wc));
    int n = cq_poll(st->kind == SCQE ? s.scq : s.rcq, 1, &wc);
    if (n == 0)
        say("  %s   none\n", st->kind == SCQE ? "SCQE" : "RCQE");
    check(n == 1, "id %u status %d should be there", st->id, (int)st->status);
    say("  %s   id %u status %d opcode %d length %u\n", st->kind == SCQE ? "SCQE" : "RCQE",
        (unsigned)wc.wr_id, (int)wc.status, (int)wc.opcode, wc.byte_len);
    check(wc.wr_id == st->id, "id should be %u", st->id);
    check(wc.status == st->status, "status should be %d", (int)st->status);
    check(wc.qp_num == s.qp->qpn, "qp_num is 0x%x", wc.qp_num);
    if (wc.status != WC_SUCCESS)
        return;
    check((int)wc.opcode == st->what, "opcode should be %d", st->what);
    if (st->kind == SCQE)
        return;
    check(wc.byte_len == st->len, "length should be %u", st->len);
    check(wc.flags == st->flags, "flags 0x%x should be 0x%x", wc.flags, st->flags);
    if (wc.flags & (WC_WITH_IMM | WC_WITH_INV))
        check(wc.imm_or_inv == (wc.flags & WC_WITH_INV ? s.key[st->imm] : st->imm), "imm is 0x%08x",
              wc.imm_or_inv);
    check(wc.src_qp == PEER_QPN, "src_qp is 0x%x", wc.src_qp);
}

static void step_time(const struct step *st)
{
    uint64_t until = s.now + st->ns;
    say("  TIME   %llu ns\n", (unsigned long long)st->ns);
    link_pass(s.now, until, true);
    s.now = until;
}

static void step_hold(const struct step *st)
{
    say("  HOLD   %llu ns\n", (unsigned long long)st->ns);
    link_pass(s.now, s.now + st->ns, false);
    s.now += st->ns;
}

static void step_event(const struct step *st)
{
    struct nic_event e;
    bool any = event_next(s.nic, &e);
    say("  EVENT  %d\n", any ? (int)e.type : -1);
    check((any ? (int)e.type : -1) == st->what, "event should be %d", st->what);
}

/* Byte by byte, as the annexes draw it. */
static void step_grh(const struct step *st)
{
    uint32_t udp = 8 + roce_packet_bytes((uint8_t)st->what, st->len);
    const uint8_t tos = st->odd & ODD_CE ? 3 : 2;
    uint8_t want[GRH_BYTES] = {0};
    if (st->odd & ODD_V6) {
        want[0] = 0x60;
        want[1] = (uint8_t)(tos << 4);
        want[4] = (uint8_t)(udp >> 8);
        want[5] = (uint8_t)udp;
        want[6] = 17;
        want[7] = 61;
        memcpy(want + 8, peer_addr6.b, 16);
        memcpy(want + 24, our_addr6.b, 16);
    } else {
        const uint8_t v4[20] = {0x45,
                                tos,
                                (uint8_t)((20 + udp) >> 8),
                                (uint8_t)(20 + udp),
                                0,
                                0,
                                0x40,
                                0,
                                61,
                                17,
                                0,
                                0,
                                10,
                                0,
                                0,
                                2,
                                10,
                                0,
                                0,
                                1};
        uint32_t sum = 0;
        memcpy(want + 20, v4, 20);
        for (int i = 0; i < 20; i += 2)
            sum += (uint32_t)(v4[i] << 8 | v4[i + 1]);
        sum = ~((sum >> 16) + (sum & 0xffff));
        want[30] = (uint8_t)(sum >> 8);
        want[31] = (uint8_t)sum;
    }
    say("  GRH    at %u\n", st->at);
    for (uint32_t i = 0; i < GRH_BYTES; i++) {
        check(s.memory[st->at + i] == want[i], "byte %u of the GRH is 0x%02x, should be 0x%02x", i,
              s.memory[st->at + i], want[i]);
        s.claimed[st->at + i] = true;
    }
}

static void step_memory(const struct step *st)
{
    if (st->kind == GRH) {
        step_grh(st);
        return;
    }
    if (st->kind == MEM) {
        say("  MEM    %u bytes at %u\n", st->len, st->at);
        for (uint32_t i = 0; i < st->len; i++) {
            check(s.memory[st->at + i] == message_byte(st->tag, st->from + i),
                  "memory byte %u is not the message's %u", st->at + i, st->from + i);
            s.claimed[st->at + i] = true;
        }
        return;
    }
    uint64_t value = st->a;
    memset(s.claimed + st->at, true, 8);
    if (st->kind == SET)
        memcpy(s.memory + st->at, &value, 8);
    memcpy(&value, s.memory + st->at, 8);
    say("  CELL   at %u is %llu\n", st->at, (unsigned long long)value);
    check(value == st->a, "should be %llu", (unsigned long long)st->a);
}

static void step_modify(const struct step *st)
{
    int err;
    if (st->kind == ACCESS) {
        s.attr.access_flags = (unsigned)st->n;
        err = qp_modify(s.qp, &s.attr, QP_ATTR_ACCESS_FLAGS);
    } else {
        err = modify((enum qp_state)st->what);
    }
    say("  MODIFY to %d: %d\n", st->what, err);
    check(err == st->err, "should return %d", st->err);
}

static void step_revoke(const struct step *st)
{
    if (st->kind == DESTROY) {
        say("  DESTROY srq %d\n", (int)st->srq);
        destroy_srq((enum srq_of)st->srq);
        return;
    }
    say("  REVOKE key %d\n", (int)st->key);
    mem_mr_revoke(s.mr[st->key]);
    mem_mr_free(s.mr[st->key]);
    s.mr[st->key] = NULL;
}

static void step_check(const struct step *st)
{
    if (st->kind == STATE) {
        say("  STATE  %d\n", (int)s.qp->state);
        check((int)s.qp->state == st->what, "should be %d", st->what);
    } else if (st->kind == NOTIFY) {
        bool notified = nic_notify_next(s.nic) == &s.rcq;
        say("  NOTIFY %d\n", notified);
        check(notified == (st->what != 0), "should be %d", st->what);
    } else {
        uint64_t n = counters_get(&s.nic->counters, (enum nic_counter)st->what);
        say("  COUNT  %s %llu\n", counters_name((enum nic_counter)st->what), (unsigned long long)n);
        check(n == st->n, "should be %llu", (unsigned long long)st->n);
    }
}

/* Nothing is left that no row has claimed. */
static void step_end(void)
{
    struct nic_event e;
    struct nic_wc wc;
    check(cq_poll(s.scq, 1, &wc) == 0, "a send completion is left: id %u status %d",
          (unsigned)wc.wr_id, (int)wc.status);
    check(cq_poll(s.rcq, 1, &wc) == 0, "a receive completion is left: id %u status %d",
          (unsigned)wc.wr_id, (int)wc.status);
    check(!event_next(s.nic, &e), "event %d is left", (int)e.type);
    for (uint32_t i = 0; i < MEMORY_BYTES; i++)
        check(s.claimed[i] || s.memory[i] == memory_byte(i), "memory byte %u has changed", i);
    for (uint32_t i = 0; i < GUARD_BYTES; i++)
        check(s.block[i] == 0xee && s.memory[MEMORY_BYTES + i] == 0xee, "guard byte %u", i);
}

static void step_train(const struct step *st)
{
    link_trains(s.now, (unsigned)st->n);
    s.few_trains = true;
}

/* Lets the engine send what it has to, before most steps. */
static void drain_before(const struct step *st)
{
    /* Input and posts add up until something looks at what came of them. */
    s.few_trains = s.few_trains && ((st->kind == OUT && s.head != s.tail) || st->kind == MODIFY ||
                                    st->kind == REVOKE);
    if (st->kind != IN && st->kind != POST && st->kind != RECV && st->kind != TIME &&
        st->kind != HOLD && st->kind != REVOKE && st->kind != TRAIN && !s.few_trains)
        drain();
}

static void step_responder(const struct step *st)
{
    if (st->kind == MSN)
        s.qp->resp.msn = psn_make(st->msn);
    else
        qp_await_packet(s.qp);
}

static void play(const struct step *st)
{
    drain_before(st);
    if (st->kind != OUT && s.head != s.tail) {
        const struct packet *p = &s.queue[s.head % QUEUE_PACKETS];
        say_packet("OUT", &p->h, p->bytes);
        check(false, "no row expects this");
    }
    switch (st->kind) {
    case IN:
        step_in(st);
        break;
    case OUT:
        step_out(st);
        break;
    case POST:
        step_post(st);
        break;
    case RECV:
        step_recv(st);
        break;
    case SCQE:
    case RCQE:
        step_cqe(st);
        break;
    case TIME:
        step_time(st);
        break;
    case HOLD:
        step_hold(st);
        break;
    case EVENT:
        step_event(st);
        break;
    case MODIFY:
    case ACCESS:
        step_modify(st);
        break;
    case REVOKE:
    case DESTROY:
        step_revoke(st);
        break;
    case MEM:
    case SET:
    case CELL:
    case GRH:
        step_memory(st);
        break;
    case MSN:
    case AWAIT:
        step_responder(st);
        break;
    case TRAIN:
        step_train(st);
        break;
    case ARM:
        cq_arm(s.rcq, st->what != 0);
        break;
    case STATE:
    case COUNT:
    case NOTIFY:
        step_check(st);
        break;
    case SILENT:
    case REPEAT:
        break;
    case END:
        step_end();
        break;
    }
}

static void repeat(const struct step *st)
{
    for (uint32_t k = 0; k < st->n; k++)
        for (int i = 1; i <= st->what; i++) {
            struct step next = st[i];
            next.psn += k;
            if (next.kind == OUT) {
                next.msn += st->hold_msn ? 0 : k;
                next.a += k;
                next.at += k * next.len;
            }
            s.log_used = 0; /* the last round is enough to show */
            play(&next);
        }
}

static void run_dialogue(void **state)
{
    const struct dialogue *d = *state;
    setup(d);
    const struct step *st = d->steps;
    for (; st->kind != END; st++) {
        if (st->kind == REPEAT) {
            repeat(st);
            st += st->what;
        } else {
            play(st);
        }
    }
    play(st);
    teardown();
}

int script_run(const char *group, const struct dialogue *d, size_t n)
{
    struct CMUnitTest *tests = calloc(n, sizeof(*tests));
    size_t invalid = 0, held = 0;
    if (tests == NULL)
        return 1;
    for (size_t i = 0; i < n; i++) {
        const char *refused = link_refuses(&d[i]);
        invalid += d[i].invalid;
        if (refused == NULL)
            tests[held++] = (struct CMUnitTest){d[i].name, run_dialogue, NULL, NULL, (void *)&d[i]};
        else
            print_message("# %s is not held here: %s\n", d[i].name, refused);
    }
    int failed = _cmocka_run_group_tests(group, tests, held, NULL, NULL);
    free(tests);
    if (2 * invalid < n) {
        print_error("%s: only %zu of %zu dialogues are invalid\n", group, invalid, n);
        failed++;
    }
    return failed;
}
