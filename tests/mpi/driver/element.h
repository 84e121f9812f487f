/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_ELEMENT_H
#define OC_TEST_ELEMENT_H

/* Elements of the predefined types: made-up data, and what the predefined
 * operators do to them (MPI standard 4.0, 6.9.2 to 6.9.4). */

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum element_kind {
	ELEMENT_SIGNED,
	ELEMENT_UNSIGNED,
	ELEMENT_REAL,
	ELEMENT_COMPLEX,
	ELEMENT_BOOL,
	ELEMENT_BYTE,
	ELEMENT_PAIR,	/* a value, then an int */
	ELEMENT_AFFINE, /* two unsigned a, b: the map x -> a * x + b */
};

enum element_op {
	OP_MAX,
	OP_MIN,
	OP_SUM,
	OP_PROD,
	OP_LAND,
	OP_LOR,
	OP_LXOR,
	OP_BAND,
	OP_BOR,
	OP_BXOR,
	OP_MAXLOC,
	OP_MINLOC,
	OP_COMPOSE, /* user-defined, not commutative: composition of affine maps */
	OP_ADD,	    /* user-defined, commutative: OP_SUM of unsigned long */
	OP_LOWER,   /* the same: OP_MINLOC of MPI_DOUBLE_INT */
	OP_COUNT
};

struct element {
	const char *name;
	enum element_kind kind;
	size_t size;  /* extent */
	size_t part;  /* bytes of the value: of one component, of a pair's first */
	size_t index; /* pair: where the int is */
	MPI_Datatype type;
};

struct element_opname {
	const char *name;
	MPI_Op op;
};

/* After MPI_Init. */
void element_setup(void);
void element_teardown(void);
const struct element *element_find(const char *name); /* NULL: no such */
int element_find_op(const char *name);		      /* < 0: no such */
MPI_Op element_op(int op);

uint64_t element_hash(uint64_t a, uint64_t b, uint64_t c);

/* The element rank @rank sends as its number @i. Padding is zero. @op: what it
 * is meant for, or -1. */
void element_make(const struct element *e, int op, uint64_t seed, int rank, uint64_t i, void *out);

/* acc = acc op b, acc of the lower rank. */
void element_fold(const struct element *e, int op, void *acc, const void *b);

/* Zeroes the bytes no standard gives a meaning to. */
void element_clean(const struct element *e, void *p);

/* Whether a result depends on the order of the operands. */
bool element_rounds(const struct element *e, int op);
bool element_close(const struct element *e, const void *a, const void *b);

#endif
