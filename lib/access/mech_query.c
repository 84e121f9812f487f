// SPDX-License-Identifier: BSD-3-Clause
/* What programs may ask about mechanisms, and say. */
#include "access/mech.h"

#include <errno.h>
#include <string.h>

#define ALL_MECHS ((1u << OC_MECH_COUNT) - 1)

int oc_mech_query(const oc_node *node, uint32_t peer, struct oc_mech_report *out)
{
	struct oc_mech_report report = {0};

	if (!node || !oc_node_mine(node) || peer >= node->nranks || !out)
		return -EINVAL;
	for (uint32_t i = 0; i < OC_MECH_COUNT; i++) {
		const struct oc_mech *mech = oc_mech_table[i];
		uint32_t at = oc_mech_index(mech->bit);

		if (!oc_mech_allowed(node, mech)) {
			report.forbidden |= mech->bit;
			strcpy(report.why[at], "forbidden by ONECOPY_MECH or oc_mech_allow()");
		} else {
			mech->explain(node, peer, report.why[at], sizeof(report.why[at]));
			report.usable |= report.why[at][0] ? 0 : mech->bit;
		}
	}
	*out = report;
	return 0;
}

int oc_mech_allow(oc_node *node, uint32_t mask)
{
	if (!node || !oc_node_mine(node) || !mask || mask & ~ALL_MECHS)
		return -EINVAL;
	atomic_store(&node->mech_mask, mask);
	return 0;
}

int oc_mech_stats(const oc_node *node, struct oc_mech_stats *stats)
{
	if (!node || !oc_node_mine(node) || !stats)
		return -EINVAL;
	for (uint32_t i = 0; i < OC_MECH_COUNT; i++) {
		stats->calls[i] = atomic_load_explicit(&node->moved.calls[i], memory_order_relaxed);
		stats->bytes[i] = atomic_load_explicit(&node->moved.bytes[i], memory_order_relaxed);
	}
	stats->demotions = atomic_load_explicit(&node->moved.demotions, memory_order_relaxed);
	return 0;
}
