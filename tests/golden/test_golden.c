/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_golden.c: every packet of the captures in rxe/ through the codec and back. GOLDEN_DIR is the
 * folder of this file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../fuzz/wire_props.h"
#include "pcap_read.h"
#include "wire/aeth.h"

enum { MAX_CAPTURES = 80, MAX_LINE = 4096, EXPECTED_CAPTURES = 58 };

struct capture {
    char name[48];
    char sequence[MAX_LINE];
};

static struct capture captures[MAX_CAPTURES];
static int capture_count;

/* Names of the sequence list against opcodes; written from the specification's table of opcodes,
 * not from src/wire/opcode.c. */
static const struct {
    uint8_t opcode;
    const char *name;
} opcode_names[] = {
    {0x00, "RC_SEND_FIRST"      },
    {0x01, "RC_SEND_MIDDLE"     },
    {0x02, "RC_SEND_LAST"       },
    {0x03, "RC_SEND_LAST_IMM"   },
    {0x04, "RC_SEND_ONLY"       },
    {0x05, "RC_SEND_ONLY_IMM"   },
    {0x06, "RC_WRITE_FIRST"     },
    {0x07, "RC_WRITE_MIDDLE"    },
    {0x08, "RC_WRITE_LAST"      },
    {0x09, "RC_WRITE_LAST_IMM"  },
    {0x0a, "RC_WRITE_ONLY"      },
    {0x0b, "RC_WRITE_ONLY_IMM"  },
    {0x0c, "RC_READ_REQ"        },
    {0x0d, "RC_READ_RESP_FIRST" },
    {0x0e, "RC_READ_RESP_MIDDLE"},
    {0x0f, "RC_READ_RESP_LAST"  },
    {0x10, "RC_READ_RESP_ONLY"  },
    {0x11, "RC_ACK"             },
    {0x12, "RC_ATOMIC_ACK"      },
    {0x13, "RC_CMP_SWAP"        },
    {0x14, "RC_FETCH_ADD"       },
    {0x17, "RC_SEND_ONLY_INV"   },
    {0x1d, "RC_ATOMIC_WRITE"    },
    {0x20, "UC_SEND_FIRST"      },
    {0x21, "UC_SEND_MIDDLE"     },
    {0x22, "UC_SEND_LAST"       },
    {0x23, "UC_SEND_LAST_IMM"   },
    {0x24, "UC_SEND_ONLY"       },
    {0x25, "UC_SEND_ONLY_IMM"   },
    {0x26, "UC_WRITE_FIRST"     },
    {0x27, "UC_WRITE_MIDDLE"    },
    {0x28, "UC_WRITE_LAST"      },
    {0x29, "UC_WRITE_LAST_IMM"  },
    {0x2a, "UC_WRITE_ONLY"      },
    {0x2b, "UC_WRITE_ONLY_IMM"  },
    {0x64, "UD_SEND_ONLY"       },
    {0x65, "UD_SEND_ONLY_IMM"   },
};

static const char *ack_name(uint8_t syndrome)
{
    static const char *const naks[] = {"NAK_SEQ", "NAK_INVALID_REQ", "NAK_ACCESS", "NAK_OP_ERR"};
    if (aeth_kind(syndrome) == AETH_ACK)
        return "RC_ACK";
    if (aeth_kind(syndrome) == AETH_RNR_NAK)
        return "RNR_NAK";
    assert_int_equal(aeth_kind(syndrome), AETH_NAK);
    assert_true(aeth_value(syndrome) < 4);
    return naks[aeth_value(syndrome)];
}

static const char *mad_name(const uint8_t *mad)
{
    static const char *const names[] = {"MAD_REQ",  "MAD_MRA",      "MAD_REJ",
                                        "MAD_REP",  "MAD_RTU",      "MAD_DREQ",
                                        "MAD_DREP", "MAD_SIDR_REQ", "MAD_SIDR_REP"};
    unsigned attribute = get_be16(mad + 16) - 0x10u;
    assert_true(attribute < sizeof(names) / sizeof(names[0]));
    return names[attribute];
}

