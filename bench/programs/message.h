/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_MESSAGE_H
#define BENCH_MESSAGE_H

/* Operations of point-to-point and one-sided messages, as of collectives: collective.h. */

#include "collective.h"

/* i-th of the table, NULL past its end. */
const struct collective *message_at(size_t i);

/* The other rank of this one's pair, which is there if collective_send_words() is not 0. */
int message_partner(const struct call *call);

/* The neighbours of this rank in a ring of all. */
int message_left(const struct call *call);
int message_right(const struct call *call);

#endif
