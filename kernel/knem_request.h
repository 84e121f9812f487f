/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_KNEM_REQUEST_H
#define OCK_KNEM_REQUEST_H

/* What requests of /dev/knem are about: knem.c takes them in and answers, knem_copy.c makes
 * the copies. */

#include <linux/cpumask.h>
#include <linux/types.h>

#include <knem_io.h>

#include "ctx.h"

/* A context: what a descriptor opened for writing has. */
struct ock_knem {
	struct ock_ctx ctx;
	/* Under ctx.lock: where threads are to run, if they are @bound. */
	bool bound;
	cpumask_var_t cpus;
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

/* Flags that the administrator adds to every request, and drops. */
u32 ock_knem_forced(void);
u32 ock_knem_ignored(void);

/* What is left of a request's flags: forced ones added, ignored and irrelevant ones dropped. */
u32 ock_knem_flags(u32 flags, u32 mask);

#endif
