/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_record.c: fields as YAML: groups, lists, any text; and that libyaml reads it as it was.
 */
#include "scenario/record.h"

#include <yaml.h>

#include "bench.h"

static void put__groups_and_lists(void **state)
{
    (void)state;
    struct record r;
    assert_true(record_begin(&r));
    record_put(&r, "a", 0, "1");
    record_put(&r, "b.c", 0, "2");
    record_put(&r, "b.c", 0, "3"); /* it is there */
    record_put(&r, "b.cd", 0, "4");
    record_put(&r, "b.d.e", 0, "[5, 6]");
    record_put(&r, "b.f", 0, "7");
    record_put(&r, "w.0.op", 1 << 1, "x");
    record_put(&r, "w.0.k", 1 << 1, "y");
    record_put(&r, "w.1.op", 1 << 1, "z");
    record_put(&r, "w.10.op", 1 << 1, "t");
    record_put(&r, "v.l.0", 1 << 2, "p");
    record_put(&r, "v.l.1", 1 << 2, "q");
    char *text = record_end(&r, true);
    assert_string_equal(text, "a: 1\nb:\n  c: 2\n  cd: 4\n  d:\n    e: [5, 6]\n  f: 7\n"
                              "w:\n  - op: x\n    k: y\n  - op: z\n  - op: t\n"
                              "v:\n  l:\n    - p\n    - q\n");
    free(text);
}

/* The one scalar of a document. */
static void read_back(const char *yaml, char *out, size_t bytes)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    assert_int_equal(yaml_parser_initialize(&parser), 1);
    yaml_parser_set_input_string(&parser, (const unsigned char *)yaml, strlen(yaml));
    if (yaml_parser_load(&parser, &doc) == 0)
        fail_msg("%s in '%s'", parser.problem, yaml);
    const yaml_node_t *root = yaml_document_get_root_node(&doc);
    assert_int_equal(root->type, YAML_MAPPING_NODE);
    const yaml_node_t *value =
        yaml_document_get_node(&doc, root->data.mapping.pairs.start[0].value);
    snprintf(out, bytes, "%s", (const char *)value->data.scalar.value);
    yaml_document_delete(&doc);
    yaml_parser_delete(&parser);
}

static void put_text__comes_back(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "a",
        "null",
        "1: 2 # 3",
        "- 'x' \"y\" \\n",
        "%TAG {",
        "  spaces  ",
        "two\nlines\r",
        "tab\t\x01\x7f",
        "Z\xc3\xbcrich",
        "\xc2\x85",
        "\xc2\xa0",
        "\xe2\x80\xa8x",
        "\xef\xbb\xbf bom",
        "\xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf",
        "\xef\xbf\xbe",
        "\xee\x80\x80",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct record r;
        char back[64];
        assert_true(record_begin(&r));
        assert_true(record_put_text(&r, "k", 0, rows[i]));
        char *text = record_end(&r, true);
        read_back(text, back, sizeof(back));
        assert_string_equal(back, rows[i]);
        free(text);
    }
}

/* What is no UTF-8 is refused, or made question marks. */
static void put_text__refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sane;
    } rows[] = {
        {"\x80",             "?"         },
        {"a\xff",            "a?"        },
        {"\xc3",             "?"         },
        {"\xc3(",            "?("        },
        {"\xc0\xaf",         "??"        },
        {"\xe0\x80\x80",     "???"       },
        {"\xed\xa0\x80",     "???"       },
        {"\xf4\x90\x80\x80", "????"      },
        {"\xf5\x80\x80\x80", "????"      },
        {"\xc3\xbc\xe2\x82", "\xc3\xbc??"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct record r;
        char text[16];
        assert_true(record_begin(&r));
        assert_false(record_put_text(&r, "k", 0, rows[i].text));
        assert_null(record_end(&r, false));
        snprintf(text, sizeof(text), "%s", rows[i].text);
        record_sane(text);
        assert_string_equal(text, rows[i].sane);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put__groups_and_lists),
        cmocka_unit_test(put_text__comes_back),
        cmocka_unit_test(put_text__refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
