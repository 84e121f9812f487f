/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_KNEM_REQUEST_H
#define OCK_KNEM_REQUEST_H

/* Requests of /dev/knem: knem.c takes them in and answers, knem_copy.c makes the copies. */

#include <linux/cpumask.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/wait.h>

#include <knem_io.h>

#include "async.h"
#include "ctx.h"

/* A context: what a descriptor opened for writing has. */
struct ock_knem {
	struct ock_ctx *ctx;
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

/* What is left of a request's flags: forced ones added, ignored and irrelevant ones dropped. */
u32 ock_knem_flags(u32 flags, u32 mask);

/*
 * Handlers: 0 accepted, the argument's out members are valid; else an errno of
 * the core's, which knem.c translates.
 */
typedef int (*ock_knem_handler)(struct ock_knem *knem, union ock_knem_argument *argument);

int ock_knem_copy_whole(struct ock_knem *knem, union ock_knem_argument *argument);
int ock_knem_copy_bounded(struct ock_knem *knem, union ock_knem_argument *argument);
int ock_knem_inline_whole(struct ock_knem *knem, union ock_knem_argument *argument);
int ock_knem_inline_bounded(struct ock_knem *knem, union ock_knem_argument *argument);
int ock_knem_async_recv(struct ock_knem *knem, union ock_knem_argument *argument);
int ock_knem_sync_recv(struct ock_knem *knem, union ock_knem_argument *argument);

#endif
