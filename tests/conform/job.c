// SPDX-License-Identifier: BSD-3-Clause
#include "job.h"
#include "../random.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CASE_SECONDS 300 /* a slow machine, under sanitizers */

enum { EXIT_SKIP = 77 };

static uint64_t random_state;

void job_fail(const char *file, int line, const char *what, long long got, long long want)
{
	fprintf(stderr, "%s:%d: %s: got %lld, want %lld (pid %d)\n", file, line, what, got, want,
		(int)getpid());
	_exit(1);
}

void job_skip(const char *why)
{
	fprintf(stderr, "skipped: %s\n", why);
	_exit(EXIT_SKIP);
}

void job_die(void)
{
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

uint64_t job_random(void)
{
	return random_next(&random_state);
}

static oc_node *join(struct job *job, const char *name)
{
	struct oc_node_attr attr = {.size = sizeof(attr),
				    .name = name,
				    .fd = job->fd,
				    .peer_fds = job->peer_fds,
				    .rank = job->rank,
				    .nranks = job->nranks,
				    .timeout_ms = 20000};
	oc_node *node = NULL;

	CHECK_EQ(oc_node_join(&attr, &node), 0);
	CHECK(node != NULL);
	return node;
}

oc_node *job_join(struct job *job)
{
	return join(job, NULL);
}

oc_node *job_join_by_name(struct job *job)
{
	return join(job, job->name);
}

static void run_rank(struct job *job, const struct job_case *test)
{
	alarm(CASE_SECONDS);
	random_state = random_state * 31 + job->rank;
	test->body(job);
	fflush(NULL);
	exit(0); /* not _exit: leak checkers look now */
}

/* 0 passed, EXIT_SKIP, or 1. */
static int judge(pid_t pid, uint32_t rank)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return 1;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return 0;
	if (WIFEXITED(status) && (!WEXITSTATUS(status) || WEXITSTATUS(status) == EXIT_SKIP))
		return WEXITSTATUS(status);
	fprintf(stderr, "rank %u: %s %d\n", rank, WIFSIGNALED(status) ? "signal" : "exit status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return 1;
}

static int run_case(const struct job_case *test, uint32_t nranks)
{
	struct job job = {.nranks = nranks};
	int far[8], verdict = 0;
	pid_t pids[8];

	snprintf(job.name, sizeof(job.name), "test-%d-%s", (int)getpid(), test->name);
	job.shared = mmap(NULL, sizeof(*job.shared), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(job.shared != MAP_FAILED);
	for (uint32_t i = 1; i < nranks; i++) {
		int pair[2];

		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		job.peer_fds[i] = pair[0];
		far[i] = pair[1];
	}
	fflush(NULL);
	for (uint32_t i = 0; i < nranks; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (pids[i])
			continue;
		job.rank = i;
		for (uint32_t k = 1; k < nranks; k++) {
			if (i)
				close(job.peer_fds[k]);
			if (k == i)
				job.fd = far[k];
			else
				close(far[k]);
		}
		run_rank(&job, test);
	}
	for (uint32_t i = 1; i < nranks; i++) {
		close(job.peer_fds[i]);
		close(far[i]);
	}
	for (uint32_t i = 0; i < nranks; i++) {
		int one = judge(pids[i], i);

		verdict = verdict == 1 || !one ? verdict : one;
	}
	munmap(job.shared, sizeof(*job.shared));
	return verdict;
}

static bool chosen(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc < 2;
}

int job_main(int argc, char **argv, const struct job_case *cases, size_t count)
{
	const char *seed = getenv("ONECOPY_TEST_SEED");
	int ran = 0, failed = 0;

	random_state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
	printf("seed %llu\n", (unsigned long long)random_state);
	for (size_t i = 0; i < count; i++) {
		if (!chosen(argc, argv, cases[i].name))
			continue;
		for (uint32_t n = cases[i].min_ranks; n <= cases[i].max_ranks; n++) {
			int verdict = run_case(&cases[i], n);

			printf("%-6s %s, %u ranks\n",
			       !verdict		      ? "ok"
			       : verdict == EXIT_SKIP ? "skip"
						      : "FAILED",
			       cases[i].name, n);
			ran += verdict != EXIT_SKIP;
			failed += verdict == 1;
		}
	}
	return failed ? 1 : ran ? 0 : EXIT_SKIP;
}
