// SPDX-License-Identifier: BSD-3-Clause
/* The end of regions, owners and peers in the middle of copies; and threads. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "../share.h"

/*
 * The owner creates, destroys and scribbles; peers copy all the time. What they
 * get is what the region held while it was one, never the scribble: destroy has
 * waited for them.
 */
static void test_destroy_races(struct job *job)
{
	size_t bytes = 200000;
	oc_node *node = share_join(job);
	uint8_t *mine = share_alloc(bytes, 3), *got = malloc(bytes);
	struct iovec iov = {.iov_base = job->rank ? got : mine, .iov_len = bytes};
	uint64_t good = 0;

	if (job->rank == 0) {
		double end = share_now_s() + 1;

		/* Until everybody has been lucky. */
		for (uint64_t turn = 0; share_now_s() < end || turn < 20 ||
					atomic_load(&job->shared->word[3]) < job->nranks - 1;
		     turn++) {
			oc_cookie cookie;

			memset(mine, (int)(turn % 200) + 1, bytes);
			CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, &cookie), 0);
			share_tell(job, 1, cookie);
			share_nap_us((long)(job_random() % 300));
			CHECK_EQ(oc_region_destroy(node, cookie), 0);
			memset(mine, 0, bytes);
		}
		share_tell(job, 2, 1);
	}
	while (job->rank && !atomic_load(&job->shared->word[2])) {
		oc_cookie cookie = share_hear(job, 1);
		ssize_t n = oc_get(node, cookie, 0, &iov, 1);

		CHECK(n == (ssize_t)bytes || n == -EINVAL);
		if (n < 0)
			continue;
		if (!good++)
			atomic_fetch_add(&job->shared->word[3], 1);
		CHECK(got[0] != 0);
		for (size_t i = 0; i < bytes; i++)
			CHECK_EQ(got[i], got[0]);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	free(got);
	share_leave(job, node);
}

struct hammer {
	struct job *job;
	oc_node *node;
};

static void *hammer(void *arg)
{
	struct hammer *it = arg;
	uint8_t buf[64];
	struct iovec local = {.iov_base = buf, .iov_len = sizeof(buf)};

	while (!atomic_load(&it->job->shared->word[2])) {
		ssize_t n = oc_get(it->node, share_hear(it->job, 1), 0, &local, 1);

		CHECK(n == (ssize_t)sizeof(buf) || n == -EINVAL);
	}
	return NULL;
}

/* Peers that try a void cookie again and again do not keep its owner from
 * destroying the region: it waits for those that found it valid, once. */
static void test_stale_cookies(struct job *job)
{
	struct hammer it = {.job = job, .node = share_join(job)};
	struct iovec iov = {.iov_base = share_alloc(64, 0), .iov_len = 64};
	pthread_t threads[8];

	for (int i = 0; job->rank && i < 8; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, hammer, &it), 0);
	for (int turn = 0; !job->rank && turn < 10; turn++) {
		oc_cookie cookie;

		CHECK_EQ(oc_region_create(it.node, &iov, 1, OC_REGION_READ, &cookie), 0);
		share_tell(job, 1, cookie);
		share_nap_us(1000);
		CHECK_EQ(oc_region_destroy(it.node, cookie), 0);
	}
	if (!job->rank)
		share_tell(job, 2, 1);
	for (int i = 0; job->rank && i < 8; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(oc_node_barrier(it.node), 0);
	share_leave(job, it.node);
}

