/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crowd.c: many processes on one address. A first process opens the device and misbehaves; then
 * pairs of processes connect and move data both ways by Write, Read and Send, checking every byte.
 * The processes of a pair talk through a socket pair. Plain libibverbs.
 *
 * crowd FIRST PAIRS ROUNDS IDLE_SECONDS TIMEOUT GID_INDEX, FIRST being what the first one does:
 *   plain    waits
 *   stopped  is stopped, and goes on when the others are done
 *   later    is stopped and goes on again and again while the others work
 *   each     there are four of them, which are stopped and go on in turn, again and again
 *   orphan   forks without exec and is killed; its child lives on
 *   clone    the same, by a clone of which no library hears
 * After the rounds all processes stay connected and idle for so many seconds; what CPU time they
 * take is printed.
 */
#define _GNU_SOURCE
#include "rc_pair.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_PAIRS = 500,
    EACH = 4, /* first processes */
    BYTES = 20000,
    HALF = 32768, /* out, then in */
};

struct report {
    double served_seconds; /* from the process's start to its first completion */
    double cpu_seconds;    /* while idle */
    int done;
};

static struct {
    const char *first;
    unsigned pairs, rounds, idle_seconds;
    struct rc_options o;
} opt;
static struct report *reports; /* 2 * pairs, shared */

