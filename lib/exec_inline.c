// SPDX-License-Identifier: BSD-3-Clause
/*
 * The inline executor: the calling thread runs its plan, doing whichever step
 * is ready, and waits only when none is.
 *
 * Where a slot is: memory of the shared heap is reached through the mapping of
 * its owner's arena. A send buffer elsewhere is either read by CMA, or staged:
 * its owner copies it into scratch memory of the arena, chunk by chunk, and
 * peers follow the count of bytes that are ready. A receive buffer elsewhere
 * is never written by peers; plans carry a second way for that (OC_COND_*).
 *
 * A peer whose CMA read is refused sets `restage` in the owner's line. The
 * owner, which stays until all its readers are done, then stages as above.
 */
#include "exec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "copy.h"
#include "heap.h"
#include "mech_cma.h"
#include "wait.h"

#define CHUNK	((size_t)64 << 10)  /* staging: stays in a second-level cache */
#define CMA_MIN ((size_t)128 << 10) /* below this a page-by-page read loses */

struct run {
	struct oc_group *group;
	const struct oc_plan *plan;
	const struct oc_bind *bind;
	struct oc_ep_line *line;
	bool foreign;	   /* the send slot is not in the heap, and peers may read it */
	int8_t all_direct; /* every receive slot is reachable; -1 not known yet */
	int err;
};

static bool send_is_read(const struct oc_plan *plan)
{
	for (uint32_t i = 0; i < plan->nsteps; i++)
		if (plan->steps[i].kind == OC_STEP_STAGE)
			return true;
	return false;
}

/* Gets memory for the scratch slot. */
static int bind_memory(struct run *run)
{
	const struct oc_bind *bind = run->bind;

	run->foreign = bind->send_bytes && !oc_heap_contains(bind->send, bind->send_bytes) &&
		       send_is_read(run->plan);
	if (!bind->scratch_bytes)
		return 0;
	if (!oc_keep_get(&run->group->scratch, bind->scratch_bytes))
		return -ENOMEM;
	if (bind->scratch_init)
		memcpy(run->group->scratch.at, bind->scratch_init, bind->scratch_bytes);
	return 0;
}

static uint64_t arena_offset(const void *p)
{
	return (uintptr_t)p - oc_heap_range.base;
}

static void post_descriptor(struct run *run)
{
	const struct oc_bind *bind = run->bind;
	struct oc_ep_line *line = run->line;
	struct oc_group *group = run->group;
	uint64_t ready = UINT64_MAX;
	uint32_t flags = 0;

	line->send = line->recv = line->scratch = 0;
	line->bytes = run->plan->shape.bytes;
	atomic_store_explicit(&line->restage, 0, memory_order_relaxed);
	if (run->foreign) {
		line->send = (uintptr_t)bind->send;
		flags |= group->cma && bind->cma && bind->send_bytes >= CMA_MIN ? OC_EP_SEND_CMA
										: OC_EP_SEND_STAGED;
		ready = 0;
	} else if (bind->send && oc_heap_contains(bind->send, bind->send_bytes)) {
		flags |= OC_EP_SEND_HEAP;
		line->send = arena_offset(bind->send);
	}
	if (bind->recv && oc_heap_contains(bind->recv, bind->recv_bytes)) {
		flags |= OC_EP_RECV_HEAP;
		line->recv = arena_offset(bind->recv);
	}
	atomic_store_explicit(&line->flags, flags, memory_order_relaxed);
	if (bind->scratch_bytes)
		line->scratch = arena_offset(group->scratch.at);
	atomic_store_explicit(&line->ready, ready, memory_order_relaxed);
	oc_group_post(group, OC_STAGE_READY);
}

/* Copies the send slot into the staging area, telling readers as it goes. */
static int stage_send(struct run *run)
{
	const struct oc_bind *bind = run->bind;
	struct oc_ep_line *line = run->line;
	char *stage = oc_keep_get(&run->group->stage, bind->send_bytes);

	if (!stage)
		return -ENOMEM;
	line->stage_page = (uint32_t)(arena_offset(stage) / OC_STAGE_PAGE);
	for (size_t off = 0; off < bind->send_bytes; off += CHUNK) {
		size_t len = bind->send_bytes - off < CHUNK ? bind->send_bytes - off : CHUNK;

		oc_copy_bytes(stage + off, (const char *)bind->send + off, len, false);
		atomic_store_explicit(&line->ready, off + len, memory_order_release);
		oc_line_wake(line);
	}
	oc_group_stats.staged_calls++;
	oc_group_stats.staged_bytes += bind->send_bytes;
	return 0;
}

static uint32_t line_flags(struct oc_ep_line *line)
{
	return atomic_load_explicit(&line->flags, memory_order_acquire);
}

