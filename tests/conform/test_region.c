// SPDX-License-Identifier: BSD-3-Clause
/*
 * Regions over every mechanism. One body for all of them: ONECOPY_TEST_MECH
 * names the one that may be used (heap, cma, staged; "any" for all), and the
 * statistics must show at the end that it was that one.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

#define GUARD	   64
#define GUARD_BYTE 0xa5

enum { ANY = OC_MECH_HEAP | OC_MECH_CMA | OC_MECH_STAGED };

static uint32_t wanted_mech(void)
{
	const char *name = getenv("ONECOPY_TEST_MECH");

	if (!name || !strcmp(name, "any"))
		return ANY;
	if (!strcmp(name, "heap"))
		return OC_MECH_HEAP;
	if (!strcmp(name, "cma"))
		return OC_MECH_CMA;
	CHECK(!strcmp(name, "staged"));
	return OC_MECH_STAGED;
}

static oc_node *start(struct job *job)
{
	oc_node *node = job_join(job);
	struct oc_mech_report report;
	uint32_t mech = wanted_mech();

	CHECK_EQ(oc_mech_query(node, (job->rank + 1) % job->nranks, &report), 0);
	if (mech != ANY && !(report.usable & mech)) {
		int index = mech == OC_MECH_HEAP ? 0 : mech == OC_MECH_CMA ? 1 : 2;

		CHECK(report.why[index][0]);
		/* All or none, or the others would wait for us. */
		job_skip(report.why[index]);
	}
	CHECK_EQ(oc_mech_allow(node, mech), 0);
	return node;
}

static void *borrowed[64]; /* from malloc() by get_memory(), until finish() */
static size_t nborrowed;

static void free_memory(void)
{
	while (nborrowed)
		free(borrowed[--nborrowed]);
}

static void finish(struct job *job, oc_node *node)
{
	uint32_t mech = wanted_mech();
	struct oc_mech_stats stats;

	CHECK_EQ(oc_mech_stats(node, &stats), 0);
	for (int i = 0; i < 3; i++)
		if (!(mech & 1u << i))
			CHECK_EQ(stats.calls[i], 0);
	oc_node_leave(node);
	free_memory();
}

