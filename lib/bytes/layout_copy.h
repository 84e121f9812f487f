/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_LAYOUT_COPY_H
#define OC_LAYOUT_COPY_H

/* Places in layouts, and copies from one to another. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes/layout.h"

/* A sequence of bytes and a place in it. Without a layout it is in one piece from base on. */
struct oc_place {
	char *base; /* where the first element begins; NULL: the layout has addresses */
	const struct oc_layout *layout;
	uint64_t off;
};

/* The run that byte @off, of which there is one, is in, from there on. */
struct oc_run oc_layout_run(const struct oc_layout *layout, uint64_t off);

/* Copies @len bytes from place to place. They do not overlap, or are the same. With @stream long
 * pieces are written past the caches, as by oc_copy_bytes(). */
void oc_layout_copy(const struct oc_place *dst, const struct oc_place *src, size_t len,
		    bool stream);

#endif
