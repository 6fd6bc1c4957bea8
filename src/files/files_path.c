/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files_path.c: walks a path as the kernel does, component by component, through our directories
 * and links, until its end or until it leaves them.
 */
#include "files/files_path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LINKS = 40 }; /* as the kernel */

/* Past a word and the slashes after it; NULL when the path goes on otherwise. */
static const char *past(const char *path, const char *word)
{
    size_t n = strlen(word);

    if (strncmp(path, word, n) != 0 || path[n] != '/')
        return NULL;
    return path + n + strspn(path + n, "/");
}

static bool is_word(const char *path, const char *word)
{
    size_t n = strlen(word);

    return strncmp(path, word, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool class_ours(const char *path)
{
    return is_word(path, "infiniband") || is_word(path, "infiniband_verbs") ||
           is_word(path, "infiniband_mad");
}

/* After "/sys/class/", "/dev/" and so on: what a path that starts in "/" goes on with. */
static bool root_ours(const char *path)
{
    if (path[0] == 'd') {
        path = past(path, "dev");
        return path != NULL && is_word(path, "infiniband");
    }
    if (path[0] != 's' || (path = past(path, "sys")) == NULL)
        return false;
    path = past(path, "class");
    return path != NULL && class_ours(path);
}

bool files_path_ours(const char *path)
{
    return path[0] == '/' && root_ours(path + strspn(path, "/"));
}

const char *files_path_base(const char *path)
{
    const char *rest;

    switch (path[0]) {
    case 'i':
        /* Which of the two is for the caller to find out. */
        return class_ours(path) ? "/sys/class" : NULL;
    case 'c':
        rest = past(path, "class");
        return rest != NULL && class_ours(rest) ? "/sys" : NULL;
    case 'd':
    case 's':
        return root_ours(path) ? "/" : NULL;
    default:
        return NULL;
    }
}

const char *files_path_parent(const char *path)
{
    if (path == NULL || path[0] != '/')
        return NULL;
    path += strspn(path, "/");
    const char *rest = past(path, "sys");
    if (rest != NULL && is_word(rest, "class") && rest[5 + strspn(rest + 5, "/")] == '\0')
        return "/sys/class";
    if (is_word(path, "dev") && path[3 + strspn(path + 3, "/")] == '\0')
        return "/dev";
    return NULL;
}

/* Is this directory one of ours, or one on the way there? */
static bool on_the_way(const char *path)
{
    return path[0] == '\0' || strcmp(path, "/sys") == 0 || strcmp(path, "/sys/class") == 0 ||
           strcmp(path, "/dev") == 0 || files_path_ours(path);
}

static enum files_verdict elsewhere(struct files_found *f, const char *rest)
{
    size_t n = strlen(f->path);

    f->verdict = FILES_ELSEWHERE;
    if (n + strlen(rest) + 2 > sizeof(f->path)) {
        f->verdict = FILES_ERROR;
        f->error = ENAMETOOLONG;
    } else if (rest[0] != '\0' || n == 0) {
        f->path[n] = '/';
        memcpy(f->path + n + 1, rest, strlen(rest) + 1);
    }
    return f->verdict;
}

static enum files_verdict refuse(struct files_found *f, int error)
{
    f->error = error;
    return f->verdict = FILES_ERROR;
}

static void up(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash != NULL)
        *slash = '\0';
}

/* The end of the walk, at f->path. */
static enum files_verdict arrive(const struct files_source *s, struct files_found *f, bool slash)
{
    if (!files_path_ours(f->path))
        return elsewhere(f, "");
    if (files_lookup(s, f->path, &f->node)) {
        if (slash && f->node.kind != FILES_DIR)
            return refuse(f, ENOTDIR);
        return f->verdict = FILES_OURS;
    }
    char parent[PATH_MAX];
    memcpy(parent, f->path, strlen(f->path) + 1);
    up(parent);
    if (files_shared(parent))
        return elsewhere(f, slash ? "." : "");
    bool is_file = files_lookup(s, parent, &f->node) && f->node.kind != FILES_DIR;
    return refuse(f, is_file ? ENOTDIR : ENOENT);
}

/* A name in a shared directory that is not ours: from there on it is the system's. */
static bool is_others(const struct files_source *s, struct files_found *f)
{
    char parent[PATH_MAX];

    memcpy(parent, f->path, strlen(f->path) + 1);
    up(parent);
    return files_shared(parent) && !files_lookup(s, f->path, &f->node);
}

/* Puts the link's target before the rest of the way. */
static bool follow_link(const struct files_source *s, struct files_found *f, char rest[PATH_MAX])
{
    char target[FILES_TARGET_BYTES];
    size_t n = strlen(rest);

    if (!files_lookup(s, f->path, &f->node) || f->node.kind != FILES_LINK)
        return false;
    size_t m = files_target(&f->node, target);
    if (n + m + 1 > PATH_MAX)
        return false;
    memmove(rest + m, rest, n + 1); /* begins with a slash, or is empty */
    memcpy(rest, target, m);
    up(f->path);
    return true;
}

enum files_verdict files_resolve(const struct files_source *s, const char *base, const char *path,
                                 bool follow, struct files_found *f)
{
    char rest[PATH_MAX];
    size_t length = strlen(path);
    unsigned links = 0;
    bool slash = length > 0 && path[length - 1] == '/';

    f->path[0] = '\0';
    if (length >= sizeof(rest))
        return refuse(f, ENAMETOOLONG);
    if (path[0] != '/' && strcmp(base, "/") != 0)
        snprintf(f->path, sizeof(f->path), "%s", base);
    memcpy(rest, path, length + 1);
    for (;;) {
        size_t skip = strspn(rest, "/"), n = strcspn(rest + skip, "/");
        const char *word = rest + skip;
        size_t at = strlen(f->path);
        if (n == 0)
            return arrive(s, f, slash);
        if (!on_the_way(f->path))
            return elsewhere(f, word);
        if (at + n + 2 > sizeof(f->path))
            return refuse(f, ENAMETOOLONG);
        bool dot = n == 1 && word[0] == '.', dots = n == 2 && memcmp(word, "..", 2) == 0;
        if (!dot && !dots) {
            f->path[at] = '/';
            memcpy(f->path + at + 1, word, n);
            f->path[at + 1 + n] = '\0';
        } else if (files_lookup(s, f->path, &f->node) && f->node.kind != FILES_DIR) {
            return refuse(f, ENOTDIR);
        } else if (dots) {
            up(f->path);
        }
        memmove(rest, word + n, strlen(word + n) + 1);
        bool last = rest[strspn(rest, "/")] == '\0';
        if (!dot && !dots && !last && is_others(s, f))
            return elsewhere(f, rest + strspn(rest, "/"));
        if ((!last || follow || slash) && files_may_be_link(f->path)) {
            if (++links > MAX_LINKS)
                return refuse(f, ELOOP);
            follow_link(s, f, rest);
        }
    }
}
