/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spawn.h: starts a program and waits for it, being as transparent as a parent can be: signals go
 * on to the program, and it dies with us.
 */
#ifndef TOOLS_SPAWN_H
#define TOOLS_SPAWN_H

/*
 * Runs argv as execvp does, with our environment. Returns its wait status, or -1 with errno when it
 * could not be started.
 */
int spawn_wait(const char *path, char **argv);

#endif
