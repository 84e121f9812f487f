// SPDX-License-Identifier: BSD-3-Clause
#include "operator.h"

#include <errno.h>
#include <stdint.h>

#include "abi.h"
#include "adapter.h"
#include "bytes/calc.h"
#include "contents.h"
#include "type_sizes.h"
#include "typemap.h"

#define BIT(op)	    (UINT32_C(1) << (op))
#define LEARNED_MAX 128

static const uint32_t allowed[] = {
	[OC_OPERAND_INTEGER] = BIT(OC_MAX) | BIT(OC_MIN) | BIT(OC_SUM) | BIT(OC_PROD) |
			       BIT(OC_LAND) | BIT(OC_LOR) | BIT(OC_LXOR) | BIT(OC_BAND) |
			       BIT(OC_BOR) | BIT(OC_BXOR),
	[OC_OPERAND_REAL] = BIT(OC_MAX) | BIT(OC_MIN) | BIT(OC_SUM) | BIT(OC_PROD),
	[OC_OPERAND_COMPLEX] = BIT(OC_SUM) | BIT(OC_PROD),
	[OC_OPERAND_LOGICAL] = BIT(OC_LAND) | BIT(OC_LOR) | BIT(OC_LXOR),
	[OC_OPERAND_PAIR] = BIT(OC_MAXLOC) | BIT(OC_MINLOC),
};

/* Predefined types, and what the MPI does with them; written in MPI_Init. */
static struct learned {
	MPI_Datatype type;
	enum oc_type means; /* to CALC; NONE: nothing */
	size_t size;	    /* from one element to the next */
	uint32_t ops;
	int combiner; /* of a kind: all of that combiner and size; else 0 */
} learned[LEARNED_MAX];
static unsigned int nlearned;
static uint64_t digest;

/* Whether the MPI says, and may be asked, what it has. */
static bool answers;

/* An MPI that was told not to look at arguments would call functions that it has not. */
static bool looks_at_arguments(void)
{
	MPI_Count size;

	return pmpi()->Type_size_x(oc_abi.type_null, &size) != MPI_SUCCESS;
}

static uint32_t known_to_calc(enum oc_type type)
{
	uint32_t ops = 0;

	for (enum oc_calc_op op = OC_OP_NONE + 1; op < OC_OP_COUNT; op++)
		if (oc_calc_supported(op, type))
			ops |= BIT(op);
	return ops;
}

/* Which of @ops the MPI takes. Asked for no element: MPICH takes some that end the job when they
 * are called, here as in its own reductions. */
static uint32_t taken(MPI_Datatype type, uint32_t ops)
{
	char in, inout;

	for (enum oc_calc_op op = OC_OP_NONE + 1; op < OC_OP_COUNT; op++)
		if (ops & BIT(op) &&
		    pmpi()->Reduce_local(&in, &inout, 0, type, oc_abi_op_handle(op)))
			ops &= ~BIT(op);
	return ops;
}

/* Handles may be addresses: a type is known by its @place among all that are asked for. */
static void add_to_digest(size_t place, const struct learned *one)
{
	const uint64_t words[] = {place, (uint64_t)one->means, one->size, one->ops};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		digest = (digest ^ words[i]) * UINT64_C(0x100000001b3);
}

static void learn(size_t place, const struct learned *one)
{
	if (nlearned == LEARNED_MAX)
		return;
	learned[nlearned++] = *one;
	add_to_digest(place, one);
}

/* Which operators the MPI takes of those that CALC has on a type. */
static void learn_calc(size_t place, MPI_Datatype type, enum oc_type means)
{
	uint32_t ops = known_to_calc(means);

	learn(place, &(struct learned){.type = type,
				       .means = means,
				       .size = oc_type_size(means),
				       .ops = answers ? taken(type, ops) : ops});
}

/* Which of those that the standard has on a type that CALC does not know, if the MPI has it. */
static void learn_other(size_t place, MPI_Datatype type, enum oc_operand operand, int combiner)
{
	MPI_Count size;
	MPI_Aint low, extent;

	if (!type || type == oc_abi.type_null || !answers)
		return;
	if (pmpi()->Type_size_x(type, &size) || size <= 0 ||
	    pmpi()->Type_get_extent(type, &low, &extent) || low || extent < size ||
	    (extent > size && operand != OC_OPERAND_PAIR))
		return;
	learn(place, &(struct learned){.type = type,
				       .size = (size_t)extent,
				       .ops = taken(type, allowed[operand]),
				       .combiner = combiner});
}

/* Kinds that C has not, or not for sure, by their decimal digits: of x86's extended precision, of
 * IEEE's quadruple one, and of 128 bits. */
