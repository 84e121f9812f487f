// SPDX-License-Identifier: BSD-3-Clause
/* freed_cases NAME: what freed blocks leave behind, in one case under the preload; exits 0 when
 * it holds. */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../heap_probe.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static struct probe arena;

static char *block(size_t bytes)
{
	char *p;

	CHECK(!posix_memalign((void **)&p, 4096, bytes));
	__asm__ volatile("" : "+r"(p));
	CHECK(probe_holds(&arena, p));
	return p;
}

static void *free_it(void *p)
{
	free(p);
	return NULL;
}

/* Threads that free little each, and end, do not keep what comes of that together. */
static void ends(void)
{
	enum { BLOCKS = 600, BYTES = 900 * KIB };
	static char *blocks[BLOCKS];
	long full;

	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = block(BYTES);
		memset(blocks[i], 1, BYTES);
	}
	full = probe_status("RssShmem:");
	for (int i = 0; i < BLOCKS; i++) {
		pthread_t thread;

		CHECK(!pthread_create(&thread, NULL, free_it, blocks[i]));
		CHECK(!pthread_join(thread, NULL));
	}
	printf("%ld MiB, then %ld\n", full / 1024, probe_status("RssShmem:") / 1024);
	CHECK(probe_status("RssShmem:") < full / 2);
}

static long mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	long lines = 0;

	CHECK(maps);
	for (int c; (c = getc(maps)) != EOF;)
		lines += c == '\n';
	fclose(maps);
	return lines;
}

/* A program that has locked all of its memory gets pages of it back one by one, and has no more
 * mappings for that. */
static void locked(void)
{
	enum { BLOCKS = 4000, BYTES = 64 * KIB };
	static char *blocks[BLOCKS];
	long full, before, locked_kib;

	CHECK(!mlockall(MCL_CURRENT | MCL_FUTURE));
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = block(BYTES);
		memset(blocks[i], 1, BYTES);
	}
	full = probe_status("RssShmem:");
	before = mappings();
	locked_kib = probe_status("VmLck:");
	for (int i = 0; i < BLOCKS; i += 2)
		free(blocks[i]);
	printf("%ld mappings, then %ld\n", before, mappings());
	CHECK(probe_status("RssShmem:") < full - full / 4);
	CHECK(mappings() < before + 100);
	CHECK(probe_status("VmLck:") == locked_kib);
	for (int i = 0; i < BLOCKS; i += 2) {
		blocks[i] = block(BYTES);
		memset(blocks[i], 2, BYTES);
	}
	for (int i = 0; i < BLOCKS; i++)
		CHECK(blocks[i][0] == 2 - i % 2 && !memcmp(blocks[i], blocks[i] + 1, BYTES - 1));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"ends", ends},
		{"locked", locked},
	};

	CHECK(argc == 2);
	arena = probe_arena();
	CHECK(arena.base);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[1])) {
			cases[i].run();
			return 0;
		}
	return 2;
}
