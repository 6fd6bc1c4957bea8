/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_net.c: names become addresses here; all waiting has a limit. Keep-alive probes tell of a host
 * that has gone without a word.
 */
#include "lab/lab_net.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/lab_clock.h"

static int resolve(const char *host, uint16_t port, int flags, struct addrinfo **out,
                   char message[LAB_MESSAGE_BYTES])
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    char service[8];
    snprintf(service, sizeof(service), "%u", port);
    int error = getaddrinfo(host, service, &hints, out);
    if (error == 0)
        return 0;
    snprintf(message, LAB_MESSAGE_BYTES, "'%.200s' is no address: %s", host != NULL ? host : "*",
             gai_strerror(error));
    return -EADDRNOTAVAIL;
}

static void set_options(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET,  SO_KEEPALIVE,     1    },
        {IPPROTO_TCP, TCP_KEEPIDLE,     5    },
        {IPPROTO_TCP, TCP_KEEPINTVL,    2    },
        {IPPROTO_TCP, TCP_KEEPCNT,      5    },
        {IPPROTO_TCP, TCP_USER_TIMEOUT, 15000},
        {IPPROTO_TCP, TCP_NODELAY,      1    },
    };
    for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

static int listen_on(const struct addrinfo *a)
{
    int one = 1, zero = 0;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (a->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 8) == 0)
        return fd;
    int error = errno;
    close(fd);
    return -error;
}

int lab_net_listen(const char *address, uint16_t port, char message[LAB_MESSAGE_BYTES])
{
    struct addrinfo *list = NULL;
    int fd = -EADDRNOTAVAIL;
    if (address[0] == '\0') {
        fd = lab_net_listen("::", port, message); /* IPv4, too */
        if (fd >= 0 || fd == -EADDRINUSE || fd == -EACCES)
            return fd;
        message[0] = '\0'; /* of a kernel without IPv6 nobody needs to hear */
        address = "0.0.0.0";
    }
    int error = resolve(address, port, AI_PASSIVE, &list, message);
    if (error != 0)
        return error;
    for (struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next)
        fd = listen_on(a);
    freeaddrinfo(list);
    if (fd < 0)
        snprintf(message, LAB_MESSAGE_BYTES, "cannot listen on %.200s port %u: %s", address, port,
                 strerror(-fd));
    return fd;
}

int lab_net_accept(int listener, uint64_t timeout_ns, char message[LAB_MESSAGE_BYTES])
{
    struct pollfd p = {.fd = listener, .events = POLLIN};
    for (;;) {
        int n = poll(&p, 1, timeout_ns == 0 ? -1 : (int)(timeout_ns / 1000000) + 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0) {
            snprintf(message, LAB_MESSAGE_BYTES, "nobody connected to port %u",
                     lab_net_port(listener));
            return -ETIMEDOUT;
        }
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == EAGAIN || errno == ECONNABORTED))
            continue;
        if (fd < 0) {
            snprintf(message, LAB_MESSAGE_BYTES, "accept: %s", strerror(errno));
            return -errno;
        }
        set_options(fd);
        return fd;
    }
}

static int connect_to(const struct sockaddr *to, socklen_t bytes, uint64_t timeout_ns)
{
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int error = connect(fd, to, bytes) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        socklen_t n = sizeof(error);
        if (poll(&p, 1, (int)(timeout_ns / 1000000) + 1) != 1)
            error = ETIMEDOUT;
        else
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n);
    }
    if (error == 0) {
        set_options(fd);
        return fd;
    }
    close(fd);
    return -error;
}

int lab_net_connect(const char *host, uint16_t port, uint64_t timeout_ns,
                    char message[LAB_MESSAGE_BYTES])
{
    struct addrinfo *list = NULL;
    int fd = -EADDRNOTAVAIL;
    int error = resolve(host, port, 0, &list, message);
    if (error != 0)
        return error;
    for (struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next)
        fd = connect_to(a->ai_addr, a->ai_addrlen, timeout_ns);
    freeaddrinfo(list);
    if (fd < 0)
        snprintf(message, LAB_MESSAGE_BYTES, "cannot reach `lab serve' at %.200s port %u: %s", host,
                 port, strerror(-fd));
    return fd;
}

int lab_net_again(int fd, uint64_t timeout_ns, char message[LAB_MESSAGE_BYTES])
{
    struct sockaddr_storage to = {0};
    socklen_t bytes = sizeof(to);
    int again = getpeername(fd, (struct sockaddr *)&to, &bytes) != 0
                    ? -errno
                    : connect_to((struct sockaddr *)&to, bytes, timeout_ns);
    if (again == -ENOTCONN)
        snprintf(message, LAB_MESSAGE_BYTES,
                 "the peer is gone while connecting once more, for the TCP baseline");
    else if (again < 0)
        snprintf(message, LAB_MESSAGE_BYTES, "cannot connect once more, for the TCP baseline: %s",
                 strerror(-again));
    return again;
}

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage room;
};

uint16_t lab_net_port(int fd)
{
    union address a = {.room = {0}};
    socklen_t bytes = sizeof(a);
    getsockname(fd, &a.any, &bytes);
    return ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
}

const char *lab_net_who(int fd, char out[80])
{
    union address a = {.room = {0}};
    socklen_t bytes = sizeof(a);
    char host[64] = "?", port[8] = "?";
    if (getpeername(fd, &a.any, &bytes) == 0)
        getnameinfo(&a.any, bytes, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(out, 80, "%s port %s", strncmp(host, "::ffff:", 7) == 0 ? host + 7 : host, port);
    return out;
}

int lab_net_gid(int fd, uint8_t gid[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    union address a = {.room = {0}};
    socklen_t bytes = sizeof(a);
    if (getsockname(fd, &a.any, &bytes) != 0)
        return -errno;
    if (a.any.sa_family == AF_INET6) {
        memcpy(gid, &a.v6.sin6_addr, 16);
        return 0;
    }
    if (a.any.sa_family != AF_INET)
        return -EAFNOSUPPORT;
    memcpy(gid, mapped, 12);
    memcpy(gid + 12, &a.v4.sin_addr, 4);
    return 0;
}
