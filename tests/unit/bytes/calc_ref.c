// SPDX-License-Identifier: BSD-3-Clause
#include "calc_ref.h"
#include "../../random.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum kind {
	SIGNED,
	UNSIGNED,
	REAL, /* float, double, long double: by size */
	COMPLEX,
	LOGICAL,
	BYTES,
	PAIR,
};

static const struct {
	const char *name;
	enum kind kind;
	enum oc_type value; /* of a pair */
	enum oc_type index;
	size_t size; /* of a part: value of a pair, half of a complex number */
	size_t at;   /* of the second part, 0: none */
	size_t extent;
} types[OC_TYPE_COUNT] = {
	[OC_INT8] = {"int8", SIGNED, .size = 1, .extent = 1},
	[OC_INT16] = {"int16", SIGNED, .size = 2, .extent = 2},
	[OC_INT32] = {"int32", SIGNED, .size = 4, .extent = 4},
	[OC_INT64] = {"int64", SIGNED, .size = 8, .extent = 8},
	[OC_UINT8] = {"uint8", UNSIGNED, .size = 1, .extent = 1},
	[OC_UINT16] = {"uint16", UNSIGNED, .size = 2, .extent = 2},
	[OC_UINT32] = {"uint32", UNSIGNED, .size = 4, .extent = 4},
	[OC_UINT64] = {"uint64", UNSIGNED, .size = 8, .extent = 8},
	[OC_FLOAT] = {"float", REAL, .size = 4, .extent = 4},
	[OC_DOUBLE] = {"double", REAL, .size = 8, .extent = 8},
	[OC_LDOUBLE] = {"ldouble", REAL, .size = sizeof(long double),
			.extent = sizeof(long double)},
	[OC_CFLOAT] = {"cfloat", COMPLEX, OC_FLOAT, OC_FLOAT, 4, 4, 8},
	[OC_CDOUBLE] = {"cdouble", COMPLEX, OC_DOUBLE, OC_DOUBLE, 8, 8, 16},
	[OC_CLDOUBLE] = {"cldouble", COMPLEX, OC_LDOUBLE, OC_LDOUBLE, sizeof(long double),
			 sizeof(long double), 2 * sizeof(long double)},
	[OC_BOOL] = {"bool", LOGICAL, .size = 1, .extent = 1},
	[OC_LOGICAL32] = {"logical32", LOGICAL, .size = 4, .extent = 4},
	[OC_BYTE] = {"byte", BYTES, .size = 1, .extent = 1},
	[OC_FLOAT_INT] = {"float_int", PAIR, OC_FLOAT, OC_INT32, 4, 4, 8},
	[OC_DOUBLE_INT] = {"double_int", PAIR, OC_DOUBLE, OC_INT32, 8, 8, 16},
	[OC_LONG_INT] = {"long_int", PAIR, sizeof(long) == 8 ? OC_INT64 : OC_INT32, OC_INT32,
			 sizeof(long), sizeof(long), 2 * sizeof(long)},
	[OC_INT_INT] = {"int_int", PAIR, OC_INT32, OC_INT32, 4, 4, 8},
	[OC_SHORT_INT] = {"short_int", PAIR, OC_INT16, OC_INT32, 2, 4, 8},
	[OC_LDOUBLE_INT] = {"ldouble_int", PAIR, OC_LDOUBLE, OC_INT32, sizeof(long double),
			    sizeof(long double), 2 * sizeof(long double)},
	[OC_2FLOAT] = {"2float", PAIR, OC_FLOAT, OC_FLOAT, 4, 4, 8},
	[OC_2DOUBLE] = {"2double", PAIR, OC_DOUBLE, OC_DOUBLE, 8, 8, 16},
};

static const char *const ops[OC_OP_COUNT] = {
	[OC_MAX] = "max",   [OC_MIN] = "min",	[OC_SUM] = "sum",	[OC_PROD] = "prod",
	[OC_LAND] = "land", [OC_BAND] = "band", [OC_LOR] = "lor",	[OC_BOR] = "bor",
	[OC_LXOR] = "lxor", [OC_BXOR] = "bxor", [OC_MAXLOC] = "maxloc", [OC_MINLOC] = "minloc",
};

const char *ref_op_name(enum oc_calc_op op)
{
	return ops[op] ? ops[op] : "none";
}

const char *ref_type_name(enum oc_type type)
{
	return types[type].name ? types[type].name : "none";
}

size_t ref_size(enum oc_type type)
{
	return types[type].extent;
}