static void learn_kinds(size_t place)
{
	static const int digits[] = {18, 33}, integer_digits = 38;
	MPI_Datatype type;

	if (!answers || !pmpi()->Type_create_f90_real || !pmpi()->Type_create_f90_complex ||
	    !pmpi()->Type_create_f90_integer)
		return;
	for (size_t i = 0; i < sizeof(digits) / sizeof(digits[0]); i++) {
		if (!pmpi()->Type_create_f90_real(digits[i], MPI_UNDEFINED, &type))
			learn_other(place, type, OC_OPERAND_REAL, MPI_COMBINER_F90_REAL);
		if (!pmpi()->Type_create_f90_complex(digits[i], MPI_UNDEFINED, &type))
			learn_other(place, type, OC_OPERAND_COMPLEX, MPI_COMBINER_F90_COMPLEX);
		place++;
	}
	if (!pmpi()->Type_create_f90_integer(integer_digits, &type))
		learn_other(place, type, OC_OPERAND_INTEGER, MPI_COMBINER_F90_INTEGER);
}

uint64_t oc_operator_digest(void)
{
	return digest;
}

int oc_operator_setup(void)
{
	MPI_Errhandler before[OC_ABI_BLAMED];
	struct oc_abi_type at;
	size_t place;
	int err = oc_abi_silence(before);

	if (err && err != -EOPNOTSUPP)
		return err;
	answers = !err && looks_at_arguments();
	nlearned = 0;
	digest = 0;
	for (place = 0; oc_abi_type_at(place, &at); place++) {
		if (at.means)
			learn_calc(place, at.type, at.means);
		else
			learn_other(place, at.type, at.operand, 0);
	}
	learn_kinds(place);
	if (!err)
		oc_abi_restore(before);
	return 0;
}

/* What a kind of @size bytes means: what C has, too. Of real ones of 16 bytes there are two. */
static enum oc_type kind_of(int combiner, size_t size)
{
	static const enum oc_type
		real[] = {[4] = OC_FLOAT, [8] = OC_DOUBLE},
		complex[] = {[8] = OC_CFLOAT, [16] = OC_CDOUBLE},
		integer[] = {[1] = OC_INT8, [2] = OC_INT16, [4] = OC_INT32, [8] = OC_INT64};

	if (combiner == MPI_COMBINER_F90_REAL && size <= 8)
		return real[size];
	if (combiner == MPI_COMBINER_F90_COMPLEX && size <= 16)
		return complex[size];
	return combiner == MPI_COMBINER_F90_INTEGER && size <= 8 ? integer[size] : OC_TYPE_NONE;
}

/* A type of MPI_Type_create_f90_real, _complex or _integer, by its kind; NULL for any other. */
static const struct learned *find_kind(MPI_Datatype type)
{
	struct oc_contents of;
	enum oc_type means;
	size_t size;

	if (!oc_contents_envelope(type, &of) || of.combiner == MPI_COMBINER_NAMED)
		return NULL;
	size = oc_type_sizes_ask(type);
	means = kind_of(of.combiner, size);
	for (unsigned int i = 0; i < nlearned; i++)
		if (means ? learned[i].means == means
			  : learned[i].combiner == of.combiner && learned[i].size == size)
			return &learned[i];
	return NULL;
}

/* @op: NONE is a user's, which is called with any type. */
static const struct learned *find(MPI_Datatype type, enum oc_calc_op op)
{
	static const struct learned none;
	const struct learned *kind;

	for (unsigned int i = 0; i < nlearned; i++)
		if (learned[i].type == type)
			return &learned[i];
	kind = op ? find_kind(type) : NULL;
	return kind ? kind : &none;
}

/*
 * From one element to the next of any other type, if it has no gaps, consists of several numbers,
 * and the MPI would send it; else 0. By what is the same of all types of that map, for other ranks
 * may have made theirs by other constructors: of a predefined pair, too, and without memory.
 */
static size_t plain_size(MPI_Datatype type)
{
	MPI_Aint low, extent, true_low, true_extent;
	MPI_Count size;

	if (pmpi()->Type_size_x(type, &size) || size <= 1 || size > UINT16_MAX ||
	    pmpi()->Type_get_extent(type, &low, &extent) || low || extent != size ||
	    pmpi()->Type_get_true_extent(type, &true_low, &true_extent) || true_low ||
	    true_extent != size || !oc_typemap_is_committed(type))
		return 0;
	return oc_typemap_is_number(type, (uint64_t)size) ? 0 : (size_t)size;
}

static int fold(const struct oc_calc_given *given, const void *in, void *inout, size_t count)
{
	const struct oc_operator *own = (const void *)given;

	return pmpi()->Reduce_local(in, inout, (int)count, own->type, own->op) ? -EINVAL : 0;
}

bool oc_operator_bind(struct oc_operator *own, struct oc_bind *bind, MPI_Op op, MPI_Datatype type)
{
	enum oc_calc_op calc = oc_abi_op(op);
	const struct learned *known = find(type, calc);
	size_t size = known->size;

	/* A user's operator on single numbers may take all of them for one thing, a list or a
	 * structure. It should not, but does well where MPIs do not cut such vectors. */
	if (calc ? !(known->ops & BIT(calc)) : !oc_abi_op_is_user(op))
		return false;
	if (calc && known->means) {
		bind->op = calc;
		bind->type = known->means;
		return true;
	}
	if (!calc)
		size = plain_size(type);
	/* Plans cut vectors into elements of this many bytes. */
	if (!size || size > UINT16_MAX)
		return false;
	*own = (struct oc_operator){.given = {.fold = fold, .size = size}, .op = op, .type = type};
	bind->given = &own->given;
	return true;
}
