/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario_yaml.c: the fields of a scenario file. verbena-fabric(1) lists them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "scenario/faults.h"
#include "scenario/reader.h"
#include "scenario/shapes.h"
#include "scenario/workload.h"

#define MIN_RATE_BPS UINT64_C(1000000)
#define MAX_RATE_BPS UINT64_C(10000000000000)
#define MAX_DELAY_PS (1000 * FABRIC_MS)
#define MAX_BYTES    (UINT64_C(1) << 50)
/* Less than a round trip takes anywhere: all would be sent again before it is acknowledged. */
#define MIN_TIMEOUT_PS FABRIC_US

static void get_link(struct reader *r, const struct field *f, const char *rate, const char *delay,
                     struct fabric_link *link)
{
    link->rate_bps =
        reader_get_quantity(r, f, rate, QUANTITY_RATE, MIN_RATE_BPS, MAX_RATE_BPS, link->rate_bps);
    link->delay_ps = reader_get_time(r, f, delay, MAX_DELAY_PS, link->delay_ps);
}

/* A name stands in CSV, and in filters of traces, as it is. */
static bool check_name(struct reader *r, const struct field *f, const char *name)
{
    if (name[0] == '\0')
        return reader_fail(r, f, "'' is empty, a name is expected");
    if (strlen(name) >= SCENARIO_NAME_BYTES)
        return reader_fail(r, f, "'%s' is too long, at most %d letters are expected", name,
                           SCENARIO_NAME_BYTES - 1);
    for (const char *p = name; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || strchr(",+=\"\177", *p) != NULL)
            return reader_fail(r, f,
                               "byte %zu of the name is one of , + = \" or invisible; others "
                               "are expected",
                               (size_t)(p - name) + 1);
    return true;
}

static bool read_names(struct reader *r, const struct field *f, const char *key, struct scenario *s,
                       bool is_switch)
{
    struct field list, item;
    reader_get(r, f, key, &list);
    for (unsigned i = 0; i < reader_items(r, &list); i++) {
        reader_item(r, &list, i, &item);
        const char *name = reader_text(r, &item);
        if (name == NULL || !check_name(r, &item, name))
            return false;
        if (scenario_find_node(s, name) != UINT32_MAX)
            return reader_fail(r, &item, "'%s' is there twice, another name is expected", name);
        s->line = reader_line(&item);
        if (!scenario_add_node(s, is_switch, name))
            return reader_fail(r, &item, "too many nodes for the memory");
        reader_note_text(r, &item, name);
    }
    return !r->failed;
}

/* Of the nodes that are there already. */
static bool read_which_switch(struct reader *r, const struct field *f, struct scenario *s)
{
    struct field list, item;
    reader_get(r, f, "switches", &list);
    for (unsigned i = 0; i < reader_items(r, &list); i++) {
        reader_item(r, &list, i, &item);
        const char *name = reader_text(r, &item);
        if (name == NULL)
            return false;
        uint32_t node = scenario_find_node(s, name);
        if (node == UINT32_MAX)
            return reader_fail(r, &item, "there is no node '%s'; one of nodes is expected", name);
        s->is_switch[node] = 1;
        reader_note_text(r, &item, name);
    }
    return !r->failed;
}

/* Hosts before switches, or all in an order of their own. */
static bool read_nodes(struct reader *r, const struct field *f, struct scenario *s)
{
    struct field nodes, hosts;
    reader_get(r, f, "nodes", &nodes);
    reader_get(r, f, "hosts", &hosts);
    if (!reader_present(r, &nodes))
        return read_names(r, f, "hosts", s, false) && read_names(r, f, "switches", s, true);
    if (reader_present(r, &hosts))
        return reader_fail(r, &hosts, "nodes is there as well; one of both is expected");
    return read_names(r, f, "nodes", s, false) && read_which_switch(r, f, s);
}

