/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * mounts.c: a directory that must get entries of ours, in a file system where none can be made, is
 * covered with a tmpfs that has all of what it covers, by bind mounts, and ours. Without privileges
 * no device file can be made; but /dev/null can be mounted on any file, and it behaves as ours do.
 */
#include "mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "files/files_tree.h"
#include "tool.h"

enum { MAX_MAP_BYTES = 64 };

static const char *const roots[] = {
    "/dev/infiniband",
    "/sys/class/infiniband",
    "/sys/class/infiniband_mad",
    "/sys/class/infiniband_verbs",
};

static noreturn void fail(const char *what, const char *path)
{
    tool_die(TOOL_UNAVAILABLE, "--ns: cannot %s %s: %s", what, path, file_limit_strerror(errno));
}

/* The facts do not change while a thousand files are written. */
static struct verbena_device *known;
static size_t known_count;
static struct verbena_gid (*known_gids)[VERBENA_GID_TABLE_SIZE];

static void learn(void)
{
    if (files_live.devices(&known, &known_count) != 0)
        tool_die(TOOL_FAILED, "--ns: cannot list the network interfaces");
    known_gids = calloc(known_count + 1, sizeof(*known_gids));
    for (size_t i = 0; known_gids != NULL && i < known_count; i++) {
        if (files_live.gids(&known[i], known_gids[i]) < 0)
            tool_die(TOOL_FAILED, "--ns: cannot list the addresses of %s", known[i].netdev);
    }
    if (known_gids == NULL)
        tool_die(TOOL_FAILED, "out of memory");
}

static int known_devices(struct verbena_device **out, size_t *n)
{
    *out = malloc((known_count + 1) * sizeof(**out));
    if (*out == NULL)
        return -ENOMEM;
    memcpy(*out, known, known_count * sizeof(**out));
    *n = known_count;
    return 0;
}

static int known_gids_of(const struct verbena_device *d, struct verbena_gid *out)
{
    for (size_t i = 0; i < known_count; i++) {
        if (known[i].ifindex == d->ifindex)
            memcpy(out, known_gids[i], sizeof(known_gids[i]));
    }
    return 0;
}

/* Those of one device are written one after the other. */
static void known_counters(const struct verbena_device *d, uint64_t *value, unsigned n)
{
    static uint64_t last[256];
    static unsigned ifindex;

    if (ifindex != d->ifindex) {
        memset(last, 0, sizeof(last));
        files_live.counters(d, last, sizeof(last) / sizeof(last[0]));
        ifindex = d->ifindex;
    }
    memcpy(value, last, (n < 256 ? n : 256) * sizeof(*value));
}

static struct files_source source; /* files_live, with facts from above */

/* A line of /proc/self/uid_map: outside as inside. */
static void map(const char *file, unsigned id)
{
    char text[MAX_MAP_BYTES];
    int n = snprintf(text, sizeof(text), "%u %u 1", id, id);
    int fd = open(file, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, (size_t)n) != n)
        fail("write", file);
    close(fd);
}

static void new_namespace(void)
{
    unsigned uid = geteuid(), gid = getegid();

    if (unshare(CLONE_NEWNS) == 0)
        return;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        tool_die(TOOL_UNAVAILABLE,
                 "--ns: this system does not allow you a namespace of your own: %s. Allow user "
                 "namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
                 "kernel.apparmor_restrict_unprivileged_userns; in a container, its seccomp "
                 "profile), or run as root",
                 strerror(errno));
    /* Else nobody without privileges may map a group. Kernels before 3.19 have no such file. */
    int fd = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (write(fd, "deny", 4) != 4)
            fail("write", "/proc/self/setgroups");
        close(fd);
    }
    map("/proc/self/uid_map", uid);
    map("/proc/self/gid_map", gid);
}

/* One entry of the covered directory, which `from` leads to: as it was. What has gone meanwhile,
 * cannot be mounted, or is of a device of ours (of a `verbena run --ns` around us) is left out. */
static void keep(const char *from, const char *dir, const char *name)
{
    char source_path[PATH_MAX], path[PATH_MAX], target[PATH_MAX];
    struct files_node node;
    struct stat st;

    snprintf(source_path, sizeof(source_path), "%s/%s", from, name);
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (lstat(source_path, &st) != 0)
        return;
    if (files_lookup(&source, path, &node) && node.device.name[0] != '\0')
        return;
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlink(source_path, target, sizeof(target) - 1);
        if (n > 0) {
            target[n] = '\0';
            if (symlink(target, path) != 0)
                fail("make", path);
        }
        return;
    }
    bool is_dir = S_ISDIR(st.st_mode);
    if ((is_dir ? mkdir(path, 0755) : mknod(path, S_IFREG | 0644, 0)) != 0)
        fail("make", path);
    if (mount(source_path, path, NULL, MS_BIND | (is_dir ? MS_REC : 0), NULL) == 0)
        return;
    if (is_dir)
        rmdir(path);
    else
        unlink(path);
}

