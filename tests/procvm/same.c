// SPDX-License-Identifier: BSD-3-Clause
/*
 * same SEED CALLS [deaths]: ranks 0 and 1 of a job; rank 0 makes random calls of
 * process_vm_readv(2) and process_vm_writev(2) on rank 1, each once by the C library's name or by
 * number, which onecopy may answer, and once by the bare system call: count, errno and every byte
 * on both sides have to be the same. Lists hold memory of all kinds, on both sides, good and bad,
 * pieces of no length, too many. Then calls that are wrong altogether, children, threads, and, if
 * asked for, a peer that has died.
 */
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../random.h"
#include "bare_call.h"

#define BYTES	((size_t)192 << 10) /* of each memory that can be used */
#define PAGE	4096u
#define MOST	(IOV_MAX + 8)
#define THREADS 8

enum kind { HEAP, STATIC, STACK, MAPPED, GOOD, HALF = GOOD, NOWHERE, KERNEL, NOTHING, KINDS };

/* Of one process. HALF: its second page and those behind may not be touched. */
struct places {
	char *at[KINDS];
	pid_t pid;
};

struct call {
	bool write;
	pid_t pid;
	struct iovec local[MOST];
	unsigned long nlocal;
	struct iovec remote[MOST];
	unsigned long nremote;
	unsigned long flags;
};

/* So much that it is in the arena, but for what shares a page with initialised data. */
static char data[(2 << 20) + BYTES];
extern char edata;
static struct places mine, theirs;
static uint64_t state;

static uint64_t next(void)
{
	return random_next(&state);
}

static size_t below(size_t n)
{
	return (size_t)(next() % n);
}

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 2);
	exit(2);
}

static void require(bool holds, const char *what)
{
	if (!holds)
		fail(what);
}