static bool read_graph_link(struct reader *r, const struct field *f, struct scenario *s,
                            const struct fabric_link *like)
{
    struct fabric_link link = *like;
    if (!reader_keys(r, f, "a b rate delay mtu loss corrupt"))
        return false;
    link.node[0] = reader_get_node(r, f, "a", s, "node");
    link.node[1] = reader_get_node(r, f, "b", s, "node");
    get_link(r, f, "rate", "delay", &link);
    link.mtu_bytes =
        (uint32_t)reader_get_bytes(r, f, "mtu", FABRIC_MAX_FRAME_BYTES, link.mtu_bytes);
    link.loss_ppm = (uint32_t)reader_get_quantity(r, f, "loss", QUANTITY_PPM, 0, 1000000, 0);
    link.corrupt_ppm = (uint32_t)reader_get_quantity(r, f, "corrupt", QUANTITY_PPM, 0, 1000000, 0);
    if (!r->failed && link.node[0] == link.node[1])
        return reader_fail(r, f, "a and b are the same node, two are expected");
    return !r->failed && (scenario_add_link(s, &link) || reader_fail(r, f, "too many links"));
}

static bool read_graph(struct reader *r, const struct field *f, struct scenario *s,
                       const struct fabric_link *like)
{
    struct field list, item;
    if (!read_nodes(r, f, s))
        return false;
    reader_get(r, f, "links", &list);
    for (unsigned i = 0; i < reader_items(r, &list); i++) {
        reader_item(r, &list, i, &item);
        s->line = reader_line(&item);
        if (!read_graph_link(r, &item, s, like))
            return false;
    }
    return !r->failed;
}

static bool read_topology(struct reader *r, const struct field *root, struct scenario *s)
{
    struct field f, k;
    struct shape_size z = {
        .host_link = {.rate_bps = UINT64_C(100000000000), .delay_ps = FABRIC_US}
    };
    reader_get(r, root, "topology", &f);
    s->line = s->topology_line = reader_line(&f);
    if (!reader_present(r, &f))
        return reader_fail(r, root, "'topology' is missing, fields with a shape are expected");
    unsigned shape = reader_kind(r, &f, "shape", kinds_shape, READER_NO_KIND);
    if (r->failed)
        return false;
    get_link(r, &f, "rate", "delay", &z.host_link);
    z.host_link.mtu_bytes = (uint32_t)reader_get_bytes(r, &f, "mtu", FABRIC_MAX_FRAME_BYTES, 0);
    z.inner_link = z.host_link;
    if (shape == SHAPES)
        return read_graph(r, &f, s, &z.host_link);
    z.hosts = reader_get_count(r, &f, "hosts", 1, FABRIC_MAX_NODES, shape == SHAPE_RING ? 2 : 16);
    z.switches = reader_get_count(r, &f, shape == SHAPE_LEAF_SPINE ? "leaves" : "switches",
                                  shape == SHAPE_RING ? 3 : 1, FABRIC_MAX_NODES, 4);
    get_link(r, &f, "uplink_rate", "uplink_delay", &z.inner_link);
    z.spines = reader_get_count(r, &f, "spines", 1, FABRIC_MAX_NODES, 2);
    z.k = reader_get_count(r, &f, "k", 2, 64, 4);
    reader_get(r, &f, "k", &k);
    if (z.k % 2 != 0)
        return reader_fail(r, &k, "%" PRIu32 " is odd, an even number is expected", z.k);
    if (r->failed)
        return false;
    return shape_build(s, (enum shape)shape, &z) ||
           reader_fail(r, &f, "more nodes or links than fit; at most %d and %d are expected",
                       FABRIC_MAX_NODES, FABRIC_MAX_LINKS);
}

static void note_alpha(struct reader *r, const struct field *f, const struct fabric_switches *c)
{
    char text[2 * QUANTITY_TEXT_BYTES];
    snprintf(text, sizeof(text), "%" PRIu32 "/%" PRIu32, c->alpha_num, c->alpha_den);
    reader_note_word(r, f, text);
}

