// SPDX-License-Identifier: BSD-3-Clause
#include "ntcopy.h"

#include <immintrin.h>

static void copy_sse2(void *dst, const void *src, size_t bytes)
{
	const char *from = src;
	char *to = dst;

	for (size_t i = 0; i < bytes; i += 64) {
		__m128i a = _mm_loadu_si128((const __m128i *)(from + i));
		__m128i b = _mm_loadu_si128((const __m128i *)(from + i + 16));
		__m128i c = _mm_loadu_si128((const __m128i *)(from + i + 32));
		__m128i d = _mm_loadu_si128((const __m128i *)(from + i + 48));

		_mm_stream_si128((__m128i *)(to + i), a);
		_mm_stream_si128((__m128i *)(to + i + 16), b);
		_mm_stream_si128((__m128i *)(to + i + 32), c);
		_mm_stream_si128((__m128i *)(to + i + 48), d);
	}
	_mm_sfence();
}

__attribute__((target("avx"))) static void copy_avx(void *dst, const void *src, size_t bytes)
{
	const char *from = src;
	char *to = dst;

	for (size_t i = 0; i < bytes; i += 128) {
		__m256i a = _mm256_loadu_si256((const __m256i *)(from + i));
		__m256i b = _mm256_loadu_si256((const __m256i *)(from + i + 32));
		__m256i c = _mm256_loadu_si256((const __m256i *)(from + i + 64));
		__m256i d = _mm256_loadu_si256((const __m256i *)(from + i + 96));

		_mm256_stream_si256((__m256i *)(to + i), a);
		_mm256_stream_si256((__m256i *)(to + i + 32), b);
		_mm256_stream_si256((__m256i *)(to + i + 64), c);
		_mm256_stream_si256((__m256i *)(to + i + 96), d);
	}
	_mm_sfence();
}

__attribute__((target("avx512f"))) static void copy_avx512(void *dst, const void *src, size_t bytes)
{
	const char *from = src;
	char *to = dst;

	for (size_t i = 0; i < bytes; i += 256) {
		__m512i a = _mm512_loadu_si512((const __m512i *)(from + i));
		__m512i b = _mm512_loadu_si512((const __m512i *)(from + i + 64));
		__m512i c = _mm512_loadu_si512((const __m512i *)(from + i + 128));
		__m512i d = _mm512_loadu_si512((const __m512i *)(from + i + 192));

		_mm512_stream_si512((__m512i *)(to + i), a);
		_mm512_stream_si512((__m512i *)(to + i + 64), b);
		_mm512_stream_si512((__m512i *)(to + i + 128), c);
		_mm512_stream_si512((__m512i *)(to + i + 192), d);
	}
	_mm_sfence();
}

/* In the order a processor gains them. */
static const struct ntcopy ways[] = {
	{"stream-sse2", copy_sse2},
	{"stream-avx", copy_avx},
	{"stream-avx512", copy_avx512},
};

const struct ntcopy *ntcopy_at(size_t i)
{
	size_t known = 1;

	if (__builtin_cpu_supports("avx"))
		known = 2;
	if (known == 2 && __builtin_cpu_supports("avx512f"))
		known = 3;
	return i < known ? &ways[i] : NULL;
}
