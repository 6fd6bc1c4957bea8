/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * port_death.c: when a process is killed its peers wait for it until their retries are over. An
 * adapter's driver would tell them at once; here a surviving process of the same address does.
 *
 * A process with connections keeps its last will (port_will.h) in a memfd, and gives it to two
 * other processes, its executors: by connections to their slots, with the descriptor. Such a
 * connection ends when the process does, whatever the way. Then both executors reach for its slot's
 * name; who gets it reads the will, tells its CM, marks the will as served, and keeps the name for
 * a while, so that what the peers answer comes to it. A process that loses an executor looks for
 * another. Where there is none, peers find out by their retries.
 *
 * All of it is the receiving side's.
 */
#define _GNU_SOURCE
#include "base/file_limit.h"
#include "port/port_udp_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    DEATH_MAGIC = 0x56425744,
    TRIES_MAX = 14,    /* 0.8 s: then it lives, and has another executor */
    SEARCH_SLOTS = 32, /* of one step: some 80 us in which nothing is received */
    READ_ENTRIES = 32,
    ROOM_ENTRIES = 1024, /* memory is taken for so many more */
};
static const uint64_t TRY_FIRST_NS = 1000000;
static const uint64_t TRY_MAX_NS = 100000000;
static const uint64_t STEP_NS = 1000000;
static const uint64_t BACKOFF_FIRST_NS = 500000000;
static const uint64_t BACKOFF_MAX_NS = 16000000000;
/* After its death: it is told again, twice; then its slot is let go. */
static const uint64_t AGAIN_NS[] = {400000000, 1200000000, 2000000000};

/* With the descriptor to an executor; back from it when it accepts. One machine, hence host order.
 */
struct death_message {
    uint32_t magic;
    uint32_t slot;
};

void udp_death_init(struct port_udp *u)
{
    u->deaths.will_fd = -1;
    TAILQ_INIT(&u->deaths.dying);
}

static void ward_free(struct port_udp *u, struct udp_ward *w)
{
    close(w->will_fd);
    free(w);
    u->deaths.wards--;
}

static void held_release(struct port_udp *u)
{
    struct udp_deaths *d = &u->deaths;
    struct udp_held h = d->held[0];
    d->held_count--;
    memmove(d->held, d->held + 1, d->held_count * sizeof(d->held[0]));
    /* Whoever passed on to us what was for the dead would keep the connection, and so should we. */
    udp_slot_hangup_all(u, h.listener);
    udp_fd_close(u, h.listener);
    u->slot_mine[h.ward->slot] = false;
    ward_free(u, h.ward);
}

void udp_death_close(struct port_udp *u)
{
    struct udp_ward *w;
    struct udp_fd *f;
    TAILQ_FOREACH(w, &u->deaths.dying, link)
    close(w->will_fd);
    for (unsigned i = 0; i < u->deaths.held_count; i++)
        close(u->deaths.held[i].ward->will_fd);
    TAILQ_FOREACH(f, &u->fds, link)
    {
        if (f->ward != NULL)
            close(f->ward->will_fd);
    }
    if (u->deaths.will_fd >= 0)
        close(u->deaths.will_fd);
}

void udp_death_fini(struct port_udp *u)
{
    struct udp_deaths *d = &u->deaths;
    struct udp_ward *w;
    struct udp_fd *f;
    while (d->held_count != 0)
        held_release(u);
    while ((w = TAILQ_FIRST(&d->dying)) != NULL) {
        TAILQ_REMOVE(&d->dying, w, link);
        ward_free(u, w);
    }
    TAILQ_FOREACH(f, &u->fds, link)
    {
        if (f->ward != NULL)
            ward_free(u, f->ward);
        f->ward = NULL;
    }
    if (d->memory != NULL)
        munmap(d->memory, WILL_BYTES);
    will_fini(&d->will);
    if (d->will_fd >= 0)
        close(d->will_fd);
    d->will_fd = -1;
    d->memory = NULL;
}

/* The timer. */

static int timer_create_once(struct port_udp *u)
{
    if (u->deaths.timer != NULL)
        return 0;
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return fd < 0 ? -errno : udp_fd_add(u, fd, UDP_FD_DEATHS, false, &u->deaths.timer);
}

