/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_control.h: the connection over which both ends of a run agree. Both prove that they have the
 * shared key before anything else is said; all after the first greeting is encrypted (libsodium's
 * secretbox), with keys that serve for this connection only, since rkeys and addresses pass.
 * Messages are JSON objects with a "type". Whoever gives up says why.
 */
#ifndef LAB_LAB_CONTROL_H
#define LAB_LAB_CONTROL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lab/lab_settings.h"

enum {
    LAB_PROTOCOL = 1, /* changes when an older program would misunderstand a newer one */
    LAB_KEY_BYTES = 32,
    LAB_GREETING_BYTES = 48,
    LAB_MAX_FRAME_BYTES = 256 << 10,
};

struct lab_control {
    int fd; /* -1: none */
    uint64_t timeout_ns;
    uint64_t until_ns; /* all must be over by then, whatever moves; 0: no such limit */
    const char *doing; /* for messages: "the peer is gone while ..." */
    bool peer_knows;   /* it has told us why it gave up, or is gone: nothing to be said to it */
    bool gave_up;      /* it has told us why */
    bool busy;         /* it has told us that it is, with somebody else */
    bool greeted;      /* it speaks as `verbena lab' does, in whatever version */
    uint8_t send_key[LAB_KEY_BYTES];
    uint8_t receive_key[LAB_KEY_BYTES];
    uint64_t sent;
    uint64_t received;
    char message[LAB_MESSAGE_BYTES]; /* why the last call failed */
};

/* Does what has come on a connection, of which nothing is read yet, begin as a greeting does? */
bool lab_control_greets(int fd);
/* Greets, and learns whether the peer has the key and speaks as we do; all of it within the
 * timeout. fd becomes the control's own, also when this fails. 0, -EPROTO (other protocol), -EACCES
 * (other key), -EPIPE (gone), -ETIMEDOUT. */
int lab_control_open(struct lab_control *c, int fd, bool serving, const uint8_t key[LAB_KEY_BYTES],
                     uint64_t timeout_ns);
void lab_control_close(struct lab_control *c);
/* Takes the object. 0 or an error as above. */
int lab_control_send(struct lab_control *c, const char *type, json_t *object);
/* The next message, which must be of that type; NULL and c->message otherwise. json_decref() it. */
json_t *lab_control_receive(struct lab_control *c, const char *type);
/* The same for one message, when it comes: 1 and *out, 0 where it only said that the peer is alive,
 * or -errno. */
int lab_control_hear(struct lab_control *c, const char *type, json_t **out);
/* Is there something to read, be it the end? Waits for no more than that many milliseconds. */
bool lab_control_pending(const struct lab_control *c, int wait_ms);
/* Tells the peer, if it does not know it yet, why nothing more will come. */
void lab_control_give_up(struct lab_control *c, const char *why);
/* The same, for that somebody else has come before: nothing is wrong with the peer. */
void lab_control_refuse(struct lab_control *c, const char *why);

/* Members of a message: false and c->message when it is missing or outside. */
bool lab_control_number(struct lab_control *c, const json_t *object, const char *name, uint64_t max,
                        uint64_t *out);
const char *lab_control_text(struct lab_control *c, const json_t *object, const char *name);

/* The key in a file: 0, or -errno with a message that names it. A file that others may read is
 * refused. */
int lab_key_read(const char *file, uint8_t key[LAB_KEY_BYTES], char message[LAB_MESSAGE_BYTES]);
/* Makes a file with a new one; never over an old one. */
int lab_key_make(const char *file, char message[LAB_MESSAGE_BYTES]);
/* A key that nobody else has. */
void lab_key_random(uint8_t key[LAB_KEY_BYTES]);

#endif
