// SPDX-License-Identifier: BSD-3-Clause
/* The ABI of the MPI 5 standard, which several MPIs have beside their own: MPICH 5, Intel MPI and
 * Open MPI 6 do. */
#include "abi_constant.h"

#include <errno.h>
#include <stdint.h>

#include "abi.h"
#include "pmpi.h"

const bool oc_abi_probe_moves = false;	    /* not in all of them */
const size_t oc_abi_rooted_from = 16 << 10; /* as of MPICH */
const bool oc_abi_pmi_first = true;
const bool oc_abi_blames_self = false;
const bool oc_abi_empty_in_place = true;

const struct oc_abi_other oc_abi_others[] = {
	{MPI_LOGICAL, OC_OPERAND_LOGICAL, 0},	{MPI_LOGICAL1, OC_OPERAND_LOGICAL, 0},
	{MPI_LOGICAL2, OC_OPERAND_LOGICAL, 0},	{MPI_LOGICAL4, OC_OPERAND_LOGICAL, 0},
	{MPI_LOGICAL8, OC_OPERAND_LOGICAL, 0},	{MPI_LOGICAL16, OC_OPERAND_LOGICAL, 0},
	{MPI_REAL2, OC_OPERAND_REAL, 0},	{MPI_REAL16, OC_OPERAND_REAL, 0},
	{MPI_COMPLEX4, OC_OPERAND_COMPLEX, 0},	{MPI_COMPLEX32, OC_OPERAND_COMPLEX, 0},
	{MPI_INTEGER16, OC_OPERAND_INTEGER, 0},
};
const size_t oc_abi_other_count = sizeof(oc_abi_others) / sizeof(oc_abi_others[0]);

static void leave(MPI_Comm *comm, int *code, ...)
{
}

/*
 * MPI_ERRORS_RETURN is 0x143 in MPICH 5.0, where Intel MPI 2021 has MPI_ERRORS_ABORT, and 0x142
 * there, where MPICH has that. In another library a handler that does nothing returns errors; it
 * lasts as long as the MPI does. Not in MPICH 5.0: there the call is a success after such a
 * handler.
 */
static MPI_Errhandler known_errors_return(void)
{
	static const struct {
		const char *begins;
		uintptr_t value;
	} known[] = {{"MPICH", 0x143}, {"Intel(R) MPI", 0x142}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (oc_pmpi_is(known[i].begins))
			return (MPI_Errhandler)known[i].value;
	return NULL;
}

int oc_abi_find_errors_return(MPI_Errhandler *handler)
{
	*handler = known_errors_return();
	return *handler || !pmpi()->Comm_create_errhandler(leave, handler) ? 0 : -ENOENT;
}

bool oc_abi_aborts(MPI_Errhandler handler)
{
	MPI_Errhandler returns = known_errors_return();
	uintptr_t value = (uintptr_t)handler;

	return returns && (value == 0x142 || value == 0x143) && handler != returns;
}

bool oc_abi_blames_world(void)
{
	return known_errors_return();
}

/* Those of the standard are below 4096, where no object lies. */
bool oc_abi_op_is_user(MPI_Op op)
{
	return (uintptr_t)op >= 4096;
}
