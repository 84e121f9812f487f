// SPDX-License-Identifier: BSD-3-Clause
#include "named.h"

#include "pmpi.h"

struct oc_named oc_named[1 << OC_NAMED_BITS];

void oc_named_add(MPI_Datatype type)
{
	struct oc_named *named = oc_named_place(type);
	MPI_Count size;

	if (named->size || pmpi()->Type_size_x(type, &size) || size <= 0)
		return;
	*named = (struct oc_named){.type = type, .size = (size_t)size};
}
