/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shim_dir.c: directory streams of ours: a list, made when the stream is opened. Where others'
 * files may stand beside ours the system's are in it, too. On x86-64 struct dirent64 is struct
 * dirent.
 */
#define _GNU_SOURCE
#include "files/shim.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "one layout");

enum { MAX_STREAMS = 256 }; /* of ours, open at a time */

struct shim_dir {
    int fd; /* -1: none yet */
    struct files_node node;
    size_t at, n, room;
    struct dirent *entry;
};

/* No lock: readdir may be called anywhere, and asks first whether there is any. */
static struct shim_dir *_Atomic streams[MAX_STREAMS];
static _Atomic int stream_count;

static struct shim_dir *ours(DIR *d)
{
    struct shim_dir *s = (struct shim_dir *)d;

    if (__builtin_expect(atomic_load_explicit(&stream_count, memory_order_relaxed) == 0, 1))
        return NULL;
    for (unsigned i = 0; i < MAX_STREAMS; i++) {
        if (atomic_load_explicit(&streams[i], memory_order_acquire) == s)
            return s;
    }
    return NULL;
}

static bool enlist(struct shim_dir *s)
{
    for (unsigned i = 0; i < MAX_STREAMS; i++) {
        struct shim_dir *none = NULL;
        if (atomic_compare_exchange_strong(&streams[i], &none, s)) {
            atomic_fetch_add(&stream_count, 1);
            return true;
        }
    }
    errno = EMFILE;
    return false;
}

static void release(struct shim_dir *s)
{
    free(s->entry);
    free(s);
}

static unsigned char type_of(enum files_kind kind)
{
    static const unsigned char type[] = {
        [FILES_DIR] = DT_DIR,
        [FILES_FILE] = DT_REG,
        [FILES_LINK] = DT_LNK,
        [FILES_CHAR] = DT_CHR,
    };
    return type[kind];
}

static bool has(const struct shim_dir *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->entry[i].d_name, name) == 0)
            return true;
    }
    return false;
}

/* false: out of memory. */
static bool add(struct shim_dir *s, const char *name, unsigned char type, uint64_t inode)
{
    if (s->n == s->room) {
        size_t room = s->room * 2 + 16;
        struct dirent *larger = reallocarray(s->entry, room, sizeof(*larger));
        if (larger == NULL)
            return false;
        s->entry = larger;
        s->room = room;
    }
    struct dirent *e = &s->entry[s->n++];
    memset(e, 0, sizeof(*e));
    e->d_ino = inode;
    e->d_off = (off_t)s->n;
    e->d_reclen = sizeof(*e);
    e->d_type = type;
    snprintf(e->d_name, sizeof(e->d_name), "%s", name);
    return true;
}

static bool add_ours(void *arg, const char *name, enum files_kind kind)
{
    struct shim_dir *s = arg;
    char path[FILES_PATH_BYTES + FILES_NAME_BYTES];

    snprintf(path, sizeof(path), "%s/%s", s->node.path, name);
    return add(s, name, type_of(kind), shim_inode(path));
}

/* The system's entries of that directory, if it has it. */
static bool add_others(struct shim_dir *s, DIR *others)
{
    const struct dirent *e;
    bool fits = true;

    while (fits && (e = REAL(readdir)(others)) != NULL) {
        if (!has(s, e->d_name))
            fits = add(s, e->d_name, e->d_type, e->d_ino);
    }
    return fits;
}

static DIR *finish(struct shim_dir *s, bool complete)
{
    if (!complete)
        errno = ENOMEM;
    else if (enlist(s))
        return (DIR *)s;
    int error = errno;
    release(s);
    errno = error;
    return NULL;
}

