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
#include <sys/wait.h>
#include <unistd.h>

#include "heap_probe.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static struct probe arena;

static void *hide(void *p)
{
	__asm__ volatile("" : "+r"(p));
	return p;
}

/* Words that are never the same in two places or two rounds. */
static void fill(void *p, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes / 8; i++)
		((uint64_t *)p)[i] = (i + 1) * 0x9e3779b97f4a7c15ull + seed;
}

static bool holds(const void *p, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes / 8; i++)
		if (((const uint64_t *)p)[i] != (i + 1) * 0x9e3779b97f4a7c15ull + seed)
			return false;
	return true;
}

static int status_of(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

/* Blocks of every kind, scattered by frees between them. */
enum { BLOCKS = 40 };
static char *blocks[BLOCKS];
static size_t sizes[BLOCKS];

static void make_blocks(uint64_t seed)
{
	static const size_t some[] = {16 * KIB, 50 * KIB, 130 * KIB, 3 * MIB, 11 * MIB};
	void *holes[BLOCKS];

	for (int i = 0; i < BLOCKS; i++) {
		sizes[i] = some[i % 5];
		holes[i] = hide(malloc(sizes[(i * 7) % (i + 1)]));
		blocks[i] = malloc(sizes[i]);
		CHECK(probe_holds(&arena, blocks[i]));
		fill(blocks[i], sizes[i], seed + (uint64_t)i);
	}
	for (int i = 0; i < BLOCKS; i++)
		free(holes[i]);
}

static void check_blocks(uint64_t seed)
{
	for (int i = 0; i < BLOCKS; i++)
		CHECK(holds(blocks[i], sizes[i], seed + (uint64_t)i));
}

static void refill_blocks(uint64_t seed)
{
	for (int i = 0; i < BLOCKS; i++)
		fill(blocks[i], sizes[i], seed + (uint64_t)i);
}

/* A second mapping of the arena, as a peer has it. */
static char *peer_view(void)
{
	char path[64];

	for (int fd = 3; fd < 256; fd++) {
		char target[128];
		ssize_t len;
		char *view;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		len = readlink(path, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = '\0';
		if (!strstr(target, "onecopy-heap"))
			continue;
		view = mmap(NULL, (size_t)(arena.end - arena.base), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_NORESERVE, fd, 0);
		CHECK(view != MAP_FAILED);
		return view;
	}
	CHECK(!"no memfd");
	return NULL;
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

static void nested(void)
{
	pid_t pid;

	make_blocks(1);
	pid = fork();
	if (!pid) {
		check_blocks(1);
		refill_blocks(2);
		pid = fork();
		if (!pid) {
			check_blocks(2);
			for (int i = 0; i < BLOCKS; i++)
				blocks[i] = realloc(blocks[i], sizes[i] * 2);
			check_blocks(2);
			exit(0);
		}
		refill_blocks(3);
		CHECK(status_of(pid) == 0);
		check_blocks(3);
		exit(0);
	}
	refill_blocks(4);
	CHECK(status_of(pid) == 0);
	check_blocks(4);
}

static volatile bool stop;

static void *churn(void *arg)
{
	uintptr_t state = (uintptr_t)arg * 77 + 1;

	while (!stop) {
		size_t bytes = 16 * KIB << state % 10;
		char *p = malloc(bytes);

		CHECK(p);
		p[0] = p[bytes - 1] = 1;
		free(p);
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		state ^= state >> 33;
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
		shared |= strstr(line, "/memfd:onecopy-heap") && strstr(line, " rw-s ");
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
		char target[128], path[64];

		CHECK(!maps_shared());
		for (int fd = 0; fd < 256; fd++) {
			snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
			memset(target, 0, sizeof(target));
			CHECK(readlink(path, target, sizeof(target) - 1) < 0 ||
			      !strstr(target, "onecopy-heap"));
		}
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
	CHECK(!setrlimit(RLIMIT_AS, &limit));
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

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"isolation", isolation}, {"nested", nested},	    {"threads", threads},
		{"raw_clone", raw_clone}, {"frugal", frugal},	    {"descriptors", descriptors},
		{"refused", refused},	  {"untouched", untouched}, {"closing", closing},
		{"orphan", orphan},	  {"stopped", stopped},	    {"killed", killed},
		{"early", early},	  {"crowd", crowd},	    {"starved", starved},
	};

	CHECK(argc == 2);
	arena = probe_arena();
	CHECK(arena.base);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[1])) {
			cases[i].run();
			return 0;
		}
	return 2;
}
