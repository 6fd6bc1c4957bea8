/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_egress.c: times on the wire to the picosecond, and who is sent first.
 */
#include "rig.h"

static void wire__times(void **state)
{
    (void)state;
    /* One frame of 1000 + 62 bytes and 20 of gap each way of two links, and an ACK of 66 + 20. */
    static const struct {
        uint64_t gbps, delay_ns, fct_ps;
    } rows[] = {
        {100, 1000, 2 * (1082 * 80 + 1000000) + 2 * (86 * 80 + 1000000)    },
        {100, 0,    2 * 1082 * 80 + 2 * 86 * 80                            },
        {400, 500,  2 * (1082 * 20 + 500000) + 2 * (86 * 20 + 500000)      },
        {25,  1,    2 * (1082 * 320 + 1000) + 2 * (86 * 320 + 1000)        },
        {800, 1000, 2 * (1082 * 10 + 1000000) + 2 * (86 * 10 + 1000000)    },
        {1,   1000, 2 * (1082 * 8000 + 1000000) + 2 * (86 * 8000 + 1000000)},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        rig_star(&r, 2, rows[i].gbps, rows[i].delay_ns);
        rig_flow(&r, 0, 1, 1000);
        r.flow[0].start_ps = 12345;
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        assert_int_equal(rig_fct_ps(&r, 0), rows[i].fct_ps);
        rig_end(&r);
    }
}

/* Frames below 64 bytes are padded on the wire. */
static void wire__smallest_frame(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 2, 100, 0);
    rig_flow(&r, 0, 1, 1);
    r.config.hosts.ack_bytes = 10;
    r.config.hosts.header_bytes = 20;
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_int_equal(rig_fct_ps(&r, 0), 4 * 84 * 80);
    rig_end(&r);
}

static uint64_t sent(const struct rig *r, unsigned priority)
{
    const struct port *p = &r->f->port[r->f->node[4].first_port + 3];
    return p->count[priority].tx_bytes;
}

/* Three senders by three priorities to one host: what leaves the switch in 100 us. */
static void choose__shares(void **state)
{
    (void)state;
    static const struct {
        uint8_t weight[3], share[3]; /* in percent */
    } rows[] = {
        {{0, 0, 0}, {0, 0, 100} },
        {{1, 1, 1}, {33, 33, 33}},
        {{1, 2, 1}, {25, 50, 25}},
        {{3, 1, 0}, {0, 0, 100} },
        {{1, 9, 0}, {0, 0, 100} },
        {{1, 3, 6}, {10, 30, 60}},
    };
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct rig r;
        rig_star(&r, 4, 100, 1000);
        r.config.switches.lossless = 0x3f;
        r.config.switches.ecn = 0;
        r.config.switches.buffer_bytes = 32 << 20;
        for (uint32_t i = 0; i < 3; i++) {
            rig_flow(&r, i, 3, 10000000);
            r.flow[i].priority = (uint8_t)(1 + i);
            r.config.switches.weight[1 + i] = rows[row].weight[i];
        }
        rig_make(&r);
        rig_until(&r, 100 * FABRIC_US);
        uint64_t sum = sent(&r, 1) + sent(&r, 2) + sent(&r, 3);
        assert_true(sum > 1150000);
        for (unsigned i = 0; i < 3; i++) {
            uint64_t percent = (100 * sent(&r, 1 + i) + sum / 2) / sum;
            assert_in_range(percent + 1, rows[row].share[i], rows[row].share[i] + 2u);
        }
        rig_end(&r);
    }
}

/* A port that is down sends nothing, and what was on its wire is gone. */
static void set_link__down_and_up(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 2, 100, 1000);
    rig_flow(&r, 0, 1, 100000);
    rig_make(&r);
    rig_until(&r, 3 * FABRIC_US);
    egress_set_link(r.f, 0, false);
    assert_true(r.f->totals.drops_link >= 10);
    assert_false(sched_pending(&r.f->sched, event_of_port(0, PORT_WIRE)));
    uint64_t moved = r.f->port[0].moved_ps[3];
    rig_until(&r, 5 * FABRIC_US);
    assert_int_equal(r.f->port[0].moved_ps[3], moved);
    egress_set_link(r.f, 0, false); /* again: nothing */
    egress_set_link(r.f, 0, true);
    assert_int_equal(fabric_run(r.f, 1000000), FABRIC_FINISHED);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wire__times),
        cmocka_unit_test(wire__smallest_frame),
        cmocka_unit_test(choose__shares),
        cmocka_unit_test(set_link__down_and_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
