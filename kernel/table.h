/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_TABLE_H
#define OCK_TABLE_H

/* Regions by their cookies: declared, found and held, destroyed. table.c tells their life. */

#include "owner.h"
#include "pin.h"
#include "region.h"

/* A user's hold on a region: keeps the pages. On the stack or in a copy. */
struct ock_ref {
	struct ock_region *region; /* NULL: none */
	struct ock_hot *hot;	   /* through which count; NULL: users */
	bool paused;		   /* keeps the struct, not the pages */
};

int ock_region_init(void);
void ock_region_exit(void);

/*
 * Declares the current process's memory. @flags: ONECOPY_REGION_*. Owned by
 * @owner; *cookie is not 0. Errors as in ONECOPY_IOC_REGION_CREATE. *slot and *generation (may both
 * be NULL without TRACK) as there.
 */
int ock_region_create(struct ock_owner *owner, const struct ock_vec *vec, u32 nr, u32 flags,
		      u64 *cookie, u32 *slot, u64 *generation);

/* -ENOENT unless @owner owns such a region. Mappings are revoked on return. */
int ock_region_destroy(struct ock_owner *owner, u64 cookie);

/* Destroys all regions of @owner, revoking their mappings, but for those that LINGER. Copies in
 * flight keep their pages until done. May sleep. */
void ock_regions_close(struct ock_owner *owner);

/*
 * Finds the region and holds its pages. @need: ONECOPY_REGION_READ and/or WRITE.
 * Checks in this order: -ENOENT, -EPERM (by the current real uid), -EACCES, -ESTALE. A SINGLE_USE
 * region is used up by success and by nothing else. Lock-free for readers (single use: the owner's
 * lock). Does not sleep on the common path, may on others.
 */
int ock_region_get(u64 cookie, u32 need, struct ock_ref *ref);

/* As ock_region_get(), but SINGLE_USE regions are not used up. */
int ock_region_look(u64 cookie, u32 need, struct ock_ref *ref);

/* Gives it back; the last one unpins. May sleep. An empty @ref is fine. */
void ock_region_put(struct ock_ref *ref);

/*
 * For who is going to wait, perhaps for long: keeps the region but not its pages,
 * which may be given back meanwhile. To be followed by ock_region_resume(), whose 0
 * says that the pages are there, the same ones; else @ref is empty and it says why not.
 * Between the two @ref may be given back, and is not to be used otherwise. A SINGLE_USE
 * region stays held: none but this user has it any more. So does what was not paused at
 * all. May sleep. An empty @ref is fine.
 */
void ock_region_pause(struct ock_ref *ref);
int ock_region_resume(struct ock_ref *ref);

#endif
