// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/onecopy: from the ABI to calls of the core, and nothing else. Each
 * handler checks, acts, answers, and undoes what nobody can hear of.
 */
#include "file.h"

#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <onecopy.h>

#include "async.h"
#include "channel.h"
#include "compat.h"
#include "copy.h"
#include "ctx.h"
#include "map.h"
#include "notify.h"
#include "owner.h"
#include "stats.h"
#include "table.h"
#include "ticket.h"

#define OCK_SLOTS_MAX 65536u

#define OCK_REGION_FLAGS                                                                           \
	(ONECOPY_REGION_READ | ONECOPY_REGION_WRITE | ONECOPY_REGION_ANY_USER |                    \
	 ONECOPY_REGION_SINGLE_USE | ONECOPY_REGION_TRACK | ONECOPY_REGION_WHOLE_PAGES |           \
	 ONECOPY_REGION_LINGER)
#define OCK_COPY_FLAGS (ONECOPY_COPY_ASYNC | ONECOPY_COPY_DMA | ONECOPY_COPY_EVENT)
#define OCK_MAP_FLAGS  (ONECOPY_MAP_READ | ONECOPY_MAP_WRITE)

struct ock_file {
	struct ock_ctx ctx;
	struct ock_tickets tickets;
};

/* One request: the caller's struct, and our copy of what we know of it. */
struct ock_call {
	struct ock_file *file;
	void __user *user;
	u32 size; /* bytes that both sides know */
	union {
		struct onecopy_info info;
		struct onecopy_region_create create;
		struct onecopy_region_destroy destroy;
		struct onecopy_region_info region;
		struct onecopy_copy copy;
		struct onecopy_map map;
		struct onecopy_async_setup setup;
		struct onecopy_cancel cancel;
	} argument;
};

static int ock_call_answer(struct ock_call *call)
{
	return copy_to_user(call->user, &call->argument, call->size) ? -EFAULT : 0;
}

static int ock_file_info(struct ock_call *call)
{
	const struct ock_owner *owner = call->file->ctx.owner;
	struct onecopy_info *info = &call->argument.info;

	if (info->flags || info->reserved)
		return -EINVAL;
	info->abi = ONECOPY_ABI;
	info->page_size = PAGE_SIZE;
	info->features = ONECOPY_FEATURE_ASYNC;
	if (ock_map_allowed())
		info->features |= ONECOPY_FEATURE_MAP;
	if (ock_map_allowed() && OCK_HUGE_MAP)
		info->features |= ONECOPY_FEATURE_HUGE_MAP;
	if (OCK_NOTIFY_SUPPORTED)
		info->features |= ONECOPY_FEATURE_TRACK;
	if (ock_channels_available())
		info->features |= ONECOPY_FEATURE_DMA;
	info->max_segments = OCK_SEGMENTS_MAX;
	info->max_slots = OCK_SLOTS_MAX;
	info->generation_slots = OCK_GENERATION_SLOTS;
	info->pinned_bytes = ock_user_pages(owner->limits.user) << PAGE_SHIFT;
	info->limit_bytes = owner->limits.of_user[OCK_PAGES] << PAGE_SHIFT;
	return ock_call_answer(call);
}

static int ock_file_create(struct ock_call *call)
{
	struct onecopy_region_create *create = &call->argument.create;
	struct ock_owner *owner = call->file->ctx.owner;
	struct ock_vec *vec;
	u32 slot = 0;
	u64 generation = 0;
	int err;

	if (create->flags & ~OCK_REGION_FLAGS || create->reserved || create->reserved2)
		return -EINVAL;
	/* Tracking is for regions that are used again. */
	if (create->flags & ONECOPY_REGION_TRACK && create->flags & ONECOPY_REGION_SINGLE_USE)
		return -EINVAL;
	err = ock_vec_import(u64_to_user_ptr(create->segments), create->nr_segments, &vec);
	if (err)
		return err;
	err = ock_region_create(owner, vec, create->nr_segments, create->flags, &create->cookie,
				&slot, &generation);
	kvfree(vec);
	if (err)
		return err;
	create->generation_slot = slot;
	create->generation = generation;
	err = ock_call_answer(call);
	if (err)
		ock_region_destroy(owner, create->cookie);
	return err;
}

