/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloc.h: memory for rings and tables, taken when an object is created. Pages are touched at once,
 * so that the data path does not pay for page faults.
 */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stddef.h>

enum { ALLOC_TOUCH_MAX_BYTES = 4 << 20 }; /* beyond this pages are left to their first use */

/* n zeroed elements, to be given to free(); NULL: no memory, or n * bytes overflows. n 0 is 1. */
void *alloc_touched(size_t n, size_t bytes);

#endif
