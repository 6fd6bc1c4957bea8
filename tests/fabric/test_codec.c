/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_codec.c: frames with bytes: what is built is what arrives, a mark shows, a turned bit is
 * seen by the ICRC, pauses are the frames of the standards; and all comes out as without bytes.
 */
#include "rig.h"

#include <errno.h>

#include "fabric/codec.h"
#include "fabric/engine.h"
#include "wire/roce.h"

static void star(struct rig *r, uint32_t hosts, bool bytes)
{
    rig_star(r, hosts, 100, 1000);
    r->config.hosts.engine = true;
    r->config.bytes = bytes;
}

/* A WRITE_ONLY of so many bytes from memory + 3, as an engine would hand it over. */
static uint32_t build(struct rig *r, uint32_t payload_bytes)
{
    static struct train t;
    static const struct nic_path path = {
        .local = {.b = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}},
        .remote = {.b = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}},
        .udp_sport = 0xc001,
        .traffic_class = 3 << 5 | 2,
        .hop_limit = 64,
    };
    uint32_t packet = packet_take(&r->f->pool);
    t.path = &path;
    t.packet[0] = (struct train_packet){.payload_bytes = payload_bytes, .spans = 2};
    t.packet[0].h.bth = (struct bth){.opcode = OP_WRITE_ONLY,
                                     .mig_req = true,
                                     .pkey = PKEY_DEFAULT,
                                     .pad_bytes = roce_pad(payload_bytes),
                                     .dest_qp = 0x123456,
                                     .psn = psn_make(77)};
    t.packet[0].h.reth = (struct reth){0x1122334455667788, 0xabcdef01, payload_bytes};
    uint32_t first = payload_bytes / 2;
    t.span[0] = (struct span){r->f->memory + 3, first};
    t.span[1] = (struct span){r->f->memory + 3 + first, payload_bytes - first};
    r->f->pool.packet[packet] = (struct packet){
        .bytes =
            (uint16_t)(codec_frame_bytes(r->f) + roce_packet_bytes(OP_WRITE_ONLY, payload_bytes)),
        .pcp = 3,
    };
    codec_build(r->f, packet, &t, &t.packet[0]);
    return packet;
}

static void build__parses_to_the_same(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 1, 2, 3, 4, 5, 1023, 1024};
    for (unsigned vlan = 0; vlan < 2; vlan++) {
        struct rig r;
        star(&r, 2, true);
        r.config.hosts.vlan = vlan == 1;
        rig_flow(&r, 0, 1, 100);
        rig_make(&r);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            struct rx_packet rx;
            uint32_t packet = build(&r, sizes[i]);
            for (unsigned marked = 0; marked < 2; marked++) {
                assert_true(codec_parse(r.f, packet, &rx));
                assert_true(rx.icrc_ok);
                assert_int_equal(rx.traffic_class, 3 << 5 | (marked ? 3 : 2));
                assert_int_equal(rx.hop_limit, 64);
                assert_int_equal(rx.src.b[15], 1);
                assert_int_equal(rx.dst.b[15], 2);
                assert_int_equal(rx.h.bth.opcode, OP_WRITE_ONLY);
                assert_int_equal(rx.h.bth.psn.v, 77);
                assert_int_equal(rx.h.bth.dest_qp, 0x123456);
                assert_int_equal(rx.h.reth.rkey, 0xabcdef01);
                assert_int_equal(rx.h.reth.va, 0x1122334455667788);
                assert_int_equal(rx.payload_bytes, sizes[i]);
                assert_memory_equal(rx.payload, r.f->memory + 3, sizes[i]);
                codec_mark(r.f, packet);
            }
            packet_give(&r.f->pool, packet);
        }
        rig_end(&r);
    }
}

/* V21: the CNP of an adapter, for QP 0xd2, to the byte. */
static void build__cnp(void **state)
{
    (void)state;
    static const uint8_t bth[12] = {0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x00, 0xd2};
    static const uint8_t reserved[16];
    static struct train t;
    static const struct nic_path path = {.local = {.b = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}},
                                         .remote = {.b = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}},
                                         .udp_sport = 0xc001,
                                         .hop_limit = 64};
    struct rig r;
    struct rx_packet rx;
    star(&r, 2, true);
    rig_flow(&r, 0, 1, 100);
    rig_make(&r);
    t.path = &path;
    t.packet[0].h.bth =
        (struct bth){.opcode = OPCODE_CNP, .becn = true, .pkey = PKEY_DEFAULT, .dest_qp = 0xd2};
    uint32_t packet = packet_take(&r.f->pool);
    r.f->pool.packet[packet] = (struct packet){
        .bytes = (uint16_t)(codec_frame_bytes(r.f) + roce_packet_bytes(OPCODE_CNP, 0))};
    codec_build(r.f, packet, &t, &t.packet[0]);
    const uint8_t *frame = r.f->frame;
    assert_int_equal(packet, 0);
    assert_int_equal(r.f->frame_bytes[0], 14 + 20 + 8 + 12 + 16 + 4);
    assert_memory_equal(frame + 42, bth, 12);
    assert_memory_equal(frame + 54, reserved, 16);
    assert_true(codec_parse(r.f, packet, &rx));
    assert_true(rx.icrc_ok && rx.h.bth.becn && rx.h.bth.dest_qp == 0xd2);
    rig_end(&r);
}

