// SPDX-License-Identifier: BSD-3-Clause
/*
 * Folds by an operator of the test's own, which is neither associative nor commutative, on
 * elements of all sizes, the longest longer than any buffer on a stack: as written down operand by
 * operand, in place and not, to one destination and to several.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/calc_given.h"
#include "../../random.h"

#define MAX_SRC 6
#define MAX_DST 3
#define ROUNDS	400

static uint64_t seed = 20261124;

static size_t below(size_t n)
{
	return (size_t)(random_next(&seed) >> 33) % n;
}

struct own {
	struct oc_calc_given given;
	size_t left; /* calls until it fails */
};

static unsigned char combine(unsigned char a, unsigned char b, size_t at)
{
	return (unsigned char)(a * 31u + b + at);
}

/* Each byte of an element its own way, so that none may be cut. */
static int fold(const struct oc_calc_given *given, const void *in, void *inout, size_t count)
{
	struct own *own = (struct own *)(uintptr_t)given;
	const unsigned char *a = in;
	unsigned char *b = inout;

	if (!own->left--)
		return -EDOM;
	for (size_t i = 0; i < count * given->size; i++)
		b[i] = combine(a[i], b[i], i % given->size);
	return 0;
}

static unsigned char *filled(size_t bytes)
{
	unsigned char *at = malloc(bytes + 1);

	if (!at)
		exit(2);
	for (size_t i = 0; i <= bytes; i++)
		at[i] = (unsigned char)random_next(&seed);
	return at;
}

static int one(size_t size, size_t count)
{
	struct own own = {.given = {.fold = fold, .size = size}, .left = SIZE_MAX};
	size_t bytes = size * count, nsrc = 1 + below(MAX_SRC), ndst = 1 + below(MAX_DST);
	const void *src[MAX_SRC];
	void *dst[MAX_DST];
	unsigned char *operand[MAX_SRC], *expected, tail[MAX_DST];
	int wrong = 0;

	for (size_t k = 0; k < nsrc; k++)
		src[k] = operand[k] = filled(bytes);
	expected = filled(bytes);
	memcpy(expected, operand[0], bytes);
	for (size_t k = 1; k < nsrc; k++)
		for (size_t i = 0; i < bytes; i++)
			expected[i] = combine(expected[i], operand[k][i], i % size);
	for (size_t d = 0; d < ndst; d++) {
		dst[d] = d < nsrc && below(2) ? operand[d] : filled(bytes);
		tail[d] = ((unsigned char *)dst[d])[bytes];
	}
	if (oc_calc_given_fold(&own.given, dst, ndst, src, nsrc, count, below(2)))
		wrong = 1;
	for (size_t d = 0; d < ndst; d++)
		wrong |= memcmp(dst[d], expected, bytes) != 0 ||
			 ((unsigned char *)dst[d])[bytes] != tail[d];
	if (wrong)
		fprintf(stderr, "%zu elements of %zu bytes, %zu operands, %zu destinations\n",
			count, size, nsrc, ndst);
	for (size_t d = 0; d < ndst; d++)
		if (d >= nsrc || dst[d] != operand[d])
			free(dst[d]);
	for (size_t k = 0; k < nsrc; k++)
		free(operand[k]);
	free(expected);
	return wrong;
}

/* Its failure ends the fold, and is what that returns. */
static int fails(void)
{
	struct own own = {.given = {.fold = fold, .size = 8}, .left = 1};
	uint64_t a[4096] = {1}, b[4096] = {2}, c[4096] = {3};
	const void *src[] = {a, b};
	void *dst[] = {c};

	return oc_calc_given_fold(&own.given, dst, 1, src, 2, 4096, false) != -EDOM ||
	       c[4095] != 0 || own.left != SIZE_MAX;
}

int main(void)
{
	static const size_t sizes[] = {1, 3, 8, 12, 24, 1000, 8191, 8192, 8193, 65535};
	int wrong = fails();

	for (int i = 0; i < ROUNDS; i++) {
		size_t size = sizes[below(sizeof(sizes) / sizeof(sizes[0]))];

		wrong |= one(size, below(2) ? below(4) : below(200000 / size + 2));
	}
	return wrong;
}
