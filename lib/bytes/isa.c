// SPDX-License-Identifier: BSD-3-Clause
#include "bytes/isa.h"

#include <errno.h>
#include <stdatomic.h>

static const struct oc_isa *_Atomic chosen;

static const struct oc_isa *best(void)
{
	size_t i = 0;

	while (oc_isas[i + 1] && !oc_isas[i]->usable())
		i++;
	return oc_isas[i];
}

const struct oc_isa *oc_isa(void)
{
	const struct oc_isa *isa = atomic_load_explicit(&chosen, memory_order_relaxed);

	if (__builtin_expect(!isa, 0)) {
		/* Racing threads find the same one. What it points to is constant. */
		isa = best();
		atomic_store_explicit(&chosen, isa, memory_order_relaxed);
	}
	return isa;
}

int oc_isa_select(const struct oc_isa *isa)
{
	if (isa && !isa->usable())
		return -ENOTSUP;
	atomic_store_explicit(&chosen, isa, memory_order_relaxed);
	return 0;
}
