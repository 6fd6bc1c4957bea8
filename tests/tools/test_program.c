/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_program.c: ELF headers made here, good and bad; and files made in a folder of the test's
 * own, found and judged.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../skips.h"
#include "program.h"

#define GLIBC "/lib64/ld-linux-x86-64.so.2"

enum { ELF_BYTES = 512, INTERPRETER_AT = 256 };

struct elf {
    Elf64_Ehdr header;
    Elf64_Phdr segment[2];
};
_Static_assert(sizeof(struct elf) < INTERPRETER_AT, "the interpreter's name is behind it");

/* A dynamically linked program; the interpreter is the second segment. */
static void make_elf(unsigned char out[ELF_BYTES], const char *interpreter)
{
    struct elf e = {0};
    e.header.e_type = ET_DYN;
    e.header.e_machine = EM_X86_64;
    e.header.e_phoff = offsetof(struct elf, segment);
    e.header.e_phentsize = sizeof(Elf64_Phdr);
    e.header.e_phnum = 2;
    e.segment[0].p_type = PT_LOAD;
    e.segment[1].p_type = PT_INTERP;
    e.segment[1].p_offset = INTERPRETER_AT;
    e.segment[1].p_filesz = strlen(interpreter) + 1;
    memcpy(e.header.e_ident, ELFMAG, SELFMAG);
    e.header.e_ident[EI_CLASS] = ELFCLASS64;
    e.header.e_ident[EI_DATA] = ELFDATA2LSB;
    memset(out, 0, ELF_BYTES);
    memcpy(out, &e, sizeof(e));
    memcpy(out + INTERPRETER_AT, interpreter, strlen(interpreter) + 1);
}

/* Places in the file: of the header, of the segment that names the interpreter. */
#define H(field) offsetof(Elf64_Ehdr, field)
#define S(field) (offsetof(struct elf, segment[1]) + offsetof(Elf64_Phdr, field))

/* One change to a good file. */
static const struct elf_row {
    const char *name;
    size_t at;
    unsigned bytes;
    uint64_t value;
    size_t n; /* of the file; 0: all */
    enum program_verdict want;
} elf_rows[] = {
    {"unchanged",                0,              0, 0,              0,   PROGRAM_OK           },
    {"not_position_independent", H(e_type),      2, ET_EXEC,        0,   PROGRAM_OK           },
    {"magic",                    0,              1, 'X',            0,   PROGRAM_NOT_PROGRAM  },
    {"one_byte",                 0,              0, 0,              1,   PROGRAM_NOT_PROGRAM  },
    {"ends_in_ident",            0,              0, 0,              15,  PROGRAM_NOT_PROGRAM  },
    {"ends_in_header",           0,              0, 0,              63,  PROGRAM_NOT_PROGRAM  },
    {"ends_in_segments",         0,              0, 0,              124, PROGRAM_NOT_PROGRAM  },
    {"ends_in_interpreter",      0,              0, 0,              260, PROGRAM_NOT_PROGRAM  },
    {"32_bit",                   EI_CLASS,       1, ELFCLASS32,     0,   PROGRAM_32_BIT       },
    {"no_class",                 EI_CLASS,       1, 9,              0,   PROGRAM_NOT_PROGRAM  },
    {"big_endian",               EI_DATA,        1, ELFDATA2MSB,    0,   PROGRAM_OTHER_MACHINE},
    {"arm",                      H(e_machine),   2, EM_AARCH64,     0,   PROGRAM_OTHER_MACHINE},
    {"object_file",              H(e_type),      2, ET_REL,         0,   PROGRAM_NOT_PROGRAM  },
    {"core_file",                H(e_type),      2, ET_CORE,        0,   PROGRAM_NOT_PROGRAM  },
    {"static",                   S(p_type),      4, PT_NOTE,        0,   PROGRAM_STATIC       },
    {"no_segments",              H(e_phnum),     2, 0,              0,   PROGRAM_STATIC       },
    {"segments_behind_end",      H(e_phoff),     8, 100000,         0,   PROGRAM_NOT_PROGRAM  },
    {"segments_far_behind",      H(e_phoff),     8, UINT64_MAX,     0,   PROGRAM_NOT_PROGRAM  },
    {"segment_size",             H(e_phentsize), 2, 32,             0,   PROGRAM_NOT_PROGRAM  },
    {"interpreter_behind_end",   S(p_offset),    8, ELF_BYTES,      0,   PROGRAM_NOT_PROGRAM  },
    {"interpreter_wraps",        S(p_offset),    8, UINT64_MAX - 3, 0,   PROGRAM_NOT_PROGRAM  },
    {"interpreter_too_long",     S(p_filesz),    8, 257,            0,   PROGRAM_NOT_PROGRAM  },
    {"interpreter_empty",        S(p_filesz),    8, 0,              0,   PROGRAM_NOT_PROGRAM  },
    {"interpreter_without_end",  S(p_filesz),    8, 8,              0,   PROGRAM_NOT_PROGRAM  },
};

