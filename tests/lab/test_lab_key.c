/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lab_key.c: key files that are taken and that are not.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lab/lab_control.h"

static char folder[] = "/tmp/test-lab-key-XXXXXX";
static char file[64];
static char message[LAB_MESSAGE_BYTES];

static int setup(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(file, sizeof(file), "%s/key", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(folder);
}

static void put(const char *text, size_t n, mode_t mode)
{
    unlink(file);
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, n), n);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void lab_key_read__same_file_same_key(void **state)
{
    (void)state;
    uint8_t a[LAB_KEY_BYTES], b[LAB_KEY_BYTES];
    unlink(file);
    assert_int_equal(lab_key_make(file, message), 0);
    assert_int_equal(lab_key_read(file, a, message), 0);
    assert_int_equal(lab_key_read(file, b, message), 0);
    assert_memory_equal(a, b, sizeof(a));
    assert_int_equal(lab_key_make(file, message), -EEXIST);
    unlink(file);
    assert_int_equal(lab_key_make(file, message), 0);
    assert_int_equal(lab_key_read(file, b, message), 0);
    assert_memory_not_equal(a, b, sizeof(a));
}

/* An editor's end of line is none of the key; everything else is. */
static void lab_key_read__own_text(void **state)
{
    (void)state;
    uint8_t a[LAB_KEY_BYTES], b[LAB_KEY_BYTES];
    put("correct horse battery", 21, 0600);
    assert_int_equal(lab_key_read(file, a, message), 0);
    put("correct horse battery\r\n", 23, 0400);
    assert_int_equal(lab_key_read(file, b, message), 0);
    assert_memory_equal(a, b, sizeof(a));
    put("correct horse batterz", 21, 0600);
    assert_int_equal(lab_key_read(file, b, message), 0);
    assert_memory_not_equal(a, b, sizeof(a));
}

static void lab_key_read__invalid(void **state)
{
    (void)state;
    static char large[4097];
    uint8_t key[LAB_KEY_BYTES];
    memset(large, 'k', sizeof(large));
    static const struct {
        const char *text;
        size_t n;
        mode_t mode;
        int error;
        const char *says;
    } rows[] = {
        {"",                                     0,             0600, -EINVAL, "fewer than 16 bytes"},
        {"0123456789abcde\n",                    16,            0600, -EINVAL, "fewer than 16 bytes"},
        {"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", 18,            0600, -EINVAL, "fewer than 16 bytes"},
        {large,                                  sizeof(large), 0600, -EINVAL, "too long"           },
        {"0123456789abcdef",                     16,            0640, -EACCES, "chmod 600"          },
        {"0123456789abcdef",                     16,            0604, -EACCES, "chmod 600"          },
        {"0123456789abcdef",                     16,            0620, -EACCES, "chmod 600"          },
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        put(rows[i].text, rows[i].n, rows[i].mode);
        assert_int_equal(lab_key_read(file, key, message), rows[i].error);
        if (strstr(message, rows[i].says) == NULL || strstr(message, file) == NULL)
            fail_msg("%u: %s", i, message);
    }
    assert_int_equal(lab_key_read(folder, key, message), -EINVAL);
    assert_non_null(strstr(message, "is no file"));
    unlink(file);
    assert_int_equal(lab_key_read(file, key, message), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lab_key_read__same_file_same_key),
        cmocka_unit_test(lab_key_read__own_text),
        cmocka_unit_test(lab_key_read__invalid),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
