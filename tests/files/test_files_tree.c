/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_files_tree.c: what each file says, which there are, and which there are not.
 */
#include <errno.h>
#include <stdio.h>

#include "fake_source.h"

#define IB   "/sys/class/infiniband"
#define ETH  IB "/vb_eth0"
#define PORT ETH "/ports/1"

static void look_up__kinds(void **state)
{
    static const struct {
        const char *path;
        enum files_kind kind;
    } row[] = {
        {"/dev/infiniband",                               FILES_DIR },
        {"/dev/infiniband/rdma_cm",                       FILES_CHAR},
        {"/dev/infiniband/uverbs1025",                    FILES_CHAR},
        {"/dev/infiniband/uverbs1027",                    FILES_CHAR},
        {IB,                                              FILES_DIR },
        {ETH,                                             FILES_DIR },
        {IB "/vb_lo/ports/1/gids/255",                    FILES_FILE},
        {PORT "/gid_attrs/types/0",                       FILES_FILE},
        {PORT "/counters/port_xmit_data",                 FILES_FILE},
        {PORT "/hw_counters/rx_packets",                  FILES_FILE},
        {ETH "/device/net/eth0",                          FILES_LINK},
        {ETH "/device/numa_node",                         FILES_LINK},
        {"/sys/class/infiniband_verbs",                   FILES_DIR },
        {"/sys/class/infiniband_verbs/uverbs1025/device", FILES_LINK},
        {"/sys/class/infiniband_mad/abi_version",         FILES_FILE},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct files_node node;
        assert_true(files_lookup(&fake_source, row[i].path, &node));
        assert_int_equal(node.kind, row[i].kind);
        assert_string_equal(node.path, row[i].path);
    }
}

static void look_up__none(void **state)
{
    static const char *const path[] = {
        "",
        "/",
        "/sys/class",
        "/dev/infiniband/uverbs0",
        "/dev/infiniband/uverbs1024",
        "/dev/infiniband/uverbs1026",
        "/dev/infiniband/uverbs01025",
        "/dev/infiniband/uverbs1025x",
        "/dev/infiniband/uverbs99999999999",
        "/dev/infiniband/uverbs",
        "/dev/infiniband/rdma_cm/x",
        IB "x",
        IB "/vb_",
        IB "/vb_eth1",
        IB "/mlx5_0",
        IB "/eth0",
        ETH "/ports/0",
        ETH "/ports/2",
        ETH "/node_typ",
        ETH "/node_type/x",
        PORT "/gids/256",
        PORT "/gids/00",
        PORT "/gids/-1",
        PORT "/gids/",
        PORT "/pkeys/1",
        PORT "/counters/no_such",
        PORT "/hw_counters/port_xmit_data",
        ETH "/device/net/lo",
        IB "/vb_lo/device/numa_node",
        ETH "/device/local_cpus",
        "/sys/class/infiniband_verbs/uverbs1025/other",
    };
    (void)state;
    for (unsigned i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
        struct files_node node;
        assert_false(files_lookup(&fake_source, path[i], &node));
    }
    struct files_node node;
    fake_fail = -ENOMEM;
    assert_false(files_lookup(&fake_source, ETH, &node));
}

