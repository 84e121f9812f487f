// SPDX-License-Identifier: BSD-3-Clause
/*
 * operators [alone | right]: reductions by operators and of types that no table of onecopy's has
 * the arithmetic of, compared with what MPI_Reduce_local makes of the operands one after the other;
 * and wrong ones. Prints what came of these, and how many calls should have been served. The MPI
 * alone may associate otherwise, so nothing is compared then; with "right" there is nothing wrong,
 * either.
 */
#include <stdbool.h>
#include <string.h>

#include "pattern.h"

#define COUNT 3001 /* elements */
#define BYTES ((size_t)COUNT * 48)
#define RANKS 8

static int rank, size, told, last, served;
static bool alone;
static char *send, *recv, *want, *operand, *guard;

static void on_error(MPI_Comm *where, int *code, ...)
{
	(void)where;
	MPI_Error_class(*code, &last);
	told++;
}

/* ---- operators ------------------------------------------------------------- */

/* Of three doubles, as a row of a matrix; not associative, not commutative. */
static void rows(void *in, void *inout, int *len, MPI_Datatype *type)
{
	double *a = in, *b = inout;
	int bytes;

	MPI_Type_size(*type, &bytes);
	if (bytes != 3 * sizeof(double))
		pattern_fail("not the type it was called for");
	for (int i = 0; i < 3 * *len; i += 3) {
		b[i] = a[i] * 0.5 + b[i];
		b[i + 1] = a[i + 1] - b[i + 1];
		b[i + 2] = a[i + 2] * 0.25 + b[i] * 0.125;
	}
}

/* Bytes, whatever they mean: of any type that has no gaps. */
static void bytes(void *in, void *inout, int *len, MPI_Datatype *type)
{
	unsigned char *a = in, *b = inout;
	int each;

	MPI_Type_size(*type, &each);
	for (int i = 0; i < *len * each; i++)
		b[i] = (unsigned char)(a[i] + b[i]);
}

/* All elements are one thing: no operator that the standard allows, but one that MPIs get along
 * with. */
static void list(void *in, void *inout, int *len, MPI_Datatype *type)
{
	int *a = in, *b = inout;

	(void)type;
	if (*len != COUNT)
		pattern_fail("a vector of numbers was cut");
	b[0] += a[COUNT - 1];
}

/* ---- calls ------------------------------------------------------------------ */

struct kind {
	const char *name;
	MPI_Datatype type;
	size_t each;
	bool real; /* random bytes might be a NaN, of which there are many */
};

static void fill(char *at, const struct kind *kind, int who)
{
	for (size_t i = 0; i < COUNT * kind->each; i++) {
		unsigned int bits = pattern_at((unsigned int)who + 11, i);

		at[i] = (char)(kind->real ? bits % 3 ? 0x3c : 0x20 : bits & 1);
	}
}

static void fold(const struct kind *kind, MPI_Op op, int end)
{
	fill(want, kind, 0);
	for (int r = 1; r < end; r++) {
		fill(operand, kind, r);
		MPI_Reduce_local(want, operand, COUNT, kind->type, op);
		memcpy(want, operand, COUNT * kind->each);
	}
}

static void expect(const struct kind *kind, const char *call, const char *at, size_t from,
		   size_t until)
{
	if (alone || !memcmp(at, want + from, until - from))
		return;
	fprintf(stderr, "rank %d: %s of %s\n", rank, call, kind->name);
	pattern_fail("wrong bytes");
}

static void try(const struct kind *kind, MPI_Op op, bool serves)
{
	size_t all = COUNT * kind->each, part = (size_t)(COUNT / size) * kind->each;
	MPI_Comm comm = MPI_COMM_WORLD;

	fill(send, kind, rank);
	memset(recv, 0x77, all);
	MPI_Allreduce(send, recv, COUNT, kind->type, op, comm);
	fold(kind, op, size);
	expect(kind, "allreduce", recv, 0, all);
	memset(recv, 0x77, all);
	MPI_Reduce(send, recv, COUNT, kind->type, op, size - 1, comm);
	if (rank == size - 1)
		expect(kind, "reduce", recv, 0, all);
	MPI_Reduce_scatter_block(send, recv, COUNT / size, kind->type, op, comm);
	expect(kind, "reduce_scatter_block", recv, (size_t)rank * part, (size_t)(rank + 1) * part);
	memcpy(recv, send, all);
	MPI_Scan(MPI_IN_PLACE, recv, COUNT, kind->type, op, comm);
	fold(kind, op, rank + 1);
	expect(kind, "scan", recv, 0, all);
	memcpy(recv, guard, all);
	MPI_Exscan(send, recv, COUNT, kind->type, op, comm);
	if (rank)
		fold(kind, op, rank);
	else
		memcpy(want, guard, all);
	expect(kind, "exscan", recv, 0, all);
	served += serves ? 5 : 0;
}

static void try_list(void)
{
	MPI_Datatype same;
	MPI_Op op;

	MPI_Op_create(list, 0, &op);
	MPI_Type_dup(MPI_INT, &same);
	MPI_Allreduce(send, recv, COUNT, MPI_INT, op, MPI_COMM_WORLD);
	MPI_Allreduce(send, recv, COUNT, same, op, MPI_COMM_WORLD);
	MPI_Type_free(&same);
	MPI_Op_free(&op);
}

