/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_CALC_TYPE_H
#define OC_CALC_TYPE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types of CALC steps: what the predefined MPI datatypes are made of
 * (MPI standard 4.0, 6.9.2). Pairs are those of MINLOC and MAXLOC, laid out
 * as the C structs { value; int index; } the standard names. */
enum oc_type {
	OC_TYPE_NONE = 0,
	OC_INT8,
	OC_INT16,
	OC_INT32,
	OC_INT64,
	OC_UINT8,
	OC_UINT16,
	OC_UINT32,
	OC_UINT64,
	OC_FLOAT,
	OC_DOUBLE,
	OC_LDOUBLE,
	OC_CFLOAT,
	OC_CDOUBLE,
	OC_CLDOUBLE,
	OC_BOOL,      /* C _Bool, one byte: logical operators only */
	OC_LOGICAL32, /* Fortran LOGICAL, four bytes */
	OC_BYTE,      /* MPI_BYTE: bitwise operators only */
	OC_FLOAT_INT,
	OC_DOUBLE_INT,
	OC_LONG_INT,
	OC_INT_INT, /* MPI_2INT and MPI_2INTEGER */
	OC_SHORT_INT,
	OC_LDOUBLE_INT,
	OC_2FLOAT,  /* MPI_2REAL */
	OC_2DOUBLE, /* MPI_2DOUBLE_PRECISION */
	OC_TYPE_COUNT
};

enum oc_calc_op {
	OC_OP_NONE = 0,
	OC_MAX,
	OC_MIN,
	OC_SUM,
	OC_PROD,
	OC_LAND,
	OC_BAND,
	OC_LOR,
	OC_BOR,
	OC_LXOR,
	OC_BXOR,
	OC_MAXLOC,
	OC_MINLOC,
	OC_OP_COUNT
};

/* Bytes of one element, extent included; 0 for OC_TYPE_NONE. */
size_t oc_type_size(enum oc_type type);

#ifdef __cplusplus
}
#endif
#endif
