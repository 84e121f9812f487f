// SPDX-License-Identifier: BSD-3-Clause
#include "contents.h"

#include <errno.h>
#include <stdlib.h>

#include "adapter.h"

/* No MPI before 4 has these. */
static int (*envelope_c)(MPI_Datatype type, MPI_Count *integers, MPI_Count *addresses,
			 MPI_Count *large, MPI_Count *types, int *combiner);
static int (*contents_c)(MPI_Datatype type, MPI_Count integers, MPI_Count addresses,
			 MPI_Count large, MPI_Count types, int *integer, MPI_Aint *address,
			 MPI_Count *counts, MPI_Datatype *type_of);

void oc_contents_setup(void)
{
	void *envelope = oc_pmpi_symbol("PMPI_Type_get_envelope_c");
	void *contents = oc_pmpi_symbol("PMPI_Type_get_contents_c");

	if (!envelope || !contents)
		return;
	*(void **)&envelope_c = envelope;
	*(void **)&contents_c = contents;
}

bool oc_contents_envelope(MPI_Datatype type, struct oc_contents *of)
{
	int integers, addresses, types;
	MPI_Count wide[4];

	*of = (struct oc_contents){0};
	if (envelope_c) {
		/* The other would report an error of a type with large counts, perhaps a fatal
		 * one. */
		if (envelope_c(type, &wide[0], &wide[1], &wide[2], &wide[3], &of->combiner))
			return false;
		of->integers = wide[0];
		of->addresses = wide[1];
		of->large = wide[2];
		of->types = wide[3];
		return true;
	}
	if (pmpi()->Type_get_envelope(type, &integers, &addresses, &types, &of->combiner))
		return false;
	of->integers = integers;
	of->addresses = addresses;
	of->types = types;
	return true;
}

bool oc_contents_is_leaf(int combiner)
{
	return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
	       combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

void oc_contents_drop(MPI_Datatype inner)
{
	struct oc_contents of;

	if (!oc_contents_envelope(inner, &of) || !oc_contents_is_leaf(of.combiner))
		pmpi()->Type_free(&inner);
}

/* How many integers come before the large counts, of constructors that have both. */
static int64_t integers_before(int combiner)
{
	if (combiner == MPI_COMBINER_DARRAY)
		return 3; /* size, rank, ndims */
	return combiner == MPI_COMBINER_SUBARRAY ? 1 : 0;
}

/* How many of the large counts, the last ones, are bytes. */
static int64_t large_addresses(const struct oc_contents *of, const MPI_Count *large)
{
	switch (of->combiner) {
	case MPI_COMBINER_HVECTOR:
		return 1;
	case MPI_COMBINER_HINDEXED:
	case MPI_COMBINER_HINDEXED_BLOCK:
	case MPI_COMBINER_STRUCT:
		return large[0];
	case MPI_COMBINER_RESIZED:
		return 2;
	default:
		return 0;
	}
}

/* The arrays of a type with large counts as one without has them. */
static void place_large(struct oc_contents *of, const int *integer, const MPI_Count *large)
{
	int64_t far = of->large ? large_addresses(of, large) : 0, n = 0;
	int64_t before = of->large ? integers_before(of->combiner) : 0;

	for (int64_t i = 0; i < before; i++)
		of->integer[n++] = integer[i];
	for (int64_t i = 0; i < of->large - far; i++)
		of->integer[n++] = large[i];
	for (int64_t i = before; i < of->integers; i++)
		of->integer[n++] = integer[i];
	for (int64_t i = 0; i < far; i++)
		of->address[of->addresses + i] = large[of->large - far + i];
}

static int ask(MPI_Datatype type, struct oc_contents *of, int *integer, MPI_Count *large)
{
	int err;

	if (of->large)
		err = contents_c(type, of->integers, of->addresses, of->large, of->types, integer,
				 of->address, large, of->type);
	else
		err = pmpi()->Type_get_contents(type, (int)of->integers, (int)of->addresses,
						(int)of->types, integer, of->address, of->type);
	return err ? -EINVAL : 0;
}

int oc_contents_get(MPI_Datatype type, struct oc_contents *of)
{
	size_t integers = (size_t)of->integers + 1, large = (size_t)of->large;
	int *integer = calloc(integers, sizeof(*integer));
	MPI_Count *counts = calloc(large + 1, sizeof(*counts));
	int64_t types = of->types;
	int err = -ENOMEM;

	of->types = 0;
	of->integer = calloc(integers + large, sizeof(*of->integer));
	of->address = calloc((size_t)of->addresses + large + 1, sizeof(*of->address));
	of->type = calloc((size_t)types + 1, sizeof(MPI_Datatype));
	if (!integer || !counts || !of->integer || !of->address || !of->type)
		goto out;
	of->types = types;
	err = ask(type, of, integer, counts);
	if (err)
		of->types = 0;
	else
		place_large(of, integer, counts);
out:
	free(integer);
	free(counts);
	return err;
}

void oc_contents_free(struct oc_contents *of)
{
	for (int64_t i = 0; i < of->types; i++)
		oc_contents_drop(of->type[i]);
	free(of->integer);
	free(of->address);
	free(of->type);
}
