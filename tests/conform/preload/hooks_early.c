// SPDX-License-Identifier: BSD-3-Clause
/* Fork handlers that are registered before any library's constructor runs, as those of libraries
 * are that a program is linked to: what they do to a block, at its time, is seen where it should
 * be. */
#include <pthread.h>

#include "../heap/fork_blocks.h"

#define BYTES MIB

static char *block;
static bool seen; /* by the child's handler */

static void before(void)
{
	if (block)
		fill(block, BYTES, 2);
}

/* The child has its copy by now. */
static void in_parent(void)
{
	if (block)
		fill(block, BYTES, 3);
}

static void in_child(void)
{
	seen = block && holds(block, BYTES, 2);
}

static void early(int argc, char **argv, char **env)
{
	CHECK(!pthread_atfork(before, in_parent, in_child));
}

__attribute__((section(".preinit_array"), used)) static void (*first)(int, char **,
								      char **) = early;

int main(int argc, char **argv)
{
	arena = probe_arena();
	CHECK(arena.base);
	block = malloc(BYTES);
	CHECK(probe_holds(&arena, block));
	for (int i = 0; i < 20; i++) {
		pid_t pid;

		fill(block, BYTES, 1);
		pid = fork();
		if (!pid) {
			usleep(500);
			_exit(!seen || !holds(block, BYTES, 2));
		}
		CHECK(status_of(pid) == 0);
		CHECK(holds(block, BYTES, 3));
	}
	return 0;
}
