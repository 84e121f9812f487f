// SPDX-License-Identifier: GPL-2.0-only
/*
 * While it is open the count is one user of the region, which ock_hot_work() gives back after
 * the last reader: percpu_ref may say that in an RCU callback, where nothing may sleep. The
 * region's pointer to it goes NULL, count, closed; a count is never replaced by another.
 */
#include "hot.h"

#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/percpu-refcount.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "region.h"

struct ock_hot {
	struct percpu_ref ref;
	struct ock_region *region;
	struct ock_user *user; /* the region's, which may be gone before this */
	struct work_struct work;
	struct rcu_head rcu;
};

static struct workqueue_struct *workqueue;

int ock_hot_init(void)
{
	workqueue = alloc_workqueue("onecopy-hot", WQ_UNBOUND, 0);
	return workqueue ? 0 : -ENOMEM;
}

void ock_hot_exit(void)
{
	/* Counts that were closed become work after a grace period. */
	rcu_barrier();
	destroy_workqueue(workqueue);
}

static void ock_hot_work(struct work_struct *work)
{
	struct ock_hot *hot = container_of(work, struct ock_hot, work);

	percpu_ref_exit(&hot->ref);
	ock_region_put_user(hot->region);
	ock_user_paid(hot->user);
	kfree_rcu(hot, rcu);
}

/* Maybe in an RCU callback, where pages cannot be unpinned. */
static void ock_hot_release(struct percpu_ref *ref)
{
	struct ock_hot *hot = container_of(ref, struct ock_hot, ref);

	queue_work(workqueue, &hot->work);
}

/* Stands for a count that may not come any more. */
#define OCK_HOT_CLOSED ((struct ock_hot *)ERR_PTR(-ENOENT))

void ock_hot_open(struct ock_region *region)
{
	struct ock_hot *hot;

	hot = kzalloc(sizeof(*hot), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!hot)
		return;
	if (percpu_ref_init(&hot->ref, ock_hot_release, 0, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)) {
		kfree(hot);
		return;
	}
	hot->region = region;
	hot->user = region->user;
	INIT_WORK(&hot->work, ock_hot_work);
	ock_region_add_user(region);
	if (cmpxchg((struct ock_hot __force **)&region->hot, NULL, hot)) {
		/* Another was first, or the region is being destroyed. */
		ock_region_put_user(region);
		percpu_ref_exit(&hot->ref);
		kfree(hot);
	}
}

void ock_hot_close(struct ock_region *region)
{
	struct ock_hot *hot;

	hot = xchg((struct ock_hot __force **)&region->hot, OCK_HOT_CLOSED);
	if (!hot)
		return;
	ock_user_owe(hot->user);
	percpu_ref_kill(&hot->ref);
}

struct ock_hot *ock_hot_get(struct ock_region *region)
{
	struct ock_hot *hot = rcu_dereference(region->hot);

	return IS_ERR_OR_NULL(hot) || !percpu_ref_tryget_live(&hot->ref) ? NULL : hot;
}

void ock_hot_put(struct ock_hot *hot)
{
	percpu_ref_put(&hot->ref);
}
