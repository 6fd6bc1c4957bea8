/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_golden_responder.c: the requests of the soft-RoCE captures in tests/golden/rxe put to our
 * responder, whose answers must be those that the kernel gave. Where the kernel departs from the
 * specification the specification wins: the two places are named in answer_agrees.
 *
 * Memory, keys, rights and receives are made up from the capture: a region for each key that the
 * kernel accepted, with what it read there; a receive for each message that it took.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../golden/pcap_read.h"
#include "../nic/window.h"
#include "nic/nic.h"
#include "wire/aeth.h"
#include "wire/net.h"
#include "wire/opcode.h"
#include "wire/print.h"
#include "wire/roce.h"

enum {
    MAX_PACKETS = 512,
    MAX_KEYS = 8,
    MAX_REGION_BYTES = 16 << 20,
    RECV_BYTES = 65536,
};

struct packet {
    struct roce_headers h;
    const uint8_t *payload;
    uint32_t bytes;
    int from; /* 0: the end that sent the first packet of a QP */
};

struct region {
    uint32_t rkey; /* in the capture */
    uint64_t lo, hi;
    uint8_t *memory;
    struct mr *mr;
    struct mw *mw; /* the key was a window's, that a packet invalidates; else NULL */
};

static struct golden {
    const char *name;
    struct pcap pcap;
    struct packet packet[MAX_PACKETS];
    int packets;
    int responder; /* which end is replayed */
    struct region region[MAX_KEYS];
    int regions;
    uint64_t seen_cell[MAX_KEYS]; /* atomics' addresses whose start value is set */
    int seen_cells;
    struct nic *nic;
    struct pd *pd;
    struct cq *cq;
    struct qp *qp;
    struct mr *recv_mr;
    uint8_t recv[RECV_BYTES];
    struct nic_sink sink;
    int next; /* packet from which the kernel's next answer is looked for */
    int answers;
} g;

static bool is_response(const struct packet *p)
{
    return opcode_info(p->h.bth.opcode)->flags & OPF_RESPONSE;
}

static void load(const char *name)
{
    char path[512];
    uint8_t first_src[16];
    const uint8_t *frame;
    size_t n;
    snprintf(path, sizeof(path), "%s/%s.pcap", GOLDEN_DIR, name);
    memset(&g, 0, sizeof(g));
    g.name = name;
    g.pcap = pcap_open(path);
    while ((frame = pcap_next(&g.pcap, &n, path)) != NULL) {
        struct net_headers net;
        const uint8_t *udp;
        size_t udp_bytes;
        if (net_parse(frame, n, &net, &udp, &udp_bytes) != NET_OK || net.udp_dport != ROCE_UDP_PORT)
            continue;
        struct packet *p = &g.packet[g.packets];
        assert_int_equal(roce_check(udp, udp_bytes), ROCE_OK);
        roce_parse(udp, udp_bytes, &p->h, &p->payload, &p->bytes);
        if (opcode_info(p->h.bth.opcode)->service != SERVICE_RC || p->h.bth.dest_qp <= 1)
            continue;
        if (g.packets == 0)
            memcpy(first_src, net.src, sizeof(first_src));
        p->from = memcmp(first_src, net.src, sizeof(first_src)) != 0;
        g.packets++;
        assert_true(g.packets < MAX_PACKETS);
    }
}

/* The kernel's answer with the PSN of request i, before that PSN is asked again; NULL: none. */
static const struct packet *answer_of(int i)
{
    for (int k = i + 1; k < g.packets; k++) {
        const struct packet *p = &g.packet[k];
        if (!psn_eq(p->h.bth.psn, g.packet[i].h.bth.psn))
            continue;
        if (p->from != g.responder && !is_response(p))
            return NULL;
        if (p->from == g.responder && is_response(p))
            return p;
    }
    return NULL;
}

static bool refused(int i, uint8_t code)
{
    const struct packet *p = answer_of(i);
    return p != NULL && (opcode_info(p->h.bth.opcode)->headers & HDR_AETH) &&
           p->h.aeth.syndrome == aeth_make(AETH_NAK, code);
}

