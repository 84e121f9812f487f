// SPDX-License-Identifier: BSD-3-Clause
/*
 * oc_copy_bytes(), streamed and not, page after page and several side by side: every short length,
 * random long ones, at every misalignment of both sides. Nothing outside the destination changes.
 * oc_copy_each() and oc_stream_row() the same.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/copy.h"
#include "bytes/stream.h"
#include "fenced.h"

#define GUARD	 64
#define SHORT	 1200
#define LONG	 300000
#define LONG_RUN 600
#define ROWS	 2000
#define EACH	 1000
#define MOST_DST 5

static uint32_t state = 1;

static size_t below(size_t n)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

static int check(unsigned char *pool, size_t len, size_t dst_off, size_t src_off, bool stream)
{
	/* Exact blocks, so that a sanitizer sees a byte too many on either side. */
	unsigned char *src = malloc(src_off + len + !len);
	unsigned char *dst = malloc(GUARD + dst_off + len);
	size_t start = GUARD + dst_off;
	const char *what = NULL;

	if (!src || !dst) {
		what = "out of memory";
		goto out;
	}
	memcpy(src + src_off, pool + below(GUARD), len);
	memset(dst, 0x5a, start + len);
	oc_copy_bytes(dst + start, src + src_off, len, stream);
	if (memcmp(dst + start, src + src_off, len))
		what = "wrong bytes";
	if (!all_fenced())
		what = "not fenced";
	for (size_t i = 0; i < start; i++)
		if (dst[i] != 0x5a)
			what = "wrote before the destination";

	/* The same inside a larger block, for what comes after it. */
	memset(pool + LONG, 0xc3, LONG);
	oc_copy_bytes(pool + LONG + dst_off, src + src_off, len, stream);
	if (memcmp(pool + LONG + dst_off, src + src_off, len))
		what = "wrong bytes";
	for (size_t i = dst_off + len; i < dst_off + len + 2 * GUARD; i++)
		if (pool[LONG + i] != 0xc3)
			what = "wrote after the destination";
out:
	if (what)
		fprintf(stderr, "%s: %zu bytes, destination +%zu, source +%zu%s\n", what, len,
			dst_off, src_off, stream ? ", streamed" : "");
	free(src);
	free(dst);
	return what ? 1 : 0;
}

static int check_all(unsigned char *pool)
{
	int failed = 0;

	oc_copy_bytes(NULL, NULL, 0, false);
	oc_copy_bytes(NULL, NULL, 0, true);
	for (size_t len = 0; len < SHORT; len++)
		for (int stream = 0; stream < 2; stream++)
			failed |= check(pool, len, below(GUARD), below(GUARD), stream);
	for (size_t off = 0; off < GUARD; off++)
		failed |= check(pool, 4096 + below(512), off, below(GUARD), true);
	for (int i = 0; i < LONG_RUN; i++)
		failed |=
			check(pool, below(LONG - 4 * GUARD), below(GUARD), below(GUARD), below(2));
	return failed;
}

/* To none or several places, of which one may be the source. */
static int check_each(const unsigned char *pool)
{
	size_t ndst = below(MOST_DST + 1), same = below(2) ? below(MOST_DST) : MOST_DST;
	size_t len = below(3) ? below(SHORT) : below(LONG), at[MOST_DST], together = below(3);
	unsigned char *block[MOST_DST], *src = malloc(len + !len);
	void *dst[MOST_DST];
	bool failed = !src;

	if (failed)
		return 1;
	memcpy(src, pool, len);
	for (size_t d = 0; d < ndst; d++) {
		/* Lines begin at one place of most. */
		at[d] = together ? GUARD : below(GUARD);
		if (posix_memalign((void **)&block[d], GUARD, at[d] + len + 1))
			return 1;
		memset(block[d], 0x5a, at[d] + len + 1);
		dst[d] = d == same ? src : block[d] + at[d];
	}
	oc_copy_each(dst, ndst, src, len, below(4));
	failed = !all_fenced() || memcmp(src, pool, len);
	for (size_t d = 0; d < ndst; d++) {
		failed |= memcmp(dst[d], src, len) != 0;
		for (size_t i = 0; i < at[d]; i++)
			failed |= block[d][i] != 0x5a;
		failed |= block[d][at[d] + len] != 0x5a;
		free(block[d]);
	}
	if (failed)
		fprintf(stderr, "each: %zu bytes to %zu places\n", len, ndst);
	free(src);
	return failed;
}

/* Runs apart, or not, forwards or backwards; nothing between them changes. */
static int check_row(unsigned char *pool)
{
	size_t n = 1 + below(40), len = OC_STREAM_LINE + below(600) + below(2) * below(9000);
	size_t page = below(2) ? 4096 * (1 + len / 4096) : 0, back = below(4);
	ptrdiff_t to = (ptrdiff_t)(page ? page : len + below(2) * below(300));
	ptrdiff_t from = (ptrdiff_t)(len + below(2) * below(3000));
	size_t to_bytes = (n - 1) * (size_t)to + len, from_bytes = (n - 1) * (size_t)from + len;
	unsigned char *want = malloc(to_bytes), *dst = malloc(to_bytes), *src = malloc(from_bytes);
	struct oc_stream_row d = {(char *)dst, to}, s = {(char *)src, from};
	int failed;

	if (!want || !dst || !src)
		return 1;
	for (size_t i = 0; i < from_bytes; i++)
		src[i] = pool[i % LONG];
	memset(want, 0x5a, to_bytes);
	memset(dst, 0x5a, to_bytes);
	if (back & 1)
		d = (struct oc_stream_row){(char *)dst + to_bytes - len, -to};
	if (back & 2)
		s = (struct oc_stream_row){(char *)src + from_bytes - len, -from};
	for (size_t i = 0; i < n; i++)
		memcpy(want + (d.at - (char *)dst) + (ptrdiff_t)i * d.stride,
		       s.at + (ptrdiff_t)i * s.stride, len);
	oc_stream_row(d, s, len, n);
	oc_stream_fence();
	failed = memcmp(want, dst, to_bytes) != 0;
	if (failed)
		fprintf(stderr, "row: %zu runs of %zu bytes, strides %td and %td\n", n, len,
			d.stride, s.stride);
	free(want);
	free(dst);
	free(src);
	return failed;
}

int main(void)
{
	static const unsigned int lanes[] = {1, 2, 3, OC_STREAM_LANES_MAX, 0};
	unsigned char *pool = malloc(2 * LONG + 4 * GUARD);
	int failed = 0;

	if (!pool)
		return 1;
	for (size_t i = 0; i < LONG; i++)
		pool[i] = (unsigned char)below(256);
	for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++) {
		if (oc_stream_select_lanes(lanes[i]))
			printf("%u lanes: skipped, this machine has no such copy\n", lanes[i]);
		else
			failed |= check_all(pool);
		for (int e = 0; e < EACH; e++)
			failed |= check_each(pool);
		for (int r = 0; r < ROWS && oc_stream_has_row(); r++)
			failed |= check_row(pool);
	}
	free(pool);
	return failed;
}
