// SPDX-License-Identifier: BSD-3-Clause
/* malloc_cases NAME: one case under the preload; exits 0 when it holds. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../heap_probe.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static struct probe arena;

/* The compiler may not reason about what malloc returns. */
static void *hide(void *p)
{
	__asm__ volatile("" : "+r"(p));
	return p;
}

static bool in_arena(const void *p)
{
	return p && probe_holds(&arena, p);
}

static void threshold(void)
{
	void *small = malloc(16 * KIB - 1), *large = malloc(16 * KIB);
	void *p;

	CHECK(!in_arena(small) && in_arena(large));
	CHECK(in_arena(hide(calloc(4, 4 * KIB))));
	CHECK(in_arena(hide(memalign(4096, 16 * KIB))));
	CHECK(in_arena(hide(aligned_alloc(64, 64 * KIB))));
	CHECK(in_arena(hide(valloc(64 * KIB))));
	CHECK(in_arena(hide(pvalloc(64 * KIB - 1))));
	CHECK(in_arena(hide(reallocarray(NULL, 1024, 64))));
	CHECK(!posix_memalign(&p, 2 * MIB, 100 * KIB) && in_arena(p) &&
	      !((uintptr_t)p % (2 * MIB)));
	free(p);
	CHECK(!posix_memalign(&p, 64 * MIB, 100 * KIB) && !((uintptr_t)p % (64 * MIB)));
	free(p);
	CHECK(malloc_usable_size(small) >= 16 * KIB - 1);
	CHECK(malloc_usable_size(large) >= 16 * KIB);
	CHECK(malloc_usable_size(NULL) == 0);
	free(small);
	free(large);
	free(hide(NULL));
}

static void errors(void)
{
	volatile size_t half = SIZE_MAX / 2, all = SIZE_MAX - 1;
	void *p = &p, *q;

	errno = 0;
	CHECK(!hide(calloc(half, 4)) && errno == ENOMEM);
	/* What wraps to a size we serve. */
	errno = 0;
	CHECK(!hide(calloc(half / 2 + 1 + 8 * KIB, 4)) && errno == ENOMEM);
	errno = 0;
	CHECK(!hide(reallocarray(NULL, half / 2 + 1 + 8 * KIB, 4)) && errno == ENOMEM);
	errno = 0;
	CHECK(!hide(reallocarray(NULL, half, 4)) && errno == ENOMEM);
	errno = 0;
	CHECK(!hide(malloc(all)) && errno == ENOMEM);
	errno = 0;
	CHECK(!hide(pvalloc(all)) && errno == ENOMEM);
	CHECK(posix_memalign(&p, 3, 64 * KIB) == EINVAL && p == &p);
	CHECK(posix_memalign(&p, 24, 64 * KIB) == EINVAL && p == &p);
	CHECK(posix_memalign(&p, 64, all) == ENOMEM && p == &p);

	for (size_t bytes = MIB; bytes <= 64 * MIB; bytes *= 64) {
		volatile size_t sizes[] = {all, all + 1, SIZE_MAX - 2 * MIB + 2, half + 1};

		p = hide(malloc(bytes));
		memset(p, 5, bytes);
		for (int i = 0; i < 4; i++) {
			q = hide(p);
			errno = 0;
			CHECK(!hide(realloc(p, sizes[i])) && errno == ENOMEM);
			p = q;
			/* It is nobody else's. */
			q = hide(malloc(bytes));
			memset(q, 6, bytes);
			free(q);
			CHECK(((char *)p)[0] == 5 && !memcmp(p, (char *)p + 1, bytes - 1));
		}
		errno = 77;
		free(p);
	}
	free(hide(malloc(100 * MIB)));
	free(hide(malloc(1 * MIB)));
	CHECK(errno == 77);
}

/* Freed memory holds what the program left there; calloc() may not. */
static void zeroes(void)
{
	static const size_t sizes[] = {16 * KIB, 100 * KIB, 700 * KIB, 5 * MIB, 40 * MIB};

	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			char *blocks[8];

			for (int k = 0; k < 8; k++) {
				blocks[k] = hide(calloc(1, sizes[i]));
				CHECK(in_arena(blocks[k]) && !blocks[k][0] &&
				      !memcmp(blocks[k], blocks[k] + 1, sizes[i] - 1));
				memset(blocks[k], 0xa5, sizes[i]);
			}
			for (int k = 0; k < 8; k++)
				free(blocks[k]);
		}
}

