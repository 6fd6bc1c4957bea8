/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_buffer.c: what a switch has room for: thresholds, headroom, and drops when it is too small.
 */
#include "rig.h"

/* Shared bytes, alpha, saturated queues, and where each of them settles (V20). */
static const struct {
    uint32_t shared, num, den, queues, threshold;
} settle_rows[] = {
    {12582912, 1, 16, 1,  740171  },
    {12582912, 1, 16, 2,  699051  },
    {12582912, 1, 16, 4,  629146  },
    {12582912, 1, 16, 8,  524288  },
    {12582912, 1, 16, 15, 405900  },
    {12582912, 1, 16, 16, 393216  },
    {12582912, 1, 16, 32, 262144  },
    {12582912, 1, 16, 64, 157286  },
    {12582912, 1, 8,  1,  1398101 },
    {12582912, 1, 8,  2,  1258291 },
    {12582912, 1, 8,  4,  1048576 },
    {12582912, 1, 8,  8,  786432  },
    {12582912, 1, 8,  15, 547083  },
    {12582912, 1, 8,  16, 524288  },
    {12582912, 1, 8,  32, 314573  },
    {12582912, 1, 8,  64, 174763  },
    {12582912, 1, 4,  1,  2516582 },
    {12582912, 1, 4,  2,  2097152 },
    {12582912, 1, 4,  4,  1572864 },
    {12582912, 1, 4,  8,  1048576 },
    {12582912, 1, 4,  15, 662259  },
    {12582912, 1, 4,  16, 629146  },
    {12582912, 1, 4,  32, 349525  },
    {12582912, 1, 4,  64, 185043  },
    {12582912, 1, 2,  1,  4194304 },
    {12582912, 1, 2,  2,  3145728 },
    {12582912, 1, 2,  4,  2097152 },
    {12582912, 1, 2,  8,  1258291 },
    {12582912, 1, 2,  15, 740171  },
    {12582912, 1, 2,  16, 699051  },
    {12582912, 1, 2,  32, 370086  },
    {12582912, 1, 2,  64, 190650  },
    {12582912, 1, 1,  1,  6291456 },
    {12582912, 1, 1,  2,  4194304 },
    {12582912, 1, 1,  4,  2516582 },
    {12582912, 1, 1,  8,  1398101 },
    {12582912, 1, 1,  15, 786432  },
    {12582912, 1, 1,  16, 740171  },
    {12582912, 1, 1,  32, 381300  },
    {12582912, 1, 1,  64, 193583  },
    {12582912, 2, 1,  1,  8388608 },
    {12582912, 2, 1,  2,  5033165 },
    {12582912, 2, 1,  4,  2796203 },
    {12582912, 2, 1,  8,  1480343 },
    {12582912, 2, 1,  15, 811801  },
    {12582912, 2, 1,  16, 762601  },
    {12582912, 2, 1,  32, 387167  },
    {12582912, 2, 1,  64, 195084  },
    {12582912, 8, 1,  1,  11184811},
    {12582912, 8, 1,  2,  5921370 },
    {12582912, 8, 1,  4,  3050403 },
    {12582912, 8, 1,  8,  1548666 },
    {12582912, 8, 1,  15, 831928  },
    {12582912, 8, 1,  16, 780336  },
    {12582912, 8, 1,  32, 391686  },
    {12582912, 8, 1,  64, 196225  },
};

