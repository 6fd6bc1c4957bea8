/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_verbs.c: what the programs of engines do: every operation moves its bytes, in messages of
 * its own; receivers that are late are waited for, or not; who may not is told, and others go on.
 */
#include "rig.h"

#include <errno.h>

#include "fabric/engine.h"
#include "nic/counters.h"

static void star(struct rig *r, uint32_t hosts)
{
    rig_star(r, hosts, 100, 1000);
    r->config.hosts.engine = true;
}

static struct fabric_flow_result result_of(const struct rig *r, uint32_t flow)
{
    struct fabric_flow_result result;
    fabric_flow_result(r->f, flow, &result);
    return result;
}

static uint64_t counted(const struct rig *r, uint32_t host, enum nic_counter c)
{
    return counters_get(&engine_of(&r->f->endpoint[host])->nic->counters, c);
}

/* How much later than the same bytes by WRITE, which an ACK ends: no more than so many ns. */
static void verbs__all_operations(void **state)
{
    (void)state;
    static const struct {
        struct fabric_work work;
        uint64_t bytes;
        uint64_t later_ns;
    } rows[] = {
        {{FABRIC_WRITE_IMM, .receives = 4},                             3 << 20, 100 },
        {{FABRIC_SEND, .receives = 4},                                  3 << 20, 100 },
        {{FABRIC_SEND, .receives = 16, .message_bytes = 4096},          3 << 20, 3000},
        {{FABRIC_SEND, .receives = 1},                                  1,       100 },
        {{FABRIC_READ},                                                 1,       100 },
        {{FABRIC_READ},                                                 3 << 20, 9000},
        {{FABRIC_READ, .message_bytes = 65536},                         3 << 20, 9000},
        {{FABRIC_WRITE, .message_bytes = 65536},                        3 << 20, 3000},
        {{FABRIC_WRITE_IMM, .receives = 9, .message_bytes = 100000},    999999,  3000},
        {{FABRIC_READ, .message_bytes = 100000, .receive_ps = 1 << 20}, 999999,  9000},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t fct[2];
        for (int run = 0; run < 2; run++) {
            struct rig r;
            star(&r, 2);
            rig_flow(&r, 0, 1, rows[i].bytes);
            if (run == 1)
                r.flow[0].work = rows[i].work;
            assert_int_equal(rig_run(&r), FABRIC_FINISHED);
            fct[run] = rig_fct_ps(&r, 0);
            assert_int_equal(r.totals.acked_bytes, rows[i].bytes);
            struct fabric_flow_result result = result_of(&r, 0);
            assert_int_equal(result.retries, 0);
            assert_int_equal(result.rnr_naks, 0);
            assert_int_equal(result.failed_ps, FABRIC_NEVER);
            assert_int_equal(result.state[0], QP_STATE_RTS);
            assert_true(result.fct_ps + 1000 >= result.ideal_ps);
            rig_end(&r);
        }
        assert_in_range(fct[1], fct[0] / 2, fct[0] + rows[i].later_ns * 1000);
    }
}

/* Each changes the one cell that there is: the order is the network's, the sum is not. */
static void verbs__atomics(void **state)
{
    (void)state;
    struct rig r;
    uint64_t cell;
    star(&r, 4);
    for (uint32_t i = 0; i < 3; i++) {
        rig_flow(&r, i, 3, 8 * 100);
        r.flow[i].work.verb = FABRIC_FETCH_ADD;
    }
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    memcpy(&cell, r.f->memory + ENGINE_MESSAGE_BYTES, 8);
    assert_int_equal(cell, 300);
    assert_int_equal(r.totals.acked_bytes, 2400);
    assert_true(result_of(&r, 0).fct_ps > result_of(&r, 0).ideal_ps); /* it was not alone */
    rig_end(&r);

    star(&r, 2);
    rig_flow(&r, 0, 1, 8);
    r.flow[0].work.verb = FABRIC_CMP_SWAP;
    rig_make(&r);
    r.f->memory[ENGINE_MESSAGE_BYTES] = 1;
    assert_int_equal(fabric_run(r.f, 1000000), FABRIC_FINISHED);
    memcpy(&cell, r.f->memory + ENGINE_MESSAGE_BYTES, 8);
    assert_int_equal(cell, 1);
    rig_end(&r);
}

