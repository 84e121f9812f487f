/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_RANDOM_H
#define OC_TEST_RANDOM_H

/* Numbers that look random, and are the same for the same seed. */

#include <stdint.h>

/* The next of a sequence that any seed begins: splitmix64 (Steele, Lea, Flood, "Fast splittable
 * pseudorandom number generators", 2014). */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

#endif
