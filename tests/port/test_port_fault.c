/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_port_fault.c: what becomes of packets on their way through the fault port, by a port that
 * only writes down what reaches it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "port/port_fault.h"
#include "wire/roce.h"

enum { MAX_SEEN = 40000 };

static struct {
    uint32_t psn[MAX_SEEN];
    uint8_t first_byte[MAX_SEEN];
    unsigned n, flipped, flushes, ect, ce;
} seen;

static void note_train(const struct train *t)
{
    assert_int_equal(t->packets, 1);
    assert_true(seen.n < MAX_SEEN);
    assert_int_equal(t->total_bytes,
                     roce_packet_bytes(t->packet[0].h.bth.opcode, t->packet[0].payload_bytes));
    seen.first_byte[seen.n] = t->spans != 0 ? t->span[0].addr[0] : 0;
    seen.ect += (t->path->traffic_class & 3) == 2;
    seen.ce += (t->path->traffic_class & 3) == 3;
    seen.psn[seen.n++] = t->packet[0].h.bth.psn.v;
}

static void note_sink(struct nic_sink *sink, const struct train *t)
{
    (void)sink;
    note_train(t);
}

static void note_flipped(struct port *p, const struct train *t, uint32_t bit)
{
    (void)p;
    (void)bit;
    seen.flipped++;
    note_train(t);
}

static void note_flush(struct port *p, uint64_t now_ns)
{
    (void)p;
    (void)now_ns;
    seen.flushes++;
}

static uint64_t note_deadline(struct port *p)
{
    (void)p;
    return UINT64_MAX;
}

static const char *note_counter(struct port *p, unsigned index, uint64_t *value)
{
    (void)p;
    *value = 77;
    return index == 0 ? "inner" : NULL;
}

static void note_close(struct port *p)
{
    (void)p;
}

static const struct port_ops note_ops = {
    .flush = note_flush,
    .train_flipped = note_flipped,
    .deadline = note_deadline,
    .counter = note_counter,
    .close = note_close,
};

static struct port *make(const struct fault_spec *spec)
{
    static struct port inner;
    struct port *p;
    memset(&seen, 0, sizeof(seen));
    inner.ops = &note_ops;
    inner.sink.train = note_sink;
    assert_int_equal(port_fault_create(spec, &inner, 1000, &p), 0);
    return p;
}

static struct nic_path path;

/* Sends n packets in trains of up to 16, PSNs from first on, a flush after each train. */
static void send(struct port *p, uint32_t first, unsigned n, uint64_t now_ns)
{
    static struct train t;
    uint8_t payload[16];
    for (unsigned done = 0; done < n;) {
        t.path = &path;
        t.packets = t.spans = 0;
        for (; t.packets < 16 && done < n; done++) {
            struct train_packet *k = &t.packet[t.packets];
            memset(k, 0, sizeof(*k));
            k->h.bth.opcode = opcode_make(SERVICE_RC, OP_WRITE_MIDDLE);
            k->h.bth.psn = psn_make(first + done);
            k->payload_bytes = 1;
            k->first_span = t.spans;
            k->spans = 1;
            payload[t.packets] = (uint8_t)(first + done);
            t.span[t.spans++] = (struct span){&payload[t.packets], 1};
            t.packets++;
        }
        p->sink.train(&p->sink, &t);
        memset(payload, 0xee, sizeof(payload)); /* spans end with the call */
        p->ops->flush(p, now_ns);
    }
}

static uint64_t count_of(struct port *p, const char *want)
{
    const char *name;
    uint64_t v;
    for (unsigned i = 0; (name = p->ops->counter(p, i, &v)) != NULL; i++) {
        if (strcmp(name, want) == 0)
            return v;
    }
    fail_msg("no counter %s", want);
    return 0;
}

static void fault__none_passes_all_in_order(void **state)
{
    (void)state;
    struct fault_spec spec = {0};
    struct port *p = make(&spec);
    send(p, 100, 1000, 2000);
    assert_int_equal(seen.n, 1000);
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(seen.psn[i], 100 + i);
        assert_int_equal(seen.first_byte[i], (uint8_t)(100 + i));
    }
    assert_true(p->ops->deadline(p) == UINT64_MAX);
    assert_int_equal(count_of(p, "inner"), 77);
    p->ops->close(p);
}

