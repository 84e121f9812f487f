// SPDX-License-Identifier: BSD-3-Clause
#include "bytes/layout.h"

#include <stdlib.h>
#include <string.h>

#include "bytes/stream.h"

/* Of shorter pieces the partial lines at both ends count for too much; those that have none, and
 * lie apart, may have half of that. */
#define STREAM_PIECE ((size_t)512)
#define STREAM_WHOLE ((size_t)256)

/*
 * How much behind a piece is asked for before it is copied, where that is not likely to be in a
 * cache. Of pieces side by side each is waited for while the others are copied.
 *
 * Where pieces lie apart that is far ahead, into the second cache, which waits for more lines at a
 * time than the first: off-cache on Zen 4 pieces of 1 to 16 KiB take 0.4 to 0.7 of the time. What
 * goes on at the same place comes by itself, and loses by it.
 */
#define NEAR	   ((size_t)1 << 10)
#define FAR	   ((size_t)8 << 10)
#define FAR_PIECE  320	/* in the mean: of shorter ones it is a piece too many at a time */
#define FAR_BESIDE 1536 /* and on processors that lanes suit: Xeons take 1.1 of the time below */
#define AHEAD_FROM ((size_t)16 << 10)
#define LINE	   64

/* Where a copy is in a sequence. */
struct cursor {
	char *base;
	const struct oc_layout *layout; /* NULL: all that is left is in one piece */
	uint64_t element;
	uint32_t piece;
	uint64_t within; /* the piece */
};

static uint32_t append(struct oc_layout *layout, struct oc_run run)
{
	uint32_t n = layout->npieces;
	const struct oc_layout_piece *last = n ? &layout->piece[n - 1] : NULL;
	uint64_t before = last ? layout->bytes - last->start : 0;

	layout->bytes += run.len;
	if (!run.len || (last && last->at + (int64_t)before == run.at))
		return n;
	layout->piece[n] = (struct oc_layout_piece){.at = run.at, .start = layout->bytes - run.len};
	return n + 1;
}

static void find_bounds(struct oc_layout *layout)
{
	int64_t shift = (int64_t)(layout->count - 1) * layout->extent;

	layout->low = INT64_MAX;
	layout->high = INT64_MIN;
	for (uint32_t i = 0; i < layout->npieces; i++) {
		const struct oc_layout_piece *piece = &layout->piece[i];
		int64_t end = piece->at + (int64_t)(piece[1].start - piece->start);

		if (piece->at < layout->low)
			layout->low = piece->at;
		if (end > layout->high)
			layout->high = end;
	}
	if (shift < 0)
		layout->low += shift;
	else
		layout->high += shift;
}

struct oc_layout *oc_layout_make(const struct oc_run *runs, uint32_t n, int64_t extent,
				 uint64_t count)
{
	struct oc_layout *layout = calloc(1, oc_layout_size(n));

	if (!layout)
		return NULL;
	layout->extent = extent;
	layout->count = count;
	for (uint32_t i = 0; i < n; i++)
		layout->npieces = append(layout, runs[i]);
	layout->piece[layout->npieces].start = layout->bytes;
	if (!layout->bytes || !count) {
		free(layout);
		return NULL;
	}
	find_bounds(layout);
	return layout;
}

struct oc_layout *oc_layout_repeat(const struct oc_layout *one, uint64_t count)
{
	size_t size = oc_layout_size(one->npieces);
	int64_t shift, end;
	uint64_t bytes;
	struct oc_layout *layout;

	if (!count || __builtin_mul_overflow(count - 1, one->extent, &shift) ||
	    __builtin_add_overflow(shift < 0 ? one->low : one->high, shift, &end) ||
	    __builtin_mul_overflow(count, one->bytes, &bytes))
		return NULL;
	layout = malloc(size);
	if (!layout)
		return NULL;
	memcpy(layout, one, size);
	layout->count = count;
	find_bounds(layout);
	return layout;
}

