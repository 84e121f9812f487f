/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_KNEM_REQUEST_H
#define OCK_KNEM_REQUEST_H

/* What requests of /dev/knem are about: knem.c takes them in and answers, knem_copy.c makes
 * the copies. */

#include <linux/cpumask.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/wait.h>

#include <knem_io.h>

#include "async.h"
#include "owner.h"

/* A context: what a descriptor opened for writing has. */
struct ock_knem {
	struct ock_owner *owner;
	struct ock_async *async; /* set once, read without lock */
	struct mutex lock;	 /* to set it, and of what follows */
	bool bound;
	bool dma; /* holds channels; by dma.h alone */
	cpumask_var_t cpus;
	wait_queue_head_t wait; /* for events, also before there is @async */
};

/* As from and to user space. */
union ock_knem_argument {
	struct knem_cmd_info info;
	struct knem_cmd_bind_offload bind;
	struct knem_cmd_create_region create;
	struct knem_cmd_init_send_param init_send;
	knem_cookie_t cookie;
	struct knem_cmd_copy copy;
	struct knem_cmd_copy_bounded copy_bounded;
	struct knem_cmd_inline_copy inline_copy;
	struct knem_cmd_inline_copy_bounded inline_copy_bounded;
	struct knem_cmd_init_async_recv_param async_recv;
	struct knem_cmd_sync_recv_param sync_recv;
};

/* The status array and its copies; NULL before mmap(). */
struct ock_async *ock_knem_async(struct ock_knem *knem);

/* Flags that the administrator adds to every request, and drops. */
u32 ock_knem_forced(void);
u32 ock_knem_ignored(void);

/* What is left of a request's flags: forced ones added, ignored and irrelevant ones dropped. */
u32 ock_knem_flags(u32 flags, u32 mask);

#endif
