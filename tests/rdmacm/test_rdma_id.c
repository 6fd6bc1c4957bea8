/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_id.c: ids of every port space, with a channel or with their own, and in a child.
 */
#include "../forks.h"
#include "cm_rig.h"

#include <sys/wait.h>
#include <unistd.h>

static void create__port_spaces(void **state)
{
    (void)state;
    static const struct {
        int ps;
        int qp_type; /* 0: refused */
    } rows[] = {
        {RDMA_PS_TCP,     IBV_QPT_RC},
        {RDMA_PS_IB,      IBV_QPT_RC},
        {RDMA_PS_UDP,     IBV_QPT_UD},
        {RDMA_PS_IPOIB,   IBV_QPT_UD},
        {0,               0         },
        {1,               0         },
        {RDMA_PS_TCP + 1, 0         },
        {-1,              0         },
    };
    struct rdma_event_channel *ch = rig_channel();
    int context;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rdma_cm_id *id = NULL;
        int ret = rdma_create_id(ch, &id, &context, (enum rdma_port_space)rows[i].ps);
        if (rows[i].qp_type == 0) {
            assert_int_equal(ret, -1);
            assert_int_equal(errno, EINVAL);
            continue;
        }
        assert_int_equal(ret, 0);
        assert_int_equal(id->qp_type, rows[i].qp_type);
        assert_int_equal(id->ps, rows[i].ps);
        assert_ptr_equal(id->context, &context);
        assert_ptr_equal(id->channel, ch);
        assert_null(id->verbs);
        assert_int_equal(rdma_destroy_id(id), 0);
    }
    assert_int_equal(rdma_create_id(ch, NULL, NULL, RDMA_PS_TCP), -1);
    assert_int_equal(errno, EINVAL);
    rdma_destroy_event_channel(ch);
}

static void migrate__to_and_from_synchronous(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = rig_id(NULL, RDMA_PS_TCP);
    union rig_addr dst = rig_addr("127.0.0.1", 7);

    assert_non_null(id->channel);
    assert_int_equal(rdma_migrate_id(id, NULL), -1); /* it is */
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_resolve_addr(id, NULL, &dst.sa, 1000), 0);
    assert_non_null(id->event); /* kept until the next call */
    assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_migrate_id(id, ch), 0);
    assert_null(id->event);
    assert_int_equal(rdma_resolve_route(id, 1000), 0);
    rig_expect(ch, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    assert_int_equal(rdma_migrate_id(id, NULL), 0);
    assert_ptr_not_equal(id->channel, ch);
    rdma_destroy_event_channel(ch);
    assert_int_equal(rdma_destroy_id(id), 0);
}

/* A child's inherited ids answer errors and can be destroyed; new ones work. */
static void fork__child_starts_anew(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = rig_id(ch, RDMA_PS_TCP);
    union rig_addr any = rig_addr("127.0.0.1", 0);

    assert_int_equal(rdma_bind_addr(id, &any.sa), 0);
    pid_t pid = quiet_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rdma_cm_event *e;
        struct rdma_cm_id *own = NULL;
        int bad = 0;
        bad |= (rdma_listen(id, 1) != -1 || errno != EIO) << 0;
        bad |= (rdma_get_cm_event(ch, &e) != -1 || errno != EIO) << 1;
        bad |= (rdma_destroy_id(id) != 0) << 2;
        bad |= (rdma_create_id(NULL, &own, NULL, RDMA_PS_TCP) != 0) << 3;
        bad |= (rdma_bind_addr(own, &any.sa) != 0) << 4;
        bad |= (rdma_listen(own, 1) != 0) << 5;
        bad |= (rdma_destroy_id(own) != 0) << 6;
        _exit(bad);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(rdma_listen(id, 1), 0);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(ch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create__port_spaces),
        cmocka_unit_test(migrate__to_and_from_synchronous),
        cmocka_unit_test(fork__child_starts_anew),
    };

    return cmocka_run_group_tests(tests, rig_setup, NULL);
}
