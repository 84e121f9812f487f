// SPDX-License-Identifier: BSD-3-Clause
#include "type_sizes.h"

#include "pmpi.h"

struct oc_type_sizes_entry oc_type_sizes[1 << OC_TYPE_SIZES_BITS];

size_t oc_type_sizes_ask(MPI_Datatype type)
{
	MPI_Count size;

	return pmpi()->Type_size_x(type, &size) || size < 0 ? 0 : (size_t)size;
}

bool oc_type_sizes_ask_dense(MPI_Datatype type)
{
	MPI_Aint lb, extent;
	MPI_Count size;

	return !pmpi()->Type_get_extent(type, &lb, &extent) && !pmpi()->Type_size_x(type, &size) &&
	       lb == 0 && extent == size;
}

void oc_type_sizes_add(MPI_Datatype type)
{
	struct oc_type_sizes_entry *entry = oc_type_sizes_place(type);

	if (type && !entry->size)
		*entry = (struct oc_type_sizes_entry){.type = type,
						      .size = (uint32_t)oc_type_sizes_ask(type),
						      .dense = oc_type_sizes_ask_dense(type)};
}
