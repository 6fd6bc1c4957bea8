/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_roce.c: any bytes as a transport packet.
 */
#include "wire_props.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    props_roce(data, n);
    return 0;
}
