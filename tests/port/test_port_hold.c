/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_port_hold.c: requests that come between two listeners of a service wait for the second one;
 * those for what nobody listened to do not. Time is the test's own, but for the timer that looks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "descriptors.h"
#include "members.h"
#include "private_net.h"

enum { MEMBERS = 3, KEPT = 32 };
static const uint64_t SERVICE = 0x01060000 + 18515, MS = 1000000;

static struct member m[MEMBERS];
static uint64_t skew_ns; /* our clock is ahead */

static uint64_t our_now_ns(void)
{
    return now_ns() + skew_ns;
}

static int make_all(void **state)
{
    (void)state;
    skew_ns = 0;
    for (unsigned i = 0; i < MEMBERS; i++)
        make(&m[i], i + 1);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MEMBERS; i++)
        close_member(&m[i]);
    return 0;
}

static struct udp_service *claim(unsigned who, const struct net_addr *addr)
{
    struct udp_service *s;
    assert_int_equal(port_udp_service_claim(m[who].port, SERVICE, addr, &s), 0);
    return s;
}

static void turns(unsigned ms)
{
    for (uint64_t end = now_ns() + ms * MS; now_ns() < end; poll(NULL, 0, 1)) {
        for (unsigned i = 0; i < MEMBERS; i++) {
            for (unsigned k = 0; k < PORT_EMPTY_CALLS && m[i].port != NULL; k++)
                m[i].port->ops->receive(m[i].port, our_now_ns(), &m[i].r, 512);
        }
    }
}

static uint64_t held(void)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < MEMBERS; i++)
        sum += count_of(&m[i], "service_held");
    return sum;
}

static void ask(uint32_t id, unsigned attribute, const struct net_addr *to)
{
    uint8_t mad[MAD_BYTES];
    mad_make(mad, attribute, id, 0, SERVICE);
    mad_send(&m[2], to, mad);
}

/* Until somebody has n MADs. */
static void wait_for(unsigned who, unsigned n)
{
    for (unsigned i = 0; i < 500 && m[who].mads < n; i++)
        turns(2);
    assert_int_equal(m[who].mads, n);
}

static void wait_for_held(uint64_t n)
{
    for (unsigned i = 0; i < 500 && held() < n; i++)
        turns(2);
    assert_int_equal(held(), n);
}

/* Sent, not held, and member who has it. */
static void at_once(unsigned who, unsigned attribute, const struct net_addr *to)
{
    unsigned before = m[who].mads;
    uint64_t held_before = held();
    ask(77, attribute, to);
    wait_for(who, before + 1);
    assert_int_equal(held(), held_before);
}

/* The name stays, the listener goes and another comes: ours, and that of a process which was passed
 * the request; both kinds of request, both families, a name for one address and one for any. */
static void hold__the_next_listener_gets_it(void **state)
{
    (void)state;
    const struct net_addr *const names[] = {&local4, &any4, NULL, &local6, &any6};
    for (unsigned i = 0; i < 5; i++) {
        for (unsigned who = 0; who < MEMBERS; who++) {
            const struct net_addr *to = i < 3 ? &local4 : &local6;
            unsigned attribute = (i + who) % 2 ? CM_SIDR_REQ : CM_REQ;
            struct udp_service *s = claim(who, names[i]);
            uint64_t before = held();
            at_once(who, attribute, to);
            port_udp_service_rest(s, our_now_ns());
            unsigned had = m[who].mads;
            ask(3, attribute, to);
            wait_for_held(before + 1);
            turns(15);
            assert_int_equal(m[who].mads, had);
            port_udp_service_rest(s, 0);
            wait_for(who, had + 1);
            port_udp_service_release(m[who].port, s);
            skew_ns += 60000 * MS; /* a story of its own */
        }
    }
    turns(15);
    assert_int_equal(count_of(&m[0], "service_unknown"), 0);
}

/* The listener's name has gone, too, and another process takes it. */
static void hold__the_next_process_gets_it(void **state)
{
    (void)state;
    struct udp_service *s = claim(1, &local4);
    at_once(1, CM_REQ, &local4);
    port_udp_service_release(m[1].port, s);
    ask(9, CM_REQ, &local4);
    wait_for_held(1);
    assert_int_equal(count_of(&m[0], "service_held"), 1);
    claim(2, NULL);
    wait_for(2, 1);
    assert_int_equal(m[0].mads, 0);
    assert_int_equal(count_of(&m[0], "service_unknown"), 0);
    /* IBA 12.6.7: a REJ that names only its sender's id follows it. */
    uint8_t mad[MAD_BYTES];
    mad_make(mad, CM_REJ, 9, 0, 0);
    mad_send(&m[1], &local4, mad);
    wait_for(2, 2);
}

