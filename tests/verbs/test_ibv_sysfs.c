/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ibv_sysfs.c: paths and small files.
 */
#include "fake_host.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int ibv_read_ibdev_sysfs_file(char *buf, size_t size, void *sysfs_dev, const char *format, ...);

static void path__from_the_environment(void **state)
{
    (void)state;
    unsetenv("SYSFS_PATH");
    assert_string_equal(ibv_get_sysfs_path(), "/sys");
    setenv("SYSFS_PATH", "", 1);
    assert_string_equal(ibv_get_sysfs_path(), "/sys");
    setenv("SYSFS_PATH", "/elsewhere", 1);
    assert_string_equal(ibv_get_sysfs_path(), "/elsewhere");
    unsetenv("SYSFS_PATH");
}

static void read__ours(void **state)
{
    (void)state;
    char buf[64];
    const char *dir = "/sys/class/infiniband/vb_eth0";

    assert_int_equal(ibv_read_sysfs_file(dir, "board_id", buf, sizeof(buf)), 7);
    assert_string_equal(buf, "VERBENA");
    memset(buf, '#', sizeof(buf));
    assert_int_equal(ibv_read_sysfs_file(dir, "board_id", buf, 3), 3);
    assert_memory_equal(buf, "VER#", 4);
    assert_int_equal(ibv_read_sysfs_file(dir, "no_such_file", buf, sizeof(buf)), -1);
    assert_int_equal(ibv_read_sysfs_file("/sys/class/infiniband/mlx5_0", "board_id", buf, 64), -1);
    assert_int_equal(ibv_read_sysfs_file("vb_eth0", "board_id", buf, 64), -1);
}

static void read__real_files(void **state)
{
    (void)state;
    char dir[] = "/tmp/test_sysfs.XXXXXX", path[64], buf[8];

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/f", dir);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "abc\n", 4), 4);
    close(fd);
    assert_int_equal(ibv_read_sysfs_file(dir, "f", buf, sizeof(buf)), 3);
    assert_string_equal(buf, "abc");
    assert_int_equal(ibv_read_sysfs_file(dir, "g", buf, sizeof(buf)), -1);
    assert_int_equal(errno, ENOENT);
    unlink(path);
    rmdir(dir);
    char longer[600];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(ibv_read_sysfs_file(longer, "f", buf, sizeof(buf)), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    assert_int_equal(ibv_read_ibdev_sysfs_file(buf, sizeof(buf), NULL, "x"), -1);
}

static int reset(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(path__from_the_environment, reset),
        cmocka_unit_test_setup(read__ours, reset),
        cmocka_unit_test_setup(read__real_files, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
