/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_frames.c: a capture with one of each CM message, as wire/ builds them: cm_frames FILE.
 * test_cm_frames.py asks tshark what it sees in them.
 */
#include <stdio.h>
#include <string.h>

#include "wire/cm_msg.h"
#include "wire/net.h"
#include "wire/roce.h"

static struct cm_msg message(unsigned attribute)
{
    struct cm_msg m = {
        .header = {.attribute = (uint16_t)attribute, .tid = 0x1122334455667788}
    };
    if (attribute == CM_REQ) {
        m.req = (struct cm_req){
            .service_id = 0x1000000000000007,
            .local_qpn = 0x123456,
            .starting_psn = 0xabcdef,
            .remote_cm_response_timeout = 20,
            .local_cm_response_timeout = 19,
            .retry_count = 6,
            .rnr_retry_count = 5,
            .max_cm_retries = 13,
            .path_mtu = 3,
            .srq = true,
            .primary = {.hop_limit = 64, .local_ack_timeout = 18},
        };
    } else if (attribute == CM_SIDR_REQ) {
        m.sidr_req.service_id = 7;
    } else if (attribute != CM_SIDR_REP) {
        m.mra.remote_comm_id = 0x41020304;
    }
    m.mra.local_comm_id = 0x81020304; /* in SIDR_REP the request id */
    if (attribute == CM_REJ) {
        m.rej.about = CM_ABOUT_OTHER;
        m.rej.reason = CM_REJ_CONSUMER_DEFINED;
    } else if (attribute == CM_REP) {
        m.rep.local_qpn = 0x123456;
        m.rep.starting_psn = 0xabcdef;
        m.rep.rnr_retry_count = 5;
    } else if (attribute == CM_DREQ) {
        m.dreq.remote_qpn = 0x123456;
    }
    return m;
}

int main(int argc, char **argv)
{
    static const uint32_t file_header[6] = {0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1};
    FILE *f = argc == 2 ? fopen(argv[1], "wb") : NULL;
    if (f == NULL || fwrite(file_header, sizeof(file_header), 1, f) != 1)
        return 1;
    for (unsigned attribute = CM_REQ; attribute <= CM_APR; attribute++) {
        const struct roce_headers h = {
            .bth = {.opcode = 0x64, .pkey = 0xffff, .dest_qp = QPN_GSI},
            .deth = {.qkey = QKEY_GSI,              .src_qp = QPN_GSI            },
        };
        const struct net_headers net = {
            .src = {10, 0, 0, 1},
            .dst = {10, 0, 0, 2},
            .ttl = 64,
            .udp_sport = 0xc123,
            .udp_dport = 4791
        };
        uint8_t packet[ROCE_MAX_HEADER_BYTES + MAD_BYTES + ICRC_BYTES] = {0};
        uint8_t head[NET_MAX_HEADER_BYTES];
        struct cm_msg m = message(attribute);
        size_t n = roce_build_headers(&h, packet);
        cm_msg_build(&m, packet + n);
        n += MAD_BYTES + ICRC_BYTES;
        size_t head_bytes = net_build(&net, packet, n, head);
        uint32_t bytes = (uint32_t)(head_bytes + n);
        const uint32_t record[4] = {attribute, 0, bytes, bytes};
        if (fwrite(record, sizeof(record), 1, f) != 1 || fwrite(head, head_bytes, 1, f) != 1 ||
            fwrite(packet, n, 1, f) != 1)
            return 1;
    }
    return fclose(f) != 0;
}
