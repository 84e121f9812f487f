// SPDX-License-Identifier: BSD-3-Clause
#include "run.h"

#define LOOK_AROUND 64 /* turns of waiting between looks at all members */

int oc_run_failure(struct oc_run *run, struct oc_ep_line *line)
{
	return oc_ep_failure(atomic_load_explicit(&line->word, memory_order_acquire),
			     run->group->seq);
}

int oc_run_idle(struct oc_run *run, uint32_t peer, struct oc_ep_line *line, uint64_t seen)
{
	int err = run->serve(run);

	if (err)
		return err;
	err = oc_run_failure(run, line);
	if (!err && run->group->wait.turns > run->group->node->spin &&
	    run->group->wait.turns % LOOK_AROUND == 0)
		err = oc_group_failure(run->group);
	if (err)
		return err;
	return oc_group_idle(run->group, peer, line, seen);
}

uint64_t oc_run_arena_offset(struct oc_run *run, uint32_t member, enum oc_slot slot)
{
	struct oc_ep_line *line = oc_group_line(run->group, member);

	if (slot == OC_SLOT_RECV)
		return line->recv;
	if (slot == OC_SLOT_SCRATCH)
		return line->scratch;
	if (oc_line_flags(line) & OC_EP_SEND_STAGED)
		return (uint64_t)line->stage_page * OC_STAGE_PAGE;
	return line->send;
}
