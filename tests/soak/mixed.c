/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mixed.c: the mixed soak: two processes, a thread for each kind of traffic, and what must stay
 * flat meanwhile: resident memory and descriptors of both. Prints its figures; the exit code is 1
 * when anything was wrong.
 *
 *     mixed SECONDS SEED DEVICE GID-INDEX RSS-GROWTH-KIB
 */
#define _GNU_SOURCE
#include "mixed.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    FIRST_FD = 100,
    SILENCE_SECONDS = 60,
    HEAP_GROWTH_KIB = 4096,
    /* QPs choose among 64 ports to send from, so in the end there are a socket for each and one for
     * each flow of the peer's. What else there is are some thirty. */
    FDS_MOST = 64 + 64 + 60,
};

const char *const lane_name[LANE_KINDS] = {"RC", "XRC", "UC", "UD", "windows"};
struct mixed m;

/* AddressSanitizer keeps what is freed for a while; not so much that it looks like a leak. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=8";
}

void violation(const struct lane *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "VIOLATION: %s, %s, epoch %llu: ", m.is_a ? "A" : "B",
            l != NULL ? lane_name[l->kind] : "all", l != NULL ? (unsigned long long)l->epoch : 0);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    _exit(1);
}

uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void tell(const struct lane *l, const void *bytes, size_t n)
{
    if (send(l->socket, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
        violation(l, "the peer has gone (%s)", strerror(errno));
}

void hear(const struct lane *l, void *bytes, size_t n)
{
    ssize_t got = recv(l->socket, bytes, n, MSG_WAITALL);
    if (got != (ssize_t)n)
        violation(l, "nothing of the peer: %s", got < 0 ? strerror(errno) : "it has gone");
}

void pattern_fill(uint64_t seed, uint8_t *to, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i += 8) {
        uint64_t word = mix(seed + i);
        memcpy(to + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
}

void pattern_check(const struct lane *l, uint64_t seed, const uint8_t *at, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i += 8) {
        uint64_t word = mix(seed + i);
        if (memcmp(at + i, &word, bytes - i < 8 ? bytes - i : 8) != 0)
            violation(l, "byte %u of %u is wrong", i, bytes);
    }
}

static void *lane_main(void *arg)
{
    struct lane *l = arg;
    while (lane_open(l)) {
        if (l->kind == LANE_RC || l->kind == LANE_XRC)
            epoch_reliable(l);
        else if (l->kind == LANE_MW)
            epoch_windows(l);
        else
            epoch_unreliable(l);
        lane_close(l);
        l->epochs++;
        l->epoch++;
    }
    return NULL;
}

static long rss_kib(void)
{
    long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL || fscanf(f, "%ld %ld", &size, &resident) != 2)
        resident = 0;
    if (f != NULL)
        fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* What is allocated, as a sanitizer counts it: without its own. 0: there is none. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static long heap_kib(void)
{
    if (__sanitizer_get_current_allocated_bytes == NULL)
        return 0;
    return (long)(__sanitizer_get_current_allocated_bytes() / 1024);
}

static unsigned descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d != NULL && readdir(d) != NULL)
        n++;
    if (d != NULL)
        closedir(d);
    return n;
}

struct figures {
    long rss_before, rss_most, heap_before, heap_most;
    unsigned fds_before, fds_most;
};

/* Once a second until the time is over. */
static void watch(struct lane *lanes, unsigned seconds, struct figures *f)
{
    double begin = now_seconds(), warm = begin + seconds * 0.3;
    uint64_t sums[LANE_KINDS] = {0};
    double moved[LANE_KINDS];
    for (unsigned i = 0; i < LANE_KINDS; i++)
        moved[i] = begin;
    while (now_seconds() < begin + seconds) {
        usleep(1000000);
        double now = now_seconds();
        for (unsigned i = 0; i < LANE_KINDS; i++) {
            uint64_t sum = lanes[i].sent + lanes[i].received + lanes[i].epochs;
            moved[i] = sum != sums[i] ? now : moved[i];
            sums[i] = sum;
            if (now - moved[i] > SILENCE_SECONDS)
                violation(&lanes[i], "no progress for %d s", SILENCE_SECONDS);
        }
        long rss = rss_kib(), heap = heap_kib();
        unsigned fds = descriptors();
        bool before = now < warm;
        long *most = before ? &f->rss_before : &f->rss_most;
        long *heap_most = before ? &f->heap_before : &f->heap_most;
        unsigned *fds_most = before ? &f->fds_before : &f->fds_most;
        *most = rss > *most ? rss : *most;
        *heap_most = heap > *heap_most ? heap : *heap_most;
        *fds_most = fds > *fds_most ? fds : *fds_most;
    }
}