bool ref_allowed(enum oc_calc_op op, enum oc_type type)
{
	enum kind kind = types[type].kind;
	bool integer = kind == SIGNED || kind == UNSIGNED;

	if (op == OC_OP_NONE || type == OC_TYPE_NONE)
		return false;
	switch (op) {
	case OC_MAX:
	case OC_MIN:
		return integer || kind == REAL;
	case OC_SUM:
	case OC_PROD:
		return integer || kind == REAL || kind == COMPLEX;
	case OC_LAND:
	case OC_LOR:
	case OC_LXOR:
		return integer || kind == LOGICAL;
	case OC_BAND:
	case OC_BOR:
	case OC_BXOR:
		return integer || kind == BYTES;
	default:
		return kind == PAIR;
	}
}

/* Integers of any kind, sign-extended if signed. */
static uint64_t get_int(enum oc_type type, const void *p)
{
	bool is_signed = types[type].kind == SIGNED;
	uint8_t u8;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;

	switch (types[type].size) {
	case 1:
		memcpy(&u8, p, 1);
		return is_signed ? (uint64_t)(int64_t)(int8_t)u8 : u8;
	case 2:
		memcpy(&u16, p, 2);
		return is_signed ? (uint64_t)(int64_t)(int16_t)u16 : u16;
	case 4:
		memcpy(&u32, p, 4);
		return is_signed ? (uint64_t)(int64_t)(int32_t)u32 : u32;
	default:
		memcpy(&u64, p, 8);
		return u64;
	}
}

static void put_int(enum oc_type type, void *p, uint64_t value)
{
	uint8_t u8 = (uint8_t)value;
	uint16_t u16 = (uint16_t)value;
	uint32_t u32 = (uint32_t)value;

	switch (types[type].size) {
	case 1:
		memcpy(p, &u8, 1);
		return;
	case 2:
		memcpy(p, &u16, 2);
		return;
	case 4:
		memcpy(p, &u32, 4);
		return;
	default:
		memcpy(p, &value, 8);
	}
}

/* Bytes of a long double that are not padding. */
static size_t ldouble_bytes(void)
{
	return LDBL_MANT_DIG == 64 ? 10 : sizeof(long double);
}

/* Widening is exact; narrowing in put_real undoes it. */
static long double get_real(enum oc_type type, const void *p)
{
	float f;
	double d;
	long double l;

	if (type == OC_FLOAT) {
		memcpy(&f, p, sizeof(f));
		return f;
	}
	if (type == OC_DOUBLE) {
		memcpy(&d, p, sizeof(d));
		return d;
	}
	memcpy(&l, p, sizeof(l));
	return l;
}

static void put_real(enum oc_type type, void *p, long double value)
{
	float f = (float)value;
	double d = (double)value;

	if (type == OC_FLOAT)
		memcpy(p, &f, sizeof(f));
	else if (type == OC_DOUBLE)
		memcpy(p, &d, sizeof(d));
	else
		memcpy(p, &value, ldouble_bytes());
}

static void calc_int(enum oc_calc_op op, enum oc_type type, void *out, const void *pa,
		     const void *pb)
{
	uint64_t a = get_int(type, pa), b = get_int(type, pb), r;
	bool a_less = types[type].kind == SIGNED ? (int64_t)a < (int64_t)b : a < b;

	switch (op) {
	case OC_MAX:
		r = a_less ? b : a;
		break;
	case OC_MIN:
		r = a_less ? a : b;
		break;
	case OC_SUM:
		r = a + b;
		break;
	case OC_PROD:
		r = a * b;
		break;
	case OC_LAND:
		r = a && b;
		break;
	case OC_LOR:
		r = a || b;
		break;
	case OC_LXOR:
		r = !a != !b;
		break;
	case OC_BAND:
		r = a & b;
		break;
	case OC_BOR:
		r = a | b;
		break;
	default:
		r = a ^ b;
	}
	put_int(type, out, r);
}

/* Rounded once, in the type's own precision. */
static long double arithmetic(enum oc_calc_op op, enum oc_type type, long double a, long double b)
{
	volatile float f = (float)a, g = (float)b;
	volatile double d = (double)a, e = (double)b;

	if (type == OC_FLOAT)
		return op == OC_SUM ? f + g : f * g;
	if (type == OC_DOUBLE)
		return op == OC_SUM ? d + e : d * e;
	return op == OC_SUM ? a + b : a * b;
}

static void calc_real(enum oc_calc_op op, enum oc_type type, void *out, const void *pa,
		      const void *pb)
{
	long double a = get_real(type, pa), b = get_real(type, pb);

	/* As documented in calc.h: b unless a is strictly better. */
	if (op == OC_MAX)
		put_real(type, out, isgreater(a, b) ? a : b);
	else if (op == OC_MIN)
		put_real(type, out, isless(a, b) ? a : b);
	else
		put_real(type, out, arithmetic(op, type, a, b));
}