static void fault__rates(void **state)
{
    (void)state;
    enum { N = 20000 };
    static const struct {
        struct fault_spec spec;
        const char *counter;
        unsigned low, high; /* of the counter */
        int per_count;      /* change of packets seen for each */
    } rows[] = {
        {{.drop_ppb = 10000000},                "fault_dropped",    130, 280, -1},
        {{.drop_ppb = FAULT_PPB},               "fault_dropped",    N,   N,   -1},
        {{.dup_ppb = 10000000},                 "fault_duplicated", 130, 280, 1 },
        {{.dup_ppb = FAULT_PPB},                "fault_duplicated", N,   N,   1 },
        {{.corrupt_ppb = 10000000},             "fault_corrupted",  130, 280, 0 },
        {{.down_at_ns = 0, .down_ns = 5000},    "fault_down",       N,   N,   -1},
        {{.down_at_ns = 1001, .down_ns = 5000}, "fault_down",       0,   0,   -1},
        {{.down_at_ns = 0, .down_ns = 1000},    "fault_down",       0,   0,   -1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct port *p = make(&rows[i].spec);
        send(p, 0, N, 2000);
        uint64_t c = count_of(p, rows[i].counter);
        assert_in_range(c, rows[i].low, rows[i].high);
        assert_int_equal((int)seen.n, N + (int)c * rows[i].per_count);
        assert_int_equal(seen.flipped, count_of(p, "fault_corrupted"));
        p->ops->close(p);
    }
}

/* RFC 3168: what does not say that it may be marked is not, and the DSCP stays. */
static void fault__marks(void **state)
{
    (void)state;
    static const struct {
        uint8_t class;
        uint32_t ce_ppb;
        unsigned low, high, ect;
    } rows[] = {
        {0,    FAULT_PPB, 0,    0,    0   },
        {0xc0, FAULT_PPB, 0,    0,    0   },
        {3,    FAULT_PPB, 2000, 2000, 0   },
        {2,    FAULT_PPB, 2000, 2000, 0   },
        {1,    FAULT_PPB, 2000, 2000, 0   },
        {0x6a, 0,         0,    0,    2000},
        {0x6a, 100000000, 130,  280,  0   },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fault_spec spec = {.ce_ppb = rows[i].ce_ppb};
        struct port *p = make(&spec);
        path.traffic_class = rows[i].class;
        send(p, 0, 2000, 2000);
        assert_in_range(seen.ce, rows[i].low, rows[i].high);
        if (rows[i].ect != 0)
            assert_int_equal(seen.ect, rows[i].ect);
        assert_int_equal(seen.n, 2000);
        assert_int_equal(count_of(p, "fault_marked"), rows[i].class == 3 ? 0 : seen.ce);
        assert_int_equal(path.traffic_class, rows[i].class);
        path.traffic_class = 0;
        p->ops->close(p);
    }
}

static void fault__same_seed_same_fate(void **state)
{
    (void)state;
    static uint32_t first[MAX_SEEN];
    struct fault_spec spec = {.drop_ppb = 100000000, .dup_ppb = 100000000, .seed = 7};
    struct port *p = make(&spec);
    send(p, 0, 5000, 2000);
    unsigned n = seen.n;
    memcpy(first, seen.psn, sizeof(first));
    p->ops->close(p);
    p = make(&spec);
    send(p, 0, 5000, 2000);
    assert_int_equal(seen.n, n);
    assert_memory_equal(first, seen.psn, n * sizeof(first[0]));
    p->ops->close(p);
    spec.seed = 8;
    p = make(&spec);
    send(p, 0, 5000, 2000);
    assert_true(seen.n != n || memcmp(first, seen.psn, n * sizeof(first[0])) != 0);
    p->ops->close(p);
}

static void fault__delay_holds_and_keeps_order(void **state)
{
    (void)state;
    struct fault_spec spec = {.delay_ns = 500};
    struct port *p = make(&spec);
    send(p, 0, 10, 2000);
    send(p, 10, 10, 2100);
    assert_int_equal(seen.n, 0);
    assert_true(p->ops->deadline(p) == 2500);
    p->ops->flush(p, 2499);
    assert_int_equal(seen.n, 0);
    p->ops->flush(p, 2500);
    assert_int_equal(seen.n, 10);
    assert_true(p->ops->deadline(p) == 2600);
    p->ops->flush(p, 9000);
    assert_int_equal(seen.n, 20);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(seen.psn[i], i);
    assert_true(p->ops->deadline(p) == UINT64_MAX);
    p->ops->close(p);
}

static void fault__reorder_lets_others_pass(void **state)
{
    (void)state;
    struct fault_spec spec = {.reorder_ppb = 100000000, .reorder_ns = 50};
    struct port *p = make(&spec);
    for (unsigned i = 0; i < 1000; i++)
        send(p, i, 1, 2000 + i * 10);
    p->ops->flush(p, 1000000);
    assert_int_equal(seen.n, 1000);
    unsigned behind = 0;
    for (unsigned i = 1; i < seen.n; i++)
        behind += seen.psn[i] < seen.psn[i - 1];
    assert_in_range(behind, 40, 160);
    p->ops->close(p);
}

static void fault__too_many_held_are_lost_and_counted(void **state)
{
    (void)state;
    struct fault_spec spec = {.delay_ns = 1000000};
    struct port *p = make(&spec);
    send(p, 0, 6000, 2000);
    p->ops->flush(p, 2000000);
    assert_int_equal(seen.n + count_of(p, "fault_overflow"), 6000);
    assert_true(count_of(p, "fault_overflow") > 0);
    assert_int_equal(seen.psn[seen.n - 1], seen.n - 1);
    p->ops->close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fault__none_passes_all_in_order),
        cmocka_unit_test(fault__rates),
        cmocka_unit_test(fault__marks),
        cmocka_unit_test(fault__same_seed_same_fate),
        cmocka_unit_test(fault__delay_holds_and_keeps_order),
        cmocka_unit_test(fault__reorder_lets_others_pass),
        cmocka_unit_test(fault__too_many_held_are_lost_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
