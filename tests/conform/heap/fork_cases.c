// SPDX-License-Identifier: BSD-3-Clause
/* fork_cases NAME: fork in a process with a shared heap; exits 0 when it holds. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "fork_blocks.h"
#include "../../random.h"

/* A second mapping of the arena, as a peer has it. */
static char *peer_view(void)
{
	char *view = mmap(NULL, (size_t)(arena.end - arena.base), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_NORESERVE, heap_memfd(), 0);

	CHECK(view != MAP_FAILED);
	return view;
}

/* The child has what was there, whoever writes what afterwards. */
static void isolation(void)
{
	int to_child[2], to_parent[2];
	char *view, byte;
	pid_t pid;

	make_blocks(1000);
	view = peer_view();
	CHECK(!pipe(to_child) && !pipe(to_parent));
	pid = fork();
	if (!pid) {
		close(to_child[1]);
		/* The parent and its peer write first. */
		CHECK(read(to_child[0], &byte, 1) == 1);
		check_blocks(1000);
		refill_blocks(2000);
		CHECK(write(to_parent[1], "w", 1) == 1);
		CHECK(read(to_child[0], &byte, 1) == 1);
		check_blocks(2000);
		for (int i = 0; i < BLOCKS; i++)
			free(blocks[i]);
		for (int i = 0; i < BLOCKS; i++) {
			char *p = hide(calloc(1, sizes[i]));

			CHECK(p && !p[sizes[i] - 1]);
			memset(p, 1, sizes[i]);
		}
		exit(0);
	}
	close(to_parent[1]);
	for (int i = 0; i < BLOCKS; i++)
		if (i % 2)
			fill(blocks[i], sizes[i], 3000 + (uint64_t)i);
		else
			fill(view + (blocks[i] - arena.base), sizes[i], 3000 + (uint64_t)i);
	CHECK(write(to_child[1], "g", 1) == 1 && read(to_parent[0], &byte, 1) == 1);
	check_blocks(3000);
	for (int i = 0; i < BLOCKS; i++)
		CHECK(holds(view + (blocks[i] - arena.base), sizes[i], 3000 + (uint64_t)i));
	CHECK(write(to_child[1], "g", 1) == 1);
	CHECK(status_of(pid) == 0);
	check_blocks(3000);
	/* The heap goes on in the parent. */
	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = realloc(blocks[i], sizes[i] + 100 * KIB);
		CHECK(probe_holds(&arena, blocks[i]) &&
		      holds(blocks[i], sizes[i], 3000 + (uint64_t)i));
	}
}

static void grow_blocks(void)
{
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = realloc(blocks[i], sizes[i] * 2);
	check_blocks(2);
}

static void nested(void)
{
	fork_twice(grow_blocks);
}

static volatile bool stop;

static void *churn(void *arg)
{
	uint64_t state = (uintptr_t)arg;

	while (!stop) {
		size_t bytes = 16 * KIB << random_next(&state) % 10;
		char *p = malloc(bytes);

		CHECK(p);
		p[0] = p[bytes - 1] = 1;
		free(p);
	}
	return NULL;
}

/* Forks from two threads while others allocate; every child allocates too. */
static void *fork_often(void *arg)
{
	uint64_t seed = (uintptr_t)arg;
	char *mine = malloc(1 * MIB);

	for (int i = 0; i < 40; i++) {
		pid_t pid;

		fill(mine, 1 * MIB, seed + (uint64_t)i);
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			CHECK(holds(mine, 1 * MIB, seed + (uint64_t)i));
			mine = realloc(mine, 2 * MIB);
			CHECK(mine && holds(mine, 1 * MIB, seed + (uint64_t)i));
			free(mine);
			free(hide(malloc(20 * MIB)));
			_exit(0);
		}
		fill(mine, 1 * MIB, ~seed);
		CHECK(status_of(pid) == 0);
	}
	free(mine);
	return NULL;
}

static void threads(void)
{
	pthread_t workers[2], forkers[2];

	for (uintptr_t i = 0; i < 2; i++)
		CHECK(!pthread_create(&workers[i], NULL, churn, (void *)(i + 1)));
	for (uintptr_t i = 0; i < 2; i++)
		CHECK(!pthread_create(&forkers[i], NULL, fork_often, (void *)((i + 1) << 40)));
	for (int i = 0; i < 2; i++)
		pthread_join(forkers[i], NULL);
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(workers[i], NULL);
}

/* A child the C library knows nothing of faults; it never writes what is ours. */
static void raw_clone(void)
{
	char *p = malloc(1 * MIB);
	pid_t pid;
	int status;

	p[0] = 1;
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!pid) {
		struct rlimit none = {0, 0};

		setrlimit(RLIMIT_CORE, &none);
		*(volatile char *)p = 2;
		_exit(0);
	}
	status = status_of(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	CHECK(p[0] == 1);
}

