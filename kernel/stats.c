// SPDX-License-Identifier: GPL-2.0-only
/* The counters' names and their file. Tracepoints are brought into being here, too. */
#include "stats.h"

#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/module.h>

#define CREATE_TRACE_POINTS
#include "trace.h"

DEFINE_PER_CPU(struct ock_counters, ock_counters);

static const char *const names[OCK_STATS] = {
	[OCK_LIVE_FILES] = "live_files",
	[OCK_LIVE_REGIONS] = "live_regions",
	[OCK_LIVE_PAGES] = "live_pages",
	[OCK_LIVE_MAPPINGS] = "live_mappings",
	[OCK_LIVE_COPIES] = "live_copies",
	[OCK_LIVE_WATCHES] = "live_watches",
	[OCK_LIVE_USERS] = "live_users",
	[OCK_STAT_CREATED] = "regions_created",
	[OCK_STAT_DESTROYED] = "regions_destroyed",
	[OCK_STAT_COPIES] = "copies",
	[OCK_STAT_BYTES] = "bytes_copied",
	[OCK_STAT_COPY_FAULTS] = "copy_faults",
	[OCK_STAT_ASYNC] = "copies_queued",
	[OCK_STAT_DMA] = "copies_by_dma",
	[OCK_STAT_CANCELLED] = "copies_cancelled",
	[OCK_STAT_MAPPED] = "mappings_made",
	[OCK_STAT_MAP_FAULTS] = "mapping_faults",
	[OCK_STAT_MAP_HUGE] = "mapping_huge_entries",
	[OCK_STAT_REVOKED] = "mappings_revoked",
	[OCK_STAT_STALE] = "regions_stale",
	[OCK_STAT_REFUSED] = "lookups_refused",
};

static struct dentry *directory;

s64 ock_stat_sum(enum ock_stat stat)
{
	s64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu) sum += READ_ONCE(per_cpu(ock_counters, cpu).value[stat]);
	return sum;
}

static int ock_counters_show(struct seq_file *seq, void *data)
{
	for (int i = 0; i < OCK_STATS; i++)
		seq_printf(seq, "%s %lld\n", names[i], ock_stat_sum(i));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ock_counters);

void ock_stats_init(void)
{
	directory = debugfs_create_dir("onecopy", NULL);
	debugfs_create_file("counters", 0444, directory, NULL, &ock_counters_fops);
}

void ock_stats_exit(void)
{
	debugfs_remove(directory);
}
