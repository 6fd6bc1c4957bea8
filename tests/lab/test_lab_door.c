/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_door.c: who comes while `lab serve` is busy is told so, if he has the key; nobody else
 * learns who the peer is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lab/lab_clock.h"
#include "lab/lab_door.h"
#include "lab/lab_net.h"

#define SECOND 1000000000ull
enum { MAX_TOLD = 8 };

static const uint8_t key[LAB_KEY_BYTES] = {1}, other_key[LAB_KEY_BYTES] = {2};
static struct lab_door door;
static struct lab_lobby lobby;
static int near, far; /* the connection of the peer with whom it is busy */
static char told[MAX_TOLD][LAB_MESSAGE_BYTES + LAB_WHO_BYTES], message[LAB_MESSAGE_BYTES];
static unsigned told_count;

static void note(const char *who, const char *why)
{
    assert_true(told_count < MAX_TOLD);
    snprintf(told[told_count++], sizeof(told[0]), "%s: %s", who, why);
}

static int come(void)
{
    return lab_net_connect("127.0.0.1", lab_net_port(lobby.listener), 10 * SECOND, message);
}

static int setup(void **state)
{
    (void)state;
    int listener = lab_net_listen("127.0.0.1", 0, message);
    lobby = (struct lab_lobby){.listener = listener,
                               .bytes = LAB_GREETING_BYTES,
                               .limit_ns = 10 * SECOND,
                               .turned_away = note};
    door = (struct lab_door){.key = {1}};
    told_count = 0;
    far = come();
    near = lab_net_accept(listener, 10 * SECOND, message);
    return listener < 0 || far < 0 || near < 0;
}

static int teardown(void **state)
{
    (void)state;
    lab_door_leave(&door, &lobby); /* once more where the case has done so */
    assert_int_equal(lobby.count, 0);
    close(near);
    close(far);
    return close(lobby.listener);
}

/* How many bytes come until it is closed at the other end, as it is. */
static size_t rest_of(int fd)
{
    char rest[4096];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t bytes = 0;
    ssize_t n;
    do {
        assert_int_equal(poll(&p, 1, 10000), 1);
        n = recv(fd, rest, sizeof(rest), 0);
        assert_true(n >= 0);
        bytes += (size_t)n;
    } while (n > 0);
    close(fd);
    return bytes;
}

/* What a run hears; its control is closed. */
static bool is_refused(struct lab_control *c)
{
    json_t *o = NULL;
    assert_int_equal(lab_control_hear(c, "agreed", &o), -EPROTO);
    assert_null(o);
    bool busy = c->busy;
    lab_message_copy(message, c->message);
    lab_control_close(c);
    return busy;
}

static void lab_door_keep__tells_with_whom(void **state)
{
    (void)state;
    struct lab_control c;
    char who[LAB_WHO_BYTES];
    assert_int_equal(lab_door_keep(&door, &lobby, near, false, message), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(lab_control_open(&c, come(), false, key, 10 * SECOND), 0);
        assert_true(is_refused(&c));
        assert_non_null(strstr(message, "`lab serve' is busy with another peer, "));
        assert_non_null(strstr(message, lab_net_who(near, who)));
        assert_non_null(strstr(message, " UTC (for "));
        assert_non_null(strstr(message, "another one with another --port"));
    }
    lab_door_leave(&door, &lobby);
    assert_int_equal(told_count, 2);
    assert_non_null(strstr(told[1], "127.0.0.1 port ")); /* though it has gone by now */
    assert_non_null(strstr(told[1], ": `lab serve' is busy with another peer"));
}

static void lab_door_keep__other_key_learns_nothing(void **state)
{
    (void)state;
    struct lab_control c;
    assert_int_equal(lab_door_keep(&door, &lobby, near, false, message), 0);
    assert_int_equal(lab_control_open(&c, come(), false, other_key, 10 * SECOND), -EACCES);
    assert_false(c.busy);
    assert_non_null(strstr(c.message, "the peer's key is not ours"));
    lab_control_close(&c);
    int fd = come();
    const char request[] = "GET / HTTP/1.1\r\nHost: somewhere.example.com\r\n\r\n";
    assert_int_equal(send(fd, request, LAB_GREETING_BYTES, MSG_NOSIGNAL), LAB_GREETING_BYTES);
    assert_int_equal(rest_of(fd), LAB_GREETING_BYTES);
    lab_door_leave(&door, &lobby);
    assert_int_equal(told_count, 2);
    assert_non_null(strstr(told[0], "the peer's key is not ours"));
    assert_non_null(strstr(told[1], "the peer is no `verbena lab'"));
}

