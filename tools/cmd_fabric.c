/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * cmd_fabric.c: `verbena fabric run`: reads a scenario, runs it, and leaves results in a folder.
 * Says on stderr how far it is, and on stdout what came out.
 */
#include <argp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report/report.h"
#include "scenario/quantity.h"
#include "scenario/results.h"
#include "scenario/trace_file.h"
#include "tool.h"

enum {
    OPTION_SET = 256,
    OPTION_SEED,
    OPTION_OUT,
    OPTION_TOPOLOGY,
    OPTION_FLOWS,
    OPTION_PROFILE,
    OPTION_CC,
    OPTION_BUFFER,
    OPTION_WATCHDOG,
    OPTION_BYTES,
    OPTION_NO_REPORT,
    OPTION_TRACE,
    OPTION_TRACE_FILTER,
    OPTION_TRACE_MIB,
    MAX_FILTERS = 16,
    MAX_NAMED = 16, /* queues of a deadlock */
    TRACE_MIB = 64,
    EVENTS_A_LOOK = 1 << 18, /* between two looks at the clock */
};

enum { EXIT_STALLED = 1 }; /* flows are left: the network came to a standstill, or they failed */

struct options {
    bool run, bytes;
    const char *scenario, *out, *topology, *flows, *profile, *watchdog, *cc;
    uint64_t seed, buffer_bytes;
    bool seed_given, no_report;
    struct scenario_set set[SCENARIO_MAX_SETS + 1]; /* one for the seed */
    unsigned sets;
    const char *trace, *filter[MAX_FILTERS];
    unsigned filters;
    uint64_t trace_mib;
};

static void parse_argument(struct options *o, struct argp_state *state, const char *arg)
{
    if (!o->run && strcmp(arg, "run") != 0)
        argp_error(state, "'%s' is no command of fabric, 'run' and 'trace' are", arg);
    if (o->run && o->scenario != NULL)
        argp_error(state, "one scenario at a time: '%s' is too many", arg);
    if (o->run)
        o->scenario = arg;
    o->run = true;
}

static void check_options(const struct options *o, struct argp_state *state)
{
    bool import = o->topology != NULL || o->flows != NULL || o->profile != NULL;
    if (!o->run)
        argp_error(state, "no command given, 'run' and 'trace' are some");
    if (o->out == NULL)
        argp_error(state, "--out DIR is missing: where the results go");
    if (o->scenario == NULL && !import)
        argp_error(state, "no scenario given");
    if (o->scenario != NULL && import)
        argp_error(state, "a scenario, or --topology and --flows, not both");
    if (import && (o->topology == NULL || o->flows == NULL || o->profile == NULL))
        argp_error(state, "--topology, --flows and --profile go together");
    if (!import && (o->buffer_bytes != 0 || o->watchdog != NULL || o->cc != NULL))
        argp_error(state, "--cc, --buffer-mib and --watchdog are for imports; "
                          "--set switches.buffer=... is for scenarios");
    if (o->trace == NULL && (o->filters > 0 || o->trace_mib != 0))
        argp_error(state, "--trace-filter and --trace-mib want --trace FILE");
    if (import && o->sets > 0)
        argp_error(state, "--set is for scenarios");
}

/* Those of the import: what the profile gives a meaning. */
#define IMPORT_CC "none, dcqcn-hw, dcqcn-paper, hpcc, timely, ztr-target"

