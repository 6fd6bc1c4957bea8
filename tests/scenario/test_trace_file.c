/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_trace_file.c: what is written is read; a ring keeps the last; files that are none are told.
 */
#include "scenario/trace_file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

/* Every kind by name; without names arrivals are left out. */
static const struct trace_filter all = {
    .kind = {1, {0}, {FABRIC_TRACE_KINDS - 1}}
};

/* Of the scenario below: nodes 0 and 1 have a port each, node 2 has two. */
static struct fabric_trace event(uint64_t i)
{
    bool frame = i % 4 != 0;
    return (struct fabric_trace){
        .time_ps = (i << 33 | i) & ((UINT64_C(1) << 58) - 1),
        .node = (uint32_t)(i % 3),
        .port = i % 3 == 2 ? (uint32_t)(i / 3 % 2) : 0,
        .flow = i % 5 == 0 ? FABRIC_TRACE_NONE : (uint32_t)(i * 1234567 % FABRIC_MAX_FLOWS),
        .seq = (uint32_t)(i * 0x01020304),
        .value = ~(uint32_t)i,
        .bytes = (uint16_t)(i * 257 % (2 * FABRIC_MAX_FRAME_BYTES)),
        .kind = (uint8_t)(i % FABRIC_TRACE_KINDS),
        .priority = i % 9,
        .frame = frame ? i % 5 : FABRIC_TRACE_NO_FRAME,
    };
}

/* As a fabric has it, in three words. */
static void put_event(struct fabric_tracer *t, const struct fabric_trace *e)
{
    uint64_t port = e->node + e->port, frame = e->frame == FABRIC_TRACE_NO_FRAME ? 7 : e->frame;
    uint64_t *w = t->next;
    w[0] = e->time_ps | (uint64_t)e->kind << 58 | UINT64_C(1) << 63;
    w[1] = (e->flow & 0x7fffff) | port << 23 | (uint64_t)e->bytes << 42 | frame << 57 |
           (uint64_t)e->priority << 60;
    w[2] = e->seq | (uint64_t)e->value << 32;
    t->next += 3;
    t->longs++;
    if (t->next >= t->enough)
        t->full(t->arg);
}

static void scenario_of_three(struct scenario *s)
{
    scenario_init(s);
    assert_true(scenario_add_node(s, false, "a host"));
    assert_true(scenario_add_node(s, false, "h1"));
    assert_true(scenario_add_node(s, true, "s0"));
    for (uint32_t i = 0; i < 2; i++) {
        struct fabric_link link = {
            .node = {i, 2},
              .rate_bps = UINT64_C(100000000000)
        };
        assert_true(scenario_add_link(s, &link));
    }
}

