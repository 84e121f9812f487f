// SPDX-License-Identifier: BSD-3-Clause
/*
 * A call is a list of pieces here and one there; cut at the ends of either it is a list of parts,
 * each in one piece on both sides. Those that lie in the peer's arena and in known memory here are
 * copied, runs of others are a system call each, in order. What the system refuses ends it, as it
 * would: with the bytes until there, or with its error if there are none.
 */
#include "answer.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "access/access.h"
#include "access/cma.h"
#include "access/window.h"
#include "base/quiet.h"
#include "base/raw_call.h"
#include "bytes/layout_copy.h"
#include "bytes/store_policy.h"
#include "help.h"
#include "known.h"

#define BATCH	      32 /* parts of a call to the system */
#define PAGE	      ((uintptr_t)4096)
#define MANY_BYTES    (IOV_MAX * sizeof(struct iovec))
#define SIGNALS_BYTES 8 /* as the kernel has them */

/* The kernel's limits, MAX_RW_COUNT (include/linux/fs.h) and IOV_MAX: of longer calls it does a
 * part, or none. */
#define BYTES_MAX ((size_t)INT_MAX & ~(size_t)4095)

/* The end of what every kernel takes for a program's address. Behind it some do: they know. */
#if defined(__aarch64__)
#define ADDRESS_END ((uintptr_t)1 << 48)
#else
#define ADDRESS_END (((uintptr_t)1 << 47) - 4096)
#endif

struct parts {
	struct oc_cursor local;
	struct oc_cursor remote;
	uint64_t seam; /* the peer's memory before it is not shared, and behind it is */
};

struct part {
	struct iovec here;
	struct iovec there; /* in the peer's process; as long */
};

ssize_t oc_procvm_by_system(const struct oc_procvm_call *call)
{
	return oc_cma_call(call->direction, call->pid, call->local, call->nlocal, call->remote,
			   call->nremote, call->flags);
}

static void count(const struct oc_procvm_counts *counts, uint32_t mech, size_t bytes)
{
	uint32_t index = oc_mech_index(mech);

	if (!counts->calls)
		return;
	__atomic_fetch_add(&counts->calls[index], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&counts->bytes[index], bytes, __ATOMIC_RELAXED);
}

ssize_t oc_procvm_leave(const struct oc_procvm_call *call, const struct oc_procvm_counts *counts)
{
	ssize_t done = oc_procvm_by_system(call);

	if (done > 0)
		count(counts, OC_MECH_CMA, (size_t)done);
	return done;
}

static void begin(struct parts *parts, const struct oc_node *node, uint32_t peer,
		  const struct oc_procvm_call *call)
{
	parts->seam = node->ranks[peer].static_base;
	oc_cursor_init(&parts->local, call->local, call->nlocal, 0);
	oc_cursor_init(&parts->remote, call->remote, call->nremote, 0);
}

static bool look(struct parts *parts, struct part *part)
{
	uint64_t before;

	if (!oc_cursor_piece(&parts->local, &part->here) ||
	    !oc_cursor_piece(&parts->remote, &part->there))
		return false;
	if (part->here.iov_len > part->there.iov_len)
		part->here.iov_len = part->there.iov_len;
	before = parts->seam - (uintptr_t)part->there.iov_base;
	if (before && before < part->here.iov_len)
		part->here.iov_len = before;
	part->there.iov_len = part->here.iov_len;
	return true;
}

static void skip(struct parts *parts, size_t bytes)
{
	oc_cursor_skip(&parts->local, bytes);
	oc_cursor_skip(&parts->remote, bytes);
}

