/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_golden_cm.c: every CM message of the kernel's captures parses, says what the captures'
 * READMEs say, and is built again to the same bytes. GOLDEN_DIR is the folder of this file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "pcap_read.h"
#include "wire/cm_ip.h"
#include "wire/cm_msg.h"
#include "wire/net.h"
#include "wire/roce.h"

static const struct {
    const char *name;
    unsigned mads;
    uint64_t service_id;
    uint16_t path_mtu; /* code */
    uint8_t retry_count;
    bool v6;
} captures[] = {
    {"cm-perftest",      11, 0x0000000001064853, 3, 7, false},
    {"cm-reject",        2,  0x0000000001060009, 3, 7, false},
    {"cm-rping-ipv6",    5,  0x0000000001061c06, 3, 7, true },
    {"cm-rping-mtu4096", 5,  0x0000000001061c06, 5, 7, false},
    {"cm-rping",         5,  0x0000000001061c06, 3, 7, false},
    {"cm-ucmatose",      5,  0x0000000001061d2f, 3, 5, false},
    {"cm-udaddy",        2,  0x0000000001111c06, 0, 0, false},
    {"cm-vgold",         5,  0x00000000010648a9, 3, 7, false},
};

/* The next MAD of a capture, or NULL. */
static const uint8_t *next_mad(struct pcap *pcap, const char *path, struct net_headers *net)
{
    const uint8_t *frame, *packet, *payload;
    size_t frame_bytes, n;
    uint32_t payload_bytes;
    struct roce_headers h;
    while ((frame = pcap_next(pcap, &frame_bytes, path)) != NULL) {
        if (net_parse(frame, frame_bytes, net, &packet, &n) != NET_OK)
            continue;
        assert_int_equal(roce_check(packet, n), ROCE_OK);
        roce_parse(packet, n, &h, &payload, &payload_bytes);
        if (h.bth.dest_qp != QPN_GSI)
            continue;
        assert_true(h.deth.qkey == QKEY_GSI);
        assert_int_equal(h.deth.src_qp, QPN_GSI);
        assert_int_equal(payload_bytes, MAD_BYTES);
        return payload;
    }
    return NULL;
}

/* Who sends is the header's source; both are in the packet, too. */
static void check_ip(const struct net_headers *net, const uint8_t *private_data, size_t n, bool v6)
{
    struct cm_ip ip;
    assert_true(cm_ip_parse(private_data, n, &ip));
    assert_int_equal(ip.v6, v6);
    if (v6) {
        assert_memory_equal(ip.src, net->src, 16);
        assert_memory_equal(ip.dst, net->dst, 16);
    } else {
        assert_memory_equal(ip.src + 12, net->src, 4);
        assert_memory_equal(ip.dst + 12, net->dst, 4);
    }
}

static void check_req(const struct cm_req *r, const struct net_headers *net, size_t row)
{
    assert_true(r->service_id == captures[row].service_id);
    assert_int_equal(r->path_mtu, captures[row].path_mtu);
    assert_int_equal(r->transport, CM_TRANSPORT_RC);
    assert_int_equal(r->remote_cm_response_timeout, 20);
    assert_int_equal(r->local_cm_response_timeout, 20);
    assert_int_equal(r->max_cm_retries, 15);
    assert_int_equal(r->retry_count, captures[row].retry_count);
    assert_int_equal(r->pkey, 0xffff);
    assert_int_equal(r->primary.local_lid, CM_LID_PERMISSIVE);
    assert_int_equal(r->primary.remote_lid, CM_LID_PERMISSIVE);
    assert_int_equal(r->primary.local_ack_timeout, 19);
    assert_int_equal(r->primary.hop_limit, 64);
    assert_memory_equal(r->primary.local_gid + 12, captures[row].v6 ? net->src + 12 : net->src, 4);
    assert_memory_equal(r->primary.remote_gid + 12, captures[row].v6 ? net->dst + 12 : net->dst, 4);
    check_ip(net, r->private_data, sizeof(r->private_data), captures[row].v6);
    /* FACTS of the captures: the flow label comes from the two ports. */
    struct cm_ip ip;
    cm_ip_parse(r->private_data, sizeof(r->private_data), &ip);
    assert_int_equal(r->primary.flow_label,
                     (ip.src_port * 31u + cm_ip_service_port(r->service_id)) & 0xfffff);
}

