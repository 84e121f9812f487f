// SPDX-License-Identifier: BSD-3-Clause
/*
 * lone WHAT: calls on processes that are in no job with this one, which is one of those that UCX
 * takes part in, by what it exports. Each is made by the C library's name, which onecopy may
 * answer, and by the bare system call: they have to say and to move the same. Says at the end how
 * many must have been answered.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../random.h"
#include "arenas.h"
#include "bare_call.h"

#define BYTES	((size_t)256 << 10)
#define NOBODY	65534
#define STALE	(30 * 1000)   /* us, in which a peer may be taken for what it was */
#define LETS_GO (2500 * 1000) /* in which memory of the dead goes */
#define THREADS 8

struct places {
	pid_t pid; /* in its own namespace */
	char *heap, *mapped;
};

struct peer {
	pid_t pid;
	int say, hear;
	struct places at;
};

static unsigned long answered;
static uint64_t state = 88172645463325252u;

/* As libucp has it. */
void ucp_get_version(unsigned int *major, unsigned int *minor, unsigned int *release)
{
	*major = *minor = *release = 0;
}

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s (%s)\n", what, strerror(errno));
	exit(2);
}

/* ---- the other process -------------------------------------------------------------------- */

static void show(void)
{
	struct places at = {.pid = getpid(), .heap = malloc(BYTES)};

	at.mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < BYTES; i++) {
		at.heap[i] = (char)(i * 7 + (size_t)at.pid);
		at.mapped[i] = (char)(i * 13 + (size_t)at.pid);
	}
	require(write(1, &at, sizeof(at)) == sizeof(at), "cannot say where memory is");
}

static void serve_child(void)
{
	char *block = malloc(BYTES);
	struct places at = {.heap = block};
	int hold[2];

	memset(block, 1, BYTES);
	require(!pipe(hold), "no pipe");
	if (fork()) {
		close(hold[1]);
		return;
	}
	memset(block, 2, BYTES);
	at.pid = getpid();
	at.mapped = block;
	require(write(1, &at, sizeof(at)) == sizeof(at), "cannot say where memory is");
	pause();
}

static int be_peer(void)
{
	char command;

	show();
	while (read(0, &command, 1) == 1) {
		if (command == 'x')
			execl("/proc/self/exe", "lone", "peer", (char *)NULL);
		if (command == 'f')
			serve_child();
		if (command == 'c')
			syscall(SYS_close_range, 3, ~0u, 0);
		if (command == 'u')
			require(!syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY), "setresuid");
		if (command != 'f')
			require(write(1, &command, 1) == 1, "no answer");
	}
	return 0;
}

/* ---- this one ----------------------------------------------------------------------------- */

static void hear(struct peer *peer)
{
	require(read(peer->hear, &peer->at, sizeof(peer->at)) == sizeof(peer->at), "a silent peer");
}

static struct peer start(bool with_us, int namespace)
{
	int there[2], back[2], own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	struct peer peer;

	require(!pipe2(there, O_CLOEXEC) && !pipe2(back, O_CLOEXEC), "no pipe");
	require(!namespace || !unshare(namespace), "no namespace");
	peer.pid = fork();
	require(peer.pid >= 0, "no process");
	if (!peer.pid) {
		dup2(there[0], 0);
		dup2(back[1], 1);
		if (!with_us)
			unsetenv("LD_PRELOAD");
		execl("/proc/self/exe", "lone", "peer", (char *)NULL);
		_exit(127);
	}
	require(!namespace || !setns(own, namespace), "cannot go back");
	close(own);
	close(there[0]);
	close(back[1]);
	peer.say = there[1];
	peer.hear = back[0];
	hear(&peer);
	return peer;
}

static void say(struct peer *peer, char command)
{
	char echo;

	require(write(peer->say, &command, 1) == 1, "a deaf peer");
	if (command == 'f' || command == 'x') {
		hear(peer);
		return;
	}
	require(read(peer->hear, &echo, 1) == 1 && echo == command, "a peer did not do it");
}

static void kill_peer(struct peer *peer)
{
	siginfo_t info;

	kill(peer->pid, SIGKILL);
	waitid(P_PID, (id_t)peer->pid, &info, WEXITED | WNOWAIT);
	close(peer->say);
	close(peer->hear);
}

static void bury(struct peer *peer)
{
	kill_peer(peer);
	waitpid(peer->pid, NULL, 0);
}

/* A list of @put by both, with the same result; what was written is read back by the kernel. */
static void call_both(const struct peer *peer, bool put, struct iovec *here, unsigned long nhere,
		      struct iovec *there, unsigned long nthere, char *memory)
{
	char *seen[2] = {calloc(1, BYTES), calloc(1, BYTES)};
	struct iovec all = {peer->at.heap, BYTES};
	ssize_t done[2];
	int err[2];

