// SPDX-License-Identifier: BSD-3-Clause
#include "abi.h"

#include "pmpi.h"
#include "type_sizes.h"

bool oc_abi_is_laid_out(MPI_Datatype type, enum oc_type means)
{
	MPI_Aint low, extent;

	if (pmpi()->Type_get_extent(type, &low, &extent) || low ||
	    (size_t)extent != oc_type_size(means))
		return false;
	return means >= OC_FLOAT_INT || oc_type_bytes(type, 1) == (size_t)extent;
}