static void timer_set(struct port_udp *u, uint64_t in_ns)
{
    struct itimerspec t = {
        .it_value = {.tv_sec = (time_t)(in_ns / 1000000000),
                     .tv_nsec = (long)(in_ns % 1000000000)}
    };
    if (u->deaths.timer != NULL)
        timerfd_settime(u->deaths.timer->fd, 0, &t, NULL);
}

/* For what is due next. */
static void timer_arm(struct port_udp *u)
{
    const struct udp_deaths *d = &u->deaths;
    const struct udp_ward *w;
    uint64_t due = d->search_ns != 0 ? d->search_ns : UINT64_MAX;
    TAILQ_FOREACH(w, &d->dying, link)
    {
        if (w->due_ns < due)
            due = w->due_ns;
    }
    for (unsigned i = 0; i < d->held_count; i++) {
        if (d->held[i].due_ns < due)
            due = d->held[i].due_ns;
    }
    if (due != UINT64_MAX)
        timer_set(u, due > u->rx_now_ns ? due - u->rx_now_ns : 1);
}

/* Our own will. */

static int will_make(struct port_udp *u)
{
    struct udp_deaths *d = &u->deaths;
    int err = timer_create_once(u);
    if (err != 0)
        return err;
    int fd = file_limit_allows(WILL_BYTES) ? memfd_create("verbena-will", MFD_CLOEXEC) : -1;
    if (fd < 0)
        return file_limit_allows(WILL_BYTES) ? -errno : -EFBIG;
    void *p = MAP_FAILED;
    if (ftruncate(fd, WILL_BYTES) == 0 && fallocate(fd, 0, 0, WILL_ENTRY_BYTES) == 0)
        p = mmap(NULL, WILL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        err = -errno;
        close(fd);
        return err;
    }
    madvise(p, WILL_BYTES, MADV_DONTFORK);
    err = will_create(&d->will, p, u->slot);
    if (err != 0) {
        munmap(p, WILL_BYTES);
        close(fd);
        return err;
    }
    d->memory = p;
    d->will_fd = fd;
    return 0;
}

/* Memory is taken before it is written to: a fault could only kill us. */
static int will_room(struct udp_deaths *d)
{
    uint32_t used = atomic_load_explicit(&d->will.header->used, memory_order_relaxed);
    if (d->will.free_count != 0 || used < d->will_room || used >= WILL_MAX_CONNECTIONS)
        return 0;
    off_t at = (off_t)WILL_ENTRY_BYTES * (1 + d->will_room);
    int r;
    do {
        r = fallocate(d->will_fd, 0, at, (off_t)WILL_ENTRY_BYTES * ROOM_ENTRIES);
    } while (r != 0 && errno == EINTR);
    if (r != 0)
        return -errno;
    d->will_room += ROOM_ENTRIES;
    return 0;
}

void port_udp_deaths_forget(struct port *p, int index)
{
    will_forget(&udp_of(p)->deaths.will, (uint32_t)index);
}

/* Our executors. */

static bool will_send(const struct port_udp *u, int fd)
{
    struct death_message hello = {DEATH_MAGIC, u->slot};
    struct iovec iov = {&hello, sizeof(hello)};
    union {
        struct cmsghdr header;
        uint8_t bytes[CMSG_SPACE(sizeof(int))];
    } control;
    memset(&control, 0, sizeof(control));
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &u->deaths.will_fd, sizeof(int));
    return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(hello);
}

/* A place for one more; -1: there are enough. */
static int executor_place(const struct port_udp *u)
{
    for (int i = 0; i < DEATH_EXECUTORS; i++) {
        if (u->deaths.executor[i].fd == NULL)
            return i;
    }
    return -1;
}

static bool executor_is(const struct port_udp *u, uint32_t slot)
{
    for (unsigned i = 0; i < DEATH_EXECUTORS; i++) {
        if (u->deaths.executor[i].fd != NULL && u->deaths.executor[i].slot == slot)
            return true;
    }
    return false;
}