static void prod_complex(enum oc_type type, void *out, const void *pa, const void *pb)
{
	long double complex a, b;
	float complex f, g;
	double complex d, e;

	if (type == OC_CFLOAT) {
		memcpy(&f, pa, sizeof(f));
		memcpy(&g, pb, sizeof(g));
		f *= g;
		memcpy(out, &f, sizeof(f));
	} else if (type == OC_CDOUBLE) {
		memcpy(&d, pa, sizeof(d));
		memcpy(&e, pb, sizeof(e));
		d *= e;
		memcpy(out, &d, sizeof(d));
	} else {
		memcpy(&a, pa, sizeof(a));
		memcpy(&b, pb, sizeof(b));
		a *= b;
		put_real(OC_LDOUBLE, out, creall(a));
		put_real(OC_LDOUBLE, (char *)out + sizeof(long double), cimagl(a));
	}
}

/* -1, 0, 1: a's value is smaller, equal or unordered, greater. */
static int compare(enum oc_type type, const void *pa, const void *pb, bool *equal)
{
	if (types[type].kind == REAL) {
		long double a = get_real(type, pa), b = get_real(type, pb);

		*equal = a == b;
		return isgreater(a, b) ? 1 : isless(a, b) ? -1 : 0;
	}
	int64_t a = (int64_t)get_int(type, pa), b = (int64_t)get_int(type, pb);

	*equal = a == b;
	return (a > b) - (a < b);
}

static void put_part(enum oc_type type, void *out, const void *from)
{
	memcpy(out, from, type == OC_LDOUBLE ? ldouble_bytes() : types[type].size);
}

static void calc_pair(enum oc_calc_op op, enum oc_type type, char *out, const char *a,
		      const char *b)
{
	enum oc_type value = types[type].value, index = types[type].index;
	size_t at = types[type].at;
	bool equal, ignored;
	int order = compare(value, a, b, &equal);
	bool better = op == OC_MAXLOC ? order > 0 : order < 0;

	put_part(value, out, better ? a : b);
	if (equal)
		better = compare(index, a + at, b + at, &ignored) < 0;
	put_part(index, out + at, better ? a + at : b + at);
}

void ref_calc(enum oc_calc_op op, enum oc_type type, void *out, const void *a, const void *b)
{
	size_t at = types[type].at;

	memcpy(out, a, types[type].extent);
	switch (types[type].kind) {
	case REAL:
		calc_real(op, type, out, a, b);
		return;
	case COMPLEX:
		if (op == OC_PROD) {
			prod_complex(type, out, a, b);
			return;
		}
		calc_real(op, types[type].value, out, a, b);
		calc_real(op, types[type].value, (char *)out + at, (const char *)a + at,
			  (const char *)b + at);
		return;
	case PAIR:
		calc_pair(op, type, out, a, b);
		return;
	default:
		calc_int(op, type, out, a, b);
	}
}

static bool same_part(enum oc_type type, const void *x, const void *y)
{
	return !memcmp(x, y, types[type].size) ||
	       (isnan(get_real(type, x)) && isnan(get_real(type, y)));
}

bool ref_same(enum oc_calc_op op, enum oc_type type, const void *x, const void *y)
{
	size_t at = types[type].at;

	if (!memcmp(x, y, types[type].extent))
		return true;
	if (op != OC_SUM && op != OC_PROD)
		return false;
	if (types[type].kind == REAL)
		return same_part(type, x, y);
	return types[type].kind == COMPLEX && same_part(types[type].value, x, y) &&
	       same_part(types[type].value, (const char *)x + at, (const char *)y + at);
}

static void random_part(enum oc_type type, void *out, uint64_t *seed)
{
	static const long double special[] = {0.0L, -0.0L, 1.0L, -1.0L, INFINITY, -INFINITY};
	uint64_t r = random_next(seed);
	uint64_t shape = r >> 32 & 63;

	if (types[type].kind != REAL) {
		put_int(type, out, shape < 24 ? r & 1 : shape < 48 ? (r & 7) - 4 : r);
		return;
	}
	if (shape < 6)
		put_real(type, out, special[shape]);
	else if (shape == 6)
		put_real(type, out, NAN);
	else if (shape < 24)
		put_real(type, out, (long double)(r & 3) - 1);
	else
		put_real(type, out, ((long double)(r >> 16 & 0xffffffff) - 0x7fffffff) / 1e8L);
}

void ref_random(enum oc_type type, void *out, uint64_t *seed)
{
	char *p = out;

	for (size_t i = 0; i < types[type].extent; i++)
		p[i] = (char)(random_next(seed) >> 24);
	if (!types[type].at) {
		random_part(type, p, seed);
		return;
	}
	random_part(types[type].value, p, seed);
	random_part(types[type].index, p + types[type].at, seed);
}