static bool is_request(int i)
{
    return g.packet[i].from != g.responder && !is_response(&g.packet[i]);
}

/* Where a request points to, and how long it is; false: nowhere. */
static bool target(const struct packet *p, uint32_t *rkey, uint64_t *va, uint32_t *bytes)
{
    uint16_t headers = opcode_info(p->h.bth.opcode)->headers;
    if (headers & HDR_ATOMICETH) {
        *rkey = p->h.atomic.rkey;
        *va = p->h.atomic.va;
        *bytes = 8;
        return true;
    }
    *rkey = p->h.reth.rkey;
    *va = p->h.reth.va;
    *bytes = p->h.reth.dma_len;
    return (headers & HDR_RETH) && *bytes != 0;
}

static struct region *find_region(uint32_t rkey)
{
    for (int i = 0; i < g.regions; i++)
        if (g.region[i].rkey == rkey)
            return &g.region[i];
    return NULL;
}

/* A NAK after which the kernel's QP is in error, and takes nothing more. */
static bool is_fatal(const struct packet *p)
{
    return p->from == g.responder && p->h.bth.opcode == OP_ACKNOWLEDGE &&
           aeth_kind(p->h.aeth.syndrome) == AETH_NAK &&
           aeth_value(p->h.aeth.syndrome) != NAK_PSN_SEQUENCE;
}

static void make_window(struct region *r)
{
    bool window = false;
    for (int i = 0; i < g.packets; i++)
        window |= (opcode_info(g.packet[i].h.bth.opcode)->headers & HDR_IETH) &&
                  g.packet[i].h.ieth == r->rkey;
    if (!window)
        return;
    assert_int_equal(mw_create(g.pd, MW_TYPE_2, &r->mw), 0);
    assert_true(window_bind(g.qp, r->mw, r->mr, r->lo, r->hi - r->lo,
                            ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE));
}

static void make_regions(void)
{
    for (int i = 0; i < g.packets && !is_fatal(&g.packet[i]); i++) {
        uint32_t rkey, bytes;
        uint64_t va;
        if (!is_request(i) || !target(&g.packet[i], &rkey, &va, &bytes) ||
            refused(i, NAK_REMOTE_ACCESS) || refused(i, NAK_INVALID_REQUEST))
            continue;
        struct region *r = find_region(rkey);
        if (r == NULL) {
            assert_true(g.regions < MAX_KEYS);
            r = &g.region[g.regions++];
            *r = (struct region){.rkey = rkey, .lo = va, .hi = va + bytes};
        }
        r->lo = va < r->lo ? va : r->lo;
        r->hi = va + bytes > r->hi ? va + bytes : r->hi;
    }
    for (int i = 0; i < g.regions; i++) {
        struct region *r = &g.region[i];
        r->lo &= ~7ull;
        assert_true(r->hi - r->lo <= MAX_REGION_BYTES);
        r->memory = calloc(1, r->hi - r->lo);
        assert_non_null(r->memory);
        assert_int_equal(mem_reg(g.pd, r->memory, r->hi - r->lo, r->lo,
                                 ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE |
                                     ACCESS_REMOTE_ATOMIC | ACCESS_MW_BIND,
                                 &r->mr),
                         0);
        make_window(r);
    }
}

/* Rights, MTU, first PSN and RNR timer, from what went over the wire. */
static void make_attributes(struct nic_qp_attr *a, int first)
{
    a->access_flags = ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;
    a->path_mtu_bytes = 1024;
    a->rq_psn = g.packet[first].h.bth.psn.v;
    for (int i = 0; i < g.packets; i++) {
        const struct packet *p = &g.packet[i];
        uint16_t flags = opcode_info(p->h.bth.opcode)->flags;
        if (flags & OPF_FIRST)
            a->path_mtu_bytes = (uint16_t)p->bytes;
        if (is_request(i) && refused(i, NAK_INVALID_REQUEST))
            a->access_flags &= ~(unsigned)(flags & OPF_READ    ? ACCESS_REMOTE_READ
                                           : flags & OPF_WRITE ? ACCESS_REMOTE_WRITE
                                                               : ACCESS_REMOTE_ATOMIC);
        if (p->h.bth.opcode == OP_ACKNOWLEDGE && aeth_kind(p->h.aeth.syndrome) == AETH_RNR_NAK)
            a->min_rnr_timer = aeth_value(p->h.aeth.syndrome);
    }
}

