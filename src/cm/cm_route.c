/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm_route.c: what can be said about a MAD without knowing any connection: which process it is for,
 * and what nobody would answer to it.
 */
#include "cm/cm.h"

#include "base/bytes.h"

void cm_route(const uint8_t *mad, size_t n, struct cm_route *out)
{
    struct cm_msg m;
    *out = (struct cm_route){.kind = CM_ROUTE_NONE};
    if (cm_msg_check(mad, n) != MAD_OK)
        return;
    cm_msg_parse(mad, &m);
    uint32_t id = cm_msg_remote_comm_id(&m);
    if (m.header.attribute == CM_REQ || m.header.attribute == CM_SIDR_REQ) {
        out->kind = CM_ROUTE_SERVICE;
        out->service_id = m.header.attribute == CM_REQ ? m.req.service_id : m.sidr_req.service_id;
    } else if (id == 0) {
        out->kind = CM_ROUTE_ALL;
    } else {
        out->kind = CM_ROUTE_SLOT;
        out->slot = id >> CM_SLOT_SHIFT;
    }
}

/* IBA 12.6.7.2 */
bool cm_refuse(const uint8_t *mad, size_t n, uint8_t answer[MAD_BYTES])
{
    struct cm_msg m, a = {.header = {0}};
    if (cm_msg_check(mad, n) != MAD_OK)
        return false;
    cm_msg_parse(mad, &m);
    a.header.tid = m.header.tid;
    /* Where both ids have the same place in answer and question; SIDR apart. */
    a.rej.local_comm_id = cm_msg_remote_comm_id(&m);
    a.rej.remote_comm_id = cm_msg_local_comm_id(&m);
    switch (m.header.attribute) {
    case CM_REQ:
        a.header.attribute = CM_REJ;
        a.rej.about = CM_ABOUT_REQ;
        a.rej.reason = CM_REJ_INVALID_SERVICE_ID;
        break;
    case CM_REP:
        a.header.attribute = CM_REJ;
        a.rej.about = CM_ABOUT_REP;
        a.rej.reason = CM_REJ_INVALID_COMM_ID;
        break;
    case CM_DREQ:
        a.header.attribute = CM_DREP;
        break;
    case CM_LAP:
        a.header.attribute = CM_APR;
        a.apr.status = CM_APR_INVALID_COMM_ID;
        break;
    case CM_SIDR_REQ:
        a.header.attribute = CM_SIDR_REP;
        a.sidr_rep = (struct cm_sidr_rep){
            .request_id = m.sidr_req.request_id,
            .service_id = m.sidr_req.service_id,
            .status = CM_SIDR_UNSUPPORTED,
        };
        break;
    default:
        return false;
    }
    cm_msg_build(&a, answer);
    return true;
}

void cm_farewell(const struct cm_ends *ends, uint8_t mad[MAD_BYTES])
{
    struct cm_msg m = {
        .header = {.attribute = CM_DREQ, .tid = ends->local_comm_id}
    };
    m.dreq.local_comm_id = ends->local_comm_id;
    m.dreq.remote_comm_id = ends->remote_comm_id;
    m.dreq.remote_qpn = ends->remote_qpn;
    cm_msg_build(&m, mad);
}