static void nap_us(long us)
{
	struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	nanosleep(&ts, NULL);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static void tell(struct job *job, int word, uint64_t value)
{
	atomic_store(&job->shared->word[word], value);
}

static uint64_t hear(struct job *job, int word)
{
	uint64_t value;

	while (!(value = atomic_load(&job->shared->word[word])))
		nap_us(50);
	return value;
}

/* Memory the mechanism under test can reach, of the kind @kind picks. */
static uint8_t *get_memory(size_t bytes, unsigned int kind)
{
	static uint8_t fixed[1 << 16];
	uint8_t *p;

	if (wanted_mech() == OC_MECH_HEAP || (kind % 4 == 0 && !*oc_heap_why())) {
		p = oc_alloc(bytes);
		CHECK(p != NULL);
		return p;
	}
	if (kind % 4 == 1 && bytes <= sizeof(fixed))
		return fixed;
	if (kind % 4 == 2) {
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		CHECK(p != MAP_FAILED);
		return p;
	}
	p = malloc(bytes);
	CHECK(p != NULL && nborrowed < sizeof(borrowed) / sizeof(borrowed[0]));
	borrowed[nborrowed++] = p;
	return p;
}

static uint8_t pattern(uint64_t seed, uint64_t i)
{
	return (uint8_t)((seed + i) * 0x9e3779b97f4a7c15u >> 56);
}

/* Cuts [0, bytes) of @base into at most @max segments in random order of
 * memory, with gaps; *@span is what of @base was spent. */
static size_t cut(uint8_t *base, size_t bytes, struct iovec *iov, size_t max, size_t *span)
{
	size_t n = 0, at = 0, left = bytes;

	while (left && n < max - 1) {
		size_t len = job_random() % 4 ? 1 + job_random() % (2 * bytes / max + 1) : 0;

		len = len < left ? len : left;
		at += job_random() % 9;
		iov[n++] = (struct iovec){.iov_base = base + at, .iov_len = len};
		at += len;
		left -= len;
	}
	iov[n++] = (struct iovec){.iov_base = base + at, .iov_len = left};
	*span = at + left;
	for (size_t i = n - 1; i > 0; i--) {
		size_t k = job_random() % (i + 1);
		struct iovec swap = iov[i];

		iov[i] = iov[k];
		iov[k] = swap;
	}
	return n;
}

static uint8_t *locate(const struct iovec *iov, size_t n, uint64_t offset)
{
	for (size_t i = 0; i < n; i++) {
		if (offset < iov[i].iov_len)
			return (uint8_t *)iov[i].iov_base + offset;
		offset -= iov[i].iov_len;
	}
	return NULL;
}

#define MODEL_SEGS 40

/*
 * Rank 0 owns a region of random shape; the last rank gets and puts random
 * parts of it from and to buffers of random shape, and a byte-wise model says
 * what must be where. Bytes between and around segments must not change. After
 * a get the owner overwrites at once, and what was got must stay.
 */
static void model_owner(struct job *job, oc_node *node, int turn, size_t bytes)
{
	struct iovec iov[MODEL_SEGS];
	size_t room = bytes + 16 * MODEL_SEGS + 2 * GUARD, span, n;
	uint8_t *base = get_memory(room, (unsigned int)turn);
	uint8_t *before = malloc(room);
	oc_cookie cookie;

	memset(base, GUARD_BYTE, room);
	n = cut(base + GUARD, bytes, iov, MODEL_SEGS, &span);
	for (size_t i = 0; i < bytes; i++)
		*locate(iov, n, i) = pattern((uint64_t)turn, i);
	memcpy(before, base, room);
	CHECK_EQ(oc_region_create(node, iov, n, OC_REGION_READ | OC_REGION_WRITE, &cookie), 0);
	tell(job, 4 * turn, cookie);
	/* The peer has got: overwrite what it got from. */
	uint64_t got = hear(job, 4 * turn + 1) - 1;

	for (size_t i = 0; i < got; i++)
		*locate(iov, n, i) ^= 0xff;
	tell(job, 4 * turn + 2, 1);
	uint64_t put = hear(job, 4 * turn + 3);
	uint64_t off = put >> 32, len = (uint32_t)put - 1;

	for (size_t i = 0; i < bytes; i++) {
		uint8_t want = pattern((uint64_t)turn, i);

		if (i < got)
			want ^= 0xff;
		if (i >= off && i < off + len)
			want = pattern(1000 + (uint64_t)turn, i);
		CHECK_EQ(*locate(iov, n, i), want);
	}
	for (size_t i = 0; i < bytes; i++)
		*locate(iov, n, i) = *(before + (locate(iov, n, i) - base));
	CHECK_EQ(memcmp(base, before, room), 0);
	CHECK_EQ(oc_region_destroy(node, cookie), 0);
	CHECK_EQ(oc_region_destroy(node, cookie), -EINVAL);
	free(before);
}

static void model_peer(struct job *job, oc_node *node, int turn, size_t bytes)
{
	struct iovec iov[MODEL_SEGS];
	size_t room = bytes + 16 * MODEL_SEGS + 2 * GUARD, span, n;
	uint8_t *base = malloc(room);
	uint8_t *want = malloc(room);
	oc_cookie cookie = hear(job, 4 * turn);
	size_t len = bytes ? job_random() % (bytes + 1) : 0;
	uint64_t off = bytes ? job_random() % (bytes + 1) : 0;

	/* From the start, so that what the owner overwrites is known. */
	memset(base, GUARD_BYTE, room);
	n = cut(base + GUARD, len, iov, MODEL_SEGS, &span);
	CHECK_EQ(oc_get(node, cookie, 0, iov, n), len);
	tell(job, 4 * turn + 1, len + 1);
	hear(job, 4 * turn + 2);
	memset(want, GUARD_BYTE, room);
	for (size_t i = 0; i < len; i++)
		want[locate(iov, n, i) - base] = pattern((uint64_t)turn, i);
	CHECK_EQ(memcmp(base, want, room), 0);

	/* At a random offset, longer than what is left. */
	memset(base, GUARD_BYTE, room);
	n = cut(base + GUARD, bytes, iov, MODEL_SEGS, &span);
	CHECK_EQ(oc_get(node, cookie, off, iov, n), bytes - off);
	for (size_t i = 0; i < bytes - off; i++)
		CHECK_EQ(*locate(iov, n, i),
			 (uint8_t)(pattern((uint64_t)turn, off + i) ^ (off + i < len ? 0xff : 0)));
	CHECK(bytes == off || span + GUARD >= room || base[GUARD + span] == GUARD_BYTE);

	len = bytes - off ? job_random() % (bytes - off + 1) : 0;
	n = cut(base + GUARD, len, iov, MODEL_SEGS, &span);
	for (size_t i = 0; i < len; i++)
		*locate(iov, n, i) = pattern(1000 + (uint64_t)turn, off + i);
	memcpy(want, base, room);
	CHECK_EQ(oc_put(node, cookie, off, iov, n), len);
	CHECK_EQ(memcmp(base, want, room), 0);
	memset(base, 0, room); /* a put is over when it returns */
	tell(job, 4 * turn + 3, off << 32 | (len + 1));
	free(base);
	free(want);
}

static void test_model(struct job *job)
{
	static const size_t sizes[] = {0,     1,      7,      4096,   5000,  32768,
				       32769, 100001, 300000, 262144, 70000, 1 << 20};
	oc_node *node = start(job);

	for (int turn = 0; turn < 12; turn++) {
		if (job->rank == 0)
			model_owner(job, node, turn, sizes[turn]);
		else if (job->rank == job->nranks - 1)
			model_peer(job, node, turn, sizes[turn]);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	finish(job, node);
}

/* Every rank reads every other's region of several megabytes at once. */
static void test_all_at_once(struct job *job)
{
	size_t bytes = 9 << 20;
	oc_node *node = start(job);
	uint8_t *mine = get_memory(bytes, job->rank), *got = malloc(bytes);
	struct iovec iov = {.iov_base = mine, .iov_len = bytes};
	oc_cookie cookie;

	for (size_t i = 0; i < bytes; i++)
		mine[i] = pattern(job->rank, i);
	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, &cookie), 0);
	tell(job, (int)job->rank, cookie);
	iov.iov_base = got;
	for (uint32_t k = 0; k < job->nranks; k++) {
		uint32_t from = (job->rank + k) % job->nranks;

		memset(got, 0, bytes);
		CHECK_EQ(oc_get(node, hear(job, (int)from), 0, &iov, 1), bytes);
		for (size_t i = 0; i < bytes; i++)
			CHECK_EQ(got[i], pattern(from, i));
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	free(got);
	finish(job, node);
}

static void test_errors(struct job *job)
{
	oc_node *node = start(job);
	uint8_t *mine = get_memory(4096, 3), buf[64] = {0};
	struct iovec iov = {.iov_base = mine, .iov_len = 4096};
	struct iovec local = {.iov_base = buf, .iov_len = sizeof(buf)};
	struct iovec huge[2] = {{buf, SIZE_MAX / 2}, {buf, SIZE_MAX / 2}};
	struct iovec wrap = {(void *)(uintptr_t)-100, 200};
	oc_cookie cookie = 42, rd, wr;

	CHECK_EQ(oc_region_create(NULL, &iov, 1, OC_REGION_READ, &cookie), -EINVAL);
	CHECK_EQ(oc_region_create(node, NULL, 1, OC_REGION_READ, &cookie), -EINVAL);
	CHECK_EQ(oc_region_create(node, &iov, 0, OC_REGION_READ, &cookie), -EINVAL);
	CHECK_EQ(oc_region_create(node, &iov, 1, 0, &cookie), -EINVAL);
	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_SINGLEUSE, &cookie), -EINVAL);
	CHECK_EQ(oc_region_create(node, &iov, 1, 0x81, &cookie), -EINVAL);
	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, NULL), -EINVAL);
	CHECK_EQ(oc_region_create(node, huge, 2, OC_REGION_READ, &cookie), -EINVAL);
	CHECK_EQ(oc_region_create(node, &wrap, 1, OC_REGION_READ, &cookie), -EINVAL);
	CHECK_EQ(cookie, 42);
	CHECK_EQ(oc_region_destroy(node, 0), -EINVAL);
	CHECK_EQ(oc_region_destroy(node, 12345), -EINVAL);
	CHECK_EQ(oc_mech_allow(node, 0), -EINVAL);
	CHECK_EQ(oc_mech_allow(node, 0x8), -EINVAL);

	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, &rd), 0);
	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_WRITE, &wr), 0);
	CHECK(rd && wr && rd != wr);
	tell(job, (int)(2 * job->rank), rd);
	tell(job, (int)(2 * job->rank + 1), wr);
	rd = hear(job, (int)(2 * ((job->rank + 1) % job->nranks)));
	wr = hear(job, (int)(2 * ((job->rank + 1) % job->nranks) + 1));
	CHECK_EQ(oc_get(NULL, rd, 0, &local, 1), -EINVAL);
	CHECK_EQ(oc_get(node, rd, 0, NULL, 1), -EINVAL);
	CHECK_EQ(oc_get(node, rd, 0, huge, 2), -EINVAL);
	CHECK_EQ(oc_get(node, wr, 0, &local, 1), -EACCES);
	CHECK_EQ(oc_put(node, rd, 0, &local, 1), -EACCES);
	CHECK_EQ(oc_copy(node, rd, 0, rd, 0, 1), -EACCES);
	CHECK_EQ(oc_copy(node, wr, 0, wr, 0, 1), -EACCES);
	CHECK_EQ(oc_get(node, 0, 0, &local, 1), -EINVAL);
	CHECK_EQ(oc_get(node, rd ^ 1ull << 40, 0, &local, 1), -EINVAL);
	CHECK_EQ(oc_get(node, rd, 4096, &local, 1), 0);
	CHECK_EQ(oc_get(node, rd, UINT64_MAX, &local, 1), 0);
	CHECK_EQ(oc_get(node, rd, UINT64_MAX - 10, &local, 1), 0);
	CHECK_EQ(oc_get(node, rd, 4090, &local, 1), 6);
	CHECK_EQ(oc_get(node, rd, 0, NULL, 0), 0);
	CHECK_EQ(oc_put(node, wr, 4095, &local, 1), 1);
	CHECK_EQ(oc_copy(node, wr, UINT64_MAX, rd, 0, 10), 0);
	CHECK_EQ(oc_copy(node, wr, 0, rd, 4090, 10), 6);
	if (job->nranks > 1)
		CHECK_EQ(oc_region_destroy(node, rd), -EINVAL); /* not ours */
	CHECK_EQ(oc_node_barrier(node), 0);
	finish(job, node);
}

