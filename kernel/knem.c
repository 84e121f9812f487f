// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/knem: the interface of KNEM 1.1 over the core. What it promises is in
 * <knem_io.h>; docs/knem.md says where and why this device differs from KNEM's.
 * Here regions, the status array and errors are translated, in knem_copy.c copies;
 * memory is pinned, found and copied by the core.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "knem.h"

#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <knem_io.h>
#include <onecopy.h>

#include "async.h"
#include "channel.h"
#include "knem_copy.h"
#include "knem_request.h"
#include "knem_stats.h"
#include "owner.h"
#include "params.h"
#include "table.h"
#include "trace.h"

#define OCK_KNEM_SLOTS_MAX (1ULL << 32)

/* What the core says, as KNEM says it. */
static int ock_knem_error(int err)
{
	switch (err) {
	case -ENOENT:
	case -ESTALE:
	case -ERANGE:
	case -ENODEV:
		return -EINVAL;
	case -EDQUOT:
	case -E2BIG:
		return -ENOMEM;
	case -EOVERFLOW:
		return -EFAULT;
	default:
		return err;
	}
}

/* ---- regions ---- */

static int ock_knem_region(struct ock_knem *knem, u64 array, u32 nr, u32 flags, u32 protection,
			   u64 *cookie)
{
	struct ock_vec *vec;
	u32 how = 0;
	int err;

	if (flags & KNEM_FLAG_SINGLEUSE)
		how |= ONECOPY_REGION_SINGLE_USE;
	if (flags & KNEM_FLAG_ANY_USER_ACCESS)
		how |= ONECOPY_REGION_ANY_USER;
	if (protection & PROT_READ)
		how |= ONECOPY_REGION_READ;
	if (protection & PROT_WRITE)
		how |= ONECOPY_REGION_WRITE;
	err = ock_vec_import(u64_to_user_ptr(array), nr, &vec);
	if (err)
		return err;
	err = ock_region_create(knem->ctx.owner, vec, nr, how, cookie, NULL, NULL);
	kvfree(vec);
	if (!err)
		ock_knem_count(OCK_KNEM_CREATED);
	return err;
}

static int ock_knem_create(struct ock_knem *knem, union ock_knem_argument *argument)
{
	struct knem_cmd_create_region *create = &argument->create;

	return ock_knem_region(knem, create->iovec_array, create->iovec_nr,
			       ock_knem_flags(create->flags, KNEM_FLAG_ANY_CREATE_MASK),
			       create->protection, &create->cookie);
}

static int ock_knem_init_send(struct ock_knem *knem, union ock_knem_argument *argument)
{
	struct knem_cmd_init_send_param *send = &argument->init_send;
	u32 flags = ock_knem_flags(send->flags, KNEM_FLAG_ANY_CREATE_MASK);

	return ock_knem_region(knem, send->send_iovec_array, send->send_iovec_nr,
			       flags | KNEM_FLAG_SINGLEUSE, PROT_READ, &send->send_cookie);
}

static int ock_knem_destroy(struct ock_knem *knem, union ock_knem_argument *argument)
{
	int err = ock_region_destroy(knem->ctx.owner, argument->cookie);

	if (!err)
		ock_knem_count(OCK_KNEM_DESTROYED);
	return err;
}

/* Nobody heard of the cookie, so nobody misses it. */
static void ock_knem_uncreate(struct ock_knem *knem, const union ock_knem_argument *argument)
{
	ock_region_destroy(knem->ctx.owner, argument->create.cookie);
}

static void ock_knem_unsend(struct ock_knem *knem, const union ock_knem_argument *argument)
{
	ock_region_destroy(knem->ctx.owner, argument->init_send.send_cookie);
}

/* ---- the rest of the commands ---- */

static int ock_knem_info(struct ock_knem *knem, union ock_knem_argument *argument)
{
	argument->info = (struct knem_cmd_info){
		.abi = KNEM_ABI_VERSION,
		.features = ock_channels_available() ? KNEM_FEATURE_DMA : 0,
		.ignored_flags = ock_knem_ignored(),
		.forced_flags = ock_knem_forced(),
	};
	return 0;
}

