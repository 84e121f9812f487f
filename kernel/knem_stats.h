/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_KNEM_STATS_H
#define OCK_KNEM_STATS_H

/* What a read-only descriptor of /dev/knem reads: version, flags and counters as text. */

#include <linux/types.h>

enum ock_knem_counter {
	OCK_KNEM_CREATED,
	OCK_KNEM_DESTROYED,
	OCK_KNEM_SUBMITTED, /* copies asked for */
	OCK_KNEM_DMA,
	OCK_KNEM_THREAD,
	OCK_KNEM_PINLOCAL,
	OCK_KNEM_NO_MEMORY, /* from here on: any request, refused */
	OCK_KNEM_BAD_ADDRESS,
	OCK_KNEM_INVALID,
	OCK_KNEM_OTHER_USER,
	OCK_KNEM_PROTECTED,
	OCK_KNEM_BUSY,
	OCK_KNEM_FAILED, /* copies accepted */
	OCK_KNEM_COUNTERS
};

/* Any context. */
void ock_knem_count(enum ock_knem_counter counter);

/* The counter of requests refused so. */
void ock_knem_count_refusal(int err);

/* read() of it. */
ssize_t ock_knem_stats_read(char __user *to, size_t size, loff_t *position, u32 forced,
			    u32 ignored);

#endif
