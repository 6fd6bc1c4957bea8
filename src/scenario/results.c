/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * results.c: see results.h. Numbers are integers of picoseconds, printed in nanoseconds, rounded to
 * the nearest: the same bytes for the same run, wherever it runs.
 */
#include "scenario/results.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scenario/page.h"
#include "scenario/trace_file.h"

#include "verbena/types.h"

static const char *const file_names[RESULTS_FILES] = {
    "pfc.csv",      "flows.csv",     "verbs.csv",   "ports.csv",
    "summary.json", "scenario.yaml", "report.html",
};

const char *const results_ends[] = {"running",        "finished", "stalled", "limit",
                                    "out of packets", "failed",   "livelock"};

static uint64_t ns(uint64_t ps)
{
    return (ps + 500) / 1000;
}

static void note_pfc(void *arg, uint64_t time_ps, uint32_t node, uint32_t port, unsigned priority,
                     uint32_t quanta)
{
    struct results *r = arg;
    char which[12] = "all"; /* a pause of the link */
    if (priority < FABRIC_PRIORITIES)
        snprintf(which, sizeof(which), "%u", priority);
    if (r->report)
        samples_pfc(&r->samples, time_ps, node, port);
    if (quanta > UINT16_MAX) /* held until the resume: what a frame can say at most */
        quanta = UINT16_MAX;
    fprintf(r->out[RESULTS_PFC].file, "%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%s,%s,%" PRIu32 "\n",
            ns(time_ps), node, port, which, quanta != 0 ? "pause" : "resume", quanta);
}

/* This run has none of them; if there is one, it is of an earlier run. */
static bool is_left_out(const struct results *r, const struct scenario *s, unsigned file)
{
    return (file == RESULTS_REPORT && !r->report) ||
           (file == RESULTS_VERBS && !s->config.hosts.engine);
}

static void path_of(const struct results *r, unsigned file, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s/%s", r->folder, file_names[file]);
}

/* Whether a file has this text and nothing else. */
static bool has_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "r");
    int c = EOF;
    if (f == NULL)
        return false;
    while ((c = getc(f)) != EOF && *text != '\0' && c == (unsigned char)*text)
        text++;
    fclose(f);
    return c == EOF && *text == '\0';
}

/* Somebody's scenario is not replaced by what a run makes of it, unless it came from there. */
static bool is_own_scenario(const struct results *r, const struct scenario *s)
{
    char path[PATH_MAX];
    path_of(r, RESULTS_SCENARIO, path);
    return scenario_reads(s, path) && !has_text(path, s->text);
}

bool results_begin(struct results *r, const char *folder, struct scenario *s, bool report,
                   struct scenario_error *error)
{
    *r = (struct results){.folder = strdup(folder)};
    r->made = r->folder != NULL && mkdir(folder, 0777) == 0;
    bool ok = r->made || (r->folder != NULL && errno == EEXIST);
    if (!ok)
        snprintf(error->text, sizeof(error->text), "%s: %s", folder, strerror(errno));
    if (ok && is_own_scenario(r, s)) {
        snprintf(
            error->text, sizeof(error->text),
            "%.400s/scenario.yaml: it is the scenario itself, and the run would write another; "
            "another folder is expected",
            folder);
        ok = false;
    }
    if (ok && report) {
        r->report = samples_begin(&r->samples, s);
        ok = r->report;
        if (!ok)
            snprintf(error->text, sizeof(error->text), "%s: no memory for what the report shows",
                     folder);
    }
    for (unsigned i = 0; ok && i < RESULTS_FILES; i++) {
        char path[PATH_MAX];
        path_of(r, i, path);
        ok = i == RESULTS_SCENARIO || output_is_free(path, s, error);
        ok = ok && (is_left_out(r, s, i) || output_open(&r->out[i], path, error));
    }
    if (!ok) {
        results_abandon(r);
        return false;
    }
    fputs("time_ns,node,port,priority,event,quanta\n", r->out[RESULTS_PFC].file);
    s->config.on_pfc = note_pfc;
    s->config.on_pfc_arg = r;
    return true;
}

