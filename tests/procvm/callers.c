// SPDX-License-Identifier: BSD-3-Clause
/*
 * callers WHAT: ranks 0 and 1 of a job; rank 0 calls process_vm_readv(2) and process_vm_writev(2)
 * on rank 1 as few do: refused by the kernel, in the handler of a signal that came in the middle of
 * such a call, after a jump out of one, in a vfork() child; or on a process that has got the number
 * of rank 1, which is gone. "stranger ADDRESS" is that process.
 *
 * A copy is interrupted where it meets a page of the caller's that the caller has taken access
 * from: by SIGSEGV, which the system call never raises.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "bare_call.h"

#define PAGE   4096u
#define PAGES  12 /* of a call: fewer than a rank that waits would copy half of */
#define BYTES  ((size_t)PAGES * PAGE)
#define NOBODY 65534

struct places {
	pid_t pid;
	char *heap, *mapped;
};

static struct places mine, theirs;
static int rank;

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s (%s)\n", what, strerror(errno));
	MPI_Abort(MPI_COMM_WORLD, 2);
	_exit(2);
}

static char byte_of(int owner, size_t i)
{
	return (char)(i * 7 + (size_t)(owner ? 100 : 30) + i / PAGE);
}

/* In whole pages, as what is protected has to be. */
static void find_places(void)
{
	mine.pid = getpid();
	mine.heap = aligned_alloc(PAGE, 2 * BYTES);
	mine.mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	require(mine.heap && mine.mapped != MAP_FAILED, "memory");
	for (size_t i = 0; i < BYTES; i++)
		mine.heap[i] = mine.mapped[i] = byte_of(rank, i);
}

static ssize_t call(bool put, struct iovec here, const struct iovec *there, unsigned long nthere)
{
	return (put ? process_vm_writev : process_vm_readv)(theirs.pid, &here, 1, there, nthere, 0);
}

/* What rank 1 has is had, whole. */
static bool reads_well(char *to)
{
	struct iovec there = {theirs.heap, BYTES};

	memset(to, 0, BYTES);
	errno = 12345;
	if (call(false, (struct iovec){to, BYTES}, &there, 1) != (ssize_t)BYTES || errno != 12345)
		return false;
	for (size_t i = 0; i < BYTES; i++)
		if (to[i] != byte_of(1, i))
			return false;
	return true;
}

/* ---- who may not ---------------------------------------------------------------------------- */

/* @done or @error, by the front; the kernel says @error of the first page of that list. */
static void expect(bool put, const struct iovec *there, unsigned long nthere, ssize_t done,
		   int error)
{
	struct iovec here = {mine.heap, BYTES};
	ssize_t got;

	require(bare_call(put, theirs.pid, &here, 1, there, nthere, 0) == -1 && errno == EPERM,
		"the kernel does not refuse it");
	errno = 12345;
	got = call(put, here, there, nthere);
	if (got == done && errno == (done < 0 ? error : 12345))
		return;
	fprintf(stderr, "%s: %zd, not %zd\n", put ? "write" : "read", got, done);
	require(false, "another result");
}

static void *ask_as_nobody(void *arg)
{
	struct iovec heap = {theirs.heap, BYTES}, mapped = {theirs.mapped, BYTES};
	struct iovec mixed[] = {{theirs.heap, PAGE}, {theirs.mapped, PAGE}, {theirs.heap, PAGE}};
	struct iovec other[] = {{theirs.mapped, PAGE}, {theirs.heap, PAGE}};

	/* This thread alone, as the system call has it. */
	if (!geteuid())
		require(!syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY), "setresuid");
	for (int put = 0; put < 2; put++) {
		expect(put, &heap, 1, (ssize_t)BYTES, 0);
		expect(put, &mapped, 1, -1, EPERM);
		expect(put, mixed, 3, PAGE, 0);
		expect(put, other, 2, -1, EPERM);
	}
	return arg;
}

/* Of rank 1, whose memory is for root alone, or with a filter of system calls for nobody. */
static void refused(void)
{
	pthread_t thread;

	prctl(PR_SET_DUMPABLE, rank == 0);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank) {
		require(!pthread_create(&thread, NULL, ask_as_nobody, NULL), "a thread");
		pthread_join(thread, NULL);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	prctl(PR_SET_DUMPABLE, 1);
}

/* ---- in the middle -------------------------------------------------------------------------- */

static sigjmp_buf back;
static volatile sig_atomic_t leaves, interrupted;
static char *volatile closed; /* the page without access */
static char *aside;	      /* BYTES of room for the handler */

static void interrupt(int number, siginfo_t *info, void *context)
{
	(void)context;
	if ((uintptr_t)info->si_addr - (uintptr_t)closed >= PAGE) {
		signal(number, SIG_DFL);
		return;
	}
	interrupted++;
	mprotect(closed, PAGE, PROT_READ | PROT_WRITE);
	if (leaves)
		siglongjmp(back, 1);
	if (!reads_well(aside))
		abort();
	errno = 54321;
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_sigaction = interrupt, .sa_flags = SA_SIGINFO | SA_NODEFER};

	require(!sigaction(SIGSEGV, &action, NULL), "sigaction");
	aside = malloc(BYTES);
	require(aside, "memory");
}

static void close_page(size_t page)
{
	closed = mine.heap + page * PAGE;
	require(!mprotect(closed, PAGE, PROT_NONE), "mprotect");
}

