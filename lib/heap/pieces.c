// SPDX-License-Identifier: BSD-3-Clause
/*
 * What is found is kept page by page, and so is what the child makes its own (helper.h). Mappings
 * are larger, as each costs time, and the kernel has a limit for their number. What is mapped with
 * data and has none is left alone, for whoever made such a page the child's own would give the
 * parent's file a page first:
 * - Dead blocks. The child never looks there.
 * - Small holes of blocks from malloc, as at their ends: only what the child writes there counts,
 *   whatever the parent puts there later.
 * - More of both, where there would be too many mappings.
 * Holes that have to stay zeros (span.h) are anonymous memory in any case. Where they part too many
 * pieces of data the smallest are copied here.
 */
#include "heap/pieces.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/quiet.h"
#include "heap/arena.h"
#include "heap/span.h"
#include "heap/static_data.h"
#include "heap/view.h"

#define GAP  ((size_t)64 << 10) /* fewer bytes between two pieces do not part them */
#define MOST 4096		/* mappings of the file: far from vm.max_map_count */
#define FEW  512

static struct oc_heap_piece few[FEW];

/* One way through the arena. */
struct search {
	struct oc_heap_copy *copy;
	size_t room;
	int fd;
	/* The file has data in [data, hole), and none before it from where it was looked for. */
	size_t data;
	size_t hole;
	int err;
};

static int make_room(struct search *search)
{
	struct oc_heap_copy *copy = search->copy;
	size_t bytes = search->room * sizeof(*copy->pieces);
	struct oc_heap_piece *more;

	if (copy->count < search->room)
		return 0;
	more = oc_quiet_mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (more == MAP_FAILED)
		return -ENOMEM;
	memcpy(more, copy->pieces, bytes);
	if (copy->pieces != few)
		oc_quiet_munmap(copy->pieces, bytes);
	copy->pieces = more;
	search->room *= 2;
	return 0;
}

/* How much of [at, at + bytes) comes before @edge, where that parts it. */
static size_t before(const char *at, size_t bytes, const char *edge)
{
	return at < edge && (size_t)(edge - at) < bytes ? (size_t)(edge - at) : bytes;
}

/* Static data is seen elsewhere than the rest of its block. */
static int add(struct search *search, char *at, size_t bytes, bool data, bool zeros)
{
	struct oc_heap_copy *copy = search->copy;

	while (bytes) {
		size_t part = before(at, bytes, oc_heap_static.at);
		int err = make_room(search);

		if (err)
			return err;
		part = before(at, part, oc_heap_static.at + oc_heap_static.mapped);
		copy->pieces[copy->count++] =
			(struct oc_heap_piece){.at = oc_heap_seen(at),
					       .bytes = part,
					       .off = (uintptr_t)at - oc_heap_range.base,
					       .data = data,
					       .zeros = zeros};
		at += part;
		bytes -= part;
	}
	return 0;
}

/*
 * Where there is data from @at on. What was never touched has no page in the file and needs none in
 * the copy. The end of data is looked for once: it may be behind many a piece.
 */
static int look(struct search *search, size_t at, size_t end)
{
	off_t data, hole;

	if (at < search->hole)
		return 0;
	if (search->fd < 0) {
		search->data = oc_heap_view_seek(at, end, true);
		search->hole = oc_heap_view_seek(search->data, end, false);
		return 0;
	}
	data = lseek(search->fd, (off_t)at, SEEK_DATA);
	if (data < 0 && errno == ENXIO)
		data = hole = (off_t)oc_heap_range.size;
	else
		hole = data < 0 ? data : lseek(search->fd, data, SEEK_HOLE);
	if (hole < 0)
		return -errno;
	search->data = (size_t)data;
	search->hole = (size_t)hole;
	return 0;
}

static bool found(char *run, size_t bytes, bool zeros, void *arg)
{
	struct search *search = arg;
	char *base = run - ((uintptr_t)run - oc_heap_range.base);
	size_t at = (size_t)(run - base), end = at + bytes;

	while (at < end && !search->err) {
		size_t from, to;

		search->err = look(search, at, end);
		from = search->data < at ? at : search->data < end ? search->data : end;
		to = search->hole < end ? search->hole : end;
		if (!search->err)
			search->err = add(search, base + at, from - at, false, zeros);
		if (!search->err)
			search->err = add(search, base + from, to - from, true, false);
		at = to;
	}
	return !search->err;
}

/* Pieces [first, end), with less than a gap between two of them. */
struct stretch {
	size_t first;
	size_t end;
};