/* Rank 0 is killed while the others copy from it: -EPIPE within seconds. */
static void test_owner_killed(struct job *job)
{
	size_t bytes = 3 << 20;
	oc_node *node = share_join(job);
	uint8_t *mine = share_alloc(bytes, 3);
	struct iovec iov = {.iov_base = mine, .iov_len = bytes};
	oc_cookie cookie;
	double start_s;
	ssize_t n;

	if (job->rank == 0) {
		memset(mine, 1, bytes);
		CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ | OC_REGION_WRITE, &cookie),
			 0);
		share_tell(job, 0, cookie);
		CHECK_EQ(oc_node_barrier(node), 0);
		share_nap_us((long)(job_random() % 20000));
		job_die();
	}
	cookie = share_hear(job, 0);
	CHECK_EQ(oc_node_barrier(node), 0);
	start_s = share_now_s();
	do {
		n = job->rank % 2 ? oc_get(node, cookie, 0, &iov, 1)
				  : oc_put(node, cookie, 0, &iov, 1);
		CHECK(n == (ssize_t)bytes || n == -EPIPE);
		CHECK(share_now_s() - start_s < 10);
	} while (n != -EPIPE);
	while (oc_node_alive(node, 0))
		share_nap_us(100);
	share_leave(job, node);
}

/* A peer is killed in the middle of its copies: the owner can still destroy,
 * and the channel serves the next one. */
static void test_peer_killed(struct job *job)
{
	size_t bytes = 3 << 20;
	oc_node *node = share_join(job);
	uint8_t *mine = share_alloc(bytes, 3);
	struct iovec iov = {.iov_base = mine, .iov_len = bytes};
	uint32_t last = job->nranks - 1;
	oc_cookie cookie;
	double start_s;

	memset(mine, 1, bytes);
	if (job->rank == 0) {
		CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ | OC_REGION_WRITE, &cookie),
			 0);
		share_tell(job, 0, cookie);
		kill((pid_t)share_hear(job, 1), SIGKILL);
		start_s = share_now_s();
		while (oc_node_alive(node, last))
			share_nap_us(100);
		if (job->nranks > 2)
			share_hear(job, 2);
		CHECK_EQ(oc_region_destroy(node, cookie), 0);
		CHECK(share_now_s() - start_s < 20);
		share_leave(job, node);
		return;
	}
	cookie = share_hear(job, 0);
	if (job->rank == last) {
		for (int i = 0;; i++) {
			ssize_t n = i % 2 ? oc_get(node, cookie, 0, &iov, 1)
					  : oc_put(node, cookie, 0, &iov, 1);

			CHECK_EQ(n, bytes);
			if (i == 3)
				share_tell(job, 1, (uint64_t)getpid());
		}
	}
	while (oc_node_alive(node, last))
		CHECK_EQ(oc_get(node, cookie, 0, &iov, 1), bytes);
	CHECK_EQ(oc_get(node, cookie, 0, &iov, 1), bytes);
	atomic_fetch_add(&job->shared->word[3], 1);
	while (atomic_load(&job->shared->word[3]) < last - 1)
		share_nap_us(100);
	share_tell(job, 2, 1);
	share_leave(job, node);
}

/* The owner leaves while others copy: each call finishes or says -EPIPE. */
static void test_owner_leaves(struct job *job)
{
	size_t bytes = 1 << 20;
	oc_node *node = share_join(job);
	uint8_t *mine = share_alloc(bytes, 3);
	struct iovec iov = {.iov_base = mine, .iov_len = bytes};
	oc_cookie cookie;
	ssize_t n;

	memset(mine, (int)job->rank + 1, bytes);
	if (job->rank == 0) {
		CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, &cookie), 0);
		share_tell(job, 0, cookie);
		CHECK_EQ(oc_node_barrier(node), 0);
		share_nap_us((long)(job_random() % 5000));
		oc_node_leave(node);
		memset(mine, 77, bytes); /* nobody may see this */
		while (atomic_load(&job->shared->word[1]) < job->nranks - 1)
			share_nap_us(100);
		share_free();
		return;
	}
	cookie = share_hear(job, 0);
	CHECK_EQ(oc_node_barrier(node), 0);
	do {
		n = oc_get(node, cookie, 0, &iov, 1);
		CHECK(n == (ssize_t)bytes || n == -EPIPE);
		for (size_t i = 0; n > 0 && i < bytes; i++)
			CHECK_EQ(mine[i], 1);
	} while (n > 0);
	atomic_fetch_add(&job->shared->word[1], 1);
	share_leave(job, node);
}

