/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_golden_unreliable.c: the UC messages of the soft-RoCE captures in tests/golden/rxe, put to a
 * UC QP of ours and sent by one: a program gets of each what the capture holds, and what we send
 * for the same request are the kernel's packets, header by header.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../golden/pcap_read.h"
#include "nic/nic.h"
#include "wire/net.h"
#include "wire/opcode.h"
#include "wire/roce.h"

enum { MAX_PACKETS = 8, MTU = 1024, AREA = MAX_PACKETS * MTU, PEER = 0x77 };

struct capture {
    const char *name;
    unsigned messages;
};

static const struct capture captures[] = {
    {"uc-send",         6},
    {"uc-loss",         6},
    {"uc-write",        6},
    {"ibv_uc_pingpong", 8},
};

static const struct net_addr here = {
    {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}
};
static const struct net_addr there = {
    {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}
};

static struct golden {
    struct nic *nic;
    struct pd *pd;
    struct cq *cq;
    struct qp *qp;
    struct mr *mr;
    uint8_t memory[2 * AREA]; /* received; to send */
    /* The message that is being collected, and what we send. */
    struct rx_packet packet[MAX_PACKETS];
    unsigned packets;
    uint32_t bytes;
    struct nic_sink sink;
    struct train_packet sent[MAX_PACKETS];
    unsigned sends;
} g;

static void take_train(struct nic_sink *sink, const struct train *t)
{
    (void)sink;
    for (unsigned i = 0; i < t->packets; i++) {
        assert_in_range(g.sends, 0, MAX_PACKETS - 1);
        g.sent[g.sends++] = t->packet[i];
    }
}

static void modify(enum qp_state to, unsigned mask)
{
    uint32_t psn = g.packet[0].h.bth.psn.v;
    struct nic_qp_attr attr = {
        .state = to,
        .port_num = 1,
        .access_flags = ACCESS_REMOTE_WRITE,
        .path = {.local = here, .remote = there},
        .path_mtu_bytes = MTU,
        .dest_qpn = PEER,
        .rq_psn = psn,
        .sq_psn = psn
    };
    assert_int_equal(qp_modify(g.qp, &attr, mask | QP_ATTR_STATE), 0);
}

static void create(void)
{
    struct nic_config config = {.seed = 1};
    memset(&g, 0, sizeof(g));
    g.sink.train = take_train;
    assert_int_equal(nic_create(&config, &g.nic), 0);
    assert_int_equal(nic_add_qpns(g.nic, 3), 0);
    assert_int_equal(mem_pd_create(g.nic, &g.pd), 0);
    assert_int_equal(mem_reg(g.pd, g.memory, sizeof(g.memory), (uintptr_t)g.memory,
                             ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE, &g.mr),
                     0);
    assert_int_equal(cq_create(g.nic, 4, NULL, &g.cq), 0);
    struct qp_init init = {
        .type = QP_TYPE_UC,
        .pd = g.pd,
        .send_cq = g.cq,
        .recv_cq = g.cq,
        .sq_sig_all = true,
        .cap = {2, 2, 1, 1, 0}
    };
    assert_int_equal(qp_create(g.nic, &init, &g.qp), 0);
}

static void destroy(void)
{
    qp_unlink(g.qp);
    qp_free(g.qp);
    assert_int_equal(cq_destroy(g.cq), 0);
    mem_mr_revoke(g.mr);
    mem_mr_free(g.mr);
    assert_int_equal(mem_pd_destroy(g.pd), 0);
    nic_destroy(g.nic);
}

static struct nic_wc completion(enum wc_opcode opcode)
{
    struct nic_wc wc;
    assert_int_equal(cq_poll(g.cq, 1, &wc), 1);
    assert_int_equal(wc.status, WC_SUCCESS);
    assert_int_equal(wc.opcode, opcode);
    return wc;
}

/* The whole message as it is in the capture, into the second half of the memory. */
static void expected(uint8_t *to)
{
    for (unsigned i = 0; i < g.packets; i++) {
        memcpy(to, g.packet[i].payload, g.packet[i].payload_bytes);
        to += g.packet[i].payload_bytes;
    }
}

static void receive(bool write, bool imm)
{
    struct nic_sge sge = {(uintptr_t)g.memory, AREA, g.mr->key};
    struct nic_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
    const struct roce_headers *last = &g.packet[g.packets - 1].h;
    struct nic_wc wc;
    memset(g.memory, 0xcc, AREA);
    assert_int_equal(wq_post_recv(g.qp, &wr), 0);
    for (unsigned i = 0; i < g.packets; i++) {
        struct rx_packet ours = g.packet[i];
        ours.h.bth.dest_qp = g.qp->qpn;
        ours.h.reth.va = (uintptr_t)g.memory;
        ours.h.reth.rkey = g.mr->key;
        assert_int_equal(cq_poll(g.cq, 1, &wc), 0);
        nic_input(g.nic, 1, &ours, 1);
    }
    if (!write || imm) {
        wc = completion(write ? WC_RECV_RDMA_WITH_IMM : WC_RECV);
        assert_int_equal(wc.byte_len, g.bytes);
        assert_int_equal(wc.flags, imm ? WC_WITH_IMM : 0);
        assert_int_equal(wc.src_qp, PEER);
        if (imm)
            assert_int_equal(wc.imm_or_inv, last->immdt);
    }
    assert_memory_equal(g.memory, g.memory + AREA, g.bytes);
    assert_int_equal(g.memory[g.bytes], 0xcc);
}