static void golden_cm__all_messages(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++) {
        char path[512];
        uint8_t built[MAD_BYTES];
        struct net_headers net;
        struct cm_msg m;
        const uint8_t *mad;
        unsigned mads = 0;
        snprintf(path, sizeof(path), "%s/rxe/%s.pcap", GOLDEN_DIR, captures[i].name);
        struct pcap pcap = pcap_open(path);
        while ((mad = next_mad(&pcap, path, &net)) != NULL) {
            assert_int_equal(cm_msg_check(mad, MAD_BYTES), MAD_OK);
            cm_msg_parse(mad, &m);
            cm_msg_build(&m, built);
            assert_memory_equal(built, mad, MAD_BYTES);
            if (m.header.attribute == CM_REQ)
                check_req(&m.req, &net, i);
            if (m.header.attribute == CM_SIDR_REQ) {
                assert_true(m.sidr_req.service_id == captures[i].service_id);
                check_ip(&net, m.sidr_req.private_data, sizeof(m.sidr_req.private_data), false);
            }
            if (m.header.attribute == CM_SIDR_REP)
                assert_true(m.sidr_rep.qkey == 0x01234567 && m.sidr_rep.qpn == 0x42);
            if (m.header.attribute == CM_REJ) {
                assert_int_equal(m.rej.reason, CM_REJ_INVALID_SERVICE_ID);
                assert_int_equal(m.rej.local_comm_id, 0);
            }
            if (m.header.attribute == CM_REP)
                assert_true(m.rep.local_ca_guid == 0x505400fffe880003);
            mads++;
        }
        pcap_close(&pcap);
        assert_int_equal(mads, captures[i].mads);
    }
}

/* QPs that REQs and REPs named, with the PSN that was told for what comes to them. */
struct told {
    uint32_t qpn, psn;
    bool heard; /* its first request was there */
};

static void told_add(struct told *told, unsigned *n, const uint8_t *mad)
{
    struct cm_msg m;
    assert_int_equal(cm_msg_check(mad, MAD_BYTES), MAD_OK);
    cm_msg_parse(mad, &m);
    if (m.header.attribute == CM_REQ)
        told[(*n)++] = (struct told){.qpn = m.req.local_qpn, .psn = m.req.starting_psn};
    if (m.header.attribute == CM_REP)
        told[(*n)++] = (struct told){.qpn = m.rep.local_qpn, .psn = m.rep.starting_psn};
    assert_true(*n < 8);
}

/* IBA 12.7: who sends a REQ or REP says from which PSN the other side is to send. Guests count
 * their QPNs alike, so a QP is known by its number and the address that a packet goes to. */
static unsigned starting_psns(const char *name)
{
    char path[512];
    struct net_headers net;
    const uint8_t *frame, *packet, *payload;
    size_t frame_bytes, bytes;
    uint32_t payload_bytes, first_dst = 0;
    unsigned n[2] = {0, 0}, heard = 0;
    struct told told[2][8];
    struct roce_headers h;
    snprintf(path, sizeof(path), "%s/rxe/%s.pcap", GOLDEN_DIR, name);
    struct pcap pcap = pcap_open(path);
    while ((frame = pcap_next(&pcap, &frame_bytes, path)) != NULL) {
        if (net_parse(frame, frame_bytes, &net, &packet, &bytes) != NET_OK)
            continue;
        roce_parse(packet, bytes, &h, &payload, &payload_bytes);
        first_dst = first_dst == 0 ? net.dst[net.v6 ? 15 : 3] : first_dst;
        unsigned to = net.dst[net.v6 ? 15 : 3] == first_dst;
        if (h.bth.dest_qp == QPN_GSI)
            told_add(told[!to], &n[!to], payload);
        for (unsigned i = 0; i < n[to]; i++) {
            struct told *t = &told[to][i];
            if (t->heard || t->qpn != h.bth.dest_qp ||
                (opcode_info(h.bth.opcode)->flags & OPF_RESPONSE) != 0)
                continue;
            assert_int_equal(h.bth.psn.v, t->psn);
            t->heard = true;
            heard++;
        }
    }
    pcap_close(&pcap);
    return heard;
}

static void golden_cm__starting_psn(void **state)
{
    (void)state;
    assert_int_equal(starting_psns("cm-rping"), 2);
    assert_int_equal(starting_psns("cm-rping-ipv6"), 2);
    assert_true(starting_psns("cm-ucmatose") != 0);
    assert_true(starting_psns("cm-vgold") != 0);
    assert_int_equal(starting_psns("cm-reject"), 0); /* no connection, no request */
    assert_int_equal(starting_psns("cm-udaddy"), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(golden_cm__all_messages),
                                              cmocka_unit_test(golden_cm__starting_psn)};
    return cmocka_run_group_tests_name("golden_cm", tests, NULL, NULL);
}
