/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_will.h: a process's last will: the connections that others must be told to end when it dies
 * without doing so. A piece of memory that the process writes and, after its death, another reads,
 * which must not believe it: its writer may have died in the middle of a store, or mean no good.
 * Layout only; where the memory comes from is port_death.c's business.
 *
 * One machine, hence host order. A header, then entries, each of WILL_ENTRY_BYTES. An entry's
 * sequence number is 0 when nothing was ever written there, odd while it is being written, and even
 * when it is whole; an entry given up is whole, and says nothing (its local id is 0).
 */
#ifndef PORT_PORT_WILL_H
#define PORT_PORT_WILL_H

#include <stdatomic.h>
#include <stdint.h>

#include "port/port_udp.h"

enum {
    WILL_ENTRY_BYTES = 64,
    WILL_MAX_CONNECTIONS = 1 << 14,
    WILL_BYTES = WILL_ENTRY_BYTES * (1 + WILL_MAX_CONNECTIONS),
    WILL_SERVED_OFFSET = 12, /* of will_header.served */
};

struct will_header {
    uint32_t magic;
    uint32_t slot;           /* of all local ids */
    _Atomic uint32_t used;   /* entries from here on were never written */
    _Atomic uint32_t served; /* by the reader: done, 1 */
    uint8_t reserved[48];
};
_Static_assert(sizeof(struct will_header) == WILL_ENTRY_BYTES, "one size");

struct will_entry {
    _Atomic uint32_t sequence;
    struct port_connection connection;
};
_Static_assert(sizeof(struct will_entry) == WILL_ENTRY_BYTES, "one size");

/* The writer's view. */
struct will {
    struct will_header *header; /* NULL: none */
    struct will_entry *entry;
    uint16_t *free; /* entries given up, free_count of them */
    uint32_t free_count;
};

/* memory: WILL_BYTES of zeros. 0 or -ENOMEM. */
int will_create(struct will *w, void *memory, uint32_t slot);
/* Forgets the memory, which stays as it is. */
void will_fini(struct will *w);
/* The entry's index; -ENOSPC: no more; -EINVAL: not a connection of this slot, see will_valid. */
int will_note(struct will *w, const struct port_connection *c);
void will_forget(struct will *w, uint32_t index);

/* The reader's side: bytes as found. */
bool will_valid(const struct port_connection *c, uint32_t slot);
/* Entries to look at; -EINVAL: not the will of this slot; -EALREADY: somebody served it. */
int will_read_header(const uint8_t bytes[WILL_ENTRY_BYTES], uint32_t slot);
/* false: nothing is there, or nothing that makes sense. */
bool will_read_entry(const uint8_t bytes[WILL_ENTRY_BYTES], uint32_t slot,
                     struct port_connection *out);

#endif
