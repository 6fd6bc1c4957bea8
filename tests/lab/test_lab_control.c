/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_control.c: both ends of a control connection in one process, on a pair of sockets; what
 * a stranger, another key, a forged or repeated frame and a peer that goes lead to.
 */
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lab/lab_control.h"

enum { SECOND = 1000000000 };

struct opening {
    struct lab_control *c;
    int fd;
    bool serving;
    uint8_t key[LAB_KEY_BYTES];
    int result;
};

static struct lab_control here, there;

static void *open_one(void *arg)
{
    struct opening *o = arg;
    o->result = lab_control_open(o->c, o->fd, o->serving, o->key, 10ull * SECOND);
    return NULL;
}

/* Both greet; their results. */
static void open_both(uint8_t key_here, uint8_t key_there, bool serving_there, int results[2])
{
    int fds[2];
    pthread_t thread;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    struct opening a = {&here, fds[0], false, {key_here}, 0};
    struct opening b = {&there, fds[1], serving_there, {key_there}, 0};
    assert_int_equal(pthread_create(&thread, NULL, open_one, &b), 0);
    open_one(&a);
    pthread_join(thread, NULL);
    results[0] = a.result;
    results[1] = b.result;
}

static int setup(void **state)
{
    (void)state;
    int results[2];
    open_both(1, 1, true, results);
    return results[0] != 0 || results[1] != 0;
}

static int teardown(void **state)
{
    (void)state;
    lab_control_close(&here);
    lab_control_close(&there);
    return 0;
}

static void lab_control_open__other_key(void **state)
{
    (void)state;
    int results[2];
    open_both(1, 2, true, results);
    assert_int_equal(results[0], -EACCES);
    assert_int_equal(results[1], -EACCES);
    assert_non_null(strstr(here.message, "the peer's key is not ours"));
    assert_non_null(strstr(there.message, "the peer's key is not ours"));
    teardown(NULL);
}

static void lab_control_open__same_role(void **state)
{
    (void)state;
    int results[2];
    open_both(1, 1, false, results);
    assert_int_equal(results[0], -EPROTO);
    assert_non_null(strstr(here.message, "the same role"));
    teardown(NULL);
}

/* What comes instead of a greeting, and what is said about it. */
static void lab_control_open__no_greeting(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        int error;
        const char *says;
    } rows[] = {
        {"",                                                         0,  -EPIPE,  "the peer is gone while greeting"},
        {"verb-lab",                                                 8,  -EPIPE,  "the peer is gone while greeting"},
        {"SSH-2.0-OpenSSH_9.2p1 Debian and some more of it",         48, -EPROTO, "is no `verbena lab'"            },
        {"verb-lab\0\0\0\7\0\0\0\1................................", 48, -EPROTO,
         "speaks protocol 7 and this one 1"                                                                        },
        {"verb-lab\0\0\0\0\0\0\0\1................................", 48, -EPROTO,
         "speaks protocol 0 and this one 1"                                                                        },
        {"verb-lab\0\0\0\1\0\0\0\0................................", 48, -EPROTO, "the same role"                  },
        {"verb-lab\0\0\0\1\0\0\0\1................................", 48, -EPIPE,
         "gone while greeting"                                                                                     },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int fds[2];
        uint8_t key[LAB_KEY_BYTES] = {0};
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        assert_int_equal(write(fds[1], rows[i].bytes, rows[i].n), rows[i].n);
        assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
        assert_int_equal(lab_control_open(&here, fds[0], false, key, SECOND), rows[i].error);
        if (strstr(here.message, rows[i].says) == NULL)
            fail_msg("%u: %s", i, here.message);
        close(fds[1]);
        lab_control_close(&here);
    }
}

static void lab_control_receive__what_was_sent(void **state)
{
    (void)state;
    for (json_int_t i = 0; i < 3; i++) {
        uint64_t number;
        assert_int_equal(lab_control_send(&here, "alive", json_object()), 0);
        assert_int_equal(lab_control_send(&here, "case", json_pack("{s:I,s:s}", "n", i, "t", "x")),
                         0);
        assert_true(lab_control_pending(&there, 1000));
        json_t *o = lab_control_receive(&there, "case"); /* "alive" is passed over */
        assert_non_null(o);
        assert_true(lab_control_number(&there, o, "n", 2, &number));
        assert_int_equal(number, i);
        assert_string_equal(lab_control_text(&there, o, "t"), "x");
        assert_int_equal(lab_control_number(&there, o, "n", 1, &number), i <= 1);
        assert_false(lab_control_number(&there, o, "t", 9, &number)); /* a text */
        assert_false(lab_control_number(&there, o, "none", 9, &number));
        assert_non_null(strstr(there.message, "no right 'none'"));
        assert_null(lab_control_text(&there, o, "n"));
        json_decref(o);
        assert_int_equal(lab_control_send(&there, "answer", json_object()), 0);
        o = lab_control_receive(&here, "answer");
        assert_non_null(o);
        json_decref(o);
    }
    assert_false(lab_control_pending(&here, 0));
}