struct cnps {
    const struct rig *rig;
    struct fabric_tracer tracer;
    uint64_t word[4]; /* one event at a time */
    uint64_t last_ps[8];
    uint32_t n;
};

/* V21: of one flow they leave 50 us apart at least. */
static void note_cnp(void *arg)
{
    struct cnps *c = arg;
    const struct fabric_trace one = rig_event(c->rig, &c->tracer, c->word), *e = &one;
    if (e->frame != PACKET_CNP || e->node == 7) /* the switch sends them on */
        return;
    uint64_t *last = &c->last_ps[e->flow];
    assert_true(*last == 0 || e->time_ps - *last >= 50 * FABRIC_US);
    *last = e->time_ps;
    c->n++;
}

static void engine__cnps_apart(void **state)
{
    (void)state;
    struct rig r;
    struct cnps c = {
        .rig = &r,
        .tracer = {.next = c.word,
                   .enough = c.word + 1,
                   .last_ps = FABRIC_TRACE_ANEW,
                   .full = note_cnp,
                   .arg = &c}
    };
    star(&r, 7, true);
    r.config.hosts.cc = "dcqcn-paper";
    r.config.switches.kmin_bytes = 5000;
    r.config.switches.kmax_bytes = 20000;
    r.config.trace_kinds = 1u << TRACE_SEND;
    r.config.tracer = &c.tracer;
    for (uint32_t i = 0; i < 6; i++)
        rig_flow(&r, i, 6, 2000000);
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_in_range(c.n, 20, 6 * (r.totals.now_ps / (50 * FABRIC_US) + 1));
    rig_end(&r);
}

/* Whichever bit: nothing is taken for whole. */
static void break__is_seen(void **state)
{
    (void)state;
    struct rig r;
    uint32_t unread = 0;
    star(&r, 2, true);
    rig_flow(&r, 0, 1, 100);
    rig_make(&r);
    for (uint32_t where = 0; where < 8 * (12 + 16 + 20 + 4); where++) {
        struct rx_packet rx;
        uint32_t packet = build(&r, 17);
        codec_break(r.f, packet, where);
        bool parsed = codec_parse(r.f, packet, &rx);
        assert_false(parsed && rx.icrc_ok);
        unread += !parsed;
        packet_give(&r.f->pool, packet);
    }
    assert_in_range(unread, 1, 40); /* no such opcode, wrong length */
    rig_end(&r);
}