static void find_places(struct places *places, char *stack)
{
	char *seam;

	char *half =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	places->at[HEAP] = malloc(BYTES);
	places->at[STATIC] = data;
	/* Over the seam, if that is here. */
	seam = (char *)(((uintptr_t)&edata + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
	if (seam - PAGE / 2 > data && seam < data + PAGE)
		places->at[STATIC] = seam - PAGE / 2;
	places->at[STACK] = stack;
	places->at[MAPPED] =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	require(places->at[HEAP] && places->at[MAPPED] != MAP_FAILED && half != MAP_FAILED,
		"memory");
	mprotect(half + PAGE, 3 * PAGE, PROT_NONE);
	places->at[HALF] = half;
	places->at[NOWHERE] = (char *)(uintptr_t)(3 * PAGE);
	places->at[KERNEL] = (char *)(UINTPTR_MAX << 40);
	places->at[NOTHING] = NULL;
	places->pid = getpid();
}

static enum kind some_kind(void)
{
	return below(24) ? (below(3) ? HEAP : (enum kind)below(GOOD)) : GOOD + below(KINDS - GOOD);
}

static unsigned long some_list(struct iovec *list, const struct places *places)
{
	static const unsigned long counts[] = {1, 1, 1, 2, 3, 7, 33, 65, IOV_MAX, 0, IOV_MAX + 1};
	unsigned long count = counts[below(sizeof(counts) / sizeof(*counts))];
	size_t room = BYTES / (count ? count : 1);

	for (unsigned long i = 0; i < count; i++) {
		enum kind kind = some_kind();
		size_t most = kind == HALF ? 4 * PAGE : BYTES, len = below(8) ? below(room) : 0;

		if (len > most)
			len = most;
		list[i].iov_base = places->at[kind] + below(most - len + 1);
		list[i].iov_len = len;
		/* Too long for any call, or where it ends soon: not over what lies behind. */
		if (!below(400))
			list[i].iov_len = kind < GOOD ? (size_t)SSIZE_MAX + 9 : INT_MAX;
	}
	return count;
}

static long kernel_call(const struct call *call)
{
	return bare_call(call->write, call->pid, call->local, call->nlocal, call->remote,
			 call->nremote, call->flags);
}

static ssize_t number_call(const struct call *call)
{
	return syscall(call->write ? SYS_process_vm_writev : SYS_process_vm_readv, call->pid,
		       call->local, call->nlocal, call->remote, call->nremote, call->flags);
}

static ssize_t name_call(const struct call *call)
{
	return (call->write ? process_vm_writev : process_vm_readv)(
		call->pid, call->local, call->nlocal, call->remote, call->nremote, call->flags);
}

/* All that can be used of one side, in one piece; into it, or out of it. */
static void look(const struct places *places, char *all, bool load)
{
	struct call call = {.write = !load, .pid = places->pid, .nlocal = 1, .nremote = 1};

	for (int kind = 0; kind <= HALF; kind++) {
		size_t len = kind == HALF ? PAGE : BYTES;

		call.local[0] = (struct iovec){all + (size_t)kind * BYTES, len};
		call.remote[0] = (struct iovec){places->at[kind], len};
		require(kernel_call(&call) == (ssize_t)len, "the system call itself");
	}
}

static void try_call(const struct call *call, char *before, char *by_library, char *by_system)
{
	const struct places *changed = call->write ? &theirs : &mine;
	size_t all = (size_t)HALF * BYTES + PAGE;
	bool by_number = below(4) == 0;
	ssize_t wanted, got;
	int wanted_errno, got_errno;

	for (size_t i = 0; i < all; i += 8)
		memcpy(before + i, &(uint64_t){next()}, 8);
	look(changed, before, false);
	errno = 12345;
	wanted = kernel_call(call);
	wanted_errno = errno;
	look(changed, by_system, true);
	look(changed, before, false);
	errno = 12345;
	got = (by_number ? number_call : name_call)(call);
	got_errno = errno;
	look(changed, by_library, true);
	if (wanted == got && wanted_errno == got_errno && !memcmp(by_system, by_library, all))
		return;
	fprintf(stderr, "%s of %lu and %lu pieces: %zd, errno %d, not %zd, errno %d; bytes %s\n",
		call->write ? "write" : "read", call->nlocal, call->nremote, got, got_errno, wanted,
		wanted_errno, memcmp(by_system, by_library, all) ? "differ" : "are the same");
	fail("not the same");
}

static void try_random(long calls, char *room)
{
	static struct call still;
	size_t all = (size_t)HALF * BYTES + PAGE;
	/* Memory that nobody knows. */
	struct call *block = mmap(NULL, sizeof(*block), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(block != MAP_FAILED, "memory");
	for (long i = 0; i < calls; i++) {
		struct call *call = below(2) ? &still : block;

		call->write = below(2);
		call->pid = theirs.pid;
		call->nlocal = some_list(call->local, &mine);
		call->nremote = some_list(call->remote, &theirs);
		call->flags = below(100) ? 0 : 1;
		try_call(call, room, room + all, room + 2 * all);
	}
	munmap(block, sizeof(*block));
}

/* Both say this, of one piece of a page. */
static void expect(pid_t pid, void *local, void *remote, ssize_t wanted, int error)
{
	struct call call = {.pid = pid, .nlocal = 1, .nremote = 1};

	call.local[0] = (struct iovec){local, PAGE};
	call.remote[0] = (struct iovec){remote, PAGE};
	for (int by_name = 0; by_name < 2; by_name++) {
		errno = 0;
		if ((by_name ? name_call : number_call)(&call) == wanted && errno == error)
			continue;
		fprintf(stderr, "process %d by %s: errno %d, not %d\n", (int)pid,
			by_name ? "name" : "number", errno, error);
		fail("not as it should be");
	}
}

static void try_wrong(void)
{
	struct iovec one = {mine.at[HEAP], PAGE}, other = {theirs.at[HEAP], PAGE};
	struct iovec *nowhere = (struct iovec *)mine.at[NOWHERE];
	pid_t gone = fork();

	if (!gone)
		_exit(0);
	waitpid(gone, NULL, 0);
	expect(gone, mine.at[HEAP], theirs.at[HEAP], -1, ESRCH);
	expect(-1, mine.at[HEAP], theirs.at[HEAP], -1, ESRCH);
	expect(0, mine.at[HEAP], theirs.at[HEAP], -1, ESRCH);
	expect(getpid(), mine.at[HEAP], mine.at[STATIC], PAGE, 0);
	errno = 0;
	require(process_vm_readv(theirs.pid, nowhere, 1, &other, 1, 0) == -1 && errno == EFAULT,
		"no list here");
	errno = 0;
	require(process_vm_readv(theirs.pid, &one, 1, nowhere, 1, 0) == -1 && errno == EFAULT,
		"no list there");
	errno = 0;
	require(process_vm_readv(theirs.pid, &one, ULONG_MAX, &other, 1, 0) == -1 &&
			errno == EINVAL,
		"a list without end");
}

/* A rank's child has memory of its own, and is no rank. */
static void try_children(int rank)
{
	char *here = rank ? mine.at[HEAP] : theirs.at[HEAP];
	int ready[2], status;
	pid_t child;

	if (rank) {
		memset(here, 'p', PAGE);
		require(!pipe(ready), "pipe");
		child = fork();
		if (!child) {
			memset(here, 'c', PAGE);
			if (write(ready[1], "", 1) != 1)
				_exit(1);
			pause();
		}
		require(read(ready[0], &(char){0}, 1) == 1, "the child is there");
		MPI_Send(&child, sizeof(child), MPI_BYTE, 0, 1, MPI_COMM_WORLD);
		MPI_Recv(&child, sizeof(child), MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		return;
	}
	MPI_Recv(&child, sizeof(child), MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	expect(child, mine.at[HEAP], here, PAGE, 0);
	require(*mine.at[HEAP] == 'c', "the child's memory");
	expect(theirs.pid, mine.at[HEAP], here, PAGE, 0);
	require(*mine.at[HEAP] == 'p', "the parent's memory");
	/* And one of ours may ask. */
	if (!fork()) {
		struct iovec local = {mine.at[HEAP], PAGE}, remote = {here, PAGE};

		memset(local.iov_base, 0, PAGE);
		_exit(process_vm_readv(theirs.pid, &local, 1, &remote, 1, 0) != PAGE ||
		      *mine.at[HEAP] != 'p');
	}
	require(wait(&status) > 0 && !status, "a child's call");
	MPI_Send(&child, sizeof(child), MPI_BYTE, 1, 1, MPI_COMM_WORLD);
}

static void *in_thread(void *arg)
{
	char stack[2 * PAGE];
	char *place[] = {
		malloc(BYTES), stack,
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
	size_t room[] = {BYTES, sizeof(stack), BYTES};
	unsigned int seed = (unsigned int)(uintptr_t)arg;

	for (int i = 0; i < 400; i++) {
		int to = rand_r(&seed) % 3;
		size_t len = (size_t)rand_r(&seed) % room[to];
		size_t off = (size_t)rand_r(&seed) % (BYTES - len + 1);
		struct iovec local = {place[to], len}, remote = {theirs.at[HEAP] + off, len};

		if (process_vm_readv(theirs.pid, &local, 1, &remote, 1, 0) != (ssize_t)len)
			fail("a thread's call");
		for (size_t b = 0; b < len; b++)
			if (place[to][b] != (char)((off + b) * 7))
				fail("a thread's bytes");
	}
	free(place[0]);
	munmap(place[2], BYTES);
	return NULL;
}

static void try_threads(int rank)
{
	pthread_t threads[THREADS];

	for (size_t b = 0; rank && b < BYTES; b++)
		mine.at[HEAP][b] = (char)(b * 7);
	MPI_Barrier(MPI_COMM_WORLD);
	for (uintptr_t i = 0; !rank && i < THREADS; i++)
		require(!pthread_create(&threads[i], NULL, in_thread, (void *)(i + 1)), "a thread");
	for (int i = 0; !rank && i < THREADS; i++)
		pthread_join(threads[i], NULL);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Nothing more can be had of one that is dead. */
static void try_dead(int rank)
{
	struct iovec local = {mine.at[HEAP], PAGE}, remote = {theirs.at[HEAP], PAGE};

	MPI_Barrier(MPI_COMM_WORLD);
	if (rank)
		kill(getpid(), SIGKILL);
	/* Until its launcher has noticed. */
	while (!kill(theirs.pid, 0))
		usleep(1000);
	expect(theirs.pid, local.iov_base, remote.iov_base, -1, ESRCH);
}

/* Where the kernel does none of it there is nothing to compare with. */
static bool is_refused(void)
{
	struct call call = {.pid = theirs.pid, .nlocal = 1, .nremote = 1};

	call.local[0] = (struct iovec){mine.at[HEAP], 1};
	call.remote[0] = (struct iovec){theirs.at[HEAP], 1};
	return kernel_call(&call) != 1;
}

static int kind_of(const char *name)
{
	static const char *const names[] = {"heap", "static", "stack", "mapped"};
	int kind = 0;

	while (kind < GOOD && strcmp(names[kind], name))
		kind++;
	require(kind < GOOD, "heap, static, stack or mapped");
	return kind;
}

/* One piece here, @pieces there. The lists of more than one are in memory that nobody knows. */
static void make_calls(const char *here, const char *there, unsigned long pieces, long calls)
{
	struct call on_stack, *call = &on_stack;
	const size_t bytes = BYTES - PAGE;

	require(pieces >= 1 && pieces <= IOV_MAX, "pieces of a list");
	if (pieces > 1)
		call = mmap(NULL, sizeof(*call), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	require(call != MAP_FAILED, "memory");
	*call = (struct call){.pid = theirs.pid, .nlocal = 1, .nremote = pieces};
	call->local[0] = (struct iovec){mine.at[kind_of(here)], bytes};
	for (unsigned long i = 0; i < pieces; i++) {
		size_t from = bytes * i / pieces, to = bytes * (i + 1) / pieces;

		call->remote[i] =
			(struct iovec){theirs.at[kind_of(there)] + PAGE + from, to - from};
	}
	for (long i = 0; i < calls; i++) {
		call->write = i / 2 % 2;
		require((i % 2 ? number_call : name_call)(call) == (ssize_t)bytes, "a call");
	}
}

int main(int argc, char **argv)
{
	char stack[BYTES];
	int rank, size, provided, refused;
	bool counted, deaths;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	counted = argc == 6 && !strcmp(argv[1], "count");
	deaths = argc == 4 && !strcmp(argv[3], "deaths");
	require(size == 2 && (argc == 3 || deaths || counted), "same SEED CALLS [deaths], 2 ranks");
	state = strtoull(argv[1], NULL, 0) | 1;
	find_places(&mine, stack);
	memset(stack, 1, sizeof(stack));
	MPI_Sendrecv(&mine, sizeof(mine), MPI_BYTE, !rank, 0, &theirs, sizeof(theirs), MPI_BYTE,
		     !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	refused = !rank && is_refused();
	MPI_Bcast(&refused, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (refused) {
		if (!rank)
			puts("no system call to compare with");
		MPI_Finalize();
		return 0;
	}
	if (counted) {
		if (!rank)
			make_calls(argv[2], argv[3], strtoul(argv[4], NULL, 0), atol(argv[5]));
		/* Not before: who has left is the kernel's affair. */
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Finalize();
		return 0;
	}
	if (!rank) {
		size_t all = (size_t)HALF * BYTES + PAGE;
		char *room = mmap(NULL, 3 * all, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		require(room != MAP_FAILED, "memory");
		try_random(atol(argv[2]), room);
		try_wrong();
	}
	MPI_Barrier(MPI_COMM_WORLD);
	try_children(rank);
	try_threads(rank);
	if (deaths)
		try_dead(rank);
	/* Not at the end: Hydra loses now and then what is said there. */
	printf("the same\n");
	fflush(stdout);
	if (!deaths)
		MPI_Finalize();
	_exit(0);
}
