// SPDX-License-Identifier: BSD-3-Clause
/* The C library's functions as others' hooks leave them, with a lock that is held while
 * another thread forks. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "../heap/fork_blocks.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long hooked(long nr, void *p, size_t bytes, long c, long d, long e, long f)
{
	long ret;

	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	ret = syscall(nr, p, bytes, c, d, e, f);
	return ret;
}

void *mmap(void *p, size_t bytes, int prot, int flags, int fd, off_t off)
{
	return (void *)hooked(SYS_mmap, p, bytes, prot, flags, fd, off);
}

int munmap(void *p, size_t bytes)
{
	return (int)hooked(SYS_munmap, p, bytes, 0, 0, 0, 0);
}

int madvise(void *p, size_t bytes, int advice)
{
	return (int)hooked(SYS_madvise, p, bytes, advice, 0, 0, 0);
}

/* The last thing before fork: registered later than the heap's, which runs after it. */
static void take(void)
{
	pthread_mutex_lock(&lock);
}

static void give(void)
{
	pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv)
{
	pid_t pid;

	CHECK(argc == 2);
	arena = probe_arena();
	CHECK(arena.base);
	make_blocks(1);
	if (!strcmp(argv[1], "closed"))
		CHECK(!close(heap_memfd()));
	/* The heap's handlers were first, so in parent and child they run first. */
	CHECK(!pthread_atfork(take, give, give));
	pid = fork();
	if (!pid) {
		check_blocks(1);
		_exit(0);
	}
	CHECK(status_of(pid) == 0);
	check_blocks(1);
	return 0;
}