/* alpha: 1/8, 2, ... */
static bool read_alpha(struct reader *r, const struct field *f, struct fabric_switches *c)
{
    struct field value;
    char *end;
    reader_get(r, f, "alpha", &value);
    const char *text = reader_text(r, &value);
    if (text == NULL) {
        note_alpha(r, &value, c);
        return !r->failed;
    }
    unsigned long over = strtoul(text, &end, 10), under = 1;
    if (*end == '/')
        under = strtoul(end + 1, &end, 10);
    if (*end != '\0' || text[0] < '0' || text[0] > '9' || over < 1 || over > 1024 || under < 1 ||
        under > 1024)
        return reader_fail(r, &value, "'%s' is not a ratio such as 1/8, of numbers up to 1024",
                           text);
    c->alpha_num = (uint32_t)over;
    c->alpha_den = (uint32_t)under;
    note_alpha(r, &value, c);
    return true;
}

/* A default may be beyond the buffer, which cannot be said: it is not recorded then. */
static uint64_t get_threshold(struct reader *r, const struct field *f, const char *key,
                              uint64_t most, uint64_t fallback, const struct fabric_switches *c)
{
    struct field value;
    reader_get(r, f, key, &value);
    if (!reader_present(r, &value) && fallback > c->buffer_bytes)
        return fallback;
    return reader_quantity(r, &value, QUANTITY_BYTES, 0, most, fallback);
}

/* A threshold that is said must be one that the buffer can reach. */
static bool below_buffer(struct reader *r, const struct field *f, const char *key, uint64_t bytes,
                         const struct fabric_switches *c)
{
    struct field value;
    reader_get(r, f, key, &value);
    if (r->failed || !reader_present(r, &value) || bytes <= c->buffer_bytes)
        return !r->failed;
    return reader_fail(r, &value,
                       "%" PRIu64 " bytes are more than the buffer; at most %" PRIu64
                       " bytes are expected",
                       bytes, c->buffer_bytes);
}

static bool read_ecn(struct reader *r, const struct field *switches, struct fabric_switches *c)
{
    struct field f, at;
    reader_get(r, switches, "ecn", &f);
    if (!reader_keys(r, &f, "priorities kmin kmax pmax rate at"))
        return false;
    reader_get(r, &f, "priorities", &at);
    c->ecn = reader_priorities(r, &at, c->ecn);
    reader_note_priorities(r, &at, c->ecn);
    if (c->ecn == 0)
        reader_only(r, &f, "kmin kmax pmax rate at", "", ".priorities",
                    "nothing is marked; some in switches.ecn.priorities are expected with it");
    c->kmin_bytes = get_threshold(r, &f, "kmin", UINT32_MAX, c->kmin_bytes, c);
    c->kmax_bytes = get_threshold(r, &f, "kmax", UINT32_MAX, c->kmax_bytes, c);
    c->pmax_ppm =
        (uint32_t)reader_get_quantity(r, &f, "pmax", QUANTITY_PPM, 0, 1000000, c->pmax_ppm);
    c->ecn_rate_bps = reader_get_quantity(r, &f, "rate", QUANTITY_RATE, MIN_RATE_BPS, MAX_RATE_BPS,
                                          c->ecn_rate_bps);
    reader_get(r, &f, "at", &at);
    c->ecn_at_dequeue = reader_choice(r, &at, "enqueue dequeue", c->ecn_at_dequeue) == 1;
    if (!below_buffer(r, &f, "kmin", c->kmin_bytes, c) ||
        !below_buffer(r, &f, "kmax", c->kmax_bytes, c))
        return false;
    reader_get(r, &f, "kmax", &at);
    if (!r->failed && c->kmin_bytes > c->kmax_bytes)
        return reader_fail(
            r, &at, "%" PRIu64 " bytes are less than kmin, at least %" PRIu64 " are expected",
            c->kmax_bytes, c->kmin_bytes);
    return !r->failed;
}

static bool read_quanta(struct reader *r, const struct field *f, struct fabric_switches *c)
{
    struct field value;
    reader_get(r, f, "pause_quanta", &value);
    const char *text = reader_text(r, &value);
    if (text == NULL ? c->pause_quanta == FABRIC_QUANTA_HELD : strcmp(text, "held") == 0) {
        c->pause_quanta = FABRIC_QUANTA_HELD;
        reader_note_word(r, &value, "held");
    } else {
        c->pause_quanta =
            (uint32_t)reader_quantity(r, &value, QUANTITY_COUNT, 1, UINT16_MAX, c->pause_quanta);
    }
    c->response_quanta =
        reader_get_count(r, f, "response_quanta", 0, UINT16_MAX, c->response_quanta);
    return !r->failed;
}