/* false: there is no descriptor left to try anybody. None by which packets go is given up for it.
 */
static bool executor_try(struct port_udp *u, uint32_t slot, int place)
{
    struct udp_fd *f;
    if (u->slot_mine[slot] || executor_is(u, slot))
        return true;
    int fd = udp_slot_dial_spare(u, slot);
    if (fd < 0)
        return fd != -EMFILE && fd != -ENFILE;
    if (!will_send(u, fd)) {
        close(fd);
        return true;
    }
    if (udp_fd_add(u, fd, UDP_FD_EXECUTOR, false, &f) != 0)
        return true;
    u->deaths.executor[place].fd = f;
    u->deaths.executor[place].slot = slot;
    u->deaths.executor[place].accepted = false;
    return true;
}

int port_udp_deaths_note(struct port *p, const struct port_connection *c)
{
    struct port_udp *u = udp_of(p);
    struct udp_deaths *d = &u->deaths;
    bool first = d->will_fd < 0;
    int err = first ? will_make(u) : 0;
    err = err == 0 ? will_room(d) : err;
    if (first && err == 0) {
        d->search_ns = 1; /* at once, in the next receive call */
        timer_set(u, 1);
    }
    err = err == 0 ? will_note(&d->will, c) : err;
    /* A peer of this machine is there for certain, and waits for news of us. */
    int place = executor_place(u);
    if (err >= 0 && place >= 0 &&
        memcmp(&c->path.local, &c->path.remote, sizeof(c->path.local)) == 0)
        (void)executor_try(u, port_udp_id_slot(c->remote_id), place);
    return err;
}

/* The owners of slots after ours, in turn: so that each is asked by few. */
static void search(struct port_udp *u)
{
    struct udp_deaths *d = &u->deaths;
    int place = executor_place(u);
    for (unsigned i = 0; i < SEARCH_SLOTS && place >= 0 && d->looked < UDP_SLOTS - 1; i++) {
        if (!executor_try(u, (u->slot + 1 + d->looked++) % UDP_SLOTS, place))
            d->looked = UDP_SLOTS - 1; /* later */
        place = executor_place(u);
    }
    if (place < 0) {
        d->search_ns = 0;
        return;
    }
    d->search_ns = u->rx_now_ns + STEP_NS;
    if (d->looked < UDP_SLOTS - 1)
        return;
    d->looked = 0;
    d->backoff_ns = d->backoff_ns == 0 ? BACKOFF_FIRST_NS : 2 * d->backoff_ns;
    if (d->backoff_ns > BACKOFF_MAX_NS)
        d->backoff_ns = BACKOFF_MAX_NS;
    d->search_ns = u->rx_now_ns + d->backoff_ns;
}

/* From the beginning, now. */
static void search_anew(struct port_udp *u)
{
    u->deaths.looked = 0;
    u->deaths.backoff_ns = 0;
    u->deaths.search_ns = u->rx_now_ns != 0 ? u->rx_now_ns : 1;
    timer_arm(u);
}

void udp_death_executor(struct port_udp *u, struct udp_fd *f)
{
    struct udp_deaths *d = &u->deaths;
    struct death_message m;
    unsigned i = 0;
    while (i < DEATH_EXECUTORS && d->executor[i].fd != f)
        i++;
    ssize_t n = recv(f->fd, &m, sizeof(m), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == sizeof(m) && m.magic == DEATH_MAGIC && i < DEATH_EXECUTORS) {
        d->executor[i].accepted = true;
        return;
    }
    udp_fd_close(u, f);
    if (i == DEATH_EXECUTORS)
        return;
    d->executor[i].fd = NULL;
    if (d->executor[i].accepted) {
        search_anew(u);
        return;
    }
    /* Refused: on to the next. */
    if (d->search_ns == 0)
        d->search_ns = u->rx_now_ns != 0 ? u->rx_now_ns : 1;
    timer_arm(u);
}

/* Wills of others. */

/* The first descriptor that came along; all others are closed. -1: none. */
static int descriptor_take(struct msghdr *h)
{
    int first = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c != NULL; c = CMSG_NXTHDR(h, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (first < 0)
                first = fd;
            else
                close(fd);
        }
    }
    return first;
}

