/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
/*
 * trace_file.c: see trace_file.h. trace_filter.c has the filters.
 */
#include "scenario/trace_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"

/*
 * Header: magic, version, bytes of a block, blocks at once, blocks that are full, nodes, words of
 * the last block, events in all. The names follow, each in its fixed room, then how many ports each
 * node has, and zeros up to the first block.
 */
enum {
    AT_VERSION = 8,
    AT_BLOCK_BYTES = 12,
    AT_BLOCKS = 16,
    AT_FULL = 24,
    AT_NODES = 32,
    AT_LAST_WORDS = 36,
    AT_EVENTS = 40,
    HEADER_BYTES = 64,
    VERSION = 3,
    PORTS_BYTES = 4, /* of the number of a node's ports */
    WORD_BYTES = 8,
    LEAST_BLOCK_BYTES = 64,
    MOST_WORDS = 3, /* an event takes at most */
    AHEAD_BYTES = 16 << 20,
};
#define IS_PIPE "a trace is not written in order, so that a pipe cannot take it; a file is expected"
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

/* The first block may be shorter, but not too short for an event. */
static struct trace_ring ring_of(uint32_t nodes, uint32_t block_bytes, uint64_t blocks)
{
    uint64_t base = HEADER_BYTES + (uint64_t)nodes * (SCENARIO_NAME_BYTES + PORTS_BYTES);
    base = (base + WORD_BYTES - 1) / WORD_BYTES * WORD_BYTES;
    if (block_bytes - base % block_bytes < (1 + MOST_WORDS) * WORD_BYTES)
        base += block_bytes - base % block_bytes;
    return (struct trace_ring){base, blocks, block_bytes};
}

/* Where a block begins; where the one behind it would in an endless file, it ends. */
static uint64_t place(const struct trace_ring *r, uint64_t block)
{
    uint64_t i = block % r->blocks;
    return i == 0 ? r->base : r->base / r->block_bytes * r->block_bytes + i * r->block_bytes;
}

static uint32_t words_of(const struct trace_ring *r, uint64_t block)
{
    uint64_t from = place(r, block);
    return (uint32_t)((from / r->block_bytes + 1) * r->block_bytes - from) / WORD_BYTES;
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

/* The file's room is asked for in large pieces, which costs less than a page after the other. A
 * system that cannot, or has not so much, says the rest when it is written. */
static void reserve(struct trace_writer *w, uint64_t end)
{
    const struct trace_ring *r = &w->ring;
    uint64_t last = place(r, r->blocks - 1), most = last + words_of(r, r->blocks - 1) * WORD_BYTES;
    if (w->out.part == NULL || w->error != 0 || end <= w->reserved)
        return;
    uint64_t from = w->reserved, to = end + AHEAD_BYTES < most ? end + AHEAD_BYTES : most;
    bool got = fallocate(w->fd, FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from)) == 0;
    w->reserved = got ? to : UINT64_MAX;
}

/* Of the block so many words, behind which the room of one more is 0. */
static void write_block(struct trace_writer *w, uint32_t words)
{
    uint64_t at = place(&w->ring, w->full);
    for (uint32_t i = 0; __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ && i < words; i++)
        put_le64((uint8_t *)&w->block[i], w->block[i]);
    reserve(w, at + (uint64_t)words * WORD_BYTES);
    write_at(w, at, w->block, (size_t)words * WORD_BYTES);
}

static void begin_block(struct trace_writer *w)
{
    struct fabric_tracer *t = &w->tracer;
    w->block[0] = w->events;
    t->next = &w->block[1];
    t->enough = &w->block[words_of(&w->ring, w->full) - MOST_WORDS + 1];
    t->last_ps = FABRIC_TRACE_ANEW;
    t->longs = 0;
}

/* Events are counted here, zeros put behind them. How many words it has. */
static uint32_t end_block(struct trace_writer *w)
{
    struct fabric_tracer *t = &w->tracer;
    uint32_t words = words_of(&w->ring, w->full), used = (uint32_t)(t->next - w->block);
    w->events += (used - 1 - t->longs) / 2; /* two words each, and one more of these */
    memset(t->next, 0, (words - used) * (size_t)WORD_BYTES);
    return used;
}

static void block_full(void *arg)
{
    struct trace_writer *w = arg;
    end_block(w);
    write_block(w, words_of(&w->ring, w->full));
    w->full++;
    begin_block(w);
}

