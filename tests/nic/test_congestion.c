/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_congestion.c: which algorithms there are, what packets say of themselves, and how long what
 * was sent keeps the rest waiting. The dialogues of two engines are in
 * tests/script/test_notification.c.
 */
#include <errno.h>

#include "objects.h"

enum { START = 1000000, FRAME = 86 }; /* around IPv6 packets */
#define US UINT64_C(1000)

static void check__names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int err;
        bool on;
    } rows[] = {
        {NULL,           0,       false},
        {"none",         0,       false},
        {"dcqcn-hw",     0,       true },
        {"dcqcn-paper",  0,       true },
        {"ztr-target",   0,       true },
        {"ztr-template", 0,       true },
        {"timely",       0,       true },
        {"",             -EINVAL, false},
        {"dcqcn",        -EINVAL, false},
        {"NONE",         -EINVAL, false},
        {"timely ",      -EINVAL, false},
        {"bbr",          -EINVAL, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct nic_config config = {.seed = 7, .congestion.algorithm = rows[i].name};
        struct nic *nic;
        assert_int_equal(congestion_check(&config.congestion), rows[i].err);
        assert_int_equal(congestion_is_on(&config.congestion), rows[i].on);
        assert_int_equal(nic_create(&config, &nic), rows[i].err);
        if (rows[i].err == 0)
            nic_destroy(nic);
    }
}

static struct objects o;

static void begin(const char *algorithm, uint64_t burst_ns, uint8_t class)
{
    const struct objects_init init = {
        .cap = {4,  4, 1,                    1, 0},
        .cqe = 8,
        .congestion = {.algorithm = algorithm, .burst_ns = burst_ns,  .cnp_class = 0xc0},
    };
    objects_create(&o, &init);
    struct nic_qp_attr a = objects_attr(QP_STATE_INIT);
    assert_int_equal(qp_modify(o.qp, &a, INIT_MASK), 0);
    a = objects_attr(QP_STATE_RTR);
    a.path.traffic_class = class;
    a.line_mbps = 8000; /* a byte a ns */
    assert_int_equal(qp_modify(o.qp, &a, RTR_MASK), 0);
    a = objects_attr(QP_STATE_RTS);
    assert_int_equal(qp_modify(o.qp, &a, RTS_MASK), 0);
}

/* RFC 3168: the ECN bits are those of congestion control when it is on, the DSCP never; what was
 * asked for is told to who asks. */
