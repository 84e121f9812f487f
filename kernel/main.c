// SPDX-License-Identifier: GPL-2.0-only
/*
 * Coming and going. While a file is open or mapped the module cannot be unloaded
 * (file_operations.owner); what may still run then, after the last file, is
 * waited for by the parts' exit functions, in reverse order.
 */
#include <linux/kernel.h>
#include <linux/module.h>

#include "crew.h"
#include "ctx.h"
#include "dma.h"
#include "file.h"
#include "knem.h"
#include "map.h"
#include "stats.h"
#include "table.h"

struct ock_part {
	int (*init)(void);
	void (*exit)(void);
};

/* Devices last, for all to open once both are there. */
static const struct ock_part parts[] = {
	{ock_region_init, ock_region_exit}, {ock_map_init, ock_map_exit},
	{ock_dma_init, ock_dma_exit},	    {ock_crews_init, ock_crews_exit},
	{ock_file_init, ock_file_exit},	    {ock_knem_init, ock_knem_exit},
	{ock_ctx_allow, ock_ctx_refuse},
};

static int __init ock_init(void)
{
	size_t i;
	int err;

	ock_stats_init();
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		err = parts[i].init();
		if (err)
			goto undo;
	}
	return 0;
undo:
	while (i--)
		parts[i].exit();
	ock_stats_exit();
	return err;
}
module_init(ock_init);

static void __exit ock_exit(void)
{
	for (size_t i = ARRAY_SIZE(parts); i--;)
		parts[i].exit();
	ock_stats_exit();
}
module_exit(ock_exit);

MODULE_DESCRIPTION("One copy between processes: regions, copies, mappings; KNEM's successor");
MODULE_AUTHOR("The onecopy project");
MODULE_LICENSE("GPL");
