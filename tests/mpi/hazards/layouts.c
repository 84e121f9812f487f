// SPDX-License-Identifier: BSD-3-Clause
/*
 * layouts SEED ROUNDS: random datatypes, made by every constructor, of which each rank has its own,
 * in all collectives that move data. What must have arrived, and that nothing else was written, is
 * worked out with MPI_Pack and MPI_Unpack.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "maketype.h"
#include "pattern.h"

#define RANKS 8
#define GUARD 64

enum {
	BCAST,
	SCATTER,
	GATHER,
	ALLGATHER,
	ALLTOALL,
	SCATTERV,
	GATHERV,
	ALLGATHERV,
	ALLTOALLV,
	ALLTOALLW,
	CALLS
};

static const char *const names[CALLS] = {"bcast",     "scatter",  "gather",  "allgather",
					 "alltoall",  "scatterv", "gatherv", "allgatherv",
					 "alltoallv", "alltoallw"};

static int rank, size, round_number, which;
static uint64_t shared_state; /* of what all ranks draw alike */

static int draw_alike(int n)
{
	return (int)(draw_from(&shared_state) % (uint64_t)n);
}

static void wrong(const char *what)
{
	fprintf(stderr, "round %d, %s, rank %d of %d: %s\n", round_number, names[which], rank, size,
		what);
	pattern_fail("failed");
}

/* Blocks of 2^log words each, in memory that is laid out as types say. */
struct side {
	int blocks;
	MPI_Datatype type[RANKS];
	int count[RANKS];
	MPI_Aint at[RANKS]; /* where a block begins, from buf on */
	int displs[RANKS];
	char *buf;
	/* As the call has them, which may be from MPI_BOTTOM on. MPICH's MPI_Unpack would not. */
	struct {
		MPI_Datatype type[RANKS];
		int count[RANKS], displs[RANKS];
		char *buf;
	} call;
	char *memory, *kept;
	size_t bytes;
	bool mapped;
};

static void find_span(const struct side *s, MPI_Aint *low, MPI_Aint *high)
{
	MPI_Aint lb, extent;

	for (int b = 0; b < s->blocks; b++) {
		MPI_Aint at = s->at[b];

		MPI_Type_get_true_extent(s->type[b], &lb, &extent);
		extent += (s->count[b] - 1) * extent_of(s->type[b]);
		*low = !b || at + lb < *low ? at + lb : *low;
		*high = !b || at + lb + extent > *high ? at + lb + extent : *high;
	}
}

/* From an address, not from a buffer. */
static void make_absolute(struct side *s)
{
	for (int b = 0; b < s->blocks; b++) {
		MPI_Aint address;

		MPI_Get_address(s->buf + s->at[b], &address);
		MPI_Type_create_hindexed(1, &s->count[b], &address, s->type[b], &s->call.type[b]);
		MPI_Type_commit(&s->call.type[b]);
		s->call.count[b] = 1;
		s->call.displs[b] = 0;
	}
	s->call.buf = MPI_BOTTOM;
}