static void report(const struct lane *lanes, const struct figures *f, unsigned seconds)
{
    printf("%s: %u s; resident memory %ld KiB, then %ld; descriptors %u, then %u\n",
           m.is_a ? "A" : "B", seconds, f->rss_before, f->rss_most, f->fds_before, f->fds_most);
    if (f->heap_most != 0)
        printf("%s: allocated %ld KiB, then %ld\n", m.is_a ? "A" : "B", f->heap_before,
               f->heap_most);
    for (unsigned i = 0; i < LANE_KINDS; i++)
        printf("%s: %-7s %llu epochs, %llu sent, %llu received, %llu MiB\n", m.is_a ? "A" : "B",
               lane_name[i], (unsigned long long)lanes[i].epochs, (unsigned long long)lanes[i].sent,
               (unsigned long long)lanes[i].received, (unsigned long long)lanes[i].bytes >> 20);
    fflush(stdout);
}

static void device_open(const char *name, int gid_index)
{
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    for (int i = 0; i < n; i++)
        if (strcmp(ibv_get_device_name(list[i]), name) == 0)
            m.ctx = ibv_open_device(list[i]);
    if (m.ctx == NULL || ibv_query_gid(m.ctx, PORT, gid_index, &m.gid) != 0)
        violation(NULL, "no device %s", name);
    ibv_free_device_list(list);
}

/* B: the same program, with the other ends of the sockets. A process that was only forked cannot
 * have threads under ThreadSanitizer. */
static pid_t start_b(char **argv, int sockets[LANE_KINDS][2])
{
    pid_t child = fork();
    if (child != 0)
        return child;
    for (unsigned i = 0; i < LANE_KINDS; i++)
        if (dup2(sockets[i][1], FIRST_FD + (int)i) < 0)
            _exit(1);
    setenv("MIXED_SIDE", "B", 1);
    execv("/proc/self/exe", argv);
    _exit(1);
}

int main(int argc, char **argv)
{
    static struct lane lanes[LANE_KINDS];
    struct figures f = {0};
    pthread_t thread[LANE_KINDS];
    int sockets[LANE_KINDS][2];
    pid_t b = 0;
    if (argc != 6) {
        fprintf(stderr, "usage: mixed SECONDS SEED DEVICE GID-INDEX RSS-GROWTH-KIB\n");
        return 2;
    }
    unsigned seconds = (unsigned)atoi(argv[1]);
    m.seed = strtoull(argv[2], NULL, 0);
    m.is_a = getenv("MIXED_SIDE") == NULL;
    for (unsigned i = 0; i < LANE_KINDS && m.is_a; i++)
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets[i]) != 0)
            violation(NULL, "socketpair: %s", strerror(errno));
    if (m.is_a)
        b = start_b(argv, sockets);
    device_open(argv[3], atoi(argv[4]));
    for (unsigned i = 0; i < LANE_KINDS; i++) {
        struct timeval patience = {SILENCE_SECONDS, 0};
        lanes[i].kind = (enum lane_kind)i;
        lanes[i].is_a = m.is_a;
        lanes[i].socket = m.is_a ? sockets[i][0] : FIRST_FD + (int)i;
        if (m.is_a)
            close(sockets[i][1]);
        setsockopt(lanes[i].socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        lanes[i].memory = malloc(MEMORY_BYTES);
        if (lanes[i].memory == NULL || pthread_create(&thread[i], NULL, lane_main, &lanes[i]) != 0)
            violation(NULL, "no memory");
    }
    watch(lanes, seconds, &f);
    m.stop = true;
    for (unsigned i = 0; i < LANE_KINDS; i++) {
        pthread_join(thread[i], NULL);
        free(lanes[i].memory);
        close(lanes[i].socket);
    }
    report(lanes, &f, seconds);
    if (ibv_close_device(m.ctx) != 0)
        violation(NULL, "close_device");
    if (f.rss_most > f.rss_before + atol(argv[5]))
        violation(NULL, "resident memory grew from %ld to %ld KiB", f.rss_before, f.rss_most);
    if (f.heap_most > f.heap_before + HEAP_GROWTH_KIB)
        violation(NULL, "allocated memory grew from %ld to %ld KiB", f.heap_before, f.heap_most);
    if (f.fds_before > FDS_MOST || f.fds_most > FDS_MOST)
        violation(NULL, "descriptors grew from %u to %u", f.fds_before, f.fds_most);
    int status = 0;
    if (m.is_a && (waitpid(b, &status, 0) != b || status != 0))
        return 1;
    return 0;
}
