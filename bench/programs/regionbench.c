// SPDX-License-Identifier: BSD-3-Clause
/*
 * regionbench MECHANISM get|put SECONDS CACHE-BYTES SIZE...: ping-pong of the
 * region API between two processes, by one mechanism: they take turns to get
 * from the other's region, or to put into it. Printed as collbench prints, the
 * time of one copy with the signal to the other, which is a flag in shared
 * memory.
 *
 * Buffers are slots, off-cache and prepared anew before each pass, as in
 * collbench.c. With the mechanism heap they lie in the shared heap, otherwise
 * in memory of the C library's malloc().
 */
#include <errno.h>
#include <onecopy/onecopy.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FACTOR	  4
#define MAX_SLOTS 16384

/* Shared by the two; inherited. */
struct board {
	_Atomic uint64_t steps[2]; /* how often each has signalled */
	oc_cookie out[2], in[2];
	uint64_t calls; /* of a pass, chosen by rank 0 */
	_Atomic uint64_t errors;
};

struct side {
	struct board *board;
	oc_node *node;
	uint32_t rank;
	pid_t child; /* rank 0's: the other */
	bool put, heap;
	uint32_t *out, *in;
	size_t bytes, slots;
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void fail(const char *what, long err)
{
	fprintf(stderr, "regionbench: %s: %s\n", what, strerror((int)-err));
	exit(1);
}

static void post(const struct side *side)
{
	atomic_fetch_add_explicit(&side->board->steps[side->rank], 1, memory_order_release);
}

/* Until the other has signalled as often as @steps says. */
static void await(const struct side *side, uint64_t steps)
{
	_Atomic uint64_t *theirs = &side->board->steps[1 - side->rank];

	for (unsigned int spins = 1; atomic_load_explicit(theirs, memory_order_acquire) < steps;
	     spins++) {
		if (spins % 256)
			continue;
		sched_yield();
		if (spins % 65536 == 0 && side->child && waitpid(side->child, NULL, WNOHANG))
			fail("the other process died", -EPIPE);
	}
}

static void sync_sides(const struct side *side)
{
	post(side);
	await(side, atomic_load(&side->board->steps[side->rank]));
}

static size_t words(const struct side *side)
{
	return side->bytes / sizeof(uint32_t);
}

static uint32_t first_word(uint32_t stamp, uint32_t rank, size_t slot)
{
	return stamp * 0x9e3779b9u + rank * 0x85ebca6bu + (uint32_t)slot;
}

static void prepare(const struct side *side, uint32_t stamp)
{
	for (size_t slot = 0; slot < side->slots; slot++) {
		uint32_t *out = side->out + slot * words(side);
		uint32_t first = first_word(stamp, side->rank, slot);

		for (size_t i = 0; i < words(side); i++)
			out[i] = first + (uint32_t)i;
		memset(side->in + slot * words(side), 0xff, side->bytes);
	}
}

static void check(const struct side *side, uint32_t stamp, size_t calls)
{
	size_t errors = 0;

	for (size_t slot = 0; slot < side->slots && slot < calls; slot++) {
		const uint32_t *in = side->in + slot * words(side);
		uint32_t first = first_word(stamp, 1 - side->rank, slot);

		for (size_t i = 0; i < words(side); i++)
			errors += in[i] != first + (uint32_t)i;
	}
	atomic_fetch_add(&side->board->errors, errors);
}

static void move(const struct side *side, size_t slot)
{
	size_t offset = slot * side->bytes;
	struct iovec local = {.iov_len = side->bytes};
	ssize_t moved;

	if (side->put) {
		local.iov_base = (char *)side->out + offset;
		moved = oc_put(side->node, side->board->in[1 - side->rank], offset, &local, 1);
	} else {
		local.iov_base = (char *)side->in + offset;
		moved = oc_get(side->node, side->board->out[1 - side->rank], offset, &local, 1);
	}
	if (moved != (ssize_t)side->bytes)
		fail(side->put ? "oc_put" : "oc_get", moved < 0 ? moved : -EIO);
}

/* Seconds of a pass: rank 0 moves, then rank 1, slot by slot. */
static double time_pass(const struct side *side, size_t calls)
{
	uint64_t base;
	double start;

	sync_sides(side);
	base = atomic_load(&side->board->steps[side->rank]);
	start = now();
	for (size_t i = 0; i < calls; i++) {
		if (side->rank == 1)
			await(side, base + i + 1);
		move(side, i % side->slots);
		post(side);
		if (side->rank == 0)
			await(side, base + i + 1);
	}
	return now() - start;
}

/* A number both use, as rank 0 says. */
static size_t agree(const struct side *side, double value)
{
	sync_sides(side);
	if (side->rank == 0)
		side->board->calls = value < 1 ? 1 : (uint64_t)value;
	sync_sides(side);
	return side->board->calls;
}

static void run_size(const struct side *side, double seconds)
{
	size_t calls, passes, few = side->slots < 4 ? side->slots : 4;
	uint32_t stamp = 1;
	double took, total = 0;

	prepare(side, stamp);
	time_pass(side, few); /* first touches */
	took = time_pass(side, few) / (double)few;
	took = seconds / took;
	calls = agree(side, took < (double)side->slots ? took : (double)side->slots);
	took = now();
	prepare(side, ++stamp);
	time_pass(side, calls);
	passes = agree(side, seconds / (now() - took));
	check(side, stamp, calls);
	for (size_t pass = 0; pass < passes; pass++) {
		sync_sides(side); /* nobody copies any more */
		prepare(side, ++stamp);
		total += time_pass(side, calls);
	}
	sync_sides(side);
	check(side, stamp, calls);
	sync_sides(side);
	if (side->rank == 0)
		printf("region-%s,%zu,2,off-cache,0,%zu,%.4f,%lu\n", side->put ? "put" : "get",
		       side->bytes, 2 * calls * passes, total * 1e6 / (double)(2 * calls * passes),
		       (unsigned long)atomic_load(&side->board->errors));
}

static uint32_t *buffer_create(const struct side *side, size_t bytes)
{
	uint32_t *buffer = side->heap ? oc_alloc(bytes) : malloc(bytes);

	if (!buffer)
		fail(side->heap ? oc_heap_why() : "malloc", -ENOMEM);
	return buffer;
}

static void buffer_destroy(const struct side *side, uint32_t *buffer)
{
	if (side->heap)
		oc_free(buffer);
	else
		free(buffer);
}

static void declare(const struct side *side, void *buffer, uint32_t protection, oc_cookie *cookie)
{
	struct iovec all = {.iov_base = buffer, .iov_len = side->bytes * side->slots};
	int err = oc_region_create(side->node, &all, 1, protection, cookie);

	if (err)
		fail("oc_region_create", err);
}

static void join(struct side *side, int fd)
{
	int peer_fds[2] = {-1, fd};
	struct oc_node_attr attr = {
		.size = sizeof(attr),
		.fd = fd,
		.peer_fds = peer_fds,
		.rank = side->rank,
		.nranks = 2,
	};
	int err = oc_node_join(&attr, &side->node);

	if (err)
		fail("oc_node_join", err);
}

static void require(const struct side *side, const char *mechanism)
{
	static const char *const names[OC_MECH_COUNT] = {OC_MECH_NAMES};
	struct oc_mech_report report;
	int err = oc_mech_query(side->node, 1 - side->rank, &report);

	if (err)
		fail("oc_mech_query", err);
	for (int i = 0; i < OC_MECH_COUNT; i++) {
		if (strcmp(names[i], mechanism))
			continue;
		err = oc_mech_allow(side->node, 1u << i);
		if (!err && report.usable & 1u << i)
			return;
		fail(report.why[i][0] ? report.why[i] : mechanism, err ? err : -EOPNOTSUPP);
	}
	fail(mechanism, -EINVAL);
}

int main(int argc, char **argv)
{
	struct side side = {0};
	size_t cache;
	int fds[2];

	if (argc < 6) {
		fprintf(stderr, "usage: regionbench heap|map|kcopy|cma|staged get|put SECONDS "
				"CACHE SIZE...\n");
		return 2;
	}
	side.heap = !strcmp(argv[1], "heap");
	side.put = !strcmp(argv[2], "put");
	cache = strtoull(argv[4], NULL, 10);
	side.board = mmap(NULL, sizeof(*side.board), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (side.board == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		fail("socketpair", -errno);
	side.child = fork();
	if (side.child < 0)
		fail("fork", -errno);
	side.rank = side.child == 0;
	if (side.rank == 1)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(fds[1 - side.rank]);
	join(&side, fds[side.rank]);
	require(&side, argv[1]);

	if (side.rank == 0)
		printf("collective,bytes,ranks,mode,repetition,calls,usec,errors\n");
	for (int i = 5; i < argc; i++) {
		side.bytes = strtoull(argv[i], NULL, 10);
		if (side.bytes == 0 || side.bytes % sizeof(uint32_t))
			fail(argv[i], -EINVAL);
		/* Four arenas: in and out of both. */
		side.slots = cache * FACTOR / 4 / side.bytes + 1;
		if (side.slots > MAX_SLOTS)
			side.slots = MAX_SLOTS;
		side.out = buffer_create(&side, side.bytes * side.slots);
		side.in = buffer_create(&side, side.bytes * side.slots);
		declare(&side, side.out, OC_REGION_READ, &side.board->out[side.rank]);
		declare(&side, side.in, OC_REGION_WRITE, &side.board->in[side.rank]);
		sync_sides(&side);
		run_size(&side, atof(argv[3]));
		sync_sides(&side);
		oc_region_destroy(side.node, side.board->in[side.rank]);
		oc_region_destroy(side.node, side.board->out[side.rank]);
		buffer_destroy(&side, side.in);
		buffer_destroy(&side, side.out);
	}
	oc_node_leave(side.node);
	if (side.rank == 0 && waitpid(side.child, NULL, 0) < 0)
		fail("waitpid", -errno);
	return atomic_load(&side.board->errors) ? 1 : 0;
}
