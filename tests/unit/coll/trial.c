// SPDX-License-Identifier: BSD-3-Clause
#include "trial.h"
#include "../../random.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t trial_seed;

void trial_die(const struct trial *t, const char *fmt, ...)
{
	va_list args;

	fprintf(stderr,
		"collective %d, %u ranks, %u of them apart, root %u, %llu bytes, granule %u, seed "
		"%#llx: ",
		t->coll, t->size, t->split, t->root, (unsigned long long)t->bytes, t->granule,
		(unsigned long long)t->seed);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

uint32_t trial_dice(uint32_t sides)
{
	return (uint32_t)((random_next(&trial_seed) >> 32) * sides >> 32);
}

static uint8_t *random_bytes(const struct trial *t, size_t bytes)
{
	uint8_t *p = malloc(bytes ? bytes : 1);

	if (!p)
		trial_die(t, "out of memory");
	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)(random_next(&trial_seed) >> 40);
	return p;
}

static void slot(struct trial *t, uint32_t rank, enum oc_slot which, size_t bytes)
{
	t->memory[rank][which] = random_bytes(t, bytes);
	t->machine.rank[rank].slot[which] = t->memory[rank][which];
	t->machine.rank[rank].bytes[which] = bytes;
}

/* Another name for [off, off + bytes) of a slot that is there. */
static void alias(struct trial *t, uint32_t rank, enum oc_slot which, enum oc_slot of, size_t off,
		  size_t bytes)
{
	t->machine.rank[rank].slot[which] = t->memory[rank][of] + off;
	t->machine.rank[rank].bytes[which] = bytes;
}

/* The receive slot is expected to stay as it is but for what want() adds. */
static void expect(struct trial *t, uint32_t rank)
{
	struct machine_rank *r = &t->machine.rank[rank];

	t->expect[rank] = random_bytes(t, r->bytes[OC_SLOT_RECV]);
	if (r->bytes[OC_SLOT_RECV])
		memcpy(t->expect[rank], r->slot[OC_SLOT_RECV], r->bytes[OC_SLOT_RECV]);
	r->expect = t->expect[rank];
}

/* Receiver @to is to find [soff, soff + len) of @from's send slot at @roff. */
static void want(struct trial *t, uint32_t to, uint64_t roff, uint32_t from, uint64_t soff,
		 uint64_t len)
{
	if (len)
		memcpy(t->expect[to] + roff, t->machine.rank[from].slot[OC_SLOT_SEND] + soff, len);
}

/* The operands of ranks from @first on and below @end. */
static void want_fold_of(struct trial *t, uint32_t to, uint32_t first, uint32_t end, uint64_t off,
			 uint64_t len)
{
	for (uint64_t i = 0; i < len; i++) {
		uint8_t value = t->machine.rank[first].slot[OC_SLOT_SEND][off + i];

		for (uint32_t r = first + 1; r < end; r++)
			value = machine_fold(value, t->machine.rank[r].slot[OC_SLOT_SEND][off + i]);
		t->expect[to][i] = value;
	}
}

static void want_fold(struct trial *t, uint32_t to, uint32_t end, uint64_t off, uint64_t len)
{
	want_fold_of(t, to, 0, end, off, len);
}

/* ---- what each collective means ------------------------------------------- */

static void setup_bcast(struct trial *t)
{
	slot(t, t->root, OC_SLOT_SEND, t->bytes);
	alias(t, t->root, OC_SLOT_RECV, OC_SLOT_SEND, 0, t->bytes);
	for (uint32_t r = 0; r < t->size; r++) {
		if (r == t->root)
			continue;
		slot(t, r, OC_SLOT_RECV, t->bytes);
		expect(t, r);
		want(t, r, 0, t->root, 0, t->bytes);
	}
}

static void setup_scatter(struct trial *t)
{
	slot(t, t->root, OC_SLOT_SEND, t->size * t->bytes);
	for (uint32_t r = 0; r < t->size; r++) {
		if (r == t->root && t->in_place[r])
			continue;
		slot(t, r, OC_SLOT_RECV, t->bytes);
		expect(t, r);
		want(t, r, 0, t->root, r * t->bytes, t->bytes);
	}
}