/* Our answer against the kernel's next one. */
static bool answer_agrees(const struct train_packet *ours, const struct train *t,
                          const struct packet *kernel)
{
    uint8_t opcode = kernel->h.bth.opcode, syndrome = kernel->h.aeth.syndrome;
    uint16_t headers = opcode_info(ours->h.bth.opcode)->headers;
    /* A part of a READ that is asked for again is a READ of its own: FIRST .. LAST, not MIDDLE. */
    if (ours->h.bth.opcode == OP_READ_RESP_FIRST && opcode == OP_READ_RESP_MIDDLE)
        return psn_eq(ours->h.bth.psn, kernel->h.bth.psn);
    /* A SEND that is longer than the receive is an invalid request, not an operational error. */
    if (syndrome == aeth_make(AETH_NAK, NAK_REMOTE_OPERATIONAL))
        syndrome = aeth_make(AETH_NAK, NAK_INVALID_REQUEST);
    if (ours->h.bth.opcode != opcode || !psn_eq(ours->h.bth.psn, kernel->h.bth.psn))
        return false;
    if (headers & HDR_AETH) {
        bool ack = aeth_kind(syndrome) == AETH_ACK; /* the kernel gives no credits */
        if (ack ? aeth_kind(ours->h.aeth.syndrome) != AETH_ACK : ours->h.aeth.syndrome != syndrome)
            return false;
        if (!psn_eq(ours->h.aeth.msn, kernel->h.aeth.msn))
            return false;
    }
    if ((headers & HDR_ATOMICACKETH) && ours->h.atomic_ack != kernel->h.atomic_ack)
        return false;
    if (ours->payload_bytes != kernel->bytes)
        return false;
    return kernel->bytes == 0 ||
           memcmp(t->span[ours->first_span].addr, kernel->payload, kernel->bytes) == 0;
}

static void take_train(struct nic_sink *sink, const struct train *t)
{
    (void)sink;
    for (unsigned i = 0; i < t->packets; i++) {
        char ours[PRINT_LINE_BYTES], kernels[PRINT_LINE_BYTES] = "nothing";
        while (g.next < g.packets &&
               (g.packet[g.next].from != g.responder || !is_response(&g.packet[g.next])))
            g.next++;
        const struct packet *kernel = g.next < g.packets ? &g.packet[g.next++] : NULL;
        print_roce(ours, sizeof(ours), &t->packet[i].h, t->packet[i].payload_bytes);
        if (kernel != NULL)
            print_roce(kernels, sizeof(kernels), &kernel->h, kernel->bytes);
        if (kernel == NULL || !answer_agrees(&t->packet[i], t, kernel))
            fail_msg("%s: we answer %s, the kernel %s", g.name, ours, kernels);
        g.answers++;
    }
}

