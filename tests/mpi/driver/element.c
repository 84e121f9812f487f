// SPDX-License-Identifier: BSD-3-Clause
#include "element.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#define LDOUBLE_BYTES 10 /* of the 16, on x86 */

struct pair_int {
	int value;
	int index;
};
struct pair_short {
	short value;
	int index;
};
struct pair_long {
	long value;
	int index;
};
struct pair_float {
	float value;
	int index;
};
struct pair_double {
	double value;
	int index;
};
struct pair_ldouble {
	long double value;
	int index;
};

static struct element elements[] = {
	{"schar", ELEMENT_SIGNED, 1, 1, 0, 0},
	{"short", ELEMENT_SIGNED, 2, 2, 0, 0},
	{"int", ELEMENT_SIGNED, 4, 4, 0, 0},
	{"long", ELEMENT_SIGNED, 8, 8, 0, 0},
	{"uchar", ELEMENT_UNSIGNED, 1, 1, 0, 0},
	{"ushort", ELEMENT_UNSIGNED, 2, 2, 0, 0},
	{"uint", ELEMENT_UNSIGNED, 4, 4, 0, 0},
	{"ulong", ELEMENT_UNSIGNED, 8, 8, 0, 0},
	{"float", ELEMENT_REAL, 4, 4, 0, 0},
	{"double", ELEMENT_REAL, 8, 8, 0, 0},
	{"ldouble", ELEMENT_REAL, sizeof(long double), sizeof(long double), 0, 0},
	{"cfloat", ELEMENT_COMPLEX, 8, 4, 0, 0},
	{"cdouble", ELEMENT_COMPLEX, 16, 8, 0, 0},
	{"bool", ELEMENT_BOOL, 1, 1, 0, 0},
	{"byte", ELEMENT_BYTE, 1, 1, 0, 0},
	{"int_int", ELEMENT_PAIR, sizeof(struct pair_int), 4, offsetof(struct pair_int, index), 0},
	{"short_int", ELEMENT_PAIR, sizeof(struct pair_short), 2,
	 offsetof(struct pair_short, index), 0},
	{"long_int", ELEMENT_PAIR, sizeof(struct pair_long), 8, offsetof(struct pair_long, index),
	 0},
	{"float_int", ELEMENT_PAIR, sizeof(struct pair_float), 4,
	 offsetof(struct pair_float, index), 0},
	{"double_int", ELEMENT_PAIR, sizeof(struct pair_double), 8,
	 offsetof(struct pair_double, index), 0},
	{"ldouble_int", ELEMENT_PAIR, sizeof(struct pair_ldouble), sizeof(long double),
	 offsetof(struct pair_ldouble, index), 0},
	{"logical", ELEMENT_BOOL, 4, 4, 0, 0},
	{"affine", ELEMENT_AFFINE, 8, 4, 0, 0},
};

static struct element_opname ops[OP_COUNT] = {
	[OP_MAX] = {"max", 0},	       [OP_MIN] = {"min", 0},	    [OP_SUM] = {"sum", 0},
	[OP_PROD] = {"prod", 0},       [OP_LAND] = {"land", 0},	    [OP_LOR] = {"lor", 0},
	[OP_LXOR] = {"lxor", 0},       [OP_BAND] = {"band", 0},	    [OP_BOR] = {"bor", 0},
	[OP_BXOR] = {"bxor", 0},       [OP_MAXLOC] = {"maxloc", 0}, [OP_MINLOC] = {"minloc", 0},
	[OP_COMPOSE] = {"compose", 0}, [OP_ADD] = {"add", 0},	    [OP_LOWER] = {"lower", 0},
};

/* inout = in op inout */
static void fold_all(const struct element *e, int op, char *in, char *inout, int len)
{
	unsigned char value[32];

	for (int i = 0; i < len; i++, in += e->size, inout += e->size) {
		memcpy(value, in, e->size);
		element_fold(e, op, value, inout);
		memcpy(inout, value, e->size);
	}
}

