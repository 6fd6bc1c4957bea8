/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_tally.c: what a process tells others that it has counted, and whom they believe. In a
 * network namespace of the test's own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../port/private_net.h"
#include "../skips.h"
#include "host/host_priv.h"

enum {
    COUNTERS = COUNTER_COUNT + CM_COUNTERS,
    TOLD_BYTES = 4096,
    AT_DEVICES = 8, /* of the message, after the hash of the names */
    AT_IFINDEX = 12,
    DEVICES = 64,
    AT_VALUES = AT_IFINDEX + 4 * DEVICES + 4,
    ANOTHER_INTERFACE = 77,
};

static struct verbena_device lo;

static socklen_t name_of(struct sockaddr_un *a, const char *name)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    strcpy(a->sun_path + 1, name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static struct verbena_context *open_lo(void)
{
    struct verbena_context *ctx;
    struct verbena_callbacks none = {0};

    assert_int_equal(verbena_open("vb_lo", &none, NULL, &ctx), 0);
    return ctx;
}

/* The name of the one engine here, as /proc/net/unix has it. */
static void engine_name(char name[64])
{
    FILE *f = fopen("/proc/net/unix", "r");
    char line[512], *at = NULL;

    assert_non_null(f);
    while (at == NULL && fgets(line, sizeof(line), f) != NULL)
        at = strstr(line, "@verbena/counters/");
    fclose(f);
    assert_non_null(at);
    at[strcspn(at, "\n")] = '\0';
    snprintf(name, 64, "%s", at + 1);
}

static ssize_t ask_engine(uint8_t message[TOLD_BYTES])
{
    struct sockaddr_un a;
    char name[64];
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    engine_name(name);
    socklen_t n = name_of(&a, name);
    assert_true(fd >= 0 && connect(fd, (struct sockaddr *)&a, n) == 0);
    ssize_t got = recv(fd, message, TOLD_BYTES, 0);
    close(fd);
    return got;
}

static unsigned sum(unsigned ifindex, uint64_t value[COUNTERS])
{
    struct verbena_device d = {.ifindex = ifindex};

    memset(value, 0, COUNTERS * sizeof(*value));
    return verbena_counters_of_all(&d, value, COUNTERS);
}

static void sum__of_who_has_it_open(void **state)
{
    uint64_t value[COUNTERS];

    (void)state;
    assert_int_equal(sum(lo.ifindex, value), 0);
    struct verbena_context *ctx = open_lo();
    counters_add(&ctx->host->nic->counters, COUNTER_tx_bytes, 1234);
    assert_int_equal(sum(lo.ifindex, value), 1);
    assert_int_equal(value[COUNTER_tx_bytes], 1234);
    assert_int_equal(sum(ANOTHER_INTERFACE, value), 0);
    assert_int_equal(value[COUNTER_tx_bytes], 0);
    /* No more values than were asked for. */
    uint64_t few[2] = {5, 7};
    assert_int_equal(verbena_counters_of_all(&lo, few, 1), 1);
    assert_int_equal(few[1], 7);
    verbena_close(ctx);
    assert_int_equal(sum(lo.ifindex, value), 0);
}

static void sum__of_several(void **state)
{
    uint64_t value[COUNTERS];
    int ready[2], go[2], status;
    char byte = 0;

    (void)state;
    assert_true(pipe(ready) == 0 && pipe(go) == 0);
    pid_t child = fork();
    if (child == 0) {
        struct verbena_context *ctx = open_lo();
        counters_add(&ctx->host->nic->counters, COUNTER_tx_bytes, 1000);
        bool ok = write(ready[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 1;
        verbena_close(ctx);
        _exit(ok ? 0 : 1);
    }
    struct verbena_context *ctx = open_lo();
    counters_add(&ctx->host->nic->counters, COUNTER_tx_bytes, 1);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(sum(lo.ifindex, value), 2);
    assert_int_equal(value[COUNTER_tx_bytes], 1001);
    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(sum(lo.ifindex, value), 1);
    assert_int_equal(value[COUNTER_tx_bytes], 1);
    verbena_close(ctx);
}

/* In a child: a stranger who took such a name says n bytes to all who come; none: hangs up; less:
 * says nothing. */
static pid_t stranger(const char *name, const uint8_t *message, ssize_t n)
{
    struct sockaddr_un a;
    socklen_t bytes = name_of(&a, name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&a, bytes) == 0 && listen(fd, 4) == 0);
    pid_t child = fork();
    while (child == 0) {
        int peer = accept(fd, NULL, NULL);
        if (peer < 0 || (n > 0 && send(peer, message, (size_t)n, 0) != n))
            _exit(1);
        if (n >= 0)
            close(peer);
    }
    close(fd);
    return child;
}

static void put32(uint8_t *at, uint32_t v)
{
    memcpy(at, &v, sizeof(v));
}

static void sum__believes_only_what_makes_sense(void **state)
{
    uint8_t good[TOLD_BYTES] = {0};
    struct verbena_context *ctx = open_lo();
    ssize_t n = ask_engine(good);

    (void)state;
    verbena_close(ctx);
    assert_int_equal(n, AT_VALUES + 8 * COUNTERS);
    uint64_t sent = 42;
    memcpy(good + AT_VALUES + 8 * COUNTER_tx_bytes, &sent, sizeof(sent));
    const struct {
        const char *name;
        ssize_t n;
        unsigned counted;
        uint32_t devices, ifindex; /* 0: as it was */
        uint8_t names;             /* inverts bits of the hash */
    } row[] = {
        {"verbena/counters/0", n,     1, 0,           0,                 0},
        {"verbena/counters/0", n,     1, DEVICES,     0,                 0},
        {"verbena/counters/0", n - 1, 0, 0,           0,                 0},
        {"verbena/counters/0", n + 1, 0, 0,           0,                 0},
        {"verbena/counters/0", 1,     0, 0,           0,                 0},
        {"verbena/counters/0", 0,     0, 0,           0,                 0},
        {"verbena/counters/0", -1,    0, 0,           0,                 0},
        {"verbena/counters/0", n,     0, DEVICES + 1, 0,                 0},
        {"verbena/counters/0", n,     0, UINT32_MAX,  0,                 0},
        {"verbena/counters/0", n,     0, 0,           ANOTHER_INTERFACE, 0},
        {"verbena/counters/0", n,     0, 0,           0,                 1},
        {"verbena/counter/0",  n,     0, 0,           0,                 0},
        {"x@verbena/counters", n,     0, 0,           0,                 0},
    };
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        uint8_t message[TOLD_BYTES];
        uint64_t value[COUNTERS];
        memcpy(message, good, sizeof(message));
        message[0] ^= row[i].names;
        if (row[i].devices != 0)
            put32(message + AT_DEVICES, row[i].devices);
        if (row[i].ifindex != 0)
            put32(message + AT_IFINDEX, row[i].ifindex);
        pid_t child = stranger(row[i].name, message, row[i].n);
        assert_int_equal(sum(lo.ifindex, value), row[i].counted);
        assert_int_equal(value[COUNTER_tx_bytes], row[i].counted * sent);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
}

/* As that user: binds the port, if it is to, and the name, and says the message to all who come. */
static pid_t user_says(uid_t uid, bool has_port, const uint8_t *message, ssize_t n)
{
    int up[2];
    char byte;

    assert_int_equal(pipe(up), 0);
    pid_t child = fork();
    if (child == 0) {
        struct sockaddr_in port = {.sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT)};
        struct sockaddr_un a;
        socklen_t bytes = name_of(&a, "verbena/counters/0");
        if (syscall(SYS_setresuid, uid, uid, uid) != 0)
            _exit(1);
        int udp = socket(AF_INET, SOCK_DGRAM, 0), fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        if ((has_port && bind(udp, (struct sockaddr *)&port, sizeof(port)) != 0) ||
            bind(fd, (struct sockaddr *)&a, bytes) != 0 || listen(fd, 4) != 0 ||
            write(up[1], "", 1) != 1)
            _exit(1);
        for (;;) {
            int peer = accept(fd, NULL, NULL);
            if (peer < 0 || send(peer, message, (size_t)n, 0) != n)
                _exit(1);
            close(peer);
        }
    }
    close(up[1]);
    assert_int_equal(read(up[0], &byte, 1), 1);
    close(up[0]);
    return child;
}

static void sum__of_root_believes_the_ports_user_only(void **state)
{
    enum { ALICE = 4711 };
    uint8_t message[TOLD_BYTES] = {0};
    uint64_t value[COUNTERS];

    (void)state;
    if (geteuid() != 0)
        SKIP_TEST("only root may be several users");
    struct verbena_context *ctx = open_lo();
    ssize_t n = ask_engine(message);
    verbena_close(ctx);
    for (int has_port = 0; has_port < 2; has_port++) {
        pid_t child = user_says(ALICE, has_port != 0, message, n);
        assert_int_equal(sum(lo.ifindex, value), has_port);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
}

static _Atomic unsigned accepts;

int __real_accept4(int fd, struct sockaddr *a, socklen_t *n, int flags);
int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *n, int flags);

int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *n, int flags)
{
    accepts++;
    return __real_accept4(fd, a, n, flags);
}

