/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_tap.c: the capture writer. Records are gathered for each direction and appended by one
 * write, so that processes that share the file never tear one another's. A packet between two of
 * them is recorded once, by its sender: who captures to a file binds an abstract unix name for the
 * file and each of its source ports, where the receiver can see it. MAC addresses are those of our
 * interfaces; a peer's is not known to a socket and stays zero.
 */
#define _GNU_SOURCE
#include "port/port_tap.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "wire/net.h"
#include "wire/roce.h"

enum {
    PCAP_MAGIC_NS = 0xa1b23c4d,
    PCAP_SNAPLEN = 262144,
    PCAP_LINKTYPE_ETHERNET = 1,
    GATHER_BYTES = 128 << 10,
    MAX_OWN_ADDRS = 256,
    MAX_CLAIMS = 128, /* source ports of a process, both families */
    KNOWN_PORTS = 256,
};
static const uint64_t KNOWN_FOR_NS = 100000000;

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

/* Whether the process behind a local source port captures to our file. */
struct known_port {
    bool v6, captures;
    uint16_t sport;
    uint64_t until_ns;
};

struct port_tap {
    struct port_observer observer;
    int fd;
    unsigned long long device, inode;
    unsigned claims; /* sending side's */
    int claim_fd[MAX_CLAIMS];
    struct known_port known[KNOWN_PORTS]; /* receiving side's */
    int64_t offset_ns;
    _Atomic bool full; /* a record could not be written: none behind it could be read */
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

static socklen_t claim_address(const struct port_tap *tap, bool v6, uint16_t sport,
                               struct sockaddr_un *a)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "verbena/pcap/%llx:%llx/%d/%u",
                     tap->device, tap->inode, v6 ? 6 : 4, sport);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static void tap_source(struct port_observer *o, bool v6, uint16_t sport)
{
    struct port_tap *tap = tap_of(o);
    struct sockaddr_un a;
    socklen_t n = claim_address(tap, v6, sport, &a);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && tap->claims < MAX_CLAIMS && bind(fd, (struct sockaddr *)&a, n) == 0)
        tap->claim_fd[tap->claims++] = fd;
    else if (fd >= 0)
        close(fd);
}

static bool claimed(const struct port_tap *tap, bool v6, uint16_t sport)
{
    struct sockaddr_un a;
    socklen_t n = claim_address(tap, v6, sport, &a);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool yes = fd >= 0 && connect(fd, (struct sockaddr *)&a, n) == 0;
    if (fd >= 0)
        close(fd);
    return yes;
}

static bool is_own(const struct port_tap *tap, bool v6, const uint8_t *addr)
{
    for (unsigned i = 0; i < tap->own_addrs; i++) {
        if (tap->own[i].v6 == v6 && memcmp(tap->own[i].addr, addr, v6 ? 16 : 4) == 0)
            return true;
    }
    return !v6 && addr[0] == 127;
}

/* Is this received packet in the file already, since its sender wrote it? */
static bool sender_captures(struct port_tap *tap, uint64_t now_ns, const struct net_headers *h)
{
    if (!is_own(tap, h->v6, h->src))
        return false;
    struct known_port *k = &tap->known[h->udp_sport % KNOWN_PORTS];
    if (k->until_ns <= now_ns || k->sport != h->udp_sport || k->v6 != h->v6)
        *k = (struct known_port){h->v6, claimed(tap, h->v6, h->udp_sport), h->udp_sport,
                                 now_ns + KNOWN_FOR_NS};
    return k->captures;
}

static ssize_t tap_write(int fd, const void *bytes, size_t n)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        !file_limit_allows((uint64_t)st.st_size + 1)) {
        errno = EFBIG;
        return -1;
    }
    return write(fd, bytes, n);
}

static void side_write(struct port_tap *tap, struct tap_side *s)
{
    uint32_t done = 0;
    while (done < s->used && tap->fd >= 0 && !atomic_load(&tap->full)) {
        ssize_t r = tap_write(tap->fd, s->bytes + done, s->used - done);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0) {
            if (!atomic_exchange(&tap->full, true))
                fprintf(stderr, "verbena: the capture ends here: %s\n", file_limit_strerror(errno));
            break;
        }
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
    if (room > GATHER_BYTES || (!sent && sender_captures(tap, now_ns, h)))
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
    uint64_t at_ns = now_ns + (uint64_t)tap->offset_ns;
    record.sec = (uint32_t)(at_ns / 1000000000);
    record.nsec = (uint32_t)(at_ns % 1000000000);
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
static int start_file(struct port_tap *tap)
{
    int fd = tap->fd;
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
    struct stat st = {0};
    int err = fstat(fd, &st) != 0 ? -errno : 0;
    ssize_t n = err == 0 && st.st_size == 0 ? tap_write(fd, &h, sizeof(h)) : (ssize_t)sizeof(h);
    if (n != (ssize_t)sizeof(h)) {
        err = n < 0 ? -errno : -ENOSPC;
        /* A part of a header is no capture to whoever comes next. */
        if (n > 0 && ftruncate(fd, 0) != 0)
            err = -EIO;
    } else if (err == 0 && st.st_size != 0 && S_ISREG(st.st_mode) &&
               (pread(fd, &there, sizeof(there), 0) != (ssize_t)sizeof(there) ||
                memcmp(&there, &h, sizeof(h)) != 0)) {
        err = -EINVAL;
    }
    flock(fd, LOCK_UN);
    tap->device = st.st_dev;
    tap->inode = st.st_ino;
    return err;
}

int port_tap_create(const char *path, int64_t offset_ns, struct port_tap **out)
{
    struct port_tap *tap = calloc(1, sizeof(*tap));
    if (tap == NULL)
        return -ENOMEM;
    tap->observer.packet = tap_packet;
    tap->observer.done = tap_done;
    tap->observer.source = tap_source;
    tap->offset_ns = offset_ns;
    /* A pipe whose reader is slow ends the capture, instead of stopping the network. */
    tap->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    int err = tap->fd < 0 ? -errno : start_file(tap);
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
    for (unsigned i = 0; i < tap->claims; i++)
        close(tap->claim_fd[i]);
    tap->claims = 0;
    if (tap->fd >= 0)
        close(tap->fd);
    tap->fd = -1;
}

void port_tap_close(struct port_tap *tap)
{
    port_tap_abandon(tap);
    free(tap);
}
