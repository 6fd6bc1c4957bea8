/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_mcast.c: groups joined and left, what the event says, and who gets what is sent there.
 */
#include "cm_rig.h"

#include <infiniband/ib.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <unistd.h>

enum { GRH_BYTES = 40, MESSAGE_BYTES = 16, MANY = 3 };

/* An id of this space on the device of this address of lo. */
static struct rdma_cm_id *member_at(struct rdma_event_channel *ch, enum rdma_port_space ps,
                                    const char *local, bool qp)
{
    struct rdma_cm_id *id = rig_id(ch, ps);
    union rig_addr dst = rig_addr(local, 7);

    assert_int_equal(rdma_resolve_addr(id, NULL, &dst.sa, 1000), 0);
    if (ch != NULL)
        rig_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    if (qp) {
        struct ibv_qp_init_attr init = rig_qp_init(id->qp_type);
        assert_int_equal(rdma_create_qp(id, NULL, &init), 0);
    }
    return id;
}

static struct rdma_cm_id *member(struct rdma_event_channel *ch)
{
    return member_at(ch, RDMA_PS_UDP, "127.0.0.1", true);
}

static void join(struct rdma_cm_id *id, const char *text)
{
    union rig_addr group = rig_addr(text, 0);

    assert_int_equal(rdma_join_multicast(id, &group.sa, NULL), 0);
    rig_expect(id->channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
}

static int leave(struct rdma_cm_id *id, const char *text)
{
    union rig_addr group = rig_addr(text, 0);

    return rdma_leave_multicast(id, &group.sa);
}

struct join_row {
    enum rdma_port_space ps;
    const char *local, *group, *sgid, *dgid;
};

static void join__event(void **state)
{
    (void)state;
    static const struct join_row rows[] = {
        {RDMA_PS_UDP,   "127.0.0.1", "224.0.1.9",         "::ffff:127.0.0.1", "::ffff:224.0.1.9"      },
        {RDMA_PS_UDP,   "127.0.0.1", "239.255.255.255",   "::ffff:127.0.0.1", "::ffff:239.255.255.255"},
        {RDMA_PS_IPOIB, "127.0.0.1", "224.0.1.9",         "::ffff:127.0.0.1", "::ffff:224.0.1.9"      },
        {RDMA_PS_UDP,   "::1",       "ff0e::9",           "::1",              "ff0e::9"               },
        {RDMA_PS_UDP,   "::1",       "ff02::9",           "::1",              "ff02::9"               },
 /* The device has an address of the group's family, too. */
        {RDMA_PS_UDP,   "::1",       "224.0.1.9",         "::ffff:127.0.0.1", "::ffff:224.0.1.9"      },
        {RDMA_PS_UDP,   "127.0.0.1", "ff0e::9",           "::1",              "ff0e::9"               },
        {RDMA_PS_UDP,   "::1",       "::ffff:224.0.1.19", "::ffff:127.0.0.1", "::ffff:224.0.1.19"     },
    };
    struct rdma_event_channel *ch = rig_channel();

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct join_row *r = &rows[i];
        struct rdma_cm_id *id = member_at(ch, r->ps, r->local, true);
        union rig_addr group = rig_addr(r->group, 0), want = rig_addr(r->dgid, 0);
        union ibv_gid sgid;
        assert_int_equal(rdma_join_multicast(id, &group.sa, &group), 0);
        struct rdma_cm_event *e = rig_event(ch);
        const struct rdma_ud_param *ud = &e->param.ud;
        if (e->event != RDMA_CM_EVENT_MULTICAST_JOIN || e->status != 0)
            fail_msg("%s: %s %d", r->group, rdma_event_str(e->event), e->status);
        assert_ptr_equal(e->id, id);
        assert_ptr_equal(ud->private_data, &group);
        assert_int_equal(ud->private_data_len, 0);
        assert_int_equal(ud->qp_num, 0xffffff);
        assert_int_equal(ud->qkey, RDMA_UDP_QKEY);
        assert_int_equal(ud->ah_attr.is_global, 1);
        assert_int_equal(ud->ah_attr.port_num, 1);
        assert_memory_equal(ud->ah_attr.grh.dgid.raw, &want.v6.sin6_addr, 16);
        assert_int_equal(ibv_query_gid(id->verbs, 1, ud->ah_attr.grh.sgid_index, &sgid), 0);
        want = rig_addr(r->sgid, 0);
        assert_memory_equal(sgid.raw, &want.v6.sin6_addr, 16);
        struct ibv_ah_attr attr = ud->ah_attr;
        struct ibv_ah *ah = ibv_create_ah(id->pd, &attr);
        assert_non_null(ah);
        ibv_destroy_ah(ah);
        rdma_ack_cm_event(e);
        assert_int_equal(rdma_leave_multicast(id, &group.sa), 0);
        rdma_destroy_ep(id);
    }
    rdma_destroy_event_channel(ch);
}

