/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_xrc.c: extended reliable connections (annex A14): what is not as with RC. An initiator puts
 * the number of a shared receive queue into each request; a target finds with it the receives, the
 * protection domain and the CQ.
 */
#include <errno.h>

#include "script.h"

/* clang-format off */
#define INI(...) WITH(.ini = true, __VA_ARGS__)
#define TGT(...) WITH(.tgt = true, __VA_ARGS__)
#define XRC_OP(op) (0xa0 | (op))
enum {
    S_FIRST = XRC_OP(OP_SEND_FIRST),
    S_MIDDLE = XRC_OP(OP_SEND_MIDDLE),
    S_LAST = XRC_OP(OP_SEND_LAST),
    S_ONLY = XRC_OP(OP_SEND_ONLY),
    S_ONLY_IMM = XRC_OP(OP_SEND_ONLY_IMM),
    S_ONLY_INV = XRC_OP(OP_SEND_ONLY_INV),
    W_FIRST = XRC_OP(OP_WRITE_FIRST),
    W_LAST_IMM = XRC_OP(OP_WRITE_LAST_IMM),
    W_ONLY = XRC_OP(OP_WRITE_ONLY),
    READ = XRC_OP(OP_READ_REQUEST),
    RESP_FIRST = XRC_OP(OP_READ_RESP_FIRST),
    RESP_LAST = XRC_OP(OP_READ_RESP_LAST),
    RESP_ONLY = XRC_OP(OP_READ_RESP_ONLY),
    ACK = XRC_OP(OP_ACKNOWLEDGE),
    ATOMIC_ACK = XRC_OP(OP_ATOMIC_ACKNOWLEDGE),
    CAS = XRC_OP(OP_COMPARE_SWAP),
    ADD = XRC_OP(OP_FETCH_ADD),
};
#define INVALID(p, m) {OUT, ACK, .psn = p, .msn = m, .syn = NAK(NAK_INVALID_REQUEST)}, \
    {EVENT, EVENT_QP_REQ_ERR}, {STATE, QP_STATE_ERR}
#define NO_ACCESS(p, m) {OUT, ACK, .psn = p, .msn = m, .syn = NAK(NAK_REMOTE_ACCESS)}, \
    {EVENT, EVENT_QP_ACCESS_ERR}, {STATE, QP_STATE_ERR}

