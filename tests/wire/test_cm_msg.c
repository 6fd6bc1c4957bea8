/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cm_msg.c: where the fields of CM messages lie, bit by bit, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "wire/cm_msg.h"

enum { BODY = MAD_HEADER_BYTES, BODY_BYTES = MAD_BYTES - MAD_HEADER_BYTES };

static void begin(uint8_t mad[MAD_BYTES], unsigned attribute)
{
    memset(mad, 0, MAD_BYTES);
    mad[0] = 1;
    mad[1] = 7;
    mad[2] = 2;
    mad[3] = 3;
    put_be16(mad + 16, (uint16_t)attribute);
}

/* Bits that are no reserved ones, counted from the specification's tables (and the vendor of ECE);
 * IBA 12.6 */
static const struct {
    unsigned attribute;
    const char *name;
    unsigned bits, private_at, private_bytes;
} messages[] = {
    {0x10, "REQ",      1792, 140, 92 },
    {0x11, "MRA",      1847, 10,  222},
    {0x12, "REJ",      1849, 84,  148},
    {0x13, "REP",      1852, 36,  196},
    {0x14, "RTU",      1856, 8,   224},
    {0x15, "DREQ",     1848, 12,  220},
    {0x16, "DREP",     1856, 8,   224},
    {0x17, "SIDR_REQ", 1840, 16,  216},
    {0x18, "SIDR_REP", 1856, 96,  136},
    {0x19, "LAP",      1777, 64,  168},
    {0x1a, "APR",      1840, 84,  148},
};

static void cm_msg_parse__every_bit_comes_back_or_is_reserved(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof(messages) / sizeof(messages[0]); m++) {
        unsigned kept = 0;
        for (unsigned bit = 0; bit < BODY_BYTES * 8; bit++) {
            static const uint8_t zeros[BODY_BYTES];
            uint8_t mad[MAD_BYTES], built[MAD_BYTES];
            struct cm_msg msg;
            begin(mad, messages[m].attribute);
            mad[BODY + bit / 8] = (uint8_t)(0x80 >> bit % 8);
            cm_msg_parse(mad, &msg);
            memset(built, 0xee, sizeof(built));
            cm_msg_build(&msg, built);
            if (memcmp(built + BODY, zeros, BODY_BYTES) == 0)
                continue;
            kept++;
            assert_memory_equal(built, mad, MAD_BYTES);
        }
        assert_int_equal(kept, messages[m].bits);
        assert_string_equal(cm_msg_attribute_name(messages[m].attribute), messages[m].name);
        assert_int_equal(cm_msg_private_bytes(messages[m].attribute), messages[m].private_bytes);
        assert_int_equal(messages[m].private_at + messages[m].private_bytes, BODY_BYTES);
    }
    assert_string_equal(cm_msg_attribute_name(0x0f), "?");
    assert_string_equal(cm_msg_attribute_name(0x1b), "?");
    assert_int_equal(cm_msg_private_bytes(0x1b), 0);
}

/* One field at a time: its bits in the body, and the value that they make. */
#define VALUE(name, expression)                                                                    \
    static uint64_t name(const struct cm_msg *m)                                                   \
    {                                                                                              \
        return expression;                                                                         \
    }