static void forget(struct results *r)
{
    if (r->report)
        samples_free(&r->samples);
    free(r->folder);
    *r = (struct results){0};
}

void results_abandon(struct results *r)
{
    for (unsigned i = 0; i < RESULTS_FILES; i++)
        output_abandon(&r->out[i]);
    if (r->made)
        rmdir(r->folder);
    forget(r);
}

static void write_flows(FILE *out, const struct scenario *s, const struct fabric *f)
{
    fputs("flow,src,dst,priority,bytes,start_ns,fct_ns,slowdown,retries,cnps\n", out);
    for (uint32_t i = 0; i < s->flows; i++) {
        const struct fabric_flow *w = &s->flow[i];
        struct fabric_flow_result result;
        fabric_flow_result(f, i, &result);
        fprintf(out, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%u,%" PRIu64 ",", i, w->src, w->dst,
                w->priority, w->bytes);
        if (result.start_ps != FABRIC_NEVER)
            fprintf(out, "%" PRIu64, ns(result.start_ps));
        if (result.fct_ps != FABRIC_NEVER && result.ideal_ps != 0) {
            uint64_t slowdown = (result.fct_ps * 1000 + result.ideal_ps / 2) / result.ideal_ps;
            fprintf(out, ",%" PRIu64 ",%" PRIu64 ".%03" PRIu64, ns(result.fct_ps), slowdown / 1000,
                    slowdown % 1000);
        } else if (result.fct_ps != FABRIC_NEVER) {
            fprintf(out, ",%" PRIu64 ",", ns(result.fct_ps));
        } else {
            fputs(",,", out);
        }
        fprintf(out, ",%" PRIu32 ",%" PRIu32 "\n", result.retries, result.cnps);
    }
}

