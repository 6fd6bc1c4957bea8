/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_requester.c: what an RC requester puts on the wire for each work request, when it holds
 * back, and what it does when nobody answers.
 */
#include <errno.h>

#include "script.h"

/* clang-format off */
#define ACK(...) {IN, OP_ACKNOWLEDGE, __VA_ARGS__}
#define SENT(i) {SCQE, WC_SEND, .id = i}
#define FAILED(i, s) {SCQE, .id = i, .status = s}
#define FLUSHED(i) {SCQE, .id = i, .status = WC_WR_FLUSH_ERR}
/* A SEND of nothing: one packet. */
#define POST0(i) {POST, WR_SEND, .id = i}
#define OUT0(p) {OUT, OP_SEND_ONLY, .psn = p, .ack_req = true}
#define READ_OUT(p, ...) {OUT, OP_READ_REQUEST, .psn = p, .ack_req = true, __VA_ARGS__}
#define MIDDLE_OUT(p, ...) \
    {OUT, OP_SEND_MIDDLE, .psn = p, .len = 256, .at = 256 * (p - 100), __VA_ARGS__}
/* A window of nine, of which each second packet asks for an ACK. */
#define NINE_OUT \
    {OUT, OP_SEND_FIRST, .psn = 100, .len = 256}, MIDDLE_OUT(101, .ack_req = true), \
    MIDDLE_OUT(102), MIDDLE_OUT(103, .ack_req = true), MIDDLE_OUT(104), \
    MIDDLE_OUT(105, .ack_req = true), MIDDLE_OUT(106), MIDDLE_OUT(107, .ack_req = true), \
    MIDDLE_OUT(108)
#define MS 1000000ull

