// SPDX-License-Identifier: BSD-3-Clause
/* Layouts against a map of every byte, made from the same runs in the plainest way. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/layout_copy.h"
#include "bytes/stream.h"
#include "fenced.h"
#include "../expect.h"

#define RUNS   12u
#define MEMORY 60000

/* A sequence of bytes, and where each of them is. */
struct sequence {
	struct oc_layout *layout;
	char *memory, *base;
	size_t bytes;
	int32_t at[MEMORY];
};

static uint32_t dice(uint32_t sides)
{
	return (uint32_t)rand() % sides;
}

/* In one element, put together of as many. */
static struct oc_layout *make_of_elements(const struct oc_run *runs, uint32_t n, int64_t extent,
					  uint32_t count)
{
	struct oc_layout *one = oc_layout_make(runs, n, extent, 1), *all;

	if (!one)
		return NULL;
	all = oc_layout_begin(count * one->npieces);
	EXPECT(all);
	for (uint32_t e = 0; e < count; e++)
		oc_layout_add_element(all, one, (int64_t)e * extent);
	EXPECT(all->npieces <= count * one->npieces);
	free(one);
	return oc_layout_end(all, 0, 1);
}

/* A column of a matrix is one piece, whatever its rows are made of. */
static void check_column(void)
{
	struct oc_run rows[1000];
	struct oc_layout *one, *two;

	for (int i = 0; i < 1000; i++)
		rows[i] = (struct oc_run){.at = 40 + 96 * i, .len = 24};
	one = oc_layout_make(rows, 1000, 96000, 1);
	EXPECT(one && one->npieces == 1 && one->nruns == 1000 && one->bytes == 24000);
	EXPECT(one->low == 40 && one->high == 40 + 999 * 96 + 24);
	two = oc_layout_begin(2);
	EXPECT(two);
	oc_layout_add_element(two, one, 0);
	oc_layout_add_element(two, one, 96000);
	two = oc_layout_end(two, 0, 1);
	EXPECT(two && two->npieces == 1 && two->nruns == 2000);
	EXPECT(oc_layout_run(two, 24 * 1500 + 3).at == 40 + 1500 * 96 + 3);
	free(one);
	free(two);
}

/* Runs of one element in places that do not overlap, in any order, and elements that do not
 * either, forwards or backwards. */
static void throw(struct sequence * it)
{
	struct oc_run runs[RUNS];
	uint32_t n = 1 + dice(RUNS), count = 1 + dice(9), most = dice(3) ? 40 : 2;
	int64_t unit = 1, gap, end, extent;
	size_t k = 0;
	bool alike; /* many of them are, and as far apart */

	if (!dice(16)) { /* some are written past the caches */
		n = 1 + dice(3);
		count = 1 + dice(2);
		most = 9000;
	} else if (!dice(16)) { /* and several of one length side by side */
		n = 1;
		count = 1 + dice(9);
		most = 6000;
	} else if (!dice(16)) {
		n = 1;
		count = 4 + dice(30);
		most = 1700;
	} else if (!dice(8)) { /* and whole lines */
		n = 1 + dice(3);
		unit = OC_STREAM_LINE;
		most = 9;
	}
	end = ((int64_t)dice(50) - 25) * unit;
	alike = !dice(3);
	gap = 1 + dice(30);
	for (uint32_t i = 0; i < n; i++) {
		end += alike && dice(8) ? gap : dice(3) ? dice(30) * unit : 0;
		runs[i] = (struct oc_run){.at = end, .len = dice(most) * (uint64_t)unit};
		if (i && alike && dice(8))
			runs[i].len = runs[i - 1].len;
		end += (int64_t)runs[i].len;
	}
	extent = end - runs[0].at + (dice(2) ? dice(20) * unit : 0);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t other = dice(n);
		struct oc_run run = runs[i];

		if (alike || dice(2))
			continue;
		runs[i] = runs[other];
		runs[other] = run;
	}
	if (dice(3) == 0)
		extent = -extent;
	it->layout = dice(2) ? oc_layout_make(runs, n, extent, count)
			     : make_of_elements(runs, n, extent, count);
	for (uint32_t e = 0; e < count; e++)
		for (uint32_t i = 0; i < n; i++)
			for (uint64_t b = 0; b < runs[i].len; b++)
				it->at[k++] = (int32_t)(e * extent + runs[i].at + (int64_t)b);
	it->bytes = k;
	EXPECT(!it->layout == !k);
}

/* Memory of just the size, so that a sanitizer sees what lies outside. */
static void place(struct sequence *it)
{
	int64_t low = it->layout->low, high = it->layout->high;
	bool is_low = false, is_high = false;

	it->memory = (high - low) % OC_STREAM_LINE
			     ? malloc((size_t)(high - low))
			     : aligned_alloc(OC_STREAM_LINE, (size_t)(high - low));
	EXPECT(it->memory);
	it->base = it->memory - low;
	for (size_t i = 0; i < it->bytes; i++) {
		EXPECT(it->at[i] >= low && it->at[i] < high);
		is_low = is_low || it->at[i] == low;
		is_high = is_high || it->at[i] == high - 1;
	}
	EXPECT(is_low && is_high);
	EXPECT(it->layout->bytes * it->layout->count == it->bytes);
	for (int64_t i = 0; i < high - low; i++)
		it->memory[i] = (char)rand();
}

