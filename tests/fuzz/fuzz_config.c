/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_config.c: any text as settings in the environment, a line each, in the order of the table.
 */
#include <errno.h>

#include "host/host_priv.h"
#include "wire_props.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const names[] = {
    "VERBENA_FAULT",      "VERBENA_PCAP", "VERBENA_STATS",
    "VERBENA_ALLOW_UIDS", "VERBENA_GSO",  "VERBENA_FLOWS",
};

enum { SETTINGS = sizeof(names) / sizeof(names[0]), MAX_LINE_BYTES = 8192 };

/* What config_read says of each input would fill the log. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    FILE *nowhere = fopen("/dev/null", "w");
    (void)argc;
    (void)argv;
    if (nowhere != NULL)
        stderr = nowhere;
    return 0;
}

/* Without the library's copies, which it never frees. */
static void set(size_t i, const char *value, size_t n)
{
    static char text[SETTINGS][MAX_LINE_BYTES];
    unsetenv(names[i]);
    if (value == NULL || strlen(names[i]) + n + 2 > sizeof(text[i]))
        return;
    snprintf(text[i], sizeof(text[i]), "%s=%.*s", names[i], (int)n, value);
    putenv(text[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct host_config c;
    const char *at = (const char *)data, *end = at + n;
    for (size_t i = 0; i < SETTINGS; i++) {
        const char *stop = at == NULL ? NULL : memchr(at, '\n', (size_t)(end - at));
        set(i, at, at == NULL ? 0 : (size_t)((stop == NULL ? end : stop) - at));
        at = stop == NULL ? NULL : stop + 1;
    }
    int err = config_read(&c);
    if (err != 0 && err != -EINVAL)
        abort();
    if (c.udp.allow_uids > MAX_ALLOW_UIDS || (c.pcap_path != NULL && c.pcap_path[0] == '\0') ||
        (err == 0 && c.faulty != (getenv(names[0]) != NULL && getenv(names[0])[0] != '\0')))
        abort();
    return 0;
}