/* fd: as fdopendir was given it, or -1. */
static DIR *open_ours(const struct files_node *node, int fd)
{
    struct shim_dir *s = calloc(1, sizeof(*s));
    int error = errno;

    if (s == NULL)
        return NULL;
    s->fd = fd;
    s->node = *node;
    bool complete = add(s, ".", DT_DIR, shim_inode(node->path)) && add(s, "..", DT_DIR, 1) &&
                    files_list(&files_live, node->path, add_ours, s) == 0;
    if (complete && files_shared(node->path)) {
        DIR *others = REAL(opendir)(node->path);
        complete = others == NULL || add_others(s, others);
        if (others != NULL)
            REAL(closedir)(others);
    }
    errno = error;
    return finish(s, complete);
}

/* The system's /sys/class or /dev, and what of ours it lacks. */
static DIR *open_parent(const char *path)
{
    static const char *const names[] = {"infiniband", "infiniband_mad", "infiniband_verbs"};
    bool is_class = strcmp(path, "/sys/class") == 0;
    DIR *others = REAL(opendir)(path);
    struct shim_dir *s = others == NULL ? NULL : calloc(1, sizeof(*s));

    if (s == NULL) {
        if (others != NULL)
            REAL(closedir)(others);
        return NULL;
    }
    bool complete = add_others(s, others);
    for (unsigned i = 0; complete && i < (is_class ? 3 : 1); i++)
        complete = has(s, names[i]) || add(s, names[i], DT_DIR, i + 2);
    s->fd = fcntl(REAL(dirfd)(others), F_DUPFD_CLOEXEC, 0);
    REAL(closedir)(others);
    return finish(s, complete);
}

__attribute__((noinline)) static DIR *opendir_by(const char *path)
{
    struct files_found f;

    switch (shim_find(AT_FDCWD, path, true, &f)) {
    case FILES_OURS:
        if (f.node.kind == FILES_DIR)
            return open_ours(&f.node, -1);
        errno = ENOTDIR;
        return NULL;
    case FILES_ERROR:
        return NULL;
    default:
        path = shim_path(&f, path);
        return files_path_parent(path) != NULL ? open_parent(files_path_parent(path))
                                               : REAL(opendir)(path);
    }
}

SHIM_API DIR *opendir(const char *path)
{
    if (shim_maybe(AT_FDCWD, path))
        return opendir_by(path);
    const char *parent = files_path_parent(path);
    return parent != NULL ? open_parent(parent) : REAL(opendir)(path);
}

SHIM_API DIR *fdopendir(int fd)
{
    char path[FILES_PATH_BYTES];
    struct files_node node;

    if (!shim_identify(fd, path))
        return REAL(fdopendir)(fd);
    if (files_lookup(&files_live, path, &node) && node.kind == FILES_DIR)
        return open_ours(&node, fd);
    errno = ENOTDIR;
    return NULL;
}

SHIM_API struct dirent *readdir(DIR *d)
{
    struct shim_dir *s = ours(d);

    if (s == NULL)
        return REAL(readdir)(d);
    return s->at < s->n ? &s->entry[s->at++] : NULL;
}

SHIM_API struct dirent64 *readdir64(DIR *d)
{
    return (struct dirent64 *)readdir(d);
}

SHIM_API int readdir_r(DIR *d, struct dirent *entry, struct dirent **result)
{
    struct shim_dir *s = ours(d);

    if (s == NULL)
        return REAL(readdir_r)(d, entry, result);
    *result = NULL;
    if (s->at < s->n) {
        *entry = s->entry[s->at++];
        *result = entry;
    }
    return 0;
}

SHIM_API int readdir64_r(DIR *d, struct dirent64 *entry, struct dirent64 **result)
{
    return readdir_r(d, (struct dirent *)entry, (struct dirent **)result);
}

SHIM_API int closedir(DIR *d)
{
    struct shim_dir *s = ours(d);

    if (s == NULL)
        return REAL(closedir)(d);
    for (unsigned i = 0; i < MAX_STREAMS; i++) {
        struct shim_dir *was = s;
        if (atomic_compare_exchange_strong(&streams[i], &was, NULL)) {
            atomic_fetch_sub(&stream_count, 1);
            break;
        }
    }
    if (s->fd >= 0)
        close(s->fd);
    release(s);
    return 0;
}

