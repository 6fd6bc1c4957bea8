/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace_file.c: see trace_file.h. trace_filter.c has the filters.
 */
#include "scenario/trace_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"

/*
 * Header: magic, version, bytes of an event, room for events, events taken in all, nodes. The names
 * follow, each in its fixed room, then how many ports each node has, and zeros up to a whole event.
 */
enum {
    AT_VERSION = 8,
    AT_EVENT_BYTES = 12,
    AT_CAPACITY = 16,
    AT_EVENTS = 24,
    AT_NODES = 32,
    HEADER_BYTES = 64,
    VERSION = 2,
    PORTS_BYTES = 4, /* of the number of a node's ports */
    CHUNK_BYTES = 256 << 10,
};
static const char magic[8] = {'V', 'B', 'N', 'A', 'T', 'R', 'C', '\n'};

static void put_le64(uint8_t *p, uint64_t v)
{
    put_le32(p, (uint32_t)v);
    put_le32(p + 4, (uint32_t)(v >> 32));
}

static uint64_t get_le64(const uint8_t *p)
{
    return get_le32(p) | (uint64_t)get_le32(p + 4) << 32;
}

static uint64_t base_of(uint32_t nodes)
{
    uint64_t bytes = HEADER_BYTES + (uint64_t)nodes * (SCENARIO_NAME_BYTES + PORTS_BYTES);
    return (bytes + TRACE_EVENT_BYTES - 1) / TRACE_EVENT_BYTES * TRACE_EVENT_BYTES;
}

static void write_at(struct trace_writer *w, uint64_t at, const void *bytes, size_t n)
{
    if (w->error != 0)
        return;
    for (size_t done = 0; done < n && w->error == 0;) {
        ssize_t rc = pwrite(w->fd, (const uint8_t *)bytes + done, n - done, (off_t)(at + done));
        if (rc < 0 && errno != EINTR)
            w->error = errno;
        done += rc > 0 ? (size_t)rc : 0;
    }
}

/* As far as whole events go before the file's next CHUNK_BYTES begin: the system has pages of them
 * at once for half of what it asks for pieces of them; or up to where the ring ends. */
static uint32_t room(const struct trace_writer *w)
{
    uint64_t place = w->events % w->capacity, at = w->base + place * TRACE_EVENT_BYTES;
    uint64_t left = CHUNK_BYTES - at % CHUNK_BYTES;
    uint64_t n = (left < TRACE_EVENT_BYTES ? left + CHUNK_BYTES : left) / TRACE_EVENT_BYTES;
    return (uint32_t)(n < w->capacity - place ? n : w->capacity - place);
}

/* In memory a record is what it is in the file, where bytes go the same way. */
static void to_little_endian(struct fabric_record *r, uint32_t n)
{
    for (uint32_t i = 0; __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ && i < n; i++) {
        const struct fabric_record host = r[i];
        put_le64((uint8_t *)&r[i].when, host.when);
        put_le64((uint8_t *)&r[i].what, host.what);
        put_le64((uint8_t *)&r[i].how, host.how);
    }
}

static void flush(void *arg)
{
    struct trace_writer *w = arg;
    struct fabric_tracer *t = &w->tracer;
    uint64_t place = w->events % w->capacity;
    to_little_endian(t->record, t->count);
    write_at(w, w->base + place * TRACE_EVENT_BYTES, t->record,
             (size_t)t->count * TRACE_EVENT_BYTES);
    w->events += t->count;
    t->count = 0;
    t->room = room(w);
}

/* ports[]: little endian afterwards. */
static void write_header(struct trace_writer *w, const struct scenario *s, uint32_t *ports)
{
    uint8_t header[HEADER_BYTES] = {0};
    memcpy(header, magic, sizeof(magic));
    put_le32(header + AT_VERSION, VERSION);
    put_le32(header + AT_EVENT_BYTES, TRACE_EVENT_BYTES);
    put_le64(header + AT_CAPACITY, w->capacity);
    put_le32(header + AT_NODES, s->topology.nodes);
    write_at(w, 0, header, sizeof(header));
    uint64_t names = (uint64_t)s->topology.nodes * SCENARIO_NAME_BYTES;
    uint64_t numbers = (uint64_t)s->topology.nodes * PORTS_BYTES;
    for (uint32_t i = 0; i < s->topology.nodes; i++)
        put_le32((uint8_t *)&ports[i], ports[i]);
    write_at(w, HEADER_BYTES, s->name, (size_t)names);
    write_at(w, HEADER_BYTES + names, ports, (size_t)numbers);
    write_at(w, HEADER_BYTES + names + numbers, (uint8_t[TRACE_EVENT_BYTES]){0},
             (size_t)(w->base - HEADER_BYTES - names - numbers));
}

