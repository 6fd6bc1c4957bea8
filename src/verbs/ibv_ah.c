/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_ah.c: address handles, and the path that an address vector means.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "verbs/ibv_objects.h"

enum {
    AH_DEFAULT_HOP_LIMIT = 64, /* for those who leave it 0: such a packet could not leave */
    AH_GRH_IPV4 = 20, /* where an IPv4 header starts in the 40 bytes of a UD receive (IBA A17) */
    AH_IPV4_BYTES = 20,
};

/* A static rate in units of the path, rounded down; -EINVAL: nobody's code. */
static int ah_rate(uint8_t code)
{
    int mbps = ibv_rate_to_mbps((enum ibv_rate)code);

    if (code == IBV_RATE_MAX)
        return 0;
    /* 14 Gb/s are 14.0625 */
    return mbps > 0 ? (mbps + 1) * 1000 / PATH_RATE_KBPS : -EINVAL;
}

int ibv_ah_path(struct ibv_context *context, const struct ibv_ah_attr *attr, struct nic_path *path)
{
    static const struct net_addr none;

    if (!attr->is_global || attr->port_num != VERBS_PORT)
        return -EINVAL;
    memset(path, 0, sizeof(*path));
    int rate = ah_rate(attr->static_rate);
    if (rate < 0)
        return rate;
    path->rate = (uint32_t)rate & 0xfff;
    int err = verbena_path_local(obj_ctx(context)->host, attr->grh.sgid_index, path);
    if (err != 0)
        return err == -ENODATA ? -EINVAL : err;
    memcpy(path->remote.b, attr->grh.dgid.raw, sizeof(path->remote.b));
    if (memcmp(&path->remote, &none, sizeof(none)) == 0 ||
        net_addr_is_v4(&path->remote) != net_addr_is_v4(&path->local))
        return -EINVAL;
    if (net_addr_is_group(&path->remote)) { /* no route says by which interface it goes */
        struct verbena_gid gid;
        err = verbena_gid_query(obj_ctx(context)->host, attr->grh.sgid_index, &gid);
        if (err != 0)
            return -EINVAL;
        path->scope_id = gid.ifindex;
    }
    path->traffic_class = attr->grh.traffic_class;
    path->hop_limit = attr->grh.hop_limit != 0 ? attr->grh.hop_limit : AH_DEFAULT_HOP_LIMIT;
    path->flow_label = attr->grh.flow_label & 0xfffff;
    if (path->flow_label != 0)
        path->udp_sport = verbena_label_sport(path->flow_label);
    return 0;
}

VERBS_ABI struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct ibv_ah_obj *obj = calloc(1, sizeof(*obj));
    if (obj == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    int err = ibv_ah_path(pd->context, attr, &obj->path);
    if (err == 0)
        err = ibv_pd_hold(pd); /* as long as it lives */
    if (err != 0) {
        free(obj);
        errno = -err;
        return NULL;
    }
    obj->ibv.context = pd->context;
    obj->ibv.pd = pd;
    obj->ibv.handle = obj_born(pd->context);
    obj_pd_use(pd, 1);
    return &obj->ibv;
}

VERBS_ABI int ibv_destroy_ah(struct ibv_ah *ah)
{
    struct ibv_context *context = ah->context;

    ibv_pd_release(ah->pd);
    obj_pd_use(ah->pd, -1);
    free(ah);
    obj_died(context);
    return 0;
}

static void ah_v4_gid(const uint8_t *v4, union ibv_gid *gid)
{
    memset(gid->raw, 0, 10);
    memset(gid->raw + 10, 0xff, 2);
    memcpy(gid->raw + 12, v4, 4);
}

/* An IPv4 header without options whose checksum is right (RFC 1071): the 40 bytes may be IPv6. */
static bool ah_v4_header(const uint8_t *p)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < AH_IPV4_BYTES; i += 2)
        sum += get_be16(p + i);
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return p[0] == 0x45 && sum == 0xffff;
}

/* Index of our own GID, or -1. */
static int ah_find_gid(struct ibv_context *context, const union ibv_gid *gid)
{
    for (int i = 0; i < VERBENA_GID_TABLE_SIZE; i++) {
        union ibv_gid have;
        if (ibv_query_gid(context, VERBS_PORT, i, &have) != 0)
            break;
        if (memcmp(have.raw, gid->raw, sizeof(have.raw)) == 0)
            return i;
    }
    return -1;
}

/* The way back to who sent a datagram, from the 40 bytes in front of it. */
VERBS_ABI int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
                                  struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
    const uint8_t *p = (const uint8_t *)grh;
    union ibv_gid ours;

    memset(attr, 0, sizeof(*attr));
    if (port_num != VERBS_PORT || grh == NULL || (wc->wc_flags & IBV_WC_GRH) == 0) {
        errno = EINVAL;
        return -1;
    }
    /* The IPv4 form has 20 bytes of no meaning in front, which may look like IPv6 (IBA A17.4.5.2).
     */
    if (ah_v4_header(p + AH_GRH_IPV4)) {
        attr->grh.traffic_class = p[AH_GRH_IPV4 + 1];
        ah_v4_gid(p + AH_GRH_IPV4 + 12, &attr->grh.dgid);
        ah_v4_gid(p + AH_GRH_IPV4 + 16, &ours);
    } else if (p[0] >> 4 == 6) {
        uint32_t version_class_flow = get_be32(p);
        attr->grh.traffic_class = (uint8_t)(version_class_flow >> 20);
        attr->grh.flow_label = version_class_flow & 0xfffff;
        memcpy(attr->grh.dgid.raw, p + 8, sizeof(attr->grh.dgid.raw));
        memcpy(ours.raw, p + 24, sizeof(ours.raw));
    } else {
        errno = EINVAL;
        return -1;
    }
    int index = ah_find_gid(context, &ours);
    if (index < 0) {
        errno = EINVAL;
        return -1;
    }
    attr->grh.sgid_index = (uint8_t)index;
    attr->grh.hop_limit = UINT8_MAX;
    attr->is_global = 1;
    attr->port_num = port_num;
    attr->sl = wc->sl;
    return 0;
}

VERBS_ABI struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
                                               struct ibv_grh *grh, uint8_t port_num)
{
    struct ibv_ah_attr attr;

    if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0)
        return NULL;
    return ibv_create_ah(pd, &attr);
}

/* The link layer address is the operating system's business here. */
VERBS_ABI int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                          uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
    (void)context;
    (void)attr;
    (void)eth_mac;
    (void)vid;
    return EOPNOTSUPP;
}
