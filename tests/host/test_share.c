/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_share.c: command descriptors, and questions to who made them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "../port/private_net.h"
#include "endpoint.h"
#include "host/host_priv.h"

static struct endpoint e;
/* Written and read by the helper, too. */
static _Atomic int give_fd; /* goes along with answers; -1: none */
static _Atomic unsigned answers;

/* What an answer needs, and another may hold. */
static pthread_mutex_t needed = PTHREAD_MUTEX_INITIALIZER;

static bool begin(void)
{
    return pthread_mutex_trylock(&needed) == 0;
}

static void end(void)
{
    pthread_mutex_unlock(&needed);
}

static void answer(const struct verbena_share_request *q, struct verbena_share_reply *r, int *fd)
{
    memset(r, 0, sizeof(*r));
    r->err = -(int)q->handle;
    r->length = q->token[0];
    snprintf(r->device, sizeof(r->device), "kind %u", q->kind);
    if (give_fd >= 0)
        *fd = dup(give_fd);
    answers++;
}

static const struct verbena_share_server server = {begin, answer, end};

static int setup(void **state)
{
    (void)state;
    endpoint_open(&e, "vb_lo", 4096);
    verbena_share_serve(&server);
    give_fd = -1;
    answers = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    endpoint_close(&e);
    return 0;
}

static void cmd__what_it_says(void **state)
{
    (void)state;
    struct verbena_cmd made[2], read_back;
    int fd[2];

    for (int i = 0; i < 2; i++) {
        fd[i] = verbena_cmd_create(e.ctx, &made[i]);
        assert_true(fd[i] >= 0);
        assert_true(fcntl(fd[i], F_GETFD) & FD_CLOEXEC);
        assert_int_equal(verbena_cmd_read(fd[i], &read_back), 0);
        assert_memory_equal(&made[i], &read_back, sizeof(read_back));
        assert_int_equal(pwrite(fd[i], "x", 1, 0), -1); /* whoever has it cannot change it */
        assert_int_equal(ftruncate(fd[i], 0), -1);
    }
    assert_true(made[0].process == made[1].process);
    assert_memory_not_equal(made[0].token, made[1].token, sizeof(made[0].token));
    close(fd[0]);
    close(fd[1]);
}

static void cmd__is_none(void **state)
{
    (void)state;
    struct verbena_cmd cmd;
    int null = open("/dev/zero", O_RDONLY | O_CLOEXEC), s = socket(AF_UNIX, SOCK_STREAM, 0);
    int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    assert_int_equal(verbena_cmd_read(-1, &cmd), -EBADF);
    assert_int_equal(verbena_cmd_read(1 << 20, &cmd), -EBADF);
    assert_int_equal(verbena_cmd_read(null, &cmd), -EINVAL);
    assert_int_equal(verbena_cmd_read(s, &cmd), -EINVAL);
    assert_int_equal(verbena_cmd_read(file, &cmd), -EINVAL);
    close(null);
    close(s);
    close(file);
}

static void ask__reply_and_descriptor(void **state)
{
    (void)state;
    struct verbena_cmd cmd;
    struct verbena_share_reply r;
    struct stat a, b;
    int fd = verbena_cmd_create(e.ctx, &cmd), got;

    for (uint32_t i = 0; i < 20; i++) {
        struct verbena_share_request q = {
            .token = {77 + i, 0},
              .kind = i, .handle = i
        };
        give_fd = i % 2 != 0 ? fd : -1;
        assert_int_equal(verbena_share_ask(&cmd, &q, &r, &got), 0);
        assert_int_equal(r.err, -(int)i);
        assert_int_equal(r.length, 77 + i);
        assert_int_equal(got >= 0, i % 2 != 0);
        if (got < 0)
            continue;
        assert_true(fcntl(got, F_GETFD) & FD_CLOEXEC);
        assert_int_equal(fstat(got, &a), 0);
        assert_int_equal(fstat(fd, &b), 0);
        assert_true(a.st_ino == b.st_ino);
        close(got);
    }
    assert_int_equal(answers, 20);
    close(fd);
}

static void ask__nobody(void **state)
{
    (void)state;
    struct verbena_cmd cmd;
    struct verbena_share_request q = {.kind = 1};
    struct verbena_share_reply r;
    int fd = verbena_cmd_create(e.ctx, &cmd), got;

    cmd.process++;
    assert_int_equal(verbena_share_ask(&cmd, &q, &r, &got), -ECONNREFUSED);
    assert_int_equal(got, -1);
    close(fd);
}

/* A socket that sends to the maker's. */
static int stranger(const struct verbena_cmd *cmd)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "verbena/share/%016llx",
                     (unsigned long long)cmd->process);

    assert_int_equal(connect(s, (struct sockaddr *)&a,
                             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)),
                     0);
    return s;
}

/* Strangers send what they like; those who ask get their answer all the same. */
static void serve__nonsense(void **state)
{
    (void)state;
    struct verbena_cmd cmd;
    struct verbena_share_request q = {.kind = 1};
    struct verbena_share_reply r;
    uint8_t bytes[256] = {0};
    int fd = verbena_cmd_create(e.ctx, &cmd), got, s = stranger(&cmd);

    for (size_t i = 0; i < sizeof(bytes); i += 5)
        (void)send(s, bytes, i,
                   0); /* of any length; without a name of its own nobody is answered */
    assert_int_equal(verbena_share_ask(&cmd, &q, &r, &got), 0);
    assert_int_equal(r.err, 0);
    assert_int_equal(answers, 1);
    close(s);
    close(fd);
}

static void *ask_one(void *cmd)
{
    struct verbena_share_request q = {.kind = 1};
    struct verbena_share_reply r;
    int got;

    return (void *)(intptr_t)verbena_share_ask(cmd, &q, &r, &got);
}

/* Who asks while an answer cannot be given gets it later. */
static void serve__later(void **state)
{
    (void)state;
    struct verbena_cmd cmd;
    pthread_t asker;
    void *err;
    int fd = verbena_cmd_create(e.ctx, &cmd);

    pthread_mutex_lock(&needed);
    assert_int_equal(pthread_create(&asker, NULL, ask_one, &cmd), 0);
    usleep(20000);
    assert_int_equal(answers, 0);
    pthread_mutex_unlock(&needed);
    pthread_join(asker, &err);
    assert_int_equal((intptr_t)err, 0);
    assert_int_equal(answers, 1);
    close(fd);
}

/* The last close waits for the helper: the helper does not wait for what an answer needs. */
static void serve__closed_meanwhile(void **state)
{
    (void)state;
    struct verbena_cmd cmd;
    int fd = verbena_cmd_create(e.ctx, &cmd), s = stranger(&cmd);
    const struct verbena_share_request q = {.kind = 1};

    pthread_mutex_lock(&needed);
    assert_int_equal(send(s, &q, sizeof(q), 0), sizeof(q));
    usleep(20000);
    endpoint_close(&e);
    pthread_mutex_unlock(&needed);
    assert_int_equal(answers, 0);
    endpoint_open(&e, "vb_lo", 4096);
    close(s);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cmd__what_it_says, setup, teardown),
        cmocka_unit_test_setup_teardown(cmd__is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(ask__reply_and_descriptor, setup, teardown),
        cmocka_unit_test_setup_teardown(ask__nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(serve__nonsense, setup, teardown),
        cmocka_unit_test_setup_teardown(serve__later, setup, teardown),
        cmocka_unit_test_setup_teardown(serve__closed_meanwhile, setup, teardown),
    };

    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
