// SPDX-License-Identifier: BSD-3-Clause
#include "pairs.h"

#include <string.h>

#include "serve.h"
#include "tune.h"

static struct oc_bind bind_of(const struct oc_vbuffer *out, const struct oc_vbuffer *in,
			      uint8_t *pair)
{
	return (struct oc_bind){
		.send = out->at,
		.send_bytes = out->bytes,
		.send_layout = out->layout,
		.recv = in->at,
		.recv_bytes = in->bytes,
		.recv_layout = in->layout,
		.pair = pair,
	};
}

int oc_pairs_exchange(struct oc_comm *oc, enum oc_coll coll, int prepared,
		      const struct oc_vbuffer *out, const struct oc_vbuffer *in,
		      const struct oc_blocks *outs, const struct oc_blocks *ins, uint8_t *ends)
{
	struct oc_shape shape = oc_shape_of(oc, coll, 0, 0);
	size_t n = (size_t)oc->size;
	struct oc_bind bind = bind_of(out, in, ends);

	bind.scratch_bytes = 3 * n * sizeof(uint64_t);
	bind.scratch_init = outs->off;
	/* To know whether a block is expected its sender looks at what its receiver expects. */
	if (!prepared)
		memcpy((uint64_t *)outs->len + n, ins->len, n * sizeof(*ins->len));
	shape.stream = oc_streams(in->bytes);
	return oc_serve_blocks(oc, prepared, &shape, outs, ins, &bind);
}

int oc_pairs_gather(struct oc_comm *oc, int prepared, const struct oc_vbuffer *out,
		    const struct oc_vbuffer *in, const struct oc_blocks *outs,
		    const struct oc_blocks *ins, int root, uint8_t *ends)
{
	bool receives = oc->rank == root;
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_GATHERV, root, 0);
	struct oc_bind bind = bind_of(out, in, receives ? ends : ends + oc->size);

	if (receives) {
		bind.scratch_bytes = 2 * (size_t)oc->size * sizeof(uint64_t);
		bind.scratch_init = ins->off;
		bind.recv_hole = !prepared && oc_vbuffer_has_hole(in);
		bind.recv_whole = in->layout;
		if (!prepared)
			oc_vbuffer_place(in);
	} else if (!prepared) {
		shape.bytes = outs->len[root];
	}
	shape.stream = oc_streams(receives ? in->bytes : shape.bytes);
	return oc_serve_blocks(oc, prepared, &shape, receives ? ins : NULL, NULL, &bind);
}
