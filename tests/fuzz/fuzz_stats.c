/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_stats.c: any text as the counters that processes leave behind.
 */
#include "stats.h"
#include "wire_props.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static FILE *nowhere;
    unsigned lines = 0;
    if (nowhere == NULL)
        nowhere = fopen("/dev/null", "w");
    if (n == 0)
        return 0;
    uint8_t *bytes = malloc(n);
    PROP(bytes != NULL && nowhere != NULL);
    memcpy(bytes, data, n);
    for (size_t i = 0; i < n; i++)
        lines += bytes[i] == '\n';
    FILE *in = fmemopen(bytes, n, "r");
    PROP(in != NULL);
    PROP(stats_print(in, nowhere) <= lines);
    fclose(in);
    free(bytes);
    return 0;
}
