/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * congestion_option.h: congestion control as a user asks for it, in text.
 */
#ifndef HOST_CONGESTION_OPTION_H
#define HOST_CONGESTION_OPTION_H

#include "nic/congestion.h"

enum { CONGESTION_MESSAGE_BYTES = 200 };

/*
 * Parses `dcqcn-hw` or another name, with settings behind commas, each once, in any order:
 * `rate=25Gb/s` the line rate where the interface tells none, `cnp_dscp=48`, `cnp_interval=50us`.
 * 0, or -EINVAL with a message that quotes what is wrong. Of "none" all is as if nothing was said.
 */
int congestion_parse(const char *text, struct congestion_config *out,
                     char message[CONGESTION_MESSAGE_BYTES]);

#endif
