/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_port_peer.c: who is at the other end of a unix socket, in user namespaces that do not know
 * all users: nobody's number names no user there, our own least of all.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../skips.h"
#include "port/port_peer.h"

enum { NOBODY = 65534, ALICE = 4711, BOB = 4712, PEER_PIDFD = 77 };

static void uid_map__whole_or_not(void **state)
{
    static const struct {
        const char *text;
        bool whole;
    } row[] = {
        {"         0          0 4294967295\n", true },
        {"0 0 1000\n1000 1000 4294966295\n",   true },
        {"",                                   false},
        {"0 1000 1\n",                         false},
        {"0 1000 1\n1 100000 65536\n",         false},
        {"0 0 4294967294\n",                   false},
        {"0 0\n",                              false},
        {"0 0 1000\nx 1000 4294966295\n",      false},
        {"65534 65534 1\n",                    false},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        char text[64] = "";
        strcpy(text, row[i].text);
        FILE *f = tmpfile();
        assert_non_null(f);
        fputs(text, f);
        rewind(f);
        assert_int_equal(port_uid_map_whole(f), row[i].whole);
        fclose(f);
    }
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0)
        _exit(77);
}

/* Becomes that user, whose /proc/self is its own; 0 stays as it is. */
static void become(uid_t uid)
{
    if (uid != 0 && (syscall(SYS_setresuid, uid, uid, uid) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0))
        _exit(77);
}

/* In a child: the result of check(), 77: not allowed here. */
static int in_child(int (*check)(void))
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int r = check();
        _exit(r);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        SKIP_TEST("user namespaces, or other users, are not allowed here");
    return WEXITSTATUS(status);
}

static bool kernel_has_pidfd(int fd)
{
    int pidfd;
    socklen_t n = sizeof(pidfd);
    bool has = getsockopt(fd, SOL_SOCKET, PEER_PIDFD, &pidfd, &n) == 0;
    if (has)
        close(pidfd);
    return has;
}

static int known_everywhere(void)
{
    int pair[2];
    uid_t uid = 1;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return 77;
    become(geteuid() == 0 ? NOBODY : 0);
    if (!port_uid_one(geteuid()) || !port_peer_knows_us())
        return 1;
    return port_peer_uid(pair[0], &uid) ? 0 : 2;
}

/* All users are known in the first namespace: nobody is a user like others. */
static void uid__nobody_is_one_where_all_are_known(void **state)
{
    (void)state;
    FILE *map = fopen("/proc/self/uid_map", "r");
    bool whole = map != NULL && port_uid_map_whole(map);
    if (map != NULL)
        fclose(map);
    if (!whole)
        SKIP_TEST("this user namespace does not know all users");
    assert_int_equal(in_child(known_everywhere), 0);
}

/* What a child that has no name here sees of itself: only the kernel's own number tells. */
static int known_unmapped(void)
{
    int pair[2];
    uid_t uid;
    if (unshare(CLONE_NEWUSER) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return 77;
    if (geteuid() != NOBODY || port_uid_one(NOBODY) || !port_uid_one(0))
        return 1;
    if (port_peer_knows_us() != kernel_has_pidfd(pair[0]))
        return 2;
    return port_peer_uid(pair[0], &uid) == kernel_has_pidfd(pair[0]) ? 0 : 3;
}

static void uid__unmapped_knows_itself_by_the_kernel(void **state)
{
    (void)state;
    assert_int_equal(in_child(known_unmapped), 0);
}

static int mapped_to(const char *map)
{
    char text[32];
    snprintf(text, sizeof(text), map, (unsigned)geteuid());
    if (unshare(CLONE_NEWUSER) != 0)
        return 77;
    put("/proc/self/uid_map", text);
    return 0;
}

static int known_mapped(void)
{
    int pair[2];
    uid_t uid = 99;
    if (mapped_to("7 %u 1") != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return 77;
    return geteuid() == 7 && port_peer_uid(pair[0], &uid) && uid == 7 && !port_uid_one(NOBODY) ? 0
                                                                                               : 1;
}

static void uid__mapped_is_one(void **state)
{
    (void)state;
    assert_int_equal(in_child(known_mapped), 0);
}

/* A connection from another user's process, which waits until it is asked about. The mapping of
 * ours: NULL for none. 0: it is not known; 1: it is, by whatever name. */
static int stranger(const char *map)
{
    int pair[2], up[2], over[2];
    uid_t uid;
    char byte;
    struct { /* an address by autobind */
        sa_family_t family;
        char name[16];
    } a = {AF_UNIX, ""};
    socklen_t n = sizeof(a);
    int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (geteuid() != 0 || pipe(up) != 0 || pipe(over) != 0 ||
        bind(listener, (struct sockaddr *)&a, sizeof(a.family)) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&a, &n) != 0)
        return 77;
    pid_t pid = fork();
    if (pid == 0) {
        close(over[1]);
        become(BOB);
        pair[0] = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        bool ok = connect(pair[0], (struct sockaddr *)&a, n) == 0 && write(up[1], "", 1) == 1;
        (void)!read(over[0], &byte, 1);
        _exit(ok ? 0 : 1);
    }
    close(up[1]);
    if (read(up[0], &byte, 1) != 1)
        return 77;
    become(ALICE);
    if (unshare(CLONE_NEWUSER) != 0)
        return 77;
    if (map != NULL)
        put("/proc/self/uid_map", map);
    int fd = accept(listener, NULL, NULL);
    bool known = port_peer_uid(fd, &uid);
    close(over[1]);
    waitpid(pid, NULL, 0);
    return known;
}

static int stranger_to_unmapped(void)
{
    return stranger(NULL);
}

static int stranger_to_nobody(void)
{
    return stranger("65534 4711 1");
}

static int stranger_to_mapped(void)
{
    return stranger("4711 4711 1");
}

static void uid__stranger_is_not_taken_for_us(void **state)
{
    (void)state;
    assert_int_equal(in_child(stranger_to_unmapped), 0);
    assert_int_equal(in_child(stranger_to_nobody), 0);
    assert_int_equal(in_child(stranger_to_mapped), 0);
}

static void uid__no_unix_socket_no_user(void **state)
{
    uid_t uid;
    (void)state;
    assert_false(port_peer_uid(-1, &uid));
    FILE *f = tmpfile();
    assert_false(port_peer_uid(fileno(f), &uid));
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uid_map__whole_or_not),
        cmocka_unit_test(uid__nobody_is_one_where_all_are_known),
        cmocka_unit_test(uid__unmapped_knows_itself_by_the_kernel),
        cmocka_unit_test(uid__mapped_is_one),
        cmocka_unit_test(uid__stranger_is_not_taken_for_us),
        cmocka_unit_test(uid__no_unix_socket_no_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
