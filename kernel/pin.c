// SPDX-License-Identifier: GPL-2.0-only
/*
 * From addresses to runs. What is asked for is measured and charged before any of it is held,
 * then held batch by batch, each page going to the last run or beginning one. What keeps more
 * than was charged, large folios, is charged in the end (folio.c).
 */
#include "pin.h"

#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "folio.h"
#include "stats.h"

int ock_vec_import(const void __user *from, u32 nr, struct ock_vec **result)
{
	struct ock_vec *vec;

	*result = NULL;
	if (!nr)
		return 0;
	if (nr > OCK_SEGMENTS_MAX)
		return -E2BIG;
	vec = kvmalloc_array(nr, sizeof(*vec), GFP_KERNEL_ACCOUNT);
	if (!vec)
		return -ENOMEM;
	if (copy_from_user(vec, from, nr * sizeof(*vec))) {
		kvfree(vec);
		return -EFAULT;
	}
	*result = vec;
	return 0;
}

int ock_vec_length(const struct ock_vec *vec, u32 nr, u64 *length)
{
	u64 sum = 0;

	for (u32 i = 0; i < nr; i++) {
		u64 end;

		if (check_add_overflow(vec[i].addr, vec[i].length, &end) ||
		    check_add_overflow(sum, vec[i].length, &sum) || sum > S64_MAX)
			return -EOVERFLOW;
	}
	*length = sum;
	return 0;
}

/* What the segments will need. */
static int ock_pages_measure(const struct ock_vec *vec, u32 nr, u32 *nr_segments, u32 *nr_pages)
{
	u64 length;
	u64 pages = 0;
	u32 segments = 0;
	int err;

	err = ock_vec_length(vec, nr, &length);
	if (err)
		return err;
	for (u32 i = 0; i < nr; i++) {
		if (!vec[i].length)
			continue;
		segments++;
		/* Cannot overflow: the lengths' sum does not, and nr is bounded. */
		pages += ((vec[i].addr + vec[i].length - 1) >> PAGE_SHIFT) -
			 (vec[i].addr >> PAGE_SHIFT) + 1;
	}
	if (pages > U32_MAX)
		return -EOVERFLOW;
	*nr_segments = segments;
	*nr_pages = pages;
	return 0;
}

static void ock_pages_segment(struct ock_pages *pages, const struct ock_vec *vec, u32 nr)
{
	struct ock_segment *segment = pages->segments;
	u64 start = 0;
	u32 page = 0;

	for (u32 i = 0; i < nr; i++) {
		u32 offset = offset_in_page(vec[i].addr);

		if (!vec[i].length)
			continue;
		*segment++ = (struct ock_segment){
			.addr = vec[i].addr,
			.start = start,
			.length = vec[i].length,
			.page = page,
			.offset = offset,
		};
		start += vec[i].length;
		page += (offset + vec[i].length + PAGE_SIZE - 1) >> PAGE_SHIFT;
	}
	pages->length = start;
}

/* Makes room for one more run. */
static int ock_pages_grow(struct ock_pages *pages, u32 *capacity)
{
	/* Contiguous memory is the rule where it matters, so start small. */
	u32 wanted = min_t(u64, (u64)*capacity * 4, pages->nr_pages);
	struct ock_run *runs;

	/* Who pins much is told by an errno, not the kernel's log. */
	runs = kvmalloc_array(wanted, sizeof(*runs), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!runs)
		return -ENOMEM;
	memcpy(runs, pages->runs, pages->nr_runs * sizeof(*runs));
	if (pages->runs != pages->few)
		kvfree(pages->runs);
	pages->runs = runs;
	*capacity = wanted;
	return 0;
}

static bool ock_run_continues(const struct ock_run *run, struct page *page)
{
	struct page *last = run->first + run->nr - 1;

	/* Without a virtual memory map, page structs do not follow each other
	 * everywhere where pages do; both must. */
	if (page != last + 1 || page_to_pfn(page) != page_to_pfn(last) + 1)
		return false;
	if (PageCompound(page) || PageCompound(last))
		return compound_head(page) == compound_head(last);
	return true;
}

/* Lets go of pages that have no run; nobody has written to them. */
static void ock_pages_spare(const struct ock_pages *pages, struct page **batch, u32 nr)
{
	for (u32 i = 0; i < nr; i++) {
		struct ock_run run = {.first = batch[i], .nr = 1};

		pages->provider->unpin(&run, 1, false);
	}
}

