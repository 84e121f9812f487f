// SPDX-License-Identifier: GPL-2.0-only
/*
 * Three ways to move bytes, by what the ends are: pages to pages, and out of or into the
 * caller's memory, whose pages may have to be fetched first. A region is not held while
 * that is waited for: ock_byte_move().
 */
#include "copy.h"

#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <onecopy.h>

#include "stats.h"
#include "trace.h"
#include "user_memory.h"

/* Between two looks at signals and the scheduler: some 20 us. */
#define OCK_PIECE (256u << 10)

/* Where a copy is in the current process's memory. */
struct ock_vec_cursor {
	const struct ock_vec *vec;
	u32 left;
	u64 done; /* of the first */
};

static size_t ock_vec_peek(struct ock_vec_cursor *cursor, size_t max, void __user **addr)
{
	while (cursor->left && cursor->done == cursor->vec->length) {
		cursor->vec++;
		cursor->left--;
		cursor->done = 0;
	}
	if (!cursor->left)
		return 0;
	*addr = u64_to_user_ptr(cursor->vec->addr + cursor->done);
	return min_t(u64, max, cursor->vec->length - cursor->done);
}

void ock_copy_init(struct ock_copy *copy)
{
	*copy = (struct ock_copy){.length = U64_MAX};
	ock_stat_inc(OCK_LIVE_COPIES);
}

int ock_end_region(struct ock_end *end, u64 cookie, u64 offset, u32 need)
{
	int err = ock_region_get(cookie, need, &end->ref);

	if (err)
		return err;
	end->kind = OCK_END_REGION;
	end->pages = &end->ref.region->pages;
	end->offset = offset;
	end->length = end->pages->length;
	return 0;
}

int ock_end_local(struct ock_end *end, const struct ock_vec *vec, u32 nr)
{
	int err = ock_vec_length(vec, nr, &end->length);

	if (err)
		return err;
	for (u32 i = 0; i < nr; i++) {
		if (vec[i].length && !access_ok(u64_to_user_ptr(vec[i].addr), vec[i].length))
			return -EFAULT;
	}
	end->kind = OCK_END_LOCAL;
	end->offset = 0;
	end->vec = vec;
	end->nr = nr;
	return 0;
}

