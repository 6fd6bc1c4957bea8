/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_replay.c: requests that come a second time: what is answered again, what is executed again,
 * and what is not.
 */
#include "script.h"

/* clang-format off */
#define ACK(...) {OUT, OP_ACKNOWLEDGE, __VA_ARGS__}
#define ADD(p) {IN, OP_FETCH_ADD, .psn = p, .va = 64, .a = 1}
#define ADDED(p, m, v) {OUT, OP_ATOMIC_ACKNOWLEDGE, .psn = p, .msn = m, .a = v}
#define ADD_ADDED(p, m, v) ADD(p), ADDED(p, m, v)

static const struct dialogue dialogues[] = {
    /* IBA C9-105: what only looks the same is another message. */
    {"duplicate__the_same_again_with_the_next_psn_is_executed", false, WITH(), STEPS(
        {RECV, .id = 1, .len = 16}, {RECV, .id = 2, .at = 128, .len = 16},
        {IN, OP_SEND_ONLY, .psn = 5, .len = 16, .ack_req = true}, ACK(.psn = 5, .msn = 1),
        {RCQE, WC_RECV, .id = 1, .len = 16},
        {IN, OP_SEND_ONLY, .psn = 6, .len = 16, .ack_req = true}, ACK(.psn = 6, .msn = 2),
        {RCQE, WC_RECV, .id = 2, .len = 16}, {SET, .at = 64, .a = 6}, ADD_ADDED(7, 3, 6), ADD_ADDED(8, 4, 7),
        {CELL, .at = 64, .a = 8}, {MEM, .len = 16}, {MEM, .at = 128, .len = 16}, {COUNT, COUNTER_duplicate_request, .n = 0})},
    /* IBA C9-105 */
    {"duplicate_send__acknowledged_not_executed", true, WITH(), STEPS(
        {RECV, .id = 1, .len = 16}, {RECV, .id = 2, .at = 64, .len = 16},
        {IN, OP_SEND_ONLY, .psn = 5, .len = 16, .ack_req = true}, ACK(.psn = 5, .msn = 1),
        {RCQE, WC_RECV, .id = 1, .len = 16}, {IN, OP_SEND_ONLY, .psn = 5, .len = 16, .tag = 1},
        ACK(.psn = 5, .msn = 1),
        {MEM, .len = 16}, {COUNT, COUNTER_duplicate_request, .n = 1})},
    /* IBA C9-105 */
    {"duplicate_write__acknowledged_not_executed", true, WITH(), STEPS(
        {IN, OP_WRITE_FIRST, .psn = 5, .len = 256, .dma_len = 300},
        {IN, OP_WRITE_LAST, .psn = 6, .len = 44, .at = 256},
        {IN, OP_WRITE_ONLY, .psn = 7, .ack_req = true},
        ACK(.psn = 7, .msn = 2),
        {IN, OP_WRITE_FIRST, .psn = 5, .len = 256, .dma_len = 300, .tag = 1},
        {IN, OP_WRITE_LAST, .psn = 6, .len = 44, .at = 256, .tag = 1}, ACK(.psn = 7, .msn = 2),
        {MEM, .len = 300})},
    {"duplicate_write__of_one_packet_not_executed", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 8, .dma_len = 8, .ack_req = true},
        ACK(.psn = 5, .msn = 1), {IN, OP_WRITE_ONLY, .psn = 5, .len = 8, .dma_len = 8, .tag = 1},
        ACK(.psn = 5, .msn = 1), {MEM, .len = 8})},
    {"duplicate__leaves_the_nak_that_is_due", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true}, ACK(.psn = 5, .msn = 1),
        {IN, OP_WRITE_ONLY, .psn = 7}, {IN, OP_WRITE_ONLY, .psn = 5},
        ACK(.syn = NAK(0), .psn = 6, .msn = 1))},
    {"duplicate__does_not_disturb_a_message_in_progress", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5}, {IN, OP_WRITE_FIRST, .psn = 6, .len = 256, .dma_len = 300},
        {IN, OP_WRITE_ONLY, .psn = 5},
        {IN, OP_WRITE_FIRST, .psn = 6, .len = 256, .dma_len = 300, .tag = 1},
        ACK(.psn = 6, .msn = 1),
        {IN, OP_WRITE_LAST, .psn = 7, .len = 44, .at = 256, .ack_req = true},
        ACK(.psn = 7, .msn = 2), {MEM, .len = 300})},
    {"duplicate__nonsense_is_still_only_acknowledged", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 4, .len = 300, .dma_len = 2, .key = K_NONE},
        ACK(.psn = 4, .msn = 0),
        {STATE, QP_STATE_RTS})},
    /* soft-RoCE takes an ACK of a READ's own PSN for the end of the READ, without its data */
    {"duplicate_write__the_ack_does_not_name_a_read", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 8, .dma_len = 8, .ack_req = true},
        ACK(.psn = 5, .msn = 1), {IN, OP_READ_REQUEST, .psn = 6, .dma_len = 8},
        {OUT, OP_READ_RESP_ONLY, .psn = 6, .msn = 2, .len = 8},
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 8, .dma_len = 8, .ack_req = true},
        ACK(.psn = 5, .msn = 2), {MEM, .len = 8})},
    {"duplicate_read__executed_again", true, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 300, .va = 64},
        {OUT, OP_READ_RESP_FIRST, .psn = 5, .msn = 1, .len = 256, .at = 64},
        {OUT, OP_READ_RESP_LAST, .psn = 6, .msn = 1, .len = 44, .at = 320},
        {IN, OP_WRITE_ONLY, .psn = 7, .va = 64, .len = 8, .dma_len = 8}, {SET, .at = 72, .a = 99},
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 300, .va = 64},
        {OUT, OP_READ_RESP_FIRST, .psn = 5, .msn = 2, .len = 256, .at = 64},
        {OUT, OP_READ_RESP_LAST, .psn = 6, .msn = 2, .len = 44, .at = 320},
        {MEM, .at = 64, .len = 8})},
    {"duplicate_read__of_nothing_needs_no_key", true, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .key = K_NONE},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1},
        {IN, OP_READ_REQUEST, .psn = 5, .key = K_NONE},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1})},
    {"duplicate_read__a_part", true, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 700},
        {OUT, OP_READ_RESP_FIRST, .psn = 5, .msn = 1, .len = 256},
        {OUT, OP_READ_RESP_MIDDLE, .psn = 6, .len = 256, .at = 256},
        {OUT, OP_READ_RESP_LAST, .psn = 7, .msn = 1, .len = 188, .at = 512},
        {IN, OP_READ_REQUEST, .psn = 6, .va = 256, .dma_len = 444},
        {OUT, OP_READ_RESP_FIRST, .psn = 6, .msn = 1, .len = 256, .at = 256},
        {OUT, OP_READ_RESP_LAST, .psn = 7, .msn = 1, .len = 188, .at = 512})},
    {"duplicate_read__over_the_expected_psn_dropped", true, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1, .len = 4},
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 257}, {SILENT}, {STATE, QP_STATE_RTS},
        {COUNT, COUNTER_resp_dropped_replays, .n = 1})},
    {"duplicate_read__bad_key_dropped", true, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4, .key = K_SMALL},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1, .len = 4},
        {REVOKE, .key = K_SMALL}, {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4, .key = K_SMALL},
        {SILENT},
        {STATE, QP_STATE_RTS})},
    {"duplicate_read__bad_key_holds_up_no_other", true, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4, .key = K_SMALL},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1, .len = 4}, {REVOKE, .key = K_SMALL},
        {IN, OP_READ_REQUEST, .psn = 6, .dma_len = 8},
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4, .key = K_SMALL},
        {OUT, OP_READ_RESP_ONLY, .psn = 6, .msn = 2, .len = 8},
        {COUNT, COUNTER_resp_dropped_replays, .n = 1}, {STATE, QP_STATE_RTS})},
    {"duplicate_read__before_a_new_one_at_the_limit", true, WITH(.max_dest_rd = 1), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1, .len = 4},
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4},
        {IN, OP_READ_REQUEST, .psn = 6, .dma_len = 8},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1, .len = 4},
        {OUT, OP_READ_RESP_ONLY, .psn = 6, .msn = 2, .len = 8}, {STATE, QP_STATE_RTS})},
    {"duplicate_atomic__before_a_new_one_at_the_limit", true, WITH(.max_dest_rd = 1), STEPS(
        {SET, .at = 64, .a = 0}, ADD_ADDED(5, 1, 0), ADD(5), ADD(6), ADDED(5, 1, 0), ADDED(6, 2, 1),
        {CELL, .at = 64, .a = 2}, {STATE, QP_STATE_RTS})},
    {"duplicate_atomic__replayed_not_executed", true, WITH(), STEPS(
        {SET, .at = 64, .a = 0}, ADD_ADDED(5, 1, 0), ADD_ADDED(6, 2, 1), ADD_ADDED(5, 2, 0),
        ADD_ADDED(6, 2, 1),
        {CELL, .at = 64, .a = 2})},
    {"duplicate_atomic__before_its_answer_is_out", true, WITH(), STEPS(
        {SET, .at = 64, .a = 0}, ADD(5), ADD(5), ADDED(5, 1, 0), {SILENT}, {CELL, .at = 64, .a = 1})},
    {"duplicate_read__key_gone_before_the_answer_is_out", true, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4, .key = K_SMALL},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1, .len = 4},
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4, .key = K_SMALL}, {REVOKE, .key = K_SMALL},
        {SILENT},
        {STATE, QP_STATE_RTS}, {IN, OP_WRITE_ONLY, .psn = 6, .ack_req = true},
        ACK(.psn = 6, .msn = 2))},
    /* What it was asked for again is missing as if lost; what is new is answered all the same. */
    {"duplicate_read__key_gone_takes_no_other_answer_along", true, WITH(), STEPS(
        {SET, .at = 64, .a = 0}, {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4, .key = K_SMALL},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1, .len = 4},
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4, .key = K_SMALL}, ADD(6),
        {IN, OP_READ_REQUEST, .psn = 7, .dma_len = 8}, {REVOKE, .key = K_SMALL},
        {IN, OP_READ_REQUEST, .psn = 8, .dma_len = 8, .key = K_SMALL},
        ADDED(6, 2, 0), {OUT, OP_READ_RESP_ONLY, .psn = 7, .msn = 3, .len = 8},
        {OUT, OP_ACKNOWLEDGE, .psn = 8, .msn = 3, .syn = NAK(2)}, {EVENT, EVENT_QP_ACCESS_ERR},
        {STATE, QP_STATE_ERR}, {CELL, .at = 64, .a = 1})},
    {"duplicate_atomic__answered_in_order_of_psn", true, WITH(), STEPS(
        {SET, .at = 64, .a = 0}, ADD_ADDED(5, 1, 0), ADD_ADDED(6, 2, 1), ADD_ADDED(7, 3, 2),
        ADD(7), ADD(5), ADD(6),
        ADDED(5, 3, 0), ADDED(6, 3, 1), ADDED(7, 3, 2), {CELL, .at = 64, .a = 3})},
    {"duplicate_read__as_many_as_there_is_room_for", true, WITH(), STEPS(
        {REPEAT, 2, .n = 2 * MAX_RD_ATOMIC}, {IN, OP_READ_REQUEST, .psn = 5},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1}, {REPEAT, 1, .n = 2 * MAX_RD_ATOMIC},
        {IN, OP_READ_REQUEST, .psn = 5}, {IN, OP_READ_REQUEST, .psn = 5 + 2 * MAX_RD_ATOMIC},
        {REPEAT, 1, .n = MAX_RD_ATOMIC, .hold_msn = true},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 2 * MAX_RD_ATOMIC},
        {OUT, OP_READ_RESP_ONLY, .psn = 5 + 2 * MAX_RD_ATOMIC, .msn = 1 + 2 * MAX_RD_ATOMIC},
        {COUNT, COUNTER_resp_dropped_replays, .n = MAX_RD_ATOMIC})},
    {"duplicate_atomic__too_old_is_dropped", true, WITH(), STEPS(
        {SET, .at = 64, .a = 0}, {REPEAT, 2, .n = MAX_RD_ATOMIC}, ADD_ADDED(5, 1, 0),
        ADD_ADDED(5, MAX_RD_ATOMIC, 0),
        ADD_ADDED(5 + MAX_RD_ATOMIC, 1 + MAX_RD_ATOMIC, MAX_RD_ATOMIC), ADD(5),
        {SILENT}, {COUNT, COUNTER_resp_dropped_replays, .n = 1},
        {CELL, .at = 64, .a = 1 + MAX_RD_ATOMIC})},
    {"duplicate_atomic__another_opcode_is_dropped", true, WITH(), STEPS(
        {SET, .at = 64, .a = 0}, ADD_ADDED(5, 1, 0),
        {IN, OP_COMPARE_SWAP, .psn = 5, .va = 64, .a = 9}, {SILENT},
        {CELL, .at = 64, .a = 1})},
};
/* clang-format on */

int main(void)
{
    return script_run("replay", dialogues, sizeof(dialogues) / sizeof(dialogues[0]));
}
