/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_qp_table.c: the state table against the required attributes that the ibv_modify_qp manual
 * lists, written out again here, and against the list of transitions that exist.
 */
#include "nic/qp_table.h"
#include "objects.h"

static const enum qp_type types[] = {QP_TYPE_GSI, QP_TYPE_RC,      QP_TYPE_UC,
                                     QP_TYPE_UD,  QP_TYPE_XRC_INI, QP_TYPE_XRC_TGT};
enum { TYPES = sizeof(types) / sizeof(types[0]) };

enum {
    STATE = QP_ATTR_STATE,
    UC_RTR = QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN,
    RC_RTR = UC_RTR | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
    RC_RTS = QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
             QP_ATTR_MAX_QP_RD_ATOMIC,
    CONN_INIT = QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
};

static const struct {
    enum qp_type type;
    enum qp_state from, to;
    unsigned required;
} rows[] = {
    {QP_TYPE_RC,      QP_STATE_RESET, QP_STATE_INIT, CONN_INIT                                       },
    {QP_TYPE_UC,      QP_STATE_RESET, QP_STATE_INIT, CONN_INIT                                       },
    {QP_TYPE_XRC_INI, QP_STATE_RESET, QP_STATE_INIT, CONN_INIT                                       },
    {QP_TYPE_XRC_TGT, QP_STATE_RESET, QP_STATE_INIT, CONN_INIT                                       },
    {QP_TYPE_UD,      QP_STATE_RESET, QP_STATE_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY},
    {QP_TYPE_GSI,     QP_STATE_RESET, QP_STATE_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_QKEY               },
    {QP_TYPE_RC,      QP_STATE_INIT,  QP_STATE_RTR,  RC_RTR                                          },
    {QP_TYPE_UC,      QP_STATE_INIT,  QP_STATE_RTR,  UC_RTR                                          },
    {QP_TYPE_XRC_INI, QP_STATE_INIT,  QP_STATE_RTR,  UC_RTR                                          },
    {QP_TYPE_XRC_TGT, QP_STATE_INIT,  QP_STATE_RTR,  RC_RTR                                          },
    {QP_TYPE_UD,      QP_STATE_INIT,  QP_STATE_RTR,  0                                               },
    {QP_TYPE_GSI,     QP_STATE_INIT,  QP_STATE_RTR,  0                                               },
    {QP_TYPE_RC,      QP_STATE_RTR,   QP_STATE_RTS,  RC_RTS                                          },
    {QP_TYPE_UC,      QP_STATE_RTR,   QP_STATE_RTS,  QP_ATTR_SQ_PSN                                  },
    {QP_TYPE_XRC_INI, QP_STATE_RTR,   QP_STATE_RTS,  RC_RTS                                          },
    {QP_TYPE_XRC_TGT, QP_STATE_RTR,   QP_STATE_RTS,  QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT                },
    {QP_TYPE_UD,      QP_STATE_RTR,   QP_STATE_RTS,  QP_ATTR_SQ_PSN                                  },
    {QP_TYPE_GSI,     QP_STATE_RTR,   QP_STATE_RTS,  QP_ATTR_SQ_PSN                                  },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* IBA 11.2.5.2 */
static void case_30(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        unsigned required = rows[i].required;

        assert_true(qp_table_allows(rows[i].type, rows[i].from, rows[i].to, STATE | required));
        for (unsigned bit = 0; bit < 32; bit++) {
            if (required & 1u << bit)
                assert_false(qp_table_allows(rows[i].type, rows[i].from, rows[i].to,
                                             STATE | (required & ~(1u << bit))));
        }
    }
}

/* No attribute beyond the required and optional ones, whatever its number. */
/* IBA 11.2.5.2 */
static void qp_table_allows__nothing_more(void **state)
{
    (void)state;
    for (int t = 0; t < TYPES; t++) {
        for (int from = 0; from < QP_STATE_COUNT; from++) {
            for (int to = 0; to < QP_STATE_COUNT; to++) {
                const struct qp_transition *row =
                    qp_table_find(types[t], (enum qp_state)from, (enum qp_state)to);

                for (unsigned bit = 0; bit < 32; bit++) {
                    unsigned known = row == NULL ? 0 : row->required | row->optional | STATE;
                    unsigned mask = (row == NULL ? 0 : row->required) | STATE | 1u << bit;

                    assert_int_equal(
                        qp_table_allows(types[t], (enum qp_state)from, (enum qp_state)to, mask),
                        row != NULL && (known & 1u << bit) != 0);
                }
                if (row != NULL)
                    assert_int_equal(row->required & row->optional, 0);
            }
        }
    }
}

/* from state -> bits of the states it leads to; SQE only for transports whose SQ fails alone. */
static void qp_table_find__which_exist(void **state)
{
    enum {
        RESET = 1 << QP_STATE_RESET,
        INIT = 1 << QP_STATE_INIT,
        RTR = 1 << QP_STATE_RTR,
        RTS = 1 << QP_STATE_RTS,
        SQD = 1 << QP_STATE_SQD,
        ERR = 1 << QP_STATE_ERR,
    };
    static const unsigned to[QP_STATE_COUNT] = {
        [QP_STATE_RESET] = RESET | INIT,
        [QP_STATE_INIT] = RESET | INIT | RTR | ERR,
        [QP_STATE_RTR] = RESET | RTS | ERR,
        [QP_STATE_RTS] = RESET | RTS | SQD | ERR,
        [QP_STATE_SQD] = RESET | RTS | SQD | ERR,
        [QP_STATE_SQE] = RESET | ERR,
        [QP_STATE_ERR] = RESET | ERR,
    };

    (void)state;
    for (int t = 0; t < TYPES; t++) {
        bool sqe = types[t] == QP_TYPE_UC || types[t] == QP_TYPE_UD || types[t] == QP_TYPE_GSI;

        for (int from = 0; from < QP_STATE_COUNT; from++) {
            for (int next = 0; next < QP_STATE_COUNT; next++) {
                bool exists = to[from] >> next & 1;

                if (from == QP_STATE_SQE && next == QP_STATE_RTS)
                    exists = sqe;
                assert_int_equal(
                    qp_table_find(types[t], (enum qp_state)from, (enum qp_state)next) != NULL,
                    exists);
            }
        }
    }
}

static void qp_table_find__no_such_type(void **state)
{
    (void)state;
    assert_null(qp_table_find((enum qp_type)0, QP_STATE_RESET, QP_STATE_INIT));
    assert_null(qp_table_find((enum qp_type)5, QP_STATE_RESET, QP_STATE_INIT));
    assert_null(qp_table_find(QP_TYPE_RC, QP_STATE_RESET, (enum qp_state)99));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_30),
        cmocka_unit_test(qp_table_allows__nothing_more),
        cmocka_unit_test(qp_table_find__which_exist),
        cmocka_unit_test(qp_table_find__no_such_type),
    };

    return cmocka_run_group_tests_name("qp_table", tests, NULL, NULL);
}