/* Of lossless and control what is not said gives way to what is. */
static bool read_classes(struct reader *r, const struct field *f, struct fabric_switches *c)
{
    struct field lossless, control;
    reader_get(r, f, "lossless", &lossless);
    reader_get(r, f, "control", &control);
    c->lossless = reader_priorities(r, &lossless, c->lossless);
    c->control = reader_priorities(r, &control, c->control);
    unsigned both = c->lossless & c->control;
    if (both != 0 && !reader_present(r, &control))
        c->control &= (uint8_t)~both;
    else if (both != 0 && !reader_present(r, &lossless))
        c->lossless &= (uint8_t)~both;
    else if (both != 0)
        return reader_fail(r, &control,
                           "priority %d is lossless as well; one of both is expected, since "
                           "control has no limit, and is not paused",
                           __builtin_ctz(both));
    reader_note_priorities(r, &lossless, c->lossless);
    reader_note_priorities(r, &control, c->control);
    return !r->failed;
}

static bool read_convergence(struct reader *r, const struct field *f, struct fabric_switches *c)
{
    struct field value;
    reader_get(r, f, "convergence", &value);
    const char *text = reader_text(r, &value);
    if (text != NULL && strcmp(text, "never") == 0)
        c->converge_ps = FABRIC_NEVER;
    else
        c->converge_ps =
            reader_quantity(r, &value, QUANTITY_TIME, 0, SCENARIO_MAX_TIME_PS, c->converge_ps);
    if (c->converge_ps == FABRIC_NEVER)
        reader_note_word(r, &value, "never");
    return !r->failed;
}

static bool read_switches(struct reader *r, const struct field *root, struct fabric_switches *c)
{
    struct field f, value;
    char key[2] = "0";
    reader_get(r, root, "switches", &f);
    if (!reader_keys(r, &f,
                     "buffer headroom reserve alpha xon_offset lossless control weights "
                     "pause pause_quanta response_quanta trust ecn convergence"))
        return false;
    reader_get(r, &f, "trust", &value);
    c->trust_pcp = reader_choice(r, &value, "dscp pcp", 0) == 1;
    if (!read_classes(r, &f, c))
        return false;
    if (c->lossless == 0) /* headroom by delays is taken in any case */
        reader_only(r, &f, "pause pause_quanta response_quanta xon_offset headroom",
                    c->headroom_delays != 0 ? "headroom" : "", ".lossless .control",
                    "nothing is lossless, and so never paused; some in switches.lossless are "
                    "expected with it");
    reader_get(r, &f, "pause", &value);
    c->link_pause = reader_choice(r, &value, "pfc link", 0) == 1;
    c->buffer_bytes =
        reader_get_quantity(r, &f, "buffer", QUANTITY_BYTES, 1, UINT32_MAX, c->buffer_bytes);
    reader_get(r, &f, "headroom", &value);
    const char *headroom = reader_text(r, &value);
    if (headroom == NULL || strcmp(headroom, "auto") == 0)
        reader_note_word(r, &value, "auto");
    else
        c->headroom_bytes = (uint32_t)reader_quantity(r, &value, QUANTITY_BYTES, 1, 1 << 30, 0);
    c->reserve_bytes = (uint32_t)get_threshold(r, &f, "reserve", 1 << 30, c->reserve_bytes, c);
    c->xon_offset_bytes =
        (uint32_t)get_threshold(r, &f, "xon_offset", 1 << 30, c->xon_offset_bytes, c);
    if (!below_buffer(r, &f, "headroom", c->headroom_bytes, c) ||
        !below_buffer(r, &f, "reserve", c->reserve_bytes, c) ||
        !below_buffer(r, &f, "xon_offset", c->xon_offset_bytes, c))
        return false;
    reader_get(r, &f, "weights", &value);
    if (!reader_keys(r, &value, "0 1 2 3 4 5 6 7"))
        return false;
    for (unsigned i = 0; i < FABRIC_PRIORITIES; i++, key[0]++)
        c->weight[i] = (uint8_t)reader_get_count(r, &value, key, 0, 100, c->weight[i]);
    return read_convergence(r, &f, c) && read_alpha(r, &f, c) && read_quanta(r, &f, c) &&
           read_ecn(r, &f, c);
}

