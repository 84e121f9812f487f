// SPDX-License-Identifier: BSD-3-Clause
#include "heap/move.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "heap/arena.h"
#include "heap/extent.h"

#define STEP ((size_t)8 << 20)

/* The first offset from @at on where the file has data, or a hole; at most @end. */
static off_t seek(const struct oc_heap_arena *arena, off_t at, off_t end, int whence)
{
	off_t found = lseek(arena->fd, at, whence);

	if (found < 0)
		return whence == SEEK_DATA && errno == ENXIO ? end : at;
	return found < end ? found : end;
}

/* What the new place inherited is cleared where the old one has holes. */
static void copy(const struct oc_heap_arena *arena, char *to, const char *from, size_t bytes)
{
	off_t at = from - arena->base, end = at + (off_t)bytes;
	ptrdiff_t shift = to - from;

	if (!oc_file_is(&arena->file, arena->fd)) {
		memcpy(to, from, bytes);
		return;
	}
	while (at < end) {
		off_t data = seek(arena, at, end, SEEK_DATA);
		off_t hole = data < end ? seek(arena, data, end, SEEK_HOLE) : end;

		if (hole == data)
			hole = end;
		oc_heap_arena_zero(arena, arena->base + at + shift, (size_t)(data - at));
		memcpy(arena->base + data + shift, arena->base + data, (size_t)(hole - data));
		at = hole;
	}
}

bool oc_heap_move(const struct oc_heap_arena *arena, char *to, char *from, size_t bytes)
{
	bool empty = true;

	for (size_t at = 0; at < bytes; at += STEP) {
		size_t step = bytes - at < STEP ? bytes - at : STEP;

		copy(arena, to + at, from + at, step);
		empty &= oc_heap_extent_empty(from + at, step);
	}
	return empty;
}
