/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloc.c: zeroed and touched memory.
 */
#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>

enum { PAGE_BYTES = 4096 };

void *alloc_touched(size_t n, size_t bytes)
{
    size_t total;
    volatile uint8_t *p;

    if (n == 0)
        n = 1;
    if (bytes == 0 || n > SIZE_MAX / bytes)
        return NULL;
    total = n * bytes;
    p = calloc(n, bytes);
    if (p == NULL)
        return NULL;
    /* Stores through volatile: calloc alone maps pages that the first writer has to fault in. */
    for (size_t i = 0; i < total && i < ALLOC_TOUCH_MAX_BYTES; i += PAGE_BYTES)
        p[i] = 0;
    return (void *)p;
}
