/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_main.c: the program verbena-lab, which `verbena lab` becomes: commands and options, both ends
 * of a local run as two processes, reports and the exit code.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lab/lab_clock.h"
#include "lab/lab_door.h"
#include "lab/lab_history.h"
#include "lab/lab_html.h"
#include "lab/lab_hub.h"
#include "lab/lab_matrix.h"
#include "lab/lab_net.h"
#include "lab/lab_output.h"
#include "lab/lab_path.h"
#include "lab/lab_record.h"
#include "lab/lab_session.h"
#include "lab/lab_verdict.h"

/* As <sysexits.h> names them, and as the program `verbena` has them. */
enum { EXIT_USAGE = 64, EXIT_UNAVAILABLE = 69, EXIT_FAILED = 70, EXIT_BUSY = 75 };

enum { OPTION_BASE = 256, MAX_OPTIONS = 64 };

static struct lab_end end = {.listener = -1, .data = -1, .control = {.fd = -1}};
static int terminal = -1;     /* for progress */
static const char *role = ""; /* for messages of a local run's two processes */

static int __attribute__((format(printf, 2, 3))) complain(int code, const char *format, ...)
{
    va_list args;
    fflush(stdout);
    flockfile(stderr); /* who answers the door says so by this, too */
    fprintf(stderr, "verbena lab%s: ", role);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    funlockfile(stderr);
    return code;
}

/* At the end, help included: what could not be written is lost, and that is no success. */
static void close_stdout(void)
{
    bool failed = ferror(stdout) != 0, pending = __fpending(stdout) != 0;
    errno = 0;
    if (fclose(stdout) != 0 && (pending || errno != EBADF))
        failed = true;
    if (!failed)
        return;
    fprintf(stderr, "verbena lab: cannot write to standard output%s%s\n", errno != 0 ? ": " : "",
            errno != 0 ? strerror(errno) : "");
    fflush(NULL);
    _exit(EXIT_FAILED);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    char message[LAB_MESSAGE_BYTES];
    if (key < OPTION_BASE || key >= OPTION_BASE + (int)lab_setting_count)
        return ARGP_ERR_UNKNOWN;
    if (lab_settings_set(&end.settings, (unsigned)(key - OPTION_BASE), arg, message) != 0)
        argp_error(state, "--%s", message);
    return 0;
}

/* Options are the rows of the table that this command takes. */
static void parse(int argc, char **argv, unsigned roles, const char *doc)
{
    struct argp_option options[MAX_OPTIONS] = {{0}};
    unsigned n = 0;
    for (unsigned i = 0; i < lab_setting_count; i++) {
        const struct lab_setting *row = &lab_setting_table[i];
        if ((row->roles & roles) == 0 || n == MAX_OPTIONS - 1)
            continue;
        options[n++] = (struct argp_option){
            .name = row->name, .key = OPTION_BASE + (int)i, .arg = row->hint, .doc = row->help};
    }
    const struct argp argp = {.options = options, .parser = parse_option, .doc = doc};
    char message[LAB_MESSAGE_BYTES];
    lab_settings_init(&end.settings);
    argp_parse(&argp, argc, argv, 0, NULL, NULL);
    if (lab_settings_check(&end.settings, message) != 0)
        exit(complain(EXIT_USAGE, "--%s", message));
}

static bool json_to_stdout(void)
{
    return strcmp(end.settings.json, "-") == 0;
}

static void check_output(const char *option, const char *file)
{
    int error = file[0] == '\0' ? 0 : lab_output_check(file);
    if (error != 0)
        exit(complain(EXIT_UNAVAILABLE, "--%s: cannot write '%s': %s", option, file,
                      strerror(-error)));
}

/* Before the run, so that none is for nothing; what is there stays until there is something new. */
static void check_outputs(void)
{
    char message[LAB_STORE_MESSAGE_BYTES];
    char file[PATH_MAX], refused[3 * PATH_MAX];
    if (lab_history_file(end.settings.db, file, message) != 0)
        file[0] = '\0'; /* said at the end, when the run cannot be kept */
    if (lab_output_refused(file, end.settings.json, end.settings.html, refused, sizeof(refused)))
        exit(complain(EXIT_USAGE, "%s", refused));
    if (end.settings.html[0] != '\0' && lab_html_missing() != NULL)
        exit(complain(EXIT_UNAVAILABLE, "--html: %s", lab_html_missing()));
    if (!json_to_stdout())
        check_output("json", end.settings.json);
    check_output("html", end.settings.html);
    if (lab_history_check(end.settings.db, message) != 0)
        exit(complain(EXIT_UNAVAILABLE, "--db: no run can be kept: %s", message));
}