static void test_random_cookies(struct job *job)
{
	oc_node *node = start(job);
	uint8_t *mine = get_memory(4096, 3), buf[4096];
	struct iovec iov = {.iov_base = mine, .iov_len = 4096};
	struct iovec local = {.iov_base = buf, .iov_len = sizeof(buf)};
	oc_cookie cookie;

	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ | OC_REGION_WRITE, &cookie), 0);
	tell(job, (int)job->rank, cookie);
	cookie = hear(job, (int)((job->rank + 1) % job->nranks));
	for (int i = 0; i < 200000; i++) {
		/* Nearly right ones, too. */
		oc_cookie guess = i % 2 ? job_random() : cookie ^ 1ull << (job_random() % 64);

		CHECK_EQ(oc_get(node, guess, job_random(), &local, 1), -EINVAL);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	finish(job, node);
}

static void test_single_use(struct job *job)
{
	oc_node *node = start(job);
	uint8_t *mine = get_memory(64, 3), buf[64];
	struct iovec iov = {.iov_base = mine, .iov_len = 64};
	struct iovec local = {.iov_base = buf, .iov_len = 64};

	for (uint64_t turn = 0; turn < 200; turn++) {
		oc_cookie cookie;
		ssize_t got;

		if (job->rank == 0) {
			CHECK_EQ(oc_region_create(node, &iov, 1,
						  OC_REGION_READ | OC_REGION_SINGLEUSE, &cookie),
				 0);
			tell(job, 0, cookie);
		}
		CHECK_EQ(oc_node_barrier(node), 0);
		cookie = hear(job, 0);
		/* Refused for protection is not used. */
		CHECK(oc_put(node, cookie, 0, &local, 1) < 0);
		CHECK_EQ(oc_node_barrier(node), 0);
		if (job->rank) {
			got = oc_get(node, cookie, 0, &local, 1);
			CHECK(got == 64 || got == -EINVAL);
			atomic_fetch_add(&job->shared->word[1], got == 64);
		}
		CHECK_EQ(oc_node_barrier(node), 0);
		CHECK_EQ(atomic_load(&job->shared->word[1]), turn + 1);
		CHECK_EQ(oc_get(node, cookie, 0, &local, 1), -EINVAL);
		if (job->rank == 0)
			CHECK_EQ(oc_region_destroy(node, cookie), 0);
		CHECK_EQ(oc_node_barrier(node), 0);
	}
	finish(job, node);
}

