/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HEAP_BITS_H
#define OC_HEAP_BITS_H

/* Tables of a bit a page, in words that threads change at once. Of a range of pages [first, last)
 * the words are first / OC_HEAP_BITS up to oc_heap_words(last), without that. */

#include <stddef.h>
#include <stdint.h>

#define OC_HEAP_BITS ((size_t)64) /* of a word */

static inline size_t oc_heap_words(size_t pages)
{
	return (pages + OC_HEAP_BITS - 1) / OC_HEAP_BITS;
}

/* Of pages [first, last), those in word @i, which has some of them. */
static inline uint64_t oc_heap_bits(size_t i, size_t first, size_t last)
{
	uint64_t bits = UINT64_MAX;

	if (i == first / OC_HEAP_BITS)
		bits &= UINT64_MAX << first % OC_HEAP_BITS;
	if (i == last / OC_HEAP_BITS)
		bits &= ~(UINT64_MAX << last % OC_HEAP_BITS);
	return bits;
}

#endif
