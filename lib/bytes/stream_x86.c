// SPDX-License-Identifier: BSD-3-Clause
/*
 * x86-64. Line after line SSE2 is enough: off-cache on Zen 4, stores of 16 and of 32 bytes are
 * equal and those of 64 a little slower. Asking for the source 3 KiB ahead gains, 2.5 or 3.5 KiB
 * the same.
 *
 * Two places of one piece side by side, some pages apart, are faster still and ask for nothing: on
 * Zen 4, pieces of 64 KiB to 4 MiB take 0.89 of the time with two processes at work and 0.76 with
 * one, 8 KiB 0.92. Three and four, which begin at one place of their pages, take 1.2 to 2.5 times
 * as long. It is how many lines are waited for at once, so each instruction in the loop counts:
 * with the places' list read from the stack in each turn a third of that was left. A source that
 * goes to two places is stored to both as it is read, and asked for 3 KiB ahead: 0.86 of the time
 * of one after the other, the second from a cache.
 *
 * A store past the caches does not look its page up before it is its turn, and all that follow wait
 * meanwhile. So one line of the page after is asked for where a page begins, for the sake of its
 * address: with 4 KiB pages, in a virtual machine on Zen 4, copies that go on at one place are 1.12
 * to 1.25 times as fast for both, and as fast with huge ones. Those at two gain nothing by it.
 *
 * Runs that lie apart are another matter: behind each its prefetchers go on into what nobody wants,
 * and where memory is what limits, that is paid for: off-cache, two processes at once, runs of 1
 * KiB with as much between them take twice as long as those without. Line by line from four runs in
 * turn they do not, and the lines of runs eight further on are asked for in that order, into the
 * second cache: 1.15 to 1.5 times as fast for runs of 256 bytes to 8 KiB. Of four destinations that
 * begin at one place of their pages (strides of 4 KiB and multiples) each waits for the others, of
 * two none.
 *
 * Intel's prefetchers begin anew in each page, after its first lines have come from memory. There
 * four places are copied side by side, and what one waits for the others do meanwhile: on a Xeon
 * with 4 KiB pages 1.15 to 1.5 times as fast, with huge ones 1.1. Two, three, five or six places
 * gain less; so do places that are a page apart, and not 64 KiB. Stores of 32 bytes take 0.95 of
 * the time that those of 16 do.
 */
#include "bytes/stream.h"

#include <errno.h>
#include <immintrin.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define TURN  4			      /* lines a turn: all sixteen registers */
#define AHEAD (3072 / OC_STREAM_LINE) /* lines */
#define PAGE  (4096 / OC_STREAM_LINE) /* lines: the smallest */

#define ROW_LANES 4
#define ROW_AHEAD 8		     /* runs */
#define ROW_ASKED ((size_t)32 << 10) /* bytes ahead, at most */

enum { PER_LINE = OC_STREAM_LINE / sizeof(__m128i), PER_PAIR = OC_STREAM_LINE / sizeof(__m256i) };

static _Atomic unsigned int beside; /* lanes of pieces; 0: not yet */
static _Atomic unsigned int within; /* lanes of one piece; 0: not yet */

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

static inline bool begins_page(const void *turn)
{
	return (uintptr_t)turn % (PAGE * OC_STREAM_LINE) < TURN * OC_STREAM_LINE;
}

/* Has the page after the one that @at is in looked up. */
static inline void ask_page(const __m128i *at)
{
	_mm_prefetch((const char *)(at + PAGE * PER_LINE), _MM_HINT_T0);
}