/* Somebody could not read this rank's send slot by CMA. */
static int serve_restage(struct run *run)
{
	struct oc_ep_line *line = run->line;
	uint32_t flags = line_flags(line);

	if (!(flags & OC_EP_SEND_CMA) ||
	    !atomic_load_explicit(&line->restage, memory_order_acquire))
		return 0;
	run->group->cma = false;
	flags = (flags & ~OC_EP_SEND_CMA) | OC_EP_SEND_STAGED;
	atomic_store_explicit(&line->flags, flags, memory_order_release);
	return stage_send(run);
}

/* A peer that gave up will post no stage any more. */
static bool gave_up(struct run *run, struct oc_ep_line *line)
{
	return atomic_load_explicit(&line->word, memory_order_acquire) ==
	       oc_ep_word(run->group->seq, OC_STAGE_FAILED);
}

static int idle(struct run *run, uint32_t peer, struct oc_ep_line *line, uint64_t seen)
{
	int err = serve_restage(run);

	if (err)
		return err;
	if (gave_up(run, line))
		return -EPIPE;
	return oc_group_idle(run->group, peer, line, seen);
}

/* Where @peer's send slot is in this process, unless it is to be read by CMA. */
static const char *send_base(struct run *run, uint32_t peer, uint32_t flags)
{
	struct oc_ep_line *line = oc_group_line(run->group, peer);
	char *arena = run->group->arena[peer];

	if (flags & OC_EP_SEND_STAGED)
		return arena + (uint64_t)line->stage_page * OC_STAGE_PAGE;
	return arena + line->send;
}

/* Waits until bytes [0, end) of @peer's send slot may be read. */
static int wait_ready(struct run *run, uint32_t peer, uint64_t end)
{
	struct oc_ep_line *line = oc_group_line(run->group, peer);

	while (atomic_load_explicit(&line->ready, memory_order_acquire) < end) {
		uint64_t word = atomic_load_explicit(&line->word, memory_order_relaxed);
		int err = idle(run, peer, line, word);

		if (err)
			return err;
	}
	run->group->idle = 0;
	return 0;
}

/* Reads [off, off + len) of @peer's send slot into local memory. */
static int read_send(struct run *run, void *dst, uint32_t peer, uint64_t off, size_t len,
		     bool stream)
{
	struct oc_group *group = run->group;
	struct oc_ep_line *line = oc_group_line(group, peer);
	const char *src;
	int err;

	if (line_flags(line) & OC_EP_SEND_CMA) {
		err = oc_cma_read(group->node, group->node_rank[peer], dst, line->send + off, len);
		if (!err) {
			oc_group_stats.cma_calls++;
			oc_group_stats.cma_bytes += len;
			return 0;
		}
		atomic_store_explicit(&line->restage, 1, memory_order_release);
		/* The owner looks at this whenever it waits. */
		while (line_flags(line) & OC_EP_SEND_CMA) {
			uint64_t word = atomic_load_explicit(&line->word, memory_order_relaxed);

			err = idle(run, peer, line, word);
			if (err)
				return err;
		}
	}
	while (len) {
		bool whole = atomic_load_explicit(&line->ready, memory_order_acquire) >= off + len;
		size_t part = whole || len < CHUNK ? len : CHUNK;

		err = wait_ready(run, peer, off + part);
		if (err)
			return err;
		src = send_base(run, peer, line_flags(line)) + off;
		oc_copy_bytes(dst, src, part, stream);
		dst = (char *)dst + part;
		off += part;
		len -= part;
		oc_group_stats.heap_bytes += part;
	}
	oc_group_stats.heap_calls++;
	return 0;
}

/* A slot that is plain memory here: one's own, or a peer's receive or scratch. */
static char *slot_at(struct run *run, struct oc_ref ref)
{
	struct oc_group *group = run->group;
	struct oc_ep_line *line = oc_group_line(group, ref.rank);

	if (ref.rank == group->rank) {
		switch (ref.slot) {
		case OC_SLOT_SEND:
			return (char *)(uintptr_t)run->bind->send + ref.off;
		case OC_SLOT_RECV:
			return (char *)run->bind->recv + ref.off;
		default:
			return group->scratch.at + ref.off;
		}
	}
	return group->arena[ref.rank] + ref.off +
	       (ref.slot == OC_SLOT_RECV ? line->recv : line->scratch);
}

/* The offset @rank's table gives for this rank. */
static uint64_t indexed(struct run *run, uint32_t rank)
{
	struct oc_ref ref = oc_ref(OC_SLOT_SCRATCH, rank, run->group->rank * sizeof(uint64_t));
	uint64_t off;

	memcpy(&off, slot_at(run, ref), sizeof(off));
	return off;
}