static const struct dialogue dialogues[] = {
    /* Each operation, one packet and several. */
    {"send__one_packet", false, WITH(), STEPS(
        {POST, WR_SEND, .id = 1, .at = 32, .len = 16},
        {OUT, OP_SEND_ONLY, .psn = 100, .at = 32, .len = 16, .ack_req = true},
        ACK(.psn = 100, .msn = 1), SENT(1))},
    {"send__zero_length", false, WITH(), STEPS(
        {POST, WR_SEND, .id = 1}, OUT0(100), ACK(.psn = 100, .msn = 1), SENT(1))},
    {"send__exactly_the_mtu", false, WITH(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 256},
        {OUT, OP_SEND_ONLY, .psn = 100, .len = 256, .ack_req = true},
        ACK(.psn = 100, .msn = 1), SENT(1))},
    {"send__one_more_than_the_mtu", false, WITH(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 257}, {OUT, OP_SEND_FIRST, .psn = 100, .len = 256},
        {OUT, OP_SEND_LAST, .psn = 101, .len = 1, .at = 256, .ack_req = true},
        ACK(.psn = 101, .msn = 1), SENT(1))},
    {"send__three_packets", false, WITH(.mtu = 1024), STEPS(
        {POST, WR_SEND, .id = 1, .at = 7, .len = 3000},
        {OUT, OP_SEND_FIRST, .psn = 100, .len = 1024, .at = 7},
        {OUT, OP_SEND_MIDDLE, .psn = 101, .len = 1024, .at = 1031},
        {OUT, OP_SEND_LAST, .psn = 102, .len = 952, .at = 2055, .ack_req = true},
        ACK(.psn = 102, .msn = 1), SENT(1))},
    {"send__mtu_4096", false, WITH(.mtu = 4096), STEPS(
        {POST, WR_SEND, .id = 1, .len = 4097}, {OUT, OP_SEND_FIRST, .psn = 100, .len = 4096},
        {OUT, OP_SEND_LAST, .psn = 101, .len = 1, .at = 4096, .ack_req = true},
        ACK(.psn = 101, .msn = 1), SENT(1))},
    {"send__gathered_from_sges", false, WITH(), STEPS(
        {POST, WR_SEND, .id = 1, .at = 5, .len = 600, .sges = 4},
        {OUT, OP_SEND_FIRST, .psn = 100, .len = 256, .at = 5},
        {OUT, OP_SEND_MIDDLE, .psn = 101, .len = 256, .at = 261},
        {OUT, OP_SEND_LAST, .psn = 102, .len = 88, .at = 517, .ack_req = true},
        ACK(.psn = 102, .msn = 1), SENT(1))},
    {"send__inline_needs_no_key", false, WITH(), STEPS(
        {POST, WR_SEND, .id = 1, .at = 5, .len = 300, .sges = 7, .key = K_NONE, .flags = WR_INLINE},
        {OUT, OP_SEND_FIRST, .psn = 100, .len = 256, .at = 5},
        {OUT, OP_SEND_LAST, .psn = 101, .len = 44, .at = 261, .ack_req = true},
        ACK(.psn = 101, .msn = 1), SENT(1))},
    {"send_imm__only_and_last", false, WITH(), STEPS(
        {POST, WR_SEND_WITH_IMM, .id = 1, .imm = 0x80000001},
        {POST, WR_SEND_WITH_IMM, .id = 2, .len = 257, .imm = 7},
        {OUT, OP_SEND_ONLY_IMM, .psn = 100, .imm = 0x80000001, .ack_req = true},
        {OUT, OP_SEND_FIRST, .psn = 101, .len = 256},
        {OUT, OP_SEND_LAST_IMM, .psn = 102, .len = 1, .at = 256, .imm = 7, .ack_req = true},
        ACK(.psn = 102, .msn = 2), SENT(1), SENT(2))},
    {"send_inv__only_and_last", false, WITH(), STEPS(
        {POST, WR_SEND_WITH_INV, .id = 1, .imm = 0x1234},
        {POST, WR_SEND_WITH_INV, .id = 2, .len = 257, .imm = 7},
        {OUT, OP_SEND_ONLY_INV, .psn = 100, .imm = 0x1234, .ack_req = true},
        {OUT, OP_SEND_FIRST, .psn = 101, .len = 256},
        {OUT, OP_SEND_LAST_INV, .psn = 102, .len = 1, .at = 256, .imm = 7, .ack_req = true},
        ACK(.psn = 102, .msn = 2), SENT(1), SENT(2))},
    {"write__reth_in_the_first_packet", false, WITH(), STEPS(
        {POST, WR_RDMA_WRITE, .id = 1, .len = 600, .va = 1 << 20},
        {OUT, OP_WRITE_FIRST, .psn = 100, .len = 256, .va = 1 << 20, .dma_len = 600},
        {OUT, OP_WRITE_MIDDLE, .psn = 101, .len = 256, .at = 256},
        {OUT, OP_WRITE_LAST, .psn = 102, .len = 88, .at = 512, .ack_req = true},
        ACK(.psn = 102, .msn = 1), {SCQE, WC_RDMA_WRITE, .id = 1})},
    {"write__one_packet_and_none", false, WITH(), STEPS(
        {POST, WR_RDMA_WRITE, .id = 1, .len = 5, .va = 9}, {POST, WR_RDMA_WRITE, .id = 2, .va = 3},
        {OUT, OP_WRITE_ONLY, .psn = 100, .len = 5, .va = 9, .dma_len = 5, .ack_req = true},
        {OUT, OP_WRITE_ONLY, .psn = 101, .va = 3, .ack_req = true},
        ACK(.psn = 101, .msn = 2), {SCQE, WC_RDMA_WRITE, .id = 1}, {SCQE, WC_RDMA_WRITE, .id = 2})},
    {"write_imm__only_and_last", false, WITH(), STEPS(
        {POST, WR_RDMA_WRITE_WITH_IMM, .id = 1, .va = 8, .imm = 0x80000001},
        {POST, WR_RDMA_WRITE_WITH_IMM, .id = 2, .len = 257, .imm = 7},
        {OUT, OP_WRITE_ONLY_IMM, .psn = 100, .va = 8, .imm = 0x80000001, .ack_req = true},
        {OUT, OP_WRITE_FIRST, .psn = 101, .len = 256, .dma_len = 257},
        {OUT, OP_WRITE_LAST_IMM, .psn = 102, .len = 1, .at = 256, .imm = 7, .ack_req = true},
        ACK(.psn = 102, .msn = 2), {SCQE, WC_RDMA_WRITE, .id = 1}, {SCQE, WC_RDMA_WRITE, .id = 2})},
    {"read__takes_a_psn_a_response", false, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 600, .va = 77},
        READ_OUT(100, .va = 77, .dma_len = 600), POST0(2), OUT0(103),
        {IN, OP_READ_RESP_FIRST, .psn = 100, .msn = 1, .len = 256},
        {IN, OP_READ_RESP_MIDDLE, .psn = 101, .len = 256, .at = 256}, {SILENT},
        {IN, OP_READ_RESP_LAST, .psn = 102, .msn = 1, .len = 88, .at = 512},
        {SCQE, WC_RDMA_READ, .id = 1},
        ACK(.psn = 103, .msn = 2), SENT(2), {MEM, .len = 600})},
    {"read__zero_length", false, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .va = 5}, READ_OUT(100, .va = 5),
        {IN, OP_READ_RESP_ONLY, .psn = 100, .msn = 1}, {SCQE, WC_RDMA_READ, .id = 1})},
    {"read__asked_for_in_pieces_of_half_a_window", false, WITH(.window_bytes = 2048), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 2000, .va = 4},
        READ_OUT(100, .va = 4, .dma_len = 1024),
        READ_OUT(104, .va = 1028, .dma_len = 976), {SILENT},
        {IN, OP_READ_RESP_FIRST, .psn = 100, .msn = 1, .len = 256},
        {IN, OP_READ_RESP_MIDDLE, .psn = 101, .len = 256, .at = 256},
        {IN, OP_READ_RESP_MIDDLE, .psn = 102, .len = 256, .at = 512},
        {IN, OP_READ_RESP_LAST, .psn = 103, .msn = 1, .len = 256, .at = 768},
        {IN, OP_READ_RESP_FIRST, .psn = 104, .msn = 2, .len = 256, .at = 1024},
        {IN, OP_READ_RESP_MIDDLE, .psn = 105, .len = 256, .at = 1280},
        {IN, OP_READ_RESP_MIDDLE, .psn = 106, .len = 256, .at = 1536},
        {IN, OP_READ_RESP_LAST, .psn = 107, .msn = 2, .len = 208, .at = 1792},
        {SCQE, WC_RDMA_READ, .id = 1}, {MEM, .len = 2000})},
    {"atomic__compare_swap_and_fetch_add", false, WITH(), STEPS(
        {SET, .at = 64, .a = 0}, {SET, .at = 72, .a = 0},
        {POST, WR_ATOMIC_CMP_AND_SWP, .id = 1, .at = 64, .len = 8, .va = 16, .a = 7, .b = 8},
        {POST, WR_ATOMIC_FETCH_AND_ADD, .id = 2, .at = 72, .len = 8, .va = 24, .a = 9},
        {OUT, OP_COMPARE_SWAP, .psn = 100, .va = 16, .a = 7, .b = 8, .ack_req = true},
        {OUT, OP_FETCH_ADD, .psn = 101, .va = 24, .a = 9, .ack_req = true},
        {IN, OP_ATOMIC_ACKNOWLEDGE, .psn = 100, .msn = 1, .a = 1234}, {SCQE, WC_COMP_SWAP, .id = 1},
        {IN, OP_ATOMIC_ACKNOWLEDGE, .psn = 101, .msn = 2, .a = UINT64_MAX},
        {SCQE, WC_FETCH_ADD, .id = 2},
        {CELL, .at = 64, .a = 1234}, {CELL, .at = 72, .a = UINT64_MAX})},

    {"local_inv__no_packet_and_in_order", false, WITH(), STEPS(
        POST0(1), {POST, WR_LOCAL_INV, .id = 2, .imm = K_WINDOW}, POST0(3), OUT0(100), OUT0(101),
        {SILENT},
        ACK(.psn = 101, .msn = 2), SENT(1), {SCQE, WC_LOCAL_INV, .id = 2}, SENT(3))},
    /* Bits and numbers. */
    {"solicited__last_packet_only", false, WITH(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 257, .flags = WR_SOLICITED},
        {OUT, OP_SEND_FIRST, .psn = 100, .len = 256},
        {OUT, OP_SEND_LAST, .psn = 101, .len = 1, .at = 256, .ack_req = true, .se = true},
        ACK(.psn = 101, .msn = 1), SENT(1))},
    {"solicited__write_only_with_immediate", false, WITH(), STEPS(
        {POST, WR_RDMA_WRITE, .id = 1, .flags = WR_SOLICITED},
        {POST, WR_RDMA_WRITE_WITH_IMM, .id = 2, .flags = WR_SOLICITED},
        {OUT, OP_WRITE_ONLY, .psn = 100, .ack_req = true},
        {OUT, OP_WRITE_ONLY_IMM, .psn = 101, .ack_req = true, .se = true},
        ACK(.psn = 101, .msn = 2), {SCQE, WC_RDMA_WRITE, .id = 1}, {SCQE, WC_RDMA_WRITE, .id = 2})},
    {"psn__wraps", false, WITH(.sq_psn = 0xffffff), STEPS(
        {POST, WR_SEND, .id = 1, .len = 512}, {OUT, OP_SEND_FIRST, .psn = 0xffffff, .len = 256},
        {OUT, OP_SEND_LAST, .psn = 0, .len = 256, .at = 256, .ack_req = true},
        {POST, WR_RDMA_READ, .id = 2},
        READ_OUT(1), ACK(.psn = 0, .msn = 1), SENT(1), {IN, OP_READ_RESP_ONLY, .psn = 1, .msn = 2},
        {SCQE, WC_RDMA_READ, .id = 2})},
    {"psn__read_over_the_wrap", false, WITH(.sq_psn = 0xffffff), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 300}, READ_OUT(0xffffff, .dma_len = 300), POST0(2),
        OUT0(1),
        {IN, OP_READ_RESP_FIRST, .psn = 0xffffff, .msn = 1, .len = 256},
        {IN, OP_READ_RESP_LAST, .psn = 0, .msn = 1, .len = 44, .at = 256}, ACK(.psn = 1, .msn = 2),
        {SCQE, WC_RDMA_READ, .id = 1}, SENT(2), {MEM, .len = 300})},
    {"ack_req__four_in_a_window", false, WITH(.window_bytes = 4096), STEPS(
        {POST, WR_SEND, .id = 1, .len = 1600}, {OUT, OP_SEND_FIRST, .psn = 100, .len = 256},
        {OUT, OP_SEND_MIDDLE, .psn = 101, .len = 256, .at = 256},
        {OUT, OP_SEND_MIDDLE, .psn = 102, .len = 256, .at = 512},
        {OUT, OP_SEND_MIDDLE, .psn = 103, .len = 256, .at = 768, .ack_req = true},
        {OUT, OP_SEND_MIDDLE, .psn = 104, .len = 256, .at = 1024},
        {OUT, OP_SEND_MIDDLE, .psn = 105, .len = 256, .at = 1280},
        {OUT, OP_SEND_LAST, .psn = 106, .len = 64, .at = 1536, .ack_req = true},
        ACK(.psn = 103, .msn = 0), {SILENT}, ACK(.psn = 106, .msn = 1), SENT(1))},
    {"window__never_under_four_packets", false, WITH(.window_bytes = 1), STEPS(
        POST0(1), POST0(2), POST0(3), POST0(4), POST0(5), OUT0(100), OUT0(101), OUT0(102),
        OUT0(103), {SILENT},
        ACK(.psn = 103, .msn = 4), OUT0(104), ACK(.psn = 104, .msn = 5), SENT(1), SENT(2), SENT(3),
        SENT(4), SENT(5))},
    {"window__obeyed", false, WITH(.window_bytes = 1024), STEPS(
        {POST, WR_SEND, .id = 1, .len = 1300},
        {OUT, OP_SEND_FIRST, .psn = 100, .len = 256, .ack_req = true},
        {OUT, OP_SEND_MIDDLE, .psn = 101, .len = 256, .at = 256, .ack_req = true},
        {OUT, OP_SEND_MIDDLE, .psn = 102, .len = 256, .at = 512, .ack_req = true},
        {OUT, OP_SEND_MIDDLE, .psn = 103, .len = 256, .at = 768, .ack_req = true}, {SILENT},
        ACK(.psn = 100, .msn = 0),
        {OUT, OP_SEND_MIDDLE, .psn = 104, .len = 256, .at = 1024, .ack_req = true}, {SILENT},
        ACK(.psn = 104, .msn = 0),
        {OUT, OP_SEND_LAST, .psn = 105, .len = 20, .at = 1280, .ack_req = true},
        ACK(.psn = 105, .msn = 1), SENT(1))},
    {"unsignalled__no_completion", false, WITH(.unsignalled = true), STEPS(
        POST0(1), {POST, WR_SEND, .id = 2, .flags = WR_SIGNALED}, OUT0(100), OUT0(101),
        ACK(.psn = 101, .msn = 2), SENT(2))},

    /* Holding back. */
    {"max_rd_atomic__one_at_a_time", false, WITH(.max_rd = 1), STEPS(
        {SET, .at = 64, .a = 0}, {POST, WR_RDMA_READ, .id = 1, .len = 4},
        {POST, WR_ATOMIC_FETCH_AND_ADD, .id = 2, .at = 64, .len = 8, .a = 1}, POST0(3),
        READ_OUT(100, .dma_len = 4), {SILENT},
        {IN, OP_READ_RESP_ONLY, .psn = 100, .msn = 1, .len = 4},
        {OUT, OP_FETCH_ADD, .psn = 101, .a = 1, .ack_req = true},
        OUT0(102), {SCQE, WC_RDMA_READ, .id = 1},
        {IN, OP_ATOMIC_ACKNOWLEDGE, .psn = 101, .msn = 2, .a = 5},
        {SCQE, WC_FETCH_ADD, .id = 2}, ACK(.psn = 102, .msn = 3), SENT(3), {MEM, .len = 4},
        {CELL, .at = 64, .a = 5})},
    {"max_rd_atomic__writes_go_on_until_the_next_read", false, WITH(.max_rd = 1), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 4}, POST0(2), {POST, WR_RDMA_READ, .id = 3}, POST0(4),
        READ_OUT(100, .dma_len = 4), OUT0(101), {SILENT},
        {IN, OP_READ_RESP_ONLY, .psn = 100, .msn = 1, .len = 4},
        READ_OUT(102), OUT0(103), {SCQE, WC_RDMA_READ, .id = 1}, ACK(.psn = 101, .msn = 2), SENT(2),
        {IN, OP_READ_RESP_ONLY, .psn = 102, .msn = 3}, {SCQE, WC_RDMA_READ, .id = 3},
        ACK(.psn = 103, .msn = 4), SENT(4),
        {MEM, .len = 4})},
    {"max_rd_atomic__until_the_last_response", false, WITH(.max_rd = 1), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 300}, {POST, WR_RDMA_READ, .id = 2},
        READ_OUT(100, .dma_len = 300),
        {IN, OP_READ_RESP_FIRST, .psn = 100, .msn = 1, .len = 256}, {SILENT},
        {IN, OP_READ_RESP_LAST, .psn = 101, .msn = 1, .len = 44, .at = 256}, READ_OUT(102),
        {SCQE, WC_RDMA_READ, .id = 1},
        {IN, OP_READ_RESP_ONLY, .psn = 102, .msn = 2}, {SCQE, WC_RDMA_READ, .id = 2},
        {MEM, .len = 300})},
    {"max_rd_atomic__counts_pieces_of_a_read", false, WITH(.max_rd = 1, .window_bytes = 1024),
        STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 600}, READ_OUT(100, .dma_len = 512), {SILENT},
        {IN, OP_READ_RESP_FIRST, .psn = 100, .msn = 1, .len = 256},
        {IN, OP_READ_RESP_LAST, .psn = 101, .msn = 1, .len = 256, .at = 256},
        READ_OUT(102, .va = 512, .dma_len = 88),
        {IN, OP_READ_RESP_ONLY, .psn = 102, .msn = 2, .len = 88, .at = 512},
        {SCQE, WC_RDMA_READ, .id = 1},
        {MEM, .len = 600})},
    {"fence__waits_for_reads", false, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 4}, {POST, WR_SEND, .id = 2, .flags = WR_FENCE},
        POST0(3),
        READ_OUT(100, .dma_len = 4), {SILENT},
        {IN, OP_READ_RESP_ONLY, .psn = 100, .msn = 1, .len = 4}, OUT0(101), OUT0(102),
        {SCQE, WC_RDMA_READ, .id = 1}, ACK(.psn = 102, .msn = 3), SENT(2), SENT(3),
        {MEM, .len = 4})},
    {"fence__does_not_wait_for_sends", false, WITH(), STEPS(
        POST0(1), {POST, WR_RDMA_READ, .id = 2, .flags = WR_FENCE}, OUT0(100), READ_OUT(101),
        {IN, OP_READ_RESP_ONLY, .psn = 101, .msn = 2}, SENT(1), {SCQE, WC_RDMA_READ, .id = 2})},
    /* IBA 9.7.7.2 */
    {"credits__limit_obeyed", false, WITH(), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1, .syn = CREDITS(1)), SENT(1), POST0(2),
        POST0(3), POST0(4),
        OUT0(101), {SILENT}, ACK(.psn = 101, .msn = 2, .syn = CREDITS(0)),
        /* one message beyond the limit, alone */
        OUT0(102), {SILENT}, SENT(2), ACK(.psn = 102, .msn = 3, .syn = CREDITS(4)), OUT0(103),
        SENT(3),
        ACK(.psn = 103, .msn = 4, .syn = CREDITS(3)), SENT(4))},
    {"credits__not_for_write_and_read", false, WITH(), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1, .syn = CREDITS(0)), SENT(1),
        {POST, WR_RDMA_WRITE, .id = 2},
        {POST, WR_RDMA_READ, .id = 3}, {POST, WR_RDMA_WRITE_WITH_IMM, .id = 4},
        {OUT, OP_WRITE_ONLY, .psn = 101, .ack_req = true}, READ_OUT(102), {SILENT},
        {IN, OP_READ_RESP_ONLY, .psn = 102, .msn = 3, .syn = CREDITS(1)},
        {OUT, OP_WRITE_ONLY_IMM, .psn = 103, .ack_req = true}, {SCQE, WC_RDMA_WRITE, .id = 2},
        {SCQE, WC_RDMA_READ, .id = 3},
        ACK(.psn = 103, .msn = 4, .syn = CREDITS(0)), {SCQE, WC_RDMA_WRITE, .id = 4})},
    {"credits__several_writes_need_none", false, WITH(), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1, .syn = CREDITS(0)), SENT(1),
        {POST, WR_RDMA_WRITE, .id = 2}, {POST, WR_RDMA_WRITE, .id = 3},
        {OUT, OP_WRITE_ONLY, .psn = 101, .ack_req = true},
        {OUT, OP_WRITE_ONLY, .psn = 102, .ack_req = true}, ACK(.psn = 102, .msn = 3),
        {SCQE, WC_RDMA_WRITE, .id = 2}, {SCQE, WC_RDMA_WRITE, .id = 3})},
    /* IBA 9.7.7.2 */
    {"credits__a_repeated_ack_brings_more", false, WITH(), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1, .syn = CREDITS(1)), SENT(1), POST0(2),
        POST0(3), OUT0(101),
        {SILENT}, ACK(.psn = 100, .msn = 1, .syn = CREDITS(2)), OUT0(102),
        ACK(.psn = 102, .msn = 3), SENT(2), SENT(3))},
    /* IBA 9.7.7.2 */
    {"credits__less_than_before_is_late_news", true, WITH(), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1, .syn = CREDITS(2)),
        ACK(.psn = 100, .msn = 1, .syn = CREDITS(1)),
        SENT(1), POST0(2), POST0(3), OUT0(101), OUT0(102), ACK(.psn = 102, .msn = 3), SENT(2),
        SENT(3))},
    {"credits__of_a_ghost_are_not_taken", true, WITH(), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1, .syn = CREDITS(1)), SENT(1),
        ACK(.psn = 105, .msn = 9, .syn = CREDITS(9)), POST0(2), POST0(3), OUT0(101), {SILENT},
        ACK(.psn = 101, .msn = 2), OUT0(102), SENT(2), ACK(.psn = 102, .msn = 3), SENT(3))},
    {"credits__of_an_earlier_life_are_not_taken", true, WITH(), STEPS(
        ACK(.psn = 0xf00000, .syn = CREDITS(0)), POST0(1), POST0(2), OUT0(100), OUT0(101),
        ACK(.psn = 101, .msn = 2), SENT(1), SENT(2), {COUNT, COUNTER_req_stale_acks, .n = 1})},
    {"credits__of_a_responder_that_has_taken_nothing", false, WITH(), STEPS(
        ACK(.psn = 99, .syn = CREDITS(1)), POST0(1), POST0(2), OUT0(100), {SILENT},
        ACK(.psn = 100, .msn = 1, .syn = CREDITS(1)), OUT0(101), SENT(1), ACK(.psn = 101, .msn = 2),
        SENT(2))},
    {"credits__a_read_in_pieces_is_several_messages", false, WITH(.window_bytes = 2048), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1, .syn = CREDITS(2)), SENT(1),
        {POST, WR_RDMA_READ, .id = 2, .len = 1030},
        READ_OUT(101, .dma_len = 1024), READ_OUT(105, .va = 1024, .dma_len = 6), POST0(3), {SILENT},
        {IN, OP_READ_RESP_FIRST, .psn = 101, .msn = 2, .len = 256, .syn = CREDITS(2)}, OUT0(106),
        {IN, OP_READ_RESP_MIDDLE, .psn = 102, .len = 256, .at = 256},
        {IN, OP_READ_RESP_MIDDLE, .psn = 103, .len = 256, .at = 512},
        {IN, OP_READ_RESP_LAST, .psn = 104, .msn = 2, .len = 256, .at = 768},
        {IN, OP_READ_RESP_ONLY, .psn = 105, .msn = 3, .len = 6, .at = 1024},
        {SCQE, WC_RDMA_READ, .id = 2},
        ACK(.psn = 106, .msn = 4), SENT(3), {MEM, .len = 1030})},
    {"credits__a_middle_response_says_nothing", false, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 768}, READ_OUT(100, .dma_len = 768),
        {IN, OP_READ_RESP_FIRST, .psn = 100, .msn = 1, .len = 256},
        {IN, OP_READ_RESP_MIDDLE, .psn = 101, .len = 256, .at = 256},
        POST0(2), POST0(3), OUT0(103), OUT0(104),
        {IN, OP_READ_RESP_LAST, .psn = 102, .msn = 1, .len = 256, .at = 512},
        {SCQE, WC_RDMA_READ, .id = 1, .len = 768}, {MEM, .len = 768},
        ACK(.psn = 104, .msn = 3), SENT(2), SENT(3))},
    {"credits__a_local_operation_is_no_message", false, WITH(), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1, .syn = CREDITS(2)), SENT(1),
        {POST, WR_LOCAL_INV, .id = 2, .imm = K_WINDOW}, POST0(3), POST0(4), POST0(5), OUT0(101),
        OUT0(102), {SILENT}, {SCQE, WC_LOCAL_INV, .id = 2}, ACK(.psn = 102, .msn = 3), OUT0(103),
        SENT(3), SENT(4), ACK(.psn = 103, .msn = 4), SENT(5))},
    {"credits__a_long_send_is_one_message", false, WITH(.window_bytes = 2048), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1, .syn = CREDITS(2)), SENT(1),
        {POST, WR_SEND, .id = 2, .len = 1100}, POST0(3), POST0(4),
        {OUT, OP_SEND_FIRST, .psn = 101, .len = 256},
        {OUT, OP_SEND_MIDDLE, .psn = 102, .len = 256, .at = 256, .ack_req = true},
        {OUT, OP_SEND_MIDDLE, .psn = 103, .len = 256, .at = 512},
        {OUT, OP_SEND_MIDDLE, .psn = 104, .len = 256, .at = 768, .ack_req = true},
        {OUT, OP_SEND_LAST, .psn = 105, .len = 76, .at = 1024, .ack_req = true}, OUT0(106),
        {SILENT}, ACK(.psn = 106, .msn = 3), OUT0(107), SENT(2), SENT(3),
        ACK(.psn = 107, .msn = 4), SENT(4))},
    {"credits__going_back_counts_nothing_again", true, WITH(.timeout = 1), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1, .syn = CREDITS(2)), SENT(1), POST0(2),
        POST0(3), OUT0(101), OUT0(102), {TIME, .ns = 8192}, OUT0(101), OUT0(102), POST0(4),
        {SILENT}, ACK(.psn = 102, .msn = 3, .syn = CREDITS(1)), OUT0(103), SENT(2), SENT(3),
        ACK(.psn = 103, .msn = 4), SENT(4))},
    {"credits__31_lifts_the_limit", false, WITH(), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1, .syn = CREDITS(0)), SENT(1), POST0(2),
        POST0(3), OUT0(101), {SILENT},
        ACK(.psn = 101, .msn = 2, .syn = CREDITS(31)), OUT0(102), SENT(2), POST0(4), OUT0(103),
        ACK(.psn = 103, .msn = 4), SENT(3), SENT(4))},
    {"credits__ssn_wraps_with_msn", false, WITH(), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 0xffffff, .syn = CREDITS(3)), SENT(1),
        POST0(2), POST0(3), OUT0(101),
        {SILENT}, ACK(.psn = 101, .msn = 2, .syn = CREDITS(2)), OUT0(102), SENT(2),
        ACK(.psn = 102, .msn = 3), SENT(3))},
    /* IBA 10.3.1 */
    {"sqd__begun_messages_end_others_wait", false, WITH(.window_bytes = 1024), STEPS(
        {POST, WR_SEND, .id = 1, .len = 1300}, POST0(2),
        {OUT, OP_SEND_FIRST, .psn = 100, .len = 256, .ack_req = true},
        {OUT, OP_SEND_MIDDLE, .psn = 101, .len = 256, .at = 256, .ack_req = true},
        {OUT, OP_SEND_MIDDLE, .psn = 102, .len = 256, .at = 512, .ack_req = true},
        {OUT, OP_SEND_MIDDLE, .psn = 103, .len = 256, .at = 768, .ack_req = true},
        {MODIFY, QP_STATE_SQD},
        ACK(.psn = 103, .msn = 0),
        {OUT, OP_SEND_MIDDLE, .psn = 104, .len = 256, .at = 1024, .ack_req = true},
        {OUT, OP_SEND_LAST, .psn = 105, .len = 20, .at = 1280, .ack_req = true}, {EVENT, -1},
        ACK(.psn = 105, .msn = 1), SENT(1),
        {EVENT, EVENT_SQ_DRAINED}, POST0(3), {SILENT}, {MODIFY, QP_STATE_RTS}, OUT0(106), OUT0(107),
        ACK(.psn = 107, .msn = 3), SENT(2), SENT(3))},
    {"sqd__idle_drains_at_once", false, WITH(), STEPS({MODIFY, QP_STATE_SQD},
        {EVENT, EVENT_SQ_DRAINED}, {SILENT})},

    /* IBA 9.7.6.1.3 */
    {"timeout__answered_in_time", false, WITH(.timeout = 1), STEPS(
        POST0(1), OUT0(100), {TIME, .ns = 8191}, ACK(.psn = 100, .msn = 1), SENT(1),
        {TIME, .ns = 3600000 * MS}, {SILENT}, {COUNT, COUNTER_local_ack_timeout_err, .n = 0},
        {COUNT, COUNTER_retransmitted_packets, .n = 0}, {STATE, QP_STATE_RTS})},

    /* Nobody answers. */
    {"ack_req__counted_anew_when_going_back", true, WITH(.timeout = 1, .window_bytes = 2304), STEPS(
        {POST, WR_SEND, .id = 1, .len = 3000}, NINE_OUT, {SILENT}, {TIME, .ns = 8192}, NINE_OUT,
        {SILENT}, {COUNT, COUNTER_retransmitted_packets, .n = 9})},
    /* IBA 9.7.6.1.3 */
    {"timeout__exactly_and_as_often", true, WITH(.timeout = 1, .retry = 2), STEPS(
        POST0(1), POST0(2), OUT0(100), OUT0(101), {TIME, .ns = 8191}, {SILENT}, {TIME, .ns = 1},
        OUT0(100), OUT0(101),
        {TIME, .ns = 8191}, {SILENT}, {TIME, .ns = 1}, OUT0(100), OUT0(101), {TIME, .ns = 8191},
        {SILENT}, {TIME, .ns = 1},
        {SILENT}, FAILED(1, WC_RETRY_EXC_ERR), FLUSHED(2), {STATE, QP_STATE_ERR},
        {COUNT, COUNTER_local_ack_timeout_err, .n = 3}, {COUNT, COUNTER_retry_exceeded, .n = 1},
        {COUNT, COUNTER_retransmitted_packets, .n = 4})},
    {"timeout__no_retry", true, WITH(.timeout = 14, .retry = 0), STEPS(
        POST0(1), OUT0(100), {TIME, .ns = 67108863}, {SILENT}, {TIME, .ns = 1},
        FAILED(1, WC_RETRY_EXC_ERR),
        {STATE, QP_STATE_ERR})},
    {"timeout__zero_is_never", true, WITH(.timeout = 0, .retry = 0), STEPS(
        POST0(1), OUT0(100), {TIME, .ns = 3600000 * MS}, {SILENT}, ACK(.psn = 100, .msn = 1),
        SENT(1))},
    {"timeout__longest", true, WITH(.timeout = 31, .retry = 0), STEPS(
        POST0(1), OUT0(100), {TIME, .ns = (4096ull << 31) - 1}, {SILENT},
        ACK(.psn = 100, .msn = 1), SENT(1))},
    {"timeout__from_the_oldest_request", true, WITH(.timeout = 1, .retry = 7), STEPS(
        POST0(1), OUT0(100), {TIME, .ns = 5000}, POST0(2), OUT0(101), {TIME, .ns = 3192},
        OUT0(100), OUT0(101),
        ACK(.psn = 101, .msn = 2), SENT(1), SENT(2))},
    {"timeout__starts_again_with_progress", true, WITH(.timeout = 1, .retry = 1), STEPS(
        POST0(1), POST0(2), OUT0(100), OUT0(101), {TIME, .ns = 8000}, ACK(.psn = 100, .msn = 1),
        SENT(1),
        {TIME, .ns = 8191}, {SILENT}, {TIME, .ns = 1}, OUT0(101), ACK(.psn = 101, .msn = 2),
        SENT(2))},
    {"timeout__progress_gives_the_retries_back", true, WITH(.timeout = 1, .retry = 1), STEPS(
        POST0(1), POST0(2), OUT0(100), OUT0(101), {TIME, .ns = 8192}, OUT0(100), OUT0(101),
        ACK(.psn = 100, .msn = 1),
        SENT(1), {TIME, .ns = 8192}, OUT0(101), {TIME, .ns = 8192}, FAILED(2, WC_RETRY_EXC_ERR),
        {STATE, QP_STATE_ERR})},
    {"timeout__answered_none_is_left", true, WITH(.timeout = 1, .retry = 0), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1), SENT(1), {TIME, .ns = 100 * MS}, {SILENT},
        {STATE, QP_STATE_RTS})},
    {"timeout__of_a_request_after_an_answered_one", true, WITH(.timeout = 1, .retry = 1), STEPS(
        POST0(1), OUT0(100), {TIME, .ns = 4000}, ACK(.psn = 100, .msn = 1), SENT(1), POST0(2),
        OUT0(101), {TIME, .ns = 8191}, {SILENT}, {TIME, .ns = 1}, OUT0(101),
        ACK(.psn = 101, .msn = 2), SENT(2))},
    {"timeout__of_a_read", true, WITH(.timeout = 1, .retry = 1), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 300}, READ_OUT(100, .dma_len = 300),
        {TIME, .ns = 8192},
        READ_OUT(100, .dma_len = 300), {IN, OP_READ_RESP_FIRST, .psn = 100, .msn = 1, .len = 256},
        {TIME, .ns = 8192},
        READ_OUT(101, .va = 256, .dma_len = 44),
        {IN, OP_READ_RESP_ONLY, .psn = 101, .msn = 1, .len = 44, .at = 256},
        {SCQE, WC_RDMA_READ, .id = 1}, {MEM, .len = 300})},
    {"timeout__in_sqd", true, WITH(.timeout = 1), STEPS(
        POST0(1), OUT0(100), {MODIFY, QP_STATE_SQD}, POST0(2), {EVENT, -1}, {TIME, .ns = 8192},
        OUT0(100), {EVENT, -1},
        ACK(.psn = 100, .msn = 1), SENT(1), {EVENT, EVENT_SQ_DRAINED}, {TIME, .ns = 8192}, {SILENT},
        {MODIFY, QP_STATE_RTS}, OUT0(101), ACK(.psn = 101, .msn = 2), SENT(2))},
    {"timeout__of_an_atomic", true, WITH(.timeout = 1), STEPS(
        {SET, .at = 64, .a = 0},
        {POST, WR_ATOMIC_FETCH_AND_ADD, .id = 1, .at = 64, .len = 8, .a = 3},
        {OUT, OP_FETCH_ADD, .psn = 100, .a = 3, .ack_req = true}, {TIME, .ns = 8192},
        {OUT, OP_FETCH_ADD, .psn = 100, .a = 3, .ack_req = true},
        {IN, OP_ATOMIC_ACKNOWLEDGE, .psn = 100, .msn = 1, .a = 9},
        {SCQE, WC_FETCH_ADD, .id = 1}, {CELL, .at = 64, .a = 9})},
    {"timeout__goes_back_to_the_middle_of_a_message", true, WITH(.timeout = 1), STEPS(
        {POST, WR_RDMA_WRITE, .id = 1, .len = 600},
        {OUT, OP_WRITE_FIRST, .psn = 100, .len = 256, .dma_len = 600},
        {OUT, OP_WRITE_MIDDLE, .psn = 101, .len = 256, .at = 256},
        {OUT, OP_WRITE_LAST, .psn = 102, .len = 88, .at = 512, .ack_req = true},
        ACK(.psn = 100, .msn = 0),
        {TIME, .ns = 8192}, {OUT, OP_WRITE_MIDDLE, .psn = 101, .len = 256, .at = 256},
        {OUT, OP_WRITE_LAST, .psn = 102, .len = 88, .at = 512, .ack_req = true},
        ACK(.psn = 102, .msn = 1),
        {SCQE, WC_RDMA_WRITE, .id = 1})},

    /* What the program may not ask, or what is wrong with what it asks. */
    {"post__reset", true, WITH(.state = QP_STATE_RESET), STEPS({POST, WR_SEND, .err = -EINVAL},
        {SILENT})},
    {"post__init", true, WITH(.state = QP_STATE_INIT), STEPS({POST, WR_SEND, .err = -EINVAL},
        {SILENT})},
    {"post__rtr", true, WITH(.state = QP_STATE_RTR), STEPS({POST, WR_SEND, .err = -EINVAL},
        {SILENT})},
    {"post__no_such_opcode", true, WITH(), STEPS({POST, 99, .err = -EINVAL},
        {POST, -1, .err = -EINVAL}, POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1), SENT(1))},
    {"post__opcode_unknown", true, WITH(), STEPS({POST, WR_BIND_MW + 2, .err = -EINVAL},
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1), SENT(1))},
    {"post__too_many_sges", true, WITH(),
        STEPS({POST, WR_SEND, .len = 10, .sges = 5, .err = -EINVAL}, POST0(1), OUT0(100),
        ACK(.psn = 100, .msn = 1), SENT(1))},
    {"post__inline_too_long", true, WITH(),
        STEPS({POST, WR_SEND, .len = 301, .flags = WR_INLINE, .err = -EINVAL}, POST0(1), OUT0(100),
        ACK(.psn = 100, .msn = 1), SENT(1))},
    {"post__inline_read", true, WITH(),
        STEPS({POST, WR_RDMA_READ, .len = 4, .flags = WR_INLINE, .err = -EINVAL}, POST0(1),
        OUT0(100), ACK(.psn = 100, .msn = 1), SENT(1))},
    {"post__atomic_of_4_bytes", true, WITH(),
        STEPS({POST, WR_ATOMIC_FETCH_AND_ADD, .len = 4, .err = -EINVAL}, POST0(1), OUT0(100),
        ACK(.psn = 100, .msn = 1), SENT(1))},
    {"post__atomic_of_16_bytes", true, WITH(),
        STEPS({POST, WR_ATOMIC_CMP_AND_SWP, .len = 16, .err = -EINVAL}, POST0(1), OUT0(100),
        ACK(.psn = 100, .msn = 1), SENT(1))},
    {"post__over_1_gib", true, WITH(),
        STEPS({POST, WR_SEND, .len = MAX_MESSAGE_BYTES + 1, .err = -EINVAL}, POST0(1), OUT0(100),
        ACK(.psn = 100, .msn = 1), SENT(1))},
    {"post__queue_full_until_polled", true, WITH(.wrs = 2), STEPS(
        POST0(1), POST0(2), {POST, WR_SEND, .err = -ENOMEM}, OUT0(100), OUT0(101),
        ACK(.psn = 101, .msn = 2), {SILENT},
        {POST, WR_SEND, .err = -ENOMEM}, SENT(1), POST0(3), {POST, WR_SEND, .err = -ENOMEM},
        OUT0(102),
        ACK(.psn = 102, .msn = 3), SENT(2), SENT(3))},
    {"post__in_error_is_flushed", true, WITH(), STEPS({MODIFY, QP_STATE_ERR}, POST0(1), FLUSHED(1),
        {SILENT})},
    {"local__bad_lkey_waits_its_turn", true, WITH(), STEPS(
        POST0(1), {POST, WR_SEND, .id = 2, .len = 4, .key = K_NONE}, POST0(3), OUT0(100), {SILENT},
        {STATE, QP_STATE_RTS},
        ACK(.psn = 100, .msn = 1), SENT(1), FAILED(2, WC_LOC_PROT_ERR), FLUSHED(3),
        {STATE, QP_STATE_ERR})},
    {"local__lkey_of_another_pd", true, WITH(), STEPS(
        {POST, WR_RDMA_WRITE, .id = 1, .len = 4, .key = K_OTHER}, {SILENT},
        FAILED(1, WC_LOC_PROT_ERR))},
    {"local__one_byte_beyond_the_region", true, WITH(), STEPS(
        {POST, WR_SEND, .id = 1, .at = SMALL_BYTES - 3, .len = 4, .key = K_SMALL}, {SILENT},
        FAILED(1, WC_LOC_PROT_ERR))},
    {"local__second_sge_beyond_the_region", true, WITH(), STEPS(
        {POST, WR_SEND, .id = 1, .at = SMALL_BYTES - 4, .len = 5, .sges = 2, .key = K_SMALL},
        {SILENT},
        FAILED(1, WC_LOC_PROT_ERR))},
    {"local__read_into_memory_without_local_write", true, WITH(), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 4, .key = K_READ}, {SILENT},
        FAILED(1, WC_LOC_PROT_ERR))},
    {"local__atomic_into_memory_without_local_write", true, WITH(), STEPS(
        {POST, WR_ATOMIC_FETCH_AND_ADD, .id = 1, .at = 64, .len = 8, .key = K_READ}, {SILENT},
        FAILED(1, WC_LOC_PROT_ERR))},
    {"local__read_with_none_allowed", true, WITH(.max_rd = 0), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 4}, POST0(2), {SILENT}, FAILED(1, WC_LOC_QP_OP_ERR),
        FLUSHED(2))},
    {"local__key_revoked_inside_the_message", true, WITH(.window_bytes = 1024), STEPS(
        {POST, WR_SEND, .id = 1, .len = 1300, .key = K_SMALL}, POST0(2),
        {OUT, OP_SEND_FIRST, .psn = 100, .len = 256, .ack_req = true},
        {OUT, OP_SEND_MIDDLE, .psn = 101, .len = 256, .at = 256, .ack_req = true},
        {OUT, OP_SEND_MIDDLE, .psn = 102, .len = 256, .at = 512, .ack_req = true},
        {OUT, OP_SEND_MIDDLE, .psn = 103, .len = 256, .at = 768, .ack_req = true},
        {REVOKE, .key = K_SMALL},
        ACK(.psn = 103, .msn = 0), {SILENT}, FAILED(1, WC_LOC_PROT_ERR), FLUSHED(2),
        {STATE, QP_STATE_ERR})},
    {"local__key_revoked_before_it_goes_back", true, WITH(.timeout = 1), STEPS(
        {POST, WR_SEND, .id = 1, .len = 4, .key = K_SMALL},
        {OUT, OP_SEND_ONLY, .psn = 100, .len = 4, .ack_req = true},
        {REVOKE, .key = K_SMALL}, {TIME, .ns = 8192}, {SILENT}, FAILED(1, WC_LOC_PROT_ERR),
        {STATE, QP_STATE_ERR})},
    {"local_inv__ends_the_key_for_the_peer", true, WITH(), STEPS(
        {POST, WR_LOCAL_INV, .id = 1, .imm = K_WINDOW}, {SILENT}, {SCQE, WC_LOCAL_INV, .id = 1},
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .key = K_WINDOW},
        {OUT, OP_ACKNOWLEDGE, .psn = 5, .syn = NAK(NAK_REMOTE_ACCESS)},
        {EVENT, EVENT_QP_ACCESS_ERR},
        {STATE, QP_STATE_ERR})},
    {"local_inv__no_such_key", true, WITH(), STEPS(
        POST0(1), {POST, WR_LOCAL_INV, .id = 2, .imm = K_NONE}, POST0(3), OUT0(100), {SILENT},
        ACK(.psn = 100, .msn = 1),
        SENT(1), FAILED(2, WC_MW_BIND_ERR), FLUSHED(3), {STATE, QP_STATE_ERR})},
    {"local_inv__a_region_stays", true, WITH(), STEPS(
        {POST, WR_LOCAL_INV, .id = 1, .imm = K_ALL}, {SILENT}, FAILED(1, WC_MW_BIND_ERR),
        {STATE, QP_STATE_ERR})},
    {"local__window_key_is_no_lkey", true, WITH(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 4, .key = K_WINDOW}, {SILENT}, FAILED(1, WC_LOC_PROT_ERR),
        {STATE, QP_STATE_ERR})},
    {"local_inv__a_bad_wr_right_behind_it_fails", true, WITH(), STEPS(
        {POST, WR_LOCAL_INV, .id = 1, .imm = K_WINDOW},
        {POST, WR_SEND, .id = 2, .len = 4, .key = K_NONE}, {SILENT}, {SCQE, WC_LOCAL_INV, .id = 1},
        FAILED(2, WC_LOC_PROT_ERR), {STATE, QP_STATE_ERR})},
    {"local_inv__passed_over_when_going_back", true, WITH(.timeout = 1), STEPS(
        POST0(1), {POST, WR_LOCAL_INV, .id = 2, .imm = K_WINDOW}, POST0(3), OUT0(100), OUT0(101),
        {TIME, .ns = 8192},
        OUT0(100), OUT0(101), ACK(.psn = 100, .msn = 1), SENT(1), {SCQE, WC_LOCAL_INV, .id = 2},
        ACK(.psn = 101, .msn = 2),
        SENT(3))},
    /* IBA 10.3.1 */
    {"flush__in_order", true, WITH(.unsignalled = true), STEPS(
        POST0(1), POST0(2), {POST, WR_RDMA_READ, .id = 3, .flags = WR_FENCE}, OUT0(100), OUT0(101),
        READ_OUT(102),
        {MODIFY, QP_STATE_ERR}, {SILENT}, FLUSHED(1), FLUSHED(2), FLUSHED(3), ACK(.psn = 101),
        {SILENT})},
    {"flush__nothing_at_reset", true, WITH(.timeout = 1), STEPS(
        POST0(1), OUT0(100), {MODIFY, QP_STATE_RESET}, {TIME, .ns = 100 * MS}, {SILENT},
        {MODIFY, QP_STATE_INIT},
        {MODIFY, QP_STATE_RTR}, {MODIFY, QP_STATE_RTS}, {SILENT}, POST0(2), OUT0(100),
        ACK(.psn = 100, .msn = 1), SENT(2))},
    {"cq_overflow__events_and_error", true, WITH(.cqe = 1), STEPS(
        POST0(1), POST0(2), OUT0(100), OUT0(101), ACK(.psn = 101, .msn = 2), {EVENT, EVENT_CQ_ERR},
        {EVENT, EVENT_QP_FATAL},
        {STATE, QP_STATE_ERR}, SENT(1))},
};
/* clang-format on */

int main(void)
{
    return script_run("requester", dialogues, sizeof(dialogues) / sizeof(dialogues[0]));
}
