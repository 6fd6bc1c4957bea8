/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * progress.c: who drives the engine. Callers do, inline; the helper thread does when nobody calls:
 * it sleeps until packets come or a deadline is near.
 *
 * A program that polls would find the helper in its way: each packet wakes it, it finds nothing,
 * and takes the CPU meanwhile. So after some wakes beside a polling thread the helper turns to
 * napping, blind to the socket, for as long as others poll: who found nothing a moment ago will
 * look again. Who got a completion may be done (and spin on memory now): then the helper is back on
 * the socket.
 */
#define _GNU_SOURCE
#include "host/host_priv.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    RECEIVE_PACKETS = 512, /* about that many at a time, then answers go out */
    TRAINS_PER_FLUSH = 4,
    LOOK_CALLS_MAX = 32,   /* more than a full socket holds */
    SEND_ROUNDS_MAX = 128, /* flushes of one call; the helper goes on */
    STREAM_PACKETS = 16,   /* so many at a wake are a stream: more will come */
    CROWDED_MAX = 12, /* 2 for a wake that found nothing, 1 for one that shared with a poller */
    HELPER_STACK_BYTES = 512 << 10,
    DISPATCH_ROUNDS_MAX = 64, /* of one call, in a flood of MADs; the helper goes on */
    FAREWELL_TURN_NS = 50000,
    FAREWELL_TURNS = 400,     /* 20 ms and more */
    HELPER_SLICE_NS = 100000, /* the least that the kernel takes */
};
static const uint64_t NAP_FIRST_NS = 200000;
static const uint64_t NAP_MAX_NS = 1000000;
static const uint64_t OVERDUE_NS = 20000;
static const uint64_t LINGER_NS = 20000; /* within a stream the helper looks that long for more */
static const uint64_t POLLER_NS =
    50000; /* a poll in vain that long ago: the poller is still there */

/* Sockets' calls are cancellation points: a thread cancelled in one would take the lock along. */
static void locked(struct host_lock *l)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &l->cancel_state);
}

void progress_lock(struct host_lock *l)
{
    atomic_fetch_add(&l->wanted, 1);
    pthread_mutex_lock(&l->mutex);
    atomic_fetch_sub(&l->wanted, 1);
    locked(l);
}

void progress_unlock(struct host_lock *l)
{
    int cancel_state = l->cancel_state;
    pthread_mutex_unlock(&l->mutex);
    pthread_setcancelstate(cancel_state, NULL);
}

bool progress_try_lock(struct host_lock *l)
{
    if (atomic_load_explicit(&l->wanted, memory_order_relaxed) != 0 ||
        pthread_mutex_trylock(&l->mutex) != 0)
        return false;
    locked(l);
    return true;
}

void progress_grace(struct host *h)
{
    progress_lock(&h->rx);
    progress_unlock(&h->rx);
    progress_lock(&h->tx);
    progress_unlock(&h->tx);
    progress_send(h); /* whoever stayed away because we waited left it to us */
}

static uint64_t deadline(struct host *h)
{
    uint64_t nic = nic_deadline(h->nic);
    uint64_t port = h->port->ops->deadline(h->port);
    uint64_t cm = connect_deadline(&h->connect);
    uint64_t first = nic < port ? nic : port;
    return cm < first ? cm : first;
}

