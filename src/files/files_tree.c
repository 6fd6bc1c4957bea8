/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files_tree.c: see files_tree.h. A row's path has wildcards: %d a device, %u its uverbsN, %n its
 * network interface, %g the index of a GID, %p a counter of the port, %e one of the engine.
 *
 * Formats are those of the kernel's sysfs for a RoCE port (drivers/infiniband/core).
 */
#include "files/files_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/ib_rate.h"

/* What a file says. */
enum content {
    NOTHING, /* a directory */
    CONSTANT,
    NODE_GUID,
    NODE_DESC,
    NETDEV,
    STATE,
    PHYS_STATE,
    RATE,
    GID,
    GID_TYPE,
    GID_NDEV,
    PORT_COUNTER,
    ENGINE_COUNTER,
    IBDEV,
    TO_NETDEV, /* links */
    TO_NETDEV_FILE,
    TO_DEVICE,
};

struct files_row {
    const char *path;
    enum files_kind kind;
    enum content content;
    const char *text;
};

#define IB    "/sys/class/infiniband"
#define DEV   IB "/%d"
#define PORT  DEV "/ports/1"
#define VERBS "/sys/class/infiniband_verbs"
#define MAD   "/sys/class/infiniband_mad"
#define NODES "/dev/infiniband"

/* A directory comes before what is in it. */
static const struct files_row rows[] = {
    {NODES,                       FILES_DIR,  NOTHING,        NULL              },
    {NODES "/rdma_cm",            FILES_CHAR, NOTHING,        NULL              },
    {NODES "/%u",                 FILES_CHAR, NOTHING,        NULL              },
    {IB,                          FILES_DIR,  NOTHING,        NULL              },
    {DEV,                         FILES_DIR,  NOTHING,        NULL              },
    {DEV "/board_id",             FILES_FILE, CONSTANT,       VERBENA_BOARD_ID  },
    {DEV "/fw_ver",               FILES_FILE, CONSTANT,       VERBENA_FW_VERSION},
    {DEV "/hca_type",             FILES_FILE, CONSTANT,       VERBENA_HCA_TYPE  },
    {DEV "/hw_rev",               FILES_FILE, CONSTANT,       "1"               },
    {DEV "/node_type",            FILES_FILE, CONSTANT,       "1: CA"           },
    {DEV "/node_guid",            FILES_FILE, NODE_GUID,      NULL              },
    {DEV "/sys_image_guid",       FILES_FILE, NODE_GUID,      NULL              },
    {DEV "/node_desc",            FILES_FILE, NODE_DESC,      NULL              },
    {DEV "/parent",               FILES_FILE, NETDEV,         NULL              },
    {DEV "/device",               FILES_DIR,  NOTHING,        NULL              },
    {DEV "/device/local_cpulist", FILES_LINK, TO_NETDEV_FILE, "local_cpulist"   },
    {DEV "/device/local_cpus",    FILES_LINK, TO_NETDEV_FILE, "local_cpus"      },
    {DEV "/device/numa_node",     FILES_LINK, TO_NETDEV_FILE, "numa_node"       },
    {DEV "/device/net",           FILES_DIR,  NOTHING,        NULL              },
    {DEV "/device/net/%n",        FILES_LINK, TO_NETDEV,      NULL              },
    {DEV "/ports",                FILES_DIR,  NOTHING,        NULL              },
    {PORT,                        FILES_DIR,  NOTHING,        NULL              },
    {PORT "/cap_mask",            FILES_FILE, CONSTANT,       "0x04010000"      }, /* CM, IP-based GIDs */
    {PORT "/lid",                 FILES_FILE, CONSTANT,       "0x0"             },
    {PORT "/lid_mask_count",      FILES_FILE, CONSTANT,       "0"               },
    {PORT "/link_layer",          FILES_FILE, CONSTANT,       "Ethernet"        },
    {PORT "/phys_state",          FILES_FILE, PHYS_STATE,     NULL              },
    {PORT "/rate",                FILES_FILE, RATE,           NULL              },
    {PORT "/sm_lid",              FILES_FILE, CONSTANT,       "0x0"             },
    {PORT "/sm_sl",               FILES_FILE, CONSTANT,       "0"               },
    {PORT "/state",               FILES_FILE, STATE,          NULL              },
    {PORT "/pkeys",               FILES_DIR,  NOTHING,        NULL              },
    {PORT "/pkeys/0",             FILES_FILE, CONSTANT,       "0xffff"          },
    {PORT "/gids",                FILES_DIR,  NOTHING,        NULL              },
    {PORT "/gids/%g",             FILES_FILE, GID,            NULL              },
    {PORT "/gid_attrs",           FILES_DIR,  NOTHING,        NULL              },
    {PORT "/gid_attrs/ndevs",     FILES_DIR,  NOTHING,        NULL              },
    {PORT "/gid_attrs/ndevs/%g",  FILES_FILE, GID_NDEV,       NULL              },
    {PORT "/gid_attrs/types",     FILES_DIR,  NOTHING,        NULL              },
    {PORT "/gid_attrs/types/%g",  FILES_FILE, GID_TYPE,       NULL              },
    {PORT "/counters",            FILES_DIR,  NOTHING,        NULL              },
    {PORT "/counters/%p",         FILES_FILE, PORT_COUNTER,   NULL              },
    {PORT "/hw_counters",         FILES_DIR,  NOTHING,        NULL              },
    {PORT "/hw_counters/%e",      FILES_FILE, ENGINE_COUNTER, NULL              },
    {VERBS,                       FILES_DIR,  NOTHING,        NULL              },
    {VERBS "/abi_version",        FILES_FILE, CONSTANT,       "6"               },
    {VERBS "/%u",                 FILES_DIR,  NOTHING,        NULL              },
    {VERBS "/%u/abi_version",     FILES_FILE, CONSTANT,       "1"               },
    {VERBS "/%u/dev",             FILES_FILE, CONSTANT,       "1:3"             }, /* /dev/null's */
    {VERBS "/%u/device",          FILES_LINK, TO_DEVICE,      NULL              },
    {VERBS "/%u/ibdev",           FILES_FILE, IBDEV,          NULL              },
    {MAD,                         FILES_DIR,  NOTHING,        NULL              },
    {MAD "/abi_version",          FILES_FILE, CONSTANT,       "5"               },
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]), MAX_SUMMANDS = 2, MAX_COUNTERS = 128 };

