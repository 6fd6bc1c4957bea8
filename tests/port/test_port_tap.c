/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_port_tap.c: bytes of a capture file; several writers; files that are not ours.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "port/port_tap.h"
#include "wire/net.h"

static const uint8_t file_header[24] = {0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0,
                                        0,    0,    0,    0,    0, 0, 4, 0, 1, 0, 0, 0};

static char path[] = "/tmp/test_port_tap.XXXXXX";
static uint8_t content[1 << 20];

static size_t slurp(void)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(content, 1, sizeof(content), f);
    fclose(f);
    return n;
}

static int start(void **state)
{
    (void)state;
    strcpy(strrchr(path, '.'), ".XXXXXX");
    int fd = mkstemp(path);
    close(fd);
    return fd < 0;
}

static int end(void **state)
{
    (void)state;
    return unlink(path);
}

static void packet(struct port_tap *tap, uint64_t now_ns, uint16_t id, bool v6, bool sent,
                   uint32_t bytes)
{
    struct port_observer *o = port_tap_observer(tap);
    uint8_t payload[512];
    memset(payload, (uint8_t)id, sizeof(payload));
    struct net_headers h = {
        .v6 = v6,
        .src = {127, 0,   0, 1},
        .dst = {10,  255, 0, 1},
        .tos = 2,
        .ttl = 64,
        .ip_id = id,
        .dont_fragment = !v6,
        .udp_sport = 0xC001,
        .udp_dport = 4791,
        .udp_checksum_set = true,
    };
    o->packet(o, now_ns, &h, payload, bytes, sent);
}

/* Parses all records; returns how many, every one a frame with right checksums. */
static unsigned parse(size_t n)
{
    unsigned records = 0;
    assert_true(n >= sizeof(file_header));
    assert_memory_equal(content, file_header, sizeof(file_header));
    for (size_t at = sizeof(file_header); at < n; records++) {
        uint32_t r[4];
        struct net_headers h;
        const uint8_t *payload;
        size_t bytes;
        assert_true(n - at >= sizeof(r));
        memcpy(r, content + at, sizeof(r));
        assert_int_equal(r[2], r[3]);
        assert_true(n - at - sizeof(r) >= r[2]);
        assert_int_equal(net_parse(content + at + sizeof(r), r[2], &h, &payload, &bytes), NET_OK);
        assert_true(h.udp_checksum_set);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(payload[i], payload[0]);
        at += sizeof(r) + r[2];
    }
    return records;
}

/* A disk that is full for a while leaves no torn record in the middle. */
static void tap__ends_where_the_file_is_full(void **state)
{
    (void)state;
    struct port_tap *tap;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(port_tap_create(path, 5, &tap), 0);
    packet(tap, 1, 1, false, true, 20);
    port_tap_observer(tap)->done(port_tap_observer(tap), true);
    size_t whole = slurp();
    signal(SIGXFSZ, SIG_IGN);
    /* The limit holds for every file, and where stderr goes to one for that, too. */
    int err = dup(2), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_true(err >= 0 && null >= 0 && dup2(null, 2) == 2);
    small = before;
    small.rlim_cur = whole + 30;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    packet(tap, 2, 2, false, true, 200);
    port_tap_observer(tap)->done(port_tap_observer(tap), true);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(dup2(err, 2), 2);
    close(err);
    close(null);
    for (int sent = 0; sent < 2; sent++) {
        packet(tap, 3, 3, false, sent != 0, 20);
        port_tap_observer(tap)->done(port_tap_observer(tap), sent != 0);
    }
    port_tap_close(tap);
    assert_int_equal(slurp(), whole + 30);
    assert_int_equal(parse(whole), 1);
}

/* A pipe that nobody reads. */
static void tap__does_not_wait_for_a_reader(void **state)
{
    (void)state;
    struct port_tap *tap;
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20);
    assert_int_equal(port_tap_create(path, 5, &tap), 0);
    for (unsigned i = 0; i < 1000; i++) {
        packet(tap, i, 1, false, true, 500);
        port_tap_observer(tap)->done(port_tap_observer(tap), true);
    }
    port_tap_close(tap);
    alarm(0);
}

static void tap__record_as_the_wire_has_it(void **state)
{
    (void)state;
    struct port_tap *tap;
    assert_int_equal(port_tap_create(path, 5, &tap), 0);
    packet(tap, 1999999999, 3, false, true, 20);
    port_tap_observer(tap)->done(port_tap_observer(tap), true);
    packet(tap, 7, 4, true, false, 33);
    assert_int_equal(slurp(), 24 + 16 + 14 + 20 + 8 + 20);
    port_tap_observer(tap)->done(port_tap_observer(tap), false);
    port_tap_close(tap);
    size_t n = slurp();
    assert_int_equal(parse(n), 2);
    uint32_t r[4];
    memcpy(r, content + 24, sizeof(r));
    assert_int_equal(r[0], 2);
    assert_int_equal(r[1], 4);
    assert_int_equal(r[2], 14 + 20 + 8 + 20);
    struct net_headers h;
    const uint8_t *payload;
    size_t bytes;
    assert_int_equal(net_parse(content + 40, r[2], &h, &payload, &bytes), NET_OK);
    assert_int_equal(h.ip_id, 3);
    assert_true(h.dont_fragment);
    assert_int_equal(h.tos, 2);
    assert_int_equal(h.udp_sport, 0xC001);
}