static void read__texts(void **state)
{
    static const struct {
        const char *path;
        const char *text;
    } row[] = {
        {ETH "/node_type",                               "1: CA\n"                                  },
        {ETH "/node_guid",                               "0211:2233:4455:6677\n"                    },
        {ETH "/sys_image_guid",                          "0211:2233:4455:6677\n"                    },
        {ETH "/node_desc",                               "Verbena vb_eth0\n"                        },
        {ETH "/fw_ver",                                  VERBENA_FW_VERSION "\n"                    },
        {ETH "/parent",                                  "eth0\n"                                   },
        {PORT "/state",                                  "4: ACTIVE\n"                              },
        {PORT "/phys_state",                             "5: LinkUp\n"                              },
        {PORT "/rate",                                   "25 Gb/sec (1X EDR)\n"                     },
        {PORT "/link_layer",                             "Ethernet\n"                               },
        {PORT "/cap_mask",                               "0x04010000\n"                             },
        {PORT "/lid",                                    "0x0\n"                                    },
        {PORT "/pkeys/0",                                "0xffff\n"                                 },
        {PORT "/gids/0",                                 "fe80:0000:0000:0000:0000:0000:0000:0007\n"},
        {PORT "/gids/1",                                 "0000:0000:0000:0000:0000:0000:0000:0000\n"},
        {PORT "/gids/2",                                 "0000:0000:0000:0000:0000:ffff:0a01:0203\n"},
        {PORT "/gid_attrs/types/2",                      "RoCE v2\n"                                },
        {PORT "/gid_attrs/ndevs/2",                      "eth0\n"                                   },
        {PORT "/counters/port_xmit_data",                "250\n"                                    },
        {PORT "/counters/port_rcv_packets",              "1002\n"                                   },
        {PORT "/counters/port_rcv_errors",               "2009\n"                                   },
        {PORT "/counters/symbol_error",                  "0\n"                                      },
        {PORT "/hw_counters/tx_bytes",                   "1001\n"                                   },
        {IB "/vb_lo/ports/1/hw_counters/tx_bytes",       "0\n"                                      },
        {IB "/vb_lo/ports/1/state",                      "1: DOWN\n"                                },
        {IB "/vb_lo/ports/1/phys_state",                 "3: Disabled\n"                            },
        {IB "/vb_lo/ports/1/rate",                       "10 Gb/sec (1X QDR)\n"                     },
        {"/sys/class/infiniband_verbs/abi_version",      "6\n"                                      },
        {"/sys/class/infiniband_verbs/uverbs1025/ibdev", "vb_lo\n"                                  },
        {"/sys/class/infiniband_verbs/uverbs1025/dev",   "1:3\n"                                    },
    };
    (void)state;
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct files_node node;
        char text[FILES_TEXT_BYTES];
        assert_true(files_lookup(&fake_source, row[i].path, &node));
        ssize_t n = files_read(&fake_source, &node, text);
        assert_int_equal(n, (ssize_t)strlen(row[i].text));
        assert_memory_equal(text, row[i].text, (size_t)n);
    }
}

/* nccl#1573: who reads the type of an entry expects EINVAL when it is empty, and nothing else. */
static void case_111__empty_entries(void **state)
{
    static const struct {
        const char *path;
        int error;
        int fail;
    } row[] = {
        {PORT "/gid_attrs/types/1",             -EINVAL, 0      },
        {PORT "/gid_attrs/ndevs/1",             -EINVAL, 0      },
        {PORT "/gid_attrs/types/255",           -EINVAL, 0      },
        {IB "/vb_lo/ports/1/gid_attrs/types/0", -EINVAL, 0      },
        {PORT "/gid_attrs/types/0",             -ENOMEM, -ENOMEM},
        {PORT "/gids/0",                        -EMFILE, -EMFILE},
        {PORT,                                  -EINVAL, 0      }, /* no file */
    };
    (void)state;
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct files_node node;
        char text[FILES_TEXT_BYTES];
        assert_true(files_lookup(&fake_source, row[i].path, &node));
        fake_fail = row[i].fail;
        assert_int_equal(files_read(&fake_source, &node, text), row[i].error);
    }
}

static void target__of_each_link(void **state)
{
    static const struct {
        const char *path;
        const char *target;
    } row[] = {
        {ETH "/device/net/eth0",                          "../../../../net/eth0"              },
        {IB "/vb_lo/device/net/lo",                       "../../../../net/lo"                },
        {ETH "/device/numa_node",                         "../../../net/eth0/device/numa_node"},
        {"/sys/class/infiniband_verbs/uverbs1027/device", "../../infiniband/vb_eth0/device"   },
    };
    (void)state;
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct files_node node;
        char target[FILES_TARGET_BYTES];
        assert_true(files_may_be_link(row[i].path));
        assert_true(files_lookup(&fake_source, row[i].path, &node));
        assert_int_equal(files_target(&node, target), strlen(row[i].target));
        assert_string_equal(target, row[i].target);
    }
    static const char *const none[] = {
        "", IB, ETH, ETH "/device", ETH "/device/net", PORT "/gids/0"};
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_false(files_may_be_link(none[i]));
}

