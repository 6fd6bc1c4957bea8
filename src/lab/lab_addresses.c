/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_addresses.c: nobody names the machines of many: each looks at its own interfaces, and whoever
 * connects tries what it was told.
 */
#include "lab/lab_addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lab_net.h"

enum { TRY_NS = 2000000000 }; /* one of several addresses, which may lead nowhere */

int lab_network_parse(struct lab_network *n, const char *text, char message[LAB_MESSAGE_BYTES])
{
    char address[64];
    const char *slash = strchr(text, '/');
    size_t length = slash != NULL ? (size_t)(slash - text) : strlen(text);
    *n = (struct lab_network){0};
    if (text[0] == '\0')
        return 0;
    snprintf(address, sizeof(address), "%.*s", (int)(length < 63 ? length : 63), text);
    n->family = inet_pton(AF_INET, address, n->address) == 1    ? AF_INET
                : inet_pton(AF_INET6, address, n->address) == 1 ? AF_INET6
                                                                : 0;
    unsigned most = n->family == AF_INET ? 32 : 128;
    n->bits = most;
    if (slash != NULL) {
        char *end;
        errno = 0;
        unsigned long bits = strtoul(slash + 1, &end, 10);
        bool right = slash[1] >= '0' && slash[1] <= '9' && *end == '\0' && errno == 0;
        n->bits = right && bits <= most ? (unsigned)bits : most + 1;
    }
    if (n->family != 0 && n->bits <= most)
        return 0;
    snprintf(message, LAB_MESSAGE_BYTES,
             "network: '%.100s' is no prefix such as 10.1.0.0/16 or fd00::/8", text);
    return -EINVAL;
}

bool lab_network_has(const struct lab_network *n, int family, const uint8_t *address)
{
    if (n->family == 0)
        return true;
    if (n->family != family)
        return false;
    unsigned whole = n->bits / 8, rest = n->bits % 8;
    uint8_t mask = (uint8_t)(0xff00 >> rest);
    return memcmp(n->address, address, whole) == 0 &&
           (rest == 0 || ((n->address[whole] ^ address[whole]) & mask) == 0);
}

enum standing { SKIPPED = -1, FIRST_V4, THEN_V6, LAST_LOOPBACK, STANDINGS };

static enum standing judge(const struct ifaddrs *i, const uint8_t **bytes)
{
    int family = i->ifa_addr != NULL ? i->ifa_addr->sa_family : 0;
    bool loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
    if ((i->ifa_flags & IFF_UP) == 0)
        return SKIPPED;
    if (family == AF_INET) {
        *bytes = (const uint8_t *)&((const struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr;
        return loopback ? LAST_LOOPBACK : FIRST_V4;
    }
    if (family != AF_INET6)
        return SKIPPED;
    const struct in6_addr *a = &((const struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr;
    *bytes = a->s6_addr;
    return IN6_IS_ADDR_LINKLOCAL(a) ? SKIPPED : loopback ? LAST_LOOPBACK : THEN_V6;
}

json_t *lab_addresses_own(const struct lab_network *n)
{
    json_t *all = json_array();
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) != 0)
        return all;
    for (enum standing s = FIRST_V4; s < STANDINGS; s++) {
        for (const struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
            char text[INET6_ADDRSTRLEN];
            const uint8_t *bytes = NULL;
            if (judge(i, &bytes) != s || !lab_network_has(n, i->ifa_addr->sa_family, bytes))
                continue;
            if (inet_ntop(i->ifa_addr->sa_family, bytes, text, sizeof(text)) != NULL)
                json_array_append_new(all, json_string(text));
        }
    }
    freeifaddrs(list);
    return all;
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

int lab_addresses_connect(const json_t *addresses, uint16_t port, bool same_machine,
                          uint64_t timeout_ns, char message[LAB_MESSAGE_BYTES])
{
    int fd = -EADDRNOTAVAIL;
    size_t i;
    json_t *value;
    uint64_t limit = timeout_ns < TRY_NS || json_array_size(addresses) < 2 ? timeout_ns : TRY_NS;
    snprintf(message, LAB_MESSAGE_BYTES, "it has no address that we could reach");
    json_array_foreach(addresses, i, value)
    {
        char why[LAB_MESSAGE_BYTES];
        const char *address = json_string_value(value);
        if (address == NULL || (is_loopback(address) && !same_machine))
            continue;
        int got = lab_net_connect(address, port, limit, why);
        if (got >= 0) {
            message[0] = '\0';
            return got;
        }
        if (fd == -EADDRNOTAVAIL) /* the first is what a person would have tried */
            lab_message_copy(message, why);
        fd = got;
    }
    return fd;
}