static void pause__frames_of_the_standards(void **state)
{
    (void)state;
    static const struct {
        bool link;
        uint8_t xoff, xon;
        uint32_t quanta;
        uint8_t body[6]; /* opcode, class-enable vector or time, time of priority 0 */
    } rows[] = {
        {false, 0x08, 0x00, 0xffff,             {0x01, 0x01, 0x00, 0x08, 0x00, 0x00}},
        {false, 0x01, 0x82, 0x0123,             {0x01, 0x01, 0x00, 0x83, 0x01, 0x23}},
        {false, 0x00, 0x08, 0xffff,             {0x01, 0x01, 0x00, 0x08, 0x00, 0x00}},
        {true,  0xff, 0x00, 0x0456,             {0x00, 0x01, 0x04, 0x56, 0x00, 0x00}},
        {true,  0x00, 0xff, 0x0456,             {0x00, 0x01, 0x00, 0x00, 0x00, 0x00}},
        {true,  0xff, 0x00, FABRIC_QUANTA_HELD, {0x00, 0x01, 0xff, 0xff, 0x00, 0x00}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig r;
        uint8_t xoff, xon;
        star(&r, 2, true);
        r.config.switches.link_pause = rows[i].link;
        rig_flow(&r, 0, 1, 100);
        rig_make(&r);
        codec_build_pause(r.f, 0, rows[i].xoff, rows[i].xon, rows[i].quanta);
        assert_memory_equal(r.f->frame, "\x01\x80\xc2\x00\x00\x01", 6);
        assert_memory_equal(r.f->frame + 12, "\x88\x08", 2);
        assert_memory_equal(r.f->frame + 14, rows[i].body, 6);
        codec_parse_pause(r.f, 0, &xoff, &xon);
        assert_int_equal(xoff, rows[i].xoff);
        assert_int_equal(xon, rows[i].xon);
        rig_end(&r);
    }
}

static void assert_same_result(const struct fabric_flow_result *a,
                               const struct fabric_flow_result *b)
{
    assert_int_equal(a->start_ps, b->start_ps);
    assert_int_equal(a->fct_ps, b->fct_ps);
    assert_int_equal(a->failed_ps, b->failed_ps);
    assert_int_equal(a->ideal_ps, b->ideal_ps);
    assert_int_equal(a->retries, b->retries);
    assert_int_equal(a->rnr_naks, b->rnr_naks);
    assert_int_equal(a->cnps, b->cnps);
    assert_int_equal(a->status, b->status);
    assert_memory_equal(a->state, b->state, sizeof(a->state));
}

/* Everything at once, and corruption: the same totals, flows and ports; and with bytes, memory in
 * which nothing has moved. */
static void bytes__change_nothing(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < 4; variant++) {
        struct fabric_totals totals[2];
        struct fabric_flow_result results[2][8];
        struct fabric_port_result ports[2][8];
        for (int bytes = 0; bytes < 2; bytes++) {
            struct rig r;
            star(&r, 5, bytes == 1);
            r.config.hosts.vlan = variant == 1;
            r.config.switches.trust_pcp = variant == 1;
            r.config.switches.link_pause = variant == 2;
            r.config.switches.buffer_bytes = 1 << 20;
            r.config.switches.kmin_bytes = 10000;
            r.config.switches.kmax_bytes = 100000;
            r.link[4].corrupt_ppm = variant == 3 ? 3000 : 0;
            r.link[4].loss_ppm = variant == 3 ? 1000 : 0;
            for (uint32_t i = 0; i < 8; i++) {
                rig_flow(&r, i % 4, 4, i < 4 ? 300000 + i : 800);
                r.flow[i].work =
                    (struct fabric_work){(enum fabric_verb)(i % 6), 50001, 4, 0, false};
            }
            assert_int_equal(rig_run(&r), FABRIC_FINISHED);
            totals[bytes] = r.totals;
            for (uint32_t i = 0; i < 8; i++) {
                fabric_flow_result(r.f, i, &results[bytes][i]);
                fabric_port_result(r.f, i, 3, &ports[bytes][i]);
            }
            for (uint32_t i = 0; bytes == 1 && i < ENGINE_MESSAGE_BYTES; i++)
                assert_int_equal(r.f->memory[i], (uint8_t)(hash_mix(i / 4) >> 8 * (i % 4)));
            rig_end(&r);
        }
        assert_memory_equal(&totals[0], &totals[1], sizeof(totals[0]));
        for (uint32_t i = 0; i < 8; i++)
            assert_same_result(&results[0][i], &results[1][i]);
        assert_memory_equal(ports[0], ports[1], sizeof(ports[0]));
        assert_true((totals[0].drops_icrc > 0) == (variant == 3));
        assert_true(totals[0].ecn_marks > 0);
        assert_true(totals[0].pauses > 0 || variant == 3);
    }
}

/* The bare source has no bytes to give; it counts what is broken all the same. */
static void bytes__of_nobody(void **state)
{
    (void)state;
    struct rig r;
    struct fabric *f;
    uint32_t bad;
    star(&r, 2, true);
    r.config.hosts.engine = false;
    r.link[1].corrupt_ppm = 5000;
    rig_flow(&r, 0, 1, 1000000);
    assert_int_equal(fabric_create(&r.config, &r.topology, r.flow, r.flows, &f, &bad), -EINVAL);
    r.config.bytes = false;
    assert_int_equal(rig_run(&r), FABRIC_FINISHED);
    assert_true(r.totals.drops_icrc > 0);
    assert_int_equal(r.totals.drops_icrc, r.totals.drops);
    assert_int_equal(r.f->pool.in_use, 0);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(build__parses_to_the_same),
        cmocka_unit_test(break__is_seen),
        cmocka_unit_test(build__cnp),
        cmocka_unit_test(engine__cnps_apart),
        cmocka_unit_test(pause__frames_of_the_standards),
        cmocka_unit_test(bytes__change_nothing),
        cmocka_unit_test(bytes__of_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