/* What the kernel read goes into memory before our responder reads it. */
static void prepare_memory(int i)
{
    uint32_t rkey, bytes;
    uint64_t va;
    uint16_t flags = opcode_info(g.packet[i].h.bth.opcode)->flags;
    if (!target(&g.packet[i], &rkey, &va, &bytes) || find_region(rkey) == NULL)
        return;
    struct region *r = find_region(rkey);
    if (flags & OPF_ATOMIC) {
        for (int k = 0; k < g.seen_cells; k++)
            if (g.seen_cell[k] == va)
                return;
        const struct packet *answer = answer_of(i);
        if (answer != NULL && answer->h.bth.opcode == OP_ATOMIC_ACKNOWLEDGE) {
            memcpy(r->memory + (va - r->lo), &answer->h.atomic_ack, 8);
            g.seen_cell[g.seen_cells++] = va;
        }
    }
    if (!(flags & OPF_READ))
        return;
    for (int k = i + 1; k < g.packets; k++) {
        const struct packet *p = &g.packet[k];
        int64_t offset =
            (int64_t)psn_diff(p->h.bth.psn, g.packet[i].h.bth.psn) * g.qp->attr.path_mtu_bytes;
        if (p->from == g.responder && (opcode_info(p->h.bth.opcode)->flags & OPF_READ_RESP) &&
            offset >= 0 && (uint64_t)offset + p->bytes <= bytes)
            memcpy(r->memory + (va - r->lo) + offset, p->payload, p->bytes);
    }
}

static void prepare_receive(int i)
{
    const struct packet *p = &g.packet[i], *answer = answer_of(i);
    uint16_t flags = opcode_info(p->h.bth.opcode)->flags;
    bool takes = ((flags & OPF_SEND) && (flags & (OPF_FIRST | OPF_ONLY))) ||
                 ((flags & OPF_WRITE) && (flags & OPF_IMM));
    if (!takes || !psn_eq(p->h.bth.psn, g.qp->resp.epsn) || wq_recv_posted(g.qp) > 0)
        return;
    if (answer != NULL && answer->h.bth.opcode == OP_ACKNOWLEDGE &&
        aeth_kind(answer->h.aeth.syndrome) == AETH_RNR_NAK)
        return;
    uint32_t bytes = refused(i, NAK_REMOTE_OPERATIONAL) ? p->bytes - 1 : RECV_BYTES;
    struct nic_sge sge = {(uintptr_t)g.recv, bytes, g.recv_mr->key};
    struct nic_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    assert_int_equal(wq_post_recv(g.qp, &wr), 0);
}

static void put(int i)
{
    struct packet *p = &g.packet[i];
    struct nic_wc wc[4];
    struct rx_packet in = {
        .h = p->h,
        .payload = p->payload,
        .payload_bytes = p->bytes,
        .src = g.qp->attr.path.remote,
        .dst = g.qp->attr.path.local,
        .icrc_ok = true,
    };
    uint16_t headers = opcode_info(p->h.bth.opcode)->headers;
    uint32_t rkey = headers & HDR_ATOMICETH ? p->h.atomic.rkey
                    : headers & HDR_IETH    ? p->h.ieth
                                            : p->h.reth.rkey;
    const struct region *r = find_region(rkey);
    uint32_t key = r == NULL ? 0 : r->mw != NULL ? mw_key(r->mw) : r->mr->key;
    in.h.reth.rkey = in.h.atomic.rkey = in.h.ieth = key;
    in.h.bth.dest_qp = g.qp->qpn;
    prepare_memory(i);
    prepare_receive(i);
    nic_input(g.nic, 0, &in, 1);
    while (nic_output(g.nic, 0, &g.sink, 8)) {
    }
    while (cq_poll(g.cq, 4, wc) > 0) {
    }
}

static void engine_create(int first)
{
    struct nic_config config = {.seed = 5};
    struct nic_qp_attr a = {
        .port_num = 1,
        .path.local.b[15] = 1,
        .path.remote.b[15] = 2,
        .max_dest_rd_atomic = 16,
        .dest_qpn = 0x11,
        .retry_cnt = 7,
    };
    assert_int_equal(nic_create(&config, &g.nic), 0);
    assert_int_equal(nic_add_qpns(g.nic, 1), 0);
    assert_int_equal(mem_pd_create(g.nic, &g.pd), 0);
    assert_int_equal(cq_create(g.nic, 64, NULL, &g.cq), 0);
    assert_int_equal(
        mem_reg(g.pd, g.recv, RECV_BYTES, (uintptr_t)g.recv, ACCESS_LOCAL_WRITE, &g.recv_mr), 0);
    struct qp_init init = {
        .type = QP_TYPE_RC, .pd = g.pd, .send_cq = g.cq, .recv_cq = g.cq, .cap = {4, 4, 1, 1, 0}
    };
    assert_int_equal(qp_create(g.nic, &init, &g.qp), 0);
    make_regions();
    make_attributes(&a, first);
    a.state = QP_STATE_INIT;
    assert_int_equal(
        qp_modify(g.qp, &a,
                  QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS),
        0);
    a.state = QP_STATE_RTR;
    assert_int_equal(qp_modify(g.qp, &a,
                               QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
                                   QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC |
                                   QP_ATTR_MIN_RNR_TIMER),
                     0);
    g.sink.train = take_train;
}