/* realloc() both ways over every threshold keeps the content. */
static void moves(void)
{
	static const size_t sizes[] = {100,	 20 * KIB, 15 * KIB, 300 * KIB, 9 * MIB, 70 * MIB,
				       20 * MIB, 2 * MIB,  64 * KIB, 16 * KIB,	200,	 33 * MIB};
	size_t have = 50;
	unsigned char *p = malloc(have);

	memset(p, 1, have);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t kept = have < sizes[i] ? have : sizes[i];

		p = realloc(p, sizes[i]);
		CHECK(p && p[0] == i + 1 && !memcmp(p, p + 1, kept - 1));
		CHECK(in_arena(p) == (sizes[i] >= 16 * KIB));
		have = sizes[i];
		memset(p, (int)i + 2, have);
	}
	CHECK(!hide(realloc(p, 0)));
}

/* A buffer that grows a little at a time is copied a few times, not each time,
 * even if another is in its way. A large one changes its end where it stands. */
static void grows(void)
{
	static const size_t resized[] = {100 * MIB, 10 * MIB, 50 * MIB};
	char *p[2] = {NULL, NULL};
	long moved = 0;

	for (size_t bytes = 64 * KIB; bytes < 256 * MIB; bytes += 64 * KIB) {
		char *q = realloc(p[bytes / (64 * KIB) % 2], bytes);

		CHECK(in_arena(q));
		moved += q != p[bytes / (64 * KIB) % 2];
		q[bytes - 1] = 1;
		p[bytes / (64 * KIB) % 2] = q;
	}
	CHECK(moved <= 22);
	free(p[1]);
	for (size_t i = 0; i < sizeof(resized) / sizeof(resized[0]); i++) {
		uintptr_t before = (uintptr_t)p[0];

		p[0] = realloc(p[0], resized[i]);
		CHECK((uintptr_t)p[0] == before);
		CHECK(malloc_usable_size(p[0]) < resized[i] + resized[i] / 2);
	}
	free(p[0]);
}

/* The most that was resident since the last call, in KiB. */
static long peak(void)
{
	long most = probe_status("VmHWM:");
	FILE *reset = fopen("/proc/self/clear_refs", "w");

	CHECK(reset && fputs("5", reset) > 0 && !fclose(reset));
	return most;
}

/* A large block that cannot grow where it stands moves without being there twice, and
 * what was never touched stays so. */
static void frugal(void)
{
	char *p = hide(malloc(600 * MIB)), *after = hide(malloc(9 * MIB)), *q;
	long before, most;

	memset(p, 1, 600 * MIB);
	peak();
	before = probe_status("VmRSS:");
	q = hide(realloc(p, 900 * MIB));
	CHECK(in_arena(q) && q != p);
	CHECK(q[0] == 1 && !memcmp(q, q + 1, 600 * MIB - 1));
	memset(q + 600 * MIB, 2, 300 * MIB);
	most = peak();
	printf("resident %ld MiB, at most %ld\n", before / 1024, most / 1024);
	CHECK(most - before < 364 * 1024);
	free(q);
	free(after);

	p = hide(calloc(1, 100 * MIB));
	after = hide(malloc(9 * MIB));
	p[50 * MIB] = 3;
	before = probe_status("VmRSS:");
	/* To where the other block was. */
	q = hide(realloc(p, 800 * MIB));
	CHECK(in_arena(q) && q != p);
	CHECK(probe_status("VmRSS:") - before < 16 * 1024);
	CHECK(q[50 * MIB] == 3);
	q[50 * MIB] = 0;
	CHECK(!q[0] && !memcmp(q, q + 1, 100 * MIB - 1));
}

static void *short_lived(void *arg)
{
	void **kept = arg;
	char *p = malloc(40 * KIB);

	p[0] = 1;
	free(p);
	*kept = malloc(24 * KIB);
	CHECK(in_arena(*kept));
	memset(*kept, 3, 24 * KIB);
	return NULL;
}