/* It was ours alone, and the name has gone. */
static void hold__our_own_name_comes_back(void **state)
{
    (void)state;
    struct udp_service *s = claim(0, &local4);
    port_udp_service_rest(s, our_now_ns());
    port_udp_service_release(m[0].port, s);
    ask(9, CM_REQ, &local4);
    wait_for_held(1);
    s = claim(0, &any4);
    wait_for(0, 1);
    assert_int_equal(m[1].mads + m[2].mads, 0);
    port_udp_service_release(m[0].port, s);
}

/* Then it is refused: our CM has it. Nothing is left of it. */
static void hold__nobody_comes(void **state)
{
    (void)state;
    struct udp_service *s = claim(1, &local4);
    unsigned descriptors = open_descriptors();
    port_udp_service_rest(s, our_now_ns());
    ask(1, CM_REQ, &local4);
    wait_for_held(1);
    skew_ns += 400 * MS;
    ask(2, CM_REQ, &local4);
    wait_for_held(2);
    turns(15);
    assert_int_equal(m[1].mads, 0);
    skew_ns += 101 * MS;
    wait_for(1, 1);
    assert_int_equal(get_be32(m[1].mad + 24), 1);
    skew_ns += 400 * MS;
    wait_for(1, 2);
    assert_int_equal(get_be32(m[1].mad + 24), 2);
    turns(15);
    assert_int_equal(m[0].mads + m[2].mads, 0);
    assert_int_equal(count_of(&m[0], "service_unknown"), 0);
    /* One more than before: from the process that passed them on. */
    assert_in_range(open_descriptors(), descriptors, descriptors + 2);
}

static void hold__only_what_was_there_lately(void **state)
{
    (void)state;
    at_once(0, CM_REQ, &local4); /* never was */
    struct udp_service *s = claim(1, &local4);
    port_udp_service_rest(s, our_now_ns());
    skew_ns += 5001 * MS;
    at_once(1, CM_REQ, &local4); /* rests for long */
    port_udp_service_release(m[1].port, s);
    skew_ns += 5001 * MS;        /* for the leader, which passed that on */
    at_once(0, CM_REQ, &local4); /* gone, and rested for long */
    s = claim(1, &local4);
    at_once(1, CM_REQ, &local4);
    port_udp_service_release(m[1].port, s);
    skew_ns += 5001 * MS;
    at_once(0, CM_REQ, &local4);
    assert_int_equal(held(), 0);
}

/* A flood keeps nobody from an answer. */
static void hold__so_many_and_no_more(void **state)
{
    (void)state;
    struct udp_service *s = claim(0, &local4);
    port_udp_service_rest(s, our_now_ns());
    for (unsigned i = 0; i < KEPT + 8; i++)
        ask(100 + i, CM_REQ, &local4);
    wait_for(0, 8);
    assert_int_equal(held(), KEPT);
    port_udp_service_rest(s, 0);
    wait_for(0, KEPT + 8);
    /* There is room again. */
    port_udp_service_rest(s, our_now_ns());
    ask(1, CM_REQ, &local4);
    wait_for_held(KEPT + 1);
}

/* What it holds is not lost with it where somebody listens now; without that it is refused by
 * nobody, for its sender asks again. */
static void hold__its_process_ends(void **state)
{
    (void)state;
    for (unsigned comes = 0; comes < 2; comes++) {
        struct udp_service *s = claim(0, &local4);
        port_udp_service_rest(s, our_now_ns());
        ask(1, CM_REQ, &local4);
        wait_for_held(1);
        port_udp_service_release(m[0].port, s);
        if (comes)
            claim(1, NULL);
        port_udp_retire(m[0].port);
        close_member(&m[0]);
        if (comes)
            wait_for(1, 1);
        else
            turns(15);
        assert_int_equal(m[1].mads, comes);
        assert_int_equal(m[2].mads, 0);
        close_all(NULL);
        make_all(NULL);
    }
}

static void hold__no_descriptor_is_left(void **state)
{
    (void)state;
    struct udp_service *s = claim(0, &local4);
    port_udp_service_rest(s, our_now_ns());
    use_up_descriptors();
    ask(1, CM_REQ, &local4);
    wait_for(0, 1);
    give_back_descriptors();
    assert_int_equal(held(), 0);
    ask(2, CM_REQ, &local4);
    wait_for_held(1);
}

int main(void)
{
#define HOLD(name) cmocka_unit_test_setup_teardown(name, make_all, close_all)
    const struct CMUnitTest tests[] = {
        HOLD(hold__the_next_listener_gets_it),  HOLD(hold__the_next_process_gets_it),
        HOLD(hold__our_own_name_comes_back),    HOLD(hold__nobody_comes),
        HOLD(hold__only_what_was_there_lately), HOLD(hold__so_many_and_no_more),
        HOLD(hold__its_process_ends),           HOLD(hold__no_descriptor_is_left),
    };
    private_net_enter();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
