/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_PARAMS_H
#define OCK_PARAMS_H

/*
 * The module's parameters, all of them: /sys/module/onecopy/parameters. Root may change
 * them at any time, to anything, but for one that is for good. So who reads one does so by
 * READ_ONCE(), and brings it within its bounds. Who that is, and when, stands here; what
 * users are told in params.c.
 */

#include <linux/types.h>

struct ock_params {
	/* owner.c, for files opened from then on. 0: by the memory and processors there are. */
	ulong max_user_pages;
	ulong max_pages;
	uint max_user_regions;
	uint max_regions;
	uint max_user_threads;
	uint max_threads;

	/* Without effect where the kernel knows no engines. */
	bool dma;	 /* channel.c, each look for a channel; what runs on one goes on */
	uint dmatimeout; /* channel.c, each look at a channel: ms, at least a jiffy */
	ulong dmamin;	 /* dma.c, each copy: bytes */

	bool knem;	 /* knem.c: for good */
	bool debug;	 /* knem.c, each request */
	bool binding;	 /* knem.c, each status array */
	bool thread;	 /* knem_request.c, each request, as the next two */
	uint forceflags; /* KNEM_FLAG_*: which of them mean something each request knows */
	uint ignoreflags;
	bool pinlocal; /* knem_copy.c, each copy, as the next two */
	bool pinlocalread;
	bool sync;
	ulong statslen;	   /* knem_stats.c, each read(): bytes, of which 1 to 1 MiB are taken */
	bool statsverbose; /* knem_stats.c, each read() */
};

extern struct ock_params ock_params;

#endif