static void setup_gather(struct trial *t)
{
	slot(t, t->root, OC_SLOT_RECV, t->size * t->bytes);
	expect(t, t->root);
	for (uint32_t r = 0; r < t->size; r++) {
		if (r == t->root && t->in_place[r])
			continue;
		slot(t, r, OC_SLOT_SEND, t->bytes);
		want(t, t->root, r * t->bytes, r, 0, t->bytes);
	}
}

static void setup_allgather(struct trial *t)
{
	for (uint32_t r = 0; r < t->size; r++) {
		slot(t, r, OC_SLOT_RECV, t->size * t->bytes);
		if (t->in_place[r])
			alias(t, r, OC_SLOT_SEND, OC_SLOT_RECV, r * t->bytes, t->bytes);
		else
			slot(t, r, OC_SLOT_SEND, t->bytes);
	}
	for (uint32_t to = 0; to < t->size; to++) {
		expect(t, to);
		for (uint32_t from = 0; from < t->size; from++)
			want(t, to, from * t->bytes, from, 0, t->bytes);
	}
}

static void setup_alltoall(struct trial *t)
{
	for (uint32_t r = 0; r < t->size; r++) {
		slot(t, r, OC_SLOT_SEND, t->size * t->bytes);
		slot(t, r, OC_SLOT_RECV, t->size * t->bytes);
		expect(t, r);
	}
	for (uint32_t to = 0; to < t->size; to++)
		for (uint32_t from = 0; from < t->size; from++)
			want(t, to, from * t->bytes, from, to * t->bytes, t->bytes);
}

static uint64_t longest_slice_of(const struct trial *t, uint32_t ranks)
{
	struct oc_shape shape = {.size = (uint16_t)ranks, .granule = (uint16_t)t->granule};
	uint64_t longest = 0, at = 0;

	for (uint32_t r = 0; r < ranks; r++) {
		uint64_t next = oc_coll_slice(&shape, t->bytes, r + 1);

		if (next < at || (r + 1 < ranks && next % t->granule))
			trial_die(t, "slice %u ends at %llu", r, (unsigned long long)next);
		if (next - at > longest)
			longest = next - at;
		at = next;
	}
	if (at != t->bytes)
		trial_die(t, "slices end at %llu", (unsigned long long)at);
	return longest;
}

static uint64_t longest_slice(const struct trial *t)
{
	return longest_slice_of(t, t->size);
}

static void setup_reduce(struct trial *t)
{
	for (uint32_t r = 0; r < t->size; r++) {
		bool result = t->coll == OC_COLL_ALLREDUCE || r == t->root;

		slot(t, r, OC_SLOT_SEND, t->bytes);
		slot(t, r, OC_SLOT_SCRATCH, longest_slice(t));
		if (result && t->in_place[r])
			alias(t, r, OC_SLOT_RECV, OC_SLOT_SEND, 0, t->bytes);
		else if (result)
			slot(t, r, OC_SLOT_RECV, t->bytes);
	}
	for (uint32_t r = 0; r < t->size; r++) {
		if (t->coll != OC_COLL_ALLREDUCE && r != t->root)
			continue;
		expect(t, r);
		want_fold(t, r, t->size, 0, t->bytes);
	}
}

static void setup_scan(struct trial *t)
{
	struct oc_shape shape = {
		.size = (uint16_t)t->size, .granule = (uint16_t)t->granule, .bytes = t->bytes};
	bool before = t->coll == OC_COLL_EXSCAN;

	longest_slice(t);
	for (uint32_t r = 0; r < t->size; r++) {
		slot(t, r, OC_SLOT_SEND, t->bytes);
		slot(t, r, OC_SLOT_SCRATCH, oc_coll_scan_scratch(&shape));
		if (before && !r)
			continue;
		if (t->in_place[r])
			alias(t, r, OC_SLOT_RECV, OC_SLOT_SEND, 0, t->bytes);
		else
			slot(t, r, OC_SLOT_RECV, t->bytes);
	}
	for (uint32_t r = before; r < t->size; r++) {
		expect(t, r);
		want_fold(t, r, r + !before, 0, t->bytes);
	}
}

/* Lengths of multiples of the granule, many of them 0, whose mean is bytes. */
static uint64_t block(struct trial *t)
{
	uint64_t units = t->bytes / t->granule;

	return trial_dice(3) ? trial_dice((uint32_t)units * 3 + 1) * t->granule : 0;
}