/* Where progress is seen, or -1. A launcher hands on what its ranks say to its own standard error,
 * which may be a terminal while ours is a pipe to it. */
static int find_terminal(bool launched)
{
    char path[64];
    if (isatty(STDERR_FILENO) == 1)
        return STDERR_FILENO;
    if (!launched)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getppid(), STDERR_FILENO);
    int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && isatty(fd) != 1) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void show_progress(const char *what, unsigned index, unsigned count)
{
    enum { WIDTH = 30 };
    unsigned full = count > 0 ? index * WIDTH / count : 0;
    if (terminal >= 0)
        dprintf(terminal, "\r\033[K[%.*s%.*s] %u/%u %s", (int)full,
                "##############################", (int)(WIDTH - full),
                "..............................", index, count, what);
}

static void end_progress(void)
{
    if (terminal >= 0)
        dprintf(terminal, "\r\033[K");
}

/* Paths are told instead of figures, which are of one message each. */
static int write_text(const json_t *record, FILE *out)
{
    size_t i;
    json_t *c;
    int failed = end.trace.on ? 0 : lab_report_write(record, out);
    json_array_foreach(json_object_get(record, "cases"), i, c)
    {
        const json_t *path = json_object_get(c, "path");
        if (failed == 0 && path != NULL)
            failed = lab_path_write(path, out);
    }
    return failed;
}

/* code, or that it has failed. */
static int write_file(const char *option, const char *name,
                      int (*write)(const json_t *record, FILE *out), const json_t *record, int code)
{
    int failed = lab_output_write(name, write, record);
    return failed == 0 ? code
                       : complain(EXIT_FAILED, "--%s: cannot write '%s': %s", option, name,
                                  strerror(-failed));
}

/* What cannot be written is told, and the run has failed. */
static int write_record(const json_t *record, int (*write)(const json_t *record, FILE *out),
                        bool broken_off)
{
    int code =
        broken_off
            ? EXIT_UNAVAILABLE
            : (int)json_integer_value(json_object_get(json_object_get(record, "verdict"), "exit"));
    int failed = json_to_stdout() ? lab_record_write(record, stdout) : write(record, stdout);
    if (failed != 0)
        code = complain(EXIT_FAILED, "cannot write the report: %s", strerror(-failed));
    if (end.settings.json[0] != '\0' && !json_to_stdout())
        code = write_file("json", end.settings.json, lab_record_write, record, code);
    if (end.settings.html[0] != '\0')
        code = write_file("html", end.settings.html, lab_html_write, record, code);
    return code;
}

/* The user's own history is for convenience: that it cannot be written is told, and no failure of
 * the run. One that was asked for is. */
static int keep(const json_t *record, int code)
{
    char file[PATH_MAX], message[LAB_STORE_MESSAGE_BYTES];
    const char *db = end.settings.db;
    int64_t run = lab_history_keep(record, db, file, message);
    if (run > 0 && !json_to_stdout())
        printf("This is run %lld in %s; `verbena lab history' compares runs.\n", (long long)run,
               file);
    if (run < 0)
        complain(0, "--db: the run is not kept: %s", message);
    return run < 0 && db[0] != '\0' ? EXIT_FAILED : code;
}

static int report(const struct lab_run *run, const char *error)
{
    json_t *record = lab_record_make(&end, run, error);
    int code = keep(record, write_record(record, write_text, error != NULL));
    json_decref(record);
    return code;
}

/* Both ends know by now, so that one reason is not told as two. */
static int drive(int fd, const uint8_t key[LAB_KEY_BYTES])
{
    struct lab_run run = {0};
    terminal = find_terminal(false);
    int error = lab_session_open(&end, fd, key);
    if (error == 0)
        error = lab_session_drive(&end, &run, show_progress);
    end_progress();
    int code = end.control.busy ? EXIT_BUSY : EXIT_UNAVAILABLE;
    if (error == 0)
        code = report(&run, NULL);
    else if (run.count > 0 || json_array_size(run.experiments) > 0)
        report(&run, end.message);
    lab_session_close(&end, error != 0);
    if (error != 0)
        complain(code, "%s", end.message);
    lab_run_clear(&run);
    return error == -EPROTO && run.count == 0 ? EXIT_UNAVAILABLE : code;
}