/* ---- what there is ---------------------------------------------------------- */

/* Types that this MPI may have beside those of C, with an operator that the standard has for each;
 * asked for no element, the MPI says whether it takes it. */
static void try_predefined(void)
{
	const struct kind kinds[] = {
#ifdef MPI_REAL16
		{"MPI_REAL16", MPI_REAL16, 16, true},
#endif
#ifdef MPI_COMPLEX32
		{"MPI_COMPLEX32", MPI_COMPLEX32, 32, true},
#endif
#ifdef MPI_INTEGER16
		{"MPI_INTEGER16", MPI_INTEGER16, 16, false},
#endif
/* An MPICH or its like has to be of MPI 5 for these to be asked for. */
#if defined(MPI_LOGICAL1) && (!defined(MPICH_VERSION) || MPI_VERSION >= 5)
		{"MPI_LOGICAL1", MPI_LOGICAL1, 1, false},
		{"MPI_LOGICAL8", MPI_LOGICAL8, 8, false},
#endif
	};
	/* Numbers have the first two, logicals the others. */
	const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_LOR, MPI_LAND};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++) {
			int each = 0;
			char a, b;

			if (kinds[k].type == MPI_DATATYPE_NULL ||
			    MPI_Type_size(kinds[k].type, &each) || (size_t)each != kinds[k].each ||
			    (strstr(kinds[k].name, "LOGICAL") != NULL) != (o > 1) ||
			    MPI_Reduce_local(&a, &b, 0, kinds[k].type, ops[o]))
				continue;
			try(&kinds[k], ops[o], true);
		}
	told = last = 0;
}

/* What came of a wrong call, for it to be compared with what the MPI alone makes of it. */
static void refused(const char *what, int code)
{
	int class;

	MPI_Error_class(code, &class);
	if (!rank)
		printf("%s: class %d, the handler %d times with %d\n", what, class, told, last);
	told = last = 0;
}

static void try_wrong(MPI_Op user, MPI_Datatype row)
{
	MPI_Comm comm = MPI_COMM_WORLD;
	MPI_Datatype fresh;

	refused("a row's sum", MPI_Allreduce(send, recv, COUNT, row, MPI_SUM, comm));
	refused("a number's place", MPI_Scan(send, recv, COUNT, MPI_INT, MPI_MAXLOC, comm));
	refused("a float's bits", MPI_Reduce(send, recv, COUNT, MPI_FLOAT, MPI_BAND, 0, comm));
	refused("no operator", MPI_Exscan(send, recv, COUNT, MPI_INT, MPI_OP_NULL, comm));
	MPI_Type_contiguous(3, MPI_DOUBLE, &fresh);
	refused("a type not committed", MPI_Allreduce(send, recv, COUNT, fresh, user, comm));
	MPI_Type_free(&fresh);
}

int main(int argc, char **argv)
{
	MPI_Op row_op, byte_op;
	MPI_Datatype row, spaced;
	MPI_Errhandler handler;

	alone = argc > 1;
	pattern_start(&argc, &argv, RANKS, &rank, &size);
	MPI_Comm_create_errhandler(on_error, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	send = pattern_alloc(BYTES);
	recv = pattern_alloc(BYTES);
	want = pattern_alloc(BYTES);
	operand = pattern_alloc(BYTES);
	guard = pattern_alloc(BYTES);
	memset(guard, 0x5c, BYTES);
	MPI_Op_create(rows, 0, &row_op);
	MPI_Op_create(bytes, 1, &byte_op);
	MPI_Type_contiguous(3, MPI_DOUBLE, &row);
	MPI_Type_commit(&row);
	MPI_Type_create_resized(MPI_DOUBLE, 0, 48, &spaced);
	MPI_Type_commit(&spaced);
	try(&(struct kind){"rows", row, 24, true}, row_op, true);
	try(&(struct kind){"bytes of rows", row, 24, false}, byte_op, true);
	try(&(struct kind){"bytes of characters", MPI_CHAR, 1, false}, byte_op, false);
	try_list();
	/* A handle may come again for another function. */
	for (int again = 0; again < 3; again++) {
		MPI_Op op;

		MPI_Op_create(again % 2 ? bytes : rows, 0, &op);
		try(&(struct kind){"rows again", row, 24, true}, op, true);
		MPI_Op_free(&op);
	}
	try_predefined();
	if (argc == 1 || strcmp(argv[1], "right") != 0)
		try_wrong(byte_op, row);
	/* Left to the MPI, for what lies between is not the operator's. */
	MPI_Allreduce(send, recv, COUNT, spaced, byte_op, MPI_COMM_WORLD);
	if (told)
		pattern_fail("errors");
	if (!rank)
		printf("%d\n", served);
	MPI_Op_free(&row_op);
	MPI_Op_free(&byte_op);
	MPI_Type_free(&row);
	MPI_Type_free(&spaced);
	MPI_Errhandler_free(&handler);
	MPI_Finalize();
	return 0;
}