struct refused_row {
    enum rdma_port_space ps;
    const char *local, *group; /* local NULL: not bound */
    int err;
};

static void join__refused(void **state)
{
    (void)state;
    static const struct refused_row rows[] = {
        {RDMA_PS_UDP, NULL,        "224.0.1.9",   EINVAL},
        {RDMA_PS_UDP, "127.0.0.1", NULL,          EINVAL},
        {RDMA_PS_UDP, "127.0.0.1", "127.0.0.1",   EINVAL}, /* no group */
        {RDMA_PS_UDP, "127.0.0.1", "0.0.0.0",     EINVAL},
        {RDMA_PS_UDP, "::1",       "::",          EINVAL},
        {RDMA_PS_UDP, "::1",       "2001:db8::9", EINVAL},
        {RDMA_PS_TCP, "127.0.0.1", "224.0.1.9",   EINVAL}, /* not of datagrams */
        {RDMA_PS_IB,  "127.0.0.1", "224.0.1.9",   EINVAL},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct refused_row *r = &rows[i];
        struct rdma_cm_id *id =
            r->local != NULL ? member_at(NULL, r->ps, r->local, false) : rig_id(NULL, r->ps);
        union rig_addr group = rig_addr(r->group != NULL ? r->group : "::", 0);
        int ret = rdma_join_multicast(id, r->group != NULL ? &group.sa : NULL, NULL);
        if (ret != -1 || errno != r->err)
            fail_msg("row %u: %d, errno %d", i, ret, errno);
        rig_expect_none(id->channel);
        rdma_destroy_id(id);
    }
    struct rdma_cm_id *id = member_at(NULL, RDMA_PS_UDP, "127.0.0.1", false);
    struct sockaddr_storage odd = {.ss_family = AF_UNIX};
    assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&odd, NULL), -1);
    assert_int_equal(errno, EINVAL);
    rdma_destroy_id(id);
}

static void join_ex__rows(void **state)
{
    (void)state;
    enum {
        ADDRESS = RDMA_CM_JOIN_MC_ATTR_ADDRESS,
        FLAGS = RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
        RESERVED = RDMA_CM_JOIN_MC_ATTR_RESERVED
    };
    static const struct {
        uint32_t mask, flags;
        int err;
        bool attached;
    } rows[] = {
        {ADDRESS | FLAGS,            RDMA_MC_JOIN_FLAG_FULLMEMBER,          0,          true },
        {ADDRESS | FLAGS,            RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, 0,          false},
        {ADDRESS,                    77,                                    0,          true },
        {ADDRESS | FLAGS,            RDMA_MC_JOIN_FLAG_RESERVED,            EINVAL,     false},
        {FLAGS,                      RDMA_MC_JOIN_FLAG_FULLMEMBER,          EINVAL,     false},
        {0,                          0,                                     EINVAL,     false},
        {RESERVED,                   0,                                     EOPNOTSUPP, false},
        {RESERVED | ADDRESS | FLAGS, 0,                                     EOPNOTSUPP, false},
    };
    union rig_addr group = rig_addr("224.0.1.9", 0);
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = member(ch);

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rdma_cm_join_mc_attr_ex attr = {
            .comp_mask = rows[i].mask, .join_flags = rows[i].flags, .addr = &group.sa};
        int ret = rdma_join_multicast_ex(id, &attr, NULL);
        if (ret != (rows[i].err == 0 ? 0 : -1) || (ret != 0 && errno != rows[i].err))
            fail_msg("row %u: %d, errno %d", i, ret, errno);
        if (ret != 0)
            continue;
        struct rdma_cm_event *e = rig_event(ch);
        assert_int_equal(e->event, RDMA_CM_EVENT_MULTICAST_JOIN);
        /* Detaching tells whether it was attached. */
        int detached = ibv_detach_mcast(id->qp, &e->param.ud.ah_attr.grh.dgid, 0);
        assert_int_equal(detached, rows[i].attached ? 0 : EINVAL);
        rdma_ack_cm_event(e);
        assert_int_equal(leave(id, "224.0.1.9"), 0);
    }
    assert_int_equal(rdma_join_multicast_ex(id, NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
    rdma_destroy_ep(id);
    rdma_destroy_event_channel(ch);
}

/* A GID as the group, as `mckey -M` has it. */
static void join__by_gid(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = member_at(ch, RDMA_PS_UDP, "::1", true);
    union rig_addr group = rig_addr("ff0e::77", 0), none = rig_addr("fd89::77", 0);
    struct sockaddr_ib sib = {.sib_family = AF_IB};

    memcpy(&sib.sib_addr, &none.v6.sin6_addr, 16);
    assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&sib, NULL), -1);
    assert_int_equal(errno, EINVAL);
    memcpy(&sib.sib_addr, &group.v6.sin6_addr, 16);
    assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&sib, NULL), 0);
    struct rdma_cm_event *e = rig_event(ch);
    assert_int_equal(e->event, RDMA_CM_EVENT_MULTICAST_JOIN);
    assert_memory_equal(e->param.ud.ah_attr.grh.dgid.raw, &group.v6.sin6_addr, 16);
    rdma_ack_cm_event(e);
    assert_int_equal(leave(id, "ff0e::77"), -1); /* another name of it is not what was joined */
    assert_int_equal(errno, EADDRNOTAVAIL);
    assert_int_equal(rdma_leave_multicast(id, (struct sockaddr *)&sib), 0);
    rdma_destroy_ep(id);
    rdma_destroy_event_channel(ch);
}

