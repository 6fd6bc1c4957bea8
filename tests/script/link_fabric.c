/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link_fabric.c: the same dialogues with the engine as a host of the fabric (src/fabric/engine.c):
 * two hosts and the link between them, frames with bytes and an ICRC. At the other end is the
 * dialogue's peer. Frames take no time, so that what the dialogues say about it holds; and while
 * the peer speaks the host's transmitter is busy, so that what it hears adds up.
 */
#include "link.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "fabric/codec.h"
#include "fabric/engine.h"
#include "wire/net.h"
#include "wire/opcode.h"
#include "wire/roce.h"

enum { HOST, PEER, BUSY_PS_BITS = 56, PACKETS = 4096 };
#define BUSY_PS (UINT64_C(1) << BUSY_PS_BITS) /* longer than any dialogue */

static struct {
    struct fabric *f;
    struct fabric_link link;
    struct fabric_flow flow;
    uint8_t is_switch[2];
    struct link_sink *sink;
    struct endpoint_ops peer;
    struct nic *own_nic; /* the host's, while the dialogue's is in its place */
    struct qp *own_qp;
    bool reached;
} l;

_Static_assert(LINK_BEGIN_NS == ENGINE_EPOCH_NS, "the host's clock");

/* Whether a port would have let this packet in: the frame must be one that can be read. */
static bool readable(const struct step *st)
{
    const struct opcode_info *o = opcode_info((uint8_t)st->what);
    return o->name != NULL && st->len <= PATH_MTU_MAX_BYTES &&
           (st->len == 0 || (o->flags & OPF_PAYLOAD) != 0);
}

const char *link_refuses(const struct dialogue *d)
{
    for (const struct step *st = d->steps; st->kind != END; st++) {
        if (st->kind == TRAIN)
            return "a port of the fabric takes frames, it does not count trains";
        if ((st->kind == IN && (st->odd & ODD_V6) != 0) || (st->kind == POST && st->ah == AH_OTHER))
            return "frames of the fabric are IPv4";
        if (st->kind == IN && !readable(st))
            return "no such frame can be read: wire/ drops it before the engine";
    }
    return NULL;
}

static void peer_receive(struct fabric *f, struct endpoint *e, uint32_t packet)
{
    struct rx_packet rx;
    (void)e;
    assert_true(codec_parse(f, packet, &rx));
    assert_true(rx.icrc_ok);
    const uint8_t *roce = rx.payload - opcode_info(rx.h.bth.opcode)->header_bytes;
    const struct nic_path path = {
        .local = rx.src,
        .remote = rx.dst,
        .udp_sport = get_be16(roce - UDP_HEADER_BYTES),
        .traffic_class = rx.traffic_class,
        .hop_limit = rx.hop_limit,
    };
    l.sink->packet(l.sink, &rx, &path);
    packet_give(&f->pool, packet);
}

static uint32_t peer_pull(struct fabric *f, struct endpoint *e, unsigned priority)
{
    (void)f, (void)e, (void)priority;
    return PACKET_NONE;
}

static void peer_timer(struct fabric *f, struct endpoint *e)
{
    (void)f, (void)e;
    l.reached = true;
}

/* Everything that happens up to then: of events of one moment the peer's timer is the last. */
static void run_to(uint64_t now_ns)
{
    l.reached = false;
    sched_put(&l.f->sched, l.f->endpoint[PEER].timer, (now_ns - LINK_BEGIN_NS) * 1000);
    while (!l.reached)
        assert_int_equal(fabric_run(l.f, 1), FABRIC_RUNNING);
}

static void hold(bool busy)
{
    struct port *p = &l.f->port[l.f->endpoint[HOST].port];
    p->busy_until_ps = busy ? BUSY_PS : l.f->sched.now_ps;
    if (!busy)
        egress_kick(l.f, l.f->endpoint[HOST].port);
}

