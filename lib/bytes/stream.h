/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_STREAM_H
#define OC_STREAM_H

/*
 * Stores past the caches: no line is read only to be overwritten, and what was
 * cached stays there. Where the machine has no such stores these are ordinary
 * ones and the fence is nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What these stores work in, and the alignment they ask for. A power of two. */
#define OC_STREAM_LINE 64

/* Bytes below which the partial lines and the fence cost more than is saved. */
#define OC_STREAM_MIN (8 * OC_STREAM_LINE)

/* Some processors are faster when several places are copied side by side, in lanes (stream_x86.c).
 * A lane is a page at least, of what their prefetchers take for one, whatever the system's are: two
 * in one page would be one to them. */
#define OC_STREAM_LANES_MAX  4
#define OC_STREAM_LANE_LEAST ((size_t)64)   /* lines: 4 KiB */
#define OC_STREAM_LANE_MOST  ((size_t)1024) /* of a longer piece the next lanes are behind these */

/* Bytes from which one piece is copied in lanes of its own. */
#define OC_STREAM_IN_LANES (2 * OC_STREAM_LANE_LEAST * OC_STREAM_LINE)

/* How many pieces are copied side by side on this machine; 1: one after the other. Any thread. */
unsigned int oc_stream_lanes(void);

/* How many places of one long piece; 1: it is copied in its order. Any thread. */
unsigned int oc_stream_lanes_within(void);

/* For tests: so many from now on, of one piece too, 0 for what suits again. -EINVAL above
 * OC_STREAM_LANES_MAX, -ENOTSUP when this machine has no such copy. Not while another thread
 * copies. */
int oc_stream_select_lanes(unsigned int lanes);

/* Bytes from @p to the next line boundary. */
static inline size_t oc_stream_head(const void *p)
{
	return -(uintptr_t)p % OC_STREAM_LINE;
}

/* Copies @len bytes from anywhere to anywhere, no overlap, not NULL; a partial
 * line at either end by ordinary stores. Not fenced. Any thread. */
void oc_stream_bytes(void *dst, const void *src, size_t len);

/* The same from each of @n places, OC_STREAM_LANES_MAX at most, to another, side by side. */
void oc_stream_pieces(void *const *dst, const void *const *src, size_t n, size_t len);

/* Whether this machine does well to write one source to two places at once. Any thread. */
bool oc_stream_has_twice(void);

/* As oc_stream_bytes() to each of two places that begin at the same place of a line
 * (oc_stream_head()), the source read once. Only where oc_stream_has_twice(). Not fenced. */
void oc_stream_twice(void *dst, void *other, const void *src, size_t len);

/* Runs that lie apart, each a stride from the one before. */
struct oc_stream_row {
	char *at;
	ptrdiff_t stride;
};

/* Whether oc_stream_row() is how this machine copies them. Any thread. */
bool oc_stream_has_row(void);

/* Copies @n runs of @len bytes, a line at least, some side by side, each as oc_stream_bytes()
 * would. The source is only read. Not fenced. */
void oc_stream_row(struct oc_stream_row dst, struct oc_stream_row src, size_t len, size_t n);

/* Copies whole lines. @dst on a line boundary, @src anywhere, no overlap. Not
 * fenced. Any thread. */
void oc_stream_lines(void *dst, const void *src, size_t lines);

/* The same from each of @n places to another, side by side. */
void oc_stream_beside(void *const *dst, const void *const *src, size_t n, size_t lines);

/* The same to two places. Only where oc_stream_has_twice(). */
void oc_stream_lines_twice(void *dst, void *other, const void *src, size_t lines);

/* Orders this thread's streamed stores before all its later stores. */
void oc_stream_fence(void);

#ifdef __cplusplus
}
#endif

#endif
