/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_TYPE_SIZES_H
#define OC_MPI_TYPE_SIZES_H

/*
 * Sizes of datatypes. Those of predefined ones, which nobody can free, are kept by
 * handle, and whether they have gaps: calls are looked at without asking the MPI for more.
 * They are written once, in MPI_Init, before any thread's calls are looked at.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#define OC_TYPE_SIZES_BITS 7

struct oc_type_sizes_entry {
	MPI_Datatype type;
	uint32_t size; /* bytes; 0: the place is free */
	bool dense;
};
extern struct oc_type_sizes_entry oc_type_sizes[1 << OC_TYPE_SIZES_BITS];

static inline struct oc_type_sizes_entry *oc_type_sizes_place(MPI_Datatype type)
{
	uint64_t hash = (uint64_t)(uintptr_t)type * 0x9e3779b97f4a7c15u;

	return &oc_type_sizes[hash >> (64 - OC_TYPE_SIZES_BITS)];
}

/* Keeps what is known of a predefined type; does nothing for NULL. Where two types have
 * one place, the first keeps it. */
void oc_type_sizes_add(MPI_Datatype type);

/* Bytes of an element, as the MPI says; 0 when it cannot (bad arguments). */
size_t oc_type_sizes_ask(MPI_Datatype type);

/* Of a predefined type, as the MPI says: whether elements lie in one piece, without gaps. */
bool oc_type_sizes_ask_dense(MPI_Datatype type);

/* A predefined type that is kept here, and dense. */
static inline bool oc_type_is_plain(MPI_Datatype type)
{
	const struct oc_type_sizes_entry *entry = oc_type_sizes_place(type);

	return entry->type == type && entry->dense;
}

/* Bytes of @count elements; 0 when that cannot be said. */
static inline size_t oc_type_bytes(MPI_Datatype type, size_t count)
{
	const struct oc_type_sizes_entry *entry = oc_type_sizes_place(type);

	return count * (entry->type == type ? entry->size : oc_type_sizes_ask(type));
}

/* Whether a rank's other buffer has the @bytes that the standard wants of it, too: of what
 * a rank sends to itself both sides are known. */
static inline bool oc_same_bytes(MPI_Count count, MPI_Datatype type, size_t bytes)
{
	return count >= 0 && oc_type_bytes(type, (size_t)count) == bytes;
}

#endif
