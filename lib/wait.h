/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_WAIT_H
#define OC_WAIT_H

#include "ep.h"

/* Stores a larger word with release order and wakes whoever sleeps on it. */
void oc_line_publish(struct oc_ep_line *line, uint64_t word);

/* Wakes sleepers after something else in the line has changed. */
void oc_line_wake(struct oc_ep_line *line);

#endif