static void write_events(const char *path, uint64_t bytes, const struct trace_filter *filter,
                         uint64_t n)
{
    struct scenario s;
    struct scenario_error e;
    struct trace_writer w;
    scenario_of_three(&s);
    assert_true(trace_writer_open(&w, path, bytes, filter, &s, &e));
    for (uint64_t i = 0; i < n; i++) {
        struct fabric_tracer *t = s.config.tracer;
        struct fabric_trace one = event(i);
        if ((s.config.trace_kinds >> one.kind & 1) == 0)
            continue;
        assert_true(t->next < t->enough);
        put_event(t, &one);
    }
    if (!trace_writer_close(&w, &e))
        fail_msg("%s", e.text);
    scenario_free(&s);
}

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* What is no trace, no part, or somebody's at this moment, stays. */
static void clear_left__traces_alone(void **state)
{
    (void)state;
    static const char *const stay[] = {"t",       "other.part", "short.part", ".part",
                                       "t.party", "link.part",  "folder.part"};
    struct scenario s;
    struct scenario_error e;
    struct trace_writer w;
    bench_file("");
    assert_int_equal(mkdir("left", 0777), 0);
    assert_int_equal(chdir("left"), 0);
    write_events("t", 2400, &all, 9);
    write_events("t.part", 2400, &all, 9);
    write_events(".part", 2400, &all, 9);
    write_events("t.party", 2400, &all, 9);
    write_events("odd name.part", 2400, &all, 0);
    for (int i = 1; i < 3; i++) {
        FILE *f = fopen(stay[i], "w");
        assert_non_null(f);
        fputs(i == 1 ? "somebody's own file" : "VBNA", f);
        fclose(f);
    }
    assert_int_equal(symlink("t", "link.part"), 0);
    assert_int_equal(mkdir("folder.part", 0777), 0);
    scenario_of_three(&s);
    assert_true(trace_writer_open(&w, "now", 2400, &all, &s, &e));
    assert_true(trace_clear_left("."));
    assert_false(is_there("t.part") || is_there("odd name.part"));
    assert_true(is_there("now.part"));
    assert_true(trace_writer_close(&w, &e));
    assert_true(is_there("now"));
    scenario_free(&s);
    assert_true(trace_clear_left("."));
    for (size_t i = 0; i < sizeof(stay) / sizeof(stay[0]); i++) {
        assert_true(is_there(stay[i]));
        assert_int_equal(remove(stay[i]), 0);
    }
    assert_int_equal(remove("now"), 0);
    assert_int_equal(chdir(".."), 0);
    assert_int_equal(rmdir("left"), 0);
    errno = 0;
    assert_false(trace_clear_left("left"));
    assert_int_equal(errno, ENOENT);
}

/* All, or as many as three quarters of the bytes have room for; never more bytes than that. */
static void reader__gets_the_last(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes, events;
    } rows[] =
        {
            {2400,    0    },
            {2400,    1    },
            {2400,    2    },
            {2400,    24   },
            {2400,    98   },
            {2400,    5000 }, /* wraps often */
            {72000,   2048 },
            {72000,   3000 },
            {72000,   9999 },
            {0,       7    }, /* the smallest blocks, of two events */
            {65,      1    },
            {65,      900  },
            {1 << 20, 10900}, /* one block of four */
            {1 << 20, 10917},
            {1 << 20, 10922},
            {1 << 20, 43690},
            {1 << 20, 43681},
            {1 << 20, 70000},
            {1 << 24, 70000},
    };
    bench_file("");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trace_reader r;
        struct scenario_error e;
        struct fabric_trace got;
        struct stat st;
        write_events("trace", rows[i].bytes, &all, rows[i].events);
        assert_int_equal(stat("trace", &st), 0);
        if (rows[i].bytes >= 256)
            assert_in_range(st.st_size, 0, rows[i].bytes + 256);
        if (!trace_reader_open(&r, "trace", &e))
            fail_msg("%s", e.text);
        assert_string_equal(r.name[0], "a host");
        assert_int_equal(trace_reader_find(&r, "s0"), 2);
        assert_int_equal(trace_reader_find(&r, "s1"), UINT32_MAX);
        assert_int_equal(r.events, rows[i].events);
        uint64_t first = r.next;
        /* Of each block a word says where it is in the whole, and less than an event is zeros. */
        assert_true(first == 0 ||
                    (rows[i].events - first + 5) * 24 >= rows[i].bytes / 4 * 3 * 9 / 10);
        assert_true(first == 0 || rows[i].events * 24 > rows[i].bytes / 4 * 3);
        for (uint64_t k = first; k < rows[i].events; k++) {
            struct fabric_trace want = event(k);
            assert_int_equal(trace_reader_next(&r, &got, &e), 1);
            assert_memory_equal(&got, &want, sizeof(want));
        }
        assert_int_equal(trace_reader_next(&r, &got, &e), 0);
        trace_reader_close(&r);
    }
    (void)remove("trace");
}

