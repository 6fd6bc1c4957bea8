/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_door.h: `lab serve` has one peer at a time. Whoever else has the key and comes while a run is
 * under way is told with whom it is busy, and since when, instead of waiting for nothing. A thread
 * of its own does that, which sleeps until somebody comes.
 */
#ifndef LAB_LAB_DOOR_H
#define LAB_LAB_DOOR_H

#include <pthread.h>

#include "lab/lab_control.h"
#include "lab/lab_lobby.h"

struct lab_door {
    uint8_t key[LAB_KEY_BYTES]; /* the user's, before anything else */
    struct lab_lobby lobby;     /* the thread's, while it is there */
    char peer[LAB_WHO_BYTES];   /* with whom it is busy; "": with nobody yet */
    uint64_t since_ns;          /* by lab_now_ns() */
    char since[32];             /* by the wall's clock */
    struct lab_lobby others;    /* who says something else than a greeting, for lab_door_halt() */
    bool keeps_others;          /* else they are turned away */
    bool kept;                  /* there is a thread */
    int wake;                   /* its eventfd */
    pthread_t thread;
};

/* Whoever waits in the lobby, and comes to its listener, is answered from now on; those who do not
 * greet are kept if the baseline's connection may be among them. peer: the connection to it. 0, or
 * -errno and a message. */
int lab_door_keep(struct lab_door *d, struct lab_lobby *lobby, int peer, bool keeps_others,
                  char message[LAB_MESSAGE_BYTES]);
/* The lobby is the caller's again, with those who still wait in it; lab_door_keep() may follow. */
void lab_door_halt(struct lab_door *d, struct lab_lobby *lobby);
/* For good: who has come by now is answered still, and the lobby closed. */
void lab_door_leave(struct lab_door *d, struct lab_lobby *lobby);

#endif
