// SPDX-License-Identifier: BSD-3-Clause
/* Regions: what is copied, what is refused, and what a cookie is good for. */
#include <errno.h>
#include <stdatomic.h>

#include "../share.h"

#define GUARD	   64
#define GUARD_BYTE 0xa5

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
	uint8_t *base = share_alloc(room, (unsigned int)turn);
	uint8_t *before = malloc(room);
	oc_cookie cookie;

	memset(base, GUARD_BYTE, room);
	n = share_cut(base + GUARD, bytes, iov, MODEL_SEGS, &span);
	for (size_t i = 0; i < bytes; i++)
		*share_locate(iov, n, i) = share_pattern((uint64_t)turn, i);
	memcpy(before, base, room);
	CHECK_EQ(oc_region_create(node, iov, n, OC_REGION_READ | OC_REGION_WRITE, &cookie), 0);
	share_tell(job, 4 * turn, cookie);
	/* The peer has got: overwrite what it got from. */
	uint64_t got = share_hear(job, 4 * turn + 1) - 1;

	for (size_t i = 0; i < got; i++)
		*share_locate(iov, n, i) ^= 0xff;
	share_tell(job, 4 * turn + 2, 1);
	uint64_t put = share_hear(job, 4 * turn + 3);
	uint64_t off = put >> 32, len = (uint32_t)put - 1;

	for (size_t i = 0; i < bytes; i++) {
		uint8_t want = share_pattern((uint64_t)turn, i);

		if (i < got)
			want ^= 0xff;
		if (i >= off && i < off + len)
			want = share_pattern(1000 + (uint64_t)turn, i);
		CHECK_EQ(*share_locate(iov, n, i), want);
	}
	for (size_t i = 0; i < bytes; i++)
		*share_locate(iov, n, i) = *(before + (share_locate(iov, n, i) - base));
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
	oc_cookie cookie = share_hear(job, 4 * turn);
	size_t len = bytes ? job_random() % (bytes + 1) : 0;
	uint64_t off = bytes ? job_random() % (bytes + 1) : 0;

	/* From the start, so that what the owner overwrites is known. */
	memset(base, GUARD_BYTE, room);
	n = share_cut(base + GUARD, len, iov, MODEL_SEGS, &span);
	CHECK_EQ(oc_get(node, cookie, 0, iov, n), len);
	share_tell(job, 4 * turn + 1, len + 1);
	share_hear(job, 4 * turn + 2);
	memset(want, GUARD_BYTE, room);
	for (size_t i = 0; i < len; i++)
		want[share_locate(iov, n, i) - base] = share_pattern((uint64_t)turn, i);
	CHECK_EQ(memcmp(base, want, room), 0);

	/* At a random offset, longer than what is left. */
	memset(base, GUARD_BYTE, room);
	n = share_cut(base + GUARD, bytes, iov, MODEL_SEGS, &span);
	CHECK_EQ(oc_get(node, cookie, off, iov, n), bytes - off);
	for (size_t i = 0; i < bytes - off; i++)
		CHECK_EQ(*share_locate(iov, n, i),
			 (uint8_t)(share_pattern((uint64_t)turn, off + i) ^
				   (off + i < len ? 0xff : 0)));
	CHECK(bytes == off || span + GUARD >= room || base[GUARD + span] == GUARD_BYTE);

	len = bytes - off ? job_random() % (bytes - off + 1) : 0;
	n = share_cut(base + GUARD, len, iov, MODEL_SEGS, &span);
	for (size_t i = 0; i < len; i++)
		*share_locate(iov, n, i) = share_pattern(1000 + (uint64_t)turn, off + i);
	memcpy(want, base, room);
	CHECK_EQ(oc_put(node, cookie, off, iov, n), len);
	CHECK_EQ(memcmp(base, want, room), 0);
	memset(base, 0, room); /* a put is over when it returns */
	share_tell(job, 4 * turn + 3, off << 32 | (len + 1));
	free(base);
	free(want);
}

static void test_model(struct job *job)
{
	static const size_t sizes[] = {0,     1,      7,      4096,   5000,  32768,
				       32769, 100001, 300000, 262144, 70000, 1 << 20};
	oc_node *node = share_join(job);

	for (int turn = 0; turn < 12; turn++) {
		if (job->rank == 0)
			model_owner(job, node, turn, sizes[turn]);
		else if (job->rank == job->nranks - 1)
			model_peer(job, node, turn, sizes[turn]);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	share_leave(job, node);
}

/* Every rank reads every other's region of several megabytes at once. */
static void test_all_at_once(struct job *job)
{
	size_t bytes = 9 << 20;
	oc_node *node = share_join(job);
	uint8_t *mine = share_alloc(bytes, job->rank), *got = malloc(bytes);
	struct iovec iov = {.iov_base = mine, .iov_len = bytes};
	oc_cookie cookie;

	for (size_t i = 0; i < bytes; i++)
		mine[i] = share_pattern(job->rank, i);
	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, &cookie), 0);
	share_tell(job, (int)job->rank, cookie);
	iov.iov_base = got;
	for (uint32_t k = 0; k < job->nranks; k++) {
		uint32_t from = (job->rank + k) % job->nranks;

		memset(got, 0, bytes);
		CHECK_EQ(oc_get(node, share_hear(job, (int)from), 0, &iov, 1), bytes);
		for (size_t i = 0; i < bytes; i++)
			CHECK_EQ(got[i], share_pattern(from, i));
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	free(got);
	share_leave(job, node);
}

