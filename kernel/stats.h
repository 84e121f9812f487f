/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_STATS_H
#define OCK_STATS_H

/*
 * Counters, per CPU, summed when read: /sys/kernel/debug/onecopy/counters, a
 * "name value" a line. Those of what lives now come first, and are all 0 when
 * no file is open and nothing is in flight.
 */

#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/types.h>

enum ock_stat {
	/* what lives now */
	OCK_LIVE_FILES,
	OCK_LIVE_REGIONS,
	OCK_LIVE_PAGES,	   /* pinned */
	OCK_LIVE_MAPPINGS, /* VMAs */
	OCK_LIVE_COPIES,   /* running, or held by a queue */
	OCK_LIVE_WATCHES,
	OCK_LIVE_USERS,
	/* what has been */
	OCK_STAT_CREATED,
	OCK_STAT_DESTROYED,
	OCK_STAT_COPIES,
	OCK_STAT_BYTES,
	OCK_STAT_COPY_FAULTS,
	OCK_STAT_ASYNC,
	OCK_STAT_DMA,
	OCK_STAT_CANCELLED,
	OCK_STAT_MAPPED,
	OCK_STAT_MAP_FAULTS,
	OCK_STAT_MAP_HUGE, /* entries made */
	OCK_STAT_REVOKED,
	OCK_STAT_STALE,
	OCK_STAT_REFUSED, /* lookups that failed */
	OCK_STATS
};

struct ock_counters {
	s64 value[OCK_STATS];
};

DECLARE_PER_CPU(struct ock_counters, ock_counters);

/* Any context. */
static inline void ock_stat_add(enum ock_stat stat, s64 value)
{
	this_cpu_add(ock_counters.value[stat], value);
}

static inline void ock_stat_inc(enum ock_stat stat)
{
	ock_stat_add(stat, 1);
}

static inline void ock_stat_dec(enum ock_stat stat)
{
	ock_stat_add(stat, -1);
}

s64 ock_stat_sum(enum ock_stat stat);

/* debugfs; never fails for good: without debugfs there is none. */
void ock_stats_init(void);
void ock_stats_exit(void);

#endif