/* Only what is live and touched is copied. */
static void frugal(void)
{
	char *freed = malloc(512 * MIB), *untouched = malloc(2048 * MIB);
	char *sparse = malloc(2048 * MIB), *live = malloc(64 * KIB);
	long before;
	pid_t pid;

	CHECK(probe_holds(&arena, untouched));
	memset(freed, 1, 512 * MIB);
	free(freed);
	sparse[512 * MIB] = 1;
	live[0] = 1;
	before = probe_status("RssAnon:");
	pid = fork();
	if (!pid) {
		CHECK(sparse[512 * MIB] == 1 && live[0] == 1);
		printf("child holds %ld KiB\n", probe_status("RssAnon:") - before);
		CHECK(probe_status("RssAnon:") < before + 64 * 1024);
		exit(0);
	}
	CHECK(status_of(pid) == 0);
	CHECK(probe_status("RssAnon:") < before + 1024);
	free(untouched);
}

/* Whether the arena is mapped for all to see. */
static bool maps_shared(void)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	bool shared = false;

	while (maps && fgets(line, sizeof(line), maps))
		shared |= strstr(line, "onecopy-heap") && strstr(line, " rw-s ");
	CHECK(maps && !fclose(maps));
	return shared;
}

/* Children are no ranks: they keep neither the arena nor its memfd. */
static void descriptors(void)
{
	char *p = malloc(1 * MIB);
	pid_t pid;

	p[0] = 1;
	pid = fork();
	if (!pid) {
		CHECK(!maps_shared());
		CHECK(heap_memfd() < 0);
		exit(0);
	}
	CHECK(status_of(pid) == 0);
}

/* A fork that finds no memory for the copy: the child faults, the parent lives. */
static void refused(void)
{
	char *p = malloc(512 * MIB);
	struct rlimit limit;
	int status;
	pid_t pid;

	memset(p, 1, 512 * MIB);
	limit.rlim_cur = limit.rlim_max = (rlim_t)probe_status("VmSize:") * 1024 -
					  (rlim_t)(arena.end - arena.base) + 64 * MIB;
	/* Past the preload, which would leave room for the arena. */
	CHECK(!syscall(SYS_prlimit64, 0, RLIMIT_AS, &limit, NULL));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		free(hide(malloc(100)));
		_exit(p[0]);
	}
	status = status_of(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	CHECK(p[0] == 1);
}

static volatile sig_atomic_t stops;

static void stopped(int number)
{
	stops++;
}

/* The terminal's stop, which the program holds back, or handles, waits until it has forked. */
static void held_back(void)
{
	char *block = malloc(4 * MIB);
	sigset_t stop, pending;
	pid_t pid;

	fill(block, 4 * MIB, 1);
	CHECK(signal(SIGTSTP, stopped) != SIG_ERR);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	CHECK(!sigprocmask(SIG_BLOCK, &stop, NULL));
	CHECK(!kill(getpid(), SIGTSTP));
	pid = fork();
	if (!pid)
		_exit(!holds(block, 4 * MIB, 1));
	CHECK(status_of(pid) == 0);
	CHECK(!sigpending(&pending) && sigismember(&pending, SIGTSTP) && !stops);
	CHECK(!sigprocmask(SIG_UNBLOCK, &stop, NULL) && stops == 1);
}

static void *fork_cancelled(void *arg)
{
	pid_t *pid = arg;

	CHECK(!pthread_cancel(pthread_self()));
	*pid = fork();
	if (!*pid)
		_exit(7);
	pthread_testcancel();
	return NULL;
}

/* A thread that is to be cancelled is so after fork(), on neither side in it. */
static void cancelled(void)
{
	char *much = malloc(4 * MIB);
	pthread_t forker;

	fill(much, 4 * MIB, 1);
	for (int i = 0; i < 2; i++) {
		pid_t pid = -1;
		void *end;

		CHECK(!pthread_create(&forker, NULL, fork_cancelled, &pid));
		CHECK(!pthread_join(forker, &end) && end == PTHREAD_CANCELED && pid > 0);
		CHECK(WEXITSTATUS(status_of(pid)) == 7);
		free(much);
		much = NULL;
		make_blocks(1);
	}
}

/* In the child its thread ends, as the last one: with that the process does. */
static void *fork_ending(void *arg)
{
	pid_t *pid = arg;
	char *own = malloc(64 * KIB);

	CHECK(probe_holds(&arena, own));
	memset(own, 5, 64 * KIB);
	*pid = fork();
	CHECK(own[0] == 5 && own[64 * KIB - 1] == 5);
	return NULL;
}

static void ending(void)
{
	pthread_t forker;
	pid_t pid = -1;

	make_blocks(1);
	CHECK(!pthread_create(&forker, NULL, fork_ending, &pid));
	CHECK(!pthread_join(forker, NULL));
	CHECK(status_of(pid) == 0);
	pid = fork();
	if (!pid)
		pthread_exit(NULL);
	CHECK(status_of(pid) == 0);
}

int main(int argc, char **argv)
{
	static const struct fork_case cases[] = {
		{"isolation", isolation}, {"nested", nested},	    {"threads", threads},
		{"raw_clone", raw_clone}, {"frugal", frugal},	    {"descriptors", descriptors},
		{"refused", refused},	  {"held_back", held_back}, {"cancelled", cancelled},
		{"ending", ending},
	};

	return fork_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
