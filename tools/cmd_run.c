/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * cmd_run.c: `verbena run`: puts the software NIC before a program by LD_PRELOAD and becomes that
 * program; with --stats it stays as its parent. What cannot work is refused before it starts.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "host/congestion_option.h"
#include "mounts.h"
#include "port/port_fault.h"
#include "preload.h"
#include "program.h"
#include "spawn.h"
#include "stats.h"
#include "tool.h"

enum { OPTION_PCAP = 256, OPTION_FAULT, OPTION_STATS, OPTION_NS, OPTION_CC };

struct run {
    const char *pcap;
    const char *fault;
    const char *cc;
    bool ns;
    bool stats;
    const char *stats_file; /* NULL: stderr */
    char **program;         /* argv of it; NULL-terminated */
};

static const struct argp_option options[] = {
    {"pcap",                                                                   OPTION_PCAP, "FILE", 0,
     "Write every packet sent or received to FILE, as the wire has it (pcap)", 0},
    {"fault",                                                                  OPTION_FAULT, "SPEC", 0,
     "Make the network bad. SPEC is a comma list, for example "
     "drop=1%,dup=0.1%,reorder=1%:50us,corrupt=0.01%,ce=5%,delay=20us,down=5s+2s,seed=7", 0},
    {"cc", OPTION_CC, "NAME", 0,
     "Congestion control: dcqcn-hw, dcqcn-paper, ztr-target, ztr-template, timely or none, and "
     "settings as verbena(7) has them", 0},
    {"ns",                                                                        OPTION_NS, NULL, 0,
     "Show the files of devices by private mounts, for programs that a preloaded library does not "
     "reach", 0},
    {"stats",OPTION_STATS, "FILE", OPTION_ARG_OPTIONAL,
     "At the end, print the counters of the program and its children to FILE (default: stderr)", 0},
    {0                                                                      },
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct run *r = state->input;
    switch (key) {
    case OPTION_PCAP:
        r->pcap = arg;
        return 0;
    case OPTION_FAULT:
        r->fault = arg;
        return 0;
    case OPTION_CC:
        r->cc = arg;
        return 0;
    case OPTION_NS:
        r->ns = true;
        return 0;
    case OPTION_STATS:
        r->stats = true;
        r->stats_file = arg;
        return 0;
    case ARGP_KEY_ARG:
        r->program = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (r->program == NULL)
            argp_error(state, "no program given");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp run_argp = {
    .options = options,
    .parser = parse_option,
    .args_doc = "[--] PROGRAM [ARGUMENT...]",
    .doc = "Runs PROGRAM with its RDMA calls answered by the software NIC."
           "\vThe exit code is PROGRAM's own; or 64 wrong usage, 69 PROGRAM cannot work and the "
           "message says why, 70 failed. See verbena-run(1).",
};

/* Makes the file anew and tells the library its full path: the program may change its folder. */
static void set_file(const char *variable, const char *file, const char *option)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        tool_die(TOOL_UNAVAILABLE, "%s: cannot write '%s': %s", option, file, strerror(errno));
    close(fd);
    char *path = realpath(file, NULL);
    if (path == NULL)
        tool_die(TOOL_FAILED, "%s: '%s': %s", option, file, strerror(errno));
    preload_setenv(variable, path);
    free(path);
}

static void set_fault(const char *spec)
{
    struct fault_spec parsed;
    char message[FAULT_MESSAGE_BYTES];
    if (fault_parse(spec, &parsed, message) != 0)
        tool_die(TOOL_USAGE, "--fault: %s", message);
    preload_setenv("VERBENA_FAULT", spec);
}

static void set_cc(const char *text)
{
    struct congestion_config parsed;
    char message[CONGESTION_MESSAGE_BYTES];
    if (congestion_parse(text, &parsed, message) != 0)
        tool_die(TOOL_USAGE, "--cc: %s", message);
    preload_setenv("VERBENA_CC", text);
}

/* Where the processes leave their counters. */
static void make_stats(char path[PATH_MAX])
{
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] != '/')
        folder = "/tmp";
    if (snprintf(path, PATH_MAX, "%s/verbena-stats-XXXXXX", folder) >= PATH_MAX)
        tool_die(TOOL_FAILED, "TMPDIR is too long");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        tool_die(TOOL_UNAVAILABLE, "--stats: cannot make a file in %s: %s", folder,
                 strerror(errno));
    close(fd);
    preload_setenv("VERBENA_STATS", path);
}

