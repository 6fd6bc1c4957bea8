/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * failure.c: worlds that fail, and those that take the process with them: candidates run in child
 * processes, so that an assertion, a sanitizer or an endless loop is a failure like any other.
 */
#include "failure.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shrink.h"

enum {
    SHRINK_TRIES = 20000,
    SHRINK_SECONDS = 30,
    CANDIDATE_SECONDS = 20, /* then it hangs */
    SEED_SECONDS = 120,
    LINE_CHOICES_BYTES = 400, /* a longer text is only in the file */
    EXIT_TRACED = 99,
};

/* The sanitizers', where there is one. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static const char crash_kind[] = "the process died";

static void *shared(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert(p != MAP_FAILED);
    return p;
}

/* ---- children ---- */

static struct world *traced; /* of the child that shows its trace */

static void show_and_die(void)
{
    world_print(traced);
    fflush(stdout);
    _exit(EXIT_TRACED);
}

static void show_on_signal(int number)
{
    (void)number;
    show_and_die();
}

static void show_on_death(struct world *w)
{
    traced = w;
    signal(SIGABRT, show_on_signal);
    signal(SIGALRM, show_on_signal);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(show_and_die);
    else
        signal(SIGSEGV, show_on_signal);
}

static void child_run(struct world *w, const struct tape *start, uint64_t seed, bool show,
                      struct verdict *out)
{
    struct tape tape = *start;
    signal(SIGABRT, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(NULL);
    else
        signal(SIGSEGV, SIG_DFL);
    if (show)
        show_on_death(w);
    else if (dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO) < 0)
        _exit(1);
    alarm(CANDIDATE_SECONDS);
    world_run(w, &tape, seed);
    out->failed = w->failed;
    out->kind = w->why_kind;
    memcpy(out->why, w->why, sizeof(out->why));
    if (show)
        world_print(w);
    fflush(stdout);
    _exit(0);
}

static void probe(struct world *w, const struct tape *start, uint64_t seed, bool show,
                  struct verdict *out)
{
    static struct verdict *verdict;
    int status;
    if (verdict == NULL)
        verdict = shared(sizeof(*verdict));
    memset(verdict, 0, sizeof(*verdict));
    fflush(stdout);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0)
        child_run(w, start, seed, show, verdict);
    while (waitpid(child, &status, 0) != child)
        continue;
    *out = *verdict;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    out->failed = true;
    out->kind = crash_kind;
    if (WIFSIGNALED(status))
        snprintf(out->why, sizeof(out->why), "%s: %s", crash_kind, strsignal(WTERMSIG(status)));
    else
        snprintf(out->why, sizeof(out->why), "%s: exit code %d", crash_kind, WEXITSTATUS(status));
}

void failure_probe(struct world *w, const struct tape *start, uint64_t seed, struct verdict *out)
{
    probe(w, start, seed, false, out);
}

/* ---- shrinking ---- */

struct search {
    struct world *world;
    const char *kind;
    time_t until;
};

/* Fails in the same way? Another failure may be another bug, or the harness's limits. */
static bool fails(void *context, const struct choices *candidate)
{
    struct search *s = context;
    struct tape tape;
    struct verdict v;
    if (time(NULL) > s->until)
        return false;
    tape_choices(&tape, candidate);
    probe(s->world, &tape, candidate->seed, false, &v);
    return v.failed && v.kind == s->kind;
}

static void write_tape(const struct choices *c, const char *name)
{
    const char *folder = getenv("VERBENA_TAPES");
    size_t bytes = choices_print(c, NULL, 0) + 1;
    char path[500], *text = malloc(bytes);
    assert(text != NULL);
    choices_print(c, text, bytes);
    snprintf(path, sizeof(path), "%s%s%s.tape", folder == NULL ? "" : folder,
             folder == NULL ? "" : "/", name);
    FILE *f = fopen(path, "we");
    if (f != NULL) {
        fprintf(f, "choices %s\n", text);
        fclose(f);
        printf("# smaller: test_world --tape %s\n", path);
    }
    if (bytes <= LINE_CHOICES_BYTES || f == NULL)
        printf("# smaller: test_world --choices '%s'\n", text);
    free(text);
}

static void shrink_and_show(struct world *w, const struct tape *start, uint64_t seed,
                            const char *name)
{
    struct choices *list = shared(sizeof(*list)); /* the child fills it */
    struct tape tape = *start;
    struct verdict v;
    choices_init(list, true);
    list->seed = seed;
    list->small = start->small;
    tape.record = list;
    probe(w, &tape, seed, false, &v);
    size_t before = list->n;
    struct search search = {w, v.kind, time(NULL) + SHRINK_SECONDS};
    struct shrink s = {.list = list, .fails = fails, .context = &search, .max_tries = SHRINK_TRIES};
    if (!v.failed || !fails(&search, list)) {
        printf("# its choices alone do not fail: not made smaller\n");
        tape = *start;
    } else {
        shrink_run(&s);
        size_t set = 0;
        for (size_t i = 0; i < list->n; i++)
            set += list->value[i] != 0;
        printf("# from %zu choices to %zu, %zu of them not 0, in %u tries\n", before, list->n, set,
               s.tries);
        write_tape(list, name);
        tape_choices(&tape, list);
    }
    probe(w, &tape, seed, true, &v);
    printf("# %s\n", v.why);
    choices_fini(list);
    munmap(list, sizeof(*list));
}

void failure_report(struct world *w, const struct tape *start, uint64_t seed, const char *name,
                    bool shrink)
{
    struct verdict v;
    if (shrink)
        shrink_and_show(w, start, seed, name);
    else
        probe(w, start, seed, true, &v);
}

/* ---- death of the whole process ---- */

static const char *watch_program;
static bool watch_shrink;
static char watch_seed[20];

static void die(void)
{
    char text[100];
    int n = snprintf(text, sizeof(text), "\n# the process died; replay: test_world --seed %s\n",
                     watch_seed);
    if (write(STDOUT_FILENO, text, (size_t)n) != n || !watch_shrink)
        return;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execl("/proc/self/exe", watch_program, "--seed", watch_seed, (char *)NULL);
}

static void die_on_signal(int number)
{
    die();
    signal(number, SIG_DFL);
    raise(number);
}

void failure_watch(const char *program, bool shrink)
{
    watch_program = program;
    watch_shrink = shrink;
    signal(SIGABRT, die_on_signal);
    signal(SIGALRM, die_on_signal);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(die);
    else
        signal(SIGSEGV, die_on_signal);
}

void failure_watch_seed(uint64_t seed)
{
    snprintf(watch_seed, sizeof(watch_seed), "0x%llx", (unsigned long long)seed);
    alarm(SEED_SECONDS);
}
