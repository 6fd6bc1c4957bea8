/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files_calls.c: the calls by which programs find files, on those of vb_lo: once each with the
 * answers that the kernel gives for its own; from many threads at once, with a signal handler that
 * makes calls, too (`threads`); or also from their children (`crowd`). Prints "all right".
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LO    "/sys/class/infiniband/vb_lo"
#define PORT  LO "/ports/1"
#define GIDS  256
#define STATE "4: ACTIVE\n"

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, strerror(errno));               \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
#define REFUSED(call, error) CHECK((errno = 0, (call)) < 0 && errno == (error))

enum { THREADS = 4, ROUNDS = 6, FORK_EVERY = 3 };

static int is_digit(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static void list(void)
{
    DIR *d = opendir(PORT "/gids");
    struct dirent *e;
    int n = 0;
    long third = 0;
    char name[256];

    CHECK(d != NULL);
    while ((e = readdir(d)) != NULL) {
        if (++n == 3)
            third = telldir(d);
        if (n == 4)
            snprintf(name, sizeof(name), "%s", e->d_name);
    }
    CHECK(n == GIDS + 2 && errno == 0);
    seekdir(d, third);
    e = readdir(d);
    CHECK(e != NULL && strcmp(e->d_name, name) == 0);
    rewinddir(d);
    e = readdir(d);
    CHECK(e != NULL && strcmp(e->d_name, ".") == 0 && e->d_type == DT_DIR);
    struct stat st;
    CHECK(fstat(dirfd(d), &st) == 0 && S_ISDIR(st.st_mode));
    CHECK(fstatat(dirfd(d), "0", &st, 0) == 0 && S_ISREG(st.st_mode));
    CHECK(closedir(d) == 0);
}

static void scan(void)
{
    struct dirent **found;
    int n = scandir(PORT "/gid_attrs/types", &found, is_digit, versionsort);

    CHECK(n == GIDS);
    for (int i = 0; i < n; i++) {
        CHECK(atoi(found[i]->d_name) == i && found[i]->d_type == DT_REG);
        free(found[i]);
    }
    free(found);
    REFUSED(scandir(LO "/fw_ver", &found, NULL, NULL), ENOTDIR);
    REFUSED(scandir(LO "/none", &found, NULL, NULL), ENOENT);
}

static void read_files(void)
{
    char text[64] = "";
    int fd = open(PORT "/state", O_RDONLY | O_CLOEXEC), same;

    CHECK(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
    CHECK(read(fd, text, sizeof(text)) == sizeof(STATE) - 1 && strcmp(text, STATE) == 0);
    CHECK(read(fd, text, sizeof(text)) == 0);
    REFUSED(write(fd, "x", 1), EBADF);
    CHECK((same = dup(fd)) >= 0 && close(fd) == 0);
    struct stat st;
    CHECK(fstat(same, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0777) == 0444);
    CHECK(st.st_size == sizeof(STATE) - 1);
    CHECK(close(same) == 0);
    FILE *f = fopen(PORT "/state", "re");
    CHECK(f != NULL && fgets(text, sizeof(text), f) != NULL && strcmp(text, STATE) == 0);
    CHECK(fclose(f) == 0);
    fd = open(PORT "/gid_attrs/types/9", O_RDONLY);
    CHECK(fd >= 0);
    REFUSED(read(fd, text, sizeof(text)), EINVAL);
    CHECK(close(fd) == 0);
    fd = open(PORT, O_RDONLY | O_DIRECTORY);
    CHECK(fd >= 0);
    CHECK(read(fd, text, sizeof(text)) < 0);
    int inner = openat(fd, "gid_attrs/../rate", O_RDONLY);
    CHECK(inner >= 0 && close(inner) == 0 && faccessat(fd, "rate", R_OK, 0) == 0);
    struct statx x;
    CHECK(statx(fd, "", AT_EMPTY_PATH, STATX_ALL, &x) == 0 && S_ISDIR(x.stx_mode));
    CHECK(statx(fd, "gids/3", 0, STATX_ALL, &x) == 0 && S_ISREG(x.stx_mode));
    DIR *d = fdopendir(fd);
    CHECK(d != NULL && dirfd(d) == fd && closedir(d) == 0);
}

static void names(void)
{
    char path[PATH_MAX];
    glob_t g;

    CHECK(realpath(LO "/ports/../fw_ver", path) == path && strcmp(path, LO "/fw_ver") == 0);
    char *canonical = canonicalize_file_name(LO "/device/net/lo");
    CHECK(canonical != NULL && strcmp(canonical, "/sys/devices/virtual/net/lo") == 0);
    free(canonical);
    CHECK(readlink(LO "/device/net/lo", path, sizeof(path)) == 18);
    CHECK(readlink(LO "/device/net/lo", path, 2) == 2 && memcmp(path, "..", 2) == 0);
    REFUSED(readlink(LO, path, sizeof(path)), EINVAL);
    CHECK(glob("/sys/class/infiniband/*/ports/*/state", 0, NULL, &g) == 0 && g.gl_pathc >= 1);
    globfree(&g);
    CHECK(glob("/sys/class/infiniband/*/nothing", 0, NULL, &g) == GLOB_NOMATCH);
}

static void refuse(void)
{
    REFUSED(open(LO "/fw_ver", O_WRONLY), EACCES);
    REFUSED(open(LO "/fw_ver", O_RDONLY | O_TRUNC), EACCES);
    REFUSED(open(LO "/new", O_WRONLY | O_CREAT, 0644), EACCES);
    REFUSED(open(LO "/fw_ver", O_WRONLY | O_CREAT | O_EXCL, 0644), EEXIST);
    REFUSED(open(LO, O_RDWR), EISDIR);
    REFUSED(open(LO "/fw_ver", O_RDONLY | O_DIRECTORY), ENOTDIR);
    REFUSED(open(LO "/device/net/lo", O_RDONLY | O_NOFOLLOW), ELOOP);
    REFUSED(open(LO "/none", O_RDONLY), ENOENT);
    REFUSED(open(LO "/fw_ver/none", O_RDONLY), ENOTDIR);
    CHECK(fopen(LO "/fw_ver", "r+") == NULL && errno == EACCES);
    CHECK(fopen(LO "/fw_ver", "w") == NULL && errno == EACCES);
    CHECK(opendir(LO "/fw_ver") == NULL && errno == ENOTDIR);
    REFUSED(access(LO "/fw_ver", W_OK), EACCES);
    REFUSED(euidaccess(LO "/fw_ver", X_OK), EACCES);
    REFUSED(access(LO, W_OK), EACCES);
    REFUSED(getxattr(LO, "user.x", NULL, 0), EOPNOTSUPP);
    REFUSED(lgetxattr(LO "/device/net/lo", "user.x", NULL, 0), EOPNOTSUPP);
    struct stat st;
    REFUSED(stat("/dev/infiniband/uverbs1024", &st), ENOENT);
    REFUSED(stat(LO "/fw_ver/", &st), ENOTDIR);
}

/* Programs built before glibc 2.33 call these; deprecated ones are called by somebody, too. */
static void old_calls(void)
{
    struct stat st;
    int (*xstat)(int, const char *, struct stat *) =
        (int (*)(int, const char *, struct stat *))dlsym(RTLD_DEFAULT, "__xstat64");
    int (*lxstat)(int, const char *, struct stat *) =
        (int (*)(int, const char *, struct stat *))dlsym(RTLD_DEFAULT, "__lxstat");

    CHECK(xstat != NULL && lxstat != NULL);
    CHECK(xstat(1, "/dev/infiniband/rdma_cm", &st) == 0 && S_ISCHR(st.st_mode));
    CHECK(lxstat(1, LO "/device/net/lo", &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(xstat(1, "/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
    REFUSED(xstat(1, LO "/none", &st), ENOENT);
}

/* What is not ours, in between. */
static void foreign(void)
{
    struct stat st;
    DIR *d = opendir("/proc/self");

    CHECK(stat("/etc/passwd", &st) == 0 && S_ISREG(st.st_mode));
    CHECK(d != NULL && readdir(d) != NULL && closedir(d) == 0);
    int fd = open("/etc", O_RDONLY | O_DIRECTORY);
    CHECK(fd >= 0 && faccessat(fd, "passwd", R_OK, 0) == 0);
    CHECK(fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && close(fd) == 0);
    REFUSED(stat("/sys/class/infiniband/none", &st), ENOENT);
}

/* Read again from its start, a counter is as it is then: here, no longer what we wrote. */
static bool is_renewed(int fd)
{
    char path[32], text[32] = "";

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int again = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(again >= 0 && write(again, "none", 4) == 4 && close(again) == 0);
    CHECK(read(fd, text, sizeof(text) - 1) > 0);
    return strncmp(text, "none", 4) != 0;
}

/* Also when very many have been open, and others have their numbers now. */
static void counters(void)
{
    enum { MANY = 80 };
    int fd[MANY];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++)
            CHECK((fd[i] = open(PORT "/counters/port_xmit_data", O_RDONLY | O_CLOEXEC)) >= 0);
        CHECK(is_renewed(fd[0]));
        for (int i = 0; i < MANY; i++)
            CHECK(close(fd[i]) == 0);
    }
    for (int i = 0; i < MANY; i++)
        CHECK((fd[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
    int last = open(PORT "/counters/port_xmit_data", O_RDONLY | O_CLOEXEC);
    CHECK(last >= 0 && is_renewed(last) && close(last) == 0);
    for (int i = 0; i < MANY; i++)
        CHECK(close(fd[i]) == 0);
}

static void all(void)
{
    errno = 0;
    list();
    scan();
    read_files();
    names();
    refuse();
    old_calls();
    foreign();
}

static bool forks;

static void *thread(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        all();
        if (!forks || i % FORK_EVERY != 0)
            continue;
        int status;
        pid_t child = fork();
        if (child == 0) {
            all();
            _exit(0);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    return NULL;
}

static void on_alarm(int number)
{
    int error = errno;
    struct stat st;
    int fd = open("/dev/null", O_RDONLY);

    (void)number;
    CHECK(fd >= 0 && fstat(fd, &st) == 0 && close(fd) == 0);
    CHECK(stat("/etc/passwd", &st) == 0);
    errno = error;
}

static void crowd(void)
{
    pthread_t t[THREADS];
    struct sigaction a = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval often = {.it_interval = {.tv_usec = 500}, .it_value = {.tv_usec = 500}};

    CHECK(sigaction(SIGALRM, &a, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&t[i], NULL, thread, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
}

static int descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    CHECK(d != NULL);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

int main(int argc, char **argv)
{
    int before = descriptors();

    forks = argc > 1 && strcmp(argv[1], "crowd") == 0;
    if (argc > 1) {
        crowd();
    } else {
        all();
        counters();
    }
    CHECK(descriptors() == before);
    puts("all right");
    return 0;
}
