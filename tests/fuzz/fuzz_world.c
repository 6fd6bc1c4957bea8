/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_world.c: any bytes as the tape of a test world: they choose the options, the work requests
 * and the fate of every packet. A world that fails aborts; test_world --tape FILE shows it again.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../world/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct world world;
    struct tape tape;
    tape_bytes(&tape, data, n);
    if (!world_run(&world, &tape, 1)) {
        world_print(&world);
        printf("# %s\n# replay: test_world --tape FILE\n", world.why);
        fflush(stdout);
        abort();
    }
    return 0;
}