static const char *covered[sizeof(roots) / sizeof(roots[0]) + 2];
static unsigned covered_count;

static void cover(const char *dir)
{
    char from[64];
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const struct dirent *e;

    if (fd < 0)
        fail("open", dir);
    DIR *below = opendir(dir);
    if (below == NULL)
        fail("read", dir);
    if (mount("verbena", dir, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755") != 0)
        fail("mount a tmpfs on", dir);
    covered[covered_count++] = dir;
    snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
    while ((e = readdir(below)) != NULL) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            keep(from, dir, e->d_name);
    }
    closedir(below);
    close(fd);
}

/* An empty GID entry's type is an empty file: no file of ours can refuse to be read. */
static void write_file(const struct files_node *node)
{
    char text[FILES_TEXT_BYTES];
    ssize_t n = files_read(&source, node, text);
    int fd = open(node->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

    if (fd < 0 && errno == EEXIST)
        return; /* the system's own, that says the same */
    bool room = file_limit_allows((uint64_t)(n > 0 ? n : 0));
    if (fd >= 0 && !room)
        errno = EFBIG;
    if (fd < 0 || !room || (n > 0 && write(fd, text, (size_t)n) != n))
        fail("write", node->path);
    close(fd);
}

static void make_node(const char *path)
{
    if (mknod(path, S_IFREG | 0666, 0) != 0) {
        if (errno == EEXIST)
            return;
        fail("make", path);
    }
    if (mount("/dev/null", path, NULL, MS_BIND, NULL) != 0)
        fail("mount /dev/null on", path);
}

static void make_link(const struct files_node *node)
{
    char target[FILES_TARGET_BYTES];

    files_target(node, target);
    if (symlink(target, node->path) != 0)
        fail("make", node->path);
}

static void fill(const char *dir);

static bool make_entry(void *arg, const char *name, enum files_kind kind)
{
    char path[FILES_PATH_BYTES + FILES_NAME_BYTES];
    struct files_node node;

    snprintf(path, sizeof(path), "%s/%s", (const char *)arg, name);
    if (kind == FILES_CHAR) {
        make_node(path);
    } else if (kind == FILES_DIR) {
        if (mkdir(path, 0755) != 0)
            fail("make", path);
        fill(path);
    } else if (files_lookup(&source, path, &node)) {
        if (kind == FILES_LINK)
            make_link(&node);
        else
            write_file(&node);
    }
    return true;
}

static void fill(const char *dir)
{
    if (files_list(&source, dir, make_entry, (void *)dir) != 0)
        tool_die(TOOL_FAILED, "--ns: cannot list %s", dir);
}

static bool there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void cover_parents(void)
{
    bool class_done = false;

    for (unsigned i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        bool in_dev = strncmp(roots[i], "/dev/", 5) == 0;
        if (there(roots[i]) || (!in_dev && class_done))
            continue;
        cover(in_dev ? "/dev" : "/sys/class");
        class_done = class_done || !in_dev;
    }
}

/* What the system has beside ours is covered, too; else its parent was. */
static void make_root(const char *root)
{
    if (there(root))
        cover(root);
    else if (mkdir(root, 0755) != 0)
        fail("make", root);
    fill(root);
}

/* sysfs lets nobody make files, either. */
static void protect(void)
{
    for (unsigned i = 0; i < covered_count; i++) {
        if (strncmp(covered[i], "/sys/", 5) == 0 &&
            mount(NULL, covered[i], NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC,
                  NULL) != 0)
            fail("write-protect", covered[i]);
    }
}

void mounts_enter(void)
{
    learn();
    source = files_live;
    source.devices = known_devices;
    source.gids = known_gids_of;
    source.counters = known_counters;
    new_namespace();
    /* Ours go nowhere else; what others mount later still comes. */
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
        fail("have private mounts of", "/");
    cover_parents();
    mode_t before = umask(0);
    for (unsigned i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
        make_root(roots[i]);
    umask(before);
    protect();
    free(known);
    free(known_gids);
}
