// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mapping regions, and taking mappings back.
 *
 * A mapping is a VM_PFNMAP area: its entries hold no reference on the pages,
 * get_user_pages() refuses it, the memory's owner knows nothing of it. So all of
 * its entries must be gone before the pages may be unpinned.
 *
 * Entries are made by page faults only, never by mmap(): until mmap() returns the
 * area is not in the address space's tree, and a revocation would miss it.
 * The first fault fills in everything (of the same 1 GiB, the reach of one
 * table of huge entries), so mapping costs one fault, not one a page.
 *
 * A fault holds region->map_lock for reading while it asks ock_region_shown() and
 * fills. ock_map_revoke() takes it for writing as the region's state begins to
 * say no, then zaps. Each fault is either before, and its entries are zapped, or after, and
 * gets SIGBUS. The table's user, which keeps the pages, goes only after the revocation.
 * What may take long, page tables, is allocated without it, or who can draw that out (memory.high)
 * would make a peer wait that destroys its region.
 *
 * All areas belong to one address space, in which a region owns a range of
 * offsets. Ranges are handed out in a circle: when it wraps, one may be
 * zapped for another; the next fault fills it again.
 *
 * Areas may be split, moved and unmapped in parts: a page is found by its offset
 * in the address space, not by its address.
 *
 * A LINGER region's areas (keepers) have together a user of their own, so that
 * the pages stay when the owner goes; who moves the region to REVOKED takes it back.
 * Both are under the lock for writing.
 */
#include "map.h"

#include <linux/fs_context.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/pseudo_fs.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include <onecopy.h>

#include "compat.h"
#include "region.h"
#include "stats.h"
#include "trace.h"

#define OCK_FS_MAGIC 0x6f6e6563 /* "onec" */

/* Below are the offsets of what is no region. */
#define OCK_RANGE_FIRST (1ULL << 28)
#define OCK_RANGE_LAST	(1ULL << 50)

static struct vfsmount *mount;
static struct inode *inode;
static atomic64_t next_range = ATOMIC64_INIT(OCK_RANGE_FIRST);

static int ock_fs_init_context(struct fs_context *context)
{
	return init_pseudo(context, OCK_FS_MAGIC) ? 0 : -ENOMEM;
}

/* No owner: our own mount would keep the module loaded. Files do that. */
static struct file_system_type fs_type = {
	.name = "onecopy",
	.init_fs_context = ock_fs_init_context,
	.kill_sb = kill_anon_super,
};

int ock_map_init(void)
{
	int err;

	mount = kern_mount(&fs_type);
	if (IS_ERR(mount))
		return PTR_ERR(mount);
	inode = alloc_anon_inode(mount->mnt_sb);
	if (IS_ERR(inode)) {
		err = PTR_ERR(inode);
		kern_unmount(mount);
		return err;
	}
	return 0;
}

void ock_map_exit(void)
{
	iput(inode);
	kern_unmount(mount);
}

void ock_map_open(struct file *file)
{
	file->f_mapping = inode->i_mapping;
}

/* ---- filling ---- */

/* What one fault fills in. */
struct ock_fill {
	const struct ock_pages *pages;
	const struct ock_run *run; /* holds @page */
	u32 page;
	u32 huge; /* entries made */
	struct vm_area_struct *vma;
};

static unsigned long ock_fill_pfn(struct ock_fill *fill)
{
	while (fill->page - fill->run->page >= fill->run->nr)
		fill->run++;
	return page_to_pfn(fill->run->first) + (fill->page - fill->run->page);
}

static int ock_fill_entry(pte_t *pte, unsigned long addr, void *data)
{
	struct ock_fill *fill = data;
	unsigned long pfn = ock_fill_pfn(fill);
	pte_t entry;

	fill->page++;
	/* Not pte_none(): a marker, were there one, would be met again by the next fault. */
	if (pte_present(ptep_get(pte)))
		return 0;
	/* Nobody asks whether it was used; spare the processor to note it. */
	entry = pte_mkyoung(pte_mkspecial(pfn_pte(pfn, fill->vma->vm_page_prot)));
	if (fill->vma->vm_flags & VM_WRITE)
		entry = pte_mkdirty(entry);
	set_pte_at(fill->vma->vm_mm, addr, pte, entry);
	return 0;
}

