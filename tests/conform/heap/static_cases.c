// SPDX-License-Identifier: BSD-3-Clause
/* static_cases NAME: a program with large static arrays, which are in the arena; exits 0 when it
 * holds. */
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fork_blocks.h"

#define PAGE ((size_t)4096)

static char early[64]; /* what a constructor writes is there before */
/* What the file does not fill then begins with a page, and with the copy of environ. */
static char array[24 << 20] __attribute__((aligned(65536)));
static char untouched[512 << 20];
static int number = 5;

__attribute__((constructor)) static void start(void)
{
	strcpy(early, "written before main");
	array[sizeof(array) - 1] = 'e';
}

/* What a peer has of the array. */
static char *peer_view(size_t bytes)
{
	char *at = array + PAGE - (uintptr_t)array % PAGE, *view;

	view = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, heap_memfd(), probe_place(at));
	CHECK(view != MAP_FAILED);
	return view - (at - array);
}

/* Nothing is lost, nothing is made resident, and a peer sees it. */
static void shared(void)
{
	char *view;

	CHECK(probe_place(array + sizeof(array) / 2) >= 0);
	CHECK(!strcmp(early, "written before main") && array[sizeof(array) - 1] == 'e');
	CHECK(number == 5);
	CHECK(probe_status("RssShmem:") < 4 * 1024);
	view = peer_view(sizeof(array) / 2);
	fill(array, sizeof(array), 1);
	CHECK(holds(view + 8 * PAGE, 8 * PAGE, 1 + 8 * PAGE / 8 * 0x9e3779b97f4a7c15ull));
	view[PAGE] = 'p';
	CHECK(array[PAGE] == 'p');
	CHECK(!untouched[sizeof(untouched) / 2]);
}

static void private(void)
{
	CHECK(probe_place(array + sizeof(array) / 2) < 0);
}

/* The child has what was there, whoever writes what afterwards. */
static void isolation(void)
{
	char *view = peer_view(sizeof(array) / 2), byte;
	int to_child[2], to_parent[2];
	pid_t pid;

	fill(array, sizeof(array), 1);
	number = 7;
	CHECK(!pipe(to_child) && !pipe(to_parent));
	pid = fork();
	if (!pid) {
		close(to_child[1]);
		CHECK(read(to_child[0], &byte, 1) == 1);
		CHECK(holds(array, sizeof(array), 1) && number == 7);
		CHECK(!untouched[0] && !untouched[sizeof(untouched) / 2]);
		fill(array, sizeof(array), 2);
		untouched[5] = 2;
		CHECK(write(to_parent[1], "w", 1) == 1);
		CHECK(read(to_child[0], &byte, 1) == 1);
		CHECK(holds(array, sizeof(array), 2));
		exit(0);
	}
	close(to_parent[1]);
	fill(array, sizeof(array), 3);
	memset(view + PAGE, 0, PAGE);
	fill(array + PAGE, PAGE, 3 + PAGE / 8 * 0x9e3779b97f4a7c15ull);
	untouched[sizeof(untouched) / 2] = 3;
	CHECK(write(to_child[1], "w", 1) == 1 && read(to_parent[0], &byte, 1) == 1);
	CHECK(holds(array, sizeof(array), 3) && !untouched[5]);
	fill(array, sizeof(array), 4);
	CHECK(write(to_child[1], "w", 1) == 1);
	CHECK(status_of(pid) == 0);
	CHECK(holds(array, sizeof(array), 4));
}

/* A child of a child, and blocks of the heap beside it. */
static void nested(void)
{
	char *block = malloc(20 * MIB);
	pid_t pid;

	fill(array, sizeof(array), 1);
	fill(block, 20 * MIB, 1);
	pid = fork();
	if (!pid) {
		pid = fork();
		if (!pid) {
			CHECK(holds(array, sizeof(array), 1) && holds(block, 20 * MIB, 1));
			fill(array, sizeof(array), 2);
			exit(0);
		}
		CHECK(status_of(pid) == 0 && holds(array, sizeof(array), 1));
		fill(array, sizeof(array), 3);
		exit(0);
	}
	CHECK(status_of(pid) == 0);
	CHECK(holds(array, sizeof(array), 1) && holds(block, 20 * MIB, 1));
}

