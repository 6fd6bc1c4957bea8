/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp_table.c: the state table of QPs as rows. IBA 11.2.5.2 gives the rule, the ibv_modify_qp manual
 * the required attributes; where both leave room the rows allow what Linux allows.
 */
#include "nic/qp_table.h"

#include <stddef.h>

#define T(t)   (1u << QP_TYPE_##t)
#define ALL    (T(GSI) | T(RC) | T(UC) | T(UD) | T(XRC_INI) | T(XRC_TGT))
#define CONN   (T(RC) | T(UC) | T(XRC_INI) | T(XRC_TGT)) /* has a peer */
#define DGRAM  (T(UD) | T(GSI))
#define RESP   (T(RC) | T(XRC_TGT)) /* reliable, has a responder */
#define NORESP (T(UC) | T(XRC_INI)) /* connected, no reliable responder */

#define CUR      QP_ATTR_CUR_STATE
#define NOTIFY   QP_ATTR_EN_SQD_ASYNC_NOTIFY
#define ACCESS   QP_ATTR_ACCESS_FLAGS
#define PKEY     QP_ATTR_PKEY_INDEX
#define PORT     QP_ATTR_PORT
#define QKEY     QP_ATTR_QKEY
#define AV       QP_ATTR_AV
#define MTU      QP_ATTR_PATH_MTU
#define TIMEOUT  QP_ATTR_TIMEOUT
#define RETRY    (QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY)
#define RQ_PSN   QP_ATTR_RQ_PSN
#define RD       QP_ATTR_MAX_QP_RD_ATOMIC
#define ALT      QP_ATTR_ALT_PATH
#define RNR      QP_ATTR_MIN_RNR_TIMER
#define SQ_PSN   QP_ATTR_SQ_PSN
#define DEST_RD  QP_ATTR_MAX_DEST_RD_ATOMIC
#define MIG      QP_ATTR_PATH_MIG_STATE
#define DEST_QPN QP_ATTR_DEST_QPN
#define RATE     QP_ATTR_RATE_LIMIT

#define RESET QP_STATE_RESET
#define INIT  QP_STATE_INIT
#define RTR   QP_STATE_RTR
#define RTS   QP_STATE_RTS
#define SQD   QP_STATE_SQD
#define SQE   QP_STATE_SQE
#define ERR   QP_STATE_ERR

/* Sets that occur more than once. */
#define PEER    (AV | MTU | DEST_QPN | RQ_PSN)
#define REQUEST (TIMEOUT | RETRY | RD)
#define RTR_OPT (ALT | ACCESS | PKEY)
#define RTS_OPT (CUR | ALT | ACCESS | MIG)
#define SQD_OPT (AV | ALT | ACCESS | PKEY | MIG)
#define SQD_RC  (SQD_OPT | PORT | REQUEST | DEST_RD | RNR)

