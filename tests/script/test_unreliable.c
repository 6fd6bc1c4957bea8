/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_unreliable.c: the unreliable connection: what WQEs become on the wire and when they are
 * done, what becomes of messages whose packets come, are missing, come twice or late, and that
 * nothing of it is ever answered or ends the connection. IBA 9.8.2.
 */
#include <errno.h>

#include "script.h"

/* clang-format off */
#define UC(...) WITH(.uc = true, __VA_ARGS__)

#define UC_OP(op) (0x20 | (op))
enum {
    S_FIRST = UC_OP(OP_SEND_FIRST),
    S_MIDDLE = UC_OP(OP_SEND_MIDDLE),
    S_LAST = UC_OP(OP_SEND_LAST),
    S_LAST_IMM = UC_OP(OP_SEND_LAST_IMM),
    S_ONLY = UC_OP(OP_SEND_ONLY),
    S_ONLY_IMM = UC_OP(OP_SEND_ONLY_IMM),
    W_FIRST = UC_OP(OP_WRITE_FIRST),
    W_MIDDLE = UC_OP(OP_WRITE_MIDDLE),
    W_LAST = UC_OP(OP_WRITE_LAST),
    W_LAST_IMM = UC_OP(OP_WRITE_LAST_IMM),
    W_ONLY = UC_OP(OP_WRITE_ONLY),
    W_ONLY_IMM = UC_OP(OP_WRITE_ONLY_IMM),
};

/* A SEND of one packet that is received and completes receive i. */
#define GOOD(i, p) \
    {RECV, .id = i, .len = 16, .at = 4096}, {IN, S_ONLY, .psn = p, .len = 16, .tag = 9}, \
    {RCQE, WC_RECV, .id = i, .len = 16}, {MEM, .at = 4096, .len = 16, .tag = 9}
#define DROPPED(m) {SILENT}, {STATE, QP_STATE_RTS}, {COUNT, COUNTER_rx_drop_message, .n = m}