/* As long as an atomic's answer, and none for all that: the last message has 4 bytes. */
/* Sixteen at a time: the round trip counts, or the link where it is slow. */
static void verbs__atomics_alone(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes, mbps, delay_ns;
    } rows[] = {
        {8,    100000, 1000},
        {128,  100000, 1000},
        {129,  100000, 1000},
        {1000, 100000, 1000},
        {9999, 100000, 10  },
        {1000, 100,    1   },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        star(&r, 2);
        r.link[1].rate_bps = rows[i].mbps * 1000000;
        r.link[0].delay_ps = r.link[1].delay_ps = rows[i].delay_ns * 1000;
        rig_flow(&r, 0, 1, rows[i].bytes);
        r.flow[0].work.verb = FABRIC_CMP_SWAP;
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        uint64_t ideal = result_of(&r, 0).ideal_ps;
        assert_in_range(result_of(&r, 0).fct_ps, ideal - ideal / 1000, ideal + ideal / 1000);
        rig_end(&r);
    }
}

static void verbs__eight_bytes(void **state)
{
    (void)state;
    static const enum fabric_verb verbs[] = {FABRIC_WRITE, FABRIC_WRITE_IMM, FABRIC_SEND,
                                             FABRIC_READ};
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        struct rig r;
        star(&r, 2);
        rig_flow(&r, 0, 1, 8 * 3 + 4);
        r.flow[0].work = (struct fabric_work){.verb = verbs[i], .message_bytes = 8, .receives = 4};
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        assert_int_equal(counted(&r, 0, COUNTER_tx_bytes) + counted(&r, 1, COUNTER_tx_bytes), 28);
        rig_end(&r);
    }
}

/* Who asks to wait for longer than 491.52 ms, which is nearly the longest, waits no less. */
static void verbs__long_rnr_timer(void **state)
{
    (void)state;
    static const uint64_t rows[] = {10, 11, 491520, 491521, 655360}; /* us */
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        star(&r, 2);
        r.config.hosts.rnr_retry = 1;
        r.config.hosts.rnr_timer_ps = rows[i] * FABRIC_US;
        rig_flow(&r, 0, 1, 4096);
        r.flow[0].work.verb = FABRIC_SEND;
        assert_int_equal(rig_run(&r), FABRIC_FAILED);
        assert_true(result_of(&r, 0).failed_ps >= rows[i] * FABRIC_US);
        rig_end(&r);
    }
}

/* A READ's data is the answer: it comes by the priority of the flow and may be lost. */
static void verbs__read_recovers(void **state)
{
    (void)state;
    struct rig r;
    star(&r, 2);
    r.link[1].loss_ppm = 2000;
    rig_flow(&r, 0, 1, 4 << 20);
    r.flow[0].work.verb = FABRIC_READ;
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_true(r.totals.drops_link > 0);
    assert_in_range(result_of(&r, 0).retries, 1, 2 * r.totals.drops_link);
    rig_end(&r);
}

/* The receiver takes 100 us a message: who sends waits for it, is told so, and gets through. */
static void verbs__slow_receiver(void **state)
{
    (void)state;
    struct rig r;
    star(&r, 2);
    rig_flow(&r, 0, 1, 64 * 4096);
    r.flow[0].work = (struct fabric_work){FABRIC_SEND, 4096, 4, 100 * FABRIC_US, false};
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    struct fabric_flow_result result = result_of(&r, 0);
    assert_in_range(result.fct_ps, 60 * 100 * FABRIC_US, 64 * 120 * FABRIC_US);
    assert_true(result.rnr_naks >= 30);
    assert_true(result.retries >= result.rnr_naks / 2);
    assert_int_equal(result.rnr_naks, counted(&r, 1, COUNTER_rnr_nak_sent));
    rig_end(&r);
}

/* Nobody ever posts a receive: seven retries and no more, or for ever, which is a standstill. */
static void verbs__no_receiver(void **state)
{
    (void)state;
    static const struct {
        uint8_t rnr_retry;
        enum fabric_state end;
        uint8_t status, state;
    } rows[] = {
        {0, FABRIC_FAILED,  WC_RNR_RETRY_EXC_ERR, QP_STATE_ERR},
        {3, FABRIC_FAILED,  WC_RNR_RETRY_EXC_ERR, QP_STATE_ERR},
        {6, FABRIC_FAILED,  WC_RNR_RETRY_EXC_ERR, QP_STATE_ERR},
        {7, FABRIC_STALLED, WC_SUCCESS,           QP_STATE_RTS},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        star(&r, 2);
        r.config.hosts.rnr_retry = rows[i].rnr_retry;
        rig_flow(&r, 0, 1, 4096);
        r.flow[0].work.verb = FABRIC_SEND;
        assert_int_equal(rig_run(&r), rows[i].end);
        struct fabric_flow_result result = result_of(&r, 0);
        assert_int_equal(result.status, rows[i].status);
        assert_int_equal(result.state[0], rows[i].state);
        assert_int_equal(result.fct_ps, FABRIC_NEVER);
        if (rows[i].rnr_retry < 7)
            assert_int_equal(result.rnr_naks, rows[i].rnr_retry + 1);
        else
            assert_true(result.rnr_naks > 100);
        rig_end(&r);
    }
}