static void side_open(struct side *s, int words, int blocks, bool scattered, bool each)
{
	MPI_Aint low = 0, high = 0, end = 0, lb, span;
	int places[RANKS], log = 0;
	MPI_Datatype last = MPI_DATATYPE_NULL;

	memset(s, 0, sizeof(*s));
	s->blocks = blocks;
	shuffle(places, blocks);
	for (int b = 0; b < blocks; b++) {
		s->type[b] = last = !b || each ? make_type(words, blocks, &log) : last;
		s->count[b] = 1 << (words - log);
		s->displs[b] = scattered ? places[b] * (s->count[b] + 1) : b * s->count[b];
		s->at[b] = s->displs[b] * extent_of(s->type[b]);
		if (each) {
			MPI_Type_get_true_extent(s->type[b], &lb, &span);
			s->at[b] = end - lb;
			s->displs[b] = (int)s->at[b];
			end += span + (s->count[b] - 1) * extent_of(s->type[b]) + 4 * draw(2);
		}
	}
	find_span(s, &low, &high);
	s->bytes = (size_t)(high - low) + 2 * GUARD;
	s->mapped = !draw(4);
	s->memory = s->mapped ? mmap(NULL, s->bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
			      : pattern_alloc(s->bytes);
	if (s->memory == MAP_FAILED)
		pattern_fail("no memory");
	s->kept = pattern_alloc(s->bytes);
	s->buf = s->memory + GUARD - low;
	for (size_t i = 0; i < s->bytes; i++)
		s->memory[i] = (char)(i * 7 + 1);
	memcpy(s->call.type, s->type, sizeof(s->type));
	memcpy(s->call.count, s->count, sizeof(s->count));
	memcpy(s->call.displs, s->displs, sizeof(s->displs));
	s->call.buf = s->buf;
	if ((each || blocks == 1) && !draw(3))
		make_absolute(s);
}

static void side_close(struct side *s)
{
	bool each = s->blocks > 1 && s->type[1] != s->type[0];

	for (int b = 0; b < s->blocks; b++)
		if (s->call.type[b] != s->type[b])
			MPI_Type_free(&s->call.type[b]);
	for (int b = 0; b < (each ? s->blocks : 1); b++)
		MPI_Type_free(&s->type[b]);
	if (s->mapped)
		munmap(s->memory, s->bytes);
	else
		free(s->memory);
	free(s->kept);
}

static char *block_at(const struct side *s, int b)
{
	return (char *)((uintptr_t)s->buf + (uintptr_t)s->at[b]);
}

static void put_block(const struct side *s, int b, const int *words, int n)
{
	int at = 0;

	if (MPI_Unpack(words, 4 * n, &at, block_at(s, b), s->count[b], s->type[b], MPI_COMM_SELF) ||
	    at != 4 * n)
		wrong("MPI_Unpack");
}

static void get_block(const struct side *s, int b, int *words, int n)
{
	int at = 0;

	if (MPI_Pack(block_at(s, b), s->count[b], s->type[b], words, 4 * n, &at, MPI_COMM_SELF) ||
	    at != 4 * n)
		wrong("MPI_Pack");
}

static unsigned int stamp(int from, int to)
{
	return (unsigned int)(round_number * 10000 + from * 100 + to);
}

static bool is_addressed(void)
{
	return which == SCATTER || which == SCATTERV || which == ALLTOALL || which >= ALLTOALLV;
}

static void fill_block(const struct side *s, int b, int *words, int n, int from, int to)
{
	pattern_fill((unsigned int *)words, (size_t)n, stamp(from, is_addressed() ? to : 0));
	put_block(s, b, words, n);
}

static void keep(struct side *s)
{
	memcpy(s->kept, s->memory, s->bytes);
}

/* What was not to be received is as it was. */
static void check_rest(struct side *s, int *words, int n)
{
	char *now = pattern_alloc(s->bytes);

	memset(words, 0, (size_t)n * 4);
	for (int b = 0; b < s->blocks; b++)
		put_block(s, b, words, n);
	memcpy(now, s->memory, s->bytes);
	memcpy(s->memory, s->kept, s->bytes);
	for (int b = 0; b < s->blocks; b++)
		put_block(s, b, words, n);
	if (memcmp(s->memory, now, s->bytes) != 0)
		wrong("bytes beside the blocks were written");
	free(now);
}

static int do_call(struct side *s, struct side *r, bool in_place, int root)
{
	const void *from = in_place && which != SCATTER ? MPI_IN_PLACE : s->call.buf;

	switch (which) {
	case BCAST:
		return MPI_Bcast(s->call.buf, s->call.count[0], s->call.type[0], root,
				 MPI_COMM_WORLD);
	case SCATTER:
		return MPI_Scatter(s->call.buf, s->call.count[0], s->call.type[0],
				   in_place ? MPI_IN_PLACE : r->call.buf, r->call.count[0],
				   r->call.type[0], root, MPI_COMM_WORLD);
	case GATHER:
		return MPI_Gather(from, s->call.count[0], s->call.type[0], r->call.buf,
				  r->call.count[0], r->call.type[0], root, MPI_COMM_WORLD);
	case ALLGATHER:
		return MPI_Allgather(from, s->call.count[0], s->call.type[0], r->call.buf,
				     r->call.count[0], r->call.type[0], MPI_COMM_WORLD);
	case ALLTOALL:
		return MPI_Alltoall(from, s->call.count[0], s->call.type[0], r->call.buf,
				    r->call.count[0], r->call.type[0], MPI_COMM_WORLD);
	case SCATTERV:
		return MPI_Scatterv(s->call.buf, s->call.count, s->call.displs, s->call.type[0],
				    r->call.buf, r->call.count[0], r->call.type[0], root,
				    MPI_COMM_WORLD);
	case GATHERV:
		return MPI_Gatherv(from, s->call.count[0], s->call.type[0], r->call.buf,
				   r->call.count, r->call.displs, r->call.type[0], root,
				   MPI_COMM_WORLD);
	case ALLGATHERV:
		return MPI_Allgatherv(from, s->call.count[0], s->call.type[0], r->call.buf,
				      r->call.count, r->call.displs, r->call.type[0],
				      MPI_COMM_WORLD);
	case ALLTOALLV:
		return MPI_Alltoallv(from, s->call.count, s->call.displs, s->call.type[0],
				     r->call.buf, r->call.count, r->call.displs, r->call.type[0],
				     MPI_COMM_WORLD);
	default:
		return MPI_Alltoallw(from, s->call.count, s->call.displs, s->call.type, r->call.buf,
				     r->call.count, r->call.displs, r->call.type, MPI_COMM_WORLD);
	}
}

static void one_call(void)
{
	int words = 11 + draw_alike(5), n = 1 << words, root = draw_alike(size);
	bool all = which == ALLTOALL || which >= ALLTOALLV, from_all, sends, receives, in_place;
	bool gathers = which == GATHER || which == GATHERV, v = which >= SCATTERV;
	bool scatters = which == SCATTER || which == SCATTERV;
	int *buffer = pattern_alloc((size_t)n * 4);
	struct side s, r;

	from_all = all || which == GATHER || which == GATHERV || which == ALLGATHER ||
		   which == ALLGATHERV;
	in_place = !draw_alike(3) && which != BCAST && which != SCATTERV &&
		   ((!gathers && which != SCATTER) || rank == root);
	sends = !in_place || which == SCATTER;
	receives = !(gathers && rank != root) && !(which == SCATTER && in_place);
	side_open(&s, words, is_addressed() && (all || rank == root) ? size : 1, v,
		  which == ALLTOALLW);
	if (which == BCAST)
		r = s;
	else
		side_open(&r, words, from_all ? size : 1, v, which == ALLTOALLW);
	for (int b = 0; sends && b < s.blocks && (!scatters || rank == root); b++)
		fill_block(&s, b, buffer, n, rank, b);
	for (int b = 0; !sends && b < r.blocks; b++)
		if (all || b == rank)
			fill_block(&r, b, buffer, n, rank, b);
	keep(&s);
	if (which != BCAST)
		keep(&r);
	if (do_call(&s, &r, in_place, root))
		wrong("an error");
	if ((which != BCAST || rank == root) && memcmp(s.memory, s.kept, s.bytes) != 0)
		wrong("the send buffer has changed");
	/* A peer that still reads it will find this. */
	if (which != BCAST)
		memset(s.memory, 0xa5, s.bytes);
	for (int b = 0; receives && b < r.blocks; b++) {
		int from = from_all ? b : root;

		get_block(&r, b, buffer, n);
		pattern_check((unsigned int *)buffer, (size_t)n,
			      stamp(from, is_addressed() ? rank : 0), names[which]);
	}
	if (receives)
		check_rest(&r, buffer, n);
	side_close(&s);
	if (which != BCAST)
		side_close(&r);
	free(buffer);
}

/* A type that has been used may be there still when all ends. */
static void leave_type(void)
{
	int *words = pattern_alloc((size_t)16 * 512 * 4);
	MPI_Datatype type;

	MPI_Type_vector(16, 256, 512, MPI_INT, &type);
	MPI_Type_commit(&type);
	if (MPI_Bcast(words, 1, type, 0, MPI_COMM_WORLD))
		wrong("an error");
	free(words);
}

int main(int argc, char **argv)
{
	uint64_t seed;

	pattern_start(&argc, &argv, RANKS, &rank, &size);
	if (argc < 3)
		return 64;
	seed = strtoull(argv[1], NULL, 0);
	for (round_number = 0; round_number < atoi(argv[2]); round_number++) {
		shared_state = seed + (uint64_t)round_number * 1000;
		which = draw_alike(CALLS);
		own_state = shared_state ^ (uint64_t)(rank + 1) << 32;
		one_call();
	}
	leave_type();
	MPI_Finalize();
	return 0;
}
