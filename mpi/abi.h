/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_ABI_H
#define OC_MPI_ABI_H

/* What differs from one MPI ABI to another. One abi_*.c is built into each
 * preload library, with that MPI's mpi.h. */

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

#include "bytes/calc.h"

struct oc_abi {
	MPI_Comm comm_world;
	MPI_Comm comm_self;
	MPI_Comm comm_null;
	MPI_Datatype byte;
	MPI_Datatype integer;
	MPI_Datatype type_null;
	MPI_Op land;
	MPI_Info info_null;
	MPI_Errhandler errors_return;
	MPI_Errhandler errors_are_fatal;
};

extern struct oc_abi oc_abi;

/* Between MPI_Init and MPI_Finalize: a program of sessions alone has no MPI_COMM_WORLD. */
extern bool oc_abi_has_world;

/* Whether MPI_COMM_WORLD has an error handler all the same, which is asked for what concerns no
 * communicator. */
bool oc_abi_blames_world(void);

/* The standard's groups of predefined types, by what operators they have (MPI-4.1, 6.9.2). */
enum oc_operand {
	OC_OPERAND_INTEGER,
	OC_OPERAND_REAL,
	OC_OPERAND_COMPLEX,
	OC_OPERAND_LOGICAL,
	OC_OPERAND_PAIR,
};

/* A predefined type that may be reduced. */
struct oc_abi_type {
	MPI_Datatype type;  /* NULL or oc_abi.type_null: not to be asked for */
	enum oc_type means; /* to CALC; NONE: nothing */
	enum oc_operand operand;
};

/* The one after the other from 0 on; false when there are no more. */
bool oc_abi_type_at(size_t i, struct oc_abi_type *at);

/* The group of what CALC knows. */
enum oc_operand oc_abi_operand(enum oc_type type);

/* Whether MPI_Iprobe moves what is in flight, on a communicator of one process, too. */
extern const bool oc_abi_probe_moves;

/* From which size on MPI_Bcast and MPI_Reduce are served, where that is more than all else has
 * (tune.c). */
extern const size_t oc_abi_rooted_from;

/* Whether the MPI asks a server of PMI for its job before it looks for one of PMIx. */
extern const bool oc_abi_pmi_first;

/* Fills oc_abi and the tables below. 0, or -ENOENT with a handle missing. */
int oc_abi_init(void);

/* What a predefined handle means to CALC; NONE for anything else. */
enum oc_type oc_abi_type(MPI_Datatype type);
enum oc_calc_op oc_abi_op(MPI_Op op);

/* The other way round; not of NONE. */
MPI_Op oc_abi_op_handle(enum oc_calc_op op);

/* Whether an operator is none of the predefined ones, but a user's. */
bool oc_abi_op_is_user(MPI_Op op);

/*
 * Whether elements are laid out as CALC has them. Another Fortran compiler may have
 * other default kinds, MPI_2INTEGER then is a pair of them. The gaps in a pair are no
 * part of its size: what tells is how far one element is from the next.
 */
bool oc_abi_is_laid_out(MPI_Datatype type, enum oc_type means);

/* Whether the MPI takes MPI_IN_PLACE of a rank that has no data there, though the standard has
 * none. */
extern const bool oc_abi_empty_in_place;

/* Of errors in calls that have no communicator: MPI 3 has them at MPI_COMM_WORLD, MPI 4 at
 * MPI_COMM_SELF. MPICH goes on with the first as long as the second has no handler of its own, and
 * one that was set there, be it the same again, would take them for good. */
#define OC_ABI_BLAMED 2
extern const bool oc_abi_blames_self;

/* A handler by which errors are returned; before oc_abi_init(), too. 0, or -ENOENT. */
int oc_abi_find_errors_return(MPI_Errhandler *handler);

/* Whether a handler is MPI_ERRORS_ABORT, which not every MPI has. */
bool oc_abi_aborts(MPI_Errhandler handler);

/* To ask for what a library lacks is an error. It shall be returned, not end the job. 0, -ENOENT,
 * or -EOPNOTSUPP where nobody has a handler for that. */
int oc_abi_silence(MPI_Errhandler before[OC_ABI_BLAMED]);
void oc_abi_restore(MPI_Errhandler before[OC_ABI_BLAMED]);

#endif