static int ock_file_destroy(struct ock_call *call)
{
	if (call->argument.destroy.flags)
		return -EINVAL;
	return ock_region_destroy(call->file->ctx.owner, call->argument.destroy.cookie);
}

static int ock_file_region(struct ock_call *call)
{
	struct onecopy_region_info *info = &call->argument.region;
	struct ock_ref ref;
	int err;

	if (info->flags)
		return -EINVAL;
	err = ock_region_look(info->cookie, 0, &ref);
	if (err)
		return err;
	info->length = ref.region->pages.length;
	info->region_flags = ref.region->flags;
	info->nr_segments = ref.region->pages.nr_segments;
	info->nr_pages = ref.region->pages.nr_pages;
	info->nr_runs = ref.region->pages.nr_runs;
	ock_region_put(&ref);
	return ock_call_answer(call);
}

static int ock_copy_check(const struct onecopy_copy *copy)
{
	if (copy->flags & ~OCK_COPY_FLAGS)
		return -EINVAL;
	if (copy->flags & (ONECOPY_COPY_DMA | ONECOPY_COPY_EVENT) &&
	    !(copy->flags & ONECOPY_COPY_ASYNC))
		return -EINVAL;
	if (!(copy->flags & ONECOPY_COPY_ASYNC) && copy->slot)
		return -EINVAL;
	if (!copy->source && !copy->destination)
		return -EINVAL;
	if (!copy->source && copy->source_offset)
		return -EINVAL;
	if (!copy->destination && copy->destination_offset)
		return -EINVAL;
	if (copy->source && copy->destination && (copy->local || copy->nr_local))
		return -EINVAL;
	return 0;
}

static int ock_end_open(struct ock_copy *work, struct ock_end *end, const struct ock_call *call,
			u64 cookie, u64 offset, const struct ock_vec *vec, u32 need)
{
	const struct onecopy_copy *copy = &call->argument.copy;

	if (cookie)
		return ock_end_region(end, cookie, offset, need);
	if (copy->flags & ONECOPY_COPY_ASYNC)
		return ock_copy_pin(work, end, vec, copy->nr_local, need == ONECOPY_REGION_WRITE,
				    call->file->ctx.owner);
	return ock_end_local(end, vec, copy->nr_local);
}

static int ock_file_submit(struct ock_call *call, struct ock_copy *work)
{
	const struct onecopy_copy *copy = &call->argument.copy;
	struct ock_async *async = ock_ctx_async(&call->file->ctx);
	u32 how = OCK_SUBMIT_THREAD;

	if (copy->flags & ONECOPY_COPY_DMA)
		how = OCK_SUBMIT_DMA;
	if (copy->flags & ONECOPY_COPY_EVENT)
		how |= OCK_SUBMIT_EVENT;
	return ock_async_submit(async, work, copy->slot, how);
}

static int ock_file_copy(struct ock_call *call)
{
	struct onecopy_copy *copy = &call->argument.copy;
	struct ock_copy work;
	struct ock_vec *vec;
	bool answer = false;
	int err;

	err = ock_copy_check(copy);
	if (err)
		return err;
	if (copy->flags & ONECOPY_COPY_ASYNC && !ock_ctx_async(&call->file->ctx))
		return -ENXIO;
	err = ock_vec_import(u64_to_user_ptr(copy->local), copy->nr_local, &vec);
	if (err)
		return err;

	ock_copy_init(&work);
	work.length = copy->length;
	err = ock_end_open(&work, &work.source, call, copy->source, copy->source_offset, vec,
			   ONECOPY_REGION_READ);
	if (err)
		goto out;
	err = ock_end_open(&work, &work.destination, call, copy->destination,
			   copy->destination_offset, vec, ONECOPY_REGION_WRITE);
	if (err)
		goto out;
	if (copy->flags & ONECOPY_COPY_ASYNC) {
		err = ock_file_submit(call, &work);
		goto out;
	}
	err = ock_copy_run(&work, &copy->copied);
	answer = !err || err == -EFAULT;
out:
	ock_copy_deinit(&work);
	kvfree(vec);
	/* Only now: the caller's memory may have to be waited for. */
	if (answer && ock_call_answer(call))
		err = -EFAULT;
	return err;
}

