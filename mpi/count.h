/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_COUNT_H
#define OC_MPI_COUNT_H

/*
 * Arrays of counts and displacements as a call has them: int, or in its large form MPI_Count and
 * MPI_Aint. What the MPI gets of them has the same width.
 */

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

typedef int64_t __attribute__((may_alias)) oc_large_count;
_Static_assert(sizeof(MPI_Count) == sizeof(oc_large_count), "one element for both");
_Static_assert(sizeof(MPI_Aint) == sizeof(oc_large_count), "one element for both");

struct oc_counts {
	const void *at;
	bool large;
};

static inline int64_t oc_counts_at(struct oc_counts counts, int i)
{
	return counts.large ? ((const oc_large_count *)counts.at)[i] : ((const int *)counts.at)[i];
}

/* No count is larger than what has the bits of all. */
static inline uint64_t oc_counts_bits(struct oc_counts counts, int n)
{
	uint64_t large = 0;
	unsigned int bits = 0;

	if (!counts.large)
		for (int i = 0; i < n; i++)
			bits |= ((const unsigned int *)counts.at)[i];
	else
		for (int i = 0; i < n; i++)
			large |= (uint64_t)oc_counts_at(counts, i);
	return bits | large;
}

static inline bool oc_counts_negative(struct oc_counts counts, int n)
{
	uint64_t bits = oc_counts_bits(counts, n);

	return counts.large ? bits >> 63 : (bits >> 31) & 1;
}

/* Adds up counts; false if one is negative, or there are none, which the MPI is to report. */
static inline bool oc_counts_total(struct oc_counts counts, int n, uint64_t *total)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++) {
		int64_t count = counts.at ? oc_counts_at(counts, i) : -1;

		if (count < 0)
			return false;
		sum += (uint64_t)count;
	}
	*total = sum;
	return true;
}

#endif