/* Whose profile has none is compared with simulators that have none; a --set of the profile leaves
 * what the file says of one without effect. */
static bool read_nic(struct reader *r, const struct field *f, struct scenario *s)
{
    struct field value;
    unsigned nic = s->hpcc_compat ? NIC_NONE : NIC_ENGINE;
    reader_get(r, f, "nic", &value);
    if (reader_is_set(r, "profile") && value.set == NULL && (s->hpcc_compat || value.node == NULL))
        reader_as_kind(r, f, "nic", kinds_nic, nic);
    else
        nic = reader_kind(r, f, "nic", kinds_nic, nic);
    s->config.hosts.engine = nic == NIC_ENGINE;
    if (s->config.hosts.engine && s->hpcc_compat)
        return reader_fail(r, &value, "hosts of this profile have no NIC; none is expected");
    return !r->failed;
}

static bool read_cc(struct reader *r, const struct field *f, struct scenario *s)
{
    struct field value;
    struct fabric_hosts *h = &s->config.hosts;
    reader_get(r, f, "cc", &value);
    reader_choice(r, &value, CC_NAMES, 0);
    const char *cc = reader_text(r, &value);
    if (cc != NULL && !r->failed)
        h->cc = s->cc = strdup(cc);
    if (h->engine && h->cc != NULL && strcmp(h->cc, "none") == 0)
        h->cc = NULL;
    bool hpcc = h->cc != NULL && strcmp(h->cc, "hpcc") == 0;
    if (h->engine && hpcc)
        return reader_fail(r, &value,
                           "the packets of a NIC have no room for what switches write "
                           "for hpcc; hosts.nic: none is expected with it");
    if (!hpcc)
        reader_only(r, f, KINDS_HPCC_FIELDS, "", ".cc",
                    "only hpcc has it; hosts.cc: hpcc is expected");
    h->ack_in_class = s->hpcc_compat && hpcc;
    h->hpcc_eta_percent = reader_get_count(r, f, "hpcc_eta", 1, 100, h->hpcc_eta_percent);
    h->hpcc_stages = reader_get_count(r, f, "hpcc_stages", 0, UINT16_MAX, h->hpcc_stages);
    h->hpcc_parts = reader_get_count(r, f, "hpcc_parts", 1, 1000000, h->hpcc_parts);
    return !r->failed;
}

/* Of CNPs, where there are any. */
static bool read_cnps(struct reader *r, const struct field *f, const struct fabric_switches *c,
                      struct fabric_hosts *h)
{
    const char *why = NULL, *by = "profile .nic .cc switches.ecn.priorities";
    if (h->cnp_by_ack)
        why = "in this profile a flag of the ACK stands for a CNP; without the field is expected";
    else if (c->ecn == 0)
        why = "nothing is marked; some in switches.ecn.priorities are expected with it";
    else if (h->engine && h->cc == NULL)
        why =
            "a NIC without congestion control sends no CNPs; another hosts.cc is expected with it";
    if (why != NULL && !reader_only(r, f, "cnp_priority cnp_interval", "", by, why))
        return false;
    h->cnp_priority = (uint8_t)reader_get_count(r, f, "cnp_priority", 0, 7, h->cnp_priority);
    h->cnp_interval_ps =
        reader_get_time(r, f, "cnp_interval", SCENARIO_MAX_TIME_PS, h->cnp_interval_ps);
    return !r->failed;
}

