/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsi.c: QP 1: which packets become MADs for the connection manager and which are dropped, how
 * MADs leave, and what full queues do.
 */
#include <errno.h>

#include "nic/gsi.h"
#include "objects.h"
#include "wire/opcode.h"
#include "wire/roce.h"

enum { ROOM = 8, OUT_MAX = 256 };

static const struct net_addr here = {
    {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}
};
static const struct net_addr there = {
    {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}
};
static const struct net_addr elsewhere = {
    {0xfd, [15] = 7}
};

struct fixture {
    struct nic *nic;
    struct nic_sink sink;
    unsigned trains, packets;
    struct train_packet out[OUT_MAX];
    struct nic_path path[OUT_MAX];
    uint8_t bytes[OUT_MAX][GSI_MAD_BYTES];
};

static void take_train(struct nic_sink *sink, const struct train *t)
{
    struct fixture *f = (struct fixture *)((char *)sink - offsetof(struct fixture, sink));
    f->trains++;
    for (unsigned i = 0; i < t->packets; i++) {
        const struct train_packet *p = &t->packet[i];
        assert_in_range(f->packets, 0, OUT_MAX - 1);
        f->out[f->packets] = *p;
        f->path[f->packets] = *t->path;
        assert_int_equal(p->spans, 1);
        assert_int_equal(t->span[p->first_span].bytes, GSI_MAD_BYTES);
        memcpy(f->bytes[f->packets++], t->span[p->first_span].addr, GSI_MAD_BYTES);
    }
}

static int setup_room(void **state, uint32_t mads)
{
    static struct fixture f;
    struct nic_config config = {.seed = 3, .gsi_mads = mads};
    memset(&f, 0, sizeof(f));
    f.sink.train = take_train;
    assert_int_equal(nic_create(&config, &f.nic), 0);
    assert_int_equal(nic_add_qpns(f.nic, 0), 0); /* the slot that QPN 1 is in */
    *state = &f;
    return 0;
}

static int setup(void **state)
{
    return setup_room(state, ROOM);
}

static int setup_large(void **state)
{
    return setup_room(state, OUT_MAX);
}

static int setup_unserved(void **state)
{
    return setup_room(state, 0);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    nic_destroy(f->nic);
    return 0;
}

static uint8_t mad[GSI_MAD_BYTES + 4];

/* A sound CM MAD of this number. */
static struct rx_packet sound(uint8_t number)
{
    memset(mad, number, sizeof(mad));
    mad[0] = 1;
    mad[1] = MAD_CLASS_CM;
    struct rx_packet p = {
        .payload = mad,
        .payload_bytes = GSI_MAD_BYTES,
        .src = there,
        .dst = here,
        .ifindex = 4,
        .traffic_class = 0x68,
        .icrc_ok = true,
    };
    p.h.bth = (struct bth){
        .opcode = opcode_make(SERVICE_UD, OP_SEND_ONLY),
        .pkey = PKEY_DEFAULT,
        .dest_qp = GSI_QPN,
        .psn = psn_make(number),
        .ack_req = true, /* as the kernel sets it */
    };
    p.h.deth = (struct deth){.qkey = QKEY_GSI, .src_qp = 1};
    return p;
}

static uint64_t count(struct fixture *f, enum nic_counter c)
{
    return counters_get(&f->nic->counters, c);
}

static void gsi_input__hands_over_all_that_an_answer_needs(void **state)
{
    struct fixture *f = *state;
    struct rx_packet p = sound(9);
    struct nic_mad m;
    p.h.deth.src_qp = 0x1234;
    assert_false(gsi_waiting(&f->nic->gsi));
    nic_input(f->nic, 1, &p, 1);
    assert_true(gsi_waiting(&f->nic->gsi));
    assert_true(gsi_next(f->nic, &m));
    assert_memory_equal(&m.src, &there, sizeof(there));
    assert_memory_equal(&m.dst, &here, sizeof(here));
    assert_int_equal(m.ifindex, 4);
    assert_int_equal(m.src_qp, 0x1234);
    assert_int_equal(m.traffic_class, 0x68);
    assert_memory_equal(m.bytes, mad, GSI_MAD_BYTES);
    assert_false(gsi_next(f->nic, &m));
    assert_false(gsi_waiting(&f->nic->gsi));
    assert_int_equal(count(f, COUNTER_gsi_rx_mads), 1);
}

