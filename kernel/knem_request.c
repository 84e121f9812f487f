// SPDX-License-Identifier: GPL-2.0-only
#include "knem_request.h"

#include <linux/compiler.h>
#include <linux/moduleparam.h>

static bool thread = true;
module_param(thread, bool, 0644);
MODULE_PARM_DESC(thread, "Offload to kernel threads when asked to (1)");

static uint forceflags;
module_param(forceflags, uint, 0644);
MODULE_PARM_DESC(forceflags, "KNEM_FLAG_* added to every request (0)");

static uint ignoreflags;
module_param(ignoreflags, uint, 0644);
MODULE_PARM_DESC(ignoreflags, "KNEM_FLAG_* dropped from every request (0)");

struct ock_async *ock_knem_async(struct ock_knem *knem)
{
	/* Pairs with the release in ock_knem_mmap(). */
	return smp_load_acquire(&knem->async);
}

u32 ock_knem_forced(void)
{
	return READ_ONCE(forceflags);
}

u32 ock_knem_ignored(void)
{
	u32 ignored = READ_ONCE(ignoreflags);

	if (!READ_ONCE(thread))
		ignored |= KNEM_FLAG_ANY_THREAD_MASK;
	return ignored;
}

u32 ock_knem_flags(u32 flags, u32 mask)
{
	return (flags | ock_knem_forced()) & ~ock_knem_ignored() & mask;
}
