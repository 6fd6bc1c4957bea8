/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_rate.c: the IBTA's static rates.
 */
#include "fake_host.h"

static void rate__known(void **state)
{
    (void)state;
    static const struct {
        enum ibv_rate rate;
        int mult, mbps;
    } rows[] = {
        {IBV_RATE_2_5_GBPS,  1,   2500   },
        {IBV_RATE_5_GBPS,    2,   5000   },
        {IBV_RATE_10_GBPS,   4,   10000  },
        {IBV_RATE_40_GBPS,   16,  40000  },
        {IBV_RATE_56_GBPS,   22,  56250  },
        {IBV_RATE_100_GBPS,  40,  103125 },
        {IBV_RATE_400_GBPS,  160, 425000 },
        {IBV_RATE_1200_GBPS, 480, 1275000},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(ibv_rate_to_mult(rows[i].rate), rows[i].mult);
        assert_int_equal(ibv_rate_to_mbps(rows[i].rate), rows[i].mbps);
    }
}

static void rate__every_code_and_back(void **state)
{
    (void)state;
    for (int rate = IBV_RATE_2_5_GBPS; rate <= IBV_RATE_1200_GBPS; rate++) {
        int mult = ibv_rate_to_mult((enum ibv_rate)rate);
        int mbps = ibv_rate_to_mbps((enum ibv_rate)rate);
        assert_true(mult > 0);
        assert_int_equal(mult_to_ibv_rate(mult), rate);
        assert_int_equal(mbps_to_ibv_rate(mbps), rate);
    }
}

static void rate__unknown(void **state)
{
    (void)state;
    static const int rates[] = {-1, 0, 1, 25, 1000};
    static const int values[] = {-1, 0, 3, 1000000};

    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(ibv_rate_to_mult((enum ibv_rate)rates[i]), -1);
        assert_int_equal(ibv_rate_to_mbps((enum ibv_rate)rates[i]), -1);
    }
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(mult_to_ibv_rate(values[i]), IBV_RATE_MAX);
        assert_int_equal(mbps_to_ibv_rate(values[i]), IBV_RATE_MAX);
    }
}

static int reset(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rate__known, reset),
        cmocka_unit_test_setup(rate__every_code_and_back, reset),
        cmocka_unit_test_setup(rate__unknown, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