/* IBA 13.4.2 the size; IBA 9.8.3, IBA 10.9.3: in silence. */
static void gsi_input__drops_what_is_not_for_a_connection_manager(void **state)
{
    struct fixture *f = *state;
    static const struct {
        enum nic_counter counter;
        uint8_t opcode, version, class;
        uint16_t pkey;
        uint32_t qkey, bytes;
        bool bad_icrc;
    } row[] = {
        {COUNTER_gsi_rx_mads,          0x64, 1, 7, 0xffff, QKEY_GSI,     256, false},
        {COUNTER_gsi_rx_mads,          0x64, 1, 7, 0x7fff, QKEY_GSI,     256, false},
        {COUNTER_rx_drop_service,      0x65, 1, 7, 0xffff, QKEY_GSI,     256, false},
        {COUNTER_rx_drop_service,      0x04, 1, 7, 0xffff, QKEY_GSI,     256, false},
        {COUNTER_rx_drop_pkey,         0x64, 1, 7, 0x8001, QKEY_GSI,     256, false},
        {COUNTER_qkey_viol_cntr,       0x64, 1, 7, 0xffff, QKEY_GSI - 1, 256, false},
        {COUNTER_qkey_viol_cntr,       0x64, 1, 7, 0xffff, 0,            256, false},
        {COUNTER_rx_drop_malformed,    0x64, 1, 7, 0xffff, QKEY_GSI,     255, false},
        {COUNTER_rx_drop_malformed,    0x64, 1, 7, 0xffff, QKEY_GSI,     260, false},
        {COUNTER_rx_drop_malformed,    0x64, 1, 7, 0xffff, QKEY_GSI,     0,   false},
        {COUNTER_rx_drop_malformed,    0x64, 2, 7, 0xffff, QKEY_GSI,     256, false},
        {COUNTER_gsi_drop_class,       0x64, 1, 3, 0xffff, QKEY_GSI,     256, false},
        {COUNTER_gsi_drop_class,       0x64, 1, 4, 0xffff, QKEY_GSI,     256, false},
        {COUNTER_rx_icrc_encapsulated, 0x64, 1, 7, 0xffff, QKEY_GSI,     256, true },
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct rx_packet p = sound(9);
        struct nic_mad m;
        uint64_t before = count(f, row[i].counter);
        mad[0] = row[i].version;
        mad[1] = row[i].class;
        p.h.bth.opcode = row[i].opcode;
        p.h.bth.pkey = row[i].pkey;
        p.h.deth.qkey = row[i].qkey;
        p.payload_bytes = row[i].bytes;
        p.icrc_ok = !row[i].bad_icrc;
        nic_input(f->nic, 1, &p, 1);
        assert_int_equal(count(f, row[i].counter), before + 1);
        assert_int_equal(gsi_next(f->nic, &m), row[i].counter == COUNTER_gsi_rx_mads);
    }
}

/* The first that came stay: whoever floods displaces nobody. */
static void gsi_input__drops_what_a_full_queue_cannot_hold(void **state)
{
    struct fixture *f = *state;
    struct nic_mad m;
    for (uint8_t i = 0; i < ROOM + 3; i++) {
        struct rx_packet p = sound(i);
        nic_input(f->nic, 1, &p, 1);
    }
    assert_int_equal(count(f, COUNTER_gsi_rx_mads), ROOM);
    assert_int_equal(count(f, COUNTER_gsi_rx_full), 3);
    for (uint8_t i = 0; i < ROOM; i++) {
        assert_true(gsi_next(f->nic, &m));
        assert_int_equal(m.bytes[2], i);
    }
    assert_false(gsi_next(f->nic, &m));
    struct rx_packet p = sound(77);
    nic_input(f->nic, 1, &p, 1);
    assert_true(gsi_next(f->nic, &m));
    assert_int_equal(m.bytes[2], 77);
}

static void gsi_input__unserved_is_no_qp(void **state)
{
    struct fixture *f = *state;
    struct rx_packet p = sound(1);
    struct nic_path path = {.local = here, .remote = there};
    struct nic_mad m;
    nic_input(f->nic, 1, &p, 1);
    assert_int_equal(count(f, COUNTER_rx_drop_no_qp), 1);
    assert_false(gsi_next(f->nic, &m));
    assert_int_equal(gsi_send(f->nic, &path, GSI_QPN, mad), -EOPNOTSUPP);
    assert_false(nic_has_output(f->nic));
}

static void send(struct fixture *f, const struct net_addr *to, uint8_t number, int err)
{
    struct nic_path path = {.local = here, .remote = *to, .hop_limit = 64};
    (void)sound(number);
    assert_int_equal(gsi_send(f->nic, &path, GSI_QPN, mad), err);
    memset(mad, 0xee, sizeof(mad)); /* the caller's again */
}

