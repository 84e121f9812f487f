// SPDX-License-Identifier: BSD-3-Clause
/*
 * deep_cases LIBRARY CASE: what a library does with blocks of the heap, or hands out, that is
 * loaded as most are, or with RTLD_DEEPBIND, which has it find the C library's functions first.
 */
#include <dlfcn.h>
#include <unistd.h>

#include "../heap_probe.h"

#define BYTES ((size_t)64 << 10)

static struct probe arena;

struct library {
	void *(*take)(size_t bytes);
	void (*give)(void *p);
};

static struct library load(const char *path, int how)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | how);
	struct library library;

	CHECK(handle);
	*(void **)&library.take = dlsym(handle, "deep_take");
	*(void **)&library.give = dlsym(handle, "deep_give");
	CHECK(library.take && library.give);
	return library;
}

static char *block(void)
{
	char *p = malloc(BYTES);

	__asm__ volatile("" : "+r"(p));
	CHECK(p && probe_holds(&arena, p));
	return p;
}

static void shallow(const char *path)
{
	struct library library = load(path, 0);
	char *p = library.take(BYTES);

	CHECK(p && probe_holds(&arena, p));
	library.give(p);
	library.give(block());
}

/* The program may do with its blocks what it likes. */
static void takes(const char *path)
{
	struct library library = load(path, RTLD_DEEPBIND);
	char *p = library.take(BYTES), *q = library.take(BYTES);

	CHECK(p && q && !probe_holds(&arena, p) && !probe_holds(&arena, q));
	library.give(q);
	memset(p, 1, BYTES);
	p = realloc(p, 4 * BYTES);
	CHECK(p && p[0] == 1 && !memcmp(p, p + 1, BYTES - 1));
	free(p);
	free(library.take(BYTES));
}

static void gives(const char *path)
{
	load(path, RTLD_DEEPBIND).give(block());
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	arena = probe_arena();
	CHECK(arena.base);
	if (!strcmp(argv[2], "shallow"))
		shallow(argv[1]);
	else if (!strcmp(argv[2], "takes"))
		takes(argv[1]);
	else
		gives(argv[1]);
	return 0;
}