/* A user's function is told of the type it was called for. */
static const struct element *told(const char *name, MPI_Datatype type)
{
	const struct element *e = element_find(name);

	if (type != e->type)
		MPI_Abort(MPI_COMM_WORLD, 3);
	return e;
}

static void compose(void *in, void *inout, int *len, MPI_Datatype *type)
{
	fold_all(told("affine", *type), OP_COMPOSE, in, inout, *len);
}

static void add(void *in, void *inout, int *len, MPI_Datatype *type)
{
	fold_all(told("ulong", *type), OP_SUM, in, inout, *len);
}

static void lower(void *in, void *inout, int *len, MPI_Datatype *type)
{
	fold_all(told("double_int", *type), OP_MINLOC, in, inout, *len);
}

/* Fortran's, or another type of such numbers where the MPI was built without Fortran. */
static MPI_Datatype logical(void)
{
	MPI_Errhandler before[2];
	int size = 0;

	MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before[0]);
	MPI_Comm_get_errhandler(MPI_COMM_SELF, &before[1]);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	if (MPI_Type_size(MPI_LOGICAL, &size))
		size = 0;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, before[0]);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, before[1]);
	MPI_Errhandler_free(&before[0]);
	MPI_Errhandler_free(&before[1]);
	return size == 4 ? MPI_LOGICAL : MPI_INT;
}

void element_setup(void)
{
	const MPI_Datatype types[] = {
		MPI_SIGNED_CHAR,
		MPI_SHORT,
		MPI_INT,
		MPI_LONG,
		MPI_UNSIGNED_CHAR,
		MPI_UNSIGNED_SHORT,
		MPI_UNSIGNED,
		MPI_UNSIGNED_LONG,
		MPI_FLOAT,
		MPI_DOUBLE,
		MPI_LONG_DOUBLE,
		MPI_C_FLOAT_COMPLEX,
		MPI_C_DOUBLE_COMPLEX,
		MPI_C_BOOL,
		MPI_BYTE,
		MPI_2INT,
		MPI_SHORT_INT,
		MPI_LONG_INT,
		MPI_FLOAT_INT,
		MPI_DOUBLE_INT,
		MPI_LONG_DOUBLE_INT,
		logical(),
	};
	const MPI_Op handles[] = {
		MPI_MAX,  MPI_MIN,  MPI_SUM, MPI_PROD, MPI_LAND,   MPI_LOR,
		MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC,
	};
	size_t n = sizeof(types) / sizeof(types[0]);

	for (size_t i = 0; i < n; i++)
		elements[i].type = types[i];
	MPI_Type_contiguous(2, MPI_UNSIGNED, &elements[n].type);
	MPI_Type_commit(&elements[n].type);
	for (int i = 0; i < OP_COMPOSE; i++)
		ops[i].op = handles[i];
	MPI_Op_create(compose, 0, &ops[OP_COMPOSE].op);
	MPI_Op_create(add, 1, &ops[OP_ADD].op);
	MPI_Op_create(lower, 1, &ops[OP_LOWER].op);
}

void element_teardown(void)
{
	for (int i = OP_COMPOSE; i < OP_COUNT; i++)
		MPI_Op_free(&ops[i].op);
	MPI_Type_free(&elements[sizeof(elements) / sizeof(elements[0]) - 1].type);
}

const struct element *element_find(const char *name)
{
	for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++)
		if (!strcmp(elements[i].name, name))
			return &elements[i];
	return NULL;
}

int element_find_op(const char *name)
{
	for (int i = 0; i < OP_COUNT; i++)
		if (!strcmp(ops[i].name, name))
			return i;
	return -1;
}