static void program_check_elf__rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(elf_rows) / sizeof(elf_rows[0]); i++) {
        const struct elf_row *r = &elf_rows[i];
        unsigned char whole[ELF_BYTES];
        make_elf(whole, GLIBC);
        memcpy(whole + r->at, &r->value, r->bytes);
        /* Exactly as long as it is said to be, so that the sanitizer sees a read behind it. */
        size_t n = r->n != 0 ? r->n : ELF_BYTES;
        unsigned char *bytes = malloc(n);
        memcpy(bytes, whole, n);
        enum program_verdict got = program_check_elf(bytes, n);
        if (got != r->want)
            fail_msg("%s: %s", r->name, program_reason(got));
        free(bytes);
    }
}

static void program_check_elf__interpreters(void **state)
{
    static const struct {
        const char *path;
        enum program_verdict want;
    } rows[] = {
        {GLIBC,                                                PROGRAM_OK        },
        {"/nix/store/abc-glibc-2.40/lib/ld-linux-x86-64.so.2", PROGRAM_OK        },
        {"ld-linux-x86-64.so.2",                               PROGRAM_OK        },
        {"/lib/ld-musl-x86_64.so.1",                           PROGRAM_OTHER_LIBC},
        {"/system/bin/linker64",                               PROGRAM_OTHER_LIBC},
        {"/lib64/ld-linux-x86-64.so.2.old",                    PROGRAM_OTHER_LIBC},
        {"/lib/",                                              PROGRAM_OTHER_LIBC},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned char bytes[ELF_BYTES];
        make_elf(bytes, rows[i].path);
        assert_int_equal(program_check_elf(bytes, sizeof(bytes)), rows[i].want);
    }
}

/* --- Files. --- */

static char folder[] = "/tmp/verbena-test-program-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[4][PATH_MAX];
    static unsigned next;
    char *out = path[next++ % 4];
    snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return out;
}