static const struct qp_transition transition[] = {
    {ALL,        RESET, RESET, 0,                    0                                       },
    {ALL,        INIT,  RESET, 0,                    0                                       },
    {ALL,        RTR,   RESET, 0,                    0                                       },
    {ALL,        RTS,   RESET, 0,                    0                                       },
    {ALL,        SQD,   RESET, 0,                    0                                       },
    {ALL,        SQE,   RESET, 0,                    0                                       },
    {ALL,        ERR,   RESET, 0,                    0                                       },
    {ALL,        INIT,  ERR,   0,                    0                                       },
    {ALL,        RTR,   ERR,   0,                    0                                       },
    {ALL,        RTS,   ERR,   0,                    0                                       },
    {ALL,        SQD,   ERR,   0,                    0                                       },
    {ALL,        SQE,   ERR,   0,                    0                                       },
    {ALL,        ERR,   ERR,   0,                    0                                       },

    {CONN,       RESET, INIT,  PKEY | PORT | ACCESS, 0                                       },
    {T(UD),      RESET, INIT,  PKEY | PORT | QKEY,   0                                       },
    {T(GSI),     RESET, INIT,  PKEY | QKEY,          0                                       },

    {CONN,       INIT,  INIT,  0,                    PKEY | PORT | ACCESS                    },
    {T(UD),      INIT,  INIT,  0,                    PKEY | PORT | QKEY                      },
    {T(GSI),     INIT,  INIT,  0,                    PKEY | QKEY                             },

    {RESP,       INIT,  RTR,   PEER | DEST_RD | RNR, RTR_OPT                                 },
 /* A half of an XRC connection does not mind what only the other half needs: perftest gives all.
  */
    {T(UC),      INIT,  RTR,   PEER,                 RTR_OPT                                 },
    {T(XRC_INI), INIT,  RTR,   PEER,                 RTR_OPT | DEST_RD | RNR                 },
    {DGRAM,      INIT,  RTR,   0,                    PKEY | QKEY                             },

    {T(RC),      RTR,   RTS,   SQ_PSN | REQUEST,     RTS_OPT | RNR | RATE                    },
    {T(XRC_INI), RTR,   RTS,   SQ_PSN | REQUEST,     RTS_OPT | RATE                          },
    {T(XRC_TGT), RTR,   RTS,   SQ_PSN | TIMEOUT,     RTS_OPT | RNR | RETRY | RD              },
    {T(UC),      RTR,   RTS,   SQ_PSN,               RTS_OPT | RATE                          },
    {DGRAM,      RTR,   RTS,   SQ_PSN,               CUR | QKEY | RATE                       },

    {T(RC),      RTS,   RTS,   0,                    RTS_OPT | RNR | RATE                    },
    {T(XRC_TGT), RTS,   RTS,   0,                    RTS_OPT | RNR                           },
    {NORESP,     RTS,   RTS,   0,                    RTS_OPT | RATE                          },
    {DGRAM,      RTS,   RTS,   0,                    CUR | QKEY | RATE                       },

    {ALL,        RTS,   SQD,   0,                    NOTIFY                                  },

    {T(RC),      SQD,   RTS,   0,                    RTS_OPT | RNR | RATE                    },
    {T(XRC_TGT), SQD,   RTS,   0,                    RTS_OPT | RNR                           },
    {NORESP,     SQD,   RTS,   0,                    RTS_OPT | RATE                          },
    {DGRAM,      SQD,   RTS,   0,                    CUR | QKEY | RATE                       },

    {T(RC),      SQD,   SQD,   0,                    SQD_RC | RATE                           },
    {T(XRC_INI), SQD,   SQD,   0,                    SQD_OPT | PORT | REQUEST | RATE         },
    {T(XRC_TGT), SQD,   SQD,   0,                    SQD_OPT | PORT | TIMEOUT | DEST_RD | RNR},
    {T(UC),      SQD,   SQD,   0,                    SQD_OPT | RATE                          },
    {DGRAM,      SQD,   SQD,   0,                    PKEY | QKEY | RATE                      },

 /* SQE: the send queue alone has failed; a reliable QP goes to ERR instead. */
    {T(UC),      SQE,   RTS,   0,                    CUR | ACCESS                            },
    {DGRAM,      SQE,   RTS,   0,                    CUR | QKEY                              },
};

const struct qp_transition *qp_table_find(enum qp_type type, enum qp_state from, enum qp_state to)
{
    for (size_t i = 0; i < sizeof(transition) / sizeof(transition[0]); i++) {
        const struct qp_transition *t = &transition[i];

        if ((t->types & 1u << type) && t->from == from && t->to == to)
            return t;
    }
    return NULL;
}

bool qp_table_allows(enum qp_type type, enum qp_state from, enum qp_state to, unsigned mask)
{
    const struct qp_transition *t = qp_table_find(type, from, to);

    if (t == NULL || (mask & t->required) != t->required)
        return false;
    return (mask & ~(t->required | t->optional | QP_ATTR_STATE)) == 0;
}