static pid_t peer_pid(int fd)
{
    struct ucred cred;
    socklen_t n = sizeof(cred);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0 ? cred.pid : -1;
}

/* Two descriptors each, and the program wants some, too. */
static bool wards_full(const struct port_udp *u)
{
    unsigned max = 1 + u->flow_max / 4;
    return u->deaths.wards >= (max < DEATH_MAX_WARDS ? max : DEATH_MAX_WARDS);
}

static bool ward_add(struct port_udp *u, struct udp_fd *connection, uint32_t slot, int will_fd)
{
    /* A memfd, of which a read comes back at once, and nothing else has seals. */
    if (u->deaths.told == NULL || connection->ward != NULL || slot >= UDP_SLOTS || wards_full(u) ||
        fcntl(will_fd, F_GET_SEALS) < 0 || timer_create_once(u) != 0)
        return false;
    struct death_message answer = {DEATH_MAGIC, u->slot};
    /* Who has died already needs no answer, but its peers do. */
    if (send(connection->fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_NOSIGNAL) !=
            sizeof(answer) &&
        errno != EPIPE && errno != ECONNRESET)
        return false;
    struct udp_ward *w = calloc(1, sizeof(*w));
    if (w == NULL)
        return false;
    w->will_fd = will_fd;
    w->slot = slot;
    w->pid = peer_pid(connection->fd);
    connection->ward = w;
    u->deaths.wards++;
    return true;
}

bool udp_death_message(struct port_udp *u, struct udp_fd *connection, struct msghdr *h,
                       const uint8_t *bytes, uint32_t n)
{
    struct death_message m;
    if (h->msg_controllen == 0)
        return false;
    int fd = descriptor_take(h);
    if (fd < 0)
        return false;
    if (n != sizeof(m)) {
        close(fd);
        return false;
    }
    memcpy(&m, bytes, sizeof(m));
    if (m.magic != DEATH_MAGIC || !ward_add(u, connection, m.slot, fd)) {
        close(fd);
        udp_count(u, UDP_death_refused, 1);
        shutdown(connection->fd, SHUT_RDWR); /* read as its end, on both sides */
        return true;
    }
    /* Somebody new, who may be the executor that we lack. */
    if (u->deaths.will_fd >= 0 && executor_place(u) >= 0)
        search_anew(u);
    return true;
}

/* The dead. */

static bool held_add(struct port_udp *u, struct udp_ward *w, int fd)
{
    struct udp_deaths *d = &u->deaths;
    struct udp_fd *listener;
    if (udp_fd_add(u, fd, UDP_FD_LISTENER, false, &listener) != 0)
        return false;
    if (d->held_count == DEATH_MAX_HELD)
        held_release(u);
    u->slot_mine[w->slot] = true;
    d->held[d->held_count++] =
        (struct udp_held){w, listener, 1, u->rx_now_ns, u->rx_now_ns + AGAIN_NS[0]};
    return true;
}

/* All that makes sense in a will; number of connections. */
static unsigned will_serve(struct port_udp *u, const struct udp_ward *w)
{
    uint8_t bytes[READ_ENTRIES * WILL_ENTRY_BYTES];
    struct port_connection list[READ_ENTRIES];
    unsigned total = 0;
    for (unsigned at = 0; at < w->entries; at += READ_ENTRIES) {
        ssize_t got = pread(w->will_fd, bytes, sizeof(bytes), (off_t)WILL_ENTRY_BYTES * (1 + at));
        unsigned whole = got < 0 ? 0 : (unsigned)got / WILL_ENTRY_BYTES, n = 0;
        for (unsigned i = 0; i < whole && at + i < w->entries; i++)
            n += will_read_entry(bytes + (size_t)i * WILL_ENTRY_BYTES, w->slot, &list[n]);
        if (n != 0)
            u->deaths.told->connections(u->deaths.told, w->slot, list, n);
        total += n;
        if (whole < READ_ENTRIES)
            break;
    }
    return total;
}

