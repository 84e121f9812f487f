/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_SAFE_COPY_H
#define OC_SAFE_COPY_H

/*
 * Copies between the control segment and memory that may turn out not to be
 * mapped, without a signal handler: the kernel copies, by the segment's file
 * descriptor, and says -EFAULT. Any thread.
 */

#include "base/cursor.h"
#include "segment/node.h"

/* All of @len bytes into @shared, or out of it; advances the cursor. 0 or
 * -EFAULT, or what the system said. */
int oc_safe_copy_load(const struct oc_node *node, void *shared, struct oc_cursor *from, size_t len);
int oc_safe_copy_store(const struct oc_node *node, struct oc_cursor *to, const void *shared,
		       size_t len);

#endif
