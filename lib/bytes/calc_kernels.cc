// SPDX-License-Identifier: BSD-3-Clause
/*
 * The arithmetic kernels. The build compiles this file once for each
 * instruction set and names the table, OC_CALC_TABLE, on the command line.
 *
 * Everything but the table lives in an unnamed namespace: templates with
 * external linkage would be merged by the linker across the copies, and an old
 * CPU would run the newest one's code. Nothing here needs the C++ library.
 *
 * The rules that make results equal on every machine, and equal to those of the
 * MPI under us where it has rules:
 * - integers wrap; signed and unsigned share kernels except for MAX and MIN
 * - MAX is a > b ? a : b and MIN is a < b ? a : b. So b wins when the two
 *   compare equal (zeros of either sign) or when either is a NaN. Open MPI's
 *   vector and three-buffer functions do the same
 * - MAXLOC and MINLOC likewise take b's value unless a's is better; when the
 *   values are equal, the lower index
 * - padding within an element (the pairs', long double's) comes from a
 * - complex products are C's (C11, annex G): infinities survive
 * - logical results are 1 and 0, any operand but 0 is true
 */
#include <float.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes/calc_elements.hh"
#include "bytes/calc_stream.hh"
#include "bytes/calc_table.h"

/* Before a loop: a destination is an operand or touches none, so no element
 * depends on another, though the compiler cannot see it. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace
{

/* Bytes of a T that carry its value; x87 numbers have ten. */
template <class T> constexpr size_t value_bytes = sizeof(T);
template <>
constexpr size_t value_bytes<long double> = LDBL_MANT_DIG == 64 ? 10 : sizeof(long double);

/* Bytes [from, to) of an element. @dst may be @src. */
template <size_t from, size_t to> inline void copy_padding(void *dst, const void *src)
{
	if constexpr (from < to) {
		unsigned char pad[to - from];

		__builtin_memcpy(pad, static_cast<const char *>(src) + from, to - from);
		__builtin_memcpy(static_cast<char *>(dst) + from, pad, to - from);
	}
}

/* ---- operators: on a scalar, or on a vector of the compiler's -------------- */

struct max {
	template <class V> static V apply(V a, V b)
	{
		return a > b ? a : b;
	}
};

struct min {
	template <class V> static V apply(V a, V b)
	{
		return a < b ? a : b;
	}
};

struct sum {
	template <class V> static V apply(V a, V b)
	{
		return a + b;
	}
};

struct prod {
	template <class V> static V apply(V a, V b)
	{
		return a * b;
	}

	/* Else promoted to int, which must not overflow. */
	static uint16_t apply(uint16_t a, uint16_t b)
	{
		return static_cast<uint16_t>(static_cast<unsigned>(a) * b);
	}
};

struct band {
	template <class V> static V apply(V a, V b)
	{
		return a & b;
	}
};

struct bor {
	template <class V> static V apply(V a, V b)
	{
		return a | b;
	}
};

struct bxor {
	template <class V> static V apply(V a, V b)
	{
		return a ^ b;
	}
};

/* A comparison of vectors gives -1 or 0 in each element, one of scalars 1 or 0. */
struct land {
	template <class V> static V apply(V a, V b)
	{
		return V((a != 0) & (b != 0)) & V(V{} + 1);
	}
};

struct lor {
	template <class V> static V apply(V a, V b)
	{
		return V((a | b) != 0) & V(V{} + 1);
	}
};

struct lxor {
	template <class V> static V apply(V a, V b)
	{
		return V((a != 0) ^ (b != 0)) & V(V{} + 1);
	}
};

/* ---- kernels ---------------------------------------------------------------- */

template <class Op, class T> void each(void *dst, const void *a, const void *b, size_t count)
{
	INDEPENDENT
	for (size_t i = 0; i < count; i++) {
		store<T>(dst, i, Op::apply(load<T>(a, i), load<T>(b, i)));
		copy_padding<value_bytes<T>, sizeof(T)>(static_cast<char *>(dst) + i * sizeof(T),
							byte_at(a, i * sizeof(T)));
	}
}