static void writer__no_arrivals(void **state)
{
    (void)state;
    static const struct trace_filter none;
    struct trace_reader r;
    struct scenario_error e;
    struct fabric_trace got;
    unsigned n = 0;
    bench_file("");
    write_events("trace", 1 << 20, &none, 10 * FABRIC_TRACE_KINDS);
    assert_true(trace_reader_open(&r, "trace", &e));
    for (; trace_reader_next(&r, &got, &e) == 1; n++)
        assert_int_not_equal(got.kind, TRACE_ARRIVE);
    assert_int_equal(n, 10 * (FABRIC_TRACE_KINDS - 1));
    trace_reader_close(&r);
    (void)remove("trace");
}

/* Three hosts, pauses, marks, drops, and a link that goes down. */
static const char incast[] = "topology: {shape: star, hosts: 3}\n"
                             "switches: {buffer: 400KiB, ecn: {kmin: 10KiB, kmax: 50KiB}}\n"
                             "faults: [{fault: link-down, a: h0, b: s0, at: 20us}, "
                             "{fault: link-up, a: h0, b: s0, at: 50us}]\n"
                             "workload: [{op: incast, to: h2, bytes: 300KiB, rounds: 2}]\n";

static void run(const char *path, const struct trace_filter *filter)
{
    struct scenario s;
    struct scenario_error e;
    struct trace_writer w;
    struct fabric *f = NULL;
    scenario_init(&s);
    if (!scenario_read_yaml(&s, bench_file(incast), NULL, 0, &e) ||
        !trace_writer_open(&w, path, 64 << 20, filter, &s, &e) ||
        !scenario_make(&s, "text.yaml", &f, &e))
        fail_msg("%s", e.text);
    assert_int_equal(fabric_run(f, UINT64_MAX), FABRIC_FINISHED);
    assert_true(trace_writer_close(&w, &e));
    fabric_destroy(f);
    scenario_free(&s);
}

static uint32_t by_name(const void *arg, const char *name)
{
    (void)arg;
    return strcmp(name, "s0") == 0 ? 3 : name[0] == 'h' ? (uint32_t)atoi(name + 1) : UINT32_MAX;
}

/* What a filter takes when the fabric runs is what it takes of the whole trace. */
static void writer__filters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool none;
    } rows[] = {
        {"kind=storm+fail",                    true },
        {"kind=mark+send",                     false},
        {"node=s0",                            false},
        {"node=h1+s0,port=0",                  false},
        {"port=2,kind=send",                   false},
        {"port=3",                             true },
        {"node=h1,port=1-2",                   true },
        {"priority=8,kind=send",               false},
        {"priority=3-8",                       false},
        {"priority=8,port=3",                  true },
        {"flow=0+2-3",                         false},
        {"flow=4-4294967294",                  true },
        {"flow=1,kind=start+finish",           false},
        {"flow=1,priority=8",                  true },
        {"node=s0,port=2,priority=3,flow=1-9", false},
        {"node=0-4294967294",                  false},
    };
    const struct trace_names names = {by_name, NULL};
    run("whole", &all);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trace_reader whole, part;
        struct scenario_error e;
        struct fabric_trace want, got;
        struct trace_filter filter = {0};
        unsigned n = 0;
        if (!trace_filter_add(&filter, rows[i].text, &names, &e))
            fail_msg("%s", e.text);
        run("part", &filter);
        assert_true(trace_reader_open(&whole, "whole", &e) && trace_reader_open(&part, "part", &e));
        while (trace_reader_next(&whole, &want, &e) == 1) {
            if (!trace_filter_takes(&filter, &want) ||
                (filter.kind.count == 0 && want.kind == TRACE_ARRIVE))
                continue;
            n++;
            assert_int_equal(trace_reader_next(&part, &got, &e), 1);
            assert_memory_equal(&got, &want, sizeof(want));
        }
        assert_int_equal(trace_reader_next(&part, &got, &e), 0);
        assert_true((n == 0) == rows[i].none);
        trace_reader_close(&whole);
        trace_reader_close(&part);
    }
    (void)remove("whole");
    (void)remove("part");
}

/* Each byte of the header that matters, a cut, an event of no kind. Blocks begin at 64 + 3 * 28,
 * rounded up to 152, with a word before the events. */
