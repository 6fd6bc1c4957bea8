/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_boot.c: finds the plug-in beside the program, where both the build folder and an installation
 * have it.
 */
#include "lab/lab_boot.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLUG_IN "verbena-lab-pmix.so"

static void *load(char message[LAB_MESSAGE_BYTES])
{
    char path[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(PLUG_IN));
    char *slash = n > 0 ? strrchr(path, '/') : NULL;
    if (slash == NULL) {
        snprintf(message, LAB_MESSAGE_BYTES, "cannot tell where this program is: %s",
                 strerror(errno));
        return NULL;
    }
    memcpy(slash + 1, PLUG_IN, sizeof(PLUG_IN));
    void *plug_in = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (plug_in == NULL && access(path, R_OK) != 0)
        snprintf(message, LAB_MESSAGE_BYTES,
                 "this program was built without PMIx, so it knows nothing of its launcher: there "
                 "is no '%.300s'",
                 path);
    else if (plug_in == NULL)
        snprintf(message, LAB_MESSAGE_BYTES, "cannot load PMIx: %.500s", dlerror());
    return plug_in;
}

int lab_boot_gather(struct lab_boot *b, const char *mine, uint64_t timeout_ns,
                    char message[LAB_MESSAGE_BYTES])
{
    int (*gather)(struct lab_boot *, const char *, uint64_t, char *) = NULL;
    *b = (struct lab_boot){0};
    if (getenv("PMIX_RANK") == NULL || getenv("PMIX_NAMESPACE") == NULL) {
        snprintf(message, LAB_MESSAGE_BYTES,
                 "no launcher with PMIx has started this process: mpirun -np N verbena lab mpi");
        return -ENOENT;
    }
    void *plug_in = load(message);
    if (plug_in == NULL)
        return -ENOSYS;
    void *symbol = dlsym(plug_in, "lab_pmix_gather");
    memcpy(&gather, &symbol, sizeof(gather));
    if (gather == NULL) {
        snprintf(message, LAB_MESSAGE_BYTES, "%s: %.500s", PLUG_IN, dlerror());
        return -ENOSYS;
    }
    /* It stays loaded: PMIx has had a thread in it. */
    return gather(b, mine, timeout_ns, message);
}

void lab_boot_clear(struct lab_boot *b)
{
    for (unsigned i = 0; b->texts != NULL && i < b->ranks; i++)
        free(b->texts[i]);
    free(b->texts);
    *b = (struct lab_boot){0};
}