/* Names as verbs programs know them, without IBV_WC_. */
static const char *status_name(unsigned status)
{
    static const char *const names[] = {
        [WC_SUCCESS] = "SUCCESS",
        [WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
        [WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
        [WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
        [WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
        [WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
        [WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
        [WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
        [WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
        [WC_REM_OP_ERR] = "REM_OP_ERR",
        [WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
        [WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
        [WC_REM_ABORT_ERR] = "REM_ABORT_ERR",
        [WC_FATAL_ERR] = "FATAL_ERR",
        [WC_GENERAL_ERR] = "GENERAL_ERR",
    };
    bool known = status < sizeof(names) / sizeof(names[0]) && names[status] != NULL;
    return known ? names[status] : "UNKNOWN";
}

/* What became of each flow's QPs. */
static void write_verbs(FILE *out, const struct scenario *s, const struct fabric *f)
{
    static const char *const verbs[] = {"write", "write-imm", "send",
                                        "read",  "fetch-add", "cmp-swap"};
    static const char *const states[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    fputs("flow,verb,status,failed_ns,rnr_naks,src_qp,dst_qp\n", out);
    for (uint32_t i = 0; i < s->flows; i++) {
        struct fabric_flow_result result;
        fabric_flow_result(f, i, &result);
        bool failed = result.failed_ps != FABRIC_NEVER;
        bool open = !failed && result.fct_ps == FABRIC_NEVER;
        fprintf(out, "%" PRIu32 ",%s,%s,", i, verbs[s->flow[i].work.verb],
                open ? "" : status_name(result.status));
        if (failed)
            fprintf(out, "%" PRIu64, ns(result.failed_ps));
        fprintf(out, ",%" PRIu32 ",%s,%s\n", result.rnr_naks, states[result.state[0]],
                states[result.state[1]]);
    }
}

static void write_ports(FILE *out, const struct fabric *f)
{
    fputs("node,port,priority,max_queue_bytes,paused_sent_ns,paused_received_ns,tx_bytes,ecn_marks,"
          "drops\n",
          out);
    for (uint32_t i = 0; i < fabric_ports(f); i++) {
        for (unsigned p = 0; p < FABRIC_PRIORITIES; p++) {
            struct fabric_port_result q;
            fabric_port_result(f, i, p, &q);
            if ((q.max_queue_bytes | q.paused_sent_ps | q.paused_received_ps | q.tx_bytes |
                 q.ecn_marks | q.drops) == 0)
                continue; /* nothing ever happened here */
            fprintf(out,
                    "%" PRIu32 ",%" PRIu32 ",%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                    ",%" PRIu64 ",%" PRIu64 "\n",
                    q.node, q.port, p, q.max_queue_bytes, ns(q.paused_sent_ps),
                    ns(q.paused_received_ps), q.tx_bytes, q.ecn_marks, q.drops);
        }
    }
}

static void write_mask(FILE *out, const char *name, uint8_t mask)
{
    const char *comma = "";
    fprintf(out, "    \"%s\": [", name);
    for (unsigned i = 0; i < FABRIC_PRIORITIES; i++)
        if ((mask >> i & 1) != 0) {
            fprintf(out, "%s%u", comma, i);
            comma = ", ";
        }
    fputs("],\n", out);
}

static void write_number(FILE *out, const char *name, uint64_t value)
{
    fprintf(out, "    \"%s\": %" PRIu64 ",\n", name, value);
}

/* Of which 0 is none. */
static void write_bound(FILE *out, const char *name, uint64_t value)
{
    if (value != 0)
        write_number(out, name, value);
    else
        fprintf(out, "    \"%s\": null,\n", name);
}

static void write_hosts(FILE *out, const struct fabric_hosts *h)
{
    fprintf(out, "    \"nic\": \"%s\",\n", h->engine ? "engine" : "none");
    fprintf(out, "    \"vlan\": %s,\n", h->vlan ? "true" : "false");
    write_number(out, "payload_bytes", h->payload_bytes);
    write_bound(out, "window_bytes", h->window_bytes);
    write_bound(out, "timeout_ns", ns(h->timeout_ps));
    if (h->engine) {
        write_number(out, "retry", h->retry);
        write_number(out, "rnr_retry", h->rnr_retry);
        write_number(out, "rnr_timer_ns", ns(h->rnr_timer_ps));
    } else {
        write_number(out, "header_bytes", h->header_bytes);
        write_number(out, "ack_bytes", h->ack_bytes);
        write_number(out, "ack_priority", h->ack_priority);
        fprintf(out, "    \"ack_in_class\": %s,\n", h->ack_in_class ? "true" : "false");
        fprintf(out, "    \"recovery\": \"%s\",\n", h->go_back_0 ? "go-back-0" : "go-back-n");
    }
    fprintf(out, "    \"cc\": \"%s\",\n", h->cc != NULL ? h->cc : "none");
    fprintf(out, "    \"cnp\": \"%s\",\n", h->cnp_by_ack ? "ack" : "packet");
    write_number(out, "cnp_priority", h->cnp_priority);
    write_number(out, "cnp_interval_ns", ns(h->cnp_interval_ps));
    if (h->cc != NULL && strcmp(h->cc, "hpcc") == 0) {
        write_number(out, "hpcc_eta_percent", h->hpcc_eta_percent);
        write_number(out, "hpcc_stages", h->hpcc_stages);
        write_number(out, "hpcc_parts", h->hpcc_parts);
    }
}

void results_parameters(FILE *out, const struct fabric_config *c)
{
    static const char *const watchdogs[] = {"off", "drop", "forward", "alert"};
    const struct fabric_switches *s = &c->switches;
    const char *comma = "";
    fputs("{\n", out);
    write_bound(out, "limit_ns", ns(c->limit_ps));
    write_number(out, "gap_bytes", c->gap_bytes);
    write_number(out, "buffer_bytes", s->buffer_bytes);
    if (s->headroom_bytes != 0)
        write_number(out, "headroom_bytes", s->headroom_bytes);
    else if (s->headroom_delays != 0)
        write_number(out, "headroom_delays", s->headroom_delays);
    else
        fputs("    \"headroom_bytes\": \"auto\",\n", out);
    write_number(out, "reserve_bytes", s->reserve_bytes);
    write_number(out, "alpha_numerator", s->alpha_num);
    write_number(out, "alpha_denominator", s->alpha_den);
    write_number(out, "xon_offset_bytes", s->xon_offset_bytes);
    write_mask(out, "lossless", s->lossless);
    write_mask(out, "control", s->control);
    fputs("    \"weights\": [", out);
    for (unsigned i = 0; i < FABRIC_PRIORITIES; i++, comma = ", ")
        fprintf(out, "%s%u", comma, s->weight[i]);
    fputs("],\n", out);
    fprintf(out, "    \"pause_quanta\": ");
    if (s->pause_quanta == FABRIC_QUANTA_HELD)
        fputs("\"held\",\n", out);
    else
        fprintf(out, "%" PRIu32 ",\n", s->pause_quanta);
    write_number(out, "response_quanta", s->response_quanta);
    fprintf(out, "    \"pause\": \"%s\",\n", s->link_pause ? "link" : "pfc");
    fprintf(out, "    \"trust\": \"%s\",\n", s->trust_pcp ? "pcp" : "dscp");
    if (s->converge_ps != FABRIC_NEVER)
        write_number(out, "convergence_ns", ns(s->converge_ps));
    else
        fputs("    \"convergence_ns\": null,\n", out);
    write_mask(out, "ecn", s->ecn);
    fprintf(out, "    \"ecn_at\": \"%s\",\n", s->ecn_at_dequeue ? "dequeue" : "enqueue");
    write_number(out, "kmin_bytes", s->kmin_bytes);
    write_number(out, "kmax_bytes", s->kmax_bytes);
    write_number(out, "ecn_rate_bps", s->ecn_rate_bps);
    write_number(out, "pmax_ppm", s->pmax_ppm);
    write_hosts(out, &c->hosts);
    if (c->watchdog != WATCHDOG_OFF) {
        write_number(out, "watchdog_detect_ns", ns(c->detect_ps));
        write_number(out, "watchdog_restore_ns", ns(c->restore_ps));
    }
    fprintf(out, "    \"watchdog\": \"%s\"\n  }", watchdogs[c->watchdog]);
}

void results_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const char *p = text; p != NULL && *p != '\0'; p++) {
        if (*p == '"' || *p == '\\')
            fputc('\\', out);
        if (*p == '\n')
            fputs("\\n", out);
        else
            fputc((unsigned char)*p < 0x20 ? ' ' : *p, out);
    }
    fputc('"', out);
}

static void write_summary(FILE *out, const struct scenario *s, const struct fabric *f,
                          enum fabric_state state)
{
    struct fabric_totals t;
    fabric_totals(f, &t);
    fputs("{\n", out);
    fputs("  \"scenario\": ", out);
    results_text(out, s->title);
    fputs(",\n", out);
    fprintf(out, "  \"seed\": %" PRIu64 ",\n", s->config.seed);
    fputs("  \"scenario_file\": \"scenario.yaml\",\n", out);
    fputs("  \"parameters\": ", out);
    results_parameters(out, &s->config);
    fputs(",\n", out);
    fprintf(out, "  \"nodes\": %" PRIu32 ",\n  \"links\": %" PRIu32 ",\n", s->topology.nodes,
            s->topology.links);
    fprintf(out, "  \"flows\": %" PRIu32 ",\n  \"finished\": %" PRIu32 ",\n", t.flows, t.finished);
    fprintf(out, "  \"failed\": %" PRIu32 ",\n", t.failed);
    fprintf(out, "  \"end\": \"%s\",\n  \"end_ns\": %" PRIu64 ",\n", results_ends[state],
            ns(t.now_ps));
    fprintf(out, "  \"progress_ns\": %" PRIu64 ",\n", ns(t.progress_ps));
    if (t.deadlock_ps == FABRIC_NEVER)
        fputs("  \"deadlock\": false,\n  \"deadlock_ns\": null,\n", out);
    else
        fprintf(out, "  \"deadlock\": true,\n  \"deadlock_ns\": %" PRIu64 ",\n", ns(t.deadlock_ps));
    fprintf(out, "  \"drops\": %" PRIu64 ",\n  \"drops_by\": {", t.drops);
    fprintf(out,
            "\"headroom\": %" PRIu64 ", \"threshold\": %" PRIu64 ", \"route\": %" PRIu64
            ", \"mtu\": %" PRIu64 ", \"link\": %" PRIu64 ", \"watchdog\": %" PRIu64
            ", \"icrc\": %" PRIu64 "},\n",
            t.drops_headroom, t.drops_threshold, t.drops_route, t.drops_mtu, t.drops_link,
            t.drops_watchdog, t.drops_icrc);
    fprintf(out, "  \"storms\": %" PRIu64 ",\n", t.storms);
    fprintf(out, "  \"pauses\": %" PRIu64 ",\n  \"resumes\": %" PRIu64 ",\n", t.pauses, t.resumes);
    fprintf(out, "  \"ecn_marks\": %" PRIu64 ",\n", t.ecn_marks);
    fprintf(out, "  \"max_queue_bytes\": %" PRIu64 ",\n", t.max_queue_bytes);
    fprintf(out, "  \"link_hops\": %" PRIu64 "\n}\n", t.link_hops);
}

/* Takes its name, or says why not; what an earlier run has left of those that this one has not
 * goes.
 */
static bool finish(struct results *r, unsigned file, struct scenario_error *error)
{
    char path[PATH_MAX];
    if (r->out[file].path != NULL)
        return output_commit(&r->out[file], error);
    char part[PATH_MAX + 8];
    path_of(r, file, path);
    snprintf(part, sizeof(part), "%s.part", path); /* of one that was killed */
    if ((unlink(part) == 0 || errno == ENOENT) && (unlink(path) == 0 || errno == ENOENT))
        return true;
    snprintf(error->text, sizeof(error->text),
             "%.400s: that of an earlier run cannot be removed: %s", path, strerror(errno));
    return false;
}

bool results_end(struct results *r, const struct scenario *s, struct fabric *f,
                 enum fabric_state state, struct scenario_error *error)
{
    bool ok = true;
    write_flows(r->out[RESULTS_FLOWS].file, s, f);
    if (s->config.hosts.engine)
        write_verbs(r->out[RESULTS_VERBS].file, s, f);
    write_ports(r->out[RESULTS_PORTS].file, f);
    fputs(s->text, r->out[RESULTS_SCENARIO].file);
    write_summary(r->out[RESULTS_SUMMARY].file, s, f, state);
    if (r->report) {
        samples_end(&r->samples, f);
        int rc = page_write(r->out[RESULTS_REPORT].file, s, f, state, &r->samples);
        if (rc != 0) {
            snprintf(error->text, sizeof(error->text), "%.300s/report.html: %s", r->folder,
                     strerror(-rc));
            output_abandon(&r->out[RESULTS_REPORT]);
            ok = false;
        }
    }
    for (unsigned i = 0; i < RESULTS_FILES; i++) {
        struct scenario_error e;
        if (!finish(r, i, &e) && ok) {
            *error = e;
            ok = false;
        }
    }
    if (!trace_clear_left(r->folder) && ok) {
        snprintf(error->text, sizeof(error->text),
                 "%.400s: what a run that was killed left of its trace cannot be removed: %s",
                 r->folder, strerror(errno));
        ok = false;
    }
    forget(r);
    return ok;
}
