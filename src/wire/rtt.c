/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rtt.c: see rtt.h.
 */
#include "wire/rtt.h"

#include <string.h>

#include "base/bytes.h"

enum {
    AT_RESERVED = 36,
    AT_OUI = 37,
    AT_FROM_QPN = 44,
    AT_STAMP = 48,
    AT_HELD = 56,
    MAX_QPN = 0xffffff,
};

bool rtt_check(const uint8_t *mad, size_t n)
{
    struct mad_header h;
    if (n != MAD_BYTES || mad[0] != MAD_BASE_VERSION)
        return false;
    mad_parse(mad, &h);
    return h.mgmt_class == MAD_CLASS_RTT && h.class_version == MAD_CLASS_RTT_VERSION &&
           h.method == MAD_METHOD_SEND && h.status == 0 &&
           (h.attribute == RTT_ATTRIBUTE_PROBE || h.attribute == RTT_ATTRIBUTE_ANSWER) &&
           mad[AT_RESERVED] == 0 && get_be24(mad + AT_OUI) == RTT_OUI &&
           get_be32(mad + RTT_TO_QPN_AT) <= MAX_QPN && get_be32(mad + AT_FROM_QPN) <= MAX_QPN &&
           h.tid == get_be64(mad + AT_STAMP);
}

void rtt_parse(const uint8_t *mad, struct rtt_mad *out)
{
    struct mad_header h;
    mad_parse(mad, &h);
    *out = (struct rtt_mad){
        .answer = h.attribute == RTT_ATTRIBUTE_ANSWER,
        .to_qpn = get_be32(mad + RTT_TO_QPN_AT),
        .from_qpn = get_be32(mad + AT_FROM_QPN),
        .stamp_ns = get_be64(mad + AT_STAMP),
        .held_ns = get_be64(mad + AT_HELD),
    };
}

void rtt_build(const struct rtt_mad *m, uint8_t *mad)
{
    const struct mad_header h = {
        .mgmt_class = MAD_CLASS_RTT,
        .class_version = MAD_CLASS_RTT_VERSION,
        .method = MAD_METHOD_SEND,
        .tid = m->stamp_ns,
        .attribute = m->answer ? RTT_ATTRIBUTE_ANSWER : RTT_ATTRIBUTE_PROBE,
    };
    memset(mad, 0, MAD_BYTES);
    mad_build(&h, mad);
    put_be24(mad + AT_OUI, RTT_OUI);
    put_be32(mad + RTT_TO_QPN_AT, m->to_qpn);
    put_be32(mad + AT_FROM_QPN, m->from_qpn);
    put_be64(mad + AT_STAMP, m->stamp_ns);
    put_be64(mad + AT_HELD, m->held_ns);
}
