// SPDX-License-Identifier: BSD-3-Clause
#include "spread.h"

#include <stdlib.h>
#include <string.h>

#include "../job.h"

/* One element cut at random, with gaps; now and then its pieces stand backwards. */
static int64_t cut(struct spread *spread, uint64_t bytes)
{
	uint32_t n = 1 + (uint32_t)(job_random() % SPREAD_RUNS);
	int64_t at = (int64_t)(job_random() % 200) - 100;
	uint64_t left = bytes;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t len = i + 1 == n ? left : job_random() % (2 * bytes / n + 1);

		len = len < left ? len : left;
		at += (int64_t)(job_random() % 2 ? job_random() % 100 : 0);
		spread->runs[i] = (struct oc_run){.at = at, .len = len};
		at += (int64_t)len;
		left -= len;
	}
	spread->n = n;
	for (uint32_t i = 0; i < n / 2 && job_random() % 4 == 0; i++) {
		struct oc_run run = spread->runs[i];

		spread->runs[i] = spread->runs[n - 1 - i];
		spread->runs[n - 1 - i] = run;
	}
	return at + 100;
}

static void to_addresses(struct spread *spread)
{
	for (uint32_t i = 0; i < spread->n; i++)
		spread->runs[i].at += (int64_t)(intptr_t)spread->base;
	free(spread->layout);
	spread->layout = oc_layout_make(spread->runs, spread->n, spread->extent, spread->count);
	CHECK(spread->layout);
	spread->base = NULL;
}

void spread_begin(struct spread *spread, uint8_t *block, uint64_t bytes, uint8_t gap)
{
	*spread = (struct spread){
		.block = block, .base = block, .size = bytes, .bytes = bytes, .count = 1};
	spread->runs[0].len = bytes;
	spread->n = 1;
	if (job_random() % 2) {
		spread->count = bytes % 4 || job_random() % 2 ? 1 : 4;
		spread->extent = cut(spread, bytes / spread->count);
		if (job_random() % 4 == 0)
			spread->extent = -spread->extent;
		spread->layout =
			oc_layout_make(spread->runs, spread->n, spread->extent, spread->count);
		CHECK(spread->layout);
		spread->base = block - spread->layout->low;
		spread->size = (size_t)(spread->layout->high - spread->layout->low);
		CHECK(spread->size <= bytes + SPREAD_EXTRA);
		if (job_random() % 4 == 0)
			to_addresses(spread);
	}
	memset(block, gap, spread->size);
}

void spread_end(struct spread *spread)
{
	free(spread->layout);
	spread->layout = NULL;
}

static void each(const struct spread *spread, uint8_t *packed, bool put)
{
	for (uint32_t e = 0; e < spread->count; e++) {
		for (uint32_t i = 0; i < spread->n; i++) {
			const struct oc_run *run = &spread->runs[i];
			uint8_t *at = (uint8_t *)((uintptr_t)spread->base +
						  (uintptr_t)(e * spread->extent + run->at));

			memcpy(put ? at : packed, put ? packed : at, run->len);
			packed += run->len;
		}
	}
}

void spread_put(const struct spread *spread, const uint8_t *packed)
{
	each(spread, (uint8_t *)(uintptr_t)packed, true);
}

void spread_get(const struct spread *spread, uint8_t *packed)
{
	each(spread, packed, false);
}

bool spread_is_whole(const struct spread *spread, uint8_t gap)
{
	uint8_t *packed = malloc(spread->bytes);
	bool whole = true;

	CHECK(packed);
	memset(packed, gap, spread->bytes);
	spread_put(spread, packed);
	free(packed);
	for (size_t i = 0; i < spread->size && whole; i++)
		whole = spread->block[i] == gap;
	return whole;
}