/* Out of descriptors nobody is answered, the helper sleeps, and it is only for a time. */
static void answer__again_when_there_are_descriptors(void **state)
{
    struct verbena_context *ctx = open_lo();
    struct rlimit limit, none;
    struct sockaddr_un a;
    uint64_t value[COUNTERS];
    char name[64];
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    (void)state;
    engine_name(name);
    socklen_t n = name_of(&a, name);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){(rlim_t)fd + 1, limit.rlim_max}; /* all below are in use */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int err = connect(fd, (struct sockaddr *)&a, n);
    unsigned before = accepts;
    for (int i = 0; i < 200 && accepts == before; i++)
        usleep(10000);
    usleep(200000);
    unsigned tries = accepts - before;
    setrlimit(RLIMIT_NOFILE, &limit);
    assert_int_equal(err, 0);
    assert_in_range(tries, 1, 20);
    for (int i = 0; i < 200 && sum(lo.ifindex, value) != 1; i++)
        usleep(10000);
    assert_int_equal(sum(lo.ifindex, value), 1);
    close(fd);
    verbena_close(ctx);
}

/* A program may end in a callback: the helper, which owes its farewell, waits for nobody. */
static void answer__later_where_the_lock_is_taken(void **state)
{
    struct verbena_context *ctx = open_lo();
    struct host *h = ctx->host;
    struct pollfd p = {.fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), .events = POLLIN};
    struct sockaddr_un a;
    uint8_t message[TOLD_BYTES];
    char name[64];

    (void)state;
    engine_name(name);
    socklen_t n = name_of(&a, name);
    progress_lock(&h->events);
    int err = connect(p.fd, (struct sockaddr *)&a, n);
    bool added = private_net_add("lo:1", "127.0.0.9"); /* news of netlink, too */
    unsigned waited = 0;
    for (int i = 0; i < 50; i++) {
        usleep(1000);
        waited += atomic_load(&h->events.wanted);
    }
    int early = poll(&p, 1, 0);
    progress_unlock(&h->events);
    assert_int_equal(err, 0);
    assert_true(added);
    assert_int_equal(waited, 0);
    assert_int_equal(early, 0);
    assert_true(recv(p.fd, message, sizeof(message), 0) > AT_VALUES);
    close(p.fd);
    verbena_close(ctx);
}

