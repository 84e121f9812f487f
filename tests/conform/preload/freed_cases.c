// SPDX-License-Identifier: BSD-3-Clause
/* freed_cases NAME: what blocks leave behind that were freed, or emptied, in one case under the
 * preload; exits 0 when it holds. */
#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../heap_probe.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

#define SKIPPED		77
#define DONTNEED_LOCKED 24 /* MADV_DONTNEED_LOCKED, Linux 5.18 */

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

#define LARGE (64 * MIB)

/* Where the last one was. */
static char *again(char *last)
{
	char *p;

	free(last);
	p = block(LARGE);
	CHECK(p == last);
	return p;
}

/* A large block is as new, whatever its last owner did to its pages: some, all or the last of them.
 */
static void protected(void)
{
	char *p = again(block(LARGE));

	memset(p, 1, LARGE);
	CHECK(!mprotect(p, 4096, PROT_NONE));
	p = again(p);
	memset(p, 2, LARGE);
	CHECK(!mprotect(p, LARGE, PROT_READ));
	p = again(p);
	memset(p, 3, LARGE);
	CHECK(!pkey_mprotect(p + LARGE - 4096, 4096, PROT_NONE, -1));
	p = again(p);
	memset(p, 4, LARGE);
	CHECK(!mprotect(p + LARGE / 2, LARGE / 2, PROT_NONE));
	/* The part that goes. */
	p = realloc(p, LARGE / 2);
	CHECK(p && p[LARGE / 2 - 1] == 4);
	p = again(p);
	memset(p, 5, LARGE);
}

static void locked_block(void)
{
	long before = probe_status("VmLck:");
	char *p = block(LARGE);

	CHECK(!mlock(p, 64 * KIB));
	p = again(p);
	CHECK(probe_status("VmLck:") == before);
	CHECK(!mlock2(p + LARGE - 64 * KIB, 64 * KIB, MLOCK_ONFAULT));
	again(p);
	CHECK(probe_status("VmLck:") == before);
}

/* Advice that empties locked memory does so in the heap, too. */
static void discarded(void)
{
	char *p = block(LARGE);

	memset(p, 7, LARGE);
	CHECK(!madvise(p + 4096, LARGE / 2, DONTNEED_LOCKED));
	CHECK(p[4095] == 7 && !p[4096] && !memcmp(p + 4096, p + 4097, LARGE / 2 - 1));
	CHECK(p[LARGE / 2 + 4096] == 7);
	CHECK(!mlock(p, MIB));
	memset(p, 7, LARGE);
	CHECK(madvise(p, 4096, MADV_DONTNEED));
	CHECK(!madvise(p, 4096, DONTNEED_LOCKED));
	CHECK(!p[0] && p[4096] == 7);
	CHECK(madvise(p, 4096, MADV_DONTNEED)); /* for it is locked yet */
	CHECK(madvise(p + 1, 4096, DONTNEED_LOCKED) && p[4096] == 7);
	CHECK(madvise(p, 4096, MADV_DONTNEED));
}

/* Whatever their protection. */
static void discarded_protected(void)
{
	char *p = block(LARGE);

	memset(p, 7, LARGE);
	CHECK(!mprotect(p, MIB, PROT_NONE) && !mprotect(p + MIB, MIB, PROT_READ));
	CHECK(!madvise(p, MIB, MADV_DONTNEED) && !madvise(p + MIB, MIB - 4096, MADV_DONTNEED));
	CHECK(!mprotect(p, 2 * MIB, PROT_READ | PROT_WRITE));
	CHECK(!p[0] && !memcmp(p, p + 1, 2 * MIB - 4097));
	CHECK(p[2 * MIB - 4096] == 7);
}

/* A file that the program has mapped over a part of a block, or of static data, is none of the
 * heap's. */
static void discarded_file(void)
{
	static char array[4 * MIB] __attribute__((aligned(4096)));
	FILE *file = tmpfile();
	char byte = 0;

	CHECK(file && !ftruncate(fileno(file), 4096));
	for (int i = 0; i < 4; i++) {
		char *p = i % 2 ? array : block(LARGE);

		memset(p, 7, MIB);
		CHECK(mmap(p + 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			   fileno(file), 0) == p + 4096);
		p[4096] = 'x';
		CHECK(!madvise(p, 16 * KIB, i / 2 ? MADV_FREE : MADV_DONTNEED) || i / 2);
		CHECK(p[4096] == 'x' && p[16 * KIB] == 7);
		CHECK(pread(fileno(file), &byte, 1, 0) == 1 && byte == 'x');
		CHECK(i / 2 || (!p[0] && !p[4095] && !p[8192]));
	}
}

static void bound(void)
{
	unsigned long nodes = 1;
	char *p = block(LARGE);
	int mode = -1;

	if (syscall(SYS_mbind, p, LARGE, MPOL_BIND, &nodes, 64, 0))
		exit(SKIPPED);
	memset(p, 1, LARGE);
	p = again(p);
	for (size_t i = 0; i < LARGE; i += MIB) {
		CHECK(!syscall(SYS_get_mempolicy, &mode, &nodes, 64, p + i, MPOL_F_ADDR));
		CHECK(mode == MPOL_DEFAULT);
	}
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
		{"ends", ends},		  {"locked", locked},
		{"protected", protected}, {"locked_block", locked_block},
		{"discarded", discarded}, {"discarded_protected", discarded_protected},
		{"bound", bound},	  {"discarded_file", discarded_file},
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