void link_create(const struct setup *with, struct nic *nic, struct link_sink *sink)
{
    struct fabric_config config;
    uint32_t bad;
    memset(&l, 0, sizeof(l));
    fabric_defaults(&config);
    config.hosts.engine = true;
    config.hosts.payload_bytes = PATH_MTU_MAX_BYTES;
    config.hosts.window_bytes = with->window_bytes;
    config.bytes = true;
    config.max_packets = PACKETS;
    l.link = (struct fabric_link){
        .node = {HOST, PEER},
          .rate_bps = UINT64_C(100000000000)
    };
    l.flow = (struct fabric_flow){.src = HOST,
                                  .dst = PEER,
                                  .bytes = 1,
                                  .start_ps = BUSY_PS,
                                  .group = FABRIC_NO_GROUP,
                                  .after = FABRIC_NO_GROUP};
    const struct fabric_topology topology = {2, 1, l.is_switch, &l.link};
    assert_int_equal(fabric_create(&config, &topology, &l.flow, 1, &l.f, &bad), 0);
    for (uint32_t i = 0; i < l.f->ports; i++)
        l.f->port[i].byte_time = 0;
    l.f->check_ps = 1000 * FABRIC_MS; /* nothing stalls here, and dialogues last for hours */
    l.sink = sink;
    l.peer = (struct endpoint_ops){peer_receive, peer_pull, peer_timer};
    l.f->endpoint[PEER].ops = &l.peer;
    struct engine *g = engine_of(&l.f->endpoint[HOST]);
    l.own_nic = g->nic;
    l.own_qp = l.f->engine_flow[0].qp[0];
    g->nic = nic;
    hold(true);
}

void link_qp(struct qp *qp)
{
    if (qp != NULL)
        qp->owner = &l.f->flow[0];
    l.f->engine_flow[0].qp[0] = qp != NULL ? qp : l.own_qp;
}

void link_destroy(void)
{
    engine_of(&l.f->endpoint[HOST])->nic = l.own_nic;
    fabric_destroy(l.f);
}

void link_input(uint64_t now_ns, const struct rx_packet *rx)
{
    static struct train t; /* one packet, as if an engine had sent it */
    const struct nic_path path = {
        .local = rx->src,
        .remote = rx->dst,
        .udp_sport = 0xc321,
        .traffic_class = rx->traffic_class,
        .hop_limit = rx->hop_limit,
    };
    uint32_t packet = packet_take(&l.f->pool);
    uint32_t bytes = roce_packet_bytes(rx->h.bth.opcode, rx->payload_bytes);
    assert_int_not_equal(packet, PACKET_NONE);
    t.path = &path;
    t.packet[0] = (struct train_packet){.h = rx->h, .payload_bytes = rx->payload_bytes, .spans = 1};
    t.span[0] = (struct span){rx->payload, rx->payload_bytes};
    l.f->pool.packet[packet] = (struct packet){
        .dst = HOST,
        .bytes = (uint16_t)(codec_frame_bytes(l.f) + bytes),
        .payload_bytes = (uint16_t)rx->payload_bytes,
        .kind = PACKET_DATA,
    };
    codec_build(l.f, packet, &t, &t.packet[0]);
    if (!rx->icrc_ok)
        codec_break(l.f, packet, 8 * bytes - 1);
    egress_put(l.f, l.f->endpoint[PEER].port, packet);
    run_to(now_ns);
}

void link_drain(uint64_t now_ns)
{
    struct endpoint *e = &l.f->endpoint[HOST];
    e->ops->timer(l.f, e); /* the program may have posted */
    hold(false);
    run_to(now_ns);
    hold(true);
}

void link_trains(uint64_t now_ns, unsigned n)
{
    (void)now_ns, (void)n;
    fail_msg("refused, yet asked for");
}

void link_pass(uint64_t from_ns, uint64_t to_ns, bool sends)
{
    if (sends)
        link_drain(from_ns);
    else
        l.f->endpoint[HOST].ops->timer(l.f, &l.f->endpoint[HOST]);
    hold(!sends);
    run_to(to_ns);
    hold(true);
}