/* The piece that byte @off of an element is in. */
static uint32_t piece_of(const struct oc_layout *layout, uint64_t off)
{
	uint32_t low = 0, high = layout->npieces;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (layout->piece[middle].start <= off)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static struct cursor seek(char *base, const struct oc_layout *layout, uint64_t off)
{
	uint64_t in_element = off % layout->bytes;
	uint32_t piece = piece_of(layout, in_element);

	return (struct cursor){
		.base = base,
		.layout = layout,
		.element = off / layout->bytes,
		.piece = piece,
		.within = in_element - layout->piece[piece].start,
	};
}

static struct cursor begin(const struct oc_place *place)
{
	if (place->layout)
		return seek(place->base, place->layout, place->off);
	return (struct cursor){.base = place->base + place->off};
}

/* Of a layout, from where its first element begins. */
static struct oc_run run_of(const struct cursor *cursor)
{
	const struct oc_layout *layout = cursor->layout;
	const struct oc_layout_piece *piece = &layout->piece[cursor->piece];

	return (struct oc_run){
		.at = (int64_t)cursor->element * layout->extent + piece->at +
		      (int64_t)cursor->within,
		.len = piece[1].start - piece->start - cursor->within,
	};
}

/* Where the cursor is, and in *@len, if that is less, how much is there. */
static char *run_at(const struct cursor *cursor, size_t *len)
{
	struct oc_run run;

	if (!cursor->layout)
		return cursor->base;
	run = run_of(cursor);
	if (run.len < *len)
		*len = run.len;
	return oc_layout_at(cursor->base, run.at);
}

/* By no more than is left of the run. */
static void advance(struct cursor *cursor, size_t len)
{
	const struct oc_layout *layout = cursor->layout;
	const struct oc_layout_piece *piece;

	if (!layout) {
		cursor->base += len;
		return;
	}
	piece = &layout->piece[cursor->piece];
	cursor->within += len;
	if (cursor->within < piece[1].start - piece->start)
		return;
	cursor->within = 0;
	if (++cursor->piece == layout->npieces) {
		cursor->piece = 0;
		cursor->element++;
	}
}

struct oc_run oc_layout_run(const struct oc_layout *layout, uint64_t off)
{
	struct cursor cursor = seek(NULL, layout, off);

	return run_of(&cursor);
}

/* What of the source has not been asked for. */
struct scout {
	struct cursor cursor;
	size_t left;
	size_t ahead; /* NEAR or FAR */
};

static struct scout begin_scout(const struct oc_layout *layout, size_t len)
{
	bool apart = layout->npieces > 1 ||
		     (layout->count > 1 && layout->extent != (int64_t)layout->bytes);

	uint64_t least = oc_stream_lanes() > 1 ? FAR_BESIDE : FAR_PIECE;

	return (struct scout){
		.left = len,
		.ahead = apart && layout->bytes / layout->npieces >= least ? FAR : NEAR,
	};
}

static void ask_for(const char *what, size_t len, bool far)
{
	for (const char *line = what; line < what + len; line += LINE)
		if (far)
			__builtin_prefetch(line, 0, 2);
		else
			__builtin_prefetch(line, 0, 3);
}

/* Before the first @part of the last @len bytes, from @at on, is copied: asks for what is behind
 * it. Processors guess by themselves what comes next in a piece, but not where the next one is. */
static void look_ahead(struct scout *scout, const struct cursor *at, size_t len, size_t part)
{
	size_t behind = len - part;

	if (scout->left > behind) {
		scout->cursor = *at;
		advance(&scout->cursor, part);
		scout->left = behind;
	}
	while (scout->left && scout->left + scout->ahead > behind) {
		size_t some = scout->left < scout->ahead ? scout->left : scout->ahead;
		const char *what = run_at(&scout->cursor, &some);

		ask_for(what, some, scout->ahead == FAR);
		advance(&scout->cursor, some);
		scout->left -= some;
	}
}

/* Pieces of one length that are streamed side by side. */
struct batch {
	void *dst[OC_STREAM_LANES_MAX];
	const void *src[OC_STREAM_LANES_MAX];
	size_t n;
	size_t len;
	size_t lanes;
};

/* Whether a batch takes what is streamed between the two: pieces of one length, which begin at the
 * same place of a line. */
static bool goes_beside(const struct oc_place *dst, const struct oc_place *src)
{
	const struct oc_layout *to = dst->layout, *from = src->layout;

	if (from->npieces > 1 || from->bytes < STREAM_PIECE)
		return false;
	if (!to)
		return from->bytes % OC_STREAM_LINE == 0;
	return to->npieces == 1 && to->bytes == from->bytes && to->extent % OC_STREAM_LINE == 0;
}

static void flush(struct batch *batch)
{
	if (batch->n)
		oc_stream_pieces(batch->dst, batch->src, batch->n, batch->len);
	batch->n = 0;
}

static void stream_piece(struct batch *batch, void *dst, const void *src, size_t len)
{
	if (batch->len != len)
		flush(batch);
	batch->dst[batch->n] = dst;
	batch->src[batch->n++] = src;
	batch->len = len;
	if (batch->n >= batch->lanes || len >= OC_STREAM_IN_LANES)
		flush(batch);
}

static bool pays_streamed(const struct cursor *to, const char *at, size_t len)
{
	if (len >= STREAM_PIECE)
		return true;
	return len >= STREAM_WHOLE && to->layout && !(((uintptr_t)at | len) % OC_STREAM_LINE);
}

void oc_layout_copy(const struct oc_place *dst, const struct oc_place *src, size_t len, bool stream)
{
	struct cursor to = begin(dst), from = begin(src);
	struct batch batch = {.lanes = stream ? oc_stream_lanes() : 1};
	bool asks = from.layout && len >= AHEAD_FROM && !(batch.lanes > 1 && goes_beside(dst, src));
	struct scout scout = asks ? begin_scout(from.layout, len) : (struct scout){.left = 0};
	bool streamed = false;

	while (len) {
		size_t part = len;
		char *at = run_at(&to, &part);
		const char *what = run_at(&from, &part);

		if (scout.left)
			look_ahead(&scout, &from, len, part);
		if (at != what && stream && pays_streamed(&to, at, part)) {
			stream_piece(&batch, at, what, part);
			streamed = true;
		} else if (at != what) {
			memcpy(at, what, part);
		}
		advance(&to, part);
		advance(&from, part);
		len -= part;
	}
	flush(&batch);
	if (streamed)
		oc_stream_fence();
}
