/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_NAMED_H
#define OC_MPI_NAMED_H

/*
 * Sizes of datatypes. Those of predefined ones, which nobody can free, are kept by
 * handle: small calls are looked at and left to the MPI without asking it for more.
 * They are written once, in MPI_Init, before any thread's calls are looked at.
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

/* Keeps the size of a predefined type; does nothing for NULL. Where two types have
 * one place, the first keeps it. */
void oc_named_add(MPI_Datatype type);

/* Bytes of an element, as the MPI says; 0 when it cannot (bad arguments). */
size_t oc_named_ask(MPI_Datatype type);

/* Bytes of @count elements; 0 when that cannot be said. */
static inline size_t oc_type_bytes(MPI_Datatype type, size_t count)
{
	const struct oc_named *named = oc_named_place(type);

	return count * (named->type == type ? named->size : oc_named_ask(type));
}

#endif
