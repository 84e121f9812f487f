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

#endif
