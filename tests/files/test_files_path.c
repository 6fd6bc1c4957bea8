/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_files_path.c: paths as programs write them.
 */
#include <errno.h>
#include <stdio.h>

#include "fake_source.h"
#include "files/files_path.h"

#define IB  "/sys/class/infiniband"
#define ETH IB "/vb_eth0"

static void ours__by_beginning(void **state)
{
    static const char *const yes[] = {
        IB,          IB "/",    "//sys///class//infiniband/x", "/dev/infiniband",
        IB "_verbs", IB "_mad", "/dev//infiniband/uverbs0",    IB "/../net",
    };
    static const char *const no[] = {
        "",
        "/",
        "/sys",
        "/sys/class",
        "/dev",
        "/devices",
        "/dev/null",
        IB "x",
        "/sys/class/net",
        "/sys/class/infinib",
        "sys/class/infiniband",
        "/dev/infinibands",
        "/sy",
        "/sysclass/infiniband",
    };
    (void)state;
    for (unsigned i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
        assert_true(files_path_ours(yes[i]));
    for (unsigned i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        assert_false(files_path_ours(no[i]));
}

static void base__of_relative_paths(void **state)
{
    static const struct {
        const char *path;
        const char *base; /* "": none */
    } row[] = {
        {"sys/class/infiniband",   "/"         },
        {"dev/infiniband/rdma_cm", "/"         },
        {"class/infiniband_verbs", "/sys"      },
        {"infiniband/vb_lo",       "/sys/class"},
        {"infiniband_mad",         "/sys/class"},
        {"",                       ""          },
        {"infinibands",            ""          },
        {"class",                  ""          },
        {"class/net",              ""          },
        {"sys/class",              ""          },
        {"dev/null",               ""          },
        {"./infiniband",           ""          },
        {"vb_lo",                  ""          },
    };
    (void)state;
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        const char *base = files_path_base(row[i].path);
        assert_string_equal(base == NULL ? "" : base, row[i].base);
    }
}

static void parent__of_ours(void **state)
{
    static const struct {
        const char *path;
        const char *parent;
    } row[] = {
        {"/sys/class",     "/sys/class"},
        {"//sys//class//", "/sys/class"},
        {"/dev",           "/dev"      },
        {"/dev/",          "/dev"      },
        {"",               ""          },
        {"/",              ""          },
        {"/sys",           ""          },
        {"/sys/class/net", ""          },
        {"/sys/classes",   ""          },
        {"/devices",       ""          },
        {"/dev/shm",       ""          },
        {"dev",            ""          },
    };
    (void)state;
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        const char *parent = files_path_parent(row[i].path);
        assert_string_equal(parent == NULL ? "" : parent, row[i].parent);
    }
    assert_null(files_path_parent(NULL));
}

struct row {
    const char *base;
    const char *path;
    bool follow;
    enum files_verdict verdict;
    const char *found; /* where ours is, or the system's path */
    int error;
};

static void check(const struct row *row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct files_found f;
        enum files_verdict v =
            files_resolve(&fake_source, row[i].base, row[i].path, row[i].follow, &f);
        assert_int_equal(v, row[i].verdict);
        assert_int_equal(f.verdict, row[i].verdict);
        if (v == FILES_ERROR)
            assert_int_equal(f.error, row[i].error);
        else
            assert_string_equal(v == FILES_OURS ? f.node.path : f.path, row[i].found);
    }
}

static void resolve__ours(void **state)
{
    static const struct row row[] = {
        {"/",          IB,                                true,  FILES_OURS, IB,                     0},
        {"/",          "//sys/class//infiniband/",        true,  FILES_OURS, IB,                     0},
        {"/",          IB "/./vb_eth0/ports/..//fw_ver",  true,  FILES_OURS, ETH "/fw_ver",          0},
        {"/",          IB "/../infiniband/vb_eth0",       true,  FILES_OURS, ETH,                    0},
        {"/",          ETH "/../../infiniband_mad/",      true,  FILES_OURS, IB "_mad",              0},
        {"/",          "sys/class/infiniband",            true,  FILES_OURS, IB,                     0},
        {"/sys/class", "infiniband/vb_eth0/.",            true,  FILES_OURS, ETH,                    0},
        {ETH,          "node_type",                       true,  FILES_OURS, ETH "/node_type",       0},
        {ETH "/ports", "../fw_ver",                       true,  FILES_OURS, ETH "/fw_ver",          0},
        {ETH,          ".",                               true,  FILES_OURS, ETH,                    0},
        {ETH,          IB,                                true,  FILES_OURS, IB,                     0},
        {"/",          ETH "/device/net/eth0",            false, FILES_OURS, ETH "/device/net/eth0", 0},
        {"/",          IB "_verbs/uverbs1027/device",     true,  FILES_OURS, ETH "/device",          0},
        {"/",          IB "_verbs/uverbs1027/device/",    false, FILES_OURS, ETH "/device",          0},
        {"/",          IB "_verbs/uverbs1027/device/net", false, FILES_OURS, ETH "/device/net",      0},
        {"/",          IB "_verbs/uverbs1027/device/..",  false, FILES_OURS, ETH,                    0},
    };
    (void)state;
    check(row, sizeof(row) / sizeof(row[0]));
}