/* Bound to a loopback address and not resolved: the device comes with the join. */
static void join__bound_only(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = rig_id(ch, RDMA_PS_UDP), *any = rig_id(ch, RDMA_PS_UDP);
    union rig_addr lo = rig_addr("127.0.0.1", 0), wild = rig_addr("0.0.0.0", 0);
    union rig_addr group = rig_addr("224.0.1.9", 0);

    assert_int_equal(rdma_bind_addr(id, &lo.sa), 0);
    join(id, "224.0.1.9");
    assert_non_null(id->verbs);
    assert_int_equal(rdma_bind_addr(any, &wild.sa), 0);
    assert_int_equal(rdma_join_multicast(any, &group.sa, NULL), -1);
    assert_int_equal(errno, EINVAL);
    rdma_destroy_id(id);
    rdma_destroy_id(any);
    rdma_destroy_event_channel(ch);
}

static void leave__rows(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = member(ch);
    struct sockaddr_storage odd = {.ss_family = AF_UNIX};
    union rig_addr group = rig_addr("224.0.1.9", 0);

    assert_int_equal(leave(id, "224.0.1.9"), -1);
    assert_int_equal(errno, EADDRNOTAVAIL);
    assert_int_equal(rdma_leave_multicast(id, NULL), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_leave_multicast(id, (struct sockaddr *)&odd), -1);
    assert_int_equal(errno, EINVAL);
    join(id, "224.0.1.9");
    assert_int_equal(leave(id, "224.0.1.8"), -1);
    assert_int_equal(errno, EADDRNOTAVAIL);
    assert_int_equal(leave(id, "224.0.1.9"), 0);
    assert_int_equal(leave(id, "224.0.1.9"), -1);
    assert_int_equal(errno, EADDRNOTAVAIL);
    /* Before anybody got the event: there is none any more. */
    assert_int_equal(rdma_join_multicast(id, &group.sa, NULL), 0);
    assert_true(rig_readable(ch->fd));
    assert_int_equal(leave(id, "224.0.1.9"), 0);
    rig_expect_none(ch);
    rdma_destroy_ep(id);
    rdma_destroy_event_channel(ch);
}

static void *ack_later(void *event)
{
    usleep(100000);
    rdma_ack_cm_event(event);
    return NULL;
}

static void leave__waits_for_the_acknowledgement(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = member(ch);
    union rig_addr group = rig_addr("224.0.1.9", 0);
    struct timespec from, to;
    pthread_t thread;

    assert_int_equal(rdma_join_multicast(id, &group.sa, NULL), 0);
    struct rdma_cm_event *e = rig_event(ch);
    clock_gettime(CLOCK_MONOTONIC, &from);
    assert_int_equal(pthread_create(&thread, NULL, ack_later, e), 0);
    assert_int_equal(rdma_leave_multicast(id, &group.sa), 0);
    clock_gettime(CLOCK_MONOTONIC, &to);
    assert_true((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000 >= 90);
    pthread_join(thread, NULL);
    rdma_destroy_ep(id);
    rdma_destroy_event_channel(ch);
}

static void *leave_in_thread(void *id)
{
    return leave(id, "224.0.1.9") == 0 ? id : NULL;
}

/* Two that leave at once, while the event of the one join is held: one of them has left. */
static void leave__by_two_threads(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = member(ch);
    union rig_addr group = rig_addr("224.0.1.9", 0);
    pthread_t thread[2];
    void *left[2];

    assert_int_equal(rdma_join_multicast(id, &group.sa, NULL), 0);
    struct rdma_cm_event *e = rig_event(ch);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, leave_in_thread, id), 0);
    usleep(50000);
    rdma_ack_cm_event(e);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_join(thread[i], &left[i]), 0);
    assert_true((left[0] != NULL) != (left[1] != NULL));
    rdma_destroy_ep(id);
    rdma_destroy_event_channel(ch);
}

