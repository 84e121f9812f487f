// SPDX-License-Identifier: GPL-2.0-only
/*
 * A folio that is pinned is neither split nor freed, so its first page and its size
 * stand from the first run to the last. Charges change under the lock too: what one
 * pin was charged for, another relies upon.
 */
#include "folio.h"

#include <linux/mm.h>

static struct page *ock_run_folio(const struct ock_run *run)
{
	return PageCompound(run->first) ? compound_head(run->first) : NULL;
}

/* Counts the first @nr runs out. The value: pages of folios that have none left. */
static u64 ock_folios_release(struct ock_folios *folios, const struct ock_pages *pages, u32 nr)
{
	u64 released = 0;

	lockdep_assert_held(&folios->lock);
	for (u32 i = 0; i < nr; i++) {
		struct page *head = ock_run_folio(&pages->runs[i]);
		unsigned long index;
		unsigned long runs;

		if (!head)
			continue;
		index = page_to_pfn(head);
		runs = xa_to_value(xa_load(&folios->runs, index)) - 1;
		if (runs) {
			/* Never fails: it replaces a value by one. */
			xa_store(&folios->runs, index, xa_mk_value(runs), GFP_KERNEL);
		} else {
			xa_erase(&folios->runs, index);
			released += compound_nr(head);
		}
	}
	return released;
}

/* Counts all runs in. *more: pages of folios that had none. */
static int ock_folios_hold(struct ock_folios *folios, const struct ock_pages *pages, u64 *more)
{
	lockdep_assert_held(&folios->lock);
	*more = 0;
	for (u32 i = 0; i < pages->nr_runs; i++) {
		struct page *head = ock_run_folio(&pages->runs[i]);
		unsigned long index;
		void *entry;

		if (!head)
			continue;
		index = page_to_pfn(head);
		entry = xa_load(&folios->runs, index);
		if (xa_is_err(xa_store(&folios->runs, index,
				       xa_mk_value(entry ? xa_to_value(entry) + 1 : 1),
				       GFP_KERNEL_ACCOUNT))) {
			ock_folios_release(folios, pages, i);
			return -ENOMEM;
		}
		if (!entry)
			*more += compound_nr(head);
	}
	return 0;
}

/* Those of no large folio. */
static u64 ock_pages_single(const struct ock_pages *pages)
{
	u64 single = 0;

	for (u32 i = 0; i < pages->nr_runs; i++) {
		if (!ock_run_folio(&pages->runs[i]))
			single += pages->runs[i].nr;
	}
	return single;
}

int ock_folios_charge(struct ock_pages *pages, const struct ock_limits *limits)
{
	struct ock_charge *charge = &pages->charge;
	struct ock_folios *folios = ock_user_folios(charge->user, charge->memlock);
	u64 single = ock_pages_single(pages);
	u64 more;
	int err;

	if (single == pages->nr_pages)
		return 0;
	mutex_lock(&folios->lock);
	err = ock_folios_hold(folios, pages, &more);
	if (err)
		goto out;
	err = ock_charge_resize(charge, limits, single + more);
	if (err)
		ock_folios_release(folios, pages, pages->nr_runs);
	else
		charge->pages = single; /* the rest is theirs who hold the folios */
out:
	mutex_unlock(&folios->lock);
	return err;
}

void ock_folios_uncharge(struct ock_pages *pages)
{
	struct ock_charge *charge = &pages->charge;
	struct ock_folios *folios = ock_user_folios(charge->user, charge->memlock);
	u64 single = charge->pages;

	if (single == pages->nr_pages)
		return;
	mutex_lock(&folios->lock);
	charge->pages += ock_folios_release(folios, pages, pages->nr_runs);
	ock_charge_reduce(charge, single);
	mutex_unlock(&folios->lock);
}
