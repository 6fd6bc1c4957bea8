/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters.h: what the engine counts, once, by name. Names are those that RoCE adapters and the
 * kernel use in hw_counters where they have one. Counters only grow; relaxed atomics, read at any
 * time.
 */
#ifndef NIC_COUNTERS_H
#define NIC_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#define NIC_COUNTERS(X)                                                                            \
    X(tx_packets)                 /* packets handed to the port */                                 \
    X(tx_bytes)                   /* payload bytes of them */                                      \
    X(rx_packets)                 /* packets accepted by a QP */                                   \
    X(rx_bytes)                   /* payload bytes of them */                                      \
    X(tx_trains)                  /* trains handed to the port */                                  \
    X(rx_icrc_encapsulated)       /* dropped: wrong ICRC */                                        \
    X(rx_drop_no_qp)              /* dropped: no such QPN */                                       \
    X(rx_drop_state)              /* dropped: QP not in a state to receive this */                 \
    X(rx_drop_peer)               /* dropped: addresses are not those of the QP */                 \
    X(rx_drop_pkey)               /* dropped: P_Key mismatch */                                    \
    X(rx_drop_service)            /* dropped: opcode of another transport service */               \
    X(rx_drop_malformed)          /* dropped: response or datagram that makes no sense */          \
    X(rx_drop_no_recv)            /* dropped: datagram or UC, no receive was posted */             \
    X(rx_drop_recv_small)         /* dropped: datagram or UC, receive too small */                 \
    X(rx_drop_message)            /* UC: messages given up: a part lost, or not allowed */         \
    X(qkey_viol_cntr)             /* dropped: datagram with another Q_Key */                       \
    X(gsi_rx_mads)                /* QP 1: MADs taken in */                                        \
    X(gsi_tx_mads)                /* QP 1: MADs sent */                                            \
    X(gsi_drop_class)             /* QP 1: MADs of a class that nobody serves: dropped */          \
    X(gsi_rx_full)                /* QP 1: MADs dropped, too many waited */                        \
    X(out_of_sequence)            /* responder: request PSN ahead of the expected one */           \
    X(duplicate_request)          /* responder: request PSN behind the expected one */             \
    X(rnr_nak_sent)               /* responder: no receive posted */                               \
    X(seq_nak_sent)               /* responder: PSN sequence error NAK */                          \
    X(resp_remote_access_errors)  /* responder: remote access error NAK */                         \
    X(resp_invalid_request)       /* responder: invalid request NAK */                             \
    X(resp_operational_errors)    /* responder: remote operational error NAK */                    \
    X(resp_dropped_replays)       /* responder: duplicate READ/atomic no longer on record */       \
    X(resp_dropped_requests)      /* responder: no room for the answer because of FLUSHes */       \
    X(packet_seq_err)             /* requester: PSN sequence error NAK received */                 \
    X(implied_nak_seq_err)        /* requester: response skipped PSNs */                           \
    X(local_ack_timeout_err)      /* requester: ack timer ran out */                               \
    X(rnr_nak_retry_err)          /* requester: RNR NAK received */                                \
    X(req_remote_access_errors)   /* requester: remote access error NAK received */                \
    X(req_remote_invalid_request) /* requester: invalid request NAK received */                    \
    X(req_remote_op_errors)       /* requester: remote operational error NAK received */           \
    X(req_ghost_acks)             /* requester: response to a PSN that was never sent */           \
    X(req_stale_acks)             /* requester: response to what is already complete */            \
    X(retransmitted_packets)      /* requester: packets sent again */                              \
    X(retry_exceeded)             /* QPs that gave up: ack retries */                              \
    X(rnr_retry_exceeded)         /* QPs that gave up: RNR retries */                              \
    X(cq_overflows)               /* CQs that ran over */                                          \
    X(np_ecn_marked_roce_packets) /* CE mark seen: the network is congested */                     \
    X(np_cnp_sent)                /* congestion notifications sent */                              \
    X(rp_cnp_handled)             /* congestion notifications received */                          \
    X(np_rtt_answers)             /* probes of the round-trip time answered */                     \
    X(rp_rtt_probes)              /* such probes sent */                                           \
    X(rp_rtt_handled)             /* and their answers */                                          \
    X(rp_rtt_ignored)             /* answers that nobody waited for */                             \
    X(rp_slowed)                  /* QPs whose rate went below their line */                       \
    X(rp_recovered)               /* and came back to it */

enum nic_counter {
#define X(name) COUNTER_##name,
    NIC_COUNTERS(X)
#undef X
        COUNTER_COUNT
};

struct nic_counters {
    _Atomic uint64_t value[COUNTER_COUNT];
};

const char *counters_name(enum nic_counter c);

static inline void counters_add(struct nic_counters *c, enum nic_counter which, uint64_t n)
{
    atomic_fetch_add_explicit(&c->value[which], n, memory_order_relaxed);
}

static inline uint64_t counters_get(const struct nic_counters *c, enum nic_counter which)
{
    return atomic_load_explicit(&c->value[which], memory_order_relaxed);
}

#endif
