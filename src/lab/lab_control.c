/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_control.c: a greeting in the clear tells the protocol and a random number each; the keys of
 * both directions are BLAKE2b of both greetings under the shared key. A frame is its length and a
 * secretbox whose nonce is the frame's number, so that none can be repeated, left out or moved.
 */
#include "lab/lab_control.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/lab_clock.h"
#include "lab/lab_text.h"

_Static_assert(LAB_KEY_BYTES == crypto_secretbox_KEYBYTES, "");

enum { LINGER_NS = 1000000000 };

static const char magic[8] = "verb-lab";

struct greeting {
    char magic[8];
    uint32_t protocol; /* big-endian */
    uint32_t serving;  /* 1, else 0 */
    uint8_t random[32];
};
_Static_assert(sizeof(struct greeting) == LAB_GREETING_BYTES, "on both ends alike");

static int fail(struct lab_control *c, int error, const char *what)
{
    snprintf(c->message, sizeof(c->message), "%s while %s", what, c->doing);
    if (error == EPIPE)
        c->peer_knows = true;
    return -error;
}

/* Waits for the socket; what has come is taken before an end is believed. */
static int await(struct lab_control *c, short events, uint64_t deadline)
{
    for (;;) {
        struct pollfd p = {.fd = c->fd, .events = events};
        uint64_t now = lab_now_ns();
        if (now >= deadline) {
            char what[64];
            snprintf(what, sizeof(what), "the peer says nothing for %llu ms",
                     (unsigned long long)(c->timeout_ns / 1000000));
            return fail(c, ETIMEDOUT, what);
        }
        int n = poll(&p, 1, (int)((deadline - now) / 1000000) + 1);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return fail(c, errno, strerror(errno));
    }
}

static uint64_t deadline_of(const struct lab_control *c)
{
    uint64_t deadline = lab_now_ns() + c->timeout_ns;
    return c->until_ns != 0 && c->until_ns < deadline ? c->until_ns : deadline;
}

static int write_all(struct lab_control *c, const void *bytes, size_t n)
{
    uint64_t deadline = deadline_of(c);
    const uint8_t *at = bytes;
    while (n > 0) {
        ssize_t done = send(c->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done > 0) {
            at += done;
            n -= (size_t)done;
            continue;
        }
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno != EAGAIN)
            return fail(c, EPIPE, "the peer is gone");
        int error = await(c, POLLOUT, deadline);
        if (error != 0)
            return error;
    }
    return 0;
}

static int read_all(struct lab_control *c, void *bytes, size_t n)
{
    uint64_t deadline = deadline_of(c);
    uint8_t *at = bytes;
    while (n > 0) {
        ssize_t done = recv(c->fd, at, n, MSG_DONTWAIT);
        if (done > 0) {
            at += done;
            n -= (size_t)done;
            continue;
        }
        if (done < 0 && errno == EINTR)
            continue;
        if (done == 0 || errno != EAGAIN)
            return fail(c, EPIPE, "the peer is gone");
        int error = await(c, POLLIN, deadline);
        if (error != 0)
            return error;
    }
    return 0;
}

