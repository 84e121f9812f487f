// SPDX-License-Identifier: BSD-3-Clause
/*
 * Notes lie in a ring in the owner's area: the number of a range each. Who writes waits for nobody
 * and overwrites what nobody has read; a note that is lost or mistaken costs a collapse that comes
 * late or, of a range that is whole all the same, one for nothing.
 *
 * Of a range whose collapse was tried it is not known how long it stays a huge page: the program
 * may map other memory there. It is tried again after twice as many notes each time, which for one
 * that still is huge takes the kernel a look.
 */
#include "access/private_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/env.h"
#include "base/pages.h"
#include "base/quiet.h"
#include "base/thp.h"
#include "segment/area.h"

#define NOTES	 1024u
#define ENTRIES	 1024u		    /* ranges that are counted at a time */
#define LOSS	 8		    /* bytes that lose 1 ns by small pages */
#define FIRST_NS UINT64_C(1000000)  /* what a collapse is taken to take, */
#define LEAST_NS UINT64_C(200000)   /* and at least */
#define TURN_NS	 UINT64_C(64000000) /* of all in a turn */
#define TRIES	 40		    /* more are none */

#define SMALL_PAGES (OC_HUGE_PAGE / 4096)

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGE_PRESENT ((uint64_t)1 << 63)
#define PAGE_SHARED  ((uint64_t)1 << 61) /* or of a file */
#define PAGE_ALONE   ((uint64_t)1 << 56) /* neither that of zeros nor a forked child's, too */

struct ring {
	_Alignas(OC_CACHELINE) _Atomic uint32_t next;
	_Alignas(OC_CACHELINE) _Atomic uint64_t ranges[NOTES];
};
_Static_assert(sizeof(struct ring) <= OC_AREA_PRIVATE_BYTES, "fits");

struct entry {
	uint64_t range; /* address / OC_HUGE_PAGE; 0: none */
	uint64_t notes; /* since it was tried */
	uint32_t tries;
};

uint64_t oc_private_pages_copied;
uint64_t oc_private_pages_turn;

static struct {
	_Atomic bool busy; /* all that follows */
	bool asked;	   /* whether there may be any: */
	bool off;
	uint32_t read;	/* notes up to this one; those of a new segment may seem to be more */
	uint64_t takes; /* ns, a collapse */
	struct entry entries[ENTRIES];
} own = {.takes = FIRST_NS};

static struct ring *ring_of(const struct oc_node *node, uint32_t rank)
{
	return (struct ring *)(oc_node_area(node, rank) + OC_AREA_PRIVATE_OFF);
}

static void tell(struct ring *ring, uint64_t address)
{
	uint32_t i = atomic_fetch_add_explicit(&ring->next, 1, memory_order_relaxed);

	atomic_store_explicit(&ring->ranges[i % NOTES], address / OC_HUGE_PAGE,
			      memory_order_relaxed);
}

void oc_private_pages_tell(const struct oc_node *node, uint32_t peer, const struct iovec *pieces,
			   size_t count, size_t bytes)
{
	uint64_t all = __atomic_load_n(&oc_private_pages_copied, __ATOMIC_RELAXED);
	uint64_t first = all > bytes ? all - bytes : 0;
	uint64_t at = OC_PRIVATE_PAGES_STEP - first % OC_PRIVATE_PAGES_STEP;
	struct ring *ring;
	uint64_t before = 0;

	if (!node->segment)
		return;
	ring = ring_of(node, peer);
	for (size_t i = 0; i < count && before < bytes; i++) {
		uint64_t end = before + pieces[i].iov_len;

		for (; at < end && at < bytes; at += OC_PRIVATE_PAGES_STEP)
			tell(ring, (uintptr_t)pieces[i].iov_base + (at - before));
		before = end;
	}
}

static struct entry *entry_of(uint64_t range)
{
	struct entry *entry = &own.entries[range * UINT64_C(0x9e3779b97f4a7c15) >> 54];

	if (entry->range != range)
		*entry = (struct entry){.range = range};
	return entry;
}
_Static_assert(ENTRIES == 1u << (64 - 54), "an index is the upper bits");

/* All of its small pages are there, and are this process's alone. */
static bool is_whole(uint64_t range)
{
	uint64_t pages[SMALL_PAGES];
	off_t at = (off_t)(range * SMALL_PAGES * sizeof(*pages));
	long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	long got;

	if (fd < 0)
		return false;
	got = syscall(SYS_pread64, fd, pages, sizeof(pages), at);
	syscall(SYS_close, fd);
	if (got != (long)sizeof(pages))
		return false;
	for (size_t i = 0; i < SMALL_PAGES; i++)
		if ((pages[i] & (PAGE_PRESENT | PAGE_ALONE | PAGE_SHARED)) !=
		    (PAGE_PRESENT | PAGE_ALONE))
			return false;
	return true;
}

static bool is_worth_it(const struct entry *entry)
{
	return entry->tries < TRIES &&
	       entry->notes * OC_PRIVATE_PAGES_STEP / LOSS >> entry->tries >= own.takes;
}

/* False without huge pages: later, then. */
static bool collapse(struct entry *entry)
{
	uint64_t start = oc_clock_ns();
	int err = 0;

	entry->notes = 0;
	entry->tries++;
	if (!is_whole(entry->range))
		return true;
	if (oc_quiet_madvise((char *)NULL + entry->range * OC_HUGE_PAGE, OC_HUGE_PAGE,
			     MADV_COLLAPSE))
		err = errno;
	own.takes = (own.takes + oc_clock_ns() - start) / 2;
	if (own.takes < LEAST_NS)
		own.takes = LEAST_NS;
	return err != ENOMEM;
}

static void read_notes(struct ring *ring, uint64_t end)
{
	uint32_t next = atomic_load_explicit(&ring->next, memory_order_relaxed);

	if (next - own.read > NOTES)
		own.read = next - NOTES;
	while (own.read != next && oc_clock_ns() < end) {
		uint64_t range = atomic_load_explicit(&ring->ranges[own.read++ % NOTES],
						      memory_order_relaxed);
		struct entry *entry = entry_of(range);

		entry->notes++;
		if (is_worth_it(entry) && !collapse(entry))
			return;
	}
}

/* Asked once. */
static bool is_off(void)
{
	if (!own.asked)
		own.off = oc_env()->thp == OC_ENV_THP_NEVER || oc_thp_private() == OC_THP_NEVER;
	own.asked = true;
	return own.off;
}

void oc_private_pages_look(const struct oc_node *node)
{
	int saved = errno;

	if (!oc_private_pages_are_due() ||
	    atomic_exchange_explicit(&own.busy, true, memory_order_acquire))
		return;
	__atomic_store_n(&oc_private_pages_turn, oc_clock_turn(), __ATOMIC_RELAXED);
	if (!is_off())
		read_notes(ring_of(node, node->rank), oc_clock_ns() + TURN_NS);
	atomic_store_explicit(&own.busy, false, memory_order_release);
	errno = saved;
}
