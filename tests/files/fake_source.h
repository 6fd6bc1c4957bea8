/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_source.h: facts that a test owns: vb_eth0 (index 3, up, 25 Gb/s, GIDs 0 and 2) and vb_lo
 * (index 1, down).
 */
#ifndef TESTS_FILES_FAKE_SOURCE_H
#define TESTS_FILES_FAKE_SOURCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "files/files_tree.h"

extern const struct files_source fake_source;
extern int fake_fail; /* of the next question: -errno */

#endif
