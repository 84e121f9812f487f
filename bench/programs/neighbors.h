/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_NEIGHBORS_H
#define BENCH_NEIGHBORS_H

/* Neighbourhood collectives on a ring: collective.h. */

#include "collective.h"

/* i-th of the table, NULL past its end. */
const struct collective *neighbors_at(size_t i);

/* The words of the receive buffer that are not those of a word of their sender's, which
 * @word_of(stamp, rank, i) says. */
size_t neighbors_errors(const struct collective *op, const struct call *call, uint32_t stamp,
			uint32_t (*word_of)(uint32_t stamp, int rank, size_t i));

#endif
