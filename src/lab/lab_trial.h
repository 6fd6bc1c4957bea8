/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lab_trial.h: experiments, which show one thing about RDMA by doing it in several ways. Each way
 * with one size is a trial: its source and its target have a queue pair of their own, and memory
 * that they use as they like, for to break the rules of slots is what experiments are for.
 */
#ifndef LAB_LAB_TRIAL_H
#define LAB_LAB_TRIAL_H

#include "lab/lab_case.h"

enum { LAB_TRIAL_COUNTS = 9, LAB_TRIAL_ROUNDS = 1000, LAB_MAX_VARIANTS = 8 };

struct lab_trial {
    unsigned experiment; /* enum lab_experiment */
    unsigned variant;    /* of its own */
    uint32_t size;
    uint32_t depth;
    uint64_t rounds;
    uint64_t write_ns; /* torn: the target takes so long to write a version */
    uint64_t rest_ns;  /* and rests so long at most before the next */
};

/* One end of a trial. */
struct lab_try {
    struct lab_end *e;
    const struct lab_trial *t;
    struct lab_queue q;
    struct lab_side side;
    struct lab_patience patience;
    unsigned spins;
    bool told;                  /* the target: the source has seen the end */
    uint64_t begun_ns;          /* of the first round */
    uint64_t heard_ns;          /* the target: when the source last said something; 0: not yet */
    uint64_t elapsed_ns;        /* the source */
    uint64_t done;              /* rounds */
    struct lab_batches batches; /* of rounds */
    uint64_t batch_rounds;      /* in each */
    struct lab_hist hist;       /* the source */
    /* What the queue pair was set to, for the record. */
    uint32_t mtu_bytes, reads, inlined, receives;
    uint32_t signal_every; /* of bare: how many requests for each that asks for a completion */
    uint64_t counts[LAB_TRIAL_COUNTS];
    char first[LAB_MESSAGE_BYTES]; /* of what the trial is about, in words */
};

struct lab_variant {
    const char *name;
    const char *proves;
    const char *fails; /* to prove */
    bool sleeps;
    bool halves;  /* a round is to and fro: a latency is half of it */
    bool streams; /* many under way: what counts is throughput */
};

/* One experiment. */
struct lab_experiment_kind {
    const char *name, *about;
    const struct lab_variant *variants;
    unsigned variant_count;
    struct lab_list sizes;      /* unless others are asked for */
    uint32_t smallest, granule; /* others are made larger, and whole multiples */
    const char *const *counts;  /* names of the counts, up to LAB_TRIAL_COUNTS, or NULL */
    bool inlines;               /* small messages go within the work request */
    /* Is there such a trial? NULL: there are all. */
    bool (*has)(const struct lab_end *e, const struct lab_trial *t);
    /* Do receives take data, not notes? NULL: never. */
    bool (*receives_data)(const struct lab_trial *t);
    /* Before the peer may send: NULL where nothing is to be done. */
    int (*prepare)(struct lab_try *x);
    int (*source)(struct lab_try *x);
    int (*target)(struct lab_try *x);
    /* Sets "passed" and "summary" of the experiment by its trials. */
    void (*judge)(json_t *experiment);
};

extern const struct lab_experiment_kind lab_torn, lab_flag, lab_bare;

/* For the ends of trials; each 0 (or what is told) or -errno and e->message. */
/* The source: another round? Not when there were enough, or for too long. */
bool lab_try_more(const struct lab_try *x);
/* A round is over. */
void lab_try_over(struct lab_try *x);
/* The source, within a round that may have no end: is it time to give it up? The first one has as
 * long as may pass without anything moving. */
bool lab_try_late(const struct lab_try *x);
/* Whoever waits calls it each time; the target hears of the end by it. */
int lab_try_look(struct lab_try *x);
/* The target, where no data that come show that the source lives: it has to say so. */
int lab_try_overdue(struct lab_try *x);
/* 1 and *d, or 0 when there is nothing; then it has slept, if this variant sleeps. */
int lab_try_poll(struct lab_try *x, struct lab_done *d);
/* Until the last request that asked for it is complete. */
int lab_try_complete(struct lab_try *x);
int lab_try_post(struct lab_try *x, struct ibv_send_wr *wr, bool ask);
/* A request of n bytes from or to here, of the far address; complete when it returns. */
int lab_try_one(struct lab_try *x, struct ibv_send_wr *wr, void *here, uint32_t n, uint64_t far);
/* The target: nothing to do until the end. */
int lab_try_idle(struct lab_try *x);
/* To and fro: each end tells the other by writing, and goes on when it is told. Contents are made
 * and looked at by both if look is true. */
enum lab_tell { LAB_TELL_LAST_BYTE, LAB_TELL_WRITE, LAB_TELL_ATOMIC, LAB_TELL_IMM, LAB_TELL_SEND };
enum { LAB_TELL_WHOLE, LAB_TELL_EARLY /* data are not whole where they should be */ };
int lab_tell_rounds(struct lab_try *x, enum lab_tell how, bool look);
/* The far slot, and words that both ends have behind their slots. */
uint8_t *lab_try_slot(const struct lab_try *x, uint32_t slot);
uint64_t lab_try_far_slot(const struct lab_try *x, uint32_t slot);
uint64_t *lab_try_word(const struct lab_try *x, unsigned word);
uint64_t lab_try_far_word(const struct lab_try *x, unsigned word);

/* Of an experiment's record: its trials, and figures of one of them. */
const json_t *lab_trial_find(const json_t *experiment, const char *variant, long long size);
long long lab_trial_count(const json_t *trial, const char *side, const char *name);
long long lab_trial_p50(const json_t *trial);

#endif
