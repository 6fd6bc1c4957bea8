/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cc.h: congestion control of one sender: told what happens, it says how fast to send. It knows
 * neither packets nor timers; whoever sends asks for the rate, and comes again at the deadline if
 * it waits. All of it is integers: rates in bit/s, times in ns.
 */
#ifndef NIC_CC_CC_H
#define NIC_CC_CC_H

#include <stdbool.h>
#include <stdint.h>

#define CC_NEVER     UINT64_MAX
#define CC_NO_WINDOW UINT64_MAX

enum cc_algorithm {
    CC_NONE,
    CC_DCQCN,        /* by CNPs */
    CC_ZTR_TEMPLATE, /* by round-trip times, as the published template of the vendor */
    CC_ZTR_TARGET,   /* by round-trip times against a target; ours */
    CC_TIMELY,       /* by the slope of round-trip times */
    CC_HPCC,         /* by what switches write into packets */
    CC_ALGORITHMS
};

/* DCQCN (Zhu et al., SIGCOMM 2015), the reaction point. */
struct cc_dcqcn {
    uint32_t g_1024;             /* weight of a CNP in alpha, of 1024 */
    uint64_t alpha_period_ns;    /* without a CNP alpha shrinks */
    uint64_t decrease_period_ns; /* CNPs of so long are one cut; 0: each cuts at once */
    uint64_t increase_period_ns;
    uint64_t increase_bytes; /* the byte counter; 0: none */
    uint32_t recovery_steps; /* F */
    uint64_t additive_bps, hyper_bps;
};

struct cc_ztr {
    uint32_t dec_65536;     /* how much one cut takes, of 65536 */
    uint32_t add_1048576;   /* what is added, of the line rate * 2^20 */
    uint64_t relative_ns;   /* above the least time so much is congestion */
    uint64_t max_ns;        /* from here on it is severe */
    uint64_t first_min_ns;  /* the least time, before there is one */
    uint64_t target_add_ns; /* ztr-target: target = least + this / sqrt(share of the line) */
};

struct cc_timely {
    uint64_t low_ns, high_ns, min_rtt_ns;
    uint64_t step_bps;
    uint32_t beta_1024, ewma_1024;
};

struct cc_hpcc {
    uint64_t base_rtt_ps; /* T: of the longest way, empty. Whoever knows the network sets it */
    uint64_t step_bps;    /* W_AI over T */
    uint32_t eta_percent; /* of the link, to be used */
    uint32_t max_stage;   /* round trips in a row that only add */
};

enum { CC_MAX_HOPS = 5 };
/* Of the paper: 95 % and 5; and its rule that the 5 % are for so many flows as add at once: 20, so
 * a step is 1/400 of the link. */
enum { CC_HPCC_ETA_PERCENT = 95, CC_HPCC_STAGES = 5, CC_HPCC_PARTS = 20 * 20 };

/* What a switch writes into a packet that begins to leave by a port (INT). */
struct cc_hop {
    uint64_t time_ps;
    uint64_t tx_bytes;    /* that left by it before */
    uint32_t queue_bytes; /* that wait behind it */
    uint32_t rate_mbps;
};

struct cc_path {
    uint32_t hops;
    uint32_t id; /* of the ports together: the same, the same way */
    struct cc_hop hop[CC_MAX_HOPS];
};
_Static_assert(sizeof(struct cc_path) == 128, "two cache lines");

struct cc_params {
    enum cc_algorithm algorithm;
    uint64_t line_bps, min_bps;
    struct cc_dcqcn dcqcn;
    struct cc_ztr ztr;
    struct cc_timely timely;
    struct cc_hpcc hpcc;
};

struct cc_dcqcn_state {
    uint64_t target_bps;
    uint64_t alpha; /* of 2^40 */
    uint32_t time_steps, byte_steps;
    uint64_t bytes; /* since the byte counter last ticked */
    uint64_t alpha_at_ns, decrease_at_ns, increase_at_ns;
    bool active;       /* a CNP has come; until then it is at line rate and nothing ticks */
    bool cnp_alpha;    /* one came in this alpha period */
    bool cnp_decrease; /* and one that waits for its cut */
};

