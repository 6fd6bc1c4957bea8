/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * lab_trace.c: the capture is told to have the times of our clock, not those of the wall clock,
 * which may be set anew while we look.
 */
#include "lab/lab_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lab/lab_capture.h"

enum { REST_NS = 20000000 };

static const char *const names[LAB_POINTS] = {
    "make",      "made", "post",    "posted", "word",     "worded",
    "completed", "told", "checked", "answer", "answered", "acknowledged",
};

const char *lab_point_name(enum lab_point p)
{
    return names[p];
}

int lab_trace_start(struct lab_trace *t, uint64_t bytes, char message[LAB_MESSAGE_BYTES])
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) {
        snprintf(message, LAB_MESSAGE_BYTES,
                 "path: the capture of its packets may need %llu bytes, and files may have no more "
                 "than %llu here: raise ulimit -f",
                 (unsigned long long)bytes, (unsigned long long)limit.rlim_cur);
        return -EFBIG;
    }
    t->fd = memfd_create("verbena-lab-capture", 0);
    if (t->fd < 0) {
        snprintf(message, LAB_MESSAGE_BYTES, "no memory for a capture: %s", strerror(errno));
        return -EIO;
    }
    t->on = true;
    snprintf(t->capture, sizeof(t->capture), "/proc/self/fd/%d", t->fd);
    setenv("VERBENA_PCAP", t->capture, 1);
    setenv("VERBENA_PCAP_CLOCK", "monotonic", 1);
    return 0;
}

void lab_trace_stop(struct lab_trace *t)
{
    if (t->capture[0] == '\0')
        return;
    close(t->fd);
    t->capture[0] = '\0';
}

void lab_trace_rest(const struct lab_trace *t, uint64_t sequence)
{
    struct timespec rest = {0, REST_NS};
    if (t->on && sequence == t->sequence)
        nanosleep(&rest, NULL);
}

static uint8_t *read_file(const char *file, size_t *size)
{
    struct stat st;
    uint8_t *bytes = NULL;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 &&
        (bytes = malloc((size_t)st.st_size)) != NULL) {
        ssize_t n = read(fd, bytes, (size_t)st.st_size);
        *size = n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        close(fd);
    return bytes;
}

/* Of a long message there are thousands, and one end tells the other of them. */
static bool is_middle(uint32_t opcode)
{
    enum { OPERATION = 0x1f, SEND_MIDDLE = 1, WRITE_MIDDLE = 7, READ_RESPONSE_MIDDLE = 14 };
    uint32_t which = opcode & OPERATION;
    return which == SEND_MIDDLE || which == WRITE_MIDDLE || which == READ_RESPONSE_MIDDLE;
}

/* To those that are one with the packet before. */
static bool join(json_t *before, const struct lab_packet *p, bool sent)
{
    enum { PSN_MASK = 0xffffff };
    json_int_t count = 1;
    int opcode, psn, was_sent;
    if (before == NULL || !is_middle(p->opcode) ||
        json_unpack(before, "{s:b,s:i,s:i,s?I}", "sent", &was_sent, "opcode", &opcode, "psn", &psn,
                    "count", &count) != 0 ||
        (was_sent != 0) != sent || opcode != (int)p->opcode ||
        (((uint32_t)psn + (uint32_t)count) & PSN_MASK) != p->psn)
        return false;
    json_object_set_new(before, "count", json_integer(count + 1));
    json_object_set_new(before, "end_ns", json_integer((json_int_t)p->ns));
    return true;
}

static json_t *packets(const struct lab_trace *t)
{
    json_t *all = json_array();
    struct lab_capture c;
    struct lab_packet p;
    size_t size = 0;
    uint8_t *bytes = t->capture[0] != '\0' ? read_file(t->capture, &size) : NULL;
    bool open = bytes != NULL && lab_capture_open(&c, bytes, size);
    while (open && lab_capture_next(&c, &p)) {
        if (p.dest_qpn != t->own_qpn && p.dest_qpn != t->peer_qpn)
            continue;
        bool sent = p.dest_qpn == t->peer_qpn;
        if (!join(json_array_get(all, json_array_size(all) - 1), &p, sent))
            json_array_append_new(all,
                                  json_pack("{s:I,s:b,s:i,s:i}", "ns", (json_int_t)p.ns, "sent",
                                            sent, "opcode", (int)p.opcode, "psn", (int)p.psn));
    }
    free(bytes);
    return all;
}

json_t *lab_trace_json(const struct lab_trace *t)
{
    json_t *points = json_object();
    for (unsigned p = 0; p < LAB_POINTS; p++)
        if (t->at_ns[p] != 0)
            json_object_set_new(points, names[p], json_integer((json_int_t)t->at_ns[p]));
    return json_pack("{s:o,s:o}", "points", points, "packets", packets(t));
}