static int ock_knem_bind(struct ock_knem *knem, union ock_knem_argument *argument)
{
	const struct knem_cmd_bind_offload *bind = &argument->bind;
	cpumask_var_t cpus;
	int err = 0;

	if (!zalloc_cpumask_var(&cpus, GFP_KERNEL))
		return -ENOMEM;
	switch (bind->flags) {
	case KNEM_BIND_FLAG_CUSTOM:
		if (copy_from_user(cpumask_bits(cpus), u64_to_user_ptr(bind->mask_ptr),
				   min_t(size_t, bind->mask_len, cpumask_size())))
			err = -EFAULT;
		break;
	case KNEM_BIND_FLAG_CURRENT:
		cpumask_copy(cpus, current->cpus_ptr);
		break;
	case KNEM_BIND_FLAG_CURRENT_REVERSED:
		cpumask_andnot(cpus, cpu_possible_mask, current->cpus_ptr);
		break;
	default:
		err = -EINVAL;
	}
	if (err)
		goto out;
	mutex_lock(&knem->ctx.lock);
	if (knem->ctx.async) {
		err = -EBUSY;
	} else {
		cpumask_copy(knem->cpus, cpus);
		knem->bound = true;
	}
	mutex_unlock(&knem->ctx.lock);
out:
	free_cpumask_var(cpus);
	return err;
}

struct ock_knem_command {
	unsigned int number;
	ock_knem_handler handler;
	/* Undoes it, for the answer could not be written; NULL: nothing to undo. */
	void (*undo)(struct ock_knem *knem, const union ock_knem_argument *argument);
	u32 size;
	u32 answer; /* where the out members begin, and their size */
	u32 answer_size;
};

static const struct ock_knem_command ock_knem_commands[] = {
	{
		.number = KNEM_CMD_INLINE_COPY,
		.handler = ock_knem_inline_whole,
		.size = sizeof(struct knem_cmd_inline_copy),
		.answer = offsetof(struct knem_cmd_inline_copy, current_status),
		.answer_size = sizeof(u32),
	},
	{
		.number = KNEM_CMD_CREATE_REGION,
		.handler = ock_knem_create,
		.undo = ock_knem_uncreate,
		.size = sizeof(struct knem_cmd_create_region),
		.answer = offsetof(struct knem_cmd_create_region, cookie),
		.answer_size = sizeof(u64),
	},
	{
		.number = KNEM_CMD_DESTROY_REGION,
		.handler = ock_knem_destroy,
		.size = sizeof(knem_cookie_t),
	},
	{
		.number = KNEM_CMD_COPY,
		.handler = ock_knem_copy_whole,
		.size = sizeof(struct knem_cmd_copy),
		.answer = offsetof(struct knem_cmd_copy, current_status),
		.answer_size = sizeof(u32),
	},
	{
		.number = KNEM_CMD_COPY_BOUNDED,
		.handler = ock_knem_copy_bounded,
		.size = sizeof(struct knem_cmd_copy_bounded),
		.answer = offsetof(struct knem_cmd_copy_bounded, current_status),
		.answer_size = sizeof(u32),
	},
	{
		.number = KNEM_CMD_INLINE_COPY_BOUNDED,
		.handler = ock_knem_inline_bounded,
		.size = sizeof(struct knem_cmd_inline_copy_bounded),
		.answer = offsetof(struct knem_cmd_inline_copy_bounded, current_status),
		.answer_size = sizeof(u32),
	},
	{
		.number = KNEM_CMD_INIT_SEND,
		.handler = ock_knem_init_send,
		.undo = ock_knem_unsend,
		.size = sizeof(struct knem_cmd_init_send_param),
		.answer = offsetof(struct knem_cmd_init_send_param, send_cookie),
		.answer_size = sizeof(u64),
	},
	{
		.number = KNEM_CMD_INIT_ASYNC_RECV,
		.handler = ock_knem_async_recv,
		.size = sizeof(struct knem_cmd_init_async_recv_param),
	},
	{
		.number = KNEM_CMD_SYNC_RECV,
		.handler = ock_knem_sync_recv,
		.size = sizeof(struct knem_cmd_sync_recv_param),
		.answer = offsetof(struct knem_cmd_sync_recv_param, status),
		.answer_size = sizeof(u32),
	},
	{
		.number = KNEM_CMD_GET_INFO,
		.handler = ock_knem_info,
		.size = sizeof(struct knem_cmd_info),
		.answer_size = sizeof(struct knem_cmd_info),
	},
	{
		.number = KNEM_CMD_BIND_OFFLOAD,
		.handler = ock_knem_bind,
		.size = sizeof(struct knem_cmd_bind_offload),
	},
};

static int ock_knem_serve(struct ock_knem *knem, const struct ock_knem_command *command,
			  void __user *user)
{
	union ock_knem_argument argument;
	int err;

	/* The numbers' direction bits are KNEM's, not what is read and written. */
	if (copy_from_user(&argument, user, command->size))
		return -EFAULT;
	err = command->handler(knem, &argument);
	if (err)
		return ock_knem_error(err);
	if (copy_to_user(user + command->answer, (char *)&argument + command->answer,
			 command->answer_size)) {
		if (command->undo)
			command->undo(knem, &argument);
		return -EFAULT;
	}
	return 0;
}