bool lab_control_greets(int fd)
{
    char got[sizeof(magic)];
    return recv(fd, got, sizeof(got), MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof(got) &&
           memcmp(got, magic, sizeof(got)) == 0;
}

static void make_keys(struct lab_control *c, bool serving, const uint8_t key[LAB_KEY_BYTES],
                      const struct greeting *serves, const struct greeting *runs)
{
    uint8_t keys[2][LAB_KEY_BYTES];
    crypto_generichash_state state;
    crypto_generichash_init(&state, key, LAB_KEY_BYTES, sizeof(keys));
    crypto_generichash_update(&state, (const uint8_t *)serves, sizeof(*serves));
    crypto_generichash_update(&state, (const uint8_t *)runs, sizeof(*runs));
    crypto_generichash_final(&state, keys[0], sizeof(keys));
    memcpy(c->send_key, keys[serving ? 0 : 1], LAB_KEY_BYTES);
    memcpy(c->receive_key, keys[serving ? 1 : 0], LAB_KEY_BYTES);
    sodium_memzero(keys, sizeof(keys));
}

static int greet(struct lab_control *c, bool serving, const uint8_t key[LAB_KEY_BYTES])
{
    struct greeting mine = {.protocol = htobe32(LAB_PROTOCOL), .serving = htobe32(serving)}, theirs;
    memcpy(mine.magic, magic, sizeof(magic));
    randombytes_buf(mine.random, sizeof(mine.random));
    int error = write_all(c, &mine, sizeof(mine));
    if (error == 0)
        error = read_all(c, &theirs, sizeof(theirs));
    if (error != 0)
        return error;
    if (memcmp(theirs.magic, magic, sizeof(magic)) != 0)
        return fail(c, EPROTO, "the peer is no `verbena lab'; found out");
    c->greeted = true;
    if (be32toh(theirs.protocol) != LAB_PROTOCOL) {
        snprintf(
            c->message, sizeof(c->message),
            "the peer's `verbena lab' speaks protocol %u and this one %d; use the same version "
            "on both ends",
            be32toh(theirs.protocol), LAB_PROTOCOL);
        return -EPROTO;
    }
    if (be32toh(theirs.serving) == serving)
        return fail(c, EPROTO, "both ends have the same role; found out");
    make_keys(c, serving, key, serving ? &mine : &theirs, serving ? &theirs : &mine);
    return 0;
}

int lab_control_open(struct lab_control *c, int fd, bool serving, const uint8_t key[LAB_KEY_BYTES],
                     uint64_t timeout_ns)
{
    *c = (struct lab_control){.fd = fd,
                              .timeout_ns = timeout_ns,
                              .until_ns = lab_now_ns() + timeout_ns,
                              .doing = "greeting"};
    if (sodium_init() < 0)
        abort();
    int error = greet(c, serving, key);
    if (error == 0)
        error = lab_control_send(c, "key", json_object());
    if (error != 0)
        return error;
    /* Both have sent theirs before one judges, so that nobody closes on what is not read yet. */
    json_t *proof = lab_control_receive(c, "key");
    if (proof == NULL)
        return c->peer_knows ? -EPIPE : -EACCES;
    json_decref(proof);
    c->until_ns = 0;
    return 0;
}

void lab_control_close(struct lab_control *c)
{
    if (c->fd >= 0)
        close(c->fd);
    sodium_memzero(c->send_key, sizeof(c->send_key));
    sodium_memzero(c->receive_key, sizeof(c->receive_key));
    c->fd = -1;
}

static void nonce_of(uint64_t number, uint8_t nonce[crypto_secretbox_NONCEBYTES])
{
    uint64_t le = htole64(number);
    memset(nonce, 0, crypto_secretbox_NONCEBYTES);
    memcpy(nonce, &le, sizeof(le));
}

static int send_text(struct lab_control *c, const char *text)
{
    size_t n = strlen(text);
    uint8_t nonce[crypto_secretbox_NONCEBYTES];
    if (n > LAB_MAX_FRAME_BYTES)
        return fail(c, EMSGSIZE, "a message is too long");
    size_t boxed = n + crypto_secretbox_MACBYTES;
    uint8_t *frame = malloc(4 + boxed);
    if (frame == NULL)
        return fail(c, ENOMEM, "out of memory");
    uint32_t be = htobe32((uint32_t)boxed);
    memcpy(frame, &be, 4);
    nonce_of(c->sent++, nonce);
    crypto_secretbox_easy(frame + 4, (const uint8_t *)text, n, nonce, c->send_key);
    int error = write_all(c, frame, 4 + boxed);
    free(frame);
    return error;
}

int lab_control_send(struct lab_control *c, const char *type, json_t *object)
{
    json_object_set_new(object, "type", json_string(type));
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    if (text == NULL)
        return fail(c, ENOMEM, "out of memory");
    int error = send_text(c, text);
    free(text);
    /* What it said before it went is still there to be read. */
    if (error == -EPIPE && lab_control_pending(c, 0)) {
        json_t *none = NULL;
        lab_control_hear(c, "nothing", &none);
        json_decref(none);
    }
    return error;
}

static json_t *receive_any(struct lab_control *c)
{
    uint32_t be;
    uint8_t nonce[crypto_secretbox_NONCEBYTES];
    json_t *object = NULL;
    if (read_all(c, &be, 4) != 0)
        return NULL;
    uint32_t boxed = be32toh(be);
    if (boxed < crypto_secretbox_MACBYTES ||
        boxed > LAB_MAX_FRAME_BYTES + crypto_secretbox_MACBYTES) {
        fail(c, EPROTO, "the peer sent no message");
        return NULL;
    }
    uint8_t *frame = malloc(boxed);
    if (frame == NULL) {
        fail(c, ENOMEM, "out of memory");
        return NULL;
    }
    if (read_all(c, frame, boxed) == 0) {
        nonce_of(c->received, nonce);
        if (crypto_secretbox_open_easy(frame, frame, boxed, nonce, c->receive_key) != 0)
            fail(c, EACCES,
                 c->received == 0 ? "the peer's key is not ours, found out" : "a forged message");
        else if ((object = json_loadb((const char *)frame, boxed - crypto_secretbox_MACBYTES, 0,
                                      NULL)) == NULL)
            fail(c, EPROTO, "the peer sent no message");
        else
            c->received++;
    }
    free(frame);
    return object;
}

int lab_control_hear(struct lab_control *c, const char *type, json_t **out)
{
    int n = -EPROTO;
    json_t *object = receive_any(c);
    if (object == NULL)
        return -EPIPE;
    const char *got = json_string_value(json_object_get(object, "type"));
    if (got != NULL && strcmp(got, type) == 0) {
        *out = object;
        return 1;
    }
    if (got != NULL && strcmp(got, "alive") == 0) {
        n = 0;
    } else if (got != NULL && strcmp(got, "giving-up") == 0) {
        const char *why = json_string_value(json_object_get(object, "why"));
        c->peer_knows = c->gave_up = true;
        c->busy = json_is_true(json_object_get(object, "busy"));
        snprintf(c->message, sizeof(c->message), "%s%.500s",
                 c->busy ? "" : "the peer gave up: ", why != NULL ? why : "no reason told");
    } else {
        snprintf(c->message, sizeof(c->message), "the peer sent '%.40s' instead of '%s' while %s",
                 got != NULL ? got : "nothing", type, c->doing);
    }
    json_decref(object);
    return n;
}

json_t *lab_control_receive(struct lab_control *c, const char *type)
{
    json_t *object = NULL;
    while (lab_control_hear(c, type, &object) == 0)
        ;
    return object;
}

bool lab_control_pending(const struct lab_control *c, int wait_ms)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    return poll(&p, 1, wait_ms) > 0;
}

