/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_timers.c: the wait that an RNR NAK asks for, and how it gets along with the ack timer (whose
 * own rows are the requester's).
 */
#include "script.h"

/* clang-format off */
#define ACK(...) {IN, OP_ACKNOWLEDGE, __VA_ARGS__}
#define SENT(i) {SCQE, WC_SEND, .id = i}
#define FAILED(i, s) {SCQE, .id = i, .status = s}
#define FLUSHED(i) {SCQE, .id = i, .status = WC_WR_FLUSH_ERR}
#define POST0(i) {POST, WR_SEND, .id = i}
#define OUT0(p) {OUT, OP_SEND_ONLY, .psn = p, .ack_req = true}
#define RNR_AGAIN(code, time) \
    ACK(.psn = 100, .syn = RNR(code)), {TIME, .ns = (time) - 1}, {SILENT}, {TIME, .ns = 1}, \
    OUT0(100)
#define MS 1000000ull
#define US 1000ull

static const struct dialogue dialogues[] = {
    /* IBA 9.7.5.2.8 */
    {"rnr__no_wait_without_a_nak", false, WITH(.rnr_retry = 0), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .msn = 1), SENT(1), POST0(2), OUT0(101),
        ACK(.psn = 101, .msn = 2, .syn = CREDITS(0)), SENT(2), POST0(3), OUT0(102),
        ACK(.psn = 102, .msn = 3), SENT(3), {COUNT, COUNTER_rnr_nak_retry_err, .n = 0})},
    /* IBA 9.7.5.2.8 */
    {"rnr__waits_the_time_that_the_nak_says", true, WITH(.rnr_retry = 7), STEPS(
        POST0(1), POST0(2), OUT0(100), OUT0(101), ACK(.psn = 100, .syn = RNR(12)),
        {TIME, .ns = 640 * US - 1}, {SILENT},
        {TIME, .ns = 1}, OUT0(100), OUT0(101), ACK(.psn = 101, .msn = 2), SENT(1), SENT(2),
        {COUNT, COUNTER_rnr_nak_retry_err, .n = 1})},
    /* IBA 9.7.5.2.8 */
    {"rnr__zero_is_the_longest", true, WITH(), STEPS(POST0(1), OUT0(100),
        RNR_AGAIN(0, 655360 * US), ACK(.psn = 100, .msn = 1), SENT(1))},
    {"rnr__thirteen", true, WITH(), STEPS(POST0(1), OUT0(100), RNR_AGAIN(13, 960 * US),
        ACK(.psn = 100, .msn = 1), SENT(1))},
    {"rnr__shortest_and_31", true, WITH(), STEPS(
        POST0(1), OUT0(100), RNR_AGAIN(1, 10 * US), RNR_AGAIN(31, 491520 * US),
        ACK(.psn = 100, .msn = 1), SENT(1))},
    {"rnr__none_allowed", true, WITH(.rnr_retry = 0), STEPS(
        POST0(1), POST0(2), OUT0(100), OUT0(101), ACK(.psn = 100, .syn = RNR(12)),
        FAILED(1, WC_RNR_RETRY_EXC_ERR), FLUSHED(2),
        {STATE, QP_STATE_ERR}, {COUNT, COUNTER_rnr_retry_exceeded, .n = 1})},
    {"rnr__as_often_as_allowed", true, WITH(.rnr_retry = 2, .retry = 0), STEPS(
        POST0(1), OUT0(100), RNR_AGAIN(1, 10 * US), RNR_AGAIN(1, 10 * US),
        ACK(.psn = 100, .syn = RNR(1)),
        FAILED(1, WC_RNR_RETRY_EXC_ERR), {STATE, QP_STATE_ERR})},
    {"rnr__seven_is_for_ever", true, WITH(.rnr_retry = 7, .retry = 0), STEPS(
        POST0(1), OUT0(100), RNR_AGAIN(1, 10 * US), RNR_AGAIN(1, 10 * US), RNR_AGAIN(1, 10 * US),
        RNR_AGAIN(1, 10 * US),
        RNR_AGAIN(1, 10 * US), RNR_AGAIN(1, 10 * US), RNR_AGAIN(1, 10 * US), RNR_AGAIN(1, 10 * US),
        RNR_AGAIN(1, 10 * US),
        ACK(.psn = 100, .msn = 1), SENT(1))},
    {"rnr__progress_gives_the_retries_back", true, WITH(.rnr_retry = 1), STEPS(
        POST0(1), POST0(2), OUT0(100), OUT0(101), ACK(.psn = 100, .syn = RNR(1)),
        {TIME, .ns = 10 * US}, OUT0(100), OUT0(101),
        ACK(.psn = 101, .msn = 1, .syn = RNR(1)), {TIME, .ns = 10 * US}, OUT0(101), SENT(1),
        ACK(.psn = 101, .msn = 2), SENT(2))},
    {"rnr__sequence_nak_behind_it_does_not_end_the_wait", true, WITH(.retry = 0), STEPS(
        POST0(1), POST0(2), OUT0(100), OUT0(101), ACK(.psn = 100, .syn = RNR(12)),
        ACK(.psn = 100, .syn = NAK(0)), {SILENT},
        ACK(.psn = 100, .syn = RNR(12)), {TIME, .ns = 640 * US}, OUT0(100), OUT0(101),
        ACK(.psn = 101, .msn = 2), SENT(1), SENT(2))},
    {"rnr__a_second_nak_of_the_same_refusal", true, WITH(.rnr_retry = 1), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .syn = RNR(12)), {TIME, .ns = 300 * US},
        ACK(.psn = 100, .syn = RNR(12)),
        {TIME, .ns = 340 * US - 1}, {SILENT}, {STATE, QP_STATE_RTS}, {TIME, .ns = 1}, OUT0(100),
        ACK(.psn = 100, .msn = 1),
        SENT(1))},
    {"rnr__no_implied_nak_meanwhile", true, WITH(.retry = 0), STEPS(
        POST0(1), {POST, WR_RDMA_READ, .id = 2}, POST0(3), OUT0(100),
        {OUT, OP_READ_REQUEST, .psn = 101, .ack_req = true},
        OUT0(102), ACK(.psn = 100, .syn = RNR(1)), ACK(.psn = 102, .msn = 3), SENT(1),
        {STATE, QP_STATE_RTS},
        {TIME, .ns = 10 * US}, {OUT, OP_READ_REQUEST, .psn = 101, .ack_req = true}, OUT0(102),
        {IN, OP_READ_RESP_ONLY, .psn = 101, .msn = 3}, {SCQE, WC_RDMA_READ, .id = 2},
        ACK(.psn = 102, .msn = 3), SENT(3))},
    {"rnr__no_ack_timeout_meanwhile", true, WITH(.timeout = 1, .retry = 0), STEPS(
        POST0(1), POST0(2), OUT0(100), OUT0(101), ACK(.psn = 100, .syn = RNR(0)),
        {TIME, .ns = 100 * MS}, {SILENT},
        /* a copy of the request was taken after all */
        ACK(.psn = 100, .msn = 1), SENT(1), {TIME, .ns = 100 * MS}, {SILENT}, {STATE, QP_STATE_RTS},
        {TIME, .ns = 455360 * US}, OUT0(101), ACK(.psn = 101, .msn = 2), SENT(2))},
    {"rnr__nothing_new_goes_out", true, WITH(), STEPS(
        POST0(1), OUT0(100), ACK(.psn = 100, .syn = RNR(1)), POST0(2), {SILENT},
        {TIME, .ns = 10 * US}, OUT0(100), OUT0(101),
        ACK(.psn = 101, .msn = 2), SENT(1), SENT(2))},
    {"rnr__acknowledges_what_came_before", true, WITH(), STEPS(
        {POST, WR_RDMA_WRITE, .id = 1}, POST0(2),
        {OUT, OP_WRITE_ONLY, .psn = 100, .ack_req = true}, OUT0(101),
        ACK(.psn = 101, .msn = 1, .syn = RNR(1)), {SCQE, WC_RDMA_WRITE, .id = 1},
        {TIME, .ns = 10 * US}, OUT0(101),
        ACK(.psn = 101, .msn = 2), SENT(2))},
    {"rnr__of_the_next_message_waits_anew", true, WITH(), STEPS(
        POST0(1), POST0(2), OUT0(100), OUT0(101),
        ACK(.psn = 100, .syn = RNR(1)), {TIME, .ns = 5 * US}, {SILENT},
        /* a copy of the first was taken after all, and the second is refused */
        ACK(.psn = 101, .msn = 1, .syn = RNR(1)), SENT(1),
        {TIME, .ns = 9 * US}, {SILENT}, {TIME, .ns = 1 * US}, OUT0(101),
        ACK(.psn = 101, .msn = 2), SENT(2))},
    {"go_back__once_for_copies_of_a_nak", true, WITH(.retry = 1), STEPS(
        POST0(1), OUT0(100),
        ACK(.psn = 100, .syn = NAK(0)), ACK(.psn = 100, .syn = NAK(0)), OUT0(100),
        ACK(.psn = 100, .syn = NAK(0)), FAILED(1, WC_RETRY_EXC_ERR))},
    /* IBA 9.7.6.1.3: from the moment the request is out; here all that is out goes again */
    {"ack_timer__not_before_the_request_goes_again", true, WITH(.timeout = 1), STEPS(
        {POST, WR_RDMA_READ, .id = 1, .len = 512},
        {OUT, OP_READ_REQUEST, .psn = 100, .dma_len = 512, .ack_req = true},
        {IN, OP_READ_RESP_LAST, .psn = 101, .msn = 1, .len = 256, .at = 256},
        {IN, OP_READ_RESP_FIRST, .psn = 100, .msn = 1, .len = 256},
        {HOLD, .ns = 5 * US},
        {OUT, OP_READ_REQUEST, .psn = 101, .va = 256, .dma_len = 256, .ack_req = true},
        {TIME, .ns = 8192 - 1}, {SILENT}, {TIME, .ns = 1},
        {OUT, OP_READ_REQUEST, .psn = 101, .va = 256, .dma_len = 256, .ack_req = true},
        {IN, OP_READ_RESP_ONLY, .psn = 101, .msn = 1, .len = 256, .at = 256},
        {SCQE, WC_RDMA_READ, .id = 1, .len = 512}, {MEM, .len = 512}, {STATE, QP_STATE_RTS}, {SILENT})},
};
/* clang-format on */

int main(void)
{
    return script_run("timers", dialogues, sizeof(dialogues) / sizeof(dialogues[0]));
}
