/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_lobby.c: whoever connects and says too little keeps nobody else from being heard.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lab/lab_clock.h"
#include "lab/lab_lobby.h"
#include "lab/lab_net.h"

enum { BYTES = 8, MAX_TOLD = 64 };
#define SECOND 1000000000ull

static struct lab_lobby lobby;
static char told[MAX_TOLD][LAB_WHO_BYTES + 64], message[LAB_MESSAGE_BYTES];
static unsigned told_count;

static void note(const char *who, const char *why)
{
    assert_true(told_count < MAX_TOLD);
    snprintf(told[told_count++], sizeof(told[0]), "%s: %s", who, why);
}

static int setup(void **state)
{
    (void)state;
    int listener = lab_net_listen("127.0.0.1", 0, message);
    lobby = (struct lab_lobby){
        .listener = listener, .bytes = BYTES, .limit_ns = LAB_STRANGER_NS, .turned_away = note};
    told_count = 0;
    return listener < 0;
}

static int teardown(void **state)
{
    (void)state;
    lab_lobby_close(&lobby);
    assert_int_equal(lobby.count, 0);
    return close(lobby.listener);
}

/* Connects and says that. */
static int come(const char *text)
{
    int fd = lab_net_connect("127.0.0.1", lab_net_port(lobby.listener), SECOND, message);
    assert_true(fd >= 0);
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    return fd;
}

/* The next is that one, and nothing of what it has said is read yet. */
static void next_is(const char *text)
{
    char got[64] = "";
    int fd = lab_lobby_next(&lobby, 10 * SECOND, message);
    assert_true(fd >= 0);
    assert_int_equal(recv(fd, got, strlen(text), MSG_WAITALL), strlen(text));
    assert_string_equal(got, text);
    close(fd);
}

static void nobody(void)
{
    assert_int_equal(lab_lobby_next(&lobby, SECOND / 100, message), -ETIMEDOUT);
    assert_non_null(strstr(message, "nobody came to port "));
}

static void lab_lobby_next__enough(void **state)
{
    (void)state;
    int first = come("12345678"), second = come("abcdefgh and more");
    next_is("12345678");
    next_is("abcdefgh and more");
    nobody();
    assert_int_equal(told_count, 0);
    close(first);
    close(second);
}

/* Those before it stay; one that goes on in the end is heard. */
static void lab_lobby_next__others_say_too_little(void **state)
{
    (void)state;
    int silent = come(""), part = come("1234567"), right = come("12345678");
    next_is("12345678");
    assert_int_equal(lobby.count, 2);
    nobody();
    assert_int_equal(send(part, "8", 1, 0), 1);
    next_is("12345678");
    assert_int_equal(lobby.count, 1);
    assert_int_equal(told_count, 0);
    close(silent);
    nobody();
    assert_int_equal(lobby.count, 0);
    assert_int_equal(told_count, 1);
    close(part);
    close(right);
}

static void lab_lobby_next__hung_up(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "1", "1234567"};
    const struct linger reset = {1, 0};
    for (unsigned how = 0; how < 3; how++) {
        for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
            told_count = 0;
            int fd = come(texts[i]);
            if (how == 0)
                shutdown(fd, SHUT_WR);
            if (how == 1)
                setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
            if (how != 0)
                close(fd);
            nobody();
            assert_int_equal(lobby.count, 0);
            assert_true(told_count == 1 || (how == 1 && told_count == 0));
            if (how != 1)
                assert_non_null(strstr(told[0], ": it has hung up"));
            if (how == 0)
                close(fd);
        }
    }
    int fd = come("12345678"); /* who has said enough is heard all the same */
    shutdown(fd, SHUT_WR);
    next_is("12345678");
    close(fd);
}

static void lab_lobby_next__too_long(void **state)
{
    (void)state;
    int fds[] = {come(""), come("1234567")};
    nobody();
    assert_int_equal(lobby.count, 2);
    for (unsigned i = 0; i < 2; i++)
        lobby.seat[i].came_ns -= LAB_STRANGER_NS;
    nobody();
    assert_int_equal(lobby.count, 0);
    assert_int_equal(told_count, 2);
    assert_non_null(strstr(told[0], "127.0.0.1 port "));
    assert_non_null(strstr(told[1], ": it does not say who it is in time"));
    for (unsigned i = 0; i < 2; i++) {
        char byte; /* or a reset, for what it has said is not read */
        assert_true(recv(fds[i], &byte, 1, 0) <= 0);
        close(fds[i]);
    }
}

static void lab_lobby_next__too_many(void **state)
{
    (void)state;
    enum { MANY = LAB_LOBBY_SEATS + 5 };
    int fds[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        fds[i] = come("");
        nobody();
    }
    assert_int_equal(lobby.count, LAB_LOBBY_SEATS);
    assert_int_equal(told_count, MANY - LAB_LOBBY_SEATS);
    assert_non_null(strstr(told[0], ": too many others wait"));
    int right = come("12345678");
    next_is("12345678");
    close(right);
    for (unsigned i = 0; i < MANY; i++)
        close(fds[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lab_lobby_next__enough),   TEST(lab_lobby_next__others_say_too_little),
        TEST(lab_lobby_next__hung_up),  TEST(lab_lobby_next__too_long),
        TEST(lab_lobby_next__too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