/* Threads that join and leave one group of one id: who has joined is in it until it leaves. */
static void leave__during_joins(void **state)
{
    (void)state;
    enum { ROUNDS = 200, LEAVERS = 2 };
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = member(ch);
    union rig_addr v6 = rig_addr("::ffff:224.0.1.9", 0);
    union ibv_gid gid;

    memcpy(gid.raw, &v6.v6.sin6_addr, 16);
    for (unsigned round = 0; round < ROUNDS; round++) {
        pthread_t thread[LEAVERS];
        void *left;
        for (unsigned i = 0; i < LEAVERS; i++)
            join(id, "224.0.1.9");
        for (unsigned i = 0; i < LEAVERS; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, leave_in_thread, id), 0);
        join(id, "224.0.1.9");
        for (unsigned i = 0; i < LEAVERS; i++) {
            assert_int_equal(pthread_join(thread[i], &left), 0);
            assert_non_null(left);
        }
        /* Detaching tells whether it was attached. */
        assert_int_equal(ibv_detach_mcast(id->qp, &gid, 0), 0);
        assert_int_equal(leave(id, "224.0.1.9"), 0);
    }
    rdma_destroy_ep(id);
    rdma_destroy_event_channel(ch);
}

/* What goes before what was joined. */
static void end__in_any_order(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    union ibv_gid gid;
    union rig_addr group = rig_addr("::ffff:224.0.1.9", 0);
    memcpy(gid.raw, &group.v6.sin6_addr, 16);

    struct rdma_cm_id *twice = member(ch);
    join(twice, "224.0.1.9");
    join(twice, "224.0.1.9");
    assert_int_equal(leave(twice, "224.0.1.9"), 0);
    assert_int_equal(ibv_attach_mcast(twice->qp, &gid, 0),
                     0); /* it is still, and again is nothing */
    assert_int_equal(leave(twice, "224.0.1.9"), 0);
    assert_int_equal(ibv_detach_mcast(twice->qp, &gid, 0), EINVAL);
    rdma_destroy_ep(twice);

    struct rdma_cm_id *qp_first = member(ch);
    join(qp_first, "224.0.1.9");
    rdma_destroy_qp(qp_first);
    assert_null(qp_first->qp);
    assert_int_equal(leave(qp_first, "224.0.1.9"), 0);
    rdma_destroy_id(qp_first);

    struct rdma_cm_id *never = member(ch);
    join(never, "224.0.1.9");
    struct rdma_cm_id was = *never;
    assert_int_equal(rdma_destroy_id(never), 0);
    assert_int_equal(ibv_destroy_qp(was.qp), 0); /* out of its groups */
    assert_int_equal(ibv_destroy_cq(was.send_cq) | ibv_destroy_cq(was.recv_cq), 0);
    ibv_destroy_comp_channel(was.send_cq_channel);
    ibv_destroy_comp_channel(was.recv_cq_channel);

    struct rdma_cm_id *sync = member_at(NULL, RDMA_PS_UDP, "127.0.0.1", true);
    union rig_addr v4 = rig_addr("224.0.1.9", 0);
    assert_int_equal(rdma_join_multicast(sync, &v4.sa, sync), 0);
    assert_non_null(sync->event);
    assert_ptr_equal(sync->event->param.ud.private_data, sync);
    assert_int_equal(rdma_leave_multicast(sync, &v4.sa), 0);
    rdma_destroy_ep(sync);
    rdma_destroy_event_channel(ch);
}

struct receiver {
    struct rdma_cm_id *id;
    struct ibv_mr *mr;
    uint8_t bytes[GRH_BYTES + MESSAGE_BYTES];
};

static void receiver_open(struct receiver *r, struct rdma_event_channel *ch)
{
    memset(r, 0, sizeof(*r));
    r->id = member(ch);
    r->mr = rdma_reg_msgs(r->id, r->bytes, sizeof(r->bytes));
    assert_non_null(r->mr);
    assert_int_equal(rdma_post_recv(r->id, r, r->bytes, sizeof(r->bytes), r->mr), 0);
}