static bool read_hosts(struct reader *r, const struct field *root, struct scenario *s)
{
    struct field f, value;
    struct fabric_hosts *h = &s->config.hosts;
    reader_get(r, root, "hosts", &f);
    if (!read_nic(r, &f, s) || !read_cc(r, &f, s) || !read_cnps(r, &f, &s->config.switches, h))
        return false;
    if (h->ack_in_class)
        reader_only(r, &f, "ack_priority", "", "profile .cc",
                    "ACKs go by the class of the data with hpcc in this profile; without the field "
                    "is expected");
    reader_get(r, &f, "vlan", &value);
    h->vlan = reader_choice(r, &value, "off on", 0) == 1;
    h->payload_bytes =
        (uint32_t)reader_get_quantity(r, &f, "payload", QUANTITY_BYTES, 1, 9000, h->payload_bytes);
    uint64_t window = h->engine ? FABRIC_WINDOW_BYTES : h->window_bytes;
    h->window_bytes = reader_get_bytes(r, &f, "window", MAX_BYTES, window);
    if (h->engine && h->window_bytes == 0)
        h->window_bytes = FABRIC_WINDOW_BYTES;
    h->timeout_ps = reader_get_time(r, &f, "timeout", SCENARIO_MAX_TIME_PS, h->timeout_ps);
    reader_get(r, &f, "timeout", &value);
    if (!r->failed && h->timeout_ps != 0 && h->timeout_ps < MIN_TIMEOUT_PS)
        return reader_fail(r, &value,
                           "'%s' is out of range; 0s, which is never, or from 1us to "
                           "3600s is expected",
                           reader_text(r, &value));
    h->ack_priority = (uint8_t)reader_get_count(r, &f, "ack_priority", 0, 7, h->ack_priority);
    reader_get(r, &f, "recovery", &value);
    h->go_back_0 = reader_choice(r, &value, "go-back-n go-back-0", 0) == 1;
    h->retry = (uint8_t)reader_get_count(r, &f, "retry", 0, 7, h->retry);
    h->rnr_retry = (uint8_t)reader_get_count(r, &f, "rnr_retry", 0, 7, h->rnr_retry);
    h->rnr_timer_ps = reader_get_time(r, &f, "rnr_timer", FABRIC_MAX_RNR_PS, h->rnr_timer_ps);
    uint32_t mtu = h->payload_bytes;
    reader_get(r, &f, "payload", &value);
    if (h->engine && (mtu < 256 || mtu > 4096 || (mtu & (mtu - 1)) != 0))
        return reader_fail(
            r, &value, "%" PRIu32 " is no path MTU; 256, 512, 1024, 2048 or 4096 is expected", mtu);
    return !r->failed;
}

static uint32_t count_hosts(const struct scenario *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->topology.nodes; i++)
        n += s->is_switch[i] == 0;
    return n;
}

static bool read_poisson(struct reader *r, const struct field *f, struct scenario *s,
                         const struct workload *w, struct rng *rng)
{
    struct field value;
    reader_get(r, f, "sizes", &value);
    unsigned sizes = reader_choice(r, &value, WORKLOAD_SIZES, SIZES_WEBSEARCH);
    uint32_t load =
        (uint32_t)reader_get_quantity(r, f, "load", QUANTITY_PPM, 1000, 1000000, 300000);
    uint64_t duration = reader_get_time(r, f, "duration", SCENARIO_MAX_TIME_PS, FABRIC_MS);
    return !r->failed &&
           workload_poisson(s, w, (enum workload_sizes)sizes, load,
                            s->topology.links > 0 ? s->link[0].rate_bps : MIN_RATE_BPS, duration,
                            rng);
}

