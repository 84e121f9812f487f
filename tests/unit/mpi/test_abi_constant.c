// SPDX-License-Identifier: BSD-3-Clause
/* The tables over a library that lacks what its mpi.h has, and over one of Fortran kinds of 8
 * bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi.h"
#include "abi_constant.h"
#include "adapter.h"
#include "contents.h"
#include "operator.h"
#include "pmpi.h"
#include "type_sizes.h"
#include "typemap.h"

enum library { WHOLE, NO_FORTRAN, WIDE_FORTRAN, LIBRARIES };

static enum library library;
#define WORLD ((MPI_Errhandler)7)
#define SELF  ((MPI_Errhandler)8)
#define OURS  ((MPI_Errhandler)9)
/* An operator that a program has made: its number in MPICH, an address in the standard's ABI. */
#define USERS ((MPI_Op)(intptr_t)(int)0x98000002)
static MPI_Errhandler world = WORLD;

struct oc_pmpi oc_pmpi_table;
int oc_pmpi_resolved = 1;
struct oc_adapter oc_adapter;

bool oc_typemap_is_committed(MPI_Datatype type)
{
	return true;
}

/* What a user's operator is not called with in parts. */
bool oc_typemap_is_number(MPI_Datatype type, uint64_t size)
{
	return type == MPI_REAL16 && size == 16;
}

bool oc_contents_envelope(MPI_Datatype type, struct oc_contents *of)
{
	return false;
}

const struct oc_pmpi *oc_pmpi_resolve(void)
{
	return &oc_pmpi_table;
}

static const char *said = "Another MPI 1.0";

void oc_pmpi_name(char *name, size_t size)
{
	snprintf(name, size, "%s", said);
}

static int get_errhandler(MPI_Comm comm, MPI_Errhandler *handler)
{
	*handler = comm == MPI_COMM_WORLD ? world : SELF;
	return MPI_SUCCESS;
}

static int set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
	/* One that was set there, be it the same, would have all errors from then on. */
	if (comm == MPI_COMM_SELF)
		abort();
	world = handler;
	return MPI_SUCCESS;
}

static int free_errhandler(MPI_Errhandler *handler)
{
	*handler = MPI_ERRHANDLER_NULL;
	return MPI_SUCCESS;
}

static int create_errhandler(MPI_Comm_errhandler_function *function, MPI_Errhandler *handler)
{
	*handler = OURS;
	return MPI_SUCCESS;
}

/* Of those that are looked at. */
static size_t size_of(MPI_Datatype type)
{
	if (type == MPI_DOUBLE_INT)
		return 12;
	if (type == MPI_INTEGER)
		return library == WIDE_FORTRAN ? 8 : 4;
	if (type == MPI_LOGICAL)
		return 4;
	if (type == MPI_REAL16)
		return 16;
	return type == MPI_DOUBLE ? 8 : 1;
}

static int size_x(MPI_Datatype type, MPI_Count *size)
{
	if ((type == MPI_INTEGER && library == NO_FORTRAN) || type == MPI_DATATYPE_NULL) {
		if (world != oc_abi.errors_return)
			abort(); /* as that MPI would */
		return MPI_ERR_TYPE;
	}
	*size = (MPI_Count)size_of(type);
	return MPI_SUCCESS;
}

static int get_extent(MPI_Datatype type, MPI_Aint *low, MPI_Aint *extent)
{
	MPI_Count size;

	if (size_x(type, &size))
		return MPI_ERR_TYPE;
	*low = 0;
	*extent = type == MPI_DOUBLE_INT ? 16 : (MPI_Aint)size;
	return MPI_SUCCESS;
}

static int get_version(int *version, int *minor)
{
	*version = 4;
	*minor = 0;
	return MPI_SUCCESS;
}

/* Libraries of MPI 4 have no place for what came with MPI 5. */
static int reduce_local(const void *in, void *inout, int count, MPI_Datatype type, MPI_Op op)
{
	if (sizeof(type) == sizeof(int) && ((uintptr_t)type & 0xff) > 0x46)
		abort();
	return in == inout || count != 0 || (op != MPI_SUM && op != MPI_LOR);
}