/* Places @t->size blocks in a random order with gaps; the span they need. */
static uint64_t place(struct trial *t, const uint64_t *len, uint64_t *off)
{
	uint32_t order[RANKS] = {0};
	uint64_t at = 0;

	for (uint32_t r = 0; r < t->size; r++) {
		uint32_t k = trial_dice(r + 1);

		order[r] = order[k];
		order[k] = r;
	}
	for (uint32_t r = 0; r < t->size; r++) {
		at += trial_dice(2) ? trial_dice(40) : 0;
		off[order[r]] = at;
		at += len[order[r]];
	}
	return at;
}

static void setup_reduce_scatter(struct trial *t)
{
	uint64_t total = 0;

	for (uint32_t r = 0; r < t->size; r++) {
		t->len[0][r] = block(t);
		t->off_out[0][r] = total;
		total += t->len[0][r];
	}
	for (uint32_t r = 0; r < t->size; r++) {
		slot(t, r, OC_SLOT_SEND, total);
		if (t->in_place[r]) {
			alias(t, r, OC_SLOT_RECV, OC_SLOT_SEND, 0, t->len[0][r]);
			slot(t, r, OC_SLOT_SCRATCH, t->len[0][r]);
		} else {
			slot(t, r, OC_SLOT_RECV, t->len[0][r]);
		}
	}
	for (uint32_t r = 0; r < t->size; r++) {
		expect(t, r);
		want_fold(t, r, t->size, t->off_out[0][r], t->len[0][r]);
	}
}

bool trial_is_there(const struct trial *t, uint32_t me, uint32_t rank)
{
	return (me < t->split) != (rank < t->split);
}

/* The other group's ranks, as those of @rank's see them. */
static void others(const struct trial *t, uint32_t rank, uint32_t *first, uint32_t *end)
{
	*first = rank < t->split ? t->split : 0;
	*end = rank < t->split ? t->size : t->split;
}

/* Blocks of each group that are equally long together. */
static void divide(struct trial *t, uint64_t total)
{
	for (uint32_t r = 0; r < t->size; r++) {
		bool last = r == t->split - 1 || r == t->size - 1;
		uint64_t left = r && r != t->split ? total - t->off_out[0][r - 1] - t->len[0][r - 1]
						   : total;

		t->off_out[0][r] = total - left;
		t->len[0][r] =
			last ? left : trial_dice((uint32_t)(left / t->granule) + 1) * t->granule;
	}
}

static void setup_between(struct trial *t)
{
	uint32_t first, end;

	divide(t, t->bytes);
	for (uint32_t r = 0; r < t->size; r++) {
		bool rooted = t->coll == OC_COLL_REDUCE,
		     scatters = t->coll == OC_COLL_REDUCE_SCATTER;

		others(t, r, &first, &end);
		if (!rooted || trial_is_there(t, t->root, r)) {
			slot(t, r, OC_SLOT_SEND, t->bytes);
			if (!scatters)
				slot(t, r, OC_SLOT_SCRATCH,
				     longest_slice_of(t, t->size - (end - first)));
		}
		if (!rooted || r == t->root)
			slot(t, r, OC_SLOT_RECV, scatters ? t->len[0][r] : t->bytes);
	}
	for (uint32_t r = 0; r < t->size; r++) {
		bool scatters = t->coll == OC_COLL_REDUCE_SCATTER;

		if (t->coll == OC_COLL_REDUCE && r != t->root)
			continue;
		others(t, r, &first, &end);
		expect(t, r);
		want_fold_of(t, r, first, end, scatters ? t->off_out[0][r] : 0,
			     scatters ? t->len[0][r] : t->bytes);
	}
}

/* The scratch slot of a v-collective: its tables, @in NULL but in alltoallv. */
static void table(struct trial *t, uint32_t rank, const uint64_t *off, const uint64_t *len,
		  const uint64_t *in)
{
	const uint64_t *const tables[] = {off, len, in};
	size_t bytes = t->size * sizeof(*off), n = in ? 3 : 2;

	slot(t, rank, OC_SLOT_SCRATCH, n * bytes);
	for (size_t i = 0; i < n; i++)
		memcpy(t->memory[rank][OC_SLOT_SCRATCH] + i * bytes, tables[i], bytes);
}

