/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_TYPEMAP_H
#define OC_MPI_TYPEMAP_H

/*
 * Datatypes as the pieces of memory that their elements are: what their constructors say, in the
 * order of the type map, which is that of the signature. Flattened once, and kept with the type as
 * an attribute, so that it ends with it. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "bytes/layout.h"

struct oc_typemap {
	uint32_t users;	       /* the type, and calls that may outlast it */
	struct oc_layout *one; /* an element; NULL: it cannot be said, or has too many pieces */
};

/* A predefined type, or a duplicate of one. */
bool oc_typemap_is_predefined(MPI_Datatype type);

/* Whether the map of a type of @size bytes, more than 0, is one number: a predefined type, but no
 * pair, whatever constructors are around it. */
bool oc_typemap_is_number(MPI_Datatype type, uint64_t size);

/* Whether the MPI would send what is of a type. */
bool oc_typemap_is_committed(MPI_Datatype type);

/* An element of a type that is committed; NULL: it had better be packed. To be given back. */
struct oc_typemap *oc_typemap_get(MPI_Datatype type);
void oc_typemap_put(struct oc_typemap *map);

static inline bool oc_typemap_is_dense(const struct oc_typemap *map)
{
	return oc_layout_is_dense(map->one);
}

/* Whether the runs of @count elements are long enough, or so many alike, that to copy from run to
 * run costs less than packing, in a layout that has so many @blocks for different peers. */
bool oc_typemap_pays(const struct oc_typemap *map, uint64_t count, int blocks);

/* 0 or -EIO. */
int oc_typemap_setup(void);
void oc_typemap_teardown(void);

#endif
