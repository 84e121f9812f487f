/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_CLOCK_H
#define OC_CLOCK_H

/* Time that only goes forward, from an arbitrary start. Any thread. */

#include <stdint.h>
#include <time.h>

static inline uint64_t oc_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What the calling thread has run, in ns: other programs' time is not in it. */
static inline uint64_t oc_clock_thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* In ms, cheaper than the other and some ms late. */
static inline uint64_t oc_clock_coarse_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Half seconds: they begin at the same moment in all processes, which have one clock. */
static inline uint64_t oc_clock_turn(void)
{
	return oc_clock_coarse_ms() >> 9;
}

#endif
