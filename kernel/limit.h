/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_LIMIT_H
#define OCK_LIMIT_H

/*
 * What a user may hold through the module, and what all users together may: a user
 * namespace gives one who is alone as many user ids as were set aside for it.
 *
 * Pages of /dev/onecopy count against RLIMIT_MEMLOCK as well, over all processes of
 * the user (user_struct's locked_vm), together with what io_uring and others charge
 * there; those of /dev/knem do not.
 */

#include <linux/cred.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/xarray.h>

/* All that one user holds, through whichever file. */
struct ock_user;

enum ock_holding { OCK_PAGES, OCK_REGIONS, OCK_THREADS, OCK_HOLDINGS };

/* How what is held through a file is counted. */
struct ock_limits {
	struct ock_user *user;
	u64 of_user[OCK_HOLDINGS];
	u64 of_all[OCK_HOLDINGS];
	bool memlock; /* charge RLIMIT_MEMLOCK */
};

/* What one pin was charged with. */
struct ock_charge {
	struct ock_user *user;
	struct mm_struct *mm; /* whose pinned_vm shows them; NULL: nobody's */
	u64 shown;	      /* pages, there */
	u64 pages;	      /* counted as the user's */
	bool memlock;	      /* and against RLIMIT_MEMLOCK */
};

/* By the real uid, made at need. NULL: no memory. */
struct ock_user *ock_user_get(const struct cred *cred);
void ock_user_put(struct ock_user *user);

u64 ock_user_pages(const struct ock_user *user);

/* Large folios of one user: how many runs lie in each, by the number of its first page. folio.c
 * counts. */
struct ock_folios {
	struct mutex lock;
	struct xarray runs;
};

/* Large folios that the user's pins hold; @memlock: those charged to RLIMIT_MEMLOCK. */
struct ock_folios *ock_user_folios(struct ock_user *user, bool memlock);

/* Regions and threads. -EDQUOT beyond what the user or all may have. */
int ock_user_take(const struct ock_limits *limits, enum ock_holding what);
void ock_user_give(struct ock_user *user, enum ock_holding what);

/* -ENOMEM beyond RLIMIT_MEMLOCK, -EDQUOT beyond what the user or all may have. */
int ock_charge_take(struct ock_charge *charge, const struct ock_limits *limits, u64 pages);

/* Makes it @pages; errors as above, nothing has changed then. */
int ock_charge_resize(struct ock_charge *charge, const struct ock_limits *limits, u64 pages);

/* Makes it @pages, which are not more. */
void ock_charge_reduce(struct ock_charge *charge, u64 pages);

void ock_charge_give(struct ock_charge *charge);

/*
 * Charges that are given back by themselves before long, and are in the way until
 * then: ock_user_owe() says that there is one, ock_user_paid() that it is given back.
 */
void ock_user_owe(struct ock_user *user);
void ock_user_paid(struct ock_user *user);

/* Asked before an attempt to take a charge: whether the user has such. */
bool ock_user_owes(const struct ock_user *user);

/*
 * If so, and @err is a charge refused: waits for them, but not for long and killable; true: the
 * attempt is worth repeating.
 */
bool ock_user_settle(struct ock_user *user, int err);

#endif
