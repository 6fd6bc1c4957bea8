/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * marked_flow.c: a client that writes into the server's memory by one queue pair, and is told on
 * its stdin how many messages next; then it prints what the engine has counted. Whoever runs it
 * changes the network in between. Plain libibverbs; the counters are those in /sys.
 */
#include "rc_pair.h"

#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_BYTES = 16384, AHEAD = 8 };

static const char *const counters[] = {"rp_cnp_handled", "rp_slowed", "rp_recovered"};

static void print_counters(const struct rc_pair *p)
{
    for (unsigned i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        char path[256];
        unsigned long long value;
        snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
                 ibv_get_device_name(p->ctx->device), counters[i]);
        FILE *f = fopen(path, "r");
        if (f == NULL || fscanf(f, "%llu", &value) != 1)
            rc_fail("%s cannot be read", path);
        fclose(f);
        printf("%llu ", value);
    }
    putchar('\n');
    fflush(stdout);
}

static void write_all(struct rc_pair *p, unsigned long messages)
{
    for (unsigned long done = 0, posted = 0; done < messages; done++) {
        for (; posted < messages && posted < done + AHEAD; posted++)
            rc_post(p, IBV_WR_RDMA_WRITE, posted, 0, 0, MESSAGE_BYTES, IBV_SEND_SIGNALED);
        rc_expect(p, done);
    }
}

static void client(struct rc_pair *p)
{
    char line[32], more = 'm', done = 'd';
    while (fgets(line, sizeof(line), stdin) != NULL) {
        write_all(p, strtoul(line, NULL, 10));
        print_counters(p);
        rc_tcp_write(p, &more, 1); /* so that the server does not give us up */
    }
    rc_tcp_write(p, &done, 1);
}

int main(int argc, char **argv)
{
    struct rc_options o = {.bytes = MESSAGE_BYTES};
    struct rc_pair p;
    char said;
    rc_options(&o, argc, argv);
    rc_open(&p, &o);
    rc_new_qp(&p);
    if (o.host != NULL)
        client(&p);
    else
        do
            rc_tcp_read(&p, &said, 1);
        while (said == 'm');
    rc_close(&p);
    return 0;
}
