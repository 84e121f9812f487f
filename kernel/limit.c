// SPDX-License-Identifier: GPL-2.0-only
/*
 * A user is found by uid in a list and lives as long as anything is charged to it. Counts go
 * up by compare and exchange: the user's first, then that of all, and back if there is no room.
 */
#include "limit.h"

#include <linux/capability.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "stats.h"

/* Who is refused waits so long for charges on their way back: many grace periods, which take a
 * second each where the host of a guest has other things to do. */
#define OCK_SETTLE_TIME (10 * HZ)

struct ock_user {
	struct list_head node; /* of users, under users_lock */
	kuid_t uid;
	/* Of whoever came first. Keeps the kernel's user_struct, whose own reference
	 * modules cannot give back on all kernels. */
	const struct cred *cred;
	refcount_t refs;
	atomic64_t held[OCK_HOLDINGS];
	struct ock_folios folios[2];
	atomic_t owed;
	wait_queue_head_t settled;
};

/* Few users share a node, and only open() looks one up. */
static LIST_HEAD(users);
static DEFINE_MUTEX(users_lock);
static atomic64_t held_by_all[OCK_HOLDINGS];

static void ock_folios_init(struct ock_folios *folios)
{
	mutex_init(&folios->lock);
	xa_init(&folios->runs);
}

static void ock_folios_deinit(struct ock_folios *folios)
{
	WARN_ON_ONCE(!xa_empty(&folios->runs));
	xa_destroy(&folios->runs);
}

static struct ock_user *ock_user_alloc(const struct cred *cred)
{
	struct ock_user *user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);

	if (!user)
		return NULL;
	user->uid = cred->uid;
	user->cred = get_cred(cred);
	refcount_set(&user->refs, 1);
	for (size_t i = 0; i < ARRAY_SIZE(user->folios); i++)
		ock_folios_init(&user->folios[i]);
	init_waitqueue_head(&user->settled);
	return user;
}

static void ock_user_free(struct ock_user *user)
{
	for (size_t i = 0; i < ARRAY_SIZE(user->folios); i++)
		ock_folios_deinit(&user->folios[i]);
	put_cred(user->cred);
	kfree(user);
}

/* The one with this id, with a reference more; else @user becomes it, if not NULL. */
static struct ock_user *ock_user_find(kuid_t uid, struct ock_user *user)
{
	struct ock_user *one;

	mutex_lock(&users_lock);
	list_for_each_entry(one, &users, node)
	{
		if (uid_eq(one->uid, uid)) {
			refcount_inc(&one->refs);
			user = one;
			goto out;
		}
	}
	if (user) {
		list_add(&user->node, &users);
		ock_stat_inc(OCK_LIVE_USERS);
	}
out:
	mutex_unlock(&users_lock);
	return user;
}

/* Who is held up where he allocates (memory.high) holds nobody up who opens a file. */
struct ock_user *ock_user_get(const struct cred *cred)
{
	struct ock_user *user = ock_user_find(cred->uid, NULL), *fresh;

	if (user)
		return user;
	fresh = ock_user_alloc(cred);
	if (!fresh)
		return NULL;
	user = ock_user_find(cred->uid, fresh);
	if (user != fresh)
		ock_user_free(fresh);
	return user;
}

void ock_user_put(struct ock_user *user)
{
	if (!refcount_dec_and_mutex_lock(&user->refs, &users_lock))
		return;
	list_del(&user->node);
	mutex_unlock(&users_lock);
	for (int i = 0; i < OCK_HOLDINGS; i++)
		WARN_ON_ONCE(atomic64_read(&user->held[i]));
	ock_user_free(user);
	ock_stat_dec(OCK_LIVE_USERS);
}

u64 ock_user_pages(const struct ock_user *user)
{
	return atomic64_read(&user->held[OCK_PAGES]);
}

struct ock_folios *ock_user_folios(struct ock_user *user, bool memlock)
{
	return &user->folios[memlock];
}

/*
 * Never above @max, not even for a moment: who is refused again and again must not be
 * in the way of those who are not.
 */
static bool ock_count_take(atomic64_t *count, u64 nr, u64 max)
{
	s64 now = atomic64_read(count);

	do {
		if (nr > max || now > max - nr)
			return false;
	} while (!atomic64_try_cmpxchg(count, &now, now + nr));
	return true;
}