/* More regions than there are slots; used single-use ones make room. */
static void test_table_full(struct job *job)
{
	oc_node *node = start(job);
	uint8_t *mine = get_memory(64, 3), buf[64];
	struct iovec iov = {.iov_base = mine, .iov_len = 64};
	struct iovec local = {.iov_base = buf, .iov_len = 64};
	struct iovec *many = calloc(40000, sizeof(*many));
	oc_cookie cookies[4096], extra;
	int n = 0, err;

	for (int i = 0; i < 40000; i++)
		many[i] = (struct iovec){.iov_base = mine, .iov_len = 1};
	CHECK_EQ(oc_region_create(node, many, 40000, OC_REGION_READ, &extra), -ENOSPC);
	CHECK_EQ(oc_region_create(node, many, 20000, OC_REGION_READ, &extra), 0);
	CHECK_EQ(oc_region_create(node, many, 20000, OC_REGION_READ, &cookies[0]), -ENOSPC);
	CHECK_EQ(oc_region_destroy(node, extra), 0);
	CHECK_EQ(oc_region_create(node, many, 20000, OC_REGION_READ, &extra), 0);
	CHECK_EQ(oc_region_destroy(node, extra), 0);
	while (!(err = oc_region_create(node, &iov, 1, OC_REGION_READ | OC_REGION_SINGLEUSE,
					&cookies[n])))
		n++;
	CHECK_EQ(err, -ENOSPC);
	CHECK_EQ(n, 4096);
	CHECK_EQ(oc_get(node, cookies[17], 0, &local, 1), 64);
	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, &extra), 0);
	CHECK_EQ(oc_region_destroy(node, cookies[17]), -EINVAL);
	for (int i = 0; i < n; i++)
		if (i != 17)
			CHECK_EQ(oc_region_destroy(node, cookies[i]), 0);
	CHECK_EQ(oc_region_destroy(node, extra), 0);
	free(many);
	finish(job, node);
}

