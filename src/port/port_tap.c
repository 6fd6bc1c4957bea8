/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_tap.c: the capture writer. Records are gathered for each direction and appended by one
 * write, so that processes that share the file never tear one another's. MAC addresses are those of
 * our interfaces; a peer's is not known to a socket and stays zero.
 */
#define _GNU_SOURCE
#include "port/port_tap.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/net.h"
#include "wire/roce.h"

enum {
    PCAP_MAGIC_NS = 0xa1b23c4d,
    PCAP_SNAPLEN = 262144,
    PCAP_LINKTYPE_ETHERNET = 1,
    GATHER_BYTES = 128 << 10,
    MAX_OWN_ADDRS = 256,
};

struct pcap_file_header {
    uint32_t magic;
    uint16_t version_major, version_minor;
    int32_t zone;
    uint32_t sigfigs, snaplen, linktype;
};
_Static_assert(sizeof(struct pcap_file_header) == 24, "as the format has it");

struct pcap_record_header {
    uint32_t sec, nsec, caplen, len;
};

struct own_addr {
    bool v6;
    uint8_t addr[16];
    uint8_t mac[6];
};

/* One direction; its packets come from one thread at a time. */
struct tap_side {
    uint32_t used;
    uint8_t bytes[GATHER_BYTES];
};

struct port_tap {
    struct port_observer observer;
    int fd;
    int64_t wall_offset_ns;
    unsigned own_addrs;
    struct own_addr own[MAX_OWN_ADDRS];
    struct tap_side side[2];
};

static struct port_tap *tap_of(struct port_observer *o)
{
    return (struct port_tap *)((char *)o - offsetof(struct port_tap, observer));
}

static void find_mac(struct ifaddrs *all, const char *name, uint8_t mac[6])
{
    for (struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        if (i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_PACKET &&
            strcmp(i->ifa_name, name) == 0) {
            const struct sockaddr_ll *l = (const struct sockaddr_ll *)i->ifa_addr;
            if (l->sll_halen == 6)
                memcpy(mac, l->sll_addr, 6);
            return;
        }
    }
}

/* Our addresses as they are when the capture begins. */
static void list_own(struct port_tap *tap)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return;
    for (struct ifaddrs *i = all; i != NULL && tap->own_addrs < MAX_OWN_ADDRS; i = i->ifa_next) {
        struct own_addr *a = &tap->own[tap->own_addrs];
        if (i->ifa_addr == NULL)
            continue;
        if (i->ifa_addr->sa_family == AF_INET)
            memcpy(a->addr, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, 4);
        else if (i->ifa_addr->sa_family == AF_INET6)
            memcpy(a->addr, &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr, 16);
        else
            continue;
        a->v6 = i->ifa_addr->sa_family == AF_INET6;
        find_mac(all, i->ifa_name, a->mac);
        tap->own_addrs++;
    }
    freeifaddrs(all);
}

static void mac_of(const struct port_tap *tap, bool v6, const uint8_t *addr, uint8_t mac[6])
{
    for (unsigned i = 0; i < tap->own_addrs; i++) {
        const struct own_addr *a = &tap->own[i];
        if (a->v6 == v6 && memcmp(a->addr, addr, v6 ? 16 : 4) == 0) {
            memcpy(mac, a->mac, 6);
            return;
        }
    }
}

static void side_write(struct port_tap *tap, struct tap_side *s)
{
    uint32_t done = 0;
    while (done < s->used && tap->fd >= 0) {
        ssize_t r = write(tap->fd, s->bytes + done, s->used - done);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            break; /* disk full: what is missing is missing */
        done += (uint32_t)r;
    }
    s->used = 0;
}

static void tap_packet(struct port_observer *o, uint64_t now_ns, const struct net_headers *h,
                       const uint8_t *payload, uint32_t bytes, bool sent)
{
    struct port_tap *tap = tap_of(o);
    struct tap_side *s = &tap->side[sent];
    const uint32_t room =
        (uint32_t)sizeof(struct pcap_record_header) + NET_MAX_HEADER_BYTES + bytes;
    if (room > GATHER_BYTES)
        return;
    if (s->used + room > GATHER_BYTES)
        side_write(tap, s);
    struct net_headers full = *h;
    mac_of(tap, h->v6, h->src, full.eth_src);
    mac_of(tap, h->v6, h->dst, full.eth_dst);
    if (full.ttl == 0)
        full.ttl = 64;
    struct pcap_record_header record;
    uint8_t *at = s->bytes + s->used + sizeof(record);
    size_t head = net_build(&full, payload, bytes, at);
    memcpy(at + head, payload, bytes);
    uint64_t wall_ns = now_ns + (uint64_t)tap->wall_offset_ns;
    record.sec = (uint32_t)(wall_ns / 1000000000);
    record.nsec = (uint32_t)(wall_ns % 1000000000);
    record.caplen = record.len = (uint32_t)head + bytes;
    memcpy(s->bytes + s->used, &record, sizeof(record));
    s->used += (uint32_t)sizeof(record) + record.len;
}

static void tap_done(struct port_observer *o, bool sent)
{
    struct port_tap *tap = tap_of(o);
    side_write(tap, &tap->side[sent]);
}

/* The file header, written by whoever comes first. */
static int start_file(int fd)
{
    struct pcap_file_header h = {
        .magic = PCAP_MAGIC_NS,
        .version_major = 2,
        .version_minor = 4,
        .snaplen = PCAP_SNAPLEN,
        .linktype = PCAP_LINKTYPE_ETHERNET,
    };
    struct pcap_file_header there;
    if (flock(fd, LOCK_EX) != 0)
        return -errno;
    struct stat st;
    int err = fstat(fd, &st) != 0 ? -errno : 0;
    if (err == 0 && st.st_size == 0 && write(fd, &h, sizeof(h)) != (ssize_t)sizeof(h))
        err = -EIO;
    else if (err == 0 && st.st_size != 0 && S_ISREG(st.st_mode) &&
             (pread(fd, &there, sizeof(there), 0) != (ssize_t)sizeof(there) ||
              memcmp(&there, &h, sizeof(h)) != 0))
        err = -EINVAL;
    flock(fd, LOCK_UN);
    return err;
}

int port_tap_create(const char *path, int64_t wall_offset_ns, struct port_tap **out)
{
    struct port_tap *tap = calloc(1, sizeof(*tap));
    if (tap == NULL)
        return -ENOMEM;
    tap->observer.packet = tap_packet;
    tap->observer.done = tap_done;
    tap->wall_offset_ns = wall_offset_ns;
    tap->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int err = tap->fd < 0 ? -errno : start_file(tap->fd);
    if (err != 0) {
        port_tap_close(tap);
        return err;
    }
    list_own(tap);
    *out = tap;
    return 0;
}

struct port_observer *port_tap_observer(struct port_tap *tap)
{
    return &tap->observer;
}

void port_tap_abandon(struct port_tap *tap)
{
    if (tap->fd >= 0)
        close(tap->fd);
    tap->fd = -1;
}

void port_tap_close(struct port_tap *tap)
{
    port_tap_abandon(tap);
    free(tap);
}
