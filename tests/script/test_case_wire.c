/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_case_wire.c: cases from the field that show on the wire (L1, L2, L4, 118, 120), in the
 * states of a QP (36, 42, 141), and in what a key is good for at the peer (15, 28, 144).
 */
#include <errno.h>
#include <string.h>

#include "pair.h"

static void begin(struct pair *p, struct pair_config c)
{
    pair_create(p, &c);
    pair_bring(p, A, QP_STATE_RTS);
    pair_bring(p, B, QP_STATE_RTS);
}

static void end(struct pair *p)
{
    pair_quiet(p);
    pair_destroy(p);
}

/* What a watcher of the link writes down. */
struct watch {
    uint32_t lose;          /* which request packets, bit by bit, counted from the first sent */
    bool corrupt;           /* lost by a wrong ICRC instead */
    uint32_t sent;          /* request packets seen */
    uint32_t psn[256];      /* of each */
    uint32_t naks;          /* sequence NAKs seen */
    uint32_t nak_psn[256];  /* of each */
    uint32_t nak_at[256];   /* requests seen before it */
    uint32_t acked;         /* one past the highest PSN that an ACK or NAK answered */
    uint32_t acked_at[256]; /* that, when each request packet was sent */
    bool corrupt_back;      /* the first answer has a wrong ICRC */
    uint32_t answers;
};

static struct fate watch(struct pair *p, int from, struct rx_packet *packet)
{
    struct watch *w = p->hook_data;
    struct fate fate = {0};
    if (from == A) {
        assert_true(w->sent < 256);
        bool lose = w->sent < 32 && (w->lose >> w->sent & 1);
        if (w->sent == 0)
            w->acked = packet->h.bth.psn.v;
        w->acked_at[w->sent] = w->acked;
        w->psn[w->sent++] = packet->h.bth.psn.v;
        packet->icrc_ok = !(lose && w->corrupt);
        fate.drop = lose && !w->corrupt;
        return fate;
    }
    bool nak = packet->h.aeth.syndrome == 0x60;
    uint32_t end = packet->h.bth.psn.v + (nak ? 0 : 1);
    packet->icrc_ok = !(w->corrupt_back && w->answers == 0);
    w->answers++;
    if (!packet->icrc_ok)
        return fate;
    if (end > w->acked)
        w->acked = end;
    if (nak) {
        w->nak_at[w->naks] = w->sent;
        w->nak_psn[w->naks++] = packet->h.bth.psn.v;
    }
    return fate;
}

static void ten_writes(struct pair *p, struct watch *w)
{
    begin(p, (struct pair_config){.timeout = 14, .retry = 7});
    p->hook = watch;
    p->hook_data = w;
    for (uint64_t id = 0; id < 10; id++)
        pair_post(p, A, (struct work){WR_RDMA_WRITE, .id = id, .len = 2048, .va = 2048 * id});
    pair_settle(p);
    for (uint64_t id = 0; id < 10; id++)
        pair_sent(p, A, id, WC_SUCCESS);
}

/* After a loss the sender goes on in order or from the PSN of the NAK; after a timeout, from the
 * first PSN without an answer; nowhere else. */
static void case_L1(void **state)
{
    (void)state;
    static const uint32_t losses[] = {1, 2, 1u << 19, 0x3c, 0x8421, 0x55555, 0x80001, 0xfffff};
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
        struct pair p;
        struct watch w = {.lose = losses[i]};
        ten_writes(&p, &w);
        uint32_t nak = 0, timeouts = 0;
        for (uint32_t k = 1; k < w.sent; k++) {
            while (nak < w.naks && w.nak_at[nak] < k)
                nak++;
            if (w.psn[k] == w.psn[k - 1] + 1)
                continue;
            bool by_nak = nak < w.naks && w.nak_at[nak] == k;
            timeouts += !by_nak;
            assert_int_equal(w.psn[k], by_nak ? w.nak_psn[nak] : w.acked_at[k]);
        }
        assert_int_equal(timeouts, pair_count(&p, A, COUNTER_local_ack_timeout_err));
        end(&p);
    }
}

