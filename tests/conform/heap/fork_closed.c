// SPDX-License-Identifier: BSD-3-Clause
/* fork_closed NAME: programs that have closed the heap's descriptor, as those do that close all
 * they did not open; exits 0 when it holds. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include "fork_blocks.h"

static void close_all(void)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
}

/* So large that the heap does not keep it when it is freed. */
static size_t large(void)
{
	struct sysinfo info;

	CHECK(!sysinfo(&info));
	return (size_t)info.totalram * info.mem_unit / 4;
}

static void free_blocks(void)
{
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
}

/* The child has its copy, and the heap goes on, with blocks made before and after. */
static void reads(void)
{
	char *before = malloc(16 * MIB);

	fill(before, 16 * MIB, 9);
	close_all();
	for (int i = 0; i < 3; i++)
		fork_twice(free_blocks);
	CHECK(holds(before, 16 * MIB, 9));
}

/* A file of the program's has the number: neither mapped, nor written, nor closed. */
static void file(void)
{
	char name[] = "closed.XXXXXX", page[4096];
	char *block = malloc(large()), *small = malloc(64 * KIB);
	int fd = heap_memfd(), made = mkstemp(name);
	struct stat st, now;
	off_t offsets[2];
	pid_t pid;

	CHECK(fd >= 0 && made >= 0 && !unlink(name) && probe_holds(&arena, block));
	CHECK(dup2(made, fd) == fd && !close(made));
	offsets[0] = block - arena.base;
	offsets[1] = small - arena.base;
	for (int i = 0; i < 2; i++) {
		fill(page, sizeof(page), 5);
		CHECK(pwrite(fd, page, sizeof(page), offsets[i]) == sizeof(page));
	}
	CHECK(!ftruncate(fd, arena.end - arena.base) && !fstat(fd, &st));
	fill(small, 64 * KIB, 6);
	pid = fork();
	if (!pid) {
		CHECK(holds(small, 64 * KIB, 6));
		fill(small, 64 * KIB, 7);
		CHECK(!fstat(fd, &now) && now.st_ino == st.st_ino);
		_exit(0);
	}
	CHECK(status_of(pid) == 0);
	fork_twice(free_blocks);
	memset(hide(block), 1, 8 * MIB);
	free(block);
	for (int i = 0; i < 2; i++)
		CHECK(pread(fd, page, sizeof(page), offsets[i]) == sizeof(page) &&
		      holds(page, sizeof(page), 5));
	CHECK(!fstat(fd, &now) && now.st_size == st.st_size && now.st_blocks == st.st_blocks);
}

/* A pipe of the program's has it. */
static void ends(void)
{
	int fd = heap_memfd(), pipes[2];
	char byte = 0;
	pid_t pid;

	make_blocks(1);
	CHECK(fd >= 0 && !pipe(pipes) && dup2(pipes[1], fd) == fd && !close(pipes[1]));
	pid = fork();
	if (!pid) {
		check_blocks(1);
		_exit(write(fd, "k", 1) != 1);
	}
	CHECK(!close(fd));
	CHECK(status_of(pid) == 0);
	CHECK(read(pipes[0], &byte, 1) == 1 && byte == 'k');
}

/* What is freed goes back to the system. */
static void returned(void)
{
	char *block = malloc(large());
	long with;

	CHECK(probe_holds(&arena, block));
	close_all();
	memset(hide(block), 1, 64 * MIB);
	CHECK(!mlock(block, 16 * KIB));
	with = probe_status("RssShmem:");
	free(block);
	CHECK(with >= 64 * 1024 && probe_status("RssShmem:") <= with - 60 * 1024);
}

/* What had no page at the fork gets none, in the child or the file. */
static void untouched(void)
{
	char *zeros = calloc(1, large());
	struct sysinfo info;
	pid_t pid;

	CHECK(probe_holds(&arena, zeros));
	close_all();
	CHECK(!sysinfo(&info));
	/* Then it cannot be told what is merely swapped out. */
	if (info.freeswap != info.totalswap)
		return;
	zeros[0] = zeros[300 * KIB] = 1;
	pid = fork();
	if (!pid) {
		CHECK(zeros[0] == 1 && zeros[300 * KIB] == 1 &&
		      probe_status("RssAnon:") < 32 * 1024);
		for (size_t i = 1 * MIB; i < 16 * MIB; i++)
			CHECK(!zeros[i]);
		_exit(0);
	}
	memset(zeros, 2, 16 * MIB);
	CHECK(status_of(pid) == 0);
	CHECK(probe_status("RssShmem:") < 64 * 1024);
}

/* More than is copied: a child that needs the heap faults, it never sees other data. */
static void excess(void)
{
	size_t bytes = 160 * MIB;
	char *block = malloc(bytes);
	int status;
	pid_t pid;

	CHECK(probe_holds(&arena, block));
	close_all();
	fill(block, bytes, 1);
	pid = fork();
	if (!pid) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	CHECK(status_of(pid) == 0);
	pid = fork();
	if (!pid)
		_exit(((char *)hide(block))[bytes / 2] ? 1 : 2);
	status = status_of(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	CHECK(holds(block, bytes, 1));
}

int main(int argc, char **argv)
{
	static const struct fork_case cases[] = {
		{"reads", reads},	{"file", file},		  {"pipe", ends},
		{"returned", returned}, {"untouched", untouched}, {"excess", excess},
	};

	return fork_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
