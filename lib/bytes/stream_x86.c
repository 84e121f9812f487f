// SPDX-License-Identifier: BSD-3-Clause
/*
 * x86-64, with SSE2 alone: off-cache on Zen 4, stores of 16 and of 32 bytes are
 * equal and those of 64 a little slower, so wider registers would add kernels
 * and no speed. Asking for the source 2 KiB ahead gains, 1 or 4 KiB the same;
 * copying several pages side by side loses.
 */
#include "bytes/stream.h"

#include <emmintrin.h>

#define TURN  4			      /* lines a turn: all sixteen registers */
#define AHEAD (2048 / OC_STREAM_LINE) /* lines */

enum { PER_LINE = OC_STREAM_LINE / sizeof(__m128i) };

static inline void stream(__m128i *dst, const __m128i *src, size_t lines)
{
	__m128i v[TURN * PER_LINE];

	/* Whole lines are stored back to back: their buffers go out full. */
#pragma GCC unroll 16
	for (size_t i = 0; i < lines * PER_LINE; i++)
		v[i] = _mm_loadu_si128(src + i);
#pragma GCC unroll 16
	for (size_t i = 0; i < lines * PER_LINE; i++)
		_mm_stream_si128(dst + i, v[i]);
}

void oc_stream_lines(void *dst, const void *src, size_t lines)
{
	__m128i *d = dst;
	const __m128i *s = src;

	/* Never past the source: a line asked for there is one taken from
	 * whoever writes it. */
	for (; lines >= AHEAD + TURN; lines -= TURN) {
#pragma GCC unroll 4
		for (size_t i = 0; i < TURN; i++)
			_mm_prefetch((const char *)(s + (AHEAD + i) * PER_LINE), _MM_HINT_T0);
		stream(d, s, TURN);
		d += TURN * PER_LINE;
		s += TURN * PER_LINE;
	}
	for (; lines >= TURN; lines -= TURN) {
		stream(d, s, TURN);
		d += TURN * PER_LINE;
		s += TURN * PER_LINE;
	}
	for (; lines; lines--) {
		stream(d, s, 1);
		d += PER_LINE;
		s += PER_LINE;
	}
}

void oc_stream_fence(void)
{
	_mm_sfence();
}
