/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_experiment.c: trials as both ends do them, their figures as members of the record, and the
 * record as text.
 */
#include "lab/lab_experiment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lab/lab_record.h"
#include "lab/lab_session.h"
#include "lab/lab_verdict.h"

enum { MANY = 64, MAX_INLINE_TRIAL = 64, RESTS = 8 };
enum { MAX_WRITE_NS = 100000000, MAX_REST_NS = 1000000000 }; /* of torn's writer */

static const struct lab_experiment_kind *const kinds[LAB_EXPERIMENTS] = {
    [LAB_TORN] = &lab_torn,
    [LAB_FLAG] = &lab_flag,
    [LAB_BARE] = &lab_bare,
};

static const struct lab_variant *variant_of(const struct lab_trial *t)
{
    return &kinds[t->experiment]->variants[t->variant];
}

static int open_queue(struct lab_try *x)
{
    const struct lab_experiment_kind *k = kinds[x->t->experiment];
    const struct lab_queue_plan plan = {
        .transport = LAB_RC,
        .depth = x->t->depth,
        .events = variant_of(x->t)->sleeps,
        .receives_data = k->receives_data != NULL && k->receives_data(x->t),
        .inlined = k->inlines && x->t->size <= MAX_INLINE_TRIAL ? x->t->size : 0,
    };
    struct lab_rig *r = &x->e->rig;
    r->pool.offset = 0;
    int error = lab_rig_place(r, LAB_ANYWHERE, x->e->message); /* whatever cases did before */
    if (error != 0)
        return error;
    memset(lab_rig_counter(r), 0, LAB_RIG_EXTRA_BYTES);
    memset(r->pool.bytes, 0, 2 * (size_t)r->pool.slot_bytes);
    error = lab_case_from_queue(x->e, &x->q, lab_queue_open(&x->q, r, &x->side, &plan));
    return error == 0 && k->prepare != NULL ? k->prepare(x) : error;
}

static json_t *counts_json(const struct lab_try *x)
{
    const char *const *names = kinds[x->t->experiment]->counts;
    json_t *o = json_object();
    for (unsigned i = 0; names != NULL && i < LAB_TRIAL_COUNTS; i++)
        if (names[i] != NULL)
            json_object_set_new(o, names[i], json_integer((json_int_t)x->counts[i]));
    return o;
}

static json_t *end_json(const struct lab_try *x)
{
    json_t *o = json_pack("{s:I,s:I,s:I,s:I,s:o}", "rounds", (json_int_t)x->done, "wall_ns",
                          (json_int_t)x->side.wall_ns, "cpu_user_us", (json_int_t)x->side.user_us,
                          "cpu_system_us", (json_int_t)x->side.system_us, "counts", counts_json(x));
    if (x->first[0] != '\0')
        json_object_set_new(o, "first", json_string(x->first));
    return o;
}

/* What others must set to the same, to be compared with us. */
static void note_settings(struct lab_try *x)
{
    const struct lab_endpoint *self = &x->q.self, *peer = &x->q.peer;
    uint64_t mtu = self->mtu < peer->mtu ? self->mtu : peer->mtu;
    x->mtu_bytes = lab_rig_mtu_bytes((enum ibv_mtu)mtu);
    x->reads = (uint32_t)(self->reads < peer->reads ? self->reads : peer->reads);
    x->inlined = x->q.inlined;
    x->receives = x->q.receives;
}

/* Both ends; *result: what the target found, for the source. The target has no use for it: NULL. */
static int run_trial(struct lab_try *x, json_t **result)
{
    const struct lab_experiment_kind *k = kinds[x->t->experiment];
    struct lab_end *e = x->e;
    int error = open_queue(x);
    if (error == 0)
        error = lab_session_join(e, &x->q, NULL);
    note_settings(x);
    lab_side_begin(&x->side, NULL, 0);
    lab_patience_init(&x->patience);
    x->begun_ns = x->batches.since_ns = lab_now_ns();
    x->batch_rounds = 1;
    if (error == 0)
        error = e->serving ? k->target(x) : k->source(x);
    x->elapsed_ns = lab_now_ns() - x->begun_ns;
    lab_side_end(&x->side, NULL, 0);
    if (error == 0 && !e->serving)
        error = lab_session_send(e, "done", json_object());
    /* The source's queue stays until the target has ended, too. */
    if (error == 0 && result != NULL && (*result = lab_session_receive(e, "result")) == NULL)
        error = -EPIPE;
    error = lab_session_prefer_peer(e, error);
    if (error == 0 && e->serving)
        error = lab_session_send(e, "result", end_json(x));
    lab_queue_close(&x->q);
    lab_side_clear(&x->side);
    return error;
}

