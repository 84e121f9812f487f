// SPDX-License-Identifier: BSD-3-Clause
/* Open MPI 4, 5 and 6: handles are addresses of objects in libmpi.so.40. */
#include "abi.h"

#include <errno.h>
#include <stdint.h>

#include "pmpi.h"
#include "type_sizes.h"

struct oc_abi oc_abi;
const bool oc_abi_probe_moves = true;
const size_t oc_abi_rooted_from = 4 << 10;
const bool oc_abi_pmi_first = false;
const bool oc_abi_blames_self = true;
const bool oc_abi_empty_in_place = false;

static struct {
	const char *name;
	enum oc_type type;
	void *handle;
} types[] = {
	{"ompi_mpi_signed_char", OC_INT8, NULL},
	{"ompi_mpi_unsigned_char", OC_UINT8, NULL},
	{"ompi_mpi_short", OC_INT16, NULL},
	{"ompi_mpi_unsigned_short", OC_UINT16, NULL},
	{"ompi_mpi_int", OC_INT32, NULL},
	{"ompi_mpi_unsigned", OC_UINT32, NULL},
	{"ompi_mpi_long", OC_INT64, NULL},
	{"ompi_mpi_unsigned_long", OC_UINT64, NULL},
	{"ompi_mpi_long_long_int", OC_INT64, NULL},
	{"ompi_mpi_unsigned_long_long", OC_UINT64, NULL},
	{"ompi_mpi_int8_t", OC_INT8, NULL},
	{"ompi_mpi_int16_t", OC_INT16, NULL},
	{"ompi_mpi_int32_t", OC_INT32, NULL},
	{"ompi_mpi_int64_t", OC_INT64, NULL},
	{"ompi_mpi_uint8_t", OC_UINT8, NULL},
	{"ompi_mpi_uint16_t", OC_UINT16, NULL},
	{"ompi_mpi_uint32_t", OC_UINT32, NULL},
	{"ompi_mpi_uint64_t", OC_UINT64, NULL},
	{"ompi_mpi_aint", OC_INT64, NULL},
	{"ompi_mpi_offset", OC_INT64, NULL},
	{"ompi_mpi_count", OC_INT64, NULL},
	{"ompi_mpi_float", OC_FLOAT, NULL},
	{"ompi_mpi_double", OC_DOUBLE, NULL},
	{"ompi_mpi_long_double", OC_LDOUBLE, NULL},
	{"ompi_mpi_c_bool", OC_BOOL, NULL},
	{"ompi_mpi_cxx_bool", OC_BOOL, NULL},
	{"ompi_mpi_c_complex", OC_CFLOAT, NULL},
	{"ompi_mpi_c_float_complex", OC_CFLOAT, NULL},
	{"ompi_mpi_c_double_complex", OC_CDOUBLE, NULL},
	{"ompi_mpi_c_long_double_complex", OC_CLDOUBLE, NULL},
	{"ompi_mpi_cxx_cplex", OC_CFLOAT, NULL},
	{"ompi_mpi_cxx_dblcplex", OC_CDOUBLE, NULL},
	{"ompi_mpi_cxx_ldblcplex", OC_CLDOUBLE, NULL},
	{"ompi_mpi_byte", OC_BYTE, NULL},
	{"ompi_mpi_float_int", OC_FLOAT_INT, NULL},
	{"ompi_mpi_double_int", OC_DOUBLE_INT, NULL},
	{"ompi_mpi_longdbl_int", OC_LDOUBLE_INT, NULL},
	{"ompi_mpi_long_int", OC_LONG_INT, NULL},
	{"ompi_mpi_short_int", OC_SHORT_INT, NULL},
	{"ompi_mpi_2int", OC_INT_INT, NULL},
	/* Fortran, with gfortran's default kinds */
	{"ompi_mpi_integer", OC_INT32, NULL},
	{"ompi_mpi_integer1", OC_INT8, NULL},
	{"ompi_mpi_integer2", OC_INT16, NULL},
	{"ompi_mpi_integer4", OC_INT32, NULL},
	{"ompi_mpi_integer8", OC_INT64, NULL},
	{"ompi_mpi_real", OC_FLOAT, NULL},
	{"ompi_mpi_real4", OC_FLOAT, NULL},
	{"ompi_mpi_real8", OC_DOUBLE, NULL},
	{"ompi_mpi_dblprec", OC_DOUBLE, NULL},
	{"ompi_mpi_cplex", OC_CFLOAT, NULL},
	{"ompi_mpi_complex8", OC_CFLOAT, NULL},
	{"ompi_mpi_complex16", OC_CDOUBLE, NULL},
	{"ompi_mpi_dblcplex", OC_CDOUBLE, NULL},
	{"ompi_mpi_logical", OC_LOGICAL32, NULL},
	{"ompi_mpi_logical4", OC_LOGICAL32, NULL},
	{"ompi_mpi_2integer", OC_INT_INT, NULL},
	{"ompi_mpi_2real", OC_2FLOAT, NULL},
	{"ompi_mpi_2dblprec", OC_2DOUBLE, NULL},
};
/* Of each: else this library has it otherwise, or not at all. */
static bool laid_out[sizeof(types) / sizeof(types[0])];

