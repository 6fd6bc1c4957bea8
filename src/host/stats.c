/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.c: counters by index, and as text at the end: one line a counter that is not zero,
 * `<counter> <value> <pid> <program>`, the lines of a process in one write so that several may
 * share a file.
 */
#define _GNU_SOURCE
#include "base/file_limit.h"
#include "host/host_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATS_BYTES = 32 << 10 };

static const char *counter(struct host *h, unsigned index, uint64_t *value)
{
    if (index < COUNTER_COUNT) {
        *value = counters_get(&h->nic->counters, (enum nic_counter)index);
        return counters_name((enum nic_counter)index);
    }
    index -= COUNTER_COUNT;
    if (index < CM_COUNTERS) {
        *value = atomic_load_explicit(&h->connect.count[index], memory_order_relaxed);
        return cm_counter_name((enum cm_counter)index);
    }
    return h->port->ops->counter(h->port, index - CM_COUNTERS, value);
}

const char *verbena_counter_name(unsigned index)
{
    if (index < COUNTER_COUNT)
        return counters_name((enum nic_counter)index);
    index -= COUNTER_COUNT;
    return index < CM_COUNTERS ? cm_counter_name((enum cm_counter)index) : NULL;
}

const char *verbena_counter(unsigned index, uint64_t *value)
{
    const char *name = NULL;
    *value = 0;
    pthread_mutex_lock(&host_open_lock);
    if (host_current != NULL && host_alive(host_current))
        name = counter(host_current, index, value);
    pthread_mutex_unlock(&host_open_lock);
    return name;
}

/* In one write, since other processes write to the file, too; a part of it is an error. */
static int append(int fd, const char *text, size_t n)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        !file_limit_allows((uint64_t)st.st_size + n)) {
        errno = EFBIG;
        return -1;
    }
    errno = ENOSPC;
    return write(fd, text, n) == (ssize_t)n ? 0 : -1;
}

void stats_write(struct host *h)
{
    const char *path = h->config.stats_path;
    if (path == NULL)
        return;
    static char text[STATS_BYTES];
    size_t used = 0;
    uint64_t value;
    const char *name;
    for (unsigned i = 0; (name = counter(h, i, &value)) != NULL; i++) {
        if (value == 0)
            continue;
        int n = snprintf(text + used, sizeof(text) - used, "%s %llu %d %s\n", name,
                         (unsigned long long)value, (int)getpid(), program_invocation_short_name);
        if (n < 0 || (size_t)n >= sizeof(text) - used)
            break;
        used += (size_t)n;
    }
    bool to_stderr = strcmp(path, "-") == 0;
    /* Not blocking: a pipe without a reader is an error, not a wait. */
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK;
    int fd = to_stderr ? STDERR_FILENO : open(path, flags, 0666);
    if (fd < 0 || append(fd, text, used) != 0)
        fprintf(stderr, "verbena: VERBENA_STATS=%s: %s\n", path, file_limit_strerror(errno));
    if (fd >= 0 && !to_stderr)
        close(fd);
}