static void send(bool write, bool imm)
{
    const struct roce_headers *first = &g.packet[0].h, *last = &g.packet[g.packets - 1].h;
    struct nic_sge sge = {(uintptr_t)g.memory + AREA, g.bytes, g.mr->key};
    struct nic_send_wr wr = {
        .opcode = write ? (imm ? WR_RDMA_WRITE_WITH_IMM : WR_RDMA_WRITE)
                        : (imm ? WR_SEND_WITH_IMM : WR_SEND),
        .flags = last->bth.solicited ? WR_SOLICITED : 0,
        .sg_list = &sge,
        .num_sge = 1,
        .imm_or_inv = last->immdt,
        .remote_addr = first->reth.va,
        .rkey = first->reth.rkey,
    };
    assert_int_equal(wq_post_send(g.qp, &wr), 0);
    g.sends = 0;
    while (nic_output(g.nic, 1, &g.sink, 4)) {
    }
    completion(write ? WC_RDMA_WRITE : WC_SEND);
    assert_int_equal(g.sends, g.packets);
    for (unsigned i = 0; i < g.packets; i++) {
        struct roce_headers want = g.packet[i].h;
        const struct roce_headers *got = &g.sent[i].h;
        want.bth.mig_req = true;  /* the kernel leaves it 0, */
        want.bth.ack_req = false; /* and asks now and then for what UC does not have */
        want.bth.dest_qp = PEER;
        assert_memory_equal(&got->bth, &want.bth, sizeof(want.bth));
        assert_memory_equal(&got->reth, &want.reth, sizeof(want.reth));
        assert_int_equal(got->immdt, want.immdt);
        assert_int_equal(g.sent[i].payload_bytes, g.packet[i].payload_bytes);
    }
}

/* A whole message is there. */
static void play(void)
{
    uint16_t flags = opcode_info(g.packet[g.packets - 1].h.bth.opcode)->flags;
    bool write = flags & OPF_WRITE, imm = flags & OPF_IMM;
    expected(g.memory + AREA);
    modify(QP_STATE_RESET, 0);
    modify(QP_STATE_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
    modify(QP_STATE_RTR, QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN);
    modify(QP_STATE_RTS, QP_ATTR_SQ_PSN);
    receive(write, imm);
    send(write, imm);
}

static void golden__messages(void **state)
{
    const struct capture *c = *state;
    char path[512];
    const uint8_t *frame;
    static uint8_t kept[MAX_PACKETS][MTU];
    size_t n;
    unsigned messages = 0;
    snprintf(path, sizeof(path), "%s/%s.pcap", GOLDEN_DIR, c->name);
    struct pcap pcap = pcap_open(path);
    create();
    while ((frame = pcap_next(&pcap, &n, path)) != NULL) {
        struct net_headers net;
        const uint8_t *udp;
        size_t udp_bytes;
        struct rx_packet p = {.icrc_ok = true, .src = there, .dst = here};
        if (net_parse(frame, n, &net, &udp, &udp_bytes) != NET_OK)
            continue;
        assert_int_equal(roce_check(udp, udp_bytes), ROCE_OK);
        roce_parse(udp, udp_bytes, &p.h, &p.payload, &p.payload_bytes);
        const struct opcode_info *info = opcode_info(p.h.bth.opcode);
        if (info->service != SERVICE_UC)
            continue;
        if (info->flags & (OPF_FIRST | OPF_ONLY))
            g.packets = g.bytes = 0;
        assert_in_range(g.packets, 0, MAX_PACKETS - 1);
        assert_in_range(p.payload_bytes, 0, MTU);
        memcpy(kept[g.packets], p.payload, p.payload_bytes);
        p.payload = kept[g.packets];
        g.packet[g.packets++] = p;
        g.bytes += p.payload_bytes;
        if (info->flags & (OPF_LAST | OPF_ONLY)) {
            play();
            messages++;
        }
    }
    assert_int_equal(messages, c->messages);
    destroy();
    pcap_close(&pcap);
}

int main(void)
{
    enum { COUNT = sizeof(captures) / sizeof(captures[0]) };
    struct CMUnitTest tests[COUNT];
    for (unsigned i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){.name = captures[i].name,
                                       .test_func = golden__messages,
                                       .initial_state = (void *)(uintptr_t)&captures[i]};
    return _cmocka_run_group_tests("golden_unreliable", tests, COUNT, NULL, NULL);
}
