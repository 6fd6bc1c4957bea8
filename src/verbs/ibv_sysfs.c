/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_sysfs.c: where programs look for files that describe devices, and the few of ours that they
 * read through the library.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/ibv_objects.h"

enum { SYSFS_PATH_BYTES = 512 };

static const struct {
    const char *file;
    const char *text;
} sysfs_files[] = {
    {"board_id",  VERBENA_BOARD_ID},
    {"fw_ver",    VERBS_FW_VERSION},
    {"hca_type",  VERBENA_HCA_TYPE},
    {"node_type", "1: CA"         },
};

VERBS_ABI const char *ibv_get_sysfs_path(void)
{
    const char *path = secure_getenv("SYSFS_PATH");

    return path != NULL && path[0] != '\0' ? path : "/sys";
}

/* The text without its newline, ended by NUL when it fits, as far as it fits. */
static int sysfs_give(const char *text, size_t n, char *buf, size_t size)
{
    if (n > 0 && text[n - 1] == '\n')
        n--;
    if (n > size)
        n = size;
    memcpy(buf, text, n);
    if (n < size)
        buf[n] = '\0';
    return (int)n;
}

static const char *sysfs_ours(const char *dir, const char *file)
{
    const char *base = strrchr(dir, '/');

    if (base == NULL || strncmp(base, "/vb_", 4) != 0)
        return NULL;
    for (unsigned i = 0; i < sizeof(sysfs_files) / sizeof(sysfs_files[0]); i++) {
        if (strcmp(sysfs_files[i].file, file) == 0)
            return sysfs_files[i].text;
    }
    return NULL;
}

VERBS_ABI int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
    char path[SYSFS_PATH_BYTES], text[4096];

    const char *ours = sysfs_ours(dir, file);
    if (ours != NULL)
        return sysfs_give(ours, strlen(ours), buf, size);
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, sizeof(text));
    close(fd);
    return n < 0 ? -1 : sysfs_give(text, (size_t)n, buf, size);
}

/* Private to rdma-core's libraries. */
int ibv_read_ibdev_sysfs_file(char *buf, size_t size, void *sysfs_dev, const char *format, ...);
VERBS_ABI int ibv_read_ibdev_sysfs_file(char *buf, size_t size, void *sysfs_dev, const char *format,
                                        ...)
{
    (void)buf;
    (void)size;
    (void)sysfs_dev;
    (void)format;
    errno = ENOENT;
    return -1;
}