MPI_Op element_op(int op)
{
	return ops[op].op;
}

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014) over three words. */
uint64_t element_hash(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t z = a * 0x9e3779b97f4a7c15u + b * 0xc2b2ae3d27d4eb4fu + c * 0x165667b19e3779f9u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void store_real(size_t part, void *out, long double value)
{
	float f = (float)value;
	double d = (double)value;

	if (part == sizeof(float)) {
		memcpy(out, &f, sizeof(f));
	} else if (part == sizeof(double)) {
		memcpy(out, &d, sizeof(d));
	} else {
		memset(out, 0, part);
		memcpy(out, &value, LDOUBLE_BYTES);
	}
}

static long double load_real(size_t part, const void *in)
{
	long double value = 0;
	float f;
	double d;

	if (part == sizeof(float)) {
		memcpy(&f, in, sizeof(f));
		return f;
	}
	if (part == sizeof(double)) {
		memcpy(&d, in, sizeof(d));
		return d;
	}
	memcpy(&value, in, LDOUBLE_BYTES);
	return value;
}

static int64_t load_int(size_t part, bool is_signed, const void *in)
{
	int64_t value = 0;

	memcpy(&value, in, part); /* little-endian */
	if (is_signed && part < 8)
		value = (int64_t)((uint64_t)value << (64 - 8 * part)) >> (64 - 8 * part);
	return value;
}

static bool pair_is_real(const struct element *e)
{
	return !strncmp(e->name, "float", 5) || strstr(e->name, "double");
}

static long double pair_value(const struct element *e, const void *p)
{
	return pair_is_real(e) ? load_real(e->part, p) : (long double)load_int(e->part, true, p);
}

void element_make(const struct element *e, int op, uint64_t seed, int rank, uint64_t i, void *out)
{
	uint64_t bits = element_hash(seed, (uint64_t)rank + 1, i);
	/* Either sign, magnitude in [0.5, 2), all 52 bits used. */
	long double real =
		(0.5L + 1.5L * (long double)(bits >> 12) / 0x1p52L) * (bits & 1 ? -1 : 1);
	int64_t few = (int64_t)(bits % 5) - 2;
	int32_t index = (int32_t)(bits >> 40 & 7);

	memset(out, 0, e->size);
	switch (e->kind) {
	case ELEMENT_REAL:
		store_real(e->part, out, real);
		break;
	case ELEMENT_COMPLEX:
		store_real(e->part, out, real);
		store_real(e->part, (char *)out + e->part, real * real - 1);
		break;
	case ELEMENT_BOOL:
		*(unsigned char *)out = bits & 1;
		break;
	case ELEMENT_PAIR: /* few values, for equal ones to meet */
		if (pair_is_real(e))
			store_real(e->part, out, (long double)few);
		else
			memcpy(out, &few, e->part);
		memcpy((char *)out + e->index, &index, sizeof(index));
		break;
	case ELEMENT_SIGNED:
	case ELEMENT_UNSIGNED:
		/* A third is 0, so that logical operators tell elements apart. */
		if (bits % 3 == 0)
			bits = 0;
		/* Overflow has no defined result, and Open MPI's vectors saturate
		 * where its scalars wrap around. */
		if (e->size <= 2 && op == OP_SUM)
			bits &= 15;
		else if (e->size <= 2 && op == OP_PROD)
			bits = (bits >> 8 & 1) - (e->kind == ELEMENT_SIGNED && bits & 1);
		/* Open MPI 4 takes MPI_UNSIGNED_LONG for signed in MAX and MIN. */
		if (e->kind == ELEMENT_UNSIGNED && e->size == 8)
			bits >>= 1;
		memcpy(out, &bits, e->size);
		break;
	default:
		memcpy(out, &bits, e->size);
	}
}

static int64_t fold_int(int op, bool is_signed, int64_t a, int64_t b)
{
	bool less = is_signed ? a < b : (uint64_t)a < (uint64_t)b;

	switch (op == OP_ADD ? OP_SUM : op) {
	case OP_MAX:
		return less ? b : a;
	case OP_MIN:
		return less ? a : b;
	case OP_SUM:
		return (int64_t)((uint64_t)a + (uint64_t)b);
	case OP_PROD:
		return (int64_t)((uint64_t)a * (uint64_t)b);
	case OP_LAND:
		return a && b;
	case OP_LOR:
		return a || b;
	case OP_LXOR:
		return !a != !b;
	case OP_BAND:
		return a & b;
	case OP_BOR:
		return a | b;
	default:
		return a ^ b;
	}
}

/* In the type itself: a sum of floats is rounded to a float every time. */
static void fold_real(const struct element *e, int op, void *acc, const void *b)
{
	long double x = load_real(e->part, acc), y = load_real(e->part, b);

	if (op == OP_MAX)
		x = x > y ? x : y;
	else if (op == OP_MIN)
		x = x < y ? x : y;
	else if (e->part == sizeof(float))
		x = op == OP_SUM ? (float)x + (float)y : (float)x * (float)y;
	else if (e->part == sizeof(double))
		x = op == OP_SUM ? (double)x + (double)y : (double)x * (double)y;
	else
		x = op == OP_SUM ? x + y : x * y;
	store_real(e->part, acc, x);
}

static void fold_complex(const struct element *e, int op, void *acc, const void *b)
{
	if (e->part == sizeof(float)) {
		float _Complex x, y;

		memcpy(&x, acc, sizeof(x));
		memcpy(&y, b, sizeof(y));
		x = op == OP_SUM ? x + y : x * y;
		memcpy(acc, &x, sizeof(x));
	} else {
		double _Complex x, y;

		memcpy(&x, acc, sizeof(x));
		memcpy(&y, b, sizeof(y));
		x = op == OP_SUM ? x + y : x * y;
		memcpy(acc, &x, sizeof(x));
	}
}

static void fold_pair(const struct element *e, int op, void *acc, const void *b)
{
	long double x = pair_value(e, acc), y = pair_value(e, b);
	int i, k;

	memcpy(&i, (char *)acc + e->index, sizeof(i));
	memcpy(&k, (const char *)b + e->index, sizeof(k));
	if (x == y ? k < i : (op == OP_MAXLOC) == (y > x))
		memcpy(acc, b, e->size);
}

void element_fold(const struct element *e, int op, void *acc, const void *b)
{
	bool is_signed = e->kind == ELEMENT_SIGNED;
	uint32_t f[2], g[2];
	int64_t value;

	switch (e->kind) {
	case ELEMENT_REAL:
		fold_real(e, op, acc, b);
		break;
	case ELEMENT_COMPLEX:
		fold_complex(e, op, acc, b);
		break;
	case ELEMENT_PAIR:
		fold_pair(e, op, acc, b);
		break;
	case ELEMENT_AFFINE:
		memcpy(f, acc, sizeof(f));
		memcpy(g, b, sizeof(g));
		f[1] = g[0] * f[1] + g[1];
		f[0] = g[0] * f[0];
		memcpy(acc, f, sizeof(f));
		break;
	default:
		value = fold_int(op, is_signed, load_int(e->part, is_signed, acc),
				 load_int(e->part, is_signed, b));
		memcpy(acc, &value, e->size);
	}
}

void element_clean(const struct element *e, void *p)
{
	size_t used = e->part == sizeof(long double) ? LDOUBLE_BYTES : e->part;

	if (e->kind == ELEMENT_PAIR) {
		memset((char *)p + used, 0, e->index - used);
		memset((char *)p + e->index + sizeof(int), 0, e->size - e->index - sizeof(int));
	} else if (e->kind == ELEMENT_REAL) {
		memset((char *)p + used, 0, e->size - used);
	}
}

bool element_rounds(const struct element *e, int op)
{
	return (e->kind == ELEMENT_REAL || e->kind == ELEMENT_COMPLEX) &&
	       (op == OP_SUM || op == OP_PROD);
}

bool element_close(const struct element *e, const void *a, const void *b)
{
	for (size_t at = 0; at < e->size; at += e->part) {
		long double x = load_real(e->part, (const char *)a + at);
		long double y = load_real(e->part, (const char *)b + at);

		if (!(fabsl(x - y) <= 1e-4L * (1 + fabsl(x) + fabsl(y))))
			return false;
	}
	return true;
}
