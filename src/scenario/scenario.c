/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario.c: a scenario as it grows, the profile of the simulator whose files can be imported, and
 * checks of the whole.
 */
#include "scenario/scenario.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "scenario/quantity.h"

enum { WARN_FLOWS = 4096 };

void scenario_init(struct scenario *s)
{
    memset(s, 0, sizeof(*s));
    fabric_defaults(&s->config);
    s->config.seed = 1;
}

void scenario_free(struct scenario *s)
{
    free(s->title);
    free(s->text);
    free(s->cc);
    free(s->is_switch);
    free(s->link);
    free(s->flow);
    free(s->mapping);
    free(s->fault);
    free(s->name);
    free(s->node_line);
    free(s->link_line);
    free(s->flow_line);
    free(s->path);
    free(s->topology_path);
    memset(s, 0, sizeof(*s));
}

static bool same_file(const char *path, const char *other)
{
    struct stat a, b;
    return path != NULL && stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

bool scenario_reads(const struct scenario *s, const char *path)
{
    return same_file(s->path, path) || same_file(s->topology_path, path);
}

static void *grown(void *array, uint32_t n, uint32_t *capacity, size_t bytes)
{
    if (n < *capacity)
        return array;
    uint32_t more = *capacity * 2 + 64;
    void *out = realloc(array, more * bytes);
    if (out != NULL)
        *capacity = more;
    return out;
}

bool scenario_add_node(struct scenario *s, bool is_switch, const char *name)
{
    uint32_t n = s->topology.nodes, capacity = s->node_capacity;
    if (n == FABRIC_MAX_NODES)
        return false;
    uint8_t *kinds = grown(s->is_switch, n, &capacity, 1);
    if (kinds == NULL)
        return false;
    s->topology.is_switch = s->is_switch = kinds;
    char(*names)[SCENARIO_NAME_BYTES] = grown(s->name, n, &s->node_capacity, sizeof(*s->name));
    if (names == NULL)
        return false;
    s->name = names;
    uint32_t *lines = grown(s->node_line, n, &s->node_line_capacity, sizeof(*lines));
    if (lines == NULL)
        return false;
    s->node_line = lines;
    s->node_line[n] = s->line;
    s->is_switch[n] = is_switch;
    memset(s->name[n], 0, sizeof(s->name[n])); /* traces have all of it */
    snprintf(s->name[n], sizeof(s->name[n]), "%s", name);
    s->topology.nodes++;
    return true;
}

bool scenario_add_link(struct scenario *s, const struct fabric_link *link)
{
    if (s->topology.links == FABRIC_MAX_LINKS)
        return false;
    struct fabric_link *links =
        grown(s->link, s->topology.links, &s->link_capacity, sizeof(*s->link));
    if (links == NULL)
        return false;
    s->topology.link = s->link = links;
    uint32_t *lines =
        grown(s->link_line, s->topology.links, &s->link_line_capacity, sizeof(*lines));
    if (lines == NULL)
        return false;
    s->link_line = lines;
    s->link_line[s->topology.links] = s->line;
    s->link[s->topology.links++] = *link;
    return true;
}

bool scenario_add_flow(struct scenario *s, const struct fabric_flow *flow)
{
    if (s->flows == FABRIC_MAX_FLOWS)
        return false;
    struct fabric_flow *flows = grown(s->flow, s->flows, &s->flow_capacity, sizeof(*s->flow));
    if (flows == NULL)
        return false;
    s->flow = flows;
    uint32_t *lines = grown(s->flow_line, s->flows, &s->flow_line_capacity, sizeof(*lines));
    if (lines == NULL)
        return false;
    s->flow_line = lines;
    s->flow_line[s->flows] = s->line;
    s->flow[s->flows++] = *flow;
    return true;
}

uint32_t scenario_find_node(const struct scenario *s, const char *name)
{
    for (uint32_t i = 0; i < s->topology.nodes; i++)
        if (strcmp(s->name[i], name) == 0)
            return i;
    return UINT32_MAX;
}

void scenario_hpcc_compat(struct fabric_config *config)
{
    struct fabric_switches *s = &config->switches;
    struct fabric_hosts *h = &config->hosts;
    config->gap_bytes = 0;
    config->min_frame_bytes = 0;
    s->buffer_bytes = 32 << 20;
    s->headroom_delays = 3;
    s->reserve_bytes = 4096;
    s->alpha_by_rate = true;
    s->xon_offset_bytes = 3072;
    s->lossless = 0x7f;
    s->control = 0x80;
    s->pause_quanta = FABRIC_QUANTA_HELD;
    s->response_quanta = 0;
    s->ecn = 0x7f;
    s->ecn_at_dequeue = true;
    h->payload_bytes = 1000;
    h->header_bytes = 48;
    h->ack_bytes = 60;
    h->ack_priority = 7;
    h->cnp_priority = 7;
    h->cnp_by_ack = true;
    h->timeout_ps = 16 * FABRIC_MS;
    h->hpcc_stages = 0;
    h->hpcc_parts = 2500;
}

/* "FILE:LINE: FIELD: what", without a line that is not known. */
__attribute__((format(printf, 5, 6))) static bool fail(struct scenario_error *e, const char *path,
                                                       unsigned line, const char *field,
                                                       const char *format, ...)
{
    char where[16] = "", what[SCENARIO_ERROR_BYTES / 2];
    va_list args;
    if (line != 0)
        snprintf(where, sizeof(where), ":%u", line);
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    snprintf(e->text, sizeof(e->text), "%.200s%s: %s: %s", path, where, field, what);
    return false;
}

/* Hosts have one link, switches one at least. */
static bool check_links(const struct scenario *s, const char *path, struct scenario_error *e)
{
    uint32_t *links = calloc(s->topology.nodes + 1u, sizeof(*links));
    bool ok = true;
    if (links == NULL)
        return fail(e, path, 0, "topology", "out of memory");
    for (uint32_t i = 0; i < s->topology.links; i++) {
        links[s->link[i].node[0]]++;
        links[s->link[i].node[1]]++;
    }
    for (uint32_t i = 0; i < s->topology.nodes && ok; i++) {
        if (links[i] == 1 || (s->is_switch[i] != 0 && links[i] > 1))
            continue;
        const char *kind = s->is_switch[i] != 0 ? "switch" : "host";
        if (links[i] == 0)
            ok = fail(e, path, s->node_line[i], "topology", "%s %s has no link, one is expected",
                      kind, s->name[i]);
        else
            ok = fail(e, path, s->node_line[i], "topology",
                      "host %s has %" PRIu32 " links, one is expected", s->name[i], links[i]);
    }
    free(links);
    return ok;
}

/* Headroom that no buffer has room for: the longest link says why, if not the headroom itself. */
static bool headroom_large(const struct scenario *s, const char *path, unsigned line,
                           struct scenario_error *e)
{
    const struct fabric_switches *c = &s->config.switches;
    char rate[QUANTITY_TEXT_BYTES], delay[QUANTITY_TEXT_BYTES];
    uint32_t longest = 0;
    if (c->headroom_bytes != 0)
        return fail(e, path, line, "switches.headroom",
                    "%" PRIu32 " bytes for each port%s are more than the "
                    "largest buffer, of %" PRIu32 " bytes; less, or less of either, is expected",
                    c->headroom_bytes, c->headroom_delays == 0 ? " and lossless priority" : "",
                    UINT32_MAX);
    for (uint32_t i = 1; i < s->topology.links; i++)
        if (s->link[i].delay_ps / 1000 * (s->link[i].rate_bps / 1000000) >
            s->link[longest].delay_ps / 1000 * (s->link[longest].rate_bps / 1000000))
            longest = i;
    const struct fabric_link *l = &s->link[longest];
    return fail(e, s->topology_path != NULL ? s->topology_path : path, s->link_line[longest],
                "delay",
                "with %s at %s between %s and %s what comes after a pause, and of all "
                "ports, is more than the largest buffer, of %" PRIu32 " bytes; a shorter delay, a "
                "lower rate, fewer lossless priorities, or switches.headroom is expected",
                quantity_print(l->delay_ps, QUANTITY_TIME, delay),
                quantity_print(l->rate_bps, QUANTITY_RATE, rate), s->name[l->node[0]],
                s->name[l->node[1]], UINT32_MAX);
}

/* Whether the switches hold what reserve and headroom of their ports take: see fabric_create. */
static bool buffer_small(const struct scenario *s, const char *path, uint32_t taken,
                         struct scenario_error *e)
{
    /* Where no buffer is said, what takes it. */
    unsigned line = s->topology_path == NULL ? s->topology_line : 0;
    line = s->buffer_line != 0 ? s->buffer_line : line;
    if (taken == UINT32_MAX)
        return headroom_large(s, path, line, e);
    return fail(e, path, line, "switches.buffer",
                "%" PRIu64 " bytes are less than reserve and headroom of a switch's ports; more "
                "than %" PRIu32 " are expected",
                s->config.switches.buffer_bytes, taken);
}

/* Whether a host's flows have more at once than its NIC holds: see fabric_create. */
static bool host_full(const struct scenario *s, const char *path, uint32_t node,
                      struct scenario_error *e)
{
    uint32_t i = 0, flows = 0;
    for (uint32_t j = s->flows; j-- > 0;)
        if (s->flow[j].src == node || s->flow[j].dst == node) {
            i = j;
            flows++;
        }
    return fail(e, path, s->flow_line[i], "workload",
                "the %" PRIu32 " flows of host %s have more than %d work requests and receives at "
                "once; fewer flows or receives, or larger messages are expected",
                flows, s->name[node], FABRIC_MAX_POSTED);
}

bool scenario_make(struct scenario *s, const char *path, struct fabric **out,
                   struct scenario_error *e)
{
    uint32_t bad = 0;
    const char *topology = s->topology_path != NULL ? s->topology_path : path;
    if (s->topology.links == 0)
        return fail(e, topology, s->topology_line, "topology",
                    "there is no link, one for each host is expected");
    if (s->flows == 0)
        return fail(e, path, s->line, "workload",
                    "there is no flow, one is expected; of poisson, which may draw none, a longer "
                    "duration or more load");
    if (!check_links(s, topology, e))
        return false;
    int rc = fabric_create(&s->config, &s->topology, s->flow, s->flows, out, &bad);
    if (rc == 0)
        return true;
    if (rc == -EHOSTUNREACH)
        return fail(e, path, s->flow_line[bad], "workload",
                    "flow %" PRIu32 " from %s to %s: the host cannot be reached; a way of links "
                    "between them is expected",
                    bad, s->name[s->flow[bad].src], s->name[s->flow[bad].dst]);
    if (rc == -ENOSPC)
        return buffer_small(s, path, bad, e);
    if (rc == -E2BIG)
        return host_full(s, path, bad, e);
    return fail(e, path, 0, "scenario", "it cannot be made: %s", strerror(-rc));
}

/* Of the priorities that may be dropped, the largest packet that a flow has; 0: none. */
static uint64_t most_lossy_bytes(const struct scenario *s)
{
    const struct fabric_switches *c = &s->config.switches;
    uint64_t most = 0, payload = s->config.hosts.payload_bytes;
    for (uint32_t i = 0; i < s->flows; i++)
        if (((c->lossless | c->control) >> s->flow[i].priority & 1) == 0 && s->flow[i].bytes > most)
            most = s->flow[i].bytes;
    if (most == 0)
        return 0;
    return (most < payload ? most : payload) + s->config.hosts.header_bytes;
}

static void warn_of_room(const struct scenario *s, const struct fabric *f, FILE *out)
{
    uint64_t frame = most_lossy_bytes(s);
    for (uint32_t i = 0; i < fabric_ports(f); i++) {
        uint64_t kmax, room;
        struct fabric_port_result port;
        fabric_port_result(f, i, 0, &port);
        fabric_thresholds(f, i, &kmax, &room);
        if (!s->is_switch[port.node] || room >= frame)
            continue;
        fprintf(out,
                "warning: switches.buffer: at %s a queue that is not lossless has room for %" PRIu64
                " bytes, and each frame of %" PRIu64 " is dropped\n",
                s->name[port.node], room, frame);
        return;
    }
}

/* Of the first flows: where it is too short it is so for most. */
static void warn_of_timeout(const struct scenario *s, const struct fabric *f, FILE *out)
{
    char timeout[QUANTITY_TEXT_BYTES], round[QUANTITY_TEXT_BYTES];
    uint64_t timeout_ps = s->config.hosts.timeout_ps;
    for (uint32_t i = 0; timeout_ps != 0 && i < s->flows && i < WARN_FLOWS; i++) {
        uint64_t ps = fabric_round_trip_ps(f, i);
        if (ps <= timeout_ps)
            continue;
        fprintf(out,
                "warning: hosts.timeout: %s are less than a packet from %s to %s and its "
                "acknowledgement take, %s; all is sent again before\n",
                quantity_print(timeout_ps, QUANTITY_TIME, timeout), s->name[s->flow[i].src],
                s->name[s->flow[i].dst], quantity_print(ps, QUANTITY_TIME, round));
        return;
    }
}

void scenario_warn(const struct scenario *s, const struct fabric *f, FILE *out)
{
    warn_of_room(s, f, out);
    warn_of_timeout(s, f, out);
    if (s->config.switches.ecn == 0)
        return;
    for (uint32_t i = 0; i < fabric_ports(f); i++) {
        uint64_t kmax, xoff;
        struct fabric_port_result port;
        fabric_thresholds(f, i, &kmax, &xoff);
        if (xoff == 0 || kmax <= xoff)
            continue;
        fabric_port_result(f, i, 0, &port);
        fprintf(out,
                "warning: switches.ecn.kmax: at %s marks are sure beyond %" PRIu64
                " bytes, but PFC pauses at %" PRIu64 " already\n",
                s->name[port.node], kmax, xoff);
        return;
    }
}