/* The NAK has the expected PSN, and there is one a gap. */
static void case_L2(void **state)
{
    (void)state;
    struct pair p;
    struct watch w = {.lose = 1u << 3};
    ten_writes(&p, &w);
    assert_int_equal(w.naks, 1);
    assert_int_equal(w.nak_psn[0], w.psn[3]);
    assert_int_equal(pair_count(&p, A, COUNTER_packet_seq_err), 1);
    assert_int_equal(pair_count(&p, B, COUNTER_seq_nak_sent), 1);
    end(&p);
    w = (struct watch){.lose = 1u << 3 | 1u << 9 | 1u << 15};
    ten_writes(&p, &w);
    assert_int_equal(w.naks, 1); /* the first gap hides the others: all go back behind it */
    end(&p);
    w = (struct watch){.lose = 1u << 3 | 1u << 25}; /* the second among those sent again */
    ten_writes(&p, &w);
    assert_int_equal(w.naks, 2);
    assert_int_equal(w.nak_psn[0], w.psn[3]);
    assert_int_equal(w.nak_psn[1], w.psn[25]);
    end(&p);
    w = (struct watch){.lose = 1u << 3 | 1u << 20}; /* the one that the NAK asked for */
    ten_writes(&p, &w);
    assert_int_equal(w.naks, 1); /* it is the same gap: not asked for again */
    assert_int_equal(w.psn[20], w.psn[3]);
    assert_int_equal(pair_count(&p, A, COUNTER_local_ack_timeout_err), 1);
    end(&p);
}

/* A bad ICRC is dropped, counted, and then a loss like any other. */
static void case_L4(void **state)
{
    (void)state;
    struct pair p;
    struct watch w = {.lose = 1u << 3 | 1u << 5, .corrupt = true};
    ten_writes(&p, &w);
    assert_int_equal(pair_count(&p, B, COUNTER_rx_icrc_encapsulated), 2);
    assert_int_equal(w.naks, 1);
    assert_int_equal(w.nak_psn[0], w.psn[3]);
    assert_int_equal(pair_count(&p, A, COUNTER_rx_icrc_encapsulated), 0);
    end(&p);
    w = (struct watch){.corrupt_back = true}; /* an ACK: the next one says the same */
    ten_writes(&p, &w);
    assert_int_equal(pair_count(&p, A, COUNTER_rx_icrc_encapsulated), 1);
    assert_int_equal(pair_count(&p, B, COUNTER_rx_icrc_encapsulated), 0);
    end(&p);
    w = (struct watch){.lose = 1u << 3, .corrupt_back = true}; /* the NAK: a timeout makes up */
    ten_writes(&p, &w);
    assert_int_equal(w.naks, 0);
    assert_int_equal(pair_count(&p, A, COUNTER_rx_icrc_encapsulated), 1);
    assert_int_equal(pair_count(&p, A, COUNTER_packet_seq_err), 0);
    assert_int_equal(pair_count(&p, A, COUNTER_local_ack_timeout_err), 1);
    end(&p);
}

static struct fate no_mig_req(struct pair *p, int from, struct rx_packet *packet)
{
    (void)p, (void)from;
    assert_true(packet->h.bth.mig_req);
    packet->h.bth.mig_req = false;
    return (struct fate){0};
}

/* MigReq: 1 is sent always, both are taken. */
static void case_118_engine(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.retry = 0, .timeout = 10});
    p.hook = no_mig_req;
    pair_recv(&p, B, (struct work){.id = 9, .len = 3000});
    pair_post(&p, A, (struct work){WR_SEND, .id = 1, .len = 3000});
    pair_post(&p, A, (struct work){WR_RDMA_READ, .id = 2, .len = 3000});
    pair_post(&p, A, (struct work){WR_ATOMIC_FETCH_AND_ADD, .id = 3, .len = 8});
    pair_settle(&p);
    for (uint64_t id = 1; id <= 3; id++)
        pair_sent(&p, A, id, WC_SUCCESS);
    pair_received(&p, B, 9, WC_SUCCESS);
    end(&p);
}

struct port_watch {
    struct nic_sink sink;
    uint16_t sport[2];
    unsigned trains;
};

static void take_sport(struct nic_sink *sink, const struct train *t)
{
    struct port_watch *w = (struct port_watch *)sink;
    w->sport[w->trains++ % 2] = t->path->udp_sport;
}