void progress_wake(struct host *h)
{
    uint64_t one = 1;
    /* write() would be a cancellation point. */
    while (syscall(SYS_write, h->control_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

/* The helper sleeps longer than the next deadline allows: wake it, once. */
static void check_sleeper(struct host *h)
{
    uint64_t until = atomic_load(&h->sleep_until_ns);
    if (until != 0 && deadline(h) < until &&
        atomic_compare_exchange_strong(&h->sleep_until_ns, &until, 0))
        progress_wake(h);
}

static void advance(struct host *h, uint64_t now_ns)
{
    uint64_t before = counters_get(&h->nic->counters, COUNTER_local_ack_timeout_err);
    nic_advance(h->nic, now_ns);
    if (counters_get(&h->nic->counters, COUNTER_local_ack_timeout_err) != before)
        port_udp_suspect(h->udp);
}

static void receiver_packets(struct port_receiver *r, const struct rx_packet *p, unsigned n)
{
    struct host *h = (struct host *)((char *)r - offsetof(struct host, receiver));
    nic_input(h->nic, h->rx_now_ns, p, n);
}

/* With rx held, which is let go; returns packets seen. */
static unsigned receive_and_unlock(struct host *h, uint64_t now_ns)
{
    h->rx_now_ns = now_ns;
    unsigned seen = h->port->ops->receive(h->port, now_ns, &h->receiver, RECEIVE_PACKETS);
    progress_unlock(&h->rx);
    return seen;
}

/* wait: for another that receives; else leave it to that one. */
static unsigned receive_some(struct host *h, uint64_t now_ns, bool wait)
{
    if (wait)
        progress_lock(&h->rx);
    else if (!progress_try_lock(&h->rx))
        return 0;
    return receive_and_unlock(h, now_ns);
}

/*
 * A timer is due. Has the answer that it waits for come meanwhile? Whoever was kept from its CPU,
 * or keeps the socket while it is kept from it, must not take that for a silent peer: timers go as
 * far as the last complete look at the sockets began, no further.
 */
static void look(struct host *h)
{
    uint64_t began = 0;
    for (unsigned calls = 0, empty = 0; calls < LOOK_CALLS_MAX && empty < PORT_EMPTY_CALLS;
         calls++) {
        uint64_t now = host_now_ns();
        began = began == 0 ? now : began;
        if (!progress_try_lock(&h->rx))
            return; /* its holder looks when it has done */
        empty = receive_and_unlock(h, now) != 0 ? 0 : empty + 1;
    }
    atomic_store(&h->looked_ns, began);
}

static bool timer_due(struct host *h, uint64_t now_ns)
{
    return nic_deadline(h->nic) <= now_ns;
}

/* With tx held: timers, then trains until nothing is left or the port is full. false: gave up
 * before the end. */
static bool send_all(struct host *h)
{
    for (unsigned round = 0; round < SEND_ROUNDS_MAX; round++) {
        uint64_t now = host_now_ns(), looked = atomic_load(&h->looked_ns);
        if (timer_due(h, looked))
            advance(h, looked);
        bool more = false;
        if (h->port->ops->deadline(h->port) <= now)
            nic_retry(h->nic); /* perhaps there is room again */
        if (h->port->ops->writable(h->port))
            more = nic_output(h->nic, now, &h->port->sink, TRAINS_PER_FLUSH);
        h->port->ops->flush(h->port, now);
        if (!more || !h->port->ops->writable(h->port))
            return true;
    }
    return false;
}

static bool send_work(struct host *h, uint64_t now_ns)
{
    return (nic_has_output(h->nic) && h->port->ops->writable(h->port)) ||
           h->port->ops->deadline(h->port) <= now_ns || timer_due(h, atomic_load(&h->looked_ns));
}

static void send_queued(struct host *h, uint64_t now_ns)
{
    /* Who queued something and then found tx taken relies on its holder to look once more after
     * letting go: each side writes, then reads what the other wrote. */
    for (;;) {
        atomic_thread_fence(memory_order_seq_cst);
        if (timer_due(h, now_ns) && !timer_due(h, atomic_load(&h->looked_ns)))
            look(h);
        if (!send_work(h, now_ns))
            return;
        if (!progress_try_lock(&h->tx))
            return;
        bool finished = send_all(h);
        progress_unlock(&h->tx);
        if (!finished) {
            progress_wake(h);
            return;
        }
    }
}

/* True: MADs were queued. */
static bool dispatch_all(struct host *h)
{
    struct host_object *o;
    while ((o = nic_notify_next(h->nic)) != NULL) {
        if (o->ctx->callbacks.completion != NULL)
            o->ctx->callbacks.completion(o->owner);
    }
    struct nic_event e;
    while (event_next(h->nic, &e)) {
        o = e.owner;
        if (e.type == EVENT_COMM_EST || e.type == EVENT_QP_HEARD)
            connect_established(h, o);
        if (e.type != EVENT_QP_HEARD && o->ctx->callbacks.async_event != NULL)
            o->ctx->callbacks.async_event(e.type, o->owner);
    }
    return connect_serve(h);
}

static bool dispatch_work(struct host *h)
{
    return atomic_load_explicit(&h->nic->notify_count, memory_order_relaxed) != 0 ||
           atomic_load_explicit(&h->nic->event_count, memory_order_relaxed) != 0 || connect_work(h);
}

/* A timer of connection management is due: as far as the last complete look, like the engine's. */
static void look_for_connect(struct host *h)
{
    uint64_t due = connect_deadline(&h->connect);
    if (due != UINT64_MAX && due > atomic_load(&h->looked_ns) && due <= host_now_ns())
        look(h);
}

void progress_dispatch(struct host *h)
{
    bool mads = false;
    unsigned round = 0;
    look_for_connect(h);
    for (; round < DISPATCH_ROUNDS_MAX; round++) {
        atomic_thread_fence(memory_order_seq_cst);
        if (!dispatch_work(h) || !progress_try_lock(&h->events))
            break;
        mads |= dispatch_all(h);
        progress_unlock(&h->events);
    }
    bool tidy = atomic_load_explicit(&h->connect.tidy_due, memory_order_relaxed);
    if (tidy)
        connect_tidy(h);
    if (mads || tidy) {
        send_queued(h, host_now_ns()); /* what others left to us, too */
        check_sleeper(h);
        if (dispatch_work(h))
            progress_wake(h);
    } else if (round == DISPATCH_ROUNDS_MAX) {
        progress_wake(h);
    }
}

void progress_send(struct host *h)
{
    send_queued(h, host_now_ns());
    progress_dispatch(h);
    check_sleeper(h);
}

void progress_flush(struct host *h)
{
    progress_lock(&h->rx); /* what is just being taken in is answered, too */
    progress_unlock(&h->rx);
    progress_lock(&h->tx);
    send_all(h);
    progress_unlock(&h->tx);
    progress_send(h);
}

void progress_pass_on(struct host *h)
{
    look(h);
    progress_send(h);
}

void progress_farewell(struct host *h)
{
    const struct timespec turn = {0, FAREWELL_TURN_NS};
    atomic_store(&h->flush_wanted, true);
    progress_wake(h);
    for (unsigned i = 0; i < FAREWELL_TURNS && atomic_load(&h->flush_wanted); i++)
        nanosleep(&turn, NULL);
}

unsigned progress_receive(struct host *h, uint64_t *now_ns)
{
    *now_ns = host_now_ns();
    atomic_store_explicit(&h->polled_ns, *now_ns | 1, memory_order_relaxed);
    return receive_some(h, *now_ns, false);
}

void progress_answer(struct host *h, uint64_t now_ns, unsigned packets, int completions)
{
    if (completions != 0)
        atomic_store_explicit(&h->polled_ns, now_ns & ~1ull, memory_order_relaxed);
    /* Packets without a completion may have been the WRITE that the program waits for: it answers
     * now, or polls again. A stream is not kept waiting twice in a row. */
    bool deferred = atomic_load_explicit(&h->deferred, memory_order_relaxed);
    bool urgent = completions == 0 && (packets == 0 || deferred);
    bool defers = !urgent && nic_has_output(h->nic);
    if (deferred != defers)
        atomic_store_explicit(&h->deferred, defers, memory_order_relaxed);
    /* While the helper naps it looks for unsent answers at the end of each nap, and before it goes
     * back to the socket: it stores, then looks; we queued, then look. */
    atomic_thread_fence(memory_order_seq_cst);
    if (urgent || !atomic_load_explicit(&h->napping, memory_order_relaxed))
        send_queued(h, now_ns);
    progress_dispatch(h);
    check_sleeper(h);
}

void progress_expect(struct host *h)
{
    if (atomic_load_explicit(&h->napping, memory_order_relaxed) &&
        atomic_exchange(&h->napping, false))
        progress_wake(h);
}

/* What waits; within a stream also what comes a little later. */
static unsigned helper_serve(struct host *h, bool ready)
{
    unsigned total = 0, empty = 0;
    uint64_t now = host_now_ns(), last = now;
    bool more;
    do {
        /* Told that packets wait, it must not come back before somebody has had a look: the other
         * may have lost its CPU in the middle, to a helper that asks again and again. */
        unsigned seen = receive_some(h, now, ready);
        send_queued(h, now);
        progress_dispatch(h);
        total += seen;
        empty = seen != 0 ? 0 : empty + 1;
        now = host_now_ns();
        last = seen != 0 ? now : last;
        /* Otherwise to sleep at once: the program may wait for this very CPU. */
        more = total == 0 ? ready && empty < PORT_EMPTY_CALLS
                          : total >= STREAM_PACKETS && now - last < LINGER_NS;
    } while (more && !atomic_load_explicit(&h->stop, memory_order_relaxed));
    return total;
}

/* What poll is to watch: -1 while that must rest, which *until is not beyond. */
static int watched(int fd, uint64_t again_ns, uint64_t now_ns, uint64_t *until)
{
    if (again_ns <= now_ns)
        return fd;
    *until = again_ns < *until ? again_ns : *until;
    return -1;
}

/* Sleeps until packets come (unless napping), somebody wakes us, or the time has come. True when
 * packets wait. */
static bool helper_sleep(struct host *h, uint64_t nap_ns)
{
    uint64_t now = host_now_ns();
    const uint64_t soonest = now + OVERDUE_NS;
    uint64_t until = nap_ns != 0 ? now + nap_ns : UINT64_MAX;
    uint64_t d = deadline(h);
    do {
        until = d < until ? d : until;
        /* What is overdue is in the hands of another, or we had done it. */
        until = until < soonest ? soonest : until;
        atomic_store(&h->sleep_until_ns, until);
        /* Whoever armed or queued something before that store could not see how long we sleep. */
        send_queued(h, now);
        d = deadline(h);
    } while (d < until && until > soonest);
    const int netlink_fd = watched(h->netlink_fd, h->netdev_again_ns, now, &until);
    const int tally_fd = watched(h->tally_fd, h->tally_again_ns, now, &until);
    const int share_fd = watched(h->share_fd, h->share_again_ns, now, &until);
    uint64_t left = until - now;
    struct timespec t = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
    struct pollfd fds[5] = {
        {.fd = h->control_fd,             .events = POLLIN},
        {.fd = netlink_fd,                .events = POLLIN},
        {.fd = tally_fd,                  .events = POLLIN},
        {.fd = share_fd,                  .events = POLLIN},
        {.fd = h->port->ops->fd(h->port), .events = POLLIN}
    };
    int r = ppoll(fds, nap_ns != 0 ? 4 : 5, until == UINT64_MAX ? NULL : &t, NULL);
    atomic_store(&h->sleep_until_ns, 0);
    uint64_t count;
    if (r > 0 && fds[1].revents != 0)
        netdev_try(h);
    if (r > 0 && fds[2].revents != 0)
        tally_answer(h);
    if (r > 0 && fds[3].revents != 0)
        share_serve(h);
    if (r > 0 && fds[0].revents != 0 && read(h->control_fd, &count, sizeof(count)) < 0)
        return false;
    return r > 0 && nap_ns == 0 && fds[4].revents != 0;
}

/* What sched_getattr fills (version 0); older C libraries do not declare it. */
struct sched_attr_v0 {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/*
 * Asks for short slices: with the kernel's earliest-deadline scheduler (6.12 and later) a thread
 * that wakes up then goes before one that computes, instead of waiting for the end of its slice
 * of about 3 ms. Other kernels ignore it.
 */
static void ask_for_short_slices(void)
{
    struct sched_attr_v0 a = {.size = sizeof(a)};
    if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) == 0 && a.policy == 0) {
        a.runtime = HELPER_SLICE_NS;
        (void)syscall(SYS_sched_setattr, 0, &a, 0);
    }
}

/* Did a program poll a moment ago; if asked, in vain, so that it will again? */
static bool poller_there(const struct host *h, bool in_vain)
{
    uint64_t polled = atomic_load_explicit(&h->polled_ns, memory_order_relaxed);
    return host_now_ns() < polled + POLLER_NS && (!in_vain || (polled & 1) != 0);
}

/* Is a program sending at this moment? Look for what is to be sent afterwards: it may have been
 * left to us. */
static bool sender_there(struct host *h)
{
    if (pthread_mutex_trylock(&h->tx.mutex) != 0)
        return true;
    pthread_mutex_unlock(&h->tx.mutex);
    return false;
}

/* Awake from a sleep on the socket. crowded: how sure it is that another thread does the work. */
static void helper_woke(struct host *h, bool ready, unsigned *crowded)
{
    bool poller = ready && (poller_there(h, true) || sender_there(h));
    unsigned seen = helper_serve(h, ready);
    if (seen != 0)
        *crowded = poller ? *crowded + 1 : 0;
    else
        *crowded += poller ? 2 : 0;
}

/* Whether somebody else polls the socket. */
static bool ease(struct host *h, bool on)
{
    progress_lock(&h->rx);
    bool done = port_udp_ease(h->udp, on);
    progress_unlock(&h->rx);
    return done;
}

/* From napping back to the socket; returns the next nap if that is not possible. */
static uint64_t helper_return(struct host *h)
{
    bool back = ease(h, false);
    atomic_store(&h->napping, false);
    helper_serve(h, true);
    return back ? 0 : NAP_FIRST_NS;
}

static void *helper_main(void *arg)
{
    struct host *h = arg;
    uint64_t nap_ns = 0;
    unsigned crowded = 0;
    prctl(PR_SET_TIMERSLACK, 1000ul);
    ask_for_short_slices();
    while (!atomic_load(&h->stop)) {
        bool ready = helper_sleep(h, nap_ns);
        if (atomic_load_explicit(&h->flush_wanted, memory_order_relaxed)) {
            progress_flush(h);
            connect_farewell(h); /* may wait for what is held where the program ends */
            progress_flush(h);
            progress_lock(&h->rx);
            port_udp_retire(h->udp); /* what it holds for other processes would go with it */
            progress_unlock(&h->rx);
            atomic_store(&h->flush_wanted, false);
        }
        if (nap_ns == 0) {
            helper_woke(h, ready, &crowded);
            if (crowded >= CROWDED_MAX) {
                nap_ns = NAP_FIRST_NS;
                atomic_store(&h->napping, true);
                ease(h, true);
            }
        } else if (atomic_load(&h->napping) && (poller_there(h, false) || sender_there(h))) {
            send_queued(h, host_now_ns()); /* timers */
            progress_dispatch(h);
            nap_ns = nap_ns * 2 < NAP_MAX_NS ? nap_ns * 2 : NAP_MAX_NS;
        } else {
            nap_ns = helper_return(h);
            crowded = 0;
        }
    }
    return NULL;
}

int progress_start(struct host *h)
{
    struct host_lock *locks[] = {&h->rx, &h->tx, &h->events};
    for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
        pthread_mutex_init(&locks[i]->mutex, NULL);
    h->receiver.packets = receiver_packets;
    h->control_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->control_fd < 0)
        return -errno;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, HELPER_STACK_BYTES);
    /* The program's signals are the program's: the helper inherits a mask without any. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&h->helper, &attr, helper_main, h);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (err != 0)
        return -err;
    pthread_setname_np(h->helper, "verbena");
    h->helper_runs = true;
    return 0;
}

void progress_stop(struct host *h)
{
    if (h->helper_runs) {
        atomic_store(&h->stop, true);
        progress_wake(h);
        pthread_join(h->helper, NULL);
        h->helper_runs = false;
    }
    if (h->control_fd >= 0)
        close(h->control_fd);
    h->control_fd = -1;
}