VALUE(req_local, m->req.local_comm_id)
VALUE(req_vendor, m->req.ece_vendor_id)
VALUE(req_service, m->req.service_id)
VALUE(req_guid, m->req.local_ca_guid)
VALUE(req_qkey, m->req.local_qkey)
VALUE(req_qpn, m->req.local_qpn)
VALUE(req_resources, m->req.responder_resources)
VALUE(req_depth, m->req.initiator_depth)
VALUE(req_remote_timeout, m->req.remote_cm_response_timeout)
VALUE(req_transport, m->req.transport)
VALUE(req_flow_control, m->req.flow_control)
VALUE(req_psn, m->req.starting_psn)
VALUE(req_local_timeout, m->req.local_cm_response_timeout)
VALUE(req_retry, m->req.retry_count)
VALUE(req_pkey, m->req.pkey)
VALUE(req_mtu, m->req.path_mtu)
VALUE(req_rnr, m->req.rnr_retry_count)
VALUE(req_cm_retries, m->req.max_cm_retries)
VALUE(req_extended, m->req.transport_extended)
VALUE(req_flow_label, m->req.primary.flow_label)
VALUE(req_rate, m->req.primary.packet_rate)
VALUE(req_hops, m->req.primary.hop_limit)
VALUE(req_sl, m->req.primary.sl)
VALUE(req_subnet, m->req.primary.subnet_local)
VALUE(req_ack, m->req.primary.local_ack_timeout)
VALUE(req_alt_ack, m->req.alternate.local_ack_timeout)
VALUE(mra_about, m->mra.about)
VALUE(mra_timeout, m->mra.service_timeout)
VALUE(rej_about, m->rej.about)
VALUE(rej_info_bytes, m->rej.info_bytes)
VALUE(rej_reason, m->rej.reason)
VALUE(rep_remote, m->rep.remote_comm_id)
VALUE(rep_qpn, m->rep.local_qpn)
VALUE(req_xrc, cm_msg_req_is_xrc(&m->req))
VALUE(rep_vendor, m->rep.ece_vendor_id)
VALUE(rep_psn, m->rep.starting_psn)
VALUE(rep_ack_delay, m->rep.target_ack_delay)
VALUE(rep_failover, m->rep.failover_accepted)
VALUE(rep_rnr, m->rep.rnr_retry_count)
VALUE(dreq_qpn, m->dreq.remote_qpn)
VALUE(sidr_pkey, m->sidr_req.pkey)
VALUE(sidr_status, m->sidr_rep.status)
VALUE(sidr_qpn, m->sidr_rep.qpn)
VALUE(sidr_service, m->sidr_rep.service_id)
VALUE(sidr_qkey, m->sidr_rep.qkey)
VALUE(lap_qpn, m->lap.remote_qpn)
VALUE(lap_timeout, m->lap.remote_cm_response_timeout)
VALUE(lap_ack, m->lap.alternate.local_ack_timeout)
VALUE(apr_info_bytes, m->apr.info_bytes)
VALUE(apr_status, m->apr.status)

