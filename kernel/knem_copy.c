// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies of /dev/knem.
 *
 * Three outcomes are told apart. A request that is refused gives an errno, and
 * changes nothing but single-use regions that it has found. An accepted copy that
 * fails gives 0 and KNEM_STATUS_FAILED. One that is yet to end gives 0 and
 * KNEM_STATUS_PENDING. Local memory that has to be pinned and cannot be is
 * refused; memory that faults while it is copied fails the copy.
 */
#include "knem_copy.h"

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <onecopy.h>

#include "async.h"
#include "channel.h"
#include "copy.h"
#include "dma.h"
#include "knem_stats.h"
#include "owner.h"
#include "params.h"

/* What a copy command asks for, whichever it is. */
struct ock_knem_request {
	u32 flags;
	u32 slot;
	bool report; /* in the slot, whatever the flags */
	bool within; /* ends within the call, whatever the flags */
	struct ock_copy copy;
	struct ock_vec *vec; /* local memory, not pinned yet */
	u32 nr;
	bool write; /* from local memory */
};

/* Whether the flags make sense here and now; before any cookie is looked up. */
static int ock_knem_check(struct ock_knem *knem, struct ock_knem_request *request)
{
	u32 *flags = &request->flags;
	struct ock_async *async = ock_ctx_async(&knem->ctx);
	int err;

	ock_knem_count(OCK_KNEM_SUBMITTED);
	*flags = ock_knem_flags(*flags, KNEM_FLAG_ANY_COPY_MASK);
	if (request->within)
		*flags &= ~KNEM_FLAG_ANY_ASYNC_MASK;
	if (!OCK_DMA_SUPPORTED)
		*flags &= ~KNEM_FLAG_DMA;
	if (*flags & KNEM_FLAG_DMA) {
		err = ock_channels_probe();
		if (err)
			return err == -ENODEV ? -EINVAL : err;
	}
	if ((*flags & KNEM_FLAG_NOTIFY_FD) &&
	    (!(*flags & KNEM_FLAG_ANY_THREAD_MASK) || (*flags & KNEM_FLAG_ASYNCDMACOMPLETE)))
		return -EINVAL;
	if (*flags & KNEM_FLAG_ANY_ASYNC_MASK)
		request->report = true;
	if (request->report && (!async || request->slot >= ock_async_slots(async)))
		return -EINVAL;
	return 0;
}

/* How to submit it; 0: not at all, it ends within the call. */
static u32 ock_knem_how(struct ock_knem *knem, const struct ock_knem_request *request)
{
	u32 flags = request->flags;
	u32 how;

	if (READ_ONCE(ock_params.sync))
		return 0;
	if (flags & KNEM_FLAG_DMA) {
		if (flags & KNEM_FLAG_ANY_THREAD_MASK)
			how = OCK_SUBMIT_THREAD | OCK_SUBMIT_DMA;
		else if (flags & KNEM_FLAG_ASYNCDMACOMPLETE)
			how = OCK_SUBMIT_DMA;
		else
			return 0;
	} else if (flags & KNEM_FLAG_MEMCPYTHREAD) {
		how = OCK_SUBMIT_THREAD;
	} else {
		return 0;
	}
	return how;
}

static int ock_knem_local(struct ock_knem *knem, struct ock_knem_request *request, bool pin)
{
	struct ock_end *end = request->write ? &request->copy.source : &request->copy.destination;

	if (!pin)
		return ock_end_local(end, request->vec, request->nr);
	ock_knem_count(OCK_KNEM_PINLOCAL);
	return ock_copy_pin(&request->copy, end, request->vec, request->nr, !request->write,
			    knem->ctx.owner);
}

/* In the caller. The errors that are the request's, not the copy's, are returned. */
static int ock_knem_run(struct ock_knem *knem, struct ock_knem_request *request, int broken,
			u32 *status)
{
	u32 event = request->flags & KNEM_FLAG_NOTIFY_FD ? OCK_SUBMIT_EVENT : 0;
	struct ock_job *job = NULL;
	int err = broken;
	u64 copied = 0;

	if (request->report) {
		int refused;

		ock_copy_pause(&request->copy, knem->ctx.owner);
		refused = ock_async_begin(ock_ctx_async(&knem->ctx), request->slot, event, &job);
		if (refused)
			return refused;
		err = ock_copy_resume(&request->copy) ?: broken;
	}
	if (!err && (request->flags & KNEM_FLAG_DMA)) {
		struct ock_channel *channel = ock_channels_take(&knem->ctx.dma);

		/* The last one may have broken down since it was looked for. */
		err = PTR_ERR_OR_ZERO(channel) ?: ock_dma_run(channel, &request->copy, &copied);
		ock_knem_count(OCK_KNEM_DMA);
	} else if (!err) {
		err = ock_copy_run(&request->copy, &copied);
	}
	if (job)
		ock_async_end(job, err, copied);
	if (err)
		ock_knem_count(OCK_KNEM_FAILED);
	*status = err ? KNEM_STATUS_FAILED : KNEM_STATUS_SUCCESS;
	return 0;
}