/* The UDP source port is the QP's own and stays so (which one it is, the host decides). */
static void case_120_engine(void **state)
{
    (void)state;
    struct pair p;
    struct port_watch w = {.sink.train = take_sport};
    begin(&p, (struct pair_config){.timeout = 5, .retry = 7});
    p.side[A].attr.path.udp_sport = 0xface;
    assert_int_equal(pair_modify(&p, A, QP_STATE_RESET), 0);
    pair_bring(&p, A, QP_STATE_RTS);
    pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 1, .len = 4});
    nic_output(p.side[A].nic, p.now, &w.sink, 8);
    nic_advance(p.side[A].nic, p.now + 10 * MS); /* and of the retransmission */
    nic_output(p.side[A].nic, p.now + 10 * MS, &w.sink, 8);
    assert_int_equal(w.trains, 2);
    assert_int_equal(w.sport[0], 0xface);
    assert_int_equal(w.sport[1], 0xface);
    end(&p);
}

/* A region of another PD, from afar. */
static void case_15_remote(void **state)
{
    (void)state;
    struct pair p;
    struct mr *mr;
    begin(&p, (struct pair_config){.retry = 7});
    struct side *b = &p.side[B];
    assert_int_equal(mem_reg(b->other_pd, b->memory, 64, (uintptr_t)b->memory,
                             ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE, &mr),
                     0);
    p.side[A].memory[0] = 1;
    pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 1, .len = 8, .rkey = mr->key});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_REM_ACCESS_ERR);
    pair_event(&p, B, EVENT_QP_ACCESS_ERR);
    assert_int_equal(b->memory[0], 0);
    mem_mr_revoke(mr);
    mem_mr_free(mr);
    end(&p);
}

/* The rkey of a region that is gone was still honoured. */
static void case_28_remote(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.retry = 7});
    struct side *b = &p.side[B];
    uint32_t old = b->mr->key;
    memset(p.side[A].memory, 0x77, 4096);
    pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 1, .len = 4});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    mem_mr_revoke(b->mr);
    mem_mr_free(b->mr);
    assert_int_equal(mem_reg(b->pd, b->memory, b->memory_bytes, (uintptr_t)b->memory,
                             ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE, &b->mr),
                     0);
    assert_int_not_equal(b->mr->key, old);
    pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 2, .len = 4096, .rkey = old});
    pair_settle(&p);
    pair_sent(&p, A, 2, WC_REM_ACCESS_ERR);
    pair_event(&p, B, EVENT_QP_ACCESS_ERR);
    for (int i = 4; i < 4096; i++)
        assert_int_equal(b->memory[i], 0);
    end(&p);
}

/* Five WRs, the second bad: the true error first, then flushes in order. A NAK ends both QPs. */
static void case_36_remote_error(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.timeout = 10, .retry = 2});
    pair_post(&p, B, (struct work){WR_RDMA_WRITE, .id = 7, .len = 4});
    pair_settle(&p);
    pair_sent(&p, B, 7, WC_SUCCESS);
    for (uint64_t id = 1; id <= 5; id++)
        pair_post(&p, A,
                  (struct work){WR_RDMA_WRITE, .id = id, .len = 4, .rkey = id == 2 ? 0x1234 : 0});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    pair_sent(&p, A, 2, WC_REM_ACCESS_ERR);
    for (uint64_t id = 3; id <= 5; id++)
        pair_sent(&p, A, id, WC_WR_FLUSH_ERR);
    pair_event(&p, B, EVENT_QP_ACCESS_ERR);
    pair_state(&p, A, QP_STATE_ERR);
    pair_state(&p, B, QP_STATE_ERR);
    end(&p);
}

/* A local error ends only our QP; the peer hears nothing, and its own work times out. */
static void case_36_local_error(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.timeout = 10, .retry = 2});
    for (uint64_t id = 1; id <= 5; id++)
        pair_post(&p, A,
                  (struct work){WR_RDMA_WRITE, .id = id, .len = 4, .lkey = id == 2 ? 0x1234 : 0});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    pair_sent(&p, A, 2, WC_LOC_PROT_ERR);
    for (uint64_t id = 3; id <= 5; id++)
        pair_sent(&p, A, id, WC_WR_FLUSH_ERR);
    pair_state(&p, A, QP_STATE_ERR);
    pair_state(&p, B, QP_STATE_RTS);
    pair_post(&p, B, (struct work){WR_RDMA_WRITE, .id = 7, .len = 4});
    pair_settle(&p);
    pair_sent(&p, B, 7, WC_RETRY_EXC_ERR);
    end(&p);
}

