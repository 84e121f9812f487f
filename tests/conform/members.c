// SPDX-License-Identifier: BSD-3-Clause
#include "members.h"

struct oc_group *members_join(struct job *job, oc_node *node)
{
	struct oc_group_card cards[8];
	struct oc_group *group = oc_group_offer(node, job->nranks, &cards[job->rank]);

	memcpy(job->shared->bytes + job->rank * sizeof(*cards), &cards[job->rank], sizeof(*cards));
	CHECK_EQ(oc_node_barrier(node), 0);
	memcpy(cards, job->shared->bytes, job->nranks * sizeof(*cards));
	/* The next group's cards go there. */
	CHECK_EQ(oc_node_barrier(node), 0);
	CHECK_EQ(oc_group_create(group, cards, job->rank), 0);
	return group;
}