/* The last rank copies between the regions of rank 0 and rank 1. */
static void test_third_party(struct job *job)
{
	size_t bytes = 700000;
	oc_node *node = start(job);

	for (int turn = 0; turn < 4; turn++) {
		uint8_t *mine = get_memory(bytes, (unsigned int)turn + job->rank);
		struct iovec iov[3] = {
			{mine + 500000, 200000}, {mine, 300000}, {mine + 300000, 200000}};
		oc_cookie cookie;

		memset(mine, GUARD_BYTE, bytes);
		for (size_t i = 0; job->rank == 0 && i < bytes; i++)
			*locate(iov, 3, i) = pattern((uint64_t)turn, i);
		CHECK_EQ(oc_region_create(node, iov, 3, OC_REGION_READ | OC_REGION_WRITE, &cookie),
			 0);
		if (job->rank < 2)
			tell(job, 2 * turn + (int)job->rank, cookie);
		CHECK_EQ(oc_node_barrier(node), 0);
		if (job->rank == job->nranks - 1) {
			oc_cookie src = hear(job, 2 * turn);
			oc_cookie dst = job->nranks > 2 ? hear(job, 2 * turn + 1) : cookie;

			CHECK_EQ(oc_copy(node, dst, 100, src, 5000, 600000), 600000);
			/* Within one region, apart and not. */
			CHECK_EQ(oc_copy(node, dst, 0, dst, 100, 101), -EINVAL);
			CHECK_EQ(oc_copy(node, dst, 0, dst, 0, 1), -EINVAL);
			CHECK_EQ(oc_copy(node, dst, 0, dst, 100, 100), 100);
		}
		CHECK_EQ(oc_node_barrier(node), 0);
		if (job->rank == (job->nranks > 2 ? 1 : job->nranks - 1)) {
			for (size_t i = 0; i < 600000; i++)
				CHECK_EQ(*locate(iov, 3, 100 + i),
					 pattern((uint64_t)turn, 5000 + i));
			for (size_t i = 0; i < 100; i++)
				CHECK_EQ(*locate(iov, 3, i), pattern((uint64_t)turn, 5000 + i));
			for (size_t i = 600100; i < bytes; i++)
				CHECK_EQ(*locate(iov, 3, i), GUARD_BYTE);
		}
		CHECK_EQ(oc_region_destroy(node, cookie), 0);
		CHECK_EQ(oc_node_barrier(node), 0);
	}
	finish(job, node);
}

