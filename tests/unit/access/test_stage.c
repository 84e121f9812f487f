// SPDX-License-Identifier: BSD-3-Clause
/*
 * The staging channel with every rank a thread of one process, so that a thread
 * sanitizer sees both sides. The copies between the ring and the ranks' memory are
 * this file's, in place of lib/access/safe_copy.c's: they can be held up, fail, and be the
 * last thing a rank does.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "access/safe_copy.h"
#include "access/mech.h"
#include "region/region.h"
#include "access/stage.h"
#include "segment/alive.h"
#include "segment/segment.h"

#define RANKS 4
#define BYTES ((OC_STAGE_CHUNKS + 2) * (size_t)OC_STAGE_CHUNK)

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* What happens to a thread's copy of that number, counted from 1. */
struct plan {
	int fails;
	int dies;
	int count;
};
static _Thread_local struct plan plan;

static struct oc_node ranks[RANKS];
static char memory[BYTES]; /* rank 0's region */
static oc_cookie cookie;

/* The service's loads wait while this is set, from the given one on. */
static _Atomic int hold_from;
static _Atomic int loads_of_service;
static _Atomic int loads_of_others;

static void nap(void)
{
	struct timespec ts = {.tv_nsec = 1000000};

	nanosleep(&ts, NULL);
}

static void turn(void)
{
	plan.count++;
	if (plan.count != plan.dies)
		return;
	/* As the system sees to it when a process is gone. */
	atomic_store(&ranks[1].ranks[1].state, OC_RANK_LEFT);
	pthread_exit(NULL);
}

static int copy(char *ring, struct oc_cursor *cursor, size_t len, bool load)
{
	struct iovec piece;

	turn();
	if (plan.count == plan.fails)
		return -EFAULT;
	for (size_t n; len; len -= n, ring += n) {
		CHECK(oc_cursor_piece(cursor, &piece));
		n = piece.iov_len < len ? piece.iov_len : len;
		memcpy(load ? ring : piece.iov_base, load ? piece.iov_base : ring, n);
		oc_cursor_skip(cursor, n);
	}
	return 0;
}

int oc_safe_copy_load(const struct oc_node *node, void *shared, struct oc_cursor *from, size_t len)
{
	if (node->rank == 0) {
		int number = atomic_fetch_add(&loads_of_service, 1) + 1;

		while (atomic_load(&hold_from) && number >= atomic_load(&hold_from))
			nap();
	} else {
		atomic_fetch_add(&loads_of_others, 1);
	}
	return copy(shared, from, len, true);
}

int oc_safe_copy_store(const struct oc_node *node, struct oc_cursor *to, const void *shared,
		       size_t len)
{
	/* Who goes does so when the service is held up, not before. */
	while (atomic_load(&loads_of_service) < atomic_load(&hold_from))
		nap();
	return copy((char *)(uintptr_t)shared, to, len, false);
}

static void set_up(void)
{
	struct iovec iov = {.iov_base = memory, .iov_len = sizeof(memory)};
	static uint32_t mine = 1;

	ranks[0] = (struct oc_node){.nranks = RANKS, .ncpus = 1, .pid = (uint32_t)getpid()};
	ranks[0].mine = &mine;
	ranks[0].peers = calloc(RANKS, sizeof(*ranks[0].peers));
	CHECK(ranks[0].peers);
	CHECK(!oc_segment_create(&ranks[0]));
	CHECK(!oc_node_declare(&ranks[0]));
	for (uint32_t i = 1; i < RANKS; i++) {
		ranks[0].ranks[i].pid = ranks[0].ranks[0].pid;
		ranks[0].ranks[i].pidns = ranks[0].ranks[0].pidns;
		ranks[0].ranks[i].starttime = ranks[0].ranks[0].starttime;
		ranks[i] = ranks[0];
		ranks[i].rank = i;
	}
	CHECK(!oc_region_table_create(&ranks[0]));
	CHECK(!oc_region_create(&ranks[0], &iov, 1, OC_REGION_READ | OC_REGION_WRITE, &cookie));
}

