/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_LIMIT_H
#define OCK_LIMIT_H

/*
 * What a user may hold through the module. Pages of /dev/onecopy count against
 * the process's RLIMIT_MEMLOCK (mm->pinned_vm, as for InfiniBand: no lock) and
 * against a limit per user; those of /dev/knem against the latter only.
 */

#include <linux/mm_types.h>
#include <linux/types.h>
#include <linux/uidgid.h>

/* All that one user holds, through whichever file. */
struct ock_user;

/* How pins of a file are counted. */
struct ock_limits {
	struct ock_user *user;
	u64 max_pages; /* 0: no limit per user */
	u32 max_regions;
	u32 max_threads;
	bool memlock; /* charge RLIMIT_MEMLOCK of the current process */
};

/* What one pin was charged with. */
struct ock_charge {
	struct ock_user *user;
	struct mm_struct *mm; /* NULL: memlock not charged */
	u64 pages;
};

/* Of the user, made at need. NULL: no memory. */
struct ock_user *ock_user_get(kuid_t uid);
void ock_user_put(struct ock_user *user);

u64 ock_user_pages(const struct ock_user *user);

/* -EDQUOT beyond max_regions. */
int ock_user_region_take(const struct ock_limits *limits);
void ock_user_region_give(struct ock_user *user);

/* Kernel threads. -EDQUOT beyond max_threads. */
int ock_user_threads_take(const struct ock_limits *limits, u32 nr);
void ock_user_threads_give(struct ock_user *user, u32 nr);

/* -ENOMEM beyond RLIMIT_MEMLOCK, -EDQUOT beyond max_pages. */
int ock_charge_take(struct ock_charge *charge, const struct ock_limits *limits, u64 pages);
void ock_charge_give(struct ock_charge *charge);

#endif