/* Gb/s, meters of cable, IP MTU, quanta that the peer goes on, headroom (V19). */
static const struct {
    uint32_t gbps, meters, mtu, quanta, headroom;
} headroom_rows[] = {
    {10,  5,   1500, 67,  8192  },
    {10,  5,   4200, 67,  13312 },
    {10,  5,   9100, 67,  23552 },
    {10,  40,  1500, 67,  8192  },
    {10,  40,  4200, 67,  13312 },
    {10,  40,  9100, 67,  23552 },
    {10,  100, 1500, 67,  9216  },
    {10,  100, 4200, 67,  14336 },
    {10,  100, 9100, 67,  24576 },
    {10,  300, 1500, 67,  11264 },
    {10,  300, 4200, 67,  17408 },
    {10,  300, 9100, 67,  26624 },
    {25,  5,   1500, 80,  9216  },
    {25,  5,   4200, 80,  14336 },
    {25,  5,   9100, 80,  23552 },
    {25,  40,  1500, 80,  10240 },
    {25,  40,  4200, 80,  15360 },
    {25,  40,  9100, 80,  24576 },
    {25,  100, 1500, 80,  11264 },
    {25,  100, 4200, 80,  17408 },
    {25,  100, 9100, 80,  26624 },
    {25,  300, 1500, 80,  17408 },
    {25,  300, 4200, 80,  23552 },
    {25,  300, 9100, 80,  32768 },
    {40,  5,   1500, 118, 11264 },
    {40,  5,   4200, 118, 16384 },
    {40,  5,   9100, 118, 26624 },
    {40,  40,  1500, 118, 13312 },
    {40,  40,  4200, 118, 18432 },
    {40,  40,  9100, 118, 28672 },
    {40,  100, 1500, 118, 16384 },
    {40,  100, 4200, 118, 21504 },
    {40,  100, 9100, 118, 30720 },
    {40,  300, 1500, 118, 25600 },
    {40,  300, 4200, 118, 31744 },
    {40,  300, 9100, 118, 40960 },
    {50,  5,   1500, 147, 13312 },
    {50,  5,   4200, 147, 18432 },
    {50,  5,   9100, 147, 28672 },
    {50,  40,  1500, 147, 15360 },
    {50,  40,  4200, 147, 20480 },
    {50,  40,  9100, 147, 30720 },
    {50,  100, 1500, 147, 19456 },
    {50,  100, 4200, 147, 24576 },
    {50,  100, 9100, 147, 33792 },
    {50,  300, 1500, 147, 31744 },
    {50,  300, 4200, 147, 36864 },
    {50,  300, 9100, 147, 47104 },
    {100, 5,   1500, 394, 29696 },
    {100, 5,   4200, 394, 34816 },
    {100, 5,   9100, 394, 45056 },
    {100, 40,  1500, 394, 33792 },
    {100, 40,  4200, 394, 38912 },
    {100, 40,  9100, 394, 49152 },
    {100, 100, 1500, 394, 40960 },
    {100, 100, 4200, 394, 46080 },
    {100, 100, 9100, 394, 56320 },
    {100, 300, 1500, 394, 65536 },
    {100, 300, 4200, 394, 70656 },
    {100, 300, 9100, 394, 80896 },
    {200, 5,   1500, 453, 33792 },
    {200, 5,   4200, 453, 38912 },
    {200, 5,   9100, 453, 49152 },
    {200, 40,  1500, 453, 41984 },
    {200, 40,  4200, 453, 48128 },
    {200, 40,  9100, 453, 57344 },
    {200, 100, 1500, 453, 57344 },
    {200, 100, 4200, 453, 62464 },
    {200, 100, 9100, 453, 72704 },
    {200, 300, 1500, 453, 106496},
    {200, 300, 4200, 453, 111616},
    {200, 300, 9100, 453, 121856},
    {400, 5,   1500, 905, 63488 },
    {400, 5,   4200, 905, 69632 },
    {400, 5,   9100, 905, 78848 },
    {400, 40,  1500, 905, 80896 },
    {400, 40,  4200, 905, 87040 },
    {400, 40,  9100, 905, 96256 },
    {400, 100, 1500, 905, 110592},
    {400, 100, 4200, 905, 115712},
    {400, 100, 9100, 905, 125952},
    {400, 300, 1500, 905, 208896},
    {400, 300, 4200, 905, 215040},
    {400, 300, 9100, 905, 224256},
    {800, 5,   1500, 905, 66560 },
    {800, 5,   4200, 905, 71680 },
    {800, 5,   9100, 905, 81920 },
    {800, 40,  1500, 905, 101376},
    {800, 40,  4200, 905, 106496},
    {800, 40,  9100, 905, 115712},
    {800, 100, 1500, 905, 159744},
    {800, 100, 4200, 905, 165888},
    {800, 100, 9100, 905, 175104},
    {800, 300, 1500, 905, 357376},
    {800, 300, 4200, 905, 362496},
    {800, 300, 9100, 905, 372736},
};