static void test_errors(struct job *job)
{
	oc_node *node = share_join(job);
	uint8_t *mine = share_alloc(4096, 3), buf[64] = {0};
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
	CHECK_EQ(oc_mech_allow(node, 1u << OC_MECH_COUNT), -EINVAL);

	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, &rd), 0);
	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_WRITE, &wr), 0);
	CHECK(rd && wr && rd != wr);
	share_tell(job, (int)(2 * job->rank), rd);
	share_tell(job, (int)(2 * job->rank + 1), wr);
	rd = share_hear(job, (int)(2 * ((job->rank + 1) % job->nranks)));
	wr = share_hear(job, (int)(2 * ((job->rank + 1) % job->nranks) + 1));
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
	share_leave(job, node);
}

static void test_random_cookies(struct job *job)
{
	oc_node *node = share_join(job);
	uint8_t *mine = share_alloc(4096, 3), buf[4096];
	struct iovec iov = {.iov_base = mine, .iov_len = 4096};
	struct iovec local = {.iov_base = buf, .iov_len = sizeof(buf)};
	oc_cookie cookie;

	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ | OC_REGION_WRITE, &cookie), 0);
	share_tell(job, (int)job->rank, cookie);
	cookie = share_hear(job, (int)((job->rank + 1) % job->nranks));
	for (int i = 0; i < 200000; i++) {
		/* Nearly right ones, too. */
		oc_cookie guess = i % 2 ? job_random() : cookie ^ 1ull << (job_random() % 64);

		CHECK_EQ(oc_get(node, guess, job_random(), &local, 1), -EINVAL);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	share_leave(job, node);
}

static void test_single_use(struct job *job)
{
	oc_node *node = share_join(job);
	uint8_t *mine = share_alloc(64, 3), buf[64];
	struct iovec iov = {.iov_base = mine, .iov_len = 64};
	struct iovec local = {.iov_base = buf, .iov_len = 64};

	for (uint64_t turn = 0; turn < 200; turn++) {
		oc_cookie cookie;
		ssize_t got;

		if (job->rank == 0) {
			CHECK_EQ(oc_region_create(node, &iov, 1,
						  OC_REGION_READ | OC_REGION_SINGLEUSE, &cookie),
				 0);
			share_tell(job, 0, cookie);
		}
		CHECK_EQ(oc_node_barrier(node), 0);
		cookie = share_hear(job, 0);
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
	share_leave(job, node);
}

/* More regions than there are slots; used single-use ones make room. */
static void test_table_full(struct job *job)
{
	oc_node *node = share_join(job);
	uint8_t *mine = share_alloc(64, 3), buf[64];
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
	share_leave(job, node);
}

/* The last rank copies between the regions of rank 0 and rank 1. */
static void test_third_party(struct job *job)
{
	size_t bytes = 700000;
	oc_node *node = share_join(job);

	for (int turn = 0; turn < 4; turn++) {
		uint8_t *mine = share_alloc(bytes, (unsigned int)turn + job->rank);
		struct iovec iov[3] = {
			{mine + 500000, 200000}, {mine, 300000}, {mine + 300000, 200000}};
		oc_cookie cookie;

		memset(mine, GUARD_BYTE, bytes);
		for (size_t i = 0; job->rank == 0 && i < bytes; i++)
			*share_locate(iov, 3, i) = share_pattern((uint64_t)turn, i);
		CHECK_EQ(oc_region_create(node, iov, 3, OC_REGION_READ | OC_REGION_WRITE, &cookie),
			 0);
		if (job->rank < 2)
			share_tell(job, 2 * turn + (int)job->rank, cookie);
		CHECK_EQ(oc_node_barrier(node), 0);
		if (job->rank == job->nranks - 1) {
			oc_cookie src = share_hear(job, 2 * turn);
			oc_cookie dst = job->nranks > 2 ? share_hear(job, 2 * turn + 1) : cookie;

			CHECK_EQ(oc_copy(node, dst, 100, src, 5000, 600000), 600000);
			/* Within one region, apart and not. */
			CHECK_EQ(oc_copy(node, dst, 0, dst, 100, 101), -EINVAL);
			CHECK_EQ(oc_copy(node, dst, 0, dst, 0, 1), -EINVAL);
			CHECK_EQ(oc_copy(node, dst, 0, dst, 100, 100), 100);
		}
		CHECK_EQ(oc_node_barrier(node), 0);
		if (job->rank == (job->nranks > 2 ? 1 : job->nranks - 1)) {
			for (size_t i = 0; i < 600000; i++)
				CHECK_EQ(*share_locate(iov, 3, 100 + i),
					 share_pattern((uint64_t)turn, 5000 + i));
			for (size_t i = 0; i < 100; i++)
				CHECK_EQ(*share_locate(iov, 3, i),
					 share_pattern((uint64_t)turn, 5000 + i));
			for (size_t i = 600100; i < bytes; i++)
				CHECK_EQ(*share_locate(iov, 3, i), GUARD_BYTE);
		}
		CHECK_EQ(oc_region_destroy(node, cookie), 0);
		CHECK_EQ(oc_node_barrier(node), 0);
	}
	share_leave(job, node);
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
	};

	return job_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
