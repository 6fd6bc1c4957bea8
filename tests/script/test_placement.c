/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_placement.c: FLUSH and ATOMIC WRITE (annex A19): what a requester sends and takes for an
 * answer, and what a responder does, answers and refuses.
 */
#include <errno.h>

#include "script.h"

/* clang-format off */
#define INVALID(p, m) \
    {OUT, OP_ACKNOWLEDGE, .syn = NAK(NAK_INVALID_REQUEST), .psn = p, .msn = m}, \
    {EVENT, EVENT_QP_REQ_ERR}, {STATE, QP_STATE_ERR}
#define NO_ACCESS(p, m) \
    {OUT, OP_ACKNOWLEDGE, .syn = NAK(NAK_REMOTE_ACCESS), .psn = p, .msn = m}, \
    {EVENT, EVENT_QP_ACCESS_ERR}, {STATE, QP_STATE_ERR}
#define MISSING(p, m) {OUT, OP_ACKNOWLEDGE, .syn = NAK(NAK_PSN_SEQUENCE), .psn = p, .msn = m}
#define ACK(...) {IN, OP_ACKNOWLEDGE, __VA_ARGS__}
#define FAILED(i, s) {SCQE, .id = i, .status = s}
#define FLUSHED(i) {SCQE, .id = i, .status = WC_WR_FLUSH_ERR}
/* The answer to either, as it comes and as it goes. */
#define DONE(p, m) {OUT, OP_READ_RESP_ONLY, .psn = p, .msn = m}
#define ANSWER(p) {IN, OP_READ_RESP_ONLY, .psn = p, .msn = 1}
#define FLUSH(p, how, ...) {IN, OP_FLUSH, .psn = p, .a = (how), __VA_ARGS__}
#define STORE(p, to, ...) \
    {IN, OP_ATOMIC_WRITE, .psn = p, .va = to, .len = 8, .dma_len = 8, __VA_ARGS__}
#define POST_FLUSH(i, bytes, ...) \
    {POST, WR_FLUSH, .id = i, .a = FLUSH_GLOBAL, .b = bytes, __VA_ARGS__}
#define FLUSH_OUT(p, bytes, ...) \
    {OUT, OP_FLUSH, .psn = p, .a = FLUSH_GLOBAL, .dma_len = bytes, .ack_req = true, __VA_ARGS__}
#define POST_STORE(i, ...) {POST, WR_ATOMIC_WRITE, .id = i, .len = 8, __VA_ARGS__}
#define STORE_OUT(p, ...) \
    {OUT, OP_ATOMIC_WRITE, .psn = p, .len = 8, .dma_len = 8, .ack_req = true, __VA_ARGS__}
#define XRC_OP(op) (0xa0 | (op))
#define MS 1000000ull
#define BOTH (FLUSH_GLOBAL | FLUSH_PERSISTENT)
#define ANY_FLUSH (ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT)
#define GRANTS(rights) WITH(.access = (rights))