/* One after the other. */
static void copy_lines(__m128i *d, const __m128i *s, size_t lines)
{
	/* Never past either end: a line asked for there is one taken from
	 * whoever writes it. */
	if (lines > PAGE)
		ask_page(d);
	for (; lines >= AHEAD + TURN; lines -= TURN) {
		if (begins_page(d) && lines > PAGE)
			ask_page(d);
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

/* @lines of each of @n places, line by line, in few instructions: the fewer, the more lines are
 * waited for at once. @asks: for what is @ahead of each, too. */
static inline __attribute__((target("avx"), always_inline)) void
copy_apart(void *const *dst, const void *const *src, size_t n, size_t lines, bool asks,
	   ptrdiff_t ahead)
{
	const char *s[OC_STREAM_LANES_MAX];
	char *d[OC_STREAM_LANES_MAX];

	/* Stores could be to the places' list, but not to this one: it stays in registers. */
	for (size_t i = 0; i < n; i++) {
		s[i] = src[i];
		d[i] = dst[i];
	}
	for (size_t at = 0; at < lines * OC_STREAM_LINE; at += OC_STREAM_LINE) {
#pragma GCC unroll 4
		for (size_t i = 0; i < n; i++) {
			__m256i a = _mm256_loadu_si256((const __m256i *)(s[i] + at));
			__m256i b = _mm256_loadu_si256((const __m256i *)(s[i] + at) + 1);

			if (asks)
				_mm_prefetch(s[i] + at + ahead, _MM_HINT_T1);
			_mm256_stream_si256((__m256i *)(d[i] + at), a);
			_mm256_stream_si256((__m256i *)(d[i] + at) + 1, b);
		}
	}
}

__attribute__((target("avx"))) static void copy_beside(void *const *dst, const void *const *src,
						       size_t n, size_t lines)
{
	if (n == 2)
		copy_apart(dst, src, 2, lines, false, 0);
	else if (n == 3)
		copy_apart(dst, src, 3, lines, false, 0);
	else
		copy_apart(dst, src, 4, lines, false, 0);
}

static bool has_avx(void)
{
	__builtin_cpu_init(); /* we may run before the constructor that calls it */
	return __builtin_cpu_supports("avx");
}

static unsigned int suits(_Atomic unsigned int *lanes, unsigned int on_intel,
			  unsigned int elsewhere)
{
	unsigned int n = atomic_load_explicit(lanes, memory_order_relaxed);

	if (__builtin_expect(!n, 0)) {
		/* Racing threads find the same. */
		if (!has_avx())
			n = 1;
		else
			n = __builtin_cpu_is("intel") ? on_intel : elsewhere;
		atomic_store_explicit(lanes, n, memory_order_relaxed);
	}
	return n;
}

unsigned int oc_stream_lanes(void)
{
	return suits(&beside, OC_STREAM_LANES_MAX, 1);
}

unsigned int oc_stream_lanes_within(void)
{
	return suits(&within, OC_STREAM_LANES_MAX, 2);
}

int oc_stream_select_lanes(unsigned int lanes)
{
	if (lanes > OC_STREAM_LANES_MAX)
		return -EINVAL;
	if (lanes > 1 && !has_avx())
		return -ENOTSUP;
	atomic_store_explicit(&beside, lanes, memory_order_relaxed);
	atomic_store_explicit(&within, lanes, memory_order_relaxed);
	return 0;
}

void oc_stream_beside(void *const *dst, const void *const *src, size_t n, size_t lines)
{
	if (n > 1 && oc_stream_lanes() > 1) {
		copy_beside(dst, src, n, lines);
		return;
	}
	for (size_t i = 0; i < n; i++)
		copy_lines(dst[i], src[i], lines);
}

/* What is copied next of @lines: this many lines in each of *@lanes, one behind the other in
 * memory. 0: the rest is too short for two. */
static size_t lane_of(size_t lines, size_t *lanes)
{
	size_t lane;

	if (*lanes > lines / OC_STREAM_LANE_LEAST)
		*lanes = lines / OC_STREAM_LANE_LEAST;
	if (*lanes < 2)
		return 0;
	lane = lines / *lanes;
	return lane < OC_STREAM_LANE_MOST ? lane : OC_STREAM_LANE_MOST;
}

void oc_stream_lines(void *dst, const void *src, size_t lines)
{
	size_t lanes = oc_stream_lanes_within(), lane;
	const char *s = src;
	char *d = dst;

	while ((lane = lane_of(lines, &lanes))) {
		const void *from[OC_STREAM_LANES_MAX];
		void *to[OC_STREAM_LANES_MAX];

		for (size_t i = 0; i < lanes; i++) {
			to[i] = d;
			from[i] = s;
			d += lane * OC_STREAM_LINE;
			s += lane * OC_STREAM_LINE;
		}
		copy_beside(to, from, lanes, lane);
		lines -= lanes * lane;
	}
	copy_lines((__m128i *)d, (const __m128i *)s, lines);
}

/* Of processors that do not want all lanes they can have: others were not measured. */
static bool is_sparing(void)
{
	return oc_stream_lanes() == 1 && has_avx();
}

bool oc_stream_has_twice(void)
{
	return is_sparing();
}

__attribute__((target("avx"))) static void copy_twice(__m256i *d, __m256i *e, const __m256i *s,
						      size_t lines)
{
	for (; lines; lines--) {
		__m256i a = _mm256_loadu_si256(s), b = _mm256_loadu_si256(s + 1);

		if (lines > AHEAD)
			_mm_prefetch((const char *)(s + AHEAD * PER_PAIR), _MM_HINT_T0);
		_mm256_stream_si256(d, a);
		_mm256_stream_si256(d + 1, b);
		_mm256_stream_si256(e, a);
		_mm256_stream_si256(e + 1, b);
		d += PER_PAIR;
		e += PER_PAIR;
		s += PER_PAIR;
	}
}

void oc_stream_lines_twice(void *dst, void *other, const void *src, size_t lines)
{
	copy_twice(dst, other, src, lines);
}

bool oc_stream_has_row(void)
{
	return is_sparing();
}

/* The first @n runs: one, two or four. */
__attribute__((target("avx"))) static void
copy_runs(struct oc_stream_row dst, struct oc_stream_row src, size_t len, size_t n, ptrdiff_t ahead)
{
	const void *from[ROW_LANES];
	void *to[ROW_LANES];
	size_t head[ROW_LANES], lines = len / OC_STREAM_LINE, done;

	/* All but a line of the longest is in the shortest. */
	for (size_t i = 0; i < n; i++) {
		char *d = dst.at + (ptrdiff_t)i * dst.stride;
		const char *s = src.at + (ptrdiff_t)i * src.stride;
		size_t whole;

		head[i] = oc_stream_head(d);
		whole = (len - head[i]) / OC_STREAM_LINE;
		if (whole < lines)
			lines = whole;
		if (head[i])
			memcpy(d, s, head[i]);
		to[i] = d + head[i];
		from[i] = s + head[i];
	}
	if (n == ROW_LANES)
		copy_apart(to, from, ROW_LANES, lines, true, ahead);
	else if (n == 2)
		copy_apart(to, from, 2, lines, true, ahead);
	else
		copy_lines(to[0], from[0], lines);
	done = lines * OC_STREAM_LINE;
	for (size_t i = 0; i < n; i++) {
		size_t rest = len - head[i] - done;

		if (rest)
			oc_stream_bytes((char *)to[i] + done, (const char *)from[i] + done, rest);
	}
}

void oc_stream_row(struct oc_stream_row dst, struct oc_stream_row src, size_t len, size_t n)
{
	size_t lanes = dst.stride % (PAGE * OC_STREAM_LINE) ? ROW_LANES : 2;
	size_t ahead = len <= ROW_ASKED / ROW_AHEAD ? ROW_AHEAD : 0;

	while (n) {
		size_t some = n < lanes ? 1 : lanes;

		copy_runs(dst, src, len, some,
			  n >= some + ahead ? (ptrdiff_t)ahead * src.stride : 0);
		dst.at += (ptrdiff_t)some * dst.stride;
		src.at += (ptrdiff_t)some * src.stride;
		n -= some;
	}
}

void oc_stream_fence(void)
{
	_mm_sfence();
}