/* Counters of the port, by the names of sysfs: sums of the engine's. Payload bytes are counted;
 * the headers' are not. */
static const struct port_counter {
    const char *name;
    const char *of[MAX_SUMMANDS];
    unsigned divisor;
} port_counters[] = {
    {"VL15_dropped",                    {NULL},                                        1},
    {"excessive_buffer_overrun_errors", {NULL},                                        1},
    {"link_downed",                     {NULL},                                        1},
    {"link_error_recovery",             {NULL},                                        1},
    {"local_link_integrity_errors",     {NULL},                                        1},
    {"port_rcv_constraint_errors",      {"rx_drop_pkey"},                              1},
    {"port_rcv_data",                   {"rx_bytes"},                                  4}, /* words of 32 bits */
    {"port_rcv_errors",                 {"rx_icrc_encapsulated", "rx_drop_malformed"}, 1},
    {"port_rcv_packets",                {"rx_packets"},                                1},
    {"port_rcv_remote_physical_errors", {NULL},                                        1},
    {"port_rcv_switch_relay_errors",    {NULL},                                        1},
    {"port_xmit_constraint_errors",     {NULL},                                        1},
    {"port_xmit_data",                  {"tx_bytes"},                                  4},
    {"port_xmit_discards",              {NULL},                                        1},
    {"port_xmit_packets",               {"tx_packets"},                                1},
    {"port_xmit_wait",                  {NULL},                                        1},
    {"symbol_error",                    {NULL},                                        1},
};

enum { PORT_COUNTERS = sizeof(port_counters) / sizeof(port_counters[0]) };

/* What a path said in place of a row's wildcards. */
struct capture {
    char device[FILES_NAME_BYTES];
    char netdev[IF_NAMESIZE];
    unsigned uverbs; /* 0: not there */
    unsigned index;
};