/* Then part->there is in the peer's arena, where its static data has other addresses. */
static bool is_ours(const struct oc_node *node, uint32_t peer, struct part *part)
{
	const struct oc_segment_rank *owner = &node->ranks[peer];
	uint64_t size = node->peers[peer].arena_size;
	uint64_t in_static = (uintptr_t)part->there.iov_base - owner->static_base;
	uint64_t off;

	if (in_static < owner->static_size && part->there.iov_len <= owner->static_size - in_static)
		part->there.iov_base =
			(char *)NULL + owner->arena_base + owner->static_off + in_static;
	off = (uintptr_t)part->there.iov_base - owner->arena_base;
	return off < size && part->there.iov_len <= size - off &&
	       oc_procvm_known(part->here.iov_base, part->here.iov_len);
}

/* The sum of a list; more than BYTES_MAX stands for what the kernel does not do whole. */
static size_t sum(const struct iovec *list, unsigned long count)
{
	size_t bytes = 0;

	for (unsigned long i = 0; i < count; i++) {
		if (list[i].iov_len > BYTES_MAX)
			return SIZE_MAX;
		bytes += list[i].iov_len;
	}
	return bytes;
}

static bool overlap(const struct iovec *piece, const struct iovec *list, unsigned long count)
{
	uintptr_t at = (uintptr_t)piece->iov_base, from = (uintptr_t)list;

	return at < from + count * sizeof(*list) && from < at + piece->iov_len;
}

/*
 * What the kernel does otherwise than piece by piece. With an address that no program has it takes
 * none of a list of this process: access_ok(); of the other's it does not ask before it gets there.
 * And it has both lists before it writes into them.
 */
static bool is_special(const struct oc_procvm_call *call)
{
	for (unsigned long i = 0; i < call->nlocal; i++) {
		const struct iovec *piece = &call->local[i];

		if ((uintptr_t)piece->iov_base > ADDRESS_END - piece->iov_len)
			return true;
		if (call->direction == OC_GET && (overlap(piece, call->local, call->nlocal) ||
						  overlap(piece, call->remote, call->nremote)))
			return true;
	}
	return false;
}

/* Whether the page can be read. The kernel reads a set of signals there before it finds that it is
 * to do nothing known with it. */
static bool is_readable(uintptr_t page)
{
	return oc_raw_call(SYS_rt_sigprocmask, -1, (long)page, 0, SIGNALS_BYTES, 0, 0) == -1 &&
	       errno == EINVAL;
}

/* A list that is in no known memory, for MPICH has them in blocks of the C library, is asked of
 * the kernel: by a call that no container refuses, as it may those that are answered here. */
static bool take_list(const struct iovec **list, unsigned long count, struct iovec *few,
		      struct iovec **many)
{
	uintptr_t from = (uintptr_t)*list, end = from + count * sizeof(**list);
	struct iovec *room = few;

	if (!count || oc_procvm_known(*list, count * sizeof(**list)))
		return true;
	if (end < from)
		return false;
	for (uintptr_t page = from & ~(PAGE - 1); page < end; page += PAGE)
		if (!is_readable(page))
			return false;
	if (count > OC_PROCVM_FEW) {
		/* Not by the names by which MPIs watch memory: this is within a call of theirs. */
		room = oc_quiet_mmap(NULL, MANY_BYTES, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (room == MAP_FAILED)
			return false;
		*many = room;
	}
	memcpy(room, *list, count * sizeof(*room));
	*list = room;
	return true;
}

bool oc_procvm_take_lists(struct oc_procvm_call *call, struct oc_procvm_lists *lists)
{
	lists->many[0] = lists->many[1] = NULL;
	return !call->flags && call->nlocal <= IOV_MAX && call->nremote <= IOV_MAX &&
	       take_list(&call->local, call->nlocal, lists->local, &lists->many[0]) &&
	       take_list(&call->remote, call->nremote, lists->remote, &lists->many[1]);
}

void oc_procvm_drop_lists(struct oc_procvm_lists *lists)
{
	for (int i = 0; i < 2; i++)
		if (lists->many[i])
			oc_quiet_munmap(lists->many[i], MANY_BYTES);
}

bool oc_procvm_can_answer(const struct oc_node *node, uint32_t peer,
			  const struct oc_procvm_call *call)
{
	struct parts parts;
	struct part part;

	if (sum(call->local, call->nlocal) > BYTES_MAX ||
	    sum(call->remote, call->nremote) > BYTES_MAX || is_special(call))
		return false;
	for (begin(&parts, node, peer, call); look(&parts, &part); skip(&parts, part.here.iov_len))
		if (is_ours(node, peer, &part))
			return true;
	return false;
}

/* How much of a part was copied: less where the peer's arena cannot be mapped now. */
static size_t copy(struct oc_node *node, const struct oc_target *target,
		   enum oc_direction direction, char *here, struct oc_store_turn *stores)
{
	uint64_t off = (uintptr_t)target->segs->iov_base - node->ranks[target->owner].arena_base;
	size_t done = 0;