static double cpu_a_message(const json_t *source, const json_t *target, double messages)
{
    static const char *const names[] = {"cpu_user_us", "cpu_system_us"};
    double sum = 0;
    for (unsigned i = 0; i < 2; i++)
        sum += (double)(json_integer_value(json_object_get(source, names[i])) +
                        json_integer_value(json_object_get(target, names[i])));
    return messages > 0 ? sum / messages : 0;
}

static json_t *batches_json(const struct lab_batches *b)
{
    json_t *all = json_array();
    for (unsigned i = 0; i < b->count; i++)
        json_array_append_new(all, json_integer((json_int_t)b->ns[i]));
    return all;
}

static json_t *trial_json(const struct lab_try *x, const json_t *source, json_t *target)
{
    const struct lab_variant *v = variant_of(x->t);
    double messages = (double)x->done * (v->halves ? 2 : 1), ns = (double)x->elapsed_ns;
    json_t *o = json_pack("{s:s,s:I,s:I,s:I,s:I,s:s,s:s,s:O,s:O}", "variant", v->name, "size",
                          (json_int_t)x->t->size, "depth", (json_int_t)x->t->depth, "rounds",
                          (json_int_t)x->done, "elapsed_ns", (json_int_t)x->elapsed_ns, "proves",
                          v->proves, "not", v->fails, "source", source, "target", target);
    json_object_set_new(o, "mtu_bytes", json_integer(x->mtu_bytes));
    json_object_set_new(o, "outstanding_reads", json_integer(x->reads));
    json_object_set_new(o, "inline_bytes", json_integer(x->inlined));
    json_object_set_new(o, "receives", json_integer(x->receives));
    if (x->signal_every != 0)
        json_object_set_new(o, "signal_every", json_integer(x->signal_every));
    json_object_set_new(o, "cpu_us_a_message", json_real(cpu_a_message(source, target, messages)));
    if (v->streams && ns > 0) {
        json_object_set_new(o, "gbps", json_real(8.0 * x->t->size * messages / ns));
        json_object_set_new(o, "messages_per_s", json_real(1e9 * messages / ns));
    }
    if (x->hist.samples > 0)
        json_object_set_new(o, "latency", lab_record_hist(&x->hist));
    if (x->batches.count > 0)
        json_object_set_new(o, "batches_ns", batches_json(&x->batches));
    return o;
}

static int drive_trial(struct lab_end *e, const struct lab_trial *t, json_t *trials, uint64_t *p50)
{
    json_t *target = NULL;
    struct lab_try *x = calloc(1, sizeof(*x));
    if (x == NULL) {
        snprintf(e->message, sizeof(e->message), "out of memory");
        return -ENOMEM;
    }
    x->e = e;
    x->t = t;
    json_t *o = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "experiment", (json_int_t)t->experiment,
                          "variant", (json_int_t)t->variant, "size", (json_int_t)t->size, "depth",
                          (json_int_t)t->depth, "rounds", (json_int_t)t->rounds, "write_ns",
                          (json_int_t)t->write_ns, "rest_ns", (json_int_t)t->rest_ns);
    int error = lab_session_send(e, "case", o);
    if (error == 0)
        error = run_trial(x, &target);
    if (error == 0) {
        json_t *source = end_json(x);
        json_array_append_new(trials, trial_json(x, source, target));
        json_decref(source);
        *p50 = lab_hist_permille(&x->hist, 500);
    }
    json_decref(target);
    free(x);
    return error;
}