/*
 * The owner creates, destroys and scribbles; peers copy all the time. What they
 * get is what the region held while it was one, never the scribble: destroy has
 * waited for them.
 */
static void test_destroy_races(struct job *job)
{
	size_t bytes = 200000;
	oc_node *node = start(job);
	uint8_t *mine = get_memory(bytes, 3), *got = malloc(bytes);
	struct iovec iov = {.iov_base = job->rank ? got : mine, .iov_len = bytes};
	uint64_t good = 0;

	if (job->rank == 0) {
		double end = now_s() + 1;

		for (uint64_t turn = 0; now_s() < end || turn < 20; turn++) {
			oc_cookie cookie;

			memset(mine, (int)(turn % 200) + 1, bytes);
			CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, &cookie), 0);
			tell(job, 1, cookie);
			nap_us((long)(job_random() % 300));
			CHECK_EQ(oc_region_destroy(node, cookie), 0);
			memset(mine, 0, bytes);
		}
		tell(job, 2, 1);
	}
	while (job->rank && !atomic_load(&job->shared->word[2])) {
		oc_cookie cookie = hear(job, 1);
		ssize_t n = oc_get(node, cookie, 0, &iov, 1);

		CHECK(n == (ssize_t)bytes || n == -EINVAL);
		if (n < 0)
			continue;
		good++;
		CHECK(got[0] != 0);
		for (size_t i = 0; i < bytes; i++)
			CHECK_EQ(got[i], got[0]);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	if (job->rank)
		CHECK(good > 0);
	free(got);
	finish(job, node);
}

/* Rank 0 is killed while the others copy from it: -EPIPE within seconds. */
static void test_owner_killed(struct job *job)
{
	size_t bytes = 3 << 20;
	oc_node *node = start(job);
	uint8_t *mine = get_memory(bytes, 3);
	struct iovec iov = {.iov_base = mine, .iov_len = bytes};
	oc_cookie cookie;
	double start_s;
	ssize_t n;

	if (job->rank == 0) {
		memset(mine, 1, bytes);
		CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ | OC_REGION_WRITE, &cookie),
			 0);
		tell(job, 0, cookie);
		CHECK_EQ(oc_node_barrier(node), 0);
		nap_us((long)(job_random() % 20000));
		job_die();
	}
	cookie = hear(job, 0);
	CHECK_EQ(oc_node_barrier(node), 0);
	start_s = now_s();
	do {
		n = job->rank % 2 ? oc_get(node, cookie, 0, &iov, 1)
				  : oc_put(node, cookie, 0, &iov, 1);
		CHECK(n == (ssize_t)bytes || n == -EPIPE);
		CHECK(now_s() - start_s < 10);
	} while (n != -EPIPE);
	while (oc_node_alive(node, 0))
		nap_us(100);
	finish(job, node);
}

/* A peer is killed in the middle of its copies: the owner can still destroy,
 * and the channel serves the next one. */