/* The regions of @request->copy are there; local memory is yet to come. */
static int ock_knem_go(struct ock_knem *knem, struct ock_knem_request *request, u32 *status)
{
	struct ock_async *async = ock_ctx_async(&knem->ctx);
	u32 how = ock_knem_how(knem, request);
	int broken = 0;
	int err;

	if (request->vec) {
		bool pin = how || (request->flags & (KNEM_FLAG_DMA | KNEM_FLAG_PINLOCAL)) ||
			   READ_ONCE(ock_params.pinlocal) ||
			   (request->write && READ_ONCE(ock_params.pinlocalread));

		err = ock_knem_local(knem, request, pin);
		if (err && pin)
			return err;
		/* As if it had faulted at the first byte. */
		broken = err;
	}
	/* With nothing to move, and nothing before it, there is nothing to wait for. */
	if (how && !ock_copy_bytes(&request->copy) && ock_async_idle(async))
		how = 0;
	if (!how)
		return ock_knem_run(knem, request, broken, status);

	ock_knem_count(how & OCK_SUBMIT_DMA ? OCK_KNEM_DMA : OCK_KNEM_THREAD);
	if (request->flags & KNEM_FLAG_NOTIFY_FD)
		how |= OCK_SUBMIT_EVENT;
	*status = KNEM_STATUS_PENDING;
	return ock_async_submit(async, &request->copy, request->slot, how);
}

static int ock_knem_copy(struct ock_knem *knem, u64 source, u64 source_offset, u64 destination,
			 u64 destination_offset, u64 length, u32 flags, u32 slot, u32 *status)
{
	struct ock_knem_request request = {.flags = flags, .slot = slot};
	int err;

	err = ock_knem_check(knem, &request);
	if (err)
		return err;
	ock_copy_init(&request.copy);
	request.copy.length = length;
	err = ock_end_region(&request.copy.source, source, source_offset, ONECOPY_REGION_READ);
	if (err)
		goto out;
	err = ock_end_region(&request.copy.destination, destination, destination_offset,
			     ONECOPY_REGION_WRITE);
	if (err)
		goto out;
	err = ock_knem_go(knem, &request, status);
out:
	ock_copy_deinit(&request.copy);
	return err;
}

/* @request: all but the copy and the vec. */
static int ock_knem_inline(struct ock_knem *knem, struct ock_knem_request *request, u64 array,
			   u64 cookie, u64 offset, u64 length, u32 *status)
{
	struct ock_copy *copy = &request->copy;
	int err;

	err = ock_knem_check(knem, request);
	if (err)
		return err;
	err = ock_vec_import(u64_to_user_ptr(array), request->nr, &request->vec);
	if (err)
		return err;
	ock_copy_init(copy);
	copy->length = length;
	if (request->write)
		err = ock_end_region(&copy->destination, cookie, offset, ONECOPY_REGION_WRITE);
	else
		err = ock_end_region(&copy->source, cookie, offset, ONECOPY_REGION_READ);
	if (!err)
		err = ock_knem_go(knem, request, status);
	ock_copy_deinit(copy);
	kvfree(request->vec);
	return err;
}

int ock_knem_copy_whole(struct ock_knem *knem, union ock_knem_argument *argument)
{
	struct knem_cmd_copy *copy = &argument->copy;

	return ock_knem_copy(knem, copy->src_cookie, copy->src_offset, copy->dst_cookie,
			     copy->dst_offset, U64_MAX, copy->flags, copy->async_status_index,
			     &copy->current_status);
}

int ock_knem_copy_bounded(struct ock_knem *knem, union ock_knem_argument *argument)
{
	struct knem_cmd_copy_bounded *copy = &argument->copy_bounded;

	return ock_knem_copy(knem, copy->src_cookie, copy->src_offset, copy->dst_cookie,
			     copy->dst_offset, copy->length, copy->flags, copy->async_status_index,
			     &copy->current_status);
}

int ock_knem_inline_whole(struct ock_knem *knem, union ock_knem_argument *argument)
{
	struct knem_cmd_inline_copy *copy = &argument->inline_copy;
	struct ock_knem_request request = {
		.flags = copy->flags,
		.slot = copy->async_status_index,
		.nr = copy->local_iovec_nr,
		.write = copy->write,
	};

	return ock_knem_inline(knem, &request, copy->local_iovec_array, copy->remote_cookie,
			       copy->remote_offset, U64_MAX, &copy->current_status);
}

int ock_knem_inline_bounded(struct ock_knem *knem, union ock_knem_argument *argument)
{
	struct knem_cmd_inline_copy_bounded *copy = &argument->inline_copy_bounded;
	struct ock_knem_request request = {
		.flags = copy->flags,
		.slot = copy->async_status_index,
		.nr = copy->local_iovec_nr,
		.write = copy->write,
	};

	return ock_knem_inline(knem, &request, copy->local_iovec_array, copy->remote_cookie,
			       copy->remote_offset, copy->length, &copy->current_status);
}

int ock_knem_async_recv(struct ock_knem *knem, union ock_knem_argument *argument)
{
	struct knem_cmd_init_async_recv_param *recv = &argument->async_recv;
	struct ock_knem_request request = {
		.flags = recv->flags,
		.slot = recv->status_index,
		.report = true,
		.nr = recv->recv_iovec_nr,
	};
	u32 status;

	return ock_knem_inline(knem, &request, recv->recv_iovec_array, recv->send_cookie, 0,
			       U64_MAX, &status);
}

int ock_knem_sync_recv(struct ock_knem *knem, union ock_knem_argument *argument)
{
	struct knem_cmd_sync_recv_param *recv = &argument->sync_recv;
	struct ock_knem_request request = {
		.flags = recv->flags,
		.within = true,
		.nr = recv->recv_iovec_nr,
	};

	return ock_knem_inline(knem, &request, recv->recv_iovec_array, recv->send_cookie, 0,
			       U64_MAX, &recv->status);
}
