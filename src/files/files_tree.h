/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files_tree.h: the files under /dev/infiniband and /sys/class/infiniband* that describe our
 * devices, as the kernel would have them: which there are, of what kind, what they say. One table
 * serves whoever shows them: the preloaded shim and the private mounts of `verbena run --ns`.
 */
#ifndef FILES_FILES_TREE_H
#define FILES_FILES_TREE_H

#include <stdbool.h>
#include <sys/types.h>

#include "host/host.h"

enum {
    FILES_TEXT_BYTES = 256,   /* the longest file */
    FILES_TARGET_BYTES = 128, /* the longest link */
    FILES_NAME_BYTES = 64,
    FILES_PATH_BYTES = 192, /* the longest path, FILES_PATH_MAX of rows and names */
};

enum files_kind {
    FILES_DIR,
    FILES_FILE,
    FILES_LINK,
    FILES_CHAR, /* a device file: it behaves as /dev/null */
};

/* Where facts come from. The live one is files_live; tests have their own. */
struct files_source {
    /* As verbena_device_list. */
    int (*devices)(struct verbena_device **out, size_t *n);
    /* As verbena_device_gids. */
    int (*gids)(const struct verbena_device *d, struct verbena_gid *out);
    /* NULL past the end; values are asked for by the same index. */
    const char *(*counter_name)(unsigned index);
    /* n values from index 0; as this device counted. */
    void (*counters)(const struct verbena_device *d, uint64_t *value, unsigned n);
    /* Does this file of the system exist? */
    bool (*exists)(const char *path);
};

struct files_row;

struct files_node {
    enum files_kind kind;
    const struct files_row *row;
    struct verbena_device device; /* whose it is; name empty: of no device */
    unsigned index;               /* of a GID or counter */
    char path[FILES_PATH_BYTES];
};

/* Others' files may stand beside ours in this directory: names that we do not know are theirs. */
bool files_shared(const char *path);
/* Is this path one of a link of ours, were there such a device? Asks nobody. */
bool files_may_be_link(const char *path);
/* path: absolute, without "." and "..", single slashes, none at the end. */
bool files_lookup(const struct files_source *s, const char *path, struct files_node *out);
/* The text of a file: its length, or -EINVAL as the kernel answers for an empty GID entry. */
ssize_t files_read(const struct files_source *s, const struct files_node *node,
                   char text[FILES_TEXT_BYTES]);
/* Where a link leads: its length. */
size_t files_target(const struct files_node *node, char target[FILES_TARGET_BYTES]);
/* Does the text change while nothing else does? */
bool files_counts(const struct files_node *node);
/* Calls back for each name in a directory, in no special order; ends early when that says false.
 * 0 or -errno. */
int files_list(const struct files_source *s, const char *path,
               bool (*entry)(void *arg, const char *name, enum files_kind kind), void *arg);

/* files_live.c */
extern const struct files_source files_live;

#endif
