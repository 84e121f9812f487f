// SPDX-License-Identifier: BSD-3-Clause
#include "bytes/calc_type.h"

/* The layouts of MPI_FLOAT_INT and its like (MPI standard 4.0, 6.9.4). */
struct float_int {
	float value;
	int index;
};

struct double_int {
	double value;
	int index;
};

struct long_int {
	long value;
	int index;
};

struct int_int {
	int value;
	int index;
};

struct short_int {
	short value;
	int index;
};

struct ldouble_int {
	long double value;
	int index;
};

static const size_t sizes[OC_TYPE_COUNT] = {
	[OC_INT8] = 1,
	[OC_INT16] = 2,
	[OC_INT32] = 4,
	[OC_INT64] = 8,
	[OC_UINT8] = 1,
	[OC_UINT16] = 2,
	[OC_UINT32] = 4,
	[OC_UINT64] = 8,
	[OC_FLOAT] = sizeof(float),
	[OC_DOUBLE] = sizeof(double),
	[OC_LDOUBLE] = sizeof(long double),
	[OC_CFLOAT] = sizeof(float _Complex),
	[OC_CDOUBLE] = sizeof(double _Complex),
	[OC_CLDOUBLE] = sizeof(long double _Complex),
	[OC_BOOL] = sizeof(_Bool),
	[OC_LOGICAL32] = 4,
	[OC_BYTE] = 1,
	[OC_FLOAT_INT] = sizeof(struct float_int),
	[OC_DOUBLE_INT] = sizeof(struct double_int),
	[OC_LONG_INT] = sizeof(struct long_int),
	[OC_INT_INT] = sizeof(struct int_int),
	[OC_SHORT_INT] = sizeof(struct short_int),
	[OC_LDOUBLE_INT] = sizeof(struct ldouble_int),
	[OC_2FLOAT] = 2 * sizeof(float),
	[OC_2DOUBLE] = 2 * sizeof(double),
};

size_t oc_type_size(enum oc_type type)
{
	return (unsigned int)type < OC_TYPE_COUNT ? sizes[type] : 0;
}
