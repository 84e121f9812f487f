/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PRIVATE_PAGES_H
#define OC_PRIVATE_PAGES_H

/*
 * Private memory of this process that peers copy by system calls. The kernel takes hold of a peer's
 * pages one by one, which takes longer than to copy them: where a range of 2 MiB is one page, a
 * copy takes 0.4 of the time. So who copies tells the owner, once in a while, where, and the owner
 * has ranges collapsed (MADV_COLLAPSE, Linux 6.1) that have lost as much as that takes: who pays
 * for a remedy when its lack has cost as much never pays twice what was needed (Karlin et al.,
 * Competitive snoopy caching, Algorithmica 1988). A range is whole, private and written to, so
 * that memory does not grow by it; of what is another's, what is advised against (MADV_NOHUGEPAGE)
 * and what devices hold, the kernel lets go by itself. Nothing is done where private memory has no
 * huge pages even if it asks, nor with ONECOPY_THP=never.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "segment/node.h"

/* Bytes between two notes. Not a part of 2 MiB: of a buffer that is copied again and again each is
 * at another place. */
#define OC_PRIVATE_PAGES_STEP ((uint64_t)1296 << 10)

/* Copied from and to private memory of peers; those of threads at once may get lost. */
extern uint64_t oc_private_pages_copied __attribute__((visibility("hidden")));

/* Half seconds, as of which this process last looked at its own. */
extern uint64_t oc_private_pages_turn __attribute__((visibility("hidden")));

/* Of a copy of so many bytes: whether its owner is to be told. Any thread. */
static inline bool oc_private_pages_count(size_t bytes)
{
	uint64_t before = __atomic_load_n(&oc_private_pages_copied, __ATOMIC_RELAXED);

	__atomic_store_n(&oc_private_pages_copied, before + bytes, __ATOMIC_RELAXED);
	return before / OC_PRIVATE_PAGES_STEP != (before + bytes) / OC_PRIVATE_PAGES_STEP;
}

/* Tells @peer of the copy that was counted last, the first @bytes of @count pieces of its memory.
 * Any thread. */
void oc_private_pages_tell(const struct oc_node *node, uint32_t peer, const struct iovec *pieces,
			   size_t count, size_t bytes);

/* Whether it is time to look. Any thread. */
static inline bool oc_private_pages_are_due(void)
{
	return oc_clock_turn() != __atomic_load_n(&oc_private_pages_turn, __ATOMIC_RELAXED);
}

/* If it is time, has collapsed what peers have told of and is worth it. In a process that is
 * @node's own, any thread: if another does it, nothing. errno stays. */
void oc_private_pages_look(const struct oc_node *node);

#endif
