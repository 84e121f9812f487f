// SPDX-License-Identifier: BSD-3-Clause
/* A program that limits its own address space (RLIMIT_AS), with an arena that is larger than that,
 * or its private memory (RLIMIT_DATA), with tables over the arena that are. */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../heap_probe.h"

#define SKIPPED 77
#define MIB	((size_t)1 << 20)
#define GIB	((size_t)1 << 30)

static struct probe arena;

static void *nothing(void *arg)
{
	return arg;
}

static void *map(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* So much can be had, and not much more. */
static void check_room(size_t bytes)
{
	char *large = malloc(20 * MIB), *small = malloc(1000);
	pthread_t thread;
	void *mapped;

	CHECK(small && large && probe_holds(&arena, large));
	memset(large, 1, 20 * MIB);
	CHECK(!pthread_create(&thread, NULL, nothing, NULL) && !pthread_join(thread, NULL));
	mapped = map(bytes / 2);
	CHECK(mapped != MAP_FAILED && !munmap(mapped, bytes / 2));
	CHECK(map(2 * bytes) == MAP_FAILED && errno == ENOMEM);
	free(large);
	free(small);
}

static void check_said(rlim_t cur, rlim_t max)
{
	struct rlimit now, same;

	CHECK(!getrlimit(RLIMIT_AS, &now) && !prlimit(getpid(), RLIMIT_AS, NULL, &same));
	CHECK(now.rlim_cur == cur && now.rlim_max == max);
	CHECK(same.rlim_cur == cur && same.rlim_max == max);
}

static bool set(rlim_t cur, rlim_t max)
{
	return !setrlimit(RLIMIT_AS, &(struct rlimit){cur, max});
}

int main(void)
{
	struct rlimit before;
	int status;
	pid_t pid;

	arena = probe_arena();
	CHECK(arena.base && !getrlimit(RLIMIT_AS, &before));
	if (before.rlim_cur != RLIM_INFINITY || before.rlim_max != RLIM_INFINITY ||
	    (size_t)(arena.end - arena.base) < 3 * GIB)
		return SKIPPED;
	CHECK(set(2 * GIB, RLIM_INFINITY));
	check_said(2 * GIB, RLIM_INFINITY);
	check_room(2 * GIB);
	CHECK(!set(4 * GIB, 3 * GIB) && errno == EINVAL);
	check_said(2 * GIB, RLIM_INFINITY);
	CHECK(!prlimit(0, RLIMIT_AS, &(struct rlimit){3 * GIB, 3 * GIB}, &before));
	CHECK(before.rlim_cur == 2 * GIB && before.rlim_max == RLIM_INFINITY);
	/* For everybody, for root might do more. */
	CHECK(!setuid(geteuid() ? geteuid() : 65534));
	CHECK(set(GIB, 3 * GIB));
	check_room(GIB);
	CHECK(set(3 * GIB, 3 * GIB));
	check_said(3 * GIB, 3 * GIB);
	CHECK(!set(3 * GIB, 4 * GIB) && errno == EPERM);
	check_room(3 * GIB);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		check_said(3 * GIB, 3 * GIB);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(!setrlimit(RLIMIT_DATA, &(struct rlimit){40 * MIB, 40 * MIB}));
	CHECK(!getrlimit(RLIMIT_DATA, &before));
	CHECK(before.rlim_cur == 40 * MIB && before.rlim_max == 40 * MIB);
	for (int i = 0; i < 1000; i++)
		CHECK(malloc(8000));
	return 0;
}
