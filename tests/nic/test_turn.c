/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_turn.c: what a reliable QP sends turn by turn, when it has requests, replies, or both. Rates
 * are in test_pacer.c and test_congestion.c, room of a port in test_output.c.
 */
#include "objects.h"
#include "wire/opcode.h"

enum {
    MTU = 1024,
    READ_BYTES = 150 * MTU, /* five trains: FIRST, MIDDLEs, LAST */
    LONG_BYTES = 40 * MTU,  /* of a WRITE: two trains */
    TURNS = 12,
};

static struct rig {
    struct objects o;
    struct mr *mr;
    struct nic_sink sink;
    char said[TURNS + 1]; /* a letter a train */
    uint32_t psn;         /* the peer's */
    uint8_t memory[READ_BYTES];
} rig;

static char letter(const struct train *t)
{
    unsigned first = opcode_info(t->packet[0].h.bth.opcode)->flags;
    unsigned last = opcode_info(t->packet[t->packets - 1].h.bth.opcode)->flags;
    if ((first & OPF_READ_RESP) != 0)
        return 'D';
    if ((first & OPF_RESPONSE) != 0)
        return 'A';
    return (last & OPF_RESPONSE) != 0 ? 'r' : 'R'; /* an ACK rides behind, or none */
}

static void take(struct nic_sink *sink, const struct train *t)
{
    (void)sink;
    size_t n = strlen(rig.said);
    if (n < TURNS)
        rig.said[n] = letter(t);
}

static void setup(void)
{
    const struct objects_init in = {
        .cap = {8, 8, 1, 1, 0},
          .cqe = 64
    };
    memset(&rig, 0, sizeof(rig));
    rig.sink.train = take;
    objects_create(&rig.o, &in);
    objects_bring(&rig.o, QP_STATE_RTS);
    assert_int_equal(mem_reg(rig.o.pd, rig.memory, READ_BYTES, (uintptr_t)rig.memory,
                             ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ,
                             &rig.mr),
                     0);
    rig.psn = objects_attr(QP_STATE_RTR).rq_psn;
}

static void teardown(void)
{
    mem_mr_revoke(rig.mr);
    mem_mr_free(rig.mr);
    objects_destroy(&rig.o);
}

static void post(unsigned n, uint32_t bytes)
{
    for (unsigned i = 0; i < n; i++) {
        struct nic_sge sge = {(uintptr_t)rig.memory, bytes, rig.mr->key};
        struct nic_send_wr wr = {
            .opcode = WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1, .remote_addr = 4096, .rkey = 1};
        assert_int_equal(wq_post_send(rig.o.qp, &wr), 0);
    }
}

/* The peer's request: a READ of so many bytes, or a WRITE of 8 that asks for an ACK. */
static void asked(enum opcode_op op, uint32_t bytes)
{
    struct rx_packet p = {
        .payload = rig.memory,
        .payload_bytes = op == OP_READ_REQUEST ? 0 : bytes,
        .icrc_ok = true,
    };
    p.h.bth = (struct bth){.opcode = opcode_make(SERVICE_RC, op),
                           .pkey = 0xffff,
                           .dest_qp = rig.o.qp->qpn,
                           .psn = psn_make(rig.psn),
                           .ack_req = true};
    p.h.reth.va = (uintptr_t)rig.memory;
    p.h.reth.rkey = rig.mr->key;
    p.h.reth.dma_len = bytes;
    rig.psn += op == OP_READ_REQUEST ? (bytes + MTU - 1) / MTU : 1;
    nic_input(rig.o.nic, 1, &p, 1);
}

static void next__whose_turn_it_is(void **state)
{
    (void)state;
    static const struct {
        unsigned posted;
        uint32_t bytes; /* of each */
        bool ack, read;
        enum qp_state qp;
        const char *says;
    } rows[] = {
        {0, 0,          false, false, QP_STATE_RTS, ""           },
        {0, 0,          true,  false, QP_STATE_RTS, "A"          },
        {3, 8,          false, false, QP_STATE_RTS, "R"          },
        {3, LONG_BYTES, false, false, QP_STATE_RTS, "RRRRRR"     },
 /* A mere ACK lets one train pass, and rides behind where it fits. */
        {3, 8,          true,  false, QP_STATE_RTS, "r"          },
        {2, LONG_BYTES, true,  false, QP_STATE_RTS, "RARRR"      },
 /* Whoever waits for data gets it first, but not all of it. */
        {0, 0,          false, true,  QP_STATE_RTS, "DDDDD"      },
        {1, LONG_BYTES, false, true,  QP_STATE_RTS, "DRDRDDD"    },
        {3, LONG_BYTES, false, true,  QP_STATE_RTS, "DRDRDRDRDRR"},
        {3, 8,          true,  true,  QP_STATE_RTS, "DRDDDD"     }, /* data acknowledges, too */
  /* No requests in these states, and nothing at all in the last. */
        {3, LONG_BYTES, true,  false, QP_STATE_SQD, "A"          },
        {3, LONG_BYTES, false, true,  QP_STATE_SQD, "DDDDD"      },
        {3, LONG_BYTES, false, false, QP_STATE_SQD, ""           },
        {3, LONG_BYTES, true,  true,  QP_STATE_ERR, ""           },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        setup();
        if (rows[i].ack)
            asked(OP_WRITE_ONLY, 8);
        if (rows[i].read)
            asked(OP_READ_REQUEST, READ_BYTES);
        if (rows[i].qp != QP_STATE_RTS)
            assert_int_equal(objects_step(&rig.o, rows[i].qp), 0);
        post(rows[i].posted, rows[i].bytes);
        for (unsigned turn = 0; turn < TURNS; turn++)
            nic_output(rig.o.nic, 2, &rig.sink, 1);
        assert_string_equal(rig.said, rows[i].says);
        teardown();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next__whose_turn_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
