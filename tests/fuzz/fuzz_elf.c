/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_elf.c: any bytes as a program that a user wants to start: ELF headers, or a #! line.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"
#include "wire_props.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct program program;
    static int fd = -1;
    char path[40];
    if (fd < 0) {
        fd = memfd_create("program", 0);
        PROP(fd >= 0 && fchmod(fd, 0755) == 0);
    }
    uint8_t *bytes = malloc(n + 1);
    PROP(bytes != NULL);
    memcpy(bytes, data, n);
    enum program_verdict direct = program_check_elf(bytes, n);
    PROP((unsigned)direct < PROGRAM_VERDICT_COUNT && program_reason(direct) != NULL);
    free(bytes);
    PROP(ftruncate(fd, 0) == 0 && pwrite(fd, data, n, 0) == (ssize_t)n);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    enum program_verdict v = program_check(path, &program);
    PROP((unsigned)v < PROGRAM_VERDICT_COUNT && program_reason(v) != NULL);
    PROP(strcmp(program.file, path) == 0);
    if (n < 2 || data[0] != '#' || data[1] != '!')
        PROP(v == direct && !program.interpreter);
    return 0;
}