static int ock_file_map(struct ock_call *call)
{
	struct ock_tickets *tickets = &call->file->tickets;
	struct onecopy_map *map = &call->argument.map;
	struct ock_ticket_answer answer;
	int err;

	if (map->flags & ~OCK_MAP_FLAGS || !(map->flags & ONECOPY_MAP_READ))
		return -EINVAL;
	err = ock_ticket_ask(tickets, map->cookie, map->offset, map->length,
			     map->flags & ONECOPY_MAP_WRITE, &answer);
	if (err)
		return err;
	map->map_offset = answer.map_offset;
	map->map_length = answer.map_length;
	map->skip = answer.skip;
	map->align = answer.align;
	map->align_offset = answer.align_offset;
	err = ock_call_answer(call);
	if (err)
		ock_ticket_forget(tickets, answer.map_offset);
	return err;
}

static int ock_file_setup(struct ock_call *call)
{
	const struct onecopy_async_setup *setup = &call->argument.setup;
	struct ock_ctx *ctx = &call->file->ctx;
	struct ock_async_config config = {
		.words = OCK_WORDS_COMPLETION,
		.nr_slots = setup->nr_slots,
		.name = "onecopy",
	};
	int err;

	if (setup->flags || !setup->nr_slots)
		return -EINVAL;
	if (setup->nr_slots > OCK_SLOTS_MAX)
		return -ERANGE;
	if (setup->eventfd != -1) {
		config.eventfd = eventfd_ctx_fdget(setup->eventfd);
		if (IS_ERR(config.eventfd))
			return -EBADF;
	}
	mutex_lock(&ctx->lock);
	err = ock_ctx_setup(ctx, &config, NULL);
	mutex_unlock(&ctx->lock);
	if (!err)
		ock_async_prepare(ock_ctx_async(ctx));
	else if (config.eventfd)
		eventfd_ctx_put(config.eventfd);
	return err;
}

static int ock_file_cancel(struct ock_call *call)
{
	struct ock_async *async = ock_ctx_async(&call->file->ctx);

	if (call->argument.cancel.flags || call->argument.cancel.reserved)
		return -EINVAL;
	return async ? ock_async_cancel(async, call->argument.cancel.slot) : -ENXIO;
}

struct ock_request {
	u32 min; /* size in the first version of the ABI */
	u32 size;
	int (*handle)(struct ock_call *call);
};

static const struct ock_request requests[] = {
	[_IOC_NR(ONECOPY_IOC_INFO)] = {56, sizeof(struct onecopy_info), ock_file_info},
	[_IOC_NR(ONECOPY_IOC_REGION_CREATE)] = {48, sizeof(struct onecopy_region_create),
						ock_file_create},
	[_IOC_NR(ONECOPY_IOC_REGION_DESTROY)] = {16, sizeof(struct onecopy_region_destroy),
						 ock_file_destroy},
	[_IOC_NR(ONECOPY_IOC_REGION_INFO)] = {48, sizeof(struct onecopy_region_info),
					      ock_file_region},
	[_IOC_NR(ONECOPY_IOC_COPY)] = {72, sizeof(struct onecopy_copy), ock_file_copy},
	[_IOC_NR(ONECOPY_IOC_MAP)] = {72, sizeof(struct onecopy_map), ock_file_map},
	[_IOC_NR(ONECOPY_IOC_ASYNC_SETUP)] = {16, sizeof(struct onecopy_async_setup),
					      ock_file_setup},
	[_IOC_NR(ONECOPY_IOC_CANCEL)] = {16, sizeof(struct onecopy_cancel), ock_file_cancel},
};

