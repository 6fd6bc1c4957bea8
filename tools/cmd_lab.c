/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * cmd_lab.c: `verbena lab`: chooses the NIC and becomes the program verbena-lab, which knows the
 * rest. The lab is linked to the system's libibverbs; where the kernel shows no adapter, ours is
 * put before it.
 */
#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload.h"
#include "tool.h"

#define LAB "verbena-lab"

enum { OPTION_NIC = 256 };

enum nic { NIC_ANY, NIC_VERBENA, NIC_SYSTEM };

struct lab {
    enum nic nic;
    char **command; /* argv from the command on */
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct lab *l = state->input;
    switch (key) {
    case OPTION_NIC:
        if (strcmp(arg, "verbena") != 0 && strcmp(arg, "system") != 0)
            argp_error(state, "--nic: '%s' is neither verbena nor system", arg);
        l->nic = strcmp(arg, "verbena") == 0 ? NIC_VERBENA : NIC_SYSTEM;
        return 0;
    case ARGP_KEY_ARG:
        l->command = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (l->command == NULL)
            argp_error(state, "no command given");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"nic",    OPTION_NIC, "WHICH", 0,
     "verbena: the software NIC; system: the adapters of this machine. Without it: the adapters if "
     "there are any, else the software NIC", 0},
    {0},
};

static const struct argp lab_argp = {
    .options = options,
    .parser = parse_option,
    .args_doc = "COMMAND [OPTION...]",
    .doc =
        "Measures an RDMA path, checks every byte, and compares it with TCP."
        "\vCommands:\n\n"
        "  local      both ends here\n"
        "  path       the way of one message, step by step\n"
        "  experiment torn Reads, and flags against notifications\n"
        "  serve      the other end, waiting for one of the others\n"
        "  run        measure to where `serve' waits\n"
        "  mpi        between all that mpirun has started\n"
        "  history    list the runs that were made, show one again, compare several\n"
        "  key FILE   make the key that `serve' and `run' share\n\n"
        "`verbena lab COMMAND --help' lists the options. Exit codes: 0 passed, 1 a threshold was "
        "missed, 2 wrong data; 64 wrong usage, 69 cannot be measured and the message says why, 70 "
        "failed, 75 `serve' is busy with another peer. See verbena-lab(1).",
};

/* Whether the kernel knows a device, or we are within `verbena run` already, which shows its own.
 */
static bool has_adapter(void)
{
    DIR *d = opendir("/sys/class/infiniband");
    bool found = false;
    if (d == NULL)
        return false;
    for (struct dirent *e = readdir(d); e != NULL && !found; e = readdir(d))
        found = e->d_name[0] != '.';
    closedir(d);
    return found;
}

static bool preloaded(void)
{
    const char *before = getenv("LD_PRELOAD");
    return before != NULL && strstr(before, "libibverbs.so.1") != NULL;
}

/* Beside this program (build folder), else where it was installed. */
static void find_lab(char out[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - sizeof(LAB));
    if (n > 0) {
        out[n] = '\0';
        char *slash = strrchr(out, '/');
        memcpy(slash != NULL ? slash + 1 : out, LAB, sizeof(LAB));
        if (access(out, X_OK) == 0)
            return;
    }
    snprintf(out, PATH_MAX, "%s/" LAB, VERBENA_LIBEXECDIR);
    if (access(out, X_OK) != 0)
        tool_die(TOOL_UNAVAILABLE, "%s is neither beside this program nor in %s", LAB,
                 VERBENA_LIBEXECDIR);
}

int cmd_lab(int argc, char **argv)
{
    struct lab l = {0};
    char path[PATH_MAX];
    argp_parse(&lab_argp, argc, argv, ARGP_IN_ORDER, NULL, &l);
    find_lab(path);
    if (!preloaded() && (l.nic == NIC_VERBENA || (l.nic == NIC_ANY && !has_adapter())))
        preload_set(true);
    *--l.command = path; /* in the place of what stood before the command */
    execv(path, l.command);
    tool_die(TOOL_UNAVAILABLE, "'%s' cannot be started: %s", path, strerror(errno));
}
