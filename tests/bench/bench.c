/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench.c: one measurement a call: `bench CASE` prints a number. scripts/bench.py calls it for
 * several cases in turn and makes ratios, the only figures that mean anything on a shared machine.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct bench_shared *bench_shared;
const char *bench_device = "vb_lo";
double bench_seconds = 0.4;

static double slice_ns[BENCH_SLICES_MAX];
static unsigned slices;
static uint64_t slice_size, slice_done, slice_since_ns, slice_end_ns;

#define CASE(name, unit, kind, bytes, mtu, polls)                                                  \
    {                                                                                              \
        name, unit, kind##_initiator, kind##_target, bytes, mtu, polls                             \
    }

/* clang-format off: it does not survive this table */
static const struct bench_case cases[] = {
    CASE("raw-blast-4096", "Gb/s", raw_blast, 61680, 4112, true),
    CASE("raw-blast-1024", "Gb/s", raw_blast, 64480, 1040, true),
    CASE("raw-rate", "M/s", raw_blast, 128 * 40, 40, true),
    CASE("raw-tcp", "Gb/s", raw_tcp, 65536, 0, true),
    CASE("raw-ping", "us", raw_ping, 64, 0, true),
    CASE("raw-ping-roce", "us", raw_roce, 64, 0, true),
    CASE("raw-ping-blocked", "us", raw_blocked, 64, 0, false),
    CASE("write-64k-4096", "Gb/s", verbs_bandwidth, 65536, 4096, false),
    CASE("write-64k-1024", "Gb/s", verbs_bandwidth, 65536, 1024, false),
    CASE("write-1m-4096", "Gb/s", verbs_bandwidth, 1 << 20, 4096, false),
    CASE("write-1m-1024", "Gb/s", verbs_bandwidth, 1 << 20, 1024, false),
    CASE("write-64k-4096-p", "Gb/s", verbs_bandwidth, 65536, 4096, true),
    CASE("write-64k-1024-p", "Gb/s", verbs_bandwidth, 65536, 1024, true),
    CASE("write-lat", "us", verbs_latency, 8, 1024, true),
    CASE("write-lat-spin", "us", verbs_latency, 8, 1024, false),
    CASE("write-rate", "M/s", verbs_rate, 8, 1024, true),
    CASE("raw-connect", "k/s", raw_connect, 1, 0, false),
    CASE("connect", "k/s", cm_connect, 1, 0, false),
    CASE("connect-32", "k/s", cm_connect, 32, 0, false),
};
/* clang-format on */

uint64_t bench_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void bench_die(const char *what)
{
    perror(what);
    exit(1);
}

void bench_meet(void)
{
    int mine = atomic_fetch_add(&bench_shared->ready, 1);
    while (atomic_load(&bench_shared->ready) < (mine | 1) + 1 && !bench_stopped())
        usleep(50);
}

bool bench_stopped(void)
{
    return atomic_load_explicit(&bench_shared->stop, memory_order_relaxed) != 0;
}

uint8_t *bench_memory(size_t n)
{
    uint8_t *p =
        mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (p == MAP_FAILED)
        bench_die("mmap");
    for (int i = 1; i < 3; i++)
        memset(p, i, n);
    memset(p, 0, n);
    return p;
}

void bench_slice_begin(uint64_t slice_work)
{
    slices = 0;
    slice_done = 0;
    slice_size = slice_work;
    slice_since_ns = bench_now_ns();
    slice_end_ns = slice_since_ns + (uint64_t)(bench_seconds * 1e9);
}

bool bench_slice_work(uint64_t work)
{
    slice_done += work;
    if (slice_done < slice_size)
        return false;
    uint64_t now = bench_now_ns();
    slice_ns[slices++] = (double)(now - slice_since_ns) / (double)slice_done;
    slice_done = 0;
    slice_since_ns = now;
    return slices == BENCH_SLICES_MAX || now >= slice_end_ns;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_slice_median_ns(void)
{
    if (slices == 0)
        return 0;
    qsort(slice_ns, slices, sizeof(slice_ns[0]), compare);
    return slice_ns[slices / 2];
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof(set), &set); /* one CPU only: then it stays where it is */
}

static int run(const struct bench_case *c)
{
    bench_shared = mmap(NULL, sizeof(*bench_shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (bench_shared == MAP_FAILED)
        bench_die("mmap");
    pid_t child = fork();
    if (child < 0)
        bench_die("fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin(0);
        c->target(c);
        _exit(0);
    }
    pin(1);
    c->initiator(c);
    atomic_store(&bench_shared->stop, 1);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0 || bench_shared->result <= 0) {
        fprintf(stderr, "bench: %s failed\n", c->name);
        return 1;
    }
    printf("%.3f %s\n", bench_shared->result, c->what);
    return 0;
}

int main(int argc, char **argv)
{
    const size_t n = sizeof(cases) / sizeof(cases[0]);
    if (getenv("BENCH_SECONDS") != NULL)
        bench_seconds = atof(getenv("BENCH_SECONDS"));
    if (getenv("BENCH_DEVICE") != NULL)
        bench_device = getenv("BENCH_DEVICE");
    for (size_t i = 0; argc == 2 && i < n; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            return run(&cases[i]);
    fprintf(stderr, "usage: bench CASE\ncases:");
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, " %s", cases[i].name);
    fprintf(stderr, "\n");
    return 64;
}