static void part(struct lab_control *c, const char *why, bool busy)
{
    char kept[LAB_MESSAGE_BYTES];
    if (c->fd < 0 || c->peer_knows || c->received == 0)
        return;
    lab_message_copy(kept, why); /* it may be c->message */
    lab_control_send(c, "giving-up",
                     json_pack("{s:o,s:b}", "why", lab_text_json(kept), "busy", busy));
    snprintf(c->message, sizeof(c->message), "%s", kept);
    c->peer_knows = true;
    /* A socket that is closed while something is unread resets the connection, and what was said
     * last with it: read until the peer has closed, for a while. */
    uint64_t deadline = lab_now_ns() + LINGER_NS;
    shutdown(c->fd, SHUT_WR);
    while (lab_now_ns() < deadline && lab_control_pending(c, 50)) {
        uint8_t rest[4096];
        if (recv(c->fd, rest, sizeof(rest), MSG_DONTWAIT) <= 0)
            break;
    }
}

void lab_control_give_up(struct lab_control *c, const char *why)
{
    part(c, why, false);
}

void lab_control_refuse(struct lab_control *c, const char *why)
{
    part(c, why, true);
}

bool lab_control_number(struct lab_control *c, const json_t *object, const char *name, uint64_t max,
                        uint64_t *out)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > max) {
        snprintf(c->message, sizeof(c->message), "the peer sent no right '%s' while %s", name,
                 c->doing);
        return false;
    }
    *out = (uint64_t)json_integer_value(value);
    return true;
}

const char *lab_control_text(struct lab_control *c, const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    if (text == NULL)
        snprintf(c->message, sizeof(c->message), "the peer sent no right '%s' while %s", name,
                 c->doing);
    return text;
}
