// SPDX-License-Identifier: BSD-3-Clause
/*
 * closes WHEN WHO: ranks that close descriptors they did not open, "before"
 * MPI_Init all of them, "after" it the shared heap's; "all" ranks or the "last"
 * one. A file of their own then has the number, and must stay as it is. Or, "late", all that the
 * library has, in the middle of the job, of which one rank then keeps the others waiting.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../heap_memfd.h"
#include "pattern.h"

#define WORDS ((size_t)1 << 20)

/* Empty, but as large as any arena. */
static int open_file(void)
{
	char name[] = "closes.XXXXXX";
	int fd = mkstemp(name);

	if (fd < 0 || unlink(name) || ftruncate(fd, (off_t)1 << 42))
		exit(3);
	return fd;
}

static int replace_all(void)
{
	int fd = -1;

	for (int old = 3; old < 1024; old++)
		close(old);
	/* Whichever of them the heap had. */
	for (int i = 0; i < 16; i++)
		fd = fd < 0 ? open_file() : (dup(fd), fd);
	return fd;
}

static int replace_heap(void)
{
	int file = open_file(), fd = heap_memfd();

	/* There is none where the heap is off. */
	return fd < 0 ? file : dup2(file, fd);
}

static void close_library(void)
{
	for (int fd = 3; fd < 1024; fd++) {
		char path[32], to[256];
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		len = readlink(path, to, sizeof(to) - 1);
		to[len > 0 ? len : 0] = '\0';
		if (strstr(to, "onecopy"))
			close(fd);
	}
}

static void fork_child(const unsigned int *data, unsigned int seed, int file)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct stat st;

		for (size_t i = 0; i < WORDS; i++)
			if (data[i] != pattern_at(seed, i))
				_exit(1);
		_exit(file >= 0 && (fstat(file, &st) || !S_ISREG(st.st_mode)) ? 2 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		pattern_fail("the child lost its copy, or its file");
}

int main(int argc, char **argv)
{
	const char *place = getenv("OMPI_COMM_WORLD_RANK"), *count = getenv("OMPI_COMM_WORLD_SIZE");
	unsigned int *data = pattern_alloc(WORDS * 4);
	int rank, size, file = -1, closes;
	struct stat st;

	if (argc != 3 || !place || !count)
		return 2;
	closes = !strcmp(argv[2], "all") || atoi(place) == atoi(count) - 1;
	if (closes && !strcmp(argv[1], "before"))
		file = replace_all();
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (closes && !strcmp(argv[1], "after"))
		file = replace_heap();
	for (unsigned int turn = 0; turn < 6; turn++) {
		unsigned int *sums;

		pattern_fill(data, WORDS, turn + (rank ? 70 : 0));
		MPI_Bcast(data, (int)WORDS, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
		pattern_check(data, WORDS, turn, "bcast");
		if (!strcmp(argv[1], "late") && !turn) {
			close_library();
			sleep(rank == size - 1 ? 2 : 0);
			continue;
		}
		fork_child(data, turn, file);
		sums = pattern_alloc(WORDS * 16);
		MPI_Allreduce(data, sums, (int)WORDS, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
		for (size_t i = 0; i < WORDS; i++)
			if (sums[i] != data[i] * (unsigned int)size)
				pattern_fail("allreduce");
		free(sums);
	}
	if (file >= 0 && (fstat(file, &st) || st.st_size != (off_t)1 << 42 || st.st_blocks))
		pattern_fail("a file of one's own was changed");
	free(data);
	MPI_Finalize();
	return 0;
}