static bool fail(struct scenario_error *error, const char *path, const char *what)
{
    snprintf(error->text, sizeof(error->text), "%.400s: %s", path, what);
    return false;
}

/* That a frame came in follows from when it left: half the cost for nothing new. */
static uint32_t kinds_of(const struct trace_filter *filter)
{
    uint32_t kinds = 0;
    for (uint32_t i = 0; i < FABRIC_TRACE_KINDS; i++)
        if (trace_ranges_take(&filter->kind, i) && (filter->kind.count > 0 || i != TRACE_ARRIVE))
            kinds |= UINT32_C(1) << i;
    return kinds;
}

bool trace_writer_open(struct trace_writer *w, const char *path, uint64_t bytes,
                       const struct trace_filter *filter, struct scenario *s,
                       struct scenario_error *error)
{
    *w = (struct trace_writer){0};
    w->capacity = bytes / TRACE_EVENT_BYTES;
    if (w->capacity == 0)
        w->capacity = 1;
    w->base = base_of(s->topology.nodes);
    w->tracer.record = malloc(CHUNK_BYTES + TRACE_EVENT_BYTES);
    uint32_t *ports = trace_ports_create(&s->topology);
    bool ok = w->tracer.record != NULL && ports != NULL && trace_mask_make(&w->mask, filter, s);
    ok = ok ? output_open(&w->out, path, error) : fail(error, path, strerror(ENOMEM));
    if (ok) {
        w->fd = fileno(w->out.file);
        write_header(w, s, ports);
        ok = w->error == 0 || fail(error, path, strerror(w->error));
    }
    free(ports);
    if (!ok) {
        trace_writer_abandon(w);
        return false;
    }
    w->tracer.room = room(w);
    w->tracer.full = flush;
    w->tracer.arg = w;
    w->tracer.selective =
        filter->node.count + filter->port.count + filter->priority.count + filter->flow.count > 0;
    w->tracer.priorities = w->mask.priorities;
    w->tracer.port = w->mask.port;
    w->tracer.flow = w->mask.flow;
    s->config.trace_kinds = kinds_of(filter);
    s->config.tracer = &w->tracer;
    return true;
}

bool trace_writer_close(struct trace_writer *w, struct scenario_error *error)
{
    uint8_t events[8];
    flush(w);
    put_le64(events, w->events);
    write_at(w, AT_EVENTS, events, sizeof(events));
    bool ok = w->error == 0 || fail(error, w->out.path, strerror(w->error));
    ok = ok && output_commit(&w->out, error);
    trace_writer_abandon(w);
    return ok;
}

void trace_writer_abandon(struct trace_writer *w)
{
    output_abandon(&w->out);
    trace_mask_free(&w->mask);
    free(w->tracer.record);
    *w = (struct trace_writer){0};
}

static bool parse_header(struct trace_reader *r, struct scenario_error *error)
{
    uint8_t h[HEADER_BYTES];
    struct stat st;
    if (fread(h, 1, sizeof(h), r->file) != sizeof(h) || memcmp(h, magic, sizeof(magic)) != 0)
        return fail(error, r->path, "it is no trace of `verbena fabric run --trace`");
    if (get_le32(h + AT_VERSION) != VERSION || get_le32(h + AT_EVENT_BYTES) != TRACE_EVENT_BYTES)
        return fail(error, r->path, "a trace of another version of verbena; this one reads 2");
    r->capacity = get_le64(h + AT_CAPACITY);
    r->events = get_le64(h + AT_EVENTS);
    r->nodes = get_le32(h + AT_NODES);
    if (r->nodes > FABRIC_MAX_NODES || r->capacity == 0 ||
        r->capacity > UINT64_MAX / TRACE_EVENT_BYTES / 2)
        return fail(error, r->path, "the header of the trace makes no sense");
    r->base = base_of(r->nodes);
    uint64_t kept = r->events < r->capacity ? r->events : r->capacity;
    r->next = r->events - kept;
    if (fstat(fileno(r->file), &st) != 0 ||
        (uint64_t)st.st_size != r->base + kept * TRACE_EVENT_BYTES)
        return fail(error, r->path, "the trace is not whole: its run did not end, or it was cut");
    return true;
}

