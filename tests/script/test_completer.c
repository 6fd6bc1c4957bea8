/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_completer.c: what answers do to the send queue of an RC QP: completions, going back after a
 * loss, and the end after a fatal one.
 */
#include "script.h"

/* clang-format off */
#define ACK(...) {IN, OP_ACKNOWLEDGE, __VA_ARGS__}
#define SENT(i) {SCQE, WC_SEND, .id = i}
#define FAILED(i, s) {SCQE, .id = i, .status = s}
#define FLUSHED(i) {SCQE, .id = i, .status = WC_WR_FLUSH_ERR}
#define POST0(i) {POST, WR_SEND, .id = i}
#define OUT0(p) {OUT, OP_SEND_ONLY, .psn = p, .ack_req = true}
#define READ_OUT(p, ...) {OUT, OP_READ_REQUEST, .psn = p, .ack_req = true, __VA_ARGS__}
#define RESP(which, p, ...) {IN, OP_READ_RESP_##which, .psn = p, .msn = 1, __VA_ARGS__}

static const struct dialogue dialogues[] = {
    {"ack__one_for_several", false, WITH(), STEPS(
        POST0(1), POST0(2), {POST, WR_RDMA_WRITE, .id = 3}, OUT0(100), OUT0(101),
        {OUT, OP_WRITE_ONLY, .psn = 102, .ack_req = true}, ACK(.psn = 101, .msn = 2), SENT(1),
        SENT(2),
        ACK(.psn = 102, .msn = 3), {SCQE, WC_RDMA_WRITE, .id = 3})},
    {"ack__inside_a_message_completes_nothing", false, WITH(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 257}, {OUT, OP_SEND_FIRST, .psn = 100, .len = 256},
        {OUT, OP_SEND_LAST, .psn = 101, .len = 1, .at = 256, .ack_req = true}, ACK(.psn = 100),
        {SILENT},
        ACK(.psn = 101, .msn = 1), SENT(1))},
    {"ack__read_response_acknowledges_sends_before_it", false, WITH(), STEPS(
        POST0(1), {POST, WR_RDMA_READ, .id = 2, .len = 4}, OUT0(100), READ_OUT(101, .dma_len = 4),
        RESP(ONLY, 101, .len = 4), SENT(1), {SCQE, WC_RDMA_READ, .id = 2}, {MEM, .len = 4})},
    {"ack__atomic_ack_acknowledges_sends_before_it", false, WITH(), STEPS(
        {SET, .at = 64, .a = 0}, POST0(1),
        {POST, WR_ATOMIC_FETCH_AND_ADD, .id = 2, .at = 64, .len = 8, .a = 1}, OUT0(100),
        {OUT, OP_FETCH_ADD, .psn = 101, .a = 1, .ack_req = true},
        {IN, OP_ATOMIC_ACKNOWLEDGE, .psn = 101, .msn = 2, .a = 6},
        SENT(1), {SCQE, WC_FETCH_ADD, .id = 2}, {CELL, .at = 64, .a = 6})},
    {"ack__of_what_is_being_sent_again", false, WITH(.timeout = 1), STEPS(
        POST0(1), POST0(2), OUT0(100), OUT0(101), {TIME, .ns = 8192}, OUT0(100), OUT0(101),
        ACK(.psn = 101, .msn = 2),
        SENT(1), SENT(2), ACK(.psn = 101, .msn = 2), {SILENT},
        {COUNT, COUNTER_req_stale_acks, .n = 1})},
    {"ack__psn_wraps", false, WITH(.sq_psn = 0xffffff), STEPS(
        POST0(1), POST0(2), OUT0(0xffffff), OUT0(0), ACK(.psn = 0xffffff, .msn = 1), SENT(1),
        ACK(.psn = 0, .msn = 2), SENT(2))},
    {"read__scattered", false, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .at = 9, .len = 300, .sges = 3},
        READ_OUT(100, .dma_len = 300),
        RESP(FIRST, 100, .len = 256), RESP(LAST, 101, .len = 44, .at = 256),
        {SCQE, WC_RDMA_READ, .id = 1},
        {MEM, .at = 9, .len = 300})},
    {"read__two_at_once", false, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 4}, {POST, WR_RDMA_READ, .id = 2, .at = 64, .len = 4},
        READ_OUT(100, .dma_len = 4), READ_OUT(101, .dma_len = 4), RESP(ONLY, 100, .len = 4),
        RESP(ONLY, 101, .len = 4, .tag = 1),
        {SCQE, WC_RDMA_READ, .id = 1}, {SCQE, WC_RDMA_READ, .id = 2}, {MEM, .len = 4},
        {MEM, .at = 64, .len = 4, .tag = 1})},
    {"error__bad_responses_do_not_complete_in_sqd_either", true, WITH(), STEPS(
        POST0(1), OUT0(100), {MODIFY, QP_STATE_SQD}, ACK(.psn = 100, .syn = NAK(NAK_REMOTE_ACCESS)),
        FAILED(1, WC_REM_ACCESS_ERR), {STATE, QP_STATE_ERR})},

    /* Not an answer to anything. */
    {"ghost__never_sent", true, WITH(), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 101, .msn = 2),
        ACK(.psn = 105, .msn = 9, .syn = NAK(NAK_REMOTE_ACCESS)),
        RESP(ONLY, 101, .len = 4), {SILENT}, {COUNT, COUNTER_req_ghost_acks, .n = 3},
        {STATE, QP_STATE_RTS},
        ACK(.psn = 100, .msn = 1), SENT(1))},
    {"ghost__idle", true, WITH(), STEPS(
        ACK(.psn = 100, .msn = 1), ACK(.psn = 99), {SILENT},
        {COUNT, COUNTER_req_ghost_acks, .n = 1},
        {COUNT, COUNTER_req_stale_acks, .n = 1}, {STATE, QP_STATE_RTS})},
    {"stale__fatal_nak_of_something_complete", true, WITH(), STEPS(
        POST0(1), POST0(2), OUT0(100), OUT0(101), ACK(.psn = 100, .msn = 1), SENT(1),
        ACK(.psn = 100, .syn = NAK(NAK_REMOTE_OPERATIONAL)), ACK(.psn = 100, .syn = RNR(1)),
        {SILENT}, {STATE, QP_STATE_RTS},
        ACK(.psn = 101, .msn = 2), SENT(2))},
    {"ghost__begun_but_not_sent", true, WITH(.window_bytes = 1024), STEPS(
        {POST, WR_SEND, .id = 1, .len = 1300},
        {OUT, OP_SEND_FIRST, .psn = 100, .len = 256, .ack_req = true},
        {OUT, OP_SEND_MIDDLE, .psn = 101, .len = 256, .at = 256, .ack_req = true},
        {OUT, OP_SEND_MIDDLE, .psn = 102, .len = 256, .at = 512, .ack_req = true},
        {OUT, OP_SEND_MIDDLE, .psn = 103, .len = 256, .at = 768, .ack_req = true}, ACK(.psn = 104),
        ACK(.psn = 105, .msn = 1),
        {SILENT}, {COUNT, COUNTER_req_ghost_acks, .n = 2}, {MODIFY, QP_STATE_RESET})},
    {"stale__rnr_nak_in_the_midst_of_a_read", true, WITH(.timeout = 1), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 300}, READ_OUT(100, .dma_len = 300),
        RESP(FIRST, 100, .len = 256),
        ACK(.psn = 100, .msn = 1, .syn = RNR(1)), {SILENT}, {TIME, .ns = 8192},
        READ_OUT(101, .va = 256, .dma_len = 44),
        RESP(LAST, 101, .len = 44, .at = 256), {SCQE, WC_RDMA_READ, .id = 1}, {MEM, .len = 300})},
    {"stale__read_response_twice", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 300}, READ_OUT(100, .dma_len = 300),
        RESP(FIRST, 100, .len = 256),
        RESP(FIRST, 100, .len = 256, .tag = 1), RESP(LAST, 101, .len = 44, .at = 256),
        {SCQE, WC_RDMA_READ, .id = 1},
        RESP(LAST, 101, .len = 44, .tag = 1), {SILENT}, {MEM, .len = 300})},
    {"malformed__reserved_syndromes", true, WITH(), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .syn = 0x40), ACK(.psn = 100, .syn = NAK(5)),
        ACK(.psn = 100, .syn = NAK(31)),
        {SILENT}, {COUNT, COUNTER_rx_drop_malformed, .n = 3}, ACK(.psn = 100, .msn = 1), SENT(1))},
    {"malformed__read_response_for_a_send", true, WITH(), STEPS(
        POST0(1), OUT0(100), RESP(ONLY, 100, .len = 4), {IN, OP_ATOMIC_ACKNOWLEDGE, .psn = 100},
        {SILENT},
        {COUNT, COUNTER_rx_drop_malformed, .n = 2}, ACK(.psn = 100, .msn = 1), SENT(1))},
    {"malformed__atomic_ack_for_a_read", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 8}, READ_OUT(100, .dma_len = 8),
        {IN, OP_ATOMIC_ACKNOWLEDGE, .psn = 100},
        {SILENT}, {COUNT, COUNTER_rx_drop_malformed, .n = 1}, RESP(ONLY, 100, .len = 8),
        {SCQE, WC_RDMA_READ, .id = 1},
        {MEM, .len = 8})},
    {"malformed__read_response_for_an_atomic", true, WITH(), STEPS(
        {SET, .at = 64, .a = 0},
        {POST, WR_ATOMIC_FETCH_AND_ADD, .id = 1, .at = 64, .len = 8, .a = 1},
        {OUT, OP_FETCH_ADD, .psn = 100, .a = 1, .ack_req = true}, RESP(ONLY, 100, .len = 8),
        {SILENT},
        {CELL, .at = 64, .a = 0}, {IN, OP_ATOMIC_ACKNOWLEDGE, .psn = 100, .a = 3},
        {SCQE, WC_FETCH_ADD, .id = 1},
        {CELL, .at = 64, .a = 3})},
    {"admit__ack_from_somebody_else", true, WITH(), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1, .odd = ODD_SRC),
        ACK(.psn = 100, .msn = 1, .odd = ODD_PKEY),
        ACK(.psn = 100, .msn = 1, .odd = ODD_ICRC), {SILENT}, ACK(.psn = 100, .msn = 1), SENT(1))},

    /* Something was lost. */
    {"nak_sequence__goes_back_to_its_psn", true, WITH(), STEPS(
        POST0(1), {POST, WR_SEND, .id = 2, .len = 600}, OUT0(100),
        {OUT, OP_SEND_FIRST, .psn = 101, .len = 256},
        {OUT, OP_SEND_MIDDLE, .psn = 102, .len = 256, .at = 256},
        {OUT, OP_SEND_LAST, .psn = 103, .len = 88, .at = 512, .ack_req = true},
        ACK(.psn = 102, .msn = 1, .syn = NAK(0)),
        {OUT, OP_SEND_MIDDLE, .psn = 102, .len = 256, .at = 256},
        {OUT, OP_SEND_LAST, .psn = 103, .len = 88, .at = 512, .ack_req = true}, SENT(1),
        ACK(.psn = 103, .msn = 2), SENT(2),
        {COUNT, COUNTER_packet_seq_err, .n = 1}, {COUNT, COUNTER_retransmitted_packets, .n = 2})},
    {"nak_sequence__takes_a_retry", true, WITH(.retry = 1), STEPS(
        POST0(1), POST0(2), OUT0(100), OUT0(101), ACK(.psn = 100, .syn = NAK(0)), OUT0(100),
        OUT0(101),
        ACK(.psn = 100, .syn = NAK(0)), {SILENT}, FAILED(1, WC_RETRY_EXC_ERR), FLUSHED(2),
        {STATE, QP_STATE_ERR})},
    {"nak_sequence__the_retransmission_has_its_whole_time", true, WITH(.timeout = 1, .retry = 1),
        STEPS(
        POST0(1), OUT0(100), {TIME, .ns = 8000}, ACK(.psn = 100, .syn = NAK(0)), OUT0(100),
        {TIME, .ns = 8191}, {SILENT},
        {STATE, QP_STATE_RTS}, {TIME, .ns = 1}, FAILED(1, WC_RETRY_EXC_ERR))},
    {"nak_sequence__read_asked_for_again", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 300}, POST0(2), READ_OUT(100, .dma_len = 300),
        OUT0(102),
        ACK(.psn = 100, .syn = NAK(0)), READ_OUT(100, .dma_len = 300), OUT0(102),
        RESP(FIRST, 100, .len = 256),
        RESP(LAST, 101, .len = 44, .at = 256), {SCQE, WC_RDMA_READ, .id = 1},
        ACK(.psn = 102, .msn = 2), SENT(2),
        {MEM, .len = 300})},
    {"implied_nak__first_response_lost", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 600, .va = 8}, READ_OUT(100, .va = 8, .dma_len = 600),
        RESP(MIDDLE, 101, .len = 256, .at = 256), READ_OUT(100, .va = 8, .dma_len = 600),
        RESP(LAST, 102, .len = 88, .at = 512),
        {SILENT}, {COUNT, COUNTER_implied_nak_seq_err, .n = 1}, RESP(FIRST, 100, .len = 256),
        RESP(MIDDLE, 101, .len = 256, .at = 256), RESP(LAST, 102, .len = 88, .at = 512),
        {SCQE, WC_RDMA_READ, .id = 1},
        {MEM, .len = 600})},
    {"implied_nak__again_after_progress", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 600}, READ_OUT(100, .dma_len = 600),
        RESP(MIDDLE, 101, .len = 256, .at = 256),
        READ_OUT(100, .dma_len = 600), RESP(FIRST, 100, .len = 256),
        RESP(LAST, 102, .len = 88, .at = 512),
        READ_OUT(101, .va = 256, .dma_len = 344), {COUNT, COUNTER_implied_nak_seq_err, .n = 2},
        RESP(FIRST, 101, .len = 256, .at = 256), RESP(LAST, 102, .len = 88, .at = 512),
        {SCQE, WC_RDMA_READ, .id = 1},
        {MEM, .len = 600})},
    {"implied_nak__again_after_a_timeout", true, WITH(.timeout = 1), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 600}, READ_OUT(100, .dma_len = 600),
        RESP(MIDDLE, 101, .len = 256, .at = 256),
        READ_OUT(100, .dma_len = 600), RESP(LAST, 102, .len = 88, .at = 512), {SILENT},
        {TIME, .ns = 8192}, READ_OUT(100, .dma_len = 600),
        RESP(LAST, 102, .len = 88, .at = 512), READ_OUT(100, .dma_len = 600),
        {COUNT, COUNTER_implied_nak_seq_err, .n = 2}, RESP(FIRST, 100, .len = 256),
        RESP(MIDDLE, 101, .len = 256, .at = 256), RESP(LAST, 102, .len = 88, .at = 512),
        {SCQE, WC_RDMA_READ, .id = 1}, {MEM, .len = 600})},
    {"implied_nak__not_before_the_request_goes_again", true, WITH(.timeout = 1, .retry = 1), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 600}, READ_OUT(100, .dma_len = 600),
        {HOLD, .ns = 8192}, RESP(LAST, 102, .len = 88, .at = 512), READ_OUT(100, .dma_len = 600),
        {COUNT, COUNTER_local_ack_timeout_err, .n = 1}, {COUNT, COUNTER_implied_nak_seq_err, .n = 1},
        RESP(FIRST, 100, .len = 256),
        RESP(MIDDLE, 101, .len = 256, .at = 256), RESP(LAST, 102, .len = 88, .at = 512),
        {SCQE, WC_RDMA_READ, .id = 1}, {MEM, .len = 600})},
    {"implied_nak__the_rest_is_asked_for", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 600, .va = 8}, READ_OUT(100, .va = 8, .dma_len = 600),
        RESP(FIRST, 100, .len = 256),
        RESP(LAST, 102, .len = 88, .at = 512), READ_OUT(101, .va = 264, .dma_len = 344),
        RESP(FIRST, 101, .len = 256, .at = 256), RESP(LAST, 102, .len = 88, .at = 512),
        {SCQE, WC_RDMA_READ, .id = 1},
        {MEM, .len = 600})},
    {"implied_nak__the_rest_may_come_as_middle", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 600}, READ_OUT(100, .dma_len = 600),
        RESP(FIRST, 100, .len = 256),
        RESP(LAST, 102, .len = 88, .at = 512), READ_OUT(101, .va = 256, .dma_len = 344),
        RESP(MIDDLE, 101, .len = 256, .at = 256), RESP(LAST, 102, .len = 88, .at = 512),
        {SCQE, WC_RDMA_READ, .id = 1},
        {MEM, .len = 600})},
    {"implied_nak__ack_beyond_a_read", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 4}, POST0(2), READ_OUT(100, .dma_len = 4), OUT0(101),
        ACK(.psn = 101, .msn = 2),
        READ_OUT(100, .dma_len = 4), OUT0(101), RESP(ONLY, 100, .len = 4),
        {SCQE, WC_RDMA_READ, .id = 1},
        ACK(.psn = 101, .msn = 2), SENT(2), {MEM, .len = 4})},
    {"implied_nak__response_of_the_next_read", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 4}, {POST, WR_RDMA_READ, .id = 2, .at = 64, .len = 4},
        READ_OUT(100, .dma_len = 4), READ_OUT(101, .dma_len = 4),
        RESP(ONLY, 101, .len = 4, .tag = 1),
        READ_OUT(100, .dma_len = 4), READ_OUT(101, .dma_len = 4), RESP(ONLY, 100, .len = 4),
        {SCQE, WC_RDMA_READ, .id = 1},
        RESP(ONLY, 101, .len = 4, .tag = 1), {SCQE, WC_RDMA_READ, .id = 2}, {MEM, .len = 4},
        {MEM, .at = 64, .len = 4, .tag = 1})},
    {"implied_nak__atomic_ack_lost", true, WITH(), STEPS(
        {SET, .at = 64, .a = 0},
        {POST, WR_ATOMIC_FETCH_AND_ADD, .id = 1, .at = 64, .len = 8, .a = 1}, POST0(2),
        {OUT, OP_FETCH_ADD, .psn = 100, .a = 1, .ack_req = true}, OUT0(101),
        ACK(.psn = 101, .msn = 2),
        {OUT, OP_FETCH_ADD, .psn = 100, .a = 1, .ack_req = true}, OUT0(101),
        {IN, OP_ATOMIC_ACKNOWLEDGE, .psn = 100, .msn = 2, .a = 77}, {SCQE, WC_FETCH_ADD, .id = 1},
        ACK(.psn = 101, .msn = 2),
        SENT(2), {CELL, .at = 64, .a = 77})},
    {"implied_nak__takes_a_retry", true, WITH(.retry = 0), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 4}, POST0(2), READ_OUT(100, .dma_len = 4), OUT0(101),
        ACK(.psn = 101, .msn = 2),
        FAILED(1, WC_RETRY_EXC_ERR), FLUSHED(2), {STATE, QP_STATE_ERR})},
    {"late__answer_overtakes_the_going_back", true, WITH(.max_rd = 1), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 4}, {POST, WR_RDMA_READ, .id = 2, .at = 64, .len = 4},
        READ_OUT(100, .dma_len = 4),
        ACK(.psn = 100, .syn = NAK(0)), READ_OUT(100, .dma_len = 4), RESP(ONLY, 100, .len = 4),
        READ_OUT(101, .dma_len = 4),
        {SCQE, WC_RDMA_READ, .id = 1}, RESP(ONLY, 100, .len = 4), {SILENT},
        RESP(ONLY, 101, .len = 4),
        {SCQE, WC_RDMA_READ, .id = 2}, {MEM, .len = 4}, {MEM, .at = 64, .len = 4})},

    /* The end. */
    {"nak_invalid__status_and_flush", true, WITH(), STEPS(
        POST0(1), POST0(2), POST0(3), OUT0(100), OUT0(101), OUT0(102),
        ACK(.psn = 101, .msn = 1, .syn = NAK(NAK_INVALID_REQUEST)),
        SENT(1), FAILED(2, WC_REM_INV_REQ_ERR), FLUSHED(3), {STATE, QP_STATE_ERR},
        ACK(.psn = 102, .msn = 3), {SILENT},
        {COUNT, COUNTER_req_remote_invalid_request, .n = 1})},
    {"nak_access__status_and_flush", true, WITH(), STEPS(
        {RECV, .id = 9}, {POST, WR_RDMA_WRITE, .id = 1}, POST0(2),
        {OUT, OP_WRITE_ONLY, .psn = 100, .ack_req = true}, OUT0(101),
        ACK(.psn = 100, .syn = NAK(NAK_REMOTE_ACCESS)), FAILED(1, WC_REM_ACCESS_ERR), FLUSHED(2),
        {RCQE, .id = 9, .status = WC_WR_FLUSH_ERR}, {STATE, QP_STATE_ERR},
        {COUNT, COUNTER_req_remote_access_errors, .n = 1})},
    {"nak_operational__status_and_flush", true, WITH(), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .syn = NAK(NAK_REMOTE_OPERATIONAL)),
        FAILED(1, WC_REM_OP_ERR), {STATE, QP_STATE_ERR},
        {COUNT, COUNTER_req_remote_op_errors, .n = 1})},
    {"nak_access__of_a_read", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 4}, READ_OUT(100, .dma_len = 4),
        ACK(.psn = 100, .syn = NAK(NAK_REMOTE_ACCESS)),
        FAILED(1, WC_REM_ACCESS_ERR), {STATE, QP_STATE_ERR})},
    {"nak_access__in_the_midst_of_a_read", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 300}, READ_OUT(100, .dma_len = 300),
        RESP(FIRST, 100, .len = 256),
        ACK(.psn = 101, .msn = 1, .syn = NAK(NAK_REMOTE_ACCESS)), FAILED(1, WC_REM_ACCESS_ERR),
        {STATE, QP_STATE_ERR},
        {MEM, .len = 256})},
    {"nak__unsignalled_fails_with_a_completion", true, WITH(.unsignalled = true), STEPS(
        POST0(1), POST0(2), OUT0(100), OUT0(101),
        ACK(.psn = 101, .msn = 1, .syn = NAK(NAK_REMOTE_ACCESS)),
        FAILED(2, WC_REM_ACCESS_ERR))},
    {"nak_access__behind_a_read_that_is_not_answered", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 4}, POST0(2), READ_OUT(100, .dma_len = 4), OUT0(101),
        ACK(.psn = 101, .msn = 1, .syn = NAK(NAK_REMOTE_ACCESS)), READ_OUT(100, .dma_len = 4),
        OUT0(101), {STATE, QP_STATE_RTS})},
    {"read_length__too_short", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 300}, READ_OUT(100, .dma_len = 300),
        RESP(FIRST, 100, .len = 252),
        FAILED(1, WC_LOC_LEN_ERR), {STATE, QP_STATE_ERR})},
    {"read_length__last_too_long", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 300}, READ_OUT(100, .dma_len = 300),
        RESP(FIRST, 100, .len = 256),
        RESP(LAST, 101, .len = 48), FAILED(1, WC_LOC_LEN_ERR), {STATE, QP_STATE_ERR},
        {MEM, .len = 256})},
    {"read_length__payload_for_nothing", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1}, READ_OUT(100), RESP(ONLY, 100, .len = 4),
        FAILED(1, WC_LOC_LEN_ERR), {STATE, QP_STATE_ERR})},
    {"read_key__revoked_inside", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 300, .key = K_SMALL}, READ_OUT(100, .dma_len = 300),
        RESP(FIRST, 100, .len = 256),
        {REVOKE, .key = K_SMALL}, RESP(LAST, 101, .len = 44), FAILED(1, WC_LOC_PROT_ERR),
        {STATE, QP_STATE_ERR}, {MEM, .len = 256})},
    {"atomic_key__revoked_before_the_answer", true, WITH(), STEPS(
        {POST, WR_ATOMIC_FETCH_AND_ADD, .id = 1, .at = 64, .len = 8, .a = 1, .key = K_SMALL},
        {OUT, OP_FETCH_ADD, .psn = 100, .a = 1, .ack_req = true}, {REVOKE, .key = K_SMALL},
        {IN, OP_ATOMIC_ACKNOWLEDGE, .psn = 100, .msn = 1, .a = 5}, FAILED(1, WC_LOC_PROT_ERR),
        {STATE, QP_STATE_ERR})},
    {"last_wqe__srq_qp_after_a_fatal_nak", true, WITH(.srq = true), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .syn = NAK(NAK_REMOTE_ACCESS)),
        FAILED(1, WC_REM_ACCESS_ERR),
        {EVENT, EVENT_QP_LAST_WQE_REACHED})},
};
/* clang-format on */

int main(void)
{
    return script_run("completer", dialogues, sizeof(dialogues) / sizeof(dialogues[0]));
}
