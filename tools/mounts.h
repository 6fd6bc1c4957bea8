/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mounts.h: private mounts for `verbena run --ns`: the files of our devices, where no preloaded
 * library can show them. Nobody else sees the mounts, and the kernel takes them away with the last
 * process that has them.
 */
#ifndef TOOLS_MOUNTS_H
#define TOOLS_MOUNTS_H

/* Puts this process, and all that it starts, into a mount namespace that has the files; where it
 * takes one, into a user namespace in which it is who it was. Ends the program with a message where
 * that is not allowed. */
void mounts_enter(void);

#endif
