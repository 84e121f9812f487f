/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_CONTENTS_H
#define OC_MPI_CONTENTS_H

/*
 * What a datatype is made of: what MPI_Type_get_envelope and MPI_Type_get_contents say of it, or,
 * if its constructor had large counts, MPI_Type_get_envelope_c and MPI_Type_get_contents_c. Any
 * thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

struct oc_contents {
	int combiner;
	int64_t integers, addresses, large, types; /* how many there are */
	/* Large counts are where the same constructor without them has int and MPI_Aint. */
	int64_t *integer;
	MPI_Aint *address;
	MPI_Datatype *type;
};

/* Sets the combiner and the numbers. False if the MPI does not say: the type is wrong, or has large
 * counts and the MPI's calls for them are missing. */
bool oc_contents_envelope(MPI_Datatype type, struct oc_contents *of);

/* Predefined, or as good as (MPI_Type_create_f90_real and its like): nobody frees it. */
bool oc_contents_is_leaf(int combiner);

/* All the rest, after oc_contents_envelope, for no leaf. 0, -ENOMEM or -EINVAL; to be freed in any
 * case. */
int oc_contents_get(MPI_Datatype type, struct oc_contents *of);
void oc_contents_free(struct oc_contents *of);

/* Frees a type that MPI_Type_get_contents has given, where that is to be freed. */
void oc_contents_drop(MPI_Datatype inner);

void oc_contents_setup(void);

#endif
