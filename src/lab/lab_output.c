/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_output.c: a new file in the same folder takes the old one's name when it is complete. Where
 * that cannot be, as with a device, or a file in a folder that we may not write to, it is written
 * to itself, at the end only.
 */
#include "lab/lab_output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
    char path[PATH_MAX]; /* links are followed: they stay */
    char made[PATH_MAX]; /* the new file; "": path is written to itself */
    bool there;
    struct stat was; /* where it is there */
};

/* What is below /dev is somebody's descriptor, or a device, whatever it leads to. */
static bool may_be_replaced(const struct place *p)
{
    return strncmp(p->path, "/dev/", 5) != 0 && (!p->there || S_ISREG(p->was.st_mode));
}

/* Where the file is. A link that leads nowhere is replaced. */
static int find(struct place *p, const char *file)
{
    *p = (struct place){.there = false};
    p->there = stat(file, &p->was) == 0;
    if (!p->there && (errno != ENOENT || file[0] == '\0'))
        return -errno;
    if (p->there && S_ISDIR(p->was.st_mode))
        return -EISDIR;
    if (strlen(file) >= sizeof(p->path))
        return -ENAMETOOLONG;
    strcpy(p->path, file); /* NOLINT: room for it is above */
    if (p->there && may_be_replaced(p) && realpath(file, p->path) == NULL)
        return -errno;
    return 0;
}

/* A descriptor of a new file beside it, or -errno. Nobody else has its name. */
static int make_beside(struct place *p)
{
    enum { TRIES = 100 };
    const char *slash = strrchr(p->path, '/');
    int folder = slash == NULL ? 0 : (int)(slash - p->path) + 1;
    for (unsigned i = 0; i < TRIES; i++) {
        int n = snprintf(p->made, sizeof(p->made), "%.*s.verbena-lab-%d-%u", folder, p->path,
                         (int)getpid(), i);
        if (n < 0 || (size_t)n >= sizeof(p->made))
            return -ENAMETOOLONG;
        int fd = open(p->made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            return fd;
        if (errno != EEXIST)
            break;
    }
    int error = -errno;
    p->made[0] = '\0';
    return error;
}

/* Only that nothing may be made in its folder leaves another way. */
static bool goes_into(const struct place *p, int error)
{
    bool refused = error == -EACCES || error == -EPERM || error == -EROFS;
    return refused && p->there && access(p->path, W_OK) == 0;
}

/* Of what is not there yet: in one folder, by one name. */
static bool same_name(const struct place *a, const struct place *b)
{
    const struct place *of[2] = {a, b};
    char folder[2][PATH_MAX], path[PATH_MAX];
    const char *base[2];
    for (unsigned i = 0; i < 2; i++) {
        char *slash = strrchr(strcpy(path, of[i]->path), '/'); /* NOLINT: as large */
        base[i] = slash == NULL ? of[i]->path : of[i]->path + (slash - path) + 1;
        if (slash != NULL)
            slash[slash == path] = '\0';
        if (realpath(slash == NULL ? "." : path, folder[i]) == NULL)
            return false;
    }
    return strcmp(folder[0], folder[1]) == 0 && strcmp(base[0], base[1]) == 0;
}

static bool same_file(const char *a, const char *b)
{
    struct place p, q;
    if (a[0] == '\0' || b[0] == '\0' || find(&p, a) != 0 || find(&q, b) != 0)
        return false;
    if (p.there != q.there || !may_be_replaced(&p) || !may_be_replaced(&q))
        return false;
    return p.there ? p.was.st_dev == q.was.st_dev && p.was.st_ino == q.was.st_ino
                   : same_name(&p, &q);
}

bool lab_output_twice(const struct lab_output_option *options, unsigned n, char *message,
                      size_t bytes)
{
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = i + 1; k < n; k++)
            if (same_file(options[i].file, options[k].file)) {
                snprintf(message, bytes,
                         "--%s and --%s name one file, '%s'; name another one for either",
                         options[i].name, options[k].name, options[k].file);
                return true;
            }
    return false;
}

bool lab_output_refused(const char *db, const char *json, const char *html, char *message,
                        size_t bytes)
{
    const struct lab_output_option options[] = {
        {"db",   db                         },
        {"json", json != NULL && strcmp(json, "-") != 0 ? json : ""},
        {"html",      html != NULL ? html : ""                           },
    };
    if (strcmp(options[2].file, "-") == 0) {
        snprintf(message, bytes, "--html: a page is not written to standard output; name a file");
        return true;
    }
    return lab_output_twice(options, 3, message, bytes);
}

int lab_output_check(const char *file)
{
    struct place p;
    int error = find(&p, file);
    if (error != 0)
        return error;
    if (!may_be_replaced(&p))
        return access(p.path, W_OK) == 0 ? 0 : -errno;
    if (p.there && access(p.path, W_OK) != 0)
        return -errno; /* who has made it read-only means that */
    int fd = make_beside(&p);
    if (fd < 0)
        return goes_into(&p, fd) ? 0 : fd;
    close(fd);
    unlink(p.made);
    return 0;
}

static void keep_rights(int fd, const struct stat *was)
{
    if (fchown(fd, was->st_uid, was->st_gid) != 0)
        errno = 0; /* only root may, and for others it is theirs already */
    fchmod(fd, was->st_mode & 07777);
}

static int write_open(int fd, int (*write)(const json_t *, FILE *), const json_t *data, bool sync)
{
    FILE *out = fdopen(fd, "w");
    if (out == NULL) {
        int error = -errno;
        close(fd);
        return error;
    }
    int error = write(data, out);
    if (error == 0 && fflush(out) != 0)
        error = -errno;
    /* Some file systems learn only now that there is no room. */
    if (error == 0 && sync && fsync(fd) != 0)
        error = -errno;
    if (fclose(out) != 0 && error == 0)
        error = -errno;
    return error;
}

static int write_into(const struct place *p, int (*write)(const json_t *, FILE *),
                      const json_t *data)
{
    int fd = open(p->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return fd < 0 ? -errno : write_open(fd, write, data, false);
}

int lab_output_write(const char *file, int (*write)(const json_t *data, FILE *out),
                     const json_t *data)
{
    struct place p;
    int error = find(&p, file);
    if (error != 0)
        return error;
    if (!may_be_replaced(&p))
        return write_into(&p, write, data);
    if (p.there && access(p.path, W_OK) != 0)
        return -errno;
    int fd = make_beside(&p);
    if (fd < 0)
        return goes_into(&p, fd) ? write_into(&p, write, data) : fd;
    if (p.there)
        keep_rights(fd, &p.was);
    error = write_open(fd, write, data, true);
    if (error == 0 && rename(p.made, p.path) != 0)
        error = -errno;
    if (error != 0)
        unlink(p.made);
    /* It is a mount point of its own, as containers have them. */
    return error == -EBUSY ? write_into(&p, write, data) : error;
}