/* Who sat in the lobby when the peer was chosen is answered, and who says nothing keeps nobody. */
static void lab_door_keep__takes_over_the_lobby(void **state)
{
    (void)state;
    struct lab_control c;
    int silent = come(), waits = come();
    for (unsigned i = 0; i < 2; i++) {
        lobby.seat[lobby.count].fd = lab_net_accept(lobby.listener, 10 * SECOND, message);
        lobby.seat[lobby.count++].came_ns = lab_now_ns();
    }
    assert_int_equal(lab_door_keep(&door, &lobby, near, false, message), 0);
    assert_int_equal(lobby.count, 0);
    assert_int_equal(lab_control_open(&c, waits, false, key, 10 * SECOND), 0);
    assert_true(is_refused(&c));
    lab_door_leave(&door, &lobby);
    assert_true(told_count >= 1);
    assert_non_null(strstr(told[0], ": `lab serve' is busy with another peer"));
    assert_int_equal(rest_of(silent), 0);
}

/* Whoever comes while nobody stands there waits, and is answered when somebody does again, of the
 * same run. */
static void lab_door_halt__gives_the_lobby_back(void **state)
{
    (void)state;
    struct lab_control c;
    assert_int_equal(lab_door_keep(&door, &lobby, near, false, message), 0);
    lab_door_halt(&door, &lobby);
    lab_door_halt(&door, &lobby);
    assert_null(lobby.wake);
    int fd = come();
    lobby.seat[0].fd = lab_net_accept(lobby.listener, 10 * SECOND, message);
    lobby.seat[lobby.count++].came_ns = lab_now_ns();
    assert_int_equal(lab_door_keep(&door, &lobby, far, false, message), 0);
    assert_int_equal(lab_control_open(&c, fd, false, key, 10 * SECOND), 0);
    char who[LAB_WHO_BYTES];
    assert_true(is_refused(&c));
    assert_non_null(strstr(message, lab_net_who(near, who)));
}

/* Who says something else may be the baseline's connection, and comes back with the lobby. */
static void lab_door_halt__with_those_who_say_something_else(void **state)
{
    (void)state;
    struct lab_control c;
    char word[LAB_GREETING_BYTES + 8], got[sizeof(word)];
    memset(word, '7', sizeof(word));
    int fd = come();
    assert_int_equal(send(fd, word, sizeof(word), MSG_NOSIGNAL), sizeof(word));
    assert_int_equal(lab_door_keep(&door, &lobby, near, true, message), 0);
    assert_int_equal(lab_control_open(&c, come(), false, key, 10 * SECOND), 0);
    assert_true(is_refused(&c)); /* so the one before has been looked at */
    lab_door_halt(&door, &lobby);
    assert_int_equal(told_count, 1);
    assert_int_equal(lobby.count, 1);
    assert_int_equal(recv(lobby.seat[0].fd, got, sizeof(got), MSG_WAITALL), sizeof(got));
    assert_memory_equal(got, word, sizeof(got));
    close(fd);
}

struct late {
    int fd, error;
    bool busy;
};

static void *run_late(void *arg)
{
    struct late *l = arg;
    struct lab_control c;
    json_t *o = NULL;
    l->error = lab_control_open(&c, l->fd, false, key, 10 * SECOND);
    l->busy = l->error == 0 && lab_control_hear(&c, "agreed", &o) < 0 && c.busy;
    lab_control_close(&c);
    return NULL;
}

/* Who has come when it ends hears of it still. */
static void lab_door_leave__answers_the_last(void **state)
{
    (void)state;
    struct late late = {.fd = come()};
    pthread_t thread;
    assert_int_equal(lab_door_keep(&door, &lobby, near, false, message), 0);
    assert_int_equal(pthread_create(&thread, NULL, run_late, &late), 0);
    lab_door_leave(&door, &lobby);
    close(lobby.listener);
    pthread_join(thread, NULL);
    lobby.listener = lab_net_listen("127.0.0.1", 0, message);
    assert_int_equal(late.error, 0);
    assert_true(late.busy);
    assert_int_equal(told_count, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(lab_door_keep__tells_with_whom),
        CASE(lab_door_keep__other_key_learns_nothing),
        CASE(lab_door_keep__takes_over_the_lobby),
        CASE(lab_door_halt__gives_the_lobby_back),
        CASE(lab_door_halt__with_those_who_say_something_else),
        CASE(lab_door_leave__answers_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
