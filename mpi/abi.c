// SPDX-License-Identifier: BSD-3-Clause
#include "abi.h"

#include <errno.h>

#include "pmpi.h"
#include "type_sizes.h"

bool oc_abi_has_world;

static MPI_Comm blamed(int i)
{
	return i ? oc_abi.comm_self : oc_abi.comm_world;
}

static int count_blamed(void)
{
	return oc_abi_blames_self && oc_abi_has_world ? OC_ABI_BLAMED : 1;
}

int oc_abi_silence(MPI_Errhandler before[OC_ABI_BLAMED])
{
	if (!oc_abi_has_world && !oc_abi_blames_world())
		return -EOPNOTSUPP;
	for (int i = 0; i < count_blamed(); i++)
		if (pmpi()->Comm_get_errhandler(blamed(i), &before[i]) ||
		    pmpi()->Comm_set_errhandler(blamed(i), oc_abi.errors_return))
			return -ENOENT;
	return 0;
}

void oc_abi_restore(MPI_Errhandler before[OC_ABI_BLAMED])
{
	for (int i = 0; i < count_blamed(); i++) {
		pmpi()->Comm_set_errhandler(blamed(i), before[i]);
		pmpi()->Errhandler_free(&before[i]);
	}
}

enum oc_operand oc_abi_operand(enum oc_type type)
{
	switch (type) {
	case OC_FLOAT:
	case OC_DOUBLE:
	case OC_LDOUBLE:
		return OC_OPERAND_REAL;
	case OC_CFLOAT:
	case OC_CDOUBLE:
	case OC_CLDOUBLE:
		return OC_OPERAND_COMPLEX;
	case OC_BOOL:
	case OC_LOGICAL32:
		return OC_OPERAND_LOGICAL;
	default:
		return type < OC_FLOAT_INT ? OC_OPERAND_INTEGER : OC_OPERAND_PAIR;
	}
}

bool oc_abi_is_laid_out(MPI_Datatype type, enum oc_type means)
{
	MPI_Aint low, extent;

	if (pmpi()->Type_get_extent(type, &low, &extent) || low ||
	    (size_t)extent != oc_type_size(means))
		return false;
	return means >= OC_FLOAT_INT || oc_type_bytes(type, 1) == (size_t)extent;
}
