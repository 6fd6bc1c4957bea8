/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_addresses.h: by which addresses other machines may reach this one, and trying those of
 * another.
 */
#ifndef LAB_LAB_ADDRESSES_H
#define LAB_LAB_ADDRESSES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lab/lab_settings.h"

/* A prefix such as 10.1.0.0/16 or fd00::/8; "" has all addresses. */
struct lab_network {
    int family; /* 0: any */
    unsigned bits;
    uint8_t address[16];
};

/* 0, or -EINVAL and a message. */
int lab_network_parse(struct lab_network *n, const char *text, char message[LAB_MESSAGE_BYTES]);
bool lab_network_has(const struct lab_network *n, int family, const uint8_t *address);
/* Texts of our addresses in the network: IPv4 first, loopback last; none that are link-local, which
 * say nothing without the interface of who asks. */
json_t *lab_addresses_own(const struct lab_network *n);
/* A connection to the first address that takes it; those of loopback only where the machine is
 * ours. -errno and a message otherwise. */
int lab_addresses_connect(const json_t *addresses, uint16_t port, bool same_machine,
                          uint64_t timeout_ns, char message[LAB_MESSAGE_BYTES]);

#endif
