/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_CALC_STREAM_HH
#define OC_CALC_STREAM_HH

/* Kernels that write past the caches: streamed<Op, T>, nullptr where there is none. */

#include <stddef.h>

#include "bytes/calc_elements.hh"
#include "bytes/calc_table.h"
#include "bytes/stream.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace
{

#ifdef __SSE2__

/* Stores of 64 bytes were no faster where measured (stream_x86.c). */
#ifdef __AVX2__
typedef __m256i vector;

inline void stream_vector(void *dst, vector v)
{
	_mm256_stream_si256(static_cast<vector *>(dst), v);
}
#else
typedef __m128i vector;

inline void stream_vector(void *dst, vector v)
{
	_mm_stream_si128(static_cast<vector *>(dst), v);
}
#endif

constexpr size_t per_line = OC_STREAM_LINE / sizeof(vector);
constexpr size_t turn = 2; /* lines */

/* Unlike a copy (stream_x86.c) this does not ask for its operands ahead: several
 * streams at once are better left to the hardware's prefetcher. On Zen 4, off-cache,
 * a fold of two took 1.2 times as long as a copy of as much so, and 1.3 to 1.5
 * times with the operands asked for 1, 2 or 4 KiB ahead. */
template <class Op, class T, size_t lines>
inline void stream_some(void *const *dst, size_t ndst, const void *const *src, size_t nsrc,
			size_t off)
{
	typedef T vec __attribute__((vector_size(sizeof(vector))));
	vec v[lines * per_line];

#pragma GCC unroll 8
	for (size_t i = 0; i < lines * per_line; i++)
		v[i] = load<vec>(byte_at(src[0], off), i);
	for (size_t s = 1; s < nsrc; s++) {
#pragma GCC unroll 8
		for (size_t i = 0; i < lines * per_line; i++)
			v[i] = Op::apply(v[i], load<vec>(byte_at(src[s], off), i));
	}
	for (size_t d = 0; d < ndst; d++) {
#pragma GCC unroll 8
		for (size_t i = 0; i < lines * per_line; i++)
			stream_vector(static_cast<char *>(dst[d]) + off + i * sizeof(vector),
				      reinterpret_cast<vector>(v[i]));
	}
}

/* A line of two operands. */
template <class Op, class T, size_t ndst>
inline void stream_line(char *const (&dst)[ndst], const char *a, const char *b, size_t at)
{
	typedef T vec __attribute__((vector_size(sizeof(vector))));
	vec v[per_line];

#pragma GCC unroll 4
	for (size_t i = 0; i < per_line; i++)
		v[i] = Op::apply(load<vec>(a + at, i), load<vec>(b + at, i));
#pragma GCC unroll 2
	for (size_t d = 0; d < ndst; d++) {
#pragma GCC unroll 4
		for (size_t i = 0; i < per_line; i++)
			stream_vector(dst[d] + at + i * sizeof(vector),
				      reinterpret_cast<vector>(v[i]));
	}
}

/* The commonest fold in few instructions, all places in registers: the fewer, the more lines are
 * waited for at once. In two lanes where a copy has two (stream_x86.c): with two destinations they
 * would be four, and on Intel's processors they gain nothing. */
template <class Op, class T, size_t ndst>
inline void stream_two(void *const *dst, const void *const *src, size_t off, size_t lines)
{
	const char *a = byte_at(src[0], off), *b = byte_at(src[1], off);
	bool has_lanes = ndst == 1 && oc_stream_lanes_within() == 2;
	char *d[ndst];

	for (size_t i = 0; i < ndst; i++)
		d[i] = static_cast<char *>(dst[i]) + off;
	while (lines) {
		bool beside = has_lanes && lines >= 2 * OC_STREAM_LANE_LEAST;
		size_t lane = beside ? lines / 2 : lines, end;

		if (beside && lane > OC_STREAM_LANE_MOST)
			lane = OC_STREAM_LANE_MOST;
		end = lane * OC_STREAM_LINE;
		for (size_t at = 0; at < end; at += OC_STREAM_LINE) {
			stream_line<Op, T, ndst>(d, a, b, at);
			if (beside)
				stream_line<Op, T, ndst>(d, a, b, end + at);
		}
		if (beside)
			end *= 2;
		a += end;
		b += end;
		for (size_t i = 0; i < ndst; i++)
			d[i] += end;
		lines -= end / OC_STREAM_LINE;
	}
}

template <class Op, class T>
void stream_each(void *const *dst, size_t ndst, const void *const *src, size_t nsrc, size_t off,
		 size_t lines)
{
	if (nsrc == 2 && ndst == 1) {
		stream_two<Op, T, 1>(dst, src, off, lines);
		return;
	}
	if (nsrc == 2 && ndst == 2) {
		stream_two<Op, T, 2>(dst, src, off, lines);
		return;
	}
	for (; lines >= turn; lines -= turn) {
		stream_some<Op, T, turn>(dst, ndst, src, nsrc, off);
		off += turn * OC_STREAM_LINE;
	}
	if (lines)
		stream_some<Op, T, 1>(dst, ndst, src, nsrc, off);
}

template <class Op, class T> constexpr oc_calc_stream_fn *streamed = stream_each<Op, T>;
template <class Op> constexpr oc_calc_stream_fn *streamed<Op, long double> = nullptr;

#else

template <class Op, class T> constexpr oc_calc_stream_fn *streamed = nullptr;

#endif

} // namespace

#endif