static void check_runs(const struct sequence *it)
{
	/* Of long sequences from fewer places: all that is behind each is looked at. */
	uint32_t step = 5 + (uint32_t)(it->bytes / 128);

	for (uint64_t off = 0; off < it->bytes; off += 1 + dice(step)) {
		struct oc_run run = oc_layout_run(it->layout, off);

		EXPECT(run.len && off + run.len <= it->bytes);
		for (uint64_t i = 0; i < run.len; i++)
			EXPECT(it->at[off + i] == run.at + (int64_t)i);
	}
}

static void check_copy(struct sequence *dst, const struct sequence *src)
{
	size_t to = dice((uint32_t)dst->bytes), from = dice((uint32_t)src->bytes);
	size_t most = dst->bytes - to < src->bytes - from ? dst->bytes - to : src->bytes - from;
	size_t len = dice((uint32_t)most + 1),
	       size = (size_t)(dst->layout->high - dst->layout->low);
	char *want = malloc(size);

	EXPECT(want);
	memcpy(want, dst->memory, size);
	for (size_t i = 0; i < len; i++)
		want[dst->at[to + i] - dst->layout->low] = src->base[src->at[from + i]];
	oc_layout_copy(&(struct oc_place){dst->base, dst->layout, to},
		       &(struct oc_place){src->base, src->layout, from}, len, dice(2));
	EXPECT(!memcmp(want, dst->memory, size));
	EXPECT(all_fenced());
	free(want);
}

/* The same to memory in one piece and back. */
static void check_packing(struct sequence *it)
{
	size_t size = (size_t)(it->layout->high - it->layout->low);
	char *packed = malloc(it->bytes), *before = malloc(size);
	const struct oc_place one = {.base = packed}, pieces = {it->base, it->layout, 0};

	EXPECT(packed && before);
	memcpy(before, it->memory, size);
	oc_layout_copy(&one, &pieces, it->bytes, dice(2));
	for (size_t i = 0; i < it->bytes; i++) {
		EXPECT(packed[i] == it->base[it->at[i]]);
		it->base[it->at[i]] = 0;
	}
	oc_layout_copy(&pieces, &one, it->bytes, dice(2));
	EXPECT(!memcmp(before, it->memory, size));
	oc_layout_copy(&pieces, &pieces, it->bytes, dice(2));
	EXPECT(!memcmp(before, it->memory, size));
	EXPECT(all_fenced());
	free(packed);
	free(before);
}

/* The same as if it had been made with so many elements. */
static void check_repeat(void)
{
	for (int back = 0; back < 2; back++) {
		const struct oc_run runs[] = {{40, 8}, {0, 16}, {24, 4}};
		int64_t extent = back ? -100 : 20; /* they lie between each other, too */
		struct oc_layout *one = oc_layout_make(runs, 3, extent, 1);
		struct oc_layout *many = oc_layout_make(runs, 3, extent, 7);
		struct oc_layout *same = oc_layout_repeat(one, 7);

		EXPECT(same && !memcmp(same, many, oc_layout_size(3)));
		EXPECT(!oc_layout_repeat(one, 0));
		EXPECT(!oc_layout_repeat(one, UINT64_MAX / 8));
		EXPECT(!oc_layout_repeat(one, UINT64_MAX / 28));
		EXPECT(!oc_layout_repeat(one, (uint64_t)INT64_MAX / 20));
		free(one);
		free(many);
		free(same);
	}
}

int main(void)
{
	static struct sequence one, other;
	const struct oc_run touching[] = {{8, 4}, {12, 4}, {0, 8}, {3, 0}};
	struct oc_layout *layout = oc_layout_make(touching, 4, 16, 2);

	EXPECT(layout && layout->nruns == 2 && layout->bytes == 16);
	EXPECT(layout->low == 0 && layout->high == 32);
	free(layout);
	EXPECT(!oc_layout_make(touching, 0, 16, 2));
	EXPECT(!oc_layout_make(touching, 4, 16, 0));
	check_repeat();
	check_column();
	for (int again = 0; again < 20000; again++) {
		/* Where the machine has but one lane, that stays. */
		oc_stream_select_lanes(dice(OC_STREAM_LANES_MAX + 1));
		throw(&one);
		throw(&other);
		if (one.layout && other.layout) {
			place(&one);
			place(&other);
			check_runs(&one);
			check_copy(&one, &other);
			check_packing(&one);
			free(one.memory);
			free(other.memory);
		}
		free(one.layout);
		free(other.layout);
	}
	return 0;
}
