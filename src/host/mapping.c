/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mapping.c: which memory of this process others may have mapped as well, as the kernel tells it in
 * /proc/self/maps: only what is shared (MAP_SHARED), be it a file, a memfd or the anonymous memory
 * that a child inherits.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "host/memory.h"

/* A line of the list. */
struct piece {
    uint64_t start, end;
    bool shared, write;
    struct verbena_mapping m; /* its first byte */
};

/* The next one; false: that was all. */
static bool next_piece(FILE *maps, char **line, size_t *room, struct piece *p)
{
    while (getline(line, room, maps) > 0) {
        char perms[5];
        unsigned major, minor;
        if (sscanf(*line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &p->start,
                   &p->end, perms, &p->m.offset, &major, &minor, &p->m.ino) != 7)
            continue;
        p->shared = perms[3] == 's';
        p->write = perms[1] == 'w';
        p->m.dev = makedev(major, minor);
        return true;
    }
    return false;
}

static bool same_file(const struct verbena_mapping *a, const struct verbena_mapping *b)
{
    return a->dev == b->dev && a->ino == b->ino;
}

/* What is looked for: bytes by address (m is found), or by place in a file (addr is found). */
struct wanted {
    bool by_addr, write;
    uint64_t addr, length;
    struct verbena_mapping m;
    uint64_t found; /* bytes of it so far */
};

/* Does the piece go on with what was found, or begin it? false: it belongs to something else. */
static bool take_piece(struct wanted *w, const struct piece *p)
{
    if (!p->shared || (w->write && !p->write))
        return false;
    uint64_t into;
    if (w->found != 0) {
        if (p->start != w->addr + w->found || !same_file(&p->m, &w->m) ||
            p->m.offset != w->m.offset + w->found)
            return false;
        into = 0;
    } else if (w->by_addr) {
        if (w->addr < p->start || w->addr >= p->end)
            return false;
        into = w->addr - p->start;
        w->m = p->m;
        w->m.offset += into;
    } else {
        if (!same_file(&p->m, &w->m) || w->m.offset < p->m.offset ||
            w->m.offset - p->m.offset >= p->end - p->start)
            return false;
        into = w->m.offset - p->m.offset;
        w->addr = p->start + into;
    }
    w->found += p->end - p->start - into;
    return true;
}

static int look(struct wanted *w)
{
    int cancel_state, err = -EOPNOTSUPP;
    char *line = NULL;
    size_t room = 0;
    struct piece p;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL) {
        err = -errno;
    } else {
        while (err != 0 && next_piece(maps, &line, &room, &p)) {
            if (!take_piece(w, &p)) {
                w->found = 0;
                take_piece(w, &p);
            }
            if (w->found >= w->length && w->found != 0)
                err = 0;
        }
        fclose(maps);
    }
    free(line);
    pthread_setcancelstate(cancel_state, NULL);
    return err;
}

int verbena_mapping_of(const void *addr, uint64_t length, struct verbena_mapping *out)
{
    struct wanted w = {.by_addr = true, .addr = (uintptr_t)addr, .length = length};
    int err = look(&w);
    *out = w.m;
    return err;
}

int verbena_mapping_find(const struct verbena_mapping *m, uint64_t length, bool write, void **out)
{
    struct wanted w = {.write = write, .m = *m, .length = length};
    int err = look(&w);
    *out = (void *)(uintptr_t)w.addr;
    return err;
}