static void cm_msg_parse__fields_lie_where_the_tables_say(void **state)
{
    (void)state;
    static const struct {
        unsigned attribute, at, bytes;
        uint64_t wire; /* big-endian, so many bytes */
        uint64_t (*get)(const struct cm_msg *);
        uint64_t value;
    } rows[] = {
        {CM_REQ,      0,   4, 0x81020304,         req_local,          0x81020304        },
        {CM_REQ,      4,   4, 0xff810203,         req_vendor,         0x810203          },
        {CM_REQ,      8,   8, 0x8102030405060708, req_service,        0x8102030405060708},
        {CM_REQ,      16,  8, 0x8102030405060708, req_guid,           0x8102030405060708},
        {CM_REQ,      28,  4, 0x80010000,         req_qkey,           0x80010000        },
        {CM_REQ,      32,  4, 0x81020304,         req_qpn,            0x810203          },
        {CM_REQ,      32,  4, 0x81020304,         req_resources,      4                 },
        {CM_REQ,      36,  4, 0x81020304,         req_depth,          4                 },
        {CM_REQ,      43,  1, 0xa0,               req_remote_timeout, 20                },
        {CM_REQ,      43,  1, 0xfa,               req_transport,      1                 },
        {CM_REQ,      43,  1, 0x01,               req_flow_control,   1                 },
        {CM_REQ,      44,  4, 0xebab65a7,         req_psn,            0xebab65          },
        {CM_REQ,      47,  1, 0xa7,               req_local_timeout,  20                },
        {CM_REQ,      47,  1, 0xa7,               req_retry,          7                 },
        {CM_REQ,      48,  2, 0xfffe,             req_pkey,           0xfffe            },
        {CM_REQ,      50,  1, 0x37,               req_mtu,            3                 },
        {CM_REQ,      50,  1, 0x3e,               req_rnr,            6                 },
        {CM_REQ,      51,  1, 0xd7,               req_cm_retries,     13                },
        {CM_REQ,      51,  1, 0xf1,               req_extended,       1                 },
        {CM_REQ,      88,  4, 0xfae11fff,         req_flow_label,     0xfae11           },
        {CM_REQ,      91,  1, 0xd2,               req_rate,           0x12              },
        {CM_REQ,      93,  1, 0x40,               req_hops,           64                },
        {CM_REQ,      94,  1, 0xb7,               req_sl,             11                },
        {CM_REQ,      94,  1, 0x08,               req_subnet,         1                 },
        {CM_REQ,      95,  1, 0x98,               req_ack,            19                },
        {CM_REQ,      139, 1, 0x90,               req_alt_ack,        18                },
        {CM_MRA,      8,   1, 0x7f,               mra_about,          1                 },
        {CM_MRA,      9,   1, 0xc7,               mra_timeout,        24                },
        {CM_REJ,      8,   1, 0xbf,               rej_about,          2                 },
        {CM_REJ,      9,   1, 0x91,               rej_info_bytes,     72                },
        {CM_REJ,      10,  2, 0x0008,             rej_reason,         8                 },
        {CM_REP,      4,   4, 0x81020304,         rep_remote,         0x81020304        },
        {CM_REP,      12,  4, 0x81020304,         rep_qpn,            0x810203          },
        {CM_REP,      15,  1, 0xab,               rep_vendor,         0xab0000          },
        {CM_REP,      19,  1, 0xab,               rep_vendor,         0x00ab00          },
        {CM_REP,      23,  1, 0xab,               rep_vendor,         0x0000ab          },
        {CM_REP,      20,  4, 0x81020304,         rep_psn,            0x810203          },
        {CM_REP,      26,  1, 0x7f,               rep_ack_delay,      15                },
        {CM_REP,      26,  1, 0xfc,               rep_failover,       2                 },
        {CM_REP,      27,  1, 0xe0,               rep_rnr,            7                 },
        {CM_DREQ,     8,   4, 0x81020304,         dreq_qpn,           0x810203          },
        {CM_SIDR_REQ, 4,   2, 0xffff,             sidr_pkey,          0xffff            },
        {CM_SIDR_REP, 4,   1, 3,                  sidr_status,        3                 },
        {CM_SIDR_REP, 8,   4, 0x81020304,         sidr_qpn,           0x810203          },
        {CM_SIDR_REP, 12,  8, 0x8102030405060708, sidr_service,       0x8102030405060708},
        {CM_SIDR_REP, 20,  4, 0x01234567,         sidr_qkey,          0x01234567        },
        {CM_LAP,      12,  4, 0x81020304,         lap_qpn,            0x810203          },
        {CM_LAP,      15,  1, 0xa7,               lap_timeout,        20                },
        {CM_LAP,      63,  1, 0x98,               lap_ack,            19                },
        {CM_APR,      8,   1, 72,                 apr_info_bytes,     72                },
        {CM_APR,      9,   1, 2,                  apr_status,         2                 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t mad[MAD_BYTES], wire[8];
        struct cm_msg msg;
        begin(mad, rows[i].attribute);
        put_be64(wire, rows[i].wire);
        memcpy(mad + BODY + rows[i].at, wire + 8 - rows[i].bytes, rows[i].bytes);
        cm_msg_parse(mad, &msg);
        assert_true(rows[i].get(&msg) == rows[i].value);
    }
}

static void cm_msg_check__verdicts(void **state)
{
    (void)state;
    static const struct {
        unsigned attribute;
        uint32_t local, remote;
        uint8_t b5, b8, b9; /* bytes 5, 8 and 9 of the body, where not 0 */
        enum mad_verdict verdict;
    } rows[] = {
        {CM_REQ,      1, 0, 0,  0,    0,    MAD_OK           },
        {CM_REP,      1, 2, 0,  0,    0,    MAD_OK           },
        {CM_MRA,      1, 2, 0,  0x80, 0xf8, MAD_OK           },
        {CM_REJ,      0, 2, 0,  0,    0,    MAD_OK           },
        {CM_REJ,      1, 0, 0,  0x80, 0,    MAD_OK           },
        {CM_REJ,      1, 2, 0,  0,    144,  MAD_OK           },
        {CM_SIDR_REQ, 1, 0, 0,  0,    0,    MAD_OK           },
        {CM_SIDR_REP, 1, 0, 72, 0,    0,    MAD_OK           },
        {CM_DREQ,     1, 2, 0,  0,    0,    MAD_OK           },
        {CM_APR,      1, 2, 0,  72,   0,    MAD_OK           },
        {0x01,        1, 2, 0,  0,    0,    MAD_BAD_ATTRIBUTE}, /* ClassPortInfo */
        {0x0f,        1, 2, 0,  0,    0,    MAD_BAD_ATTRIBUTE},
        {0x1b,        1, 2, 0,  0,    0,    MAD_BAD_ATTRIBUTE},
        {0x110,       1, 2, 0,  0,    0,    MAD_BAD_ATTRIBUTE},
        {CM_REQ,      0, 2, 0,  0,    0,    MAD_BAD_FIELD    },
        {CM_REP,      0, 2, 0,  0,    0,    MAD_BAD_FIELD    },
        {CM_REP,      1, 0, 0,  0,    0,    MAD_BAD_FIELD    },
        {CM_RTU,      1, 0, 0,  0,    0,    MAD_BAD_FIELD    },
        {CM_DREQ,     0, 2, 0,  0,    0,    MAD_BAD_FIELD    },
        {CM_DREP,     0, 2, 0,  0,    0,    MAD_BAD_FIELD    },
        {CM_MRA,      1, 2, 0,  0xc0, 0,    MAD_BAD_FIELD    },
        {CM_MRA,      0, 2, 0,  0,    0,    MAD_BAD_FIELD    },
        {CM_REJ,      0, 0, 0,  0,    0,    MAD_BAD_FIELD    },
        {CM_REJ,      1, 2, 0,  0xc0, 0,    MAD_BAD_FIELD    },
        {CM_REJ,      1, 2, 0,  0,    146,  MAD_BAD_FIELD    },
        {CM_SIDR_REQ, 0, 0, 0,  0,    0,    MAD_BAD_FIELD    },
        {CM_SIDR_REP, 0, 0, 0,  0,    0,    MAD_BAD_FIELD    },
        {CM_SIDR_REP, 1, 0, 73, 0,    0,    MAD_BAD_FIELD    },
        {CM_LAP,      1, 0, 0,  0,    0,    MAD_BAD_FIELD    },
        {CM_APR,      1, 2, 0,  73,   0,    MAD_BAD_FIELD    },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t mad[MAD_BYTES];
        begin(mad, rows[i].attribute);
        put_be32(mad + BODY, rows[i].local);
        put_be32(mad + BODY + 4, rows[i].remote);
        mad[BODY + 5] |= rows[i].b5;
        mad[BODY + 8] = rows[i].b8;
        mad[BODY + 9] = rows[i].b9;
        assert_int_equal(cm_msg_check(mad, sizeof(mad)), rows[i].verdict);
        assert_int_equal(cm_msg_check(mad, sizeof(mad) - 1), MAD_BAD_LENGTH);
        mad[1] = 4;
        assert_int_equal(cm_msg_check(mad, sizeof(mad)), MAD_NOT_CM);
    }
}

static void cm_msg_comm_ids__by_message(void **state)
{
    (void)state;
    static const struct {
        unsigned attribute;
        uint32_t local, remote;
    } rows[] = {
        {CM_REQ,      0x11, 0   },
        {CM_MRA,      0x11, 0x22},
        {CM_REJ,      0x11, 0x22},
        {CM_REP,      0x11, 0x22},
        {CM_RTU,      0x11, 0x22},
        {CM_DREQ,     0x11, 0x22},
        {CM_DREP,     0x11, 0x22},
        {CM_SIDR_REQ, 0x11, 0   },
        {CM_SIDR_REP, 0,    0x11},
        {CM_LAP,      0x11, 0x22},
        {CM_APR,      0x11, 0x22},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t mad[MAD_BYTES];
        struct cm_msg msg;
        begin(mad, rows[i].attribute);
        put_be32(mad + BODY, 0x11);
        put_be32(mad + BODY + 4, 0x22);
        cm_msg_parse(mad, &msg);
        assert_int_equal(cm_msg_local_comm_id(&msg), rows[i].local);
        assert_int_equal(cm_msg_remote_comm_id(&msg), rows[i].remote);
    }
}

/* The options of ECE go where the kernel's are, in the header. */
static void cm_msg_ece__options_are_the_modifier(void **state)
{
    (void)state;
    for (unsigned attribute = CM_REQ; attribute <= CM_APR; attribute++) {
        uint8_t mad[MAD_BYTES], built[MAD_BYTES];
        struct cm_msg msg;
        begin(mad, attribute);
        put_be32(mad + 20, 0x81020304);
        cm_msg_parse(mad, &msg);
        cm_msg_build(&msg, built);
        assert_memory_equal(built, mad, MAD_BYTES);
        uint32_t options = attribute == CM_REQ        ? msg.req.ece_options
                           : attribute == CM_REP      ? msg.rep.ece_options
                           : attribute == CM_SIDR_REP ? msg.sidr_rep.ece_options
                                                      : 0x81020304;
        assert_int_equal(options, 0x81020304);
    }
}

/* Transport service type 3 with extended transport type 1, and nothing else. */
static void cm_msg_req_is_xrc__by_two_fields(void **state)
{
    (void)state;
    for (unsigned transport = 0; transport < 4; transport++) {
        for (unsigned extended = 0; extended < 8; extended++) {
            uint8_t mad[MAD_BYTES];
            struct cm_msg msg;
            begin(mad, CM_REQ);
            mad[BODY + 43] = (uint8_t)(0xf9 | transport << 1);
            mad[BODY + 51] = (uint8_t)(0xf8 | extended);
            cm_msg_parse(mad, &msg);
            assert_int_equal(req_xrc(&msg), transport == 3 && extended == 1);
        }
    }
}

/* An XRC's QPN lies where EECNs do, behind it the SRQ flag. */
static void cm_msg_rep_qpn__of_either_kind(void **state)
{
    (void)state;
    static const struct {
        uint8_t at;
        uint32_t rc, xrc;
    } rows[] = {
        {8,  0,        0       },
        {12, 0x810203, 0       },
        {16, 0,        0x810203},
        {20, 0,        0       },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t mad[MAD_BYTES];
        struct cm_msg msg;
        begin(mad, CM_REP);
        put_be32(mad + BODY + rows[i].at, 0x81020304);
        mad[BODY + 27] = i % 2 == 0 ? 0xef : 0x10;
        cm_msg_parse(mad, &msg);
        assert_int_equal(cm_msg_rep_qpn(&msg.rep, false), rows[i].rc);
        assert_int_equal(cm_msg_rep_qpn(&msg.rep, true), rows[i].xrc);
        assert_int_equal(msg.rep.srq, i % 2);
    }
}

static void cm_msg_reason_name__known_and_unknown(void **state)
{
    (void)state;
    for (unsigned reason = 1; reason <= 33; reason++)
        assert_string_not_equal(cm_msg_reason_name(reason), "unknown reason");
    assert_string_equal(cm_msg_reason_name(8), "invalid service ID");
    assert_string_equal(cm_msg_reason_name(28), "consumer reject");
    assert_string_equal(cm_msg_reason_name(0), "unknown reason");
    assert_string_equal(cm_msg_reason_name(34), "unknown reason");
    assert_string_equal(cm_msg_reason_name(65535), "unknown reason");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(cm_msg_parse__every_bit_comes_back_or_is_reserved),
        cmocka_unit_test(cm_msg_parse__fields_lie_where_the_tables_say),
        cmocka_unit_test(cm_msg_check__verdicts),
        cmocka_unit_test(cm_msg_comm_ids__by_message),
        cmocka_unit_test(cm_msg_ece__options_are_the_modifier),
        cmocka_unit_test(cm_msg_req_is_xrc__by_two_fields),
        cmocka_unit_test(cm_msg_rep_qpn__of_either_kind),
        cmocka_unit_test(cm_msg_reason_name__known_and_unknown),
    };
    return cmocka_run_group_tests_name("cm_msg", tests, NULL, NULL);
}
