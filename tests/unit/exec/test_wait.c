// SPDX-License-Identifier: BSD-3-Clause
/* How a rank waits: with a core of its own, while its MPI has work and when the peer is gone; and
 * where cores are shared, with a scheduler that heeds its yields and with one that does not. */
#include <errno.h>
#include <stdbool.h>
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

/* In the place of the C library's: a yield takes what the test says. */
static uint64_t yield_ns, yields;

int sched_yield(void)
{
	uint64_t start = oc_clock_ns();

	yields++;
	while (oc_clock_ns() - start < yield_ns)
		;
	return 0;
}

/* Whether a rank of two on one core sleeps within 60 ms, when each yield returns after @ns. */
static bool naps(uint64_t ns)
{
	struct oc_segment_rank ranks[2] = {{0}};
	struct oc_node node = {.ranks = ranks, .nranks = 2, .ncpus = 1, .oversubscribed = true};
	struct oc_wait wait = {.node = &node};
	struct oc_board_line line;
	uint64_t start = oc_clock_ns();

	memset(&line, 0, sizeof(line));
	yield_ns = ns;
	yields = 0;
	while (oc_clock_ns() - start < 60000000 && !atomic_load(&line.sleepers))
		if (oc_wait_turn(&wait, 1, &line, 0))
			return false;
	return yields && atomic_load(&line.sleepers);
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
	if (!naps(0)) {
		fprintf(stderr, "went on yielding though nobody took the core\n");
		return 1;
	}
	if (naps(5000)) {
		fprintf(stderr, "slept though its yields were heeded\n");
		return 1;
	}
	yield_ns = 0;
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