static const struct dialogue dialogues[] = {
    /* Sending: nothing answers, nothing is waited for. */
    {"send__is_done_when_it_is_out", false, UC(.timeout = 1), STEPS(
        {POST, WR_SEND, .id = 1, .len = 100, .at = 64}, {POST, WR_SEND, .id = 2},
        {OUT, S_ONLY, .psn = 100, .len = 100, .at = 64}, {OUT, S_ONLY, .psn = 101},
        {SCQE, WC_SEND, .id = 1}, {SCQE, WC_SEND, .id = 2}, {TIME, .ns = 10000000000}, {SILENT})},
    {"send__of_three_packets", false, UC(.sq_psn = 0xffffff), STEPS(
        {POST, WR_SEND_WITH_IMM, .id = 1, .len = 513, .imm = 7, .flags = WR_SOLICITED},
        {OUT, S_FIRST, .psn = 0xffffff, .len = 256},
        {OUT, S_MIDDLE, .psn = 0, .len = 256, .at = 256},
        {OUT, S_LAST_IMM, .psn = 1, .len = 1, .at = 512, .imm = 7, .se = true},
        {SCQE, WC_SEND, .id = 1})},
    {"send__exactly_two_packets", false, UC(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 512}, {OUT, S_FIRST, .psn = 100, .len = 256},
        {OUT, S_LAST, .psn = 101, .len = 256, .at = 256}, {SCQE, WC_SEND, .id = 1})},
    {"send__immediate_in_one", false, UC(), STEPS(
        {POST, WR_SEND_WITH_IMM, .id = 1, .imm = 0x12345678},
        {OUT, S_ONLY_IMM, .psn = 100, .imm = 0x12345678}, {SCQE, WC_SEND, .id = 1})},
    {"send__writes", false, UC(), STEPS(
        {POST, WR_RDMA_WRITE, .id = 1, .len = 600, .va = 5, .flags = WR_SOLICITED},
        {POST, WR_RDMA_WRITE_WITH_IMM, .id = 2, .len = 300, .imm = 8, .flags = WR_SOLICITED},
        {POST, WR_RDMA_WRITE, .id = 3}, {POST, WR_RDMA_WRITE_WITH_IMM, .id = 4, .len = 9, .imm = 2},
        {OUT, W_FIRST, .psn = 100, .len = 256, .va = 5, .dma_len = 600},
        {OUT, W_MIDDLE, .psn = 101, .len = 256, .at = 256},
        {OUT, W_LAST, .psn = 102, .len = 88, .at = 512},
        {OUT, W_FIRST, .psn = 103, .len = 256, .dma_len = 300},
        {OUT, W_LAST_IMM, .psn = 104, .len = 44, .at = 256, .imm = 8, .se = true},
        {OUT, W_ONLY, .psn = 105}, {OUT, W_ONLY_IMM, .psn = 106, .len = 9, .dma_len = 9, .imm = 2},
        {SCQE, WC_RDMA_WRITE, .id = 1}, {SCQE, WC_RDMA_WRITE, .id = 2},
        {SCQE, WC_RDMA_WRITE, .id = 3}, {SCQE, WC_RDMA_WRITE, .id = 4})},
    {"send__without_a_window", false, UC(.window_bytes = 1024), STEPS(
        {POST, WR_SEND, .id = 1, .len = 256 * 20},
        {OUT, S_FIRST, .psn = 100, .len = 256},
        {REPEAT, 1, .n = 18}, {OUT, S_MIDDLE, .psn = 101, .len = 256, .at = 256},
        {OUT, S_LAST, .psn = 119, .len = 256, .at = 256 * 19}, {SCQE, WC_SEND, .id = 1})},
    /* Its last packet is in the second train: the memory is needed until then. */
    {"send__is_not_done_by_halves", false, UC(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 4}, {POST, WR_SEND, .id = 2, .len = 256 * 66},
        {TRAIN, .n = 1}, {OUT, S_ONLY, .psn = 100, .len = 4}, {TRAIN, .n = 1},
        {OUT, S_FIRST, .psn = 101, .len = 256},
        {REPEAT, 1, .n = 63}, {OUT, S_MIDDLE, .psn = 102, .len = 256, .at = 256},
        {MODIFY, QP_STATE_ERR}, {SCQE, WC_SEND, .id = 1},
        {SCQE, .id = 2, .status = WC_WR_FLUSH_ERR})},
    {"send__inline_fence_and_unsignalled", false, UC(.unsignalled = true), STEPS(
        {POST, WR_SEND, .id = 1, .len = 270, .sges = 3, .key = K_NONE, .flags = WR_INLINE},
        {POST, WR_RDMA_WRITE, .id = 2, .flags = WR_FENCE | WR_SIGNALED},
        {OUT, S_FIRST, .psn = 100, .len = 256}, {OUT, S_LAST, .psn = 101, .len = 14, .at = 256},
        {OUT, W_ONLY, .psn = 102}, {SCQE, WC_RDMA_WRITE, .id = 2})},
    {"send__a_queue_of_them_many_times", false, UC(.wrs = 4), STEPS(
        {REPEAT, 3, .n = 300}, {POST, WR_SEND, .id = 9}, {OUT, S_ONLY, .psn = 100},
        {SCQE, WC_SEND, .id = 9})},
    {"sqd__a_begun_message_ends_others_wait", false, UC(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 256 * 65}, {POST, WR_SEND, .id = 2}, {TRAIN, .n = 1},
        {OUT, S_FIRST, .psn = 100, .len = 256},
        {REPEAT, 1, .n = 63}, {OUT, S_MIDDLE, .psn = 101, .len = 256, .at = 256},
        {MODIFY, QP_STATE_SQD}, {OUT, S_LAST, .psn = 164, .len = 256, .at = 256 * 64},
        {SCQE, WC_SEND, .id = 1}, {EVENT, EVENT_SQ_DRAINED}, {SILENT}, {MODIFY, QP_STATE_RTS},
        {OUT, S_ONLY, .psn = 165}, {SCQE, WC_SEND, .id = 2})},
    {"sqd__idle_drains_at_once", false, UC(), STEPS(
        {MODIFY, QP_STATE_SQD}, {EVENT, EVENT_SQ_DRAINED}, {POST, WR_SEND, .id = 1}, {SILENT},
        GOOD(2, 5), {MODIFY, QP_STATE_RTS}, {OUT, S_ONLY, .psn = 100}, {SCQE, WC_SEND, .id = 1})},
    {"reset__begins_anew", false, UC(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 256 * 65}, {TRAIN, .n = 1},
        {OUT, S_FIRST, .psn = 100, .len = 256},
        {REPEAT, 1, .n = 63}, {OUT, S_MIDDLE, .psn = 101, .len = 256, .at = 256},
        {MODIFY, QP_STATE_RESET}, {MODIFY, QP_STATE_INIT}, {MODIFY, QP_STATE_RTR},
        {MODIFY, QP_STATE_RTS}, {POST, WR_SEND, .id = 2}, {OUT, S_ONLY, .psn = 100},
        {SCQE, WC_SEND, .id = 2})},

    /* Windows. */
    {"window__written_until_invalidated", true, UC(), STEPS(
        {IN, W_ONLY, .psn = 5, .len = 4, .dma_len = 4, .key = K_WINDOW}, {MEM, .len = 4},
        {POST, WR_LOCAL_INV, .id = 1, .imm = K_WINDOW}, {SILENT}, {SCQE, WC_LOCAL_INV, .id = 1},
        {IN, W_ONLY, .psn = 6, .len = 4, .dma_len = 4, .tag = 1, .key = K_WINDOW}, {SILENT},
        {MEM, .len = 4})},
    {"local_inv__in_order_and_without_a_psn", false, UC(), STEPS(
        {POST, WR_SEND, .id = 1}, {POST, WR_LOCAL_INV, .id = 2, .imm = K_WINDOW},
        {POST, WR_SEND, .id = 3}, {OUT, S_ONLY, .psn = 100}, {OUT, S_ONLY, .psn = 101},
        {SCQE, WC_SEND, .id = 1}, {SCQE, WC_LOCAL_INV, .id = 2}, {SCQE, WC_SEND, .id = 3})},
    {"local_inv__a_second_one_fails_alone", true, UC(), STEPS(
        {POST, WR_LOCAL_INV, .id = 1, .imm = K_WINDOW}, {POST, WR_LOCAL_INV, .id = 2, .imm = K_WINDOW},
        {POST, WR_SEND, .id = 3}, {SILENT}, {SCQE, WC_LOCAL_INV, .id = 1},
        {SCQE, .id = 2, .status = WC_MW_BIND_ERR}, {SCQE, .id = 3, .status = WC_WR_FLUSH_ERR},
        {STATE, QP_STATE_SQE})},
    {"local_inv__before_a_bad_key", true, UC(), STEPS(
        {POST, WR_LOCAL_INV, .id = 1, .imm = K_WINDOW}, {POST, WR_SEND, .id = 2, .len = 8, .key = K_OTHER},
        {SILENT}, {SCQE, WC_LOCAL_INV, .id = 1}, {SCQE, .id = 2, .status = WC_LOC_PROT_ERR},
        {STATE, QP_STATE_SQE})},
    {"local_inv__of_a_region_stops_sends_only", true, UC(), STEPS(
        {POST, WR_SEND, .id = 1}, {POST, WR_LOCAL_INV, .id = 2, .imm = K_ALL},
        {POST, WR_SEND, .id = 3}, {OUT, S_ONLY, .psn = 100}, {SCQE, WC_SEND, .id = 1},
        {SCQE, .id = 2, .status = WC_MW_BIND_ERR}, {SCQE, .id = 3, .status = WC_WR_FLUSH_ERR},
        {STATE, QP_STATE_SQE}, GOOD(5, 5))},

    /* What cannot be sent. */
    {"post__refused", true, UC(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 8, .err = -EINVAL},
        {POST, WR_ATOMIC_FETCH_AND_ADD, .id = 1, .len = 8, .err = -EINVAL},
        {POST, WR_ATOMIC_CMP_AND_SWP, .id = 1, .len = 8, .err = -EINVAL},
        {POST, WR_SEND_WITH_INV, .id = 1, .err = -EINVAL},
        {POST, WR_SEND, .id = 1, .len = 400, .flags = WR_INLINE, .err = -EINVAL}, {SILENT})},
    {"post__refused_before_rts", true, UC(.state = QP_STATE_RTR), STEPS(
        {POST, WR_SEND, .id = 1, .err = -EINVAL}, {SILENT})},
    {"sqe__foreign_key_stops_sends_only", true, UC(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 8}, {POST, WR_SEND, .id = 2, .len = 8, .key = K_OTHER},
        {POST, WR_SEND, .id = 3}, {OUT, S_ONLY, .psn = 100, .len = 8}, {SCQE, WC_SEND, .id = 1},
        {SCQE, .id = 2, .status = WC_LOC_PROT_ERR}, {SCQE, .id = 3, .status = WC_WR_FLUSH_ERR},
        {STATE, QP_STATE_SQE}, {POST, WR_SEND, .id = 4},
        {SCQE, .id = 4, .status = WC_WR_FLUSH_ERR}, GOOD(5, 5), {MODIFY, QP_STATE_RTS},
        {POST, WR_SEND, .id = 6}, {OUT, S_ONLY, .psn = 101}, {SCQE, WC_SEND, .id = 6})},
    {"sqe__key_gone_in_mid_message", true, UC(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 256 * 70}, {POST, WR_SEND, .id = 2}, {TRAIN, .n = 1},
        {OUT, S_FIRST, .psn = 100, .len = 256},
        {REPEAT, 1, .n = 63}, {OUT, S_MIDDLE, .psn = 101, .len = 256, .at = 256},
        {REVOKE, .key = K_ALL}, {SCQE, .id = 1, .status = WC_LOC_PROT_ERR},
        {SCQE, .id = 2, .status = WC_WR_FLUSH_ERR}, {STATE, QP_STATE_SQE}, {MODIFY, QP_STATE_RTS},
        {POST, WR_SEND, .id = 3, .len = 300, .key = K_LOCAL},
        {OUT, S_FIRST, .psn = 164, .len = 256}, {OUT, S_LAST, .psn = 165, .len = 44, .at = 256},
        {SCQE, WC_SEND, .id = 3})},
    {"sqe__to_error_flushes_receives", true, UC(), STEPS(
        {RECV, .id = 2, .len = 48}, {POST, WR_SEND, .id = 1, .len = 8, .key = K_NONE},
        {SCQE, .id = 1, .status = WC_LOC_PROT_ERR}, {MODIFY, QP_STATE_ERR},
        {RCQE, .id = 2, .status = WC_WR_FLUSH_ERR}, {IN, S_ONLY, .psn = 5}, {SILENT},
        {COUNT, COUNTER_rx_drop_state, .n = 1})},
    {"sqe__key_gone_while_it_drains", true, UC(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 256 * 70}, {TRAIN, .n = 1},
        {OUT, S_FIRST, .psn = 100, .len = 256},
        {REPEAT, 1, .n = 63}, {OUT, S_MIDDLE, .psn = 101, .len = 256, .at = 256},
        {REVOKE, .key = K_ALL}, {MODIFY, QP_STATE_SQD},
        {SCQE, .id = 1, .status = WC_LOC_PROT_ERR}, {STATE, QP_STATE_SQE}, {EVENT, -1})},

    /* IBA 9.8.2: receiving what is whole and in order. */
    {"recv__send_of_three_packets", false, UC(), STEPS(
        {RECV, .id = 1, .len = 600, .sges = 4}, {IN, S_FIRST, .psn = 5, .len = 256},
        {IN, S_MIDDLE, .psn = 6, .len = 256, .at = 256},
        {IN, S_LAST_IMM, .psn = 7, .len = 10, .at = 512, .imm = 3, .ack_req = true},
        {RCQE, WC_RECV, .id = 1, .len = 522, .flags = WC_WITH_IMM, .imm = 3},
        {MEM, .len = 522}, {SILENT}, {COUNT, COUNTER_rx_drop_message, .n = 0})},
    {"recv__wraps_round", false, UC(.rq_psn = 0xffffff), STEPS(
        {RECV, .id = 1, .len = 600}, {IN, S_FIRST, .psn = 0xffffff, .len = 256},
        {IN, S_LAST, .psn = 0, .len = 1, .at = 256}, {RCQE, WC_RECV, .id = 1, .len = 257},
        {MEM, .len = 257}, GOOD(2, 1))},
    {"recv__writes", false, UC(), STEPS(
        {RECV, .id = 1}, {RECV, .id = 2, .len = 4, .at = 5000},
        {IN, W_FIRST, .psn = 5, .len = 256, .va = 64, .dma_len = 500},
        {IN, W_LAST, .psn = 6, .len = 244, .at = 256}, {MEM, .at = 64, .len = 500},
        {IN, W_FIRST, .psn = 7, .len = 256, .va = 1000, .dma_len = 300},
        {IN, W_LAST_IMM, .psn = 8, .len = 44, .at = 256, .imm = 1},
        {RCQE, WC_RECV_RDMA_WITH_IMM, .id = 1, .len = 300, .flags = WC_WITH_IMM, .imm = 1},
        {MEM, .at = 1000, .len = 300}, {IN, W_ONLY, .psn = 9, .key = K_NONE},
        {IN, W_ONLY_IMM, .psn = 10, .len = 3, .va = 2000, .dma_len = 3, .imm = 4},
        {RCQE, WC_RECV_RDMA_WITH_IMM, .id = 2, .len = 3, .flags = WC_WITH_IMM, .imm = 4},
        {MEM, .at = 2000, .len = 3}, {COUNT, COUNTER_rx_drop_message, .n = 0})},
    {"recv__in_rtr_it_is_established", false, UC(.state = QP_STATE_RTR), STEPS(
        GOOD(1, 5), {EVENT, EVENT_COMM_EST}, GOOD(2, 6), {EVENT, -1})},
    {"recv__solicited_wakes", false, UC(), STEPS(
        {RECV, .id = 1}, {RECV, .id = 2}, {ARM, 1}, {IN, S_ONLY, .psn = 5}, {NOTIFY, 0},
        {IN, S_ONLY, .psn = 6, .se = true}, {NOTIFY, 1}, {RCQE, WC_RECV, .id = 1},
        {RCQE, WC_RECV, .id = 2})},
    {"recv__from_an_srq", false, UC(.srq = true), STEPS(
        {RECV, .id = 1, .len = 300}, {IN, S_FIRST, .psn = 5, .len = 256},
        {IN, S_LAST, .psn = 6, .len = 44, .at = 256}, {RCQE, WC_RECV, .id = 1, .len = 300},
        {MEM, .len = 300})},

    /* IBA 9.8.2: what is missing costs its message; the receive that it took is the next one's. */
    {"loss__of_a_middle", true, UC(), STEPS(
        {RECV, .id = 1, .len = 2000}, {IN, S_FIRST, .psn = 5, .len = 256},
        {IN, S_MIDDLE, .psn = 7, .len = 256, .at = 512},
        {IN, S_LAST, .psn = 8, .len = 1, .at = 768}, DROPPED(1),
        {COUNT, COUNTER_out_of_sequence, .n = 2},
        {IN, S_ONLY, .psn = 9, .len = 300 - 44, .tag = 1}, {RCQE, WC_RECV, .id = 1, .len = 256},
        {MEM, .len = 256, .tag = 1}, {COUNT, COUNTER_rx_drop_message, .n = 1})},
    {"loss__of_a_last", true, UC(), STEPS(
        {RECV, .id = 1, .len = 2000}, {IN, S_FIRST, .psn = 5, .len = 256},
        {IN, S_FIRST, .psn = 7, .len = 256, .tag = 1},
        {IN, S_LAST, .psn = 8, .len = 5, .at = 256, .tag = 1},
        {RCQE, WC_RECV, .id = 1, .len = 261}, {MEM, .len = 261, .tag = 1}, DROPPED(1), GOOD(2, 9))},
    {"loss__of_a_first", true, UC(), STEPS(
        {RECV, .id = 1, .len = 2000}, {IN, S_MIDDLE, .psn = 6, .len = 256, .at = 256},
        {IN, S_LAST, .psn = 7, .len = 1, .at = 512}, DROPPED(0), {IN, S_ONLY, .psn = 8, .len = 2},
        {RCQE, WC_RECV, .id = 1, .len = 2}, {MEM, .len = 2})},
    {"loss__of_whole_messages", true, UC(), STEPS(
        {IN, S_ONLY, .psn = 5 + 0x700000}, {COUNT, COUNTER_rx_drop_no_recv, .n = 1},
        GOOD(1, 6 + 0x700000), {COUNT, COUNTER_out_of_sequence, .n = 1})},
    /* All PSNs but one half were lost: what looks as if it were old is new. */
    {"loss__of_more_than_half_the_psns", true, UC(), STEPS(
        GOOD(1, 5), GOOD(2, 0xc00000), GOOD(3, 0xc00001), DROPPED(0))},
    {"loss__the_kept_receive_serves_a_write", true, UC(), STEPS(
        {RECV, .id = 1, .len = 600}, {IN, S_FIRST, .psn = 5, .len = 256},
        {IN, W_ONLY_IMM, .psn = 9, .len = 4, .va = 4096, .dma_len = 4, .imm = 1, .tag = 2},
        {RCQE, WC_RECV_RDMA_WITH_IMM, .id = 1, .len = 4, .flags = WC_WITH_IMM, .imm = 1},
        {MEM, .at = 4096, .len = 4, .tag = 2}, {MEM, .len = 256}, DROPPED(1))},
    {"loss__the_kept_receive_is_flushed_first", true, UC(), STEPS(
        {RECV, .id = 1, .len = 600}, {RECV, .id = 2, .len = 600},
        {IN, S_FIRST, .psn = 5, .len = 256}, {IN, S_LAST, .psn = 7, .len = 1}, {MEM, .len = 256},
        {MODIFY, QP_STATE_ERR}, {RCQE, .id = 1, .status = WC_WR_FLUSH_ERR},
        {RCQE, .id = 2, .status = WC_WR_FLUSH_ERR})},
    {"loss__the_kept_receive_is_of_an_srq", true, UC(.srq = true), STEPS(
        {RECV, .id = 1, .len = 600}, {RECV, .id = 2, .len = 600, .at = 1000},
        {IN, S_FIRST, .psn = 5, .len = 256}, {IN, S_FIRST, .psn = 7, .len = 256, .tag = 1},
        {IN, S_LAST, .psn = 8, .len = 1, .at = 256, .tag = 1}, {RCQE, WC_RECV, .id = 1, .len = 257},
        {MEM, .len = 257, .tag = 1}, {IN, S_ONLY, .psn = 9, .len = 1},
        {RCQE, WC_RECV, .id = 2, .len = 1}, {MEM, .at = 1000, .len = 1})},
    {"loss__in_a_write_with_immediate", true, UC(), STEPS(
        {RECV, .id = 1}, {IN, W_FIRST, .psn = 5, .len = 256, .dma_len = 600},
        {IN, W_LAST_IMM, .psn = 7, .len = 88, .at = 512, .imm = 1}, {MEM, .len = 256}, DROPPED(1),
        {IN, W_ONLY_IMM, .psn = 8, .imm = 2},
        {RCQE, WC_RECV_RDMA_WITH_IMM, .id = 1, .flags = WC_WITH_IMM, .imm = 2})},
    /* Packets of another message go on where this one's are missing: its PSN says no. */
    {"loss__is_not_healed_by_the_next_message", true, UC(), STEPS(
        {RECV, .id = 1, .len = 2000}, {IN, S_FIRST, .psn = 5, .len = 256},
        {IN, S_MIDDLE, .psn = 8, .len = 256, .tag = 3}, {IN, S_LAST, .psn = 9, .len = 9, .tag = 3},
        {MEM, .len = 256}, DROPPED(1))},

    /* Copies, and what was late: at most once, and in order. */
    {"copy__of_an_only", true, UC(), STEPS(
        {RECV, .id = 1}, {RECV, .id = 2}, {IN, S_ONLY, .psn = 5}, {IN, S_ONLY, .psn = 5},
        {RCQE, WC_RECV, .id = 1}, {COUNT, COUNTER_duplicate_request, .n = 1},
        {IN, S_ONLY, .psn = 6}, {RCQE, WC_RECV, .id = 2}, DROPPED(0))},
    {"copy__in_mid_message", true, UC(), STEPS(
        {RECV, .id = 1, .len = 600}, {IN, S_FIRST, .psn = 5, .len = 256},
        {IN, S_FIRST, .psn = 5, .len = 256, .tag = 1},
        {IN, S_MIDDLE, .psn = 6, .len = 256, .at = 256},
        {IN, S_MIDDLE, .psn = 6, .len = 256, .at = 256, .tag = 1},
        {IN, S_LAST, .psn = 7, .len = 1, .at = 512}, {IN, S_LAST, .psn = 7, .len = 1, .at = 512},
        {RCQE, WC_RECV, .id = 1, .len = 513}, {MEM, .len = 513}, DROPPED(0))},
    {"late__behind_a_later_message", true, UC(), STEPS(
        {RECV, .id = 1}, {RECV, .id = 2}, {IN, S_ONLY, .psn = 6}, {IN, S_ONLY, .psn = 5},
        {RCQE, WC_RECV, .id = 1}, {IN, S_ONLY, .psn = 7}, {RCQE, WC_RECV, .id = 2}, DROPPED(0))},
    {"late__as_late_as_may_be", true, UC(.rq_psn = 0x10005), STEPS(
        {RECV, .id = 1}, {RECV, .id = 2}, {IN, S_ONLY, .psn = 5}, {SILENT},
        {COUNT, COUNTER_duplicate_request, .n = 1}, {IN, S_ONLY, .psn = 4},
        {RCQE, WC_RECV, .id = 1}, {IN, S_ONLY, .psn = 5}, {RCQE, WC_RECV, .id = 2}, DROPPED(0))},
    {"late__a_middle_heals_nothing", true, UC(), STEPS(
        {RECV, .id = 1, .len = 2000}, {IN, S_FIRST, .psn = 5, .len = 256},
        {IN, S_LAST, .psn = 7, .len = 1, .at = 512},
        {IN, S_MIDDLE, .psn = 6, .len = 256, .at = 256},
        {IN, S_LAST, .psn = 7, .len = 1, .at = 512}, {MEM, .len = 256}, DROPPED(1),
        {IN, S_ONLY, .psn = 8}, {RCQE, WC_RECV, .id = 1})},

    /* What is wrong is dropped in silence; the connection lives. */
    {"wrong__order_of_opcodes", true, UC(), STEPS(
        {RECV, .id = 1, .len = 2000}, {IN, S_MIDDLE, .psn = 5, .len = 256},
        {IN, S_LAST, .psn = 6, .len = 4}, DROPPED(0), {IN, S_FIRST, .psn = 7, .len = 256},
        {IN, W_MIDDLE, .psn = 8, .len = 256}, {IN, S_LAST, .psn = 9, .len = 1}, {MEM, .len = 256},
        DROPPED(1), {IN, S_FIRST, .psn = 10, .len = 256, .tag = 1},
        {IN, S_ONLY, .psn = 11, .len = 3, .tag = 2}, {RCQE, WC_RECV, .id = 1, .len = 3},
        {MEM, .len = 3, .tag = 2}, {MEM, .at = 3, .from = 3, .len = 253, .tag = 1}, DROPPED(2))},
    /* What an earlier WRITE was allowed is over. */
    {"wrong__a_send_goes_on_as_a_write", true, UC(), STEPS(
        {RECV, .id = 1, .len = 2000, .at = 8192},
        {IN, W_FIRST, .psn = 5, .len = 256, .dma_len = 600},
        {IN, W_MIDDLE, .psn = 6, .len = 256, .at = 256},
        {IN, W_LAST, .psn = 7, .len = 88, .at = 512}, {MEM, .len = 600},
        {IN, S_FIRST, .psn = 8, .len = 256}, {IN, W_MIDDLE, .psn = 9, .len = 256, .tag = 1},
        {IN, W_LAST, .psn = 10, .len = 88, .tag = 1}, {MEM, .len = 600},
        {MEM, .at = 8192, .len = 256}, DROPPED(1))},
    {"wrong__no_receive", true, UC(), STEPS(
        {IN, S_FIRST, .psn = 5, .len = 256}, {RECV, .id = 1, .len = 2000},
        {IN, S_LAST, .psn = 6, .len = 4, .at = 256}, DROPPED(1),
        {COUNT, COUNTER_rx_drop_no_recv, .n = 1}, {IN, S_ONLY, .psn = 7},
        {RCQE, WC_RECV, .id = 1})},
    {"wrong__no_receive_for_an_immediate", true, UC(), STEPS(
        {IN, W_ONLY_IMM, .psn = 5, .len = 4, .dma_len = 4, .imm = 1}, DROPPED(1),
        {COUNT, COUNTER_rx_drop_no_recv, .n = 1}, GOOD(1, 6))},
    {"wrong__longer_than_the_receive", true, UC(), STEPS(
        {RECV, .id = 1, .len = 300}, {IN, S_FIRST, .psn = 5, .len = 256},
        {IN, S_MIDDLE, .psn = 6, .len = 256, .at = 256}, {IN, S_LAST, .psn = 7, .len = 1},
        {MEM, .len = 256}, DROPPED(1), {COUNT, COUNTER_rx_drop_recv_small, .n = 1},
        {IN, S_ONLY, .psn = 8, .len = 4, .tag = 1}, {RCQE, WC_RECV, .id = 1, .len = 4},
        {MEM, .len = 4, .tag = 1}, {MEM, .at = 4, .from = 4, .len = 252})},
    {"wrong__packet_lengths", true, UC(), STEPS(
        {RECV, .id = 1, .len = 2000}, {IN, S_FIRST, .psn = 5, .len = 255}, DROPPED(1),
        {IN, S_ONLY, .psn = 6, .len = 257}, DROPPED(2),
        {IN, W_ONLY, .psn = 7, .len = 8, .dma_len = 9},
        DROPPED(3), {IN, W_FIRST, .psn = 8, .len = 256, .dma_len = 256}, DROPPED(4),
        {IN, W_FIRST, .psn = 9, .len = 256, .dma_len = MAX_MESSAGE_BYTES + 1}, DROPPED(5),
        {IN, S_FIRST, .psn = 10, .len = 256}, {IN, S_LAST, .psn = 11},
        {MEM, .len = 256}, DROPPED(6),
        {COUNT, COUNTER_resp_invalid_request, .n = 6}, {IN, S_ONLY, .psn = 12},
        {RCQE, WC_RECV, .id = 1})},
    {"wrong__key_or_bounds_of_a_write", true, UC(), STEPS(
        {IN, W_ONLY, .psn = 5, .len = 4, .dma_len = 4, .key = K_NONE},
        {IN, W_ONLY, .psn = 6, .len = 4, .dma_len = 4, .key = K_READ},
        {IN, W_ONLY, .psn = 7, .len = 4, .dma_len = 4, .key = K_OTHER},
        {IN, W_FIRST, .psn = 8, .len = 256, .va = 3900, .dma_len = 500, .key = K_SMALL},
        {IN, W_LAST, .psn = 9, .len = 244}, DROPPED(4),
        {COUNT, COUNTER_resp_remote_access_errors, .n = 4}, GOOD(1, 10))},
    {"wrong__key_gone_in_mid_message", true, UC(), STEPS(
        {RECV, .id = 1}, {IN, W_FIRST, .psn = 5, .len = 256, .dma_len = 500, .key = K_SMALL},
        {REVOKE, .key = K_SMALL}, {IN, W_LAST_IMM, .psn = 6, .len = 244, .at = 256},
        {MEM, .len = 256}, DROPPED(1), {IN, S_ONLY, .psn = 7}, {RCQE, WC_RECV, .id = 1})},
    {"wrong__writes_not_granted", true, UC(.access = 0), STEPS(
        {IN, W_ONLY, .psn = 5, .len = 4, .dma_len = 4}, DROPPED(1),
        {COUNT, COUNTER_resp_invalid_request, .n = 1}, GOOD(1, 6))},
    {"wrong__sender_service_or_partition", true, UC(), STEPS(
        {RECV, .id = 1, .len = 40}, {IN, S_ONLY, .psn = 5, .odd = ODD_SRC},
        {IN, S_ONLY, .psn = 5, .odd = ODD_DST}, {COUNT, COUNTER_rx_drop_peer, .n = 2},
        {IN, OP_SEND_ONLY, .psn = 5}, {IN, 0x64, .psn = 5}, {IN, OP_ACKNOWLEDGE, .psn = 99},
        {COUNT, COUNTER_rx_drop_service, .n = 3}, {IN, S_ONLY, .psn = 5, .odd = ODD_PKEY},
        {COUNT, COUNTER_rx_drop_pkey, .n = 1}, {IN, S_ONLY, .psn = 5, .odd = ODD_ICRC}, {SILENT},
        {IN, S_ONLY, .psn = 5}, {RCQE, WC_RECV, .id = 1})},
    {"wrong__before_rtr", true, UC(.state = QP_STATE_INIT), STEPS(
        {RECV, .id = 1}, {IN, S_ONLY, .psn = 5}, {SILENT}, {COUNT, COUNTER_rx_drop_state, .n = 1})},
    /* The receive's own fault, not the peer's. */
    {"wrong__key_of_a_receive_ends_the_qp", true, UC(), STEPS(
        {RECV, .id = 1, .len = 44, .key = K_READ}, {RECV, .id = 2, .len = 44},
        {IN, S_ONLY, .psn = 5, .len = 4}, {RCQE, .id = 1, .status = WC_LOC_PROT_ERR},
        {RCQE, .id = 2, .status = WC_WR_FLUSH_ERR}, {STATE, QP_STATE_ERR})},
    {"wrong__key_of_a_receive_in_an_srq", true, UC(.srq = true), STEPS(
        {RECV, .id = 1, .len = 44, .key = K_OTHER}, {IN, S_ONLY, .psn = 5, .len = 4},
        {RCQE, .id = 1, .status = WC_LOC_PROT_ERR}, {STATE, QP_STATE_ERR},
        {EVENT, EVENT_QP_LAST_WQE_REACHED})},
};
/* clang-format on */

int main(void)
{
    return script_run("unreliable", dialogues, sizeof(dialogues) / sizeof(dialogues[0]));
}