static bool add_op(struct reader *r, const struct field *f, struct scenario *s, enum op op,
                   const struct workload *w, struct rng *rng)
{
    uint32_t hosts = count_hosts(s), a, b;
    switch (op) {
    case OP_FLOW:
        a = reader_get_node(r, f, "from", s, "host");
        b = reader_get_node(r, f, "to", s, "host");
        if (!r->failed && a == b)
            return reader_fail(r, f, "from and to are the same host, two are expected");
        return !r->failed && workload_flow(s, w, a, b);
    case OP_INCAST:
        a = reader_get_node(r, f, "to", s, "host");
        b = reader_get_count(r, f, "senders", 1, hosts - 1, hosts - 1);
        return !r->failed && workload_incast(s, w, a, b);
    case OP_PERMUTATION:
        a = reader_get_count(r, f, "shift", 1, hosts - 1, hosts / 2);
        return !r->failed && workload_permutation(s, w, a);
    case OP_ALL_TO_ALL:
        return !r->failed && workload_all_to_all(s, w);
    case OP_ALLREDUCE:
        return !r->failed && workload_allreduce(s, w);
    case OP_STORAGE:
        a = reader_get_count(r, f, "servers", 1, hosts - 1, 1);
        b = (uint32_t)reader_get_quantity(r, f, "reads", QUANTITY_PPM, 0, 1000000, 1000000);
        return !r->failed && workload_storage(s, w, a, b, rng);
    default:
        return read_poisson(r, f, s, w, rng);
    }
}

static bool read_work(struct reader *r, const struct field *item, const struct scenario *s,
                      struct fabric_work *work)
{
    struct field value;
    char why[READER_PATH_BYTES];
    if (!s->config.hosts.engine &&
        !reader_only(r, item, KINDS_VERB_FIELDS, "", "profile hosts.nic",
                     "there are no verbs without a NIC; hosts.nic engine is expected"))
        return false;
    unsigned verb = reader_choice_of(r, item, "verb", kinds_verb, FABRIC_WRITE);
    snprintf(why, sizeof(why), "it has no meaning with verb %s; expected: %s",
             kinds_verb[verb].name, kinds_verb[verb].fields);
    if (!reader_only(r, item, KINDS_VERB_FIELDS, kinds_verb[verb].fields, ".verb", why))
        return false;
    work->verb = (enum fabric_verb)verb;
    work->message_bytes = (uint32_t)reader_get_quantity(r, item, "message", QUANTITY_BYTES, 1,
                                                        FABRIC_MAX_MESSAGE_BYTES, 0);
    work->receives = reader_get_count(r, item, "receives", 0, FABRIC_MAX_RECEIVES, 64);
    work->receive_ps = reader_get_time(r, item, "receive_time", SCENARIO_MAX_TIME_PS, 0);
    reader_get(r, item, "rkey", &value);
    work->wrong_rkey = reader_choice(r, &value, "right wrong", 0) == 1;
    return !r->failed;
}

static bool read_op(struct reader *r, const struct field *item, struct scenario *s, struct rng *rng)
{
    struct workload w = {0};
    s->line = reader_line(item);
    unsigned op = reader_kind(r, item, "op", kinds_op, READER_NO_KIND);
    if (r->failed)
        return false;
    if (count_hosts(s) < 2)
        return reader_fail(r, item, "there are less than two hosts, two are expected");
    w.bytes = reader_get_quantity(r, item, "bytes", QUANTITY_BYTES, 1, MAX_BYTES, 1 << 20);
    w.start_ps = reader_get_time(r, item, "start", SCENARIO_MAX_TIME_PS, 0);
    w.priority = (uint8_t)reader_get_count(r, item, "priority", 0, FABRIC_PRIORITIES - 1, 3);
    w.rounds = reader_get_count(r, item, "rounds", 1, 100000, 1);
    w.compute_ps = reader_get_time(r, item, "compute", SCENARIO_MAX_TIME_PS, 0);
    w.connections = reader_get_count(r, item, "connections", 1, 65536, 1);
    if (!read_work(r, item, s, &w.work))
        return false;
    if (add_op(r, item, s, (enum op)op, &w, rng))
        return true;
    return reader_fail(r, item, "too many flows, at most %d are expected", FABRIC_MAX_FLOWS);
}

static bool read_workload(struct reader *r, const struct field *root, struct scenario *s)
{
    struct field f, item;
    struct rng rng;
    rng_init(&rng, s->config.seed ^ UINT64_C(0x776f726b));
    reader_get(r, root, "workload", &f);
    s->line = reader_line(&f);
    if (!r->failed && f.node == NULL)
        return reader_fail(r, root, "'workload' is missing, a list of operations is expected");
    for (unsigned i = 0; i < reader_items(r, &f); i++) {
        reader_item(r, &f, i, &item);
        if (!read_op(r, &item, s, &rng))
            return false;
    }
    return !r->failed;
}

