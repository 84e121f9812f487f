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
#include "access/pin_cache.h"

#define MAP_MIN ((size_t)16 << 10) /* below this staging costs less than asking */

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

/*
 * Memory that is used once is worth a copy by system call where that beats staging, and
 * nothing else; whatever comes again is mapped.
 */
uint32_t oc_kcopy_offer(struct oc_node *node, const struct oc_want *want, int *place)
{
	/* What cannot be told to be stale lasts one operation: not worth mapping. */
	bool maps = want->mech & OC_MECH_MAP && oc_kdev_tracks();
	bool copies = want->mech & OC_MECH_KCOPY;
	bool again = true;
	uint32_t at;
	int err = -EAGAIN;

	if (!node->pin_cache || want->gaps)
		return 0;
	if (copies && want->once && want->bytes >= OC_MECH_CALL_MIN)
		err = oc_pin_cache_get(node, want->at, want->bytes, want->write, &at, &again);
	else if (maps && want->bytes >= MAP_MIN)
		err = oc_pin_cache_get_reused(node, want->at, want->bytes, want->write, &at);
	if (err)
		return 0;
	*place = (int)at;
	return want->mech & (again && maps ? OC_MECH_MAP | OC_MECH_KCOPY : OC_MECH_KCOPY);
}

void oc_kcopy_find(const struct oc_node *node, struct oc_target *target, uint32_t place)
{
	struct oc_pin_cache_entry *entry =
		&oc_pin_cache_area(node, target->owner)->entry[place % OC_PIN_CACHE_PLACES];
	uint64_t cookie = atomic_load_explicit(&entry->cookie, memory_order_acquire);
	uint64_t bytes = atomic_load_explicit(&entry->bytes, memory_order_relaxed);
	uint64_t offset = (uintptr_t)target->segs->iov_base -
			  atomic_load_explicit(&entry->base, memory_order_relaxed);

	if (offset >= bytes)
		return;
	target->kernel = cookie;
	target->kernel_bytes = bytes;
	target->kernel_offset = offset;
}

/* With mappings allowed they offer both. */
static uint32_t kcopy_offer(struct oc_node *node, const struct oc_want *want, int *place)
{
	return want->mech & OC_MECH_MAP ? 0 : oc_kcopy_offer(node, want, place);
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
	.bit = OC_MECH_KCOPY,
	.tried = true,
	.ready = oc_kcopy_ready,
	.explain = kcopy_explain,
	.offer = kcopy_offer,
	.find = oc_kcopy_find,
	.move = kcopy_move,
	.between = kcopy_between,
};
