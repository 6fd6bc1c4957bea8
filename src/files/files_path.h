/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files_path.h: whose is a path? Ours are those in files_tree.h, in all the ways in which a program
 * may write them; all others are the system's.
 */
#ifndef FILES_FILES_PATH_H
#define FILES_FILES_PATH_H

#include <limits.h>

#include "files/files_tree.h"

enum files_verdict {
    FILES_FOREIGN,   /* the system's: the path as it was given */
    FILES_ELSEWHERE, /* the system's, but by another path: that in files_found.path */
    FILES_OURS,
    FILES_ERROR, /* ours to refuse: files_found.error */
};

struct files_found {
    enum files_verdict verdict;
    int error;
    struct files_node node;
    char path[PATH_MAX];
};

/* Does an absolute path begin with one of our directories? Cheap: asks nobody. */
bool files_path_ours(const char *path);
/* The directory in which a relative path would begin with one of ours: "/", "/sys", "/sys/class" or
 * "/dev"; else NULL. */
const char *files_path_base(const char *path);
/* One of the system's directories in which ours are: "/sys/class" or "/dev"; else NULL. */
const char *files_path_parent(const char *path);

/*
 * Finds out about path: absolute, or relative to base, which then is an absolute path as files_tree
 * has them. follow: a link at the end is followed.
 */
enum files_verdict files_resolve(const struct files_source *s, const char *base, const char *path,
                                 bool follow, struct files_found *out);

#endif