static int ock_held_take(const struct ock_limits *limits, enum ock_holding what, u64 nr)
{
	if (!ock_count_take(&limits->user->held[what], nr, limits->of_user[what]))
		return -EDQUOT;
	if (!ock_count_take(&held_by_all[what], nr, limits->of_all[what])) {
		atomic64_sub(nr, &limits->user->held[what]);
		return -EDQUOT;
	}
	return 0;
}

static void ock_held_give(struct ock_user *user, enum ock_holding what, u64 nr)
{
	atomic64_sub(nr, &held_by_all[what]);
	atomic64_sub(nr, &user->held[what]);
}

int ock_user_take(const struct ock_limits *limits, enum ock_holding what)
{
	int err = ock_held_take(limits, what, 1);

	if (!err)
		refcount_inc(&limits->user->refs);
	return err;
}

void ock_user_give(struct ock_user *user, enum ock_holding what)
{
	ock_held_give(user, what, 1);
	ock_user_put(user);
}

/* ---- pages ---- */

static bool ock_memlock_take(struct ock_user *user, u64 pages)
{
	u64 limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	atomic_long_t *locked = &user->cred->user->locked_vm;
	long now = atomic_long_read(locked);

	do {
		if (pages > limit || now > (long)(limit - pages))
			return false;
	} while (!atomic_long_try_cmpxchg(locked, &now, now + (long)pages));
	return true;
}

static void ock_memlock_give(struct ock_user *user, u64 pages)
{
	atomic_long_sub(pages, &user->cred->user->locked_vm);
}

static int ock_charge_more(const struct ock_charge *charge, const struct ock_limits *limits,
			   u64 pages)
{
	int err;

	if (charge->memlock && !ock_memlock_take(charge->user, pages))
		return -ENOMEM;
	err = ock_held_take(limits, OCK_PAGES, pages);
	if (err && charge->memlock)
		ock_memlock_give(charge->user, pages);
	return err;
}

void ock_charge_reduce(struct ock_charge *charge, u64 pages)
{
	u64 less = charge->pages - pages;

	ock_held_give(charge->user, OCK_PAGES, less);
	if (charge->memlock)
		ock_memlock_give(charge->user, less);
	charge->pages = pages;
}

int ock_charge_take(struct ock_charge *charge, const struct ock_limits *limits, u64 pages)
{
	int err;

	*charge = (struct ock_charge){
		.user = limits->user,
		.pages = pages,
		.memlock = limits->memlock && pages && !capable(CAP_IPC_LOCK),
	};
	err = ock_charge_more(charge, limits, pages);
	if (err) {
		charge->user = NULL;
		return err;
	}
	refcount_inc(&charge->user->refs);
	if (limits->memlock && pages) {
		charge->mm = current->mm;
		charge->shown = pages;
		mmgrab(charge->mm);
		atomic64_add(pages, &charge->mm->pinned_vm);
	}
	return 0;
}

int ock_charge_resize(struct ock_charge *charge, const struct ock_limits *limits, u64 pages)
{
	int err;

	if (pages <= charge->pages) {
		ock_charge_reduce(charge, pages);
		return 0;
	}
	err = ock_charge_more(charge, limits, pages - charge->pages);
	if (!err)
		charge->pages = pages;
	return err;
}

void ock_charge_give(struct ock_charge *charge)
{
	if (!charge->user)
		return;
	if (charge->mm) {
		atomic64_sub(charge->shown, &charge->mm->pinned_vm);
		mmdrop(charge->mm);
	}
	ock_charge_reduce(charge, 0);
	ock_user_put(charge->user);
	charge->user = NULL;
}

/* ---- on the way back ---- */

void ock_user_owe(struct ock_user *user)
{
	refcount_inc(&user->refs);
	atomic_inc(&user->owed);
}

void ock_user_paid(struct ock_user *user)
{
	if (atomic_dec_and_test(&user->owed))
		wake_up_all(&user->settled);
	ock_user_put(user);
}

bool ock_user_owes(const struct ock_user *user)
{
	return atomic_read(&user->owed);
}

bool ock_user_settle(struct ock_user *user, int err)
{
	if (err != -ENOMEM && err != -EDQUOT)
		return false;
	return wait_event_killable_timeout(user->settled, !ock_user_owes(user), OCK_SETTLE_TIME) >=
	       0;
}