static void shared__directories(void **state)
{
    static const char *const yes[] = {IB, "/dev/infiniband", "/sys/class/infiniband_verbs",
                                      "/sys/class/infiniband_mad"};
    static const char *const no[] = {"", "/", "/dev", "/sys/class", ETH, PORT "/gids"};
    (void)state;
    for (unsigned i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
        assert_true(files_shared(yes[i]));
    for (unsigned i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        assert_false(files_shared(no[i]));
}

struct names {
    char text[4096];
    unsigned n, stop_at;
};

static bool add(void *arg, const char *name, enum files_kind kind)
{
    struct names *l = arg;
    snprintf(l->text + strlen(l->text), sizeof(l->text) - strlen(l->text), "%s%c ", name,
             "/ @%"[kind]);
    return ++l->n != l->stop_at;
}

static void list__directories(void **state)
{
    static const struct {
        const char *path;
        const char *names;
    } row[] = {
        {IB,                                       "vb_eth0/ vb_lo/ "                                 },
        {"/dev/infiniband",                        "rdma_cm% uverbs1027% uverbs1025% "                },
        {"/sys/class/infiniband_verbs",            "abi_version  uverbs1027/ uverbs1025/ "            },
        {"/sys/class/infiniband_verbs/uverbs1025", "abi_version  dev  device@ ibdev  "                },
        {ETH "/device",                            "numa_node@ net/ "                                 },
        {IB "/vb_lo/device",                       "net/ "                                            },
        {ETH "/device/net",                        "eth0@ "                                           },
        {ETH "/ports",                             "1/ "                                              },
        {PORT "/gid_attrs",                        "ndevs/ types/ "                                   },
        {PORT "/hw_counters",                      "tx_packets  tx_bytes  rx_packets  rx_bytes  "
                              "rx_icrc_encapsulated  rx_drop_malformed  "},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct names l = {0};
        assert_int_equal(files_list(&fake_source, row[i].path, add, &l), 0);
        assert_string_equal(l.text, row[i].names);
    }
    struct names l = {0};
    assert_int_equal(files_list(&fake_source, PORT "/gids", add, &l), 0);
    assert_int_equal(l.n, VERBENA_GID_TABLE_SIZE);
    l = (struct names){.stop_at = 3};
    assert_int_equal(files_list(&fake_source, PORT "/gids", add, &l), 0);
    assert_int_equal(l.n, 3);
}

/* What a listing names can be looked up as what it says it is; the whole tree. */
static bool walk(void *arg, const char *name, enum files_kind kind)
{
    const char *at = arg;
    struct files_node node;
    char path[FILES_PATH_BYTES];
    snprintf(path, sizeof(path), "%s/%s", at, name);
    assert_true(files_lookup(&fake_source, path, &node));
    assert_int_equal(node.kind, kind);
    if (kind == FILES_DIR)
        assert_int_equal(files_list(&fake_source, path, walk, path), 0);
    return true;
}

static void list__agrees_with_look_up(void **state)
{
    static char root[][64] = {IB, "/dev/infiniband", "/sys/class/infiniband_verbs",
                              "/sys/class/infiniband_mad"};
    (void)state;
    for (unsigned i = 0; i < sizeof(root) / sizeof(root[0]); i++)
        assert_int_equal(files_list(&fake_source, root[i], walk, root[i]), 0);
}

static void list__refused(void **state)
{
    static const struct {
        const char *path;
        int error;
    } row[] = {
        {"/sys/class",           -ENOENT },
        {IB "/mlx5_0",           -ENOENT },
        {PORT "/gids/0",         -ENOTDIR},
        {ETH "/device/net/eth0", -ENOTDIR},
    };
    struct names l = {0};
    (void)state;
    for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        assert_int_equal(files_list(&fake_source, row[i].path, add, &l), row[i].error);
    fake_fail = -EMFILE;
    assert_int_equal(files_list(&fake_source, IB, add, &l), -EMFILE);
    assert_int_equal(l.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(look_up__kinds),       cmocka_unit_test(look_up__none),
        cmocka_unit_test(read__texts),          cmocka_unit_test(case_111__empty_entries),
        cmocka_unit_test(target__of_each_link), cmocka_unit_test(shared__directories),
        cmocka_unit_test(list__directories),    cmocka_unit_test(list__agrees_with_look_up),
        cmocka_unit_test(list__refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
