// SPDX-License-Identifier: BSD-3-Clause
#include "bytes/layout.h"

#include <stdlib.h>
#include <string.h>

struct oc_layout *oc_layout_begin(uint32_t npieces)
{
	return calloc(1, oc_layout_size(npieces));
}

static void count_runs(struct oc_layout *layout, uint64_t n)
{
	layout->nruns = n < UINT32_MAX - layout->nruns ? layout->nruns + (uint32_t)n : UINT32_MAX;
}

static void append(struct oc_layout *layout, const struct oc_layout_piece *piece, uint64_t bytes)
{
	layout->piece[layout->npieces] = *piece;
	layout->piece[layout->npieces++].start = layout->bytes;
	layout->bytes += bytes;
	count_runs(layout, bytes / piece->len);
}

/* True if a run goes on where the last one ends: that is one, then. With @more behind it only if
 * that takes no piece. */
static bool lengthen(struct oc_layout *layout, struct oc_run run, bool more)
{
	struct oc_layout_piece *last = &layout->piece[layout->npieces - 1];
	uint64_t n = oc_layout_runs(last, layout->bytes);
	int64_t at = last->at + (int64_t)(n - 1) * last->stride;

	if (at + (int64_t)last->len != run.at || (more && n > 1))
		return false;
	if (n == 1) {
		last->len += run.len;
		layout->bytes += run.len;
		return true;
	}
	/* It is as long as the others no more. */
	layout->bytes -= last->len;
	layout->nruns -= layout->nruns != UINT32_MAX;
	append(layout, &(struct oc_layout_piece){.at = at, .len = last->len + run.len},
	       last->len + run.len);
	return true;
}

/* True if runs are the next ones of the last piece. */
static bool join(struct oc_layout *layout, const struct oc_layout_piece *piece, uint64_t bytes)
{
	struct oc_layout_piece *last = &layout->piece[layout->npieces - 1];
	uint64_t n = oc_layout_runs(last, layout->bytes);
	int64_t stride = last->stride, next;

	if (last->len != piece->len ||
	    (n == 1 && __builtin_sub_overflow(piece->at, last->at, &stride)) ||
	    (bytes != piece->len && piece->stride != stride) ||
	    __builtin_mul_overflow((int64_t)n, stride, &next) ||
	    __builtin_add_overflow(last->at, next, &next) || piece->at != next)
		return false;
	last->stride = stride;
	layout->bytes += bytes;
	count_runs(layout, bytes / piece->len);
	return true;
}

/* @bytes in runs of a piece, whose start is of no account. */
static void add_piece(struct oc_layout *layout, const struct oc_layout_piece *piece, uint64_t bytes)
{
	struct oc_run first = {.at = piece->at, .len = piece->len};
	struct oc_layout_piece rest = *piece;

	if (!bytes)
		return;
	if (!layout->npieces) {
		append(layout, piece, bytes);
		return;
	}
	if (lengthen(layout, first, bytes > first.len)) {
		rest.at += rest.stride;
		add_piece(layout, &rest, bytes - first.len);
	} else if (!join(layout, piece, bytes)) {
		append(layout, piece, bytes);
	}
}

void oc_layout_add_run(struct oc_layout *layout, struct oc_run run)
{
	add_piece(layout, &(struct oc_layout_piece){.at = run.at, .len = run.len}, run.len);
}

void oc_layout_add_element(struct oc_layout *layout, const struct oc_layout *element, int64_t at)
{
	for (uint32_t i = 0; i < element->npieces; i++) {
		struct oc_layout_piece piece = element->piece[i];

		piece.at += at;
		add_piece(layout, &piece, element->piece[i + 1].start - piece.start);
	}
}

static void find_bounds(struct oc_layout *layout)
{
	int64_t shift = (int64_t)(layout->count - 1) * layout->extent;

	layout->low = INT64_MAX;
	layout->high = INT64_MIN;
	for (uint32_t i = 0; i < layout->npieces; i++) {
		const struct oc_layout_piece *piece = &layout->piece[i];
		uint64_t n = oc_layout_runs(piece, piece[1].start);
		int64_t first = piece->at, last = first + (int64_t)(n - 1) * piece->stride;
		int64_t low = first < last ? first : last, high = first < last ? last : first;

		if (low < layout->low)
			layout->low = low;
		if (high + (int64_t)piece->len > layout->high)
			layout->high = high + (int64_t)piece->len;
	}
	if (shift < 0)
		layout->low += shift;
	else
		layout->high += shift;
}

struct oc_layout *oc_layout_end(struct oc_layout *layout, int64_t extent, uint64_t count)
{
	layout->extent = extent;
	layout->count = count;
	layout->piece[layout->npieces] = (struct oc_layout_piece){.start = layout->bytes};
	if (!layout->bytes || !count) {
		free(layout);
		return NULL;
	}
	find_bounds(layout);
	return layout;
}

struct oc_layout *oc_layout_make(const struct oc_run *runs, uint32_t n, int64_t extent,
				 uint64_t count)
{
	struct oc_layout *layout = oc_layout_begin(n), *fits;

	if (!layout)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		oc_layout_add_run(layout, runs[i]);
	layout = oc_layout_end(layout, extent, count);
	fits = layout ? realloc(layout, oc_layout_size(layout->npieces)) : NULL;
	return fits ? fits : layout;
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