static int will_entries(const struct udp_ward *w)
{
    uint8_t bytes[WILL_ENTRY_BYTES];
    if (pread(w->will_fd, bytes, sizeof(bytes), 0) != sizeof(bytes))
        return -EINVAL;
    return will_read_header(bytes, w->slot);
}

/* Does the slot still belong to the process that hung up? It is about to go, or lives. */
static bool slot_still_its(const struct udp_ward *w)
{
    struct sockaddr_un a;
    socklen_t n = udp_slot_name(w->slot, &a);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* Not to be asked: perhaps. */
    bool its = fd < 0 || connect(fd, (struct sockaddr *)&a, n) != 0 || peer_pid(fd) == w->pid;
    if (fd >= 0)
        close(fd);
    return its;
}

/* Its slot is ours now, by fd. True: and the ward is kept with it. */
static bool dead_serve(struct port_udp *u, struct udp_ward *w, int fd, unsigned entries)
{
    static const uint32_t one = 1;
    w->entries = entries;
    unsigned n = will_serve(u, w);
    (void)!pwrite(w->will_fd, &one, sizeof(one), WILL_SERVED_OFFSET);
    if (n == 0) {
        close(fd);
        return false;
    }
    udp_count(u, UDP_death_served, 1);
    udp_count(u, UDP_death_connections, n);
    return held_add(u, w, fd);
}

/* One that hung up. */
static void dying_step(struct port_udp *u, struct udp_ward *w)
{
    int entries = will_entries(w);
    bool kept = false, over = entries < 0 || u->deaths.told == NULL; /* served, or no will */
    int fd = over ? -1 : udp_slot_bind(w->slot);
    if (fd >= 0) {
        kept = dead_serve(u, w, fd, (unsigned)entries);
        over = true;
    } else if (!over) {
        over = (fd == -EADDRINUSE && !slot_still_its(w)) || ++w->tries > TRIES_MAX;
        w->due_ns = u->rx_now_ns + (w->tries < 7 ? TRY_FIRST_NS << w->tries : TRY_MAX_NS);
    }
    if (!over)
        return;
    TAILQ_REMOVE(&u->deaths.dying, w, link);
    if (!kept)
        ward_free(u, w);
}

static void held_step(struct port_udp *u)
{
    struct udp_deaths *d = &u->deaths;
    for (unsigned i = 0; i < d->held_count; i++) {
        struct udp_held *h = &d->held[i];
        if (h->due_ns > u->rx_now_ns || h->told == sizeof(AGAIN_NS) / sizeof(AGAIN_NS[0]))
            continue;
        if (d->told != NULL)
            will_serve(u, h->ward);
        h->due_ns = h->since_ns + AGAIN_NS[h->told++];
    }
    while (d->held_count != 0 && d->held[0].due_ns <= u->rx_now_ns)
        held_release(u);
}

static void step(struct port_udp *u)
{
    struct udp_deaths *d = &u->deaths;
    if (d->search_ns != 0 && u->rx_now_ns >= d->search_ns)
        search(u);
    struct udp_ward *w = TAILQ_FIRST(&d->dying), *next;
    for (; w != NULL; w = next) {
        next = TAILQ_NEXT(w, link);
        if (w->due_ns <= u->rx_now_ns)
            dying_step(u, w);
    }
    held_step(u);
    timer_arm(u);
}

void udp_death_ward_hangs_up(struct port_udp *u, struct udp_fd *connection)
{
    struct udp_ward *w = connection->ward;
    if (w == NULL)
        return;
    connection->ward = NULL;
    w->due_ns = u->rx_now_ns;
    TAILQ_INSERT_TAIL(&u->deaths.dying, w, link);
}

void udp_death_hangup(struct port_udp *u)
{
    if (!TAILQ_EMPTY(&u->deaths.dying))
        step(u);
}

void udp_death_timer(struct port_udp *u, struct udp_fd *timer)
{
    uint64_t expired;
    if (read(timer->fd, &expired, sizeof(expired)) == sizeof(expired))
        step(u);
}

int port_udp_deaths_serve(struct port *p, struct port_deaths *d)
{
    udp_of(p)->deaths.told = d;
    return 0;
}