static double cpu_seconds(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void round_of(struct rc_pair *p, unsigned number, unsigned seed, struct report *r,
                     double start)
{
    uint64_t mine = seed * 1000ull + number, theirs = (seed ^ 1) * 1000ull + number;
    rc_fill(p->buffer, BYTES, mine);
    rc_post_recv(p, 3, HALF, BYTES);
    rc_barrier(p);
    rc_post(p, IBV_WR_RDMA_WRITE, 1, 0, HALF, BYTES, IBV_SEND_SIGNALED);
    rc_expect(p, 1);
    if (number == 0)
        r->served_seconds = rc_now_seconds() - start;
    rc_barrier(p);
    rc_check(p->buffer + HALF, BYTES, theirs, "Write");
    memset(p->buffer + HALF, 0, BYTES);
    rc_barrier(p);
    rc_post(p, IBV_WR_RDMA_READ, 2, HALF, 0, BYTES, IBV_SEND_SIGNALED);
    rc_expect(p, 2);
    rc_check(p->buffer + HALF, BYTES, theirs, "Read");
    memset(p->buffer + HALF, 0, BYTES);
    rc_barrier(p);
    rc_post(p, IBV_WR_SEND, 4, 0, 0, BYTES, IBV_SEND_SIGNALED);
    bool sent = false, received = false;
    while (!sent || !received) {
        struct ibv_wc wc = rc_wait(p);
        if (wc.status != IBV_WC_SUCCESS || (wc.wr_id != 3 && wc.wr_id != 4))
            rc_fail("completion of %d: %s", (int)wc.wr_id, ibv_wc_status_str(wc.status));
        sent |= wc.wr_id == 4;
        received |= wc.wr_id == 3;
    }
    rc_check(p->buffer + HALF, BYTES, theirs, "Send");
    rc_barrier(p);
}

static void one_of_a_pair(unsigned index, int connection)
{
    struct rc_pair p;
    double start = rc_now_seconds();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    opt.o.connection = connection;
    opt.o.bytes = 2 * HALF;
    opt.o.pause_us = 500; /* hundreds that spin would wait for one another's time slices */
    rc_open(&p, &opt.o);
    rc_new_qp(&p);
    for (unsigned i = 0; i < opt.rounds; i++)
        round_of(&p, i, index, &reports[index], start);
    if (opt.idle_seconds != 0) {
        sleep(1);
        double before = cpu_seconds();
        sleep(opt.idle_seconds);
        reports[index].cpu_seconds = cpu_seconds() - before;
        rc_barrier(&p);
    }
    reports[index].done = 1;
    rc_close(&p);
    exit(0);
}

static long raw_clone(void)
{
    return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* The first process; tells by the pipe when it is ready, and the child that it leaves behind. */
static void first_process(int ready)
{
    pid_t child = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    if (n == 0 || ibv_open_device(list[0]) == NULL)
        rc_fail("the first process cannot open a device");
    if (strcmp(opt.first, "orphan") == 0 || strcmp(opt.first, "clone") == 0) {
        child = opt.first[0] == 'o' ? fork() : (pid_t)raw_clone();
        if (child == 0)
            for (;;)
                pause();
    }
    if (write(ready, &child, sizeof(child)) != sizeof(child))
        exit(1);
    pause();
    exit(0);
}

static pid_t first_start(pid_t *child)
{
    int ready[2];
    if (pipe(ready) != 0)
        rc_fail("pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        first_process(ready[1]);
    close(ready[1]);
    if (read(ready[0], child, sizeof(*child)) != sizeof(*child))
        rc_fail("the first process is not ready");
    close(ready[0]);
    if (strcmp(opt.first, "stopped") == 0)
        kill(pid, SIGSTOP);
    else if (*child != 0)
        kill(pid, SIGKILL);
    return pid;
}

/* Stops and continues processes in turn, until it is killed itself. */
static pid_t stopper_start(const pid_t *victim, unsigned victims)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0;; i = (i + 1) % victims) {
        usleep(150000);
        kill(victim[i], SIGSTOP);
        usleep(350000);
        kill(victim[i], SIGCONT);
    }
}

static void first_end(pid_t pid, pid_t child)
{
    if (child != 0)
        kill(child, SIGKILL);
    kill(pid, SIGCONT);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static bool pairs_run(void)
{
    static pid_t pid[2 * MAX_PAIRS];
    bool good = true;
    for (unsigned i = 0; i < opt.pairs; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
            rc_fail("socketpair: %s", strerror(errno));
        for (unsigned k = 0; k < 2; k++) {
            pid[2 * i + k] = fork();
            if (pid[2 * i + k] < 0)
                rc_fail("fork: %s", strerror(errno));
            if (pid[2 * i + k] == 0) {
                close(pair[!k]);
                one_of_a_pair(2 * i + k, pair[k]);
            }
        }
        close(pair[0]);
        close(pair[1]);
    }
    for (unsigned i = 0; i < 2 * opt.pairs; i++) {
        int status;
        good &= waitpid(pid[i], &status, 0) == pid[i] && status == 0;
    }
    return good;
}

int main(int argc, char **argv)
{
    if (argc != 7)
        return 64;
    opt.first = argv[1];
    opt.pairs = (unsigned)atoi(argv[2]);
    opt.rounds = (unsigned)atoi(argv[3]);
    opt.idle_seconds = (unsigned)atoi(argv[4]);
    if (opt.pairs > MAX_PAIRS)
        return 64;
    char *none[] = {argv[0], NULL};
    rc_options(&opt.o, 1, none);
    opt.o.device = "vb_lo";
    opt.o.timeout = (uint8_t)atoi(argv[5]);
    opt.o.gid_index = atoi(argv[6]);
    reports = mmap(NULL, 2 * MAX_PAIRS * sizeof(*reports), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (reports == MAP_FAILED)
        return 1;
    pid_t child;
    double start = rc_now_seconds(), slowest = 0, cpu = 0;
    unsigned done = 0;
    pid_t first[EACH];
    bool each = strcmp(opt.first, "each") == 0;
    for (unsigned i = 0; i < (each ? EACH : 1); i++)
        first[i] = first_start(&child);
    if (each || strcmp(opt.first, "later") == 0)
        child = stopper_start(first, each ? EACH : 1);
    bool good = pairs_run();
    for (unsigned i = 0; i < (each ? EACH : 1); i++)
        first_end(first[i], i == 0 ? child : 0);
    for (unsigned i = 0; i < 2 * opt.pairs; i++) {
        done += (unsigned)reports[i].done;
        cpu += reports[i].cpu_seconds;
        if (reports[i].served_seconds > slowest)
            slowest = reports[i].served_seconds;
    }
    printf("crowd: %u of %u processes done in %.2f s; slowest to be served %.3f s; idle CPU "
           "%.3f s\n",
           done, 2 * opt.pairs, rc_now_seconds() - start, slowest, cpu);
    return good && done == 2 * opt.pairs ? 0 : 1;
}