static int run_copy(struct run *run, const struct oc_step *step)
{
	struct oc_ref src = step->src, dst = step->dst;
	char *to;

	if (!step->len)
		return 0;
	if (step->flags & OC_STEP_SRC_INDEXED)
		src.off = indexed(run, src.rank);
	if (step->flags & OC_STEP_DST_INDEXED)
		dst.off = indexed(run, dst.rank);
	to = slot_at(run, dst);
	if (src.rank != run->group->rank && src.slot == OC_SLOT_SEND)
		return read_send(run, to, src.rank, src.off, step->len, run->bind->stream);
	oc_copy_bytes(to, slot_at(run, src), step->len, run->bind->stream);
	if (src.rank != dst.rank) {
		oc_group_stats.heap_calls++;
		oc_group_stats.heap_bytes += step->len;
	}
	return 0;
}

/* Collects the addresses a CALC folds, if all of them are memory now. */
static bool calc_sources(struct run *run, const struct oc_step *step, const void **src)
{
	struct oc_group *group = run->group;

	for (uint32_t p = 0; p < group->size; p++) {
		struct oc_ep_line *line = oc_group_line(group, p);
		uint32_t flags = line_flags(line);

		if (p == group->rank) {
			src[p] = (const char *)run->bind->send + step->src.off;
			continue;
		}
		if (flags & OC_EP_SEND_CMA ||
		    atomic_load_explicit(&line->ready, memory_order_acquire) <
			    step->src.off + step->len)
			return false;
		src[p] = send_base(run, p, flags) + step->src.off;
	}
	return true;
}

/* An operand of [off, off + len) in memory: where it is, or read to @temp. */
static int calc_operand(struct run *run, uint32_t peer, uint64_t off, size_t len, char *temp,
			const void **src)
{
	uint32_t flags = line_flags(oc_group_line(run->group, peer));
	int err;

	*src = temp;
	if (flags & OC_EP_SEND_CMA)
		return read_send(run, temp, peer, off, len, false);
	err = wait_ready(run, peer, off + len);
	if (!err)
		*src = send_base(run, peer, flags) + off;
	return err;
}

/* Folds chunk by chunk, following what is staged and reading the rest by CMA. */
static int calc_chunked(struct run *run, const struct oc_step *step, void **dst, uint32_t ndst,
			const void **src)
{
	struct oc_group *group = run->group;
	size_t elem = oc_type_size(run->bind->type);
	size_t chunk = CHUNK / elem * elem;
	char *temp = malloc(group->size * chunk);
	int err = 0;

	if (!temp)
		return -ENOMEM;
	for (size_t off = 0; off < step->len; off += chunk) {
		size_t len = step->len - off < chunk ? step->len - off : chunk;

		for (uint32_t p = 0; p < group->size && !err; p++) {
			if (p == group->rank)
				src[p] = (const char *)run->bind->send + step->src.off + off;
			else
				err = calc_operand(run, p, step->src.off + off, len,
						   temp + p * chunk, &src[p]);
		}
		if (err)
			break;
		oc_calc_fold(run->bind->op, run->bind->type, dst, ndst, src, group->size,
			     len / elem, run->bind->stream);
		for (uint32_t d = 0; d < ndst; d++)
			dst[d] = (char *)dst[d] + len;
	}
	free(temp);
	return err;
}

static int run_calc(struct run *run, const struct oc_step *step)
{
	struct oc_group *group = run->group;
	size_t elem = oc_type_size(run->bind->type);
	uint32_t ndst = step->dst.rank == OC_RANK_ALL ? group->size : 1;
	const void *src[OC_MAX_RANKS];
	void *dst[OC_MAX_RANKS];

	if (!step->len)
		return 0;
	for (uint32_t d = 0; d < ndst; d++) {
		struct oc_ref ref = step->dst;

		if (ref.rank == OC_RANK_ALL)
			ref.rank = (uint16_t)d;
		dst[d] = slot_at(run, ref);
	}
	if (!calc_sources(run, step, src))
		return calc_chunked(run, step, dst, ndst, src);
	oc_calc_fold(run->bind->op, run->bind->type, dst, ndst, src, group->size, step->len / elem,
		     run->bind->stream);
	oc_group_stats.heap_calls++;
	oc_group_stats.heap_bytes += step->len * group->size;
	return 0;
}

static bool is_direct(struct run *run, uint32_t peer)
{
	return line_flags(oc_group_line(run->group, peer)) & OC_EP_RECV_HEAP;
}

/* Asked only when every rank is READY; the answer holds for the operation. */
static bool all_direct(struct run *run)
{
	bool direct = true;

	if (run->all_direct < 0) {
		for (uint32_t p = 0; p < run->group->size && direct; p++)
			direct = is_direct(run, p);
		run->all_direct = direct;
	}
	return run->all_direct;
}

