// SPDX-License-Identifier: BSD-3-Clause
/*
 * optional [TYPE.OPERATOR...]: reductions of the types that an MPI may have or not, by each
 * operator that it takes for them, but for the named. Rank 0 prints the types, and a digest of what
 * each call gave to all ranks: that of two ranks' sums does not depend on who adds what to what.
 * MPI_REAL16 is not among them: it may have bytes that no sum writes.
 */
#include <stdint.h>
#include <string.h>

#include "pattern.h"

#define COUNT 3001 /* elements */
#define BYTES ((size_t)COUNT * 32)
#define RANKS 2

struct kind {
	const char *name;
	MPI_Datatype type;
	int logical;
};

static int rank, size;
static unsigned char *send, *recv;

/* Halves, brain floats and longer ones that are small numbers, whichever of them the bytes are;
 * logicals that are true or false in any width. */
static void fill(const struct kind *kind, size_t each)
{
	memset(recv, 0, BYTES);
	memset(send, 0, BYTES);
	for (size_t i = 0; i < COUNT * each; i++) {
		unsigned int bits = pattern_at((unsigned int)rank + 11, i);

		if (!kind->logical)
			send[i] = bits % 3 ? 0x3c : 0x20;
		else if (i % each == 0)
			send[i] = bits & 1;
	}
}

/* MPIs there are that say they take an operator and end in it. */
static int named(int argc, char **argv, const char *type, const char *op)
{
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], type, strlen(type)) && argv[i][strlen(type)] == '.' &&
		    !strcmp(argv[i] + strlen(type) + 1, op))
			return 1;
	return 0;
}

static void tell(const struct kind *kind, const char *op, const char *call, size_t bytes)
{
	uint64_t digest = 14695981039346656037u, all;

	for (size_t i = 0; i < bytes; i++)
		digest = (digest ^ recv[i]) * 1099511628211u;
	digest *= 2 * (uint64_t)rank + 1;
	MPI_Reduce(&digest, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("%s %s %s %016llx\n", kind->name, op, call, (unsigned long long)all);
}

static void try(const struct kind *kind, size_t each, MPI_Op op, const char *op_name)
{
	MPI_Comm comm = MPI_COMM_WORLD;
	size_t all = COUNT * each;

	fill(kind, each);
	MPI_Allreduce(send, recv, COUNT, kind->type, op, comm);
	tell(kind, op_name, "allreduce", all);
	fill(kind, each);
	MPI_Reduce(send, recv, COUNT, kind->type, op, size - 1, comm);
	tell(kind, op_name, "reduce", all);
	fill(kind, each);
	MPI_Reduce_scatter_block(send, recv, COUNT / size, kind->type, op, comm);
	tell(kind, op_name, "reduce_scatter_block", all);
	fill(kind, each);
	MPI_Scan(send, recv, COUNT, kind->type, op, comm);
	tell(kind, op_name, "scan", all);
	fill(kind, each);
	memcpy(recv, send, all);
	MPI_Allreduce(MPI_IN_PLACE, recv, COUNT, kind->type, op, comm);
	tell(kind, op_name, "in place", all);
}

int main(int argc, char **argv)
{
	const struct kind kinds[] = {
		{"MPI_C_BOOL", MPI_C_BOOL, 1},
#ifdef MPI_REAL2
		{"MPI_REAL2", MPI_REAL2, 0},
#endif
#ifdef MPI_COMPLEX4
		{"MPI_COMPLEX4", MPI_COMPLEX4, 0},
#endif
#ifdef MPI_INTEGER16
		{"MPI_INTEGER16", MPI_INTEGER16, 0},
#endif
#ifdef MPIX_C_FLOAT16
		{"MPIX_C_FLOAT16", MPIX_C_FLOAT16, 0},
#endif
#ifdef MPIX_BFLOAT16
		{"MPIX_BFLOAT16", MPIX_BFLOAT16, 0},
#endif
/* An MPICH or its like has to be of MPI 5 for these to be asked for. */
#if defined(MPI_LOGICAL2) && (!defined(MPICH_VERSION) || MPI_VERSION >= 5)
		{"MPI_LOGICAL2", MPI_LOGICAL2, 1},
#endif
#if defined(MPI_LOGICAL16) && (!defined(MPICH_VERSION) || MPI_VERSION >= 5)
		{"MPI_LOGICAL16", MPI_LOGICAL16, 1},
#endif
	};
	const struct {
		const char *name;
		MPI_Op op;
		int logical;
	} ops[] = {
		{"sum", MPI_SUM, 0}, {"prod", MPI_PROD, 0}, {"max", MPI_MAX, 0},
		{"min", MPI_MIN, 0}, {"lor", MPI_LOR, 1},   {"land", MPI_LAND, 1},
	};

	pattern_start(&argc, &argv, RANKS, &rank, &size);
	send = pattern_alloc(BYTES);
	recv = pattern_alloc(BYTES);
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		int each = 0;

		/* There in name only: no type, or one without a size. */
		if (kinds[k].type == MPI_DATATYPE_NULL || MPI_Type_size(kinds[k].type, &each) ||
		    each <= 0)
			continue;
		for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++) {
			if (ops[o].logical != kinds[k].logical ||
			    named(argc, argv, kinds[k].name, ops[o].name) ||
			    MPI_Reduce_local(send, recv, 0, kinds[k].type, ops[o].op))
				continue;
			try(&kinds[k], (size_t)each, ops[o].op, ops[o].name);
		}
	}
	MPI_Finalize();
	return 0;
}
