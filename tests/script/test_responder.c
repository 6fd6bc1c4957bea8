/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_responder.c: what an RC responder answers to each request, well formed or not, and what it
 * does to memory, receives, events and its own state.
 */
#include "script.h"

/* clang-format off */
#define ACK(...) {OUT, OP_ACKNOWLEDGE, __VA_ARGS__}
/* A fatal NAK: the QP is in error once it is out. */
#define INVALID(p, m) \
    ACK(.syn = NAK(NAK_INVALID_REQUEST), .psn = p, .msn = m), {EVENT, EVENT_QP_REQ_ERR}, \
    {STATE, QP_STATE_ERR}
#define NO_ACCESS(p, m) \
    ACK(.syn = NAK(NAK_REMOTE_ACCESS), .psn = p, .msn = m), {EVENT, EVENT_QP_ACCESS_ERR}, \
    {STATE, QP_STATE_ERR}
#define OPERATIONAL(p, m) \
    ACK(.syn = NAK(NAK_REMOTE_OPERATIONAL), .psn = p, .msn = m), {STATE, QP_STATE_ERR}
#define FLUSHED(i) {RCQE, .id = i, .status = WC_WR_FLUSH_ERR}
#define ADD(p) {IN, OP_FETCH_ADD, .psn = p, .va = 64, .a = 1}
#define ADDED(p, m, v) {OUT, OP_ATOMIC_ACKNOWLEDGE, .psn = p, .msn = m, .a = v}