static const struct dialogue dialogues[] = {
    /* Responder: FLUSH. */
    {"flush__of_a_range", false, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .va = 64, .len = 16, .dma_len = 16},
        FLUSH(6, FLUSH_GLOBAL, .va = 64, .dma_len = 16), DONE(6, 2), {MEM, .at = 64, .len = 16})},
    {"flush__answered_without_being_asked", false, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 16, .ack_req = false), DONE(5, 1),
        FLUSH(6, FLUSH_GLOBAL, .dma_len = 16, .ack_req = true), DONE(6, 2))},
    {"flush__to_the_last_byte", false, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = MEMORY_BYTES), DONE(5, 1))},
    {"flush__of_no_bytes_needs_a_key_only", false, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .va = 8 * MEMORY_BYTES), DONE(5, 1))},
    {"flush__of_the_region_has_no_range", false, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL | FLUSH_MR, .va = 1ull << 60, .dma_len = UINT32_MAX), DONE(5, 1))},
    {"flush__by_a_window", false, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = SMALL_BYTES, .key = K_WINDOW), DONE(5, 1),
        FLUSH(6, FLUSH_GLOBAL | FLUSH_MR, .va = 1, .key = K_WINDOW), DONE(6, 2))},
    {"flush__its_answer_acknowledges_what_was_before", false, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .len = 4, .dma_len = 4, .ack_req = true},
        FLUSH(6, FLUSH_GLOBAL, .dma_len = 4), DONE(6, 2), {MEM, .len = 4})},
    {"flush__right_of_the_qp_alone_is_asked_for", false, WITH(.access = ACCESS_FLUSH_GLOBAL), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 4), DONE(5, 1))},
    {"flush__qp_grants_none", true, GRANTS(ACCESS_REMOTE_WRITE | ACCESS_FLUSH_PERSISTENT), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 4), INVALID(5, 0))},
    {"flush__qp_grants_no_persistence", true, WITH(), STEPS(
        FLUSH(5, FLUSH_PERSISTENT, .dma_len = 4), INVALID(5, 0))},
    {"flush__qp_grants_one_of_both", true, WITH(), STEPS(
        FLUSH(5, BOTH, .dma_len = 4), INVALID(5, 0))},
    {"flush__no_memory_is_persistent", true, GRANTS(ANY_FLUSH), STEPS(
        FLUSH(5, FLUSH_PERSISTENT, .dma_len = 4), NO_ACCESS(5, 0))},
    {"flush__nor_is_the_whole_region", true, GRANTS(ANY_FLUSH), STEPS(
        FLUSH(5, BOTH | FLUSH_MR), NO_ACCESS(5, 0))},
    {"flush__asks_for_nothing", true, WITH(), STEPS(FLUSH(5, 0, .dma_len = 4), INVALID(5, 0))},
    {"flush__reserved_placement", true, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL | 4, .dma_len = 4), INVALID(5, 0))},
    {"flush__reserved_selectivity", true, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL | 2 << 4, .dma_len = 4), INVALID(5, 0))},
    {"flush__reserved_selectivity_with_that_of_the_region", true, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL | 3 << 4, .dma_len = 4), INVALID(5, 0))},
    {"flush__region_grants_none", true, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 4, .key = K_WRITE), NO_ACCESS(5, 0))},
    {"flush__whole_region_grants_none", true, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL | FLUSH_MR, .key = K_WRITE), NO_ACCESS(5, 0))},
    {"flush__of_no_bytes_region_grants_none", true, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .key = K_LOCAL), NO_ACCESS(5, 0))},
    {"flush__no_such_key", true, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL | FLUSH_MR, .key = K_NONE), NO_ACCESS(5, 0))},
    {"flush__key_of_another_pd", true, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 4, .key = K_OTHER), NO_ACCESS(5, 0))},
    {"flush__one_byte_too_many", true, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .va = 1, .dma_len = MEMORY_BYTES), NO_ACCESS(5, 0))},
    {"flush__beyond_its_window", true, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = SMALL_BYTES + 1, .key = K_WINDOW), NO_ACCESS(5, 0))},
    {"flush__longer_than_any_request", true, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 0x80000001), INVALID(5, 0))},
    {"flush__longest_but_not_of_this_region", true, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 0x80000000), NO_ACCESS(5, 0))},
    {"flush__inside_a_message", true, WITH(), STEPS(
        {IN, OP_WRITE_FIRST, .psn = 5, .len = 256, .dma_len = 300},
        FLUSH(6, FLUSH_GLOBAL, .dma_len = 4), INVALID(6, 0), {MEM, .len = 256})},
    {"flush__ahead", true, WITH(), STEPS(
        FLUSH(6, FLUSH_GLOBAL, .dma_len = 4), MISSING(5, 0), FLUSH(5, FLUSH_GLOBAL, .dma_len = 4),
        FLUSH(6, FLUSH_GLOBAL, .dma_len = 4), DONE(5, 1), DONE(6, 2))},
    {"flush__none_agreed", true, WITH(.max_dest_rd = 0), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 4), INVALID(5, 0))},
    /* soft-RoCE does not count its own */
    {"flush__more_than_agreed_waits", true, WITH(.max_dest_rd = 2), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 4), FLUSH(6, FLUSH_GLOBAL, .dma_len = 4),
        FLUSH(7, FLUSH_GLOBAL, .dma_len = 4), FLUSH(8, FLUSH_GLOBAL, .dma_len = 4),
        DONE(5, 1), DONE(6, 2), MISSING(7, 2),
        {COUNT, COUNTER_resp_dropped_requests, .n = 1}, FLUSH(7, FLUSH_GLOBAL, .dma_len = 4),
        FLUSH(8, FLUSH_GLOBAL, .dma_len = 4), DONE(7, 3), DONE(8, 4), {STATE, QP_STATE_RTS})},
    {"flush__takes_no_room_from_reads", true, WITH(.max_dest_rd = 2), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 4), FLUSH(6, FLUSH_GLOBAL, .dma_len = 4),
        {IN, OP_READ_REQUEST, .psn = 7, .dma_len = 4},
        {IN, OP_READ_REQUEST, .psn = 8, .dma_len = 4}, DONE(5, 1), DONE(6, 2),
        {OUT, OP_READ_RESP_ONLY, .psn = 7, .msn = 3, .len = 4},
        {OUT, OP_READ_RESP_ONLY, .psn = 8, .msn = 4, .len = 4}, {STATE, QP_STATE_RTS})},
    {"flush__reads_have_their_own_limit_behind_it", true, WITH(.max_dest_rd = 1), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 4), {IN, OP_READ_REQUEST, .psn = 6, .dma_len = 4},
        {IN, OP_READ_REQUEST, .psn = 7, .dma_len = 4}, DONE(5, 1),
        {OUT, OP_READ_RESP_ONLY, .psn = 6, .msn = 2, .len = 4}, INVALID(7, 2))},
    {"flush__as_many_as_there_can_be_and_a_read", true, WITH(.max_dest_rd = MAX_RD_ATOMIC), STEPS(
        {REPEAT, 1, .n = MAX_RD_ATOMIC}, FLUSH(5, FLUSH_GLOBAL, .dma_len = 4),
        {IN, OP_READ_REQUEST, .psn = 5 + MAX_RD_ATOMIC, .dma_len = 4},
        {REPEAT, 1, .n = MAX_RD_ATOMIC}, DONE(5, 1),
        {COUNT, COUNTER_resp_dropped_requests, .n = 1},
        {IN, OP_READ_REQUEST, .psn = 5 + MAX_RD_ATOMIC, .dma_len = 4},
        {OUT, OP_READ_RESP_ONLY, .psn = 5 + MAX_RD_ATOMIC, .msn = MAX_RD_ATOMIC + 1, .len = 4},
        {STATE, QP_STATE_RTS})},
    {"flush__its_key_goes_before_the_answer", true, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 4, .key = K_SMALL), {REVOKE, .key = K_SMALL},
        DONE(5, 1))},
    {"flush__duplicate_answered_again", true, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 4, .key = K_SMALL), DONE(5, 1), {REVOKE, .key = K_SMALL},
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 4, .key = K_SMALL), DONE(5, 1), {STATE, QP_STATE_RTS})},
    {"flush__duplicate_before_its_answer_is_out", true, WITH(), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 4), FLUSH(5, FLUSH_GLOBAL, .dma_len = 4), DONE(5, 1))},
    {"flush__duplicates_leave_room_for_new_ones", true, WITH(.max_dest_rd = 1), STEPS(
        FLUSH(5, FLUSH_GLOBAL, .dma_len = 4), DONE(5, 1), FLUSH(5, FLUSH_GLOBAL, .dma_len = 4),
        FLUSH(6, FLUSH_GLOBAL, .dma_len = 4), DONE(5, 1), DONE(6, 2))},
    {"flush__too_many_duplicates_dropped", true, WITH(.max_dest_rd = MAX_RD_ATOMIC), STEPS(
        {REPEAT, 2, .n = MAX_RD_ATOMIC + 1}, FLUSH(5, FLUSH_GLOBAL, .dma_len = 4), DONE(5, 1),
        {REPEAT, 1, .n = MAX_RD_ATOMIC + 1}, FLUSH(5, FLUSH_GLOBAL, .dma_len = 4),
        {REPEAT, 1, .n = MAX_RD_ATOMIC, .hold_msn = true}, DONE(5, MAX_RD_ATOMIC + 1),
        {SILENT}, {COUNT, COUNTER_resp_dropped_replays, .n = 1})},

    /* Responder: ATOMIC WRITE. */
    {"store__placed_and_answered", false, WITH(), STEPS(
        STORE(5, 64), DONE(5, 1), {MEM, .at = 64, .len = 8})},
    {"store__last_eight_bytes", false, WITH(), STEPS(
        STORE(5, MEMORY_BYTES - 8), DONE(5, 1), {MEM, .at = MEMORY_BYTES - 8, .len = 8})},
    {"store__is_a_write_not_an_atomic", false, WITH(.access = ACCESS_REMOTE_WRITE), STEPS(
        STORE(5, 64, .key = K_WRITE), DONE(5, 1), {MEM, .at = 64, .len = 8})},
    {"store__by_a_window", false, WITH(), STEPS(
        STORE(5, 8, .key = K_WINDOW), DONE(5, 1), {MEM, .at = 8, .len = 8})},
    {"store__takes_no_receive", false, WITH(), STEPS(
        {RECV, .id = 1, .at = 512, .len = 8}, STORE(5, 64), DONE(5, 1),
        {IN, OP_SEND_ONLY, .psn = 6, .len = 8, .tag = 1, .ack_req = true},
        {OUT, OP_ACKNOWLEDGE, .psn = 6, .msn = 2}, {RCQE, WC_RECV, .id = 1, .len = 8},
        {MEM, .at = 64, .len = 8}, {MEM, .at = 512, .len = 8, .tag = 1})},
    {"store__in_order_with_writes", false, WITH(), STEPS(
        STORE(5, 64), {IN, OP_WRITE_ONLY, .psn = 6, .va = 64, .len = 8, .dma_len = 8, .tag = 1},
        STORE(7, 72, .tag = 2), DONE(5, 1), DONE(7, 3), {MEM, .at = 64, .len = 8, .tag = 1},
        {MEM, .at = 72, .len = 8, .tag = 2})},
    {"store__qp_grants_no_write", true, GRANTS(ACCESS_REMOTE_ATOMIC | ACCESS_REMOTE_READ), STEPS(
        STORE(5, 64), INVALID(5, 0))},
    {"store__region_grants_no_write", true, WITH(), STEPS(
        STORE(5, 64, .key = K_LOCAL), NO_ACCESS(5, 0))},
    {"store__no_such_key", true, WITH(), STEPS(STORE(5, 64, .key = K_NONE), NO_ACCESS(5, 0))},
    {"store__key_of_another_pd", true, WITH(), STEPS(
        STORE(5, 64, .key = K_OTHER), NO_ACCESS(5, 0))},
    {"store__beyond_the_region", true, WITH(), STEPS(STORE(5, MEMORY_BYTES), NO_ACCESS(5, 0))},
    {"store__unaligned", true, WITH(), STEPS(STORE(5, 68), INVALID(5, 0))},
    {"store__unaligned_by_one", true, WITH(), STEPS(STORE(5, 65), INVALID(5, 0))},
    {"store__aligned_address_unaligned_memory", true, WITH(), STEPS(
        STORE(5, 64, .key = K_SKEW), INVALID(5, 0))},
    {"store__unaligned_address_aligned_memory", true, WITH(), STEPS(
        STORE(5, 68, .key = K_SKEW), INVALID(5, 0))},
    /* soft-RoCE once read past the end of such a packet */
    {"store__of_nothing", true, WITH(), STEPS(
        {IN, OP_ATOMIC_WRITE, .psn = 5, .va = 64}, INVALID(5, 0))},
    {"store__announces_nothing", true, WITH(), STEPS(
        {IN, OP_ATOMIC_WRITE, .psn = 5, .va = 64, .len = 8}, INVALID(5, 0))},
    {"store__announces_eight_and_brings_none", true, WITH(), STEPS(
        {IN, OP_ATOMIC_WRITE, .psn = 5, .va = 64, .dma_len = 8}, INVALID(5, 0))},
    {"store__of_four", true, WITH(), STEPS(
        {IN, OP_ATOMIC_WRITE, .psn = 5, .va = 64, .len = 4, .dma_len = 4}, INVALID(5, 0))},
    {"store__of_sixteen", true, WITH(), STEPS(
        {IN, OP_ATOMIC_WRITE, .psn = 5, .va = 64, .len = 16, .dma_len = 16}, INVALID(5, 0))},
    {"store__brings_more_than_it_announces", true, WITH(), STEPS(
        {IN, OP_ATOMIC_WRITE, .psn = 5, .va = 64, .len = 16, .dma_len = 8}, INVALID(5, 0))},
    {"store__inside_a_message", true, WITH(), STEPS(
        {RECV, .id = 1, .at = 512, .len = 512}, {IN, OP_SEND_FIRST, .psn = 5, .len = 256},
        STORE(6, 64), INVALID(6, 0), {RCQE, .id = 1, .status = WC_WR_FLUSH_ERR},
        {MEM, .at = 512, .len = 256})},
    {"store__more_than_agreed", true, WITH(.max_dest_rd = 1), STEPS(
        STORE(5, 64), STORE(6, 72), DONE(5, 1), INVALID(6, 1), {MEM, .at = 64, .len = 8})},
    {"store__none_agreed", true, WITH(.max_dest_rd = 0), STEPS(STORE(5, 64), INVALID(5, 0))},
    {"store__duplicate_does_not_undo_what_came_after", true, WITH(), STEPS(
        STORE(5, 64), DONE(5, 1), STORE(6, 64, .tag = 1), DONE(6, 2), STORE(5, 64), DONE(5, 2),
        STORE(6, 64), DONE(6, 2), {MEM, .at = 64, .len = 8, .tag = 1},
        {COUNT, COUNTER_duplicate_request, .n = 2})},
    {"store__duplicate_before_its_answer_is_out", true, WITH(), STEPS(
        STORE(5, 64), STORE(5, 64, .tag = 1), DONE(5, 1), {MEM, .at = 64, .len = 8})},
    {"store__a_duplicate_write_is_not_acknowledged_by_its_psn", true, WITH(), STEPS(
        {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true}, {OUT, OP_ACKNOWLEDGE, .psn = 5, .msn = 1},
        STORE(6, 64), DONE(6, 2), {IN, OP_WRITE_ONLY, .psn = 5, .ack_req = true},
        {OUT, OP_ACKNOWLEDGE, .psn = 5, .msn = 2}, {MEM, .at = 64, .len = 8})},
    {"store__right_withdrawn_later", true, WITH(), STEPS(
        STORE(5, 64), DONE(5, 1), {ACCESS, .n = ACCESS_FLUSH_GLOBAL}, STORE(6, 64, .tag = 1),
        INVALID(6, 1), {MEM, .at = 64, .len = 8})},

    /* Requester and completer. */
    {"post_flush__range_and_region", false, WITH(), STEPS(
        POST_FLUSH(1, 4096, .va = 100), FLUSH_OUT(100, 4096, .va = 100), ANSWER(100),
        {SCQE, WC_FLUSH, .id = 1},
        {POST, WR_FLUSH, .id = 2, .a = FLUSH_GLOBAL | FLUSH_MR, .va = 7},
        {OUT, OP_FLUSH, .psn = 101, .a = FLUSH_GLOBAL | FLUSH_MR, .va = 7, .ack_req = true},
        ANSWER(101), {SCQE, WC_FLUSH, .id = 2})},
    {"post_flush__persistence_is_the_peers_to_refuse", false, WITH(), STEPS(
        {POST, WR_FLUSH, .id = 1, .a = BOTH, .b = 8},
        {OUT, OP_FLUSH, .psn = 100, .a = BOTH, .dma_len = 8, .ack_req = true},
        ACK(.psn = 100, .syn = NAK(NAK_REMOTE_ACCESS)), FAILED(1, WC_REM_ACCESS_ERR),
        {STATE, QP_STATE_ERR})},
    {"post_flush__longest", false, WITH(), STEPS(
        POST_FLUSH(1, 0x80000000), FLUSH_OUT(100, 0x80000000), ANSWER(100),
        {SCQE, WC_FLUSH, .id = 1})},
    {"post_flush__looks_at_no_sges", false, WITH(), STEPS(
        POST_FLUSH(1, 8, .len = 600, .key = K_OTHER), FLUSH_OUT(100, 8), ANSWER(100),
        {SCQE, WC_FLUSH, .id = 1})},
    {"post_flush__behind_writes", false, WITH(), STEPS(
        {POST, WR_RDMA_WRITE, .id = 1, .len = 300}, POST_FLUSH(2, 300), POST_FLUSH(3, 1),
        {OUT, OP_WRITE_FIRST, .psn = 100, .len = 256, .dma_len = 300},
        {OUT, OP_WRITE_LAST, .psn = 101, .len = 44, .at = 256, .ack_req = true},
        FLUSH_OUT(102, 300), FLUSH_OUT(103, 1), ANSWER(102), {SCQE, WC_RDMA_WRITE, .id = 1},
        {SCQE, WC_FLUSH, .id = 2}, ANSWER(103), {SCQE, WC_FLUSH, .id = 3})},
    {"post_flush__asks_for_nothing", true, WITH(), STEPS(
        {POST, WR_FLUSH, .id = 1, .b = 8, .err = -EINVAL},
        {POST, WR_FLUSH, .id = 1, .a = FLUSH_MR, .err = -EINVAL}, {SILENT})},
    {"post_flush__asks_for_what_there_is_not", true, WITH(), STEPS(
        {POST, WR_FLUSH, .id = 1, .a = 5, .b = 8, .err = -EINVAL},
        {POST, WR_FLUSH, .id = 1, .a = FLUSH_GLOBAL | 2 << 4, .b = 8, .err = -EINVAL},
        {POST, WR_FLUSH, .id = 1, .a = FLUSH_GLOBAL | 1ull << 32, .b = 8, .err = -EINVAL},
        POST_FLUSH(1, 0x80000001, .err = -EINVAL),
        POST_FLUSH(1, 8, .flags = WR_INLINE, .err = -EINVAL), {SILENT})},
    {"post_store__from_memory", false, WITH(), STEPS(
        POST_STORE(1, .at = 40, .va = 64), STORE_OUT(100, .at = 40, .va = 64), ANSWER(100),
        {SCQE, WC_ATOMIC_WRITE, .id = 1})},
    {"post_store__from_two_pieces_that_may_not_be_written", false, WITH(), STEPS(
        POST_STORE(1, .at = 40, .sges = 2, .key = K_READ), STORE_OUT(100, .at = 40), ANSWER(100),
        {SCQE, WC_ATOMIC_WRITE, .id = 1})},
    {"post_store__inline", false, WITH(), STEPS(
        POST_STORE(1, .at = 40, .flags = WR_INLINE, .key = K_NONE), STORE_OUT(100, .at = 40),
        ANSWER(100), {SCQE, WC_ATOMIC_WRITE, .id = 1})},
    {"post_store__of_the_request_itself", false, WITH(), STEPS(
        {SET, .at = 64, .a = 0x1122334455667788},
        {POST, WR_ATOMIC_WRITE, .id = 1, .a = 0x1122334455667788},
        STORE_OUT(100, .at = 64), ANSWER(100), {SCQE, WC_ATOMIC_WRITE, .id = 1})},
    {"post_store__not_eight_bytes", true, WITH(), STEPS(
        {POST, WR_ATOMIC_WRITE, .id = 1, .len = 4, .err = -EINVAL},
        {POST, WR_ATOMIC_WRITE, .id = 1, .len = 16, .err = -EINVAL},
        {POST, WR_ATOMIC_WRITE, .id = 1, .sges = 1, .err = -EINVAL},
        {POST, WR_ATOMIC_WRITE, .id = 1, .flags = WR_INLINE, .err = -EINVAL}, {SILENT})},
    {"post_store__bad_lkey", true, WITH(), STEPS(
        {POST, WR_SEND, .id = 1}, POST_STORE(2, .key = K_OTHER),
        {OUT, OP_SEND_ONLY, .psn = 100, .ack_req = true}, ACK(.psn = 100, .msn = 1),
        {SCQE, WC_SEND, .id = 1}, FAILED(2, WC_LOC_PROT_ERR), {STATE, QP_STATE_ERR})},
    {"post_store__key_gone_while_it_waits", true, WITH(.max_rd = 1), STEPS(
        POST_FLUSH(1, 8), FLUSH_OUT(100, 8), POST_STORE(2, .key = K_SMALL), {SILENT},
        {REVOKE, .key = K_SMALL}, ANSWER(100), {SCQE, WC_FLUSH, .id = 1},
        FAILED(2, WC_LOC_PROT_ERR), {STATE, QP_STATE_ERR})},
    {"limit__counts_both", false, WITH(.max_rd = 2), STEPS(
        POST_FLUSH(1, 8), POST_STORE(2), {POST, WR_RDMA_READ, .id = 3, .len = 4}, POST_FLUSH(4, 8),
        FLUSH_OUT(100, 8), STORE_OUT(101), {SILENT}, ANSWER(100),
        {OUT, OP_READ_REQUEST, .psn = 102, .dma_len = 4, .ack_req = true}, {SILENT},
        {SCQE, WC_FLUSH, .id = 1}, ANSWER(101), FLUSH_OUT(103, 8), {SCQE, WC_ATOMIC_WRITE, .id = 2},
        {IN, OP_READ_RESP_ONLY, .psn = 102, .msn = 3, .len = 4}, {SCQE, WC_RDMA_READ, .id = 3},
        {MEM, .len = 4}, ANSWER(103), {SCQE, WC_FLUSH, .id = 4})},
    {"limit__none_agreed_flush", true, WITH(.max_rd = 0), STEPS(
        POST_FLUSH(1, 8), FAILED(1, WC_LOC_QP_OP_ERR), {STATE, QP_STATE_ERR})},
    {"limit__none_agreed_store", true, WITH(.max_rd = 0), STEPS(
        POST_STORE(1), FAILED(1, WC_LOC_QP_OP_ERR), {STATE, QP_STATE_ERR})},
    {"fence__waits_for_a_flush", false, WITH(), STEPS(
        POST_FLUSH(1, 8), {POST, WR_SEND, .id = 2, .flags = WR_FENCE}, FLUSH_OUT(100, 8), {SILENT},
        ANSWER(100), {OUT, OP_SEND_ONLY, .psn = 101, .ack_req = true}, {SCQE, WC_FLUSH, .id = 1},
        ACK(.psn = 101, .msn = 2), {SCQE, WC_SEND, .id = 2})},
    {"fence__waits_for_a_store", false, WITH(), STEPS(
        POST_STORE(1), {POST, WR_SEND, .id = 2, .flags = WR_FENCE}, STORE_OUT(100), {SILENT},
        ANSWER(100), {OUT, OP_SEND_ONLY, .psn = 101, .ack_req = true},
        {SCQE, WC_ATOMIC_WRITE, .id = 1}, ACK(.psn = 101, .msn = 2),
        {SCQE, WC_SEND, .id = 2})},
    {"answer__an_ack_is_none", true, WITH(), STEPS(
        POST_FLUSH(1, 8), FLUSH_OUT(100, 8), ACK(.psn = 100, .msn = 1), FLUSH_OUT(100, 8),
        {COUNT, COUNTER_implied_nak_seq_err, .n = 1}, ANSWER(100), {SCQE, WC_FLUSH, .id = 1})},
    {"answer__of_an_atomic_is_none", true, WITH(), STEPS(
        {SET, .at = 64, .a = 5}, POST_STORE(1, .at = 64), STORE_OUT(100, .at = 64),
        {IN, OP_ATOMIC_ACKNOWLEDGE, .psn = 100, .msn = 1, .a = 99},
        {COUNT, COUNTER_rx_drop_malformed, .n = 1}, {CELL, .at = 64, .a = 5}, ANSWER(100),
        {SCQE, WC_ATOMIC_WRITE, .id = 1})},
    {"answer__with_data", true, WITH(), STEPS(
        POST_STORE(1), STORE_OUT(100), {IN, OP_READ_RESP_ONLY, .psn = 100, .msn = 1, .len = 8},
        FAILED(1, WC_LOC_LEN_ERR), {STATE, QP_STATE_ERR})},
    {"answer__of_a_flush_is_none_of_an_atomic", true, WITH(), STEPS(
        {SET, .at = 64, .a = 5},
        {POST, WR_ATOMIC_FETCH_AND_ADD, .id = 1, .at = 64, .len = 8, .a = 1},
        {OUT, OP_FETCH_ADD, .psn = 100, .a = 1, .ack_req = true}, ANSWER(100),
        {COUNT, COUNTER_rx_drop_malformed, .n = 1},
        {IN, OP_ATOMIC_ACKNOWLEDGE, .psn = 100, .msn = 1, .a = 6}, {SCQE, WC_FETCH_ADD, .id = 1},
        {CELL, .at = 64, .a = 6})},
    {"answer__lost_and_overtaken", true, WITH(), STEPS(
        POST_FLUSH(1, 8), POST_STORE(2), FLUSH_OUT(100, 8), STORE_OUT(101), ANSWER(101),
        FLUSH_OUT(100, 8), STORE_OUT(101), {COUNT, COUNTER_implied_nak_seq_err, .n = 1},
        ANSWER(100), {SCQE, WC_FLUSH, .id = 1}, ANSWER(101), {SCQE, WC_ATOMIC_WRITE, .id = 2})},
    {"answer__lost_and_asked_for_again", true, WITH(.timeout = 1), STEPS(
        POST_STORE(1), STORE_OUT(100), {TIME, .ns = 8192}, STORE_OUT(100), ANSWER(100),
        {SCQE, WC_ATOMIC_WRITE, .id = 1}, ANSWER(100), {COUNT, COUNTER_req_stale_acks, .n = 1})},
    {"answer__never", true, WITH(.timeout = 1, .retry = 1), STEPS(
        POST_FLUSH(1, 8), POST_STORE(2), FLUSH_OUT(100, 8), STORE_OUT(101), {TIME, .ns = 8192},
        FLUSH_OUT(100, 8), STORE_OUT(101), {TIME, .ns = MS}, FAILED(1, WC_RETRY_EXC_ERR),
        FLUSHED(2), {STATE, QP_STATE_ERR})},
    {"answer__limit_is_whole_again_after_a_loss", true, WITH(.timeout = 1, .max_rd = 1), STEPS(
        POST_FLUSH(1, 8), POST_FLUSH(2, 8), FLUSH_OUT(100, 8), {TIME, .ns = 8192},
        FLUSH_OUT(100, 8), ANSWER(100), FLUSH_OUT(101, 8), {SCQE, WC_FLUSH, .id = 1}, ANSWER(101),
        {SCQE, WC_FLUSH, .id = 2})},
    {"answer__refused_as_invalid", true, WITH(), STEPS(
        POST_STORE(1, .va = 1), STORE_OUT(100, .va = 1), POST_FLUSH(2, 8), FLUSH_OUT(101, 8),
        ACK(.psn = 100, .syn = NAK(NAK_INVALID_REQUEST)), FAILED(1, WC_REM_INV_REQ_ERR),
        FLUSHED(2), {STATE, QP_STATE_ERR})},

    /* Other services. */
    {"xrc__initiator", false, WITH(.ini = true), STEPS(
        POST_FLUSH(1, 8), POST_STORE(2),
        {OUT, XRC_OP(OP_FLUSH), .psn = 100, .a = FLUSH_GLOBAL, .dma_len = 8, .ack_req = true},
        {OUT, XRC_OP(OP_ATOMIC_WRITE), .psn = 101, .len = 8, .dma_len = 8, .ack_req = true},
        {IN, XRC_OP(OP_READ_RESP_ONLY), .psn = 100, .msn = 1}, {SCQE, WC_FLUSH, .id = 1},
        {IN, XRC_OP(OP_READ_RESP_ONLY), .psn = 101, .msn = 2}, {SCQE, WC_ATOMIC_WRITE, .id = 2})},
    {"xrc__target", false, WITH(.tgt = true), STEPS(
        {IN, XRC_OP(OP_ATOMIC_WRITE), .psn = 5, .va = 64, .len = 8, .dma_len = 8},
        {IN, XRC_OP(OP_FLUSH), .psn = 6, .va = 64, .dma_len = 8, .a = FLUSH_GLOBAL},
        {OUT, XRC_OP(OP_READ_RESP_ONLY), .psn = 5, .msn = 1},
        {OUT, XRC_OP(OP_READ_RESP_ONLY), .psn = 6, .msn = 2}, {MEM, .at = 64, .len = 8})},
    {"xrc__target_no_such_queue", true, WITH(.tgt = true), STEPS(
        {IN, XRC_OP(OP_FLUSH), .psn = 5, .dma_len = 8, .a = FLUSH_GLOBAL, .srq = SRQ_GONE},
        {OUT, XRC_OP(OP_ACKNOWLEDGE), .psn = 5, .syn = NAK(NAK_INVALID_REQUEST)},
        {EVENT, EVENT_QP_REQ_ERR}, {STATE, QP_STATE_ERR})},
    {"xrc__target_key_of_another_domain", true, WITH(.tgt = true), STEPS(
        {IN, XRC_OP(OP_ATOMIC_WRITE), .psn = 5, .va = 64, .len = 8, .dma_len = 8, .key = K_OTHER},
        {OUT, XRC_OP(OP_ACKNOWLEDGE), .psn = 5, .syn = NAK(NAK_REMOTE_ACCESS)},
        {EVENT, EVENT_QP_ACCESS_ERR}, {STATE, QP_STATE_ERR})},
    {"uc__has_neither", true, WITH(.uc = true), STEPS(
        POST_FLUSH(1, 8, .err = -EINVAL), POST_STORE(1, .err = -EINVAL), {SILENT})},
    {"ud__has_neither", true, WITH(.ud = true), STEPS(
        POST_FLUSH(1, 8, .err = -EINVAL), POST_STORE(1, .err = -EINVAL), {SILENT})},
};
/* clang-format on */

int main(void)
{
    return script_run("placement", dialogues, sizeof(dialogues) / sizeof(dialogues[0]));
}
