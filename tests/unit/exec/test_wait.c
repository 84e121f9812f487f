// SPDX-License-Identifier: BSD-3-Clause
/* How a rank with a core of its own waits, while its MPI has work and when the peer is gone. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/wait.h"

#define WORK_NS 20000

static uint64_t turns;

/* An MPI that always finds something to move. */
static void work(void)
{
	uint64_t start = oc_clock_ns();

	while (oc_clock_ns() - start < WORK_NS)
		;
	turns++;
}

int main(void)
{
	struct oc_segment_rank self = {0};
	struct oc_node node = {.ranks = &self, .nranks = 1, .ncpus = 1};
	struct oc_wait wait = {.node = &node, .progress = work};
	struct oc_board_line line;
	uint64_t start = oc_clock_ns();
	int err;

	memset(&line, 0, sizeof(line));
	alarm(300);
	/* Longer than anybody yields for: work is gone on with, not slept over. */
	while (oc_clock_ns() - start < 300000000u) {
		if (oc_wait_turn(&wait, 0, &line, 0)) {
			fprintf(stderr, "gave up on a peer that lives\n");
			return 1;
		}
		if (atomic_load(&line.sleepers)) {
			fprintf(stderr, "slept after %llu turns with work to do\n",
				(unsigned long long)turns);
			return 1;
		}
	}
	/* No amount of work hides that the peer is gone. */
	atomic_store(&self.state, OC_RANK_LEFT);
	while (!(err = oc_wait_turn(&wait, 0, &line, 0)))
		;
	return err != -EPIPE;
}