/* Node by node: the first of its ports, and behind the last node how many there are. */
static bool read_ports(struct trace_reader *r, struct scenario_error *error)
{
    for (uint32_t i = 0; i < r->nodes; i++) {
        uint8_t n[PORTS_BYTES];
        if (fread(n, 1, sizeof(n), r->file) != sizeof(n))
            return fail(error, r->path, "the ports of the nodes cannot be read");
        if (get_le32(n) > 2 * (uint32_t)FABRIC_MAX_LINKS - r->first_port[i])
            return fail(error, r->path, "the header of the trace makes no sense");
        r->first_port[i + 1] = r->first_port[i] + get_le32(n);
    }
    return true;
}

static bool read_nodes(struct trace_reader *r, struct scenario_error *error)
{
    r->name = calloc(r->nodes + (size_t)1, sizeof(*r->name));
    r->first_port = calloc(r->nodes + (size_t)1, sizeof(*r->first_port));
    if (r->name == NULL || r->first_port == NULL)
        return fail(error, r->path, strerror(errno));
    if (fread(r->name, sizeof(*r->name), r->nodes, r->file) != r->nodes)
        return fail(error, r->path, "the names of the nodes cannot be read");
    for (uint32_t i = 0; i < r->nodes; i++)
        r->name[i][SCENARIO_NAME_BYTES - 1] = '\0';
    if (!read_ports(r, error))
        return false;
    uint64_t at = r->base + r->next % r->capacity * TRACE_EVENT_BYTES;
    return fseeko(r->file, (off_t)at, SEEK_SET) == 0 || fail(error, r->path, strerror(errno));
}

bool trace_reader_open(struct trace_reader *r, const char *path, struct scenario_error *error)
{
    *r = (struct trace_reader){.path = path, .file = fopen(path, "rb")};
    if (r->file == NULL)
        return fail(error, path, strerror(errno));
    if (parse_header(r, error) && read_nodes(r, error))
        return true;
    trace_reader_close(r);
    return false;
}

/* From a port of the fabric to one of a node; false: there is none. */
static bool find_port(const struct trace_reader *r, struct fabric_trace *e)
{
    uint32_t low = 0, high = r->nodes; /* first_port[low] <= port < first_port[high] */
    if (e->port >= r->first_port[r->nodes])
        return false;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (r->first_port[middle] <= e->port)
            low = middle;
        else
            high = middle;
    }
    e->node = low;
    e->port -= r->first_port[low];
    return true;
}

int trace_reader_next(struct trace_reader *r, struct fabric_trace *e, struct scenario_error *error)
{
    uint8_t event[TRACE_EVENT_BYTES];
    if (r->next == r->events)
        return 0;
    if (r->next % r->capacity == 0 && fseeko(r->file, (off_t)r->base, SEEK_SET) != 0) {
        fail(error, r->path, strerror(errno));
        return -1;
    }
    if (fread(event, 1, sizeof(event), r->file) != sizeof(event)) {
        fail(error, r->path, ferror(r->file) != 0 ? strerror(errno) : "it ends too early");
        return -1;
    }
    fabric_record_read(
        &(struct fabric_record){get_le64(event), get_le64(event + 8), get_le64(event + 16)}, e);
    if (e->kind >= FABRIC_TRACE_KINDS || !find_port(r, e)) {
        fail(error, r->path, "there is an event that makes no sense");
        return -1;
    }
    r->next++;
    return 1;
}

void trace_reader_close(struct trace_reader *r)
{
    free(r->name);
    free(r->first_port);
    fclose(r->file);
}

uint32_t trace_reader_find(const void *reader, const char *name)
{
    const struct trace_reader *r = reader;
    for (uint32_t i = 0; i < r->nodes; i++)
        if (strcmp(r->name[i], name) == 0)
            return i;
    return UINT32_MAX;
}