static void closed(void)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	nested();
}

/* A child that nobody told the library of faults, and has what it takes to execute a program. */
static void raw_clone(void)
{
	struct rlimit none = {0, 0};
	pid_t pid;
	int status;

	array[0] = array[sizeof(array) / 2] = 1;
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!pid) {
		setrlimit(RLIMIT_CORE, &none);
		*(volatile char *)&array[sizeof(array) / 2] = 2;
		_exit(0);
	}
	status = status_of(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	CHECK(array[sizeof(array) / 2] == 1);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!pid) {
		execle("/bin/true", "true", NULL, environ);
		_exit(1);
	}
	CHECK(status_of(pid) == 0);
}

/* What the program says of children, and what it throws away, as of other memory. */
static void advice(void)
{
	char *page = array + 16 * PAGE - (uintptr_t)array % PAGE, byte;
	struct rlimit none = {0, 0};
	pid_t pid;
	int status;

	fill(array, sizeof(array), 1);
	CHECK(!madvise(page, PAGE, MADV_DONTFORK));
	CHECK(!madvise(page + 2 * PAGE, PAGE, MADV_WIPEONFORK));
	CHECK(!madvise(page + 4 * PAGE, PAGE, MADV_DONTFORK));
	CHECK(!madvise(page + 4 * PAGE, PAGE, MADV_DOFORK));
	for (int i = 0; i < 5; i++) {
		byte = page[i * PAGE];
		pid = fork();
		if (!pid) {
			setrlimit(RLIMIT_CORE, &none);
			_exit(*(volatile char *)&page[i * PAGE] != (i == 2 ? 0 : byte));
		}
		status = status_of(pid);
		CHECK(i ? status == 0 : WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
		CHECK(page[i * PAGE] == byte);
	}
	CHECK(!madvise(page, 4 * PAGE, MADV_DONTNEED));
	for (size_t i = 0; i < 4 * PAGE; i++)
		CHECK(!page[i]);
	CHECK(page[4 * PAGE] == byte);
}

/* In a child, too, what is thrown away is zero, and not what the parent has or writes. */
static void dropped(void)
{
	char *block = malloc(20 * MIB), *pages[2], byte;
	int to_child[2];
	pid_t pid;

	fill(array, sizeof(array), 1);
	fill(block, 20 * MIB, 1);
	pages[0] = array + 16 * PAGE;
	pages[1] = block + 16 * PAGE - (uintptr_t)block % PAGE;
	CHECK(!pipe(to_child));
	pid = fork();
	if (!pid) {
		for (int i = 0; i < 2; i++)
			CHECK(!madvise(pages[i], 4 * PAGE, i ? MADV_FREE : MADV_DONTNEED));
		CHECK(read(to_child[0], &byte, 1) == 1);
		for (size_t i = 0; i < 4 * PAGE; i++)
			CHECK(!pages[0][i] && !pages[1][i]);
		CHECK(pages[0][4 * PAGE] && pages[1][4 * PAGE]);
		memset(pages[0], 9, 4 * PAGE);
		pid = fork();
		if (!pid)
			_exit(pages[0][0] != 9 || pages[1][0]);
		CHECK(status_of(pid) == 0);
		_exit(0);
	}
	memset(pages[0], 5, 4 * PAGE);
	memset(pages[1], 5, 4 * PAGE);
	CHECK(write(to_child[1], "w", 1) == 1);
	CHECK(status_of(pid) == 0);
	CHECK(pages[0][0] == 5 && pages[1][0] == 5);
}

int main(int argc, char **argv)
{
	static const struct fork_case cases[] = {
		{"shared", shared}, {"private", private}, {"isolation", isolation},
		{"nested", nested}, {"closed", closed},	  {"raw_clone", raw_clone},
		{"advice", advice}, {"dropped", dropped},
	};

	return fork_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
