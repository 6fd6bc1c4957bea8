/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * main.c: the program `verbena`: finds the command in a table and calls it. Each command parses its
 * own options.
 */
#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

static const struct tool_command commands[] = {
    {"run",     "run a program on the software NIC",                     cmd_run    },
    {"devices", "list the devices, their addresses and the path in use", cmd_devices},
    {"lab",     "measure and explain an RDMA path, against TCP",         cmd_lab    },
    {"fabric",  "simulate a data-centre network, packet by packet",      cmd_fabric },
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

noreturn void tool_die(enum tool_exit code, const char *format, ...)
{
    va_list args;
    fflush(stdout);
    fputs("verbena: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(code);
}

/* At the end of every command, and of all help: what could not be written is lost, and that is no
 * success. Who closed stdout beforehand, and was told nothing, lost nothing. */
static void close_stdout(void)
{
    bool failed = ferror(stdout) != 0, pending = __fpending(stdout) != 0;
    errno = 0;
    if (fclose(stdout) != 0 && (pending || errno != EBADF))
        failed = true;
    if (!failed)
        return;
    fprintf(stderr, "verbena: cannot write to standard output%s%s\n", errno != 0 ? ": " : "",
            errno != 0 ? strerror(errno) : "");
    fflush(NULL);
    _exit(TOOL_FAILED);
}

static const struct tool_command *find_command(const char *name)
{
    for (unsigned i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int call_command(const struct tool_command *c, int argc, char **argv)
{
    char name[64];
    snprintf(name, sizeof(name), "verbena %s", c->name);
    argv[0] = name;
    program_invocation_short_name = name;
    program_invocation_name = name;
    return c->main(argc, argv);
}

/* Options before the command only; the first word that is none ends the parsing (ARGP_IN_ORDER). */
static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    switch (key) {
    case 'V':
        printf("verbena %s\n", VERBENA_VERSION);
        exit(TOOL_OK);
    case ARGP_KEY_ARG:
        *(int *)state->input = state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_usage(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The list of commands is made from the table, so that help cannot forget one. */
static char *list_commands(int key, const char *text, void *input)
{
    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text;
    char *out = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&out, &bytes);
    if (f == NULL)
        return (char *)text;
    fputs("Commands:\n\n", f);
    for (unsigned i = 0; i < COMMANDS; i++)
        fprintf(f, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(f, "  %-10s %s\n\n", "help",
            "what a command does and its options: verbena help COMMAND");
    fputs(text, f);
    fclose(f);
    return out;
}

static const struct argp_option options[] = {
    {"version", 'V', NULL, 0, "Print the version", -1},
    {0    },
};

static const struct argp main_argp = {
    .options = options,
    .parser = parse_option,
    .args_doc = "COMMAND [ARGUMENT...]",
    .doc =
        "RDMA in software: runs RDMA programs on machines that have no RDMA hardware."
        "\vExit codes: that of the program that was run; else 64 wrong usage, 69 cannot work here, "
        "70 failed.",
    .help_filter = list_commands,
};

static int help(int argc, char **argv)
{
    if (argc < 2) {
        argp_help(&main_argp, stdout, ARGP_HELP_STD_HELP & ~(unsigned)ARGP_HELP_EXIT_OK,
                  (char *)"verbena");
        return TOOL_OK;
    }
    const struct tool_command *c = find_command(argv[1]);
    if (c == NULL)
        tool_die(TOOL_USAGE, "no command named '%s'; 'verbena help' lists them", argv[1]);
    char *asked[] = {argv[0], (char *)"--help", NULL};
    return call_command(c, 2, asked);
}

int main(int argc, char **argv)
{
    int first = 0;
    atexit(close_stdout);
    argp_err_exit_status = TOOL_USAGE;
    argp_parse(&main_argp, argc, argv, ARGP_IN_ORDER, NULL, &first);
    if (first == 0)
        return TOOL_USAGE;
    if (strcmp(argv[first], "help") == 0)
        return help(argc - first, argv + first);
    const struct tool_command *c = find_command(argv[first]);
    if (c == NULL)
        tool_die(TOOL_USAGE, "no command named '%s'; 'verbena help' lists them", argv[first]);
    return call_command(c, argc - first, argv + first);
}