/* Decimal, as the kernel would print it. */
static bool number(const char *word, size_t n, unsigned max, unsigned *out)
{
    unsigned long v = 0;

    if (n == 0 || n > 9 || (word[0] == '0' && n > 1))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (word[i] < '0' || word[i] > '9')
            return false;
        v = v * 10 + (unsigned)(word[i] - '0');
    }
    *out = (unsigned)v;
    return v <= max;
}

static bool same(const char *word, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(word, name, n) == 0;
}

static bool copy(const char *word, size_t n, char *out, size_t size)
{
    if (n >= size)
        return false;
    memcpy(out, word, n);
    out[n] = '\0';
    return true;
}

static const char *port_counter_name(unsigned i)
{
    return i < PORT_COUNTERS ? port_counters[i].name : NULL;
}

static bool counter(const char *(*name)(unsigned), const char *word, size_t n, unsigned *out)
{
    for (unsigned i = 0; name(i) != NULL; i++) {
        *out = i;
        if (same(word, n, name(i)))
            return true;
    }
    return false;
}

/* s: NULL when only the row matters. */
static bool take(const struct files_source *s, char wildcard, const char *word, size_t n,
                 struct capture *c)
{
    switch (wildcard) {
    case 'd':
        return n > 3 && memcmp(word, "vb_", 3) == 0 && copy(word, n, c->device, sizeof(c->device));
    case 'n':
        return copy(word, n, c->netdev, sizeof(c->netdev));
    case 'u':
        return n > 6 && memcmp(word, "uverbs", 6) == 0 &&
               number(word + 6, n - 6, UINT32_MAX, &c->uverbs) && c->uverbs > VERBENA_UVERBS_FIRST;
    case 'g':
        return number(word, n, VERBENA_GID_TABLE_SIZE - 1, &c->index);
    case 'p':
        return counter(port_counter_name, word, n, &c->index);
    default:
        return s != NULL && counter(s->counter_name, word, n, &c->index);
    }
}

static bool matches(const struct files_source *s, const char *pattern, const char *path,
                    struct capture *c)
{
    memset(c, 0, sizeof(*c));
    while (*pattern == '/' && *path == '/') {
        size_t n = strcspn(++path, "/"), m = strcspn(++pattern, "/");
        bool fits = *pattern == '%' ? take(s, pattern[1], path, n, c)
                                    : n == m && memcmp(path, pattern, n) == 0;
        if (!fits)
            return false;
        path += n;
        pattern += m;
    }
    return *pattern == '\0' && *path == '\0';
}

static void netdev_file(const struct verbena_device *d, const char *name, char *out, size_t size)
{
    snprintf(out, size, "/sys/class/net/%.*s/device/%s", IF_NAMESIZE, d->netdev, name);
}

/* Is there this row's file for this device? */
static bool present(const struct files_source *s, const struct files_row *row,
                    const struct verbena_device *d)
{
    char path[FILES_PATH_BYTES];

    if (row->content != TO_NETDEV_FILE)
        return true;
    netdev_file(d, row->text, path, sizeof(path));
    return s->exists(path);
}

static bool is_of(const struct verbena_device *d, const struct capture *c)
{
    if (c->device[0] != '\0' && strcmp(d->name, c->device) != 0)
        return false;
    if (c->netdev[0] != '\0' && strcmp(d->netdev, c->netdev) != 0)
        return false;
    return c->uverbs == 0 || d->ifindex == c->uverbs - VERBENA_UVERBS_FIRST;
}

static bool find_device(const struct files_source *s, const struct files_row *row,
                        const struct capture *c, struct verbena_device *out)
{
    struct verbena_device *d;
    size_t n;
    bool found = false;

    memset(out, 0, sizeof(*out));
    if (c->device[0] == '\0' && c->uverbs == 0)
        return true;
    if (s->devices(&d, &n) != 0)
        return false;
    for (size_t i = 0; i < n && !found; i++) {
        if (is_of(&d[i], c) && present(s, row, &d[i])) {
            *out = d[i];
            found = true;
        }
    }
    free(d);
    return found;
}

bool files_shared(const char *path)
{
    return strcmp(path, IB) == 0 || strcmp(path, VERBS) == 0 || strcmp(path, MAD) == 0 ||
           strcmp(path, NODES) == 0;
}