/* For complex numbers what is done to each part alone. */
template <class Op, class T> void each_part(void *dst, const void *a, const void *b, size_t count)
{
	each<Op, T>(dst, a, b, 2 * count);
}

/* C's complex types cannot be named from a template's parameter. */
template <class T> struct complex_of;
template <> struct complex_of<float> {
	typedef __complex__ float type;
};
template <> struct complex_of<double> {
	typedef __complex__ double type;
};
template <> struct complex_of<long double> {
	typedef __complex__ long double type;
};

/* The textbook product is right unless both parts came out as NaN. Those, rare,
 * are done again by the compiler's own, which calls a function each time and so
 * would keep the loop from being vectorised. */
template <class T> void complex_prod(void *dst, const void *a, const void *b, size_t count)
{
	constexpr size_t block = 64;
	T re[block], im[block];

	for (size_t base = 0; base < count; base += block) {
		size_t n = count - base < block ? count - base : block;
		unsigned int redo = 0;

		for (size_t i = 0; i < n; i++) {
			T ar = load<T>(a, 2 * (base + i)), ai = load<T>(a, 2 * (base + i) + 1);
			T br = load<T>(b, 2 * (base + i)), bi = load<T>(b, 2 * (base + i) + 1);

			re[i] = ar * br - ai * bi;
			im[i] = ar * bi + ai * br;
			redo |= (re[i] != re[i]) & (im[i] != im[i]);
		}
		for (size_t i = 0; redo && i < n; i++) {
			typename complex_of<T>::type x, y;

			__real__ x = load<T>(a, 2 * (base + i));
			__imag__ x = load<T>(a, 2 * (base + i) + 1);
			__real__ y = load<T>(b, 2 * (base + i));
			__imag__ y = load<T>(b, 2 * (base + i) + 1);
			x *= y;
			re[i] = __real__ x;
			im[i] = __imag__ x;
		}
		for (size_t i = 0; i < n; i++) {
			char *to = static_cast<char *>(dst) + 2 * (base + i) * sizeof(T);
			const char *from = byte_at(a, 2 * (base + i) * sizeof(T));

			store<T>(to, 0, re[i]);
			store<T>(to, 1, im[i]);
			copy_padding<value_bytes<T>, sizeof(T)>(to, from);
			copy_padding<sizeof(T) + value_bytes<T>, 2 * sizeof(T)>(to, from);
		}
	}
}

/* As the standard lays out MPI_FLOAT_INT and its like. */
template <class V, class I> struct pair {
	V value;
	I index;
};

struct greater {
	template <class V> static bool better(V a, V b)
	{
		return a > b;
	}
};

struct less {
	template <class V> static bool better(V a, V b)
	{
		return a < b;
	}
};

template <class Order, class V, class I>
void locate(void *dst, const void *a, const void *b, size_t count)
{
	typedef pair<V, I> element;
	constexpr size_t size = sizeof(element), mid = offsetof(element, index);

	INDEPENDENT
	for (size_t i = 0; i < count; i++) {
		const char *pa = byte_at(a, i * size);
		const char *pb = byte_at(b, i * size);
		char *to = static_cast<char *>(dst) + i * size;
		V av = load<V>(pa, 0), bv = load<V>(pb, 0);
		I ai = load<I>(pa + mid, 0), bi = load<I>(pb + mid, 0);
		bool take_a = Order::better(av, bv) || (av == bv && ai < bi);

		/* Of two equal values, b's: they may be zeros of either sign. */
		store<V>(to, 0, Order::better(av, bv) ? av : bv);
		store<I>(to + mid, 0, take_a ? ai : bi);
		copy_padding<value_bytes<V>, mid>(to, pa);
		copy_padding<mid + sizeof(I), size>(to, pa);
	}
}

