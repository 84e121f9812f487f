// SPDX-License-Identifier: BSD-3-Clause
/* Which datatypes of Open MPI are what their names say, as it was built. */
#include <stdio.h>
#include <string.h>

#include "abi.h"
#include "adapter.h"
#include "contents.h"
#include "operator.h"
#include "pmpi.h"
#include "type_sizes.h"
#include "typemap.h"

#define KINDS 2

/* An MPI for a Fortran compiler with default kinds of 4 bytes, and one of 8. */
static struct fake {
	const char *name;
	size_t size[KINDS];
	size_t extent[KINDS];
	enum oc_type type[KINDS];
} fakes[] = {
	{"byte", {1, 1}, {1, 1}, {OC_BYTE, OC_BYTE}},
	{"int", {4, 4}, {4, 4}, {OC_INT32, OC_INT32}},
	{"2int", {8, 8}, {8, 8}, {OC_INT_INT, OC_INT_INT}},
	{"short_int", {6, 6}, {8, 8}, {OC_SHORT_INT, OC_SHORT_INT}},
	{"double_int", {12, 12}, {16, 16}, {OC_DOUBLE_INT, OC_DOUBLE_INT}},
	{"integer", {4, 8}, {4, 8}, {OC_INT32, OC_TYPE_NONE}},
	{"real", {4, 8}, {4, 8}, {OC_FLOAT, OC_TYPE_NONE}},
	{"dblprec", {8, 16}, {8, 16}, {OC_DOUBLE, OC_TYPE_NONE}},
	{"logical", {4, 8}, {4, 8}, {OC_LOGICAL32, OC_TYPE_NONE}},
	{"2integer", {8, 16}, {8, 16}, {OC_INT_INT, OC_TYPE_NONE}},
	{"2real", {8, 16}, {8, 16}, {OC_2FLOAT, OC_TYPE_NONE}},
	{"2dblprec", {16, 32}, {16, 32}, {OC_2DOUBLE, OC_TYPE_NONE}},
	/* A gap where CALC has none. */
	{"cplex", {8, 8}, {8, 16}, {OC_CFLOAT, OC_TYPE_NONE}},
};
#define FAKES (sizeof(fakes) / sizeof(fakes[0]))

static char handles[KINDS][FAKES], other, sum, land;
static int kind;

struct oc_pmpi oc_pmpi_table;
int oc_pmpi_resolved = 1;
struct oc_adapter oc_adapter;

bool oc_typemap_is_committed(MPI_Datatype type)
{
	return false;
}

bool oc_typemap_is_number(MPI_Datatype type, uint64_t size)
{
	return false;
}

bool oc_contents_envelope(MPI_Datatype type, struct oc_contents *of)
{
	return false;
}

const struct oc_pmpi *oc_pmpi_resolve(void)
{
	return &oc_pmpi_table;
}

void *oc_pmpi_symbol(const char *name)
{
	static const char prefix[] = "ompi_mpi_";

	name += strlen(prefix);
	for (size_t i = 0; i < FAKES; i++)
		if (!strcmp(name, fakes[i].name))
			return &handles[kind][i];
	if (!strcmp(name, "op_sum"))
		return &sum;
	if (!strcmp(name, "op_land"))
		return &land;
	return strstr(name, "comm") || strstr(name, "op_") || strstr(name, "info") ||
			       strstr(name, "errors")
		       ? &other
		       : NULL;
}

static size_t index_of(MPI_Datatype type)
{
	return (size_t)((char *)type - handles[kind]);
}

static int get_errhandler(MPI_Comm comm, MPI_Errhandler *handler)
{
	*handler = (MPI_Errhandler)comm;
	return MPI_SUCCESS;
}

static int set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
	return comm && handler ? MPI_SUCCESS : MPI_ERR_ARG;
}

static int free_errhandler(MPI_Errhandler *handler)
{
	*handler = NULL;
	return MPI_SUCCESS;
}

/* It can add, whatever that is, and nothing else. */
static int reduce_local(const void *in, void *inout, int count, MPI_Datatype type, MPI_Op op)
{
	return in == inout || count != 0 || !type || op != (MPI_Op)&sum;
}

static int size_x(MPI_Datatype type, MPI_Count *size)
{
	if (!type)
		return MPI_ERR_TYPE;
	*size = (MPI_Count)fakes[index_of(type)].size[kind];
	return MPI_SUCCESS;
}

static int get_extent(MPI_Datatype type, MPI_Aint *low, MPI_Aint *extent)
{
	*low = 0;
	*extent = (MPI_Aint)fakes[index_of(type)].extent[kind];
	return MPI_SUCCESS;
}

/* Operators that this MPI has: on what CALC knows, and on what it does not. */
static bool knows_operators(void)
{
	MPI_Datatype plain = (MPI_Datatype)&handles[1][1];
	MPI_Datatype integer = (MPI_Datatype)&handles[1][5], logical = (MPI_Datatype)&handles[1][8];
	struct oc_operator own;
	struct oc_bind bind = {0};

	return oc_operator_bind(&own, &bind, (MPI_Op)&sum, plain) && bind.op == OC_SUM &&
	       bind.type == OC_INT32 && !bind.given &&
	       !oc_operator_bind(&own, &bind, (MPI_Op)&land, plain) &&
	       oc_operator_bind(&own, &bind, (MPI_Op)&sum, integer) && bind.given &&
	       oc_operator_size(&bind) == 8 &&
	       !oc_operator_bind(&own, &bind, (MPI_Op)&land, integer) &&
	       !oc_operator_bind(&own, &bind, (MPI_Op)&sum, logical);
}

int main(void)
{
	int failed = 0;

	oc_abi_has_world = true;
	oc_pmpi_table.Type_size_x = size_x;
	oc_pmpi_table.Type_get_extent = get_extent;
	oc_pmpi_table.Comm_get_errhandler = get_errhandler;
	oc_pmpi_table.Comm_set_errhandler = set_errhandler;
	oc_pmpi_table.Errhandler_free = free_errhandler;
	oc_pmpi_table.Reduce_local = reduce_local;
	for (kind = 0; kind < KINDS; kind++) {
		if (oc_abi_init() || oc_operator_setup()) {
			fprintf(stderr, "a handle is missing\n");
			return 1;
		}
		for (size_t i = 0; i < FAKES; i++) {
			enum oc_type got = oc_abi_type((MPI_Datatype)&handles[kind][i]);

			if (got == fakes[i].type[kind])
				continue;
			fprintf(stderr, "kinds of %d bytes, %s: type %d, not %d\n", 4 << kind,
				fakes[i].name, got, fakes[i].type[kind]);
			failed = 1;
		}
	}
	return failed || !knows_operators();
}
