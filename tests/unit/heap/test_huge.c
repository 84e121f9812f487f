// SPDX-License-Identifier: BSD-3-Clause
/*
 * While it is tried what huge pages cost, other threads are handed blocks of the same unit of
 * mimalloc's, as 3.x does, and write them: these writes stay. They come in the midst of it.
 */
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/thp.h"
#include "heap/arena.h"
#include "heap/huge.h"
#include "heap/mimalloc.h"
#include "../expect.h"
#include "../fake_call.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define HUGE ((size_t)2 << 20)

static struct oc_heap_arena arena;
static int trials;

/* A system on which huge pages come on request, and where that is not known to be dear. */
enum oc_thp oc_thp_private(void)
{
	return OC_THP_ADVISE;
}

enum oc_thp_shared oc_thp_shared(void)
{
	return OC_THP_SHARED_ADVISE;
}

bool oc_thp_reports_free_pages(void)
{
	return false;
}

/* The kernel gets what the library calls as it tries, too. */
bool fake_call(long number, const long arg[6], long *result)
{
	(void)result;
	if (number == SYS_madvise && arg[2] == MADV_POPULATE_WRITE) {
		trials++;
		memset(arena.base + HUGE, 5, OC_MI_SEGMENT - HUGE);
	}
	return false;
}

int main(void)
{
	const char *why = "";
	char *end;

	if (oc_heap_arena_create(&arena, &why)) {
		fprintf(stderr, "no arena: %s\n", why);
		return 77;
	}
	oc_heap_thp_create(arena.base, arena.size);
	EXPECT(oc_heap_thp_asks());
	memset(arena.base, 5, 65536);
	oc_heap_thp_prepare(arena.base, 65536, OC_MI_SEGMENT);
	EXPECT(trials == 1);
	for (size_t i = HUGE; i < OC_MI_SEGMENT; i++)
		EXPECT(arena.base[i] == 5);
	/* What was tried is as if nothing had been. */
	end = arena.base + arena.size - OC_HEAP_THP_TRIAL;
	EXPECT(lseek(arena.fd, end - arena.base, SEEK_DATA) < 0);
	oc_heap_thp_destroy();
	oc_heap_arena_destroy(&arena);
	return 0;
}
