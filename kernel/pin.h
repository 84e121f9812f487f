/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_PIN_H
#define OCK_PIN_H

/* Takes hold of a provider's pages, and lets go: what becomes struct ock_pages. */

#include <linux/types.h>

#include "limit.h"
#include "pages.h"

/* An iovec of any caller's width, in kernel memory. */
struct ock_vec {
	u64 addr;
	u64 length;
};

#define OCK_SEGMENTS_MAX 65536u

/*
 * Copies @nr pairs of u64 from user space. Returns *vec to be freed with
 * kvfree(), NULL for none; -E2BIG beyond OCK_SEGMENTS_MAX, -EFAULT, -ENOMEM.
 * Both devices' iovecs look so.
 */
int ock_vec_import(const void __user *from, u32 nr, struct ock_vec **vec);

/* Sums up. -EOVERFLOW: a segment wraps around, or the sum passes 2^63. */
int ock_vec_length(const struct ock_vec *vec, u32 nr, u64 *length);

/*
 * Pins what @provider has at the addresses of @vec, for writing if @writable,
 * and charges it by @limits. May sleep, killable. -EFAULT, -EOVERFLOW, -EINTR,
 * -ENOMEM, and what ock_charge_take() says; then @pages holds nothing. Segments
 * of length 0 leave no trace.
 */
int ock_pages_pin(struct ock_pages *pages, const struct ock_provider *provider,
		  const struct ock_vec *vec, u32 nr, bool writable,
		  const struct ock_limits *limits);

/* Unpins and uncharges. May sleep. Any process. */
void ock_pages_unpin(struct ock_pages *pages);

#endif