	for (int ours = 0; ours < 2; ours++) {
		struct iovec mine = {seen[ours], BYTES};

		if (!put)
			memset(memory, 0x5a, BYTES);
		errno = 0;
		if (!ours)
			done[ours] = bare_call(put, peer->pid, here, nhere, there, nthere, 0);
		else
			done[ours] = (put ? process_vm_writev : process_vm_readv)(
				peer->pid, here, nhere, there, nthere, 0);
		err[ours] = errno;
		if (!put)
			memcpy(seen[ours], memory, BYTES);
		else
			bare_call(false, peer->pid, &mine, 1, &all, 1, 0);
		/* So that the second has something to write. */
		if (put && !ours) {
			char *other = calloc(1, BYTES);
			struct iovec zeros = {other, BYTES};

			memset(seen[1], 0, BYTES);
			bare_call(true, peer->pid, &zeros, 1, &all, 1, 0);
			done[0] = bare_call(put, peer->pid, here, nhere, there, nthere, 0);
			bare_call(false, peer->pid, &mine, 1, &all, 1, 0);
			bare_call(true, peer->pid, &zeros, 1, &all, 1, 0);
			free(other);
		}
	}
	errno = err[1];
	require(done[0] == done[1] && (done[0] >= 0 || err[0] == err[1]), "another result");
	require(!memcmp(seen[0], seen[1], BYTES), "other bytes");
	free(seen[0]);
	free(seen[1]);
}

/* The whole of a block of the peer, read and written. */
static void check(const struct peer *peer, char *at, bool by_pointer)
{
	char *memory = malloc(BYTES);
	struct iovec here = {memory, BYTES}, there = {at, BYTES};

	call_both(peer, false, &here, 1, &there, 1, memory);
	call_both(peer, true, &here, 1, &there, 1, memory);
	answered += by_pointer ? 2 : 0;
	free(memory);
}

static void lists(void)
{
	struct peer peer = start(true, 0);
	char *memory = malloc(BYTES);

	for (int round = 0; round < 300; round++) {
		struct iovec here[4], there[4];
		unsigned long nhere = 1 + random_next(&state) % 4,
			      nthere = 1 + random_next(&state) % 4;

		for (unsigned long i = 0; i < 4; i++) {
			size_t len = random_next(&state) % (BYTES / 4);
			char *from = random_next(&state) % 4 ? peer.at.heap : peer.at.mapped;

			here[i] = (struct iovec){memory + i * (BYTES / 4), len};
			len = random_next(&state) % (BYTES / 4);
			there[i] = (struct iovec){from + i * (BYTES / 4), len};
			if (random_next(&state) % 40 == 0)
				there[i].iov_base = NULL;
		}
		call_both(&peer, random_next(&state) % 2, here, nhere, there, nthere, memory);
	}
	free(memory);
	bury(&peer);
}

static void memories(void)
{
	struct peer peer = start(true, 0), stranger = start(false, 0);

	check(&peer, peer.at.heap, true);
	check(&peer, peer.at.mapped, false);
	check(&stranger, stranger.at.heap, false);
	bury(&stranger);
	bury(&peer);
}

/* More than can be known at a time, and than there are addresses for. */
static void deaths(void)
{
	for (int i = 0; i < 40; i++) {
		struct peer peer = start(true, 0);

		check(&peer, peer.at.heap, true);
		kill_peer(&peer);
		if (i % 4 == 0) {
			usleep(STALE);
			check(&peer, peer.at.heap, false);
		}
		waitpid(peer.pid, NULL, 0);
	}
	usleep(LETS_GO);
	require(shows_arenas(1), "memory of the dead is kept");
}

static void programs(void)
{
	struct peer peer = start(true, 0);
	char *old = peer.at.heap;

	check(&peer, old, true);
	say(&peer, 'x');
	usleep(STALE);
	check(&peer, old, is_in_arena(peer.pid, (uintptr_t)old));
	check(&peer, peer.at.heap, true);
	bury(&peer);
}

static void children(void)
{
	struct peer peer = start(true, 0), child;
	pid_t mine;
	int status;

	check(&peer, peer.at.heap, true);
	child = peer;
	say(&child, 'f');
	child.pid = child.at.pid;
	usleep(STALE);
	check(&child, child.at.heap, false);
	kill(child.pid, SIGKILL);
	mine = fork();
	if (!mine) {
		check(&peer, peer.at.heap, false);
		_exit(0);
	}
	require(waitpid(mine, &status, 0) == mine && !status, "a child cannot call");
	check(&peer, peer.at.heap, true);
	bury(&peer);
}

static void closed(void)
{
	struct peer peer = start(true, 0);

	check(&peer, peer.at.heap, true);
	say(&peer, 'c');
	usleep(STALE);
	check(&peer, peer.at.heap, false);
	bury(&peer);
}

