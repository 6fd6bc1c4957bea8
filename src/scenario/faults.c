/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults.c: see faults.h. One that changes nothing is refused: of a link that is up already, or
 * whose loss another one says.
 */
#include "scenario/faults.h"

#include <inttypes.h>
#include <stdlib.h>

struct reading {
    struct reader *r;
    struct scenario *s;
    struct field list;
    uint32_t *item;   /* of each of s->fault, where it is in the list */
    uint8_t *had;     /* of each link, a mask of the faults it has, those without a time */
    uint64_t *mapped; /* of each node, a mask of the code points that are mapped */
};

static uint32_t find_link(const struct scenario *s, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < s->topology.links; i++)
        if ((s->link[i].node[0] == a && s->link[i].node[1] == b) ||
            (s->link[i].node[0] == b && s->link[i].node[1] == a))
            return i;
    return UINT32_MAX;
}

/* From its time on, behind those that are earlier or were there first. */
static void put_change(struct reading *g, const struct fabric_fault *fault, uint32_t item)
{
    struct scenario *s = g->s;
    uint32_t n = s->config.faults++;
    for (; n > 0 && s->fault[n - 1].at_ps > fault->at_ps; n--) {
        s->fault[n] = s->fault[n - 1];
        g->item[n] = g->item[n - 1];
    }
    s->fault[n] = *fault;
    g->item[n] = item;
}

/* Of the link, which has no such fault yet. */
static void put_state(struct reading *g, const struct field *f, uint32_t link, enum fault kind)
{
    struct fabric_link *l = &g->s->link[link];
    if ((g->had[link] >> kind & 1) != 0) {
        reader_fail(g->r, f, "there is a %s of this link before, one is expected",
                    kinds_fault[kind].name);
        return;
    }
    g->had[link] |= (uint8_t)(1u << kind);
    if (kind == FAULT_MTU)
        l->mtu_bytes = (uint32_t)reader_get_quantity(g->r, f, "mtu", QUANTITY_BYTES, 1,
                                                     FABRIC_MAX_FRAME_BYTES, 512);
    else if (kind == FAULT_LOSS)
        l->loss_ppm =
            (uint32_t)reader_get_quantity(g->r, f, "loss", QUANTITY_PPM, 0, 1000000, 1000);
    else
        l->corrupt_ppm =
            (uint32_t)reader_get_quantity(g->r, f, "corrupt", QUANTITY_PPM, 0, 1000000, 1000);
}

static void read_link_fault(struct reading *g, const struct field *f, uint32_t item,
                            enum fault kind)
{
    struct scenario *s = g->s;
    uint32_t a = reader_get_node(g->r, f, "a", s, "node");
    uint32_t b = reader_get_node(g->r, f, "b", s, "node"), link = find_link(s, a, b);
    if (g->r->failed)
        return;
    if (link == UINT32_MAX) {
        reader_fail(g->r, f, "there is no link between %s and %s, the ends of one are expected",
                    s->name[a], s->name[b]);
        return;
    }
    if (kind != FAULT_DOWN && kind != FAULT_UP) {
        put_state(g, f, link, kind);
        return;
    }
    struct fabric_fault fault = {reader_get_time(g->r, f, "at", SCENARIO_MAX_TIME_PS, 0), link,
                                 kind == FAULT_UP};
    put_change(g, &fault, item);
}

static void read_mapping(struct reading *g, const struct field *f)
{
    struct fabric_mapping *m = &g->s->mapping[g->s->config.mappings++];
    m->node = reader_get_node(g->r, f, "switch", g->s, "switch");
    m->pcp = g->s->config.switches.trust_pcp;
    if (!reader_only(g->r, f, "dscp pcp", m->pcp ? "pcp" : "dscp", "",
                     m->pcp ? "switches trust the PCP; pcp, or switches.trust: dscp, is expected"
                            : "switches trust the DSCP; dscp, or switches.trust: pcp, is expected"))
        return;
    if (m->pcp)
        m->dscp = (uint8_t)reader_get_count(g->r, f, "pcp", 0, FABRIC_PRIORITIES - 1, 3);
    else
        m->dscp = (uint8_t)reader_get_count(g->r, f, "dscp", 0, FABRIC_DSCPS - 1, 24);
    m->priority = (uint8_t)reader_get_count(g->r, f, "priority", 0, FABRIC_PRIORITIES - 1, 0);
    if (!g->r->failed && (g->mapped[m->node] >> m->dscp & 1) != 0)
        reader_fail(g->r, f, "%s %d is mapped by %s before, once is expected",
                    m->pcp ? "pcp" : "dscp", m->dscp, g->s->name[m->node]);
    else if (!g->r->failed)
        g->mapped[m->node] |= UINT64_C(1) << m->dscp;
}

static void read_fault(struct reading *g, uint32_t i)
{
    struct field item;
    reader_item(g->r, &g->list, i, &item);
    unsigned kind = reader_kind(g->r, &item, "fault", kinds_fault, READER_NO_KIND);
    if (g->r->failed)
        return;
    if (kind == FAULT_MAPPING)
        read_mapping(g, &item);
    else
        read_link_fault(g, &item, i, (enum fault)kind);
}

/* A link goes down when it is up, and up when it is down. */
static void check_changes(struct reading *g)
{
    const struct scenario *s = g->s;
    enum { IS_DOWN = 1 << FAULT_DOWN };
    for (uint32_t i = 0; i < s->config.faults && !g->r->failed; i++) {
        const struct fabric_fault *fault = &s->fault[i];
        const struct fabric_link *l = &s->link[fault->link];
        bool down = (g->had[fault->link] & IS_DOWN) != 0;
        if (down == fault->up) {
            g->had[fault->link] ^= IS_DOWN;
            continue;
        }
        struct field item;
        char at[QUANTITY_TEXT_BYTES];
        reader_item(g->r, &g->list, g->item[i], &item);
        reader_fail(g->r, &item, "%s - %s is %s already at %s; a %s in between is expected",
                    s->name[l->node[0]], s->name[l->node[1]], down ? "down" : "up",
                    quantity_print(fault->at_ps, QUANTITY_TIME, at),
                    kinds_fault[down ? FAULT_UP : FAULT_DOWN].name);
    }
}

bool faults_read(struct reader *r, const struct field *root, struct scenario *s)
{
    struct reading g = {.r = r, .s = s};
    reader_get(r, root, "faults", &g.list);
    unsigned n = reader_items(r, &g.list);
    s->config.fault = s->fault = calloc(n + 1u, sizeof(*s->fault));
    s->config.mapping = s->mapping = calloc(n + 1u, sizeof(*s->mapping));
    g.item = calloc(n + 1u, sizeof(*g.item));
    g.had = calloc(s->topology.links + 1u, sizeof(*g.had));
    g.mapped = calloc(s->topology.nodes + 1u, sizeof(*g.mapped));
    bool got = s->fault != NULL && s->mapping != NULL && g.item != NULL && g.had != NULL &&
               g.mapped != NULL;
    if (!got)
        reader_fail(r, &g.list, "too many for the memory");
    for (unsigned i = 0; got && i < n && !r->failed; i++)
        read_fault(&g, i);
    if (got)
        check_changes(&g);
    free(g.item);
    free(g.had);
    free(g.mapped);
    return !r->failed;
}