SHIM_API void rewinddir(DIR *d)
{
    struct shim_dir *s = ours(d);

    if (s == NULL)
        REAL(rewinddir)(d);
    else
        s->at = 0;
}

SHIM_API long telldir(DIR *d)
{
    struct shim_dir *s = ours(d);

    return s == NULL ? REAL(telldir)(d) : (long)s->at;
}

SHIM_API void seekdir(DIR *d, long at)
{
    struct shim_dir *s = ours(d);

    if (s == NULL)
        REAL(seekdir)(d, at);
    else if (at >= 0 && (size_t)at <= s->n)
        s->at = (size_t)at;
}

SHIM_API int dirfd(DIR *d)
{
    struct shim_dir *s = ours(d);

    if (s == NULL)
        return REAL(dirfd)(d);
    if (s->fd < 0)
        s->fd = shim_open_dir(&s->node, O_CLOEXEC);
    return s->fd;
}

static struct dirent *copy(const struct dirent *e)
{
    struct dirent *c = malloc(sizeof(*c));

    if (c != NULL)
        *c = *e;
    return c;
}

/* Of a stream of ours, as libc does it for the system's. */
static int scan(DIR *d, struct dirent ***out, int (*filter)(const struct dirent *),
                int (*compare)(const struct dirent **, const struct dirent **))
{
    struct dirent **list = calloc(((struct shim_dir *)d)->n + 1, sizeof(*list)), *e;
    size_t n = 0;

    while (list != NULL && (e = readdir(d)) != NULL) {
        if (filter != NULL && filter(e) == 0)
            continue;
        list[n] = copy(e);
        if (list[n] == NULL)
            break;
        n++;
    }
    closedir(d);
    if (list == NULL)
        return -1;
    if (compare != NULL)
        qsort(list, n, sizeof(*list), (int (*)(const void *, const void *))(void *)compare);
    *out = list;
    return (int)n;
}

SHIM_API int scandir(const char *path, struct dirent ***out, int (*filter)(const struct dirent *),
                     int (*compare)(const struct dirent **, const struct dirent **))
{
    if (!shim_maybe(AT_FDCWD, path) && files_path_parent(path) == NULL)
        return REAL(scandir)(path, out, filter, compare);
    DIR *d = opendir(path);
    if (d == NULL)
        return -1;
    if (ours(d) != NULL)
        return scan(d, out, filter, compare);
    closedir(d);
    return REAL(scandir)(path, out, filter, compare);
}

SHIM_API int scandir64(const char *path, struct dirent64 ***out,
                       int (*filter)(const struct dirent64 *),
                       int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
    return scandir(path, (struct dirent ***)out, (int (*)(const struct dirent *))(void *)filter,
                   (int (*)(const struct dirent **, const struct dirent **))(void *)compare);
}

/* libc's glob opens directories by itself, unless it is given other functions to do so. */
static void *glob_opendir(const char *path)
{
    return opendir(path);
}

static struct dirent *glob_readdir(void *d)
{
    return readdir(d);
}

static void glob_closedir(void *d)
{
    closedir(d);
}

SHIM_API int glob(const char *pattern, int flags, int (*error)(const char *, int), glob_t *g)
{
    if ((flags & GLOB_ALTDIRFUNC) != 0 || !files_path_ours(pattern))
        return REAL(glob)(pattern, flags, error, g);
    g->gl_opendir = glob_opendir;
    g->gl_readdir = glob_readdir;
    g->gl_closedir = glob_closedir;
    g->gl_stat = stat;
    g->gl_lstat = lstat;
    return REAL(glob)(pattern, flags | GLOB_ALTDIRFUNC, error, g);
}

SHIM_API int glob64(const char *pattern, int flags, int (*error)(const char *, int), glob64_t *g)
{
    return glob(pattern, flags, error, (glob_t *)g);
}