static bool known_cc(const char *name)
{
    static const char *const names[] = {"none", "dcqcn-hw", "dcqcn-paper",
                                        "hpcc", "timely",   "ztr-target"};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* With the marks, or the class of ACKs, that go with it, as that simulator's users set them. */
static void set_cc(struct fabric_config *c, const char *name)
{
    c->hosts.cc = name;
    c->hosts.ack_in_class = strcmp(name, "hpcc") == 0;
    if (strcmp(name, "dcqcn-paper") != 0)
        return;
    c->hosts.cc = "dcqcn-paper-polled"; /* there is a mark with each ACK, and no CNP */
    c->switches.kmin_bytes = 5000;
    c->switches.kmax_bytes = 200000;
    c->switches.pmax_ppm = 10000;
}

static bool parse_trace(struct options *o, int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case OPTION_TRACE:
        o->trace = arg;
        return true;
    case OPTION_TRACE_FILTER:
        if (o->filters == MAX_FILTERS)
            argp_error(state, "--trace-filter: at most %d", MAX_FILTERS);
        o->filter[o->filters++] = arg;
        return true;
    case OPTION_TRACE_MIB:
        if (!quantity_parse(arg, QUANTITY_COUNT, &o->trace_mib) || o->trace_mib == 0 ||
            o->trace_mib > 1 << 20)
            argp_error(state, "--trace-mib: '%s' is not a number from 1 to 1048576", arg);
        return true;
    default:
        return false;
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case OPTION_SET:
        if (strchr(arg, '=') == NULL)
            argp_error(state, "--set: '%s' is not KEY=VALUE", arg);
        if (o->sets == SCENARIO_MAX_SETS)
            argp_error(state, "--set: at most %d", SCENARIO_MAX_SETS);
        o->set[o->sets++].text = arg;
        return 0;
    case OPTION_SEED:
        if (!quantity_parse(arg, QUANTITY_COUNT, &o->seed))
            argp_error(state, "--seed: '%s' is not %s from 0 to %" PRIu64, arg,
                       quantity_example(QUANTITY_COUNT), UINT64_MAX);
        o->seed_given = true;
        return 0;
    case OPTION_OUT:
        o->out = arg;
        return 0;
    case OPTION_TOPOLOGY:
        o->topology = arg;
        return 0;
    case OPTION_FLOWS:
        o->flows = arg;
        return 0;
    case OPTION_PROFILE:
        if (strcmp(arg, "hpcc-compat") != 0)
            argp_error(state, "--profile: '%s' is unknown, hpcc-compat is expected", arg);
        o->profile = arg;
        return 0;
    case OPTION_BUFFER:
        if (!quantity_parse(arg, QUANTITY_COUNT, &o->buffer_bytes) || o->buffer_bytes == 0 ||
            o->buffer_bytes > 4095)
            argp_error(state, "--buffer-mib: '%s' is not a number from 1 to 4095", arg);
        o->buffer_bytes <<= 20;
        return 0;
    case OPTION_CC:
        if (!known_cc(arg))
            argp_error(state, "--cc: '%s' is unknown, expected: " IMPORT_CC, arg);
        o->cc = arg;
        return 0;
    case OPTION_BYTES:
        o->bytes = true;
        return 0;
    case OPTION_NO_REPORT:
        o->no_report = true;
        return 0;
    case OPTION_WATCHDOG:
        o->watchdog = arg;
        return 0;
    case ARGP_KEY_ARG:
        parse_argument(o, state, arg);
        return 0;
    case ARGP_KEY_END:
        check_options(o, state);
        return 0;
    default:
        return parse_trace(o, key, arg, state) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

#define OPTION(name, key, arg, doc, group)                                                         \
    {                                                                                              \
        name, key, arg, 0, doc, group                                                              \
    }
static const struct argp_option options[] = {
    OPTION("out", OPTION_OUT, "DIR", "Where the results go; made if need be", 0),
    OPTION("no-report", OPTION_NO_REPORT, NULL, "No report.html", 0),
    OPTION("seed", OPTION_SEED, "N", "Of all chance, instead of the scenario's", 0),
    OPTION("set", OPTION_SET, "KEY=VALUE",
           "A field of the scenario: switches.buffer=4MiB, hosts.cc=timely", 0),
    OPTION("bytes", OPTION_BYTES, NULL,
           "Frames have bytes and an ICRC, built and checked; the same comes out", 0),
    OPTION("trace", OPTION_TRACE, "FILE", "What happens, as `verbena fabric trace FILE` prints it",
           0),
    OPTION("trace-filter", OPTION_TRACE_FILTER, "FILTER",
           "Such events only: kind=drop+mark,node=s0", 0),
    OPTION("trace-mib", OPTION_TRACE_MIB, "N", "Size of the trace, which keeps the last events; 64",
           0),
    OPTION("topology", OPTION_TOPOLOGY, "FILE", "Topology as the ns-3 HPCC simulator has it", 1),
    OPTION("flows", OPTION_FLOWS, "FILE", "Flows in its format", 1),
    OPTION("profile", OPTION_PROFILE, "NAME", "hpcc-compat: frames, buffers and pauses as there",
           1),
    OPTION("cc", OPTION_CC, "NAME", IMPORT_CC "; without it none", 1),
    OPTION("buffer-mib", OPTION_BUFFER, "N", "Of each switch; without it 32", 1),
    OPTION("watchdog", OPTION_WATCHDOG, "DETECT,RESTORE",
           "A PFC watchdog that drops, as 200ms,200ms", 1),
    {0},
};
#undef OPTION

static const struct argp fabric_argp = {
    .options = options,
    .parser = parse_option,
    .args_doc = "run SCENARIO.yaml\nrun --topology FILE --flows FILE --profile hpcc-compat\n"
                "trace FILE",
    .doc = "Simulates a data-centre network packet by packet, in virtual time."
           "\vWrites flows.csv, verbs.csv, pfc.csv, ports.csv, summary.json and report.html. Exit "
           "codes: 0 all flows finished "
           "or the time limit was reached, 1 a standstill, a livelock, or flows ended with an "
           "error; 64 wrong usage, 69 "
           "the scenario cannot be run and the message says why, 70 failed. See "
           "verbena-fabric(1).",
};

static void read_watchdog(const char *text, struct fabric_config *c)
{
    char detect[32];
    size_t n = strcspn(text, ",");
    snprintf(detect, sizeof(detect), "%.*s", n < 31 ? (int)n : 31, text);
    if (text[n] != ',' || !quantity_parse(detect, QUANTITY_TIME, &c->detect_ps) ||
        !quantity_parse(text + n + 1, QUANTITY_TIME, &c->restore_ps) || c->detect_ps < FABRIC_US ||
        c->restore_ps < FABRIC_US || c->detect_ps > SCENARIO_MAX_TIME_PS ||
        c->restore_ps > SCENARIO_MAX_TIME_PS)
        tool_die(TOOL_USAGE,
                 "--watchdog: '%s' is not two times such as 200ms,200ms, from 1us to 3600s each",
                 text);
    c->watchdog = WATCHDOG_DROP;
}

static void load(struct options *o, struct scenario *s)
{
    struct scenario_error error;
    bool ok;
    scenario_init(s);
    if (o->scenario != NULL) {
        static char seed[32];
        snprintf(seed, sizeof(seed), "seed=%" PRIu64, o->seed);
        if (o->seed_given)
            o->set[o->sets++].text = seed;
        ok = scenario_read_yaml(s, o->scenario, o->set, o->sets, &error);
    } else {
        s->title = strdup(o->topology);
        s->config.seed = o->seed_given ? o->seed : s->config.seed;
        scenario_hpcc_compat(&s->config);
        if (o->buffer_bytes != 0)
            s->config.switches.buffer_bytes = o->buffer_bytes;
        if (o->cc != NULL)
            set_cc(&s->config, o->cc);
        if (o->watchdog != NULL)
            read_watchdog(o->watchdog, &s->config);
        ok = scenario_import_topology(s, o->topology, &error) &&
             scenario_import_flows(s, o->flows, &error) && scenario_import_end(s, &error);
    }
    if (!ok)
        tool_die(TOOL_UNAVAILABLE, "%s", error.text);
    if (o->bytes && !s->config.hosts.engine)
        tool_die(TOOL_UNAVAILABLE,
                 "--bytes: these hosts have no NIC; hosts.nic engine is expected");
    s->config.bytes = o->bytes;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Once a second on a terminal, else every ten: how far, and how long it will take if it goes on so.
 */
static void tell_progress(const struct fabric *f, double begun, double *told)
{
    double now = seconds();
    struct fabric_totals t;
    if (now - *told < (isatty(STDERR_FILENO) != 0 ? 1 : 10))
        return;
    *told = now;
    fabric_totals(f, &t);
    double part = (double)t.acked_bytes / (double)t.bytes;
    fprintf(stderr, "%5.1f %%  %.3f ms simulated, %.0f s", 100 * part, (double)t.now_ps / 1e9,
            now - begun);
    if (part > 0)
        fprintf(stderr, ", about %.0f s to go", (now - begun) * (1 - part) / part);
    fputc('\n', stderr);
}

static volatile sig_atomic_t stopped; /* by this signal; 0: not */

static void stop(int sig)
{
    stopped = sig;
}

/* Whoever stops the run leaves nothing of it. Once more, and it is killed as ever; and what was
 * ignored stays so (nohup). */
static void stop_on(int sig)
{
    struct sigaction was, act = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};
    if (sigaction(sig, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
        sigaction(sig, &act, NULL);
}

static enum fabric_state simulate(struct fabric *f)
{
    double begun = seconds(), told = begun;
    enum fabric_state state;
    while ((state = fabric_run(f, EVENTS_A_LOOK)) == FABRIC_RUNNING && stopped == 0)
        tell_progress(f, begun, &told);
    return state;
}

static noreturn void end_stopped(struct results *results, struct trace_writer *trace)
{
    trace_writer_abandon(trace);
    results_abandon(results);
    fputs("verbena: stopped; nothing was written\n", stderr);
    signal(stopped, SIG_DFL);
    raise(stopped);
    _exit(TOOL_FAILED);
}

/* Of this process, as the kernel counts it; 0: not known. */
static long peak_kib(void)
{
    char line[128];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    if (f == NULL)
        return 0;
    while (fgets(line, sizeof(line), f) != NULL)
        if (sscanf(line, "VmHWM: %ld kB", &kib) == 1)
            break;
    fclose(f);
    return kib;
}

static void report_deadlock(const struct scenario *s, const struct fabric *f, uint64_t since_ps)
{
    uint32_t named = 0, more = 0;
    printf("%s deadlock: since %.3f ms queues waited for one another in a circle:",
           s->config.switches.link_pause ? "802.3x" : "PFC", (double)since_ps / 1e9);
    for (uint32_t i = 0; i < fabric_ports(f); i++) {
        uint8_t rest = fabric_deadlock(f, i);
        struct fabric_port_result port;
        fabric_port_result(f, i, 0, &port);
        if (!s->is_switch[port.node])
            continue;
        for (; rest != 0; rest &= (uint8_t)(rest - 1)) {
            if (named == MAX_NAMED)
                more++;
            else
                printf("%s %s port %" PRIu32 " priority %d", named++ == 0 ? "" : ",",
                       s->name[port.node], port.port, __builtin_ctz(rest));
        }
    }
    if (more != 0)
        printf(", and %" PRIu32 " more", more);
    putchar('\n');
}

static int report(const struct scenario *s, const struct fabric *f, enum fabric_state state,
                  const char *out)
{
    struct fabric_totals t;
    fabric_totals(f, &t);
    printf("%" PRIu32 " of %" PRIu32 " flows finished in %.3f ms; %" PRIu64 " pauses, %" PRIu64
           " drops, %" PRIu64 " ECN marks, longest queue %" PRIu64 " bytes\n",
           t.finished, t.flows, (double)t.now_ps / 1e9, t.pauses, t.drops, t.ecn_marks,
           t.max_queue_bytes);
    if (t.deadlock_ps != FABRIC_NEVER)
        report_deadlock(s, f, t.deadlock_ps);
    if (state == FABRIC_STALLED)
        puts("the network came to a standstill: nothing new was acknowledged any more");
    if (state == FABRIC_LIVELOCK)
        printf("livelock: frames arrive again and again, but since %.3f ms nothing new was "
               "acknowledged\n",
               (double)t.progress_ps / 1e9);
    if (t.failed != 0)
        printf("%" PRIu32 " flows ended with an error; verbs.csv names them\n", t.failed);
    if (state == FABRIC_LIMIT)
        printf(
            "the limit of simulated time was reached; a flow last started or got on at %.3f ms\n",
            (double)t.progress_ps / 1e9);
    if (state == FABRIC_FULL)
        puts("more packets at once than there is memory for");
    printf("%" PRIu64 " link-hops, %ld KiB of memory at most; results are in %s\n", t.link_hops,
           peak_kib(), out);
    if (state == FABRIC_FULL)
        return TOOL_UNAVAILABLE;
    return state == FABRIC_STALLED || state == FABRIC_LIVELOCK || t.failed != 0 ? EXIT_STALLED
                                                                                : TOOL_OK;
}

static uint32_t find_node(const void *scenario, const char *name)
{
    return scenario_find_node(scenario, name);
}

static struct trace_filter read_filter(const struct options *o, const struct scenario *s)
{
    struct scenario_error error;
    struct trace_filter filter = {0};
    struct trace_names names = {find_node, s, s->topology.nodes, trace_ports_most(&s->topology),
                                s->flows};
    for (unsigned i = 0; i < o->filters; i++)
        if (!trace_filter_add(&filter, o->filter[i], &names, &error))
            tool_die(TOOL_USAGE, "%s", error.text);
    return filter;
}

/* All that the run will write is open before it begins. If anything is refused, all is as it was.
 */
static struct fabric *prepare(const struct options *o, struct scenario *s, bool page,
                              struct results *results, struct trace_writer *trace)
{
    struct scenario_error error;
    struct fabric *f;
    uint64_t mib = o->trace_mib != 0 ? o->trace_mib : TRACE_MIB;
    struct trace_filter filter = read_filter(o, s);
    stop_on(SIGINT);
    stop_on(SIGTERM);
    stop_on(SIGHUP);
    bool begun = results_begin(results, o->out, s, page, &error);
    bool traced = begun && (o->trace == NULL ||
                            trace_writer_open(trace, o->trace, mib << 20, &filter, s, &error));
    if (traced && scenario_make(s, o->scenario != NULL ? o->scenario : o->flows, &f, &error))
        return f;
    trace_writer_abandon(trace);
    if (begun)
        results_abandon(results);
    tool_die(TOOL_UNAVAILABLE, "%s", error.text);
}

/* What can be written is, whatever cannot. */
static bool finish(const struct options *o, const struct scenario *s, struct fabric *f,
                   enum fabric_state state, struct results *results, struct trace_writer *trace)
{
    struct scenario_error error[2];
    bool traced = o->trace == NULL || trace_writer_close(trace, &error[0]);
    bool written = results_end(results, s, f, state, &error[1]);
    if (!traced)
        fprintf(stderr, "verbena: %s\n", error[0].text);
    if (!written)
        fprintf(stderr, "verbena: %s\n", error[1].text);
    return traced && written;
}

int cmd_fabric(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "trace") == 0)
        return cmd_fabric_trace(argc - 1, argv + 1);
    struct options o = {0};
    struct scenario s;
    struct results results;
    struct trace_writer trace = {0};
    argp_parse(&fabric_argp, argc, argv, 0, NULL, &o);
    signal(SIGXFSZ, SIG_IGN); /* a write says EFBIG then */
    load(&o, &s);
    bool page = !o.no_report && report_can();
    if (!o.no_report && !page)
        fprintf(stderr, "no report.html: %s\n", REPORT_CANNOT);
    struct fabric *f = prepare(&o, &s, page, &results, &trace);
    scenario_warn(&s, f, stderr);
    enum fabric_state state = simulate(f);
    if (state == FABRIC_RUNNING)
        end_stopped(&results, &trace);
    bool kept = finish(&o, &s, f, state, &results, &trace);
    int code = report(&s, f, state, o.out);
    if (!kept)
        code = TOOL_UNAVAILABLE;
    fabric_destroy(f);
    scenario_free(&s);
    return code;
}
