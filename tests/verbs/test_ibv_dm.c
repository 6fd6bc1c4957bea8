/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_dm.c: device memory: sizes, copies, regions.
 */
#include "fake_host.h"

#include <stdlib.h>

#include "verbs/ibv_memory.h"

static void alloc__refused(void **state)
{
    (void)state;
    static const struct {
        size_t length;
        uint32_t log_align, comp_mask;
        int want;
    } rows[] = {
        {0,                       0,  0, EINVAL    },
        {MEMORY_MAX_DM_BYTES + 1, 0,  0, EINVAL    },
        {SIZE_MAX,                0,  0, EINVAL    },
        {8,                       13, 0, EINVAL    },
        {8,                       0,  1, EOPNOTSUPP},
    };
    struct ibv_context *ctx = fake_open();

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_alloc_dm_attr attr = {rows[i].length, rows[i].log_align, rows[i].comp_mask};

        errno = 0;
        assert_null(ibv_alloc_dm(ctx, &attr));
        assert_int_equal(errno, rows[i].want);
    }
    fake_close(ctx);
}

/* As much as is promised; it begins as zeros. */
static void alloc__largest(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_alloc_dm_attr attr = {.length = MEMORY_MAX_DM_BYTES, .log_align_req = 12};
    struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);
    uint32_t word = 1;

    assert_non_null(dm);
    assert_int_equal(ibv_memcpy_from_dm(&word, dm, MEMORY_MAX_DM_BYTES - 4, 4), 0);
    assert_int_equal(word, 0);
    assert_int_equal(ibv_free_dm(dm), 0);
    fake_close(ctx);
}

static void copy__bounds(void **state)
{
    (void)state;
    static const struct {
        uint64_t offset;
        size_t length;
        int want;
    } rows[] = {
        {0,          100,      0     },
        {96,         4,        0     },
        {100,        0,        0     },
        {0,          0,        0     },
        {0,          104,      EINVAL},
        {96,         8,        EINVAL},
        {104,        0,        EINVAL},
        {UINT64_MAX, 4,        EINVAL},
        {4,          SIZE_MAX, EINVAL},
        {2,          4,        EINVAL},
        {4,          2,        EINVAL},
    };
    struct ibv_context *ctx = fake_open();
    struct ibv_alloc_dm_attr attr = {.length = 100};
    struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);
    uint8_t host[104], back[104];

    assert_non_null(dm);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset(host, (int)i + 1, sizeof(host));
        memset(back, 0, sizeof(back));
        assert_int_equal(ibv_memcpy_to_dm(dm, rows[i].offset, host, rows[i].length), rows[i].want);
        assert_int_equal(ibv_memcpy_from_dm(back, dm, rows[i].offset, rows[i].length),
                         rows[i].want);
        if (rows[i].want == 0)
            assert_memory_equal(back, host, rows[i].length);
        else
            assert_int_equal(back[0], 0);
    }
    assert_int_equal(ibv_free_dm(dm), 0);
    fake_close(ctx);
}

static void reg__bounds_and_access(void **state)
{
    (void)state;
    enum { ZERO = IBV_ACCESS_ZERO_BASED };
    static const struct {
        uint64_t offset;
        size_t length;
        unsigned access;
        int fail, want;
    } rows[] = {
        {0,          100,      ZERO,                                 0,          0         },
        {50,         50,       ZERO | IBV_ACCESS_LOCAL_WRITE,        0,          0         },
        {99,         1,        ZERO | IBV_ACCESS_RELAXED_ORDERING,   0,          0         },
        {0,          8,        ZERO | NEWER_ACCESS_FLUSH_GLOBAL,     0,          0         },
        {0,          8,        ZERO | NEWER_ACCESS_FLUSH_PERSISTENT, EOPNOTSUPP, EOPNOTSUPP},
        {0,          101,      ZERO,                                 0,          EINVAL    },
        {50,         51,       ZERO,                                 0,          EINVAL    },
        {101,        0,        ZERO,                                 0,          EINVAL    },
        {UINT64_MAX, 1,        ZERO,                                 0,          EINVAL    },
        {1,          SIZE_MAX, ZERO,                                 0,          EINVAL    },
        {0,          8,        IBV_ACCESS_LOCAL_WRITE,               0,          EINVAL    },
        {0,          8,        ZERO | IBV_ACCESS_MW_BIND,            0,          EINVAL    },
        {0,          8,        ZERO | IBV_ACCESS_ON_DEMAND,          0,          EINVAL    },
        {0,          8,        ZERO,                                 ENOMEM,     ENOMEM    },
    };
    struct ibv_context *ctx = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_alloc_dm_attr attr = {.length = 100};
    struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake.fail = rows[i].fail;
        errno = 0;
        struct ibv_mr *mr = ibv_reg_dm_mr(pd, dm, rows[i].offset, rows[i].length, rows[i].access);
        if (rows[i].want != 0) {
            assert_null(mr);
            assert_int_equal(errno, rows[i].want);
            continue;
        }
        assert_non_null(mr);
        assert_int_equal(fake.mr_iova, 0);
        assert_int_equal(mr->length, rows[i].length);
        assert_int_equal(ibv_free_dm(dm), EBUSY);
        errno = 0;
        assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, &attr, 8, 0),
                         IBV_REREG_MR_ERR_INPUT);
        assert_int_equal(errno, EINVAL);
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
    assert_int_equal(ibv_free_dm(dm), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    fake_close(ctx);
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
        cmocka_unit_test_setup(alloc__refused, reset),
        cmocka_unit_test_setup(alloc__largest, reset),
        cmocka_unit_test_setup(copy__bounds, reset),
        cmocka_unit_test_setup(reg__bounds_and_access, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