/* Sizes are the experiment's own where nothing else is measured and others were asked for. */
static struct lab_list sizes_of(const struct lab_end *e, const struct lab_experiment_kind *k)
{
    bool asked = e->experiments_only && (e->settings.given >> lab_settings_find("size") & 1) != 0;
    const struct lab_list *from = asked ? &e->settings.sizes : &k->sizes;
    struct lab_list sizes = {0};
    for (uint32_t i = 0; i < from->count; i++) {
        uint32_t size = from->value[i], most = e->rig.pool.slot_bytes;
        size = size < k->smallest ? k->smallest : size > most ? most : size;
        size -= size % k->granule;
        bool there = false; /* a trial is found again by its size */
        for (uint32_t n = 0; n < sizes.count; n++)
            there |= sizes.value[n] == size;
        if (!there)
            sizes.value[sizes.count++] = size;
    }
    return sizes;
}

/* The experiments of a run, while they are done. */
struct doing {
    struct lab_end *e;
    lab_progress *progress;
    unsigned step, steps;
};

static bool has(const struct lab_end *e, const struct lab_trial *t)
{
    const struct lab_experiment_kind *k = kinds[t->experiment];
    return k->has == NULL || k->has(e, t);
}

static bool is_asked_for(const struct lab_end *e, unsigned experiment)
{
    return (e->settings.experiments >> experiment & 1) != 0;
}

unsigned lab_experiment_trials(const struct lab_end *e)
{
    unsigned count = 0;
    for (unsigned x = LAB_NO_EXPERIMENT + 1; x < LAB_EXPERIMENTS; x++) {
        if (!is_asked_for(e, x))
            continue;
        const struct lab_list sizes = sizes_of(e, kinds[x]);
        for (uint32_t i = 0; i < sizes.count; i++)
            for (unsigned v = 0; v < kinds[x]->variant_count; v++)
                count += has(
                    e, &(struct lab_trial){.experiment = x, .variant = v, .size = sizes.value[i]});
    }
    return count;
}

static int drive_size(struct doing *d, unsigned experiment, uint32_t size, json_t *trials)
{
    const struct lab_experiment_kind *k = kinds[experiment];
    struct lab_end *e = d->e;
    uint64_t p50 = 0, first = 0;
    int error = 0;
    for (unsigned v = 0; v < k->variant_count && error == 0; v++) {
        const struct lab_trial t = {
            .experiment = experiment,
            .variant = v,
            .size = size,
            .depth = k->variants[v].streams ? MANY : 1,
            .rounds = e->settings.iterations != 0 ? e->settings.iterations : LAB_TRIAL_ROUNDS,
            .write_ns = first,
            .rest_ns = RESTS * first,
        };
        char doing[64], what[96];
        snprintf(doing, sizeof(doing), "trying %s of experiment %s", k->variants[v].name, k->name);
        e->control.doing = doing;
        if (has(e, &t)) {
            snprintf(what, sizeof(what), "%s: %s, %u bytes", k->name, k->variants[v].name, size);
            d->progress(what, d->step++, d->steps);
            error = drive_trial(e, &t, trials, &p50);
        }
        e->control.doing = "between trials";
        if (v == 0) /* a writer as fast as a reader, who rests for some Reads: it is found both
                       at work and at rest */
            first = p50 < MAX_WRITE_NS ? p50 : MAX_WRITE_NS;
    }
    return error;
}

/* The source polls unless it sleeps; the target, too, where messages go to and fro. */
static const char *doubt_of(const struct lab_variant *v, const json_t *trial)
{
    const json_t *source = json_object_get(trial, "source"),
                 *target = json_object_get(trial, "target");
    if (json_integer_value(json_object_get(trial, "rounds")) < LAB_VERDICT_LEAST_MESSAGES)
        return "few messages";
    if (v->sleeps)
        return NULL;
    bool lacks = lab_verdict_lacks_cpu(lab_verdict_cpu_percent(source)) ||
                 (v->halves && lab_verdict_lacks_cpu(lab_verdict_cpu_percent(target)));
    return lacks ? "no CPU" : NULL;
}

