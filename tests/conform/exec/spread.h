/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_SPREAD_H
#define OC_TEST_SPREAD_H

/* Buffers in pieces, drawn by the rank's own dice, and what lies between the pieces. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes/layout.h"

enum {
	SPREAD_RUNS = 30,
	SPREAD_EXTRA =
		32 << 10, /* the memory of a spread is at most so much longer than its bytes */
};

struct spread {
	uint8_t *block; /* the memory */
	size_t size;	/* that is used of it */
	/* What a bind wants: the block, if it is in one piece; NULL at times, as with MPI_BOTTOM.
	 */
	uint8_t *base;
	struct oc_layout *layout; /* NULL if it is */
	struct oc_run runs[SPREAD_RUNS];
	uint32_t n;
	uint32_t count;
	int64_t extent;
	uint64_t bytes;
};

/* Throws the dice for @bytes in @block, and fills all of that with @gap. To be ended. */
void spread_begin(struct spread *spread, uint8_t *block, uint64_t bytes, uint8_t gap);
void spread_end(struct spread *spread);

/* Between the pieces and @packed, where they are in one. */
void spread_put(const struct spread *spread, const uint8_t *packed);
void spread_get(const struct spread *spread, uint8_t *packed);

/* True if all that is not in a piece still holds @gap; the pieces then do, too. */
bool spread_is_whole(const struct spread *spread, uint8_t gap);

#endif
