// SPDX-License-Identifier: BSD-3-Clause
/*
 * Every operator on every type, on every instruction set this machine has,
 * against calc_ref.c: random counts, misaligned buffers, one to nine operands,
 * one to five destinations, in place, streamed and not. Nothing outside the
 * destinations may change.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/calc.h"
#include "bytes/isa.h"
#include "bytes/stream.h"
#include "calc_ref.h"
#include "fenced.h"
#include "../../random.h"

#define MAX_SRC	   9
#define MAX_DST	   5
#define MAX_COUNT  5000
#define LONG_COUNT 60000 /* several turns of two lanes */
#define GUARD	   64
#define ROUNDS	   12 /* per pair and instruction set */

/* Elements with guard bytes before them and, in half of all buffers, after
 * them; in the other half a sanitizer watches the end. */
struct buffer {
	unsigned char *block;
	unsigned char *data;
	size_t before;
	size_t len;
	size_t after;
};

static uint64_t seed = 20240229;

static size_t below(size_t n)
{
	return (size_t)(random_next(&seed) >> 33) % n;
}

static unsigned char guard_byte(size_t i)
{
	return (unsigned char)(0xa5 ^ i);
}

static void buffer_init(struct buffer *buf, size_t len, size_t misalign)
{
	void *block;

	buf->before = GUARD + misalign;
	buf->len = len;
	buf->after = below(2) * GUARD;
	if (posix_memalign(&block, 64, buf->before + len + buf->after)) {
		perror("posix_memalign");
		exit(1);
	}
	buf->block = block;
	buf->data = buf->block + buf->before;
	for (size_t i = 0; i < buf->before + len + buf->after; i++)
		buf->block[i] = guard_byte(i);
}

static bool buffer_guarded(const struct buffer *buf)
{
	for (size_t i = 0; i < buf->before; i++)
		if (buf->block[i] != guard_byte(i))
			return false;
	for (size_t i = buf->before + buf->len; i < buf->before + buf->len + buf->after; i++)
		if (buf->block[i] != guard_byte(i))
			return false;
	return true;
}

/* One random call of oc_calc_fold(). */
struct call {
	const char *isa;
	enum oc_calc_op op;
	enum oc_type type;
	size_t size;
	size_t count;
	size_t nsrc;
	size_t ndst;
	bool stream;
	struct buffer src[MAX_SRC];
	struct buffer dst[MAX_DST];	/* block NULL: in place */
	size_t in_place[MAX_DST];	/* index of the source */
	unsigned char *before[MAX_SRC]; /* what the sources held */
	unsigned char *expected;
};

static int call_fail(const struct call *call, const char *what, size_t which, size_t element)
{
	fprintf(stderr,
		"%s %s %s: %s, buffer %zu, element %zu of %zu; %zu operands, %zu "
		"destinations%s%s\n",
		call->isa, ref_op_name(call->op), ref_type_name(call->type), what, which, element,
		call->count, call->nsrc, call->ndst, call->stream ? ", streamed" : "",
		call->dst[0].block ? "" : ", in place");
	return 1;
}

static void call_init(struct call *call)
{
	/* Of those that are past the caches in lanes, some. */
	bool beside = !below(30);
	/* Half of the calls agree modulo a line, as large blocks do. */
	size_t together = beside || below(2) ? below(9) * 8 : SIZE_MAX;
	bool in_place = !beside && below(2);

	call->size = ref_size(call->type);
	call->count = below(beside ? LONG_COUNT : below(8) ? below(4) ? 300 : MAX_COUNT : 4);
	call->nsrc = beside || !below(3) ? 2 : 1 + below(MAX_SRC);
	call->ndst = beside ? 1 : 1 + below(MAX_DST);
	call->stream = beside || below(2);
	for (size_t i = 0; i < call->nsrc; i++) {
		buffer_init(&call->src[i], call->count * call->size,
			    together != SIZE_MAX ? together : below(64));
		for (size_t k = 0; k < call->count; k++)
			ref_random(call->type, call->src[i].data + k * call->size, &seed);
		call->before[i] = malloc(call->count * call->size + 1);
		memcpy(call->before[i], call->src[i].data, call->count * call->size);
	}
	for (size_t i = 0; i < call->ndst; i++) {
		/* The k-th destination is one of the k-th part of the sources, so
		 * no source twice. */
		size_t part = call->nsrc / call->ndst;

		call->dst[i].block = NULL;
		if (in_place && (part || i < call->nsrc) && below(4))
			call->in_place[i] = part ? i * part + below(part) : i;
		else
			buffer_init(&call->dst[i], call->count * call->size,
				    together != SIZE_MAX ? together : below(64));
	}
	call->expected = malloc(call->count * call->size + 1);
	for (size_t k = 0; k < call->count; k++) {
		unsigned char acc[64], next[64];

		memcpy(acc, call->before[0] + k * call->size, call->size);
		for (size_t i = 1; i < call->nsrc; i++) {
			ref_calc(call->op, call->type, next, acc, call->before[i] + k * call->size);
			memcpy(acc, next, call->size);
		}
		memcpy(call->expected + k * call->size, acc, call->size);
	}
}

