// SPDX-License-Identifier: BSD-3-Clause
/* ABIs whose predefined handles are constants, whether a library has the object or not: that of
 * MPICH, and that of the MPI 5 standard. */
#include "abi_constant.h"

#include <errno.h>

#include "abi.h"
#include "pmpi.h"
#include "type_sizes.h"

struct oc_abi oc_abi = {
	.comm_world = MPI_COMM_WORLD,
	.comm_self = MPI_COMM_SELF,
	.comm_null = MPI_COMM_NULL,
	.byte = MPI_BYTE,
	.integer = MPI_INT,
	.type_null = MPI_DATATYPE_NULL,
	.land = MPI_LAND,
	.info_null = MPI_INFO_NULL,
	.errors_are_fatal = MPI_ERRORS_ARE_FATAL,
};

static const struct {
	MPI_Datatype handle;
	enum oc_type type;
} types[] = {
	{MPI_SIGNED_CHAR, OC_INT8},
	{MPI_UNSIGNED_CHAR, OC_UINT8},
	{MPI_SHORT, OC_INT16},
	{MPI_UNSIGNED_SHORT, OC_UINT16},
	{MPI_INT, OC_INT32},
	{MPI_UNSIGNED, OC_UINT32},
	{MPI_LONG, OC_INT64},
	{MPI_UNSIGNED_LONG, OC_UINT64},
	{MPI_LONG_LONG, OC_INT64},
	{MPI_UNSIGNED_LONG_LONG, OC_UINT64},
	{MPI_INT8_T, OC_INT8},
	{MPI_INT16_T, OC_INT16},
	{MPI_INT32_T, OC_INT32},
	{MPI_INT64_T, OC_INT64},
	{MPI_UINT8_T, OC_UINT8},
	{MPI_UINT16_T, OC_UINT16},
	{MPI_UINT32_T, OC_UINT32},
	{MPI_UINT64_T, OC_UINT64},
	{MPI_AINT, OC_INT64},
	{MPI_OFFSET, OC_INT64},
	{MPI_COUNT, OC_INT64},
	{MPI_FLOAT, OC_FLOAT},
	{MPI_DOUBLE, OC_DOUBLE},
	{MPI_LONG_DOUBLE, OC_LDOUBLE},
	{MPI_C_BOOL, OC_BOOL},
	{MPI_CXX_BOOL, OC_BOOL},
	{MPI_C_FLOAT_COMPLEX, OC_CFLOAT},
	{MPI_C_DOUBLE_COMPLEX, OC_CDOUBLE},
	{MPI_C_LONG_DOUBLE_COMPLEX, OC_CLDOUBLE},
	{MPI_CXX_FLOAT_COMPLEX, OC_CFLOAT},
	{MPI_CXX_DOUBLE_COMPLEX, OC_CDOUBLE},
	{MPI_CXX_LONG_DOUBLE_COMPLEX, OC_CLDOUBLE},
	{MPI_BYTE, OC_BYTE},
	{MPI_FLOAT_INT, OC_FLOAT_INT},
	{MPI_DOUBLE_INT, OC_DOUBLE_INT},
	{MPI_LONG_DOUBLE_INT, OC_LDOUBLE_INT},
	{MPI_LONG_INT, OC_LONG_INT},
	{MPI_SHORT_INT, OC_SHORT_INT},
	{MPI_2INT, OC_INT_INT},
	/* Fortran, with default kinds of 4 bytes. */
	{MPI_INTEGER, OC_INT32},
	{MPI_INTEGER1, OC_INT8},
	{MPI_INTEGER2, OC_INT16},
	{MPI_INTEGER4, OC_INT32},
	{MPI_INTEGER8, OC_INT64},
	{MPI_REAL, OC_FLOAT},
	{MPI_REAL4, OC_FLOAT},
	{MPI_REAL8, OC_DOUBLE},
	{MPI_DOUBLE_PRECISION, OC_DOUBLE},
	{MPI_COMPLEX, OC_CFLOAT},
	{MPI_COMPLEX8, OC_CFLOAT},
	{MPI_COMPLEX16, OC_CDOUBLE},
	{MPI_DOUBLE_COMPLEX, OC_CDOUBLE},
	{MPI_2INTEGER, OC_INT_INT},
	{MPI_2REAL, OC_2FLOAT},
	{MPI_2DOUBLE_PRECISION, OC_2DOUBLE},
};
/* Of each: else this library has it otherwise, or not at all. */
static bool laid_out[sizeof(types) / sizeof(types[0])];

static const struct {
	MPI_Op handle;
	enum oc_calc_op op;
} ops[] = {
	{MPI_MAX, OC_MAX},   {MPI_MIN, OC_MIN},	  {MPI_SUM, OC_SUM},	   {MPI_PROD, OC_PROD},
	{MPI_LAND, OC_LAND}, {MPI_BAND, OC_BAND}, {MPI_LOR, OC_LOR},	   {MPI_BOR, OC_BOR},
	{MPI_LXOR, OC_LXOR}, {MPI_BXOR, OC_BXOR}, {MPI_MAXLOC, OC_MAXLOC}, {MPI_MINLOC, OC_MINLOC},
};

static int standard(void)
{
	int version, minor;

	return pmpi()->Get_version(&version, &minor) ? 0 : version;
}

int oc_abi_init(void)
{
	MPI_Errhandler before[OC_ABI_BLAMED];

	if (oc_abi_find_errors_return(&oc_abi.errors_return) || oc_abi_silence(before))
		return -ENOENT;
	/* The most used first: mpi/type_sizes.h. */
	oc_type_sizes_add(MPI_BYTE);
	oc_type_sizes_add(MPI_CHAR);
	oc_type_sizes_add(MPI_INT);
	oc_type_sizes_add(MPI_DOUBLE);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		laid_out[i] = oc_abi_is_laid_out(types[i].handle, types[i].type);
		if (laid_out[i])
			oc_type_sizes_add(types[i].handle);
	}
	oc_abi_restore(before);
	return 0;
}

enum oc_type oc_abi_type(MPI_Datatype type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].handle == type)
			return laid_out[i] ? types[i].type : OC_TYPE_NONE;
	return OC_TYPE_NONE;
}

bool oc_abi_type_at(size_t i, struct oc_abi_type *at)
{
	const size_t n = sizeof(types) / sizeof(types[0]);

	if (i < n) {
		at->type = types[i].handle;
		at->means = laid_out[i] ? types[i].type : OC_TYPE_NONE;
		at->operand = oc_abi_operand(types[i].type);
		return true;
	}
	i -= n;
	if (i >= oc_abi_other_count)
		return false;
	at->type =
		oc_abi_others[i].since <= standard() ? oc_abi_others[i].handle : MPI_DATATYPE_NULL;
	at->means = OC_TYPE_NONE;
	at->operand = oc_abi_others[i].operand;
	return true;
}

enum oc_calc_op oc_abi_op(MPI_Op op)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (ops[i].handle == op)
			return ops[i].op;
	return OC_OP_NONE;
}

MPI_Op oc_abi_op_handle(enum oc_calc_op op)
{
	size_t i = 0;

	while (ops[i].op != op)
		i++;
	return ops[i].handle;
}
