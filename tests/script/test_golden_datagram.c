/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_golden_datagram.c: the datagrams of the soft-RoCE captures in tests/golden/rxe, put to a UD
 * QP of ours and sent by one: what a program gets of each is what the capture holds, the IP header
 * in front included, and what we send for the same request has the kernel's headers. Those to QP 1
 * are MADs.
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

enum { HEADER = 40, RECV_BYTES = HEADER + 4096 };

struct capture {
    const char *name;
    unsigned datagrams, mads; /* in it */
};

static const struct capture captures[] = {
    {"ud-send",           3, 0},
    {"ud-send-ipv6",      3, 0},
    {"ud-send-linklocal", 3, 0},
    {"ibv_ud_pingpong",   8, 0},
    {"cm-udaddy",         4, 2},
    {"cm-rping",          0, 5},
    {"cm-rping-ipv6",     0, 5},
    {"cm-reject",         0, 2},
};

static struct golden {
    struct nic *nic;
    struct pd *pd;
    struct cq *cq;
    struct qp *qp;
    struct mr *mr;
    uint8_t memory[2 * RECV_BYTES]; /* received; to send */
    struct nic_sink sink;
    struct train_packet sent;
    unsigned sends;
} g;

static void take_train(struct nic_sink *sink, const struct train *t)
{
    (void)sink;
    assert_int_equal(t->packets, 1);
    g.sent = t->packet[0];
    g.sends++;
}

static void modify(enum qp_state to, unsigned mask, uint32_t qkey, uint32_t psn)
{
    struct nic_qp_attr attr = {.state = to, .port_num = 1, .qkey = qkey, .sq_psn = psn};
    assert_int_equal(qp_modify(g.qp, &attr, mask | QP_ATTR_STATE), 0);
}