static void setup_allgatherv(struct trial *t)
{
	for (uint32_t r = 0; r < t->size; r++)
		t->len[0][r] = block(t);
	for (uint32_t r = 0; r < t->size; r++) {
		slot(t, r, OC_SLOT_RECV, place(t, t->len[0], t->off_in[r]));
		if (t->in_place[r])
			alias(t, r, OC_SLOT_SEND, OC_SLOT_RECV, t->off_in[r][r], t->len[0][r]);
		else
			slot(t, r, OC_SLOT_SEND, t->len[0][r]);
	}
	for (uint32_t to = 0; to < t->size; to++) {
		expect(t, to);
		for (uint32_t from = 0; from < t->size; from++)
			want(t, to, t->off_in[to][from], from, 0, t->len[0][from]);
	}
}

static void setup_scatterv(struct trial *t)
{
	uint64_t *len = t->len[0];

	for (uint32_t r = 0; r < t->size; r++)
		len[r] = r == t->root && t->in_place[r] ? 0 : block(t);
	slot(t, t->root, OC_SLOT_SEND, place(t, len, t->off_out[0]));
	table(t, t->root, t->off_out[0], len, NULL);
	for (uint32_t r = 0; r < t->size; r++) {
		slot(t, r, OC_SLOT_RECV, len[r]);
		expect(t, r);
		want(t, r, 0, t->root, t->off_out[0][r], len[r]);
	}
}

static void setup_gatherv(struct trial *t)
{
	uint64_t *len = t->len[0];

	for (uint32_t r = 0; r < t->size; r++)
		len[r] = r == t->root && t->in_place[r] ? 0 : block(t);
	slot(t, t->root, OC_SLOT_RECV, place(t, len, t->off_in[0]));
	table(t, t->root, t->off_in[0], len, NULL);
	expect(t, t->root);
	for (uint32_t r = 0; r < t->size; r++) {
		slot(t, r, OC_SLOT_SEND, len[r]);
		want(t, t->root, t->off_in[0][r], r, 0, len[r]);
	}
}

void trial_incoming(const struct trial *t, uint32_t me, uint64_t *len)
{
	for (uint32_t from = 0; from < t->size; from++)
		len[from] = t->len[from][me];
}

static void setup_alltoallv(struct trial *t)
{
	uint64_t in[RANKS];

	for (uint32_t from = 0; from < t->size; from++)
		for (uint32_t to = 0; to < t->size; to++)
			t->len[from][to] = block(t);
	for (uint32_t r = 0; r < t->size; r++) {
		slot(t, r, OC_SLOT_SEND, place(t, t->len[r], t->off_out[r]));
		trial_incoming(t, r, in);
		table(t, r, t->off_out[r], t->len[r], in);
		slot(t, r, OC_SLOT_RECV, place(t, in, t->off_in[r]));
		expect(t, r);
	}
	for (uint32_t to = 0; to < t->size; to++)
		for (uint32_t from = 0; from < t->size; from++)
			want(t, to, t->off_in[to][from], from, t->off_out[from][to],
			     t->len[from][to]);
}

void trial_setup(struct trial *t)
{
	if (t->split) {
		setup_between(t);
		return;
	}
	switch (t->coll) {
	case OC_COLL_BCAST:
		setup_bcast(t);
		break;
	case OC_COLL_SCATTER:
		setup_scatter(t);
		break;
	case OC_COLL_GATHER:
		setup_gather(t);
		break;
	case OC_COLL_ALLGATHER:
		setup_allgather(t);
		break;
	case OC_COLL_ALLTOALL:
		setup_alltoall(t);
		break;
	case OC_COLL_REDUCE:
	case OC_COLL_ALLREDUCE:
		setup_reduce(t);
		break;
	case OC_COLL_SCAN:
	case OC_COLL_EXSCAN:
		setup_scan(t);
		break;
	case OC_COLL_REDUCE_SCATTER:
		setup_reduce_scatter(t);
		break;
	case OC_COLL_SCATTERV:
		setup_scatterv(t);
		break;
	case OC_COLL_GATHERV:
		setup_gatherv(t);
		break;
	case OC_COLL_ALLGATHERV:
		setup_allgatherv(t);
		break;
	case OC_COLL_ALLTOALLV:
		setup_alltoallv(t);
		break;
	default: /* a barrier has no slots */
		break;
	}
}

void trial_free(struct trial *t)
{
	for (uint32_t r = 0; r < t->size; r++) {
		free(t->machine.rank[r].plan);
		free(t->expect[r]);
		for (int s = 0; s < MACHINE_SLOTS; s++)
			free(t->memory[r][s]);
	}
}
