/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * anchor.c: a fixed loop to hold other figures against: loads that depend on one another over 64
 * MiB. Prints the mean time of one in ns. What a machine does to memory-bound code in this minute,
 * in one number.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CELLS = (64 << 20) / 8, LOADS = 4000000 };

int main(void)
{
    uint64_t *cell = malloc(CELLS * sizeof(*cell)), x = 88172645463325252u, at = 0;
    struct timespec begin, end;
    if (cell == NULL)
        return 1;
    /* One circle through all cells in random order (Sattolo). */
    for (uint64_t i = 0; i < CELLS; i++)
        cell[i] = i;
    for (uint64_t i = CELLS - 1; i > 0; i--) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        uint64_t j = x % i, held = cell[i];
        cell[i] = cell[j];
        cell[j] = held;
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (int i = 0; i < LOADS; i++)
        at = cell[at];
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
    printf("%.2f\n", at == CELLS ? 0.0 : ns / LOADS); /* at is used, so that the loop stays */
    free(cell);
    return 0;
}
