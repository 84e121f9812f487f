// SPDX-License-Identifier: BSD-3-Clause
#include "bytes/layout_copy.h"

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

/* Runs that are copied in a row: bytes of each, how many, and how many ahead one is asked for. */
#define ROW_RUN	  ((size_t)255)
#define ROW_FROM  4
#define ROW_AHEAD 16

/* Where a copy is in a sequence. */
struct cursor {
	char *base;
	const struct oc_layout *layout; /* NULL: all that is left is in one piece */
	uint64_t element;
	uint32_t piece;
	uint64_t runs;	 /* of the piece, behind this one */
	int64_t at;	 /* where the run begins, from where its element does */
	uint64_t within; /* the run */
};

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

/* At the first run of its piece. */
static void enter(struct cursor *cursor)
{
	const struct oc_layout_piece *piece = &cursor->layout->piece[cursor->piece];

	cursor->at = piece->at;
	cursor->runs = piece[1].start - piece->start == piece->len
			       ? 0
			       : oc_layout_runs(piece, piece[1].start) - 1;
}

static void pass_runs(struct cursor *cursor, uint64_t n)
{
	cursor->at += (int64_t)n * cursor->layout->piece[cursor->piece].stride;
	cursor->runs -= n;
}

static struct cursor seek(char *base, const struct oc_layout *layout, uint64_t off)
{
	uint64_t in_element = off % layout->bytes, in_piece;
	struct cursor cursor = {.base = base,
				.layout = layout,
				.element = off / layout->bytes,
				.piece = piece_of(layout, in_element)};
	const struct oc_layout_piece *piece = &layout->piece[cursor.piece];

	enter(&cursor);
	in_piece = in_element - piece->start;
	if (in_piece >= piece->len)
		pass_runs(&cursor, in_piece / piece->len);
	cursor.within = in_piece % piece->len;
	return cursor;
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

