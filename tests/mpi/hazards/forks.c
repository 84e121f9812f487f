// SPDX-License-Identifier: BSD-3-Clause
/* An MPI program that forks in every way, with large live buffers. */
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pattern.h"

#define WORDS ((size_t)1 << 19)

extern char **environ;
static unsigned int *data;

static void expect_status(int status, const char *what)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	fprintf(stderr, "wait status %#x: ", (unsigned int)status);
	pattern_fail(what);
}

/* In a child: no MPI, not even to fail. */
static int holds(const unsigned int *p, unsigned int seed)
{
	for (size_t i = 0; i < WORDS; i++)
		if (p[i] != pattern_at(seed, i))
			return 0;
	return 1;
}

/* The child sees the buffer as it was, whatever the parent does meanwhile, and
 * what the child writes and allocates stays with it. */
static void fork_child(unsigned int seed, int deep)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		pattern_fail("fork");
	if (pid == 0) {
		unsigned int *more = malloc(WORDS * 4);

		usleep(1000);
		if (!more || !holds(data, seed))
			_exit(1);
		pattern_fill(more, WORDS, 5);
		pattern_fill(data, WORDS, 99);
		if (deep) {
			pid = fork();
			if (pid == 0)
				_exit(holds(data, 99) && holds(more, 5) ? 0 : 1);
			if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
				_exit(2);
		}
		data = realloc(data, WORDS * 8);
		if (!data || !holds(data, 99) || !holds(more, 5))
			_exit(3);
		free(more);
		free(data);
		_exit(0);
	}
	pattern_fill(data, WORDS, seed + 1);
	if (waitpid(pid, &status, 0) != pid)
		pattern_fail("waitpid");
	expect_status(status, "the child lost its copy of a buffer");
	pattern_check(data, WORDS, seed + 1, "after fork, the parent's buffer");
}

static void run_commands(void)
{
	char *argv[] = {"sh", "-c", "exit 0", NULL};
	char line[64] = "";
	int status;
	FILE *pipe;
	pid_t pid;

	expect_status(system("true"), "system()");
	pipe = popen("echo from the shell", "r");
	if (!pipe || !fgets(line, sizeof(line), pipe) || strcmp(line, "from the shell\n"))
		pattern_fail("popen()");
	expect_status(pclose(pipe), "pclose()");
	if (posix_spawnp(&pid, "sh", NULL, NULL, argv, environ) || waitpid(pid, &status, 0) != pid)
		pattern_fail("posix_spawn()");
	expect_status(status, "a spawned shell");
	pid = fork();
	if (pid == 0) {
		execvp("sh", argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		pattern_fail("fork() and exec()");
	expect_status(status, "a forked shell");
}

int main(int argc, char **argv)
{
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	data = pattern_alloc(WORDS * 4);
	for (unsigned int turn = 0; turn < 12; turn++) {
		unsigned int seed = turn * 10;

		pattern_fill(data, WORDS, seed + (rank ? 7 : 0));
		MPI_Bcast(data, (int)WORDS, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
		pattern_check(data, WORDS, seed, "before fork");
		fork_child(seed, turn % 2);
		if (turn % 4 == (unsigned int)rank % 4)
			run_commands();
		MPI_Bcast(data, (int)WORDS, MPI_UNSIGNED, (int)turn % size, MPI_COMM_WORLD);
		pattern_check(data, WORDS, seed + 1, "after fork");
	}
	free(data);
	MPI_Finalize();
	return 0;
}
