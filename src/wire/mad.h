/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad.h: the header of a management datagram (MAD), bytes <-> struct mad_header. Every MAD is 256
 * bytes, of which the header takes 24; what follows belongs to the management class. The class
 * that this code knows is communication management (cm_msg.h). IBA 13.4
 */
#ifndef WIRE_MAD_H
#define WIRE_MAD_H

#include <stddef.h>
#include <stdint.h>

enum {
    MAD_BYTES = 256,
    MAD_HEADER_BYTES = 24,
    MAD_BASE_VERSION = 1,
    MAD_CLASS_CM = 7,
    MAD_CLASS_CM_VERSION = 2,
    MAD_METHOD_SEND = 3,
    QPN_GSI = 1, /* general services: where CM MADs go and come from */
};
#define QKEY_GSI 0x80010000u /* of QP 1, in both directions */

struct mad_header {
    uint8_t mgmt_class;
    uint8_t class_version;
    uint8_t method;
    uint16_t status;
    uint64_t tid; /* an answer has that of what it answers */
    uint16_t attribute;
    uint32_t modifier;
};

/* Why bytes are not a MAD that this code takes. */
enum mad_verdict {
    MAD_OK,
    MAD_BAD_LENGTH,        /* not 256 bytes */
    MAD_BAD_BASE_VERSION,  /* not 1 */
    MAD_NOT_CM,            /* another management class */
    MAD_BAD_CLASS_VERSION, /* not 2 */
    MAD_BAD_METHOD,        /* not Send: CM has no other for its messages */
    MAD_BAD_ATTRIBUTE,     /* no CM message has this number */
    MAD_BAD_FIELD,         /* a field that no sender may set so: cm_msg_check */
    MAD_VERDICT_COUNT
};
const char *mad_verdict_name(enum mad_verdict v);

/* Length, base version, class, class version, method. */
enum mad_verdict mad_check(const uint8_t *mad, size_t n);
/* Only after mad_check said MAD_OK. */
void mad_parse(const uint8_t *mad, struct mad_header *h);
/* The inverse; writes MAD_HEADER_BYTES. */
void mad_build(const struct mad_header *h, uint8_t *mad);

#endif
