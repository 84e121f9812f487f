/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_ABI_CONSTANT_H
#define OC_MPI_ABI_CONSTANT_H

/* What an ABI whose predefined handles are constants has beside them. */

#include <stddef.h>

#include <mpi.h>

#include "abi.h"

/* Types that CALC does not know. Which logicals are true depends on the Fortran compiler. */
struct oc_abi_other {
	MPI_Datatype handle;
	enum oc_operand operand;
	int since; /* libraries of an earlier standard have no place for it: they may not be asked
		    */
};
extern const struct oc_abi_other oc_abi_others[];
extern const size_t oc_abi_other_count;

#endif
