// SPDX-License-Identifier: BSD-3-Clause
/*
 * Folds over many operands, through the first-level cache. Two shapes:
 *
 *   write once   the last operator of a chunk writes the destinations itself;
 *                past the caches that asks for destinations that agree modulo
 *                a line and a kernel that can (calc_table.h)
 *   scatter      the chunk is finished in a scratch buffer and copied out
 *
 * In-place is safe in both: of a chunk, no destination is written before every
 * operand but the last has been read, and the last operator reads an element
 * of its operands before it writes that element anywhere.
 */
#include "calc.h"

#include <stdint.h>
#include <string.h>

#include "isa.h"
#include "stream.h"

/* Scratch of a chunk. With one chunk of an operand it must fit the smallest
 * first-level caches, 32 KiB, with room for prefetching. */
#define CHUNK 8192

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

int oc_calc_supported(enum oc_op op, enum oc_type type)
{
	return (unsigned int)op < OC_OP_COUNT && (unsigned int)type < OC_TYPE_COUNT &&
	       oc_isa()->calc->calc[op][type] != NULL;
}

void oc_calc(enum oc_op op, enum oc_type type, void *dst, const void *a, const void *b,
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

/* Bytes [off, end), whole lines, by streamed stores. */
static void fold_lines(const struct fold *fold, size_t off, size_t end)
{
	/* Two operands need no scratch, so no chunks. */
	size_t step = fold->nsrc > 2 ? CHUNK : end - off;

	while (off < end) {
		size_t len = min(end - off, step);
		const void *acc = fold_front(fold, off, len);

		fold->stream(fold->dst, fold->ndst, off, acc, src_at(fold, fold->nsrc - 1, off),
			     len / OC_STREAM_LINE);
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

/* Whether elements can be streamed a line at a time to all destinations at
 * once, and from which byte on. */
static bool fold_lines_fit(const struct fold *fold, size_t *head)
{
	size_t bytes = oc_stream_head(fold->dst[0]);

	if (!fold->stream || bytes % fold->size)
		return false;
	for (size_t i = 1; i < fold->ndst; i++)
		if (oc_stream_head(fold->dst[i]) != bytes)
			return false;
	*head = bytes;
	return true;
}

void oc_calc_fold(enum oc_op op, enum oc_type type, void *const *dst, size_t ndst,
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
	size_t head, body;

	if (!end)
		return;
	if (end < OC_STREAM_MIN)
		stream = false;
	if (nsrc == 1) {
		fold_copy(&fold, end, stream);
	} else if (!stream) {
		fold_plain(&fold, 0, end);
	} else if (fold_lines_fit(&fold, &head)) {
		body = (end - head) & ~(size_t)(OC_STREAM_LINE - 1);
		fold_plain(&fold, 0, head);
		fold_lines(&fold, head, head + body);
		fold_plain(&fold, head + body, end);
	} else {
		fold_scatter(&fold, 0, end);
	}
	if (stream)
		oc_stream_fence();
}
