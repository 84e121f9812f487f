// SPDX-License-Identifier: BSD-3-Clause
#include "heap/pieces.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/quiet.h"
#include "heap/arena.h"
#include "heap/span.h"
#include "heap/static_data.h"
#include "heap/view.h"

#define GAP  ((size_t)64 << 10) /* less between two pieces does not part them */
#define MOST (OC_HEAP_PIECES - 2)

/* One way through the arena. */
struct search {
	struct oc_heap_copy *copy;
	int fd;
	size_t gap;
	int err;
};

/* Grows the last piece if the hole before @at is small. */
static bool add_piece(struct search *search, char *at, size_t bytes)
{
	struct oc_heap_copy *copy = search->copy;
	struct oc_heap_piece *last = copy->count ? &copy->pieces[copy->count - 1] : NULL;

	if (last && (size_t)(at - (last->at + last->bytes)) < search->gap) {
		last->bytes = (size_t)(at - last->at) + bytes;
		return true;
	}
	if (copy->count == MOST)
		return false;
	copy->pieces[copy->count++] = (struct oc_heap_piece){.at = at, .bytes = bytes};
	return true;
}

/*
 * The next data of the file from *@at on, which ends at *@to. 1, 0 if there is
 * none before @end, or -errno. What was never touched has no page in the file
 * and needs none in the copy.
 */
static int next_data(int fd, off_t *at, off_t *to, off_t end)
{
	if (fd < 0) {
		*at = (off_t)oc_heap_view_seek((size_t)*at, (size_t)end, true);
		*to = (off_t)oc_heap_view_seek((size_t)*at, (size_t)end, false);
		return *at < end;
	}
	*at = lseek(fd, *at, SEEK_DATA);
	if (*at < 0)
		return errno == ENXIO ? 0 : -errno;
	if (*at >= end)
		return 0;
	*to = lseek(fd, *at, SEEK_HOLE);
	if (*to < 0)
		return -errno;
	if (*to > end)
		*to = end;
	return 1;
}

static bool find_data(char *run, size_t bytes, void *arg)
{
	struct search *search = arg;
	off_t base = (off_t)oc_heap_range.base;
	off_t at = (off_t)(uintptr_t)run - base, to = at;
	off_t end = at + (off_t)bytes;

	if (mprotect(run, bytes, PROT_READ | PROT_WRITE)) {
		search->err = -ENOMEM;
		return false;
	}
	for (; at < end; at = to) {
		int found = next_data(search->fd, &at, &to, end);

		if (found < 0)
			search->err = found;
		if (found <= 0)
			return !found;
		if (!add_piece(search, (char *)(uintptr_t)(base + at), (size_t)(to - at)))
			return false;
	}
	return true;
}

/* The piece that reaches over @at ends there, and another begins. */
static void split(struct oc_heap_copy *copy, char *at)
{
	for (size_t i = 0; i < copy->count; i++) {
		struct oc_heap_piece *piece = &copy->pieces[i];
		size_t first = (size_t)(at - piece->at);

		if (at <= piece->at || first >= piece->bytes)
			continue;
		copy->pieces[copy->count++] =
			(struct oc_heap_piece){.at = at, .bytes = piece->bytes - first};
		piece->bytes = first;
		return;
	}
}

/* From where they lie in the arena to where the program sees them. */
static void show(struct oc_heap_copy *copy)
{
	if (oc_heap_static.mapped) {
		split(copy, oc_heap_static.at);
		split(copy, oc_heap_static.at + oc_heap_static.mapped);
	}
	for (size_t i = 0; i < copy->count; i++) {
		struct oc_heap_piece *piece = &copy->pieces[i];

		piece->off = (uintptr_t)piece->at - oc_heap_range.base;
		piece->at = oc_heap_seen(piece->at);
	}
}

int oc_heap_pieces_find(struct oc_heap_copy *copy, int fd)
{
	struct search search = {.copy = copy, .fd = fd};

	/* More gaps are mapped too when there would be too many pieces. */
	for (search.gap = GAP;; search.gap *= 16) {
		copy->count = 0;
		search.err = 0;
		oc_heap_span_walk(search.gap, find_data, &search);
		if (search.err || copy->count < MOST)
			break;
	}
	show(copy);
	return search.err;
}

int oc_heap_pieces_map(const struct oc_heap_copy *copy, int fd, size_t *bytes)
{
	for (size_t i = 0; i < copy->count; i++) {
		const struct oc_heap_piece *piece = &copy->pieces[i];

		if (oc_quiet_mmap(piece->at, piece->bytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd,
				  (off_t)piece->off) == MAP_FAILED)
			return -errno;
		*bytes += piece->bytes;
	}
	return 0;
}
