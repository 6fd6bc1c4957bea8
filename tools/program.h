/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * program.h: can this program be given a preloaded library? Found as a shell would find it, then
 * its file is read: what the dynamic linker would do with it is known before it starts.
 */
#ifndef TOOLS_PROGRAM_H
#define TOOLS_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum program_verdict {
    PROGRAM_OK,
    PROGRAM_NOT_FOUND,
    PROGRAM_IS_DIRECTORY,
    PROGRAM_NOT_EXECUTABLE,
    PROGRAM_UNREADABLE,  /* executable but not readable: let the kernel say more */
    PROGRAM_NOT_PROGRAM, /* neither ELF nor a script */
    PROGRAM_32_BIT,
    PROGRAM_OTHER_MACHINE,
    PROGRAM_STATIC,
    PROGRAM_OTHER_LIBC, /* another dynamic linker than glibc's */
    PROGRAM_SETUID,
    PROGRAM_SETGID,
    PROGRAM_CAPABILITIES,
    PROGRAM_SCRIPT_DEPTH, /* scripts interpreted by scripts by scripts... */
    PROGRAM_VERDICT_COUNT
};

struct program {
    char file[PATH_MAX]; /* the program itself */
    char path[PATH_MAX]; /* what was looked at last: the program, or a script's interpreter */
    bool interpreter;    /* path is an interpreter */
};

/* Looks for name (in PATH when it has no slash) and reads it; *out is filled as far as it came. */
enum program_verdict program_check(const char *name, struct program *out);
/* What an ELF file's bytes say; n is how many of them there are at bytes. */
enum program_verdict program_check_elf(const unsigned char *bytes, size_t n);
/* Why it cannot work, as the end of a sentence that begins with the path. */
const char *program_reason(enum program_verdict v);

#endif