/* RESET of a busy QP left it stuck. */
static void case_42_hundred_times(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.timeout = 10, .retry = 7, .rnr_retry = 7, .min_rnr = 1});
    for (uint64_t round = 0; round < 100; round++) {
        for (uint64_t id = 0; id < 8; id++) {
            pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = id, .len = 9000});
            pair_post(&p, A, (struct work){WR_RDMA_READ, .id = id, .len = 5000});
            pair_post(&p, B, (struct work){WR_SEND, .id = id, .len = 3000});
            pair_recv(&p, A, (struct work){.id = id, .len = id % 4 == 0 ? 3000 : 9});
        }
        pair_run(&p, rng_below(&p.rng, 40) * US);
        for (int i = A; i <= B; i++)
            assert_int_equal(pair_modify(&p, i, QP_STATE_RESET), 0);
        struct nic_event e;
        for (int i = A; i <= B; i++)
            while (event_next(p.side[i].nic, &e)) {
            }
        pair_quiet(&p);       /* no stale completion */
        pair_run(&p, 1 * MS); /* what is on its way gets lost */
        pair_bring(&p, A, QP_STATE_RTS);
        pair_bring(&p, B, QP_STATE_RTS);
        pair_recv(&p, B, (struct work){.id = 9, .len = 3000});
        pair_post(&p, A, (struct work){WR_SEND, .id = 1000 + round, .len = 3000});
        pair_settle(&p);
        pair_sent(&p, A, 1000 + round, WC_SUCCESS);
        pair_received(&p, B, 9, WC_SUCCESS);
        pair_quiet(&p);
    }
    end(&p);
}

/* A request reaches a QP that is not ready for any: silence. */
static void case_141(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct pair p;
        enum qp_state at = i < 2 ? QP_STATE_RESET : QP_STATE_INIT;
        pair_create(&p, &(struct pair_config){.timeout = 10, .retry = 1});
        pair_bring(&p, A, QP_STATE_RTS);
        pair_bring(&p, B, at);
        pair_post(&p, A, (struct work){i % 2 ? WR_RDMA_READ : WR_RDMA_WRITE, .id = 1, .len = 4});
        pair_settle(&p);
        pair_sent(&p, A, 1, WC_RETRY_EXC_ERR);
        pair_state(&p, B, at);
        assert_int_equal(p.side[B].packets, 0);
        assert_int_equal(pair_count(&p, B, COUNTER_rx_drop_state), 2);
        end(&p);
    }
}

static void case_141_rtr_answers(void **state)
{
    (void)state;
    struct pair p;
    pair_create(&p, &(struct pair_config){.timeout = 10, .retry = 1});
    pair_bring(&p, A, QP_STATE_RTS);
    pair_bring(&p, B, QP_STATE_RTR);
    pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 1, .len = 4});
    pair_post(&p, A, (struct work){WR_RDMA_READ, .id = 2, .len = 4});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    pair_sent(&p, A, 2, WC_SUCCESS);
    pair_event(&p, B, EVENT_COMM_EST);
    end(&p);
}

/* An inline READ makes no sense: refused at the post. */
static void case_144(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.retry = 7});
    assert_int_equal(
        pair_try(&p, A, (struct work){WR_RDMA_READ, .id = 1, .len = 8, .flags = WR_INLINE}),
        -EINVAL);
    assert_int_equal(
        pair_try(&p, A,
                 (struct work){WR_ATOMIC_FETCH_AND_ADD, .id = 2, .len = 8, .flags = WR_INLINE}),
        -EINVAL);
    pair_post(&p, A, (struct work){WR_RDMA_READ, .id = 3, .len = 8});
    pair_settle(&p);
    pair_sent(&p, A, 3, WC_SUCCESS);
    end(&p);
}

/* Every second packet that comes here is thrown away until lose is 0. */
static struct fate lose_some(struct pair *p, int from, struct rx_packet *packet)
{
    uint32_t *lose = p->hook_data;
    (void)from, (void)packet;
    if (*lose == 0)
        return (struct fate){0};
    return (struct fate){.drop = --*lose % 2 == 0};
}

/* A loss halves the window, a timeout takes it to its least, progress lets it grow again. */
/* A WRITE of so many packets gets through. */
static void write_packets(struct pair *p, uint32_t packets)
{
    pair_post(p, A, (struct work){WR_RDMA_WRITE, .id = packets, .len = packets * 256});
    pair_settle(p);
    pair_sent(p, A, packets, WC_SUCCESS);
}