static bool read_watchdog(struct reader *r, const struct field *root, struct fabric_config *c)
{
    struct field f, value;
    const char *times = "detect restore";
    reader_get(r, root, "watchdog", &f);
    if (!reader_keys(r, &f, "detect restore action"))
        return false;
    reader_get(r, &f, "action", &value);
    c->watchdog = (enum fabric_watchdog)reader_choice(
        r, &value, "off drop forward alert", reader_present(r, &f) ? WATCHDOG_DROP : WATCHDOG_OFF);
    if (!r->failed && c->watchdog != WATCHDOG_OFF && c->switches.lossless == 0)
        return reader_fail(r, &f,
                           "nothing is lossless, and so never paused; action off, or some in "
                           "switches.lossless are expected");
    if (c->watchdog == WATCHDOG_OFF)
        reader_only(r, &f, times, "", ".action",
                    "there is no watchdog; action drop, forward or alert is expected with it");
    else if (c->watchdog == WATCHDOG_ALERT)
        reader_only(r, &f, times, "detect", ".action",
                    "an alert leaves nothing to restore; action drop or forward is expected with "
                    "it");
    c->detect_ps = reader_get_quantity(r, &f, "detect", QUANTITY_TIME, FABRIC_US,
                                       SCENARIO_MAX_TIME_PS, 200 * FABRIC_MS);
    c->restore_ps = reader_get_quantity(r, &f, "restore", QUANTITY_TIME, FABRIC_US,
                                        SCENARIO_MAX_TIME_PS, 200 * FABRIC_MS);
    return !r->failed;
}

/* Where a message about the buffer points to. */
static unsigned buffer_line(struct reader *r, const struct field *root)
{
    struct field switches, buffer;
    reader_get(r, root, "switches", &switches);
    reader_get(r, &switches, "buffer", &buffer);
    return reader_present(r, &buffer) ? reader_line(&buffer) : reader_line(&switches);
}

static bool read_scenario(struct reader *r, struct scenario *s)
{
    struct field root, value;
    reader_root(r, &root);
    if (root.node == NULL)
        return reader_fail(r, &root, "the file is empty, a topology and a workload are expected");
    if (!reader_keys(r, &root,
                     "name profile seed topology switches hosts workload watchdog faults limit"))
        return false;
    reader_get(r, &root, "name", &value);
    const char *name = reader_text(r, &value);
    s->title = strdup(name != NULL ? name : r->path);
    if (s->title == NULL)
        return reader_fail(r, &value, "out of memory");
    record_sane(s->title);
    reader_note_text(r, &value, s->title);
    reader_get(r, &root, "profile", &value);
    s->hpcc_compat = reader_choice(r, &value, "none hpcc-compat", 0) == 1;
    if (s->hpcc_compat)
        scenario_hpcc_compat(&s->config);
    s->config.seed =
        reader_get_quantity(r, &root, "seed", QUANTITY_COUNT, 0, UINT64_MAX, s->config.seed);
    s->config.limit_ps = reader_get_time(r, &root, "limit", SCENARIO_MAX_TIME_PS, 0);
    s->buffer_line = buffer_line(r, &root);
    return read_topology(r, &root, s) && read_switches(r, &root, &s->config.switches) &&
           read_hosts(r, &root, s) && read_watchdog(r, &root, &s->config) &&
           faults_read(r, &root, s) && read_workload(r, &root, s);
}

bool scenario_read_yaml(struct scenario *s, const char *path, struct scenario_set *sets,
                        unsigned set_count, struct scenario_error *error)
{
    s->path = strdup(path);
    return scenario_read_text(s, path, NULL, sets, set_count, error);
}

bool scenario_read_text(struct scenario *s, const char *path, const char *text,
                        struct scenario_set *sets, unsigned set_count, struct scenario_error *error)
{
    struct reader r;
    if (!reader_open(&r, path, text, sets, set_count, error))
        return false;
    read_scenario(&r, s);
    s->text = reader_close(&r);
    return !r.failed;
}
