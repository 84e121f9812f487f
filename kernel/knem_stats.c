// SPDX-License-Identifier: GPL-2.0-only
/* Counters of /dev/knem, one for each processor, and the text that `cat /dev/knem` shows. */
#include "knem_stats.h"

#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/slab.h>

#include <knem_io.h>

#include "channel.h"
#include "params.h"

#define OCK_KNEM_STATS_MAX (1UL << 20)

struct ock_knem_counters {
	u64 value[OCK_KNEM_COUNTERS];
};

static DEFINE_PER_CPU(struct ock_knem_counters, ock_knem_counters);

static const char *const ock_knem_names[OCK_KNEM_COUNTERS] = {
	[OCK_KNEM_CREATED] = "Regions Created",
	[OCK_KNEM_DESTROYED] = "Regions Destroyed",
	[OCK_KNEM_SUBMITTED] = "Requests Submitted",
	[OCK_KNEM_DMA] = "Requests Processed/DMA",
	[OCK_KNEM_THREAD] = "Requests Processed/Thread",
	[OCK_KNEM_PINLOCAL] = "Requests Processed/PinLocal",
	[OCK_KNEM_NO_MEMORY] = "Requests Rejected/NoMemory",
	[OCK_KNEM_BAD_ADDRESS] = "Requests Rejected/BadAddress",
	[OCK_KNEM_INVALID] = "Requests Rejected/Invalid",
	[OCK_KNEM_OTHER_USER] = "Requests Rejected/OtherUser",
	[OCK_KNEM_PROTECTED] = "Requests Rejected/Protection",
	[OCK_KNEM_BUSY] = "Requests Rejected/Busy",
	[OCK_KNEM_FAILED] = "Requests Failed",
};

void ock_knem_count(enum ock_knem_counter counter)
{
	this_cpu_inc(ock_knem_counters.value[counter]);
}

void ock_knem_count_refusal(int err)
{
	static const struct {
		int err;
		enum ock_knem_counter counter;
	} refusals[] = {
		{-ENOMEM, OCK_KNEM_NO_MEMORY}, {-EFAULT, OCK_KNEM_BAD_ADDRESS},
		{-EINVAL, OCK_KNEM_INVALID},   {-EPERM, OCK_KNEM_OTHER_USER},
		{-EACCES, OCK_KNEM_PROTECTED}, {-EBUSY, OCK_KNEM_BUSY},
	};

	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		if (refusals[i].err == err)
			ock_knem_count(refusals[i].counter);
	}
}

static u64 ock_knem_sum(enum ock_knem_counter counter)
{
	u64 sum = 0;
	int cpu = -1;

	while ((cpu = cpumask_next(cpu, cpu_possible_mask)) < nr_cpu_ids)
		sum += READ_ONCE(per_cpu(ock_knem_counters, cpu).value[counter]);
	return sum;
}

static size_t ock_knem_print_each(char *text, size_t size, enum ock_knem_counter counter)
{
	size_t n = 0;
	int cpu = -1;

	while ((cpu = cpumask_next(cpu, cpu_possible_mask)) < nr_cpu_ids)
		n += scnprintf(text + n, size - n, "  %3d: %llu\n", cpu,
			       READ_ONCE(per_cpu(ock_knem_counters, cpu).value[counter]));
	return n;
}

static size_t ock_knem_stats_print(char *text, size_t size, u32 forced, u32 ignored)
{
	size_t n;

	n = scnprintf(text, size, "knem 1.1 (onecopy)\n Driver ABI=0x%x\n", KNEM_ABI_VERSION);
	n += scnprintf(text + n, size - n, " Flags: forcing 0x%x, ignoring 0x%x\n", forced,
		       ignored);
	n += scnprintf(text + n, size - n, " DMAEngine: %s\n",
		       !OCK_DMA_SUPPORTED	  ? "NotSupported"
		       : ock_channels_available() ? "Available"
						  : "NoChannelAvailable");
	for (size_t i = 0; i < OCK_KNEM_COUNTERS; i++) {
		n += scnprintf(text + n, size - n, " %-28s: %llu\n", ock_knem_names[i],
			       ock_knem_sum(i));
		if (READ_ONCE(ock_params.statsverbose))
			n += ock_knem_print_each(text + n, size - n, i);
	}
	return n;
}

ssize_t ock_knem_stats_read(char __user *to, size_t size, loff_t *position, u32 forced, u32 ignored)
{
	size_t room = clamp(READ_ONCE(ock_params.statslen), 1UL, OCK_KNEM_STATS_MAX);
	char *text;
	size_t length;
	ssize_t n;

	text = kvmalloc(room, GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	length = ock_knem_stats_print(text, room, forced, ignored);
	n = simple_read_from_buffer(to, size, position, text, length);
	kvfree(text);
	return n;
}
