/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_CURSOR_H
#define OC_CURSOR_H

/* A place in a list of segments. The list may lie in memory a peer writes:
 * every segment is read once a step, and nothing is believed of its length. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Which way bytes go between memory here, where a cursor is, and somebody else's. */
enum oc_direction { OC_GET, OC_PUT };

struct oc_cursor {
	const struct iovec *iov;
	size_t count;
	size_t off; /* into iov[0] */
};

/* Starts @offset bytes into the list; past its end is its end. */
void oc_cursor_init(struct oc_cursor *cursor, const struct iovec *iov, size_t count,
		    uint64_t offset);

/* What lies here in one piece, never empty. False at the end. */
bool oc_cursor_piece(struct oc_cursor *cursor, struct iovec *piece);
void oc_cursor_skip(struct oc_cursor *cursor, uint64_t bytes);

/* The next pieces, at most @max, of at most @limit bytes in all: how many, and
 * their sum in *@bytes. Does not move. */
size_t oc_cursor_gather(const struct oc_cursor *cursor, struct iovec *pieces, size_t max,
			size_t limit, size_t *bytes);

#endif