void lab_experiment_judge(const struct lab_experiment_kind *k, json_t *experiment)
{
    const json_t *trials = json_object_get(experiment, "trials");
    unsigned doubtful = 0;
    size_t i;
    json_t *t;
    json_array_foreach(trials, i, t)
    {
        const char *name = json_string_value(json_object_get(t, "variant")), *doubt = NULL;
        for (unsigned v = 0; v < k->variant_count; v++)
            if (strcmp(k->variants[v].name, name) == 0)
                doubt = doubt_of(&k->variants[v], t);
        if (doubt != NULL)
            json_object_set_new(t, "doubt", json_string(doubt));
        doubtful += doubt != NULL;
    }
    k->judge(experiment);
    if (doubtful > 0)
        json_object_set_new(
            experiment, "summary",
            json_sprintf("%s; times of %u of %zu ways are in doubt: of few messages, or the "
                         "scheduler's where an end that polls had no CPU of its own",
                         json_string_value(json_object_get(experiment, "summary")), doubtful,
                         json_array_size(trials)));
}

static int drive_experiment(struct doing *d, unsigned experiment, json_t *experiments)
{
    const struct lab_experiment_kind *k = kinds[experiment];
    const struct lab_list sizes = sizes_of(d->e, k);
    json_t *trials = json_array(), *tried = json_array();
    int error = 0;
    for (uint32_t i = 0; i < sizes.count && error == 0; i++) {
        json_array_append_new(tried, json_integer((json_int_t)sizes.value[i]));
        error = drive_size(d, experiment, sizes.value[i], trials);
    }
    json_t *o = json_pack("{s:s,s:s,s:o,s:o}", "name", k->name, "about", k->about, "sizes", tried,
                          "trials", trials);
    if (error == 0)
        lab_experiment_judge(k, o);
    json_array_append_new(experiments, o);
    return error;
}

int lab_experiment_drive(struct lab_end *e, struct lab_run *run, lab_progress *progress)
{
    struct doing d = {e, progress, run->count, run->steps};
    int error = 0;
    for (unsigned i = LAB_NO_EXPERIMENT + 1; i < LAB_EXPERIMENTS && error == 0; i++)
        if (is_asked_for(e, i))
            error = drive_experiment(&d, i, run->experiments);
    return error;
}

static bool parse_trial(struct lab_end *e, const json_t *o, struct lab_trial *t)
{
    uint64_t experiment, variant, size, depth;
    struct lab_control *c = &e->control;
    bool right = lab_control_number(c, o, "experiment", LAB_EXPERIMENTS - 1, &experiment) &&
                 lab_control_number(c, o, "variant", LAB_MAX_VARIANTS - 1, &variant) &&
                 lab_control_number(c, o, "size", e->rig.pool.slot_bytes, &size) &&
                 lab_control_number(c, o, "depth", MANY, &depth) &&
                 lab_control_number(c, o, "rounds", INT64_MAX / 4, &t->rounds) &&
                 lab_control_number(c, o, "write_ns", MAX_WRITE_NS, &t->write_ns) &&
                 lab_control_number(c, o, "rest_ns", MAX_REST_NS, &t->rest_ns);
    if (!right) {
        lab_message_copy(e->message, c->message);
        return false;
    }
    t->experiment = (unsigned)experiment;
    t->variant = (unsigned)variant;
    t->size = (uint32_t)size;
    t->depth = (uint32_t)depth;
    const struct lab_experiment_kind *k = kinds[experiment];
    right = k != NULL && variant < k->variant_count && size >= k->smallest &&
            size % k->granule == 0 && depth > 0 && e->rig.pool.slots >= LAB_TRIAL_SLOTS;
    if (!right)
        snprintf(e->message, sizeof(e->message), "the peer sent no right 'experiment'");
    return right;
}

int lab_experiment_serve(struct lab_end *e, const json_t *trial)
{
    struct lab_trial t;
    char doing[64];
    if (!parse_trial(e, trial, &t))
        return -EPROTO;
    snprintf(doing, sizeof(doing), "trying %s of experiment %s", variant_of(&t)->name,
             kinds[t.experiment]->name);
    struct lab_try *x = calloc(1, sizeof(*x));
    int error = -ENOMEM;
    e->control.doing = doing;
    if (x != NULL) {
        x->e = e;
        x->t = &t;
        error = run_trial(x, NULL);
    } else {
        snprintf(e->message, sizeof(e->message), "out of memory");
    }
    free(x);
    e->control.doing = "between cases";
    return error;
}