static const char *packet_name(const struct roce_headers *h, const uint8_t *payload, uint32_t n)
{
    if (h->bth.opcode == 0x64 && h->bth.dest_qp == 1 && n == 256)
        return mad_name(payload);
    if (h->bth.opcode == 0x11)
        return ack_name(h->aeth.syndrome);
    for (size_t i = 0; i < sizeof(opcode_names) / sizeof(opcode_names[0]); i++)
        if (opcode_names[i].opcode == h->bth.opcode)
            return opcode_names[i].name;
    fail_msg("opcode 0x%02x is in no capture", h->bth.opcode);
    return NULL;
}

struct packet {
    const uint8_t *frame;
    size_t frame_bytes;
    struct net_headers net;
    const uint8_t *bytes; /* BTH .. ICRC */
    size_t n;
    struct roce_headers h;
    const uint8_t *payload;
    uint32_t payload_bytes;
};

/* False for frames that are not RoCE: the multicast capture has IGMP in it. */
static bool packet_parse(struct packet *p)
{
    enum net_verdict verdict = net_parse(p->frame, p->frame_bytes, &p->net, &p->bytes, &p->n);
    if (verdict == NET_NOT_UDP || verdict == NET_NOT_IP)
        return false;
    assert_int_equal(verdict, NET_OK);
    assert_int_equal(p->net.udp_dport, ROCE_UDP_PORT);
    assert_int_equal(roce_check(p->bytes, p->n), ROCE_OK);
    roce_parse(p->bytes, p->n, &p->h, &p->payload, &p->payload_bytes);
    return true;
}

static void packet_check_icrc(const struct packet *p)
{
    struct icrc_pseudo ip = {0}, hidden;
    net_icrc_pseudo(&p->net, &ip);
    assert_true(icrc_check(&ip, p->bytes, p->n));
    for (int df = 0; df < 2; df++) {
        hidden = ip;
        hidden.ip_id = 0;
        hidden.dont_fragment = df != 0;
        assert_true(icrc_check_unknown_id(&hidden, p->bytes, p->n));
        if (!ip.v6) {
            assert_int_equal(hidden.ip_id, ip.ip_id);
            assert_int_equal(hidden.dont_fragment, ip.dont_fragment);
        }
    }
}

/* From the parsed structs alone back to the frame. */
static void packet_check_rebuild(const struct packet *p)
{
    uint8_t built[ROCE_MAX_PACKET_BYTES], head[NET_MAX_HEADER_BYTES];
    struct icrc_pseudo ip;
    net_icrc_pseudo(&p->net, &ip);
    size_t n = roce_build_headers(&p->h, built);
    uint32_t state = icrc_begin(&ip, built);
    state = icrc_update(state, built + BTH_BYTES, n - BTH_BYTES);
    state = icrc_copy(state, built + n, p->payload, p->payload_bytes);
    n += p->payload_bytes;
    static const uint8_t zeros[3];
    uint8_t pad = roce_pad(p->payload_bytes);
    state = icrc_copy(state, built + n, zeros, pad);
    n += pad;
    put_le32(built + n, icrc_end(state));
    n += ICRC_BYTES;
    assert_int_equal(n, p->n);
    assert_memory_equal(built, p->bytes, n);
    size_t head_bytes = net_build(&p->net, built, n, head);
    assert_int_equal(head_bytes, p->bytes - p->frame);
    assert_memory_equal(head, p->frame, head_bytes);
    assert_int_equal(roce_packet_bytes(p->h.bth.opcode, p->payload_bytes), n);
}

static void packet_check_print(const struct packet *p)
{
    char line[PRINT_LINE_BYTES];
    print_frame(line, sizeof(line), p->frame, p->frame_bytes);
    assert_non_null(strstr(line, opcode_info(p->h.bth.opcode)->name));
    assert_non_null(strstr(line, " icrc ok"));
}

/* Next name of a sequence with its repetitions counted down; NULL at the end. */
struct cursor {
    const char *at;
    char name[32];
    int left;
};

static const char *cursor_next(struct cursor *c)
{
    if (c->left == 0) {
        int used = 0;
        if (sscanf(c->at, " %31[A-Z_]%n", c->name, &used) != 1)
            return NULL;
        c->at += used;
        c->left = *c->at == '*' ? (int)strtol(c->at + 1, (char **)&c->at, 10) : 1;
    }
    c->left--;
    return c->name;
}