bool files_may_be_link(const char *path)
{
    struct capture c;

    for (unsigned i = 0; i < ROWS; i++) {
        if (rows[i].kind == FILES_LINK && matches(NULL, rows[i].path, path, &c))
            return true;
    }
    return false;
}

bool files_lookup(const struct files_source *s, const char *path, struct files_node *out)
{
    struct capture c;

    if (strlen(path) >= sizeof(out->path))
        return false;
    for (unsigned i = 0; i < ROWS; i++) {
        if (!matches(s, rows[i].path, path, &c))
            continue;
        out->kind = rows[i].kind;
        out->row = &rows[i];
        out->index = c.index;
        memcpy(out->path, path, strlen(path) + 1);
        return find_device(s, &rows[i], &c, &out->device);
    }
    return false;
}

bool files_counts(const struct files_node *node)
{
    return node->row->content == PORT_COUNTER || node->row->content == ENGINE_COUNTER;
}

static ssize_t read_gid(const struct files_source *s, const struct files_node *node, char *text)
{
    struct verbena_gid *gids = calloc(VERBENA_GID_TABLE_SIZE, sizeof(*gids));
    int err = gids == NULL ? -ENOMEM : s->gids(&node->device, gids);
    struct verbena_gid g = {0};

    if (err >= 0)
        g = gids[node->index];
    free(gids);
    if (err < 0)
        return err;
    if (node->row->content == GID) {
        int at = 0;
        for (unsigned i = 0; i < sizeof(g.addr.b); i += 2)
            at += sprintf(text + at, "%02x%02x%c", g.addr.b[i], g.addr.b[i + 1],
                          i + 2 < sizeof(g.addr.b) ? ':' : '\n');
        return at;
    }
    if (verbena_gid_empty(&g))
        return -EINVAL;
    if (node->row->content == GID_TYPE)
        return sprintf(text, "RoCE v2\n");
    return sprintf(text, "%.*s\n", IF_NAMESIZE, node->device.netdev);
}

static uint64_t counter_sum(const struct files_source *s, const struct port_counter *c,
                            const uint64_t *value)
{
    uint64_t sum = 0;

    for (unsigned k = 0; k < MAX_SUMMANDS && c->of[k] != NULL; k++) {
        unsigned i;
        if (counter(s->counter_name, c->of[k], strlen(c->of[k]), &i) && i < MAX_COUNTERS)
            sum += value[i];
    }
    return sum / c->divisor;
}

static ssize_t read_counter(const struct files_source *s, const struct files_node *node, char *text)
{
    uint64_t value[MAX_COUNTERS] = {0}, v = 0;

    s->counters(&node->device, value, MAX_COUNTERS);
    if (node->row->content == PORT_COUNTER)
        v = counter_sum(s, &port_counters[node->index], value);
    else if (node->index < MAX_COUNTERS)
        v = value[node->index];
    return sprintf(text, "%llu\n", (unsigned long long)v);
}

ssize_t files_read(const struct files_source *s, const struct files_node *node,
                   char text[FILES_TEXT_BYTES])
{
    const struct verbena_device *d = &node->device;
    uint64_t guid = d->node_guid;

    switch (node->row->content) {
    case CONSTANT:
        return sprintf(text, "%s\n", node->row->text);
    case NODE_GUID:
        return sprintf(text, "%04x:%04x:%04x:%04x\n", (unsigned)(guid >> 48 & 0xffff),
                       (unsigned)(guid >> 32 & 0xffff), (unsigned)(guid >> 16 & 0xffff),
                       (unsigned)(guid & 0xffff));
    case NODE_DESC:
        return sprintf(text, "Verbena %s\n", d->name);
    case NETDEV:
        return sprintf(text, "%s\n", d->netdev);
    case IBDEV:
        return sprintf(text, "%s\n", d->name);
    case STATE:
        return sprintf(text, "%s\n", d->up ? "4: ACTIVE" : "1: DOWN");
    case PHYS_STATE:
        return sprintf(text, "%s\n", d->up ? "5: LinkUp" : "3: Disabled");
    case RATE:
        return sprintf(text, "%s\n", ib_rate_of(d->speed_mbps)->text);
    case GID:
    case GID_TYPE:
    case GID_NDEV:
        return read_gid(s, node, text);
    case PORT_COUNTER:
    case ENGINE_COUNTER:
        return read_counter(s, node, text);
    default:
        return -EINVAL;
    }
}

