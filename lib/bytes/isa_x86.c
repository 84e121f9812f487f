// SPDX-License-Identifier: BSD-3-Clause
#include "bytes/isa.h"

#include <stddef.h>

/* __builtin_cpu_supports() also asks whether the kernel saves the registers.
 * cpu_init: we may run before the constructor that calls it. */

static bool has_avx512(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static bool has_avx2(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2");
}

static bool has_sse2(void)
{
	return true; /* part of x86-64 */
}

static const struct oc_isa avx512 = {
	.name = "avx512",
	.usable = has_avx512,
	.calc = &oc_calc_avx512,
};

static const struct oc_isa avx2 = {
	.name = "avx2",
	.usable = has_avx2,
	.calc = &oc_calc_avx2,
};

static const struct oc_isa sse2 = {
	.name = "sse2",
	.usable = has_sse2,
	.calc = &oc_calc_baseline,
};

const struct oc_isa *const oc_isas[] = {&avx512, &avx2, &sse2, NULL};