/* Each page of a copy in turn, whose handler makes such a call itself. */
static void handlers(void)
{
	struct iovec here = {mine.heap, BYTES}, there = {theirs.heap, BYTES};
	struct iovec room = {theirs.heap + BYTES, BYTES};

	catch_signals();
	for (size_t page = 0; page < PAGES; page++) {
		interrupted = 0;
		memset(mine.heap, 0, BYTES);
		close_page(page);
		require(call(false, here, &there, 1) == (ssize_t)BYTES, "an interrupted call");
		require(interrupted == 1, "it was not interrupted once");
		for (size_t i = 0; i < BYTES; i++)
			require(mine.heap[i] == byte_of(1, i), "an interrupted call's bytes");
		close_page(page);
		require(call(true, here, &room, 1) == (ssize_t)BYTES, "an interrupted write");
		require(interrupted == 2, "a write was not interrupted once");
		memset(mine.heap, 0, BYTES);
		require(call(false, here, &room, 1) == (ssize_t)BYTES &&
				!memcmp(mine.heap, aside, BYTES),
			"an interrupted write's bytes");
	}
}

static void *in_thread(void *arg)
{
	char *block = malloc(BYTES);

	for (int i = 0; i < 100; i++)
		require(reads_well(block), "a thread's call after a jump");
	free(block);
	return arg;
}

/* The handler does not come back; nothing that the call may have held is missed by later ones, nor
 * by those of another thread. */
static void jumps(void)
{
	struct iovec here = {mine.heap, BYTES}, there = {theirs.heap, BYTES};
	pthread_t thread;

	catch_signals();
	leaves = true;
	if (!sigsetjmp(back, 1)) {
		close_page(PAGES / 2);
		call(false, here, &there, 1);
		require(false, "a call went on");
	}
	require(interrupted == 1, "it was not interrupted");
	require(reads_well(aside) && reads_well(mine.heap), "a call after a jump");
	require(!pthread_create(&thread, NULL, in_thread, NULL), "a thread");
	pthread_join(thread, NULL);
}

/* ---- children and strangers ----------------------------------------------------------------- */

/* Which has this process's memory and another number. */
static void vforks(void)
{
	struct iovec here = {mine.mapped, BYTES}, own = {mine.heap, BYTES};
	char *argv[] = {"true", NULL};
	int status;

	for (volatile int executes = 0; executes < 2; executes++) {
		char *block = malloc(BYTES);
		volatile bool well = false, parents = false;
		pid_t child = vfork();

		if (!child) {
			well = reads_well(block);
			parents =
				process_vm_readv(mine.pid, &here, 1, &own, 1, 0) == (ssize_t)BYTES;
			if (executes)
				execv("/bin/true", argv);
			_exit(executes);
		}
		require(child > 0 && waitpid(child, &status, 0) == child && !status, "vfork");
		require(well, "a vfork child's call");
		require(parents && !memcmp(mine.heap, mine.mapped, BYTES), "one on its parent");
		require(reads_well(block), "its parent's call");
		free(block);
	}
}

static int be_stranger(const char *address)
{
	char *at =
		mmap((void *)(uintptr_t)strtoull(address, NULL, 16), BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (at == MAP_FAILED)
		return 3;
	memset(at, 's', BYTES);
	if (write(1, "s", 1) != 1)
		return 4;
	pause();
	return 0;
}

/* With a number of our choice, or -1. It comes from no fork that anybody hears of, so it has little
 * more than its stack. */
static pid_t start_stranger(pid_t number, int out)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&number,
		.set_tid_size = 1,
	};
	char address[32], *argv[] = {"callers", "stranger", address, NULL}, *envp[] = {NULL};
	pid_t child;

	snprintf(address, sizeof(address), "%llx", (unsigned long long)(uintptr_t)theirs.heap);
	child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (child)
		return child;
	if (dup2(out, 1) == 1)
		execve("/proc/self/exe", argv, envp);
	_exit(127);
}

/* Rank 1 dies, and has been waited for by its launcher; then somebody else has its number. */
static void reused(void)
{
	struct iovec here = {mine.heap, BYTES}, there = {theirs.heap, BYTES};
	pid_t stranger;
	int ready[2];

	MPI_Barrier(MPI_COMM_WORLD);
	if (rank)
		kill(getpid(), SIGKILL);
	while (!kill(theirs.pid, 0))
		usleep(1000);
	require(!pipe(ready), "a pipe");
	stranger = start_stranger(theirs.pid, ready[1]);
	if (stranger < 0) {
		printf("cannot choose a number: %s\n", strerror(errno));
		return;
	}
	close(ready[1]);
	require(stranger == theirs.pid && read(ready[0], &(char){0}, 1) == 1, "a stranger");
	require(bare_call(false, stranger, &here, 1, &there, 1, 0) == (ssize_t)BYTES &&
			*mine.heap == 's',
		"the stranger's memory by the kernel");
	memset(mine.heap, 0, BYTES);
	require(call(false, here, &there, 1) == (ssize_t)BYTES, "a call on a stranger");
	for (size_t i = 0; i < BYTES; i++)
		require(mine.heap[i] == 's', "another one's memory");
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
		bool both; /* ranks */
	} all[] = {
		{"refused", refused, true}, {"handlers", handlers, false}, {"jumps", jumps, false},
		{"vforks", vforks, false},  {"reused", reused, true},
	};
	int size, ran = 0;
	bool dies;

	if (argc == 3 && !strcmp(argv[1], "stranger"))
		return be_stranger(argv[2]);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	require(argc == 2 && size == 2, "callers WHAT, 2 ranks");
	find_places();
	MPI_Sendrecv(&mine, sizeof(mine), MPI_BYTE, !rank, 0, &theirs, sizeof(theirs), MPI_BYTE,
		     !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	dies = !strcmp(argv[1], "reused");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(argv[1], all[i].name))
			continue;
		if (!rank || all[i].both)
			all[i].run();
		ran++;
	}
	require(ran, "no such caller");
	if (!dies) {
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Finalize();
	}
	if (!rank)
		puts("as it should be");
	fflush(stdout);
	_exit(0);
}