static void gsi_send__leaves_as_a_datagram_of_qp_1(void **state)
{
    struct fixture *f = *state;
    struct nic_path path = {.local = here, .remote = there, .udp_sport = 0xc777, .hop_limit = 3};
    assert_false(nic_has_output(f->nic));
    (void)sound(5);
    assert_int_equal(gsi_send(f->nic, &path, 0xabcdef, mad), 0);
    send(f, &there, 6, 0);
    assert_true(nic_has_output(f->nic));
    while (nic_output(f->nic, 1, &f->sink, 4)) {
    }
    assert_false(nic_has_output(f->nic));
    assert_int_equal(f->packets, 2);
    for (unsigned i = 0; i < 2; i++) {
        const struct roce_headers *h = &f->out[i].h;
        assert_int_equal(h->bth.opcode, 0x64);
        assert_int_equal(h->bth.pkey, PKEY_DEFAULT);
        assert_int_equal(h->bth.pad_bytes, 0);
        assert_false(h->bth.ack_req);
        assert_int_equal(h->bth.psn.v, (f->out[0].h.bth.psn.v + i) & 0xffffff);
        assert_int_equal(h->deth.qkey, QKEY_GSI);
        assert_int_equal(h->deth.src_qp, 1);
        assert_int_equal(f->out[i].payload_bytes, 256);
        assert_int_equal(f->bytes[i][1], MAD_CLASS_CM);
        assert_int_equal(f->bytes[i][2], 5 + i);
    }
    assert_int_equal(f->out[0].h.bth.dest_qp, 0xabcdef);
    assert_int_equal(f->out[1].h.bth.dest_qp, 1);
    assert_int_equal(f->path[0].udp_sport, 0xc777);
    assert_int_equal(f->path[1].udp_sport, GSI_UDP_SPORT);
    assert_int_equal(count(f, COUNTER_gsi_tx_mads), 2);
    assert_int_equal(count(f, COUNTER_tx_packets), 2);
}

static void gsi_send__to_one_address_by_one_train(void **state)
{
    struct fixture *f = *state;
    for (uint8_t i = 0; i < 100; i++)
        send(f, &there, i, 0);
    send(f, &here, 100, 0);
    send(f, &there, 101, 0);
    while (nic_output(f->nic, 1, &f->sink, 4)) {
    }
    assert_int_equal(f->packets, 102);
    assert_int_equal(f->trains, 4); /* 64, 36, 1, 1 */
    for (uint8_t i = 0; i < 102; i++)
        assert_int_equal(f->bytes[i][2], i);
    assert_memory_equal(&f->path[100].remote, &here, sizeof(here));
}

static void gsi_send__refuses_what_it_cannot_send(void **state)
{
    struct fixture *f = *state;
    struct nic_path path = {.local = here, .remote = there};
    assert_int_equal(gsi_send(f->nic, &path, 0x1000000, mad), -EINVAL);
    send(f, &elsewhere, 0, -EINVAL);
    assert_false(nic_has_output(f->nic));
    for (uint8_t i = 0; i < ROOM; i++)
        send(f, &there, i, 0);
    send(f, &there, ROOM, -EAGAIN);
    assert_false(nic_output(f->nic, 1, &f->sink, 1));
    assert_int_equal(f->packets, ROOM);
    send(f, &there, ROOM, 0);
}

static void gsi_init__limits(void **state)
{
    struct gsi g;
    (void)state;
    assert_int_equal(gsi_init(&g, GSI_MAX_MADS + 1, 0), -EINVAL);
    assert_int_equal(gsi_init(&g, GSI_MAX_MADS, 0), 0);
    assert_int_equal(g.slots, GSI_MAX_MADS);
    gsi_fini(&g);
    assert_int_equal(gsi_init(&g, 5, 0), 0);
    assert_int_equal(g.slots, 8);
    gsi_fini(&g);
}

#define TEST(name, set) cmocka_unit_test_setup_teardown(name, set, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(gsi_input__hands_over_all_that_an_answer_needs, setup),
        TEST(gsi_input__drops_what_is_not_for_a_connection_manager, setup),
        TEST(gsi_input__drops_what_a_full_queue_cannot_hold, setup),
        TEST(gsi_input__unserved_is_no_qp, setup_unserved),
        TEST(gsi_send__leaves_as_a_datagram_of_qp_1, setup),
        TEST(gsi_send__to_one_address_by_one_train, setup_large),
        TEST(gsi_send__refuses_what_it_cannot_send, setup),
        cmocka_unit_test(gsi_init__limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