static long ock_knem_ioctl(struct file *file, unsigned int number, unsigned long address)
{
	struct ock_knem *knem = file->private_data;
	int err = -ENOSYS;

	if (!knem)
		return -EBADF;
	for (size_t i = 0; i < ARRAY_SIZE(ock_knem_commands); i++) {
		if (ock_knem_commands[i].number != number)
			continue;
		err = ock_knem_serve(knem, &ock_knem_commands[i], (void __user *)address);
		break;
	}
	trace_onecopy_knem(number, err);
	if (err) {
		ock_knem_count_refusal(err);
		if (READ_ONCE(ock_params.debug))
			pr_info_ratelimited("%s[%d]: request %#x refused: %d\n", current->comm,
					    current->pid, number, err);
	}
	return err;
}

/* ---- the device ---- */

static int ock_knem_open(struct inode *inode, struct file *file)
{
	struct ock_knem *knem;
	int err;

	if (!ock_ctx_allowed())
		return -ENXIO;
	file->private_data = NULL;
	if (!(file->f_mode & FMODE_WRITE))
		return 0;
	knem = kzalloc(sizeof(*knem), GFP_KERNEL_ACCOUNT);
	if (!knem)
		return -ENOMEM;
	if (!zalloc_cpumask_var(&knem->cpus, GFP_KERNEL_ACCOUNT)) {
		err = -ENOMEM;
		goto out_free;
	}
	err = ock_ctx_init(&knem->ctx, file, false);
	if (err)
		goto out_cpus;
	file->private_data = knem;
	return 0;

out_cpus:
	free_cpumask_var(knem->cpus);
out_free:
	kfree(knem);
	return err;
}

static int ock_knem_release(struct inode *inode, struct file *file)
{
	struct ock_knem *knem = file->private_data;

	if (!knem)
		return 0;
	ock_ctx_deinit(&knem->ctx);
	free_cpumask_var(knem->cpus);
	kfree(knem);
	return 0;
}

static int ock_knem_mmap(struct file *file, struct vm_area_struct *vma)
{
	static atomic_t serial = ATOMIC_INIT(0);
	struct ock_knem *knem = file->private_data;
	struct ock_async_config config = {
		.words = OCK_WORDS_STATUS,
		.nr_slots = vma->vm_end - vma->vm_start,
		.ordered = true,
	};
	char name[TASK_COMM_LEN];
	int err;

	if (!knem)
		return -EBADF;
	if (vma->vm_pgoff != KNEM_STATUS_ARRAY_FILE_OFFSET || config.nr_slots > OCK_KNEM_SLOTS_MAX)
		return -EINVAL;
	snprintf(name, sizeof(name), "knem-ctx-%x", atomic_inc_return(&serial));
	config.name = name;
	mutex_lock(&knem->ctx.lock);
	if (knem->bound && READ_ONCE(ock_params.binding))
		config.cpus = knem->cpus;
	err = ock_ctx_setup(&knem->ctx, &config, vma);
	mutex_unlock(&knem->ctx.lock);
	return ock_knem_error(err);
}

static ssize_t ock_knem_read(struct file *file, char __user *to, size_t size, loff_t *position)
{
	struct ock_knem *knem = file->private_data;
	struct ock_async *async;

	if (!knem)
		return ock_knem_stats_read(to, size, position, ock_knem_forced(),
					   ock_knem_ignored());
	async = ock_ctx_async(&knem->ctx);
	return async ? ock_async_read(async, to, size, file->f_flags & O_NONBLOCK) : -EINVAL;
}

/* KNEM 1.1 has nothing left to write: counters were cleared by it once. */
static ssize_t ock_knem_write(struct file *file, const char __user *from, size_t size,
			      loff_t *position)
{
	return capable(CAP_SYS_ADMIN) ? -EBUSY : -EPERM;
}

static __poll_t ock_knem_poll(struct file *file, poll_table *wait)
{
	struct ock_knem *knem = file->private_data;

	return knem ? ock_ctx_poll(&knem->ctx, file, wait) : EPOLLERR;
}

static const struct file_operations ock_knem_fops = {
	.owner = THIS_MODULE,
	.open = ock_knem_open,
	.release = ock_knem_release,
	.unlocked_ioctl = ock_knem_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = ock_knem_mmap,
	.read = ock_knem_read,
	.write = ock_knem_write,
	.poll = ock_knem_poll,
};

static struct miscdevice ock_knem_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = KNEM_DEVICE_NAME,
	.fops = &ock_knem_fops,
};

int ock_knem_init(void)
{
	return ock_params.knem ? misc_register(&ock_knem_device) : 0;
}

void ock_knem_exit(void)
{
	if (ock_params.knem)
		misc_deregister(&ock_knem_device);
}

MODULE_ALIAS("knem");
