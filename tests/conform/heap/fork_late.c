// SPDX-License-Identifier: BSD-3-Clause
/* fork_late NAME: what children do before their copy of the heap is made; exits 0 when it holds. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "fork_blocks.h"

/* Blocks until somebody writes or nobody can. */
static void await(int fd)
{
	char byte;

	CHECK(read(fd, &byte, 1) >= 0);
}

/* What had no page at the fork is zeros for good, whatever the parent puts there. */
static void untouched(void)
{
	char *zeros = calloc(1, 64 * MIB);
	int go[2];
	pid_t pid;

	CHECK(probe_holds(&arena, zeros) && !pipe(go));
	zeros[0] = 1;
	pid = fork();
	if (!pid) {
		await(go[0]);
		for (size_t i = 1; i < 64 * MIB; i++)
			CHECK(!zeros[i]);
		exit(0);
	}
	memset(zeros, 2, 64 * MIB);
	CHECK(write(go[1], "g", 1) == 1);
	CHECK(status_of(pid) == 0);
}

/* A child that closes all it can is waited for like any other. */
static void closing(void)
{
	pid_t pid;

	make_blocks(7);
	for (int i = 0; i < 20; i++) {
		pid = fork();
		if (!pid) {
			for (int fd = 0; fd < 1024; fd++)
				close(fd);
			for (int pass = 0; pass < 3; pass++)
				check_blocks(7);
			_exit(0);
		}
		refill_blocks(8);
		CHECK(status_of(pid) == 0);
		refill_blocks(7);
	}
}

/* The child forks at once and is gone; only the grandchild lives to look. */
static void orphan(void)
{
	int go[2], verdict[2];
	char byte = 0;
	pid_t pid;

	make_blocks(1);
	CHECK(!pipe(go) && !pipe(verdict));
	pid = fork();
	if (!pid) {
		if (!fork()) {
			await(go[0]);
			check_blocks(1);
			CHECK(write(verdict[1], "k", 1) == 1);
		}
		_exit(0);
	}
	refill_blocks(2);
	CHECK(status_of(pid) == 0);
	close(verdict[1]);
	CHECK(write(go[1], "g", 1) == 1);
	CHECK(read(verdict[0], &byte, 1) == 1 && byte == 'k');
}

/* A child that stops itself, as tracers' children do, holds nobody up. */
static void stopped(void)
{
	int status;
	pid_t pid;

	make_blocks(1);
	pid = fork();
	if (!pid) {
		raise(SIGSTOP);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	refill_blocks(2);
	CHECK(!kill(pid, SIGCONT));
	CHECK(status_of(pid) == 0);
	check_blocks(2);
}

/* Follows @pid, and every child that it makes it holds as it is born. */
static void trace(pid_t pid, int ready)
{
	CHECK(!ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEFORK));
	CHECK(write(ready, "r", 1) == 1);
	for (;;) {
		int status;
		pid_t who = waitpid(-1, &status, __WALL);

		if (who < 0)
			_exit(0);
		if (who == pid && WIFSTOPPED(status))
			ptrace(PTRACE_CONT, pid, 0, status >> 16 ? 0 : WSTOPSIG(status));
	}
}

/* The kernel tells each process how many signals wait for all of its user's. */
static void queue_signals(void)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &one, NULL);
	for (unsigned int i = 0;; i++) {
		if (i % 16)
			sigqueue(getpid(), SIGRTMIN, (union sigval){0});
		else
			while (sigtimedwait(&one, NULL, &(struct timespec){0}) > 0)
				;
		usleep(3000);
	}
}

/* A child that a tracer holds at its birth, as a debugger may, holds nobody up for long. */
static void traced(void)
{
	pid_t self = getpid(), tracer, queuer, pid;
	int ready[2], status;
	char byte;

	CHECK(!pipe(ready));
	/* Yama lets a child trace its parent where this says so. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	queuer = fork();
	if (!queuer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		queue_signals();
	}
	tracer = fork();
	if (!tracer)
		trace(self, ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		CHECK(waitpid(tracer, NULL, 0) == tracer);
		return; /* nobody may trace here */
	}
	make_blocks(1);
	pid = fork();
	if (!pid)
		_exit(0);
	CHECK(pid > 0);
	refill_blocks(2);
	CHECK(!kill(queuer, SIGKILL));
	CHECK(!kill(tracer, SIGKILL));
	CHECK(waitpid(queuer, NULL, 0) == queuer);
	CHECK(waitpid(tracer, NULL, 0) == tracer);
	/* It has no heap now, and needs none. */
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
	check_blocks(2);
}