static void test_peer_killed(struct job *job)
{
	size_t bytes = 3 << 20;
	oc_node *node = start(job);
	uint8_t *mine = get_memory(bytes, 3);
	struct iovec iov = {.iov_base = mine, .iov_len = bytes};
	uint32_t last = job->nranks - 1;
	oc_cookie cookie;
	double start_s;

	memset(mine, 1, bytes);
	if (job->rank == 0) {
		CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ | OC_REGION_WRITE, &cookie),
			 0);
		tell(job, 0, cookie);
		kill((pid_t)hear(job, 1), SIGKILL);
		start_s = now_s();
		while (oc_node_alive(node, last))
			nap_us(100);
		if (job->nranks > 2)
			hear(job, 2);
		CHECK_EQ(oc_region_destroy(node, cookie), 0);
		CHECK(now_s() - start_s < 20);
		finish(job, node);
		return;
	}
	cookie = hear(job, 0);
	if (job->rank == last) {
		for (int i = 0;; i++) {
			ssize_t n = i % 2 ? oc_get(node, cookie, 0, &iov, 1)
					  : oc_put(node, cookie, 0, &iov, 1);

			CHECK_EQ(n, bytes);
			if (i == 3)
				tell(job, 1, (uint64_t)getpid());
		}
	}
	while (oc_node_alive(node, last))
		CHECK_EQ(oc_get(node, cookie, 0, &iov, 1), bytes);
	CHECK_EQ(oc_get(node, cookie, 0, &iov, 1), bytes);
	atomic_fetch_add(&job->shared->word[3], 1);
	while (atomic_load(&job->shared->word[3]) < last - 1)
		nap_us(100);
	tell(job, 2, 1);
	finish(job, node);
}

/* The owner leaves while others copy: each call finishes or says -EPIPE. */
static void test_owner_leaves(struct job *job)
{
	size_t bytes = 1 << 20;
	oc_node *node = start(job);
	uint8_t *mine = get_memory(bytes, 3);
	struct iovec iov = {.iov_base = mine, .iov_len = bytes};
	oc_cookie cookie;
	ssize_t n;

	memset(mine, (int)job->rank + 1, bytes);
	if (job->rank == 0) {
		CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, &cookie), 0);
		tell(job, 0, cookie);
		CHECK_EQ(oc_node_barrier(node), 0);
		nap_us((long)(job_random() % 5000));
		oc_node_leave(node);
		memset(mine, 77, bytes); /* nobody may see this */
		while (atomic_load(&job->shared->word[1]) < job->nranks - 1)
			nap_us(100);
		free_memory();
		return;
	}
	cookie = hear(job, 0);
	CHECK_EQ(oc_node_barrier(node), 0);
	do {
		n = oc_get(node, cookie, 0, &iov, 1);
		CHECK(n == (ssize_t)bytes || n == -EPIPE);
		for (size_t i = 0; n > 0 && i < bytes; i++)
			CHECK_EQ(mine[i], 1);
	} while (n > 0);
	atomic_fetch_add(&job->shared->word[1], 1);
	finish(job, node);
}

/* Memory that is not mapped, at either end: an error, never a fault. Plain
 * pointers (heap) are as good as what they are given. */
static void test_faults(struct job *job)
{
	uint32_t mech = wanted_mech();
	oc_node *node;
	uint8_t *hole, *mine;
	struct iovec iov[2], local;
	oc_cookie cookie, good;

	if (mech == OC_MECH_HEAP)
		job_skip("plain pointers have no errors");
	node = start(job);
	CHECK_EQ(oc_mech_allow(node, mech & ~OC_MECH_HEAP), 0);
	hole = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mine = malloc(1 << 20);
	memset(mine, 1, 1 << 20);
	memset(hole, 2, 1 << 20);
	iov[0] = (struct iovec){mine, 100000};
	iov[1] = (struct iovec){hole, 1 << 20};
	CHECK_EQ(oc_region_create(node, iov, 2, OC_REGION_READ | OC_REGION_WRITE, &cookie), 0);
	CHECK_EQ(oc_region_create(node, iov, 1, OC_REGION_READ | OC_REGION_WRITE, &good), 0);
	munmap(hole + 400000 / 4096 * 4096, 4096);
	tell(job, (int)(2 * job->rank), cookie);
	tell(job, (int)(2 * job->rank + 1), good);
	cookie = hear(job, (int)(2 * ((job->rank + 1) % job->nranks)));
	good = hear(job, (int)(2 * ((job->rank + 1) % job->nranks) + 1));
	local = (struct iovec){malloc(1 << 20), 1 << 20};
	CHECK_EQ(oc_get(node, cookie, 0, &local, 1), -EFAULT);
	CHECK_EQ(oc_put(node, cookie, 0, &local, 1), -EFAULT);
	local.iov_len = 300000;
	CHECK_EQ(oc_get(node, cookie, 0, &local, 1), 300000);
	/* Our own end. */
	iov[0] = (struct iovec){hole + 400000 / 4096 * 4096, 4096};
	CHECK_EQ(oc_get(node, good, 0, iov, 1), -EFAULT);
	CHECK_EQ(oc_put(node, good, 0, iov, 1), -EFAULT);
	CHECK_EQ(oc_get(node, good, 0, &local, 1), 100000);
	free(local.iov_base);
	CHECK_EQ(oc_node_barrier(node), 0);
	free(mine);
	finish(job, node);
}