/*
 * Fills [addr, end), which one huge entry would cover, by one if the memory is
 * contiguous and falls so, and true then. Another thread may fill *pmd meanwhile,
 * in the same way; what is emptied meanwhile (see ock_pmd_insert()) is filled by
 * the next fault.
 */
static bool ock_fill_huge(struct ock_fill *fill, pmd_t *pmd, unsigned long addr, unsigned long end)
{
	unsigned long pfn = ock_fill_pfn(fill);

	if (end - addr != PMD_SIZE || pfn & (OCK_HUGE_PAGES - 1) ||
	    fill->run->nr - (fill->page - fill->run->page) < OCK_HUGE_PAGES ||
	    !ock_pmd_insert(fill->vma, addr, pmd, pfn))
		return false;
	fill->page += OCK_HUGE_PAGES;
	fill->huge++;
	return true;
}

/*
 * Goes on from *@at, and says there how far it has come. A fatal signal ends this early, but only
 * with the entry there that was asked for: a fault of the kernel's own (read() into the area) is
 * taken again and again until it is, signal or not. -EAGAIN: there is no table for what is at
 * *@at. To allocate one may take long, where the process's cgroup is over its limit.
 */
static int ock_fill_range(struct ock_fill *fill, const struct vm_fault *fault, unsigned long *at,
			  unsigned long end)
{
	while (*at < end) {
		unsigned long addr = *at;
		unsigned long next = min(ALIGN_DOWN(addr, PMD_SIZE) + PMD_SIZE, end);
		pmd_t *pmd = fault->pmd - pmd_index(fault->address) + pmd_index(addr);
		int err;

		if (!ock_fill_huge(fill, pmd, addr, next)) {
			if (pmd_none(READ_ONCE(*pmd)))
				return -EAGAIN;
			err = apply_to_page_range(fill->vma->vm_mm, addr, next - addr,
						  ock_fill_entry, fill);
			if (err)
				return err;
		}
		*at = next;
		if (next > fault->address && fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static int ock_fill_nothing(pte_t *pte, unsigned long addr, void *data)
{
	return 0;
}

/* Tables are made while nobody is kept from revoking: between two, the region may have been. */
static int ock_fill(struct ock_fill *fill, const struct vm_fault *fault, unsigned long at,
		    unsigned long end)
{
	struct ock_region *region = fill->vma->vm_private_data;
	int err;

	fill->page = linear_page_index(fill->vma, at) - region->map_page;
	do {
		down_read(&region->map_lock);
		err = -ENOENT;
		if (ock_region_shown(region)) {
			WRITE_ONCE(region->mapped, true);
			fill->run = ock_pages_run(fill->pages, fill->page);
			err = ock_fill_range(fill, fault, &at, end);
		}
		up_read(&region->map_lock);
		if (err != -EAGAIN)
			return err;
		err = apply_to_page_range(fill->vma->vm_mm, at, PAGE_SIZE, ock_fill_nothing, NULL);
	} while (!err);
	return err;
}

static vm_fault_t ock_area_fault(struct vm_fault *fault)
{
	struct vm_area_struct *vma = fault->vma;
	struct ock_region *region = vma->vm_private_data;
	unsigned long addr = max(vma->vm_start, ALIGN_DOWN(fault->address, PUD_SIZE));
	unsigned long end = min(vma->vm_end - 1, fault->address | (PUD_SIZE - 1)) + 1;
	struct ock_fill fill = {.pages = &region->pages, .vma = vma};
	int err = ock_fill(&fill, fault, addr, end);

	if (err == -ENOENT)
		return VM_FAULT_SIGBUS;
	ock_stat_inc(OCK_STAT_MAP_FAULTS);
	ock_stat_add(OCK_STAT_MAP_HUGE, fill.huge);
	trace_onecopy_map_fill(region->cookie, (end - addr) >> PAGE_SHIFT, fill.huge, err);
	/* Killed: the rest is not needed. */
	if (!err || err == -EINTR)
		return VM_FAULT_NOPAGE;
	return err == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
}

/* ---- areas ---- */

/* False: the region has been revoked. */
static bool ock_keeper_add(struct ock_region *region)
{
	bool shown;

	down_write(&region->map_lock);
	shown = ock_region_shown(region);
	if (shown && !region->keepers++)
		ock_region_add_user(region);
	up_write(&region->map_lock);
	return shown;
}

static void ock_keeper_drop(struct ock_region *region)
{
	bool last;

	down_write(&region->map_lock);
	last = ock_region_shown(region) && !--region->keepers;
	up_write(&region->map_lock);
	if (last)
		ock_region_put_user(region);
}

/* An area was split or copied by mremap(). */
static void ock_area_open(struct vm_area_struct *vma)
{
	struct ock_region *region = vma->vm_private_data;

	ock_region_ref(region);
	if (region->flags & ONECOPY_REGION_LINGER)
		ock_keeper_add(region);
	ock_stat_inc(OCK_LIVE_MAPPINGS);
}

static void ock_area_close(struct vm_area_struct *vma)
{
	struct ock_region *region = vma->vm_private_data;

	if (region->flags & ONECOPY_REGION_LINGER)
		ock_keeper_drop(region);
	ock_region_unref(region);
	ock_stat_dec(OCK_LIVE_MAPPINGS);
}

static const struct vm_operations_struct area_ops = {
	.open = ock_area_open,
	.close = ock_area_close,
	.fault = ock_area_fault,
};

/* The region's offsets, chosen once. */
static void ock_map_place(struct ock_region *region)
{
	u32 nr = region->pages.nr_pages;
	u64 last = OCK_RANGE_LAST - nr;

	down_write(&region->map_lock);
	while (!region->map_page) {
		u64 place = atomic64_add_return(nr, &next_range) - nr;

		if (place <= last) {
			region->map_page = place;
			region->map_nr = nr;
		} else {
			atomic64_cmpxchg(&next_range, place + nr, OCK_RANGE_FIRST);
		}
	}
	up_write(&region->map_lock);
}

int ock_map_region(struct ock_region *region, u32 page, u32 nr, bool write,
		   struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_SHARED) || vma_pages(vma) != nr)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC || (vma->vm_flags & VM_WRITE && !write))
		return -EACCES;
	if (region->flags & ONECOPY_REGION_LINGER && !ock_keeper_add(region))
		return -ENOENT;
	ock_map_place(region);
	vma->vm_pgoff = region->map_page + page;
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	vm_flags_clear(vma, VM_MAYEXEC | (write ? 0 : VM_MAYWRITE));
	vma->vm_ops = &area_ops;
	vma->vm_private_data = region;
	ock_region_ref(region);
	ock_stat_inc(OCK_LIVE_MAPPINGS);
	ock_stat_inc(OCK_STAT_MAPPED);
	trace_onecopy_map(region->cookie, page, nr, write);
	return 0;
}

void ock_map_revoke(struct ock_region *region)
{
	bool kept;

	/* One that is stale, and has not ended, stays so; it has no keepers. */
	down_write(&region->map_lock);
	kept = ock_region_move(region, OCK_REGION_REVOKED) && region->keepers;
	up_write(&region->map_lock);
	if (region->mapped) {
		unmap_mapping_range(inode->i_mapping, (loff_t)region->map_page << PAGE_SHIFT,
				    (loff_t)region->map_nr << PAGE_SHIFT, 1);
		ock_stat_inc(OCK_STAT_REVOKED);
		trace_onecopy_region_revoke(region->cookie);
	}
	if (kept)
		ock_region_put_user(region);
}
