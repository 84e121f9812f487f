// SPDX-License-Identifier: BSD-3-Clause
/* mixed_malloc above|below: with odd_malloc.c before or after the preload. */
#include <errno.h>
#include <malloc.h>
#include <unistd.h>

#include "../heap_probe.h"

static char *use(void *p, size_t align, size_t bytes)
{
	__asm__ volatile("" : "+r"(p));
	CHECK(p && (uintptr_t)p % align == 0);
	return memset(p, 7, bytes);
}

static void grow(size_t from, size_t to)
{
	char *p = use(malloc(from), 16, from), *after = use(malloc(64), 16, 64);

	p = realloc(p, to);
	CHECK(p);
	for (size_t i = 0; i < from && i < to; i++)
		CHECK(p[i] == 7);
	use(p, 16, to);
	for (int i = 0; i < 64; i++)
		CHECK(after[i] == 7);
	free(p);
	free(after);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {1, 1000, 10000, 20000, 300000, 9 << 20};
	struct probe arena = probe_arena();
	bool below;
	void *p;

	CHECK(argc == 2 && arena.base);
	below = !strcmp(argv[1], "below");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t bytes = sizes[i];

		CHECK(!posix_memalign(&p, 64, bytes));
		free(use(p, 64, bytes));
		free(use(aligned_alloc(256, bytes), 256, bytes));
		free(use(calloc(1, bytes), 16, bytes));
		free(use(reallocarray(use(malloc(16), 16, 16), bytes, 1), 16, bytes));
		for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
			grow(bytes, sizes[k]);
		p = use(malloc(bytes), 16, bytes);
		if (below)
			CHECK(probe_holds(&arena, p) == (bytes >= 16384));
		free(p);
		/* Before the preload these are nobody's, with or without us. */
		if (below) {
			free(use(memalign(128, bytes), 128, bytes));
			free(use(valloc(bytes), 4096, bytes));
			free(use(pvalloc(bytes), 4096, bytes));
		}
	}
	return 0;
}
