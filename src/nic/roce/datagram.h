/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * datagram.h: unreliable datagrams (UD): each WQE is one packet with a destination of its own, and
 * is done when it has gone out (unreliable.h); each packet that arrives is a receive, or is dropped
 * in silence. All are called with the QP's lock held.
 */
#ifndef NIC_ROCE_DATAGRAM_H
#define NIC_ROCE_DATAGRAM_H

#include "verbena/port.h"

struct qp;

/* INIT -> RTR; active_mtu_bytes: what the port can send, 0: not known. */
void datagram_ready(struct qp *qp, uint16_t active_mtu_bytes);

/* Where the next WQE goes, if one is left to send. */
const struct nic_path *datagram_target(const struct qp *qp, uint32_t *qpn);

/* Begins a train and fills it with what goes by one path; false: nothing to send now. */
bool datagram_next(struct qp *qp, struct train *t);

/* One packet of this service, with the right P_Key. */
void datagram_input(struct qp *qp, const struct rx_packet *p);

#endif