struct racer {
	oc_node *node;
	oc_cookie cookie;
	uint8_t want;
};

static void *race(void *arg)
{
	struct racer *it = arg;
	uint8_t buf[5000];
	struct iovec local = {.iov_base = buf, .iov_len = sizeof(buf)};

	for (int i = 0; i < 300; i++) {
		memset(buf, 0, sizeof(buf));
		CHECK_EQ(oc_get(it->node, it->cookie, 0, &local, 1), 5000);
		for (size_t k = 0; k < sizeof(buf); k++)
			CHECK_EQ(buf[k], it->want);
	}
	return NULL;
}

/* One handle, many threads, creating and destroying beside. */
static void test_threads(struct job *job)
{
	oc_node *node = share_join(job);
	uint8_t *mine = share_alloc(5000, 3);
	struct iovec iov = {.iov_base = mine, .iov_len = 5000};
	uint32_t next = (job->rank + 1) % job->nranks;
	struct racer racer = {.node = node, .want = (uint8_t)(next + 1)};
	pthread_t threads[4];
	oc_cookie cookie;

	memset(mine, (int)job->rank + 1, 5000);
	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, &cookie), 0);
	share_tell(job, (int)job->rank, cookie);
	racer.cookie = share_hear(job, (int)next);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, race, &racer), 0);
	for (int i = 0; i < 200; i++) {
		CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_WRITE, &cookie), 0);
		CHECK_EQ(oc_region_destroy(node, cookie), 0);
	}
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(oc_node_barrier(node), 0);
	share_leave(job, node);
}

#define LOCAL_BYTES (300 << 10)

/* More than the stacks of the library's own threads have room for. */
static __thread volatile char local_data[LOCAL_BYTES];

struct getter {
	oc_node *node;
	oc_cookie cookie;
	size_t bytes;
};

/* Cancelled before it begins: what is a cancellation point within ends it. */
static void *get_cancelled(void *arg)
{
	struct getter *it = arg;
	uint8_t *got = malloc(it->bytes);
	struct iovec iov = {.iov_base = got, .iov_len = it->bytes};

	local_data[0] = 1;
	pthread_cancel(pthread_self());
	CHECK_EQ(oc_get(it->node, it->cookie, 0, &iov, 1), (ssize_t)it->bytes);
	free(got);
	pthread_testcancel();
	return NULL;
}

/* A thread that is cancelled leaves nothing behind that others wait for. */
static void test_cancelled(struct job *job)
{
	size_t bytes = 1 << 20;
	oc_node *node = share_join(job);
	uint8_t *mine = share_alloc(bytes, 3);
	struct iovec iov = {.iov_base = mine, .iov_len = bytes};
	struct getter getter = {.node = node, .bytes = bytes};
	pthread_t thread;
	oc_cookie cookie;
	void *end;

	if (job->rank == 0) {
		CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, &cookie), 0);
		share_tell(job, 1, cookie);
	} else {
		getter.cookie = share_hear(job, 1);
		for (int turn = 0; turn < 3; turn++) {
			CHECK_EQ(pthread_create(&thread, NULL, get_cancelled, &getter), 0);
			CHECK_EQ(pthread_join(thread, &end), 0);
			CHECK(end == PTHREAD_CANCELED);
		}
		CHECK_EQ(oc_get(node, getter.cookie, 0, &iov, 1), (ssize_t)bytes);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	if (job->rank == 0)
		CHECK_EQ(oc_region_destroy(node, cookie), 0);
	share_leave(job, node);
}

int main(int argc, char **argv)
{
	static const struct job_case cases[] = {
		{"destroy-races", 2, 4, test_destroy_races},
		{"stale-cookies", 4, 4, test_stale_cookies},
		{"owner-killed", 2, 5, test_owner_killed},
		{"peer-killed", 2, 4, test_peer_killed},
		{"owner-leaves", 2, 4, test_owner_leaves},
		{"threads", 2, 3, test_threads},
		{"cancelled", 2, 3, test_cancelled},
	};

	return job_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