static bool is_joined(const struct oc_heap_piece *one, const struct oc_heap_piece *next, size_t gap)
{
	size_t step = next->off - one->off;

	return step - one->bytes < gap && (size_t)(next->at - one->at) == step;
}

/* The one behind @stretch, of all that is live; or from data to data, with no zeros between. */
static bool next_stretch(const struct oc_heap_copy *copy, size_t gap, bool all,
			 struct stretch *stretch)
{
	const struct oc_heap_piece *pieces = copy->pieces;
	size_t i = stretch->end, last;

	while (i < copy->count && !all && !pieces[i].data)
		i++;
	if (i == copy->count)
		return false;
	stretch->first = last = i;
	while (++i < copy->count && (all || !pieces[i].zeros)) {
		if (!all && !pieces[i].data)
			continue;
		if (!is_joined(&pieces[last], &pieces[i], gap))
			break;
		last = i;
	}
	stretch->end = last + 1;
	return true;
}

static size_t data_of(const struct oc_heap_copy *copy, const struct stretch *stretch)
{
	size_t bytes = 0;

	for (size_t i = stretch->first; i < stretch->end; i++)
		if (copy->pieces[i].data)
			bytes += copy->pieces[i].bytes;
	return bytes;
}

/* From the first to the last byte. */
static size_t length_of(const struct oc_heap_copy *copy, const struct stretch *stretch)
{
	const struct oc_heap_piece *last = &copy->pieces[stretch->end - 1];

	return (size_t)(last->at - copy->pieces[stretch->first].at) + last->bytes;
}

/* How many hold less data than @less. */
static size_t count(const struct oc_heap_copy *copy, size_t gap, bool all, size_t less)
{
	struct stretch stretch = {0};
	size_t n = 0;

	while (next_stretch(copy, gap, all, &stretch))
		if (less == SIZE_MAX || data_of(copy, &stretch) < less)
			n++;
	return n;
}

/* Large enough for few stretches, as far as that helps. */
static size_t choose_gap(const struct oc_heap_copy *copy, bool all)
{
	size_t gap = GAP;

	while (gap < oc_heap_range.size && count(copy, gap, all, SIZE_MAX) > MOST)
		gap *= 2;
	return gap;
}

static int open_up(const struct oc_heap_copy *copy)
{
	size_t gap = choose_gap(copy, true);
	struct stretch stretch = {0};

	while (next_stretch(copy, gap, true, &stretch))
		if (mprotect(copy->pieces[stretch.first].at, length_of(copy, &stretch),
			     PROT_READ | PROT_WRITE))
			return -ENOMEM;
	return 0;
}

int oc_heap_pieces_find(struct oc_heap_copy *copy, int fd)
{
	struct search search = {.copy = copy, .room = FEW, .fd = fd};

	copy->pieces = few;
	copy->count = 0;
	oc_heap_span_walk(found, &search);
	return search.err ? search.err : open_up(copy);
}

static int copy_now(struct oc_heap_copy *copy, const struct stretch *stretch, int fd)
{
	for (size_t i = stretch->first; i < stretch->end; i++) {
		struct oc_heap_piece *piece = &copy->pieces[i];
		size_t done = 0;

		while (piece->data && done < piece->bytes) {
			long n = syscall(SYS_pread64, fd, piece->at + done, piece->bytes - done,
					 piece->off + done);

			if (n <= 0)
				return n ? -errno : -EIO;
			done += (size_t)n;
		}
		piece->data = false;
	}
	return 0;
}

static int map(const struct oc_heap_copy *copy, const struct stretch *stretch, int fd)
{
	const struct oc_heap_piece *first = &copy->pieces[stretch->first];

	return oc_quiet_mmap(first->at, length_of(copy, stretch), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd,
			     (off_t)first->off) == MAP_FAILED
		       ? -errno
		       : 0;
}

int oc_heap_pieces_map(struct oc_heap_copy *copy, int fd, size_t *bytes)
{
	size_t gap = choose_gap(copy, false);
	size_t all = count(copy, gap, false, SIZE_MAX);
	size_t excess = all > MOST ? all - MOST : 0;
	size_t less = 2 * OC_HEAP_PAGE;
	struct stretch stretch = {0};
	int err = 0;

	while (excess && count(copy, gap, false, less) < excess)
		less *= 2;
	while (!err && next_stretch(copy, gap, false, &stretch)) {
		size_t data = data_of(copy, &stretch);

		if (excess && data < less) {
			err = copy_now(copy, &stretch, fd);
			excess--;
		} else {
			err = map(copy, &stretch, fd);
			*bytes += data;
		}
	}
	return err;
}