static void requester__window_shrinks_and_grows(void **state)
{
    (void)state;
    struct pair p;
    uint32_t lose = 0;
    begin(&p, (struct pair_config){.timeout = 8, .retry = 7, .mtu = 256});
    struct requester *r = &p.side[A].qp->req;
    p.hook = lose_some;
    p.hook_data = &lose;
    assert_int_equal(r->window, 1024);
    pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 1, .len = 2000});
    pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 2, .len = 2000});
    lose = 1; /* the first packet */
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    pair_sent(&p, A, 2, WC_SUCCESS);
    assert_int_equal(r->window, 512);
    pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = 3});
    lose = 1;
    pair_settle(&p);
    pair_sent(&p, A, 3, WC_SUCCESS);
    assert_int_equal(r->window, 64);
    /* An eighth more, and one, for each whole window; the packet above was the first of it. */
    write_packets(&p, 62);
    assert_int_equal(r->window, 64);
    write_packets(&p, 1);
    assert_int_equal(r->window, 73);
    write_packets(&p, 72);
    assert_int_equal(r->window, 73);
    write_packets(&p, 1);
    assert_int_equal(r->window, 83);
    for (uint64_t id = 0; id < 60; id++) {
        uint32_t before = r->window;
        pair_post(&p, A, (struct work){WR_RDMA_WRITE, .id = id, .len = 60000});
        pair_settle(&p);
        pair_sent(&p, A, id, WC_SUCCESS);
        assert_true(r->window >= before && r->window <= 1024);
    }
    assert_int_equal(r->window, 1024);
    end(&p);
}

/* However much memory a host grants, PSNs in flight stay far from half the circle. */
static void requester__window_has_bounds(void **state)
{
    (void)state;
    struct pair p;
    begin(&p, (struct pair_config){.mtu = 256, .window_bytes = UINT32_MAX});
    assert_int_equal(p.side[A].qp->req.window_max, 1 << 20);
    end(&p);
    begin(&p, (struct pair_config){.mtu = 4096, .window_bytes = 1});
    assert_int_equal(p.side[A].qp->req.window_max, 4);
    end(&p);
}

/* A piece of a READ that is larger than the window has become goes out all the same, alone. */
static void requester__read_piece_over_the_window(void **state)
{
    (void)state;
    struct pair p;
    uint32_t lose = 1;
    begin(&p,
          (struct pair_config){.timeout = 8, .retry = 7, .mtu = 256, .memory_bytes = 512 << 10});
    p.hook = lose_some;
    p.hook_data = &lose;
    for (uint32_t i = 0; i < p.side[B].memory_bytes; i++)
        p.side[B].memory[i] = (uint8_t)(i * 7 + i / 256);
    pair_post(&p, A, (struct work){WR_RDMA_READ, .id = 1, .len = 400000, .va = 5});
    pair_settle(&p);
    pair_sent(&p, A, 1, WC_SUCCESS);
    assert_memory_equal(p.side[A].memory, p.side[B].memory + 5, 400000);
    lose = 60; /* and now in the midst of it */
    pair_post(&p, A, (struct work){WR_RDMA_READ, .id = 2, .len = 400000, .va = 6});
    pair_settle(&p);
    pair_sent(&p, A, 2, WC_SUCCESS);
    assert_memory_equal(p.side[A].memory, p.side[B].memory + 6, 400000);
    end(&p);
}

/* Two trains of a long READ's answer: FIRST has an AETH, so that one MIDDLE closes its train. */
enum { OUT_BY_THEN = 2 + TRAIN_MAX_PACKETS };

struct taken {
    struct nic_sink sink;
    uint32_t packets;
    uint32_t psn[1024];
    uint8_t opcode[1024];
    uint8_t syndrome; /* of the last one */
};

static void take_psn(struct nic_sink *sink, const struct train *t)
{
    struct taken *k = (struct taken *)sink;
    for (unsigned i = 0; i < t->packets; i++) {
        assert_true(k->packets < 1024);
        k->opcode[k->packets] = t->packet[i].h.bth.opcode;
        k->psn[k->packets++] = t->packet[i].h.bth.psn.v;
        k->syndrome = t->packet[i].h.aeth.syndrome;
    }
}