/* The last block, and what of the file is not needed: what was asked for, or was there before. */
static void write_end(struct trace_writer *w)
{
    const struct trace_ring *r = &w->ring;
    bool wrapped = w->full >= r->blocks;
    uint64_t last = wrapped ? r->blocks - 1 : w->full;
    uint32_t used = end_block(w);
    uint32_t words = wrapped ? words_of(r, w->full) : used;
    uint64_t bytes = place(r, last) + (uint64_t)(wrapped ? words_of(r, last) : used) * WORD_BYTES;
    uint8_t end[12];
    write_block(w, words);
    if (w->out.part != NULL && w->error == 0 && ftruncate(w->fd, (off_t)bytes) != 0)
        w->error = errno;
    put_le64(end, w->full);
    write_at(w, AT_FULL, end, 8);
    put_le32(end, used);
    put_le64(end + 4, w->events);
    write_at(w, AT_LAST_WORDS, end, 12);
}

/* ports[]: little endian afterwards. */
static void write_header(struct trace_writer *w, const struct scenario *s, uint32_t *ports)
{
    uint8_t header[HEADER_BYTES] = {0};
    memcpy(header, magic, sizeof(magic));
    put_le32(header + AT_VERSION, VERSION);
    put_le32(header + AT_BLOCK_BYTES, w->ring.block_bytes);
    put_le64(header + AT_BLOCKS, w->ring.blocks);
    put_le32(header + AT_NODES, s->topology.nodes);
    write_at(w, 0, header, sizeof(header));
    uint64_t names = (uint64_t)s->topology.nodes * SCENARIO_NAME_BYTES;
    uint64_t numbers = (uint64_t)s->topology.nodes * PORTS_BYTES;
    for (uint32_t i = 0; i < s->topology.nodes; i++)
        put_le32((uint8_t *)&ports[i], ports[i]);
    write_at(w, HEADER_BYTES, s->name, (size_t)names);
    write_at(w, HEADER_BYTES + names, ports, (size_t)numbers);
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

static struct trace_ring ring_for(uint32_t nodes, uint64_t bytes)
{
    uint64_t block = bytes / 4 / WORD_BYTES * WORD_BYTES;
    if (block > TRACE_BLOCK_BYTES)
        block = TRACE_BLOCK_BYTES;
    if (block < LEAST_BLOCK_BYTES)
        block = LEAST_BLOCK_BYTES;
    uint64_t blocks = bytes / block;
    return ring_of(nodes, (uint32_t)block, blocks < 2 ? 2 : blocks);
}

/* Blocks, and the header at the end, go to their places. */
static bool is_pipe(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

bool trace_writer_open(struct trace_writer *w, const char *path, uint64_t bytes,
                       const struct trace_filter *filter, struct scenario *s,
                       struct scenario_error *error)
{
    *w = (struct trace_writer){0};
    w->ring = ring_for(s->topology.nodes, bytes);
    w->block = malloc(w->ring.block_bytes);
    uint32_t *ports = trace_ports_create(&s->topology);
    bool ok = w->block != NULL && ports != NULL && trace_mask_make(&w->mask, filter, s);
    ok = ok || fail(error, path, strerror(ENOMEM));
    ok = ok && output_is_free(path, s, error) && (!is_pipe(path) || fail(error, path, IS_PIPE)) &&
         output_open(&w->out, path, error);
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
    w->tracer.full = block_full;
    w->tracer.arg = w;
    w->tracer.selective =
        filter->node.count + filter->port.count + filter->priority.count + filter->flow.count > 0;
    w->tracer.priorities = w->mask.priorities;
    w->tracer.port = w->mask.port;
    w->tracer.flow = w->mask.flow;
    s->config.trace_kinds = kinds_of(filter);
    s->config.tracer = &w->tracer;
    begin_block(w);
    return true;
}

bool trace_writer_close(struct trace_writer *w, struct scenario_error *error)
{
    write_end(w);
    bool ok = w->error == 0 || fail(error, w->out.path, strerror(w->error));
    ok = ok && output_commit(&w->out, error);
    trace_writer_abandon(w);
    return ok;
}

void trace_writer_abandon(struct trace_writer *w)
{
    output_abandon(&w->out);
    trace_mask_free(&w->mask);
    free(w->block);
    *w = (struct trace_writer){0};
}

/* Who writes one has it locked: see output.c. */
static bool is_left(int fd)
{
    char begin[sizeof(magic)];
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
           pread(fd, begin, sizeof(begin), 0) == sizeof(begin) &&
           memcmp(begin, magic, sizeof(begin)) == 0;
}

bool trace_clear_left(const char *folder)
{
    static const char end[] = ".part";
    DIR *d = opendir(folder);
    bool ok = d != NULL;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        size_t n = strlen(e->d_name);
        if (n < sizeof(end) || strcmp(e->d_name + n - (sizeof(end) - 1), end) != 0)
            continue;
        int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            continue; /* a link, or of somebody else */
        if (is_left(fd))
            ok = unlinkat(dirfd(d), e->d_name, 0) == 0 && ok;
        close(fd);
    }
    int error = errno;
    if (d != NULL)
        closedir(d);
    errno = error;
    return ok;
}

/* How long the file is, by its header. */
static uint64_t file_bytes(const struct trace_reader *r)
{
    uint64_t last = r->full < r->ring.blocks ? r->full : r->ring.blocks - 1;
    uint32_t words = last == r->full ? r->last_words : words_of(&r->ring, last);
    return place(&r->ring, last) + (uint64_t)words * WORD_BYTES;
}

static bool parse_header(struct trace_reader *r, struct scenario_error *error)
{
    uint8_t h[HEADER_BYTES];
    struct stat st;
    if (fread(h, 1, sizeof(h), r->file) != sizeof(h) || memcmp(h, magic, sizeof(magic)) != 0)
        return fail(error, r->path, "it is no trace of `verbena fabric run --trace`");
    if (get_le32(h + AT_VERSION) != VERSION)
        return fail(error, r->path, "a trace of another version of verbena; this one reads 3");
    uint32_t block_bytes = get_le32(h + AT_BLOCK_BYTES);
    uint64_t blocks = get_le64(h + AT_BLOCKS);
    r->full = get_le64(h + AT_FULL);
    r->nodes = get_le32(h + AT_NODES);
    r->last_words = get_le32(h + AT_LAST_WORDS);
    r->events = get_le64(h + AT_EVENTS);
    if (r->nodes > FABRIC_MAX_NODES || block_bytes < LEAST_BLOCK_BYTES ||
        block_bytes > TRACE_BLOCK_BYTES || block_bytes % WORD_BYTES != 0 || blocks < 2 ||
        blocks > UINT64_C(1) << 40)
        return fail(error, r->path, "the header of the trace makes no sense");
    r->ring = ring_of(r->nodes, block_bytes, blocks);
    if (fstat(fileno(r->file), &st) != 0 || r->last_words == 0 ||
        r->last_words > words_of(&r->ring, r->full) || (uint64_t)st.st_size != file_bytes(r))
        return fail(error, r->path, "the trace is not whole: its run did not end, or it was cut");
    r->block = r->full < blocks ? 0 : r->full - blocks + 1;
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
    return read_ports(r, error);
}

/* The next block; it begins with how many events were before it. */
static bool read_block(struct trace_reader *r, struct scenario_error *error)
{
    uint32_t words = r->block == r->full ? r->last_words : words_of(&r->ring, r->block);
    if (fseeko(r->file, (off_t)place(&r->ring, r->block), SEEK_SET) != 0)
        return fail(error, r->path, strerror(errno));
    if (fread(r->word, WORD_BYTES, words, r->file) != words)
        return fail(error, r->path, ferror(r->file) != 0 ? strerror(errno) : "it ends too early");
    for (uint32_t i = 0; __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ && i < words; i++)
        r->word[i] = get_le64((const uint8_t *)&r->word[i]);
    r->block++;
    r->count = words;
    r->at = 1;
    r->now_ps = FABRIC_TRACE_ANEW;
    return true;
}

/* The first block that is still there. */
static bool read_first(struct trace_reader *r, struct scenario_error *error)
{
    r->word = malloc(r->ring.block_bytes);
    if (r->word == NULL)
        return fail(error, r->path, strerror(errno));
    if (!read_block(r, error))
        return false;
    r->next = r->word[0];
    return r->next <= r->events || fail(error, r->path, "the header of the trace makes no sense");
}

bool trace_reader_open(struct trace_reader *r, const char *path, struct scenario_error *error)
{
    *r = (struct trace_reader){.path = path, .file = fopen(path, "rb")};
    if (r->file == NULL)
        return fail(error, path, strerror(errno));
    if (parse_header(r, error) && read_nodes(r, error) && read_first(r, error))
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
    unsigned words = 0;
    if (r->next == r->events)
        return 0;
    while ((words = fabric_trace_read(&r->word[r->at], r->count - r->at, &r->now_ps, e)) == 0 &&
           r->block <= r->full)
        if (!read_block(r, error))
            return -1;
    if (words == 0 || e->kind >= FABRIC_TRACE_KINDS || !find_port(r, e)) {
        fail(error, r->path, "there is an event that makes no sense");
        return -1;
    }
    r->at += words;
    r->next++;
    return 1;
}

void trace_reader_close(struct trace_reader *r)
{
    free(r->word);
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
