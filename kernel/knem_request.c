// SPDX-License-Identifier: GPL-2.0-only
/* What the administrator has to say about the flags of requests. */
#include "knem_request.h"

#include <linux/compiler.h>

#include "params.h"

u32 ock_knem_forced(void)
{
	return READ_ONCE(ock_params.forceflags);
}

u32 ock_knem_ignored(void)
{
	u32 ignored = READ_ONCE(ock_params.ignoreflags);

	if (!READ_ONCE(ock_params.thread))
		ignored |= KNEM_FLAG_ANY_THREAD_MASK;
	return ignored;
}

u32 ock_knem_flags(u32 flags, u32 mask)
{
	return (flags | ock_knem_forced()) & ~ock_knem_ignored() & mask;
}
