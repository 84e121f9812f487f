/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_PAIRS_H
#define OC_MPI_PAIRS_H

/* Operations in which each pair of ranks has a block of its own, or none. */

#include <stdint.h>

#include "coll.h"
#include "comm.h"
#include "vbuffer.h"

/* What @outs names, by ranks, of what @out has goes to where
 * @ins says in @in. outs->len is outs->off's next [size] and there is room for as many behind it;
 * @ends[2 * size] gets enum oc_pair of what came from each rank, and of what went to it. @prepared
 * and what it returns: oc_serve_blocks(). */
int oc_pairs_exchange(struct oc_comm *oc, enum oc_coll coll, int prepared,
		      const struct oc_vbuffer *out, const struct oc_vbuffer *in,
		      const struct oc_blocks *outs, const struct oc_blocks *ins, uint8_t *ends);

/* The same where all goes to @root, by those who send it. */
int oc_pairs_gather(struct oc_comm *oc, int prepared, const struct oc_vbuffer *out,
		    const struct oc_vbuffer *in, const struct oc_blocks *outs,
		    const struct oc_blocks *ins, int root, uint8_t *ends);

#endif