/* ---- the table: MPI standard 4.0, 6.9.2 and 6.9.4 ----------------------------- */

struct table : oc_calc_table {
	constexpr table() : oc_calc_table{}
	{
	}

	template <class Op, class T> constexpr void add(oc_calc_op op, oc_type type)
	{
		calc[op][type] = each<Op, T>;
		stream[op][type] = streamed<Op, T>;
	}

	template <class T> constexpr void add_order(oc_type type)
	{
		add<max, T>(OC_MAX, type);
		add<min, T>(OC_MIN, type);
	}

	template <class T> constexpr void add_arithmetic(oc_type type)
	{
		add<sum, T>(OC_SUM, type);
		add<prod, T>(OC_PROD, type);
	}

	template <class T> constexpr void add_logical(oc_type type)
	{
		add<land, T>(OC_LAND, type);
		add<lor, T>(OC_LOR, type);
		add<lxor, T>(OC_LXOR, type);
	}

	template <class T> constexpr void add_bitwise(oc_type type)
	{
		add<band, T>(OC_BAND, type);
		add<bor, T>(OC_BOR, type);
		add<bxor, T>(OC_BXOR, type);
	}

	/* All that does not ask for the sign. */
	template <class T> constexpr void add_ring(oc_type type)
	{
		add_arithmetic<T>(type);
		add_logical<T>(type);
		add_bitwise<T>(type);
	}

	template <class Signed, class Unsigned>
	constexpr void add_integer(oc_type signed_type, oc_type unsigned_type)
	{
		add_order<Signed>(signed_type);
		add_order<Unsigned>(unsigned_type);
		add_ring<Unsigned>(signed_type);
		add_ring<Unsigned>(unsigned_type);
	}

	template <class T> constexpr void add_real(oc_type type)
	{
		add_order<T>(type);
		add_arithmetic<T>(type);
	}

	template <class T> constexpr void add_complex(oc_type type)
	{
		calc[OC_SUM][type] = each_part<sum, T>;
		stream[OC_SUM][type] = streamed<sum, T>;
		calc[OC_PROD][type] = complex_prod<T>;
	}

	template <class V, class I> constexpr void add_pair(oc_type type)
	{
		calc[OC_MAXLOC][type] = locate<greater, V, I>;
		calc[OC_MINLOC][type] = locate<less, V, I>;
	}
};

constexpr oc_calc_table make_table()
{
	table t;

	t.add_integer<int8_t, uint8_t>(OC_INT8, OC_UINT8);
	t.add_integer<int16_t, uint16_t>(OC_INT16, OC_UINT16);
	t.add_integer<int32_t, uint32_t>(OC_INT32, OC_UINT32);
	t.add_integer<int64_t, uint64_t>(OC_INT64, OC_UINT64);
	t.add_real<float>(OC_FLOAT);
	t.add_real<double>(OC_DOUBLE);
	t.add_real<long double>(OC_LDOUBLE);
	t.add_complex<float>(OC_CFLOAT);
	t.add_complex<double>(OC_CDOUBLE);
	t.add_complex<long double>(OC_CLDOUBLE);
	t.add_logical<uint8_t>(OC_BOOL);
	t.add_logical<uint32_t>(OC_LOGICAL32);
	t.add_bitwise<uint8_t>(OC_BYTE);
	t.add_pair<float, int>(OC_FLOAT_INT);
	t.add_pair<double, int>(OC_DOUBLE_INT);
	t.add_pair<long, int>(OC_LONG_INT);
	t.add_pair<int, int>(OC_INT_INT);
	t.add_pair<short, int>(OC_SHORT_INT);
	t.add_pair<long double, int>(OC_LDOUBLE_INT);
	t.add_pair<float, float>(OC_2FLOAT);
	t.add_pair<double, double>(OC_2DOUBLE);
	return t;
}

} // namespace

/* Its declaration in calc_table.h gives it external linkage. */
constexpr oc_calc_table OC_CALC_TABLE = make_table();