static void create(void)
{
    struct nic_config config = {.seed = 1, .gsi_mads = 4};
    memset(&g, 0, sizeof(g));
    g.sink.train = take_train;
    assert_int_equal(nic_create(&config, &g.nic), 0);
    assert_int_equal(nic_add_qpns(g.nic, 3), 0);
    assert_int_equal(mem_pd_create(g.nic, &g.pd), 0);
    assert_int_equal(
        mem_reg(g.pd, g.memory, sizeof(g.memory), (uintptr_t)g.memory, ACCESS_LOCAL_WRITE, &g.mr),
        0);
    assert_int_equal(cq_create(g.nic, 4, NULL, &g.cq), 0);
    struct qp_init init = {
        .type = QP_TYPE_UD,
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

static struct net_addr addr_of(const struct net_headers *net, const uint8_t *bytes)
{
    struct net_addr a = {{0}};
    if (net->v6) {
        memcpy(a.b, bytes, 16);
    } else {
        a.b[10] = a.b[11] = 0xff;
        memcpy(a.b + 12, bytes, 4);
    }
    return a;
}

static struct nic_wc completion(enum wc_opcode opcode)
{
    struct nic_wc wc;
    assert_int_equal(cq_poll(g.cq, 1, &wc), 1);
    assert_int_equal(wc.status, WC_SUCCESS);
    assert_int_equal(wc.opcode, opcode);
    return wc;
}

/* The 40 bytes against the frame's own IP header; a socket sees neither identification nor, so, its
 * checksum. */
static void check_header(const struct net_headers *net, const uint8_t *ip)
{
    const uint8_t *got = g.memory + (net->v6 ? 0 : 20);
    if (net->v6) {
        assert_memory_equal(got, ip, 40);
        return;
    }
    assert_memory_equal(got, ip, 4);
    assert_memory_equal(got + 6, ip + 6, 4);
    assert_memory_equal(got + 12, ip + 12, 8);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(g.memory[i], 0);
}

static void receive(const struct rx_packet *p, const struct net_headers *net, const uint8_t *ip)
{
    struct nic_sge sge = {(uintptr_t)g.memory, RECV_BYTES, g.mr->key};
    struct nic_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
    struct rx_packet ours = *p;
    ours.h.bth.dest_qp = g.qp->qpn;
    assert_int_equal(wq_post_recv(g.qp, &wr), 0);
    nic_input(g.nic, 1, &ours, 1);
    struct nic_wc wc = completion(WC_RECV);
    bool imm = opcode_info(p->h.bth.opcode)->headers & HDR_IMMDT;
    assert_int_equal(wc.byte_len, HEADER + p->payload_bytes);
    assert_int_equal(wc.src_qp, p->h.deth.src_qp);
    assert_int_equal(wc.flags, WC_GRH | (imm ? WC_WITH_IMM : 0));
    if (imm)
        assert_int_equal(wc.imm_or_inv, p->h.immdt);
    check_header(net, ip);
    assert_memory_equal(g.memory + HEADER, p->payload, p->payload_bytes);
}

static void send(const struct rx_packet *p)
{
    uint8_t *from = g.memory + RECV_BYTES;
    bool imm = opcode_info(p->h.bth.opcode)->headers & HDR_IMMDT;
    struct nic_path path = {.local = p->src, .remote = p->dst, .hop_limit = 64};
    struct nic_sge sge = {(uintptr_t)from, p->payload_bytes, g.mr->key};
    struct nic_send_wr wr = {.opcode = imm ? WR_SEND_WITH_IMM : WR_SEND,
                             .flags = p->h.bth.solicited ? WR_SOLICITED : 0,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .imm_or_inv = p->h.immdt,
                             .path = &path,
                             .dest_qpn = p->h.bth.dest_qp,
                             .qkey = p->h.deth.qkey};
    memcpy(from, p->payload, p->payload_bytes);
    unsigned before = g.sends;
    assert_int_equal(wq_post_send(g.qp, &wr), 0);
    while (nic_output(g.nic, 1, &g.sink, 4)) {
    }
    assert_int_equal(g.sends, before + 1);
    completion(WC_SEND);
    struct roce_headers want = p->h;
    want.bth.mig_req = true; /* the kernel leaves it 0 */
    want.deth.src_qp = g.qp->qpn;
    assert_memory_equal(&g.sent.h.bth, &want.bth, sizeof(want.bth));
    assert_memory_equal(&g.sent.h.deth, &want.deth, sizeof(want.deth));
    assert_int_equal(g.sent.h.immdt, want.immdt);
    assert_int_equal(g.sent.payload_bytes, p->payload_bytes);
}

static void mad(const struct rx_packet *p)
{
    struct nic_mad m;
    nic_input(g.nic, 1, p, 1);
    assert_true(gsi_next(g.nic, &m));
    assert_memory_equal(m.bytes, p->payload, GSI_MAD_BYTES);
    assert_memory_equal(&m.src, &p->src, sizeof(m.src));
    assert_int_equal(m.src_qp, 1);
}

static void golden__datagrams(void **state)
{
    const struct capture *c = *state;
    char path[512];
    const uint8_t *frame;
    size_t n;
    unsigned datagrams = 0, mads = 0;
    snprintf(path, sizeof(path), "%s/%s.pcap", GOLDEN_DIR, c->name);
    struct pcap pcap = pcap_open(path);
    create();
    while ((frame = pcap_next(&pcap, &n, path)) != NULL) {
        struct net_headers net;
        const uint8_t *udp;
        size_t udp_bytes;
        struct rx_packet p = {.icrc_ok = true};
        if (net_parse(frame, n, &net, &udp, &udp_bytes) != NET_OK)
            continue;
        assert_int_equal(roce_check(udp, udp_bytes), ROCE_OK);
        roce_parse(udp, udp_bytes, &p.h, &p.payload, &p.payload_bytes);
        if (opcode_info(p.h.bth.opcode)->service != SERVICE_UD)
            continue;
        p.src = addr_of(&net, net.src);
        p.dst = addr_of(&net, net.dst);
        p.traffic_class = net.tos;
        p.hop_limit = net.ttl;
        if (p.h.bth.dest_qp == GSI_QPN) {
            mad(&p);
            mads++;
            continue;
        }
        modify(QP_STATE_RESET, 0, 0, 0);
        modify(QP_STATE_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY, p.h.deth.qkey, 0);
        modify(QP_STATE_RTR, 0, 0, 0);
        modify(QP_STATE_RTS, QP_ATTR_SQ_PSN, 0, p.h.bth.psn.v);
        receive(&p, &net, udp - UDP_HEADER_BYTES - (net.v6 ? 40 : 20));
        send(&p);
        datagrams++;
    }
    assert_int_equal(datagrams, c->datagrams);
    assert_int_equal(mads, c->mads);
    destroy();
    pcap_close(&pcap);
}

int main(void)
{
    enum { COUNT = sizeof(captures) / sizeof(captures[0]) };
    struct CMUnitTest tests[COUNT];
    for (unsigned i = 0; i < COUNT; i++)
        tests[i] = (struct CMUnitTest){.name = captures[i].name,
                                       .test_func = golden__datagrams,
                                       .initial_state = (void *)(uintptr_t)&captures[i]};
    return _cmocka_run_group_tests("golden_datagram", tests, COUNT, NULL, NULL);
}