/* Adds pages that are held; on error those not added are let go. */
static int ock_pages_append(struct ock_pages *pages, struct page **batch, u32 nr, u32 *at,
			    u32 *capacity)
{
	struct ock_run *run = pages->nr_runs ? &pages->runs[pages->nr_runs - 1] : NULL;

	for (u32 i = 0; i < nr; i++) {
		if (run && ock_run_continues(run, batch[i])) {
			run->nr++;
			(*at)++;
			continue;
		}
		if (pages->nr_runs == *capacity) {
			int err = ock_pages_grow(pages, capacity);

			if (err) {
				ock_pages_spare(pages, batch + i, nr - i);
				return err;
			}
		}
		run = &pages->runs[pages->nr_runs++];
		*run = (struct ock_run){.first = batch[i], .page = *at, .nr = 1};
		(*at)++;
	}
	return 0;
}

#define OCK_BATCH_SMALL 16
#define OCK_BATCH	(PAGE_SIZE / sizeof(struct page *))

struct ock_batch {
	struct page **pages;
	u32 max;
};

static int ock_pages_pin_segment(struct ock_pages *pages, const struct ock_segment *segment,
				 const struct ock_batch *batch, u32 *at, u32 *capacity)
{
	unsigned long addr = segment->addr & PAGE_MASK;
	u64 left = (segment->offset + segment->length + PAGE_SIZE - 1) >> PAGE_SHIFT;

	while (left) {
		int got;
		int err;

		got = pages->provider->pin(addr, min_t(u64, left, batch->max), pages->writable,
					   batch->pages);
		if (got < 0)
			return fatal_signal_pending(current) ? -EINTR : got;
		err = ock_pages_append(pages, batch->pages, got, at, capacity);
		if (err)
			return err;
		addr += (unsigned long)got << PAGE_SHIFT;
		left -= got;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static void ock_pages_drop(struct ock_pages *pages)
{
	pages->provider->unpin(pages->runs, pages->nr_runs, pages->writable);
	pages->nr_runs = 0;
}

static int ock_pages_pin_all(struct ock_pages *pages, const struct ock_batch *batch)
{
	u32 capacity = ARRAY_SIZE(pages->few);
	u32 at = 0;

	for (u32 i = 0; i < pages->nr_segments; i++) {
		int err = ock_pages_pin_segment(pages, &pages->segments[i], batch, &at, &capacity);

		if (err) {
			ock_pages_drop(pages);
			return err;
		}
	}
	return 0;
}

static int ock_pages_pin_by_batch(struct ock_pages *pages)
{
	struct page *small[OCK_BATCH_SMALL];
	struct ock_batch batch = {.pages = small, .max = OCK_BATCH_SMALL};
	int err;

	if (pages->nr_pages > OCK_BATCH_SMALL) {
		batch.pages = (struct page **)__get_free_page(GFP_KERNEL);
		if (!batch.pages)
			return -ENOMEM;
		batch.max = OCK_BATCH;
	}
	err = ock_pages_pin_all(pages, &batch);
	if (batch.pages != small)
		free_page((unsigned long)batch.pages);
	return err;
}

static void ock_pages_free(struct ock_pages *pages)
{
	if (pages->runs != pages->few)
		kvfree(pages->runs);
	if (pages->segments != &pages->one)
		kvfree(pages->segments);
	pages->runs = NULL;
	pages->segments = NULL;
	pages->nr_segments = 0;
	pages->nr_pages = 0;
	pages->length = 0;
}

int ock_pages_pin(struct ock_pages *pages, const struct ock_provider *provider,
		  const struct ock_vec *vec, u32 nr, bool writable, const struct ock_limits *limits)
{
	u32 nr_segments;
	u32 nr_pages;
	int err;

	memset(pages, 0, sizeof(*pages));
	pages->provider = provider;
	err = ock_pages_measure(vec, nr, &nr_segments, &nr_pages);
	if (err)
		return err;
	err = ock_charge_take(&pages->charge, limits, nr_pages);
	if (err)
		return err;

	pages->segments = &pages->one;
	pages->runs = pages->few;
	pages->writable = writable;
	if (nr_segments > 1) {
		pages->segments =
			kvmalloc_array(nr_segments, sizeof(*pages->segments), GFP_KERNEL_ACCOUNT);
		if (!pages->segments) {
			err = -ENOMEM;
			goto free;
		}
	}
	pages->nr_segments = nr_segments;
	pages->nr_pages = nr_pages;
	ock_pages_segment(pages, vec, nr);
	err = ock_pages_pin_by_batch(pages);
	if (err)
		goto free;
	err = ock_folios_charge(pages, limits);
	if (err)
		goto drop;
	ock_stat_add(OCK_LIVE_PAGES, nr_pages);
	return 0;
drop:
	ock_pages_drop(pages);
free:
	ock_pages_free(pages);
	ock_charge_give(&pages->charge);
	return err;
}

void ock_pages_unpin(struct ock_pages *pages)
{
	ock_stat_add(OCK_LIVE_PAGES, -(s64)pages->nr_pages);
	ock_folios_uncharge(pages);
	ock_pages_drop(pages);
	ock_pages_free(pages);
	ock_charge_give(&pages->charge);
}
