// SPDX-License-Identifier: BSD-3-Clause
/* Machines without kernels of their own: the C library knows them best. */
#include "bytes/stream.h"

#include <errno.h>
#include <string.h>

unsigned int oc_stream_lanes(void)
{
	return 1;
}

unsigned int oc_stream_lanes_within(void)
{
	return 1;
}

int oc_stream_select_lanes(unsigned int lanes)
{
	if (lanes > OC_STREAM_LANES_MAX)
		return -EINVAL;
	return lanes > 1 ? -ENOTSUP : 0;
}

void oc_stream_lines(void *dst, const void *src, size_t lines)
{
	memcpy(dst, src, lines * OC_STREAM_LINE);
}

void oc_stream_beside(void *const *dst, const void *const *src, size_t n, size_t lines)
{
	for (size_t i = 0; i < n; i++)
		oc_stream_lines(dst[i], src[i], lines);
}

bool oc_stream_has_twice(void)
{
	return false;
}

void oc_stream_lines_twice(void *dst, void *other, const void *src, size_t lines)
{
	oc_stream_lines(dst, src, lines);
	oc_stream_lines(other, src, lines);
}

bool oc_stream_has_row(void)
{
	return false;
}

void oc_stream_row(struct oc_stream_row dst, struct oc_stream_row src, size_t len, size_t n)
{
	for (size_t i = 0; i < n; i++)
		memcpy(dst.at + (ptrdiff_t)i * dst.stride, src.at + (ptrdiff_t)i * src.stride, len);
}

void oc_stream_fence(void)
{
}
