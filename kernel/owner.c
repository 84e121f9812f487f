// SPDX-License-Identifier: GPL-2.0-only
/* An owner's limits are what the parameters said when its file was opened. */
#include "owner.h"

#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "params.h"
#include "stats.h"

static void ock_owner_limit(struct ock_limits *limits)
{
	limits->of_user[OCK_PAGES] = READ_ONCE(ock_params.max_user_pages) ?: totalram_pages() / 16;
	limits->of_all[OCK_PAGES] = READ_ONCE(ock_params.max_pages) ?: totalram_pages() / 4;
	limits->of_user[OCK_REGIONS] = READ_ONCE(ock_params.max_user_regions);
	limits->of_all[OCK_REGIONS] = READ_ONCE(ock_params.max_regions);
	limits->of_user[OCK_THREADS] = READ_ONCE(ock_params.max_user_threads) ?: num_online_cpus();
	limits->of_all[OCK_THREADS] = READ_ONCE(ock_params.max_threads) ?: num_online_cpus() * 4;
}

int ock_owner_create(const struct file *file, bool memlock, struct ock_owner **result)
{
	struct ock_owner *owner;

	owner = kzalloc(sizeof(*owner), GFP_KERNEL_ACCOUNT);
	if (!owner)
		return -ENOMEM;
	owner->uid = file->f_cred->uid;
	owner->limits.user = ock_user_get(file->f_cred);
	if (!owner->limits.user) {
		kfree(owner);
		return -ENOMEM;
	}
	ock_owner_limit(&owner->limits);
	owner->limits.memlock = memlock;
	spin_lock_init(&owner->lock);
	INIT_LIST_HEAD(&owner->regions);
	ock_generations_init(&owner->generations);
	ock_stat_inc(OCK_LIVE_FILES);
	*result = owner;
	return 0;
}

void ock_owner_close(struct ock_owner *owner)
{
	ock_generations_deinit(&owner->generations);
	ock_user_put(owner->limits.user);
	/* Who found a single-use region just before may still want owner->lock. */
	kfree_rcu(owner, rcu);
	ock_stat_dec(OCK_LIVE_FILES);
}
