/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_will.c: what port_will.c and port_service.c read of others: any bytes as a last will, and as
 * a packet to QP 1 of which only the address counts.
 *
 * Input: slot (2), then the will, header and entries; its first bytes are the packet, too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "port/port_udp_priv.h"
#include "wire/cm_msg.h"
#include "wire/rtt.h"
#include "wire_props.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void packet(const uint8_t *data, size_t n)
{
    struct udp_route r;
    udp_service_parse(data, (uint32_t)n, &r);
    PROP(r.slot < UDP_SLOTS);
    if (r.kind == UDP_ROUTE_OWN)
        return;
    /* Whatever goes to another process is a MAD: a probe of ours, or what our own CM would take. */
    const uint8_t *mad = data + BTH_BYTES + DETH_BYTES;
    PROP(n == BTH_BYTES + DETH_BYTES + MAD_BYTES + ICRC_BYTES);
    if (rtt_check(mad, MAD_BYTES)) {
        struct rtt_mad probe;
        rtt_parse(mad, &probe);
        PROP(r.kind == UDP_ROUTE_SLOT && r.slot == probe.to_qpn >> (24 - UDP_SLOT_BITS));
        return;
    }
    PROP(mad_check(mad, MAD_BYTES) == MAD_OK);
    if (cm_msg_check(mad, MAD_BYTES) != MAD_OK)
        return;
    struct cm_msg m;
    cm_msg_parse(mad, &m);
    if (r.kind == UDP_ROUTE_SERVICE)
        PROP(r.service_id ==
             (m.header.attribute == CM_REQ ? m.req.service_id : m.sidr_req.service_id));
    else
        PROP(r.slot == port_udp_id_slot(cm_msg_remote_comm_id(&m)));
}

/* What is believed can be written again, and is the same then. */
static void again(const struct port_connection *c, uint32_t slot)
{
    static uint8_t *memory;
    struct will w = {0};
    struct port_connection back;
    if (memory == NULL)
        memory = calloc(1, WILL_BYTES);
    memset(memory, 0, (size_t)2 * WILL_ENTRY_BYTES);
    PROP(will_create(&w, memory, slot) == 0 && will_note(&w, c) == 0);
    PROP(will_read_header(memory, slot) == 1);
    PROP(will_read_entry(memory + WILL_ENTRY_BYTES, slot, &back));
    PROP(memcmp(&back, c, sizeof(back)) == 0);
    will_forget(&w, 0);
    PROP(!will_read_entry(memory + WILL_ENTRY_BYTES, slot, &back));
    will_fini(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2)
        return 0;
    uint32_t slot = get_be16(data) % UDP_SLOTS;
    data += 2;
    n -= 2;
    packet(data, n);
    if (n < WILL_ENTRY_BYTES)
        return 0;
    int entries = will_read_header(data, slot);
    PROP(entries == -EINVAL || entries == -EALREADY ||
         (entries >= 0 && entries <= WILL_MAX_CONNECTIONS));
    for (size_t at = WILL_ENTRY_BYTES; at + WILL_ENTRY_BYTES <= n; at += WILL_ENTRY_BYTES) {
        struct port_connection c;
        if (!will_read_entry(data + at, slot, &c))
            continue;
        PROP(port_udp_id_slot(c.local_id) == slot);
        PROP(net_addr_is_v4(&c.path.local) == net_addr_is_v4(&c.path.remote));
        again(&c, slot);
    }
    return 0;
}
