/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_OPERATOR_H
#define OC_MPI_OPERATOR_H

/*
 * What reduces: CALC where it knows operator and type (lib/bytes/calc.h), else the MPI itself, by
 * MPI_Reduce_local, two operands at a time. It knows users' functions, in whatever language, and
 * predefined types that CALC does not. All ranks of a reduction pass the same operator and type,
 * so that all decide alike.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "bytes/calc_given.h"
#include "bytes/calc_type.h"
#include "call.h"
#include "exec/op.h"

/* One that CALC does not know, for as long as it is bound. */
struct oc_operator {
	struct oc_calc_given given; /* first */
	MPI_Op op;
	MPI_Datatype type;
};

/*
 * Whether @op on @type is reduced here, which binds it, with @own if it needs that. Wrong ones
 * are not: the MPI shall say so.
 */
bool oc_operator_bind(struct oc_operator *own, struct oc_bind *bind, MPI_Op op, MPI_Datatype type);

/* From one element to the next, once it is bound. */
static inline size_t oc_operator_size(const struct oc_bind *bind)
{
	return bind->given ? bind->given->size : oc_type_size(bind->type);
}

/* The same, noted as what became of a call. */
static inline bool oc_reduces(struct oc_call *call, struct oc_operator *own, struct oc_bind *bind,
			      MPI_Op op, MPI_Datatype type)
{
	call->outcome = OC_OUTCOME_OPERATOR;
	return oc_operator_bind(own, bind, op, type);
}

/* In MPI_Init: finds out which operators the MPI takes on predefined types. 0 or -ENOENT. */
int oc_operator_setup(void);

/* What it found out, in short: ranks for which that is not the same would decide differently. */
uint64_t oc_operator_digest(void);

#endif