static long ock_file_ioctl(struct file *filp, unsigned int command, unsigned long argument)
{
	struct ock_call call = {
		.file = filp->private_data,
		.user = (void __user *)argument,
	};
	const struct ock_request *request;
	unsigned int nr = _IOC_NR(command);
	u32 size;
	int err;

	if (command != _IO(ONECOPY_IOC_MAGIC, nr) || nr >= ARRAY_SIZE(requests))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(requests));
	request = &requests[nr];
	if (!request->handle)
		return -ENOTTY;
	if (!call.file)
		return -EBADF;
	if (get_user(size, (u32 __user *)call.user))
		return -EFAULT;
	if (size < request->min)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(&call.argument, request->size, call.user, size);
	if (err)
		return err;
	call.size = min(size, request->size);
	return request->handle(&call);
}

static int ock_file_open(struct inode *inode, struct file *filp)
{
	struct ock_file *file;
	int err;

	if (!ock_ctx_allowed())
		return -ENXIO;
	/* Without both directions there is nothing to do; see ock_file_ioctl(). */
	filp->private_data = NULL;
	if ((filp->f_mode & (FMODE_READ | FMODE_WRITE)) != (FMODE_READ | FMODE_WRITE))
		return 0;
	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return -ENOMEM;
	err = ock_ctx_init(&file->ctx, filp, true);
	if (err) {
		kfree(file);
		return err;
	}
	ock_tickets_init(&file->tickets);
	ock_map_open(filp);
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

static int ock_file_release(struct inode *inode, struct file *filp)
{
	struct ock_file *file = filp->private_data;

	if (!file)
		return 0;
	ock_tickets_deinit(&file->tickets);
	ock_ctx_deinit(&file->ctx);
	kfree(file);
	return 0;
}

/* Part of somebody's region. */
static int ock_file_mmap_region(struct ock_file *file, struct vm_area_struct *vma, u64 offset)
{
	struct ock_ticket ticket;
	struct ock_ref ref;
	int err;

	err = ock_ticket_redeem(&file->tickets, offset, &ticket, &ref);
	if (err)
		return err;
	err = ock_map_region(ref.region, ticket.page, ticket.nr, ticket.write, vma);
	ock_region_put(&ref);
	return err;
}

static int ock_file_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct ock_file *file = filp->private_data;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	struct ock_async *async;

	if (!file)
		return -EBADF;
	if (offset >= OCK_TICKET_OFFSET)
		return ock_file_mmap_region(file, vma, offset);
	if (offset == ONECOPY_MMAP_GENERATIONS)
		return ock_generations_mmap(&file->ctx.owner->generations, vma);
	if (offset != ONECOPY_MMAP_COMPLETIONS)
		return -EINVAL;
	async = ock_ctx_async(&file->ctx);
	return async ? ock_async_mmap(async, vma) : -ENXIO;
}

static __poll_t ock_file_poll(struct file *filp, poll_table *wait)
{
	struct ock_file *file = filp->private_data;

	return file ? ock_ctx_poll(&file->ctx, filp, wait) : EPOLLERR;
}

static ssize_t ock_file_read(struct file *filp, char __user *to, size_t size, loff_t *position)
{
	struct ock_file *file = filp->private_data;
	struct ock_async *async;

	if (!file)
		return -EBADF;
	async = ock_ctx_async(&file->ctx);
	return async ? ock_async_read(async, to, size, filp->f_flags & O_NONBLOCK) : -ENXIO;
}

static const struct file_operations file_ops = {
	.owner = THIS_MODULE,
	.open = ock_file_open,
	.release = ock_file_release,
	.unlocked_ioctl = ock_file_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = ock_file_mmap,
	.poll = ock_file_poll,
	.read = ock_file_read,
	.llseek = noop_llseek,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "onecopy",
	.fops = &file_ops,
	.mode = 0660,
};

int ock_file_init(void)
{
	return misc_register(&device);
}

void ock_file_exit(void)
{
	misc_deregister(&device);
}
