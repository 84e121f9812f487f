// SPDX-License-Identifier: BSD-3-Clause
/* MPICH 4 and 5, Intel MPI, MVAPICH: handles are numbers (the MPICH ABI). */
#include "abi_constant.h"

#include "abi.h"

const bool oc_abi_probe_moves = false;	    /* it only looks at what the process has sent itself */
const size_t oc_abi_rooted_from = 16 << 10; /* MPICH 5 has ways of its own for shorter ones */
const bool oc_abi_pmi_first = true;
const bool oc_abi_blames_self = false;
const bool oc_abi_empty_in_place = true;

const struct oc_abi_other oc_abi_others[] = {
	{MPI_LOGICAL, OC_OPERAND_LOGICAL, 0},
	/* By number: an mpi.h need not have them. */
	{0x4c000226, OC_OPERAND_REAL, 0},    /* MPI_REAL2 */
	{0x4c00102b, OC_OPERAND_REAL, 0},    /* MPI_REAL16 */
	{0x4c00042e, OC_OPERAND_COMPLEX, 0}, /* MPI_COMPLEX4 */
	{0x4c00202c, OC_OPERAND_COMPLEX, 0}, /* MPI_COMPLEX32 */
	{0x4c001032, OC_OPERAND_INTEGER, 0}, /* MPI_INTEGER16 */
	{0x4c000246, OC_OPERAND_REAL, 0},    /* MPIX_C_FLOAT16 */
	{0x4c000147, OC_OPERAND_LOGICAL, 5}, /* MPI_LOGICAL1 */
	{0x4c000248, OC_OPERAND_LOGICAL, 5}, /* MPI_LOGICAL2 */
	{0x4c000449, OC_OPERAND_LOGICAL, 5}, /* MPI_LOGICAL4 */
	{0x4c00084a, OC_OPERAND_LOGICAL, 5}, /* MPI_LOGICAL8 */
	{0x4c00104b, OC_OPERAND_LOGICAL, 5}, /* MPI_LOGICAL16 */
	{0x4c00024c, OC_OPERAND_REAL, 5},    /* MPIX_BFLOAT16 */
};
const size_t oc_abi_other_count = sizeof(oc_abi_others) / sizeof(oc_abi_others[0]);

int oc_abi_find_errors_return(MPI_Errhandler *handler)
{
	*handler = MPI_ERRORS_RETURN;
	return 0;
}

bool oc_abi_aborts(MPI_Errhandler handler)
{
	return handler == MPI_ERRORS_ABORT;
}

bool oc_abi_blames_world(void)
{
	return true;
}

/* Handles say what they are of (bits 26 to 29), and whether it was made (31) or is built in. */
bool oc_abi_op_is_user(MPI_Op op)
{
	return ((unsigned int)op & 0xbc000000u) == 0x98000000u;
}