/* What CALC does not know. */
static struct {
	const char *name;
	enum oc_operand operand;
	void *handle;
} others[] = {
	{"ompi_mpi_real2", OC_OPERAND_REAL, NULL},
	{"ompi_mpi_real16", OC_OPERAND_REAL, NULL},
	{"ompi_mpi_complex4", OC_OPERAND_COMPLEX, NULL},
	{"ompi_mpi_complex32", OC_OPERAND_COMPLEX, NULL},
	{"ompi_mpi_integer16", OC_OPERAND_INTEGER, NULL},
	{"ompi_mpi_logical1", OC_OPERAND_LOGICAL, NULL},
	{"ompi_mpi_logical2", OC_OPERAND_LOGICAL, NULL},
	{"ompi_mpi_logical8", OC_OPERAND_LOGICAL, NULL},
	{"ompi_mpi_short_float", OC_OPERAND_REAL, NULL},
	{"ompi_mpi_c_short_float_complex", OC_OPERAND_COMPLEX, NULL},
	{"ompi_mpi_cxx_sfltcplex", OC_OPERAND_COMPLEX, NULL},
};

static struct {
	const char *name;
	enum oc_calc_op op;
	void *handle;
} ops[] = {
	{"ompi_mpi_op_max", OC_MAX, NULL},	 {"ompi_mpi_op_min", OC_MIN, NULL},
	{"ompi_mpi_op_sum", OC_SUM, NULL},	 {"ompi_mpi_op_prod", OC_PROD, NULL},
	{"ompi_mpi_op_land", OC_LAND, NULL},	 {"ompi_mpi_op_band", OC_BAND, NULL},
	{"ompi_mpi_op_lor", OC_LOR, NULL},	 {"ompi_mpi_op_bor", OC_BOR, NULL},
	{"ompi_mpi_op_lxor", OC_LXOR, NULL},	 {"ompi_mpi_op_bxor", OC_BXOR, NULL},
	{"ompi_mpi_op_maxloc", OC_MAXLOC, NULL}, {"ompi_mpi_op_minloc", OC_MINLOC, NULL},
};

/* Operators that CALC has nothing to do with. */
static struct {
	const char *name;
	void *handle;
} strangers[] = {
	{"ompi_mpi_op_null", NULL},
	{"ompi_mpi_op_replace", NULL},
	{"ompi_mpi_op_no_op", NULL},
};

int oc_abi_find_errors_return(MPI_Errhandler *handler)
{
	*handler = oc_pmpi_symbol("ompi_mpi_errors_return");
	return *handler ? 0 : -ENOENT;
}

/* Of Open MPI 5. */
bool oc_abi_aborts(MPI_Errhandler handler)
{
	return handler && handler == oc_pmpi_symbol("ompi_mpi_errors_abort");
}

int oc_abi_init(void)
{
	if (oc_abi_find_errors_return(&oc_abi.errors_return))
		return -ENOENT;
	oc_abi.comm_world = oc_pmpi_symbol("ompi_mpi_comm_world");
	oc_abi.comm_self = oc_pmpi_symbol("ompi_mpi_comm_self");
	oc_abi.comm_null = oc_pmpi_symbol("ompi_mpi_comm_null");
	oc_abi.type_null = oc_pmpi_symbol("ompi_mpi_datatype_null");
	oc_abi.byte = oc_pmpi_symbol("ompi_mpi_byte");
	oc_abi.integer = oc_pmpi_symbol("ompi_mpi_int");
	oc_abi.land = oc_pmpi_symbol("ompi_mpi_op_land");
	oc_abi.info_null = oc_pmpi_symbol("ompi_mpi_info_null");
	oc_abi.errors_are_fatal = oc_pmpi_symbol("ompi_mpi_errors_are_fatal");
	/* The most used first: mpi/type_sizes.h. */
	oc_type_sizes_add(oc_abi.byte);
	oc_type_sizes_add(oc_pmpi_symbol("ompi_mpi_char"));
	oc_type_sizes_add(oc_abi.integer);
	oc_type_sizes_add(oc_pmpi_symbol("ompi_mpi_double"));
	/* Optional types may be missing; they go to the MPI then. */
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		types[i].handle = oc_pmpi_symbol(types[i].name);
		oc_type_sizes_add(types[i].handle);
		laid_out[i] = types[i].handle && oc_abi_is_laid_out(types[i].handle, types[i].type);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		others[i].handle = oc_pmpi_symbol(others[i].name);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		ops[i].handle = oc_pmpi_symbol(ops[i].name);
	for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
		strangers[i].handle = oc_pmpi_symbol(strangers[i].name);
	return oc_abi.comm_world && oc_abi.comm_self && oc_abi.byte && oc_abi.integer &&
			       oc_abi.land && oc_abi.info_null && oc_abi.errors_are_fatal
		       ? 0
		       : -ENOENT;
}

enum oc_type oc_abi_type(MPI_Datatype type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].handle == (void *)type)
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
	if (i >= sizeof(others) / sizeof(others[0]))
		return false;
	at->type = others[i].handle;
	at->means = OC_TYPE_NONE;
	at->operand = others[i].operand;
	return true;
}

enum oc_calc_op oc_abi_op(MPI_Op op)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (ops[i].handle == (void *)op)
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

bool oc_abi_blames_world(void)
{
	return false;
}

bool oc_abi_op_is_user(MPI_Op op)
{
	if (!op || oc_abi_op(op))
		return false;
	for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
		if (strangers[i].handle == (void *)op)
			return false;
	return true;
}
