/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * codec.h: the bytes of frames, where they are asked for: Ethernet to ICRC, built by wire/ when an
 * engine hands a packet over, checked and parsed when it arrives. Kept beside the packets, by the
 * same number.
 */
#ifndef FABRIC_CODEC_H
#define FABRIC_CODEC_H

#include "fabric/fabric_priv.h"
#include "verbena/port.h"

/* What is around BTH to ICRC: Ethernet with FCS, perhaps a VLAN tag, IPv4, UDP. */
uint32_t codec_frame_bytes(const struct fabric *f);
/* Room for a frame of each packet. 0 or -ENOMEM. */
int codec_create(struct fabric *f);
void codec_free(struct fabric *f);
/* From here on the functions are for fabrics that have bytes. */
void codec_build(struct fabric *f, uint32_t packet, const struct train *t,
                 const struct train_packet *from);
/* false: no packet can be read from it. The payload points into the frame. */
bool codec_parse(const struct fabric *f, uint32_t packet, struct rx_packet *rx);
/* A switch says that there is congestion. */
void codec_mark(struct fabric *f, uint32_t packet);
/* One of the bits that the ICRC covers is turned; which, `where` says. */
void codec_break(struct fabric *f, uint32_t packet, uint32_t where);
/* A frame that pauses, in bytes and back; the masks and the quanta are set to what it says. */
void codec_build_pause(struct fabric *f, uint32_t packet, uint8_t xoff, uint8_t xon,
                       uint32_t quanta);
void codec_parse_pause(const struct fabric *f, uint32_t packet, uint8_t *xoff, uint8_t *xon);

#endif