static const struct dialogue dialogues[] = {
    /* Initiator. Each OUT checks the number. */
    {"ini__each_request_names_the_queue", false, INI(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 600},
        {POST, WR_RDMA_WRITE, .id = 2, .len = 4},
        {POST, WR_RDMA_READ, .id = 3, .len = 8, .at = 4096},
        {POST, WR_ATOMIC_FETCH_AND_ADD, .id = 4, .len = 8, .at = 4104, .a = 5},
        {POST, WR_ATOMIC_CMP_AND_SWP, .id = 5, .len = 8, .at = 4112, .a = 5, .b = 6},
        {OUT, S_FIRST, .psn = 100, .len = 256}, {OUT, S_MIDDLE, .psn = 101, .len = 256, .at = 256},
        {OUT, S_LAST, .psn = 102, .len = 88, .at = 512, .ack_req = true},
        {OUT, W_ONLY, .psn = 103, .len = 4, .dma_len = 4, .ack_req = true},
        {OUT, READ, .psn = 104, .dma_len = 8, .ack_req = true},
        {OUT, ADD, .psn = 105, .a = 5, .ack_req = true},
        {OUT, CAS, .psn = 106, .a = 5, .b = 6, .ack_req = true},
        {IN, ACK, .psn = 103, .msn = 2}, {SCQE, WC_SEND, .id = 1}, {SCQE, WC_RDMA_WRITE, .id = 2},
        {IN, RESP_ONLY, .psn = 104, .len = 8, .msn = 3}, {SCQE, WC_RDMA_READ, .id = 3},
        {MEM, .at = 4096, .len = 8}, {IN, ATOMIC_ACK, .psn = 105, .a = 77, .msn = 4},
        {SCQE, WC_FETCH_ADD, .id = 4}, {CELL, .at = 4104, .a = 77},
        {IN, ATOMIC_ACK, .psn = 106, .a = 6, .msn = 5}, {SCQE, WC_COMP_SWAP, .id = 5},
        {CELL, .at = 4112, .a = 6})},
    {"ini__sends_again", true, INI(.timeout = 1), STEPS(
        {POST, WR_SEND, .id = 1}, {OUT, S_ONLY, .psn = 100, .ack_req = true}, {TIME, .ns = 9000},
        {OUT, S_ONLY, .psn = 100, .ack_req = true}, {IN, ACK, .psn = 100, .msn = 1},
        {SCQE, WC_SEND, .id = 1})},
    {"ini__takes_no_requests", true, INI(), STEPS(
        {IN, S_ONLY, .psn = 5}, {IN, READ, .psn = 5}, {SILENT},
        {COUNT, COUNTER_rx_drop_service, .n = 2}, {STATE, QP_STATE_RTS})},
    {"ini__responses_of_rc_are_none", true, INI(), STEPS(
        {POST, WR_SEND, .id = 1}, {OUT, S_ONLY, .psn = 100, .ack_req = true},
        {IN, OP_ACKNOWLEDGE, .psn = 100, .msn = 1}, {COUNT, COUNTER_rx_drop_service, .n = 1},
        {IN, ACK, .psn = 100, .msn = 1}, {SCQE, WC_SEND, .id = 1})},
    {"ini__has_no_receives", true, INI(), STEPS({RECV, .id = 1, .len = 4, .err = -EINVAL})},
    {"ini__refused_for_good", true, INI(), STEPS(
        {POST, WR_SEND, .id = 1}, {OUT, S_ONLY, .psn = 100, .ack_req = true},
        {IN, ACK, .psn = 100, .syn = NAK(NAK_INVALID_REQUEST)},
        {SCQE, .id = 1, .status = WC_REM_INV_REQ_ERR}, {STATE, QP_STATE_ERR})},

    /* Target. */
    {"tgt__send_of_three_packets", false, TGT(), STEPS(
        {RECV, .id = 1, .len = 600}, {IN, S_FIRST, .psn = 5, .len = 256},
        {IN, S_MIDDLE, .psn = 6, .len = 256, .at = 256},
        {IN, S_LAST, .psn = 7, .len = 8, .at = 512, .ack_req = true},
        {OUT, ACK, .psn = 7, .msn = 1, .syn = CREDITS(AETH_CREDITS_NONE)},
        {RCQE, WC_RECV, .id = 1, .len = 520}, {MEM, .len = 520})},
    {"tgt__each_message_has_its_queue", false, TGT(), STEPS(
        {RECV, .id = 1, .len = 8}, {RECV, .id = 2, .len = 8, .at = 100, .srq = SRQ_OTHER_PD,
         .key = K_OTHER},
        {IN, S_ONLY, .psn = 5, .len = 8, .tag = 1, .srq = SRQ_OTHER_PD},
        {IN, S_ONLY, .psn = 6, .len = 8, .tag = 2, .ack_req = true}, {OUT, ACK, .psn = 6, .msn = 2},
        {RCQE, WC_RECV, .id = 2, .len = 8}, {RCQE, WC_RECV, .id = 1, .len = 8},
        {MEM, .at = 100, .len = 8, .tag = 1}, {MEM, .len = 8, .tag = 2})},
    {"tgt__keys_are_of_the_queues_domain", false, TGT(), STEPS(
        {IN, W_ONLY, .psn = 5, .len = 4, .dma_len = 4},
        {IN, W_ONLY, .psn = 6, .len = 4, .va = 100, .dma_len = 4, .key = K_OTHER,
         .srq = SRQ_OTHER_PD, .ack_req = true},
        {OUT, ACK, .psn = 6, .msn = 2}, {MEM, .len = 4}, {MEM, .at = 100, .len = 4})},
    {"tgt__read_and_atomics", false, TGT(), STEPS(
        {SET, .at = 8, .a = 10}, {IN, READ, .psn = 5, .dma_len = 300, .va = 512},
        {OUT, RESP_FIRST, .psn = 5, .msn = 1, .len = 256, .at = 512},
        {OUT, RESP_LAST, .psn = 6, .msn = 1, .len = 44, .at = 768},
        {IN, ADD, .psn = 7, .va = 8, .a = 5}, {OUT, ATOMIC_ACK, .psn = 7, .msn = 2, .a = 10},
        {IN, CAS, .psn = 8, .va = 8, .a = 1, .b = 15},
        {OUT, ATOMIC_ACK, .psn = 8, .msn = 3, .a = 15},
        {CELL, .at = 8, .a = 1})},
    {"tgt__a_read_keeps_its_domain", false, TGT(), STEPS(
        {IN, READ, .psn = 5, .dma_len = 8, .va = 64, .key = K_OTHER, .srq = SRQ_OTHER_PD},
        {IN, W_ONLY, .psn = 6, .len = 4, .dma_len = 4, .ack_req = true},
        {OUT, RESP_ONLY, .psn = 5, .msn = 1, .len = 8, .at = 64}, {OUT, ACK, .psn = 6, .msn = 2},
        {MEM, .len = 4})},
    {"tgt__write_with_immediate", false, TGT(), STEPS(
        {RECV, .id = 1}, {IN, W_FIRST, .psn = 5, .len = 256, .dma_len = 260},
        {IN, W_LAST_IMM, .psn = 6, .len = 4, .at = 256, .imm = 9, .ack_req = true},
        {OUT, ACK, .psn = 6, .msn = 1},
        {RCQE, WC_RECV_RDMA_WITH_IMM, .id = 1, .len = 260, .flags = WC_WITH_IMM, .imm = 9},
        {MEM, .len = 260})},
    {"tgt__no_receive_is_waited_for", true, TGT(), STEPS(
        {IN, S_ONLY_IMM, .psn = 5, .imm = 3, .ack_req = true}, {OUT, ACK, .psn = 5, .syn = RNR(12)},
        {RECV, .id = 1}, {IN, S_ONLY_IMM, .psn = 5, .imm = 3, .ack_req = true},
        {OUT, ACK, .psn = 5, .msn = 1}, {RCQE, WC_RECV, .id = 1, .flags = WC_WITH_IMM, .imm = 3})},
    {"tgt__duplicates", true, TGT(), STEPS(
        {RECV, .id = 1}, {IN, S_ONLY, .psn = 5, .ack_req = true}, {OUT, ACK, .psn = 5, .msn = 1},
        {RCQE, WC_RECV, .id = 1}, {IN, S_ONLY, .psn = 5, .ack_req = true},
        {OUT, ACK, .psn = 5, .msn = 1},
        {IN, READ, .psn = 6, .dma_len = 4, .key = K_OTHER, .srq = SRQ_OTHER_PD},
        {OUT, RESP_ONLY, .psn = 6, .msn = 2, .len = 4},
        {IN, READ, .psn = 6, .dma_len = 4, .key = K_OTHER, .srq = SRQ_OTHER_PD},
        {OUT, RESP_ONLY, .psn = 6, .msn = 2, .len = 4},
        {IN, READ, .psn = 6, .dma_len = 4, .key = K_OTHER}, {SILENT},
        {COUNT, COUNTER_resp_dropped_replays, .n = 1})},
    {"tgt__a_gap_is_told", true, TGT(), STEPS(
        {IN, S_ONLY, .psn = 6, .srq = SRQ_GONE},
        {OUT, ACK, .psn = 5, .syn = NAK(NAK_PSN_SEQUENCE)}, {STATE, QP_STATE_RTS})},

    /* What ends it. */
    {"tgt__no_such_queue", true, TGT(), STEPS(
        {RECV, .id = 1}, {IN, S_ONLY, .psn = 5, .srq = SRQ_GONE}, INVALID(5, 0))},
    {"tgt__queue_of_another_domain", true, TGT(), STEPS(
        {RECV, .id = 1, .srq = SRQ_OTHER_DOMAIN}, {IN, S_ONLY, .psn = 5, .srq = SRQ_OTHER_DOMAIN},
        INVALID(5, 0))},
    {"tgt__write_for_no_queue", true, TGT(), STEPS(
        {IN, W_ONLY, .psn = 5, .len = 4, .dma_len = 4, .srq = SRQ_GONE}, INVALID(5, 0))},
    {"tgt__message_changes_its_queue", true, TGT(), STEPS(
        {RECV, .id = 1, .len = 600}, {RECV, .id = 2, .len = 600, .srq = SRQ_OTHER_PD},
        {IN, S_FIRST, .psn = 5, .len = 256},
        {IN, S_LAST, .psn = 6, .len = 4, .srq = SRQ_OTHER_PD}, INVALID(6, 0), {MEM, .len = 256},
        {RCQE, .id = 1, .status = WC_WR_FLUSH_ERR})},
    {"tgt__queue_goes_in_mid_message", true, TGT(), STEPS(
        {RECV, .id = 1, .len = 600}, {IN, S_FIRST, .psn = 5, .len = 256}, {MEM, .len = 256},
        {DESTROY, .srq = SRQ_OWN}, {IN, S_LAST, .psn = 6, .len = 4}, INVALID(6, 0))},
    {"tgt__key_of_another_domain", true, TGT(), STEPS(
        {IN, W_ONLY, .psn = 5, .len = 4, .dma_len = 4, .key = K_OTHER}, NO_ACCESS(5, 0))},
    {"tgt__read_by_a_key_of_another_domain", true, TGT(), STEPS(
        {IN, READ, .psn = 5, .dma_len = 4, .srq = SRQ_OTHER_PD}, NO_ACCESS(5, 0))},
    {"tgt__receive_with_a_key_of_another_domain", true, TGT(), STEPS(
        {RECV, .id = 1, .len = 4, .key = K_OTHER}, {IN, S_ONLY, .psn = 5, .len = 4},
        {OUT, ACK, .psn = 5, .syn = NAK(NAK_REMOTE_OPERATIONAL)},
        {RCQE, .id = 1, .status = WC_LOC_PROT_ERR}, {STATE, QP_STATE_ERR})},
    /* No window can be bound to a target. */
    {"tgt__invalidates_nothing", true, TGT(), STEPS(
        {RECV, .id = 1}, {IN, S_ONLY_INV, .psn = 5, .imm = K_ALL}, NO_ACCESS(5, 0),
        {RCQE, .id = 1, .status = WC_WR_FLUSH_ERR})},
    {"tgt__longer_than_the_receive", true, TGT(), STEPS(
        {RECV, .id = 1, .len = 3}, {IN, S_ONLY, .psn = 5, .len = 4}, INVALID(5, 0),
        {RCQE, .id = 1, .status = WC_LOC_LEN_ERR})},
    {"tgt__takes_no_responses_and_sends_nothing", true, TGT(), STEPS(
        {IN, ACK, .psn = 99, .msn = 1}, {IN, OP_SEND_ONLY, .psn = 5},
        {COUNT, COUNTER_rx_drop_service, .n = 2}, {POST, WR_SEND, .id = 1, .err = -EINVAL},
        {SILENT})},
    {"tgt__error_leaves_the_queue_alone", true, TGT(), STEPS(
        {RECV, .id = 1, .len = 4}, {MODIFY, QP_STATE_ERR}, {SILENT}, {MODIFY, QP_STATE_RESET},
        {MODIFY, QP_STATE_INIT}, {MODIFY, QP_STATE_RTR}, {IN, S_ONLY, .psn = 5, .ack_req = true},
        {OUT, ACK, .psn = 5, .msn = 1}, {EVENT, EVENT_COMM_EST}, {RCQE, WC_RECV, .id = 1})},
};
/* clang-format on */

int main(void)
{
    return script_run("xrc", dialogues, sizeof(dialogues) / sizeof(dialogues[0]));
}
