/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcap_read.h: the least that reads a classic pcap file of Ethernet frames (little-endian, as all
 * captures here are). A broken file ends the test program.
 */
#ifndef TESTS_PCAP_READ_H
#define TESTS_PCAP_READ_H

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"

struct pcap {
    uint8_t *bytes;
    size_t n, at;
};

static inline void pcap_demand(int condition, const char *path)
{
    if (!condition) {
        fprintf(stderr, "%s: not a usable pcap file\n", path);
        exit(2);
    }
}

static inline struct pcap pcap_open(const char *path)
{
    enum { HEADER = 24, CAP = 1 << 20, MAGIC_US = (int)0xa1b2c3d4, MAGIC_NS = (int)0xa1b23c4d };
    struct pcap p = {.bytes = malloc(CAP)};
    FILE *f = fopen(path, "rb");
    pcap_demand(f != NULL && p.bytes != NULL, path);
    p.n = fread(p.bytes, 1, CAP, f);
    fclose(f);
    pcap_demand(p.n >= HEADER && p.n < CAP, path);
    int magic = (int)get_le32(p.bytes);
    pcap_demand(magic == MAGIC_US || magic == MAGIC_NS, path);
    pcap_demand(get_le32(p.bytes + 20) == 1, path); /* link type Ethernet */
    p.at = HEADER;
    return p;
}

/* The next frame, or NULL at the end. */
static inline const uint8_t *pcap_next(struct pcap *p, size_t *n, const char *path)
{
    enum { RECORD = 16 };
    *n = 0;
    if (p->at == p->n)
        return NULL;
    pcap_demand(p->n - p->at >= RECORD, path);
    *n = get_le32(p->bytes + p->at + 8);
    pcap_demand(*n == get_le32(p->bytes + p->at + 12), path); /* captured whole */
    pcap_demand(p->n - p->at - RECORD >= *n, path);
    const uint8_t *frame = p->bytes + p->at + RECORD;
    p->at += RECORD + *n;
    return frame;
}

static inline void pcap_close(struct pcap *p)
{
    free(p->bytes);
}

#endif
