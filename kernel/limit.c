// SPDX-License-Identifier: GPL-2.0-only
#include "limit.h"

#include <linux/capability.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "stats.h"

struct ock_user {
	struct list_head node; /* of users, under users_lock */
	kuid_t uid;
	refcount_t refs;
	atomic64_t pages;
	atomic_t regions;
	atomic_t threads;
};

/* Few users share a node, and only open() looks one up. */
static LIST_HEAD(users);
static DEFINE_MUTEX(users_lock);

struct ock_user *ock_user_get(kuid_t uid)
{
	struct ock_user *user;

	mutex_lock(&users_lock);
	list_for_each_entry(user, &users, node)
	{
		if (uid_eq(user->uid, uid)) {
			refcount_inc(&user->refs);
			goto out;
		}
	}
	user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	if (!user)
		goto out;
	user->uid = uid;
	refcount_set(&user->refs, 1);
	list_add(&user->node, &users);
	ock_stat_inc(OCK_LIVE_USERS);
out:
	mutex_unlock(&users_lock);
	return user;
}

void ock_user_put(struct ock_user *user)
{
	if (!refcount_dec_and_mutex_lock(&user->refs, &users_lock))
		return;
	list_del(&user->node);
	mutex_unlock(&users_lock);
	WARN_ON_ONCE(atomic64_read(&user->pages) || atomic_read(&user->regions) ||
		     atomic_read(&user->threads));
	kfree(user);
	ock_stat_dec(OCK_LIVE_USERS);
}

u64 ock_user_pages(const struct ock_user *user)
{
	return atomic64_read(&user->pages);
}

int ock_user_region_take(const struct ock_limits *limits)
{
	struct ock_user *user = limits->user;

	if (atomic_inc_return(&user->regions) > limits->max_regions) {
		atomic_dec(&user->regions);
		return -EDQUOT;
	}
	refcount_inc(&user->refs);
	return 0;
}

void ock_user_region_give(struct ock_user *user)
{
	atomic_dec(&user->regions);
	ock_user_put(user);
}

int ock_user_threads_take(const struct ock_limits *limits, u32 nr)
{
	struct ock_user *user = limits->user;

	/* Small numbers: the sum does not pass 2^31. */
	if (atomic_add_return(nr, &user->threads) > limits->max_threads) {
		atomic_sub(nr, &user->threads);
		return -EDQUOT;
	}
	refcount_inc(&user->refs);
	return 0;
}

void ock_user_threads_give(struct ock_user *user, u32 nr)
{
	atomic_sub(nr, &user->threads);
	ock_user_put(user);
}

int ock_charge_take(struct ock_charge *charge, const struct ock_limits *limits, u64 pages)
{
	struct ock_user *user = limits->user;
	struct mm_struct *mm = NULL;

	if (limits->memlock && pages) {
		u64 limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

		mm = current->mm;
		if (atomic64_add_return(pages, &mm->pinned_vm) > limit && !capable(CAP_IPC_LOCK)) {
			atomic64_sub(pages, &mm->pinned_vm);
			return -ENOMEM;
		}
		mmgrab(mm);
	}
	if (atomic64_add_return(pages, &user->pages) > limits->max_pages && limits->max_pages) {
		atomic64_sub(pages, &user->pages);
		if (mm) {
			atomic64_sub(pages, &mm->pinned_vm);
			mmdrop(mm);
		}
		return -EDQUOT;
	}
	refcount_inc(&user->refs);
	*charge = (struct ock_charge){.user = user, .mm = mm, .pages = pages};
	return 0;
}

void ock_charge_give(struct ock_charge *charge)
{
	if (!charge->user)
		return;
	if (charge->mm) {
		atomic64_sub(charge->pages, &charge->mm->pinned_vm);
		mmdrop(charge->mm);
	}
	atomic64_sub(charge->pages, &charge->user->pages);
	ock_user_put(charge->user);
	charge->user = NULL;
}