static struct rx_packet read_request(struct pair *p, uint32_t psn, uint32_t offset, uint32_t length)
{
    struct rx_packet packet = pair_packet(p, B, OP_READ_REQUEST, psn);
    packet.h.reth =
        (struct reth){(uintptr_t)p->side[B].memory + offset, p->side[B].mr->key, length};
    return packet;
}

/* The same READ again while it is being answered: begins anew, once. */
static void replay__read_again_while_it_is_answered(void **state)
{
    (void)state;
    struct pair p;
    struct taken k = {.sink.train = take_psn};
    enum { FIRST_PSN = 1000, PACKETS = 200, MTU = 256 };
    begin(&p, (struct pair_config){.mtu = MTU});
    struct nic *nic = p.side[B].nic;
    pair_inject(&p, B, read_request(&p, FIRST_PSN, 0, PACKETS * MTU));
    nic_output(nic, p.now, &k.sink, 2);
    assert_int_equal(k.packets, OUT_BY_THEN);
    /* not yet reached: will come anyhow */
    pair_inject(&p, B, read_request(&p, FIRST_PSN + 150, 150 * MTU, 50 * MTU));
    nic_output(nic, p.now, &k.sink, 1);
    assert_int_equal(k.psn[OUT_BY_THEN], FIRST_PSN + OUT_BY_THEN);
    assert_int_equal(k.opcode[OUT_BY_THEN], OP_READ_RESP_MIDDLE);
    uint32_t out = k.packets;
    pair_inject(&p, B, read_request(&p, FIRST_PSN + 10, 10 * MTU, 190 * MTU));
    while (nic_output(nic, p.now, &k.sink, 8)) {
    }
    assert_int_equal(k.psn[out], FIRST_PSN + 10);
    assert_int_equal(k.opcode[out], OP_READ_RESP_FIRST);
    for (uint32_t i = out + 1; i < k.packets; i++)
        assert_int_equal(k.psn[i], k.psn[i - 1] + 1);
    assert_int_equal(k.psn[k.packets - 1], FIRST_PSN + PACKETS - 1);
    assert_int_equal(k.opcode[k.packets - 1], OP_READ_RESP_LAST);
    assert_int_equal(k.packets, out + 190);
    end(&p);
}

/* The key goes while a READ is being answered: what is out is out, then a NAK for the next PSN. */
static void responder__key_revoked_while_it_answers(void **state)
{
    (void)state;
    struct pair p;
    struct taken k = {.sink.train = take_psn};
    begin(&p, (struct pair_config){.mtu = 256});
    struct side *b = &p.side[B];
    pair_inject(&p, B, read_request(&p, 1000, 0, 200 * 256));
    nic_output(b->nic, p.now, &k.sink, 2);
    mem_mr_revoke(b->mr);
    mem_mr_free(b->mr);
    b->mr = NULL;
    while (nic_output(b->nic, p.now, &k.sink, 8)) {
    }
    assert_int_equal(k.packets, OUT_BY_THEN + 1);
    assert_int_equal(k.opcode[OUT_BY_THEN], OP_ACKNOWLEDGE);
    assert_int_equal(k.syndrome, 0x62);
    assert_int_equal(k.psn[OUT_BY_THEN], 1000 + OUT_BY_THEN);
    pair_state(&p, B, QP_STATE_ERR);
    pair_event(&p, B, EVENT_QP_ACCESS_ERR);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_L1),
        cmocka_unit_test(case_L2),
        cmocka_unit_test(case_L4),
        cmocka_unit_test(case_118_engine),
        cmocka_unit_test(case_120_engine),
        cmocka_unit_test(case_15_remote),
        cmocka_unit_test(case_28_remote),
        cmocka_unit_test(case_36_remote_error),
        cmocka_unit_test(case_36_local_error),
        cmocka_unit_test(case_42_hundred_times),
        cmocka_unit_test(case_141),
        cmocka_unit_test(case_141_rtr_answers),
        cmocka_unit_test(case_144),
        cmocka_unit_test(requester__window_shrinks_and_grows),
        cmocka_unit_test(requester__window_has_bounds),
        cmocka_unit_test(requester__read_piece_over_the_window),
        cmocka_unit_test(replay__read_again_while_it_is_answered),
        cmocka_unit_test(responder__key_revoked_while_it_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