static void golden__capture(void **state)
{
    const struct capture *capture = *state;
    char path[512];
    snprintf(path, sizeof(path), "%s/rxe/%s.pcap", GOLDEN_DIR, capture->name);
    struct pcap pcap = pcap_open(path);
    struct cursor cursor = {.at = capture->sequence};
    struct packet p;
    int packets = 0;
    while ((p.frame = pcap_next(&pcap, &p.frame_bytes, path)) != NULL) {
        if (!packet_parse(&p))
            continue;
        packets++;
        const char *expected = cursor_next(&cursor);
        assert_non_null(expected);
        assert_string_equal(packet_name(&p.h, p.payload, p.payload_bytes), expected);
        packet_check_icrc(&p);
        packet_check_rebuild(&p);
        packet_check_print(&p);
        assert_int_equal(props_net(p.frame, p.frame_bytes), NET_OK);
    }
    assert_null(cursor_next(&cursor));
    assert_true(packets >= 2);
    pcap_close(&pcap);
}

/* What the sequence names do not show, for a few captures by hand: values of a header's fields. */
static void parse_nth(const char *name, int nth, struct packet *p, struct pcap *pcap)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/rxe/%s.pcap", GOLDEN_DIR, name);
    *pcap = pcap_open(path);
    do {
        p->frame = pcap_next(pcap, &p->frame_bytes, path);
        assert_non_null(p->frame);
    } while (!packet_parse(p) || nth-- > 0);
}

static void golden__field_values(void **state)
{
    (void)state;
    struct packet p;
    struct pcap pcap;
    parse_nth("rc-atomic", 0, &p, &pcap);
    assert_int_equal(p.h.bth.dest_qp, 0x14);
    pcap_close(&pcap);
    parse_nth("rc-atomic", 1, &p, &pcap);
    assert_true(p.h.atomic_ack == 0x1000000000000001);
    pcap_close(&pcap);
    parse_nth("rc-psnwrap", 0, &p, &pcap);
    assert_int_equal(p.h.bth.psn.v, 0xfffffd);
    pcap_close(&pcap);
    parse_nth("rc-rnr", 1, &p, &pcap);
    assert_int_equal(aeth_value(p.h.aeth.syndrome), 28);
    pcap_close(&pcap);
    parse_nth("ud-send", 0, &p, &pcap);
    assert_int_equal(p.h.deth.qkey, 0x11111111);
    pcap_close(&pcap);
    parse_nth("rc-send-vlan", 0, &p, &pcap);
    assert_int_equal(p.net.vlan_tags, 1);
    assert_int_equal(p.net.vlan_tci[0], 3 << 13 | 100);
    pcap_close(&pcap);
    parse_nth("ib_send_lat-tclass", 0, &p, &pcap);
    assert_int_equal(p.net.tos, 106);
    pcap_close(&pcap);
    parse_nth("rc-send-mtu4096", 0, &p, &pcap);
    assert_int_equal(p.payload_bytes, 16);
    for (uint32_t i = 0; i < p.payload_bytes; i++)
        assert_int_equal(p.payload[i], i);
    pcap_close(&pcap);
}

static void read_sequences(void)
{
    char line[MAX_LINE];
    FILE *f = fopen(GOLDEN_DIR "/rxe/sequences.txt", "r");
    pcap_demand(f != NULL, "sequences.txt");
    while (fgets(line, sizeof(line), f) != NULL) {
        int used = 0;
        if (line[0] == '#' || capture_count == MAX_CAPTURES)
            continue;
        struct capture *c = &captures[capture_count];
        if (sscanf(line, "%47s %n", c->name, &used) != 1)
            continue;
        snprintf(c->sequence, sizeof(c->sequence), "%s", line + used);
        capture_count++;
    }
    fclose(f);
}

static void golden__all_captures_listed(void **state)
{
    (void)state;
    assert_int_equal(capture_count, EXPECTED_CAPTURES);
}

int main(void)
{
    static struct CMUnitTest tests[MAX_CAPTURES + 2];
    size_t n = 0;
    read_sequences();
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(golden__all_captures_listed);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(golden__field_values);
    for (int i = 0; i < capture_count; i++)
        tests[n++] = (struct CMUnitTest){
            .name = captures[i].name, .test_func = golden__capture, .initial_state = &captures[i]};
    return _cmocka_run_group_tests("golden", tests, n, NULL, NULL);
}
