// SPDX-License-Identifier: BSD-3-Clause
#include "heap/table.h"

#include <sys/mman.h>

#include "base/quiet.h"

void *oc_heap_table_map(size_t bytes, bool inherited)
{
	void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (table == MAP_FAILED)
		return NULL;
	if (!inherited)
		oc_quiet_madvise(table, bytes, MADV_DONTFORK);
	oc_quiet_madvise(table, bytes, MADV_NOHUGEPAGE);
	return table;
}
