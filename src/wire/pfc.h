/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pfc.h: MAC control frames that pause: priority flow control (IEEE 802.1Qbb), and the pause of the
 * whole link (IEEE 802.3 annex 31B). A time of 0 resumes.
 */
#ifndef WIRE_PFC_H
#define WIRE_PFC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PFC_PRIORITIES = 8,
    PFC_FRAME_BYTES = 60, /* without the FCS, with which it is the smallest frame */
    PFC_QUANTUM_BITS = 512,
};

struct pfc_frame {
    uint8_t src[6];
    bool link;                       /* a pause of the link: quanta[0] counts, enabled does not */
    uint8_t enabled;                 /* mask of the priorities that are meant */
    uint16_t quanta[PFC_PRIORITIES]; /* 0: resume */
};

void pfc_build(const struct pfc_frame *p, uint8_t out[PFC_FRAME_BYTES]);
/* n bytes from the destination address on, without FCS. false: it is none. */
bool pfc_parse(const uint8_t *frame, size_t n, struct pfc_frame *out);

#endif
