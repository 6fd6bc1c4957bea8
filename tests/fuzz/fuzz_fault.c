/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_fault.c: any text as a fault specification. What is taken means the same when it is written
 * out in full and read again; what is refused changes nothing and says why.
 */
#include <errno.h>
#include <inttypes.h>

#include "port/port_fault.h"
#include "wire_props.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void print(const struct fault_spec *s, char *out, size_t cap)
{
    const uint32_t unit = FAULT_PPB / 100;
#define PERCENT(ppb) (ppb) / unit, (ppb) % unit
    int used = snprintf(out, cap,
                        "drop=%u.%07u%%,dup=%u.%07u%%,corrupt=%u.%07u%%,reorder=%u.%07u%%:%" PRIu64
                        "ns,delay=%" PRIu64 "ns,down=%" PRIu64 "ns+%" PRIu64 "ns,seed=%" PRIu64,
                        PERCENT(s->drop_ppb), PERCENT(s->dup_ppb), PERCENT(s->corrupt_ppb),
                        PERCENT(s->reorder_ppb), s->reorder_ns, s->delay_ns, s->down_at_ns,
                        s->down_ns, s->seed);
#undef PERCENT
    PROP(used > 0 && (size_t)used < cap);
}

static bool equal(const struct fault_spec *a, const struct fault_spec *b)
{
    return a->drop_ppb == b->drop_ppb && a->dup_ppb == b->dup_ppb &&
           a->corrupt_ppb == b->corrupt_ppb && a->reorder_ppb == b->reorder_ppb &&
           a->reorder_ns == b->reorder_ns && a->delay_ns == b->delay_ns &&
           a->down_at_ns == b->down_at_ns && a->down_ns == b->down_ns && a->seed == b->seed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct fault_spec before = {.drop_ppb = 1, .seed = 2};
    struct fault_spec spec = before, again;
    char message[FAULT_MESSAGE_BYTES], whole[400], *text = malloc(n + 1);
    PROP(text != NULL);
    memcpy(text, data, n);
    text[n] = '\0';
    int err = fault_parse(text, &spec, message);
    PROP(memchr(message, '\0', sizeof(message)) != NULL);
    if (err != 0) {
        PROP(err == -EINVAL && message[0] != '\0' && equal(&spec, &before));
    } else {
        PROP(message[0] == '\0');
        PROP(spec.drop_ppb <= FAULT_PPB && spec.dup_ppb <= FAULT_PPB &&
             spec.corrupt_ppb <= FAULT_PPB && spec.reorder_ppb <= FAULT_PPB);
        print(&spec, whole, sizeof(whole));
        PROP(fault_parse(whole, &again, message) == 0 && equal(&spec, &again));
    }
    free(text);
    return 0;
}