	while (done < target->bytes) {
		struct oc_procvm_share share = {
			.peer = target->owner,
			.direction = direction,
			.here = here + done,
			.there_off = off + done,
			.bytes = target->bytes - done,
		};
		struct oc_view view;

		if (!oc_access_at(node, target, direction, done, share.bytes, &view))
			break;
		share.there = view.at;
		if (view.bytes < share.bytes)
			share.bytes = view.bytes;
		oc_procvm_copy_with_help(node, &share, stores);
		oc_access_release(&view);
		done += share.bytes;
	}
	return done;
}

/* Runs of parts that are not for us, or that we could not reach: as the system call. */
static ssize_t leave_to_system(struct oc_node *node, uint32_t peer,
			       const struct oc_procvm_call *call, struct parts *parts, bool all,
			       size_t *asked, const struct oc_procvm_counts *counts)
{
	struct iovec local[BATCH], remote[BATCH];
	struct oc_procvm_call some = *call;
	struct part part;

	some.local = local;
	some.remote = remote;
	some.nlocal = 0;
	*asked = 0;
	while (some.nlocal < BATCH && look(parts, &part) &&
	       ((all && !some.nlocal) || !is_ours(node, peer, &part))) {
		local[some.nlocal] = part.here;
		remote[some.nlocal++] = part.there;
		*asked += part.here.iov_len;
		skip(parts, part.here.iov_len);
	}
	some.nremote = some.nlocal;
	return oc_procvm_leave(&some, counts);
}

/*
 * What has been learned about stores, by direction and by peer, where there are no more than
 * eight. One thread at a time learns; others do meanwhile what is the rule where nothing is known.
 */
static struct {
	_Atomic bool busy;
	struct oc_store_policy_table table;
} learned;

static bool begin_stores(struct oc_store_turn *stores, uint32_t peer, enum oc_direction direction,
			 size_t bytes, size_t stream)
{
	*stores = (struct oc_store_turn){.past = bytes >= stream};
	if (bytes < stream || atomic_exchange_explicit(&learned.busy, true, memory_order_acquire))
		return false;
	oc_store_policy_begin(stores, &learned.table, peer * 2 + (uint32_t)direction, bytes);
	return true;
}

static void end_stores(struct oc_store_turn *stores, bool learning)
{
	if (!learning)
		return;
	oc_store_policy_end(stores);
	atomic_store_explicit(&learned.busy, false, memory_order_release);
}

static ssize_t answer(struct oc_node *node, struct oc_target *target,
		      const struct oc_procvm_call *call, struct oc_store_turn *stores,
		      const struct oc_procvm_counts *counts)
{
	struct parts parts;
	struct part part;
	size_t done = 0;

	for (begin(&parts, node, target->owner, call); look(&parts, &part);) {
		size_t asked, copied = 0;
		bool ours = is_ours(node, target->owner, &part);
		ssize_t got;

		if (ours) {
			target->segs = &part.there;
			target->bytes = part.there.iov_len;
			copied = copy(node, target, call->direction, part.here.iov_base, stores);
		}
		if (copied) {
			count(counts, OC_MECH_HEAP, copied);
			skip(&parts, copied);
			done += copied;
			continue;
		}
		got = leave_to_system(node, target->owner, call, &parts, ours, &asked, counts);
		if (got < 0)
			return done ? (ssize_t)done : got;
		done += (size_t)got;
		if ((size_t)got < asked)
			break;
	}
	return (ssize_t)done;
}

static struct oc_target target_at(uint32_t peer, struct oc_window_use *use)
{
	return (struct oc_target){
		.owner = peer,
		.mech = OC_MECH_HEAP,
		.kept = true,
		.heap = true,
		.nsegs = 1,
		.window = use,
	};
}

ssize_t oc_procvm_answer(struct oc_node *node, uint32_t peer, const struct oc_procvm_call *call,
			 size_t stream, const struct oc_procvm_counts *counts)
{
	size_t bytes = sum(call->local, call->nlocal), there = sum(call->remote, call->nremote);
	struct oc_window_use use;
	struct oc_target target = target_at(peer, &use);
	struct oc_store_turn stores;
	bool learning;
	ssize_t done;
	int said;

	/* The caller's order is that of system calls. */
	atomic_thread_fence(memory_order_seq_cst);
	learning =
		begin_stores(&stores, peer, call->direction, bytes < there ? bytes : there, stream);
	oc_window_begin(&use, node);
	done = answer(node, &target, call, &stores, counts);
	said = errno;
	oc_window_end(&use);
	end_stores(&stores, learning);
	atomic_thread_fence(memory_order_seq_cst);
	errno = said;
	return done;
}

/* From the first byte to the last of what is laid out at @first. */
static struct iovec span(char *first, const struct oc_layout *layout, size_t bytes)
{
	if (!layout)
		return (struct iovec){.iov_base = first, .iov_len = bytes};
	return (struct iovec){.iov_base = oc_layout_at(first, layout->low),
			      .iov_len = (size_t)(layout->high - layout->low)};
}

/* From layout to layout, where all of the peer's can be mapped at once. */
static bool copy_pieces(struct oc_node *node, const struct oc_target *target,
			const struct oc_procvm_between *it, bool stream)
{
	struct oc_place here = {.base = it->here, .layout = it->here_layout};
	struct oc_place there = {.layout = it->there_layout};
	bool get = it->direction == OC_GET;
	struct oc_view view;

	if (!oc_access_at(node, target, it->direction, 0, target->bytes, &view))
		return false;
	if (view.bytes >= target->bytes) {
		there.base =
			it->there_layout ? oc_layout_at(view.at, -it->there_layout->low) : view.at;
		oc_layout_copy(get ? &here : &there, get ? &there : &here, it->bytes, stream);
	}
	oc_access_release(&view);
	return view.bytes >= target->bytes;
}

bool oc_procvm_answer_between(struct oc_node *node, uint32_t peer,
			      const struct oc_procvm_between *it, size_t stream)
{
	struct part part = {
		.here = span(it->here, it->here_layout, it->bytes),
		.there = span((char *)NULL + it->there, it->there_layout, it->bytes),
	};
	struct oc_window_use use;
	struct oc_target target = target_at(peer, &use);
	struct oc_store_turn stores;
	bool learning, whole;

	if (!is_ours(node, peer, &part))
		return false;
	target.segs = &part.there;
	target.bytes = part.there.iov_len;
	atomic_thread_fence(memory_order_seq_cst);
	learning = begin_stores(&stores, peer, it->direction, it->bytes, stream);
	oc_window_begin(&use, node);
	whole = it->here_layout || it->there_layout
			? copy_pieces(node, &target, it, stores.past)
			: copy(node, &target, it->direction, it->here, &stores) == it->bytes;
	oc_window_end(&use);
	end_stores(&stores, learning);
	atomic_thread_fence(memory_order_seq_cst);
	return whole;
}
