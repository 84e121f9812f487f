/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_NAMED_H
#define OC_MPI_NAMED_H

/*
 * Sizes of predefined datatypes, which nobody can free, by handle: small calls are
 * looked at and left to the MPI without asking it for more. Written once, in
 * MPI_Init, before any thread's calls are looked at.
 */

#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#define OC_NAMED_BITS 7

struct oc_named {
	MPI_Datatype type;
	size_t size; /* bytes; 0: the place is free */
};
extern struct oc_named oc_named[1 << OC_NAMED_BITS];

static inline struct oc_named *oc_named_place(MPI_Datatype type)
{
	uint64_t hash = (uint64_t)(uintptr_t)type * 0x9e3779b97f4a7c15u;

	return &oc_named[hash >> (64 - OC_NAMED_BITS)];
}

/* Bytes of an element, or 0: then ask the MPI. */
static inline size_t oc_named_size(MPI_Datatype type)
{
	const struct oc_named *named = oc_named_place(type);

	return named->type == type ? named->size : 0;
}

/* Where two types have one place, the first keeps it. */
void oc_named_add(MPI_Datatype type);

#endif
