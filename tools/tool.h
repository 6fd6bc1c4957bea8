/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tool.h: what the commands of the program `verbena` share: exit codes, the command table's rows
 * and how messages are given.
 */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <stdnoreturn.h>

/* As <sysexits.h> names them. A program that was run gives its own. */
enum tool_exit {
    TOOL_OK = 0,
    TOOL_USAGE = 64,       /* EX_USAGE: the command line is wrong */
    TOOL_UNAVAILABLE = 69, /* EX_UNAVAILABLE: this cannot work here, and the message says why */
    TOOL_FAILED = 70,      /* EX_SOFTWARE: a fault of ours, or of the system under us */
};

struct tool_command {
    const char *name;
    const char *summary; /* one line, for `verbena help` */
    /* argv[0] is "verbena NAME", for messages. Returns the exit code. */
    int (*main)(int argc, char **argv);
};

int cmd_run(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_lab(int argc, char **argv);
int cmd_fabric(int argc, char **argv);
int cmd_fabric_trace(int argc, char **argv);

/* "verbena: " and the message on stderr; then the program ends with the exit code. */
noreturn void tool_die(enum tool_exit code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
