/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page.h: report.html of a run. What it says is in page_*.js; here its data, which are bounded: the
 * same run gives the same bytes.
 */
#ifndef SCENARIO_PAGE_H
#define SCENARIO_PAGE_H

#include "scenario/samples.h"

/* report_can() is true. 0, -ENOMEM, or -errno of out. */
int page_write(FILE *out, const struct scenario *s, const struct fabric *f, enum fabric_state state,
               const struct samples *m);
/* The data alone, as JSON. 0 or -ENOMEM. */
int page_data(FILE *out, const struct scenario *s, const struct fabric *f, enum fabric_state state,
              const struct samples *m);

#endif