static void reader__not_whole(void **state)
{
    (void)state;
    static const struct {
        long at;  /* this byte becomes 0xee; -1: none */
        long cut; /* so many bytes less */
        const char *message;
    } rows[] = {
        {0,        0,   "it is no trace of"                    },
        {7,        0,   "it is no trace of"                    },
        {8,        0,   "another version"                      },
        {12,       0,   "makes no sense"                       }, /* bytes of a block */
        {15,       0,   "makes no sense"                       },
        {23,       0,   "makes no sense"                       }, /* blocks */
        {24,       0,   "the trace is not whole"               }, /* full ones */
        {31,       0,   "the trace is not whole"               },
        {34,       0,   "makes no sense"                       }, /* nodes */
        {32,       0,   "the trace is not whole"               },
        {36,       0,   "the trace is not whole"               }, /* words of the last block */
        {39,       0,   "the trace is not whole"               },
        {47,       0,   "there is an event that makes no sense"}, /* events */
        {-1,       1,   "the trace is not whole"               },
        {-1,       32,  "the trace is not whole"               },
        {-1,       330, "it is no trace of"                    },
        {139,      0,   "makes no sense"                       }, /* ports of the first node */
        {147,      0,   "makes no sense"                       }, /* and of the last */
        {152 + 7,  0,   "makes no sense"                       }, /* events before the block */
        {160 + 7,  0,   "there is an event that makes no sense"},
        {160 + 12, 0,   "there is an event that makes no sense"},
    };
    bench_file("");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trace_reader r;
        struct scenario_error e = {""};
        struct fabric_trace got;
        write_events("trace", 1 << 20, &all, 9);
        FILE *f = fopen("trace", "r+b");
        assert_non_null(f);
        if (rows[i].at >= 0) {
            assert_int_equal(fseek(f, rows[i].at, SEEK_SET), 0);
            assert_int_equal(fputc(0xee, f), 0xee);
        }
        fclose(f);
        assert_int_equal(truncate("trace", 160 + 9 * 24 - rows[i].cut), 0);
        if (trace_reader_open(&r, "trace", &e)) {
            int rc;
            while ((rc = trace_reader_next(&r, &got, &e)) == 1)
                continue;
            assert_int_equal(rc, -1);
            trace_reader_close(&r);
        }
        bench_contains(e.text, rows[i].message);
        bench_contains(e.text, "trace: ");
    }
    (void)remove("trace");
}

static void open__nowhere(void **state)
{
    (void)state;
    struct scenario s;
    struct scenario_error e;
    struct trace_writer w;
    struct trace_reader r;
    scenario_of_three(&s);
    assert_false(trace_writer_open(&w, "no/such/folder/t", 32, &all, &s, &e));
    bench_contains(e.text, "no/such/folder/t: No such file");
    assert_false(trace_reader_open(&r, "no-such", &e));
    bench_contains(e.text, "no-such: No such file");
    assert_false(trace_writer_open(&w, "/dev/full", 32, &all, &s, &e));
    bench_contains(e.text, "/dev/full: No space left");
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_false(
        trace_writer_open(&w, "fifo", 32, &all, &s, &e)); /* nor does it wait for a reader */
    bench_contains(e.text, "fifo: a trace is not written in order");
    assert_int_equal(unlink("fifo"), 0);
    FILE *own = fopen("own.yaml", "w");
    assert_non_null(own);
    assert_int_equal(fclose(own), 0);
    s.path = strdup("own.yaml");
    assert_false(trace_writer_open(&w, "own.yaml", 32, &all, &s, &e));
    bench_contains(e.text, "own.yaml: the scenario is read from it");
    assert_int_equal(unlink("own.yaml"), 0);
    trace_writer_abandon(&w); /* is not open */
    scenario_free(&s);
    bench_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clear_left__traces_alone), cmocka_unit_test(reader__gets_the_last),
        cmocka_unit_test(writer__filters),          cmocka_unit_test(writer__no_arrivals),
        cmocka_unit_test(reader__not_whole),        cmocka_unit_test(open__nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