static bool applies(struct run *run, const struct oc_step *step)
{
	bool direct;

	if (step->cond == OC_COND_ALWAYS)
		return true;
	direct = step->cond_rank == OC_RANK_ALL ? all_direct(run) : is_direct(run, step->cond_rank);
	return direct == (step->cond == OC_COND_DIRECT);
}

static bool deps_done(const struct run *run, const struct oc_step *step)
{
	for (uint32_t e = 0; e < step->ndeps; e++)
		if (run->group->done[run->plan->edges[step->dep + e]] != 1)
			return false;
	return true;
}

static bool reached(struct run *run, uint32_t peer, uint32_t stage)
{
	if (!oc_group_reached(run->group, peer, stage))
		return false;
	if (gave_up(run, oc_group_line(run->group, peer)))
		run->err = -EPIPE;
	else if (oc_group_line(run->group, peer)->bytes != run->plan->shape.bytes)
		run->err = -EMSGSIZE;
	return true;
}

/* Whether the step is done now. @state keeps how far a SEND or RECV has come:
 * 0 not begun, 2 posted. */
static bool run_step(struct run *run, const struct oc_step *step, uint8_t *state)
{
	if (!applies(run, step))
		return true;
	switch (step->kind) {
	case OC_STEP_COPY:
		run->err = run_copy(run, step);
		return true;
	case OC_STEP_CALC:
		run->err = run_calc(run, step);
		return true;
	case OC_STEP_STAGE:
		if (run->foreign && line_flags(run->line) & OC_EP_SEND_STAGED)
			run->err = stage_send(run);
		return true;
	case OC_STEP_POST:
		oc_group_post(run->group, step->stage);
		return true;
	case OC_STEP_WAIT:
		return reached(run, step->peer, step->stage);
	case OC_STEP_SEND:
		if (*state != 2)
			oc_group_post(run->group, step->stage);
		*state = 2;
		return reached(run, step->peer, step->reply);
	case OC_STEP_RECV:
		if (!reached(run, step->peer, step->stage))
			return false;
		if (!run->err)
			run->err = run_copy(run, step);
		if (!run->err)
			oc_group_post(run->group, step->reply);
		return true;
	}
	return true;
}

/* A turn of waiting for the stage a step wants. */
static int wait_for(struct run *run, const struct oc_step *step)
{
	struct oc_ep_line *line = oc_group_line(run->group, step->peer);
	uint32_t stage = step->kind == OC_STEP_SEND ? step->reply : step->stage;
	uint64_t seen = atomic_load_explicit(&line->word, memory_order_relaxed);

	/* It may have come since the step was looked at, and left. */
	if (seen >= oc_ep_word(run->group->seq, stage))
		return 0;
	return idle(run, step->peer, line, seen);
}

static int run_steps(struct run *run)
{
	struct oc_group *group = run->group;
	const struct oc_plan *plan = run->plan;
	uint8_t *done = group->done;
	uint32_t first = 0;

	memset(done, 0, plan->nsteps);
	while (first < plan->nsteps) {
		uint32_t stuck = plan->nsteps;
		bool moved = false;

		for (uint32_t i = first; i < plan->nsteps; i++) {
			const struct oc_step *step = &plan->steps[i];

			if (done[i] == 1 || !deps_done(run, step))
				continue;
			if (run_step(run, step, &done[i])) {
				done[i] = 1;
				moved = true;
			} else if (stuck == plan->nsteps) {
				stuck = i;
			}
			if (run->err)
				return run->err;
		}
		while (first < plan->nsteps && done[first] == 1)
			first++;
		if (moved) {
			group->idle = 0;
		} else if (stuck < plan->nsteps) {
			int err = wait_for(run, &plan->steps[stuck]);

			if (err)
				return err;
		}
	}
	return 0;
}

int oc_exec_inline(struct oc_group *group, const struct oc_plan *plan, const struct oc_bind *bind)
{
	struct run run = {.group = group, .plan = plan, .bind = bind, .all_direct = -1};
	int err = 0;

	run.line = oc_group_begin(group);
	if (!run.line)
		return -EPIPE;
	if (plan->nsteps > group->done_bytes) {
		uint8_t *done = realloc(group->done, plan->nsteps);

		if (done) {
			group->done = done;
			group->done_bytes = plan->nsteps;
		} else {
			err = -ENOMEM;
		}
	}
	if (!err)
		err = bind_memory(&run);
	if (!err) {
		post_descriptor(&run);
		err = run_steps(&run);
	}
	if (err)
		oc_group_post(group, OC_STAGE_FAILED);
	oc_keep_trim(&group->scratch);
	oc_keep_trim(&group->stage);
	return err;
}

void oc_exec_decline(struct oc_group *group)
{
	if (oc_group_begin(group))
		oc_group_post(group, OC_STAGE_FAILED);
}
