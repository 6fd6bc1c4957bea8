/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * program.c: reads ELF headers and #! lines, file modes and capabilities. Where the kernel would
 * ignore LD_PRELOAD, or would load no dynamic linker at all, this says so beforehand.
 */
#include "program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
    MAX_HEAD_BYTES = 64 << 10, /* program headers and the interpreter's name are at the start */
    MAX_SCRIPT_DEPTH = 5,      /* as many as the kernel follows */
};

const char *program_reason(enum program_verdict v)
{
    static const char *const reason[PROGRAM_VERDICT_COUNT] = {
        [PROGRAM_OK] = "can work",
        [PROGRAM_NOT_FOUND] = "cannot be found",
        [PROGRAM_IS_DIRECTORY] = "is a directory",
        [PROGRAM_NOT_EXECUTABLE] = "is not executable",
        [PROGRAM_UNREADABLE] = "cannot be read",
        [PROGRAM_NOT_PROGRAM] = "is neither an ELF program nor a script with a #! line",
        [PROGRAM_32_BIT] = "is a 32-bit program; the software NIC is 64-bit only",
        [PROGRAM_OTHER_MACHINE] = "was built for another kind of machine",
        [PROGRAM_STATIC] =
            "is statically linked: it loads no libraries, so the software NIC cannot "
            "be put into it; link it dynamically",
        [PROGRAM_OTHER_LIBC] = "uses another C library than glibc, which the software NIC needs",
        [PROGRAM_SETUID] = "is setuid: the system ignores LD_PRELOAD for it; run it as the file's "
                           "owner, or run a copy without the setuid bit",
        [PROGRAM_SETGID] =
            "is setgid: the system ignores LD_PRELOAD for it; run a copy without the "
            "setgid bit",
        [PROGRAM_CAPABILITIES] =
            "has file capabilities: the system ignores LD_PRELOAD for it; run a "
            "copy without them",
        [PROGRAM_SCRIPT_DEPTH] = "is a script whose interpreter is a script, too many times",
    };
    return reason[v];
}

enum program_verdict program_check_elf(const unsigned char *bytes, size_t n)
{
    Elf64_Ehdr header;
    if (n < EI_NIDENT || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return PROGRAM_NOT_PROGRAM;
    if (bytes[EI_CLASS] == ELFCLASS32)
        return PROGRAM_32_BIT;
    if (bytes[EI_CLASS] != ELFCLASS64 || n < sizeof(header))
        return PROGRAM_NOT_PROGRAM;
    memcpy(&header, bytes, sizeof(header));
    if (bytes[EI_DATA] != ELFDATA2LSB || header.e_machine != EM_X86_64)
        return PROGRAM_OTHER_MACHINE;
    if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
        return PROGRAM_NOT_PROGRAM;
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > n)
        return PROGRAM_NOT_PROGRAM;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        size_t at = header.e_phoff + i * sizeof(segment);
        if (at + sizeof(segment) > n)
            return PROGRAM_NOT_PROGRAM;
        memcpy(&segment, bytes + at, sizeof(segment));
        if (segment.p_type != PT_INTERP)
            continue;
        if (segment.p_offset >= n || segment.p_filesz < 2 ||
            segment.p_filesz > n - segment.p_offset)
            return PROGRAM_NOT_PROGRAM;
        const char *name = (const char *)bytes + segment.p_offset;
        if (name[segment.p_filesz - 1] != '\0')
            return PROGRAM_NOT_PROGRAM;
        const char *slash = strrchr(name, '/');
        const char *base = slash != NULL ? slash + 1 : name;
        /* Other systems keep glibc elsewhere, but its dynamic linker has this name everywhere. */
        return strcmp(base, "ld-linux-x86-64.so.2") == 0 ? PROGRAM_OK : PROGRAM_OTHER_LIBC;
    }
    return PROGRAM_STATIC;
}

/* Would the kernel start this file in secure mode, where LD_PRELOAD is ignored? */
static enum program_verdict check_privileges(const char *path, const struct stat *st)
{
    struct statvfs fs;
    bool gains = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;
    if (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOSUID) != 0)
        gains = false;
    if (!gains)
        return PROGRAM_OK;
    if ((st->st_mode & S_ISUID) != 0 && st->st_uid != getuid())
        return PROGRAM_SETUID;
    if ((st->st_mode & S_ISGID) != 0 && (st->st_mode & S_IXGRP) != 0 && st->st_gid != getgid())
        return PROGRAM_SETGID;
    /* Root gains nothing by file capabilities, and the kernel then stays in normal mode. */
    if (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
        return PROGRAM_CAPABILITIES;
    return PROGRAM_OK;
}