/* A key that is no one's: told at once; both ends are in error; the other flow does not notice. */
static void verbs__wrong_rkey(void **state)
{
    (void)state;
    static const enum fabric_verb verbs[] = {FABRIC_WRITE, FABRIC_WRITE_IMM, FABRIC_READ,
                                             FABRIC_FETCH_ADD, FABRIC_CMP_SWAP};
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        struct rig r;
        star(&r, 3);
        rig_flow(&r, 0, 1, 1 << 16);
        rig_flow(&r, 0, 1, 1 << 16);
        rig_flow(&r, 1, 2, 1 << 10);
        r.flow[0].work = (struct fabric_work){.verb = verbs[i], .receives = 1, .wrong_rkey = true};
        r.flow[0].group = 0;
        r.flow[2].after = 0; /* in vain */
        assert_int_equal(rig_run(&r), FABRIC_FAILED);
        struct fabric_flow_result result = result_of(&r, 0);
        assert_int_equal(result.status, WC_REM_ACCESS_ERR);
        assert_in_range(result.failed_ps, FABRIC_US, 100 * FABRIC_US);
        assert_int_equal(result.state[0], QP_STATE_ERR);
        assert_int_equal(result.state[1], QP_STATE_ERR);
        assert_int_equal(result.fct_ps, FABRIC_NEVER);
        assert_true(result_of(&r, 1).fct_ps != FABRIC_NEVER);
        assert_int_equal(result_of(&r, 2).start_ps, FABRIC_NEVER);
        assert_int_equal(r.totals.failed, 1);
        assert_int_equal(r.totals.finished, 1);
        rig_end(&r);
    }
}

/* Two flows of a host, both late, each with receives of its own; and a group behind them. */
static void verbs__receivers_apart(void **state)
{
    (void)state;
    struct rig r;
    star(&r, 3);
    rig_flow(&r, 0, 2, 10 * 4096);
    rig_flow(&r, 1, 2, 10 * 4096);
    rig_flow(&r, 2, 0, 4096);
    r.flow[0].work = (struct fabric_work){FABRIC_SEND, 4096, 1, 50 * FABRIC_US, false};
    r.flow[1].work = (struct fabric_work){FABRIC_WRITE_IMM, 4096, 2, 500 * FABRIC_US, false};
    r.flow[1].group = 0;
    r.flow[2].after = 0;
    r.flow[2].work.verb = FABRIC_READ;
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_in_range(rig_fct_ps(&r, 0), 9 * 50 * FABRIC_US, 12 * 50 * FABRIC_US);
    assert_in_range(rig_fct_ps(&r, 1), 8 * 500 * FABRIC_US, 10 * 500 * FABRIC_US);
    assert_int_equal(result_of(&r, 2).start_ps,
                     result_of(&r, 1).start_ps + result_of(&r, 1).fct_ps);
    rig_end(&r);
}

static void verbs__refused(void **state)
{
    (void)state;
    static const struct fabric_work rows[] = {
        {.verb = FABRIC_CMP_SWAP + 1},
        {           .message_bytes = FABRIC_MAX_MESSAGE_BYTES + 1                          },
        { FABRIC_SEND,                           .receives = FABRIC_MAX_RECEIVES + 1},
        {                           FABRIC_SEND,                           .receive_ps = UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) + 2; i++) {
        struct rig r;
        struct fabric *f;
        uint32_t bad;
        star(&r, 2);
        rig_flow(&r, 0, 1, 1000);
        if (i < sizeof(rows) / sizeof(rows[0]))
            r.flow[0].work = rows[i];
        else if (i % 2 == 0)
            r.config.hosts.retry = 8;
        else
            r.config.hosts.rnr_retry = 8;
        assert_int_equal(fabric_create(&r.config, &r.topology, r.flow, r.flows, &f, &bad), -EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verbs__all_operations),  cmocka_unit_test(verbs__atomics),
        cmocka_unit_test(verbs__read_recovers),   cmocka_unit_test(verbs__slow_receiver),
        cmocka_unit_test(verbs__no_receiver),     cmocka_unit_test(verbs__wrong_rkey),
        cmocka_unit_test(verbs__receivers_apart), cmocka_unit_test(verbs__refused),
        cmocka_unit_test(verbs__eight_bytes),     cmocka_unit_test(verbs__atomics_alone),
        cmocka_unit_test(verbs__long_rnr_timer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
