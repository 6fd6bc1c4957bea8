/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_domain.c: thread domains and parent domains: what they are made of, and who goes first.
 */
#include "fake_host.h"

static void *never_alloc(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
                         uint64_t type)
{
    (void)pd;
    (void)context;
    (void)size;
    (void)alignment;
    (void)type;
    fail();
    return NULL;
}

static void never_free(struct ibv_pd *pd, void *context, void *ptr, uint64_t type)
{
    (void)pd;
    (void)context;
    (void)ptr;
    (void)type;
    fail();
}

static void td__refused(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_td_init_attr attr = {.comp_mask = 1};

    errno = 0;
    assert_null(ibv_alloc_td(ctx, &attr));
    assert_int_equal(errno, EOPNOTSUPP);
    fake_close(ctx);
}

static void parent__refused(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open(), *other = fake_open();
    struct ibv_pd *pd = ibv_alloc_pd(ctx), *foreign = ibv_alloc_pd(other);
    struct ibv_td_init_attr td_attr = {0};
    struct ibv_td *td = ibv_alloc_td(other, &td_attr);
    const uint32_t allocators = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
    const struct {
        struct ibv_parent_domain_init_attr attr;
        int want;
    } rows[] = {
        {{.pd = NULL},                                              EINVAL    },
        {{.pd = foreign},                                           EINVAL    },
        {{.pd = pd, .td = td},                                      EINVAL    },
        {{.pd = pd, .comp_mask = allocators},                       EINVAL    },
        {{.pd = pd, .comp_mask = allocators, .alloc = never_alloc}, EINVAL    },
        {{.pd = pd, .comp_mask = allocators, .free = never_free},   EINVAL    },
        {{.pd = pd, .comp_mask = 1u << 2},                          EOPNOTSUPP},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_parent_domain_init_attr attr = rows[i].attr;

        errno = 0;
        assert_null(ibv_alloc_parent_domain(ctx, &attr));
        assert_int_equal(errno, rows[i].want);
    }
    assert_int_equal(ibv_dealloc_td(td), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_dealloc_pd(foreign), 0);
    assert_int_equal(ibv_close_device(other), 0);
    fake_close(ctx);
}

/* Allocators are taken, and not called. */
static void parent__goes_after_its_objects(void **state)
{
    (void)state;
    struct ibv_context *ctx = fake_open();
    struct ibv_td_init_attr td_attr = {0};
    struct ibv_td *td = ibv_alloc_td(ctx, &td_attr);
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_parent_domain_init_attr attr = {
        .pd = pd,
        .td = td,
        .comp_mask =
            IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
        .alloc = never_alloc,
        .free = never_free,
        .pd_context = &attr,
    };
    struct ibv_pd *domain = ibv_alloc_parent_domain(ctx, &attr);
    struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);

    assert_non_null(domain);
    assert_ptr_equal(domain->context, ctx);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_dealloc_td(td), EBUSY);
    struct ibv_mr *mr = ibv_reg_mr(domain, &attr, 8, 0);
    assert_ptr_equal(mr->pd, domain);
    assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
    assert_int_equal(ibv_dealloc_pd(domain), 0);
    assert_int_equal(ibv_dealloc_td(td), 0);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
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
        cmocka_unit_test_setup(td__refused, reset),
        cmocka_unit_test_setup(parent__refused, reset),
        cmocka_unit_test_setup(parent__goes_after_its_objects, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
