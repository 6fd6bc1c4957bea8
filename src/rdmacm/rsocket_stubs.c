/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rsocket_stubs.c: the rsocket functions. Programs that are linked with librdmacm import some of
 * them (rping imports rpoll) without calling them, and a missing symbol would stop them at load.
 * All answer -1 and EOPNOTSUPP, but for rpoll and rselect of no rsockets, which are poll and
 * select.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <sys/uio.h>

#include "rdmacm/rdmacm_newer.h"

#define UNUSED(x) ((void)(x))

static int rsocket_none(void)
{
    errno = EOPNOTSUPP;
    return -1;
}

RDMACM_ABI int rsocket(int domain, int type, int protocol)
{
    UNUSED(domain);
    UNUSED(type);
    UNUSED(protocol);
    return rsocket_none();
}

RDMACM_ABI int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
    UNUSED(socket);
    UNUSED(addr);
    UNUSED(addrlen);
    return rsocket_none();
}

RDMACM_ABI int rlisten(int socket, int backlog)
{
    UNUSED(socket);
    UNUSED(backlog);
    return rsocket_none();
}

RDMACM_ABI int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    UNUSED(socket);
    UNUSED(addr);
    UNUSED(addrlen);
    return rsocket_none();
}

RDMACM_ABI int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
    UNUSED(socket);
    UNUSED(addr);
    UNUSED(addrlen);
    return rsocket_none();
}

RDMACM_ABI int rshutdown(int socket, int how)
{
    UNUSED(socket);
    UNUSED(how);
    return rsocket_none();
}

RDMACM_ABI int rclose(int socket)
{
    UNUSED(socket);
    return rsocket_none();
}

RDMACM_ABI ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
    UNUSED(socket);
    UNUSED(buf);
    UNUSED(len);
    UNUSED(flags);
    return rsocket_none();
}

RDMACM_ABI ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags,
                             struct sockaddr *src_addr, socklen_t *addrlen)
{
    UNUSED(socket);
    UNUSED(buf);
    UNUSED(len);
    UNUSED(flags);
    UNUSED(src_addr);
    UNUSED(addrlen);
    return rsocket_none();
}

RDMACM_ABI ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
    UNUSED(socket);
    UNUSED(msg);
    UNUSED(flags);
    return rsocket_none();
}

RDMACM_ABI ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
    UNUSED(socket);
    UNUSED(buf);
    UNUSED(len);
    UNUSED(flags);
    return rsocket_none();
}

RDMACM_ABI ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
                           const struct sockaddr *dest_addr, socklen_t addrlen)
{
    UNUSED(socket);
    UNUSED(buf);
    UNUSED(len);
    UNUSED(flags);
    UNUSED(dest_addr);
    UNUSED(addrlen);
    return rsocket_none();
}

RDMACM_ABI ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
    UNUSED(socket);
    UNUSED(msg);
    UNUSED(flags);
    return rsocket_none();
}

RDMACM_ABI ssize_t rread(int socket, void *buf, size_t count)
{
    UNUSED(socket);
    UNUSED(buf);
    UNUSED(count);
    return rsocket_none();
}

RDMACM_ABI ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
    UNUSED(socket);
    UNUSED(iov);
    UNUSED(iovcnt);
    return rsocket_none();
}

RDMACM_ABI ssize_t rwrite(int socket, const void *buf, size_t count)
{
    UNUSED(socket);
    UNUSED(buf);
    UNUSED(count);
    return rsocket_none();
}

RDMACM_ABI ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
    UNUSED(socket);
    UNUSED(iov);
    UNUSED(iovcnt);
    return rsocket_none();
}

/* There are no rsockets yet, so every descriptor is an ordinary one. */
RDMACM_ABI int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
    return poll(fds, nfds, timeout);
}

RDMACM_ABI int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
                       struct timeval *timeout)
{
    return select(nfds, readfds, writefds, exceptfds, timeout);
}

RDMACM_ABI int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    UNUSED(socket);
    UNUSED(addr);
    UNUSED(addrlen);
    return rsocket_none();
}

RDMACM_ABI int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    UNUSED(socket);
    UNUSED(addr);
    UNUSED(addrlen);
    return rsocket_none();
}

RDMACM_ABI int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
    UNUSED(socket);
    UNUSED(level);
    UNUSED(optname);
    UNUSED(optval);
    UNUSED(optlen);
    return rsocket_none();
}

RDMACM_ABI int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
    UNUSED(socket);
    UNUSED(level);
    UNUSED(optname);
    UNUSED(optval);
    UNUSED(optlen);
    return rsocket_none();
}

RDMACM_ABI int rfcntl(int socket, int cmd, ...)
{
    UNUSED(socket);
    UNUSED(cmd);
    return rsocket_none();
}

RDMACM_ABI off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
    UNUSED(socket);
    UNUSED(buf);
    UNUSED(len);
    UNUSED(prot);
    UNUSED(flags);
    UNUSED(offset);
    return rsocket_none();
}

RDMACM_ABI int riounmap(int socket, void *buf, size_t len)
{
    UNUSED(socket);
    UNUSED(buf);
    UNUSED(len);
    return rsocket_none();
}

/* Its result is unsigned: an error is all bits set, as rsocket programs test for it. */
RDMACM_ABI size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
    UNUSED(socket);
    UNUSED(buf);
    UNUSED(count);
    UNUSED(offset);
    UNUSED(flags);
    return (size_t)rsocket_none();
}

RDMACM_ABI int repoll_create(int size)
{
    UNUSED(size);
    return rsocket_none();
}

RDMACM_ABI int repoll_create1(int flags)
{
    UNUSED(flags);
    return rsocket_none();
}

RDMACM_ABI int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    UNUSED(epfd);
    UNUSED(op);
    UNUSED(fd);
    UNUSED(event);
    return rsocket_none();
}

RDMACM_ABI int repoll_wait(int epfd, struct epoll_event *events, int max_events, int timeout)
{
    UNUSED(epfd);
    UNUSED(events);
    UNUSED(max_events);
    UNUSED(timeout);
    return rsocket_none();
}
