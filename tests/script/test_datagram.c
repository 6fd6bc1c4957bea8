/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_datagram.c: unreliable datagrams: what a WQE becomes on the wire and when it is done, what
 * becomes of a packet that comes in, and what neither may touch.
 */
#include <errno.h>

#include "script.h"

/* clang-format off */
#define UD(...) WITH(.ud = true, __VA_ARGS__)

enum { SEND = 0x64, SEND_IMM = 0x65 }; /* UD SEND Only, with Immediate */

static const struct dialogue dialogues[] = {
    /* IBA 9.8.3: one packet each, which nothing answers. */
    {"send__is_done_when_it_is_out", false, UD(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 100, .at = 64},
        {OUT, SEND, .psn = 100, .len = 100, .at = 64}, {SCQE, WC_SEND, .id = 1},
        {POST, WR_SEND, .id = 2}, {OUT, SEND, .psn = 101}, {SCQE, WC_SEND, .id = 2})},
    {"send__immediate_and_solicited", false, UD(), STEPS(
        {POST, WR_SEND_WITH_IMM, .id = 1, .len = 3, .imm = 0xdeadbeef, .flags = WR_SOLICITED},
        {OUT, SEND_IMM, .psn = 100, .len = 3, .imm = 0xdeadbeef, .se = true},
        {SCQE, WC_SEND, .id = 1})},
    {"send__each_has_its_own_destination", false, UD(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 8, .qpn = 0x11, .qkey = 0x22},
        {POST, WR_SEND, .id = 2, .len = 8, .qpn = 0xffffff, .ah = AH_OTHER},
        {POST, WR_SEND, .id = 3, .len = 8, .ah = AH_SPORT},
        {OUT, SEND, .psn = 100, .len = 8, .qpn = 0x11, .qkey = 0x22},
        {OUT, SEND, .psn = 101, .len = 8, .qpn = 0xffffff, .ah = AH_OTHER},
        {OUT, SEND, .psn = 102, .len = 8, .ah = AH_SPORT},
        {SCQE, WC_SEND, .id = 1}, {SCQE, WC_SEND, .id = 2}, {SCQE, WC_SEND, .id = 3},
        {COUNT, COUNTER_tx_trains, .n = 3})},
    /* Other QPs of the same process are no reason for another system call. */
    {"send__by_one_path_is_one_train", false, UD(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 256}, {POST, WR_SEND, .id = 2, .len = 256, .qpn = 0x123477},
        {POST, WR_SEND, .id = 3, .len = 256, .qkey = 5}, {POST, WR_SEND, .id = 4, .len = 7},
        {OUT, SEND, .psn = 100, .len = 256}, {OUT, SEND, .psn = 101, .len = 256, .qpn = 0x123477},
        {OUT, SEND, .psn = 102, .len = 256, .qkey = 5}, {OUT, SEND, .psn = 103, .len = 7},
        {COUNT, COUNTER_tx_trains, .n = 1}, {SCQE, WC_SEND, .id = 1}, {SCQE, WC_SEND, .id = 2},
        {SCQE, WC_SEND, .id = 3}, {SCQE, WC_SEND, .id = 4})},
    /* Those of another process are: a train is for one. */
    {"send__to_another_process_begins_a_train", false, UD(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 256}, {POST, WR_SEND, .id = 2, .len = 256, .qpn = 0x77},
        {POST, WR_SEND, .id = 3, .len = 256, .qkey = 5}, {POST, WR_SEND, .id = 4, .len = 7},
        {OUT, SEND, .psn = 100, .len = 256}, {OUT, SEND, .psn = 101, .len = 256, .qpn = 0x77},
        {OUT, SEND, .psn = 102, .len = 256, .qkey = 5}, {OUT, SEND, .psn = 103, .len = 7},
        {COUNT, COUNTER_tx_trains, .n = 3}, {SCQE, WC_SEND, .id = 1}, {SCQE, WC_SEND, .id = 2},
        {SCQE, WC_SEND, .id = 3}, {SCQE, WC_SEND, .id = 4})},
    {"send__a_larger_one_begins_a_train", false, UD(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 4}, {POST, WR_SEND, .id = 2, .len = 256},
        {OUT, SEND, .psn = 100, .len = 4}, {OUT, SEND, .psn = 101, .len = 256},
        {COUNT, COUNTER_tx_trains, .n = 2}, {SCQE, WC_SEND, .id = 1}, {SCQE, WC_SEND, .id = 2})},
    {"send__psn_wraps", false, UD(.sq_psn = 0xffffff), STEPS(
        {POST, WR_SEND, .id = 1}, {POST, WR_SEND, .id = 2}, {OUT, SEND, .psn = 0xffffff},
        {OUT, SEND, .psn = 0}, {SCQE, WC_SEND, .id = 1}, {SCQE, WC_SEND, .id = 2})},
    {"send__inline_needs_no_key", false, UD(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 60, .sges = 3, .key = K_NONE, .flags = WR_INLINE},
        {OUT, SEND, .psn = 100, .len = 60}, {SCQE, WC_SEND, .id = 1})},
    {"send__gathers_in_order", false, UD(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 130, .sges = 4, .at = 11},
        {OUT, SEND, .psn = 100, .len = 130, .at = 11}, {SCQE, WC_SEND, .id = 1})},
    {"send__unsignalled_makes_no_completion", false, UD(.unsignalled = true), STEPS(
        {POST, WR_SEND, .id = 1, .len = 4}, {OUT, SEND, .psn = 100, .len = 4}, {SILENT},
        {POST, WR_SEND, .id = 2, .len = 4, .flags = WR_SIGNALED},
        {OUT, SEND, .psn = 101, .len = 4}, {SCQE, WC_SEND, .id = 2})},
    {"send__the_largest", false, UD(.mtu = 1024), STEPS(
        {POST, WR_SEND, .id = 1, .len = 1024}, {OUT, SEND, .psn = 100, .len = 1024},
        {SCQE, WC_SEND, .id = 1})},
    {"send__a_queue_of_them_many_times", false, UD(.wrs = 4), STEPS(
        {REPEAT, 3, .n = 300}, {POST, WR_SEND, .id = 9},
        {OUT, SEND, .psn = 100}, {SCQE, WC_SEND, .id = 9})},
    /* rut ud SendInvalidQKey */
    {"case_84_controlled_key_of_a_wr", false, UD(), STEPS(
        {POST, WR_SEND, .id = 1, .qkey = 0x80010000}, {POST, WR_SEND, .id = 2, .qkey = 0xffffffff},
        {POST, WR_SEND, .id = 3, .qkey = 0x7fffffff}, {OUT, SEND, .psn = 100, .qkey = QKEY},
        {OUT, SEND, .psn = 101, .qkey = QKEY}, {OUT, SEND, .psn = 102, .qkey = 0x7fffffff},
        {SCQE, WC_SEND, .id = 1}, {SCQE, WC_SEND, .id = 2}, {SCQE, WC_SEND, .id = 3})},
    /* one QP has many peers: no CNP slows it */
    {"recv__cnp", true, UD(), STEPS(
        {IN, OPCODE_CNP, .psn = 0}, {COUNT, COUNTER_rx_drop_service, .n = 1},
        {COUNT, COUNTER_rp_cnp_handled, .n = 0}, {SILENT})},
    {"send__waits_in_sqd", false, UD(), STEPS(
        {MODIFY, QP_STATE_SQD}, {EVENT, EVENT_SQ_DRAINED}, {POST, WR_SEND, .id = 1, .len = 4},
        {SILENT}, {RECV, .id = 2, .len = 44, .at = 512}, {IN, SEND, .len = 4},
        {RCQE, WC_RECV, .id = 2, .len = 44, .flags = WC_GRH}, {GRH, SEND, .at = 512, .len = 4},
        {MEM, .at = 552, .len = 4}, {MODIFY, QP_STATE_RTS}, {OUT, SEND, .psn = 100, .len = 4},
        {SCQE, WC_SEND, .id = 1})},

    /* What cannot be sent. IBA 9.8.3, rut ud SendLargerThanMtu */
    {"case_82_longer_than_the_mtu", true, UD(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 256}, {POST, WR_SEND, .id = 2, .len = 257},
        {POST, WR_SEND, .id = 3, .len = 1}, {OUT, SEND, .psn = 100, .len = 256},
        {SCQE, WC_SEND, .id = 1}, {SCQE, .id = 2, .status = WC_LOC_LEN_ERR},
        {SCQE, .id = 3, .status = WC_WR_FLUSH_ERR}, {SILENT}, {STATE, QP_STATE_SQE})},
    {"send__foreign_key", true, UD(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 8}, {POST, WR_SEND, .id = 2, .len = 8, .key = K_OTHER},
        {OUT, SEND, .psn = 100, .len = 8}, {SCQE, WC_SEND, .id = 1},
        {SCQE, .id = 2, .status = WC_LOC_PROT_ERR}, {SILENT}, {STATE, QP_STATE_SQE})},
    {"send__key_that_has_gone", true, UD(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 8}, {REVOKE, .key = K_ALL},
        {SCQE, .id = 1, .status = WC_LOC_PROT_ERR}, {STATE, QP_STATE_SQE})},
    {"send__failure_of_an_unsignalled_is_told", true, UD(.unsignalled = true), STEPS(
        {POST, WR_SEND, .id = 1, .len = 8}, {POST, WR_SEND, .id = 2, .len = 300},
        {POST, WR_SEND, .id = 3}, {OUT, SEND, .psn = 100, .len = 8},
        {SCQE, .id = 2, .status = WC_LOC_LEN_ERR}, {SCQE, .id = 3, .status = WC_WR_FLUSH_ERR})},
    /* IBA 10.3.1: only the send queue has stopped; a modify to RTS makes it go on. */
    {"sqe__receives_go_on_sends_are_flushed", true, UD(), STEPS(
        {POST, WR_SEND, .id = 1, .len = 257}, {SCQE, .id = 1, .status = WC_LOC_LEN_ERR},
        {RECV, .id = 2, .len = 48, .at = 512}, {IN, SEND, .len = 8},
        {RCQE, WC_RECV, .id = 2, .len = 48, .flags = WC_GRH}, {GRH, SEND, .at = 512, .len = 8},
        {MEM, .at = 552, .len = 8}, {POST, WR_SEND, .id = 3},
        {SCQE, .id = 3, .status = WC_WR_FLUSH_ERR}, {MODIFY, QP_STATE_SQD, .err = -EINVAL},
        {MODIFY, QP_STATE_RTS}, {POST, WR_SEND, .id = 4}, {OUT, SEND, .psn = 100},
        {SCQE, WC_SEND, .id = 4}, {STATE, QP_STATE_RTS})},
    {"sqe__to_error_flushes_receives", true, UD(), STEPS(
        {RECV, .id = 2, .len = 48}, {POST, WR_SEND, .id = 1, .len = 257},
        {SCQE, .id = 1, .status = WC_LOC_LEN_ERR}, {MODIFY, QP_STATE_ERR},
        {RCQE, .id = 2, .status = WC_WR_FLUSH_ERR})},
    {"post__refused", true, UD(), STEPS(
        {POST, WR_RDMA_WRITE, .id = 1, .err = -EINVAL},
        {POST, WR_RDMA_READ, .id = 1, .err = -EINVAL},
        {POST, WR_ATOMIC_FETCH_AND_ADD, .id = 1, .len = 8, .err = -EINVAL},
        {POST, WR_SEND_WITH_INV, .id = 1, .err = -EINVAL},
        {POST, WR_LOCAL_INV, .id = 1, .err = -EINVAL},
        {POST, WR_SEND, .id = 1, .ah = AH_NONE, .err = -EINVAL},
        {POST, WR_SEND, .id = 1, .qpn = 0x1000000, .err = -EINVAL},
        {POST, WR_SEND, .id = 1, .len = 400, .flags = WR_INLINE, .err = -EINVAL}, {SILENT})},
    {"post__refused_before_rts", true, UD(.state = QP_STATE_RTR), STEPS(
        {POST, WR_SEND, .id = 1, .err = -EINVAL}, {SILENT})},
    {"error__flushes_in_order", true, UD(), STEPS(
        {RECV, .id = 1, .len = 64}, {RECV, .id = 2, .len = 64}, {MODIFY, QP_STATE_ERR},
        {POST, WR_SEND, .id = 3}, {SCQE, .id = 3, .status = WC_WR_FLUSH_ERR},
        {RCQE, .id = 1, .status = WC_WR_FLUSH_ERR}, {RCQE, .id = 2, .status = WC_WR_FLUSH_ERR},
        {IN, SEND, .len = 4}, {COUNT, COUNTER_rx_drop_state, .n = 1}, {SILENT})},
    {"error__reset_begins_anew", false, UD(), STEPS(
        {POST, WR_SEND, .id = 1}, {OUT, SEND, .psn = 100}, {SCQE, WC_SEND, .id = 1},
        {MODIFY, QP_STATE_RESET}, {MODIFY, QP_STATE_INIT}, {MODIFY, QP_STATE_RTR},
        {MODIFY, QP_STATE_RTS}, {POST, WR_SEND, .id = 2}, {OUT, SEND, .psn = 100},
        {SCQE, WC_SEND, .id = 2})},

    /* Receiving. IBA A17.4.5.2, ucx#6317, ucx#10209 */
    {"case_81_header_before_the_data_v4", false, UD(), STEPS(
        {RECV, .id = 1, .len = 240}, {IN, SEND, .psn = 9, .len = 200},
        {RCQE, WC_RECV, .id = 1, .len = 240, .flags = WC_GRH}, {GRH, SEND, .len = 200},
        {MEM, .at = 40, .len = 200})},
    {"case_81_header_before_the_data_v6", false, UD(), STEPS(
        {RECV, .id = 1, .len = 300}, {IN, SEND, .psn = 9, .len = 201, .odd = ODD_V6 | ODD_CE},
        {RCQE, WC_RECV, .id = 1, .len = 241, .flags = WC_GRH},
        {GRH, SEND, .len = 201, .odd = ODD_V6 | ODD_CE}, {MEM, .at = 40, .len = 201})},
    {"recv__empty_with_immediate", false, UD(), STEPS(
        {RECV, .id = 1, .len = 40}, {IN, SEND_IMM, .imm = 0x01020304},
        {RCQE, WC_RECV, .id = 1, .len = 40, .flags = WC_GRH | WC_WITH_IMM, .imm = 0x01020304},
        {GRH, SEND_IMM})},
    {"recv__across_sges", false, UD(), STEPS(
        {RECV, .id = 1, .len = 100, .sges = 4, .at = 8}, {IN, SEND, .len = 60},
        {RCQE, WC_RECV, .id = 1, .len = 100, .flags = WC_GRH}, {GRH, SEND, .at = 8, .len = 60},
        {MEM, .at = 48, .len = 60})},
    {"recv__any_psn_and_any_sender", false, UD(.state = QP_STATE_RTR), STEPS(
        {RECV, .id = 1, .len = 44}, {RECV, .id = 2, .len = 44, .at = 100},
        {IN, SEND, .psn = 7, .len = 4, .ack_req = true},
        {IN, SEND, .psn = 7, .len = 4, .tag = 1, .odd = ODD_MIG | ODD_PKEY_PART}, {SILENT},
        {RCQE, WC_RECV, .id = 1, .len = 44, .flags = WC_GRH}, {GRH, SEND, .len = 4},
        {MEM, .at = 40, .len = 4}, {RCQE, WC_RECV, .id = 2, .len = 44, .flags = WC_GRH},
        {GRH, SEND, .at = 100, .len = 4}, {MEM, .at = 140, .len = 4, .tag = 1})},
    {"recv__from_an_srq", false, UD(.srq = true), STEPS(
        {RECV, .id = 1, .len = 44}, {IN, SEND, .len = 4},
        {RCQE, WC_RECV, .id = 1, .len = 44, .flags = WC_GRH}, {GRH, SEND, .len = 4},
        {MEM, .at = 40, .len = 4})},
    {"recv__solicited_wakes", false, UD(), STEPS(
        {RECV, .id = 1, .len = 40}, {RECV, .id = 2, .len = 40, .at = 64}, {ARM, 1}, {IN, SEND},
        {NOTIFY, 0}, {IN, SEND, .se = true}, {NOTIFY, 1},
        {RCQE, WC_RECV, .id = 1, .len = 40, .flags = WC_GRH},
        {RCQE, WC_RECV, .id = 2, .len = 40, .flags = WC_GRH}, {GRH, SEND}, {GRH, SEND, .at = 64})},

    /* What is dropped. rut ud SendWithTooSmallRecv, SendRnr: nothing comes of it, and the receive
     * is there for the next. */
    {"case_83_too_small_is_not_used_up", true, UD(), STEPS(
        {RECV, .id = 1, .len = 50}, {IN, SEND, .len = 11}, {SILENT},
        {COUNT, COUNTER_rx_drop_recv_small, .n = 1}, {IN, SEND, .len = 10, .tag = 1},
        {RCQE, WC_RECV, .id = 1, .len = 50, .flags = WC_GRH}, {GRH, SEND, .len = 10},
        {MEM, .at = 40, .len = 10, .tag = 1})},
    {"case_83_too_small_for_the_header", true, UD(), STEPS(
        {RECV, .id = 1, .len = 39}, {IN, SEND}, {SILENT},
        {COUNT, COUNTER_rx_drop_recv_small, .n = 1}, {STATE, QP_STATE_RTS})},
    {"case_83_too_small_in_an_srq", true, UD(.srq = true), STEPS(
        {RECV, .id = 1, .len = 50}, {IN, SEND, .len = 11}, {SILENT},
        {COUNT, COUNTER_rx_drop_recv_small, .n = 1}, {IN, SEND, .len = 10, .tag = 1},
        {RCQE, WC_RECV, .id = 1, .len = 50, .flags = WC_GRH}, {GRH, SEND, .len = 10},
        {MEM, .at = 40, .len = 10, .tag = 1})},
    {"case_83_none_posted", true, UD(), STEPS(
        {IN, SEND, .len = 4}, {SILENT}, {COUNT, COUNTER_rx_drop_no_recv, .n = 1},
        {RECV, .id = 1, .len = 44}, {IN, SEND, .len = 4},
        {RCQE, WC_RECV, .id = 1, .len = 44, .flags = WC_GRH}, {GRH, SEND, .len = 4},
        {MEM, .at = 40, .len = 4})},
    {"case_83_none_posted_in_an_srq", true, UD(.srq = true), STEPS(
        {IN, SEND, .len = 4}, {SILENT}, {COUNT, COUNTER_rx_drop_no_recv, .n = 1})},
    {"case_84_another_key", true, UD(), STEPS(
        {RECV, .id = 1, .len = 44}, {IN, SEND, .len = 4, .qkey = QKEY ^ 1},
        {IN, SEND, .len = 4, .qkey = QKEY | 0x80000000u}, {SILENT},
        {COUNT, COUNTER_qkey_viol_cntr, .n = 2}, {IN, SEND, .len = 4},
        {RCQE, WC_RECV, .id = 1, .len = 44, .flags = WC_GRH}, {GRH, SEND, .len = 4},
        {MEM, .at = 40, .len = 4})},
    {"recv__longer_than_the_mtu", true, UD(), STEPS(
        {RECV, .id = 1, .len = 400}, {IN, SEND, .len = 257}, {SILENT},
        {COUNT, COUNTER_rx_drop_malformed, .n = 1})},
    {"recv__another_service", true, UD(), STEPS(
        {RECV, .id = 1, .len = 400}, {IN, OP_SEND_ONLY, .len = 4}, {IN, OP_ACKNOWLEDGE},
        {IN, 0x24, .len = 4}, {IN, OP_READ_REQUEST}, {SILENT},
        {COUNT, COUNTER_rx_drop_service, .n = 4})},
    {"recv__another_pkey", true, UD(), STEPS(
        {RECV, .id = 1, .len = 400}, {IN, SEND, .len = 4, .odd = ODD_PKEY}, {SILENT},
        {COUNT, COUNTER_rx_drop_pkey, .n = 1})},
    {"recv__not_before_rtr", true, UD(.state = QP_STATE_INIT), STEPS(
        {RECV, .id = 1, .len = 44}, {IN, SEND, .len = 4}, {SILENT},
        {COUNT, COUNTER_rx_drop_state, .n = 1})},
    {"recv__bad_icrc", true, UD(), STEPS(
        {RECV, .id = 1, .len = 44}, {IN, SEND, .len = 4, .odd = ODD_ICRC}, {SILENT},
        {COUNT, COUNTER_rx_icrc_encapsulated, .n = 1})},
    {"recv__key_without_local_write", true, UD(), STEPS(
        {RECV, .id = 1, .len = 44, .key = K_READ}, {RECV, .id = 2, .len = 44},
        {IN, SEND, .len = 4}, {RCQE, .id = 1, .status = WC_LOC_PROT_ERR},
        {RCQE, .id = 2, .status = WC_WR_FLUSH_ERR}, {STATE, QP_STATE_ERR})},
    {"recv__key_of_another_domain_in_an_srq", true, UD(.srq = true), STEPS(
        {RECV, .id = 1, .len = 44, .key = K_OTHER}, {IN, SEND, .len = 4},
        {RCQE, .id = 1, .status = WC_LOC_PROT_ERR}, {STATE, QP_STATE_ERR},
        {EVENT, EVENT_QP_LAST_WQE_REACHED})},
    /* A way through the states that is an RC QP's is none for this one. */
    {"modify__attributes_of_a_connection", true, UD(.state = QP_STATE_RTS), STEPS(
        {ACCESS, .n = 0, .err = -EINVAL}, {MODIFY, QP_STATE_INIT, .err = -EINVAL},
        {MODIFY, QP_STATE_RTR, .err = -EINVAL}, {STATE, QP_STATE_RTS})},
    {"modify__not_from_init_to_rts", true, UD(.state = QP_STATE_INIT), STEPS(
        {MODIFY, QP_STATE_RTS, .err = -EINVAL}, {STATE, QP_STATE_INIT})},
};
/* clang-format on */

int main(void)
{
    return script_run("datagram", dialogues, sizeof(dialogues) / sizeof(dialogues[0]));
}
