/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_COPY_H
#define OC_COPY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Copies @len bytes between memory that does not overlap. With @stream the
 * destination is written by non-temporal stores, past the caches, and fenced
 * before the return: right when it will not be read soon. Few bytes, and machines
 * without such stores, take ordinary ones. @len may be 0, then the pointers mean
 * nothing. No alignment is asked. Any thread.
 */
void oc_copy_bytes(void *dst, const void *src, size_t len, bool stream);

/* Bytes that are read once from memory, then from a second-level cache. */
#define OC_COPY_TURN ((size_t)64 << 10)

/*
 * The same to @ndst destinations, of which those that are @src itself are left
 * out. The source comes from memory once, however many there are: where memory
 * is what limits, n copies cost n + 1 transfers instead of 2n.
 */
void oc_copy_each(void *const *dst, size_t ndst, const void *src, size_t len, bool stream);

#endif