static void tap__several_writers_tear_nothing(void **state)
{
    (void)state;
    enum { WRITERS = 4, PACKETS = 500 };
    pid_t pid[WRITERS];
    for (unsigned w = 0; w < WRITERS; w++) {
        pid[w] = fork();
        assert_true(pid[w] >= 0);
        if (pid[w] != 0)
            continue;
        struct port_tap *tap;
        if (port_tap_create(path, 0, &tap) != 0)
            _exit(1);
        for (unsigned i = 0; i < PACKETS; i++) {
            packet(tap, i, (uint16_t)(w + 1), false, true, 1 + i % 300);
            if (i % (w + 1) == 0)
                port_tap_observer(tap)->done(port_tap_observer(tap), true);
        }
        port_tap_observer(tap)->done(port_tap_observer(tap), true);
        port_tap_close(tap);
        _exit(0);
    }
    for (unsigned w = 0; w < WRITERS; w++) {
        int status;
        assert_int_equal(waitpid(pid[w], &status, 0), pid[w]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(parse(slurp()), WRITERS * PACKETS);
}

static void tap__packet_between_writers_is_recorded_once(void **state)
{
    (void)state;
    struct port_tap *from, *to, *elsewhere;
    char other[] = "/tmp/test_port_tap.XXXXXX";
    close(mkstemp(other));
    assert_int_equal(port_tap_create(path, 0, &from), 0);
    assert_int_equal(port_tap_create(path, 0, &to), 0);
    assert_int_equal(port_tap_create(other, 0, &elsewhere), 0);
    port_tap_observer(elsewhere)->source(port_tap_observer(elsewhere), false, 0xC001);
    packet(to, 1, 1, false, false, 20); /* its sender writes to another file */
    port_tap_observer(from)->source(port_tap_observer(from), false, 0xC001);
    packet(from, 1, 2, false, true, 20);
    packet(to, 300000000, 2, false, false, 20);
    packet(to, 300000000, 3, true, false, 20); /* the same port number over IPv6 */
    port_tap_observer(from)->done(port_tap_observer(from), true);
    port_tap_observer(to)->done(port_tap_observer(to), false);
    assert_int_equal(parse(slurp()), 3);
    port_tap_close(from);
    packet(to, 600000000, 4, false, false, 20); /* the sender has gone */
    port_tap_observer(to)->done(port_tap_observer(to), false);
    assert_int_equal(parse(slurp()), 4);
    port_tap_close(to);
    port_tap_close(elsewhere);
    unlink(other);
}

static void tap__refuses_what_is_not_a_capture(void **state)
{
    (void)state;
    struct port_tap *tap;
    uint8_t other[24];
    static const struct {
        size_t bytes;
        size_t change; /* byte of a right header that is wrong */
    } rows[] = {
        {1,  24},
        {23, 24},
        {24, 0 },
        {24, 4 },
        {24, 20}
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memcpy(other, file_header, sizeof(other));
        if (rows[i].change < sizeof(other))
            other[rows[i].change] ^= 1;
        FILE *f = fopen(path, "wb");
        assert_int_equal(fwrite(other, 1, rows[i].bytes, f), rows[i].bytes);
        fclose(f);
        assert_int_equal(port_tap_create(path, 0, &tap), -EINVAL);
        assert_int_equal(slurp(), rows[i].bytes);
    }
    assert_int_equal(port_tap_create("/nonexistent/file", 0, &tap), -ENOENT);
    assert_int_equal(port_tap_create("/tmp", 0, &tap), -EISDIR);
    assert_int_equal(port_tap_create("/dev/full", 0, &tap), -ENOSPC);
}

/* A disk with room for a part of the header: nothing stays that later would be no capture. */
static void tap__no_room_for_the_header(void **state)
{
    (void)state;
    struct port_tap *tap;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t room = 1; room < sizeof(file_header); room += 11) {
        small = before;
        small.rlim_cur = room;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        int err = port_tap_create(path, 0, &tap);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(err, -ENOSPC);
        assert_int_equal(slurp(), 0);
    }
    assert_int_equal(port_tap_create(path, 0, &tap), 0);
    port_tap_close(tap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tap__does_not_wait_for_a_reader, start, end),
        cmocka_unit_test_setup_teardown(tap__ends_where_the_file_is_full, start, end),
        cmocka_unit_test_setup_teardown(tap__record_as_the_wire_has_it, start, end),
        cmocka_unit_test_setup_teardown(tap__several_writers_tear_nothing, start, end),
        cmocka_unit_test_setup_teardown(tap__packet_between_writers_is_recorded_once, start, end),
        cmocka_unit_test_setup_teardown(tap__no_room_for_the_header, start, end),
        cmocka_unit_test_setup_teardown(tap__refuses_what_is_not_a_capture, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
