// SPDX-License-Identifier: BSD-3-Clause
/*
 * Folds over many operands. Three ways, by where the result goes:
 *
 *   plain     ordinary stores: chunk by chunk through the first-level cache, the
 *             last operator writing the first destination, copied to the others
 *   lines     past the caches, straight from the registers; asks for a kernel
 *             (calc_table.h), for few operands and for destinations that agree
 *             modulo a line
 *   scatter   past the caches otherwise: a chunk is finished in a scratch buffer
 *             and copied out
 *
 * In place is always plain, and safe there: of a chunk, no destination is
 * written before all operands have been read but the last, and the operator
 * that reads that one reads an element before it writes it.
 */
#include "bytes/calc.h"

#include <stdint.h>
#include <string.h>

#include "bytes/isa.h"
#include "bytes/stream.h"

/* Scratch of a chunk. With one chunk of an operand it must fit the smallest
 * first-level caches, 32 KiB, with room for prefetching. */
#define CHUNK 8192

/* Operands the lines way reads side by side: more, and lines that agree modulo a
 * page push each other out of the first-level cache. */
#define LINES_MAX 8

struct fold {
	oc_calc_fn *calc;
	oc_calc_stream_fn *stream;
	size_t size; /* of an element */
	void *const *dst;
	size_t ndst;
	const void *const *src;
	size_t nsrc;
	void *scratch; /* CHUNK bytes */
};

int oc_calc_supported(enum oc_calc_op op, enum oc_type type)
{
	return (unsigned int)op < OC_OP_COUNT && (unsigned int)type < OC_TYPE_COUNT &&
	       oc_isa()->calc->calc[op][type] != NULL;
}

void oc_calc(enum oc_calc_op op, enum oc_type type, void *dst, const void *a, const void *b,
	     size_t count)
{
	oc_isa()->calc->calc[op][type](dst, a, b, count);
}

static inline size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static inline const void *src_at(const struct fold *fold, size_t i, size_t off)
{
	return (const char *)fold->src[i] + off;
}

static inline void *dst_at(const struct fold *fold, size_t i, size_t off)
{
	return (char *)fold->dst[i] + off;
}

/* Folds all operands but the last, bytes [off, off + len). Returns where the
 * result is: the first operand itself or the scratch. */
static const void *fold_front(const struct fold *fold, size_t off, size_t len)
{
	const void *acc = src_at(fold, 0, off);

	for (size_t i = 1; i + 1 < fold->nsrc; i++) {
		fold->calc(fold->scratch, acc, src_at(fold, i, off), len / fold->size);
		acc = fold->scratch;
	}
	return acc;
}

/* Bytes [off, end) by ordinary stores. */
static void fold_plain(const struct fold *fold, size_t off, size_t end)
{
	size_t step = CHUNK - CHUNK % fold->size;

	while (off < end) {
		size_t len = min(end - off, step);
		const void *acc = fold_front(fold, off, len);

		fold->calc(dst_at(fold, 0, off), acc, src_at(fold, fold->nsrc - 1, off),
			   len / fold->size);
		for (size_t i = 1; i < fold->ndst; i++)
			memcpy(dst_at(fold, i, off), dst_at(fold, 0, off), len);
		off += len;
	}
}

/* Bytes [off, end), finished in the scratch and streamed from there. */
static void fold_scatter(const struct fold *fold, size_t off, size_t end)
{
	size_t step = CHUNK - CHUNK % fold->size;

	while (off < end) {
		size_t len = min(end - off, step);
		const void *acc = fold_front(fold, off, len);

		fold->calc(fold->scratch, acc, src_at(fold, fold->nsrc - 1, off), len / fold->size);
		for (size_t i = 0; i < fold->ndst; i++)
			oc_stream_bytes(dst_at(fold, i, off), fold->scratch, len);
		off += len;
	}
}

/* One operand: bytes [0, end) to every destination but the operand itself. */
static void fold_copy(const struct fold *fold, size_t end, bool stream)
{
	/* With one destination there is nothing to keep in the cache. */
	size_t step = fold->ndst > 1 ? CHUNK : end;

	for (size_t off = 0; off < end; off += step) {
		size_t len = min(end - off, step);

		for (size_t i = 0; i < fold->ndst; i++) {
			if (fold->dst[i] == fold->src[0])
				continue;
			if (stream)
				oc_stream_bytes(dst_at(fold, i, off), src_at(fold, 0, off), len);
			else
				memcpy(dst_at(fold, i, off), src_at(fold, 0, off), len);
		}
	}
}

/* Lines just read as operands are cheaper to write where they are, in the cache,
 * than past it. Destinations come all in place or none but in odd calls, so one
 * settles it for all. */
static bool fold_in_place(const struct fold *fold)
{
	for (size_t i = 0; i < fold->ndst; i++)
		for (size_t k = 0; k < fold->nsrc; k++)
			if (fold->dst[i] == fold->src[k])
				return true;
	return false;
}

/* Whether the lines way is open, and from which byte on. */
static bool fold_fits_lines(const struct fold *fold, size_t *head)
{
	size_t bytes = oc_stream_head(fold->dst[0]);

	if (!fold->stream || fold->nsrc > LINES_MAX || bytes % fold->size)
		return false;
	for (size_t i = 1; i < fold->ndst; i++)
		if (oc_stream_head(fold->dst[i]) != bytes)
			return false;
	*head = bytes;
	return true;
}

/* @end >= OC_STREAM_MIN. Not fenced. */
static void fold_stream(const struct fold *fold, size_t end)
{
	size_t head, body;

	if (!fold_fits_lines(fold, &head)) {
		fold_scatter(fold, 0, end);
		return;
	}
	body = (end - head) & ~(size_t)(OC_STREAM_LINE - 1);
	fold_plain(fold, 0, head);
	fold->stream(fold->dst, fold->ndst, fold->src, fold->nsrc, head, body / OC_STREAM_LINE);
	fold_plain(fold, head + body, end);
}

void oc_calc_fold(enum oc_calc_op op, enum oc_type type, void *const *dst, size_t ndst,
		  const void *const *src, size_t nsrc, size_t count, bool stream)
{
	_Alignas(OC_STREAM_LINE) char scratch[CHUNK];
	const struct oc_calc_table *table = oc_isa()->calc;
	const struct fold fold = {
		.calc = table->calc[op][type],
		.stream = table->stream[op][type],
		.size = oc_type_size(type),
		.dst = dst,
		.ndst = ndst,
		.src = src,
		.nsrc = nsrc,
		.scratch = scratch,
	};
	size_t end = count * fold.size;

	if (!end)
		return;
	stream = stream && end >= OC_STREAM_MIN && (nsrc == 1 || !fold_in_place(&fold));
	if (nsrc == 1)
		fold_copy(&fold, end, stream);
	else if (stream)
		fold_stream(&fold, end);
	else
		fold_plain(&fold, 0, end);
	if (stream)
		oc_stream_fence();
}