static bool by_mpi(MPI_Op op, MPI_Datatype type, size_t size)
{
	struct oc_operator own;
	struct oc_bind bind = {0};

	return oc_operator_bind(&own, &bind, op, type) && bind.given &&
	       oc_operator_size(&bind) == size;
}

/* What CALC does not know. */
static bool knows_others(void)
{
	return by_mpi(MPI_LOR, MPI_LOGICAL, 4) && !by_mpi(MPI_LAND, MPI_LOGICAL, 4) &&
	       !by_mpi(MPI_SUM, MPI_LOGICAL, 4) && by_mpi(MPI_SUM, MPI_REAL16, 16) &&
	       by_mpi(MPI_SUM, MPI_INTEGER, 8) == (library == WIDE_FORTRAN) &&
	       !by_mpi(MPI_OP_NULL, MPI_LOGICAL, 4) && !by_mpi(MPI_REPLACE, MPI_LOGICAL, 4) &&
	       by_mpi(USERS, MPI_LOGICAL, 4) && !by_mpi(USERS, MPI_REAL16, 16);
}

static bool is(MPI_Datatype type, enum oc_type wanted, size_t size)
{
	if (oc_abi_type(type) == wanted && oc_type_bytes(type, 1) == size)
		return true;
	fprintf(stderr, "library %d, type %#lx: %d of %zu bytes, not %d of %zu\n", library,
		(long)type, oc_abi_type(type), oc_type_bytes(type, 1), wanted, size);
	return false;
}

static int check(void)
{
	static const size_t integer[LIBRARIES] = {4, 0, 8};

	if (oc_abi_init() || oc_operator_setup() || world != WORLD) {
		fprintf(stderr, "library %d: not as it was before\n", library);
		return 1;
	}
	set_errhandler(MPI_COMM_WORLD, oc_abi.errors_return);
	return !is(MPI_BYTE, OC_BYTE, 1) || !is(MPI_DOUBLE, OC_DOUBLE, 8) ||
	       !is(MPI_DOUBLE_INT, OC_DOUBLE_INT, 12) || !is(MPI_LOGICAL, OC_TYPE_NONE, 4) ||
	       !is(MPI_INTEGER, library == WHOLE ? OC_INT32 : OC_TYPE_NONE, integer[library]) ||
	       !knows_others() || oc_abi_op(MPI_SUM) != OC_SUM ||
	       oc_abi_op(MPI_OP_NULL) != OC_OP_NONE;
}

/* In the standard's ABI libraries differ. */
static bool finds_errors_return(void)
{
	static const struct {
		const char *said;
		MPI_Errhandler returns;
	} cases[] = {{"MPICH 5.0.2", (MPI_Errhandler)0x143},
		     {"Intel(R) MPI Library 2021.18", (MPI_Errhandler)0x142},
		     {"Another MPI 1.0", OURS}};
	bool found = true;
	MPI_Errhandler handler;

	for (size_t i = 0; i < 3 && !strcmp(OC_ABI_NAME, "mpi5"); i++) {
		said = cases[i].said;
		found = found && !oc_abi_find_errors_return(&handler) &&
			handler == cases[i].returns;
	}
	return found;
}

/* A process each, for what a library lacks is left out for ever. */
int main(void)
{
	int failed, status;

	oc_abi_has_world = true;
	oc_pmpi_table.Type_size_x = size_x;
	oc_pmpi_table.Type_get_extent = get_extent;
	oc_pmpi_table.Type_get_true_extent = get_extent;
	oc_pmpi_table.Comm_get_errhandler = get_errhandler;
	oc_pmpi_table.Comm_set_errhandler = set_errhandler;
	oc_pmpi_table.Comm_create_errhandler = create_errhandler;
	oc_pmpi_table.Errhandler_free = free_errhandler;
	oc_pmpi_table.Get_version = get_version;
	oc_pmpi_table.Reduce_local = reduce_local;
	failed = !finds_errors_return();
	for (library = WHOLE; library < LIBRARIES; library++) {
		if (!fork())
			_exit(check());
		failed |= wait(&status) < 0 || status;
	}
	return failed;
}
