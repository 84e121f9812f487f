// SPDX-License-Identifier: GPL-2.0-only
/* What users are told of each parameter, and its default. */
#include "params.h"

#include <linux/mm.h>
#include <linux/moduleparam.h>

struct ock_params ock_params = {
	.max_user_regions = 1U << 18,
	.max_regions = 1U << 20,
	.dma = true,
	.dmatimeout = 10000,
	.dmamin = 1024,
	.knem = true,
	.binding = true,
	.thread = true,
	.pinlocalread = true,
	.statslen = PAGE_SIZE,
};

module_param_named(max_user_pages, ock_params.max_user_pages, ulong, 0644);
MODULE_PARM_DESC(max_user_pages,
		 "Pages a user may pin through both devices (0: a sixteenth of the memory)");

module_param_named(max_pages, ock_params.max_pages, ulong, 0644);
MODULE_PARM_DESC(max_pages, "Pages all users together may pin (0: a quarter of the memory)");

module_param_named(max_user_regions, ock_params.max_user_regions, uint, 0644);
MODULE_PARM_DESC(max_user_regions, "Regions a user may have");

module_param_named(max_regions, ock_params.max_regions, uint, 0644);
MODULE_PARM_DESC(max_regions, "Regions all users together may have");

module_param_named(max_user_threads, ock_params.max_user_threads, uint, 0644);
MODULE_PARM_DESC(max_user_threads,
		 "Threads for asynchronous copies that a user may have (0: one a processor)");

module_param_named(max_threads, ock_params.max_threads, uint, 0644);
MODULE_PARM_DESC(max_threads,
		 "Threads that all users together may have (0: four for each processor)");

module_param_named(dma, ock_params.dma, bool, 0644);
MODULE_PARM_DESC(dma, "use DMA engines when asked to (1)");

module_param_named(dmatimeout, ock_params.dmatimeout, uint, 0644);
MODULE_PARM_DESC(dmatimeout,
		 "milliseconds without an answer after which a DMA channel is reset (10000)");

module_param_named(dmamin, ock_params.dmamin, ulong, 0644);
MODULE_PARM_DESC(dmamin, "bytes below which the CPU copies though DMA is asked for (1024)");

module_param_named(knem, ock_params.knem, bool, 0444);
MODULE_PARM_DESC(knem, "Offer /dev/knem (1)");

module_param_named(debug, ock_params.debug, bool, 0644);
MODULE_PARM_DESC(debug, "Log refused requests of /dev/knem (0)");

module_param_named(binding, ock_params.binding, bool, 0644);
MODULE_PARM_DESC(binding, "Bind kernel threads as their process says, not always as it is (1)");

module_param_named(thread, ock_params.thread, bool, 0644);
MODULE_PARM_DESC(thread, "Offload to kernel threads when asked to (1)");

module_param_named(forceflags, ock_params.forceflags, uint, 0644);
MODULE_PARM_DESC(forceflags, "KNEM_FLAG_* added to every request (0)");

module_param_named(ignoreflags, ock_params.ignoreflags, uint, 0644);
MODULE_PARM_DESC(ignoreflags, "KNEM_FLAG_* dropped from every request (0)");

module_param_named(pinlocal, ock_params.pinlocal, bool, 0644);
MODULE_PARM_DESC(pinlocal, "Always pin local memory before a copy (0)");

module_param_named(pinlocalread, ock_params.pinlocalread, bool, 0644);
MODULE_PARM_DESC(pinlocalread, "Pin local memory before a copy that reads it (1)");

module_param_named(sync, ock_params.sync, bool, 0644);
MODULE_PARM_DESC(sync, "End every copy within its ioctl (0)");

module_param_named(statslen, ock_params.statslen, ulong, 0644);
MODULE_PARM_DESC(statslen, "Bytes of statistics that a read-only descriptor gives at most (page)");

module_param_named(statsverbose, ock_params.statsverbose, bool, 0644);
MODULE_PARM_DESC(statsverbose, "Statistics per processor, too (0)");