static void tear_down(void)
{
	atomic_store(&ranks[0].ranks[0].state, OC_RANK_LEFT);
	oc_region_table_destroy(&ranks[0]);
	oc_stage_stop(&ranks[0]);
	oc_segment_close(&ranks[0]);
	free(ranks[0].peers);
}

static ssize_t transfer(uint32_t rank, enum oc_direction direction, char *buf, size_t len)
{
	struct oc_target target = {.cookie = cookie, .owner = 0, .bytes = BYTES};
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	struct oc_cursor local;

	oc_cursor_init(&local, &iov, 1, 0);
	return oc_mech_staged.move(&ranks[rank], &target, direction, 0, &local, len);
}

static void expect(const char *at, size_t len, char value)
{
	for (size_t i = 0; i < len; i++)
		CHECK(at[i] == value);
}

/* Rank 1 wants the region and, by *@arg, fails at the first chunk or dies. */
static void *get_in_vain(void *arg)
{
	static char buf[BYTES];

	plan = *(const struct plan *)arg;
	CHECK(transfer(1, OC_GET, buf, BYTES) == -EFAULT);
	return NULL;
}

static void *put_all(void *arg)
{
	static char buf[BYTES];

	memset(buf, 2, sizeof(buf));
	CHECK(transfer(2, OC_PUT, buf, BYTES) == (ssize_t)BYTES);
	return NULL;
}

/*
 * The service is between two chunks of a GET, and slow, when the requester goes. The
 * next one PUTs: nothing of the GET may get into what it puts or what it is told.
 */
static void test_late_service(const struct plan *end)
{
	pthread_t first, second;

	set_up();
	memset(memory, 1, sizeof(memory));
	atomic_store(&loads_of_service, 0);
	atomic_store(&loads_of_others, 0);
	atomic_store(&hold_from, 2);
	CHECK(!pthread_create(&first, NULL, get_in_vain, (void *)end));
	CHECK(!pthread_join(first, NULL));
	CHECK(!pthread_create(&second, NULL, put_all, NULL));
	/* Time to fill the ring, for a requester that would. */
	for (int i = 0; i < 300 && atomic_load(&loads_of_others) < OC_STAGE_CHUNKS; i++)
		nap();
	atomic_store(&hold_from, 0);
	CHECK(!pthread_join(second, NULL));
	expect(memory, sizeof(memory), 2);
	tear_down();
}

/* A rank that gets and puts, and fails now and then. */
static void *hammer(void *arg)
{
	uint32_t rank = (uint32_t)(uintptr_t)arg;
	unsigned int seed = rank;
	char *buf = malloc(BYTES);

	CHECK(buf);
	for (int i = 0; i < 60; i++) {
		size_t chunks = 1 + (size_t)rand_r(&seed) % (BYTES / OC_STAGE_CHUNK);
		size_t len = chunks * OC_STAGE_CHUNK;
		bool get = rand_r(&seed) % 2;
		ssize_t moved;

		plan = (struct plan){.fails = rand_r(&seed) % 3 ? 0 : 1 + rand_r(&seed) % 4};
		memset(buf, 2 + (int)rank, len);
		moved = transfer(rank, get ? OC_GET : OC_PUT, buf, len);
		CHECK(moved == (ssize_t)len || (moved == -EFAULT && plan.fails));
		/* A chunk is one request's. */
		for (size_t c = 0; moved > 0 && c < chunks; c++)
			expect(buf + c * OC_STAGE_CHUNK, OC_STAGE_CHUNK, buf[c * OC_STAGE_CHUNK]);
	}
	free(buf);
	return NULL;
}

static void test_many(void)
{
	pthread_t threads[RANKS];

	set_up();
	memset(memory, 1, sizeof(memory));
	for (uintptr_t i = 1; i < RANKS; i++)
		CHECK(!pthread_create(&threads[i], NULL, hammer, (void *)i));
	for (int i = 1; i < RANKS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	tear_down();
}

int main(void)
{
	const struct plan fails = {.fails = 1}, dies = {.dies = 1};

	alarm(300);
	test_late_service(&fails);
	test_late_service(&dies);
	test_many();
	return 0;
}
