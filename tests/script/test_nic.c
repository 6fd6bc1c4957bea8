/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_nic.c: which packets reach a QP at all: the others are dropped in silence and counted. And
 * in which order requests and answers leave.
 */
#include "script.h"

/* clang-format off */
#define ACK(...) {OUT, OP_ACKNOWLEDGE, __VA_ARGS__}

static const struct dialogue dialogues[] = {
    /* IBA 10.9.3 */
    {"admit__odd_but_allowed", false, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true, .odd = ODD_MIG | ODD_PKEY_PART | ODD_CE},
        ACK(.psn = 5, .msn = 1), {COUNT, COUNTER_np_ecn_marked_roce_packets, .n = 1})},
    {"admit__wrong_source", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .ack_req = true, .odd = ODD_SRC},
        {SILENT},
        {COUNT, COUNTER_rx_drop_peer, .n = 1})},
    {"admit__wrong_destination", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .ack_req = true, .odd = ODD_DST},
        {SILENT},
        {COUNT, COUNTER_rx_drop_peer, .n = 1})},
    {"admit__wrong_qpn", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .ack_req = true, .odd = ODD_QPN},
        {SILENT},
        {COUNT, COUNTER_rx_drop_no_qp, .n = 1})},
    /* IBA 10.9.3 */
    {"admit__wrong_pkey", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .ack_req = true, .odd = ODD_PKEY},
        {SILENT},
        {COUNT, COUNTER_rx_drop_pkey, .n = 1})},
    {"admit__wrong_icrc", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .ack_req = true, .odd = ODD_ICRC},
        {SILENT},
        {COUNT, COUNTER_rx_icrc_encapsulated, .n = 1})},
    {"admit__another_service", true, WITH(), STEPS(
        {IN, 0x2a, .psn = 5, .len = 4, .dma_len = 4}, {IN, 0x64, .psn = 5, .len = 4}, {SILENT},
        {COUNT, COUNTER_rx_drop_service, .n = 2})},
    {"admit__reset_is_silent", true, WITH(.state = QP_STATE_RESET), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .ack_req = true}, {SILENT},
        {COUNT, COUNTER_rx_drop_state, .n = 1})},
    {"admit__init_is_silent", true, WITH(.state = QP_STATE_INIT), STEPS(
        {RECV, .id = 1, .len = 4}, {IN, OP_SEND_ONLY, .psn = 5, .len = 4, .ack_req = true},
        {SILENT},
        {COUNT, COUNTER_rx_drop_state, .n = 1}, {MODIFY, QP_STATE_RTR},
        {IN, OP_SEND_ONLY, .psn = 5, .len = 4, .ack_req = true}, ACK(.psn = 5, .msn = 1),
        {EVENT, EVENT_COMM_EST}, {RCQE, WC_RECV, .id = 1, .len = 4}, {MEM, .len = 4})},
    {"admit__error_is_silent", true, WITH(), STEPS(
        {MODIFY, QP_STATE_ERR},
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .ack_req = true},
        {IN, OP_READ_REQUEST, .psn = 5}, {SILENT}, {COUNT, COUNTER_rx_drop_state, .n = 2})},
    {"admit__response_in_rtr_dropped", true, WITH(.state = QP_STATE_RTR), STEPS(
        {IN, OP_ACKNOWLEDGE, .psn = 100}, {SILENT}, {COUNT, COUNTER_rx_drop_state, .n = 1})},
    /* A ping-pong: the peer waits for the request, not for the ACK; and so each time. */
    {"output__after_idle_a_request_goes_before_the_ack", false, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true}, {POST, WR_RDMA_WRITE, .id = 1},
        {OUT, OP_WRITE_ONLY, .psn = 100, .ack_req = true}, ACK(.psn = 5, .msn = 1), {SILENT},
        {COUNT, COUNTER_tx_trains, .n = 1}, /* one send for both */
        {IN, OP_ACKNOWLEDGE, .psn = 100, .msn = 1}, {SCQE, WC_RDMA_WRITE, .id = 1},
        {IN, OP_WRITE_ONLY, .psn = 6, .ack_req = true}, {POST, WR_RDMA_WRITE, .id = 2},
        {OUT, OP_WRITE_ONLY, .psn = 101, .ack_req = true}, ACK(.psn = 6, .msn = 2), {SILENT},
        {IN, OP_ACKNOWLEDGE, .psn = 101, .msn = 2}, {SCQE, WC_RDMA_WRITE, .id = 2})},
    /* Shorter than an ACK, or not the last of equal packets: nothing can ride behind it. */
    {"output__an_ack_that_does_not_fit_follows", false, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true}, {POST, WR_SEND, .id = 1},
        {OUT, OP_SEND_ONLY, .psn = 100, .ack_req = true}, ACK(.psn = 5, .msn = 1), {SILENT},
        {COUNT, COUNTER_tx_trains, .n = 2},
        {IN, OP_ACKNOWLEDGE, .psn = 100, .msn = 1}, {SCQE, WC_SEND, .id = 1},
        {IN, OP_WRITE_ONLY, .psn = 6, .ack_req = true}, {POST, WR_SEND, .id = 2, .len = 300},
        {OUT, OP_SEND_FIRST, .psn = 101, .len = 256},
        {OUT, OP_SEND_LAST, .psn = 102, .len = 44, .at = 256, .ack_req = true},
        ACK(.psn = 6, .msn = 2), {SILENT}, {COUNT, COUNTER_tx_trains, .n = 4})},
    {"output__an_ack_never_overtakes_a_response", false, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 1024},
        {IN, OP_WRITE_ONLY, .psn = 9, .ack_req = true}, {POST, WR_RDMA_WRITE, .id = 1},
        {OUT, OP_READ_RESP_FIRST, .psn = 5, .msn = 1, .len = 256},
        {OUT, OP_READ_RESP_MIDDLE, .psn = 6, .len = 256, .at = 256},
        {OUT, OP_WRITE_ONLY, .psn = 100, .ack_req = true}, /* its turn, without company */
        {OUT, OP_READ_RESP_MIDDLE, .psn = 7, .len = 256, .at = 512},
        {OUT, OP_READ_RESP_LAST, .psn = 8, .msn = 1, .len = 256, .at = 768},
        ACK(.psn = 9, .msn = 2), {SILENT})},
    {"output__a_nak_does_not_ride", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 7, .ack_req = true}, {POST, WR_RDMA_WRITE, .id = 1},
        {OUT, OP_ACKNOWLEDGE, .psn = 5, .syn = NAK(0)},
        {OUT, OP_WRITE_ONLY, .psn = 100, .ack_req = true}, {SILENT},
        {COUNT, COUNTER_tx_trains, .n = 2})},
    {"output__an_ack_goes_alone", false, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true}, ACK(.psn = 5, .msn = 1), {SILENT})},
};
/* clang-format on */

int main(void)
{
    return script_run("nic", dialogues, sizeof(dialogues) / sizeof(dialogues[0]));
}
