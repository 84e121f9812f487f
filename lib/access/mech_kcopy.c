// SPDX-License-Identifier: BSD-3-Clause
/*
 * The kernel module copies: one system call a copy, as CMA, but the owner's
 * pages were found and pinned when the region was made, so nothing is looked up
 * again, and who may reach them is the region's matter, not ptrace's. The right
 * way for memory that is used once; what comes again is better mapped
 * (lib/access/mech_map.c).
 */
#include "access/mech_kcopy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "access/mech.h"

int oc_kcopy_ready(const struct oc_node *node)
{
	return node->kdev ? 0 : -ENODEV;
}

void oc_kcopy_explain(const struct oc_node *node, uint32_t peer, uint32_t bit, char *why,
		      size_t size)
{
	int err = node->peers[peer].refusal[oc_mech_index(bit)];

	why[0] = '\0';
	if (oc_mech_works(node, peer, bit))
		return;
	if (!node->kdev && node->kdev_err)
		oc_kdev_explain(node->kdev_err, why, size);
	else if (!node->kdev)
		snprintf(why, size, "not tried: ONECOPY_MECH left it out at the start");
	else if (!node->ranks[peer].probe_kernel)
		snprintf(why, size,
			 "rank %u does not use /dev/onecopy (its ONECOPY_VERBOSE=1 says why)",
			 peer);
	else if (err == EPERM)
		snprintf(why, size, "the module takes rank %u for another user's process", peer);
	else if (err == EOPNOTSUPP)
		snprintf(why, size, "the module cannot map memory on this kernel");
	else
		snprintf(why, size, "the probe failed: %s", strerror(err));
}

bool oc_kcopy_reaches(const struct oc_node *node, const struct oc_target *target, uint32_t bit)
{
	return target->kernel && oc_mech_works(node, target->owner, bit);
}

ssize_t oc_kcopy_move(enum oc_direction direction, const struct oc_target *target, uint64_t offset,
		      struct oc_cursor *local, size_t len)
{
	return oc_kcopy_error(oc_kdev_copy(direction, target->kernel,
					   target->kernel_offset + offset, local, len));
}

static void kcopy_explain(const struct oc_node *node, uint32_t peer, char *why, size_t size)
{
	oc_kcopy_explain(node, peer, OC_MECH_KCOPY, why, size);
}

static ssize_t kcopy_move(struct oc_node *node, const struct oc_target *target,
			  enum oc_direction direction, uint64_t offset, struct oc_cursor *local,
			  size_t len)
{
	if (!oc_kcopy_reaches(node, target, OC_MECH_KCOPY))
		return -EOPNOTSUPP;
	return oc_kcopy_move(direction, target, offset, local, len);
}

static ssize_t kcopy_between(struct oc_node *node, const struct oc_target *dst, uint64_t dst_offset,
			     const struct oc_target *src, uint64_t src_offset, size_t len)
{
	if (!oc_kcopy_reaches(node, dst, OC_MECH_KCOPY) ||
	    !oc_kcopy_reaches(node, src, OC_MECH_KCOPY))
		return -EOPNOTSUPP;
	return oc_kcopy_error(oc_kdev_copy_between(dst->kernel, dst->kernel_offset + dst_offset,
						   src->kernel, src->kernel_offset + src_offset,
						   len));
}

const struct oc_mech oc_mech_kcopy = {
	.name = "kcopy",
	.bit = OC_MECH_KCOPY,
	.tried = true,
	.ready = oc_kcopy_ready,
	.explain = kcopy_explain,
	.move = kcopy_move,
	.between = kcopy_between,
};