static void fork_again(int signal)
{
	int saved = errno;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	errno = saved;
}

/* A handler that forks, for a signal that comes while fork() waits. */
static void handler(void)
{
	struct sigaction again = {.sa_handler = fork_again, .sa_flags = SA_RESETHAND};

	make_blocks(1);
	for (int i = 0; i < 20; i++) {
		pid_t pid;

		CHECK(!sigaction(SIGUSR1, &again, NULL));
		pid = fork();
		if (!pid)
			_exit(kill(getppid(), SIGUSR1));
		CHECK(status_of(pid) == 0);
	}
	check_blocks(1);
}

/* Nor does one that is killed, wherever it was. */
static void killed(void)
{
	char *p = malloc(16 * MIB);

	fill(p, 16 * MIB, 1);
	for (unsigned int i = 0; i < 50; i++) {
		pid_t self = getpid(), pid = fork();
		int status;

		if (!pid) {
			usleep(i * 100);
			kill(getpid(), SIGKILL);
		}
		CHECK(pid > 0 && self == getpid());
		status = status_of(pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	CHECK(holds(p, 16 * MIB, 1));
}

/* Children that exec or exit at once copy nothing; one that lives copies all. */
static void early(void)
{
	long pages = 64 * MIB / 4096, least = pages;
	char *p = malloc(64 * MIB);
	struct rusage use;
	pid_t pid;

	fill(p, 64 * MIB, 1);
	/* A busy machine may hold some of them up. */
	for (int i = 0; i < 40; i++) {
		pid = fork();
		if (!pid) {
			if (i % 2)
				execl("/bin/true", "true", NULL);
			_exit(i % 2);
		}
		CHECK(wait4(pid, NULL, 0, &use) == pid);
		if (use.ru_minflt < least)
			least = use.ru_minflt;
	}
	printf("%ld faults\n", least);
	CHECK(least < pages / 8);
	pid = fork();
	if (!pid) {
		while (probe_status("RssAnon:") < 64 * 1024)
			usleep(1000);
		_exit(!holds(p, 64 * MIB, 1));
	}
	fill(p, 64 * MIB, 2);
	CHECK(status_of(pid) == 0);
}

/* Many at once, each with a child of its own. */
static void crowd(void)
{
	enum { CHILDREN = 100 };
	pid_t pids[CHILDREN];
	char *p = malloc(1 * MIB);

	for (uint64_t i = 0; i < CHILDREN; i++) {
		fill(p, 1 * MIB, i);
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (!pids[i]) {
			pid_t pid = fork();

			if (!pid)
				_exit(!holds(p, 1 * MIB, i));
			fill(p, 1 * MIB, ~i);
			_exit(status_of(pid) || !holds(p, 1 * MIB, ~i));
		}
	}
	for (int i = 0; i < CHILDREN; i++)
		CHECK(status_of(pids[i]) == 0);
}

/* Without a descriptor to spare a child has no heap, and the parent all of it. */
static void starved(void)
{
	char *p = malloc(16 * MIB);
	struct rlimit limit = {0, 0};
	pid_t pid;

	fill(p, 16 * MIB, 1);
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	pid = fork();
	if (!pid) {
		free(hide(malloc(64 * KIB)));
		_exit(0);
	}
	CHECK(status_of(pid) == 0);
	CHECK(holds(p, 16 * MIB, 1));
}

/* Small holes, too: of what calloc has cleared, and of what the program has emptied. */
static void emptied(void)
{
	char *zeros = calloc(1, 256 * KIB), *block = malloc(256 * KIB);
	char *page = block + (-(uintptr_t)block & 4095) + 64 * KIB;
	int go[2];
	pid_t pid;

	CHECK(probe_holds(&arena, zeros) && probe_holds(&arena, block) && !pipe(go));
	zeros[0] = zeros[256 * KIB - 1] = 1;
	fill(block, 256 * KIB, 1);
	CHECK(!madvise(page, 8 * KIB, MADV_DONTNEED));
	pid = fork();
	if (!pid) {
		await(go[0]);
		for (size_t i = 1; i < 256 * KIB - 1; i++)
			CHECK(!zeros[i]);
		for (size_t i = 0; i < 8 * KIB; i++)
			CHECK(!page[i]);
		CHECK(holds(block, 64 * KIB, 1));
		exit(0);
	}
	memset(zeros, 2, 256 * KIB);
	memset(block, 2, 256 * KIB);
	CHECK(write(go[1], "g", 1) == 1);
	CHECK(status_of(pid) == 0);
}

static long file_kib(void)
{
	struct stat st;

	CHECK(!fstat(heap_memfd(), &st));
	return (long)st.st_blocks / 2;
}

/* A child looks at its copy once all of it is its own, and nothing has got a page by that. */
static void copies_only(long most_kib, void (*look)(void), void (*change)(void))
{
	long file = file_kib(), before = probe_status("RssAnon:");
	int go[2];
	pid_t pid;

	CHECK(!pipe(go));
	pid = fork();
	if (!pid) {
		/* A child that forks has its copy first. */
		pid = fork();
		if (!pid)
			_exit(0);
		CHECK(status_of(pid) == 0);
		printf("child holds %ld KiB\n", probe_status("RssAnon:") - before);
		CHECK(probe_status("RssAnon:") < before + most_kib);
		await(go[0]);
		look();
		exit(0);
	}
	change();
	CHECK(write(go[1], "g", 1) == 1);
	CHECK(status_of(pid) == 0);
	if (file_kib() != file)
		printf("the file grew from %ld to %ld KiB\n", file, file_kib());
	CHECK(file_kib() == file);
}

enum { SCATTERED = 24000, LIVE = 5 };
static char *scattered[SCATTERED];

static void write_scattered(uint64_t seed)
{
	for (size_t i = 0; i < SCATTERED; i += LIVE)
		fill(scattered[i], 4 * KIB, seed + i);
}

static void look_scattered(void)
{
	for (size_t i = 0; i < SCATTERED; i += LIVE)
		CHECK(holds(scattered[i], 4 * KIB, i));
}

static void change_scattered(void)
{
	write_scattered(1);
}

/* Thousands of blocks with dead ones between them. */
static void many(void)
{
	for (int i = 0; i < SCATTERED; i++) {
		scattered[i] = malloc(64 * KIB);
		CHECK(probe_holds(&arena, scattered[i]));
	}
	for (int i = 0; i < SCATTERED; i++)
		if (i % LIVE)
			free(scattered[i]);
	write_scattered(0);
	copies_only(64 * 1024, look_scattered, change_scattered);
}

#define SPARSE	  (1024 * MIB)
#define DATA_STEP (192 * KIB)
static char *sparse;

static void look_sparse(void)
{
	for (size_t i = 0; i < SPARSE; i += DATA_STEP) {
		CHECK(holds(sparse + i, 4 * KIB, i));
		for (size_t k = 4 * KIB; k < 12 * KIB && i + k < SPARSE; k++)
			CHECK(!sparse[i + k]);
	}
}

static void change_sparse(void)
{
	for (size_t i = 0; i < SPARSE; i += DATA_STEP)
		fill(sparse + i, 4 * KIB, i + 1);
}

/* Thousands of pages with others between them that were never touched. */
static void holes(void)
{
	sparse = calloc(1, SPARSE);
	CHECK(probe_holds(&arena, sparse));
	for (size_t i = 0; i < SPARSE; i += DATA_STEP)
		fill(sparse + i, 4 * KIB, i);
	copies_only(64 * 1024, look_sparse, change_sparse);
}

int main(int argc, char **argv)
{
	static const struct fork_case cases[] = {
		{"untouched", untouched}, {"closing", closing}, {"orphan", orphan},
		{"stopped", stopped},	  {"killed", killed},	{"early", early},
		{"crowd", crowd},	  {"starved", starved}, {"handler", handler},
		{"traced", traced},	  {"many", many},	{"holes", holes},
		{"emptied", emptied},
	};

	return fork_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