static const struct dialogue dialogues[] = {
    /* Each operation as it should be. */
    {"send_only__acknowledged", false, WITH(), STEPS(
        {RECV, .id = 1, .at = 512, .len = 64},
        {IN, OP_SEND_ONLY, .psn = 5, .len = 16, .ack_req = true},
        ACK(.psn = 5, .msn = 1), {RCQE, WC_RECV, .id = 1, .len = 16}, {MEM, .at = 512, .len = 16})},
    {"send_only__unaligned_length", false, WITH(), STEPS(
        {RECV, .id = 1, .at = 513, .len = 64},
        {IN, OP_SEND_ONLY, .psn = 5, .len = 7, .ack_req = true},
        ACK(.psn = 5, .msn = 1), {RCQE, WC_RECV, .id = 1, .len = 7}, {MEM, .at = 513, .len = 7})},
    {"send_only__zero_length", false, WITH(), STEPS(
        {RECV, .id = 1}, {IN, OP_SEND_ONLY, .psn = 5, .ack_req = true},
        ACK(.psn = 5, .msn = 1), {RCQE, WC_RECV, .id = 1})},
    {"send_only__no_ack_unless_asked", false, WITH(), STEPS(
        {RECV, .id = 1, .len = 64}, {IN, OP_SEND_ONLY, .psn = 5, .len = 16},
        {SILENT}, {RCQE, WC_RECV, .id = 1, .len = 16}, {MEM, .len = 16})},
    {"send__three_packets", false, WITH(), STEPS(
        {RECV, .id = 1, .len = 1000}, {IN, OP_SEND_FIRST, .psn = 5, .len = 256},
        {IN, OP_SEND_MIDDLE, .psn = 6, .len = 256, .at = 256}, {SILENT},
        {IN, OP_SEND_LAST, .psn = 7, .len = 10, .at = 512, .ack_req = true},
        ACK(.psn = 7, .msn = 1), {RCQE, WC_RECV, .id = 1, .len = 522}, {MEM, .len = 522})},
    {"send__ack_req_inside_a_message", false, WITH(), STEPS(
        {RECV, .id = 1, .len = 1000}, {IN, OP_SEND_FIRST, .psn = 5, .len = 256, .ack_req = true},
        ACK(.psn = 5, .msn = 0), {IN, OP_SEND_LAST, .psn = 6, .len = 1, .at = 256, .ack_req = true},
        ACK(.psn = 6, .msn = 1), {RCQE, WC_RECV, .id = 1, .len = 257}, {MEM, .len = 257})},
    {"send__scattered_over_sges", false, WITH(), STEPS(
        {RECV, .id = 1, .at = 100, .len = 300, .sges = 4},
        {IN, OP_SEND_FIRST, .psn = 5, .len = 256},
        {IN, OP_SEND_LAST, .psn = 6, .len = 44, .at = 256, .ack_req = true},
        ACK(.psn = 6, .msn = 1), {RCQE, WC_RECV, .id = 1, .len = 300},
        {MEM, .at = 100, .len = 300})},
    {"send_imm__only_and_last", false, WITH(), STEPS(
        {RECV, .id = 1, .len = 300}, {RECV, .id = 2}, {RECV, .id = 3, .at = 1024, .len = 300},
        {IN, OP_SEND_ONLY_IMM, .psn = 5, .len = 256, .imm = 0x80000001},
        {IN, OP_SEND_ONLY_IMM, .psn = 6, .imm = 2}, {IN, OP_SEND_FIRST, .psn = 7, .len = 256},
        {IN, OP_SEND_LAST_IMM, .psn = 8, .len = 1, .at = 256, .imm = 3, .ack_req = true},
        ACK(.psn = 8, .msn = 3),
        {RCQE, WC_RECV, .id = 1, .len = 256, .imm = 0x80000001, .flags = WC_WITH_IMM},
        {RCQE, WC_RECV, .id = 2, .imm = 2, .flags = WC_WITH_IMM},
        {RCQE, WC_RECV, .id = 3, .len = 257, .imm = 3, .flags = WC_WITH_IMM},
        {MEM, .len = 256}, {MEM, .at = 1024, .len = 257})},
    {"send_inv__ends_the_key", true, WITH(), STEPS(
        {RECV, .id = 1}, {RECV, .id = 2},
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .key = K_WINDOW},
        {IN, OP_SEND_ONLY_INV, .psn = 6, .imm = K_WINDOW, .ack_req = true}, ACK(.psn = 6, .msn = 2),
        {RCQE, WC_RECV, .id = 1, .imm = K_WINDOW, .flags = WC_WITH_INV}, {MEM, .len = 4},
        {IN, OP_WRITE_ONLY, .psn = 7, .len = 4, .dma_len = 4, .tag = 1, .key = K_WINDOW},
        NO_ACCESS(7, 2), FLUSHED(2))},
    {"send_inv__last", false, WITH(), STEPS(
        {RECV, .id = 1, .len = 300}, {IN, OP_SEND_FIRST, .psn = 5, .len = 256},
        {IN, OP_SEND_LAST_INV, .psn = 6, .len = 4, .at = 256, .imm = K_WINDOW, .ack_req = true},
        ACK(.psn = 6, .msn = 1),
        {RCQE, WC_RECV, .id = 1, .len = 260, .imm = K_WINDOW, .flags = WC_WITH_INV},
        {MEM, .len = 260})},
    {"send_inv__no_such_key", true, WITH(), STEPS(
        {RECV, .id = 1}, {IN, OP_SEND_ONLY_INV, .psn = 5, .imm = K_NONE}, NO_ACCESS(5, 0),
        FLUSHED(1))},
    {"send_inv__key_of_another_pd", true, WITH(), STEPS(
        {RECV, .id = 1}, {IN, OP_SEND_ONLY_INV, .psn = 5, .imm = K_OTHER}, NO_ACCESS(5, 0),
        FLUSHED(1))},
    {"send_inv__a_region_stays", true, WITH(), STEPS(
        {RECV, .id = 1}, {IN, OP_SEND_ONLY_INV, .psn = 5, .imm = K_ALL}, NO_ACCESS(5, 0),
        FLUSHED(1))},
    {"window__of_this_qp", false, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .va = 8, .dma_len = 4, .len = 4, .key = K_WINDOW, .ack_req = true},
        ACK(.psn = 5, .msn = 1), {MEM, .at = 8, .len = 4})},
    {"window__beyond_its_end", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .va = SMALL_BYTES - 3, .dma_len = 4, .len = 4, .key = K_WINDOW},
        NO_ACCESS(5, 0))},
    {"write_only__acknowledged", false, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .va = 1000, .dma_len = 100, .len = 100, .ack_req = true},
        ACK(.psn = 5, .msn = 1), {MEM, .at = 1000, .len = 100})},
    {"write_only__to_the_last_byte", false, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .va = MEMORY_BYTES - 3, .dma_len = 3, .len = 3, .ack_req = true},
        ACK(.psn = 5, .msn = 1), {MEM, .at = MEMORY_BYTES - 3, .len = 3})},
    /* IBA C9-88 */
    {"write_only__zero_length_needs_no_key", false, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .va = 1u << 30, .key = K_NONE, .ack_req = true},
        ACK(.psn = 5, .msn = 1))},
    {"write__three_packets", false, WITH(), STEPS(
        {IN, OP_WRITE_FIRST, .psn = 5, .va = 8, .dma_len = 600, .len = 256},
        {IN, OP_WRITE_MIDDLE, .psn = 6, .len = 256, .at = 256},
        {IN, OP_WRITE_LAST, .psn = 7, .len = 88, .at = 512, .ack_req = true},
        ACK(.psn = 7, .msn = 1), {MEM, .at = 8, .len = 600})},
    /* IBA o9-20 */
    {"write_imm__takes_a_receive", false, WITH(), STEPS(
        {RECV, .id = 1}, {RECV, .id = 2, .at = 4096, .len = 64}, {RECV, .id = 3},
        {IN, OP_WRITE_ONLY_IMM, .psn = 5, .imm = 0x80000001},
        {IN, OP_WRITE_ONLY_IMM, .psn = 6, .imm = 2, .len = 1, .dma_len = 1},
        {IN, OP_WRITE_FIRST, .psn = 7, .va = 1024, .dma_len = 300, .len = 256},
        {IN, OP_WRITE_LAST_IMM, .psn = 8, .imm = 3, .len = 44, .at = 256, .ack_req = true},
        ACK(.psn = 8, .msn = 3),
        {RCQE, WC_RECV_RDMA_WITH_IMM, .id = 1, .imm = 0x80000001, .flags = WC_WITH_IMM},
        {RCQE, WC_RECV_RDMA_WITH_IMM, .id = 2, .len = 1, .imm = 2, .flags = WC_WITH_IMM},
        {RCQE, WC_RECV_RDMA_WITH_IMM, .id = 3, .len = 300, .imm = 3, .flags = WC_WITH_IMM},
        {MEM, .len = 1}, {MEM, .at = 1024, .len = 300})},
    {"read__one_packet", false, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .va = 300, .dma_len = 100},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1, .len = 100, .at = 300})},
    /* IBA C9-88 */
    {"read__zero_length_needs_no_key", false, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .key = K_NONE, .va = 1u << 30},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1})},
    {"read__first_middle_last", false, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .va = 10, .dma_len = 1025},
        {OUT, OP_READ_RESP_FIRST, .psn = 5, .msn = 1, .len = 256, .at = 10},
        {OUT, OP_READ_RESP_MIDDLE, .psn = 6, .len = 256, .at = 266},
        {OUT, OP_READ_RESP_MIDDLE, .psn = 7, .len = 256, .at = 522},
        {OUT, OP_READ_RESP_MIDDLE, .psn = 8, .len = 256, .at = 778},
        {OUT, OP_READ_RESP_LAST, .psn = 9, .msn = 1, .len = 1, .at = 1034},
        {IN, OP_READ_REQUEST, .psn = 10, .dma_len = 1},
        {OUT, OP_READ_RESP_ONLY, .psn = 10, .msn = 2, .len = 1})},
    {"read__region_without_local_write", false, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4, .key = K_READ},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1, .len = 4})},
    {"read__as_many_as_agreed", false, WITH(.max_dest_rd = 2), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4},
        {IN, OP_READ_REQUEST, .psn = 6, .dma_len = 8},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1, .len = 4},
        {OUT, OP_READ_RESP_ONLY, .psn = 6, .msn = 2, .len = 8},
        {IN, OP_READ_REQUEST, .psn = 7, .dma_len = 4},
        {OUT, OP_READ_RESP_ONLY, .psn = 7, .msn = 3, .len = 4})},
    /* IBA 9.4.5 */
    {"fetch_add__returns_the_old_value", false, WITH(), STEPS(
        {SET, .at = 64, .a = 10}, {IN, OP_FETCH_ADD, .psn = 5, .va = 64, .a = 32}, ADDED(5, 1, 10),
        {CELL, .at = 64, .a = 42}, {IN, OP_FETCH_ADD, .psn = 6, .va = 64, .a = UINT64_MAX},
        ADDED(6, 2, 42), {CELL, .at = 64, .a = 41})},
    {"compare_swap__equal_and_not", false, WITH(), STEPS(
        {SET, .at = 64, .a = 10}, {IN, OP_COMPARE_SWAP, .psn = 5, .va = 64, .a = 77, .b = 10},
        ADDED(5, 1, 10), {CELL, .at = 64, .a = 77},
        {IN, OP_COMPARE_SWAP, .psn = 6, .va = 64, .a = 88, .b = 10}, ADDED(6, 2, 77),
        {CELL, .at = 64, .a = 77})},

    /* Sequence numbers, acknowledgements, credits. */
    {"psn__wraps", false, WITH(.rq_psn = 0xfffffe), STEPS(
        {RECV, .id = 1, .len = 1000}, {IN, OP_SEND_FIRST, .psn = 0xfffffe, .len = 256},
        {IN, OP_SEND_MIDDLE, .psn = 0xffffff, .len = 256, .at = 256},
        {IN, OP_SEND_LAST, .psn = 0, .len = 4, .at = 512, .ack_req = true}, ACK(.psn = 0, .msn = 1),
        {RCQE, WC_RECV, .id = 1, .len = 516}, {MEM, .len = 516},
        {IN, OP_SEND_MIDDLE, .psn = 0xffffff, .len = 256, .tag = 1}, ACK(.psn = 0, .msn = 1))},
    {"psn__read_over_the_wrap", false, WITH(.rq_psn = 0xffffff), STEPS(
        {IN, OP_READ_REQUEST, .psn = 0xffffff, .dma_len = 300},
        {OUT, OP_READ_RESP_FIRST, .psn = 0xffffff, .msn = 1, .len = 256},
        {OUT, OP_READ_RESP_LAST, .psn = 0, .msn = 1, .len = 44, .at = 256},
        {IN, OP_WRITE_ONLY, .psn = 1, .ack_req = true}, ACK(.psn = 1, .msn = 2))},
    {"msn__wraps", false, WITH(), STEPS(
        {MSN, .msn = 0xfffffe}, {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true},
        ACK(.psn = 5, .msn = 0xffffff), {IN, OP_WRITE_ONLY, .psn = 6, .ack_req = true},
        ACK(.psn = 6, .msn = 0))},
    {"ack__coalesced", false, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true},
        {IN, OP_WRITE_ONLY, .psn = 6, .ack_req = true},
        {IN, OP_WRITE_ONLY, .psn = 7, .ack_req = true}, {IN, OP_WRITE_ONLY, .psn = 8},
        ACK(.psn = 8, .msn = 4), {SILENT})},
    {"ack__read_response_acknowledges_what_came_before", false, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true},
        {IN, OP_READ_REQUEST, .psn = 6, .dma_len = 4},
        {OUT, OP_READ_RESP_ONLY, .psn = 6, .msn = 2, .len = 4}, {SILENT})},
    {"ack__never_before_the_response_of_an_earlier_read", false, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 257},
        {IN, OP_WRITE_ONLY, .psn = 7, .ack_req = true},
        {OUT, OP_READ_RESP_FIRST, .psn = 5, .msn = 1, .len = 256},
        {OUT, OP_READ_RESP_LAST, .psn = 6, .msn = 1, .len = 1, .at = 256},
        ACK(.psn = 7, .msn = 2))},
    /* IBA 9.7.7.2 */
    {"credits__what_is_posted", false, WITH(), STEPS(
        {RECV, .id = 1}, {RECV, .id = 2}, {RECV, .id = 3}, {RECV, .id = 4}, {RECV, .id = 5},
        {RECV, .id = 6},
        {IN, OP_SEND_ONLY, .psn = 5, .ack_req = true}, ACK(.psn = 5, .msn = 1, .syn = CREDITS(4)),
        {RCQE, WC_RECV, .id = 1}, {IN, OP_SEND_ONLY, .psn = 6, .ack_req = true},
        ACK(.psn = 6, .msn = 2, .syn = CREDITS(4)), {RCQE, WC_RECV, .id = 2},
        {IN, OP_SEND_ONLY, .psn = 7, .ack_req = true}, ACK(.psn = 7, .msn = 3, .syn = CREDITS(3)),
        {RCQE, WC_RECV, .id = 3}, {IN, OP_READ_REQUEST, .psn = 8},
        {OUT, OP_READ_RESP_ONLY, .psn = 8, .msn = 4, .syn = CREDITS(3)},
        {IN, OP_SEND_ONLY, .psn = 9}, {IN, OP_SEND_ONLY, .psn = 10},
        {IN, OP_SEND_ONLY, .psn = 11, .ack_req = true},
        ACK(.psn = 11, .msn = 7, .syn = CREDITS(0)), {RCQE, WC_RECV, .id = 4},
        {RCQE, WC_RECV, .id = 5},
        {RCQE, WC_RECV, .id = 6})},
    /* IBA 9.7.7.2 */
    {"credits__none_with_an_srq", false, WITH(.srq = true), STEPS(
        {RECV, .id = 1}, {RECV, .id = 2}, {IN, OP_SEND_ONLY, .psn = 5, .ack_req = true},
        ACK(.psn = 5, .msn = 1, .syn = CREDITS(31)), {RCQE, WC_RECV, .id = 1})},
    {"srq__write_imm_takes_one", false, WITH(.srq = true), STEPS(
        {RECV, .id = 1}, {IN, OP_WRITE_ONLY_IMM, .psn = 5, .imm = 9, .ack_req = true},
        ACK(.psn = 5, .msn = 1),
        {RCQE, WC_RECV_RDMA_WITH_IMM, .id = 1, .imm = 9, .flags = WC_WITH_IMM})},
    {"comm_est__first_packet_in_rtr", false, WITH(.state = QP_STATE_RTR), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true}, ACK(.psn = 5, .msn = 1),
        {EVENT, EVENT_COMM_EST},
        {IN, OP_WRITE_ONLY, .psn = 6, .ack_req = true}, ACK(.psn = 6, .msn = 2),
        {MODIFY, QP_STATE_RTS},
        {IN, OP_WRITE_ONLY, .psn = 7, .ack_req = true}, ACK(.psn = 7, .msn = 3))},
    {"comm_est__awaited_in_rts", false, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true}, ACK(.psn = 5, .msn = 1), {EVENT, -1},
        {AWAIT}, {IN, OP_WRITE_ONLY, .psn = 6, .ack_req = true}, ACK(.psn = 6, .msn = 2),
        {EVENT, EVENT_QP_HEARD},
        {IN, OP_WRITE_ONLY, .psn = 7, .ack_req = true}, ACK(.psn = 7, .msn = 3), {EVENT, -1})},
    {"comm_est__awaited_in_rtr", false, WITH(.state = QP_STATE_RTR), STEPS(
        {AWAIT}, {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true}, ACK(.psn = 5, .msn = 1),
        {EVENT, EVENT_COMM_EST}, {MODIFY, QP_STATE_RTS},
        {IN, OP_WRITE_ONLY, .psn = 6, .ack_req = true}, ACK(.psn = 6, .msn = 2), {EVENT, -1})},
    {"solicited__wakes_an_arm_for_solicited", false, WITH(), STEPS(
        {RECV, .id = 1}, {RECV, .id = 2}, {ARM, 1}, {IN, OP_SEND_ONLY, .psn = 5}, {NOTIFY, 0},
        {IN, OP_SEND_ONLY, .psn = 6, .se = true}, {NOTIFY, 1}, {RCQE, WC_RECV, .id = 1},
        {RCQE, WC_RECV, .id = 2})},
    {"solicited__an_error_wakes_it_too", true, WITH(), STEPS(
        {RECV, .id = 1}, {ARM, 1}, {IN, OP_WRITE_LAST, .psn = 5, .len = 1}, INVALID(5, 0),
        {NOTIFY, 1}, FLUSHED(1))},
    {"sqd__responder_goes_on", false, WITH(), STEPS(
        {MODIFY, QP_STATE_SQD}, {EVENT, EVENT_SQ_DRAINED},
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1, .len = 4})},

    {"gap__one_nak_each", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 7, .ack_req = true}, ACK(.syn = NAK(0), .psn = 5),
        {IN, OP_WRITE_ONLY, .psn = 8, .ack_req = true}, {IN, OP_READ_REQUEST, .psn = 9}, {SILENT},
        {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true}, ACK(.psn = 5, .msn = 1),
        {IN, OP_WRITE_ONLY, .psn = 7, .ack_req = true}, ACK(.syn = NAK(0), .psn = 6, .msn = 1),
        {COUNT, COUNTER_out_of_sequence, .n = 4}, {COUNT, COUNTER_seq_nak_sent, .n = 2},
        {STATE, QP_STATE_RTS})},
    {"gap__nak_unsent_when_it_closes_moves_on", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 6}, {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true},
        ACK(.syn = NAK(0), .psn = 6, .msn = 1))},
    {"gap__nak_unsent_tells_of_the_last_that_was_dropped", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 8}, {IN, OP_WRITE_ONLY, .psn = 6}, {IN, OP_WRITE_ONLY, .psn = 5},
        {IN, OP_WRITE_ONLY, .psn = 6}, ACK(.syn = NAK(0), .psn = 7, .msn = 2))},
    {"gap__inside_a_message", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 1000}, {IN, OP_SEND_FIRST, .psn = 5, .len = 256},
        {IN, OP_SEND_LAST, .psn = 7, .len = 1, .at = 512, .ack_req = true},
        ACK(.syn = NAK(0), .psn = 6),
        {IN, OP_SEND_MIDDLE, .psn = 6, .len = 256, .at = 256},
        {IN, OP_SEND_LAST, .psn = 7, .len = 1, .at = 512, .ack_req = true}, ACK(.psn = 7, .msn = 1),
        {RCQE, WC_RECV, .id = 1, .len = 513}, {MEM, .len = 513})},
    {"gap__just_inside_half_the_circle", true, WITH(.rq_psn = 0), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 0x7fffff, .len = 4, .dma_len = 4},
        ACK(.syn = NAK(0), .psn = 0))},
    {"rnr__nak_with_the_timer", true, WITH(.min_rnr = 21), STEPS(
        {IN, OP_SEND_ONLY, .psn = 5, .len = 4, .ack_req = true}, ACK(.syn = RNR(21), .psn = 5),
        {IN, OP_SEND_ONLY, .psn = 6, .len = 4, .ack_req = true}, {SILENT},
        {RECV, .id = 1, .len = 4},
        {IN, OP_SEND_ONLY, .psn = 5, .len = 4, .ack_req = true}, ACK(.psn = 5, .msn = 1),
        {RCQE, WC_RECV, .id = 1, .len = 4}, {MEM, .len = 4},
        {COUNT, COUNTER_rnr_nak_sent, .n = 1})},
    {"rnr__again_at_each_try", true, WITH(.min_rnr = 0), STEPS(
        {IN, OP_SEND_FIRST, .psn = 5, .len = 256}, ACK(.syn = RNR(0), .psn = 5),
        {IN, OP_SEND_FIRST, .psn = 5, .len = 256}, ACK(.syn = RNR(0), .psn = 5),
        {STATE, QP_STATE_RTS})},
    {"rnr__write_imm_last", true, WITH(), STEPS(
        {IN, OP_WRITE_FIRST, .psn = 5, .dma_len = 260, .len = 256},
        {IN, OP_WRITE_LAST_IMM, .psn = 6, .len = 4, .at = 256, .imm = 1},
        ACK(.syn = RNR(12), .psn = 6),
        {RECV, .id = 1},
        {IN, OP_WRITE_LAST_IMM, .psn = 6, .len = 4, .at = 256, .imm = 1, .ack_req = true},
        ACK(.psn = 6, .msn = 1),
        {RCQE, WC_RECV_RDMA_WITH_IMM, .id = 1, .len = 260, .imm = 1, .flags = WC_WITH_IMM},
        {MEM, .len = 260})},
    {"rnr__empty_srq", true, WITH(.srq = true), STEPS(
        {IN, OP_SEND_ONLY, .psn = 5}, ACK(.syn = RNR(12), .psn = 5))},
    /* Order of packets in a message. */
    {"op_seq__middle_without_first", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 512}, {IN, OP_SEND_MIDDLE, .psn = 5, .len = 256}, INVALID(5, 0),
        FLUSHED(1))},
    {"op_seq__last_without_first", true, WITH(), STEPS({IN, OP_WRITE_LAST, .psn = 5, .len = 4},
        INVALID(5, 0))},
    {"op_seq__last_imm_without_first", true, WITH(), STEPS(
        {RECV, .id = 1}, {IN, OP_SEND_LAST_IMM, .psn = 5, .len = 4}, INVALID(5, 0), FLUSHED(1))},
    {"op_seq__first_after_first", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 512}, {RECV, .id = 2}, {IN, OP_SEND_FIRST, .psn = 5, .len = 256},
        {IN, OP_SEND_FIRST, .psn = 6, .len = 256}, INVALID(6, 0), FLUSHED(1), FLUSHED(2),
        {MEM, .len = 256})},
    {"op_seq__only_inside_a_message", true, WITH(), STEPS(
        {IN, OP_WRITE_FIRST, .psn = 5, .len = 256, .dma_len = 300},
        {IN, OP_WRITE_ONLY, .psn = 6, .len = 4, .dma_len = 4}, INVALID(6, 0), {MEM, .len = 256})},
    {"op_seq__read_inside_a_message", true, WITH(), STEPS(
        {IN, OP_WRITE_FIRST, .psn = 5, .len = 256, .dma_len = 300},
        {IN, OP_READ_REQUEST, .psn = 6}, INVALID(6, 0),
        {MEM, .len = 256})},
    {"op_seq__write_goes_on_as_send", true, WITH(), STEPS(
        {RECV, .id = 1, .at = 1024, .len = 512},
        {IN, OP_WRITE_FIRST, .psn = 5, .len = 256, .dma_len = 300},
        {IN, OP_SEND_LAST, .psn = 6, .len = 44}, INVALID(6, 0), FLUSHED(1), {MEM, .len = 256})},
    {"op_seq__send_goes_on_as_write", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 512}, {IN, OP_SEND_FIRST, .psn = 5, .len = 256},
        {IN, OP_WRITE_MIDDLE, .psn = 6, .len = 256}, INVALID(6, 0), FLUSHED(1), {MEM, .len = 256})},
    {"op_seq__send_goes_on_where_a_write_ended", true, WITH(), STEPS(
        {RECV, .id = 1, .at = 1024, .len = 512},
        {IN, OP_WRITE_FIRST, .psn = 5, .len = 256, .dma_len = 512},
        {IN, OP_WRITE_LAST, .psn = 6, .len = 256, .at = 256},
        {IN, OP_SEND_FIRST, .psn = 7, .len = 256, .tag = 1},
        {IN, OP_WRITE_LAST, .psn = 8, .len = 256, .at = 256, .tag = 1}, INVALID(8, 1), FLUSHED(1),
        {MEM, .len = 512}, {MEM, .at = 1024, .len = 256, .tag = 1})},
    {"op_valid__send_needs_no_right", false, WITH(.access = 0), STEPS(
        {RECV, .id = 1, .len = 4}, {IN, OP_SEND_ONLY, .psn = 5, .len = 4, .ack_req = true},
        ACK(.psn = 5, .msn = 1), {RCQE, WC_RECV, .id = 1, .len = 4}, {MEM, .len = 4})},
    {"op_valid__no_such_opcode", true, WITH(), STEPS({IN, 0x15, .psn = 5}, INVALID(5, 0))},
    {"op_valid__qp_grants_no_write", true, WITH(.access = ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4}, INVALID(5, 0))},
    {"op_valid__qp_grants_no_read", true, WITH(.access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4}, INVALID(5, 0))},
    {"op_valid__qp_grants_no_atomic", true, WITH(.access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ), STEPS(
        {IN, OP_FETCH_ADD, .psn = 5, .va = 64, .a = 1}, INVALID(5, 0))},
    {"op_valid__right_withdrawn_later", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4}, {ACCESS, .n = ACCESS_REMOTE_READ},
        {IN, OP_WRITE_ONLY, .psn = 6, .len = 4, .dma_len = 4, .tag = 1}, INVALID(6, 1),
        {MEM, .len = 4})},

    /* Lengths. */
    {"length__first_shorter_than_mtu", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 512}, {IN, OP_SEND_FIRST, .psn = 5, .len = 252}, INVALID(5, 0),
        FLUSHED(1))},
    {"length__middle_longer_than_mtu", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 2000}, {IN, OP_SEND_FIRST, .psn = 5, .len = 256},
        {IN, OP_SEND_MIDDLE, .psn = 6, .len = 512}, INVALID(6, 0), FLUSHED(1), {MEM, .len = 256})},
    {"length__only_longer_than_mtu", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 512}, {IN, OP_SEND_ONLY, .psn = 5, .len = 257}, INVALID(5, 0),
        FLUSHED(1))},
    {"length__last_longer_than_mtu", true, WITH(), STEPS(
        {IN, OP_WRITE_FIRST, .psn = 5, .len = 256, .dma_len = 516},
        {IN, OP_WRITE_LAST, .psn = 6, .len = 260},
        INVALID(6, 0), {MEM, .len = 256})},
    {"length__last_empty", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 512}, {IN, OP_SEND_FIRST, .psn = 5, .len = 256},
        {IN, OP_SEND_LAST, .psn = 6},
        INVALID(6, 0), FLUSHED(1), {MEM, .len = 256})},
    {"length__write_only_shorter_than_announced", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 8, .dma_len = 12}, INVALID(5, 0))},
    {"length__write_only_longer_than_announced", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 12, .dma_len = 8}, INVALID(5, 0))},
    {"length__write_only_of_nothing_with_payload", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 0, .key = K_NONE}, INVALID(5, 0))},
    {"length__write_last_shorter", true, WITH(), STEPS(
        {IN, OP_WRITE_FIRST, .psn = 5, .len = 256, .dma_len = 300},
        {IN, OP_WRITE_LAST, .psn = 6, .len = 40},
        INVALID(6, 0), {MEM, .len = 256})},
    {"length__write_last_longer", true, WITH(), STEPS(
        {IN, OP_WRITE_FIRST, .psn = 5, .len = 256, .dma_len = 300},
        {IN, OP_WRITE_LAST, .psn = 6, .len = 48},
        INVALID(6, 0), {MEM, .len = 256})},
    {"length__write_first_is_all", true, WITH(), STEPS(
        {IN, OP_WRITE_FIRST, .psn = 5, .len = 256, .dma_len = 256}, INVALID(5, 0))},
    {"length__write_middle_beyond", true, WITH(), STEPS(
        {IN, OP_WRITE_FIRST, .psn = 5, .len = 256, .dma_len = 300},
        {IN, OP_WRITE_MIDDLE, .psn = 6, .len = 256},
        INVALID(6, 0), {MEM, .len = 256})},
    {"length__read_over_1_gib", true, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = MAX_MESSAGE_BYTES + 1}, INVALID(5, 0))},
    {"length__write_over_1_gib", true, WITH(), STEPS(
        {IN, OP_WRITE_FIRST, .psn = 5, .len = 256, .dma_len = MAX_MESSAGE_BYTES + 1},
        INVALID(5, 0))},
    {"length__send_longer_than_the_receive", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 32}, {RECV, .id = 2}, {IN, OP_SEND_ONLY, .psn = 5, .len = 64},
        INVALID(5, 0),
        {RCQE, .id = 1, .status = WC_LOC_LEN_ERR}, FLUSHED(2))},
    {"length__send_outgrows_the_receive", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 300}, {IN, OP_SEND_FIRST, .psn = 5, .len = 256},
        {IN, OP_SEND_LAST, .psn = 6, .len = 45}, INVALID(6, 0),
        {RCQE, .id = 1, .status = WC_LOC_LEN_ERR},
        {MEM, .len = 256})},
    /* IBA 9.4.5 */
    {"atomic__unaligned", true, WITH(), STEPS({IN, OP_FETCH_ADD, .psn = 5, .va = 68, .a = 1},
        INVALID(5, 0))},

    {"atomic__aligned_address_of_unaligned_memory", true, WITH(), STEPS(
        {IN, OP_FETCH_ADD, .psn = 5, .va = 64, .a = 1, .key = K_SKEW}, INVALID(5, 0))},
    {"atomic__unaligned_address_of_aligned_memory", true, WITH(), STEPS(
        {IN, OP_FETCH_ADD, .psn = 5, .va = 68, .a = 1, .key = K_SKEW}, INVALID(5, 0))},
    /* Resources. */
    {"read__more_than_agreed", true, WITH(.max_dest_rd = 1), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4},
        {IN, OP_READ_REQUEST, .psn = 6, .dma_len = 4},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1, .len = 4}, INVALID(6, 1))},
    {"atomic__more_than_agreed", true, WITH(.max_dest_rd = 1), STEPS(
        {SET, .at = 64, .a = 3}, ADD(5), ADD(6), ADDED(5, 1, 3), INVALID(6, 1),
        {CELL, .at = 64, .a = 4})},
    {"read__none_agreed", true, WITH(.max_dest_rd = 0), STEPS({IN, OP_READ_REQUEST, .psn = 5},
        INVALID(5, 0))},

    /* Rights and bounds. */
    /* IBA C9-88 */
    {"access__write_no_such_key", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .key = K_NONE}, NO_ACCESS(5, 0),
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .ack_req = true}, {SILENT})},
    {"access__write_another_pd", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .key = K_OTHER}, NO_ACCESS(5, 0))},
    {"access__write_no_right", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .key = K_LOCAL}, NO_ACCESS(5, 0))},
    {"access__write_one_byte_beyond", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .va = SMALL_BYTES - 3, .len = 4, .dma_len = 4, .key = K_SMALL}, NO_ACCESS(5, 0))},
    {"access__write_one_byte_before", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .va = UINT64_MAX, .len = 4, .dma_len = 4}, NO_ACCESS(5, 0))},
    {"access__write_whole_range_at_the_first_packet", true, WITH(), STEPS(
        {IN, OP_WRITE_FIRST, .psn = 5, .va = SMALL_BYTES - 299, .len = 256, .dma_len = 300, .key = K_SMALL},
        NO_ACCESS(5, 0))},
    {"access__write_key_revoked_inside_the_message", true, WITH(), STEPS(
        {IN, OP_WRITE_FIRST, .psn = 5, .len = 256, .dma_len = 300, .key = K_SMALL},
        {REVOKE, .key = K_SMALL},
        {IN, OP_WRITE_LAST, .psn = 6, .len = 44, .at = 256}, NO_ACCESS(6, 0), {MEM, .len = 256})},
    /* IBA o9-20 */
    {"access__write_imm_bad_key_takes_no_receive", true, WITH(), STEPS(
        {RECV, .id = 1}, {IN, OP_WRITE_ONLY_IMM, .psn = 5, .len = 4, .dma_len = 4, .key = K_NONE},
        NO_ACCESS(5, 0),
        FLUSHED(1))},
    {"access__nothing_after_the_bad_one_is_executed", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .key = K_NONE},
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4},
        {IN, OP_WRITE_ONLY, .psn = 6, .len = 4, .dma_len = 4},
        {IN, OP_WRITE_ONLY, .psn = 4}, NO_ACCESS(5, 0))},
    {"access__all_of_an_earlier_read_before_the_nak", true, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 256 * 100},
        {IN, OP_WRITE_ONLY, .psn = 105, .len = 4, .dma_len = 4, .key = K_NONE},
        {OUT, OP_READ_RESP_FIRST, .psn = 5, .msn = 1, .len = 256}, {REPEAT, 1, .n = 98},
        {OUT, OP_READ_RESP_MIDDLE, .psn = 6, .len = 256, .at = 256},
        {OUT, OP_READ_RESP_LAST, .psn = 104, .msn = 1, .len = 256, .at = 256 * 99},
        NO_ACCESS(105, 1))},
    /* IBA C9-88 */
    {"access__read_no_such_key", true, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4, .key = K_NONE}, NO_ACCESS(5, 0))},
    {"access__read_no_right", true, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4, .key = K_WRITE}, NO_ACCESS(5, 0))},
    {"access__read_beyond", true, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = SMALL_BYTES + 1, .key = K_SMALL},
        NO_ACCESS(5, 0))},
    {"access__read_key_revoked_before_the_response", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true},
        {IN, OP_READ_REQUEST, .psn = 6, .dma_len = 4, .key = K_SMALL}, {REVOKE, .key = K_SMALL},
        NO_ACCESS(6, 2))},
    {"access__atomic_no_such_key", true, WITH(), STEPS(
        {IN, OP_FETCH_ADD, .psn = 5, .va = 64, .a = 1, .key = K_NONE}, NO_ACCESS(5, 0))},
    {"access__atomic_no_right", true, WITH(), STEPS(
        {IN, OP_COMPARE_SWAP, .psn = 5, .va = 64, .a = 1, .key = K_WRITE}, NO_ACCESS(5, 0))},
    {"access__atomic_beyond", true, WITH(), STEPS(
        {IN, OP_FETCH_ADD, .psn = 5, .va = SMALL_BYTES, .a = 1, .key = K_SMALL}, NO_ACCESS(5, 0))},
    {"access__nak_acknowledges_what_came_before", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .ack_req = true},
        {IN, OP_READ_REQUEST, .psn = 6, .dma_len = 4, .va = 64},
        {IN, OP_WRITE_ONLY, .psn = 7, .len = 4, .dma_len = 4, .key = K_NONE},
        {OUT, OP_READ_RESP_ONLY, .psn = 6, .msn = 2, .len = 4, .at = 64}, NO_ACCESS(7, 2),
        {MEM, .len = 4})},

    /* The receive itself is wrong: the peer's message was good. */
    {"operational__receive_without_a_key", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 64, .key = K_NONE}, {RECV, .id = 2, .len = 64},
        {IN, OP_SEND_ONLY, .psn = 5, .len = 4},
        OPERATIONAL(5, 0), {RCQE, .id = 1, .status = WC_LOC_PROT_ERR}, FLUSHED(2))},
    {"operational__receive_without_local_write", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 64, .key = K_READ}, {IN, OP_SEND_ONLY, .psn = 5, .len = 4},
        OPERATIONAL(5, 0),
        {RCQE, .id = 1, .status = WC_LOC_PROT_ERR})},
    {"operational__receive_key_revoked_inside_the_message", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 512, .key = K_SMALL}, {IN, OP_SEND_FIRST, .psn = 5, .len = 256},
        {REVOKE, .key = K_SMALL},
        {IN, OP_SEND_LAST, .psn = 6, .len = 4}, OPERATIONAL(6, 0),
        {RCQE, .id = 1, .status = WC_LOC_PROT_ERR},
        {MEM, .len = 256})},

    /* Leaving. */
    {"flush__in_order", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 512}, {RECV, .id = 2}, {RECV, .id = 3},
        {IN, OP_SEND_FIRST, .psn = 5, .len = 256},
        {MODIFY, QP_STATE_ERR}, FLUSHED(1), FLUSHED(2), FLUSHED(3), {MEM, .len = 256},
        {RECV, .id = 4}, FLUSHED(4))},
    {"flush__nothing_at_reset", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 512}, {IN, OP_SEND_FIRST, .psn = 5, .len = 256},
        {MODIFY, QP_STATE_RESET}, {MEM, .len = 256}, {RECV, .id = 2, .err = -22})},
    {"last_wqe__srq_qp_in_error", true, WITH(.srq = true), STEPS(
        {RECV, .id = 1, .len = 512}, {RECV, .id = 2, .len = 512},
        {IN, OP_SEND_FIRST, .psn = 5, .len = 256},
        {MODIFY, QP_STATE_ERR}, FLUSHED(1), {EVENT, EVENT_QP_LAST_WQE_REACHED}, {MEM, .len = 256})},
    {"cq_overflow__events_and_error", true, WITH(.cqe = 1), STEPS(
        {RECV, .id = 1}, {RECV, .id = 2}, {IN, OP_SEND_ONLY, .psn = 5},
        {IN, OP_SEND_ONLY, .psn = 6},
        {EVENT, EVENT_CQ_ERR}, {EVENT, EVENT_QP_FATAL}, {STATE, QP_STATE_ERR},
        {RCQE, WC_RECV, .id = 1})},
};
/* clang-format on */

int main(void)
{
    return script_run("responder", dialogues, sizeof(dialogues) / sizeof(dialogues[0]));
}