static enum program_verdict check_file(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return errno == EACCES ? PROGRAM_NOT_EXECUTABLE : PROGRAM_NOT_FOUND;
    if (S_ISDIR(st.st_mode))
        return PROGRAM_IS_DIRECTORY;
    if (!S_ISREG(st.st_mode) || access(path, X_OK) != 0)
        return PROGRAM_NOT_EXECUTABLE;
    return check_privileges(path, &st);
}

/* As a shell does it: the first executable file of that name in PATH; else the first of any kind,
 * so that the message can say what is wrong with it. */
static enum program_verdict find(const char *name, char out[PATH_MAX])
{
    if (strchr(name, '/') != NULL) {
        snprintf(out, PATH_MAX, "%s", name);
        return check_file(out);
    }
    const char *path = getenv("PATH");
    enum program_verdict first = PROGRAM_NOT_FOUND;
    snprintf(out, PATH_MAX, "%s", name);
    if (path == NULL)
        path = "/usr/local/bin:/usr/bin:/bin";
    while (*name != '\0') {
        char candidate[PATH_MAX];
        int n = (int)strcspn(path, ":");
        int length =
            snprintf(candidate, sizeof(candidate), "%.*s%s%s", n, path, n > 0 ? "/" : "./", name);
        if (length < PATH_MAX) {
            enum program_verdict v = check_file(candidate);
            bool passed_over =
                v == PROGRAM_NOT_FOUND || v == PROGRAM_IS_DIRECTORY || v == PROGRAM_NOT_EXECUTABLE;
            if (!passed_over || (first == PROGRAM_NOT_FOUND && v == PROGRAM_NOT_EXECUTABLE)) {
                memcpy(out, candidate, PATH_MAX);
                first = v;
            }
            if (!passed_over)
                return v;
        }
        if (path[n] == '\0')
            break;
        path += n + 1;
    }
    return first;
}

/* Splits "#!interpreter argument"; false when it is no such line. */
static bool split_script(char *head, size_t n, char **interpreter, char **argument)
{
    if (n < 3 || head[0] != '#' || head[1] != '!')
        return false;
    head[strcspn(head, "\n")] = '\0';
    *interpreter = head + 2 + strspn(head + 2, " \t");
    char *end = *interpreter + strcspn(*interpreter, " \t\r");
    *argument = end;
    if (*end != '\0') {
        *end = '\0';
        *argument = end + 1 + strspn(end + 1, " \t");
        (*argument)[strcspn(*argument, " \t\r")] = '\0';
    }
    return **interpreter != '\0';
}

static enum program_verdict check_depth(const char *name, struct program *out, unsigned depth)
{
    if (depth > MAX_SCRIPT_DEPTH)
        return PROGRAM_SCRIPT_DEPTH;
    enum program_verdict v = find(name, out->path);
    if (depth == 0)
        memcpy(out->file, out->path, PATH_MAX);
    if (v != PROGRAM_OK)
        return v;
    int fd = open(out->path, O_RDONLY | O_CLOEXEC);
    char *head = malloc(MAX_HEAD_BYTES + 1);
    if (fd < 0 || head == NULL) {
        if (fd >= 0)
            close(fd);
        free(head);
        return PROGRAM_UNREADABLE;
    }
    ssize_t n = pread(fd, head, MAX_HEAD_BYTES, 0);
    close(fd);
    char *interpreter, *argument;
    head[n < 0 ? 0 : n] = '\0';
    if (n < 0) {
        v = PROGRAM_UNREADABLE;
    } else if (split_script(head, (size_t)n, &interpreter, &argument)) {
        const char *base = strrchr(interpreter, '/');
        out->interpreter = true;
        v = check_depth(interpreter, out, depth + 1);
        /* `#!/usr/bin/env python3`: env is fine, python3 must be, too. */
        if (v == PROGRAM_OK && base != NULL && strcmp(base, "/env") == 0 && argument[0] != '\0' &&
            argument[0] != '-' && strchr(argument, '=') == NULL)
            v = check_depth(argument, out, depth + 1);
    } else {
        v = program_check_elf((const unsigned char *)head, (size_t)n);
    }
    free(head);
    return v;
}

enum program_verdict program_check(const char *name, struct program *out)
{
    *out = (struct program){0};
    return check_depth(name, out, 0);
}
