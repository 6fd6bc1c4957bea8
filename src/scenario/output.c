/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * output.c: see output.h.
 */
#include "scenario/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(struct scenario_error *error, const char *path, const char *what)
{
    snprintf(error->text, sizeof(error->text), "%.400s: %s", path, what);
    return false;
}

static void forget(struct output *o)
{
    free(o->path);
    free(o->part);
    *o = (struct output){0};
}

/* A link stays one: its target is made anew. A file that must not be written is not replaced. */
static int find(struct output *o, const char *path)
{
    struct stat st;
    bool there = stat(path, &st) == 0;
    o->path = there ? realpath(path, NULL) : strdup(path);
    if (o->path == NULL)
        return -errno;
    if (path[0] == '\0')
        return -ENOENT;
    if (there && S_ISDIR(st.st_mode))
        return -EISDIR;
    if (there && access(o->path, W_OK) != 0)
        return -errno;
    if (there && !S_ISREG(st.st_mode))
        return 0;
    if (asprintf(&o->part, "%s.part", o->path) < 0)
        o->part = NULL;
    return o->part != NULL ? 0 : -ENOMEM;
}

/* What a run that was killed has left is written over; what another one writes is not. The lock
 * may be on a file that has got its name meanwhile. */
static bool is_ours(int fd, const char *part)
{
    struct stat here, there;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &here) == 0 && stat(part, &there) == 0 && here.st_ino == there.st_ino &&
           here.st_dev == there.st_dev;
}

bool output_is_free(const char *path, const struct scenario *s, struct scenario_error *error)
{
    return !scenario_reads(s, path) ||
           fail(error, path, "the scenario is read from it; another place is expected");
}

bool output_open(struct output *o, const char *path, struct scenario_error *error)
{
    *o = (struct output){0};
    int rc = find(o, path), fd = -1;
    const char *name = o->part != NULL ? o->part : path;
    if (rc == 0)
        fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (rc == 0 && fd < 0)
        rc = -errno;
    if (rc != 0) {
        fail(error, path, strerror(-rc));
        forget(o);
        return false;
    }
    if (o->part != NULL && !is_ours(fd, o->part)) {
        fail(error, path, "another run writes it, or this one does for something else");
        close(fd);
        forget(o);
        return false;
    }
    /* Not of one that is empty: a system may take a file that is cut as one that replaces another,
     * and then waits for its disk at the end. */
    struct stat st;
    bool empty =
        o->part == NULL || (fstat(fd, &st) == 0 && (st.st_size == 0 || ftruncate(fd, 0) == 0));
    o->file = empty ? fdopen(fd, "w") : NULL;
    if (o->file != NULL)
        return true;
    fail(error, path, strerror(errno));
    close(fd);
    forget(o);
    return false;
}

bool output_commit(struct output *o, struct scenario_error *error)
{
    bool bad = ferror(o->file) != 0;
    errno = 0;
    bad = fflush(o->file) != 0 || bad;
    if (o->part != NULL) /* while it is locked */
        bad = (bad ? unlink(o->part) != 0 : rename(o->part, o->path) != 0) || bad;
    bad = fclose(o->file) != 0 || bad;
    if (bad)
        snprintf(error->text, sizeof(error->text), "%.400s: it could not be written%s%s", o->path,
                 errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
    forget(o);
    return !bad;
}

void output_abandon(struct output *o)
{
    if (o->path == NULL)
        return;
    if (o->part != NULL) /* while it is locked */
        unlink(o->part);
    fclose(o->file);
    forget(o);
}
