/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_SHARE_H
#define OC_TEST_SHARE_H

/*
 * What the tests of regions share. ONECOPY_TEST_MECH names the one mechanism
 * that may be used (heap, map, kcopy, cma, staged; "any" for all); share_leave() looks into
 * the statistics for others.
 */

#include "job.h"

enum { SHARE_ANY = (1u << OC_MECH_COUNT) - 1 };

uint32_t share_mech(void);

/* Joins and allows nothing but the mechanism; skips the case without it. */
oc_node *share_join(struct job *job);
void share_leave(struct job *job, oc_node *node); /* and share_free() */

/* Memory the mechanism can reach, of the kind @kind picks: heap, static, mapped
 * or allocated. Kept until share_free(). */
uint8_t *share_alloc(size_t bytes, unsigned int kind);
void share_free(void);

/* A word that all ranks see; share_hear() waits until it is not 0. */
void share_tell(struct job *job, int word, uint64_t value);
uint64_t share_hear(struct job *job, int word);

void share_nap_us(long us);
double share_now_s(void);

/* Byte @i of the run of bytes that @seed names. */
uint8_t share_pattern(uint64_t seed, uint64_t i);

/* Cuts [0, bytes) of @base into at most @max segments in random order of
 * memory, with gaps; *@span is what of @base was spent. */
size_t share_cut(uint8_t *base, size_t bytes, struct iovec *iov, size_t max, size_t *span);

/* Where byte @offset of the segments lies, NULL past their end. */
uint8_t *share_locate(const struct iovec *iov, size_t n, uint64_t offset);

#endif
