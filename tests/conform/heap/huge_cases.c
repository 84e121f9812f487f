// SPDX-License-Identifier: BSD-3-Clause
/* huge_cases NAME: what pages blocks of the heap have, in one case under the preload;
 * exits 0 when it holds, 77 where this system has no huge pages to look at. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../heap_probe.h"

#define PAGE	 ((size_t)4096)
#define MIB	 ((size_t)1 << 20)
#define HUGE	 (2 * MIB)
#define ALLOW	 (64 * MIB) /* lib/heap/huge.c: unproven, before MPI_Init */
#define SKIP	 77
#define COLLAPSE 25 /* MADV_COLLAPSE */

static struct probe arena;

/* The setting of private memory: 'n'ever, 'm'advise or 'a'lways. */
static char setting(void)
{
	char text[128] = "", *open_at;
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");

	if (file) {
		if (!fgets(text, sizeof(text), file))
			text[0] = '\0';
		fclose(file);
	}
	open_at = strchr(text, '[');
	return open_at ? open_at[1] : 'n';
}

static bool is_memfd(void)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	bool found = false;

	while (maps && fgets(line, sizeof(line), maps))
		found |= strstr(line, "/memfd:onecopy-heap") != NULL;
	if (maps)
		fclose(maps);
	return found;
}

/* KiB in huge pages of [p, p + bytes), for whole mappings that touch it; -1: all. */
static long huge_kib(const char *p, size_t bytes)
{
	char line[512];
	FILE *smaps = fopen("/proc/self/smaps", "r");
	bool inside = false;
	long sum = 0, n;

	while (smaps && fgets(line, sizeof(line), smaps)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = from < (unsigned long)p + bytes && to > (unsigned long)p;
		else if (inside && sscanf(line, "ShmemPmdMapped: %ld", &n) == 1)
			sum += n;
	}
	if (smaps)
		fclose(smaps);
	return sum;
}

static size_t resident(void)
{
	return ((size_t)probe_status("RssShmem:") + (size_t)probe_status("RssAnon:")) << 10;
}

/* Growth by a block of which one byte in @step is written. */
static size_t growth(char *p, size_t bytes, size_t step)
{
	size_t before = resident();

	for (size_t i = 0; i < bytes; i += step)
		p[i] = 1;
	return resident() - before;
}