static void engine_destroy(void)
{
    qp_unlink(g.qp);
    qp_free(g.qp);
    for (int i = 0; i < g.regions; i++) {
        if (g.region[i].mw != NULL) {
            mw_revoke(g.region[i].mw);
            mw_free(g.region[i].mw);
        }
        mem_mr_revoke(g.region[i].mr);
        mem_mr_free(g.region[i].mr);
        free(g.region[i].memory);
    }
    mem_mr_revoke(g.recv_mr);
    mem_mr_free(g.recv_mr);
    assert_int_equal(cq_destroy(g.cq), 0);
    assert_int_equal(mem_pd_destroy(g.pd), 0);
    nic_destroy(g.nic);
    pcap_close(&g.pcap);
}

/* Plays one end; returns how many answers were compared. */
static int replay(const char *name, int responder)
{
    int first = 0, expected = 0;
    load(name);
    g.responder = responder;
    while (first < g.packets && !is_request(first))
        first++;
    if (first == g.packets) {
        pcap_close(&g.pcap);
        return 0;
    }
    for (int i = 0; i < g.packets; i++)
        expected += g.packet[i].from == responder && is_response(&g.packet[i]);
    engine_create(first);
    for (int i = first; i < g.packets; i++)
        if (is_request(i))
            put(i);
    int answers = g.answers;
    if (answers != expected)
        fail_msg("%s: we answer %d times, the kernel %d times", name, answers, expected);
    engine_destroy();
    return answers;
}

static void replay_both_ends(void **state)
{
    const char *name = *state;
    assert_true(replay(name, 1) + replay(name, 0) > 0);
}

/*
 * Left out: captures whose requests were lost behind the point of capture, or that have several
 * connections, or no answers at all.
 */
static const char *const captures[] = {
    "rc-send",          "rc-send-ipv6",     "rc-send-vlan",     "rc-send-mtu256",
    "rc-send-mtu4096",  "rc-psnwrap",       "rc-write",         "rc-write-mtu512",
    "rc-write-mtu2048", "rc-read",          "rc-read-ipv6",     "rc-read-mtu4096",
    "rc-atomic",        "rc-atomicwrite",   "rc-mixed",         "rc-burst",
    "rc-sendinv",       "rc-badrkey-write", "rc-badrkey-read",  "rc-badrkey-atomic",
    "rc-beyond",        "rc-noaccess",      "rc-toolong",       "rc-rnr",
    "rc-rnr-exceeded",  "rc-loss-ack",      "rc-loss-readresp", "rc-loss-atomicack",
    "ibv_rc_pingpong",  "ib_send_lat",      "ib_write_bw",      "ib_read_bw",
    "ib_atomic_cas",    "ib_atomic_faa",
};

enum { CAPTURES = sizeof(captures) / sizeof(captures[0]) };

int main(void)
{
    struct CMUnitTest tests[CAPTURES];
    for (size_t i = 0; i < CAPTURES; i++)
        tests[i] = (struct CMUnitTest){captures[i], replay_both_ends, NULL, NULL,
                                       (void *)(uintptr_t)captures[i]};
    return _cmocka_run_group_tests("golden_responder", tests, CAPTURES, NULL, NULL);
}
