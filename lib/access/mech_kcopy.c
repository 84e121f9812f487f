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

int oc_kcopy_probe(const struct oc_node *node, uint32_t peer, uint32_t bit, char *why, size_t size)
{
	const struct oc_node_peer *it = &node->peers[peer];

	if (it->kernel & bit)
		return 0;
	if (!node->kdev && node->kdev_err)
		oc_kdev_explain(node->kdev_err, why, size);
	else if (!node->kdev)
		snprintf(why, size, "not tried: ONECOPY_MECH left it out at the start");
	else if (!node->ranks[peer].probe_kernel)
		snprintf(why, size,
			 "rank %u does not use /dev/onecopy (its ONECOPY_VERBOSE=1 says why)",
			 peer);
	else if (it->kernel_err == EPERM)
		snprintf(why, size, "the module takes rank %u for another user's process", peer);
	else if (it->kernel_err == EOPNOTSUPP)
		snprintf(why, size, "the module cannot map memory on this kernel");
	else
		snprintf(why, size, "the probe failed: %s", strerror(it->kernel_err));
	return it->kernel_err ? -it->kernel_err : -ENODEV;
}

bool oc_kcopy_reaches(const struct oc_node *node, const struct oc_target *target, uint32_t bit)
{
	return target->kernel && node->peers[target->owner].kernel & bit;
}

ssize_t oc_kcopy_move(enum oc_direction direction, const struct oc_target *target, uint64_t offset,
		      struct oc_cursor *local, size_t len)
{
	return oc_kcopy_error(oc_kdev_copy(direction, target->kernel, offset, local, len));
}

static int kcopy_probe(const struct oc_node *node, uint32_t peer, char *why, size_t size)
{
	return oc_kcopy_probe(node, peer, OC_MECH_KCOPY, why, size);
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
	return oc_kcopy_error(
		oc_kdev_copy_between(dst->kernel, dst_offset, src->kernel, src_offset, len));
}

const struct oc_mech oc_mech_kcopy = {
	.name = "kcopy",
	.bit = OC_MECH_KCOPY,
	.flags = OC_MECH_BETWEEN,
	.probe = kcopy_probe,
	.move = kcopy_move,
	.between = kcopy_between,
};