/* The heap alone cannot reach memory outside of it; what may be used is asked
 * each time. */
static void test_forbidden(struct job *job)
{
	oc_node *node = job_join(job);
	static uint8_t outside[64];
	uint8_t buf[64];
	struct iovec iov = {.iov_base = outside, .iov_len = sizeof(outside)};
	struct iovec local = {.iov_base = buf, .iov_len = sizeof(buf)};
	struct oc_mech_report report;
	oc_cookie cookie;

	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, &cookie), 0);
	tell(job, (int)job->rank, cookie);
	cookie = hear(job, (int)((job->rank + 1) % job->nranks));
	CHECK_EQ(oc_mech_allow(node, OC_MECH_HEAP), 0);
	CHECK_EQ(oc_mech_query(node, 0, &report), 0);
	CHECK_EQ(report.forbidden, OC_MECH_CMA | OC_MECH_STAGED);
	CHECK_EQ(report.usable & report.forbidden, 0);
	CHECK(report.why[1][0] && report.why[2][0]);
	CHECK_EQ(oc_mech_query(node, job->nranks, &report), -EINVAL);
	CHECK_EQ(oc_get(node, cookie, 0, &local, 1), -EOPNOTSUPP);
	CHECK_EQ(oc_mech_allow(node, ANY), 0);
	CHECK_EQ(oc_get(node, cookie, 0, &local, 1), 64);
	CHECK_EQ(oc_node_barrier(node), 0);
	oc_node_leave(node);
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
	oc_node *node = start(job);
	uint8_t *mine = get_memory(5000, 3);
	struct iovec iov = {.iov_base = mine, .iov_len = 5000};
	uint32_t next = (job->rank + 1) % job->nranks;
	struct racer racer = {.node = node, .want = (uint8_t)(next + 1)};
	pthread_t threads[4];
	oc_cookie cookie;

	memset(mine, (int)job->rank + 1, 5000);
	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, &cookie), 0);
	tell(job, (int)job->rank, cookie);
	racer.cookie = hear(job, (int)next);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, race, &racer), 0);
	for (int i = 0; i < 200; i++) {
		CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_WRITE, &cookie), 0);
		CHECK_EQ(oc_region_destroy(node, cookie), 0);
	}
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(oc_node_barrier(node), 0);
	finish(job, node);
}

int main(int argc, char **argv)
{
	static const struct job_case cases[] = {
		{"model", 2, 3, test_model},
		{"all-at-once", 1, 4, test_all_at_once},
		{"errors", 1, 3, test_errors},
		{"random-cookies", 2, 2, test_random_cookies},
		{"single-use", 2, 4, test_single_use},
		{"table-full", 1, 1, test_table_full},
		{"third-party", 2, 4, test_third_party},
		{"destroy-races", 2, 4, test_destroy_races},
		{"owner-killed", 2, 5, test_owner_killed},
		{"peer-killed", 2, 4, test_peer_killed},
		{"owner-leaves", 2, 4, test_owner_leaves},
		{"faults", 2, 2, test_faults},
		{"forbidden", 2, 2, test_forbidden},
		{"threads", 2, 3, test_threads},
	};

	return job_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
