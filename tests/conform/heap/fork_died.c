// SPDX-License-Identifier: BSD-3-Clause
/*
 * fork_died: a process makes another and is killed before that one has its copy of the heap, at
 * either of two moments: before the child has looked for its parent, and as it tells it its name.
 * The child has its data all the same, and nothing happens to it.
 */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../heap_probe.h"

#define BYTES ((size_t)8 << 20)

static pid_t parent; /* in its child, until it has died */

static void kill_parent(void)
{
	if (!parent)
		return;
	kill(parent, SIGKILL);
	while ((pid_t)syscall(SYS_getppid) == parent)
		usleep(1000);
	parent = 0;
}

/* What the library calls in the child. */
pid_t getppid(void)
{
	kill_parent();
	return (pid_t)syscall(SYS_getppid);
}

ssize_t write(int fd, const void *from, size_t bytes)
{
	kill_parent();
	return syscall(SYS_write, fd, from, bytes);
}

/* Says to @tell how much of the block the child has. */
static void be_parent(int tell)
{
	struct probe arena = probe_arena();
	char *block = malloc(BYTES);
	size_t right = 0;
	pid_t self = getpid();

	CHECK(arena.base && probe_holds(&arena, block));
	memset(block, 7, BYTES);
	parent = self;
	if (!fork()) {
		for (size_t i = 0; i < BYTES; i++)
			right += block[i] == 7;
		CHECK(write(tell, &right, sizeof(right)) == sizeof(right));
		_exit(0);
	}
	/* It ends before this. */
	_exit(1);
}

int main(int argc, char **argv)
{
	char number[16];
	size_t right;
	int ends[2];
	pid_t pid;

	if (argc == 2)
		be_parent((int)strtol(argv[1], NULL, 10));
	CHECK(!pipe(ends));
	snprintf(number, sizeof(number), "%d", ends[1]);
	pid = fork();
	if (!pid) {
		execl("/proc/self/exe", argv[0], number, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	CHECK(read(ends[0], &right, sizeof(right)) == sizeof(right));
	CHECK(right == BYTES);
	CHECK(waitpid(pid, NULL, 0) == pid);
	return 0;
}