static char *plain(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static char *block(size_t bytes)
{
	char *p = malloc(bytes);

	__asm__ volatile("" : "+r"(p));
	CHECK(p && probe_holds(&arena, p));
	return p;
}

/* Eight pages cost eight huge pages at most, and nothing before they are touched. */
static int few(void)
{
	size_t before = resident(), bytes = 512 * MIB;
	char *p = block(bytes);

	CHECK(resident() - before < MIB);
	CHECK(growth(p, bytes, bytes / 8) <= 8 * HUGE + MIB);
	free(p);
	CHECK(resident() - before < ALLOW);
	return 0;
}

/* A page here and there, in many blocks: what may be wasted is bounded. Where plain memory has
 * huge pages without asking, few do, and all of them take memory. */
static int sparse(void)
{
	int blocks = setting() == 'a' ? 4 : 24;
	size_t ours = 0, theirs = 0;

	for (int i = 0; i < blocks; i++) {
		theirs += growth(plain(64 * MIB), 64 * MIB, HUGE);
		ours += growth(block(64 * MIB), 64 * MIB, HUGE);
	}
	fprintf(stderr, "%zu MiB, plain %zu MiB\n", ours / MIB, theirs / MIB);
	CHECK(ours <= theirs + ALLOW + HUGE);
	return 0;
}

/* KiB in huge pages when so many blocks have been filled. */
static long filled(size_t bytes, int blocks)
{
	long huge;

	for (int i = 0; i < blocks; i++)
		growth(block(bytes), bytes, PAGE);
	block(32 * MIB); /* a last look at the others */
	huge = huge_kib(arena.base, (size_t)(arena.end - arena.base));
	fprintf(stderr, "%ld KiB\n", huge);
	return huge;
}

static int fill(size_t bytes, int blocks, long least)
{
	CHECK(filled(bytes, blocks) >= least);
	return 0;
}

/* A program that fills what it allocates has huge pages under most of it. */
static int dense(void)
{
	return setting() == 'n' ? SKIP : fill(32 * MIB, 8, 160 << 10);
}

static bool can_collapse(void)
{
	char *probe = plain(2 * HUGE);
	char *range = (char *)(((uintptr_t)probe + HUGE - 1) & ~(HUGE - 1));

	range[0] = 1;
	return setting() != 'n' && !madvise(range, HUGE, COLLAPSE);
}

/* From now on the kernel says ENOMEM, there is no huge page to collapse anything into, or EINVAL,
 * it knows no such advice. */
static void refuse_collapse(unsigned int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, COLLAPSE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* mimalloc 3 asks for all of the memory at once, and then only the allowance is known to be used
 * before a larger block or a collective. */
static int dense_small(void)
{
	return setting() == 'n' || is_memfd() ? SKIP : fill(64 << 10, 4096, 32 << 10);
}

/* Before Linux 6.1 all that is advised is huge at first touch, and its samples stay small. */
static int dense_before_collapse(void)
{
	refuse_collapse(EINVAL);
	CHECK(!can_collapse());
	return is_memfd() ? SKIP : dense();
}

/* Without files of our own ranges are collapsed that have filled up. */
static int collapsed(void)
{
	CHECK(is_memfd());
	return can_collapse() ? fill(32 * MIB, 8, 160 << 10) : SKIP;
}

static long filled_while_scarce(void)
{
	refuse_collapse(ENOMEM);
	return filled(32 * MIB, 24);
}

/* What is open when that shows, and a stripe tried now and then: not half of it. */
static int scarce(void)
{
	return setting() != 'm' || is_memfd() ? SKIP : filled_while_scarce() > 320 << 10;
}

static int scarce_always(void)
{
	return setting() != 'm' || is_memfd() ? SKIP : filled_while_scarce() < 640 << 10;
}

static int none(void)
{
	return filled(32 * MIB, 4) != 0;
}

/* What the program asks for its own blocks holds. */
static int requested(void)
{
	size_t bytes = 256 * MIB;
	char *p;

	if (setting() == 'n' || is_memfd())
		return SKIP;
	block(bytes); /* uses the allowance up */
	p = block(bytes);
	CHECK(!madvise(p, bytes, MADV_HUGEPAGE));
	growth(p, bytes, PAGE);
	CHECK(huge_kib(p, bytes) == (long)(bytes >> 10));
	p = block(bytes);
	CHECK(!madvise(p, bytes, MADV_NOHUGEPAGE));
	growth(p, bytes, PAGE);
	CHECK(huge_kib(p, bytes) == 0);
	return 0;
}

/* Tables that are used in part come from calloc. */
static int zeroed(void)
{
	size_t bytes = 256 * MIB;
	char *p = calloc(1, bytes), *q = plain(bytes);

	CHECK(p && probe_holds(&arena, p));
	CHECK(growth(p, bytes, HUGE) <= growth(q, bytes, HUGE) + HUGE);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} cases[] = {
		{"few", few},
		{"sparse", sparse},
		{"dense", dense},
		{"dense_small", dense_small},
		{"dense_before_collapse", dense_before_collapse},
		{"collapsed", collapsed},
		{"scarce", scarce},
		{"scarce_always", scarce_always},
		{"none", none},
		{"requested", requested},
		{"zeroed", zeroed},
	};

	arena = probe_arena();
	CHECK(arena.base && argc == 2);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (!strcmp(argv[1], cases[i].name))
			return cases[i].run();
	return 2;
}