size_t files_target(const struct files_node *node, char target[FILES_TARGET_BYTES])
{
    const struct verbena_device *d = &node->device;
    int n;

    if (node->row->content == TO_NETDEV)
        n = snprintf(target, FILES_TARGET_BYTES, "../../../../net/%s", d->netdev);
    else if (node->row->content == TO_NETDEV_FILE)
        n = snprintf(target, FILES_TARGET_BYTES, "../../../net/%s/device/%s", d->netdev,
                     node->row->text);
    else
        n = snprintf(target, FILES_TARGET_BYTES, "../../infiniband/%s/device", d->name);
    return (size_t)n;
}

/* What files_list is about. */
struct listing {
    const struct files_source *s;
    const struct files_row *row;
    struct capture c;
    const struct verbena_device *device;
    size_t devices;
    bool (*entry)(void *arg, const char *name, enum files_kind kind);
    void *arg;
};

static bool give_numbers(struct listing *l)
{
    for (unsigned i = 0; i < VERBENA_GID_TABLE_SIZE; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%u", i);
        if (!l->entry(l->arg, name, l->row->kind))
            return false;
    }
    return true;
}

static bool give_counters(struct listing *l, const char *(*name)(unsigned))
{
    for (unsigned i = 0; name(i) != NULL; i++) {
        if (!l->entry(l->arg, name(i), l->row->kind))
            return false;
    }
    return true;
}

/* A name for each device that the path allows, or only for the one that it names. */
static bool give_devices(struct listing *l, const char *pattern)
{
    for (size_t i = 0; i < l->devices; i++) {
        const struct verbena_device *d = &l->device[i];
        char name[FILES_NAME_BYTES];
        if (!is_of(d, &l->c) || !present(l->s, l->row, d))
            continue;
        if (strcmp(pattern, "%u") == 0)
            snprintf(name, sizeof(name), "uverbs%u", VERBENA_UVERBS_FIRST + d->ifindex);
        else
            snprintf(name, sizeof(name), "%s",
                     strcmp(pattern, "%d") == 0   ? d->name
                     : strcmp(pattern, "%n") == 0 ? d->netdev
                                                  : pattern);
        if (!l->entry(l->arg, name, l->row->kind))
            return false;
        if (pattern[0] != '%')
            return true;
    }
    return true;
}

static bool give(struct listing *l)
{
    const char *last = strrchr(l->row->path, '/') + 1;

    if (strcmp(last, "%g") == 0)
        return give_numbers(l);
    if (strcmp(last, "%p") == 0)
        return give_counters(l, port_counter_name);
    if (strcmp(last, "%e") == 0)
        return give_counters(l, l->s->counter_name);
    if (last[0] == '%' || l->row->content == TO_NETDEV_FILE)
        return give_devices(l, last);
    return l->entry(l->arg, last, l->row->kind);
}

int files_list(const struct files_source *s, const char *path,
               bool (*entry)(void *arg, const char *name, enum files_kind kind), void *arg)
{
    struct files_node node;
    struct verbena_device *d;
    struct listing l = {.s = s, .entry = entry, .arg = arg};

    if (!files_lookup(s, path, &node))
        return -ENOENT;
    if (node.kind != FILES_DIR)
        return -ENOTDIR;
    int err = s->devices(&d, &l.devices);
    if (err != 0)
        return err;
    l.device = d;
    bool more = true;
    for (unsigned i = 0; i < ROWS && more; i++) {
        char parent[FILES_PATH_BYTES];
        size_t n = (size_t)(strrchr(rows[i].path, '/') - rows[i].path);
        memcpy(parent, rows[i].path, n);
        parent[n] = '\0';
        l.row = &rows[i];
        if (matches(s, parent, path, &l.c))
            more = give(&l);
    }
    free(d);
    return 0;
}
