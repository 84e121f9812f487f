// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages of words are found in an XArray and made by whoever comes first, a fault or a copy. A
 * copy looks its page up when it is submitted, so that its end cannot fail.
 */
#include "words.h"

#include <linux/highmem.h>
#include <linux/mm.h>

#include <knem_io.h>
#include <onecopy.h>

#include "compat.h"

static size_t ock_word_size(enum ock_words_kind kind)
{
	return kind == OCK_WORDS_STATUS ? sizeof(knem_status_t) : sizeof(struct onecopy_completion);
}

static u64 ock_words_nr_pages(const struct ock_words *words)
{
	return DIV_ROUND_UP_ULL(words->nr_slots * ock_word_size(words->kind), PAGE_SIZE);
}

void ock_words_init(struct ock_words *words, enum ock_words_kind kind, u64 nr_slots)
{
	words->kind = kind;
	words->nr_slots = nr_slots;
	xa_init(&words->pages);
}

void ock_words_deinit(struct ock_words *words)
{
	unsigned long index;
	struct page *page;

	/* Not __free_page(): user space may have pinned one through its mapping. */
	xa_for_each(&words->pages, index, page)
	{
		put_page(page);
	}
	xa_destroy(&words->pages);
}

static struct page *ock_words_page(struct ock_words *words, unsigned long index)
{
	struct page *page = xa_load(&words->pages, index);
	struct page *old;

	if (page)
		return page;
	page = alloc_page(OCK_GFP_USER);
	if (!page)
		return NULL;
	old = xa_cmpxchg(&words->pages, index, NULL, page, GFP_KERNEL);
	if (!old)
		return page;
	__free_page(page);
	return xa_is_err(old) ? NULL : old;
}

int ock_words_get(struct ock_words *words, u32 slot, struct ock_word *word)
{
	u64 position = (u64)slot * ock_word_size(words->kind);

	if (slot >= words->nr_slots)
		return -ERANGE;
	word->kind = words->kind;
	word->page = ock_words_page(words, position >> PAGE_SHIFT);
	word->offset = offset_in_page(position);
	return word->page ? 0 : -ENOMEM;
}

static vm_fault_t ock_words_fault(struct vm_fault *vmf)
{
	struct ock_words *words = vmf->vma->vm_private_data;
	struct page *page;

	if (vmf->pgoff >= ock_words_nr_pages(words))
		return VM_FAULT_SIGBUS;
	page = ock_words_page(words, vmf->pgoff);
	if (!page)
		return VM_FAULT_OOM;
	get_page(page);
	vmf->page = page;
	return 0;
}

static const struct vm_operations_struct ock_words_ops = {
	.fault = ock_words_fault,
};

int ock_words_mmap(struct ock_words *words, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_pgoff ||
	    vma_pages(vma) > ock_words_nr_pages(words))
		return -EINVAL;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_private_data = words;
	vma->vm_ops = &ock_words_ops;
	return 0;
}

void ock_word_reset(const struct ock_word *word)
{
	struct onecopy_completion *completion = page_address(word->page) + word->offset;
	knem_status_t *status = page_address(word->page) + word->offset;

	if (word->kind == OCK_WORDS_STATUS) {
		WRITE_ONCE(*status, KNEM_STATUS_PENDING);
	} else {
		WRITE_ONCE(completion->state, ONECOPY_STATE_PENDING);
		WRITE_ONCE(completion->error, 0);
		WRITE_ONCE(completion->copied, 0);
	}
	flush_dcache_page(word->page);
}

void ock_word_write(const struct ock_word *word, int err, u64 copied)
{
	struct onecopy_completion *completion = page_address(word->page) + word->offset;
	knem_status_t *status = page_address(word->page) + word->offset;

	if (word->kind == OCK_WORDS_STATUS) {
		/* Whoever sees it sees the copy's data. */
		smp_store_release(status, err ? KNEM_STATUS_FAILED : KNEM_STATUS_SUCCESS);
	} else {
		WRITE_ONCE(completion->error, err == -ETIMEDOUT ? EIO : -err);
		WRITE_ONCE(completion->copied, copied);
		/* Whoever sees it sees what is above, and the copy's data. */
		smp_store_release(&completion->state,
				  err ? ONECOPY_STATE_FAILED : ONECOPY_STATE_DONE);
	}
	flush_dcache_page(word->page);
}