static void tell_turned_away(const char *who, const char *why)
{
    complain(0, "%s is turned away: %s", who, why);
}

/* timeout 0: waits for ever. */
static int serve(const uint8_t key[LAB_KEY_BYTES], uint64_t timeout_ns)
{
    static struct lab_door door;
    end.turned_away = tell_turned_away;
    if (role[0] == '\0') { /* nobody else knows the key of a local run */
        memcpy(door.key, key, sizeof(door.key));
        end.door = &door;
    }
    int error = lab_session_accept(&end, key, timeout_ns);
    if (error == 0)
        error = lab_session_serve(&end);
    bool told_by_peer = end.control.peer_knows;
    lab_session_close(&end, error != 0);
    /* In a local run the source tells what the target said. */
    if (error != 0 && (role[0] == '\0' || told_by_peer))
        complain(0, "%s", end.message);
    return error == 0 ? 0 : EXIT_UNAVAILABLE;
}

static int serve_local(const uint8_t key[LAB_KEY_BYTES], pid_t parent)
{
    role = " (target)";
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        return EXIT_FAILED;
    end.serving = true;
    end.settings.given = 0;
    return serve(key, end.settings.timeout_ns);
}

/* Its status. What goes on after its time, or was stopped and hears nothing, is killed. */
static int end_child(pid_t child, uint64_t limit_ns)
{
    const struct timespec nap = {.tv_nsec = 2000000};
    uint64_t until_ns = lab_now_ns() + limit_ns;
    int status = 0;
    pid_t ended = 0;
    while ((ended = waitpid(child, &status, WNOHANG)) == 0 && lab_now_ns() < until_ns)
        nanosleep(&nap, NULL);
    if (ended == 0) {
        complain(0, "the process %d, which worked for this one, does not end and is killed",
                 (int)child);
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    return status;
}

/* Both ends as two processes. */
static int run_local(void)
{
    uint8_t key[LAB_KEY_BYTES];
    char message[LAB_MESSAGE_BYTES];
    lab_key_random(key);
    end.one_clock = true;
    end.listener = lab_net_listen("127.0.0.1", 0, message);
    if (end.listener < 0)
        return complain(EXIT_UNAVAILABLE, "%s", message);
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        return complain(EXIT_UNAVAILABLE, "fork: %s", strerror(errno));
    if (child == 0)
        exit(serve_local(key, parent));
    int fd =
        lab_net_connect("127.0.0.1", lab_net_port(end.listener), end.settings.timeout_ns, message);
    int code = fd < 0 ? complain(EXIT_UNAVAILABLE, "%s", message) : drive(fd, key);
    int status = end_child(child, fd < 0 ? 0 : end.settings.timeout_ns);
    if (code == LAB_EXIT_PASSED && status != 0)
        code = complain(EXIT_FAILED, "the target's process ended with status 0x%x", status);
    return code;
}

static int cmd_local(int argc, char **argv)
{
    parse(argc, argv, LAB_ROLE_LOCAL, "Measures between two processes of this machine.");
    check_outputs();
    return run_local();
}

static void read_key(uint8_t key[LAB_KEY_BYTES])
{
    char message[LAB_MESSAGE_BYTES];
    if (end.settings.key[0] == '\0')
        exit(complain(EXIT_USAGE,
                      "--key: is missing; `verbena lab key FILE' makes one, both ends need "
                      "the same"));
    if (lab_key_read(end.settings.key, key, message) != 0)
        exit(complain(EXIT_UNAVAILABLE, "--%s", message));
}

/* With --peer the target is there, else here. */
static int run_either(void)
{
    uint8_t key[LAB_KEY_BYTES];
    char message[LAB_MESSAGE_BYTES];
    if (end.settings.peer[0] == '\0')
        return run_local();
    read_key(key);
    int fd = lab_net_connect(end.settings.peer, (uint16_t)end.settings.port,
                             end.settings.timeout_ns, message);
    return fd < 0 ? complain(EXIT_UNAVAILABLE, "%s", message) : drive(fd, key);
}

static int cmd_path(int argc, char **argv)
{
    parse(argc, argv, LAB_ROLE_PATH,
          "Shows the path of one message of each operation between two processes of this machine, "
          "or to a machine where `verbena lab serve' waits.");
    lab_settings_for_path(&end.settings);
    check_outputs();
    return run_either();
}

/* The list of experiments may come first, as a word. */
static int cmd_experiment(int argc, char **argv)
{
    char message[LAB_MESSAGE_BYTES];
    const char *list = "torn,flag";
    unsigned place = (unsigned)lab_settings_find("experiment");
    if (argc > 1 && argv[1][0] != '-') {
        list = argv[1];
        argv[1] = argv[0];
        argv++;
        argc--;
    }
    parse(argc, argv, LAB_ROLE_EXPERIMENT,
          "Shows what a torn Read is and how an application learns that data are here, between two "
          "processes of this machine, or to a machine where `verbena lab serve' waits.");
    if ((end.settings.given >> place & 1) == 0 &&
        lab_settings_set(&end.settings, place, list, message) != 0)
        return complain(EXIT_USAGE, "--%s", message);
    if (lab_settings_check(&end.settings, message) != 0)
        return complain(EXIT_USAGE, "--%s", message);
    if (end.settings.experiments >> (LAB_NO_EXPERIMENT + 1) == 0)
        return complain(EXIT_USAGE, "--experiment: none leaves nothing to do");
    end.experiments_only = true;
    end.settings.baseline = 0;
    check_outputs();
    return run_either();
}

static int cmd_run(int argc, char **argv)
{
    uint8_t key[LAB_KEY_BYTES];
    parse(argc, argv, LAB_ROLE_RUN,
          "Measures between here and a machine where `verbena lab serve' waits.");
    if (end.settings.peer[0] == '\0')
        return complain(EXIT_USAGE, "--peer: is missing: where does `verbena lab serve' run?");
    if (end.settings.key[0] == '\0')
        read_key(key);
    check_outputs();
    return run_either();
}

static int cmd_serve(int argc, char **argv)
{
    uint8_t key[LAB_KEY_BYTES];
    char message[LAB_MESSAGE_BYTES];
    parse(argc, argv, LAB_ROLE_SERVE,
          "Waits for one `verbena lab run', and is its other end. Settings that are given here "
          "must be "
          "the same there.");
    read_key(key);
    end.serving = true;
    end.listener = lab_net_listen(end.settings.listen, (uint16_t)end.settings.port, message);
    if (end.listener < 0)
        return complain(EXIT_UNAVAILABLE, "%s", message);
    const char *at = end.settings.listen;
    printf("Waits at port %u of %s for a `verbena lab run' with the same key.\n",
           (unsigned)end.settings.port, at[0] != '\0' ? at : "all addresses");
    fflush(stdout); /* what fails is told at the end */
    return serve(key, 0);
}

/* What the leader does beside its own worker. */
static int lead(const struct lab_ranks *ranks, int listener)
{
    struct lab_schedule schedule;
    unsigned machine[LAB_MAX_RANKS];
    static struct lab_hub hub; /* large */
    for (unsigned i = 0; i < ranks->count; i++)
        machine[i] = ranks->rank[i].machine;
    int error = lab_schedule_make(&schedule, machine, ranks->count);
    if (error == 0)
        hub.outcomes = calloc(schedule.meeting_count, sizeof(*hub.outcomes));
    if (hub.outcomes == NULL)
        return complain(EXIT_UNAVAILABLE, "out of memory for %u ranks", ranks->count);
    hub.ranks = ranks;
    hub.settings = &end.settings;
    hub.schedule = &schedule;
    hub.lobby.listener = listener;
    hub.progress = show_progress;
    terminal = find_terminal(true);
    error = lab_hub_lead(&hub);
    end_progress();
    json_t *record = lab_matrix_make(&hub, error != 0 ? hub.message : NULL);
    int code = keep(record, write_record(record, lab_matrix_write, error != 0));
    if (error != 0)
        code = complain(EXIT_UNAVAILABLE, "%s", hub.message);
    for (unsigned i = 0; i < schedule.meeting_count; i++) {
        json_decref(hub.outcomes[i].record);
        free(hub.outcomes[i].error);
    }
    json_decref(record);
    free(hub.outcomes);
    lab_schedule_clear(&schedule);
    return code;
}

/* Rank 0 speaks for all, and its exit code is that of the launcher: others end with 0 when it knows
 * what is wrong. */
static int take_rank(const struct lab_ranks *ranks, int listener)
{
    char message[LAB_MESSAGE_BYTES];
    if (ranks->own != 0) {
        close(listener);
        return lab_worker_run(ranks, &end.settings, message) == 0
                   ? 0
                   : complain(EXIT_UNAVAILABLE, "rank %u: %s", ranks->own, message);
    }
    check_outputs();
    pid_t leader = getpid(), child = fork();
    if (child < 0)
        return complain(EXIT_UNAVAILABLE, "fork: %s", strerror(errno));
    if (child > 0) {
        int code = lead(ranks, listener);
        end_child(child, end.settings.timeout_ns);
        return code;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != leader)
        _exit(EXIT_FAILED);
    close(listener);
    _exit(lab_worker_run(ranks, &end.settings, message) == 0 ? 0 : EXIT_UNAVAILABLE);
}

static int cmd_mpi(int argc, char **argv)
{
    struct lab_network network;
    struct lab_boot boot;
    static struct lab_ranks ranks;
    uint8_t key[LAB_KEY_BYTES];
    char message[LAB_MESSAGE_BYTES];
    parse(argc, argv, LAB_ROLE_RANKS,
          "Measures between all processes that mpirun has started: mpirun -np N verbena lab mpi.");
    lab_settings_for_ranks(&end.settings);
    if (lab_network_parse(&network, end.settings.network, message) != 0)
        return complain(EXIT_USAGE, "--%s", message);
    lab_key_random(key);
    int listener = lab_net_listen("", 0, message);
    if (listener < 0)
        return complain(EXIT_UNAVAILABLE, "%s", message);
    json_t *addresses = lab_addresses_own(&network);
    json_t *self = lab_ranks_self(&end.settings, addresses, lab_net_port(listener), key);
    char *text = json_dumps(self, JSON_COMPACT);
    json_decref(self);
    json_decref(addresses);
    int code = 0, error = lab_boot_gather(&boot, text, end.settings.timeout_ns, message);
    free(text);
    if (error != 0)
        return complain(error == -ENOENT || error == -ERANGE ? EXIT_USAGE : EXIT_UNAVAILABLE, "%s",
                        message);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* a launcher that is killed leaves nobody behind */
    error = lab_ranks_read(&ranks, &boot, message);
    if (error == 0)
        code = take_rank(&ranks, listener);
    else if (boot.rank == 0)
        code = complain(EXIT_UNAVAILABLE, "%s", message);
    lab_boot_clear(&boot);
    lab_ranks_clear(&ranks);
    return code;
}

static int cmd_key(int argc, char **argv)
{
    char message[LAB_MESSAGE_BYTES];
    if (argc != 2 || argv[1][0] == '-') {
        fputs(
            "Usage: verbena lab key FILE\n"
            "Makes FILE with a new key, for --key of `verbena lab serve' and `verbena lab run'.\n",
            argc == 2 && strcmp(argv[1], "--help") == 0 ? stdout : stderr);
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : EXIT_USAGE;
    }
    return lab_key_make(argv[1], message) == 0 ? 0 : complain(EXIT_UNAVAILABLE, "%s", message);
}

static const struct {
    const char *name;
    int (*main)(int argc, char **argv);
} commands[] = {
    {"local",      cmd_local       },
    {"path",       cmd_path        },
    {"experiment", cmd_experiment  },
    {"serve",      cmd_serve       },
    {"run",        cmd_run         },
    {"mpi",        cmd_mpi         },
    {"history",    lab_history_main},
    {"key",        cmd_key         },
};

int main(int argc, char **argv)
{
    atexit(close_stdout);
    argp_err_exit_status = EXIT_USAGE;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write says EFBIG then, and what is half written goes */
    for (unsigned i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        static char name[32];
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        snprintf(name, sizeof(name), "verbena lab %s", commands[i].name);
        argv[1] = name;
        program_invocation_name = name;
        program_invocation_short_name = name;
        return commands[i].main(argc - 1, argv + 1);
    }
    return complain(EXIT_USAGE,
                    "is followed by local, path, experiment, serve, run, mpi, history or key; "
                    "`verbena help lab' tells more");
}
