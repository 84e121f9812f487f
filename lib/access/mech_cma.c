// SPDX-License-Identifier: BSD-3-Clause
/* CMA as a mechanism: what access/cma.c does, for targets. */
#include "access/mech.h"

#include <errno.h>

#include "access/cma.h"

static int cma_probe(const struct oc_node *node, uint32_t peer, char *why, size_t size)
{
	const struct oc_node_peer *it = &node->peers[peer];

	oc_cma_explain(node, peer, why, size);
	if (__atomic_load_n(&it->cma_read, __ATOMIC_RELAXED) &&
	    __atomic_load_n(&it->cma_write, __ATOMIC_RELAXED))
		return 0;
	return it->cma_err ? -it->cma_err : -EPERM;
}

/* A refusal on grounds of policy will not change its mind: ask no more. */
static void note_refusal(struct oc_node *node, uint32_t peer, enum oc_direction direction,
			 ssize_t err)
{
	struct oc_node_peer *it = &node->peers[peer];

	if (err != -EPERM && err != -ENOSYS && err != -EACCES)
		return;
	__atomic_store_n(&it->cma_err, (int)-err, __ATOMIC_RELAXED);
	__atomic_store_n(direction == OC_GET ? &it->cma_read : &it->cma_write, false,
			 __ATOMIC_RELAXED);
}

static ssize_t cma_move(struct oc_node *node, const struct oc_target *target,
			enum oc_direction direction, uint64_t offset, struct oc_cursor *local,
			size_t len)
{
	struct oc_node_peer *it = &node->peers[target->owner];
	struct oc_cursor remote;
	ssize_t moved;

	if (!__atomic_load_n(direction == OC_GET ? &it->cma_read : &it->cma_write,
			     __ATOMIC_RELAXED))
		return -EOPNOTSUPP;
	oc_cursor_init(&remote, target->segs, target->nsegs, offset);
	moved = oc_cma_move(node, target->owner, direction, local, &remote, len);
	if (moved < 0)
		note_refusal(node, target->owner, direction, moved);
	return moved;
}

const struct oc_mech oc_mech_cma = {
	.name = "cma",
	.bit = OC_MECH_CMA,
	.probe = cma_probe,
	.move = cma_move,
};