static void path__says_ect(void **state)
{
    (void)state;
    static const struct {
        const char *algorithm;
        uint8_t asked, sent;
        bool on;
    } rows[] = {
        {"dcqcn-hw", 0,    2,    true },
        {"dcqcn-hw", 0x68, 0x6a, true },
        {"dcqcn-hw", 0x69, 0x6a, true },
        {"dcqcn-hw", 0xff, 0xfe, true },
        {"none",     0,    0,    false},
        {"none",     0x69, 0x69, false},
        {"none",     0x6b, 0x6b, false},
        {NULL,       0x6a, 0x6a, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct nic_qp_attr a;
        struct nic_qp_cap cap;
        begin(rows[i].algorithm, 0, rows[i].asked);
        assert_int_equal(o.qp->tx_path->traffic_class, rows[i].sent);
        assert_int_equal(o.qp->congestion != NULL, rows[i].on);
        qp_query(o.qp, &a, &cap);
        assert_int_equal(a.path.traffic_class, rows[i].asked);
        objects_destroy(&o);
    }
}

/* At this rate, in Mb/s, so many bytes leave (frames included): when may the next? */
static void open__after_what_was_sent(void **state)
{
    (void)state;
    static const struct {
        uint64_t burst_ns, mbps;
        uint32_t bytes;
        uint64_t opens_ns; /* after START; 0: at once */
        uint32_t room;     /* then */
    } rows[] = {
        {0,         8000, 1000,  0,       TRAIN_MAX_BYTES},
        {0,         4000, 1000,  2000,    0              },
        {0,         8,    1000,  1000000, 0              },
        {0,         4000, 60000, 120000,  0              },
        {100 * US,  4000, 1000,  0,       49000          },
        {100 * US,  4000, 49999, 0,       1              },
        {100 * US,  4000, 50000, 0,       0              }, /* one packet, always */
        {100 * US,  4000, 51000, 2000,    0              },
        {1000 * US, 4000, 1000,  0,       TRAIN_MAX_BYTES},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin("timely", rows[i].burst_ns, 0);
        struct congestion *g = o.qp->congestion;
        struct train *t = o.nic->train;
        g->cc.rate_bps = rows[i].mbps * 1000000;
        t->path = o.qp->tx_path;
        t->packets = 1;
        t->packet[0] = (struct train_packet){0};
        t->total_bytes = rows[i].bytes - FRAME;
        t->max_bytes = TRAIN_MAX_BYTES;
        assert_true(congestion_open(o.qp, START, t, true));
        congestion_sent(o.qp, START, t);
        t->max_bytes = TRAIN_MAX_BYTES;
        bool open = congestion_open(o.qp, START, t, true);
        assert_int_equal(open, rows[i].opens_ns == 0);
        if (open) {
            assert_int_equal(t->max_bytes, rows[i].room);
        } else {
            assert_int_equal(g->opens_ns, START + rows[i].opens_ns);
            assert_int_equal(nic_deadline(o.nic), START + rows[i].opens_ns);
            assert_false(congestion_open(o.qp, START + rows[i].opens_ns - 1, t, true));
            assert_true(congestion_open(o.qp, START + rows[i].opens_ns, t, true));
        }
        objects_destroy(&o);
    }
}

/* No part of a ns is lost: 3 Gb/s are 0.375 bytes a ns. */
static void sent__adds_up(void **state)
{
    (void)state;
    begin("timely", 0, 0);
    struct congestion *g = o.qp->congestion;
    struct train *t = o.nic->train;
    g->cc.rate_bps = UINT64_C(3000000000);
    t->path = o.qp->tx_path;
    t->packets = 1;
    t->packet[0] = (struct train_packet){0};
    t->total_bytes = 100 - FRAME;
    for (unsigned i = 0; i < 3000; i++)
        congestion_sent(o.qp, START, t);
    assert_in_range(g->free_ns, START + 800000 - 3, START + 800000);
    objects_destroy(&o);
}

/* Each fall below the line is one, however deep, and each return. */
static void open__tells_of_falls(void **state)
{
    (void)state;
    static const struct {
        uint64_t mbps;
        unsigned slowed, recovered;
    } rows[] = {
        {8000, 0, 0},
        {4000, 1, 0},
        {8,    1, 0},
        {7999, 1, 0},
        {8000, 1, 1},
        {8000, 1, 1},
        {4000, 2, 1},
        {8000, 2, 2},
    };
    begin("timely", 0, 0);
    struct train *t = o.nic->train;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        o.qp->congestion->cc.rate_bps = rows[i].mbps * 1000000;
        t->max_bytes = TRAIN_MAX_BYTES;
        congestion_open(o.qp, START + i, t, false);
        assert_int_equal(counters_get(&o.nic->counters, COUNTER_rp_slowed), rows[i].slowed);
        assert_int_equal(counters_get(&o.nic->counters, COUNTER_rp_recovered), rows[i].recovered);
    }
    objects_destroy(&o);
}

/* Of a QP that has nothing to send no deadline is left. */
static void open__nothing_waits(void **state)
{
    (void)state;
    begin("timely", 0, 0);
    struct congestion *g = o.qp->congestion;
    g->cc.rate_bps = 8000000;
    g->free_ns = START + 5;
    assert_false(congestion_open(o.qp, START, o.nic->train, false));
    assert_true(nic_deadline(o.nic) == UINT64_MAX);
    assert_false(congestion_open(o.qp, START, o.nic->train, true));
    assert_int_equal(nic_deadline(o.nic), START + 5);
    nic_advance(o.nic, START + 5);
    assert_int_equal(g->opens_ns, 0);
    assert_true(atomic_load(&o.qp->ready));
    objects_destroy(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check__names),
        cmocka_unit_test(path__says_ect),
        cmocka_unit_test(open__after_what_was_sent),
        cmocka_unit_test(sent__adds_up),
        cmocka_unit_test(open__tells_of_falls),
        cmocka_unit_test(open__nothing_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
