// SPDX-License-Identifier: BSD-3-Clause
/*
 * malloc_torture THREADS OPS SEED: random calls of the malloc family on blocks
 * of 0 to 64 MiB, held in a table all threads share, so any thread frees any
 * block. Every block carries its own stamps: two blocks that overlap, a lost
 * realloc or a calloc that is not zero are seen.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include "../heap_probe.h"
#include "../../random.h"

#define SLOTS	 256
#define STRIDE	 4096
#define LIVE_MAX ((size_t)1 << 30)

struct slot {
	pthread_mutex_t lock;
	unsigned char *p;
	size_t bytes;
	uint64_t stamp;
};

static struct slot slots[SLOTS];
static size_t live;
static uint64_t next_stamp = 1;
static long in_arena, outside;
static struct probe arena;
static long ops;

/* Sizes by order of magnitude, so that both sides of every threshold occur. */
static size_t random_size(uint64_t *state)
{
	unsigned int bits = random_next(state) % 27;
	size_t size = random_next(state) & (((size_t)1 << bits) - 1);

	if (random_next(state) % 8 == 0)
		size = (size_t)1 << bits;
	if (random_next(state) % 16 == 0)
		size = (16 << 10) - 2 + random_next(state) % 4;
	return size;
}

static void put_stamp(const struct slot *slot)
{
	for (size_t at = 0; at + 8 <= slot->bytes; at += STRIDE)
		memcpy(slot->p + at, &slot->stamp, 8);
	if (slot->bytes >= 8)
		memcpy(slot->p + slot->bytes - 8, &slot->stamp, 8);
	else
		memset(slot->p, (int)slot->stamp, slot->bytes);
}

static void check_stamp(const struct slot *slot, size_t bytes)
{
	bool whole = bytes == slot->bytes;

	if (slot->bytes < 8) {
		for (size_t i = 0; i < bytes; i++)
			CHECK(slot->p[i] == (unsigned char)slot->stamp);
		return;
	}
	/* The last stamp may overwrite part of the one before. */
	for (size_t at = 0; at + 8 <= bytes && at + 16 <= slot->bytes; at += STRIDE)
		CHECK(!memcmp(slot->p + at, &slot->stamp, 8));
	if (whole)
		CHECK(!memcmp(slot->p + bytes - 8, &slot->stamp, 8));
}

static void check_zero(const unsigned char *p, size_t bytes)
{
	CHECK(!bytes || (!p[0] && !memcmp(p, p + 1, bytes - 1)));
}

static void drop(struct slot *slot)
{
	if (!slot->p)
		return;
	CHECK(malloc_usable_size(slot->p) >= slot->bytes);
	check_stamp(slot, slot->bytes);
	errno = 4711;
	free(slot->p);
	CHECK(errno == 4711);
	__atomic_fetch_sub(&live, slot->bytes, __ATOMIC_RELAXED);
	slot->p = NULL;
}

static void fill(struct slot *slot, unsigned char *p, size_t bytes)
{
	CHECK(p || !bytes);
	CHECK(((uintptr_t)p & 15) == 0);
	__atomic_fetch_add(&live, bytes, __ATOMIC_RELAXED);
	slot->p = p;
	slot->bytes = bytes;
	slot->stamp = __atomic_fetch_add(&next_stamp, 1, __ATOMIC_RELAXED) * 0x9e3779b97f4a7c15ull;
	if (p)
		put_stamp(slot);
	if (p && bytes >= 16384 && probe_holds(&arena, p))
		__atomic_fetch_add(&in_arena, 1, __ATOMIC_RELAXED);
	else if (p && bytes >= 16384)
		__atomic_fetch_add(&outside, 1, __ATOMIC_RELAXED);
}

static void step(struct slot *slot, uint64_t *state)
{
	size_t bytes = random_size(state);
	size_t align;
	void *p;

	if (__atomic_load_n(&live, __ATOMIC_RELAXED) + bytes > LIVE_MAX)
		bytes &= 0xffff;
	switch (random_next(state) % 8) {
	case 0:
	case 1:
		drop(slot);
		fill(slot, malloc(bytes), bytes);
		break;
	case 2:
		drop(slot);
		p = calloc(1, bytes);
		check_zero(p, bytes);
		fill(slot, p, bytes);
		break;
	case 3:
		drop(slot);
		align = (size_t)16 << random_next(state) % 19;
		CHECK(!posix_memalign(&p, align, bytes));
		CHECK(((uintptr_t)p & (align - 1)) == 0);
		fill(slot, p, bytes);
		break;
	case 4:
	case 5:
		if (!slot->p || !bytes)
			break;
		check_stamp(slot, slot->bytes);
		p = realloc(slot->p, bytes);
		CHECK(p);
		__atomic_fetch_sub(&live, slot->bytes, __ATOMIC_RELAXED);
		slot->p = p;
		check_stamp(slot, bytes < slot->bytes ? bytes : slot->bytes);
		fill(slot, p, bytes);
		break;
	default:
		drop(slot);
	}
}

static void *run(void *arg)
{
	uint64_t state = (uintptr_t)arg * 0x9e3779b97f4a7c15ull + 1;

	for (long i = 0; i < ops; i++) {
		struct slot *slot = &slots[random_next(&state) % SLOTS];

		pthread_mutex_lock(&slot->lock);
		step(slot, &state);
		pthread_mutex_unlock(&slot->lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	long count = argc > 1 ? atol(argv[1]) : 4;
	uintptr_t seed = argc > 3 ? (uintptr_t)atol(argv[3]) : 1;

	ops = argc > 2 ? atol(argv[2]) : 10000;
	arena = probe_arena();
	CHECK(arena.base && count <= 64);
	for (long i = 0; i < SLOTS; i++)
		pthread_mutex_init(&slots[i].lock, NULL);
	/* Threads come and go, so that blocks outlive their makers. */
	for (int round = 0; round < 4; round++) {
		for (long i = 0; i < count; i++)
			CHECK(!pthread_create(&threads[i], NULL, run,
					      (void *)(seed * 1000 + (uintptr_t)(round * 64 + i))));
		for (long i = 0; i < count; i++)
			pthread_join(threads[i], NULL);
	}
	for (int i = 0; i < SLOTS; i++)
		drop(&slots[i]);
	CHECK(!live);
	/* realloc() leaves a block of the C library where it is if it fits. */
	CHECK(in_arena > 100 && outside < in_arena / 10);
	printf("%ld large blocks in the heap, %ld KiB shared memory\n", in_arena,
	       probe_status("RssShmem:"));
	return 0;
}