/* Memory of threads long gone is used again. */
static void threads(void)
{
	long resident = 0, mapped = 0;

	for (int i = 0; i < 10000; i++) {
		pthread_t thread;
		void *kept;

		CHECK(!pthread_create(&thread, NULL, short_lived, &kept));
		pthread_join(thread, NULL);
		CHECK(((char *)kept)[24 * KIB - 1] == 3);
		free(kept);
		if (i == 1000) {
			resident = probe_status("VmRSS:");
			mapped = probe_status("VmSize:");
		}
	}
	printf("RSS %ld -> %ld KiB, size %ld -> %ld KiB\n", resident, probe_status("VmRSS:"),
	       mapped, probe_status("VmSize:"));
	CHECK(probe_status("VmRSS:") < resident + 16 * 1024);
	CHECK(probe_status("VmSize:") < mapped + 256 * 1024);
}

static pthread_key_t late_key;

static void late(void *arg)
{
	/* mimalloc's destructor of this thread has run by the second round. */
	if ((uintptr_t)arg < 3)
		pthread_setspecific(late_key, (char *)arg + 1);
	for (int i = 0; i < 100; i++) {
		char *p = hide(malloc(20 * KIB + (size_t)i * 1000));

		memset(p, 1, 20 * KIB);
		free(p);
	}
}

static void *with_late(void *arg)
{
	pthread_setspecific(late_key, (void *)1);
	free(hide(malloc(100 * KIB)));
	return NULL;
}

static void destructors(void)
{
	pthread_key_create(&late_key, late);
	for (int i = 0; i < 200; i++) {
		pthread_t thread;

		CHECK(!pthread_create(&thread, NULL, with_late, NULL));
		pthread_join(thread, NULL);
	}
}

/* What calloc() gives takes no memory before it is touched, and is zero where memory is
 * used again. */
static void sparse(void)
{
	long before = probe_status("RssShmem:");
	volatile char *p = hide(calloc(1, 4 * MIB));
	char *used;

	CHECK(in_arena((char *)p) && !p[3 * MIB]);
	CHECK(probe_status("RssShmem:") - before < 1024);
	free(hide((char *)p));
	for (size_t bytes = 60 * KIB; bytes <= 4 * MIB; bytes += 100 * KIB) {
		used = hide(malloc(bytes));
		memset(used, 1, bytes / 3);
		memset(used + bytes / 2, 1, 5);
		used[bytes - 1] = 1;
		free(used);
		used = hide(calloc(1, bytes));
		for (size_t i = 0; i < bytes; i++)
			CHECK(!used[i]);
		free(used);
	}
}

/* Advice that empties private memory does so in the heap, too. */
static void discards(void)
{
	for (size_t bytes = 64 * KIB; bytes <= 16 * MIB; bytes *= 16) {
		char *p = hide(aligned_alloc(4096, bytes));

		CHECK(in_arena(p));
		memset(p, 7, bytes);
		CHECK(!madvise(p + 4096, bytes - 3 * 4096, MADV_DONTNEED));
		CHECK(p[4095] == 7 && !p[4096] && !p[bytes / 2]);
		CHECK(!p[bytes - 2 * 4096 - 1] && p[bytes - 2 * 4096] == 7);
		CHECK(!madvise(p, bytes, MADV_FREE));
		CHECK(!madvise(p, bytes, MADV_WILLNEED));
		free(p);
	}
}

/* Locking everything does not fill the arena, which is mostly empty. */
static void locks(void)
{
	long before = probe_status("RssShmem:");
	char *p;

	CHECK(!mlockall(MCL_CURRENT | MCL_FUTURE));
	p = hide(malloc(20 * MIB));
	CHECK(in_arena(p));
	p[0] = 1;
	CHECK(probe_status("RssShmem:") - before < 64 * 1024);
	CHECK(probe_status("VmLck:") > 0);
	free(p);
	CHECK(!munlockall());
}