static void lab_control_receive__another_type(void **state)
{
    (void)state;
    there.doing = "testing";
    assert_int_equal(lab_control_send(&here, "case", json_object()), 0);
    assert_null(lab_control_receive(&there, "ready"));
    assert_string_equal(there.message, "the peer sent 'case' instead of 'ready' while testing");
}

static void lab_control_give_up__peer_is_told_why(void **state)
{
    (void)state;
    lab_control_give_up(&here, "no slots left");
    assert_null(lab_control_receive(&there, "case"));
    assert_string_equal(there.message, "the peer gave up: no slots left");
    assert_true(there.peer_knows);
    lab_control_give_up(&there, "this is not said any more");
    assert_string_equal(there.message, "the peer gave up: no slots left");
}

/* Who fails to send finds what the peer said before it went. */
static void lab_control_send__peer_gave_up_and_went(void **state)
{
    (void)state;
    lab_control_give_up(&here, "disk full");
    lab_control_close(&here);
    int error = 0;
    for (unsigned i = 0; i < 3 && error == 0; i++)
        error = lab_control_send(&there, "case", json_object());
    assert_int_equal(error, -EPIPE);
    assert_string_equal(there.message, "the peer gave up: disk full");
}

static void lab_control_receive__gone(void **state)
{
    (void)state;
    there.doing = "running read";
    lab_control_close(&here);
    assert_null(lab_control_receive(&there, "case"));
    assert_string_equal(there.message, "the peer is gone while running read");
    assert_true(there.peer_knows);
}

static void lab_control_receive__silence(void **state)
{
    (void)state;
    there.timeout_ns = 20000000;
    there.doing = "waiting";
    assert_null(lab_control_receive(&there, "case"));
    assert_string_equal(there.message, "the peer says nothing for 20 ms while waiting");
}

/* Takes the next frame off the wire, as somebody between both could. */
static size_t intercept(uint8_t *frame, size_t room)
{
    ssize_t n = recv(there.fd, frame, room, MSG_DONTWAIT);
    assert_true(n > 4);
    return (size_t)n;
}

static void put(const uint8_t *frame, size_t n)
{
    assert_int_equal(send(here.fd, frame, n, 0), n);
}

static void lab_control_receive__forged(void **state)
{
    (void)state;
    uint8_t frame[256];
    size_t n;
    assert_int_equal(lab_control_send(&here, "case", json_object()), 0);
    n = intercept(frame, sizeof(frame));
    frame[n - 1] ^= 1;
    put(frame, n);
    assert_null(lab_control_receive(&there, "case"));
    assert_non_null(strstr(there.message, "a forged message"));
}

static void lab_control_receive__repeated(void **state)
{
    (void)state;
    uint8_t frame[256];
    assert_int_equal(lab_control_send(&here, "case", json_object()), 0);
    size_t n = intercept(frame, sizeof(frame));
    put(frame, n);
    put(frame, n);
    json_t *o = lab_control_receive(&there, "case");
    assert_non_null(o);
    json_decref(o);
    assert_null(lab_control_receive(&there, "case"));
    assert_non_null(strstr(there.message, "a forged message"));
}

static void lab_control_receive__left_out(void **state)
{
    (void)state;
    uint8_t frame[256];
    assert_int_equal(lab_control_send(&here, "case", json_object()), 0);
    intercept(frame, sizeof(frame));
    assert_int_equal(lab_control_send(&here, "case", json_object()), 0);
    assert_null(lab_control_receive(&there, "case"));
    assert_non_null(strstr(there.message, "a forged message"));
}

static void lab_control_receive__lengths(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {0, 1, 15, LAB_MAX_FRAME_BYTES + 17, UINT32_MAX};
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        uint32_t be = htobe32(lengths[i]);
        put((const uint8_t *)&be, sizeof(be));
        assert_null(lab_control_receive(&there, "case"));
        assert_non_null(strstr(there.message, "the peer sent no message"));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_control_open__other_key),
        cmocka_unit_test(lab_control_open__same_role),
        cmocka_unit_test(lab_control_open__no_greeting),
        TEST(lab_control_receive__what_was_sent),
        TEST(lab_control_receive__another_type),
        TEST(lab_control_give_up__peer_is_told_why),
        TEST(lab_control_send__peer_gave_up_and_went),
        TEST(lab_control_receive__gone),
        TEST(lab_control_receive__silence),
        TEST(lab_control_receive__forged),
        TEST(lab_control_receive__repeated),
        TEST(lab_control_receive__left_out),
        TEST(lab_control_receive__lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