/* Who asks and does not wait for the answer, many times, is no burden. */
static void answer__to_many(void **state)
{
    uint64_t value[COUNTERS];
    struct verbena_context *ctx = open_lo();
    struct sockaddr_un a;
    char name[64];

    (void)state;
    engine_name(name);
    socklen_t n = name_of(&a, name);
    for (int i = 0; i < 300; i++) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
        assert_true(fd >= 0);
        (void)!connect(fd, (struct sockaddr *)&a, n); /* or its queue is full */
        close(fd);
    }
    for (int i = 0; i < 100 && sum(lo.ifindex, value) != 1; i++)
        usleep(10000);
    assert_int_equal(sum(lo.ifindex, value), 1);
    verbena_close(ctx);
}

static void gids__open_and_not(void **state)
{
    struct verbena_gid closed[VERBENA_GID_TABLE_SIZE], open[VERBENA_GID_TABLE_SIZE];
    struct verbena_device none = {.netdev = "none", .ifindex = ANOTHER_INTERFACE};

    (void)state;
    assert_int_equal(verbena_device_gids(&lo, closed), 0);
    assert_int_equal(closed[0].addr.b[15], 1);
    struct verbena_context *ctx = open_lo();
    assert_int_equal(verbena_device_gids(&lo, open), 1);
    assert_memory_equal(open, closed, sizeof(open));
    assert_int_equal(verbena_device_gids(&none, open), 0);
    assert_int_equal(open[0].addr.b[15], 0);
    verbena_close(ctx);
    assert_int_equal(verbena_device_gids(&lo, open), 0);
}

static void names__as_with_an_engine(void **state)
{
    struct verbena_context *ctx = open_lo();
    unsigned i = 0;
    uint64_t value;

    (void)state;
    for (; verbena_counter_name(i) != NULL; i++)
        assert_string_equal(verbena_counter_name(i), verbena_counter(i, &value));
    assert_int_equal(i, COUNTERS);
    verbena_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sum__of_who_has_it_open),
        cmocka_unit_test(sum__of_several),
        cmocka_unit_test(sum__believes_only_what_makes_sense),
        cmocka_unit_test(sum__of_root_believes_the_ports_user_only),
        cmocka_unit_test(answer__to_many),
        cmocka_unit_test(answer__again_when_there_are_descriptors),
        cmocka_unit_test(answer__later_where_the_lock_is_taken),
        cmocka_unit_test(gids__open_and_not),
        cmocka_unit_test(names__as_with_an_engine),
    };
    private_net_enter();
    if (device_find("vb_lo", &lo) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
