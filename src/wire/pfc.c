/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pfc.c: see pfc.h.
 */
#include "wire/pfc.h"

#include <string.h>

#include "base/bytes.h"

enum {
    ETHERTYPE_MAC_CONTROL = 0x8808,
    OPCODE_PAUSE = 0x0001,
    OPCODE_PFC = 0x0101,
    AT_TYPE = 12,
    AT_OPCODE = 14,
    AT_BODY = 16, /* of a pause its time; of PFC the class-enable vector, then the times */
    PAUSE_BYTES = AT_BODY + 2,
    PFC_BYTES = AT_BODY + 2 + 2 * PFC_PRIORITIES,
};

/* Reserved: bridges do not forward it. */
static const uint8_t mac_control_address[6] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};

void pfc_build(const struct pfc_frame *p, uint8_t out[PFC_FRAME_BYTES])
{
    memset(out, 0, PFC_FRAME_BYTES);
    memcpy(out, mac_control_address, 6);
    memcpy(out + 6, p->src, 6);
    put_be16(out + AT_TYPE, ETHERTYPE_MAC_CONTROL);
    put_be16(out + AT_OPCODE, p->link ? OPCODE_PAUSE : OPCODE_PFC);
    if (p->link) {
        put_be16(out + AT_BODY, p->quanta[0]);
        return;
    }
    put_be16(out + AT_BODY, p->enabled);
    for (unsigned i = 0; i < PFC_PRIORITIES; i++)
        put_be16(out + AT_BODY + 2 + 2 * i, p->quanta[i]);
}

bool pfc_parse(const uint8_t *frame, size_t n, struct pfc_frame *out)
{
    *out = (struct pfc_frame){0};
    if (n < PAUSE_BYTES || memcmp(frame, mac_control_address, 6) != 0 ||
        get_be16(frame + AT_TYPE) != ETHERTYPE_MAC_CONTROL)
        return false;
    uint16_t opcode = get_be16(frame + AT_OPCODE);
    memcpy(out->src, frame + 6, 6);
    out->link = opcode == OPCODE_PAUSE;
    if (out->link) {
        out->quanta[0] = get_be16(frame + AT_BODY);
        return true;
    }
    if (opcode != OPCODE_PFC || n < PFC_BYTES)
        return false;
    out->enabled = frame[AT_BODY + 1]; /* the high byte is reserved */
    for (unsigned i = 0; i < PFC_PRIORITIES; i++)
        out->quanta[i] = get_be16(frame + AT_BODY + 2 + 2 * i);
    return true;
}
