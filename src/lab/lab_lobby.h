/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_lobby.h: where connections wait until they have said enough to be looked at. Anybody may
 * connect to a port: who says nothing, or not enough, keeps nobody else from being heard, and goes
 * after a while.
 */
#ifndef LAB_LAB_LOBBY_H
#define LAB_LAB_LOBBY_H

#include <stddef.h>
#include <stdint.h>

#include "lab/lab_settings.h"

enum { LAB_LOBBY_SEATS = 32, LAB_WHO_BYTES = 80 };
#define LAB_STRANGER_NS 5000000000ull /* more is left to nobody who has not shown who he is */

/* Told of each who is turned away: "192.0.2.7 port 4711", and why. */
typedef void lab_turned_away(const char *who, const char *why);

struct lab_lobby {
    int listener;
    size_t bytes;                 /* that are enough */
    uint64_t limit_ns;            /* so long may somebody take to say them */
    lab_turned_away *turned_away; /* NULL: nobody wants to know */
    const int *wake;              /* a descriptor that ends waiting when it can be read, or NULL */
    unsigned count;
    struct {
        int fd;
        uint64_t came_ns;
        char who[LAB_WHO_BYTES]; /* as it was when it came: who has hung up has no address */
    } seat[LAB_LOBBY_SEATS];     /* in the order in which they came */
    char who[LAB_WHO_BYTES];     /* of the one that lab_lobby_next() gave last */
};

/* A connection that has said enough, of which nothing is read yet; the caller's from now on.
 * timeout 0: waits for ever. -errno and a message otherwise; -ECANCELED: it was woken. */
int lab_lobby_next(struct lab_lobby *l, uint64_t timeout_ns, char message[LAB_MESSAGE_BYTES]);
/* Closes the one that was given last and tells why. */
void lab_lobby_turn_away(const struct lab_lobby *l, int fd, const char *why);
/* Who waits there waits here from now on, for so much as is enough here. Both have one listener. */
void lab_lobby_move(struct lab_lobby *here, struct lab_lobby *there);
/* The one that was given last waits on, there. */
void lab_lobby_return(struct lab_lobby *l, int fd, struct lab_lobby *there);
/* Who still waits goes. */
void lab_lobby_close(struct lab_lobby *l);

#endif