	return (struct oc_run){
		.at = (int64_t)cursor->element * layout->extent + cursor->at +
		      (int64_t)cursor->within,
		.len = layout->piece[cursor->piece].len - cursor->within,
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

/* Behind the last run of its piece. */
static void leave(struct cursor *cursor)
{
	if (++cursor->piece == cursor->layout->npieces) {
		cursor->piece = 0;
		cursor->element++;
	}
	enter(cursor);
}

/* By no more than is left of the run. */
static void advance(struct cursor *cursor, size_t len)
{
	if (!cursor->layout) {
		cursor->base += len;
		return;
	}
	cursor->within += len;
	if (cursor->within < cursor->layout->piece[cursor->piece].len)
		return;
	cursor->within = 0;
	if (cursor->runs)
		pass_runs(cursor, 1);
	else
		leave(cursor);
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
	bool apart = layout->nruns > 1 ||
		     (layout->count > 1 && layout->extent != (int64_t)layout->bytes);

	uint64_t least = oc_stream_lanes() > 1 ? FAR_BESIDE : FAR_PIECE;

	return (struct scout){
		.left = len,
		.ahead = apart && layout->bytes / layout->nruns >= least ? FAR : NEAR,
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

/* Runs of one length from a cursor on, each @stride from the one before. */
struct row {
	char *at;
	int64_t stride;
	size_t len;
	uint64_t n;
};

/* Without a layout there are any, as long as @len. No run that has begun. */
static struct row row_at(const struct cursor *cursor, size_t len)
{
	const struct oc_layout *layout = cursor->layout;
	const struct oc_layout_piece *piece;

	if (!layout)
		return (struct row){cursor->base, (int64_t)len, len, UINT64_MAX};
	if (cursor->within)
		return (struct row){.n = 0};
	piece = &layout->piece[cursor->piece];
	return (struct row){
		.at = oc_layout_at(cursor->base, run_of(cursor).at),
		.stride = layout->nruns == 1 ? layout->extent : piece->stride,
		.len = piece->len,
		.n = layout->nruns == 1 ? layout->count - cursor->element : cursor->runs + 1,
	};
}

/* By whole runs, of which there are as many. */
static void advance_runs(struct cursor *cursor, uint64_t n, size_t len)
{
	if (!cursor->layout) {
		cursor->base += n * len;
	} else if (cursor->layout->nruns == 1) {
		cursor->element += n;
	} else if (n <= cursor->runs) {
		pass_runs(cursor, n);
	} else {
		pass_runs(cursor, cursor->runs);
		leave(cursor);
	}
}

static inline __attribute__((always_inline)) void copy_row(struct row to, struct row from,
							   size_t len, uint64_t n)
{
	for (; n; n--) {
		/* Wherever that is: it is no access. */
		__builtin_prefetch(oc_layout_at(from.at, ROW_AHEAD * from.stride));
		memcpy(to.at, from.at, len);
		to.at = oc_layout_at(to.at, to.stride);
		from.at = oc_layout_at(from.at, from.stride);
	}
}

/* Lengths that elements have are known to the compiler. */
static void copy_runs(const struct row *to, const struct row *from, size_t len, uint64_t n)
{
	switch (len) {
	case 4:
		copy_row(*to, *from, 4, n);
		break;
	case 8:
		copy_row(*to, *from, 8, n);
		break;
	case 16:
		copy_row(*to, *from, 16, n);
		break;
	case 24:
		copy_row(*to, *from, 24, n);
		break;
	case 32:
		copy_row(*to, *from, 32, n);
		break;
	case 64:
		copy_row(*to, *from, 64, n);
		break;
	default:
		copy_row(*to, *from, len, n);
	}
}

static bool pays_streamed(const struct cursor *to, const char *at, size_t len)
{
	if (len >= STREAM_PIECE)
		return true;
	return len >= STREAM_WHOLE && to->layout && !(((uintptr_t)at | len) % OC_STREAM_LINE);
}

static bool pays_as_row(const struct cursor *to, const struct row *there, const struct row *here)
{
	bool apart = here->stride != (int64_t)here->len;

	return apart && oc_stream_has_row() && pays_streamed(to, there->at, there->len) &&
	       (there->len >= STREAM_PIECE || !(there->stride % OC_STREAM_LINE));
}

/* Runs that are alike on both sides, as many as follow each other, if they are short, or streamed
 * from where they lie apart, and then *@streamed is set; how many bytes. */
static size_t copy_alike(struct cursor *to, struct cursor *from, size_t len, bool stream,
			 bool *streamed)
{
	size_t run = from->layout ? from->layout->piece[from->piece].len
				  : to->layout->piece[to->piece].len;
	struct row there = row_at(to, run), here = row_at(from, run);
	uint64_t n = there.n < here.n ? there.n : here.n;

	if (len / run < n)
		n = len / run;
	if (n < ROW_FROM || there.len != run || here.len != run)
		return 0;
	if (run <= ROW_RUN) {
		if (there.at != here.at || there.stride != here.stride)
			copy_runs(&there, &here, run, n);
	} else if (stream && there.at != here.at && pays_as_row(to, &there, &here)) {
		oc_stream_row((struct oc_stream_row){there.at, there.stride},
			      (struct oc_stream_row){here.at, here.stride}, run, n);
		*streamed = true;
	} else {
		return 0;
	}
	advance_runs(to, n, run);
	advance_runs(from, n, run);
	return n * run;
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

	if (from->nruns > 1 || from->bytes < STREAM_PIECE)
		return false;
	if (!to)
		return from->bytes % OC_STREAM_LINE == 0;
	return to->nruns == 1 && to->bytes == from->bytes && to->extent % OC_STREAM_LINE == 0;
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

void oc_layout_copy(const struct oc_place *dst, const struct oc_place *src, size_t len, bool stream)
{
	struct cursor to = begin(dst), from = begin(src);
	struct batch batch = {.lanes = stream ? oc_stream_lanes() : 1};
	bool asks = from.layout && len >= AHEAD_FROM && !(batch.lanes > 1 && goes_beside(dst, src));
	struct scout scout = asks ? begin_scout(from.layout, len) : (struct scout){.left = 0};
	bool streamed = false;

	while (len) {
		size_t part = to.layout || from.layout
				      ? copy_alike(&to, &from, len, stream, &streamed)
				      : 0;
		const char *what;
		char *at;

		len -= part;
		if (part)
			continue;
		part = len;
		at = run_at(&to, &part);
		what = run_at(&from, &part);
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
