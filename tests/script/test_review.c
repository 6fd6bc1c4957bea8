/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_review.c: answers that wait to leave when something else comes first: NAKs that are
 * overtaken by what they missed, and requests of this side beside a long answer.
 */
#include "script.h"

/* clang-format off */
#define ACK(...) {OUT, OP_ACKNOWLEDGE, __VA_ARGS__}
#define SEQ_NAK(p, m) ACK(.psn = p, .msn = m, .syn = NAK(NAK_PSN_SEQUENCE))

static const struct dialogue dialogues[] = {
    /* Several IN rows without a row between them that looks: nothing has left yet. */
    {"nak__overtaken_what_was_dropped_is_still_missing", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 7, .ack_req = true}, {IN, OP_WRITE_ONLY, .psn = 5},
        SEQ_NAK(6, 1),
        {IN, OP_WRITE_ONLY, .psn = 6}, {IN, OP_WRITE_ONLY, .psn = 7, .ack_req = true},
        ACK(.psn = 7, .msn = 3))},
    {"nak__overtaken_with_more_dropped_behind", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 6}, {IN, OP_WRITE_ONLY, .psn = 8}, {IN, OP_WRITE_ONLY, .psn = 5},
        {IN, OP_WRITE_ONLY, .psn = 6}, {IN, OP_WRITE_ONLY, .psn = 7}, SEQ_NAK(8, 3),
        {IN, OP_WRITE_ONLY, .psn = 9}, {SILENT})},
    {"nak__overtaken_over_the_wrap", true, WITH(.rq_psn = 0xfffffe), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 0}, {IN, OP_WRITE_ONLY, .psn = 0xfffffe},
        SEQ_NAK(0xffffff, 1))},
    {"nak__overtaken_and_nothing_missing", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 6}, {IN, OP_WRITE_ONLY, .psn = 5}, {IN, OP_WRITE_ONLY, .psn = 6},
        ACK(.psn = 6, .msn = 2))},
    {"nak__overtaken_by_a_read_follows_its_answer", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 7}, {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 4},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1, .len = 4}, SEQ_NAK(6, 1))},
    {"nak__that_has_left_is_not_made_again", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 7}, SEQ_NAK(5, 0), {IN, OP_WRITE_ONLY, .psn = 5}, {SILENT},
        {IN, OP_WRITE_ONLY, .psn = 6}, {IN, OP_WRITE_ONLY, .psn = 7, .ack_req = true},
        ACK(.psn = 7, .msn = 3))},
    {"rnr__overtaken_gives_back_the_ack", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true}, {IN, OP_SEND_ONLY, .psn = 6},
        {RECV, .id = 1}, {IN, OP_SEND_ONLY, .psn = 6}, ACK(.psn = 6, .msn = 2),
        {RCQE, WC_RECV, .id = 1})},
    {"rnr__overtaken_what_was_dropped_behind_is_missing", true, WITH(), STEPS(
        {IN, OP_SEND_ONLY, .psn = 5}, {IN, OP_WRITE_ONLY, .psn = 6}, {RECV, .id = 1},
        {IN, OP_SEND_ONLY, .psn = 5}, SEQ_NAK(6, 1), {RCQE, WC_RECV, .id = 1})},
    {"fatal_nak__not_overtaken", true, WITH(), STEPS(
        {IN, OP_WRITE_MIDDLE, .psn = 5, .len = 256}, {IN, OP_WRITE_ONLY, .psn = 5},
        ACK(.psn = 5, .msn = 0, .syn = NAK(NAK_INVALID_REQUEST)), {EVENT, EVENT_QP_REQ_ERR},
        {STATE, QP_STATE_ERR})},

    /* 4.096 us << 10 = 4.2 ms; RNR code 12 is 0.64 ms. */
    {"rnr_nak__shows_that_the_peer_is_there", true, WITH(.timeout = 10, .retry = 1), STEPS(
        {POST, WR_SEND, .id = 1}, {OUT, OP_SEND_ONLY, .psn = 100, .ack_req = true},
        {TIME, .ns = 4300000}, {OUT, OP_SEND_ONLY, .psn = 100, .ack_req = true},
        {IN, OP_ACKNOWLEDGE, .psn = 100, .syn = RNR(12)}, {SILENT}, {TIME, .ns = 700000},
        {OUT, OP_SEND_ONLY, .psn = 100, .ack_req = true},
        {TIME, .ns = 4300000}, {OUT, OP_SEND_ONLY, .psn = 100, .ack_req = true},
        {TIME, .ns = 4300000}, {SCQE, .id = 1, .status = WC_RETRY_EXC_ERR},
        {STATE, QP_STATE_ERR})},

    {"request__beside_a_long_answer", false, WITH(), STEPS(
        {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 65536}, {POST, WR_SEND, .id = 1},
        {OUT, OP_READ_RESP_FIRST, .psn = 5, .msn = 1, .len = 256},
        {OUT, OP_READ_RESP_MIDDLE, .psn = 6, .len = 256, .at = 256},
        {OUT, OP_SEND_ONLY, .psn = 100, .ack_req = true},
        {REPEAT, 1, .n = 253}, {OUT, OP_READ_RESP_MIDDLE, .psn = 7, .len = 256, .at = 512},
        {OUT, OP_READ_RESP_LAST, .psn = 260, .msn = 1, .len = 256, .at = 65280},
        {IN, OP_ACKNOWLEDGE, .psn = 100, .msn = 1}, {SCQE, WC_SEND, .id = 1})},
    {"request__behind_a_short_answer", false, WITH(), STEPS(
        {POST, WR_SEND, .id = 1}, {IN, OP_READ_REQUEST, .psn = 5, .dma_len = 8},
        {OUT, OP_READ_RESP_ONLY, .psn = 5, .msn = 1, .len = 8},
        {OUT, OP_SEND_ONLY, .psn = 100, .ack_req = true},
        {IN, OP_ACKNOWLEDGE, .psn = 100, .msn = 1}, {SCQE, WC_SEND, .id = 1})},
};
/* clang-format on */

int main(void)
{
    return script_run("review", dialogues, sizeof(dialogues) / sizeof(dialogues[0]));
}
