/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * preload.c: where the drop-in libraries are, and LD_PRELOAD with them at the end.
 */
#include "preload.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

#define LIBRARY "libibverbs.so.1"
/* In the same folder: */
#define CM_LIBRARY    "librdmacm.so.1"
#define FILES_LIBRARY "libverbena_files.so.0"

/* Beside this program (build folder), else where it was installed. */
static void find_library(char out[PATH_MAX])
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n > 0) {
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        if (slash != NULL)
            *slash = '\0';
        if (snprintf(out, PATH_MAX, "%s/" LIBRARY, self) < PATH_MAX && access(out, R_OK) == 0)
            return;
    }
    snprintf(out, PATH_MAX, "%s/" LIBRARY, VERBENA_LIBDIR);
    if (access(out, R_OK) != 0)
        tool_die(TOOL_UNAVAILABLE, "%s is neither beside this program nor in %s", LIBRARY,
                 VERBENA_LIBDIR);
}

void preload_setenv(const char *name, const char *value)
{
    if (setenv(name, value, 1) != 0)
        tool_die(TOOL_FAILED, "cannot set %s: %s", name, strerror(errno));
}

void preload_set(bool files)
{
    char library[PATH_MAX];
    find_library(library);
    /* The dynamic linker splits LD_PRELOAD at both, and knows no quoting. */
    if (strpbrk(library, ": ") != NULL)
        tool_die(TOOL_UNAVAILABLE,
                 "the path '%s' has a space or colon, which LD_PRELOAD cannot hold; "
                 "move or install it elsewhere",
                 library);
    const char *before = getenv("LD_PRELOAD");
    char *value;
    if (before == NULL || before[0] == '\0')
        before = "";
    int folder = (int)(strlen(library) - strlen(LIBRARY));
    if (asprintf(&value, "%s%s%s:%.*s" CM_LIBRARY "%s%.*s%s", before, before[0] != '\0' ? ":" : "",
                 library, folder, library, files ? ":" : "", files ? folder : 0, library,
                 files ? FILES_LIBRARY : "") < 0)
        tool_die(TOOL_FAILED, "out of memory");
    preload_setenv("LD_PRELOAD", value);
    free(value);
}
