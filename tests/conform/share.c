// SPDX-License-Identifier: BSD-3-Clause
#include "share.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

uint32_t share_mech(void)
{
	static const char *const names[OC_MECH_COUNT] = {OC_MECH_NAMES};
	const char *name = getenv("ONECOPY_TEST_MECH");

	if (!name || !strcmp(name, "any"))
		return SHARE_ANY;
	for (uint32_t i = 0; i < OC_MECH_COUNT; i++)
		if (!strcmp(name, names[i]))
			return 1u << i;
	fprintf(stderr, "ONECOPY_TEST_MECH: no mechanism %s\n", name);
	exit(1);
}

oc_node *share_join(struct job *job)
{
	oc_node *node = job_join(job);
	struct oc_mech_report report;
	uint32_t mech = share_mech();

	CHECK_EQ(oc_mech_query(node, (job->rank + 1) % job->nranks, &report), 0);
	if (mech != SHARE_ANY && !(report.usable & mech)) {
		int index = __builtin_ctz(mech);

		CHECK(report.why[index][0]);
		/* All or none, or the others would wait for us. */
		job_skip(report.why[index]);
	}
	CHECK_EQ(oc_mech_allow(node, mech), 0);
	return node;
}

static void *borrowed[64]; /* from malloc() by share_alloc(), until share_leave() */
static size_t nborrowed;

void share_free(void)
{
	while (nborrowed)
		free(borrowed[--nborrowed]);
}

void share_leave(struct job *job, oc_node *node)
{
	uint32_t mech = share_mech();
	struct oc_mech_stats stats;

	CHECK_EQ(oc_mech_stats(node, &stats), 0);
	for (int i = 0; i < OC_MECH_COUNT; i++)
		if (!(mech & 1u << i))
			CHECK_EQ(stats.calls[i], 0);
	oc_node_leave(node);
	share_free();
}

void share_nap_us(long us)
{
	struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	nanosleep(&ts, NULL);
}

double share_now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

void share_tell(struct job *job, int word, uint64_t value)
{
	atomic_store(&job->shared->word[word], value);
}

uint64_t share_hear(struct job *job, int word)
{
	uint64_t value;

	while (!(value = atomic_load(&job->shared->word[word])))
		share_nap_us(50);
	return value;
}

uint8_t *share_alloc(size_t bytes, unsigned int kind)
{
	static uint8_t fixed[1 << 16];
	uint8_t *p;

	if (share_mech() == OC_MECH_HEAP || (kind % 4 == 0 && !*oc_heap_why())) {
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

uint8_t share_pattern(uint64_t seed, uint64_t i)
{
	return (uint8_t)((seed + i) * 0x9e3779b97f4a7c15u >> 56);
}

size_t share_cut(uint8_t *base, size_t bytes, struct iovec *iov, size_t max, size_t *span)
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

uint8_t *share_locate(const struct iovec *iov, size_t n, uint64_t offset)
{
	for (size_t i = 0; i < n; i++) {
		if (offset < iov[i].iov_len)
			return (uint8_t *)iov[i].iov_base + offset;
		offset -= iov[i].iov_len;
	}
	return NULL;
}