struct cc_ztr_state {
    uint64_t min_ns;
    uint32_t rate; /* of 2^20 */
    uint32_t calm; /* rounds without congestion */
    bool cnp, nak;
};

struct cc_timely_state {
    uint64_t rtt_ns; /* the last one; 0: none */
    int64_t diff_ns; /* smoothed */
    uint32_t calm;
};

struct cc_hpcc_state {
    uint64_t reference_bps; /* W_c over T */
    uint64_t used;          /* U, of 2^20 */
    uint64_t round_ends;    /* an acknowledgement beyond this byte begins the next one */
    uint32_t stage;
};

struct cc {
    uint64_t rate_bps;
    union {
        struct cc_dcqcn_state dcqcn;
        struct cc_ztr_state ztr;
        struct cc_timely_state timely;
        struct cc_hpcc_state hpcc;
    };
};

/* An algorithm: each may be NULL. */
struct cc_ops {
    void (*start)(struct cc *c, const struct cc_params *p);
    void (*cnp)(struct cc *c, const struct cc_params *p, uint64_t now_ns);
    void (*nak)(struct cc *c, const struct cc_params *p);
    void (*rtt)(struct cc *c, const struct cc_params *p, uint64_t now_ns, uint64_t rtt_ns);
    void (*sent)(struct cc *c, const struct cc_params *p, uint64_t bytes);
    void (*advance)(struct cc *c, const struct cc_params *p, uint64_t now_ns);
    uint64_t (*deadline)(const struct cc *c, const struct cc_params *p);
    void (*path)(struct cc *c, const struct cc_params *p, const struct cc_path *last,
                 const struct cc_path *now, uint64_t acked, uint64_t sent);
    uint64_t (*window)(const struct cc *c, const struct cc_params *p);
};

extern const struct cc_ops cc_dcqcn_ops, cc_ztr_ops, cc_timely_ops, cc_hpcc_ops;

/* Parameters by name, one of CC_NAMES. false: no such. */
bool cc_params_named(struct cc_params *p, const char *name, uint64_t line_bps);
#define CC_NAMES "none dcqcn-hw dcqcn-paper dcqcn-paper-polled hpcc timely ztr-target ztr-template"
/* Those that ask nothing of switches but marks. */
#define CC_NAMES_LIVE "none", "dcqcn-hw", "dcqcn-paper", "timely", "ztr-target", "ztr-template"
/* Whether round-trip times are wanted. */
bool cc_wants_rtt(const struct cc_params *p);
/* Whether switches have to write into packets. */
bool cc_wants_path(const struct cc_params *p);

void cc_start(struct cc *c, const struct cc_params *p);
/* Time never goes back. */
void cc_cnp(struct cc *c, const struct cc_params *p, uint64_t now_ns);
void cc_nak(struct cc *c, const struct cc_params *p);
void cc_rtt(struct cc *c, const struct cc_params *p, uint64_t now_ns, uint64_t rtt_ns);
void cc_sent(struct cc *c, const struct cc_params *p, uint64_t now_ns, uint64_t bytes);
/* What an acknowledgement of all bytes before `acked` brought of its packet's way, when those
 * before `sent` had left; *last, all zero at first, is what the one before brought, and is set to
 * it. */
void cc_path(struct cc *c, const struct cc_params *p, struct cc_path *last,
             const struct cc_path *now, uint64_t acked, uint64_t sent);
/* How much may be under way; CC_NO_WINDOW. */
uint64_t cc_window(const struct cc *c, const struct cc_params *p);
/* The rate from now on. */
uint64_t cc_rate(struct cc *c, const struct cc_params *p, uint64_t now_ns);
/* When the rate may rise by itself; CC_NEVER. */
uint64_t cc_deadline(const struct cc *c, const struct cc_params *p);

static inline void cc_clamp(struct cc *c, const struct cc_params *p)
{
    if (c->rate_bps > p->line_bps)
        c->rate_bps = p->line_bps;
    if (c->rate_bps < p->min_bps)
        c->rate_bps = p->min_bps;
}

#endif