/* The system's: left to the system as far as we have not walked it. */
static void resolve__elsewhere(void **state)
{
    static const struct row row[] = {
        {"/", IB "/mlx5_0",                   true, FILES_ELSEWHERE, IB "/mlx5_0",                  0},
        {"/", IB "/mlx5_0/../x",              true, FILES_ELSEWHERE, IB "/mlx5_0/../x",             0},
        {"/", IB "/vb_none/ports",            true, FILES_ELSEWHERE, IB "/vb_none/ports",           0},
        {"/", "/dev/infiniband/uverbs0",      true, FILES_ELSEWHERE, "/dev/infiniband/uverbs0",     0},
        {"/", IB "/mlx5_0/",                  true, FILES_ELSEWHERE, IB "/mlx5_0/.",                0},
        {IB,  "mlx5_0/node_type",             true, FILES_ELSEWHERE, IB "/mlx5_0/node_type",        0},
        {"/", IB "/..",                       true, FILES_ELSEWHERE, "/sys/class",                  0},
        {"/", IB "/../../..",                 true, FILES_ELSEWHERE, "/",                           0},
        {"/", IB "/../../../../etc/passwd",   true, FILES_ELSEWHERE, "/etc/passwd",                 0},
        {ETH, "../../net/eth0/../lo",         true, FILES_ELSEWHERE, "/sys/class/net/eth0/../lo",   0},
        {"/", ETH "/device/net/eth0",         true, FILES_ELSEWHERE, "/sys/class/net/eth0",         0},
        {"/", ETH "/device/net/eth0/address", true, FILES_ELSEWHERE, "/sys/class/net/eth0/address",
         0                                                                                           },
        {"/", ETH "/device/net/eth0/../x",    true, FILES_ELSEWHERE, "/sys/class/net/eth0/../x",    0},
        {"/", ETH "/device/numa_node",        true, FILES_ELSEWHERE,
         "/sys/class/net/eth0/device/numa_node",                                                    0},
    };
    (void)state;
    check(row, sizeof(row) / sizeof(row[0]));
}

static void resolve__refused(void **state)
{
    static const struct row row[] = {
        {"/", ETH "/no_such",             true,  FILES_ERROR, NULL, ENOENT },
        {"/", ETH "/no_such/x",           true,  FILES_ERROR, NULL, ENOENT },
        {"/", ETH "/ports/2/state",       true,  FILES_ERROR, NULL, ENOENT },
        {"/", ETH "/fw_ver/",             true,  FILES_ERROR, NULL, ENOTDIR},
        {"/", ETH "/fw_ver/x",            true,  FILES_ERROR, NULL, ENOTDIR},
        {"/", ETH "/fw_ver/..",           true,  FILES_ERROR, NULL, ENOTDIR},
        {"/", ETH "/fw_ver/.",            true,  FILES_ERROR, NULL, ENOTDIR},
        {"/", "/dev/infiniband/rdma_cm/", true,  FILES_ERROR, NULL, ENOTDIR},
        {ETH, "no_such",                  false, FILES_ERROR, NULL, ENOENT },
        {"/", ETH "/device/local_cpus",   true,  FILES_ERROR, NULL, ENOENT },
        {"/", ETH "/device/net/lo/x",     true,  FILES_ERROR, NULL, ENOENT },
    };
    static char longest[PATH_MAX + 64];
    struct files_found f;
    (void)state;
    check(row, sizeof(row) / sizeof(row[0]));
    memset(longest, '/', sizeof(longest) - 1);
    assert_int_equal(files_resolve(&fake_source, "/", longest, true, &f), FILES_ERROR);
    assert_int_equal(f.error, ENAMETOOLONG);
    /* Just short enough by itself, but not behind its base. */
    memset(longest, 'x', sizeof(longest) - 1);
    longest[PATH_MAX - 3] = '\0';
    assert_int_equal(files_resolve(&fake_source, ETH, longest, true, &f), FILES_ERROR);
    assert_int_equal(f.error, ENAMETOOLONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ours__by_beginning), cmocka_unit_test(base__of_relative_paths),
        cmocka_unit_test(parent__of_ours),    cmocka_unit_test(resolve__ours),
        cmocka_unit_test(resolve__elsewhere), cmocka_unit_test(resolve__refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