static bool receiver_got(struct receiver *r)
{
    struct ibv_wc wc;

    for (unsigned i = 0; i < 200; i++) {
        int n = ibv_poll_cq(r->id->recv_cq, 1, &wc);
        if (n == 0) {
            usleep(1000);
            continue;
        }
        assert_int_equal(n, 1);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.byte_len, sizeof(r->bytes));
        return true;
    }
    return false;
}

/* ucx, rxe#31: each member gets what is sent to the group, and who left does not. */
static void case_87__joined_by_cm(void **state)
{
    (void)state;
    struct rdma_event_channel *ch = rig_channel();
    struct receiver r[MANY];
    union rig_addr group = rig_addr("224.0.1.9", 0);
    struct rdma_cm_join_mc_attr_ex only = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
                                                        RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
                                           .join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
                                           .addr = &group.sa};

    for (unsigned i = 0; i < MANY; i++) {
        receiver_open(&r[i], ch);
        join(r[i].id, "224.0.1.9");
    }
    assert_int_equal(leave(r[MANY - 1].id, "224.0.1.9"), 0);
    struct receiver sender;
    receiver_open(&sender, ch);
    assert_int_equal(rdma_join_multicast_ex(sender.id, &only, NULL), 0);
    struct rdma_cm_event *e = rig_event(ch);
    assert_int_equal(e->event, RDMA_CM_EVENT_MULTICAST_JOIN);
    struct ibv_ah *ah = ibv_create_ah(sender.id->pd, &e->param.ud.ah_attr);
    assert_non_null(ah);
    uint8_t message[MESSAGE_BYTES] = "to all of you";
    struct ibv_mr *mr = rdma_reg_msgs(sender.id, message, sizeof(message));
    assert_int_equal(rdma_post_ud_send(sender.id, NULL, message, sizeof(message), mr,
                                       IBV_SEND_SIGNALED, ah, e->param.ud.qp_num),
                     0);
    rdma_ack_cm_event(e);
    for (unsigned i = 0; i < MANY - 1; i++) {
        assert_true(receiver_got(&r[i]));
        assert_memory_equal(r[i].bytes + GRH_BYTES, message, sizeof(message));
    }
    assert_false(receiver_got(&r[MANY - 1]));
    assert_false(receiver_got(&sender));
    ibv_destroy_ah(ah);
    rdma_dereg_mr(mr);
    rdma_dereg_mr(sender.mr);
    rdma_destroy_ep(sender.id);
    for (unsigned i = 0; i < MANY; i++) {
        rdma_dereg_mr(r[i].mr);
        rdma_destroy_ep(r[i].id);
    }
    rdma_destroy_event_channel(ch);
}

/* More groups than a process may be in: told by the event. */
static void join__too_many(void **state)
{
    (void)state;
    enum { GROUPS = 40 };
    struct rdma_event_channel *ch = rig_channel();
    struct rdma_cm_id *id = member(ch);
    unsigned refused = 0;

    for (unsigned i = 0; i < GROUPS; i++) {
        char text[INET_ADDRSTRLEN];
        snprintf(text, sizeof(text), "224.0.2.%u", i);
        union rig_addr group = rig_addr(text, 0);
        assert_int_equal(rdma_join_multicast(id, &group.sa, NULL), 0);
        struct rdma_cm_event *e = rig_event(ch);
        if (e->event == RDMA_CM_EVENT_MULTICAST_ERROR) {
            assert_int_equal(e->status, -ENOMEM);
            refused++;
        } else {
            assert_int_equal(e->event, RDMA_CM_EVENT_MULTICAST_JOIN);
            assert_int_equal(refused, 0);
        }
        rdma_ack_cm_event(e);
    }
    assert_in_range(refused, 1, GROUPS - 10);
    rdma_destroy_ep(id);
    rdma_destroy_event_channel(ch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(join__event),
        cmocka_unit_test(join__refused),
        cmocka_unit_test(join_ex__rows),
        cmocka_unit_test(join__by_gid),
        cmocka_unit_test(join__bound_only),
        cmocka_unit_test(leave__rows),
        cmocka_unit_test(leave__waits_for_the_acknowledgement),
        cmocka_unit_test(leave__by_two_threads),
        cmocka_unit_test(leave__during_joins),
        cmocka_unit_test(end__in_any_order),
        cmocka_unit_test(case_87__joined_by_cm),
        cmocka_unit_test(join__too_many),
    };

    return cmocka_run_group_tests(tests, rig_setup, NULL);
}