/* Opened before the program runs, so that a wrong name is told at once. */
static FILE *open_stats_output(const char *file)
{
    if (file == NULL)
        return stderr;
    FILE *f = fopen(file, "we");
    if (f == NULL)
        tool_die(TOOL_UNAVAILABLE, "--stats: cannot write '%s': %s", file, strerror(errno));
    return f;
}

/* Ends this process as the program ended: its exit code, or the same signal. */
static noreturn void end_as(int status)
{
    if (!WIFSIGNALED(status))
        exit(WEXITSTATUS(status));
    struct rlimit no_core = {0, 0};
    fflush(NULL);
    setrlimit(RLIMIT_CORE, &no_core); /* the program's own core is the useful one */
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    exit(128 + WTERMSIG(status)); /* a signal that does not end us */
}

static noreturn void run_with_stats(const struct run *r, const char *path)
{
    char gathered[PATH_MAX];
    FILE *out = open_stats_output(r->stats_file);
    make_stats(gathered);
    int status = spawn_wait(path, r->program);
    int error = errno;
    signal(SIGXFSZ, SIG_IGN); /* a write says EFBIG then */
    FILE *in = fopen(gathered, "re");
    unlink(gathered);
    if (status == -1)
        tool_die(TOOL_UNAVAILABLE, "'%s' cannot be started: %s", path, strerror(error));
    if (in == NULL)
        tool_die(TOOL_FAILED, "--stats: '%s' has gone", gathered);
    stats_print(in, out);
    fclose(in);
    if (fflush(out) != 0)
        tool_die(TOOL_FAILED, "--stats: cannot write: %s", file_limit_strerror(errno));
    end_as(status);
}

/* With mounts of its own it sees the files all the same. */
static bool sees_files(enum program_verdict v)
{
    return v == PROGRAM_STATIC || v == PROGRAM_OTHER_LIBC || v == PROGRAM_32_BIT;
}

static bool has_rights(enum program_verdict v)
{
    return v == PROGRAM_SETUID || v == PROGRAM_SETGID || v == PROGRAM_CAPABILITIES;
}

static void check_program(const char *name, struct program *p, bool ns)
{
    enum program_verdict v = program_check(name, p);
    if (v == PROGRAM_OK)
        return;
    if (ns && has_rights(v)) {
        /* The kernel then ignores them, as it does in a user namespace. */
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
            tool_die(TOOL_FAILED, "--ns: cannot give up rights: %s", strerror(errno));
        return;
    }
    if (v == PROGRAM_UNREADABLE)
        fprintf(stderr,
                "verbena: warning: '%s' cannot be read, so whether it can work is unknown\n",
                p->path);
    else if (ns && sees_files(v))
        fprintf(stderr, "verbena: warning: '%s' sees the devices, but cannot use them: it %s\n",
                p->path, program_reason(v));
    else if (p->interpreter)
        tool_die(TOOL_UNAVAILABLE, "'%s' needs '%s', which %s", name, p->path, program_reason(v));
    else if (v == PROGRAM_NOT_FOUND)
        tool_die(TOOL_UNAVAILABLE, "'%s' not found", name);
    else
        tool_die(TOOL_UNAVAILABLE, "'%s' %s", p->path, program_reason(v));
}

int cmd_run(int argc, char **argv)
{
    struct run r = {0};
    struct program p;
    argp_parse(&run_argp, argc, argv, ARGP_IN_ORDER, NULL, &r);
    check_program(r.program[0], &p, r.ns);
    preload_set(!r.ns);
    if (r.fault != NULL)
        set_fault(r.fault);
    if (r.cc != NULL)
        set_cc(r.cc);
    if (r.pcap != NULL)
        set_file("VERBENA_PCAP", r.pcap, "--pcap");
    if (r.ns)
        mounts_enter();
    if (r.stats)
        run_with_stats(&r, p.file);
    execv(p.file, r.program);
    tool_die(TOOL_UNAVAILABLE, "'%s' cannot be started: %s", p.file, strerror(errno));
}