/* A full heap is not the end: blocks then come from the C library. */
static void exhaustion(void)
{
	size_t want = (size_t)(arena.end - arena.base);
	size_t counts[2] = {0}, outside = 0;
	static char *blocks[100000];
	size_t n = 0;

	for (size_t sizes[] = {256 * MIB, 6 * MIB}, k = 0; k < 2; k++)
		for (size_t got = 0; got < want; got += sizes[k]) {
			char *p = hide(malloc(sizes[k]));

			CHECK(p && n < sizeof(blocks) / sizeof(blocks[0]));
			blocks[n++] = p;
			if (in_arena(p))
				counts[k]++;
			else
				outside++;
			p[0] = 1;
			if (outside > 20 * (k + 1))
				break;
		}
	CHECK(counts[0] && counts[1] && outside > 20);
	while (n)
		free(blocks[--n]);
	CHECK(in_arena(hide(malloc(want / 4))) && in_arena(hide(malloc(6 * MIB))));
}

/* Large blocks go back to the system, as they do without us. */
static void returns(void)
{
	enum { SPREAD = 4 };
	size_t bytes = (size_t)(arena.end - arena.base) / 4 / SPREAD;
	char *blocks[SPREAD];
	long full;

	for (int i = 0; i < SPREAD; i++) {
		blocks[i] = malloc(bytes);
		CHECK(in_arena(blocks[i]));
		for (size_t at = 0; at < bytes; at += 2 * MIB)
			blocks[i][at] = 1;
	}
	full = probe_status("RssShmem:");
	for (int i = 0; i < SPREAD; i++)
		free(blocks[i]);
	CHECK(probe_status("RssShmem:") <= full / 2);
}

/* So do smaller ones when many are free; a program that allocates as many again and
 * again takes its page faults once. Within a small arena, of which little is kept. */
static void recycles(void)
{
	static const size_t sizes[] = {16 * KIB, 64 * KIB, 500 * KIB, 4 * MIB};
	enum { TOTAL = 320 * MIB, FEW = 8 * MIB };
	static char *blocks[TOTAL / (16 * KIB)];
	long before, full, faults = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		before = probe_status("RssShmem:");
		for (size_t k = 0; k < TOTAL / sizes[i]; k++) {
			blocks[k] = hide(malloc(sizes[i]));
			CHECK(in_arena(blocks[k]));
			memset(blocks[k], 1, sizes[i]);
		}
		full = probe_status("RssShmem:");
		for (size_t k = 0; k < TOTAL / sizes[i]; k++)
			free(blocks[k]);
		printf("%zu KiB: %ld, %ld, %ld MiB\n", sizes[i] / KIB, before / 1024, full / 1024,
		       probe_status("RssShmem:") / 1024);
		CHECK(probe_status("RssShmem:") < full - full / 3);
	}
	for (int round = 0; round < 20; round++) {
		struct rusage usage;

		for (size_t k = 0; k < FEW / (64 * KIB); k++) {
			blocks[k] = hide(malloc(64 * KIB));
			memset(blocks[k], 1, 64 * KIB);
		}
		for (size_t k = 0; k < FEW / (64 * KIB); k++)
			free(blocks[k]);
		getrusage(RUSAGE_SELF, &usage);
		if (round < 10)
			faults = usage.ru_minflt;
		else
			CHECK(usage.ru_minflt < faults + 100);
	}
}

static void double_free(void)
{
	void *p = hide(malloc(1 * MIB)), *q = hide(p);

	free(p);
	free(q);
}

/* Without the heap everything works as before. */
static void refused(void)
{
	char *p = malloc(1 * MIB);

	CHECK(!arena.base && p);
	memset(p, 1, 1 * MIB);
	p = realloc(p, 4 * MIB);
	CHECK(p && p[0] == 1);
	free(p);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"threshold", threshold},
		{"errors", errors},
		{"zeroes", zeroes},
		{"moves", moves},
		{"grows", grows},
		{"frugal", frugal},
		{"threads", threads},
		{"destructors", destructors},
		{"exhaustion", exhaustion},
		{"returns", returns},
		{"recycles", recycles},
		{"sparse", sparse},
		{"discards", discards},
		{"locks", locks},
		{"double_free", double_free},
		{"refused", refused},
	};

	CHECK(argc == 2);
	arena = probe_arena();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[1])) {
			CHECK(cases[i].run == refused || arena.base);
			cases[i].run();
			return 0;
		}
	return 2;
}
