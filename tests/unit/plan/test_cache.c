// SPDX-License-Identifier: BSD-3-Clause
/* How often plans are made: the generator's calls are counted. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"
#include "plan/cache.h"
#include "../expect.h"

static unsigned long made;
static bool fails;

static struct oc_plan *make(const struct oc_plan_key *key)
{
	const struct oc_blocks blocks = {key->array[0], key->array[1]};

	made++;
	if (fails)
		return NULL;
	if (key->narrays)
		return oc_coll_allgatherv(&key->shape, &blocks);
	return key->shape.coll == OC_COLL_REDUCE ? oc_coll_reduce(&key->shape)
						 : oc_coll_bcast(&key->shape);
}

static struct oc_plan_key key_of(enum oc_coll coll, uint32_t size, uint32_t root, uint64_t bytes)
{
	struct oc_plan_key key;

	memset(&key, 0, sizeof(key));
	key.shape = (struct oc_shape){.coll = (uint16_t)coll,
				      .rank = 5,
				      .size = (uint16_t)size,
				      .root = (uint16_t)root,
				      .granule = 8,
				      .bytes = bytes};
	return key;
}

static const struct oc_plan *get(struct oc_plan_cache *cache, const struct oc_plan_key *key)
{
	const struct oc_plan *plan = oc_plan_cache_get(cache, key, make);

	EXPECT(plan && !memcmp(&plan->shape, &key->shape, sizeof(key->shape)));
	return plan;
}

/* Programs that broadcast from each rank in turn, and reduce to each, make each plan once. */
static void test_roots(enum oc_coll coll)
{
	struct oc_plan_cache cache = {0};

	made = 0;
	for (uint32_t turn = 0; turn < 10; turn++)
		for (uint32_t root = 0; root < 64; root++) {
			struct oc_plan_key key = key_of(coll, 64, root, 1 << 20);

			get(&cache, &key);
		}
	EXPECT(made == 64);
	oc_plan_cache_clear(&cache);
	EXPECT(!cache.bytes && !cache.newest);
}

/* The same blocks have the same plan, wherever they are told; others another. */
static void test_blocks(void)
{
	struct oc_plan_cache cache = {0};
	struct oc_plan_key key = key_of(OC_COLL_ALLGATHERV, 64, 0, 64 * 16);

	made = 0;
	for (uint32_t turn = 0; turn < 10; turn++) {
		uint64_t *len = malloc(64 * sizeof(*len)), *off = malloc(64 * sizeof(*off));

		EXPECT(len && off);
		for (uint32_t r = 0; r < 64; r++) {
			len[r] = 16 + (turn == 9 && r == 63);
			off[r] = r * 16;
		}
		key.narrays = 2;
		key.array[0] = len;
		key.array[1] = off;
		EXPECT(get(&cache, &key)->need[OC_SLOT_RECV] == 64 * 16 + (turn == 9));
		free(len);
		free(off);
	}
	EXPECT(made == 2);
	oc_plan_cache_clear(&cache);
}

/* However many there are, they take so much; those in use stay. */
static void test_bound(void)
{
	struct oc_plan_cache cache = {0};
	struct oc_plan_key often = key_of(OC_COLL_BCAST, 64, 5, 100);

	made = 0;
	for (uint64_t bytes = 0; bytes < 1000; bytes++) {
		struct oc_plan_key key = key_of(OC_COLL_REDUCE, 64, 0, 8 * bytes);

		get(&cache, &often);
		get(&cache, &key);
		EXPECT(cache.bytes <= OC_PLAN_CACHE_BYTES);
	}
	EXPECT(made == 1001);
	EXPECT(cache.bytes > OC_PLAN_CACHE_BYTES / 2);
	oc_plan_cache_clear(&cache);
	/* One that is longer than all may be. */
	for (uint32_t turn = 0; turn < 2; turn++) {
		struct oc_plan_key key = key_of(OC_COLL_REDUCE, 20000, 5, 1 << 20);

		EXPECT(get(&cache, &key)->size > OC_PLAN_CACHE_BYTES);
	}
	EXPECT(made == 1002);
	oc_plan_cache_clear(&cache);
}

/* What operations hold stays, and goes after them. */
static void test_held(void)
{
	enum { HELD = 600 };
	struct oc_plan_cache cache = {0};
	struct oc_plan_entry *entry[HELD];
	const struct oc_plan *plan[HELD];

	made = 0;
	for (uint64_t i = 0; i < HELD; i++) {
		struct oc_plan_key key = key_of(OC_COLL_REDUCE, 64, 0, 8 * (i % (HELD / 2)));

		plan[i] = get(&cache, &key);
		entry[i] = oc_plan_cache_hold(&cache);
	}
	EXPECT(made == HELD / 2);
	EXPECT(cache.bytes > 2 * OC_PLAN_CACHE_BYTES);
	for (uint64_t i = 0; i < HELD; i++)
		EXPECT(plan[i]->shape.bytes == 8 * (i % (HELD / 2)));
	for (uint64_t i = 0; i < HELD; i++)
		oc_plan_cache_release(&cache, entry[i]);
	EXPECT(cache.bytes <= OC_PLAN_CACHE_BYTES);
	oc_plan_cache_clear(&cache);
	EXPECT(!cache.bytes && !cache.oldest);
}

/* What could not be made is made another time. */
static void test_failed(void)
{
	struct oc_plan_cache cache = {0};
	struct oc_plan_key key = key_of(OC_COLL_BCAST, 64, 5, 100);

	fails = true;
	EXPECT(!oc_plan_cache_get(&cache, &key, make));
	fails = false;
	get(&cache, &key);
	oc_plan_cache_clear(&cache);
}

int main(void)
{
	test_roots(OC_COLL_BCAST);
	test_roots(OC_COLL_REDUCE);
	test_blocks();
	test_bound();
	test_held();
	test_failed();
	return 0;
}