static void call_deinit(struct call *call)
{
	for (size_t i = 0; i < call->nsrc; i++) {
		free(call->src[i].block);
		free(call->before[i]);
	}
	for (size_t i = 0; i < call->ndst; i++)
		free(call->dst[i].block);
	free(call->expected);
}

static const struct buffer *call_dst(const struct call *call, size_t i)
{
	return call->dst[i].block ? &call->dst[i] : &call->src[call->in_place[i]];
}

static int call_check(const struct call *call)
{
	bool written[MAX_SRC] = {false};

	for (size_t i = 0; i < call->ndst; i++) {
		const struct buffer *dst = call_dst(call, i);

		if (!call->dst[i].block)
			written[call->in_place[i]] = true;
		if (!buffer_guarded(dst))
			return call_fail(call, "wrote outside a destination", i, 0);
		for (size_t k = 0; k < call->count; k++)
			if (!ref_same(call->op, call->type, dst->data + k * call->size,
				      call->expected + k * call->size))
				return call_fail(call, "wrong result", i, k);
		/* Also where NaN leaves a choice, every rank sees the same. */
		if (memcmp(dst->data, call_dst(call, 0)->data, dst->len))
			return call_fail(call, "destinations differ", i, 0);
	}
	for (size_t i = 0; i < call->nsrc; i++)
		if (!buffer_guarded(&call->src[i]) ||
		    (!written[i] && memcmp(call->src[i].data, call->before[i], call->src[i].len)))
			return call_fail(call, "an operand changed", i, 0);
	return 0;
}

static int test_fold(const struct oc_isa *isa, enum oc_calc_op op, enum oc_type type)
{
	struct call call = {.isa = isa->name, .op = op, .type = type};
	const void *src[MAX_SRC];
	void *dst[MAX_DST];
	int failed;

	call_init(&call);
	for (size_t i = 0; i < call.nsrc; i++)
		src[i] = call.src[i].data;
	for (size_t i = 0; i < call.ndst; i++)
		dst[i] = call_dst(&call, i)->data;
	/* Where the machine has but one lane, that stays. */
	oc_stream_select_lanes(below(2) ? 2 : 0);
	oc_calc_fold(op, type, dst, call.ndst, src, call.nsrc, call.count, call.stream);
	failed = call_check(&call);
	if (!all_fenced())
		failed = call_fail(&call, "not fenced", 0, 0);
	call_deinit(&call);
	return failed;
}

/* oc_calc() itself: apart, into the first operand, into the second. */
static int test_pair(const struct oc_isa *isa, enum oc_calc_op op, enum oc_type type)
{
	struct call call = {.isa = isa->name, .op = op, .type = type};
	int failed;

	do {
		call_init(&call);
		if (call.nsrc == 2 && call.ndst == 1)
			break;
		call_deinit(&call);
	} while (true);
	call.stream = false;
	oc_calc(op, type, call_dst(&call, 0)->data, call.src[0].data, call.src[1].data, call.count);
	failed = call_check(&call);
	call_deinit(&call);
	return failed;
}

static int test_tables(void)
{
	int failed = 0;

	for (int type = 0; type < OC_TYPE_COUNT; type++) {
		if (oc_type_size(type) != ref_size(type)) {
			fprintf(stderr, "%s: size %zu\n", ref_type_name(type), oc_type_size(type));
			failed = 1;
		}
		for (int op = 0; op < OC_OP_COUNT; op++)
			if (!oc_calc_supported(op, type) != !ref_allowed(op, type)) {
				fprintf(stderr, "%s %s: supported %d\n", ref_op_name(op),
					ref_type_name(type), oc_calc_supported(op, type));
				failed = 1;
			}
	}
	if (oc_calc_supported(OC_OP_COUNT, OC_INT32) || oc_calc_supported(OC_SUM, OC_TYPE_COUNT) ||
	    oc_type_size(OC_TYPE_COUNT)) {
		fprintf(stderr, "values out of range are accepted\n");
		failed = 1;
	}
	return failed;
}

static int test_isa(const struct oc_isa *isa)
{
	int failed = test_tables();

	for (int op = 0; op < OC_OP_COUNT; op++)
		for (int type = 0; type < OC_TYPE_COUNT; type++) {
			if (!ref_allowed(op, type))
				continue;
			for (int round = 0; round < ROUNDS; round++)
				failed |= test_fold(isa, op, type);
			for (int round = 0; round < 3; round++)
				failed |= test_pair(isa, op, type);
		}
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0) | 1;
	printf("seed %" PRIu64 "\n", seed);
	for (size_t i = 0; oc_isas[i]; i++) {
		if (oc_isa_select(oc_isas[i])) {
			printf("%s: skipped, this machine cannot run it\n", oc_isas[i]->name);
			continue;
		}
		failed |= test_isa(oc_isas[i]);
		printf("%s: %s\n", oc_isas[i]->name, failed ? "FAILED" : "ok");
	}
	return failed;
}