#define ROWS(a) (sizeof(a) / sizeof((a)[0]))

/* A frame to each queue in turn until none is taken any more. */
static void admit__queues_settle(void **state)
{
    (void)state;
    for (size_t row = 0; row < ROWS(settle_rows); row++) {
        struct rig r;
        uint32_t n = settle_rows[row].queues, full = 0;
        rig_star(&r, n < 2 ? 2 : n, 100, 1000);
        r.config.switches.lossless = 0;
        r.config.switches.buffer_bytes = settle_rows[row].shared;
        r.config.switches.alpha_num = settle_rows[row].num;
        r.config.switches.alpha_den = settle_rows[row].den;
        rig_flow(&r, 0, 1, 1);
        rig_make(&r);
        struct switch_state *s = &r.f->sw[0];
        assert_int_equal(s->shared_bytes, settle_rows[row].shared);
        uint32_t first = r.f->node[s->node].first_port;
        while (full < n) {
            full = 0;
            for (uint32_t i = 0; i < n; i++) {
                struct packet p = {.ingress = first, .bytes = 1500, .priority = 3};
                if (buffer_admit(r.f, s, first + i, &p))
                    r.f->port[first + i].queue[3].bytes += p.bytes;
                else
                    full++;
            }
        }
        for (uint32_t i = 0; i < n; i++)
            assert_in_range(r.f->port[first + i].queue[3].bytes, settle_rows[row].threshold - 1500,
                            settle_rows[row].threshold + 1500);
        rig_end(&r);
    }
}

/* The same by itself: four ports that eight senders saturate, looked at in the midst. */
static void admit__settles_under_load(void **state)
{
    (void)state;
    struct rig r;
    rig_star(&r, 12, 100, 1000);
    r.config.switches.lossless = 0;
    r.config.switches.ecn = 0;
    r.config.switches.buffer_bytes = 2 << 20;
    r.config.switches.alpha_num = 1;
    r.config.switches.alpha_den = 2;
    for (uint32_t i = 0; i < 8; i++)
        rig_flow(&r, i, 8 + i / 2, 4000000);
    rig_make(&r);
    rig_until(&r, 150 * FABRIC_US);
    uint32_t first = r.f->node[12].first_port, settled = (2 << 20) / 2 / 3; /* aB / (1 + 4a) */
    for (uint32_t i = 8; i < 12; i++) /* a frame left, a frame refused */
        assert_in_range(r.f->port[first + i].queue[3].bytes, settled - 2 * 1086,
                        settled + 2 * 1086);
    rig_end(&r);
}

static uint64_t drops_with(size_t row, uint32_t headroom)
{
    struct rig r;
    uint32_t mtu = headroom_rows[row].mtu;
    uint64_t delay_ps = headroom_rows[row].meters * UINT64_C(1000000000000) / 198000000;
    rig_star(&r, 3, headroom_rows[row].gbps, 0);
    for (int i = 0; i < 3; i++)
        r.link[i].delay_ps = delay_ps;
    r.config.hosts.payload_bytes = mtu - 44; /* IPv4, UDP, BTH, ICRC */
    r.config.switches.ecn = 0;
    r.config.switches.headroom_bytes = headroom;
    r.config.switches.response_quanta = headroom_rows[row].quanta;
    r.config.switches.buffer_bytes = 3 * headroom + 16 * mtu;
    for (uint32_t i = 0; i < 2; i++)
        rig_flow(&r, i, 2, 8 * headroom_rows[row].headroom + 64 * mtu);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_true(r.totals.pauses > 0);
    assert_int_equal(r.totals.drops, r.totals.drops_headroom);
    rig_end(&r);
    return r.totals.drops;
}

