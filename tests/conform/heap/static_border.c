// SPDX-License-Identifier: BSD-3-Clause
/* A static array that begins in memory of the program's file, which is private, and goes on in the
 * arena: what is thrown away across the border is zero, in a child too, whatever its parent writes.
 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../heap_probe.h"

#define PAGE ((size_t)4096)

static char array[24 << 20] __attribute__((aligned(64)));

static size_t count(const char *from, size_t bytes, char what)
{
	size_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += from[i] == what;
	return n;
}

int main(void)
{
	char *first = array + (-(uintptr_t)array & (PAGE - 1));
	size_t bytes = sizeof(array) / 2, tail = sizeof(array) - bytes - PAGE;
	int to_child[2], status;
	char byte;
	pid_t pid;

	CHECK(probe_place(first) < 0 && probe_place(first + bytes) >= 0);
	memset(array, 7, sizeof(array));
	CHECK(!pipe(to_child));
	pid = fork();
	if (!pid) {
		memset(array, 9, sizeof(array));
		CHECK(!madvise(first, bytes, MADV_DONTNEED));
		CHECK(read(to_child[0], &byte, 1) == 1);
		CHECK(count(first, bytes, 0) == bytes && count(first + bytes, tail, 9) == tail);
		_exit(0);
	}
	memset(array, 8, sizeof(array));
	CHECK(write(to_child[1], "w", 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(!madvise(first, bytes, MADV_DONTNEED));
	CHECK(count(first, bytes, 0) == bytes && count(first + bytes, tail, 8) == tail);
	return 0;
}