static void users(void)
{
	struct peer peer = start(true, 0), known = start(true, 0);

	check(&known, known.at.heap, true);
	say(&peer, 'u');
	say(&known, 'u');
	usleep(STALE);
	check(&peer, peer.at.heap, false);
	bury(&known);
	bury(&peer);
}

static void *ask_as_nobody(void *arg)
{
	struct peer *peer = arg;

	/* This thread alone, as the system call has it. */
	require(!syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY), "setresuid");
	check(peer, peer->at.heap, false);
	check(peer, peer->at.mapped, false);
	return NULL;
}

/* Who may not ask the kernel for memory is not given it here, either. */
static void nobody(void)
{
	struct peer known = start(true, 0), peer = start(true, 0);
	pthread_t thread;

	check(&known, known.at.heap, true);
	require(!pthread_create(&thread, NULL, ask_as_nobody, &peer), "no thread");
	pthread_join(thread, NULL);
	bury(&peer);
	bury(&known);
}

/* It is 1 there, and here another process is. */
static void namespaces(void)
{
	struct peer peer = start(true, CLONE_NEWPID);

	require(peer.at.pid == 1, "the same namespace");
	check(&peer, peer.at.heap, true);
	bury(&peer);
}

/* Of whose numbers /proc knows nothing. */
static void inside(void)
{
	int status;
	pid_t child;

	if (getpid() == 1) {
		memories();
		return;
	}
	require(!unshare(CLONE_NEWPID), "no namespace");
	child = fork();
	if (!child)
		execl("/proc/self/exe", "lone", "inside", (char *)NULL);
	require(waitpid(child, &status, 0) == child && !status, "in a namespace");
	exit(0);
}

/* A process that gets the number of one that is gone, in a namespace where nobody else takes it. */
static void reused(void)
{
	struct peer first, second;
	FILE *last;
	int status;
	pid_t child;

	if (getpid() != 1) {
		require(!unshare(CLONE_NEWPID | CLONE_NEWNS), "no namespace");
		child = fork();
		if (!child)
			execl("/proc/self/exe", "lone", "reused", (char *)NULL);
		require(waitpid(child, &status, 0) == child && !status, "in a namespace");
		exit(0);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", 0, NULL)) {
		puts("no /proc of its own here");
		exit(0);
	}
	first = start(true, 0);
	check(&first, first.at.heap, true);
	bury(&first);
	last = fopen("/proc/sys/kernel/ns_last_pid", "w");
	require(last && fprintf(last, "%d", first.pid - 1) > 0 && !fclose(last), "no last number");
	second = start(true, 0);
	require(second.pid == first.pid, "another number");
	usleep(STALE);
	check(&second, second.at.mapped, false);
	check(&second, second.at.heap, true);
	bury(&second);
}

static struct peer shared[3];

static void *call(void *arg)
{
	char *block = malloc(BYTES), *copy = malloc(BYTES);

	for (int i = 0; i < 300; i++) {
		const struct peer *peer = &shared[(i + (int)(intptr_t)arg) % 3];
		struct iovec here = {block, BYTES}, there = {peer->at.heap, BYTES};

		if (process_vm_readv(peer->pid, &here, 1, &there, 1, 0) != (ssize_t)BYTES) {
			require(peer == &shared[2] && errno == ESRCH, "a call of many failed");
			continue;
		}
		for (size_t b = 0; b < BYTES; b++)
			copy[b] = (char)(b * 7 + (size_t)peer->at.pid);
		require(!memcmp(copy, block, BYTES), "other bytes in a thread");
		if (arg == NULL && i == 100)
			kill(shared[2].pid, SIGKILL);
	}
	free(block);
	free(copy);
	return arg;
}

static void threads(void)
{
	pthread_t all[THREADS];

	for (int i = 0; i < 3; i++)
		shared[i] = start(true, 0);
	for (intptr_t i = 0; i < THREADS; i++)
		require(!pthread_create(&all[i], NULL, call, (void *)i), "no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(all[i], NULL);
	for (int i = 0; i < 3; i++)
		bury(&shared[i]);
	usleep(LETS_GO);
	require(shows_arenas(1), "memory of the dead is kept");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {
		{"lists", lists},     {"memories", memories}, {"deaths", deaths},
		{"exec", programs},   {"children", children}, {"closed", closed},
		{"users", users},     {"inside", inside},     {"namespaces", namespaces},
		{"threads", threads}, {"nobody", nobody},     {"reused", reused},
	};

	if (argc > 1 && !strcmp(argv[1], "peer"))
		return be_peer();
	for (size_t i = 0; argc > 1 && i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(argv[1], all[i].name)) {
			all[i].run();
			printf("answered %lu\n", answered);
			return 0;
		}
	return 64;
}