static void headroom__enough_and_too_little(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(headroom_rows); i++) {
        uint64_t rate = headroom_rows[i].gbps * GBPS;
        uint64_t in_flight = 2 * headroom_rows[i].meters * (rate / 8000000) / 198 +
                             headroom_rows[i].quanta * FABRIC_QUANTUM_BYTES;
        assert_int_equal(drops_with(i, headroom_rows[i].headroom), 0);
        uint64_t needed = headroom_rows[i].mtu + in_flight;
        uint32_t left = 1; /* the table reckons with 1024 bits a kilobit, so it may be less */
        if (headroom_rows[i].headroom > needed)
            left = (uint32_t)(headroom_rows[i].headroom - needed);
        assert_true(drops_with(i, left) > 0);
    }
}

/* Headroom around 2 * (rate * delay) + 2 * MTU and the response: none is lost from there on, and
 * what is clearly below it loses; with NIC engines for hosts as with bare sources. */
static void case_122_drops_below_the_bound(void **state)
{
    (void)state;
    const uint32_t wire = 12500, frame = 1086 + 20, response = 394 * 64;
    const uint32_t bound = 2 * wire + 2 * frame + response;
    static const struct {
        int more;
        bool drops;
    } rows[] = {
        {0,         false},
        {5000,      false},
        {-8 * 1106, true },
        {-20000,    true },
        {-40000,    true }
    };
    for (size_t i = 0; i < 2 * ROWS(rows); i++) {
        struct rig r;
        rig_star(&r, 9, 100, 1000);
        r.config.hosts.engine = i % 2 == 1;
        r.config.switches.ecn = 0;
        r.config.switches.headroom_bytes = (uint32_t)((int)bound + rows[i / 2].more);
        r.config.switches.buffer_bytes = 9 * r.config.switches.headroom_bytes + 200000;
        for (uint32_t s = 0; s < 8; s++)
            rig_flow(&r, s, 8, 300000);
        assert_int_equal(rig_run(&r), FABRIC_FINISHED);
        assert_true((r.totals.drops_headroom > 0) == rows[i / 2].drops);
        rig_end(&r);
    }
}

/* The DCQCN paper's arithmetic for a switch of 32 ports at 40 Gb/s with 12 MB (V28): headroom of 8
 * classes leaves each (port, priority) 24.47 KB; and ECN must mark before 21.75 KB with beta 8. */
static void threshold__dcqcn_paper(void **state)
{
    (void)state;
    const uint32_t ports = 32, classes = 8, flight = 22400, buffer = 12000000, beta = 8;
    struct rig r;
    rig_star(&r, ports, 40, 1500);
    r.config.switches.lossless = 0xff;
    r.config.switches.control = 0;
    r.config.switches.headroom_bytes = flight;
    r.config.switches.buffer_bytes = buffer;
    r.config.switches.alpha_num = beta;
    r.config.switches.alpha_den = 8;
    rig_flow(&r, 0, 1, 1);
    rig_make(&r);
    struct switch_state *s = &r.f->sw[0];
    assert_int_equal(s->shared_bytes, buffer - ports * classes * flight);
    assert_in_range(s->shared_bytes / (ports * classes), 24465, 24485);
    /* Each of n ports just below a threshold of beta (B' - sum) / 8: what one may hold. */
    const uint64_t ecn = s->shared_bytes * beta / (8 * ports * (beta + 1));
    s->used_bytes = ports * 8 * ecn;
    uint64_t per_class = buffer_threshold(r.f, s, &r.f->port[r.f->node[ports].first_port]);
    assert_in_range(ecn, 21740, 21760);
    assert_true(per_class >= ecn); /* PFC does not come first */
    s->used_bytes = 0;
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(admit__queues_settle),
        cmocka_unit_test(admit__settles_under_load),
        cmocka_unit_test(headroom__enough_and_too_little),
        cmocka_unit_test(case_122_drops_below_the_bound),
        cmocka_unit_test(threshold__dcqcn_paper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