int ock_end_pin(struct ock_end *end, const struct ock_vec *vec, u32 nr, bool writable,
		const struct ock_limits *limits)
{
	bool owes = ock_user_owes(limits->user);
	struct ock_pages *pages;
	int err;

	pages = kmalloc(sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return -ENOMEM;
	err = ock_pages_pin(pages, &ock_user_memory, vec, nr, writable, limits);
	if (owes && ock_user_settle(limits->user, err))
		err = ock_pages_pin(pages, &ock_user_memory, vec, nr, writable, limits);
	if (err) {
		kfree(pages);
		return err;
	}
	end->kind = OCK_END_PINNED;
	end->offset = 0;
	end->length = pages->length;
	end->pages = pages;
	return 0;
}

static void ock_end_deinit(struct ock_end *end)
{
	if (end->kind == OCK_END_REGION) {
		ock_region_put(&end->ref);
	} else if (end->kind == OCK_END_PINNED) {
		ock_pages_unpin(end->pages);
		kfree(end->pages);
	}
	end->kind = OCK_END_NONE;
}

u64 ock_end_cookie(const struct ock_end *end)
{
	return end->ref.region ? end->ref.region->cookie : 0;
}

static u64 ock_end_bytes(const struct ock_end *end)
{
	return end->offset < end->length ? end->length - end->offset : 0;
}

u64 ock_copy_bytes(const struct ock_copy *copy)
{
	return min3(copy->length, ock_end_bytes(&copy->source), ock_end_bytes(&copy->destination));
}

/* User space may see the bytes at another colour; free where caches have none. */
static void ock_written(struct page *page, u32 offset, size_t bytes)
{
#if ARCH_IMPLEMENTS_FLUSH_DCACHE_PAGE
	for (u32 i = 0; i < DIV_ROUND_UP(offset + bytes, PAGE_SIZE); i++)
		flush_dcache_page(page + i);
#endif
}

bool ock_copy_stopped(const struct ock_copy *copy)
{
	return (copy->stop && READ_ONCE(*copy->stop)) || fatal_signal_pending(current);
}

static int ock_copy_pages(const struct ock_copy *copy, u64 bytes, u64 *copied)
{
	struct ock_cursor from;
	struct ock_cursor to;

	ock_cursor_init(&from, copy->source.pages, copy->source.offset);
	ock_cursor_init(&to, copy->destination.pages, copy->destination.offset);
	while (*copied < bytes) {
		struct page *source;
		struct page *destination;
		u32 source_offset;
		u32 destination_offset;
		size_t piece;

		piece = min_t(u64, bytes - *copied, OCK_PIECE);
		piece = ock_cursor_peek(&from, piece, &source, &source_offset);
		piece = ock_cursor_peek(&to, piece, &destination, &destination_offset);
		memcpy(page_address(destination) + destination_offset,
		       page_address(source) + source_offset, piece);
		ock_written(destination, destination_offset, piece);
		ock_cursor_advance(&from, piece);
		ock_cursor_advance(&to, piece);
		*copied += piece;
		cond_resched();
		if (ock_copy_stopped(copy))
			return -EINTR;
	}
	return 0;
}

/*
 * What of @bytes could not be moved between the process and the pages. Does not
 * sleep: a page of the process that is not there is moved no more.
 */
static size_t ock_piece_move(void __user *addr, char *pages, size_t bytes, bool write)
{
	size_t missed;

	pagefault_disable();
	/* Not copy_from_user(), which fills up with zeroes what it could not read:
	 * the region would lose bytes. */
	if (write)
		missed = __copy_from_user_inatomic(pages, addr, bytes);
	else
		missed = __copy_to_user_inatomic(addr, pages, bytes);
	pagefault_enable();
	return missed;
}

/*
 * Moves one byte, after which its page of the process is there. That takes as
 * long as whoever provides the page likes (userfaultfd, FUSE); the region may be
 * destroyed meanwhile, and its memory used for other things. So it is not held, and is
 * read before and written after, if it is still there.
 */
static int ock_byte_move(struct ock_end *remote, void __user *addr, char *page, bool write)
{
	bool missing;
	u8 byte = write ? 0 : READ_ONCE(*page);
	int err;

	ock_region_pause(&remote->ref);
	if (write)
		missing = get_user(byte, (u8 __user *)addr);
	else
		missing = put_user(byte, (u8 __user *)addr);
	err = ock_region_resume(&remote->ref);
	if (missing)
		return -EFAULT;
	if (!err && write)
		WRITE_ONCE(*page, byte);
	return err;
}

/* @write: from the process into the pages. */
static int ock_copy_user(const struct ock_end *local, struct ock_end *remote, bool write, u64 bytes,
			 u64 *copied)
{
	struct ock_vec_cursor user = {.vec = local->vec, .left = local->nr};
	struct ock_cursor cursor;

	ock_cursor_init(&cursor, remote->pages, remote->offset);
	while (*copied < bytes) {
		void __user *addr;
		struct page *page;
		char *kernel;
		size_t piece;
		size_t missed;
		u32 offset;

		piece = min_t(u64, bytes - *copied, OCK_PIECE);
		piece = ock_vec_peek(&user, piece, &addr);
		piece = ock_cursor_peek(&cursor, piece, &page, &offset);
		kernel = page_address(page) + offset;
		missed = ock_piece_move(addr, kernel, piece, write);
		if (missed == piece) {
			int err = ock_byte_move(remote, addr, kernel, write);

			if (err)
				return err;
			missed--;
		}
		piece -= missed;
		if (write)
			ock_written(page, offset, piece);
		*copied += piece;
		user.done += piece;
		ock_cursor_advance(&cursor, piece);
		cond_resched();
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

int ock_copy_run(struct ock_copy *copy, u64 *result)
{
	/* Now: a region that goes meanwhile is not kept. */
	u64 source = ock_end_cookie(&copy->source);
	u64 destination = ock_end_cookie(&copy->destination);
	u64 bytes = ock_copy_bytes(copy);
	u64 copied = 0;
	int err;

	/* Also when an end was left out: it has no bytes. */
	if (!bytes)
		err = 0;
	else if (copy->source.kind == OCK_END_LOCAL)
		err = ock_copy_user(&copy->source, &copy->destination, true, bytes, &copied);
	else if (copy->destination.kind == OCK_END_LOCAL)
		err = ock_copy_user(&copy->destination, &copy->source, false, bytes, &copied);
	else
		err = ock_copy_pages(copy, bytes, &copied);

	trace_onecopy_copy(source, destination, bytes, copied, err);
	ock_stat_inc(OCK_STAT_COPIES);
	ock_stat_add(OCK_STAT_BYTES, copied);
	if (err == -EFAULT)
		ock_stat_inc(OCK_STAT_COPY_FAULTS);
	if (result)
		*result = copied;
	return err;
}

static void ock_end_pause(struct ock_end *end, const struct ock_owner *owner)
{
	if (end->kind == OCK_END_REGION && end->ref.region->owner != owner)
		ock_region_pause(&end->ref);
}

void ock_copy_pause(struct ock_copy *copy, const struct ock_owner *owner)
{
	ock_end_pause(&copy->source, owner);
	ock_end_pause(&copy->destination, owner);
}

int ock_copy_resume(struct ock_copy *copy)
{
	return ock_region_resume(&copy->source.ref) ?: ock_region_resume(&copy->destination.ref);
}

int ock_copy_pin(struct ock_copy *copy, struct ock_end *end, const struct ock_vec *vec, u32 nr,
		 bool writable, const struct ock_owner *owner)
{
	int gone;
	int err;

	ock_copy_pause(copy, owner);
	err = ock_end_pin(end, vec, nr, writable, &owner->limits);
	gone = ock_copy_resume(copy);
	return err ?: gone;
}

void ock_copy_deinit(struct ock_copy *copy)
{
	ock_end_deinit(&copy->source);
	ock_end_deinit(&copy->destination);
	ock_stat_dec(OCK_LIVE_COPIES);
}
