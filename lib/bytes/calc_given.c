// SPDX-License-Identifier: BSD-3-Clause
#include "bytes/calc_given.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/copy.h"
#include "bytes/stream.h"

/* Of one operand. With two copies of it all is in a first-level cache. */
#define CHUNK 8192

static const char *at(const void *base, size_t off)
{
	return (const char *)base + off;
}

/* [off, off + len) of every operand, by turns in two places of @chunk bytes. *@result is where
 * what they make is. */
static int fold_chunk(const struct oc_calc_given *given, const void *const *src, size_t nsrc,
		      size_t off, size_t len, char *room, size_t chunk, const char **result)
{
	const char *acc = at(src[0], off);
	int err = 0;

	for (size_t i = 1; i < nsrc && !err; i++) {
		char *next = room + i % 2 * chunk;

		memcpy(next, at(src[i], off), len);
		err = given->fold(given, acc, next, len / given->size);
		acc = next;
	}
	*result = acc;
	return err;
}

int oc_calc_given_fold(const struct oc_calc_given *given, void *const *dst, size_t ndst,
		       const void *const *src, size_t nsrc, size_t count, bool stream)
{
	_Alignas(OC_STREAM_LINE) char room[2 * CHUNK];
	size_t size = given->size, end = count * size;
	size_t chunk = size > CHUNK ? size : CHUNK - CHUNK % size;
	char *own = size > CHUNK ? malloc(2 * size) : room;
	const char *result = NULL;
	int err = own ? 0 : -ENOMEM;

	for (size_t off = 0; off < end && !err; off += chunk) {
		size_t len = end - off < chunk ? end - off : chunk;

		err = fold_chunk(given, src, nsrc, off, len, own, chunk, &result);
		for (size_t i = 0; i < ndst && !err; i++)
			if (at(dst[i], off) != result)
				oc_copy_bytes((char *)dst[i] + off, result, len, stream);
	}
	if (own != room)
		free(own);
	return err;
}
