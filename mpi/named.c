// SPDX-License-Identifier: BSD-3-Clause
#include "named.h"

#include "pmpi.h"

struct oc_named oc_named[1 << OC_NAMED_BITS];

size_t oc_named_ask(MPI_Datatype type)
{
	MPI_Count size;

	return pmpi()->Type_size_x(type, &size) || size < 0 ? 0 : (size_t)size;
}

void oc_named_add(MPI_Datatype type)
{
	struct oc_named *named = oc_named_place(type);

	if (type && !named->size)
		*named = (struct oc_named){.type = type, .size = oc_named_ask(type)};
}