static void write_file(const char *name, const void *bytes, size_t n, mode_t mode)
{
    const char *path = in_folder(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    close(fd);
    assert_int_equal(chmod(path, mode), 0);
}

static void write_script(const char *name, const char *interpreter)
{
    char text[PATH_MAX + 16];
    int n = snprintf(text, sizeof(text), "#!%s\n", interpreter);
    write_file(name, text, (size_t)n, 0755);
}

static int make_folder(void **state)
{
    unsigned char good[ELF_BYTES], fixed[ELF_BYTES];
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    make_elf(good, GLIBC);
    make_elf(fixed, GLIBC);
    ((struct elf *)(void *)fixed)->segment[1].p_type = PT_NULL;
    write_file("good", good, sizeof(good), 0755);
    write_file("static", fixed, sizeof(fixed), 0755);
    write_file("plain", good, sizeof(good), 0644);
    write_file("text", "hello\n", 6, 0755);
    write_file("nothing", "", 0, 0755);
    mkdir(in_folder("directory"), 0755);
    write_script("script", in_folder("good"));
    write_script("script_spaces", " \t/usr/bin/env  sh -x");
    write_script("script_static", in_folder("static"));
    write_script("script_absent", "/does/not/exist");
    write_script("script_empty", "");
    write_script("script_env", "/usr/bin/env static");
    write_script("script_env_absent", "/usr/bin/env no-such-program-anywhere");
    write_script("script_script", in_folder("script"));
    write_script("script_loop", in_folder("script_loop"));
    return 0;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"good",          "static",        "plain",
                                        "text",          "nothing",       "script",
                                        "script_spaces", "script_static", "script_absent",
                                        "script_empty",  "script_env",    "script_env_absent",
                                        "script_script", "script_loop",   "setuid"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(in_folder(names[i]));
    rmdir(in_folder("directory"));
    return rmdir(folder);
}

static const struct file_row {
    const char *name;
    enum program_verdict want;
    bool interpreter;
} file_rows[] = {
    {"good",              PROGRAM_OK,             false},
    {"script",            PROGRAM_OK,             true },
    {"script_spaces",     PROGRAM_OK,             true },
    {"script_script",     PROGRAM_OK,             true },
    {"static",            PROGRAM_STATIC,         false},
    {"absent",            PROGRAM_NOT_FOUND,      false},
    {"good/below",        PROGRAM_NOT_FOUND,      false},
    {"directory",         PROGRAM_IS_DIRECTORY,   false},
    {"plain",             PROGRAM_NOT_EXECUTABLE, false},
    {"text",              PROGRAM_NOT_PROGRAM,    false},
    {"nothing",           PROGRAM_NOT_PROGRAM,    false},
    {"script_static",     PROGRAM_STATIC,         true },
    {"script_absent",     PROGRAM_NOT_FOUND,      true },
    {"script_empty",      PROGRAM_NOT_PROGRAM,    false},
    {"script_env",        PROGRAM_STATIC,         true },
    {"script_env_absent", PROGRAM_NOT_FOUND,      true },
    {"script_loop",       PROGRAM_SCRIPT_DEPTH,   true },
};

static void program_check__files(void **state)
{
    (void)state;
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s:/usr/bin:/bin", folder);
    setenv("PATH", path, 1);
    for (size_t i = 0; i < sizeof(file_rows) / sizeof(file_rows[0]); i++) {
        const struct file_row *r = &file_rows[i];
        struct program p;
        enum program_verdict got = program_check(in_folder(r->name), &p);
        if (got != r->want || p.interpreter != r->interpreter)
            fail_msg("%s: %s %s", r->name, p.path, program_reason(got));
        assert_string_equal(p.file, in_folder(r->name));
    }
}

static void program_check__path(void **state)
{
    char path[3 * PATH_MAX];
    struct program p;
    (void)state;
    snprintf(path, sizeof(path), "/does/not/exist:%s:/usr/bin:/bin", folder);
    setenv("PATH", path, 1);
    assert_int_equal(program_check("good", &p), PROGRAM_OK);
    assert_string_equal(p.file, in_folder("good"));
    assert_int_equal(program_check("sh", &p), PROGRAM_OK);
    assert_int_equal(program_check("plain", &p), PROGRAM_NOT_EXECUTABLE);
    assert_int_equal(program_check("directory", &p), PROGRAM_NOT_FOUND);
    assert_int_equal(program_check("no-such-program-anywhere", &p), PROGRAM_NOT_FOUND);
    assert_int_equal(program_check("", &p), PROGRAM_NOT_FOUND);
    /* An empty part means the current folder; one that cannot run is passed over for one that
     * can. */
    assert_int_equal(chdir(folder), 0);
    setenv("PATH", ":/usr/bin", 1);
    assert_int_equal(program_check("good", &p), PROGRAM_OK);
    assert_string_equal(p.file, "./good");
    setenv("PATH", "/usr/bin", 1);
    assert_int_equal(program_check("good", &p), PROGRAM_NOT_FOUND);
    unsetenv("PATH");
    assert_int_equal(program_check("sh", &p), PROGRAM_OK);
    assert_int_equal(chdir("/"), 0);
}

/* Another user's setuid or setgid file; setting the bits of our own changes nothing. */
static void program_check__setuid(void **state)
{
    enum { OTHER = 65534 };
    unsigned char good[ELF_BYTES];
    struct program p;
    (void)state;
    make_elf(good, GLIBC);
    write_file("setuid", good, sizeof(good), 04755);
    assert_int_equal(program_check(in_folder("setuid"), &p), PROGRAM_OK);
    if (chown(in_folder("setuid"), OTHER, (gid_t)-1) != 0)
        SKIP_TEST("not root: cannot give files away");
    chmod(in_folder("setuid"), 04755);
    assert_int_equal(program_check(in_folder("setuid"), &p), PROGRAM_SETUID);
    chmod(in_folder("setuid"), 0755);
    assert_int_equal(program_check(in_folder("setuid"), &p), PROGRAM_OK);
    assert_int_equal(chown(in_folder("setuid"), OTHER, OTHER), 0);
    chmod(in_folder("setuid"), 02755);
    assert_int_equal(program_check(in_folder("setuid"), &p), PROGRAM_SETGID);
    /* Without group execution the bit means mandatory locking, not privilege. */
    chmod(in_folder("setuid"), 02705);
    assert_int_equal(program_check(in_folder("setuid"), &p), PROGRAM_OK);
}

static void program_reason__each(void **state)
{
    (void)state;
    for (int v = 0; v < PROGRAM_VERDICT_COUNT; v++)
        assert_non_null(program_reason((enum program_verdict)v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_check_elf__rows),
        cmocka_unit_test(program_check_elf__interpreters),
        cmocka_unit_test(program_check__files),
        cmocka_unit_test(program_check__path),
        cmocka_unit_test(program_check__setuid),
        cmocka_unit_test(program_reason__each),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