bool lab_experiment_failed(const json_t *experiments, json_t *findings)
{
    bool failed = false;
    size_t i;
    json_t *o;
    json_array_foreach(experiments, i, o)
    {
        bool passed = json_is_true(json_object_get(o, "passed"));
        failed |= !passed;
        json_array_append_new(findings,
                              json_sprintf("%sexperiment %s: %s", passed ? "" : "WRONG DATA: ",
                                           json_string_value(json_object_get(o, "name")),
                                           json_string_value(json_object_get(o, "summary"))));
    }
    return failed;
}

static const char *text(const json_t *o, const char *name)
{
    const char *t = json_string_value(json_object_get(o, name));
    return t != NULL ? t : "?";
}

static long long integer(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

static void write_counts(const json_t *end, const char *side, FILE *out)
{
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(end, "counts"), name, value)
    {
        if (json_integer_value(value) != 0)
            fprintf(out, "  %s %s %lld", side, name, (long long)json_integer_value(value));
    }
}

static void write_trial(const json_t *t, FILE *out)
{
    static const char *const points[] = {"p50_ns", "p99_ns", "max_ns"};
    const json_t *latency = json_object_get(t, "latency");
    const json_t *source = json_object_get(t, "source"), *target = json_object_get(t, "target");
    char size[24];
    fprintf(out, "%-42s %7s %7lld", text(t, "variant"),
            lab_report_bytes((uint64_t)integer(t, "size"), size), integer(t, "rounds"));
    for (unsigned i = 0; i < sizeof(points) / sizeof(points[0]); i++)
        if (latency != NULL)
            fprintf(out, " %8.1f", (double)integer(latency, points[i]) / 1e3);
        else
            fprintf(out, " %8s", "-");
    fprintf(out, " %8.1f", json_number_value(json_object_get(t, "cpu_us_a_message")));
    if (json_object_get(t, "gbps") != NULL)
        fprintf(out, "  %s Gbit/s",
                lab_report_number(json_number_value(json_object_get(t, "gbps")), size));
    write_counts(source, "source", out);
    write_counts(target, "target", out);
    if (json_object_get(t, "doubt") != NULL)
        fprintf(out, "  in doubt: %s", text(t, "doubt"));
    fputc('\n', out);
}

static void write_words(const json_t *experiment, FILE *out)
{
    size_t i;
    json_t *t, *seen = json_object();
    json_array_foreach(json_object_get(experiment, "trials"), i, t)
    {
        const json_t *ends[] = {json_object_get(t, "source"), json_object_get(t, "target")};
        for (unsigned k = 0; k < 2; k++)
            if (json_object_get(ends[k], "first") != NULL)
                fprintf(out, "  the first of %s, %lld bytes: %s\n", text(t, "variant"),
                        integer(t, "size"), text(ends[k], "first"));
    }
    json_array_foreach(json_object_get(experiment, "trials"), i, t)
    {
        if (json_object_get(seen, text(t, "variant")) == NULL)
            fprintf(out, "  %s: proves: %s; does not prove: %s\n", text(t, "variant"),
                    text(t, "proves"), text(t, "not"));
        json_object_set_new(seen, text(t, "variant"), json_true());
    }
    json_decref(seen);
}

void lab_experiment_write(const json_t *experiments, FILE *out)
{
    size_t i, k;
    json_t *o, *t;
    json_array_foreach(experiments, i, o)
    {
        fprintf(out, "\nExperiment %s. %s.\n%-42s %7s %7s %8s %8s %8s %8s\n", text(o, "name"),
                text(o, "about"), "times in us, of the source's clock", "size", "rounds", "p50",
                "p99", "max", "CPU");
        json_array_foreach(json_object_get(o, "trials"), k, t) write_trial(t, out);
        fprintf(out, "CPU: of both ends, in us a message.\n");
        write_words(o, out);
        const json_t *passed = json_object_get(o, "passed");
        if (passed == NULL)
            fprintf(out, "Experiment %s broke off: nothing is said about it.\n", text(o, "name"));
        else
            fprintf(out, "Verdict of %s: %s%s.\n", text(o, "name"),
                    json_is_true(passed) ? "" : "WRONG DATA: ", text(o, "summary"));
    }
}
